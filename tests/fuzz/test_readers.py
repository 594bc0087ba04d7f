"""Damaged bytes for everything that reads bytes: short runs of what ``python -m tests.fuzz.readers`` does."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import readers
from tests.fuzz.readers import READERS, Random, failures, run, work

pytestmark = pytest.mark.filterwarnings("ignore")
HERE = {
    "export_bytes": 300,
    "export_description": 300,
    "export_jax": 300,
    "cache": 100,
    "numpy_load": 300,
    "colouring": 100,
}
ELSEWHERE = {"export_call": 60, "export_program": 40, "pickle": 300}
"""How many mutations are read in this process, and in one that they may end."""


@pytest.mark.parametrize("name", HERE)
def test_damaged_bytes_raise_what_is_documented(name: str) -> None:
    outcomes = work(name, 0, 0, HERE[name])
    assert failures(name, outcomes) == []
    assert outcomes.total() == HERE[name]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_damaged_bytes_do_not_end_the_process(name: str) -> None:
    outcomes = run(name, 0, ELSEWHERE[name])
    assert failures(name, outcomes) == []
    assert outcomes.total() == ELSEWHERE[name]


def test_all_readers_are_run() -> None:
    assert {*HERE, *ELSEWHERE} == {name for name, reader in READERS.items() if not reader.compiler}


def test_a_mutation_is_the_same_in_each_run() -> None:
    for reader in READERS.values():
        sample = reader.samples()[0]
        assert len({repr(reader.mutate(Random("0"), sample)) for _ in range(3)}) == 1
        assert len({repr(reader.mutate(Random(str(i)), sample)) for i in range(10)}) > 1


def test_the_end_of_a_process_is_a_failure_and_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = "import os, sys; from tests.fuzz import readers as r; read = r.load; n = 0\n"
    ends += "def load(data):\n global n; n += 1; os.abort() if n == 3 else read(data)\n"
    ends += "r.READERS['numpy_load'] = r.READERS['numpy_load']._replace(read=load)\nr.main(sys.argv[1:])"
    monkeypatch.setattr(readers, "PROGRAM", ["-c", ends])
    outcomes = run("numpy_load", 0, 4)
    assert outcomes.total() == 4
    assert failures("numpy_load", outcomes) == ["CRASH -6 at 2"]
    assert failures("program_bytes", Counter(outcomes)) == []
