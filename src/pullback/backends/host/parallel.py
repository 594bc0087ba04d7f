"""Parallel evaluation of expensive elementwise functions: SciPy's loops release the GIL, so that threads run them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import systems

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MANY = 8192
"""The least elements for parallel evaluation: half of them take longer than a thread needs to wake up."""


def in_parallel(
    function: Callable[..., Any], operands: Sequence[Any], dtypes: Sequence[np.dtype[Any]]
) -> list[Any] | None:
    """Evaluate an elementwise function, with a chunk of the elements on each core.

    Args:
      function: an elementwise function that takes at least 20 ns an element, and releases the GIL.
      operands: arrays of at least one axis, and numbers.
      dtypes: the dtypes of the results.

    Returns:
      The results, one for each dtype. None, without an evaluation, if the arrays have different shapes, if there is
      only one core, or if the interpreter is ending.
    """
    arrays = [x for x in operands if isinstance(x, np.ndarray) and x.ndim]
    shape = arrays[0].shape
    count = min(cores(), arrays[0].size // (MANY // 2))
    if count < 2 or any(x.shape != shape for x in arrays):
        return None
    flat = [x.reshape(-1) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
    outs = [np.empty(arrays[0].size, dtype) for dtype in dtypes]
    ends = [arrays[0].size * i // count for i in range(count + 1)]

    def compute(start: int, end: int) -> None:
        chunks = [x[start:end] if isinstance(x, np.ndarray) and x.ndim else x for x in flat]
        found = function(*chunks)
        for out, chunk in zip(outs, found if isinstance(found, tuple) else [found], strict=True):
            out[start:end] = chunk

    if not on_cores(compute, [(ends[i], ends[i + 1]) for i in range(count)]):
        return None
    return [out.reshape(shape) for out in outs]


def by_rows(function: Callable[[Any], Any], x: Any, axes: Sequence[int]) -> Any:
    """Evaluate a function of an array, with a chunk of the first axis on each core if the array is large.

    Args:
      function: returns an array of the shape and dtype of its operand, each row of which depends on that row alone.
      x: the array.
      axes: the axes along which elements depend on each other; if the first is among them, the array is not divided.
    """
    count = min(cores(), x.shape[0]) if x.ndim else 1
    if count < 2 or x.size < MANY_ROWS or 0 in axes or not x.flags.c_contiguous:
        return function(x)
    ends = [x.shape[0] * i // count for i in range(count + 1)]
    out = np.empty_like(x)

    def compute(i: int) -> None:
        rows = slice(ends[i], ends[i + 1])
        out[rows] = function(x[rows])

    return out if on_cores(compute, [(i,) for i in range(count)]) else function(x)


MANY_ROWS = 1 << 16
"""The least elements for :func:`by_rows`: to sort half as many takes milliseconds, and a thread 45 us to wake up."""


def on_cores(compute: Callable[..., None], chunks: Sequence[tuple[Any, ...]]) -> bool:
    """Call ``compute`` with the arguments of each chunk, each on a thread, the first on this one.

    Returns:
      Whether it did so. If not, nothing was called: this thread is one of them already, or the interpreter is ending.
    """
    if _busy.here:
        return False
    # The context of this thread has settings such as NumPy's handling of overflow.
    try:
        others = [_threads().submit(copy_context().run, _alone, compute, chunk) for chunk in chunks[1:]]
    except RuntimeError:  # the interpreter is ending, and starts no threads
        return False
    try:
        compute(*chunks[0])
    finally:
        for other in others:
            other.result()
    return True


def _alone(compute: Callable[..., None], chunk: tuple[Any, ...]) -> None:
    """Call ``compute`` on this thread of the pool, which must not wait for others of the pool."""
    _busy.here = True
    try:
        compute(*chunk)
    finally:
        _busy.here = False


class _Busy(threading.local):
    """Whether this thread computes a chunk."""

    here = False


_busy = _Busy()


@cache
def cores() -> int:
    """The number of CPU cores that this process may use."""
    return systems.cores()


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # with logging, whose import takes 4 ms

    return ThreadPoolExecutor(cores() - 1, "pullback-parts")


systems.at_fork(in_child=_threads.cache_clear)  # a forked child lacks its parent's threads
