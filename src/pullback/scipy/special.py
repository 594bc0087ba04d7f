"""Special functions. Formulas are those of Abramowitz and Stegun, *Handbook of Mathematical Functions*."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import ArgumentError, DtypeError
from pullback.nn import normalized
from pullback.nn.normalized import logsumexp
from pullback.numpy import declare
from pullback.numpy.declare import inexact_pair
from pullback.numpy.promotion import inexact_operand, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT, check_dtype
from pullback.primitives.special import exprel_p, xlog1py_p, xlogy_p


def _real(name: str, x: Any) -> Any:
    """An operand as an array of floats."""
    x = inexact_operand(name, x)
    check_dtype(name, FLOAT, x.dtype)
    return x


# The error function and its kin ------------------------------------------------------------------------------------


def erf(x: Any) -> Any:
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    Args:
      x: an array of real numbers.

    >>> print(f"{erf(1.0):.4f}")
    0.8427
    """
    return ops.erf_p.bind(_real("erf", x))


def erfc(x: Any) -> Any:
    """``1 - erf(x)``, without cancellation.

    Args:
      x: an array of real numbers.

    >>> print(f"{erfc(3.0):.4e}")
    2.2090e-05
    """
    return ops.erfc_p.bind(_real("erfc", x))


def erfinv(x: Any) -> Any:
    """The inverse of the error function.

    Args:
      x: an array of real numbers, between -1 and 1.

    >>> print(f"{erfinv(0.5):.4f}")
    0.4769
    """
    return ops.erf_inv_p.bind(_real("erfinv", x))


def ndtr(x: Any) -> Any:
    """The probability that a standard normal number is less than ``x``.

    Args:
      x: an array of real numbers.

    >>> print(ndtr(0.0))
    0.5
    """
    return ops.mul(0.5, ops.erfc_p.bind(ops.mul(strong(_real("ndtr", x)), -math.sqrt(0.5))))


_TAIL = {np.dtype(np.float32): -9.0, np.dtype(np.float64): -26.0}
"""Below what argument the logarithm of ndtr is its asymptotic series: derivatives divide by ndtr's square."""


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """The logarithm of :func:`ndtr`, also where that underflows: there by its asymptotic series, formula 26.2.12.

    Args:
      x: an array of real numbers.
      series_order: the number of terms of the series after the first.

    Raises:
      ArgumentError: ``series_order`` is no integer from 0 to 30 (a ValueError).

    >>> print(f"{log_ndtr(0.0):.4f} {log_ndtr(-100.0):.3f}")
    -0.6931 -5005.524
    """
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ArgumentError(f"log_ndtr: series_order must be an integer from 0 to 30, got {series_order!r}")
    given = _real("log_ndtr", x)
    x = given if given.dtype in _TAIL else ops.convert_element_type(given, np.dtype(np.float32))
    low = _TAIL[x.dtype]
    in_tail, positive = ops.lt(x, low), ops.gt(x, 0)
    # Each formula is given arguments for which it and its derivative are finite.
    middle = ops.log(ndtr(ops.where(ops.or_p.bind(in_tail, positive), 0, x)))
    above = ops.log1p_p.bind(ops.neg(ndtr(ops.neg(ops.where(positive, x, 0)))))
    tail = _lower_tail(ops.where(in_tail, x, low), series_order)
    out = ops.where(in_tail, tail, ops.where(positive, above, middle))
    return ops.convert_element_type(out, given.dtype)


def _lower_tail(x: Any, order: int) -> Any:
    """log(phi(x) / -x * (1 - 1/x² + 3/x⁴ - 15/x⁶ + ...)), where phi is the density."""
    inverse_square = ops.div(1, ops.square(x))
    correction: Any = 0.0
    for n in range(order, 0, -1):
        term = ops.mul(-(2.0 * n - 1), inverse_square)
        correction = term if n == order else ops.mul(term, ops.add(1, correction))
    leading = ops.sub(ops.mul(-0.5, ops.square(x)), ops.log(ops.mul(ops.neg(x), math.sqrt(2 * math.pi))))
    return ops.add(leading, ops.log1p_p.bind(correction)) if order else leading


# The gamma function's logarithm and its derivatives ----------------------------------------------------------------


def gammaln(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function.

    Args:
      x: an array of real numbers.

    >>> print(f"{gammaln(5.0):.4f}")
    3.1781
    """
    return ops.lgamma_p.bind(_real("gammaln", x))


def digamma(x: Any) -> Any:
    """The derivative of :func:`gammaln`.

    Args:
      x: an array of real numbers.

    >>> print(f"{digamma(1.0):.4f}")
    -0.5772
    """
    return ops.digamma(_real("digamma", x))


def polygamma(n: Any, x: Any) -> Any:
    """The derivative of :func:`digamma` of order ``n``.

    Args:
      n: an array of integers that are not negative.
      x: an array of real numbers.

    >>> print(f"{polygamma(1, 1.0):.4f}")
    1.6449
    """
    if dtypes.is_inexact(dtypes.dtype_of(n)):
        raise DtypeError(f"polygamma: the order n must be integers, got {dtypes.short_name(dtypes.dtype_of(n))}")
    order, x = inexact_pair("polygamma", n, x)
    return ops.polygamma(order, _real("polygamma", x))


exprel = declare.inexact_unary("exprel", exprel_p, __name__, fast=declare.REAL)

# Logistic functions and entropies ----------------------------------------------------------------------------------


def expit(x: Any) -> Any:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    >>> print(expit(0.0))
    0.5
    """
    return ops.logistic(inexact_operand("expit", x))


def logit(x: Any) -> Any:
    """``log(x / (1 - x))``, the inverse of the logistic function.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    >>> print(f"{logit(0.75):.4f} {logit(1.0):.1f}")
    1.0986 inf
    """
    x = inexact_operand("logit", x)
    return ops.sub(ops.log(x), ops.log1p_p.bind(ops.neg(x)))


def xlogy(x: Any, y: Any) -> Any:
    """``x * log(y)``; 0 where ``x`` is 0, even if the logarithm is not finite.

    Args:
      x: an array of floats or complex numbers; integers are converted.
      y: the same.

    >>> import pullback.numpy as pnp
    >>> print(xlogy(pnp.array([0.0, 2.0]), pnp.array([0.0, 1.0])))
    [0. 0.]
    """
    return xlogy_p.bind(*inexact_pair("xlogy", x, y))


def xlog1py(x: Any, y: Any) -> Any:
    """``x * log1p(y)``; 0 where ``x`` is 0, even if the logarithm is not finite.

    Args:
      x: an array of floats or complex numbers; integers are converted.
      y: the same.

    >>> import pullback.numpy as pnp
    >>> print(xlog1py(pnp.array([0.0, 2.0]), pnp.array([-1.0, 0.0])))
    [0. 0.]
    """
    return xlog1py_p.bind(*inexact_pair("xlog1py", x, y))


def entr(x: Any) -> Any:
    """The term of an entropy: ``-x * log(x)``, 0 at 0, and -inf where ``x`` is negative.

    Args:
      x: an array of real numbers.

    >>> import pullback.numpy as pnp
    >>> print(entr(pnp.array([-1.0, 0.0, 1.0])))
    [-inf  -0.  -0.]
    """
    x = _real("entr", x)
    negative = ops.lt(x, 0)
    inside = ops.where(negative, 1, x)
    return ops.where(negative, -math.inf, ops.neg(xlogy_p.bind(inside, inside)))


# Softmax -----------------------------------------------------------------------------------------------------------


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """Exponentials divided by their sum, without overflow.

    Args:
      x: an array of real numbers.
      axis: the axis to sum over, a tuple of axes, or None for all.

    >>> import pullback.numpy as pnp
    >>> print(softmax(pnp.array([1000.0, 1000.0])))
    [0.5 0.5]
    """
    return normalized.softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """The logarithm of :func:`softmax`, where that would underflow too.

    Args:
      x, axis: as of :func:`softmax`.

    >>> import pullback.numpy as pnp
    >>> print(log_softmax(pnp.array([0.0, 1000.0])))
    [-1000.     0.]
    """
    return normalized.log_softmax(x, axis)


__all__ = [*declare.public_names(__name__, globals()), "logsumexp"]
