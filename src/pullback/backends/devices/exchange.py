"""Exchange of arrays with other libraries by the DLPack protocol, which shares their memory.

NumPy implements the protocol for its own dtypes, and the compiler's runtime for bfloat16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.compiler.backend import backend
from pullback.backends.devices import devices
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import ArrayImpl, read_only
from pullback.core.errors import ExchangeError

HOST = (1, 0)
"""DLPack's device (type, number) of the CPU."""


def is_exchangeable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack: NumPy's own dtypes can, and bfloat16."""
    return _is_numpy_dtype(dtype) or dtype.name == "bfloat16"


def _is_numpy_dtype(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc" and dtype.isbuiltin == 1 and dtype.name != "longdouble" and dtype.itemsize <= 16


def imported(x: Any, copy: bool | None) -> ArrayImpl:
    """Import another library's array in CPU memory by DLPack.

    Args:
      x: the array.
      copy: True to copy the elements always, None to copy them if the dtype must be converted, False to refuse that.

    Raises:
      ExchangeError: ``copy`` is False, but the dtype must be converted.
    """
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


def exported(x: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Implement ``__dlpack__`` of the array ``x``; the other parameters are those of the protocol.

    Returns:
      A read-only capsule that shares the array's memory, if ``max_version`` and the dtype allow it and ``copy`` is not
      True; otherwise a capsule of a copy.

    Raises:
      ExchangeError: ``stream`` is not None; ``dl_device`` is not the CPU; DLPack lacks the dtype; ``copy`` is False,
        but a copy is necessary.
    """
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
