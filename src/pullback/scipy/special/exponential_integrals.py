"""Integrals of exponentials, sines and cosines over their variable; the dilogarithm; ``exprel``."""

from __future__ import annotations

import numpy as np

from pullback.core.array import Array, ArrayLike
from pullback.numpy import declare
from pullback.numpy.declare import inexact_pair
from pullback.numpy.promotion import strong
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT, check_dtype
from pullback.primitives.special import exponential_integrals as primitives
from pullback.primitives.special.others import exprel_p
from pullback.scipy.special.operands import apply, real_operand

exprel = declare.inexact_unary("exprel", exprel_p, __name__, fast=declare.REAL)


def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` to infinity.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats; infinite at 0, NaN where ``x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is a series near zero (DLMF 6.6.2), and an integral beyond (8.19.3).

    >>> from pullback.scipy import special
    >>> print(f"{special.exp1(1.0):.4f}")
    0.2194
    """
    return strong(apply("exp1", primitives.exp1_p, x))


def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei: the principal value of the integral of ``exp(t) / t`` up to ``x``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats; minus infinity at 0.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is the sum DLMF 6.2.7, which integrates a positive function.

    >>> from pullback.scipy import special
    >>> print(f"{special.expi(1.0):.4f}")
    1.8951
    """
    return strong(apply("expi", primitives.expi_p, x))


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The generalised exponential integral: the integral of ``exp(-x t) / t**n`` over ``t`` from 1 to infinity.

    Eager, errors are up to 14 units in the last place, of the derivative 200 (``docs/accuracy.md``).

    Args:
      n: an array of integers that are not negative.
      x: an array of real numbers, which broadcasts against ``n``.

    Returns:
      An array of floats; NaN where ``x`` is negative, or ``n`` negative or no integer.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Its derivative by ``x`` is ``-expn(n - 1, x)``. Compiled it is a series near zero (DLMF 8.19.8), and an integral
    beyond (8.19.3).

    >>> from pullback.scipy import special
    >>> print(f"{special.expn(2, 1.0):.4f}")
    0.1485
    """
    n, x = inexact_pair("expn", n, x)
    check_dtype("expn", FLOAT, x.dtype)
    return strong(primitives.expn_p.bind(ops.where(ops.lt(n, 0), np.nan, n), x))


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral, of ``sin(t) / t`` from 0 to ``x``, and the cosine integral, of ``cos(t) / t`` from infinity.

    Eager, errors of the cosine integral are up to 7 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      Two arrays, ``(Si, Ci)``. Ci is minus infinity at 0, for negative ``x`` its real part, which is ``Ci(-x)``,
      and NaN for minus infinity, as in SciPy.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled they are series near zero, and the auxiliary functions beyond (DLMF 6.2.19, 6.7.13).

    >>> from pullback.scipy import special
    >>> si, ci = special.sici(1.0)
    >>> print(f"{si:.4f} {ci:.4f}")
    0.9461 0.3374
    """
    sine, cosine = primitives.sici(strong(real_operand("sici", x)))
    return sine, cosine


def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of ``1 - x``: the integral of ``log(t) / (1 - t)`` from 1 to ``x``.

    Eager, errors are up to 9 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats; NaN where ``x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is a series in ``log(x)`` with Bernoulli's numbers, and the reflections DLMF 25.12.4 and 25.12.6.

    >>> from pullback.scipy import special
    >>> print(f"{special.spence(0.0):.4f} {special.spence(1.0):.1f}")
    1.6449 0.0
    """
    return strong(apply("spence", primitives.spence_p, x))


__all__ = declare.public_names(__name__, globals())
