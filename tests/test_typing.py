"""What type checkers see of arrays, whose operators and methods are attached when the package is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import pullback
import pullback.numpy as jnp
from pullback import Array

def step(x: Array, y: Array) -> Array:
    z = 2 * x + y / 3 - x @ y
    if z.sum() > 0:
        return -z[0] ** 2
    return abs(x) + len(y) * float(x[0])

print(pullback.grad(step)(jnp.ones(3), jnp.ones(3)))
step("no array", jnp.ones(3))
"""


@pytest.mark.slow
def test_programs_on_arrays_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, run.stdout + run.stderr
    assert 'incompatible type "str"; expected "Array"' in errors[0]
