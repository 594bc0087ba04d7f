"""Incomplete gamma and beta functions, regularised, with derivatives of any order by all of their operands.

Both are distribution functions, of a density that is exp(a s - κ(a)) times something without a, where s is the
logarithm of the variable. So a derivative by a is the integral of the density times a polynomial: the complete Bell
polynomial of the derivatives of the exponent, s - κ'(a), -κ''(a), ... (Comtet, *Advanced Combinatorics*, 1974, 3.3).

The integrals are compiled as Gauss and Legendre's rule: of exp(h(y)) for y from 0, where h is concave and falls from
h(0) = 0, up to where it is below -38 (the integrand is then less than a rounding error). On which side of the mean the
variable is decides from where to integrate, and a is increased by one first (DLMF 8.8.5 and 8.17.20), so that the
integrand has one scale. What h would lose to cancellation is computed by series. Against values of 60 digits the
relative error is below 1e-13 for a up to 3e4.

Whatever the dtype, all of this is computed in double precision, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import by_formula, elementwise
from pullback.primitives.elementwise import abs, add, digamma, div, eq, exp, gt, lt, mul, neg, polygamma, sqrt, sub
from pullback.primitives.precision import doubled
from pullback.primitives.precision import log_of_positive as log
from pullback.primitives.quadrature import by_integrals, cut_off, in_blocks, in_full, in_series, integral
from pullback.primitives.special import xlog1py_p, xlogy_p

_double = np.dtype(np.float64)
_expm1, _log1p, _lgamma = ops.expm1_p.bind, ops.log1p_p.bind, ops.lgamma_p.bind
_and, _or, _not = ops.and_p.bind, ops.or_p.bind, ops.not_p.bind
_ge, _le = ops.ge_p.bind, ops.le_p.bind
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
xlogy, xlog1py = xlogy_p.bind, xlog1py_p.bind
_where, _polynomial = ops.where, ops.polynomial
_fixed = ops.stop_gradient_p.bind

Formula = Callable[..., Any]


# Without cancellation ----------------------------------------------------------------------------------------------


def _log1p_less_x(x: Any, factor: Any = 1.0) -> Any:
    """log(1 + x) - x, times a factor; near zero 2 artanh(r) - x, where r = x / (2 + x) and x - 2 r is r x."""
    if not in_full():
        series = mul(mul(mul(factor, x), x), _polynomial(x, [1 / 5, -1 / 4, 1 / 3, -1 / 2]))
        return _where(lt(abs(x), 1e-3), series, mul(factor, sub(log(add(x, 1)), x)))
    near = lt(abs(x), 0.5)
    small = _where(near, x, 0)
    r = div(small, add(small, 2))
    square = ops.square(r)
    series = sub(mul(2, mul(square, _polynomial(square, [1 / n for n in range(31, 2, -2)]))), small)
    return _where(near, mul(mul(factor, r), series), mul(factor, sub(_log1p(_where(near, 0, x)), x)))


def _expm1_less_x(x: Any, factor: Any = 1.0) -> Any:
    """exp(x) - 1 - x, times a factor, which may be as large as x is small."""
    if in_full():
        near, terms = lt(abs(x), 0.5), 16
        far = sub(_expm1(_where(near, 0, x)), x)
    else:
        single = x.dtype == np.float32
        near, terms = (_and(gt(x, -0.8), lt(x, 1.5)), 14) if single else (lt(abs(x), 1e-3), 4)
        far = sub(exp(x), add(x, 1))
    small = _where(near, x, 0)
    series = _polynomial(small, [1 / math.factorial(n) for n in range(terms, 1, -1)])
    return _where(near, mul(mul(mul(factor, small), small), series), mul(factor, far))


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _stirling_series(a: Any) -> Any:
    return div(_polynomial(div(1, ops.square(a)), _STIRLING[::-1]), a)


def _stirling_error(a: Any) -> Any:
    """log Γ(a) - (a - 1/2) log a + a - log(2π) / 2: from 10 on by its asymptotic series (DLMF 5.11.1)."""
    large, small = _maximum(a, 10), _minimum(a, 10)
    if not in_full():  # by the series of a + 4, and Γ(a + 4) / Γ(a)
        from_four = add(small, 4)
        product = mul(mul(small, add(small, 1)), mul(add(small, 2), add(small, 3)))
        powers = mul(sub(small, 0.5), log(div(from_four, small)))
        shifted = sub(add(powers, log(div(ops.square(ops.square(from_four)), product))), 4)
        of_four = _stirling_series(_where(lt(a, 10), from_four, large))
        return add(of_four, _where(lt(a, 10), shifted, 0))
    series = _stirling_series(large)
    direct = sub(add(sub(_lgamma(small), mul(sub(small, 0.5), log(small))), small), 0.5 * math.log(2 * math.pi))
    return _where(lt(a, 10), direct, series)


def _lgamma1p(a: Any) -> Any:
    """log Γ(1 + a) for sizes up to 1/2, by its series at 0 (DLMF 5.7.3)."""
    zeta = host.special("zeta")(np.arange(2.0, 52.0), np.ones(50))
    terms = [float((-1) ** n * z / n) for n, z in enumerate(zeta, 2)]
    return mul(a, _polynomial(a, [*terms[::-1], -np.euler_gamma]))


# Integrals ---------------------------------------------------------------------------------------------------------


def _bell(order: Sequence[int], derivatives: Callable[[tuple[int, ...]], Any]) -> Any:
    """The derivative of exp(L), divided by exp(L), of some order by each variable, from the derivatives of L."""

    @cache
    def factor(index: tuple[int, ...]) -> Any:
        first = next((i for i, n in enumerate(index) if n), None)
        if first is None:
            return None  # one
        below = tuple(n - (i == first) for i, n in enumerate(index))
        total: Any = None
        for taken in np.ndindex(*(n + 1 for n in below)):
            weight = math.prod(map(math.comb, below, taken))
            term = derivatives(tuple(n + (i == first) for i, n in enumerate(taken)))
            rest = factor(tuple(n - m for n, m in zip(below, taken, strict=True)))
            term = term if rest is None else mul(rest, term)
            term = term if weight == 1 else mul(term, weight)
            total = term if total is None else add(total, term)
        return total

    return factor(tuple(order))


def _polygamma(order: int, x: Any) -> Any:
    """The derivative of the logarithm of the gamma function of order ``order + 1``."""
    return digamma(x) if order == 0 else polygamma(shapes.full((), order, x.dtype), x)


def _guarded(valid: Any, operands: Sequence[Any], formula: Formula, otherwise: Any) -> Any:
    """A formula where the operands are in its domain, and another value elsewhere."""
    safe = [_where(valid, x, inside) for x, inside in operands]
    return _where(valid, formula(*safe), otherwise)


# The incomplete gamma function -------------------------------------------------------------------------------------


def _gamma_exponent(a: Any, x: Any) -> Any:
    """log(x**a exp(-x) / Γ(a) / sqrt(a / 2π)), by how far x is from a: large operands cancel first."""
    far = div(sub(x, a), a)
    near = lt(abs(far), 0.5)
    exponent = mul(a, _where(near, _log1p_less_x(_where(near, far, 0)), sub(log(div(x, a)), far)))
    return sub(exponent, _stirling_error(a))


def _gamma_weight(a: Any, x: Any) -> Any:
    """x**a exp(-x) / Γ(a)."""
    return mul(sqrt(div(a, 2 * math.pi)), exp(_gamma_exponent(a, x)))


def log_gamma_weight(a: Any, x: Any) -> Any:
    """The logarithm of x**a exp(-x) / Γ(a)."""
    return add(mul(log(div(a, 2 * math.pi)), 0.5), _gamma_exponent(a, x))


def _gamma_end(shifted: Any, x: Any, slope: Any, above: Any, cut: float) -> Any:
    """Where h, the exponent in ``gamma_integral``, is ``cut`` or more."""
    c, d = div(cut, x), div(cut, shifted)
    end_above = _minimum(sqrt(mul(2, c)), log(add(add(c, 1), log(mul(2, add(c, 1))))))
    end_below = _minimum(mul(add(d, sqrt(mul(d, add(d, 8)))), 0.5), div(add(x, cut), shifted))
    return _minimum(_where(above, end_above, end_below), div(cut, slope))


def gamma_integral(a: Any, x: Any, order: int) -> tuple[Any, Any]:
    """Whether x is above the mean; and the tail there, or else what is below x, divided by the weight.

    Both are of the derivative by a of some order.
    """
    above = gt(x, _maximum(a, 1))
    shifted = _where(above, a, add(a, 1))
    slope = abs(sub(x, shifted))
    end = _gamma_end(shifted, x, slope, above, cut_off())
    constants = [neg(_polygamma(n, shifted)) for n in range(order)]
    if order:
        constants[0] = add(log(x), constants[0])

    def integrand(y: Any, x: Any, slope: Any, sign: Any, *constants: Any) -> Any:
        z = mul(y, sign)
        value = exp(neg(add(mul(slope, y), _expm1_less_x(z, x))))
        if not order:
            return value
        first = add(z, constants[0])
        return mul(value, _bell((order,), lambda index: first if index == (1,) else constants[index[0] - 1]))

    out = integral(integrand, end, x, slope, _where(above, _all(1, x), -1), *constants, narrow=not order)
    extra = _bell((order,), lambda index: constants[index[0] - 1])
    extra = 1 if extra is None else extra
    return above, _where(above, out, div(add(mul(x, out), extra), a))


def gamma_small(a: Any, x: Any) -> Any:
    """The tail for x up to 1 and a up to 1/2: one less a power of x, less the rest of the series (DLMF 8.7.1)."""
    exponent = sub(mul(a, log(x)), _lgamma1p(a))
    term, total = 1.0, None
    power: Any = None
    for n in range(1, 22):
        power = x if power is None else mul(power, x)
        term /= -n
        part = div(mul(power, term), add(a, n))
        total = part if total is None else add(total, part)
    return neg(add(_expm1(exponent), mul(mul(exp(exponent), a), total)))


def _gamma_lower(a: Any, x: Any) -> Any:
    above, part = gamma_integral(a, x, 0)
    value = mul(_gamma_weight(a, x), part)
    return _where(above, sub(1, value), value)


def _gamma_upper(a: Any, x: Any) -> Any:
    above, part = gamma_integral(a, x, 0)
    value = mul(_gamma_weight(a, x), part)
    small = _and(_le(x, 1), lt(a, 0.5))
    tail = gamma_small(_where(small, a, 0.25), _where(small, x, 0.5))
    return _where(small, tail, _where(above, value, sub(1, value)))


def _gamma_domain(a: Any, x: Any) -> Any:
    return _and(_and(gt(a, 0), lt(a, math.inf)), _and(gt(x, 0), lt(x, math.inf)))


def _all(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, _double)


def _with_limits(formula: Formula, nothing: float) -> Formula:
    """The distribution function (``nothing`` is 0) or its tail (1), with SciPy's values at the ends of the domain."""

    def of_all(a: Any, x: Any) -> Any:
        at_ends = _where(_or(eq(x, math.inf), eq(a, 0)), _all(1 - nothing, x), nothing)
        both = _or(_and(eq(x, 0), eq(a, 0)), _and(eq(x, math.inf), eq(a, math.inf)))
        known = _and(_and(_ge(a, 0), _ge(x, 0)), _not(both))
        return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), formula, _where(known, at_ends, math.nan))

    return of_all


def _gamma_density_in_double(a: Any, x: Any) -> Any:
    inside = _gamma_domain(a, x)
    at_ends = exp(sub(sub(xlogy(sub(a, 1), x), x), _lgamma(a)))
    return _guarded(inside, ((a, 1), (x, 1)), lambda a, x: div(_gamma_weight(a, x), x), at_ends)


# x**(a - 1) exp(-x) / Γ(a).
gamma_density_p: Primitive = by_formula(
    "gamma_density", of=FLOAT, formula=doubled(_gamma_density_in_double),
    jvp=(
        lambda t, a, x: mul(t, mul(_gamma_density(a, x), sub(log(x), digamma(a)))),
        lambda t, a, x: mul(t, mul(_gamma_density(a, x), sub(div(sub(a, 1), x), 1))),
    ),
)  # fmt: skip
_gamma_density: Formula = gamma_density_p.bind


def _gamma_exponents(a: Any, x: Any) -> Formula:
    """The derivatives by a of the logarithm of the density."""
    return lambda index: sub(log(x), digamma(a)) if index == (1,) else neg(_polygamma(index[0] - 1, a))


igamma_p = elementwise(
    "igamma", of=FLOAT, arity=2, host=host.special("gammainc"),
    hlo=in_blocks(_with_limits(_gamma_lower, 0.0), smooth=True),
    jvp=(
        lambda t, a, x, ans: mul(t, igamma_derivative_p.bind(a, x, order=1)),
        lambda t, a, x, ans: mul(t, _gamma_density(a, x)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip
igammac_p = elementwise(
    "igammac", of=FLOAT, arity=2, host=host.special("gammaincc"),
    hlo=in_blocks(_with_limits(_gamma_upper, 1.0), smooth=True),
    jvp=(
        lambda t, a, x, ans: neg(mul(t, igamma_derivative_p.bind(a, x, order=1))),
        lambda t, a, x, ans: neg(mul(t, _gamma_density(a, x))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _igamma_derivative(a: Any, x: Any, *, order: int) -> Any:
    def inside(a: Any, x: Any) -> Any:
        above, part = gamma_integral(a, x, order)
        value = mul(_gamma_weight(a, x), part)
        return _where(above, neg(value), value)

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, _outside(gt(a, 0), x))


def _outside(valid: Any, x: Any) -> Any:
    """Derivatives at the ends: none at 0 and at infinity."""
    return _where(_and(valid, _or(eq(x, 0), eq(x, math.inf))), _all(0, x), math.nan)


# The derivative of igamma by a, of an order from 1 on.
igamma_derivative_p: Primitive = by_integrals(
    "igamma_derivative", _igamma_derivative,
    (
        lambda t, a, x, order: mul(t, igamma_derivative_p.bind(a, x, order=order + 1)),
        lambda t, a, x, order: mul(t, mul(_gamma_density(a, x), _bell((order,), _gamma_exponents(a, x)))),
    ),
    smooth=True,
)  # fmt: skip


_SERIES_BELOW, _SPLIT = 72.0, 1 / 6
"""Where integrands of series are cut off, and of which share the first part is; their derivatives fall more slowly."""


@in_series(igamma_derivative_p)
def _igamma_derivative_in_series(a: Any, x: Any, *, order: int) -> Any:
    """As the value, with the weight under the integral: what depends on a there is all of one exponent.

    It has 1 / Γ(a + 1), times a where it is above the mean: the coefficients of 1 / Γ(a) itself would cancel near zero.
    """

    def inside(a: Any, x: Any) -> Any:
        above, shifted = gt(x, _maximum(a, 1)), add(a, 1)
        power, sign = _where(above, a, shifted), _where(above, _all(1, x), -1)
        slope, log_x = mul(sub(x, power), sign), log(x)
        weight = div(mul(_gamma_weight(_fixed(a), _fixed(x)), _where(above, 1, _fixed(x))), _fixed(a))
        level = sub(sub(mul(power, log_x), x), _lgamma(shifted))
        level = sub(level, _fixed(level))
        constants = [neg(_polygamma(n, shifted)) for n in range(order)]
        factor, more = _where(above, a, 1), _where(above, _all(order, x), 0)

        def product(value: Any, first: Any, factor: Any, more: Any, *constants: Any) -> Any:
            known = [add(first, constants[0]), *constants[1:]]
            below, bell = (_bell((n,), lambda index: known[index[0] - 1]) for n in (order - 1, order))
            return mul(value, add(mul(factor, bell), more if below is None else mul(more, below)))

        def integrand(y: Any, level: Any, slope: Any, x: Any, sign: Any, log_x: Any, *others: Any) -> Any:
            z = mul(y, sign)
            value = exp(sub(level, add(mul(slope, y), mul(x, _expm1_less_x(z)))))
            return product(value, add(z, log_x), *others)

        end = _fixed(_gamma_end(power, x, slope, above, _SERIES_BELOW))
        others = log_x, factor, more, *constants
        part = integral(integrand, end, level, slope, x, sign, *others, split=_SPLIT)
        extra = div(product(exp(level), *others), x)
        return mul(weight, _where(above, neg(part), add(part, extra)))

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, _outside(gt(a, 0), x))


# The derivative of a sample ----------------------------------------------------------------------------------------


def _gamma_slope(a: Any, x: Any, *, order: int) -> Any:
    def inside(a: Any, x: Any) -> Any:
        above, part = gamma_integral(a, x, order)
        return _where(above, neg(part), part)

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, math.nan)


# The same divided by x times the density, which may underflow.
gamma_slope_p: Primitive = by_integrals(
    "gamma_slope", _gamma_slope,
    (
        lambda t, a, x, order: mul(t, sub(
            gamma_slope_p.bind(a, x, order=order + 1),
            mul(gamma_slope_p.bind(a, x, order=order), sub(log(x), digamma(a))),
        )),
        lambda t, a, x, order: mul(t, sub(
            div(_bell((order,), _gamma_exponents(a, x)), x),
            mul(gamma_slope_p.bind(a, x, order=order), sub(div(a, x), 1)),
        )),
    ),
    smooth=True,
)  # fmt: skip


def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative of a sample of the gamma distribution by its parameter, where its place in the order is fixed."""
    return _where(eq(x, 0), 0, neg(mul(x, gamma_slope_p.bind(a, x, order=1))))


# The incomplete beta function --------------------------------------------------------------------------------------


def _beta_exponent(a: Any, b: Any, x: Any, rest: Any, distance: Any) -> Any:
    """log(x**a (1 - x)**b / B(a, b) / sqrt(a b / (a + b) / 2π)), by the distance of x from the mean, a / (a + b)."""
    total = add(a, b)
    of_x, of_rest = _log_ratio(a, total, distance, x), _log_ratio(b, total, neg(distance), rest)
    errors = sub(sub(_stirling_error(total), _stirling_error(a)), _stirling_error(b))
    return add(add(of_x, of_rest), errors)


def _beta_root(a: Any, b: Any) -> Any:
    return div(mul(div(_maximum(a, b), add(a, b)), _minimum(a, b)), 2 * math.pi)


def _beta_weight(*variables: Any) -> Any:
    """x**a (1 - x)**b / B(a, b), of the same variables."""
    return mul(sqrt(_beta_root(*variables[:2])), exp(_beta_exponent(*variables)))


def log_beta_weight(*variables: Any) -> Any:
    """The logarithm of x**a (1 - x)**b / B(a, b), of the variables of ``beta_integral``."""
    return add(mul(log(_beta_root(*variables[:2])), 0.5), _beta_exponent(*variables))


def _log_ratio(weight: Any, total: Any, distance: Any, value: Any) -> Any:
    """weight (log(value / mean) - distance / mean), where the mean is weight / total."""
    mean = div(weight, total)
    far = div(distance, mean)
    near = lt(abs(far), 0.5)
    close = _log1p_less_x(_where(near, far, 0), weight)
    return _where(near, close, sub(mul(weight, log(div(value, mean))), mul(distance, total)))


def _beta_end(shifted: Any, b: Any, x: Any, rest: Any, log_rest: Any, slope: Any, cut: float) -> Any:
    """Where h, the exponent in ``beta_integral``, is ``cut`` or more."""
    total = add(shifted, b)
    c = div(cut, mul(shifted, div(b, total)))
    end = _minimum(mul(add(c, sqrt(mul(c, add(c, 8)))), 0.5), div(sub(cut, mul(total, log_rest)), shifted))
    end = _minimum(end, div(cut, slope))
    # h is total log(1 + rest (exp(y) - 1)) - b y: where the first term is cut + b end is nearer than the end.
    return _minimum(end, _log1p(div(_expm1(div(add(mul(b, end), cut), total)), rest)))


def _exponents_at(total: Any, of_a: Any, of_b: Any, by_a: int, by_b: int) -> dict[tuple[int, ...], Any]:
    """The derivatives of -log B by its operands, of which ``total`` is the sum, up to some orders."""
    found: dict[tuple[int, ...], Any] = {}
    for k, n in np.ndindex(by_a + 1, by_b + 1):
        if k + n:
            value = _polygamma(k + n - 1, total)
            if not n:
                value = sub(value, _polygamma(k - 1, of_a))
            if not k:
                value = sub(value, _polygamma(n - 1, of_b))
            found[k, n] = value
    return found


# long: what is swapped, and the integrand share a dozen variables
def beta_integral(a: Any, b: Any, x: Any, by_a: int, by_b: int, rest: Any = None) -> tuple[Any, Any, tuple[Any, ...]]:
    """Whether x is above the mean; what is above it there, or else below, divided by the weight; the variables of that.

    Both are of a derivative of some orders by a and by b. ``rest`` is 1 - x, where that is known better.
    """
    orders = (by_a, by_b)
    swapped = gt(x, div(add(a, 1), add(add(a, b), 1)))
    log_rest = _log1p(neg(x)) if rest is None else log(rest)
    rest, log_x = sub(1, x) if rest is None else rest, log(x)
    distance = _where(gt(x, 0.5), sub(div(b, add(a, b)), rest), sub(x, div(a, add(a, b))))
    a, b = _where(swapped, b, a), _where(swapped, a, b)
    x, rest = _where(swapped, rest, x), _where(swapped, x, rest)
    log_x, log_rest = _where(swapped, log_rest, log_x), _where(swapped, log_x, log_rest)
    distance = _where(swapped, neg(distance), distance)
    shifted, total = add(a, 1), add(add(a, 1), b)
    above = gt(x, 0.5)  # then what is small, and exact, is 1 - x
    slope = _where(above, sub(mul(total, rest), b), sub(shifted, mul(total, x)))
    end = _beta_end(shifted, b, x, rest, log_rest, slope, cut_off())

    # With a increased by one, by the operands as they were before they were swapped.
    places = _where(swapped, b, shifted), _where(swapped, shifted, b)
    inner, outer = (_exponents_at(x, *places, by_a, by_b) for x in (total, add(a, b)))
    firsts = [_where(swapped, log_rest, log_x), _where(swapped, log_x, log_rest)]
    keys = list(inner)

    def integrand(y: Any, side: Any, slope: Any, total: Any, swapped: Any, above: Any, *logarithms: Any) -> Any:
        """``side`` is x, or 1 - x above 1/2: h is the same of both, with another sign of y."""
        z = _where(above, y, neg(y))
        if in_full():
            part, fall = mul(side, _expm1(z)), _expm1_less_x(z, mul(total, side))
        else:
            of_one = _expm1_less_x(z)
            part, fall = mul(side, add(of_one, z)), mul(mul(total, side), of_one)
        value = exp(neg(add(mul(slope, y), add(fall, _log1p_less_x(part, total)))))
        if not keys:
            return value
        first, second, *known = logarithms
        of = dict(zip(keys, known, strict=True))
        shift = sub(_log1p(part), _where(above, y, 0))
        if by_a:
            of[1, 0] = add(of[1, 0], sub(first, add(shift, _where(swapped, 0, y))))
        if by_b:
            of[0, 1] = add(of[0, 1], sub(second, add(shift, _where(swapped, y, 0))))
        return mul(value, _bell(orders, of.__getitem__))

    out = integral(integrand, end, _where(above, rest, x), slope, total, swapped, above, *firsts, *inner.values())
    if by_a:
        outer[1, 0] = add(outer[1, 0], firsts[0])
    if by_b:
        outer[0, 1] = add(outer[0, 1], firsts[1])
    extra = _bell(orders, outer.__getitem__) if keys else 1
    return swapped, div(add(extra, mul(mul(x, add(a, b)), out)), a), (a, b, x, rest, distance)


def _beta_side(a: Any, b: Any, x: Any, by_a: int, by_b: int) -> tuple[Any, Any]:
    """Whether x is above the mean; and what is above it there, or else below."""
    swapped, part, variables = beta_integral(a, b, x, by_a, by_b)
    return swapped, mul(_beta_weight(*variables), part)


def _beta(a: Any, b: Any, x: Any, by_a: int, by_b: int) -> Any:
    """The function, or its derivative of some orders by a and by b."""
    swapped, value = _beta_side(a, b, x, by_a, by_b)
    return _where(swapped, neg(value) if by_a or by_b else sub(1, value), value)


def _beta_upper(a: Any, b: Any, x: Any) -> Any:
    swapped, value = _beta_side(a, b, x, 0, 0)
    return _where(swapped, value, sub(1, value))


def _beta_with_limits(inside: Formula, a: Any, b: Any, x: Any) -> Any:
    """The distribution function, with SciPy's values at the ends of the domain."""
    at_ends = _where(_or(eq(x, 1), _or(eq(a, 0), eq(b, math.inf))), _all(1, x), 0)
    at_ends = _where(eq(x, 0), 0, at_ends)
    both = _or(_and(eq(a, 0), eq(b, 0)), _and(eq(a, math.inf), eq(b, math.inf)))
    known = _and(_and(_ge(a, 0), _ge(b, 0)), _and(_ge(x, 0), _le(x, 1)))
    at_ends = _where(_and(known, _not(both)), at_ends, math.nan)
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, at_ends)


def _beta_domain(a: Any, b: Any, x: Any) -> Any:
    sizes = _and(_and(gt(a, 0), lt(a, math.inf)), _and(gt(b, 0), lt(b, math.inf)))
    return _and(sizes, _and(gt(x, 0), lt(x, 1)))


def _beta_density_in_double(a: Any, b: Any, x: Any) -> Any:
    powers = add(xlogy(sub(a, 1), x), xlog1py(sub(b, 1), neg(x)))
    at_ends = exp(add(powers, sub(_lgamma(add(a, b)), add(_lgamma(a), _lgamma(b)))))

    def inside(a: Any, b: Any, x: Any) -> Any:
        rest = sub(1, x)
        return div(_beta_weight(a, b, x, rest, sub(x, div(a, add(a, b)))), mul(x, rest))

    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, at_ends)


# x**(a - 1) (1 - x)**(b - 1) / B(a, b).
beta_density_p: Primitive = by_formula(
    "beta_density", of=FLOAT, formula=doubled(_beta_density_in_double),
    jvp=(
        lambda t, a, b, x: mul(t, mul(_beta_density(a, b, x), _beta_exponents(a, b, x)((1, 0)))),
        lambda t, a, b, x: mul(t, mul(_beta_density(a, b, x), _beta_exponents(a, b, x)((0, 1)))),
        lambda t, a, b, x: mul(t, mul(
            _beta_density(a, b, x), sub(div(sub(a, 1), x), div(sub(b, 1), sub(1, x)))
        )),
    ),
)  # fmt: skip
_beta_density: Formula = beta_density_p.bind


def _beta_exponents(a: Any, b: Any, x: Any) -> Formula:
    """The derivatives by a and b of the logarithm of the density."""

    def of(index: tuple[int, ...]) -> Any:
        k, n = index
        value = _polygamma(k + n - 1, add(a, b))
        if not n:
            value = sub(value, _polygamma(k - 1, a))
        if not k:
            value = sub(value, _polygamma(n - 1, b))
        return add(value, log(x)) if index == (1, 0) else add(value, _log1p(neg(x))) if index == (0, 1) else value

    return of


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return _beta_with_limits(partial(_beta, by_a=0, by_b=0), a, b, x)


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    """The tail: where it is known without cancellation as it is."""
    lower = sub(1, _beta_with_limits(lambda a, b, x: _all(0.5, x), a, b, x))
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), _beta_upper, lower)


betainc_p = elementwise(
    "betainc", of=FLOAT, arity=3, host=host.special("betainc"), hlo=in_blocks(_betainc, smooth=True),
    jvp=(
        lambda t, a, b, x, ans: mul(t, betainc_derivative_p.bind(a, b, x, by_a=1, by_b=0)),
        lambda t, a, b, x, ans: mul(t, betainc_derivative_p.bind(a, b, x, by_a=0, by_b=1)),
        lambda t, a, b, x, ans: mul(t, _beta_density(a, b, x)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _betainc_derivative(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    return _beta_derivative_inside(partial(_beta, by_a=by_a, by_b=by_b), a, b, x)


def _beta_derivative_inside(formula: Formula, a: Any, b: Any, x: Any) -> Any:
    at_ends = _where(_and(_and(gt(a, 0), gt(b, 0)), _or(eq(x, 0), eq(x, 1))), _all(0, x), math.nan)
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), formula, at_ends)


# The derivative of betainc by a and b, of orders that are not both zero.
betainc_derivative_p: Primitive = by_integrals(
    "betainc_derivative", _betainc_derivative,
    (
        lambda t, a, b, x, by_a, by_b: mul(t, betainc_derivative_p.bind(a, b, x, by_a=by_a + 1, by_b=by_b)),
        lambda t, a, b, x, by_a, by_b: mul(t, betainc_derivative_p.bind(a, b, x, by_a=by_a, by_b=by_b + 1)),
        lambda t, a, b, x, by_a, by_b: mul(
            t, mul(_beta_density(a, b, x), _bell((by_a, by_b), _beta_exponents(a, b, x)))
        ),
    ),
    smooth=True,
)  # fmt: skip


@in_series(betainc_derivative_p)
def _betainc_derivative_in_series(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    """As the value, with the weight under the integral, as that of ``igamma_derivative``."""
    return _beta_derivative_inside(partial(_beta_in_series, orders=(by_a, by_b)), a, b, x)


# long: as ``beta_integral``
def _beta_in_series(a: Any, b: Any, x: Any, *, orders: tuple[int, int]) -> Any:
    swapped = gt(x, div(add(a, 1), add(add(a, b), 1)))
    rest, log_x, log_rest = sub(1, x), log(x), _log1p(neg(x))
    variables = [_fixed(v) for v in (a, b, x, rest, sub(x, div(a, add(a, b))))]
    weight = _beta_weight(*variables)
    a, b = _where(swapped, b, a), _where(swapped, a, b)
    x, rest = _where(swapped, rest, x), _where(swapped, x, rest)
    log_x, log_rest = _where(swapped, log_rest, log_x), _where(swapped, log_x, log_rest)
    shifted, total = add(a, 1), add(add(a, 1), b)
    weight = mul(weight, _fixed(div(mul(x, add(a, b)), a)))
    level = add(add(mul(shifted, log_x), mul(b, log_rest)), sub(_lgamma(total), add(_lgamma(shifted), _lgamma(b))))
    level = sub(level, _fixed(level))
    above = gt(x, 0.5)
    slope = _where(above, sub(mul(total, rest), b), sub(shifted, mul(total, x)))
    end = _fixed(_beta_end(shifted, b, x, rest, log_rest, slope, _SERIES_BELOW))
    places = _where(swapped, b, shifted), _where(swapped, shifted, b)
    inner, outer = (_exponents_at(v, *places, *orders) for v in (total, add(a, b)))
    keys = list(inner)

    def product(value: Any, known: Sequence[Any], of_x: Any, of_rest: Any, swapped: Any) -> Any:
        of = dict(zip(keys, known, strict=True))
        if orders[0]:
            of[1, 0] = add(of[1, 0], _where(swapped, of_rest, of_x))
        if orders[1]:
            of[0, 1] = add(of[0, 1], _where(swapped, of_x, of_rest))
        return mul(value, _bell(orders, of.__getitem__))

    def integrand(
        y: Any, level: Any, side: Any, shifted: Any, total: Any, log_x: Any, log_rest: Any, swapped: Any, above: Any,
        *known: Any,
    ) -> Any:  # fmt: skip
        shift = sub(_log1p(mul(side, _expm1(_where(above, y, neg(y))))), _where(above, y, 0))
        value = exp(sub(level, add(mul(shifted, y), mul(total, shift))))
        return product(value, known, sub(log_x, add(shift, y)), sub(log_rest, shift), swapped)

    operands = level, _where(above, rest, x), shifted, total, log_x, log_rest, swapped, above, *inner.values()
    part = integral(integrand, end, *operands, split=_SPLIT)
    extra = div(product(exp(level), list(outer.values()), log_x, log_rest, swapped), mul(x, add(a, b)))
    value = mul(weight, add(part, extra))
    return _where(swapped, neg(value), value)


betaincc_p = elementwise(
    "betaincc", of=FLOAT, arity=3, host=host.special("betaincc"), hlo=in_blocks(_betaincc),
    jvp=(
        lambda t, a, b, x, ans: neg(mul(t, betainc_derivative_p.bind(a, b, x, by_a=1, by_b=0))),
        lambda t, a, b, x, ans: neg(mul(t, betainc_derivative_p.bind(a, b, x, by_a=0, by_b=1))),
        lambda t, a, b, x, ans: neg(mul(t, _beta_density(a, b, x))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _beta_slope(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    def inside(a: Any, b: Any, x: Any) -> Any:
        swapped, part, _ = beta_integral(a, b, x, by_a, by_b)
        return _where(swapped, neg(part), part)

    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, math.nan)


def _beta_slope_of(a: Any, b: Any, x: Any, orders: tuple[int, int], more: tuple[int, int]) -> Any:
    """The derivative of a slope by a or by b."""
    here = beta_slope_p.bind(a, b, x, by_a=orders[0], by_b=orders[1])
    next_one = beta_slope_p.bind(a, b, x, by_a=orders[0] + more[0], by_b=orders[1] + more[1])
    return sub(next_one, mul(here, _beta_exponents(a, b, x)(more)))


# A derivative of betainc by a and b, divided by x (1 - x) times the density, which may underflow.
beta_slope_p: Primitive = by_integrals(
    "beta_slope", _beta_slope,
    (
        lambda t, a, b, x, by_a, by_b: mul(t, _beta_slope_of(a, b, x, (by_a, by_b), (1, 0))),
        lambda t, a, b, x, by_a, by_b: mul(t, _beta_slope_of(a, b, x, (by_a, by_b), (0, 1))),
        lambda t, a, b, x, by_a, by_b: mul(t, sub(
            div(_bell((by_a, by_b), _beta_exponents(a, b, x)), mul(x, sub(1, x))),
            mul(beta_slope_p.bind(a, b, x, by_a=by_a, by_b=by_b), sub(div(a, x), div(b, sub(1, x)))),
        )),
    ),
)  # fmt: skip
