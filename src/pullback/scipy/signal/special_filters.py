"""Filters of special forms: combs, and gammatone filters, which stand for the ear."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, known_or_traced, of_scipy, positive_int, promoted, real_number

__all__ = ["gammatone", "iircomb"]


def iircomb(
    w0: ArrayLike, Q: ArrayLike, ftype: str = "notch", fs: ArrayLike = 2.0, *, pass_zero: bool = False
) -> tuple[Array, Array]:
    """Design a filter that stops or passes a frequency and its multiples.

    Args:
      w0: the frequency, a known number that divides ``fs``. It decides the number of coefficients.
      Q: its quotient by the width of each band, at -3 decibels, a number.
      ftype: ``"notch"`` to stop the frequencies, ``"peak"`` to pass them.
      fs: the sampling frequency, a known number.
      pass_zero: whether frequency 0 passes.

    Returns:
      The coefficients ``(b, a)``, two vectors of ``fs / w0 + 1`` elements, with derivatives by ``Q``.

    Raises:
      ShapeError: arguments that are no numbers (a TypeError and a ValueError).
      ArgumentError: frequencies or words that make no sense (a TypeError and a ValueError).
      ConcretizationTypeError: a traced frequency (a TypeError).
      UnsupportedArgumentError: a differentiated frequency (a NotImplementedError).

    Source: Orfanidis 1996, *Introduction to Signal Processing*, section 11.5.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.iircomb(0.5, 4.0)))
    [ 0.707  0.     0.     0.    -0.707] [ 1.     0.     0.     0.    -0.414]
    """
    name = "iircomb"
    zero = flag(name, "pass_zero", pass_zero)
    numbers = [known_or_traced(name, v) for v in (w0, Q, fs)]
    if any(x.shape for x in numbers):
        raise ShapeError(f"{name}: w0, Q and fs must be numbers, got shapes {[x.shape for x in numbers]}")
    fixed = on_host(numbers[0], numbers[2])
    if fixed is None:
        kind = ConcretizationTypeError if known(numbers[0] + numbers[2]) is None else UnsupportedArgumentError
        raise kind(
            f"{name}: w0 must divide fs, and both decide the number of coefficients; they must be known and have no "
            "derivatives"
        )
    base, rate = (v if isinstance(v, (int, float)) else x.item() for v, x in zip((w0, fs), fixed, strict=True))
    found = on_host(numbers[1])
    quality = 1.0 if found is None else found[0].item()
    host = imported("scipy.signal")
    b, a = of_scipy(name, lambda: host.iircomb(base, quality, ftype, rate, pass_zero=zero))
    dtype = numbers[1].dtype
    if found is not None:
        return constant(b, dtype), constant(a, dtype)
    notch = ftype.lower() == "notch"
    beta = pnp.tan(constant(math.pi / 2, dtype) / numbers[1])
    one, sign = pnp.ones((), dtype), -1 if zero != notch else 1
    gain = one / (one + beta) if notch else beta / (one + beta)
    none = [0 * one] * (len(b) - 2)
    last = sign * gain if notch else -sign * gain
    return pnp.stack([gain, *none, last]), pnp.stack([one, *none, sign * (one - beta) / (one + beta)])


def gammatone(
    freq: ArrayLike, ftype: str, order: int | None = None, numtaps: int | None = None, fs: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Design a gammatone filter, which responds as the ear does to one frequency.

    Args:
      freq: the frequency, a number between 0 and half of ``fs``.
      ftype: ``"fir"`` for a filter of finite length, ``"iir"`` for a recursive one of order 8.
      order: the order of a filter of finite length, an int from 1 to 24; 4 by default.
      numtaps: its number of coefficients; by default those of 15 milliseconds, at least 15, for a known ``fs``.
      fs: the sampling frequency, a number; 2 by default.

    Returns:
      The coefficients ``(b, a)``: vectors of ``numtaps`` and 1 elements, or of 5 and 9.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).

    Source: Slaney 1993, "An efficient implementation of the Patterson-Holdsworth auditory filter bank".

    >>> from pullback.scipy import signal
    >>> print(signal.gammatone(440.0, "iir", fs=16000.0)[1][:3].round(3))
    [ 1.    -7.656 25.758]
    """
    name = "gammatone"
    if not isinstance(ftype, str) or ftype.lower() not in ("fir", "iir"):
        raise ArgumentError(f"{name}: ftype must be 'fir' or 'iir', got {quote(ftype)}")
    at, rate = real_number(name, "freq", freq), real_number(name, "fs", 2.0 if fs is None else fs)
    if at is None:
        raise ArgumentError(f"{name}: freq must be a real number, got None")
    finite = ftype.lower() == "fir"
    count = None if numtaps is None or not finite else positive_int(name, "numtaps", numtaps)
    power = 4 if order is None or not finite else positive_int(name, "order", order)
    if power > 24:
        raise ArgumentError(f"{name}: order must be from 1 to 24, got {power}")
    values = [known(v) for v in (at, rate)]
    if all(v is not None for v in values) and not 0 < values[0] < values[1] / 2:
        raise ArgumentError(f"{name}: freq must be between 0 and half of fs, {values[1] / 2}, got {values[0]}")
    if finite and count is None:
        if values[1] is None:
            raise ArgumentError(f"{name}: the number of coefficients depends on fs, which is traced; pass numtaps")
        count = max(int(values[1] * 0.015), 15)
    if not isinstance(at, Array) and not isinstance(rate, Array):
        host = imported("scipy.signal")
        more = {"order": power, "numtaps": count} if finite else {}
        b, a = of_scipy(name, lambda: host.gammatone(at, ftype, fs=rate, **more))
        dtype = known_or_traced(name, freq).dtype
        return constant(b, dtype), constant(a, dtype)
    at, rate = promoted(name, at, rate)
    good = (at > 0) & (at < rate / 2)
    at = pnp.where(good, at, constant(math.nan, at.dtype))
    width = (at / 9.26449 + 24.7) * constant(2 * math.pi * 1.019, at.dtype)
    return _finite(at, rate, width, power, count) if finite else _recursive(at, rate, width)


def _finite(at: Any, rate: Any, width: Any, order: int, count: Any) -> tuple[Any, Any]:
    t = constant(np.arange(count), at.dtype) / rate
    scale = 2 * width**order / (math.factorial(order - 1) * rate)
    shape = t ** (order - 1) * pnp.exp(-width * t)
    return shape * pnp.cos(constant(2 * math.pi, at.dtype) * at * t) * scale, pnp.ones(1, at.dtype)


def _recursive(at: Any, rate: Any, width: Any) -> tuple[Any, Any]:
    """Return four equal pairs of poles, and zeros that are those of an impulse response of order 4."""
    step = 1 / rate
    angle, decay = at * step * constant(2 * math.pi, at.dtype), pnp.exp(-width * step)
    turn = lambda k: ops.complex(pnp.cos(k * angle), pnp.sin(k * angle))
    cosine, sine = pnp.cos(angle), pnp.sin(angle)
    first, second = -2 * turn(2) * step, 2 * turn(1) * (decay * step)
    gain = pnp.ones((), first.dtype)
    for root in (3 - 2**1.5, 3 + 2**1.5):
        for sign in (-1, 1):
            gain = gain * (first + second * (cosine + sign * math.sqrt(root) * sine))
    gain = gain / (2 * (1 + turn(2)) * decay - 2 * turn(2) - 2 * decay**2) ** 4
    size = pnp.sqrt(ops.square(ops.real(gain)) + ops.square(ops.imag(gain)))
    k = constant(np.arange(5), at.dtype)
    signs = constant([1, -4, 6, -4, 1], at.dtype)
    b = signs * pnp.cos(k * angle) * decay**k * (step**4 / size)
    pair = pnp.stack([pnp.ones_like(decay), -2 * cosine * decay, decay**2])
    two = pnp.convolve(pair, pair)
    return b, pnp.convolve(two, two)
