"""Names and docstrings of functions that are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def describe(function: F, name: str, doc: str, *, owner: str = "", module: str = "") -> F:
    """Set the name, docstring and module of a function that another function has made.

    Args:
      function: the function.
      name: the new name.
      doc: the new docstring.
      owner: the name of the class whose method the function is; empty if it is not a method.
      module: the name of the module that the function belongs to; by default the module in which it was made.

    Returns:
      The function.
    """
    function.__name__, function.__qualname__ = name, f"{owner}.{name}" if owner else name
    function.__module__ = module or function.__module__
    function.__doc__ = doc
    return function


def with_sections(text: str, args: str, returns: str, raises: str) -> str:
    """Append the sections ``Args``, ``Returns`` and ``Raises`` to the docstring ``text``; lines are indented by two."""
    sections = {"Args": args, "Returns": returns, "Raises": raises}
    indented = {title: body.replace("\n", "\n  ") for title, body in sections.items()}
    return text + "".join(f"\n\n{title}:\n  {body}" for title, body in indented.items())


def with_example(text: str, imported: str, call: str, result: str) -> str:
    """Append a doctest to the docstring ``text``: an import, ``print(call)``, and the ``result`` that it prints."""
    return f"{text}\n\n>>> {imported}\n>>> print({call})\n{result}\n"
