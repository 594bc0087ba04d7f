"""Quantiles: the inverses of the incomplete gamma and beta functions, of Student's distribution, and of log_ndtr.

On the host they are SciPy's. Compiled they are Newton's iteration for the logarithm of the smaller tail, as a
function of
u = log x (gamma), u = log(x / (1 - x)) (beta) or x (normal). The density of u is log-concave in each of them, and so is
the distribution function (Bagnoli and Bergstrom, *Log-concave probability and its applications*, Economic Theory 26,
2005). So after its first step the iteration is on the left of the root, from where it converges without a safeguard.

Derivatives are those of an implicit function: by the probability 1 / density, by a parameter - (∂P/∂a) / density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.core.array import ArrayImpl
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import elementwise
from pullback.primitives.elementwise import abs, add, digamma, div, eq, exp, gt, log, lt, mul, neg, polygamma, sub
from pullback.primitives.error_functions import ndtri_p
from pullback.primitives.incomplete import beta_slope_p, gamma_slope_p
from pullback.primitives.log_incomplete import (
    log_beta_density_p,
    log_beta_sides,
    log_gamma_density_p,
    log_gamma_sides,
    log_ndtr_p,
    normal_hazard,
)
from pullback.primitives.quadrature import in_blocks

_and, _not, _le = ops.and_p.bind, ops.not_p.bind, ops.le_p.bind
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_log1p, _lgamma, _logistic = ops.log1p_p.bind, ops.lgamma_p.bind, ops.logistic
_where = ops.where

Formula = Callable[..., Any]


# Newton's iteration --------------------------------------------------------------------------------------------------

_MOST = 100
_CLOSE = 4e-16

newton_loop_p = Primitive("newton_loop")
"""Newton's iteration: ``step(u, *operands)`` from ``u`` on, until no element moves. It stands in lowering rules
only."""


@newton_loop_p.abstract_eval
def _loop_shape(u: ShapedArray, *operands: ShapedArray, step: Formula) -> ShapedArray:
    return ShapedArray(u.shape, u.dtype)


@newton_loop_p.impl
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
        return [hlo.same("stablehlo.add", i, hlo.number(1, count)), any_moved, new]

    def going(i: Any, moving: Any, u: Any) -> list[Any]:
        return [hlo.same("stablehlo.and", moving, hlo.compare(i, hlo.number(_MOST, count), "LT"))]

    start = [hlo.number(0, count), hlo.number(True, boolean), u]
    return hlo.many("stablehlo.while", start, kinds, regions=[hlo.region(kinds, going), hlo.region(kinds, body)])[2]


def _moved(step: Formula, u: Any, *operands: Any) -> list[Any]:
    new = step(u, *operands)
    return [new, gt(abs(sub(new, u)), mul(_maximum(abs(u), 1e-3), _CLOSE))]


_FAR = 650.0
"""How far the logarithms of variables go, so that these do not underflow."""


# The incomplete gamma function ---------------------------------------------------------------------------------------


def _tails(p: Any, upper: bool) -> tuple[Any, Any]:
    """Whether the smaller tail is the upper one, and its logarithm."""
    small = _le(p, 0.5)
    logarithm = _where(small, log(_where(small, p, 0.5)), _log1p(neg(_where(small, 0, p))))
    return (small if upper else _not(small)), logarithm


def _with_ends(p: Any, valid: Any, inside: Any, low: float, high: float) -> Any:
    """A quantile where it was computed, and the ends of the support where the probability is 0 or 1."""
    ends = [shapes.full(p.shape, end, p.dtype) for end in (low, high)]
    at_ends = _where(eq(p, 0), ends[0], _where(eq(p, 1), ends[1], math.nan))
    return lambda value: _where(inside, value, _where(valid, at_ends, math.nan))


def _gamma_inverse(a: Any, p: Any, *, upper: bool) -> Any:
    """x, of which the tail (or, unless ``upper``, what is below) is ``p``."""
    finite = _and(gt(a, 0), lt(a, math.inf))
    inside = _and(finite, _and(gt(p, 0), lt(p, 1)))
    finish = _with_ends(p, finite, inside, *((math.inf, 0.0) if upper else (0.0, math.inf)))
    a, p = _where(inside, a, 1), _where(inside, p, 0.5)
    tail, target = _tails(p, upper)
    other = _log1p(neg(exp(target)))
    below, above = _where(tail, other, target), neg(_where(tail, target, other))
    # P(a, x) is less than x**a / Γ(a + 1); Q(a, a + sqrt(2 a L) + L) is less than exp(-L) (Boucheron, Lugosi and
    # Massart, *Concentration Inequalities*, 2013, 2.4). Between is the normal approximation of Wilson and Hilferty.
    bound = div(add(below, _lgamma(add(a, 1))), a)
    low = _maximum(bound, -_FAR)
    high = _maximum(log(add(a, add(ops.sqrt(mul(mul(a, 2), above)), above))), low)
    ninth = div(1 / 9, a)
    z = ndtri_p.bind(exp(target))
    cube = add(sub(1, ninth), mul(_where(tail, neg(z), z), ops.sqrt(ninth)))
    normal = add(log(a), mul(3, log(_maximum(cube, 0.2))))
    start = _where(_and(gt(a, 1), gt(cube, 0.2)), normal, _where(tail, high, low))

    def step(u: Any, a: Any, tail: Any, target: Any, low: Any, high: Any) -> Any:
        value, weight = log_gamma_sides(a, exp(u), tail)
        change = mul(sub(value, target), exp(sub(value, weight)))
        return _minimum(_maximum(_where(tail, add(u, change), sub(u, change)), low), high)

    start = _minimum(_maximum(start, low), high)
    u = newton_loop_p.bind(start, a, tail, target, low, high, step=step)
    return finish(exp(_where(lt(bound, -_FAR), bound, u)))  # there the bound is the root


def _declare_gamma_inverse(name: str, upper: bool) -> Primitive:
    return elementwise(
        name, of=FLOAT, arity=2, host=host.special(name), hlo=in_blocks(partial(_gamma_inverse, upper=upper)),
        jvp=(
            lambda t, a, p, ans: mul(t, _where(gt(ans, 0), neg(mul(ans, gamma_slope_p.bind(a, ans, order=1))), 0)),
            lambda t, a, p, ans: (neg if upper else _same)(mul(t, exp(neg(log_gamma_density_p.bind(a, ans))))),
        ),
        cost=Cost.SPECIAL,
    )  # fmt: skip


def _same(x: Any) -> Any:
    return x


gammaincinv_p = _declare_gamma_inverse("gammaincinv", upper=False)
gammainccinv_p = _declare_gamma_inverse("gammainccinv", upper=True)


# The incomplete beta function ----------------------------------------------------------------------------------------


def _beta_logit(a: Any, b: Any, target: Any) -> Any:
    """log(x / (1 - x)) where the logarithm of betainc of ``x`` is ``target``, which is at most log(1/2)."""
    logarithm = sub(add(_lgamma(a), _lgamma(b)), _lgamma(add(a, b)))
    # For x up to 1/2 betainc is at most 2 x**a / a / B(a, b).
    leading = add(add(target, log(a)), logarithm)
    low = _maximum(_minimum(div(sub(leading, math.log(2)), a), -math.log(2)), -_FAR)
    variance = add(_trigamma(a), _trigamma(b))
    z = ndtri_p.bind(exp(_maximum(target, -700)))
    normal = add(sub(digamma(a), digamma(b)), mul(z, ops.sqrt(variance)))
    start = _where(gt(_minimum(a, b), 1), normal, _minimum(normal, low))

    def step(u: Any, a: Any, b: Any, target: Any, low: Any) -> Any:
        value, weight = log_beta_sides(a, b, _logistic(u), _all_false(u), _logistic(neg(u)))
        return _minimum(_maximum(sub(u, mul(sub(value, target), exp(sub(value, weight)))), low), _FAR)

    u = newton_loop_p.bind(_maximum(_minimum(start, _FAR), low), a, b, target, low, step=step)
    far = div(leading, a)
    return _where(lt(far, -_FAR), far, u)  # there betainc is x**a / a / B(a, b)


def _trigamma(x: Any) -> Any:
    return polygamma(shapes.full((), 1, x.dtype), x)


def _all_false(like: Any) -> Any:
    return gt(shapes.full(like.shape, 0, like.dtype), 1)


def _beta_inverse(a: Any, b: Any, p: Any, *, upper: bool) -> Any:
    finite = _and(_and(gt(a, 0), lt(a, math.inf)), _and(gt(b, 0), lt(b, math.inf)))
    inside = _and(finite, _and(gt(p, 0), lt(p, 1)))
    finish = _with_ends(p, finite, inside, *((1.0, 0.0) if upper else (0.0, 1.0)))
    a, b, p = _where(inside, a, 1), _where(inside, b, 1), _where(inside, p, 0.5)
    tail, target = _tails(p, upper)
    u = _beta_logit(_where(tail, b, a), _where(tail, a, b), target)
    return finish(_logistic(_where(tail, neg(u), u)))


def _declare_beta_inverse(name: str, upper: bool) -> Primitive:
    def by_parameter(t: Any, a: Any, b: Any, p: Any, ans: Any, by_a: int, by_b: int) -> Any:
        inside = _and(gt(ans, 0), lt(ans, 1))
        safe = _where(inside, ans, 0.5)
        slope = mul(mul(safe, sub(1, safe)), beta_slope_p.bind(a, b, safe, by_a=by_a, by_b=by_b))
        return mul(t, _where(inside, neg(slope), 0))

    formula = partial(_beta_inverse, upper=upper)
    return elementwise(
        name, of=FLOAT, arity=3, host=_where_scipy_has_none(name, formula), hlo=in_blocks(formula),
        jvp=(
            partial(by_parameter, by_a=1, by_b=0),
            partial(by_parameter, by_a=0, by_b=1),
            lambda t, a, b, p, ans: (neg if upper else _same)(mul(t, exp(neg(log_beta_density_p.bind(a, b, ans))))),
        ),
        cost=Cost.SPECIAL,
    )  # fmt: skip


def _where_scipy_has_none(name: str, formula: Formula) -> Formula:
    """SciPy's function; of the smallest probabilities it returns NaN at times, and there the formula serves."""
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
        out[lost] = formula(*wide)._value
        return out[()]

    return call


betaincinv_p = _declare_beta_inverse("betaincinv", upper=False)
betainccinv_p = _declare_beta_inverse("betainccinv", upper=True)


# Student's distribution ----------------------------------------------------------------------------------------------


def student_quantile(df: Any, p: Any) -> Any:
    """t, below which is ``p``, by that t² / df is (1 - x) / x, where betainc(df / 2, 1 / 2, x) is twice the tail."""
    finite = _and(gt(df, 0), lt(df, math.inf))
    inside = _and(finite, _and(gt(p, 0), lt(p, 1)))
    finish = _with_ends(p, finite, inside, -math.inf, math.inf)
    df, p = _where(inside, df, 1), _where(inside, p, 0.25)
    both = mul(_minimum(p, sub(1, p)), 2)
    centre = _where(lt(p, 0.5), sub(1, mul(p, 2)), sub(mul(p, 2), 1))
    far = _le(both, 0.5)
    share = _where(far, both, _maximum(centre, 1e-300))
    half = mul(df, 0.5)
    u = _beta_logit(_where(far, half, 0.5), _where(far, 0.5, half), log(share))
    size = mul(ops.sqrt(df), exp(mul(_where(far, neg(u), u), 0.5)))
    return finish(_where(eq(p, 0.5), 0, _where(lt(p, 0.5), neg(size), size)))


# The logarithm of the normal distribution function -------------------------------------------------------------------


def _ndtri_exp(y: Any) -> Any:
    """log_ndtr is concave, and -sqrt(-2 y) is on the left of the root."""
    low = _and(lt(y, -1), gt(y, -math.inf))
    safe = _where(low, y, -2)

    def step(x: Any, y: Any) -> Any:
        return sub(x, div(sub(log_ndtr_p.bind(x), y), normal_hazard(x)))

    below = newton_loop_p.bind(neg(ops.sqrt(mul(safe, -2))), safe, step=step)
    above = neg(ndtri_p.bind(neg(ops.expm1_p.bind(_where(lt(y, -1), -1, y)))))
    return _where(low, below, _where(eq(y, -math.inf), -math.inf, above))


ndtri_exp_p: Primitive = elementwise(
    "ndtri_exp", of=FLOAT, host=host.special("ndtri_exp"), hlo=in_blocks(_ndtri_exp),
    jvp=lambda t, y, ans: div(t, normal_hazard(ans)),
    cost=Cost.SPECIAL,
)  # fmt: skip
