"""The interpreter that runs a function with a shadow in wider numbers beside each value.

Each operation is evaluated twice: on the values, as always, and on their shadows, where rounding is so small that the
shadows stand for exact numbers. The inputs and all constants are exact. Comparisons, indices and integers are those of
the values, so that both follow the same branches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.analysis.digits import Accuracy, unit
from pullback.analysis.double_double import Two, pairs, use_tables
from pullback.analysis.expressions import DEEPEST, Made, returns_elements
from pullback.analysis.observations import FEW, NOTHING, Observations
from pullback.analysis.rewritings import rewriting
from pullback.analysis.two_doubles import TwoDoubles, kernels, two_doubles
from pullback.analysis.wide import Arithmetic, wider, zero_is_right
from pullback.core import dtypes, source, traits
from pullback.core.array import SCALARS, ArrayImpl, as_array
from pullback.core.errors import MissingRuleError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr, holds_programs
from pullback.core.trace import EvalTrace, Primitive, Trace, recorders, state
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import stack, unstack
from pullback.transforms.traces.forward import PrimalTracer
from pullback.transforms.traces.interpretation import Interpretation, Loop
from pullback.transforms.traces.lift import feed


class Shadowed(NamedTuple):
    """A value with its shadow, outside of the interpreter.

    Attributes:
      value: the array.
      wide: its shadow, as the arithmetic represents it.
      accuracy: what is known of its error.
    """

    value: Any
    wide: Any
    accuracy: Accuracy


class ShadowTracer(PrimalTracer):
    """A value with its shadow.

    Attributes:
      wide: the shadow, as the arithmetic of the trace represents it.
      accuracy: what is known of the error.
      made: the operation that made it.
    """

    __slots__ = ("accuracy", "made", "wide")

    def __init__(
        self, trace: Trace, primal: Any, wide: Any, accuracy: Accuracy, made: Any, made_at: source.Location | None
    ) -> None:
        self._trace = trace
        self.primal = primal
        self.wide = wide
        self.accuracy = accuracy
        self.made = made
        self.made_at = made_at


if pairs is not None:
    pairs.use_types(ShadowTracer, Made, Accuracy, Two, ArrayImpl, NOTHING)


_KEEP_ALL = dict.fromkeys((shapes.reshape_p, shapes.squeeze_p, shapes.transpose_p, shapes.broadcast_in_dim_p), True)
"""The operations that return all elements; the trait ``moves`` is also that of those which return some."""


class Known:
    """What is known of an operation, so that it is looked up once.

    Attributes:
      primitive: the operation.
      rules: its rules that this depends on.
      compare: what :meth:`Arithmetic.comparing` returns.
      keeps: whether its results consist of elements of its operands.
      keeps_all: whether they are all elements of its operand, in another order or more than once.
      kernel: the index of its function in the module in C, or None.
      rule: the function of NumPy values that evaluates it, or None.
      flags: what that module needs to know of it, as a sum; see ``pairs.step``.
    """

    __slots__ = ("compare", "flags", "keeps", "keeps_all", "kernel", "primitive", "rule", "rules")

    def __init__(self, arithmetic: Arithmetic, primitive: Primitive, rules: tuple[Any, ...]) -> None:
        self.primitive, self.rules, self.compare = primitive, rules, arithmetic.comparing(primitive)
        self.keeps, self.rule = returns_elements(primitive), primitive.host_rule
        self.keeps_all = _KEEP_ALL.get(primitive, False)
        self.kernel = None if self.compare is None else kernels.get(primitive)
        if self.kernel is not None:
            use_tables()
        weak = primitive.keeps_weak_type
        known = (zero_is_right(primitive), self.keeps, traits.signs.of(primitive), rewriting.of(primitive), weak)
        self.flags = sum(1 << i for i, x in enumerate(known) if x)


_known: dict[type, dict[Primitive, Known]] = {}
"""What is known from earlier runs, by the arithmetic."""


class ShadowTrace(Trace):
    """The trace that evaluates operations on values and on their shadows.

    Attributes:
      arithmetic: the wider numbers.
      two: whether shadows are two doubles.
      computes: whether values may be computed by NumPy, as no parent watches them.
      seen: what was observed.
      known: what is known of the operations that ran so far.
      before: what is known from earlier runs, which holds as long as the rules of an operation are the same.
    """

    __slots__ = ("arithmetic", "before", "computes", "known", "seen", "two")
    transformation = "precision"

    def __init__(self, parent: Trace, function: Any, arithmetic: Arithmetic, seen: Observations) -> None:
        super().__init__(parent, function)
        self.quick = False
        self.arithmetic = arithmetic
        self.two = type(arithmetic) is TwoDoubles
        self.computes = type(parent) is EvalTrace
        self.seen = seen
        self.known: dict[Primitive, Known] = {}
        self.before = _known.setdefault(type(arithmetic), {})

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``, called with this trace as the current trace; then end the trace."""
        outer, scope = state.trace, state.scope
        try:
            recorders.append(self)
            state.trace = self
            state.scope = scope or source.Scope("")  # within a scope, tapes note the lines of operations
            return function(*args)
        finally:
            state.trace, state.scope = outer, scope
            self.live = False
            if self in recorders:
                recorders.remove(self)

    def tracer(self, x: Any) -> ShadowTracer | None:
        """Return a tracer of this trace for an array, which is exact if it has none; None if it is not inexact."""
        if type(x) is ShadowTracer and x._trace is self:
            return x
        if not dtypes.is_inexact(x.dtype):
            return None
        value = as_array(x)
        accuracy = self.arithmetic.exact(value.dtype)
        return ShadowTracer(self, value, self.arithmetic.widened(value._value), accuracy, None, None)  # type: ignore[attr-defined]

    def result(self, x: Any) -> Shadowed | Any:
        """Return a result of the function with its shadow; a result of integers or booleans as it is."""
        if type(x) is ShadowTracer and x._trace is self:
            return Shadowed(x.primal, x.wide, x.accuracy)
        tracer = self.tracer(x) if hasattr(x, "dtype") else None
        return x if tracer is None else Shadowed(tracer.primal, tracer.wide, tracer.accuracy)

    def know(self, primitive: Primitive) -> Known:
        """Return what is known of an operation that runs for the first time."""
        more = primitive.more_rules.get
        rules = primitive.host_rule, more(wider.name), more(two_doubles.name), more(rewriting.name)
        found = self.before.get(primitive)
        if found is None or found.rules != rules:
            found = self.before[primitive] = Known(self.arithmetic, primitive, rules)
        self.known[primitive] = found
        return found

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        known = self.known.get(primitive)
        if known is None:
            known = self.know(primitive)
        if known.kernel is not None and self.computes and not params:
            return pairs.step(self, known, args)
        if primitive.host_rule is None:
            found = self._program(primitive, args, params)
            if found is not None:
                return found
        return self._evaluated(known, args, params)

    def _evaluated(self, known: Known, args: tuple[Any, ...], params: dict[str, Any], outs: Any = None) -> Any:
        """Return the results of an operation, whose values are ``outs`` if they are known."""
        primitive = known.primitive
        operands: list[Any] = []
        primals: list[Any] = []
        wides: list[Any] = []
        for x in args:
            if type(x) is ShadowTracer:
                operands.append(x)
                primals.append(x.primal)
                wides.append(x.wide)
            else:
                operands.append(None)
                primals.append(x)
                wides.append(None)
        outer, state.trace = state.trace, self.parent
        try:
            if outs is None:
                outs = self.parent.process(primitive, tuple(primals), params)
            if type(outs) is ArrayImpl and known.compare is not None:
                found = self._quickly(known, operands, primals, wides, outs, params)
                if found is not None:
                    return found
            return self._operation(primitive, operands, primals, outs, params)
        finally:
            state.trace = outer

    def _quickly(
        self, known: Known, operands: list[Any], primals: list[Any], wides: list[Any], out: ArrayImpl, params: Any
    ) -> ShadowTracer | None:
        """Return the result of an operation without special values; None where the general way is needed.

        Args:
          known: the operation.
          operands: the tracers of the operands that have shadows, None for the others.
          primals: the values of the operands.
          wides: the shadows of the operands, None for those that have none, which this method fills.
          out: the value of the result.
          params: the parameters of the operation.
        """
        value = out._value
        dtype = value.dtype
        if known.keeps_all and operands[0] is not None and value.size:
            wide = self.arithmetic.moved(partial(state.silently, known.rule, **params), wides[0])
            made = Made(known.primitive, primals, operands, params, True)
            return ShadowTracer(self, out, wide, operands[0].accuracy, made, made.location)
        if any(x is None for x in operands) and not self._fill(operands, primals, wides, dtype):
            return None
        found = known.compare(wides, params, value)  # type: ignore[misc]
        if found is None:
            return None
        wide, error = found
        if pairs is not None:
            scope = state.scope
            tracer = pairs.finish(
                self, known.primitive, known.flags, operands, primals, params, out, wide, error, unit(dtype),
                state.source_loc or source.here(), scope.phase if scope else source.FORWARD, DEEPEST, FEW,
            )  # fmt: skip
            if tracer is not None:
                return tracer  # type: ignore[no-any-return]
        return self._noted(known, operands, primals, out, wide, error, params)

    def _weighed(
        self, known: Known, operands: list[Any], primals: list[Any], out: ArrayImpl, wide: Any, error: float
    ) -> ShadowTracer:
        """Return the result of an operation whose operands do not account for its error."""
        outer, state.trace = state.trace, self.parent
        try:
            return self._noted(known, operands, primals, out, wide, error, {})
        finally:
            state.trace = outer

    def _noted(
        self, known: Known, operands: list[Any], primals: list[Any], out: Any, wide: Any, error: float, params: Any
    ) -> ShadowTracer:
        made = Made(known.primitive, primals, operands, params, known.keeps)
        wide, accuracy = self.seen.weigh(self, operands, out, wide, error, made)
        return ShadowTracer(self, out, wide, accuracy, made, made.location)

    def _fill(self, operands: list[Any], primals: list[Any], wides: list[Any], dtype: np.dtype[Any]) -> bool:
        """Add the shadows of Python numbers and of arrays without one; return whether the quick way can go on."""
        if not any(x is not None for x in operands):
            return False  # such as floats made of integers, which are exact
        for i, wide in enumerate(wides):
            if wide is not None:
                continue
            x = primals[i]
            if type(x) in SCALARS:
                if dtype.kind not in "fc":
                    return False
                wides[i] = self.arithmetic.widened(dtype.type(x))
            elif type(x) is ArrayImpl:
                wides[i] = self.arithmetic.widened(x._value)
            else:
                return False
        return True

    def _operation(
        self, primitive: Primitive, operands: list[Any], primals: list[Any], outs: Any, params: dict[str, Any]
    ) -> Any:
        """Return the results of an operation, whose values are ``outs``, with shadows."""
        listed = outs if primitive.multiple_results else [outs]
        inexact = [dtypes.is_inexact(x.dtype) for x in listed]
        if not any(inexact):
            if any(x is not None for x in operands):
                state.silently(self.seen.decide, self, primitive, operands, primals, listed, params)
            return outs
        wides = self.arithmetic.apply(self, primitive, primals, operands, listed, params)
        results = []
        for x, wide, is_inexact in zip(listed, wides, inexact, strict=True):
            if not is_inexact:
                results.append(x)
                continue
            made = Made(primitive, primals, operands, params)
            wide, accuracy = state.silently(self.seen.judge, self, primitive, operands, x, wide, made)
            results.append(ShadowTracer(self, x, wide, accuracy, made, made.location))
        return results if primitive.multiple_results else results[0]

    def _program(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run what an operation holds, under this trace; return None if it holds neither a program nor functions."""
        fed = feed.of(primitive)
        if fed is not None:
            feeding = fed(**params)
            if feeding.scope is not None:
                raise MissingRuleError(
                    f"precision: no shadow for the operation {primitive.name!r} over several devices, at "
                    f"{source.describe(state.source_loc or source.here())}. Apply precision to the function that each "
                    "device runs"
                )
            return _Run(self).enter(feeding, list(args))
        closed = params.get("jaxpr", params.get("call_jaxpr"))
        if isinstance(closed, ClosedJaxpr) and len(closed.in_avals) == len(args):
            return _Run(self).run(closed, args)
        functions = primitive.stage_rule is not None  # it holds functions of Python's
        if primitive.decomposition_rule is not None and (functions or holds_programs(params)):
            with self.current():
                return primitive.decomposition_rule(*args, **params)
        if functions and primitive.impl_rule is not None:
            with self.current():
                return primitive.impl_rule(tuple(args), params)
        return None

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Return a context manager in which this trace is current."""
        outer, state.trace = state.trace, self
        try:
            yield
        finally:
            state.trace = outer


if pairs is not None:
    pairs.use_state(state, source.here, source._is_internal, source.FORWARD, ShadowTrace, Known, DEEPEST, float(FEW))
    pairs.use_operators(ops.add_p, ops.sub_p, ops.mul_p, ops.div_p)


class _Run(Interpretation):
    """The evaluation of programs, operation by operation, on the values that decide about branches and loops."""

    def __init__(self, trace: ShadowTrace) -> None:
        self.trace = trace

    def run(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        with self.trace.current():
            return eval_jaxpr(closed.jaxpr, closed.consts, *operands)

    def choose(self, programs: Sequence[ClosedJaxpr], which: Any, operands: Sequence[Any]) -> list[Any]:
        return self.run(programs[min(max(int(which), 0), len(programs) - 1)], operands)

    def loop(self, loop: Loop) -> list[Any]:
        carry, count = loop.carry, len(loop.carry)
        if loop.length is None:
            assert loop.test is not None
            while bool(self.run(loop.test, [*loop.test_consts, *carry])[0]):
                carry = self.run(loop.body, [*loop.consts, *carry])
            return carry
        steps: list[list[Any]] = []
        if not loop.length:
            return [*carry, *[shapes.zeros(a.with_axis(0, 0)) for a in loop.body.out_avals[count:]]]
        with self.trace.current():
            rows = [unstack(x, 0) for x in loop.rows]
            for i in range(loop.length - 1, -1, -1) if loop.reverse else range(loop.length):
                outs = self.run(loop.body, [*loop.consts, *carry, *[x[i] for x in rows]])
                carry = outs[:count]
                steps.append(outs[count:])
            if loop.reverse:
                steps.reverse()
            stacked = [stack(column, 0) for column in zip(*steps, strict=True)]
        return [*carry, *stacked]
