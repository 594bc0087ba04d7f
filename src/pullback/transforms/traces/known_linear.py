"""Operations in two parts on a tape: what the tape knows is computed, and the rest, which is linear, is recorded.

Partial evaluation cuts an equation. What it makes of an operation with given parameters is kept as a list of steps,
which run on values.
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
    """One operation of a split.

    Attributes:
      primitive, params: what it does.
      operands: indices into the list of the operands of the whole and the results of the steps before it; and literals.
      linear: whether it is recorded.
    """

    primitive: Primitive
    params: dict[str, Any]
    operands: list[Any]
    linear: bool


class Split(NamedTuple):
    """An operation in two parts.

    Attributes:
      steps: the operations of both parts, in order.
      results: indices of the results, into the list of the operands of the whole and the results of all steps.
      dependent: for each result, whether it depends on the operands in which the operation is linear.
    """

    steps: list[SplitStep]
    results: list[int]
    dependent: list[bool]


def split_known_linear(
    primitive: Primitive, params: dict[str, Any], args: Sequence[Any], linear: tuple[bool, ...]
) -> Split:
    """Cut an operation by which of its operands it is linear in.

    The split is kept with the first program among the parameters. Parameters that hold programs say which types the
    operands have, but for weak types, which make no difference.
    """
    for value in params.values():
        first = value[0] if type(value) is tuple and value else value
        if type(first) is ClosedJaxpr:
            kept = _cached_split(first, primitive, tuple(params.items()), linear)
            if not kept:
                kept.append(_split(primitive, params, args, linear))
            return kept[0]
    return _split(primitive, params, args, linear)


@cached_by_jaxpr
def _cached_split(closed: ClosedJaxpr, primitive: Primitive, params: Any, linear: tuple[bool, ...]) -> list[Split]:
    """A list of at most one split, to be filled on the first use."""
    return []


def _split(primitive: Primitive, params: dict[str, Any], args: Sequence[Any], linear: Sequence[bool]) -> Split:
    assert primitive.partial_eval_rule is not None
    avals = operand_avals(args)
    invars, outvars = list(map(Var, avals)), list(map(Var, infer(primitive, avals, params)))
    known, unknown, dependent = primitive.partial_eval_rule(list(linear), Eqn(primitive, [*invars], params, outvars))
    eqns = [*known, *unknown]
    place = positions([*invars, *(v for eqn in eqns for v in eqn.outvars)])
    own: set[Any] = {v for v, n in zip(invars, linear, strict=True) if n}
    steps = []
    for eqn in eqns:
        # The rule returns the operation itself, smaller, for its linear part.
        recorded = eqn.primitive is primitive and not own.isdisjoint(eqn.invars)
        operands = [place[a] if type(a) is Var else a for a in eqn.invars]
        steps.append(SplitStep(eqn.primitive, eqn.params, operands, recorded))
    return Split(steps, [place[v] for v in outvars], list(dependent))


def record_split(
    primitive: Primitive, trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]
) -> list[Any] | None:
    """The record rule of an operation that partial evaluation cuts.

    Results that do not depend on the operands in which it is linear are computed apart, since they are not linear: the
    values beside the tangents, or the number of the step that a loop carries.
    """
    parts = split_known_linear(
        primitive, params, args, tuple([type(x) is LinearTracer and x._trace is trace for x in args])
    )
    if parts.dependent and all(parts.dependent):  # an operation without results is there for its effects alone
        return None
    values = list(args)
    for step in parts.steps:
        operands = [values[i] if type(i) is int else i.val for i in step.operands]
        if step.linear:
            values += trace.record(step.primitive, operands, step.params)
        else:
            out = step.primitive.bind(*operands, **step.params)
            values += out if step.primitive.multiple_results else [out]
    return [values[i] for i in parts.results]
