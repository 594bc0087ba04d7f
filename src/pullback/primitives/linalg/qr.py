"""The QR decomposition, and its Householder reflections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pullback.backends.host import alone, batches, blas
from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, Shape, ShapedArray
from pullback.core.zeros import instantiate
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import pad, slice_in_dim
from pullback.primitives.arrays.sorting import take_along_axis
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import (
    INT32,
    Results,
    check_matrices,
    columns_from,
    completed,
    is_differentiated_now,
    join_columns,
    on_diagonal,
    one_by_one,
    skew_part_twice,
    upper_left,
)
from pullback.primitives.linalg.determinants import det
from pullback.primitives.linalg.householder import compiled_product, reflected
from pullback.primitives.linalg.lapack import (
    BLOCK,
    adjoint,
    compiled_routine,
    host_routine,
    product,
    rows_minus_columns,
    triangular_solve,
    triangular_solve_p,
)
from pullback.primitives.linalg.lu import identity, inverse, last_diagonal
from pullback.primitives.rules import jvp_linear_in


def qr(x: Any, *, full_matrices: bool = False, pivoting: bool = False) -> list[Any]:
    """Return Q and R with Q R = ``x``; with ``pivoting`` also an order of columns, and Q R = ``x[..., order]``."""
    out: list[Any] = qr_p.bind(x, full_matrices=full_matrices, pivoting=pivoting)
    return out


# Results: matrices Q with orthonormal columns, and upper triangular (or trapezoidal) R with a real diagonal. With
# ``pivoting`` the third result is a permutation of the columns of x after which the diagonal of R does not increase.
qr_p = Primitive("qr", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(qr_p, 2)


def _results(shape: Shape, dtype: np.dtype[Any], full_matrices: bool, pivoting: bool) -> Results:
    *batch, m, n = shape
    k = m if full_matrices else min(m, n)
    found: Results = [((*batch, m, k), dtype), ((*batch, k, n), dtype)]
    return [*found, ((*batch, n), INT32)] if pivoting else found


@qr_p.host
def _qr_host(x: Any, *, full_matrices: bool, pivoting: bool) -> list[Any]:
    results = _results(x.shape, x.dtype, full_matrices, pivoting)
    if x.size == 0:
        outs = [np.zeros(shape, dtype) for shape, dtype in results]
        outs[0][...] = np.eye(*outs[0].shape[-2:], dtype=x.dtype)
        if pivoting:
            outs[2][...] = np.arange(x.shape[-1])
        return outs
    if pivoting:
        return one_by_one(lambda a: _pivoted(a, full_matrices), results, x)
    k, n = results[0][0][-1], x.shape[-1]
    found = batches.qr(x, k) if x.ndim > 2 else None
    if found is not None:
        return found
    if x.ndim > 2 or k > n:
        return list(np.linalg.qr(x, "complete" if full_matrices else "reduced"))
    with suppress(np.linalg.LinAlgError):  # of NaNs
        found = alone.qr(x, k)
        if found is not None:
            return found
    # SciPy's routine takes half the time of NumPy's for 64 by 64, which computes in double precision.
    factors, taus, *_ = host_routine("lapack", "geqrf", x.dtype)(x, lwork=BLOCK * n)
    name = "ungqr" if dtypes.is_complex(x.dtype) else "orgqr"
    r = np.triu(factors[:k])
    q, *_ = host_routine("lapack", name, x.dtype)(factors[:, :k], taus, lwork=BLOCK * k, overwrite_a=True)
    return [q, r]


def _pivoted(x: Any, full_matrices: bool) -> list[Any]:
    m, n = x.shape
    factors, order, tau, *_ = host_routine("lapack", "geqp3", x.dtype)(x, lwork=(2 + BLOCK) * (n + 1))
    k = m if full_matrices else min(m, n)
    q = np.zeros((m, k), x.dtype)
    q[:, : min(n, k)] = factors[:, : min(n, k)]
    name = "ungqr" if dtypes.is_complex(x.dtype) else "orgqr"
    q, *_ = host_routine("lapack", name, x.dtype)(q, tau, lwork=BLOCK * k)
    return [q, np.triu(factors)[:k], order - 1]


@qr_p.abstract_eval
def _qr_abstract_eval(x: ShapedArray, *, full_matrices: bool, pivoting: bool) -> list[ShapedArray]:
    check_matrices("qr", x)
    return [ShapedArray(*result) for result in _results(x.shape, x.dtype, full_matrices, pivoting)]


@qr_p.jvp
def _qr_jvp(primals: Any, tangents: Any, *, full_matrices: bool, pivoting: bool) -> Any:
    # Q* dA inv(R) is the sum of Q* dQ, which is skew, and of dR inv(R), which is upper triangular with a real diagonal.
    # So its lower triangle determines Q* dQ. For a wide matrix the left square determines Q. Seeger et al. 2017
    # (arXiv:1710.08717); Walter and Lehmann 2010, "Algorithmic differentiation of linear algebra functions".
    (x,), (t,) = primals, tangents
    q, r, *order = out = qr(x, full_matrices=full_matrices, pivoting=pivoting)
    if 0 in x.shape:
        return out, [ZERO] * len(out)
    m, n = x.shape[-2:]
    k = min(m, n)
    if pivoting:
        t = take_along_axis(t, shapes.expand_dims(order[0], (-2,)), len(x.shape) - 1, unique=True)
    elif _is_one_eager_matrix(q, r, t):
        return out, qr_differential_p.bind(q, r, t)
    q_tangent, r_tangent = _differential(q, r, t)
    if full_matrices and m > k:
        q_tangent = _completed(upper_left(q, m, k), q_tangent, columns_from(q, k))
        r_tangent = _padded(r_tangent, m - k)
    return out, [q_tangent, r_tangent, *[ZERO] * len(order)]


def _differential(q: Any, r: Any, t: Any) -> list[Any]:
    """Return the tangents of the first columns of Q, as many as R has on its diagonal, and of the first rows of R.

    Args:
      q, r: the decomposition of the matrices.
      t: the tangents of the matrices (..., m, n).
    """
    m, n = t.shape[-2:]
    k = min(m, n)
    first, square = upper_left(q, m, k), upper_left(r, k, k)
    if m <= n:  # the last pivot does not divide below the diagonal: where it alone is zero, dQ is finite
        fixed = ops.stop_gradient_p.bind(square)
        square = ops.where(ops.and_p.bind(last_diagonal(k), ops.eq_p.bind(fixed, 0)), 1, square)
    along = product(adjoint(first), t)
    inner = triangular_solve(square, upper_left(along, k, k), left_side=False, lower=False)
    turn = skew_part_twice(ops.where(ops.gt_p.bind(rows_minus_columns(k, k), 0), inner, 0))
    if dtypes.is_complex(t.dtype):
        phases = ops.mul(ops.convert_element_type(ops.imag(inner), t.dtype), 1j)
        turn = ops.add_any_p.bind(turn, ops.where(on_diagonal(k), phases, 0))
    q_tangent = product(first, turn)
    if m > k:
        outside = ops.add_any_p.bind(t, ops.neg(product(first, along)))
        outside = triangular_solve(square, outside, left_side=False, lower=False)
        q_tangent = ops.add_any_p.bind(q_tangent, outside)
    upper = ops.le_p.bind(rows_minus_columns(k, n), 0)
    r_tangent = ops.add_any_p.bind(along, ops.neg(product(turn, upper_left(r, k, n))))
    return [q_tangent, ops.where(upper, r_tangent, 0)]


# The derivative of one eager matrix -------------------------------------------------------------------------------

# The transpose takes cotangents U of Q and V of R; elements of V below the diagonal do not count. Let L be the part
# below the diagonal of M - M*, with M = Q* U - V R*. The cotangent of the matrix is Q (V + L inv(R*)), plus
# (I - Q Q*) U inv(R*) if the matrix has more rows than columns.


def _is_one_eager_matrix(q: Any, r: Any, t: Any) -> bool:
    """Whether a derivative of one real matrix, not wide, is computed now by NumPy, and so in one operation."""
    return len(t.shape) == 2 and q.shape == t.shape and is_differentiated_now(t, q, r)


qr_differential_p = Primitive("qr_differential", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
qr_differential_p.decomposition(_differential)
qr_differential_p.jvp_rule = jvp_linear_in(qr_differential_p, 2)
works_on_last(qr_differential_p, 2)


@qr_differential_p.host
def _differential_host(q: Any, r: Any, t: Any) -> list[Any]:
    if q.ndim > 2:
        return one_by_one(_differential_host, [(q.shape, q.dtype), (r.shape, r.dtype)], q, r, t)
    along = blas.product(q.T, t)
    below = np.tril(_over(along, r, False), -1)
    turn = below - below.T
    q_tangent = blas.product(q, turn)
    if len(q) > len(r):
        q_tangent += _over(t - blas.product(q, along), r, False)
    return [q_tangent, np.triu(along - blas.product(turn, r))]


def _over(x: Any, r: Any, transpose: bool) -> Any:
    """Return ``x`` inv(S), or ``x`` inv(S*) with ``transpose``, where S is R without a last pivot that is zero."""
    if len(x) == len(r) and r[-1, -1] == 0:
        r = r.copy()
        r[-1, -1] = 1
    found = alone.over_triangle(x, r, transpose)
    if found is not None:
        return found
    solve = triangular_solve_p.host_rule
    assert solve is not None
    return solve(r, x, left_side=False, lower=False, transpose_a=transpose, conjugate_a=False, unit_diagonal=False)


@qr_differential_p.abstract_eval
def _differential_abstract_eval(q: ShapedArray, r: ShapedArray, t: ShapedArray) -> list[ShapedArray]:
    if q.shape != t.shape or r.shape != (*t.shape[:-2], t.shape[-1], t.shape[-1]):
        raise ShapeError(
            f"qr_differential takes Q, R and the tangents of matrices that are not wide, got {q}, {r}, {t}"
        )
    return [ShapedArray(q.shape, q.dtype), ShapedArray(r.shape, r.dtype)]


@partial(qr_differential_p.transpose, linear_in=(2,))
def _differential_transpose(cts: Any, q: Any, r: Any, t: LinearVar) -> Any:
    of_q, of_r = cts
    if of_q is ZERO:
        return None, None, qr_pull_of_r_p.bind(q, r, of_r)
    return None, None, qr_pull_p.bind(q, r, of_q, instantiate(of_r, r))


def _pull(q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    """Return the cotangents of the matrices; ``of_q`` are the cotangents of Q, or None for zeros."""
    k, (m, n) = r.shape[-1], q.shape[-2:]
    square = r
    if m == n:
        last = ops.and_p.bind(last_diagonal(k), ops.eq_p.bind(ops.stop_gradient_p.bind(r), 0))
        square = ops.where(last, 1, r)
    over = partial(triangular_solve, square, left_side=False, lower=False, transpose_a=True, conjugate_a=True)
    upper = ops.where(ops.le_p.bind(rows_minus_columns(k, k), 0), of_r, 0)
    turn = ops.neg(product(upper, adjoint(r)))
    if of_q is not None:
        turn = ops.add_any_p.bind(turn, product(adjoint(q), of_q))
    below = ops.where(ops.gt_p.bind(rows_minus_columns(k, k), 0), skew_part_twice(turn), 0)
    inner = ops.add_any_p.bind(upper, over(below))
    if of_q is None or m == n:
        return product(q, inner)
    outside = over(of_q)
    inner = ops.sub(inner, product(adjoint(q), outside))
    return ops.add_any_p.bind(outside, product(q, inner))


_KEPT = 512
"""Masks of at most so many rows are kept: to make one takes as long as to use it."""


def _below_diagonal(n: int) -> Any:
    """A mask of the elements below the diagonal of an n by n matrix."""
    return _kept_mask(n) if n <= _KEPT else np.tri(n, k=-1, dtype=bool)


@lru_cache(maxsize=8)
def _kept_mask(n: int) -> Any:
    return np.tri(n, k=-1, dtype=bool)


def _pull_host(q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    below = _below_diagonal(len(r))
    upper = np.where(below, of_r.dtype.type(0), of_r)
    turn = blas.product(r, upper.T)  # minus the adjoint of M
    if of_q is not None:
        turn -= blas.product(of_q.T, q)
    inner = _over(np.where(below, turn - turn.T, turn.dtype.type(0)), r, True)
    inner += upper
    if of_q is None or len(q) == len(r):
        return blas.product(q, inner)
    outside = _over(of_q, r, True)
    inner -= blas.product(q.T, outside)
    outside += blas.product(q, inner)
    return outside


def _pull_rules(p: Primitive, pull: Callable[..., Any], host: Callable[..., Any], count: int) -> None:
    """Declare the rules of a transpose of ``qr_differential``, whose last ``count`` operands are cotangents."""
    linear = tuple(range(2, 2 + count))
    p.decomposition(pull)
    p.jvp_rule = jvp_linear_in(p, *linear)
    works_on_last(p, 2)

    @p.host
    def of_all(*operands: Any) -> Any:
        q = operands[0]
        return (
            host(*operands) if q.ndim == 2 else one_by_one(lambda *xs: [host(*xs)], [(q.shape, q.dtype)], *operands)[0]
        )

    @p.abstract_eval
    def result(q: ShapedArray, r: ShapedArray, *cts: ShapedArray) -> ShapedArray:
        if [ct.shape for ct in cts] != [q.shape, r.shape][-count:]:
            raise ShapeError(f"{p.name} takes Q, R, and cotangents of their shapes, got {q}, {r} and {cts}")
        return ShapedArray(q.shape, q.dtype)

    @partial(p.transpose, linear_in=linear)
    def transpose(ct: Any, q: Any, r: Any, *cts: LinearVar) -> Any:
        return None, None, *qr_differential_p.bind(q, r, ct)[-count:]


qr_pull_p = Primitive("qr_pull", keeps_weak_type=False, cost=Cost.MATRIX)
qr_pull_of_r_p = Primitive("qr_pull_of_r", keeps_weak_type=False, cost=Cost.MATRIX)
_pull_rules(qr_pull_p, _pull, _pull_host, 2)
_pull_rules(
    qr_pull_of_r_p, lambda q, r, of_r: _pull(q, r, None, of_r), lambda q, r, of_r: _pull_host(q, r, None, of_r), 1
)


# Square Q -----------------------------------------------------------------------------------------------------------


def _completed(first: Any, tangent: Any, rest: Any) -> Any:
    """Return the tangent of a square Q, a product of reflections, from the tangent of its first columns.

    With Q = I - V T V*, and E1 and E2 the first and last columns of I, the last columns are Q2 = E2 + (Q1 - E1) W*.
    There W = B inv(C), C is the upper square of Q1 - E1, and B holds its lower rows. If a reflection is missing in Q, C
    has the determinant 0 (otherwise at least 1 in modulus), and the signs of columns jump; then the last columns rotate
    as little as possible.

    Args:
      first: the first columns Q1.
      tangent: the tangent of Q1.
      rest: the last columns Q2.
    """
    m, k = first.shape[-2:]
    moved = ops.where(ops.eq_p.bind(rows_minus_columns(m, k), 0), ops.sub(first, 1), first)
    square = upper_left(moved, k, k)
    size = ops.abs(det(ops.stop_gradient_p.bind(square)))
    unreflected = shapes.broadcast_to(shapes.expand_dims(ops.lt_p.bind(size, 0.5), (-2, -1)), square.shape)
    inverted = inverse(ops.where(unreflected, identity(k, first.dtype), square))

    def below(x: Any) -> Any:
        return slice_in_dim(x, k, m, len(x.shape) - 2)

    w = product(below(first), inverted)
    change = ops.sub(below(tangent), product(w, upper_left(tangent, k, k)))
    turned = ops.add_any_p.bind(product(tangent, adjoint(w)), product(moved, adjoint(product(change, inverted))))
    unreflected = shapes.broadcast_to(upper_left(unreflected, 1, 1), turned.shape)
    return join_columns([tangent, ops.where(unreflected, columns_from(completed(first, tangent, rest), k), turned)])


def _padded(x: Any, rows: int) -> Any:
    """Append ``rows`` rows of zeros to matrices."""
    return pad(x, 0, [(0, rows if i == len(x.shape) - 2 else 0, 0) for i in range(len(x.shape))])


@qr_p.lowering
def _qr_lowering(hlo: Any, x: Any, *, full_matrices: bool, pivoting: bool) -> list[Any]:
    *batch, m, n = x.shape
    results = _results(x.shape, x.dtype, full_matrices, pivoting)
    k, size = results[0][0][-1], min(m, n)
    if 0 in x.shape:
        rows, columns = (hlo.iota(results[0][0], len(batch) + i, INT32) for i in (0, 1))
        outs = [hlo.convert(hlo.compare(rows, columns, "EQ"), x.dtype), hlo.splat(0, *results[1])]
        return [*outs, hlo.iota(results[2][0], len(batch), INT32)] if pivoting else outs
    tau: Any = ((*batch, size), x.dtype)
    order: list[Any] = []
    if pivoting:
        free = hlo.splat(0, (*batch, n), INT32)
        factors, pivots, taus = _with_pivots(hlo, x, free, [(x.shape, x.dtype), ((*batch, n), INT32), tau])
        order = [hlo.elementwise("stablehlo.subtract", pivots, hlo.splat(1, (*batch, n), INT32))]
    else:
        factors, taus = reflected(hlo, x, [(x.shape, x.dtype), tau])
    reflections = hlo.inline(lambda x: upper_left(x, m, k), factors) if k <= n else _widened(hlo, factors, k - n)
    q = compiled_product(hlo, reflections, taus)
    r = hlo.inline(lambda x: ops.where(ops.le_p.bind(rows_minus_columns(k, n), 0), upper_left(x, k, n), 0), factors)
    return [q, r, *order]


def _with_pivots(hlo: Any, x: Any, free: Any, results: Results) -> list[Any]:
    """Emit the decomposition with pivots, whose results are those of LAPACK's geqp3; all columns are ``free``."""
    if device_routines.is_gpu(hlo):  # MAGMA on the GPU if it is installed, or LAPACK on the host
        batch = len(x.shape) - 2
        aliases = {0: 0, 1: 1}
        name = "{hybrid}_geqp3"
        return device_routines.gpu_routine(hlo, name, [x, free], results, aliases, batch=batch, magma="auto")
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "qr with pivoting", "geqp3")
    out: list[Any] = compiled_routine(hlo, "geqp3", [x, free], results, by_columns=True)
    return out


def _widened(hlo: Any, x: Any, columns: int) -> Any:
    rank = len(x.shape)
    return hlo.inline(lambda x: pad(x, 0, [(0, columns if i == rank - 1 else 0, 0) for i in range(rank)]), x)
