"""Calls of functions with custom rules, as operations that all traces process.

A call is an operation whose parameter holds Python functions: the function, and its rules. Every trace applies its
transformation to these functions, which run as ordinary Python while no trace stages. A jaxpr holds the jaxpr of the
function, and the rules as Python functions: a rule may call the function itself, so that tracing rules in advance would
not terminate.

The law is ``T(call(f, rule)) == call(T(f), T(rule))`` for every transformation T that the rule is not for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, host_value, is_on_host, typeof
from pullback.core.errors import ClosedOverError, CustomRuleError, NotLinearError, PullbackError
from pullback.core.inlining import inlined
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linear import LinearTrace, LinearTracer
from pullback.core.lists import scatter_where, select
from pullback.core.taylor_rules import repeats
from pullback.core.trace import Primitive, Trace, Tracer, leaked, state
from pullback.core.types import ZERO, MappedAxis
from pullback.core.zeros import zeros_of
from pullback.transforms.custom.closed_over import run_rule
from pullback.transforms.custom.linear_map import (
    BatchedLinearMap,
    Dims,
    HoldsFunction,
    JVPRule,
    LinearMap,
    WithJvpRule,
    linear_p,
    of_inexact,
    run_batched,
    with_batch_axes,
)
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.affine import is_affine
from pullback.transforms.traces.batch import BatchTrace, UnmappedResult
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.stage import StageTrace, stage_flat


class CustomCall(HoldsFunction):
    """A call of a function with custom rules. Subclasses implement differentiation and batching.

    Attributes:
      run: takes flat operands, and returns the list of results.
      captured: how many of the last operands are values that the function closed over when it was staged.
      recorded: whether the call is in a jaxpr.
      in_own_rule: whether a backward rule of the function itself made the call.
      rules: an object that is equal for calls of the same function with the same rules; None if it is not comparable.
      equation: the primitive of the call in a jaxpr.
      equal_by_key: True: two calls in programs are equal if their keys are equal and not None.
    """

    equal_by_key = True
    run: Callable[..., list[Any]]
    captured: int = 0
    recorded: bool = False
    in_own_rule: bool = False
    rules: Any = None
    equation: Primitive

    @property
    def key(self) -> Any:
        return (self.rules, self.captured, self.in_own_rule) if self.recorded and self.rules is not None else None

    def like(self, **changes: Any) -> Self:
        """Return a copy of the call with some attributes replaced."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    def differentiate(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the results and their tangents, by the rules of the call; a tangent may be ``ZERO``.

        The call is made under the trace that operations on tangents run under.
        """
        raise NotImplementedError

    def batch(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """Return the results for a batch of operands, and the position of the mapped axis, or None, in each result.

        ``dims`` has the position of the mapped axis in each operand. The current trace is the parent of ``trace``.
        """
        raise NotImplementedError

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        """Return the results for concrete operands."""
        return self.run(*operands)

    def inline(self, run: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
        """Return the function's results for ``operands``, while the current trace is a tape that records operations.

        By default, call the function, ``run``, so that the tape records each of its operations.
        """
        return run(*operands)

    def repeats(self, earlier: CustomCall) -> bool:
        """Whether this call has the same function and rules as ``earlier``, so that it may reuse those results."""
        return False

    def own(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the operands that the user passed: all except the captured values at the end."""
        return operands[: len(operands) - self.captured] if self.captured else operands

    def own_pairs(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the primals and the tangents of the operands that the user passed, without those of captured values.

        Raise if a captured value has a tangent: rules have no derivative for it.
        """
        if any(t is not ZERO for t in tangents[len(tangents) - self.captured :]):
            raise ClosedOverError(
                f"{name_of(self.function)} is differentiated with respect to a value that it closes over, but its "
                f"rule has no derivative for this value. Pass the value as an argument; pullback.closure_convert "
                f"finds the values "
                "that a function closes over."
            )
        return self.own(primals), self.own(tangents)


call_p = Primitive("custom_call", multiple_results=True, keeps_weak_type=False)


call_p.impl(lambda args, params: params["call"].evaluate(args))
call_p.decomposition_rule = lambda *args, call: call.inline(call.run, args)
call_p.jvp(lambda primals, tangents, *, call: call.differentiate(primals, tangents))
repeats(call_p)(lambda earlier, *, call: call.repeats(earlier["call"]))
call_p.batch(lambda trace, args, dims, *, call: call.batch(trace, args, dims))


@call_p.stage
def _stage(trace: StageTrace, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Record a call as an equation that holds the jaxpr of the function; return tracers for its results.

    Tracers that the function closes over become operands of the equation.
    """
    call: CustomCall = params["call"]
    outer, state.trace = state.trace, trace
    try:
        closed, captured = hoisted(stage_flat(call.function, call.run, [typeof(x) for x in args]))
    finally:
        state.trace = outer
    rules = call.like(run=jaxpr_as_fun(closed), captured=call.captured + len(captured), recorded=True)
    return trace.process(call.equation, (*args, *captured), {"call_jaxpr": closed, "rules": rules})


# In a jaxpr ---------------------------------------------------------------------------------------------------------


def equation(name: str) -> Primitive:
    """Make the primitive called ``name`` that represents calls of a subclass of ``CustomCall`` in jaxprs."""
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)

    p.abstract_eval(lambda *avals, call_jaxpr, rules: call_jaxpr.out_avals)
    p.decomposition(lambda *args, call_jaxpr, rules: rules.inline(jaxpr_as_fun(call_jaxpr), args))

    @p.jvp
    def jvp(primals: Any, tangents: Any, *, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> Any:
        outs, out_tangents = run_rule(rules.function, rules.differentiate, primals, tangents)
        for i, (x, aval) in enumerate(zip(outs, call_jaxpr.out_avals, strict=True)):
            if x.shape != aval.shape or x.dtype != aval.dtype:
                raise CustomRuleError(
                    f"the derivative rule of {name_of(rules.function)} returned {typeof(x)} as result {i}, where the "
                    f"function itself returns {aval}; a rule must return the function's own results"
                )
        return outs, out_tangents

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Dims, *, call_jaxpr: ClosedJaxpr, rules: CustomCall) -> Any:
        trace = BatchTrace(state.trace, axis, rules.function)
        trace.live = False
        return run_rule(rules.function, rules.batch, trace, args, dims)

    inlined(p)(lambda *, call_jaxpr, rules: call_jaxpr)
    p.lowering(lambda hlo, *operands, call_jaxpr, rules: write_program(hlo, call_jaxpr, operands))
    return p


# Batching -----------------------------------------------------------------------------------------------------------


class OutDims:
    """The position of the mapped axis in each result of a batched call: 0, or None.

    The function and its rules must agree on the positions, so the first of them to run determines the positions.

    If any operand is mapped, all results are mapped, since the backward rule takes the cotangents of one example. The
    position is ``UnmappedResult(0)`` for a result that is equal for all examples, whose cotangents may still differ.
    If no operand is mapped, a result is mapped only if it depends on a mapped value that the function closes over.
    """

    def __init__(self, trace: BatchTrace, dims: Dims) -> None:
        self.trace = trace
        self.forced = any(d is not None for d in dims)
        self.dims: list[int | None] = []

    def fix(self, *groups: Sequence[Any], residuals: Dims = ()) -> None:
        """Determine the position of the mapped axis in each result; do nothing if it is determined already.

        Args:
          groups: lists with a value for each result: the results themselves, and their tangents if they are known.
          residuals: the positions of the mapped axis in the residuals. If any residual is mapped, all results are
            mapped, since the backward rule then runs for each example, and needs the cotangents of each.
        """
        if not self.dims:
            found = [[self.trace.value_of(x)[1] for x in group] for group in groups]  # the position in each result
            forced = self.forced or any(d is not None for d in residuals)
            varies = [
                any(d is not None and type(d) is not UnmappedResult for d in ds) for ds in zip(*found, strict=True)
            ]
            self.dims = [0 if v else UnmappedResult(0) if forced else None for v in varies]
            if forced and not all(varies):
                self.trace.tag.has_uniform = True

    def at_mapped_axis(self, *groups: Sequence[Any]) -> list[list[Any]]:
        """Move the mapped axes of values to the positions that are determined for the results; return the moved values.

        Each of ``groups`` is a list with a value for each result, such as a tangent. If the positions are not
        determined yet, they are first determined from ``groups``.
        """
        self.fix(*groups)
        return [with_batch_axes(self.trace, group, self.dims) for group in groups]


# Calls with derivative rules ----------------------------------------------------------------------------------------

ForwardRule = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], "LinearMap"]]


class DerivativeCall(CustomCall):
    """A call of a function with derivative rules.

    Attributes:
      jvp: the jvp rule ``(primals, tangents) -> (results, tangents)``, or None.
      forward: the forward rule of reverse mode ``(primals, perturbed) -> (results, residuals, backward)``, or None. The
        flags ``perturbed`` say which primals have a tangent; ``backward`` is a linear map.
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

    def repeats(self, earlier: CustomCall) -> bool:
        if self.rules is None or self.rules != earlier.rules:
            return False
        if isinstance(self.run, FlatFunction) and isinstance(earlier.run, FlatFunction):  # this call does not run
            self.run.out_tree = earlier.run.out_tree
        return True

    def differentiate(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        if self.captured:
            primals, tangents = self.own_pairs(primals, tangents)
        rules = state.trace
        # Whether this is surely forward mode. Reverse mode of a program begins with it, so a recorded call cannot tell.
        forwards = rules.eager or not self.recorded
        nonzero: list[Any] = []
        perturbed: list[bool] = []
        for t in tangents:
            perturbed.append(t is not ZERO)
            if t is not ZERO:
                nonzero.append(t)
                forwards = forwards and type(t) is not LinearTracer
        if self.forward is None or (self.jvp is not None and forwards):
            return self._by_jvp_rule(rules, primals, tangents)
        if isinstance(rules, LinearTrace):  # the forward rule has no tangents: skip the tape
            state.trace = rules.parent
        try:
            outs, residuals, backward = self.forward(primals, perturbed)
        finally:
            state.trace = rules
        if self.jvp is not None:
            residuals, backward = [*residuals, *primals], WithJvpRule(backward, self.jvp, perturbed)
        found = None
        if forwards:  # now, while the traces are active whose values the backward rule may close over
            try:
                found = backward.apply(residuals, nonzero)
            except NotLinearError:
                if rules.eager:
                    raise
        results = linear_p.bind(*residuals, *nonzero, linear_map=backward) if found is None else found
        if len(results) == len(outs):
            return outs, results
        return outs, scatter_where([dtypes.is_inexact(x.dtype) for x in outs], results, ZERO)

    def _by_jvp_rule(
        self, rules: Trace, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Apply the jvp rule; return the results and their tangents.

        ``rules`` is the current trace. If it is the tape of a linearisation, raise if the rule records an operation
        that is not linear in the tangents, or that uses a tracer of another trace.
        """
        assert self.jvp is not None
        if not isinstance(rules, LinearTrace):
            return self.jvp(primals, tangents)
        before = len(rules.nodes)
        outs, out_tangents = self.jvp(primals, tangents)
        for node in rules.nodes[before:]:
            for x in node.args:
                if isinstance(x, Tracer) and not _is_below(x._trace, rules):
                    raise leaked(x)
            if rules.eager and is_affine(node, rules.parent):
                raise NotLinearError(
                    f"the jvp rule of {name_of(self.function)} adds a constant to a tangent (by {node.primitive}): "
                    f"the result must be linear in the input tangents"
                )
        for t in out_tangents:
            if is_on_host(t) and host_value(t).any():
                raise NotLinearError(
                    f"the jvp rule of {name_of(self.function)} returned the tangent {t!r}, which is nonzero and "
                    f"does not depend on the input tangents: it must be linear in them"
                )
        return outs, out_tangents

    def evaluate(self, operands: Sequence[Any]) -> list[Any]:
        outs = self.run(*operands)
        for x in outs:  # no rule covers closed-over values, so that results must not depend on them
            if type(x) is not ArrayImpl and isinstance(x, Tracer) and type(x) is not LinearTracer:
                raise leaked(x)
        return outs

    def inline(self, run: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
        trace = state.trace
        if not (isinstance(trace, LinearTrace) and self.in_own_rule and self.forward is not None):
            return run(*operands)
        # A backward rule calls the function itself to solve another problem, which is linear in the cotangent. Steps of
        # the function, such as the convergence test of an iteration, need not be linear: its own rules transpose it.
        before = len(trace.nodes)
        try:
            return run(*operands)
        except PullbackError as error:
            if not isinstance(error, NotLinearError) and error.trace is not trace:
                raise
        del trace.nodes[before:]
        own = [type(x) is LinearTracer and x._trace is trace for x in operands]
        at_zero = [zeros_of(x.aval) if is_own else x for x, is_own in zip(operands, own, strict=True)]
        tangents = [x if is_own else ZERO for x, is_own in zip(operands, own, strict=True)]
        outs, out_tangents = self.differentiate(at_zero, tangents)
        return [x if t is ZERO else t for x, t in zip(outs, out_tangents, strict=True)]

    def batch(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        out_dims = OutDims(trace, dims)
        own_dims = self.own(dims)
        jvp, forward = self.jvp, self.forward

        def batched_run(*args: Any) -> list[Any]:
            return out_dims.at_mapped_axis(trace.run(self.run, args, dims))[0]

        def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            outs, ts = out_dims.at_mapped_axis(*run_batched(trace, jvp, primals, own_dims, tangents, own_dims))
            return outs, ts

        def batched_forward(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
            assert forward is not None
            outs, residuals, backward = trace.run(lambda *xs: forward(xs, perturbed), primals, own_dims)
            pairs = [trace.value_of(x) for x in residuals]
            residual_dims = [d for _, d in pairs]
            out_dims.fix(outs, residuals=residual_dims)
            (values,) = out_dims.at_mapped_axis(outs)
            in_dims, result_dims = select(own_dims, perturbed), of_inexact(out_dims.dims, outs)
            return values, [x for x, _ in pairs], BatchedLinearMap(backward, trace, residual_dims, in_dims, result_dims)

        call = self.like(run=batched_run, jvp=jvp and batched_jvp, forward=forward and batched_forward, rules=None)
        return call_p.bind(*args, call=call), out_dims.dims


def _is_below(trace: Trace, other: Trace) -> bool:
    """Whether ``trace`` is ``other``, or one of the parents (direct or not) of ``other``."""
    while other is not trace and not other.is_same(trace):
        if other is other.parent:
            return False
        other = other.parent
    return True
