"""Arrays as text. The options are NumPy's, so that both libraries print alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import get_printoptions, printoptions, set_printoptions

from pullback.core.arguments import flag
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError
from pullback.numpy.creation import listed
from pullback.numpy.promotion import known_int

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]


def _options(max_line_width: int | None, precision: int | None, suppress_small: bool | None) -> Any:
    for what, value in (("max_line_width", max_line_width), ("precision", precision)):
        if value is not None and abs(known_int("array_repr", what, value)) >= 2**31:
            raise ArgumentError(f"array_repr: {what} must be an int of 32 bits, got {value}")
    if suppress_small is not None:
        suppress_small = flag("array_repr", "suppress_small", suppress_small)
    requested = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    return printoptions(**{name: value for name, value in requested.items() if value is not None})  # type: ignore[arg-type]


def array_repr(
    arr: ArrayLike | Sequence[Any],
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of ``repr``, with other printing options.

    Args:
      arr: an array.
      max_line_width: the width at which lines are broken.
      precision: the number of digits after the point.
      suppress_small: whether numbers that are small in this precision are printed as zero.

    Returns:
      The text.

    Raises:
      ShapeError: an option is not an int (a TypeError and a ValueError).
      ArgumentError: an option does not fit 32 bits (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.array_repr(jnp.array([1 / 3, 2.0]), precision=2)
    'Array([0.33, 2.  ], dtype=float32)'
    """
    with _options(max_line_width, precision, suppress_small):
        return repr(listed("array_repr", arr))


def array_str(
    a: ArrayLike | Sequence[Any],
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of ``str``, with other printing options.

    Args:
      a: an array.
      max_line_width, precision, suppress_small: as in :func:`array_repr`.

    Returns:
      The text.

    Raises:
      ShapeError: an option is not an int (a TypeError and a ValueError).
      ArgumentError: an option does not fit 32 bits (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.array_str(jnp.array([1 / 3, 2.0]), precision=2)
    '[0.33 2.  ]'
    """
    with _options(max_line_width, precision, suppress_small):
        return str(listed("array_str", a))
