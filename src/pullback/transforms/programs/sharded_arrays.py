"""Arrays over several devices, made of their parts, and looked at by their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.devices import shards
from pullback.backends.devices.buffers import buffer_of, from_buffer
from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import Index, NamedSharding, Sharding, SingleDeviceSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PyTree
from pullback.core.array import Array, ArrayImpl, ArrayLike, CommittedArray, as_array, signature
from pullback.core.errors import ArgumentError, ShapeError, ShardingError
from pullback.core.naming import quoted
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import committed, destination
from pullback.transforms.programs.transfer import device_of, device_put


class Shard:
    """The part of an array that one device has.

    Attributes:
      device: the device.
      index: a slice of the whole array for each of its axes.
      replica_id: 0 for one of the equal parts, 1 and so on for the others.
      data: the part, an array on the device; None if the device belongs to another process.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: tuple[slice, ...], replica_id: int, data: Any) -> None:
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data = data

    def __repr__(self) -> str:
        data = "not of this process" if self.data is None else self.data
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={data})"


def addressable_shards(x: ArrayImpl) -> list[Shard]:
    """The parts of an array that the devices of this process have."""
    if not isinstance(x, CommittedArray):
        return [Shard(device_of(x), (slice(None),) * x.ndim, 0, x)]
    return [
        Shard(device, index, copy, from_buffer(buffer, shards.shard_signature(x._signature, device)))
        for device, index, copy, buffer in shards.local_shards(x)
    ]


def global_shards(x: ArrayImpl) -> list[Shard]:
    """All parts of an array; of those in other processes there is no data."""
    if not (isinstance(x, CommittedArray) and isinstance(x._signature.placement, NamedSharding)):
        return addressable_shards(x)
    known = {shard.device: shard for shard in addressable_shards(x)}
    return [
        known.get(device) or Shard(device, index, copy, None) for device, index, copy in shards.all_shards(x._signature)
    ]


def sharding_of(x: Any) -> Sharding:
    """How the elements of an array are spread over devices."""
    placement = device_of(x)
    return SingleDeviceSharding(placement) if isinstance(placement, Device) else placement


# Arrays made of parts -------------------------------------------------------------------------------------------------


def _sharding(given: Any, who: str) -> Any:
    if not isinstance(given, Sharding):
        raise ShardingError(f"{who}: expected a sharding such as NamedSharding(mesh, P('x')), got {quoted(given)}")
    return destination(given, who)


def _shape(given: Any, who: str) -> tuple[int, ...]:
    try:
        shape = tuple(map(int, given))
        if all(n >= 0 for n in shape):
            return shape
    except (TypeError, ValueError):
        pass
    raise ShapeError(f"{who}: the shape must be a sequence of integers that are not negative, got {quoted(given)}")


def _part(value: Any, shape: tuple[int, ...], dtype: Any, who: str, device: Device) -> ArrayImpl:
    part = as_array(np.asarray(value) if isinstance(value, (list, tuple)) else value)
    if not isinstance(part, ArrayImpl):
        raise ArgumentError(f"{who}: the part for {device} is traced, {part!r}: parts must be known arrays")
    if part.shape != shape:
        raise ShapeError(f"{who}: the part for {device} must have the shape {shape}, got one of shape {part.shape}")
    if dtype is not None and part.dtype != dtype:
        raise ShapeError(
            f"{who}: all parts must have one dtype, but the one for {device} has {dtypes.dtype_name(part.dtype)} "
            f"instead of {dtypes.dtype_name(dtype)}"
        )
    return part


def _from_local(shape: tuple[int, ...], placement: Any, parts: Sequence[ArrayImpl], dtype: Any) -> ArrayImpl:
    """An array over devices, of the parts for those of this process."""
    sig = signature(shape, dtype, False, placement)
    local = placement.assignment.local
    buffers = [buffer_of(part, device) for device, part in zip(local, parts, strict=True)]
    return from_buffer(shards.from_shards(buffers, sig), sig)


@api_boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike = None
) -> Array:
    """An array over several devices, of arrays that are each on one of them; nothing is moved.

    Args:
      shape: of the whole.
      sharding: how it is spread.
      arrays: for each device of this process its part, in any order; they are told apart by their devices.
      dtype: of the parts; needed only where this process has none.

    Returns:
      An array of the shape, with this sharding.

    Raises:
      ShardingError: the sharding does not fit the shape, or there are not as many arrays as devices (a ValueError).
      ShapeError: a part has another shape than the sharding says, or another dtype than the others (a ValueError).

    >>> import pullback
    >>> import pullback.numpy as pnp
    >>> rows = pullback.NamedSharding(pullback.make_mesh((1,), ("i",)), pullback.P("i"))
    >>> print(make_array_from_single_device_arrays((2,), rows, [pnp.ones(2)]))
    [1. 1.]
    """
    who = "make_array_from_single_device_arrays"
    whole, placement = _shape(shape, who), _sharding(sharding, who)
    given = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    if isinstance(placement, Device):
        if len(given) != 1:
            raise ShardingError(f"{who}: a sharding of one device needs one array, got {len(given)}")
        return committed(_part(given[0], whole, None, who, placement), placement)
    part_shape = placement.shard_shape(whole)
    local = placement.assignment.local
    if len(given) != len(local):
        raise ShardingError(
            f"{who}: the sharding has {len(local)} devices of this process, so that as many arrays are needed, but got "
            f"{len(given)}"
        )
    by_device = {}
    for x in given:
        if not isinstance(x, Array):
            raise ShardingError(f"{who}: expected arrays on single devices, got {quoted(x)}")
        by_device[device_of(x)] = x
    missing = [d for d in local if d not in by_device]
    if missing:
        raise ShardingError(
            f"{who}: no array is on {missing[0]}: each device of the sharding needs its part, put there with device_put"
        )
    parts: list[ArrayImpl] = []
    for d in local:
        wanted = parts[0].dtype if parts else None if dtype is None else dtypes.canonicalize_dtype(dtype)
        parts.append(_part(by_device[d], part_shape, wanted, who, d))
    return _from_local(whole, placement, parts, parts[0].dtype if parts else dtypes.canonicalize_dtype(dtype))


@api_boundary
def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Index], ArrayLike], dtype: DTypeLike = None
) -> Array:
    """An array over several devices, whose parts a function returns, so that the whole need not exist anywhere.

    Args:
      shape: of the whole.
      sharding: how it is spread.
      data_callback: takes the index of a part, a tuple of slices, and returns the part. It is called once for each
        part that differs, in this process.
      dtype: of the parts; needed only where this process has none.

    Returns:
      An array of the shape, with this sharding.

    Raises:
      ShardingError: the sharding does not fit the shape (a ValueError).
      ShapeError: a part has another shape than its index says, or another dtype than the others (a ValueError).

    >>> import pullback
    >>> rows = pullback.NamedSharding(pullback.make_mesh((1,), ("i",)), pullback.P("i"))
    >>> import numpy as np
    >>> print(make_array_from_callback((2,), rows, lambda index: np.arange(2)[index]))
    [0 1]
    """
    who = "make_array_from_callback"
    whole, placement = _shape(shape, who), _sharding(sharding, who)
    if isinstance(placement, Device):
        return committed(_part(data_callback((slice(None),) * len(whole)), whole, None, who, placement), placement)
    part_shape = placement.shard_shape(whole)
    known: dict[Any, ArrayImpl] = {}
    parts = []
    wanted = None if dtype is None else dtypes.canonicalize_dtype(dtype)
    for device, index in zip(placement.assignment.devices, placement.indices(whole), strict=True):
        if device.is_local:
            key = tuple((i.start, i.stop) for i in index)
            if key not in known:
                known[key] = _part(data_callback(index), part_shape, wanted, who, device)
                wanted = known[key].dtype
            parts.append(known[key])
    if wanted is None:
        raise ArgumentError(f"{who}: this process has no part of the array, so that dtype is needed")
    return _from_local(whole, placement, parts, wanted)


@api_boundary
def make_array_from_process_local_data(
    sharding: Sharding, local_data: PyTree, global_shape: Sequence[int] | PyTree = None
) -> PyTree:
    """An array over the devices of all processes, of the data that each process has.

    Args:
      sharding: how it is spread.
      local_data: what this process has: the smallest block that holds the parts of its devices, or the whole.
      global_shape: the shape of the whole; by default each axis is as long as the blocks of all processes together. An
        axis as long as that of the whole is taken to be the whole axis.

    Returns:
      An array of the global shape, with this sharding.

    Raises:
      ShardingError: the sharding does not fit the shape (a ValueError).
      ShapeError: the data are neither the block of this process nor the whole (a ValueError).

    >>> import numpy as np
    >>> import pullback
    >>> rows = pullback.NamedSharding(pullback.make_mesh((1,), ("i",)), pullback.P("i"))
    >>> print(make_array_from_process_local_data(rows, np.arange(2)))
    [0 1]
    """
    who = "make_array_from_process_local_data"
    placement = _sharding(sharding, who)
    data = as_array(np.asarray(local_data) if isinstance(local_data, (list, tuple)) else local_data)
    if not isinstance(data, ArrayImpl):
        raise ArgumentError(f"{who}: the data are traced, {data!r}: they must be a known array")
    if isinstance(placement, Device):
        return device_put(data, placement)
    if global_shape is None:
        scale = _global_per_local(placement, data.ndim)
        whole = tuple(n * a // b for n, (a, b) in zip(data.shape, scale, strict=True))
    else:
        whole = _shape(global_shape, who)
    if len(whole) != data.ndim:
        raise ShapeError(f"{who}: the data have the shape {data.shape}, of another number of axes than {whole}")
    placement.shard_shape(whole)
    values = np.asarray(data._value)
    indices = [i for d, i in zip(placement.assignment.devices, placement.indices(whole), strict=True) if d.is_local]
    starts, sizes = _block(indices, whole)
    for axis, (n, size, total) in enumerate(zip(values.shape, sizes, whole, strict=True)):
        if n not in (size, total):
            raise ShapeError(
                f"{who}: axis {axis} of the data has the size {n}, but the devices of this process hold {size} of the "
                f"{total} positions of the whole: give the block of shape {tuple(sizes)}, or the whole of shape {whole}"
            )
    parts = []
    for index in indices:
        own = []
        for s, n, start, total in zip(index, values.shape, starts, whole, strict=True):
            a, b, _ = s.indices(total)
            own.append(slice(a, b) if n == total else slice(a - start, b - start))
        parts.append(ArrayImpl(np.asarray(values[tuple(own)])))
    return _from_local(whole, placement, parts, data.dtype)


def _block(indices: Sequence[tuple[slice, ...]], shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Start and size along each axis of the smallest block that holds some parts."""
    starts, sizes = [], []
    for axis, n in enumerate(shape):
        bounds = [index[axis].indices(n)[:2] for index in indices]
        first, last = min(a for a, _ in bounds), max(b for _, b in bounds)
        starts.append(first)
        sizes.append(last - first)
    return starts, sizes


def _global_per_local(sharding: NamedSharding, ndim: int) -> list[tuple[int, int]]:
    """For each axis in how many parts the whole is divided, and how many of these the block of this process has."""
    factors = sharding.factors(ndim)
    local = [p for d, p in zip(sharding.assignment.devices, sharding.shard_indices(ndim), strict=True) if d.is_local]
    return [(k, int(max(p[i] for p in local) - min(p[i] for p in local)) + 1) for i, k in enumerate(factors)]
