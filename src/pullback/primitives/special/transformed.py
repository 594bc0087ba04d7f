"""Elementwise relative entropies and power transforms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host.parallel import MANY
from pullback.core import dtypes
from pullback.core.array import shape_of
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT, INEXACT, broadcast_shape
from pullback.primitives.declare import composite, elementwise
from pullback.primitives.elementwise import abs, add, div, eq, gt, lt, mul, neg, sub
from pullback.primitives.special.others import exprel_derivative_p, exprel_p
from pullback.primitives.special.precision import doubled

_log1p = ops.log1p_p.bind
_or, _and, _not = ops.or_p.bind, ops.and_p.bind, ops.not_p.bind
_ge, _ne = ops.ge_p.bind, ops.ne_p.bind
_where = ops.where


# Relative entropies --------------------------------------------------------------------------------------------------


def _number(value: float, like: Any) -> Any:
    return shapes.full((), value, like.dtype)


def _rel_entr(p: Any, q: Any) -> Any:
    """Return ``p log(p / q)``, without overflow of the quotient."""
    inside = _and(gt(p, 0), gt(q, 0))
    value = mul(p, _log_quotient(_where(inside, p, 1), _where(inside, q, 1)))
    zero = _and(eq(p, 0), _ge(q, 0))
    return _at_ends(p, q, _where(inside, value, _where(zero, 0, _number(math.inf, p))))


def _log_quotient(p: Any, q: Any) -> Any:
    quotient = div(p, q)
    ordinary = _and(gt(quotient, 1e-300), lt(quotient, math.inf))
    near = lt(abs(sub(p, q)), mul(q, 0.5))
    small = _log1p(div(_where(near, sub(p, q), 0), q))
    direct = ops.log(_where(ordinary, quotient, 1))
    return _where(near, small, _where(ordinary, direct, sub(ops.log(p), ops.log(q))))


def _at_ends(p: Any, q: Any, value: Any) -> Any:
    return _where(_or(_ne(p, p), _ne(q, q)), math.nan, value)


_OF_ARTANH = [1 / n for n in range(33, 2, -2)]
"""The coefficients of (artanh(s) - s) / s**3 in s**2, from the highest power down."""


def _kl_div(p: Any, q: Any) -> Any:
    """Return the divergence p (r - log(1 + r)), where r = (q - p) / p; near r = 0 it is computed by a series."""
    inside = _and(gt(p, 0), gt(q, 0))
    safe_p, safe_q = _where(inside, p, 1), _where(inside, q, 1)
    difference = sub(safe_q, safe_p)
    near = lt(abs(difference), mul(safe_p, 0.5))
    r = div(_where(near, difference, 0), safe_p)
    s = div(r, add(r, 2))
    square = ops.square(s)
    # log(1 + r) is 2 artanh(s), and r - 2 s is r s.
    series = mul(mul(s, square), ops.polynomial(square, _OF_ARTANH))
    excess = sub(mul(r, s), mul(2, series))
    small = mul(safe_p, excess)
    direct = add(mul(safe_p, _log_quotient(safe_p, safe_q)), difference)
    zero = _and(eq(p, 0), _ge(q, 0))
    return _at_ends(p, q, _where(inside, _where(near, small, direct), _where(zero, q, math.inf)))


def _log_of_ratio(p: Any, q: Any, *, extra: float) -> Any:
    """Return ``log(p / q) + extra``, with limits where ``p`` or ``q`` is zero.

    It is the derivative of ``rel_entr(p, q)`` or ``kl_div(p, q)`` with respect to p; ``extra`` is their constant.
    """
    inside = _and(_and(_ge(p, 0), _ge(q, 0)), _or(gt(p, 0), gt(q, 0)))
    value = _log_quotient(_where(_and(inside, gt(p, 0)), p, 1), _where(_and(inside, gt(q, 0)), q, 1))
    value = _where(eq(p, 0), -math.inf, _where(eq(q, 0), math.inf, value))
    return _where(inside, add(value, extra), math.nan)


def _spread(t: Any, p: Any, q: Any) -> Any:
    """Broadcast the tangent ``t`` to the common shape of the operands ``p`` and ``q``."""
    shape = broadcast_shape("log_of_ratio", [shape_of(x) for x in (p, q)])
    return t if shape_of(t) == shape else shapes.broadcast_to(t, shape)


log_of_ratio_p: Primitive = composite(
    "log_of_ratio", of=FLOAT, formula=doubled(_log_of_ratio),
    jvp=(
        lambda t, p, q, extra: div(_spread(t, p, q), p),
        lambda t, p, q, extra: neg(div(_spread(t, p, q), q)),
    ),
)  # fmt: skip


def _rel_entr_by_q(t: Any, p: Any, q: Any, ans: Any) -> Any:
    lost = mul(t, div(p, q))
    return neg(lost)


rel_entr_p: Primitive = elementwise(
    "rel_entr", of=FLOAT, arity=2, host=host.special("rel_entr"),
    hlo=lambda hlo, p, q: hlo.inline(doubled(_rel_entr), p, q),
    jvp=(lambda t, p, q, ans: mul(t, log_of_ratio_p.bind(p, q, extra=1.0)), _rel_entr_by_q),
)  # fmt: skip


def _host_kl_div(p: Any, q: Any) -> Any:
    """Evaluate SciPy's kl_div on the host; where p is near q evaluate a series instead.

    There SciPy's formula loses all digits.
    """
    out = np.asarray(_scipy_kl_div(p, q))
    single = out.dtype != np.float64
    near = np.flatnonzero(np.abs(q - p) < (1e-3 if single else 0.5) * p)
    if near.size:
        p, q = (np.broadcast_to(x, out.shape).reshape(-1)[near].astype(np.float64) for x in (p, q))
        r = (q - p) / p
        np.put(out, near, p * (r * r * (0.5 - r * (1 / 3 - r / 4)) if single else _less_log1p(r)))
    return out[()]


def _less_log1p(r: Any) -> Any:
    """Return ``r - log(1 + r)`` for NumPy doubles with abs(r) up to 0.5, by the series of artanh."""
    s = r / (r + 2)
    square = s * s
    series = np.full_like(r, _OF_ARTANH[0])
    for coefficient in _OF_ARTANH[1:]:
        series *= square
        series += coefficient
    return r * s - 2 * s * square * series


def _kl_div_by_q(t: Any, p: Any, q: Any, ans: Any) -> Any:
    slope = div(sub(q, p), q)
    return mul(t, slope)


_scipy_kl_div = host.special("kl_div", many=4 * MANY)
kl_div_p: Primitive = elementwise(
    "kl_div", of=FLOAT, arity=2, host=_host_kl_div, hlo=lambda hlo, p, q: hlo.inline(doubled(_kl_div), p, q),
    jvp=(lambda t, p, q, ans: mul(t, log_of_ratio_p.bind(p, q, extra=0.0)), _kl_div_by_q),
)  # fmt: skip


# The transforms of Box and Cox ---------------------------------------------------------------------------------------


def _box_cox(x: Any, power: Any, *, order: int, shifted: bool) -> Any:
    """Return the derivative of order n = ``order`` of the Box-Cox transform with respect to the power.

    It is log(x)**(n + 1) times the derivative of order n of exprel at power * log(x). If ``shifted``, 1 + x replaces x.
    """
    if dtypes.is_complex(x.dtype):
        return _complex_box_cox(x, power, order=order, shifted=shifted)
    logarithm = _log1p(x) if shifted else ops.log(x)
    start, end = eq(x, -1 if shifted else 0), eq(x, math.inf)
    inner = _where(start, -1, _where(end, 1, logarithm))
    product = mul(inner, power)
    value = exprel_derivative_p.bind(product, order=order) if order else exprel_p.bind(product)
    # For x near one and a power that overflows the logarithm is 0, and so is the transform.
    value = _where(eq(inner, 0), 0, mul(ops.integer_pow(inner, order + 1), value))
    # At x = 0 for a positive power, and at infinity for a negative one, the transform is -1 / power.
    size = _where(eq(power, 0), 1, power)
    limit = div(-((-1.0) ** order) * math.factorial(order), ops.integer_pow(size, order + 1))
    lowest = _where(gt(power, 0), limit, _number((-1.0) ** (order + 1) * math.inf, x))
    highest = _where(lt(power, 0), limit, _number(math.inf, x))
    out = _where(start, lowest, _where(end, highest, value))
    return _at_ends(x, power, out)


def _complex_box_cox(x: Any, power: Any, *, order: int, shifted: bool) -> Any:
    logarithm = _log1p(x) if shifted else ops.log(x)
    start = eq(x, -1 if shifted else 0)
    inner = _where(start, -1, logarithm)
    value = mul(ops.integer_pow(inner, order + 1), _complex_exprel(mul(inner, power), order))
    limit = div(-((-1.0) ** order) * math.factorial(order), ops.integer_pow(_where(eq(power, 0), 1, power), order + 1))
    lowest = _where(gt(ops.real(power), 0), limit, _number((-1.0) ** (order + 1) * math.inf, x))
    return _where(start, lowest, value)


def _complex_exprel(w: Any, order: int) -> Any:
    """Return the integral of t**n exp(w t) over t from 0 to 1, for complex w, where n is ``order``."""
    n, bound = order, 2.0 * (order + 1)
    terms = range(3 * int(bound) + 25, -1, -1)
    near, negative = lt(abs(w), bound), lt(ops.real(w), 0)
    small, large = _where(near, _where(negative, neg(w), w), 0), _where(near, bound, w)
    above = ops.polynomial(small, [1 / (math.factorial(k) * (n + k + 1)) for k in terms])
    below = ops.polynomial(small, [math.factorial(n) / math.factorial(n + k + 1) for k in terms])
    far = div(ops.expm1_p.bind(large), large)
    for k in range(1, n + 1):
        numerator = sub(ops.exp(large), mul(far, k))
        far = div(numerator, large)
    return _where(near, _where(negative, mul(ops.exp(neg(small)), below), above), far)


def _declare_box_cox(name: str, shifted: bool) -> tuple[Primitive, Primitive]:
    def by_x(t: Any, x: Any, power: Any, order: int) -> Any:
        base = sub(x, -1) if shifted else x  # for complex numbers x + 1 loses the sign of a zero
        logarithm = ops.log(base)
        slope = ops.pow(base, sub(power, 1))
        return mul(t, mul(slope, ops.integer_pow(logarithm, order) if order else 1))

    derivative: Primitive = composite(
        f"{name}_derivative", of=INEXACT,
        formula=doubled(lambda x, power, order: _box_cox(x, power, order=order, shifted=shifted)),
        jvp=(by_x, lambda t, x, power, order: mul(t, derivative.bind(x, power, order=order + 1))),
    )  # fmt: skip
    value = elementwise(
        name, of=FLOAT, arity=2, host=host.special(name),
        hlo=lambda hlo, *xs: hlo.inline(doubled(lambda x, power: _box_cox(x, power, order=0, shifted=shifted)), *xs),
        jvp=(
            lambda t, x, power, ans: by_x(t, x, power, 0),
            lambda t, x, power, ans: mul(t, derivative.bind(x, power, order=1)),
        ),
    )  # fmt: skip
    return value, derivative


boxcox_p, boxcox_derivative_p = _declare_box_cox("boxcox", shifted=False)
boxcox1p_p, boxcox1p_derivative_p = _declare_box_cox("boxcox1p", shifted=True)
