"""Descriptions of the parameters that many functions of images share, which their docstrings take from here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SHARED = {
    "output": "the dtype of the result, by default that of ``input``.",
    "footprint": "instead of ``size``, the elements of a window: an array of as many axes, true where it has one.",
    "cval": 'the number beyond the borders for the mode ``"constant"``.',
    "axes": "the axes, all by default.",
}
"""What a parameter is, by its name."""

SHARED_OR_EACH = {
    "size": (
        "the number of elements of a window.",
        "the number of elements of a window along an axis; one, or one for each of the axes.",
    ),
    "mode": ("as for :func:`correlate1d`.", "as for :func:`correlate1d`; one, or one for each of the axes."),
    "origin": (
        "how many elements the window moves to the left.",
        "how many elements the window moves to the left; one number, or one for each of the axes.",
    ),
}
"""The same where it is one value, and where it may be a sequence."""


def description(name: str, annotation: str, numbers: str) -> str | None:
    """Return the shared description of a parameter, or None if there is none.

    Args:
      name: the name of the parameter.
      annotation: its annotation, which says whether it may be a sequence.
      numbers: the numbers that an image may have.
    """
    if name == "input":
        return f"the image, of any number of axes; {numbers}."
    if name in SHARED_OR_EACH:
        return SHARED_OR_EACH[name]["Sequence" in annotation]
    return SHARED.get(name)


def of_image(numbers: str) -> Callable[[Function], Function]:
    """Return the decorator of a function of an image of ``numbers`` that completes the section Args of its docstring.

    The section gets an entry for each parameter with a shared description that it does not describe itself, in the
    order of the parameters.
    """

    def decorate(function: Function) -> Function:
        if function.__doc__:  # there is none under python -OO
            function.__doc__ = _completed(function, inspect.cleandoc(function.__doc__), numbers)
        return function

    return decorate


def _completed(function: Callable[..., Any], doc: str, numbers: str) -> str:
    """Return a docstring whose section Args has entries for all shared parameters."""
    head, section, rest = doc.partition("\nArgs:\n")
    if not section:
        head, _, rest = doc.partition("\nReturns:\n")
        rest = f"\nReturns:\n{rest}"
    own, end, tail = rest.partition("\n\n") if section else ("", "", rest)
    entries: dict[str, list[str]] = {}
    for line in own.splitlines():
        if not line.startswith("   "):
            names = line.partition(":")[0].strip()
            entries[names] = []
        entries[names].append(line)
    described = {name: lines for names, lines in entries.items() for name in names.split(", ")}
    text: list[str] = []
    for name, annotation in function.__annotations__.items():
        shared = description(name, annotation, numbers)
        lines = described.get(name, [f"  {name}: {shared}"] if shared else [])
        text += [line for line in lines if line not in text]
    return f"{head}\nArgs:\n" + "\n".join(text) + (end or "\n") + tail
