"""The LU decomposition, and the solution of linear systems by it.

The decomposition permutes the rows: A[permutation] = L U. Pivots are LAPACK's form of the permutation: for i = 0, 1,
..., row i is swapped with row pivots[i].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.hlo.sizes import size_value
from pullback.backends.host import moves
from pullback.core import dtypes
from pullback.core.dims import any_symbolic
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.arrays.sorting import add_along_axis, take_along_axis
from pullback.primitives.axis_maps import mapped_to_front, works_on_last
from pullback.primitives.checks import INTEGER, check_dtype, same_dtype
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import upper_left
from pullback.primitives.linalg.lapack import (
    are_many_small,
    check_decomposable,
    check_square_matrices,
    compiled_routine,
    host_routine,
    product,
    rows_minus_columns,
    solve_for_many,
    triangular_solve,
    triangular_solve_p,
)
from pullback.primitives.masked import masked_solution
from pullback.primitives.power_series import convolution
from pullback.primitives.rules import jvp_zero

_INT32 = np.dtype(np.int32)

# Loops of programs -------------------------------------------------------------------------------------------------


def repeat(hlo: Any, count: int, step: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Emit a loop of ``values = step(i, *values)`` for i from 0 to ``count`` - 1; return the final values."""
    types = [((), _INT32), *((v.shape, v.dtype) for v in values)]
    steps = size_value(hlo, count) if any_symbolic((count,)) else None
    going_on = hlo.region(types, lambda i, *_: [hlo.compare(i, steps or hlo.number(count, _INT32), "LT")])
    body = hlo.region(
        types, lambda i, *xs: [hlo.elementwise("stablehlo.add", i, hlo.number(1, _INT32)), *hlo.inline(step, i, *xs)]
    )
    return hlo.multi_result("stablehlo.while", [hlo.number(0, _INT32), *values], types, "", [going_on, body])[1:]


def element(x: Any, i: Any, axis: int) -> Any:
    """Return the slice of ``x`` at index ``i`` along ``axis``, which keeps the axis, with size one."""
    starts = [i if k == axis else 0 for k in range(len(x.shape))]
    sizes = [1 if k == axis else n for k, n in enumerate(x.shape)]
    return dynamic_slice(x, starts, sizes)


def _swapped(x: Any, i: Any, j: Any, axis: int) -> Any:
    """Swap slice ``i`` and slice ``j`` of ``x`` along ``axis``; return the new array, and its slice ``i``.

    Args:
      x: an array with a leading batch axis.
      i: a scalar index.
      j: indices, one for each element of the batch axis.
      axis: the axis along which ``i`` and ``j`` are indices.
    """
    j = shapes.reshape(j, (x.shape[0], *(1,) * (len(x.shape) - 1)))
    first, other = element(x, i, axis), take_along_axis(x, j, axis, unique=True)
    position = iota(_INT32, tuple(n if k == axis else 1 for k, n in enumerate(x.shape)), axis)
    x = ops.where(ops.eq_p.bind(position, j), first, x)
    return ops.where(ops.eq_p.bind(position, i), other, x), other


# Permutations ------------------------------------------------------------------------------------------------------


def pivots_to_permutation(pivots: Any, size: int) -> Any:
    """Return the order of ``size`` rows after row i was swapped with row ``pivots[i]``, for i = 0, 1, ... in turn."""
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=size)


lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation", keeps_weak_type=False, cost=Cost.SPECIAL)
works_on_last(lu_pivots_to_permutation_p, 1)
lu_pivots_to_permutation_p.jvp_rule = jvp_zero(lu_pivots_to_permutation_p)


@lu_pivots_to_permutation_p.host
def _permutation_host(pivots: Any, *, permutation_size: int) -> Any:
    *batch, count = pivots.shape
    flat = pivots.reshape(math.prod(batch), count)
    if are_many_small(len(flat), count, 1):
        rows, every = np.empty((len(flat), permutation_size), np.int32), np.arange(len(flat))
        rows[...] = np.arange(permutation_size)
        for i in range(count):
            other = (every, flat[:, i])
            rows[:, i], rows[other] = rows[other], rows[:, i].copy()
    elif len(flat) == 1 and count >= _FEW_PIVOTS and flat.min() >= 0 and flat.max() < permutation_size:
        before = np.arange(permutation_size, dtype=np.float64)[:, None]
        rows = host_routine("lapack", "laswp", before.dtype)(before, flat[0], overwrite_a=True).astype(np.int32)
    else:
        rows = np.array([_permutation_of_one(row, permutation_size) for row in flat.tolist()], np.int32)
    return rows.reshape(*batch, permutation_size)


_FEW_PIVOTS = 32  # below which Python exchanges rows as fast as LAPACK is called


def _permutation_of_one(pivots: list[int], size: int) -> list[int]:
    rows = list(range(size))
    for i, j in enumerate(pivots):
        rows[i], rows[j] = rows[j], rows[i]
    return rows


@lu_pivots_to_permutation_p.abstract_eval
def _permutation_abstract_eval(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    check_dtype("lu_pivots_to_permutation", INTEGER, pivots.dtype)
    if pivots.ndim < 1 or pivots.shape[-1] > permutation_size:
        raise ShapeError(
            f"lu_pivots_to_permutation takes arrays of at most permutation_size={permutation_size} pivots along the "
            f"last axis, got shape {pivots.shape}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), _INT32)


@lu_pivots_to_permutation_p.lowering
def _permutation_lowering(hlo: Any, pivots: Any, *, permutation_size: int) -> Any:
    shape = (*pivots.shape[:-1], permutation_size)
    rows = hlo.iota(shape, len(shape) - 1, _INT32)
    if 0 in shape or 0 in pivots.shape:
        return rows

    def step(i: Any, rows: Any, pivots: Any) -> Any:
        return _swapped(rows, i, element(pivots, i, 1), 1)[0], pivots

    if device_routines.is_gpu(hlo):
        name, batch = "{kernel}_lu_pivots_to_permutation", len(shape) - 1
        operands = [hlo.convert(pivots, _INT32)]
        return device_routines.gpu_routine(hlo, name, operands, [(shape, _INT32)], batch=batch, by_columns=False)[0]
    count = math.prod(shape[:-1])
    flat = [hlo.reshape(x, (count, x.shape[-1])) for x in (rows, hlo.convert(pivots, _INT32))]
    return hlo.reshape(repeat(hlo, pivots.shape[-1], step, flat)[0], shape)


# The decomposition -------------------------------------------------------------------------------------------------


def lu(x: Any) -> list[Any]:
    """Return the LU factors of matrices, their pivots, and the permutation of their rows.

    Args:
      x: matrices (..., m, n).

    Returns:
      A matrix of the shape of ``x``, with U in the upper triangle and L below the diagonal (the diagonal of L is one);
      the pivots (..., min(m, n)): row i was swapped with row ``pivots[i]``; and the permutation (..., m). Pivots and
      permutation are int32.
    """
    out: list[Any] = lu_p.bind(x)
    return out


lu_p = Primitive("lu", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(lu_p, 2)


@lu_p.host
def _lu_host(x: Any) -> list[Any]:
    factors, pivots = host_factors(x)
    return [factors, pivots, _permutation_host(pivots, permutation_size=x.shape[-2])]


def host_factors(x: Any) -> tuple[Any, Any]:
    """Return the LU factors of NumPy's matrices, and their pivots."""
    *batch, m, n = x.shape
    routine = host_routine("lapack", "getrf", x.dtype)
    if x.ndim == 2 and x.size:
        factors, pivots, _ = routine(moves.copied(x.T).T, overwrite_a=True)  # SciPy's own copy is slower
        return factors, pivots
    factors, pivots = np.empty(x.shape, x.dtype), np.empty((*batch, min(m, n)), np.int32)
    if x.size:
        flat = [a.reshape(-1, *a.shape[len(batch) :]) for a in (x, factors, pivots)]
        if are_many_small(len(flat[0]), min(m, n), m * n):
            _lu_of_many(*flat)
        else:
            for one, out, swapped in zip(*flat, strict=True):
                out[...], swapped[...], _ = routine(one)
    return factors, pivots


def _lu_of_many(x: Any, factors: Any, pivots: Any) -> None:
    """Decompose many small matrices ``x``, one column of all at a time, and write ``factors`` and ``pivots``."""
    factors[...] = x
    every = np.arange(len(x))
    for i in range(pivots.shape[-1]):
        column = factors[:, i:, i]
        sizes = np.abs(column.real) + np.abs(column.imag) if dtypes.is_complex(x.dtype) else np.abs(column)
        pivots[:, i] = sizes.argmax(1) + i
        other = (every, pivots[:, i])
        row = factors[other]
        factors[other] = factors[:, i]
        factors[:, i] = row
        factors[:, i + 1 :, i] /= np.where(row[:, i] == 0, 1, row[:, i])[:, None]
        factors[:, i + 1 :, i + 1 :] -= factors[:, i + 1 :, i, None] * row[:, None, i + 1 :]


@lu_p.abstract_eval
def _lu_abstract_eval(x: ShapedArray) -> list[ShapedArray]:
    if x.ndim < 2:
        raise ShapeError(f"lu takes matrices in the last two axes of an array, got shape {x.shape}")
    check_decomposable("lu", x)
    *batch, m, n = x.shape
    pivots, permutation = (ShapedArray((*batch, size), _INT32) for size in (min(m, n), m))
    return [ShapedArray(x.shape, x.dtype), pivots, permutation]


@lu_p.jvp
def _lu_jvp(primals: Any, tangents: Any) -> Any:
    # From P A = L U, with square L: P dA = dL U + L dU, so that S = inv(L) dL is the lower triangle of inv(L) P dA
    # inv(U), and inv(L) P dA = S U + dU. After Giles 2008, "An extended collection of matrix derivative results". The
    # last pivot is not needed below the diagonal: where it alone is zero, there is a derivative.
    (x,), (t,) = primals, tangents
    factors, _, permutation = out = lu(x)
    if 0 in x.shape:
        return out, [ZERO] * 3
    m, n = x.shape[-2:]
    size = min(m, n)
    t = permuted(t, permutation)
    square = upper_left(factors, size, size)
    below = ops.gt_p.bind(rows_minus_columns(size, size), 0)
    solved = triangular_solve(square, upper_left(t, size, n), left_side=True, lower=True, unit_diagonal=True)
    without_last = ops.where(last_diagonal(size), 1, square)
    inner = triangular_solve(without_last, upper_left(solved, size, size), left_side=False, lower=False)
    inner = ops.where(below, inner, 0)
    not_below = ops.le_p.bind(rows_minus_columns(size, n), 0)
    upper = ops.where(not_below, upper_left(factors, size, n), 0)
    upper_tangent = ops.where(not_below, ops.add_any_p.bind(solved, ops.neg(product(inner, upper))), 0)
    lower_tangent = ops.add_any_p.bind(inner, product(ops.where(below, square, 0), inner))
    left = ops.add_any_p.bind(lower_tangent, upper_left(upper_tangent, size, size))
    if m > n:
        rest = ops.neg(product(_lower_rows(factors, size), upper_tangent))
        rest = ops.add_any_p.bind(_lower_rows(t, size), rest)
        rest = triangular_solve(square, rest, left_side=False, lower=False)
        factors_tangent = concatenate([left, rest], len(x.shape) - 2)
    elif m < n:
        factors_tangent = concatenate([left, slice_in_dim(upper_tangent, size, n, len(x.shape) - 1)], len(x.shape) - 1)
    else:
        factors_tangent = left
    return out, [factors_tangent, ZERO, ZERO]


def _lower_rows(x: Any, start: int) -> Any:
    return slice_in_dim(x, start, x.shape[-2], len(x.shape) - 2)


def last_diagonal(n: int) -> Any:
    """Return an n by n mask that is true only at the last element of the diagonal."""
    return ops.eq_p.bind(ops.add(iota(_INT32, (n, 1), 0), iota(_INT32, (1, n), 1)), 2 * n - 2)


@lu_p.lowering
def _lu_lowering(hlo: Any, x: Any) -> list[Any]:
    *batch, m, n = x.shape
    pivots = ((*batch, min(m, n)), _INT32)
    if 0 in x.shape:
        return [x, hlo.splat(0, *pivots), hlo.iota((*batch, m), len(batch), _INT32)]
    results = [(x.shape, x.dtype), pivots, (tuple(batch), _INT32)]
    if device_routines.is_gpu(hlo):
        name = "{solver}_getrf_ffi"
        factors, swapped, _ = device_routines.gpu_routine(hlo, name, [x], results, {0: 0}, batch=len(batch))
    elif hlo.module.platform == "tpu":
        results = [*results[:2], ((*batch, m), _INT32)]
        return device_routines.tpu_function(hlo, "LuDecomposition", [x], results, version=2)
    elif hlo.module.platform == "cpu":
        factors, swapped, _ = compiled_routine(hlo, "getrf", [x], results, by_columns=True)
    else:
        return _lu_by_elimination(hlo, x)
    swapped = hlo.elementwise("stablehlo.subtract", swapped, hlo.splat(1, *pivots))  # LAPACK counts from one
    permutation = hlo.inline(partial(pivots_to_permutation, size=m), swapped)
    return [factors, swapped, permutation]


def _lu_by_elimination(hlo: Any, x: Any) -> list[Any]:
    """Emit the LU decomposition of ``x`` as a loop over columns, for platforms without LAPACK."""
    *batch, m, n = x.shape
    size = min(m, n)
    count = math.prod(batch)
    matrices = hlo.reshape(x, (count, m, n))
    rows = hlo.iota((count, m), 1, _INT32)

    def step(i: Any, x: Any, pivots: Any, permutation: Any) -> Any:
        row, column = iota(_INT32, (1, m, 1), 1), iota(_INT32, (1, 1, n), 2)
        sizes = pivot_size(element(x, i, 2))
        candidates = ops.where(ops.ge_p.bind(row, i), sizes, -1)
        pivot = reductions.argmax(shapes.squeeze(candidates, (2,)), 1, _INT32)
        x, pivot_row = _swapped(x, i, pivot, 1)
        permutation, _ = _swapped(permutation, i, pivot, 1)
        pivots = ops.where(ops.eq_p.bind(iota(_INT32, (1, size), 1), i), shapes.expand_dims(pivot, (1,)), pivots)
        divisor = element(pivot_row, i, 2)
        divisor = ops.where(ops.eq_p.bind(divisor, 0), 1, divisor)
        below = ops.gt_p.bind(row, i)
        factor = ops.where(below, ops.div(element(x, i, 2), divisor), 0)
        reduced = ops.sub(x, ops.mul(factor, ops.where(ops.gt_p.bind(column, i), pivot_row, 0)))
        here = ops.eq_p.bind(column, i)
        x = ops.where(below, ops.where(here, factor, reduced), x)
        return x, pivots, permutation

    values = [matrices, hlo.splat(0, (count, size), _INT32), rows]
    factors, pivots, permutation = repeat(hlo, size, step, values)
    return [
        hlo.reshape(factors, x.shape),
        hlo.reshape(pivots, (*batch, size)),
        hlo.reshape(permutation, (*batch, m)),
    ]


def pivot_size(x: Any) -> Any:
    """Return the sizes of numbers by which LAPACK selects a pivot: abs(x), or abs(real) + abs(imag) if complex."""
    return ops.add(ops.abs(ops.real(x)), ops.abs(ops.imag(x))) if dtypes.is_complex(x.dtype) else ops.abs(x)


# Systems of equations ----------------------------------------------------------------------------------------------


def permuted(x: Any, permutation: Any) -> Any:
    """Reorder the rows of matrices: row i of the result is row ``permutation[i]`` of ``x``."""
    return take_along_axis(x, shapes.expand_dims(permutation, (-1,)), len(x.shape) - 2, unique=True)


def unpermuted(x: Any, permutation: Any) -> Any:
    """Reorder the rows of matrices: row ``permutation[i]`` of the result is row i of ``x``."""
    rows = shapes.expand_dims(permutation, (-1,))
    return add_along_axis(x, rows, len(x.shape) - 2, x.shape[-2], unique=True)


def lu_solve(factors: Any, permutation: Any, b: Any, *, transpose: bool = False, conjugate: bool = False) -> Any:
    """Solve op(A) X = B for X, by the LU factors of the matrices A, where op may transpose and conjugate.

    Args:
      factors: the factors of the square matrices A, from :func:`lu`.
      permutation: the permutation of the rows of A, from :func:`lu`.
      b: the matrices B, with the leading axes of ``factors``.
      transpose: whether op transposes.
      conjugate: whether op conjugates.
    """
    solve = partial(triangular_solve, factors, left_side=True, transpose_a=transpose, conjugate_a=conjugate)
    by_lower, by_upper = partial(solve, lower=True, unit_diagonal=True), partial(solve, lower=False)
    if transpose:
        return unpermuted(by_lower(by_upper(b)), permutation)
    return by_upper(by_lower(permuted(b, permutation)))


def linear_solve(a: Any, b: Any) -> Any:
    """Solve A X = B for X, with square matrices A.

    Args:
      a: the matrices A.
      b: the matrices B, with the leading axes of ``a``.
    """
    factors, _, permutation = lu(ops.stop_gradient_p.bind(a))
    return linear_solve_p.bind(a, factors, permutation, b, transpose=False)


def inverse(x: Any) -> Any:
    """The inverses of square matrices."""
    return linear_solve(x, shapes.broadcast_to(identity(x.shape[-1], x.dtype), x.shape))


def identity(n: int, dtype: np.dtype[Any]) -> Any:
    """The n by n identity matrix."""
    return ops.convert_element_type(ops.eq_p.bind(rows_minus_columns(n, n), 0), dtype)


# Operands: the matrices A, their factors and row permutation, and the matrices B. It is differentiated with respect to
# A and B; the derivative with respect to A accounts for the change of the factors.
linear_solve_p = Primitive("linear_solve", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(linear_solve_p, 2, 2, 1, 2)


@linear_solve_p.host
def _linear_solve_host(a: Any, factors: Any, permutation: Any, b: Any, *, transpose: bool) -> Any:
    solve = triangular_solve_p.host_rule
    assert solve is not None
    common = {"left_side": True, "transpose_a": transpose, "conjugate_a": False}
    by_lower = partial(solve, factors, lower=True, unit_diagonal=True, **common)
    by_upper = partial(solve, factors, lower=False, unit_diagonal=False, **common)
    rows = permutation[..., None]
    if not transpose:
        return by_upper(by_lower(b[permutation] if b.ndim == 2 else np.take_along_axis(b, rows, -2)))
    solved = by_lower(by_upper(b))
    out = np.empty_like(solved)
    if b.ndim == 2:
        out[permutation] = solved
    else:
        np.put_along_axis(out, rows, solved, -2)
    return out


@linear_solve_p.abstract_eval
def _linear_solve_abstract_eval(
    a: ShapedArray, factors: ShapedArray, permutation: ShapedArray, b: ShapedArray, *, transpose: bool
) -> ShapedArray:
    check_square_matrices("linear_solve", a)
    same_dtype("linear_solve", [a, factors, b])
    check_dtype("linear_solve with a permutation", INTEGER, permutation.dtype)
    expected: tuple[Shape, Shape, Shape] = (a.shape, a.shape[:-1], a.shape[:-1])
    if (factors.shape, permutation.shape, b.shape[:-1]) != expected:
        raise ShapeError(
            f"linear_solve of matrices of shape {a.shape} takes factors of this shape, a permutation of shape "
            f"{a.shape[:-1]}, and matrices b of shape {(*a.shape[:-1], 'k')}, got shapes {factors.shape}, "
            f"{permutation.shape} and {b.shape}"
        )
    return ShapedArray(b.shape, b.dtype)


@linear_solve_p.jvp
def _linear_solve_jvp(primals: Any, tangents: Any, *, transpose: bool) -> Any:
    # op(A) dX = dB - op(dA) X.
    *factors, b = primals
    ta, _, _, tb = tangents
    x = linear_solve_p.bind(*factors, b, transpose=transpose)
    if ta is not ZERO:
        moved = ops.neg(product(ta, x, -2 if transpose else -1))
        tb = moved if tb is ZERO else ops.add_any_p.bind(tb, moved)
    return x, ZERO if tb is ZERO else linear_solve_p.bind(*factors, tb, transpose=transpose)


@taylor(linear_solve_p)
def _linear_solve_taylor(
    ans: Series, a: Series, factors: Series, permutation: Series, b: Series, *, transpose: bool
) -> Coefficient:
    solve = partial(linear_solve_p.bind, a[0], factors[0], permutation[0], transpose=transpose)

    def coefficient(k: int) -> Any:
        moved = convolution(lambda c, x: product(c, x, -2 if transpose else -1), a, ans, k, first=1)
        rest = ops.difference(b[k], moved)
        return rest if rest is ZERO else solve(rest)

    return coefficient


@partial(linear_solve_p.transpose, linear_in=(3,))
def _linear_solve_transpose(
    ct: Any, a: Any, factors: Any, permutation: Any, b: LinearVar, *, transpose: bool
) -> tuple[Any, ...]:
    return None, None, None, linear_solve_p.bind(a, factors, permutation, ct, transpose=not transpose)


@linear_solve_p.batch
def _linear_solve_batch(axis: MappedAxis, args: Any, dims: Any, **params: bool) -> Any:
    *factors, b = args
    *mapped, dim = dims
    if any(d is not None for d in mapped):
        return linear_solve_p.bind(*mapped_to_front(axis, args, dims), **params), 0
    return solve_for_many(partial(linear_solve_p.bind, *factors, **params), b, dim, columns=True)


@linear_solve_p.lowering
def _linear_solve_lowering(hlo: Any, a: Any, factors: Any, permutation: Any, b: Any, *, transpose: bool) -> Any:
    return hlo.inline(partial(lu_solve, transpose=transpose), factors, permutation, b)


masked_linear_solve_p = masked_solution(linear_solve_p, lambda transpose: True)
