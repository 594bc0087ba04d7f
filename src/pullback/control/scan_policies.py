"""How policies of ``checkpoint`` reach into loops: of each step of a scan is kept what they say, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.control.common import select
from pullback.control.scan_primitive import scan_p
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, appended, positions
from pullback.transforms.checkpoint.checkpoint_policies import Policy
from pullback.transforms.checkpoint.checkpoint_primitive import RematSplit, remat_split
from pullback.transforms.interpreters.dce import close, live_equations
from pullback.transforms.interpreters.jaxprs import cached_by_jaxpr

Flags = Sequence[bool]


class _Steps(NamedTuple):
    """A scan in two: one that is run at first, and one that computes again what is not kept of its steps.

    Attributes:
      first: a step; it gives what the step did, and then those kept values that are not stacked anyway.
      again: from some constants, carry, elements and kept values to the carry, and those results that are not kept.
      inputs: which inputs of the step ``again`` takes.
      takes: where the kept values that it takes are, in the list of the results of ``first`` that are stacked.
      kept: where all results that are kept are in those of ``first``.
      carry: which carries it has.
      ys: which other results it gives.
    """

    first: ClosedJaxpr
    again: ClosedJaxpr
    inputs: list[bool]
    takes: list[int]
    kept: list[int]
    carry: list[bool]
    ys: list[bool]


@cached_by_jaxpr
def _steps(
    closed: ClosedJaxpr, num_consts: int, num_carry: int, wanted: Flags, policy: Policy, effects: bool
) -> _Steps:
    jaxpr = closed.jaxpr
    carry_in = jaxpr.invars[num_consts : num_consts + num_carry]
    carry_out, stacked = jaxpr.outvars[:num_carry], jaxpr.outvars[num_carry:]
    last = set(remat_split(jaxpr.eqns, select(carry_out, wanted[:num_carry]), policy, False).kept)
    carry = [w and a not in last for a, w in zip(carry_out, wanted, strict=False)]
    results = select(stacked, wanted[num_carry:])
    while True:  # A carry that a step reads must be carried.
        halves = remat_split(jaxpr.eqns, [*select(carry_out, carry), *results], policy, effects)
        kept = set(halves.kept)
        ys = [w and a not in kept for a, w in zip(stacked, wanted[num_carry:], strict=True)]
        outs = [*select(carry_out, carry), *select(stacked, ys)]
        again, read = live_equations(halves.again, outs)
        needed = [c or v in read for c, v in zip(carry, carry_in, strict=True)]
        if needed == carry:
            break
        carry = needed
    taken = [v for v in halves.kept if v in read]
    columns = appended(stacked, taken)
    place, carried = positions(columns), set(taken)
    inputs = [v in read for v in jaxpr.invars]
    inputs[num_consts : num_consts + num_carry] = carry
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    own = [v in last and w for v, w in zip(carry_out, wanted, strict=False)]
    own += [v in carried or (v in kept and wanted[num_carry + i]) for i, v in enumerate(columns)]
    return _Steps(
        close(Jaxpr(jaxpr.constvars, jaxpr.invars, halves.first, [*carry_out, *columns]), values),
        close(Jaxpr([v for v in values if v in read], [*select(jaxpr.invars, inputs), *taken], again, outs), values),
        inputs,
        [place[v] for v in taken],
        [i for i, o in enumerate(own) if o],
        carry,
        ys,
    )


def _again(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    params: dict[str, Any] = eqn.params
    num_consts, num_carry, length = params["num_consts"], params["num_carry"], params["length"]
    steps = _steps(params["jaxpr"], num_consts, num_carry, tuple(wanted), policy, effects)
    more = steps.first.out_avals[len(eqn.outvars) :]
    bound = [*eqn.outvars, *[Var(a.update(shape=(length, *a.shape))) for a in more]]
    first = Eqn(scan_p, eqn.invars, {**params, "jaxpr": steps.first}, bound, eqn.made_at, eqn.scope)
    carry_outs, y_outs = eqn.outvars[:num_carry], eqn.outvars[num_carry:]
    carried = [v if w and i not in steps.kept else Var(v.aval) for i, (v, w) in enumerate(zip(carry_outs, wanted))]
    counts = {"num_consts": sum(steps.inputs[:num_consts]), "num_carry": sum(steps.carry)}
    operands = [*select(eqn.invars, steps.inputs), *[bound[num_carry + i] for i in steps.takes]]
    results = [*select(carried, steps.carry), *select(y_outs, steps.ys)]
    again = Eqn(scan_p, operands, {**params, **counts, "jaxpr": steps.again}, results, eqn.made_at, eqn.scope)
    return RematSplit([first], [again] if results or again.effect else [], [bound[i] for i in steps.kept])


scan_p.remat(_again)
