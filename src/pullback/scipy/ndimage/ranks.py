"""Filters of images by the order of the elements in a window: the smallest, the largest, the median, any rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError
from pullback.numpy.promotion import axis_index, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.reductions import reduce_max, reduce_min
from pullback.scipy.ndimage.arguments import (
    axes_of,
    by_scipy,
    finished,
    fixed,
    inserted,
    mask_of,
    mode_of,
    modes_of,
    number,
    of_all,
    origins_of,
    per_axis,
    real_image,
    result_dtype,
    size_of,
    window_axes,
)
from pullback.scipy.ndimage.docs import of_image
from pullback.scipy.ndimage.windows import extended, extended_all, margins, piece, stacked

__all__ = [
    "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d", "percentile_filter",
    "rank_filter",
]  # fmt: skip


def has_nan(x: Any) -> bool:
    """Whether an array on the host has NaN, which SciPy's comparisons pass over in some order or other."""
    return is_on_host(x) and x.dtype.kind == "f" and bool(np.isnan(host_value(x)).any())


def outside_of(x: Any, cval: Any) -> Any:
    """Return the number beyond the borders as one of the dtype of an image: integers are truncated."""
    if not isinstance(cval, (int, float)):
        return finished(cval, x.dtype)
    if dtypes.is_integer(x.dtype) and np.isfinite(cval):
        return int(cval)
    return cval


def extreme(x: Any, size: int, axis: int, dtype: Any, mode: str, cval: Any, origin: int, kind: str) -> Any:
    """Return the extremes of windows along an axis; the arguments are checked.

    Args:
      x: the image.
      size: the number of elements of the window.
      axis: the axis, from the start.
      dtype: the dtype of the result.
      mode, cval, origin: as for :func:`minimum_filter1d`.
      kind: "minimum" or "maximum".
    """
    if not x.size or size == 1:
        return finished(x, dtype)
    found = None
    if not has_nan(x):
        found = by_scipy(f"{kind}_filter1d", dtype, x, size=size, axis=axis, mode=mode, cval=cval, origin=origin)
    if found is not None:
        return found
    wide = extended(x, axis, margins(size, origin), mode, outside_of(x, cval))
    starts = ([k if i == axis else 0 for i in range(len(x.shape))] for k in range(size))
    reduce = reduce_max if kind == "maximum" else reduce_min
    return finished(reduce(pnp.stack([piece(wide, start, x.shape) for start in starts]), (0,)), dtype)


class Window:
    """A window of an image, whose elements a filter puts in order: a box, or some of the elements of one.

    Attributes:
      axes: the axes of the image that the window has.
      sizes, origins: its sizes and origins along these axes.
      mask: which elements it has, None for all of them.
    """

    def __init__(self, name: str, size: Any, footprint: Any, origin: Any, axes: Any, rank: int) -> None:
        self.axes = (axes_of if footprint is None else window_axes)(name, axes, rank)
        if footprint is None and size is None:
            raise ArgumentError(f"{name} needs a size or a footprint")
        if footprint is not None and size is not None:
            raise ArgumentError(f"{name} takes a size or a footprint, got both")
        count = len(self.axes)
        if footprint is None:
            self.mask = None
            self.sizes = per_axis(name, "size", size, count, lambda n, what, v: size_of(n, what, v))
        else:
            self.mask = mask_of(name, "footprint", footprint, count)
            self.sizes = list(self.mask.shape)
            if not self.mask.any():
                raise ArgumentError(f"{name}: a footprint needs an element that is true")
            if self.mask.all():
                self.mask = None
        self.origins = origins_of(name, origin, self.sizes)

    def full(self, rank: int) -> tuple[np.ndarray[Any, Any], list[int]]:
        """Return the window as a mask, and its origins, along all axes of an image."""
        if self.mask is None:
            sizes = of_all(self.sizes, self.axes, rank, 1)
            return np.ones(sizes, bool), of_all(self.origins, self.axes, rank, 0)
        return inserted(self.mask, self.axes, rank), of_all(self.origins, self.axes, rank, 0)


def _extremes(
    name: str, input: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Array:
    x = real_image(name, input)
    window = Window(name, size, footprint, origin, axes, len(x.shape))
    dtype, outside, kind = result_dtype(name, output, x.dtype), number(name, "cval", cval), name.partition("_")[0]
    if window.mask is None:
        modes = modes_of(name, mode, len(window.axes))
        for axis, length, offset, one in zip(window.axes, window.sizes, window.origins, modes, strict=True):
            x = extreme(x, length, axis, dtype, one, outside, offset, kind)
        return as_array(finished(x, dtype))
    mask, origins = window.full(len(x.shape))
    return as_array(extremes(x, mask, dtype, mode_of(name, mode), outside, origins, kind))


def extremes(x: Any, mask: Any, dtype: Any, mode: str, cval: Any, origins: Sequence[int], kind: str) -> Any:
    """Return the extremes of the true elements of windows; the arguments are checked."""
    if not x.size:
        return finished(x, dtype)
    found = None
    if not has_nan(x):
        found = by_scipy(f"{kind}_filter", dtype, x, footprint=mask, mode=mode, cval=cval, origin=list(origins))
    if found is not None:
        return found
    wide = extended_all(x, mask.shape, origins, [mode] * len(x.shape), outside_of(x, cval))
    reduce = reduce_max if kind == "maximum" else reduce_min
    return finished(reduce(stacked(wide, mask, x.shape), (0,)), dtype)


def _one_axis(name: str, input: Any, size: Any, axis: Any, output: Any, mode: Any, cval: Any, origin: Any) -> Array:
    x = real_image(name, input)
    where = axis_index(axis, len(x.shape), name)
    length = size_of(name, "size", size)
    (offset,) = origins_of(name, origin, (length,))
    dtype, kind = result_dtype(name, output, x.dtype), name.partition("_")[0]
    return as_array(extreme(x, length, where, dtype, mode_of(name, mode), number(name, "cval", cval), offset, kind))


@of_image("real numbers or Booleans")
def minimum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """The smallest elements of windows along an axis of an image.

    Args:
      axis: the axis.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. Equal elements share the derivative.

    Raises:
      ShapeError: an image without axes, or a size that is not positive (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or an origin outside of the window (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.minimum_filter1d(jnp.array([2.0, 8.0, 0.0, 4.0, 1.0, 9.0]), 3))
    [2. 0. 0. 0. 1. 1.]
    """
    return _one_axis("minimum_filter1d", input, size, axis, output, mode, cval, origin)


@of_image("real numbers or Booleans")
def maximum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """The largest elements of windows along an axis of an image.

    Args:
      axis: the axis.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. Equal elements share the derivative.

    Raises:
      ShapeError, ArgumentError: as for :func:`minimum_filter1d`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.maximum_filter1d(jnp.array([2.0, 8.0, 0.0, 4.0, 1.0, 9.0]), 3))
    [8. 8. 8. 4. 9. 9.]
    """
    return _one_axis("maximum_filter1d", input, size, axis, output, mode, cval, origin)


@of_image("real numbers or Booleans")
def minimum_filter(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The smallest elements of windows of an image.

    Args:
      mode: as for :func:`correlate1d`; one, or with ``size`` one for each of the axes.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. Equal elements share the derivative.

    Raises:
      ShapeError: an image without axes, or a window of another number of axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, an origin outside of the window, neither ``size`` nor ``footprint``, or both (a
        TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.minimum_filter(jnp.arange(9).reshape(3, 3), 3))
    [[0 0 1]
     [0 0 1]
     [3 3 4]]
    """
    return _extremes("minimum_filter", input, size, footprint, output, mode, cval, origin, axes)


@of_image("real numbers or Booleans")
def maximum_filter(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The largest elements of windows of an image.

    Args:
      mode: as for :func:`correlate1d`; one, or with ``size`` one for each of the axes.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. Equal elements share the derivative.

    Raises:
      ShapeError, ArgumentError: as for :func:`minimum_filter`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.maximum_filter(jnp.arange(9).reshape(3, 3), footprint=jnp.array([[1, 0, 1]])))
    [[1 2 2]
     [4 5 5]
     [7 8 8]]
    """
    return _extremes("maximum_filter", input, size, footprint, output, mode, cval, origin, axes)


# Ranks ---------------------------------------------------------------------------------------------------------------


def _percentile(name: str, percentile: Any, count: int) -> int:
    """Return the rank of a percentile among ``count`` elements, the next one below."""
    value = fixed(name, "percentile", percentile)
    value = value + 100.0 if value < 0 else value
    if not 0 <= value <= 100:
        raise ArgumentError(f"{name}: percentile must be from -100 to 100, got {percentile}")
    return count - 1 if value == 100 else int(count * value / 100.0)


def _ranked(
    name: str, input: Any, rank: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any, origin: Any,
    axes: Any,
) -> Array:  # fmt: skip
    x = real_image(name, input)
    window = Window(name, size, footprint, origin, axes, len(x.shape))
    mask, origins = window.full(len(x.shape))
    count = int(mask.sum())
    if name == "median_filter":
        k = count // 2
    elif name == "percentile_filter":
        k = _percentile(name, rank, count)
    else:
        k = known_int(name, "rank", rank)
        if not -count <= k < count:
            raise ArgumentError(f"{name}: a window of {count} elements has no rank {k}")
        k %= count
    dtype, outside, kind = result_dtype(name, output, x.dtype), number(name, "cval", cval), mode_of(name, mode)
    if k in (0, count - 1):
        ends = "minimum" if k == 0 else "maximum"
        if window.mask is None:
            for axis, length, offset in zip(window.axes, window.sizes, window.origins, strict=True):
                x = extreme(x, length, axis, dtype, kind, outside, offset, ends)
            return as_array(finished(x, dtype))
        return as_array(extremes(x, mask, dtype, kind, outside, origins, ends))
    if not x.size:
        return as_array(finished(x, dtype))
    found = None
    if not has_nan(x):
        found = by_scipy("rank_filter", dtype, x, rank=k, footprint=mask, mode=kind, cval=outside, origin=origins)
    if found is not None:
        return found
    wide = extended_all(x, mask.shape, origins, [kind] * len(x.shape), outside_of(x, outside))
    ordered = pnp.sort(stacked(wide, mask, x.shape), axis=0)
    values = ordered[k]
    if dtypes.is_inexact(x.dtype):  # NaN is the last
        values = ops.where(ops.ne_p.bind(ordered[-1], ordered[-1]), ordered[-1], values)
    return as_array(finished(values, dtype))


@of_image("real numbers or Booleans")
def median_filter(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    output: DTypeLike | None = None, mode: str = "reflect", cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The medians of windows of an image; the upper one of the two in the middle for an even number of elements.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. The derivative is that of the element.

    Raises:
      ShapeError, ArgumentError: as for :func:`minimum_filter`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.median_filter(jnp.array([1.0, 2.0, 90.0, 3.0, 4.0]), 3))
    [1. 2. 3. 4. 4.]
    """
    return _ranked("median_filter", input, None, size, footprint, output, mode, cval, origin, axes)


@of_image("real numbers or Booleans")
def rank_filter(
    input: ArrayLike, rank: int, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    output: DTypeLike | None = None, mode: str = "reflect", cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The elements of some rank in windows of an image.

    Args:
      rank: how many elements are before the one in the order of sizes; negative ranks count from the largest, -1.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. The derivative is that of the element.

    Raises:
      ShapeError: as for :func:`minimum_filter`.
      ArgumentError: as there, and for a rank that the window does not have (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.rank_filter(jnp.array([1.0, 2.0, 90.0, 3.0, 4.0]), -2, 4))
    [2. 2. 3. 4. 4.]
    """
    return _ranked("rank_filter", input, rank, size, footprint, output, mode, cval, origin, axes)


@of_image("real numbers or Booleans")
def percentile_filter(
    input: ArrayLike, percentile: float, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    output: DTypeLike | None = None, mode: str = "reflect", cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The percentiles of windows of an image, without interpolation between elements.

    Args:
      percentile: from 0 for the smallest element to 100 for the largest; -20 is 80.

    Returns:
      An array of the shape of ``input``; NaN where a window has NaN. The derivative is that of the element.

    Raises:
      ShapeError: as for :func:`minimum_filter`.
      ArgumentError: as there, and for a percentile out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.percentile_filter(jnp.array([1.0, 2.0, 90.0, 3.0, 4.0]), 40, 3))
    [1. 2. 3. 4. 4.]
    """
    return _ranked("percentile_filter", input, percentile, size, footprint, output, mode, cval, origin, axes)
