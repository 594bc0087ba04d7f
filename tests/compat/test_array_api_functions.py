"""Functions of SciPy and scikit-learn on our arrays, and the script that runs all of them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT

FOLDER = ROOT / "ecosystem"
ALL = {"concrete", "jit", "grad", "vmap"}
WORKING = {
    "scipy.fft": {"rfft(x)": ALL, "irfft(z)": {"concrete"}},
    "scipy.integrate": {"trapezoid(x, t)": ALL, "romb(w[:33])": {"concrete"}},
    "scipy.special": {"softmax(x)": {"concrete", "grad"}, "gammaln(x)": {"concrete"}},
    "scipy.stats": {"gmean(x)": {"concrete", "grad"}, "skew(x)": {"concrete"}},
    "scipy.signal": {"detrend(x)": {"concrete"}},
    "sklearn": {
        "metrics.mean_squared_error(x, y)": {"concrete"},
        "metrics.accuracy_score(k, l)": {"concrete"},
        "preprocessing.KernelCenterer().fit_transform(s)": {"concrete"},
    },
}
"""What steps work of some lines."""
PROGRAM = """
import json, os, sys
os.environ["SCIPY_ARRAY_API"] = "1"
sys.path.insert(0, "ecosystem")
import array_api_worker as worker
import sklearn
sklearn.set_config(array_api_dispatch=True)
checker = worker.Checker(worker.library_of("plain"))
found = {}
for module, lines in json.loads(sys.argv[1]).items():
    for text, steps in lines.items():
        line = worker.Line(module, text)
        found[text] = {step: worker.limited(getattr(checker, step), line) for step in steps}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def script() -> Any:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("array_api_functions")
    sys.path.remove(str(FOLDER))


def test_a_dozen_functions() -> None:
    lines = {module: {text: sorted(steps) for text, steps in found.items()} for module, found in WORKING.items()}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(lines)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    failed = {text: steps for text, steps in json.loads(printed).items() if set(steps.values()) != {"yes"}}
    assert not failed


def stand_in(folder: Path, text: str) -> str:
    """Return a program that is started in place of Python, with the worker's arguments."""
    program = folder / "python"
    program.write_text(f"#!{sys.executable}\nimport os, sys, time\nfirst = int(sys.argv[4])\n{text}", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_lines_behind_one_that_ends_the_process_are_run(script: Any, tmp_path: Path) -> None:
    text = (
        'print(\'["a", "b", "c"]\', flush=True)\n'
        "for name in 'abc'[first:]:\n"
        "    if name == 'b': os.abort()\n"
        '    print(f\'{{"{name}": {{"concrete": "yes"}}}}\', flush=True)\n'
    )
    found = script.run("plain", "scipy.fft", stand_in(tmp_path, text))
    assert found["a"] == found["c"] == {"concrete": "yes"}
    assert set(found["b"].values()) == {"the process crashed"}


def test_a_line_that_hangs_is_stopped(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "PATIENCE", 0.5)
    text = "print('[\"a\"]', flush=True)\ntime.sleep(60)\n"
    found = script.run("plain", "scipy.fft", stand_in(tmp_path, text))
    assert found == {"a": dict.fromkeys(("concrete", "jit", "grad", "vmap"), "more than 0.5 s")}


def test_other_values_and_shapes_are_differences(script: Any) -> None:
    compare, difference = script.array_api_worker.compare, script.array_api_worker.Difference
    compare([np.ones(3), 2.0], [np.ones(3), 2.0])
    for found in ([np.ones(3)], [np.ones(2), 2.0], [np.ones(3), 2.1]):
        with pytest.raises(difference):
            compare(found, [np.ones(3), 2.0])


def test_a_slope_that_is_wrong_is_a_difference(script: Any) -> None:
    worker = script.array_api_worker

    class Library:
        numpy = np
        grad = staticmethod(lambda function: lambda values: {name: 2 * np.ones_like(v) for name, v in values.items()})

    line = worker.Line("math", "x**2 + y")
    assert worker.limited(worker.Checker(Library).grad, line).startswith("a slope of ")


def test_the_page_is_that_of_the_record(script: Any) -> None:
    """`make array-api-functions ARRAY_API_FUNCTIONS_ARGS=--page` writes it."""
    recorded = json.loads(script.RECORDED.read_text(encoding="utf-8"))
    assert script.page(recorded) == script.PAGE.read_text(encoding="utf-8")
    assert set(recorded["plain"]) == set(script.array_api_calls.MODULES)
