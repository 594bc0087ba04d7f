"""Every row of the benchmark by size runs in Pullback, and its results become lines, means and a page."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from benchmarks.report import machine
from benchmarks.sizes import __main__ as command
from benchmarks.sizes import page
from benchmarks.sizes.catalogue import ROWS, Row
from benchmarks.sizes.worker import MODES, JaxLike, fingerprint


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_runs_eagerly(row: Row) -> None:
    library, arrays = JaxLike("pullback"), row.operands(1000, np.random.default_rng(0))
    with pullback.enable_x64(True):
        size, total, magnitude = fingerprint(library.task(row, arrays, "value").call())
        assert size > 0
        assert np.isfinite(total)
        assert magnitude > 0
        if row.differentiable:
            size, *_ = fingerprint(library.task(row, arrays, "gradient").call())
            assert size == sum(np.size(a) for a in arrays[: row.differentiable])


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def results() -> list[dict[str, Any]]:
    """Made-up times: Pullback takes half of JAX's time, and twice PyTorch's, which has no compiled rows."""
    return [
        {"row": row.name, "size": size, "mode": mode, "seconds": {
            "pullback": 2e-6, "jax": 4e-6, "torch": "LookupError: not measured" if "compiled" in mode else 1e-6
        }}
        for row, size, mode in command.tasks(ROWS[:3], None, MODES)
    ]  # fmt: skip


def test_the_page_has_means_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "sizes.md")
    monkeypatch.setattr(page, "CHART", tmp_path / "sizes.png")
    found = results()
    page.write(found, {"machine": machine(), "versions": {"JAX": "0.0"}, "rounds": 5})
    text = (tmp_path / "sizes.md").read_text()
    assert "| eager | 1,000 | JAX | 6 | 0.50 | 0.50 | - |" in text
    assert "| eager | 1,000 | PyTorch | 6 | 2.00 | 2.00 | - |" in text
    assert f"Python {machine()['python']}, JAX 0.0: lower quartiles of\n5 turns," in text
    assert "PyTorch" not in text[text.index("| compiled | 1,000") : text.index("## All")]
    assert text.count("\n| add |") == 4 * len(ROWS[0].sizes)
    assert (tmp_path / "sizes.png").stat().st_size > 5_000
    assert "6 of 6 above 1.5" in page.summary(found)


class Jax:
    """In JAX's place: calls take a tenth of a second, and the machine stops after some tasks.

    Attributes:
      made: the tasks, in order.
      breaks_after: how many tasks are made.
    """

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.breaks_after = float("inf")

    def __enter__(self) -> Jax:
        return self

    def __exit__(self, *error: object) -> None: ...

    def ask(self, kind: str, *task: Any) -> dict[str, Any]:
        if kind == "turn":
            return {"seconds": 0.1}
        if len(self.made) == self.breaks_after:
            raise KeyboardInterrupt
        self.made.append(task)
        return {"fingerprint": None}


@pytest.fixture
def jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jax:
    """Two rows of ten elements: Pullback is measured in a process of its own, JAX's times are made up."""
    jax, worker = Jax(), command.Worker
    monkeypatch.setattr(
        command, "ROWS", [dataclasses.replace(row, sizes=(10,)) for row in ROWS if row.name in ("relu", "sum")]
    )
    monkeypatch.setattr(command, "HERE", tmp_path)
    monkeypatch.setattr(command, "LIBRARIES", ["pullback", "jax"])
    monkeypatch.setattr(command, "Worker", lambda name, scratch: jax if name == "jax" else worker(name, scratch))
    monkeypatch.setattr(page, "PAGE", tmp_path / "sizes.md")
    monkeypatch.setattr(page, "CHART", tmp_path / "sizes.png")
    return jax


@pytest.mark.slow
def test_a_run_that_was_broken_off_goes_on_to_page_and_chart(jax: Jax, tmp_path: Path) -> None:
    jax.breaks_after = 3
    with pytest.raises(KeyboardInterrupt):
        command.main([])
    assert not (tmp_path / "sizes.md").exists()
    with (tmp_path / "partial.jsonl").open("a") as file:
        file.write('[["pullback"')  # half a line, as the machine stopped
    jax.breaks_after = float("inf")
    assert command.main(["--resume"]) == 0
    asked = [(name, 10, mode) for name in ("relu", "sum") for mode in MODES]
    assert jax.made == asked + [task for task in asked if "compiled" in task[2]]  # far from Pullback's: again
    found = json.loads((tmp_path / "sizes.json").read_text())["results"]
    assert [(row["row"], row["size"], row["mode"]) for row in found] == asked
    assert all(0 < row["seconds"]["pullback"] < 0.1 == row["seconds"]["jax"] for row in found)
    assert (tmp_path / "sizes.md").read_text().count("\n| relu | 10 |") == len(MODES)
    assert (tmp_path / "sizes.png").stat().st_size > 5_000
    assert not (tmp_path / "partial.jsonl").exists()


def test_the_lower_quartile_ignores_what_made_turns_longer() -> None:
    assert command.lower_quartile([3.0]) == 3.0
    assert command.lower_quartile([9.0, 1.0, 1.1, 5.0, 1.2, 7.0, 1.3, 8.0]) == 1.2


def test_libraries_take_turns_in_both_orders_until_these_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Recorded:
        def __init__(self, name: str) -> None:
            self.name = name

        def ask(self, kind: str, *task: Any) -> dict[str, Any]:
            if kind == "turn":
                asked.append(self.name)
            return {"fingerprint": None, "seconds": float(len(asked))}

    workers: Any = {name: Recorded(name) for name in ("pullback", "jax")}
    assert command.measure(workers, ROWS[0], 10, "value", 4) == {
        "row": ROWS[0].name, "size": 10, "mode": "value", "seconds": {"pullback": 4.0, "jax": 3.0}
    }  # fmt: skip
    assert asked == ["pullback", "jax", "jax", "pullback"] * 2
    monkeypatch.setattr(command, "MOST_SECONDS", 0.0)
    asked.clear()
    command.measure(workers, ROWS[0], 10, "value", 4)
    assert len(asked) == 2 * command.LEAST_ROUNDS


@pytest.mark.parametrize(("ratio", "again"), [(0.85, True), (0.95, False), (1.05, False), (1.2, True)])
def test_a_compiled_row_far_from_jax_is_measured_again(
    ratio: float, again: bool, jax: Jax, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    class Scripted(Jax):
        """Its first measurement of a row takes ``ratio``, and later ones 1, where JAX takes 1."""

        def __init__(self, name: str, scratch: str) -> None:
            super().__init__()
            self.seconds, self.name = 1.0, name
            self.program: str | None = None

        def ask(self, kind: str, *task: Any) -> dict[str, Any]:
            if kind == "make":
                first = (self.name, task[2]) not in asked
                self.seconds = ratio if first and self.name == "pullback" else 1.0
                asked.append((self.name, task[2]))
                self.program = "the same" if "compiled" in task[2] else None
            return {"fingerprint": None, "seconds": self.seconds, "program": self.program}

    monkeypatch.setattr(command, "Worker", Scripted)
    assert command.main(["--only", "relu"]) == 0
    assert [asked.count(("pullback", mode)) for mode in MODES] == [1, 1, 1 + again, 1 + again]
    assert [asked.count(("jax", mode)) for mode in MODES] == [1, 1, 1 + again, 1 + again]
    lines = capsys.readouterr().out
    assert f"compiled at 10, of JAX: mean {1.0 if again else ratio:.3f}" in lines
    assert f"eager at 10, of JAX: mean {ratio:.3f}" in lines
    assert lines.count("same program") == 2 + 2 * again


def test_rows_of_the_same_program_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "sizes.md")
    monkeypatch.setattr(page, "CHART", tmp_path / "sizes.png")
    found = [
        {"row": name, "size": 1000, "mode": "compiled value", "seconds": {"pullback": ours, "jax": 1.0}, **same}
        for name, ours, same in [
            ("cosh", 1.38, {"same_program": True}), ("erf", 1.28, {"same_program": False}), ("old", 1.2, {})
        ]
    ]  # fmt: skip
    page.write(found, {"machine": machine(), "versions": {}, "rounds": 5, "again": 7})
    text = (tmp_path / "sizes.md").read_text()
    assert "| 1.38 | - | same program |\n" in text
    assert "| 1.28 | - |  |\n" in text
    assert "| compiled | 1,000 | JAX | 3 | 1.28 | 1.38 | 1.28 (2 rows) |" in text
    assert "7 rows" in text
    assert "cosh, compiled value 1.38 (same program); erf, compiled value 1.28; old" in page.summary(found)


def test_a_control_is_measured_in_place_of_pullback(jax: Jax, tmp_path: Path) -> None:
    assert command.main(["--control", "jax", "--only", "relu"]) == 0
    asked = [("relu", 10, mode) for mode in MODES]
    assert jax.made == [task for task in asked for _ in range(2)]
    assert not (tmp_path / "sizes.json").exists()
