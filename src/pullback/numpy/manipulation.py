"""Shapes and axes of arrays: change them, join arrays, split them, repeat and reorder their elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import OperandError, ShapeError
from pullback.core.trace import state
from pullback.core.types import Shape
from pullback.numpy.promotion import axes_tuple, axis_index, operand, promote_all, shape_tuple
from pullback.primitives import shapes, slicing
from pullback.primitives.declare import broadcast_shape
from pullback.primitives.elementwise import convert_element_type

__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "column_stack", "concat", "concatenate", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "repeat", "reshape", "roll",
    "rollaxis", "rot90", "row_stack", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vsplit",
    "vstack",
]  # fmt: skip

# Shapes ------------------------------------------------------------------------------------------------------------


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """The elements in another shape.

    Args:
      a: an array.
      shape: an int or a sequence of ints, one of which may be -1, for what the others leave.
      order: ``"C"`` if the last axis changes fastest, ``"F"`` if the first one does.
      copy: accepted for compatibility; arrays are immutable.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> print(pnp.reshape(pnp.arange(6), (2, -1)))
    [[0 1 2]
     [3 4 5]]
    """
    x = a if isinstance(a, Array) else operand("reshape", a)
    have = x.shape
    sizes = _target_shape(have, shape)
    if order == "F":
        flipped = shapes.reshape(transpose(x), sizes[::-1])
        return transpose(flipped)
    if order not in ("C", "A"):
        raise ShapeError(f"reshape: order must be 'C', 'F' or 'A', got {order!r}")
    return x if sizes == have else state.trace.process(shapes.reshape_p, (x,), {"new_sizes": sizes})


def _target_shape(have: Shape, shape: Any) -> Shape:
    """A new shape with -1 replaced, for as many elements as there are."""
    if type(shape) is not tuple or not all([type(n) is int for n in shape]):
        shape = shape_tuple(shape, "reshape") if not _has_negative(shape) else tuple(map(operator.index, _as_tuple(shape)))
    size = math.prod(have)
    if -1 in shape:
        rest = -math.prod(shape)
        if shape.count(-1) > 1:
            raise ShapeError(f"reshape: only one size may be -1, got {shape}")
        if rest == 0 or size % rest:
            raise ShapeError(
                f"cannot reshape an array of shape {have} (size {size}) into shape {shape}: the other sizes do not "
                f"divide {size}"
            )
        shape = tuple([size // rest if n == -1 else n for n in shape])
    elif math.prod(shape) != size or (shape and min(shape) < 0):
        raise ShapeError(f"cannot reshape an array of shape {have} (size {size}) into shape {shape}")
    return shape  # type: ignore[no-any-return]
