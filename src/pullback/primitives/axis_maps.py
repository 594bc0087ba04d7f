"""How the axes of an operation's operands become those of its results, declared once for each operation.

A declaration gives the batch rule, which leaves the mapped axis or moves it to the front, and ``axis_kept``, by which
the Laplacian knows that the indices along an axis do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape
from pullback.primitives.arrays import shapes
from pullback.primitives.rules import axis_kept

Params = dict[str, Any]


def front(x: Any, dim: int | None, axis: MappedAxis) -> Any:
    """An operand with its mapped axis in front; one that is not mapped is repeated."""
    if dim is None:
        return shapes.broadcast_in_dim(x, (axis.size, *x.shape), range(1, len(x.shape) + 1))
    return shapes.moveaxis(x, dim, 0)


def mapped_to_front(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Operands with their mapped axes in front; those that have none are repeated along one."""
    return [front(x, dim, axis) for x, dim in zip(args, dims, strict=True)]


def mapped_first(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Operands with their mapped axes in front; an axis of size one for those that are not mapped."""
    return [
        shapes.expand_dims(x, (0,)) if d is None else shapes.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)
    ]


def works_on_last(p: Primitive, *counts: int | Callable[[Params], int]) -> None:
    """Declare that an operation works on the last axes of each operand; the axes in front of them are of batches.

    These are in front in the results too. ``works_on_last(p, 2, 1)`` takes matrices and vectors, as many of each.

    Args:
      p: the operation.
      *counts: how many axes it works on, of each operand, or one number for all; a function takes the parameters.
    """

    @axis_kept(p)
    def kept(axis: int, operand: int, /, *shapes: Shape, **params: Any) -> int | None:
        count = counts[operand if len(counts) > 1 else 0]
        others = len(shapes[operand]) - (count(params) if callable(count) else count)
        same = all(shape[:others] == shapes[operand][:others] for shape in shapes)
        return axis if same and axis < others else None

    @p.batch
    def rule(axis: MappedAxis, args: Any, dims: Any, /, **params: Any) -> Any:
        x, *others = args
        if others:
            out = p.bind(*mapped_to_front(axis, args, dims), **params)
        else:
            out = p.bind(shapes.moveaxis(x, dims[0], 0) if dims[0] else x, **params)
        return out, [0] * len(out) if p.multiple_results else 0


def works_along(p: Primitive, name: str, *, several: bool = False, broadcasts: bool = False) -> None:
    """Declare that an operation treats each index along all axes but some by itself, and keeps the order of the axes.

    Args:
      p: the operation; all operands have as many axes.
      name: the parameter that says along which axis it works.
      several: whether that is a tuple of axes.
      broadcasts: whether an axis of size one stands for any size, in one of several operands.
    """

    @axis_kept(p)
    def kept(place: int, operand: int, /, *shapes: Shape, **params: Any) -> int | None:
        sizes = {shape[place] for shape in shapes if place < len(shape)}
        along = place in params[name] if several else place == params[name]
        return None if along or len(sizes) > 1 else place

    @p.batch
    def rule(axis: MappedAxis, args: Any, dims: Any, /, **params: Any) -> Any:
        d, *others = dims
        if others:
            args, d = mapped_first(args, dims) if broadcasts else mapped_to_front(axis, args, dims), 0
        axes = params[name]
        params[name] = tuple([a + (a >= d) for a in axes]) if several else axes + (axes >= d)
        out = p.bind(*args, **params)
        return out, [d] * len(out) if p.multiple_results else d


def reduces(p: Primitive) -> None:
    """Declare that an operation of one operand reduces the ``axes`` of its parameter, which the result has not."""

    @axis_kept(p)
    def kept(axis: int, operand: int, x: Shape, /, *, axes: Shape, **params: Any) -> int | None:
        return None if axis in axes else axis - sum(a < axis for a in axes)

    @p.batch
    def rule(axis: MappedAxis, args: Any, dims: Any, /, *, axes: Shape, **params: Any) -> Any:
        (d,) = dims
        shifted = tuple([a + (a >= d) for a in axes])
        return p.bind(args[0], axes=shifted, **params), d - sum([a < d for a in shifted])
