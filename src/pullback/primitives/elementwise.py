# long: the vocabulary of rules, of which each rule uses several
"""Elementwise operations, whose operands broadcast against each other, as in NumPy, and share one dtype.

The functions here are the vocabulary of derivative rules: for speed they bind without checks. The checked functions of
the same names are in ``pullback.lax``. An operand may be a Python number if another is an array.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import narrow as host_narrow
from pullback.backends.host import native
from pullback.backends.host import rules as host
from pullback.backends.host import special as host_special
from pullback.core import dtypes
from pullback.core.array import SCALARS, as_array, host_value, is_on_host, shape_of, typeof
from pullback.core.check_rules import Failure, checks
from pullback.core.config import config
from pullback.core.errors import DivisionCheckError
from pullback.core.linear import LinearVar
from pullback.core.runtime import provides, runtime
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive, Rule, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    NUMBER,
    REAL_NUMBER,
    VALUE,
    broadcast_shape,
    check_dtype,
    same_dtype,
)
from pullback.primitives.declare import (
    COMPOSED,
    batch_broadcasting,
    complex_lowering,
    composite,
    elementwise,
    host_fused,
    real_lowering,
    spread,
    xla_elementwise,
)
from pullback.primitives.discrete import (  # noqa: F401
    and_p,
    bitcast_convert_type,
    bitcast_convert_type_p,
    ceil_p,
    clz_p,
    eq,
    eq_p,
    floor_p,
    gcd_p,
    ge_p,
    gt,
    gt_p,
    is_finite_p,
    le_p,
    lt,
    lt_p,
    ne_p,
    nextafter_p,
    not_p,
    or_p,
    population_count_p,
    round_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)  # fmt: skip
from pullback.primitives.large import compiled, compiled_from
from pullback.primitives.power_series import derivative, integral, of_product, of_square, total
from pullback.primitives.rules import batch_unary, jvp_linear, jvp_linear_in, jvp_zero
from pullback.primitives.sums import add_any as add_any
from pullback.primitives.sums import add_any_p as add_any_p
from pullback.primitives.sums import sum_to

_int32 = np.dtype(np.int32)

# Python's operators are as quick as NumPy's functions on arrays, and ten times as quick on NumPy's scalars.

# Linear operations -------------------------------------------------------------------------------------------------


neg_p = elementwise(
    "neg", doc=("Negate each element: ``-x``.", "2.0", "-2.0"),
    of=NUMBER, host=operator.neg, hlo="negate",
    cost=Cost.LIGHT, signs=(-1,), passes_nan=True,
)  # fmt: skip
neg_p.jvp_rule = jvp_linear(neg_p)
neg_p.transpose(lambda ct, x: (neg(ct),))


def _add_lowering(hlo: Any, x: Any, y: Any) -> Any:
    """Emit a sum, or a disjunction for booleans, since the compiler adds constant booleans modulo 2."""
    return hlo.elementwise("stablehlo.or" if x.dtype.kind == "b" else "stablehlo.add", x, y)


add_p = elementwise(
    "add", doc=("The sum ``x + y``; of booleans their disjunction.", "1.0, 2.5", "3.5"),
    of=VALUE, arity=2, host=operator.add, hlo=_add_lowering,
    cost=Cost.LIGHT, signs=(1, 1),
)  # fmt: skip
sub_p = elementwise(
    "sub", doc=("The difference ``x - y``.", "1.0, 2.5", "-1.5"),
    of=NUMBER, arity=2, host=operator.sub, hlo="subtract",
    cost=Cost.LIGHT, signs=(1, -1),
)  # fmt: skip
mul_p = elementwise(
    "mul", doc=("The product ``x * y``; of booleans their conjunction.", "2.0, 2.5", "5.0"),
    of=VALUE, arity=2, host=host.mul, hlo="multiply",
    cost=Cost.LIGHT, multiplicative=True,
)  # fmt: skip
div_p = elementwise(
    "div", doc=("The quotient ``x / y``; of integers it is rounded towards zero.", "1.0, 2.0", "0.5"),
    of=NUMBER, arity=2, host=host.div, multiplicative=True,
)  # fmt: skip


@div_p.lowering
def _div_lowering(hlo: Any, x: Any, y: Any) -> Any:
    shape = hlo.result.shape
    if dtypes.is_complex(x.dtype):
        return complex_lowering.needed(div_p, "compilation")(hlo, hlo.broadcast(x, shape), hlo.broadcast(y, shape))
    return hlo.divide(x, y, shape)


@checks(div_p)
def _div_checks(ans: Any, x: Any, y: Any) -> list[Failure]:
    return [Failure(DivisionCheckError, eq_p.bind(as_array(y), 0), "division by zero")]


def difference(x: Any, y: Any) -> Any:
    """Return ``x - y``, for Taylor coefficients or tangents; each may be ``ZERO``, the symbolic zero."""
    return x if y is ZERO else neg(y) if x is ZERO else sub(x, y)


@add_p.tangent
def _add_tangent(ans: Any, primals: Any, tangents: Any) -> Any:
    tx, ty = tangents
    if ty is ZERO:
        return spread(tx, primals[0], ans)
    if tx is ZERO:
        return spread(ty, primals[1], ans)
    return add_p.bind(tx, ty)


@add_p.transpose
def _add_transpose(ct: Any, x: Any, y: Any) -> Any:
    return sum_to(ct, x) if type(x) is LinearVar else None, sum_to(ct, y) if type(y) is LinearVar else None


@sub_p.tangent
def _sub_tangent(ans: Any, primals: Any, tangents: Any) -> Any:
    tx, ty = tangents
    if ty is ZERO:
        return spread(tx, primals[0], ans)
    if tx is ZERO:
        return spread(neg(ty), primals[1], ans)
    return sub_p.bind(tx, ty)


@sub_p.transpose
def _sub_transpose(ct: Any, x: Any, y: Any) -> Any:
    # A sum has fewer elements to negate, and what is summed stays a light expression.
    return sum_to(ct, x) if type(x) is LinearVar else None, neg(sum_to(ct, y)) if type(y) is LinearVar else None


@mul_p.tangent
def _mul_tangent(ans: Any, primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    if ty is ZERO:
        return mul_p.bind(tx, y)
    if tx is ZERO:
        return mul_p.bind(x, ty)
    if tx is ty and x is y:
        return mul_p.bind(tx, mul_p.bind(2, x))
    return add_any_p.bind(mul_p.bind(tx, y), mul_p.bind(x, ty))


@taylor(mul_p)
def _mul_taylor(ans: Series, x: Series, y: Series) -> Coefficient:
    return lambda k: of_product(x, y, k)


@partial(mul_p.transpose, linear_in="each")
def _mul_transpose(ct: Any, x: Any, y: Any) -> Any:
    if type(x) is LinearVar:
        return sum_to(mul_p.bind(ct, y), x), None
    return None, sum_to(mul_p.bind(x, ct), y)


@div_p.tangent
def _div_tangent(ans: Any, primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    if ty is ZERO:
        return div_p.bind(tx, y)
    if type(x) in SCALARS and x == 1:  # a product takes a fraction of the time of a second division
        square = mul(ans, ans)
        by_y = mul(ty, neg(square))
    elif shape_of(y) == shape_of(ans):
        slope = div(neg(ans), y)
        by_y = mul(ty, slope)
    else:  # the divisor's tangent has fewer elements to divide and to negate
        change = neg(div_p.bind(ty, y))
        by_y = mul(change, ans)
    return by_y if tx is ZERO else add_any(div(tx, y), by_y)


@taylor(div_p)
def _div_taylor(ans: Series, x: Series, y: Series) -> Coefficient:
    """Return the function that computes the Taylor coefficients of the quotient ``ans``, from ``ans * y = x``."""

    def coefficient(k: int) -> Any:
        rest = difference(x[k], of_product(y, ans, k, first=1))
        return rest if rest is ZERO else div(rest, y[0])

    return coefficient


@partial(div_p.transpose, linear_in=(0,))
def _div_transpose(ct: Any, x: Any, y: Any) -> Any:
    return sum_to(div_p.bind(ct, y), x), None


def over(x: Any, divisor: float) -> Any:
    """Divide an array of floats or complex numbers by a Python number."""
    if dtypes.is_complex(x.dtype):  # componentwise, for -inf / (divisor + 0j) is NaN
        return complex(div(real(x), divisor), div(imag(x), divisor))
    return div(x, divisor)


# Roots, powers, exponentials, logarithms ---------------------------------------------------------------------------


def integer_pow(x: Any, y: int) -> Any:
    """Raise ``x`` to a static integer power."""
    return integer_pow_p.bind(x, y=y)


exp_p = elementwise(
    "exp", doc=("The exponential of each element.", "0.0", "1.0"),
    of=INEXACT, host=host_special.elementary(np.exp), hlo="exponential", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, ans),
)  # fmt: skip
exp2_p = elementwise(
    "exp2", doc=("Two to the power of ``x``.", "3.0", "8.0"),
    of=INEXACT, host=host.exp2, hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, mul(ans, math.log(2))),
)  # fmt: skip
expm1_p = elementwise(
    "expm1", doc=("Compute ``exp(x) - 1``, accurately near zero.", "1e-10", "1e-10"),
    of=INEXACT, host=host_special.elementary(np.expm1, host.expm1), hlo="exponential_minus_one", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, exp(x)),  # ans + 1 has no correct digit where ans is nearly -1
)  # fmt: skip
log_p = elementwise(
    "log", doc=("The natural logarithm of each element.", "1.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.log), hlo="log", hlo_complex=COMPOSED, jvp=lambda t, x, ans: div(t, x),
)  # fmt: skip
log1p_p = elementwise(
    "log1p", doc=("Compute ``log(1 + x)``, accurately near zero.", "1e-10", "1e-10"),
    of=INEXACT, host=host_special.elementary(np.log1p, host.log1p), hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: div(t, add(x, 1)),
)  # fmt: skip
sqrt_p = elementwise(
    "sqrt", doc=("The square root of each element.", "9.0", "3.0"),
    of=INEXACT, host=np.sqrt, hlo="sqrt", hlo_complex=COMPOSED, jvp=lambda t, x, ans: mul(t, div(0.5, ans)),
)  # fmt: skip


def _rsqrt_jvp(t: Any, x: Any, ans: Any) -> Any:
    slope = mul(-0.5, div(ans, x))
    return mul(t, slope)


rsqrt_p = elementwise(
    "rsqrt", doc=("Divide one by the square root of each element.", "4.0", "0.5"),
    of=INEXACT, host=host.rsqrt, hlo="rsqrt", jvp=_rsqrt_jvp,
)  # fmt: skip
cbrt_p = elementwise(
    "cbrt", doc=("The real cube root of each element.", "-8.0", "-2.0"),
    of=FLOAT, host=host_special.elementary(np.cbrt), hlo=COMPOSED, jvp=lambda t, x, ans: div(t, mul(3, square(ans))),
)  # fmt: skip


def _at_least_single(x: Any) -> Any:
    """Convert floats of less than single precision to single precision; return others unchanged."""
    return convert_element_type(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x


def _logistic_jvp(t: Any, x: Any, ans: Any) -> Any:
    slope = mul(ans, logistic(neg(x))) if dtypes.is_complex(x.dtype) else logistic_slope_p.bind(x)
    return mul(t, slope)


def logistic_formula(x: Any) -> Any:
    """Return the logistic function of real ``x``, by the exponential and the sum of which its slope is made too."""
    dtype, x = x.dtype, _at_least_single(x)
    odds = exp(neg(abs(x)))
    is_negative = lt(bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}")), 0)  # the sign bit needs no comparison
    return convert_element_type(div(where(is_negative, odds, 1), add(odds, 1)), dtype)


def logistic_slope_formula(x: Any) -> Any:
    """Return ``ans (1 - ans)`` for the logistic function ``ans``, without cancellation and overflow."""
    odds = exp(neg(abs(_at_least_single(x))))
    total = add(odds, 1)
    return convert_element_type(div(odds, mul(total, total)), x.dtype)


def _logistic_slope_jvp(t: Any, x: Any, ans: Any) -> Any:
    slope = neg(tanh(mul(x, 0.5)))
    return mul(t, mul(ans, slope))


logistic_p = elementwise(
    "logistic", doc=("The logistic function ``1 / (1 + exp(-x))``.", "0.0", "0.5"),
    of=INEXACT, host=host_special.logistic, hlo=lambda hlo, x: hlo.inline(logistic_formula, x), hlo_complex=COMPOSED,
    jvp=_logistic_jvp,
)  # fmt: skip
logistic_slope_p = elementwise(
    "logistic_slope", of=FLOAT, host=host_special.logistic_slope, jvp=_logistic_slope_jvp,
    hlo=lambda hlo, x: hlo.inline(logistic_slope_formula, x),
)  # fmt: skip
square_p = elementwise(
    "square", doc=("Multiply each element by itself: ``x * x``.", "3.0", "9.0"),
    of=NUMBER, host=host.square, hlo_complex=COMPOSED,
    hlo=lambda hlo, x: hlo.elementwise("stablehlo.multiply", x, x),
    jvp=lambda t, x, ans: mul(t, mul(2, x)),
)  # fmt: skip
one_minus_square_p = elementwise(
    "one_minus_square", doc=("``1 - x * x``, accurate near 1 and -1.", "3.0", "-8.0"),
    of=NUMBER, host=lambda x: np.multiply(x + x.dtype.type(1), x.dtype.type(1) - x),
    hlo=lambda hlo, x: hlo.inline(lambda x: mul(add(x, 1), sub(1, x)), x),
    jvp=lambda t, x, ans: mul(t, mul(-2, x)),  # that of the product would cancel near zero
)  # fmt: skip


def _materialized_value(series: Series) -> Series:
    """Return ``series``, after making a compiled program compute the value of the series only once.

    Otherwise the compiler computes the value again in the kernel of each coefficient: for the sine of 20,000 elements
    to order 10 that takes 1.8 instead of 0.4 ms.
    """
    if not state.trace.eager:
        series.known[0] = materialized(series.known[0])
    return series


taylor(exp_p)(lambda ans, x: integral(_materialized_value(ans), derivative(x)))


@taylor(square_p)
def _square_taylor(ans: Series, x: Series) -> Coefficient:
    return lambda k: of_square(x, k)


@taylor(expm1_p)
def _expm1_taylor(ans: Series, x: Series) -> Coefficient:
    slope = Series([exp(x[0])], lambda k: ans[k])  # ans + 1 has no correct digit where ans is nearly -1
    return integral(slope, derivative(x))


@taylor(sqrt_p)
def _sqrt_taylor(ans: Series, x: Series) -> Coefficient:
    """Return the function that computes the Taylor coefficients of the square root ``ans``, from ``ans * ans = x``."""
    half = div(0.5, ans[0])

    def coefficient(k: int) -> Any:
        rest = difference(x[k], of_square(ans, k, first=1))
        return rest if rest is ZERO else mul(rest, half)

    return coefficient


@taylor(logistic_p)
def _logistic_taylor(ans: Series, x: Series) -> Coefficient:
    rest = Series([logistic(neg(x[0]))], lambda k: difference(ZERO, ans[k]))  # 1 - ans
    slope = Series([mul(ans[0], rest[0])], lambda k: of_product(ans, rest, k))
    return integral(slope, derivative(x))


@taylor(logistic_slope_p)
def _logistic_slope_taylor(ans: Series, x: Series) -> Coefficient:
    """Return the function that computes the coefficients of ``value * rest``, where ``rest`` is ``1 - value``."""
    value = Series([logistic(x[0])])
    rest = Series([logistic(neg(x[0]))])
    along = integral(ans, derivative(x))

    def coefficient(k: int) -> Any:
        value.known.append(along(k))
        rest.known.append(difference(ZERO, value[k]))
        return of_product(value, rest, k)

    return coefficient


integer_pow_p = Primitive("integer_pow", elementwise=True, cost=Cost.SIMPLE)
integer_pow_p.batch_rule = batch_unary(integer_pow_p)
integer_pow_p.host_rule = host.integer_pow


@integer_pow_p.lowering
def _integer_pow_lowering(hlo: Any, x: Any, *, y: int) -> Any:
    """Emit ``x**y`` by repeated squaring."""
    if y < 0:
        return hlo.inline(lambda x: div(1, integer_pow(x, -y)), x)
    result, power = None, x
    while y:
        if y & 1:
            result = power if result is None else hlo.elementwise("stablehlo.multiply", result, power)
        y >>= 1
        if y:
            power = hlo.elementwise("stablehlo.multiply", power, power)
    return hlo.splat(1, x.shape, x.dtype) if result is None else result


@integer_pow_p.abstract_eval
def _integer_pow_abstract_eval(x: ShapedArray, *, y: int) -> ShapedArray:
    check_dtype("integer_pow", NUMBER, x.dtype)
    return ShapedArray(x.shape, x.dtype)


@integer_pow_p.jvp
def _integer_pow_jvp(primals: Any, tangents: Any, *, y: int) -> Any:
    (x,), (t,) = primals, tangents
    ans = integer_pow(x, y)
    if y == 0:
        return ans, ZERO
    return ans, mul(t, mul(2, x) if y == 2 else mul(y, integer_pow(x, y - 1))) if y != 1 else t


@taylor(integer_pow_p)
def _integer_pow_taylor(ans: Series, x: Series, *, y: int) -> Coefficient:
    """Return the function that computes the Taylor coefficients of ``x**y``, for an integer ``y``, by products.

    The recurrence for other powers would divide by zero where ``x`` is zero.
    """
    if y >= 0:
        power = _integer_power(x, y)
        return lambda k: power[k]
    return _div_taylor(ans, Series([1]), _integer_power(x, -y))


def _integer_power(x: Series, exponent: int) -> Series:
    """Return the Taylor series of ``x**exponent``, by repeated squaring."""
    result, power = None, x
    while exponent:
        if exponent & 1:
            result = power if result is None else _product(result, power)
        exponent >>= 1
        if exponent:
            power = _product(power, power)
    return Series([1]) if result is None else result


def _product(x: Series, y: Series) -> Series:
    coefficient = _mul_taylor(Series([]), x, y)
    return Series([mul(x[0], y[0])], coefficient)


def _pow_by_x(t: Any, x: Any, y: Any, ans: Any) -> Any:
    if type(y) not in SCALARS:
        return mul(t, pow_derivative_p.bind(x, y, by_x=1, by_y=0))
    if y == 0:
        return ZERO
    slope = mul(y, pow(x, y - 1))
    return mul(t, slope)


def _pow_by_y(t: Any, x: Any, y: Any, ans: Any) -> Any:
    if type(x) in SCALARS:
        if type(x) is not builtins.complex and x > 0:
            return mul(t, mul(math.log(x), ans))
        x = shapes.full((), x, ans.dtype)
    return mul(t, pow_derivative_p.bind(x, y, by_x=0, by_y=1))


pow_p = elementwise(
    "pow", of=NUMBER, arity=2, host=host.power, hlo=COMPOSED, hlo_complex=COMPOSED, jvp=(_pow_by_x, _pow_by_y),
)  # fmt: skip


@taylor(pow_p)
def _pow_taylor(ans: Series, x: Series, y: Series) -> Coefficient:
    if y.next is not None or len(y.known) > 1:
        return _moving_power_taylor(ans, x, y)
    exponent = y[0]
    if is_on_host(exponent) and exponent.shape == ():
        exponent = host_value(exponent).item()
    if type(exponent) not in SCALARS:
        return _power_by_array_taylor(ans, x, exponent)
    if type(exponent) is builtins.complex or not math.isfinite(exponent):
        return _power_by_array_taylor(ans, x, shapes.full((), exponent, ans[0].dtype))
    if exponent >= 0 and exponent == int(exponent):
        return _integer_pow_taylor(ans, x, y=int(exponent))
    return _fixed_power_taylor(ans, x, exponent)


def _moving_power_taylor(ans: Series, x: Series, y: Series) -> Coefficient:
    """Return the function that computes the Taylor coefficients of ``x**y = exp(y log x)``, for a ``y`` that varies.

    Where ``x`` is zero, the coefficients of orders below ``y`` are zero, and the others are not finite.
    """
    base = x[0] if type(x[0]) not in SCALARS else shapes.full((), x[0], ans[0].dtype)
    inverse = Series([div(1, base)])  # without `next`, which would make a reference cycle
    next_inverse = _div_taylor(inverse, Series([1]), x)
    logarithm = Series([log(base)], integral(inverse, derivative(x)))
    usual = integral(ans, derivative(_product(y, logarithm)))
    below = real(y[0]) if dtypes.is_complex(base.dtype) and type(y[0]) not in SCALARS else y[0]
    at_zero = eq(base, 0)

    def coefficient(k: int) -> Any:
        if k == 1:
            slopes = (_pow_by_x, x[1]), (_pow_by_y, y[1])
            return total(rule(t, x[0], y[0], ans[0]) for rule, t in slopes if t is not ZERO)
        inverse.known.append(next_inverse(k - 1))
        c = usual(k)
        return c if c is ZERO else where(and_p.bind(at_zero, gt(below, k)), 0, c)

    return coefficient


def _fixed_power_taylor(ans: Series, x: Series, exponent: float) -> Coefficient:
    """Return the function that computes the Taylor coefficients of ``y = x**exponent``, for a number ``exponent``.

    They follow from ``x y' = exponent y x'``, by a series of the slope ``y' / x'``.
    """

    slope = Series([mul(exponent, pow(x[0], exponent - 1))])
    at_zero, usual = eq(x[0], 0), integral(slope, derivative(x))

    def coefficient(k: int) -> Any:
        _extend_slope(slope, ans, x, exponent, x[0], k)
        c = usual(k)
        if k == 1 or c is ZERO or x[1] is ZERO:
            return c
        # Where x is zero, only the power of x[1] contributes, and nothing at orders below the exponent.
        if k + 1 <= exponent:
            return where(at_zero, 0, c)
        size = math.prod((exponent - i) / (i + 1) for i in range(k))
        factor = mul(size, pow(x[0], exponent - k)) if k < exponent else math.copysign(math.inf, size)
        return where(at_zero, mul(factor, integer_pow(x[1], k)), c)

    return coefficient


def _extend_slope(slope: Series, powers: Series, x: Series, exponent: Any, divisor: Any, count: int) -> None:
    """Append Taylor coefficients to ``slope``, the series s = y' / x' for y = x**exponent, until it has ``count``.

    The coefficients follow from x s = exponent y.

    Args:
      slope: the series of s, which is changed in place.
      powers: the series of y.
      x: the series of x.
      exponent: the exponent.
      divisor: the value of x, or another number where that is zero.
      count: the number of coefficients that ``slope`` has in the end.
    """
    for k in range(len(slope.known), count):
        rest = ZERO if powers[k] is ZERO else mul(exponent, powers[k])
        rest = difference(rest, of_product(x, slope, k, first=1))
        slope.known.append(rest if rest is ZERO else div(rest, divisor))


_BITS = 6
"""The bits of the largest integer exponent that is computed by products; for larger exponents, all derivatives at zero
up to order 63 are zero."""


def _power_by_array_taylor(ans: Series, x: Series, exponent: Any) -> Coefficient:
    """Return the function that computes the Taylor coefficients of a power whose exponents are a constant array.

    Each exponent is a sum n + r: n is the exponent if that is a small nonnegative integer, and 0 otherwise. The
    function multiplies the series of x**n, computed by products, with the series y of x**r, computed from x y' = r y
    x'. The second series is computed even where r is zero, so that the result has a derivative with respect to the
    exponent.
    """
    number, is_small, bits = _small_integers(exponent)
    products, rest = _power_by_bits(x, number, bits, ans[0].dtype), sub(exponent, number)
    if is_on_host(rest) and not host_value(rest).any():
        return lambda k: products[k]
    base = shapes.full((), x[0], ans[0].dtype) if type(x[0]) in SCALARS else x[0]
    at_zero = None if is_on_host(base) and host_value(base).all() else eq(base, 0)
    divisor = base if at_zero is None else where(at_zero, 1, base)
    powers = Series([pow(divisor, rest)])
    power_below = pow(divisor, sub(rest, 1))
    slope = Series([mul(rest, power_below)])
    usual = integral(slope, derivative(x))
    there = None if at_zero is None else _power_at_zero(base, x, exponent, and_p.bind(at_zero, not_p.bind(is_small)))

    def coefficient(k: int) -> Any:
        _extend_slope(slope, powers, x, rest, divisor, k)
        powers.known.append(usual(k))
        c = of_product(products, powers, k) if bits else powers[k]
        return c if c is ZERO or there is None else there(k, c)

    return coefficient


def _small_integers(exponent: Any) -> tuple[Any, Any, int]:
    """Find the exponents that are small nonnegative integers.

    Returns:
      The exponents, with 0 for those that are not small integers; the mask of the small integers; and the number of
      bits of the largest small integer.
    """
    exponent_re = real_part(exponent)
    is_small = and_p.bind(ge_p.bind(exponent_re, 0), lt(exponent_re, 1 << _BITS))
    is_small = and_p.bind(is_small, eq(exponent, convert_element_type(floor_p.bind(exponent_re), exponent.dtype)))
    number = where(is_small, convert_element_type(floor_p.bind(exponent_re), exponent.dtype), 0)
    return number, is_small, int(host_value(number).real.max(initial=0)).bit_length() if is_on_host(number) else _BITS


def _power_by_bits(x: Series, number: Any, bits: int, dtype: Any) -> Series:
    """The Taylor series of ``x**number`` in ``dtype``, by squaring; ``number`` holds integers below 2**bits."""
    number = real_part(number)
    result, power = Series([shapes.full((), 1, dtype)]), x
    for i in range(bits):
        power = _product(power, power) if i else power
        half = mul(number, 0.5 ** (i + 1))
        odd = ge_p.bind(sub(half, floor_p.bind(half)), 0.5)
        result = _select_series(odd, _product(result, power) if i else power, result)
    return result


def _power_at_zero(base: Any, x: Series, exponent: Any, where_zero: Any) -> Callable[[int, Any], Any]:
    """Make a function that corrects a Taylor coefficient of ``x**exponent`` where ``x`` is zero.

    The function takes an order k and the coefficient of order k. It replaces elements by 0 if k is below the exponent,
    and by a value that is not finite if k is above.

    Args:
      base: the value of the series ``x``.
      x: the series of the base of the power.
      exponent: the exponents.
      where_zero: the mask of the elements to correct.
    """
    base, sizes = where(where_zero, base, 1), [exponent]  # of the powers in the binomial series
    exponent_re = real_part(exponent)

    def replaced(k: int, c: Any) -> Any:
        if k > 1:
            ratio = div(sub(exponent, k - 1), k)
            sizes.append(mul(sizes[-1], ratio))
        power = pow(base, sub(exponent, k))
        # Only the power of x[1] contributes.
        along = mul(mul(sizes[-1], power), 0 if x[1] is ZERO else integer_pow(x[1], k))
        return where(where_zero, where(lt(k, exponent_re), 0, along), c)

    return replaced


def _select_series(which: Any, x: Series, y: Series) -> Series:
    def coefficient(k: int) -> Any:
        if x[k] is ZERO:
            return ZERO if y[k] is ZERO else where(which, 0, y[k])
        return where(which, x[k], 0 if y[k] is ZERO else y[k])

    return Series([where(which, x[0], y[0])], coefficient)


def _pow_derivative(x: Any, y: Any, *, by_x: int, by_y: int) -> Any:
    """Return the derivative of ``x**y`` of order ``by_x`` in x and ``by_y`` in y.

    It is x**(y - by_x) times a polynomial in log x. The coefficient of log(x)**j is binomial(by_y, j) times the
    derivative of order by_y - j of y (y - 1) ... (y - by_x + 1). Zero times infinity counts as zero. At x = y = 0 a
    derivative with respect to y alone is 0, since x**y is constant for y > 0.
    """
    dtype = x.dtype
    narrow = dtypes.is_float(dtype) and dtype.itemsize < 4
    if narrow:
        x, y = (convert_element_type(v, np.dtype(np.float32)) for v in (x, y))
    factor: Any = y if by_x else 1  # exactly zero where y is 0, 1, ..., by_x - 1
    for k in range(1, by_x):
        factor = mul(factor, sub(y, k))
    if by_y:
        zero = eq(x, 0)
        removed = zero if dtypes.is_complex(dtype) else and_p.bind(zero, eq(y, 0)) if by_x == 0 else None
        logarithm = log(x) if removed is None else where(removed, 0, log(where(removed, 1, x)))
        slopes = _falling_coefficients(by_x)
        for j in range(1, by_y + 1):
            slopes = [c * (len(slopes) - 1 - i) for i, c in enumerate(slopes[:-1])]
            factor = logarithm if type(factor) is int else _product_with_zeros(factor, logarithm)
            if slopes:
                factor = add(factor, polynomial(y, [math.comb(by_y, j) * c for c in slopes]))
    out = _product_with_zeros(factor, pow(x, sub(y, by_x) if by_x else y))
    return convert_element_type(out, dtype, out.weak_type) if narrow else out


def _falling_coefficients(count: int) -> list[int]:
    """The coefficients of the polynomial y (y - 1) ... (y - count + 1), from the highest power down."""
    out = [1]
    for k in range(count):
        out = [a - k * b for a, b in zip([*out, 0], [0, *out], strict=True)]
    return out


def _product_with_zeros(x: Any, y: Any) -> Any:
    """``x * y``, and zero where a factor is zero, even if the other factor is infinite."""
    return where(or_p.bind(eq(x, 0), eq(y, 0)), 0, mul(x, y))


pow_derivative_p: Primitive = composite(
    "pow_derivative", of=INEXACT, formula=_pow_derivative,
    jvp=(
        lambda t, x, y, by_x, by_y: mul(t, pow_derivative_p.bind(x, y, by_x=by_x + 1, by_y=by_y)),
        lambda t, x, y, by_x, by_y: mul(t, pow_derivative_p.bind(x, y, by_x=by_x, by_y=by_y + 1)),
    ),
)  # fmt: skip


def _hypot_jvp(t: Any, x: Any, ans: Any) -> Any:
    zero = eq(ans, 0)
    return mul(t, where(zero, 0, div(x, where(zero, 1, ans))))


hypot_p = elementwise(
    "hypot", of=FLOAT, arity=2, host=host.hypot, hlo=COMPOSED,
    jvp=(lambda t, x, y, ans: _hypot_jvp(t, x, ans), lambda t, x, y, ans: _hypot_jvp(t, y, ans)),
)  # fmt: skip


def _logaddexp_jvp(t: Any, x: Any, y: Any) -> Any:
    """Return ``t exp(x) / (exp(x) + exp(y))`` without overflow: the term of ``x`` in the tangent of ``logaddexp``.

    For equal operands, even infinite ones, the result is t / 2. The error of the result comes from the rounding of ``x
    - y``: up to half a unit in the last digit of that difference.
    """
    d = sub(x, y)
    return mul(t, logistic(where(and_p.bind(eq(x, y), ne_p.bind(d, d)), 0, d)))


logaddexp_p = elementwise(
    "logaddexp", of=FLOAT, arity=2, host=host.logaddexp, hlo=COMPOSED,
    jvp=(lambda t, x, y, ans: _logaddexp_jvp(t, x, y), lambda t, x, y, ans: _logaddexp_jvp(t, y, x)),
)  # fmt: skip


# Trigonometric and hyperbolic functions ----------------------------------------------------------------------------


sin_p = elementwise(
    "sin", doc=("The sine of an angle in radians.", "0.0", "0.0"),
    of=INEXACT, host=np.sin, hlo="sine", hlo_complex=COMPOSED, jvp=lambda t, x, ans: mul(t, cos(x)),
)  # fmt: skip
cos_p = elementwise(
    "cos", doc=("The cosine of an angle in radians.", "0.0", "1.0"),
    of=INEXACT, host=np.cos, hlo="cosine", hlo_complex=COMPOSED, jvp=lambda t, x, ans: mul(t, neg(sin(x))),
)  # fmt: skip


def _with_companion(slope: Any, sign: int) -> Rule:
    """Make the Taylor rule of a function f, such as the sine, whose derivative g has the derivative f or -f.

    Args:
      slope: the function g.
      sign: 1 if the derivative of g is f, -1 if it is -f.
    """

    def rule(ans: Series, x: Series) -> Coefficient:
        speed, other = derivative(x), _materialized_value(Series([slope(x[0])]))
        other.next = integral(_materialized_value(ans), speed, sign)
        return integral(other, speed)

    return rule


taylor(sin_p)(_with_companion(lambda x: cos(x), -1))
taylor(cos_p)(_with_companion(lambda x: neg(sin(x)), -1))
tan_p = elementwise(
    "tan", doc=("The tangent of an angle in radians.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.tan), hlo="tan", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, _tan_slope(x, ans)),
)  # fmt: skip
asin_p = elementwise(
    "asin", doc=("The angle in radians whose sine is ``x``.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arcsin), hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: _over_root(t, x),
)  # fmt: skip
acos_p = elementwise(
    "acos", doc=("The angle in radians whose cosine is ``x``.", "1.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arccos), hlo="chlo.acos", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: neg(_over_root(t, x)),
)  # fmt: skip
atan_p = elementwise(
    "atan", doc=("The angle in radians whose tangent is ``x``.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arctan), hlo="chlo.atan", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: _over_factors(t, _turned(x)) if dtypes.is_complex(x.dtype) else div(t, add(square(x), 1)),
)  # fmt: skip
sinh_p = elementwise(
    "sinh", doc=("The hyperbolic sine of each element.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.sinh), hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, cosh(x)),
)  # fmt: skip
cosh_p = elementwise(
    "cosh", doc=("The hyperbolic cosine of each element.", "0.0", "1.0"),
    of=INEXACT, host=host_special.elementary(np.cosh), hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, sinh(x)),
)  # fmt: skip
tanh_p = elementwise(
    "tanh", doc=("The hyperbolic tangent of each element.", "0.0", "0.0"),
    of=INEXACT, host=host.tanh, hlo="tanh", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: mul(t, _tanh_slope(x, ans)),
)  # fmt: skip


taylor(sinh_p)(_with_companion(lambda x: cosh(x), 1))
taylor(cosh_p)(_with_companion(lambda x: sinh(x), 1))


@taylor(tanh_p)
def _tanh_taylor(ans: Series, x: Series) -> Coefficient:
    slope = Series([_tanh_slope(x[0], ans[0])], lambda k: of_square(ans, k, sign=-1))
    return integral(slope, derivative(x))


asinh_p = elementwise(
    "asinh", doc=("The inverse of the hyperbolic sine at each element.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arcsinh), hlo="chlo.asinh", hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: _over_root(t, _turned(x)) if dtypes.is_complex(x.dtype) else div(t, hypot_p.bind(x, 1)),
)  # fmt: skip


def _acosh_jvp(t: Any, x: Any, ans: Any) -> Any:
    """Return ``t / sqrt(x**2 - 1)``, computed as ``t / sqrt(x - 1) / sqrt(x + 1)``, which is right on branch cuts."""
    quotient = div(t, sqrt(sub(x, 1)))
    return div(quotient, sqrt(sub(x, -1)))


acosh_p = elementwise(
    "acosh", doc=("The inverse of the hyperbolic cosine at each element.", "1.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arccosh), hlo="chlo.acosh", hlo_complex=COMPOSED, jvp=_acosh_jvp,
)  # fmt: skip
compiled_from(acosh_p, 500_000)  # 1,000,000: 2833 / 1000
atanh_p = elementwise(
    "atanh", doc=("The inverse of the hyperbolic tangent at each element.", "0.0", "0.0"),
    of=INEXACT, host=host_special.elementary(np.arctanh), hlo=COMPOSED, hlo_complex=COMPOSED,
    jvp=lambda t, x, ans: _over_factors(t, x),
)  # fmt: skip
atan2_p = elementwise(
    "atan2", doc=("The angle of the point with ordinate ``x`` and abscissa ``y``, from -pi to pi.", "0.0, 1.0", "0.0"),
    of=FLOAT, arity=2, host=host_special.elementary(np.arctan2), hlo="atan2",
    jvp=(
        lambda t, x, y, ans: mul(t, inverse_p.bind(y, x)),
        lambda t, x, y, ans: mul(t, neg(inverse_p.bind(x, y))),
    ),
)  # fmt: skip


def _inverse(x: Any, y: Any) -> Any:
    """``x / (x² + y²)`` without overflow; 0 where an operand is infinite."""
    size = hypot_p.bind(x, y)
    return where(eq(size, math.inf), 0, div(div(x, size), size))


def _inverse_by_x(t: Any, x: Any, y: Any) -> Any:
    return mul(t, sub(square(inverse_p.bind(y, x)), square(inverse_p.bind(x, y))))


def _inverse_by_y(t: Any, x: Any, y: Any) -> Any:
    slope = mul(-2, mul(inverse_p.bind(x, y), inverse_p.bind(y, x)))
    return mul(t, slope)


# The real part of 1 / (x + iy).
inverse_p: Primitive = composite("inverse", of=FLOAT, formula=_inverse, jvp=(_inverse_by_x, _inverse_by_y))
inverse_p.lowering_rule = xla_elementwise(inverse_p, COMPOSED)


# A complex x - (-1) or -(x - 1) keeps the sign of a zero imaginary part, which tells the side of a branch cut; x + 1
# and 1 - x lose it. And products overflow where quotients do not.


def _over_root(t: Any, x: Any) -> Any:
    """``t / sqrt(1 - x**2)``, on the right side of the branch cut for a complex ``x``."""
    if dtypes.is_complex(x.dtype):
        one_minus_x = neg(sub(x, 1))
        quotient = div(t, sqrt(one_minus_x))
        return div(quotient, sqrt(sub(x, -1)))
    one_minus_square = mul(sub(1, x), add(x, 1))
    return div(t, sqrt(one_minus_square))


def _over_factors(t: Any, x: Any) -> Any:
    """``t / (1 - x**2)``, with (1 - x) (1 + x) as the divisor; for complex ``x``, ``t`` is divided by each factor."""
    if dtypes.is_complex(x.dtype):
        quotient = div(t, sub(1, x))
        return div(quotient, add(x, 1))
    one_minus_square = mul(sub(1, x), add(x, 1))
    return div(t, one_minus_square)


def _turned(z: Any) -> Any:
    """Return ``i * z``, by an exchange of the parts of ``z``, which keeps the signs of zeros."""
    return complex(neg(imag(z)), real(z))


def _tan_slope(x: Any, ans: Any) -> Any:
    return _inverse_square(cos, x, 1) if dtypes.is_complex(x.dtype) else add(square(ans), 1)


def _tanh_slope(x: Any, ans: Any) -> Any:
    if not dtypes.is_complex(x.dtype):
        return mul(sub(1, ans), add(1, ans))  # 1 - ans is exact near 1, where 1 - ans**2 is not
    return _inverse_square(cosh, x, 0)


def _inverse_square(function: Any, z: Any, growing: int) -> Any:
    """Return ``1 / function(z)**2`` without overflow, for a complex function that grows exponentially, such as cosh.

    ``growing`` is the part of ``z`` with which the function grows: 0 for the real part, 1 for the imaginary part.
    """
    parts = [real(z), imag(z)]
    limit = 0.99 * math.log(dtypes.finfo(parts[0].dtype).max)
    parts[growing] = clamp_p.bind(-limit, parts[growing], limit)
    return square(div(1, function(complex(*parts))))


# Special functions: Abramowitz and Stegun, chapters 6 and 7 --------------------------------------------------------


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_LARGE = 60.0  # the Gaussian of larger numbers is zero


def high_part(x: Any) -> Any:
    """Return ``x``, a float of 32 or 64 bits, with the lower half of its mantissa set to zero: its square is exact."""
    return without_last_bits(x, 12 if x.dtype.itemsize == 4 else 27)


def without_last_bits(x: Any, count: int) -> Any:
    """Return ``x``, a float of 32 or 64 bits, with the last ``count`` bits of its mantissa set to zero."""
    bits = np.dtype(f"u{x.dtype.itemsize}")
    keep = np.array(~((1 << count) - 1) & dtypes.iinfo(bits).max, bits)
    return bitcast_convert_type(and_p.bind(bitcast_convert_type(x, bits), shapes.full((), keep, bits)), x.dtype)


def gaussian(x: Any, factor: float = 1.0) -> Any:
    """``exp(-factor * x**2)``, for a factor of 1 or 1/2, without the rounding of the square.

    Rounding x² would make an error of x² units in the last place. It is corrected to first order: the rounding error of
    the square is below 1e-5 where the result is not zero.
    """
    return gaussian_p.bind(x, factor=factor)


def gaussian_by_exp(x: Any, *, factor: float) -> Any:
    """Return ``exp(-factor * x**2)`` by the exponential of the rounded square, and the rounding error."""
    dtype, x = x.dtype, _at_least_single(x)
    rounded = square(x)
    value = exp(neg(rounded) if factor == 1 else mul(rounded, -factor))
    excess = mul(square_error(x), factor)
    return convert_element_type(sub(value, mul(value, excess)), dtype)


def square_error(x: Any) -> Any:
    """Return the rounding error of a square, ``x**2`` minus the float that is nearest to it, for ``abs(x)`` below 60.

    For larger ``x`` the result is any finite number. The bound of the square keeps the compiler from computing the
    square and the difference with one rounding: the result would be wrong.
    """
    size = min_p.bind(abs(x), _LARGE)
    high = high_part(size)
    rest = mul(sub(size, high), add(size, high))
    return add(sub(square(high), min_p.bind(square(x), _LARGE * _LARGE)), rest)


def _gaussian_jvp(t: Any, x: Any, *, factor: float) -> Any:
    slope = mul(mul(-2 * factor, x), gaussian(x, factor))
    return mul(t, slope)


gaussian_p: Primitive = composite("gaussian", of=FLOAT, formula=gaussian_by_exp, jvp=(_gaussian_jvp,))
gaussian_p.host_rule = host_special.gaussian
gaussian_p.lowering_rule = lambda hlo, x, *, factor: real_lowering.needed(gaussian_p, "compilation")(hlo, x, factor)
erf_p = elementwise(
    "erf", doc=("The error function at each element.", "0.0", "0.0"),
    of=FLOAT, host=host_special.erf, hlo="chlo.erf",
    jvp=lambda t, x, ans: mul(t, mul(_TWO_OVER_ROOT_PI, gaussian(x))),
)  # fmt: skip
compiled_from(erf_p, 200_000, unless=host_special.has_loop)  # 1,000,000: 3510 / 425
erfc_p = elementwise(
    "erfc", doc=("Compute ``1 - erf(x)`` without cancellation.", "0.0", "1.0"),
    of=FLOAT, host=host_special.erfc, hlo=COMPOSED,
    jvp=lambda t, x, ans: mul(t, mul(-_TWO_OVER_ROOT_PI, gaussian(x))),
)  # fmt: skip
compiled_from(erfc_p, 200_000, unless=host_special.has_loop)  # 1,000,000: 6878 / 963
ndtr_p = elementwise(
    "ndtr", of=FLOAT, host=host_special.ndtr, hlo=COMPOSED,
    jvp=lambda t, x, ans: mul(t, mul(1 / math.sqrt(2 * math.pi), gaussian(x, 0.5))),
)  # fmt: skip
erf_inv_p = elementwise(
    "erf_inv", doc=("The inverse of the error function at each element.", "0.0", "0.0"),
    of=FLOAT, host=host.erf_inv, hlo="chlo.erf_inv",
    jvp=lambda t, x, ans: mul(t, mul(1 / _TWO_OVER_ROOT_PI, exp(square(ans)))),
)  # fmt: skip
compiled_from(erf_inv_p, 50_000)  # 100,000: 1846 / 244
lgamma_p = elementwise(
    "lgamma", doc=("The logarithm of the size of the gamma function.", "1.0", "0.0"),
    of=FLOAT, host=host_special.lgamma, hlo=COMPOSED, jvp=lambda t, x, ans: mul(t, digamma(x)),
)  # fmt: skip
compiled_from(lgamma_p, 200_000, unless=host_special.has_loop)  # 1,000,000: 12048 / 4780
digamma_p = elementwise(
    "digamma", doc=("The derivative of the logarithm of the gamma function.", "1.0", "-0.5772157"),
    of=FLOAT, host=host_special.digamma, hlo=COMPOSED,
    jvp=lambda t, x, ans: mul(t, trigamma_p.bind(x)),
)  # fmt: skip
trigamma_p: Primitive = elementwise(
    "trigamma", of=FLOAT, host=host_special.trigamma, hlo=COMPOSED,
    jvp=lambda t, x, ans: mul(t, polygamma(_full_like(x, 2), x)), cost=Cost.SPECIAL,
)  # fmt: skip
polygamma_p = elementwise(
    "polygamma", doc=("The derivative of digamma of order ``x``, at ``y``.", "1.0, 1.0", "1.644934"),
    of=FLOAT, arity=2, host=host.special("polygamma"), hlo=COMPOSED,
    jvp=(None, lambda t, n, x, ans: mul(t, polygamma(add(n, 1), x))),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _full_like(x: Any, value: float) -> Any:
    return shapes.full((), value, x.dtype)


# Rounding, signs, parts of complex numbers -------------------------------------------------------------------------


def conj(x: Any) -> Any:
    """The complex conjugate of ``x``; a real ``x`` is returned unchanged."""
    return conj_p.bind(x) if dtypes.is_complex(x.dtype) else x


def real_part(x: Any) -> Any:
    """The real part of ``x``; a real ``x`` is returned unchanged."""
    return real_p.bind(x) if dtypes.is_complex(x.dtype) else x


sign_p = elementwise(
    "sign", doc=("-1, 0 or 1; of a complex number ``x / abs(x)``.", "-2.0", "-1.0"),
    of=NUMBER, host=host.sign, hlo=COMPOSED, hlo_complex=COMPOSED, jvp=lambda t, x, ans: _sign_jvp(t, x, ans),
    cost=Cost.LIGHT,
)  # fmt: skip
real_p = elementwise(
    "real", doc=("The real part of each complex number.", "1 + 2j", "1.0"),
    of=COMPLEX, host=np.real, hlo="real", out=dtypes.to_real,
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip
imag_p = elementwise(
    "imag", doc=("The imaginary part of each complex number.", "1 + 2j", "2.0"),
    of=COMPLEX, host=np.imag, hlo="imag", out=dtypes.to_real,
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip
conj_p = elementwise("conj", passes_nan=True, of=COMPLEX, host=np.conj, hlo=COMPOSED, hlo_complex=COMPOSED)
complex_p = elementwise(
    "complex",
    doc=("The complex number with real part ``x`` and imaginary part ``y``.", "1.0, 2.0", "(1+2j)"),
    of=FLOAT, arity=2, host=host.complex_, hlo=COMPOSED, out=dtypes.to_complex,
    passes_nan=True,
)  # fmt: skip
for _p in (real_p, imag_p, complex_p):
    _p.keeps_weak_type = True
real_p.jvp_rule = jvp_linear(real_p)
imag_p.jvp_rule = jvp_linear(imag_p)
conj_p.jvp_rule = jvp_linear(conj_p)
complex_p.jvp_rule = jvp_linear_in(complex_p)

# Transposes are of linear maps of R², with cotangents as their JVP's dual under <a, b> = Re(a b), so that a
# real-linear map z -> Re z takes a cotangent u to u + 0i, and z -> Im z takes it to 0 - ui.
real_p.transpose(lambda ct, x: (complex(ct, shapes.zeros_like(ct)),))
imag_p.transpose(lambda ct, x: (complex(shapes.zeros_like(ct), neg(ct)),))
conj_p.transpose(lambda ct, x: (conj(ct),))


@complex_p.transpose
def _complex_transpose(ct: Any, x: Any, y: Any) -> Any:
    by_x = _narrowed(sum_to(real(ct), x), x) if type(x) is LinearVar else None
    by_y = _narrowed(sum_to(neg(imag(ct)), y), y) if type(y) is LinearVar else None
    return by_x, by_y


def _narrowed(ct: Any, x: LinearVar) -> Any:
    """Convert the cotangent ``ct`` to the dtype of the operand ``x``, which is the real or imaginary part of a result.

    The dtypes differ if ``x`` has 16 bits, since the parts of a complex number have at least 32 bits.
    """
    return ct if ct.dtype == x.dtype else convert_element_type(ct, x.dtype)


def _sign_jvp(t: Any, x: Any, ans: Any) -> Any:
    """The tangent of the sign: zero for a real ``x``.

    For a complex ``x`` it is the component of ``t`` perpendicular to ``x``, divided by ``abs(x)``.
    """
    if not dtypes.is_complex(x.dtype):
        return ZERO
    along = real(mul(t, conj(ans)))
    size = abs(x)
    across = sub(t, mul(complex(along, shapes.zeros_like(size)), ans))
    return div(across, where(eq(x, 0), _full_like(x, 1), complex(size, shapes.zeros_like(size))))


def _abs_jvp(t: Any, x: Any, ans: Any) -> Any:
    if not dtypes.is_complex(x.dtype):
        return mul(t, sign(x))
    return real(mul(t, conj(sign(x))))


abs_p = elementwise(
    "abs", doc=("The absolute value, of a complex number its modulus. At zero its derivative is zero.", "-2.0", "2.0"),
    of=NUMBER, host=np.abs, hlo=COMPOSED, hlo_complex="abs", out=dtypes.to_real, jvp=_abs_jvp,
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip
abs_p.keeps_weak_type = True


# Remainders, extrema, comparisons, bits ----------------------------------------------------------------------------


def _rem_by_y(t: Any, x: Any, y: Any, ans: Any) -> Any:
    slope = neg(_truncate(div(x, y)))
    return mul(t, slope)


rem_p = elementwise(
    "rem", doc=("The remainder of division towards zero, with the sign of ``x``.", "-7.0, 3.0", "-1.0"),
    of=REAL_NUMBER, arity=2, host=host.rem, hlo=lambda hlo, x, y: hlo.remainder(x, y, hlo.result.shape),
    jvp=(lambda t, x, y, ans: spread(t, x, ans), _rem_by_y),
)  # fmt: skip
max_p = elementwise(
    "max", doc=("The larger of ``x`` and ``y``; NaN if one is.", "1.0, 2.5", "2.5"),
    of=VALUE, arity=2, host=host.maximum, hlo="maximum", hlo_complex=COMPOSED,
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip
min_p = elementwise(
    "min", doc=("The smaller of ``x`` and ``y``; NaN if one is.", "1.0, 2.5", "1.0"),
    of=VALUE, arity=2, host=host.minimum, hlo="minimum", hlo_complex=COMPOSED,
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip

# The weight of the first operand's tangent in an extreme: 1 where that operand wins, 0 where the other wins, 1/2 where
# they are equal. NaN wins over numbers. Operands are compared with each other, not with the result: see
# ``materialized``.
max_share_p = elementwise("max_share", of=INEXACT, arity=2, host=host.max_share, hlo=COMPOSED, hlo_complex=COMPOSED)
min_share_p = elementwise("min_share", of=INEXACT, arity=2, host=host.min_share, hlo=COMPOSED, hlo_complex=COMPOSED)


def _extreme_tangent(share_p: Primitive) -> Rule:
    def rule(ans: Any, primals: Any, tangents: Any) -> Any:
        (x, y), (tx, ty) = primals, tangents
        if ty is ZERO:
            return mul(tx, share_p.bind(x, y))
        if tx is ZERO:
            return mul(ty, share_p.bind(y, x))
        share = materialized(share_p.bind(x, y))
        by_x = mul(tx, share)
        by_y = mul(ty, sub(1, share))
        return add_any(by_x, by_y)

    return rule


max_p.tangent(_extreme_tangent(max_share_p))
min_p.tangent(_extreme_tangent(min_share_p))


def _truncate(x: Any) -> Any:
    return mul(sign(x), floor_p.bind(abs(x)))


def _prepare_small_integers() -> None:
    """Make the host rules of arithmetic operations accept integers of 2 and 4 bits too."""
    for p in (neg_p, div_p, rem_p, abs_p, sign_p, pow_p, integer_pow_p, max_p, min_p, clamp_p):
        assert p.host_rule is not None
        p.host_rule = host_narrow.in_eight_bits(p.host_rule)


runtime.small_integers_requested.append(_prepare_small_integers)


# Choice ------------------------------------------------------------------------------------------------------------


def where(which: Any, x: Any, y: Any) -> Any:
    """Select ``x`` where ``which`` is true, else ``y``; all three broadcast.

    ``x`` or ``y`` may be a Python number.
    """
    return select_n(which, y, x)


def select_n(which: Any, *cases: Any) -> Any:
    """Select each element of the result from one of ``cases``: ``which`` holds the index of the case for each element.

    The indices are int32, or booleans for two cases.
    """
    if which.dtype.kind != "b" and all(typeof(x).weak_type for x in cases):
        which = convert_element_type(which, which.dtype, True)  # so that it does not affect the type of the result
    return select_n_p.bind(which, *cases)


select_n_p = Primitive("select_n", elementwise=True, cost=Cost.LIGHT, moves=True)
select_n_p.host_rule = host.select_n
select_n_p.batch_rule = batch_broadcasting(select_n_p)


@select_n_p.lowering
def _select_n_lowering(hlo: Any, which: Any, *cases: Any) -> Any:
    """Emit a chain of selections; an index that is out of range selects the nearest case."""
    shape = hlo.result.shape
    which = hlo.broadcast(which, shape)
    *others, selected = [hlo.broadcast(c, shape) for c in cases]
    if dtypes.is_bool(which.dtype) and len(cases) == 2:
        return hlo.select(which, selected, others[0])
    which = hlo.convert(which, _int32)
    for i in reversed(range(len(others))):
        selected = hlo.select(hlo.compare(which, hlo.splat(i, shape, _int32), "LE"), others[i], selected)
    return selected


@select_n_p.abstract_eval
def _select_n_abstract_eval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    check_dtype("select_n", BITS, which.dtype)
    dtype = same_dtype("select_n", cases)
    return ShapedArray(broadcast_shape("select_n", [which.shape, *(c.shape for c in cases)]), dtype)


@select_n_p.jvp
def _select_n_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    ans = select_n(which, *cases)
    if all(t is ZERO for t in tangents[1:]):
        return ans, ZERO
    t = select_n(which, *[0 if t is ZERO else t for t in tangents[1:]])
    moving = [shape_of(c) for c, t in zip(cases, tangents[1:], strict=True) if t is not ZERO]
    shape = broadcast_shape("select_n", [which.shape, *moving])
    return ans, t if shape == ans.shape else shapes.broadcast_to(t, ans.shape)


@select_n_p.transpose
def _select_n_transpose(ct: Any, which: Any, *cases: Any) -> Any:
    def share(i: int) -> Any:
        return select_n(which, *[ct if j == i else 0 for j in range(len(cases))])

    return None, *(sum_to(share(i), c) if type(c) is LinearVar else None for i, c in enumerate(cases))


clamp_p = elementwise(
    "clamp", of=VALUE, arity=3, host=host.clamp, hlo="clamp", hlo_complex=COMPOSED,
    jvp=(  # where low > high, the result is high
        lambda t, low, x, high, ans: where(and_p.bind(gt(low, x), le_p.bind(low, high)), t, 0),
        lambda t, low, x, high, ans: where(and_p.bind(gt(x, low), lt(x, high)), t, 0),
        lambda t, low, x, high, ans: where(or_p.bind(gt(x, high), gt(low, high)), t, 0),
    ),
    cost=Cost.LIGHT, passes_nan=True,
)  # fmt: skip


# Types -------------------------------------------------------------------------------------------------------------


def convert_element_type(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Convert ``x`` to ``dtype``, weakly typed if ``weak_type``; return ``x`` itself if nothing changes."""
    if x.dtype == dtype and x.weak_type == weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


def indicator(x: Any, dtype: Any) -> Any:
    """Convert a mask ``x`` to factors of ``dtype``: 1 where the mask is true, and 0 where it is false.

    The factors come from a selection between constants. After a plain conversion the compiler would turn a product with
    them into a selection, which loses a NaN, and would move the other factor into the loop over the product: a Jacobian
    by columns of ``cos(x)`` then takes five times as long.
    """
    if dtypes.is_bool(dtype):
        return x
    one, zero = (shapes.full((), n, dtype) for n in (1, 0))
    return select_n(x, zero, one)


convert_element_type_p = Primitive(
    "convert_element_type", keeps_weak_type=None, elementwise=True, cost=Cost.LIGHT, passes_nan=True
)


@convert_element_type_p.host
def _convert_host(x: Any, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> Any:
    """Convert by NumPy; by the compiler if there are many elements and one dtype is float16: in 340 us, not 850."""
    narrow = "e" in (x.dtype.char, new_dtype.char)
    if narrow and x.size >= 500_000 and config.compile_large_operations:
        params = {"new_dtype": new_dtype, "weak_type": weak_type}
        return compiled(convert_element_type_p, host.convert, (x,), params)
    return host.convert(x, new_dtype=new_dtype, weak_type=weak_type)


native.TRANSLATIONS[_convert_host] = native.convert
convert_element_type_p.batch_rule = batch_unary(convert_element_type_p)


@convert_element_type_p.lowering
def _convert_lowering(hlo: Any, x: Any, *, new_dtype: np.dtype[Any], weak_type: bool) -> Any:
    old = x.dtype
    if dtypes.is_float(old) and old.itemsize == 1:  # the compiler converts these to wrong integers
        x = hlo.convert(x, np.dtype(np.float32))
    if dtypes.is_bool(new_dtype):
        return x if dtypes.is_bool(old) else hlo.compare(x, hlo.splat(0, x.shape, x.dtype), "NE")
    if dtypes.is_complex(old) and not dtypes.is_complex(new_dtype):
        x = hlo.op("stablehlo.real", [x], x.shape, dtypes.to_real(old))
    return hlo.convert(x, new_dtype)


@convert_element_type_p.abstract_eval
def _convert_abstract_eval(x: ShapedArray, *, new_dtype: np.dtype[Any], weak_type: bool) -> ShapedArray:
    host.check_cast(x.dtype, new_dtype)
    return ShapedArray(x.shape, new_dtype, weak_type)


@convert_element_type_p.jvp
def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: np.dtype[Any], weak_type: bool) -> Any:
    (x,), (t,) = primals, tangents
    ans = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    if not dtypes.is_inexact(new_dtype):
        return ans, ZERO
    return ans, convert_element_type_p.bind(t, new_dtype=new_dtype, weak_type=weak_type)


@convert_element_type_p.transpose
def _convert_transpose(ct: Any, x: LinearVar, *, new_dtype: np.dtype[Any], weak_type: bool) -> Any:
    old = x.dtype
    if dtypes.is_complex(ct.dtype) and not dtypes.is_complex(old):
        ct = real(ct)
    elif dtypes.is_complex(old) and not dtypes.is_complex(ct.dtype):
        ct = complex(ct, shapes.zeros_like(ct))
    return (convert_element_type(ct, old, False),)


def materialized(x: Any) -> Any:
    """Return ``x`` unchanged, but make a compiled program store it as one array that all later operations read.

    Otherwise the compiler may compute ``x`` again for each use, with different rounding. A derivative that finds the
    largest element by ``==`` needs the exact values from which the largest was computed.
    """
    return once_p.bind(x)


once_p = elementwise("once", passes_nan=True, of=INEXACT, host=host.identity, hlo=COMPOSED, hlo_complex=COMPOSED)
once_p.jvp_rule = lambda primals, tangents: (materialized(*primals), *tangents)

copy_p = elementwise("copy", cost=Cost.LIGHT, passes_nan=True, of=ANY, host=host.identity, hlo=lambda hlo, x: x)
copy_p.jvp_rule = jvp_linear(copy_p)
copy_p.transpose(lambda ct, x: (ct,))

stop_gradient_p = elementwise("stop_gradient", passes_nan=True, of=ANY, host=host.identity, hlo=lambda hlo, x: x)
stop_gradient_p.jvp_rule = jvp_zero(stop_gradient_p)


def _horner(x: Any, coefficients: Sequence[float]) -> Any:
    value: Any = coefficients[0]
    for c in coefficients[1:]:
        value = x * value + c
    return value


def _horner_by_operations(x: Any, coefficients: Sequence[float]) -> Any:
    value: Any = coefficients[0]
    for c in coefficients[1:]:
        value = add(mul(x, value), c)
    return value


_fused_horner = host_fused("polynomial", host=_horner, otherwise=_horner_by_operations)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate a polynomial by Horner's rule, with coefficients from the highest power down."""
    evaluate = _fused_horner if x.dtype.isbuiltin == 1 and len(coefficients) > 1 else _horner_by_operations
    return evaluate(x, coefficients=coefficients)


# The vocabulary of rules --------------------------------------------------------------------------------------------

neg: Rule = neg_p.bind
add: Rule = add_p.bind

sub: Rule = sub_p.bind
mul: Rule = mul_p.bind
div: Rule = div_p.bind
exp: Rule = exp_p.bind
log: Rule = log_p.bind
sqrt: Rule = sqrt_p.bind
square: Rule = square_p.bind
logistic: Rule = logistic_p.bind
pow: Rule = pow_p.bind
sin: Rule = sin_p.bind
cos: Rule = cos_p.bind
tanh: Rule = tanh_p.bind
sinh: Rule = sinh_p.bind
cosh: Rule = cosh_p.bind
digamma: Rule = digamma_p.bind
polygamma: Rule = polygamma_p.bind
sign: Rule = sign_p.bind
abs: Rule = abs_p.bind
real: Rule = real_p.bind
imag: Rule = imag_p.bind
complex: Rule = complex_p.bind


@provides
def sum_of_two(x: Any, y: Any) -> Any:
    """Return the sum of two arrays of one shape, or of two values of a user's type."""
    aval = typeof(x)
    return add(x, y) if isinstance(aval, ShapedArray) else aval.vspace_add(x, y)
