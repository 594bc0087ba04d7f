"""Reductions and cumulative operations: the combination of elements along axes, or all of its partial results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import native
from pullback.backends.host import reductions as host
from pullback.backends.host.narrow import in_eight_bits
from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.dims import any_symbolic
from pullback.core.errors import AxisError, DtypeError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import pad
from pullback.primitives.axis_maps import reduces, works_along
from pullback.primitives.checks import (
    ANY,
    BITS,
    FLOAT,
    INEXACT,
    NUMBER,
    ORDERED,
    Of,
    broadcast_shape,
    check_dtype,
    check_positions,
    same_dtype,
)
from pullback.primitives.explicit_shardings import by_axes, entries_of, refused
from pullback.primitives.large import compiled_from
from pullback.primitives.masked import masked_by_amending
from pullback.primitives.rules import jvp_linear, jvp_zero, sharding_rule
from pullback.primitives.sums import (
    Element,
    Start,
    combined,
    reduce_sum,
    reduce_sum_p,
    reduced_shape,
    reduction,
    sum_to,
)

# Reductions --------------------------------------------------------------------------------------------------------


def reduce_prod(x: Any, axes: Sequence[int]) -> Any:
    """Return the product of the elements of ``x`` over ``axes``."""
    return reduce_prod_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_max(x: Any, axes: Sequence[int]) -> Any:
    """Return the largest element over ``axes``, or NaN if any element is NaN.

    Complex numbers are compared by their real parts, then by their imaginary parts.
    """
    return reduce_max_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_min(x: Any, axes: Sequence[int]) -> Any:
    """Return the smallest element over ``axes``, or NaN if any element is NaN.

    Complex numbers are compared by their real parts, then by their imaginary parts.
    """
    return reduce_min_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_and(x: Any, axes: Sequence[int]) -> Any:
    """Return the bitwise conjunction (and) of the elements of ``x`` over ``axes``."""
    return reduce_and_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_or(x: Any, axes: Sequence[int]) -> Any:
    """Return the bitwise disjunction (or) of the elements of ``x`` over ``axes``."""
    return reduce_or_p.bind(x, axes=tuple(axes)) if axes else x


def _reduce_bits(ufunc: np.ufunc) -> Callable[..., Any]:
    def rule(x: Any, *, axes: Shape) -> Any:
        if x.dtype.isbuiltin == 2:  # NumPy has no such operation on integers of less than a byte
            return ufunc.reduce(x.astype(np.int8), axes, np.int8).astype(x.dtype)
        return ufunc.reduce(x, axes, x.dtype)

    return rule


def _reduce_extreme(ufunc: np.ufunc, largest: bool) -> Callable[..., Any]:
    kind = "largest" if largest else "least"

    def rule(x: Any, *, axes: Shape) -> Any:
        if x.size >= host.LARGE:
            out = host.reduce_extreme(x, axes, kind, ufunc)
        else:
            initial = {} if x.size else {"initial": extreme(x.dtype, largest=not largest)}
            out = ufunc.reduce(x, axes, **initial)
        return out if out.dtype == x.dtype else out.astype(x.dtype)  # integers of less than a byte become bytes

    native.REDUCTIONS[rule] = kind
    return rule


def _extreme_of_two(operation: str, primitive: Primitive) -> Callable[..., Any]:
    """Make a lowering rule for the larger or smaller of two elements.

    The rule emits the StableHLO ``operation``, "maximum" or "minimum"; for complex elements it emits ``primitive``.
    """

    def rule(hlo: Any, a: Any, b: Any) -> Any:
        if dtypes.is_complex(a.dtype):
            return hlo.inline(primitive.bind, a, b)
        return hlo.elementwise(f"stablehlo.{operation}", a, b)

    return rule


def extreme(dtype: np.dtype[Any], *, largest: bool) -> Any:
    """Return the largest value of a dtype if ``largest``, else the smallest value.

    The largest value is the minimum over no elements, and the smallest value the maximum over no elements.
    """
    if dtypes.is_bool(dtype):
        return np.bool_(largest)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return dtype.type(info.max if largest else info.min)
    if dtypes.is_complex(dtype):
        return dtype.type(complex(math.inf, math.inf) if largest else complex(-math.inf, -math.inf))
    infinite = dtype.type(math.inf if largest else -math.inf)
    return infinite if np.isinf(np.float32(infinite)) else dtypes.finfo(dtype).max * (1 if largest else -1)


def _every_bit(dtype: np.dtype[Any]) -> Any:
    if dtypes.is_bool(dtype):
        return np.True_
    info = dtypes.iinfo(dtype)
    return dtype.type(info.max if info.min == 0 else -1)


_larger, _smaller = _extreme_of_two("maximum", ops.max_p), _extreme_of_two("minimum", ops.min_p)
_lowest, _highest = partial(extreme, largest=False), partial(extreme, largest=True)

reduce_prod_p = reduction("reduce_prod", of=NUMBER, host=host.reduce_prod, hlo="multiply", start=lambda dtype: 1)
reduce_max_p = reduction(
    "reduce_max", of=ANY, host=_reduce_extreme(np.maximum, largest=True), hlo=_larger, start=_lowest, passes_nan=True
)
reduce_min_p = reduction(
    "reduce_min", of=ANY, host=_reduce_extreme(np.minimum, largest=False), hlo=_smaller, start=_highest, passes_nan=True
)
reduce_and_p = reduction("reduce_and", of=BITS, host=_reduce_bits(np.bitwise_and), hlo="and", start=_every_bit)
reduce_or_p = reduction("reduce_or", of=BITS, host=_reduce_bits(np.bitwise_or), hlo="or", start=lambda dtype: 0)
reduce_xor_p = reduction("reduce_xor", of=BITS, host=_reduce_bits(np.bitwise_xor), hlo="xor", start=lambda dtype: 0)

for _p in (reduce_and_p, reduce_or_p, reduce_xor_p):
    _p.jvp_rule = jvp_zero(_p)


def _bits_sharding(p: Primitive, operands: Any, results: Any, *, axes: Shape) -> Any:
    """Return the entries of the result. The compiler cannot combine the bits of integers over devices."""
    (x,) = operands
    for axis in axes:
        if entries_of(x)[axis] is not None and (p is reduce_xor_p or not dtypes.is_bool(x.dtype)):
            raise refused(p, operands, 0, axis)
    return by_axes(p, operands, {"axes": axes}, results)


for _p in (reduce_and_p, reduce_or_p, reduce_xor_p):
    sharding_rule(_p)(partial(_bits_sharding, _p))


def is_extreme(x: Any, extreme: Any) -> Any:
    """Return 1 where an element of ``x`` equals ``extreme`` or is NaN, and 0 elsewhere, in the dtype of ``x``."""
    hit = ops.or_p.bind(ops.eq(x, extreme), ops.ne_p.bind(x, x))
    return ops.convert_element_type(hit, x.dtype)


def _extreme_jvp(p: Primitive) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, *, axes: Shape) -> Any:
        """Return the maximum or minimum over ``axes``, and its tangent.

        The tangent is the mean of the tangents of all elements that equal the maximum or minimum.
        """
        (x,), (t,) = primals, tangents
        x = ops.materialized(x)
        ans = p.bind(x, axes=axes)
        hit = is_extreme(x, shapes.expand_dims(ans, axes))
        shared = reduce_sum_p.bind(ops.mul(t, hit), axes=axes)
        return ans, ops.div(shared, reduce_sum_p.bind(hit, axes=axes))

    return rule


reduce_max_p.jvp_rule = _extreme_jvp(reduce_max_p)
reduce_min_p.jvp_rule = _extreme_jvp(reduce_min_p)


@reduce_prod_p.jvp
def _reduce_prod_jvp(primals: Any, tangents: Any, *, axes: Shape) -> Any:
    (x,), (t,) = primals, tangents
    ans = reduce_prod_p.bind(x, axes=axes)
    if not axes or x.size == 0:
        return ans, reduce_sum(t, axes)
    return ans, reduce_sum_p.bind(ops.mul(t, product_of_others(x, axes)), axes=axes)


def product_of_others(x: Any, axes: Shape) -> Any:
    """Return, for each element, the product of all other elements over ``axes``.

    It is computed without division, which would fail for zeros.
    """
    shape = x.shape
    is_quick = x.size >= host.LARGE or host.has_products_of_others(x.dtype)
    if type(x) is ArrayImpl and is_quick and x.dtype.char in "fdFD" and state.trace.quick:
        return ArrayImpl(state.silently(host.product_of_others, x._value, axes), x.weak_type)
    if len(axes) == 1:
        (axis,) = axes
        before = shift(cumprod(x, axis), axis, 1)
        after = shift(cumprod(x, axis, reverse=True), axis, 1, reverse=True)
        return ops.mul(before, after)
    order = [*(i for i in range(len(shape)) if i not in axes), *axes]
    moved = shapes.transpose(x, order)
    other_sizes = moved.shape[: len(shape) - len(axes)]
    flat = shapes.reshape(moved, (*other_sizes, math.prod(shape[a] for a in axes)))
    others = product_of_others(flat, (len(other_sizes),))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return shapes.transpose(shapes.reshape(others, moved.shape), inverse)


# Euclidean norms -----------------------------------------------------------------------------------------------------


def norm(x: Any, axes: Sequence[int]) -> Any:
    """Return the square root of the sum of squares over ``axes``, without overflow; its derivative at zero is zero."""
    return norm_p.bind(x, axes=tuple(axes))


norm_p = Primitive("norm", cost=Cost.SIMPLE)
norm_p.host_rule = host.norm
reduces(norm_p)


@norm_p.abstract_eval
def _norm_abstract_eval(x: ShapedArray, *, axes: Shape) -> ShapedArray:
    check_dtype("norm", INEXACT, x.dtype)
    return ShapedArray(reduced_shape("norm", x.shape, axes), dtypes.to_real(x.dtype))


@norm_p.jvp
def _norm_jvp(primals: Any, tangents: Any, *, axes: Shape) -> Any:
    (x,), (t,) = primals, tangents
    ans = norm(x, axes)
    zero = ops.eq(ans, 0)
    size = ops.convert_element_type(ops.where(zero, 1, ans), x.dtype)
    direction = ops.div(x, shapes.expand_dims(size, axes) if axes else size)
    along = ops.mul(t, ops.conj(direction))
    along = ops.real(along) if dtypes.is_complex(x.dtype) else along
    return ans, ops.where(zero, 0, reduce_sum(along, axes))


@norm_p.lowering
def _norm_lowering(hlo: Any, x: Any, *, axes: Shape) -> Any:
    """Emit the norm over ``axes``, without overflow of the squares.

    It is computed in double precision; doubles are divided by the largest element before. Many numbers in single
    precision are squared in single precision first; in double precision only if the sum of a row's squares is out of
    the range where none that matters overflows or underflows.
    """
    wide, single, count = np.dtype(np.float64), np.dtype(np.float32), math.prod(x.shape[a] for a in axes)

    def formula(x: Any) -> Any:
        size = ops.abs(x) if dtypes.is_complex(x.dtype) else x
        if size.dtype != wide:
            total = reduce_sum(ops.square(ops.convert_element_type(size, wide)), axes)
            return ops.convert_element_type(ops.sqrt(total), size.dtype)
        largest = reduce_max(ops.abs(size), axes)
        scale = ops.where(ops.and_p.bind(ops.gt(largest, 0), ops.is_finite_p.bind(largest)), largest, 1)
        scaled = ops.div(size, shapes.expand_dims(scale, axes) if axes else scale)
        return ops.mul(scale, ops.sqrt(reduce_sum(ops.square(scaled), axes)))

    is_last = sorted(axes) == list(range(x.ndim - len(axes), x.ndim))  # along others the compiler adds one by one
    if x.dtype != single or not is_last or any_symbolic(x.shape):
        return hlo.inline(formula, x)
    if math.prod(x.shape) < _MANY_SQUARES or count < _LONG_ROW:
        return hlo.inline(formula, x)
    total = hlo.inline(lambda x: reduce_sum(ops.square(x), axes), x)
    usual = lambda t: ops.and_p.bind(ops.gt(t, 1e-30 * count), ops.is_finite_p.bind(t))
    is_extreme = hlo.inline(lambda t: ops.not_p.bind(usual(t)), total)
    return hlo.amended(is_extreme, hlo.inline(ops.sqrt, total), lambda _: hlo.inline(formula, x))


_MANY_SQUARES = 1 << 15
"""The least numbers whose squares are added in single precision: those of fewer take less time than a branch."""
_LONG_ROW = 128
"""The least numbers in a row, likewise: those of short rows are added one by one, and take as long in double."""

# Indices of extremes -----------------------------------------------------------------------------------------------


def argmax(x: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first largest element along an axis, or of the first NaN."""
    return argmax_p.bind(x, axes=(axis,), index_dtype=np.dtype(index_dtype))


def argmin(x: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first smallest element along an axis, or of the first NaN."""
    return argmin_p.bind(x, axes=(axis,), index_dtype=np.dtype(index_dtype))


def _argument_of_extreme(name: str, find: Callable[..., Any], direction: str) -> Primitive:
    p = Primitive(name, keeps_weak_type=False, cost=Cost.SIMPLE, passes_nan=True)
    p.jvp_rule = jvp_zero(p)
    reduces(p)

    @p.host
    def host_rule(x: Any, *, axes: Shape, index_dtype: np.dtype[Any]) -> Any:
        check_positions(name, x.shape[axes[0]] - 1, index_dtype)
        return find(x if x.dtype.kind != "V" else x.astype(np.float32), *axes).astype(index_dtype)

    @p.abstract_eval
    def shape(x: ShapedArray, *, axes: Shape, index_dtype: np.dtype[Any]) -> ShapedArray:
        check_dtype(name, ORDERED, x.dtype)
        if not dtypes.is_integer(index_dtype):
            raise DtypeError(f"{name}: index_dtype must be an integer type, got {dtypes.short_name(index_dtype)}")
        if len(axes) != 1:
            raise ShapeError(f"{name} takes one axis, got {axes}")
        out = reduced_shape(name, x.shape, axes)
        check_positions(name, x.shape[axes[0]] - 1, index_dtype)
        if x.shape[axes[0]] == 0:
            raise ShapeError(f"{name}: axis {axes[0]} of an array of shape {x.shape} is empty")
        return ShapedArray(out, index_dtype)

    @p.lowering
    def lowering(hlo: Any, x: Any, *, axes: Shape, index_dtype: np.dtype[Any]) -> Any:
        from pullback.backends.hlo.sorting import ordered

        keys = ordered(hlo, x, nan_last=direction == "GT")
        position = np.dtype(np.int32 if x.shape[axes[0]] < 2**31 else np.int64)
        kinds = [((), keys.dtype), ((), position)]
        body = hlo.region([*kinds, *kinds], partial(_write_better, hlo, direction))
        worst = hlo.number(extreme(keys.dtype, largest=direction == "LT"), keys.dtype)
        operands = [keys, hlo.iota(x.shape, axes[0], position), worst, hlo.number(0, position)]
        results = [(hlo.result.shape, dtype) for _, dtype in kinds]
        out = hlo.multi_result("stablehlo.reduce", operands, results, f"dimensions = {hlo.integers(axes)}", [body])[1]
        return hlo.convert(out, index_dtype)

    return p


def _write_better(hlo: Any, direction: str, x: Any, i: Any, y: Any, j: Any) -> list[Any]:
    """Emit the better of the integers ``x`` and ``y``, then the index of that one, ``i`` or ``j``.

    The better one is the smaller for ``direction`` "LT", and the larger for "GT"; of equal integers, the one with the
    lower index.
    """
    first = hlo.elementwise("stablehlo.and", hlo.compare(x, y, "EQ"), hlo.compare(i, j, "LT"))
    better = hlo.elementwise("stablehlo.or", hlo.compare(x, y, direction), first)
    return [hlo.select(better, x, y), hlo.select(better, i, j)]


argmax_p = _argument_of_extreme("argmax", np.argmax, "GT")
argmin_p = _argument_of_extreme("argmin", np.argmin, "LT")


# Cumulative operations ---------------------------------------------------------------------------------------------


def cumsum(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return, for each position along ``axis``, the sum of the elements up to it, or from it on if ``reverse``."""
    return cumsum_p.bind(x, axis=axis, reverse=reverse)


def cumprod(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return, for each position along ``axis``, the product of the elements up to it, or from it on if ``reverse``."""
    return cumprod_p.bind(x, axis=axis, reverse=reverse)


def cummax(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return, for each position along ``axis``, the largest element up to it, or from it on if ``reverse``."""
    return cummax_p.bind(x, axis=axis, reverse=reverse)


def cummin(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return, for each position along ``axis``, the smallest element up to it, or from it on if ``reverse``."""
    return cummin_p.bind(x, axis=axis, reverse=reverse)


def cumlogsumexp(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return, for each position along ``axis``, log(sum(exp(...))) of the elements up to it, or from it on.

    ``reverse`` selects the elements from the position on.
    """
    return cumlogsumexp_p.bind(x, axis=axis, reverse=reverse)


def cumulative(name: str, *, of: Of, ufunc: np.ufunc, lowering: Callable[..., Any], **traits: Any) -> Primitive:
    """Declare a cumulative operation: it returns all partial results of a reduction along one axis.

    Args:
      name: the name of the primitive.
      of: a predicate on dtypes: the dtypes that the operation accepts.
      ufunc: the NumPy function of two elements by which to reduce.
      lowering: the lowering rule.
      **traits: further traits of the primitive.
    """
    p = Primitive(name, **traits)
    p.host_rule = partial(host.accumulate, ufunc)
    p.lowering_rule = lowering
    works_along(p, "axis")

    @p.abstract_eval
    def shape(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_dtype(name, of, x.dtype)
        if not 0 <= axis < x.ndim:
            raise AxisError(f"{name}: axis {axis} is out of bounds for an array of shape {x.shape}")
        return ShapedArray(x.shape, x.dtype)

    return p


def _lowered_cumulative(operation: Element, start: Start) -> Callable[..., Any]:
    """Return a lowering rule that computes narrow floats in float32, as the host does.

    A loop that reads and writes narrow floats converts whole arrays at each step: the cumulative sums of 120 rows of
    120 numbers in bfloat16 took 107 ms, and take 0.2.
    """

    def rule(hlo: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        from pullback.backends.hlo.recurrences import carried_dtype, cumulate

        combine, wide = partial(combined, operation), hlo.convert(x, carried_dtype(x.dtype))
        out = cumulate(hlo, wide, combine, start(wide.dtype), axis=axis, reverse=reverse, sums=operation == "add")
        return hlo.convert(out, x.dtype)

    return rule


def _neutral_of_sum(dtype: np.dtype[Any]) -> Any:
    """Return the zero of ``dtype`` to start a sum with: -0 if the dtype has it, since 0 + -0 would be 0."""
    return dtype.type(complex(-0.0, -0.0) if dtypes.is_complex(dtype) else -0.0 if dtypes.is_float(dtype) else 0)


def _cumlogsumexp_lowering(hlo: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    from pullback.backends.hlo.recurrences import carried_dtype

    wide = hlo.convert(x, carried_dtype(x.dtype))
    return hlo.convert(hlo.inline(partial(_scaled_cumlogsumexp, axis=axis, reverse=reverse), wide), x.dtype)


def _scaled_cumlogsumexp(x: Any, axis: int, reverse: bool) -> Any:
    """Return the cumulative log-sum-exp, scaled by the cumulative maximum z to prevent overflow.

    The result is z[k] + log s[k], where s[k] = exp(z[k-1] - z[k]) s[k-1] + exp(x[k] - z[k]). The recurrences for z and
    s are sequential, but the exponentials and logarithms are computed for whole arrays.
    """
    z = cummax(x, axis, reverse)
    decay, added = _exp_of_difference(shift(z, axis, -math.inf, reverse), z), _exp_of_difference(x, z)
    return ops.add(z, ops.log(linear_recurrence(decay, added, axis, reverse)))


def complex_cumlogsumexp(x: Any, axis: int, reverse: bool) -> Any:
    """The cumulative log-sum-exp of complex numbers, scaled by the cumulative maximum of the real parts."""
    size = ops.stop_gradient_p.bind(ops.real(x))
    z = cummax(size, axis, reverse)
    decay = _exp_of_difference(shift(z, axis, -math.inf, reverse), z)
    missing = ops.eq(size, -math.inf)  # the phase of these has no meaning
    differences = ops.where(missing, 0, ops.sub(x, ops.convert_element_type(z, x.dtype)))
    added = ops.where(missing, 0, ops.exp(differences))
    total = linear_recurrence(ops.convert_element_type(decay, x.dtype), added, axis, reverse)
    return ops.add(ops.convert_element_type(ops.where(ops.eq(z, -math.inf), 0, z), x.dtype), ops.log(total))


cumsum_p = cumulative(
    "cumsum", of=NUMBER, ufunc=np.add, lowering=_lowered_cumulative("add", _neutral_of_sum), cost=Cost.SIMPLE
)


def _is_fast_on_host(x: Any, *, axis: int, reverse: bool) -> bool:
    """Whether the host sums up as fast as a compiled program: along the last axis, by the module in C."""
    return axis == x.ndim - 1 and native.loops is not None


compiled_from(cumsum_p, 500_000, unless=_is_fast_on_host)  # 1000 x 1000, along the first axis: 7900 / 812
cumprod_p = cumulative(
    "cumprod", of=NUMBER, ufunc=np.multiply, lowering=_lowered_cumulative("multiply", lambda dtype: 1), cost=Cost.SIMPLE
)
cummax_p = cumulative(
    "cummax",
    of=ANY,
    ufunc=np.maximum,
    lowering=_lowered_cumulative(_larger, _lowest),
    cost=Cost.SIMPLE,
    passes_nan=True,
)
cummin_p = cumulative(
    "cummin",
    of=ANY,
    ufunc=np.minimum,
    lowering=_lowered_cumulative(_smaller, _highest),
    cost=Cost.SIMPLE,
    passes_nan=True,
)
cumlogsumexp_p = cumulative(
    "cumlogsumexp", of=FLOAT, ufunc=np.logaddexp, lowering=_cumlogsumexp_lowering, cost=Cost.SPECIAL
)
compiled_from(cumlogsumexp_p, 50_000)  # 300 x 300: 2857 / 760


def _prepare_small_integers() -> None:
    for p in (cummax_p, cummin_p):
        p.host_rule = in_eight_bits(p.host_rule)  # type: ignore[arg-type]


runtime.small_integers_requested.append(_prepare_small_integers)

cumsum_p.jvp_rule = jvp_linear(cumsum_p)
cumsum_p.transpose(lambda ct, x, *, axis, reverse: (cumsum(ct, axis, not reverse),))


@cumprod_p.jvp
def _cumprod_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    """Return the cumulative product y of x, and its tangent y', by y'[k] = x[k] y'[k-1] + x'[k] y[k-1]."""
    (x,), (t,) = primals, tangents
    y = cumprod(x, axis, reverse)
    return y, linear_recurrence(x, ops.mul(t, shift(y, axis, 1, reverse)), axis, reverse)


def _cumulative_extreme_jvp(p: Primitive) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        """Return the cumulative maximum or minimum, and its tangent.

        The tangent at a position is the mean of the tangents of those elements so far that equal the maximum or
        minimum.
        """
        (x,), (t,) = primals, tangents
        x = ops.materialized(x)
        y = p.bind(x, axis=axis, reverse=reverse)
        before = shift(y, axis, 0, reverse)
        hit = is_extreme(x, y)
        still = is_extreme(before, y)  # once NaN, always NaN
        shared = linear_recurrence(still, ops.mul(t, hit), axis, reverse)
        return y, ops.div(shared, linear_recurrence(still, hit, axis, reverse))

    return rule


cummax_p.jvp_rule = _cumulative_extreme_jvp(cummax_p)
cummin_p.jvp_rule = _cumulative_extreme_jvp(cummin_p)


@cumlogsumexp_p.jvp
def _cumlogsumexp_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    """Return the cumulative log-sum-exp y of x, and its tangent y', without overflow.

    The tangent follows from y'[k] = exp(y[k-1] - y[k]) y'[k-1] + exp(x[k] - y[k]) x'[k].
    """
    (x,), (t,) = primals, tangents
    y = cumlogsumexp(x, axis, reverse)
    decay = _exp_of_difference(shift(y, axis, -math.inf, reverse), y)
    added = _exp_of_difference(x, y)
    return y, linear_recurrence(decay, ops.mul(t, added), axis, reverse)


def _exp_of_difference(x: Any, y: Any) -> Any:
    """Return ``exp(x - y)``, and 1 where ``x`` and ``y`` are the same infinity."""
    d = ops.sub(x, y)
    return ops.exp(ops.where(ops.and_p.bind(ops.eq(x, y), ops.ne_p.bind(d, d)), 0, d))


def shift(x: Any, axis: int, value: Any, reverse: bool = False) -> Any:
    """Shift ``x`` by one index to the right along an axis (to the left if ``reverse``), and fill with ``value``."""

    config = [(0, 0, 0)] * len(x.shape)
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return x if x.shape[axis] == 0 else pad(x, value, config)


# Linear recurrences ------------------------------------------------------------------------------------------------


def linear_recurrence(a: Any, b: Any, axis: int, reverse: bool = False) -> Any:
    """Return y with ``y[k] = a[k] * y[k-1] + b[k]`` along an axis, from ``y[0] = b[0]``.

    If ``reverse``, the recurrence begins at the last index, and ``y[k+1]`` replaces ``y[k-1]``.
    """
    return linear_recurrence_p.bind(a, b, axis=axis, reverse=reverse)


linear_recurrence_p = Primitive("linear_recurrence", cost=Cost.SPECIAL)
linear_recurrence_p.host_rule = host.linear_recurrence
works_along(linear_recurrence_p, "axis", broadcasts=True)


@linear_recurrence_p.abstract_eval
def _recurrence_abstract_eval(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    dtype = same_dtype("linear_recurrence", [a, b])
    if a.ndim != b.ndim or not 0 <= axis < a.ndim or a.shape[axis] != b.shape[axis]:
        raise ShapeError(f"linear_recurrence: shapes {a.shape} and {b.shape} do not fit along axis {axis}")
    return ShapedArray(broadcast_shape("linear_recurrence", [a.shape, b.shape]), dtype)


@linear_recurrence_p.jvp
def _recurrence_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    (a, b), (ta, tb) = primals, tangents
    y = linear_recurrence(a, b, axis, reverse)
    if ta is not ZERO:
        by_a = ops.mul(ta, shift(y, axis, 0, reverse))
        tb = by_a if tb is ZERO else ops.add(tb, by_a)
    return y, linear_recurrence(a, tb, axis, reverse)


@partial(linear_recurrence_p.transpose, linear_in=(1,))
def _recurrence_transpose(ct: Any, a: Any, b: LinearVar, *, axis: int, reverse: bool) -> Any:
    return None, sum_to(linear_recurrence(shift(a, axis, 0, not reverse), ct, axis, not reverse), b)


def _without_masked_states(
    base: Primitive, out: Any, a: Any, b: Any, *, zeros: tuple[bool, ...], axis: int, reverse: bool
) -> Any:
    """Return the linear recurrence y[k] = a[k] y[k-1] + b[k], with y exactly 0 before the first nonzero ``b``.

    Infinite and NaN factors ``a`` do not change these zeros. ``base``, ``out`` and ``zeros`` are not used.
    """
    some = ops.convert_element_type(ops.ne_p.bind(b, 0), np.dtype(np.int32))
    before = shift(cumsum(some, axis, reverse), axis, 0, reverse)
    return linear_recurrence(ops.where(ops.eq(before, 0), 0, a), b, axis, reverse)


masked_linear_recurrence_p = masked_by_amending(linear_recurrence_p, _without_masked_states)


@linear_recurrence_p.lowering
def _recurrence_lowering(hlo: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    from pullback.backends.hlo import recurrences as hlo_recurrences

    shape = hlo.result.shape
    a, b = hlo.broadcast(a, shape), hlo.broadcast(b, shape)
    return hlo_recurrences.linear_recurrence(hlo, a, b, axis=axis, reverse=reverse)
