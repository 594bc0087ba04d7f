"""Functions for which the values that they close over are constants, whatever differentiates these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.trace import Primitive, RelayTrace, Trace, state
from pullback.transforms.traces.forward import JVPTracer
from pullback.transforms.traces.taylor import TaylorTracer


def constant(x: Any) -> Any:
    """A value without its tangents or Taylor coefficients; what has none stays as it is."""
    while isinstance(x, (JVPTracer, TaylorTracer)):
        x = x.primal
    return x


def _without_tangents(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    return trace.parent.process(primitive, tuple(map(constant, args)), params)


def stopped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with constants for the values that it closes over; its arguments must have no tangents.

    So a value within it that has a tangent is one that it closes over, of a differentiation that goes on, or ended.
    """

    def run(*args: Any) -> Any:
        out = RelayTrace(state.trace, _without_tangents, function, "a function of constants").run(function, *args)
        return tree.tree_map(constant, out)

    return run
