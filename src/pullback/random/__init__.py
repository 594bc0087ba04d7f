"""Random numbers from explicit keys, bit for bit those of JAX's default generator."""

from pullback.random import key_reuse as _key_reuse
from pullback.random.continuous import (
    bits,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
    uniform,
)
from pullback.random.counts import binomial, geometric, multinomial, poisson
from pullback.random.discrete import bernoulli, categorical, choice, permutation, rademacher, randint
from pullback.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from pullback.random.keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from pullback.random.matrices import multivariate_normal, orthogonal
from pullback.random.transformed import (
    double_sided_maxwell,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
