"""Names in the source are words of the field: those that were retired come back nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pullback

SOURCE = Path(pullback.__file__).parent
INSTEAD = {
    "apart": "separate",
    "lent": "a reference that stands for an argument",
    "mine": "own",
    "place": "index, position, location; placement for a device or a sharding",
    "placed": "committed",
    "places": "indices, positions; placements",
    "settle": "resolve, fix",
    "settled": "resolved, fixed",
    "told": "what is passed: a listener, an option, a result",
}
"""Words that were retired, and what to say."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def retired(name: str) -> list[str]:
    """The retired words in a name; an update *in place* is the field's."""
    return [word for word in map(str.lower, WORD.findall(name.replace("in_place", ""))) if word in INSTEAD]


def names(module: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a module gives: to functions, classes, parameters, variables and attributes."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


PUBLIC = {("numpy/indexing.py", "place")}
"""Names that are NumPy's."""


def test_retired_words_name_nothing() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        for line, name in names(ast.parse(path.read_text(encoding="utf-8"))):
            if (file, name) not in PUBLIC:
                found += [f"{file}:{line}: {name}: say {INSTEAD[word]}" for word in retired(name)]
    assert not found, "\n".join(found)


def test_a_retired_word_is_found() -> None:
    assert retired("given_places") == ["places"]
    assert retired("PlacedArray") == ["placed"]
    assert not retired("not_in_place")
    assert not retired("replaced")
    text = "def f(place):\n    told = place\n    x.mine = told\n"
    assert [name for _, name in names(ast.parse(text))] == ["f", "place", "told", "mine"]
