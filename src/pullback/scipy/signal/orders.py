"""The least orders of recursive filters that reach given attenuations, and designs by attenuations.

Orders are ints, so the specification must be known. Critical frequencies have derivatives by the specification.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, known_or_traced, of_scipy, promoted, real_number, vector
from pullback.scipy.signal.designs import check_frequencies, iirfilter
from pullback.scipy.special import ellipk, ellipkm1

__all__ = ["band_stop_obj", "buttord", "cheb1ord", "cheb2ord", "ellipord", "iirdesign"]


def _order(name: str, wp: Any, ws: Any, gpass: Any, gstop: Any, analog: Any, fs: Any) -> tuple[int, Any]:
    """Return SciPy's order, and the critical frequencies: SciPy's, or with derivatives."""
    analog = flag(name, "analog", analog)
    rate = real_number(name, "fs", fs)
    edges = [vector(name, known_or_traced(name, w), f"the frequencies {what}") for w, what in ((wp, "wp"), (ws, "ws"))]
    decibels = [known_or_traced(name, x) for x in (gpass, gstop)]
    if edges[0].shape != edges[1].shape or edges[0].shape[0] > 2 or any(x.shape for x in decibels):
        raise ShapeError(
            f"{name}: wp and ws must both be one or two frequencies, and gpass and gstop numbers, got shapes "
            f"{[x.shape for x in (*edges, *decibels)]}"
        )
    given = [*edges, *decibels, *([] if rate is None else [known_or_traced(name, rate)])]
    for what, w in zip(("wp", "ws"), edges, strict=True):
        check_frequencies(name, what, w, math.inf if analog else 2.0 if rate is None else rate)
    values = [known(x) for x in given]
    if any(v is None for v in values):
        raise ConcretizationTypeError(
            f"{name}: the order is an int and depends on wp, ws, gpass, gstop and fs, which are traced; pass known "
            "numbers, or design a filter of a known order by iirfilter"
        )
    numbers = [v if v.ndim and v.shape[0] == 2 else v.item() for v in values]
    call = lambda: getattr(imported("scipy.signal"), name)(
        *numbers[:4], analog=analog, fs=numbers[4] if rate is not None else None
    )
    order, at = of_scipy(name, call)
    if on_host(*given) is not None:
        return int(order), constant(at, edges[0].dtype)
    p, s, ripple, attenuation, *rest = promoted(name, *given)
    slopes = _FREQUENCIES[name](_Specification(p, s, ripple, attenuation, rest, analog), int(order))
    # The values are SciPy's, whose search for the edges of a stopped band ends a little before the best ones.
    slopes = slopes if np.ndim(at) else slopes[0]
    return int(order), constant(at, slopes.dtype) + (slopes - stop_gradient(slopes))


class _Specification:
    """The bands of a filter as angular frequencies of an analog one, and its attenuations, as arrays."""

    def __init__(self, p: Any, s: Any, ripple: Any, attenuation: Any, rate: list[Any], analog: bool) -> None:
        self.analog, self.rate = analog, rate
        scale = 1 if not rate else 2 / rate[0]
        warped = lambda w: w if analog else pnp.tan(w * scale * constant(math.pi / 2, w.dtype))
        passed, stopped = warped(p), warped(s)
        first = float(known(p)[0]) < float(known(s)[0])
        self.kind = ("lowpass" if first else "highpass") if p.shape[0] == 1 else "bandstop" if first else "bandpass"
        if self.kind == "bandstop":
            # The order is least where both edges of the stopped band have the attenuation, or at the given edge.
            middle = stopped[0] * stopped[1]
            passed = pnp.stack([pnp.maximum(passed[0], middle / passed[1]), pnp.minimum(passed[1], middle / passed[0])])
        self.passed = passed
        power = lambda x: pnp.expm1(x * constant(math.log(10) / 10, x.dtype))
        self.power, self.quotient = power(ripple), power(attenuation) / power(ripple)

    def back(self, w: Any) -> Any:
        """Return frequencies in the units that were given."""
        w = w if self.analog else pnp.arctan(w) * constant(2 / math.pi, w.dtype)
        return w if not self.rate else w * self.rate[0] / 2

    def moved(self, factor: Any) -> Any:
        """Return the frequencies at which a low-pass filter of frequency 1 has the angular frequency ``factor``."""
        passed = self.passed
        if self.kind == "lowpass":
            return passed * factor
        if self.kind == "highpass":
            return passed / factor
        half = (passed[1] - passed[0]) * (factor if self.kind == "bandpass" else 1 / factor) / 2
        turn = pnp.sqrt(half**2 + passed[0] * passed[1])
        return pnp.stack([turn - half, turn + half])


def _of_butter(of: _Specification, order: int) -> Any:
    return of.back(of.moved(of.power ** (-1 / (2 * order)) if order else pnp.ones_like(of.power)))


def _of_ripples(of: _Specification, order: int) -> Any:
    return of.back(of.passed)


def _of_cheby2(of: _Specification, order: int) -> Any:
    return of.back(of.moved(pnp.cosh(pnp.arccosh(pnp.sqrt(of.quotient)) / order)))


_FREQUENCIES: dict[str, Any] = {
    "buttord": _of_butter, "cheb1ord": _of_ripples, "cheb2ord": _of_cheby2, "ellipord": _of_ripples,
}  # fmt: skip


def buttord(
    wp: ArrayLike, ws: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, analog: bool = False, fs: ArrayLike | None = None
) -> tuple[int, Array]:
    """Return the least order of Butterworth's filter that reaches given attenuations, and its critical frequencies.

    Args:
      wp, ws: the edges of the band that passes and of the band that is stopped, a number or two each, known: fractions
        of half the sampling frequency; in the units of ``fs``; or angular frequencies of analog filters.
      gpass: the largest attenuation in the band that passes, in decibels, a number.
      gstop: the least attenuation in the band that is stopped, in decibels, a number.
      analog: whether the filter is analog.
      fs: the sampling frequency, a number.

    Returns:
      An int, and the critical frequency, or two, for :func:`butter`.

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).
      ShapeError: another number of edges (a TypeError and a ValueError).
      ConcretizationTypeError: traced numbers (a TypeError).

    Source: Rabiner and Gold 1975, *Theory and Application of Digital Signal Processing*, section 4.4.

    >>> from pullback.scipy import signal
    >>> order, frequency = signal.buttord(0.2, 0.4, 3.0, 40.0)
    >>> print(order, frequency.round(3))
    6 0.2
    """
    return _order("buttord", wp, ws, gpass, gstop, analog, fs)


def cheb1ord(
    wp: ArrayLike, ws: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, analog: bool = False, fs: ArrayLike | None = None
) -> tuple[int, Array]:
    """Return the least order of Chebyshev's filter of the first kind, and its critical frequencies.

    Args:
      wp, ws, gpass, gstop, analog, fs: as for :func:`buttord`.

    Returns:
      An int, and the critical frequency, or two, for :func:`cheby1`.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`buttord`.

    >>> from pullback.scipy import signal
    >>> order, frequency = signal.cheb1ord(0.2, 0.4, 3.0, 40.0)
    >>> print(order, frequency.round(3))
    4 0.2
    """
    return _order("cheb1ord", wp, ws, gpass, gstop, analog, fs)


def cheb2ord(
    wp: ArrayLike, ws: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, analog: bool = False, fs: ArrayLike | None = None
) -> tuple[int, Array]:
    """Return the least order of Chebyshev's filter of the second kind, and its critical frequencies.

    Args:
      wp, ws, gpass, gstop, analog, fs: as for :func:`buttord`.

    Returns:
      An int, and the critical frequency, or two, for :func:`cheby2`.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`buttord`.

    >>> from pullback.scipy import signal
    >>> order, frequency = signal.cheb2ord(0.2, 0.4, 3.0, 40.0)
    >>> print(order, frequency.round(3))
    4 0.369
    """
    return _order("cheb2ord", wp, ws, gpass, gstop, analog, fs)


def ellipord(
    wp: ArrayLike, ws: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, analog: bool = False, fs: ArrayLike | None = None
) -> tuple[int, Array]:
    """Return the least order of an elliptic filter that reaches given attenuations, and its critical frequencies.

    Args:
      wp, ws, gpass, gstop, analog, fs: as for :func:`buttord`.

    Returns:
      An int, and the critical frequency, or two, for :func:`ellip`.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`buttord`.

    >>> from pullback.scipy import signal
    >>> order, frequency = signal.ellipord(0.2, 0.4, 3.0, 40.0)
    >>> print(order, frequency.round(3))
    3 0.2
    """
    return _order("ellipord", wp, ws, gpass, gstop, analog, fs)


def band_stop_obj(
    wp: ArrayLike, ind: int, passb: ArrayLike, stopb: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, type: str
) -> Array:
    """Return the order that an analog filter needs that stops a band, which is in general no integer.

    Args:
      wp: the new edge of the band that passes, a number.
      ind: which element of ``passb`` it replaces, 0 or 1.
      passb: the edges of the band that passes, a vector of 2 angular frequencies.
      stopb: the edges of the band that is stopped, a vector of 2 angular frequencies.
      gpass: the largest attenuation in the band that passes, in decibels, a number.
      gstop: the least attenuation in the band that is stopped, in decibels, a number.
      type: ``"butter"``, ``"cheby"`` or ``"ellip"``.

    Returns:
      The order, a number, with derivatives by all numbers. It is negative or NaN where the edge that decides is not in
      the band that is stopped.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: numbers or vectors of other shapes (a TypeError and a ValueError).

    Source: Rabiner and Gold 1975, *Theory and Application of Digital Signal Processing*, section 4.4.

    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> order = lambda wp: signal.band_stop_obj(wp, 1, [1.0, 5.0], [2.0, 3.0], 3.0, 30.0, "butter")
    >>> print(order(5.0).round(3), grad(order)(5.0).round(3))
    3.146 -1.432
    """
    name = "band_stop_obj"
    if not isinstance(type, str) or type not in ("butter", "cheby", "ellip"):
        raise ArgumentError(f"{name}: type must be 'butter', 'cheby' or 'ellip', got {quote(type)}")
    which = known_int(name, "ind", ind)
    if which not in (0, 1):
        raise ArgumentError(f"{name}: ind must be 0 or 1, got {which}")
    edge, passed, stopped, ripple, attenuation = promoted(name, wp, passb, stopb, gpass, gstop)
    if any(x.shape for x in (edge, ripple, attenuation)) or not passed.shape == stopped.shape == (2,):
        raise ShapeError(
            f"{name}: wp, gpass and gstop must be numbers, and passb and stopb two numbers each, got shapes "
            f"{', '.join(str(x.shape) for x in (edge, passed, stopped, ripple, attenuation))}"
        )
    if dtypes.is_complex(edge.dtype):
        raise ArgumentError(f"{name} takes real numbers, got {dtypes.short_name(edge.dtype)}")
    low, high = known(ripple), known(attenuation)
    if low is not None and high is not None and not 0 < low <= high:
        raise ArgumentError(f"{name}: gpass must be positive and at most gstop, got {low} and {high}")
    ends = (passed[0], edge) if which else (edge, passed[1])
    gap, middle = ends[0] - ends[1], ends[0] * ends[1]
    selectivity = pnp.min(pnp.abs(stopped * gap / (stopped**2 - middle)))
    power = lambda x: pnp.expm1(x * constant(math.log(10) / 10, x.dtype))
    quotient = power(attenuation) / power(ripple)
    if type == "butter":
        return pnp.log(quotient) / (2 * pnp.log(selectivity))
    if type == "cheby":
        return pnp.arccosh(pnp.sqrt(quotient)) / pnp.arccosh(selectivity)
    near, far = 1 / selectivity**2, 1 / quotient
    return ellipk(near) * ellipkm1(far) / (ellipkm1(near) * ellipk(far))


_ORDERS = {"butter": "buttord", "cheby1": "cheb1ord", "cheby2": "cheb2ord", "ellip": "ellipord"}
_NAMES = {
    **{name: name for name in _ORDERS}, "butterworth": "butter", "elliptic": "ellip", "cauer": "ellip",
    "chebyshev1": "cheby1", "chebyshevi": "cheby1", "chebyshev2": "cheby2", "chebyshevii": "cheby2",
}  # fmt: skip


def iirdesign(
    wp: ArrayLike, ws: ArrayLike, gpass: ArrayLike, gstop: ArrayLike, analog: bool = False, ftype: str = "ellip",
    output: str = "ba", fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design the recursive filter of the least order that reaches given attenuations.

    Args:
      wp, ws, gpass, gstop, analog, fs: as for :func:`buttord`; the edges say of which kind the filter is.
      ftype: ``"butter"``, ``"cheby1"``, ``"cheby2"`` or ``"ellip"``.
      output: as for :func:`iirfilter`.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`. The order is constant; the filter has derivatives.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError, ConcretizationTypeError: as for :func:`buttord`.

    >>> from pullback.scipy import signal
    >>> print(signal.iirdesign(0.2, 0.4, 3.0, 40.0, output="sos").shape)
    (2, 6)
    """
    name = "iirdesign"
    family = _NAMES.get(ftype.lower()) if isinstance(ftype, str) else None
    if family is None:
        raise ArgumentError(f"{name}: ftype must be one of {', '.join(map(repr, _NAMES))}, got {quote(ftype)}")
    edges = [np.atleast_1d(v) for v in (known(known_or_traced(name, w)) for w in (wp, ws)) if v is not None]
    if len(edges) == 2 and edges[0].shape == edges[1].shape == (2,):
        (p0, p1), (s0, s1) = edges
        if not ((s0 < p0 and p1 < s1) or (p0 < s0 and s1 < p1)):
            raise ArgumentError(
                f"{name}: the band that passes must be inside the one that is stopped, or around it, got wp {edges[0]} "
                f"and ws {edges[1]}"
            )
    try:
        order, at = _order(_ORDERS[family], wp, ws, gpass, gstop, analog, fs)
    except (ArgumentError, ShapeError, ConcretizationTypeError) as error:
        raise type(error)(f"{name}: {error}") from None
    first = bool(edges[0][0] < edges[1][0])
    kind = ("lowpass" if first else "highpass") if edges[0].shape[0] == 1 else "bandstop" if first else "bandpass"
    ripples = {"rp": gpass} if family in ("cheby1", "ellip") else {}
    stops = {"rs": gstop} if family in ("cheby2", "ellip") else {}
    return iirfilter(order, at, btype=kind, analog=analog, ftype=family, output=output, fs=fs, **ripples, **stops)
