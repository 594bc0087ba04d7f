"""Names, messages and pages use words of the field: those that were retired come back nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pullback
from tests.helpers import ROOT

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


PUBLIC = {("numpy/indexing.py", "place"), ("scipy/signal/pole_placement.py", "place_poles")}
"""Names that are NumPy's and SciPy's."""


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


# Sentences ------------------------------------------------------------------------------------------------------------

SENTENCES = {
    r"\bprocessors?\b": "CPU, GPU, core",
    r"\bof (?:one's|users'|the user's|your) own\b|\bof yours\b": "custom, separate",
    r"\bin (?:the )?place of\b": "instead of",
    r"\b(?:numbers?|values?|integers?|floats?|functions?) of Python\b": "Python number, Python value",
    r"\bis none\b|(?<!here )\b(?:is|are) no (?!longer\b|more\b|less\b)": "is not a, is not one of",
    r"\b(?:no|without) axes\b": "scalar",
    r"\baxes of space\b": "spatial axes",
    r"\bfor ever\b": "forever",
    r"\banew\b": "again",
    r"\bin vain\b": "without success",
    r"\bdo(?:es)? without\b": "needs no, uses no",
    r", of which\b": "a second sentence",
}
"""Phrases that have to be read twice, and what to say; none is looked for in code."""
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"decisions", "internals", "programs"} & {*p.parts}),
]
"""The pages. Decisions are dated, and stay as they were written; ``internals`` and ``programs`` are copies."""


def prose(page: str) -> str:
    """Return the text of a page with its code left blank, so that lines keep their numbers."""
    without_blocks = re.sub(r"^ *(```+|~~~+).*?^ *\1", lambda m: "\n" * m[0].count("\n"), page, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", without_blocks)


def messages(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of three words or more in the code of a module, without its docstrings; ``{}`` for values in them."""
    nodes = list(ast.walk(module))
    others: set[ast.AST] = {n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    others |= {part for n in nodes if isinstance(n, ast.JoinedStr) for part in n.values}
    for node in nodes:
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in others:
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        if text.count(" ") >= 2:
            yield node.lineno, text


def stiff(text: str) -> list[tuple[int, str, str]]:
    """The phrases in a text that have to be read twice: the line's number, counted from 0, the phrase, what to say."""
    found = [(m, instead) for phrase, instead in SENTENCES.items() for m in re.finditer(phrase, text)]
    return [(text.count("\n", 0, m.start()), m[0], instead) for m, instead in found]


def test_pages_have_no_phrases_that_are_read_twice() -> None:
    found = [
        f"{page.relative_to(ROOT)}:{line + 1}: {phrase}: say {instead}"
        for page in PAGES
        for line, phrase, instead in stiff(prose(page.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


def test_messages_have_no_phrases_that_are_read_twice() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {phrase}: say {instead}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in messages(ast.parse(path.read_text(encoding="utf-8")))
        for _, phrase, instead in stiff(text)
    ]
    assert not found, "\n".join(found)


def test_a_phrase_is_found_in_pages_and_messages_and_not_in_code() -> None:
    assert not stiff(prose("```\nfor ever\n```\n`anew` there is no x, and each of which\n"))
    assert [line for line, *_ in stiff(prose("a\nb\n\n```\nx anew\n```\nmade anew"))] == [6]
    module = ast.parse('"""It is no text."""\nraise ValueError(f"{x} is no array of " "numbers")\ny = "is no"\n')
    assert list(messages(module)) == [(2, "{} is no array of numbers")]
    assert [phrase for _, phrase, _ in stiff("{} is no array of numbers")] == ["is no "]
