"""Eager rematerialisation: reverse mode saves the operands of a checkpointed call, and runs its function again.

Each trace, from the current one down to the lowest that does reverse mode, transforms the call:

| trace | the call becomes |
|---|---|
| reverse mode | values, computed by the parent, and an operation on the tape, whose transpose runs the function again |
| forward mode, ``vmap`` | a call under the parent: of the function of values and tangents, or of the mapped function |

The function is Python or a program of its operations (:mod:`pullback.transforms.checkpoint.recording`). It may close
over values of all these traces, which have ended when it runs again. An active trace then substitutes values for their
tracers among the operands of each operation. Ended traces are not changed, so that several threads may do so.
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
    """Run ``run(*operands)`` under the current trace as a checkpointed function, and return its results.

    Reverse mode saves only the operands; its backward pass calls ``run`` again.

    Args:
      function: the user's function, for error messages.
      run: takes arrays, and returns the list of results. It may close over values of active traces.
      operands: arrays.
    """
    trace = state.trace
    if isinstance(trace, StandInTrace) and not trace.of_values:
        return _replaced(trace, function, run, operands)
    if isinstance(trace, JVPTrace) and trace.tape is not None:
        return _linearized(trace, function, run, operands)
    if not trace.is_bottom and in_reverse_mode(trace.parent):
        if isinstance(trace, JVPTrace):
            return _pushed(trace, function, run, operands)
        if type(trace) is BatchTrace:
            return _mapped(trace, function, run, operands)
    return run(*operands)


def in_reverse_mode(trace: Trace) -> bool:
    """Whether ``trace`` or one of its parents is a trace of reverse mode, which saves residuals of operations."""
    while not trace.is_bottom and not (isinstance(trace, StandInTrace) and trace.of_values):
        if isinstance(trace, JVPTrace) and trace.tape is not None:
            return True
        trace = trace.parent
    return False


class StandInTrace(Trace):
    """A trace that replaces the tracers of another trace, which may have ended, in the operands of each operation.

    Attributes:
      replaced: the other trace.
      of_values: whether its tracers are replaced by their primal values, so that reverse mode saves no residuals.
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
        """Call ``run(*operands)`` under this trace, and end the trace; return the results.

        Tracers among the results are replaced, too.
        """
        outer, state.trace = state.trace, self
        try:
            return [self.resolve(x) for x in run(*operands)]
        finally:
            state.trace = outer
            self.live = False


def _replaced(trace: StandInTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """Run a checkpointed call under a ``StandInTrace``; return the results.

    The parent trace runs the call, with a function that replaces the same tracers whenever it runs.
    """

    def again(*values: Any) -> list[Any]:
        return StandInTrace(state.trace, trace.replaced, trace.resolve).run(run, values)

    resolve = [trace.resolve(x) for x in operands]
    return _below(trace, trace.parent, lambda: eager_remat(function, again, resolve))


def _linearized(trace: JVPTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """Run a checkpointed call under the trace of reverse mode; return the results, with tangents.

    The function runs without derivatives. The tape of the trace gets one linear operation, which runs the function
    again when tangents or cotangents are computed.
    """
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
    tangents = [*tangents, *[x.tangent for x in found]]
    active = [*own, *[True] * len(found)]
    inexact = [dtypes.is_inexact(x.dtype) for x in outs]
    out_avals = [typeof(x) for x, i in zip(outs, inexact, strict=True) if i]
    again = RematLinearMap(function, run, found, active, out_avals)
    residuals = [*primals, *[x.primal for x in found]]
    ts = _below(trace, trace.rules, lambda: checkpoint_linear_p.bind(*residuals, *tangents, linear_map=again))
    return _with_tangents(trace, outs, inexact, ts)


def _pushed(trace: JVPTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """Run a checkpointed call under a trace of forward mode that is nested in reverse mode; return the results.

    The parent trace runs a checkpointed call of the function's jvp, which takes and returns primals and tangents.
    """
    own, primals, tangents = _unzipped(trace, operands)
    has_tangent: list[bool] = []

    def both(*values: Any) -> list[Any]:
        again = JVPTrace(state.trace, trace.function)
        again.masks, again.wraps = trace.masks, trace.wraps
        inner, own_tangents = split_list(values, len(own))
        ts = scatter_where(own, own_tangents, ZERO)
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
    """Separate the values ``xs`` into primals and tangents.

    Returns:
      For each value whether it is a tracer of ``trace``; the primals of all values; and the tangents of these tracers.
    """
    own = [type(x) is JVPTracer and x._trace is trace for x in xs]
    primals = [x.primal if o else x for x, o in zip(xs, own, strict=True)]
    return own, primals, [x.tangent for x, o in zip(xs, own, strict=True) if o]


def _with_tangents(trace: JVPTrace, xs: Sequence[Any], flags: Sequence[bool], tangents: Sequence[Any]) -> list[Any]:
    """Make tracers of ``trace`` from results and their tangents.

    Args:
      trace: the trace.
      xs: the results.
      flags: for each result whether it has an entry in ``tangents``; the tangents of the other results are zero.
      tangents: the tangents of the results whose flag is set.
    """
    made_at, rest = source.here(), iter(tangents)
    return [
        trace.with_tangent(x, next(rest) if flag else ZERO, checkpoint_linear_p, made_at)
        for x, flag in zip(xs, flags, strict=True)
    ]


def _mapped(trace: BatchTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """Run a checkpointed call under a trace of ``vmap`` that is nested in reverse mode; return the results.

    The parent trace runs a checkpointed call of the mapped function.
    """
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
    """Return ``call()``, evaluated under the trace ``current``; then make ``trace`` the current trace again."""
    state.trace = current
    try:
        return call()
    finally:
        state.trace = trace


checkpoint_linear_p = linear_operation("checkpoint_linear")


class RematLinearMap(LinearMap):
    """The derivative of a checkpointed call. To apply or transpose it, the function is run again, on the residuals.

    Attributes:
      run: the function, from flat operands to a list of results.
      captured: the differentiated tracers that the function closes over. Their values are the last residuals; the other
        residuals are the operands of the function.
      active: for each residual whether it has a tangent.
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
        """Run the function on the first of ``operands``, and return its results.

        The last of ``operands`` replace the tracers that the function closes over.
        """
        count = self.count - len(self.captured)
        if count == self.count:  # no tracers to replace
            return self.run(*operands)
        stand_ins = {id(x): y for x, y in zip(self.captured, operands[count:], strict=True)}
        trace = StandInTrace(state.trace, self.captured[0]._trace, lambda x: stand_ins.get(id(x), x))
        return trace.run(self.run, operands[:count])

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        nonzero = [ct is not ZERO for ct in cts]

        def back(*values: Any) -> list[Any]:
            operands, nonzero_cts = values[: self.count], values[self.count :]
            dense = scatter_where(nonzero, nonzero_cts, ZERO)
            return pull_back(self.function, self._run, operands, self.active, dense)

        return eager_remat(self.function, back, [*residuals, *[ct for ct in cts if ct is not ZERO]])

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        ts = scatter_where(self.active, tangents, ZERO)
        count = self.count - len(self.captured)
        ts[count:] = map(instantiate, ts[count:], residuals[count:])
        outs, out_ts = jvp_flat(self.function, self._run, residuals, ts)
        return densify(of_inexact(out_ts, outs), self.out_avals)
