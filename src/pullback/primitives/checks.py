"""Checks of operands: classes of dtypes that operations accept, broadcast shapes, and ranges of indices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import typed
from pullback.core.dims import is_symbolic
from pullback.core.errors import DtypeError, IndexRangeError, ShapeError, TracerIntegerConversionError
from pullback.core.source import called
from pullback.core.types import Shape, ShapedArray

Of = Callable[[np.dtype[Any]], bool]
"""A predicate on dtypes: whether an operation accepts one."""


def ANY(dtype: np.dtype[Any]) -> bool:
    """Accept every dtype."""
    return True


def NUMBER(dtype: np.dtype[Any]) -> bool:
    """Accept integers, floats and complex numbers, but not booleans or random keys."""
    return dtypes.is_integer(dtype) or dtypes.is_inexact(dtype)


def VALUE(dtype: np.dtype[Any]) -> bool:
    """Accept numbers and booleans, but not random keys."""
    return NUMBER(dtype) or dtypes.is_bool(dtype)


def ORDERED(dtype: np.dtype[Any]) -> bool:
    """Accept dtypes whose values are ordered: integers, floats and booleans."""
    return dtypes.is_integer(dtype) or dtypes.is_float(dtype) or dtypes.is_bool(dtype)


def REAL_NUMBER(dtype: np.dtype[Any]) -> bool:
    """Accept integers and floats."""
    return dtypes.is_integer(dtype) or dtypes.is_float(dtype)


INEXACT = dtypes.is_inexact
FLOAT = dtypes.is_float
COMPLEX = dtypes.is_complex
INTEGER = dtypes.is_integer
REAL = ORDERED


def BITS(dtype: np.dtype[Any]) -> bool:
    """Accept integers and booleans."""
    return dtypes.is_integer(dtype) or dtypes.is_bool(dtype)


_KINDS: dict[Any, str] = {
    NUMBER: "numbers", VALUE: "numbers or booleans", REAL_NUMBER: "real numbers",
    ORDERED: "real numbers or booleans", INEXACT: "floats or complex numbers", FLOAT: "floats",
    COMPLEX: "complex numbers", INTEGER: "integers", BITS: "integers or booleans",
}  # fmt: skip


def kinds(of: Of) -> str:
    """Return the kinds of numbers that ``of`` accepts, in words."""
    return _KINDS.get(of, "other dtypes")


def check_dtype(name: str, of: Of, dtype: np.dtype[Any]) -> None:
    """Raise unless ``of`` accepts ``dtype`` as an operand of the operation ``name``."""
    if dtype is dtypes.USER_VALUE:
        raise DtypeError(f"{name} takes arrays, got a value of a type that a user has registered")
    if not of(dtype):
        raise DtypeError(f"{name} takes {kinds(of)}, got {dtypes.short_name(dtype)}")


def same_dtype(name: str, avals: Sequence[ShapedArray]) -> np.dtype[Any]:
    """Return the dtype that all operands have; raise if their dtypes differ.

    ``name`` is the name of the operation in the error, and ``avals`` are the types of the operands.
    """
    dtype = avals[0].dtype
    for a in avals[1:]:
        if a.dtype != dtype:
            shown = ", ".join(dtypes.short_name(a.dtype) for a in avals)
            raise DtypeError(
                f"{name} takes operands of one dtype, got {shown}; convert one with lax.convert_element_type, or "
                f"use the function of pullback.numpy, which promotes dtypes"
            )
    return dtype


def check_positions(name: str, last: int, dtype: np.dtype[Any]) -> None:
    """Raise unless the integer type ``dtype`` can hold ``last``, the last index of an axis.

    Raises:
      IndexRangeError: ``dtype`` cannot hold it (an OverflowError and a ValueError).
    """
    if not is_symbolic(last) and last > _largest(dtype):
        raise IndexRangeError(
            f"{name}: positions up to {last} do not fit {dtypes.short_name(dtype)}, the dtype of the indices, which "
            f"goes up to {_largest(dtype)}; enable 64-bit types (config.update('enable_x64', True) or `with "
            f"pullback.enable_x64():`), or split the axis"
        )


@functools.cache
def _largest(dtype: np.dtype[Any]) -> int:
    return int(dtypes.iinfo(dtype).max)


def broadcast_shape(name: str, shapes_: Sequence[Shape]) -> Shape:
    """Return the shape to which all of ``shapes_`` broadcast, by NumPy's rules; raise if they do not broadcast.

    ``name`` is the name of the operation in the error.
    """
    first = shapes_[0]
    for s in shapes_:
        if s != first:
            break
    else:
        return first
    rank = max(map(len, shapes_))
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes_], strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            shown = ", ".join(map(str, shapes_))
            text = f"{called() or name} got incompatible shapes for broadcasting: {shown}."
            raise ShapeError(f"{text}{_by_a_last_axis(shapes_)}")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def _by_a_last_axis(shapes_: Sequence[tuple[int, ...]]) -> str:
    """Return the advice for two shapes that broadcast once the shorter one has further last axes; else nothing."""
    short, long = sorted(shapes_, key=len)[:: len(shapes_) - 1 or 1]
    more = len(long) - len(short)
    fits = short and all(m in (1, n) or n == 1 for m, n in zip(short, long, strict=False))
    if len(shapes_) != 2 or not more or not fits:
        return ""
    index = ", ".join([":"] * len(short) + ["None"] * more)
    return f" Shapes are aligned at the last axis: x[{index}] adds what the operand of shape {short} lacks."


def known_int(name: str, what: str, value: Any) -> int:
    """Convert an argument to an int; raise if it is traced.

    Raises:
      ShapeError: it is not an int (a TypeError and a ValueError).
      TracerIntegerConversionError: a traced integer.
    """
    try:
        return operator.index(value)
    except TracerIntegerConversionError:
        if value.shape == () and dtypes.is_integer(value.dtype):
            raise
    except TypeError:
        pass
    raise ShapeError(f"{name}: {what} must be an int, got {typed(value)}")
