"""Activations: functions of each element, with derivatives that are finite wherever the functions are.

Kinks, and the derivatives there, are as in JAX. Complex numbers are compared as NumPy compares them: by their real
parts, then by their imaginary parts.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.backends.host import rules
from pullback.backends.host import special as host_special
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import LARGE, Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.traits import Cost
from pullback.numpy.declare import quickly
from pullback.numpy.promotion import axis_index, inexact_operand, named, operand, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.primitives.declare import host_fused, in_one

# Operands ----------------------------------------------------------------------------------------------------------


def _ordered(name: str, x: Any) -> Any:
    x = operand(name, x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(x.dtype)}")
    return x


def _weak_numbers(name: str, x: Any) -> Array:
    """Convert an operand to an array of numbers; booleans become weakly typed integers."""
    x = operand(name, x)
    return ops.convert_element_type(x, dtypes.default_int(), True) if dtypes.is_bool(x.dtype) else x


def _weak_floats(name: str, x: Any) -> Array:
    """Convert an operand to an array of floats or complex numbers; integers and booleans become weakly typed floats."""
    x = operand(name, x)
    return x if dtypes.is_inexact(x.dtype) else ops.convert_element_type(x, dtypes.to_inexact(x.dtype), True)


def _weak_of_booleans(name: str, x: Any) -> Array:
    """Convert an operand to an array of floats or complex numbers; only booleans become weakly typed floats."""
    x = operand(name, x)
    floats = inexact_operand(name, x)
    return ops.convert_element_type(floats, floats.dtype, True) if dtypes.is_bool(x.dtype) else floats


# Linear in pieces --------------------------------------------------------------------------------------------------


def identity(x: ArrayLike) -> Array:
    """The argument, as an array.

    Args:
      x: an array, or a number.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(nn.identity(2.0))
    2.0
    """
    return operand("identity", x)


def relu(x: ArrayLike) -> Array:
    """The rectified linear unit, ``max(x, 0)``, with derivative 0 at 0.

    Args:
      x: an array of real numbers.

    Returns:
      An array of the same shape and dtype; booleans become integers.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.relu(jnp.array([-1.0, 0.0, 2.0])))
    [0. 0. 2.]
    """
    return _relu(x)  # type: ignore[no-any-return]


def _relu_by_operations(x: Any) -> Any:
    return ops.where(pnp.less_equal(x, 0) if dtypes.is_complex(x.dtype) else ops.le_p.bind(x, 0), 0, x)


_relu = in_one("relu", host=rules.relu, otherwise=_relu_by_operations, operand=partial(_weak_numbers, "relu"))


def relu6(x: ArrayLike) -> Array:
    """The rectified linear unit up to six, ``min(max(x, 0), 6)``; see Howard et al. 2017, *MobileNets*.

    Args:
      x: an array of real numbers.

    Returns:
      An array of the same shape, of floats. At the kinks the derivative is 0.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.relu6(jnp.array([-1.0, 2.0, 8.0])))
    [0. 2. 6.]
    """
    x = _weak_floats("relu6", x)
    return ops.where(pnp.less_equal(x, 0), 0, ops.where(pnp.greater_equal(x, 6), 6, x))


@named
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """The leaky rectified linear unit: ``x`` where it is not negative, else ``negative_slope * x``.

    Args:
      x: an array of real numbers.
      negative_slope: a number or an array that broadcasts.

    Returns:
      An array of floats, of the shape to which ``x`` and ``negative_slope`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.leaky_relu(jnp.array([-2.0, 3.0])))
    [-0.02  3.  ]
    """
    is_number = type(negative_slope) is float and negative_slope  # zeros of both signs are equal as parameters
    by = _leaky_relu if is_number else _leaky_relu_by_operations
    return by(x, slope=negative_slope)  # type: ignore[no-any-return]


def _leaky_relu_by_operations(x: Any, slope: Any) -> Any:
    return pnp.where(pnp.greater_equal(x, 0), x, pnp.multiply(slope, x))


_leaky_relu = in_one("leaky_relu", host=rules.leaky_relu, otherwise=_leaky_relu_by_operations)


def hard_tanh(x: ArrayLike) -> Array:
    """Limit each element to the interval from -1 to 1.

    Args:
      x: an array of real numbers.

    Returns:
      An array of the same shape and dtype, with derivative 1 at the bounds; booleans become integers.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.hard_tanh(jnp.array([-3.0, 0.5, 2.0])))
    [-1.   0.5  1. ]
    """
    x = _weak_numbers("hard_tanh", x)
    below = x if dtypes.is_unsigned(x.dtype) else ops.where(pnp.less(x, -1), -1, x)
    return ops.where(pnp.greater(x, 1), 1, below)


def hard_sigmoid(x: ArrayLike) -> Array:
    """Approximate the sigmoid by ``relu6(x + 3) / 6``; see Howard et al. 2019, *Searching for MobileNetV3*.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0])))
    [0.  0.5 1. ]
    """
    return ops.div(relu6(ops.add(_weak_floats("hard_sigmoid", x), 3)), 6)


def hard_silu(x: ArrayLike) -> Array:
    """Compute ``x * hard_sigmoid(x)``; see Howard et al. 2019, *Searching for MobileNetV3*.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.hard_silu(jnp.array([-4.0, 3.0, 4.0])))
    [-0.  3.  4.]
    """
    x = _weak_floats("hard_silu", x)
    return ops.mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, ``x`` above 1, and ``(x + 1)**2 / 4`` between them.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.sparse_plus(jnp.array([-2.0, 0.0, 3.0])))
    [0.   0.25 3.  ]
    """
    x = _weak_floats("sparse_plus", x)
    low, high = pnp.less_equal(x, -1), pnp.greater_equal(x, 1)
    inside = ops.where(ops.or_p.bind(low, high), 0, x)  # outside the square may overflow
    between = ops.div(ops.square(ops.add(inside, 1)), 4)
    return ops.where(low, 0, ops.where(high, x, between))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of :func:`sparse_plus`: ``(x + 1) / 2`` between -1 and 1, 0 below and 1 above.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 3.0])))
    [0.  0.5 1. ]
    """
    x = _weak_floats("sparse_sigmoid", _ordered("sparse_sigmoid", x))
    return ops.mul(ops.min_p.bind(ops.max_p.bind(ops.add(x, 1), 0), 2), 0.5)


# With exponentials -------------------------------------------------------------------------------------------------


def sigmoid(x: ArrayLike) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(nn.sigmoid(0.0))
    0.5
    """
    return ops.logistic(inexact_operand("sigmoid", x))


def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the logistic function, ``-log(1 + exp(-x))``, without overflow.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.log_sigmoid(0.0):.4f} {nn.log_sigmoid(-1000.0):.1f}")
    -0.6931 -1000.0
    """
    return ops.neg(softplus(ops.neg(inexact_operand("log_sigmoid", x))))


def softplus(x: ArrayLike) -> Array:
    """Compute ``log(1 + exp(x))`` without overflow.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.softplus(0.0):.4f} {nn.softplus(1000.0):.1f}")
    0.6931 1000.0
    """
    if (quick := quickly(_host_softplus, x)) is not None:
        return quick
    return pnp.logaddexp(_weak_of_booleans("softplus", x), 0)


def _host_softplus(x: Any) -> Any:
    """The formula of ``logaddexp``, of many numbers, and NumPy's in half precision."""
    if x.dtype.itemsize < 4:
        return np.logaddexp(x, x.dtype.type(0))
    return np.maximum(x, 0) + host_special.log1p(host_special.exp(-np.abs(x)))


def log1mexp(x: ArrayLike) -> Array:
    """Compute ``log(1 - exp(-x))`` for positive ``x``, without cancellation.

    By one formula below log 2 and another above: Mächler 2012, *Accurately computing log(1 - exp(-|a|))*.

    Args:
      x: an array of real numbers; the result is NaN where they are negative.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.log1mexp(1e-10):.4f} {nn.log1mexp(2.0):.4f}")
    -23.0259 -0.1454
    """
    x = inexact_operand("log1mexp", _ordered("log1mexp", x))
    small = ops.lt(x, math.log(2))
    near, far = ops.where(small, x, 1), ops.where(small, 1, x)
    by_expm1 = ops.log(ops.neg(ops.expm1_p.bind(ops.neg(near))))
    return ops.where(small, by_expm1, ops.log1p_p.bind(ops.neg(ops.exp(ops.neg(far)))))


def silu(x: ArrayLike) -> Array:
    """The sigmoid linear unit, or swish: ``x * sigmoid(x)``; see Elfwing et al. 2018.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.silu(1.0):.4f}")
    0.7311
    """
    return _silu(inexact_operand("silu", x))


swish = silu


def _silu_by_operations(x: Any) -> Any:
    return ops.mul(x, ops.logistic(x))


def _silu_jvp(t: Any, x: Any, ans: Any) -> Any:
    logistic = ops.logistic(x)
    slope = ops.mul(logistic, ops.logistic(ops.neg(x))) if dtypes.is_complex(x.dtype) else ops.logistic_slope_p.bind(x)
    change = ops.mul(x, slope)
    return ops.mul(t, ops.add(logistic, change))


_silu = host_fused("silu", host=None, otherwise=_silu_by_operations, jvp=_silu_jvp)


def mish(x: ArrayLike) -> Array:
    """Compute ``x * tanh(softplus(x))``; see Misra 2019.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.mish(1.0):.4f}")
    0.8651
    """
    x = _weak_of_booleans("mish", x)
    return ops.mul(x, ops.tanh(softplus(x)))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """The Gaussian error linear unit: ``x`` times the probability of a standard normal number below it.

    See Hendrycks and Gimpel 2016.

    Args:
      x: an array of real numbers.
      approximate: whether to use ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`` for the probability.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ArgumentError: ``approximate`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import nn
    >>> print(f"{nn.gelu(1.0):.4f} {nn.gelu(1.0, approximate=False):.4f}")
    0.8412 0.8413
    """
    approximate = flag("gelu", "approximate", approximate)
    x = strong(inexact_operand("gelu", x))
    return _gelu_by_tanh(x) if approximate else _gelu_by_erfc(x)


def _gelu_of_erfc(x: Any) -> Any:
    scaled = ops.mul(x, -math.sqrt(0.5))
    return ops.mul(ops.mul(0.5, x), ops.erfc_p.bind(scaled))


def _gelu_of_erfc_jvp(t: Any, x: Any, ans: Any) -> Any:
    density = ops.mul(1 / math.sqrt(2 * math.pi), ops.gaussian(x, 0.5))
    slope = ops.add(ops.ndtr_p.bind(x), ops.mul(x, density))
    return ops.mul(t, slope)


_gelu_at_once = in_one(
    "gelu", host=host_special.gelu, otherwise=_gelu_of_erfc, cost=Cost.SIMPLE, of=host_special.LOOPED
)
_gelu_by_erfc = host_fused("gelu", host=None, otherwise=_gelu_at_once, jvp=_gelu_of_erfc_jvp)


def _tanh_of_gelu(x: Any) -> Any:
    cube = ops.integer_pow(x, 3)
    cubic = ops.add(x, ops.mul(0.044715, cube))
    return ops.tanh(ops.mul(math.sqrt(2 / math.pi), cubic))


def _gelu_by_operations(x: Any) -> Any:
    shifted = ops.add(1, _tanh_of_gelu(x))
    return ops.mul(x, ops.mul(0.5, shifted))


def _gelu_jvp(t: Any, x: Any, ans: Any) -> Any:
    """The derivative as a function of ``x`` alone: to compute it anew is quicker than to keep its terms in memory."""
    tanh = _tanh_of_gelu(x)
    square, rest = ops.square(x), ops.sub(1, ops.square(tanh))
    slope = ops.add(1, ops.mul(3 * 0.044715, square))
    slope = ops.mul(math.sqrt(2 / math.pi), slope)
    by_tanh = ops.mul(ops.mul(x, slope), rest)
    both = ops.add(ops.add(1, tanh), by_tanh)
    return ops.mul(t, ops.mul(0.5, both))


_gelu_by_tanh = host_fused("gelu", host=None, otherwise=_gelu_by_operations, jvp=_gelu_jvp)


@named
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit: ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    See Clevert et al. 2015.

    Args:
      x: an array of real numbers.
      alpha: a number or an array that broadcasts.

    Returns:
      An array of floats, of the shape to which ``x`` and ``alpha`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.elu(jnp.array([-1000.0, 2.0])))
    [-1.  2.]
    """
    if type(alpha) in (int, float) and isinstance(x, Array) and x.dtype.char in "fd":
        return _elu(x, alpha=alpha)
    return _elu_by_operations(x, alpha=alpha)


def _elu_by_operations(x: Any, *, alpha: Any) -> Any:
    positive = pnp.greater(x, 0)
    return pnp.where(positive, x, pnp.multiply(alpha, pnp.expm1(pnp.where(positive, 0.0, x))))


def _host_elu(x: Any, *, alpha: float) -> Any:
    return np.where(x > 0, x, host_special.expm1(x) * alpha)[()]


def _elu_jvp(t: Any, x: Any, ans: Any, alpha: float) -> Any:
    slope = ops.where(ops.gt(x, 0), 1, ops.mul(ops.exp(x), alpha))
    return ops.mul(t, slope)


_elu = host_fused("elu", host=_host_elu, otherwise=_elu_by_operations, large=LARGE, jvp=_elu_jvp)


@named
def selu(x: ArrayLike) -> Array:
    """The scaled exponential linear unit, whose outputs keep mean 0 and variance 1; see Klambauer et al. 2017.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.selu(1.0):.4f} {nn.selu(-1.0):.4f}")
    1.0507 -1.1113
    """
    return pnp.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


@named
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit with derivative 1 at 0: ``alpha * (exp(x / alpha) - 1)`` where ``x`` is negative.

    See Barron 2017.

    Args:
      x: an array of real numbers.
      alpha: a number or an array that broadcasts.

    Returns:
      An array of floats, of the shape to which ``x`` and ``alpha`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.celu(jnp.array([-1000.0, 2.0]), 2.0))
    [-2.  2.]
    """
    positive = pnp.greater(x, 0)
    return pnp.where(positive, x, pnp.multiply(alpha, pnp.expm1(pnp.divide(pnp.where(positive, 0.0, x), alpha))))


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(f"{nn.tanh(1.0):.4f}")
    0.7616
    """
    return ops.tanh(inexact_operand("tanh", x))


# Algebraic ---------------------------------------------------------------------------------------------------------


def soft_sign(x: ArrayLike) -> Array:
    """Compute ``x / (1 + |x|)``.

    Args:
      x: an array of real numbers.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import nn
    >>> print(nn.soft_sign(3.0))
    0.75
    """
    x = _weak_of_booleans("soft_sign", x)
    return pnp.divide(x, ops.add(ops.abs(x), 1))


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute ``(x + sqrt(x**2 + b)) / 2``, which is like softplus without exponentials; see Barron 2021.

    Args:
      x: an array of real numbers.
      b: a number or an array that broadcasts.

    Returns:
      An array of floats, of the shape to which ``x`` and ``b`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> from pullback import nn
    >>> print(nn.squareplus(0.0))
    1.0
    """
    x = inexact_operand("squareplus", x)
    return pnp.multiply(0.5, pnp.add(x, pnp.sqrt(pnp.add(ops.square(x), b))))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The gated linear unit: the first half of an array, times the sigmoid of the second; see Dauphin et al. 2017.

    Args:
      x: an array of real numbers.
      axis: the axis along which it is halved.

    Returns:
      An array of floats, half as large as ``x`` along the axis.

    Raises:
      ShapeError: the axis is out of range, or its size is odd (a ValueError).
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.glu(jnp.array([1.0, 2.0, 0.0, 0.0])))
    [0.5 1. ]
    """
    x = inexact_operand("glu", x)
    where = axis_index(axis, len(x.shape), "glu")
    size = x.shape[where]
    if size % 2:
        raise ShapeError(f"glu: the axis must have an even size, got size {size} along axis {axis}")
    first = slicing.slice_in_dim(x, 0, size // 2, where)
    second = slicing.slice_in_dim(x, size // 2, size, where)
    return ops.mul(first, ops.logistic(second))
