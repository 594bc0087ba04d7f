"""Bessel functions."""

from __future__ import annotations

import numpy as np

from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError
from pullback.numpy import declare
from pullback.numpy.promotion import known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.special import bessel as primitives
from pullback.scipy.special import bessel_orders
from pullback.scipy.special.operands import apply, real_operand, real_operands


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> from pullback.scipy import special
    >>> print(f"{special.i0(1.0):.4f}")
    1.2661
    """
    return apply("i0", primitives.i0_p, x)


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 1.

    Compiled, errors are up to 6 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> from pullback.scipy import special
    >>> print(f"{special.i1(1.0):.4f}")
    0.5652
    """
    return apply("i1", primitives.i1_p, x)


def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0, times ``exp(-abs(x))``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> from pullback.scipy import special
    >>> print(f"{special.i0e(1.0):.4f}")
    0.4658
    """
    return apply("i0e", primitives.bessel_i0e_p, x)


def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 1, times ``exp(-abs(x))``.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats, of the dtype of ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Compiled it is Poisson's integral (DLMF 10.32.2).

    >>> from pullback.scipy import special
    >>> print(f"{special.i1e(1.0):.4f}")
    0.2079
    """
    return apply("i1e", primitives.bessel_i1e_p, x)


def jv(v: ArrayLike, x: ArrayLike) -> Array:
    """The Bessel function of the first kind, of real order.

    Errors are up to 190 units in the last place of the amplitude, of derivatives 370 (``docs/accuracy.md``).

    Args:
      v: the orders, an array of real numbers; integers are converted.
      x: an array of real numbers, which broadcasts against ``v``. Negative numbers only with integer orders.

    Returns:
      An array of floats, of the common dtype; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is a power series near zero, Schläfli's integrals (DLMF 10.9.6), and integrals along paths of steepest
    descent elsewhere (Watson, *A Treatise on the Theory of Bessel Functions*, 1922, chapter 8). It has derivatives of
    any order by both operands: those by ``v`` under the integral, those by ``x`` by the neighbouring orders.

    >>> from pullback.scipy import special
    >>> print(f"{special.jv(1.0, 1.0):.4f}")
    0.4401
    """
    return bessel_orders.jv_p.bind(*real_operands("jv", v, x), orders=(0, 0))


def yv(v: ArrayLike, x: ArrayLike) -> Array:
    """The Bessel function of the second kind, of real order.

    Errors are up to 74 units in the last place of the amplitude, of derivatives 130 (``docs/accuracy.md``).

    Args:
      v: the orders, an array of real numbers; integers are converted.
      x: an array of positive numbers, which broadcasts against ``v``.

    Returns:
      An array of floats, of the common dtype; minus infinity at 0, NaN where ``x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is made of integrals, as :func:`jv`. It has derivatives of any
    order by both operands: those by ``v`` under the integral, those by ``x`` by the neighbouring orders.

    >>> from pullback.scipy import special
    >>> print(f"{special.yv(1.0, 1.0):.4f}")
    -0.7812
    """
    return bessel_orders.yv_p.bind(*real_operands("yv", v, x), orders=(0, 0))


def iv(v: ArrayLike, x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of real order.

    Errors are up to 9 units in the last place, of derivatives 40, by an order near zero 6,000 (``docs/accuracy.md``).

    Args:
      v: the orders, an array of real numbers; integers are converted.
      x: an array of real numbers, which broadcasts against ``v``. Negative numbers only with integer orders.

    Returns:
      An array of floats, of the common dtype; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is a power series up to 13 (DLMF 10.25.2), and an integral along a path of steepest descent beyond. It
    has derivatives of any order by both operands: those by ``v`` under the integral, those by ``x`` by the
    neighbouring orders.

    >>> from pullback.scipy import special
    >>> print(f"{special.iv(1.0, 1.0):.4f}")
    0.5652
    """
    return bessel_orders.iv_p.bind(*real_operands("iv", v, x), orders=(0, 0))


def kv(v: ArrayLike, x: ArrayLike) -> Array:
    """The modified Bessel function of the second kind, of real order.

    Errors are up to 62 units in the last place, of derivatives 110 (``docs/accuracy.md``).

    Args:
      v: the orders, an array of real numbers; integers are converted.
      x: an array of positive numbers, which broadcasts against ``v``.

    Returns:
      An array of floats, of the common dtype; infinity at 0, NaN where ``x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is an integral about the largest value of the integrand (DLMF 10.32.9). It has derivatives of any
    order by both operands: those by ``v`` under the integral, those by ``x`` by the neighbouring orders.

    >>> from pullback.scipy import special
    >>> print(f"{special.kv(1.0, 1.0):.4f}")
    0.6019
    """
    return bessel_orders.kv_p.bind(*real_operands("kv", v, x), orders=(0, 0))


def jn(n: ArrayLike, x: ArrayLike) -> Array:
    """The Bessel function of the first kind, as :func:`jv`, under SciPy's other name.

    Args:
      n, x: as ``v`` and ``x`` of :func:`jv`.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> from pullback.scipy import special
    >>> print(f"{special.jn(0, 1.0):.4f}")
    0.7652
    """
    return bessel_orders.jv_p.bind(*real_operands("jn", n, x), orders=(0, 0))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind, of all integer orders up to ``v``.

    Args:
      z: an array of real numbers; integers are converted.
      v: the largest order, an integer that is known and not negative.
      n_iter: without effect: in JAX it is the number of steps of a recurrence.

    Returns:
      An array of floats, of shape ``(v + 1, *z.shape)``.

    Raises:
      ArgumentError: ``v`` is negative (a TypeError and a ValueError).
      ShapeError: ``v`` or ``n_iter`` is no integer (a TypeError and a ValueError).
      OperandError: ``z`` is no array of numbers (a TypeError).
      DtypeError: ``z`` is complex (a TypeError).

    Each is :func:`jv` of its order, so that they are right at zero and far from it too.

    >>> from pullback.scipy import special
    >>> print(special.bessel_jn(1.0, v=2).round(4))
    [0.7652 0.4401 0.1149]
    """
    v = known_int("bessel_jn", "the largest order v", v)
    known_int("bessel_jn", "n_iter", n_iter)
    if v < 0:
        raise ArgumentError(f"bessel_jn: the largest order v must not be negative, got {v}")
    z = real_operand("bessel_jn", z)
    orders = ops.convert_element_type(as_array(np.arange(v + 1.0)), z.dtype)
    shaped = shapes.expand_dims(orders, tuple(range(1, len(z.shape) + 1)))
    return bessel_orders.jv_p.bind(shaped, z, orders=(0, 0))


__all__ = declare.public_names(__name__, globals())
