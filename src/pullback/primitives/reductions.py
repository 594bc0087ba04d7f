"""Operations that combine the elements along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.errors import ShapeError
from pullback.core.linear import Linear
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import shapes
from pullback.primitives.declare import ANY, NUMBER, Of, check_dtype, jvp_linear


def reduced_shape(name: str, shape: Shape, axes: Shape) -> Shape:
    """A shape without the axes that are reduced."""
    if any(not 0 <= a < len(shape) for a in axes) or len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: {axes} are not distinct axes of an array of shape {shape}")
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduction(name: str, *, of: Of, host: Any) -> Primitive:
    """Declare an operation that reduces over ``axes`` and keeps the dtype."""
    p = Primitive(name)
    p.host_rule = host

    @p.shape
    def shape(x: ShapedArray, *, axes: Shape) -> ShapedArray:
        check_dtype(name, of, x.dtype)
        return ShapedArray(reduced_shape(name, x.shape, axes), x.dtype)

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Any, *, axes: Shape) -> Any:
        (d,) = dims
        shifted = tuple(a + (a >= d) for a in axes)
        return p.bind(args[0], axes=shifted), d - sum(a < d for a in shifted)

    return p


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum over some axes."""
    return reduce_sum_p.bind(x, axes=tuple(axes)) if axes else x


def _sum(x: Any, *, axes: Shape) -> Any:
    return np.add.reduce(x, axis=axes, dtype=x.dtype)


reduce_sum_p = reduction("reduce_sum", of=NUMBER, host=_sum)
reduce_sum_p.jvp_rule = jvp_linear(reduce_sum_p)


@reduce_sum_p.transpose
def _reduce_sum_transpose(ct: Any, x: Linear, *, axes: Shape) -> Any:
    shape = x.shape
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return (shapes.broadcast_in_dim(ct, shape, kept),)
