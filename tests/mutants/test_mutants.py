"""The list of mutants fits the source: running them, which takes minutes, is ``make mutants``."""

from __future__ import annotations

import py_compile
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.mutants import MUTANTS, ROOT, Mutant
from tests.mutants.random_faults import drawn, faults
from tests.which import SOURCE, noticing


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


def test_there_are_205_of_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) == 216


def test_every_room_has_five() -> None:
    rooms = [path.parent.name for path in (ROOT / "src" / "pullback").glob("*/__init__.py")]
    numbers = Counter(Path(mutant.file).parts[0] if "/" in mutant.file else "top_level" for mutant in MUTANTS)
    assert {room: numbers[room] for room in (*rooms, "top_level") if numbers[room] < 5} == {}


TEXT = '''"""Not this: 1 < 2."""
if TYPE_CHECKING:
    one = 1
def f(x: Literal[3], y=-2):
    """Nor this."""
    if x < y and not g(x, y):
        raise ValueError(f"got {x - 1}", 7)
    return é if x is not None else x[1:] + y
'''


def test_random_faults_change_what_runs_and_nothing_else() -> None:
    found = {(fault.line, fault.kind, fault.old, fault.new) for fault in faults("one.py", TEXT)}
    assert found == {
        (4, "a sign left out", "-", ""), (4, "one more", "2", "3"), (4, "one less", "2", "1"),
        (6, "comparison", "<", "<="), (6, "and and or", "and", "or"), (6, "a not left out", "not ", ""),
        (6, "arguments in another order", "x, y", "y, x"), (8, "comparison", "is not", "is"),
        (8, "one more", "1", "2"), (8, "one less", "1", "0"), (8, "another sign", "+", "-"),
    }  # fmt: skip
    (sum_,) = [fault for fault in faults("one.py", TEXT) if fault.kind == "another sign"]
    assert sum_.applied(TEXT).splitlines()[7] == "    return é if x is not None else x[1:] - y"


@pytest.mark.slow
def test_random_faults_are_those_of_the_seed_and_have_tests() -> None:
    first = drawn(12, 0)
    assert first == drawn(12, 0)
    assert first != drawn(12, 1)
    for fault in first:
        assert (SOURCE / fault.file).read_text()[fault.start : fault.end] == fault.old
        assert len(noticing(fault.file)) > 1
