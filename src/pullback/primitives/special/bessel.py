"""Modified Bessel functions of the first kind, of integer order; most are scaled by exp(-abs(x)) against overflow."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host.special import by_loop, has_loop, i0e, i1e
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import formulas
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT, check_dtype
from pullback.primitives.declare import elementwise, in_single
from pullback.primitives.elementwise import add, div, mul, sub
from pullback.primitives.large import compiled_from
from pullback.primitives.rules import batch_unary
from pullback.primitives.special import chebyshev
from pullback.primitives.special.chebyshev import power_coefficients
from pullback.primitives.special.quadrature import SERIES_BELOW, in_blocks, in_series
from pullback.primitives.special.quadrature import formula_integral as integral

from pullback.primitives.formulas import (  # isort: skip
    asin, cos, exp, formula, lifted, maximum, minimum, polynomial, sign, sin, sqrt, square, stop_gradient, where,
)  # fmt: skip

chebyshev_sum, integer_pow = lifted(chebyshev.chebyshev_sum), lifted(ops.integer_pow)

# Orders 0 and 1 ------------------------------------------------------------------------------------------------------


def _i1e_lowering(hlo: Any, x: Any) -> Any:
    wide = hlo.convert(x, np.dtype(np.float64))
    out = hlo.op("chlo.bessel_i1e", [wide], x.shape, wide.dtype)
    return hlo.convert(hlo.inline(lambda out, x: ops.where(ops.eq(x, 0), 0, out), out, wide), hlo.result.dtype)


def _i0e_lowering(hlo: Any, x: Any) -> Any:
    if hlo.result.dtype.itemsize == 8:
        return hlo.inline(formula(_i0e_of_doubles), x)
    return in_single(formula(_i0e_of_singles))(hlo, x)


_CLOSE_TERMS = (
    1.0826228413372934, 0.17341899014737773, 0.058936968828551791, -0.032653113716479254, 0.009249397490459316,
    0.0010164152390340695, -0.0033911476289250979, 0.0027503220478197885, -0.0016039930544716376,
    0.00077407913138144308, -0.00032532062379959853, 0.00012219291582903592, -4.167513656491509e-5,
    1.3047979427404249e-5, -3.7806977921051049e-6, 1.0203180517207399e-6, -2.5780951986075136e-7,
    6.125829740089075e-8, -1.373934069664008e-8, 2.9182658292546066e-9, -5.8870519438722185e-10,
    1.1308497146164623e-10, -2.0732551869805301e-11, 3.6354056446754137e-12, -6.1085074744812601e-13,
    9.852782815324172e-14, -1.5279965297520829e-14, 2.2817585382127335e-15, -3.2854692666143771e-16,
    4.5673017745432364e-17, -6.1372363033470765e-18,
)  # fmt: skip
_BEYOND_TERMS = (
    0.40224520550705442, 0.0033691164782556941, 6.889758346916824e-5, 2.8913705208347565e-6, 2.0489185894690637e-7,
    2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10, 1.1889147107846438e-11,
    -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12, 7.1801244513836662e-13,
    3.8527783827421427e-13, 1.5400862175214098e-14, -4.1505693472872221e-14, -9.5548466988283076e-15,
    3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772192e-16, -2.8276239805165832e-16,
    3.4612228676974575e-17, 4.465621420296758e-17, -4.8305044859440215e-18, -7.23318048787497e-18,
)  # fmt: skip
_SPLIT_OF_DOUBLES = 8.0
"""The coefficients are of Chebyshev series, from values of 45 digits: (1 + x) i0e(x) in x / 4 - 1 up to 8, and beyond,
i0e(x) √x in 16 / x - 1. Both functions vary little, so that almost nothing cancels."""


def _i0e_of_doubles(x: Any) -> Any:
    size = abs(x)
    near, far = minimum(size, _SPLIT_OF_DOUBLES), maximum(size, _SPLIT_OF_DOUBLES)
    close = chebyshev_sum(_CLOSE_TERMS, near / 4 - 1) / (near + 1)
    beyond = chebyshev_sum(_BEYOND_TERMS, 16 / far - 1) / sqrt(far)
    return where(size > _SPLIT_OF_DOUBLES, beyond, close)


_SPLIT = 5.0


def _i0e_of_singles(x: Any) -> Any:
    """Evaluate the scaled Bessel function i0e in single precision.

    For abs(x) up to 5 it is exp(-abs(x)) times a polynomial in x**2. For larger abs(x) it is sqrt(t) times a polynomial
    in t, where t = 5 / abs(x). The coefficients are positive, so that no terms cancel.
    """
    size = abs(x)
    near, far = minimum(size, _SPLIT), maximum(size, _SPLIT)
    close = polynomial(square(near), power_coefficients(_near, 0.0, _SPLIT**2, 10)) * exp(-near)
    t = _SPLIT / far
    beyond = polynomial(t, power_coefficients(_far, 0.0, 1.0, 8)) * sqrt(t)
    return where(size > _SPLIT, beyond, close)


def _near(square: Any) -> Any:
    return host.special("i0")(np.sqrt(square))


def _far(t: Any) -> Any:
    return host.special("i0e")(_SPLIT / t) / np.sqrt(t)


def _i0e_jvp(t: Any, x: Any, ans: Any) -> Any:
    slope = mul(ops.neg(ops.sign(x)), bessel_fall_p.bind(x))
    return mul(t, slope)


bessel_i0e_p: Primitive = elementwise(
    "bessel_i0e", doc=("The modified Bessel function of order 0, times ``exp(-abs(x))``.", "0.0", "1.0"),
    of=FLOAT, host=i0e, hlo=_i0e_lowering, jvp=_i0e_jvp,
    cost=Cost.SPECIAL,
)  # fmt: skip
compiled_from(bessel_i0e_p, 50_000, unless=has_loop)  # 100,000: 1963 / 186, of 64 bits 3655 / 532
bessel_i1e_p: Primitive = elementwise(
    "bessel_i1e", doc=("The modified Bessel function of order 1, times ``exp(-abs(x))``.", "0.0", "0.0"),
    of=FLOAT, host=i1e, hlo=_i1e_lowering,
    jvp=lambda t, x, ans: mul(t, _i1e_slope(x, ans)),
    cost=Cost.SPECIAL,
)  # fmt: skip
compiled_from(bessel_i1e_p, 50_000, unless=has_loop)  # 100,000: 1932 / 476, of 64 bits 3910 / 962


def _i1e_slope(x: Any, value: Any) -> Any:
    """Return the derivative of i1e at ``x``, ``(I0 - I1 - I1 / x) exp(-abs(x))``; ``value`` is i1e at ``x``.

    Near zero I1 / x is computed as (I0 - I2) / 2, which does not divide by zero.
    """
    near = ops.lt(ops.abs(x), 1)
    small, large = ops.where(near, x, 0), ops.where(near, 1, x)
    quotient = ops.where(near, mul(sub(_of_order(small, 0), _of_order(small, 2)), 0.5), div(value, large))
    return sub(bessel_fall_p.bind(x), quotient)


_CLOSE_FALL_TERMS = (
    0.47283679518852673, -0.34272192569578851, 0.16782309555766114, -0.054762968281815714, 0.0011611566381500361,
    0.014183205563160427, -0.01271771149299188, 0.0074469021263000789, -0.0033814707225354854, 0.0012285438475682392,
    -0.00034091465046190412, 5.3309811324246156e-5, 1.2640963900737899e-5, -1.6311030814297136e-5,
    9.5872589597303731e-6, -4.4876599968208927e-6, 1.8797643657852717e-6, -7.428616773032299e-7,
    2.8616840001312805e-7, -1.0988526602947047e-7, 4.2670825792506794e-8, -1.6884727256568665e-8,
    6.8234130708126812e-9, -2.8130200983612999e-9, 1.1799998016197019e-9, -5.0222519707813029e-10,
    2.1634303345661855e-10, -9.4135621338429865e-11, 4.13113217265429e-11, -1.8263308216280873e-11,
    8.1262133342135757e-12, -3.6364591747567417e-12, 1.6356575082193159e-12, -7.3911807394643927e-13,
    3.353982091603696e-13, -1.5278359174113849e-13, 6.9843522791213582e-14, -3.2032465422700782e-14,
    1.4735498603650046e-14, -6.7976182576917881e-15, 3.1440061910886532e-15, -1.4577077214977469e-15,
    6.7740915908596978e-16, -3.1547482158454913e-16, 1.4721647358230984e-16, -6.8829735237931803e-17,
    3.2238733992834464e-17, -1.5125859555713357e-17, 7.1082672751658369e-18,
)  # fmt: skip
_BEYOND_FALL_TERMS = (
    0.20463914491986041, 0.0053485260935385576, 0.00019150500095126415, 1.2032615976256657e-5, 1.1956976470208373e-6,
    1.7168417718734061e-7, 2.8338106568544693e-8, 3.0512068490939512e-9, -7.4341354538362426e-10,
    -5.7672839092344347e-10, -1.5193610828268227e-10, 5.6687906228401844e-12, 1.8044700616077239e-11,
    4.2535720734199775e-12, -1.1555903826473055e-12, -7.7707032883126273e-13, 1.4368043830095463e-14,
    1.0913028331644427e-13, 1.1406069274284165e-14, -1.5049144790858717e-14, -2.8555810704808023e-15,
    2.2314974017002143e-15, 5.2722587978145681e-16, -3.688525888515701e-16, -8.5355991966825099e-17,
    6.7549315226280812e-17, 1.1811455208665337e-17, -1.3225212330303549e-17, 2.6372007064108127e-18,
)  # fmt: skip
"""As for i0e, of the difference d(x) of i0e(x) and i1e(x): (1 + x)^1.5 d(x) up to 8, and beyond, x^1.5 d(x)."""
_FEWEST_OF_SINGLES = 1e-9  # Smaller terms change no number of single precision.


def _fall(x: Any, sum_of_terms: Any, namespace: Any, least: float = 0.0) -> Any:
    """Evaluate (I0 - I1) exp(-abs(x)) at abs(x) by two Chebyshev series.

    Args:
      x: the points.
      sum_of_terms: evaluates a series.
      namespace: has ``minimum``, ``maximum``, ``sqrt`` and ``where``, of NumPy or of formulas.
      least: the least absolute value of a term that counts.
    """
    size = abs(x)
    near, far = namespace.minimum(size, _SPLIT_OF_DOUBLES), namespace.maximum(size, _SPLIT_OF_DOUBLES)
    close = _close_fall(near, sum_of_terms, namespace, least)
    beyond = _far_fall(far, sum_of_terms, namespace, least)
    return namespace.where(size > _SPLIT_OF_DOUBLES, beyond, close)


def _close_fall(x: Any, sum_of_terms: Any, namespace: Any, least: float) -> Any:
    terms = [c for c in _CLOSE_FALL_TERMS if abs(c) > least]
    return sum_of_terms(terms, x / 4 - 1) / ((x + 1) * namespace.sqrt(x + 1))


def _far_fall(x: Any, sum_of_terms: Any, namespace: Any, least: float) -> Any:
    terms = [c for c in _BEYOND_FALL_TERMS if abs(c) > least]
    return sum_of_terms(terms, 16 / x - 1) / x / namespace.sqrt(x)


def _fall_host(x: Any) -> Any:
    """Evaluate the series that some elements need, a term of which takes a call of three functions."""
    size = np.abs(np.asarray(x, np.float64))
    is_far = size > _SPLIT_OF_DOUBLES
    least = _FEWEST_OF_SINGLES if x.dtype.itemsize < 8 else 0.0
    sum_of_terms = lambda terms, t: chebyshev.clenshaw(t, terms)
    if not is_far.any():
        out = _close_fall(size, sum_of_terms, np, least)
    elif is_far.all():
        out = _far_fall(size, sum_of_terms, np, least)
    else:
        out = _fall(size, sum_of_terms, np, least)
    return out.astype(x.dtype)[()]


def _fall_lowering(hlo: Any, x: Any) -> Any:
    if hlo.result.dtype.itemsize == 8:
        return hlo.inline(formula(lambda x: _fall(x, chebyshev_sum, formulas)), x)
    single = formula(lambda x: _fall(x, chebyshev_sum, formulas, _FEWEST_OF_SINGLES))
    return in_single(single)(hlo, x)


# (I0 - I1) exp(-abs(x)) at abs(x): minus the derivative of i0e. The difference would cancel where x is large.
bessel_fall_p: Primitive = elementwise(
    "bessel_fall", of=FLOAT, host=by_loop(_fall_host, "bessel_fall", many=32), hlo=_fall_lowering,
    jvp=lambda t, x, ans: mul(t, _fall_slope(x, ans)),
    cost=Cost.SPECIAL,
)  # fmt: skip
compiled_from(bessel_fall_p, 50_000, unless=has_loop)  # 100,000: 5319 / 288, of 64 bits 6896 / 1696


def _fall_slope(x: Any, value: Any) -> Any:
    turned, mean = ops.sign(x), mul(sub(_of_order(x, 0), _of_order(x, 2)), 0.5)
    slope = sub(mean, mul(value, 2))
    return mul(turned, slope)


def _cut(x: Any, below: float) -> tuple[Any, Any]:
    """Return abs(x), and the angle θ at which to cut off an integral of exp(abs(x) (cos θ - 1)).

    At this angle the exponential is exp(-2 ``below``). For small x the angle is π, the end of the whole integral.
    """
    size = minimum(abs(x), 1e300)
    half = sqrt(minimum(below / maximum(size, 1e-300), 1))
    return size, asin(half) * 2


def _at_infinity(function: Any, limit: Any) -> Any:
    """Return a function of x that calls ``function(x)``, of SciPy, but returns ``limit(x)`` where x is infinite.

    SciPy's function returns NaN there.
    """
    return lambda x: np.where(np.isinf(x), limit(x), function(x)).astype(x.dtype)[()]


i0_p: Primitive = elementwise(
    "i0", of=FLOAT, host=by_loop(_at_infinity(host.special("i0"), np.abs), "i0", many=128),
    hlo=lambda hlo, x: hlo.inline(partial(_unscaled, order=0), x),
    jvp=lambda t, x, ans: mul(t, i1_p.bind(x)),
    cost=Cost.SPECIAL,
)  # fmt: skip
i1_p: Primitive = elementwise(
    "i1", of=FLOAT, host=by_loop(_at_infinity(host.special("i1"), np.positive), "i1", many=128),
    hlo=lambda hlo, x: hlo.inline(partial(_unscaled, order=1), x),
    jvp=lambda t, x, ans: mul(t, _mean(i0_p.bind(x), _unscaled(x, 2))),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _mean(x: Any, y: Any) -> Any:
    return mul(add(x, y), 0.5)


def _unscaled(x: Any, order: int) -> Any:
    """Return the Bessel function I of ``order`` at ``x``, from the scaled function I(x) exp(-abs(x)).

    The scaled function is multiplied by exp(abs(x)) in two factors, so that the product overflows only if the result
    does.
    """
    size = ops.abs(x)
    most = ops.min_p.bind(size, 85.0 if x.dtype.itemsize < 8 else 700.0)
    value = mul(mul(_of_order(x, order), ops.exp(most)), ops.exp(sub(size, most)))
    return ops.where(ops.eq(size, math.inf), size if order % 2 == 0 else x, value)


def _odd_integral(at: Any, size: Any, moved: Any) -> Any:
    """Return the Bessel function I1 of z, times exp(-size), where z = sign(at) size + moved.

    It is the integral of 2 cos(θ) sinh(z cos(θ)) exp(-size) / π over θ from 0 to π / 2. No exponential exceeds one.

    Args:
      at: the value of z, without derivatives.
      size: the absolute value of z.
      moved: a number of value zero that carries the derivatives of z that ``size`` lacks.
    """
    sign = where(at < 0, shapes.full((), -1.0, at.dtype), 1)
    end = minimum(_cut(at, SERIES_BELOW / 2)[1], math.pi / 2)

    def integrand(theta: Any, size: Any, moved: Any) -> Any:
        cosine, half = cos(theta), theta * 0.5
        along, twice = moved * cosine, size * 2
        rising = along - twice * square(sin(half))
        falling = along + twice * square(cos(half))
        return cosine * (exp(rising) - exp(-falling))

    return sign * integral(integrand, end, size, sign * moved) * (1 / math.pi)


@in_series(i1_p)
@formula
def _i1_in_series(x: Any) -> Any:
    at = stop_gradient(x)
    growth = exp(abs(at) * 0.5)
    return _odd_integral(at, abs(at), x - at) * growth * growth


@in_series(bessel_i1e_p)
@formula
def _i1e_in_series(x: Any) -> Any:
    """Evaluate i1e for its Taylor rule, by an integral that contains both x and abs(x).

    At zero the derivative of abs(x) counts as zero, and the derivative of x as one.
    """
    at, size = stop_gradient(x), abs(x)
    return _odd_integral(at, size, x - sign(at) * size)


@in_series(bessel_i0e_p)
@formula
def _i0e_in_series(x: Any) -> Any:
    _, end = _cut(stop_gradient(x), SERIES_BELOW / 2)

    def integrand(theta: Any, size: Any) -> Any:
        return exp(size * (square(sin(theta * 0.5)) * -2))

    return integral(integrand, end, abs(x)) * (1 / math.pi)


# Higher orders: derivatives ------------------------------------------------------------------------------------------


def _slope(x: Any, order: int, value: Any) -> Any:
    """Return the derivative of the scaled Bessel function I(x) exp(-abs(x)) of an ``order``, at least 1.

    The formula is DLMF 10.29.1. ``value`` is the scaled function itself at ``x``.
    """
    return sub(_mean(_of_order(x, order - 1), _of_order(x, order + 1)), mul(ops.sign(x), value))


def _of_order(x: Any, order: int) -> Any:
    return (
        bessel_i0e_p.bind(x) if order == 0 else bessel_i1e_p.bind(x) if order == 1 else bessel_ie_p.bind(x, order=order)
    )


bessel_ie_p = Primitive("bessel_ie", elementwise=True, cost=Cost.SPECIAL)
bessel_ie_p.batch_rule = batch_unary(bessel_ie_p)
_ive = host.special("ive")


@bessel_ie_p.host
def _ie_host(x: Any, *, order: int) -> Any:
    # SciPy's approximation is less accurate for negative numbers.
    out = _ive(np.asarray(order, x.dtype), np.abs(x))
    return out * np.sign(x) if order % 2 else out


@bessel_ie_p.abstract_eval
def _ie_abstract_eval(x: ShapedArray, *, order: int) -> ShapedArray:
    check_dtype("bessel_ie", FLOAT, x.dtype)
    return ShapedArray(x.shape, x.dtype)


@bessel_ie_p.jvp
def _ie_jvp(primals: Any, tangents: Any, *, order: int) -> Any:
    (x,), (t,) = primals, tangents
    value = bessel_ie_p.bind(x, order=order)
    return value, mul(t, _slope(x, order, value))


@bessel_ie_p.lowering
def _ie_lowering(hlo: Any, x: Any, *, order: int) -> Any:
    return in_blocks(lambda x: _poisson(x, order))(hlo, x)


@formula
def _poisson(x: Any, n: int) -> Any:
    """Evaluate the scaled Bessel function I(x) exp(-abs(x)) of order n, by an integral of positive terms.

    Poisson's integral is of exp(abs(x) (cos θ - 1)) sin(θ)**2n over θ (DLMF 10.32.2). It is cut off at the angle where
    the exponential is below the rounding error of the result.
    """
    size, end = _cut(x, 19.0 + 4 * n)

    def integrand(theta: Any, size: Any) -> Any:
        fall = square(sin(theta * 0.5)) * (size * -2)
        return exp(fall) * integer_pow(sin(theta) * sqrt(size), 2 * n)

    total = integral(integrand, end, size)
    out = total * (0.5**n / (math.sqrt(math.pi) * math.gamma(n + 0.5)))
    out = where(abs(x) == math.inf, 0, where(x != x, x, out))
    return out * sign(x) if n % 2 else out
