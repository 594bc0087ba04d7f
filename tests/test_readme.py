"""What the README and the page on other libraries show works, and every target that they name exists."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def printed_by_examples() -> list[list[str]]:
    outputs = []
    for program in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "README.md", "exec"), {})
        outputs.append(printed.getvalue().splitlines())
    return outputs


def test_the_examples_run() -> None:
    tour, beyond = printed_by_examples()
    assert len(tour) == 1 + 3 + 4 + 1, "a gradient, a Hessian, four gradients, and what was learnt"
    figures = [float(x) for line in beyond for x in line.split()]
    expected = [0.5 / math.sqrt(2), -0.25 * 2**-1.5, 1.0, math.exp(1) / (1 + math.exp(1)) ** 2]
    assert all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(figures, expected, strict=True))


def test_the_page_on_other_libraries_runs() -> None:
    page = ROOT / "docs" / "coming_from.md"
    text = page.read_text()
    (found,) = re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
    lines_before = "\n" * text[: found.start(1)].count("\n")  # so that errors show the text of the page's lines
    exec(compile(lines_before + found[1], str(page), "exec"), {})


def test_the_targets_exist() -> None:
    found = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README, re.MULTILINE)
    named = {target for pair in found for target in pair if target}
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"cookbook", "test", "bench"} <= named <= defined
