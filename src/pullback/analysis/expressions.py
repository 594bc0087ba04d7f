"""The expressions that made a value: its operation, those of its operands, and so on for some levels.

Rewritings are recognised by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import source, traits
from pullback.core.trace import Primitive, state

DEEPEST = 40
KEPT = 6


class Made:
    """The operation that made a value.

    Attributes:
      primitive, params: the operation.
      operands: for each operand the operation that made it, a Python number if it is a scalar constant, or None.
      values: the operands.
      location: the user's line.
      phase: the pass of differentiation, as in ``Scope``.
      exact: whether the value consists of elements of exact values.
      depth: how many operations stand behind each other in this expression.
    """

    depth: int
    __slots__ = ("depth", "exact", "location", "operands", "params", "phase", "primitive", "values")

    def __init__(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        tracers: Sequence[Any],
        params: dict[str, Any],
        keeps: bool | None = None,
    ) -> None:
        """Note an operation that runs now.

        Args:
          primitive, params: the operation.
          values: the operands.
          tracers: the tracers of those that have shadows, None for the others.
          keeps: whether its results consist of elements of its operands; None to look it up.
        """
        self.primitive, self.params, self.values = primitive, params, values
        self.location = state.source_loc or source.here()
        scope = state.scope
        self.phase = source.FORWARD if scope is None else scope.phase
        exact = returns_elements(primitive) if keeps is None else keeps
        deepest = 0
        operands: list[Any] = []
        for i, tracer in enumerate(tracers):
            if tracer is None:
                operands.append(values[i])
                continue
            made = tracer.made
            if made is None:
                operands.append(tracer)
                continue
            if not made.exact:
                exact = False
            if made.depth > deepest:
                if made.depth >= DEEPEST:
                    made = tracer.made = made.cut(KEPT, {})
                deepest = max(deepest, made.depth)
            operands.append(made)
        self.exact = exact
        self.operands = operands
        self.depth = deepest + 1

    def cut(self, levels: int, known: dict[Any, Made]) -> Made:
        """Return a copy without the operations more than ``levels`` behind this one; ``known`` are copies."""
        copy = known.get((self, levels))
        if copy is not None:
            return copy
        copy = known[self, levels] = object.__new__(Made)
        copy.primitive, copy.location, copy.params, copy.phase = self.primitive, self.location, self.params, self.phase
        copy.exact, copy.values = self.exact, ()
        copy.operands = [
            (x.cut(levels - 1, known) if levels > 1 else None) if type(x) is Made else x for x in self.operands
        ]
        copy.depth = 1 + max((x.depth for x in copy.operands if type(x) is Made), default=0)
        return copy

    @property
    def line(self) -> str:
        """The user's line, as in ``model.py:31``."""
        return line_of(self.location)


def returns_elements(primitive: Primitive) -> bool:
    """Whether the results of an operation consist of elements of its operands."""
    return bool(traits.moves.of(primitive) or traits.passes_nan.of(primitive))


def line_of(location: Any) -> str:
    """Return a location as ``file:line``; ``an unknown line`` if there is none."""
    if location is None:
        return "an unknown line"
    return f"{location[0].co_filename}:{source.line_number(location)}"


def plain(x: Any) -> Any:
    """Return an expression without the operations around it that only move elements or convert them."""
    while type(x) is Made and len(x.operands) == 1 and (traits.moves.of(x.primitive) or passes(x.primitive)):
        x = x.operands[0]
    return x


def passes(primitive: Primitive) -> bool:
    """Whether an operation returns the elements of its operand, perhaps in another dtype."""
    return traits.elementwise.of(primitive) and primitive.linear_in is None and traits.signs.of(primitive) == (1,)


def number(x: Any) -> float | None:
    """Return the number that an operand is, if it is a scalar constant; otherwise None."""
    x = plain(x)
    if isinstance(x, (int, float)):
        return float(x)
    value = getattr(x, "primal", x)
    if getattr(value, "size", 0) == 1 and not isinstance(x, Made):
        found = np.asarray(getattr(value, "_value", value)).reshape(())
        return float(found) if found.dtype.kind in "fiu" or found.dtype.isbuiltin == 2 else None
    return None


def same(x: Any, y: Any) -> bool:
    """Whether two expressions are the same: one object, or the same operation on the same operands."""
    x, y = plain(x), plain(y)
    if x is y:
        return x is not None
    if type(x) is Made and type(y) is Made:
        return (
            x.primitive is y.primitive
            and len(x.operands) == len(y.operands)
            and all(map(same, x.operands, y.operands))
            and str(x.params) == str(y.params)
        )
    a, b = number(x), number(y)
    return a is not None and a == b


def root(x: Any) -> Any:
    """Return the value of which all elements of a value are elements, such as that whose maximum it is."""
    found = x.made if x.made is not None else x
    while type(found) is Made and returns_elements(found.primitive):
        before = [y for y in found.operands if type(y) is Made or hasattr(y, "made")]
        if len(before) != 1:
            break
        found = before[0]
    return found
