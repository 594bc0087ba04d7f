"""Programs that keep what a plan says: segments become checkpointed functions, which name the values to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.control.memory_costs import flattened
from pullback.control.memory_loops import divided
from pullback.control.memory_segments import Segment
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.transforms.checkpoint.checkpoint_policies import name_p
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.traces.derived import cached_by_jaxpr

_KEPT = "kept by a plan"


class KeepsNamed:
    """A policy that saves the results of operations whose values a plan has named, and nothing else."""

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> bool:
        return params.get("name") == _KEPT

    def keeps_operand(self, eqn: Eqn) -> bool:
        """Whether the operand of an equation, which equals its result, counts as saved, too."""
        return self(eqn.primitive, **eqn.params)

    def __repr__(self) -> str:
        return "the plan's policy"


KEEPS_NAMED = KeepsNamed()


def rewritten(flat: ClosedJaxpr, segments: Sequence[Segment], prevent_cse: bool = True) -> ClosedJaxpr:
    """Return a program with the same results whose backward pass keeps what the segments say.

    Args:
      flat: the program.
      segments: the segments of all its equations, in order.
      prevent_cse: whether compilers could merge the recomputation with the first computation; not in a loop.
    """
    jaxpr = flat.jaxpr
    renamed: dict[Any, Atom] = {}
    last: dict[Any, int] = {a: i for i, eqn in enumerate(jaxpr.eqns) for a in eqn.invars}
    last.update(dict.fromkeys(jaxpr.outvars, len(jaxpr.eqns)))
    eqns: list[Eqn] = []
    for segment in segments:
        own: list[Eqn] = []
        exits: list[Var] = []
        for i in range(segment.start, segment.end):
            eqn = jaxpr.eqns[i]
            if any(a in renamed for a in eqn.invars):
                eqn = eqn.like([renamed.get(a, a) for a in eqn.invars], eqn.outvars)
            own.append(eqn)
            if segment.kept is not None and i in segment.kept and last.get(eqn.outvars[0], -1) > i:
                v = eqn.outvars[0]
                same = Var(v.aval)
                own.append(Eqn(name_p, [v], {"name": _KEPT}, [same], eqn.made_at, eqn.scope))
                renamed[v] = same
            exits += [v for v in jaxpr.eqns[i].outvars if last.get(v, -1) >= segment.end]
        if segment.loop is not None:
            eqns.append(divided(own[0], segment.loop, _step))
        elif segment.kept is None:
            eqns += own
        else:
            eqns.append(_region(own, [renamed.get(v, v) for v in exits], prevent_cse))
    outvars = [renamed.get(a, a) for a in jaxpr.outvars]
    # Divided loops are inlined: a compiler moves constants into loops only where it sees both.
    return flattened(ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), flat.consts))


@cached_by_jaxpr
def _step(body: ClosedJaxpr, kept: frozenset[int], prevent_cse: bool) -> ClosedJaxpr:
    """Return the step of a loop that keeps the results of some equations of its flat program."""
    flat = flattened(body)
    segment = Segment(0, len(flat.jaxpr.eqns), kept, 0, 0, 0.0)
    return rewritten(flat, [segment], prevent_cse)


def _region(eqns: Sequence[Eqn], outs: list[Any], prevent_cse: bool) -> Eqn:
    bound = {v for eqn in eqns for v in eqn.outvars}
    inputs = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in bound))
    closed = ClosedJaxpr(Jaxpr([], [*inputs], list(eqns), outs))
    params = {"jaxpr": closed, "policy": KEEPS_NAMED, "prevent_cse": prevent_cse, "differentiated": False}
    return Eqn(checkpoint_p, [*inputs], params, outs, eqns[0].made_at)
