"""Lowering rules of elementwise operations that the compiler lacks, or computes less accurately than the host.

An operation declared with ``COMPOSED`` has its lowering rules here: of the kind ``real_lowering``, and
``complex_lowering`` for complex operands. Three things recur. Half precision is computed in single, and rounded once.
The compiler loses the sign of zeros in complex numbers, which decides the side of a branch cut (Kahan, *Branch cuts for
complex elementary functions*, in *The State of the Art in Numerical Analysis*, 1987): the rules restore it. And a zero
times an infinity is zero where the zero is exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives import remainders
from pullback.primitives.arrays import shapes
from pullback.primitives.declare import complex_lowering, real_lowering
from pullback.primitives.remainders import floor_div_p, floor_rem_p

from pullback.primitives.formulas import (  # isort: skip
    binary, complex, cos, cosh, digamma, exp, expm1, floor, formula, full, imag, is_finite, lgamma, lifted, log, log1p,
    maximum, minimum, polynomial, real, remainder, round, sign, sin, sinh, sqrt, square, unary, where,
)  # fmt: skip

if TYPE_CHECKING:
    from pullback.backends.hlo.builder import Builder, Value

Formula = Callable[..., Any]
XlaRule = Callable[..., Any]

_double = np.dtype(np.float64)
_single = np.dtype(np.float32)
_LOG_2 = math.log(2)
atanh, exp2 = map(unary, (ops.atanh_p, ops.exp2_p))
shift_left, shift_right_arithmetic, shift_right_logical = map(
    binary, (ops.shift_left_p, ops.shift_right_arithmetic_p, ops.shift_right_logical_p)
)
clamp, bitcast_convert_type, convert_element_type = map(
    lifted, (ops.clamp_p.bind, ops.bitcast_convert_type, ops.convert_element_type)
)
high_part, without_last_bits, is_above = map(lifted, (ops.high_part, ops.without_last_bits, remainders.is_above))
zeros_like = lifted(shapes.zeros_like)


def _in_single(hlo: Builder, operands: tuple[Value, ...]) -> list[Value]:
    """Convert floats of less than single precision to single precision; return other operands unchanged."""
    return [hlo.convert(x, _single) if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4 else x for x in operands]


def _composed(function: Formula) -> XlaRule:
    """Make the lowering rule of an operation from a ``function`` that computes the operation from its operands."""
    of_arrays = formula(function)

    def rule(hlo: Builder, *operands: Value) -> Value:
        return hlo.convert(hlo.inline(of_arrays, *_in_single(hlo, operands)), hlo.result.dtype)

    return rule


def _corrected(operation: str, function: Formula) -> XlaRule:
    """Make the lowering rule of an operation that corrects the result of the compiler's ``operation``.

    ``function(result, *operands)`` returns the corrected result.
    """
    of_arrays = formula(function)

    def rule(hlo: Builder, *operands: Value) -> Value:
        wide = _in_single(hlo, operands)
        out = hlo.op(operation, wide, wide[0].shape, wide[0].dtype)
        return hlo.convert(hlo.inline(of_arrays, out, *wide), hlo.result.dtype)

    return rule


def _with_sign(size: Any, like: Any) -> Any:
    """Return ``size`` with the sign of ``like``; the sign of ``size`` itself is ignored."""
    dtype = size.dtype
    bits = np.dtype(f"u{dtype.itemsize}")
    top = 1 << (8 * dtype.itemsize - 1)
    rest = bitcast_convert_type(size, bits) & (top - 1)
    return bitcast_convert_type(rest | (bitcast_convert_type(like, bits) & top), dtype)


# Exponentials and logarithms -----------------------------------------------------------------------------------------


def _power_of_two(n: Any, dtype: np.dtype[Any]) -> Any:
    """Return 2**n for integers ``n``, as floats of ``dtype``, by writing the bits of the float."""
    info = dtypes.finfo(dtype)
    return bitcast_convert_type(shift_left(n + (info.maxexp - 1), info.nmant), dtype)


def _exp2(x: Any) -> Any:
    """Compute 2**x as the exponential of the fraction of x, times two powers of two for its integer.

    There are two powers since a single one may overflow.
    """
    dtype = x.dtype
    limit = 2 * (dtypes.finfo(dtype).maxexp - 2)
    x = clamp(-limit, x, limit)
    nearest = round(x)
    n = convert_element_type(nearest, np.dtype(f"int{8 * dtype.itemsize}"))
    half = shift_right_arithmetic(n, 1)
    scaled = exp((x - nearest) * _LOG_2) * _power_of_two(half, dtype)
    return scaled * _power_of_two(n - half, dtype)


def _complex_exp2(z: Any) -> Any:
    """Compute 2**z of a complex number z without overflow of intermediate results, and with an accurate angle.

    The result is multiplied twice by the square root of the modulus. The angle, log(2) times the imaginary part, is the
    sum of an exact term and a small rest.
    """
    root, y = exp2(real(z) * 0.5), imag(z)
    high, bits = high_part(y), 12 if y.dtype == _single else 26
    high_log = math.floor(_LOG_2 * 2**bits) / 2**bits
    low_log = (_LOG_2 - high_log) + 2.3190468138462996e-17
    angle, rest = high * high_log, high * low_log + (y - high) * _LOG_2
    turn = cos(angle) * cos(rest) - sin(angle) * sin(rest)
    rise = sin(angle) * cos(rest) + cos(angle) * sin(rest)
    return complex(turn * root * root, where(y == 0, y, rise * root * root))


def _log_near_one(out: Any, x: Any, y: Any) -> Any:
    """Correct ``out``, the complex log(1 + x + iy), where the modulus of 1 + x + iy is near 1.

    The real part is small there. It is computed as log1p(modulus**2 - 1) / 2.
    """
    excess = x * (x + 2) + square(y)
    near = (excess > -0.75) & (excess < 1.5)
    return complex(where(near, log1p(where(near, excess, 0)) * 0.5, real(out)), imag(out))


def _complex_log1p(z: Any) -> Any:
    x, y = real(z), imag(z)
    return _log_near_one(log(complex(x + 1, y)), x, y)


def _log1p_in_double(x: Any) -> Any:
    """Compute log1p in double precision; the compiler's log1p is off by a hundred ulps near -0.4.

    With s = x / (2 + x) it is 2 artanh(s), whose series needs few terms near zero; farther away, adding 1 loses no
    digits. (The usual corrections for the rounding of 1 + x fail: the compiler simplifies (1 + x) - 1 to x.)
    """
    twice = x * 2 / (x + 2)  # s itself may be below the smallest normal number
    t = square(twice * 0.5)
    series = t * polynomial(t, [1 / n for n in range(19, 2, -2)])
    near = (x > math.sqrt(0.5) - 1) & (x < math.sqrt(2) - 1)
    return where(near, twice + twice * series, log(x + 1))


def _asin_near_zero(out: Any, x: Any) -> Any:
    """Correct ``out``, the compiler's asin(x), to x where x is near zero.

    The compiler halves x, which flushes the smallest normal numbers to zero.
    """
    return where(abs(x) < (1e-4 if x.dtype == _single else 1e-9), x, out)


def _atanh_in_double(x: Any) -> Any:
    size = abs(x)
    return _with_sign(0.5 * log1p(2 * size / (1 - size)), x)


def _in_double(operation: str, function: Formula) -> XlaRule:
    """Make a lowering rule: the formula ``function`` for doubles, and the compiler's ``operation`` for other dtypes."""
    composed = _composed(function)

    def rule(hlo: Builder, x: Value) -> Value:
        return composed(hlo, x) if x.dtype == _double else hlo.op(operation, [x], x.shape, x.dtype)

    return rule


def _cbrt(out: Any, x: Any) -> Any:
    """Correct ``out``, the compiler's cube root of x, by a step of Newton's method.

    In double precision the compiler's result is off by hundreds of ulps.
    """
    if x.dtype != _double:
        return out
    step = (out - x / out / out) / 3
    return where(is_finite(x) & (x != 0), out - step, out)


def _logaddexp(x: Any, y: Any) -> Any:
    """Compute log(exp(x) + exp(y)) by NumPy's formula, and as x + log(2) where x equals y.

    The formula subtracts x and y, which would be NaN for equal infinities.
    """
    larger = maximum(x, y) + log1p(exp(-abs(x - y)))
    return where(x == y, x + _LOG_2, larger)


def _hypot(x: Any, y: Any) -> Any:
    """Compute sqrt(x² + y²) without overflow of the squares.

    The result is infinite if x or y is infinite, even if the other operand is NaN.
    """
    x, y = abs(x), abs(y)
    large = maximum(x, y)
    ratio = minimum(x, y) / where(large == 0, 1, large)
    infinite = (x == math.inf) | (y == math.inf)
    return where(infinite, math.inf, large * sqrt(square(ratio) + 1))


def _inverse(x: Any, y: Any) -> Any:
    """Compute x / (x² + y²) without overflow of the squares; 0 where an operand is infinite.

    The operands are multiplied by a power of two, with which the larger is between 1 and 4. The bounds keep the
    compiler from squaring a constant operand and the power by themselves, which would underflow.
    """
    info = dtypes.finfo(x.dtype)
    bits, one = np.dtype(f"u{x.dtype.itemsize}"), 1 << info.nmant  # the lowest bit of the exponent
    whole = 2 * (info.maxexp - 1)  # twice the exponent of 1, with its bias
    size = maximum(abs(x), abs(y))
    exponent = bitcast_convert_type(size, bits) & full((), ((1 << info.nexp) - 1) * one, bits)
    exponent = clamp(full((), one, bits), exponent, full((), (whole - 1) * one, bits))
    scale = bitcast_convert_type(full((), whole * one, bits) - exponent, x.dtype)
    a, b = clamp(-4, x * scale, 4), clamp(-4, y * scale, 4)
    infinite = (abs(x) == math.inf) | (abs(y) == math.inf)
    return where(infinite, 0, a / (square(a) + square(b)) * scale)


# Hyperbolic functions, and sines of complex numbers ------------------------------------------------------------------


def _halves_of_exponentials(x: Any) -> tuple[Any, Any]:
    """Return exp(x) / 2 and exp(-x) / 2 for positive x.

    Both are computed from exp(x / 2), so that intermediate results do not overflow before the result does. The second
    is a quarter of the first one's reciprocal: of a quotient by a square the compiler makes a second exponential.
    """
    root = exp(x * 0.5)
    half = root * 0.5 * root
    return half, 0.25 / half


def _cosh(x: Any) -> Any:
    return operator.add(*_halves_of_exponentials(abs(x)))


def _sinh(x: Any) -> Any:
    size = abs(x)
    u = expm1(size)
    near = (u + u / (u + 1)) * 0.5
    return _with_sign(where(size < 1, near, operator.sub(*_halves_of_exponentials(size))), x)


def _product(x: Any, y: Any, finite: Any) -> Any:
    """Return ``x * y``, but where ``x`` is zero, ``x * finite``, which is a zero even if ``y`` is infinite.

    ``finite`` is a finite number with the sign of ``y``.
    """
    return x * where(x == 0, finite, y)


def _complex_sin(z: Any) -> Any:
    x, y = real(z), imag(z)
    return complex(_product(sin(x), cosh(y), 1), cos(x) * sinh(y))


def _complex_cos(z: Any) -> Any:
    x, y = real(z), imag(z)
    return complex(cos(x) * cosh(y), -_product(sin(x), sinh(y), sign(y)))


def _complex_sinh(z: Any) -> Any:
    x, y = real(z), imag(z)
    return complex(sinh(x) * cos(y), _product(sin(y), cosh(x), 1))


def _complex_cosh(z: Any) -> Any:
    x, y = real(z), imag(z)
    return complex(cosh(x) * cos(y), _product(sin(y), sinh(x), sign(x)))


def _complex_atanh(out: Any, z: Any) -> Any:
    """Correct ``out``, the compiler's complex artanh(z), where it is infinite although z is not a branch point.

    This happens if z differs from the branch point 1 or -1 by only a small imaginary part.
    """
    height = abs(imag(z))
    lost = _infinite(real(out)) & (height > 0)
    near = (_LOG_2 - log(where(lost, height, 1))) * 0.5
    return _same_quadrant(complex(where(lost, near, real(out)), imag(out)), z)


def _complex_atan(z: Any) -> Any:
    """Compute the complex arctangent as -i artanh(i z)."""
    turned = atanh(complex(-imag(z), real(z)))
    return complex(imag(turned), -real(turned))


# Signs of zeros in complex numbers: corrections of the compiler's results ------------------------------------------


def _same_quadrant(out: Any, z: Any) -> Any:
    return complex(_with_sign(real(out), real(z)), _with_sign(imag(out), imag(z)))


def _same_half_plane(out: Any, z: Any) -> Any:
    return complex(real(out), _with_sign(imag(out), imag(z)))


def _other_half_plane(out: Any, z: Any) -> Any:
    return complex(real(out), _with_sign(imag(out), -imag(z)))


def _real_on_axis(out: Any, z: Any) -> Any:
    return complex(real(out), where(imag(z) == 0, imag(z), imag(out)))


def _imaginary_on_axis(out: Any, z: Any) -> Any:
    return complex(where(real(z) == 0, real(z), real(out)), imag(out))


def _expm1_at_ends(out: Any, z: Any) -> Any:
    """Correct ``out``, the compiler's complex expm1(z), to the values of the array API standard.

    The corrected values are at zero, on the real axis, and where the real part is infinite.
    """
    a, b = real(z), imag(z)
    positive = a > 0
    at_infinity = complex(where(positive, a, -1), where(positive, math.nan, zeros_like(a)))
    turning = _infinite(a) & ~is_finite(b)
    return where(turning, at_infinity, where(z == 0, complex(abs(a), b), _real_on_axis(out, z)))


def _tanh_at_ends(out: Any, z: Any) -> Any:
    """Correct ``out``, the compiler's complex tanh(z), where the real part of z is infinite.

    The imaginary part of the result is a zero there, and gets the sign of the imaginary part of ``z``.
    """
    b = imag(z)
    there = _infinite(real(z)) & (b == b)
    out = complex(real(out), where(there, _with_sign(zeros_like(b), b), imag(out)))
    return _imaginary_on_axis(_real_on_axis(out, z), z)


def _infinite(x: Any) -> Any:
    return abs(x) == math.inf


# Powers and divisors -------------------------------------------------------------------------------------------------


def _complex_power(out: Any, x: Any, y: Any) -> Any:
    """Correct ``out``, the compiler's complex power x**y, where an intermediate result overflowed or underflowed.

    There it is computed as exp(y log(x)).
    """
    finite = is_finite
    lost = (out == 0) | ~finite(out)
    usual = finite(x) & finite(y) & (x != 0)
    out = where(lost & usual, exp(y * log(x)), out)
    return where((x == 0) & (real(y) > 0), 0, out)


def _complex_div(x: Any, y: Any) -> Any:
    """Divide complex numbers, x / y, without overflow of intermediate results.

    The quotient is x times the conjugate of y, over the squared modulus of y. Before that, y is scaled by a power of
    two so that its larger part is near 1, and x so that it is not near the ends of the range. Infinite parts of x, and
    a y that is zero, are replaced by ones of the same signs; infinite parts of y are replaced by large numbers. A last
    factor, which may be infinity or zero, compensates for all of this.
    """
    a, b, c, d = real(x), imag(x), real(y), imag(y)
    size_x, size_y = maximum(abs(a), abs(b)), maximum(abs(c), abs(d))
    dtype, info = c.dtype, dtypes.finfo(c.dtype)
    one, most = full((), 1, dtype), 2.0 ** (info.maxexp - 2)

    digits = info.nmant + 8
    small, large = size_x < 2.0 ** (digits - info.maxexp), size_x > most / 2
    before = where(small, 2.0**digits, where(large, 0.0625, one))
    infinite = _infinite(size_x)
    after = where(small, 0.5**digits, where(infinite, math.inf, where(large, 16, one)))
    a, b = (where(infinite, where(_infinite(part), _with_sign(one, part), 0), part * before) for part in (a, b))

    bits = bitcast_convert_type(minimum(size_y, most), np.dtype(f"int{8 * dtype.itemsize}"))
    opposite = ((2 * info.maxexp - 2) << info.nmant) - (bits & ((2 * info.maxexp - 1) << info.nmant))
    scale = bitcast_convert_type(opposite, dtype)
    zero = size_y == 0
    c = where(zero, _with_sign(one, c), c)
    c, d = (clamp(-4, part * where(zero, one, scale), 4) for part in (c, d))
    factor = where(zero, math.inf, where(_infinite(size_y), 0, scale)) * after

    inverse = 1 / (square(c) + square(d))
    parts = (a * c + b * d, b * c - a * d)
    return complex(*(part * inverse * factor for part in parts))


def _complex_sign(hlo: Builder, x: Value) -> Value:
    """Emit the sign of a complex ``x``, x / abs(x).

    Before, x is scaled by a power of two so that its larger part is near 1: otherwise the compiler's modulus may
    overflow.
    """
    return hlo.elementwise("stablehlo.sign", hlo.inline(formula(_near_one), x)[0])


def _complex_square(z: Any) -> Any:
    """Square a complex number x + iy, with the real part computed as (x - y) (x + y).

    In x² - y² the compiler flushes tiny squares to zero.
    """
    x, y = real(z), imag(z)
    return complex((x - y) * (x + y), (x + x) * y)


def _near_one(z: Any) -> list[Any]:
    """Divide a complex number by a power of two, so that its larger part has an absolute value near 1.

    Return the quotient, and the exponent of the power.
    """
    x, y = real(z), imag(z)
    info = dtypes.finfo(x.dtype)
    bits = bitcast_convert_type(maximum(abs(x), abs(y)), np.dtype(f"int{8 * x.dtype.itemsize}"))
    exponent = shift_right_logical(bits, info.nmant) - (info.maxexp - 1)
    exponent = clamp(2 - info.maxexp, exponent, info.maxexp - 2)
    scale = _power_of_two(-exponent, x.dtype)
    return [complex(x * scale, y * scale), exponent]


def _any(hlo: Builder, x: Value) -> Value:
    return hlo.reduce("stablehlo.or", x, False, range(x.ndim))


def _loop(hlo: Builder, start: list[Value], going: XlaRule, step: XlaRule) -> list[Value]:
    """Emit a loop that runs ``step`` as long as ``going`` is true for any element; return the last arrays.

    Args:
      hlo: the builder.
      start: the first arrays.
      going: a rule from the arrays to a boolean array.
      step: a rule from the arrays to the next arrays, of the same types.
    """
    kinds = [(x.shape, x.dtype) for x in start]
    condition = hlo.region(kinds, lambda *xs: [_any(hlo, going(*xs))])
    return hlo.multi_result("stablehlo.while", start, kinds, regions=[condition, hlo.region(kinds, step)])


def _power_by_squaring(hlo: Builder, x: Value, y: Value) -> Value:
    one, zero = hlo.splat(1, x.shape, x.dtype), hlo.splat(0, x.shape, x.dtype)

    def step(power: Value, x: Value, y: Value) -> list[Value]:
        odd = hlo.compare(hlo.elementwise("stablehlo.and", y, one), zero, "NE")
        power = hlo.select(odd, hlo.elementwise("stablehlo.multiply", power, x), power)
        return [
            power,
            hlo.elementwise("stablehlo.multiply", x, x),
            hlo.elementwise("stablehlo.shift_right_logical", y, one),
        ]

    return _loop(hlo, [one, x, y], lambda power, x, y: hlo.compare(y, zero, "GT"), step)[0]


def _pow(hlo: Builder, x: Value, y: Value) -> Value:
    """Emit the power x**y.

    For integers with large exponents it is computed by repeated squaring: the compiler reads only six bits of the
    exponent.
    """
    dtype = x.dtype
    if not dtypes.is_integer(dtype):
        return hlo.elementwise("stablehlo.power", x, y)

    out = hlo.elementwise("stablehlo.power", x, y)
    if dtypes.iinfo(dtype).max >= 64:
        large = hlo.compare(y, hlo.splat(63, y.shape, dtype), "GT")
        out = hlo.amended(large, out, lambda _: _power_by_squaring(hlo, x, y))
    return out if dtypes.is_unsigned(dtype) else hlo.inline(formula(_integer_power), out, x, y)


def _integer_power(out: Any, x: Any, y: Any) -> Any:
    """Correct ``out``, the integer power x**y, where y is negative.

    There it is 1 / x**-y, truncated to an integer. For x = 0 it is -1, as for a division of integers by zero.
    """
    unit = where((y & 1) == 0, x * x, x)
    inverse = where(abs(x) == 1, unit, where(x == 0, x - 1, x * 0))
    return where(y < 0, inverse, out)


def _gcd(hlo: Builder, x: Value, y: Value) -> Value:
    """Emit the greatest common divisor of x and y, by Euclid's algorithm.

    It computes with absolute values as unsigned integers, which can represent the absolute value of every integer.
    """
    dtype = x.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    start = [hlo.convert(_abs(hlo, v), unsigned) for v in (x, y)]
    zero = hlo.splat(0, x.shape, unsigned)

    def step(a: Value, b: Value) -> list[Value]:
        done = hlo.compare(b, zero, "EQ")
        return [hlo.select(done, a, b), hlo.select(done, b, hlo.elementwise("stablehlo.remainder", a, b))]

    return hlo.convert(_loop(hlo, start, lambda a, b: hlo.compare(b, zero, "NE"), step)[0], dtype)


# Lexicographic order of complex numbers, in which NaN wins ---------------------------------------------------------


def _complex_max(x: Any, y: Any) -> Any:
    larger = (real(x) > real(y)) | ((real(x) == real(y)) & (imag(x) >= imag(y)))
    return where((x != x) | ((y == y) & larger), x, y)


def _complex_min(x: Any, y: Any) -> Any:
    smaller = (real(x) < real(y)) | ((real(x) == real(y)) & (imag(x) <= imag(y)))
    return where((x != x) | ((y == y) & smaller), x, y)


def _share(x: Any, y: Any, first: Any, second: Any) -> Any:
    """Return the weight of the tangent of ``x`` in the tangent of a maximum or minimum of ``x`` and ``y``.

    The weight is 1 where only ``x`` is selected, 1/2 where both operands are selected, and 0 elsewhere. ``first`` is a
    mask of where ``x`` is selected, and ``second`` of where ``y`` is selected. An operand that is NaN is always
    selected.
    """
    one, half = full((), 1, x.dtype), full((), 0.5, x.dtype)
    first, second = first | (x != x), second | (y != y)
    return where(first, where(second, half, one), 0)


def _real_share(x: Any, y: Any, other: Any) -> Any:
    """Return what :func:`_share` does for real numbers; ``other`` is where ``y`` alone is selected if none is NaN.

    If ``y`` is a number, as for ``clip`` and ``relu``, the compiler leaves out the masks of where it is NaN, and two
    comparisons are left: those with a number that is NaN are false.
    """
    one, half = full((), 1, x.dtype), full((), 0.5, x.dtype)
    tie, y_is_nan = x == y, y != y
    other, tie = other | (y_is_nan & (x == x)), tie | (y_is_nan & (x != x))
    return where(other, 0, where(tie, half, one))


def _complex_max_share(x: Any, y: Any) -> Any:
    larger = maximum(x, y)
    return _share(x, y, x == larger, y == larger)


def _complex_min_share(x: Any, y: Any) -> Any:
    smaller = minimum(x, y)
    return _share(x, y, x == smaller, y == smaller)


def _complex_clamp(low: Any, x: Any, high: Any) -> Any:
    return minimum(maximum(x, low), high)


# Special functions ---------------------------------------------------------------------------------------------------


def _digamma_at_pole(out: Any, x: Any) -> Any:
    return where(x == 0, -1 / x, out)


def _polygamma(hlo: Builder, n: Value, x: Value) -> Value:
    """Emit the polygamma function of order ``n`` at ``x``.

    For negative ``x`` a reflection formula is used, since the compiler's function is wrong below -9.
    """
    order, point = _in_single(hlo, (n, x))

    def at(p: Value) -> Value:
        return hlo.op("chlo.polygamma", [order, p], p.shape, p.dtype)

    def reflected(out: Value) -> Value:
        others = [at(p) for p in hlo.inline(formula(_reflections), point)]
        return hlo.inline(formula(_reflect), order, point, out, *others)

    negative = hlo.compare(point, hlo.splat(0, point.shape, point.dtype), "LT")
    out = hlo.amended(negative, at(point), reflected)
    return hlo.convert(hlo.inline(formula(_polygamma_at_ends), out, order, point), x.dtype)


def _reflections(x: Any) -> list[Any]:
    """Return r, 1 - r and 1 - x for a negative x, where r = x - floor(x).

    At these positive points a reflection formula evaluates polygamma.
    """
    below = floor(x)
    return [x - below, below + 1 - x, 1 - x]


def _reflect(n: Any, x: Any, here: Any, by_fraction: Any, by_rest: Any, by_reflection: Any) -> Any:
    """Return polygamma of order ``n``; at a negative x, combine it from its values at positive points.

    The function is, up to a factor, the sum of (x + j)^-(n + 1) over j >= 0. For negative x the terms with positive x +
    j are the sum from r = x - floor(x) on. The other terms are, up to a sign, the sum from 1 - r on minus the sum from
    1 - x on.

    Args:
      n, x: the operands.
      here: the value at x, which is used where x is not negative.
      by_fraction, by_rest, by_reflection: the values at r, 1 - r and 1 - x.
    """
    even = _is_even(n)
    both = where(even, by_fraction - by_rest, by_fraction + by_rest)
    return where(x < 0, where(even, both + by_reflection, both - by_reflection), here)


def _is_even(n: Any) -> Any:
    return floor(n * 0.5) * 2 == n


def _polygamma_at_ends(out: Any, n: Any, x: Any) -> Any:
    """Correct ``out``, polygamma of order ``n`` at ``x``, at special points, as in SciPy.

    It is infinite at the poles 0, -1, -2, ...; for large x it is the first term of its asymptotic series; for n = 0 it
    is digamma; and it is NaN for an ``n`` that is negative or fractional.
    """
    even = _is_even(n)
    pole = (x <= 0) & (floor(x) == x)
    out = where(pole & even, -math.inf, where(pole, math.inf, out))
    far = x > 1e15  # where the compiler's underflows, use the first term of the asymptotic series
    size = exp(lgamma(maximum(n, 1))) * x ** (-n)
    out = where(far, where(even, -size, size), out)
    return where((n > 0) & (floor(n) == n), out, where(n == 0, digamma(x), math.nan))


def _trigamma(hlo: Builder, x: Value) -> Value:
    from pullback.primitives.special.gamma_functions import trigamma

    return trigamma(hlo, x)


def _materialized_lowering(hlo: Builder, x: Value) -> Value:
    from pullback.backends.hlo.in_place import is_exact, materialized

    return x if is_exact(hlo, x) else materialized(hlo, x)


# Real and imaginary parts, quotients -------------------------------------------------------------------------------


def _sign(hlo: Builder, x: Value) -> Value:
    if dtypes.is_unsigned(x.dtype):
        return hlo.convert(hlo.compare(x, hlo.splat(0, x.shape, x.dtype), "NE"), x.dtype)
    return hlo.elementwise("stablehlo.sign", x)


def _floor_rem(x: Any, y: Any) -> Any:
    rest = remainder(x, y)
    return where(rest == 0, _with_sign(rest, y), where(is_above(rest, y), rest + y, rest))


def _floor_div(x: Any, y: Any) -> Any:
    quotient, rest = x / y, remainder(x, y)
    floored = (x - rest) / y
    floored = round(where(is_above(rest, y), floored - 1, floored))
    floored = where(floored == 0, _with_sign(floored, quotient), floored)
    return where(y == 0, quotient, floored)


def _abs(hlo: Builder, x: Value) -> Value:
    return x if dtypes.is_unsigned(x.dtype) else hlo.elementwise("stablehlo.abs", x)


def _complex(hlo: Builder, x: Value, y: Value) -> Value:
    dtype = hlo.result.dtype
    parts = [hlo.convert(part, dtypes.to_real(dtype)) for part in (x, y)]
    return hlo.op("stablehlo.complex", parts, x.shape, dtype)


def _complex_is_finite(z: Any) -> Any:
    return is_finite(real(z)) & is_finite(imag(z))


real_lowering(ops.abs_p)(_abs)
real_lowering(ops.asin_p)(_corrected("chlo.asin", _asin_near_zero))
real_lowering(ops.atanh_p)(_in_double("chlo.atanh", _atanh_in_double))
real_lowering(ops.cbrt_p)(_corrected("stablehlo.cbrt", _cbrt))
real_lowering(ops.complex_p)(_complex)
real_lowering(ops.cosh_p)(_composed(_cosh))
real_lowering(ops.digamma_p)(_corrected("chlo.digamma", _digamma_at_pole))
real_lowering(ops.exp2_p)(_composed(_exp2))
real_lowering(floor_div_p)(_composed(_floor_div))
real_lowering(floor_rem_p)(_composed(_floor_rem))
real_lowering(ops.gcd_p)(_gcd)
real_lowering(ops.hypot_p)(_composed(_hypot))
real_lowering(ops.inverse_p)(_composed(_inverse))
real_lowering(ops.log1p_p)(_in_double("stablehlo.log_plus_one", _log1p_in_double))
real_lowering(ops.logaddexp_p)(_composed(_logaddexp))
real_lowering(ops.max_share_p)(_composed(lambda x, y: _real_share(x, y, x < y)))
real_lowering(ops.min_share_p)(_composed(lambda x, y: _real_share(x, y, x > y)))
real_lowering(ops.once_p)(_materialized_lowering)
real_lowering(ops.polygamma_p)(_polygamma)
real_lowering(ops.trigamma_p)(_trigamma)
real_lowering(ops.pow_p)(_pow)
real_lowering(ops.sign_p)(_sign)
real_lowering(ops.sinh_p)(_composed(_sinh))

complex_lowering(ops.acos_p)(_corrected("chlo.acos", _other_half_plane))
complex_lowering(ops.acosh_p)(_corrected("chlo.acosh", _same_half_plane))
complex_lowering(ops.asin_p)(_corrected("chlo.asin", _same_quadrant))
complex_lowering(ops.asinh_p)(_corrected("chlo.asinh", _same_quadrant))
complex_lowering(ops.atan_p)(_composed(_complex_atan))
complex_lowering(ops.atanh_p)(_corrected("chlo.atanh", _complex_atanh))
complex_lowering(ops.clamp_p)(_composed(_complex_clamp))
complex_lowering(ops.conj_p)(_composed(lambda z: complex(real(z), -imag(z))))
complex_lowering(ops.cos_p)(_composed(_complex_cos))
complex_lowering(ops.cosh_p)(_composed(_complex_cosh))
complex_lowering(ops.div_p)(_composed(_complex_div))
complex_lowering(ops.exp_p)(_corrected("stablehlo.exponential", _real_on_axis))
complex_lowering(ops.exp2_p)(_composed(_complex_exp2))
complex_lowering(ops.expm1_p)(_corrected("stablehlo.exponential_minus_one", _expm1_at_ends))
complex_lowering(ops.is_finite_p)(_composed(_complex_is_finite))
complex_lowering(ops.log_p)(_corrected("stablehlo.log", lambda out, z: _log_near_one(out, real(z) - 1, imag(z))))
complex_lowering(ops.log1p_p)(_composed(_complex_log1p))
complex_lowering(ops.logistic_p)(_corrected("stablehlo.logistic", _real_on_axis))
complex_lowering(ops.max_p)(_composed(_complex_max))
complex_lowering(ops.max_share_p)(_composed(_complex_max_share))
complex_lowering(ops.min_p)(_composed(_complex_min))
complex_lowering(ops.min_share_p)(_composed(_complex_min_share))
complex_lowering(ops.once_p)(_materialized_lowering)
complex_lowering(ops.pow_p)(_corrected("stablehlo.power", _complex_power))
complex_lowering(ops.sign_p)(_complex_sign)
complex_lowering(ops.sin_p)(_composed(_complex_sin))
complex_lowering(ops.sinh_p)(_composed(_complex_sinh))
complex_lowering(ops.square_p)(_composed(_complex_square))
complex_lowering(ops.sqrt_p)(_corrected("stablehlo.sqrt", _same_half_plane))
complex_lowering(ops.tan_p)(_corrected("stablehlo.tan", _imaginary_on_axis))
complex_lowering(ops.tanh_p)(_corrected("stablehlo.tanh", _tanh_at_ends))
