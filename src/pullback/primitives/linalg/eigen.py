"""Eigenvalues and eigenvectors of Hermitian and of general matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import alone, batches, blas
from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.large import compiled_from
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import (
    INT32,
    compiled_decomposition,
    decomposed,
    diagonal,
    differences,
    equal_pairs,
    hermitian_of_lower,
    inverse_differences,
    inverse_where,
    is_differentiated_now,
    on_diagonal,
    one_by_one,
    pairs_of_equals,
    real_column_products,
    scaled,
    undetermined_where,
    unknown_of_equals,
)
from pullback.primitives.linalg.lapack import (
    BLOCK,
    adjoint,
    check_square,
    check_square_matrices,
    host_routine,
    product,
    rows_minus_columns,
    triangle_weights,
)
from pullback.primitives.linalg.lu import identity, linear_solve
from pullback.primitives.rules import jvp_linear_in, jvp_zero

# Hermitian matrices ------------------------------------------------------------------------------------------------


def eigh(x: Any) -> list[Any]:
    """Return the ascending eigenvalues of Hermitian matrices, and the eigenvectors as columns.

    Only the lower triangles of ``x`` are read.
    """
    out: list[Any] = eigh_p.bind(x, vectors=True)
    return out


def eigvalsh(x: Any) -> Any:
    """Return the ascending eigenvalues of Hermitian matrices; only the lower triangles of ``x`` are read."""
    return eigh_p.bind(x, vectors=False)[0]


# It reads the lower triangles of the matrices, and the real parts of their diagonals. Results: the ascending
# eigenvalues, and with ``vectors`` the eigenvectors.
eigh_p = Primitive("eigh", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(eigh_p, 2)


@eigh_p.host
def _eigh_host(x: Any, *, vectors: bool) -> list[Any]:
    if x.size == 0:
        w = np.zeros(x.shape[:-1], dtypes.to_real(x.dtype))
        return [w, x] if vectors else [w]
    return decomposed(partial(_eigh_of_finite, vectors=vectors), x)


compiled_from(eigh_p, 12_000, matrices=32, unless=lambda x, **params: batches.takes(x))


def _eigh_of_finite(x: Any, vectors: bool) -> list[Any]:
    found = batches.eigh(x, vectors) if x.ndim > 2 else alone.eigh(x, vectors)
    if found is not None:
        return found
    if x.ndim > 2:
        return list(np.linalg.eigh(x)) if vectors else [np.linalg.eigvalsh(x)]
    # SciPy's routine takes half the time of NumPy's for 64 by 64, which computes in double precision.
    routine = host_routine("lapack", "heevd" if dtypes.is_complex(x.dtype) else "syevd", x.dtype)
    options = {} if vectors else {"lwork": (2 + BLOCK) * len(x) + 1}
    w, v, failed = routine(x, compute_v=vectors, lower=1, **options)
    if failed:
        raise np.linalg.LinAlgError
    return [w, v] if vectors else [w]


@eigh_p.abstract_eval
def _eigh_abstract_eval(x: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
    check_square_matrices("eigh", x)
    values = ShapedArray(x.shape[:-1], dtypes.to_real(x.dtype))
    return [values, ShapedArray(x.shape, x.dtype)] if vectors else [values]


@eigh_p.jvp
def _eigh_jvp(primals: Any, tangents: Any, *, vectors: bool) -> Any:
    # From A V = V W, with M = V* dA V: dW is the diagonal of M, and dV = V X, where X has M_ij / (w_j - w_i) off the
    # diagonal. After Giles 2008, "An extended collection of matrix derivative results"; Boeddeker et al. 2017, "On the
    # computation of complex-valued gradients with application to statistically optimum beamforming".
    (x,), (t,) = primals, tangents
    if 0 in x.shape:
        return eigh_p.bind(x, vectors=vectors), [ZERO] * (1 + vectors)
    if not vectors:
        if is_differentiated_now(t, x):
            w, v = eigh(x)
            return [w], [eigenvalues_differential_p.bind(v, t)]
        w, v = eigenbasis(x)
        return [w], [_values_tangent(v, t)]
    w, v = eigh(x)
    # The values and their tangents come from ``eigenbasis``, whose rules have the derivatives of the values.
    values, basis = eigenbasis(x, (w, v))
    return [values, v], _with_vectors(w, v, hermitian_of_lower(t), _values_tangent(basis, t))


def _values_tangent(v: Any, t: Any) -> Any:
    """The tangents of eigenvalues, from the eigenvectors ``v`` and the lower triangles of the tangents ``t``."""
    # For the Hermitian T = L + L*, v* T v is twice the real part of v* L v.
    return ops.mul(real_column_products(v, product(scaled(t, triangle_weights(t)), v)), 2)


# The derivative of the eigenvalues of one eager matrix, as one operation: it takes the eigenvectors and a tangent, of
# which it reads the lower triangle.
eigenvalues_differential_p = Primitive("eigenvalues_differential", keeps_weak_type=False, cost=Cost.MATRIX)
eigenvalues_pull_p = Primitive("eigenvalues_pull", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(eigenvalues_differential_p, 2)
works_on_last(eigenvalues_pull_p, 2, 1)
eigenvalues_differential_p.jvp_rule = jvp_linear_in(eigenvalues_differential_p, 1)
eigenvalues_pull_p.jvp_rule = jvp_linear_in(eigenvalues_pull_p, 1)
eigenvalues_differential_p.decomposition(_values_tangent)


@eigenvalues_pull_p.decomposition
def _pull(v: Any, ct: Any) -> Any:
    doubled = scaled(v, shapes.expand_dims(ops.mul(ct, 2), (-2,)))
    return scaled(product(doubled, adjoint(v)), triangle_weights(v))


@eigenvalues_differential_p.host
def _differential_host(v: Any, t: Any) -> Any:
    return 2 * (v * blas.product(t * _host_weights(v), v)).sum(-2)


@eigenvalues_pull_p.host
def _pull_host(v: Any, ct: Any) -> Any:
    out = blas.product(v * (2 * ct)[..., None, :], v.swapaxes(-1, -2))
    out *= _host_weights(v)
    return out


def _host_weights(v: Any) -> Any:
    weights = np.tri(v.shape[-1], dtype=v.dtype)
    np.fill_diagonal(weights, 0.5)
    return weights


@eigenvalues_differential_p.abstract_eval
def _differential_abstract_eval(v: ShapedArray, t: ShapedArray) -> ShapedArray:
    if v.shape != t.shape:
        raise ShapeError(f"eigenvalues_differential takes eigenvectors, and tangents of matrices, got {v} and {t}")
    return ShapedArray(v.shape[:-1], v.dtype)


@eigenvalues_pull_p.abstract_eval
def _pull_abstract_eval(v: ShapedArray, ct: ShapedArray) -> ShapedArray:
    if v.shape[:-1] != ct.shape:
        raise ShapeError(f"eigenvalues_pull takes eigenvectors, and cotangents of eigenvalues, got {v} and {ct}")
    return ShapedArray(v.shape, v.dtype)


@partial(eigenvalues_differential_p.transpose, linear_in=(1,))
def _differential_transpose(ct: Any, v: Any, t: LinearVar) -> Any:
    return None, eigenvalues_pull_p.bind(v, ct)


@partial(eigenvalues_pull_p.transpose, linear_in=(1,))
def _pull_transpose(ct: Any, v: Any, of_values: LinearVar) -> Any:
    return None, eigenvalues_differential_p.bind(v, ct)


def _with_vectors(w: Any, v: Any, t: Any, values_tangent: Any) -> list[Any]:
    """Return the tangents of the eigenvalues and of the eigenvectors of Hermitian matrices.

    Args:
      w: the eigenvalues.
      v: the eigenvectors.
      t: the tangents of the matrices.
      values_tangent: the tangents of the eigenvalues.
    """
    turn = scaled(product(adjoint(v), product(t, v)), inverse_differences(w, v.shape[-1]))
    among = pairs_of_equals(w, v.shape[-1])
    values_tangent, turn = undetermined_where(among, values_tangent, turn)
    return [values_tangent, product(v, turn)]


@eigh_p.lowering
def _eigh_lowering(hlo: Any, x: Any, *, vectors: bool) -> list[Any]:
    shape, real = x.shape, dtypes.to_real(x.dtype)
    if 0 in shape:
        w = hlo.splat(0, shape[:-1], real)
        return [w, x] if vectors else [w]
    results = [(shape, x.dtype), (shape[:-1], real)]
    if device_routines.is_gpu(hlo):  # it always computes vectors; algorithm 0 leaves the choice to the plug-in
        v, w = compiled_decomposition(hlo, "{solver}_syevd_ffi", x, results, {0: 0}, lower=True, algorithm=0)
    elif hlo.module.platform == "tpu":  # lower triangle, sorted, at most 100 sweeps to this relative size
        v, w = device_routines.tpu_function(hlo, "Eigh", [x], results, "1,1,100,1e-6")
    elif hlo.module.platform == "cpu":
        name = "heevd" if dtypes.is_complex(x.dtype) else "syevd"
        v, w = compiled_decomposition(hlo, name, x, results, uplo="L", mode="V" if vectors else "N")
    else:
        device_routines.refuse(hlo, "eigh", "syevd")
    return [w, v] if vectors else [w]


# Where eigenvalues are equal ---------------------------------------------------------------------------------------


def eigenbasis(x: Any, known: Sequence[Any] | None = None, turned: bool = False) -> list[Any]:
    """Return the eigenvalues and eigenvectors of ``x``, for derivative rules that hold for any choice of eigenvectors.

    Args:
      x: the Hermitian matrices.
      known: the eigenvalues and eigenvectors of ``x``, if the caller has them.
      turned: whether the rule rotates the vectors of equal eigenvalues among themselves. It is then unknown which of
        these eigenvalues belongs to which vector, so that their tangents are NaN.
    """
    out: list[Any] = eigenbasis_p.bind(x, *(known or eigh(ops.stop_gradient_p.bind(x))), turned=turned)
    return out


# Returns the decomposition, an operand next to the matrices, with the derivatives with respect to the matrices.
eigenbasis_p = Primitive("eigenbasis", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
works_on_last(eigenbasis_p, 2, 1, 2)
eigenbasis_p.host(lambda x, w, v, turned: [w, v])
eigenbasis_p.lowering(lambda hlo, x, w, v, turned: [w, v])


@eigenbasis_p.abstract_eval
def _eigenbasis_abstract_eval(x: ShapedArray, w: ShapedArray, v: ShapedArray, *, turned: bool) -> list[ShapedArray]:
    check_square("eigenbasis", x)
    if w.shape != x.shape[:-1] or v.shape != x.shape or w.dtype != dtypes.to_real(x.dtype) or v.dtype != x.dtype:
        raise ShapeError(f"eigenbasis takes matrices, their eigenvalues and eigenvectors, got {x}, {w} and {v}")
    return [ShapedArray(w.shape, w.dtype), ShapedArray(v.shape, v.dtype)]


@eigenbasis_p.jvp
def _eigenbasis_jvp(primals: Any, tangents: Any, *, turned: bool) -> Any:
    (x, *known), (t, *_) = primals, tangents
    w, v = eigenbasis(x, known, turned)
    if 0 in x.shape or t is ZERO:
        return [w, v], [ZERO, ZERO]
    change, v_tangent = _with_vectors(w, v, hermitian_of_lower(t), _values_tangent(v, t))
    return [w, v], [unknown_of_equals(w, x.shape[-1], change) if turned else change, v_tangent]


@eigenbasis_p.directional
def _eigenbasis_along(primals: Any, tangents: Any, *, turned: bool) -> Any:
    (x, *known), (t, *_) = primals, tangents
    if turned or 0 in x.shape or t is ZERO:
        return _eigenbasis_jvp(primals, tangents, turned=turned)
    return _along(x, t, known)


@partial(eigh_p.directional, results_by_direction=True)
def _eigh_along(primals: Any, tangents: Any, *, vectors: bool) -> Any:
    if not vectors or 0 in primals[0].shape:
        return _eigh_jvp(primals, tangents, vectors=vectors)
    (x,), (t,) = primals, tangents
    return _along(x, t, None)


def _along(x: Any, t: Any, known: Sequence[Any] | None) -> Any:
    # In the direction of the tangent, equal eigenvalues separate, and their eigenvectors become unique (Rellich 1969,
    # "Perturbation theory of eigenvalue problems"): the direction is diagonal between them. So no term of the direction
    # is lost, and derivatives of rules that use these vectors are right.
    w, v = eigenbasis(x, known, turned=True)
    t = hermitian_of_lower(t)
    v = product(v, adapted(w, product(adjoint(v), product(t, v)), x.shape[-1]))
    inner = product(adjoint(v), product(t, v))
    turn = scaled(inner, inverse_differences(w, x.shape[-1]))
    return [w, v], [ops.real_part(diagonal(inner)), product(v, turn)]


def adapted(values: Any, inner: Any, size: int) -> Any:
    """Return rotations, among the vectors of equal values, that make a direction of change diagonal on these vectors.

    Args:
      values: sorted eigenvalues or singular values (..., n).
      inner: the direction of change of the matrices: Hermitian matrices (..., n, n), in the basis of the vectors.
      size: the number of rows or columns of the matrices that have these values.

    Returns:
      Unitary matrices (..., n, n), to multiply the vectors by. They have no derivative.
    """
    shape = inner.shape
    values = ops.stop_gradient_p.bind(values)
    if len(values.shape) < len(shape) - 1:
        values = shapes.broadcast_to(values, shape[:-1])
    same = equal_pairs(values, size)
    return adapted_p.bind(same, ops.stop_gradient_p.bind(inner))


adapted_p = Primitive("adapted", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(adapted_p, 2)
adapted_p.jvp_rule = jvp_zero(adapted_p)


@adapted_p.decomposition
def _adapted(same: Any, inner: Any) -> Any:
    # The eigenvectors of a matrix with a diagonal block for each group of equal values. Numbers added to the diagonal
    # separate the eigenvalues of different blocks.
    n = inner.shape[-1]
    rank, real = len(inner.shape), dtypes.to_real(inner.dtype)
    block = ops.where(same, inner, 0)
    largest = reductions.reduce_max(ops.abs(block), (rank - 2, rank - 1))
    largest = ops.where(ops.eq_p.bind(largest, 0), 1, largest)
    block = scaled(block, ops.div(1 / n, shapes.expand_dims(largest, (-1, -2))))
    below = ops.gt_p.bind(rows_minus_columns(n, n), 0)
    before = ops.convert_element_type(ops.and_p.bind(below, ops.not_p.bind(same)), real)
    position = shapes.expand_dims(reductions.reduce_sum(before, (rank - 1,)), (-1,))
    separation = ops.where(on_diagonal(n), ops.mul(position, 3), 0)
    separation = ops.convert_element_type(separation, inner.dtype)
    _, v = eigh_p.bind(ops.add(block, separation), vectors=True)
    alone = ops.eq_p.bind(reductions.reduce_sum(ops.convert_element_type(same, INT32), (rank - 1,)), 1)
    v_of_groups = ops.where(shapes.expand_dims(alone, (-1,)), identity(n, inner.dtype), v)
    return ops.where(same, v_of_groups, 0)


@adapted_p.host
def _adapted_host(same: Any, inner: Any) -> Any:
    n = inner.shape[-1]
    if np.count_nonzero(same) == same.size // max(n, 1):  # no two values are equal
        return np.broadcast_to(np.eye(n, dtype=inner.dtype), inner.shape)
    block = np.where(same, inner, 0)
    largest = np.abs(block).max((-2, -1), keepdims=True, initial=0)
    block /= np.where(largest == 0, 1, largest) * n
    position = (np.tri(n, k=-1) * ~same).sum(-1)
    block[..., range(n), range(n)] += 3 * position
    alone = (np.count_nonzero(same, -1) == 1)[..., None]
    return np.where(same, np.where(alone, np.eye(n, dtype=inner.dtype), _eigh_host(block, vectors=True)[1]), 0)


@adapted_p.abstract_eval
def _adapted_abstract_eval(same: ShapedArray, inner: ShapedArray) -> ShapedArray:
    check_square("adapted", inner)
    if same.shape != inner.shape:
        raise ShapeError(f"adapted takes a condition of the shape of the matrices, {inner.shape}, got {same.shape}")
    return ShapedArray(inner.shape, inner.dtype)


# Other matrices ----------------------------------------------------------------------------------------------------


def eig(x: Any, left: bool, right: bool) -> list[Any]:
    """Return the eigenvalues of square matrices, then the left and the right eigenvectors as columns of length one.

    The flags ``left`` and ``right`` say whether to return these vectors.
    """
    out: list[Any] = eig_p.bind(x, left=left, right=right)
    return out


# Results: the eigenvalues w, and if requested the left eigenvectors u, with u* A = w u*, and the right ones v, with A v
# = w v. All are complex. The largest element of each vector is real.
eig_p = Primitive("eig", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(eig_p, 2)


@eig_p.host
def _eig_host(x: Any, *, left: bool, right: bool) -> list[Any]:
    complex_dtype = dtypes.to_complex(x.dtype)
    if x.size == 0:
        return [np.zeros(x.shape[:-1], complex_dtype), *[np.zeros(x.shape, complex_dtype)] * (left + right)]

    # NumPy computes in double precision, so that eigenvalues of float32 have another order than in compiled programs.
    double = complex_dtype.char == "D"

    def routine(x: Any) -> list[Any]:
        if double and not (left or right):
            return [np.linalg.eigvals(x).astype(complex_dtype, copy=False)]
        if double and not left:
            return [out.astype(complex_dtype, copy=False) for out in np.linalg.eig(x)]
        shape = x.shape
        results = [(shape[:-1], complex_dtype), *[(shape, complex_dtype)] * (left + right)]
        return one_by_one(lambda a: _eig_of_one(a, left, right), results, x)

    return decomposed(routine, x)


def _eig_of_one(x: Any, left: bool, right: bool) -> list[Any]:
    routine = host_routine("lapack", "geev", x.dtype)
    *w, u, v, failed = routine(x, compute_vl=left, compute_vr=right, lwork=(BLOCK + 2) * len(x))
    if failed:
        raise np.linalg.LinAlgError
    vectors = [*[u] * left, *[v] * right]
    if len(w) == 1:
        return [*w, *vectors]
    # Real and imaginary parts are apart, for the vectors in the columns of the two values of a conjugate pair.
    real, imaginary = w
    (first,) = np.nonzero(imaginary > 0)
    values, found = real + 1j * imaginary, [x.astype(dtypes.to_complex(x.dtype)) for x in vectors]
    for out, parts in zip(found, vectors, strict=True):
        out.imag[:, first], out.imag[:, first + 1] = parts[:, first + 1], -parts[:, first + 1]
        out.real[:, first + 1] = parts[:, first]
    return [values, *found]


compiled_from(eig_p, 1_000, matrices=32)  # 450 of 3 x 3: 24100 / 2400


@eig_p.abstract_eval
def _eig_abstract_eval(x: ShapedArray, *, left: bool, right: bool) -> list[ShapedArray]:
    check_square_matrices("eig", x)
    dtype = dtypes.to_complex(x.dtype)
    return [ShapedArray(x.shape[:-1], dtype), *[ShapedArray(x.shape, dtype)] * (left + right)]


@eig_p.jvp
def _eig_jvp(primals: Any, tangents: Any, *, left: bool, right: bool) -> Any:
    # From A V = V W, with M = inv(V) dA V: dW is the diagonal of M, and dV = V X, where X has M_ij / (w_j - w_i) off
    # the diagonal; then vectors are normalized to length one. After Giles 2008; Boeddeker et al. 2017. The left vectors
    # are the right ones of the adjoint.
    (x,), (t,) = primals, tangents
    if 0 in x.shape:
        return eig_p.bind(x, left=left, right=right), [ZERO] * (1 + left + right)
    w, *found = eig(x, left, True)
    v = found[-1]
    t = ops.convert_element_type(t, w.dtype)
    inner = linear_solve(v, product(t, v))
    values_tangent = diagonal(inner)
    outs, vector_tangents = [w], []
    if left:
        u = found[0]
        inner_of_adjoint = linear_solve(u, product(adjoint(t), u))
        values_tangent, vector_tangent = _vector_tangent(ops.conj(w), u, inner_of_adjoint, values_tangent)
        outs.append(u)
        vector_tangents.append(vector_tangent)
    if right:
        values_tangent, vector_tangent = _vector_tangent(w, v, inner, values_tangent)
        outs.append(v)
        vector_tangents.append(vector_tangent)
    return outs, [values_tangent, *vector_tangents]


def _vector_tangent(w: Any, v: Any, inner: Any, values_tangent: Any) -> list[Any]:
    """Return the tangents of the eigenvalues and of the eigenvectors of square matrices.

    The eigenvectors keep length one, and their largest element stays real.

    Args:
      w: the eigenvalues.
      v: the eigenvectors.
      inner: the tangents of the matrices, in the basis of the eigenvectors.
      values_tangent: the tangents of the eigenvalues.
    """
    rows = len(v.shape) - 2
    size = ops.abs(ops.stop_gradient_p.bind(differences(w)))
    rounding = reductions.reduce_max(ops.abs(ops.stop_gradient_p.bind(w)), (len(w.shape) - 1,))
    rounding = ops.mul(rounding, 4 * v.shape[-1] * float(np.finfo(size.dtype).eps))
    distinct = ops.gt_p.bind(size, shapes.expand_dims(rounding, (-1, -2)))
    among = ops.and_p.bind(ops.not_p.bind(distinct), ops.not_p.bind(on_diagonal(v.shape[-1])))
    turn = ops.mul(inner, inverse_where(distinct, differences(w)))
    values_tangent, turn = undetermined_where(among, values_tangent, turn)
    t = product(v, turn)
    along = reductions.reduce_sum(ops.mul(ops.conj(v), t), (rows,))
    parallel = ops.mul(v, shapes.expand_dims(along, (-2,)))
    t = ops.add_any_p.bind(t, ops.neg(parallel))
    # LAPACK makes the largest element of a vector real.
    fixed = ops.stop_gradient_p.bind(v)
    candidates = ops.where(ops.eq_p.bind(ops.imag(fixed), 0), ops.abs(fixed), -1)
    largest = reductions.argmax(candidates, rows, INT32)
    is_pivot = ops.eq_p.bind(iota(INT32, (v.shape[-1], 1), 0), shapes.expand_dims(largest, (-2,)))
    pivot = reductions.reduce_sum(ops.where(is_pivot, ops.real(v), 0), (rows,))
    turned = reductions.reduce_sum(ops.where(is_pivot, ops.imag(t), 0), (rows,))
    phase = ops.convert_element_type(ops.div(turned, pivot), v.dtype)
    turned = ops.mul(ops.mul(v, -1j), shapes.expand_dims(phase, (-2,)))
    return [values_tangent, ops.add_any_p.bind(t, turned)]


@eig_p.lowering
def _eig_lowering(hlo: Any, x: Any, *, left: bool, right: bool) -> list[Any]:
    shape, real, dtype = x.shape, dtypes.to_real(x.dtype), dtypes.to_complex(x.dtype)
    if 0 in shape:
        return [hlo.splat(0, shape[:-1], dtype), *[hlo.splat(0, shape, dtype)] * (left + right)]
    values = [(shape[:-1], x.dtype)] if dtypes.is_complex(x.dtype) else [(shape[:-1], real)] * 2
    results = [*values, (shape, dtype), (shape, dtype)]
    if device_routines.is_gpu(hlo):  # MAGMA on the GPU if it is installed, or LAPACK on the host
        name = "{hybrid}_eig_comp" if dtypes.is_complex(x.dtype) else "{hybrid}_eig_real"
        *w, u, v = compiled_decomposition(hlo, name, x, results, magma="auto", left=left, right=right)
    elif hlo.module.platform == "cpu":
        letters = ["V" if wanted else "N" for wanted in (left, right)]
        *w, u, v = compiled_decomposition(hlo, "geev", x, results, compute_left=letters[0], compute_right=letters[1])
    else:
        device_routines.refuse(hlo, "eig", "geev")
    w = w[0] if len(w) == 1 else hlo.op("stablehlo.complex", w, shape[:-1], dtype)
    return [w, *([u] if left else []), *([v] if right else [])]
