"""Stopping derivatives with respect to the values that a function closes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.trace import Primitive, RelayTrace, Trace, state
from pullback.transforms.traces.forward import JVPTracer
from pullback.transforms.traces.taylor import TaylorTracer


def constant(x: Any) -> Any:
    """Return a value without its tangents and Taylor coefficients, for all enclosing differentiations."""
    while isinstance(x, (JVPTracer, TaylorTracer)):
        x = x.primal
    return x


def _without_tangents(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply a primitive, under the parent of ``trace``, to operands from which all tangents are dropped."""
    return trace.parent.process(primitive, tuple(map(constant, args)), params)


def stopped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that derivatives with respect to the values that it closes over are zero.

    The wrapper drops the tangents of all values. Therefore the caller must pass arguments without tangents.
    """

    def run(*args: Any) -> Any:
        out = RelayTrace(state.trace, _without_tangents, function, "a function of constants").run(function, *args)
        return tree.tree_map(constant, out)

    return run
