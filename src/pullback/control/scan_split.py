"""A step of a scan in two: what its known inputs determine, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.control.invariants import invariant_equations
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import appended, fixpoint, positions, split_list
from pullback.transforms.traces.dce import close, live_equations
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import reordered
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr

Flags = Sequence[bool]


class Split(NamedTuple):
    """A scan in two: what its known operands determine, and the rest, which takes residuals from the first.

    With a known constant ``c``, a known carry ``k`` and an unknown carry ``u``, the step ``c, k, u -> k + 1, u * sin(c)
    * cos(k)`` becomes ``invariant``: ``c -> sin(c)``; ``known``: ``c, k -> k + 1, cos(k)``; and ``unknown``: ``s, u, t
    -> u * s * t``, where ``s`` is a constant, and ``t`` an element of a stacked residual.

    Attributes:
      invariant: computes the residuals that are the same in all steps, from the known constants.
      known: the first scan's step. Stacked residuals are its last results.
      unknown: the second scan's step. Shared residuals are its first constants, stacked ones its first elements.
      carry: for each carry, whether it is unknown.
      ys: for each stacked result, whether it is unknown.
      shared: the shared residuals, as indices into the known constants and then the results of ``invariant``: ``[1]``.
      stacked: the stacked residuals, as indices into the known elements, then the known stacked results, and then the
        residuals that ``known`` computes: ``[0]``.
    """

    invariant: ClosedJaxpr
    known: ClosedJaxpr
    unknown: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]
    shared: list[int]
    stacked: list[int]


@cached_by_jaxpr
def split(closed: ClosedJaxpr, num_consts: int, num_carry: int, unknown: Flags) -> Split:
    """Cut a scan by which of its operands are unknown."""
    consts, init, xs = split_list(unknown, num_consts, num_carry)
    nothing = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def step(carry: list[bool]) -> Any:
        parts = partial_eval_jaxpr(closed, (*consts, *carry, *xs), (*carry, *nothing))
        return parts.unknown_outputs[:num_carry], parts

    carry, parts = fixpoint(step, init)
    ys = parts.unknown_outputs[num_carry:]
    known = parts.known.jaxpr
    num_known = [len(flags) - sum(flags) for flags in (consts, carry, ys)]
    const_vars, _, x_vars = split_list(known.invars, *num_known[:2])
    carry_outs, y_outs, _ = split_list(known.outvars, *num_known[1:])
    values = [*known.invars, *known.outvars]
    residuals = [values[i] for i in parts.residual_sources]
    once, _, fixed = invariant_equations(known, [*known.constvars, *const_vars], may_grow=True)
    shared = [i for i, v in enumerate(residuals) if v in fixed]
    stacked = [i for i, v in enumerate(residuals) if v not in fixed]
    # Residuals that are constants, elements or stacked results anyway are not computed once more.
    for_shared = appended(const_vars, [residuals[i] for i in shared])
    for_stacked = appended([*x_vars, *y_outs], [residuals[i] for i in stacked])
    place_shared, place_stacked = positions(for_shared), positions(for_stacked)
    rest = range(len(residuals), len(parts.unknown.jaxpr.invars))
    own_consts, own_carry, own_xs = split_list(rest, sum(consts), sum(carry))
    inputs = [*shared, *own_consts, *own_carry, *stacked, *own_xs]
    return Split(
        _part(parts.known, const_vars, once, for_shared[len(const_vars) :]),
        _part(parts.known, known.invars, known.eqns, [*carry_outs, *y_outs, *for_stacked[len(x_vars) + len(y_outs) :]]),
        reordered(parts.unknown, inputs, range(sum(carry) + sum(ys))),
        carry,
        ys,
        [place_shared[residuals[i]] for i in shared],
        [place_stacked[residuals[i]] for i in stacked],
    )


def _part(closed: ClosedJaxpr, inputs: Sequence[Var], eqns: Sequence[Eqn], results: Sequence[Any]) -> ClosedJaxpr:
    """The part of a program that computes some of its variables from inputs that determine them."""
    eqns, live = live_equations(eqns, results)
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    return close(Jaxpr([v for v in values if v in live], inputs, eqns, results), values)
