"""Every file and directory that the pages about the code name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = (ROOT, ROOT / "src" / "pullback")
"""What paths are relative to."""
NAME = r"[\w.*-]+"
PATH = re.compile(rf"(?<![\w/.=])(?:{NAME}/)+(?:{NAME})?|(?<![\w/.])\w+\.(?:py|md|toml|txt)\b")


def named(page: str) -> Iterator[tuple[int, str]]:
    """The paths in the code and in the pictures of a page, and their lines."""
    in_picture = False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.startswith("```"):
            in_picture = not in_picture
            continue
        for text in [line] if in_picture else re.findall(r"`([^`]+)`", line):
            for path in PATH.findall(text):
                yield number, path.rstrip(".")


@cache
def directories() -> list[Path]:
    return [place for root in PLACES for place in (root, *root.rglob(""))]


def exists(path: str) -> bool:
    """Whether a path is there; a name alone may be anywhere, and an ending in ``.py`` may be left out."""
    places = PLACES if "/" in path else directories()
    return any(any(place.glob(name)) for place in places for name in (path, f"{path}.py"))


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_exists(page: str) -> None:
    paths = list(named(page))
    assert len(paths) > 10
    missing = [f"{page}:{line}: {path}" for line, path in paths if not exists(path)]
    assert not missing, "\n".join(missing)


def test_what_does_not_exist_is_found() -> None:
    assert not exists("transforms/no_such_file.py")
    assert not exists("no_such_directory/")
    assert exists("transforms/interpreters/")
    assert exists("backends/hlo*")
