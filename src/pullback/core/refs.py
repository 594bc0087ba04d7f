"""References: cells that hold an array, and whose content changes.

A cell belongs to the trace that was current when it was made. What reads and writes it, and what becomes of that in
programs, is in ``transforms/traces/refs.py``.
"""

from __future__ import annotations

from typing import Any

from pullback.core import source
from pullback.core.types import ShapedArray


class RefCell:
    """What a reference holds.

    Attributes:
      content: the array, or a tracer of ``home`` or of a trace below it.
      inner: the type of the content, which never changes.
      home: the trace under which the reference was made; None for the one that evaluates.
      ended: why it cannot be used any more, for error messages; empty as long as it can.
      is_argument: whether it stands for a reference of the caller's, an argument.
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
        """The reference in an error message: its type, and the line that made it."""
        made = f" (made at {source.describe(self.made_at)})" if self.made_at else ""
        return f"a reference of type {AbstractRef(self.inner)}{made}"


class AbstractRef:
    """The type of a reference.

    Args:
      inner_aval: the type of the array that it holds.
      memory_space: where the array is, in words of JAX's; kept as it is.
      kind: JAX's note on what checkpointing makes of it; kept as it is.

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
    """The references among some leaves, by their numbers, and numbers in their place; None if there are none."""
    found = {i: x for i, x in enumerate(leaves) if isinstance(x, RefCell)}
    for i in found:
        leaves[i] = 0
    return found or None


class RunsAgain(BaseException):
    """A function that is to be run again in the backward pass used a reference of its surroundings.

    It never reaches the user: what runs the function makes a program of it instead, which runs once.
    """


class Outside:
    """What a program under construction uses of its surroundings beside values; ``Scope`` notes references."""

    def begin(self, trace: Any) -> None:
        """Prepare for a program."""

    def inputs(self) -> list[Any]:
        """The inputs that the program has for it, after the others."""
        return []

    def results(self) -> list[Any]:
        """The results that the program has for it, after the others."""
        return []


NOTHING = Outside()
