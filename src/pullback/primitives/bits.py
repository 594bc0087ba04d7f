"""Operations on the bits of numbers: fewer bits of a float, and the high half of a product of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT, INTEGER, check_dtype
from pullback.primitives.declare import elementwise
from pullback.primitives.rules import batch_unary, jvp_linear

# Fewer bits of a float ---------------------------------------------------------------------------------------------


def reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round floats to fewer bits of exponent and mantissa; the dtype stays."""
    return reduce_precision_p.bind(x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


reduce_precision_p = Primitive("reduce_precision", elementwise=True, cost=Cost.SIMPLE, passes_nan=True)
reduce_precision_p.batch_rule = batch_unary(reduce_precision_p)
# Tangents and cotangents are rounded too, as a conversion to a narrower float and back would round them.
reduce_precision_p.jvp_rule = jvp_linear(reduce_precision_p)
reduce_precision_p.transpose(lambda ct, x, **bits: (reduce_precision_p.bind(ct, **bits),))


@reduce_precision_p.abstract_eval
def _reduce_precision_abstract_eval(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    check_dtype("reduce_precision", FLOAT, x.dtype)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ShapeError(
            "reduce_precision needs at least one exponent bit and a non-negative number of mantissa bits, got "
            "exponent_bits="
            f"{exponent_bits} and mantissa_bits={mantissa_bits}"
        )
    return ShapedArray(x.shape, x.dtype)


@reduce_precision_p.host
def _reduce_precision_host(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round floats to ``exponent_bits`` and ``mantissa_bits``, by NumPy: to nearest, ties to even.

    Overflow becomes infinity, and numbers below the smallest normal number become 0.
    """
    info = dtypes.finfo(x.dtype)
    if x.dtype.itemsize < 4:
        wide = _reduce_precision_host(
            x.astype(np.float32), exponent_bits=exponent_bits, mantissa_bits=min(mantissa_bits, info.nmant)
        )
        return wide.astype(x.dtype)
    values = np.asarray(x)
    integer = np.dtype(f"u{x.dtype.itemsize}")
    if mantissa_bits < info.nmant:
        dropped = integer.type(info.nmant - mantissa_bits)
        one = integer.type(1)
        bits = values.view(integer)
        odd = (bits >> dropped) & one
        rounded = ((bits + ((one << (dropped - one)) - one) + odd) >> dropped) << dropped
        values = np.where(np.isfinite(values), rounded.view(x.dtype), values)
    if exponent_bits < info.nexp:
        limit = 2.0 ** (2 ** (exponent_bits - 1))
        least = 2.0 ** (2 - 2 ** (exponent_bits - 1))
        size = np.abs(values)
        values = np.where(size >= limit, np.copysign(x.dtype.type(np.inf), values), values)
        values = np.where(size < least, np.copysign(x.dtype.type(0), values), values)
    return values[()]


@reduce_precision_p.lowering
def _reduce_precision_lowering(hlo: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return hlo.op("stablehlo.reduce_precision", [x], x.shape, x.dtype, attributes)


# The high half of a product ----------------------------------------------------------------------------------------


def _mulhi_host(x: Any, y: Any) -> Any:
    dtype = x.dtype if hasattr(x, "dtype") else y.dtype
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    if dtype.itemsize < 8:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return ((x.astype(wide) * y.astype(wide)) >> (8 * dtype.itemsize)).astype(dtype)[()]
    a, b = x.view(np.uint64), y.view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + ((a0 * b0) >> half)
    high = a1 * b1 + (middle >> half) + (((middle & low) + a0 * b1) >> half)
    if dtype.kind == "i":  # a negative number is its unsigned bits minus 2**64
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(dtype)[()]


def _mulhi_lowering(hlo: Any, x: Any, y: Any) -> Any:
    dtype = x.dtype
    if dtype.itemsize < 8:
        wide = np.dtype(f"{'i' if dtype.kind == 'i' else 'u'}{2 * dtype.itemsize}")
        bits = hlo.splat(8 * dtype.itemsize, x.shape, wide)
        product = hlo.elementwise("stablehlo.multiply", hlo.convert(x, wide), hlo.convert(y, wide))
        shift = "arithmetic" if dtype.kind == "i" else "logical"
        return hlo.convert(hlo.elementwise(f"stablehlo.shift_right_{shift}", product, bits), dtype)
    return hlo.inline(_mulhi_of_64_bits, x, y)


def _mulhi_of_64_bits(x: Any, y: Any) -> Any:
    dtype, unsigned = x.dtype, np.dtype(np.uint64)
    a, b = ops.bitcast_convert_type(x, unsigned), ops.bitcast_convert_type(y, unsigned)
    high, low = lambda v: ops.shift_right_logical_p.bind(v, 32), lambda v: ops.and_p.bind(v, 0xFFFFFFFF)
    add, mul = ops.add, ops.mul
    a1, a0, b1, b0 = high(a), low(a), high(b), low(b)
    middle = add(mul(a1, b0), high(mul(a0, b0)))
    out = add(mul(a1, b1), high(middle))
    carried = add(low(middle), mul(a0, b1))
    out = add(out, high(carried))
    if dtype.kind == "i":
        out = ops.sub(ops.sub(out, ops.where(ops.lt(x, 0), b, 0)), ops.where(ops.lt(y, 0), a, 0))
    return ops.bitcast_convert_type(out, dtype)


mulhi_p = elementwise(
    "mulhi", doc=("The high half of the bits of the product ``x * y`` of integers.", "2**30, 8", "2"),
    of=INTEGER, arity=2, host=_mulhi_host, hlo=_mulhi_lowering,
)  # fmt: skip
