"""Tracing with some inputs unknown: operations on known values are evaluated, the others become a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.core.array import ArrayImpl, typeof
from pullback.core.jaxpr import Eqn, Jaxpr, Var, infer
from pullback.core.trace import Primitive, recorders, state
from pullback.core.types import ShapedArray
from pullback.transforms.traces.dce import live_equations
from pullback.transforms.traces.stage import StageTrace, StageTracer


class UnknownTrace(StageTrace):
    """The trace of partial evaluation: records operations that depend on unknown inputs, and evaluates others."""

    __slots__ = ()

    def is_unknown(self, x: Any) -> bool:
        """Whether a value depends on an unknown input."""
        return type(x) is StageTracer and x._trace is self

    def adopt(self, x: ArrayImpl) -> Any:
        return self.parent.adopt(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        unknown = list(map(self.is_unknown, args))
        if primitive.stage_rule is not None and primitive.decomposition_rule is not None:
            # A call of a Python function, which may close over unknown values: its operations come here one by one.
            return primitive.decomposition_rule(*args, **params)
        if not any(unknown):
            outer, state.trace = state.trace, self.parent
            try:
                return self.parent.process(primitive, args, params)
            finally:
                state.trace = outer
        if primitive.partial_eval_rule is not None:
            return self._cut(primitive, args, params, unknown)
        return super().process(primitive, args, params)

    def _cut(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], unknown: list[bool]) -> list[Any]:
        """Apply an operation that holds programs, split by partial evaluation; return its results.

        Equations whose operands are known are evaluated, and the others recorded. ``unknown`` flags the unknown
        operands.
        """
        assert primitive.partial_eval_rule is not None
        avals = [typeof(x) for x in args]
        invars = list(map(Var, avals))
        outvars = list(map(Var, infer(primitive, avals, params)))
        known, rest, _ = primitive.partial_eval_rule(unknown, Eqn(primitive, list(invars), params, outvars))
        values: dict[Any, Any] = dict(zip(invars, args, strict=True))
        for eqn in [*known, *rest]:
            operands = [values[a] if type(a) is Var else a.val for a in eqn.invars]
            if not any(map(self.is_unknown, operands)):
                out = eqn.primitive.bind(*operands, **eqn.params)
            else:
                out = super().process(eqn.primitive, tuple(operands), eqn.params)
            values.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
        return [values[v] for v in outvars]


class PartlyKnown(NamedTuple):
    """The results of a function with some unknown inputs.

    Attributes:
      jaxpr: takes the unknown inputs and returns the unknown results; known values that it reads are its constants.
      consts: the values of the constants.
      results: for each result its value, or its type if it is unknown.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    results: list[Any]


def trace_unknown(
    function: Any,
    run: Callable[..., Sequence[Any]],
    inputs: Sequence[Any],
    instantiate: Sequence[bool],
) -> PartlyKnown:
    """Run a function with some inputs unknown: evaluate the operations on known values, and stage the others.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      inputs: for each input its value, or its type if it is unknown.
      instantiate: for each result, whether the jaxpr returns it even if it is known; an empty list for none.
    """
    trace = UnknownTrace(state.trace, function, "partial evaluation")
    args: list[Any] = []
    for x in inputs:
        if isinstance(x, ShapedArray):
            trace.invars.append(Var(x))
            x = StageTracer(trace, trace.invars[-1], None)
        args.append(x)
    try:
        state.trace = trace
        recorders.append(trace)
        outs = run(*args)
        forced = list(instantiate) or [False] * len(outs)
        unknown = [f or trace.is_unknown(x) for f, x in zip(forced, outs, strict=True)]
        outvars = [trace.atom(x) for x, u in zip(outs, unknown, strict=True) if u]
    finally:
        state.trace = trace.parent
        trace.live = False
        if trace in recorders:
            recorders.remove(trace)
    eqns, read = live_equations(trace.eqns, outvars)
    constants = [(v, x) for v, x in zip(trace.constvars.values(), trace.consts, strict=True) if v in read]
    jaxpr = Jaxpr([v for v, _ in constants], trace.invars, eqns, outvars)
    results = [typeof(x) if u else x for x, u in zip(outs, unknown, strict=True)]
    return PartlyKnown(jaxpr, [x for _, x in constants], results)
