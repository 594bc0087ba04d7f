"""What errors about operands say: the value that came, and the public function that was called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pullback.core.errors import DtypeError, OperandError, ShapeError

F = TypeVar("F", bound=Callable[..., Any])


def quoted(value: Any) -> str:
    """A value as errors quote it, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def named(function: F) -> F:
    """A function that hands its operands on to others, whose errors then name this one too."""
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
