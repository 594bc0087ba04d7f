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
from pullback.scipy.stats import t as t
from pullback.scipy.stats import truncnorm as truncnorm
from pullback.scipy.stats import uniform as uniform
from pullback.scipy.stats import vonmises as vonmises
from pullback.scipy.stats import wrapcauchy as wrapcauchy
from pullback.scipy.stats.kde import gaussian_kde as gaussian_kde
from pullback.scipy.stats.samples import mode as mode
from pullback.scipy.stats.samples import rankdata as rankdata
from pullback.scipy.stats.samples import sem as sem

_face(
    globals(),
    modules="bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace "
    "logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy",
)
