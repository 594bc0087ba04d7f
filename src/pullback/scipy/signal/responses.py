"""Responses of filters at frequencies, with derivatives by coefficients, roots and frequencies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import on_host
from pullback.scipy.signal.arguments import constant, of_scipy, positive_int, promoted, vector

__all__ = ["findfreqs", "freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "group_delay", "sosfreqz"]

_TURN = 2 * math.pi


def _angles(name: str, worN: Any, whole: Any, fs: Any, nyquist: Any, like: Any) -> tuple[Any, Any]:
    """Return the frequencies of a digital filter in the units of ``fs``, and in radians for each element.

    A number stands for so many frequencies from 0 on.
    """
    whole, nyquist = flag(name, "whole", whole), flag(name, "include_nyquist", nyquist)
    real = dtypes.to_real(like.dtype)
    (rate,) = promoted(name, fs)
    if rate.shape:
        raise ShapeError(f"{name}: the sampling frequency fs must be a number, got shape {rate.shape}")
    rate = ops.convert_element_type(rate, real)
    scale = rate * constant(1 / _TURN, real)
    if worN is None or isinstance(worN, (int, np.integer)):
        count = 512 if worN is None else positive_int(name, "worN", int(worN))
        w = constant(np.linspace(0, _TURN if whole else math.pi, count, endpoint=nyquist and not whole), real)
        return w * scale, w
    given = ops.convert_element_type(vector(name, worN, "the frequencies worN"), real)
    return given, given / scale


def _turns(w: Any, count: int) -> Any:
    """Return ``exp(-1j w k)`` for the angles ``w`` and for k below ``count``, (angles, count)."""
    if count > _FEW:
        phases = -w[:, None] * constant(np.arange(count)[None], w.dtype)
        return pnp.exp(ops.complex(pnp.zeros_like(phases), phases))
    turn = pnp.exp(ops.complex(pnp.zeros_like(w), -w))
    powers = [pnp.ones_like(turn), turn]
    for k in range(2, count):
        powers.append(powers[k // 2] * powers[k - k // 2])
    return pnp.stack(powers[:count], -1)


_FEW = 16
"""The most powers of an exponential that are products of others, in half of the time and with hardly more rounding."""


def _complex(x: Any) -> Any:
    return x.astype(dtypes.to_complex(dtypes.to_real(x.dtype)))


# long: half of it is its documentation
def freqz(
    b: ArrayLike, a: ArrayLike = 1, worN: int | ArrayLike | None = 512, whole: bool = False, plot: None = None,
    fs: ArrayLike = _TURN, include_nyquist: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the response of a digital filter at frequencies.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors or numbers.
      worN: how many frequencies, at equal distances from 0 on, or the frequencies, a vector.
      whole: whether they end at the sampling frequency, instead of half of it.
      plot: must be None.
      fs: the sampling frequency, in radians for each element by default.
      include_nyquist: whether half of the sampling frequency is the last of them.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError: coefficients or frequencies that are no vectors (a TypeError and a ValueError).
      ArgumentError: a number of frequencies that is not positive (a TypeError and a ValueError).
      UnsupportedArgumentError: ``plot`` (a NotImplementedError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 5.1.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.freqz(jnp.array([0.5, 0.5]), worN=2)[1]).round(3))
    [1.    0.707]
    """
    if plot is not None:
        raise UnsupportedArgumentError(f"freqz: plot must be None, got {plot!r}; plot the results yourself")
    b, a = vector("freqz", b, "the coefficients b"), vector("freqz", a, "the coefficients a")
    b, a = promoted("freqz", b, a)
    shown, w = _angles("freqz", worN, whole, fs, include_nyquist, b)
    turns = _turns(w, max(b.shape[0], a.shape[0]))
    top = pnp.matmul(turns[:, : b.shape[0]], _complex(b))
    return shown, top / pnp.matmul(turns[:, : a.shape[0]], _complex(a))


def freqz_sos(
    sos: ArrayLike, worN: int | ArrayLike | None = 512, whole: bool = False, fs: ArrayLike = _TURN
) -> tuple[Array, Array]:
    """Return the response of a digital filter in sections at frequencies.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator.
      worN, whole, fs: as for :func:`freqz`.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError, ArgumentError: as for :func:`freqz`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.freqz_sos(jnp.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]), 2)[1]).round(3))
    [1.    0.707]
    """
    return _of_sections("freqz_sos", sos, worN, whole, fs)


def sosfreqz(
    sos: ArrayLike, worN: int | ArrayLike | None = 512, whole: bool = False, fs: ArrayLike = _TURN
) -> tuple[Array, Array]:
    """Return the response of a digital filter in sections at frequencies; the older name of :func:`freqz_sos`.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator.
      worN, whole, fs: as for :func:`freqz`.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError, ArgumentError: as for :func:`freqz`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.sosfreqz(jnp.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]), 2)[1]).round(3))
    [1.    0.707]
    """
    return _of_sections("sosfreqz", sos, worN, whole, fs)


def _of_sections(name: str, sos: Any, worN: Any, whole: Any, fs: Any) -> tuple[Any, Any]:
    (sos,) = promoted(name, sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"{name}: the sections sos must have shape (n, 6), n at least 1, got {sos.shape}")
    shown, w = _angles(name, worN, whole, fs, False, sos)
    turns, taps = _turns(w, 3), _complex(sos).T
    return shown, pnp.prod(pnp.matmul(turns, taps[:3]) / pnp.matmul(turns, taps[3:]), -1)


def freqz_zpk(
    z: ArrayLike, p: ArrayLike, k: ArrayLike, worN: int | ArrayLike | None = 512, whole: bool = False,
    fs: ArrayLike = _TURN,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the response of a digital filter of its zeros, poles and gain at frequencies.

    Args:
      z, p: the zeros and the poles, vectors.
      k: the gain, a number.
      worN, whole, fs: as for :func:`freqz`.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError, ArgumentError: as for :func:`freqz`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.freqz_zpk(jnp.array([-1.0]), jnp.array([0.0]), 0.5, 2)[1]).round(3))
    [1.    0.707]
    """
    z, p, k = _root_form("freqz_zpk", z, p, k)
    shown, w = _angles("freqz_zpk", worN, whole, fs, False, k)
    return shown, _by_roots(pnp.exp(ops.complex(pnp.zeros_like(w), w)), z, p, k)


def _root_form(name: str, z: Any, p: Any, k: Any) -> Any:
    none = lambda x: np.zeros(0, np.int8) if isinstance(x, (list, tuple)) and not x else x
    z, p, k = promoted(name, none(z), none(p), k)
    if len(z.shape) != 1 or len(p.shape) != 1 or k.shape:
        raise ShapeError(
            f"{name}: the zeros and poles must be vectors and the gain a number, got shapes {z.shape}, {p.shape} and "
            f"{k.shape}"
        )
    return z, p, k


def _by_roots(at: Any, z: Any, p: Any, k: Any) -> Any:
    top, bottom = (pnp.prod(at[:, None] - _complex(roots), -1) for roots in (z, p))
    return _complex(k) * top / bottom


# Analog filters ------------------------------------------------------------------------------------------------------


def _frequencies(name: str, worN: Any, like: Any, find: Any) -> Any:
    """Return the angular frequencies of an analog filter; a number stands for so many that ``find`` chooses."""
    real = dtypes.to_real(like.dtype)
    if worN is None or isinstance(worN, (int, np.integer)):
        count = 200 if worN is None else positive_int(name, "worN", int(worN))
        found = find(count)
        if found is None:
            raise ConcretizationTypeError(
                f"{name}: the frequencies are chosen by the poles, which are traced; pass the frequencies as worN"
            )
        return constant(found, real)
    return ops.convert_element_type(vector(name, worN, "the frequencies worN"), real)


def findfreqs(num: ArrayLike, den: ArrayLike, N: int, kind: str = "ba") -> Array:
    """Return angular frequencies at which the response of an analog filter is of interest: around its poles and zeros.

    Args:
      num, den: the coefficients of the numerator and of the denominator, or the zeros and the poles; known vectors.
      N: how many frequencies, a positive int.
      kind: ``"ba"`` for coefficients, ``"zp"`` for zeros and poles.

    Returns:
      The frequencies, a vector, at equal ratios; they are constant.

    Raises:
      ArgumentError: another word, or a number that is not positive (a TypeError and a ValueError).
      ConcretizationTypeError: traced or differentiated arrays (a TypeError).

    >>> from pullback.scipy import signal
    >>> print(signal.findfreqs([1.0], [1.0, 10.0], 3))
    [  1.  10. 100.]
    """
    name = "findfreqs"
    count = positive_int(name, "N", N)
    if not isinstance(kind, str) or kind not in ("ba", "zp"):
        raise ArgumentError(f"{name}: kind must be 'ba' or 'zp', got {quote(kind)}")
    none = lambda x: np.zeros(0, np.int8) if isinstance(x, (list, tuple)) and not x else x
    arrays = promoted(name, none(num), none(den))
    found = on_host(*arrays)
    if found is None:
        raise ConcretizationTypeError(f"{name}: the frequencies are constant and need known arrays, but one is traced")
    out = of_scipy(name, lambda: imported("scipy.signal").findfreqs(*found, count, kind=kind))
    return constant(out, dtypes.to_real(arrays[0].dtype))


def freqs(b: ArrayLike, a: ArrayLike, worN: int | ArrayLike | None = 200, plot: None = None) -> tuple[Array, Array]:
    """Return the response of an analog filter at angular frequencies.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first.
      worN: the frequencies, a vector; or how many to choose around the poles, of known coefficients.
      plot: must be None.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError: coefficients or frequencies that are no vectors (a TypeError and a ValueError).
      ConcretizationTypeError: traced coefficients without frequencies (a TypeError).
      UnsupportedArgumentError: ``plot`` (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.freqs(jnp.array([1.0]), jnp.array([1.0, 1.0]), jnp.array([0.0, 1.0]))[1]).round(3))
    [1.    0.707]
    """
    if plot is not None:
        raise UnsupportedArgumentError(f"freqs: plot must be None, got {plot!r}; plot the results yourself")
    b, a = vector("freqs", b, "the coefficients b"), vector("freqs", a, "the coefficients a")
    b, a = promoted("freqs", b, a)

    def find(count: int) -> Any:
        values = on_host(b, a)
        host = imported("scipy.signal")
        return None if values is None else of_scipy("freqs", lambda: host.findfreqs(*values, count))

    w = _frequencies("freqs", worN, b, find)
    s = ops.complex(pnp.zeros_like(w), w)
    top, bottom = (pnp.polyval(_complex(taps), s) for taps in (b, a))
    return w, top / bottom


def freqs_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, worN: int | ArrayLike | None = 200) -> tuple[Array, Array]:
    """Return the response of an analog filter of its zeros, poles and gain at angular frequencies.

    Args:
      z, p: the zeros and the poles, vectors.
      k: the gain, a number.
      worN: the frequencies, a vector; or how many to choose around the poles, of known ones.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ShapeError: roots or frequencies that are no vectors (a TypeError and a ValueError).
      ConcretizationTypeError: traced roots without frequencies (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.freqs_zpk([], jnp.array([-1.0]), 1.0, jnp.array([0.0, 1.0]))[1]).round(3))
    [1.    0.707]
    """
    z, p, k = _root_form("freqs_zpk", z, p, k)

    def find(count: int) -> Any:
        values = on_host(z, p, k)
        if values is None:
            return None
        host = imported("scipy.signal")
        return of_scipy("freqs_zpk", lambda: host.freqs_zpk(values[0], values[1], values[2].real.item(), count)[0])

    w = _frequencies("freqs_zpk", worN, k, find)
    return w, _by_roots(ops.complex(pnp.zeros_like(w), w), z, p, k)


def group_delay(
    system: tuple[ArrayLike, ArrayLike], w: int | ArrayLike | None = 512, whole: bool = False, fs: ArrayLike = _TURN
) -> tuple[Array, Array]:
    """Return by how many elements a digital filter delays the envelope of a wave, at frequencies.

    Args:
      system: the pair ``(b, a)`` of the coefficients of the numerator and of the denominator.
      w: the frequencies in the units of ``fs``, a vector; or their number, from 0 on.
      whole: whether these go to ``fs`` instead of half of it.
      fs: the sampling frequency, a number.

    Returns:
      The frequencies, and the delay at each: minus the derivative of the phase by the angular frequency; 0 where the
      response is zero, so that there is none.

    Raises:
      ArgumentError: a ``system`` that is no pair (a TypeError and a ValueError).
      ShapeError: coefficients or frequencies that do not fit (a TypeError and a ValueError).

    Source: Smith, *Introduction to Digital Filters*, "Numerical computation of group delay".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.group_delay((jnp.ones(5), jnp.ones(1)), 2)[1].round(3))
    [2. 2.]
    """
    name = "group_delay"
    if not isinstance(system, (tuple, list)) or len(system) != 2:
        raise ArgumentError(f"{name}: system must be a pair of coefficients (b, a), got {quote(system)}")
    b, a = (vector(name, x, f"the coefficients {what}") for x, what in zip(system, "ba", strict=True))
    b, a = promoted(name, b, a)
    shown, angles = _angles(name, w, whole, fs, False, b)
    turns = _turns(angles, max(b.shape[0], a.shape[0]))
    delays = [_delay(c, turns[:, : c.shape[0]]) for c in (b, a)]
    zero = delays[0][1] | delays[1][1]
    return shown, pnp.where(zero, 0, delays[0][0] - delays[1][0])


def _delay(c: Any, turns: Any) -> tuple[Any, Any]:
    """Return the group delay of a polynomial of ``exp(-1j w)``, whose powers are ``turns``, and where it is zero."""
    value = pnp.matmul(turns, _complex(c))
    slope = pnp.matmul(turns, _complex(c * constant(np.arange(c.shape[0]), dtypes.to_real(c.dtype))))
    square = ops.square(ops.real(value)) + ops.square(ops.imag(value))
    size = pnp.sum(pnp.abs(c)) * 4 * float(pnp.finfo(square.dtype).eps)
    zero = square <= size**2
    product = ops.real(slope) * ops.real(value) + ops.imag(slope) * ops.imag(value)
    return product / pnp.where(zero, 1, square), zero
