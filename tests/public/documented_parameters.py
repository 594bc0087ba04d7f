"""Lists the parameters of JAX's documented functions.

``make names`` writes them to ``documented_parameters.txt``, by a Python that has JAX, and prints which of the names in
``documented_names.txt`` JAX lacks; ``test_documented_names`` reads both lists.
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
INTERNAL = ("jax.errors", "jax.experimental.checkify", "jax.export", "jax.extend.core", "jax.extend.lowering",
            "jax.ref", "jax.stages")  # fmt: skip
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
    return [p.name for p in signature.parameters.values() if p.kind in NAMED and p.name[0] != "_"]


def _found(module: str, name: str) -> Any:
    """What JAX has under a name of a module; ``MISSING`` if it has nothing."""
    try:
        return getattr(import_module(module), name, MISSING)
    except ImportError:
        return MISSING


MISSING = object()


def _write_all() -> None:
    import jax

    version = jax.__version__
    out = [f"# Parameters of functions of JAX {version} that can be given by name; see documented_parameters.py."]
    for module, names in documented():
        found = {}
        for name in names:
            function = _found(module, name)
            if function is MISSING:
                print(f"JAX {version} has no {module}.{name}")
            not_made = isinstance(function, EnumType) or (isinstance(function, type) and module in INTERNAL)
            made_by_users = callable(function) and not not_made
            given = parameters(function) if made_by_users else []
            if given:
                found[name] = given
        if found:
            words = " ".join(f"{name}({','.join(given)})" for name, given in found.items())
            out += ["", module]
            out.append(textwrap.fill(words, 118, initial_indent="  ", subsequent_indent="  ", break_long_words=False,
                                     break_on_hyphens=False))  # fmt: skip
    (HERE / "documented_parameters.txt").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    _write_all()
