"""Dense zeros for symbolic ones, where a rule asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, recorders, scalar_array, typeof
from pullback.core.runtime import runtime
from pullback.core.types import ZERO, ShapedArray


def zeros_of(aval: ShapedArray) -> Any:
    """Zeros of a shape and dtype: an operation in a program, which computes them, instead of being kept with it."""
    if aval.shape == ():
        dtype = aval.dtype
        zero = dtype.type(0) if dtype.num != dtypes.VOID else np.zeros((), dtype)[()]  # the type of float0 is void's
        return scalar_array(zero, aval.weak_type)
    if recorders and runtime.is_recording():
        return runtime.zeros(aval)
    return ArrayImpl(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval.weak_type)


def instantiate(tangent: Any, primal: Any) -> Any:
    """A tangent, made dense if it is the symbolic zero, which has the shape of ``primal``."""
    if tangent is not ZERO:
        return tangent
    aval = typeof(primal)
    return zeros_of(aval.update(dtype=dtypes.tangent_dtype(aval.dtype)))


def densify(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Tangents or cotangents of some types, made dense where they are the symbolic zero."""
    return [zeros_of(a) if x is ZERO else x for x, a in zip(values, avals, strict=True)]
