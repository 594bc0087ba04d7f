"""Elliptic integrals, and the amplitude of Jacobi's functions, with derivatives of any order by all operands.

Carlson's symmetric integrals are computed by his duplication theorem (B. C. Carlson, *Numerical computation of real or
complex elliptic integrals*, Numerical Algorithms 10, 1995; DLMF 19.36.1): each step brings the operands closer
together by a factor of four, until a series of the seventh order has no error left. Legendre's integrals, and their
derivatives by the parameter, are sums of Carlson's without cancellation (DLMF 19.25). The amplitude is by the
arithmetic-geometric mean (DLMF 22.20.2). On the host the functions are SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.control import loops
from pullback.core.array import SCALARS
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import elementwise
from pullback.primitives.special.precision import doubled
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    asin, atan2, cos, formula, full, lifted, log, log1p, maximum, remainder, round, sin, sinh, sqrt, square,
    stop_gradient, where,
)  # fmt: skip

while_loop, reduce_or = map(lifted, (loops.while_loop, reductions.reduce_or))

_CLOSE = 2e-3
"""The distance of the operands from their mean, in means, below which the series has no error, nor have derivatives."""
_MOST = 60.0


def _full(value: float, like: Any) -> Any:
    return full(like.shape, value, like.dtype)


# Carlson's integrals -------------------------------------------------------------------------------------------------


def _halved(*roots: Any) -> Any:
    """Return the sum of the products of the square roots of three operands."""
    x, y, z = roots
    return x * y + (x + y) * z


def _until_close(step: Callable[[Any], Any], start: Any) -> Any:
    """Repeat a duplication until all operands are close to their mean.

    Args:
      step: maps a carry to the next.
      start: a carry ``(f, spread, mean, ...)``: a fourth to the power of the number of steps, the largest distance of
        an operand from the mean before the first step, and the present mean.
    """

    @formula
    def going(carry: Any) -> Any:
        f, spread, mean = map(stop_gradient, carry[:3])
        far = spread * f > mean * _CLOSE
        return reduce_or(far, tuple(range(len(far.shape)))) & (f > 4.0**-_MOST)

    return while_loop(going, formula(step), start)


def _spread(mean: Any, *xs: Any) -> Any:
    largest = abs(mean - xs[0])
    for x in xs[1:]:
        largest = maximum(largest, abs(mean - x))
    return stop_gradient(largest)


def _first(x: Any, y: Any, z: Any) -> Any:
    """Evaluate R_F of three numbers that are not negative, of which one may be zero.

    The first step is outside of the loop: there an operand that is zero and has no tangent is a constant still, so that
    the infinite slope of its square root is not multiplied by zero.
    """
    more = _halved(sqrt(x), sqrt(y), sqrt(z))
    x, y, z = (x + more) * 0.25, (y + more) * 0.25, (z + more) * 0.25
    mean = (x + y + z) / 3

    def step(carry: Any) -> Any:
        f, spread, mean, *xs = carry
        more = _halved(*map(sqrt, xs))
        return f * 0.25, spread, (mean + more) * 0.25, *((v + more) * 0.25 for v in xs)

    start = (shapes.full((), 1.0, x.dtype), _spread(mean, x, y, z), mean, x, y, z)
    f, _, last, *_ = _until_close(step, start)
    scale = f / last
    a, b = (mean - x) * scale, (mean - y) * scale
    c = -(a + b)
    e2, e3 = a * b - square(c), a * b * c
    series = 1 + e2 * (-1 / 10 + e2 * (1 / 24 - e2 * (5 / 208)))
    series = series + e3 * (1 / 14 + e2 * (-3 / 44 + e2 * (1 / 16)) + e3 * (3 / 104))
    return series / sqrt(last)


def _fifth_series(a: Any, b: Any, c: Any, p: Any) -> Any:
    """Return the series of R_J in relative distances of its operands from their mean; the last one counts twice."""
    abc, p2 = a * b * c, square(p)
    e2 = a * b + (a + b) * c - 3 * p2
    e3 = abc + 2 * e2 * p + 4 * p2 * p
    e4 = (2 * abc + e2 * p + 3 * p2 * p) * p
    e5 = abc * p2
    series = 1 - e2 * (3 / 14) + e3 * (1 / 6) + square(e2) * (9 / 88) - e4 * (3 / 22) - e2 * e3 * (9 / 52)
    series = series + e5 * (3 / 26) - square(e2) * e2 * (1 / 16) + square(e3) * (3 / 40) + e2 * e4 * (3 / 20)
    return series + square(e2) * e3 * (45 / 272) - (e3 * e4 + e2 * e5) * (9 / 68)


def _second(x: Any, y: Any, z: Any) -> Any:
    """Evaluate R_D of numbers that are not negative, of which the last one is not zero, nor both others."""
    root = sqrt(z)
    more = _halved(sqrt(x), sqrt(y), root)
    total = 3 / (root * (z + more))
    x, y, z = (x + more) * 0.25, (y + more) * 0.25, (z + more) * 0.25
    mean = (x + y + 3 * z) / 5

    def step(carry: Any) -> Any:
        f, spread, mean, sums, *xs = carry
        roots = list(map(sqrt, xs))
        more = _halved(*roots)
        sums = sums + f * 3 / (roots[2] * (xs[2] + more))
        return f * 0.25, spread, (mean + more) * 0.25, sums, *((v + more) * 0.25 for v in xs)

    start = (shapes.full((), 1.0, x.dtype), _spread(mean, x, y, z), mean, _full(0, x), x, y, z)
    f, _, last, sums, *_ = _until_close(step, start)
    scale = f / last
    a, b = (mean - x) * scale, (mean - y) * scale
    c = (a + b) / -3
    rest = sums + f * _fifth_series(a, b, c, c) / (last * sqrt(last))
    return total + rest * 0.25


def _of_one(e: Any, y: Any) -> Any:
    """Evaluate R_C(1, y) for positive y = 1 + e: the arcus tangent of the square root of e, divided by it.

    Near 1 it is a series of e, and far from 1 a function of y: each is accurate there.
    """
    near = abs(e) < 0.05
    small = where(near, e, 0)
    series = _full(0, e)
    for k in range(12, -1, -1):
        series = series * -small + 1 / (2 * k + 1)
    below = (y < 1) & ~near
    root, other = sqrt(where(near | below, 1, y - 1)), sqrt(where(below, 1 - y, 0.5))
    hyperbolic = (log1p(other) - 0.5 * log(where(below, y, 0.5))) / other
    return where(near, series, where(below, hyperbolic, atan2(root, _full(1, e)) / root))


def _third(x: Any, y: Any, z: Any, p: Any) -> Any:
    """Evaluate R_J of numbers that are not negative, of which one may be zero, but not the last."""

    def reduced(f: Any, xs: Any) -> Any:
        """The next operands, and six times the term of the sum."""
        roots = list(map(sqrt, xs))
        more = _halved(*roots[:3])
        d = e = None
        for r, distance in zip(roots[:3], distances, strict=True):
            d = roots[3] + r if d is None else d * (roots[3] + r)
            part = f * distance / square(roots[3] + r)
            e = part if e is None else e * part
        y = 2 * roots[3] * (xs[3] + more) / d
        return [(v + more) * 0.25 for v in xs], more, 6 * f / d * _of_one(e, y)

    distances = [p - v for v in (x, y, z)]
    xs, _, total = reduced(shapes.full((), 1.0, x.dtype), [x, y, z, p])
    mean = (xs[0] + xs[1] + xs[2] + 2 * xs[3]) / 5
    first = mean, *xs

    def step(carry: Any) -> Any:
        f, spread, mean, sums, *xs = carry
        nearer, more, term = reduced(f * 0.25, xs)
        return f * 0.25, spread, (mean + more) * 0.25, sums + term, *nearer

    start = (shapes.full((), 1.0, x.dtype), _spread(*first), mean, total, *xs)
    f, _, last, sums, *_ = _until_close(step, start)
    scale = f / last
    a, b, c = ((mean - v) * scale for v in first[1:4])
    return sums + f * 0.25 * _fifth_series(a, b, c, (a + b + c) * -0.5) / (last * sqrt(last))


def _sorted(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    """Sort three numbers by selections, whose derivatives at equal numbers are those of symmetric functions."""
    x, y = where(x <= y, x, y), where(x <= y, y, x)
    y, z = where(y <= z, y, z), where(y <= z, z, y)
    x, y = where(x <= y, x, y), where(x <= y, y, x)
    return x, y, z


def _is_finite_sum(*xs: Any) -> Any:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total < math.inf


def _none_negative(*xs: Any) -> Any:
    """Whether operands are numbers that are not negative: NaN are not."""
    out = xs[0] >= 0
    for x in xs[1:]:
        out = out & (x >= 0)
    return out


@formula
def _elliprf(x: Any, y: Any, z: Any) -> Any:
    allowed = _none_negative(x, y, z)
    x, y, z = (where(allowed, v, 1) for v in (x, y, z))
    infinite, pole = ~_is_finite_sum(x, y, z), _two_zeros(x, y, z)
    usual = ~(infinite | pole)
    value = _first(*(where(usual, v, 1) for v in (x, y, z)))
    value = where(infinite, 0, where(pole, math.inf, value))
    return where(allowed, value, math.nan)


def _two_zeros(x: Any, y: Any, z: Any) -> Any:
    return ((x == 0) & (y == 0)) | ((x == 0) & (z == 0)) | ((y == 0) & (z == 0))


@formula
def _elliprc(x: Any, y: Any) -> Any:
    """R_F(x, y, y); for negative y Cauchy's principal value (DLMF 19.2.20)."""
    allowed = (x >= 0) & (abs(y) > 0)
    negative = y < 0
    x, y = where(allowed, x, 1), where(allowed, y, 1)
    first, second = where(negative, x - y, x), where(negative, -y, y)
    infinite = ~_is_finite_sum(first, second)
    usual = ~infinite
    a, b = where(usual, first, 1), where(usual, second, 1)
    value = _first(a, b, b) * where(negative & usual, sqrt(where(negative & usual, x / a, 1)), 1)
    return where(allowed, where(infinite, 0, value), math.nan)


@formula
def _elliprd(x: Any, y: Any, z: Any) -> Any:
    allowed = _none_negative(x, y, z)
    x, y, z = (where(allowed, v, 1) for v in (x, y, z))
    infinite, pole = ~_is_finite_sum(x, y, z), (z == 0) | ((x == 0) & (y == 0))
    usual = ~(infinite | pole)
    value = _second(*(where(usual, v, 1) for v in (x, y, z)))
    value = where(infinite, 0, where(pole, math.inf, value))
    return where(allowed, value, math.nan)


@formula
def _elliprj(x: Any, y: Any, z: Any, p: Any) -> Any:
    """R_J; for negative p Cauchy's principal value (DLMF 19.20.14)."""
    allowed = _none_negative(x, y, z) & (abs(p) > 0)
    x, y, z, p = (where(allowed, v, 1) for v in (x, y, z, p))
    infinite = ~_is_finite_sum(x, y, z, abs(p))
    pole = _two_zeros(x, y, z)
    usual = ~(infinite | pole)
    x, y, z, p = (where(usual, v, 1) for v in (x, y, z, p))
    negative = p < 0
    x, y, z = _sorted(x, y, z)
    q = where(negative, -p, 1)
    other = (z * (x + y + q) - x * y) / (z + q)
    value = _third(x, y, z, where(negative, other, p))
    product = x * y + other * q
    principal = (other - z) * value - 3 * _first(x, y, z)
    principal = (principal + 3 * sqrt(x * y * z / product) * _first(product, other * q, other * q)) / (q + z)
    value = where(negative, principal, value)
    return where(allowed, where(infinite, 0, where(pole, math.inf, value)), math.nan)


@formula
def _elliprg(x: Any, y: Any, z: Any) -> Any:
    """R_G by R_F and R_D, with the operand between the others in the last place, so that nothing cancels."""
    allowed = _none_negative(x, y, z)
    x, y, z = (where(allowed, v, 1) for v in (x, y, z))
    infinite = ~_is_finite_sum(x, y, z)
    least, middle, most = _sorted(*(where(infinite, 1, v) for v in (x, y, z)))
    pole = middle == 0
    a, b, c = where(pole, 1, least), where(pole, 1, middle), where(pole, 1, most)
    value = b * _first(a, c, b) + (b - a) * (c - b) * _second(a, c, b) / 3 + sqrt(a * c / b)
    alone = sqrt(where(pole & (most > 0), most, 1)) * where(most > 0, 0.5, _full(0, most))
    value = where(infinite, math.inf, where(pole, alone, value * 0.5))
    return where(allowed, value, math.nan)


elliprc_p = by_forward_mode("elliprc", _elliprc, arity=2, host=host.special("elliprc"))
elliprd_p = by_forward_mode("elliprd", _elliprd, arity=3, host=host.special("elliprd"))
elliprj_p = by_forward_mode("elliprj", _elliprj, arity=4, host=host.special("elliprj"))


@lifted
def _rd(x: Any, y: Any, z: Any) -> Any:
    return elliprd_p.bind(x, y, z, orders=(0, 0, 0))


def _in_doubles(written: Callable[..., Any]) -> Callable[..., Any]:
    return lambda hlo, *operands: hlo.inline(doubled(written), *operands)


def _broadcast(ans: Any, *xs: Any) -> list[Any]:
    """Return operands as arrays of the shape of the result."""
    return [
        shapes.full(ans.shape, x, ans.dtype) if type(x) in SCALARS else shapes.broadcast_to(x, ans.shape) for x in xs
    ]


def _symmetric(name: str, written: Callable[..., Any], slope: Callable[..., Any]) -> Primitive:
    """Declare a symmetric function of three numbers; ``slope(x, y, z)`` is its derivative by the first."""

    def by(i: int) -> Callable[..., Any]:
        def rule(t: Any, *operands: Any) -> Any:
            *xs, ans = operands
            return ops.mul(t, formula(slope)(*_broadcast(ans, xs[i], *xs[:i], *xs[i + 1 :])))

        return rule

    return elementwise(
        name, of=FLOAT, arity=3, host=host.special(name), hlo=_in_doubles(written), cost=Cost.SPECIAL,
        jvp=[by(i) for i in range(3)],
    )  # fmt: skip


elliprf_p = _symmetric("elliprf", _elliprf, lambda x, y, z: _rd(y, z, x) / -6)
elliprg_p = _symmetric(
    "elliprg", _elliprg, lambda x, y, z: (lifted(elliprf_p.bind)(x, y, z) - x * _rd(y, z, x) / 3) * 0.25
)


# Legendre's integrals ------------------------------------------------------------------------------------------------


_MANY = 32_768
"""The least numbers for threads: SciPy takes 8 ns for each, less than half of what other functions take."""


def _of_parameter(name: str, written: Callable[..., Any], slope: Callable[..., Any]) -> Primitive:
    """Declare a complete integral, a function of one number; ``slope(x)`` is its derivative, a formula."""
    return elementwise(
        name, of=FLOAT, host=host.special(name, many=_MANY), hlo=_in_doubles(written), cost=Cost.SPECIAL,
        jvp=lambda t, x, ans: ops.mul(t, formula(slope)(x)),
    )  # fmt: skip


def _slope_k(m: Any) -> Any:
    """The derivative of K: a sixth of R_D(0, 1, 1 - m)."""
    return _rd(_full(0, m), _full(1, m), 1 - m) / 6


def _slope_e(m: Any) -> Any:
    """The derivative of E: minus a sixth of R_D(0, 1 - m, 1)."""
    return _rd(_full(0, m), 1 - m, _full(1, m)) / -6


@formula
def _ellipkm1(p: Any) -> Any:
    return _elliprf(_full(0, p), p, _full(1, p))


@formula
def _ellipk(m: Any) -> Any:
    return _ellipkm1(1 - m)


@formula
def _ellipe(m: Any) -> Any:
    """E: positive terms for positive m, and for negative (DLMF 19.25.1, with 19.21.10)."""
    rest = 1 - m
    usual = (rest > 0) & (rest < math.inf)
    safe = where(usual, m, 0.5)
    other = 1 - safe
    positive = safe > 0
    first = _first(_full(0, m), other, _full(1, m))
    second = _second(_full(0, m), where(positive, 1, other), where(positive, other, 1))
    value = where(positive, other * (first + safe * second / 3), first - safe * second / 3)
    at_end = where(rest == 0, _full(1, m), where(rest == math.inf, math.inf, _full(math.nan, m)))
    return where(usual, value, at_end)


ellipk_p = _of_parameter("ellipk", _ellipk, _slope_k)
ellipkm1_p = _of_parameter("ellipkm1", _ellipkm1, lambda p: _rd(_full(0, p), _full(1, p), p) / -6)
ellipe_p = _of_parameter("ellipe", _ellipe, _slope_e)


class _Angle:
    """What integrals up to ``phi`` are made of: sine and cosine of the rest of ``turns`` half turns, and ``delta``.

    ``delta`` is 1 - m sin(phi)**2.
    """

    def __init__(self, phi: Any, m: Any) -> None:
        self.turns = stop_gradient(round(phi / math.pi))
        parity = 1 - 2 * abs(remainder(self.turns, 2.0))
        self.sine, self.cosine = parity * sin(phi), parity * cos(phi)
        squared = square(self.sine)
        self.delta = where(m * squared < 0.5, 1 - m * squared, square(self.cosine) + (1 - m) * squared)
        self.cube = self.sine * squared

    def of_turns(self, complete: Any) -> Any:
        """Twice the complete integral for each half turn; nothing for none, if it is infinite."""
        return where(self.turns == 0, 0, 2 * self.turns * where(self.turns == 0, 0, complete))


def _with_limits(phi: Any, m: Any, written: Callable[[Any, Any], Any], limit: float) -> Any:
    """Evaluate an integral where its operands are finite; at infinite angles it is the angle.

    ``limit`` is its value, for positive angles, where m is minus infinity.
    """
    usual = (abs(phi) < math.inf) & (abs(m) < math.inf) & (m <= 1)
    value = written(where(usual, phi, 0.5), where(usual, m, 0.5))
    at_limit = where(phi == 0, phi, phi * limit)
    rest = where((m == -math.inf) & (abs(phi) < math.inf), at_limit, where(m <= 1, phi, math.nan))
    return where(usual, value, rest)


@formula
def _ellipkinc(phi: Any, m: Any) -> Any:
    """F by DLMF 19.25.5, and 19.2.10 for the half turns."""

    def written(phi: Any, m: Any) -> Any:
        angle = _Angle(phi, m)
        part = angle.sine * _elliprf(square(angle.cosine), angle.delta, _full(1, phi))
        return part + angle.of_turns(_ellipk(m))

    return _with_limits(phi, m, written, 0.0)


@formula
def _ellipeinc(phi: Any, m: Any) -> Any:
    """E by DLMF 19.25.9 for negative m, and 19.25.10 for positive."""

    def written(phi: Any, m: Any) -> Any:
        angle, positive = _Angle(phi, m), m > 0
        squared, one = square(angle.cosine), _full(1, phi)
        first = angle.sine * _elliprf(squared, angle.delta, one)
        second = _elliprd(squared, where(positive, 1, angle.delta), where(positive, angle.delta, 1))
        second = angle.cube * second * (m / 3)
        last = m * angle.sine * angle.cosine / sqrt(where(positive, angle.delta, 1))
        part = where(positive, (1 - m) * (first + second) + last, first - second)
        return part + angle.of_turns(_ellipe(m))

    return _with_limits(phi, m, written, math.inf)


def _slope_of_f(phi: Any, m: Any) -> Any:
    """The derivative of F by m."""
    angle = _Angle(phi, m)
    part = angle.cube / 6 * _rd(square(angle.cosine), _full(1, phi), angle.delta)
    return part + angle.of_turns(_slope_k(m))


def _slope_of_e(phi: Any, m: Any) -> Any:
    """The derivative of E by m."""
    angle = _Angle(phi, m)
    part = angle.cube / -6 * _rd(square(angle.cosine), angle.delta, _full(1, phi))
    return part + angle.of_turns(_slope_e(m))


def _of_angle(name: str, written: Callable[..., Any], power: float, slope: Callable[..., Any]) -> Primitive:
    """Declare an incomplete integral of ``delta`` to a power; ``slope(phi, m)`` is its derivative by m."""

    def by_angle(t: Any, phi: Any, m: Any, ans: Any) -> Any:
        root = formula(lambda phi, m: sqrt(_Angle(phi, m).delta))(*_broadcast(ans, phi, m))
        return ops.div(t, root) if power < 0 else ops.mul(t, root)

    def by_parameter(t: Any, phi: Any, m: Any, ans: Any) -> Any:
        return ops.mul(t, formula(slope)(*_broadcast(ans, phi, m)))

    return elementwise(
        name, of=FLOAT, arity=2, host=host.special(name), hlo=_in_doubles(written), cost=Cost.SPECIAL,
        jvp=(by_angle, by_parameter),
    )  # fmt: skip


ellipkinc_p = _of_angle("ellipkinc", _ellipkinc, -0.5, _slope_of_f)
ellipeinc_p = _of_angle("ellipeinc", _ellipeinc, 0.5, _slope_of_e)


# Jacobi's functions --------------------------------------------------------------------------------------------------

_MEANS = 8
"""The number of means: from two numbers, of which one is 1e-8 of the other, seven have no difference left."""


@formula
def _jacobi_am(u: Any, m: Any) -> Any:
    allowed = (m >= 0) & (m <= 1)
    usual = allowed & (m < 1)
    safe = where(usual, m, 0.5)
    a, b, c2 = _full(1, m), sqrt(1 - safe), safe
    ratios = []
    for _ in range(_MEANS):
        mean = (a + b) * 0.5
        a, b, c = mean, sqrt(a * b), c2 / (4 * mean)
        c2 = square(c)
        ratios.append(c / mean)
    phi = where(usual, u, 0) * a * 2.0**_MEANS
    for ratio in reversed(ratios):
        phi = (phi + asin(ratio * sin(phi))) * 0.5
    return where(usual, phi, where(allowed, atan2(sinh(u), _full(1, u)), math.nan))


def _am_by_u(t: Any, u: Any, m: Any, ans: Any) -> Any:
    return ops.mul(t, formula(lambda am, m: sqrt(_Angle(am, m).delta))(*_broadcast(ans, ans, m)))


def _am_by_m(t: Any, u: Any, m: Any, ans: Any) -> Any:
    """The derivative by m of the inverse of F."""
    return ops.mul(t, formula(lambda am, m: -sqrt(_Angle(am, m).delta) * _slope_of_f(am, m))(*_broadcast(ans, ans, m)))


def _am_on_host(u: Any, m: Any) -> Any:
    dtype = next(x.dtype for x in (u, m) if hasattr(x, "dtype"))
    wide = [np.asarray(x, np.float64) for x in (u, m)]
    return imported("scipy.special").ellipj(*wide)[3].astype(dtype)


jacobi_am_p = elementwise(
    "jacobi_am", of=FLOAT, arity=2, host=_am_on_host, hlo=_in_doubles(_jacobi_am), cost=Cost.SPECIAL,
    jvp=(_am_by_u, _am_by_m),
)  # fmt: skip
