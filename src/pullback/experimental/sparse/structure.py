"""Structural functions of BCOO arrays: transposition, reshaping, concatenation, slices, gathers, sums over axes.

Where JAX refuses axes of different kinds (a transpose of a batch axis with a sparse one, for instance), the batch and
dense axes in question become sparse ones first, which stores nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import ArrayLike, typeof
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.types import Shape
from pullback.experimental.sparse import layouts
from pullback.experimental.sparse.formats import BCOO, shape_of
from pullback.numpy.promotion import quote, sequence
from pullback.primitives.arrays.windows import GatherDimensionNumbers, GatherScatterMode
from pullback.transforms.autodiff.vmap import vmap


def axes_of(name: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Normalize axes of an array, which must be distinct; negative ones count from the end."""
    try:
        found = tuple(int(np.asarray(a).__index__()) for a in axes)
    except TypeError:
        raise ArgumentError(f"{name}: axes must be a tuple of integers, got {quote(axes)}") from None
    if any(not -rank <= a < rank for a in found) or len({a % rank for a in found}) != len(found):
        raise ShapeError(f"{name}: {found} are not distinct axes of an array of {rank} axes")
    return tuple(a % rank for a in found)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permute the axes of a sparse array.

    Args:
      mat: a BCOO.
      permutation: for each axis of the result the axis of ``mat``.

    Returns:
      A BCOO. If the permutation mixes batch, sparse and dense axes, these become sparse ones.

    Raises:
      ShapeError: ``permutation`` is not a permutation of the axes (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0))
    BCOO(float32[3, 2], nse=2)
    """
    name = "bcoo_transpose"
    mat = layouts.bcoo(name, mat)
    order = axes_of(name, permutation, mat.ndim)
    if len(order) != mat.ndim:
        raise ShapeError(f"{name}: permutation={tuple(permutation)} does not contain all axes of shape {mat.shape}")
    if order == tuple(range(mat.ndim)):
        return mat
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, dense = sorted(order[:a]) == list(range(a)), sorted(order[b:]) == list(range(b, mat.ndim))
    if not (batch and dense):
        mat = layouts.relaid(mat, n_batch=mat.n_batch if batch else 0, n_dense=mat.n_dense if dense else 0)
        a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    data = pnp.transpose(mat.data, (*order[:a], a, *(i - b + a + 1 for i in order[b:])))
    indices = pnp.transpose(mat.indices, (*order[:a], a, a + 1))
    inner = [i - a for i in order[a:b]]
    moved = inner != sorted(inner)
    if moved:
        indices = indices[..., np.asarray(inner)]
    shape = tuple(mat.shape[i] for i in order)
    flags = {"indices_sorted": mat.indices_sorted and not moved, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=shape, **flags)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: OutSharding = None
) -> BCOO:
    """Repeat a sparse array along new axes, or along axes of size 1.

    Args:
      mat: a BCOO.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of ``mat`` the axis of the result; they increase.
      sharding: accepted for the sake of JAX's signature; only None.

    Returns:
      A BCOO. New axes before the sparse axes are batch axes, those after them are dense, those among them are sparse.

    Raises:
      ShapeError: shapes or axes that do not fit (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_broadcast_in_dim(sparse.eye(2), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    name = "bcoo_broadcast_in_dim"
    mat = layouts.bcoo(name, mat)
    if sharding is not None:
        raise UnsupportedArgumentError(f"{name}: sharding must be None, got {sharding!r}")
    new = shape_of(name, shape)
    dims = axes_of(name, broadcast_dimensions, len(new)) if new or len(broadcast_dimensions) else ()
    fits = len(dims) == mat.ndim and list(dims) == sorted(dims)
    if not fits or any(n not in (1, new[d]) for n, d in zip(mat.shape, dims, strict=True)):
        raise ShapeError(
            f"{name}: an array of shape {mat.shape} with its axes at {tuple(broadcast_dimensions)} does not "
            f"broadcast to {new}"
        )
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    # The range of sparse axes of the result: new axes before it are batch axes, those after it are dense.
    first = (
        dims[a] if a < b else (dims[a - 1] + 1 if a else next((i for i in range(len(new)) if i not in dims), len(new)))
    )
    if a == b:  # no sparse axis: all axes before the first dense one are batch axes
        first = dims[b] if b < mat.ndim else len(new)
    last = dims[b - 1] + 1 if a < b else first
    data, indices = layouts.spread(mat)
    batch = new[:first]
    positions = tuple(dims[:a])

    def in_batch(x: Any) -> Any:
        rest = x.shape[a:]
        return pnp.reshape(x, tuple(x.shape[positions.index(i)] if i in positions else 1 for i in range(first)) + rest)

    data, indices = in_batch(data), in_batch(indices)
    indices = pnp.broadcast_to(indices, (*batch, *indices.shape[first:]))
    dense = new[last:]
    inner = tuple(mat.shape[b + dims[b:].index(i)] if i in dims[b:] else 1 for i in range(last, len(new)))
    data = pnp.reshape(data, (*data.shape[: first + 1], *inner))
    data = pnp.broadcast_to(data, (*batch, mat.nse, *dense))
    same = tuple(new[d] for d in dims[a:b]) == mat.shape[a:b] and last - first == b - a
    if not same:
        data, indices = _repeated(mat, data, indices, new, first, dims[a:b])
    flags = {"indices_sorted": mat.indices_sorted and same, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=new, **flags)


def _repeated(mat: BCOO, data: Any, indices: Any, new: Shape, first: int, dims: Shape) -> tuple[Any, Any]:
    """Repeat stored elements along sparse axes that broadcasting adds or enlarges; return the new data and indices.

    Args:
      mat: the array before broadcasting.
      data, indices: the data and indices of its elements, with broadcast batch axes.
      new: the shape after broadcasting.
      first: the position of the first sparse axis in ``new``.
      dims: for each sparse axis of ``mat`` its position in ``new``.
    """
    sparse = mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    known = layouts.inside(indices, sparse)
    sizes = new[first : dims[-1] + 1]
    indices = layouts.wide_indices(indices, sizes)
    grown = [i for i in range(len(sizes)) if first + i not in dims or sparse[dims.index(first + i)] != sizes[i]]
    copies = math.prod(sizes[i] for i in grown)
    numbers = layouts.unravelled(pnp.arange(copies, dtype=indices.dtype), [sizes[i] for i in grown], indices.dtype)
    lead = indices.shape[:-1]
    columns = []
    for i in range(len(sizes)):
        x = numbers[:, grown.index(i)] if i in grown else indices[..., dims.index(first + i)][..., None]
        columns.append(pnp.broadcast_to(x, (*lead, copies)))
    whole = pnp.stack(columns, axis=-1)
    whole = layouts.with_padding(whole, pnp.broadcast_to(known[..., None], (*lead, copies)), sizes)
    count = len(lead)
    data = pnp.broadcast_to(pnp.expand_dims(data, count), (*lead, copies, *data.shape[count:]))
    nse = lead[-1] * copies
    return (
        data.reshape(*lead[:-1], nse, *data.shape[count + 1 :]),
        whole.reshape(*lead[:-1], nse, len(sizes)),
    )


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Concatenate sparse arrays along an axis.

    Args:
      operands: BCOOs whose other axes have the same sizes.
      dimension: the axis.

    Returns:
      A BCOO with the fewest batch and dense axes of the operands.

    Raises:
      ArgumentError, ShapeError: no operands, or shapes that do not fit (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    name = "bcoo_concatenate"
    mats = [layouts.bcoo(name, x) for x in sequence(name, operands)]
    if not mats:
        raise ArgumentError(f"{name} takes at least one array, got none")
    rank = mats[0].ndim
    (d,) = axes_of(name, (dimension,), rank)
    shapes = [m.shape for m in mats]
    if any(len(s) != rank or (*s[:d], *s[d + 1 :]) != (*shapes[0][:d], *shapes[0][d + 1 :]) for s in shapes):
        raise ShapeError(f"{name}: shapes {shapes} must be the same except along axis {d}")
    n_dense = min(m.n_dense for m in mats)
    mats = common_layout([layouts.relaid(m, n_dense=min(n_dense, rank - d - 1)) if m.n_dense else m for m in mats])
    dtype = mats[0].dtype
    for m in mats[1:]:
        dtype = dtypes.promote_types(dtype, m.dtype)
    n = mats[0].n_batch
    shape = (*shapes[0][:d], sum(s[d] for s in shapes), *shapes[0][d + 1 :])
    _, sparse, _ = layouts.kinds(
        BCOO.tree_unflatten((shape, False, False, mats[0].n_dense), (mats[0].data, mats[0].indices))
    )
    sparse = shape[n : n + mats[0].n_sparse]
    start, data, indices = 0, [], []
    nse = max(m.nse for m in mats)
    for m in mats:
        x, i = layouts.spread(m)
        i = layouts.wide_indices(i, sparse)
        own = m.shape[n : n + m.n_sparse]
        if d >= n:
            shift = np.asarray([start if n + j == d else 0 for j in range(len(sparse))], i.dtype)
            i = layouts.with_padding(i + layouts.last_axis(shift, i.ndim), layouts.inside(i, own), sparse)
        elif m.nse < nse:
            x = pnp.concatenate([x, pnp.zeros((*x.shape[:n], nse - m.nse, *x.shape[n + 1 :]), x.dtype)], axis=n)
            extra = (*i.shape[:n], nse - m.nse, len(sparse))
            i = pnp.concatenate([i, pnp.broadcast_to(pnp.asarray(layouts.limits(sparse, i.dtype)), extra)], axis=n)
        start += m.shape[d]
        data.append(x.astype(dtype))
        indices.append(i)
    at = d if d < n else n
    widest = max((i.dtype for i in indices), key=lambda t: t.itemsize)
    parts = pnp.concatenate(data, axis=at), pnp.concatenate([i.astype(widest) for i in indices], axis=at)
    sorted_ = all(m.indices_sorted for m in mats) and (d < n or (d == n and len(mats) == 1))
    unique = all(m.unique_indices for m in mats)
    return BCOO(parts, shape=shape, indices_sorted=sorted_ and d < n, unique_indices=unique)


def common_layout(mats: Sequence[BCOO]) -> list[BCOO]:
    """Convert arrays to the same numbers of batch and dense axes: the smallest of each."""
    n_batch, n_dense = min(m.n_batch for m in mats), min(m.n_dense for m in mats)
    return [
        m if (m.n_batch, m.n_dense) == (n_batch, n_dense) else layouts.relaid(m, n_batch=n_batch, n_dense=n_dense)
        for m in mats
    ]


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: OutSharding = None
) -> BCOO:
    """Reshape a sparse array, with its elements in the same order.

    Args:
      mat: a BCOO.
      new_sizes: the shape of the result.
      dimensions: a permutation of the axes of ``mat`` to apply first; none by default.
      sharding: accepted for the sake of JAX's signature; only None.

    Returns:
      A BCOO. It has batch and dense axes if the new shape keeps the sizes of these groups of axes; else all its axes
      are sparse.

    Raises:
      ShapeError: a shape of another size (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(4), new_sizes=(2, 8))
    BCOO(float32[2, 8], nse=4)
    """
    name = "bcoo_reshape"
    mat = layouts.bcoo(name, mat)
    if sharding is not None:
        raise UnsupportedArgumentError(f"{name}: sharding must be None, got {sharding!r}")
    new = shape_of(name, new_sizes)
    if math.prod(new) != mat.size:
        raise ShapeError(f"{name}: an array of shape {mat.shape} (size {mat.size}) cannot have the shape {new}")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    if new == mat.shape:
        return mat
    batch, _, dense = layouts.kinds(mat)
    n_batch = _prefix(new, math.prod(batch)) if batch else 0
    n_dense = _prefix(new[::-1], math.prod(dense)) if dense else 0
    if n_batch is None or not mat.size:
        mat, n_batch = layouts.relaid(mat, n_batch=0), 0
    if n_dense is None or not mat.size or n_batch + n_dense > len(new):
        mat, n_dense = layouts.relaid(mat, n_dense=0), 0
    batch, sparse, dense = layouts.kinds(mat)
    to = new[n_batch : len(new) - n_dense]
    data, indices = layouts.spread(mat)
    if math.prod(to) != math.prod(sparse):  # the new shape does not keep the groups
        mat = layouts.relaid(mat, n_batch=0, n_dense=0)
        n_batch, n_dense, to, sparse = 0, 0, new, mat.shape
        data, indices = mat.data, mat.indices
    data = data.reshape(*new[:n_batch], mat.nse, *new[len(new) - n_dense :])
    indices = indices.reshape(*new[:n_batch], mat.nse, indices.shape[-1])
    if to != sparse:
        positions = layouts.flat_positions(indices, sparse)
        if not sparse:  # without indices there is no padding
            positions = pnp.zeros(positions.shape, positions.dtype)
        if not to:
            data = layouts.kept(data, positions >= 0)
        dtype = indices.dtype if dtypes.iinfo(indices.dtype).max > max(to, default=0) else positions.dtype
        indices = layouts.unravelled(positions, to, dtype)
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices and bool(to or not sparse)}
    return BCOO((data, indices), shape=new, **flags)


def _prefix(sizes: Shape, size: int) -> int | None:
    """Return the smallest n > 0 such that the product of the first n sizes is ``size``; None if there is none."""
    total = 1
    for i in range(len(sizes) + 1):
        if total == size and i:
            return i
        if i < len(sizes):
            total *= sizes[i]
    return None


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Remove axes of size 1 from a sparse array.

    Args:
      arr: a BCOO.
      dimensions: the axes to remove, a sequence of integers.

    Returns:
      A BCOO without these axes, of the same dtype.

    Raises:
      OperandError: ``arr`` is no BCOO (a TypeError).
      ShapeError: an axis has another size, or is none of the array (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,))
    BCOO(float32[3], nse=1)
    """
    name = "bcoo_squeeze"
    arr = layouts.bcoo(name, arr)
    dims = axes_of(name, dimensions, arr.ndim)
    if any(arr.shape[d] != 1 for d in dims):
        raise ShapeError(f"{name}: the axes {dims} of an array of shape {arr.shape} do not all have size 1")
    a, b = arr.n_batch, arr.n_batch + arr.n_sparse
    data = pnp.squeeze(arr.data, tuple(d if d < a else d - b + a + 1 for d in dims if d < a or d >= b))
    indices = pnp.squeeze(arr.indices, tuple(d for d in dims if d < a))
    return _without(arr, data, indices, [d - a for d in dims if a <= d < b], dims)


def _without(arr: BCOO, data: Any, indices: Any, gone: Sequence[int], dims: Sequence[int]) -> BCOO:
    """Return an array without some of its axes.

    Args:
      arr: the array.
      data: its data, from which the removed batch and dense axes are dropped already.
      indices: its indices along all sparse axes.
      gone: the sparse axes to remove, counted from the first sparse axis.
      dims: all axes to remove, of any kind, counted from the first axis of the array.
    """
    sparse = arr.shape[arr.n_batch : arr.n_batch + arr.n_sparse]
    left = [i for i in range(len(sparse)) if i not in gone]
    if gone:
        known = layouts.inside(indices, sparse)
        indices = layouts.with_padding(indices[..., np.asarray(left, np.int32)], known, [sparse[i] for i in left])
        data = layouts.kept(data, pnp.broadcast_to(known, data.shape[: known.ndim]) if known.ndim else known)
    shape = tuple(n for i, n in enumerate(arr.shape) if i not in dims)
    sizes_one = all(sparse[i] == 1 for i in gone)
    flags = {
        "indices_sorted": arr.indices_sorted and (sizes_one or not gone),
        "unique_indices": arr.unique_indices and sizes_one and (bool(left) or not gone),
    }
    return BCOO((data, indices), shape=shape, **flags)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sum over axes.

    Args:
      mat: a BCOO.
      axes: the axes to sum over, a sequence of integers.

    Returns:
      A BCOO without these axes, of the dtype of ``mat``.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).
      ShapeError: ``axes`` are not distinct axes of the array (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense())
    [1. 1. 1.]
    """
    name = "bcoo_reduce_sum"
    mat = layouts.bcoo(name, mat)
    dims = axes_of(name, axes, mat.ndim)
    if not dims:
        return mat
    first = min((d for d in dims if d < mat.n_batch), default=None)
    if first is not None:  # the batch axes from there on become sparse: elements of all their indices are concatenated
        order = [i for i in range(mat.n_batch) if i not in dims] + [i for i in range(mat.n_batch) if i in dims]
        rest = list(range(mat.n_batch, mat.ndim))
        whole = [*order, *rest]
        n_batch = sum(d >= mat.n_batch or d not in dims for d in range(mat.n_batch))
        mat = layouts.relaid(bcoo_transpose(mat, permutation=whole), n_batch=n_batch)
        dims = tuple(whole.index(d) for d in dims)
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    data = pnp.sum(mat.data, axis=tuple(d - b + a + 1 for d in dims if d >= b), dtype=mat.dtype)
    out = _without(mat, data, mat.indices, [d - a for d in dims if a <= d < b], dims)
    return layouts.at_most(out, math.prod(out.shape[a : a + out.n_sparse]))


# Slices ------------------------------------------------------------------------------------------------------------


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """Slice a sparse array.

    Args:
      mat: a BCOO.
      start_indices, limit_indices: for each axis the start and the exclusive end of the slice.
      strides: the positive steps; 1 by default.

    Returns:
      A BCOO; elements outside of the slice become padding.

    Raises:
      ShapeError: indices that are not in the array (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcoo_slice(sparse.eye(4), start_indices=(1, 0), limit_indices=(3, 4))
    BCOO(float32[2, 4], nse=4)
    """
    name = "bcoo_slice"
    mat = layouts.bcoo(name, mat)
    rank = mat.ndim
    starts, stops = tuple(map(int, start_indices)), tuple(map(int, limit_indices))
    steps = (1,) * rank if strides is None else tuple(map(int, strides))
    fits = len(starts) == len(stops) == len(steps) == rank
    if not fits or not all(
        0 <= i <= j <= n and s > 0 for i, j, n, s in zip(starts, stops, mat.shape, steps, strict=True)
    ):
        raise ShapeError(
            f"{name}: start_indices={starts}, limit_indices={stops} and strides={steps} do not define a "
            f"slice of an array of shape {mat.shape}"
        )
    new = tuple(-(-(j - i) // s) for i, j, s in zip(starts, stops, steps, strict=True))
    if new == mat.shape:
        return mat
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(i, j, s) for i, j, s in zip(starts, stops, steps, strict=True)]

    def cut(x: Any, inner: Sequence[Any]) -> Any:
        return x[
            (
                *(c if n != 1 or mat.shape[i] == 1 else slice(None) for i, (c, n) in enumerate(zip(cuts[:a], x.shape))),
                *inner,
            )
        ]

    data = cut(mat.data, (slice(None), *cuts[b:]))
    indices = cut(mat.indices, ())
    return _part(mat, data, indices, new, starts[a:b], stops[a:b], steps[a:b])


def _part(
    mat: BCOO, data: Any, indices: Any, new: Shape, starts: Sequence[Any], stops: Sequence[Any], steps: Sequence[int]
) -> BCOO:
    """Slice an array along its sparse axes: select the elements in the slice, and shift their indices.

    Args:
      mat: the array.
      data, indices: its elements, already sliced along batch and dense axes.
      new: the shape of the result.
      starts, stops, steps: the slice along each sparse axis.
    """
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    sparse, sizes = mat.shape[a:b], new[a:b]
    changed = sparse != sizes
    if changed:
        indices = layouts.wide_indices(indices, sparse)
        dtype = indices.dtype
        first = layouts.last_axis(pnp.stack([pnp.asarray(i, dtype) for i in starts]), indices.ndim)
        last = layouts.last_axis(pnp.stack([pnp.asarray(i, dtype) for i in stops]), indices.ndim)
        step = layouts.last_axis(np.asarray(steps, dtype), indices.ndim)
        distance = indices - first
        known = pnp.all((distance >= 0) & (indices < last) & (distance % step == 0), axis=-1)
        indices = layouts.with_padding(distance // step, known, sizes)
        data = (
            layouts.kept(data, pnp.broadcast_to(known, data.shape[: a + 1]))
            if data.shape[: a + 1] == known.shape
            else layouts.kept(pnp.broadcast_to(data, (*known.shape[:a], *data.shape[a:])), known)
        )
    flags = {"indices_sorted": mat.indices_sorted and not changed, "unique_indices": mat.unique_indices}
    out = BCOO((data, indices), shape=new, **flags)
    return layouts.at_most(out, math.prod(sizes)) if changed else out


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Slice a sparse array at start indices that may be traced.

    Args:
      mat: a BCOO.
      start_indices: an integer for each axis, clipped so that the slice lies within the array; negative ones count from
        the end.
      slice_sizes: the shape of the slice.

    Returns:
      A BCOO of the shape ``slice_sizes``, and of the dtype of ``mat``.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).
      ShapeError: the sizes are too large, or do not fit the axes (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 1), (2, 1)).todense())
    [[1.]
     [0.]]
    """
    name = "bcoo_dynamic_slice"
    mat = layouts.bcoo(name, mat)
    new = shape_of(name, slice_sizes)
    starts = [pnp.asarray(i) for i in start_indices]
    if len(new) != mat.ndim or len(starts) != mat.ndim or any(s > n for s, n in zip(new, mat.shape, strict=True)):
        raise ShapeError(f"{name}: {len(starts)} start_indices and slice_sizes={new} do not fit shape {mat.shape}")
    for i in starts:
        if i.ndim or not dtypes.is_integer(i.dtype):
            raise ShapeError(f"{name}: start_indices must be integers, got {typeof(i)}")
    starts = [pnp.where(i < 0, i + n, i) for i, n in zip(starts, mat.shape, strict=True)]
    starts = [pnp.clip(i.astype(np.int32), 0, n - s) for i, n, s in zip(starts, mat.shape, new, strict=True)]
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.data, mat.indices
    if new[:a] != mat.shape[:a]:
        data, indices = layouts.spread(mat)
    for d in (*range(a), *range(b, mat.ndim)):
        if new[d] != mat.shape[d]:
            data = _range(data, starts[d], new[d], d if d < a else d - b + a + 1)
            indices = _range(indices, starts[d], new[d], d) if d < a else indices
    stops = [i + s for i, s in zip(starts, new, strict=True)]
    return _part(mat, data, indices, new, starts[a:b], stops[a:b], (1,) * (b - a))


def _range(x: Any, start: Any, size: int, axis: int) -> Any:
    return pnp.take(x, start + np.arange(size, dtype=np.int32), axis=axis, mode="clip")


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverse axes of a sparse array.

    Args:
      operand: a BCOO.
      dimensions: the axes to reverse, a sequence of integers.

    Returns:
      A BCOO of the same shape and dtype.

    Raises:
      OperandError: ``operand`` is no BCOO (a TypeError).
      ShapeError: ``dimensions`` are not distinct axes of the array (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_rev(sparse.eye(2), (0,)).todense())
    [[0. 1.]
     [1. 0.]]
    """
    name = "bcoo_rev"
    mat = layouts.bcoo(name, operand)
    dims = axes_of(name, dimensions, mat.ndim)
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    data = pnp.flip(mat.data, tuple(d if d < a else d - b + a + 1 for d in dims if d < a or d >= b))
    indices = pnp.flip(mat.indices, tuple(d for d in dims if d < a))
    inner = [d - a for d in dims if a <= d < b]
    if inner:
        sparse = mat.shape[a:b]
        indices = layouts.wide_indices(indices, sparse)
        turned = layouts.last_axis(np.asarray([i in inner for i in range(len(sparse))]), indices.ndim)
        other = layouts.limits(sparse, indices.dtype, indices.ndim) - 1 - indices
        indices = layouts.with_padding(pnp.where(turned, other, indices), layouts.inside(indices, sparse), sparse)
    flags = {"indices_sorted": mat.indices_sorted and not inner, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=mat.shape, **flags)


# long: half of it is its documentation
def bcoo_gather(
    operand: BCOO,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: ArrayLike | None = None,
) -> BCOO:
    """Gather a window of a sparse array for each index vector; the arguments are those of ``lax.gather``.

    Args:
      operand: a BCOO.
      start_indices: integers; the last axis is the index vector, the position where a window starts.
      dimension_numbers: the correspondence of the axes.
      slice_sizes: the size of a window along each axis of ``operand``.
      unique_indices, indices_are_sorted: promises, without effect.
      mode: the treatment of windows that are out of range: "clip" moves them inside, other modes fill them with zeros.
      fill_value: the value of windows out of range; only zero, the default.

    Returns:
      A BCOO whose first axes are batch axes: those of the indices.

    Raises:
      UnsupportedArgumentError: a ``fill_value`` other than zero, which would be dense (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> from pullback.experimental import sparse
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), numbers, (1, 3)).shape
    (2, 3)
    """
    indices_are_sorted = flag("bcoo_gather", "indices_are_sorted", indices_are_sorted)
    unique_indices = flag("bcoo_gather", "unique_indices", unique_indices)
    name = "bcoo_gather"
    mat = layouts.bcoo(name, operand)
    sizes = shape_of(name, slice_sizes)
    starts = pnp.asarray(start_indices)
    numbers = dimension_numbers
    if fill_value is not None and not (isinstance(fill_value, (int, float)) and fill_value == 0):
        raise UnsupportedArgumentError(
            f"{name}: windows outside of a sparse array contain zeros instead of fill_value={fill_value!r}"
        )
    if numbers.operand_batching_dims:
        raise UnsupportedArgumentError(
            f"{name}: operand_batching_dims={numbers.operand_batching_dims} of a sparse array"
        )
    if len(sizes) != mat.ndim or not starts.ndim or starts.shape[-1] != len(numbers.start_index_map):
        raise ShapeError(
            f"{name}: slice_sizes={sizes} and start_indices of shape {starts.shape} do not fit shape "
            f"{mat.shape} and {numbers}"
        )
    clip = GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP

    def window(start: Any) -> BCOO:
        full = [pnp.zeros((), np.int32)] * mat.ndim
        known = pnp.ones((), bool)
        for i, d in enumerate(numbers.start_index_map):
            full[d] = pnp.clip(start[i], 0)  # a negative one is outside: it does not count from the end
            known = known & (start[i] >= 0) & (start[i] <= mat.shape[d] - sizes[d])
        part = bcoo_dynamic_slice(mat, full, sizes)
        if not clip:
            lost = pnp.broadcast_to(known, part.data.shape[: part.n_batch + 1])
            part = BCOO((layouts.kept(part.data, lost), part.indices), shape=part.shape)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    batch = starts.shape[:-1]
    rows = starts.reshape(math.prod(batch), starts.shape[-1])
    out = vmap(window)(rows) if rows.shape[0] else _no_windows(window, rows)
    data = out.data.reshape(*batch, *out.data.shape[1:])
    indices = out.indices.reshape(*batch, *out.indices.shape[1:])
    result = BCOO((data, indices), shape=(*batch, *out.shape[1:]))
    offset = tuple(numbers.offset_dims)
    others = iter(range(len(batch)))
    inner = iter(range(len(batch), result.ndim))
    order = [next(inner) if i in offset else next(others) for i in range(result.ndim)]
    return bcoo_transpose(result, permutation=order)


def _no_windows(window: Any, rows: Any) -> BCOO:
    one = window(pnp.zeros(rows.shape[1:], rows.dtype))
    parts = pnp.zeros((0, *one.data.shape), one.dtype), pnp.zeros((0, *one.indices.shape), one.indices.dtype)
    return BCOO(parts, shape=(0, *one.shape))
