"""Declarations of how the axes of an operation's operands map to the axes of its results.

A declaration registers two rules: the batching rule, which leaves the mapped axis or moves it to the front, and
``axis_kept``, which tells the forward Laplacian that the operation treats each index along an axis separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape
from pullback.primitives.arrays import shapes
from pullback.primitives.rules import GONE, axis_divided, axis_kept

Params = dict[str, Any]


def front(x: Any, dim: int | None, axis: MappedAxis) -> Any:
    """Move the mapped axis of ``x`` to the front; repeat ``x`` along a new axis if it is not mapped."""
    if dim is None:
        return shapes.broadcast_in_dim(x, (axis.size, *x.shape), range(1, len(x.shape) + 1))
    return shapes.moveaxis(x, dim, 0)


def mapped_to_front(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Move the mapped axis of each operand to the front; repeat an unmapped operand along a new axis."""
    return [front(x, dim, axis) for x, dim in zip(args, dims, strict=True)]


def mapped_first(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Move the mapped axis of each operand to the front; an unmapped operand gets an axis of size one."""
    return [
        shapes.expand_dims(x, (0,)) if d is None else shapes.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)
    ]


def works_on_last(p: Primitive, *counts: int | Callable[[Params], int]) -> None:
    """Declare that an operation works on the last axes of each operand, and that all others are batch axes.

    The batch axes are equal in all operands, and lead in the results too. For example, ``works_on_last(p, 2, 1)``
    declares an operation on matrices and vectors.

    Args:
      p: the operation.
      *counts: for each operand the number of last axes on which ``p`` works; one number holds for all operands. A
        function of the parameters that returns the number is accepted too.
    """

    @axis_kept(p)
    def result_axis(axis: int, operand: int, /, *shapes: Shape, **params: Any) -> int | None:
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
    """Declare that an operation works along some axes, separately for each index of the other axes, and moves no axis.

    Args:
      p: the operation; all operands have the same number of axes.
      name: the parameter that holds the axis along which it works.
      several: whether that parameter is a tuple of axes.
      broadcasts: whether an axis of size one broadcasts against the other operands.
    """

    @axis_kept(p)
    def result_axis(axis: int, operand: int, /, *shapes: Shape, **params: Any) -> int | None:
        sizes = {shape[axis] for shape in shapes if axis < len(shape)}
        along = axis in params[name] if several else axis == params[name]
        return None if along or len(sizes) > 1 else axis

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
    """Declare that an operation of one operand reduces the axes in its parameter ``axes``, which the result lacks."""

    @axis_kept(p)
    def result_axis(axis: int, operand: int, x: Shape, /, *, axes: Shape, **params: Any) -> int | None:
        return None if axis in axes else axis - sum(a < axis for a in axes)

    @axis_divided(p)
    def gone(axis: int, operand: int, *shapes: Shape, **params: Any) -> int:
        return GONE

    @p.batch
    def rule(axis: MappedAxis, args: Any, dims: Any, /, *, axes: Shape, **params: Any) -> Any:
        (d,) = dims
        shifted = tuple([a + (a >= d) for a in axes])
        return p.bind(args[0], axes=shifted, **params), d - sum([a < d for a in shifted])
