"""Signals of known forms, as functions of time with derivatives by their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import constant, positive_int, promoted

__all__ = ["chirp", "gausspulse", "sawtooth", "square", "sweep_poly", "unit_impulse"]


def _real(name: str, *xs: Any) -> list[Any]:
    """Promote operands to one dtype of real numbers."""
    found = promoted(name, *xs)
    if dtypes.is_complex(found[0].dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(found[0].dtype)}")
    return found


def _are(test: Any) -> bool:
    """Whether a condition is known to hold everywhere."""
    value = known(test)
    return value is not None and bool(np.all(value))


# long: half of it is its documentation
def chirp(
    t: ArrayLike, f0: ArrayLike, t1: ArrayLike, f1: ArrayLike, method: str = "linear", phi: ArrayLike = 0,
    vertex_zero: bool = True, *, complex: bool = False,
) -> Array:  # fmt: skip
    """Return a cosine whose frequency changes with time.

    Args:
      t: the times, an array of real numbers.
      f0: the frequency at time 0.
      t1: the time of the frequency ``f1``.
      f1: the frequency at time ``t1``.
      method: how it changes: ``"linear"``, ``"quadratic"``, ``"logarithmic"`` or ``"hyperbolic"``.
      phi: the phase at time 0, in degrees.
      vertex_zero: for ``"quadratic"``, whether the slope is zero at time 0, or at ``t1``.
      complex: whether to return ``exp(1j phase)`` instead of its real part.

    Returns:
      An array of the shape of the operands, which broadcast against each other.

    Raises:
      ArgumentError: an unknown method, or frequencies for which it makes no sense (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.chirp(jnp.array([0.0, 0.5, 1.0]), 1.0, 1.0, 2.0).round(3))
    [ 1.    -0.707 -1.   ]
    """
    time, first, end, last, phase = _real("chirp", t, f0, t1, f1, phi)
    vertex_zero, rotating = flag("chirp", "vertex_zero", vertex_zero), flag("chirp", "complex", complex)
    turns = _turns(time, first, end, last, method, vertex_zero)
    angle = turns * constant(2 * math.pi, time.dtype) + phase * constant(math.pi / 180, time.dtype)
    return ops.complex(pnp.cos(angle), pnp.sin(angle)) if rotating else pnp.cos(angle)


def _turns(t: Any, f0: Any, t1: Any, f1: Any, method: Any, vertex_zero: bool) -> Any:
    """Return the integral of the frequency of a :func:`chirp` from 0 to ``t``."""
    if not isinstance(method, str) or method not in _METHODS:
        raise ArgumentError(
            f"chirp: method must be 'linear', 'quadratic', 'logarithmic' or 'hyperbolic', got {quote(method)}"
        )
    method = _METHODS[method]
    if method == "linear":
        return f0 * t + (f1 - f0) / t1 * t * t / 2
    if method == "quadratic":
        bend = (f1 - f0) / (t1 * t1)
        if vertex_zero:
            return f0 * t + bend * t**3 / 3
        return f1 * t + bend * ((t1 - t) ** 3 - t1**3) / 3
    if method == "logarithmic":
        if _are(pnp.less_equal(f0 * f1, 0)):
            raise ArgumentError("chirp: with method='logarithmic' f0 and f1 must have one sign and not be zero")
        exprel_p = imported("pullback.primitives.special.others").exprel_p
        return f0 * t * exprel_p.bind(pnp.log(f1 / f0) / t1 * t)
    if _are(pnp.equal(f0 * f1, 0)):
        raise ArgumentError("chirp: with method='hyperbolic' f0 and f1 must not be zero")
    return f0 * t * _log_quotient((f1 - f0) / (f1 * t1) * t)


_TERMS = 14
"""So many terms of the series of ``log(1 - x) / x`` are right to double precision below 0.06."""


def _log_quotient(x: Any) -> Any:
    """Return ``-log(abs(1 - x)) / x``, which is 1 at 0, with its derivatives there."""
    small = pnp.abs(x) < 0.06
    # Neither branch is undefined where it is not used.
    series = pnp.polyval(constant(1 / np.arange(_TERMS, 0, -1), x.dtype), pnp.where(small, x, 0))
    other = pnp.where(small, 0.5, x)
    return pnp.where(small, series, -pnp.log(pnp.abs(1 - other)) / other)


_METHODS = {
    "linear": "linear", "lin": "linear", "li": "linear", "quadratic": "quadratic", "quad": "quadratic",
    "q": "quadratic", "logarithmic": "logarithmic", "log": "logarithmic", "lo": "logarithmic",
    "hyperbolic": "hyperbolic", "hyp": "hyperbolic",
}  # fmt: skip


# long: half of it is its documentation
def gausspulse(
    t: ArrayLike | str, fc: ArrayLike = 1000, bw: ArrayLike = 0.5, bwr: ArrayLike = -6, tpr: ArrayLike = -60,
    retquad: bool = False, retenv: bool = False,
) -> Any:  # fmt: skip
    """Return a cosine with the envelope ``exp(-a t**2)``.

    Args:
      t: the times, an array of real numbers; or ``"cutoff"`` for the time at which the envelope has fallen to ``tpr``.
      fc: the frequency of the cosine.
      bw: the width of the spectrum, divided by ``fc``.
      bwr: the level at which this is the width, in decibels, negative.
      tpr: the level for ``"cutoff"``, in decibels, negative.
      retquad: whether to return the sine too.
      retenv: whether to return the envelope too.

    Returns:
      An array of the shape of ``t``; or a tuple of arrays: the cosine, the sine and the envelope, those that are asked
      for; or the time of the cut-off.

    Raises:
      ArgumentError: known numbers of a wrong sign, or an unknown word (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.gausspulse(jnp.array([0.0, 0.5, 1.0]), fc=1.0).round(3))
    [ 1.    -0.8    0.409]
    """
    cutoff = isinstance(t, str)
    if cutoff and t != "cutoff":
        raise ArgumentError(f"gausspulse: t must be an array or 'cutoff', got {quote(t)}")
    time, centre, band, level, rest = _real("gausspulse", 0.0 if cutoff else t, fc, bw, bwr, tpr)
    for what, wrong, sign in (
        ("fc", pnp.less(centre, 0), "positive"), ("bw", pnp.less_equal(band, 0), "positive"),
        ("bwr", pnp.greater_equal(level, 0), "negative"), ("tpr", pnp.greater_equal(rest, 0), "negative"),
    ):  # fmt: skip
        if _are(wrong) and (cutoff or what != "tpr"):
            raise ArgumentError(f"gausspulse: {what} must be {sign}")
    natural = constant(math.log(10) / 20, time.dtype)
    steepness = -ops.square(constant(math.pi, time.dtype) * centre * band) / (4 * level * natural)
    if cutoff:
        return pnp.sqrt(-rest * natural / steepness)
    envelope = pnp.exp(-steepness * time * time)
    angle = constant(2 * math.pi, time.dtype) * centre * time
    out = [envelope * pnp.cos(angle)]
    out += [envelope * pnp.sin(angle)] if flag("gausspulse", "retquad", retquad) else []
    out += [envelope] if flag("gausspulse", "retenv", retenv) else []
    return out[0] if len(out) == 1 else tuple(out)


def _phase(t: Any) -> Any:
    return pnp.mod(t, constant(2 * math.pi, t.dtype))


def _unknown_outside(x: Any, part: Any) -> Any:
    """Return ``x``, but NaN where ``part`` is not between 0 and 1."""
    inside = pnp.logical_and(pnp.greater_equal(part, 0), pnp.less_equal(part, 1))
    return pnp.where(inside, x, constant(math.nan, x.dtype))


def sawtooth(t: ArrayLike, width: ArrayLike = 1) -> Array:
    """Return a wave of period 2 pi that rises from -1 to 1, and then falls to -1.

    Args:
      t: the times, an array of real numbers.
      width: at which part of the period the wave is 1, between 0 and 1; elsewhere results are NaN.

    Returns:
      An array of the shape of the operands, which broadcast against each other.

    Raises:
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.sawtooth(jnp.array([0.0, jnp.pi, 1.5 * jnp.pi]), 0.5).round(3))
    [-1.  1.  0.]
    """
    time, rise = _real("sawtooth", t, width)
    part = _phase(time) * constant(0.5 / math.pi, time.dtype)
    rising = pnp.less(part, rise)
    # Neither quotient divides by zero where it is not used.
    up = 2 * part / pnp.where(rising, rise, pnp.ones_like(rise)) - 1
    down = (rise + 1 - 2 * part) / pnp.where(rising, pnp.ones_like(rise), 1 - rise)
    return _unknown_outside(pnp.where(rising, up, down), rise)  # type: ignore[no-any-return]


def square(t: ArrayLike, duty: ArrayLike = 0.5) -> Array:
    """Return a wave of period 2 pi that is 1, and then -1.

    Args:
      t: the times, an array of real numbers.
      duty: for which part of the period the wave is 1, between 0 and 1; elsewhere results are NaN.

    Returns:
      An array of the shape of the operands, which broadcast against each other. Its derivatives are zero.

    Raises:
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.square(jnp.array([0.0, 3.0, 6.0])))
    [ 1.  1. -1.]
    """
    time, part = _real("square", t, duty)
    high = pnp.less(_phase(time), part * constant(2 * math.pi, time.dtype))
    wave = pnp.where(high, constant(1, time.dtype), constant(-1, time.dtype))
    return _unknown_outside(wave, part)  # type: ignore[no-any-return]


def sweep_poly(t: ArrayLike, poly: ArrayLike, phi: ArrayLike = 0) -> Array:
    """Return a cosine whose frequency is a polynomial of time.

    Args:
      t: the times, an array of real numbers.
      poly: the coefficients, a vector, the highest power first.
      phi: the phase at time 0, in degrees.

    Returns:
      An array of the shape of ``t``.

    Raises:
      ShapeError: coefficients that are no vector or are empty (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.sweep_poly(jnp.array([0.0, 0.5, 1.0]), jnp.array([1.0, 1.0])).round(3))
    [ 1.    -0.707 -1.   ]
    """
    time, coefficients, phase = _real("sweep_poly", t, getattr(poly, "coeffs", poly), phi)
    if len(coefficients.shape) != 1 or not coefficients.shape[0]:
        raise ShapeError(
            f"sweep_poly: the coefficients poly must be a non-empty vector, got shape {coefficients.shape}"
        )
    integral = pnp.pad(coefficients / constant(np.arange(coefficients.shape[0], 0, -1), time.dtype), (0, 1))
    angle = constant(2 * math.pi, time.dtype) * pnp.polyval(integral, time)
    return pnp.cos(angle + phase * constant(math.pi / 180, time.dtype))


def unit_impulse(
    shape: int | tuple[int, ...], idx: int | tuple[int, ...] | str | None = None, dtype: Any = float
) -> Array:
    """Return an array of zeros with a single one.

    Args:
      shape: its shape, or its size.
      idx: the position of the one: an int for every axis, a tuple, or ``"mid"`` for the middle; 0 by default.
      dtype: the dtype.

    Returns:
      An array.

    Raises:
      ArgumentError: a position that is not in the array (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.unit_impulse(4, 2))
    [0. 0. 1. 0.]
    """
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(positive_int("unit_impulse", "shape", n) for n in sizes)
    if isinstance(idx, str) and idx == "mid":
        at = tuple(n // 2 for n in sizes)
    elif idx is None:
        at = (0,) * len(sizes)
    else:
        listed = idx if isinstance(idx, (tuple, list)) else (idx,) * len(sizes)
        at = tuple(known_int("unit_impulse", "idx", i) for i in listed)
    if len(at) != len(sizes) or any(not -n <= i < n for i, n in zip(at, sizes, strict=False)):
        raise ArgumentError(f"unit_impulse: the position {quote(idx)} is not in an array of shape {sizes}")
    return pnp.zeros(sizes, dtype).at[at].set(1)
