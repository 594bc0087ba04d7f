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
    {".kde": "gaussian_kde", ".samples": "mode rankdata sem"},
    modules="bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace "
    "logistic multinomial multivariate_normal nbinom norm pareto poisson qmc t truncnorm uniform vonmises wrapcauchy",
)
