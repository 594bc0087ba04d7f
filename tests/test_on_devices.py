"""Runs the tests of ``tests/on_devices`` in a process with eight devices of the processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path.name for path in (ROOT / "tests" / "on_devices").glob("test_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_with_eight_devices(name: str) -> None:
    environment = dict(os.environ, PULLBACK_TEST_DEVICES="8", XLA_FLAGS="--xla_force_host_platform_device_count=8")
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"tests/on_devices/{name}",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
