"""Bessel functions."""

from __future__ import annotations

from typing import Any

from pullback.numpy import declare
from pullback.primitives import bessel as primitives
from pullback.scipy.special.operands import apply


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> print(f"{i0(1.0):.4f}")
    1.2661
    """
    return apply("i0", primitives.i0_p, x)


def i1(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> print(f"{i1(1.0):.4f}")
    0.5652
    """
    return apply("i1", primitives.i1_p, x)


def i0e(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0, times ``exp(-abs(x))``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> print(f"{i0e(1.0):.4f}")
    0.4658
    """
    return apply("i0e", primitives.bessel_i0e_p, x)


def i1e(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1, times ``exp(-abs(x))``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> print(f"{i1e(1.0):.4f}")
    0.2079
    """
    return apply("i1e", primitives.bessel_i1e_p, x)


__all__ = declare.public_names(__name__, globals())
