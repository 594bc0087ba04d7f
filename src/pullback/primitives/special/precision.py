"""Evaluation of formulas in double precision, and a fast logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

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


def _log_of_positive(x: Any) -> Any:
    """Compute log(x) for positive x = 2**k (1 + f), as k log(2) + 2 artanh(f / (2 + f)); the artanh is a series.

    The largest terms are added last, so that the error is below one ulp (as in the ``log`` of FreeBSD's msun, by Ng).
    """
    bits = ops.bitcast_convert_type(x, np.dtype(np.int64))
    k = ops.shift_right_arithmetic_p.bind(ops.sub(bits, _ROOT_OF_HALF), 52)
    f = ops.sub(ops.bitcast_convert_type(ops.sub(bits, ops.shift_left_p.bind(k, 52)), x.dtype), 1)
    exponent = convert_element_type(k, x.dtype)
    s = ops.div(f, ops.add(f, 2))
    square = ops.square(s)
    series = ops.mul(square, ops.polynomial(square, [2 / n for n in range(21, 1, -2)]))
    half = ops.mul(ops.mul(f, 0.5), f)
    small = s * (half + series) + exponent * _LOW
    return exponent * _HIGH + (f - (half - small))


def _log_lowering(hlo: Any, x: Any) -> Any:
    return hlo.inline(_log_of_positive, x) if x.dtype == np.float64 else hlo.elementwise("stablehlo.log", x)


# The logarithm of positive, normal, finite numbers. In double precision it is compiled to arithmetic, which takes a
# tenth of the time of the compiler's logarithm.
log_of_positive_p = elementwise(
    "log_of_positive", of=FLOAT, host=np.log, hlo=_log_lowering, jvp=lambda t, x, ans: ops.div(t, x)
)
log_of_positive = log_of_positive_p.bind
