# long: because there are many functions, each with its docstring
"""Elementwise arithmetic, exponentials, trigonometry, rounding and components of numbers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import SCALARS, Absent, Array, ArrayImpl, ArrayLike, as_array, host_value, is_on_host
from pullback.core.config import config
from pullback.core.errors import DtypeError, DtypeValueError
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.trace import Tracer, recorders, state
from pullback.numpy import declare, promotion
from pullback.numpy.declare import inexact_pair, numeric, numeric_pair, strong_pair
from pullback.numpy.promotion import (
    another,
    inexact_operand,
    known_int,
    number_operand,
    operand,
    promote,
    refuse_out,
    strong,
)
from pullback.numpy.ufunc_objects import with_methods
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.declare import in_one
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.operands import stop_gradient
from pullback.primitives.remainders import floor_div_p, floor_rem_p, is_above

_unary = partial(declare.inexact_unary, module=__name__)
_binary = partial(declare.binary, module=__name__)
_inexact_binary = partial(declare.inexact_binary, module=__name__)

# One primitive each ------------------------------------------------------------------------------------------------

exp = _unary("exp", ops.exp_p)
exp2 = _unary("exp2", ops.exp2_p, fast=declare.REAL)
expm1 = _unary("expm1", ops.expm1_p)
log = _unary("log", ops.log_p)
log1p = _unary("log1p", ops.log1p_p)
sqrt = _unary("sqrt", ops.sqrt_p)
cbrt = _unary("cbrt", ops.cbrt_p, fast=declare.REAL)
sin = _unary("sin", ops.sin_p)
cos = _unary("cos", ops.cos_p)
tan = _unary("tan", ops.tan_p)
arcsin = _unary("arcsin", ops.asin_p)
arccos = _unary("arccos", ops.acos_p)
arctan = _unary("arctan", ops.atan_p)
sinh = _unary("sinh", ops.sinh_p)
cosh = _unary("cosh", ops.cosh_p)
tanh = _unary("tanh", ops.tanh_p)
arcsinh = _unary("arcsinh", ops.asinh_p)
arccosh = _unary("arccosh", ops.acosh_p)
arctanh = _unary("arctanh", ops.atanh_p)
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh

add = _binary("add", ops.add_p)
subtract = _binary("subtract", ops.sub_p)
multiply = _binary("multiply", ops.mul_p)
maximum = _binary("maximum", ops.max_p)
minimum = _binary("minimum", ops.min_p)
true_divide = _inexact_binary(
    "true_divide", ops.div_p, doc=("The quotient ``x / y``, as a float even of integers.", "1, 2", "0.5")
)
divide = true_divide
nextafter = _inexact_binary("nextafter", ops.nextafter_p)


# Signs and simple products -----------------------------------------------------------------------------------------


def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; the modulus of a complex number. At zero its derivative is zero.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      An array of the shape and dtype of ``x``; for complex numbers, of the dtype of their parts.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.absolute(-2.0), jnp.absolute(3 + 4j))
    2.0 5.0
    """
    x = operand("absolute", x)
    return another(x) if dtypes.is_bool(x.dtype) or dtypes.is_unsigned(x.dtype) else ops.abs(x)


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value of real numbers, as a float.

    Args:
      x: an array of real numbers, of any shape. Integers and booleans become floats.

    Returns:
      Floats of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fabs(-2))
    2.0
    """
    x = inexact_operand("fabs", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError("fabs takes real numbers, got complex ones: use abs")
    return ops.abs(x)


@declare.positional
def negative(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Negate the elements of an array: ``-x``.

    Args:
      x: an array of numbers, of any shape.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is boolean (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.negative(2.0))
    -2.0
    """
    if out is not None or where is not None:
        declare.refuse_options("negative", out, where)
    return ops.neg(operand("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """Return the elements unchanged: ``+x``.

    Args:
      x: an array of any shape and dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.positive(2.0))
    2.0
    """
    return another(operand("positive", x))


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; ``x / abs(x)`` for complex numbers; 0.0 for -0.0, where :func:`pullback.lax.sign` returns -0.0.

    Args:
      x: an array of numbers, of any shape.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is boolean (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.sign(-2.0), jnp.sign(0.0))
    -1.0 0.0
    """
    return _sign(x)  # type: ignore[no-any-return]


def _sign_by_operations(x: Any) -> Any:
    out = ops.sign(x)
    return ops.where(ops.eq(x, 0), 0, out) if dtypes.is_inexact(x.dtype) else out


_sign = in_one("sign", host=rules.sign_of_numbers, otherwise=_sign_by_operations, operand=partial(operand, "sign"))


def square(x: ArrayLike, /) -> Array:
    """Multiply each element by itself: ``x * x``.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      An array of the shape and dtype of ``x``; booleans become integers.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.square(3.0))
    9.0
    """
    return ops.square(numeric("square", x))


def reciprocal(x: ArrayLike, /) -> Array:
    """Divide one by each element: ``1 / x``, as a float.

    Args:
      x: an array of numbers, of any shape. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.reciprocal(4))
    0.25
    """
    return ops.div(1, inexact_operand("reciprocal", x))


def _scaled(name: str, factor: float, sentence: str, example: str, result: str) -> declare.Unary:
    def function(x: ArrayLike, /) -> Array:
        return ops.mul(inexact_operand(name, x), factor)

    doc = (sentence, example, result)
    of = "floats or complex numbers"
    return declare.document(  # type: ignore[no-any-return]
        function, name, doc, __name__, takes=of, returns=f"of {of}", converts=True
    )


deg2rad = _scaled("deg2rad", math.pi / 180, "Convert degrees to radians.", "180", "3.1415927")
rad2deg = _scaled("rad2deg", 180 / math.pi, "Convert radians to degrees.", "0.0", "0.0")
radians = _scaled("radians", math.pi / 180, "Convert degrees to radians.", "180", "3.1415927")
degrees = _scaled("degrees", 180 / math.pi, "Convert radians to degrees.", "0.0", "0.0")


def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2 of each element.

    Args:
      x: an array of numbers, of any shape. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.log2(8.0))
    3.0
    """
    return ops.over(ops.log(strong(inexact_operand("log2", x))), math.log(2))


def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10 of each element.

    Args:
      x: an array of numbers, of any shape. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.log10(100.0))
    2.0
    """
    return ops.over(ops.log(strong(inexact_operand("log10", x))), math.log(10))


# Division with remainder -------------------------------------------------------------------------------------------


def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The largest integer not above ``x / y``, in the dtype of the operands; -1 for ``-5 / inf``, which is below zero.

    A float divided by zero is ``x / y``; an infinity divided by a number is NaN.

    Args:
      x, y: arrays of real numbers or booleans, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.floor_divide(-7, 2), jnp.floor_divide(7.5, 2))
    -4 3.0
    """
    a, b = numeric_pair("floor_divide", x, y)
    if dtypes.is_complex(a.dtype):
        raise DtypeError(f"floor_divide takes real numbers, got {dtypes.short_name(a.dtype)}")
    if not dtypes.is_integer(a.dtype):
        return floor_div_p.bind(a, b)
    if (quick := _quick_floor_divide(a, b)) is not None:
        return quick
    quotient = ops.div(a, b)
    if dtypes.is_unsigned(a.dtype):
        return quotient
    opposite = ops.ne_p.bind(ops.sign(a), ops.sign(b))
    inexact = ops.ne_p.bind(ops.rem_p.bind(a, b), 0)
    return ops.where(ops.and_p.bind(opposite, inexact), ops.sub(quotient, 1), quotient)


def _quick_floor_divide(a: Any, b: Any) -> Array | None:
    """Return the floor of quotients of integers that NumPy computes now; None for other operands, or a divisor of 0."""
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl or not state.trace.quick:
        return None
    x, y = a._host_value, b._host_value
    if type(x) is Absent or type(y) is Absent or x.dtype.isbuiltin != 1 or not y.all():
        return None
    try:
        return ArrayImpl(state.silently(np.floor_divide, x, y), a.weak_type and b.weak_type)
    except NUMPY_REFUSES:
        return None


def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The remainder ``x - floor(x / y) * y``, with the sign of ``y`` even if zero; 0 for integers divided by zero.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.remainder(-7, 3), jnp.remainder(5.5, -2))
    2 -0.5
    """
    a, b = numeric_pair("remainder", x, y)
    if dtypes.is_complex(a.dtype):
        raise DtypeError(f"remainder takes real numbers, got {dtypes.short_name(a.dtype)}")
    if not dtypes.is_integer(a.dtype):
        return floor_rem_p.bind(a, b)
    b = ops.where(ops.eq(b, 0), 1, b)
    rest = ops.rem_p.bind(a, b)
    return rest if dtypes.is_unsigned(a.dtype) else ops.where(is_above(rest, b), ops.add(rest, b), rest)


mod = remainder


def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The remainder of division towards zero, with the sign of ``x``.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fmod(-7, 3))
    -1
    """
    a, b = numeric_pair("fmod", x, y)
    return ops.rem_p.bind(a, ops.where(ops.eq(b, 0), 1, b) if dtypes.is_integer(b.dtype) else b)


def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """Return the quotients rounded down, and the remainders: :func:`floor_divide` and :func:`remainder`.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast.

    Returns:
      Two arrays of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.divmod(-7, 3))
    -3 2
    """
    a, b = numeric_pair("divmod", x, y)
    return floor_divide(a, b), remainder(a, b)


# Powers ------------------------------------------------------------------------------------------------------------


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise ``x`` to the power ``y``; for a Python integer ``y`` by multiplication.

    For complex numbers errors grow with ``abs(y * log(x))``, by about as many units in the last place
    (``docs/accuracy.md``).

    Args:
      x, y: arrays of numbers or booleans, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.
      Booleans become integers.

    Raises:
      DtypeError: integers to a concrete negative integer (a TypeError): convert ``x`` to floats.
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.power(2.0, 3), jnp.power(9.0, 0.5))
    8.0 3.0
    """
    if type(y) is int:
        x = numeric("power", x)
        if y < 0 and not dtypes.is_inexact(x.dtype):
            raise _negative_power(x, y)
        return state.trace.process(ops.integer_pow_p, (x,), {"y": y})
    a, b = promote("power", x, y)
    if not (type(a) in SCALARS or type(b) in SCALARS) or not dtypes.is_inexact((b if type(a) in SCALARS else a).dtype):
        a, b = numeric_pair("power", a, b)
    integers = not dtypes.is_inexact((b if type(a) in SCALARS else a).dtype)
    if integers and not isinstance(b, Tracer) and not getattr(b, "shape", ()) and int(b) < 0:
        raise _negative_power(x, y)
    return ops.pow(*(strong_pair(x, y, a, b) if integers or dtypes.is_integer(as_array(y).dtype) else (a, b)))


def _negative_power(x: Any, y: Any) -> DtypeError:
    return DtypeError(f"integers cannot be raised to negative powers: got {as_array(x).aval} and {y}; use floats")


pow = power


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise ``x`` to the power ``y``, as floats.

    Args:
      x, y: arrays of numbers or booleans, or Python numbers; their shapes broadcast. Integers and booleans become
        floats.

    Returns:
      An array of floats or complex numbers, of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.float_power(2, -1))
    0.5
    """
    return ops.pow(*inexact_pair("float_power", x, y))


def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The length of the hypotenuse, ``sqrt(x**2 + y**2)``, without overflow.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      Floats of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeValueError: an operand is complex (a TypeError and a ValueError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.hypot(3.0, 4.0))
    5.0
    """
    return ops.hypot_p.bind(*strong_pair(x, y, *_real_pair("hypot", x, y)))


def arctan2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The angle of the point with ordinate ``x`` and abscissa ``y``, from -pi to pi.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      Floats of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeValueError: an operand is complex (a TypeError and a ValueError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.arctan2(0.0, 1.0))
    0.0
    """
    return ops.atan2_p.bind(*_real_pair("arctan2", x, y))


atan2 = arctan2


def _real_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    a, b = inexact_pair(name, x, y)
    if dtypes.is_complex(a.dtype):
        raise DtypeValueError(f"{name} takes real numbers, got {dtypes.short_name(a.dtype)}")
    return a, b


@declare.positional
def logaddexp(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Compute ``log(exp(x) + exp(y))`` without overflow.

    Derivatives have errors of up to ``abs(x - y) / 2`` units in the last place (``docs/accuracy.md``). For complex
    numbers the sum may cancel, which amplifies the rounding error of ``x - y``.

    Args:
      x, y: arrays of numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.logaddexp(1000.0, 0.0))
    1000.0
    """
    if out is not None or where is not None:
        declare.refuse_options("logaddexp", out, where)
    a, b = inexact_pair("logaddexp", x, y)
    if not dtypes.is_complex(a.dtype):
        return ops.logaddexp_p.bind(a, b)
    a, b = strong_pair(x, y, a, b)
    first = ops.gt(ops.real(a), ops.real(b))
    larger, smaller = ops.where(first, a, b), ops.where(first, b, a)
    difference = ops.where(ops.eq(a, b), 0, ops.sub(smaller, larger))
    out = ops.add(larger, ops.log1p_p.bind(ops.exp(difference)))
    # The imaginary part is the imaginary part of a logarithm, from -pi to pi.
    turns = ops.round_p.bind(ops.div(ops.imag(stop_gradient(out)), 2 * math.pi))
    wrapped = ops.sub(ops.imag(out), ops.mul(turns, 2 * math.pi))
    return ops.complex_p.bind(ops.real(out), ops.where(ops.is_finite_p.bind(turns), wrapped, ops.imag(out)))


@declare.positional
def logaddexp2(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Compute ``log2(2**x + 2**y)`` without overflow.

    Derivatives have errors of up to ``abs(x - y) / 2`` units in the last place (``docs/accuracy.md``).

    Args:
      x, y: arrays of numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.logaddexp2(1000.0, 1000.0))
    1001.0
    """
    if out is not None or where is not None:
        declare.refuse_options("logaddexp2", out, where)
    a, b = strong_pair(x, y, *inexact_pair("logaddexp2", x, y))
    log_two = math.log(2)
    return ops.div(logaddexp(ops.mul(a, log_two), ops.mul(b, log_two)), log_two)


def sinc(x: ArrayLike, /) -> Array:
    """Compute ``sin(pi x) / (pi x)``, which is 1 at zero, with all its derivatives there, and 0 at infinity.

    Near zero it is the Taylor polynomial, so that derivatives of any order are right. For complex numbers errors grow
    with the imaginary part, to ``4 * abs(imag(x))`` units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of numbers, of any shape. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.sinc(0.0), jnp.sinc(0.5))
    1.0 0.63661975
    """
    x = inexact_operand("sinc", x)
    if type(x) is ArrayImpl and x.shape and x.dtype.char in "fd" and not recorders and is_on_host(x):
        return ArrayImpl(state.silently(_sinc_of_host, host_value(x)), x.weak_type)
    u = ops.mul(x, math.pi)
    near = ops.lt(ops.abs(u), 1)
    small = ops.where(near, u, 0)
    minus_square = ops.neg(ops.square(small))
    polynomial: Any = 1.0 / math.factorial(25)
    for k in range(23, 0, -2):
        polynomial = ops.add(ops.mul(minus_square, polynomial), 1.0 / math.factorial(k))
    far = ops.eq(ops.abs(ops.real(x) if dtypes.is_complex(x.dtype) else x), math.inf)
    elsewhere = ops.where(ops.or_p.bind(near, far), 2, x)  # at 2 the quotient is 0
    return ops.where(near, polynomial, _sine_quotient(elsewhere))


def _sinc_of_host(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values alone, by :func:`_sine_quotient` in NumPy: a quarter of the passes over the elements."""
    nearest = np.rint(x)
    out = np.subtract(x, nearest)
    out *= math.pi
    np.sin(out, out=out)
    nearest *= 0.5
    np.negative(out, out=out, where=np.floor(nearest) != nearest)
    np.multiply(x, math.pi, out=nearest)
    out /= nearest
    out[x == 0] = 1
    out[np.isinf(x)] = 0
    return out


def _sine_quotient(x: Any) -> Any:
    """Return ``sin(pi x) / (pi x)``, with the sine computed from the distance of ``x`` to the nearest integer.

    That distance has no rounding error.
    """
    plane = dtypes.is_complex(x.dtype)
    nearest = ops.round_p.bind(ops.real(x) if plane else x)
    half = ops.mul(nearest, 0.5)
    even = ops.eq(ops.floor_p.bind(half), half)
    center = ops.complex(nearest, shapes.zeros_like(nearest)) if plane else nearest
    sine = ops.sin(ops.mul(ops.sub(x, center), math.pi))
    return ops.div(ops.where(even, sine, ops.neg(sine)), ops.mul(x, math.pi))


# Rounding ----------------------------------------------------------------------------------------------------------


def _rounding(name: str, primitive: Any, sentence: str, result: str) -> declare.Unary:
    def function(x: ArrayLike, /) -> Array:
        x = operand(name, x)
        return primitive.bind(x) if dtypes.is_inexact(x.dtype) else another(number_operand(name, x))

    doc = (sentence, "-2.5", result)
    return declare.document(  # type: ignore[no-any-return]
        function, name, doc, __name__, takes="real numbers or booleans", returns="of the dtype of ``x``"
    )


floor = _rounding("floor", ops.floor_p, "The largest integer not above ``x``; integers are unchanged.", "-3.0")
ceil = _rounding("ceil", ops.ceil_p, "The smallest integer not below ``x``; integers are unchanged.", "-2.0")


def trunc(x: ArrayLike) -> Array:
    """The integer next to ``x`` towards zero; integers are unchanged.

    Args:
      x: an array of real numbers or booleans, of any shape.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.trunc(-2.5))
    -2.0
    """
    x = operand("trunc", x)
    if not dtypes.is_inexact(x.dtype):
        return another(number_operand("trunc", x))
    return ops.where(ops.lt(x, 0), ops.ceil_p.bind(x), ops.floor_p.bind(x))


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, as a float; halves go to the even one.

    Args:
      x: an array of numbers or booleans, of any shape. Integers and booleans become floats.

    Returns:
      An array of floats or complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.rint(2.5))
    2.0
    """
    x = operand("rint", x)
    return _round_components(x if dtypes.is_inexact(x.dtype) else strong(inexact_operand("rint", x)))


def _round_components(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return ops.complex(ops.round_p.bind(ops.real(x)), ops.round_p.bind(ops.imag(x)))
    return ops.round_p.bind(x)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round ``a`` to ``decimals`` places, halves to the even neighbour; integers keep their dtype.

    Args:
      a: an array of numbers.
      decimals: the number of places after the point; before it if negative.
      out: must be None.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      DtypeError: ``a`` is boolean (a TypeError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.round(2.345, 2), jnp.round(1250, -2))
    2.34 1200
    """
    refuse_out("round", out)
    a, digits = operand("round", a), known_int("round", "decimals", decimals)
    if dtypes.is_bool(a.dtype):
        raise DtypeError("round takes numbers, got bool")
    if not dtypes.is_inexact(a.dtype):
        number_operand("round", a)
        return another(a) if digits >= 0 else _round_integers(a, -digits)
    if digits == 0:
        return _round_components(a)
    if dtypes.is_complex(a.dtype):
        return ops.complex(*[_round_floats(component, digits) for component in (ops.real(a), ops.imag(a))])
    wide = convert_element_type(a, np.dtype(np.float32), a.weak_type) if a.dtype.itemsize < 4 else a
    return convert_element_type(_round_floats(wide, digits), a.dtype, a.weak_type)


around = round


def _round_floats(a: Any, digits: int) -> Any:
    """Round floats to ``digits`` digits after the point (before the point, if negative).

    ``digits`` may be so large or so small that the power of ten overflows.
    """
    most = int(np.log10(float(dtypes.finfo(a.dtype).max)))  # larger powers of ten are infinite
    if digits < 0:
        tens = ops.mul(a, 0)
        if -digits <= most:
            tens = ops.mul(_round_components(ops.div(a, 10.0**-digits)), 10.0**-digits)
        return ops.where(ops.is_finite_p.bind(a), tens, ops.stop_gradient_p.bind(a))
    if digits > most:
        return ops.stop_gradient_p.bind(a)
    scaled = ops.mul(a, 10.0**digits)
    rounded = ops.div(_round_components(scaled), 10.0**digits)
    return ops.where(ops.is_finite_p.bind(scaled), rounded, ops.stop_gradient_p.bind(a))  # no digits to round


def _round_integers(a: Any, digits: int) -> Any:
    if not dtypes.holds(a.dtype, unit := 10**digits):
        return ops.mul(a, 0)
    quotient, rest = divmod(a, unit)
    other = ops.sub(unit, rest)
    odd = ops.eq(ops.and_p.bind(quotient, 1), 1)
    up = ops.or_p.bind(ops.gt(rest, other), ops.and_p.bind(ops.eq(rest, other), odd))
    return ops.mul(ops.add(quotient, convert_element_type(up, a.dtype)), unit)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part, both with the sign of ``x``.

    Args:
      x: real numbers; integers become floats.
      out: not supported, for arrays are immutable.

    Returns:
      Two arrays of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.modf(-2.5))
    -0.5 -2.0
    """
    refuse_out("modf", out)
    x = inexact_operand("modf", x)
    integral = trunc(x)
    infinite = ops.eq(ops.abs(x), math.inf)
    return ops.where(infinite, 0, ops.sub(x, integral)), integral


# Components of complex numbers -------------------------------------------------------------------------------------


def real(val: ArrayLike, /) -> Array:
    """The real part; a real value is unchanged.

    Args:
      val: an array of numbers or booleans, of any shape.

    Returns:
      An array of the shape of ``val``, of the dtype of its parts.

    Raises:
      OperandError: ``val`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.real(1 + 2j))
    1.0
    """
    val = operand("real", val)
    return ops.real(val) if dtypes.is_complex(val.dtype) else another(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real values.

    Args:
      val: an array of numbers or booleans, of any shape.

    Returns:
      An array of the shape of ``val``, of the dtype of its parts.

    Raises:
      OperandError: ``val`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.imag(1 + 2j))
    2.0
    """
    val = operand("imag", val)
    if dtypes.is_complex(val.dtype):
        return ops.imag(val)
    return shapes.full_beside(val, 0, val.dtype, val.weak_type)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; a real value is unchanged.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.conjugate(1 + 2j))
    (1-2j)
    """
    x = operand("conjugate", x)
    return ops.conj(x) if dtypes.is_complex(x.dtype) else another(x)


conj = conjugate


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of a complex number, from -pi to pi, or in degrees.

    Args:
      z: an array of numbers, of any shape.
      deg: whether to return degrees; otherwise radians.

    Returns:
      Floats of the shape of ``z``.

    Raises:
      OperandError: ``z`` is neither an array nor a number (a TypeError).
      ArgumentError: ``deg`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.angle(1j, deg=True))
    90.0
    """
    deg = flag("angle", "deg", deg)
    z = inexact_operand("angle", z)
    if dtypes.is_complex(z.dtype):
        result = ops.atan2_p.bind(ops.imag(z), ops.real(z))
    else:
        result = ops.atan2_p.bind(shapes.zeros_like(z), z)
    return rad2deg(result) if deg else result


# Components of floats ----------------------------------------------------------------------------------------------


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set: true for -0.0.

    Args:
      x: an array of real numbers, of any shape.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.signbit(-0.0))
    True
    """
    x = number_operand("signbit", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError("signbit takes real numbers, got complex ones")
    if dtypes.is_float(x.dtype):
        x = ops.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    elif not dtypes.is_integer(x.dtype) or dtypes.is_unsigned(x.dtype):
        return shapes.full(x.shape, False, np.dtype(bool))
    return ops.lt(x, 0)


def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Give ``x`` the sign of ``y``.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      Floats of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeValueError: an operand is complex (a TypeError and a ValueError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.copysign(2.0, -0.0))
    -2.0
    """
    a, b = _real_pair("copysign", x, y)
    a = a if b.weak_type else strong(a)
    return ops.where(ops.ne_p.bind(signbit(a), signbit(b)), ops.neg(a), a)


def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next float away from zero; the rounding error of a number is at most half of it.

    It has the sign of ``x``, and is NaN for infinities. It is constant between powers of two, so that its derivative is
    zero. For float16, as in NumPy, it is the distance to the next float above, and positive.

    Args:
      x: an array of real numbers, of any shape. Integers and booleans become floats.

    Returns:
      Floats of the shape of ``x``.

    Raises:
      DtypeError: ``x`` is complex (a TypeError).
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.spacing(jnp.array([1.0, -1024.0])))
    [ 1.1920929e-07 -1.2207031e-04]
    """
    x = inexact_operand("spacing", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"spacing takes real numbers, got {dtypes.short_name(x.dtype)}")
    x = operand("spacing", stop_gradient(x))
    # By bits, for compiled programs treat subnormal numbers as zero.
    digits, limits = int(dtypes.finfo(x.dtype).nmant), dtypes.finfo(x.dtype)
    of_bits = np.dtype(f"uint{8 * x.dtype.itemsize}")
    bits = ops.bitcast_convert_type(x, of_bits)
    sign = ops.and_p.bind(bits, of_bits.type(1 << (8 * of_bits.itemsize - 1)))
    size = ops.xor_p.bind(bits, sign)
    exponent, one = ops.shift_right_logical_p.bind(size, of_bits.type(digits)), of_bits.type(1)
    normal = ops.shift_left_p.bind(ops.sub(exponent, of_bits.type(digits)), of_bits.type(digits))
    below = ops.shift_left_p.bind(shapes.full(x.shape, 1, of_bits), ops.sub(ops.max_p.bind(exponent, one), one))
    gap = ops.where(ops.gt(exponent, of_bits.type(digits)), normal, below)
    out = ops.bitcast_convert_type(ops.or_p.bind(gap, sign), x.dtype)
    if x.dtype == np.float16:
        return _gap_above(x, gap, exponent)
    largest = ops.eq(ops.abs(x), np.asarray(limits.max, x.dtype))
    out = ops.where(largest, ops.mul(x, np.asarray(math.inf, x.dtype)), out)
    return ops.where(ops.is_finite_p.bind(x), out, np.asarray(math.nan, x.dtype))


def _gap_above(x: Any, gap: Any, exponent: Any) -> Any:
    """Return the distance from a float16 ``x`` to the next larger float16.

    ``gap`` holds the bits of the distance from ``abs(x)`` to the next larger float16, and ``exponent`` the exponent
    bits of ``x``. For a negative power of two the distance is half of ``gap``.
    """
    gap = ops.bitcast_convert_type(gap, x.dtype)
    power = ops.eq(ops.and_p.bind(ops.bitcast_convert_type(x, np.dtype(np.uint16)), np.uint16(0x3FF)), 0)
    halved = ops.and_p.bind(ops.and_p.bind(power, ops.lt(x, 0)), ops.gt(exponent, np.uint16(1)))
    out = ops.where(halved, ops.mul(gap, np.float16(0.5)), gap)
    out = ops.where(ops.eq(x, np.finfo(np.float16).max), np.float16(math.inf), out)
    return ops.where(ops.is_finite_p.bind(x), out, np.float16(math.nan))


def heaviside(x: ArrayLike, y: ArrayLike, /) -> Array:
    """0 for negative ``x``, ``y`` at zero, 1 for positive ``x``.

    Args:
      x, y: arrays of real numbers, or Python numbers; their shapes broadcast. Integers and booleans become floats.

    Returns:
      Floats of the shape to which ``x`` and ``y`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeValueError: an operand is complex (a TypeError and a ValueError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.heaviside(0.0, 0.5))
    0.5
    """
    a, b = _real_pair("heaviside", x, y)
    step = ops.where(ops.lt(a, 0), 0, ops.where(ops.gt(a, 0), 1, a))
    return ops.where(ops.eq(a, 0), b, step)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``x1 * 2**x2`` for integers ``x2``, without intermediate overflow.

    Args:
      x1: an array of real numbers, or a Python number.
      x2: an array of integers, which broadcasts with ``x1``, or a Python integer.

    Returns:
      Floats of the shape to which ``x1`` and ``x2`` broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: ``x1`` is complex, or ``x2`` is not of integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ldexp(0.75, 2))
    3.0
    """
    mantissa, exponent = inexact_operand("ldexp", x1), operand("ldexp", x2)
    if recorders and config.numpy_rank_promotion != "allow":
        promotion.check_ranks("ldexp", mantissa, exponent)
    if dtypes.is_complex(mantissa.dtype):
        raise DtypeError("ldexp takes real numbers, got complex ones")
    if not dtypes.is_integer(exponent.dtype) and not dtypes.is_bool(exponent.dtype):
        raise DtypeError(f"ldexp takes integer exponents, got {dtypes.short_name(exponent.dtype)}")
    exponent = convert_element_type(exponent, dtypes.default_int())
    # Three factors, each a normal number.
    limit = -int(np.log2(float(dtypes.finfo(mantissa.dtype).tiny)))
    for _ in range(3):
        step = ops.clamp_p.bind(-limit, exponent, limit)
        mantissa = ops.mul(mantissa, ops.exp2_p.bind(convert_element_type(step, mantissa.dtype)))
        exponent = ops.sub(exponent, step)
    return mantissa


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """A mantissa from 0.5 to 1, and an integer exponent of 2, whose product is ``x``.

    Args:
      x: an array of real numbers, of any shape. Integers and booleans become floats.

    Returns:
      Two arrays of the shape of ``x``: floats, and integers.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.frexp(3.0))
    0.75 2
    """
    x = inexact_operand("frexp", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError("frexp takes real numbers, got complex ones")
    info = dtypes.finfo(x.dtype)
    subnormal = ops.lt(ops.abs(x), float(info.tiny))
    lifted = ops.where(subnormal, ops.mul(x, 2.0**info.nmant), x)
    bits = np.dtype(f"int{8 * x.dtype.itemsize}")
    exponents = ops.and_p.bind(
        ops.shift_right_arithmetic_p.bind(ops.bitcast_convert_type(lifted, bits), shapes.full((), info.nmant, bits)),
        2**info.iexp - 1,
    )
    exponent = ops.sub(convert_element_type(exponents, dtypes.default_int()), 2 ** (info.iexp - 1) - 2)
    exponent = ops.sub(exponent, ops.where(subnormal, shapes.full((), info.nmant, exponent.dtype), 0))
    plain = ops.or_p.bind(ops.eq(x, 0), ops.not_p.bind(ops.is_finite_p.bind(x)))
    exponent = ops.where(plain, 0, exponent)
    return ldexp(x, ops.neg(exponent)), exponent


for _function, _identity in (
    (add, 0), (subtract, None), (multiply, 1), (maximum, None), (minimum, None), (logaddexp, -math.inf),
    (logaddexp2, -math.inf),
):  # fmt: skip
    with_methods(_function, 2, _identity)
with_methods(negative, 1)

__all__ = declare.public_names(__name__, globals())
