"""Mutable values of users' types that a program closes over: their arrays are references while it is traced.

An operation on such a value reads or replaces the arrays that the object holds. In a loop, a branch or a compiled
function, an object from outside must not hold arrays of the program. So each array of the object stands as a reference,
:class:`Leaf`, whose content is the array in the object. The program under construction notes the references, as those
that ``new_ref`` makes: their contents become inputs, and new contents results. During an operation the object holds
the contents that the program sees; afterwards it holds its own again, and the references have what has changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pullback.core import source
from pullback.core.array import as_array, typeof
from pullback.core.errors import RefError
from pullback.core.trace import Trace, Tracer, state
from pullback.core.user_types import mutable_type
from pullback.transforms.functions.mutable_values import made_under
from pullback.transforms.traces.refs import Ref, Scope, content_of, enclosing_program, like, write
from pullback.transforms.traces.stage import StageTrace


class _Held(threading.local):
    """The mutable values of this thread that hold what the program under construction sees."""

    def __init__(self) -> None:
        self.values: list[Any] = []


_held = _Held()


@contextmanager
def _holding(value: Any) -> Iterator[None]:
    """Let operations on a value read and replace the arrays that it holds."""
    _held.values.append(value)
    try:
        yield
    finally:
        _held.values.pop()


def _arrays(value: Any) -> list[Any]:
    """Return the arrays that a value holds."""
    with _holding(value):
        return list(map(as_array, mutable_type(value).read_loval(value.cur_qdd(), value)))


def _hold(value: Any, structure: Any, arrays: Iterable[Any]) -> None:
    """Let a value hold other arrays, with a structure."""
    with _holding(value):
        mutable_type(value).update_from_loval(structure, value, *arrays)


class Leaf(Ref):
    """An array of a mutable value as a reference.

    Args:
      value: the mutable value.
      position: which of its arrays.
      home: the trace under which the value was made; None if it was made in eager code.
    """

    __slots__ = ("position", "value")

    def __init__(self, value: Any, position: int, home: Trace | None) -> None:
        self.value, self.position = value, position
        self.inner = typeof(_arrays(value)[position])
        self.home = home
        self.ended, self.is_argument, self.made_at = "", False, source.here()

    @property
    def content(self) -> Any:
        """The array in the value."""
        arrays = _arrays(self.value)
        found = arrays[self.position] if self.position < len(arrays) else None
        if found is None or typeof(found).update(weak_type=False) != self.inner.update(weak_type=False):
            raise RefError(
                f"{self.described()} has changed since the function that closes over the value was traced: it is "
                f"{'gone' if found is None else typeof(found)}. Pass the value as an argument"
            )
        return found

    @content.setter
    def content(self, x: Any) -> None:
        arrays = _arrays(self.value)
        arrays[self.position] = x
        _hold(self.value, self.value.cur_qdd(), arrays)

    def described(self) -> str:
        return f"array {self.position}, {self.inner}, of a mutable {type(self.value).__name__}"


def _home(value: Any, arrays: Iterable[Any]) -> Trace | None:
    """Return the trace under which a value was made; None if it was made in eager code.

    A value that was made unseen is taken for one of the trace of its arrays.
    """
    trace = state.trace
    while not trace.is_bottom:
        if made_under(trace, value):
            return trace
        trace = trace.parent
    return next((x._trace for x in arrays if isinstance(x, Tracer)), None)


def _leaves(value: Any) -> list[Leaf]:
    """Return the references to the arrays of a value: those that a program under construction has, or new ones."""
    arrays, found = _arrays(value), dict[int, Leaf]()
    trace = state.trace
    while not trace.is_bottom:
        if type(trace) is StageTrace and type(trace.outside) is Scope:
            leaves = [r for r in trace.outside.touched if isinstance(r, Leaf) and r.value is value]
            found = {**{leaf.position: leaf for leaf in leaves}, **found}
        trace = trace.parent
    home = _home(value, arrays)
    return [found[i] if i in found else Leaf(value, i, home) for i in range(len(arrays))]


@contextmanager
def _as_seen(value: Any) -> Iterator[None]:
    """Let a mutable value hold what the current trace sees; afterwards note what has changed."""
    if any(value is x for x in _held.values):
        yield
        return
    leaves = _leaves(value)
    if not leaves or enclosing_program(leaves[0], state.trace) is None:
        yield
        return
    own, structure = _arrays(value), value.cur_qdd()
    before = [content_of(leaf) for leaf in leaves]
    _hold(value, structure, before)
    try:
        seen = value.cur_qdd()
        with _holding(value):
            yield
        after = _arrays(value)
        same = [typeof(x).shape == leaf.shape and x.dtype == leaf.dtype for x, leaf in zip(after, leaves)]
        kept = len(after) == len(leaves) and all(same)
        if kept:
            _hold(value, value.cur_qdd(), before)
            kept = value.cur_qdd() == seen
    finally:
        _hold(value, structure, own)
    if not kept:
        raise RefError(
            f"{state.trace.describe()} closes over a mutable {type(value).__name__} and changes its structure, or the "
            "shape or dtype of an array in it. A program cannot: keep them, or pass the value to jit as an argument"
        )
    for leaf, x, y in zip(leaves, before, after, strict=True):
        if y is not x:
            write(leaf, like(y, leaf))


@contextmanager
def as_seen(values: Iterable[Any]) -> Iterator[None]:
    """Let the mutable values among some objects hold what the current trace sees, for an operation on them.

    Args:
      values: the operands.

    Raises:
      RefError: in a program that closes over a value, the operation changes the value's structure (a ValueError).
    """
    if state.trace.is_bottom:
        yield
        return
    with ExitStack() as stack:
        for value in values:
            if mutable_type(value) is not None:
                stack.enter_context(_as_seen(value))
        yield
