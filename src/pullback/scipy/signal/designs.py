"""Designs of filters, with derivatives by their frequencies, ripples and attenuations.

The designs of known numbers are SciPy's. For others our operations move the zeros and poles of a prototype, an analog
filter of frequency 1: from low-pass to the wanted kind, and by the bilinear transform from an analog to a digital
filter (Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 7.1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, of_scipy, positive_int, promoted, real_number, vector
from pullback.scipy.signal.prototypes import check_decibels, prototype
from pullback.scipy.signal.representations import paired, polynomial
from pullback.scipy.signal.transformations import bandpass, bandstop, digital, highpass, lowpass
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval

__all__ = [
    "bessel", "butter", "cheby1", "cheby2", "ellip", "firwin", "iirfilter", "iirnotch", "iirpeak", "kaiser_atten",
    "kaiser_beta", "kaiserord",
]  # fmt: skip

_KINDS = {
    "band": "bandpass", "bandpass": "bandpass", "pass": "bandpass", "bp": "bandpass",
    "bs": "bandstop", "bandstop": "bandstop", "bands": "bandstop", "stop": "bandstop",
    "l": "lowpass", "low": "lowpass", "lowpass": "lowpass", "lp": "lowpass",
    "high": "highpass", "highpass": "highpass", "h": "highpass", "hp": "highpass",
}  # fmt: skip
_FAMILIES = {
    "butter": "butter", "butterworth": "butter", "cheby1": "cheby1", "chebyshev1": "cheby1", "chebyshevi": "cheby1",
    "cheby2": "cheby2", "chebyshev2": "cheby2", "chebyshevii": "cheby2", "ellip": "ellip", "elliptic": "ellip",
    "cauer": "ellip", "bessel": "bessel", "bessel_phase": "bessel", "bessel_delay": "bessel_delay",
    "bessel_mag": "bessel_mag",
}  # fmt: skip
_LABELS = {**{v: v for v in _FAMILIES.values()}, "bessel": "bessel_phase"}
"""SciPy's words for the families."""


def iirfilter(
    N: int, Wn: ArrayLike, rp: ArrayLike | None = None, rs: ArrayLike | None = None, btype: str = "band",
    analog: bool = False, ftype: str = "butter", output: str = "ba", fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design a recursive filter, with derivatives by its frequencies, its ripples and its attenuation.

    Args:
      N: the order, a positive int.
      Wn: the critical frequency, or two of them for a band: fractions of half the sampling frequency, between 0 and 1;
        in the units of ``fs``; or angular frequencies of analog filters.
      rp: the largest ripple in the band that passes, in decibels, for Chebyshev's first kind and elliptic filters.
      rs: the least attenuation in the band that is stopped, in decibels, for the second kind and elliptic filters.
      btype: ``"lowpass"``, ``"highpass"``, ``"bandpass"`` or ``"bandstop"``.
      analog: whether to design an analog filter.
      ftype: ``"butter"``, ``"cheby1"``, ``"cheby2"``, ``"ellip"`` or ``"bessel"``.
      output: ``"ba"`` for polynomials, ``"zpk"`` for zeros, poles and gain, ``"sos"`` for sections of second order.
      fs: the sampling frequency, a number.

    Traced numbers that make no sense have results of NaN.

    Returns:
      The pair ``(b, a)``, the triple ``(z, p, k)``, or an array (sections, 6). Which zero belongs to which pole in a
      section is constant.

    Raises:
      ArgumentError: numbers, frequencies or words that make no sense (a TypeError and a ValueError).
      UnsupportedArgumentError: sections of an analog filter of traced numbers (a NotImplementedError).

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.iirfilter(1, 0.25, btype="lowpass")))
    [0.293 0.293] [ 1.    -0.414]
    """
    return _design("iirfilter", N, Wn, rp, rs, btype, analog, ftype, output, fs)


def butter(
    N: int, Wn: ArrayLike, btype: str = "low", analog: bool = False, output: str = "ba", fs: ArrayLike | None = None
) -> Any:
    """Design Butterworth's filter, whose response is as flat as possible in the band that passes.

    Args:
      N, Wn, btype, analog, output, fs: as for :func:`iirfilter`.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`.

    Raises:
      ArgumentError, UnsupportedArgumentError: as for :func:`iirfilter`.

    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.butter(2, 0.25)))
    [0.098 0.195 0.098] [ 1.    -0.943  0.333]
    >>> print(grad(lambda cutoff: signal.butter(2, cutoff)[0][0])(0.25).round(3))
    0.638
    """
    return _design("butter", N, Wn, None, None, btype, analog, "butter", output, fs)


def cheby1(
    N: int, rp: ArrayLike, Wn: ArrayLike, btype: str = "low", analog: bool = False, output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design Chebyshev's filter of the first kind, with equal ripples in the band that passes.

    Args:
      N, rp, Wn, btype, analog, output, fs: as for :func:`iirfilter`.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`.

    Raises:
      ArgumentError, UnsupportedArgumentError: as for :func:`iirfilter`.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.cheby1(2, 1.0, 0.5)))
    [0.307 0.614 0.307] [1.    0.064 0.314]
    """
    return _design("cheby1", N, Wn, rp, None, btype, analog, "cheby1", output, fs)


def cheby2(
    N: int, rs: ArrayLike, Wn: ArrayLike, btype: str = "low", analog: bool = False, output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design Chebyshev's filter of the second kind, with equal ripples in the band that is stopped.

    Args:
      N, rs, Wn, btype, analog, output, fs: as for :func:`iirfilter`.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`.

    Raises:
      ArgumentError, UnsupportedArgumentError: as for :func:`iirfilter`.

    >>> from pullback.scipy import signal
    >>> print(signal.cheby2(2, 20.0, 0.5, output="sos").shape)
    (1, 6)
    """
    return _design("cheby2", N, Wn, None, rs, btype, analog, "cheby2", output, fs)


def ellip(
    N: int, rp: ArrayLike, rs: ArrayLike, Wn: ArrayLike, btype: str = "low", analog: bool = False, output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design an elliptic filter, with equal ripples in both bands and the shortest way between them.

    Args:
      N, rp, rs, Wn, btype, analog, output, fs: as for :func:`iirfilter`.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`.

    Raises:
      ArgumentError, UnsupportedArgumentError: as for :func:`iirfilter`.

    If ``rp`` equals ``rs`` there is no such way: the poles are on the edge of stability, as SciPy's.

    >>> from pullback.scipy import signal
    >>> print(signal.ellip(4, 1.0, 40.0, [0.2, 0.4], "band", output="sos").shape)
    (4, 6)
    """
    return _design("ellip", N, Wn, rp, rs, btype, analog, "ellip", output, fs)


def bessel(
    N: int, Wn: ArrayLike, btype: str = "low", analog: bool = False, output: str = "ba", norm: str = "phase",
    fs: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Design Bessel's filter, whose delay is as constant as possible in the band that passes.

    Args:
      N, Wn, btype, analog, output, fs: as for :func:`iirfilter`.
      norm: what happens at the critical frequency: ``"phase"`` for the middle of the phase, ``"delay"`` for the delay
        1 / Wn, ``"mag"`` for -3 decibels.

    Returns:
      The filter in the form ``output``, as for :func:`iirfilter`.

    Raises:
      ArgumentError, UnsupportedArgumentError: as for :func:`iirfilter`, and for an unknown ``norm``.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.bessel(1, 2.0, analog=True)))
    [2.] [1. 2.]
    """
    if not isinstance(norm, str) or norm not in ("phase", "delay", "mag"):
        raise ArgumentError(f"bessel: norm must be 'phase', 'delay' or 'mag', got {quote(norm)}")
    return _design("bessel", N, Wn, None, None, btype, analog, f"bessel_{norm}", output, fs)


def _word(name: str, what: str, value: Any, words: Any) -> Any:
    found = words.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ArgumentError(f"{name}: {what} must be one of {', '.join(map(repr, words))}, got {quote(value)}")
    return found


def _design(
    name: str, N: Any, Wn: Any, rp: Any, rs: Any, btype: Any, analog: Any, ftype: Any, output: Any, fs: Any
) -> Any:
    order, analog = positive_int(name, "N", N), flag(name, "analog", analog)
    kind, family = _word(name, "btype", btype, _KINDS), _word(name, "ftype", ftype, _FAMILIES)
    form = _word(name, "output", output, {v: v for v in ("ba", "zpk", "sos")})
    rp, rs, fs = (real_number(name, what, value) for what, value in (("rp", rp), ("rs", rs), ("fs", fs)))
    w = _frequencies(name, Wn, "Wn")
    size = 2 if kind in ("bandpass", "bandstop") else 1
    if w.shape != (size,):
        raise ShapeError(f"{name}: the frequencies Wn of a {kind} filter are {size}, got shape {w.shape}")
    if analog and fs is not None:
        raise ArgumentError(f"{name}: fs must be None for an analog filter, got {quote(fs)}")
    check_frequencies(name, "Wn", w, math.inf if analog else 2.0 if fs is None else fs)
    check_decibels(name, family, rp, rs)
    found = None if any(isinstance(x, Array) for x in (rp, rs, fs)) else on_host(w)
    if found is not None:
        at = found[0] if size == 2 else found[0].item()
        call = lambda: imported("scipy.signal").iirfilter(order, at, rp, rs, kind, analog, _LABELS[family], form, fs)
        return _as_arrays(of_scipy(name, call), w.dtype, form)
    if analog and form == "sos":
        raise UnsupportedArgumentError(f"{name}: sections of an analog filter need known numbers; use output='zpk'")
    w, *_ = promoted(name, w, *[x for x in (rp, rs, fs) if isinstance(x, Array)])
    w = w if fs is None else w * (2 / pnp.asarray(fs, w.dtype))
    w = _sensible(w, math.inf if analog else 1)
    z, p, k = _moved(prototype(name, order, family, rp, rs, w.dtype), w, kind, analog)
    if form == "zpk":
        return z, p, k
    return paired(z, p, k) if form == "sos" else ((polynomial(z) * k).real, polynomial(p).real)


def _frequencies(name: str, value: Any, what: str) -> Any:
    """Return frequencies as a vector, of known elements if they are known."""
    with ensure_compile_time_eval():
        return vector(name, value, f"the frequencies {what}")


def _sensible(w: Any, top: float) -> Any:
    """Return frequencies; all are NaN if they do not increase between 0 and ``top``, so that no result is a number."""
    good = pnp.all((w > 0) & (w < top))
    if w.shape[0] > 1:
        good = good & pnp.all(w[1:] > w[:-1])
    return pnp.where(good, w, constant(math.nan, w.dtype))


def check_frequencies(name: str, what: str, w: Any, fs: Any) -> None:
    """Raise if the frequencies of a filter are complex, or known and not increasing between 0 and half of ``fs``."""
    if dtypes.is_complex(w.dtype):
        raise ArgumentError(f"{name}: the frequencies {what} must be real numbers, got {dtypes.short_name(w.dtype)}")
    values, rate = known(w), known(fs)
    if values is None:
        return
    top = math.inf if rate is None else float(rate) / 2
    if not ((values > 0) & (values < top)).all():
        limit = "greater than 0" if math.isinf(top) else f"between 0 and half of the sampling frequency, {top:.6g}"
        raise ArgumentError(f"{name}: the frequencies {what} must be {limit}, got {values}")
    if not (np.diff(values) > 0).all():
        raise ArgumentError(f"{name}: the frequencies {what} must increase, got {values}")


def _as_arrays(found: Any, dtype: Any, form: str) -> Any:
    """Return SciPy's result in the precision of ``dtype``: real coefficients, complex roots, and a real gain."""
    if form == "sos":
        return constant(found, dtype)
    if form == "ba":
        return tuple(constant(np.atleast_1d(v), dtype) for v in found)
    wide = dtypes.to_complex(dtype)
    return constant(found[0], wide), constant(found[1], wide), constant(found[2], dtype)


def _moved(prototype: Any, w: Any, kind: str, analog: bool) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a filter of some kind, by those of a low-pass filter of frequency 1.

    ``w`` are its frequencies: fractions of half the sampling frequency, or angular frequencies if it is analog.
    """
    if not analog:
        w = pnp.tan(w * constant(math.pi / 2, w.dtype)) * constant(4, w.dtype)
    z, p, k = prototype
    if kind in ("lowpass", "highpass"):
        z, p, k = (lowpass if kind == "lowpass" else highpass)(z, p, k, w[0])
    else:
        z, p, k = (bandpass if kind == "bandpass" else bandstop)(z, p, k, pnp.sqrt(w[0] * w[1]), w[1] - w[0])
    return (z, p, k) if analog else digital(z, p, k, constant(2, w.dtype))


# Two poles -----------------------------------------------------------------------------------------------------------


def iirnotch(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """Design a filter of second order that stops one frequency.

    Args:
      w0: the frequency, between 0 and half of ``fs``.
      Q: its quotient by the width of the band that is stopped, at -3 decibels.
      fs: the sampling frequency; 2 by default, so that ``w0`` is a fraction of half of it.

    Returns:
      The coefficients ``(b, a)``, two vectors of three elements.

    Raises:
      ShapeError: arguments that are no numbers (a TypeError and a ValueError).
      ArgumentError: a frequency out of range (a TypeError and a ValueError).

    Source: Orfanidis 1996, *Introduction to Signal Processing*, section 11.3.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.iirnotch(0.5, 2.0)))
    [0.707 0.    0.707] [1.    0.    0.414]
    """
    gain, cosine, one = _resonance("iirnotch", w0, Q, fs)
    b = gain * pnp.stack([one, -2 * cosine, one])
    return b, pnp.stack([one, -2 * gain * cosine, 2 * gain - one])


def iirpeak(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """Design a filter of second order that passes one frequency.

    Args:
      w0: the frequency, between 0 and half of ``fs``.
      Q: its quotient by the width of the band that passes, at -3 decibels.
      fs: the sampling frequency; 2 by default, so that ``w0`` is a fraction of half of it.

    Returns:
      The coefficients ``(b, a)``, two vectors of three elements.

    Raises:
      ShapeError, ArgumentError: as for :func:`iirnotch`.

    Source: Orfanidis 1996, *Introduction to Signal Processing*, section 11.3.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(3) for v in signal.iirpeak(0.5, 2.0)))
    [ 0.293  0.    -0.293] [1.    0.    0.414]
    """
    gain, cosine, one = _resonance("iirpeak", w0, Q, fs)
    b = (one - gain) * pnp.stack([one, 0 * one, -one])
    return b, pnp.stack([one, -2 * gain * cosine, 2 * gain - one])


def _resonance(name: str, w0: Any, Q: Any, fs: Any) -> tuple[Any, Any, Any]:
    """Return the gain of a filter of second order, the cosine of its frequency, and 1."""
    with ensure_compile_time_eval():
        w0, Q, fs = promoted(name, w0, Q, fs)
    if w0.shape or Q.shape or fs.shape:
        raise ShapeError(f"{name}: w0, Q and fs must be numbers, got shapes {w0.shape}, {Q.shape} and {fs.shape}")
    if dtypes.is_complex(w0.dtype):
        raise ArgumentError(f"{name}: w0, Q and fs must be real numbers")
    with ensure_compile_time_eval():
        fraction = 2 * w0 / fs
    value = known(fraction)
    if value is not None and not 0 < value < 1:
        raise ArgumentError(f"{name}: w0 must be between 0 and half of fs, got {float(value)} of half of fs")
    angle = _sensible(pnp.reshape(fraction, (1,)), 1)[0] * constant(math.pi, w0.dtype)
    one = pnp.ones_like(angle)
    width = pnp.tan(angle / (2 * Q))
    return one / (one + width), pnp.cos(angle), one


# Filters of finite length --------------------------------------------------------------------------------------------


# long: half of it is its documentation
def firwin(
    numtaps: int, cutoff: ArrayLike, *, width: ArrayLike | None = None,
    window: str | tuple[Any, ...] = "hamming", pass_zero: bool | str = True, scale: bool = True,
    fs: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Design a filter of finite length by a window, with derivatives by its frequencies.

    Args:
      numtaps: the number of coefficients, a positive int; odd if half of the sampling frequency passes.
      cutoff: the frequencies where bands begin or end, increasing, fractions of half of ``fs``, or in its units.
      width: the width of the way between bands; then the window is Kaiser's, of the parameter that has this width.
      window: the name of a window, with its parameters in a tuple if it has any.
      pass_zero: whether frequency 0 passes; or ``"lowpass"``, ``"highpass"``, ``"bandpass"`` or ``"bandstop"``.
      scale: whether the response is 1 in the middle of the first band that passes.
      fs: the sampling frequency, a number; 2 by default.

    Returns:
      The coefficients, a vector.

    Raises:
      ArgumentError: numbers, frequencies or words that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.firwin(3, 0.5).round(3))
    [0.046 0.908 0.046]
    """
    name = "firwin"
    taps, scaled = positive_int(name, "numtaps", numtaps), flag(name, "scale", scale)
    rate = 2.0 if fs is None else real_number(name, "fs", fs)
    wide = real_number(name, "width", width)
    edges = _frequencies(name, cutoff, "cutoff")
    if not isinstance(window, (str, tuple)):
        raise ArgumentError(f"{name}: window must be a name, or a tuple of a name and parameters, got {quote(window)}")
    if not isinstance(pass_zero, str):
        pass_zero = flag(name, "pass_zero", pass_zero)
    check_frequencies(name, "cutoff", edges, rate)
    host = imported("scipy.signal")
    numbers = [x for x in (rate, wide) if isinstance(x, Array)]
    found = None if numbers else on_host(edges)
    if found is not None:
        at = found[0] if edges.shape[0] > 1 else found[0].item()
        options = {"width": wide, "window": window, "pass_zero": pass_zero, "scale": scaled, "fs": rate}
        return constant(of_scipy(name, lambda: host.firwin(taps, at, **options)), edges.dtype)
    # Any frequencies of this number show what else SciPy refuses.
    count = edges.shape[0]
    at = np.arange(1, count + 1) / (count + 1) if count > 1 else 0.5
    shape = window if wide is None else "boxcar"
    of_scipy(name, lambda: host.firwin(taps, at, window=shape, pass_zero=pass_zero, scale=scaled))
    edges, *_ = promoted(name, edges, *numbers)
    per_half = 2 / pnp.asarray(rate, edges.dtype)
    if wide is None:
        values: Any = constant(host.get_window(window, taps, fftbins=False), edges.dtype)
    else:
        values = _kaiser(taps, pnp.asarray(wide, edges.dtype) * per_half)
    starts = {"lowpass": True, "bandstop": True, "highpass": False, "bandpass": False}
    edges = _sensible(edges * per_half, 1)
    return _by_window(values, edges, starts.get(pass_zero, pass_zero), scaled)  # type: ignore[arg-type]


def _kaiser(taps: int, width: Any) -> Any:
    """Return Kaiser's window whose way between bands has a width, a fraction of half of the sampling frequency.

    Source: Kaiser and Schafer 1980, "On the use of the I0-sinh window for spectrum analysis".
    """
    attenuation = width * (2.285 * math.pi * (taps - 1)) + 7.95
    over = attenuation - 21
    some = pnp.where(over > 0, over, 1)
    middle = 0.5842 * some**0.4 + 0.07886 * some
    low = pnp.where(over > 0, middle, 0)
    return pnp.kaiser(taps, pnp.where(attenuation > 50, 0.1102 * (attenuation - 8.7), low))


def _by_window(window: Any, edges: Any, zero: bool, scaled: bool) -> Any:
    """Return the coefficients of a filter whose bands begin and end at ``edges``; the first begins at 0 if ``zero``."""
    dtype, count = edges.dtype, window.shape[0]
    ends = (edges.shape[0] % 2 == 1) != zero
    limits = [*([constant(0, dtype)] if zero else []), *(edges[i] for i in range(edges.shape[0]))]
    limits += [constant(1, dtype)] if ends else []
    at = constant(np.arange(count) - (count - 1) / 2, dtype)
    ideal: Any = pnp.zeros_like(window)
    for low, high in zip(limits[::2], limits[1::2], strict=True):
        ideal = ideal + high * pnp.sinc(high * at) - low * pnp.sinc(low * at)
    h = ideal * window
    if not scaled:
        return h
    middle = limits[0] if zero else limits[1] if ends and len(limits) == 2 else (limits[0] + limits[1]) / 2
    return h / pnp.sum(h * pnp.cos(constant(math.pi, dtype) * at * middle))


# Kaiser's rules ------------------------------------------------------------------------------------------------------


def _given(name: str, what: str, value: Any) -> Any:
    x = real_number(name, what, value)
    if x is None:
        raise ArgumentError(f"{name}: {what} must be a real number, got None")
    return promoted(name, x)[0]


def kaiser_beta(a: ArrayLike) -> Array:
    """Return the ``beta`` of Kaiser's window for a wanted attenuation.

    Args:
      a: the attenuation in the band that is stopped, in decibels, a number.

    Returns:
      A float: 0 up to 21 decibels, ``0.1102 (a - 8.7)`` above 50, and ``0.5842 (a - 21)**0.4 + 0.07886 (a - 21)``
      between.

    Raises:
      ArgumentError: no real number (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 7.5.3.

    >>> from pullback.scipy import signal
    >>> print(signal.kaiser_beta(65.0).round(3))
    6.204
    """
    x = _given("kaiser_beta", "a", a)
    above = pnp.where(x > 21, x - 21, 1)
    between = 0.5842 * above**0.4 + 0.07886 * above
    return pnp.where(x > 50, 0.1102 * (x - 8.7), pnp.where(x > 21, between, 0))


def kaiser_atten(numtaps: int, width: ArrayLike) -> Array:
    """Return the attenuation that a filter with Kaiser's window has.

    Args:
      numtaps: the number of coefficients, an int.
      width: the width of the transition between bands, as a part of half the sampling frequency.

    Returns:
      A float: ``2.285 (numtaps - 1) pi width + 7.95`` decibels.

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).

    Source: as for :func:`kaiser_beta`.

    >>> from pullback.scipy import signal
    >>> print(signal.kaiser_atten(211, 0.0375).round(2))
    64.48
    """
    count = positive_int("kaiser_atten", "numtaps", numtaps)
    return 2.285 * (count - 1) * math.pi * _given("kaiser_atten", "width", width) + 7.95


def kaiserord(ripple: ArrayLike, width: ArrayLike) -> tuple[int, Array]:
    """Return the number of coefficients and the ``beta`` of Kaiser's window for a wanted filter.

    Args:
      ripple: the largest deviation from the wanted response in all bands, in decibels, at least 8; a known number.
      width: the width of the transition between bands, as a part of half the sampling frequency, a known number.

    Returns:
      An int and a float.

    Raises:
      ArgumentError: traced numbers, or ones that make no sense (a TypeError and a ValueError).

    Source: as for :func:`kaiser_beta`.

    >>> from pullback.scipy import signal
    >>> numtaps, beta = signal.kaiserord(65.0, 0.0375)
    >>> print(numtaps, beta.round(3))
    213 6.204
    """
    values = [known(_given("kaiserord", what, v)) for what, v in (("ripple", ripple), ("width", width))]
    if any(v is None for v in values):
        raise ArgumentError("kaiserord: ripple and width must be known, because the number of coefficients is static")
    decibels, wide = abs(float(values[0])), float(values[1])
    if decibels < 8 or not wide > 0:
        raise ArgumentError(
            f"kaiserord: ripple must be at least 8 decibels and width positive, got {decibels} and {wide}"
        )
    return math.ceil((decibels - 7.95) / 2.285 / (math.pi * wide) + 1), kaiser_beta(
        abs(_given("kaiserord", "ripple", ripple))
    )
