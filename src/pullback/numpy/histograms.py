"""Histograms, counts of integers, and searches for the bins of numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.backends.host.sorting import counted
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayImpl, ArrayLike, CommittedArray
from pullback.core.errors import DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.runtime import runtime
from pullback.numpy.creation import asarray, listed
from pullback.numpy.joining import stack
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int, operand, sequence_of, size_of
from pullback.numpy.reductions import max, min, sum
from pullback.numpy.sorting import positions
from pullback.numpy.statistics import diff
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, sorting
from pullback.primitives.arrays.slicing import iota, rev, slice_in_dim
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.programs.placement import constrained, spread

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]

_INT32 = np.dtype(np.int32)


def _shape(bins: Any) -> tuple[int, ...]:
    return listed("histogramdd", bins).shape  # type: ignore[no-any-return]


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | Array | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins of :func:`histogram`.

    Args:
      a, bins, range: as in :func:`histogram`.
      weights: not used.

    Returns:
      A vector of floats, one element longer than there are bins.

    Raises:
      ShapeError: ``bins`` is not a number, or a vector of at least one edge (a TypeError and a ValueError).
      UnsupportedArgumentError: ``bins`` is the name of a rule (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.histogram_bin_edges(jnp.array([0.0, 1.0, 4.0]), bins=2))
    [0. 2. 4.]
    """
    if isinstance(bins, str):
        raise UnsupportedArgumentError(f"histogram_bin_edges: bins must be a number or an array of edges, got {bins!r}")
    x = inexact_operand("histogram_bin_edges", a)
    requested = operand("histogram_bin_edges", bins)
    if requested.shape:
        if len(requested.shape) > 1 or not requested.shape[0]:
            raise ShapeError(
                "histogram_bin_edges: bins must be a number, or a vector of at least one edge, "
                f"got shape {requested.shape}"
            )
        return convert_element_type(requested, x.dtype)
    count = size_of("histogram_bin_edges", "bins", bins)
    if range is None:
        low, high = min(x), max(x)
    else:
        low, high = (asarray(r, x.dtype) for r in sequence_of("histogram_bin_edges", "range", range, 2))
    flat = ops.eq(low, high)
    low, high = ops.where(flat, ops.sub(low, 0.5), low), ops.where(flat, ops.add(high, 0.5), high)
    fraction = ops.div(iota(x.dtype, (count + 1,), 0), builtins.max(count, 1))
    between = low * (1 - fraction) + high * fraction
    return ops.where(ops.eq(fraction, 1), high, between)


def histogram(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | Array | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """The numbers of elements in the bins of a histogram.

    Args:
      a: an array; elements outside all bins do not count.
      bins: the number of bins, all of one width, or their edges, in increasing order.
      range: the first and the last edge; by default the smallest and the largest element.
      weights: of the elements, of the shape of ``a``; 1 by default.
      density: whether to divide by the total and by the widths of the bins.
      out_sharding: how the counts are spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      The counts, as floats, and the edges. A bin holds its left edge, and the last one its right edge, too.

    Raises:
      ShapeError: the weights are not of the shape of ``a`` (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.histogram(jnp.array([0.0, 1.0, 4.0]), bins=2)[0])
    [2. 1.]
    """
    density = density is not None and flag("histogram", "density", density)
    if weights is None:
        x = inexact_operand("histogram", a)
        w: Any = shapes.full(x.shape, 1, x.dtype)
    else:
        x, w = inexact_operands("histogram", a, weights)
        if w.shape != x.shape:
            raise ShapeError(f"histogram: weights of shape {w.shape} for an array of shape {x.shape}")
    edges = histogram_bin_edges(x, bins, range)
    edges = runtime.following(edges, [x]) if type(x) is CommittedArray and type(edges) is ArrayImpl else edges
    n = edges.shape[0] - 1
    flat = shapes.reshape(x, (x.size,))
    counts = _added_up(_bin_of(flat, edges, n), shapes.reshape(w, (w.size,)), n)
    if density:
        counts = ops.div(ops.div(counts, diff(edges)), sum(counts))
    return constrained(counts, out_sharding, "histogram"), edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[Any] = 10,
    range: Sequence[Any] | ArrayLike | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """The numbers of points of the plane in the rectangles of a grid.

    Args:
      x, y: the coordinates of n points, vectors of n.
      bins: the number of bins, the same for both axes, or their edges; or a pair of either.
      range, weights, density: as in :func:`histogramdd`.

    Returns:
      The counts, a matrix with a row for each bin along ``x``, and the edges along ``x`` and ``y``.

    Raises:
      ShapeError: ``x`` and ``y`` are not vectors of one size (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.histogram2d(jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 1.0, 1.0]), bins=2)[0])
    [[1 0]
     [0 2]]
    """
    a, b = inexact_operands("histogram2d", x, y)
    if len(a.shape) != 1 or a.shape != b.shape:
        raise ShapeError(f"histogram2d: x and y must be vectors of one size, got shapes {a.shape} and {b.shape}")
    pair = isinstance(bins, (tuple, list)) and len(bins) == 2
    if not pair and len(_shape(bins)) == 1:
        bins = [bins, bins]  # the edges along both axes
    counts, edges = histogramdd(stack([a, b], -1), bins, range, weights, density)
    return counts, edges[0], edges[1]


# long: half of it is its documentation
def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[Any] = 10,
    range: Sequence[Any] | ArrayLike | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The numbers of points in the boxes of a grid with any number of axes.

    Args:
      sample: n points of d coordinates, of shape (n, d), or a list of d vectors of n.
      bins: the number of bins along each axis, or a sequence with, for each axis, their number or their edges.
      range: for each axis a pair of the first and the last edge, or None for the smallest and the largest coordinate.
      weights: of the points, a vector of n; 1 by default.
      density: whether to divide by the total and by the volumes of the boxes.

    Returns:
      The counts, of d axes: integers, or floats if there are weights or it is a density; and a list of the edges. A bin
      holds its left edge, and the last one its right edge, too.

    Raises:
      ShapeError: the operands do not fit together (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> counts, edges = jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), bins=(2, 3))
    >>> print(counts)
    [[1 0 0]
     [0 1 1]]
    """
    density = flag("histogramdd", "density", density)
    if isinstance(sample, (tuple, list)):
        sample = stack([operand("histogramdd", x) for x in sample], -1)
    points = inexact_operand("histogramdd", sample)
    if len(points.shape) != 2:
        raise ShapeError(f"histogramdd takes points of shape (n, d), got shape {points.shape}")
    n, d = points.shape
    per_axis = list(cast("Sequence[Any]", bins)) if isinstance(bins, (tuple, list)) or _shape(bins) else [bins] * d
    if len(per_axis) != d:
        raise ShapeError(
            f"histogramdd: bins must be one for each of {d} axes, or one number for all; got {len(per_axis)}"
        )
    ranges: Any = [None] * d if range is None else sequence_of("histogramdd", "range", range)
    if len(ranges) != d:
        raise ShapeError(f"histogramdd: range must have a pair, or None, for each of {d} axes; got {len(ranges)}")
    w: Any = shapes.full((n,), 1, dtypes.default_int()) if weights is None else operand("histogramdd", weights)
    if w.shape != (n,):
        raise ShapeError(f"histogramdd: weights must be a vector of {n}, one for each point, got shape {w.shape}")
    if weights is not None:
        w = convert_element_type(w, dtypes.common_dtype(points, w))
    columns = [shapes.reshape(slice_in_dim(points, i, i + 1, 1), (n,)) for i in builtins.range(d)]
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, per_axis, ranges, strict=True)]
    sizes = [edge.shape[0] - 1 for edge in edges]
    if math.prod(sizes) > np.iinfo(np.int32).max:
        raise ShapeError(f"histogramdd: there would be {math.prod(sizes)} bins, which do not fit into memory: {sizes}")
    index, inside = shapes.full((n,), 0, _INT32), shapes.full((n,), True, np.dtype(bool))
    for column, edge, size in zip(columns, edges, sizes, strict=True):
        own = _bin_of(column, edge, size)
        inside = ops.and_p.bind(inside, ops.and_p.bind(ops.ge_p.bind(own, 0), ops.lt(own, size)))
        index = ops.add(ops.mul(index, size), own)
    counts = _added_up(ops.where(inside, index, -1), w, math.prod(sizes))
    counts = shapes.reshape(counts, sizes)
    if density:
        counts = ops.div(convert_element_type(counts, points.dtype), convert_element_type(sum(counts), points.dtype))
        for i, edge in enumerate(edges):
            counts = ops.div(counts, shapes.reshape(diff(edge), [sizes[i] if k == i else 1 for k in builtins.range(d)]))
    return counts, edges


def _bin_of(x: Any, edges: Any, size: int) -> Any:
    """Return for each number in ``x`` the index of its bin, from 0 to ``size - 1``.

    ``edges`` are the ``size + 1`` edges of the bins. A number outside of all bins gets an index outside of this range.
    """
    index = ops.sub(sorting.searchsorted(edges, x, "right", _INT32), 1)
    return ops.where(ops.eq(x, slice_in_dim(edges, size, size + 1, 0)), size - 1, index)


def _added_up(index: Any, weights: Any, size: int) -> Any:
    """Return for each bin from 0 to ``size - 1`` the sum of the weights with this index.

    Weights with an index out of this range are ignored.
    """
    inside = ops.and_p.bind(ops.ge_p.bind(index, 0), ops.lt(index, size))
    if size == 0:
        return shapes.full((0,), 0, weights.dtype)
    counted = ops.where(inside, weights, 0)
    return sorting.add_along_axis(counted, sorting.clip_indices(index, size), 0, size)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The number of occurrences of each integer from 0 up.

    Args:
      x: an array of integers, of one axis; negative ones count as 0.
      weights: of the integers; 1 by default.
      minlength: the least length of the result.
      length: its length, beyond which integers do not count; required if ``x`` is traced.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      A vector: of integers, or of the dtype of ``weights``.

    Raises:
      DtypeError: ``x`` does not hold integers (a TypeError).
      ShapeError: ``x`` does not have one axis (a ValueError).
      ConcretizationTypeError: ``x`` is traced and there is no ``length`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.bincount(jnp.array([0, 2, 2])))
    [1 0 2]
    """
    if out_sharding is not None:
        return spread(partial(bincount, minlength=minlength, length=length), [x, weights], out_sharding, "bincount")
    values = operand("bincount", x)
    if not (dtypes.is_integer(values.dtype) or dtypes.is_bool(values.dtype)):
        raise DtypeError(f"bincount takes integers, got {dtypes.short_name(values.dtype)}")
    if len(values.shape) != 1:
        raise ShapeError(f"bincount takes an array of one axis, got shape {values.shape}")
    if values.dtype.itemsize < _INT32.itemsize:  # a narrow dtype may not hold the length
        values = convert_element_type(values, _INT32)
    minlength = known_int("bincount", "minlength", minlength)
    if length is not None:
        length = size_of("bincount", "length", length)
    else:
        length = builtins.max(minlength, int(max(values)) + 1 if values.size else 0, 0)
    if weights is None and type(values) is ArrayImpl and length:
        counted = _counted(values._value, length)
        if counted is not None:
            return ArrayImpl(counted)
    values = ops.max_p.bind(values, 0)
    if weights is None:
        w: Any = shapes.full(values.shape, 1, dtypes.default_int())
    else:
        w = operand("bincount", weights)
        if w.shape != values.shape:
            raise ShapeError(f"bincount: weights of shape {w.shape} for an array of shape {values.shape}")
    return _added_up(values, w, length)


def _counted(values: Any, length: int) -> Any:
    """Return how often each number below ``length`` occurs; None if there are none or others."""
    found = counted(values, length)
    if found is not None:
        return found.astype(dtypes.default_int())
    if not values.size or values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= length:
        return None
    return np.bincount(values.astype(np.intp, copy=False), minlength=length).astype(dtypes.default_int())


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin to which each element belongs.

    Args:
      x: an array.
      bins: the edges of the bins, an array of one axis, all increasing or all decreasing.
      right: whether a bin holds its right edge instead of its left one.
      method: accepted for compatibility.

    Returns:
      int32 numbers, from 0, before the first edge, to the number of edges.

    Raises:
      ShapeError: ``bins`` does not have one axis (a ValueError).
      DtypeError: complex numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.digitize(jnp.array([0.5, 1.0, 2.5]), jnp.array([0.0, 1.0, 2.0])))
    [1 2 3]
    """
    right = flag("digitize", "right", right)
    values, edges = operand("digitize", x), operand("digitize", bins)
    if dtypes.is_complex(values.dtype) or dtypes.is_complex(edges.dtype):
        raise DtypeError("digitize takes real numbers, got complex ones")
    if len(edges.shape) != 1:
        raise ShapeError(f"digitize: bins must have one axis, got shape {edges.shape}")
    n = edges.shape[0]
    if n == 0:
        return shapes.full(values.shape, 0, _INT32)
    flat = shapes.reshape(values, (values.size,))
    side = "left" if right else "right"
    up = positions("digitize", edges, flat, side)
    down = ops.sub(n, positions("digitize", rev(edges, (0,)), flat, side))
    first, last = slice_in_dim(edges, 0, 1, 0), slice_in_dim(edges, n - 1, n, 0)
    return shapes.reshape(ops.where(ops.ge_p.bind(last, first), up, down), values.shape)
