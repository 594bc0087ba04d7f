"""``vmap``: map a function over axes of its arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from pullback.core import tree
from pullback.core.annotations import AxisName, PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import Array, typeof
from pullback.core.axes import CHUNKS, new_axis
from pullback.core.errors import ArgumentError, BatchAxisError, BatchSizeError, OperandError
from pullback.core.refs import RefCell
from pullback.core.user_types import HiType, MappingSpec, types_of_values
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim
from pullback.primitives.explicit_shardings import entry_of_batch
from pullback.primitives.sums import reduce_sum
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import (
    argument_name,
    check_chunk_size,
    name_of,
    to_arrays,
)
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.batch import UnmappedResult, batch_flat
from pullback.transforms.traces.ref_views import RefView
from pullback.transforms.traces.refs import WithRefs, check_aliases, content_of, write_all

P = ParamSpec("P")
R = TypeVar("R")


# long: half of it is its documentation
def vmap(
    fun: Callable[P, R],
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    axis_name: AxisName | None = None,
    axis_size: int | None = None,
    spmd_axis_name: AxisName | None = None,
    sum_match: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """Map a function over axes of its arguments, in one vectorised call instead of a loop.

    Args:
      fun: takes and returns trees of arrays.
      in_axes: which axis of each argument to map over: an int (negative counts from the end), None for an argument
        that is not mapped, or a tuple with an entry for each argument; an entry may be a prefix tree of its argument.
        Keyword arguments are mapped over axis 0. An argument that is not mapped may be any object, for example a
        function or a string, and is passed on unchanged.
      out_axes: the position of the mapped axis in each result: an int or None, or a prefix tree of the result.
      axis_name: a name for the axis, for collective operations.
      axis_size: the size of the axis, which is needed only if no argument is mapped.
      spmd_axis_name: the axis of a mesh, or a tuple of axes, over which ``with_sharding_constraint`` within ``fun``
        shards the mapped axis; by default the compiler decides.
      sum_match: whether a mapped result whose entry in ``out_axes`` is None is summed over its mapped axis, instead of
        raising an error.
      chunk_size: the number of examples to compute at a time; by default all. It bounds the memory of eager code. Under
        ``jit`` the program contains each chunk, and the compiler may compute several at a time: use ``lax.map``.

    Returns:
      A function of the same arguments, with a further axis in those that are mapped.

    Raises:
      BatchSizeError: the sizes of the mapped axes disagree, or no argument is mapped (a ValueError).
      BatchAxisError: ``in_axes`` or ``out_axes`` does not fit (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import vmap
    >>> print(vmap(jnp.dot, in_axes=(0, None))(jnp.eye(2), jnp.array([1.0, 2.0])))
    [1. 2.]
    """
    require_function("vmap", "fun", fun)
    in_axes = _checked_in_axes(in_axes)
    _check_axis_size(axis_size)
    check_chunk_size(chunk_size, "vmap")
    sum_match = flag("vmap", "sum_match", sum_match)

    def mapped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, arrays, dims, refs = _arguments(fun, in_axes, args, kwargs)
        run = WithRefs(flat, list(refs)) if refs else flat
        size = _size(fun, arrays, dims, axis_size, args, kwargs)
        spmd_name = entry_of_batch(arrays, dims) if spmd_axis_name is None else spmd_axis_name
        summed: list[bool] = []

        def rows(chunk: Sequence[Any], count: int) -> tuple[list[Any], list[int | None]]:
            mapped_by = CHUNKS if count < size else "vmap"
            axis = new_axis(axis_name, count, mapped_by, spmd_name=spmd_name)
            outs, out_dims = batch_flat(fun, run, axis, chunk, dims)
            ends = _out_dims(flat, out_axes, outs[: len(outs) - len(refs)])
            ends += [dims[i] for i in refs]
            if sum_match:
                summed[:] = [e is None and d is not None for d, e in zip(out_dims, ends, strict=True)]
                ends = [0 if added else e for added, e in zip(summed, ends, strict=True)]
            if None in ends:
                _check_unmapped(fun, flat, out_dims, ends, count)
            return [_with_axis_at(fun, x, d, e, count) for x, d, e in zip(outs, out_dims, ends, strict=True)], ends

        results = _in_chunks(rows, arrays, dims, size, chunk_size)
        if any(summed):
            results = [reduce_sum(x, (0,)) if added else x for x, added in zip(results, summed, strict=True)]
        if refs:
            count = len(results) - len(refs)
            write_all(list(refs.values()), results[count:])
            results = results[:count]
        return flat.result(results)

    return Transformed(
        fun, mapped, vmap, in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match, chunk_size
    )


def _in_chunks(
    rows: Callable[[Sequence[Any], int], tuple[list[Any], list[int | None]]],
    arrays: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    chunk_size: int | None,
) -> list[Any]:
    """Map over the mapped axis chunk by chunk; return the results, concatenated along their mapped axes.

    Args:
      rows: takes the arrays of a chunk and the size of the chunk; returns the results, and the mapped axis of each.
      arrays: the arrays.
      dims: the mapped axis of each array, or None.
      size: the size of the mapped axis.
      chunk_size: the size of a chunk; None for a single chunk.
    """
    if chunk_size is None or chunk_size >= size:
        return rows(arrays, size)[0]
    chunks = []
    for start in range(0, size, chunk_size):
        stop = min(start + chunk_size, size)
        chunk = [x if d is None else slice_in_dim(x, start, stop, d) for x, d in zip(arrays, dims, strict=True)]
        results, ends = rows(chunk, stop - start)
        chunks.append(results)
    return [
        xs[0] if e is None else concatenate(xs, e % len(xs[0].shape))
        for xs, e in zip(zip(*chunks, strict=True), ends, strict=True)
    ]


def _checked_in_axes(in_axes: Any) -> Any:
    """Return ``in_axes``, with a list converted to a tuple; raise unless it is an int, None, a tuple or a list."""
    if isinstance(in_axes, list):
        return tuple(in_axes)
    if isinstance(in_axes, bool) or not isinstance(in_axes, (int, tuple, type(None), MappingSpec)):
        raise ArgumentError(
            "vmap: in_axes must be an int, None or a tuple with an entry for each argument, "
            f"got {in_axes!r} of type {type(in_axes).__name__}"
        )
    return in_axes


def _check_axis_size(size: Any) -> None:
    """Raise unless ``size``, the option ``axis_size``, is None or a nonnegative int."""
    try:
        valid = size is None or (not isinstance(size, bool) and operator.index(size) >= 0)
    except TypeError:
        valid = False
    if not valid:
        raise ArgumentError(f"vmap: axis_size must be a non-negative int or None, got {size!r}")


def _is_none(x: Any) -> bool:
    """Whether ``x`` is None; passed as ``is_leaf``, since None is a leaf of ``in_axes`` and ``out_axes``."""
    return x is None


def _is_axis(x: Any) -> bool:
    """Whether ``x`` is an int, but not a boolean."""
    return isinstance(x, int) and not isinstance(x, bool)


vmappable: set[type] = set()
"""Classes that were registered with ``batching.register_vmappable`` (see ``compat``), which is not supported."""


def _refuse_vmappable(fun: Any, args: PyTree) -> None:
    """Raise if an argument is an instance of a class registered with ``batching.register_vmappable``."""
    for x in tree.leaves(args, is_leaf=lambda x: type(x) in vmappable):
        if type(x) in vmappable:
            raise BatchAxisError(
                f"vmap of {name_of(fun)}: an object of type {type(x).__name__} uses batching.register_vmappable, "
                f"which is not supported"
            )


def _refuse_views(fun: Any, args: PyTree) -> None:
    """Raise if an argument is a view of a reference: its index counts the axes of the whole reference."""
    for x in tree.leaves(args, is_leaf=lambda x: isinstance(x, RefView)):
        if isinstance(x, RefView):
            raise OperandError(
                f"vmap of {name_of(fun)}: a view of a reference cannot be mapped, got {x!r}. Pass the reference, and "
                "index it in the function"
            )


def _arguments(
    fun: Any, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[FlatFunction, list[Any], list[int | None], dict[int, RefCell]]:
    """Flatten the arguments of a function under ``vmap``.

    A leaf that is not mapped may be any object, for example a string. The flat function passes such an object to
    ``fun`` unchanged; the list of arrays has a zero at its index.

    Returns:
      A tuple of four: the flat function; the leaves as arrays; the mapped axis of each leaf, or None; and the mapped
      references, by the index of the leaf.
    """
    if vmappable:
        _refuse_vmappable(fun, (args, kwargs))
    leaves, in_tree = tree.flatten_call(args, kwargs)
    axes = _in_axes(fun, in_axes, args, kwargs, len(leaves))
    flat = FlatFunction(fun, in_tree, keywords=True)
    opaque: dict[int, Any] = {}
    refs: dict[int, RefCell] = {}
    for i, axis in enumerate(axes):
        if axis is None and not isinstance(leaves[i], Array):
            opaque[i] = leaves[i]
            leaves[i] = 0
        elif isinstance(leaves[i], RefCell):
            refs[i] = leaves[i]
            leaves[i] = content_of(leaves[i])
    if refs:
        all_refs = [*refs.values(), *[x for x in opaque.values() if isinstance(x, RefCell)]]
        check_aliases(all_refs, f"vmap of {name_of(fun)}")
        _refuse_views(fun, (args, kwargs))
    flat.opaque = opaque or None
    arrays = to_arrays(leaves, "vmap", fun, args, None, kwargs)
    return flat, arrays, _in_dims(fun, in_axes, axes, args, kwargs, arrays), refs


def _in_axes(fun: Any, in_axes: Any, args: Any, kwargs: Any, count: int) -> list[Any]:
    """Return the entry of ``in_axes`` for each leaf of the arguments; it is 0 for leaves of keyword arguments.

    ``count`` is the number of leaves. Raise unless ``in_axes`` is a prefix of ``args``.
    """
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise BatchAxisError(
            f"vmap: in_axes has {len(in_axes)} entries, {in_axes!r}, but {name_of(fun)} was called with {len(args)} "
            "positional arguments; pass one entry for each (keyword arguments have no entry: their axis 0 is mapped)"
        )
    axes: list[Any]
    if isinstance(in_axes, int) or in_axes is None:
        if not kwargs:
            return [in_axes] * count
        axes = [in_axes] * (count - len(tree.leaves(kwargs)))
    else:
        try:
            axes = tree.broadcast_prefix(in_axes, args, is_leaf=_is_none)
        except ValueError as error:
            raise BatchAxisError(
                f"vmap: in_axes={in_axes!r} must be a prefix of the arguments of {name_of(fun)}: {error}"
            ) from None
    return axes + [0] * (count - len(axes))


def _in_dims(
    fun: Any, in_axes: Any, axes: Sequence[Any], args: Any, kwargs: Any, arrays: Sequence[Any]
) -> list[int | None]:
    """Return the mapped axis of each leaf of the arguments, as a nonnegative int; None if the leaf is not mapped.

    Args:
      fun, in_axes, args, kwargs: the function, its option and its arguments, for error messages.
      axes: the entry of ``in_axes`` for each leaf.
      arrays: the leaves.

    Raises:
      BatchAxisError: an entry is neither None nor an axis of its leaf.
    """
    dims: list[int | None] = []
    for i, (x, axis) in enumerate(zip(arrays, axes, strict=True)):
        if axis is None:
            dims.append(None)
            continue
        if types_of_values and isinstance(axis, MappingSpec) is not isinstance(typeof(x), HiType):
            raise _specs_disagree(fun, "in_axes", axis, typeof(x))
        if isinstance(axis, MappingSpec):
            dims.append(axis)  # type: ignore[arg-type]
            continue
        if not _is_axis(axis):
            raise BatchAxisError(f"vmap: in_axes must contain ints and None only, got {axis!r} in {in_axes!r}")
        rank = len(x.shape)
        if not -rank <= axis < rank:
            argument = argument_name(i, fun, args, None, kwargs)
            raise BatchAxisError(
                f"vmap of {name_of(fun)} was asked to map over axis {axis} of {argument}, which has shape {x.shape}; "
                "in_axes=None leaves an argument out"
            )
        dims.append(axis % rank)
    return dims


def _specs_disagree(fun: Any, option: str, entry: Any, aval: Any, how: str = "") -> BatchAxisError:
    """Return the error for an entry of ``in_axes`` or ``out_axes`` that does not fit a value of type ``aval``."""
    wanted = "a MappingSpec" if isinstance(aval, HiType) else "an int or None"
    return BatchAxisError(
        f"vmap of {name_of(fun)}: the entry of {option} for a value of type {aval}{how}, must be {wanted}, "
        f"got {entry!r}"
    )


def _size(
    fun: Any, arrays: Sequence[Any], dims: Sequence[int | None], axis_size: int | None, args: Any, kwargs: Any
) -> int:
    """Return the common size of all mapped axes; raise if sizes disagree, or if no argument is mapped.

    Args:
      fun, args, kwargs: the function and its arguments, for error messages.
      arrays: the leaves of the arguments.
      dims: the mapped axis of each leaf, or None.
      axis_size: the size that the user passed, or None.
    """
    size = axis_size
    for x, d in zip(arrays, dims, strict=True):
        if d is not None and not isinstance(d, MappingSpec):
            n = x.shape[d]
            if size is None:
                size = n
            elif n != size:
                raise _sizes_disagree(fun, arrays, dims, axis_size, args, kwargs)
    if size is None:
        why = "in_axes is None for every argument" if arrays else "it was called without arrays"
        if any(isinstance(d, MappingSpec) for d in dims):
            why = "only values of users' types are"
        raise BatchSizeError(
            f"vmap of {name_of(fun)}: nothing is mapped ({why}), so the size of the axis is unknown; map over an "
            f"argument, or pass axis_size"
        )
    return size


def _sizes_disagree(
    fun: Any, arrays: Sequence[Any], dims: Sequence[int | None], axis_size: int | None, args: Any, kwargs: Any
) -> BatchSizeError:
    """Return the error for mapped axes of different sizes; its message has a line for each mapped leaf.

    The arguments are those of :func:`_size`.
    """
    lines = [f"  axis_size is {axis_size}"] if axis_size is not None else []
    for i, (x, d) in enumerate(zip(arrays, dims, strict=True)):
        if d is not None and not isinstance(d, MappingSpec):
            argument = argument_name(i, fun, args, None, kwargs)
            lines.append(f"  {argument} of shape {x.shape} has size {x.shape[d]} along axis {d}")
    return BatchSizeError(
        f"vmap of {name_of(fun)}: the mapped axes must have one size (in_axes=None leaves an argument out), but\n"
        + "\n".join(lines)
    )


def _out_dims(flat: FlatFunction, out_axes: Any, outs: Sequence[Any]) -> list[int | None]:
    """Return the entry of ``out_axes`` for each of ``outs``, the leaves of the results of ``flat``.

    Raise unless ``out_axes`` is a prefix of the results.
    """
    if isinstance(out_axes, int) or out_axes is None:
        return [out_axes] * len(outs)
    try:
        axes: list[Any] = tree.broadcast_prefix(out_axes, flat.result(outs), is_leaf=_is_none)
    except ValueError as error:
        raise BatchAxisError(
            f"vmap: out_axes={out_axes!r} must be a prefix of the results of {name_of(flat.fun)}: {error}"
        ) from None
    return axes


def _check_unmapped(
    fun: Any, flat: FlatFunction, dims: Sequence[int | None], ends: Sequence[int | None], size: int
) -> None:  # fmt: skip
    """Raise if a result is mapped whose entry in ``out_axes`` is None; the message names the result.

    Args:
      fun, flat: the function.
      dims: the position of the mapped axis in each result, or None.
      ends: the entry of ``out_axes`` for each result.
      size: the size of the mapped axis.
    """
    for i, (dim, end) in enumerate(zip(dims, ends, strict=True)):
        if end is None and dim is not None and not (type(dim) is UnmappedResult and size):
            path, _ = tree.leaves_with_path(flat.result(range(flat.count)))[i]
            raise BatchAxisError(
                f"vmap of {name_of(fun)}: at vmap out_axes{tree.keystr(path)}, got axis spec None but output was "
                f"batched on axis {dim}: out_axes is None for a result that depends on the mapped arguments; pass "
                "the position of its mapped axis"
            )


def _with_axis_at(fun: Any, x: Any, dim: int | None, end: int | None, size: int) -> Any:
    """Move the mapped axis of a result to the position that ``out_axes`` asks for; raise if that is impossible.

    Args:
      fun: the function, for error messages.
      x: the result.
      dim: the position of the mapped axis in ``x``; None if ``x`` has no mapped axis, and is repeated along a new one.
      end: the entry of ``out_axes`` for the result; None to return the result without a mapped axis.
      size: the size of the mapped axis.

    Returns:
      The result with its axis moved.
    """
    if end is None:
        if type(dim) is UnmappedResult and size:  # all examples are equal
            return shapes.squeeze(slice_in_dim(x, 0, 1, dim), (dim,))
        return x
    if types_of_values and isinstance(typeof(x), HiType):
        if not isinstance(end, MappingSpec) or dim != end:
            raise _specs_disagree(fun, "out_axes", end, typeof(x), f", which is mapped as {dim!r}")
        return x
    rank = len(x.shape) + (dim is None)
    if not _is_axis(end):
        raise BatchAxisError(f"vmap of {name_of(fun)}: out_axes must contain ints and None only, got {end!r}")
    if not -rank <= end < rank:
        shape = x.shape if dim is None else x.shape[:dim] + x.shape[dim + 1 :]
        raise BatchAxisError(
            f"vmap of {name_of(fun)}: out_axes puts the mapped axis at {end} of a result of shape {shape}, "
            f"which has only {rank} positions"
        )
    end %= rank
    if dim is None:
        shape = (*x.shape[:end], size, *x.shape[end:])
        return shapes.broadcast_in_dim(x, shape, [i for i in range(rank) if i != end])
    return shapes.moveaxis(x, dim, end)
