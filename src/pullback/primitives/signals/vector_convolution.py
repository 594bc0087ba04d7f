"""Convolutions along one axis, of one feature in steps of one element, on CPUs.

For them the compiler has no library. Its own loops take four times as long as those below in double precision, and up
to 400 times in single precision. Neither way multiplies an element with a zero that is not padding, so that infinities
and NaN stay where they belong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.core.dims import any_symbolic
from pullback.core.types import Shape
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.slicing import pad, slice_in_dim
from pullback.primitives.linalg.contraction import dot_general
from pullback.primitives.reductions import reduce_sum

TERMS = 8
"""The elements of the kernel that are terms of one turn of a loop."""
MOST_TERMS = 64
"""The most elements of a kernel whose terms are written without a loop."""
LANES = 16
"""The rows in which long kernels are summed."""


class Sizes(NamedTuple):
    """The sizes of a convolution along one axis.

    Attributes:
      batches: the groups of the batch.
      groups: the groups of features.
      n: the elements of the batch in a group.
      c: the features of the operand in a group.
      o: the features of the result in a group.
      m: the elements of the kernel.
      results: those of the result.
    """

    batches: int
    groups: int
    n: int
    c: int
    o: int
    m: int
    results: int


def sizes_of(
    lhs: Any, rhs: Any, shape: Shape, *, geometry: Any, dimension_numbers: Any, feature_group_count: int,
    batch_group_count: int, precision: Any = None,
) -> Sizes | None:  # fmt: skip
    """Return the sizes of a convolution along one axis in steps of one element; None of others, and of unknown sizes.

    The arguments are the operands, the shape of the result, and the parameters of the convolution.
    """
    del precision
    if not (geometry.strides == geometry.lhs_dilation == geometry.rhs_dilation == (1,)):
        return None
    if any_symbolic((*lhs.shape, *rhs.shape, *shape)):
        return None
    (n, c, _), (o, _, k), (_, _, s) = dimension_numbers
    groups = batch_group_count * feature_group_count
    return Sizes(
        batch_group_count, feature_group_count, lhs.shape[n] // batch_group_count, lhs.shape[c] // feature_group_count,
        rhs.shape[o] // groups, rhs.shape[k], shape[s],
    )  # fmt: skip


def is_of_vectors(sizes: Sizes) -> bool:
    """Whether vectors are convolved with one kernel each: by the elements of a short kernel, or in rows of a long one.

    The second is a product of matrices in each turn, so that vectors may be summed, or have one kernel.
    """
    if sizes.o > 1:
        return False
    return sizes.c == 1 or (sizes.n == 1 and sizes.m > sizes.results)


def operands(by: Any, lhs: Any, rhs: Any, sizes: Sizes, dimension_numbers: Any) -> tuple[Any, Any]:
    """Return the operand with the axes batch, groups, features, space, and the kernel with groups, results, features.

    Args:
      by: the module of the functions ``transpose`` and ``reshape``: NumPy's, or that of operations.
      lhs, rhs: the operands.
      sizes: the sizes.
      dimension_numbers: those of the convolution.
    """
    lhs_spec, rhs_spec, _ = dimension_numbers
    batches, groups, n, c, o, m, _ = sizes
    x = by.transpose(lhs, lhs_spec)
    length = x.shape[-1]
    x = by.transpose(by.reshape(x, (batches, n, groups, c, length)), (1, 0, 2, 3, 4))
    kernel = by.reshape(by.transpose(rhs, rhs_spec), (batches * groups, o, c, m))
    return by.reshape(x, (n, batches * groups, c, length)), kernel


def result(by: Any, out: Any, dimension_numbers: Any) -> Any:
    """Return a result, with the axes batch, groups, features and space, in the order of the convolution.

    The other arguments are as in :func:`operands`.
    """
    n, groups, o, count = out.shape
    spec = dimension_numbers[2]
    return by.transpose(by.reshape(out, (n, groups * o, count)), sorted(range(3), key=spec.__getitem__))


def emit(
    hlo: Any, lhs: Any, rhs: Any, shape: Shape, *, geometry: Any, dimension_numbers: Any, **params: Any
) -> Any:  # fmt: skip
    """Emit a convolution for which :func:`is_of_vectors` holds, as in :func:`sizes_of`."""
    sizes = sizes_of(lhs, rhs, shape, geometry=geometry, dimension_numbers=dimension_numbers, **params)
    assert sizes is not None
    ((low, high),) = geometry.padding
    by_terms = sizes.c == 1 and (sizes.m <= sizes.results or sizes.m <= TERMS)
    extra = 0 if by_terms else -sizes.m % LANES  # zeros, so that all rows are whole

    def prepared(lhs: Any, rhs: Any) -> list[Any]:
        x, kernel = operands(shapes, lhs, rhs, sizes, dimension_numbers)
        zero = x.dtype.type(0)
        x = pad(x, zero, [(0, 0, 0)] * 3 + [(low, high + extra, 0)])
        return [x, pad(kernel, zero, [(0, 0, 0)] * 3 + [(0, extra, 0)])]

    x, kernel = hlo.inline(prepared, lhs, rhs)
    out = _by_terms(hlo, x, kernel, sizes) if by_terms else _by_rows(hlo, x, kernel, sizes)
    return hlo.inline(lambda out: result(shapes, out, dimension_numbers), out)


def _by_terms(hlo: Any, x: Any, kernel: Any, sizes: Sizes) -> Any:
    """Sum the operand, moved, times each element of the kernel."""
    m, count = sizes.m, sizes.results
    whole = 0 if m <= MOST_TERMS else m - m % TERMS

    def add(total: Any, x: Any, kernel: Any, first: int, last: int) -> Any:
        for j in range(first, last):
            weight = shapes.broadcast_in_dim(shapes.squeeze(slice_in_dim(kernel, j, j + 1, 3), (2, 3)), like, (1, 2))
            term = ops.mul_p.bind(slice_in_dim(x, j, j + count, 3), weight)
            total = term if total is None else ops.add_p.bind(total, term)
        return total

    like = (*x.shape[:3], count)
    if not whole:
        return hlo.inline(lambda x, kernel: add(None, x, kernel, 0, m), x, kernel)

    def turn(i: Any, total: Any, x: Any, kernel: Any) -> list[Any]:
        part = _part(x, i, count + TERMS - 1)
        return [ops.add(i, TERMS), add(total, part, _part(kernel, i, TERMS), 0, TERMS)]

    total = _repeated(hlo, turn, hlo.splat(0, like, x.dtype), x, kernel, whole)
    return hlo.inline(lambda total, x, kernel: add(total, x, kernel, whole, m), total, x, kernel)


def _by_rows(hlo: Any, x: Any, kernel: Any, sizes: Sizes) -> Any:
    """Sum products of rows of a long kernel with the elements of the operand near them, whose diagonals are the result.

    The element j of a row and the element i + j of the operand belong to the element i of the result.
    """
    width = sizes.results + LANES - 1
    groups = x.shape[1]

    def turn(i: Any, total: Any, x: Any, kernel: Any) -> list[Any]:
        near, row = _part(x, i, width), _part(kernel, i, LANES)
        if sizes.c > 1:  # n is 1
            product = dot_general(shapes.squeeze(row, (1,)), shapes.squeeze(near, (0,)), (((1,), (1,)), ((0,), (0,))))
            product = shapes.reshape(product, total.shape)
        else:
            row = shapes.broadcast_in_dim(shapes.squeeze(row, (1, 2)), total.shape, (1, 2))
            near = shapes.broadcast_in_dim(shapes.squeeze(near, (2,)), total.shape, (0, 1, 3))
            product = ops.mul_p.bind(row, near)
        return [ops.add(i, LANES), ops.add_p.bind(total, product)]

    def diagonals(total: Any) -> Any:
        flat = shapes.reshape(total, (sizes.n, groups, LANES * width))
        flat = pad(flat, flat.dtype.type(0), [(0, 0, 0), (0, 0, 0), (0, LANES, 0)])
        rows = shapes.reshape(flat, (sizes.n, groups, LANES, width + 1))
        out = reduce_sum(slice_in_dim(rows, 0, sizes.results, 3), (2,))
        return shapes.reshape(out, (sizes.n, groups, 1, sizes.results))

    start = hlo.splat(0, (sizes.n, groups, LANES, width), x.dtype)
    return hlo.inline(diagonals, _repeated(hlo, turn, start, x, kernel, kernel.shape[3]))


def _part(x: Any, first: Any, size: int) -> Any:
    """Return ``size`` elements of the last axis, from ``first`` on."""
    return dynamic_slice(x, (0, 0, 0, first), (*x.shape[:3], size))


def _repeated(hlo: Any, turn: Any, total: Any, x: Any, kernel: Any, end: int) -> Any:
    """Emit a loop of ``turn``, which returns the next position and the sum so far, until the position is ``end``."""
    start = [hlo.number(0, _INT32), total]
    kinds = [(v.shape, v.dtype) for v in start]
    going = hlo.region(kinds, lambda i, total: [hlo.compare(i, hlo.number(end, _INT32), "LT")])
    body = hlo.region(kinds, lambda i, total: hlo.inline(turn, i, total, x, kernel))
    return hlo.multi_result("stablehlo.while", start, kinds, regions=[going, body])[1]


_INT32 = np.dtype(np.int32)
