"""Numbers and NumPy's arrays among the arguments of compiled functions, for the fast path of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler.backend import Buffer, backend
from pullback.backends.devices.buffers import from_buffer
from pullback.backends.devices.devices import default_device
from pullback.core.array import SCALARS, ArrayImpl, Signature, signature, signature_of
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype, scalar_dtype
from pullback.transforms.jit.caches import Cache, all_caches

numbers: Cache = Cache()
"""Arrays of numbers that compiled functions were called with lately; their buffers are on the device already.

The keys are the switches, the type and the number. The module in C looks here too.
"""
all_caches.add(numbers)
copiers: Cache = Cache()
"""For types of numbers and of NumPy arrays: their signature, and a function that copies elements to the device.

The keys are the switches, the dtype or Python's type, and the shape. The module in C looks here too.
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
            if isinstance(x, ArrayImpl):
                signature_of(x)
                array: ArrayImpl | None = x
            else:
                array = operand(x)
            if array is None:
                return None
            out.append(array)
    except Exception:
        return None
    return out


def operand(x: Any) -> ArrayImpl | None:
    """Convert a number or a NumPy array to an array with a signature; return None if ``x`` is neither."""
    kind = type(x)
    if kind in SCALARS:
        return _array_of_number(x)
    if isinstance(x, np.generic):
        return _array_of_number(x) if _is_numeric(x.dtype) else None
    if kind is not np.ndarray or not _is_numeric(x.dtype):
        return None
    return _copied(x)


def _is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is one of NumPy's own, of numbers, and no longer than devices have them."""
    return dtype.isbuiltin == 1 and dtype.kind in "fiubc" and dtype.char not in "gG"


def _copied(x: Any) -> ArrayImpl:
    """Copy a number or a NumPy array to the default device. The caller may change the array after the call."""
    key = (config.trace_context, type(x), ()) if type(x) in SCALARS else (config.trace_context, x.dtype, x.shape)
    copier = copiers.get(key)
    if copier is None:
        copier = _copier(x)
        copiers.keep(key, copier)
    sig, copied = copier
    return from_buffer(copied(x), sig)


def _copier(x: Any) -> tuple[Signature, Callable[[Any], Buffer]]:
    """Return the signature of a copy of ``x``, and a function that copies what has its type to the default device."""
    is_scalar = type(x) in SCALARS
    dtype = scalar_dtype(type(x)) if is_scalar else canonicalize_dtype(x.dtype)
    sig = signature(() if is_scalar else x.shape, dtype, is_scalar and type(x) is not bool)
    if type(x) is np.ndarray and x.dtype is dtype:
        return sig, backend().to_device(sig.aval, default_device(), copy=True)
    moved = backend().to_device(sig.aval, default_device(), copy=False)
    return sig, moved if is_scalar else lambda value: moved(np.array(value, dtype, order="C"))


def _array_of_number(x: Any) -> ArrayImpl:
    """Return a number as an array, the same for equal numbers, so that it is copied to the device once."""
    key = (config.trace_context, type(x), x)
    known: ArrayImpl | None = numbers.get(key)
    if known is not None and x:
        return known
    if not _is_its_key(x):
        return _copied(x)
    if known is None:
        known = _copied(x)
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
