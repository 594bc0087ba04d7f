"""Splitting an operation on a tape: results that depend on no tangent are computed, the linear rest is recorded.

Partial evaluation splits an equation. The resulting equations are cached as a list of steps, which run on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, infer
from pullback.core.linear import LinearTrace, LinearTracer, operand_avals
from pullback.core.lists import positions
from pullback.core.trace import Primitive
from pullback.transforms.traces.derived import cached_by_jaxpr


class SplitStep(NamedTuple):
    """One operation of a :class:`Split`.

    Attributes:
      primitive, params: the operation.
      operands: literals, and indices into the list of the original operands followed by the results of earlier steps.
      linear: whether the step is recorded on the tape; others are evaluated.
    """

    primitive: Primitive
    params: dict[str, Any]
    operands: list[Any]
    linear: bool


class Split(NamedTuple):
    """An operation, split into steps that compute known values and steps that are linear.

    Attributes:
      steps: all steps, in order.
      results: the index of each result in the list of the original operands followed by the results of all steps.
      dependent: for each result, whether it depends on the linear operands.
    """

    steps: list[SplitStep]
    results: list[int]
    dependent: list[bool]


def split_known_linear(
    primitive: Primitive, params: dict[str, Any], args: Sequence[Any], linear: tuple[bool, ...]
) -> Split:
    """Split an operation that holds programs into steps on known values and steps that are linear.

    The split is cached in the first program among the parameters. The types of operands are not part of the key, since
    the programs determine them.

    Args:
      primitive, params: the operation.
      args: its operands.
      linear: which operands are linear.
    """
    for value in params.values():
        first = value[0] if type(value) is tuple and value else value
        if type(first) is ClosedJaxpr:
            entry = _cached_split(first, primitive, tuple(params.items()), linear)
            if not entry:
                entry.append(_split(primitive, params, args, linear))
            return entry[0]
    return _split(primitive, params, args, linear)


@cached_by_jaxpr
def _cached_split(closed: ClosedJaxpr, primitive: Primitive, params: Any, linear: tuple[bool, ...]) -> list[Split]:
    """Return the list that caches the split of an operation: empty until the caller appends the split.

    The decorator stores the list in the program ``closed``, with the other arguments as key. ``linear`` flags the
    operands in which the operation is linear.
    """
    return []


def _split(primitive: Primitive, params: dict[str, Any], args: Sequence[Any], linear: Sequence[bool]) -> Split:
    """Split an operation into steps on known values and steps that are linear, by its rule for partial evaluation.

    ``linear`` flags the operands in which the operation is linear; to the rule, these are the unknown operands.
    """
    assert primitive.partial_eval_rule is not None
    avals = operand_avals(args)
    invars, outvars = list(map(Var, avals)), list(map(Var, infer(primitive, avals, params)))
    known, unknown, dependent = primitive.partial_eval_rule(list(linear), Eqn(primitive, [*invars], params, outvars))
    eqns = [*known, *unknown]
    index = positions([*invars, *(v for eqn in eqns for v in eqn.outvars)])
    own: set[Any] = {v for v, n in zip(invars, linear, strict=True) if n}
    steps = []
    for eqn in eqns:
        # The rule returns the linear step as this primitive again, with a smaller program.
        recorded = eqn.primitive is primitive and not own.isdisjoint(eqn.invars)
        operands = [index[a] if type(a) is Var else a for a in eqn.invars]
        steps.append(SplitStep(eqn.primitive, eqn.params, operands, recorded))
    return Split(steps, [index[v] for v in outvars], list(dependent))


def record_split(
    primitive: Primitive, trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]
) -> list[Any] | None:
    """Record an operation on a tape, for linearisation, by its rule for partial evaluation.

    The tape records only the steps that depend on linear operands. Other results, for example primal values, or the
    step number that a loop carries, are computed separately as constants.

    Returns:
      The results; None if all results are linear: the caller then records the operation unsplit.
    """
    split = split_known_linear(
        primitive, params, args, tuple([type(x) is LinearTracer and x._trace is trace for x in args])
    )
    if split.dependent and all(split.dependent):  # record it unsplit; without results it runs for its effects
        return None
    values = list(args)
    for step in split.steps:
        operands = [values[i] if type(i) is int else i.val for i in step.operands]
        if step.linear:
            values += trace.record(step.primitive, operands, step.params)
        else:
            out = step.primitive.bind(*operands, **step.params)
            values += out if step.primitive.multiple_results else [out]
    return [values[i] for i in split.results]
