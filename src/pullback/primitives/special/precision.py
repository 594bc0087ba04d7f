"""Evaluation of formulas in double precision, and a fast logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from pullback.backends.host.special import elementary
from pullback.core import dtypes
from pullback.core.array import SCALARS
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import elementwise
from pullback.primitives.elementwise import convert_element_type


def doubled(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that converts its operands to double precision, evaluates ``formula``, and rounds the result.

    The result has the precision of the operands.
    """

    def of_any(*operands: Any, **params: Any) -> Any:
        dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
        wide = np.dtype(np.complex128 if dtypes.is_complex(dtype) else np.float64)
        arrays = [shapes.full((), x, wide) if type(x) in SCALARS else convert_element_type(x, wide) for x in operands]
        return convert_element_type(formula(*arrays, **params), dtype)

    return of_any


# The logarithm -------------------------------------------------------------------------------------------------------

_ROOT_OF_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
_HIGH = math.floor(math.log(2) * 2**32) / 2**32  # the product with an exponent is exact
_LOW = float(Decimal(2).ln() - Decimal(_HIGH))


def _parts(x: Any) -> tuple[Any, Any]:
    """The k and f of positive numbers 2**k (1 + f), where 1 + f is between the roots of 1/2 and of 2."""
    bits = ops.bitcast_convert_type(x, np.dtype(np.int64))
    k = ops.shift_right_arithmetic_p.bind(ops.sub(bits, _ROOT_OF_HALF), 52)
    f = ops.sub(ops.bitcast_convert_type(ops.sub(bits, ops.shift_left_p.bind(k, 52)), x.dtype), 1)
    return convert_element_type(k, x.dtype), f


def _log_of_positive(x: Any) -> Any:
    """Compute log(x) for positive x = 2**k (1 + f), as k log(2) + 2 artanh(f / (2 + f)); the artanh is a series.

    The largest terms are added last, so that the error is below one ulp (as in the ``log`` of FreeBSD's msun, by Ng).
    """
    exponent, f = _parts(x)
    s = ops.div(f, ops.add(f, 2))
    square = ops.square(s)
    series = ops.mul(square, ops.polynomial(square, [2 / n for n in range(21, 1, -2)]))
    half = ops.mul(ops.mul(f, 0.5), f)
    small = s * (half + series) + exponent * _LOW
    return exponent * _HIGH + (f - (half - small))


_LOG_TO_SINGLE = (
    0.05235888516923783, -0.09804420067786203, 0.1004720511888933, -0.09945996186719662, 0.11006038270379548,
    -0.12495435324992145, 0.1429081173942899, -0.16667024572009081, 0.19999888139973632, -0.24999992728449305,
    0.3333333424920659, -0.5000000003595171, 0.9999999999874651,
)  # fmt: skip
"""The coefficients of a polynomial in f, highest power first, which interpolates log(1 + f) / f at 13 of Chebyshev's
points between the roots of 1/2 and of 2; the error is 2e-11."""


def log_to_single(x: Any) -> Any:
    """Compute the logarithm of positive, normal, finite numbers in double precision, accurate to single precision.

    It has no quotient, which the compiler would compute in a loop of its own, with all that the number is made of.
    """
    exponent, f = _parts(x)
    return exponent * math.log(2) + f * ops.polynomial(f, _LOG_TO_SINGLE)


_EXP_TO_SINGLE = (
    2.4876164022625967e-05, 0.00019915866926782682, 0.0013888821677630362, 0.008333266097949614, 0.041666666890957,
    0.16666666891045775, 0.49999999999797934, 0.9999999999797852, 1.0,
)  # fmt: skip
"""The coefficients of a polynomial, the highest power first, which interpolates exp at 9 of Chebyshev's points between
-log(2) / 2 and log(2) / 2; the error is 1e-12."""
_LAST_BIT_IS_ONE = 1.5 * 2.0**52
"""Added to a small integer, it leaves the integer in the last bits."""
_ONE = int(np.float64(1).view(np.int64))


def exp_to_single(x: Any) -> Any:
    """Compute exp(x) in double precision, accurate to single precision, for numbers between -700 and 700.

    Less than -700 counts as -700. In a large loop the compiler's own exponential is not vectorised, and has a quotient.
    """
    x = ops.max_p.bind(x, -700.0)
    k = ops.round_p.bind(ops.mul(x, 1 / math.log(2)))
    fraction = ops.polynomial(x - k * math.log(2), _EXP_TO_SINGLE)
    bits = ops.bitcast_convert_type(ops.add(k, _LAST_BIT_IS_ONE), np.dtype(np.int64))
    power = ops.bitcast_convert_type(ops.add(ops.shift_left_p.bind(bits, 52), _ONE), x.dtype)
    return ops.mul(fraction, power)


def _log_lowering(hlo: Any, x: Any) -> Any:
    return hlo.inline(_log_of_positive, x) if x.dtype == np.float64 else hlo.elementwise("stablehlo.log", x)


# The logarithm of positive, normal, finite numbers. In double precision it is compiled to arithmetic, which takes a
# tenth of the time of the compiler's logarithm.
log_of_positive_p = elementwise(
    "log_of_positive", of=FLOAT, host=elementary(np.log), hlo=_log_lowering, jvp=lambda t, x, ans: ops.div(t, x)
)
log_of_positive = log_of_positive_p.bind
