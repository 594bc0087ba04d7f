"""Elementwise comparisons, rounding and bit operations, which are constant almost everywhere.

:mod:`pullback.primitives.elementwise` exports them too, since rules import all of their operations from there.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import narrow as host_narrow
from pullback.backends.host import rules as host
from pullback.core import dtypes
from pullback.core.errors import DtypeError, NotDifferentiableError, ShapeError
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, Rule
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import (
    ANY,
    BITS,
    FLOAT,
    INEXACT,
    INTEGER,
    ORDERED,
    Of,
)
from pullback.primitives.declare import COMPOSED, elementwise
from pullback.primitives.explicit_shardings import entries_of, refused
from pullback.primitives.large import compiled_from
from pullback.primitives.rules import sharding_rule

_bool = np.dtype(bool)
_int32 = np.dtype(np.int32)


def _to_bool(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return _bool


# Comparisons -------------------------------------------------------------------------------------------------------


def _comparison(name: str, of: Of, sentence: str, printed: str) -> Primitive:
    """Declare a comparison, such as ``lt``; Python and the compiler use the same name.

    Args:
      name: the name.
      of: a predicate on dtypes: the dtypes that the comparison accepts.
      sentence: the first sentence of the public docstring.
      printed: what the example in the public docstring prints for the operands 1 and 2.
    """
    return elementwise(
        name, doc=(sentence, "1.0, 2.0", printed),
        of=of, arity=2, host=getattr(operator, name), hlo=lambda hlo, x, y: hlo.compare(x, y, name.upper()),
        out=_to_bool, cost=Cost.LIGHT,
    )  # fmt: skip


eq_p = _comparison("eq", ANY, "Whether ``x`` and ``y`` are equal.", "False")
ne_p = _comparison("ne", ANY, "Whether ``x`` and ``y`` differ.", "True")
lt_p = _comparison("lt", ORDERED, "Whether ``x`` is less than ``y``.", "True")
le_p = _comparison("le", ORDERED, "Whether ``x`` is less than ``y`` or equal to it.", "True")
gt_p = _comparison("gt", ORDERED, "Whether ``x`` is greater than ``y``.", "False")
ge_p = _comparison("ge", ORDERED, "Whether ``x`` is greater than ``y`` or equal to it.", "False")

eq: Rule = eq_p.bind
gt: Rule = gt_p.bind
lt: Rule = lt_p.bind

# Rounding ----------------------------------------------------------------------------------------------------------

floor_p = elementwise(
    "floor", doc=("The largest integer not above ``x``.", "-2.5", "-3.0"),
    of=FLOAT, host=np.floor, hlo="floor",
    passes_nan=True,
)  # fmt: skip
ceil_p = elementwise(
    "ceil", doc=("The smallest integer not below ``x``.", "-2.5", "-2.0"),
    of=FLOAT, host=np.ceil, hlo="ceil",
    passes_nan=True,
)  # fmt: skip
round_p = elementwise("round", passes_nan=True, of=FLOAT, host=host.round_, hlo="round_nearest_even")


def _nextafter_lowering(hlo: Any, x: Any, y: Any) -> Any:
    """Write the float after ``x`` towards ``y``: its bits, as an integer, plus or minus one.

    The compiler's own operation, which serves for floats of 8 bits, compares floats, so that it takes subnormal numbers
    for zeros on CPUs; and it becomes twice as many instructions.
    """
    if x.dtype.itemsize == 1:
        return hlo.op("chlo.next_after", [x, y], x.shape, x.dtype)
    integer, shape = np.dtype(f"i{x.dtype.itemsize}"), x.shape
    largest, infinity = int(np.iinfo(integer).max), int(np.array(np.inf, x.dtype).view(integer))
    size, infinite, sign = (hlo.splat(n, shape, integer) for n in (largest, infinity, -largest - 1))
    one, zero, minus_one = (hlo.splat(n, shape, integer) for n in (1, 0, -1))
    both, either, exclusive = (partial(hlo.elementwise, f"stablehlo.{name}") for name in ("and", "or", "xor"))
    from_, to = hlo.bitcast(x, shape, integer), hlo.bitcast(y, shape, integer)
    size_from, size_to = both(from_, size), both(to, size)
    towards = exclusive(to, both(from_, sign))  # negative if the signs differ
    step = hlo.select(hlo.compare(towards, size_from, "EQ"), zero, minus_one)
    step = hlo.select(hlo.compare(towards, size_from, "GT"), one, step)
    from_zero = either(both(to, sign), hlo.elementwise("stablehlo.minimum", size_to, one))
    bits = hlo.elementwise("stablehlo.add", from_, step)
    bits = hlo.select(hlo.compare(size_from, zero, "EQ"), from_zero, bits)
    is_nan = hlo.compare(hlo.elementwise("stablehlo.maximum", size_from, size_to), infinite, "GT")
    return hlo.bitcast(hlo.select(is_nan, size, bits), shape, x.dtype)


nextafter_p = elementwise(
    "nextafter", doc=("The float next to ``x`` towards ``y``.", "0.0, 1.0", "1e-45"),
    of=FLOAT, arity=2, host=np.nextafter, hlo=_nextafter_lowering,
    jvp=(lambda t, x, y, ans: shapes.broadcast_to(t, ans.shape), None),
)  # fmt: skip
compiled_from(nextafter_p, 500_000)  # 1,000,000: 2311 / 397
is_finite_p = elementwise(
    "is_finite", doc=("Whether ``x`` is neither infinite nor NaN.", "1.0", "True"),
    of=INEXACT, host=np.isfinite, hlo="is_finite", hlo_complex=COMPOSED, out=_to_bool,
)  # fmt: skip


# Bits --------------------------------------------------------------------------------------------------------------


def _bitwise(name: str, host: Any, doc: tuple[str, str, str], arity: int = 2) -> Primitive:
    return elementwise(name, lax=f"bitwise_{name}", doc=doc, of=BITS, arity=arity, host=host, hlo=name, cost=Cost.LIGHT)


and_p = _bitwise("and", np.bitwise_and, ("The conjunction of the bits, or of booleans.", "6, 3", "2"))
or_p = _bitwise("or", np.bitwise_or, ("The disjunction of the bits, or of booleans.", "6, 3", "7"))
xor_p = _bitwise("xor", np.bitwise_xor, ("The exclusive disjunction of the bits, or of booleans.", "6, 3", "5"))
not_p = _bitwise("not", np.invert, ("The bits inverted, or the negation of booleans.", "6", "-7"), 1)
shift_left_p = elementwise(
    "shift_left", doc=("The bits of ``x`` shifted to the left by ``y`` places.", "1, 3", "8"),
    of=INTEGER, arity=2, host=host.shift_left, hlo="shift_left",
)  # fmt: skip
shift_right_logical_p = elementwise(
    "shift_right_logical", doc=("The bits of ``x`` shifted to the right by ``y`` places; zeros come in.", "8, 3", "1"),
    of=INTEGER, arity=2, host=host.shift_right_logical, hlo="shift_right_logical",
)  # fmt: skip
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic",
    doc=("The bits of ``x`` shifted to the right by ``y`` places; the sign stays.", "-8, 1", "-4"),
    of=INTEGER, arity=2, host=host.shift_right_arithmetic, hlo="shift_right_arithmetic",
)  # fmt: skip


def _of_bits(hlo: Any, operation: str, x: Any) -> Any:
    """Emit the elementwise ``operation`` on the integer ``x`` read as unsigned, with a result in the dtype of ``x``.

    For signed integers the compiler would extend the sign to 8 or 64 bits.
    """
    if dtypes.is_unsigned(x.dtype):
        return hlo.elementwise(operation, x)
    name = f"u{x.dtype.name}"
    bits = hlo.bitcast(x, x.shape, np.dtype(name if x.dtype.kind == "i" else getattr(dtypes, name)))
    return hlo.convert(hlo.elementwise(operation, bits), x.dtype)


def _population_count_lowering(hlo: Any, x: Any) -> Any:
    narrow = x.dtype.kind == "V"  # the compiler sign-extends integers of 2 and 4 bits
    return _of_bits(hlo, "stablehlo.popcnt", x) if narrow else hlo.elementwise("stablehlo.popcnt", x)


def _clz_lowering(hlo: Any, x: Any) -> Any:
    """Emit a count of leading zero bits, of ``x`` as an unsigned integer.

    For a signed constant the compiler would count in 64 bits.
    """
    return _of_bits(hlo, "stablehlo.count_leading_zeros", x)


population_count_p = elementwise(
    "population_count", doc=("Count the bits that are set in each integer.", "7", "3"),
    of=INTEGER, host=host.population_count, hlo=_population_count_lowering,
)  # fmt: skip
gcd_p = elementwise("gcd", of=INTEGER, arity=2, host=np.gcd, hlo=COMPOSED)
clz_p = elementwise(
    "clz", doc=("Count the zeros before the first bit that is set in each integer.", "1", "31"),
    of=INTEGER, host=host.count_leading_zeros, hlo=_clz_lowering,
)  # fmt: skip
compiled_from(clz_p, 500_000)  # 1,000,000: 6564 / 384


def bitcast_convert_type(x: Any, dtype: Any) -> Any:
    """Reinterpret the bits of ``x`` as ``dtype``.

    If ``dtype`` is narrower, the result has a new last axis, for the numbers in one element. If it is wider, the last
    axis of ``x`` is merged into one element.
    """
    return bitcast_convert_type_p.bind(x, new_dtype=dtype)


bitcast_convert_type_p = Primitive("bitcast_convert_type", keeps_weak_type=False, cost=Cost.SIMPLE, passes_nan=True)


@bitcast_convert_type_p.jvp
def _bitcast_jvp(primals: Any, tangents: Any, *, new_dtype: np.dtype[Any]) -> Any:
    """Return the result of a bitcast and its tangent: unchanged for the same dtype, zero for a discrete new dtype.

    Raise for a different float or complex dtype, since the derivative would be lost.
    """
    (x,), (t,) = primals, tangents
    if x.dtype == new_dtype:
        return x, t
    if dtypes.is_inexact(new_dtype):
        raise NotDifferentiableError(
            f"the bits of an array of {dtypes.short_name(x.dtype)}, whose derivative is being taken, would be read "
            f"as {dtypes.short_name(new_dtype)}, and the derivative would be lost. To convert numbers use "
            f"astype(...); to read the bits, stop the derivative first: lax.stop_gradient(x)."
        )
    return bitcast_convert_type(x, new_dtype), ZERO


@sharding_rule(bitcast_convert_type_p)
def _bitcast_sharding(operands: Any, results: Any, *, new_dtype: np.dtype[Any]) -> Any:
    """Return the entries of the operand; the last axis may be new, or disappear if it is not sharded."""
    entries, rank = list(entries_of(operands[0])), len(results[0].shape)
    if any(entries[rank:]):
        raise refused(bitcast_convert_type_p, operands, 0, rank)
    return [[*entries[:rank], *[None] * (rank - len(entries))]]


@bitcast_convert_type_p.host
def _bitcast_host(x: Any, *, new_dtype: np.dtype[Any]) -> Any:
    if x.dtype.itemsize == new_dtype.itemsize:
        return x.view(new_dtype)
    shape = _bitcast_abstract_eval(ShapedArray(x.shape, x.dtype), new_dtype=new_dtype).shape
    return np.frombuffer(np.ascontiguousarray(x).tobytes(), new_dtype).reshape(shape)


@bitcast_convert_type_p.batch
def _bitcast_batch(axis: MappedAxis, args: Any, dims: Any, *, new_dtype: np.dtype[Any]) -> Any:
    (x,), (d,) = args, dims
    if new_dtype.itemsize > x.dtype.itemsize:  # the last axis disappears
        x, d = shapes.moveaxis(x, d, 0), 0
    return bitcast_convert_type(x, new_dtype), d


@bitcast_convert_type_p.lowering
def _bitcast_lowering(hlo: Any, x: Any, *, new_dtype: np.dtype[Any]) -> Any:
    """Emit a bitcast; convert booleans to bytes first, and complex numbers to pairs of floats.

    In the compiler booleans have one bit, and complex numbers have no bitcast.
    """
    shape, last = x.shape, len(x.shape)
    if x.dtype.itemsize != new_dtype.itemsize:
        return hlo.bitcast(x, hlo.result.shape, new_dtype)
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
def _bitcast_abstract_eval(x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
    old, new = x.dtype.itemsize, new_dtype.itemsize
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if any(dtypes.is_bool(d) or dtypes.is_complex(d) for d in (x.dtype, new_dtype)):
        raise DtypeError(
            "bitcast_convert_type takes booleans and complex numbers to dtypes of their width only, got "
            f"{dtypes.short_name(x.dtype)} and {dtypes.short_name(new_dtype)}"
        )
    if old > new:
        return ShapedArray((*x.shape, old // new), new_dtype)
    if not x.ndim or x.shape[-1] * old != new:
        raise ShapeError(
            f"bitcast_convert_type to {dtypes.short_name(new_dtype)} takes arrays whose last axis has size "
            f"{new // old}, for {dtypes.short_name(x.dtype)}; got shape {x.shape}"
        )
    return ShapedArray(x.shape[:-1], new_dtype)


def _prepare_small_integers() -> None:
    """Make the host rules of bitwise operations, shifts, bit counts and gcd accept integers of 2 and 4 bits too."""
    for p in (and_p, or_p, xor_p, not_p, gcd_p, shift_left_p):
        p.host_rule = host_narrow.in_eight_bits(_rule(p))
    for p in (shift_right_logical_p, population_count_p):
        p.host_rule = host_narrow.on_bits(_rule(p))
    shift_right_arithmetic_p.host_rule = host_narrow.with_sign(_rule(shift_right_arithmetic_p))
    clz_p.host_rule = host_narrow.leading_zeros(_rule(clz_p))


def _rule(p: Primitive) -> Rule:
    assert p.host_rule is not None
    return p.host_rule


runtime.small_integers_requested.append(_prepare_small_integers)
