"""Integrals of smooth functions of elements, by Gauss and Legendre's rule, for formulas that the compiler is given."""

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
    """Whether a formula's results are of double precision; else what it loses of its own may be more."""
    return _wanted.get()


def cut_off() -> float:
    """Where an integrand exp(-h) that falls from 1 may be cut off: h there, for an error below one of rounding."""
    return 38.0 if is_double() else 19.0


def _nodes() -> int:
    """As many as integrate exp(-h) with an error below one of rounding, up to where it is cut off."""
    return 48 if is_double() else 18


def _for_results_of(dtype: np.dtype[Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of double precision whose integrals are as accurate as results of a dtype can be."""

    def evaluated(*operands: Any) -> Any:
        outer = _wanted.set(dtype.itemsize >= 8)
        try:
            return formula(*operands)
        finally:
            _wanted.reset(outer)

    return evaluated


def integral(integrand: Callable[..., Any], end: Any, *operands: Any, narrow: bool = False, split: float = 0) -> Any:
    """The integral over y from 0 to ``end`` of ``integrand(y, *operands)``, a sum along a first axis of nodes.

    ``narrow`` says that nothing cancels in the integrand: for results of single precision it is computed in that.
    ``split`` is the share of the interval after which it is taken in two, each with as many nodes.
    """
    dtype = np.dtype(np.float32) if narrow and not is_double() else end.dtype
    constants = _rule_in_two(_nodes(), split) if split else rule()
    nodes, weights = (shapes.expand_dims(x, tuple(range(1, len(end.shape) + 1))) for x in constants)
    wide = [shapes.expand_dims(x, (0,)) for x in (end, *operands)]
    given = [mul(wide[0], nodes), *wide[1:]]
    values = integrand(*(convert_element_type(x, dtype) if x.dtype == end.dtype else x for x in given))
    values = convert_element_type(values, end.dtype)
    return mul(end, reduce_sum(mul(values, weights), (0,)))


def formula_integral(integrand: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """The same within a formula, of an integrand in infix."""
    return lifted(integral)(formula(integrand), *operands, **options)


_BLOCK = 2048


def in_blocks(formula: Callable[..., Any], smooth: bool = False) -> Callable[..., Any]:
    """The lowering rule of an operation on elements that is a formula with integrals, of double precision.

    ``smooth`` says that the integrands are exp(-h), with h concave or linear where it is large, times what changes
    slowly; for results of single precision they are cut off earlier (:func:`cut_off`), and have fewer nodes.

    More than 2,048 elements are computed a block at a time, for the compiler keeps what is along the axis of an
    integral in memory.
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
        whole = [hlo.concatenate([x, padding], 0) if padding.shape[0] else x for x in flat]
        index = np.dtype(np.int64)
        zero, width = hlo.number(0, index), hlo.number(_BLOCK, index)
        kinds = [((), index), ((count * _BLOCK,), dtype)]

        def body(i: Any, out: Any) -> list[Any]:
            sizes = f"slice_sizes = array<i64: {_BLOCK}>"
            parts = [hlo.op("stablehlo.dynamic_slice", [x, i], (_BLOCK,), dtype, sizes) for x in whole]
            wide = [hlo.convert(part, np.dtype(np.float64)) for part in parts]
            new = hlo.convert(hlo.inline(of_block, *wide), dtype)
            out = hlo.op("stablehlo.dynamic_update_slice", [out, new, i], out.shape, dtype)
            return [hlo.elementwise("stablehlo.add", i, width), out]

        going = hlo.region(kinds, lambda i, out: [hlo.compare(i, hlo.number(count * _BLOCK, index), "LT")])
        start = [zero, hlo.splat(0, (count * _BLOCK,), dtype)]
        out = hlo.multi_result("stablehlo.while", start, kinds, regions=[going, hlo.region(kinds, body)])[1]
        return hlo.reshape(hlo.slice(out, (0,), (size,)), shape)

    return rule


SERIES_BELOW = 110.0
"""Where an integrand exp(-h) is cut off, h there, if its derivatives are integrated too: h**20 exp(-h) is small."""


def in_series(p: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say Taylor coefficients of an operation on elements by a formula of integrals with nodes that do not move.

    The formula takes arrays of double precision and one shape. Where the integrands' derivatives are of one sign
    nothing cancels, as it does in the recurrence of a differential equation with another solution that grows faster.
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        def rule(*operands: Any, **params: Any) -> Any:
            shape = broadcast_shape(p.name, [shape_of(x) for x in operands])
            return doubled(lambda *wide: formula(*[shapes.broadcast_to(x, shape) for x in wide], **params))(*operands)

        taylor_formula(p)(rule)
        return formula

    return register


_FEW = 1024
"""Up to so many elements a formula is evaluated as it is: its integrals have 48 times as many. More are compiled."""


def by_integrals(
    name: str, formula: Callable[..., Any], jvp: Sequence[Callable[..., Any]], smooth: bool = False
) -> Primitive:
    """An operation on elements whose formula has integrals.

    Args:
      name: the name in jaxprs and errors.
      formula: ``formula(*operands, **params)``, of arrays of double precision and one shape.
      jvp: a sequence of ``rule(t, *operands, **params) -> tangent``, one an operand.
      smooth: as of :func:`in_blocks`.
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
    """The nodes and weights from 0 to 1."""
    return _rule(_nodes())


@lru_cache
def _rule(count: int) -> tuple[ArrayImpl, ArrayImpl]:
    """The nodes and weights from 0 to 1, right to the last place.

    NumPy's are eigenvalues, right to 1e-16; an integrand that falls to exp(-38) is at the first node wrong by a hundred
    times that. They are refined by Newton's method, in decimals.
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
    """The nodes and weights from 0 to 1 of two intervals, from 0 to ``split`` and from there on."""
    nodes, weights = (x._value for x in _rule(count))
    places = np.concatenate([split * nodes, split + (1 - split) * nodes])
    return ArrayImpl(places), ArrayImpl(np.concatenate([split * weights, (1 - split) * weights]))


def _legendre(n: int, t: Decimal) -> tuple[Decimal, Decimal]:
    """Legendre's polynomial of degree n and its derivative."""
    before, value = Decimal(1), t
    for k in range(2, n + 1):
        before, value = value, ((2 * k - 1) * t * value - (k - 1) * before) / k
    return value, n * (t * value - before) / (t * t - 1)
