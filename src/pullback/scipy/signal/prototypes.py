"""Analog low-pass filters of frequency 1, with derivatives by their ripples and attenuations.

Those of known numbers are SciPy's. The others are the same formulas in our operations (Parks and Burrus 1987, *Digital
Filter Design*, sections 7.2 and 7.3; Orfanidis 2006, *Lecture Notes on Elliptic Filter Design*).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import constant, of_scipy, promoted, real_number

__all__ = ["besselap", "buttap", "cheb1ap", "cheb2ap", "ellipap"]

NEEDED = {"cheby1": ("rp",), "cheby2": ("rs",), "ellip": ("rp", "rs")}
"""The numbers of decibels that a family of filters needs."""


def check_decibels(name: str, family: str, rp: Any, rs: Any) -> None:
    """Raise if a number of decibels is missing, or is known and not positive."""
    for what, value in (("rp", rp), ("rs", rs)):
        needed = what in NEEDED.get(family, ())
        found = None if value is None else known(value)
        missing = needed and value is None
        if missing or (found is not None and not (0 < found < math.inf or (found == 0 and not needed))):
            raise ArgumentError(f"{name}: {what} must be a positive number of decibels, got {found}")
    if family == "ellip":
        ripple, attenuation = known(rp), known(rs)
        if ripple is not None and attenuation is not None and not ripple <= attenuation:
            raise ArgumentError(f"{name}: rp must be at most rs, got {ripple} and {attenuation} decibels")


def prototype(name: str, order: int, family: str, rp: Any, rs: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Return the zeros, the poles and the gain, of the precision of the real ``dtype``.

    ``rp`` and ``rs`` are floats where they are known, and arrays where they are traced or differentiated.
    """
    given = {"rp": rp, "rs": rs}
    numbers = [given[what] for what in NEEDED.get(family, ())]
    if any(isinstance(x, Array) for x in numbers):
        numbers = [ops.convert_element_type(pnp.asarray(x), dtype) for x in numbers]
        return _FORMULAS[family](order, *[_or_nan(x, (x > 0) & (x < math.inf)) for x in numbers])
    host = imported("scipy.signal")
    calls = {
        "butter": lambda: host.buttap(order), "cheby1": lambda: host.cheb1ap(order, rp),
        "cheby2": lambda: host.cheb2ap(order, rs), "ellip": lambda: host.ellipap(order, rp, rs),
        "bessel": lambda: host.besselap(order, "phase"), "bessel_delay": lambda: host.besselap(order, "delay"),
        "bessel_mag": lambda: host.besselap(order, "mag"),
    }  # fmt: skip
    z, p, k = of_scipy(name, calls[family])
    wide = dtypes.to_complex(dtype)
    return constant(np.atleast_1d(z), wide), constant(np.atleast_1d(p), wide), constant(k, dtype)


def _or_nan(x: Any, good: Any) -> Any:
    return pnp.where(good, x, constant(math.nan, x.dtype))


def _power_less_1(decibels: Any) -> Any:
    """Return ``10 ** (decibels / 10) - 1``."""
    return pnp.expm1(decibels * constant(math.log(10) / 10, decibels.dtype))


def gain_of(z: Any, p: Any) -> Any:
    """Return the quotient of the products of the negative poles and zeros, which is real."""
    return (pnp.prod(-p) / pnp.prod(-z)).real


def _angles(order: int) -> np.ndarray[Any, Any]:
    """Return the angles of the poles, between -pi / 2 and pi / 2."""
    return np.arange(1 - order, order, 2) * (math.pi / (2 * order))


def _none(like: Any) -> Any:
    return constant(np.zeros(0), dtypes.to_complex(like.dtype))


def _even_gain(order: int, k: Any, rp: Any) -> Any:
    """Return the gain of a filter of ripples: an even one begins at the bottom of a ripple."""
    return k if order % 2 else k * pnp.exp(rp * constant(-math.log(10) / 20, rp.dtype))


def _chebyshev1(order: int, rp: Any) -> tuple[Any, Any, Any]:
    width = pnp.arcsinh(1 / pnp.sqrt(_power_less_1(rp))) / order
    cosines, sines = (constant(f(_angles(order)), rp.dtype) for f in (np.cos, np.sin))
    p = -ops.complex(pnp.sinh(width) * cosines, pnp.cosh(width) * sines)
    z = _none(rp)
    return z, p, _even_gain(order, gain_of(z, p), rp)


def _chebyshev2(order: int, rs: Any) -> tuple[Any, Any, Any]:
    width = pnp.arcsinh(pnp.sqrt(_power_less_1(rs))) / order
    angles = _angles(order)
    cosines, sines = (constant(f(angles), rs.dtype) for f in (np.cos, np.sin))
    p = 1 / -ops.complex(pnp.sinh(width) * cosines, pnp.cosh(width) * sines)
    # The zero of the angle 0 is at infinity.
    away = np.abs(np.arange(1 - order, order, 2)) > 0
    z = constant(1j / np.sin(angles[away]), dtypes.to_complex(rs.dtype))
    return z, p, gain_of(z, p)


_TERMS = 8
"""So many terms of the series of the nome are right to double precision."""


def _modulus_of_degree(order: int, quarter: Any, other: Any) -> Any:
    """Return the parameter m whose quotient of quarter periods is that of another one, divided by the order.

    ``quarter`` and ``other`` are the quarter periods of the other one; m is a quotient of theta functions of the nome.
    """
    nome = pnp.exp(other / quarter * constant(-math.pi / order, quarter.dtype))
    k = np.arange(_TERMS)
    top = pnp.sum(nome ** constant(k * (k + 1), nome.dtype))
    bottom = 1 + 2 * pnp.sum(nome ** constant((k + 1) ** 2, nome.dtype))
    return 16 * nome * (top / bottom) ** 4


def _elliptic(order: int, rp: Any, rs: Any) -> tuple[Any, Any, Any]:
    elliptic = imported("pullback.scipy.special.elliptic")
    square = _power_less_1(rp)
    m1 = square / _power_less_1(rs)
    m1 = _or_nan(m1, m1 <= 1)  # where it is one SciPy's poles have no real part, and so have these
    if order == 1:  # the pole of Chebyshev's filter of the first kind, also where m1 is one
        pole = -pnp.sqrt(1 / (square + 0 * m1))
        return _none(pole), ops.complex(pole, pnp.zeros_like(pole))[None], -pole
    quarter, other = elliptic.ellipk(m1), elliptic.ellipkm1(m1)
    m = _modulus_of_degree(order, quarter, other)
    period = elliptic.ellipk(m)
    first = order % 2
    s, c, d, _ = elliptic.ellipj(period * constant(np.arange(1 - first, order, 2) / order, m.dtype), m)
    z = 1 / (pnp.sqrt(m) * s[first:])
    z = ops.complex(pnp.zeros_like(z), z)
    # The integral whose inverse is sc, at one over the ripple (DLMF 22.15.20 and 19.25.5).
    tangent = 1 / square
    sc = pnp.sqrt(tangent) * elliptic.elliprf(pnp.ones_like(m1), 1 + m1 * tangent, 1 + tangent)
    sv, cv, dv, _ = elliptic.ellipj(period * sc / (order * quarter), 1 - m)
    p = -ops.complex(c * d * (sv * cv), s * dv) / (1 - ops.square(d * sv))
    z, p = (slicing.concatenate([v, pnp.conj(v[start:])], 0) for v, start in ((z, 0), (p, first)))
    return z, p, _even_gain(order, gain_of(z, p), rp)


_FORMULAS: dict[str, Any] = {"cheby1": _chebyshev1, "cheby2": _chebyshev2, "ellip": _elliptic}


# Prototypes by their names -------------------------------------------------------------------------------------------


def _public(name: str, N: Any, family: str, rp: Any = None, rs: Any = None) -> tuple[Any, Any, Any]:
    order = known_int(name, "N", N)
    if order < 0:
        raise ArgumentError(f"{name}: N must not be negative, got {order}")
    rp, rs = (real_number(name, what, x) for what, x in (("rp", rp), ("rs", rs)))
    check_decibels(name, family, rp, rs)
    numbers = [x for x in (rp, rs) if isinstance(x, Array)]
    dtype = promoted(name, *numbers)[0].dtype if numbers else dtypes.default_float()
    if order:
        return prototype(name, order, family, rp, rs, dtype)
    none = constant(np.zeros(0), dtypes.to_complex(dtype))
    ripple = 0.0 if rp is None else rp
    return none, none, pnp.asarray(10.0 ** (pnp.asarray(ripple, dtype) * (-1 / 20)), dtype)


def buttap(N: int) -> tuple[Array, Array, Array]:
    """Return Butterworth's analog low-pass filter of angular frequency 1.

    Args:
      N: the order, an int that is not negative.

    Returns:
      The zeros, none, the poles, complex numbers, and the gain.

    Raises:
      ArgumentError: a negative order (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.buttap(2)[1].round(3))
    [-0.707+0.707j -0.707-0.707j]
    """
    return _public("buttap", N, "butter")


def cheb1ap(N: int, rp: ArrayLike) -> tuple[Array, Array, Array]:
    """Return Chebyshev's analog low-pass filter of the first kind of angular frequency 1.

    Args:
      N: the order, an int that is not negative.
      rp: the largest ripple in the band that passes, in decibels, a positive number.

    Returns:
      The zeros, none, the poles, complex numbers, and the gain, with derivatives by ``rp``.

    Raises:
      ArgumentError: a negative order, or numbers that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.cheb1ap(1, 1.0)[1].real.round(3))
    [-1.965]
    """
    return _public("cheb1ap", N, "cheby1", rp)


def cheb2ap(N: int, rs: ArrayLike) -> tuple[Array, Array, Array]:
    """Return Chebyshev's analog low-pass filter of the second kind of angular frequency 1.

    Args:
      N: the order, an int that is not negative.
      rs: the least attenuation in the band that is stopped, in decibels, a positive number.

    Returns:
      The zeros and the poles, complex numbers, and the gain, with derivatives by ``rs``.

    Raises:
      ArgumentError: a negative order, or numbers that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.cheb2ap(1, 20.0)[1].real.round(3))
    [-0.101]
    """
    return _public("cheb2ap", N, "cheby2", None, rs)


def ellipap(N: int, rp: ArrayLike, rs: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the elliptic analog low-pass filter of angular frequency 1.

    Args:
      N: the order, an int that is not negative.
      rp: the largest ripple in the band that passes, in decibels, a positive number.
      rs: the least attenuation in the band that is stopped, in decibels, a number that is not less.

    Returns:
      The zeros and the poles, complex numbers, and the gain, with derivatives by ``rp`` and ``rs``.

    Raises:
      ArgumentError: a negative order, or numbers that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.ellipap(2, 1.0, 40.0)[0].imag.round(2))
    [ 9.94 -9.94]
    """
    return _public("ellipap", N, "ellip", rp, rs)


def besselap(N: int, norm: str = "phase") -> tuple[Array, Array, Array]:
    """Return Bessel's analog low-pass filter.

    Args:
      N: the order, an int that is not negative.
      norm: what happens at angular frequency 1, as for :func:`bessel`.

    Returns:
      The zeros, none, the poles, complex numbers, and the gain.

    Raises:
      ArgumentError: a negative order, or an unknown word (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.besselap(1)[1].real)
    [-1.]
    """
    if not isinstance(norm, str) or norm not in ("phase", "delay", "mag"):
        raise ArgumentError(f"besselap: norm must be 'phase', 'delay' or 'mag', got {quote(norm)}")
    return _public("besselap", N, {"phase": "bessel"}.get(norm, f"bessel_{norm}"))
