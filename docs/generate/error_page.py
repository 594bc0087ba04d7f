"""The page of errors: what each class is, and which functions raise it when."""

from __future__ import annotations

import functools
import inspect

from pullback.core import errors

from . import names
from .docstrings import code, paragraph, raised, reference, trimmed
from .names import Name
from .reference import entry, heading, resolve

MOST = 12
"""How many functions an error lists."""
MODULE = "pullback.errors"
INTRODUCTION = (
    "Most errors of Pullback are errors of Python too, as the tree shows: ``except TypeError`` catches those that "
    "are a ``TypeError``. Below, each error lists functions that raise it, and when."
)


@functools.cache
def raisers() -> dict[str, list[tuple[Name, str]]]:
    """Return, for each error, the functions whose docstrings list it, with the words in which they do."""
    found: dict[str, list[tuple[Name, str]]] = {}
    for name in names.public_names().values():
        if name.kind in ("function", "class") and not name.second:
            for error, when in raised(name.doc):
                found.setdefault(error.rpartition(".")[2], []).append((name, when))
    return found


def _bases(cls: type) -> str:
    there = names.public_names()
    linked = []
    for base in cls.__bases__:
        full = f"{MODULE}.{base.__name__}"
        linked.append(trimmed(reference(base.__name__, full)) if full in there else f"``{base.__name__}``")
    return "Bases: " + ", ".join(linked) + "."


def _raised_by(name: Name) -> list[str]:
    listed = raisers().get(name.name, [])
    out = [_bases(name.value), ""]
    if not listed:
        return out
    out += [".. rubric:: Raised by", ""]
    for function, when in listed[:MOST]:
        find = functools.partial(resolve, function.module, frozenset[str]())
        link = trimmed(reference(function.full.removeprefix("pullback."), function.full))
        out += [f"* {link}: {paragraph([when or 'in some cases'], find)}", ""]
    return [*out, f"and {len(listed) - MOST} more.", ""] if len(listed) > MOST else out


def _order(name: Name) -> int:
    """Return the line of a class in its file, where the classes stand in the order of the tree."""
    return inspect.getsourcelines(name.value)[1]


def page() -> str:
    """Return the text of the page."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].splitlines()
    out = [*heading("Errors"), INTRODUCTION, ""]
    out += [*heading("The tree", "-"), *code(tree, "text"), f".. py:currentmodule:: {MODULE}", ""]
    described = [n for n in names.public_names().values() if n.kind == "exception" and not n.second]
    for name in sorted((n for n in described if n.module == MODULE), key=_order):
        out += [*heading(name.name, "-"), *entry(name, _raised_by)]
    others = [n for n in described if n.module != MODULE]
    for name in others:
        out += [*heading(name.full, "-"), f".. py:currentmodule:: {name.module}", "", *entry(name, _raised_by)]
    return "\n".join(out)
