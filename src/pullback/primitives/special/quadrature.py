"""Elementwise integrals of smooth functions by the Gauss-Legendre rule, for compiled formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from decimal import Decimal, localcontext
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from pullback.backends.compiler import one_operation
from pullback.core.array import SCALARS, ArrayImpl, shape_of
from pullback.core.elsewhere import on_host
from pullback.core.taylor_rules import taylor_formula
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT, broadcast_shape, check_dtype, same_dtype
from pullback.primitives.declare import batch_broadcasting, in_double
from pullback.primitives.elementwise import convert_element_type, mul
from pullback.primitives.formulas import formula, lifted
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.special.precision import doubled
from pullback.primitives.sums import add_any

_wanted: ContextVar[bool] = ContextVar("whether double precision is wanted", default=True)


def is_double() -> bool:
    """Return whether the formula that is being evaluated must be accurate to double precision; else single suffices."""
    return _wanted.get()


def cut_off() -> float:
    """Return the h at which to cut off an integrand exp(-h) that falls from 1: the rest is below the rounding error."""
    return 38.0 if is_double() else 19.0


def _nodes() -> int:
    """Return the number of nodes that integrate exp(-h), up to its cut-off, with an error below the rounding error."""
    return 48 if is_double() else 18


def _for_results_of(dtype: np.dtype[Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that evaluates ``formula`` with integrals of the accuracy that results of ``dtype`` need.

    For results of single precision integrals are cut off earlier, and have fewer nodes.
    """

    def evaluated(*operands: Any) -> Any:
        outer = _wanted.set(dtype.itemsize >= 8)
        try:
            return formula(*operands)
        finally:
            _wanted.reset(outer)

    return evaluated


def integral(integrand: Callable[..., Any], end: Any, *operands: Any, narrow: bool = False, split: float = 0) -> Any:
    """Return the integral of ``integrand(y, *operands)`` over y from 0 to ``end``, by the Gauss-Legendre rule.

    Args:
      integrand: a function of arrays, which have a new first axis for the nodes.
      end: the upper limits, in double precision.
      *operands: more operands of the integrand, of the same shape.
      narrow: whether to evaluate the integrand in single precision if the results have single precision. No terms of
        the integrand may cancel then.
      split: the fraction of the interval at which to split it in two, each with all nodes; 0 for no split.
    """
    dtype = np.dtype(np.float32) if narrow and not is_double() else end.dtype
    constants = _rule_in_two(_nodes(), split) if split else rule()
    nodes, weights = (shapes.expand_dims(x, tuple(range(1, len(end.shape) + 1))) for x in constants)
    wide = [shapes.expand_dims(x, (0,)) for x in (end, *operands)]
    points = [mul(wide[0], nodes), *wide[1:]]
    values = integrand(*(convert_element_type(x, dtype) if x.dtype == end.dtype else x for x in points))
    values = convert_element_type(values, end.dtype)
    return mul(end, reduce_sum(mul(values, weights), (0,)))


def formula_integral(integrand: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Return :func:`integral` of an integrand and operands that are formulas: arrays with Python's operators."""
    return lifted(integral)(formula(integrand), *operands, **options)


_BLOCK = 2048


def in_blocks(formula: Callable[..., Any], smooth: bool = False) -> Callable[..., Any]:
    """Make the lowering rule of an elementwise operation from a formula that contains integrals, in double precision.

    More than 2,048 elements are computed in blocks, since the compiler stores the values at all nodes in memory.

    Args:
      formula: the formula, of arrays of one shape.
      smooth: whether each integrand is exp(-h) times a slowly varying factor, with an h that is concave, or linear for
        large h. Integrals for results of single precision are then cut off earlier, and have fewer nodes.
    """

    def rule(hlo: Any, *operands: Any) -> Any:
        shape, dtype = hlo.result.shape, hlo.result.dtype
        of_block = _for_results_of(dtype, formula) if smooth else formula
        size = math.prod(shape)
        if size <= _BLOCK:
            return in_double(of_block)(hlo, *operands)
        count = -(-size // _BLOCK)
        flat = [hlo.reshape(hlo.broadcast(x, shape), (size,)) for x in operands]
        padding = hlo.splat(1, (count * _BLOCK - size,), dtype)
        padded = [hlo.concatenate([x, padding], 0) if padding.shape[0] else x for x in flat]
        index = np.dtype(np.int64)
        zero, width = hlo.number(0, index), hlo.number(_BLOCK, index)
        kinds = [((), index), ((count * _BLOCK,), dtype)]

        def body(i: Any, out: Any) -> list[Any]:
            sizes = f"slice_sizes = array<i64: {_BLOCK}>"
            blocks = [hlo.op("stablehlo.dynamic_slice", [x, i], (_BLOCK,), dtype, sizes) for x in padded]
            wide = [hlo.convert(block, np.dtype(np.float64)) for block in blocks]
            new = hlo.convert(hlo.inline(of_block, *wide), dtype)
            out = hlo.op("stablehlo.dynamic_update_slice", [out, new, i], out.shape, dtype)
            return [hlo.elementwise("stablehlo.add", i, width), out]

        going = hlo.region(kinds, lambda i, out: [hlo.compare(i, hlo.number(count * _BLOCK, index), "LT")])
        start = [zero, hlo.splat(0, (count * _BLOCK,), dtype)]
        out = hlo.multi_result("stablehlo.while", start, kinds, regions=[going, hlo.region(kinds, body)])[1]
        return hlo.reshape(hlo.slice(out, (0,), (size,)), shape)

    return rule


SERIES_BELOW = 110.0
"""The h at which an integrand exp(-h) is cut off if its derivatives are integrated too: h**20 exp(-h) is small."""


def in_series(p: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the Taylor rule of an elementwise operation ``p``: a formula of integrals whose nodes are constants.

    Return a decorator for the formula, which takes arrays of double precision and one shape. Its Taylor coefficients do
    not cancel if the derivatives of the integrand do not change sign. The recurrence of a differential equation would
    cancel if another solution of the equation grows faster.
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        def rule(*operands: Any, **params: Any) -> Any:
            shape = broadcast_shape(p.name, [shape_of(x) for x in operands])
            return doubled(lambda *wide: formula(*[shapes.broadcast_to(x, shape) for x in wide], **params))(*operands)

        taylor_formula(p)(rule)
        return formula

    return register


_FEW = 1024
"""The most elements for which a formula is evaluated eagerly, on 48 times as many nodes; larger arrays are compiled."""


def by_integrals(
    name: str, formula: Callable[..., Any], jvp: Sequence[Callable[..., Any]], smooth: bool = False
) -> Primitive:
    """Declare an elementwise operation whose formula contains integrals.

    Args:
      name: the name in jaxprs and errors.
      formula: ``formula(*operands, **params)``, of arrays of double precision and one shape.
      jvp: for each operand ``rule(t, *operands, **params) -> tangent``, where ``t`` is the operand's tangent.
      smooth: whether each integrand is exp(-h) times a slowly varying factor, with an h that is concave, or linear for
        large h.
    """
    p = Primitive(name, elementwise=True, cost=Cost.SPECIAL)
    p.batch_rule = batch_broadcasting(p)
    p.lowering_rule = lambda hlo, *operands, **params: in_blocks(partial(formula, **params), smooth)(hlo, *operands)

    @p.abstract_eval
    def shape(*avals: ShapedArray, **params: Any) -> ShapedArray:
        dtype = same_dtype(name, avals)
        check_dtype(name, FLOAT, dtype)
        return ShapedArray(broadcast_shape(name, [a.shape for a in avals]), dtype)

    @p.impl
    @on_host(p)
    def evaluate(operands: Sequence[Any], params: dict[str, Any]) -> Any:
        shape = broadcast_shape(name, [shape_of(x) for x in operands])
        if math.prod(shape) > _FEW:
            return one_operation.evaluate(p, operands, params)
        dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
        arrays = [shapes.full((), x, dtype) if type(x) in SCALARS else x for x in operands]
        wide = [shapes.broadcast_to(convert_element_type(x, np.dtype(np.float64)), shape) for x in arrays]
        exact = partial(formula, **params)
        weak = all(x.weak_type for x in operands if type(x) not in SCALARS)
        return convert_element_type((_for_results_of(dtype, exact) if smooth else exact)(*wide), dtype, weak)

    @p.jvp
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        terms = [one(t, *primals, **params) for one, t in zip(jvp, tangents, strict=True) if t is not ZERO]
        return p.bind(*primals, **params), reduce(add_any, terms)

    return p


def rule() -> tuple[ArrayImpl, ArrayImpl]:
    """Return the nodes and weights of the Gauss-Legendre rule from 0 to 1, as many as the current accuracy needs."""
    return _rule(_nodes())


@lru_cache
def _rule(count: int) -> tuple[ArrayImpl, ArrayImpl]:
    """Return the ``count`` nodes and weights of the Gauss-Legendre rule from 0 to 1, correctly rounded.

    NumPy computes the nodes as eigenvalues, with an error of 1e-16. At the first node, an integrand that falls to
    exp(-38) would amplify this error a hundred times. Newton's method corrects the nodes, in decimals.
    """
    nodes, weights = [], []
    with localcontext() as context:
        context.prec = 32
        for start in np.polynomial.legendre.leggauss(count)[0]:
            t = Decimal(float(start))
            for _ in range(2):
                value, slope = _legendre(count, t)
                t -= value / slope
            _, slope = _legendre(count, t)
            nodes.append(float((1 + t) / 2))
            weights.append(float(1 / ((1 - t * t) * slope * slope)))
    return ArrayImpl(np.array(nodes)), ArrayImpl(np.array(weights))


@lru_cache
def _rule_in_two(count: int, split: float) -> tuple[ArrayImpl, ArrayImpl]:
    """Return the nodes and weights of two Gauss-Legendre rules, from 0 to ``split`` and from ``split`` to 1.

    Each rule has ``count`` nodes.
    """
    nodes, weights = (x._value for x in _rule(count))
    points = np.concatenate([split * nodes, split + (1 - split) * nodes])
    return ArrayImpl(points), ArrayImpl(np.concatenate([split * weights, (1 - split) * weights]))


def _legendre(n: int, t: Decimal) -> tuple[Decimal, Decimal]:
    """Return the Legendre polynomial of degree n and its derivative at ``t``."""
    before, value = Decimal(1), t
    for k in range(2, n + 1):
        before, value = value, ((2 * k - 1) * t * value - (k - 1) * before) / k
    return value, n * (t * value - before) / (t * t - 1)
