"""The loops of ``loops``, the module in C, on whole arrays of some thousand elements, for host rules."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

try:
    from pullback.backends.host import loops
except ImportError:  # it was installed without a compiler
    loops = None  # type: ignore[assignment]

MANY = 2048
"""The least elements of arrays for which host rules call a loop of the module: the call takes 3 us.

On fewer elements NumPy's functions take as long as that."""


@lru_cache(maxsize=1024)
def loop(name: str) -> tuple[int, int] | None:
    """Return the loop of the module that has a name; None if there is none."""
    return loops.own(name)


def apply(name: str, dtype: np.dtype[Any], *operands: Any, helpers: int = 0) -> Any:
    """Apply a loop of the module to arrays and numbers, by this thread and others.

    Args:
      name: the loop.
      dtype: that of the result.
      operands: arrays of one shape whose elements are side by side in row-major order, and arrays without axes.
      helpers: how many threads may help.

    Returns:
      A new array; None if there is no module, no such loop, or operands of other shapes.
    """
    found = None if loops is None else loop(name)
    if found is None:
        return None
    shape = max([x.shape for x in operands], key=len)
    values: list[Any] = []
    for x in operands:
        if x.shape and (x.shape != shape or not x.flags.c_contiguous):
            return None
        values.append(x.reshape(1, -1))
    out = np.empty(shape, dtype)
    loops.run((1, out.size), [*values, out.reshape(1, -1)], [(found, tuple(range(len(values) + 1)))], _BLOCK, helpers)
    return out


_BLOCK = 1 << 16  # The bytes of a block, of which some operands and a result fit into a core's own cache.
