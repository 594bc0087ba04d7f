"""The pages of errors: their tree, and for each class its cause, its cure, and which functions raise it when."""

from __future__ import annotations

import functools
import re

from pullback.core import errors
from pullback.explain import explanation

from . import names, reference
from .docstrings import code, escaped, formatted, indented, paragraph, raised, trimmed
from .docstrings import reference as link
from .names import Name

MOST = 12
"""How many functions an error lists."""
MODULE = names.ERRORS
INTRODUCTION = (
    "Most errors of Pullback are errors of Python too, as the tree shows: ``except TypeError`` catches those that "
    "are a ``TypeError``. Each has a page with its cause, a program that fails, the same program mended, and the "
    "functions that raise it. ``python -m pullback explain ShapeError`` prints the same without a network."
)
IN_TREE = re.compile(r"^([\s│├└─]*)([A-Z]\w+)(.*)$")


@functools.cache
def raisers() -> dict[str, list[tuple[Name, str]]]:
    """Return, for each error, the functions whose docstrings list it, with the words in which they do."""
    found: dict[str, list[tuple[Name, str]]] = {}
    for name in names.public_names().values():
        if name.kind in ("function", "class") and not name.second:
            for error, when in raised(name.doc):
                found.setdefault(error.rpartition(".")[2], []).append((name, when))
    return found


def _linked(name: str) -> str:
    """Return the name of an error as a link, and that of a class of Python's as it is."""
    full = f"{MODULE}.{name}"
    return trimmed(link(name, full)) if full in names.public_names() else f"``{name}``"


def _kinds(name: Name) -> list[str]:
    """Return what an error is a kind of, and what its own kinds are."""
    below = [cls.__name__ for cls in name.value.__subclasses__() if f"{MODULE}.{cls.__name__}" in names.public_names()]
    out = [f"Bases: {', '.join(_linked(base.__name__) for base in name.value.__bases__)}.", ""]
    return [*out, f"Kinds of it: {', '.join(map(_linked, sorted(below)))}.", ""] if below else out


def _explained(name: Name) -> list[str]:
    """Return the cause and the cure of an error, each with its program."""
    found, find = explanation(name.name), reference.resolver(name)
    out = [".. rubric:: Cause", "", *formatted(found.cause, find)]
    out += code(found.failing.splitlines(), "python") if found.failing else []
    out += [".. rubric:: Cure", "", *formatted(found.cure, find)]
    out += code(found.mended.splitlines(), "python") if found.mended else []
    return [*out, *formatted(found.more, find)]


def _raised_by(name: Name) -> list[str]:
    listed = raisers().get(name.name, [])
    done = "Issued" if issubclass(name.value, Warning) else "Raised"
    out = [f".. rubric:: {done} by", ""] if listed else []
    for function, when in listed[:MOST]:
        find = functools.partial(reference.resolve, function.module, frozenset[str]())
        shown = trimmed(link(function.full.removeprefix("pullback."), function.full))
        out += [f"* {shown}: {paragraph([when or 'in some cases'], find)}", ""]
    return [*out, f"and {len(listed) - MOST} more.", ""] if len(listed) > MOST else out


def page_of(name: Name) -> str:
    """Return the text of the page of an error."""
    return reference.page_of(name, lambda name: [*_kinds(name), *_explained(name), *_raised_by(name)])


def _in_tree(line: str) -> str:
    """Return a line of the tree, in which the name of an error is a link to its page."""
    found = IN_TREE.match(line)
    if found is None or f"{MODULE}.{found[2]}" not in names.public_names():
        return escaped(line)
    return f"{found[1]}:doc:`{found[2]} <{MODULE}.{found[2]}>`{escaped(found[3])}"


def page() -> str:
    """Return the text of the page with the tree of all errors."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[0].splitlines()
    out = [*reference.heading("Errors"), INTRODUCTION, "", ".. parsed-literal::", ""]
    return "\n".join([*out, *indented([_in_tree(line) for line in tree], 3), ""])
