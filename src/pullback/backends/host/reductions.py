"""Reductions, cumulative operations and linear recurrences on the host, with bounded rounding errors.

Floats of fewer than 32 bits are accumulated in float32, as the compiled backend does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import moves, native
from pullback.backends.host.rows import of_rows
from pullback.core.dtypes import is_float

LARGE = 8192  # The least elements for which the order of summation matters.
_BLOCK = 128  # The number of elements that are summed sequentially, as in NumPy's pairwise summation.
# Without the module in C, the elements of a contiguous axis that einsum sums at once, in 16 interleaved sums: NumPy's
# own sum takes three times as long (a million floats: 44 and 138 us on an AMD EPYC), and five times for rows of ten.
_PIECE = native.PIECE


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype are accumulated in float32."""
    return dtype.itemsize < 4 and is_float(dtype)


def reduce_sum(x: Any, *, axes: tuple[int, ...]) -> Any:
    dtype = x.dtype
    if x.size < LARGE and dtype.itemsize >= 4:
        return np.add.reduce(x, axes, dtype)
    if is_narrow(dtype):
        return reduce_sum(x.astype(np.float32), axes=axes).astype(dtype)
    return _sum_of_many(x, axes) if dtype.kind in "fc" else np.add.reduce(x, axes, dtype)


def norm(x: Any, *, axes: tuple[int, ...]) -> Any:
    """The root of the sum of squares over ``axes``; scales by the largest element if squares overflow or underflow."""
    if is_narrow(x.dtype):
        return norm(x.astype(np.float32), axes=axes).astype(x.dtype)
    size = np.abs(x) if x.dtype.kind == "c" else x
    if size.dtype.char in "fd" and native.are_rows(size.shape, axes) and _is_short(size, axes):
        return of_rows("norm", size, axes=axes, reduces=True)[()]
    rows = _rows(size, axes) if size.size >= LARGE else None
    if rows is None:
        out = np.sqrt(reduce_sum(size * size, axes=axes))
    else:
        out = np.sqrt(_sum_rows(rows, rows)).reshape(size.shape[: size.ndim - len(axes)])[()]
    info = np.finfo(size.dtype)
    trusted = (out > math.sqrt(info.tiny / info.eps)) & (out < np.inf)
    if trusted.all():
        return out
    largest = np.max(np.abs(size), axes, keepdims=True, initial=0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, size.dtype.type(1))
    scaled = size / scale
    again = np.sqrt(reduce_sum(scaled * scaled, axes=axes)) * np.squeeze(scale, axes)
    return np.where(trusted, out, again).astype(size.dtype, copy=False)


def _is_short(x: Any, axes: tuple[int, ...]) -> bool:
    """Whether one thread reduces a row along the last axes of an array in less time than several."""
    return x.size < LARGE or math.prod(x.shape[x.ndim - len(axes) :]) <= LARGE


def reduce_extreme(x: Any, axes: tuple[int, ...], kind: str, ufunc: np.ufunc) -> Any:
    """Return the largest or least elements over some axes of an array that has some.

    Args:
      x: the array.
      axes: the axes.
      kind: "largest" or "least".
      ufunc: NumPy's function of two elements.
    """
    out = _natively(kind, x, axes) if x.size >= LARGE else None
    return ufunc.reduce(x, axes) if out is None else out


def _sum_of_many(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum with an error that hardly grows with the number of terms.

    NumPy sums pairwise along the contiguous axis, but sequentially along other axes; this function sums along the other
    axes in blocks.
    """
    out = _natively("sum", x, axes)
    if out is not None:
        return out
    rows = _rows(x, axes)
    if rows is not None:
        return _sum_rows(rows).reshape(x.shape[: x.ndim - len(axes)])[()]
    if len(axes) < x.ndim or not (x.flags.c_contiguous or x.flags.f_contiguous):
        innermost = min((abs(s) for s, n in zip(x.strides, x.shape, strict=True) if n > 1), default=0)
        for axis in axes:
            while x.shape[axis] > 4 * _BLOCK and abs(x.strides[axis]) != innermost:
                x = _sum_blocks(x, axis)
    return np.add.reduce(x, axes, x.dtype)


def _natively(kind: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Reduce an array by the module in C, adjacent axes at once, the last ones first; None if NumPy has to do it.

    Args:
      kind: as in :func:`pullback.backends.host.native.reduce_rows`.
      x: the array.
      axes: the axes, in ascending order.
    """
    if native.loops is None:
        return None
    out = native.loops.reduced(kind, x, axes)
    if out is not None or x.dtype.char not in "fd" or not x.flags.c_contiguous or not x.size:
        return out
    while axes:
        end = axes[-1] + 1
        first = next(end - k for k in range(len(axes), 0, -1) if axes[-k] == end - k)
        shape, rest = x.shape, x.shape[:first] + x.shape[end:]
        if end == x.ndim:
            x = native.reduce_rows(kind, x.reshape(-1, math.prod(shape[first:])))
        elif are_columns_worthwhile(shape, end):
            groups = (math.prod(shape[:first]), math.prod(shape[first:end]), math.prod(shape[end:]))
            x = native.reduce_columns(kind, x.reshape(groups))
        else:
            return None
        x, axes = x.reshape(rest), axes[: len(axes) - (end - first)]
    return x[()]


def are_columns_worthwhile(shape: tuple[int, ...], end: int) -> bool:
    """Whether the module in C reduces axes before ``end``, which are not the last ones, in less time.

    NumPy calls a loop for each row. Rows of 10 elements take it ten times as long; those of 300 take it no longer if
    there are 30 of them, and twice as long if there are 1,000 (measured on an AMD EPYC).
    """
    return math.prod(shape[end:]) < 64 or math.prod(shape) >= 4 * LARGE


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """Return real floats as a matrix whose rows are to be reduced; None if ``axes`` are not the last ones in memory."""
    kept = x.ndim - len(axes)
    if x.dtype.char not in "fd" or not x.flags.c_contiguous or min(axes, default=0) < kept:
        return None
    return x.reshape(math.prod(x.shape[:kept]), -1)


def _sum_rows(x: Any, *factor: Any) -> Any:
    """Sum the rows of a matrix, or of its product with another of the same shape, in pieces of ``_PIECE`` elements."""
    if native.loops is not None and x.shape[1]:
        return native.reduce_rows("sum", x, *factor)
    operands = (x, *factor)
    rows, size = x.shape
    count, rest = divmod(size, _PIECE)
    if count < 2:
        return np.einsum(",".join(["ij"] * len(operands)) + "->i", *operands)
    pieces = [v[:, : size - rest].reshape(rows, count, _PIECE) for v in operands]
    out = _sum_rows(np.einsum(",".join(["ijk"] * len(pieces)) + "->ij", *pieces))
    return out + _sum_rows(*[v[:, size - rest :] for v in operands]) if rest else out


def _sum_blocks(x: Any, axis: int) -> Any:
    """Replace blocks of ``_BLOCK`` consecutive elements along ``axis`` by their sums; the last block may be shorter."""
    count, rest = divmod(x.shape[axis], _BLOCK)
    before = (slice(None),) * axis
    blocks = x[(*before, slice(count * _BLOCK))] if rest else x
    out = np.add.reduce(blocks.reshape(*x.shape[:axis], count, _BLOCK, *x.shape[axis + 1 :]), axis + 1, x.dtype)
    if rest:
        last = np.add.reduce(x[(*before, slice(count * _BLOCK, None))], axis, x.dtype, keepdims=True)
        out = np.concatenate([out, last], axis)
    return out


def reduce_prod(x: Any, *, axes: tuple[int, ...]) -> Any:
    dtype = x.dtype
    if is_narrow(dtype):
        return reduce_prod(x.astype(np.float32), axes=axes).astype(dtype)
    out = _natively("product", x, axes) if x.size >= LARGE else None
    if out is not None:
        return out
    rows = _rows(x, axes) if x.size >= LARGE else None
    if rows is None:
        return np.multiply.reduce(x, axes, dtype)
    while (size := rows.shape[1]) > _BLOCK // 2:  # NumPy's loop over a row multiplies one element after another
        half = size // 2
        product = rows[:, :half] * rows[:, half : 2 * half]
        if size % 2:
            product[:, 0] *= rows[:, -1]
        rows = product
    return np.multiply.reduce(rows, 1, dtype).reshape(x.shape[: x.ndim - len(axes)])[()]


def product_of_others(x: Any, axes: tuple[int, ...]) -> Any:
    """Return, for each of many elements, the product of all others over some axes, of floats or complex numbers.

    The module in C multiplies those before and those behind an element. Without it the products of pairs are elements
    of an array of half the length, whose elements have products of others in turn.
    """
    if has_products_of_others(x.dtype):
        return _products_of_others_in_rows(x, axes)
    kept = [i for i in range(x.ndim) if i not in axes]
    first = axes[0]
    adjacent = axes == tuple(range(first, first + len(axes)))
    order = list(range(x.ndim)) if adjacent else [*kept, *axes]
    first = first if adjacent else len(kept)
    moved = x.transpose(order)
    shape = moved.shape
    others = _product_of_others(
        np.ascontiguousarray(moved).reshape(math.prod(shape[:first]), math.prod(x.shape[i] for i in axes), -1)
    )
    return others.reshape(shape).transpose(np.argsort(order))


def has_products_of_others(dtype: np.dtype[Any]) -> bool:
    """Whether the module in C has a loop for :func:`product_of_others`, which then is quick for few elements too."""
    return native.loops is not None and dtype.char in "fd"


def _products_of_others_in_rows(x: Any, axes: tuple[int, ...]) -> Any:
    order = [*[i for i in range(x.ndim) if i not in axes], *axes]
    is_moved = order != list(range(x.ndim))
    moved = moves.copied(x.transpose(order)) if is_moved else x
    last = tuple(range(x.ndim - len(axes), x.ndim))
    others = of_rows("others", moved, axes=last)
    return moves.copied(others.transpose(np.argsort(order))) if is_moved else others


_SHORT = 64  # elements of a row, for which NumPy's loops take no longer than their calls


def _product_of_others(x: Any) -> Any:
    """Return the products of the others along the second of three axes, which are contiguous."""
    groups, size, columns = x.shape
    if size == 1:
        return np.ones_like(x)
    if groups > 1 and size * columns < _SHORT:
        moved = np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(1, size, -1)
        return np.ascontiguousarray(_product_of_others(moved).reshape(size, groups, columns).transpose(1, 0, 2))
    half, rest = divmod(size, 2)
    one, other = x[:, :half], x[:, half : 2 * half]
    pairs = np.empty((groups, half + rest, columns), x.dtype)
    np.multiply(one, other, out=pairs[:, :half])
    pairs[:, half:] = x[:, 2 * half :]
    others = _product_of_others(pairs)
    out = np.empty_like(x)
    np.multiply(others[:, :half], other, out=out[:, :half])
    np.multiply(others[:, :half], one, out=out[:, half : 2 * half])
    out[:, 2 * half :] = others[:, half:]
    return out


_WIDER = {"f": np.float64, "F": np.complex128}


def accumulate(ufunc: np.ufunc, x: Any, *, axis: int, reverse: bool) -> Any:
    """Accumulate a ufunc along an axis, from the end if ``reverse``; long sums are computed in twice the precision."""
    dtype = wide = x.dtype
    if is_narrow(dtype):
        wide = np.dtype(np.float32)
    elif ufunc is np.add and x.shape[axis] > 2 * _BLOCK and dtype.char in _WIDER:
        wide = np.dtype(_WIDER[dtype.char])
    if reverse:
        x = np.flip(x, axis)
    out = _running_sum(x) if ufunc is np.add and axis == x.ndim - 1 and x.size >= LARGE else None
    if out is None:
        out = ufunc.accumulate(x, axis, wide).astype(dtype, copy=False)
    return np.flip(out, axis) if reverse else out


def _running_sum(x: Any) -> Any:
    """Sum the elements along the last axis up to each position, rows on all cores; None if there is no loop for it."""
    if is_narrow(x.dtype):
        out = _running_sum(x.astype(np.float32))
        return None if out is None else out.astype(x.dtype)
    out = np.empty(x.shape, x.dtype)
    components = [(out.real, x.real), (out.imag, x.imag)] if x.dtype.kind == "c" else [(out, x)]
    return out if all(native.running_sum(*pair) for pair in components) else None


def linear_recurrence(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    """Solve ``y[k] = a[k] y[k-1] + b[k]``, ``y[0] = b[0]`` along an axis; from the last element if ``reverse``."""
    dtype = b.dtype
    wide = np.float32 if is_narrow(dtype) else dtype
    a, b = (np.moveaxis(v, axis, 0).astype(wide, copy=False) for v in np.broadcast_arrays(a, b))
    if reverse:
        a, b = a[::-1], b[::-1]
    out = np.empty(b.shape, wide)
    n = len(b)
    # Python's loop goes over elements, or over the positions in blocks if the axis is long and the others are small.
    count = math.isqrt(n) if n > 4 * _BLOCK and out.size < n * n else 0
    length = n // count if count else 0
    start = count * length
    if count:
        blocks = (count, length, *b.shape[1:])
        out[:start] = _in_blocks(a[:start].reshape(blocks), b[:start].reshape(blocks)).reshape(b[:start].shape)
    for k in range(start, n):
        out[k] = a[k] * out[k - 1] + b[k] if k else b[k]
    if reverse:
        out = out[::-1]
    return np.moveaxis(out, 0, axis).astype(dtype, copy=False)


def _in_blocks(a: Any, b: Any) -> Any:
    """Solve ``y[k] = a[k] y[k-1] + b[k]``, where k counts along the first two axes, (block, position), together.

    All blocks are solved at once as if each were the first; then each receives the last value of the block before.
    """
    out, product = np.empty_like(b), np.empty_like(a)
    out[:, 0], product[:, 0] = b[:, 0], a[:, 0]
    for k in range(1, b.shape[1]):
        out[:, k] = a[:, k] * out[:, k - 1] + b[:, k]
        product[:, k] = a[:, k] * product[:, k - 1]
    for i in range(1, len(b)):
        carried = out[i - 1, -1:]
        # The product over a block may overflow while the value that it multiplies is zero: 0 * inf must be 0 here.
        out[i] += np.where(carried == 0, 0, product[i] * carried)
    return out


native.REDUCTIONS.update({reduce_sum: "sum", reduce_prod: "product"})
