"""The benchmarks from the command line to the table, the results and the chart, with two rows for every library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import measure, report
from benchmarks.libraries import LOADERS, OURS, PEERS, TITLES
from benchmarks.measure import Measurement
from benchmarks.workloads import WORKLOADS, Workload


def two_for_each_library() -> list[Workload]:
    """The first workloads that each peer takes part in, in the order of the table."""
    names = set()
    for peer in PEERS:
        of_peer = [workload.name for workload in WORKLOADS if peer in workload.peers]
        assert of_peer, f"no workload has {peer} as a peer"
        names.update(of_peer[:2])
    return [workload for workload in WORKLOADS if workload.name in names]


class Run:
    """A command whose measurements are made up: the times of a library are its position among all.

    Attributes:
      measured: the workloads that were measured, in order.
      breaks_at: the workload at which the machine stops; None if at none.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.measured = folder, list[str]()
        self.breaks_at: str | None = None
        monkeypatch.setattr(command, "HERE", folder)
        monkeypatch.setattr(command, "WORKLOADS", two_for_each_library())
        monkeypatch.setattr(measure, "measure", self.measure)

    def measure(self, workload: Workload, libraries: Sequence[str], settings: Any, scratch: str) -> dict[str, Any]:
        if workload.name == self.breaks_at:
            raise KeyboardInterrupt
        self.measured.append(workload.name)
        able = [name for name in libraries if name == OURS or name in workload.peers]
        return {name: Measurement("1.0", 2, 7, [3.0, 1.0, 1.0], [1e-6 * (k + 2)] * 3) for k, name in enumerate(able)}

    def __call__(self, *arguments: str) -> int:
        self.measured.clear()
        return command.main(list(arguments))

    def results(self) -> Any:
        return json.loads((self.folder / "results.json").read_text())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def test_every_library_has_a_title_and_a_loader() -> None:
    assert set(LOADERS) == set(TITLES) == {OURS, *PEERS}


def test_a_full_run_writes_results_and_chart(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    found = run.results()
    assert [row["name"] for row in found["workloads"]] == [workload.name for workload in two_for_each_library()]
    ratios = {peer: row["ratios"][peer]["ratio"] for row in found["workloads"] for peer in row["ratios"]}
    assert set(ratios) == set(PEERS)
    assert 0 < min(ratios.values()) <= max(ratios.values()) <= 2 / 3
    assert (run.folder / "ratios.png").stat().st_size > 10_000
    table = capsys.readouterr().out
    assert all(title in table for title in TITLES.values())
    assert not (run.folder / "partial.jsonl").exists()


def test_a_run_that_was_broken_off_goes_on(run: Run) -> None:
    names = [workload.name for workload in two_for_each_library()]
    run.breaks_at = names[3]
    with pytest.raises(KeyboardInterrupt):
        run()
    assert run.measured == names[:3]
    assert not (run.folder / "results.json").exists()
    run.breaks_at = None
    assert run("--resume") == 0
    assert run.measured == names[3:]
    assert len(run.results()["workloads"]) == len(names)


def test_rows_of_other_settings_are_not_kept(run: Run) -> None:
    names = [workload.name for workload in two_for_each_library()]
    run.breaks_at = names[2]
    with pytest.raises(KeyboardInterrupt):
        run("--quick")
    run.breaks_at = None
    run("--resume")
    assert run.measured == names


def test_a_run_begins_anew_without_the_option(run: Run) -> None:
    run.breaks_at = two_for_each_library()[2].name
    with pytest.raises(KeyboardInterrupt):
        run()
    run.breaks_at = None
    run()
    assert len(run.measured) == len(two_for_each_library())


def test_a_library_that_fails_has_no_ratio(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run.measure

    def failing(*args: Any) -> dict[str, Any]:
        return {n: Measurement(failed="no module") if n == "jax" else m for n, m in whole(*args).items()}

    monkeypatch.setattr(measure, "measure", failing)
    assert run() == 0
    with_jax = [row for row in run.results()["workloads"] if "jax" in row["ratios"]]
    assert with_jax
    assert all(row["ratios"]["jax"]["ratio"] is None for row in with_jax)
    assert report.ratio({OURS: Measurement(seconds=[2.0]), "jax": Measurement(seconds=[4.0])}, "jax") == 0.5
