"""Quantiles: the inverses of the incomplete gamma and beta functions, of Student's distribution, and of log_ndtr.

On the host they are SciPy's. When compiled, they are Newton's iteration for the logarithm of the smaller tail, as a
function of u = log x (gamma), u = log(x / (1 - x)) (beta) or x (normal). In each case the density of u is log-concave,
and so is the distribution function (Bagnoli and Bergstrom, *Log-concave probability and its applications*, Economic
Theory 26, 2005). So after its first step the iteration is on the left of the root, and converges from there without a
safeguard. Derivatives are of implicit functions: 1 / density with respect to the probability, and -(∂P/∂a) / density
with respect to a parameter a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.core.array import ArrayImpl
from pullback.core.elsewhere import on_host
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import elementwise
from pullback.primitives.elementwise import div, gt, lt, mul, neg, sub
from pullback.primitives.special.error_functions import ndtri_p
from pullback.primitives.special.incomplete import beta_slope_p, gamma_slope_p
from pullback.primitives.special.log_incomplete import (
    log_beta_density_p,
    log_beta_sides,
    log_gamma_density_p,
    log_gamma_sides,
    log_ndtr_p,
    normal_hazard,
)
from pullback.primitives.special.quadrature import in_blocks

from pullback.primitives.formulas import (  # isort: skip
    digamma, exp, expm1, formula, full, lgamma, lifted, log, log1p, maximum, minimum, polygamma, sqrt, unary, where,
)  # fmt: skip

ndtri, log_ndtr, logistic = map(unary, (ndtri_p, log_ndtr_p, ops.logistic_p))
newton_loop: Any = lifted(lambda *xs, **params: newton_loop_p.bind(*xs, **params))

Formula = Callable[..., Any]


# Newton's iteration --------------------------------------------------------------------------------------------------

_MOST = 100
_CLOSE = 4e-16

newton_loop_p: Primitive = Primitive("newton_loop")
"""Newton's iteration: repeat ``step(u, *operands)``, from ``u`` on, until no element changes. Only lowering rules bind
it."""


@newton_loop_p.abstract_eval
def _loop_abstract_eval(u: ShapedArray, *operands: ShapedArray, step: Formula) -> ShapedArray:
    return ShapedArray(u.shape, u.dtype)


@newton_loop_p.impl
@on_host(newton_loop_p)
def _loop_evaluate(operands: Sequence[Any], params: dict[str, Any]) -> Any:
    u, *others = operands
    for _ in range(_MOST):
        u, moved = _moved(params["step"], u, *others)
        if not np.any(moved._value):
            break
    return u


@newton_loop_p.lowering
def _loop_lowering(hlo: Any, u: Any, *operands: Any, step: Formula) -> Any:
    count, boolean = np.dtype(np.int32), np.dtype(bool)
    kinds = [((), count), ((), boolean), (u.shape, u.dtype)]

    def body(i: Any, moving: Any, u: Any) -> list[Any]:
        new, moved = hlo.inline(partial(_moved, step), u, *operands)
        any_moved = hlo.reduce("stablehlo.or", moved, False, range(len(u.shape)))
        return [hlo.elementwise("stablehlo.add", i, hlo.number(1, count)), any_moved, new]

    def going(i: Any, moving: Any, u: Any) -> list[Any]:
        return [hlo.elementwise("stablehlo.and", moving, hlo.compare(i, hlo.number(_MOST, count), "LT"))]

    start = [hlo.number(0, count), hlo.number(True, boolean), u]
    return hlo.multi_result(
        "stablehlo.while", start, kinds, regions=[hlo.region(kinds, going), hlo.region(kinds, body)]
    )[2]


def _moved(step: Formula, u: Any, *operands: Any) -> list[Any]:
    new = step(u, *operands)
    return [new, gt(ops.abs(sub(new, u)), mul(ops.max_p.bind(ops.abs(u), 1e-3), _CLOSE))]


_FAR = 650.0
"""A bound on the logarithms of variables, so that these do not underflow."""


# The incomplete gamma function ---------------------------------------------------------------------------------------


def _tails(p: Any, upper: bool) -> tuple[Any, Any]:
    """Return a mask of where the upper tail is the smaller tail of a distribution, and the log of the smaller tail.

    ``p`` is the upper tail if ``upper``, else the lower tail.
    """
    small = p <= 0.5
    logarithm = where(small, log(where(small, p, 0.5)), log1p(-where(small, 0, p)))
    return (small if upper else ~small), logarithm


def _with_ends(p: Any, valid: Any, inside: Any, low: float, high: float) -> Any:
    """Make a function that completes values of a quantile at the ends of the domain.

    The function takes the quantile's values, and returns them where ``inside`` is true. Elsewhere it returns ``low``
    where the probability ``p`` is 0, and ``high`` where ``p`` is 1. It returns NaN for other ``p``, and where ``valid``
    is false.
    """
    ends = [shapes.full(p.shape, end, p.dtype) for end in (low, high)]
    at_ends = where(p == 0, ends[0], where(p == 1, ends[1], math.nan))
    return lambda value: where(inside, value, where(valid, at_ends, math.nan))


def _gamma_inverse(a: Any, p: Any, *, upper: bool) -> Any:
    """Return the x at which a tail of the gamma distribution is ``p``.

    The tail is the upper tail if ``upper``, else the lower tail.
    """
    finite = (a > 0) & (a < math.inf)
    inside = finite & ((p > 0) & (p < 1))
    finish = _with_ends(p, finite, inside, *((math.inf, 0.0) if upper else (0.0, math.inf)))
    a, p = where(inside, a, 1), where(inside, p, 0.5)
    tail, target = _tails(p, upper)
    other = log1p(-exp(target))
    below, above = where(tail, other, target), -where(tail, target, other)
    # P(a, x) is less than x**a / Γ(a + 1); Q(a, a + sqrt(2 a L) + L) is less than exp(-L) (Boucheron, Lugosi and
    # Massart, *Concentration Inequalities*, 2013, 2.4). Between is the normal approximation of Wilson and Hilferty.
    bound = (below + lgamma(a + 1)) / a
    low = maximum(bound, -_FAR)
    high = maximum(log(a + (sqrt(a * 2 * above) + above)), low)
    ninth = 1 / 9 / a
    z = ndtri(exp(target))
    cube = 1 - ninth + where(tail, -z, z) * sqrt(ninth)
    normal = log(a) + 3 * log(maximum(cube, 0.2))
    start = where((a > 1) & (cube > 0.2), normal, where(tail, high, low))

    @formula
    def step(u: Any, a: Any, tail: Any, target: Any, low: Any, high: Any) -> Any:
        value, weight = log_gamma_sides(a, exp(u), tail)
        change = (value - target) * exp(value - weight)
        return minimum(maximum(where(tail, u + change, u - change), low), high)

    start = minimum(maximum(start, low), high)
    u = newton_loop(start, a, tail, target, low, high, step=step)
    return finish(exp(where(bound < -_FAR, bound, u)))  # below that, the bound is the root


def _gamma_by_a(a: Any, x: Any) -> Any:
    positive, slope = gt(x, 0), mul(x, gamma_slope_p.bind(a, x, order=1))
    return ops.where(positive, neg(slope), 0)


def _declare_gamma_inverse(name: str, upper: bool) -> Primitive:
    return elementwise(
        name, of=FLOAT, arity=2, host=host.special(name), hlo=in_blocks(partial(formula(_gamma_inverse), upper=upper)),
        jvp=(
            lambda t, a, p, ans: mul(t, _gamma_by_a(a, ans)),
            lambda t, a, p, ans: (neg if upper else _same)(mul(t, ops.exp(neg(log_gamma_density_p.bind(a, ans))))),
        ),
        cost=Cost.SPECIAL,
    )  # fmt: skip


def _same(x: Any) -> Any:
    return x


gammaincinv_p = _declare_gamma_inverse("gammaincinv", upper=False)
gammainccinv_p = _declare_gamma_inverse("gammainccinv", upper=True)


# The incomplete beta function ----------------------------------------------------------------------------------------


def _beta_logit(a: Any, b: Any, target: Any) -> Any:
    """Return ``log(x / (1 - x))`` for the x at which log(betainc(a, b, x)) is ``target``.

    ``target`` must be at most log(1/2).
    """
    logarithm = lgamma(a) + lgamma(b) - lgamma(a + b)
    # For x up to 1/2 betainc is at most 2 x**a / a / B(a, b).
    leading = target + log(a) + logarithm
    low = maximum(minimum((leading - math.log(2)) / a, -math.log(2)), -_FAR)
    variance = _trigamma(a) + _trigamma(b)
    z = ndtri(exp(maximum(target, -700)))
    normal = digamma(a) - digamma(b) + z * sqrt(variance)
    start = where(minimum(a, b) > 1, normal, minimum(normal, low))

    @formula
    def step(u: Any, a: Any, b: Any, target: Any, low: Any) -> Any:
        value, weight = log_beta_sides(a, b, logistic(u), _all_false(u), logistic(-u))
        return minimum(maximum(u - (value - target) * exp(value - weight), low), _FAR)

    u = newton_loop(maximum(minimum(start, _FAR), low), a, b, target, low, step=step)
    far = leading / a
    return where(far < -_FAR, far, u)  # below that, betainc is x**a / a / B(a, b)


def _trigamma(x: Any) -> Any:
    return polygamma(shapes.full((), 1, x.dtype), x)


def _all_false(like: Any) -> Any:
    return full(like.shape, 0, like.dtype) > 1


def _beta_inverse(a: Any, b: Any, p: Any, *, upper: bool) -> Any:
    finite = (a > 0) & (a < math.inf) & ((b > 0) & (b < math.inf))
    inside = finite & ((p > 0) & (p < 1))
    finish = _with_ends(p, finite, inside, *((1.0, 0.0) if upper else (0.0, 1.0)))
    a, b, p = where(inside, a, 1), where(inside, b, 1), where(inside, p, 0.5)
    tail, target = _tails(p, upper)
    u = _beta_logit(where(tail, b, a), where(tail, a, b), target)
    return finish(logistic(where(tail, -u, u)))


def _declare_beta_inverse(name: str, upper: bool) -> Primitive:
    def by_parameter(t: Any, a: Any, b: Any, p: Any, ans: Any, by_a: int, by_b: int) -> Any:
        inside = ops.and_p.bind(gt(ans, 0), lt(ans, 1))
        safe = ops.where(inside, ans, 0.5)
        weight = mul(safe, sub(1, safe))
        slope = mul(weight, beta_slope_p.bind(a, b, safe, by_a=by_a, by_b=by_b))
        return mul(t, ops.where(inside, neg(slope), 0))

    inverse = partial(formula(_beta_inverse), upper=upper)
    return elementwise(
        name, of=FLOAT, arity=3, host=_where_scipy_has_none(name, inverse), hlo=in_blocks(inverse),
        jvp=(
            partial(by_parameter, by_a=1, by_b=0),
            partial(by_parameter, by_a=0, by_b=1),
            lambda t, a, b, p, ans: (neg if upper else _same)(mul(t, ops.exp(neg(log_beta_density_p.bind(a, b, ans))))),
        ),
        cost=Cost.SPECIAL,
    )  # fmt: skip


def _where_scipy_has_none(name: str, inverse: Formula) -> Formula:
    """Make a host rule that calls SciPy's function ``name``, and ``inverse`` where SciPy wrongly returns NaN.

    SciPy does so for some tiny probabilities.
    """
    of_scipy = host.special(name)

    def call(*operands: Any) -> Any:
        out = of_scipy(*operands)
        if not np.any(np.isnan(out)):
            return out
        lost = np.isnan(out) & ~np.isnan(sum(np.asarray(x, np.float64) for x in operands))
        if not np.any(lost):
            return out
        wide = [ArrayImpl(np.broadcast_to(np.asarray(x, np.float64), lost.shape)[lost]) for x in operands]
        out = np.array(out)
        out[lost] = inverse(*wide)._value
        return out[()]

    return call


betaincinv_p = _declare_beta_inverse("betaincinv", upper=False)
betainccinv_p = _declare_beta_inverse("betainccinv", upper=True)


# Student's distribution ----------------------------------------------------------------------------------------------


@formula
def student_quantile(df: Any, p: Any) -> Any:
    """Return the quantile of Student's distribution with ``df`` degrees of freedom at ``p``.

    The quantile t satisfies t² / df = (1 - x) / x, where betainc(df / 2, 1 / 2, x) is twice the smaller of p and 1 - p.
    """
    finite = (df > 0) & (df < math.inf)
    inside = finite & ((p > 0) & (p < 1))
    finish = _with_ends(p, finite, inside, -math.inf, math.inf)
    df, p = where(inside, df, 1), where(inside, p, 0.25)
    both = minimum(p, 1 - p) * 2
    centre = where(p < 0.5, 1 - p * 2, p * 2 - 1)
    far = both <= 0.5
    share = where(far, both, maximum(centre, 1e-300))
    half = df * 0.5
    u = _beta_logit(where(far, half, 0.5), where(far, 0.5, half), log(share))
    size = sqrt(df) * exp(where(far, -u, u) * 0.5)
    return finish(where(p == 0.5, 0, where(p < 0.5, -size, size)))


# The logarithm of the normal distribution function -------------------------------------------------------------------


def _ndtri_exp(y: Any) -> Any:
    """Return the inverse of log_ndtr.

    Below -1 it is found by Newton's iteration. The start -sqrt(-2 y) is left of the root, and log_ndtr is concave, so
    that the iteration converges.
    """
    low = (y < -1) & (y > -math.inf)
    safe = where(low, y, -2)

    @formula
    def step(x: Any, y: Any) -> Any:
        return x - (log_ndtr(x) - y) / lifted(normal_hazard)(x)

    below = newton_loop(-sqrt(safe * -2), safe, step=step)
    above = -ndtri(-expm1(where(y < -1, -1, y)))
    return where(low, below, where(y == -math.inf, -math.inf, above))


ndtri_exp_p: Primitive = elementwise(
    "ndtri_exp", of=FLOAT, host=host.special("ndtri_exp"), hlo=in_blocks(formula(_ndtri_exp)),
    jvp=lambda t, y, ans: div(t, normal_hazard(ans)),
    cost=Cost.SPECIAL,
)  # fmt: skip
