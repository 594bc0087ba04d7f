"""The operands of host rules: NumPy arrays, and Python numbers converted to a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import SCALARS, Absent, ArrayImpl, CommittedArray, as_array, number_dtype
from pullback.core.looking import LookedAt

NUMPY_REFUSES = (TypeError, ValueError, OverflowError, MemoryError, RuntimeError)
"""The errors after which an eager fast path falls back to general dispatch, which converts operands or explains the
error: operands that do not fit, numbers or results that are too large, a context of NumPy's that is already active."""


def host_operands(primitive: Any, args: tuple[Any, ...]) -> tuple[list[Any] | None, bool | None]:
    """Return the list of the NumPy values of the operands ``args``, and whether the result is weakly typed.

    The result is weakly typed if the primitive keeps weak types, and all operands except boolean arrays are weakly
    typed. The second value is None if the parameter ``weak_type`` of the primitive determines it.

    Return (None, None) if the elements of an operand are not in NumPy's memory.
    """
    values: list[Any] = []
    weak = primitive.keeps_weak_type
    scalars = False
    for x in args:
        kind = type(x)
        if kind is ArrayImpl:
            held = x._host_value
            if type(held) is Absent:
                return None, None
            values.append(held)
            if weak and not x.weak_type and held.dtype.kind != "b":
                weak = False
        elif kind in SCALARS:
            values.append(x)
            scalars = True
        elif kind is CommittedArray:
            return None, None
        else:
            if isinstance(x, LookedAt):
                raise x._leaked()
            values.append(as_array(x)._value)  # type: ignore[attr-defined]  # traced values were refused
            if weak:
                weak = False
    if scalars:
        _fit_scalars(values)
    return values, weak


def _fit_scalars(values: list[Any]) -> None:
    """Convert Python numbers in ``values`` to NumPy scalars, in place, if NumPy would promote them to a wrong dtype."""
    dtype = number_dtype(values)
    if dtype.isbuiltin != 1 or all(type(v) in SCALARS for v in values):
        for i, v in enumerate(values):
            if type(v) in SCALARS:
                values[i] = np.asarray(v, dtype)[()]
