"""What the README shows works, and every target that it names exists."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    assert len(lines) == 1 + 3 + 4 + 1, "a gradient, a Hessian, four gradients, and what was learnt"


def test_the_targets_exist() -> None:
    found = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README, re.MULTILINE)
    named = {target for pair in found for target in pair if target}
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"cookbook", "test", "bench"} <= named <= defined
