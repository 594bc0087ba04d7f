"""Confluent and Gauss's hypergeometric functions, with derivatives of any order by all operands."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from pullback.backends import host
from pullback.control.loops import while_loop
from pullback.core.array import Array, ArrayLike
from pullback.core.trace import Primitive
from pullback.numpy import declare
from pullback.numpy.promotion import strong
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.elementwise import abs, add, div, eq, exp, gt, log, lt, mul, neg, pow, sub
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_or
from pullback.scipy.special.differentiated import by_forward_mode
from pullback.scipy.special.hypergeometric_series import by_next_functions
from pullback.scipy.special.operands import real_operands

_lgamma = ops.lgamma_p.bind
_or, _and = ops.or_p.bind, ops.and_p.bind
_ge, _le = ops.ge_p.bind, ops.le_p.bind
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_where, _floor = ops.where, ops.floor_p.bind

_MOST = 20_000.0
"""The largest number of terms of a series."""
_SMALL = 1e-19
"""Terms below so much of the sum are left out."""
_SMALL_IN_SERIES = 1e-30
"""The same where a sum has Taylor coefficients: the derivatives of terms by the parameters fall more slowly."""
_OVERFLOW = 700.0
"""From where on exp(x) may be infinite."""


def _full(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


def _any(which: Any) -> Any:
    return reduce_or(which, tuple(range(len(which.shape))))


def _is_pole(x: Any) -> Any:
    return _and(_le(x, 0), eq(_floor(x), x))


def _reciprocal_gamma(x: Any) -> tuple[Any, Any]:
    """The logarithm of the size of 1 / Γ(x), and its sign: 0 at a pole."""
    pole = _is_pole(x)
    odd = ops.ne_p.bind(ops.rem_p.bind(_floor(x), 2.0), 0)
    sign = _where(_and(lt(x, 0), odd), _full(-1, x), 1)
    return neg(_lgamma(_where(pole, 0.5, x))), _where(pole, 0, sign)


def _series(above: list[Any], below: list[Any], x: Any, small: float) -> tuple[Any, Any]:
    """The sum of products of (a)_k / (b)_k x**k / k!, and that of the terms times k.

    The loop ends by a bound on the terms, in which no factor is less than one: a term of a polynomial that is zero has
    a derivative that is not.
    """

    def going(carry: Any) -> Any:
        k, _, total, slope, bound = carry
        least = _minimum(abs(total), add(abs(slope), abs(total)))
        return _and(_any(gt(bound, mul(stop_gradient(least), small))), lt(k, _MOST))

    def body(carry: Any) -> Any:
        k, term, total, slope, bound = carry
        ratio = size = div(x, add(k, 1))
        size = stop_gradient(abs(size))
        for a in above:
            ratio = mul(ratio, add(a, k))
            size = mul(size, _maximum(abs(add(stop_gradient(a), k)), 1))
        for b in below:
            ratio = div(ratio, add(b, k))
            size = div(size, abs(add(stop_gradient(b), k)))
        term = mul(term, ratio)
        k = add(k, 1)
        return k, term, add(total, term), add(slope, mul(term, k)), mul(bound, size)

    one = _full(1, x)
    start = (shapes.full((), 0.0, x.dtype), one, one, _full(0, x), one)
    _, _, total, slope, _ = while_loop(going, body, start)
    return total, slope


# The confluent function ----------------------------------------------------------------------------------------------

_TERMS = 60.0


def _hyp1f1(a: Any, b: Any, x: Any, *, small: float = _SMALL) -> Any:
    """By its series (DLMF 13.2.2), Kummer's transformation where x is negative (13.2.39), and far out 13.7.2."""
    negative = lt(x, 0)
    first, size = _where(negative, sub(b, a), a), abs(x)
    product = mul(abs(sub(b, first)), abs(sub(1, first)))
    far = _and(gt(stop_gradient(size), add(stop_gradient(product), 50)), ops.not_p.bind(_is_pole(first)))
    far = _and(far, ops.not_p.bind(_is_pole(b)))
    total, _ = _series([_where(far, 1, first)], [_where(far, 1, b)], _where(far, 0, size), small)
    near = _where(negative, mul(exp(_where(far, 0, _minimum(x, 0))), total), total)
    distant = _confluent_far(_where(far, first, 1.5), _where(far, b, 2.0), _where(far, size, 60), negative)
    return _where(far, distant, near)


def _confluent_far(a: Any, b: Any, z: Any, scaled: Any) -> Any:
    """M(a, b, z) by its asymptotic series, up to the smallest term; where it is ``scaled``, times exp(-z)."""

    def body(carry: Any) -> Any:
        n, term, total = carry
        factor = mul(div(add(sub(b, a), n), z), div(add(sub(1, a), n), add(n, 1)))
        still = lt(abs(stop_gradient(factor)), 1)
        term = mul(term, _where(still, factor, 0))
        return add(n, 1), term, add(total, term)

    start = (shapes.full((), 0.0, z.dtype), _full(1, z), _full(1, z))
    _, _, total = while_loop(lambda carry: lt(carry[0], _TERMS), body, start)
    inverse, sign = _reciprocal_gamma(a)
    other, other_sign = _reciprocal_gamma(b)
    exponent = add(sub(inverse, other), mul(sub(a, b), log(z)))
    exponent = _where(scaled, exponent, add(exponent, z))
    half = exp(mul(exponent, 0.5))
    return mul(mul(mul(sign, other_sign), half), mul(half, total))


def _by_x(t: Any, *operands: Any, orders: tuple[int, ...]) -> Any:
    """By the last operand: the function of parameters that are larger by one (13.3.15, 15.5.1)."""
    p = hyp1f1_p if len(operands) == 3 else hyp2f1_p
    if any(orders):
        return mul(t, p.bind(*operands, orders=(*orders[:-1], orders[-1] + 1)))
    *parameters, x = operands
    *above, below = parameters
    factor = div(above[0] if len(above) == 1 else mul(*above), below)
    return mul(t, mul(factor, p.bind(*(add(v, 1) for v in parameters), x, orders=orders)))


hyp1f1_p: Primitive = by_forward_mode(
    "hyp1f1", _hyp1f1, arity=3, host=host.special("hyp1f1"), slopes=(None, None, _by_x)
)
by_next_functions(hyp1f1_p, partial(_hyp1f1, small=_SMALL_IN_SERIES), 1, _OVERFLOW)


# Gauss's function ----------------------------------------------------------------------------------------------------

_STEP_TERMS = 400.0
"""The largest number of terms of a step."""


def _hyp2f1(a: Any, b: Any, c: Any, x: Any, *, small: float = _SMALL) -> Any:
    """In [0, 1) by :func:`_within`, after Pfaff's or Euler's transformation (DLMF 15.8.1); at 1 by Gauss's sum.

    Of the transformations that whose parameters are positive is chosen, for then so are all terms. Gauss's sum is
    15.4.20.
    """
    low, high = _minimum(a, b), _maximum(a, b)
    fixed = [stop_gradient(v) for v in (low, high, c)]
    at_one, beyond = eq(x, 1), gt(x, 1)
    finite = _or(_is_pole(fixed[0]), _is_pole(fixed[1]))
    inner = _where(_or(at_one, beyond), 0.5, x)
    negative = lt(inner, 0)
    rest = sub(1, inner)
    # Of negative x: (1 - x)**-low F(low, c - high), or with the two in each other's place.
    other_way = _and(lt(sub(fixed[2], fixed[1]), 0), _ge(sub(fixed[2], fixed[0]), 0))
    kept = _where(other_way, high, low)
    turned = sub(c, _where(other_way, low, high))
    # Of positive x: Euler's.
    least = _minimum(sub(fixed[2], fixed[0]), sub(fixed[2], fixed[1]))
    euler = _and(_and(lt(fixed[0], 0), gt(least, fixed[0])), ops.not_p.bind(finite))
    first = _where(negative, kept, _where(euler, sub(c, low), low))
    second = _where(negative, turned, _where(euler, sub(c, high), high))
    power = _where(negative, neg(kept), _where(euler, sub(sub(c, low), high), 0))
    place = _where(negative, div(inner, sub(inner, 1)), inner)
    distance = _where(negative, div(1, rest), rest)
    value = mul(pow(rest, power), _within(first, second, c, place, distance, small))
    # A polynomial serves everywhere.
    outside = _and(_or(at_one, beyond), finite)
    polynomial, _ = _series(
        [_where(outside, low, 0), _where(outside, high, 0)], [_where(outside, c, 1)], _where(outside, x, 0), small
    )
    excess = sub(sub(c, low), high)
    summable = _and(at_one, gt(stop_gradient(excess), 0))
    terms = [_where(summable, v, 1) for v in (c, excess, sub(c, low), sub(c, high))]
    logs, sign = None, None
    for k, v in enumerate(terms):
        size, one = _reciprocal_gamma(v)
        size = neg(size) if k < 2 else size
        logs, sign = (size, one) if logs is None else (add(logs, size), mul(sign, one))
    ends = _where(summable, mul(sign, exp(logs)), math.inf)
    # F(a, c; c; x) is (1 - x)**-a, above 1 too where a is an integer.
    as_high = eq(fixed[2], fixed[1])
    rest_of = _where(as_high, low, high)
    whole = eq(_floor(stop_gradient(rest_of)), stop_gradient(rest_of))
    elementary = _and(_and(beyond, _or(as_high, eq(fixed[2], fixed[0]))), whole)
    ends = _where(elementary, pow(_where(elementary, sub(1, x), 1), neg(_where(elementary, rest_of, 1))), ends)
    return _where(outside, polynomial, _where(_or(at_one, beyond), ends, value))


def _within(a: Any, b: Any, c: Any, x: Any, rest: Any, small: float) -> Any:
    """F(a, b; c; x) of x from 0 to 1, and ``rest`` its distance from 1.

    Up to 1/2 by its series. From there the differential equation (15.10.1) is solved by Taylor's series, in steps by
    0.4 of the distance from the singularity at 1: no case is degenerate.
    """
    start = _minimum(x, 0.5)
    value, slope = _series([a, b], [c], start, small)
    slope = div(slope, _where(eq(start, 0), 1, start))
    target = _minimum(rest, 0.5)

    def going(carry: Any) -> Any:
        distance, _, _ = carry
        return _any(gt(distance, target))

    def body(carry: Any) -> Any:
        distance, value, slope = carry
        closer = _maximum(mul(distance, 0.6), target)
        return (closer, *_taylor(a, b, c, distance, sub(distance, closer), value, slope, small))

    _, value, _ = while_loop(going, body, (_full(0.5, x), value, slope))
    return value


def _taylor(
    a: Any, b: Any, c: Any, rest: Any, step: Any, value: Any, slope: Any, small: float
) -> tuple[Any, Any]:  # fmt: skip
    """A solution and its derivative, a step nearer to 1; the coefficients are multiplied by powers of the step."""
    leading = mul(rest, sub(1, rest))
    linear, constant = sub(mul(2, rest), 1), add(sub(sub(c, a), add(b, 1)), mul(add(add(a, b), 1), rest))
    ratio = div(step, leading)

    def body(carry: Any) -> Any:
        n, before, last, total, slopes = carry
        first = mul(mul(before, mul(step, ratio)), div(mul(add(a, n), add(b, n)), mul(add(n, 1), add(n, 2))))
        second = mul(mul(last, ratio), div(add(mul(linear, n), constant), add(n, 2)))
        new = sub(first, second)
        n = add(n, 1)
        return n, last, new, add(total, new), add(slopes, mul(new, add(n, 1)))

    def going(carry: Any) -> Any:
        n, before, last, total, _ = carry
        recent = _maximum(abs(before), abs(last))
        return _and(_any(gt(recent, mul(abs(total), small))), lt(n, _STEP_TERMS))

    moved = mul(slope, step)
    begin = (shapes.full((), 0.0, step.dtype), value, moved, add(value, moved), moved)
    _, _, _, total, slopes = while_loop(going, body, begin)
    still = eq(step, 0)
    return total, _where(still, slope, div(slopes, _where(still, 1, step)))


hyp2f1_p: Primitive = by_forward_mode(
    "hyp2f1", _hyp2f1, arity=4, host=host.special("hyp2f1"), slopes=(None, None, None, _by_x)
)
by_next_functions(hyp2f1_p, partial(_hyp2f1, small=_SMALL_IN_SERIES), 2, 1.0)


# Functions -----------------------------------------------------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function of Kummer: the sum of ``(a)_k / (b)_k x**k / k!``.

    Errors are up to 175 units in the last place, of derivatives 31 (``docs/accuracy.md``).

    Args:
      a, b, x: arrays of real numbers whose shapes broadcast against each other; integers are converted.

    Returns:
      An array of floats, of the common dtype; infinite where ``b`` is 0, -1, ... and the sum does not end before.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).
      ShapeError: shapes that do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands: those of its series, of Kummer's transformation (DLMF 13.2.39) and
    of the asymptotic series 13.7.2.

    >>> print(f"{hyp1f1(1.0, 2.0, 3.0):.4f}")
    6.3618
    """
    return strong(hyp1f1_p.bind(*real_operands("hyp1f1", a, b, x), orders=(0, 0, 0)))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function: the sum of ``(a)_k (b)_k / (c)_k x**k / k!``, continued to negative ``x``.

    Args:
      a, b, c, x: arrays of real numbers whose shapes broadcast against each other; integers are converted.

    Returns:
      An array of floats, of the common dtype; infinite where ``x`` is above 1, unless the sum ends, or ``c`` is ``a``
      or ``b`` and the other one is an integer.

    Raises:
      OperandError: no array of numbers (a TypeError).
      DtypeError: complex numbers (a TypeError).
      ShapeError: shapes that do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands. Compiled it is its series up to 1/2, after transformations (DLMF
    15.8.1); beyond, the differential equation is solved by Taylor's series, which has no degenerate cases.

    >>> print(f"{hyp2f1(1.0, 2.0, 3.0, 0.5):.4f}")
    1.5452
    """
    return strong(hyp2f1_p.bind(*real_operands("hyp2f1", a, b, c, x), orders=(0, 0, 0, 0)))


__all__ = declare.public_names(__name__, globals())
