"""The source distribution holds the repository, so that its tests run from it; the version is the same everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages
from setuptools.command.egg_info import FileList

import pullback
from tests.helpers import ROOT

OF_THE_HOST = (".devcontainer/", ".github/")
"""Files that only the repository's host and editors read."""
BY_DEFAULT = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}
"""What setuptools takes without being asked."""


def git(*arguments: str) -> set[str]:
    """The paths that a command of git lists; the test is skipped where there is no repository."""
    try:
        done = subprocess.run(
            ["git", arguments[0], "-z", *arguments[1:]], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout of the repository, or git is missing")
    return {path for path in done.stdout.split("\0") if path}


@pytest.fixture
def selected(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files of the source distribution by ``MANIFEST.in``, as setuptools reads it."""
    monkeypatch.chdir(ROOT)
    files = FileList()
    for line in Path("MANIFEST.in").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            files.process_template_line(line)
    return {Path(file).as_posix() for file in files.files} | BY_DEFAULT


def test_the_source_distribution_holds_the_repository(selected: set[str]) -> None:
    missing = {path for path in git("ls-files") - selected if not path.startswith(OF_THE_HOST)}
    assert not missing, "MANIFEST.in leaves out files of the repository"


def test_the_source_distribution_holds_nothing_that_is_ignored(selected: set[str]) -> None:
    folders = re.findall(r"^graft (.*)$", (ROOT / "MANIFEST.in").read_text(encoding="utf-8"), re.MULTILINE)
    ignored = git("ls-files", "--others", "--ignored", "--exclude-standard", "--", *folders)
    assert not {path for path in ignored & selected if ".egg-info/" not in path}


def test_wheels_hold_the_package_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = project["tool"]["setuptools"]["packages"]["find"]
    assert options == {"where": ["src"]}
    packages = find_packages(ROOT / "src")
    assert {name.partition(".")[0] for name in packages} == {"pullback"}
    assert not [name for name in packages if "tests" in name.split(".")]
    folders = {path.parent for path in (ROOT / "src").rglob("*.py")}
    assert {str(folder.relative_to(ROOT / "src")).replace(os.sep, ".") for folder in folders} == set(packages)


def test_the_version_is_the_same_everywhere() -> None:
    version = re.escape(pullback.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (date,) = re.findall(rf"^## \[{version}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert f"\nversion: {pullback.__version__}\ndate-released: {date}\n" in citation


def test_the_address_is_the_same_everywhere() -> None:
    """That of ``project.urls``; without one, the install page has a gap for it, and the other files have none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository")
    install = (ROOT / "docs" / "get_started" / "install.md").read_text(encoding="utf-8")
    assert re.findall(r"^git clone (.*) pullback$", install, re.MULTILINE) == [address or "<address of the repository>"]
    for path, key in (("CITATION.cff", "repository-code"), ("conda/recipe.yaml", "  homepage")):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.findall(rf"^{key}: (.*)$", text, re.MULTILINE) == ([address] if address else [])
