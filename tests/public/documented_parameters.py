"""Lists the parameters of JAX's documented functions.

``python -m tests.public.documented_parameters`` prints them, by a Python that has JAX. ``documented_parameters.txt`` is
what it printed for JAX 0.10.2; ``test_documented_names`` reads both lists.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from enum import EnumType
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INTERNAL = ("jax.errors", "jax.extend.core", "jax.stages")
"""Modules whose classes are not for users to make instances of."""
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def documented(file: str = "documented_names.txt") -> Iterator[tuple[str, list[str]]]:
    """Each module of a list, as JAX calls it, and the words that stand below it."""
    module, words = "", list[str]()
    for line in [*(HERE / file).read_text().splitlines(), "end"]:
        if line.startswith(" "):
            words += line.split()
        elif line and not line.startswith("#"):
            if module:
                yield module, words
            module, words = line.strip(), []


def parameters(function: Any) -> list[str]:
    """The parameters that can be given by name; none of what has no signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    return [p.name for p in signature.parameters.values() if p.kind in NAMED]


def _print_all() -> None:
    print("# Parameters of documented functions of JAX 0.10.2 that can be given by name; see documented_parameters.py.")
    for module, names in documented():
        found = {}
        for name in names:
            function = getattr(import_module(module), name, None)
            not_made = isinstance(function, EnumType) or (isinstance(function, type) and module in INTERNAL)
            made_by_users = callable(function) and not not_made
            given = parameters(function) if made_by_users else []
            if given:
                found[name] = given
        if found:
            words = " ".join(f"{name}({','.join(given)})" for name, given in found.items())
            print(f"\n{module}")
            print(textwrap.fill(words, 118, initial_indent="  ", subsequent_indent="  ", break_long_words=False,
                                break_on_hyphens=False))  # fmt: skip


if __name__ == "__main__":
    _print_all()
