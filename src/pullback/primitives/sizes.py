"""The primitive that returns the value of a symbolic size as an array."""

from __future__ import annotations

from typing import Any

from pullback.backends.hlo import sizes as hlo_sizes
from pullback.core import dtypes
from pullback.core.dims import Dim
from pullback.core.errors import InconclusiveDimensionOperation
from pullback.core.runtime import provides
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray

size_value_p = Primitive("size_value", cost=Cost.SIMPLE)
size_value_p.abstract_eval(lambda *, size: ShapedArray((), dtypes.default_int(), True))
size_value_p.lowering(lambda hlo, *, size: hlo.convert(hlo_sizes.size_value(hlo, size), hlo.result.dtype))


@size_value_p.host
def _no_value(*, size: Dim) -> Any:
    raise InconclusiveDimensionOperation(f"the symbolic size {size} has a value only while a function is exported")


@provides
def size_value(size: Dim) -> Any:
    """Return the value of a symbolic size, as a scalar array of the program that is being recorded."""
    return size_value_p.bind(size=size)
