"""Determinants, and their logarithms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import combinations, permutations
from typing import Any

import numpy as np

from pullback.backends.host import blas
from pullback.core import dtypes
from pullback.core.elsewhere import is_here
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.arrays.sorting import add_along_axis, take_along_axis
from pullback.primitives.axis_maps import mapped_to_front, works_on_last
from pullback.primitives.linalg.decompositions import diagonal, on_diagonal
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_square_matrices,
    matrix_transpose,
    not_a_number,
    product,
    rows_minus_columns,
    square_type,
    triangular_solve,
)
from pullback.primitives.linalg.lu import host_factors, identity, inverse, last_diagonal, linear_solve_p, lu
from pullback.primitives.linalg.svd import svd

_INT32 = np.dtype(np.int32)

# By the factors of the matrices ------------------------------------------------------------------------------------


def _sign_of_pivots(pivots: Any, dtype: Any) -> Any:
    """Return the sign of the row permutation of an LU decomposition: -1 for an odd number of row swaps, else 1.

    ``pivots`` holds, for each row, the row that it is swapped with; ``dtype`` is the dtype of the result.
    """
    rank = len(pivots.shape)
    swapped = ops.ne_p.bind(pivots, iota(_INT32, (pivots.shape[-1],), 0))
    count = reductions.reduce_sum(ops.convert_element_type(swapped, _INT32), (rank - 1,))
    return _alternating(count, dtype)


def _alternating(exponent: Any, dtype: Any) -> Any:
    """-1 to the power of an integer, in ``dtype``."""
    return ops.convert_element_type(ops.sub(1, ops.mul(ops.and_p.bind(exponent, 1), 2)), dtype)


def _diagonal_by_columns(x: Any) -> Any:
    """The diagonals of square matrices that are in memory by columns, as LAPACK writes them; no other element is read.

    The sum of ``diagonal`` would read them by rows, which takes half of the time of a decomposition of 256 by 256.
    """
    *batch, n, _ = x.shape
    if not isinstance(n, int) or n == 0:
        return diagonal(x)
    return slice_in_dim(shapes.reshape(matrix_transpose(x), (*batch, n * n)), 0, n * n, len(batch), n + 1)


def _det_by_factors(x: Any) -> Any:
    factors, pivots, _ = lu(x)
    pivots_product = reductions.reduce_prod(_diagonal_by_columns(factors), (len(x.shape) - 2,))
    return ops.mul(pivots_product, _sign_of_pivots(pivots, x.dtype))


def _slogdet_by_factors(x: Any) -> list[Any]:
    factors, pivots, _ = lu(x)
    pivot, axes = _diagonal_by_columns(factors), (len(x.shape) - 2,)
    sign = reductions.reduce_prod(ops.sign(pivot), axes)
    return [
        ops.mul(sign, _sign_of_pivots(pivots, x.dtype)),
        reductions.reduce_sum(ops.log(ops.abs(pivot)), axes),
    ]


# Determinants ------------------------------------------------------------------------------------------------------


def det(x: Any) -> Any:
    """The determinants of square matrices."""
    return det_p.bind(x)


det_p = Primitive("det", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(det_p, 2)
det_p.lowering(lambda hlo, x: hlo.inline(_det_by_factors, x))


@det_p.host
def _det_host(x: Any) -> Any:
    if not _is_large(x):
        return np.linalg.det(x)
    pivot, sign = _host_pivots(*host_factors(x))
    return (sign * pivot.prod(-1)).astype(x.dtype)


def _is_large(x: Any) -> bool:
    """Whether to decompose NumPy's matrices in their own precision: NumPy does in double, which takes twice the time.

    From this size on NumPy's decomposition wakes its threads too; see ``backends/host/blas``.
    """
    return bool(x.shape[-1] ** 2 >= blas.LEAST)


def _host_pivots(factors: Any, swapped: Any) -> tuple[Any, Any]:
    """Return the pivots (..., n) of NumPy's matrices, in double precision, and the signs of their row permutations."""
    pivot = np.diagonal(factors, axis1=-2, axis2=-1).astype(np.complex128 if factors.dtype.kind == "c" else np.float64)
    return pivot, 1 - 2 * (np.count_nonzero(swapped != np.arange(factors.shape[-1]), -1) % 2)


@det_p.abstract_eval
def _det_abstract_eval(x: ShapedArray) -> ShapedArray:
    check_square_matrices("det", x)
    return ShapedArray(x.shape[:-2], x.dtype)


@det_p.jvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return det(x), _sum_of_products(_cofactors(x), t) if x.shape[-1] else ZERO


def _sum_of_products(x: Any, y: Any) -> Any:
    rank = len(x.shape)
    return reductions.reduce_sum(ops.mul(x, y), (rank - 2, rank - 1))


# Cofactors, the derivatives of the determinant ---------------------------------------------------------------------


def _cofactors(x: Any) -> Any:
    """The cofactors of matrices: the derivatives of the determinants with respect to each element."""
    n = x.shape[-1]
    if n == 1:
        return shapes.full(x.shape, 1, x.dtype)
    if n == 2:
        signs = ops.sub(ops.mul(identity(2, x.dtype), 2), 1)
        return ops.mul(_rolled(x, 1, 1), signs)
    if n == 3:
        return ops.sub(
            ops.mul(_rolled(x, 1, 1), _rolled(x, 2, 2)),
            ops.mul(_rolled(x, 1, 2), _rolled(x, 2, 1)),
        )
    return cofactors_p.bind(x)


def _rolled(x: Any, rows: int, columns: int) -> Any:
    """Move the first ``rows`` rows of matrices below the last row, and the first ``columns`` columns to the end."""
    rank = len(x.shape)
    for axis, count in ((rank - 2, rows), (rank - 1, columns)):
        x = concatenate(
            [slice_in_dim(x, count, x.shape[axis], axis), slice_in_dim(x, 0, count, axis)],
            axis,
        )
    return x


cofactors_p = Primitive("cofactors", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(cofactors_p, 2)


cofactors_p.abstract_eval(partial(square_type, "cofactors"))


@cofactors_p.jvp
def _cofactors_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return cofactors_p.bind(x), ZERO if x.shape[-1] < 2 else cofactors_along(t, x)


@cofactors_p.decomposition
def _cofactors_by_factors(x: Any) -> Any:
    # U = D V, where D is the identity except for its last element, the last pivot u, and V is U with a one instead of
    # u. The adjugate of U is the adjugate of V, (product of all pivots except u) inv(V), times the adjugate of D, u
    # times the identity except for its last element, one. There is no division by u. So the cofactors of a singular
    # matrix are exact if its last pivot vanishes, which moving the column with the smallest pivot to the end ensures.
    # If another pivot vanishes too, the rank is less than n - 1, and they are zero.
    rank, n = len(x.shape), x.shape[-1]
    order, sign_of_order = _smallest_pivot_last(x)
    columns = shapes.expand_dims(order, (-2,))
    factors, pivots, permutation = lu(take_along_axis(x, columns, rank - 1, unique=True))
    pivot = diagonal(factors)
    last = shapes.expand_dims(slice_in_dim(pivot, n - 1, n, rank - 2), (-1,))
    others = reductions.reduce_prod(slice_in_dim(pivot, 0, n - 1, rank - 2), (rank - 2,))
    others = ops.mul(others, ops.mul(_sign_of_pivots(pivots, x.dtype), sign_of_order))
    others = shapes.expand_dims(others, (-1, -2))

    row = iota(_INT32, (n, 1), 0)
    is_source = ops.eq_p.bind(shapes.expand_dims(permutation, (-1,)), iota(_INT32, (1, n), 1))
    permuted = ops.convert_element_type(is_source, x.dtype)
    inner = triangular_solve(factors, permuted, left_side=True, lower=True, unit_diagonal=True)
    inner = ops.mul(inner, ops.where(ops.eq_p.bind(row, n - 1), 1, last))
    vanishes = ops.and_p.bind(ops.eq_p.bind(rows_minus_columns(n, n), 0), ops.eq_p.bind(factors, 0))
    divisors = ops.where(ops.or_p.bind(vanishes, last_diagonal(n)), 1, factors)
    inner = triangular_solve(divisors, inner, left_side=True, lower=False)
    adjugate = ops.where(ops.eq_p.bind(others, 0), 0, ops.mul(inner, others))
    columns = shapes.expand_dims(order, (-1,))
    return matrix_transpose(add_along_axis(adjugate, columns, rank - 2, n, unique=True))


def _smallest_pivot_last(x: Any) -> tuple[Any, Any]:
    """Return the column order that puts the column of ``x`` with the smallest LU pivot last, and the order's sign."""
    rank, n = len(x.shape), x.shape[-1]
    factors, _, _ = lu(x)
    smallest = reductions.argmin(ops.abs(diagonal(factors)), rank - 2, _INT32)
    sign = _alternating(ops.sub(n - 1, smallest), x.dtype)
    position, smallest = iota(_INT32, (n,), 0), shapes.expand_dims(smallest, (-1,))
    passed = ops.convert_element_type(ops.ge_p.bind(position, smallest), _INT32)
    return ops.where(ops.eq_p.bind(position, n - 1), smallest, ops.add(position, passed)), sign


# Their derivatives, of every order ---------------------------------------------------------------------------------


def cofactors_along(t: Any, x: Any, *others: Any) -> Any:
    """Return the mixed derivative of the cofactors of square matrices, once along each of one or more directions.

    Args:
      t: the first direction (..., n, n).
      x: the matrices; a leading axis may have size 1, and then broadcasts against ``t``.
      others: more directions, of the shape of the first; their order does not matter.
    """
    return cofactors_along_p.bind(t, x, *others)


cofactors_along_p = Primitive("cofactors_along", keeps_weak_type=False, cost=Cost.MATRIX)


@cofactors_along_p.decomposition
def _cofactors_along(t: Any, x: Any, *others: Any) -> Any:
    # With A = U S V*, det(A + E) = det(U V*) det(S + U* E V). The terms of degree m of det(S + M) are products of m
    # elements of M, in m different rows and a permutation of these for columns, and of the singular values of the other
    # rows. There are no quotients, so that the terms are right for matrices of every rank.
    m, n = len(others) + 2, x.shape[-1]
    if m > n:
        return shapes.full(t.shape, 0, t.dtype)
    s, u, vh = svd(x)
    of_factors = shapes.expand_dims(det(product(u, vh)), (-1, -2))
    u, vh = (shapes.broadcast_to(q, t.shape) for q in (u, vh))
    inner = [product(adjoint(u), product(d, adjoint(vh))) for d in (t, *others)]
    outer = product(ops.conj(u), product(_minors(s, inner), ops.conj(vh)))
    return ops.mul(outer, of_factors)


def _minors(s: Any, directions: Sequence[Any]) -> Any:
    """The mixed derivative of the cofactors of diagonal matrices, once along each of several directions.

    Args:
      s: the diagonals (..., n), real.
      directions: arrays (..., n, n) of one shape.
    """
    shape, dtype = directions[0].shape, directions[0].dtype
    m, lead, n = len(directions) + 1, len(shape) - 2, shape[-1]
    others = ops.convert_element_type(_products_of_others(s, m), dtype)
    along_diagonal: list[Any] = []
    total: list[Any] = []
    for columns, sign in _signed_permutations(m):
        term = others if sign > 0 else ops.neg(others)
        for row, (column, x) in enumerate(zip(columns, directions, strict=False)):
            if column == row:
                x = diagonal(x)
            elif column < row:
                x = matrix_transpose(x)
            positions = [i for i in range(m) if i not in (row, column)]
            term = ops.mul(term, shapes.expand_dims(x, [lead + i for i in positions]))
        # The element in the last row remains: its axis, and the axis of its column, stay.
        summed = tuple([lead + i for i in range(m - 1) if i != columns[-1]])
        term = reductions.reduce_sum(term, summed) if summed else term
        (along_diagonal if columns[-1] == m - 1 else total).append(term)
    on = ops.where(on_diagonal(n), shapes.expand_dims(reduce(ops.add, along_diagonal), (-1,)), 0)
    return ops.add(on, matrix_transpose(reduce(ops.add, total)))


def _signed_permutations(m: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the permutations of m numbers, each as a pair of the permutation and its sign, 1 or -1."""
    for columns in permutations(range(m)):
        inversions = sum(columns[i] > columns[j] for j in range(m) for i in range(j))
        yield columns, -1 if inversions % 2 else 1


def _products_of_others(s: Any, m: int) -> Any:
    """Return, for each choice of ``m`` distinct positions in a vector, the product of the elements elsewhere.

    Args:
      s: vectors (..., n).
      m: the number of positions, at most n.

    Returns:
      An array (..., n, ..., n), with an axis for each of the ``m`` positions; zero where two positions are equal.
    """
    n = s.shape[-1]
    for _ in range(m - 1):  # one more axis, along which each element in turn is omitted
        s = ops.where(on_diagonal(n), 1, shapes.expand_dims(s, (-2,)))
    out = reductions.product_of_others(s, (len(s.shape) - 1,))
    positions = [iota(_INT32, tuple([n if k == i else 1 for k in range(m)]), i) for i in range(m)]
    for one, other in combinations(positions, 2):
        out = ops.where(ops.eq_p.bind(one, other), 0, out)
    return out


@cofactors_along_p.abstract_eval
def _cofactors_along_abstract_eval(t: ShapedArray, x: ShapedArray, *others: ShapedArray) -> ShapedArray:
    check_square_matrices("cofactors_along", t)
    fits = len(x.shape) == len(t.shape) and x.shape[-2:] == t.shape[-2:]
    fits = fits and all(a in (1, b) for a, b in zip(x.shape[:-2], t.shape[:-2], strict=True))
    if not fits or any(other.shape != t.shape for other in others) or any(y.dtype != t.dtype for y in (x, *others)):
        raise ShapeError(f"cofactors_along takes directions of one type, and matrices that fit, got {t}, {x}, {others}")
    return ShapedArray(t.shape, t.dtype)


@cofactors_along_p.jvp
def _cofactors_along_jvp(primals: Any, tangents: Any) -> Any:
    # Linear in each direction; their order does not matter, so that the linear operand becomes the first.
    t, x, *others = primals
    of_t, of_x, *of_others = tangents
    terms = []
    if of_t is not ZERO:
        terms.append(cofactors_along(of_t, x, *others))
    for i, of_other in enumerate(of_others):
        if of_other is not ZERO:
            terms.append(cofactors_along(of_other, x, t, *others[:i], *others[i + 1 :]))
    if of_x is not ZERO and len(others) + 2 < x.shape[-1]:
        terms.append(cofactors_along(shapes.broadcast_to(of_x, t.shape), x, t, *others))
    return cofactors_along(*primals), reduce(ops.add_any_p.bind, terms) if terms else ZERO


@partial(cofactors_along_p.transpose, linear_in=(0,))
def _cofactors_along_transpose(ct: Any, t: LinearVar, x: Any, *others: Any) -> Any:
    return cofactors_along(ct, x, *others), None, *[None] * len(others)


@cofactors_along_p.batch
def _cofactors_along_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    # Matrices that are not mapped are decomposed only once.
    t, x, *others = args
    if dims[1] is None:
        x, moved = shapes.expand_dims(x, (0,)), mapped_to_front(axis, (t, *others), (dims[0], *dims[2:]))
        return cofactors_along(moved[0], x, *moved[1:]), 0
    return cofactors_along(*mapped_to_front(axis, args, dims)), 0


# Logarithms of determinants ----------------------------------------------------------------------------------------


def slogdet(x: Any) -> list[Any]:
    """Return the signs of the determinants of square matrices, and the logarithms of their absolute values."""
    out: list[Any] = slogdet_p.bind(x)
    return out


# Operands: the matrices, and also their LU factors and pivots if they are known.
slogdet_p = Primitive("slogdet", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(slogdet_p, 2, 2, 1)
slogdet_p.lowering(lambda hlo, x, *known: hlo.inline(_slogdet_by_factors, x))


@slogdet_p.host
def _slogdet_host(x: Any, *known: Any) -> list[Any]:
    if _is_large(x):
        return _slogdet_of_host_factors(*(known or host_factors(x)))
    return _known(*np.linalg.slogdet(x))


def _slogdet_of_host_factors(factors: Any, swapped: Any) -> list[Any]:
    pivot, sign = _host_pivots(factors, swapped)
    sign = (sign * np.sign(pivot).prod(-1)).astype(factors.dtype)
    return _known(sign, np.log(np.abs(pivot)).sum(-1).astype(dtypes.to_real(factors.dtype)))


def _known(sign: Any, logarithm: Any) -> list[Any]:
    """Return both, the sign NaN where the logarithm is NaN."""
    unknown = np.isnan(logarithm)
    return [
        np.where(unknown, sign.dtype.type(not_a_number(sign.dtype)), sign)[()] if unknown.any() else sign,
        logarithm,
    ]


@slogdet_p.abstract_eval
def _slogdet_abstract_eval(x: ShapedArray, *known: ShapedArray) -> list[ShapedArray]:
    check_square_matrices("slogdet", x)
    return [ShapedArray(x.shape[:-2], x.dtype), ShapedArray(x.shape[:-2], dtypes.to_real(x.dtype))]


@slogdet_p.jvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    # d log det A = tr(inv(A) dA), whose imaginary part is the rotation of the determinant around zero.
    (x, *known), (t, *_) = primals, tangents
    if state.trace.quick and is_here(x) and _is_large(x):  # one decomposition for both
        factors, pivots, permutation = lu(x)
        out = sign, _ = slogdet_p.bind(x, factors, pivots)
        eye = shapes.broadcast_to(identity(x.shape[-1], x.dtype), x.shape)
        inverted = linear_solve_p.bind(x, factors, permutation, eye, transpose=False)
    else:
        out = sign, _ = slogdet_p.bind(x, *known)
        inverted = inverse(x)
    change = _sum_of_products(matrix_transpose(inverted), t)
    if not dtypes.is_complex(x.dtype):
        return out, [ZERO, change]
    turned = ops.convert_element_type(ops.imag(change), x.dtype)
    return out, [ops.mul(turned, ops.mul(sign, 1j)), ops.real(change)]
