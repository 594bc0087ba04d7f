"""Processes that take turns: each measures what it prepared, and their turns alternate."""

import json
import sys
from io import StringIO

import pytest

from benchmarks.memory import alternating, report


def test_a_process_measures_once_for_each_line(monkeypatch, capsys) -> None:
    class Library:
        block_until_ready = staticmethod(lambda x: x)

    calls: list[int] = []
    monkeypatch.setattr(sys, "stdin", StringIO("\n\n"))
    alternating.serve(lambda: ({"usual": 7}, Library, {"way": calls.append}, (1,)))
    first, *turns = [json.loads(x.removeprefix("measured:")) for x in capsys.readouterr().out.splitlines()]
    assert first == {"usual": 7}
    assert [list(turn) for turn in turns] == [["way"], ["way"]]
    assert len(calls) == 2 * (alternating.CALLS + 1)


@pytest.fixture
def fake(monkeypatch):
    order: list[str] = []

    class Process:
        def __init__(self, library: str, name: str) -> None:
            self.library, self.row, self.seconds = library, {"name": name}, {"way": [0.0]}

        def take_turn(self) -> None:
            order.append(self.library)

        def end(self) -> None:
            order.append(f"{self.library} ends")

    monkeypatch.setattr(alternating, "_Process", Process)
    return order


def test_turns_alternate_and_both_processes_end(fake) -> None:
    found = alternating.alternated("mlp", ("a", "b"), rounds=2)
    assert fake == ["b", "a", "a", "b", "a ends", "b ends"]
    assert found == {library: {"known": {"name": "mlp"}, "seconds": {"way": [0.0]}} for library in ("a", "b")}


def test_a_cell_has_the_median_of_quotients_of_the_same_turn() -> None:
    own = {"known": {"usual": 100}, "seconds": {"usual": [1.0, 2.0, 4.0], "0.5": [2.0, 4.0, 8.0]}}
    torch = {
        "known": {"1.0": {"saved": 90}, "0.4": {"saved": 50}, "0.1": {"saved": 10}},
        "seconds": {"1.0": [1.0, 1.0, 1.0], "0.4": [4.0, 4.0, 4.0], "0.1": [5.0, 5.0, 5.0]},
    }
    assert report._beside_torch({"pullback": own, "torch": torch}, "0.5") == "1.00 of 0.4 (2.00, 4.00)"
    assert report._beside_torch({"pullback": own, "torch": torch}, "0.3") == ""
