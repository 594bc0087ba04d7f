"""An import hook that serves ``jax`` and its submodules from Pullback's modules.

A module ``jax.x.y`` has the names of ``pullback.compat.extras.x.y`` and of ``pullback.x.y``, if these modules exist.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from types import FrameType, ModuleType
from typing import Any

import pullback
from pullback.backends.compiler.backend import ADAPTER
from pullback.compat.refusals import advice
from pullback.core.array import Array
from pullback.core.config import config, obey_jax_environment
from pullback.core.errors import CompatError
from pullback.core.source import is_internal

VERSION = "0.10.2"
"""The version of JAX whose API is served."""

_OURS, _EXTRAS = "pullback", "pullback.compat.extras"
_PUBLIC = {"core", *pullback.__all__}
_missing: dict[str, str] = {}
_modules_of_kinds: dict[type, str] = {}


def install() -> None:
    """Make ``import jax`` import Pullback, in this process from now on; a second call has no effect.

    Random numbers are generated in JAX's default layout: the switch ``threefry_partitionable`` is turned on. JAX's
    environment variables, such as ``JAX_ENABLE_X64=1``, set the switches of their names.

    Raises:
      CompatError: the real JAX is imported already (an ImportError).
      ArgumentError: a variable has a value that its switch does not take (a ValueError).

    It belongs to the first lines of a program.

    >>> import pullback.compat
    >>> pullback.compat.install()  # doctest: +SKIP
    >>> import jax, jax.numpy as jnp  # doctest: +SKIP
    >>> print(jax.grad(jnp.tanh)(2.0))  # doctest: +SKIP
    0.07065082
    """
    if _installed():
        return
    if "jax" in sys.modules:
        file = getattr(sys.modules["jax"], "__file__", "an unknown place")
        raise CompatError(
            f"pullback.compat.install: the package jax is already imported, from {file}. Call install() before "
            f"anything imports jax, or start the program with python -m pullback run."
        )
    before = {"threefry_partitionable": config.threefry_partitionable}
    config.update("threefry_partitionable", True)
    before = {**obey_jax_environment(), **before}
    sys.meta_path.insert(0, _Finder(before))
    for kind in _kinds_of_arrays():
        _name_as_jax(kind)
    Array.__init_subclass__ = classmethod(_name_as_jax)  # type: ignore[assignment]


def uninstall() -> None:
    """Undo :func:`install`: later imports of ``jax`` import the real one, and switches have their earlier values.

    Names that a program has imported stay unchanged. Without a previous :func:`install` it has no effect.

    >>> from pullback.compat.serving import uninstall
    >>> uninstall()
    """
    for finder in _installed():
        sys.meta_path.remove(finder)
        for name, value in finder.before.items():
            config.update(name, value)
    if "__init_subclass__" in Array.__dict__:
        del Array.__init_subclass__
    for kind in _kinds_of_arrays():
        kind.__module__ = _modules_of_kinds.pop(kind, kind.__module__)
    for name in [name for name, module in sys.modules.items() if isinstance(module, Served)]:
        del sys.modules[name]
    _missing.clear()


def _installed() -> list[_Finder]:
    return [finder for finder in sys.meta_path if isinstance(finder, _Finder)]


def _kinds_of_arrays() -> list[type]:
    """Return the class of arrays and its subclasses, which are tracers for the most part."""
    kinds: list[type] = [Array]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    return kinds


def _name_as_jax(kind: type) -> None:
    """Give a class of arrays a module's name of JAX: Autoray chooses functions by the package of an array's class."""
    if kind.__module__.startswith(f"{_OURS}."):
        _modules_of_kinds[kind] = kind.__module__
        kind.__module__ = "jax._src.array"


def missing_names() -> dict[str, str]:
    """Return the names of JAX that a program used and Pullback lacks, each with the location of its first use.

    After ``hasattr(jax, "no_such_name")`` it has ``"jax.no_such_name"``.

    Returns:
      A dictionary from full names, such as ``"jax.no_such_name"``, to ``"file:line"``; a copy.

    >>> from pullback.compat.serving import missing_names
    >>> sorted(missing_names())
    []
    """
    return dict(_missing)


class Served(ModuleType):
    """A module with JAX's name and Pullback's contents, which are looked up at their first use."""

    _sources: tuple[ModuleType, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" and self.__name__ == "jax":  # the names of ``import *``, with lazy ones
            return [n for n in dir(self) if n[:1] != "_"]
        for source in self._sources:
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            if isinstance(value, ModuleType) and value.__name__.startswith(_OURS):
                continue  # served modules are imported by their names in JAX
            if not name.startswith("__"):
                self.__dict__[name] = value
            return value
        if _own_names(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise AttributeError(_refusal(self.__name__, name, self._sources))

    def __dir__(self) -> list[str]:
        names = set(self.__dict__)
        for source in self._sources:
            names.update(name for name in dir(source) if not _is_room(source, name))
        return sorted(name for name in names if name[:1] != "_" or name[:2] == "__")


def _is_room(source: ModuleType, name: str) -> bool:
    """Whether the attribute ``name`` of the module ``source`` is a module of Pullback without a counterpart in JAX."""
    value = source.__dict__.get(name)
    if not isinstance(value, ModuleType) or not value.__name__.startswith(_OURS):
        return False
    return not _own_names("jax" + value.__name__.removeprefix(_EXTRAS).removeprefix(_OURS))


def _refusal(module: str, name: str, sources: Iterable[ModuleType]) -> str:
    asker = _asker()
    if asker is not None and name[:1] != "_":  # tools probe for private attributes, such as _mock_name
        _missing.setdefault(f"{module}.{name}", asker)
    instead = advice(f"{module}.{name}")
    if instead:
        return f"module {module!r} has no attribute {name!r}: Pullback replaces jax here, and refuses it; use {instead}"
    near = difflib.get_close_matches(name, {known for source in sources for known in dir(source)}, 3)
    hint = f"; names near it: {', '.join(near)}" if near else ""
    if module == "jax" and name[:5] == "tree_" and hasattr(importlib.import_module("pullback.tree"), name[5:]):
        hint = f"; use jax.tree.{name[5:]}"
    return f"module {module!r} has no attribute {name!r}: Pullback replaces jax here, and does not have this name{hint}"


def _asker() -> str | None:
    """Return file and line of the innermost stack frame outside of Pullback and the import system.

    Returns None if a frame of the module ``ADAPTER``, through which Pullback calls jaxlib, is further inside.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == getattr(sys.modules.get(ADAPTER), "__file__", None):
            return None
        if not is_internal(file) and not file.startswith("<frozen"):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def _own_names(name: str) -> list[str]:
    """Return the names of Pullback's modules that provide the contents of the module ``name`` of JAX."""
    rest = name.removeprefix("jax")
    return [prefix + rest for prefix in (_EXTRAS, _OURS) if _has_spec(prefix, rest)]


def _has_spec(prefix: str, rest: str) -> bool:
    """Whether the module ``prefix + rest`` exists and is public; imports its parent packages to find out."""
    if prefix == _OURS and rest and (rest.startswith(".core.") or rest.split(".")[1] not in _PUBLIC):
        return False
    try:
        return importlib.util.find_spec(prefix + rest) is not None
    except ModuleNotFoundError:
        return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, before: dict[str, Any]) -> None:
        self.before = before  # the earlier values of the switches that install set

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "jax" and not name.startswith("jax."):
            return None
        sources = _own_names(name)
        if not sources:
            parent, _, last = name.rpartition(".")
            message = _refusal(parent, last, [importlib.import_module(parent)])
            raise ModuleNotFoundError(message.replace("has no attribute", "has no module"), name=name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Served(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert isinstance(module, Served)
        module._sources = tuple(importlib.import_module(name) for name in _own_names(module.__name__))
        module.__doc__ = module._sources[-1].__doc__
        module.__file__ = module._sources[-1].__file__

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "jax"):
            yield _Distribution()


class _Distribution(importlib.metadata.Distribution):
    """The distribution ``jax`` as seen by ``importlib.metadata``."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return importlib.import_module("pathlib").Path(__file__).parent / path
