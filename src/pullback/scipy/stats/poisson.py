"""The Poisson distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.special.incomplete import igamma_p, igammac_p
from pullback.primitives.special.log_incomplete import log_gamma_density_p, log_igamma_p, log_igammac_p
from pullback.primitives.special.others import xlogy_p
from pullback.scipy.stats.distributions import Discrete, at_least, both, exp, lgamma, log, where

_FEW = 20
"""For greater counts, probabilities are computed from the gamma density, whose large terms do not cancel."""


def _log_mass(k: Any, mu: Any) -> Any:
    many = both(ops.gt(k, _FEW), ops.gt(mu, 0))
    few = ops.sub(ops.sub(xlogy_p.bind(k, mu), mu), lgamma(ops.add(k, 1)))
    return where(many, log_gamma_density_p.bind(ops.add(k, 1), where(many, mu, 1)), few)


def _gamma(primitive: Any) -> Any:
    """Return a function of k and mu: the ``primitive``, such as ``gammainc``, of k + 1 and mu.

    For ``gammainc`` it is the Poisson probability P(X > k), and for the complement ``gammaincc`` it is P(X <= k).
    """
    return lambda k, mu: primitive.bind(ops.add(k, 1), mu)


_SERIES = (
    -1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1.3640873015873018, -6.7367063492059849, -39.778472222738159,
    -273.60547083256997, -2149.722002402735,
)  # fmt: skip
"""The coefficients of the asymptotic series of the entropy, of powers of 1 / mu from the first on, fitted to 80
digits."""
_LARGE = 40.0
_TERMS = 160


def _entropy(mu: Any) -> Any:
    """Return the entropy of the Poisson distribution with the mean ``mu``.

    For mu > 40 it is an asymptotic series, otherwise a sum over the counts whose probability is not negligible.
    """
    large = ops.gt(mu, _LARGE)
    inverse = ops.div(1, where(large, mu, _LARGE))
    half_log = ops.mul(log(ops.mul(where(large, mu, _LARGE), 2 * math.pi * math.e)), 0.5)
    series = ops.add(half_log, ops.mul(inverse, ops.polynomial(inverse, _SERIES[::-1])))
    small = where(large, 1, mu)
    counts = ArrayImpl(np.arange(float(_TERMS)).astype(mu.dtype))
    term = _log_mass(counts, shapes.expand_dims(small, (len(mu.shape),)))
    certain = ops.eq(term, -math.inf)
    term = where(certain, 0, term)
    terms = where(certain, 0, ops.mul(exp(term), term))
    return where(large, series, ops.neg(reduce_sum(terms, (len(mu.shape),))))


DISTRIBUTION = Discrete(
    values=("0.2138", "-1.543", "0.7576", "-0.2776", "0.2424", "-1.417", "5", "1", "1.831"),
    formulas=("mu**i * exp(-mu) / factorial(i)", "gammaincc(i + 1, mu)", "gammainc(i + 1, mu)"),
    support="integers ``i >= 0``",
    name="poisson", of="the Poisson distribution", parameters={"mu": "the mean, not negative"},
    valid=lambda mu: both(at_least(mu, 0), ops.lt(mu, math.inf)), example="3; 0.9; 2.5", log_mass=_log_mass,
    cdf=_gamma(igammac_p), logcdf=_gamma(log_igammac_p), sf=_gamma(igamma_p), logsf=_gamma(log_igamma_p),
    entropy=_entropy,
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf, entropy = DISTRIBUTION.functions(globals())
