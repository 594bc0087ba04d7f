"""Split, select and merge lists by sizes or flags; and the fixed point of a loop's flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

R = TypeVar("R")


def split_list(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Split values into groups of the given sizes and the rest: ``[a, b, c, d], 1, 2`` -> ``[[a], [b, c], [d]]``."""
    groups, start = [], 0
    for count in counts:
        groups.append(list(values[start : start + count]))
        start += count
    return [*groups, list(values[start:])]


def select(values: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """Return the values whose flag is set: ``[a, b], [False, True]`` -> ``[b]``."""
    return [x for x, flag in zip(values, flags, strict=True) if flag]


def partition_list(values: Iterable[Any], flags: Iterable[bool]) -> tuple[list[Any], list[Any]]:
    """Return the values whose flag is unset, and those whose flag is set: ``[a, b], [False, True]`` -> ``[a], [b]``."""
    parts: tuple[list[Any], list[Any]] = [], []
    for x, flag in zip(values, flags, strict=True):
        parts[flag].append(x)
    return parts


def merge_lists(flags: Iterable[bool], unset: Iterable[Any], flagged: Iterable[Any]) -> list[Any]:
    """Merge two lists by flags, the inverse of :func:`partition_list`: ``[False, True], [a], [b]`` -> ``[a, b]``."""
    parts = iter(unset), iter(flagged)
    return [next(parts[flag]) for flag in flags]


def scatter_where(flags: Iterable[bool], values: Iterable[Any], default: Any) -> list[Any]:
    """Put values where flags are set, and a default elsewhere: ``[False, True], [a], None`` -> ``[None, a]``."""
    given = iter(values)
    return [next(given) if flag else default for flag in flags]


def positions(values: Iterable[Any]) -> dict[Any, int]:
    """Return a dictionary from each value to the index of its first occurrence: ``[a, b, a]`` -> ``{a: 0, b: 1}``."""
    return {value: i for i, value in reversed(list(enumerate(values)))}


def appended(values: Sequence[Any], others: Iterable[Any]) -> list[Any]:
    """Append to ``values`` each of ``others`` that is not in the list yet: ``[a, b], [c, a, c]`` -> ``[a, b, c]``."""
    there = set(values)
    return [*values, *(v for v in dict.fromkeys(others) if v not in there)]


def fixpoint(step: Callable[[list[bool]], tuple[list[bool], R]], start: Iterable[bool]) -> tuple[list[bool], R]:
    """Apply ``step`` to the flags ``start``, to the resulting flags, and so on, until the flags no longer change.

    Args:
      step: maps flags to ``(new flags, another result)``. Flags that are set must stay set.
      start: the initial flags, one for each entry of a loop's carry.

    Returns:
      The final flags, and the other result of the last call of ``step``.
    """
    flags = list(start)
    while True:
        after, found = step(flags)
        if after == flags:
            return flags, found
        flags = after
