"""Running a function again: what reverse mode keeps of a checkpointed call is its operands.

Each trace has a way of its own to take part, until there is none left that keeps anything:

| trace | the call becomes |
|---|---|
| reverse mode | the values, computed below it, and one operation on the tape, whose transpose runs the function again |
| forward mode, ``vmap`` | a call below it, of the function of values and tangents, or of the mapped function |

The function is ordinary Python, and may close over values of all these traces. When it is run again, a trace that has
ended is revived, and tracers that it closes over are lent to the trace that is at work now.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import typeof
from pullback.core.locks import renewed
from pullback.core.trace import Primitive, Trace, check_result, state
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import densify, instantiate
from pullback.primitives.elementwise import add_any
from pullback.transforms.custom.linear_map import LinearMap, linear_operation
from pullback.transforms.interpreters.batch import BatchTrace, BatchTracer
from pullback.transforms.interpreters.forward import JVPTrace, JVPTracer, jvp_flat, located
from pullback.transforms.interpreters.linearize import LinearizeTrace, linearize_flat

Run = Callable[..., list[Any]]
"""A function of flat operands, which gives the list of results."""


def eager_remat(function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results of ``run(*operands)`` under the current trace; reverse mode keeps the operands, and runs it again.

    Args:
      function: the user's function, for error messages.
      run: takes arrays, and gives the list of results. It may close over values of traces that are at work.
      operands: arrays.
    """
    trace = state.trace
    if type(trace) is LinearizeTrace:
        return _linearized(trace, function, run, operands)
    if not trace.is_bottom and keeps(trace.parent):
        if type(trace) is JVPTrace:
            return _pushed(trace, function, run, operands)
        if type(trace) is BatchTrace:
            return _mapped(trace, function, run, operands)
    return run(*operands)


def keeps(trace: Trace) -> bool:
    """Whether reverse mode is at work, in a trace or in one below it."""
    while not trace.is_bottom and not isinstance(trace, _ValueTrace):
        if isinstance(trace, LinearizeTrace):
            return True
        trace = trace.parent
    return False


class _ValueTrace(Trace):
    """Computes values without their derivatives, and finds out which values that have some are used.

    Attributes:
      parent: the trace of reverse mode that it stands for.
      captured: the tracers of that trace, by their ids.
    """

    __slots__ = ("captured",)
    transformation = LinearizeTrace.transformation

    def __init__(self, parent: Trace, function: Any) -> None:
        super().__init__(parent, function)
        self.captured: dict[int, JVPTracer] = {}

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.parent.parent.process(primitive, tuple([self.value(x) for x in args]), params)

    def value(self, x: Any) -> Any:
        """An operand without its derivative."""
        if type(x) is JVPTracer and x._trace is self.parent:
            self.captured[id(x)] = x
            return x.primal
        return x


def _linearized(trace: LinearizeTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results under reverse mode, with one operation on its tape: to run the function again."""
    own = [type(x) is JVPTracer and x._trace is trace for x in operands]
    primals = [x.primal if o else x for x, o in zip(operands, own, strict=True)]
    captured: dict[int, JVPTracer] = {}
    moment = _Moment(trace)

    def forward(*values: Any) -> list[Any]:
        nonlocal captured
        with moment.revived():
            inner = _ValueTrace(trace, function)
            state.trace = inner
            results = [inner.value(x) for x in run(*values)]
        captured = inner.captured
        return results

    outs = _below(trace, trace.parent, lambda: eager_remat(function, forward, primals))
    found = list(captured.values())
    if True not in own and not found:
        return outs
    for x in outs:
        check_result(x)
    given = [*[x.tangent for x, o in zip(operands, own, strict=True) if o], *[x.tangent for x in found]]
    active = [*own, *[True] * len(found)]
    again = RematLinearMap(function, run, found, active, [typeof(x) for x in outs if dtypes.is_inexact(x.dtype)])
    residuals = [*primals, *[x.primal for x in found]]
    ts = iter(_below(trace, trace.rules, lambda: checkpoint_linear_p.bind(*residuals, *given, linear_map=again)))
    made_at = source.here()
    return [
        trace.with_tangent(x, next(ts), checkpoint_linear_p, made_at)
        if dtypes.is_inexact(x.dtype)
        else located(x, made_at)
        for x in outs
    ]


def _pushed(trace: JVPTrace, function: Any, run: Run, operands: Sequence[Any]) -> list[Any]:
    """The results under forward mode above reverse mode: what is run again is the function of values and tangents."""
    own = [type(x) is JVPTracer and x._trace is trace for x in operands]
    primals = [x.primal if o else x for x, o in zip(operands, own, strict=True)]
    count = len(operands)
    has_tangent: list[bool] = []
    moment = _Moment(trace)

    def both(*values: Any) -> list[Any]:
        given = iter(values[count:])
        with moment.revived():
            state.trace = trace
            args = [
                JVPTracer(trace, x, next(given), None) if o else x for x, o in zip(values[:count], own, strict=True)
            ]
            results = run(*args)
            has_tangent[:] = [type(x) is JVPTracer and x._trace is trace for x in results]
        ts = [x.tangent for x, h in zip(results, has_tangent, strict=True) if h]
        return [*[x.primal if h else x for x, h in zip(results, has_tangent, strict=True)], *ts]

    given = [x.tangent for x, o in zip(operands, own, strict=True) if o]
    results = _below(trace, trace.parent, lambda: eager_remat(function, both, [*primals, *given]))
    made_at = source.here()
    ts = iter(results[len(has_tangent) :])
    return [
        JVPTracer(trace, x, next(ts), made_at) if h else located(x, made_at)
        for x, h in zip(results, has_tangent, strict=False)
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
        with _lending_as(self.captured, list(map(_fields, operands[count:]))):
            return [stand_ins.get(id(x), x) for x in self.run(*operands[:count])]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        wanted = [ct is not ZERO for ct in cts]

        def back(*values: Any) -> list[Any]:
            outs, program = linearize_flat(self.function, self._run, values[: self.count], self.active)
            given = iter(values[self.count :])
            flags = iter(wanted)
            seeds = [next(given) if dtypes.is_inexact(x.dtype) and next(flags) else ZERO for x in outs]
            found = program.transpose(seeds, add_any, consume=True)
            return densify(found, [v.aval for v in program.inputs])

        return eager_remat(self.function, back, [*residuals, *[ct for ct in cts if ct is not ZERO]])

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        given = iter(tangents)
        ts = [next(given) if a else ZERO for a in self.active]
        count = self.count - len(self.captured)
        ts[count:] = [instantiate(t, x) for t, x in zip(ts[count:], residuals[count:], strict=True)]
        outs, out_ts = jvp_flat(self.function, self._run, residuals, ts)
        inexact = [t for x, t in zip(outs, out_ts, strict=True) if dtypes.is_inexact(x.dtype)]
        return densify(inexact, self.out_avals)


# Tracers that a function closes over ----------------------------------------------------------------------------------

Fields = tuple[Trace, Any, Any]
"""What a tracer is: its trace, primal and tangent."""

_lending = threading.RLock()
renewed(globals(), "_lending", threading.RLock)
"""Held while tracers and traces are not what they were, which another thread may be using too."""


class _Lent(threading.local):
    """The tracers that this thread has lent: it holds the lock if there are any."""

    def __init__(self) -> None:
        self.tracers: list[JVPTracer] = []


_lent = _Lent()


def _fields(x: Any) -> Fields:
    return x._trace, x.primal, x.tangent


@contextmanager
def _lending_as(tracers: Sequence[JVPTracer], others: Sequence[Fields]) -> Iterator[None]:
    """Some tracers as if they were others, of a trace that is at work now."""
    with _lending:
        before = list(map(_fields, tracers))
        lent = _lent.tracers
        count = len(lent)
        lent.extend(tracers)
        for x, fields in zip(tracers, others, strict=True):
            x._trace, x.primal, x.tangent = fields
        try:
            yield
        finally:
            del lent[count:]
            for x, fields in zip(tracers, before, strict=True):
                x._trace, x.primal, x.tangent = fields


class _Moment:
    """A trace as it is now, to be revived later: with the tracers that are lent to it."""

    __slots__ = ("fields", "lent", "trace")

    def __init__(self, trace: JVPTrace) -> None:
        self.trace = trace
        self.lent = [x for x in _lent.tracers if x._trace is trace]
        self.fields = list(map(_fields, self.lent))

    @contextmanager
    def revived(self) -> Iterator[None]:
        """The trace on top of the current one, which is current again afterwards."""
        trace, current = self.trace, state.trace
        if trace.live and trace.parent is current:
            try:
                yield
            finally:
                state.trace = current
            return
        with _lending_as(self.lent, self.fields):
            before = trace.parent, trace.rules, trace.eager, trace.quick, trace.live
            trace.parent, trace.eager, trace.quick, trace.live = current, current.eager, current.quick, True
            if type(trace) is JVPTrace:
                trace.rules = current
            try:
                yield
            finally:
                state.trace = current
                trace.parent, trace.rules, trace.eager, trace.quick, trace.live = before
