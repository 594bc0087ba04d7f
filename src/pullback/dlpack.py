"""Exchange of arrays with other libraries by the DLPack protocol, in both directions, without a copy."""

from __future__ import annotations

import numpy as np

from pullback.backends.devices.exchange import is_exchangeable
from pullback.backends.devices.shardings import DeviceLike
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, SupportsDLPack
from pullback.core.array import Array
from pullback.core.faces import face
from pullback.numpy.creation import from_dlpack as _from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]
face(globals())


def from_dlpack(external_array: SupportsDLPack, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Convert an array of another library; see :func:`pullback.numpy.from_dlpack`.

    Args:
      external_array: an object with the methods ``__dlpack__`` and ``__dlpack_device__``. Elements on a GPU stay
        there.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      copy: True for memory of its own; False to raise if a copy is needed.

    Returns:
      An array of the shape of ``external_array``.

    Raises:
      OperandError: ``external_array`` has no such methods (a TypeError).
      ExchangeError: its dtype or device is not supported, or ``copy=False`` is not possible (a TypeError and a
        BufferError).

    >>> import numpy as np
    >>> from pullback import dlpack
    >>> print(dlpack.from_dlpack(np.arange(2)))
    [0 1]
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be exchanged: bfloat16, and NumPy's own booleans, integers and inexact numbers.

    Args:
      dtype: a dtype or its name.

    Returns:
      A bool of Python's.

    Raises:
      DtypeError: there is no such dtype (a TypeError).

    >>> from pullback import dlpack
    >>> dlpack.is_supported_dtype("float32"), dlpack.is_supported_dtype("float8_e4m3fn")
    (True, False)
    """
    try:
        found = np.dtype(dtype)
    except TypeError:  # a name that NumPy does not know
        found = dtypes.canonicalize_dtype(dtype)
    return is_exchangeable(found)
