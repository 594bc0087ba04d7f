"""Memory of large arrays where compiled programs can read it without a copy: its address is a multiple of 64.

NumPy aligns memory to 16 bytes. Here it asks a function of the module in C for the memory of 64 KiB and more, in the
context in which host rules run, and so do copies that come in. The user's arrays stay as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import moves, native
from pullback.core.runtime import provides, runtime
from pullback.core.trace import state

if native.loops is not None:
    _align = native.loops.align
    runtime.thread_begun.append(lambda state: state.silently(_align))
    state.silently(_align)


MUCH = 1 << 20
"""The least bytes for which memory is asked back first: of arrays that are gone, and that programs have read."""


def new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array whose elements are not set yet."""
    if math.prod(shape) * dtype.itemsize >= MUCH:
        runtime.memory_needed()
    try:
        return state.silently(np.empty, shape, dtype)
    except RuntimeError:  # within a host rule, whose memory is aligned anyway
        return np.empty(shape, dtype)


@provides
def copied(x: Any, dtype: np.dtype[Any]) -> Any:
    """Copy a NumPy array, in a dtype and in row-major order."""
    out = new(x.shape, dtype)
    if dtype is x.dtype:
        moves.copy(out, np.asarray(x))
    else:
        out[...] = x
    return out
