"""The cookbook runs as a newcomer runs it, and would not hide a figure that disagrees."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

COOKBOOK = Path(__file__).parent.parent / "examples" / "autodiff_cookbook.py"
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
