"""From a low-pass filter of frequency 1 to others, and from analog to digital filters, with derivatives by all numbers.

Each puts a quotient of polynomials of ``s`` in the place of ``s``. The coefficients of the new filter are sums of
products of the old ones (Parks and Burrus 1987, *Digital Filter Design*, section 7.3.4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import constant, promoted, vector
from pullback.scipy.signal.state_space import normalize

__all__ = [
    "bilinear", "bilinear_zpk", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk", "lp2hp", "lp2hp_zpk", "lp2lp", "lp2lp_zpk",
]  # fmt: skip

# Zeros and poles -----------------------------------------------------------------------------------------------------


def lowpass(z: Any, p: Any, k: Any, wo: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a low-pass filter of another frequency."""
    at = wo.astype(z.dtype)
    return z * at, p * at, k * wo ** (p.shape[0] - z.shape[0])


def highpass(z: Any, p: Any, k: Any, wo: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a high-pass filter."""
    at = wo.astype(z.dtype)
    zeros = pnp.zeros(p.shape[0] - z.shape[0], z.dtype)
    return slicing.concatenate([at / z, zeros], 0), at / p, k * _gain(z, p)


def bandpass(z: Any, p: Any, k: Any, wo: Any, bw: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a filter that passes a band of a width."""
    degree = p.shape[0] - z.shape[0]
    half = (bw * constant(0.5, bw.dtype)).astype(z.dtype)
    z, p = (_split(v * half, wo) for v in (z, p))
    return slicing.concatenate([z, pnp.zeros(degree, z.dtype)], 0), p, k * bw**degree


def bandstop(z: Any, p: Any, k: Any, wo: Any, bw: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a filter that stops a band of a width."""
    degree = p.shape[0] - z.shape[0]
    half = (bw * constant(0.5, bw.dtype)).astype(z.dtype)
    gain = k * _gain(z, p)
    z, p = (_split(half / v, wo) for v in (z, p))
    centre = constant(np.repeat([1j, -1j], degree), z.dtype) * wo.astype(z.dtype)
    return slicing.concatenate([z, centre], 0), p, gain


def digital(z: Any, p: Any, k: Any, fs: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, poles and gain of a digital filter for those of an analog one, by the bilinear transform."""
    twice = (2 * fs).astype(z.dtype)
    scale = pnp.prod(twice - z) / pnp.prod(twice - p)
    gain = k * pnp.real(scale)
    ends = constant(-np.ones(p.shape[0] - z.shape[0]), z.dtype)
    z, p = ((twice + v) / (twice - v) for v in (z, p))
    return slicing.concatenate([z, ends], 0), p, gain


def _gain(z: Any, p: Any) -> Any:
    return pnp.real(pnp.prod(-z) / pnp.prod(-p))


def _split(roots: Any, wo: Any) -> Any:
    """Return the two roots of a band, complex numbers, for each ``roots``, which are their means."""
    if not dtypes.is_complex(roots.dtype):  # now: a quotient of real numbers has another sign of zero, as in SciPy
        roots = roots.astype(dtypes.to_complex(roots.dtype))
    turn = pnp.sqrt(ops.square(roots) - ops.square(wo).astype(roots.dtype))
    return slicing.concatenate([roots + turn, roots - turn], 0)


def _checked(name: str, z: Any, p: Any, k: Any, *numbers: Any) -> list[Any]:
    """Return zeros and poles of one dtype, and numbers of its real dtype."""
    none = lambda x: np.zeros(0, np.int8) if isinstance(x, (list, tuple)) and not x else x
    z, p, *rest = promoted(name, none(z), none(p), k, *numbers)
    if len(z.shape) != 1 or len(p.shape) != 1 or any(x.shape for x in rest):
        raise ShapeError(
            f"{name}: the zeros and poles must be vectors, and the gain and frequencies numbers, got shapes "
            f"{', '.join(str(x.shape) for x in (z, p, *rest))}"
        )
    if z.shape[0] > p.shape[0]:
        raise ArgumentError(f"{name}: a filter has at most as many zeros as poles, got {z.shape[0]} and {p.shape[0]}")
    real = [ops.real(x) if dtypes.is_complex(x.dtype) else x for x in rest]
    return [z, p, *real]


def lp2lp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array, Array]:
    """Return an analog low-pass filter of another frequency, by its zeros, poles and gain.

    Args:
      z, p, k: the zeros and the poles, vectors, and the gain, a real number, of a filter of angular frequency 1.
      wo: the angular frequency, a number.

    Returns:
      The zeros, the poles and the gain.

    Raises:
      ShapeError: roots that are no vectors, or numbers that are none (a TypeError and a ValueError).
      ArgumentError: more zeros than poles (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2lp_zpk([], [-1.0], 1.0, 3.0))
    [] [-3.] 3.0
    """
    return lowpass(*_checked("lp2lp_zpk", z, p, k, wo))


def lp2hp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array, Array]:
    """Return an analog high-pass filter for a low-pass filter, by its zeros, poles and gain.

    Args:
      z, p, k, wo: as for :func:`lp2lp_zpk`.

    Returns:
      The zeros, the poles and the gain.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp_zpk`.

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2hp_zpk([], [-1.0], 1.0, 3.0))
    [0.] [-3.] 1.0
    """
    return highpass(*_checked("lp2hp_zpk", z, p, k, wo))


def lp2bp_zpk(
    z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
) -> tuple[Array, Array, Array]:
    """Return an analog band-pass filter for a low-pass filter, by its zeros, poles and gain.

    Args:
      z, p, k: as for :func:`lp2lp_zpk`.
      wo, bw: the angular frequency of the middle of the band, and the width of the band, numbers.

    Returns:
      The zeros and the poles, complex numbers, two for each, and the gain.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp_zpk`.

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2bp_zpk([], [-1.0], 1.0, 3.0, 10.0))
    [0.+0.j] [-1.+0.j -9.+0.j] 10.0
    """
    return bandpass(*_checked("lp2bp_zpk", z, p, k, wo, bw))


def lp2bs_zpk(
    z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
) -> tuple[Array, Array, Array]:
    """Return an analog band-stop filter for a low-pass filter, by its zeros, poles and gain.

    Args:
      z, p, k, wo, bw: as for :func:`lp2bp_zpk`.

    Returns:
      The zeros and the poles, complex numbers, two for each, and the gain.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp_zpk`.

    >>> from pullback.scipy import signal
    >>> z, p, k = signal.lp2bs_zpk([], [-1.0], 1.0, 3.0, 10.0)
    >>> print(z, p.real, k)
    [0.+3.j 0.-3.j] [-1. -9.] 1.0
    """
    return bandstop(*_checked("lp2bs_zpk", z, p, k, wo, bw))


def bilinear_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, fs: ArrayLike) -> tuple[Array, Array, Array]:
    """Return a digital filter for an analog one by the bilinear transform, by its zeros, poles and gain.

    Args:
      z, p, k: the zeros and the poles, vectors, and the gain, a real number.
      fs: the sampling frequency, a positive number.

    Returns:
      The zeros, as many as poles, the poles and the gain.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp_zpk`; a frequency that is not positive.

    >>> from pullback.scipy import signal
    >>> print(*signal.bilinear_zpk([], [-2.0], 2.0, 1.0))
    [-1.] [0.] 0.5
    """
    zeros, poles, gain, rate = _checked("bilinear_zpk", z, p, k, fs)
    _check_rate("bilinear_zpk", rate)
    return digital(zeros, poles, gain, rate)


def _check_rate(name: str, fs: Any) -> None:
    value = known(fs)
    if value is not None and not 0 < value.real < math.inf:
        raise ArgumentError(f"{name}: fs must be a positive number, got {value}")


# Polynomials ---------------------------------------------------------------------------------------------------------


def _polynomials(name: str, b: Any, a: Any, *numbers: Any) -> list[Any]:
    b, a, *rest = promoted(name, vector(name, b, "the coefficients b"), vector(name, a, "the coefficients a"), *numbers)
    if any(x.shape for x in rest):
        raise ShapeError(f"{name}: frequencies must be numbers, got shapes {[x.shape for x in rest]}")
    return [b, a, *rest]


def _powers(x: Any, exponents: Any) -> Any:
    """Return whole powers of a number, whose derivatives exist at zero too."""
    exponents = np.asarray(exponents)
    rows = [x ** int(k) for k in exponents.ravel()]
    return pnp.reshape(pnp.stack(rows), exponents.shape)


def lp2lp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return an analog low-pass filter of another frequency, by its polynomials.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first, of a filter of
        angular frequency 1.
      wo: the angular frequency, a number.

    Returns:
      The coefficients ``(b, a)``, as of :func:`normalize`.

    Raises:
      ShapeError: coefficients that are no vectors, or a frequency that is no number (a TypeError and a ValueError).
      ArgumentError: a denominator of zeros (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2lp([1.0], [1.0, 1.0], 3.0))
    [3.] [1. 3.]
    """
    top, bottom, at = _polynomials("lp2lp", b, a, wo)
    n, d = top.shape[0], bottom.shape[0]
    return normalize(top * _powers(at, np.arange(n) + d - n), bottom * _powers(at, np.arange(d)))


def lp2hp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return an analog high-pass filter for a low-pass filter, by its polynomials.

    Args:
      b, a, wo: as for :func:`lp2lp`.

    Returns:
      The coefficients ``(b, a)``, as of :func:`normalize`.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp`.

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2hp([1.0], [1.0, 1.0], 3.0))
    [1. 0.] [1. 3.]
    """
    top, bottom, at = _polynomials("lp2hp", b, a, wo)
    size = max(top.shape[0], bottom.shape[0])
    powers = _powers(at, np.arange(size))
    new = [pnp.pad(pnp.flip(v), (0, size - v.shape[0])) * powers for v in (top, bottom)]
    return normalize(new[0], new[1])


def _substituted(taps: Any, size: int, terms: Any, wo: Any, bw: Any) -> Any:
    """Return sums of terms ``(power of the old, power of the new, factor, power of wo**2, power of bw)``."""
    count = taps.shape[0]
    out: list[Any] = [pnp.zeros((), taps.dtype)] * size
    square = ops.square(wo)
    for old, new, factor, k, m in terms(count):
        out[size - 1 - new] = out[size - 1 - new] + taps[count - 1 - old] * factor * square**k * bw**m
    return pnp.stack(out)


def lp2bp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return an analog band-pass filter for a low-pass filter, by its polynomials.

    Args:
      b, a: as for :func:`lp2lp`.
      wo, bw: the angular frequency of the middle of the band, and the width of the band, numbers.

    Returns:
      The coefficients ``(b, a)``, as of :func:`normalize`.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp`.

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2bp([1.0], [1.0, 1.0], 3.0, 10.0))
    [10.  0.] [ 1. 10.  9.]
    """
    top, bottom, middle, width = _polynomials("lp2bp", b, a, wo, bw)
    most = max(top.shape[0], bottom.shape[0]) - 1
    terms = lambda n: [(i, most - i + 2 * k, math.comb(i, k), i - k, -i) for i in range(n) for k in range(i + 1)]
    new = [_substituted(v, v.shape[0] + most, terms, middle, width) for v in (top, bottom)]
    return normalize(new[0], new[1])


def lp2bs(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return an analog band-stop filter for a low-pass filter, by its polynomials.

    Args:
      b, a, wo, bw: as for :func:`lp2bp`.

    Returns:
      The coefficients ``(b, a)``, as of :func:`normalize`.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp`.

    >>> from pullback.scipy import signal
    >>> print(*signal.lp2bs([1.0], [1.0, 1.0], 3.0, 10.0))
    [1. 0. 9.] [ 1. 10.  9.]
    """
    top, bottom, middle, width = _polynomials("lp2bs", b, a, wo, bw)
    most = max(top.shape[0], bottom.shape[0]) - 1
    terms = lambda n: [
        (i, i + 2 * k, math.comb(most - i, k), most - i - k, i) for i in range(n) for k in range(most - i + 1)
    ]
    new = [_substituted(v, 2 * most + 1, terms, middle, width) for v in (top, bottom)]
    return normalize(new[0], new[1])


def bilinear(b: ArrayLike, a: ArrayLike, fs: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return a digital filter for an analog one by the bilinear transform, by its polynomials.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first.
      fs: the sampling frequency, a positive number.

    Returns:
      The coefficients ``(b, a)``, as of :func:`normalize`.

    Raises:
      ShapeError, ArgumentError: as for :func:`lp2lp`; a frequency that is not positive.

    >>> from pullback.scipy import signal
    >>> print(*signal.bilinear([2.0], [1.0, 2.0], 1.0))
    [0.5 0.5] [1. 0.]
    """
    *taps, rate = _polynomials("bilinear", b, a, fs)
    _check_rate("bilinear", rate)
    taps = [_without_zeros(v) for v in taps]
    size = max(v.shape[0] for v in taps)
    # Half of the powers in the numerator and half in the denominator keep them in range.
    scales = _powers(pnp.sqrt(2 * rate), 2 * np.arange(size) - (size - 1))
    less, more = np.array([1.0, -1.0]), np.array([1.0, 1.0])
    columns = [np.convolve(_power(less, i), _power(more, size - 1 - i)) for i in range(size)]
    matrix = constant(np.stack(columns, 1), rate.dtype)
    new = [matrix[:, : v.shape[0]] @ (pnp.flip(v) * scales[: v.shape[0]]) for v in taps]
    return normalize(new[0], new[1])


def _without_zeros(taps: Any) -> Any:
    """Return coefficients without zeros at the beginning, if they are known; at least one is left."""
    values = known(taps)
    if values is None:
        return taps
    there = np.flatnonzero(values)
    return taps[int(there[0]) if there.size else taps.shape[0] - 1 :]


def _power(taps: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Return the coefficients of a whole power of a polynomial."""
    out = np.ones(1)
    for _ in range(n):
        out = np.convolve(out, taps)
    return out
