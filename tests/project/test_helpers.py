"""The tests' own machinery: time limits, selections of combinations, and comparisons of arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import vmap
from tests.helpers import (
    EXHAUSTIVE,
    assert_arrays_close,
    assert_close,
    assert_elements_close,
    assert_same,
    spread,
    time_limit,
)


def test_what_takes_too_long_fails_where_it_is() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"longer than 0\.05 seconds") as found, time_limit(0.05):
        time.sleep(10)
    assert "time.sleep(10)" in str(found.getrepr())
    with time_limit(0.05):
        pass
    time.sleep(0.1)


@pytest.mark.skipif(EXHAUSTIVE, reason="nothing is selected")
def test_a_selection_has_every_choice() -> None:
    assert [spread("abc", i, 2) for i in range(3)] == [["a", "b"], ["c", "a"], ["b", "c"]]
    assert spread("ab", 5, 3) == ["a", "b"]


F32 = partial(np.asarray, dtype=np.float32)
COMPARISONS = (assert_close, assert_elements_close, assert_same, assert_arrays_close)


@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparisons_find_what_differs(compare: Callable[..., None]) -> None:
    x = jnp.array([1.0, np.nan, 100.0])
    compare({"a": (x, x)}, {"a": (F32(x), F32(x))})
    for other in ({"a": [x, x]}, {"a": (x,)}, {"b": (x, x)}):
        with pytest.raises((AssertionError, ValueError)):
            compare({"a": (x, x)}, other)
    for expected in ([1.0, np.nan, 101.0], [1.0, 1.0, 100.0], [[1.0, np.nan, 100.0]], [1.0]):
        with pytest.raises(AssertionError):
            compare(x, F32(expected))


@pytest.mark.parametrize("compare", COMPARISONS[:3])
def test_dtypes_count_unless_told_otherwise(compare: Callable[..., None]) -> None:
    x = jnp.ones((1, 2))
    with pytest.raises(AssertionError):
        compare(x, np.ones((1, 2)))
    compare((x, x), (np.ones((1, 2)), [[1, 1]]), dtypes=False)
    with pytest.raises(AssertionError):
        compare(x, [1, 1], dtypes=False)


def test_tolerances() -> None:
    x = F32([1.0, 1000.0])
    assert_close(F32([1.5, 1000.0]), x, 1e-3)
    assert_close(F32([1.5, 1000.0, np.inf]), F32([1.0, 1000.0, np.inf]), 1e-3)
    assert_close(F32([1e-4]), F32([0.0]), 1e-3)
    assert_elements_close(F32([1.001, 1001.0]), x, 1e-3)
    assert_elements_close(F32([1.001, 1000.0]), x, 0, 2e-3)
    wrong: list[Callable[[], Any]] = [
        lambda: assert_close(F32([3.0, 1000.0]), x, 1e-3),
        lambda: assert_close(F32([2.0, np.inf]), F32([1.0, np.inf]), 1e-3),
        lambda: assert_close(F32([1e-4]), F32([0.0]), 1e-3, least=1e-2),
        lambda: assert_elements_close(F32([1.5, 1000.0]), x, 1e-3),
        lambda: assert_elements_close(F32([1.0, 1001.0]), x, 0, 1e-3),
        lambda: assert_same(F32([1.0, 1001.0]), x),
        lambda: vmap(lambda y: assert_arrays_close(y, F32(1.0)))(jnp.ones(2)),
    ]
    for call in wrong:
        with pytest.raises(AssertionError):
            call()
