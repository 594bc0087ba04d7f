"""The function 0F1 and Wright's functions, for derivatives by their parameters, of any order, in forward mode.

The function 0F1 is its power series (DLMF 16.2.1), or for numbers far below zero a Bessel function (DLMF 10.16.9).
Wright's function is its power series (E. M. Wright 1935), whose terms are positive; the largest of them is a factor.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from pullback.control import loops
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.scipy.special.bessel_orders import _full, jv_p
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    exp, floor, formula, lgamma, lifted, log, maximum, minimum, sqrt, stop_gradient, where,
)  # fmt: skip

while_loop, reduce_max = lifted(loops.while_loop), lifted(reductions.reduce_max)
_jv = lifted(lambda v, x: jv_p.bind(v, x, orders=(0, 0)))

_BELOW = 40.0
"""The terms of a series end where they are this much below the largest one, by logarithms."""
_MOST = 2000.0
"""The largest number of terms, but for those of 0F1 before ``v + k`` is positive."""
_LARGEST = 300.0
"""The largest parameter of 0F1 for which a Bessel function is used: the powers of others may overflow."""


# 0F1 -----------------------------------------------------------------------------------------------------------------


def _power_series(v: Any, z: Any) -> Any:
    """Evaluate the sum of ``z**k / ((v)_k k!)`` over k, from its end."""
    size = sqrt(abs(stop_gradient(z)))
    last = size + 6 * sqrt(size) + _BELOW + maximum(-stop_gradient(v), 0)
    count = floor(minimum(reduce_max(last, tuple(range(len(z.shape)))), 2 * _MOST))

    @formula
    def body(carry: Any) -> Any:
        k, total = carry
        return k - 1, 1 + z / ((v + k) * (k + 1)) * total

    one = _full(1, z)
    return where(last <= 2 * _MOST, while_loop(formula(lambda carry: carry[0] >= 0), body, (count, one))[1], math.nan)


@formula
def _hyp0f1(v: Any, z: Any) -> Any:
    """Evaluate 0F1; NaN for ``v`` above 300 and ``z`` below ``-4 v``, and for ``z`` above 10 million."""
    fixed, given = stop_gradient(v), stop_gradient(z)
    near = given >= -where(fixed > 30, 4 * fixed, 2 * maximum(fixed, 1))
    far = ~near & (abs(fixed) <= _LARGEST)
    series = _power_series(where(near, v, 1), where(near, z, 0))
    w, x = where(far, v, 1), sqrt(where(far, -z, 9))
    half = maximum(floor(1 - stop_gradient(w)), 0)
    # Γ(w) = Γ(w + n) / (w)_n, with a positive argument
    rising = _rising(w, half)
    factor = exp(lgamma(w + half) + (1 - w) * log(x)) / rising
    return where(near, series, where(far, factor * _jv(w - 1, 2 * x), math.nan))


def _rising(w: Any, n: Any) -> Any:
    """Return the product of ``w + k`` for k from 0 below n."""
    most = reduce_max(n, tuple(range(len(n.shape))))

    @formula
    def body(carry: Any) -> Any:
        k, total = carry
        return k - 1, total * where(k < n, w + k, 1)

    return while_loop(formula(lambda carry: carry[0] >= 0), body, (most, _full(1, w)))[1]


hyp0f1_p: Primitive = by_forward_mode("hyp0f1_by_parameter", _hyp0f1, arity=2, integrals=True)


# Wright --------------------------------------------------------------------------------------------------------------


def _wright(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Evaluate the sum of ``x**k / (k! Γ(a k + b))`` over k, for operands that are not negative.

    Return its logarithm's largest part, a constant, and the sum over its exponential. The terms are log-concave, so
    that all after one that is small are smaller.
    """
    positive = stop_gradient(x) > 0
    power = log(where(positive, x, 1))

    @formula
    def going(carry: Any) -> Any:
        k, busy, _, _ = carry
        return (k < _MOST) & (reduce_max(busy, tuple(range(len(busy.shape)))) > 0)

    @formula
    def body(carry: Any) -> Any:
        k, busy, largest, total = carry
        argument = a * k + b
        exponent = k * power - lgamma(_full(1, x) + k) - lgamma(argument + 1)
        size = stop_gradient(exponent + log(argument + 1e-300))
        size = where(positive | (k < 0.5), size, -math.inf)
        higher = maximum(size, largest)
        term = where(positive | (k < 0.5), argument * exp(exponent - higher), 0)
        rest = where((size > largest - _BELOW) & (busy > 0), _full(1, x), 0)
        return k + 1, where((k < 1.5) & positive, 1, rest), higher, total * exp(largest - higher) + term

    zero = _full(0, x)
    start = stop_gradient(reduce_max(zero, tuple(range(len(x.shape)))))
    _, busy, largest, total = while_loop(going, body, (start, zero + 1, zero - 745, zero))
    inside = (stop_gradient(a) >= 0) & (stop_gradient(b) >= 0) & (stop_gradient(x) >= 0) & (busy == 0)
    return largest, where(inside, total, math.nan)


@formula
def _wright_bessel(a: Any, b: Any, x: Any) -> Any:
    """Evaluate Wright's function; NaN where it needs more than 2,000 terms."""
    largest, total = _wright(a, b, x)
    return exp(largest) * total


@formula
def _log_wright_bessel(a: Any, b: Any, x: Any) -> Any:
    largest, total = _wright(a, b, x)
    return log(total) + largest + 0 * sqrt(x)  # at 0 derivatives by x, of derivatives by parameters, are NaN


def _wright_by_x(t: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    """The derivatives of Wright's function of ``(a, a + b, x)``, which is its derivative by x (DLMF 10.46.1)."""
    by_a, by_b, by_x = orders
    terms = [
        ops.mul(wright_bessel_p.bind(a, ops.add(a, b), x, orders=(by_a - j, by_b + j, by_x)), math.comb(by_a, j))
        for j in range(by_a + 1)
    ]
    return ops.mul(t, reduce(ops.add, terms))


wright_bessel_p: Primitive = by_forward_mode(
    "wright_bessel_by_parameters", _wright_bessel, arity=3, integrals=True, slopes=(None, None, _wright_by_x)
)
log_wright_bessel_p: Primitive = by_forward_mode(
    "log_wright_bessel_by_parameters", _log_wright_bessel, arity=3, integrals=True
)
