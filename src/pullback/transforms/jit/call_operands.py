"""Numbers and NumPy's arrays among the arguments of compiled functions, for the fast path of calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.buffers import snapshot
from pullback.core.array import SCALARS, ArrayImpl, from_numpy, from_scalar, signature_of
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype
from pullback.transforms.jit.caches import Cache, all_caches

numbers: Cache = Cache()
"""Arrays of numbers that compiled functions were called with lately; their buffers are on the device already.

The keys are the switches, the type and the number. The module in C looks here too.
"""
all_caches.add(numbers)
_MOST_NUMBERS = 256


def operands_of(leaves: Sequence[Any]) -> list[ArrayImpl] | None:
    """Convert the leaves of the arguments of a compiled function to arrays with signatures, quickly.

    Returns:
      The arrays; None if a leaf is no array, NumPy array or number, or cannot be converted, or if a transfer guard is
      set. The general path raises the errors.
    """
    if config.transfer_guard_host_to_device is not None:
        return None
    out: list[ArrayImpl] = []
    try:
        for x in leaves:
            array = operand(x)
            if array is None:
                return None
            out.append(array)
    except Exception:
        return None
    return out


def operand(x: Any) -> ArrayImpl | None:
    """Convert a leaf of the arguments to an array with a signature; return None if it is no array and no number."""
    kind = type(x)
    if kind in SCALARS:
        return _array_of_number(x)
    if isinstance(x, ArrayImpl):
        found = x
    elif isinstance(x, np.generic):
        return _array_of_number(x) if _is_numeric(x.dtype) else None
    elif kind is not np.ndarray or not _is_numeric(x.dtype):
        return None
    elif canonicalize_dtype(x.dtype) is x.dtype:
        return snapshot(x)
    else:
        found = from_numpy(x)
    signature_of(found)
    return found


def _is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is one of NumPy's own, of numbers, and no longer than devices have them."""
    return dtype.isbuiltin == 1 and dtype.kind in "fiubc" and dtype.char not in "gG"


def _array_of_number(x: Any) -> ArrayImpl:
    """Return a number as an array, the same for equal numbers, so that it is copied to the device once."""
    if not _is_its_key(x):
        found = from_scalar(x) if type(x) in SCALARS else from_numpy(x)
        signature_of(found)
        return found
    key = (config.trace_context, type(x), x)
    known: ArrayImpl | None = numbers.get(key)
    if known is None:
        known = from_scalar(x) if type(x) in SCALARS else from_numpy(x)
        signature_of(known)
        while len(numbers) >= _MOST_NUMBERS:
            numbers.pop(next(iter(numbers)), None)
        numbers[key] = known
    return known


def _is_its_key(x: Any) -> bool:
    """Whether a number differs from all equal numbers of its type at most in being another object.

    Zeros of two signs are equal, and NaN is not itself. Of the zeros, only the positive one of Python is a key.
    """
    if isinstance(x, (float, np.floating)):
        return bool(x == x and (x or (type(x) is float and math.copysign(1.0, x) > 0)))
    return not isinstance(x, (complex, np.complexfloating))
