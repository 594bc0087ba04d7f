"""Householder reflections in LAPACK's format: those of a QR decomposition, and their products.

Column i of a matrix holds below the diagonal the vector v of the reflection 1 - tau v v*; element i of v is one, and
earlier elements are zero. The product of the reflections is 1 - V T V*, where V has the vectors as columns, and T is
the upper triangular inv(1 + D U) D, with D the diagonal of the numbers tau, and U the part of V* V above the diagonal
(Schreiber and Van Loan 1989, "A storage-efficient WY representation for products of Householder transformations"). The
derivatives are derivatives of this formula.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, Shape, ShapedArray
from pullback.core.zeros import instantiate
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.checks import same_dtype
from pullback.primitives.linalg import device_routines
from pullback.primitives.linalg.decompositions import Results, check_matrices, on_diagonal, one_by_one, upper_left
from pullback.primitives.linalg.lapack import (
    BLOCK,
    adjoint,
    compiled_routine,
    host_routine,
    product,
    rows_minus_columns,
    triangular_solve,
)


class _Block(NamedTuple):
    """A product of Householder reflections, written as 1 - V T V*: the matrices V and T, and the tangents of both."""

    v: Any
    t: Any
    v_tangent: Any
    t_tangent: Any


def _block(primals: Any, tangents: Any) -> _Block:
    (a, taus), (a_tangent, taus_tangent) = primals, tangents
    m, k = a.shape[-2], taus.shape[-1]
    distance = rows_minus_columns(m, k)
    below = ops.gt_p.bind(distance, 0)
    v = ops.where(below, upper_left(a, m, k), ops.convert_element_type(ops.eq_p.bind(distance, 0), a.dtype))
    v_tangent = ops.where(below, upper_left(a_tangent, m, k), 0)
    above = ops.lt_p.bind(rows_minus_columns(k, k), 0)
    upper = ops.where(above, product(adjoint(v), v), 0)
    half = product(adjoint(v), v_tangent)
    upper_tangent = ops.where(above, ops.add_any_p.bind(half, product(adjoint(v_tangent), v)), 0)
    d, d_tangent = (shapes.expand_dims(x, (-1,)) for x in (taus, taus_tangent))
    solve = partial(triangular_solve, ops.mul(d, upper), left_side=True, lower=False, unit_diagonal=True)
    identity = ops.convert_element_type(on_diagonal(k), a.dtype)
    t = solve(ops.mul(d, identity))
    by_d = ops.mul(ops.sub(identity, product(upper, t)), d_tangent)
    by_upper = ops.neg(ops.mul(d, product(upper_tangent, t)))
    return _Block(v, t, v_tangent, solve(ops.add_any_p.bind(by_d, by_upper)))


def _multiplied(a: Any, taus: Any, c: Any, *, transpose: bool) -> Any:
    """Return a product of reflections, or its adjoint, times the matrices ``c``, by the formula 1 - V T V*."""
    v, t, *_ = _block((a, taus), (ops.mul(a, 0), ops.mul(taus, 0)))
    inner = product(adjoint(t) if transpose else t, product(adjoint(v), c))
    return ops.sub(c, product(v, inner))


def _change(block: _Block, c: Any, transpose: bool) -> Any:
    """Return the tangent of the product of reflections in ``block``, times the matrices ``c``.

    With ``transpose`` it is the tangent of the adjoint of that product, times ``c``.
    """
    v, t, v_tangent, t_tangent = block
    if transpose:
        t, t_tangent = adjoint(t), adjoint(t_tangent)
    inner = product(adjoint(v), c)
    within = ops.add_any_p.bind(product(t_tangent, inner), product(t, product(adjoint(v_tangent), c)))
    return ops.neg(ops.add_any_p.bind(product(v_tangent, product(t, inner)), product(v, within)))


def _check(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    check_matrices(name, a)
    same_dtype(name, [a, taus])
    *batch, m, n = a.shape
    if taus.ndim != a.ndim - 1 or list(taus.shape[:-1]) != batch or taus.shape[-1] > min(m, n):
        raise ShapeError(
            f"{name} of matrices of shape {a.shape} takes at most {min(m, n)} factors in the last axis of taus, and "
            f"the leading axes {tuple(batch)}; got shape {taus.shape}"
        )


# The reflections of a QR decomposition ------------------------------------------------------------------------------

# Results: R, with the vectors of the Householder reflections whose product is Q below it, and their factors.
geqrf_p = Primitive("geqrf", multiple_results=True, keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(geqrf_p, 2)


def _reflections(shape: Shape, dtype: np.dtype[Any]) -> Results:
    return [(shape, dtype), ((*shape[:-2], min(shape[-2:])), dtype)]


@geqrf_p.host
def _geqrf_host(x: Any) -> list[Any]:
    if x.size == 0:
        return [np.zeros(shape, dtype) for shape, dtype in _reflections(x.shape, x.dtype)]
    routine = host_routine("lapack", "geqrf", x.dtype)
    return one_by_one(lambda a: routine(a, lwork=BLOCK * a.shape[1])[:2], _reflections(x.shape, x.dtype), x)


@geqrf_p.abstract_eval
def _geqrf_abstract_eval(x: ShapedArray) -> list[ShapedArray]:
    check_matrices("geqrf", x)
    return [ShapedArray(*result) for result in _reflections(x.shape, x.dtype)]


@geqrf_p.lowering
def _geqrf_lowering(hlo: Any, x: Any) -> list[Any]:
    results = _reflections(x.shape, x.dtype)
    if 0 in x.shape:
        return [hlo.splat(0, *result) for result in results]
    return reflected(hlo, x, results)


def reflected(hlo: Any, x: Any, results: Results) -> list[Any]:
    """Emit the decomposition into reflections, whose results are those of LAPACK's geqrf."""
    if device_routines.is_gpu(hlo):
        return device_routines.gpu_routine(hlo, "{solver}_geqrf_ffi", [x], results, {0: 0}, batch=len(x.shape) - 2)
    if hlo.module.platform == "tpu":
        return device_routines.tpu_function(hlo, "Qr", [x], results)
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "qr", "geqrf")
    out: list[Any] = compiled_routine(hlo, "geqrf", [x], results, by_columns=True)
    return out


# The product itself ------------------------------------------------------------------------------------------------


def householder_product(a: Any, taus: Any) -> Any:
    """The first n columns of a product of Householder reflections 1 - tau v v*, as LAPACK stores them.

    Args:
      a: matrices (..., m, n); column i holds the vector v of reflection i below the diagonal.
      taus: the numbers tau of the reflections, (..., k), with k at most n.
    """
    return householder_product_p.bind(a, taus)


householder_product_p = Primitive("householder_product", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(householder_product_p, 2, 1)


@householder_product_p.host
def _householder_host(a: Any, taus: Any) -> Any:
    if a.size == 0:
        return a
    name = "ungqr" if dtypes.is_complex(a.dtype) else "orgqr"
    routine = host_routine("lapack", name, a.dtype)
    return one_by_one(lambda a, taus: routine(a, taus)[:1], [(a.shape, a.dtype)], a, taus)[0]


@householder_product_p.abstract_eval
def _householder_abstract_eval(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    _check("householder_product", a, taus)
    if a.shape[-2] < a.shape[-1]:
        raise ShapeError(f"householder_product takes matrices with no more columns than rows, got shape {a.shape}")
    return ShapedArray(a.shape, a.dtype)


@householder_product_p.jvp
def _householder_jvp(primals: Any, tangents: Any) -> Any:
    out = householder_product(*primals)
    a = primals[0]
    if 0 in a.shape:
        return out, ZERO
    block = _block(primals, [instantiate(t, x) for t, x in zip(tangents, primals, strict=True)])
    first = ops.convert_element_type(ops.eq_p.bind(rows_minus_columns(*a.shape[-2:]), 0), a.dtype)
    return out, _change(block, shapes.broadcast_to(first, a.shape), False)


@householder_product_p.lowering
def _householder_lowering(hlo: Any, a: Any, taus: Any) -> Any:
    if 0 in a.shape:
        return a
    return compiled_product(hlo, a, taus)


def compiled_product(hlo: Any, a: Any, taus: Any) -> Any:
    """Emit the first columns of a product of reflections, as many as ``a`` has; see :func:`householder_product`."""
    results = [(a.shape, a.dtype)]
    if device_routines.is_gpu(hlo):
        name = "{solver}_orgqr_ffi"
        return device_routines.gpu_routine(hlo, name, [a, taus], results, {0: 0}, batch=len(a.shape) - 2)[0]
    if hlo.module.platform == "tpu":
        name = "ProductOfElementaryHouseholderReflectors"
        return device_routines.tpu_function(hlo, name, [a, taus], results)[0]
    if hlo.module.platform != "cpu":
        device_routines.refuse(hlo, "householder_product", "orgqr")
    name = "ungqr" if dtypes.is_complex(a.dtype) else "orgqr"
    return compiled_routine(hlo, name, [a, taus], results, by_columns=True)[0]


# The product times matrices ----------------------------------------------------------------------------------------


def ormqr(a: Any, taus: Any, c: Any, *, transpose: bool) -> Any:
    """A product of Householder reflections 1 - tau v v* (or its adjoint, if ``transpose``), times the matrices ``c``.

    Args:
      a: matrices; column i holds the vector v of reflection i below the diagonal, as in LAPACK.
      taus: the numbers tau of the reflections.
      c: the matrices to multiply.
      transpose: whether to take the adjoint.
    """
    return ormqr_p.bind(a, taus, c, transpose=transpose)


ormqr_p = Primitive("ormqr", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(ormqr_p, 2, 1, 2)


@ormqr_p.host
def _ormqr_host(a: Any, taus: Any, c: Any, *, transpose: bool) -> Any:
    if c.size == 0 or taus.shape[-1] == 0:
        return c
    k, is_complex = taus.shape[-1], dtypes.is_complex(a.dtype)
    routine = host_routine("lapack", "unmqr" if is_complex else "ormqr", a.dtype)
    how = ("C" if is_complex else "T") if transpose else "N"
    space = 64 * max(1, c.shape[-1]) + 4160
    apply = lambda a, taus, c: routine("L", how, a[:, :k], taus, c, space)[:1]
    return one_by_one(apply, [(c.shape, c.dtype)], a, taus, c)[0]


@ormqr_p.abstract_eval
def _ormqr_abstract_eval(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, transpose: bool) -> ShapedArray:
    _check("ormqr", a, taus)
    same_dtype("ormqr", [a, c])
    if c.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            f"ormqr with reflections in an array of shape {a.shape} takes matrices c whose leading axes are "
            f"{a.shape[:-2]} and that have {a.shape[-2]} rows (columns where they are to the left), got shape {c.shape}"
        )
    return ShapedArray(c.shape, c.dtype)


@ormqr_p.jvp
def _ormqr_jvp(primals: Any, tangents: Any, *, transpose: bool) -> Any:
    *reflections, c = primals
    *changes, t = tangents
    out = ormqr_p.bind(*primals, transpose=transpose)
    if 0 in out.shape or 0 in primals[1].shape:
        return out, t
    tangent = ZERO if t is ZERO else ormqr_p.bind(*reflections, t, transpose=transpose)
    if any(x is not ZERO for x in changes):
        block = _block(reflections, [instantiate(t, x) for t, x in zip(changes, reflections, strict=True)])
        change = _change(block, c, transpose)
        tangent = change if tangent is ZERO else ops.add_any_p.bind(tangent, change)
    return out, tangent


@partial(ormqr_p.transpose, linear_in=(2,))
def _ormqr_transpose(ct: Any, a: Any, taus: Any, c: LinearVar, *, transpose: bool) -> Any:
    # The pairing is bilinear: the transpose is the adjoint, conjugated.
    return None, None, ops.conj(ormqr(a, taus, ops.conj(ct), transpose=not transpose))


@ormqr_p.lowering
def _ormqr_lowering(hlo: Any, a: Any, taus: Any, c: Any, *, transpose: bool) -> Any:
    if 0 in c.shape or taus.shape[-1] == 0:
        return c
    vectors = hlo.inline(lambda a: upper_left(a, a.shape[-2], taus.shape[-1]), a)
    results = [(c.shape, c.dtype)]
    if device_routines.is_gpu(hlo):
        name, operands = "{solver}_ormqr_ffi", [vectors, taus, c]
        batch = len(c.shape) - 2
        return device_routines.gpu_routine(
            hlo, name, operands, results, {2: 0}, batch=batch, left=True, transpose=transpose
        )[0]
    if hlo.module.platform != "cpu":
        return hlo.inline(partial(_multiplied, transpose=transpose), vectors, taus, c)
    name = "unmqr" if dtypes.is_complex(a.dtype) else "ormqr"
    return compiled_routine(hlo, name, [vectors, taus, c], results, by_columns=True, left=True, transpose=transpose)[0]
