"""Python numbers as operands while a program is staged: their dtypes, as literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.host.rules import convert
from pullback.core import dtypes
from pullback.core.array import SCALARS, ArrayImpl, number_dtype, scalar_array
from pullback.core.errors import IntegerRangeError
from pullback.core.jaxpr import Literal
from pullback.core.trace import state
from pullback.core.types import ShapedArray


def converted(literal: Literal, *, new_dtype: Any, weak_type: bool) -> ArrayImpl:
    """Convert the number of a literal to another dtype; return it as an array, so that no equation is needed."""
    value = literal.val._value if isinstance(literal.val, ArrayImpl) else literal.aval.dtype.type(literal.val)
    return ArrayImpl(state.silently(convert, value, new_dtype=new_dtype)[()], weak_type)


def typed_literals(atoms: list[Any], args: Sequence[Any]) -> None:
    """Convert the literals of Python numbers, in place, to the dtype of the operation's other operands.

    ``atoms`` are the variables and literals of the operands ``args``. Raise OverflowError if the dtype cannot hold a
    number.
    """
    dtype = number_dtype([x if type(x) in SCALARS else a.aval for a, x in zip(atoms, args, strict=True)])
    integer = dtypes.is_integer(dtype)
    for atom, x in zip(atoms, args, strict=True):
        if type(x) not in SCALARS:
            continue
        if integer and type(x) is int and not dtypes.holds(dtype, x):
            raise IntegerRangeError(f"Python integer {x} out of bounds for {dtype.name}")
        if atom.aval.dtype != dtype:
            atom.aval = ShapedArray((), dtype, dtype.kind != "b")
            atom.val = scalar_array(dtype.type(x), dtype.kind != "b")
