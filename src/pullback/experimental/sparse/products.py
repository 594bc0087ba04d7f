"""Elementwise products and contractions of sparse arrays with dense and sparse ones.

A contraction views the sparse array as one sparse matrix with dense blocks as elements (``primitives/linalg/sparse``):
its free batch and sparse axes are the rows, its contracted axes the columns, and its dense axes the blocks. Batch axes
of the product are both rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DotDimensionNumbers, DTypeLike, PrecisionLike
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import OperandError, ShapeError, UnsupportedArgumentError
from pullback.core.types import Shape
from pullback.experimental.sparse import layouts
from pullback.experimental.sparse.formats import BCOO, JAXSparse
from pullback.experimental.sparse.structure import axes_of, bcoo_broadcast_in_dim, common_layout
from pullback.numpy.promotion import quote
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import NUMBER
from pullback.primitives.linalg.sparse_products import blocks_of_product, blocks_times_dense, index_dtype

Dims = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def promoted(x: Any, y: Any) -> tuple[Array, Array, Any]:
    """Promote two arrays to their common dtype; return both and the dtype."""
    dtype = x.dtype if x.dtype == y.dtype else pnp.promote_types(x.dtype, y.dtype)
    if x.weak_type != y.weak_type:
        dtype = pnp.result_type(x, y)
    return x.astype(dtype) if x.dtype != dtype else x, y.astype(dtype) if y.dtype != dtype else y, dtype


def dense_operand(name: str, x: Any) -> Array:
    if isinstance(x, JAXSparse):
        raise OperandError(f"{name} takes a dense array, got {x!r}")
    return pnp.asarray(x)


# Element by element ------------------------------------------------------------------------------------------------


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the indices of a sparse one.

    Args:
      sparr: a BCOO, whose data do not matter.
      arr: an array of the same shape.
      assume_unique: whether the indices are assumed to be unique. If not, of elements with equal indices the first gets
        the value and the others zero, so that the sum is right. By default ``sparr.unique_indices``.

    Returns:
      A BCOO with the indices of ``sparr``.

    Raises:
      ShapeError: an array of another shape (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_extract(sparse.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data)
    [1. 4.]
    """
    name = "bcoo_extract"
    sparr = layouts.bcoo(name, sparr)
    arr = dense_operand(name, arr)
    if arr.shape != sparr.shape:
        raise ShapeError(
            f"{name}: an array of shape {arr.shape} and a sparse one of shape {sparr.shape} must have one shape"
        )
    data = _values_at(sparr, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        data = layouts.kept(data, _first_of_each(sparr))
    flags = {"indices_sorted": sparr.indices_sorted, "unique_indices": sparr.unique_indices}
    _, indices = layouts.spread(sparr)
    return BCOO((data, indices), shape=sparr.shape, **flags)


def _values_at(mat: BCOO, v: Any) -> Any:
    """Return the elements of a dense array ``v`` at the indices of the sparse array ``mat``.

    Both arrays have equally many axes; axes of ``v`` of size 1 are broadcast.
    """
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = layouts.kinds(mat)
    _, indices = layouts.spread(mat)
    outer = v.shape[:b]
    strides = [0 if n == 1 else math.prod(outer[i + 1 :]) for i, n in enumerate(outer)]
    extent = max(math.prod(outer), 1)
    dtype = index_dtype(extent)
    positions = pnp.zeros(indices.shape[:-1], dtype)
    for i, s in enumerate(strides[a:b]):
        positions = positions + indices[..., i].astype(dtype) * s if s else positions
    positions = pnp.where(
        layouts.inside(indices, sparse), positions + layouts.batch_positions(batch, strides[:a], a + 1, dtype), -1
    )
    rows = layouts.take_rows(v.reshape(math.prod(outer), *v.shape[b:]), positions.reshape(-1))
    return pnp.broadcast_to(rows.reshape(*positions.shape, *v.shape[b:]), (*positions.shape, *dense))


def _first_of_each(mat: BCOO) -> Any:
    """Return a mask of stored elements: of several elements with equal indices, only the first is True."""
    _, sparse, _ = layouts.kinds(mat)
    _, indices = layouts.spread(mat)
    if not mat.nse:
        return pnp.ones(indices.shape[:-1], bool)
    numbers = pnp.broadcast_to(pnp.arange(mat.nse), indices.shape[:-1])
    if not sparse:
        return numbers == 0
    order = pnp.lexsort([indices[..., i] for i in reversed(range(len(sparse)))], axis=-1)
    ordered = pnp.take_along_axis(indices, order[..., None], axis=-2)
    new = pnp.any(ordered[..., 1:, :] != ordered[..., :-1, :], axis=-1)
    new = pnp.concatenate([pnp.ones((*new.shape[:-1], 1), bool), new], axis=-1)
    return pnp.take_along_axis(new, pnp.argsort(order, axis=-1), axis=-1)


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the data of the elementwise product of a sparse and a dense array.

    Args:
      sp_mat: a BCOO.
      v: an array that broadcasts to its shape.

    Returns:
      Data that, with the indices of ``sp_mat``, make the product.

    Raises:
      ShapeError: ``v`` does not broadcast to the shape of ``sp_mat`` (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([2.0, 3.0])))
    [2. 3.]
    """
    name = "bcoo_multiply_dense"
    mat = layouts.bcoo(name, sp_mat)
    v = dense_operand(name, v)
    extra = mat.ndim - v.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(v.shape, mat.shape[extra:], strict=True)):
        raise ShapeError(
            f"{name}: an array of shape {v.shape} does not broadcast to that of the sparse one, {mat.shape}"
        )
    data, v, _ = promoted(mat.data, v)
    if v.size == 1:
        return data * v.reshape(())
    return spread_data(mat, data) * _values_at(mat, v.reshape((1,) * extra + v.shape))


def spread_data(mat: BCOO, data: Any) -> Any:
    """Repeat new data of an array along the batch axes that share them."""
    batch = mat.shape[: mat.n_batch]
    return data if data.shape[: len(batch)] == batch else pnp.broadcast_to(data, batch + data.shape[len(batch) :])


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the elementwise product of two sparse arrays.

    Args:
      lhs, rhs: BCOOs whose shapes broadcast.

    Returns:
      A BCOO that stores as many elements as the operand with fewer.

    Raises:
      ShapeError: shapes that do not broadcast (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2) * 3).data)
    [3. 3.]
    """
    name = "bcoo_multiply_sparse"
    x, y = common_layout(broadcast_together(name, [layouts.bcoo(name, lhs), layouts.bcoo(name, rhs)]))
    x, y = layouts.unique(x), layouts.unique(y)
    if x.nse > y.nse:
        x, y = y, x
    batch, sparse, _ = layouts.kinds(x)
    (a, i), (b, j) = layouts.spread(x), layouts.spread(y)
    a, b, _ = promoted(a, b)
    count, other = x.nse, y.nse
    if not count:
        return BCOO((a, i), shape=x.shape, indices_sorted=x.indices_sorted, unique_indices=True)
    if not sparse:
        return BCOO((a * b, i), shape=x.shape, unique_indices=True)
    known = layouts.inside(i, sparse)
    wide = layouts.wide_indices(i, sparse).dtype
    both = pnp.concatenate([i.astype(wide), j.astype(wide)], axis=-2)
    order = pnp.lexsort([both[..., k] for k in reversed(range(len(sparse)))], axis=-1)
    ordered = pnp.take_along_axis(both, order[..., None], axis=-2)
    # Of two with equal indices the element of x comes first: sorting is stable, and each array's are unique.
    equal = pnp.all(ordered[..., 1:, :] == ordered[..., :-1, :], axis=-1)
    last = pnp.zeros((*batch, 1), bool)
    equal = pnp.concatenate([equal, last], axis=-1)
    following = pnp.concatenate([order[..., 1:], order[..., :1]], axis=-1)
    partner = pnp.where(equal, following - count, -1)
    back = pnp.argsort(order, axis=-1)[..., :count]
    partner = pnp.where(known, pnp.take_along_axis(partner, back, axis=-1), -1)
    values = a * layouts.take_each(b, pnp.where(partner < other, partner, -1), len(batch))
    return BCOO((values, i), shape=x.shape, indices_sorted=x.indices_sorted, unique_indices=True)


def broadcast_together(name: str, mats: Sequence[BCOO]) -> list[BCOO]:
    """Broadcast sparse arrays to one shape."""
    try:
        shape = np.broadcast_shapes(*[m.shape for m in mats])
    except ValueError:
        raise ShapeError(f"{name}: the shapes {' and '.join(str(m.shape) for m in mats)} do not broadcast") from None
    return [broadcast_to(m, shape) for m in mats]


def broadcast_to(mat: BCOO, shape: Shape) -> BCOO:
    """Broadcast a sparse array to a shape, as NumPy does."""
    if mat.shape == shape:
        return mat
    dims = range(len(shape) - mat.ndim, len(shape))
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=tuple(dims))


# Contractions ------------------------------------------------------------------------------------------------------


def checked_dims(name: str, x: Any, y: Any, dimension_numbers: Any) -> tuple[Shape, Shape, Shape, Shape]:
    """Check the dimension numbers of a contraction; return contracted axes of lhs and rhs, and batch axes of both."""
    try:
        (xc, yc), (xb, yb) = dimension_numbers
    except (TypeError, ValueError):
        raise ShapeError(
            f"{name}: dimension_numbers must be ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)), got "
            f"{quote(dimension_numbers)}"
        ) from None
    ranks = len(x.shape), len(y.shape)
    xs, ys = axes_of(name, (*xc, *xb), ranks[0]), axes_of(name, (*yc, *yb), ranks[1])
    n = len(tuple(xc))
    if len(xs) != len(ys) or n != len(tuple(yc)) or any(x.shape[i] != y.shape[j] for i, j in zip(xs, ys, strict=True)):
        raise ShapeError(
            f"{name}: operands of shapes {x.shape} and {y.shape} do not fit the axes {dimension_numbers}: "
            f"contracted axes and batch axes must have the same sizes in both"
        )
    return xs[:n], ys[:n], xs[n:], ys[n:]


def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Any:
    """Contract a sparse array with another array, as ``lax.dot_general``.

    Args:
      lhs, rhs: a BCOO and an array, an array and a BCOO, or two BCOOs.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      precision: accepted, and without effect: products are computed in full precision.
      preferred_element_type: the dtype to sum in and to return; that of the operands by default.
      out_sharding: accepted for the sake of JAX's signature; only None.

    Returns:
      An array with the batch axes, then the other axes of ``lhs``, then those of ``rhs``; of two BCOOs a BCOO.

    Raises:
      ShapeError: operands that do not fit each other or the axes (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general(sparse.eye(2), jnp.array([1.0, 2.0]), dimension_numbers=numbers))
    [1. 2.]
    """
    name = "bcoo_dot_general"
    if out_sharding is not None:
        raise UnsupportedArgumentError(f"{name}: out_sharding must be None, got {out_sharding!r}")
    sparse = isinstance(lhs, BCOO), isinstance(rhs, BCOO)
    x: Any
    y: Any
    if not any(sparse):
        raise OperandError(f"{name}: lhs or rhs must be a BCOO, got {quote(lhs)} and {quote(rhs)}")
    x = lhs if sparse[0] else dense_operand(name, lhs)
    y = rhs if sparse[1] else dense_operand(name, rhs)
    xc, yc, xb, yb = checked_dims(name, x, y, dimension_numbers)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype(preferred_element_type, name)
        wide = dtypes.accumulator(preferred_element_type, x.dtype, y.dtype)
        x, y = cast(x, wide), cast(y, wide)
    out: Any
    if all(sparse):
        out = _sparse_sparse(x, y, xc, yc, xb, yb)
    elif sparse[0]:
        out = _sparse_dense(x, y, xc, yc, xb, yb)
    else:
        out = _sparse_dense(y, x, yc, xc, yb, xb)
        free = x.ndim - len(xc) - len(xb)
        other = out.ndim - len(xb) - free
        n = len(xb)
        order = (*range(n), *range(n + other, out.ndim), *range(n, n + other))
        out = pnp.transpose(out, order) if free and other else out
    return out if preferred_element_type is None else cast(out, preferred_element_type)


def cast(x: Any, dtype: Any) -> Any:
    """Convert an array, sparse or dense, to another dtype."""
    if x.dtype == dtype:
        return x
    if not isinstance(x, BCOO):
        return x.astype(dtype)
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((x.data.astype(dtype), x.indices), shape=x.shape, **flags)


def _sparse_dense(mat: BCOO, v: Any, mc: Shape, vc: Shape, mb: Shape, vb: Shape) -> Any:
    """Contract a sparse array with a dense array, as ``dot_general`` does; return a dense array.

    Args:
      mat: the sparse array.
      v: the dense array.
      mc, vc: the contracted axes of ``mat`` and of ``v``.
      mb, vb: the batch axes of ``mat`` and of ``v``.
    """
    if (
        mat.n_sparse == mat.ndim == 2
        and mat.data.dtype == v.dtype
        and mc in ((0,), (1,))
        and vc == (0,)
        and v.ndim <= 2
    ):
        return _matrix_times(mat, v, mc == (0,))
    first_dense = mat.n_batch + mat.n_sparse
    if any(d >= first_dense for d in mb):
        mat = layouts.relaid(mat, n_dense=0)
        first_dense = mat.ndim
    data, v, dtype = promoted(mat.data, v)
    if dtypes.is_bool(dtype):
        data, v = data.astype(np.int32), v.astype(np.int32)
    order = sorted(range(len(mc)), key=lambda i: mc[i])
    columns = [i for i in order if mc[i] < first_dense]
    blocks = [i for i in order if mc[i] >= first_dense]
    free_v = [d for d in range(v.ndim) if d not in vc and d not in vb]
    v = pnp.transpose(v, (*vb, *(vc[i] for i in columns), *(vc[i] for i in blocks), *free_v))
    n, m = len(mb) + len(columns), len(blocks)
    tail = v.shape[n + m :]
    v = v.reshape(math.prod(v.shape[:n]), math.prod(v.shape[n : n + m]), math.prod(tail))
    rows = [*mb, *(d for d in range(first_dense) if d not in mc and d not in mb)]
    of_columns = [*mb, *(mc[i] for i in columns)]
    kept_dense = [d for d in range(first_dense, mat.ndim) if d not in mc]
    sizes = tuple(mat.shape[d] for d in rows), tuple(mat.shape[d] for d in kept_dense)
    whole, indices, transposed = _as_matrix(mat, data, rows, of_columns)
    p, k = math.prod(sizes[1]), v.shape[1]
    dense = list(range(first_dense, mat.ndim))
    wanted = [*kept_dense, *(mc[i] for i in blocks)]
    if dense:
        if wanted != dense:
            whole = pnp.transpose(whole, (0, *(1 + d - first_dense for d in wanted)))
        whole = whole.reshape(whole.shape[0], p, k)
    else:
        whole = whole.reshape(whole.shape[0], 1, 1)
    size = math.prod(sizes[0])
    if transposed and p == k == 1:
        out = blocks_times_dense(whole, indices, v, size, True)
    else:
        out = blocks_times_dense(whole, indices[:, ::-1] if transposed else indices, v, size)
    out = out.reshape(*sizes[0], *sizes[1], *tail)
    return out.astype(dtype) if out.dtype != dtype else out


def _matrix_times(mat: BCOO, v: Any, transposed: bool) -> Any:
    """Multiply a sparse matrix, or with ``transposed`` its transpose, by a dense vector or matrix.

    This is the fast path, for arrays without batch and dense axes.
    """
    data, tail = mat.data, v.shape[1:]
    if not NUMBER(data.dtype):
        return _matrix_times(cast(mat, np.int32), v.astype(np.int32), transposed).astype(data.dtype)
    size = mat.shape[1 if transposed else 0]
    blocks = shapes.reshape(data, (data.shape[0], 1, 1))
    dense = shapes.reshape(v, (v.shape[0], 1, *(tail or (1,))))
    return shapes.reshape(blocks_times_dense(blocks, mat.indices, dense, size, transposed), (size, *tail))


def _as_matrix(mat: BCOO, data: Any, rows: Sequence[int], columns: Sequence[int]) -> tuple[Any, Any, bool]:
    """View a sparse array as a matrix, whose rows and columns are the indices along some axes.

    The indices of an array that is a matrix already are returned unchanged: the host caches facts about their order.

    Args:
      mat: the sparse array.
      data: its data, perhaps of another dtype.
      rows: the axes that form the rows.
      columns: the axes that form the columns.

    Returns:
      The data of the e stored elements, (e, *dense axes); a pair of indices for each element, (e, 2); and a boolean:
      False if pairs are (row, column), True if they are (column, row).
    """
    if not mat.n_batch and mat.n_sparse == 2 and sorted([*rows, *columns]) == [0, 1] and len(rows) == 1:
        return data, mat.indices, rows == [1]
    batch, sparse, dense = layouts.kinds(mat)
    a = len(batch)
    data = spread_data(mat, data)
    _, indices = layouts.spread(mat)
    known = layouts.inside(indices, sparse)
    parts = []
    for axes in (rows, columns):
        sizes = [mat.shape[d] for d in axes]
        dtype = index_dtype(math.prod(sizes))
        position: Any = pnp.zeros(indices.shape[:-1], dtype)
        for i, d in enumerate(axes):
            stride = math.prod(sizes[i + 1 :])
            if d < a:
                shape = [batch[d] if j == d else 1 for j in range(a + 1)]
                position = position + (np.arange(batch[d]) * stride).astype(dtype).reshape(shape)
            else:
                position = position + indices[..., d - a].astype(dtype) * stride
        parts.append(pnp.where(known, position, -1).reshape(-1))
    wide = max((x.dtype for x in parts), key=lambda t: t.itemsize)
    return (
        data.reshape(parts[0].shape[0], *dense),
        pnp.stack([x.astype(wide) for x in parts], axis=1),
        False,
    )


def _sparse_sparse(x: BCOO, y: BCOO, xc: Shape, yc: Shape, xb: Shape, yb: Shape) -> BCOO:
    """Contract two sparse arrays, as ``dot_general`` does.

    Sum over all pairs of stored elements with equal contracted indices and equal batch indices.

    Args:
      x, y: the arrays.
      xc, yc: the contracted axes of ``x`` and of ``y``.
      xb, yb: the batch axes of ``x`` and of ``y``.
    """
    x, y = layouts.relaid(x, n_batch=0, n_dense=0), layouts.relaid(y, n_batch=0, n_dense=0)
    a, b, dtype = promoted(x.data, y.data)
    if dtypes.is_bool(dtype):
        a, b = a.astype(np.int32), b.astype(np.int32)
    free_x = [d for d in range(x.ndim) if d not in xc and d not in xb]
    free_y = [d for d in range(y.ndim) if d not in yc and d not in yb]
    shape = (*(x.shape[d] for d in (*xb, *free_x)), *(y.shape[d] for d in free_y))
    sizes = [x.shape[d] for d in (*xb, *xc)]
    keys = flat_positions_of(x, (*xb, *xc), sizes), flat_positions_of(y, (*yb, *yc), sizes)
    if layouts.known_values(keys[0]) and layouts.known_values(keys[1]):
        first, second = _pairs(np.asarray(keys[0]), np.asarray(keys[1]))
        known = None
        count = len(first)
    else:
        count = x.nse * y.nse
        if count > math.prod(shape):
            return _by_dense(x, y, xc, yc, xb, yb, shape)
        first, second = np.divmod(np.arange(count, dtype=np.int32), max(y.nse, 1))
        known = (keys[0][:, None] == keys[1][None]).reshape(-1) & (keys[0] >= 0)[first]
    values = pnp.take(a, first, axis=0) * pnp.take(b, second, axis=0)
    i = x.indices[:, np.asarray([*xb, *free_x], np.int32)]
    j = y.indices[:, np.asarray(free_y, np.int32)]
    wide = max(layouts.wide_indices(i, shape).dtype, layouts.wide_indices(j, shape).dtype, key=lambda t: t.itemsize)
    indices = pnp.concatenate([i.astype(wide)[first], j.astype(wide)[second]], axis=1)
    if known is not None:
        values, indices = layouts.kept(values, known), layouts.with_padding(indices, known, shape)
    out = BCOO((values, indices), shape=shape)
    limit = math.prod(shape)
    out = layouts.at_most(out, limit)
    if known is None and out.nse:
        out = layouts.bcoo_sum_duplicates(out)
    return cast(out, dtype) if out.dtype != dtype else out


def flat_positions_of(mat: BCOO, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """Return the flat position of each element along ``axes``; -1 for padding."""
    known = layouts.inside(mat.indices, mat.shape)
    positions = layouts.flat_positions(mat.indices[:, np.asarray(axes, np.int32)], sizes)
    return pnp.where(known, positions, -1)


def _pairs(x: Any, y: Any) -> tuple[Any, Any]:
    """Return all pairs of positions, i in ``x`` and j in ``y``, with ``x[i] == y[j] >= 0``, as two vectors."""
    order = np.argsort(y, kind="stable")
    ordered = y[order]
    low, high = np.searchsorted(ordered, x, "left"), np.searchsorted(ordered, x, "right")
    counts = np.where(x < 0, 0, high - low)
    first = np.repeat(np.arange(len(x)), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(low, counts) + within]


def _by_dense(x: BCOO, y: BCOO, xc: Shape, yc: Shape, xb: Shape, yb: Shape, shape: Shape) -> BCOO:
    """Contract two sparse arrays by converting ``y`` to a dense array; return a BCOO that stores every element.

    This is better than a sum over pairs of elements if there are more pairs than elements of the result.

    Args:
      x, y: the arrays.
      xc, yc: the contracted axes of ``x`` and of ``y``.
      xb, yb: the batch axes of ``x`` and of ``y``.
      shape: the shape of the result.
    """
    out = _sparse_dense(x, layouts.bcoo_todense(y), xc, yc, xb, yb)
    grid = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1) if shape else np.zeros((1, 0))
    parts = out.reshape(math.prod(shape)), pnp.asarray(grid.astype(np.int32))
    return BCOO(parts, shape=shape, indices_sorted=True, unique_indices=True)


# long: half of it is its documentation
def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotDimensionNumbers
) -> Array:
    """Return the elements of a product of dense arrays at given indices, without computing the others.

    Args:
      A, B: arrays.
      indices: integers ``(*batch, nse, n_sparse)``: indices into the product, whose first axes correspond to the batch
        axes of ``indices``; all elements along its last axes, beyond the indices, are returned.
      dimension_numbers: ``((contracted axes of A, of B), (batch axes of A, of B))``.

    Returns:
      Data ``(*batch, nse, *dense)`` of a BCOO with these indices; zero for padding.

    Raises:
      ShapeError: operands that do not fit each other, the axes or the indices (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> x, numbers = jnp.array([[1.0, 2.0], [3.0, 4.0]]), (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general_sampled(x, x, jnp.array([[0, 0], [1, 0]]), dimension_numbers=numbers))
    [ 7. 15.]
    """
    name = "bcoo_dot_general_sampled"
    x, y = dense_operand(name, A), dense_operand(name, B)
    indices = pnp.asarray(indices)
    xc, yc, xb, yb = checked_dims(name, x, y, dimension_numbers)
    free_x = [d for d in range(x.ndim) if d not in xc and d not in xb]
    free_y = [d for d in range(y.ndim) if d not in yc and d not in yb]
    shape = (*(x.shape[d] for d in (*xb, *free_x)), *(y.shape[d] for d in free_y))
    if not dtypes.is_integer(indices.dtype):
        raise ShapeError(f"{name}: indices must be integers, got {indices.dtype}")
    a, count = indices.ndim - 2, indices.shape[-1] if indices.ndim else 0
    if a < 0 or a + count > len(shape) or any(n not in (1, m) for n, m in zip(indices.shape[:a], shape, strict=False)):
        raise ShapeError(
            f"{name}: indices of shape {indices.shape}, (*batch, nse, n_sparse), do not fit a product of shape {shape}"
        )
    x, y, dtype = promoted(x, y)
    x = pnp.transpose(x, (*xb, *free_x, *xc)).reshape(
        *shape[: len(xb) + len(free_x)], math.prod(x.shape[d] for d in xc)
    )
    y = pnp.transpose(y, (*yb, *free_y, *yc))
    y = y.reshape(*shape[: len(xb)], *(shape[len(xb) + len(free_x) :]), x.shape[-1])
    split = len(xb) + len(free_x)
    # The axes of the product up to `whole` are indexed, those after it are blocks, of x as of y.
    whole = a + count
    mat = BCOO((pnp.zeros((*shape[:a], indices.shape[-2], *shape[whole:]), dtype), indices), shape=shape)
    cut = max(whole, len(xb))
    if cut > whole:
        mat = layouts.relaid(mat, n_dense=len(shape) - cut)
    in_x = list(range(min(cut, split)))
    in_y = [*range(len(xb)), *range(split, cut)]
    _nothing, pairs, turned = _as_matrix(mat, mat.data, in_x, in_y)
    if turned:
        pairs = pairs[:, ::-1]
    p, q = shape[min(cut, split) : split], shape[max(cut, split) :]
    left = x.reshape(math.prod(shape[: len(in_x)]), math.prod(p), x.shape[-1])
    right = y.reshape(math.prod(shape[d] for d in in_y), math.prod(q), y.shape[-1])
    if dtypes.is_bool(dtype):
        left, right = left.astype(np.int32), right.astype(np.int32)
    values = blocks_of_product(left, right, pairs)
    return values.reshape(*shape[:a], indices.shape[-2], *shape[whole:]).astype(dtype)
