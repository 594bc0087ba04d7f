# long: because both functions, and their derivatives, share the expansion of one density
"""Regularised incomplete gamma and beta functions, with derivatives of any order with respect to all operands.

Both are distribution functions with a density exp(a s - κ(a)) times a factor independent of a, where s is the logarithm
of the variable. So a derivative with respect to a is the integral of the density times a polynomial: the complete Bell
polynomial of the derivatives of the exponent, s - κ'(a), -κ''(a), ... (Comtet, *Advanced Combinatorics*, 1974, 3.3).

The integrals are compiled to the Gauss-Legendre rule: of exp(h(y)) from y = 0, where h is concave and falls from h(0) =
0, to where it is below -38 (the integrand is then less than a rounding error). The side of the mean on which the
variable is decides where to start, and a is first increased by one (DLMF 8.8.5 and 8.17.20), so that the integrand has
one scale. Series prevent cancellation in h. Compared with values of 60 digits, the relative error is below 1e-13 for a
up to 3e4.

For every dtype, all of this is computed in double precision, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host import special as host_special
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import composite, elementwise
from pullback.primitives.elementwise import mul, neg
from pullback.primitives.special.others import xlog1py_p, xlogy_p
from pullback.primitives.special.precision import doubled, log_of_positive_p
from pullback.primitives.special.quadrature import by_integrals, cut_off, in_blocks, in_series, is_double
from pullback.primitives.special.quadrature import formula_integral as integral

from pullback.primitives.formulas import (  # isort: skip
    binary, digamma, exp, expm1, formula, lgamma, lifted, log1p, maximum, minimum, polygamma, polynomial, sqrt,
    square, unary, where,
)  # fmt: skip
from pullback.primitives.formulas import stop_gradient as fixed

_double = np.dtype(np.float64)
log, xlogy, xlog1py = unary(log_of_positive_p), binary(xlogy_p), binary(xlog1py_p)

Formula = Callable[..., Any]


# Without cancellation ----------------------------------------------------------------------------------------------


def _log1p_less_x(x: Any, factor: Any = 1.0) -> Any:
    """Return ``factor * (log(1 + x) - x)``, accurate for small x.

    Near zero log(1 + x) is computed as 2 artanh(r), where r = x / (2 + x), and x is written as 2 r + r x.
    """
    if not is_double():
        series = factor * x * x * polynomial(x, [1 / 5, -1 / 4, 1 / 3, -1 / 2])
        return where(abs(x) < 1e-3, series, factor * (log(x + 1) - x))
    near = abs(x) < 0.5
    small = where(near, x, 0)
    r = small / (small + 2)
    squared = square(r)
    series = 2 * (squared * polynomial(squared, [1 / n for n in range(31, 2, -2)])) - small
    return where(near, factor * r * series, factor * (log1p(where(near, 0, x)) - x))


def _expm1_less_x(x: Any, factor: Any = 1.0) -> Any:
    """Return ``factor * (exp(x) - 1 - x)``, accurate for small x, and without underflow if the factor is large."""
    if is_double():
        near, terms = abs(x) < 0.5, 16
        far = expm1(where(near, 0, x)) - x
    else:
        single = x.dtype == np.float32
        near, terms = ((x > -0.8) & (x < 1.5), 14) if single else (abs(x) < 1e-3, 4)
        far = exp(x) - (x + 1)
    small = where(near, x, 0)
    series = polynomial(small, [1 / math.factorial(n) for n in range(terms, 1, -1)])
    return where(near, factor * small * small * series, factor * far)


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _stirling_series(a: Any) -> Any:
    return polynomial(1 / square(a), _STIRLING[::-1]) / a


def _stirling_error(a: Any) -> Any:
    """Return ``log Γ(a) - (a - 1/2) log a + a - log(2π) / 2``, the error of Stirling's formula, for a > 0.

    From 10 on it is an asymptotic series (DLMF 5.11.1).
    """
    large, small = maximum(a, 10), minimum(a, 10)
    if not is_double():  # by the series at a + 4, and Γ(a + 4) / Γ(a)
        from_four = small + 4
        product = small * (small + 1) * ((small + 2) * (small + 3))
        powers = (small - 0.5) * log(from_four / small)
        shifted = powers + log(square(square(from_four)) / product) - 4
        of_four = _stirling_series(where(a < 10, from_four, large))
        return of_four + where(a < 10, shifted, 0)
    series = _stirling_series(large)
    direct = lgamma(small) - (small - 0.5) * log(small) + small - 0.5 * math.log(2 * math.pi)
    return where(a < 10, direct, series)


def _lgamma1p(a: Any) -> Any:
    """Return ``log Γ(1 + a)`` for abs(a) up to 1/2, by its series at 0 (DLMF 5.7.3)."""
    zeta = host.special("zeta")(np.arange(2.0, 52.0), np.ones(50))
    terms = [float((-1) ** n * z / n) for n, z in enumerate(zeta, 2)]
    return a * polynomial(a, [*terms[::-1], -np.euler_gamma])


# Integrals ---------------------------------------------------------------------------------------------------------


def _bell(order: Sequence[int], derivatives: Callable[[tuple[int, ...]], Any]) -> Any:
    """Return the derivative of exp(L) divided by exp(L), for a function L of several variables.

    It is a Bell polynomial of the derivatives of L.

    Args:
      order: the order of the derivative in each variable.
      derivatives: maps a tuple of orders, one for each variable, to the derivative of L of these orders.

    Returns:
      The quotient; None, which stands for 1, if all orders are 0.
    """

    @cache
    def factor(index: tuple[int, ...]) -> Any:
        first = next((i for i, n in enumerate(index) if n), None)
        if first is None:
            return None  # one
        below = tuple(n - (i == first) for i, n in enumerate(index))
        total: Any = None
        for split in np.ndindex(*(n + 1 for n in below)):
            weight = math.prod(map(math.comb, below, split))
            term = derivatives(tuple(n + (i == first) for i, n in enumerate(split)))
            rest = factor(tuple(n - m for n, m in zip(below, split, strict=True)))
            term = term if rest is None else rest * term
            term = term if weight == 1 else term * weight
            total = term if total is None else total + term
        return total

    return factor(tuple(order))


def _polygamma(order: int, x: Any) -> Any:
    """Return the derivative of order ``order + 1`` of log Γ(x); order 0 is digamma."""
    return digamma(x) if order == 0 else polygamma(shapes.full((), order, x.dtype), x)


def _guarded(valid: Any, operands: Sequence[Any], inside: Formula, otherwise: Any) -> Any:
    """Return ``inside(*operands)`` where the mask ``valid`` is true, and ``otherwise`` elsewhere.

    ``operands`` is a sequence of pairs: an operand, and a number that replaces the operand where ``valid`` is false.
    """
    safe = [where(valid, x, inside) for x, inside in operands]
    return where(valid, inside(*safe), otherwise)


# The incomplete gamma function -------------------------------------------------------------------------------------


def _gamma_exponent(a: Any, x: Any) -> Any:
    """Return ``log(x**a exp(-x) / Γ(a) / sqrt(a / 2π))``.

    It is computed from the distance of x from a, so that large terms do not cancel.
    """
    far = (x - a) / a
    near = abs(far) < 0.5
    exponent = a * where(near, _log1p_less_x(where(near, far, 0)), log(x / a) - far)
    return exponent - _stirling_error(a)


def _gamma_weight(a: Any, x: Any) -> Any:
    """Return ``x**a exp(-x) / Γ(a)``, the weight by which ``gamma_integral`` divides."""
    return sqrt(a / (2 * math.pi)) * exp(_gamma_exponent(a, x))


def log_gamma_weight(a: Any, x: Any) -> Any:
    """Return the logarithm of the weight x**a exp(-x) / Γ(a)."""
    return log(a / (2 * math.pi)) * 0.5 + _gamma_exponent(a, x)


def _gamma_end(shifted: Any, x: Any, slope: Any, above: Any, cut: float) -> Any:
    """Return the end y of the integral of exp(-h(y)) in ``gamma_integral``, beyond which the integrand is negligible.

    Args:
      shifted: the parameter of the distribution, increased by one where ``above`` is false.
      x: the variable.
      slope: the absolute value of x - shifted, the derivative of h at 0.
      above: whether x is above the mean.
      cut: the value that h must reach at the end.
    """
    c, d = cut / x, cut / shifted
    end_above = minimum(sqrt(2 * c), log(c + 1 + log(2 * (c + 1))))
    end_below = minimum((d + sqrt(d * (d + 8))) * 0.5, (x + cut) / shifted)
    return minimum(where(above, end_above, end_below), cut / slope)


def gamma_integral(a: Any, x: Any, order: int) -> tuple[Any, Any]:
    """Return a mask, and a tail of the gamma distribution divided by x**a exp(-x) / Γ(a).

    The mask is true where x is above the mean. The tail is the upper tail there, and the lower tail elsewhere. If
    ``order`` is positive, the derivative of that order of the tail with respect to a replaces the tail.
    """
    above = x > maximum(a, 1)
    shifted = where(above, a, a + 1)
    slope = abs(x - shifted)
    end = _gamma_end(shifted, x, slope, above, cut_off())
    constants = [-_polygamma(n, shifted) for n in range(order)]
    if order:
        constants[0] = log(x) + constants[0]

    def integrand(y: Any, x: Any, slope: Any, sign: Any, *constants: Any) -> Any:
        z = y * sign
        value = exp(-(slope * y + _expm1_less_x(z, x)))
        if not order:
            return value
        first = z + constants[0]
        return value * _bell((order,), lambda index: first if index == (1,) else constants[index[0] - 1])

    out = integral(integrand, end, x, slope, where(above, _all(1, x), -1), *constants, narrow=not order)
    extra = _bell((order,), lambda index: constants[index[0] - 1])
    extra = 1 if extra is None else extra
    return above, where(above, out, (x * out + extra) / a)


def gamma_small(a: Any, x: Any) -> Any:
    """Return the upper tail of the gamma distribution, for x up to 1 and a up to 1/2.

    It is one minus a power of x, minus a series (DLMF 8.7.1).
    """
    exponent = a * log(x) - _lgamma1p(a)
    term, total = 1.0, None
    power: Any = None
    for n in range(1, 22):
        power = x if power is None else power * x
        term /= -n
        summand = power * term / (a + n)
        total = summand if total is None else total + summand
    return -(expm1(exponent) + exp(exponent) * a * total)


def _gamma_lower(a: Any, x: Any) -> Any:
    above, ratio = gamma_integral(a, x, 0)
    value = _gamma_weight(a, x) * ratio
    return where(above, 1 - value, value)


def _gamma_upper(a: Any, x: Any) -> Any:
    above, ratio = gamma_integral(a, x, 0)
    value = _gamma_weight(a, x) * ratio
    small = (x <= 1) & (a < 0.5)
    tail = gamma_small(where(small, a, 0.25), where(small, x, 0.5))
    return where(small, tail, where(above, value, 1 - value))


def _gamma_domain(a: Any, x: Any) -> Any:
    return (a > 0) & (a < math.inf) & ((x > 0) & (x < math.inf))


def _all(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, _double)


def _with_limits(inside: Formula, at_zero: float) -> Formula:
    """Make a function of a and x that evaluates ``inside`` in the open domain, and has SciPy's values at its ends.

    ``inside`` is the distribution function of the gamma distribution, with ``at_zero`` 0, or its upper tail, with
    ``at_zero`` 1.
    """

    @formula
    def of_all(a: Any, x: Any) -> Any:
        at_ends = where((x == math.inf) | (a == 0), _all(1 - at_zero, x), at_zero)
        both = ((x == 0) & (a == 0)) | ((x == math.inf) & (a == math.inf))
        known = (a >= 0) & (x >= 0) & ~both
        return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, where(known, at_ends, math.nan))

    return of_all


def _gamma_density_in_double(a: Any, x: Any) -> Any:
    inside = _gamma_domain(a, x)
    at_ends = exp(xlogy(a - 1, x) - x - lgamma(a))
    return _guarded(inside, ((a, 1), (x, 1)), lambda a, x: _gamma_weight(a, x) / x, at_ends)


# x**(a - 1) exp(-x) / Γ(a).
gamma_density_p: Primitive = composite(
    "gamma_density", of=FLOAT, formula=doubled(formula(_gamma_density_in_double)),
    jvp=(
        formula(lambda t, a, x: t * (_gamma_density(a, x) * (log(x) - digamma(a)))),
        formula(lambda t, a, x: t * (_gamma_density(a, x) * ((a - 1) / x - 1))),
    ),
)  # fmt: skip
_gamma_density: Any = binary(gamma_density_p)


def _gamma_exponents(a: Any, x: Any) -> Formula:
    """Make a function of a tuple (k,) that returns a derivative of log(x**a exp(-x) / Γ(a)).

    The derivative is with respect to a and has the order k.
    """
    return lambda index: log(x) - digamma(a) if index == (1,) else -_polygamma(index[0] - 1, a)


igamma_p = elementwise(
    "igamma", of=FLOAT, arity=2, host=host_special.gammainc,
    hlo=in_blocks(_with_limits(_gamma_lower, 0.0), smooth=True),
    jvp=(
        lambda t, a, x, ans: mul(t, igamma_derivative_p.bind(a, x, order=1)),
        lambda t, a, x, ans: mul(t, gamma_density_p.bind(a, x)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip
igammac_p = elementwise(
    "igammac", of=FLOAT, arity=2, host=host.special("gammaincc"),
    hlo=in_blocks(_with_limits(_gamma_upper, 1.0), smooth=True),
    jvp=(
        lambda t, a, x, ans: neg(mul(t, igamma_derivative_p.bind(a, x, order=1))),
        lambda t, a, x, ans: neg(mul(t, gamma_density_p.bind(a, x))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _igamma_derivative(a: Any, x: Any, *, order: int) -> Any:
    def inside(a: Any, x: Any) -> Any:
        above, ratio = gamma_integral(a, x, order)
        value = _gamma_weight(a, x) * ratio
        return where(above, -value, value)

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, _outside(a > 0, x))


def _outside(valid: Any, x: Any) -> Any:
    """Return the derivative of a distribution function where ``x`` is not inside the domain.

    The derivative is 0 for x = 0 and infinity, and NaN for other ``x`` and where ``valid`` is false.
    """
    return where(valid & ((x == 0) | (x == math.inf)), _all(0, x), math.nan)


# The derivative of igamma with respect to a, of an order of at least 1.
igamma_derivative_p: Primitive = by_integrals(
    "igamma_derivative", formula(_igamma_derivative),
    (
        lambda t, a, x, order: mul(t, igamma_derivative_p.bind(a, x, order=order + 1)),
        formula(lambda t, a, x, order: t * (_gamma_density(a, x) * _bell((order,), _gamma_exponents(a, x)))),
    ),
    smooth=True,
)  # fmt: skip


_SERIES_BELOW, _SPLIT = 72.0, 1 / 6
"""The exponent at which integrands of Taylor formulas are cut off, since their derivatives fall more slowly, and the
fraction of the interval at which it is split."""


@in_series(igamma_derivative_p)
@formula
def _igamma_derivative_in_series(a: Any, x: Any, *, order: int) -> Any:
    """Evaluate the derivative of igamma with respect to a, of order ``order``, for its Taylor rule.

    The weight x**a exp(-x) / Γ(a) is inside the integral, so that a appears in one exponent only. The integrand
    contains 1 / Γ(a + 1) instead of 1 / Γ(a), whose Taylor coefficients would cancel near zero; where x is above the
    mean, it has the factor a.
    """

    def inside(a: Any, x: Any) -> Any:
        above, shifted = x > maximum(a, 1), a + 1
        power, sign = where(above, a, shifted), where(above, _all(1, x), -1)
        slope, log_x = (x - power) * sign, log(x)
        weight = _gamma_weight(fixed(a), fixed(x)) * where(above, 1, fixed(x)) / fixed(a)
        level = power * log_x - x - lgamma(shifted)
        level = level - fixed(level)
        constants = [-_polygamma(n, shifted) for n in range(order)]
        factor, more = where(above, a, 1), where(above, _all(order, x), 0)

        def product(value: Any, first: Any, factor: Any, more: Any, *constants: Any) -> Any:
            known = [first + constants[0], *constants[1:]]
            below, bell = (_bell((n,), lambda index: known[index[0] - 1]) for n in (order - 1, order))
            return value * (factor * bell + (more if below is None else more * below))

        def integrand(y: Any, level: Any, slope: Any, x: Any, sign: Any, log_x: Any, *others: Any) -> Any:
            z = y * sign
            value = exp(level - (slope * y + x * _expm1_less_x(z)))
            return product(value, z + log_x, *others)

        end = fixed(_gamma_end(power, x, slope, above, _SERIES_BELOW))
        others = log_x, factor, more, *constants
        integrated = integral(integrand, end, level, slope, x, sign, *others, split=_SPLIT)
        extra = product(exp(level), *others) / x
        return weight * where(above, -integrated, integrated + extra)

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, _outside(a > 0, x))


# The derivative of a sample ----------------------------------------------------------------------------------------


def _gamma_slope(a: Any, x: Any, *, order: int) -> Any:
    def inside(a: Any, x: Any) -> Any:
        above, ratio = gamma_integral(a, x, order)
        return where(above, -ratio, ratio)

    return _guarded(_gamma_domain(a, x), ((a, 1), (x, 1)), inside, math.nan)


# The derivative of igamma divided by x times the density, which may underflow.
gamma_slope_p: Primitive = by_integrals(
    "gamma_slope", formula(_gamma_slope),
    (
        formula(lambda t, a, x, order: t * (
            gamma_slope(a, x, order=order + 1) - gamma_slope(a, x, order=order) * (log(x) - digamma(a))
        )),
        formula(lambda t, a, x, order: t * (
            _bell((order,), _gamma_exponents(a, x)) / x - gamma_slope(a, x, order=order) * (a / x - 1)
        )),
    ),
    smooth=True,
)  # fmt: skip
gamma_slope: Any = lifted(gamma_slope_p.bind)


@formula
def random_gamma_grad(a: Any, x: Any) -> Any:
    """Return the derivative of a gamma sample ``x`` with respect to the shape parameter ``a``, at a fixed quantile."""
    return where(x == 0, 0, -(x * gamma_slope(a, x, order=1)))


# The incomplete beta function --------------------------------------------------------------------------------------


def _beta_exponent(a: Any, b: Any, x: Any, rest: Any, distance: Any) -> Any:
    """Return ``log(x**a (1 - x)**b / B(a, b) / sqrt(a b / (a + b) / 2π))``, without cancellation of large terms.

    ``rest`` is 1 - x, and ``distance`` is x minus the mean a / (a + b).
    """
    total = a + b
    of_x, of_rest = _log_ratio(a, total, distance, x), _log_ratio(b, total, -distance, rest)
    errors = _stirling_error(total) - _stirling_error(a) - _stirling_error(b)
    return of_x + of_rest + errors


def _beta_root(a: Any, b: Any) -> Any:
    return maximum(a, b) / (a + b) * minimum(a, b) / (2 * math.pi)


def _beta_weight(*variables: Any) -> Any:
    """Return ``x**a (1 - x)**b / B(a, b)``, the weight by which ``beta_integral`` divides.

    The ``variables`` are a, b, x, 1 - x, and x minus the mean.
    """
    return sqrt(_beta_root(*variables[:2])) * exp(_beta_exponent(*variables))


def log_beta_weight(*variables: Any) -> Any:
    """Return the logarithm of the weight x**a (1 - x)**b / B(a, b).

    The ``variables`` are a, b, x, 1 - x, and x minus the mean, as ``beta_integral`` returns them.
    """
    return log(_beta_root(*variables[:2])) * 0.5 + _beta_exponent(*variables)


def _log_ratio(weight: Any, total: Any, distance: Any, value: Any) -> Any:
    """Return ``weight * (log(value / mean) - distance / mean)``, where the mean is ``weight / total``.

    ``distance`` is ``value - mean``. Near the mean the result is computed by a series.
    """
    mean = weight / total
    far = distance / mean
    near = abs(far) < 0.5
    close = _log1p_less_x(where(near, far, 0), weight)
    return where(near, close, weight * log(value / mean) - distance * total)


def _beta_end(shifted: Any, b: Any, x: Any, rest: Any, log_rest: Any, slope: Any, cut: float) -> Any:
    """Return the end y of the integral of exp(-h(y)) in ``beta_integral``, beyond which the integrand is negligible.

    Args:
      shifted: the parameter a, increased by one.
      b: the parameter b.
      x: the variable.
      rest: 1 - x.
      log_rest: the logarithm of 1 - x.
      slope: the derivative of h at 0.
      cut: the value that h must reach at the end.
    """
    total = shifted + b
    c = cut / (shifted * (b / total))
    end = minimum((c + sqrt(c * (c + 8))) * 0.5, (cut - total * log_rest) / shifted)
    end = minimum(end, cut / slope)
    # h is total log(1 + rest (exp(y) - 1)) - b y; the point where its first term is cut + b end may be nearer.
    return minimum(end, log1p(expm1((b * end + cut) / total) / rest))


def _exponents_at(total: Any, of_a: Any, of_b: Any, by_a: int, by_b: int) -> dict[tuple[int, ...], Any]:
    """Return the derivatives of -log B(of_a, of_b): a dict from the orders (k, n) in a and in b to the derivative.

    The orders are at most ``by_a`` and ``by_b``; the order (0, 0) is missing. ``total`` is ``of_a + of_b``.
    """
    found: dict[tuple[int, ...], Any] = {}
    for k, n in np.ndindex(by_a + 1, by_b + 1):
        if k + n:
            value = _polygamma(k + n - 1, total)
            if not n:
                value = value - _polygamma(k - 1, of_a)
            if not k:
                value = value - _polygamma(n - 1, of_b)
            found[k, n] = value
    return found


# long: the swaps and the integrand share a dozen variables
def beta_integral(a: Any, b: Any, x: Any, by_a: int, by_b: int, rest: Any = None) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return a tail of the beta distribution, or its derivative, divided by the weight x**a (1 - x)**b / B(a, b).

    Args:
      a, b: the parameters.
      x: the variable.
      by_a, by_b: the orders of the derivative of the tail with respect to a and b.
      rest: 1 - x, where the caller knows it more accurately.

    Returns:
      A mask, the quotient, and variables. The mask is true where x is above the mean: the tail is the upper tail there,
      and the lower tail elsewhere. The variables are a, b, x, 1 - x and x minus the mean, for ``log_beta_weight``.
      Where the mask is true, a and b are swapped, x and 1 - x are swapped, and the last variable is negated.
    """
    orders = (by_a, by_b)
    swapped = x > (a + 1) / (a + b + 1)
    log_rest = log1p(-x) if rest is None else log(rest)
    rest, log_x = 1 - x if rest is None else rest, log(x)
    distance = where(x > 0.5, b / (a + b) - rest, x - a / (a + b))
    a, b = where(swapped, b, a), where(swapped, a, b)
    x, rest = where(swapped, rest, x), where(swapped, x, rest)
    log_x, log_rest = where(swapped, log_rest, log_x), where(swapped, log_x, log_rest)
    distance = where(swapped, -distance, distance)
    shifted, total = a + 1, a + 1 + b
    above = x > 0.5  # then 1 - x is small, and exact
    slope = where(above, total * rest - b, shifted - total * x)
    end = _beta_end(shifted, b, x, rest, log_rest, slope, cut_off())

    # With a increased by one, with respect to the operands before the swap.
    parameters = where(swapped, b, shifted), where(swapped, shifted, b)
    inner, outer = (_exponents_at(x, *parameters, by_a, by_b) for x in (total, a + b))
    firsts = [where(swapped, log_rest, log_x), where(swapped, log_x, log_rest)]
    keys = list(inner)

    def integrand(y: Any, side: Any, slope: Any, total: Any, swapped: Any, above: Any, *logarithms: Any) -> Any:
        """Evaluate the integrand at y: exp(-h), times a factor if a derivative of the tail is requested.

        Args:
          y: the points.
          side: 1 - x where ``above``, else x.
          slope: the derivative of h at 0.
          total: a + b + 1.
          swapped: where a and b are swapped.
          above: where x > 1/2. There h is the same function of -y.
          *logarithms: log(x) and log(1 - x), before the swap, and the derivatives of -log B.
        """
        z = where(above, y, -y)
        if is_double():
            growth, fall = side * expm1(z), _expm1_less_x(z, total * side)
        else:
            of_one = _expm1_less_x(z)
            growth, fall = side * (of_one + z), total * side * of_one
        value = exp(-(slope * y + (fall + _log1p_less_x(growth, total))))
        if not keys:
            return value
        first, second, *known = logarithms
        of = dict(zip(keys, known, strict=True))
        shift = log1p(growth) - where(above, y, 0)
        if by_a:
            of[1, 0] = of[1, 0] + (first - (shift + where(swapped, 0, y)))
        if by_b:
            of[0, 1] = of[0, 1] + (second - (shift + where(swapped, y, 0)))
        return value * _bell(orders, of.__getitem__)

    out = integral(integrand, end, where(above, rest, x), slope, total, swapped, above, *firsts, *inner.values())
    if by_a:
        outer[1, 0] = outer[1, 0] + firsts[0]
    if by_b:
        outer[0, 1] = outer[0, 1] + firsts[1]
    extra = _bell(orders, outer.__getitem__) if keys else 1
    return swapped, (extra + x * (a + b) * out) / a, (a, b, x, rest, distance)


def _beta_side(a: Any, b: Any, x: Any, by_a: int, by_b: int) -> tuple[Any, Any]:
    """Return a mask, and a tail of the beta distribution.

    The mask is true where x is above the mean. The tail is the upper tail there, and the lower tail elsewhere. If the
    orders ``by_a`` or ``by_b`` are positive, the derivative of these orders in a and b replaces the tail.
    """
    swapped, ratio, variables = beta_integral(a, b, x, by_a, by_b)
    return swapped, _beta_weight(*variables) * ratio


def _beta(a: Any, b: Any, x: Any, by_a: int, by_b: int) -> Any:
    """Return the incomplete beta function, or its derivative of the orders ``by_a`` in a and ``by_b`` in b."""
    swapped, value = _beta_side(a, b, x, by_a, by_b)
    return where(swapped, -value if by_a or by_b else 1 - value, value)


def _beta_upper(a: Any, b: Any, x: Any) -> Any:
    swapped, value = _beta_side(a, b, x, 0, 0)
    return where(swapped, value, 1 - value)


def _beta_with_limits(inside: Formula, a: Any, b: Any, x: Any) -> Any:
    """Evaluate the beta distribution function.

    It is ``inside(a, b, x)`` in the open domain, and at the ends of the domain it has SciPy's values.
    """
    at_ends = where((x == 1) | ((a == 0) | (b == math.inf)), _all(1, x), 0)
    at_ends = where(x == 0, 0, at_ends)
    both = ((a == 0) & (b == 0)) | ((a == math.inf) & (b == math.inf))
    known = (a >= 0) & (b >= 0) & ((x >= 0) & (x <= 1))
    at_ends = where(known & ~both, at_ends, math.nan)
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, at_ends)


def _beta_domain(a: Any, b: Any, x: Any) -> Any:
    sizes = (a > 0) & (a < math.inf) & ((b > 0) & (b < math.inf))
    return sizes & ((x > 0) & (x < 1))


def _beta_density_in_double(a: Any, b: Any, x: Any) -> Any:
    powers = xlogy(a - 1, x) + xlog1py(b - 1, -x)
    at_ends = exp(powers + (lgamma(a + b) - (lgamma(a) + lgamma(b))))

    def inside(a: Any, b: Any, x: Any) -> Any:
        rest = 1 - x
        return _beta_weight(a, b, x, rest, x - a / (a + b)) / (x * rest)

    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, at_ends)


# x**(a - 1) (1 - x)**(b - 1) / B(a, b).
beta_density_p: Primitive = composite(
    "beta_density", of=FLOAT, formula=doubled(formula(_beta_density_in_double)),
    jvp=(
        formula(lambda t, a, b, x: t * (_beta_density(a, b, x) * _beta_exponents(a, b, x)((1, 0)))),
        formula(lambda t, a, b, x: t * (_beta_density(a, b, x) * _beta_exponents(a, b, x)((0, 1)))),
        formula(lambda t, a, b, x: t * (_beta_density(a, b, x) * ((a - 1) / x - (b - 1) / (1 - x)))),
    ),
)  # fmt: skip
_beta_density: Any = lifted(beta_density_p.bind)


def _beta_exponents(a: Any, b: Any, x: Any) -> Formula:
    """Make a function of a tuple (k, n) that returns a derivative of log(x**a (1 - x)**b / B(a, b)).

    The derivative has the order k in a and the order n in b.
    """

    def of(index: tuple[int, ...]) -> Any:
        k, n = index
        value = _polygamma(k + n - 1, a + b)
        if not n:
            value = value - _polygamma(k - 1, a)
        if not k:
            value = value - _polygamma(n - 1, b)
        return value + log(x) if index == (1, 0) else value + log1p(-x) if index == (0, 1) else value

    return of


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return _beta_with_limits(partial(_beta, by_a=0, by_b=0), a, b, x)


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    """Return the upper tail of the beta distribution, without the cancellation in 1 - betainc."""
    lower = 1 - _beta_with_limits(lambda a, b, x: _all(0.5, x), a, b, x)
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), _beta_upper, lower)


betainc_p = elementwise(
    "betainc", of=FLOAT, arity=3, host=host.special("betainc"), hlo=in_blocks(formula(_betainc), smooth=True),
    jvp=(
        lambda t, a, b, x, ans: mul(t, betainc_derivative_p.bind(a, b, x, by_a=1, by_b=0)),
        lambda t, a, b, x, ans: mul(t, betainc_derivative_p.bind(a, b, x, by_a=0, by_b=1)),
        lambda t, a, b, x, ans: mul(t, beta_density_p.bind(a, b, x)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _betainc_derivative(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    return _beta_derivative_inside(partial(_beta, by_a=by_a, by_b=by_b), a, b, x)


def _beta_derivative_inside(inside: Formula, a: Any, b: Any, x: Any) -> Any:
    at_ends = where((a > 0) & (b > 0) & ((x == 0) | (x == 1)), _all(0, x), math.nan)
    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, at_ends)


# The derivative of betainc with respect to a and b, of orders that are not both zero.
betainc_derivative_p: Primitive = by_integrals(
    "betainc_derivative", formula(_betainc_derivative),
    (
        lambda t, a, b, x, by_a, by_b: mul(t, betainc_derivative_p.bind(a, b, x, by_a=by_a + 1, by_b=by_b)),
        lambda t, a, b, x, by_a, by_b: mul(t, betainc_derivative_p.bind(a, b, x, by_a=by_a, by_b=by_b + 1)),
        formula(lambda t, a, b, x, by_a, by_b: t * (
            _beta_density(a, b, x) * _bell((by_a, by_b), _beta_exponents(a, b, x))
        )),
    ),
    smooth=True,
)  # fmt: skip


@in_series(betainc_derivative_p)
@formula
def _betainc_derivative_in_series(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    """Evaluate a derivative of betainc, of the orders ``by_a`` in a and ``by_b`` in b, for its Taylor rule.

    The weight x**a (1 - x)**b / B(a, b) is inside the integral.
    """
    return _beta_derivative_inside(partial(_beta_in_series, orders=(by_a, by_b)), a, b, x)


# long: as ``beta_integral``
def _beta_in_series(a: Any, b: Any, x: Any, *, orders: tuple[int, int]) -> Any:
    swapped = x > (a + 1) / (a + b + 1)
    rest, log_x, log_rest = 1 - x, log(x), log1p(-x)
    variables = [fixed(v) for v in (a, b, x, rest, x - a / (a + b))]
    weight = _beta_weight(*variables)
    a, b = where(swapped, b, a), where(swapped, a, b)
    x, rest = where(swapped, rest, x), where(swapped, x, rest)
    log_x, log_rest = where(swapped, log_rest, log_x), where(swapped, log_x, log_rest)
    shifted, total = a + 1, a + 1 + b
    weight = weight * fixed(x * (a + b) / a)
    level = shifted * log_x + b * log_rest + (lgamma(total) - (lgamma(shifted) + lgamma(b)))
    level = level - fixed(level)
    above = x > 0.5
    slope = where(above, total * rest - b, shifted - total * x)
    end = fixed(_beta_end(shifted, b, x, rest, log_rest, slope, _SERIES_BELOW))
    parameters = where(swapped, b, shifted), where(swapped, shifted, b)
    inner, outer = (_exponents_at(v, *parameters, *orders) for v in (total, a + b))
    keys = list(inner)

    def product(value: Any, known: Sequence[Any], of_x: Any, of_rest: Any, swapped: Any) -> Any:
        of = dict(zip(keys, known, strict=True))
        if orders[0]:
            of[1, 0] = of[1, 0] + where(swapped, of_rest, of_x)
        if orders[1]:
            of[0, 1] = of[0, 1] + where(swapped, of_x, of_rest)
        return value * _bell(orders, of.__getitem__)

    def integrand(
        y: Any, level: Any, side: Any, shifted: Any, total: Any, log_x: Any, log_rest: Any, swapped: Any, above: Any,
        *known: Any,
    ) -> Any:  # fmt: skip
        shift = log1p(side * expm1(where(above, y, -y))) - where(above, y, 0)
        value = exp(level - (shifted * y + total * shift))
        return product(value, known, log_x - (shift + y), log_rest - shift, swapped)

    operands = level, where(above, rest, x), shifted, total, log_x, log_rest, swapped, above, *inner.values()
    integrated = integral(integrand, end, *operands, split=_SPLIT)
    extra = product(exp(level), list(outer.values()), log_x, log_rest, swapped) / (x * (a + b))
    value = weight * (integrated + extra)
    return where(swapped, -value, value)


betaincc_p = elementwise(
    "betaincc", of=FLOAT, arity=3, host=host.special("betaincc"), hlo=in_blocks(formula(_betaincc)),
    jvp=(
        lambda t, a, b, x, ans: neg(mul(t, betainc_derivative_p.bind(a, b, x, by_a=1, by_b=0))),
        lambda t, a, b, x, ans: neg(mul(t, betainc_derivative_p.bind(a, b, x, by_a=0, by_b=1))),
        lambda t, a, b, x, ans: neg(mul(t, beta_density_p.bind(a, b, x))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _beta_slope(a: Any, b: Any, x: Any, *, by_a: int, by_b: int) -> Any:
    def inside(a: Any, b: Any, x: Any) -> Any:
        swapped, ratio, _ = beta_integral(a, b, x, by_a, by_b)
        return where(swapped, -ratio, ratio)

    return _guarded(_beta_domain(a, b, x), ((a, 1), (b, 1), (x, 0.5)), inside, math.nan)


def _beta_slope_of(a: Any, b: Any, x: Any, orders: dict[str, int], more: tuple[int, int]) -> Any:
    """Return the derivative of ``beta_slope_p`` with respect to a or b.

    ``beta_slope_p`` is a derivative of betainc divided by the weight x**a (1 - x)**b / B(a, b).

    Args:
      a, b, x: the operands.
      orders: the orders ``by_a`` and ``by_b`` of ``beta_slope_p``.
      more: (1, 0) for the derivative with respect to a, and (0, 1) for b.
    """
    here = beta_slope(a, b, x, **orders)
    next_one = beta_slope(a, b, x, by_a=orders["by_a"] + more[0], by_b=orders["by_b"] + more[1])
    return next_one - here * _beta_exponents(a, b, x)(more)


# A derivative of betainc with respect to a and b, divided by x (1 - x) times the density, which may underflow.
beta_slope_p: Primitive = by_integrals(
    "beta_slope", formula(_beta_slope),
    (
        formula(lambda t, a, b, x, **orders: t * _beta_slope_of(a, b, x, orders, (1, 0))),
        formula(lambda t, a, b, x, **orders: t * _beta_slope_of(a, b, x, orders, (0, 1))),
        formula(lambda t, a, b, x, by_a, by_b: t * (
            _bell((by_a, by_b), _beta_exponents(a, b, x)) / (x * (1 - x))
            - beta_slope(a, b, x, by_a=by_a, by_b=by_b) * (a / x - b / (1 - x))
        )),
    ),
)  # fmt: skip
beta_slope: Any = lifted(beta_slope_p.bind)
