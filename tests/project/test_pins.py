"""What ``make`` installs is pinned, with hashes: lists of what is wanted, and the files that are written from them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from tests.helpers import ROOT

FOLDERS = [ROOT / "requirements", ROOT / "ecosystem"]
OLDER_FOR_A_LIBRARY = {"autograd"}
"""What a library asks for in an older release than other environments have: PennyLane, of the benchmarks' peer."""
NAMES_ONLY = "libraries.txt"
"""A list of libraries that are read and not installed."""
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.txt")) if path.name != NAMES_ONLY]
LISTS = [path for folder in FOLDERS for path in sorted(folder.glob("*.in"))]
PYTHONS = ["3.11", "3.12", "3.13"]
OF_TORCH = {"torch.txt", "torch-cpu.txt"}
"""What has no list of its own: PyTorch, of which one of two builds is installed."""


def _script() -> Any:
    path = ROOT / ".ci" / "lock_pins.py"
    spec = importlib.util.spec_from_file_location("lock_pins", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["lock_pins"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock_pins = _script()


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wanted(path: Path) -> list[Requirement]:
    """What a list wants, with what the lists want that it names."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += _wanted(path.parent / line.removeprefix("-r "))
        elif line and not line.startswith("#"):
            found.append(Requirement(line))
    return found


def _pins(path: Path) -> list[Any]:
    pins: list[Any] = lock_pins.pins_of(path.read_text(encoding="utf-8"))
    return pins


def _versions(name: str, python: str, pins: list[Any]) -> set[str]:
    """The versions at which a package is pinned for a version of Python, on this platform."""
    return {pin.pinned.partition("==")[2] for pin in pins if pin.name == name and _holds(pin.marker, python)}


def _holds(marker: str, python: str) -> bool:
    return not marker or Marker(marker).evaluate({"python_version": python, "python_full_version": f"{python}.0"})


def test_each_list_has_its_pins() -> None:
    written = {path.with_suffix(".txt") for path in LISTS}
    assert written == {path for path in FILES if path.name not in OF_TORCH}
    assert {_named(path.with_suffix("")) for path in LISTS} == {lock.path for lock in lock_pins.LOCKS}


@pytest.mark.parametrize("path", FILES, ids=_named)
def test_each_pin_has_hashes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pins = _pins(path)
    assert len(pins) == len(re.findall(r"^[^\s#-].*==", text, re.MULTILINE)) > 0
    for pin in pins:
        assert pin.hashes, pin.pinned
        assert all(re.fullmatch(r"[\da-f]{64}", digest) for digest in pin.hashes), pin.pinned
        assert len(set(pin.hashes)) == len(pin.hashes), pin.pinned
    assert len(re.findall("--hash", text)) == sum(len(pin.hashes) for pin in pins)


@pytest.mark.parametrize("path", FILES + LISTS, ids=_named)
def test_no_registry_is_named(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "://" in line or re.match(r"\s*(-i|--(?!hash))", line) or " @ " in line]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("path", LISTS, ids=_named)
def test_what_is_wanted_is_pinned(path: Path, python: str) -> None:
    pins = _pins(path.with_suffix(".txt"))
    if path.stem != "requirements-jax":
        pins += _pins(ROOT / "requirements" / "runtime.txt")
    if path.stem == "bench":
        pins += _pins(ROOT / "requirements" / "torch.txt")
    for requirement in _wanted(path):
        if _holds(str(requirement.marker or ""), python):
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", requirement
            assert _versions(_plain(requirement.name), python, pins) == {specifier.version}, requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_a_package_has_one_version(python: str) -> None:
    """Also in different environments, except for the JAX whose figures are recorded."""
    pins = [pin for path in FILES if path.stem not in ("requirements-jax", "torch-cpu") for pin in _pins(path)]
    for name in {pin.name for pin in pins} - OLDER_FOR_A_LIBRARY:
        assert len(_versions(name, python, pins)) <= 1, name
        hashes = {(pin.pinned, pin.hashes) for pin in pins if pin.name == name}
        assert len(hashes) == len({pinned for pinned, _ in hashes}), name


def test_both_builds_of_pytorch_are_of_one_version() -> None:
    default = next(pin.pinned for pin in _pins(ROOT / "requirements" / "torch.txt") if pin.name == "torch")
    (cpu,) = _pins(ROOT / "requirements" / "torch-cpu.txt")
    assert cpu.pinned == f"{default}+cpu"


def test_make_installs_by_hashes_and_again_when_a_pin_changes() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "PIP_SAYS ?= --quiet\nPIP_INSTALL = $(PIP) install $(PIP_SAYS) --no-deps --require-hashes\n" in text
    editable = re.findall(r"^.*\$\(PIP\) install .*$", text, re.MULTILINE)[1:]
    assert editable == ["\t$(PIP) install --quiet --no-deps --no-build-isolation --editable ."]
    installed = set()
    for rule in re.findall(r"^[^\s#].*\.stamp:.*(?:\n\t.*)+", text, re.MULTILINE):
        needed, _, recipe = rule.partition("\n")
        prerequisites = needed.partition(":")[2].split()
        for name in re.findall(r"\$\(PIP_INSTALL\) -r (\S+)", recipe):
            path = prerequisites[0] if name == "$<" else name
            assert path in prerequisites, rule
            installed.add(path)
    assert installed == {_named(path) for path in FILES}


def test_a_pin_is_read_as_it_is_written() -> None:
    pin = lock_pins.Pin("a-b", "a-b==1.0", "python_version < '3.12'", ("12", "34"), "# via c")
    assert lock_pins.pins_of("# first\n-r other.txt\n" + pin.lines() + pin.lines()) == [pin, pin]
    plain = lock_pins.Pin("a", "a==1!2.0.post1", "", ("12",))
    assert lock_pins.pins_of(plain.lines() + pin.lines()) == [plain, pin]
    assert lock_pins.pins_of("# nothing\n") == []
