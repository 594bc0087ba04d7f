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
from pullback.core.provenance import within
from pullback.core.source import TANGENT, Scope
from pullback.core.trace import Primitive, RelayTrace, Trace, state


def within_scope_of(rules: Trace, primitive: Primitive, primals: Sequence[Any], params: dict[str, Any]) -> Trace:
    """A trace before that of a derivative rule: what the rule does belongs to the tangents, but for the values.

    Args:
      rules: the trace of the rule.
      primitive, primals, params: the operation.
    """
    programs = any(map(holds_programs, params.values()))  # which have marks of their own

    def relay(trace: Trace, applied: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        scope = state.scope
        if not programs:
            # The rule's own application of its operation is the primal one.
            same = applied is primitive and len(args) == len(primals)
            if same and all(x is y for x, y in zip(args, primals, strict=True)):
                return rules.process(applied, args, params)
            scope = Scope("", TANGENT).within(scope)
        with within(state.source_loc, scope):
            return rules.process(applied, args, params)

    return RelayTrace(rules, relay)
