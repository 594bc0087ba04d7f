"""Computing a function again: what reverse mode keeps of a checkpointed call is its operands.

Each trace has a way of its own to take part, until there is none left that keeps anything:

| trace | the call becomes |
|---|---|
| reverse mode | the values, computed below it, and one operation on the tape, whose transpose runs the function again |
| forward mode, ``vmap`` | a call below it, of the function of values and tangents, or of the mapped function |

The function is Python or a program of its operations (:mod:`pullback.transforms.checkpoint.recording`). It may close
over values of all these traces, which have ended when it is run again. Then a trace at work puts others in the place of
their tracers, as operands of each operation: nothing of an ended trace is changed, so that several threads may run the
function at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import typeof
from pullback.core.lists import scatter_where, split_list
from pullback.core.trace import Primitive, Trace, check_result, state
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import densify, instantiate
from pullback.transforms.custom.linear_map import LinearMap, linear_operation, of_inexact, pull_back
from pullback.transforms.traces.batch import BatchTrace, BatchTracer
from pullback.transforms.traces.forward import JVPTrace, JVPTracer, jvp_flat, located

Run = Callable[..., list[Any]]
"""A function of flat operands, which returns the list of results."""


def eager_remat(function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results of ``run(*operands)`` under the current trace; reverse mode keeps the operands, and runs it again.

    Args:
      function: the user's function, for error messages.
      run: takes arrays, and returns the list of results. It may close over values of traces that are at work.
      operands: arrays.
    """
    trace = state.trace
    if isinstance(trace, StandInTrace) and not trace.of_values:
        return _replaced(trace, function, run, operands)
    if isinstance(trace, JVPTrace) and trace.tape is not None:
        return _linearized(trace, function, run, operands)
    if not trace.is_bottom and keeps(trace.parent):
        if isinstance(trace, JVPTrace):
            return _pushed(trace, function, run, operands)
        if type(trace) is BatchTrace:
            return _mapped(trace, function, run, operands)
    return run(*operands)


def keeps(trace: Trace) -> bool:
    """Whether reverse mode is at work, in a trace or in one below it."""
    while not trace.is_bottom and not (isinstance(trace, StandInTrace) and trace.of_values):
        if isinstance(trace, JVPTrace) and trace.tape is not None:
            return True
        trace = trace.parent
    return False


class StandInTrace(Trace):
    """Puts others in the place of the tracers of a trace, which may have ended.

    Attributes:
      replaced: the trace whose tracers are replaced.
      of_values: whether their values stand in for them, so that reverse mode keeps nothing of what is computed.
    """

    __slots__ = ("_stand_in", "of_values", "replaced")
    runs_again = True

    def __init__(
        self, parent: Trace, replaced: Trace, stand_in: Callable[[JVPTracer], Any], of_values: bool = False
    ) -> None:
        super().__init__(parent, replaced.function)
        self.replaced, self.of_values = replaced, of_values
        self._stand_in = stand_in

    @property
    def transformation(self) -> str:  # type: ignore[override]
        return self.replaced.transformation

    def is_same(self, other: object) -> bool:
        return other is self or other is self.replaced

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.parent.process(primitive, tuple([self.resolve(x) for x in args]), params)

    def resolve(self, x: Any) -> Any:
        return self._stand_in(x) if type(x) is JVPTracer and x._trace is self.replaced else x

    def run(self, run: Run, operands: Sequence[Any]) -> list[Any]:
        """The results of ``run(*operands)`` with this trace current, after which it has ended."""
        outer, state.trace = state.trace, self
        try:
            return [self.resolve(x) for x in run(*operands)]
        finally:
            state.trace = outer
            self.live = False


def _replaced(trace: StandInTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results where tracers are replaced: what is run again replaces them by the same."""

    def again(*values: Any) -> list[Any]:
        return StandInTrace(state.trace, trace.replaced, trace.resolve).run(run, values)

    resolve = [trace.resolve(x) for x in operands]
    return _below(trace, trace.parent, lambda: eager_remat(function, again, resolve))


def _linearized(trace: JVPTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results under reverse mode, with one operation on its tape: to run the function again."""
    own, primals, tangents = _unzipped(trace, operands)
    captured: dict[int, JVPTracer] = {}  # the tracers that the function closes over, by their ids

    def value(x: JVPTracer) -> Any:
        captured[id(x)] = x
        return x.primal

    def forward(*values: Any) -> list[Any]:
        captured.clear()
        return StandInTrace(state.trace, trace, value, of_values=True).run(run, values)

    outs = _below(trace, trace.parent, lambda: eager_remat(function, forward, primals))
    found = list(captured.values())
    if True not in own and not found:
        return outs
    for x in outs:
        check_result(x)
    given = [*tangents, *[x.tangent for x in found]]
    active = [*own, *[True] * len(found)]
    inexact = [dtypes.is_inexact(x.dtype) for x in outs]
    out_avals = [typeof(x) for x, i in zip(outs, inexact, strict=True) if i]
    again = RematLinearMap(function, run, found, active, out_avals)
    residuals = [*primals, *[x.primal for x in found]]
    ts = _below(trace, trace.rules, lambda: checkpoint_linear_p.bind(*residuals, *given, linear_map=again))
    return _with_tangents(trace, outs, inexact, ts)


def _pushed(trace: JVPTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results under forward mode above reverse mode: what is run again is the function of values and tangents."""
    own, primals, tangents = _unzipped(trace, operands)
    has_tangent: list[bool] = []

    def both(*values: Any) -> list[Any]:
        again = JVPTrace(state.trace, trace.function)
        again.masks, again.wraps = trace.masks, trace.wraps
        inner, given = split_list(values, len(own))
        ts = scatter_where(own, given, ZERO)
        args = [x if t is ZERO else JVPTracer(again, x, t, None) for x, t in zip(inner, ts, strict=True)]
        stand_ins = StandInTrace(again, trace, lambda x: JVPTracer(again, x.primal, x.tangent, x.made_at))
        try:
            results = stand_ins.run(run, args)
        finally:
            again.live = False
        has_tangent[:], outs, ts = _unzipped(again, results)
        return [*outs, *ts]

    results = _below(trace, trace.parent, lambda: eager_remat(function, both, [*primals, *tangents]))
    outs, ts = split_list(results, len(has_tangent))
    return _with_tangents(trace, outs, has_tangent, ts)


def _unzipped(trace: JVPTrace, xs: Sequence[Any]) -> tuple[list[bool], list[Any], list[Any]]:
    """Which values are a trace's own, all of them without their tangents, and the tangents."""
    own = [type(x) is JVPTracer and x._trace is trace for x in xs]
    primals = [x.primal if o else x for x, o in zip(xs, own, strict=True)]
    return own, primals, [x.tangent for x, o in zip(xs, own, strict=True) if o]


def _with_tangents(trace: JVPTrace, xs: Sequence[Any], flags: Sequence[bool], tangents: Sequence[Any]) -> list[Any]:
    """Results with the tangents of those whose flag is set."""
    made_at, given = source.here(), iter(tangents)
    return [
        trace.with_tangent(x, next(given) if flag else ZERO, checkpoint_linear_p, made_at)
        for x, flag in zip(xs, flags, strict=True)
    ]


def _mapped(trace: BatchTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results under ``vmap`` above reverse mode: what is run again is the mapped function."""
    pairs = [trace.value_of(x) for x in operands]
    dims = [d for _, d in pairs]
    out_dims: list[int | None] = []

    def batched(*values: Any) -> list[Any]:
        found = [trace.value_of(x) for x in trace.run(run, values, dims)]
        out_dims[:] = [d for _, d in found]
        return [x for x, _ in found]

    results = _below(trace, trace.parent, lambda: eager_remat(function, batched, [x for x, _ in pairs]))
    made_at = source.here()
    return [
        located(x, made_at) if d is None else BatchTracer(trace, x, d, made_at)
        for x, d in zip(results, out_dims, strict=True)
    ]


def _below(trace: Trace, current: Trace, call: Callable[[], list[Any]]) -> list[Any]:
    """The results of a call under another trace than the one that is at work."""
    state.trace = current
    try:
        return call()
    finally:
        state.trace = trace


checkpoint_linear_p = linear_operation("checkpoint_linear")


class RematLinearMap(LinearMap):
    """The derivative of a checkpointed call, for which its function is run again; the residuals are the operands.

    Attributes:
      run: the function, flat.
      captured: tracers that it closes over, of the trace that it ran under; their values are the last operands.
      active: which operands have a tangent.
    """

    def __init__(
        self, function: Any, run: Run, captured: Sequence[JVPTracer], active: Sequence[bool], avals: list[ShapedArray]
    ) -> None:
        self.function = function
        self.run = run
        self.captured = captured
        self.active = active
        self.count = len(active)
        self.out_avals = avals

    def _run(self, *operands: Any) -> list[Any]:
        """The results; the captured tracers stand for the last operands meanwhile."""
        count = self.count - len(self.captured)
        if count == self.count:
            return self.run(*operands)
        stand_ins = {id(x): y for x, y in zip(self.captured, operands[count:], strict=True)}
        trace = StandInTrace(state.trace, self.captured[0]._trace, lambda x: stand_ins.get(id(x), x))
        return trace.run(self.run, operands[:count])

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        wanted = [ct is not ZERO for ct in cts]

        def back(*values: Any) -> list[Any]:
            operands, given = values[: self.count], values[self.count :]
            return pull_back(self.function, self._run, operands, self.active, scatter_where(wanted, given, ZERO))

        return eager_remat(self.function, back, [*residuals, *[ct for ct in cts if ct is not ZERO]])

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        ts = scatter_where(self.active, tangents, ZERO)
        count = self.count - len(self.captured)
        ts[count:] = map(instantiate, ts[count:], residuals[count:])
        outs, out_ts = jvp_flat(self.function, self._run, residuals, ts)
        return densify(of_inexact(out_ts, outs), self.out_avals)
