"""Two operations that a loop of ``loops``, the module in C, does in one pass, each element rounded as by two.

A light operation takes as long as its access to memory, or to a buffer in the cache: two in one take half as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.backends.host import own

Step = tuple[tuple[int, int], tuple[int, ...]]
"""A loop, and the positions of its operands and of its result."""


def pair(first: Step, second: Step, at: int, is_number: Callable[[int], bool]) -> Step | None:
    """Return the step that does what two steps do; None if there is no loop for it.

    Args:
      first: the step whose result nothing but ``second`` reads.
      second: the other step.
      at: which operand of ``second`` that result is.
      is_number: whether the value at a position is one number.
    """
    names = _names()
    one, other = names.get(first[0]), names.get(second[0])
    if one is None or other is None or one[1] != other[1]:
        return None
    found = _both(one[0], other[0], first[1][:-1], second[1][:-1], at, is_number)
    loop = None if found is None else own.loop(f"{found[0]} {one[1]}")
    if found is None or loop is None:
        return None
    return loop, (*found[1], second[1][-1])


def _both(
    one: str, other: str, given: tuple[int, ...], rest: tuple[int, ...], at: int, is_number: Callable[[int], bool]
) -> tuple[str, tuple[int, ...]] | None:
    """Return the name of the loop for both steps, and its operands, from their names and operands."""
    if one == "maximum" and other == "minimum" and at == 0 and is_number(given[1]) and is_number(rest[1]):
        return "clamp", (*given, rest[1])
    if one == other == "multiply" and at == 0:
        return "product_of_three", (*given, rest[1])
    if other in _CHOICES and at >= 2 and is_number(rest[1]):
        case = rest[5 - at]  # the one that is not the result of the first step
        if one == "multiply" and case in given:
            factor = given[1] if given[0] == case else given[0]
            if is_number(factor) and not is_number(case):
                return f"{other}_{'scaled' if at == 2 else 'or_scaled'}", (*rest[:2], case, factor)
        if one == "sign" and other == "if_equal" and at == 3 and given[0] == rest[0] and is_number(case):
            return "sign_or_number", (*rest[:2], case)
    return None


_CHOICES = ("if_less", "if_less_equal", "if_greater", "if_greater_equal", "if_equal", "if_not_equal")


@cache
def _names() -> dict[Any, tuple[str, str]]:
    """The names of the loops that may be one of two, with the character of their dtype, by the loops."""
    names: dict[Any, tuple[str, str]] = {}
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        for name in ("maximum", "minimum", "sign", *_CHOICES):
            names[own.loop(f"{name} {dtype.char}")] = (name, dtype.char)
        names[own.loops.find(np.multiply, bytes([dtype.num] * 3))] = ("multiply", dtype.char)
    return names
