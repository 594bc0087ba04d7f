"""The pages about the code, and where its tests are.

The paths that the pages name exist, the picture is short, each decision is in the index, and tests mirror the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import which
from tests.helpers import ROOT

PLACES = (ROOT, ROOT / "src" / "pullback")
"""What paths are relative to."""
DECISIONS = ROOT / "docs" / "decisions"


def number_of(name: str) -> str:
    """The number with which the name of a decision's file begins."""
    return name.partition("-")[0]


NAMES = [path.name for path in DECISIONS.glob("*.md") if path.name != "README.md"]
PAGES = [f"docs/decisions/{name}" for name in sorted(NAMES, key=lambda name: (len(number_of(name)), name))]
"""The decisions: a page each."""
MOST_WORDS = 2500
NAME = r"[\w.*-]+"
PATH = re.compile(rf"(?<![\w/.=])(?:{NAME}/)+(?:{NAME})?|(?<![\w/.])\w+\.(?:py|md|toml|txt)\b")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
"""A link to a file of the repository."""
DATE = r"\d{4}-\d\d-\d\d"
HEAD = re.compile(rf"# (?P<title>\S.*)\n\n\*{DATE}(?:, extended {DATE})?\*\n\n\S")
"""How a decision begins: with a sentence, and the date on which it was written down."""


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


@cache
def exists(path: str) -> bool:
    """Whether a path is there; a name alone may be anywhere, and an ending in ``.py`` may be left out."""
    places = PLACES if "/" in path else directories()
    return any(any(place.glob(name)) for place in places for name in (path, f"{path}.py"))


def missing_paths(page: str) -> list[str]:
    return [f"{page}:{line}: {path}" for line, path in named(page) if not exists(path)]


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_exists(page: str) -> None:
    assert len(list(named(page))) > 10
    missing = missing_paths(page)
    assert not missing, "\n".join(missing)


def test_every_path_of_a_decision_exists() -> None:
    assert sum(len(list(named(page))) for page in PAGES) > 50
    missing = [path for page in PAGES for path in missing_paths(page)]
    assert not missing, "\n".join(missing)


def test_what_does_not_exist_is_found() -> None:
    assert not exists("transforms/no_such_file.py")
    assert not exists("no_such_directory/")
    assert exists("transforms/traces/")
    assert exists("backends/hlo/builder*")


def test_the_picture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= MOST_WORDS


def test_a_decision_has_a_title_and_a_date() -> None:
    assert [page for page in PAGES if not HEAD.match((ROOT / page).read_text())] == []


def test_decisions_are_numbered() -> None:
    names = [Path(page).name for page in PAGES]
    assert [name for name in names if not re.fullmatch(r"\d{3,4}-[a-z0-9]+(?:-[a-z0-9]+)*\.md", name)] == []
    assert len(set(map(number_of, names))) == len(names)


def test_the_index_has_each_decision_once_in_order() -> None:
    lines = [line for line in (DECISIONS / "README.md").read_text().splitlines() if line.startswith("* ")]
    expected = []
    for page in PAGES:
        head = HEAD.match((ROOT / page).read_text())
        assert head, page
        expected.append(f"* [{number_of(Path(page).name)}]({Path(page).name}): {head['title']}")
    assert lines == expected


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions/README.md"])
def test_links_lead_to_files(page: str) -> None:
    pages = [page, *PAGES] if page.startswith("docs") else [page]
    broken = [
        f"{name}: {target}"
        for name in pages
        for target in LINK.findall((ROOT / name).read_text())
        if not ((ROOT / name).parent / target).exists()
    ]
    assert broken == []


HEART = [
    *(f"core/{name}.py" for name in ("trace", "linear", "jaxpr", "types")),
    *(
        f"transforms/traces/{name}.py"
        for name in ("forward", "linearize", "batch", "stage", "jaxprs", "transpose", "dce", "partial_eval")
    ),
]
"""What everything else stands on: primitives, traces, tapes, programs, and the interpreters of each."""


def test_the_heart_is_small() -> None:
    lines = [(ROOT / "src" / "pullback" / path).read_text(encoding="utf-8").count("\n") for path in HEART]
    assert sum(lines) < 2750


def test_modules_change_no_variables_of_theirs() -> None:
    """What changes is the state of an object; the adapter of the compiler is the exception."""
    source = ROOT / "src" / "pullback"
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"(?m)^ +global ", path.read_text(encoding="utf-8"))
    }
    assert not [path for path in found if not path.startswith("backends/compiler/")]


def test_words_of_many_meanings_name_one_class() -> None:
    found = [
        match
        for path in (ROOT / "src" / "pullback").rglob("*.py")
        for match in re.findall(r"(?m)^class _?(Layout|Part|Step|Walk)\b", path.read_text(encoding="utf-8"))
    ]
    assert found == ["Layout"]


# The tests mirror the source -----------------------------------------------------------------------------------------

BESIDE_ROOMS = {
    "benchmarks", "docs", "docs/browser", "fuzz", "grid", "laws", "mutants", "project", "public", "recorded", "soak",
    "top_level", "typed",
}  # fmt: skip
"""Folders of tests that are not those of a room: ``CONTRIBUTING.md`` says what is in each."""
ROOMS = {path.parent.relative_to(which.SOURCE).as_posix() for path in which.SOURCE.rglob("*.py")} - {"."}
"""The rooms of the source, and those within them."""


def test_folders_of_tests_are_rooms_of_the_source() -> None:
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders - ROOMS - BESIDE_ROOMS == set()
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [folder for folder in BESIDE_ROOMS if f"`tests/{folder}/`" not in contributing] == []


def test_every_room_has_a_folder_of_tests_and_knows_what_should_notice_its_faults() -> None:
    for room in {room for room in ROOMS if "/" not in room}:
        assert any((ROOT / "tests" / room).rglob("test_*.py")), room
        assert which.room_of(f"{room}/any.py") == room
    assert which.ROOMS.keys() - ROOMS == {""}
    assert [test for tests in which.ROOMS.values() for test in tests if not (ROOT / test).exists()] == []


@pytest.mark.slow
def test_what_should_notice_a_fault_is_there() -> None:
    for path in (max((which.SOURCE / room).glob("*.py")) for room in ROOMS):
        found = which.noticing(path.relative_to(which.SOURCE).as_posix())
        assert [test for test in found if not (ROOT / test).exists()] == []


def test_near_tests_have_a_file_s_name_or_import_it_or_use_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert which.near("numpy/sorting.py")[:2] == ["src/pullback/numpy/sorting.py", "tests/numpy/test_sorting.py"]
    assert "tests/primitives/test_large.py" in which.near("backends/compiler/one_operation.py")
    assert "tests/spmd/test_over_devices.py" in which.near("spmd/pmap.py")
    assert which.near("transforms/jit/jit_arguments.py") == ["tests/transforms/jit"]
    which.main([str(which.SOURCE / "show.py"), str(which.SOURCE / "show.py")])
    assert capsys.readouterr().out.split()[:2] == ["src/pullback/show.py", "tests/top_level/test_show.py"]
    with pytest.raises(SystemExit):
        which.main(["README.md"])
    assert "is no Python file of" in capsys.readouterr().err
