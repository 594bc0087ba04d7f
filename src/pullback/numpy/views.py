"""The bits of arrays, read as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import DtypeError, KeyConversionError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.elementwise import bitcast_convert_type, convert_element_type

_BYTE = np.dtype(np.uint8)


def view(x: Array, dtype: Any) -> Array:
    """The bits of the elements read as another dtype, along the last axis, as in NumPy.

    Args:
      x: an array.
      dtype: the dtype of the result. A narrower one makes the last axis longer, a wider one shorter; None returns the
        array unchanged. Complex numbers are read as pairs of real numbers, which keep their derivatives.

    Raises:
      ShapeError: the array has no axes and the width differs, or the last axis cannot be divided (a ValueError).
      KeyConversionError, DtypeError: random keys, or types of less than 8 bits that are not integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.numpy.views import view
    >>> print(view(jnp.array([1, 256], "uint32"), "uint8"))
    [1 0 0 0 0 1 0 0]
    """
    if dtype is None:
        return x
    new, old = dtypes.requested_dtype(dtype, "view"), x.dtype
    if new == old:
        return x
    for d in (old, new):
        if dtypes.is_key(d):
            raise KeyConversionError(
                "view: random keys have no bits; pullback.random.key_data(keys) returns them as integers"
            )
        if _bits(d) < 8 and not dtypes.is_integer(d):
            raise DtypeError(f"view takes types of 8 bits or more, and integers, got {dtypes.short_name(d)}")
    if _bits(new) != _bits(old) and not x.shape:
        raise ShapeError(
            f"view of a scalar array takes a dtype of the same width, got {dtypes.short_name(new)} for "
            f"{dtypes.short_name(old)}; use x[None].view(...)"
        )
    size = x.shape[-1] * _bits(old) if x.shape else _bits(new)
    if size % _bits(new):
        raise ShapeError(
            f"view as {dtypes.short_name(new)}: the last axis of {x.shape} has {size} bits in all, which "
            f"{_bits(new)} does not divide"
        )
    return _read(x, new)


def _bits(dtype: np.dtype[Any]) -> int:
    """Return the width of a dtype in bits; for an integer of 4 bits it is 4, although a byte stores it."""
    return dtypes.iinfo(dtype).bits if dtypes.is_integer(dtype) else 8 * dtype.itemsize


def _read(x: Any, new: np.dtype[Any]) -> Any:
    """Reinterpret the bits of ``x`` as dtype ``new``; the size of the last axis changes with the width.

    For example, 4 numbers of float32 along the last axis become 2 numbers of float64.
    """
    old = x.dtype
    if old == new:
        return x
    if dtypes.is_complex(old):
        return (
            _read(_joined(slicing.stack([ops.real(x), ops.imag(x)], len(x.shape))), new) if x.shape else _alone(x, new)
        )
    if dtypes.is_complex(new):
        pair = _divided(_read(x, dtypes.to_real(new)), 2) if x.shape else None
        return _alone(x, new) if pair is None else ops.complex(pair[..., 0], pair[..., 1])
    if dtypes.is_bool(old):
        return _read(convert_element_type(x, _BYTE), new)
    if dtypes.is_bool(new):
        return ops.ne_p.bind(_read(x, _BYTE), 0)
    if _bits(old) < 8:
        return _read(_packed(x), new)
    if _bits(new) < 8:
        return _unpacked(_read(x, _BYTE), new)
    if new.itemsize > old.itemsize:
        return bitcast_convert_type(_divided(x, new.itemsize // old.itemsize), new)
    out = bitcast_convert_type(x, new)
    return out if new.itemsize == old.itemsize else _joined(out)


def _alone(x: Any, new: np.dtype[Any]) -> Any:
    """Read the bits of a scalar as another dtype of the same width."""
    return _read(shapes.expand_dims(x, (0,)), new)[0]


def _joined(x: Any) -> Any:
    """Merge the last two axes of ``x``: (..., a, b) -> (..., a * b)."""
    return shapes.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _divided(x: Any, count: int) -> Any:
    """Split the last axis of ``x`` in two: (..., n) -> (..., n / count, count)."""
    return shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // count, count))


def _packed(x: Any) -> Any:
    """Pack neighbouring integers of 2 or 4 bits into bytes, the first into the lowest bits of the byte."""
    bits = _bits(x.dtype)
    count = 8 // bits
    numbers = _divided(
        ops.and_p.bind(convert_element_type(convert_element_type(x, np.dtype(np.int32)), _BYTE), 2**bits - 1), count
    )
    out = numbers[..., 0]
    for i in range(1, count):
        out = ops.or_p.bind(out, ops.shift_left_p.bind(numbers[..., i], bits * i))
    return out


def _unpacked(x: Any, new: np.dtype[Any]) -> Any:
    """Unpack bytes into integers of dtype ``new``, of 2 or 4 bits; the first comes from the lowest bits of the byte."""
    bits = _bits(new)
    fields = [
        ops.and_p.bind(ops.shift_right_logical_p.bind(x, bits * i) if i else x, 2**bits - 1) for i in range(8 // bits)
    ]
    numbers = convert_element_type(_joined(slicing.stack(fields, len(x.shape))), np.dtype(np.int32))
    if not dtypes.is_unsigned(new):
        numbers = ops.sub(
            numbers, ops.mul(convert_element_type(ops.ge_p.bind(numbers, 2 ** (bits - 1)), numbers.dtype), 2**bits)
        )
    return convert_element_type(numbers, new)
