"""No file of the package imports, within a function either, one that imports it."""

from __future__ import annotations

import ast
from pathlib import Path

import pullback

ROOT = Path(pullback.__file__).parent
Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """The files of the package by the names of their modules."""
    names = {}
    for path in ROOT.rglob("*.py"):
        parts = ("pullback", *path.relative_to(ROOT).with_suffix("").parts)
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """What a file imports of the package, by whatever statement, wherever it stands."""
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.rsplit(".", node.level - 1)[0]
                base = f"{above}.{base}" if base else above
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in known else base)
    return (found & known.keys()) - {name}


def circles(graph: Graph) -> list[list[str]]:
    """The sets of files that reach each other: Tarjan's strongly connected components of more than one."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            circle = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_no_file_imports_one_that_imports_it() -> None:
    known = modules()
    assert len(known) > 200
    assert circles({name: imports(name, path, known) for name, path in known.items()}) == []
