"""``smap``: ``shard_map`` over one axis of a mesh, with ``in_axes`` and ``out_axes`` as of ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from pullback.backends.devices.shardings import PartitionSpec
from pullback.core import source, tree
from pullback.core.annotations import AxisName, Decorator, PyTree
from pullback.core.arguments import require_function
from pullback.core.array import typeof
from pullback.core.errors import ShardMapError
from pullback.primitives.arrays.shapes import moveaxis
from pullback.spmd.shard_map import INFERRED, shard_map
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of

P = ParamSpec("P")
R = TypeVar("R")


@overload
def smap(
    f: Callable[P, R], /, *, in_axes: PyTree = INFERRED, out_axes: PyTree, axis_name: AxisName
) -> Callable[P, R]: ...
@overload
def smap(f: None = None, /, *, in_axes: PyTree = INFERRED, out_axes: PyTree, axis_name: AxisName) -> Decorator: ...
# long: half of it is its documentation
def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: PyTree = INFERRED, out_axes: PyTree, axis_name: AxisName
) -> Any:
    """Map a function of shards to a function of global arrays, over the devices along one axis of a mesh.

    It is :func:`shard_map` over that axis alone; along the others the compiler divides the work, as outside of it.

    Args:
      f: takes and returns trees of arrays, which are shards. Without it, a decorator is returned.
      in_axes: the axis along which the arguments are divided: a position, None for no division, or a tuple with a
        position, or a tree of positions that is a prefix of the argument, for each argument. Left out, it follows from
        the types of the arguments, if the axis of the mesh is of the type ``Explicit``.
      out_axes: the axis along which the shards of the results are concatenated, in the same form.
      axis_name: the name of the axis in the mesh of ``set_mesh``.

    Returns:
      A function of the same arguments, as global arrays, that returns global arrays.

    Raises:
      ShardMapError: axes do not fit, the mesh does not divide a size, or a result varies along the axis where
        ``out_axes`` is None (a ValueError and TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import make_mesh, set_mesh, smap
    >>> with set_mesh(make_mesh((1,), ("i",))):
    ...     print(smap(lambda x: x - x.max(), in_axes=0, out_axes=0, axis_name="i")(jnp.arange(3.0)))
    [-2. -1.  0.]
    """
    if f is None:
        return partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    require_function("smap", "f", f)
    fun = f
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @source.named_as(fun)
    @api_boundary
    def mapped(*args: Any) -> Any:
        in_specs = INFERRED if in_axes is INFERRED else _specs(fun, in_axes, args, axis_name)
        axes_of_result: list[int | None] = []
        trees: list[Any] = []

        @source.named_as(fun, attributes=False)
        def with_axes_in_front(*shards: Any) -> Any:
            out = fun(*shards)
            outs, out_tree = tree.flatten(out)
            trees.append(out_tree)
            axes_of_result[:] = _positions(fun, "out_axes", out_axes, out, outs)
            pairs = list(zip(outs, axes_of_result, strict=True))
            return [moveaxis(x, a, 0) for x, a in pairs if a is not None], [x for x, a in pairs if a is None]

        on_arrays = shard_map(
            with_axes_in_front,
            in_specs=in_specs,
            out_specs=(PartitionSpec(axis_name), PartitionSpec()),
            axis_names={axis_name},
        )
        divided, same = map(iter, on_arrays(*args))
        outs = [next(same) if a is None else moveaxis(next(divided), 0, a) for a in axes_of_result]
        return tree.unflatten(trees[-1], outs)

    return mapped


def _specs(fun: Any, in_axes: Any, args: Any, axis_name: Any) -> Any:
    """Return the specifications of the arguments, a tree like ``args``, by which ``in_axes`` divides them."""
    prefix = (in_axes,) * len(args) if _is_axis(in_axes) else in_axes
    leaves, in_tree = tree.flatten(args)
    specs = [
        PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)
        for axis in _positions(fun, "in_axes", prefix, args, leaves)
    ]
    return tree.unflatten(in_tree, specs)


def _is_axis(x: Any) -> bool:
    return x is None or isinstance(x, int)


def _positions(fun: Any, what: str, axes: Any, of: Any, leaves: Sequence[Any]) -> list[int | None]:
    """Return a nonnegative axis, or None, for each leaf of a tree, by broadcasting the prefix ``axes`` of the tree.

    Args:
      fun: the function, for errors.
      what: "in_axes" or "out_axes", for errors.
      axes: a prefix of the tree ``of``, whose leaves are ints and None; a negative int counts from the end.
      of: the tree: the arguments, or the result.
      leaves: the leaves of the tree.
    """
    try:
        entries = tree.broadcast_prefix(axes, of, is_leaf=_is_axis)
    except ValueError as error:
        raise ShardMapError(
            f"smap of {name_of(fun)}: {what}={axes!r} must be a prefix of the "
            f"{'arguments' if what == 'in_axes' else 'result'}: {error}"
        ) from None
    found: list[int | None] = []
    for axis, leaf in zip(entries, leaves, strict=True):
        if not _is_axis(axis) or isinstance(axis, bool):
            raise ShardMapError(f"smap of {name_of(fun)}: {what} must contain positions of axes or None, got {axis!r}")
        rank = len(typeof(leaf).shape)
        if axis is not None and not -rank <= axis < rank:
            raise ShardMapError(f"smap of {name_of(fun)}: {what} names axis {axis} of an array of {rank} axes")
        found.append(axis if axis is None else axis % rank)
    return found
