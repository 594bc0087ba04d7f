"""Source information and contexts of equations, and debug information of programs, in JAX's spelling."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from pullback.core import source
from pullback.core.errors import ArgumentError
from pullback.core.provenance import with_metadata


class SourceInfo:
    """The source location of an equation. All attributes are None if the location is unknown.

    Attributes:
      location: the instruction in the user's program.
      scope: the named scopes and the pass of differentiation, as a ``source.Scope``; None outside of scopes.
      file_name, function_name, line: the file, the function, and the line in the file.
      name_stack: the named scopes as text, separated by slashes.

    >>> from pullback.extend.source_info_util import current
    >>> current().function_name
    '<module>'
    """

    __slots__ = ("file_name", "function_name", "line", "location", "name_stack", "scope")

    def __init__(self, location: source.Location | None, scope: source.Scope | None) -> None:
        self.location, self.scope = location, scope
        self.file_name = location[0].co_filename if location else None
        self.function_name = location[0].co_name if location else None
        self.line = source.line_number(location) if location else None
        self.name_stack = scope.label("").removesuffix("/") if scope else ""

    def __repr__(self) -> str:
        return source.describe(self.location)


class EqnContext:
    """The context in which an equation is evaluated, in JAX's spelling.

    Attributes:
      compute_type: None.
      xla_metadata: the metadata for the compiler as a dictionary; None without any.
      manager: a context manager in which an interpreter evaluates the equation, so that its operations have the
        metadata too.
    """

    __slots__ = ("xla_metadata",)
    compute_type = None

    def __init__(self, metadata: source.Metadata = ()) -> None:
        self.xla_metadata = dict(metadata) or None

    @property
    def manager(self) -> AbstractContextManager[None]:
        return with_metadata(self.xla_metadata) if self.xla_metadata else nullcontext()

    def __repr__(self) -> str:
        return f"EqnContext(xla_metadata={self.xla_metadata})" if self.xla_metadata else "EqnContext()"


CONTEXT = EqnContext()


class DebugInfo(NamedTuple):
    """A description of the function from which a program was traced.

    Attributes:
      traced_for: the transformation that traced the function, such as ``jit``.
      func_src_info: the function's name and location; None if unknown.
      arg_names: for each input the name of the argument; None if unknown.
      result_paths: for each result its path in the function's return value; None if unknown.

    >>> from pullback.extend.core import DebugInfo
    >>> info = DebugInfo("jit", "loss at model.py:3", ("weights", "batch"))
    >>> info.traced_for, info.arg_names
    ('jit', ('weights', 'batch'))
    """

    traced_for: str
    func_src_info: str | None = None
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


UNKNOWN = DebugInfo("a program")


def changed(x: Any, changes: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return ``{name: getattr(x, name)}`` for the attributes ``names``, updated by ``changes``."""
    unknown = sorted(changes.keys() - set(names))
    if unknown:
        raise ArgumentError(
            f"{type(x).__name__}.replace: no attribute {', '.join(unknown)}; there are {', '.join(names)}"
        )
    return {name: changes.get(name, getattr(x, name)) for name in names}
