"""Conversion of users' operands to arrays of one dtype, as primitives take them.

Every function of ``pullback.numpy`` starts here. A Python number next to an array stays a number if it takes the
array's dtype anyway, for the primitives accept it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import quote as quote
from pullback.core.arguments import typed
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, fresh, from_scalar
from pullback.core.config import config
from pullback.core.dims import as_size
from pullback.core.errors import (
    AllocationError,
    ArgumentError,
    AxisError,
    DtypeError,
    DtypeValueError,
    InconclusiveDimensionOperation,
    OperandError,
    PullbackError,
    ShapeError,
    UnsupportedArgumentError,
)
from pullback.core.naming import named as named
from pullback.core.source import warn
from pullback.core.trace import Tracer, recorders
from pullback.core.types import Shape
from pullback.primitives.checks import known_int as known_int
from pullback.primitives.elementwise import convert_element_type

R = TypeVar("R")


def operand(name: str, x: Any) -> Array:
    """Convert an operand of the function ``name`` to an array; raise for lists, strings and None."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(f"{name}: {error}") from None


def number_operand(name: str, x: Any) -> Array:
    """Convert an operand to an array of numbers; raise for random keys, which have no order and no zero.

    Raises:
      DtypeError: random keys (a TypeError).
    """
    x = operand(name, x)
    if x.dtype.kind == "V" and dtypes.is_key(x.dtype):
        raise DtypeError(f"{name} takes numbers, got {dtypes.short_name(x.dtype)}")
    return x


def another(x: Any) -> Any:
    """A new array of the same elements, for functions that leave their operand unchanged: their results have to stay
    when the operand is donated. A traced operand is returned itself.
    """
    return fresh(x) if isinstance(x, ArrayImpl) else x


def sequence(name: str, xs: Any) -> list[Any]:
    """Convert an argument to a list of arrays; raise unless it is a sequence."""
    if isinstance(xs, (str, bytes, dict, set, frozenset)) or not hasattr(xs, "__iter__"):
        raise OperandError(f"{name}: expected a sequence of arrays, got {typed(xs)}")
    return list(xs)


def sequence_of(name: str, what: str, value: Any, count: int | None = None) -> list[Any]:
    """Return an argument that is a sequence as a list; raise unless it has ``count`` items, where this is given.

    Raises:
      ShapeError: it is no sequence, or has another length (a TypeError and a ValueError).
    """
    if is_sequence(value):
        found = list(value)
        if count is None or len(found) == count:
            return found
    items = "items" if count is None else f"{count} items"
    raise ShapeError(f"{name}: {what} must be a sequence of {items}, got {typed(value)}")


def inexact_operand(name: str, x: Any) -> Array:
    """Convert an operand to an array of floats or complex numbers."""
    if type(x) is float:
        return from_scalar(x)
    if not isinstance(x, Array):
        x = operand(name, x)
    dtype = x.dtype
    return x if dtypes.is_inexact(dtype) else convert_element_type(x, dtypes.to_inexact(dtype), x.weak_type)


def inexact_operands(name: str, *xs: Any) -> list[Array]:
    """Convert operands to arrays of their common float or complex dtype.

    Each is converted in one step: a common integer dtype in between would wrap some numbers (uint32 and int32 without
    64 bits).
    """
    arrays = [operand(name, x) for x in xs]
    dtype = arrays[0].dtype
    if dtypes.is_inexact(dtype) and all(x.dtype is dtype for x in arrays):
        return arrays
    dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    dtype = dtypes.to_inexact(dtype)
    return [x if x.dtype == dtype else convert_element_type(x, dtype, weak) for x in arrays]


def strong(x: Any) -> Array:
    """Convert an operand to an array that is not weakly typed."""
    return convert_element_type(x, x.dtype) if x.weak_type else x


def check_ranks(name: str, *operands: Any) -> None:
    """Warn or raise if operands have different ranks, as ``config.numpy_rank_promotion`` says."""
    shapes = [np.shape(x) if not isinstance(x, Array) else x.shape for x in operands]
    if len({len(s) for s in shapes if s}) > 1:
        different_ranks(name, shapes)


def different_ranks(name: str, shapes: Sequence[Shape]) -> None:
    """Warn or raise about operands of different ranks, as ``config.numpy_rank_promotion`` says."""
    shown = " and ".join(map(str, shapes))
    message = (
        f"{name}: operands of shapes {shown} have different numbers of axes, and "
        f"config.numpy_rank_promotion = {config.numpy_rank_promotion!r}; add axes with expand_dims or x[None]"
    )
    if config.numpy_rank_promotion == "raise":
        raise ShapeError(message)
    warn(message, UserWarning)


def promote(name: str, x: Any, y: Any, *, ranks: bool = True) -> tuple[Any, Any]:
    """Promote two operands to their common dtype; at most one result is a Python number. ``ranks`` says whether to
    check their ranks by :func:`check_ranks`.
    """
    if ranks and recorders and config.numpy_rank_promotion != "allow":
        check_ranks(name, x, y)
    if isinstance(x, Array):
        if isinstance(y, Array):
            if x.dtype is y.dtype:
                return x, y
        elif type(y) in SCALARS and fits(type(y), x.dtype):
            return x, y
    elif type(x) in SCALARS and isinstance(y, Array) and fits(type(x), y.dtype):
        return x, y
    a, b = promote_all(name, (x, y))
    return a, b


def fits(kind: type, dtype: np.dtype[Any]) -> bool:
    """Whether a Python number of type ``kind`` next to an array of dtype ``dtype`` takes that dtype."""
    if dtypes.is_inexact(dtype):
        return kind is not complex or dtypes.is_complex(dtype)
    return (kind is int or kind is bool) and dtypes.is_integer(dtype)


def promote_all(name: str, xs: Sequence[Any]) -> list[Array]:
    """Promote operands to arrays of their common dtype."""
    arrays = [operand(name, x) for x in xs]
    dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    return [x if x.dtype == dtype else convert_element_type(x, dtype, weak) for x in arrays]


def refuse_out(name: str, out: Any) -> None:
    """Raise if NumPy's argument ``out`` is not None."""
    if out is not None:
        raise UnsupportedArgumentError(
            f"{name}: the argument out is not supported, because arrays are immutable; use the result. Got {out!r}"
        )


def is_sequence(value: Any) -> bool:
    """Whether an argument that may be an int or several ints is several: a tuple, list, range, array or iterator."""
    if isinstance(value, (tuple, list)):
        return True
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not hasattr(value, "__iter__"):
        return False
    return getattr(value, "ndim", 1) > 0


def several(value: Any) -> Sequence[Any]:
    """Return an argument that is an int or several ints as a sequence of ints."""
    if type(value) is int or not is_sequence(value):
        return (value,)
    known = value.concrete() if isinstance(value, Tracer) else value
    return tuple(known._value if isinstance(known, ArrayImpl) else value)


class AllAxes(dict[int, tuple[int, ...]]):
    """A dictionary that makes ``tuple(range(rank))`` for each rank at first access; reversed if ``step`` is -1."""

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def __missing__(self, rank: int) -> tuple[int, ...]:
        axes = self[rank] = tuple(range(rank))[:: self.step]
        return axes


def axis_index(axis: Any, rank: int, name: str) -> int:
    """Convert an axis that may count from the end to a position from the start.

    Raises:
      AxisError: the axis is out of range (a ValueError and an IndexError).
    """
    try:
        i = operator.index(axis)
    except TypeError:
        raise ShapeError(f"{name}: an axis must be an int, got {axis!r} of type {type(axis).__name__}") from None
    if not -rank <= i < rank:
        raise AxisError(f"{name}: axis {i} is out of bounds for an array of {rank} axes")
    return i % rank


def refuse_options(name: str, out: Any, where: Any) -> None:
    """Raise if the arguments ``out`` or ``where`` of NumPy's elementwise functions are not None."""
    refuse_out(name, out)
    if where is not None:
        raise UnsupportedArgumentError(
            f"{name}: the argument where is not supported, because skipped elements would have no value; write "
            f"pullback.numpy.where(condition, {name}(...), other)"
        )


def diagonal_number(name: str, k: Any) -> Any:
    """Convert the number of a diagonal to an int, or to a scalar array of integers if it is traced.

    Raises:
      ShapeError: it is not an integer (a TypeError and a ValueError).
    """
    if isinstance(k, Tracer) and k.shape == () and dtypes.is_integer(k.dtype) and k.concrete() is None:
        return k
    return known_int(name, "the number of the diagonal", k)


def size_of(name: str, what: str, n: Any) -> int:
    """Convert an argument that is a size to an int.

    Raises:
      ShapeError, ArgumentError: it is no int, or negative (a TypeError and a ValueError).
      TracerIntegerConversionError: a traced integer.
    """
    size = known_int(name, what, n)
    if size < 0:
        raise ArgumentError(f"{name}: {what} must not be negative, got {size}")
    return size


def axes_tuple(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Convert axes to reduce over (None for all, an int, or several) to increasing positions."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and 0 <= axis < rank:
        return (axis,)
    axes = tuple([axis_index(a, rank, name) for a in several(axis)])
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: duplicate axes in {axis!r}")
    return tuple(sorted(axes))


def shape_tuple(shape: Any, name: str) -> tuple[int, ...]:
    """Convert a shape (an int or a sequence of ints) to a tuple; raise for negative sizes."""
    try:
        sizes = (
            (operator.index(shape),)
            if not isinstance(shape, (tuple, list)) and np.ndim(shape) == 0
            else tuple(map(operator.index, shape))
        )
    except InconclusiveDimensionOperation:
        sizes = tuple(map(as_size, shape if isinstance(shape, (tuple, list)) else (shape,)))
    except TypeError as error:
        if isinstance(error, PullbackError):
            raise
        raise ShapeError(f"{name}: a shape must be an int or a sequence of ints, got {shape!r} ({error})") from None
    for n in sizes:
        if n < 0:
            raise ShapeError(f"{name}: a shape must not be negative, got {shape!r}")
        if type(n) is int and n > _LONGEST:
            raise AllocationError(f"{name}: no memory for an array of shape {quote(sizes)}")
    return sizes


_LONGEST = 1 << 62
"""More elements than any memory holds."""


def memory_for(name: str, shape: Any, make: Callable[[], R]) -> R:
    """Return the result of a function of NumPy's that makes an array of ``shape``, for the function ``name``.

    Raises:
      AllocationError: there is no memory for it (a MemoryError).
    """
    try:
        return make()
    except (MemoryError, ValueError, OverflowError) as error:
        raise AllocationError(f"{name}: no memory for an array of shape {quote(shape)}: {error}") from None


def concrete(x: Any) -> Any:
    """Return the NumPy value of a concrete array; raise the error of a traced value."""
    return x._value if isinstance(x, ArrayImpl) else np.asarray(x)


def positions_operand(name: str, indices: Any) -> Any:
    """Convert positions along an axis to integers; concrete positions may be wider than the default integer."""
    positions = operand(name, indices) if (wide := _too_wide(indices)) is None else ArrayImpl(wide)
    if not dtypes.is_integer(positions.dtype):
        raise DtypeValueError(f"{name}: indices must be integers, got {positions.aval}")
    return positions


def _too_wide(indices: Any) -> Any:
    """Return ``indices`` as int64 if they are Python or NumPy integers that the default integer dtype cannot hold.

    Return None for all other indices.
    """
    if type(indices) is ArrayImpl:
        return None
    most = dtypes.iinfo(dtypes.default_int()).max
    if type(indices) is int:
        fits = -most <= indices <= most
        return None if fits else np.int64(max(min(indices, _INT64.max), _INT64.min))
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu" or indices.dtype.itemsize < 8:
        return None
    if not indices.size or (indices.max() <= most and indices.min() >= -most):
        return None
    return np.minimum(indices, _INT64.max).astype(np.int64)


_INT64 = np.iinfo(np.int64)
