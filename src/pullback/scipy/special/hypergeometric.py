"""Confluent and Gauss's hypergeometric functions, with derivatives of any order by all operands."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from pullback.backends.host import rules as host
from pullback.control import loops
from pullback.core.array import Array, ArrayLike
from pullback.core.trace import Primitive
from pullback.numpy import declare
from pullback.numpy.promotion import strong
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.elementwise import add, div, mul
from pullback.scipy.special.differentiated import by_forward_mode
from pullback.scipy.special.hypergeometric_series import by_next_functions
from pullback.scipy.special.operands import real_operands

from pullback.primitives.formulas import (  # isort: skip
    exp, floor, formula, full, lgamma, lifted, log, maximum, minimum, remainder, stop_gradient, where,
)  # fmt: skip

reduce_or, while_loop = lifted(reductions.reduce_or), lifted(loops.while_loop)

_MOST = 20_000.0
"""The largest number of terms of a series."""
_SMALL = 1e-19
"""Terms below this fraction of the sum are omitted."""
_SMALL_IN_SERIES = 1e-30
"""That fraction for Taylor coefficients, since the derivatives of terms by the parameters fall more slowly."""
_OVERFLOW = 700.0
"""The least x for which exp(x) may be infinite."""


def _full(value: float, like: Any) -> Any:
    return full(like.shape, value, like.dtype)


def _any(which: Any) -> Any:
    return reduce_or(which, tuple(range(len(which.shape))))


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (floor(x) == x)


def _reciprocal_gamma(x: Any) -> tuple[Any, Any]:
    """Return log(abs(1 / Γ(x))), and the sign of 1 / Γ(x), which is 0 where Γ has a pole."""
    pole = _is_pole(x)
    odd = remainder(floor(x), 2.0) != 0
    sign = where((x < 0) & odd, _full(-1, x), 1)
    return -lgamma(where(pole, 0.5, x)), where(pole, 0, sign)


def _series(above: list[Any], below: list[Any], x: Any, small: float) -> tuple[Any, Any]:
    """Return the sum of a hypergeometric series at x, and the sum of its terms multiplied by their index k.

    A term is x**k / k! times (a)_k for each parameter a in ``above``, divided by (b)_k for each parameter b in
    ``below``. The sum ends where a bound on the terms is below ``small`` times the sum. The bound replaces factors a +
    k below one by one: so the sum does not end at a zero term of a polynomial, whose derivative may be nonzero.
    """

    @formula
    def going(carry: Any) -> Any:
        k, _, total, slope, bound = carry
        least = minimum(abs(total), abs(slope) + abs(total))
        return _any(bound > stop_gradient(least) * small) & (k < _MOST)

    @formula
    def body(carry: Any) -> Any:
        k, term, total, slope, bound = carry
        ratio = size = x / (k + 1)
        size = stop_gradient(abs(size))
        for a in above:
            ratio = ratio * (a + k)
            size = size * maximum(abs(stop_gradient(a) + k), 1)
        for b in below:
            ratio = ratio / (b + k)
            size = size / abs(stop_gradient(b) + k)
        term = term * ratio
        k = k + 1
        return k, term, total + term, slope + term * k, bound * size

    one = _full(1, x)
    start = (shapes.full((), 0.0, x.dtype), one, one, _full(0, x), one)
    _, _, total, slope, _ = while_loop(going, body, start)
    return total, slope


# The confluent function ----------------------------------------------------------------------------------------------

_TERMS = 60.0


def _hyp1f1(a: Any, b: Any, x: Any, *, small: float = _SMALL) -> Any:
    """Evaluate Kummer's function M(a, b, x).

    It is a series (DLMF 13.2.2), for x < 0 after Kummer's transformation (13.2.39), and for large x an asymptotic
    series (13.7.2). ``small`` is the size of a term, relative to the sum, at which a series ends.
    """
    negative = x < 0
    first, size = where(negative, b - a, a), abs(x)
    product = abs(b - first) * abs(1 - first)
    far = (stop_gradient(size) > stop_gradient(product) + 50) & ~_is_pole(first)
    far = far & ~_is_pole(b)
    total, _ = _series([where(far, 1, first)], [where(far, 1, b)], where(far, 0, size), small)
    near = where(negative, exp(where(far, 0, minimum(x, 0))) * total, total)
    distant = _confluent_far(where(far, first, 1.5), where(far, b, 2.0), where(far, size, 60), negative)
    return where(far, distant, near)


def _confluent_far(a: Any, b: Any, z: Any, scaled: Any) -> Any:
    """Evaluate M(a, b, z) for large z, or exp(-z) M(a, b, z) where ``scaled``.

    The asymptotic series is summed up to its smallest term.
    """

    @formula
    def body(carry: Any) -> Any:
        n, term, total = carry
        factor = (b - a + n) / z * ((1 - a + n) / (n + 1))
        still = abs(stop_gradient(factor)) < 1
        term = term * where(still, factor, 0)
        return n + 1, term, total + term

    start = (shapes.full((), 0.0, z.dtype), _full(1, z), _full(1, z))
    _, _, total = while_loop(formula(lambda carry: carry[0] < _TERMS), body, start)
    inverse, sign = _reciprocal_gamma(a)
    other, other_sign = _reciprocal_gamma(b)
    exponent = inverse - other + (a - b) * log(z)
    exponent = where(scaled, exponent, exponent + z)
    half = exp(exponent * 0.5)
    return sign * other_sign * half * (half * total)


def _by_x(t: Any, *operands: Any, orders: tuple[int, ...]) -> Any:
    """Jvp rule of M(a, b, x) or F(a, b; c; x) for x, the last operand: return the tangent for the tangent ``t`` of x.

    The derivative is a factor times the function with all parameters increased by one (DLMF 13.3.15, 15.5.1).
    ``orders`` are the orders of the derivative in each operand, if the function is itself a derivative. Then the order
    in x is increased by one.
    """
    p = hyp1f1_p if len(operands) == 3 else hyp2f1_p
    if any(orders):
        return mul(t, p.bind(*operands, orders=(*orders[:-1], orders[-1] + 1)))
    *parameters, x = operands
    *above, below = parameters
    factor = div(above[0] if len(above) == 1 else mul(*above), below)
    following = p.bind(*(add(v, 1) for v in parameters), x, orders=orders)
    return mul(t, mul(factor, following))


hyp1f1_p: Primitive = by_forward_mode(
    "hyp1f1", formula(_hyp1f1), arity=3, host=host.special("hyp1f1"), slopes=(None, None, _by_x)
)
by_next_functions(hyp1f1_p, partial(formula(_hyp1f1), small=_SMALL_IN_SERIES), 1, _OVERFLOW)


# Gauss's function ----------------------------------------------------------------------------------------------------

_STEP_TERMS = 400.0
"""The largest number of terms in a step of :func:`_taylor`."""


def _hyp2f1(a: Any, b: Any, c: Any, x: Any, *, small: float = _SMALL) -> Any:
    """Evaluate the hypergeometric function F(a, b; c; x).

    Pfaff's or Euler's transformation maps x to [0, 1) (DLMF 15.8.1). The transformation is selected that makes the
    parameters positive, so that all terms of the series are positive. At x = 1 it is Gauss's sum (DLMF 15.4.20).
    ``small`` is the size of a term, relative to the sum, at which a series ends.
    """
    low, high = minimum(a, b), maximum(a, b)
    fixed = [stop_gradient(v) for v in (low, high, c)]
    at_one, beyond = x == 1, x > 1
    finite = _is_pole(fixed[0]) | _is_pole(fixed[1])
    inner = where(at_one | beyond, 0.5, x)
    negative = inner < 0
    rest = 1 - inner
    # Negative x: (1 - x)**-low F(low, c - high), or with low and high exchanged.
    exchanged = (fixed[2] - fixed[1] < 0) & (fixed[2] - fixed[0] >= 0)
    selected = where(exchanged, high, low)
    turned = c - where(exchanged, low, high)
    # Positive x: Euler's transformation.
    least = minimum(fixed[2] - fixed[0], fixed[2] - fixed[1])
    euler = (fixed[0] < 0) & (least > fixed[0]) & ~finite
    first = where(negative, selected, where(euler, c - low, low))
    second = where(negative, turned, where(euler, c - high, high))
    power = where(negative, -selected, where(euler, c - low - high, 0))
    point = where(negative, inner / (inner - 1), inner)
    distance = where(negative, 1 / rest, rest)
    value = rest**power * _within(first, second, c, point, distance, small)
    # A polynomial is summed at any x.
    outside = (at_one | beyond) & finite
    ended, _ = _series(
        [where(outside, low, 0), where(outside, high, 0)], [where(outside, c, 1)], where(outside, x, 0), small
    )
    excess = c - low - high
    summable = at_one & (stop_gradient(excess) > 0)
    terms = [where(summable, v, 1) for v in (c, excess, c - low, c - high)]
    logs, sign = None, None
    for k, v in enumerate(terms):
        size, one = _reciprocal_gamma(v)
        size = -size if k < 2 else size
        logs, sign = (size, one) if logs is None else (logs + size, sign * one)
    ends = where(summable, sign * exp(logs), math.inf)
    # F(a, c; c; x) is (1 - x)**-a, above 1 too where a is an integer.
    as_high = fixed[2] == fixed[1]
    rest_of = where(as_high, low, high)
    is_integer = floor(stop_gradient(rest_of)) == stop_gradient(rest_of)
    elementary = beyond & (as_high | (fixed[2] == fixed[0])) & is_integer
    ends = where(elementary, where(elementary, 1 - x, 1) ** (-where(elementary, rest_of, 1)), ends)
    return where(outside, ended, where(at_one | beyond, ends, value))


def _within(a: Any, b: Any, c: Any, x: Any, rest: Any, small: float) -> Any:
    """Evaluate F(a, b; c; x) for x in [0, 1), where ``rest`` is 1 - x.

    For x up to 1/2 it is the hypergeometric series. For larger x the differential equation (DLMF 15.10.1) is solved
    from 1/2 on by Taylor series, in steps of 0.4 of the distance to the singularity at 1. No parameters need special
    cases. ``small`` is the size of a term, relative to the sum, at which a series ends.
    """
    start = minimum(x, 0.5)
    value, slope = _series([a, b], [c], start, small)
    slope = slope / where(start == 0, 1, start)
    target = minimum(rest, 0.5)

    @formula
    def going(carry: Any) -> Any:
        distance, _, _ = carry
        return _any(distance > target)

    @formula
    def body(carry: Any) -> Any:
        distance, value, slope = carry
        closer = maximum(distance * 0.6, target)
        return (closer, *_taylor(a, b, c, distance, distance - closer, value, slope, small))

    _, value, _ = while_loop(going, body, (_full(0.5, x), value, slope))
    return value


def _taylor(
    a: Any, b: Any, c: Any, rest: Any, step: Any, value: Any, slope: Any, small: float
) -> tuple[Any, Any]:  # fmt: skip
    """Advance a solution of the hypergeometric equation by a step towards 1, by its Taylor series.

    Return the solution and its derivative after the step.

    Args:
      a, b, c: the parameters.
      rest: the distance of the point from 1.
      step: the length of the step.
      value, slope: the solution and its derivative at the point.
      small: the size of a term, relative to the sum, at which the series ends.
    """
    leading = rest * (1 - rest)
    linear, constant = 2 * rest - 1, c - a - (b + 1) + (a + b + 1) * rest
    ratio = step / leading

    @formula
    def body(carry: Any) -> Any:
        n, before, last, total, slopes = carry
        first = before * (step * ratio) * ((a + n) * (b + n) / ((n + 1) * (n + 2)))
        second = last * ratio * ((linear * n + constant) / (n + 2))
        new = first - second
        n = n + 1
        return n, last, new, total + new, slopes + new * (n + 1)

    @formula
    def going(carry: Any) -> Any:
        n, before, last, total, _ = carry
        recent = maximum(abs(before), abs(last))
        return _any(recent > abs(total) * small) & (n < _STEP_TERMS)

    moved = slope * step
    begin = (shapes.full((), 0.0, step.dtype), value, moved, value + moved, moved)
    _, _, _, total, slopes = while_loop(going, body, begin)
    still = step == 0
    return total, where(still, slope, slopes / where(still, 1, step))


hyp2f1_p: Primitive = by_forward_mode(
    "hyp2f1", formula(_hyp2f1), arity=4, host=host.special("hyp2f1"), slopes=(None, None, None, _by_x)
)
by_next_functions(hyp2f1_p, partial(formula(_hyp2f1), small=_SMALL_IN_SERIES), 2, 1.0)


# Functions -----------------------------------------------------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function of Kummer: the sum of ``(a)_k / (b)_k x**k / k!``.

    Errors are up to 175 units in the last place, of derivatives 31 (``docs/accuracy.md``).

    Args:
      a, b, x: arrays of real numbers whose shapes broadcast against each other; integers are converted.

    Returns:
      An array of floats, of the common dtype; infinite where ``b`` is 0, -1, ... and the sum does not end before.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands: of its series, of Kummer's transformation (DLMF 13.2.39) and
    of the asymptotic series 13.7.2.

    >>> from pullback.scipy import special
    >>> print(f"{special.hyp1f1(1.0, 2.0, 3.0):.4f}")
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
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands. Compiled it is its series up to 1/2, after transformations (DLMF
    15.8.1); beyond, the differential equation is solved by Taylor's series, which has no degenerate cases.

    >>> from pullback.scipy import special
    >>> print(f"{special.hyp2f1(1.0, 2.0, 3.0, 0.5):.4f}")
    1.5452
    """
    return strong(hyp2f1_p.bind(*real_operands("hyp2f1", a, b, c, x), orders=(0, 0, 0, 0)))


__all__ = declare.public_names(__name__, globals())
