"""Calls: functions with rules of their own, as all traces see them.

A call is an operation whose parameter holds Python functions: the function, and its rules. Every trace passes through
it to these functions. So they are ordinary Python as long as nothing is staged; a jaxpr holds the function's jaxpr, and
the rules as they are, since a rule may call the function itself, so that tracing it ahead would never end.

The law is ``T(call(f, rule)) == call(T(f), T(rule))`` for every transformation T that the rule is not for.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.errors import ClosedOverError, CustomRuleError, NotLinearError, PullbackError, UnexpectedTracerError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linear import LinearProgram, LinearTrace, LinearTracer, LinearVar, is_linear
from pullback.core.trace import Primitive, Trace, Tracer, is_at_work, leaked, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import instantiate, zeros_of
from pullback.primitives.elementwise import add_any, convert_element_type, mul
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.shapes import broadcast_in_dim, moveaxis
from pullback.transforms.derivatives.grad import CheckedLinearTrace, is_affine
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.interpreters.batch import BatchTrace, Uniform
from pullback.transforms.interpreters.forward import jvp_flat
from pullback.transforms.interpreters.stage import StageTrace, hoisted, stage_flat

Dims = Sequence[int | None]


class CustomCall:
    """A function with rules of its own. Subclasses say what differentiation and batching make of it.

    Attributes:
      function: the user's function, for error messages.
      run: takes flat operands, and gives the list of results.
      captured: how many operands at the end are values that the function closed over when it was staged.
      recorded: whether it is in a jaxpr.
      by_itself: whether a backward rule of the function itself made it.
      key: compares equal for calls that do the same in a program; None if nothing is known of it.
      equation: the primitive of the equation that it is in a jaxpr.
    """

    function: Any
    run: Callable[..., list[Any]]
    captured: int = 0
    recorded: bool = False
    by_itself: bool = False
    key: Any = None
    equation: Primitive

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __eq__(self, other: object) -> bool:
        """Equal calls in equal programs do the same, so that what was made of one program serves for the other."""
        if self is other or not isinstance(other, CustomCall) or self.key is None:
            return self is other
        if (self.captured, self.recorded, self.by_itself) != (other.captured, other.recorded, other.by_itself):
            return False
        return self.recorded and hash(self) == hash(other) and bool(self.key == other.key)

    def __hash__(self) -> int:
        try:
            return id(self) if self.key is None or not self.recorded else hash(self.key)
        except TypeError:  # an argument that is not differentiated and has no hash
            return id(self)

    def differentiate(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results and their tangents, under the current trace, on which tangents are recorded; some are ZERO."""
        raise NotImplementedError

    def batch(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """The results for a batch and where the mapped axis is in them, under the current trace, the parent's."""
        raise NotImplementedError

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        """The results for operands that are not traced."""
        return self.run(*operands)

    def inline(self, run: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
        """The results of the function, which is to be transposed with respect to operands in which it is linear."""
        return run(*operands)

    def staged(self, run: Callable[..., list[Any]], captured: int) -> Self:
        """The same call with another way to run the function."""
        other = copy.copy(self)
        other.run = run
        other.captured = captured
        other.recorded = True
        return other

    def own(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The operands without the captured values."""
        return operands[: len(operands) - self.captured] if self.captured else operands

    def own_pairs(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The primals and tangents without those of the captured values, which rules say nothing of."""
        if any(t is not ZERO for t in tangents[len(tangents) - self.captured :]):
            raise ClosedOverError(
                f"{name_of(self.function)} closes over a value with respect to which it is differentiated, of which "
                "its rule says nothing. Pass the value as an argument; pullback.closure_convert finds what a function "
                "given by the user closes over."
            )
        return self.own(primals), self.own(tangents)


call_p = Primitive("custom_call", multiple_results=True, keeps_weak_type=False)


def bind(call: CustomCall, operands: Sequence[Any]) -> list[Any]:
    """The results of a call, under the current trace.

    Raises:
      UnexpectedTracerError: the function or a rule closes over a value that it must be given as an argument.
    """
    try:
        return call_p.bind(*operands, call=call)  # type: ignore[no-any-return]
    except UnexpectedTracerError as error:
        raise closed_over(call.function, error) or error from None


def explained(function: Any, run: Callable[..., Any], *args: Any) -> Any:
    """What ``run`` gives; an error about a value that a function or one of its rules closes over says what to do."""
    source_loc, state.source_loc = state.source_loc, None  # the user's functions have lines of their own
    try:
        return run(*args)
    except UnexpectedTracerError as error:
        raise closed_over(function, error) or error from None
    finally:
        state.source_loc = source_loc


def closed_over(function: Any, error: UnexpectedTracerError) -> UnexpectedTracerError | None:
    """The error for a traced value that a function or one of its rules closes over."""
    trace: Any = error.trace
    if trace is None or isinstance(error, CustomRuleError):
        return None
    if is_at_work(trace):
        why = "where its rules do not apply to it: a rule gives derivatives with respect to arguments only"
    else:
        why = "which had ended when the rule ran: rules run when a derivative is asked for, the backward ones last"
    better = ClosedOverError(
        f"{name_of(function)} or one of its rules closes over a value that is traced by {trace.describe()}, {why}. "
        "Pass the value as an argument; pullback.closure_convert finds what a function given by the user closes over.\n"
        f"The value: {error}"
    )
    better.trace = trace
    return better


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    return params["call"].evaluate(args)  # type: ignore[no-any-return]


call_p.impl(_evaluate)


@call_p.decomposition
def _inline(*args: Any, call: CustomCall) -> list[Any]:
    return call.inline(call.run, args)


@call_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: CustomCall) -> Any:
    return call.differentiate(primals, tangents)


@call_p.batch
def _batch(trace: BatchTrace, args: Sequence[Any], dims: Dims, *, call: CustomCall) -> Any:
    return call.batch(trace, args, dims)


@call_p.stage
def _stage(trace: StageTrace, args: Sequence[Any], params: dict[str, Any]) -> Any:
    call: CustomCall = params["call"]
    outer, state.trace = state.trace, trace
    try:
        closed, captured = hoisted(stage_flat(call.function, call.run, [typeof(x) for x in args]))
    finally:
        state.trace = outer
    rules = call.staged(jaxpr_as_fun(closed), call.captured + len(captured))
    return trace.process(call.equation, (*args, *captured), {"call_jaxpr": closed, "rules": rules})


# In a jaxpr ---------------------------------------------------------------------------------------------------------


def equation(name: str) -> Primitive:
    """The primitive of a kind of calls in jaxprs."""
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)

    @p.abstract_eval
    def shape(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> list[ShapedArray]:
        return call_jaxpr.out_avals

    @p.decomposition
    def inline(*args: Any, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> list[Any]:
        return rules.inline(jaxpr_as_fun(call_jaxpr), args)

    @p.jvp
    def jvp(primals: Any, tangents: Any, *, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> Any:
        outs, out_tangents = explained(rules.function, rules.differentiate, primals, tangents)
        for i, (x, aval) in enumerate(zip(outs, call_jaxpr.out_avals, strict=True)):
            if x.shape != aval.shape or x.dtype != aval.dtype:
                raise CustomRuleError(
                    f"the derivative rule of {name_of(rules.function)} gave {typeof(x)} as result {i}, where the "
                    f"function itself gives {aval}; a rule must give the function's own results"
                )
        return outs, out_tangents

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Dims, *, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> Any:
        trace = BatchTrace(state.trace, axis, rules.function)
        trace.live = False
        return explained(rules.function, rules.batch, trace, args, dims)

    @p.lowering
    def xla(hlo: Any, *operands: Any, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> list[Any]:
        from pullback.backends.emit import emit_jaxpr

        return emit_jaxpr(hlo, call_jaxpr.jaxpr, call_jaxpr.consts, operands)

    return p


# Batching -----------------------------------------------------------------------------------------------------------


class Places:
    """Where the mapped axis is in each result of a batched call: first, or nowhere.

    The function and each of its rules must agree on it, and only one of them runs at first: if any operand is mapped,
    all results are, ``Uniform`` where the examples do not differ: the cotangents of a result differ all the same, and a
    backward rule is given those of one example. If none is, the call is made once, and those results are mapped that
    depend on mapped values which the function closes over.
    """

    def __init__(self, trace: BatchTrace, dims: Dims) -> None:
        self.trace = trace
        self.forced = any(d is not None for d in dims)
        self.dims: list[int | None] | None = None

    def settle(self, *groups: Sequence[Any], residuals: Sequence[int | None] = ()) -> None:
        """Fix the places by some groups of results, of which each is like the results of the function.

        Args:
          groups: the results, and their tangents if they are known.
          residuals: where the mapped axis is in what a backward rule is given; if it is anywhere, the rule runs for
            each example, and needs the cotangents of each.
        """
        if self.dims is None:
            found = [[self.trace.value_of(x)[1] for x in group] for group in groups]
            forced = self.forced or any(d is not None for d in residuals)
            varies = [any(d is not None and type(d) is not Uniform for d in ds) for ds in zip(*found, strict=True)]
            self.dims = [0 if v else Uniform(0) if forced else None for v in varies]
            if forced and not all(varies):
                self.trace.mapping.has_uniform = True

    def put(self, results: Sequence[Any], dims: Dims | None = None) -> list[Any]:
        """The values of some results, with the mapped axis at its place; ZERO stays as it is."""
        wanted = self.dims if dims is None else dims
        assert wanted is not None
        return [x if x is ZERO else place(self.trace, x, d) for x, d in zip(results, wanted, strict=True)]


def place(trace: BatchTrace, x: Any, wanted: int | None) -> Any:
    """The value of a result of a batched function, with the mapped axis where it is wanted."""
    value, dim = trace.value_of(x)
    if wanted is None:
        if dim is not None:
            raise CustomRuleError(
                f"a rule of {name_of(trace.function)} gave a result that varies along the axis that vmap maps, where "
                "the function's own does not: the rule closes over a mapped value. Pass it as an argument."
            )
        return value
    if dim is None:
        rank = len(value.shape) + 1
        shape = (*value.shape[:wanted], trace.axis.size, *value.shape[wanted:])
        return broadcast_in_dim(value, shape, [i for i in range(rank) if i != wanted])
    return moveaxis(value, dim, wanted)


def summed(trace: BatchTrace, x: Any, dim: int | None) -> Any:
    """A cotangent of each example, for an operand whose mapped axis is at ``dim``, or for one that they share."""
    if x is ZERO or dim is not None:
        return x if x is ZERO else place(trace, x, dim)
    value, where = trace.value_of(x)
    return repeated(value, trace.axis.size) if where is None else reduce_sum(value, (where,))


def repeated(value: Any, count: int) -> Any:
    """The sum of as many equal values."""
    if count == 0:
        return ZERO
    if value.dtype.itemsize >= 4:
        return mul(value, count)
    wide = mul(convert_element_type(value, np.dtype(np.float32)), count)  # a small type need not have the number
    return convert_element_type(wide, value.dtype)


def sparse(function: Callable[..., Any], tangents: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of primals and tangents as one of a flat list without the tangents that are ZERO; and those."""
    given = [t for t in tangents if t is not ZERO]
    nonzero = [t is not ZERO for t in tangents]

    def flat(*values: Any) -> Any:
        count = len(values) - len(given)
        rest = iter(values[count:])
        return function(values[:count], [next(rest) if n else ZERO for n in nonzero])

    return flat, given


# Calls with derivative rules ----------------------------------------------------------------------------------------

JVPRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]
ForwardRule = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], "Backward"]]


class DerivativeCall(CustomCall):
    """A call with derivative rules.

    Attributes:
      jvp: None, or ``(primals, tangents) -> (results, tangents)``.
      forward: None, or ``(primals, perturbed) -> (results, residuals, backward)``, the first half of a reverse rule.
    """

    def __init__(
        self,
        equation: Primitive,
        function: Any,
        run: Callable[..., list[Any]],
        jvp: JVPRule | None,
        forward: ForwardRule | None,
    ) -> None:
        self.equation = equation
        self.function = function
        self.run = run
        self.jvp = jvp
        self.forward = forward

    def differentiate(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        primals, tangents = self.own_pairs(primals, tangents)
        rules = state.trace
        # What is in a program is differentiated forwards also on the way to reverse mode.
        forwards = (rules.eager or not self.recorded) and not any(type(t) is LinearTracer for t in tangents)
        if self.forward is None or (self.jvp is not None and forwards):
            return self._by_jvp_rule(rules, primals, tangents)
        perturbed = [t is not ZERO for t in tangents]
        if isinstance(rules, LinearTrace):  # which would only hand on what the rule does
            state.trace = rules.parent
        try:
            outs, residuals, backward = self.forward(primals, perturbed)
        finally:
            state.trace = rules
        if self.jvp is not None:
            residuals, backward = [*residuals, *primals], _WithJvp(backward, self.jvp, perturbed)
        given = [t for t in tangents if t is not ZERO]
        found = None
        if forwards:  # at once, while the traces are at work whose values the backward rule may close over
            try:
                found = backward.derivative(residuals, given)
            except NotLinearError:
                if rules.eager:
                    raise
        results = iter(linear_p.bind(*residuals, *given, backward=backward) if found is None else found)
        return outs, [next(results) if dtypes.is_inexact(x.dtype) else ZERO for x in outs]

    def _by_jvp_rule(
        self, rules: Trace, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        assert self.jvp is not None
        if not isinstance(rules, LinearTrace):
            return self.jvp(primals, tangents)
        before = len(rules.nodes)
        outs, out_tangents = self.jvp(primals, tangents)
        for node in rules.nodes[before:]:
            for x in node.args:
                if type(x) not in _UNTRACED and isinstance(x, Tracer) and not _is_below(x._trace, rules):
                    raise leaked(x)
            if rules.eager and is_affine(node, rules.parent):
                raise NotLinearError(
                    f"the jvp rule of {name_of(self.function)} adds a constant to a tangent (by {node.primitive}): "
                    "what it gives must be linear in the tangents that it is given, and zero if they are"
                )
        for t in out_tangents:
            if type(t) is ArrayImpl and host_value(t).any():
                raise NotLinearError(
                    f"the jvp rule of {name_of(self.function)} gave the tangent {t!r}, which does not depend on the "
                    "tangents that the rule was given, and is not zero: it must be linear in them"
                )
        return outs, out_tangents

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        outs = self.run(*operands)
        for x in outs:  # rules say nothing of closed-over values, so that results must not depend on them
            if type(x) is not ArrayImpl and isinstance(x, Tracer) and type(x) is not LinearTracer:
                raise leaked(x)
        return outs

    def inline(self, run: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
        trace = state.trace
        if not (isinstance(trace, LinearTrace) and self.by_itself and self.forward is not None):
            return run(*operands)
        # A backward rule that calls the function itself has it solve another problem, which is linear in the cotangent
        # then, though single steps of it (the test whether an iteration has converged) need not be. Its own rules
        # transpose it.
        before = len(trace.nodes)
        try:
            return run(*operands)
        except PullbackError as error:
            if not isinstance(error, NotLinearError) and error.trace is not trace:
                raise
        del trace.nodes[before:]
        own = [type(x) is LinearTracer and x._trace is trace for x in operands]
        at_zero = [zeros_of(x.aval) if mine else x for x, mine in zip(operands, own, strict=True)]
        tangents = [x if mine else ZERO for x, mine in zip(operands, own, strict=True)]
        outs, out_tangents = self.differentiate(at_zero, tangents)
        return [x if t is ZERO else t for x, t in zip(outs, out_tangents, strict=True)]

    def batch(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        places = Places(trace, dims)
        own_dims = self.own(dims)
        jvp, forward = self.jvp, self.forward

        def batched_run(*args: Any) -> list[Any]:
            outs = trace.run(self.run, args, dims)
            places.settle(outs)
            return places.put(outs)

        def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            assert jvp is not None
            flat, given = sparse(jvp, tangents)
            tangent_dims = [d for t, d in zip(tangents, own_dims, strict=True) if t is not ZERO]
            outs, ts = trace.run(flat, [*primals, *given], [*own_dims, *tangent_dims])
            places.settle(outs, ts)
            return places.put(outs), places.put(ts)

        def batched_forward(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
            assert forward is not None
            outs, residuals, backward = trace.run(lambda *xs: forward(xs, perturbed), primals, own_dims)
            pairs = [trace.value_of(x) for x in residuals]
            residual_dims = [d for _, d in pairs]
            places.settle(outs, residuals=residual_dims)
            values = places.put(outs)
            assert places.dims is not None
            out_dims = [d for x, d in zip(outs, places.dims, strict=True) if dtypes.is_inexact(x.dtype)]
            in_dims = [d for d, p in zip(own_dims, perturbed, strict=True) if p]
            return values, [x for x, _ in pairs], BatchedBackward(backward, trace, residual_dims, in_dims, out_dims)

        call = DerivativeCall(
            self.equation, self.function, batched_run, jvp and batched_jvp, forward and batched_forward
        )
        call.captured = self.captured
        call.recorded, call.by_itself = self.recorded, self.by_itself
        outs = call_p.bind(*args, call=call)
        assert places.dims is not None
        return outs, places.dims


_UNTRACED = frozenset((LinearVar, ArrayImpl, float, int))


def _is_below(trace: Trace, other: Trace) -> bool:
    """Whether a trace is another one, or one that the other hands operations to."""
    while other is not trace and not other.is_same(trace):
        if other is other.parent:
            return False
        other = other.parent
    return True


class Backward:
    """The backward rule of a call at a point: the transpose of its derivative there.

    Attributes:
      function: the user's function.
      count: how many residuals there are.
      out_avals: the types of the tangents of the real and complex results.
    """

    function: Any
    count: int
    out_avals: Sequence[ShapedArray]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the perturbed operands, from those of the real and complex results; some may be ZERO."""
        raise NotImplementedError

    def derivative(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the real and complex results, under the current trace: ``pull`` transposed."""
        trace = CheckedLinearTrace(state.trace, self.function)
        inputs = [trace.input(a) for a in self.out_avals]
        state.trace = trace
        try:
            ends = [trace.end(ct) for ct in self.pull(residuals, inputs)]
            state.trace = trace.parent
            program = LinearProgram(trace.nodes, [x.var for x in inputs], ends, trace.count)
            outs = program.transpose(tangents, add_any)
        except PullbackError as error:
            if isinstance(error, NotLinearError) or error.trace is trace:
                raise self._not_linear(error) from None
            raise
        finally:
            state.trace = trace.parent
            trace.live = False
        return [zeros_of(a) if t is ZERO else t for t, a in zip(outs, self.out_avals, strict=True)]

    def _not_linear(self, error: PullbackError) -> NotLinearError:
        return NotLinearError(
            f"forward mode differentiates {name_of(self.function)} by transposing its backward rule, which must be "
            "linear in the cotangent for that, and is not. Give the function a jvp rule as well, with "
            f"{self.__name__}.defjvp(rule): then each mode uses the rule that is for it.\nWhat is not linear: {error}"
        )

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


class _WithJvp(Backward):
    """The backward rule of a function that has a jvp rule too, which takes the primals for more residuals."""

    def __init__(self, backward: Backward, jvp: JVPRule, perturbed: Sequence[bool]) -> None:
        self.backward = backward
        self.function = backward.function
        self.out_avals = backward.out_avals
        self.count = backward.count + len(perturbed)
        self.jvp = jvp
        self.perturbed = perturbed

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return self.backward.pull(residuals[: self.backward.count], cts)

    def derivative(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        given = iter(tangents)
        primals = residuals[self.backward.count :]
        outs, ts = self.jvp(primals, [next(given) if p else ZERO for p in self.perturbed])
        inexact = [t for x, t in zip(outs, ts, strict=True) if dtypes.is_inexact(x.dtype)]
        return [zeros_of(a) if t is ZERO else t for t, a in zip(inexact, self.out_avals, strict=True)]


class BatchedBackward(Backward):
    """A backward rule mapped over an axis.

    Attributes:
      backward: the rule.
      trace: which maps it.
      residual_dims, in_dims, out_dims: where the mapped axis is in the residuals, in the perturbed operands and in the
        real and complex results.
    """

    def __init__(
        self, backward: Backward, trace: BatchTrace, residual_dims: Dims, in_dims: Dims, out_dims: Dims
    ) -> None:
        self.backward = backward
        self.function = backward.function
        self.count = backward.count
        self.trace = trace
        self.residual_dims = residual_dims
        self.in_dims = in_dims
        self.out_dims = out_dims
        size = trace.axis.size
        self.out_avals = [
            a if d is None else a.update(shape=(*a.shape[:d], size, *a.shape[d:]))
            for a, d in zip(backward.out_avals, out_dims, strict=True)
        ]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        results = self._run(self.backward.pull, residuals, cts, self.out_dims)
        if all(d is None for d in self.out_dims):  # one call for all examples, with the sum of their cotangents
            return [x if x is ZERO else place(self.trace, x, None) for x in results]
        return [summed(self.trace, x, d) for x, d in zip(results, self.in_dims, strict=True)]

    def derivative(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        results = self._run(self.backward.derivative, residuals, tangents, self.in_dims)
        return [place(self.trace, x, d) for x, d in zip(results, self.out_dims, strict=True)]

    def _run(self, function: Any, residuals: Sequence[Any], values: Sequence[Any], dims: Dims) -> Any:
        flat, given = sparse(function, values)
        given_dims = [d for x, d in zip(values, dims, strict=True) if x is not ZERO]
        return self.trace.run(flat, [*residuals, *given], [*self.residual_dims, *given_dims])


# The derivative of a backward rule, as an operation ------------------------------------------------------------------


def linear_operation(name: str, linear_in: Any = None) -> Primitive:
    """A derivative with a rule for its transpose, as a primitive of residuals and tangents; it gives tangents.

    There are two primitives: the rules of one that is called may close over values of the traces that are at work,
    those of one that is recorded in a jaxpr may not.

    Args:
      name: that of both.
      linear_in: see ``Primitive.transpose``; None if it may turn out to be affine.
    """
    called, recorded = (Primitive(name, multiple_results=True, keeps_weak_type=False) for _ in range(2))
    for p in (called, recorded):
        p.impl(lambda args, params: _derivative(*args, **params))
        p.abstract_eval(_linear_shape)
        p.jvp(partial(_linear_jvp, p))
        p.transpose(_linear_transpose, linear_in)
        p.lowering(_linear_xla)

    @called.stage
    def stage(trace: StageTrace, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return trace.process(recorded, tuple(args), params)

    @called.batch
    def batch(trace: BatchTrace, args: Sequence[Any], dims: Dims, *, backward: Backward) -> Any:
        if any(d is not None for d in dims):
            return _batched(called, trace, args, dims, backward)
        try:
            outs = called.bind(*args, backward=backward)
            return outs, [None] * len(outs)
        except UnexpectedTracerError as error:
            if not trace.is_same(error.trace):
                raise
        pairs = [trace.value_of(x) for x in trace.run(partial(_derivative, backward=backward), args, dims)]
        return [x for x, _ in pairs], [d for _, d in pairs]

    @recorded.batch
    def batch_recorded(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, backward: Backward) -> Any:
        trace = BatchTrace(state.trace, axis, backward.function)
        trace.live = False
        return _batched(recorded, trace, args, dims, backward)

    return called


def _derivative(*args: Any, backward: Backward) -> list[Any]:
    return explained(  # type: ignore[no-any-return]
        backward.function, backward.derivative, args[: backward.count], args[backward.count :]
    )


def _linear_shape(*avals: ShapedArray, backward: Backward) -> list[ShapedArray]:
    return list(backward.out_avals)


def _linear_jvp(p: Primitive, primals: Sequence[Any], tangents: Sequence[Any], *, backward: Backward) -> Any:
    count = backward.count
    parts: list[list[Any]] = []
    if any(t is not ZERO for t in tangents[:count]):
        by_residuals = [*tangents[:count], *[ZERO] * (len(tangents) - count)]
        outs, ts = jvp_flat(backward.function, partial(_derivative, backward=backward), primals, by_residuals)
        parts.append(ts)
    else:
        outs = p.bind(*primals, backward=backward)
    if any(t is not ZERO for t in tangents[count:]):
        pairs = zip(primals[count:], tangents[count:], strict=True)
        parts.append(p.bind(*primals[:count], *[instantiate(t, x) for x, t in pairs], backward=backward))
    if len(parts) == 1:
        return outs, parts[0]
    return outs, [b if a is ZERO else add_any(a, b) for a, b in zip(*parts, strict=True)]


def _linear_transpose(cts: Sequence[Any], *args: Any, backward: Backward) -> list[Any]:
    count = backward.count
    if any(map(is_linear, args[:count])):
        raise NotLinearError(
            f"the derivative of {name_of(backward.function)} is not linear in its residuals, so it cannot be "
            "transposed with respect to them"
        )
    results = explained(backward.function, backward.pull, args[:count], cts)
    return [None] * count + [ct if is_linear(x) else None for x, ct in zip(args[count:], results, strict=True)]


def _batched(p: Primitive, trace: BatchTrace, args: Sequence[Any], dims: Dims, backward: Backward) -> Any:
    out_dims: list[int | None] = [0] * len(backward.out_avals)
    mapped = BatchedBackward(backward, trace, dims[: backward.count], dims[backward.count :], out_dims)
    return p.bind(*args, backward=mapped), out_dims


def _linear_xla(hlo: Any, *operands: Any, backward: Backward) -> list[Any]:
    from pullback.backends.emit import emit_jaxpr

    avals = [ShapedArray(x.shape, x.dtype) for x in operands]
    closed = stage_flat(backward.function, partial(_derivative, backward=backward), avals)
    return emit_jaxpr(hlo, closed.jaxpr, closed.consts, operands)


linear_p = linear_operation("custom_vjp_linear", range(sys.maxsize))
