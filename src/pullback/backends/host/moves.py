"""Copies of large arrays, by ``loops``, the module in C, on all cores; those of small ones by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import own
from pullback.backends.host.parallel import cores

COPIED = 1 << 17
"""The least bytes that the module copies: NumPy's functions take as long as a call of it for fewer."""
SHARE = 1 << 19
"""The bytes that are worth a thread."""

_loops = own.loops
_SIZES = (1, 2, 4, 8, 16)  # The bytes of an element for which the module has loops


def are_moved(size: int, dtype: np.dtype[Any]) -> bool:
    """Whether the module in C copies so many elements of a dtype."""
    item = dtype.itemsize
    return size * item >= COPIED and item in _SIZES and _loops is not None and not dtype.hasobject


def move(pairs: list[tuple[Any, Any]]) -> None:
    """Copy arrays into others, for which :func:`are_moved`.

    Args:
      pairs: an array that is written, and one of its dtype that broadcasts to its shape. What is written shares no
        memory with anything else here.
    """
    assert _loops is not None
    _loops.move(pairs, min(cores() - 1, sum([out.nbytes for out, _ in pairs]) // SHARE))


def copy(out: Any, x: Any) -> None:
    """Copy the elements of an array to another of the same dtype, to whose shape it broadcasts."""
    x = np.asarray(x)
    if are_moved(out.size, out.dtype) and x.dtype == out.dtype and out.flags.aligned and x.flags.aligned:
        move([(out, x)])
    else:
        np.copyto(out, x)


def copied(x: Any) -> Any:
    """Return a copy of an array in row-major order."""
    if not are_moved(x.size, x.dtype) or not x.flags.aligned:
        return np.array(x, order="C")
    out = np.empty(x.shape, x.dtype)
    move([(out, x)])
    return out


def concatenated(arrays: Sequence[Any], axis: int) -> Any:
    """Concatenate arrays of one dtype along an axis."""
    dtype = arrays[0].dtype
    if not are_moved(sum([x.size for x in arrays]), dtype) or not all(x.flags.aligned for x in arrays):
        return np.concatenate(arrays, axis)
    shape = list(arrays[0].shape)
    shape[axis] = sum([x.shape[axis] for x in arrays])
    out = np.empty(shape, dtype)
    before, end, pairs = (slice(None),) * axis, 0, []
    for x in arrays:
        start, end = end, end + x.shape[axis]
        pairs.append((out[(*before, slice(start, end))], x))
    move(pairs)
    return out


def rolled(x: Any, shift: int, axis: int) -> Any:
    """Move the elements along an axis by a number from 0 to before its size; those beyond the end come first."""
    before, at = (slice(None),) * axis, x.shape[axis] - shift
    first, rest = x[(*before, slice(at, None))], x[(*before, slice(0, at))]
    if not are_moved(x.size, x.dtype) or not x.flags.aligned:
        return np.concatenate((first, rest), axis)
    out = np.empty(x.shape, x.dtype)
    pairs = (out[(*before, slice(0, shift))], first), (out[(*before, slice(shift, None))], rest)
    move([pair for pair in pairs if pair[0].size])
    return out


def padded(x: Any, value: Any, shape: tuple[int, ...], inside: Sequence[slice], part: Sequence[slice]) -> Any:
    """Return an array that has elements of another inside, and a number around and between them.

    Args:
      x: the other array.
      value: a number.
      shape: that of the result.
      inside: the positions of the elements along each axis.
      part: the elements of ``x`` that are there.
    """
    everything: Any = ...  # which makes a view of an array without axes, too
    source = x[(everything, *part)]
    size = source.size
    if not are_moved(size, x.dtype) or not x.flags.aligned:
        out = np.zeros(shape, x.dtype) if type(value) is int and value == 0 else np.full(shape, value, x.dtype)
        out[(everything, *inside)] = source
        return out
    out, number = np.empty(shape, x.dtype), np.asarray(value, x.dtype)
    if any(s.step != 1 for s in inside):
        move([(out, number)])
        move([(out[(everything, *inside)], source)])
        return out
    pairs, rest = [(out[tuple(inside)], source)], out
    for axis, (s, n) in enumerate(zip(inside, shape, strict=True)):  # what is outside along one axis, inside before
        before = (slice(None),) * axis
        edges = [rest[(*before, edge)] for edge in (slice(0, s.start), slice(s.stop, n))]
        pairs += [(edge, number) for edge in edges if edge.size]
        rest = rest[(*before, s)]
    move(pairs)
    return out
