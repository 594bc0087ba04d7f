"""The programs of `ecosystem/`: that each has figures, and that the comparison notices what it should."""

import importlib
import json
import math
import re
import sys

import pytest

from pullback.compat import running
from tests.helpers import ROOT

FOLDER = ROOT / "ecosystem"


@pytest.fixture(scope="module")
def catalogue():
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("catalogue")
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def checker(catalogue):
    """The program that runs these programs, and compares their figures."""
    return importlib.import_module("check")


def pins(name):
    """The versions at which a file pins packages; their hashes stand on other lines (tests/project/test_pins.py)."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (FOLDER / name).read_text(), re.MULTILINE))


RUNTIME = "../requirements/runtime.txt"
"""What the package itself needs, which is left out of the pins of the libraries."""


def test_each_program_has_figures_and_a_pin(catalogue):
    recorded, pinned = json.loads(catalogue.RECORDED.read_text()), pins("requirements.txt") | pins(RUNTIME)
    assert list(recorded) == list(catalogue.PROGRAMS)
    assert {path.name for path in (FOLDER / "programs").glob("*.py")} == {f"with_{name}.py" for name in recorded}
    for name, library in catalogue.PROGRAMS.items():
        assert recorded[name][library] == pinned[library]
        assert recorded[name]["figures"]
        assert set(catalogue.tolerances(name)) <= set(recorded[name]["figures"])


def test_programs_are_ordinary_ones(catalogue):
    for name in catalogue.PROGRAMS:
        text = catalogue.path_of(name).read_text()
        assert "pullback" not in text.lower()
        assert "import jax" in text
        assert catalogue.described(name).endswith(".")


def test_pins_have_no_jax_and_agree(catalogue):
    every, quick = pins("requirements.txt"), pins("requirements-quick.txt")
    assert not {"jax", "jaxlib"} & set(every)
    assert quick.items() <= every.items()


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        (1.00005, 1.0, True),
        (1.0002, 1.0, False),
        ([1e-6, 1.0], [0.0, 1.0], True),
        ([1e-3, 1.0], [0.0, 1.0], False),
        ([1.0], [1.0, 1.0], False),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, math.inf, True),
        ([math.inf, 1.0], [-math.inf, 1.0], False),
        ([True, False], [True, True], False),
        (0.0, 0.0, True),
        (1e-3, 0.0, False),
        ([], [], True),
        ({"mean": 1.0, "error": 0.1}, {"mean": 1.5, "error": 0.1}, True),
        ({"mean": 1.0, "error": 0.1}, {"mean": 1.6, "error": 0.1}, False),
        ({"mean": math.nan, "error": 0.1}, {"mean": 1.6, "error": 0.1}, False),
        ({"mean": 1.0, "error": 0.1}, 1.0, False),
    ],
)
def test_comparison(catalogue, ours, theirs, agree):
    assert (catalogue.differences({"x": ours}, {"x": theirs}, {}) == []) is agree


def test_comparison_of_names_and_tolerances(catalogue):
    assert catalogue.differences({"x": 1.01}, {"x": 1.0}, {"x": 0.1}) == []
    assert catalogue.differences({"y": 1.0}, {"x": 1.0}, {}) == [
        "y: no such figure was recorded", "x: no such figure was printed"
    ]  # fmt: skip


def test_a_program_in_a_process(catalogue):
    run = lambda code: catalogue.run([sys.executable, "-c", code], 60)
    ended = run("import sys; print('x'); print('y', file=sys.stderr); print('{\"a\": [1, NaN]}')")
    assert ended.figures["a"][0] == 1
    assert ended.stderr == "y\n"
    assert ended.cpu_seconds > 0
    assert ended.seconds > 0
    with pytest.raises(catalogue.ProgramError, match="ValueError: no"):
        run("raise ValueError('no')")
    with pytest.raises(catalogue.ProgramError, match="status 3"):
        run("raise SystemExit(3)")
    with pytest.raises(catalogue.ProgramError, match="JSON"):
        run("print('done')")
    with pytest.raises(catalogue.ProgramError, match="within 1 second"):
        catalogue.run([sys.executable, "-c", "import time; time.sleep(30)"], 1)


def test_missing_names(checker, monkeypatch):
    monkeypatch.setattr(running, "missing_names", lambda: {"jax.a.b": "file.py:1", "jax.c": "file.py:2"})
    report = "a warning\n" + running.report_text() + "end\n"
    assert checker.missing_in(report) == ["jax.a.b", "jax.c"]
    assert checker.missing_in("Pullback has every name of JAX that the program used.\n") == []


def test_what_ends_well_and_what_does_not(checker, catalogue, monkeypatch, tmp_path):
    programs = {"good": "{'a': 1}", "other": "{'a': 2}", "bad": "1 / 0"}
    for name, code in programs.items():
        (tmp_path / name).write_text(f"import jax, json; print(json.dumps({code}))")
    monkeypatch.setattr(catalogue, "path_of", tmp_path.joinpath)
    monkeypatch.setattr(catalogue, "tolerances", lambda name: {})
    recorded = {name: {"figures": {"a": 1}} for name in programs}
    results = {name: checker.check(name, recorded, 60).result for name in programs}
    assert results == {"good": "agrees", "other": "differs", "bad": "fails"}
    assert checker.check("good", {}, 60).wrong[0].startswith("nothing is recorded")


def test_times_without_and_with_programs_on_disk(catalogue, monkeypatch, tmp_path):
    monkeypatch.setattr(catalogue, "TIMES", tmp_path / "times.json")
    kept = "pathlib.Path(os.environ['PULLBACK_COMPILATION_CACHE_DIR'], 'x')"
    code = f"import os, pathlib; path = {kept}; print('{{\"warm\": %d}}' % path.exists()); path.touch()"
    assert catalogue.run_twice([sys.executable, "-c", code], 60, "optax", "Pullback").figures == {"warm": 1}
    catalogue.run_twice([sys.executable, "-c", code], 60, "optax", "JAX")
    times = json.loads(catalogue.TIMES.read_text())
    assert {system: len(found) for system, found in times["optax"].items()} == {"Pullback": 4, "JAX": 4}


def test_the_table_of_times(checker, catalogue, monkeypatch, tmp_path):
    monkeypatch.setattr(catalogue, "TIMES", tmp_path / "times.json")
    catalogue.TIMES.write_text('{"a": {"Pullback": [9, 2, 8, 1], "JAX": [30, 4, 20, 2]}, "b": {"JAX": [1, 1, 1, 1]}}')
    rows = [line for line in checker.times_table().splitlines() if "`a`" in line or "`b`" in line]
    assert rows == ["| `a` | 2.0 | 4.0 | 0.50 | 1.0 | 2.0 | 0.50 | 9 | 30 | 8 | 20 |"]
