"""Arrays over several devices. The cases run in a process of their own, in which the processor is eight devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("cases", sorted(p.name for p in HERE.glob("cases_*.py")))
def test_over_eight_devices(cases: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "python_files=cases_*.py", "-x"]
    environment = {**os.environ, "PULLBACK_NUM_CPU_DEVICES": "8"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [*command, str(HERE / cases)], env=environment, capture_output=True, text=True, cwd=HERE.parent
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
