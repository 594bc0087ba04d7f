"""Logarithms of distribution functions and of densities: those of the normal, the gamma and the beta distribution.

A probability that underflows has a logarithm, and one near 1 has one that is not 0. Each is the logarithm of the
smaller tail where that is asked for, and log(1 - p) of it otherwise; that of the smaller tail is the logarithm of its
weight and
of an integral, from ``incomplete``. A derivative is a ratio that neither underflows nor overflows: the exponential of a
difference of logarithms.

All of this is computed in double precision, and rounded once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import by_formula, elementwise, in_double
from pullback.primitives.elementwise import add, digamma, div, eq, exp, gt, log, lt, mul, neg, sub
from pullback.primitives.error_functions import erfcx_of_positive, erfcx_p
from pullback.primitives.gamma_functions import digamma_gap_p
from pullback.primitives.incomplete import (
    beta_integral,
    beta_slope_p,
    gamma_integral,
    gamma_slope_p,
    gamma_small,
    log_beta_weight,
    log_gamma_weight,
)
from pullback.primitives.precision import doubled, log_of_positive
from pullback.primitives.quadrature import by_integrals
from pullback.primitives.special import quotient_p, xlog1py_p, xlogy_p

_and, _or = ops.and_p.bind, ops.or_p.bind
_ge, _le = ops.ge_p.bind, ops.le_p.bind
_log1p, _lgamma = ops.log1p_p.bind, ops.lgamma_p.bind
_where = ops.where


def _log_of_rest(logarithm: Any) -> Any:
    """log(1 - exp(logarithm))."""
    near = gt(logarithm, -math.log(2))
    close = log(neg(ops.expm1_p.bind(_where(near, logarithm, -1))))
    return _where(near, close, _log1p(neg(exp(_where(near, -1, logarithm)))))


# The normal distribution -------------------------------------------------------------------------------------------

_ROOT_HALF = math.sqrt(0.5)


def _log_ndtr(x: Any, single: bool) -> Any:
    """exp(-x²/2) erfcx(-x / √2) / 2 is ndtr: below zero by the one factor and the other (DLMF 7.2.7).

    Above it is by the tail beyond x, which for results of single precision is such a product too.
    """
    scaled, half_square = erfcx_of_positive(mul(abs(x), _ROOT_HALF), single), mul(mul(x, 0.5), x)
    below = sub(log_of_positive(mul(scaled, 0.5)), half_square)
    if single:
        rest = mul(mul(scaled, 0.5), exp(neg(half_square)))
        above = _where(lt(rest, 1e-8), neg(rest), log_of_positive(sub(1, rest)))
    else:
        above = _log1p(neg(ops.ndtr_p.bind(neg(_where(lt(x, 0), 0, x)))))
    return _where(lt(x, 0), below, above)


def normal_hazard(x: Any) -> Any:
    """The normal density divided by ndtr, which is the derivative of log_ndtr."""
    below = div(math.sqrt(2 / math.pi), erfcx_p.bind(mul(_where(lt(x, 0), x, -1), -_ROOT_HALF)))
    positive = _where(lt(x, 0), 0, x)
    above = div(mul(ops.gaussian(positive, 0.5), 1 / math.sqrt(2 * math.pi)), ops.ndtr_p.bind(positive))
    return _where(lt(x, 0), below, above)


def _host_log_ndtr(x: Any) -> Any:
    """SciPy's, which rounds x / √2 in doubles: of positive numbers by the tail beyond."""
    out = _scipy_log_ndtr(x)
    above = x > 0
    if x.dtype != np.float64 or not np.any(above):
        return out
    return np.where(above, np.log1p(-host.ndtr(-np.abs(x))), out)[()]


_scipy_log_ndtr = host.special("log_ndtr")
log_ndtr_p: Primitive = elementwise(
    "log_ndtr", of=FLOAT, host=_host_log_ndtr,
    hlo=lambda hlo, x: in_double(partial(_log_ndtr, single=hlo.result.dtype.itemsize < 8))(hlo, x),
    jvp=lambda t, x, ans: mul(t, normal_hazard(x)),
)  # fmt: skip


# Densities -----------------------------------------------------------------------------------------------------------

_LARGE = 20.0
"""From this parameter on a density is by its distance from the mean, for its terms cancel."""


def _log_gamma_density(a: Any, x: Any) -> Any:
    large = _and(_ge(a, _LARGE), gt(x, 0))
    direct = sub(sub(xlogy_p.bind(sub(a, 1), x), x), _lgamma(a))
    wide, inside = _where(large, a, _LARGE), _where(large, x, _LARGE)
    return _where(large, sub(log_gamma_weight(wide, inside), log(inside)), direct)


# The logarithm of x**(a - 1) exp(-x) / Γ(a).
log_gamma_density_p: Primitive = by_formula(
    "log_gamma_density", of=FLOAT, formula=doubled(_log_gamma_density),
    jvp=(
        lambda t, a, x: mul(t, sub(log(x), digamma(a))),
        lambda t, a, x: mul(t, sub(quotient_p.bind(sub(a, 1), x, power=1), 1)),
    ),
)  # fmt: skip


def _log_beta_density(a: Any, b: Any, x: Any) -> Any:
    inside = _and(gt(x, 0), lt(x, 1))
    large = _and(_ge(add(a, b), _LARGE), inside)
    powers = add(xlogy_p.bind(sub(a, 1), x), xlog1py_p.bind(sub(b, 1), neg(x)))
    direct = sub(powers, sub(add(_lgamma(a), _lgamma(b)), _lgamma(add(a, b))))
    far_a, far_b, within = _where(large, a, _LARGE), _where(large, b, _LARGE), _where(large, x, 0.5)
    rest = sub(1, within)
    distance = sub(within, div(far_a, add(far_a, far_b)))
    weight = log_beta_weight(far_a, far_b, within, rest, distance)
    return _where(large, sub(sub(weight, log(within)), _log1p(neg(within))), direct)


def _by_first(x: Any, a: Any, b: Any) -> Any:
    return add(x, digamma_gap_p.bind(a, b))


# The logarithm of x**(a - 1) (1 - x)**(b - 1) / B(a, b).
log_beta_density_p: Primitive = by_formula(
    "log_beta_density", of=FLOAT, formula=doubled(_log_beta_density),
    jvp=(
        lambda t, a, b, x: mul(t, _by_first(log(x), a, b)),
        lambda t, a, b, x: mul(t, _by_first(_log1p(neg(x)), b, a)),
        lambda t, a, b, x: mul(t, sub(
            quotient_p.bind(sub(a, 1), x, power=1), quotient_p.bind(sub(b, 1), sub(1, x), power=1)
        )),
    ),
)  # fmt: skip


# The incomplete gamma function ---------------------------------------------------------------------------------------


def log_gamma_sides(a: Any, x: Any, upper: Any) -> tuple[Any, Any]:
    """The logarithm of the tail where ``upper`` is true and else of the rest, for operands inside the domain; and that
    of x times the density."""
    above, part = gamma_integral(a, x, 0)
    weight = log_gamma_weight(a, x)
    own = add(weight, log(part))
    small = _and(_and(_le(x, 1), lt(a, 0.5)), ops.not_p.bind(above))
    tail = gamma_small(_where(small, a, 0.25), _where(small, x, 0.5))
    # Of small operands the tail is known, and what is below may be so near 1 that it is better known by that.
    short = _and(small, lt(tail, 0.5))
    rest = _where(short, log(tail), _log_of_rest(ops.min_p.bind(own, -1e-300)))
    own = _where(short, _log1p(neg(tail)), own)
    return _where(eq(above, upper), own, rest), weight


def _log_gamma(a: Any, x: Any, *, upper: bool) -> Any:
    finite = _and(gt(a, 0), lt(a, math.inf))
    inside = _and(finite, _and(gt(x, 0), lt(x, math.inf)))
    value, _ = log_gamma_sides(_where(inside, a, 1), _where(inside, x, 1), _true(upper, a))
    nothing, everything = _number(-math.inf, a), _number(0, a)
    at_zero, at_infinity = (everything, nothing) if upper else (nothing, everything)
    at_ends = _where(eq(x, 0), at_zero, _where(eq(x, math.inf), at_infinity, math.nan))
    return _where(inside, value, _where(finite, at_ends, math.nan))


def _number(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


def _true(value: bool, like: Any) -> Any:
    return eq(_number(0, like), 0) if value else eq(_number(0, like), 1)


def _declare_log_gamma(name: str, upper: bool) -> Primitive:
    """The logarithm of igammac, or of igamma."""
    sign = neg if upper else lambda x: x

    def by_a(t: Any, a: Any, x: Any) -> Any:
        weight = add(log_gamma_density_p.bind(a, x), log(x))
        return sign(mul(t, mul(gamma_slope_p.bind(a, x, order=1), exp(sub(weight, p.bind(a, x))))))

    def by_x(t: Any, a: Any, x: Any) -> Any:
        return sign(mul(t, exp(sub(log_gamma_density_p.bind(a, x), p.bind(a, x)))))

    p: Primitive = by_integrals(name, partial(_log_gamma, upper=upper), (by_a, by_x))
    return p


log_igamma_p = _declare_log_gamma("log_igamma", upper=False)
log_igammac_p = _declare_log_gamma("log_igammac", upper=True)


# The incomplete beta function ----------------------------------------------------------------------------------------


def log_beta_sides(a: Any, b: Any, x: Any, upper: Any, rest: Any = None) -> tuple[Any, Any]:
    """The logarithm of the tail where ``upper`` is true and else of the rest, for operands inside the domain; and that
    of x (1 - x) times the density."""
    swapped, part, variables = beta_integral(a, b, x, 0, 0, rest)
    weight = log_beta_weight(*variables)
    own = ops.min_p.bind(add(weight, log(part)), -1e-300)
    return _where(eq(swapped, upper), own, _log_of_rest(own)), weight


def _log_beta(a: Any, b: Any, x: Any, *, upper: bool) -> Any:
    finite = _and(_and(gt(a, 0), lt(a, math.inf)), _and(gt(b, 0), lt(b, math.inf)))
    inside = _and(finite, _and(gt(x, 0), lt(x, 1)))
    safe = (_where(inside, a, 1), _where(inside, b, 1), _where(inside, x, 0.5))
    value, _ = log_beta_sides(*safe, _true(upper, a))
    nothing, everything = _number(-math.inf, a), _number(0, a)
    at_zero, at_one = (everything, nothing) if upper else (nothing, everything)
    at_ends = _where(eq(x, 0), at_zero, _where(eq(x, 1), at_one, math.nan))
    return _where(inside, value, _where(finite, at_ends, math.nan))


def _declare_log_beta(name: str, upper: bool) -> Primitive:
    """The logarithm of betaincc, or of betainc."""
    sign = neg if upper else lambda x: x

    def by_parameter(t: Any, a: Any, b: Any, x: Any, by_a: int, by_b: int) -> Any:
        weight = add(log_beta_density_p.bind(a, b, x), add(log(x), _log1p(neg(x))))
        slope = beta_slope_p.bind(a, b, x, by_a=by_a, by_b=by_b)
        return sign(mul(t, mul(slope, exp(sub(weight, p.bind(a, b, x))))))

    def by_x(t: Any, a: Any, b: Any, x: Any) -> Any:
        return sign(mul(t, exp(sub(log_beta_density_p.bind(a, b, x), p.bind(a, b, x)))))

    rules = (partial(by_parameter, by_a=1, by_b=0), partial(by_parameter, by_a=0, by_b=1), by_x)
    p: Primitive = by_integrals(name, partial(_log_beta, upper=upper), rules)
    return p


log_betainc_p = _declare_log_beta("log_betainc", upper=False)
log_betaincc_p = _declare_log_beta("log_betaincc", upper=True)
