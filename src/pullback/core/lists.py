"""Lists in parts, by sizes and by flags; and flags that agree with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

R = TypeVar("R")


def split_list(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Groups of the given sizes, and what is left: ``[a, b, c, d], 1, 2`` -> ``[a], [b, c], [d]``."""
    groups, start = [], 0
    for count in counts:
        groups.append(list(values[start : start + count]))
        start += count
    return [*groups, list(values[start:])]


def select(values: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """The values whose flag is set: ``[a, b], [False, True]`` -> ``[b]``."""
    return [x for x, flag in zip(values, flags, strict=True) if flag]


def partition_list(values: Iterable[Any], flags: Iterable[bool]) -> tuple[list[Any], list[Any]]:
    """The values whose flag is not set, and those whose flag is: ``[a, b], [False, True]`` -> ``[a], [b]``."""
    parts: tuple[list[Any], list[Any]] = [], []
    for x, flag in zip(values, flags, strict=True):
        parts[flag].append(x)
    return parts


def merge_lists(flags: Iterable[bool], unset: Iterable[Any], flagged: Iterable[Any]) -> list[Any]:
    """The inverse of :func:`partition_list`: ``[False, True], [a], [b]`` -> ``[a, b]``."""
    parts = iter(unset), iter(flagged)
    return [next(parts[flag]) for flag in flags]


def scatter_where(flags: Iterable[bool], values: Iterable[Any], default: Any) -> list[Any]:
    """The values where a flag is set, and a default elsewhere: ``[False, True], [a], None`` -> ``[None, a]``."""
    given = iter(values)
    return [next(given) if flag else default for flag in flags]


def positions(values: Iterable[Any]) -> dict[Any, int]:
    """The index of each value's first occurrence: ``a, b, a`` -> ``{a: 0, b: 1}``. Looking up is not a search."""
    return {value: i for i, value in reversed(list(enumerate(values)))}


def appended(values: Sequence[Any], others: Iterable[Any]) -> list[Any]:
    """The values, and then those others that are not among them, each once: ``[a, b], [c, a, c]`` -> ``[a, b, c]``."""
    there = set(values)
    return [*values, *(v for v in dict.fromkeys(others) if v not in there)]


def fixpoint(step: Callable[[list[bool]], tuple[list[bool], R]], start: Iterable[bool]) -> tuple[list[bool], R]:
    """The flags of a carry with which a loop agrees: those that a step returns as it takes them.

    Args:
      step: from flags to the flags that they lead to, of which no fewer are set, and what else it found.
      start: the first flags.

    Returns:
      The flags that ``step`` does not change, and what it found for them.
    """
    flags = list(start)
    while True:
        after, found = step(flags)
        if after == flags:
            return flags, found
        flags = after
