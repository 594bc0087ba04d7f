"""Exchange of arrays with other libraries by the DLPack protocol, which shares their memory.

On the host NumPy implements the protocol for its own dtypes, and the compiler's runtime for bfloat16. On GPUs the
runtime does all of it: the library that asks for an array says on which of its streams it reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.compiler.backend import backend
from pullback.backends.devices import devices
from pullback.backends.devices.buffers import from_buffer
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import ArrayImpl, is_on_device, read_only, shared, signature, signature_of
from pullback.core.errors import ExchangeError

HOST = (1, 0)
"""DLPack's device (type, number) of the CPU."""
IN_HOST_MEMORY = (1, 3, 11, 13)
"""DLPack's types of devices whose memory the CPU reads: its own, pinned by CUDA or ROCm, managed by CUDA."""
PLATFORMS = {2: "cuda", 10: "rocm"}
"""The platforms of DLPack's other types of devices."""


def is_exchangeable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack: NumPy's own dtypes can, and bfloat16."""
    return _is_numpy_dtype(dtype) or dtype.name == "bfloat16"


def _is_numpy_dtype(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc" and dtype.isbuiltin == 1 and dtype.name != "longdouble" and dtype.itemsize <= 16


def imported(x: Any, copy: bool | None) -> ArrayImpl:
    """Import another library's array by DLPack: from CPU memory, or on a GPU, where it stays.

    Args:
      x: the array.
      copy: True to copy the elements always, None to copy them if the dtype must be converted, False to refuse that.

    Raises:
      ExchangeError: ``copy`` is False, but the dtype must be converted; or the array is on a device of another kind.
      BackendError: there is no such device here (a RuntimeError).
    """
    kind, number = map(int, x.__dlpack_device__())
    if kind in IN_HOST_MEMORY:
        return _imported_on_host(x, copy)
    if kind not in PLATFORMS:
        raise ExchangeError(
            f"from_dlpack: the array is on a device of DLPack's kind {kind}, number {number}; copy it to CPU memory "
            "first"
        )
    local = devices.local_devices(backend=PLATFORMS[kind])
    found = next((device for device in local if device.local_hardware_id == number), None)
    if found is None:
        raise ExchangeError(f"from_dlpack: the array is on the device {PLATFORMS[kind]}:{number}, which is not in use")
    return _imported_on(found, x, kind, copy)


def _imported_on(device: devices.Device, x: Any, kind: int, copy: bool | None) -> ArrayImpl:
    """Import an array on a GPU. The runtime's stream is passed to its library, which orders its work before it.

    The result is committed to the device, unless this is the default device.
    """
    copied = copy is not None and flag("from_dlpack", "copy", copy)
    stream = backend().stream_of(device)
    capsule = x.__dlpack__() if stream is None else x.__dlpack__(stream=stream)
    buffer = backend().shared_from_dlpack(capsule, device, stream, kind)
    if copied:
        buffer = backend().copied(buffer)
        backend().wait(buffer)  # the array may change from now on
    else:
        shared(buffer)
    aval = backend().type_of(buffer)
    wanted = dtypes.canonicalize_dtype(aval.dtype)
    if wanted != aval.dtype:
        raise ExchangeError(
            f"from_dlpack: an array of {aval.dtype} on {device} must be converted to {wanted} by its library, because "
            "config.jax_enable_x64 is off"
        )
    placement = None if device is devices.default_device() else device
    return from_buffer(buffer, signature(aval.shape, aval.dtype, False, placement))


def _imported_on_host(x: Any, copy: bool | None) -> ArrayImpl:
    try:
        value: Any = np.from_dlpack(x)
    except RuntimeError as error:  # NumPy does not know the dtype
        value = backend().from_dlpack(x.__dlpack__(), devices.HOST)
        if value is None:
            raise error from None
    wanted = dtypes.canonicalize_dtype(value.dtype)
    if copy is False and wanted != value.dtype:
        raise ExchangeError(
            f"from_dlpack: an array of {value.dtype} must be copied to {wanted}, because config.jax_enable_x64 is "
            f"off, but copy is False"
        )
    copied = copy is not None and flag("from_dlpack", "copy", copy)
    return ArrayImpl(np.array(value, wanted) if copied else np.asarray(value, wanted))


def device_of(x: Any) -> tuple[int, int]:
    """Return DLPack's device (type, number) of an array.

    Raises:
      ExchangeError: the array is over several GPUs (a BufferError).
    """
    device = gpu_of(x)
    if device is None:
        return HOST
    return next(kind for kind, name in PLATFORMS.items() if name == device.target), device.local_hardware_id


def gpu_of(x: Any) -> devices.Device | None:
    """Return the GPU that holds the elements of an array; None if they are in CPU memory."""
    if not is_on_device(x):
        return None
    placement = signature_of(x).placement
    if placement is None:
        placement = backend().device_of(x._buffer)
    if placement.platform != "gpu":
        return None
    if not isinstance(placement, devices.Device):
        raise ExchangeError(
            "__dlpack__: an array over several devices cannot be exchanged; exchange its shards, "
            "x.addressable_shards[i].data"
        )
    return placement


def _exported_on(device: devices.Device, x: Any, stream: Any, dl_device: Any, copy: bool | None) -> Any:
    """Return a capsule that shares the memory of an array on a GPU, or that of a copy of it on ``dl_device``."""
    if stream is not None and (not isinstance(stream, int) or stream == 0 or stream < -1):
        raise ExchangeError(
            f"__dlpack__: stream must be None, -1, or a stream of CUDA (1 for the legacy default stream, 2 for that "
            f"of each thread, or an address), got {stream!r}"
        )
    wanted = device_of(x) if dl_device is None else tuple(map(int, dl_device))
    if wanted == HOST:
        if copy is False:
            raise ExchangeError(f"__dlpack__: the array on {device} must be copied to CPU memory, but copy is False")
        return np.array(x._value).__dlpack__()
    if wanted != device_of(x):
        raise ExchangeError(f"__dlpack__: the array is on {device}, got dl_device={dl_device!r}: use device_put first")
    if not is_exchangeable(x.dtype):
        raise ExchangeError(f"__dlpack__: DLPack has no {dtypes.dtype_name(x.dtype)}; convert it with astype first")
    buffer = backend().copied(x._buffer) if copy else shared(x._buffer)
    if stream is None:
        backend().wait(buffer)  # then any stream may read it
    return backend().shared_to_dlpack(buffer, None if stream in (None, -1) else stream)


def exported(x: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Implement ``__dlpack__`` of the array ``x``; the other parameters are those of the protocol.

    Returns:
      A read-only capsule that shares the array's memory, if ``max_version`` and the dtype allow it and ``copy`` is not
      True; otherwise a capsule of a copy. On a GPU the capsule shares the memory unless ``copy`` is True: it must not
      be written to, though it says nothing of that.

    Raises:
      ExchangeError: ``stream`` is not None, or no stream of a GPU's; ``dl_device`` is another device; DLPack lacks the
        dtype; ``copy`` is False, but a copy is necessary.
    """
    device = gpu_of(x)
    if device is not None:
        return _exported_on(device, x, stream, dl_device, copy)
    if stream is not None:
        raise ExchangeError(f"__dlpack__: arrays in CPU memory have no streams, got stream={stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != HOST:
        raise ExchangeError(f"__dlpack__: arrays are exchanged in CPU memory, {HOST}, got {dl_device!r}")
    dtype = x.dtype
    if not is_exchangeable(dtype):
        raise ExchangeError(
            f"__dlpack__: DLPack has no {dtypes.dtype_name(dtype)}; convert the array with astype first"
        )
    can_be_read_only = _is_numpy_dtype(dtype) and max_version is not None and max_version[0] >= 1
    if copy is False and not can_be_read_only:
        raise ExchangeError(
            "__dlpack__: without a copy the memory would be writable, because max_version is less than (1, 0) or "
            "the dtype is bfloat16; pass copy=None"
        )
    if not _is_numpy_dtype(dtype):
        return backend().to_dlpack(np.asarray(x._value), devices.HOST)
    if can_be_read_only and not copy:
        return read_only(x._value).__dlpack__(max_version=max_version)
    return np.array(x._value).__dlpack__(**({"max_version": max_version} if can_be_read_only else {}))
