"""Logarithms of the distribution functions and densities of the normal, gamma and beta distributions.

The logarithm is accurate even if the probability underflows or is near 1. It is the logarithm of the smaller tail, or
log(1 - p) of that for the larger tail; the logarithm of the smaller tail is the sum of the logarithms of its weight and
of an integral, from ``incomplete``. A derivative is the exponential of a difference of logarithms, which does not
underflow or overflow.

All of this is computed in double precision, and rounded once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host.special import by_loop, has_loop
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import composite, elementwise, in_double
from pullback.primitives.elementwise import add, div, lt, mul, neg, sub
from pullback.primitives.large import compiled_from
from pullback.primitives.special.error_functions import erfcx_derivative_p, erfcx_of_positive, erfcx_p, host_erfcx
from pullback.primitives.special.gamma_functions import digamma_gap_p
from pullback.primitives.special.incomplete import (
    beta_integral,
    beta_slope_p,
    gamma_integral,
    gamma_slope_p,
    gamma_small,
    log_beta_weight,
    log_gamma_weight,
)
from pullback.primitives.special.others import quotient_p, xlog1py_p, xlogy_p
from pullback.primitives.special.precision import doubled, exp_to_single, log_of_positive_p, log_to_single
from pullback.primitives.special.quadrature import by_integrals

from pullback.primitives.formulas import (  # isort: skip
    binary, digamma, exp, expm1, formula, lgamma, lifted, log, log1p, minimum, unary, where,
)  # fmt: skip

log_of_positive, ndtr = unary(log_of_positive_p), unary(ops.ndtr_p)
xlogy, xlog1py, digamma_gap = binary(xlogy_p), binary(xlog1py_p), binary(digamma_gap_p)
quotient, quick_exp, quick_log = map(lifted, (quotient_p.bind, exp_to_single, log_to_single))


def _log_of_rest(logarithm: Any) -> Any:
    """Return ``log(1 - exp(logarithm))``, without cancellation."""
    near = logarithm > -math.log(2)
    close = log(-expm1(where(near, logarithm, -1)))
    return where(near, close, log1p(-exp(where(near, -1, logarithm))))


# The normal distribution -------------------------------------------------------------------------------------------

_ROOT_HALF = math.sqrt(0.5)


def _log_ndtr(x: Any, single: bool) -> Any:
    """Return the logarithm of the normal distribution function, exp(-x²/2) erfcx(-x / √2) / 2 (DLMF 7.2.7).

    For negative x it is a sum of the logarithms of these factors. For positive x it is log(1 - tail). If ``single``,
    the result is accurate to single precision only, and the tail is computed from the same factors.
    """
    scaled, half_square = erfcx_of_positive(abs(x) * _ROOT_HALF, single) * 0.5, x * 0.5 * x
    if single:
        rest = scaled * quick_exp(-half_square)
        logarithm = quick_log(where(x < 0, scaled, 1 - rest))
        out = where(x < 0, logarithm - half_square, where(rest < 1e-8, -rest, logarithm))
    else:
        out = where(x < 0, log_of_positive(scaled) - half_square, log1p(-ndtr(-where(x < 0, 0, x))))
    return where(x != x, x, out)


def normal_hazard(x: Any) -> Any:
    """Return the normal density divided by ndtr, which is the derivative of log_ndtr."""
    return normal_hazard_p.bind(x)


def _normal_hazard(x: Any) -> Any:
    below = div(math.sqrt(2 / math.pi), erfcx_p.bind(mul(ops.where(lt(x, 0), x, -1), -_ROOT_HALF)))
    positive = ops.where(lt(x, 0), 0, x)
    above = div(mul(ops.gaussian(positive, 0.5), 1 / math.sqrt(2 * math.pi)), ops.ndtr_p.bind(positive))
    return ops.where(lt(x, 0), below, above)


def _normal_hazard_in_single(x: Any) -> Any:
    """Return the same to single precision, for numbers in double precision."""
    scaled, density = erfcx_of_positive(abs(x) * _ROOT_HALF, True), quick_exp(x * -0.5 * x)
    above = density * (1 / math.sqrt(2 * math.pi)) / (1 - density * scaled * 0.5)
    return where(x < 0, math.sqrt(2 / math.pi) / scaled, above)


def _normal_hazard_slope(t: Any, x: Any) -> Any:
    """Return the tangent of h = normal_hazard: h' = -h (x + h), which cancels for negative x.

    There h is sqrt(2 / π) / w for w = erfcx(-x / √2), and h' is h w' / w / √2, where w' is the derivative of erfcx.
    """
    negative, h = lt(x, 0), normal_hazard(x)
    scaled = mul(ops.where(negative, x, -1), -_ROOT_HALF)
    below = mul(div(erfcx_derivative_p.bind(scaled, order=1), erfcx_p.bind(scaled)), _ROOT_HALF)
    above = neg(add(x, h))
    return mul(t, mul(h, ops.where(negative, below, above)))


def _host_normal_hazard(x: Any) -> Any:
    """Evaluate the hazard on the host; the formula for the other sign has operands for which it is finite."""
    below = math.sqrt(2 / math.pi) / host_erfcx(np.where(x < 0, x, -1).astype(x.dtype) * x.dtype.type(-_ROOT_HALF))
    positive = np.where(x < 0, 0, x).astype(x.dtype)
    above = host.gaussian(positive, factor=0.5) * (1 / math.sqrt(2 * math.pi)) / host.ndtr(positive)
    return np.where(x < 0, below, above).astype(x.dtype)[()]


def _normal_hazard_lowering(hlo: Any, x: Any) -> Any:
    if x.dtype.itemsize == 8:
        return hlo.inline(_normal_hazard, x)
    return in_double(formula(_normal_hazard_in_single))(hlo, x)


normal_hazard_p: Primitive = composite(
    "normal_hazard", of=FLOAT, formula=_normal_hazard, jvp=(_normal_hazard_slope,)
)  # fmt: skip
normal_hazard_p.host_rule = by_loop(_host_normal_hazard, "normal_hazard")
normal_hazard_p.lowering_rule = _normal_hazard_lowering


def _host_log_ndtr(x: Any) -> Any:
    """Evaluate SciPy's log_ndtr on the host; for positive doubles evaluate log1p(-tail) instead.

    SciPy loses accuracy there, since it rounds x / √2.
    """
    out = _scipy_log_ndtr(x)
    above = x > 0
    if x.dtype != np.float64 or not np.any(above):
        return out
    return np.where(above, np.log1p(-host.ndtr(-np.abs(x))), out)[()]


_scipy_log_ndtr = host.special("log_ndtr")
log_ndtr_p: Primitive = elementwise(
    "log_ndtr", of=FLOAT, host=by_loop(_host_log_ndtr, "log_ndtr"),
    hlo=lambda hlo, x: in_double(partial(formula(_log_ndtr), single=hlo.result.dtype.itemsize < 8))(hlo, x),
    jvp=lambda t, x, ans: mul(t, normal_hazard(x)),
)  # fmt: skip
compiled_from(log_ndtr_p, 50_000, unless=has_loop)  # 100,000: 1358 / 455, of 64 bits 3320 / 1399


# Densities -----------------------------------------------------------------------------------------------------------

_LARGE = 20.0
"""The parameter from which a log density is computed from the distance to the mean, since its terms would cancel."""


def _log_gamma_density(a: Any, x: Any) -> Any:
    large = (a >= _LARGE) & (x > 0)
    direct = xlogy(a - 1, x) - x - lgamma(a)
    wide, inside = where(large, a, _LARGE), where(large, x, _LARGE)
    return where(large, log_gamma_weight(wide, inside) - log(inside), direct)


# The logarithm of x**(a - 1) exp(-x) / Γ(a).
log_gamma_density_p: Primitive = composite(
    "log_gamma_density", of=FLOAT, formula=doubled(formula(_log_gamma_density)),
    jvp=(
        formula(lambda t, a, x: t * (log(x) - digamma(a))),
        formula(lambda t, a, x: t * (quotient(a - 1, x, power=1) - 1)),
    ),
)  # fmt: skip


def _log_beta_density(a: Any, b: Any, x: Any) -> Any:
    inside = (x > 0) & (x < 1)
    large = (a + b >= _LARGE) & inside
    powers = xlogy(a - 1, x) + xlog1py(b - 1, -x)
    direct = powers - (lgamma(a) + lgamma(b) - lgamma(a + b))
    far_a, far_b, within = where(large, a, _LARGE), where(large, b, _LARGE), where(large, x, 0.5)
    rest = 1 - within
    distance = within - far_a / (far_a + far_b)
    weight = log_beta_weight(far_a, far_b, within, rest, distance)
    return where(large, weight - log(within) - log1p(-within), direct)


# The logarithm of x**(a - 1) (1 - x)**(b - 1) / B(a, b).
log_beta_density_p: Primitive = composite(
    "log_beta_density", of=FLOAT, formula=doubled(formula(_log_beta_density)),
    jvp=(
        formula(lambda t, a, b, x: t * (log(x) + digamma_gap(a, b))),
        formula(lambda t, a, b, x: t * (log1p(-x) + digamma_gap(b, a))),
        formula(lambda t, a, b, x: t * (quotient(a - 1, x, power=1) - quotient(b - 1, 1 - x, power=1))),
    ),
)  # fmt: skip


# The incomplete gamma function ---------------------------------------------------------------------------------------


@formula
def log_gamma_sides(a: Any, x: Any, upper: Any) -> tuple[Any, Any]:
    """Return the log of a tail of the gamma distribution, and the log of x times the density at x.

    The tail is the upper tail where ``upper`` is true, and the lower tail elsewhere. The operands must be inside the
    domain.
    """
    above, ratio = gamma_integral(a, x, 0)
    weight = log_gamma_weight(a, x)
    own = weight + log(ratio)
    small = (x <= 1) & (a < 0.5) & ~above
    tail = gamma_small(where(small, a, 0.25), where(small, x, 0.5))
    # For small operands the tail has a series of its own; the lower tail may be near 1, and is then more accurate from
    # it.
    short = small & (tail < 0.5)
    rest = where(short, log(tail), _log_of_rest(minimum(own, -1e-300)))
    own = where(short, log1p(-tail), own)
    return where(above == upper, own, rest), weight


def _log_gamma(a: Any, x: Any, *, upper: bool) -> Any:
    finite = (a > 0) & (a < math.inf)
    inside = finite & ((x > 0) & (x < math.inf))
    value, _ = log_gamma_sides(where(inside, a, 1), where(inside, x, 1), _true(upper, a))
    nothing, everything = _number(-math.inf, a), _number(0, a)
    at_zero, at_infinity = (everything, nothing) if upper else (nothing, everything)
    at_ends = where(x == 0, at_zero, where(x == math.inf, at_infinity, math.nan))
    return where(inside, value, where(finite, at_ends, math.nan))


def _number(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


def _true(value: bool, like: Any) -> Any:
    return _number(0, like) == 0 if value else _number(0, like) == 1


def _declare_log_gamma(name: str, upper: bool) -> Primitive:
    """Declare a primitive: the logarithm of igammac if ``upper``, else the logarithm of igamma."""
    sign = neg if upper else lambda x: x

    def by_a(t: Any, a: Any, x: Any) -> Any:
        weight = add(log_gamma_density_p.bind(a, x), ops.log(x))
        slope = gamma_slope_p.bind(a, x, order=1)
        ratio = ops.exp(sub(weight, p.bind(a, x)))
        return sign(mul(t, mul(slope, ratio)))

    def by_x(t: Any, a: Any, x: Any) -> Any:
        return sign(mul(t, ops.exp(sub(log_gamma_density_p.bind(a, x), p.bind(a, x)))))

    p: Primitive = by_integrals(name, partial(formula(_log_gamma), upper=upper), (by_a, by_x))
    return p


log_igamma_p = _declare_log_gamma("log_igamma", upper=False)
log_igammac_p = _declare_log_gamma("log_igammac", upper=True)


# The incomplete beta function ----------------------------------------------------------------------------------------


@formula
def log_beta_sides(a: Any, b: Any, x: Any, upper: Any, rest: Any = None) -> tuple[Any, Any]:
    """Return the log of a tail of the beta distribution, and the log of x (1 - x) times the density at x.

    The tail is the upper tail where ``upper`` is true, and the lower tail elsewhere. The operands must be inside the
    domain. ``rest`` is 1 - x, where the caller knows it more accurately.
    """
    swapped, ratio, variables = beta_integral(a, b, x, 0, 0, rest)
    weight = log_beta_weight(*variables)
    own = minimum(weight + log(ratio), -1e-300)
    return where(swapped == upper, own, _log_of_rest(own)), weight


def _log_beta(a: Any, b: Any, x: Any, *, upper: bool) -> Any:
    finite = (a > 0) & (a < math.inf) & ((b > 0) & (b < math.inf))
    inside = finite & ((x > 0) & (x < 1))
    safe = (where(inside, a, 1), where(inside, b, 1), where(inside, x, 0.5))
    value, _ = log_beta_sides(*safe, _true(upper, a))
    nothing, everything = _number(-math.inf, a), _number(0, a)
    at_zero, at_one = (everything, nothing) if upper else (nothing, everything)
    at_ends = where(x == 0, at_zero, where(x == 1, at_one, math.nan))
    return where(inside, value, where(finite, at_ends, math.nan))


def _declare_log_beta(name: str, upper: bool) -> Primitive:
    """Declare a primitive: the logarithm of betaincc if ``upper``, else the logarithm of betainc."""
    sign = neg if upper else lambda x: x

    def by_parameter(t: Any, a: Any, b: Any, x: Any, by_a: int, by_b: int) -> Any:
        density = log_beta_density_p.bind(a, b, x)
        beside = add(ops.log(x), ops.log1p_p.bind(neg(x)))
        weight = add(density, beside)
        slope = beta_slope_p.bind(a, b, x, by_a=by_a, by_b=by_b)
        ratio = ops.exp(sub(weight, p.bind(a, b, x)))
        return sign(mul(t, mul(slope, ratio)))

    def by_x(t: Any, a: Any, b: Any, x: Any) -> Any:
        return sign(mul(t, ops.exp(sub(log_beta_density_p.bind(a, b, x), p.bind(a, b, x)))))

    rules = (partial(by_parameter, by_a=1, by_b=0), partial(by_parameter, by_a=0, by_b=1), by_x)
    p: Primitive = by_integrals(name, partial(formula(_log_beta), upper=upper), rules)
    return p


log_betainc_p = _declare_log_beta("log_betainc", upper=False)
log_betaincc_p = _declare_log_beta("log_betaincc", upper=True)
