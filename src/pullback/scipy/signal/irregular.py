"""Periods of measurements at any times: Lomb and Scargle's periodogram, and how well events repeat."""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.numpy.promotion import quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import check_vector, constant, promoted

__all__ = ["lombscargle", "vectorstrength"]


# long: half of it is its documentation
def lombscargle(
    x: ArrayLike, y: ArrayLike, freqs: ArrayLike, *, normalize: bool | str = False,
    weights: ArrayLike | None = None, floating_mean: bool = False,
) -> Array:  # fmt: skip
    """Return Lomb and Scargle's periodogram: how well a sine of each frequency fits measurements at any times.

    Args:
      x: the times, a vector of real numbers.
      y: the measurements, a vector of the same size.
      freqs: the angular frequencies, a vector of real numbers.
      normalize: ``"power"`` (or False) for the power; ``"normalize"`` (or True) for the part of the sum of squares that
        the sine explains, from 0 to 1; ``"amplitude"`` for the sine, ``alpha + 1j beta`` of
        ``alpha cos(freqs x) + beta sin(freqs x)``.
      weights: how much each measurement counts, numbers that are not negative; all alike by default.
      floating_mean: whether a constant is fitted beside each sine, instead of none.

    Returns:
      A vector, one element for each frequency: floats, or complex numbers for ``"amplitude"``. A sine that is zero at
      all times has no part in the fit.

    Raises:
      ShapeError: vectors that do not fit (a TypeError and a ValueError).
      DtypeError: complex numbers (a TypeError).
      ArgumentError: an unknown word, or known weights that are negative or zero (a TypeError and a ValueError).

    Source: Zechmeister and Kürster 2009, "The generalised Lomb-Scargle periodogram".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> x = jnp.array([0.0, 0.3, 1.1, 2.0, 2.4])
    >>> print(signal.lombscargle(x, jnp.sin(2 * x), jnp.array([1.0, 2.0]), normalize=True).round(3))
    [0.553 1.   ]
    """
    name = "lombscargle"
    word = {False: "power", True: "normalize"}.get(normalize, normalize) if isinstance(normalize, bool) else normalize
    if word not in ("power", "normalize", "amplitude"):
        raise ArgumentError(f"{name}: normalize must be 'power', 'normalize' or 'amplitude', got {quote(normalize)}")
    floating = flag(name, "floating_mean", floating_mean)
    given = (x, y, freqs) if weights is None else (x, y, freqs, weights)
    times, values, frequencies, *others = promoted(name, *given)
    if dtypes.is_complex(times.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(times.dtype)}")
    for what, vector in (("x", times), ("y", values), ("freqs", frequencies)):
        check_vector(name, vector, what)
    shares = others[0] if others else pnp.ones_like(times)
    if values.shape != times.shape or shares.shape != times.shape:
        raise ShapeError(
            f"{name}: x, y and weights must have one shape, got {times.shape}, {values.shape}, {shares.shape}"
        )
    found = known(shares)
    if found is not None and ((found < 0).any() or not found.sum() > 0):
        raise ArgumentError(f"{name}: weights must not be negative, and not all zero, got {quote(weights)}")
    shares = shares / pnp.sum(shares)
    if floating:
        values = values - pnp.sum(shares * values)
    cosine, sine = _fit(times, values, frequencies, shares, floating)
    (a, fitted_a), (b, fitted_b) = cosine, sine
    if word == "amplitude":
        return ops.complex(a, b)  # type: ignore[no-any-return]
    power = a * fitted_a + b * fitted_b
    return power / pnp.sum(shares * values**2) if word == "normalize" else power * (times.shape[0] / 2)


def _fit(times: Any, values: Any, frequencies: Any, shares: Any, floating: bool) -> tuple[Any, Any]:
    """Return the factors of the cosines and of the sines of a fit, each with its mean product with the values."""
    angles = frequencies[:, None] * times[None]
    waves = [pnp.cos(angles), pnp.sin(angles)]
    if floating:
        waves = [wave - pnp.matmul(wave, shares)[:, None] for wave in waves]
    cosine, sine = waves
    cc, ss, cs = (pnp.matmul(product, shares) for product in (cosine**2, sine**2, cosine * sine))
    by_cosine, by_sine = (pnp.matmul(wave, shares * values) for wave in waves)
    determinant, least = cc * ss - cs**2, float(pnp.finfo(cc.dtype).eps)
    # Where the waves are multiples of each other, or one is zero, the larger one is fitted.
    alone = determinant <= least * pnp.maximum(cc, ss)
    safe = pnp.where(alone, 1, determinant)
    large_cosine, none = cc >= ss, pnp.maximum(cc, ss) <= least
    single = lambda here, by, size: pnp.where(here & ~none, by / pnp.where(here & ~none, size, 1), 0)
    a = pnp.where(alone, single(large_cosine, by_cosine, cc), (by_cosine * ss - by_sine * cs) / safe)
    b = pnp.where(alone, single(~large_cosine, by_sine, ss), (by_sine * cc - by_cosine * cs) / safe)
    return (a, by_cosine), (b, by_sine)


def vectorstrength(events: ArrayLike, period: ArrayLike) -> tuple[Array, Array]:
    """Return how well events repeat with a period: 1 if all have one phase, 0 if phases cancel.

    Args:
      events: the times of the events, a vector of real numbers, or one.
      period: a positive number, or a vector of them.

    Returns:
      The strengths, from 0 to 1, and the mean phases from -pi to pi; of the shape of ``period``.

    Raises:
      ShapeError: arrays of more than one axis, or no events (a TypeError and a ValueError).
      DtypeError: complex numbers (a TypeError).
      ArgumentError: known periods that are not positive (a TypeError and a ValueError).

    Source: van Hemmen, Longtin and Vollmayr 2011, "Testing resonating vector strength".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.vectorstrength(jnp.array([0.5, 2.5, 4.5]), 2.0))
    1.0 1.5707965
    """
    name = "vectorstrength"
    times, periods = promoted(name, events, period)
    if dtypes.is_complex(times.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(times.dtype)}")
    if len(times.shape) > 1 or len(periods.shape) > 1 or not times.size:
        raise ShapeError(f"{name} takes vectors or numbers, got shapes {times.shape} and {periods.shape}")
    values = known(periods)
    if values is not None and (values <= 0).any():
        raise ArgumentError(f"{name}: periods must be positive, got {quote(period)}")
    turns = pnp.reshape(times, (*(1,) * len(periods.shape), -1)) / periods[..., None]
    angles = turns * constant(2 * math.pi, times.dtype)
    east, north = pnp.mean(pnp.cos(angles), -1), pnp.mean(pnp.sin(angles), -1)
    return pnp.hypot(east, north), pnp.arctan2(north, east)
