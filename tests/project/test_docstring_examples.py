"""An example in a docstring imports what it uses, so that it runs when it is pasted."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
import pullback.numpy as jnp
from tests.helpers import ROOT

MODULE = '''
import math


def leans():
    """
    >>> math.floor(2.5)
    2
    """


def leans_on_itself():
    """
    >>> leans_on_itself()
    """


def whole():
    """
    >>> import math
    >>> math.floor(2.5)
    2
    >>> __name__
    '__main__'
    """


def after_another():
    """
    >>> "math" in globals()
    False
    """
'''


@pytest.mark.parametrize("processes", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_an_example_without_its_imports_fails(processes: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "module.py").write_text(MODULE)
    options = ("--doctest-modules", "--import-mode=importlib", "-q", "-rA", "-p", "no:cacheprovider", "module.py")
    command = [sys.executable, "-m", "pytest", *options, *processes]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a faster start
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
    found = re.findall(r"^(PASSED|FAILED) module\.py::module\.(\w+)", done.stdout, re.MULTILINE)
    outcomes = {name: outcome for outcome, name in found}
    assert outcomes == {
        "leans": "FAILED", "leans_on_itself": "FAILED", "whole": "PASSED", "after_another": "PASSED",
    }, done.stdout + done.stderr  # fmt: skip
    assert "NameError: name 'math' is not defined" in done.stdout


@pytest.mark.parametrize("name", ["c_", "mgrid", "ogrid", "r_"])
def test_the_example_of_an_object_runs(name: str) -> None:
    """pytest finds the examples of modules, functions and classes only."""
    example = doctest.DocTestParser().get_doctest(getattr(jnp, name).__doc__, {}, name, None, None)
    assert example.examples
    assert not doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed


def test_examples_call_the_numpy_of_the_library_jnp() -> None:
    source = Path(pullback.__file__).parent
    found = [
        f"{path.relative_to(source)}:{number}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.match(r"\s*(>>>|\.\.\.) ", line) and re.search(r"\bpnp\b|import pullback\.numpy as (?!jnp\b)", line)
    ]
    assert not found, "\n".join(found)
