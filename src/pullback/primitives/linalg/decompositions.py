"""Helpers that decompositions of matrices share: for matrices that are not finite, and for equal eigenvalues.

Where a decomposition is not unique, its derivative is not unique either: the eigenvectors of a double eigenvalue are
any two that span a plane. The rules then replace quotients of derivatives by differences of eigenvalues by zero:
vectors do not turn within their plane. That is right for every function that does not depend on the choice of the
vectors. ``docs/decompositions.md`` proves it, and lists the functions of vectors that have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.config import config
from pullback.core.elsewhere import is_here
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearTracer
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_decomposable,
    compiled_routine,
    not_a_number,
    product,
    rows_minus_columns,
    triangle_weights,
)
from pullback.primitives.rules import jvp_linear_in

INT32 = np.dtype(np.int32)
Results = Sequence[tuple[Shape, np.dtype[Any]]]


def check_matrices(name: str, x: ShapedArray) -> None:
    """Raise unless ``x`` holds matrices, in a dtype that LAPACK has routines for."""
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices in the last two axes of an array, got shape {x.shape}")
    check_decomposable(name, x)


# On the host -------------------------------------------------------------------------------------------------------


def decomposed(routine: Callable[[Any], Sequence[Any]], x: Any) -> list[Any]:
    """Apply a routine to a batch of matrices; return NaN for each matrix that is not finite, or for which it fails.

    Args:
      routine: takes matrices (..., m, n), and returns arrays with the same leading axes. It raises ``LinAlgError`` if
        it fails for one of them, since its iteration does not converge.
      x: the matrices.

    Returns:
      The results of the routine. Instead of NaN, a result of integers has the values for a matrix of zeros.
    """
    finite = np.isfinite(x)
    if finite.all():
        with suppress(np.linalg.LinAlgError):
            return list(routine(x))
    good = finite.all((-2, -1))
    outs = list(routine(np.zeros_like(x)))
    for i in np.ndindex(good.shape):
        one: Any = None
        if good[i]:
            with suppress(np.linalg.LinAlgError):
                one = routine(x[i])
        for k, out in enumerate(outs):
            if x.ndim == 2:
                outs[k] = (out if out.dtype.kind in "iu" else _unknown(out)) if one is None else one[k]
            elif one is not None:
                out[i] = one[k]
            elif out.dtype.kind not in "iu":
                out[i] = not_a_number(out.dtype)
    return outs


def _unknown(x: Any) -> Any:
    return np.full_like(x, not_a_number(x.dtype))


def one_by_one(routine: Callable[..., Sequence[Any]], results: Results, *operands: Any) -> list[Any]:
    """Apply a routine for one matrix to each matrix of a batch; return an array for each result.

    Args:
      routine: takes an example of each operand, and returns an array for each result.
      results: the shape and dtype of each result.
      operands: arrays with the same leading axes; the first operand holds matrices.
    """
    batch = operands[0].shape[:-2]
    if not batch:
        return [np.asarray(out, dtype) for out, (_, dtype) in zip(routine(*operands), results, strict=True)]
    outs = [np.empty(shape, dtype) for shape, dtype in results]
    for i in np.ndindex(batch):
        for out, value in zip(outs, routine(*[x[i] for x in operands]), strict=True):
            out[i] = value
    return outs


def is_differentiated_now(t: Any, *known: Any) -> bool:
    """Whether NumPy computes a derivative as it is asked for, of real arrays: then it may be one operation.

    Args:
      t: the tangent, or the input of a linear program.
      *known: the arrays by which it is multiplied.
    """
    if not state.trace.quick or config.masked_zeros or not (is_here(t) or type(t) is LinearTracer):
        return False
    return t.aval.dtype.char in "fd" and all(map(is_here, known))


# In programs -------------------------------------------------------------------------------------------------------


def compiled_decomposition(
    hlo: Any, name: str, x: Any, results: Results, aliases: Mapping[int, int] | None = None, by_columns: bool = True,
    **options: str | int,
) -> list[Any]:  # fmt: skip
    """Emit a call of a routine for the matrices ``x``.

    All results are NaN for matrices that are not finite, or for which the routine reports failure.

    Args:
      hlo: the builder.
      name: the name of a routine of LAPACK, or of one of a GPU's libraries, such as ``{solver}_syevd_ffi``.
      x: the matrices.
      results: the shape and dtype of each result.
      aliases: the results of a GPU's routine that reuse the memory of ``x``, see :func:`gpu_routine`.
      by_columns: whether arrays with as many axes as ``x`` hold matrices by columns.
      **options: the options of the routine.
    """
    batch = x.shape[:-2]
    finite = hlo.inline(_all_finite, x)
    safe = hlo.select(hlo.broadcast_in_dim(finite, x.shape, range(len(batch))), x, hlo.splat(0, x.shape, x.dtype))
    wanted = [*results, (batch, INT32)]
    if device_routines.is_gpu(hlo):
        *outs, failed = device_routines.gpu_routine(
            hlo, name, [safe], wanted, aliases, batch=len(batch), by_columns=by_columns, **options
        )
    else:
        *outs, failed = compiled_routine(hlo, name, [safe], wanted, by_columns=by_columns, **options)
    worked = hlo.compare(failed, hlo.splat(0, batch, INT32), "EQ")
    worked = hlo.elementwise("stablehlo.and", finite, worked)
    return [
        hlo.select(
            hlo.broadcast_in_dim(worked, out.shape, range(len(batch))),
            out,
            hlo.splat(out.dtype.type(not_a_number(out.dtype)), out.shape, out.dtype),
        )
        if dtypes.is_inexact(out.dtype) and out.shape[: len(batch)] == batch  # not for what was not asked for
        else out
        for out in outs
    ]


def _all_finite(x: Any) -> Any:
    rank = len(x.shape)
    return reductions.reduce_and(ops.is_finite_p.bind(ops.abs(x)), (rank - 2, rank - 1))


# Blocks of matrices -------------------------------------------------------------------------------------------------


def upper_left(x: Any, rows: int, columns: int) -> Any:
    """The upper left block of matrices, of ``rows`` by ``columns``."""
    rank = len(x.shape)
    if rows < x.shape[-2]:
        x = slice_in_dim(x, 0, rows, rank - 2)
    return slice_in_dim(x, 0, columns, rank - 1) if columns < x.shape[-1] else x


def columns_from(x: Any, start: int) -> Any:
    """The columns of matrices from column ``start`` on."""
    return slice_in_dim(x, start, x.shape[-1], len(x.shape) - 1)


def on_diagonal(n: int) -> Any:
    """A mask of the diagonal of an n by n matrix."""
    return ops.eq_p.bind(rows_minus_columns(n, n), 0)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    return reductions.reduce_sum(ops.where(on_diagonal(x.shape[-1]), x, 0), (len(x.shape) - 1,))


def real_column_products(x: Any, y: Any) -> Any:
    """The real parts of the inner products of each column of ``x``, conjugated, with the same column of ``y``."""
    return ops.real_part(reductions.reduce_sum(ops.mul(ops.conj(x), y), (len(x.shape) - 2,)))


def join_columns(xs: Sequence[Any]) -> Any:
    """Concatenate matrices side by side."""
    return concatenate(list(xs), len(xs[0].shape) - 1) if len(xs) > 1 else xs[0]


def scaled(x: Any, by: Any) -> Any:
    """Multiply ``x``, complex or real, by the real factors ``by``."""
    return ops.mul(x, ops.convert_element_type(by, x.dtype) if dtypes.is_complex(x.dtype) else by)


def column_scaled(x: Any, by: Any) -> Any:
    """Multiply column i of each of the matrices ``x`` by the real number ``by[..., i]``."""
    return scaled(x, shapes.expand_dims(by, (-2,)))


def hermitian_of_lower(x: Any) -> Any:
    """Return the Hermitian matrices with the lower triangles of ``x``, and the real parts of the diagonals of ``x``."""
    lower = scaled(x, triangle_weights(x))
    return ops.add_any_p.bind(lower, adjoint(lower))


def skew_part_twice(x: Any) -> Any:
    """The matrices minus their adjoints, twice the skew-Hermitian part."""
    return ops.add_any_p.bind(x, ops.neg(adjoint(x)))


def hermitian_part_twice(x: Any) -> Any:
    """The matrices plus their adjoints, twice the Hermitian part."""
    return ops.add_any_p.bind(x, adjoint(x))


def without(t: Any, q: Any) -> Any:
    """Return the columns of ``t``, minus their projections to the space of the orthonormal columns of ``q``."""
    return ops.add_any_p.bind(t, ops.neg(product(q, product(adjoint(q), t))))


def completed(q: Any, t: Any, rest: Any) -> Any:
    """Return the tangents of all columns of a unitary matrix, from the tangents of its first columns.

    Args:
      q: the first columns.
      t: the tangents of the first columns.
      rest: the other columns; they stay orthogonal to the first columns, and do not rotate among themselves.
    """
    if rest.shape[-1] == 0:
        return t
    return join_columns([t, ops.neg(product(q, product(adjoint(t), rest)))])


# Undetermined elements --------------------------------------------------------------------------------------------


def undetermined_where(where: Any, values: Any, x: Any) -> list[Any]:
    """Return ``values`` and ``x``, with NaN for the elements of ``x`` that a decomposition does not determine.

    The tangent of eigenvectors is a matrix of rotation angles, one for each pair of vectors. For two vectors of a
    multiple eigenvalue the angle is arbitrary.

    Args:
      where: a mask of the undetermined angles; ``x`` is zero there.
      values: the tangents of the eigenvalues.
      x: the angles, in matrices.

    Returns:
      ``values``, and ``x`` with NaN where the mask is true. In reverse mode the cotangents of these angles become 0 if
      only the vectors are used: a smooth function of the vectors then depends only on the spaces that they span. The
      cotangents are NaN if the eigenvalues of these vectors are used too.
    """
    out: list[Any] = undetermined_p.bind(where, values, x)
    return out


undetermined_p = Primitive("undetermined", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
undetermined_p.jvp_rule = jvp_linear_in(undetermined_p, 1, 2)
works_on_last(undetermined_p, 2, 1, 2)


@undetermined_p.decomposition
def _undetermined(where: Any, values: Any, x: Any) -> list[Any]:
    return [values, ops.where(where, not_a_number(x.dtype), x)]


@undetermined_p.host
def _undetermined_host(where: Any, values: Any, x: Any) -> list[Any]:
    return [values, np.where(where, x.dtype.type(not_a_number(x.dtype)), x) if where.any() else x]


@undetermined_p.abstract_eval
def _undetermined_abstract_eval(where: ShapedArray, values: ShapedArray, x: ShapedArray) -> list[ShapedArray]:
    if where.shape != x.shape:
        raise ShapeError(f"undetermined takes a condition of the shape of x, {x.shape}, got {where.shape}")
    return [ShapedArray(values.shape, values.dtype), ShapedArray(x.shape, x.dtype)]


@partial(undetermined_p.transpose, linear_in=(1, 2))
def _undetermined_transpose(cts: Any, where: Any, values: Any, x: Any) -> Any:
    by_values, by_x = cts
    if by_x is not ZERO:
        lost: Any = 0
        if by_values is not ZERO:
            lost = ops.where(_uses(where, by_values, by_x), shapes.full((), not_a_number(by_x.dtype), by_x.dtype), 0)
        by_x = ops.where(where, lost, by_x)
    return None, by_values, by_x


def _uses(where: Any, by_values: Any, by_x: Any) -> Any:
    """Return, for each matrix, whether a gradient depends on vectors or values of a repeated eigenvalue.

    The tangent of eigenvectors is a matrix of rotation angles, one for each pair of vectors. Angles between vectors of
    a repeated eigenvalue are undetermined.

    Args:
      where: a mask of the undetermined angles (..., n, n).
      by_values: the cotangents of the eigenvalues (..., n).
      by_x: the cotangents of the angles.

    Returns:
      Booleans (..., 1, 1): whether the cotangent of an undetermined angle is nonzero, or the cotangent of an eigenvalue
      whose column of ``where`` has an undetermined angle.
    """
    rank = len(where.shape)
    of_column = reductions.reduce_or(where, (rank - 2,))
    by_value = reductions.reduce_or(ops.and_p.bind(of_column, ops.ne_p.bind(by_values, 0)), (rank - 2,))
    by_turn = reductions.reduce_or(ops.and_p.bind(where, ops.ne_p.bind(by_x, 0)), (rank - 2, rank - 1))
    return shapes.expand_dims(ops.or_p.bind(by_value, by_turn), (-1, -2))


# Equal values ------------------------------------------------------------------------------------------------------


def rounding(values: Any, size: int) -> Any:
    """Return a bound on the rounding error of the eigenvalues or singular values of matrices.

    The bound is proportional to the largest absolute value along the last axis, and has size one on that axis.

    Args:
      values: the eigenvalues or singular values.
      size: the number of rows or columns of the matrices.
    """
    values = ops.abs(ops.stop_gradient_p.bind(values))
    largest = reductions.reduce_max(values, (len(values.shape) - 1,))
    return shapes.expand_dims(ops.mul(largest, 4 * size * float(np.finfo(dtypes.to_real(values.dtype)).eps)), (-1,))


def equal_pairs(values: Any, size: int) -> Any:
    """Return a mask (..., n, n) of the pairs (i, j) for which values i and j are equal up to rounding.

    Chains of neighbours count as equal: if values 1 and 2 are equal, and values 2 and 3, then 1 and 3 are too.

    Args:
      values: sorted values (..., n), such as eigenvalues.
      size: the number of rows or columns of the matrices.
    """
    values = ops.stop_gradient_p.bind(values)
    last, n = len(values.shape) - 1, values.shape[-1]
    gaps = ops.abs(ops.sub(slice_in_dim(values, 1, n, last), slice_in_dim(values, 0, n - 1, last)))
    differs = ops.convert_element_type(ops.gt_p.bind(gaps, rounding(values, size)), INT32)
    first = shapes.full((*values.shape[:-1], 1), 0, INT32)
    group = reductions.cumsum(concatenate([first, differs], last), last)
    return ops.eq_p.bind(shapes.expand_dims(group, (-1,)), shapes.expand_dims(group, (-2,)))


def pairs_of_equals(values: Any, size: int) -> Any:
    """Return a mask (..., n, n) of the pairs i != j for which values i and j are equal up to rounding.

    ``values`` holds sorted values (..., n) of matrices, and ``size`` is the number of rows or columns of the matrices.
    """
    n = values.shape[-1]
    return ops.and_p.bind(equal_pairs(values, size), ops.ne_p.bind(rows_minus_columns(n, n), 0))


def unknown_of_equals(values: Any, size: int, t: Any) -> Any:
    """Replace the tangents ``t`` of sorted values by NaN where a value equals another value, up to rounding.

    ``size`` is the number of rows or columns of the matrices that have these eigenvalues or singular values.
    """
    among = reductions.reduce_or(pairs_of_equals(values, size), (len(values.shape),))
    return ops.where(among, float("nan"), t)


def differences(values: Any) -> Any:
    """Return the matrix with the elements ``values[j] - values[i]``, for row i and column j."""
    return ops.sub(shapes.expand_dims(values, (-2,)), shapes.expand_dims(values, (-1,)))


def inverse_where(which: Any, x: Any) -> Any:
    """The reciprocals of ``x`` where ``which`` is true, and zero where it is not."""
    return ops.where(which, ops.div(1, ops.where(which, x, 1)), 0)


def inverse_differences(values: Any, size: int) -> Any:
    """Return ``1 / (values[j] - values[i])`` for each pair (i, j), and zero where the two are equal up to rounding.

    ``values`` holds sorted values (..., n) of matrices, and ``size`` is the number of rows or columns of the matrices.
    """
    different = ops.not_p.bind(equal_pairs(values, size))
    return inverse_where(different, differences(values))


def inverse_sums(values: Any, size: int) -> Any:
    """Return ``1 / (values[i] + values[j])`` for each pair (i, j), and zero where the sum is zero up to rounding.

    ``values`` holds nonnegative values of matrices, and ``size`` is the number of rows or columns of the matrices.
    """
    sums = ops.add(shapes.expand_dims(values, (-2,)), shapes.expand_dims(values, (-1,)))
    positive = ops.gt_p.bind(ops.stop_gradient_p.bind(sums), shapes.expand_dims(rounding(values, size), (-1,)))
    return inverse_where(positive, sums)


def inverse_values(values: Any, size: int) -> Any:
    """Return the reciprocals of nonnegative values, and zero where a value is zero up to rounding.

    ``size`` is the number of rows or columns of the matrices that have these values.
    """
    return inverse_where(ops.gt_p.bind(ops.stop_gradient_p.bind(values), rounding(values, size)), values)
