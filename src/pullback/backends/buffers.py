"""Buffers: the elements of arrays on devices, and arrays that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from pullback.backends import devices, transfers
from pullback.backends.backend import Buffer, backend
from pullback.backends.devices import Device, default_device
from pullback.core.array import ArrayImpl, DeviceArray, Signature, signature, signature_of

_new = object.__new__
buffers_of = attrgetter("_buffer")


def buffer_of(x: ArrayImpl, device: Device) -> Buffer:
    """The elements of an array on a device; they are put there if they are not."""
    try:
        buffer = x._buffer
    except AttributeError:
        if device.platform != "cpu":
            transfers.check("host_to_device", x.aval)
        buffer = x._buffer = backend().put(x._value, x.aval, device)
        return buffer
    if devices.several_in_use and backend().device_of(buffer) is not device:
        transfers.check("device_to_device", x.aval)
        return backend().move(buffer, device)
    return buffer


def buffers_on(device: Device, arrays: Iterable[ArrayImpl], captured: Sequence[ArrayImpl] = ()) -> list[Buffer]:
    """The elements of arrays on a device, and those of arrays that are known to be there."""
    if devices.several_in_use:
        buffers = [buffer_of(x, device) for x in arrays]
    else:
        try:
            buffers = list(map(buffers_of, arrays))
        except AttributeError:
            buffers = [buffer_of(x, device) for x in arrays]
    if captured:
        buffers += map(buffers_of, captured)
    return buffers


def resident(x: ArrayImpl, device: Device) -> ArrayImpl:
    """An array, or its copy, whose buffer is on a device."""
    buffer = buffer_of(x, device)
    return x if x._buffer is buffer else from_buffer(buffer, signature_of(x))


def from_buffer(buffer: Buffer, kind: Signature) -> DeviceArray:
    """An array of the elements in a buffer."""
    x = _new(DeviceArray)
    x._buffer = buffer
    x._signature = kind
    return x


def snapshot(x: np.ndarray[Any, Any]) -> DeviceArray:
    """The elements of a NumPy array, which may change later, on the default device."""
    kind = signature(x.shape, x.dtype, False)
    return from_buffer(backend().put(x, kind.aval, default_device(), copy=True), kind)
