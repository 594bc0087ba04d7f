"""Elementwise primitives whose derivatives, of any order, come from a formula in forward mode.

The parameter ``orders`` of a primitive is the order of its derivative by each operand. SciPy computes the
value if all orders are zero; otherwise the formula is differentiated so often in forward mode, and compiled. The only
residuals of reverse mode are the operands, although the formula may have loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from pullback.backends.compiler import one_operation
from pullback.core.array import SCALARS, ArrayImpl, shape_of
from pullback.core.elsewhere import on_host
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT, Of, broadcast_shape, check_dtype, same_dtype
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.special.precision import doubled
from pullback.primitives.special.quadrature import in_blocks
from pullback.primitives.sums import add_any
from pullback.transforms.autodiff.jvp import jvp

Formula = Callable[..., Any]


def derivative(formula: Formula, orders: Sequence[int]) -> Formula:
    """Return the derivative of an elementwise formula, of order ``orders[i]`` by operand i; NaN where that is NaN."""
    for i, order in enumerate(orders):
        for _ in range(order):
            formula = partial(_derivative_by, formula, i)
    return formula


def _derivative_by(formula: Formula, i: int, *xs: Any) -> Any:
    def of_one(x: Any) -> Any:
        return formula(*xs[:i], x, *xs[i + 1 :])

    value, slope = jvp(of_one, (xs[i],), (shapes.full(shape_of(xs[i]), 1, xs[i].dtype),))
    is_number = ops.eq_p.bind(value, value)  # a NaN that a formula chooses is a constant, whose derivative is zero
    return ops.where(is_number, slope, math.nan)


def by_forward_mode(
    name: str, formula: Formula, *, arity: int, host: Callable[..., Any] | None = None, of: Of = FLOAT,
    integrals: bool = False, slopes: Sequence[Callable[..., Any] | None] | None = None,
) -> Primitive:  # fmt: skip
    """Declare a primitive that is differentiated by differentiating its formula.

    Args:
      name: the name in jaxprs and errors.
      formula: a function of arrays of double precision and one shape.
      arity: the number of operands.
      host: SciPy's function.
      of: the dtypes of operands.
      integrals: whether the formula has integrals, so that many elements are computed in blocks.
      slopes: for each operand a rule ``rule(t, *operands, orders) -> tangent``, or None to use the formula.
    """
    p = Primitive(name, keeps_weak_type=False, elementwise=True, cost=Cost.SPECIAL)
    p.batch_rule = batch_broadcasting(p)

    @p.abstract_eval
    def shape(*avals: ShapedArray, orders: tuple[int, ...]) -> ShapedArray:
        dtype = same_dtype(name, avals) if arity > 1 else avals[0].dtype
        check_dtype(name, of, dtype)
        return ShapedArray(broadcast_shape(name, [a.shape for a in avals]), dtype)

    @p.lowering
    def lower(hlo: Any, *operands: Any, orders: tuple[int, ...]) -> Any:
        of_orders = derivative(formula, orders)
        if integrals:
            return in_blocks(of_orders)(hlo, *operands)
        wide = [hlo.broadcast(x, hlo.result.shape) for x in operands]
        return hlo.inline(doubled(of_orders), *wide)

    @p.impl
    @on_host(p)
    def evaluate(operands: Sequence[Any], params: dict[str, Any]) -> Any:
        dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
        if host is None or any(params["orders"]) or not all(isinstance(x, (ArrayImpl, *SCALARS)) for x in operands):
            return one_operation.evaluate(p, operands, params)
        broadcast_shape(name, [shape_of(x) for x in operands])
        values = [np.asarray(x, dtype) if type(x) in SCALARS else x._value for x in operands]
        return ArrayImpl(np.asarray(state.silently(host, *values)).astype(dtype)[()])

    @p.jvp
    def rule(primals: Any, tangents: Any, *, orders: tuple[int, ...]) -> Any:
        terms = []
        for i, t in enumerate(tangents):
            if t is ZERO:
                continue
            slope = None if slopes is None else slopes[i]
            if slope is not None:
                terms.append(slope(t, *primals, orders=orders))
            else:
                more = tuple(n + (k == i) for k, n in enumerate(orders))
                terms.append(ops.mul(t, p.bind(*primals, orders=more)))
        return p.bind(*primals, orders=orders), reduce(add_any, terms)

    return p
