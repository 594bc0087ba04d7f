"""Eager code on another device than the host's. The cases run in processes in which the CPU is two devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import EXHAUSTIVE, ROOT

HERE = Path(__file__).parent
PARTS = 6 if EXHAUSTIVE else 1
"""In how many processes the cases of all operations run: so that each ends well within a test's time."""


def run(cases: str, **environment: str) -> None:
    known = {**os.environ, "PULLBACK_NUM_CPU_DEVICES": "2", **environment}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        known.pop(name, None)
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "python_files=cases_*.py"]
    command = [sys.executable, "-m", "pytest", *options, str(HERE / cases)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_on_a_second_device(part: int) -> None:
    run("cases_elsewhere.py", PULLBACK_TEST_PART=f"{part}/{PARTS}")


@pytest.mark.slow
def test_beside_a_stand_in_of_a_gpu() -> None:
    run("cases_gpu.py")
