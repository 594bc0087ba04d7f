"""The singular value decomposition, the pseudo-inverse, and the polar decomposition of matrices.

The derivatives of the pseudo-inverse and the polar factor are expressed in these factors, not in singular vectors. So
their derivatives of every order are right where singular values are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pullback.backends.host import alone, batches
from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.dims import any_symbolic
from pullback.core.elsewhere import on_host
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.large import compiled_from
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import (
    Results,
    check_matrices,
    column_scaled,
    columns_from,
    compiled_decomposition,
    completed,
    decomposed,
    diagonal,
    hermitian_of_lower,
    hermitian_part_twice,
    inverse_differences,
    inverse_sums,
    inverse_values,
    inverse_where,
    on_diagonal,
    one_by_one,
    pairs_of_equals,
    real_column_products,
    rounding,
    scaled,
    skew_part_twice,
    undetermined_where,
    unknown_of_equals,
    upper_left,
    without,
)
from pullback.primitives.linalg.eigen import adapted, eigh
from pullback.primitives.linalg.lapack import (
    BLOCK,
    adjoint,
    check_square,
    check_square_matrices,
    host_routine,
    product,
    rows_minus_columns,
)
from pullback.primitives.linalg.lu import identity, linear_solve
from pullback.primitives.linalg.svd_by_polar import svd_by_polar
from pullback.primitives.reductions import norm
from pullback.primitives.rules import jvp_zero

# The decomposition -------------------------------------------------------------------------------------------------


def svd(x: Any, *, full_matrices: bool = False, by_qr: bool = False) -> list[Any]:
    """Return the singular values of matrices, descending; the left vectors as columns; the right as conjugate rows.

    Args:
      x: the matrices (..., m, n).
      full_matrices: whether to return all m left and n right vectors, instead of min(m, n).
      by_qr: whether to use LAPACK's QR algorithm instead of divide and conquer.
    """
    out: list[Any] = svd_p.bind(x, full_matrices=full_matrices, vectors=True, by_qr=by_qr)
    return out


def svdvals(x: Any) -> Any:
    """The descending singular values of matrices."""
    return svd_p.bind(x, full_matrices=False, vectors=False, by_qr=False)[0]


# Results: the singular values, and with ``vectors`` the left and the right vectors. ``by_qr`` selects LAPACK's QR
# iteration instead of its divide and conquer.
svd_p = Primitive("svd", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(svd_p, 2)


def _results(shape: Shape, dtype: np.dtype[Any], full_matrices: bool) -> Results:
    *batch, m, n = shape
    k = min(m, n)
    rows, columns = (m, n) if full_matrices else (k, k)
    return [((*batch, k), dtypes.to_real(dtype)), ((*batch, m, rows), dtype), ((*batch, columns, n), dtype)]


@svd_p.host
def _svd_host(x: Any, *, full_matrices: bool, vectors: bool, by_qr: bool) -> list[Any]:
    results = _results(x.shape, x.dtype, full_matrices)
    if x.size == 0:
        outs = [np.zeros(shape, dtype) for shape, dtype in results]
        for out in outs[1:]:
            out[...] = np.eye(*out.shape[-2:], dtype=x.dtype)
        return outs if vectors else outs[:1]

    def routine(x: Any) -> Sequence[Any]:
        if by_qr:
            wanted = _results(x.shape, x.dtype, full_matrices)
            outs = one_by_one(lambda a: _svd_by_qr(a, full_matrices), wanted, x)
            return outs if vectors else outs[:1]
        if x.ndim > 2:
            return _svd_of_many(x, full_matrices, vectors)
        if not vectors:
            return [_svd_of_one(x, False, vectors=False)[0]]
        if x.shape[0] >= TALL * x.shape[1] and not full_matrices:
            q, r = _triangular(x)
            s, u, vh = _svd_of_one(r, False)
            return s, q @ u, vh
        return _svd_of_one(x, full_matrices)

    return decomposed(routine, x)


compiled_from(svd_p, 6_000, matrices=32, unless=lambda x, by_qr, **params: batches.takes(x) and not by_qr)


TALL = 8
"""The ratio of rows to columns from which it is cheaper to decompose the triangular factor of a matrix: 10,000 by 4:
401 / 202 microseconds, 64 by 8: 41 / 40."""


def _svd_of_many(x: Any, full_matrices: bool, vectors: bool) -> Sequence[Any]:
    found = batches.svd(x, full_matrices, vectors)
    if found is not None:
        return found
    if not vectors:
        return [np.linalg.svd(x, compute_uv=False)]
    u, s, vh = np.linalg.svd(x, full_matrices)
    return s, u, vh


def _svd_of_one(x: Any, full_matrices: bool, vectors: bool = True) -> Any:
    found = alone.svd(x, full_matrices, vectors)
    if found is not None:
        return (*found, None, None)[:3]
    # SciPy's routine takes two thirds of the time of NumPy's for 64 by 64, which computes in double precision.
    routine = host_routine("lapack", "gesdd", x.dtype)
    u, s, vh, failed = routine(x, full_matrices=full_matrices, compute_uv=vectors)
    if failed:
        raise np.linalg.LinAlgError
    return s, u, vh


@lru_cache
def _upper(n: int) -> Any:
    return np.tri(n, dtype=bool).T


def _triangular(x: Any) -> Any:
    """Return the QR factors of a matrix with more rows than columns: orthonormal columns, and a triangular square."""
    workspace = BLOCK * x.shape[1]
    packed, tau, *_ = host_routine("lapack", "geqrf", x.dtype)(x, lwork=workspace)
    r = np.where(_upper(x.shape[1]), packed[: x.shape[1]], 0)
    name = "ungqr" if x.dtype.kind == "c" else "orgqr"
    return host_routine("lapack", name, x.dtype)(packed, tau, lwork=workspace, overwrite_a=True)[0], r


def _svd_by_qr(x: Any, full_matrices: bool) -> Any:
    u, s, vh = imported("scipy.linalg").svd(x, full_matrices, check_finite=False, lapack_driver="gesvd")
    return s, u, vh


@svd_p.abstract_eval
def _svd_abstract_eval(x: ShapedArray, *, full_matrices: bool, vectors: bool, by_qr: bool) -> list[ShapedArray]:
    check_matrices("svd", x)
    return [ShapedArray(*result) for result in _results(x.shape, x.dtype, full_matrices)][: 3 if vectors else 1]


@svd_p.jvp
def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, vectors: bool, by_qr: bool) -> Any:
    # With P = U* dA V: dS is the real diagonal of P, dU = U X and dV = V Y within the spaces that U and V span, where
    # P = X S + dS - S Y. So the Hermitian part of P is divided by differences of singular values, and is the same in X
    # and Y; the other part is divided by sums, and has the opposite sign in Y. After Townsend 2016, "Differentiating
    # the singular value decomposition"; Wan and Zhang 2019 (arXiv:1909.02659) for complex matrices.
    (x,), (t,) = primals, tangents
    params = {"full_matrices": full_matrices, "by_qr": by_qr}
    if 0 in x.shape:
        return svd_p.bind(x, vectors=vectors, **params), [ZERO] * (3 if vectors else 1)
    *_, m, n = x.shape
    k = min(m, n)
    if not vectors:
        s, u, vh = singular_basis(x)
        return [s], [_values_tangent(u, adjoint(vh), t)]
    s, u, vh = svd(x, **params)
    left, right = upper_left(u, m, k), adjoint(upper_left(vh, k, n))
    # The values and their tangents come from ``singular_basis``, whose rules have the derivatives of the values.
    values, *basis = singular_basis(x, (s, left, adjoint(right)))
    values_tangent = _values_tangent(basis[0], adjoint(basis[1]), t)
    values_tangent, left_tangent, right_tangent = _tangents(s, left, right, t, values_tangent)
    if full_matrices:
        left_tangent = completed(left, left_tangent, columns_from(u, k))
        right_tangent = completed(right, right_tangent, columns_from(adjoint(vh), k))
    return [values, u, vh], [values_tangent, left_tangent, adjoint(right_tangent)]


def _values_tangent(left: Any, right: Any, t: Any) -> Any:
    """Return the tangents of singular values, from the singular vectors and the tangents ``t`` of the matrices.

    ``left`` and ``right`` hold the left and right singular vectors as columns.
    """
    return real_column_products(left, product(t, right))


def _tangents(s: Any, left: Any, right: Any, t: Any, values_tangent: Any = None) -> tuple[Any, Any, Any]:
    """Return three tangents: of the singular values, of the left vectors and of the right vectors.

    There are k = min(m, n) singular values of matrices (..., m, n).

    Args:
      s: the singular values.
      left, right: k left and k right singular vectors, as columns.
      t: the tangent of the matrices.
      values_tangent: the tangent of the singular values, or None to compute it. If it is passed, the rotations of
        vectors of equal or zero singular values, which are arbitrary, become NaN by ``undetermined_where``.
    """
    m, n, k = left.shape[-2], right.shape[-2], s.shape[-1]
    size, guarded = max(m, n), values_tangent is not None
    inner = product(adjoint(left), product(t, right))
    if not guarded:
        values_tangent = ops.real_part(diagonal(inner))
    sums = inverse_sums(s, size)
    inverse = inverse_values(s, size)
    alike = scaled(hermitian_part_twice(inner), ops.mul(inverse_differences(s, size), 0.5))
    opposite = scaled(skew_part_twice(inner), ops.mul(sums, 0.5))
    outside_left = column_scaled(without(product(t, right), left), inverse) if m > k else None
    outside_right = column_scaled(without(product(adjoint(t), left), right), inverse) if n > k else None
    if guarded:
        values_tangent, alike = undetermined_where(pairs_of_equals(s, size), values_tangent, alike)
        among_zeros = ops.eq_p.bind(ops.stop_gradient_p.bind(sums), 0)
        if not dtypes.is_complex(t.dtype):
            among_zeros = ops.and_p.bind(among_zeros, ops.ne_p.bind(rows_minus_columns(k, k), 0))
        values_tangent, opposite = undetermined_where(among_zeros, values_tangent, opposite)
        of_zeros = shapes.expand_dims(ops.eq_p.bind(ops.stop_gradient_p.bind(inverse), 0), (-2,))
        if outside_left is not None:
            where = shapes.broadcast_to(of_zeros, outside_left.shape)
            values_tangent, outside_left = undetermined_where(where, values_tangent, outside_left)
        if outside_right is not None:
            where = shapes.broadcast_to(of_zeros, outside_right.shape)
            values_tangent, outside_right = undetermined_where(where, values_tangent, outside_right)
    left_tangent = product(left, ops.add_any_p.bind(alike, opposite))
    right_tangent = product(right, ops.add_any_p.bind(alike, ops.neg(opposite)))
    if outside_left is not None:
        left_tangent = ops.add_any_p.bind(left_tangent, outside_left)
    if outside_right is not None:
        right_tangent = ops.add_any_p.bind(right_tangent, outside_right)
    return values_tangent, left_tangent, right_tangent


@svd_p.lowering
def _svd_lowering(hlo: Any, x: Any, *, full_matrices: bool, vectors: bool, by_qr: bool) -> list[Any]:
    results = _results(x.shape, x.dtype, full_matrices)
    if 0 in x.shape:
        outs = [hlo.splat(0, *results[0])]
        for shape, dtype in results[1:] if vectors else ():
            rows, columns = (hlo.iota(shape, len(shape) - i, np.dtype(np.int32)) for i in (2, 1))
            outs.append(hlo.convert(hlo.compare(rows, columns, "EQ"), dtype))
        return outs
    if device_routines.is_gpu(hlo):
        return _svd_on_gpu(hlo, x, results, full_matrices, vectors, by_qr)
    if hlo.module.platform == "tpu":
        outs = hlo.inline(partial(svd_by_polar, full_matrices=full_matrices), x)
        return outs if vectors else outs[:1]
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "svd", "gesdd")
    mode = ("A" if full_matrices else "S") if vectors else "N"
    *_, s, u, vh = compiled_decomposition(
        hlo, "gesvd" if by_qr else "gesdd", x, [(x.shape, x.dtype), *results], mode=mode
    )
    return [s, u, vh] if vectors else [s]


_MOST_BY_JACOBI = 1024
"""The most rows or columns of matrices that GPUs decompose by Jacobi's method, as in JAX; larger ones by QR."""
_SQUARE = 32
"""The most rows or columns of matrices whose factors are square, as cuSOLVER decomposes batches of these at once."""


def _svd_on_gpu(hlo: Any, x: Any, results: Results, full_matrices: bool, vectors: bool, by_qr: bool) -> list[Any]:
    """Emit the decomposition by cuSOLVER or hipSOLVER; ``results`` has the values, the left and the right vectors."""
    *batch, m, n = x.shape
    k, (values, left, right) = min(m, n), results
    if not by_qr and not any_symbolic((m, n)) and max(m, n) <= _MOST_BY_JACOBI:
        square = full_matrices or k <= _SQUARE
        rows, columns = (m, n) if square else (k, k)
        wanted = [(x.shape, x.dtype), values, ((*batch, m, rows), x.dtype), ((*batch, n, columns), x.dtype)]
        options = {"full_matrices": square, "compute_uv": vectors}
        _, s, u, v = compiled_decomposition(hlo, "{solver}_gesvdj_ffi", x, wanted, {0: 0}, **options)
        if not vectors:
            return [s]
        cut = lambda u, v: [upper_left(u, m, left[0][-1]), adjoint(upper_left(v, n, right[0][-2]))]
        return [s, *hlo.inline(cut, u, v)]
    # The routine takes no matrices with fewer rows than columns: it reads these by rows, as their transposes.
    by_rows = m < n
    factors = [left, right] if vectors else [((), x.dtype)] * 2
    wanted = [(x.shape, x.dtype), values, *(factors[::-1] if by_rows else factors)]
    options = {"full_matrices": full_matrices, "compute_uv": vectors, "transposed": by_rows}
    name = "{solver}_gesvd_ffi"
    _, s, u, vh = compiled_decomposition(hlo, name, x, wanted, {0: 0}, by_columns=not by_rows, **options)
    return ([s, vh, u] if by_rows else [s, u, vh]) if vectors else [s]


# Where singular values are equal, or zero --------------------------------------------------------------------------


def singular_basis(x: Any, known: Sequence[Any] | None = None, turned: bool = False) -> list[Any]:
    """Return the results of :func:`svd`, for derivative rules that hold for any choice of the singular vectors.

    Args:
      x: the matrices.
      known: the singular values and vectors of ``x``, if the caller has them.
      turned: whether the rule rotates the vectors of equal singular values among themselves. It is then unknown which
        of these values belongs to which vector, so that their tangents are NaN.
    """
    out: list[Any] = singular_basis_p.bind(x, *(known or svd(ops.stop_gradient_p.bind(x))), turned=turned)
    return out


# Returns the decomposition, an operand next to the matrices, with the derivatives with respect to the matrices.
singular_basis_p = Primitive("singular_basis", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
works_on_last(singular_basis_p, 2, 2, 1, 2)
singular_basis_p.host(lambda x, s, u, vh, turned: [s, u, vh])
singular_basis_p.lowering(lambda hlo, x, s, u, vh, turned: [s, u, vh])


@singular_basis_p.abstract_eval
def _singular_basis_abstract_eval(x: ShapedArray, *known: ShapedArray, turned: bool) -> list[ShapedArray]:
    check_matrices("singular_basis", x)
    shapes_of_results = [ShapedArray(*result) for result in _results(x.shape, x.dtype, False)]
    for operand, wanted in zip(known, shapes_of_results, strict=True):
        if operand.shape != wanted.shape or operand.dtype != wanted.dtype:
            raise ShapeError(f"singular_basis of matrices {x} takes arrays of types {shapes_of_results}, got {known}")
    return shapes_of_results


@singular_basis_p.jvp
def _singular_basis_jvp(primals: Any, tangents: Any, *, turned: bool) -> Any:
    (x, *known), (t, *_) = primals, tangents
    s, u, vh = singular_basis(x, known, turned)
    if 0 in x.shape or t is ZERO:
        return [s, u, vh], [ZERO, ZERO, ZERO]
    left, right = u, adjoint(vh)
    values_tangent, left_tangent, right_tangent = _tangents(s, left, right, t, _values_tangent(left, right, t))
    if turned:
        values_tangent = unknown_of_equals(s, max(x.shape[-2:]), values_tangent)
    return [s, u, vh], [values_tangent, left_tangent, adjoint(right_tangent)]


@singular_basis_p.directional
def _singular_basis_along(primals: Any, tangents: Any, *, turned: bool) -> Any:
    (x, *known), (t, *_) = primals, tangents
    if turned or 0 in x.shape or t is ZERO:
        return _singular_basis_jvp(primals, tangents, turned=turned)
    return _along(x, t, known)


def _along(x: Any, t: Any, known: Sequence[Any]) -> Any:
    # As for eigenvalues. Left and right vectors of equal singular values turn together, so that the Hermitian part of
    # the direction is diagonal between them. The vectors of zeros become singular vectors of the direction, projected
    # to the complement of the other vectors.
    s, u, vh = known
    if x.shape[-2] < x.shape[-1]:
        (s, v, uh), (ts, tv, tuh) = _along(adjoint(x), adjoint(t), (s, adjoint(vh), adjoint(u)))
        return [s, adjoint(uh), adjoint(v)], [ts, adjoint(tuh), adjoint(tv)]
    s, u, vh = singular_basis(x, known, turned=True)
    v, size = adjoint(vh), x.shape[-2]
    zero = ops.le_p.bind(ops.stop_gradient_p.bind(s), rounding(s, size))
    column_is_zero, row_is_zero = (shapes.expand_dims(zero, (i,)) for i in (-2, -1))
    moved = product(t, v)
    beyond = ops.stop_gradient_p.bind(without(moved, ops.where(column_is_zero, 0, u)))
    inner = hermitian_part_twice(product(adjoint(u), moved))
    turn = adapted(s, ops.where(ops.and_p.bind(row_is_zero, column_is_zero), 0, inner), size)
    u = product(u, turn)
    of_zeros, turn_of_zeros = vectors_of_zeros(zero, u, beyond)
    u = ops.where(column_is_zero, of_zeros, u)
    v = product(v, product(turn, turn_of_zeros))
    values_tangent, left_tangent, right_tangent = _tangents(s, u, v, t)
    return [s, u, adjoint(v)], [values_tangent, left_tangent, adjoint(right_tangent)]


def vectors_of_zeros(zero: Any, left: Any, beyond: Any) -> list[Any]:
    """Return singular vectors for the zero singular values, chosen to fit a direction in which the matrices change.

    The vectors of zero singular values are arbitrary. The chosen ones are the limits of the vectors of the changed
    matrices, as the change in the direction goes to zero.

    Args:
      zero: a mask of the descending singular values that are zero (..., n).
      left: left singular vectors (..., m, n), with n at most m.
      beyond: matrices (..., m, n); a column for a zero holds the direction times the right vector, projected to the
        complement of the left vectors of nonzero values.

    Returns:
      Two arrays without derivatives: ``left``, with the left singular vectors of ``beyond`` in the columns of zeros;
      and unitary matrices (..., n, n) to multiply the right vectors by. The vectors are orthonormal even if the rank of
      ``beyond`` is less than the number of zeros.
    """
    out: list[Any] = vectors_of_zeros_p.bind(zero, ops.stop_gradient_p.bind(left), beyond)
    return out


vectors_of_zeros_p = Primitive("vectors_of_zeros", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(vectors_of_zeros_p, 1, 2, 2)
vectors_of_zeros_p.jvp_rule = jvp_zero(vectors_of_zeros_p)


@vectors_of_zeros_p.decomposition
def _vectors_of_zeros(zero: Any, left: Any, beyond: Any) -> list[Any]:
    # The other columns hold the other left vectors, times a number so large that their singular values come first,
    # separate from the values of ``beyond``, which is orthogonal to them.
    n, rank = left.shape[-1], len(left.shape)
    column_is_zero, row_is_zero = (shapes.expand_dims(zero, (i,)) for i in (-2, -1))
    size = norm(ops.where(column_is_zero, beyond, 0), (rank - 2, rank - 1))
    size = ops.where(ops.eq_p.bind(size, 0), 1, ops.mul(size, 2))
    _, u, vh = svd(ops.where(column_is_zero, beyond, scaled(left, shapes.expand_dims(size, (-1, -2)))))
    among = ops.and_p.bind(row_is_zero, column_is_zero)
    turn = ops.where(among, adjoint(vh), 0)
    is_other = ops.and_p.bind(on_diagonal(n), ops.not_p.bind(column_is_zero))
    return [ops.where(column_is_zero, u, left), ops.where(is_other, 1, turn)]


@vectors_of_zeros_p.impl
@on_host(vectors_of_zeros_p)
def _vectors_of_zeros_impl(args: Sequence[Any], params: dict[str, Any]) -> Any:
    zero, left, _ = args
    if np.any(zero):
        return _vectors_of_zeros(*args)
    n = left.shape[-1]
    return [left, shapes.broadcast_to(identity(n, left.dtype), (*left.shape[:-2], n, n))]


@vectors_of_zeros_p.abstract_eval
def _vectors_of_zeros_abstract_eval(zero: ShapedArray, left: ShapedArray, beyond: ShapedArray) -> list[ShapedArray]:
    *batch, m, n = left.shape
    if beyond.shape != left.shape or zero.shape != (*batch, n) or n > m:
        raise ShapeError(
            "vectors_of_zeros takes conditions (..., n), and two arrays of one shape (..., m, n), n at most m, got "
            f"{zero.shape}, {left.shape} and {beyond.shape}"
        )
    return [ShapedArray(left.shape, left.dtype), ShapedArray((*batch, n, n), left.dtype)]


# The pseudo-inverse ------------------------------------------------------------------------------------------------


def pinv(x: Any, tolerance: Any, hermitian: bool) -> Any:
    """Return the Moore-Penrose pseudo-inverses of matrices; small singular values count as zero.

    Args:
      x: matrices (..., m, n).
      tolerance: real numbers (...): a singular value is small if it is at most this fraction of the largest one.
      hermitian: whether the matrices are Hermitian; they are then decomposed by eigenvalues.
    """
    return pinv_p.bind(x, tolerance, hermitian=hermitian)


pinv_p = Primitive("pinv", keeps_weak_type=False)
works_on_last(pinv_p, 2, 0)


@pinv_p.decomposition
def _pinv_by_svd(x: Any, tolerance: Any, *, hermitian: bool) -> Any:
    if hermitian:
        s, left = eigh(x)
        right = left
        sizes = ops.abs(s)
    else:
        s, left, vh = svd(x)
        right, sizes = adjoint(vh), s
    largest = reductions.reduce_max(sizes, (len(s.shape) - 1,))
    bound = shapes.expand_dims(ops.mul(largest, tolerance), (-1,))
    inverse = inverse_where(ops.gt_p.bind(sizes, bound), s)
    # NaN stays NaN.
    inverse = ops.where(ops.is_finite_p.bind(s), inverse, s)
    return product(column_scaled(right, inverse), adjoint(left))


@pinv_p.impl
@on_host(pinv_p)
def _pinv_impl(args: Sequence[Any], params: dict[str, Any]) -> Any:
    x, tolerance = args
    if params["hermitian"] or len(x.shape) != 2 or 0 in x.shape:
        return _pinv_by_svd(x, tolerance, **params)
    # The same for one matrix in few steps, since its singular values may take less time than the steps.
    return ArrayImpl(decomposed(partial(_pinv_of_one, tolerance._value), x._value)[0])


def _pinv_of_one(tolerance: Any, x: Any) -> Any:
    m, n = x.shape
    basis, x = _triangular(x) if m >= TALL * n else (None, x)
    s, left, vh = _svd_of_one(x, False)
    inverse = np.zeros_like(s)
    np.divide(1, s, out=inverse, where=s > s[0] * tolerance)
    out = (vh.conj().T * inverse) @ left.conj().T
    return [out if basis is None else out @ basis.conj().T]


@pinv_p.abstract_eval
def _pinv_abstract_eval(x: ShapedArray, tolerance: ShapedArray, *, hermitian: bool) -> ShapedArray:
    check_matrices("pinv", x)
    if hermitian:
        check_square("pinv of Hermitian matrices", x)
    real = dtypes.to_real(x.dtype)
    if tolerance.shape != x.shape[:-2] or tolerance.dtype != real:
        raise ShapeError(
            f"pinv of matrices of shape {x.shape} takes tolerances of shape {x.shape[:-2]} and dtype {real}, got "
            f"{tolerance}"
        )
    return ShapedArray((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


@pinv_p.jvp
def _pinv_jvp(primals: Any, tangents: Any, *, hermitian: bool) -> Any:
    # Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    # variables separate": the derivative along matrices of the same rank.
    (x, tolerance), (t, _) = primals, tangents
    p = pinv(x, tolerance, hermitian)
    if t is ZERO or 0 in x.shape:
        return p, ZERO
    if hermitian:  # only the lower triangle is read
        t, x = hermitian_of_lower(t), hermitian_of_lower(x)
    moved = ops.neg(product(p, product(t, p)))
    adjoint_p, adjoint_t = adjoint(p), adjoint(t)
    by_left = product(product(p, adjoint_p), adjoint_t)
    by_left = ops.add_any_p.bind(by_left, ops.neg(product(product(by_left, x), p)))
    by_right = product(adjoint_t, product(adjoint_p, p))
    by_right = ops.add_any_p.bind(by_right, ops.neg(product(p, product(x, by_right))))
    return p, ops.add_any_p.bind(moved, ops.add_any_p.bind(by_left, by_right))


# Polar decomposition -----------------------------------------------------------------------------------------------


def polar(x: Any) -> Any:
    """Return the polar factors W of matrices A = W H, with orthonormal columns in W and Hermitian H.

    No eigenvalue of H is negative.

    Args:
      x: the matrices A (..., m, n), with n at most m.
    """
    return polar_p.bind(x)


polar_p = Primitive("polar", keeps_weak_type=False)
works_on_last(polar_p, 2)


@polar_p.decomposition
def _polar_by_svd(x: Any) -> Any:
    _, u, vh = svd(x)
    return product(u, vh)


@polar_p.abstract_eval
def _polar_abstract_eval(x: ShapedArray) -> ShapedArray:
    check_matrices("polar", x)
    if x.shape[-2] < x.shape[-1]:
        raise ShapeError(f"polar takes matrices with no more columns than rows, got shape {x.shape}")
    return ShapedArray(x.shape, x.dtype)


@polar_p.jvp
def _polar_jvp(primals: Any, tangents: Any) -> Any:
    # A = W H. With S = W* dW, which is skew: S H + H S = W* dA - dA* W; the component of dW outside of W is that of dA
    # inv(H). There is no division by a difference of singular values. Higham 2008, "Functions of matrices", section 8.
    (x,), (t,) = primals, tangents
    w = polar(x)
    if 0 in x.shape:
        return w, ZERO
    h = product(adjoint(w), x)
    skew = skew_part_twice(product(adjoint(w), t))
    tangent = product(w, lyapunov(h, skew))
    if x.shape[-2] > x.shape[-1]:
        tangent = ops.add_any_p.bind(tangent, adjoint(linear_solve(h, adjoint(without(t, w)))))
    return w, tangent


def lyapunov(h: Any, c: Any) -> Any:
    """Solve H X + X H = C for X, with Hermitian positive semidefinite H.

    In the eigenbasis of H, an element of X is the element of C divided by the sum of two eigenvalues, or zero if both
    are zero.
    """
    return lyapunov_p.bind(h, c)


lyapunov_p = Primitive("lyapunov", keeps_weak_type=False)
works_on_last(lyapunov_p, 2)


@lyapunov_p.decomposition
def _lyapunov_by_eigh(h: Any, c: Any) -> Any:
    w, v = eigh(h)
    inner = product(adjoint(v), product(c, v))
    inner = scaled(inner, inverse_sums(ops.max_p.bind(w, 0), h.shape[-1]))
    return product(v, product(inner, adjoint(v)))


@lyapunov_p.abstract_eval
def _lyapunov_abstract_eval(h: ShapedArray, c: ShapedArray) -> ShapedArray:
    check_square_matrices("lyapunov", h)
    if h.shape != c.shape:
        raise ShapeError(f"lyapunov takes matrices of one shape, got {h.shape} and {c.shape}")
    if h.dtype != c.dtype:
        raise DtypeError(f"lyapunov takes matrices of one dtype, got {h} and {c}")
    return ShapedArray(c.shape, c.dtype)


@lyapunov_p.jvp
def _lyapunov_jvp(primals: Any, tangents: Any) -> Any:
    # H dX + dX H = dC - dH X - X dH.
    (h, c), (th, tc) = primals, tangents
    x = lyapunov(h, c)
    if 0 in h.shape:
        return x, ZERO
    if th is not ZERO:
        th = ops.mul(hermitian_part_twice(th), 0.5)
        moved = ops.neg(ops.add_any_p.bind(product(th, x), product(x, th)))
        tc = moved if tc is ZERO else ops.add_any_p.bind(tc, moved)
    return x, lyapunov(h, tc)


@partial(lyapunov_p.transpose, linear_in=(1,))
def _lyapunov_transpose(ct: Any, h: Any, c: LinearVar) -> Any:
    # The pairing is bilinear: the transpose solves with the transpose of H, which is its conjugate.
    return None, lyapunov(ops.conj(h), ct)


# The nuclear norm --------------------------------------------------------------------------------------------------


def nuclear_norm(x: Any) -> Any:
    """The nuclear norms of matrices: the sums of their singular values."""
    return nuclear_norm_p.bind(x)


nuclear_norm_p = Primitive("nuclear_norm", keeps_weak_type=False)
works_on_last(nuclear_norm_p, 2)


@nuclear_norm_p.decomposition
def _nuclear_norm_by_svd(x: Any) -> Any:
    s = svdvals(x)
    return reductions.reduce_sum(s, (len(s.shape) - 1,))


@nuclear_norm_p.abstract_eval
def _nuclear_norm_abstract_eval(x: ShapedArray) -> ShapedArray:
    check_matrices("nuclear_norm", x)
    return ShapedArray(x.shape[:-2], dtypes.to_real(x.dtype))


@nuclear_norm_p.jvp
def _nuclear_norm_jvp(primals: Any, tangents: Any) -> Any:
    # tr H of A = W H has the derivative tr(W* dA). Where the rank is not full, this is a subgradient.
    (x,), (t,) = primals, tangents
    out = nuclear_norm(x)
    if 0 in x.shape:
        return out, ZERO
    w = polar(x) if x.shape[-2] >= x.shape[-1] else adjoint(polar(adjoint(x)))
    rank = len(x.shape)
    change = reductions.reduce_sum(ops.mul(ops.conj(w), t), (rank - 2, rank - 1))
    return out, ops.real(change) if dtypes.is_complex(x.dtype) else change
