"""The error function and its kin: normal probabilities, Dawson's, Fresnel's and Owen's integrals."""

from __future__ import annotations

import math

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.numpy import declare
from pullback.numpy.promotion import inexact_operand, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.special import error_functions as primitives
from pullback.primitives.special.log_incomplete import log_ndtr_p
from pullback.scipy.special.operands import apply, real_operand


def erf(x: ArrayLike) -> Array:
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape, from -1 to 1.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.erf(1.0):.4f}")
    0.8427
    """
    return ops.erf_p.bind(real_operand("erf", x))


def erfc(x: ArrayLike) -> Array:
    """``1 - erf(x)``, without cancellation.

    Errors are up to 6 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape, from 0 to 2.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.erfc(3.0):.4e}")
    2.2090e-05
    """
    return ops.erfc_p.bind(real_operand("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function.

    Compiled, errors next to -1 and 1 are up to 44 units in the last place in float32 and 1e5 in float64, and of the
    derivative 700 and 1e7; eager up to 3, and 50 (``docs/accuracy.md``).

    Args:
      x: an array of floats or integers from -1 to 1, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape: -inf at -1, inf at 1, and NaN outside.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.erfinv(0.5):.4f}")
    0.4769
    """
    return ops.erf_inv_p.bind(real_operand("erfinv", x))


def erfcinv(y: ArrayLike) -> Array:
    """Return the inverse of :func:`erfc`, with right digits where ``y`` is near 0 too.

    It is ``-ndtri(y / 2) / sqrt(2)``, by the quantile of the standard normal distribution (DLMF 7.17).

    Args:
      y: an array of real numbers from 0 to 2; integers are converted.

    Returns:
      An array of floats of the shape of ``y``: ``inf`` at 0, ``-inf`` at 2, NaN outside.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.erfcinv(0.5):.4f} {special.erfcinv(1e-30):.4f}")
    0.4769 8.1486
    """
    half = ops.mul(real_operand("erfcinv", y), 0.5)
    return ops.sub(0, ops.mul(strong(primitives.ndtri_p.bind(half)), math.sqrt(0.5)))  # 0 at 1, not -0


def ndtr(x: ArrayLike) -> Array:
    """The probability that a standard normal number is less than ``x``.

    Errors are up to 6 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape, from 0 to 1.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(special.ndtr(0.0))
    0.5
    """
    return ops.ndtr_p.bind(strong(real_operand("ndtr", x)))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of :func:`ndtr`, also where :func:`ndtr` underflows.

    Compiled it is -x²/2 plus the logarithm of half the scaled function erfcx below zero (DLMF 7.2.7).

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.
      series_order: without effect; in JAX the number of terms of an asymptotic series.

    Returns:
      An array of the float dtype of ``x``, and of its shape, at most 0.

    Raises:
      ArgumentError: ``series_order`` is not an integer from 0 to 30 (a ValueError).
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.log_ndtr(0.0):.4f} {special.log_ndtr(-100.0):.3f}")
    -0.6931 -5005.524
    """
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ArgumentError(f"log_ndtr: series_order must be an integer from 0 to 30, got {series_order!r}")
    return strong(log_ndtr_p.bind(real_operand("log_ndtr", x)))


def ndtri(p: ArrayLike) -> Array:
    """The quantile of the standard normal distribution: the inverse of :func:`ndtr`.

    Args:
      p: an array of probabilities, from 0 to 1; integers are converted.

    Returns:
      An array of floats; infinite at 0 and 1, NaN outside.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is algorithm AS 241 (Wichura, *Applied Statistics* 37, 1988).

    >>> from pullback.scipy import special
    >>> print(f"{special.ndtri(0.975):.4f} {special.ndtri(0.5):.1f}")
    1.9600 0.0
    """
    return strong(apply("ndtri", primitives.ndtri_p, p))


def erfcx(x: ArrayLike) -> Array:
    """``exp(x**2) * erfc(x)``, which does not overflow or underflow for positive ``x``.

    Errors are up to 5 units in the last place, of complex numbers 21 and of their derivative 80 (``docs/accuracy.md``).

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    Compiled it is an integral (DLMF 7.7.1); for complex numbers it is :func:`wofz` of ``i x``.

    >>> from pullback.scipy import special
    >>> print(f"{special.erfcx(0.0):.1f} {special.erfcx(30.0):.5f}")
    1.0 0.01880
    """
    x = inexact_operand("erfcx", x)
    return strong(primitives.wofz_p.bind(ops.mul(x, 1j)) if dtypes.is_complex(x.dtype) else primitives.erfcx_p.bind(x))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is the integral of a product in which nothing cancels, and from 7 on the asymptotic series DLMF 7.12.1.

    >>> from pullback.scipy import special
    >>> print(f"{special.dawsn(1.0):.4f}")
    0.5381
    """
    return strong(apply("dawsn", primitives.dawsn_p, x))


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function ``exp(-z**2) * erfc(-i z)``, with Voigt's profile and its dispersion as components.

    Errors are up to 16 units in the last place, of the derivative 40 (``docs/accuracy.md``).

    Args:
      z: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of complex numbers.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    It is holomorphic: its derivative is ``2i / sqrt(pi) - 2 z w(z)``. Compiled it is the trapezoidal rule with the
    correction for poles (Al Azah and Chandler-Wilde, *SIAM Journal on Numerical Analysis* 59, 2021).

    >>> from pullback.scipy import special
    >>> print(f"{special.wofz(1j).real:.4f}")
    0.4276
    """
    z = inexact_operand("wofz", z)
    wide = np.result_type(z.dtype if z.dtype.kind in "fc" else np.float32, np.complex64)
    return strong(primitives.wofz_p.bind(z if z.dtype == wide else ops.convert_element_type(z, wide, z.weak_type)))


def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike) -> Array:
    """Voigt's profile: the density of the sum of a normal variable and one with Cauchy's distribution.

    Args:
      x: an array of floats; integers are converted.
      sigma: an array that broadcasts against ``x``: the standard deviation of the normal variable; at 0 the profile is
        Cauchy's density.
      gamma: an array that broadcasts against the others: the half width of Cauchy's density at half its maximum; at 0
        the profile is the normal density.

    Returns:
      An array of floats, of the broadcast shape; where both widths are 0 it is 0, and inf at x = 0.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    It is the real part of :func:`wofz` of ``(x + i gamma) / (sigma sqrt(2))``, over ``sigma sqrt(2 pi)``. It solves the
    heat equation, which gives its derivatives by ``sigma``, also at 0.

    >>> from pullback.scipy import special
    >>> print(f"{special.voigt_profile(1.0, 0.5, 0.25):.4f}")
    0.1648
    """
    return strong(apply("voigt_profile", primitives.voigt_profile_p, x, sigma, gamma))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals, of ``sin(pi / 2 t**2)`` and of ``cos(pi / 2 t**2)`` from 0 to ``x``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      Two arrays, ``(S, C)``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled they are integrals, far from zero of the auxiliary functions (DLMF 7.5.3, 7.7.10); ``x**2`` modulo 4
    is known to the last place.

    >>> from pullback.scipy import special
    >>> s, c = special.fresnel(1.0)
    >>> print(f"{s:.4f} {c:.4f}")
    0.4383 0.7799
    """
    sine, cosine = primitives.fresnel(strong(real_operand("fresnel", x)))
    return sine, cosine


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: the probability that X > h and 0 < Y < a X, of independent standard normal X and Y.

    Errors are up to 5 units in the last place, of the derivative by ``a`` 121 (``docs/accuracy.md``).

    Args:
      h: an array of real numbers; integers are converted.
      a: an array of real numbers, which broadcasts against ``h``.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is the defining integral of ``a`` up to 1, and its relation to ``1 / a`` beyond (D. B. Owen, *Tables for
    computing bivariate normal probabilities*, 1956).

    >>> from pullback.scipy import special
    >>> print(f"{special.owens_t(1.0, 2.0):.5f}")
    0.07847
    """
    return strong(apply("owens_t", primitives.owens_t_p, h, a))


__all__ = declare.public_names(__name__, globals())
