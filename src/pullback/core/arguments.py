"""Checks of arguments that every floor shares: flags, options of a list, functions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pullback.core.errors import ArgumentError


def flag(name: str, what: str, value: Any) -> bool:
    """Return an argument that is a flag as a bool: True, False, NumPy's, 0, 1, None, or an array that is one boolean.

    None is False, as for an option that is not given.

    Raises:
      ArgumentError: it is something else, which would count as true or false by accident (a TypeError and ValueError).
    """
    if value is True or value is False:
        return value
    if value is None:
        return False
    if isinstance(value, (np.bool_, int, np.integer)) and value in (0, 1):
        return bool(value)
    if getattr(value, "shape", None) == () and getattr(value, "dtype", None) == np.bool_:
        return bool(value)  # a traced one raises its own error
    raise ArgumentError(f"{name}: {what} must be True or False, got {typed(value)}")


def is_listed(value: Any, options: Collection[Any]) -> bool:
    """Whether an argument is one of some options, which are strings or None; arrays and lists are not."""
    try:
        hash(value)
    except TypeError:
        return False
    return value in options


def require_function(name: str, what: str, value: Any) -> None:
    """Raise unless an argument is a function.

    Raises:
      ArgumentError: the argument cannot be called (a TypeError and a ValueError).
    """
    if not callable(value):
        raise ArgumentError(f"{name}: {what} must be a function, got {typed(value)}")


def typed(x: Any) -> str:
    """Format a value and its type for a message, as in ``'a' of type str``."""
    return f"{quote(x)} of type {type(x).__name__}"


def quote(x: Any) -> str:
    """Format a value for a message, in one line of at most 60 letters."""
    text = " ".join(repr(x).split())
    return text if len(text) <= 60 else text[:57] + "..."
