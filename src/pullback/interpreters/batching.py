"""Batching rules in JAX's older spelling: ``jax.interpreters.batching``.

>>> import numpy as np
>>> from pullback import core, vmap
>>> from pullback.interpreters import batching
>>> negate_p = core.Primitive("negate")
>>> negate = negate_p.def_impl(np.negative)
>>> def rule(args, dims):
...     return negate_p.bind(args[0]), dims[0]
>>> batching.primitive_batchers[negate_p] = rule
>>> print(vmap(negate_p.bind)(np.ones(2)))
[-1. -1.]
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pullback.core import rules
from pullback.core.array import shape_of
from pullback.core.faces import face
from pullback.core.trace import Primitive, Rule
from pullback.core.types import MappedAxis
from pullback.interpreters.table import Table
from pullback.primitives.arrays import shapes

not_mapped = None
"""The position of the mapped axis in a value that has none."""


def _own(primitive: Primitive) -> Rule | None:
    return primitive.batch_rule


def _set_batcher(primitive: Primitive, rule: Rule) -> None:
    @functools.wraps(rule)
    def batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(tuple(args), tuple(dims), **params)

    primitive.batch_rule = rules.checked_batch(primitive, batch)


def _spelled_batcher(primitive: Primitive, rule: Rule) -> Rule:
    def batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        (size, *_) = [shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None]
        return rule(MappedAxis(None, size), list(args), list(dims), **params)

    return batch


primitive_batchers = Table("batching", _own, _set_batcher, _spelled_batcher)
"""For each primitive, ``rule(args, dims, **params) -> (out, dim)``; a dim is ``not_mapped`` without mapped axis."""


def _set_fancy_batcher(primitive: Primitive, rule: Rule) -> None:
    @functools.wraps(rule)
    def batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(axis, tuple(args), tuple(dims), **params)

    primitive.batch_rule = rules.checked_batch(primitive, batch)


fancy_primitive_batchers = Table("batching", _own, _set_fancy_batcher, lambda primitive, rule: rule)
"""For each primitive, ``rule(axis, args, dims, **params) -> (out, dim)``; the axis has a ``name`` and a ``size``."""


def _set_axis_batcher(primitive: Primitive, rule: Rule) -> None:
    @functools.wraps(rule)
    def batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(axis.size, axis.name, None, tuple(args), tuple(dims), **params)

    primitive.batch_rule = rules.checked_batch(primitive, batch)


def _spelled_axis_batcher(primitive: Primitive, rule: Rule) -> Rule:
    def batch(size: int, name: Any, trace_type: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return rule(MappedAxis(name, size), list(args), list(dims), **params)

    return batch


axis_primitive_batchers = Table("batching", _own, _set_axis_batcher, _spelled_axis_batcher)
"""For each primitive, ``rule(axis_size, axis_name, trace_type, args, dims, **params) -> (out, dim)``.

``trace_type`` is None; older JAX passed the mapping trace.
"""


# Helpers for rules ----------------------------------------------------------------------------------------------------


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """Move an axis of an array.

    Args:
      x: an array.
      src: the axis to move; a negative one counts from the end.
      dst: its position in the result.

    Returns:
      An array of the same dtype.

    >>> import pullback.numpy as jnp
    >>> from pullback.interpreters import batching
    >>> batching.moveaxis(jnp.ones((2, 3)), 1, 0).shape
    (3, 2)
    """
    ndim = len(x.shape)
    return shapes.moveaxis(x, src % ndim, dst % ndim)


def broadcast(x: Any, size: int, axis: int, mesh_axis: Any = None) -> Any:
    """Repeat an array along a new axis.

    Args:
      x: an array or a number.
      size: the size of the new axis.
      axis: the position of the new axis in the result.
      mesh_axis: is ignored; JAX has it.

    Returns:
      An array with one more axis, of the same dtype.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.interpreters import batching
    >>> batching.broadcast(jnp.ones(3), 2, 0).shape
    (2, 3)
    """
    (array,) = rules.as_operands([x])
    shape = (*array.shape[:axis], size, *array.shape[axis:])
    return shapes.broadcast_in_dim(array, shape, [i for i in range(len(shape)) if i != axis])


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Move the mapped axis of an array to the front; repeat an array without one along a new first axis.

    Args:
      x: an array.
      bdim: the position of the mapped axis, or ``not_mapped``.
      size: the size of the mapped axis.

    Returns:
      An array whose first axis is the mapped one.

    >>> import pullback.numpy as jnp
    >>> from pullback.interpreters import batching
    >>> batching.bdim_at_front(jnp.ones((3, 2)), 1, 2).shape
    (2, 3)
    >>> batching.bdim_at_front(jnp.ones(3), batching.not_mapped, 2).shape
    (2, 3)
    """
    return broadcast(x, size, 0) if bdim is not_mapped else moveaxis(x, bdim, 0)


def defvectorized(primitive: Primitive) -> None:
    """Register the batching rule of an elementwise operation of one operand.

    Args:
      primitive: the operation.

    >>> import numpy as np
    >>> from pullback import core, vmap
    >>> from pullback.interpreters import batching
    >>> negate_p = core.Primitive("negate")
    >>> negate = negate_p.def_impl(np.negative)
    >>> batching.defvectorized(negate_p)
    >>> print(vmap(negate_p.bind)(np.ones(2)))
    [-1. -1.]
    """

    def batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        out = primitive.bind(*args, **params)
        return out, [dims[0]] * len(out) if primitive.multiple_results else dims[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Primitive) -> None:
    """Register the batching rule of an elementwise operation whose operands broadcast as in NumPy.

    Args:
      primitive: the operation.

    >>> import numpy as np
    >>> from pullback import core, vmap
    >>> from pullback.interpreters import batching
    >>> hypot_p = core.Primitive("hypot")
    >>> hypot = hypot_p.def_impl(np.hypot)
    >>> batching.defbroadcasting(hypot_p)
    >>> print(vmap(hypot_p.bind, in_axes=(0, None))(np.float32([3, 0]), 4.0))
    [5. 4.]
    """

    def batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        rank = max(len(shape_of(x)) - (d is not None) for x, d in zip(args, dims, strict=True))
        aligned = [x if d is None else shapes.front_aligned(x, d, rank) for x, d in zip(args, dims, strict=True)]
        out = primitive.bind(*aligned, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    primitive_batchers[primitive] = batch


__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defvectorized",
    "fancy_primitive_batchers", "moveaxis", "not_mapped", "primitive_batchers",
]  # fmt: skip
face(globals())
