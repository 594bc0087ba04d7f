"""The distribution of von Mises and Fisher, of directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.scipy.arguments import known
from pullback.scipy.special import hyp1f1
from pullback.scipy.special.operands import real_operands

_TERMS = 16


def check_directions(name: str, what: str, x: Any) -> None:
    """Raise unless an array has vectors of at least 2 components, which are of length 1 where they are known.

    Raises:
      ShapeError: it has other axes.
      ArgumentError: a known vector is of another length.
    """
    if not x.shape or x.shape[-1] < 2:
        raise ShapeError(f"{name}: {what} must have an axis of at least 2 components, got shape {x.shape}")
    values = known(x)
    if values is None:
        return
    sizes = np.linalg.norm(np.asarray(values, np.float64), axis=-1)
    if (np.abs(sizes - 1) > 20 * float(pnp.finfo(x.dtype).eps) * math.sqrt(x.shape[-1])).any():
        raise ArgumentError(f"{name}: {what} must have vectors of length 1, got lengths {sizes}; divide by the lengths")


def _log_series(kappa: Any, n: int) -> Any:
    """Return the logarithm of Kummer's function M((n - 1) / 2, n - 1, -2 kappa), a mean of exp(kappa (x - 1)).

    Where the function underflows, by its asymptotic series (DLMF 13.7.2).
    """
    a = (n - 1) / 2
    value = hyp1f1(a, 2 * a, -2 * kappa)
    small = value < float(pnp.finfo(value.dtype).tiny) * 1e3
    direct = pnp.log(pnp.where(small, 1, value))
    factors = [1.0]
    for k in range(_TERMS):
        factors.append(factors[-1] * (a + k) * (1 - a + k) / (k + 1))
    x = pnp.where(small, 2 * kappa, 1e30)
    series = pnp.log(pnp.polyval(np.array(factors[::-1], kappa.dtype), 1 / x))
    far = math.lgamma(2 * a) - math.lgamma(a) - a * pnp.log(x) + series
    return pnp.where(small, far, direct)


def mean_deviation(kappa: Any, n: int) -> Any:
    """Return the mean of ``1 - x``, where ``x`` is the component along the mean direction."""
    a = (n - 1) / 2
    below, above = hyp1f1(a, 2 * a, -2 * kappa), hyp1f1(a + 1, 2 * a + 1, -2 * kappa)
    good = below >= float(pnp.finfo(below.dtype).tiny) * 1e3
    # Where both underflow the mean is that of the asymptotic series.
    far = a / pnp.where(good, 1, kappa)
    return pnp.where(good, above / pnp.where(good, below, 1), far)


def _log_area(n: int) -> float:
    """Return the logarithm of the area of the unit sphere in n dimensions."""
    return math.log(2) + n / 2 * math.log(math.pi) - math.lgamma(n / 2)


def logpdf(x: ArrayLike, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
    """Return the logarithm of the density of the distribution of von Mises and Fisher, on the unit sphere.

    Args:
      x: directions, vectors of length 1, an array (..., n) of real numbers with n at least 2.
      mu: the mean directions, vectors of length 1, an array (..., n) that broadcasts against ``x``.
      kappa: the concentration, not negative; an array that broadcasts against the leading axes. The distribution is
        uniform for 0.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: NaN where ``kappa`` is negative.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: known vectors that are not of length 1 (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    As ``scipy.stats.vonmises_fisher.logpdf``. The density is ``exp(kappa mu·x)`` divided by its integral, Kummer's
    function. Source: Mardia and Jupp 2000, *Directional Statistics*, section 9.3. Samples are
    :func:`pullback.random.von_mises_fisher`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import vonmises_fisher
    >>> print(f"{vonmises_fisher.logpdf(jnp.array([0.6, 0.8]), jnp.array([0.0, 1.0]), 2.0):.4f}")
    -1.0619
    """
    name = "vonmises_fisher.logpdf"
    point, mean, spread = real_operands(name, x, mu, kappa)
    check_directions(name, "x", point)
    check_directions(name, "mu", mean)
    n = point.shape[-1]
    if mean.shape[-1] != n:
        raise ShapeError(f"{name}: x and mu must have as many components, got shapes {point.shape} and {mean.shape}")
    # One minus the scalar product of unit vectors, without cancellation.
    deviation = pnp.sum((point - mean) ** 2, axis=-1) / 2
    valid = (spread >= 0) & (spread < math.inf)
    safe = pnp.where(valid, spread, 1)
    return pnp.where(valid, -safe * deviation - _log_series(safe, n) - _log_area(n), math.nan)


def pdf(x: ArrayLike, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
    """Return the density of the distribution of von Mises and Fisher: the exponential of :func:`logpdf`.

    Args:
      x: directions, vectors of length 1, an array (..., n) of real numbers.
      mu: the mean directions.
      kappa: the concentration, not negative.

    Returns:
      An array of floats.

    Raises:
      ShapeError, ArgumentError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import vonmises_fisher
    >>> print(f"{vonmises_fisher.pdf(jnp.array([0.6, 0.8]), jnp.array([0.0, 1.0]), 2.0):.4f}")
    0.3458
    """
    return pnp.exp(logpdf(x, mu, kappa))


def entropy(mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
    """Return the differential entropy of the distribution of von Mises and Fisher.

    Args:
      mu: the mean directions, vectors of length 1, an array (..., n) of real numbers with n at least 2.
      kappa: the concentration, not negative; an array that broadcasts against the leading axes.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: NaN where ``kappa`` is negative.

    Raises:
      ShapeError, ArgumentError, OperandError, DtypeError: see :func:`logpdf`.

    As ``scipy.stats.vonmises_fisher.entropy``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import vonmises_fisher
    >>> print(f"{vonmises_fisher.entropy(jnp.array([0.0, 1.0]), 2.0):.4f}")
    1.2663
    """
    name = "vonmises_fisher.entropy"
    mean, spread = real_operands(name, mu, kappa)
    check_directions(name, "mu", mean)
    try:
        shape = pnp.broadcast_shapes(mean.shape[:-1], spread.shape)
    except ValueError:
        raise ShapeError(f"{name}: the shapes {mean.shape} and {spread.shape} do not broadcast") from None
    n, valid = mean.shape[-1], (spread >= 0) & (spread < math.inf)
    safe = pnp.where(valid, spread, 1)
    value = safe * mean_deviation(safe, n) + _log_series(safe, n) + _log_area(n)
    return pnp.broadcast_to(pnp.where(valid, value, math.nan), shape)


__all__ = ["entropy", "logpdf", "pdf"]
face(globals())
