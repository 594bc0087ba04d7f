"""Ragged products: rows in groups times a matrix for each group, or a product of matrices for each group.

Groups are consecutive, and defined by their sizes; rows beyond the last group are ignored.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback.core.errors import DtypeError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.axis_maps import mapped_to_front
from pullback.primitives.checks import INTEGER
from pullback.primitives.linalg import contraction
from pullback.primitives.linalg.lapack import matrix_transpose
from pullback.primitives.masked import masked_sum_of_products
from pullback.primitives.reductions import cumsum
from pullback.primitives.sums import add_any


def grouped_rows(x: Any, y: Any, sizes: Any) -> Any:
    """Multiply each row by the matrix of its group; the groups are consecutive rows.

    Args:
      x: rows, (b, m, k).
      y: a matrix for each group, (b, g, k, n).
      sizes: the number of rows in each group, integers (b, g).

    Returns:
      An array (b, m, n), with zeros in rows after the last group.
    """
    return grouped_rows_p.bind(x, y, sizes)


def grouped_products(x: Any, y: Any, sizes: Any) -> Any:
    """Return, for each group of consecutive rows, the sum over its rows of the outer products x[row] y[row].

    Args:
      x, y: rows, (b, m, k) and (b, m, n).
      sizes: the number of rows in each group, integers (b, g).

    Returns:
      An array (b, g, k, n).
    """
    return grouped_products_p.bind(x, y, sizes)


grouped_rows_p = Primitive("grouped_rows", cost=Cost.SPECIAL)
grouped_products_p = Primitive("grouped_products", cost=Cost.SPECIAL)

# Evaluation --------------------------------------------------------------------------------------------------------


def _segments(sizes: Any, rows: int) -> Any:
    """Yield a triple for each nonempty group: the index of its batch, its index, and the slice of its rows.

    ``sizes`` holds the number of rows in each group; ``rows`` is the number of all rows, where the last slice ends.
    """
    ends = np.minimum(np.cumsum(np.maximum(sizes, 0), -1, dtype=np.int64), rows)
    starts = np.concatenate([np.zeros_like(ends[:, :1]), ends[:, :-1]], -1)
    for b, g in np.ndindex(sizes.shape):
        if ends[b, g] > starts[b, g]:
            yield b, g, slice(starts[b, g], ends[b, g])


def _product(x: Any, y: Any) -> Any:
    numbers = (((1,), (0,)), ((), ()))
    return contraction.dot_general_p.host_rule(x, y, dimension_numbers=numbers)  # type: ignore[misc]


@grouped_rows_p.host
def _rows_host(x: Any, y: Any, sizes: Any) -> Any:
    out = np.zeros((*x.shape[:2], y.shape[-1]), x.dtype)
    for b, g, rows in _segments(sizes, x.shape[1]):
        out[b, rows] = _product(x[b, rows], y[b, g])
    return out


@grouped_products_p.host
def _products_host(x: Any, y: Any, sizes: Any) -> Any:
    out = np.zeros((*sizes.shape, x.shape[-1], y.shape[-1]), x.dtype)
    for b, g, rows in _segments(sizes, x.shape[1]):
        out[b, g] = _product(x[b, rows].T, y[b, rows])
    return out


# Types -------------------------------------------------------------------------------------------------------------


def _check(name: str, x: ShapedArray, y: ShapedArray, sizes: ShapedArray, fits: bool) -> None:
    if not INTEGER(sizes.dtype) or x.dtype != y.dtype:
        raise DtypeError(f"{name} takes two arrays of one dtype and integer sizes, got {x}, {y} and {sizes}")
    if not fits:
        raise ShapeError(f"{name}: the shapes do not fit: {x}, {y}, with the sizes of groups {sizes}")


@grouped_rows_p.abstract_eval
def _rows_abstract_eval(x: ShapedArray, y: ShapedArray, sizes: ShapedArray) -> ShapedArray:
    fits = x.ndim == 3 and y.ndim == 4 and y.shape[0] == x.shape[0] and y.shape[2] == x.shape[2]
    _check("ragged_dot", x, y, sizes, fits and sizes.shape == y.shape[:2])
    return ShapedArray((*x.shape[:2], y.shape[-1]), x.dtype)


@grouped_products_p.abstract_eval
def _products_abstract_eval(x: ShapedArray, y: ShapedArray, sizes: ShapedArray) -> ShapedArray:
    fits = x.ndim == y.ndim == 3 and x.shape[:2] == y.shape[:2]
    _check("ragged_dot", x, y, sizes, fits and sizes.ndim == 2 and sizes.shape[0] == x.shape[0])
    return ShapedArray((*sizes.shape, x.shape[-1], y.shape[-1]), x.dtype)


# Differentiation and batching --------------------------------------------------------------------------------------


def _jvp(p: Primitive, primals: Any, tangents: Any) -> Any:
    x, y, sizes = primals
    tx, ty, _ = tangents
    by_x = None if tx is ZERO else p.bind(tx, y, sizes)
    by_y = None if ty is ZERO else p.bind(x, ty, sizes)
    total = by_y if by_x is None else by_x if by_y is None else add_any(by_x, by_y)
    return p.bind(x, y, sizes), ZERO if total is None else total


def _batch(p: Primitive, axis: MappedAxis, args: Any, dims: Any) -> Any:
    """Apply ``p`` to a batch: merge the mapped axis with the batch axis, and split the result again.

    Returns:
      The result, and 0, the position of its mapped axis.
    """
    moved = mapped_to_front(axis, args, dims)
    out = p.bind(*[shapes.reshape(a, (axis.size * a.shape[1], *a.shape[2:])) for a in moved])
    return shapes.reshape(out, (axis.size, out.shape[0] // axis.size, *out.shape[1:])), 0


for _p in (grouped_rows_p, grouped_products_p):
    _p.jvp_rule = partial(_jvp, _p)
    _p.batch_rule = partial(_batch, _p)


@partial(grouped_rows_p.transpose, linear_in="each")
def _rows_transpose(ct: Any, x: Any, y: Any, sizes: Any) -> Any:
    if type(x) is LinearVar:
        return grouped_rows(ct, matrix_transpose(y), sizes), None, None
    return None, grouped_products(x, ct, sizes), None


@partial(grouped_products_p.transpose, linear_in="each")
def _products_transpose(ct: Any, x: Any, y: Any, sizes: Any) -> Any:
    if type(x) is LinearVar:
        return grouped_rows(y, matrix_transpose(ct), sizes), None, None
    return None, grouped_rows(x, ct, sizes), None


# Compilation -------------------------------------------------------------------------------------------------------

_int32 = np.dtype(np.int32)


def _bounds(sizes: Any) -> list[Any]:
    """Return two arrays: the index of the first row of each group, and the index after the last row of each group."""
    counts = ops.max_p.bind(ops.convert_element_type(sizes, _int32), 0)
    ends = cumsum(counts, 1)
    return [ops.sub(ends, counts), ends]


def _of_group(x: Any, start: Any, end: Any) -> Any:
    """Return ``x`` with zeros in all rows, except rows ``start`` to ``end - 1`` of each batch."""
    rows = iota(_int32, (1, x.shape[1], 1), 1)
    inside = ops.and_p.bind(ops.ge_p.bind(rows, _column(start)), ops.lt(rows, _column(end)))
    return ops.where(inside, x, 0)


def _column(x: Any) -> Any:
    return shapes.reshape(x, (x.shape[0], 1, 1))


def _over_groups(hlo: Any, x: Any, sizes: Any, start: Any, step: Any) -> Any:
    """Emit a loop over the groups of rows of ``x``, with the rows of one group in memory at a time.

    Args:
      hlo: the builder.
      x: rows, (b, m, k).
      sizes: the number of rows in each group, (b, g).
      start: the initial result.
      step: ``step(i, out, own_rows, zero)`` returns the next result; ``own_rows`` is ``x`` with zeros in the rows of
        other groups than i, and ``zero`` is an integer constant.
    """
    batch, groups = sizes.shape
    if 0 in (batch, groups, *start.shape):
        return start
    first, after = hlo.inline(_bounds, sizes)
    zero, one = hlo.number(0, _int32), hlo.number(1, _int32)
    kinds = [((), _int32), (start.shape, start.dtype)]

    def body(i: Any, out: Any) -> list[Any]:
        bounds = [
            hlo.op("stablehlo.dynamic_slice", [v, zero, i], (batch, 1), _int32, f"slice_sizes = array<i64: {batch}, 1>")
            for v in (first, after)
        ]
        own_rows = hlo.inline(_of_group, x, *bounds)
        return [hlo.elementwise("stablehlo.add", i, one), step(i, out, own_rows, zero)]

    going = hlo.region(kinds, lambda i, out: [hlo.compare(i, hlo.number(groups, _int32), "LT")])
    return hlo.multi_result("stablehlo.while", [zero, start], kinds, regions=[going, hlo.region(kinds, body)])[1]


@grouped_rows_p.lowering
def _rows_lowering(hlo: Any, x: Any, y: Any, sizes: Any) -> Any:
    numbers = (((2,), (1,)), ((0,), (0,)))
    sliced = (y.shape[0], 1, *y.shape[2:])

    def step(i: Any, out: Any, own_rows: Any, zero: Any) -> Any:
        attributes = f"slice_sizes = array<i64: {', '.join(map(str, sliced))}>"
        matrix = hlo.op("stablehlo.dynamic_slice", [y, zero, i, zero, zero], sliced, y.dtype, attributes)
        matrix = hlo.reshape(matrix, (sliced[0], *sliced[2:]))
        return hlo.inline(lambda o, a, b: ops.add(o, contraction.dot_general(a, b, numbers)), out, own_rows, matrix)

    start = hlo.splat(0, hlo.result.shape, x.dtype)
    return _over_groups(hlo, x, sizes, start, step)


@grouped_products_p.lowering
def _products_lowering(hlo: Any, x: Any, y: Any, sizes: Any) -> Any:
    numbers = (((1,), (1,)), ((0,), (0,)))
    shape = hlo.result.shape

    def step(i: Any, out: Any, own_rows: Any, zero: Any) -> Any:
        product = hlo.inline(lambda a, b: contraction.dot_general(a, b, numbers), own_rows, y)
        update = hlo.reshape(product, (shape[0], 1, *shape[2:]))
        return hlo.op("stablehlo.dynamic_update_slice", [out, update, zero, i, zero, zero], shape, x.dtype)

    return _over_groups(hlo, x, sizes, hlo.splat(0, shape, x.dtype), step)


# Masked zeros -----------------------------------------------------------------------------------------------------

masked_grouped_rows_p = masked_sum_of_products(grouped_rows_p)
masked_grouped_products_p = masked_sum_of_products(grouped_products_p)
