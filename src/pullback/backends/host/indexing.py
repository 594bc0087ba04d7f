"""Gather and scatter on the host: translation of XLA's dimension numbers to NumPy's index expressions.

A gather selects one window of the operand for each index vector. Its result has *batch* axes, one for each axis of the
indices except the last, and *window* axes. With NumPy it is ``operand.transpose(...)[advanced indices, slices]``, which
is called *rows* below: its axes are the batch axes, the window axes of indexed operand axes, and the window axes of the
others. A scatter is the same expression on the left of an assignment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import moves, own
from pullback.backends.host.parallel import cores
from pullback.core.array import MOST_HOST_AXES

Axes = tuple[int, ...]


class IndexLayout(NamedTuple):
    """The plan of a gather or scatter, which depends on shapes alone.

    *Rows* are the windows as NumPy returns or assigns them: ``operand.transpose(order)[(*advanced, *slices)]``.

    Attributes:
      batch: the sizes of the batch axes.
      limits: for each component of an index vector its largest valid value, as an array of ``intp``.
      indexed: the operand's axis for each component of an index vector.
      sizes: the size of the window along each axis of the operand.
      advanced: for each operand axis with an advanced index: the axis, the component of the index vector (-1 for
        none), and the offsets to add to the component (None for none).
      order: the permutation of the operand's axes that puts the advanced axes first; None if they are first.
      slices: the slices of the other axes of the operand.
      to_result: the permutation of the axes of rows to their order in the result, which may have more axes, of size 1.
      from_result: the inverse permutation.
      packed: the shape of the result without the axes that rows lack.
      shape: the shape of the result.
      mask_shape: the shape of the result with size 1 for window axes.
      take_axis: the one indexed axis if ``np.take`` can do the gather; None otherwise.
      take_order: the permutation from the result of ``np.take`` to the result.
      along: the shapes of the operand, of the indices and of the updates, and the axis, if each window is one element,
        and its index vector a position along this axis; or, if the axis is 0 and there is one index for each row of the
        updates, a row. None otherwise.
    """

    batch: Axes
    limits: Any
    indexed: Axes
    sizes: Axes
    advanced: tuple[tuple[int, int, Any], ...]
    order: Axes | None
    slices: tuple[slice, ...]
    to_result: Axes
    from_result: Axes
    packed: Axes
    shape: Axes
    mask_shape: Axes
    take_axis: int | None
    take_order: Axes
    along: tuple[Axes, Axes, Axes, int] | None


def layout(shape: Axes, indices_shape: Axes, sizes: Axes, numbers: tuple[Axes, Axes, Axes, Axes, Axes]) -> IndexLayout:
    """Plan a gather or scatter, whose shapes and dimension numbers must be consistent.

    Args:
      shape: the shape of the operand.
      indices_shape: the shape of the indices, with index vectors along the last axis.
      sizes: the size of the window along each axis of the operand.
      numbers: the dimension numbers: the positions of the window axes in the result; the operand axes that windows
        lack; the operand axis of each component of an index vector; the batching axes of the operand; the matching
        batching axes of the indices.
    """
    window_axes, dropped, indexed, operand_batching, indices_batching = numbers
    batch = indices_shape[:-1]
    rank = len(batch)
    windows = [d for d in range(len(shape)) if d not in dropped and d not in operand_batching]
    full_dims = [d for d in windows if d not in indexed or sizes[d] == shape[d]]
    advanced_dims = [d for d in range(len(shape)) if d not in full_dims]
    ranged = [d for d in advanced_dims if d in windows and sizes[d] != 1]

    def advanced(d: int) -> tuple[int, int, Any]:
        everything = rank + len(ranged)
        if d in operand_batching:
            axis = indices_batching[operand_batching.index(d)]
            return d, -1, _along(batch[axis], axis, everything)
        if d not in indexed:
            return d, -1, _along(1, 0, everything)
        step = _along(sizes[d], rank + ranged.index(d), everything) if d in ranged else None
        return d, indexed.index(d), step

    batch_axes = [i for i in range(rank + len(windows)) if i not in window_axes]
    result_axis = dict(zip(windows, window_axes, strict=True))
    # The axes of rows, as positions in the result:
    rows = [*batch_axes, *(result_axis[d] for d in ranged), *(result_axis[d] for d in full_dims)]
    extent = {**dict(zip(batch_axes, batch, strict=True)), **{result_axis[d]: sizes[d] for d in windows}}
    present = sorted(rows)
    to_result = tuple(rows.index(i) for i in present)
    full = not ranged and all(sizes[d] == shape[d] for d in full_dims)
    take_axis = advanced_dims[0] if full and len(advanced_dims) == 1 and advanced_dims[0] in indexed else None
    take_rows = _take_rows(take_axis, full_dims, result_axis, batch_axes)
    return IndexLayout(
        batch=batch,
        limits=np.array([shape[d] - sizes[d] for d in indexed], np.intp),
        indexed=indexed,
        sizes=sizes,
        advanced=tuple(map(advanced, advanced_dims)),
        order=None if advanced_dims + full_dims == sorted(advanced_dims + full_dims) else (*advanced_dims, *full_dims),
        slices=tuple(slice(0, sizes[d]) for d in full_dims),
        to_result=to_result,
        from_result=tuple(present.index(i) for i in rows),
        packed=tuple(extent[i] for i in present),
        shape=tuple(extent[i] for i in range(rank + len(windows))),
        mask_shape=tuple(extent[i] if i in batch_axes else 1 for i in range(rank + len(windows))),
        take_axis=take_axis,
        take_order=tuple(take_rows.index(i) for i in present if take_axis is not None),
        along=_along_one_axis(shape, batch, sizes, numbers),
    )


def _along_one_axis(
    shape: Axes, batch: Axes, sizes: Axes, numbers: tuple[Axes, Axes, Axes, Axes, Axes]
) -> tuple[Axes, Axes, Axes, int] | None:
    """Return ``IndexLayout.along``; the arguments are those of :func:`layout`, with the sizes of the batch axes."""
    window_axes, dropped, indexed, operand_batching, indices_batching = numbers
    if not batch or len(indexed) != 1 or dropped != indexed:
        return None
    (axis,) = indexed
    if not window_axes and operand_batching == indices_batching and len(operand_batching) == len(batch) - 1:
        return (shape, batch, batch, axis) if axis not in indices_batching else None
    rank, count = len(batch), math.prod(batch)
    rows = not operand_batching and axis == 0 and sizes[1:] == shape[1:]
    if not rows or window_axes != tuple(range(rank, rank + len(shape) - 1)):
        return None
    return shape, (count,), (count, *shape[1:]), axis


def _take_rows(
    take_axis: int | None, full_dims: list[int], result_axis: dict[int, int], batch_axes: list[int]
) -> list[int]:
    """For each axis of the result of ``np.take``, its position in the result of the gather.

    Args:
      take_axis: the axis of the operand to take along. None if ``np.take`` cannot do the gather: the result is then an
        empty list.
      full_dims: the axes of the operand that windows contain.
      result_axis: the axis of the gather's result for each of ``full_dims``.
      batch_axes: the other axes of the gather's result.
    """
    if take_axis is None:
        return []
    return [
        *(result_axis[d] for d in full_dims if d < take_axis),
        *batch_axes,
        *(result_axis[d] for d in full_dims if d > take_axis),
    ]


def _along(size: int, axis: int, rank: int) -> Any:
    """An array of the integers 0 to ``size`` - 1 along ``axis``, with ``rank`` axes; the others have size 1."""
    return np.arange(size, dtype=np.intp).reshape([size if i == axis else 1 for i in range(rank)])


def _valid(indices: Any, limits: Any) -> Any:
    """A mask of the index vectors whose components are all from 0 to ``limits``; None if all index vectors are.

    The comparison is unsigned, so that a negative index is a large number.
    """
    width = indices.dtype.itemsize
    quick = indices.size >= _MANY and len(limits) == 1 and limits[0] < 1 << 8 * width - 1
    if quick and int(indices.view(f"u{width}").max()) <= limits[0]:
        return None  # by one maximum, which takes a fifth of the time of the mask, and less for narrow integers
    outside = indices.astype(np.intp, copy=False).view(np.uintp) > limits.view(np.uintp)
    return ~outside.any(-1) if outside.any() else None


_MANY = 1 << 13
"""The indices from which on reading them once more costs more than a call of NumPy's."""


def _clip(indices: Any, limits: Any) -> Any:
    return np.minimum(np.maximum(indices, 0), limits)


def _block(starts: Sequence[int], plan: IndexLayout) -> tuple[Any, ...]:
    """An index expression, one slice for each axis, for the window that begins at the index vector ``starts``."""
    block = [slice(0, n) for n in plan.sizes]
    for d, start in zip(plan.indexed, starts, strict=True):
        block[d] = slice(start, start + plan.sizes[d])
    return tuple(block)


def _advanced(indices: Any, plan: IndexLayout, keep: Any) -> list[Any]:
    """Convert index vectors to an index array for each axis of the operand that ``plan`` indexes by an array.

    ``keep`` is a boolean mask of the index vectors to use; None for all.
    """
    extra = (1,) * max((s.ndim - len(plan.batch) for _, _, s in plan.advanced if s is not None), default=0)
    out = []
    for _, component, step in plan.advanced:
        if component < 0:
            index = step if keep is None else np.broadcast_to(step, (*plan.batch, *extra))[keep]
        else:
            index = indices[..., component]
            index = index if keep is None else index[keep]
            index = index.reshape(index.shape + extra) if extra else index
            if step is not None:
                index = index + (step if keep is None else step.reshape(step.shape[len(plan.batch) - 1 :]))
        out.append(index)
    return out


def gather(x: Any, indices: Any, plan: IndexLayout, fill_value: Any) -> Any:
    """Gather the windows of ``x`` at ``indices``.

    Args:
      x: the operand.
      indices: integers, with index vectors along the last axis.
      plan: the layout.
      fill_value: the elements of windows that are not inside the operand; None to clamp indices instead.
    """
    x = np.asarray(x)
    indices = np.asarray(indices)
    if plan.along is not None and own.loops is not None:
        shape, at, _, axis = plan.along
        if len(at) == len(shape):
            out = np.empty(at, x.dtype)
            options = AS_THEY_ARE if fill_value is not None else CLIPPED, _helpers(out)
            if own.loops.pick(x, indices.reshape(at), axis, out, *options):
                return out.reshape(plan.shape)
    valid = None if fill_value is None else _valid(indices, plan.limits)
    indices = indices.astype(np.intp, copy=False)
    if not plan.batch:
        if valid is not None:
            return np.full(plan.shape, fill_value, x.dtype)[()]
        if fill_value is None:
            indices = _clip(indices, plan.limits)
        return x[_block(indices.tolist(), plan)].reshape(plan.shape)[()]
    if plan.take_axis is not None and x.ndim + indices.ndim - 2 <= MOST_HOST_AXES:  # NumPy's function crashes otherwise
        rows = x.take(indices[..., plan.indexed.index(plan.take_axis)], axis=plan.take_axis, mode="clip")
        out = rows.transpose(plan.take_order).reshape(plan.shape)
    else:
        if fill_value is None or valid is not None:
            indices = _clip(indices, plan.limits)
        source = x if plan.order is None else x.transpose(plan.order)
        rows = source[(*_advanced(indices, plan, None), *plan.slices)]
        full = (*plan.batch, *rows.shape[len(plan.batch) :]) if plan.advanced else (*plan.batch, *rows.shape)
        rows = rows if rows.shape == full else np.broadcast_to(rows, full)
        out = rows.transpose(plan.to_result).reshape(plan.shape)
    if valid is not None:
        out = out if out.flags.writeable else out.copy()
        np.copyto(out, fill_value, where=~valid.reshape(plan.mask_shape), casting="unsafe")
    return out


def scatter(x: Any, indices: Any, updates: Any, plan: IndexLayout, op: Any, clip: bool, unique: bool) -> Any:
    """Replace the windows of ``x`` at ``indices`` by ``updates``, or combine them.

    Args:
      x: the operand.
      indices: integers, with index vectors along the last axis.
      updates: the updates, in the shape of the result of a gather.
      plan: the layout.
      op: a binary ufunc that combines old and new elements; None to replace them, where the last update wins.
      clip: whether to clamp the indices of windows that are not inside the operand; otherwise these are dropped.
      unique: whether the windows are known not to overlap.
    """
    out = moves.copied(x)
    indices = np.asarray(indices)
    if op is np.add and plan.along is not None:
        _, at, size, axis = plan.along
        if add_at(out, indices.reshape(at), axis, np.asarray(updates).reshape(size), clip):
            return out
    valid = None if clip else _valid(indices, plan.limits)
    indices = indices.astype(np.intp, copy=False)
    if clip:
        indices = _clip(indices, plan.limits)
    if not plan.batch:
        if valid is None:
            window = out[(*_block(indices.tolist(), plan), ...)]
            new = np.asarray(updates).reshape(window.shape)
            if op is None:
                window[...] = new
            else:
                op(window, new, out=window)
        return out[()]
    rows = np.asarray(updates).reshape(plan.packed).transpose(plan.from_result)
    if valid is not None:
        rows = rows[valid]
    advanced = _advanced(indices, plan, valid)
    if not (op is None or unique) or all(component < 0 for _, component, _ in plan.advanced):
        _update_flat(out, _positions(advanced, rows.shape, out.shape, plan), rows, op)
        return out
    target = out if plan.order is None else out.transpose(plan.order)
    key = (*advanced, *plan.slices)
    target[key] = rows if op is None else op(target[key], rows)
    return out


def _positions(advanced: Sequence[Any], rows_shape: Axes, shape: Axes, plan: IndexLayout) -> Any:
    """The index in the flattened operand of each element of the updates, as an array of shape ``rows_shape``.

    Args:
      advanced: an index array for each axis in ``plan.advanced``.
      rows_shape: the shape of the updates, with the axes of the index arrays first.
      shape: the shape of the operand.
      plan: the layout.
    """
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    trailing = (1,) * len(plan.slices)
    terms = []
    for (d, _, _), index in zip(plan.advanced, advanced, strict=True):
        term = index if strides[d] == 1 else index * strides[d]
        terms.append(term.reshape(index.shape + trailing))
    order = plan.order or tuple(range(len(shape)))
    for k, d in enumerate(order[len(advanced) :]):
        terms.append(_along(plan.slices[k].stop, k, len(trailing)) * strides[d])
    return np.broadcast_to(sum(terms[1:], terms[0]) if terms else np.zeros((), np.intp), rows_shape)


def _update_flat(out: Any, positions: Any, rows: Any, op: Any) -> None:
    """Write ``rows`` into ``out``, or combine them, at ``positions``, which index the flattened ``out``, in order.

    ``op`` is a ufunc that combines old and new elements; None to replace the old. NumPy is fast with one flat index.
    """
    flat = out.reshape(-1)
    if op is None:
        flat[positions.ravel()] = rows.ravel()
    else:
        op.at(flat, positions.ravel(), rows.ravel())


MANY_PICKS = 1 << 15
"""The positions that are worth a thread."""
AS_THEY_ARE, WRAPPED, CLIPPED = range(3)
"""How the module treats positions out of range: not at all; negative ones count from the end; as the nearest."""
MANY_POSITIONS = 1024
"""The least positions for which flat ones are computed: of a million NumPy's way takes 2.5 times as long."""


def _helpers(x: Any) -> int:
    """The number of threads that may help with each element of an array."""
    return min(cores() - 1, x.size // MANY_PICKS)


def add_at(out: Any, positions: Any, axis: int, updates: Any, clips: bool = False) -> bool:
    """Add elements to those at positions along an axis, separate ones for each vector; or rows to rows.

    Args:
      out: an array of row-major order, which is written.
      positions: integers, of the shape of the updates; or a vector with one for each row of the updates.
      axis: the axis.
      updates: the elements, in an array of the dtype of ``out``.
      clips: whether positions out of range count as the nearest in range; otherwise nothing is added for them.

    Returns:
      Whether it was done: not without the module in C, and for dtypes that it has no loops for.
    """
    if own.loops is None:
        return False
    range_ = CLIPPED if clips else AS_THEY_ARE
    return own.loops.add_at(out, positions, axis, np.ascontiguousarray(updates), range_, _helpers(updates))


def along_axis(x: Any, positions: Any, axis: int) -> Any:
    """Return what ``np.take_along_axis`` does: elements at positions along an axis, separate ones for each vector.

    Raises:
      IndexError: a position is out of range.
    """
    if own.loops is not None:
        out = np.empty(positions.shape, x.dtype)
        done = own.loops.pick(x, positions, axis, out, WRAPPED, _helpers(out))
        if done:
            return out
        if done is not None:
            raise IndexError(f"a position is out of range for an axis of size {x.shape[axis]}")
    if positions.size < MANY_POSITIONS or not x.flags.c_contiguous:
        return np.take_along_axis(x, positions, axis)
    shape, size = x.shape, x.shape[axis]
    before, after = shape[:axis], shape[axis + 1 :]
    if (positions.shape[:axis], positions.shape[axis + 1 :]) != (before, after):
        return np.take_along_axis(x, positions, axis)
    step = math.prod(after)
    flat = positions.astype(np.intp).reshape(-1, positions.shape[axis], step)
    if flat.view(np.uintp).max() >= size:
        if positions.dtype.kind == "u" or flat.max() >= size or flat.min() < -size:
            raise IndexError(f"a position is out of range for an axis of size {size}")
        flat[flat < 0] += size
    if step > 1:
        flat *= step
        flat += np.arange(step)
    if len(flat) > 1:
        flat += np.arange(0, x.size, size * step)[:, None, None]
    return x.reshape(-1).take(flat.reshape(positions.shape), mode="wrap")  # all are in range: no copy to check them
