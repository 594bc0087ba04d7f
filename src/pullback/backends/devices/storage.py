"""The storage form, on devices, of arrays of dtypes that NumPy lacks.

A random key of one word is stored as an integer of 32 bits; a key of two words as one of 64 bits, its first word in the
lower half; a key of four words as a complex number of the same bits. The narrow floats of ``ml_dtypes`` are integers of
the same bits, integers of less than eight bits are bytes, and elements of float0 are booleans. So Python's buffer
protocol can read every buffer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core import dtypes

DType = np.dtype[Any]
_BYTE, _SIGNED_BYTE, _HALF = map(np.dtype, (np.uint8, np.int8, np.uint16))
_BOOL = np.dtype(np.bool_)
_KEYS: dict[int, DType] = {1: np.dtype(np.uint32), 2: np.dtype(np.uint64), 4: np.dtype(np.complex128)}


@lru_cache(maxsize=256)
def stored_dtype(dtype: DType) -> DType:
    """The dtype in which devices store elements of ``dtype``."""
    if dtypes.is_key(dtype):
        return _KEYS[dtypes.key_words(dtype)]
    if dtype == dtypes.float0:
        return _BOOL
    if dtype.isbuiltin != 2:  # not of ml_dtypes
        return dtype
    if dtypes.is_integer(dtype):
        return _BYTE if dtypes.dtype_name(dtype).startswith("u") else _SIGNED_BYTE
    if dtypes.itemsize_bits(dtype) < 8:
        return dtype
    return _BYTE if dtype.itemsize == 1 else _HALF


def to_stored(value: Any) -> np.ndarray[Any, Any]:
    """Convert a NumPy value to the dtype in which devices store such elements (see :func:`stored_dtype`)."""
    array = np.asarray(value)
    dtype = array.dtype
    if dtype.isbuiltin == 1:
        return array
    stored = stored_dtype(dtype)
    if stored is _BOOL:
        return np.zeros(array.shape, bool)
    if dtypes.is_integer(dtype):
        return array.astype(stored)
    return np.asarray(array, order="C").view(stored)


def from_stored(value: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Convert an array from a device to ``dtype``.

    Args:
      value: the array, in the dtype in which devices store elements of ``dtype``.
      dtype: the dtype of the result.
    """
    if value.dtype is dtype or value.dtype == dtype:
        return value
    if dtype == dtypes.float0:
        return np.zeros(value.shape, dtype)
    return value.astype(dtype) if dtypes.is_integer(dtype) else value.view(dtype)
