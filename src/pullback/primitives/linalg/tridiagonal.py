"""Tridiagonal linear systems, and rank-one updates of Cholesky factors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.dims import any_symbolic
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import instantiate
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.indexing import dynamic_update_slice
from pullback.primitives.arrays.slicing import concatenate, iota, pad, slice_in_dim
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.checks import same_dtype
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import INT32, hermitian_part_twice, one_by_one
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_decomposable,
    check_square_matrices,
    compiled_routine,
    half_of_hermitian,
    host_routine,
    not_a_number,
    product,
    rows_minus_columns,
    triangle_weights,
    triangular_solve,
)
from pullback.primitives.linalg.lu import element, pivot_size, repeat
from pullback.primitives.masked import masked_solution
from pullback.primitives.power_series import convolution, total

# Tridiagonal systems -----------------------------------------------------------------------------------------------


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Solve A X = B for X, with tridiagonal A.

    Args:
      dl: the diagonal below the main one, (..., n); its first element is not read.
      d: the main diagonal of A, (..., n).
      du: the diagonal above the main one, (..., n); its last element is not read.
      b: the matrices B, (..., n, k).
    """
    return tridiagonal_solve_p.bind(dl, d, du, b)


tridiagonal_solve_p = Primitive("tridiagonal_solve", keeps_weak_type=False, cost=Cost.SPECIAL)
works_on_last(tridiagonal_solve_p, 1, 1, 1, 2)


@tridiagonal_solve_p.host
def _tridiagonal_solve_host(dl: Any, d: Any, du: Any, b: Any) -> Any:
    if b.size == 0:
        return b
    routine = host_routine("lapack", "gtsv", b.dtype)

    def solve(b: Any, dl: Any, d: Any, du: Any) -> Any:
        if len(d) == 1:  # SciPy's wrapper does not accept diagonals of length zero
            return [b / d if d[0] else np.full_like(b, not_a_number(b.dtype))]
        *_, x, failed = routine(dl[1:], d, du[:-1], b)
        return [np.full_like(b, not_a_number(b.dtype)) if failed else x]

    return one_by_one(solve, [(b.shape, b.dtype)], b, dl, d, du)[0]


@tridiagonal_solve_p.abstract_eval
def _tridiagonal_solve_abstract_eval(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray) -> ShapedArray:
    same_dtype("tridiagonal_solve", [dl, d, du, b])
    check_decomposable("tridiagonal_solve", b)
    if not dl.shape == d.shape == du.shape == b.shape[:-1] or b.ndim < 2:
        raise ShapeError(
            "tridiagonal_solve takes three diagonals of one shape (..., n), and matrices b of shape (..., n, k); got "
            f"shapes {dl.shape}, {d.shape}, {du.shape} and {b.shape}"
        )
    return ShapedArray(b.shape, b.dtype)


def _moved(x: Any, offset: int, axis: int) -> Any:
    """Shift the elements of ``x`` along an axis by ``offset`` positions (to the left if negative); fill with zeros."""
    config = [((offset, -offset, 0) if i == axis else (0, 0, 0)) for i in range(len(x.shape))]
    return pad(x, 0, config)


@tridiagonal_solve_p.jvp
def _tridiagonal_solve_jvp(primals: Any, tangents: Any) -> Any:
    # A dX = dB - dA X.
    *diagonals, _ = primals
    *changes, t = tangents
    x = tridiagonal_solve(*primals)
    for change, offset in zip(changes, _OFFSETS, strict=True):
        if change is not ZERO:
            term = ops.neg(_times_diagonal(change, x, offset=offset))
            t = term if t is ZERO else ops.add_any_p.bind(t, term)
    return x, tridiagonal_solve_p.bind(*diagonals, t)


_OFFSETS = 1, 0, -1
"""The offset of each of the three diagonals from the main one: the number of positions to shift rows by."""


def _times_diagonal(diagonal: Any, x: Any, *, offset: int) -> Any:
    return ops.mul(shapes.expand_dims(diagonal, (-1,)), _moved(x, offset, len(x.shape) - 2) if offset else x)


@taylor(tridiagonal_solve_p)
def _tridiagonal_solve_taylor(ans: Series, dl: Series, d: Series, du: Series, b: Series) -> Coefficient:
    def coefficient(k: int) -> Any:
        terms = [
            convolution(partial(_times_diagonal, offset=offset), diagonal, ans, k, first=1)
            for diagonal, offset in zip((dl, d, du), _OFFSETS, strict=True)
        ]
        rest = ops.difference(b[k], total(terms))
        return rest if rest is ZERO else tridiagonal_solve_p.bind(dl[0], d[0], du[0], rest)

    return coefficient


@partial(tridiagonal_solve_p.transpose, linear_in=(3,))
def _tridiagonal_solve_transpose(ct: Any, dl: Any, d: Any, du: Any, b: LinearVar) -> Any:
    last = len(d.shape) - 1
    return None, None, None, tridiagonal_solve(_moved(du, 1, last), d, _moved(dl, -1, last), ct)


masked_tridiagonal_solve_p = masked_solution(tridiagonal_solve_p, lambda **params: True)


@tridiagonal_solve_p.lowering
def _tridiagonal_solve_lowering(hlo: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
    if 0 in b.shape:
        return b
    diagonal, batch = (d.shape, d.dtype), d.shape[:-1]
    platform, n = hlo.module.platform, d.shape[-1]
    if device_routines.is_gpu(hlo) and not any_symbolic((n,)) and n > 2:  # cuSPARSE takes no smaller systems
        name, operands, results = "{sparse}_gtsv2_ffi", [dl, d, du, b], [(b.shape, b.dtype)]
        return device_routines.gpu_routine(hlo, name, operands, results, {3: 0}, batch=len(batch))[0]
    if platform != "cpu":
        return _eliminated(hlo, dl, d, du, b)
    results = [*[diagonal] * 3, (b.shape, b.dtype), (batch, INT32)]
    *_, x, failed = compiled_routine(hlo, "gtsv", [dl, d, du, b], results, by_columns=True)
    worked = hlo.compare(failed, hlo.splat(0, batch, INT32), "EQ")
    worked = hlo.broadcast_in_dim(worked, b.shape, range(len(batch)))
    return hlo.select(worked, x, hlo.splat(b.dtype.type(not_a_number(b.dtype)), b.shape, b.dtype))


def _eliminated(hlo: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Emit the solution by elimination with pivots, as in LAPACK's gtsv, for platforms without such a routine.

    A step chooses the larger of two elements below each other as the pivot, and writes a row of the triangular factor,
    which has two diagonals above the main one. Then the rows are solved from the last to the first.
    """
    *_, n, k = b.shape
    count = math.prod(b.shape[:-2])
    given = [hlo.reshape(x, (count, n, size)) for x, size in ((dl, 1), (d, 1), (du, 1), (b, k))]
    rows, sides = (hlo.splat(0, (count, n, size), b.dtype) for size in (3, k))
    first = hlo.inline(lambda *xs: [element(x, 0, 1) for x in xs], *given[1:])
    head, _, side, rows, sides, *_ = repeat(hlo, n - 1, partial(_eliminate, n), [*first, rows, sides, *given])

    def start(head: Any, side: Any, rows: Any, sides: Any) -> list[Any]:
        row = concatenate([head, ops.mul(head, 0), ops.mul(head, 0)], 2)
        none = ops.mul(side, 0)
        return [none, none, _with_row(rows, row, n - 1), _with_row(sides, side, n - 1)]

    *_, rows, x = repeat(hlo, n, partial(_substitute, n), hlo.inline(start, head, side, rows, sides))

    def checked(rows: Any, x: Any) -> Any:
        pivots = slice_in_dim(rows, 0, 1, 2)
        singular = reductions.reduce_or(ops.eq_p.bind(pivots, 0), (1, 2))
        return ops.where(shapes.expand_dims(singular, (-1, -2)), not_a_number(x.dtype), x)

    return hlo.reshape(hlo.inline(checked, rows, x), b.shape)


def _eliminate(n: int, i: Any, head: Any, beside: Any, side: Any, rows: Any, sides: Any, *given: Any) -> list[Any]:
    """Eliminate an element of row ``i``, (head, beside, 0), or of row ``i + 1``, (below, middle, above)."""
    below, middle, above, other_side = (element(x, ops.add(i, 1), 1) for x in given)
    above = ops.where(ops.lt_p.bind(i, n - 2), above, 0)
    swap = ops.gt_p.bind(pivot_size(below), pivot_size(head))
    pairs = (head, below), (beside, middle), (ops.mul(above, 0), above), (side, other_side)
    pivot, second, third, upper = (ops.where(swap, y, x) for x, y in pairs)
    low, *rest = (ops.where(swap, x, y) for x, y in pairs)
    factor = ops.div(low, ops.where(ops.eq_p.bind(pivot, 0), 1, pivot))
    reduced = [ops.sub(x, ops.mul(factor, y)) for x, y in zip(rest, (second, third, upper), strict=True)]
    row = concatenate([pivot, second, third], 2)
    return [*reduced, _with_row(rows, row, i), _with_row(sides, upper, i), *given]


def _substitute(n: int, step: Any, following: Any, second: Any, rows: Any, sides: Any) -> list[Any]:
    """Solve a row, the last one in step 0, given the two rows of the solution that follow; write it to ``sides``."""
    i = ops.sub(n - 1, step)
    row, side = element(rows, i, 1), element(sides, i, 1)
    pivot, above, far = (slice_in_dim(row, j, j + 1, 2) for j in range(3))
    known = ops.add(ops.mul(above, following), ops.mul(far, second))
    x = ops.div(ops.sub(side, known), pivot)
    return [x, following, rows, _with_row(sides, x, i)]


def _with_row(x: Any, row: Any, i: Any) -> Any:
    """Replace row ``i`` of matrices."""
    return dynamic_update_slice(x, row, (0, i, 0))


# Cholesky factors --------------------------------------------------------------------------------------------------


def cholesky_update(r: Any, w: Any) -> Any:
    """Return the upper triangular Cholesky factors, with a positive diagonal, of the matrices R* R + w w*.

    Args:
      r: upper triangular matrices R (..., n, n).
      w: vectors (..., n).
    """
    return cholesky_update_p.bind(r, w)


cholesky_update_p = Primitive("cholesky_update", keeps_weak_type=False, cost=Cost.SPECIAL)
works_on_last(cholesky_update_p, 2, 1)


@cholesky_update_p.host
def _cholesky_update_host(r: Any, w: Any) -> Any:
    # One rotation for each row, after Golub and Van Loan, "Matrix computations", section 6.5.4.
    r, row = np.triu(r), np.conj(w)
    for i in range(r.shape[-1]):
        first, other = r[..., i, i, None].copy(), row[..., i, None].copy()
        length = np.hypot(np.abs(first), np.abs(other))
        safe = np.where(length == 0, 1, length)
        cosine, sine = np.where(length == 0, 1, first / safe), other / safe
        above = r[..., i, :].copy()
        r[..., i, :] = np.conj(cosine) * above + np.conj(sine) * row
        row = cosine * row - sine * above
    return r


@cholesky_update_p.abstract_eval
def _cholesky_update_abstract_eval(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_square_matrices("cholesky_update", r)
    same_dtype("cholesky_update", [r, w])
    if w.shape != r.shape[:-1]:
        raise ShapeError(
            f"cholesky_update of matrices of shape {r.shape} takes vectors of shape {r.shape[:-1]}, got {w.shape}"
        )
    return ShapedArray(r.shape, r.dtype)


@cholesky_update_p.jvp
def _cholesky_update_jvp(primals: Any, tangents: Any) -> Any:
    # The derivative of the Cholesky factor of the sum (Murray 2016, arXiv:1602.07527).
    (r, w), (tr, tw) = primals, (instantiate(t, x) for t, x in zip(tangents, primals, strict=True))
    out = cholesky_update(r, w)
    n = r.shape[-1]
    upper = ops.le_p.bind(rows_minus_columns(n, n), 0)
    column, row = shapes.expand_dims(tw, (-1,)), ops.conj(shapes.expand_dims(w, (-2,)))
    half = ops.add_any_p.bind(product(adjoint(ops.where(upper, r, 0)), ops.where(upper, tr, 0)), ops.mul(column, row))
    inner = hermitian_part_twice(half)
    conjugate = dtypes.is_complex(r.dtype)
    lower = adjoint(out)
    inner = triangular_solve(lower, inner, left_side=True, lower=True)
    inner = triangular_solve(lower, inner, left_side=False, lower=True, transpose_a=True, conjugate_a=conjugate)
    return out, product(adjoint(half_of_hermitian(inner, triangle_weights(r))), out)


@cholesky_update_p.lowering
def _cholesky_update_lowering(hlo: Any, r: Any, w: Any) -> Any:
    if 0 in r.shape:
        return r
    *batch, n = w.shape
    count = int(np.prod(batch))

    def start(r: Any, w: Any) -> Any:
        upper = ops.le_p.bind(rows_minus_columns(n, n), 0)
        return [shapes.reshape(ops.where(upper, r, 0), (count, n, n)), shapes.reshape(ops.conj(w), (count, 1, n))]

    def step(i: Any, r: Any, row: Any) -> Any:
        above = element(r, i, 1)
        first, other = element(above, i, 2), element(row, i, 2)
        length = ops.hypot_p.bind(ops.abs(first), ops.abs(other))
        none = ops.eq_p.bind(length, 0)
        safe = ops.convert_element_type(ops.where(none, 1, length), r.dtype)
        cosine, sine = ops.where(none, 1, ops.div(first, safe)), ops.div(other, safe)
        new = ops.add(ops.mul(ops.conj(cosine), above), ops.mul(ops.conj(sine), row))
        is_row = ops.eq_p.bind(iota(INT32, (1, n, 1), 1), i)
        return ops.where(is_row, new, r), ops.sub(ops.mul(cosine, row), ops.mul(sine, above))

    return hlo.reshape(repeat(hlo, n, step, hlo.inline(start, r, w))[0], r.shape)
