"""From what users pass to what primitives take: arrays of one dtype.

Every function of ``pullback.numpy`` starts here. A Python number beside an array is left as it is where it takes
the array's dtype anyway, for the primitives accept it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, fresh, from_scalar
from pullback.core.config import config
from pullback.core.dims import as_size
from pullback.core.errors import (
    AxisError,
    DtypeError,
    DtypeValueError,
    InconclusiveDimensionOperation,
    OperandError,
    ShapeError,
    TracerIntegerConversionError,
    UnsupportedArgumentError,
)
from pullback.core.naming import named as named
from pullback.core.source import warn
from pullback.core.trace import Tracer, recorders
from pullback.core.types import Shape
from pullback.primitives.elementwise import convert_element_type


def operand(name: str, x: Any) -> Array:
    """An operand as an array; lists, strings and None are refused with the name of the function."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(f"{name}: {error}") from None


def number_operand(name: str, x: Any) -> Any:
    """An operand as an array of numbers: random keys, which have no order and no zero, are refused.

    Raises:
      DtypeError: random keys (a TypeError).
    """
    x = operand(name, x)
    if x.dtype.kind == "V" and dtypes.is_key(x.dtype):
        raise DtypeError(f"{name} takes numbers, got {dtypes.short_name(x.dtype)}")
    return x


def another(x: Any) -> Any:
    """Another array of the same elements, for functions that return their operand as it is: results are new arrays,
    which stay when the operand is donated. A traced operand is returned itself."""
    return fresh(x) if isinstance(x, ArrayImpl) else x


def sequence(name: str, xs: Any) -> list[Any]:
    """The items of an argument that is a sequence of arrays."""
    if isinstance(xs, (str, bytes, dict, set, frozenset)) or not hasattr(xs, "__iter__"):
        raise OperandError(f"{name}: expected a sequence of arrays, got {quote(xs)} of type {type(xs).__name__}")
    return list(xs)


def inexact_operand(name: str, x: Any) -> Array:
    """An operand as an array of floats or complex numbers."""
    if type(x) is float:
        return from_scalar(x)
    if not isinstance(x, Array):
        x = operand(name, x)
    dtype = x.dtype
    return x if dtypes.is_inexact(dtype) else convert_element_type(x, dtypes.to_inexact(dtype), x.weak_type)


def inexact_operands(name: str, *xs: Any) -> list[Array]:
    """Operands as arrays of their common dtype of floats or complex numbers.

    Each is converted once: a common dtype of integers between the two would wrap what it does not hold (uint32 beside
    int32 without 64 bits).
    """
    arrays = [operand(name, x) for x in xs]
    dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    dtype = dtypes.to_inexact(dtype)
    return [x if x.dtype == dtype else convert_element_type(x, dtype, weak) for x in arrays]


def strong(x: Any) -> Array:
    """``x`` with a dtype that does not give way to others."""
    return convert_element_type(x, x.dtype) if x.weak_type else x


def check_ranks(name: str, *operands: Any) -> None:
    """Warn of operands with different numbers of axes, or refuse them, as ``config.numpy_rank_promotion`` says."""
    shapes = [np.shape(x) if not isinstance(x, Array) else x.shape for x in operands]
    if len({len(s) for s in shapes if s}) > 1:
        different_ranks(name, shapes)


def different_ranks(name: str, shapes: Sequence[Shape]) -> None:
    """Warn of operands of these shapes, or refuse them, as ``config.numpy_rank_promotion`` says."""
    shown = " and ".join(map(str, shapes))
    message = (
        f"{name}: operands of shapes {shown} have different numbers of axes, and "
        f"config.numpy_rank_promotion = {config.numpy_rank_promotion!r}; add axes with expand_dims or x[None]"
    )
    if config.numpy_rank_promotion == "raise":
        raise ShapeError(message)
    warn(message, UserWarning)


def promote(name: str, x: Any, y: Any, *, ranks: bool = True) -> tuple[Any, Any]:
    """Two operands in their common dtype; at most one of the results is a Python number. ``ranks`` says whether their
    numbers of axes count, as ``config.numpy_rank_promotion`` has it."""
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
    """Whether a Python number of this type beside an array of that dtype takes the array's dtype."""
    if dtypes.is_inexact(dtype):
        return kind is not complex or dtypes.is_complex(dtype)
    return (kind is int or kind is bool) and dtypes.is_integer(dtype)


def promote_all(name: str, xs: Sequence[Any]) -> list[Array]:
    """Operands as arrays of their common dtype."""
    arrays = [operand(name, x) for x in xs]
    dtype, weak = dtypes.result_type(*arrays, return_weak_type_flag=True)
    return [x if x.dtype == dtype else convert_element_type(x, dtype, weak) for x in arrays]


def refuse_out(name: str, out: Any) -> None:
    """Refuse NumPy's argument ``out``."""
    if out is not None:
        raise UnsupportedArgumentError(
            f"{name}: the argument out is not supported, for arrays are immutable; use the result. Got {out!r}"
        )


def is_sequence(value: Any) -> bool:
    """Whether an argument that is one int or several is several: a tuple, a list, a range, an array, an iterator."""
    if isinstance(value, (tuple, list)):
        return True
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not hasattr(value, "__iter__"):
        return False
    return getattr(value, "ndim", 1) > 0


def several(value: Any) -> Sequence[Any]:
    """The items of an argument that is one int or several."""
    if type(value) is int or not is_sequence(value):
        return (value,)
    known = value.concrete() if isinstance(value, Tracer) else value
    return tuple(known._value if isinstance(known, ArrayImpl) else value)


class AllAxes(dict[int, tuple[int, ...]]):
    """For each number of axes their positions, in order or, with a step of -1, reversed; made when first asked for."""

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def __missing__(self, rank: int) -> tuple[int, ...]:
        axes = self[rank] = tuple(range(rank))[:: self.step]
        return axes


def axis_index(axis: Any, rank: int, name: str) -> int:
    """An axis that may count from the end, as a position.

    Raises:
      AxisError: there is no such axis (a ValueError and an IndexError).
    """
    try:
        i = operator.index(axis)
    except TypeError:
        raise ShapeError(f"{name}: an axis must be an int, got {axis!r} of type {type(axis).__name__}") from None
    if not -rank <= i < rank:
        raise AxisError(f"{name}: axis {i} is out of bounds for an array of {rank} axes")
    return i % rank


def refuse_options(name: str, out: Any, where: Any) -> None:
    """Refuse the arguments ``out`` and ``where`` of NumPy's elementwise functions."""
    refuse_out(name, out)
    if where is not None:
        raise UnsupportedArgumentError(
            f"{name}: the argument where is not supported, for elements that are left out would have no value; "
            f"write pullback.numpy.where(condition, {name}(...), other)"
        )


def diagonal_number(name: str, k: Any) -> Any:
    """Which diagonal: an int, or an array of an integer dtype without axes where its value is not known.

    Raises:
      ShapeError: no integer (a TypeError and a ValueError).
    """
    if isinstance(k, Tracer) and k.shape == () and dtypes.is_integer(k.dtype) and k.concrete() is None:
        return k
    return known_int(name, "the number of the diagonal", k)


def known_int(name: str, what: str, value: Any) -> int:
    """An argument that must be an int whose value is known.

    Raises:
      ShapeError: something else (a TypeError and a ValueError).
      TracerIntegerConversionError: a traced integer.
    """
    try:
        return operator.index(value)
    except TracerIntegerConversionError:
        if value.shape == () and dtypes.is_integer(value.dtype):
            raise
    except TypeError:
        pass
    raise ShapeError(f"{name}: {what} must be an int, got {quote(value)} of type {type(value).__name__}")


def quote(x: Any) -> str:
    """A value for a message, in one line of at most 60 letters."""
    text = " ".join(repr(x).split())
    return text if len(text) <= 60 else text[:57] + "..."


def axes_tuple(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Axes to reduce over: None for all, an int, or several, as increasing positions."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and 0 <= axis < rank:
        return (axis,)
    axes = tuple([axis_index(a, rank, name) for a in several(axis)])
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: duplicate axes in {axis!r}")
    return tuple(sorted(axes))


def shape_tuple(shape: Any, name: str) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints, none negative."""
    try:
        sizes = (
            (operator.index(shape),)
            if not isinstance(shape, (tuple, list)) and np.ndim(shape) == 0
            else tuple(map(operator.index, shape))
        )
    except InconclusiveDimensionOperation:
        sizes = tuple(map(as_size, shape if isinstance(shape, (tuple, list)) else (shape,)))
    except TypeError as error:
        if isinstance(shape, Array) or (isinstance(shape, (tuple, list)) and any(isinstance(s, Array) for s in shape)):
            raise
        raise ShapeError(f"{name}: a shape must be an int or a sequence of ints, got {shape!r} ({error})") from None
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{name}: a shape must not be negative, got {shape!r}")
    return sizes


def concrete(x: Any) -> Any:
    """The NumPy value of an array that Python may look at; raises the error of a traced value otherwise."""
    return x._value if isinstance(x, ArrayImpl) else np.asarray(x)


def positions_operand(name: str, indices: Any) -> Any:
    """Positions along an axis, which are integers; those that are known may be wider than the default integer."""
    positions = operand(name, indices) if (wide := _too_wide(indices)) is None else ArrayImpl(wide)
    if not dtypes.is_integer(positions.dtype):
        raise DtypeValueError(f"{name}: indices must be integers, got {positions.aval}")
    return positions


def _too_wide(indices: Any) -> Any:
    """Known positions that the default integer does not hold, for axes as long; None if it holds them."""
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
