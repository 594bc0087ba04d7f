"""Designs of filters of finite length by wanted responses, with derivatives by frequencies, gains and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.linalg.special_matrices import hankel, toeplitz
from pullback.scipy.signal.arguments import (
    constant,
    of_scipy,
    positive_int,
    promoted,
    real_number,
    real_vectors,
    signal,
)
from pullback.scipy.signal.designs import firwin
from pullback.scipy.signal.windows import get_window

__all__ = ["firls", "firwin2", "firwin_2d", "minimum_phase"]


def firls(
    numtaps: int, bands: ArrayLike, desired: ArrayLike, *, weight: ArrayLike | None = None,
    fs: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Design a filter of finite length whose response is nearest to a wanted one in the least-squares sense.

    Args:
      numtaps: the number of coefficients, an odd positive int.
      bands: the first and the last frequency of each band, a vector or pairs, increasing: fractions of half the
        sampling frequency, or in the units of ``fs``. What is between bands does not matter.
      desired: the wanted gains at these frequencies, not negative; gains are linear between.
      weight: the weight of each band, a vector; ones by default.
      fs: the sampling frequency, a number; 2 by default.

    Returns:
      The coefficients, a symmetric vector, with derivatives by all numbers.

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).
      ShapeError: vectors that do not fit (a TypeError and a ValueError).

    Source: Selesnick 2005, "Linear-phase FIR filter design by least squares".

    >>> from pullback.scipy import signal
    >>> print(signal.firls(3, [0.0, 0.4, 0.6, 1.0], [1.0, 1.0, 0.0, 0.0]).round(3))
    [0.307 0.5   0.307]
    """
    name = "firls"
    count = positive_int(name, "numtaps", numtaps)
    if count % 2 == 0:
        raise ArgumentError(f"{name}: numtaps must be odd, got {count}")
    rate = real_number(name, "fs", 2.0 if fs is None else fs)
    given = {"bands": bands, "desired": desired, **({} if weight is None else {"weight": weight}), "fs": rate}
    edges, gains, *weights, per_second = real_vectors(name, **given)
    size = edges.shape[0]
    if size % 2 or not size or gains.shape[0] != size or (weights and weights[0].shape[0] != size // 2):
        raise ShapeError(
            f"{name}: bands must be pairs of frequencies, desired as many gains, and weight a number for each band, "
            f"got shapes {', '.join(str(x.shape) for x in (edges, gains, *weights))}"
        )
    _check_bands(name, known(edges), known(gains), known(per_second), [known(w) for w in weights])
    found = on_host(edges, gains, per_second, *weights)
    if found is not None:
        heavy = found[3] if weights else None
        call = lambda: imported("scipy.signal").firls(count, found[0], found[1], weight=heavy, fs=found[2].item())
        return constant(of_scipy(name, call), edges.dtype)
    pairs, ends = (pnp.reshape(x, (-1, 2)) for x in (edges * 2 / per_second, gains))
    return _least_squares(count, pairs, ends, weights[0] if weights else pnp.ones(size // 2, edges.dtype))


def _check_bands(name: str, edges: Any, gains: Any, rate: Any, weights: Any) -> None:
    """Raise if known bands overlap or are out of range, or if gains or weights are negative."""
    if edges is not None and rate is not None:
        inside = (edges >= 0).all() and (edges <= rate / 2).all()
        if not inside or not (np.diff(edges.reshape(-1, 2)) > 0).all() or not (np.diff(edges) >= 0).all():
            raise ArgumentError(f"{name}: bands must increase between 0 and half of fs, {rate[0] / 2}, got {edges}")
    for what, values in (("desired", gains), *(("weight", w) for w in weights)):
        if values is not None and (values < 0).any():
            raise ArgumentError(f"{name}: {what} must not be negative, got {values}")


def _least_squares(count: int, bands: Any, gains: Any, weight: Any) -> Any:
    """Return the coefficients whose cosines are nearest to gains that are linear in each band."""
    half, dtype = count // 2, bands.dtype
    k = constant(np.arange(count), dtype)[:, None, None]
    primitive = pnp.sinc(bands * k) * bands  # the integrals of cosines
    q = (primitive[..., 1] - primitive[..., 0]) @ weight
    matrix = toeplitz(q[: half + 1]) + hankel(q[: half + 1], q[half:])
    slope = (gains[:, 1:] - gains[:, :1]) / (bands[:, 1:] - bands[:, :1])
    start = gains[:, :1] - bands[:, :1] * slope
    sums = (slope * bands + start) * primitive[: half + 1]
    rest = constant(math.pi, dtype) * k[1 : half + 1]
    curved = [-(slope * bands * bands / 2)[None], slope * pnp.cos(rest * bands) / rest**2]
    sums = sums + pnp.concatenate(curved)
    a = pnp.linalg.solve(matrix, (sums[..., 1] - sums[..., 0]) @ weight)
    return pnp.concatenate([pnp.flip(a[1:]), 2 * a[:1], a[1:]])


def _kind(numtaps: int, antisymmetric: bool) -> int:
    """Return the type of a filter of linear phase, 1 to 4."""
    return (3 if antisymmetric else 1) + (numtaps % 2 == 0)


# long: half of it is its documentation
def firwin2(
    numtaps: int, freq: ArrayLike, gain: ArrayLike, *, nfreqs: int | None = None,
    window: str | tuple[Any, ...] | None = "hamming", antisymmetric: bool = False, fs: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Design a filter of finite length by a window, with given gains at given frequencies.

    Args:
      numtaps: the number of coefficients, a positive int.
      freq: the frequencies, a vector that does not decrease, from 0 to half of ``fs``; a frequency may be there twice,
        where the gain jumps.
      gain: the gains, a vector; linear between the frequencies.
      nfreqs: how many frequencies to interpolate; by default 1 more than a power of two that is not less than
        ``numtaps``.
      window: the name of a window, with its parameters in a tuple if it has any, or None for none.
      antisymmetric: whether the coefficients are antisymmetric.
      fs: the sampling frequency, a number; 2 by default.

    Returns:
      The coefficients, a vector, with derivatives by frequencies, gains and the window's parameters.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: vectors that do not fit (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 7.4.

    >>> from pullback.scipy import signal
    >>> print(signal.firwin2(5, [0.0, 0.5, 1.0], [1.0, 1.0, 0.0]).round(3))
    [-0.009  0.111  0.75   0.111 -0.009]
    """
    name = "firwin2"
    count, odd = positive_int(name, "numtaps", numtaps), flag(name, "antisymmetric", antisymmetric)
    rate = real_number(name, "fs", 2.0 if fs is None else fs)
    at, gains, per_second = real_vectors(name, freq=freq, gain=gain, fs=rate)
    if at.shape != gains.shape or at.shape[0] < 2:
        raise ShapeError(f"{name}: freq and gain must have the same size, got {at.shape[0]} and {gains.shape[0]}")
    points = 1 + 2 ** math.ceil(math.log2(count)) if nfreqs is None else known_int(name, "nfreqs", nfreqs)
    if points <= count:
        raise ArgumentError(f"{name}: nfreqs must be greater than numtaps, got {points} and {count}")
    values = [known(x) for x in (at, gains, per_second)]
    if all(v is not None for v in values):
        # SciPy checks the numbers, and computes the filter if they have no derivatives.
        call = lambda window: imported("scipy.signal").firwin2(
            count, *(v.astype(np.float64) for v in values[:2]), nfreqs=points, window=window, antisymmetric=odd,
            fs=float(values[2][0]),
        )  # fmt: skip
        fixed = on_host(at, gains, per_second) is not None and (window is None or isinstance(window, str))
        out = of_scipy(name, lambda: call(window if fixed else None))
        if fixed:
            return constant(out, at.dtype)
    at = at * (2 / per_second)
    if values[0] is not None:
        at = _separated(at, values[0])
    x = constant(np.linspace(0, 1, points), at.dtype)
    kind = _kind(count, odd)
    phase = -(count - 1) / 2 * math.pi * np.linspace(0, 1, points) + (math.pi / 2 if kind > 2 else 0)
    response = pnp.interp(x, at, gains) * constant(np.exp(1j * phase), dtypes.to_complex(at.dtype))
    out = pnp.fft.irfft(response)[:count]
    if window is not None:
        shape = get_window(window, count, fftbins=False)
        out, shape = promoted(name, out, shape)
        out = out * shape
    return out * constant(np.arange(count) != count // 2, out.dtype) if kind == 3 else out


def _separated(at: Any, values: Any) -> Any:
    """Return frequencies with those that are there twice moved apart by one rounding."""
    repeated = np.diff(values) == 0
    shift = np.zeros(len(values))
    shift[:-1] -= repeated
    shift[1:] += repeated
    return at + constant(shift * float(np.finfo(values.dtype).eps), at.dtype)


def firwin_2d(
    hsize: Sequence[int], window: Any, *, fc: ArrayLike | None = None, fs: ArrayLike = 2, circular: bool = False,
    pass_zero: bool | str = True, scale: bool = True,
) -> Array:  # fmt: skip
    """Design a filter of finite size for images by windows.

    Args:
      hsize: the numbers of rows and of columns, two ints.
      window: the windows along both axes, a sequence of two, as for :func:`firwin`; with ``circular`` one window.
      fc: the frequencies where bands begin or end, as for :func:`firwin`.
      fs: the sampling frequency, a number.
      circular: whether the filter depends on the distance from the middle alone.
      pass_zero, scale: have no effect, as in SciPy.

    Returns:
      The coefficients, a matrix, with derivatives by the frequencies.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.firwin_2d((3, 3), ("hamming", "hamming"), fc=0.5).round(3))
    [[0.002 0.042 0.002]
     [0.042 0.824 0.042]
     [0.002 0.042 0.002]]
    """
    name = "firwin_2d"
    if not isinstance(hsize, (tuple, list)) or len(hsize) != 2:
        raise ArgumentError(f"{name}: hsize must be two ints, got {quote(hsize)}")
    rows, columns = (positive_int(name, "hsize", n) for n in hsize)
    if fc is None:
        raise ArgumentError(f"{name}: fc must be frequencies, got None")
    if not flag(name, "circular", circular):
        if not isinstance(window, (tuple, list)) or len(window) != 2:
            raise ArgumentError(f"{name}: window must be two windows, got {quote(window)}")
        sides = [firwin(n, fc, window=w, fs=fs) for n, w in zip((rows, columns), window, strict=True)]
        return pnp.outer(sides[0], sides[1])
    size = 8 * max(rows, columns)
    profile = firwin(size, fc, window=window, fs=fs)
    x, y = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns))
    at = constant(np.hypot(x, y), profile.dtype)
    return pnp.interp(at, constant(np.linspace(0, 1, size), profile.dtype), profile)


def minimum_phase(h: ArrayLike, method: str = "homomorphic", n_fft: int | None = None, *, half: bool = True) -> Array:
    """Return a filter of minimum phase for a symmetric filter of finite length.

    Args:
      h: the coefficients, a symmetric vector of at least 3 real numbers.
      method: ``"homomorphic"``, for any symmetric filter; ``"hilbert"``, for filters of equal ripples.
      n_fft: the length of transforms, an int, at least that of ``h``; by default such a power of two that errors are
        small.
      half: whether the result has half of the coefficients and the square root of the magnitude of the response.

    Returns:
      The coefficients, a vector of ``(len(h) + 1) // 2`` elements, or of ``len(h)``.

    Raises:
      ShapeError: a filter that is no vector or too short (a TypeError and a ValueError).
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).

    Source: Damera-Venkata, Evans and McCaslin 2000, "Design of optimal minimum-phase digital FIR filters using discrete
    Hilbert transforms".

    >>> from pullback.scipy import signal
    >>> print(signal.minimum_phase([1.0, 2.5, 1.0], half=False).round(2))
    [2. 2. 0.5]
    """
    name = "minimum_phase"
    h = signal(name, h)
    half = flag(name, "half", half)
    if len(h.shape) != 1 or h.shape[0] <= 2 or dtypes.is_complex(h.dtype):
        raise ShapeError(f"{name} takes a vector of at least 3 real numbers, got {dtypes.short_name(h.dtype)}{h.shape}")
    if not isinstance(method, str) or method not in ("homomorphic", "hilbert"):
        raise ArgumentError(f"{name}: method must be 'homomorphic' or 'hilbert', got {quote(method)}")
    if method == "hilbert" and not half:
        raise ArgumentError(f"{name}: half must be True for the method 'hilbert'")
    count = h.shape[0]
    size = 2 ** math.ceil(math.log2(2 * (count - 1) / 0.01)) if n_fft is None else known_int(name, "n_fft", n_fft)
    if size < count:
        raise ArgumentError(f"{name}: n_fft must be at least the size of h, {count}, got {size}")
    out = _by_hilbert(h, size) if method == "hilbert" else _by_logarithms(h, size, 0.5 if half else 1.0)
    return out[: (count + 1) // 2 if half else count]


def _by_logarithms(h: Any, size: int, power: float) -> Any:
    """Return the filter whose logarithmic spectrum has no part at negative times."""
    magnitude = pnp.abs(pnp.fft.fft(h, size))
    least = pnp.min(pnp.where(magnitude > 0, magnitude, math.inf))
    cepstrum = ops.real(pnp.fft.ifft(pnp.log(magnitude + 1e-7 * least) * power))
    fold = np.zeros(size)
    fold[0], fold[1 : size // 2] = 1, 2
    if size % 2:
        fold[size // 2] = 1
    return ops.real(pnp.fft.ifft(pnp.exp(pnp.fft.fft(cepstrum * constant(fold, cepstrum.dtype)))))


def _by_hilbert(h: Any, size: int) -> Any:
    """Return the filter of the square root of the response, which is moved so that it is not negative."""
    angles = np.arange(size) * (2 * math.pi / size * (h.shape[0] // 2))
    response = ops.real(pnp.fft.fft(h, size) * constant(np.exp(1j * angles), dtypes.to_complex(h.dtype)))
    above, below = pnp.max(response) - 1, -pnp.min(response)
    scale = 4 / (pnp.sqrt(1 + above + below) + pnp.sqrt(1 - above + below)) ** 2
    lifted = (response + below) * scale
    # The square root is not differentiated where the least response is zero, which it is by definition.
    there = lifted > 0
    magnitude = pnp.where(there, pnp.sqrt(pnp.where(there, lifted, 1)), 0) + 1e-10
    signs = np.sign(size // 2 - np.arange(size)).astype(float)
    signs[0] = 0
    cepstrum = pnp.fft.ifft(pnp.log(magnitude)) * constant(signs, h.dtype)
    return ops.real(pnp.fft.ifft(magnitude * pnp.exp(pnp.fft.fft(cepstrum))))
