"""What the buttons copy is a program: the prompts and outputs are left out, and it runs in a new interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.browser import site

PROGRAMS = ".highlight-ipython3, .highlight-python, .highlight-pycon"
RUN = ["index", "learn/state", "how_to/gradient_clipping", "reference/pullback.grad", "reference/pullback.numpy.sin",
       "reference/pullback.custom_vjp"]  # fmt: skip


def copied(page: Any) -> list[str]:
    """What each button below a program copies, in order: it is pressed, and the clipboard is read."""
    page.wait_for_selector("button.copybtn", state="attached")
    found = []
    for button in page.locator(PROGRAMS).locator("button.copybtn").all():
        page.evaluate("navigator.clipboard.writeText('')")
        button.evaluate("button => button.click()")
        page.wait_for_function("navigator.clipboard.readText().then(text => text !== '')")
        found.append(page.evaluate("navigator.clipboard.readText()"))
    return found


@pytest.mark.parametrize("name", RUN)
def test_what_is_copied_runs(page: Any, address: str, name: str, tmp_path: Path) -> None:
    page.goto(f"{address}/{name}.html")
    texts = copied(page)
    assert texts
    assert not [text for text in texts if ">>>" in text]
    program = tmp_path / "pasted.py"
    program.write_text("\n".join(texts), encoding="utf-8")
    environment = {"PYTHONPATH": str(site.ROOT / "src"), "MPLBACKEND": "Agg", "HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["index", "learn/state", "reference/pullback.grad"])
def test_programs_have_buttons_and_outputs_have_none(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    page.wait_for_selector("button.copybtn", state="attached")
    assert page.locator(PROGRAMS).count() == page.locator(PROGRAMS).locator("button.copybtn").count() > 0
    assert page.locator(".cell_output button.copybtn").count() == 0
    if site.BUILT and name == "index":
        assert page.locator(".cell_output").count() > 0


def test_a_prompt_and_an_output_are_left_out(page: Any, address: str) -> None:
    page.goto(f"{address}/reference/pullback.numpy.sin.html")
    shown = page.locator(".highlight-pycon pre").first.inner_text()
    assert ">>> " in shown
    (text,) = copied(page)
    lines = [line[4:] for line in shown.splitlines() if line.startswith((">>> ", "... "))]
    assert text.splitlines() == lines
    assert len(lines) < len(shown.splitlines()), "an output is shown"
