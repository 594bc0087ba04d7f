"""The recipe for conda says what ``pyproject.toml`` says."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from packaging.requirements import Requirement

import pullback
from tests.helpers import ROOT

RECIPE = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
IN_CONDA = {"flatbuffers": "python-flatbuffers"}
"""The packages of other names there."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def listed(*path: str) -> list[str]:
    """The items of a list, by the keys that lead to it."""
    text, indent = RECIPE, 0
    for key in path:
        (text,) = re.findall(rf"^ {{{indent}}}{key}:\n((?: {{{indent + 2}}}.*\n)+)", text, re.MULTILINE)
        indent += 2
    return re.findall(rf"^ {{{indent}}}- (.*)$", text, re.MULTILINE)


def as_in_conda(requirements: list[str]) -> set[tuple[str, frozenset[str]]]:
    """Names and bounds of requirements of Python, by the names of conda."""
    parsed = [Requirement(text) for text in requirements]
    return {(IN_CONDA.get(each.name, each.name), frozenset(map(str, each.specifier))) for each in parsed}


def bounds(items: list[str]) -> set[tuple[str, frozenset[str]]]:
    """Names and bounds of requirements of conda."""
    parsed = [item.partition(" ") for item in items]
    return {(name, frozenset(filter(None, limits.split(",")))) for name, _, limits in parsed}


def test_the_version() -> None:
    assert re.findall(r"^  version: (.*)$", RECIPE, re.MULTILINE) == [f'"{pullback.__version__}"', "${{ version }}"]


def test_requirements_at_run_time() -> None:
    metadata = project()["project"]
    assert len(listed("requirements", "run")) == len(metadata["dependencies"]) + 1
    expected = as_in_conda([*metadata["dependencies"], f"python{metadata['requires-python']}"])
    assert bounds(listed("requirements", "run")) == expected


def test_requirements_of_the_build() -> None:
    assert listed("requirements", "host")[:2] == ["python", "pip"]
    assert bounds(listed("requirements", "host")[2:]) == as_in_conda(project()["build-system"]["requires"])


def test_the_command_and_the_description() -> None:
    metadata = project()["project"]
    ((name, function),) = metadata["scripts"].items()
    assert listed("build", "python", "entry_points") == [f"{name} = {function}"]
    assert f'\n  summary: "{metadata["description"]}"\n' in RECIPE
    assert f"\n  license: {metadata['license']}\n" in RECIPE
    assert f"\n      - {name} --version\n" in RECIPE
