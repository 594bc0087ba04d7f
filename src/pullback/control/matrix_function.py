"""Functions of Hermitian matrices, and their derivatives of every order, as primitives.

With A = V W V*, f(A) is V f(W) V*. Its derivative in directions E1, ..., Ek is the sum, over the permutations of these,
of V T V*. With M = V* E V, T has the elements sum f[w_i, w_j, ..., w_l] M1_ij ... Mk_(..)l, with divided differences of
f (Daleckii and Krein 1965; N. J. Higham 2008, "Functions of Matrices", theorem 3.11 and section 3.2). It is symmetric
in the directions: a further derivative has a further direction, and the transpose has the cotangent instead of a
direction. Eigenvectors are never differentiated: the basis of equal or nearly equal eigenvalues does not matter, and
there is no division by small differences where that would lose digits.

A function may capture other arrays. The derivative with respect to one of them is another function of the matrix,
linear in the tangent, which is a further captured array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import combinations, permutations
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.jaxpr import eval_jaxpr
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import mapped_to_front
from pullback.primitives.linalg.decompositions import diagonal, scaled
from pullback.primitives.linalg.eigen import eigh
from pullback.primitives.linalg.lapack import adjoint, matrix_transpose, product
from pullback.primitives.special import zeta_series  # noqa: F401 (rules for Taylor mode)
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.stage import stage_flat
from pullback.transforms.traces.taylor import taylor_flat


class Scalar:
    """A function of a scalar and of captured arrays, as a parameter of primitives.

    Attributes:
      call: ``call(x, *captured) -> scalar``.
      name: its name, for jaxprs and errors.
    """

    __slots__ = ("call", "name")

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self.call, self.name = call, name

    def along(self, i: int) -> Scalar:
        """The derivative with respect to captured array ``i``, as a function of ``x`` and the captured arrays.

        Its last argument, a further captured array, is the tangent of array ``i``.
        """

        def derivative(x: Any, *captured: Any) -> Any:
            *arrays, t = captured
            of_one = lambda c: self.call(x, *arrays[:i], c, *arrays[i + 1 :])
            return jvp(of_one, (arrays[i],), (t,))[1]

        return Scalar(derivative, f"{self.name}'")

    def __repr__(self) -> str:
        return self.name


def matrix_function(f: Callable[[Any], Any], a: Any) -> Any:
    """Apply a scalar function to Hermitian matrices: to their eigenvalues, with the same eigenvectors.

    Args:
      f: a function of a real scalar.
      a: the matrices.
    """
    real = dtypes.to_real(a.dtype)
    flat = FlatFunction(lambda x: f(x), described=f)
    closed = stage_flat(f, flat, [ShapedArray((), real)], "linalg.matrix_function")
    outs = closed.out_avals
    if len(outs) != 1 or outs[0].shape != ():
        raise ShapeError(f"linalg.matrix_function: {name_of(f)} must return a number for a number, got {outs}")
    if dtypes.is_complex(outs[0].dtype):
        a = ops.convert_element_type(a, dtypes.to_complex(a.dtype))
    if not dtypes.is_inexact(outs[0].dtype) or dtypes.promote_types(outs[0].dtype, a.dtype) != a.dtype:
        raise DtypeError(
            f"linalg.matrix_function: {name_of(f)} must return a float or complex number of the precision of the "
            f"matrices, {a.dtype}, got {outs[0]}"
        )
    jaxpr, consts = closed.jaxpr, closed.consts
    scalar = Scalar(lambda x, *captured: eval_jaxpr(jaxpr, captured, x)[0], name_of(f))
    return matrix_function_p.bind(a, *consts, function=scalar, shared=(True,) * len(consts))


# Divided differences -------------------------------------------------------------------------------------------------


def _taylor_coefficients(function: Scalar, w: Any, captured: Sequence[Any], shared: Sequence[bool], order: int) -> Any:
    """The Taylor coefficients of orders 0 to ``order`` of a scalar function, at each of the points ``w``.

    Args:
      function: the function.
      w: the eigenvalues of the matrices, an array (..., n).
      captured: the captured arrays of the function.
      shared: which captured arrays are the same for all matrices; the others have the leading axes of ``w``.
      order: the highest order.
    """
    axes = [None if same else 0 for same in shared]
    of_row: Any = lambda row, *captured: vmap(lambda x: function.call(x, *captured))(row)
    if all(shared):
        flat = shapes.reshape(w, (_size(w.shape),))
        run: Any = lambda x: [of_row(x, *captured)]
    else:
        lead = w.shape[:-1]
        flat = shapes.reshape(w, (_size(lead), w.shape[-1]))
        own = [
            c if same else shapes.reshape(c, (_size(lead), *c.shape[len(lead) :]))
            for c, same in zip(captured, shared, strict=True)
        ]
        run = lambda x: [vmap(of_row, in_axes=(0, *axes))(x, *own)]
    if order == 0:
        return [shapes.reshape(run(flat)[0], w.shape)]
    direction = shapes.full(flat.shape, 1, flat.dtype)
    (value,), (series,) = taylor_flat(function.call, run, [flat], [[direction, *[ZERO] * (order - 1)]], order)
    found = [shapes.zeros_like(value) if c is ZERO else c for c in (value, *series)]
    return [shapes.reshape(c, w.shape) for c in found]


def _size(shape: Sequence[int]) -> int:
    """The number of elements of a shape."""
    return int(np.prod(shape, dtype=int))


def _broadcast_axes(x: Any, axes: Sequence[int], count: int) -> Any:
    """Reshape ``x`` to ``count`` last axes: its own last axes get the positions ``axes`` among them, the others size 1.

    For ``axes`` (0, 2) and ``count`` 3, an array (..., m, n) becomes (..., m, 1, n).
    """
    lead = len(x.shape) - len(axes)
    return shapes.expand_dims(x, [lead + i for i in range(count) if i not in axes])


def divided_differences(coefficients: Sequence[Any], w: Any, k: int, near: list[Any] | None = None) -> Any:
    """The divided differences f[w_i, ..., w_l] of order k, for all tuples of k + 1 nodes.

    Two methods are evaluated with an estimate of the error, and for each element the better result is selected. For
    separate nodes: the quotient of the differences of order k - 1 and the largest gap. For close nodes: the Taylor
    series about the first node, sum a_j h_(j - k)(w_j - w_i, ...), with the complete homogeneous symmetric polynomials
    h. It must agree with the quotient within the quotient's error, so that it does not reach beyond a kink.

    Args:
      coefficients: the Taylor coefficients at the nodes, arrays (..., n).
      w: the nodes (..., n).
      k: the order.
      near: for each order a mask: where the Taylor series is used. An empty list receives these masks. With given masks
        the result is linear in the coefficients, also in derivatives.

    Returns:
      An array (..., n, ..., n) with k + 1 axes of nodes.
    """
    if k == 0:
        return coefficients[0]
    return _with_errors(coefficients, w, k, [] if near is None else near, known=bool(near))[0]


def _with_errors(coefficients: Sequence[Any], w: Any, k: int, near: list[Any], known: bool) -> tuple[Any, Any]:
    """Return the divided differences of order k, and estimates of their errors.

    Args:
      coefficients: the Taylor coefficients of the function at the nodes.
      w: the nodes (..., n).
      k: the order.
      near: a mask for each order from 1: where to use the Taylor series instead of a quotient of differences.
      known: whether ``near`` already has the masks; otherwise this function computes the masks and appends them to
        ``near``.
    """
    # A value may be exact for a neighbouring argument: this counts as an error, by the slope.
    epsilon = float(np.finfo(w.dtype).eps)
    if k == 0:
        value, slope = (ops.abs(ops.stop_gradient_p.bind(c)) for c in coefficients[:2])
        return coefficients[0], (value + ops.abs(w) * slope) * (2 * epsilon)
    below, error = _with_errors(coefficients, w, k - 1, near, known)
    gap, change, bound = _widest(below, error, w, k)
    distinct = ops.ne_p.bind(gap, 0)
    inverse = ops.div(1, ops.where(distinct, gap, 1))
    quotient = scaled(change, inverse)
    if known:
        use_series = near[k - 1]
        return ops.where(use_series, _near_series(coefficients, w, k, use_series)[0], quotient), bound
    far_error = ops.where(distinct, ops.mul(bound, ops.abs(inverse)), np.inf)
    series, near_error = _near_series(coefficients, w, k, None)
    agree = ops.le_p.bind(ops.abs(ops.sub(series, quotient)), ops.mul(far_error, 16))
    agree = ops.or_p.bind(agree, ops.not_p.bind(distinct))
    use_series = ops.and_p.bind(ops.lt(near_error, far_error), agree)
    near.append(use_series)
    out = ops.where(use_series, series, quotient)
    return out, ops.add(ops.where(use_series, near_error, far_error), ops.mul(ops.abs(out), epsilon))


def _widest(below: Any, error: Any, w: Any, k: int) -> tuple[Any, Any, Any]:
    """For each tuple of k + 1 nodes, find the two nodes that are farthest apart.

    Args:
      below: the divided differences of order k - 1.
      error: bounds of their errors.
      w: the nodes (..., n).
      k: the order.

    Returns:
      The gap between the two nodes; the difference of the two entries of ``below`` that each lack one of the nodes; and
      a bound of the error of this difference.
    """
    nodes = [_broadcast_axes(w, (r,), k + 1) for r in range(k + 1)]
    others = [[i for i in range(k + 1) if i != r] for r in range(k + 1)]
    values = [_broadcast_axes(below, axes, k + 1) for axes in others]
    errors = [_broadcast_axes(error, axes, k + 1) for axes in others]
    found: Any = None
    for p, q in combinations(range(k + 1), 2):
        new = ops.sub(nodes[q], nodes[p]), ops.sub(values[p], values[q]), ops.add(errors[p], errors[q])
        if found is not None:
            wider = ops.gt(ops.abs(new[0]), ops.abs(found[0]))
            new = tuple([ops.where(wider, a, b) for a, b in zip(new, found, strict=True)])
        found = new
    return found  # type: ignore[no-any-return]


def _near_series(coefficients: Sequence[Any], w: Any, k: int, use_series: Any) -> tuple[Any, Any]:
    """The divided differences of order k by the Taylor series about the first node, and bounds of their errors.

    Args:
      coefficients: the Taylor coefficients of the function at the nodes.
      w: the nodes (..., n).
      k: the order.
      use_series: a mask of the differences to compute; None for all.

    Returns:
      The differences, and the bounds. With a mask, the differences outside the mask are finite but meaningless, and the
      bounds are None.
    """
    first = _broadcast_axes(w, (0,), k + 1)
    distances = [ops.sub(_broadcast_axes(w, (r,), k + 1), first) for r in range(1, k + 1)]
    if use_series is not None:
        distances = [ops.where(use_series, d, 0) for d in distances]
    powers: list[Any] = [1.0] * k
    terms = [_broadcast_axes(coefficients[k], (0,), k + 1)]
    for c in coefficients[k + 1 :]:
        for r, d in enumerate(distances):
            powers[r] = ops.mul(d, powers[r]) if r == 0 else ops.add(ops.mul(d, powers[r]), powers[r - 1])
        terms.append(scaled(_broadcast_axes(c, (0,), k + 1), powers[-1]))
    total = reduce(ops.add, terms)
    if use_series is not None:
        return total, None
    sizes = [ops.abs(term) for term in terms]
    moved = _broadcast_axes(ops.mul(ops.mul(ops.abs(coefficients[k + 1]), k + 1), ops.abs(w)), (0,), k + 1)
    rounded = ops.mul(ops.add(reduce(ops.add, sizes), moved), 2 * float(np.finfo(w.dtype).eps))
    return total, ops.add(ops.add(sizes[-1], sizes[-2]), rounded)


def _order(k: int, dtype: np.dtype[Any]) -> int:
    """The highest order of Taylor coefficients that divided differences of order k need in a dtype."""
    return k + (16 if dtype.itemsize == 8 else 8) if k else 0


# Common formulas -----------------------------------------------------------------------------------------------------


def _decomposed(function: Scalar, a: Any, captured: Sequence[Any], shared: Sequence[bool], k: int) -> tuple[Any, Any]:
    """Return the eigenvectors of ``a``, and the divided differences of order k of ``function`` at the eigenvalues.

    ``captured`` are the arrays that ``function`` closes over; ``shared`` flags those that all matrices share.
    """
    w, v = eigh(a)
    coefficients = _taylor_coefficients(function, w, captured, shared, _order(k, w.dtype))
    return v, ops.convert_element_type(divided_differences(coefficients, w, k), a.dtype)


def _inner(v: Any, directions: Sequence[Any]) -> list[Any]:
    """Transform the directions (matrices E) to the basis of the eigenvectors V: V* E V for each."""
    if not directions:
        return []
    v = shapes.broadcast_to(v, directions[0].shape)
    return [product(adjoint(v), product(e, v)) for e in directions]


def _paths(inner: Sequence[Any]) -> Any:
    """Multiply the k matrices ``inner`` along paths of indices, and add the products for all orders of the matrices.

    For two matrices, element (i, j, l) of the result is A[i, j] B[j, l] + B[i, j] A[j, l].
    """
    k = len(inner)
    terms = []
    for order in permutations(range(k)):
        factors = [_broadcast_axes(inner[m], (r, r + 1), k + 1) for r, m in enumerate(order)]
        terms.append(reduce(ops.mul, factors))
    return reduce(ops.add, terms)


def _value(a: Any, *captured: Any, function: Scalar, shared: tuple[bool, ...]) -> Any:
    """Apply the scalar ``function`` to the eigenvalues W of the matrices ``a``: V f(W) V*, with the eigenvectors V.

    ``captured`` are the arrays that ``function`` closes over; ``shared`` flags those that all matrices share.
    """
    if 0 in a.shape:
        return a
    v, values = _decomposed(function, a, captured, shared, 0)
    return product(ops.mul(v, shapes.expand_dims(values, (-2,))), adjoint(v))


def _along(t: Any, a: Any, *rest: Any, count: int, function: Scalar, shared: tuple[bool, ...]) -> Any:
    """The derivative of order ``count`` of the matrix function of ``function``, along ``count`` directions.

    Args:
      t: the first direction.
      a: the matrices.
      rest: the other directions, followed by the arrays that ``function`` closes over.
      count: the number of directions.
      function: the scalar function.
      shared: for each array that ``function`` closes over, whether it is the same for all matrices.
    """
    if 0 in t.shape:
        return t
    directions, captured = (t, *rest[: count - 1]), rest[count - 1 :]
    v, table = _decomposed(function, a, captured, shared, count)
    terms = ops.mul(table, _paths(_inner(v, directions)))
    lead = len(t.shape) - 2
    if count > 1:
        terms = reductions.reduce_sum(terms, tuple(range(lead + 1, lead + count)))
    v = shapes.broadcast_to(v, t.shape)
    return product(v, product(terms, adjoint(v)))


def _by_captured(t: Any, a: Any, *rest: Any, count: int, function: Scalar, index: int) -> Any:
    """The tangent of the derivative of order ``count``, for a tangent of one array that ``function`` closes over.

    The derivative is that of :func:`_along`: of the matrix function, along ``count`` directions. For ``count`` 0 it is
    the value of the matrix function. The captured arrays are the arrays that ``function`` closes over.

    Args:
      t: the tangent of one captured array.
      a: the matrices.
      rest: the directions, followed by the captured arrays.
      count: the number of directions.
      function: the scalar function.
      index: the index of the captured array that has the tangent.
    """
    directions, captured = rest[:count], (*rest[count:], t)
    along, shared = function.along(index), (False,) * len(captured)
    if not directions:
        return _value(a, *captured, function=along, shared=shared)
    return _along(directions[0], a, *directions[1:], *captured, count=count, function=along, shared=shared)


def _cotangent(ct: Any, a: Any, *rest: Any, count: int, function: Scalar, index: int) -> Any:
    """The cotangent of one array that ``function`` closes over: the transpose of :func:`_by_captured`.

    Args:
      ct: the cotangent of the derivative of the matrix function along ``count`` directions.
      a: the matrices.
      rest: the directions, followed by the captured arrays.
      count: the number of directions.
      function: the scalar function.
      index: the index of the captured array whose cotangent is computed.
    """
    directions, captured = rest[:count], rest[count:]
    if 0 in ct.shape:
        return shapes.zeros_like(captured[index])
    w, v = eigh(a)
    order, shared = _order(count, w.dtype), (False,) * len(captured)
    inner = product(matrix_transpose(v), product(ct, ops.conj(v)))
    if count:
        weights = ops.mul(_paths(_inner(v, directions)), _broadcast_axes(inner, (0, count), count + 1))
    else:
        weights = diagonal(inner)
    near: list[Any] = []
    fixed = [ops.stop_gradient_p.bind(c) for c in captured]
    divided_differences(_taylor_coefficients(function, w, fixed, shared, order), w, count, near)

    def pairing(c: Any) -> Any:
        arrays = [*captured[:index], c, *captured[index + 1 :]]
        table = divided_differences(_taylor_coefficients(function, w, arrays, shared, order), w, count, near)
        terms = ops.mul(ops.convert_element_type(table, weights.dtype), weights)
        total = reductions.reduce_sum(terms, tuple(range(len(terms.shape))))
        return ops.real(total) if dtypes.is_complex(total.dtype) else total

    total, pull = vjp(pairing, captured[index])
    return pull(shapes.full((), 1, total.dtype))[0]


def _cotangent_along(u: Any, ct: Any, a: Any, *rest: Any, count: int, function: Scalar, indices: Any) -> Any:
    """The tangent of the result of :func:`_cotangent`, for a tangent of one captured array.

    Args:
      u: the tangent of captured array j.
      ct: the cotangent of the derivative of the matrix function along ``count`` directions.
      a: the matrices.
      rest: the directions, followed by the captured arrays.
      count: the number of directions.
      function: the scalar function.
      indices: the pair (j, i): ``u`` is the tangent of array j, and the cotangent is that of array i.
    """
    j, i = indices
    return _cotangent(ct, a, *rest, u, count=count, function=function.along(j), index=i)


# The operations ------------------------------------------------------------------------------------------------------

# All except the first are linear in the first operand: a direction, the tangent of a captured array, a cotangent, and
# the tangent of a captured array. The matrices follow (in the last, after a cotangent), then other directions, then the
# captured arrays. In the first two, matrices may share captured arrays, and in the second, directions may share
# matrices, whose leading axes then have size 1.
matrix_function_p = Primitive("matrix_function", keeps_weak_type=False)
matrix_function_along_p = Primitive("matrix_function_along", keeps_weak_type=False)
by_captured_p = Primitive("matrix_function_by_captured", keeps_weak_type=False)
cotangent_p = Primitive("matrix_function_cotangent", keeps_weak_type=False)
cotangent_along_p = Primitive("matrix_function_cotangent_along", keeps_weak_type=False)

for _p, _formula in (
    (matrix_function_p, _value),
    (matrix_function_along_p, _along),
    (by_captured_p, _by_captured),
    (cotangent_p, _cotangent),
    (cotangent_along_p, _cotangent_along),
):
    _p.decomposition(_formula)

matrix_function_p.abstract_eval(lambda a, *captured, function, shared: ShapedArray(a.shape, a.dtype))
matrix_function_along_p.abstract_eval(lambda t, a, *rest, **params: ShapedArray(t.shape, t.dtype))
by_captured_p.abstract_eval(lambda t, a, *rest, **params: ShapedArray(a.shape, a.dtype))


@cotangent_p.abstract_eval
def _cotangent_abstract_eval(
    ct: ShapedArray, a: ShapedArray, *rest: ShapedArray, count: int, function: Scalar, index: int
) -> Any:
    of = rest[count + index]
    return ShapedArray(of.shape, of.dtype)


@cotangent_along_p.abstract_eval
def _cotangent_along_abstract_eval(
    u: Any, ct: Any, a: Any, *rest: Any, count: int, function: Scalar, indices: Any
) -> Any:
    of = rest[count + indices[1]]
    return ShapedArray(of.shape, of.dtype)


def _total(terms: Sequence[Any]) -> Any:
    """The sum of tangents; ``ZERO`` if there are none."""
    return reduce(ops.add_any_p.bind, terms) if terms else ZERO


def _for_all(lead: Any, a: Any, captured: Sequence[Any], shared: Sequence[bool]) -> tuple[Any, list[Any]]:
    """Broadcast the matrices ``a`` to the leading axes ``lead``, and the captured arrays that all matrices share.

    Returns:
      The matrices, and all captured arrays. Arrays that ``shared`` flags get the leading axes; others are unchanged.
    """
    own = [shapes.broadcast_to(c, (*lead, *c.shape)) if same else c for c, same in zip(captured, shared, strict=True)]
    return shapes.broadcast_to(a, (*lead, *a.shape[-2:])), own


def _of_captured(
    lead: Any, a: Any, directions: Sequence[Any], captured: Any, tangents: Any, function: Scalar, shared: Any
) -> list[Any]:
    """The terms of a jvp that are due to the tangents of the arrays that the scalar ``function`` closes over.

    Args:
      lead: the sizes of the leading axes of the result.
      a: the matrices.
      directions: the directions of the derivative of the matrix function whose jvp is computed.
      captured: the arrays that ``function`` closes over.
      tangents: their tangents; ``ZERO`` contributes no term.
      function: the scalar function.
      shared: for each captured array, whether it is the same for all matrices.
    """
    if all(t is ZERO for t in tangents):
        return []
    a, own = _for_all(lead, a, captured, shared)
    return [
        by_captured_p.bind(
            shapes.broadcast_to(t, c.shape), a, *directions, *own, count=len(directions), function=function, index=i
        )
        for i, (t, c) in enumerate(zip(tangents, own, strict=True))
        if t is not ZERO
    ]


@matrix_function_p.jvp
def _value_jvp(primals: Any, tangents: Any, *, function: Scalar, shared: tuple[bool, ...]) -> Any:
    (a, *captured), (t, *of_captured) = primals, tangents
    params: Any = {"function": function, "shared": shared}
    terms = [] if t is ZERO else [matrix_function_along_p.bind(t, a, *captured, count=1, **params)]
    terms += _of_captured(a.shape[:-2], a, (), captured, of_captured, function, shared)
    return matrix_function_p.bind(*primals, **params), _total(terms)


@matrix_function_along_p.jvp
def _along_jvp(primals: Any, tangents: Any, *, count: int, function: Scalar, shared: tuple[bool, ...]) -> Any:
    t, a, *rest = primals
    dirs, captured = [t, *rest[: count - 1]], rest[count - 1 :]
    of_dirs, of_captured = [tangents[0], *tangents[2 : count + 1]], tangents[count + 1 :]
    params: Any = {"function": function, "shared": shared}
    terms = [
        matrix_function_along_p.bind(new, a, *dirs[:i], *dirs[i + 1 :], *captured, count=count, **params)
        for i, new in enumerate(of_dirs)
        if new is not ZERO
    ]
    if tangents[1] is not ZERO:
        new = shapes.broadcast_to(tangents[1], t.shape)
        terms.append(matrix_function_along_p.bind(new, a, *dirs, *captured, count=count + 1, **params))
    terms += _of_captured(t.shape[:-2], a, dirs, captured, of_captured, function, shared)
    return matrix_function_along_p.bind(*primals, count=count, **params), _total(terms)


@partial(matrix_function_along_p.transpose, linear_in=(0,))
def _along_transpose(ct: Any, t: LinearVar, a: Any, *rest: Any, **params: Any) -> Any:
    # The pairing of ct with the derivative D in a direction is tr(ct' D), which is symmetric in ct' and the direction.
    out = matrix_transpose(matrix_function_along_p.bind(matrix_transpose(ct), a, *rest, **params))
    return out, *[None] * (1 + len(rest))


@by_captured_p.jvp
def _by_captured_jvp(primals: Any, tangents: Any, *, count: int, function: Scalar, index: int) -> Any:
    t, a, *rest = primals
    dirs, captured = rest[:count], [*rest[count:], t]
    of_dirs, of_captured = tangents[2 : count + 2], tangents[count + 2 :]
    along, shared = function.along(index), (False,) * len(captured)
    params: Any = {"count": count, "function": function, "index": index}
    terms = [] if tangents[0] is ZERO else [by_captured_p.bind(tangents[0], a, *rest, **params)]
    for i, new in enumerate(of_dirs):
        if new is not ZERO:
            others = (*dirs[:i], *dirs[i + 1 :], *captured)
            terms.append(matrix_function_along_p.bind(new, a, *others, count=count, function=along, shared=shared))
    if tangents[1] is not ZERO:
        others = (*dirs, *captured)
        new = matrix_function_along_p.bind(tangents[1], a, *others, count=count + 1, function=along, shared=shared)
        terms.append(new)
    terms += _of_captured(a.shape[:-2], a, dirs, captured, [*of_captured, ZERO], along, shared)
    return by_captured_p.bind(*primals, **params), _total(terms)


@partial(by_captured_p.transpose, linear_in=(0,))
def _by_captured_transpose(ct: Any, t: LinearVar, a: Any, *rest: Any, **params: Any) -> Any:
    return cotangent_p.bind(ct, a, *rest, **params), *[None] * (1 + len(rest))


def _swapped(t: Any, ct: Any) -> tuple[Any, Any]:
    """Return the transpose of the direction ``t``, for use as a cotangent, and that of ``ct``, for use as a direction.

    The inner product of the cotangent with the derivative along the direction is the same for the new pair.
    """
    return matrix_transpose(t), matrix_transpose(ct)


@cotangent_p.jvp
def _cotangent_jvp(primals: Any, tangents: Any, *, count: int, function: Scalar, index: int) -> Any:
    ct, a, *rest = primals
    dirs, captured = rest[:count], rest[count:]
    of_dirs, of_captured = tangents[2 : count + 2], tangents[count + 2 :]
    params: Any = {"function": function, "index": index}
    terms = [] if tangents[0] is ZERO else [cotangent_p.bind(tangents[0], a, *rest, count=count, **params)]
    for i, new in enumerate(of_dirs):
        if new is not ZERO:
            first, other = _swapped(new, ct)
            others = (other, *dirs[:i], *dirs[i + 1 :], *captured)
            terms.append(cotangent_p.bind(first, a, *others, count=count, **params))
    if tangents[1] is not ZERO:
        first, other = _swapped(tangents[1], ct)
        terms.append(cotangent_p.bind(first, a, other, *dirs, *captured, count=count + 1, **params))
    for j, new in enumerate(of_captured):
        if new is not ZERO:
            indices = (j, index)
            terms.append(cotangent_along_p.bind(new, ct, a, *rest, count=count, function=function, indices=indices))
    return cotangent_p.bind(*primals, count=count, **params), _total(terms)


@partial(cotangent_p.transpose, linear_in=(0,))
def _cotangent_transpose(ct: Any, t: LinearVar, a: Any, *rest: Any, **params: Any) -> Any:
    return by_captured_p.bind(ct, a, *rest, **params), *[None] * (1 + len(rest))


@cotangent_along_p.jvp
def _cotangent_along_jvp(primals: Any, tangents: Any, *, count: int, function: Scalar, indices: Any) -> Any:
    u, *others = primals
    j, i = indices
    # As for the cotangent of the derivative along u, with a further term for the tangent of u, the first operand.
    along: Any = {"count": count, "function": function.along(j), "index": i}
    params: Any = {"count": count, "function": function, "indices": indices}
    _, t = _cotangent_jvp((*others, u), (*tangents[1:], ZERO), **along)
    terms = [] if t is ZERO else [t]
    if tangents[0] is not ZERO:
        terms.append(cotangent_along_p.bind(tangents[0], *others, **params))
    return cotangent_along_p.bind(*primals, **params), _total(terms)


@partial(cotangent_along_p.transpose, linear_in=(0,))
def _cotangent_along_transpose(ct: Any, t: LinearVar, *others: Any, indices: Any, **params: Any) -> Any:
    return cotangent_along_p.bind(ct, *others, indices=indices[::-1], **params), *[None] * len(others)


# Batches -------------------------------------------------------------------------------------------------------------


def _mapped(axis: MappedAxis, lead: Any, captured: Any, dims: Any, shared: Any) -> tuple[list[Any], tuple[bool, ...]]:
    """Move the mapped axis of captured arrays to the front, as a further leading axis of the matrices.

    Args:
      axis: the mapped axis.
      lead: the other leading axes of the matrices.
      captured: the captured arrays.
      dims: the position of the mapped axis in each captured array; None for an array without this axis.
      shared: for each captured array, whether it is the same for all matrices.

    Returns:
      The moved arrays; and for each array whether it is still the same for all matrices.
    """
    out, still = [], []
    for c, dim, same in zip(captured, dims, shared, strict=True):
        still.append(same and dim is None)
        if same and dim is not None:
            c = shapes.moveaxis(c, dim, 0)
            c = shapes.expand_dims(c, range(1, 1 + len(lead)))
            c = shapes.broadcast_to(c, (axis.size, *lead, *c.shape[1 + len(lead) :]))
        elif not same:
            c = mapped_to_front(axis, [c], [dim])[0]
        out.append(c)
    return out, tuple(still)


@matrix_function_p.batch
def _value_batch(axis: MappedAxis, args: Any, dims: Any, *, function: Scalar, shared: tuple[bool, ...]) -> Any:
    captured, still = _mapped(axis, args[0].shape[:-2] if dims[0] is None else _without(args[0], dims[0]), args[1:],
                              dims[1:], shared)  # fmt: skip
    (a,) = mapped_to_front(axis, args[:1], dims[:1])
    return matrix_function_p.bind(a, *captured, function=function, shared=still), 0


def _without(x: Any, dim: int) -> tuple[int, ...]:
    """The sizes of the leading axes of the matrices ``x``, without the mapped axis ``dim``."""
    return tuple(n for i, n in enumerate(x.shape) if i != dim)[:-2]


@matrix_function_along_p.batch
def _along_batch(
    axis: MappedAxis, args: Any, dims: Any, *, count: int, function: Scalar, shared: tuple[bool, ...]
) -> Any:
    # Unmapped matrices are not broadcast, so that each is decomposed only once, if all captured arrays are shared.
    positions = [0, *range(2, count + 1)]
    moved = mapped_to_front(axis, [args[i] for i in positions], [dims[i] for i in positions])
    lead = moved[0].shape[1:-2]
    captured, still = _mapped(axis, lead, args[count + 1 :], dims[count + 1 :], shared)
    a = args[1]
    a = shapes.expand_dims(a, (0,)) if dims[1] is None else shapes.moveaxis(a, dims[1], 0)
    if not all(still):
        a = shapes.broadcast_to(a, moved[0].shape)
    out = matrix_function_along_p.bind(moved[0], a, *moved[1:], *captured, count=count, function=function, shared=still)
    return out, 0


for _p in (by_captured_p, cotangent_p, cotangent_along_p):

    @_p.batch
    def _all_mapped(axis: MappedAxis, args: Any, dims: Any, *, _p: Primitive = _p, **params: Any) -> Any:
        return _p.bind(*mapped_to_front(axis, args, dims), **params), 0
