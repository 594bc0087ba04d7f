"""Arrays sharded over several devices: access to their shards, and construction from shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.devices import shards
from pullback.backends.devices.buffers import buffer_of, from_buffer
from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import Index, NamedSharding, PartitionSpec, Sharding, as_sharding
from pullback.core import dtypes, tree
from pullback.core.annotations import DTypeLike, PyTree
from pullback.core.array import Array, ArrayImpl, ArrayLike, CommittedArray, as_array, signature, typeof
from pullback.core.errors import ArgumentError, ShapeError, ShardingError, UnsupportedAttributeError
from pullback.core.naming import quoted
from pullback.core.trace import Tracer
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import committed, destination
from pullback.transforms.programs.transfer import device_of


class Shard:
    """The shard of an array on one device.

    Attributes:
      device: the device.
      index: the region of the full array, as a slice for each axis.
      replica_id: the number of this copy, if several devices have the same region.
      data: the shard, an array on the device; None if the device belongs to another process.

    >>> import pullback.numpy as jnp
    >>> (shard,) = jnp.arange(3).addressable_shards
    >>> shard.index, shard.replica_id, shard.data
    ((slice(None, None, None),), 0, Array([0, 1, 2], dtype=int32))
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
    """Return the shards of an array on the devices of this process."""
    if not isinstance(x, CommittedArray):
        return [Shard(device_of(x), (slice(None),) * x.ndim, 0, x)]
    return [
        Shard(device, index, copy, from_buffer(buffer, shards.shard_signature(x._signature, device)))
        for device, index, copy, buffer in shards.local_shards(x)
    ]


def global_shards(x: ArrayImpl) -> list[Shard]:
    """Return all shards of an array; those of other processes have no data."""
    if not (isinstance(x, CommittedArray) and isinstance(x._signature.placement, NamedSharding)):
        return addressable_shards(x)
    known = {shard.device: shard for shard in addressable_shards(x)}
    return [
        known.get(device) or Shard(device, index, copy, None) for device, index, copy in shards.all_shards(x._signature)
    ]


def sharding_of(x: Any) -> Sharding:
    """The sharding of an array; of a traced array that of its value, if it has one, or the one in its type.

    Raises:
      UnsupportedAttributeError: it has neither (a NotImplementedError and an AttributeError).
    """
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        explicit = getattr(typeof(x), "explicit", None)
        if explicit is None:
            raise UnsupportedAttributeError(
                f"sharding is not an attribute of a traced array, {x!r}: the program decides where it is. "
                f"jax.typeof(x).sharding is what its type says, debug.inspect_array_sharding what the compiler chose"
            )
        return explicit  # type: ignore[no-any-return]
    return as_sharding(device_of(value))


# Arrays from shards ---------------------------------------------------------------------------------------------------


def _placement(sharding: Any, who: str) -> Any:
    """Convert a user's sharding to a placement; raise if the value is no sharding.

    ``who`` is the function, for error messages.
    """
    if not isinstance(sharding, (Sharding, PartitionSpec)):
        raise ShardingError(f"{who}: expected a sharding such as NamedSharding(mesh, P('x')), got {quoted(sharding)}")
    return destination(sharding, who)


def _shape(value: Any, who: str) -> tuple[int, ...]:
    """Convert a user's shape to a tuple of ints; raise if it is invalid. Error messages name ``who``, the function."""
    try:
        shape = tuple(map(int, value))
        if all(n >= 0 for n in shape):
            return shape
    except (TypeError, ValueError):
        pass
    raise ShapeError(f"{who}: the shape must be a sequence of non-negative integers, got {quoted(value)}")


def _shard(value: Any, shape: tuple[int, ...], dtype: Any, who: str, device: Device) -> ArrayImpl:
    """Convert a shard to an array; raise unless it is concrete and has the shape and the dtype.

    Args:
      value: the shard.
      shape, dtype: its shape and dtype; None allows any dtype.
      who: the function, for error messages.
      device: the device of the shard, for error messages.
    """
    shard = as_array(np.asarray(value) if isinstance(value, (list, tuple)) else value)
    if not isinstance(shard, ArrayImpl):
        raise ArgumentError(f"{who}: the shard for {device} is traced, {shard!r}: shards must be concrete arrays")
    if shard.shape != shape:
        raise ShapeError(f"{who}: the shard for {device} must have the shape {shape}, got shape {shard.shape}")
    if dtype is not None and shard.dtype != dtype:
        raise ShapeError(
            f"{who}: all shards must have one dtype, but the shard for {device} has {dtypes.dtype_name(shard.dtype)} "
            f"instead of {dtypes.dtype_name(dtype)}"
        )
    return shard


def _from_local(shape: tuple[int, ...], placement: Any, local_shards: Sequence[ArrayImpl], dtype: Any) -> ArrayImpl:
    """Make an array over several devices from ``local_shards``, the shards on the devices of this process."""
    sig = signature(shape, dtype, False, placement)
    local = placement.assignment.local
    buffers = [buffer_of(shard, device) for device, shard in zip(local, local_shards, strict=True)]
    return from_buffer(shards.from_shards(buffers, sig), sig)


@api_boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike = None
) -> Array:
    """Make an array over several devices from its shards, which are on these devices already; no data is moved.

    Args:
      shape: the shape of the array.
      sharding: its sharding.
      arrays: the shard of each device of this process, in any order.
      dtype: the dtype; needed only if this process has no shard.

    Returns:
      An array of the shape, with this sharding.

    Raises:
      ShardingError: the sharding does not fit the shape, or there are not as many arrays as devices (a ValueError).
      ShapeError: a shard has another shape than the sharding says, or another dtype than the others (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import NamedSharding, P, make_array_from_single_device_arrays, make_mesh
    >>> rows = NamedSharding(make_mesh((1,), ("i",)), P("i"))
    >>> print(make_array_from_single_device_arrays((2,), rows, [jnp.ones(2)]))
    [1. 1.]
    """
    who = "make_array_from_single_device_arrays"
    global_shape, placement = _shape(shape, who), _placement(sharding, who)
    values = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    if isinstance(placement, Device):
        if len(values) != 1:
            raise ShardingError(f"{who}: a sharding of one device needs one array, got {len(values)}")
        wanted = None if dtype is None else dtypes.canonicalize_dtype(dtype)
        return committed(_shard(values[0], global_shape, wanted, who, placement), placement)
    shard_shape = placement.shard_shape(global_shape)
    local = placement.assignment.local
    if len(values) != len(local):
        raise ShardingError(
            f"{who}: the sharding has {len(local)} devices of this process, so it needs as many arrays, but got "
            f"{len(values)}"
        )
    by_device = {}
    for x in values:
        if not isinstance(x, Array):
            raise ShardingError(f"{who}: expected arrays on single devices, got {quoted(x)}")
        by_device[device_of(x)] = x
    missing = [d for d in local if d not in by_device]
    if missing:
        raise ShardingError(
            f"{who}: no array is on {missing[0]}: each device of the sharding needs its shard; move it there with "
            f"device_put"
        )
    local_shards: list[ArrayImpl] = []
    wanted = None if dtype is None else dtypes.canonicalize_dtype(dtype)
    for d in local:
        local_shards.append(_shard(by_device[d], shard_shape, wanted, who, d))
        wanted = local_shards[0].dtype
    if not local_shards:
        wanted = dtypes.canonicalize_dtype(dtype)
    return _from_local(global_shape, placement, local_shards, wanted)


@api_boundary
def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Index], ArrayLike], dtype: DTypeLike = None
) -> Array:
    """Make an array over several devices from shards that a function returns; the full array need not exist.

    Args:
      shape: the shape of the array.
      sharding: its sharding.
      data_callback: takes the index of a shard, a tuple of slices, and returns the shard. It is called for each
        distinct shard of this process.
      dtype: the dtype; needed only if this process has no shard.

    Returns:
      An array of the shape, with this sharding.

    Raises:
      ShardingError: the sharding does not fit the shape (a ValueError).
      ShapeError: a shard does not have the shape of its index, or differs in dtype from the others (a ValueError).

    >>> import numpy as np
    >>> from pullback import NamedSharding, P, make_array_from_callback, make_mesh
    >>> rows = NamedSharding(make_mesh((1,), ("i",)), P("i"))
    >>> print(make_array_from_callback((2,), rows, lambda index: np.arange(2)[index]))
    [0 1]
    """
    who = "make_array_from_callback"
    global_shape, placement = _shape(shape, who), _placement(sharding, who)
    if isinstance(placement, Device):
        data = data_callback((slice(None),) * len(global_shape))
        return committed(_shard(data, global_shape, None, who, placement), placement)
    shard_shape = placement.shard_shape(global_shape)
    known: dict[Any, ArrayImpl] = {}
    local_shards = []
    wanted = None if dtype is None else dtypes.canonicalize_dtype(dtype)
    for device, index in zip(placement.assignment.devices, placement.indices(global_shape), strict=True):
        if device.is_local:
            key = tuple((i.start, i.stop) for i in index)  # slices have no hash before Python 3.12
            if key not in known:
                known[key] = _shard(data_callback(index), shard_shape, wanted, who, device)
                wanted = known[key].dtype
            local_shards.append(known[key])
    if wanted is None:
        raise ArgumentError(f"{who}: this process has no shard of the array, so pass dtype")
    return _from_local(global_shape, placement, local_shards, wanted)


@api_boundary
def make_array_from_process_local_data(
    sharding: Sharding, local_data: PyTree, global_shape: Sequence[int] | PyTree = None
) -> PyTree:
    """Make an array over the devices of all processes from the data of each process.

    Args:
      sharding: the sharding of the array: a sharding, a ``PartitionSpec`` for the mesh that is set, or a device.
      local_data: the data of this process: the smallest block that contains its shards, or the full array. It may be a
        tree of these.
      global_shape: the shape of the full array; by default each axis is as long as the blocks of all processes
        together. An axis of the data that has the global size is taken to be complete. Of a tree of data, one shape for
        all, or a tree of shapes.

    Returns:
      An array of the global shape, with this sharding; a tree of arrays if the data are a tree.

    Raises:
      ArgumentError: ``global_shape`` is another tree than the data (a TypeError and ValueError).
      ShardingError: the sharding does not fit the shape (a ValueError).
      ShapeError: the data are not the block of this process, and not the full array (a ValueError).

    >>> import numpy as np
    >>> from pullback import NamedSharding, P, make_array_from_process_local_data, make_mesh
    >>> rows = NamedSharding(make_mesh((1,), ("i",)), P("i"))
    >>> print(make_array_from_process_local_data(rows, np.arange(2)))
    [0 1]
    """
    who = "make_array_from_process_local_data"
    leaves, treedef = tree.flatten(local_data)
    if treedef.num_nodes == 1 or (isinstance(local_data, (list, tuple)) and all(np.ndim(x) == 0 for x in leaves)):
        return _from_data(who, sharding, local_data, global_shape)
    shapes = [global_shape] * len(leaves)
    if global_shape is not None and not _is_shape(global_shape):
        shapes, of_shapes = tree.flatten(global_shape, is_leaf=_is_shape)
        if of_shapes != treedef:
            raise ArgumentError(f"{who}: global_shape has the structure {of_shapes}, but the data have {treedef}")
    arrays = [_from_data(who, sharding, x, shape) for x, shape in zip(leaves, shapes, strict=True)]
    return tree.unflatten(treedef, arrays)


def _is_shape(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and all(isinstance(n, int) for n in x)


def _from_data(who: str, sharding: Any, local_data: Any, global_shape: Any) -> ArrayImpl:
    """Make an array over the devices of all processes from the data of this one; ``who`` is the public function."""
    placement = sharding if isinstance(sharding, Device) else _placement(sharding, who)
    data = as_array(np.asarray(local_data) if isinstance(local_data, (list, tuple)) else local_data)
    if not isinstance(data, ArrayImpl):
        raise ArgumentError(f"{who}: data must be a concrete array, but it is traced: {data!r}")
    if isinstance(placement, Device):
        if global_shape is not None and _shape(global_shape, who) != data.shape:
            raise ShapeError(
                f"{who}: on one device the data of shape {data.shape} are all, but global_shape={global_shape}"
            )
        return committed(data, placement)
    if global_shape is None:
        scale = _global_per_local(placement, data.ndim)
        full_shape = tuple(n * a // b for n, (a, b) in zip(data.shape, scale, strict=True))
    else:
        full_shape = _shape(global_shape, who)
    if len(full_shape) != data.ndim:
        raise ShapeError(f"{who}: the data have the shape {data.shape}, with another number of axes than {full_shape}")
    placement.shard_shape(full_shape)  # raises if the sharding does not fit
    values = np.asarray(data._value)
    devices = placement.assignment.devices
    indices = [i for d, i in zip(devices, placement.indices(full_shape), strict=True) if d.is_local]
    starts, sizes = _block(indices, full_shape)
    for axis, (n, size, total) in enumerate(zip(values.shape, sizes, full_shape, strict=True)):
        if n not in (size, total):
            raise ShapeError(
                f"{who}: axis {axis} of the data has the size {n}, but the devices of this process hold {size} of the "
                f"{total} positions: pass the block of shape {tuple(sizes)}, or the full array of shape {full_shape}"
            )
    local_shards = []
    for index in indices:
        own = []
        for s, n, start, total in zip(index, values.shape, starts, full_shape, strict=True):
            a, b, _ = s.indices(total)
            own.append(slice(a, b) if n == total else slice(a - start, b - start))
        local_shards.append(ArrayImpl(np.asarray(values[tuple(own)])))
    return _from_local(full_shape, placement, local_shards, data.dtype)


def _block(indices: Sequence[tuple[slice, ...]], shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return the smallest block of an array that contains some shards: its start and its size along each axis.

    ``indices`` are the regions of the shards in the array, which has the shape ``shape``.
    """
    starts, sizes = [], []
    for axis, n in enumerate(shape):
        bounds = [index[axis].indices(n)[:2] for index in indices]
        first, last = min(a for a, _ in bounds), max(b for _, b in bounds)
        starts.append(first)
        sizes.append(last - first)
    return starts, sizes


def _global_per_local(sharding: NamedSharding, ndim: int) -> list[tuple[int, int]]:
    """Return, for each axis, the number of shards along it in the full array, and in the block of this process."""
    factors = sharding.factors(ndim)
    local = [p for d, p in zip(sharding.assignment.devices, sharding.shard_indices(ndim), strict=True) if d.is_local]
    return [(k, int(max(p[i] for p in local) - min(p[i] for p in local)) + 1) for i, k in enumerate(factors)]
