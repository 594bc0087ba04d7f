"""Provenance of derivatives: the named scope and the source line of the operations that rules make.

An equation has the named scope and the source line of the user's operation. For derivatives, two mechanisms copy them:
a tape notes those of each operation that it records (``LinearVar.provenance``), and transposes the operation within
them; and a jvp rule runs under the trace of this module, which puts the rule's operations into the scope of the user's
operation, marked as part of a tangent computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.jaxpr_text import holds_programs
from pullback.core.provenance import within
from pullback.core.source import TANGENT, Scope
from pullback.core.trace import Primitive, RelayTrace, Trace, state


def within_scope_of(rules: Trace, primitive: Primitive, primals: Sequence[Any], params: dict[str, Any]) -> Trace:
    """Return a trace that marks the operations of a jvp rule as operations on tangents.

    The operation to which the rule belongs is not marked where the rule applies it to the primals.

    Args:
      rules: the parent of the new trace.
      primitive, primals, params: the operation whose rule runs.
    """
    programs = any(map(holds_programs, params.values()))  # their equations have provenance already

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
