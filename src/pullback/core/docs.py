"""Names and docstrings of functions that are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def describe(function: F, name: str, doc: str, *, owner: str = "", module: str = "") -> F:
    """Give a function that was made its name and docstring.

    Args:
      function: the function.
      name: its name.
      doc: its docstring.
      owner: the class whose method it is.
      module: the module whose function it is; by default that in which it was made.

    Returns:
      The function.
    """
    function.__name__, function.__qualname__ = name, f"{owner}.{name}" if owner else name
    function.__module__ = module or function.__module__
    function.__doc__ = doc
    return function


def with_example(text: str, imported: str, call: str, result: str) -> str:
    """A docstring that ends with an example: what it imports, the call, and what that prints."""
    return f"{text}\n\n>>> {imported}\n>>> print({call})\n{result}\n"
