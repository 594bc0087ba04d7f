"""Products of sparse and dense arrays; the sparse array is a list of blocks with their row and column.

A sparse matrix is ``data``, one block of shape (p, k) for each stored element, and ``indices``, the row and column of
each block. Blocks with equal indices are summed; blocks outside of the matrix are padding, and do not count. Every
product of sparse and dense arrays is one of these two, after axes are merged (``experimental/sparse``). Both are linear
in both operands, and their transposes are these two again.

On the host the product is SciPy's. It needs the elements in the order of rows, which is cached while the array of
indices lives: sorting 100,000 elements takes as long as five products with a vector.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import DtypeError, IndexRangeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.arrays.gather import gather
from pullback.primitives.arrays.scatter import scatter_add
from pullback.primitives.arrays.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from pullback.primitives.axis_maps import front
from pullback.primitives.checks import INTEGER, NUMBER
from pullback.primitives.linalg import contraction
from pullback.primitives.masked import masked_sum_of_products
from pullback.primitives.sums import add_any, reduce_sum

_int32 = np.dtype(np.int32)
_int64 = np.dtype(np.int64)
_ROWS = GatherDimensionNumbers((1, 2), (0,), (0,))
_TO_ROWS = ScatterDimensionNumbers((1, 2), (0,), (0,))


def blocks_times_dense(data: Any, indices: Any, dense: Any, size: int, transposed: bool = False) -> Any:
    """Multiply a sparse matrix of blocks by a dense matrix: ``out[i] += data[e] @ dense[j]`` for ``i, j = indices[e]``.

    Args:
      data: blocks, (e, p, k).
      indices: the row and column of each block, integers (e, 2).
      dense: a matrix for each column of the sparse matrix, (c, k, q); if ``transposed``, for each row, (c, p, q).
      size: the number of block rows of the result.
      transposed: whether to multiply by the transpose of the sparse matrix.

    Returns:
      An array (size, p, q), or (size, k, q) if ``transposed``.
    """
    return blocks_times_dense_p.bind(data, indices, dense, size=size, transposed=transposed)


def blocks_of_product(x: Any, y: Any, indices: Any) -> Any:
    """Compute blocks of a product of dense matrices: ``out[e] = x[i] @ y[j].T`` for ``i, j = indices[e]``.

    Args:
      x, y: matrices, (r, p, q) and (c, k, q).
      indices: the row and column of each block, integers (e, 2).

    Returns:
      Blocks (e, p, k), which are zero where the indices are out of range.
    """
    return blocks_of_product_p.bind(x, y, indices)


blocks_times_dense_p = Primitive("blocks_times_dense", cost=Cost.SPECIAL)
blocks_of_product_p = Primitive("blocks_of_product", cost=Cost.SPECIAL)

# Evaluation --------------------------------------------------------------------------------------------------------


class BlockLayout:
    """The positions of the blocks of a sparse matrix, row by row as in SciPy's CSR format.

    Attributes:
      order: the numbers of the blocks that are inside the matrix, sorted by row; None if all are inside and sorted.
      columns: the columns of these blocks.
      bounds: the position in ``columns`` of the first block of each row, then the number of blocks.
      matrix: a SciPy matrix with these columns and bounds, for blocks that are numbers.
    """

    __slots__ = ("bounds", "columns", "matrix", "order")

    def __init__(self, indices: Any, rows: int, columns: int) -> None:
        sparse = imported("scipy.sparse")
        i, j = (np.ascontiguousarray(indices[:, a]) for a in (0, 1))
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        stored = None if inside.all() else np.flatnonzero(inside)
        if stored is not None:
            i, j = i[stored], j[stored]
        if (i[1:] >= i[:-1]).all():
            counts = np.bincount(i, minlength=rows)
            self.bounds = np.concatenate([[0], np.cumsum(counts)]).astype(_narrow(max(len(i), columns)))
            self.columns = j.astype(self.bounds.dtype, copy=False)
            self.order = stored
            self.matrix = self._of_numbers(rows, columns)
            return
        triples = sparse.coo_array((np.arange(len(i)), (i, j)), shape=(rows, columns))
        triples.has_canonical_format = True  # else SciPy would sum elements with equal indices
        by_rows = triples.tocsr()
        self.bounds, self.columns = by_rows.indptr, by_rows.indices
        self.order = by_rows.data if stored is None else stored[by_rows.data]
        self.matrix = self._of_numbers(rows, columns)

    def _of_numbers(self, rows: int, columns: int) -> Any:
        nothing = np.broadcast_to(np.float32(0), len(self.columns))
        return imported("scipy.sparse").csr_array((nothing, self.columns, self.bounds), shape=(rows, columns))

    def with_numbers(self, data: Any) -> Any:
        """Return a copy of the SciPy matrix ``matrix`` with the elements ``data``.

        A copy is faster than a new matrix, whose check of the indices takes a fifth of the time of a product.
        """
        matrix = copy.copy(self.matrix)
        matrix.data = data
        return matrix


def _narrow(largest: int) -> Any:
    return np.int32 if largest < 2**31 else np.int64


_layouts: dict[tuple[int, int, int], tuple[weakref.ref[Any], BlockLayout]] = {}


def _forget(pop: Callable[..., Any], key: Any, _: Any) -> None:
    pop(key, None)  # bound early, since at the end of the process the module's names are gone


def _layout(indices: Any, rows: int, columns: int) -> BlockLayout:
    """Return the layout of a sparse matrix of ``rows`` by ``columns`` blocks; cache it as long as ``indices`` lives.

    ``indices`` holds the row and column of each block.
    """
    key = id(indices), rows, columns
    found = _layouts.get(key)
    if found is not None and found[0]() is indices:
        return found[1]
    layout = BlockLayout(indices, rows, columns)
    _layouts[key] = weakref.ref(indices, partial(_forget, _layouts.pop, key)), layout
    return layout


def _wide(x: Any) -> Any:
    """Convert floats of 16 bits to 32 bits, since SciPy does not accept 16; return other arrays unchanged."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and dtypes.is_inexact(x.dtype) else x


@blocks_times_dense_p.host
def _times_host(data: Any, indices: Any, dense: Any, *, size: int, transposed: bool) -> Any:
    elements, p, k = data.shape
    count, _, q = dense.shape
    out_shape = (size, k if transposed else p, q)
    if not (elements and p and k and count and q and size):
        return np.zeros(out_shape, data.dtype)
    rows, columns = (count, size) if transposed else (size, count)
    layout = _layout(indices, rows, columns)
    blocks = _wide(data if layout.order is None else data[layout.order])
    flat = _wide(dense).reshape(-1, q) if q > 1 else _wide(dense).reshape(-1)
    if p == k == 1:
        matrix = layout.with_numbers(blocks.reshape(-1))
    else:
        bsr_array = imported("scipy.sparse").bsr_array
        matrix = bsr_array((blocks, layout.columns, layout.bounds), shape=(rows * p, columns * k))
    out = (matrix.T if transposed else matrix) @ flat
    return out.reshape(out_shape).astype(data.dtype, copy=False)


_BLOCK = 2**16  # the least number of elements of gathered rows in memory at a time


@blocks_of_product_p.host
def _of_product_host(x: Any, y: Any, indices: Any) -> Any:
    (rows, p, q), (columns, k, _) = x.shape, y.shape
    elements = len(indices)
    out = np.zeros((elements, p, k), x.dtype)
    if not (out.size and q and rows and columns):
        return out
    step = max(1, max(_BLOCK, x.size, y.size) // ((p + k) * q))
    for start in range(0, elements, step):
        chunk = slice(start, start + step)
        i, j = indices[chunk, 0], indices[chunk, 1]
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        if not inside.all():
            i, j = np.where(inside, i, 0), np.where(inside, j, 0)
        a, b = _wide(np.take(x, i, 0)), _wide(np.take(y, j, 0))
        product = np.multiply(a, b) if q == p == k == 1 else np.matmul(a, b.swapaxes(1, 2))
        out[chunk] = product if inside.all() else np.where(inside[:, None, None], product, 0)
    return out


# Types -------------------------------------------------------------------------------------------------------------


def _check(name: str, x: ShapedArray, y: ShapedArray, indices: ShapedArray, fits: bool) -> None:
    if not INTEGER(indices.dtype) or x.dtype != y.dtype or not NUMBER(x.dtype):
        raise DtypeError(
            f"{name} takes two arrays of numbers, of one dtype, and integer indices, got {x}, {y}, {indices}"
        )
    if not fits or indices.ndim != 2 or indices.shape[1] != 2:
        raise ShapeError(f"{name}: the shapes do not fit: {x}, {y}, with indices {indices}")


@blocks_times_dense_p.abstract_eval
def _times_abstract_eval(
    data: ShapedArray, indices: ShapedArray, dense: ShapedArray, *, size: int, transposed: bool
) -> ShapedArray:
    fits = data.ndim == dense.ndim == 3 and data.shape[:1] == indices.shape[:1]
    fits = fits and dense.shape[1] == data.shape[1 if transposed else 2]
    _check("blocks_times_dense", data, dense, indices, fits)
    return ShapedArray((size, data.shape[2 if transposed else 1], dense.shape[2]), data.dtype)


@blocks_of_product_p.abstract_eval
def _of_product_abstract_eval(x: ShapedArray, y: ShapedArray, indices: ShapedArray) -> ShapedArray:
    fits = x.ndim == y.ndim == 3 and x.shape[2] == y.shape[2]
    _check("blocks_of_product", x, y, indices, fits)
    return ShapedArray((indices.shape[0], x.shape[1], y.shape[1]), x.dtype)


# Differentiation ---------------------------------------------------------------------------------------------------


def _sum(terms: list[Any]) -> Any:
    return ZERO if not terms else terms[0] if len(terms) == 1 else add_any(*terms)


@blocks_times_dense_p.jvp
def _times_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    data, indices, dense = primals
    t, _, u = tangents
    p = partial(blocks_times_dense_p.bind, **params)
    terms = ([] if t is ZERO else [p(t, indices, dense)]) + ([] if u is ZERO else [p(data, indices, u)])
    return p(data, indices, dense), _sum(terms)


@blocks_of_product_p.jvp
def _of_product_jvp(primals: Any, tangents: Any) -> Any:
    x, y, indices = primals
    t, u, _ = tangents
    p = blocks_of_product_p.bind
    return p(x, y, indices), _sum(([] if t is ZERO else [p(t, y, indices)]) + ([] if u is ZERO else [p(x, u, indices)]))


@partial(blocks_times_dense_p.transpose, linear_in="each")
def _times_transpose(ct: Any, data: Any, indices: Any, dense: Any, *, size: int, transposed: bool) -> Any:
    if type(data) is LinearVar:
        return blocks_of_product(*((dense, ct) if transposed else (ct, dense)), indices), None, None
    return None, None, blocks_times_dense(data, indices, ct, dense.shape[0], not transposed)


@partial(blocks_of_product_p.transpose, linear_in="each")
def _of_product_transpose(ct: Any, x: Any, y: Any, indices: Any) -> Any:
    if type(x) is LinearVar:
        return blocks_times_dense(ct, indices, y, x.shape[0]), None, None
    return None, blocks_times_dense(ct, indices, x, y.shape[0], True), None


# Batching ----------------------------------------------------------------------------------------------------------


def _into(x: Any, dim: int, position: int) -> Any:
    """Merge the mapped axis ``dim`` of ``x`` into another axis: (batch, a, b) -> (a, batch * b) for ``position`` 1.

    ``position`` is the position of the other axis in an example.
    """
    x = shapes.moveaxis(x, dim, position)
    shape = x.shape
    return shapes.reshape(x, (*shape[:position], shape[position] * shape[position + 1], *shape[position + 2 :]))


def _out_of(x: Any, axis: MappedAxis, position: int) -> Any:
    """Split the mapped axis off the axis at ``position``: (a, batch * b) -> (a, batch, b) for ``position`` 1.

    Returns:
      The array, and the position of its mapped axis.
    """
    shape = x.shape
    size = shape[position] // axis.size
    return shapes.reshape(x, (*shape[:position], axis.size, size, *shape[position + 1 :])), position


def _all_in_one(
    axis: MappedAxis, indices: Any, dim: int | None, limits: tuple[int, int], moved: tuple[bool, bool]
) -> Any:
    """Return the block indices of one large sparse matrix that contains the sparse matrices of all examples of a batch.

    Args:
      axis: the mapped axis.
      indices: the row and column of each block, (e, 2) for each example.
      dim: the position of the mapped axis in ``indices``; None if all examples have the same indices.
      limits: the numbers of rows and columns of one example; indices out of range become -1.
      moved: two flags, for rows and for columns: whether each example has its own in the large matrix, after those of
        the examples before it. Otherwise the examples share them.

    Returns:
      Indices (batch * e, 2).
    """
    indices = front(indices, dim, axis)
    extents = [n * (axis.size if m else 1) for n, m in zip(limits, moved, strict=True)]
    indices = ops.convert_element_type(indices, index_dtype(max(extents, default=0)))
    n = np.asarray(limits, indices.dtype)
    inside = ops.and_p.bind(ops.ge_p.bind(indices, 0), ops.lt(indices, n))
    steps = np.asarray([n if m else 0 for n, m in zip(limits, moved, strict=True)], indices.dtype)
    numbers = slicing.iota(indices.dtype, (axis.size, 1, 1), 0)
    shifted = ops.where(inside, ops.add(indices, ops.mul(numbers, steps)), -1)
    return shapes.reshape(shifted, (axis.size * indices.shape[1], 2))


def index_dtype(extent: int) -> np.dtype[Any]:
    """The integer dtype for indices below ``extent``; raise if it needs 64 bits and ``jax_enable_x64`` is off."""
    if extent < 2**31:
        return _int32
    if dtypes.canonicalize_dtype(_int64) != _int64:
        raise IndexRangeError(
            f"a sparse array with an axis of {extent:,} positions, after axes are merged, needs indices of "
            "64 bits: enable jax_enable_x64"
        )
    return _int64


def _examples(x: Any, dim: int | None, axis: MappedAxis) -> Any:
    return _into(front(x, dim, axis), 0, 0)


@blocks_times_dense_p.batch
def _times_batch(axis: MappedAxis, args: Any, dims: Any, *, size: int, transposed: bool) -> Any:
    (data, indices, dense), (d, i, v) = args, dims
    p = partial(blocks_times_dense, transposed=transposed)
    if d is None and i is None:
        return _out_of(p(data, indices, _into(dense, v, 2), size), axis, 2)
    if i is None and v is None:
        return _out_of(p(_into(data, d, 2 if transposed else 1), indices, dense, size), axis, 1)
    count = dense.shape[0] if v is None else shapes.moveaxis(dense, v, 0).shape[1]
    limits, moved = (size, count), (True, v is not None)
    if transposed:
        limits, moved = limits[::-1], moved[::-1]
    indices = _all_in_one(axis, indices, i, limits, moved)
    out = p(_examples(data, d, axis), indices, dense if v is None else _examples(dense, v, axis), size * axis.size)
    return _out_of(out, axis, 0)


@blocks_of_product_p.batch
def _of_product_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    (x, y, indices), (a, b, i) = args, dims
    if i is None and b is None:
        return _out_of(blocks_of_product(_into(x, a, 1), y, indices), axis, 1)
    if i is None and a is None:
        return _out_of(blocks_of_product(x, _into(y, b, 1), indices), axis, 2)
    limits = tuple(z.shape[0] if d is None else shapes.moveaxis(z, d, 0).shape[1] for z, d in ((x, a), (y, b)))
    indices = _all_in_one(axis, indices, i, limits, (a is not None, b is not None))  # type: ignore[arg-type]
    x, y = (z if d is None else _examples(z, d, axis) for z, d in ((x, a), (y, b)))
    return _out_of(blocks_of_product(x, y, indices), axis, 0)


# Compilation -------------------------------------------------------------------------------------------------------


def _column(indices: Any, j: int) -> Any:
    return slicing.slice_in_dim(indices, j, j + 1, 1)


def _inside(i: Any, n: int) -> Any:
    return ops.and_p.bind(ops.ge_p.bind(i, 0), ops.lt(i, np.asarray(n, i.dtype)))


def _rows_at(x: Any, i: Any) -> Any:
    """Gather the matrices ``x[i]``, for indices ``i`` of shape (e, 1); indices out of range are clipped."""
    return gather(x, i, _ROWS, (1, *x.shape[1:]), mode=GatherScatterMode.CLIP)


def _products(x: Any, y: Any, numbers: Any) -> Any:
    """Multiply each matrix of ``x`` by the matrix of ``y`` with the same index; return the products.

    ``numbers`` are the dimension numbers for ``dot_general``. Products of vectors or numbers are computed by
    multiplication and sum, which is faster than a batched contraction.
    """
    (((a,), (b,)), _) = numbers
    if x.shape[3 - a] == y.shape[3 - b] == 1:
        x, y = (shapes.reshape(z, (z.shape[0], 1, z.shape[1] * z.shape[2])) for z in (x, y))
        return shapes.expand_dims(reduce_sum(ops.mul(x, y), (2,)), (2,))
    if x.shape[a] == 1 and 1 in (x.shape[3 - a], y.shape[3 - b]):
        x = x if a == 2 else shapes.transpose(x, (0, 2, 1))
        y = y if b == 1 else shapes.transpose(y, (0, 2, 1))
        return ops.mul(x, y)
    return contraction.dot_general(x, y, numbers)


def _half(dtype: Any) -> bool:
    return bool(dtype.itemsize == 2 and dtypes.is_inexact(dtype))


def _signed(indices: Any) -> Any:
    wide = indices.dtype.itemsize == 8
    return ops.convert_element_type(indices, _int64 if wide else _int32) if indices.dtype.kind == "u" else indices


def _add_product(out: Any, data: Any, indices: Any, dense: Any, transposed: bool) -> Any:
    """Return ``out`` plus the product of some blocks of a sparse matrix with a dense matrix.

    Args:
      out: the result so far.
      data: the blocks.
      indices: the row and column of each block.
      dense: the dense matrix.
      transposed: whether to multiply by the transpose of the sparse matrix.
    """
    indices = _signed(indices)
    to, of = (_column(indices, 1), _column(indices, 0)) if transposed else (_column(indices, 0), _column(indices, 1))
    update = _products(data, _rows_at(dense, of), (((1 if transposed else 2,), (1,)), ((0,), (0,))))
    to = ops.where(_inside(of, dense.shape[0]), to, -1)  # dropped, so that an infinity is not multiplied by zero
    return scatter_add(out, to, update, _TO_ROWS, mode=GatherScatterMode.FILL_OR_DROP)


def _product_blocks(x: Any, y: Any, indices: Any) -> Any:
    indices = _signed(indices)
    i, j = _column(indices, 0), _column(indices, 1)
    out = _products(_rows_at(x, i), _rows_at(y, j), (((2,), (2,)), ((0,), (0,))))
    inside = ops.and_p.bind(_inside(i, x.shape[0]), _inside(j, y.shape[0]))
    return ops.where(shapes.expand_dims(inside, (2,)), out, 0)


def _chunk_size(elements: int, gathered: int, resident: int) -> int:
    """Return how many blocks to multiply at a time, so that the arrays gathered for these blocks stay small.

    They are about as large as the operands and results, or a constant if that is larger.

    Args:
      elements: the number of all blocks.
      gathered: the size of the gathered arrays for all blocks.
      resident: the size of the operands and results.
    """
    return elements if gathered <= max(resident, _BLOCK) else max(1, elements * max(resident, _BLOCK) // gathered)


def _loop(hlo: Any, elements: int, step: int, start: Any, body: Any) -> Any:
    """Emit a loop over chunks of elements, and return its result.

    The last chunk begins early, to be as long as the others, so that it overlaps with the chunk before it.

    Args:
      hlo: the builder.
      elements: the number of elements.
      step: the number of elements in a chunk.
      start: the initial result.
      body: ``body(out, first, known)`` returns the next result. ``first`` is the index of the first element of the
        chunk, and ``known`` is the number of elements at its beginning that the chunk before it has processed.
    """
    zero, one = hlo.number(0, _int32), hlo.number(1, _int32)
    kinds = [((), _int32), (start.shape, start.dtype)]
    count = math.ceil(elements / step)

    def region(i: Any, out: Any) -> list[Any]:
        due = hlo.elementwise("stablehlo.multiply", i, hlo.number(step, _int32))
        first = hlo.elementwise("stablehlo.minimum", due, hlo.number(elements - step, _int32))
        return [
            hlo.elementwise("stablehlo.add", i, one),
            body(out, first, hlo.elementwise("stablehlo.subtract", due, first)),
        ]

    going = hlo.region(kinds, lambda i, out: [hlo.compare(i, hlo.number(count, _int32), "LT")])
    return hlo.multi_result("stablehlo.while", [zero, start], kinds, regions=[going, hlo.region(kinds, region)])[1]


def _chunk(hlo: Any, x: Any, first: Any, step: int) -> Any:
    sizes = (step, *x.shape[1:])
    zeros = [hlo.number(0, _int32)] * (len(sizes) - 1)
    attributes = f"slice_sizes = array<i64: {', '.join(map(str, sizes))}>"
    return hlo.op("stablehlo.dynamic_slice", [x, first, *zeros], sizes, x.dtype, attributes)


@blocks_times_dense_p.lowering
def _times_lowering(hlo: Any, data: Any, indices: Any, dense: Any, *, size: int, transposed: bool) -> Any:
    shape, dtype = hlo.result.shape, data.dtype
    if 0 in (*data.shape, *dense.shape, *shape):
        return hlo.splat(0, shape, dtype)
    if _half(dtype):
        data, dense = (hlo.convert(x, np.dtype(np.float32)) for x in (data, dense))
    start = hlo.splat(0, shape, data.dtype)
    elements = data.shape[0]
    gathered = elements * shape[2] * max(data.shape[1:])
    step = _chunk_size(elements, gathered, math.prod(data.shape) + math.prod(dense.shape) + math.prod(shape))
    if step == elements:
        out = hlo.inline(partial(_add_product, transposed=transposed), start, data, indices, dense)
    else:

        def body(out: Any, first: Any, known: Any) -> Any:
            def add_chunk(out: Any, data: Any, indices: Any, dense: Any, known: Any) -> Any:
                again = ops.lt(slicing.iota(_int32, (step, 1), 0), known)
                return _add_product(out, data, ops.where(again, -1, _signed(indices)), dense, transposed)

            return hlo.inline(
                add_chunk, out, _chunk(hlo, data, first, step), _chunk(hlo, indices, first, step), dense, known
            )

        out = _loop(hlo, elements, step, start, body)
    return hlo.convert(out, dtype)


@blocks_of_product_p.lowering
def _of_product_lowering(hlo: Any, x: Any, y: Any, indices: Any) -> Any:
    shape, dtype = hlo.result.shape, x.dtype
    if 0 in (*x.shape, *y.shape, *shape):
        return hlo.splat(0, shape, dtype)
    if _half(dtype):
        x, y = (hlo.convert(z, np.dtype(np.float32)) for z in (x, y))
    elements = indices.shape[0]
    gathered = elements * x.shape[2] * (x.shape[1] + y.shape[1])
    step = _chunk_size(elements, gathered, math.prod(x.shape) + math.prod(y.shape) + math.prod(shape))
    if step == elements:
        return hlo.convert(hlo.inline(_product_blocks, x, y, indices), dtype)

    def body(out: Any, first: Any, known: Any) -> Any:
        update = hlo.inline(_product_blocks, x, y, _chunk(hlo, indices, first, step))
        zero = hlo.number(0, _int32)
        return hlo.op("stablehlo.dynamic_update_slice", [out, update, first, zero, zero], shape, x.dtype)

    return hlo.convert(_loop(hlo, elements, step, hlo.splat(0, shape, x.dtype), body), dtype)


# Masked zeros -----------------------------------------------------------------------------------------------------

masked_blocks_times_dense_p = masked_sum_of_products(blocks_times_dense_p, factors=(0, 2))
masked_blocks_of_product_p = masked_sum_of_products(blocks_of_product_p)
