"""Whether others refer to an object: counted as the versions of Python do, in the first calls and in later ones."""

from __future__ import annotations

from sys import getrefcount

from pullback.core.reference_counts import OF_PARAMETER, OF_VARIABLE

OFTEN = 3000
"""From some tens of calls on, Python calls functions by other instructions."""


def of_an_item(items: list[object]) -> int:
    x = items[0]
    return getrefcount(x)


def of_a_parameter(x: object, other: int) -> int:
    return getrefcount(x)


def of_an_unpacked_item(items: list[object]) -> int:
    for _, (x, other) in enumerate([(items[0], 1)]):
        return of_a_parameter(x, other)
    raise AssertionError


def test_variables() -> None:
    items, held = [object()], [object()]
    others = [*held]
    assert {of_an_item(items) for _ in range(OFTEN)} == {OF_VARIABLE + 1}
    assert {of_an_item(held) for _ in range(OFTEN)} == {OF_VARIABLE + 2}
    assert others == held


def test_parameters() -> None:
    items, held = [object()], [object()]
    others = [*held]
    assert {of_an_unpacked_item(items) for _ in range(OFTEN)} == {OF_PARAMETER + 2}
    assert {of_an_unpacked_item(held) for _ in range(OFTEN)} == {OF_PARAMETER + 3}
    assert others == held
