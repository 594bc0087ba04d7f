"""Random numbers from explicit keys, bit for bit those of JAX's default generator."""

from pullback.core.faces import face as _face
from pullback.random import key_reuse as _key_reuse

_face(
    globals(),
    {
        ".continuous": "bits cauchy exponential gumbel laplace logistic normal truncated_normal uniform",
        ".copulas": "clayton_copula frank_copula gaussian_copula gumbel_copula t_copula",
        ".covariances": "inverse_wishart lkj lkj_cholesky wishart",
        ".directions": "von_mises_fisher",
        ".counts": "binomial geometric multinomial poisson",
        ".discrete": "bernoulli categorical choice permutation rademacher randint",
        ".gammas": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
        ".keys": "PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data",
        ".matrices": "multivariate_normal orthogonal",
        ".transformed": "double_sided_maxwell lognormal maxwell pareto rayleigh triangular wald weibull_min",
    },
)
