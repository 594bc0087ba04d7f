"""The rules of ``checkify`` for calls of functions with custom rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import scalar_array, typeof
from pullback.core.check_rules import checked_program
from pullback.core.errors import FailedCheckError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO
from pullback.core.zeros import zeros_of
from pullback.primitives.discrete import eq_p
from pullback.primitives.elementwise import where
from pullback.transforms.checks.report import Check, ErrorLayout, Failures, earlier, joined
from pullback.transforms.checks.trace import CheckTrace, Errors, collecting, embedded, flat, width
from pullback.transforms.custom.custom_calls import CustomCall, DerivativeCall, call_p
from pullback.transforms.custom.custom_rules import custom_jvp_call_p, custom_vjp_call_p
from pullback.transforms.custom.custom_vmap import VmapCall, custom_vmap_call_p
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.stage import stage_flat


@checked_program(call_p)
def _call(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate, under ``checkify``, a call of a function with custom rules; return the results.

    In eager mode, ``trace`` collects the failures while the function and its rules run. Otherwise the function is
    staged, and its program and its rules return their failures.
    """
    call: CustomCall = params["call"]
    if state.trace.eager:
        return call_p.bind(*args, call=_collecting(trace, call))  # type: ignore[no-any-return]
    closed, captured = hoisted(stage_flat(call.function, call.run, [typeof(x) for x in args]))
    rules = call.like(run=jaxpr_as_fun(closed), captured=call.captured + len(captured), recorded=True)
    return _equation(call.equation, trace, (*args, *captured), {"call_jaxpr": closed, "rules": rules})


def _collecting(trace: CheckTrace, call: CustomCall) -> CustomCall:
    """Return a copy of a call whose function and rules run with ``trace`` collecting the failures of their checks."""

    def collected(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with collecting(trace):
                return function(*args)

        return run

    names = "run", "jvp", "forward", "rule"
    functions = {name: getattr(call, name, None) for name in names}
    return call.like(rules=None, **{name: collected(function) for name, function in functions.items() if function})


def _equation(p: Primitive, trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate, under ``checkify``, an equation that calls a function with custom rules; return the results.

    The function and its rules are changed to return, before their results, arrays that describe the first failed check.
    These arrays have a common layout: each check of the function, and a single check for all that occur only in rules.

    Args:
      p: the primitive of the equation.
      trace: the trace of ``checkify``.
      args: the operands.
      params: the parameters: the program of the function, and its rules.
    """
    closed: ClosedJaxpr = params["call_jaxpr"]
    rules: CustomCall = params["rules"]
    program = trace.checked(closed)
    if program.layout.checks:
        layouts = program.layout, _other_checks(rules)
        layout = joined(layouts).layout
        jaxpr = embedded(program.jaxpr, program.layout, layouts, 0)
        rules = _returning(rules, layout, trace.errors, trace.enclosed)
    else:
        jaxpr, layout = program.jaxpr, program.layout
    if jaxpr is not closed:
        rules = rules.like(run=jaxpr_as_fun(jaxpr), rules=None)
    return trace.without_failures(layout, p.bind(*args, call_jaxpr=jaxpr, rules=rules))


for _p in (custom_jvp_call_p, custom_vjp_call_p, custom_vmap_call_p):
    checked_program(_p)(partial(_equation, _p))


def _other_checks(rules: CustomCall) -> ErrorLayout:
    """Return a layout of failures with a single check, for all checks that occur only in the rules of a function.

    A layout has the checks that can fail, and the types of the values in their messages.
    """
    message = f"a check failed in a rule of {name_of(rules.function)}".replace("{", "{{").replace("}", "}}")
    return ErrorLayout((Check(FailedCheckError, message, tree.structure(((), {})), (), None),), ())


def _returning(rules: CustomCall, layout: ErrorLayout, errors: Errors, enclosed: bool) -> CustomCall:
    """Return the call ``rules``, with custom rules that return their failures before their results.

    Args:
      rules: a call of a function with custom rules.
      layout: the checks and arrays by which failures are represented.
      errors: the kinds of failures.
      enclosed: whether there is an enclosing ``checkify``, for checks of other kinds.
    """
    count = width(layout)

    def checked(function: Callable[..., Any], *args: Any) -> tuple[list[Any], Any]:
        trace = CheckTrace(state.trace, rules.function, errors, enclosed)
        results = trace.run(function, *args)
        return flat(_in_layout(layout, trace.total())), results

    if isinstance(rules, VmapCall):
        vmap_rule = rules.rule

        def rule(size: int, mapped: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            failures, (outs, flags) = checked(vmap_rule, size, mapped, values)
            return [*failures, *outs], [*[False] * count, *flags]

        return rules.like(rule=rule)
    assert isinstance(rules, DerivativeCall)
    own_jvp, own_forward = rules.jvp, rules.forward

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        failures, (outs, out_tangents) = checked(own_jvp, primals, tangents)  # type: ignore[arg-type]
        return [*failures, *outs], [*[ZERO] * count, *out_tangents]

    def forward(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], LinearMap]:
        failures, (outs, residuals, backward) = checked(own_forward, primals, perturbed)  # type: ignore[arg-type]
        return [*failures, *outs], residuals, _AfterZeros(backward, layout)

    return rules.like(jvp=own_jvp and jvp, forward=own_forward and forward)


class _AfterZeros(LinearMap):
    """The derivative of a function that returns arrays for failed checks before its own results.

    The floats among these arrays have zero tangents, which precede the tangents of the own results, by ``linear_map``.
    """

    def __init__(self, linear_map: LinearMap, layout: ErrorLayout) -> None:
        self.linear_map = linear_map
        self.function = linear_map.function
        self.count = linear_map.count
        self.zeros = [a for a in layout.slots if dtypes.is_inexact(a.dtype)]
        self.out_avals = [*self.zeros, *linear_map.out_avals]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return self.linear_map.transpose(residuals, cts[len(self.zeros) :])

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return [*map(zeros_of, self.zeros), *self.linear_map.apply(residuals, tangents)]


def _in_layout(layout: ErrorLayout, failures: Failures | None) -> Failures:
    """Convert the failures of a rule to the layout ``layout``; None stands for a rule without checks.

    A failure of a check that ``layout`` lacks becomes a failure of the last check of ``layout``.
    """
    none = layout.none()
    if failures is None:
        return none
    converted = []
    for i, check in enumerate(failures.checks, 1):
        fails = eq_p.bind(failures.code, i)
        number, slots = _same(layout, check, failures.layout)
        payload = list(none.payload)
        for k, slot in zip(check.slots, slots, strict=False):
            payload[slot] = failures.payload[k]
        converted.append(Failures(where(fails, scalar_array(np.int32(number)), 0), payload, layout.checks))
    return reduce(earlier, converted, none)


def _same(layout: ErrorLayout, check: Check, own: ErrorLayout) -> tuple[int, Sequence[int]]:
    """Find in ``layout`` the check that is equal to ``check``, a check of the layout ``own``.

    Returns:
      The number of the check in ``layout``, from 1 on, and the indices of the arrays for its message. If ``layout``
      lacks the check: the number of its last check, and no indices.
    """
    for number, other in enumerate(layout.checks, 1):
        types = [(a.shape, a.dtype) for a in (layout.slots[k] for k in other.slots)]
        if other._replace(slots=()) == check._replace(slots=()) and types == [
            (own.slots[k].shape, own.slots[k].dtype) for k in check.slots
        ]:
            return number, other.slots
    return len(layout.checks), ()
