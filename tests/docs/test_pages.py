"""The pages from which people learn: their cells run, they begin with a title, and code that is not run is valid.

The pages are MyST-NB Markdown. A cell begins with a line of three backquotes and ``{code-cell}``; lines such as
``:tags: [raises-exception]`` say what is to be done with it. A page whose front matter has the line ``slow: true`` runs
in a process of its own, in a slow test.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pullback.core.config import config
from tests.helpers import ROOT

FOLDERS = ("get_started", "learn", "how_to", "examples")
PAGES = [page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).rglob("*.md"))]
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"(:[^\n]*\n)*(---\n.*?^---\n)?", re.MULTILINE | re.DOTALL)
DRAWS = re.compile(r"^\s*(import|from) matplotlib\b", re.MULTILINE)


class Cell(NamedTuple):
    """A cell of a page: its program, the line on which that begins, counted from 0, and its tags."""

    program: str
    line: int
    tags: frozenset[str]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


def front_matter(text: str) -> str:
    """The lines between the first line and the next that are three hyphens; empty if the page has none."""
    found = re.match(r"---\n(.*?)^---\n", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def is_slow(text: str) -> bool:
    return re.search(r"^slow: true$", front_matter(text), re.MULTILINE) is not None


def cells(text: str) -> list[Cell]:
    """The cells of a page, in order."""
    found = []
    for block in FENCE.finditer(text):
        if not block["info"].startswith("{code-cell}"):
            continue
        body = block["body"]
        options = OPTIONS.match(body)
        assert options is not None
        start = options.end()
        line = text[: block.start("body") + start].count("\n")
        found.append(Cell(body[start:], line, frozenset(re.findall(r"[\w-]+", options[0]))))
    return found


def evaluate(cell: Cell, names: dict[str, Any], file: str) -> None:
    """Run a cell as a notebook does: the value of a last expression is shown."""
    module = ast.parse(cell.program, file)
    ast.increment_lineno(module, cell.line)
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, file, "exec"), names)
    if isinstance(last, ast.Expr):
        repr(eval(compile(ast.Expression(last.value), file, "eval"), names))


def run(page: Path) -> None:
    """Run the cells of a page in order, in one namespace."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(text):
        where = f"{name_of(page)}:{cell.line + 1}"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                evaluate(cell, names, str(page))
            except Exception as error:
                if "raises-exception" not in cell.tags:
                    error.add_note(f"in the cell at {where}")
                    raise
            else:
                assert "raises-exception" not in cell.tags, f"the cell at {where} has to raise an error"


def prepare_to_draw(text: str) -> None:
    """Let matplotlib draw without a screen; skip the test of a page that draws if it is not installed."""
    if DRAWS.search(text):
        pytest.importorskip("matplotlib").use("Agg")


@contextlib.contextmanager
def same_switches() -> Iterator[None]:
    """Undo what a page changes in the configuration."""
    before = config.values
    try:
        yield
    finally:
        for name, value in config.values.items():
            if value != before[name]:
                config.update(name, before[name])
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


FAST = [page for page in PAGES if not is_slow(page.read_text(encoding="utf-8"))]
SLOW = [page for page in PAGES if page not in FAST]


@pytest.mark.parametrize("page", FAST, ids=name_of)
def test_cells_run(page: Path) -> None:
    prepare_to_draw(page.read_text(encoding="utf-8"))
    with same_switches():
        run(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=name_of)
def test_cells_of_slow_pages_run(page: Path) -> None:
    prepare_to_draw(page.read_text(encoding="utf-8"))
    program = "import sys, pathlib; from tests.docs.test_pages import run; run(pathlib.Path(sys.argv[1]))"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error", "-c", program, str(page)]
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg"}
    finished = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_are_well_formed(page: Path) -> None:
    """The first line of text is a title, there is one title, and Python that is shown without being run is valid."""
    text = page.read_text(encoding="utf-8")
    matter = front_matter(text)
    body = FENCE.sub("", text[len(matter) + 8 :] if matter else text)
    assert body.lstrip().startswith("# "), f"{name_of(page)} has to begin with a title"
    assert len(re.findall(r"^# ", body, re.MULTILINE)) == 1
    if cells(text):
        assert "kernelspec:" in matter, f"{name_of(page)} has cells, and no kernelspec in its front matter"
    for block in FENCE.finditer(text):
        if block["info"].strip() == "python":
            compile(block["body"], str(page), "exec")


def test_cells_are_found() -> None:
    page = "# T\n\n```{code-cell} ipython3\n:tags: [raises-exception]\n1 / 0\n```\n\n```{code-cell}\nx = 1\nx\n```\n"
    first, second = cells(page)
    assert first == Cell("1 / 0\n", 4, frozenset({"tags", "raises-exception"}))
    assert second == Cell("x = 1\nx\n", 8, frozenset())
    names: dict[str, Any] = {}
    evaluate(second, names, "page")
    assert names["x"] == 1
    with pytest.raises(ZeroDivisionError):
        evaluate(first, names, "page")


def test_a_cell_that_has_to_raise_and_does_not_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "learn" / "page.md"
    page.parent.mkdir(parents=True)
    page.write_text("# T\n\n```{code-cell}\n:tags: [raises-exception]\n1\n```\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"learn/page\.md:5 has to raise"):
        run(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]
