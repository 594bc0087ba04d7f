"""The cookbook runs as a newcomer runs it, and would not hide a figure that disagrees."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
from tests.helpers import ROOT

COOKBOOK = ROOT / "examples" / "autodiff_cookbook.py"
COUNT = re.compile(r"^(\d+) of (\d+) figures agree", re.MULTILINE)


def run(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def counts(output: str) -> tuple[int, int]:
    found = COUNT.search(output)
    assert found is not None, f"no line that counts the figures in:\n{output}"
    return int(found[1]), int(found[2])


def test_every_figure_agrees() -> None:
    finished = run(COOKBOOK)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    agreeing, total = counts(finished.stdout)
    assert agreeing == total
    assert total >= 80
    assert "DISAGREES" not in finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("true_figure", "false_figure", "line"),
    [
        ("0.070650935", "0.070652935", "tanh' at 2.0"),
        ("-0.00365256", "-0.00365456", "its last block"),
        ('"(4, 3, 3)"', '"(4, 3)"', "shape of the Hessian"),
    ],
)
def test_one_false_figure_fails_the_run(tmp_path: Path, true_figure: str, false_figure: str, line: str) -> None:
    source = COOKBOOK.read_text()
    assert source.count(true_figure) == 1
    script = tmp_path / "falsified.py"
    script.write_text(source.replace(true_figure, false_figure))

    finished = run(script)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    agreeing, total = counts(finished.stdout)
    assert agreeing == total - 1
    (disagreeing,) = [text for text in finished.stdout.splitlines() if text.endswith("DISAGREES")]
    assert disagreeing.strip().startswith(line)


# The same figures, compiled ------------------------------------------------------------------------------------------


def load() -> Any:
    spec = importlib.util.spec_from_file_location("cookbook", COOKBOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOT_COMPILED = {
    "main": "runs the others",
    "python_control_flow": "branches and raises on values, which is what compiled code cannot do",
    "seeing_the_program": "prints programs, which show what is compiled",
}
SECTIONS = [
    name
    for name, section in vars(load()).items()
    if inspect.isfunction(section)
    and section.__module__ == "cookbook"
    and not inspect.signature(section).parameters
    and inspect.signature(section).return_annotation == "None"
    and name not in NOT_COMPILED
]


@pytest.mark.parametrize("name", SECTIONS)
def test_every_figure_agrees_compiled(name: str) -> None:
    cookbook = load()
    cookbook.compare_speed = lambda *args: None  # a claim about what is not compiled, as is the order at the end
    for transformation in (pullback.grad, pullback.value_and_grad, pullback.hessian, pullback.jacfwd, pullback.jacrev):
        compiled = lambda f, *args, t=transformation, **kwargs: pullback.jit(t(f, *args, **kwargs))
        setattr(cookbook, transformation.__name__, functools.wraps(transformation)(compiled))
    cookbook.vmap = lambda f, *args, **kwargs: pullback.jit(pullback.vmap(f, *args, **kwargs))
    cookbook.jvp = lambda f, *args, **kwargs: pullback.jvp(pullback.jit(f), *args, **kwargs)
    for transformation in (pullback.vjp, pullback.linearize):

        def linear_part_compiled(f: Any, *args: Any, t: Any = transformation, **kwargs: Any) -> Any:
            out, linear, *aux = t(pullback.jit(f), *args, **kwargs)
            return (out, pullback.jit(linear), *aux)

        setattr(cookbook, transformation.__name__, linear_part_compiled)
    getattr(cookbook, name)()
    if name == "hessian_vector_products":
        cookbook.outcomes.pop()
    assert cookbook.outcomes == [True] * len(cookbook.outcomes)
