"""Public names of modules: ``__all__``, ``__dir__``, and lazy imports by ``__getattr__``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

_NONE: Mapping[str, Any] = {}
_TOOLS = frozenset(("Any", "TYPE_CHECKING", "annotations"))
"""Names that modules import for their own use and never offer."""


_OFTEN_MEANT = [
    "pullback", "pullback.numpy", "pullback.nn", "pullback.lax", "pullback.random", "pullback.tree",
    "pullback.numpy.linalg", "pullback.numpy.fft", "pullback.scipy.special", "pullback.scipy.linalg",
    "pullback.nn.initializers", "pullback.derivatives", "pullback.debug", "pullback.sharding",
]  # fmt: skip
"""The modules in which a name is looked for that another module lacks. Their names are known without their contents."""


class _Missing(str):
    """The message about a name that a module lacks, whose end is looked up when the message is shown.

    Python asks modules for names that are not there as it imports their submodules, and programs do by ``hasattr``.
    """

    __slots__ = ("module", "name")
    module: str
    name: str

    def __str__(self) -> str:
        return f"{self[:]}{hint(self.module, self.name)}"


def hint(module: str, name: str) -> str:
    """Return the end of the message about a name that a module lacks: which modules have it, or one like it."""
    if name[:1] == "_" or module.partition(".")[0] != "pullback":
        return ""
    import difflib  # which takes a millisecond, and is needed for errors only

    names = {other: importlib.import_module(other).__dict__.get("__all__", ()) for other in _OFTEN_MEANT}
    names.pop(module, None)
    having = [other for other, theirs in names.items() if name in theirs]
    if having:
        return f"; {' and '.join(having[:2])} {'has' if len(having) == 1 else 'have'} it"
    if module == "pullback.random" and name in _OF_NUMPY_RANDOM:
        return f"; write {_OF_NUMPY_RANDOM[name]}"
    if difflib.get_close_matches(name, dir(sys.modules.get(module)), 1, 0.8):
        return ""  # Python says which
    for other, theirs in names.items():
        near = difflib.get_close_matches(name, (like for like in theirs if like[0] == name[0]), 1, 0.85)
        if near:
            return f"; {other} has {near[0]}"
    return ""


_OF_NUMPY_RANDOM = {
    "default_rng": "random.key(seed)",
    "integers": "random.randint(key, shape, minval, maxval)",
    "rand": "random.uniform(key, shape)",
    "randn": "random.normal(key, shape)",
    "seed": "random.key(seed), and pass the key to each function",
    "shuffle": "random.permutation(key, x)",
    "standard_normal": "random.normal(key, shape)",
}
"""What to write instead of functions of NumPy's module for random numbers, which ``pullback.random`` does not have."""


def not_there(module: str, name: str) -> AttributeError:
    """Return the error for a name that a module lacks; it says which other modules have the name, or one like it.

    Args:
      module: the full name of the module.
      name: the name.

    >>> from pullback.core.faces import not_there
    >>> print(not_there("pullback.numpy", "relu"))
    module 'pullback.numpy' has no attribute 'relu'; pullback.nn has it
    """
    message = _Missing(f"module {module!r} has no attribute {name!r}")
    message.module, message.name = module, name
    return AttributeError(message, name=name, obj=sys.modules.get(module))


class Face:
    """The public names of a module; some are imported only when they are first used (see :func:`face`).

    Attributes:
      late: for each name that is imported at its first use, the module to import it from and its name there.
      modules: the names of the module's public submodules.
      namespace, made, others, otherwise: the arguments of :func:`face`.
    """

    __slots__ = ("late", "made", "modules", "namespace", "others", "otherwise")

    def __init__(
        self,
        namespace: dict[str, Any],
        late: Mapping[str, str | Iterable[str]],
        modules: str,
        made: Mapping[str, Callable[[], Any]],
        others: Sequence[str],
        otherwise: Callable[[str], Any] | None,
    ) -> None:
        self.namespace = namespace
        self.late: dict[str, tuple[str, str]] = {}
        for owner, names in late.items():
            for name in names.split() if isinstance(names, str) else names:
                new, _, old = name.partition("=")
                self.late[new] = owner, old or new
        self.modules = frozenset(modules.split())
        self.made = made
        self.others = others
        self.otherwise = otherwise

    def find(self, name: str) -> Any:
        """Return the value of a name that the module's namespace does not contain, or raise AttributeError.

        This method is the module's ``__getattr__``. A name of ``late`` or a submodule is imported, and its value is
        stored in the namespace.
        """
        module = self.namespace["__name__"]
        if name in self.late:
            owner, there = self.late[name]
            value = getattr(importlib.import_module(owner, self.namespace["__package__"]), there)
        elif name in self.modules:
            value = importlib.import_module(f"{module}.{name}")
        elif name in self.made:
            return self.made[name]()
        else:
            for other in map(importlib.import_module, self.others):
                if hasattr(other, name):
                    return getattr(other, name)
            if self.otherwise is not None and name[:2] != "__":
                return self.otherwise(name)
            raise not_there(module, name)
        self.namespace[name] = value
        return value

    def own(self) -> set[str]:
        """Return the public names that the module defines itself or imports lazily, without those of ``others``."""
        there = {
            name
            for name, value in self.namespace.items()
            if name[0] != "_" and name not in _TOOLS and not isinstance(value, ModuleType)
        }
        return there.union(self.late, self.modules, self.made)

    def listed(self) -> list[str]:
        """Return the sorted list of the public names of the module, with those of ``others``.

        This method is the module's ``__dir__``.
        """
        written = self.namespace.get("__all__")
        names = self.own() if written is None else self.modules.union(written)
        for other in map(importlib.import_module, self.others):
            names = names.union(name for name in dir(other) if name[0] != "_")
        return sorted(names)


def face(
    namespace: dict[str, Any],
    late: Mapping[str, str | Iterable[str]] = _NONE,
    *,
    modules: str = "",
    made: Mapping[str, Callable[[], Any]] = _NONE,
    others: Sequence[str] = (),
    otherwise: Callable[[str], Any] | None = None,
) -> None:
    """Define a module's ``__dir__``, and ``__getattr__`` for names that are imported or computed on first access.

    If the module has no ``__all__``, and ``others`` is empty, define ``__all__``: all names that do not begin with an
    underscore. Call this function at the end of the module, or directly below its ``__all__``.

    Args:
      namespace: the module's ``globals()``.
      late: maps a module to the names to import from it when they are first used: a sequence of names, or one string
        with spaces between them. ``"new=old"`` imports ``old`` as ``new``. A module that begins with a dot is relative
        to the package.
      modules: the names of public submodules, with spaces between them; each is imported when it is first used.
      made: maps a name to the function that computes its value at each access.
      others: modules whose public names this module offers too.
      otherwise: takes any other name, and returns its value or raises AttributeError.

    >>> from pullback.core.faces import face
    >>> module = {"__name__": "pullback.some", "__package__": "pullback", "f": len, "_g": len}
    >>> face(module, {"math": "sin cosine=cos"}, made={"one": lambda: 1})
    >>> module["__all__"]
    ['cosine', 'f', 'one', 'sin']
    >>> module["__getattr__"]("cosine")(0.0), module["__getattr__"]("one")
    (1.0, 1)
    """
    shown = Face(namespace, late, modules, made, others, otherwise)
    if shown.late or modules or made or others or otherwise:
        namespace["__getattr__"] = shown.find
    if "__all__" not in namespace and not others:
        namespace["__all__"] = sorted(shown.own())
    namespace["__dir__"] = shown.listed
