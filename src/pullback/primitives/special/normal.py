"""Lowering rules of ``erfc``, ``ndtr``, and ``exp(-x**2)``, their derivative.

In single precision the three have an exponential in common, which the compiler computes once for a value and its
derivative. In double precision they correct the compiler's functions, which round the square.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.primitives import elementwise as ops
from pullback.primitives.declare import real_lowering

from pullback.primitives.formulas import (  # isort: skip
    binary, formula, lifted, minimum, polynomial, polynomial_by_pairs, square, unary, where,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from pullback.backends.hlo.builder import Builder, Value

_single = np.dtype(np.float32)
_erfc = unary(ops.erfc_p)
shift_left = binary(ops.shift_left_p)
clamp, bitcast_convert_type, convert_element_type, high_part, without_last_bits = map(
    lifted,
    (ops.clamp_p.bind, ops.bitcast_convert_type, ops.convert_element_type, ops.high_part, ops.without_last_bits),
)
square_error, gaussian_by_exp = lifted(ops.square_error), lifted(ops.gaussian_by_exp)


def _by_precision(in_single: Callable[..., Any], in_double: Callable[..., Any]) -> Callable[..., Value]:
    """Make a lowering rule of formulas in single and in double precision; others are computed in single precision."""
    of_singles, of_doubles = formula(in_single), formula(in_double)

    def rule(hlo: Builder, x: Value, *params: Any) -> Value:
        if x.dtype == np.float64:
            return hlo.inline(lambda x: of_doubles(x, *params), x)
        return hlo.convert(hlo.inline(lambda x: of_singles(x, *params), hlo.convert(x, _single)), hlo.result.dtype)

    return rule


# exp(-x**2) ----------------------------------------------------------------------------------------------------------

_EXP = (
    0.0013375198477603009, -0.00837905808733241, 0.04167675248789285, -0.1666635362742411, 0.49999953814510073,
    -1.000000056351403, 1.0,
)  # fmt: skip
"""The coefficients of a polynomial, the highest power first, which interpolates exp(-r) at 7 of Chebyshev's points
between -0.35 and 0.435; the error is 7e-9."""
_HIGH = 0.693359375  # log(2) to 10 bits: the product with an exponent is exact
_LOW = math.log(2) - _HIGH
_LAST_BITS = 1.5 * 2.0**23  # added to a small integer, it leaves the integer in the last bits
_OF_LAST_BITS = int(np.float32(_LAST_BITS).view(np.int32))
_ONE = int(np.float32(1).view(np.int32))


def _gaussian(x: Any, factor: float) -> Any:
    """Compute exp(-factor * x**2) for a factor of 1 or 1/2, by 20 operations; what is not a normal number becomes zero.

    The exponent is k log(2) - r. In r the square of the high part of x, and what is added to it, are exact, with and
    without fused operations, so the square has no rounding error. As k is nearest to the exponent of this square, r is
    up to 0.09 above log(2) / 2.

    A sum with a large number rounds k. It is read from the bits: the compiler cancels a number that is added and
    subtracted. A loop of few registers is as quick as its longest chain of operations, so this has few: what needs no k
    is apart, and the polynomial is summed by pairs.
    """
    high = high_part(x)
    exact, low = square(high), x - high
    if factor != 1:
        exact, low = exact * factor, low * factor
    bits = bitcast_convert_type(_LAST_BITS - exact * (1 / math.log(2)), np.dtype(np.int32))
    k = convert_element_type(bits - _OF_LAST_BITS, _single)
    r = (exact + k * _HIGH) + (low * (x + high) + k * _LOW)
    power = bitcast_convert_type(shift_left(bits, 23) + _ONE, _single)
    # Beyond the bound k is -127 or less, so the power of two is not a number of this formula.
    return where(abs(x) > math.sqrt(87.98 / factor), 0.0, polynomial_by_pairs(r, _EXP) * power)


real_lowering(ops.gaussian_p)(_by_precision(_gaussian, lambda x, factor: gaussian_by_exp(x, factor=factor)))

# Error functions -----------------------------------------------------------------------------------------------------

_ERFCX = (
    -0.0003351310054997738, -0.0005031885356767975, 0.0030741503137066135, -0.0012170981917805103, -0.0268350989246222,
    0.11952772121646693, -0.3104667595643524, 0.5902283656381713, -0.8833944583219713, 1.0740069070816418,
)  # fmt: skip
"""The coefficients of a polynomial in q = 1 - 6 t for t = 1 / (a + 3), the highest power first: exp(a**2) erfc(a) / t
at 10 of Chebyshev's points for ``a`` between 0 and 9.4; the error is 4e-9."""


def _tail(a: Any) -> Any:
    """Return exp(a**2) erfc(a), for ``a`` between 0 and 9.4."""
    t = 1 / (a + 3)
    return t * polynomial(1 - 6 * t, _ERFCX)


def _erfc_in_single(x: Any) -> Any:
    tail = _gaussian(x, 1.0) * _tail(minimum(abs(x), 9.4))
    return where(x < 0, 2 - tail, tail)


def _erfc_in_double(x: Any, out: Any) -> Any:
    """Correct ``out``, the compiler's erfc(x), for the rounding of the square in exp(-x**2).

    The correction is to first order in the rounding error. The derivative has the same, which the compiler computes
    once for both.
    """
    return where(x > 1, out - out * square_error(x), out)


def _ndtr_in_single(x: Any) -> Any:
    tail = _gaussian(x, 0.5) * _tail(minimum(abs(x) * math.sqrt(0.5), 9.4)) * 0.5
    return where(x < 0, tail, 1 - tail)


def _ndtr_in_double(x: Any) -> Any:
    """Return the normal distribution function, erfc(y) / 2 for y = -x / sqrt(2), corrected for rounding errors.

    Below x = -1 the errors of y and of x**2 are corrected. The last bit of y is set to zero: otherwise the compiler may
    use values of y in several places that are rounded differently.
    """
    y = without_last_bits(x * -math.sqrt(0.5), 1)
    value = _erfc(y) * 0.5
    size, large = clamp(1, -x, 60), clamp(math.sqrt(0.5), y, 60 * math.sqrt(0.5))
    high, high_large = high_part(size), high_part(large)
    rest = (size - high) * (size + high) * 0.5 - (large - high_large) * (large + high_large)
    error = square(high) * 0.5 - square(high_large) + rest
    return where(x < -1, value - value * error, value)


_erfc_of_singles = _by_precision(_erfc_in_single, _erfc_in_single)


@real_lowering(ops.erfc_p)
def _erfc_lowering(hlo: Builder, x: Value) -> Value:
    if x.dtype != np.float64:
        return _erfc_of_singles(hlo, x)
    out = hlo.op("chlo.erfc", [x], x.shape, x.dtype)
    return hlo.inline(formula(_erfc_in_double), x, out)


real_lowering(ops.ndtr_p)(_by_precision(_ndtr_in_single, _ndtr_in_double))
