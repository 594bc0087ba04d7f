"""Lowering of index expressions, by NumPy's rules, to a slice, a gather or a scatter.

An expression is first parsed to *entries*: ``None`` for a new axis, ``Ellipsis`` for an ellipsis, and for each axis of
the array an int, a ``range`` (for a slice), a ``Slice`` whose start is an array, or an array of integers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source
from pullback.core.array import (
    Absent,
    Array,
    ArrayImpl,
    CommittedArray,
    as_array,
    is_of_jax,
    refuse_masked,
)
from pullback.core.config import config
from pullback.core.dims import Dim, any_symbolic
from pullback.core.elsewhere import is_elsewhere, is_here
from pullback.core.errors import (
    InconclusiveDimensionOperation,
    IndexingError,
    IndexKindError,
    NonConcreteBooleanIndexError,
    OperandError,
    OutOfBoundsError,
    ShapeError,
    TracerSliceError,
)
from pullback.core.trace import Tracer, state
from pullback.core.types import Shape
from pullback.numpy.creation import listed
from pullback.numpy.dynamic_slices import Slice
from pullback.numpy.symbolic_indexing import read_simple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode, wide_enough
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers
from pullback.primitives.checks import broadcast_shape
from pullback.transforms.programs.placement import committed_like

_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)

# Parsing -----------------------------------------------------------------------------------------------------------


def quote(index: Any) -> str:
    """Format an index expression nearly as the user wrote it."""
    if isinstance(index, tuple) and index:
        return ", ".join([f"({quote(item)})" if isinstance(item, tuple) else quote(item) for item in index])
    if isinstance(index, slice):
        bounds = ["" if p is None else quote(p) for p in (index.start, index.stop, index.step)]
        return ":".join(bounds if index.step is not None else bounds[:2])
    if index is Ellipsis:
        return "..."
    text = " ".join(repr(index).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _classify(item: Any, index: Any) -> Any:
    """Convert one item of an index expression to None, Ellipsis, a slice, an int, or an array of integers or booleans.

    Raise for other items. ``index`` is the whole expression, for the message.
    """
    if item is None or item is Ellipsis or type(item) is int or type(item) is slice:
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, Tracer):
        if dtypes.is_bool(item.dtype):
            known = item.concrete()
            if known is None:
                raise NonConcreteBooleanIndexError(
                    f"the shape of x[{quote(index)}] depends on the values of a traced boolean mask: {item!r}. "
                    f"It comes from {item.origin()}\n"
                    "Use jnp.where, or jnp.nonzero(mask, size=...) for a result of static size."
                )
            return np.asarray(known._value)
        if dtypes.is_integer(item.dtype):
            return item
        raise _not_an_index(item, index)
    if isinstance(item, CommittedArray) and dtypes.is_integer(item.dtype):
        return item
    if type(item) is ArrayImpl and type(item._host_value) is Absent and is_elsewhere(item):  # noqa: SIM102
        if dtypes.is_integer(item.dtype):
            return item
    if type(item) is Slice:
        return item.static() or item
    if isinstance(item, (list, tuple)):
        return _classify(_array_of(item, index), index)
    value = item._value if isinstance(item, ArrayImpl) else item
    if isinstance(value, (np.ndarray, np.generic)):
        refuse_masked(value)
        if value.dtype.kind in "iu":
            return int(value) if value.ndim == 0 else np.asarray(value)
        if value.dtype.kind == "b":
            return np.asarray(value)
        raise _not_an_index(item, index)
    if is_of_jax(item) and hasattr(item, "__array__"):
        return _classify(as_array(item), index)
    if hasattr(type(item), "__jax_array__"):
        return _classify(item.__jax_array__(), index)
    try:
        return operator.index(item)
    except TypeError:
        raise _not_an_index(item, index) from None


def _array_of(items: Any, index: Any) -> Any:
    """Convert ``items``, a list or tuple in the index expression ``index``, to an array; raise if it is no index."""
    try:
        value = np.asarray(items)
    except (TypeError, ValueError):  # of traced integers, or of lists of several lengths
        return listed("an index", items)
    if value.dtype.kind == "O":
        raise _not_an_index(items, index)
    return value if value.size else value.astype(np.intp)


def _not_an_index(item: Any, index: Any) -> OperandError:
    is_array = isinstance(item, (Array, np.ndarray, np.generic))
    kind = f"an array of {item.dtype}" if is_array else f"a {type(item).__name__}"
    within = f" in x[{quote(index)}]" if isinstance(index, tuple) else ""
    return IndexKindError(
        f"an index must be an int, a slice, None, ..., or an array of integers or booleans, got {quote(item)}, "
        f"{kind}{within}"
    )


def _width(item: Any) -> int:
    """Return the number of an array's axes that one item of an index expression consumes, such as 1 for a slice."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1


class Whole(NamedTuple):
    """All of an axis whose size is symbolic: the entry of an index that ``range(size)`` is for another axis."""

    size: Any


def _whole(size: Any) -> range | Whole:
    return Whole(size) if isinstance(size, Dim) else range(size)


def _range(item: slice, size: Any, index: Any) -> range | Whole:
    for bound in (item.start, item.stop, item.step):
        if isinstance(bound, Tracer) and bound.concrete() is None:
            raise TracerSliceError(
                f"the size of x[{quote(index)}] depends on a traced value, {bound!r}. Use lax.dynamic_slice or "
                "lax.dynamic_slice_in_dim for a block of a fixed size, or jnp.where with a mask."
            )
    if item == slice(None):
        return _whole(size)
    try:
        return range(*item.indices(size))
    except InconclusiveDimensionOperation:
        raise
    except TypeError:
        raise OperandError(f"the bounds of a slice must be ints or None, got x[{quote(index)}]") from None


def parse(index: Any, shape: Shape) -> tuple[list[Any], Shape]:
    """Parse an index expression; return its entries, and the shape to which the array must be reshaped first.

    A scalar boolean indexes an axis of size one, which this shape contains.

    Raises:
      IndexingError: too many indices, several ellipses, a mask of another shape.
      OperandError: an item that cannot index (a TypeError).
    """
    if isinstance(index, list):
        raise OperandError(
            f"a list cannot be an index by itself: x[{quote(index)}]; write x[jnp.array({quote(index)})], or "
            f"x[tuple(...)] for one index for each axis"
        )
    items = [_classify(item, index) for item in (index if isinstance(index, tuple) else (index,))]
    used = sum(map(_width, items))
    if used > len(shape):
        raise IndexingError(
            f"too many indices: x[{quote(index)}] indexes {used} axes, but the array is {len(shape)}-dimensional, of "
            f"shape {shape}"
        )
    dots = sum(item is Ellipsis for item in items)
    if dots > 1:
        raise IndexingError(f"an index can have only one ellipsis ('...'), got x[{quote(index)}]")
    if not dots:
        items.append(Ellipsis)
    entries: list[Any] = []
    sizes: list[int] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            rest = shape[axis : axis + len(shape) - used]
            entries += [Ellipsis, *map(_whole, rest)]
            sizes += rest
            axis += len(rest)
        elif item is None:
            entries.append(None)
        elif isinstance(item, np.ndarray) and item.dtype.kind == "b":
            entries += _mask_entries(item, shape[axis : axis + item.ndim], index)
            sizes += shape[axis : axis + item.ndim] if item.ndim else (1,)
            axis += item.ndim
        else:
            entries.append(_range(item, shape[axis], index) if type(item) is slice else item)
            sizes.append(shape[axis])
            axis += 1
    return entries, tuple(sizes)


def _mask_entries(mask: Any, shape: Shape, index: Any) -> Sequence[Any]:
    if mask.ndim == 0:
        return (np.zeros(int(mask), np.intp),)
    if any(n != m and m for n, m in zip(shape, mask.shape, strict=True)):  # as in NumPy, an axis of size 0 fits any
        raise IndexingError(
            f"a boolean index must have the shape of the axes that it indexes: got one of shape {mask.shape} for axes "
            f"of shape {shape} in x[{quote(index)}]"
        )
    return mask.nonzero()


def require_in_range(index: Any, shape: Shape, wrap: bool = True) -> None:
    """Raise if a concrete position is out of range, where a switch enables the check.

    Raises:
      OutOfBoundsError: a position is out of range (an IndexError and a ValueError).
    """
    if not (config.indices_are_checked or config.check_static_indices):
        return
    entries, sizes = parse(index, shape)
    for axis, (e, n) in enumerate(zip(_of_axes(entries), sizes, strict=True)):
        if type(e) is int or isinstance(e, np.ndarray):
            require_positions(e, n, axis, f"x[{quote(index)}] of an array of shape {shape}", wrap)


def require_positions(positions: Any, size: int, axis: int, where: str, wrap: bool = True) -> None:
    """Raise if one of the positions along an axis, an int or a NumPy array, is out of range."""
    values = np.asarray(positions)
    outside = values[(values >= size) | (values < (-size if wrap else 0))]
    if outside.size:
        raise OutOfBoundsError(
            f"index {outside.flat[0]} is out of bounds for axis {axis} with size {size}, in {where}, at "
            f"{source.describe(state.source_loc or source.here())}"
        )


def unless_checked(mode: Any) -> Any:
    """Return ``mode``; if it is None and checks of indices are on, the promise that they are in bounds."""
    return GatherScatterMode.PROMISE_IN_BOUNDS if mode is None and config.indices_are_checked else mode


def checked_mode(name: str, positions: Any, x: Any, axis: int, mode: Any, wrap: bool = True) -> Any:
    """Check concrete positions if a switch enables it and ``mode`` is None; return the mode to use."""
    looks = config.indices_are_checked or config.check_static_indices
    if looks and mode is None and not isinstance(positions, Tracer):
        require_positions(positions, x.shape[axis], axis, f"{name} of an array of shape {x.shape}", wrap)
    return unless_checked(mode)


# Basic indices -----------------------------------------------------------------------------------------------------


def is_basic(entries: Sequence[Any]) -> bool:
    """Whether an index has no arrays, so that it selects a block of the array."""
    return all(e is None or e is Ellipsis or type(e) is int or type(e) is range for e in entries)


def in_range(entries: Sequence[Any], shape: Shape) -> bool:
    """Whether all ints among the entries of an index are in the range of their axes."""
    axes = (e for e in entries if e is not None and e is not Ellipsis)
    return all(type(e) is not int or -n <= e < n for e, n in zip(axes, shape, strict=True))


def require_element(i: int, size: int, axis: int) -> None:
    """Raise if an int indexes an axis without elements."""
    if size == 0:
        raise IndexingError(f"index {i} is out of bounds for axis {axis} with size 0")


def position(i: int, size: int, axis: int = 0) -> int:
    """The position of an int index, which may count from the end; out of range it is clipped, as in JAX."""
    require_element(i, size, axis)
    return min(max(i + size if i < 0 else i, 0), size - 1)


def read_basic(x: Any, entries: Sequence[Any]) -> Any:
    """Read the block of ``x`` at a basic index: by one slice, a reversal for negative steps, and one reshape."""
    starts: list[int] = []
    limits: list[int] = []
    steps: list[int] = []
    back: list[int] = []  # the axes to reverse
    single: list[int] = []  # the axes that the result lacks
    shape: list[int] = []
    sizes = x.shape
    new = False
    for e in entries:
        axis = len(starts)
        if e is None:
            shape.append(1)
            new = True
        elif type(e) is int:
            start = position(e, sizes[axis], axis)
            starts.append(start)
            limits.append(start + 1)
            steps.append(1)
            single.append(axis)
        elif e is not Ellipsis:
            shape.append(len(e))
            if len(e) and e.step < 0:
                back.append(axis)
                e = e[::-1]
            starts.append(e.start if len(e) else 0)
            limits.append(e[-1] + 1 if len(e) else 0)
            steps.append(e.step if len(e) else 1)
    everything = all(step == 1 for step in steps) and not any(starts) and tuple(limits) == sizes
    out = x if everything else slicing.slice(x, starts, limits, steps)
    out = slicing.rev(out, back)
    return shapes.reshape(out, shape) if new else shapes.squeeze(out, single)


# Advanced indices --------------------------------------------------------------------------------------------------


class Lowered(NamedTuple):
    """An index as the operands and parameters of a gather.

    Attributes:
      indices: the index vectors.
      numbers: the dimension numbers.
      sizes: the sizes of the windows.
      shape: the shape of the result of the gather.
      full_shape: the shape of ``x[index]``, with its new axes.
      unique: whether no element is selected twice.
    """

    indices: Any
    numbers: GatherDimensionNumbers
    sizes: Shape
    shape: Shape
    full_shape: Shape
    unique: bool


_BLOCKS = frozenset((range, Slice, Whole))


def lower(entries: Sequence[Any], shape: Shape, wrap: bool = True) -> Lowered:
    """Lower the entries of an index to a gather from an array of the shape ``shape``.

    The arrays and ints are broadcast against each other; their axes are in the result at the first of them, or in front
    if slices, new axes or an ellipsis come between them. A contiguous slice is a window; a slice with steps is an array
    of positions with an axis of its own.

    Args:
      entries: the index.
      shape: the shape of the array.
      wrap: whether negative positions count from the end; otherwise they are out of range.
    """
    advanced = [k for k, e in enumerate(entries) if not (e is None or e is Ellipsis or type(e) in _BLOCKS)]
    adjacent = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
    block = _broadcast([() if type(entries[k]) is int else entries[k].shape for k in advanced])
    full: list[int] = []  # the axes of the result
    batch: list[int] = []  # the axes of the result that come from the indices
    windows: dict[int, int] = {}  # the axes of the array that are windows, and their axes in the result
    new: list[int] = []
    vectors: list[tuple[int, Any, int]] = []  # axis of the array, positions, batch axis at which they end
    if not adjacent:
        full += block
        batch += block
    end = len(block)
    axis = -1
    for k, e in enumerate(entries):
        if e is Ellipsis:
            continue
        axis += e is not None
        if e is None:
            new.append(len(full))
            full.append(1)
        elif type(e) not in _BLOCKS:
            if adjacent and k == advanced[0]:
                end = len(batch) + len(block)
                full += block
                batch += block
            vectors.append((axis, _from_the_end(e, axis, shape, wrap), end))
        else:
            size, is_window, positions = _block(e, axis, shape, wrap)
            if is_window:
                windows[axis] = len(full)
            else:
                batch.append(size)
            full.append(size)
            if positions is not None:
                vectors.append((axis, positions, 0 if is_window else len(batch)))
    numbers = GatherDimensionNumbers(
        tuple(axis_ - sum(n < axis_ for n in new) for axis_ in windows.values()),
        tuple(a for a in range(len(shape)) if a not in windows),
        tuple(a for a, _, _ in vectors),
    )
    return Lowered(
        indices=_vectors([(positions, end) for _, positions, end in vectors], tuple(batch)),
        numbers=numbers,
        sizes=tuple(full[windows[a]] if a in windows else 1 for a in range(len(shape))),
        shape=tuple(n for i, n in enumerate(full) if i not in new),
        full_shape=tuple(full),
        unique=all(type(entries[k]) is int for k in advanced),
    )


def _block(e: range | Slice | Whole, axis: int, shape: Shape, wrap: bool) -> tuple[int, bool, Any]:
    """Return how a block of an axis is read: its size, whether it is a window, and where it is.

    A window is at one position, None if it is the whole axis; other blocks have a position for each element.
    """
    if type(e) is Whole:
        return e.size, True, None
    if type(e) is Slice:
        start = _from_the_end(e.start, axis, shape, wrap)
        is_window = e.stride == 1
        return e.size, is_window, start if is_window else ops.add(start, start.dtype.type(e.stride) * np.arange(e.size))
    assert type(e) is range
    if e.step == 1 or len(e) == 1:
        return len(e), True, None if len(e) == shape[axis] else np.asarray(e.start)
    return len(e), False, np.arange(e.start, e.stop, e.step)


def lowered(index: Any, shape: Shape, wrap: bool = True) -> tuple[Lowered, Shape]:
    """Lower an index; return the gather, and the shape to which the array must be reshaped first."""
    try:
        return _lowered_basic(_key(index), shape, wrap)
    except LookupError:
        entries, sizes = parse(index, shape)
        return lower(entries, sizes, wrap), sizes


_ATOMS = frozenset((int, type(None), type(Ellipsis)))


def _key(index: Any) -> Any:
    """Convert an index of ints, slices, None and Ellipsis to a hashable cache key; raise LookupError for others."""
    kind = type(index)
    if kind in _ATOMS:
        return index
    if kind is slice and type(index.start) in _ATOMS and type(index.stop) in _ATOMS and type(index.step) in _ATOMS:
        return index.start, index.stop, index.step
    if kind is tuple and tuple not in map(type, index):
        return "tuple", *map(_key, index)
    raise LookupError


@functools.lru_cache(maxsize=1024)
def _lowered_basic(key: Any, shape: Shape, wrap: bool) -> tuple[Lowered, Shape]:
    index = tuple(map(_basic, key[1:])) if type(key) is tuple and key[0] == "tuple" else _basic(key)
    entries, sizes = parse(index, shape)
    return lower(entries, sizes, wrap), sizes


def _basic(key: Any) -> Any:
    return slice(*key) if type(key) is tuple else key


def _broadcast(shapes_: Sequence[Shape]) -> Shape:
    try:
        return broadcast_shape("indexing", [(), *shapes_])
    except ShapeError:
        raise ShapeError(
            f"index arrays must broadcast to one shape, got shapes {', '.join(map(str, shapes_))}"
        ) from None


def _from_the_end(positions: Any, axis: int, shape: Shape, wrap: bool) -> Any:
    """Convert positions along ``axis`` to count from the start: if ``wrap``, add the axis's size to negative positions.

    Positions out of range stay out of range. ``shape`` is the shape of the indexed array.
    """
    size = shape[axis]
    if isinstance(size, Dim):
        return _from_a_symbolic_end(positions, size, wrap)
    if type(positions) is int:
        require_element(positions, size, axis)
    if not isinstance(positions, Array):
        positions = np.asarray(positions)
        if positions.dtype.kind == "i" and positions.dtype.itemsize <= 4 and size < 2**31:
            positions = positions.astype(np.int32, copy=False)
            if not wrap or positions.min(initial=0) >= 0:
                return positions
            return np.asarray(np.where(positions < 0, positions + np.int32(size), positions))
        if positions.dtype.kind == "i" and wrap:
            positions = positions.astype(np.int64, copy=False)
            positions = np.where(positions < 0, positions + size, positions)
        far = (-(2**31), max(size, 2**31 - 1)) if positions.dtype == np.int64 else (-1, size)
        return np.asarray(np.clip(positions, *far))  # keeps positions out of range, for messages
    kind, width = positions.dtype.kind, positions.dtype.itemsize
    if width < 4 or kind == "u":
        positions = ops.convert_element_type(positions, _INT64 if width == 8 else _INT32)
    positions = wide_enough(positions, size)
    return (
        positions if kind == "u" or not wrap else ops.where(ops.lt(positions, 0), ops.add(positions, size), positions)
    )


def _from_a_symbolic_end(positions: Any, size: Dim, wrap: bool) -> Any:
    """Convert positions along an axis of symbolic size to count from the start, as ``_from_the_end`` does."""
    if not isinstance(positions, Array):
        known = np.asarray(positions)
        if known.dtype.kind == "u" or not wrap or known.min(initial=0) >= 0:
            return np.clip(known, -1, 2**31 - 1).astype(np.int32)
        positions = ArrayImpl(known.astype(np.int64 if known.dtype.itemsize == 8 and _is_wide(known) else np.int32)[()])
    positions = wide_enough(positions, size)
    if positions.dtype.kind == "u" or not wrap:
        return positions
    end = ops.convert_element_type(as_array(size), positions.dtype)
    return ops.where(ops.lt(positions, 0), ops.add(positions, end), positions)


def _is_wide(positions: Any) -> bool:
    return bool(np.abs(positions).max(initial=0) >= 2**31)


def _vectors(columns: Sequence[tuple[Any, int]], batch: Shape) -> Any:
    """Broadcast arrays of indices to the shape ``batch``, and stack them along a new last axis to index vectors.

    Args:
      columns: for each component of the vectors a pair of an array and a number: the array's last axis is aligned with
        axis ``number - 1`` of ``batch``.
      batch: the shape without the last axis.
    """
    if all(isinstance(c, np.ndarray) for c, _ in columns):
        large = any(c.dtype != np.int32 and c.max(initial=0) >= 2**31 for c, _ in columns)
        out = np.empty((*batch, len(columns)), np.int64 if large else np.int32)
        for k, (c, end) in enumerate(columns):
            out[..., k] = c.reshape(c.shape + (1,) * (len(batch) - end)) if c.ndim else c
        return ArrayImpl(out)
    wide = any(c.dtype.itemsize == 8 if isinstance(c, Array) else c.max(initial=0) >= 2**31 for c, _ in columns)
    dtype = _INT64 if wide else _INT32
    components = []
    for c, end in columns:
        c = ops.convert_element_type(c, dtype) if isinstance(c, Array) else ArrayImpl(c.astype(dtype)[()])
        missing = len(batch) - end if c.shape else 0
        c = shapes.broadcast_to(shapes.reshape(c, (*c.shape, *(1,) * missing)), batch)
        components.append(shapes.reshape(c, (*batch, 1)))
    return slicing.concatenate(components, len(batch))


# Reading and writing -----------------------------------------------------------------------------------------------


def read(
    x: Any, index: Any, mode: Any = None, fill_value: Any = None, sorted_: bool = False, unique: bool = False,
    wrap: bool = True,
) -> Any:  # fmt: skip
    """Read ``x[index]``.

    Args:
      x: an array.
      index: an index in NumPy's forms.
      mode: a ``GatherScatterMode``; None clips, and ``checkify`` reports positions out of range.
      fill_value: for ``FILL_OR_DROP``.
      sorted_: a promise that the index vectors are in order.
      unique: a promise that no element is selected twice.
      wrap: whether negative positions count from the end; otherwise they are out of range.
    """
    if mode is None or mode is GatherScatterMode.PROMISE_IN_BOUNDS:
        require_in_range(index, x.shape, wrap)
    if is_here(index) and mode is None and wrap and not any_symbolic(x.shape):
        positions = index._value
        if positions.dtype.kind == "i" and positions.ndim and positions.size and x.shape and x.shape[0]:
            return _read_slices(x, positions, sorted_, unique)
    if any_symbolic(x.shape):
        x, index = _sliced_first(x, index)
    entries, sizes = parse(index, x.shape)
    x = shapes.reshape(x, sizes)
    if is_basic(entries) and in_range(entries, sizes) and (wrap or not any(map(_negative, entries))):
        return read_basic(x, entries)
    if not any_symbolic(sizes):
        block = [e if type(e) is range else range(n) for e, n in zip(_of_axes(entries), sizes, strict=True)]
        x = read_basic(x, block)
        remaining = iter(x.shape)
        entries = [
            e if e is None or e is Ellipsis else range(n) if type(e) is range else e
            for e, n in ((e, 0 if e is None or e is Ellipsis else next(remaining)) for e in entries)
        ]
    low = lower(entries, x.shape, wrap)
    if 0 in low.shape:
        return committed_like(indexing.zeros(low.full_shape, x.dtype), x)
    for axis in low.numbers.start_index_map:
        if x.shape[axis] == 0:
            raise IndexingError(f"index {quote(index)} is out of bounds for axis {axis} with size 0")
    out = indexing.gather(
        x,
        low.indices,
        low.numbers,
        low.sizes,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode,
        fill_value=fill_value,
        indices_are_sorted=sorted_ or low.unique,
        unique_indices=unique or low.unique,
    )
    return shapes.reshape(out, low.full_shape)


def _sliced_first(x: Any, index: Any) -> tuple[Any, Any]:
    """Slice an array of a symbolic shape by the slices of an index; return the result, and the index without them."""
    items = list(index) if isinstance(index, tuple) else [index]
    if all(type(item) is not slice or item == slice(None) for item in items):
        return x, index
    kinds = [_classify(item, index) for item in items]
    rest = len(x.shape) - sum(map(_width, kinds))
    if rest < 0 or sum(item is Ellipsis for item in kinds) > 1:
        return x, index  # an error, which ``parse`` raises
    slices = [slice(None)] * len(x.shape)
    axis = 0
    for k, item in enumerate(kinds):
        if type(item) is slice:
            slices[axis], items[k] = item, slice(None)
        axis += rest if item is Ellipsis else _width(item)
    return read_simple(x, tuple(slices)), tuple(items)


def _read_slices(x: Any, positions: Any, sorted_: bool, unique: bool) -> Any:
    """Return ``x[positions]`` for an array of concrete integers.

    ``sorted_`` promises that the positions ascend, and ``unique`` that they differ.
    """
    if positions.min() < 0:
        positions = _from_the_end(positions, 0, x.shape, wrap=True)
    indices = ArrayImpl(positions.reshape(*positions.shape, 1))
    others = x.shape[1:]
    rank = positions.ndim
    return indexing.gather(
        x,
        indices,
        GatherDimensionNumbers(tuple(range(rank, rank + len(others))), (0,), (0,)),
        (1, *others),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        indices_are_sorted=sorted_,
        unique_indices=unique,
    )


def _negative(entry: Any) -> bool:
    return type(entry) is int and entry < 0


def _of_axes(entries: Sequence[Any]) -> list[Any]:
    return [e for e in entries if e is not None and e is not Ellipsis]


def write(
    scatter: Any, x: Any, index: Any, value: Any, mode: Any = None, sorted_: bool = False, unique: bool = False,
    wrap: bool = True,
) -> Any:  # fmt: skip
    """Update ``x`` at ``index`` with ``value``, by a scatter.

    Args:
      scatter: the operation, ``scatter_add`` for instance.
      x: an array.
      index: an index in NumPy's forms.
      value: an array of the dtype of ``x`` that broadcasts to the shape of ``x[index]``.
      mode: a ``GatherScatterMode``; None drops.
      sorted_: a promise that the index vectors are in order.
      unique: a promise that no element is selected twice.
      wrap: whether negative positions count from the end; otherwise they are out of range.
    """
    if mode is None:
        require_in_range(index, x.shape, wrap)
        mode = unless_checked(mode)
    low, sizes = lowered(index, x.shape, wrap)
    value = fitting(value, low.full_shape, index)
    if 0 in low.shape:
        return x
    value = shapes.reshape(shapes.broadcast_to(value, low.full_shape), low.shape)
    out = scatter(
        shapes.reshape(x, sizes),
        low.indices,
        value,
        ScatterDimensionNumbers(*low.numbers),
        mode=mode,
        indices_are_sorted=sorted_ or low.unique,
        unique_indices=unique or low.unique,
    )
    out = shapes.reshape(out, x.shape)
    return ops.convert_element_type(out, x.dtype, True) if x.weak_type else out


def fitting(value: Any, target: Shape, index: Any) -> Any:
    """Drop leading axes of size one of an update beyond the rank of ``target``; raise unless it broadcasts to it."""
    shape = value.shape
    missing = len(target) - len(shape)
    aligned = [1] * -missing + list(target[max(missing, 0) :])
    if any(n not in (1, m) for n, m in zip(shape, aligned, strict=True)):
        where = quote(index)
        raise ShapeError(f"x.at[{where}]: a value of shape {shape} does not fit x[{where}] of shape {target}")
    return value if missing >= 0 else shapes.reshape(value, shape[-missing:])
