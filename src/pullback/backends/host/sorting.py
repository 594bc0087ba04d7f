"""Sorting, searching and moving elements along an axis on the host.

As in NumPy, NaN comes after all other numbers, zeros of either sign are equal, and complex numbers are ordered by their
real parts, then by their imaginary parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.host import native
from pullback.backends.host.indexing import add_at, along_axis
from pullback.backends.host.parallel import by_rows, cores
from pullback.backends.host.reductions import is_narrow

_MOST_AXES = 32
"""The most axes of an array whose elements NumPy puts in order by positions."""


def sort(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    if operands[0].ndim > _MOST_AXES:
        outs = sort(*[_rows(x, dimension) for x in operands], dimension=1, is_stable=is_stable, num_keys=num_keys)
        return [_from_rows(x, operands[0].shape, dimension) for x in outs]
    if len(operands) == 1 and not _is_complex_with_nan(operands[0]):
        return [_sort_one(operands[0], dimension, is_stable)]
    keys = [key for x in operands[:num_keys] for key in _sort_keys(x)]
    if len(keys) == 1:
        order = stable_order(keys[0], dimension) if is_stable else np.argsort(keys[0], dimension)
    else:
        order = np.lexsort(keys[::-1], dimension)
    return [along_axis(x, order, dimension) for x in operands]


def _rows(x: Any, axis: int) -> Any:
    """Return an array as a matrix, of a row for each vector along an axis."""
    return np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])


def _from_rows(rows: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return the array of a shape whose vectors along an axis are the rows of a matrix, of any length."""
    return np.moveaxis(rows.reshape(*shape[:axis], *shape[axis + 1 :], rows.shape[1]), -1, axis)


def stable_order(x: Any, axis: int) -> Any:
    """Return the positions of elements in increasing order along an axis; equal ones stay in their order.

    Numbers of 32 bits, and floats of 16, are sorted as integers of 64 that have the position in the low half, so that
    no two are equal. NumPy sorts integers in vectors: a thousand rows of a thousand floats take a fifth of the time of
    its stable sort of positions (on an AMD EPYC). That of integers of 16 bits takes less.
    """
    if x.size < _MANY_KEYS or x.shape[axis] >= 2**31:
        return np.argsort(x, axis, kind="stable")
    if not (x.dtype.char in "fe" or (x.dtype.kind in "iu" and x.dtype.itemsize == 4)):
        return np.argsort(x, axis, kind="stable")
    keys = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    wide = _ascending(keys)
    wide <<= 32
    wide |= np.arange(keys.shape[-1])
    wide = by_rows(lambda rows: np.sort(rows, -1), wide, (keys.ndim - 1,))
    wide &= 2**32 - 1
    return np.moveaxis(wide, -1, axis)


_MANY_KEYS = 1 << 11
"""The least elements for which :func:`stable_order` packs them: NumPy sorts the positions of half as many as fast."""


def _ascending(x: Any) -> Any:
    """Map numbers of at most 32 bits to integers of 64 in their order: zeros to one, any NaN to the largest."""
    if x.dtype.kind != "f":
        return x.astype(np.int64) - (2**31 if x.dtype == np.uint32 else 0)
    bits = (x + x.dtype.type(0)).view(f"i{x.dtype.itemsize}")  # -0 + 0 is 0
    largest = np.iinfo(bits.dtype).max
    below = bits >> (8 * bits.dtype.itemsize - 1)  # all ones for negative numbers, in whose order the bits descend
    below &= largest
    bits ^= below
    np.copyto(bits, largest, where=np.isnan(x))
    return bits.astype(np.int64)


def _is_complex_with_nan(x: Any) -> bool:
    return x.dtype.kind == "c" and bool(np.isnan(x).any())


def _sort_keys(x: Any) -> tuple[Any, ...]:
    """The arrays to sort an operand by, the most significant first.

    They are the real and the imaginary part for complex numbers with NaN; otherwise the operand alone.
    """
    return (x.real, x.imag) if _is_complex_with_nan(x) else (_comparable(x),)


def _sort_one(x: Any, axis: int, is_stable: bool) -> Any:
    """Sort one operand along ``axis``.

    A stable sort is slower, and used only if it is asked for and matters: if the operand has -0, which equals 0.
    """
    key = _comparable(x)
    signed_zeros = is_stable and key.dtype.kind in "fc" and bool(np.any(key == 0)) and _has_negative_zero(key)
    return np.sort(key, axis, kind="stable" if signed_zeros else None).astype(x.dtype, copy=False)


def _has_negative_zero(x: Any) -> bool:
    components = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return any(bool(np.any(np.signbit(c) & (c == 0))) for c in components)


def _comparable(x: Any) -> Any:
    """Convert narrow floats to float32, which NumPy sorts fast."""
    return x.astype(np.float32) if is_narrow(x.dtype) and x.dtype != np.float16 else x


def top_k(x: Any, *, k: int, axis: int) -> list[Any]:
    """The k largest elements along an axis, in descending order, and their positions.

    NaN is above all numbers, and 0 above -0. Of equal elements, the one with the lower position comes first.
    """
    if axis != x.ndim - 1:
        values, indices = top_k(np.moveaxis(x, axis, -1), k=k, axis=x.ndim - 1)
        return [np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis)]
    indices = _top_k_of_few(x, k)
    if indices is None:
        indices = _smallest(_descending_keys(x), np.arange(x.shape[-1]), k)
    return [np.take_along_axis(x, indices, -1), indices.astype(np.int32)]


def _top_k_of_few(x: Any, k: int) -> Any:
    """The positions of the k largest elements of each row, found by a lower bound that few elements reach.

    Returns None if an element is NaN, or if this method would not be faster: rows are short, or many elements reach the
    bound.

    The bound: a row is divided into ``c`` sets. The k-th largest of their ``c`` maxima is a lower bound of the k-th
    largest element of the row. Only the elements that reach the bound are sorted.
    """
    n = x.shape[-1]
    c = max(64, 8 * k)
    s = n // c
    if k == 0 or s < 4 or x.dtype.kind not in "fiu" or x.size < _FEW:
        return None
    rows = x.reshape(-1, n)
    maxima = rows[:, : s * c].reshape(-1, s, c).max(1)
    if x.dtype.kind == "f" and (np.isnan(maxima).any() or np.isnan(rows[:, s * c :]).any()):
        return None  # NaN is above all numbers, and not >= any
    at = np.flatnonzero(rows >= np.partition(maxima, c - k, -1)[:, c - k, None])
    row = at // n
    counts = np.bincount(row, minlength=len(rows))
    width = int(counts.max())
    if width > c:  # many equal elements
        return None
    column = np.arange(at.size) - np.repeat(np.cumsum(counts) - counts, counts)
    found = _descending_keys(rows[row, at - row * n])
    keys = np.full((len(rows), width), np.iinfo(found.dtype).max, found.dtype)
    positions = np.full((len(rows), width), n)
    keys[row, column], positions[row, column] = found, at - row * n
    return _smallest(keys, positions, k).reshape(*x.shape[:-1], k)


_FEW = 2048
"""The least elements for :func:`_top_k_of_few`; in smaller arrays its fixed time exceeds what it saves."""


def _smallest(keys: Any, positions: Any, k: int) -> Any:
    """The entries of ``positions`` for the ``k`` smallest keys of each row, sorted by key, then by position.

    ``positions`` has one entry for each key, or one for each column.
    """
    if keys.dtype.itemsize <= 4 and keys.shape[-1] < 2**31:
        # With its position in the low half, each key is unique, so that any sort is stable.
        wide = (keys.astype(np.int64) << 32) | positions
        if k < keys.shape[-1]:
            wide = np.partition(wide, k, axis=-1)[..., :k]
        return np.sort(wide, axis=-1) & (2**32 - 1)
    order = np.argsort(keys, axis=-1, kind="stable")[..., :k]
    return order if positions.ndim == 1 else np.take_along_axis(positions, order, -1)


def _descending_keys(x: Any) -> Any:
    """Map elements to numbers that sort in the reverse order: the largest element gets the smallest number."""
    x = _comparable(x)
    kind = x.dtype.kind
    if kind == "b":
        return np.invert(x).astype(np.int8)
    if kind == "f":
        bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(x.shape)
        return np.invert(np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits))
    if kind == "u" and x.dtype.itemsize == 4:
        return (np.invert(x).astype(np.int64) - 2**31).astype(np.int32)
    return np.invert(x) if kind in "iu" else np.negative(x)


def searchsorted(sorted_: Any, values: Any, *, side: str, index_dtype: np.dtype[Any]) -> Any:
    """The index at which to insert each value to keep ``sorted_`` sorted, along its last axis.

    Rows of ``values`` are searched in the row of ``sorted_`` with the same leading indices. For equal elements,
    ``side`` says whether the index is before (``"left"``) or after them (``"right"``).
    """
    sorted_, values = _comparable(sorted_), _comparable(values)
    if sorted_.ndim == 1:
        return _search(sorted_, values, side).astype(index_dtype, copy=False)
    out = np.empty(values.shape, index_dtype)
    for row in np.ndindex(*sorted_.shape[:-1]):
        out[row] = _search(sorted_[row], values[row], side)
    return out


def counted(x: Any, length: int) -> Any:
    """Return how often each number below ``length`` occurs; negative ones count as 0. None if NumPy is as quick."""
    if native.loops is None or x.size < _MANY_COUNTED or not 0 < length <= _MOST_BINS or x.size >= 2**32:
        return None
    if x.dtype.kind != "i" or x.dtype.itemsize < 4:
        return None
    out = np.zeros(length, np.intp)
    native.loops.count(np.ascontiguousarray(x), out, min(cores() - 1, x.size // _SHARE_COUNTED))
    return out


_MANY_COUNTED, _SHARE_COUNTED = 1 << 12, 1 << 16
_MOST_BINS = 1 << 13


def _search(sorted_: Any, values: Any, side: str) -> Any:
    """The position of each value in a sorted vector.

    NumPy searches for one value after the other, and waits for memory at each step of each: a million positions in a
    million floats take 218 ms on an AMD EPYC, and 18 ms by the loop in C on the same core.
    """
    found = native.search(sorted_, values, side) if values.size >= _MANY_VALUES else None
    return np.searchsorted(sorted_, values, side) if found is None else found  # type: ignore[call-overload]


_MANY_VALUES = 1 << 10
"""The least values that the loop in C searches for."""


def take_along_axis(x: Any, indices: Any, *, axis: int) -> Any:
    """Gather elements at ``indices`` along an axis; along all other axes ``x`` and ``indices`` broadcast."""
    shape = indices.shape
    if (shape[:axis], shape[axis + 1 :]) == (x.shape[:axis], x.shape[axis + 1 :]):
        return along_axis(x, indices, axis)
    return x[_grid(x.shape, indices, axis)]


def add_along_axis(x: Any, indices: Any, *, axis: int, size: int, unique: bool) -> Any:
    """Make zeros with ``size`` elements along ``axis``, and add the elements of ``x`` at ``indices`` along this axis.

    ``unique`` promises that no index occurs twice.
    """
    shape = tuple(n if m == 1 else m for m, n in zip(x.shape, indices.shape, strict=True))
    x, indices = (a if a.shape == shape else np.broadcast_to(a, shape) for a in (x, indices))
    if len(shape) > _MOST_AXES:
        rows, positions = _rows(x, axis), _rows(indices, axis)
        return _from_rows(add_along_axis(rows, positions, axis=1, size=size, unique=unique), shape, axis)
    out_shape = (*shape[:axis], size, *shape[axis + 1 :])
    dtype = np.dtype(np.float32) if is_narrow(x.dtype) else x.dtype
    out = np.zeros(out_shape, dtype)
    if unique:
        out[_grid(out_shape, indices, axis)] = x
    elif add_at(out, np.ascontiguousarray(indices), axis, x.astype(dtype, copy=False)):
        pass
    elif len(shape) == 1:
        np.add.at(out, indices, x.astype(dtype, copy=False))
    else:
        # One flat index: NumPy is many times faster with it than with an index for each axis.
        positions = np.ravel_multi_index(np.broadcast_arrays(*_grid(out_shape, indices, axis)), out_shape)
        np.add.at(out.reshape(-1), positions.reshape(-1), x.astype(dtype, copy=False).reshape(-1))
    return out.astype(x.dtype, copy=False)


def _grid(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Index arrays for an array of ``shape``: ``indices`` along ``axis``, and all positions along each other axis."""
    rank = len(shape)
    index: list[Any] = [np.arange(n).reshape(n, *(1,) * (rank - 1 - i)) for i, n in enumerate(shape)]
    index[axis] = indices
    return tuple(index)
