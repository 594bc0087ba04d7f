"""Parallel evaluation of expensive elementwise functions: SciPy's loops release the GIL, so that threads run them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

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

    # The context of this thread has settings such as NumPy's handling of overflow.
    try:
        others = [_threads().submit(copy_context().run, compute, ends[i], ends[i + 1]) for i in range(1, count)]
    except RuntimeError:  # the interpreter is ending, and starts no threads
        return None
    compute(0, ends[1])
    for other in others:
        other.result()
    return [out.reshape(shape) for out in outs]


@cache
def cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # with logging, whose import takes 4 ms

    return ThreadPoolExecutor(cores() - 1, "pullback-parts")


if hasattr(os, "register_at_fork"):  # a forked child lacks its parent's threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
