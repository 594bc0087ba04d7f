# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.scipy.stats import bernoulli as bernoulli
from pullback.scipy.stats import beta as beta
from pullback.scipy.stats import betabinom as betabinom
from pullback.scipy.stats import binom as binom
from pullback.scipy.stats import cauchy as cauchy
from pullback.scipy.stats import chi2 as chi2
from pullback.scipy.stats import dirichlet as dirichlet
from pullback.scipy.stats import expon as expon
from pullback.scipy.stats import gamma as gamma
from pullback.scipy.stats import gennorm as gennorm
from pullback.scipy.stats import geom as geom
from pullback.scipy.stats import gumbel_l as gumbel_l
from pullback.scipy.stats import gumbel_r as gumbel_r
from pullback.scipy.stats import laplace as laplace
from pullback.scipy.stats import logistic as logistic
from pullback.scipy.stats import multinomial as multinomial
from pullback.scipy.stats import multivariate_normal as multivariate_normal
from pullback.scipy.stats import nbinom as nbinom
from pullback.scipy.stats import norm as norm
from pullback.scipy.stats import pareto as pareto
from pullback.scipy.stats import poisson as poisson
from pullback.scipy.stats import qmc as qmc
from pullback.scipy.stats import t as t
from pullback.scipy.stats import truncnorm as truncnorm
from pullback.scipy.stats import uniform as uniform
from pullback.scipy.stats import vonmises as vonmises
from pullback.scipy.stats import wrapcauchy as wrapcauchy
from pullback.scipy.stats.kde import gaussian_kde as gaussian_kde
from pullback.scipy.stats.samples import mode as mode
from pullback.scipy.stats.samples import rankdata as rankdata
from pullback.scipy.stats.samples import sem as sem

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial",
    "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "qmc", "rankdata", "sem", "t", "truncnorm",
    "uniform", "vonmises", "wrapcauchy",
]
