"""Marks: where operations of derivatives come from.

Equations carry the named scope and the line that they were written in. Those of derivatives are made elsewhere, by
rules and by transposition. A tape keeps the line and the scope of what it records (``LinearVar.mark``), and transposes
each operation within these; and a derivative rule runs on the trace of this module, which puts what the rule does into
the scope of the operation that it is of, and into the pass of differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.jaxpr_text import holds_programs
from pullback.core.linear import within
from pullback.core.source import TANGENT, Scope
from pullback.core.trace import Primitive, Trace, state


class RuleTrace(Trace):
    """Stands before the trace of a derivative rule: what the rule does belongs to the tangents, but for the values.

    Attributes:
      primals: the operands that the operation is applied to; None if it is of a program, which has marks of its own.
    """

    __slots__ = ("primals", "primitive", "transformation")

    def __init__(self, rules: Trace, primitive: Primitive, primals: Sequence[Any] | None) -> None:
        super().__init__(rules)
        self.transformation = rules.transformation
        self.primitive = primitive
        self.primals = primals

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        scope, primals = state.scope, self.primals
        if primals is not None:
            # The rule's own application of its operation is the primal one.
            same = primitive is self.primitive and len(args) == len(primals)
            if same and all(x is y for x, y in zip(args, primals, strict=True)):
                return self.parent.process(primitive, args, params)
            scope = Scope("", TANGENT).within(scope)
        with within(state.source_loc, scope):
            return self.parent.process(primitive, args, params)


def marking(rules: Trace, primitive: Primitive, primals: Sequence[Any], params: dict[str, Any]) -> Trace:
    """The trace for the derivative rule of an operation: before that of rules, where the thread keeps marks.

    Args:
      rules: the trace of rules.
      primitive, primals, params: the operation.
    """
    if state.scope is None and not state.bottom.looks:
        return rules
    return RuleTrace(rules, primitive, None if any(map(holds_programs, params.values())) else primals)
