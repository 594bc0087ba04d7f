# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.scipy.stats import arcsine as arcsine
from pullback.scipy.stats import bernoulli as bernoulli
from pullback.scipy.stats import beta as beta
from pullback.scipy.stats import betabinom as betabinom
from pullback.scipy.stats import betaprime as betaprime
from pullback.scipy.stats import binom as binom
from pullback.scipy.stats import burr as burr
from pullback.scipy.stats import burr12 as burr12
from pullback.scipy.stats import cauchy as cauchy
from pullback.scipy.stats import chi as chi
from pullback.scipy.stats import chi2 as chi2
from pullback.scipy.stats import clayton_copula as clayton_copula
from pullback.scipy.stats import dirichlet as dirichlet
from pullback.scipy.stats import expon as expon
from pullback.scipy.stats import exponweib as exponweib
from pullback.scipy.stats import f as f
from pullback.scipy.stats import fatiguelife as fatiguelife
from pullback.scipy.stats import fisk as fisk
from pullback.scipy.stats import frank_copula as frank_copula
from pullback.scipy.stats import gamma as gamma
from pullback.scipy.stats import gaussian_copula as gaussian_copula
from pullback.scipy.stats import genextreme as genextreme
from pullback.scipy.stats import genlogistic as genlogistic
from pullback.scipy.stats import gennorm as gennorm
from pullback.scipy.stats import genpareto as genpareto
from pullback.scipy.stats import geom as geom
from pullback.scipy.stats import gompertz as gompertz
from pullback.scipy.stats import gumbel_copula as gumbel_copula
from pullback.scipy.stats import gumbel_l as gumbel_l
from pullback.scipy.stats import gumbel_r as gumbel_r
from pullback.scipy.stats import halfcauchy as halfcauchy
from pullback.scipy.stats import halflogistic as halflogistic
from pullback.scipy.stats import halfnorm as halfnorm
from pullback.scipy.stats import hypsecant as hypsecant
from pullback.scipy.stats import invgamma as invgamma
from pullback.scipy.stats import invweibull as invweibull
from pullback.scipy.stats import invwishart as invwishart
from pullback.scipy.stats import johnsonsb as johnsonsb
from pullback.scipy.stats import johnsonsu as johnsonsu
from pullback.scipy.stats import laplace as laplace
from pullback.scipy.stats import levy as levy
from pullback.scipy.stats import logistic as logistic
from pullback.scipy.stats import lognorm as lognorm
from pullback.scipy.stats import loguniform as loguniform
from pullback.scipy.stats import lomax as lomax
from pullback.scipy.stats import matrix_normal as matrix_normal
from pullback.scipy.stats import maxwell as maxwell
from pullback.scipy.stats import moyal as moyal
from pullback.scipy.stats import multinomial as multinomial
from pullback.scipy.stats import multivariate_normal as multivariate_normal
from pullback.scipy.stats import multivariate_t as multivariate_t
from pullback.scipy.stats import nakagami as nakagami
from pullback.scipy.stats import nbinom as nbinom
from pullback.scipy.stats import norm as norm
from pullback.scipy.stats import pareto as pareto
from pullback.scipy.stats import poisson as poisson
from pullback.scipy.stats import powerlaw as powerlaw
from pullback.scipy.stats import qmc as qmc
from pullback.scipy.stats import rayleigh as rayleigh
from pullback.scipy.stats import t as t
from pullback.scipy.stats import t_copula as t_copula
from pullback.scipy.stats import triang as triang
from pullback.scipy.stats import truncexpon as truncexpon
from pullback.scipy.stats import truncnorm as truncnorm
from pullback.scipy.stats import truncpareto as truncpareto
from pullback.scipy.stats import truncweibull_min as truncweibull_min
from pullback.scipy.stats import uniform as uniform
from pullback.scipy.stats import vonmises as vonmises
from pullback.scipy.stats import vonmises_fisher as vonmises_fisher
from pullback.scipy.stats import weibull_max as weibull_max
from pullback.scipy.stats import weibull_min as weibull_min
from pullback.scipy.stats import wishart as wishart
from pullback.scipy.stats import wrapcauchy as wrapcauchy
from pullback.scipy.stats.kde import gaussian_kde as gaussian_kde
from pullback.scipy.stats.random_variables import ContinuousDistribution as ContinuousDistribution
from pullback.scipy.stats.random_variables import Mixture as Mixture
from pullback.scipy.stats.random_variables import Normal as Normal
from pullback.scipy.stats.random_variables import Uniform as Uniform
from pullback.scipy.stats.random_variables import make_distribution as make_distribution
from pullback.scipy.stats.random_variables import truncate as truncate
from pullback.scipy.stats.samples import mode as mode
from pullback.scipy.stats.samples import rankdata as rankdata
from pullback.scipy.stats.samples import sem as sem

__all__ = [
    "ContinuousDistribution", "Mixture", "Normal", "Uniform", "arcsine", "bernoulli", "beta", "betabinom",
    "betaprime", "binom", "burr", "burr12", "cauchy", "chi", "chi2", "clayton_copula", "dirichlet", "expon",
    "exponweib", "f", "fatiguelife", "fisk", "frank_copula", "gamma", "gaussian_copula", "gaussian_kde",
    "genextreme", "genlogistic", "gennorm", "genpareto", "geom", "gompertz", "gumbel_copula", "gumbel_l",
    "gumbel_r", "halfcauchy", "halflogistic", "halfnorm", "hypsecant", "invgamma", "invweibull", "invwishart",
    "johnsonsb", "johnsonsu", "laplace", "levy", "logistic", "lognorm", "loguniform", "lomax",
    "make_distribution", "matrix_normal", "maxwell", "mode", "moyal", "multinomial", "multivariate_normal",
    "multivariate_t", "nakagami", "nbinom", "norm", "pareto", "poisson", "powerlaw", "qmc", "rankdata",
    "rayleigh", "sem", "t", "t_copula", "triang", "truncate", "truncexpon", "truncnorm", "truncpareto",
    "truncweibull_min", "uniform", "vonmises", "vonmises_fisher", "weibull_max", "weibull_min", "wishart",
    "wrapcauchy",
]
