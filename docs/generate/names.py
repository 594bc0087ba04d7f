"""The public names: the modules that completion offers, and what each of them has."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from dataclasses import dataclass
from types import GenericAlias, ModuleType, UnionType
from typing import Any

from pullback.core.trace import Primitive

PACKAGE = "pullback"
NOT_OFFERED = ("pullback.compat",)
"""Modules for users that completion does not offer, since ``import pullback`` does not bring them."""
SECOND = tuple(
    f"pullback.{room}"
    for room in ("ad", "api_util", "example_libraries", "experimental", "extend", "interpreters", "typing")
)
"""Modules whose names are described in another module, if one has them too."""
ERRORS = "pullback.errors"
DESCRIBED = ("class", "exception", "function")
"""The kinds of names that have a docstring of their own."""


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
      module: the module that offers it, such as ``pullback.numpy``.
      name: the name there.
      value: its value.
      kind: ``"class"``, ``"exception"``, ``"function"``, ``"primitive"``, ``"type"`` for a union of types, ``"data"``,
        or ``"foreign"`` for an object of another library.
      main: the full name under which the value is described; another one than ``full`` if this name is a second one.
    """

    module: str
    name: str
    value: Any
    kind: str
    main: str = ""

    @property
    def full(self) -> str:
        """The module and the name."""
        return f"{self.module}.{self.name}"

    @property
    def second(self) -> bool:
        """Whether the value is described under another name."""
        return self.main != self.full

    @property
    def doc(self) -> str:
        """The docstring, and an empty one for a value that has only that of its type."""
        return docstring(self.value) if self.kind in DESCRIBED else ""


def docstring(value: Any) -> str:
    """Return the docstring of a function, class or method; not that of its type."""
    value = getattr(value, "func", value) if isinstance(value, functools.partial) else value
    doc = inspect.getdoc(value) or ""
    return "" if not inspect.isclass(value) and doc == (inspect.getdoc(type(value)) or "") else doc


def owner_of(value: Any) -> str:
    """Return the name of the module that made ``value``, or else of the one that made its type."""
    module = getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None)
    return module if isinstance(module, str) else str(type(value).__module__)


def kind_of(value: Any) -> str:
    """Return the kind of a public value; see :class:`Name`."""
    if isinstance(value, Primitive):
        return "primitive"
    if isinstance(value, UnionType | GenericAlias) or type(value).__module__ == "typing":
        return "type"
    if inspect.isclass(value) or callable(value):
        if owner_of(value).partition(".")[0] != PACKAGE:
            return "foreign"
        if not inspect.isclass(value):
            return "function"
        return "exception" if issubclass(value, BaseException) else "class"
    return "data"


@functools.cache
def public_modules() -> dict[str, ModuleType]:
    """Return the modules that completion offers, from ``pullback`` on, and those that are imported by name."""
    found: dict[str, ModuleType] = {}
    todo = [PACKAGE, *NOT_OFFERED]
    while todo:
        name = todo.pop()
        found[name] = module = importlib.import_module(name)
        todo += [f"{name}.{n}" for n, value in _members(module) if getattr(value, "__name__", "") == f"{name}.{n}"
                 and inspect.ismodule(value)]  # fmt: skip
    return dict(sorted(found.items()))


def _members(module: ModuleType) -> list[tuple[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        offered = module.__all__ if module.__name__ in NOT_OFFERED else dir(module)
        return [(name, getattr(module, name)) for name in offered if name[0] != "_"]


@functools.cache
def public_names() -> dict[str, Name]:
    """Return the public names with their modules, such as ``pullback.numpy.sin``; modules are left out."""
    found = [
        Name(module, name, value, kind_of(value))
        for module, there in public_modules().items()
        for name, value in _members(there)
        if not inspect.ismodule(value)
    ]
    mains: dict[int, Name] = {}
    for name in sorted(found, key=_rank):
        if name.kind in DESCRIBED:
            mains.setdefault(id(name.value), name)
    named = [Name(n.module, n.name, n.value, n.kind, mains.get(id(n.value), n).full) for n in found]
    return {name.full: name for name in named}


def _rank(name: Name) -> tuple[Any, ...]:
    """Return what orders the names of one value: the first is the one under which it is described."""
    own = getattr(name.value, "__name__", "")
    elsewhere = name.kind == "exception" and name.module != ERRORS
    return elsewhere, name.module.startswith(SECOND), name.name != own, name.module.count("."), name.module, name.name


def names_of(module: str) -> list[Name]:
    """Return the public names of a module, in alphabetical order."""
    return sorted((n for n in public_names().values() if n.module == module), key=lambda n: n.name.lower())


def summary(doc: str) -> str:
    """Return the first sentence of a docstring."""
    first = " ".join(doc.strip().split("\n\n")[0].split())
    sentence, stop, _ = first.partition(". ")
    return sentence + "." if stop else first


@functools.cache
def short_names() -> dict[str, str]:
    """Return, for what users write (``vmap``, ``jnp.sin``, ``lax.scan``), the full public name."""
    found: dict[str, str] = {}
    for full in public_names():
        short = full.removeprefix(f"{PACKAGE}.")
        found[full] = full
        if "." in short and not short.startswith(("numpy.", "scipy.")):  # which are of NumPy and SciPy in docstrings
            found.setdefault(short, full)
        if short.startswith("numpy."):
            found.setdefault(f"jnp.{short.removeprefix('numpy.')}", full)
    return found
