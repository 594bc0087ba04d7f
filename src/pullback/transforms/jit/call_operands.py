"""Numbers and NumPy's arrays among the arguments of compiled functions, for the fast path of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.buffers import snapshot
from pullback.core.array import SCALARS, ArrayImpl, from_scalar, signature_of
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype
from pullback.transforms.jit.caches import Cache, all_caches

_numbers: Cache = Cache()
"""Arrays of Python numbers that compiled functions were called with lately; their buffers are on the device already."""
all_caches.add(_numbers)
_MOST_NUMBERS = 256


def operands_of(leaves: Sequence[Any]) -> list[ArrayImpl] | None:
    """Convert the leaves of the arguments of a compiled function to arrays with signatures, quickly.

    Returns:
      The arrays; None if a leaf is no array, NumPy array or number, or a number that is too large, or if a transfer
      guard is set.
    """
    if config.transfer_guard_host_to_device is not None:
        return None
    out: list[ArrayImpl] = []
    for x in leaves:
        kind = type(x)
        if kind in SCALARS:
            try:
                out.append(_array_of_number(x))
            except OverflowError:  # the general path raises it
                return None
        elif isinstance(x, ArrayImpl):
            signature_of(x)
            out.append(x)
        elif (kind is np.ndarray or isinstance(x, np.generic)) and _is_canonical(x.dtype):
            out.append(snapshot(np.asarray(x)))
        else:
            return None
    return out


def _is_canonical(dtype: np.dtype[Any]) -> bool:
    """Whether arrays have elements of ``dtype``, one of NumPy's own, without a conversion."""
    return dtype.isbuiltin == 1 and dtype.kind in "fiubc" and canonicalize_dtype(dtype) is dtype


def _array_of_number(x: Any) -> ArrayImpl:
    """Return a Python number as an array, the same for equal numbers, so that it is copied to the device once."""
    key = (config.trace_context, type(x), x)
    found: ArrayImpl | None = _numbers.get(key)
    if found is None:
        found = from_scalar(x)
        signature_of(found)
        if x and x == x and type(x) is not complex:  # zeros of two signs are equal, and NaN is not itself
            while len(_numbers) >= _MOST_NUMBERS:
                _numbers.pop(next(iter(_numbers)), None)
            _numbers[key] = found
    return found
