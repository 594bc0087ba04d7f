"""Numbers and NumPy's arrays among the arguments of compiled functions, for the fast path of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler.backend import Buffer, backend
from pullback.backends.devices.buffers import from_buffer
from pullback.backends.devices.devices import default_device
from pullback.core.array import SCALARS, ArrayImpl, Signature, from_numpy, from_scalar, signature, signature_of
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype
from pullback.transforms.jit.caches import Cache, all_caches

numbers: Cache = Cache()
"""Arrays of numbers that compiled functions were called with lately; their buffers are on the device already.

The keys are the switches, the type and the number. The module in C looks here too.
"""
all_caches.add(numbers)
copiers: Cache = Cache()
"""For NumPy arrays the signature of their copies, and a function that copies their elements to the device.

The keys are the switches, the dtype and the shape. The module in C looks here too.
"""
all_caches.add(copiers)
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
        signature_of(x)
        return x
    if isinstance(x, np.generic):
        return _array_of_number(x) if _is_numeric(x.dtype) else None
    if kind is not np.ndarray or not _is_numeric(x.dtype):
        return None
    key = (config.trace_context, x.dtype, x.shape)
    found = copiers.get(key)
    if found is None:
        found = _copier(x)
        copiers.keep(key, found)
    sig, copied = found
    return from_buffer(copied(x), sig)


def _copier(x: np.ndarray[Any, Any]) -> tuple[Signature, Callable[[np.ndarray[Any, Any]], Buffer]]:
    """Return the signature of a copy of ``x``, and a function that copies arrays of its type to the default device.

    The caller of a compiled function may change its arrays later, so they are copied at the call.
    """
    dtype, device = canonicalize_dtype(x.dtype), default_device()
    sig = signature(x.shape, dtype, False)
    if dtype is x.dtype:
        return sig, backend().to_device(sig.aval, device, copy=True)
    moved = backend().to_device(sig.aval, device, copy=False)
    return sig, lambda value: moved(np.array(value, dtype=dtype, order="C"))


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
