"""Taylor coefficients of Bessel functions by their variable, and by their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.control import scan as control
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.types import ZERO
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.elementwise import add, convert_element_type, difference, div, mul, neg
from pullback.primitives.power_series import (
    composition,
    derivative,
    integral,
    is_fixed,
    of_product,
    of_square,
    times,
    with_array,
)
from pullback.transforms.traces.taylor import taylor_flat

_double = np.dtype(np.float64)
_TERMS, _BLOCK = 32, 2048
_MOST = 100.0
"""The largest order for which small variables need the power series; for larger ones the equations lose no digits."""


def by_equations(p: Primitive, formula: Callable[..., Any], upper: int, lower: int, entire: bool) -> None:
    """Register a Taylor rule by the differential equations of a function y and the function z of the next order.

    The equations are y' = (nu / x) y + upper z and z' = lower y - ((nu + 1) / x) z (DLMF 10.6.2 and 10.29.2). Near zero
    they have a solution that grows faster than an ``entire`` function, whose power series is used there (10.2.2,
    10.25.2).
    """

    def rule(ans: Series, nu: Series, x: Series, *, orders: tuple[int, ...]) -> Coefficient | None:
        if any(orders):
            return None
        if not is_fixed(nu):
            return _by_order(formula, ans, nu, x) if is_fixed(x) else None
        order, x = with_array(nu, ans)[0], with_array(x, ans)
        if ans[0].dtype != _double:
            return _rounded(rule, p, convert_element_type(order, _double), x, ans[0].dtype)
        following = p.bind(add(order, 1), x[0], orders=orders)
        if not entire:
            return _by_recurrence(ans, following, order, x, upper, lower)
        close, size, sign = _where_close(order, x[0], upper)
        far = Series([ops.where(close, 8, x[0])], lambda k: x[k])
        recurrence = _by_recurrence(ans, following, order, far, upper, lower)
        series = _near_zero(size, Series([ops.where(close, x[0], 1)], lambda k: x[k]), upper)

        def coefficient(k: int) -> Any:
            beyond, near = recurrence(k), series(k)
            return near if near is ZERO else ops.where(close, mul(sign, near), beyond)

        return coefficient

    taylor(p)(rule)


def _by_order(formula: Callable[..., Any], ans: Series, nu: Series, x: Series) -> Coefficient:
    """Return the Taylor coefficients of a Bessel function along a curve on which only the order ``nu`` varies.

    The Taylor coefficients of ``formula`` in the order are composed with the coefficients of ``nu``. The paths of the
    integrals in the formula do not vary. Many elements are computed in blocks.

    Args:
      formula: ``formula(nu, x)``, the function.
      ans: the series of the result, which holds the value.
      nu: the series of the order.
      x: the series of x, a constant.
    """
    shape, dtype = ans[0].shape, ans[0].dtype
    center, point = (shapes.broadcast_to(convert_element_type(with_array(v, ans)[0], _double), shape) for v in (nu, x))
    found: list[Any] = []

    def along_a_line(order: int, center: Any, point: Any) -> list[Any]:
        line = [shapes.full(center.shape, 1, _double), *[ZERO] * (order - 1)]
        return taylor_flat(formula, lambda v: [formula(v, point)], [center], [line], order)[1][0]

    def of_formula(k: int) -> Any:
        if len(found) < k:
            order = max(ans.last, 2 * k)
            if center.size > _BLOCK:
                flat = [shapes.reshape(v, (center.size,)) for v in (center, point)]
                rows = control.map(lambda pair: along_a_line(order, *pair), flat, batch_size=_BLOCK)
                found[:] = [shapes.reshape(row, shape) for row in rows]
            else:
                found[:] = along_a_line(order, center, point)
        return _converted(found[k - 1], dtype)

    return composition(Series([ans[0]], of_formula), nu)


def _rounded(rule: Any, p: Primitive, order: Any, x: Series, dtype: Any) -> Coefficient:
    """Return a Taylor rule's coefficients for a Bessel function, computed in double precision and rounded to ``dtype``.

    In ``dtype`` the recurrence of the rule would lose digits.

    Args:
      rule: the Taylor rule.
      p: the primitive of the function.
      order: the order of the function, a constant.
      x: the series of x.
      dtype: the dtype of the coefficients.
    """
    wide = Series([convert_element_type(x[0], _double)], lambda k: _converted(x[k], _double))
    y = Series([p.bind(order, wide[0], orders=(0, 0))])
    following = rule(y, Series([order]), wide, orders=(0, 0))

    def coefficient(k: int) -> Any:
        y.known.append(following(k))
        return _converted(y[k], dtype)

    return coefficient


def _converted(c: Any, dtype: Any) -> Any:
    return c if c is ZERO else convert_element_type(c, dtype)


def _by_recurrence(ans: Series, following: Any, order: Any, x: Series, upper: int, lower: int) -> Coefficient:
    following, slopes = Series([following]), (Series([]), Series([]))
    pairs = ((ans, order, following, upper), (following, neg(add(order, 1)), ans, lower))
    quotients = [Series([]), Series([])]
    speed = derivative(x)
    along = [integral(slope, speed) for slope in slopes]

    def coefficient(k: int) -> Any:
        if k > 1:
            following.known.append(along[1](k - 1))
        for (y, factor, other, sign), slope, quotient in zip(pairs, slopes, quotients, strict=True):
            rest = difference(y[k - 1], of_product(x, quotient, k - 1, first=1))
            quotient.known.append(rest if rest is ZERO else div(rest, x[0]))
            term = ZERO if rest is ZERO else mul(factor, quotient[k - 1])
            slope.known.append(difference(times(other[k - 1], sign), times(term, -1)))
        return along[0](k)

    return coefficient


def _where_close(order: Any, x: Any, upper: int) -> tuple[Any, Any, Any]:
    """Return a mask of where x is so small that the power series is used, and the order and the factor of the series.

    For an integer n, the function of order -n is the function of order n, up to its sign. So the order of the series is
    ``abs(order)``, and its factor is 1 or -1. ``upper`` is -1 for the function J, and 1 for I.
    """
    is_integer = ops.eq(ops.floor_p.bind(order), order)
    size = ops.abs(order)
    odd = ops.ne_p.bind(ops.rem_p.bind(size, 2.0), 0)
    turned = ops.and_p.bind(ops.and_p.bind(ops.lt(order, 0), odd), upper < 0)
    known = ops.and_p.bind(ops.or_p.bind(is_integer, ops.ge_p.bind(order, 0)), ops.lt(size, _MOST))
    close = ops.lt(mul(ops.square(x), 0.25), add(mul(size, 4), 9))
    return ops.and_p.bind(known, close), size, ops.where(turned, shapes.full((), -1.0, x.dtype), 1)


def _near_zero(order: Any, x: Series, upper: int) -> Coefficient:
    """Return the Taylor coefficients of the power series of a Bessel function, along the series ``x``.

    The power series is (x / 2)**nu times the sum over k of (upper x² / 4)**k / (k! Γ(nu + k + 1)), where nu is
    ``order``. ``upper`` is -1 for the function J, and 1 for I.
    """
    factor = ops.exp(neg(ops.lgamma_p.bind(add(order, 1))))
    factors = [factor]
    for k in range(1, _TERMS):
        factor = div(mul(factor, upper / (4 * k)), add(order, k))
        factors.append(factor)
    squares = Series([ops.square(x[0])], lambda k: of_square(x, k))
    total = Series([factors.pop()])
    while factors:
        total = _onward(total, squares, factors.pop())
    half = Series([mul(x[0], 0.5)], lambda k: times(x[k], 0.5))
    power = Series([ops.pow(half[0], order)])
    of_powers = taylor.of(ops.pow_p)
    assert of_powers is not None
    following = of_powers(power, half, Series([order]))

    def coefficient(k: int) -> Any:
        power.known.append(following(k))
        return of_product(power, total, k)

    return coefficient


def _onward(total: Series, squares: Series, factor: Any) -> Series:
    return Series([add(mul(total[0], squares[0]), factor)], lambda k: of_product(total, squares, k))
