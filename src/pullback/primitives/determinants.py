"""Determinants, and their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions, shapes
from pullback.primitives.linalg import (
    check_decomposable,
    check_square,
    matrix_transpose,
    not_a_number,
    rows_minus_columns,
    triangular_solve,
)
from pullback.primitives.lu import identity, inverse, last_diagonal, lu
from pullback.primitives.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.sorting import add_along_axis, take_along_axis

_INT32 = np.dtype(np.int32)

# By the factors of the matrices ------------------------------------------------------------------------------------


def _diagonal(x: Any) -> Any:
    n = x.shape[-1]
    on = ops.eq_p.bind(rows_minus_columns(n, n), 0)
    return reductions.reduce_sum(ops.where(on, x, 0), (len(x.shape) - 1,))


def _sign_of_pivots(pivots: Any, dtype: Any) -> Any:
    """The determinant of the permutation of the rows: every row that was swapped with another one changes the sign."""
    rank = len(pivots.shape)
    swapped = ops.ne_p.bind(pivots, iota(_INT32, (pivots.shape[-1],), 0))
    count = reductions.reduce_sum(ops.convert_element_type(swapped, _INT32), (rank - 1,))
    return _alternating(count, dtype)


def _alternating(exponent: Any, dtype: Any) -> Any:
    """Powers of -1."""
    return ops.convert_element_type(ops.sub(1, ops.mul(ops.and_p.bind(exponent, 1), 2)), dtype)


def _det_by_factors(x: Any) -> Any:
    factors, pivots, _ = lu(x)
    product = reductions.reduce_prod(_diagonal(factors), (len(x.shape) - 2,))
    return ops.mul(product, _sign_of_pivots(pivots, x.dtype))


def _slogdet_by_factors(x: Any) -> list[Any]:
    factors, pivots, _ = lu(x)
    diagonal, axes = _diagonal(factors), (len(x.shape) - 2,)
    sign = reductions.reduce_prod(ops.sign(diagonal), axes)
    return [
        ops.mul(sign, _sign_of_pivots(pivots, x.dtype)),
        reductions.reduce_sum(ops.log(ops.abs(diagonal)), axes),
    ]


# Determinants ------------------------------------------------------------------------------------------------------


def det(x: Any) -> Any:
    """The determinants of square matrices."""
    return det_p.bind(x)


det_p = Primitive("det", keeps_weak_type=False)
det_p.host_rule = np.linalg.det
det_p.lowering(lambda hlo, x: hlo.inline(_det_by_factors, x))


@det_p.abstract_eval
def _det_shape(x: ShapedArray) -> ShapedArray:
    check_square("det", x)
    check_decomposable("det", x)
    return ShapedArray(x.shape[:-2], x.dtype)


@det_p.jvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return det(x), _sum_of_products(_cofactors(x), t) if x.shape[-1] else ZERO


def _sum_of_products(x: Any, y: Any) -> Any:
    rank = len(x.shape)
    return reductions.reduce_sum(ops.mul(x, y), (rank - 2, rank - 1))


@det_p.batch
def _det_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    return det(shapes.moveaxis(args[0], dims[0], 0)), 0


# Cofactors, of which the determinant's derivative is made ----------------------------------------------------------


def _cofactors(x: Any) -> Any:
    """The derivatives of the determinants with respect to each element."""
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
    return _cofactors_by_factors(x)


def _rolled(x: Any, rows: int, columns: int) -> Any:
    """The matrices with their first rows and columns moved behind the last ones."""
    rank = len(x.shape)
    for axis, places in ((rank - 2, rows), (rank - 1, columns)):
        x = concatenate(
            [slice_in_dim(x, places, x.shape[axis], axis), slice_in_dim(x, 0, places, axis)],
            axis,
        )
    return x


def _cofactors_by_factors(x: Any) -> Any:
    # U is D V, where D is the identity but for its last element, the last pivot u, and V has a one in the place of u.
    # The adjugate is that of V, which is (product of all pivots but u) inv(V), times that of D, which is u times the
    # identity but for its last element, one. Nothing is divided by u. So of singular matrices the cofactors are exact
    # if it is the last pivot that vanishes; and it is when the column with the smallest pivot is put last. If another
    # one vanishes too, the rank is less than n - 1, and they are zero; there the second derivatives, which may be
    # others, are not found.
    rank, n = len(x.shape), x.shape[-1]
    order, sign_of_order = _smallest_pivot_last(x)
    columns = shapes.expand_dims(order, (-2,))
    factors, pivots, permutation = lu(take_along_axis(x, columns, rank - 1, unique=True))
    diagonal = _diagonal(factors)
    last = shapes.expand_dims(slice_in_dim(diagonal, n - 1, n, rank - 2), (-1,))
    others = reductions.reduce_prod(slice_in_dim(diagonal, 0, n - 1, rank - 2), (rank - 2,))
    others = ops.mul(others, ops.mul(_sign_of_pivots(pivots, x.dtype), sign_of_order))
    others = shapes.expand_dims(others, (-1, -2))

    row = iota(_INT32, (n, 1), 0)
    places = ops.eq_p.bind(shapes.expand_dims(permutation, (-1,)), iota(_INT32, (1, n), 1))
    permuted = ops.convert_element_type(places, x.dtype)
    inner = triangular_solve(factors, permuted, left_side=True, lower=True, unit_diagonal=True)
    inner = ops.mul(inner, ops.where(ops.eq_p.bind(row, n - 1), 1, last))
    vanishes = ops.and_p.bind(ops.eq_p.bind(rows_minus_columns(n, n), 0), ops.eq_p.bind(factors, 0))
    divisors = ops.where(ops.or_p.bind(vanishes, last_diagonal(n)), 1, factors)
    inner = triangular_solve(divisors, inner, left_side=True, lower=False)
    none = ops.eq_p.bind(others, 0)
    adjugate = ops.where(none, _zero_without_derivative(x, none), ops.mul(inner, others))
    columns = shapes.expand_dims(order, (-1,))
    return matrix_transpose(add_along_axis(adjugate, columns, rank - 2, n, unique=True))


def _zero_without_derivative(x: Any, where: Any) -> Any:
    """Zeros where the condition holds, whose derivatives with respect to all of ``x`` are not finite."""
    rank = len(x.shape)
    total = shapes.expand_dims(reductions.reduce_sum(x, (rank - 2, rank - 1)), (-1, -2))
    zero = ops.sub(total, ops.stop_gradient_p.bind(total))
    return ops.sqrt(ops.add(zero, ops.where(where, shapes.full((), 0, x.dtype), 1)))


def _smallest_pivot_last(x: Any) -> tuple[Any, Any]:
    """An order of the columns in which the one with the smallest pivot is the last one, and the order's sign."""
    rank, n = len(x.shape), x.shape[-1]
    factors, _, _ = lu(ops.stop_gradient_p.bind(x))
    smallest = reductions.argmin(ops.abs(_diagonal(factors)), rank - 2, _INT32)
    sign = _alternating(ops.sub(n - 1, smallest), x.dtype)
    place, smallest = iota(_INT32, (n,), 0), shapes.expand_dims(smallest, (-1,))
    passed = ops.convert_element_type(ops.ge_p.bind(place, smallest), _INT32)
    return ops.where(ops.eq_p.bind(place, n - 1), smallest, ops.add(place, passed)), sign


# Logarithms of determinants ----------------------------------------------------------------------------------------


def slogdet(x: Any) -> list[Any]:
    """The signs of the determinants of square matrices, and the logarithms of their sizes."""
    out: list[Any] = slogdet_p.bind(x)
    return out


slogdet_p = Primitive("slogdet", multiple_results=True, keeps_weak_type=False)
slogdet_p.lowering(lambda hlo, x: hlo.inline(_slogdet_by_factors, x))


@slogdet_p.host
def _slogdet_host(x: Any) -> list[Any]:
    sign, logarithm = np.linalg.slogdet(x)
    unknown = np.isnan(logarithm)
    return [np.where(unknown, x.dtype.type(not_a_number(x.dtype)), sign)[()] if unknown.any() else sign, logarithm]


@slogdet_p.abstract_eval
def _slogdet_shape(x: ShapedArray) -> list[ShapedArray]:
    check_square("slogdet", x)
    check_decomposable("slogdet", x)
    return [ShapedArray(x.shape[:-2], x.dtype), ShapedArray(x.shape[:-2], dtypes.to_real(x.dtype))]


@slogdet_p.jvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    # d log det A = tr(inv(A) dA), whose imaginary part is how far the determinant turns around zero.
    (x,), (t,) = primals, tangents
    out = sign, _ = slogdet(x)
    change = _sum_of_products(matrix_transpose(inverse(x)), t)
    if not dtypes.is_complex(x.dtype):
        return out, [ZERO, change]
    turned = ops.convert_element_type(ops.imag(change), x.dtype)
    return out, [ops.mul(turned, ops.mul(sign, 1j)), ops.real(change)]


@slogdet_p.batch
def _slogdet_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    return slogdet(shapes.moveaxis(args[0], dims[0], 0)), [0, 0]
