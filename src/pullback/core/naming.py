"""Helpers for error messages about operands: quote the operand, and name the public function that was called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pullback.core.errors import DtypeError, OperandError, ShapeError

F = TypeVar("F", bound=Callable[..., Any])


def quoted(value: Any) -> str:
    """Return the repr of a value for an error message, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def named(function: F) -> F:
    """Decorate a function so that errors about its operands begin with the function's name.

    Otherwise an error from an inner function would name only that function.
    """
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (OperandError, DtypeError, ShapeError) as error:
            if name in str(error):
                raise
            raise type(error)(f"{name}: {error}") from None

    return call  # type: ignore[return-value]
