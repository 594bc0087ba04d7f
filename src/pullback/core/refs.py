"""References: mutable cells that hold an array.

A cell belongs to the trace that was current when it was made. The operations that read and write it, and their form
in programs, are in ``transforms/traces/refs.py``.
"""

from __future__ import annotations

from typing import Any

from pullback.core import source
from pullback.core.types import AbstractValue, ShapedArray


class RefCell:
    """The state of a reference.

    Attributes:
      content: the array that the reference holds; a tracer if the array is traced, by ``home`` or by a trace around it.
      inner: the type of the content, which never changes; that of an array or a user's.
      home: the trace under which the reference was made; None if it was made in eager code.
      ended: why the reference cannot be used any more, for error messages; empty while the reference can be used.
      is_argument: whether the cell stands for a reference that the caller passed as an argument.
      made_at: the line that made the reference.
    """

    __slots__ = ("__weakref__", "content", "ended", "home", "inner", "is_argument", "made_at")

    def __init__(
        self, content: Any, home: Any, made_at: source.Location | None = None, inner: Any = None
    ) -> None:  # fmt: skip
        self.content = content
        self.inner: Any = content.aval if inner is None else inner
        self.home = home
        self.ended = ""
        self.is_argument = False
        self.made_at = made_at

    def described(self) -> str:
        """Return a description of the reference for error messages: its type, and the line that made it."""
        made = f" (made at {source.describe(self.made_at)})" if self.made_at else ""
        return f"a reference of type {AbstractRef(self.inner)}{made}"


class AbstractRef(AbstractValue):
    """The type of a reference.

    Args:
      inner_aval: the type of the array that the reference holds.
      memory_space: JAX's memory space of the array; stored, without effect.
      kind: JAX's note for checkpointing; stored, without effect.

    >>> from pullback import typeof
    >>> from pullback.ref import AbstractRef
    >>> AbstractRef(typeof(1.0))
    Ref{float32[]}
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

    def __format__(self, spec: str) -> str:  # as messages show it
        return format(f"Ref{{{self.inner_aval}}}", spec)

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval!s}}}"


def take_refs(leaves: list[Any]) -> dict[int, Any] | None:
    """Replace each reference in the list ``leaves`` by 0, in place.

    Return a dictionary from the index to the reference that was there, or None if there are no references.
    """
    found = {i: x for i, x in enumerate(leaves) if isinstance(x, RefCell)}
    for i in found:
        leaves[i] = 0
    return found or None


class RunsAgain(BaseException):
    """Raised when a function that the backward pass would run a second time uses a reference from outside of it.

    The exception never reaches the user: its handler traces the function to a program, which runs only once.
    """


class Outside:
    """The base class of hooks that add inputs and results to a program while it is traced; this one adds none.

    Its subclass ``Scope`` adds the references that the traced function captures.
    """

    def begin(self, trace: Any) -> None:
        """Prepare for the trace ``trace`` to record a program; a subclass may add inputs to the program here."""

    def inputs(self) -> list[Any]:
        """Return the additional inputs of the program, to append to the inputs of the traced function."""
        return []

    def results(self) -> list[Any]:
        """Return the additional results of the program, to append to the results of the traced function."""
        return []


NOTHING = Outside()
