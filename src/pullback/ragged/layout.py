"""Where the elements of rows of unequal lengths stand: all values one after another, and the length of each row.

These functions take the lengths, and the capacity: the number of values. Those after the last row are padding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array
from pullback.core.trace import Tracer


def known(lengths: Any) -> np.ndarray[Any, Any] | None:
    """Return lengths as an array of NumPy, or None while they are traced."""
    return None if isinstance(lengths, Tracer) else np.asarray(lengths)


def ends(lengths: Any) -> Any:
    """Return for each row the position after its last element."""
    host = known(lengths)
    return pnp.cumsum(lengths) if host is None else np.cumsum(host)


def row_numbers(lengths: Any, capacity: int) -> Any:
    """Return for each value the number of its row; for padding, the number of rows."""
    host = known(lengths)
    if host is None:
        return pnp.searchsorted(ends(lengths), np.arange(capacity, dtype=np.int32), side="right").astype(np.int32)
    numbers = np.full(capacity, len(host), np.int32)
    numbers[: host.sum()] = np.repeat(np.arange(len(host), dtype=np.int32), host)
    return numbers


def offsets(lengths: Any, rows: Any, capacity: int) -> Any:
    """Return for each value its position within its row; for padding, any number."""
    first = ends(lengths) - lengths
    xp = pnp if known(lengths) is None else np
    at = xp.arange(capacity, dtype=np.int32)
    return at - (first[xp.minimum(rows, len(lengths) - 1)] if len(lengths) else 0)


def grid(lengths: Any, longest: int) -> tuple[Any, Any]:
    """Return the positions of the values of a padded array of shape (rows, longest), and where it has elements."""
    xp = pnp if known(lengths) is None else np
    column = xp.arange(longest, dtype=np.int32)
    inside = column < lengths[:, None]
    return xp.where(inside, (ends(lengths) - lengths)[:, None] + column, 0), inside


def spread(mask: Any, like: Array) -> Any:
    """Return a mask with axes of size 1 at its end, so that it broadcasts against ``like``."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))
