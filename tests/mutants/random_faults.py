"""Faults drawn at random: a small change of one expression, anywhere in the source.

A fault is a change that a hurried programmer makes: another comparison, one too many, ``and`` for ``or``, a ``not``
that is missing, a sign, two arguments in the wrong order, another constant. The same seed draws the same faults of the
same source. What a message says, and what a type checker alone reads, is left alone.
"""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.which import SOURCE, room_of

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip


class Fault(NamedTuple):
    """A change of one place of a file.

    Attributes:
      file: from ``src/pullback``.
      line: where it is.
      kind: the operator that made it.
      start, end: of the text that is replaced, as offsets.
      old, new: the text before and after.
    """

    file: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """A file's text with the fault."""
        return text[: self.start] + self.new + text[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {self.old} -> {self.new}"


class _Places:
    """Offsets in a text of what the parser numbers by lines and bytes."""

    def __init__(self, text: str) -> None:
        self.text, self.lines = text, text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def between(self, left: ast.AST, right: ast.AST, operator: str) -> tuple[int, int] | None:
        """Where an operator stands between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        words = r"\s+".join(operator.split())
        pattern = rf"\b{words}\b" if operator[0].isalpha() else re.escape(operator)
        found = re.search(pattern, self.text[start:end])
        return (start + found.start(), start + found.end()) if found else None


def faults(file: str, text: str) -> list[Fault]:
    """All faults of a file."""
    places = _Places(text)
    found = []
    for node in _expressions(ast.parse(text)):
        for kind, span, new in _changes(node, places):
            if span is not None:
                start, end = span
                line = getattr(node, "lineno", 0)
                found.append(Fault(file, line, kind, start, end, text[start:end], new))
    return found


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions that a program runs: no annotations, messages, docstrings or checks of types."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_params", "type_comment") or (
            field == "decorator_list" and isinstance(node, ast.FunctionDef)
        ):
            continue
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield from _expressions(child)


Change = tuple[str, tuple[int, int] | None, str]


def _changes(node: ast.AST, places: _Places) -> Iterator[Change]:
    text = places.text
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        old, new = COMPARISONS[type(node.ops[0])]
        yield "comparison", places.between(node.left, node.comparators[0], old), new
    elif isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values[:-1], node.values[1:], strict=True):
            yield "and and or", places.between(left, right, old), new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        kind = "a not left out" if isinstance(node.op, ast.Not) else "a sign left out"
        yield kind, (places.span(node)[0], places.span(node.operand)[0]), ""
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        old, new = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
        yield "another sign", places.between(node.left, node.right, old), new
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "another constant", places.span(node), str(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "one more", places.span(node), str(node.value + 1)
        if node.value > 0:
            yield "one less", places.span(node), str(node.value - 1)
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not isinstance(node.args[0], ast.Starred):
        first, second = node.args[:2]
        (a, b), (c, d) = places.span(first), places.span(second)
        if not isinstance(second, ast.Starred) and text[a:b] != text[c:d]:
            yield "arguments in another order", (a, d), text[c:d] + text[b:c] + text[a:b]


@functools.cache
def _by_room() -> dict[str, list[Fault]]:
    """All faults, by room: that takes some seconds."""
    found: dict[str, list[Fault]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        file = str(path.relative_to(SOURCE))
        found.setdefault(room_of(file), []).extend(faults(file, path.read_text()))
    return found


def drawn(count: int, seed: int) -> list[Fault]:
    """Random faults: a room, then a file of it by its length, then a change of the file; each file at most twice."""
    rng = random.Random(seed)
    by_room = _by_room()
    rooms = sorted(room for room, found in by_room.items() if found and room)
    chosen: list[Fault] = []
    while len(chosen) < count:
        fault = rng.choice(by_room[rng.choice(rooms)])
        if sum(fault.file == other.file for other in chosen) < 2 and _compiles(fault):
            chosen.append(fault)
    return chosen


def _compiles(fault: Fault) -> bool:
    try:
        compile(fault.applied((SOURCE / fault.file).read_text()), fault.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
