"""Functions of whole rows, by ``loops``, the module in C: all passes over a row are made while it is in the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import native, own
from pullback.backends.host.parallel import cores

ALONE = 1 << 14
"""The least elements that several threads compute; fewer take less time than a thread needs to wake up."""


def of_rows(name: str, *operands: Any, axes: tuple[int, ...], reduces: bool = False) -> Any:
    """Apply a function of the module to each row, on all cores if there are many elements.

    Args:
      name: a function of ``rows.h``.
      operands: one or two arrays of one shape, of floats of 32 or 64 bits.
      axes: the last axes, which are those of a row; see :func:`pullback.backends.host.native.are_rows`.
      reduces: whether the function returns a number for each row.
    """
    assert native.loops is not None
    x = operands[0]
    kept, loop = x.ndim - len(axes), own.loop(f"{name} {x.dtype.char}")
    assert loop is not None
    if x.size < ALONE:
        out = native.loops.each_row(loop, kept, reduces, *operands)
        if out is not None:
            return out
    columns = math.prod(x.shape[kept:])
    rows = [np.ascontiguousarray(operand).reshape(-1, columns) for operand in operands]
    out = np.empty(x.shape[:kept] if reduces else x.shape, x.dtype)
    values: list[object] = [*rows, out.reshape(len(rows[0]), 1 if reduces else columns)]
    block = max(native.ALONE * native.BLOCK, columns * x.itemsize)
    helpers = min(cores() - 1, x.size // ALONE)
    native.loops.run(rows[0].shape, values, [(loop, tuple(range(len(values))))], block, helpers)
    return out
