"""Gather and scatter on NumPy: how XLA's dimension numbers become NumPy's index expressions.

A gather takes one window of the operand for each index vector. Its result has *batch* axes, one for each axis of the
indices but the last, and *window* axes. With NumPy it is ``operand.transpose(...)[advanced indices, slices]``, whose
axes are the batch axes, the windows of the axes that are indexed, and those of the others: *rows* below. A scatter is
the same expression on the left of an assignment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Axes = tuple[int, ...]


class IndexLayout(NamedTuple):
    """What a gather or scatter does with axes, worked out from shapes alone.

    Attributes:
      batch: the sizes of the batch axes.
      limits: for each component of an index vector its largest value, as an array of ``intp``.
      indexed: the operand's axis for each component of an index vector.
      sizes: the size of the window along each axis of the operand.
      advanced: for each axis of the operand that takes an advanced index, in the order of rows: the axis, which
        component it takes (-1 for none), and what to add to it (None for nothing).
      order: the permutation of the operand's axes that puts the advanced ones first; None if they are first.
      slices: the slices of the other axes of the operand.
      to_result: the permutation from rows to the result (without axes of size 1 that rows lack).
      from_result: its inverse.
      packed: the shape of the result without the axes that rows lack.
      shape: the shape of the result.
      mask_shape: the same with 1 for the windows' axes.
      take_axis: the one axis that is indexed if ``np.take`` can do it; None otherwise.
      take_order: the permutation from what ``np.take`` returns to the result.
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


def layout(
    shape: Axes,
    indices_shape: Axes,
    sizes: Axes,
    numbers: tuple[Axes, Axes, Axes, Axes, Axes],
) -> IndexLayout:
    """The layout of a gather or scatter whose shapes and dimension numbers fit together.

    Args:
      shape: that of the operand.
      indices_shape: that of the indices, whose last axis is the index vector.
      sizes: of the window along each axis of the operand.
      numbers: the positions of the windows' axes in the result; the axes of the operand that the windows lack; the
        operand's axis for each component of an index vector; axes of the operand that go along with axes of the
        indices; these axes of the indices.
    """
    window_axes, dropped, indexed, operand_batching, indices_batching = numbers
    batch = indices_shape[:-1]
    rank = len(batch)
    windows = [d for d in range(len(shape)) if d not in dropped and d not in operand_batching]
    whole = [d for d in windows if d not in indexed or sizes[d] == shape[d]]
    advanced_dims = [d for d in range(len(shape)) if d not in whole]
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
    place = dict(zip(windows, window_axes, strict=True))
    # The axes of rows, as positions in the result:
    rows = [*batch_axes, *(place[d] for d in ranged), *(place[d] for d in whole)]
    extent = {**dict(zip(batch_axes, batch, strict=True)), **{place[d]: sizes[d] for d in windows}}
    kept = sorted(rows)
    to_result = tuple(rows.index(i) for i in kept)
    full = not ranged and all(sizes[d] == shape[d] for d in whole)
    taken = advanced_dims[0] if full and len(advanced_dims) == 1 and advanced_dims[0] in indexed else None
    take_rows = _take_rows(taken, whole, place, batch_axes)
    return IndexLayout(
        batch=batch,
        limits=np.array([shape[d] - sizes[d] for d in indexed], np.intp),
        indexed=indexed,
        sizes=sizes,
        advanced=tuple(map(advanced, advanced_dims)),
        order=None if advanced_dims + whole == sorted(advanced_dims + whole) else (*advanced_dims, *whole),
        slices=tuple(slice(0, sizes[d]) for d in whole),
        to_result=to_result,
        from_result=tuple(kept.index(i) for i in rows),
        packed=tuple(extent[i] for i in kept),
        shape=tuple(extent[i] for i in range(rank + len(windows))),
        mask_shape=tuple(extent[i] if i in batch_axes else 1 for i in range(rank + len(windows))),
        take_axis=taken,
        take_order=tuple(take_rows.index(i) for i in kept if taken is not None),
    )


def _take_rows(taken: int | None, whole: list[int], place: dict[int, int], batch_axes: list[int]) -> list[int]:
    """The axes of what ``np.take`` returns, as positions in the result."""
    if taken is None:
        return []
    return [*(place[d] for d in whole if d < taken), *batch_axes, *(place[d] for d in whole if d > taken)]


def _along(size: int, axis: int, rank: int) -> Any:
    """0, 1, 2, ... along one axis of ``rank``."""
    return np.arange(size, dtype=np.intp).reshape([size if i == axis else 1 for i in range(rank)])


def _valid(indices: Any, limits: Any) -> Any:
    """Which index vectors are in range; None if all are. (A negative index is a large unsigned one.)"""
    outside = indices.view(np.uintp) > limits.view(np.uintp)
    return ~outside.any(-1) if outside.any() else None


def _clip(indices: Any, limits: Any) -> Any:
    return np.minimum(np.maximum(indices, 0), limits)


def _block(starts: Sequence[int], plan: IndexLayout) -> tuple[Any, ...]:
    """The one window that an index vector without batch axes means, as slices."""
    block = [slice(0, n) for n in plan.sizes]
    for d, start in zip(plan.indexed, starts, strict=True):
        block[d] = slice(start, start + plan.sizes[d])
    return tuple(block)


def _advanced(indices: Any, plan: IndexLayout, keep: Any) -> list[Any]:
    """The advanced index of each axis that has one; only of the valid index vectors if ``keep`` says which."""
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
    """The windows of ``x`` at ``indices``.

    Args:
      x: the operand.
      indices: integers, the index vector last.
      plan: the layout.
      fill_value: what windows hold that are not inside the operand; None to move them inside.
    """
    x = np.asarray(x)
    indices = np.asarray(indices).astype(np.intp, copy=False)
    valid = None if fill_value is None else _valid(indices, plan.limits)
    if not plan.batch:
        if valid is not None:
            return np.full(plan.shape, fill_value, x.dtype)[()]
        if fill_value is None:
            indices = _clip(indices, plan.limits)
        return x[_block(indices.tolist(), plan)].reshape(plan.shape)[()]
    if plan.take_axis is not None:
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
    """``x`` with its windows at ``indices`` replaced by ``updates``, or combined with them.

    Args:
      x: the operand.
      indices: integers, the index vector last.
      updates: in the shape of the result of a gather.
      plan: the layout.
      op: a ufunc of two arguments that combines old and new; None to replace: of several updates of one element the
        last one stays.
      clip: whether windows that are not inside the operand are moved inside; they are left out otherwise.
      unique: whether the windows are known not to overlap.
    """
    out = np.array(x, order="C")
    indices = np.asarray(indices).astype(np.intp, copy=False)
    valid = None if clip else _valid(indices, plan.limits)
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
    """The position of each element of rows in the flattened operand."""
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    trailing = (1,) * len(plan.slices)
    total: Any = np.zeros((), np.intp)
    for (d, _, _), index in zip(plan.advanced, advanced, strict=True):
        total = total + (index * strides[d]).reshape(index.shape + trailing)
    order = plan.order or tuple(range(len(shape)))
    for k, d in enumerate(order[len(advanced) :]):
        total = total + _along(plan.slices[k].stop, k, len(trailing)) * strides[d]
    return np.broadcast_to(total, rows_shape)


def _update_flat(out: Any, positions: Any, rows: Any, op: Any) -> None:
    """Update elements one by one, in order. (NumPy does this fast for one flat index, and slowly for several.)"""
    flat = out.reshape(-1)
    if op is None:
        flat[positions.ravel()] = rows.ravel()
    else:
        op.at(flat, positions.ravel(), rows.ravel())
