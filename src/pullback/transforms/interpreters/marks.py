"""Marks: where operations of derivatives come from.

Equations carry the named scope and the line that they were written in. Those of derivatives are made elsewhere, by
rules and by transposition; the traces of this module's kind give them the scope and the line of the operation that they
belong to, and the pass of differentiation. Differentiation takes such a trace wherever operations are recorded, or
looked at for NaNs; it keeps marks while the thread is in a scope, or looks for NaNs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

from pullback.core import source
from pullback.core.linear import LinearTrace, LinearVar
from pullback.core.source import BACKWARD, TANGENT, Location, Scope
from pullback.core.trace import Primitive, Trace, state


@contextmanager
def _at(source_loc: Location | None, scope: Scope | None) -> Iterator[None]:
    before = state.source_loc, state.scope
    state.source_loc, state.scope = source_loc, scope
    try:
        yield
    finally:
        state.source_loc, state.scope = before


class MarkedPrimitive(Primitive):
    """A primitive on a tape, which remembers where it was recorded; equal ones are the same object."""

    def __init__(self, primitive: Primitive, source_loc: Location | None, path: str) -> None:
        vars(self).update(vars(primitive))
        self.primitive = primitive
        self.source_loc = source_loc
        self.path = path
        if primitive.transpose_rule is not None:
            self.transpose_rule = self._transpose

    def bind(self, *args: Any, **params: Any) -> Any:
        with _at(self.source_loc, Scope(self.path, TANGENT)):
            return self.primitive.bind(*args, **params)

    def _transpose(self, ct: Any, *args: Any, **params: Any) -> Any:
        assert self.primitive.transpose_rule is not None
        with _at(self.source_loc, Scope(self.path, BACKWARD)):
            return self.primitive.transpose_rule(ct, *args, **params)


_marked: WeakValueDictionary[Any, MarkedPrimitive] = WeakValueDictionary()


def mark(node: LinearVar) -> None:
    """Have an operation on a tape remember the scope and the line that it is recorded in."""
    primitive = node.primitive
    assert primitive is not None
    source_loc, path = state.source_loc or source.here(), state.scope.path if state.scope else ""
    key = (primitive, source_loc, path)
    found = _marked.get(key)
    if found is None:
        found = _marked[key] = MarkedPrimitive(primitive, source_loc, path)
    node.primitive = found


class MarkingLinearTrace(LinearTrace):
    """Records the operations of a program, or of the user's function, with their marks."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        before = len(self.nodes)
        out = LinearTrace.process(self, primitive, args, params)
        if len(self.nodes) > before and (state.scope is not None or state.bottom.looks):
            mark(self.nodes[-1])
        return out


class RuleTrace(Trace):
    """Stands before the trace of a derivative rule: what the rule does belongs to the tangents, but for the values.

    If that trace is a tape, the operations that it records get their marks.

    Attributes:
      primals: the operands that the operation is applied to; None if it is of a program, which has marks of its own.
    """

    __slots__ = ("nodes", "primals", "primitive", "transformation")

    def __init__(self, rules: Trace, primitive: Primitive, primals: Sequence[Any] | None) -> None:
        super().__init__(rules)
        self.transformation = rules.transformation
        self.primitive = primitive
        self.primals = primals
        self.nodes: Sequence[LinearVar] = rules.nodes if isinstance(rules, LinearTrace) else ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        scope, primals, before = state.scope, self.primals, len(self.nodes)
        if primals is not None:
            same = primitive is self.primitive and len(args) == len(primals)
            if same and all(x is y for x, y in zip(args, primals, strict=True)):
                return self.parent.process(primitive, args, params)
            scope = Scope("", TANGENT).within(scope)
        with _at(state.source_loc, scope):
            out = self.parent.process(primitive, args, params)
            if len(self.nodes) > before:
                mark(self.nodes[-1])
        return out
