"""Distributions, each a module with its functions, and statistics of samples, as in ``scipy.stats``.

Each distribution has a density, a distribution function and its tail, their logarithms, and both inverses: ``pdf logpdf
cdf logcdf sf logsf ppf isf``; a discrete one has ``pmf`` and ``logpmf`` for the first two. Logarithms are accurate also
where the number itself underflows, and functions have derivatives of any order with respect to the variable and the
parameters.

>>> from pullback import grad
>>> from pullback.scipy.stats import gamma, norm
>>> print(f"{norm.logcdf(-40.0):.3f} {grad(gamma.logpdf, 1)(2.0, 3.0):.4f}")
-804.608 -0.2296
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        ".kde": "gaussian_kde",
        ".random_variables": "ContinuousDistribution Mixture Normal Uniform make_distribution truncate",
        ".samples": "mode rankdata sem",
    },
    modules="arcsine bernoulli beta betabinom betaprime binom burr burr12 cauchy chi chi2 clayton_copula "
    "dirichlet expon exponweib f fatiguelife fisk frank_copula gamma gaussian_copula genextreme "
    "genlogistic gennorm genpareto geom gompertz gumbel_copula gumbel_l gumbel_r halfcauchy halflogistic "
    "halfnorm hypsecant invgamma invweibull invwishart johnsonsb johnsonsu laplace levy logistic lognorm "
    "loguniform lomax matrix_normal maxwell moyal multinomial multivariate_normal multivariate_t nakagami "
    "nbinom norm pareto poisson powerlaw qmc rayleigh t t_copula triang truncexpon truncnorm truncpareto "
    "truncweibull_min uniform vonmises vonmises_fisher weibull_max weibull_min wishart wrapcauchy",
)
