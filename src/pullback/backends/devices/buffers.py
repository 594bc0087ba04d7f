"""Buffers: the elements of arrays on devices, and arrays that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from pullback.backends.compiler.backend import Buffer, backend
from pullback.backends.devices import devices, spread, transfers
from pullback.backends.devices.devices import Device, default_device
from pullback.core.array import ArrayImpl, CommittedArray, Signature, shared, signature, signature_of

_new = object.__new__
buffers_of = attrgetter("_buffer")


def buffer_of(x: ArrayImpl, device: Device) -> Buffer:
    """The elements of an array on a device; they are put there if they are not."""
    if isinstance(x, CommittedArray):
        place = x._signature.place
        if place is device or (place is None and backend().device_of(x._buffer) is device):
            return x._buffer
        transfers.check("device_to_device", x.aval)
        return spread.moved(x, device)
    try:
        buffer = x._buffer
    except AttributeError:
        if device.platform != "cpu":
            transfers.check("host_to_device", x.aval)
        buffer = x._buffer = backend().put(x._value, x.aval, device)
        if is_borrowed(x._value):
            shared(buffer)
        return buffer
    # As long as one device is in use, it is the first of them, unless this is the first use of another.
    if (devices.here.several_in_use or device.id) and backend().device_of(buffer) is not device:
        transfers.check("device_to_device", x.aval)
        return backend().move(buffer, device)
    return buffer


_CAPSULE = "PyCapsule"


def is_borrowed(value: Any) -> bool:
    """Whether the memory is another library's, by DLPack: a donated array takes a copy of it."""
    base = getattr(value, "base", None)
    while type(base) is np.ndarray:
        base = base.base
    return type(base).__name__ == _CAPSULE


def buffers_on(device: Device, arrays: Iterable[ArrayImpl], captured: Sequence[ArrayImpl] = ()) -> list[Buffer]:
    """The elements of arrays on a device, and those of arrays that are known to be there."""
    if devices.here.several_in_use:
        buffers = [buffer_of(x, device) for x in arrays]
    else:
        try:
            buffers = list(map(buffers_of, arrays))
        except AttributeError:
            buffers = [buffer_of(x, device) for x in arrays]
    if captured:
        buffers += map(buffers_of, captured)
    return buffers


def buffer_at(x: ArrayImpl, place: Any) -> Buffer:
    """The elements of an array in a place, a device or a sharding; they are put there if they are not."""
    if isinstance(place, Device):
        return buffer_of(x, place)
    try:
        found = x._signature.place
    except AttributeError:
        found = None
    if found is place or (found is not None and found == place):
        return x._buffer
    if found is not None:
        transfers.check("device_to_device", x.aval)
    return spread.moved(x, place)


def resident(x: ArrayImpl, place: Any) -> ArrayImpl:
    """An array, or its copy, whose buffer is in a place."""
    buffer = buffer_at(x, place)
    if getattr(x, "_buffer", None) is buffer:
        return x
    kind = signature_of(x)
    if not place.is_host:
        kind = signature(kind.aval.shape, kind.aval.dtype, kind.aval.weak_type, place)
    return from_buffer(buffer, kind)


def from_buffer(buffer: Buffer, kind: Signature) -> ArrayImpl:
    """An array of the elements in a buffer."""
    x = _new(kind.array_class)
    x._buffer = buffer
    x._signature = kind
    x._held = kind.absent
    x.weak_type = kind.aval.weak_type
    return x  # type: ignore[no-any-return]


def snapshot(x: np.ndarray[Any, Any]) -> ArrayImpl:
    """The elements of a NumPy array, which may change later, on the default device."""
    kind = signature(x.shape, x.dtype, False)
    return from_buffer(backend().put(x, kind.aval, default_device(), copy=True), kind)
