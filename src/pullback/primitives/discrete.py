"""Comparisons, rounding and bits, element by element: operations that are constant almost everywhere.

:mod:`pullback.primitives.elementwise` has them too, for it is the vocabulary of rules.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback.backends import host, host_narrow
from pullback.core import dtypes
from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive, Rule
from pullback.core.types import ShapedArray
from pullback.primitives.checks import (
    ANY,
    BITS,
    FLOAT,
    INEXACT,
    INTEGER,
    ORDERED,
)
from pullback.primitives.declare import COMPOSED, elementwise
from pullback.primitives.rules import batch_unary, jvp_zero

_bool = np.dtype(bool)
_int32 = np.dtype(np.int32)


def _to_bool(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return _bool


# Comparisons -------------------------------------------------------------------------------------------------------


def _comparison(direction: str) -> Rule:
    return lambda hlo, x, y: hlo.compare(x, y, direction)


eq_p = elementwise("eq", of=ANY, arity=2, host=operator.eq, hlo=_comparison("EQ"), out=_to_bool)
ne_p = elementwise("ne", of=ANY, arity=2, host=operator.ne, hlo=_comparison("NE"), out=_to_bool)
lt_p = elementwise("lt", of=ORDERED, arity=2, host=operator.lt, hlo=_comparison("LT"), out=_to_bool)
le_p = elementwise("le", of=ORDERED, arity=2, host=operator.le, hlo=_comparison("LE"), out=_to_bool)
gt_p = elementwise("gt", of=ORDERED, arity=2, host=operator.gt, hlo=_comparison("GT"), out=_to_bool)
ge_p = elementwise("ge", of=ORDERED, arity=2, host=operator.ge, hlo=_comparison("GE"), out=_to_bool)

eq: Rule = eq_p.bind
gt: Rule = gt_p.bind
lt: Rule = lt_p.bind

# Rounding ----------------------------------------------------------------------------------------------------------

floor_p = elementwise("floor", of=FLOAT, host=np.floor, hlo="floor")
ceil_p = elementwise("ceil", of=FLOAT, host=np.ceil, hlo="ceil")
round_p = elementwise("round", of=FLOAT, host=host.round_, hlo="round_nearest_even")
nextafter_p = elementwise("nextafter", of=FLOAT, arity=2, host=np.nextafter, hlo=COMPOSED)
is_finite_p = elementwise(
    "is_finite", of=INEXACT, host=np.isfinite, hlo="is_finite", hlo_complex=COMPOSED, out=_to_bool
)


# Bits --------------------------------------------------------------------------------------------------------------

and_p = elementwise("and", of=BITS, arity=2, host=np.bitwise_and, hlo="and")
or_p = elementwise("or", of=BITS, arity=2, host=np.bitwise_or, hlo="or")
xor_p = elementwise("xor", of=BITS, arity=2, host=np.bitwise_xor, hlo="xor")
not_p = elementwise("not", of=BITS, host=np.invert, hlo="not")
shift_left_p = elementwise("shift_left", of=INTEGER, arity=2, host=host.shift_left, hlo="shift_left")
shift_right_logical_p = elementwise(
    "shift_right_logical", of=INTEGER, arity=2, host=host.shift_right_logical, hlo="shift_right_logical"
)
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic", of=INTEGER, arity=2, host=host.shift_right_arithmetic, hlo="shift_right_arithmetic"
)


def _population_count_xla(hlo: Any, x: Any) -> Any:
    """Of 2 and 4 bits the compiler counts those of the sign that it extends, too."""
    if x.dtype.kind != "V" or dtypes.is_unsigned(x.dtype):
        return hlo.same("stablehlo.popcnt", x)
    bits = hlo.bitcast(x, x.shape, np.dtype(getattr(dtypes, f"u{x.dtype.name}")))
    return hlo.convert(hlo.same("stablehlo.popcnt", bits), x.dtype)


population_count_p = elementwise("population_count", of=INTEGER, host=host.population_count, hlo=_population_count_xla)
gcd_p = elementwise("gcd", of=INTEGER, arity=2, host=np.gcd, hlo=COMPOSED)
clz_p = elementwise("clz", of=INTEGER, host=host.count_leading_zeros, hlo="count_leading_zeros")


def bitcast_convert_type(x: Any, dtype: Any) -> Any:
    """The bits of ``x`` read as another dtype of the same width."""
    return bitcast_convert_type_p.bind(x, new_dtype=dtype)


bitcast_convert_type_p = Primitive("bitcast_convert_type", keeps_weak_type=False)
bitcast_convert_type_p.host_rule = lambda x, *, new_dtype: x.view(new_dtype)
bitcast_convert_type_p.jvp_rule = jvp_zero(bitcast_convert_type_p)
bitcast_convert_type_p.batch_rule = batch_unary(bitcast_convert_type_p)


@bitcast_convert_type_p.lowering
def _bitcast_xla(hlo: Any, x: Any, *, new_dtype: np.dtype[Any]) -> Any:
    """Booleans have one bit in the compiler, and complex numbers have none but those of their parts."""
    shape, last = x.shape, len(x.shape)
    if dtypes.is_bool(x.dtype):
        x = hlo.convert(x, np.dtype(np.uint8))
    elif dtypes.is_complex(x.dtype):
        parts = [hlo.op(f"stablehlo.{part}", [x], shape, dtypes.to_real(x.dtype)) for part in ("real", "imag")]
        x = hlo.concatenate([hlo.reshape(part, (*shape, 1)) for part in parts], last)
    if dtypes.is_bool(new_dtype):
        return hlo.compare(x, hlo.splat(0, shape, x.dtype), "NE")
    if dtypes.is_complex(new_dtype):
        part_dtype = dtypes.to_real(new_dtype)
        pairs = hlo.bitcast(x, (*shape, 2), part_dtype)
        none = (0,) * last
        parts = [hlo.reshape(hlo.slice(pairs, (*none, i), (*shape, i + 1)), shape) for i in (0, 1)]
        return hlo.op("stablehlo.complex", parts, shape, new_dtype)
    return hlo.bitcast(x, shape, new_dtype)


@bitcast_convert_type_p.abstract_eval
def _bitcast_shape(x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
    if x.dtype.itemsize != new_dtype.itemsize:
        raise DtypeError(
            f"bitcast_convert_type needs dtypes of one width, got {dtypes.short_name(x.dtype)} and "
            f"{dtypes.short_name(new_dtype)}"
        )
    return ShapedArray(x.shape, new_dtype)


def _prepare_small_integers() -> None:
    """Rules that take integers of 2 and 4 bits, in place of those that need not look for them."""
    for p in (and_p, or_p, xor_p, not_p, gcd_p, shift_left_p):
        p.host_rule = host_narrow.in_eight_bits(_rule(p))
    for p in (shift_right_logical_p, population_count_p):
        p.host_rule = host_narrow.on_bits(_rule(p))
    shift_right_arithmetic_p.host_rule = host_narrow.with_sign(_rule(shift_right_arithmetic_p))
    clz_p.host_rule = host_narrow.leading_zeros(_rule(clz_p))


def _rule(p: Primitive) -> Rule:
    assert p.host_rule is not None
    return p.host_rule


dtypes.before_small_integers(_prepare_small_integers)
