"""References: mutable cells that hold an array.

A cell belongs to the trace that was current when it was made. The operations that read and write it, and their form
in programs, are in ``transforms/traces/refs.py``.
"""

from __future__ import annotations

from typing import Any

from pullback.core import source
from pullback.core.types import ShapedArray


class RefCell:
    """The state of a reference.

    Attributes:
      content: the array, or a tracer of ``home`` or of an enclosing trace.
      inner: the type of the content, which never changes.
      home: the trace under which the reference was made; None if it was made in eager code.
      ended: the reason why it cannot be used any more, for error messages; empty while it can.
      is_argument: whether it stands for a reference that the caller passed as an argument.
      made_at: the line that made it.
    """

    __slots__ = ("__weakref__", "content", "ended", "home", "inner", "is_argument", "made_at")

    def __init__(self, content: Any, home: Any, made_at: source.Location | None = None) -> None:
        self.content = content
        self.inner: ShapedArray = content.aval
        self.home = home
        self.ended = ""
        self.is_argument = False
        self.made_at = made_at

    def described(self) -> str:
        """Describe the reference for error messages: its type, and the line that made it."""
        made = f" (made at {source.describe(self.made_at)})" if self.made_at else ""
        return f"a reference of type {AbstractRef(self.inner)}{made}"


class AbstractRef:
    """The type of a reference.

    Args:
      inner_aval: the type of the array that it holds.
      memory_space: JAX's memory space of the array; stored, without effect.
      kind: JAX's note for checkpointing; stored, without effect.

    >>> from pullback.core.array import typeof
    >>> AbstractRef(typeof(1.0))
    Ref{f32[]}
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: object = None, kind: object = None) -> None:
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind

    shape = property(lambda self: self.inner_aval.shape, doc="The size of each axis.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="The type of an element.")
    weak_type = property(lambda self: self.inner_aval.weak_type, doc="Whether what is read gives way to other types.")
    ndim = property(lambda self: len(self.inner_aval.shape), doc="The number of axes.")
    size = property(lambda self: self.inner_aval.size, doc="The number of elements.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.inner_aval, self.memory_space, self.kind

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"


def take_refs(leaves: list[Any]) -> dict[int, Any] | None:
    """Replace the references among ``leaves`` by 0, in place; return them by index, or None if there are none."""
    found = {i: x for i, x in enumerate(leaves) if isinstance(x, RefCell)}
    for i in found:
        leaves[i] = 0
    return found or None


class RunsAgain(BaseException):
    """Raised when a function that the backward pass would run again uses a reference of its enclosing scope.

    It never reaches the user: the caller then traces the function to a program, which runs only once.
    """


class Outside:
    """The base class of hooks that add inputs and results to a program under construction.

    ``Scope`` adds the references that the traced function captures.
    """

    def begin(self, trace: Any) -> None:
        """Prepare for the tracing of a program by ``trace``, such as by adding inputs to it."""

    def inputs(self) -> list[Any]:
        """Return the additional inputs of the program, to append to the inputs of the traced function."""
        return []

    def results(self) -> list[Any]:
        """Return the additional results of the program, to append to the results of the traced function."""
        return []


NOTHING = Outside()
