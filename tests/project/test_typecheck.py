"""What `make typecheck` reads of two checkers' reports, and compares it with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tests.helpers import ROOT

spec = importlib.util.spec_from_file_location("typecheck", ROOT / ".ci" / "typecheck.py")
assert spec is not None
assert spec.loader is not None
typecheck: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(typecheck)


def test_reports_are_read() -> None:
    ty = "/tmp/x/loops.py:46:12: error[invalid-return] expected `Array`, found `tuple`\nFound 1 diagnostic\n"
    pyrefly = "ERROR /tmp/x/loops.py:46:12-23: Returned type is not assignable [bad-return]\n INFO 1 error\n"
    assert typecheck.errors(ty) == {("loops.py", 46): "[invalid-return] expected `Array`, found `tuple`"}
    assert typecheck.errors(pyrefly) == {("loops.py", 46): "Returned type is not assignable [bad-return]"}
    assert typecheck.errors(" INFO 0 errors\nAll checks passed!\n") == {}


def test_what_is_missed_and_what_is_too_much() -> None:
    found = {("a.py", 1): "right", ("a.py", 3): "too much"}
    wrong = typecheck.compared("ty", {("a.py", 1), ("a.py", 2)}, found)
    assert wrong == ["ty finds no mistake in a.py:2", "ty: a.py:3: too much"]
    assert typecheck.compared("ty", set(found), found) == []


def test_programs_are_checked_without_comments(tmp_path: Path) -> None:
    expected = typecheck.copied(tmp_path)
    programs = sorted(path.name for path in (ROOT / "tests" / "typed").glob("*.py"))
    assert sorted(path.name for path in tmp_path.glob("*.py")) == programs
    assert sorted(file for file, _ in expected["pyrefly"]) == programs
    assert {file for file, _ in expected["ty"] - expected["pyrefly"]} == {"partial_decorators.py"}
    assert "ignore[" not in "".join(path.read_text() for path in tmp_path.glob("*.py"))
