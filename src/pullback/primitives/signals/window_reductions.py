"""Reductions over windows: sums, and largest or smallest elements.

A sum is linear, and its transpose is a sum over windows too. The derivative of a maximum takes the tangents of the
selected elements, at positions that another reduction finds; its transpose adds cotangents at these positions.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import windows as host
from pullback.core.elsewhere import is_here
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.gather import gather_p
from pullback.primitives.arrays.scatter import scatter_add_p
from pullback.primitives.arrays.slicing import concatenate, iota_p, pad, slice, slice_in_dim
from pullback.primitives.arrays.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, zeros
from pullback.primitives.axis_maps import mapped_to_front
from pullback.primitives.checks import NUMBER, ORDERED, Of, check_dtype
from pullback.primitives.large import compiled
from pullback.primitives.reductions import extreme
from pullback.primitives.rules import axis_divided, axis_kept, jvp_linear, jvp_linear_in, jvp_zero, stays
from pullback.primitives.signals.convolution import (
    Pairs,
    back_padding,
    check_geometry,
    dilated,
    padding_pairs,
    padtype_to_pads,
    window_count,
)


class Windows(NamedTuple):
    """The sizes, strides, padding and dilations of windows, for each axis of an operand.

    Attributes:
      sizes: the numbers of elements of a window.
      strides: the distances between neighbouring windows.
      padding: the numbers of elements before and after the dilated operand; negative numbers remove elements.
      base_dilation: the distances between elements of the operand.
      window_dilation: the distances between elements of a window.
    """

    sizes: Shape
    strides: Shape
    padding: Pairs
    base_dilation: Shape
    window_dilation: Shape

    def counts(self, shape: Shape) -> Shape:
        """Return the number of windows along each axis of an operand of ``shape``: the shape of a reduction."""
        return tuple([window_count(n, *axis) for n, axis in zip(shape, self._by_axis())])

    def _by_axis(self) -> Any:
        return zip(self.sizes, self.strides, self.padding, self.base_dilation, self.window_dilation)

    def with_axis(self, position: int) -> Windows:
        """Return these windows with one more axis, at ``position``, along which each window has one element."""
        longer = [(*v[:position], new, *v[position:]) for v, new in zip(self, (1, 1, (0, 0), 1, 1))]
        return Windows(*longer)  # type: ignore[arg-type]

    def back(self, shape: Shape) -> Windows:
        """Return the windows for the transpose of a sum over these windows of an operand of ``shape``.

        Summing the cotangent of the sum over the returned windows yields the cotangent of the operand.
        """
        padding = [
            back_padding(n, k, count, stride, low, base, step)
            for n, count, (k, stride, (low, _), base, step) in zip(shape, self.counts(shape), self._by_axis())
        ]
        return Windows(self.sizes, self.base_dilation, tuple(padding), self.strides, self.window_dilation)

    def elements(self) -> list[Shape]:
        """Return the offsets of the elements of a window from its first element, in row-major order."""
        return list(itertools.product(*[range(0, k * step, step) for k, step in zip(self.sizes, self.window_dilation)]))

    def are_tiles(self) -> bool:
        """Whether the windows are adjacent tiles, without dilation."""
        return self.strides == self.sizes and set(self.base_dilation + self.window_dilation) == {1}

    def check(self, name: str, shape: Shape) -> None:
        """Raise an error that begins with ``name`` unless the windows fit an operand of ``shape``.

        There must be one positive size, and one stride, padding and dilation, for each axis.
        """
        rank = len(shape)
        if len(self.sizes) != rank or any(k < 1 for k in self.sizes):
            raise ShapeError(
                f"{name}: window_dimensions must be {rank} positive integers for an operand of shape {shape}, got "
                f"{self.sizes}"
            )
        check_geometry(name, self[1:], rank)  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _on_host(windows: Windows, shape: Shape, dtype: np.dtype[Any]) -> host.Geometry | None:
    """Describe windows on an operand of ``shape`` for the host; None if it has no loops for them."""
    if any(b != 1 for b in windows.base_dilation) or len(windows.sizes) != len(shape):
        return None
    ends = zip(windows.counts(shape), windows._by_axis())
    geometry = tuple([(count, k, stride, low, step) for count, (k, stride, (low, _), _, step) in ends])
    return geometry if host.are_supported(shape, dtype, geometry) else None


def windows_on(
    shape: Shape, name: str, sizes: Any, strides: Any, padding: Any, base: Any = None, step: Any = None
) -> Windows:
    """Make windows on an operand of ``shape`` from a user's options; raise unless they fit.

    Args:
      shape: the shape of the operand.
      name: the name of the public function, for errors.
      sizes, strides: as in :class:`Windows`; None for strides of one.
      padding: pairs of integers for each axis, or a word such as ``SAME``.
      base, step: the dilations of the operand and of the windows; None for ones.
    """
    ones = (1,) * len(shape)
    strides, base, step = (ones if v is None else tuple(map(operator.index, v)) for v in (strides, base, step))
    plain = Windows(tuple(map(operator.index, sizes)), strides, ((0, 0),) * len(shape), base, step)
    plain.check(name, shape)
    if isinstance(padding, str):
        spans = [dilated(k, s) for k, s in zip(plain.sizes, step)]
        return plain._replace(padding=tuple(padtype_to_pads(shape, spans, strides, padding)))
    pairs = padding_pairs(name, padding)
    if len(pairs) != len(shape):
        raise ShapeError(f"{name}: padding must be {len(shape)} pairs, one for each axis of the operand, got {pairs}")
    if any(dilated(n, b) + sum(pair) < 0 for n, b, pair in zip(shape, base, pairs)):
        raise ShapeError(
            f"{name}: a negative padding must not remove more elements than the operand has, got {pairs} for an "
            f"operand of shape {shape}"
        )
    return plain._replace(padding=pairs)


def _declare(name: str, of: Of, **traits: Any) -> Primitive:
    """Declare an operation that reduces one operand over windows, and returns an array of the operand's dtype.

    Args:
      name: the name in jaxprs and errors.
      of: a predicate on dtypes: the dtypes that the operand may have.
      **traits: more options of :class:`Primitive`.
    """
    p = Primitive(name, **traits, cost=Cost.SIMPLE)

    @p.abstract_eval
    def shape(x: ShapedArray, *, windows: Windows) -> ShapedArray:
        check_dtype(name, of, x.dtype)
        windows.check(name, x.shape)
        return ShapedArray(windows.counts(x.shape), x.dtype)

    _in_windows(p)
    return p


def _in_windows(p: Primitive) -> None:
    """Register the batching rule of an operation over windows, and the rule for the axes that it keeps.

    The operation keeps an axis along which each window is one element, with stride and dilations of one and no padding.
    A batch dimension becomes such an axis.
    """

    @axis_kept(p)
    def result_axis(axis: int, operand: int, /, *shapes: Shape, windows: Windows, **params: Any) -> int | None:
        own = Windows(*[(v[axis],) for v in windows])  # type: ignore[arg-type]
        return axis if own == Windows((), (), (), (), ()).with_axis(0) else None

    axis_divided(p)(stays)

    @p.batch
    def rule(axis: MappedAxis, args: Any, dims: Any, /, *, windows: Windows, **params: Any) -> Any:
        d, *others = dims
        if others:
            args, d = mapped_to_front(axis, args, dims), 0
        return p.bind(*args, windows=windows.with_axis(d), **params), d


def _write(hlo: Any, x: Any, start: Any, windows: Windows, operation: str) -> Any:
    """Emit a reduction of ``x`` over windows; return the reduced array.

    Args:
      hlo: the builder.
      x: the operand.
      start: the number from which each reduction starts.
      windows: the windows.
      operation: the StableHLO operation that combines two elements, such as ``stablehlo.add``.
    """
    sizes, strides, padding, base, step = windows
    scalar = ((), x.dtype)
    attributes = (
        f"window_dimensions = {hlo.integers(sizes)}, window_strides = {hlo.integers(strides)}, "
        f"base_dilations = {hlo.integers(base)}, window_dilations = {hlo.integers(step)}, "
        f"padding = {hlo.dense(padding)}"
    )
    region = hlo.region([scalar, scalar], lambda a, b: [hlo.elementwise(operation, a, b)])
    results = [(windows.counts(x.shape), x.dtype)]
    return hlo.multi_result("stablehlo.reduce_window", [x, hlo.number(start, x.dtype)], results, attributes, [region])[
        0
    ]


# Sums --------------------------------------------------------------------------------------------------------------


def reduce_window_sum(x: Any, windows: Windows) -> Any:
    """Return the sum of the elements of ``x`` in each window."""
    return reduce_window_sum_p.bind(x, windows=windows)


reduce_window_sum_p = _declare("reduce_window_sum", NUMBER)
reduce_window_sum_p.jvp_rule = jvp_linear(reduce_window_sum_p)


@reduce_window_sum_p.transpose
def _sum_transpose(ct: Any, x: LinearVar, *, windows: Windows) -> Any:
    if 0 in ct.shape or 0 in x.shape:
        return (zeros(x.shape, ct.dtype),)
    return (reduce_window_sum(ct, windows.back(x.shape)),)


@reduce_window_sum_p.lowering
def _sum_lowering(hlo: Any, x: Any, *, windows: Windows) -> Any:
    from pullback.backends.hlo.recurrences import carried_dtype

    if 0 in hlo.result.shape or 0 in x.shape:
        return hlo.splat(0, hlo.result.shape, x.dtype)
    wide = hlo.convert(x, carried_dtype(x.dtype))
    return hlo.convert(_write(hlo, wide, 0, windows, "stablehlo.add"), x.dtype)


# Extremes ----------------------------------------------------------------------------------------------------------


def reduce_window_extreme(x: Any, windows: Windows, largest: bool) -> Any:
    """Return the largest element of each window if ``largest``, else the smallest; NaN if an element is NaN.

    For a window of only padding it is the lowest value of the dtype if ``largest``, else the highest value.
    """
    return (reduce_window_max_p if largest else reduce_window_min_p).bind(x, windows=windows)


def _extreme(name: str, largest: bool) -> Primitive:
    p = _declare(name, ORDERED)

    @p.host
    def on_host(x: Any, *, windows: Windows) -> Any:
        geometry = _on_host(windows, x.shape, x.dtype)
        return (
            compiled(p, None, (x,), {"windows": windows}) if geometry is None else host.extremes(x, geometry, largest)
        )

    @p.lowering
    def lowering(hlo: Any, x: Any, *, windows: Windows) -> Any:
        nothing = extreme(x.dtype, largest=not largest)
        if 0 in hlo.result.shape or 0 in x.shape:
            return hlo.splat(nothing, hlo.result.shape, x.dtype)
        operation = f"stablehlo.{'maximum' if largest else 'minimum'}"
        return _write(hlo, x, nothing, windows, operation)

    @p.jvp
    def jvp(primals: Any, tangents: Any, *, windows: Windows) -> Any:
        """Return the extreme of each window and its tangent.

        The tangent is the tangent of the first element that equals the extreme.
        """
        (x,), (t,) = primals, tangents
        if state.trace.quick and is_here(x):
            out, positions = extremes_and_positions_p.bind(x, windows=windows, largest=largest)
        else:
            x = ops.materialized(x)
            positions = window_positions_p.bind(x, windows=windows, largest=largest)
            out = p.bind(x, windows=windows)
        return out, take_chosen_p.bind(t, positions, windows=windows)

    return p


reduce_window_max_p = _extreme("reduce_window_max", largest=True)
reduce_window_min_p = _extreme("reduce_window_min", largest=False)


# The row-major number in its window of the first extreme element; for a window of padding only, the number of elements
# of a window.
window_positions_p = Primitive("window_positions", keeps_weak_type=False, cost=Cost.SIMPLE)
window_positions_p.jvp_rule = jvp_zero(window_positions_p)
_in_windows(window_positions_p)


def _position_dtype(windows: Windows) -> np.dtype[Any]:
    return np.dtype(np.int32 if math.prod(windows.sizes) < 2**31 else np.int64)


@window_positions_p.abstract_eval
def _positions_abstract_eval(x: ShapedArray, *, windows: Windows, largest: bool) -> ShapedArray:
    check_dtype("window_positions", ORDERED, x.dtype)
    windows.check("window_positions", x.shape)
    return ShapedArray(windows.counts(x.shape), _position_dtype(windows))


@window_positions_p.host
def _positions_on_host(x: Any, *, windows: Windows, largest: bool) -> Any:
    geometry = _on_host(windows, x.shape, x.dtype)
    if geometry is None:
        return compiled(window_positions_p, None, (x,), {"windows": windows, "largest": largest})
    return host.positions(x, geometry, largest)


@window_positions_p.lowering
def _positions_lowering(hlo: Any, x: Any, *, windows: Windows, largest: bool) -> Any:
    few = math.prod(windows.sizes) <= UNROLLED and 0 not in (*x.shape, *hlo.result.shape)
    return hlo.inline(partial(_positions_of_few if few else _positions, windows=windows, largest=largest), x)


def _positions_of_few(x: Any, windows: Windows, largest: bool) -> Any:
    """Find the position of the extreme in each window, for windows of few elements.

    The extreme is the largest element if ``largest``, else the smallest. The position is its row-major index in the
    window. For a window of only padding it is the window's number of elements. The compiler fuses the comparisons.
    """
    dtype, count = _position_dtype(windows), math.prod(windows.sizes)
    slices = window_slices(padded_operand(x, x.dtype.type(0), windows), windows)
    padded = any(low > 0 or high > 0 for low, high in windows.padding) or any(b > 1 for b in windows.base_dilation)
    inside: list[Any] = [None] * count
    if padded:
        inside = window_slices(padded_operand(shapes.full(x.shape, True, np.dtype(bool)), False, windows), windows)
    precedes = ops.gt if largest else ops.lt
    best, found = slices[0], inside[0]
    number: Any = shapes.full(best.shape, 0, dtype)
    for i in range(1, count):
        one = slices[i]
        better = ops.or_p.bind(precedes(one, best), ops.and_p.bind(ops.ne_p.bind(one, one), ops.eq(best, best)))
        if padded:
            better = ops.and_p.bind(inside[i], ops.or_p.bind(better, ops.not_p.bind(found)))
            found = ops.or_p.bind(found, inside[i])
        best, number = ops.where(better, one, best), ops.where(better, dtype.type(i), number)
    return ops.where(found, number, dtype.type(count)) if padded else number


def _positions(x: Any, windows: Windows, largest: bool) -> Any:
    """Find the position of the extreme in each window, by a reduction of pairs of an element and its index.

    The extreme is the largest element if ``largest``, else the smallest. The position is its row-major index in the
    window. For a window of only padding it is the window's number of elements.
    """
    dtype, shape = _position_dtype(windows), windows.counts(x.shape)
    if 0 in shape or 0 in x.shape:
        return shapes.full(shape, math.prod(windows.sizes), dtype)
    sizes = [dilated(n, b) + sum(pair) for n, b, pair in zip(x.shape, windows.base_dilation, windows.padding)]
    none = math.prod(sizes)
    wide = np.dtype(np.int32 if none < 2**31 - 1 else np.int64)
    ends = enumerate(zip(windows.padding, windows.base_dilation))
    where = _flat([_counting(x.shape, a, low, b, wide) for a, ((low, _), b) in ends], sizes)
    precedes = ops.gt if largest else ops.lt

    def first(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        (x, i), (y, j) = one, other
        x_nan, y_nan = ops.ne_p.bind(x, x), ops.ne_p.bind(y, y)
        equal = ops.or_p.bind(ops.eq(x, y), ops.and_p.bind(x_nan, y_nan))
        better = ops.or_p.bind(precedes(x, y), ops.and_p.bind(x_nan, ops.eq(y, y)))
        precedes_other = ops.or_p.bind(better, ops.and_p.bind(equal, ops.lt(i, j)))
        return [ops.where(precedes_other, x, y), ops.where(precedes_other, i, j)]

    _, found = fold_windows(first, [x, where], [extreme(x.dtype, largest=not largest), wide.type(none)], windows)
    elements, rest = [], found
    for a, (stride, step) in enumerate(zip(windows.strides, windows.window_dilation)):
        below = wide.type(math.prod(sizes[a + 1 :]))
        position, rest = ops.div(rest, below), ops.rem_p.bind(rest, below)
        elements.append(ops.div(ops.sub(position, _counting(shape, a, 0, stride, wide)), wide.type(step)))
    number = _flat(elements, windows.sizes)
    nothing = wide.type(math.prod(windows.sizes))
    return ops.convert_element_type(ops.where(ops.eq(found, wide.type(none)), nothing, number), dtype)


# Both, which NumPy's arrays have in one pass. Programs have the two operations.
extremes_and_positions_p = Primitive("window_extremes_and_positions", multiple_results=True, cost=Cost.SIMPLE)


@extremes_and_positions_p.decomposition
def _both(x: Any, *, windows: Windows, largest: bool) -> list[Any]:
    positions = window_positions_p.bind(x, windows=windows, largest=largest)
    return [reduce_window_extreme(x, windows, largest), positions]


@extremes_and_positions_p.abstract_eval
def _both_abstract_eval(x: ShapedArray, *, windows: Windows, largest: bool) -> list[ShapedArray]:
    positions = _positions_abstract_eval(x, windows=windows, largest=largest)
    return [ShapedArray(positions.shape, x.dtype), positions]


@extremes_and_positions_p.host
def _both_on_host(x: Any, *, windows: Windows, largest: bool) -> list[Any]:
    geometry = _on_host(windows, x.shape, x.dtype)
    if geometry is None:
        out = compiled(reduce_window_max_p if largest else reduce_window_min_p, None, (x,), {"windows": windows})
        return [out, compiled(window_positions_p, None, (x,), {"windows": windows, "largest": largest})]
    return list(host.extremes_and_positions(x, geometry, largest))


def _counting(shape: Shape, axis: int, low: int, stride: int, dtype: np.dtype[Any]) -> Any:
    """Return an array of ``shape`` with the elements ``low``, ``low + stride``, ... along ``axis``.

    The array is constant along the other axes.
    """
    counting = iota_p.bind(dtype=dtype, shape=shape, dimension=axis)
    return ops.add(ops.mul(counting, dtype.type(stride)), dtype.type(low))


def _flat(indices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Convert indices along the axes, of these ``sizes``, to row-major indices: ``(i, j) -> i * sizes[1] + j``."""
    total = indices[0]
    for index, size in zip(indices[1:], sizes[1:]):
        total = ops.add(ops.mul(total, index.dtype.type(size)), index)
    return total


# The selected elements ---------------------------------------------------------------------------------------------

UNROLLED = 32
"""The most elements of windows that are unrolled, element by element, which the compiler fuses into one loop."""

take_chosen_p = Primitive("take_chosen", keeps_weak_type=False, passes_nan=True, cost=Cost.SIMPLE)
take_chosen_p.jvp_rule = jvp_linear_in(take_chosen_p, 0)
put_chosen_p = Primitive("put_chosen", keeps_weak_type=False, passes_nan=True, cost=Cost.SIMPLE)
put_chosen_p.jvp_rule = jvp_linear_in(put_chosen_p, 0)
_in_windows(take_chosen_p)
_in_windows(put_chosen_p)


@take_chosen_p.abstract_eval
def _take_abstract_eval(t: ShapedArray, positions: ShapedArray, *, windows: Windows) -> ShapedArray:
    return ShapedArray(positions.shape, t.dtype)


@partial(take_chosen_p.transpose, linear_in=(0,))
def _take_transpose(ct: Any, t: LinearVar, positions: Any, *, windows: Windows) -> Any:
    return put_chosen_p.bind(ct, positions, windows=windows, shape=t.shape), None


@take_chosen_p.lowering
def _take_lowering(hlo: Any, t: Any, positions: Any, *, windows: Windows) -> Any:
    if 0 in t.shape or 0 in positions.shape:
        return hlo.splat(0, positions.shape, t.dtype)
    return hlo.inline(partial(_take_chosen, windows=windows), t, positions)


def _take_chosen(t: Any, positions: Any, windows: Windows) -> Any:
    if math.prod(windows.sizes) > UNROLLED:
        indices = _indices(positions, t.shape, windows)
        flat = shapes.reshape(t, (math.prod(t.shape),))
        return gather_p.bind(flat, indices, slice_sizes=(1,), dimension_numbers=_OF_ELEMENTS, fill_value=0, **_SCATTER)
    total: Any = t.dtype.type(0)
    padded = padded_operand(t, t.dtype.type(0), windows)
    for number, tangents in enumerate(window_slices(padded, windows)):
        total = ops.where(ops.eq(positions, positions.dtype.type(number)), tangents, total)
    return total


_OF_ELEMENTS = GatherDimensionNumbers((), (0,), (0,))
_SCATTER = {"indices_are_sorted": False, "unique_indices": False, "mode": GatherScatterMode.FILL_OR_DROP}


def _indices(positions: Any, shape: Shape, windows: Windows) -> Any:
    """Convert positions in windows to row-major indices in an operand of ``shape``.

    Args:
      positions: for each window the row-major position, within the window, of one element.
      shape: the shape of the operand.
      windows: the windows.

    Returns:
      The indices, with a new last axis of size one. An element in the padding has the size of the operand as its index.
    """
    wide = np.dtype(np.int32 if math.prod(shape) < 2**31 else np.int64)
    rest = ops.convert_element_type(positions, wide)
    indices: list[Any] = []
    outside: Any = None
    for a in reversed(range(len(shape))):
        k, stride, base, step = (v[a] for v in (windows.sizes, windows.strides, *windows[3:]))
        element, rest = ops.rem_p.bind(rest, wide.type(k)), ops.div(rest, wide.type(k))
        position = ops.add(
            _counting(positions.shape, a, -windows.padding[a][0], stride, wide), ops.mul(element, wide.type(step))
        )
        indices.append(ops.div(position, wide.type(base)))
        for wrong in (
            ops.lt(position, wide.type(0)),
            ops.gt(indices[-1], wide.type(shape[a] - 1)),
            ops.ne_p.bind(ops.rem_p.bind(position, wide.type(base)), wide.type(0)),
        ):
            outside = wrong if outside is None else ops.or_p.bind(outside, wrong)
    outside = ops.or_p.bind(outside, ops.ne_p.bind(rest, wide.type(0)))
    flat = ops.where(outside, wide.type(math.prod(shape)), _flat(indices[::-1], shape))
    return shapes.expand_dims(flat, (-1,))


@put_chosen_p.abstract_eval
def _put_abstract_eval(ct: ShapedArray, positions: ShapedArray, *, windows: Windows, shape: Shape) -> ShapedArray:
    return ShapedArray(shape, ct.dtype)


@partial(put_chosen_p.transpose, linear_in=(0,))
def _put_transpose(t: Any, ct: LinearVar, positions: Any, *, windows: Windows, shape: Shape) -> Any:
    return take_chosen_p.bind(t, positions, windows=windows), None


@put_chosen_p.batch
def _put_batch(axis: MappedAxis, args: Any, dims: Any, *, windows: Windows, shape: Shape) -> Any:
    ct, positions = mapped_to_front(axis, args, dims)
    return put_chosen_p.bind(ct, positions, windows=windows.with_axis(0), shape=(axis.size, *shape)), 0


@put_chosen_p.host
def _put_on_host(ct: Any, positions: Any, *, windows: Windows, shape: Shape) -> Any:
    geometry = _on_host(windows, shape, ct.dtype)
    if geometry is None or positions.dtype != np.int32:
        return compiled(put_chosen_p, None, (ct, positions), {"windows": windows, "shape": shape})
    return host.put(ct, positions, geometry, shape)


@put_chosen_p.lowering
def _put_lowering(hlo: Any, ct: Any, positions: Any, *, windows: Windows, shape: Shape) -> Any:
    if 0 in shape or 0 in ct.shape:
        return hlo.splat(0, shape, ct.dtype)
    return hlo.inline(partial(_put_chosen, windows=windows, shape=shape), ct, positions)


def _put_chosen(ct: Any, positions: Any, windows: Windows, shape: Shape) -> Any:
    if windows.are_tiles():
        return _put_in_tiles(ct, positions, windows, shape)
    indices = _indices(positions, shape, windows)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    start = zeros((math.prod(shape),), ct.dtype)
    return shapes.reshape(scatter_add_p.bind(start, indices, ct, dimension_numbers=numbers, **_SCATTER), shape)


def _put_in_tiles(ct: Any, positions: Any, windows: Windows, shape: Shape) -> Any:
    """Scatter cotangents to one element of each window, for windows that are adjacent tiles.

    Args:
      ct: the cotangent of each window.
      positions: for each window the row-major position, within the window, of the element that gets the cotangent.
      windows: the windows.
      shape: the shape of the operand, and of the result.
    """
    ranks = range(len(shape))
    here = shapes.reshape(_flat([_counting(windows.sizes, a, 0, 1, positions.dtype) for a in ranks], windows.sizes), [
        size for k in windows.sizes for size in (1, k)
    ])  # fmt: skip
    of_tile, selected = (shapes.reshape(x, [size for n in ct.shape for size in (n, 1)]) for x in (ct, positions))
    tiles = ops.where(ops.eq(selected, here), of_tile, ct.dtype.type(0))
    flat = shapes.reshape(tiles, [n * k for n, k in zip(ct.shape, windows.sizes)])
    ends = zip(shape, flat.shape, windows.padding)
    return pad(flat, ct.dtype.type(0), [(-low, n + low - size, 0) for n, size, (low, _) in ends])


# Any operation -----------------------------------------------------------------------------------------------------

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""An associative elementwise operation of two lists of arrays of the same shape."""


def padded_operand(x: Any, value: Any, windows: Windows) -> Any:
    """Pad ``x`` with ``value`` around and between its elements.

    The windows' padding says how many numbers to add around the elements, and their base dilation how many between.
    """
    return pad(x, value, [(low, high, base - 1) for (low, high), base in zip(windows.padding, windows.base_dilation)])


def window_slices(x: Any, windows: Windows) -> list[Any]:
    """Return a list of slices of ``x``, one for each position in a window, in row-major order.

    The slice of a position holds the element at this position of every window. ``x`` is padded already.
    """
    counts = windows._replace(padding=((0, 0),) * len(x.shape), base_dilation=(1,) * len(x.shape)).counts(x.shape)
    reach = [dilated(count, stride) for count, stride in zip(counts, windows.strides)]
    return [slice(x, first, [f + r for f, r in zip(first, reach)], windows.strides) for first in windows.elements()]


def fold_windows(combine: Combine, xs: Sequence[Any], starts: Sequence[Any], windows: Windows) -> list[Any]:
    """Reduce operands of the same shape over each window, one axis after another; return the reduced arrays.

    Elements are combined in row-major order. Only ``combine`` computes, so derivatives of ``combine`` suffice to
    differentiate the reduction. No array is larger than the padded operand.

    Args:
      combine: the associative operation, from two lists of arrays to one list.
      xs: the operands.
      starts: for each operand the padding value around and between its elements.
      windows: the windows.
    """
    shape = windows.counts(xs[0].shape)
    if 0 in shape:
        return [shapes.full(shape, 0, x.dtype) for x in xs]
    partial_results = [padded_operand(x, start, windows) for x, start in zip(xs, starts)]
    for axis in reversed(range(len(shape))):
        k, stride, step = windows.sizes[axis], windows.strides[axis], windows.window_dilation[axis]
        partial_results = _fold_axis(combine, partial_results, axis, shape[axis], k, stride, step)
    return partial_results


def _fold_axis(
    combine: Combine, xs: Sequence[Any], axis: int, count: int, size: int, stride: int, step: int
) -> list[Any]:
    """Reduce the arrays ``xs`` over windows along ``axis``; return the reduced arrays.

    Long windows are reduced by doubling: windows of 1, 2, 4, ... elements, each from two windows of half the length.

    Args:
      combine: the associative operation, from two lists of arrays to one list.
      xs: the padded operands.
      axis: the axis.
      count: the number of windows.
      size: the number of elements of a window.
      stride: the distance between neighbouring windows.
      step: the distance between neighbouring elements of a window.
    """
    reach = dilated(count, stride)

    def windows_from(xs: Sequence[Any], first: int) -> list[Any]:
        is_full = first == 0 and stride == 1 and reach == xs[0].shape[axis]
        return list(xs) if is_full else [slice_in_dim(x, first, first + reach, axis, stride) for x in xs]

    if size <= DIRECT or (size - 1) * count <= min(xs[0].shape[axis] * size.bit_length(), UNROLLED * count):
        out = windows_from(xs, 0)
        for i in range(1, size):
            out = list(combine(out, windows_from(xs, i * step)))
        return out
    done, length, result = 0, 1, None
    longer = list(xs)
    while True:
        if size & length:
            term = windows_from(longer, done * step)
            result = term if result is None else list(combine(result, term))
            done += length
        if 2 * length > size:
            assert result is not None
            return result
        last = longer[0].shape[axis]
        longer = list(
            combine(
                [slice_in_dim(x, 0, last - length * step, axis) for x in longer],
                [slice_in_dim(x, length * step, last, axis) for x in longer],
            )
        )
        length *= 2


DIRECT = 4
"""The most elements of windows along an axis that are combined one by one."""


def fold(combine: Combine, xs: Sequence[Any], starts: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Reduce operands of the same shape over ``axes``; return the reduced arrays.

    Neighbouring elements are combined in pairs, then neighbouring results, and so on. Only ``combine`` computes, so
    derivatives of ``combine`` suffice to differentiate the reduction. All arrays together are twice as large as the
    operands.

    Args:
      combine: the associative operation, from two lists of arrays to one list.
      xs: the operands.
      starts: for each operand the number with which a reduction starts: the result over no elements.
      axes: the axes.
    """
    shape = xs[0].shape
    others = [a for a in range(len(shape)) if a not in axes]
    rest, size = tuple(shape[a] for a in others), math.prod(shape[a] for a in axes)
    rows = [shapes.reshape(shapes.transpose(x, [*sorted(axes), *others]), (size, *rest)) for x in xs]
    first = [shapes.broadcast_to(start, rest) for start in starts]
    if not size:
        return first
    while size > 1:
        even = size // 2 * 2
        combined = combine(*[[slice_in_dim(x, i, even, 0, 2) for x in rows] for i in (0, 1)])
        if size % 2:
            rows = [concatenate([c, slice_in_dim(x, even, size, 0)], 0) for c, x in zip(combined, rows)]
        else:
            rows = list(combined)
        size = size - size // 2
    return list(combine(first, [shapes.reshape(x, rest) for x in rows]))
