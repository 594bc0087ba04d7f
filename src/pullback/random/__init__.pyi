# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.random.continuous import bits as bits
from pullback.random.continuous import cauchy as cauchy
from pullback.random.continuous import exponential as exponential
from pullback.random.continuous import gumbel as gumbel
from pullback.random.continuous import laplace as laplace
from pullback.random.continuous import logistic as logistic
from pullback.random.continuous import normal as normal
from pullback.random.continuous import truncated_normal as truncated_normal
from pullback.random.continuous import uniform as uniform
from pullback.random.copulas import clayton_copula as clayton_copula
from pullback.random.copulas import frank_copula as frank_copula
from pullback.random.copulas import gaussian_copula as gaussian_copula
from pullback.random.copulas import gumbel_copula as gumbel_copula
from pullback.random.copulas import t_copula as t_copula
from pullback.random.counts import binomial as binomial
from pullback.random.counts import geometric as geometric
from pullback.random.counts import multinomial as multinomial
from pullback.random.counts import poisson as poisson
from pullback.random.covariances import inverse_wishart as inverse_wishart
from pullback.random.covariances import lkj as lkj
from pullback.random.covariances import lkj_cholesky as lkj_cholesky
from pullback.random.covariances import wishart as wishart
from pullback.random.directions import von_mises_fisher as von_mises_fisher
from pullback.random.discrete import bernoulli as bernoulli
from pullback.random.discrete import categorical as categorical
from pullback.random.discrete import choice as choice
from pullback.random.discrete import permutation as permutation
from pullback.random.discrete import rademacher as rademacher
from pullback.random.discrete import randint as randint
from pullback.random.gammas import ball as ball
from pullback.random.gammas import beta as beta
from pullback.random.gammas import chisquare as chisquare
from pullback.random.gammas import dirichlet as dirichlet
from pullback.random.gammas import f as f
from pullback.random.gammas import gamma as gamma
from pullback.random.gammas import generalized_normal as generalized_normal
from pullback.random.gammas import loggamma as loggamma
from pullback.random.gammas import t as t
from pullback.random.keys import PRNGKey as PRNGKey
from pullback.random.keys import clone as clone
from pullback.random.keys import fold_in as fold_in
from pullback.random.keys import key as key
from pullback.random.keys import key_data as key_data
from pullback.random.keys import key_dtype as key_dtype
from pullback.random.keys import key_impl as key_impl
from pullback.random.keys import split as split
from pullback.random.keys import wrap_key_data as wrap_key_data
from pullback.random.matrices import multivariate_normal as multivariate_normal
from pullback.random.matrices import orthogonal as orthogonal
from pullback.random.transformed import double_sided_maxwell as double_sided_maxwell
from pullback.random.transformed import lognormal as lognormal
from pullback.random.transformed import maxwell as maxwell
from pullback.random.transformed import pareto as pareto
from pullback.random.transformed import rayleigh as rayleigh
from pullback.random.transformed import triangular as triangular
from pullback.random.transformed import wald as wald
from pullback.random.transformed import weibull_min as weibull_min

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice",
    "clayton_copula", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "frank_copula",
    "gamma", "gaussian_copula", "generalized_normal", "geometric", "gumbel", "gumbel_copula", "inverse_wishart",
    "key", "key_data", "key_dtype", "key_impl", "laplace", "lkj", "lkj_cholesky", "loggamma", "logistic",
    "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation",
    "poisson", "rademacher", "randint", "rayleigh", "split", "t", "t_copula", "triangular", "truncated_normal",
    "uniform", "von_mises_fisher", "wald", "weibull_min", "wishart", "wrap_key_data",
]
