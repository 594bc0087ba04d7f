"""Formulas of operands in double precision, as formulas of operands in any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import SCALARS
from pullback.primitives import shapes
from pullback.primitives.elementwise import convert_element_type


def doubled(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of operands in double precision, real or complex, as one of operands in any: it rounds once."""

    def of_any(*operands: Any, **params: Any) -> Any:
        dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
        wide = np.dtype(np.complex128 if dtypes.is_complex(dtype) else np.float64)
        arrays = [shapes.full((), x, wide) if type(x) in SCALARS else convert_element_type(x, wide) for x in operands]
        return convert_element_type(formula(*arrays, **params), dtype)

    return of_any
