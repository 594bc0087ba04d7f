"""Sums, products and extremes of the rows of an array by segments, which are numbered.

Each is a scatter into the identity element of the operation, with its derivatives: equal largest elements share the
tangent and the cotangent evenly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.backends.devices.shardings import OutSharding
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, StaticArgumentError
from pullback.core.faces import face
from pullback.core.trace import Tracer
from pullback.numpy.promotion import known_int, operand
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import scatter, shapes, slicing
from pullback.primitives.arrays.windows import GatherScatterMode, ScatterDimensionNumbers
from pullback.transforms.programs.placement import spread

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
face(globals())


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of the rows of each segment.

    Args:
      data: an array of numbers, of shape (rows, ...).
      segment_ids: integers of shape (rows,): the number of the segment of each row, in any order.
      num_segments: the number of segments; by default one more than the largest of the numbers, which must then be
        concrete, so that it is required under ``jit``.
      indices_are_sorted: a promise that the numbers do not decrease.
      unique_indices: a promise that no number occurs twice.
      bucket_size: the number of rows to sum at a time, so that small terms are not lost in a large sum; by default all.
      mode: the treatment of numbers out of range, a ``lax.GatherScatterMode`` or its name: their rows are dropped, or
        with ``"clip"`` go to the first or the last segment.
      out_sharding: how the result is spread over devices, a sharding or a ``PartitionSpec``.

    Returns:
      An array of shape (num_segments, ...) and of the dtype of ``data``; 0 for segments without rows.

    Raises:
      ShapeError: the shapes do not fit each other, or there are no rows and no ``num_segments`` (a TypeError and a
        ValueError).
      DtypeError: ``segment_ids`` are not integers, or ``data`` not numbers (a TypeError).
      ArgumentError: a negative number of segments, or buckets of no rows (a TypeError and a ValueError).
      StaticArgumentError: there is no ``num_segments``, and ``segment_ids`` are traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ops
    >>> print(ops.segment_sum(jnp.array([1, 2, 3, 4]), jnp.array([0, 2, 0, 7]), num_segments=3))
    [4 0 2]
    """
    unique_indices = flag("segment_sum", "unique_indices", unique_indices)
    indices_are_sorted = flag("segment_sum", "indices_are_sorted", indices_are_sorted)
    options = (indices_are_sorted, unique_indices, mode, out_sharding)
    return _segments("segment_sum", data, segment_ids, num_segments, bucket_size, *options)


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of the rows of each segment; 1 for segments without rows.

    Args:
      data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding: as in
        :func:`segment_sum`, which also describes the results and errors.
      bucket_size: checked, without effect.

    Returns:
      An array of shape (num_segments, ...) and of the dtype of ``data``.

    Raises:
      OperandError: ``data`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit each other, or there are no rows and no ``num_segments`` (a TypeError and a
        ValueError).
      DtypeError: ``segment_ids`` are not integers, or ``data`` not numbers (a TypeError).
      ArgumentError: a negative number of segments, or a promise that is not a boolean (a TypeError and a ValueError).
      StaticArgumentError: there is no ``num_segments``, and ``segment_ids`` are traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ops
    >>> print(ops.segment_prod(jnp.array([1, 2, 3, 4]), jnp.array([0, 2, 0, 2])))
    [3 1 8]
    """
    unique_indices = flag("segment_prod", "unique_indices", unique_indices)
    indices_are_sorted = flag("segment_prod", "indices_are_sorted", indices_are_sorted)
    options = (indices_are_sorted, unique_indices, mode, out_sharding)
    return _segments("segment_prod", data, segment_ids, num_segments, bucket_size, *options)


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The largest of the rows of each segment; -inf, or the least integer, for segments without rows.

    Args:
      data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding: as in
        :func:`segment_sum`, which also describes the results and errors; ``data`` is real, or of booleans.
      bucket_size: checked, without effect.

    Returns:
      An array of shape (num_segments, ...) and of the dtype of ``data``.

    Raises:
      OperandError: ``data`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit each other, or there are no rows and no ``num_segments`` (a TypeError and a
        ValueError).
      DtypeError: ``segment_ids`` are not integers, or ``data`` not real numbers or booleans (a TypeError).
      ArgumentError: a negative number of segments, or a promise that is not a boolean (a TypeError and a ValueError).
      StaticArgumentError: there is no ``num_segments``, and ``segment_ids`` are traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ops
    >>> print(ops.segment_max(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0, 2, 0, 2])))
    [  3. -inf   4.]
    """
    unique_indices = flag("segment_max", "unique_indices", unique_indices)
    indices_are_sorted = flag("segment_max", "indices_are_sorted", indices_are_sorted)
    options = (indices_are_sorted, unique_indices, mode, out_sharding)
    return _segments("segment_max", data, segment_ids, num_segments, bucket_size, *options)


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The least of the rows of each segment; inf, or the largest integer, for segments without rows.

    Args:
      data, segment_ids, num_segments, indices_are_sorted, unique_indices, mode, out_sharding: as in
        :func:`segment_sum`, which also describes the results and errors; ``data`` is real, or of booleans.
      bucket_size: checked, without effect.

    Returns:
      An array of shape (num_segments, ...) and of the dtype of ``data``.

    Raises:
      OperandError: ``data`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit each other, or there are no rows and no ``num_segments`` (a TypeError and a
        ValueError).
      DtypeError: ``segment_ids`` are not integers, or ``data`` not real numbers or booleans (a TypeError).
      ArgumentError: a negative number of segments, or a promise that is not a boolean (a TypeError and a ValueError).
      StaticArgumentError: there is no ``num_segments``, and ``segment_ids`` are traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ops
    >>> print(ops.segment_min(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0, 2, 0, 2])))
    [ 1. inf  2.]
    """
    unique_indices = flag("segment_min", "unique_indices", unique_indices)
    indices_are_sorted = flag("segment_min", "indices_are_sorted", indices_are_sorted)
    options = (indices_are_sorted, unique_indices, mode, out_sharding)
    return _segments("segment_min", data, segment_ids, num_segments, bucket_size, *options)


_SCATTERS = {
    "segment_sum": scatter.scatter_add, "segment_prod": scatter.scatter_mul,
    "segment_max": scatter.scatter_max, "segment_min": scatter.scatter_min,
}  # fmt: skip


def _identity(name: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity element of the function ``name``, such as "segment_max": the result for an empty segment."""
    if name in ("segment_sum", "segment_prod"):
        return int(name == "segment_prod")
    return reductions.extreme(dtype, largest=name == "segment_min")


def _segments(
    name: str, data: Any, segment_ids: Any, num_segments: Any, bucket_size: Any, sorted_: bool, unique: bool,
    mode: Any, out_sharding: Any,
) -> Any:  # fmt: skip
    x, ids = operand(name, data), operand(name, segment_ids)
    _check(name, x, ids)
    bucket = None if bucket_size is None else known_int(name, "bucket_size", bucket_size)
    if bucket is not None and bucket < 1:
        raise ArgumentError(f"{name}: bucket_size, the number of rows taken at a time, must be positive, got {bucket}")
    count = _count(name, ids, num_segments)
    reduced = lambda x, ids: _segments_of(name, x, ids, count, bucket, sorted_, unique, mode)
    return spread(reduced, [x, ids], out_sharding, name)


def _segments_of(
    name: str, x: Any, ids: Any, count: int, bucket: int | None, sorted_: bool, unique: bool, mode: Any
) -> Any:
    rows = (*ids.shape, *x.shape[1:])
    if x.shape != rows:
        x = shapes.broadcast_to(x, rows)
    if not ids.shape:
        x, ids = shapes.expand_dims(x, (0,)), shapes.expand_dims(ids, (0,))
    shape = (count, *x.shape[1:])
    start = shapes.full(shape, _identity(name, x.dtype), x.dtype)
    if name == "segment_sum" and bucket is not None and bucket < x.shape[0]:
        return _by_buckets(start, ids, x, bucket, unique, mode)
    return _combine(name, start, ids, x, sorted_, unique, mode)


def _combine(name: str, start: Any, ids: Any, x: Any, sorted_: bool, unique: bool, mode: Any) -> Any:
    numbers = ScatterDimensionNumbers(tuple(range(1, len(x.shape))), (0,), (0,))
    return _SCATTERS[name](
        start, shapes.expand_dims(ids, (1,)), x, numbers, indices_are_sorted=sorted_, unique_indices=unique,
        mode=GatherScatterMode.FILL_OR_DROP if mode is None else mode,
    )  # fmt: skip


def _by_buckets(start: Any, ids: Any, x: Any, bucket: int, unique: bool, mode: Any) -> Any:
    """Return ``start`` plus the sums of the rows of ``x`` by segment, added up bucket by bucket.

    Args:
      start: an array with a row for each segment.
      ids: the segment of each row of ``x``.
      x: the rows to sum.
      bucket: the number of consecutive rows in a bucket; the last bucket may have fewer.
      unique: a promise that no id occurs twice.
      mode: how the scatter treats ids out of bounds.
    """
    complete = x.shape[0] // bucket * bucket
    xs, ns = (slicing.slice_in_dim(v, 0, complete, 0) for v in (x, ids))
    xs, ns = (shapes.reshape(v, (complete // bucket, bucket, *v.shape[1:])) for v in (xs, ns))

    def summed(ids: Any, x: Any) -> Any:
        out = _combine("segment_sum", shapes.zeros_like(start), ids, x, False, unique, mode)
        # The compiler would add each row to the total, instead of the sum of the bucket.
        return ops.materialized(out) if dtypes.is_inexact(x.dtype) else out

    def step(total: Any, bucket: Any) -> tuple[Any, None]:
        return ops.add(total, summed(*bucket)), None

    total, _ = scan(step, start, (ns, xs))
    if complete < x.shape[0]:
        ids, x = (slicing.slice_in_dim(v, complete, x.shape[0], 0) for v in (ids, x))
        total = ops.add(total, summed(ids, x))
    return total


def _check(name: str, x: Any, ids: Any) -> None:
    if not dtypes.is_integer(ids.dtype):
        raise DtypeError(f"{name}: segment_ids must be integers, got {dtypes.short_name(ids.dtype)}")
    real = dtypes.is_float(x.dtype) or dtypes.is_integer(x.dtype)
    ordered = name in ("segment_max", "segment_min")
    if not (real or (dtypes.is_bool(x.dtype) if ordered else dtypes.is_complex(x.dtype))):
        kind = "real numbers or booleans" if ordered else "numbers"
        raise DtypeError(f"{name}: data must be of {kind}, got {dtypes.short_name(x.dtype)}; convert it with astype")
    rows = x.shape[:1]
    if len(ids.shape) > 1 or rows not in ((), (1,), ids.shape):
        raise ShapeError(
            f"{name}: segment_ids must be a vector with an integer for each row of data; got segment_ids of shape "
            f"{ids.shape} for data of shape {x.shape}"
        )


def _count(name: str, ids: Any, num_segments: Any) -> int:
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise StaticArgumentError(f"{name}: num_segments, the size of the result, must be static: pass an int")
        if not pnp.size(ids):
            raise ShapeError(f"{name}: without rows the number of segments is unknown; pass num_segments")
        return max(0, int(np.max(np.asarray(ids))) + 1)
    count = known_int(name, "num_segments", num_segments)
    if count < 0:
        raise ArgumentError(f"{name}: num_segments must not be negative, got {count}")
    return count
