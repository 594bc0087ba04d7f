"""Eager code on another device than the host's. The cases run in a process in which the CPU is two devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import ROOT

CASES = Path(__file__).with_name("cases_elsewhere.py")


def test_on_a_second_device() -> None:
    known = {**os.environ, "PULLBACK_NUM_CPU_DEVICES": "2"}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        known.pop(name, None)
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "python_files=cases_*.py"]
    command = [sys.executable, "-m", "pytest", *options, str(CASES)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
