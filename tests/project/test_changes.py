"""The files of ``changes/``, of which ``make changelog`` makes a section: names, form, and the tool's settings."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT

FOLDER = ROOT / "changes"
FRAGMENTS = sorted(path for path in FOLDER.iterdir() if path.name not in ("README.md", "template.md"))


def settings() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(project["tool"]["towncrier"])


def faults(name: str, text: str) -> list[str]:
    """What is wrong with a file."""
    kinds = "|".join(kind["directory"] for kind in settings()["type"])
    checks = {
        "its name is not words-with-hyphens.KIND.md": re.fullmatch(rf"[a-z\d]+(-[a-z\d]+)*\.({kinds})\.md", name),
        "it does not begin with a capital letter or code": re.match(r"[A-Z`]", text),
        "it does not end with a full stop and a new line": text.endswith(".\n") and not text.endswith("\n\n"),
        "it is more than one entry": not re.search(r"^\s*([-*#]|\d+\.) |\n\n", text, re.MULTILINE),
        "a line is longer than 140": max(map(len, text.split("\n"))) <= 140,
    }
    return [fault for fault, holds in checks.items() if not holds]


def test_changes_are_well_formed() -> None:
    found = {path.name: faults(path.name, path.read_text(encoding="utf-8")) for path in FRAGMENTS}
    assert not {name: each for name, each in found.items() if each}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a-b.added.md", "`f` is new.\n", 0),
        ("a.other.md", "It is new.\n", 1),
        ("A_b.added.md", "It is new.\n", 1),
        ("a.fixed.md", "- It is new.\n", 2),
        ("a.fixed.md", "It is new\n\nand large.\n", 1),
        ("a.fixed.md", "", 2),
        ("a.fixed.md", f"It is {'new ' * 40}.\n", 1),
    ],
)
def test_faults_are_found(name: str, text: str, count: int) -> None:
    assert len(faults(name, text)) == count


def test_the_settings_fit_the_changelog() -> None:
    has = settings()
    changelog = (ROOT / has["filename"]).read_text(encoding="utf-8")
    assert changelog.count(has["start_string"]) == 1
    assert changelog.index("## [Unreleased]") < changelog.index(has["start_string"]) < changelog.index("## [0.2.0]")
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    kinds = [kind["directory"] for kind in has["type"]]
    assert re.findall(r"`(\w+)`", readme.partition("The kinds are")[2].partition(".")[0]) == kinds


def test_a_section_is_assembled(tmp_path: Path) -> None:
    """By the tool that ``requirements/release.txt`` has; it is not among the tests' requirements."""
    tool = shutil.which("towncrier")
    if tool is None:
        pytest.skip("towncrier is not installed")
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changes").mkdir()
    shutil.copy(FOLDER / "template.md", tmp_path / "changes")
    for name, text in (("b.fixed.md", "B.\n"), ("c.added.md", "C\nd.\n"), ("a.added.md", "A.\n")):
        (tmp_path / "changes" / name).write_text(text)
    command = [tool, "build", "--keep", "--version", "9.8.7", "--date", "2026-01-02"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    written = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    section = "## [9.8.7] - 2026-01-02\n\n### Added\n\n- A.\n- C\n  d.\n\n### Fixed\n\n- B.\n\n## [0.2.0]"
    assert section in written
