"""The script that runs libraries' own tests, on a small library of its own; nothing is fetched."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT

FOLDER = ROOT / "ecosystem"


@pytest.fixture(scope="module")
def runner() -> Any:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("library_tests")
    sys.path.remove(str(FOLDER))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    files = {
        "PKG-INFO": "Name: few\nVersion: 1.0\nProvides-Extra: docs\nProvides-Extra: testing\n",
        "pyproject.toml": '[dependency-groups]\ntest = ["mock>=1", {include-group = "more"}]\nmore = ["dill"]\n'
        '[tool.pytest.ini_options]\naddopts = "--no-such-option"\n',
        "requirements/test-requirements.txt": "# of tests\nflax>=0.1 # or newer\n-r other.txt\ngit+https://x.org/y\n",
        "few/__init__.py": "import jax\ndef twice(x):\n    return jax.jit(lambda x: 2 * x)(x)\n",
        "few/few_test.py": "import few\ndef test_a(): assert few.twice(2) == 4\n"
        "def test_b(): assert few.twice(2) == 5, 'no'\n",
        "tests/test_more.py": "import pytest\n@pytest.mark.parametrize('x', range(9))\ndef test_c(x): pass\n"
        "@pytest.mark.skip(reason='why')\ndef test_d(): pass\n",
        "tests/test_broken.py": "import no_such_module\n",
        "tests/helpers.py": "",
        "few/test_util.py": "",
        "examples/net/train_test.py": "import no_such_module\n",
        "docs/_ext/links_test.py": "import no_such_module\n",
        "build/lib/few/few_test.py": "",
    }
    for name, text in files.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
    return tmp_path / "source"


def test_files_of_tests(runner: Any, library: Path) -> None:
    assert runner.tests_in(library) == ["few/few_test.py", "tests/test_broken.py", "tests/test_more.py"]


def test_what_tests_need(runner: Any, library: Path) -> None:
    assert runner.requirements_of(library) == ("testing", ["flax>=0.1"])
    (library / "PKG-INFO").write_text("Name: few\nVersion: 1.0\n")
    assert runner.requirements_of(library) == ("", ["mock>=1", "dill", "flax>=0.1"])
    (library / "PKG-INFO").unlink()  # a checkout
    assert runner.requirements_of(library) == ("", ["mock>=1", "dill", "flax>=0.1"])
    extras = "[project.optional-dependencies]\ndev = ['mock']\n"
    (library / "pyproject.toml").write_text(extras)
    assert runner.requirements_of(library) == ("dev", ["flax>=0.1"])


@pytest.mark.slow
def test_a_run(runner: Any, library: Path, tmp_path: Path) -> None:
    run = lambda count, **more: runner.run(
        Path(sys.executable), library, tmp_path, {"count": count, "seed": 0, "seconds": 60, **more}, []
    )
    report = run(0)
    assert runner.counted(report) == {"collected": 12, "passed": 10, "failed": 1, "skipped": 1, "error": 1}
    said = {test: why for test, (_, why) in report["outcomes"].items()}
    assert said["few/few_test.py::test_b"].startswith("AssertionError: no")
    assert "no_such_module" in said["tests/test_broken.py"]
    first, again, other = (run(5, seed=seed)["outcomes"] for seed in (0, 0, 1))
    assert list(first) == list(again) != list(other)
    assert len(first) == 6  # with the file that cannot be imported
    assert runner.counted(run(0, seconds=-1))["passed"] == 1


@pytest.mark.slow
def test_variables_of_a_library(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import os\ndef test_a(): assert os.environ['BACKEND_OF_FEW'] == 'jax'\n")
    options = {"count": 0, "seed": 0, "seconds": 60}
    report = runner.run(Path(sys.executable), tmp_path, tmp_path, options, [], {"BACKEND_OF_FEW": "jax"})
    assert runner.counted(report)["passed"] == 1


def test_the_page(runner: Any) -> None:
    recorded = json.loads(runner.RECORDED.read_text())
    assert list(recorded) == sorted(recorded)
    assert runner.PAGE.read_text() == runner.page(recorded)
    counts = {"collected": 9, "passed": 3, "failed": 1, "skipped": 2, "error": 0}
    text = runner.page({"few": {"version": "1.0", "counts": counts, "why": "a reason"}})
    assert "| few | 1.0 | 9 | 4 | 3 | 1 | 0 | 2 | a reason |\n" in text
    assert text.endswith("3 of 4 tests of 1 libraries pass.\n")
    entries = {"bare": {"no tests": "2.0"}, "few": {"version": "1.0", "counts": counts}}
    entries["more"] = {"version": "v3", "counts": counts, "checkout": True, "no tests": "3.0"}
    first, second = runner.page(entries).split("## Tests of repositories")
    assert "| few | 1.0 |" in first
    assert "more" not in first
    assert "have no tests: bare 2.0, more 3.0." in second
    assert "| more | v3 | 9 | 4 | 3 |" in second
