"""Calls: functions with rules of their own, as all traces see them.

A call is an operation whose parameter holds Python functions: the function, and its rules. Every trace passes through
it to these functions. So they are ordinary Python as long as nothing is staged; a jaxpr holds the function's jaxpr, and
the rules as they are, since a rule may call the function itself, so that tracing it ahead would never end.

The law is ``T(call(f, rule)) == call(T(f), T(rule))`` for every transformation T that the rule is not for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.errors import ClosedOverError, CustomRuleError, NotLinearError, PullbackError, UnexpectedTracerError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linear import LinearTrace, LinearTracer, LinearVar
from pullback.core.trace import Primitive, Trace, Tracer, leaked, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.transforms.custom.closed_over import closed_over, explained
from pullback.transforms.custom.linear_map import (
    BatchedLinearMap,
    Dims,
    JVPRule,
    LinearMap,
    WithJvpRule,
    linear_p,
    sparse,
    with_batch_axis,
)
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.interpreters.batch import BatchTrace, Uniform
from pullback.transforms.interpreters.stage import StageTrace, hoisted, stage_flat
from pullback.transforms.interpreters.transpose import is_affine


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


class OutDims:
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
        """Fix them by some groups of results, of which each is like the results of the function.

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
        return [x if x is ZERO else with_batch_axis(self.trace, x, d) for x, d in zip(results, wanted, strict=True)]


# Calls with derivative rules ----------------------------------------------------------------------------------------

ForwardRule = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], "LinearMap"]]


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
        if self.captured:
            primals, tangents = self.own_pairs(primals, tangents)
        rules = state.trace
        # What is in a program is differentiated forwards also on the way to reverse mode.
        forwards = rules.eager or not self.recorded
        given: list[Any] = []
        perturbed: list[bool] = []
        for t in tangents:
            perturbed.append(t is not ZERO)
            if t is not ZERO:
                given.append(t)
                forwards = forwards and type(t) is not LinearTracer
        if self.forward is None or (self.jvp is not None and forwards):
            return self._by_jvp_rule(rules, primals, tangents)
        if isinstance(rules, LinearTrace):  # which would only hand on what the rule does
            state.trace = rules.parent
        try:
            outs, residuals, backward = self.forward(primals, perturbed)
        finally:
            state.trace = rules
        if self.jvp is not None:
            residuals, backward = [*residuals, *primals], WithJvpRule(backward, self.jvp, perturbed)
        found = None
        if forwards:  # at once, while the traces are at work whose values the backward rule may close over
            try:
                found = backward.apply(residuals, given)
            except NotLinearError:
                if rules.eager:
                    raise
        results = iter(linear_p.bind(*residuals, *given, linear_map=backward) if found is None else found)
        if len(backward.out_avals) == len(outs):
            return outs, list(results)
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
        out_dims = OutDims(trace, dims)
        own_dims = self.own(dims)
        jvp, forward = self.jvp, self.forward

        def batched_run(*args: Any) -> list[Any]:
            outs = trace.run(self.run, args, dims)
            out_dims.settle(outs)
            return out_dims.put(outs)

        def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            assert jvp is not None
            flat, given = sparse(jvp, tangents)
            tangent_dims = [d for t, d in zip(tangents, own_dims, strict=True) if t is not ZERO]
            outs, ts = trace.run(flat, [*primals, *given], [*own_dims, *tangent_dims])
            out_dims.settle(outs, ts)
            return out_dims.put(outs), out_dims.put(ts)

        def batched_forward(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
            assert forward is not None
            outs, residuals, backward = trace.run(lambda *xs: forward(xs, perturbed), primals, own_dims)
            pairs = [trace.value_of(x) for x in residuals]
            residual_dims = [d for _, d in pairs]
            out_dims.settle(outs, residuals=residual_dims)
            values = out_dims.put(outs)
            assert out_dims.dims is not None
            result_dims = [d for x, d in zip(outs, out_dims.dims, strict=True) if dtypes.is_inexact(x.dtype)]
            in_dims = [d for d, p in zip(own_dims, perturbed, strict=True) if p]
            return values, [x for x, _ in pairs], BatchedLinearMap(backward, trace, residual_dims, in_dims, result_dims)

        call = DerivativeCall(
            self.equation, self.function, batched_run, jvp and batched_jvp, forward and batched_forward
        )
        call.captured = self.captured
        call.recorded, call.by_itself = self.recorded, self.by_itself
        outs = call_p.bind(*args, call=call)
        assert out_dims.dims is not None
        return outs, out_dims.dims


_UNTRACED = frozenset((LinearVar, ArrayImpl, float, int))


def _is_below(trace: Trace, other: Trace) -> bool:
    """Whether a trace is another one, or one that the other hands operations to."""
    while other is not trace and not other.is_same(trace):
        if other is other.parent:
            return False
        other = other.parent
    return True
