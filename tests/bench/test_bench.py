"""``pullback bench``: its processes, what it compares, and what it prints."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import pullback
from pullback import commands
from pullback.bench import measure, report, workloads
from pullback.bench.measure import DIFFERS, Measurement, Row

EAGER, COMPILED, PEER = ("pullback", "eager"), ("pullback", "compiled"), ("jax", "eager")


def made(*seconds: float, total: float = 3.0, failed: str = "") -> Measurement:
    return Measurement([4.0, total, 5.0], list(seconds), failed)


def answers(*questions: list[object]) -> list[dict[str, object]]:
    """What the process of Pullback answers, without the process."""
    out = io.StringIO()
    workloads.serve("pullback", io.StringIO("".join(json.dumps(question) + "\n" for question in questions)), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_worker_answers() -> None:
    ready, eager, compiled, seconds, wrong = answers(
        ["prepare", "grad", "eager", 1e-6], ["prepare", "grad", "compiled", 1e-6], ["block", "compiled"], ["block", "?"]
    )
    assert ready.keys() == {"version"}
    derivative = pytest.approx(0.0706508, rel=1e-5)
    assert eager == compiled == {"fingerprint": [1.0, derivative, derivative]}
    assert 0 < seconds["seconds"] < 1  # type: ignore[operator]
    assert wrong == {"error": "KeyError: '?'"}


@pytest.mark.parametrize("name", ["add", "third", "network", "hvp", "examples"])
def test_workloads_are_the_same_eager_and_compiled(name: str) -> None:
    _, eager, compiled = answers(["prepare", name, "eager", 1e-9], ["prepare", name, "compiled", 1e-9])
    assert compiled["fingerprint"] == pytest.approx(eager["fingerprint"], rel=1e-4)
    assert eager["fingerprint"][2] > 0  # type: ignore[index]


def test_a_block_is_as_long_as_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 0.0
    monkeypatch.setattr(workloads, "perf_counter", lambda: moment)

    def call() -> None:
        nonlocal moment
        moment += 0.01

    assert workloads._warm(call, 0.5) == 50
    assert workloads._seconds(call, 7) == pytest.approx(0.01)


def test_results_are_compared() -> None:
    row: Row = {EAGER: made(), COMPILED: made(total=3.004), PEER: made(total=3.006), ("torch", "eager"): made()}
    row["torch", "eager"].fingerprint[0] = 5.0
    measure.require_agreement(row)
    assert [measured.failed for measured in row.values()] == ["", "", DIFFERS, DIFFERS]
    row[PEER].seconds.append(1.0)
    assert row[PEER].median is None
    assert report.has_failed({"add": row})


def test_what_pullback_cannot_do_is_compared_with_nothing() -> None:
    row: Row = {EAGER: made(failed="E: x"), PEER: made(1.0, total=7.0)}
    measure.require_agreement(row)
    assert row[PEER].failed == ""
    assert report.has_failed({"add": row})
    assert not report.has_failed({"add": {EAGER: made(1.0), PEER: made(failed="E: x")}})


def test_workloads_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert measure.chosen([]) == list(measure.TITLES)
    assert measure.chosen(["hvp", "st"]) == ["hvp", "start"]
    assert measure.chosen(["e"]) == ["examples"]
    with pytest.raises(ValueError, match="there is no workload 'nothing'; there are add, chain, grad, "):
        measure.chosen(["hvp", "nothing"])


def test_libraries_are_found_and_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: looked.append(name) or (name == "torch" or None))
    assert measure.installed() == ["pullback", "torch"]
    assert looked == ["jax", "torch", "autograd"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5e-6, "1.50 µs"), (9.996e-4, "1.00 ms"), (0.0123, "12.3 ms"), (0.456, "456 ms"), (1234.5, "1,230 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert report.duration(seconds) == text


def rows() -> dict[str, Row]:
    return {
        "add": {EAGER: made(1e-6, 2e-6, 9.0), COMPILED: made(4e-6), PEER: made(9e-6), ("jax", "compiled"): made(2e-6)},
        "hvp": {EAGER: made(1e-3), COMPILED: made(failed="E: x"), PEER: made(failed=DIFFERS)},
    }


def test_the_table() -> None:
    lines = report.table(rows(), ["pullback", "jax"], {"pullback": "1", "jax": "2"}).splitlines()
    assert lines[0].split() == ["Pullback", "JAX"]
    assert lines[1].split() == ["eager", "compiled"] * 2
    assert lines[2].split() == ["x", "+", "y,", "3", "floats", "2.00", "µs", "4.00", "µs", "4.50", "x", "0.500", "x"]
    assert lines[3].split() == ["Hessian-vector", "product", "1.00", "ms", "failed", "differs"]
    assert {len(line) for line in lines[1:3]} == {len(lines[2])}
    assert lines[5].startswith("Pullback 1, JAX 2; Python 3.")
    assert lines[-3:] == [
        "not installed: PyTorch, autograd",
        "hvp: Pullback, compiled: E: x",
        "hvp: JAX, eager: the result differs",
    ]


def test_json() -> None:
    written = json.loads(report.as_json(rows(), {"pullback": "1", "jax": "2"}))
    assert written["pullback"] == pullback.__version__
    assert written["workloads"]["add"][2] == {"library": "jax", "mode": "eager", "seconds": 9e-6, "ratio": 4.5}
    assert written["workloads"]["hvp"][1] == {
        "library": "pullback", "mode": "compiled", "seconds": None, "ratio": None, "failed": "E: x",
    }  # fmt: skip


def test_progress_is_shown_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 1.9, 2.1, 0.0])
    monkeypatch.setattr(report, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    file = io.StringIO()
    assert list(report.shown([("add", 1), ("hvp", 2)], 2, file)) == [("add", 1), ("hvp", 2)]
    shown = [line.strip() for line in file.getvalue().split("\r")]
    assert shown == ["", "[" + "#" * 30 + "] 2/2 Hessian-vector product", "", ""]
    assert list(report.shown([("add", 1)], 1, None)) == [("add", 1)]


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[object] = []

    def measured(names: list[str], libraries: list[str], versions: dict[str, str]) -> Iterator[tuple[str, Row]]:
        asked.extend([names, libraries])
        versions.update(dict.fromkeys(libraries, "1"))
        yield "add", {EAGER: made(1e-6), PEER: made(1e-6, failed=DIFFERS)}

    monkeypatch.setattr(measure, "installed", lambda: ["pullback", "jax"])
    monkeypatch.setattr(measure, "measured", measured)
    assert commands.main(["bench", "--only", "add", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["workloads"].keys() == {"add"}
    assert asked == [["add"], ["pullback", "jax"]]
    assert commands.main(["bench", "--only", "x"]) == 2
    assert "bench: there is no workload 'x'" in capsys.readouterr().err


def test_a_process_that_ends_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.MODES, "no_such_library", ("eager",))
    with measure.Worker("no_such_library") as worker:
        assert worker.failed == "the process ended with status 1"
        assert worker.prepare("add")["eager"].failed == worker.failed


def test_slow_calls_get_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    worker: measure.Worker = object.__new__(measure.Worker)
    replies = iter([{"seconds": 0.6}, {"seconds": 0.6}, {"seconds": 0.6}, {"error": "E: x"}, {"seconds": 0.1}])
    monkeypatch.setattr(worker, "_ask", lambda *question: next(replies), raising=False)
    slow, broken = made(), made()
    for _ in range(3):
        worker.block("eager", slow)
    for _ in range(3):
        worker.block("eager", broken)
    assert slow.seconds == [0.6, 0.6]
    assert broken.seconds == [0.6]
    assert broken.failed == "E: x"


@pytest.mark.slow
def test_processes_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(measure, "ROUNDS", 2)
    monkeypatch.setattr(measure, "BLOCK_SECONDS", 1e-3)
    versions: dict[str, str] = {}
    found = dict(measure.measured(["grad", "start"], ["pullback", "jax"], versions))
    assert versions.keys() == {"pullback", "jax"}
    assert list(found["grad"]) == [EAGER, COMPILED, PEER, ("jax", "compiled")]
    assert list(found["start"]) == [EAGER, PEER]
    assert not [each.failed for row in found.values() for each in row.values() if each.failed]
    assert all(each.median and each.median > 0 for row in found.values() for each in row.values())
