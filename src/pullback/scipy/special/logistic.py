"""Logistic functions, entropies, softmax, and the transforms of Box and Cox."""

from __future__ import annotations

from typing import Any

from pullback.core import dtypes
from pullback.core.annotations import Axes
from pullback.core.array import Array, ArrayLike
from pullback.nn import normalized
from pullback.numpy import declare
from pullback.numpy.declare import inexact_pair
from pullback.numpy.promotion import inexact_operand
from pullback.primitives import elementwise as ops
from pullback.primitives.special import transformed
from pullback.primitives.special.others import entr_p, logit_p, xlog1py_p, xlogy_p
from pullback.scipy.special.operands import apply, real_operand


def expit(x: ArrayLike) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Args:
      x: an array of floats or complex numbers, of any shape; integers are converted to floats.

    Returns:
      An array of the inexact dtype of ``x``, and of its shape.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback.scipy import special
    >>> print(special.expit(0.0))
    0.5
    """
    return ops.logistic(inexact_operand("expit", x))


def logit(x: ArrayLike) -> Array:
    """``log(x / (1 - x))``, the inverse of the logistic function.

    Args:
      x: an array of floats or complex numbers, of any shape; integers are converted to floats.

    Returns:
      An array of the inexact dtype of ``x``, and of its shape: -inf at 0, inf at 1, and NaN for real numbers outside
      [0, 1].

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.logit(0.75):.4f} {special.logit(1.0):.1f}")
    1.0986 inf
    """
    return logit_p.bind(inexact_operand("logit", x))


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log(y)``; 0 where ``x`` is 0, even if the logarithm is not finite.

    Args:
      x: an array of floats or complex numbers; integers are converted to floats.
      y: the same, of a shape that broadcasts against that of ``x``.

    Returns:
      An array of the common inexact dtype of ``x`` and ``y``, and of the shape to which they broadcast.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0])))
    [0. 0.]
    """
    return xlogy_p.bind(*inexact_pair("xlogy", x, y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log1p(y)``; 0 where ``x`` is 0, even if the logarithm is not finite.

    Args:
      x: an array of floats or complex numbers; integers are converted to floats.
      y: the same, of a shape that broadcasts against that of ``x``.

    Returns:
      An array of the common inexact dtype of ``x`` and ``y``, and of the shape to which they broadcast.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0])))
    [0. 0.]
    """
    return xlog1py_p.bind(*inexact_pair("xlog1py", x, y))


def entr(x: ArrayLike) -> Array:
    """The term of an entropy: ``-x * log(x)``, 0 at 0, and -inf where ``x`` is negative.

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.entr(jnp.array([-1.0, 0.0, 1.0])))
    [-inf   0.  -0.]
    """
    return entr_p.bind(real_operand("entr", x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The term of a relative entropy: ``p * log(p / q)``; 0 where ``p`` is 0, and infinite outside the domain.

    Args:
      p: an array of real numbers; integers are converted.
      q: an array of real numbers, which broadcasts against ``p``.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    As :data:`scipy.special.rel_entr`.

    >>> from pullback.scipy import special
    >>> print(f"{special.rel_entr(2.0, 1.0):.4f} {special.rel_entr(0.0, 1.0):.1f} {special.rel_entr(1.0, 0.0):.1f}")
    1.3863 0.0 inf
    """
    return apply("rel_entr", transformed.rel_entr_p, p, q)


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term of Kullback and Leibler's divergence: ``p * log(p / q) - p + q``, without cancellation.

    Compiled, errors are up to 7 units in the last place (``docs/accuracy.md``).

    Args:
      p: an array of real numbers; integers are converted.
      q: an array of real numbers, which broadcasts against ``p``.

    Returns:
      An array of floats, of the common dtype; infinite outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    As :data:`scipy.special.kl_div`; for ``p`` near ``q`` it is ``p (r - log(1 + r))``, where ``r = (q - p) / p``.

    >>> from pullback.scipy import special
    >>> print(f"{special.kl_div(2.0, 1.0):.4f} {special.kl_div(0.0, 1.0):.1f}")
    0.3863 1.0
    """
    return apply("kl_div", transformed.kl_div_p, p, q)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform of Box and Cox: ``((x)**lmbda - 1) / lmbda``, and ``log(x)`` where ``lmbda`` is 0.

    Errors are up to 16 units in the last place, of derivatives 18 (``docs/accuracy.md``).

    Args:
      x: an array of floats or complex numbers; integers are converted.
      lmbda: an array of floats or complex numbers, which broadcasts against ``x``.

    Returns:
      An array of the common dtype; NaN where ``x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It is ``log(x) * exprel(lmbda * log(x))``, which has all derivatives where ``lmbda`` is 0 too.

    >>> from pullback.scipy import special
    >>> print(f"{special.boxcox(1.0, 0.0):.4f} {special.boxcox(2.0, 2.0):.4f}")
    0.0000 1.5000
    """
    return _box_cox("boxcox", x, lmbda, shifted=False)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform of Box and Cox: ``((1 + x)**lmbda - 1) / lmbda``, and ``log(1 + x)`` where ``lmbda`` is 0.

    Errors are up to 25 units in the last place, of derivatives 20 (``docs/accuracy.md``).

    Args:
      x: an array of floats or complex numbers; integers are converted.
      lmbda: an array of floats or complex numbers, which broadcasts against ``x``.

    Returns:
      An array of the common dtype; NaN where ``1 + x`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It is ``log(1 + x) * exprel(lmbda * log(1 + x))``, which has all derivatives where ``lmbda`` is 0 too.

    >>> from pullback.scipy import special
    >>> print(f"{special.boxcox1p(1.0, 0.0):.4f} {special.boxcox1p(2.0, 2.0):.4f}")
    0.6931 4.0000
    """
    return _box_cox("boxcox1p", x, lmbda, shifted=True)


def _box_cox(name: str, x: Any, lmbda: Any, shifted: bool) -> Any:
    x, lmbda = inexact_pair(name, x, lmbda)
    if dtypes.is_complex(x.dtype):
        derivative = transformed.boxcox1p_derivative_p if shifted else transformed.boxcox_derivative_p
        return derivative.bind(x, lmbda, order=0)
    return (transformed.boxcox1p_p if shifted else transformed.boxcox_p).bind(x, lmbda)


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Exponentials divided by their sum, without overflow.

    Args:
      x: an array of floats, of any shape; integers are converted.
      axis: the axis to sum over, an integer; a tuple of axes; or None for all of them.

    Returns:
      An array of the float dtype of ``x``, and of its shape, whose sum over ``axis`` is 1.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: ``axis`` is out of range (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.softmax(jnp.array([1000.0, 1000.0])))
    [0.5 0.5]
    """
    return normalized.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """The logarithm of :func:`softmax`, also where :func:`softmax` underflows.

    Args:
      x: an array of floats, of any shape; integers are converted.
      axis: the axis to sum over, an integer; a tuple of axes; or None for all of them.

    Returns:
      An array of the float dtype of ``x``, and of its shape, at most 0.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: ``axis`` is out of range (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.log_softmax(jnp.array([0.0, 1000.0])))
    [-1000.     0.]
    """
    return normalized.log_softmax(x, axis)


__all__ = declare.public_names(__name__, globals())
