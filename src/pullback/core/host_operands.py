"""The operands of host rules: NumPy's values of arrays, and Python numbers in a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import SCALARS, ArrayImpl, CommittedArray, as_array, number_dtype
from pullback.core.looking import LookedAt

NUMPY_REFUSES = (TypeError, ValueError, OverflowError, MemoryError, RuntimeError)
"""What NumPy raises where the general way converts, computes otherwise, or explains the error: operands that do not
fit, a number or a result that is too large, and a context that cannot be entered again, within a rule."""


def host_operands(primitive: Any, args: tuple[Any, ...]) -> tuple[list[Any] | None, bool | None]:
    """The NumPy values of some operands, and whether the result is weakly typed: booleans have no say in it.

    None for values of which one is on other devices than the host's.
    """
    values: list[Any] = []
    weak = primitive.keeps_weak_type
    scalars = False
    for x in args:
        kind = type(x)
        if kind is ArrayImpl:
            values.append(x._value)
            if weak and not x.weak_type and x._value.dtype.kind != "b":
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
    """Give Python numbers a dtype where NumPy would not find the right one by itself."""
    dtype = number_dtype(values)
    if dtype.isbuiltin != 1 or all(type(v) in SCALARS for v in values):
        for i, v in enumerate(values):
            if type(v) in SCALARS:
                values[i] = np.asarray(v, dtype)[()]
