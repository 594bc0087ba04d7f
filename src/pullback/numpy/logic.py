# long: because there are many functions, each with its docstring
"""Elementwise comparisons, logic, operations on bits, predicates of numbers, and selection."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast, overload

import numpy as np

from pullback.backends.host import rules
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, HasShapeAndDtype
from pullback.core.arguments import flag
from pullback.core.array import SCALARS, Array, ArrayImpl, ArrayLike
from pullback.core.config import config, numpy_dtype_promotion, numpy_rank_promotion
from pullback.core.errors import ArgumentError, DtypeError, DtypeValueError, ShapeError
from pullback.core.trace import Primitive, recorders, state
from pullback.numpy import declare, promotion
from pullback.numpy.declare import inexact_pair, numeric, numeric_pair
from pullback.numpy.promotion import (
    another,
    inexact_operand,
    named,
    number_operand,
    operand,
    promote,
    promote_all,
    refuse_out,
    sequence,
    strong,
)
from pullback.numpy.ufunc_objects import with_methods
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import broadcast_shape

_binary = partial(declare.binary, module=__name__)
_VALUES = "numbers or booleans"
_bool = np.dtype(bool)

# Comparisons -------------------------------------------------------------------------------------------------------


def _comparison(
    name: str, primitive: Primitive, sentence: str, example: str, result: str, strict: Primitive | None = None
) -> declare.Binary:
    """Make a public comparison function, such as ``less``.

    The function compares integers by value, even if no dtype holds both operands. It compares complex numbers by their
    real parts, with ``strict``; and where these are equal, by their imaginary parts, with ``primitive``.

    Args:
      name: the name of the function.
      primitive: the primitive that compares real numbers.
      sentence, example, result: the docstring's first sentence, its example, and the output of the example.
      strict: the strict comparison, for complex numbers. If it is None, ``primitive`` compares these too.
    """

    def function(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            declare.refuse_options(name, out, where)
        a, b = promote(name, x, y)
        if a is not x or b is not y:
            first, second = operand(name, x), operand(name, y)
            if dtypes.is_integer(first.dtype) and dtypes.is_integer(second.dtype):
                return _integers_compared(primitive, first, second)
        elif type(a) is int:
            if (compared := _out_of_range(primitive, a, b, b)) is not None:
                return compared
        elif type(b) is int and (compared := _out_of_range(primitive, a, b, a)) is not None:
            return compared
        if strict is not None and dtypes.is_complex(b.dtype if type(a) in SCALARS else a.dtype):
            return _lexicographic(primitive, strict, *declare.no_numbers(a, b))
        try:
            return primitive.bind(a, b)
        except OverflowError:  # next to floats, an int that overflows is as good as infinite
            return primitive.bind(*[n if type(n) is not int else math.inf if n > 0 else -math.inf for n in (a, b)])

    doc = (sentence, example, result)
    return declare.document(  # type: ignore[no-any-return]
        declare.positional(function), name, doc, __name__, takes=_VALUES, returns="of booleans"
    )


def _out_of_range(primitive: Primitive, a: Any, b: Any, array: Any) -> Any:
    """Compare an integer array with an int that the array's dtype cannot hold; return None if it can.

    Args:
      primitive: the comparison.
      a, b: the operands: the array and the int, in any order.
      array: the operand that is the array.
    """
    number = b if array is a else a
    if not dtypes.is_integer(array.dtype) or dtypes.holds(array.dtype, number):
        return None
    compare: Any = primitive.host_rule
    return shapes.full(array.shape, compare(*((0, number) if array is a else (number, 0))), _bool)


def _integers_compared(primitive: Primitive, a: Any, b: Any) -> Any:
    """Compare integer arrays of two dtypes by value with ``primitive``, even if no integer dtype holds both."""
    dtype = dtypes.integer_for(a.dtype, b.dtype)
    if dtype is not None:
        return primitive.bind(ops.convert_element_type(a, dtype), ops.convert_element_type(b, dtype))
    # One dtype is signed, the other unsigned with as many bits. A negative number is below all unsigned numbers; other
    # numbers are compared as unsigned.
    unsigned = b.dtype if not dtypes.is_unsigned(a.dtype) else a.dtype
    below, compare = ops.lt(a if unsigned == b.dtype else b, 0), cast(Any, primitive.host_rule)
    result = primitive.bind(ops.convert_element_type(a, unsigned), ops.convert_element_type(b, unsigned))
    if compare(-1, 0) if unsigned == b.dtype else compare(0, -1):
        return ops.or_p.bind(below, result)
    return ops.and_p.bind(ops.not_p.bind(below), result)


def _lexicographic(primitive: Primitive, strict: Primitive, a: Any, b: Any) -> Any:
    by_imag = primitive.bind(ops.imag(a), ops.imag(b))
    real_a, real_b = ops.real(a), ops.real(b)
    return ops.where(ops.eq(real_a, real_b), by_imag, strict.bind(real_a, real_b))


equal = _comparison("equal", ops.eq_p, "Whether elements are equal: ``x == y``.", "1, 1.0", "True")
not_equal = _comparison("not_equal", ops.ne_p, "Whether elements differ: ``x != y``.", "1, 1.0", "False")


def _ordering(name: str, primitive: Primitive, strict: Primitive, symbol: str, result: str) -> declare.Binary:
    sentence = f"Whether ``x {symbol} y``; complex numbers are compared by their real, then imaginary, parts."
    return _comparison(name, primitive, sentence, "1, 2.0", result, strict)


less = _ordering("less", ops.lt_p, ops.lt_p, "<", "True")
less_equal = _ordering("less_equal", ops.le_p, ops.lt_p, "<=", "True")
greater = _ordering("greater", ops.gt_p, ops.gt_p, ">", "False")
greater_equal = _ordering("greater_equal", ops.ge_p, ops.gt_p, ">=", "False")

# Logic -------------------------------------------------------------------------------------------------------------


def _truth(name: str, x: Any) -> Any:
    """Convert an operand to booleans: True where an element is not zero. ``name`` is the function, for errors."""
    x = operand(name, x)
    return x if dtypes.is_bool(x.dtype) else ops.ne_p.bind(number_operand(name, x), 0)


def _logical(name: str, primitive: Any, sentence: str, result: str) -> declare.BinaryUfunc:
    def function(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            declare.refuse_options(name, out, where)
        if recorders and config.numpy_rank_promotion != "allow":
            promotion.check_ranks(name, x, y)
        return primitive.bind(_truth(name, x), _truth(name, y))

    doc = (sentence, "True, 0.0", result)
    return declare.document(  # type: ignore[no-any-return]
        declare.positional(function), name, doc, __name__, takes=_VALUES, returns="of booleans"
    )


logical_and = _logical("logical_and", ops.and_p, "Whether both operands are not zero.", "False")
logical_or = _logical("logical_or", ops.or_p, "Whether one of the operands is not zero.", "True")
logical_xor = _logical("logical_xor", ops.xor_p, "Whether exactly one of the operands is not zero.", "True")


def logical_not(x: ArrayLike, /) -> Array:
    """Whether ``x`` is zero.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.logical_not(0.0))
    True
    """
    return ops.not_p.bind(_truth("logical_not", x))


# Bits --------------------------------------------------------------------------------------------------------------

bitwise_and = _binary("bitwise_and", ops.and_p)
bitwise_or = _binary("bitwise_or", ops.or_p)
bitwise_xor = _binary("bitwise_xor", ops.xor_p)


def invert(x: ArrayLike, /) -> Array:
    """The complement of the bits, or of booleans.

    Args:
      x: an array of integers or booleans, of any shape.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.invert(0))
    -1
    """
    return ops.not_p.bind(operand("invert", x))


bitwise_not = bitwise_invert = invert


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Shift ``x`` by ``y`` bits to the left; the result is zero if that is too far.

    Args:
      x, y: arrays of integers, or Python integers; their shapes broadcast.

    Returns:
      Integers of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is not of integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.left_shift(3, 2))
    12
    """
    return ops.shift_left_p.bind(*_integers("left_shift", *numeric_pair("left_shift", x, y)))


def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Shift ``x`` by ``y`` bits to the right; the sign is kept.

    Args:
      x, y: arrays of integers, or Python integers; their shapes broadcast.

    Returns:
      Integers of the shape to which ``x`` and ``y`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is not of integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.right_shift(-8, 1))
    -4
    """
    a, b = _integers("right_shift", *numeric_pair("right_shift", x, y))
    unsigned = dtypes.is_unsigned(a.dtype)
    return (ops.shift_right_logical_p if unsigned else ops.shift_right_arithmetic_p).bind(a, b)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits that are set in the absolute value of ``x``, as uint8.

    Args:
      x: an array of integers or booleans, of any shape.

    Returns:
      An array of dtype ``uint8``, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.bitwise_count(-7))
    3
    """
    x = numeric("bitwise_count", x)
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"bitwise_count takes integers, got {dtypes.short_name(x.dtype)}")
    magnitude = ops.abs(x) if not dtypes.is_unsigned(x.dtype) else x
    return ops.convert_element_type(ops.population_count_p.bind(magnitude), np.dtype("uint8"))


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers.

    Args:
      x1, x2: arrays of integers, or Python integers; their shapes broadcast.

    Returns:
      Integers of the shape to which ``x1`` and ``x2`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is not of integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.gcd(12, -18))
    6
    """
    return ops.gcd_p.bind(*_integers("gcd", x1, x2))


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers.

    Args:
      x1, x2: arrays of integers, or Python integers; their shapes broadcast.

    Returns:
      Integers of the shape to which ``x1`` and ``x2`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: an operand is not of integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.lcm(4, 6))
    12
    """
    a, b = _integers("lcm", x1, x2)
    a, b = (a, b) if dtypes.is_unsigned(a.dtype) else (ops.abs(a), ops.abs(b))
    divisor = ops.gcd_p.bind(a, b)
    return ops.mul(a, ops.div(b, ops.where(ops.eq(divisor, 0), 1, divisor)))


def _integers(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    a, b = declare.strong_pair(x, y, *declare.no_numbers(*promote(name, x, y)))
    if not dtypes.is_integer(a.dtype):
        raise DtypeError(f"{name} takes integers, got {dtypes.short_name(a.dtype)}")
    return a, b


# Kinds of numbers --------------------------------------------------------------------------------------------------


def isfinite(x: ArrayLike, /) -> Array:
    """Whether ``x`` is finite: not infinite and not NaN.

    Args:
      x: an array of any shape and dtype.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isfinite(1.0))
    True
    """
    x = operand("isfinite", x)
    return ops.is_finite_p.bind(x) if dtypes.is_inexact(x.dtype) else _all(x, True)


def isinf(x: ArrayLike, /) -> Array:
    """Whether ``x`` is infinite.

    Args:
      x: an array of any shape and dtype.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isinf(-jnp.inf))
    True
    """
    x = operand("isinf", x)
    if dtypes.is_complex(x.dtype):
        return ops.or_p.bind(isinf(ops.real(x)), isinf(ops.imag(x)))
    return ops.eq(ops.abs(x), math.inf) if dtypes.is_inexact(x.dtype) else _all(x, False)


def isnan(x: ArrayLike, /) -> Array:
    """Whether ``x`` is NaN.

    Args:
      x: an array of any shape and dtype.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isnan(jnp.nan))
    True
    """
    x = operand("isnan", x)
    return ops.ne_p.bind(x, x) if dtypes.is_inexact(x.dtype) else _all(x, False)


def _signed_infinity(name: str, value: float, sentence: str, example: str) -> declare.Unary:
    def function(x: ArrayLike, /, out: None = None) -> Array:
        x = operand(name, x)
        refuse_out(name, out)
        if dtypes.is_complex(x.dtype):
            raise DtypeError(f"{name} is not defined for complex numbers")
        return ops.eq(x, value) if dtypes.is_inexact(x.dtype) else _all(x, False)

    doc = (sentence, example, "True")
    return declare.document(  # type: ignore[no-any-return]
        function, name, doc, __name__, takes="real numbers or booleans", returns="of booleans"
    )


isposinf = _signed_infinity("isposinf", math.inf, "Whether ``x`` is infinity.", "jnp.inf")
isneginf = _signed_infinity("isneginf", -math.inf, "Whether ``x`` is minus infinity.", "-jnp.inf")


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isreal(1 + 0j))
    True
    """
    x = number_operand("isreal", x)
    return ops.eq(ops.imag(x), 0) if dtypes.is_complex(x.dtype) else _all(x, True)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    Args:
      x: an array of numbers or booleans, of any shape.

    Returns:
      Booleans of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.iscomplex(1 + 0j))
    False
    """
    x = number_operand("iscomplex", x)
    return ops.ne_p.bind(ops.imag(x), 0) if dtypes.is_complex(x.dtype) else _all(x, False)


@named
def isrealobj(x: ArrayLike | HasShapeAndDtype | DTypeLike) -> bool:
    """Whether a dtype, or the dtype of an array, of nested lists or of an object with shape and dtype, is not complex.

    Args:
      x: a dtype, an array, nested lists of numbers, or an object with shape and dtype.

    Returns:
      A bool of Python's.

    >>> import pullback.numpy as jnp
    >>> jnp.isrealobj(1 + 0j)
    False
    """
    return not iscomplexobj(x)


def iscomplexobj(x: ArrayLike | HasShapeAndDtype | DTypeLike) -> bool:
    """Whether a dtype, or the dtype of an array, of nested lists or of an object with shape and dtype, is complex.

    Args:
      x: a dtype, an array, nested lists of numbers, or an object with shape and dtype.

    Returns:
      A bool of Python's.

    >>> import pullback.numpy as jnp
    >>> jnp.iscomplexobj(1 + 0j)
    True
    """
    from pullback.numpy.creation import type_of

    if x is None:
        return False
    own = getattr(x, "dtype", None)
    if dtypes.is_dtype(own) and not isinstance(x, (np.ndarray, np.generic)):  # NumPy's may hold objects
        return dtypes.is_complex(own)
    if isinstance(x, type) or dtypes.is_dtype(x):
        return dtypes.is_complex(dtypes.exact_dtype(x))
    return dtypes.is_complex(type_of("iscomplexobj", x).dtype)


def _all(x: Any, value: bool) -> Any:
    return shapes.full_beside(x, value, _bool)


# Choice ------------------------------------------------------------------------------------------------------------


@overload
def where(
    condition: ArrayLike | Sequence[Any], /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...  # fmt: skip
def where(
    condition: ArrayLike | Sequence[Any],
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Select ``x`` where the condition holds, else ``y``; without them, return the indices where it holds.

    No derivative flows through an element that is not selected.

    Args:
      condition: booleans, of any shape that broadcasts with ``x`` and ``y``; other numbers hold if they are not zero.
      x, y: arrays or numbers, promoted to one dtype; pass both or none.
      size, fill_value: without ``x`` and ``y``, the number of indices to return, and the value of missing ones; as in
        :func:`nonzero`, which needs ``size`` if the condition is traced.

    Returns:
      An array of the shape to which the arguments broadcast; without ``x`` and ``y`` a tuple of vectors of integers.

    Raises:
      ShapeError: one of ``x`` and ``y`` is missing (a ValueError).
      ArgumentError: ``size`` or ``fill_value`` together with ``x`` and ``y`` (a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.where(jnp.array([True, False]), 1.0, 2.0))
    [1. 2.]
    >>> print(*jnp.where(jnp.array([True, False, True]), size=3, fill_value=-1))
    [ 0  2 -1]
    """
    if x is None and y is None:
        from pullback.numpy.creation import listed
        from pullback.numpy.indexing import nonzero

        return nonzero(listed("where", condition), size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ArgumentError("where takes size and fill_value only without x and y, when it returns indices")
    if x is None or y is None:
        raise ShapeError("pass both x and y to where, or neither of them")
    which = _truth("where", condition)
    a, b = promote("where", x, y, ranks=False)
    try:
        return ops.select_n(which, b, a)
    except (OverflowError, DtypeError) as error:
        a, b = declare.wrapped("where", (a, b), error)
        return ops.select_n(which, b, a)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The elements of the first choice whose condition holds, else ``default``.

    Args:
      condlist: arrays of booleans, which broadcast with the choices.
      choicelist: as many arrays; with ``default`` they are promoted to one dtype.
      default: a number or an array.

    Returns:
      An array of the shape to which the arguments broadcast.

    Raises:
      ShapeError: there are no conditions, or not as many as choices (a TypeError and a ValueError).
      DtypeError: a condition is not boolean (a TypeError).

    >>> import pullback.numpy as jnp
    >>> x = jnp.arange(4)
    >>> print(jnp.select([x < 1, x < 3], [x, 10 * x], -1))
    [ 0 10 20 -1]
    """
    condlist, choicelist = sequence("select", condlist), sequence("select", choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(
            f"select takes as many conditions as choices, at least one; got {len(condlist)} and {len(choicelist)}"
        )
    if recorders and config.numpy_rank_promotion != "allow":
        promotion.check_ranks("select", *condlist, *choicelist, default)
    *choices, result = promote_all("select", (*choicelist, default))
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        condition = operand("select", condition)
        if not dtypes.is_bool(condition.dtype):
            raise DtypeError(f"select takes boolean conditions, got {dtypes.short_name(condition.dtype)}")
        result = ops.where(condition, choice, result)
    return result


def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The values of ``arr`` limited to the interval from ``min`` to ``max``.

    Args:
      arr: an array of real numbers.
      min: the least value, an array that broadcasts with ``arr``; None for no limit.
      max: the greatest value, likewise; where ``min`` is greater, ``max`` is the result.

    Returns:
      An array of the shape to which the arguments broadcast, of the dtype to which they promote.

    Raises:
      OperandError: ``arr`` is neither an array nor a number (a TypeError).
      DtypeValueError: an argument is complex (a TypeError and a ValueError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.clip(jnp.array([-1.0, 0.5, 2.0]), 0, 1))
    [0.  0.5 1. ]
    """
    are_floats = type(min) is float and type(max) is float and type(arr) is ArrayImpl and arr.dtype in declare.REAL
    if are_floats and state.trace.quick:
        if (quick := declare.quickly(_host_clip, arr, min, max)) is not None:
            return quick
        return ops.clamp_p.bind(min, arr, max)  # type: ignore[no-any-return]
    out = operand("clip", arr)
    if dtypes.is_complex(out.dtype):
        raise DtypeValueError("clip takes real numbers, because complex numbers have no order")
    for bound, primitive in ((min, ops.max_p), (max, ops.min_p)):
        if bound is None:
            continue
        a, b = declare.no_numbers(*promote("clip", out, _within(out, bound)))
        if dtypes.is_complex(a.dtype):
            raise DtypeValueError("clip takes real numbers, because complex numbers have no order")
        out = primitive.bind(a, b)
    return out


def _host_clip(x: Any, low: float, high: float) -> Any:
    if low and high:  # no result depends on the sign of a zero
        return np.minimum(np.maximum(x, low), high)
    return rules.clamp(low, x, high)


def _within(x: Any, bound: Any) -> Any:
    """Clip ``bound``, a bound of ``clip``, to the range of the integer dtype of ``x``.

    This is done to an int and to a weakly typed array of integers, which will be converted to this dtype. Other bounds
    are returned unchanged.
    """
    if not dtypes.is_integer(x.dtype):
        return bound
    low, high = dtypes.limits(x.dtype)
    if type(bound) is int:
        return builtins.min(builtins.max(bound, low), high)
    if not (isinstance(bound, Array) and bound.weak_type and dtypes.is_integer(bound.dtype)):
        return bound
    least, greatest = dtypes.limits(bound.dtype)
    return ops.clamp_p.bind(builtins.max(low, least), bound, builtins.min(high, greatest))


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and the infinities: by default by zero and by the extreme values of the dtype.

    Args:
      x: an array of floating-point or complex numbers; others are returned unchanged.
      copy: accepted for compatibility; arrays are immutable.
      nan: the number for NaN.
      posinf: the number for infinity; by default the greatest value of the dtype.
      neginf: the number for minus infinity; by default the least value of the dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nan_to_num(jnp.array([jnp.nan, 1.0]), nan=-1.0))
    [-1.  1.]
    """
    x = operand("nan_to_num", x)
    dtype = x.dtype
    if not dtypes.is_inexact(dtype):
        return another(x)
    if dtypes.is_complex(dtype):
        components = [nan_to_num(component, copy, nan, posinf, neginf) for component in (ops.real(x), ops.imag(x))]
        return ops.complex(*components)
    info, x = dtypes.finfo(dtype), strong(x)
    posinf, neginf = float(info.max) if posinf is None else posinf, float(info.min) if neginf is None else neginf
    for found, value in ((isnan, nan), (isposinf, posinf), (isneginf, neginf)):
        x = where(found(x), ops.convert_element_type(operand("nan_to_num", value), dtype), x)
    return x


# Closeness ---------------------------------------------------------------------------------------------------------


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``, or both are the same infinity.

    Args:
      a, b: arrays or numbers, which broadcast; random keys are close if they are equal.
      rtol: the tolerance relative to ``abs(b)``.
      atol: the absolute tolerance.
      equal_nan: whether NaN are close to each other.

    Returns:
      Booleans of the shape to which ``a`` and ``b`` broadcast.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).
      ArgumentError: ``equal_nan`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isclose(1.0, 1.000001))
    True
    """
    equal_nan = flag("isclose", "equal_nan", equal_nan)
    if any(isinstance(x, Array) and dtypes.is_key(x.dtype) for x in (a, b)):
        return equal(a, b)
    x, y = inexact_pair("isclose", a, b)
    bound = ops.add(_like(x, atol), ops.mul(_like(x, rtol), ops.abs(y)))
    close = ops.le_p.bind(ops.abs(ops.sub(x, y)), bound)
    finite = ops.and_p.bind(isfinite(x), isfinite(y))
    result = ops.or_p.bind(ops.and_p.bind(finite, close), ops.eq(x, y))
    return ops.or_p.bind(result, ops.and_p.bind(isnan(x), isnan(y))) if equal_nan else result


def _like(x: Any, value: Any) -> Any:
    return ops.convert_element_type(inexact_operand("isclose", value), dtypes.to_real(x.dtype))


@named
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close; see :func:`isclose`.

    Args:
      a, b: arrays or numbers, which broadcast.
      rtol: the tolerance relative to ``abs(b)``.
      atol: the absolute tolerance.
      equal_nan: whether NaN are close to each other.

    Returns:
      One boolean, an array without axes.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).
      ArgumentError: ``equal_nan`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.allclose(jnp.ones(2), 1.0))
    True
    """
    equal_nan = flag("allclose", "equal_nan", equal_nan)
    return _every(isclose(a, b, rtol, atol, equal_nan))


def _every(x: Any) -> Any:
    from pullback.numpy.reductions import all

    return all(x)


@named
def array_equal(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any], equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
      a1, a2: arrays or numbers.
      equal_nan: whether NaN are equal to each other.

    Returns:
      One boolean, an array without axes.

    Raises:
      OperandError: an argument is neither an array nor nested lists of numbers (a TypeError).
      ArgumentError: ``equal_nan`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.array_equal(jnp.arange(2), jnp.array([0, 1])))
    True
    """
    equal_nan = flag("array_equal", "equal_nan", equal_nan)
    from pullback.numpy.creation import asarray

    x, y = asarray(a1), asarray(a2)
    return shapes.full((), False, _bool) if x.shape != y.shape else _every(_same(x, y, equal_nan))


def _same(x: Any, y: Any, equal_nan: bool) -> Any:
    same = equal(x, y)
    return ops.or_p.bind(same, ops.and_p.bind(isnan(x), isnan(y))) if equal_nan else same


@named
def array_equiv(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array:
    """Whether two arrays broadcast to one shape, with equal elements.

    Args:
      a1, a2: arrays, numbers or nested lists of numbers.

    Returns:
      One boolean, an array without axes.

    Raises:
      OperandError: an argument is neither an array nor nested lists of numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.array_equiv(jnp.ones((2, 2)), 1))
    True
    """
    from pullback.numpy.creation import asarray

    x, y = asarray(a1), asarray(a2)
    try:
        broadcast_shape("array_equiv", (x.shape, y.shape))
    except ValueError:
        return shapes.full((), False, _bool)
    with numpy_dtype_promotion("standard"), numpy_rank_promotion("allow"):  # this function is meant to broadcast
        return _every(equal(x, y))


def _of_numbers(x: Any, y: Any) -> Any:
    return where(isnan(x), y, x), where(isnan(y), x, y)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of ``x1`` and ``x2``; where one is NaN, the other.

    Args:
      x1, x2: arrays of numbers or booleans, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x1`` and ``x2`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fmax(jnp.nan, 1.0))
    1.0
    """
    return ops.max_p.bind(*_of_numbers(*declare.no_numbers(*promote("fmax", x1, x2))))


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of ``x1`` and ``x2``; where one is NaN, the other.

    Args:
      x1, x2: arrays of numbers or booleans, or Python numbers; their shapes broadcast.

    Returns:
      An array of the shape to which ``x1`` and ``x2`` broadcast, of the dtype to which they promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fmin(jnp.nan, 1.0))
    1.0
    """
    return ops.min_p.bind(*_of_numbers(*declare.no_numbers(*promote("fmin", x1, x2))))


for _function, _identity in (
    (logical_and, True), (logical_or, False), (logical_xor, False),
    (bitwise_and, -1), (bitwise_or, 0), (bitwise_xor, 0),
):  # fmt: skip
    with_methods(_function, 2, _identity)

__all__ = declare.public_names(__name__, globals())
