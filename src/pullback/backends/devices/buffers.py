"""Buffers, which hold the elements of arrays on devices: conversion from arrays, and to arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from pullback.backends.compiler.backend import Buffer, backend
from pullback.backends.devices import devices, shards, transfers
from pullback.backends.devices.devices import Device, default_device
from pullback.backends.host import own
from pullback.core.array import Absent, ArrayImpl, CommittedArray, Signature, delete, shared, signature, signature_of
from pullback.core.reference_counts import OF_VARIABLE
from pullback.core.runtime import runtime

_new = object.__new__
buffers_of = attrgetter("_buffer")


def buffer_of(x: ArrayImpl, device: Device) -> Buffer:
    """Return the buffer of an array on ``device``. Copy the elements there if necessary."""
    if isinstance(x, CommittedArray):
        placement = x._signature.placement
        if placement is device or (placement is None and backend().device_of(x._buffer) is device):
            return x._buffer
        transfers.check("device_to_device", x.aval)
        return shards.moved(x, device)
    try:
        buffer = x._buffer
    except AttributeError:
        if not device.is_host:
            transfers.check("host_to_device", x.aval)
        buffer = x._buffer = backend().put(x._value, x.aval, device)
        if is_borrowed(x._value):
            shared(buffer)
        return buffer
    # As long as one device is in use, it is the first one, unless this is the first use of another.
    if (devices.here.several_in_use or device.id) and backend().device_of(buffer) is not device:
        transfers.check("device_to_device", x.aval)
        return backend().move(buffer, device)
    return buffer


TAKEN = 1 << 22
"""The least bytes of an array whose memory is handed over. A program is compiled for each type."""


def take(x: ArrayImpl, device: Device) -> None:
    """Hand the memory of an array that is donated over to the runtime, if nobody else can read it.

    Otherwise a program that takes the memory for a result copies it first, and both copies are there at the same time.
    """
    held = x._host_value
    unshared = 1 + OF_VARIABLE  # each object is referred to by the one before, and by a variable here
    if type(held) is Absent:
        pending = held.pending
        value = pending.read()
        if sys.getrefcount(held) > unshared or sys.getrefcount(pending) > unshared:
            return
    else:
        value = held
    del held
    if (
        sys.getrefcount(value) <= unshared
        and type(value) is np.ndarray
        and value.nbytes >= TAKEN
        and value.flags.owndata
        and value.flags.c_contiguous
        and value.dtype.kind in "iufc"
        and device.platform == "cpu"
        and own.loops is not None
    ):
        try:
            x._buffer = runtime.taken(value, device)
        except Exception:  # before the elements were moved
            raise
        except BaseException:  # of a signal handler, perhaps after that
            delete(x)
            raise
        x._host_value = signature_of(x).absent


_CAPSULE = "PyCapsule"


def is_borrowed(value: Any) -> bool:
    """Whether a NumPy array uses memory of another library, by DLPack. Donation must then copy the elements first."""
    base = getattr(value, "base", None)
    while type(base) is np.ndarray:
        base = base.base
    return type(base).__name__ == _CAPSULE


def buffers_on(device: Device, arrays: Iterable[ArrayImpl], captured: Sequence[ArrayImpl] = ()) -> list[Buffer]:
    """Return the buffers on a device of all ``arrays``, then of all ``captured``.

    Args:
      device: the device.
      arrays: the arrays, which are copied to the device if necessary.
      captured: arrays that are on the device already.
    """
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


def buffer_at(x: ArrayImpl, placement: Any) -> Buffer:
    """Return the buffer of an array at ``placement``, a device or a sharding. Copy the elements there if necessary."""
    if isinstance(placement, Device):
        return buffer_of(x, placement)
    try:
        found = x._signature.placement
    except AttributeError:
        found = None
    if found is placement or (found is not None and found == placement):
        return x._buffer
    if found is not None:
        transfers.check("device_to_device", x.aval)
    return shards.moved(x, placement)


def resident(x: ArrayImpl, placement: Any) -> ArrayImpl:
    """Return an array whose buffer is at ``placement``, a device or a sharding: ``x`` itself, or a copy."""
    buffer = buffer_at(x, placement)
    if getattr(x, "_buffer", None) is buffer:
        return x
    sig = signature_of(x)
    if not placement.is_host:
        sig = signature(sig.aval.shape, sig.aval.dtype, sig.aval.weak_type, placement)
    return from_buffer(buffer, sig)


def from_buffer(buffer: Buffer, sig: Signature) -> ArrayImpl:
    """Make an array of a buffer; the array has the given signature (shape, dtype, placement)."""
    x = _new(sig.array_class)
    x._buffer = buffer
    x._signature = sig
    x._host_value = sig.absent
    x.weak_type = sig.aval.weak_type
    return x  # type: ignore[no-any-return]


def snapshot(x: np.ndarray[Any, Any]) -> ArrayImpl:
    """Copy a NumPy array to the default device, so that the caller may change it later."""
    sig = signature(x.shape, x.dtype, False)
    return from_buffer(backend().put(x, sig.aval, default_device(), copy=True), sig)
