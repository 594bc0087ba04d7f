"""Functions for which the values that they close over are constants, whatever differentiates these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.trace import Primitive, Trace, state
from pullback.transforms.interpreters.forward import JVPTracer
from pullback.transforms.interpreters.taylor import TaylorTracer


def constant(x: Any) -> Any:
    """A value without its tangents or Taylor coefficients; what has none stays as it is."""
    while isinstance(x, (JVPTracer, TaylorTracer)):
        x = x.primal
    return x


class ConstantsTrace(Trace):
    """Takes the tangents from all operands.

    The function runs where its arguments have no tangents. So a value that has one is a value that the function closes
    over, of a differentiation that goes on, or ended.
    """

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.parent.process(primitive, tuple([constant(x) for x in args]), params)


def stopped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with constants for the values that it closes over; its arguments must have no tangents."""

    def run(*args: Any) -> Any:
        trace = ConstantsTrace(state.trace, function)
        state.trace = trace
        try:
            out = function(*args)
        finally:
            state.trace = trace.parent
            trace.live = False
        return tree.tree_map(constant, out)

    return run
