"""Eigenvalues and eigenvectors, of Hermitian matrices and of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions, shapes
from pullback.primitives.decompositions import (
    INT32,
    column_scaled,
    compiled_decomposition,
    decomposed,
    diagonal,
    differences,
    hermitian_of_lower,
    inverse_differences,
    inverse_where,
    one_by_one,
    scaled,
)
from pullback.primitives.linalg import adjoint, check_decomposable, check_square, product
from pullback.primitives.lu import linear_solve
from pullback.primitives.slicing import iota

# Hermitian matrices ------------------------------------------------------------------------------------------------


def eigh(x: Any) -> list[Any]:
    """The eigenvalues of Hermitian matrices, ascending, and eigenvectors, as columns; the lower triangles are read."""
    out: list[Any] = eigh_p.bind(x, vectors=True)
    return out


def eigvalsh(x: Any) -> Any:
    """The eigenvalues of Hermitian matrices, ascending; the lower triangles are read."""
    return eigh_p.bind(x, vectors=False)[0]


# Of the matrices the lower triangles are read, and of their diagonals the real parts. Results: the eigenvalues,
# ascending, and if wanted the eigenvectors.
eigh_p = Primitive("eigh", multiple_results=True, keeps_weak_type=False)


@eigh_p.host
def _eigh_host(x: Any, *, vectors: bool) -> list[Any]:
    if x.size == 0:
        w = np.zeros(x.shape[:-1], dtypes.to_real(x.dtype))
        return [w, x] if vectors else [w]
    return decomposed(np.linalg.eigh if vectors else lambda x: [np.linalg.eigvalsh(x)], x)


@eigh_p.abstract_eval
def _eigh_shape(x: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
    check_square("eigh", x)
    check_decomposable("eigh", x)
    values = ShapedArray(x.shape[:-1], dtypes.to_real(x.dtype))
    return [values, ShapedArray(x.shape, x.dtype)] if vectors else [values]


@eigh_p.jvp
def _eigh_jvp(primals: Any, tangents: Any, *, vectors: bool) -> Any:
    # Of A V = V W, with M = V* dA V: dW is the diagonal of M, and dV = V X, where X has M_ij / (w_j - w_i) off the
    # diagonal. After Giles 2008, "An extended collection of matrix derivative results"; Boeddeker et al. 2017, "On the
    # computation of complex-valued gradients with application to statistically optimum beamforming".
    (x,), (t,) = primals, tangents
    if 0 in x.shape:
        return eigh_p.bind(x, vectors=vectors), [ZERO] * (1 + vectors)
    w, v = eigh(x)
    inner = product(adjoint(v), product(hermitian_of_lower(t), v))
    values_tangent = ops.real(diagonal(inner)) if dtypes.is_complex(x.dtype) else diagonal(inner)
    if not vectors:
        return [w], [values_tangent]
    turn = scaled(inner, inverse_differences(w, x.shape[-1]))
    return [w, v], [values_tangent, product(v, turn)]


@eigh_p.batch
def _eigh_batch(axis: MappedAxis, args: Any, dims: Any, *, vectors: bool) -> Any:
    return eigh_p.bind(shapes.moveaxis(args[0], dims[0], 0), vectors=vectors), [0] * (1 + vectors)


@eigh_p.lowering
def _eigh_xla(hlo: Any, x: Any, *, vectors: bool) -> list[Any]:
    shape, real = x.shape, dtypes.to_real(x.dtype)
    if 0 in shape:
        w = hlo.splat(0, shape[:-1], real)
        return [w, x] if vectors else [w]
    name = "heevd" if dtypes.is_complex(x.dtype) else "syevd"
    results = [(shape, x.dtype), (shape[:-1], real)]
    v, w = compiled_decomposition(hlo, name, x, results, uplo="L", mode="V" if vectors else "N")
    return [w, v] if vectors else [w]


# Other matrices ----------------------------------------------------------------------------------------------------


def eig(x: Any, left: bool, right: bool) -> list[Any]:
    """The eigenvalues of square matrices, then left and right eigenvectors, as columns, of length one, if wanted."""
    out: list[Any] = eig_p.bind(x, left=left, right=right)
    return out


# Results: the eigenvalues, and if wanted the left eigenvectors u, with u* A = w u*, and the right ones v, A v = w v. All
# are complex. Of each vector the largest element is real.
eig_p = Primitive("eig", multiple_results=True, keeps_weak_type=False)


@eig_p.host
def _eig_host(x: Any, *, left: bool, right: bool) -> list[Any]:
    complex_dtype = dtypes.to_complex(x.dtype)
    if x.size == 0:
        return [np.zeros(x.shape[:-1], complex_dtype), *[np.zeros(x.shape, complex_dtype)] * (left + right)]

    def routine(x: Any) -> list[Any]:
        if not (left or right):
            return [np.linalg.eigvals(x).astype(complex_dtype, copy=False)]
        if not left:
            return [out.astype(complex_dtype, copy=False) for out in np.linalg.eig(x)]
        shape = x.shape
        results = [(shape[:-1], complex_dtype), *[(shape, complex_dtype)] * (left + right)]
        return one_by_one(lambda a: _eig_of_one(a, left, right), results, x)

    return decomposed(routine, x)


def _eig_of_one(x: Any, left: bool, right: bool) -> Any:
    return imported("scipy.linalg").eig(x, left=left, right=right, check_finite=False)


@eig_p.abstract_eval
def _eig_shape(x: ShapedArray, *, left: bool, right: bool) -> list[ShapedArray]:
    check_square("eig", x)
    check_decomposable("eig", x)
    dtype = dtypes.to_complex(x.dtype)
    return [ShapedArray(x.shape[:-1], dtype), *[ShapedArray(x.shape, dtype)] * (left + right)]


@eig_p.jvp
def _eig_jvp(primals: Any, tangents: Any, *, left: bool, right: bool) -> Any:
    # Of A V = V W, with M = inv(V) dA V: dW is the diagonal of M, and dV = V X, where X has M_ij / (w_j - w_i) off the
    # diagonal; then the length of the vectors stays one. After Giles 2008; Boeddeker et al. 2017. The left vectors are
    # the right ones of the adjoint.
    (x,), (t,) = primals, tangents
    if 0 in x.shape:
        return eig_p.bind(x, left=left, right=right), [ZERO] * (1 + left + right)
    w, *found = eig(x, left, True)
    v = found[-1]
    t = ops.convert_element_type(t, w.dtype)
    inner = linear_solve(v, product(t, v))
    outs, out_tangents = [w], [diagonal(inner)]
    if left:
        u = found[0]
        inner_of_adjoint = linear_solve(u, product(adjoint(t), u))
        outs.append(u)
        out_tangents.append(_vector_tangent(ops.conj(w), u, inner_of_adjoint))
    if right:
        outs.append(v)
        out_tangents.append(_vector_tangent(w, v, inner))
    return outs, out_tangents


def _vector_tangent(w: Any, v: Any, inner: Any) -> Any:
    """The tangent of eigenvectors whose length stays one, and whose largest element stays real."""
    rows = len(v.shape) - 2
    size = ops.abs(ops.stop_gradient_p.bind(differences(w)))
    rounding = reductions.reduce_max(ops.abs(ops.stop_gradient_p.bind(w)), (len(w.shape) - 1,))
    rounding = ops.mul(rounding, 4 * v.shape[-1] * float(np.finfo(size.dtype).eps))
    apart = ops.gt_p.bind(size, shapes.expand_dims(rounding, (-1, -2)))
    t = product(v, ops.mul(inner, inverse_where(apart, differences(w))))
    along = reductions.reduce_sum(ops.mul(ops.conj(v), t), (rows,))
    t = ops.add_any_p.bind(t, ops.neg(ops.mul(v, shapes.expand_dims(along, (-2,)))))
    # LAPACK makes the largest element of a vector real.
    fixed = ops.stop_gradient_p.bind(v)
    candidates = ops.where(ops.eq_p.bind(ops.imag(fixed), 0), ops.abs(fixed), -1)
    largest = reductions.argmax(candidates, rows, INT32)
    chosen = ops.eq_p.bind(iota(INT32, (v.shape[-1], 1), 0), shapes.expand_dims(largest, (-2,)))
    pivot = reductions.reduce_sum(ops.where(chosen, ops.real(v), 0), (rows,))
    turned = reductions.reduce_sum(ops.where(chosen, ops.imag(t), 0), (rows,))
    phase = ops.convert_element_type(ops.div(turned, pivot), v.dtype)
    return ops.add_any_p.bind(t, ops.mul(ops.mul(v, -1j), shapes.expand_dims(phase, (-2,))))


@eig_p.batch
def _eig_batch(axis: MappedAxis, args: Any, dims: Any, *, left: bool, right: bool) -> Any:
    return eig(shapes.moveaxis(args[0], dims[0], 0), left, right), [0] * (1 + left + right)


@eig_p.lowering
def _eig_xla(hlo: Any, x: Any, *, left: bool, right: bool) -> list[Any]:
    shape, real, dtype = x.shape, dtypes.to_real(x.dtype), dtypes.to_complex(x.dtype)
    if 0 in shape:
        return [hlo.splat(0, shape[:-1], dtype), *[hlo.splat(0, shape, dtype)] * (left + right)]
    values = [(shape[:-1], x.dtype)] if dtypes.is_complex(x.dtype) else [(shape[:-1], real)] * 2
    wanted = {"compute_left": "V" if left else "N", "compute_right": "V" if right else "N"}
    *w, u, v = compiled_decomposition(hlo, "geev", x, [*values, (shape, dtype), (shape, dtype)], **wanted)
    w = w[0] if len(w) == 1 else hlo.op("stablehlo.complex", w, shape[:-1], dtype)
    return [w, *([u] if left else []), *([v] if right else [])]
