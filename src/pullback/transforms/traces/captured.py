"""Programs whose constants are traced values."""

from __future__ import annotations

from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.trace import Tracer


def hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Turn the constants of a program that are tracers into inputs, after the other inputs.

    Return the new program, and the tracers, which the caller passes as these inputs.
    """
    captured = [x for x in closed.consts if isinstance(x, Tracer)] if closed.consts else []
    if not captured:
        return closed, captured
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    inputs = [v for v, x in pairs if isinstance(x, Tracer)]
    consts = [(v, x) for v, x in pairs if not isinstance(x, Tracer)]
    smaller = Jaxpr([v for v, _ in consts], [*jaxpr.invars, *inputs], jaxpr.eqns, jaxpr.outvars)
    return ClosedJaxpr(smaller, [x for _, x in consts]), captured
