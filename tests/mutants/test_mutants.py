"""The list of mutants fits the source: running them, which takes minutes, is ``make mutants``."""

from __future__ import annotations

import py_compile
from pathlib import Path

import pytest
from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_source(mutant: Mutant, tmp_path: Path) -> None:
    assert mutant.occurrences() == 1, f"{mutant.file} has changed: give the mutant {mutant.name!r} its new text"
    for test in mutant.tests:
        path, *_, name = test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), f"there is no test {test}"
    source = ROOT / "src" / "pullback" / mutant.file
    changed = tmp_path / "src" / "pullback" / mutant.file
    changed.parent.mkdir(parents=True)
    changed.write_text(source.read_text())
    mutant.apply(tmp_path)
    py_compile.compile(str(changed), doraise=True)


def test_there_are_52_of_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) == 52
