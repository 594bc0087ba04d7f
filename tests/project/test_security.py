"""SECURITY.md lists what is installed, with the licence that each package states."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPELLED = {
    "Apache 2.0": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
}


def _listed() -> dict[str, str]:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("## What is installed")[1]
    return dict(re.findall(r"^\| (\w+) \| ([^|]+) \|", text.replace("| package | licence |", ""), re.MULTILINE))


def _required(names: list[str]) -> set[str]:
    """The packages, and those that they require on this platform without options."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.match(r"[\w.-]+", waiting.pop())
        assert name is not None
        plain = name.group().replace("-", "_")
        if plain not in found:
            found.add(plain)
            waiting += [line for line in metadata.requires(plain) or [] if "extra ==" not in line]
    return found


def _licence(name: str) -> str:
    package = metadata.metadata(name)
    stated = package.get("License-Expression") or package.get("License") or ""
    if stated and "\n" not in stated:
        return SPELLED.get(stated, stated)
    return next(SPELLED[line] for line in package.get_all("Classifier") or [] if line in SPELLED)


def test_all_that_is_installed_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(_listed()) == _required(project["dependencies"])


def test_licences_are_those_that_the_packages_state() -> None:
    listed = _listed()
    assert {name: _licence(name) for name in listed} == listed
