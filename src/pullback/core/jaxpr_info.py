"""What equations and programs say of where they come from, in JAX's spelling."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from pullback.core import source
from pullback.core.errors import ArgumentError


class SourceInfo:
    """Where an equation was written.

    Attributes:
      location: the instruction in the user's program; it and the following are None where that is not known.
      scope: the named scopes and the pass of differentiation, as they are kept; None if there are none.
      file_name, function_name, line: its file, its function, and its line in the file.
      name_stack: the named scopes that it is in, separated by slashes.
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
    """What an equation is run under, in JAX's spelling: nothing here that the equation does not say itself.

    Attributes:
      compute_type, xla_metadata: None.
      manager: a context in which to bind the operation again.
    """

    __slots__ = ()
    compute_type = None
    xla_metadata = None

    @property
    def manager(self) -> AbstractContextManager[None]:
        return nullcontext()

    def __repr__(self) -> str:
        return "EqnContext()"


CONTEXT = EqnContext()


class DebugInfo(NamedTuple):
    """What is known of the function that a program was made of.

    Attributes:
      traced_for: what made the program.
      func_src_info: the function, and where it is; None where that is not known.
      arg_names: for each input the name of the argument; None where they are not known.
      result_paths: for each result where it was in what the function returned; None where that is not known.
    """

    traced_for: str
    func_src_info: str | None = None
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


UNKNOWN = DebugInfo("a program")


def changed(x: Any, changes: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of an object with some of them replaced."""
    unknown = sorted(changes.keys() - set(names))
    if unknown:
        raise ArgumentError(
            f"{type(x).__name__}.replace: no attribute {', '.join(unknown)}; there are {', '.join(names)}"
        )
    return {name: changes.get(name, getattr(x, name)) for name in names}
