"""Arrays over several devices: their shards, and copies to other devices and shardings.

Compiled programs move the shards where source and target are the same devices, so that this works between processes
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler.backend import Buffer, backend
from pullback.backends.devices import transfers
from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import Index, NamedSharding
from pullback.backends.devices.storage import from_stored, stored_dtype, to_stored
from pullback.core import array
from pullback.core.array import ArrayImpl, CommittedArray, Signature, signature
from pullback.core.config import config
from pullback.core.errors import BackendError, ShapeError, ShardingTypeError
from pullback.core.runtime import provides, runtime
from pullback.core.types import ShapedArray


def put_value(value: Any, sharding: NamedSharding, x: Any) -> Buffer:
    """Divide an array on the host into shards, put them on the devices of a sharding, and return the buffer.

    Args:
      value: the elements.
      sharding: the sharding.
      x: the type of the array.

    Raises:
      ShardingError: the sharding does not fit the array (a ValueError).
    """
    stored = to_stored(value)
    indices = sharding.indices(stored.shape)
    local = [(d, i) for d, i in zip(sharding.assignment.devices, indices, strict=True) if d.is_local]
    if not sharding.spec.unreduced:
        return backend().put_shards([stored[i] for _, i in local], x.shape, stored.dtype, sharding)
    have = dict(zip(sharding.assignment.devices, sharding.are_terms(), strict=True))
    blocks = [
        stored[i] if have[d] else np.zeros_like(stored[i]) for d, i in local
    ]  # the runtime would repeat the first
    buffers = [backend().put(b, ShapedArray(b.shape, b.dtype), d) for b, (d, _) in zip(blocks, local, strict=True)]
    return backend().assembled(buffers, x.shape, stored.dtype, sharding)


def moved(x: ArrayImpl, placement: Any) -> Buffer:
    """Copy an array to ``placement``, another device or a sharding over several; return the buffer.

    Raises:
      ShardingError: the sharding does not fit the array (a ValueError).
      BackendError: other processes hold shards of the array, and the target is on other devices (a RuntimeError).
    """
    if not isinstance(x, CommittedArray):
        return put_value(x._value, placement, x)
    sig = x._signature
    source = sig.placement
    if isinstance(placement, NamedSharding):
        placement.shard_shape(sig.aval.shape)
    if isinstance(source, NamedSharding):
        if isinstance(placement, NamedSharding) and placement.assignment is source.assignment:
            is_there = source.memory_kind == placement.memory_kind or source.platform == "cpu"  # whose memories are one
            if is_there and source.is_equivalent_to(placement, len(sig.aval.shape)):
                return x._buffer
            return runtime.reshard(x, placement)
    elif isinstance(placement, Device):
        return backend().move(x._buffer, placement)
    value = gather(x._buffer, sig)
    return (
        backend().put(value, sig.aval, placement) if isinstance(placement, Device) else put_value(value, placement, x)
    )


def local_shards(x: CommittedArray) -> list[tuple[Device, Index, int, Buffer]]:
    """The shards of an array that this process holds.

    Returns:
      For each shard (device, slices, replica, buffer). Shards with the same slices have the replicas 0, 1, ...
    """
    sig = x._signature
    if isinstance(sig.placement, Device):
        return [(sig.placement, (slice(None),) * len(sig.aval.shape), 0, x._buffer)]
    local = [shard for shard in all_shards(sig) if shard[0].is_local]
    return [(*shard, buffer) for shard, buffer in zip(local, backend().shards(x._buffer), strict=True)]


def all_shards(sig: Signature) -> list[tuple[Device, Index, int]]:
    """The shards of an array in all processes.

    Returns:
      For each shard (device, slices, replica). Shards with the same slices have the replicas 0, 1, ...
    """
    sharding: NamedSharding = sig.placement
    copies: dict[Any, int] = {}
    found = []
    for device, index in zip(sharding.assignment.devices, sharding.indices(sig.aval.shape), strict=True):
        key = tuple((i.start, i.stop) for i in index)
        copies[key] = copies.get(key, -1) + 1
        found.append((device, index, copies[key]))
    return found


def shard_signature(sig: Signature, device: Device) -> Signature:
    """The signature of one shard, on ``device``, of an array of signature ``sig``."""
    placement = sig.placement
    shape = sig.aval.shape if isinstance(placement, Device) else placement.shard_shape(sig.aval.shape)
    return signature(shape, sig.aval.dtype, sig.aval.weak_type, device)


@provides
def gather(buffer: Buffer, sig: Signature) -> np.ndarray[Any, Any]:
    """Copy all elements of an array, which is on one device or several, to the host.

    Raises:
      BackendError: other processes hold shards of the array that this process lacks (a RuntimeError).
      ShapeError: the array has more axes than NumPy allows (a TypeError and a ValueError).
    """
    sharding, aval = sig.placement, sig.aval
    if len(aval.shape) > array.MOST_HOST_AXES:
        raise ShapeError(
            f"an array of {len(aval.shape)} axes exists only on a device, because NumPy's arrays have at most "
            f"{array.MOST_HOST_AXES}; read x.reshape(-1), or another shape with fewer axes"
        )
    if isinstance(sharding, Device):
        return backend().fetch(buffer, aval.dtype)
    if sharding.spec.unreduced:
        raise ShardingTypeError(
            f"the elements of an array of type {aval.update(sharding=sharding)} are sums over the devices along "
            f"{sorted(map(str, sharding.spec.unreduced))}: compute them with sharding.reshard(x, P(...)), or read the "
            "terms in x.addressable_shards"
        )
    if config.transfer_guard_device_to_host is not None and sharding.platform != "cpu":
        transfers.check("device_to_host", aval)
    if not (sharding.is_fully_addressable or (sharding.is_fully_replicated and sharding.assignment.local)):
        others = sorted({d.process_index for d in sharding.assignment.devices if not d.is_local})
        raise BackendError(
            f"an array of type {aval} cannot be read completely: the processes {others} have some of its shards. "
            f"Read the shards of this process, x.addressable_shards, or gather them with "
            f"experimental.multihost_utils.process_allgather."
        )
    values = backend().shard_values(buffer)
    if sharding.is_fully_replicated:
        return from_stored(values[0], aval.dtype)
    out = np.empty(aval.shape, stored_dtype(aval.dtype))
    for (_, index, copy), value in zip(all_shards(sig), values, strict=True):
        if copy == 0:
            out[index] = value
    return from_stored(out, aval.dtype)


def from_shards(buffers: Sequence[Buffer], sig: Signature) -> Buffer:
    """Assemble the buffer of an array over several devices from this process's shards, in the order of the mesh."""
    return backend().assembled(list(buffers), sig.aval.shape, stored_dtype(sig.aval.dtype), sig.placement)
