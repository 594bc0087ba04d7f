"""What errors about operands say: the value that came, and the public function that was called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
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


def offered(namespace: Mapping[str, Any], *modules: str) -> list[str]:
    """The names that completion offers of a package: without the modules that it is written in, but for some.

    Args:
      namespace: the names of the package.
      modules: those of its modules that are a part of its interface.

    >>> offered({"add": 1, "elementwise": functools, "linalg": functools, "annotations": 2}, "linalg")
    ['add', 'linalg']
    """
    return sorted(
        name
        for name, value in namespace.items()
        if name in modules or not (isinstance(value, ModuleType) or name in ("TYPE_CHECKING", "Any", "annotations"))
    )
