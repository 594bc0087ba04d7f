"""The worked problems of custom derivative rules run as a newcomer runs them, and would not hide one that disagrees."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXAMPLES = ROOT / "examples"
COUNT = re.compile(r"^(\d+) of (\d+) figures agree", re.MULTILINE)


def run(script: Path) -> tuple[subprocess.CompletedProcess[str], int, int]:
    """A run of the example, how many figures agreed, and of how many."""
    command = [sys.executable, "-W", "error", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = COUNT.search(finished.stdout)
    assert found is not None, finished.stdout + finished.stderr
    return finished, int(found[1]), int(found[2])


@pytest.mark.slow
def test_every_figure_agrees() -> None:
    finished, agreeing, total = run(EXAMPLES / "custom_derivatives.py")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert agreeing == total
    assert total >= 150
    assert "DISAGREES" not in finished.stdout


@pytest.mark.slow
def test_one_false_figure_fails_the_run(tmp_path: Path) -> None:
    source = (EXAMPLES / "custom_derivatives.py").read_text()
    assert source.count("figure=0.9933072") == 1
    script = tmp_path / "falsified.py"
    script.write_text(source.replace("figure=0.9933072", "figure=0.9933972"))
    shutil.copy(EXAMPLES / "autodiff_cookbook.py", tmp_path)
    finished, agreeing, total = run(script)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert agreeing == total - 2  # eager and compiled
    disagreeing = [text for text in finished.stdout.splitlines() if text.endswith("DISAGREES")]
    assert disagreeing[0].strip().startswith("... its gradient at 5")
