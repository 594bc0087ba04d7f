"""The tests' own machinery: a test that hangs fails, and a selection of combinations leaves none out."""

from __future__ import annotations

import time

import pytest

from tests.helpers import EXHAUSTIVE, spread, time_limit


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
