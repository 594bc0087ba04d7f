"""Struve's functions for derivatives by the order, of any order, in forward mode.

The function H is its power series (DLMF 11.2.1), or Poisson's integral (11.5.1), or Y and a Laplace integral (11.5.2).
The function L is its power series (11.2.2), whose terms have one sign but for the first ones of orders below -3/2.
Integrands are cut off where they fall to 3e-17 of their largest value.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.control import loops
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.scipy.special.bessel_orders import _between, _cos_pi, _full, _sums, yv_p
from pullback.scipy.special.composed_functions import rgamma
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    exp, expm1, floor, formula, lgamma, lifted, log, log1p, maximum, minimum, sin, sqrt, square, stop_gradient, where,
)  # fmt: skip

while_loop, reduce_max = lifted(loops.while_loop), lifted(reductions.reduce_max)
_rgamma = lifted(rgamma)
_yv = lifted(lambda v, x: yv_p.bind(v, x, orders=(0, 0)))

_SCALE = 2 / math.sqrt(math.pi)
_BELOW = 38.0  # exp(-38) is below the rounding error
_NEAR = 6.0
"""Up to this number and order H is a power series: terms are up to 60 times the sum."""
_TERMS, _MOST = 40.0, 1500.0
"""The terms of a power series for small numbers, and for the largest ones, for which L overflows."""


def _power(v: Any, x: Any) -> Any:
    """Return ``(x / 2)**v / Γ(v + 1/2)``, by logarithms where a factor may overflow."""
    fixed = stop_gradient(v)
    few, low = abs(fixed) < 140, fixed <= -140
    u = where(few, v, 0)
    near = (x * 0.5) ** u * _rgamma(u + 0.5)
    high = where(few | low, 140, v)
    far = exp(high * log(x * 0.5) - lgamma(high + 0.5))
    w = where(low, v, -140)
    mirrored = exp(w * log(x * 0.5) + lgamma(0.5 - w)) * _cos_pi(w) * (1 / math.pi)  # DLMF 5.5.3
    return where(few, near, where(low, mirrored, far))


def _series(v: Any, x: Any, sign: int) -> tuple[Any, Any]:
    """Evaluate the sum of ``sign**k (x/2)**(2k+v+1) / (Γ(k+3/2) Γ(k+v+3/2))`` over k, from its end.

    Return a factor of it, and the order u of the other, which is ``2 / sqrt(pi)`` times :func:`_power` of u.

    Where ``k + v + 3/2`` is not positive, ``tail`` takes the factors between its gamma function and the first of a
    positive argument, so that nothing is infinite at the poles.
    """
    quarter = square(x) * (0.25 * sign)
    shift = maximum(floor(-0.5 - stop_gradient(v)), 0)  # from this k on k + v + 3/2 is positive
    largest = reduce_max(x + shift, tuple(range(len(x.shape))))
    count = floor(minimum(largest, _MOST)) + _TERMS

    @formula
    def body(carry: Any) -> Any:
        k, tail, total = carry
        base = v + (k + 1.5)
        above = k >= shift
        tail = where(above, tail, tail * base)
        rest = quarter / (k + 1.5) * total
        return k - 1, tail, tail + where(above, rest / where(above, base, 1), rest)

    one = _full(1, x)
    _, _, total = while_loop(formula(lambda carry: carry[0] >= 0), body, (count, one, one))
    return total * (x * 0.5) ** -shift, v + 1 + shift


def _poisson(v: Any, x: Any) -> Any:
    """Evaluate the integral of ``(1 - t**2)**(v - 1/2) sin(x t)`` from 0 to 1, for an order above 6 and above x."""
    fixed = stop_gradient(v)
    end = sqrt(-expm1(-_BELOW / (fixed - 0.5)))

    def integrand(t: Any, v: Any, x: Any) -> Any:
        return exp((v - 0.5) * log1p(-square(t))) * sin(x * t), None

    total, _ = _sums(integrand, *_between(_full(0, x), end * 0.25, end * 0.5, end * 0.75, end), v, x)
    return total


def _laplace(v: Any, x: Any) -> Any:
    """Evaluate the integral of ``(1 + t**2)**(v - 1/2) exp(-x t)`` from 0, for x above 6 and an order of at most x."""
    fixed = stop_gradient(v)
    share = maximum(fixed - 0.5, 0) / x
    end = _BELOW / x
    for _ in range(6):
        end = _BELOW / x + share * log1p(square(end))
    end = end + 0.5 * share

    def integrand(t: Any, v: Any, x: Any) -> Any:
        return exp((v - 0.5) * log1p(square(t)) - x * t), None

    ends = _between(_full(0, x), *[end * part for part in (0.06, 0.2, 0.5)], end)
    total, _ = _sums(integrand, *ends, v, x)
    return total


def _in_domain(v: Any, x: Any, value: Any) -> Any:
    """Return NaN for negative numbers, whose powers of real orders are complex; and at 0 what a power tends to."""
    at_zero = where((x == 0) & (v > -1), _full(0, x), math.nan)
    return where(x > 0, value, at_zero)


@formula
def _struve(v: Any, x: Any) -> Any:
    """Evaluate H of any order, for positive x."""
    fixed, given = stop_gradient(v), stop_gradient(x)
    x = where(given > 0, given, 1)
    near = (x <= _NEAR) & (fixed <= _NEAR)
    high = ~near & (fixed > x)
    far = ~near & ~high
    series, order = _series(where(near, v, 1), where(near, x, 1), -1)
    poisson = _poisson(where(high, v, 8), where(high, x, 1))
    v_far, x_far = where(far, v, 1), where(far, x, 8)
    factor = where(near, series, where(high, poisson, _laplace(v_far, x_far)))
    value = factor * _power(where(near, order, v), x) * _SCALE
    return _in_domain(fixed, given, value + where(far, _yv(v_far, x_far), 0))


@formula
def _modstruve(v: Any, x: Any) -> Any:
    """Evaluate L of any order, for positive x."""
    given = stop_gradient(x)
    x = where(given > 0, given, 1)
    series, order = _series(v, x, 1)
    return _in_domain(stop_gradient(v), given, series * _power(order, x) * _SCALE)


@formula
def _excess(v: Any, x: Any) -> Any:
    return _power(v + 1, where(x > 0, x, 1)) / where(x > 0, x, 1) * _SCALE


excess_p: Primitive = by_forward_mode("struve_excess", _excess, arity=2)
"""The operation ``(x / 2)**v / (sqrt(pi) Γ(v + 3/2))``, a term of derivatives by x."""


def _by_order(name: str, of: Any, sign: int) -> Primitive:
    """Declare a function, differentiated by the order in forward mode, and by x as in DLMF 11.4.28 and 11.4.30."""

    def by_x(t: Any, v: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        above = ops.mul(p.bind(ops.add(v, 1), x, orders=orders), sign)
        both = ops.add(p.bind(ops.sub(v, 1), x, orders=orders), above)
        slope = ops.mul(ops.add(both, excess_p.bind(v, x, orders=orders)), 0.5)
        return ops.mul(t, slope)

    p: Primitive = by_forward_mode(name, of, arity=2, integrals=True, slopes=(None, by_x))
    return p


struve_p = _by_order("struve_by_order", _struve, -1)
modstruve_p = _by_order("modstruve_by_order", _modstruve, 1)
