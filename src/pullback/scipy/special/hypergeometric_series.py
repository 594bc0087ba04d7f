"""Taylor coefficients of hypergeometric functions, by their variable or by their parameters.

The derivatives by the variable are the functions whose parameters are larger by one, by two, and so on (DLMF 13.3.16
and 15.5.2). All orders are computed in one call, along an axis, and composed with the variable's coefficients. The
differential equation would be an unstable recurrence: next to zero another solution grows faster with the order.
M(2.62, 8.08, x) would lose eight digits of the tenth coefficient at x = 1.52, five at -10.
Where only the parameters vary, the coefficients are computed from the formula.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from pullback.core.array import as_array
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.types import ZERO
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import stack, unstack
from pullback.primitives.elementwise import add, convert_element_type, div, eq, mul
from pullback.primitives.power_series import composition, is_fixed, with_array
from pullback.transforms.traces.taylor import taylor_flat

_double = np.dtype(np.float64)


def by_next_functions(p: Primitive, formula: Callable[..., Any], above: int, end: float) -> None:
    """Register a Taylor rule for fixed parameters, or a fixed variable.

    Args:
      p: the primitive, of parameters and a variable.
      formula: a function of arrays of double precision and one shape.
      above: the number of parameters in the numerators of the terms; one is in the denominators.
      end: the least variable for which the function may be infinite, unless its sum ends.
    """

    def rule(ans: Series, *operands: Series, orders: tuple[int, ...]) -> Coefficient | None:
        if any(orders):
            return None
        series = [with_array(operand, ans) for operand in operands]
        if not all(map(is_fixed, operands[:-1])):
            known = all(operand.next is None for operand in operands) and ans.last
            return _by_parameters(formula, ans, series) if known and is_fixed(operands[-1]) else None
        values = [convert_element_type(operand[0], _double) for operand in series]
        return composition(Series([ans[0]], _about_the_value(p, values, above, end, ans)), series[-1])

    taylor(p)(rule)


def _by_parameters(formula: Callable[..., Any], ans: Series, operands: list[Series]) -> Coefficient:
    """Return the Taylor coefficients of ``formula`` along the curve ``operands``, up to the order ``ans.last``.

    The curve is one series for each operand. ``ans`` holds the value of the function, whose shape and dtype the
    coefficients get.
    """
    shape, dtype = ans[0].shape, ans[0].dtype
    wide = lambda c: c if c is ZERO else shapes.broadcast_to(convert_element_type(c, _double), shape)
    values = [wide(operand[0]) for operand in operands]
    moving = [[wide(operand[k]) for k in range(1, ans.last + 1)] for operand in operands]
    found = taylor_flat(formula, lambda *xs: [formula(*xs)], values, moving, ans.last)[1][0]
    return lambda k: found[k - 1] if found[k - 1] is ZERO else convert_element_type(found[k - 1], dtype)


def _about_the_value(p: Primitive, values: list[Any], above: int, end: float, ans: Series) -> Coefficient:
    """Return the Taylor coefficients of a hypergeometric function ``p`` in its variable x, about the value of x.

    Coefficient k is (a)_k / (b)_k / k! times the function of the parameters a + k and b + k.

    Args:
      p: the primitive.
      values: the parameters a, the parameter b, and x.
      above: the number of parameters a.
      end: the least x for which the coefficients after the end of a finite sum are set to 0.
      ans: the series of the result, which holds the value.
    """
    *parameters, x = values
    shape, dtype = ans[0].shape, ans[0].dtype
    last = shapes.full(shape, 1, _double)
    found: list[Any] = []

    def up_to(order: int) -> None:
        nonlocal last
        orders = np.arange(len(found), order, dtype=_double).reshape((-1,) + (1,) * len(shape))
        before, after = as_array(orders), as_array(orders + 1)
        rows = [add(v, before) for v in parameters]
        factors = []
        for ratio in unstack(div(reduce(mul, rows[:above]), mul(rows[above], after)), 0):
            last = mul(last, ratio)
            factors.append(last)
        factor = stack(factors, 0)
        # A sum that has ended has zero coefficients, even where the function of larger parameters is infinite.
        ended = ops.and_p.bind(eq(factor, 0), ops.ge_p.bind(x, end))
        point = ops.where(ended, 0, shapes.broadcast_to(x, factor.shape))
        following = p.bind(*[add(v, after) for v in parameters], point, orders=(0,) * len(values))
        found.extend(unstack(convert_element_type(mul(factor, following), dtype), 0))

    def coefficient(k: int) -> Any:
        if len(found) < k:
            up_to(max(ans.last, 2 * k))
        return found[k - 1]

    return coefficient
