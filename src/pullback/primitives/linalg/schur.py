"""The Schur decomposition, and reductions of matrices to Hessenberg and tridiagonal form.

They have no derivatives, which would need triangular equations that LAPACK does not solve for many matrices in one
call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import Shape, ShapedArray
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import Results, compiled_decomposition, decomposed, one_by_one
from pullback.primitives.linalg.lapack import check_square_matrices, host_routine


def _empty(results: Results) -> list[Any]:
    return [np.zeros(shape, dtype) for shape, dtype in results]


# The Schur decomposition ---------------------------------------------------------------------------------------------

# Results: upper triangular T, which for real matrices with complex eigenvalues has 2 by 2 blocks on the diagonal, and
# if requested unitary Z, with Z T Z* the matrix.
schur_p = Primitive("schur", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(schur_p, 2)


@schur_p.host
def _schur_host(x: Any, *, vectors: bool) -> list[Any]:
    if x.size == 0:
        return [x] * (1 + vectors)
    output = "complex" if dtypes.is_complex(x.dtype) else "real"
    one = lambda a: imported("scipy.linalg").schur(a, output, check_finite=False)
    outs = decomposed(lambda x: one_by_one(one, [(x.shape, x.dtype)] * 2, x), x)
    return outs if vectors else outs[:1]


@schur_p.abstract_eval
def _schur_abstract_eval(x: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
    check_square_matrices("schur", x)
    return [ShapedArray(x.shape, x.dtype)] * (1 + vectors)


@schur_p.lowering
def _schur_lowering(hlo: Any, x: Any, *, vectors: bool) -> list[Any]:
    if 0 in x.shape:
        return [x] * (1 + vectors)
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "schur", "gees")
    matrix, values = (x.shape, x.dtype), (x.shape[:-1], x.dtype)
    eigenvalues = [values] if dtypes.is_complex(x.dtype) else [values] * 2
    results: Results = [matrix, matrix, *eigenvalues, (x.shape[:-2], np.dtype(np.int32))]
    t, z, *_ = compiled_decomposition(hlo, "gees", x, results, mode="V" if vectors else "N", sort="N")
    return [t, z] if vectors else [t]


# Hessenberg form ---------------------------------------------------------------------------------------------------

# Results: a matrix with the Hessenberg form and, below its subdiagonal, Householder vectors; and their factors.
hessenberg_p = Primitive("hessenberg", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(hessenberg_p, 2)


def _hessenberg_results(shape: Shape, dtype: Any) -> Results:
    return [(shape, dtype), ((*shape[:-2], max(shape[-1] - 1, 0)), dtype)]


@hessenberg_p.host
def _hessenberg_host(x: Any) -> list[Any]:
    if x.size == 0:
        return _empty(_hessenberg_results(x.shape, x.dtype))
    routine = host_routine("lapack", "gehrd", x.dtype)
    return decomposed(lambda x: one_by_one(lambda a: routine(a)[:2], _hessenberg_results(x.shape, x.dtype), x), x)


@hessenberg_p.abstract_eval
def _hessenberg_abstract_eval(x: ShapedArray) -> list[ShapedArray]:
    check_square_matrices("hessenberg", x)
    return [ShapedArray(*result) for result in _hessenberg_results(x.shape, x.dtype)]


@hessenberg_p.lowering
def _hessenberg_lowering(hlo: Any, x: Any) -> list[Any]:
    results = _hessenberg_results(x.shape, x.dtype)
    if 0 in x.shape:
        return [hlo.splat(0, *result) for result in results]
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "hessenberg", "gehrd")
    return compiled_decomposition(hlo, "gehrd", x, results, low=1, high=x.shape[-1])


# Tridiagonal form --------------------------------------------------------------------------------------------------

# The operand is Hermitian, and only a triangle is read. Results: a matrix with the Householder vectors in that
# triangle; the real diagonal and off-diagonal; and the factors of the vectors.
tridiagonal_p = Primitive("tridiagonal", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(tridiagonal_p, 2)


def _tridiagonal_results(shape: Shape, dtype: Any) -> Results:
    *batch, n = shape[:-1]
    beside, real = (*batch, max(n - 1, 0)), dtypes.to_real(dtype)
    return [(shape, dtype), ((*batch, n), real), (beside, real), (beside, dtype)]


@tridiagonal_p.host
def _tridiagonal_host(x: Any, *, lower: bool) -> list[Any]:
    if x.size == 0:
        return _empty(_tridiagonal_results(x.shape, x.dtype))
    routine = host_routine("lapack", "hetrd" if dtypes.is_complex(x.dtype) else "sytrd", x.dtype)
    one = lambda a: routine(a, lower=lower)[:4]
    return decomposed(lambda x: one_by_one(one, _tridiagonal_results(x.shape, x.dtype), x), x)


@tridiagonal_p.abstract_eval
def _tridiagonal_abstract_eval(x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_square_matrices("tridiagonal", x)
    return [ShapedArray(*result) for result in _tridiagonal_results(x.shape, x.dtype)]


@tridiagonal_p.lowering
def _tridiagonal_lowering(hlo: Any, x: Any, *, lower: bool) -> list[Any]:
    results = _tridiagonal_results(x.shape, x.dtype)
    if 0 in x.shape:
        return [hlo.splat(0, *result) for result in results]
    if device_routines.is_gpu(hlo):
        return compiled_decomposition(hlo, "{solver}_sytrd_ffi", x, results, {0: 0}, lower=lower)
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "tridiagonal", "sytrd")
    name = "hetrd" if dtypes.is_complex(x.dtype) else "sytrd"
    return compiled_decomposition(hlo, name, x, results, uplo="L" if lower else "U")
