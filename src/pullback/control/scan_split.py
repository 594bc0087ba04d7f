"""Partial evaluation of scans: splitting a scan into one of known values, and one of the rest."""

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
    """A scan, split into a known scan and an unknown scan, which takes residuals of the first.

    With a known const ``c``, a known carry ``k`` and an unknown carry ``u``, the step ``c, k, u -> k + 1, u * sin(c)
    * cos(k)`` becomes ``invariant``: ``c -> sin(c)``; ``known``: ``c, k -> k + 1, cos(k)``; and ``unknown``: ``s, u, t
    -> u * s * t``, where ``s`` is a const, and ``t`` an element of a stacked residual.

    Attributes:
      invariant: computes the shared residuals, which are equal in all steps, from the known consts.
      known: the step of the known scan. Stacked residuals are its last results.
      unknown: the step of the unknown scan. Its first consts are shared residuals, its first elements stacked ones.
      carry: for each carried value, whether it is unknown.
      ys: for each stacked result, whether it is unknown.
      shared: the shared residuals, as indices into the known consts followed by the results of ``invariant``: ``[1]``.
      stacked: the stacked residuals, as indices into the known xs, followed by the known stacked results and the
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
    """Split a scan by partial evaluation into a scan of known values and a scan of unknown values.

    Args:
      closed: the step.
      num_consts, num_carry: the number of consts and of carried values.
      unknown: which operands of the scan (consts, initial carry, xs) are unknown.
    """
    consts, init, xs = split_list(unknown, num_consts, num_carry)
    not_forced = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def step(carry: list[bool]) -> Any:  # a carried value is unknown if it is unknown after any step
        cut = partial_eval_jaxpr(closed, (*consts, *carry, *xs), (*carry, *not_forced))
        return cut.unknown_outputs[:num_carry], cut

    carry, cut = fixpoint(step, init)
    ys = cut.unknown_outputs[num_carry:]
    known = cut.known.jaxpr
    num_known = [len(flags) - sum(flags) for flags in (consts, carry, ys)]
    const_vars, _, x_vars = split_list(known.invars, *num_known[:2])
    carry_outs, y_outs, _ = split_list(known.outvars, *num_known[1:])
    values = [*known.invars, *known.outvars]
    residuals = [values[i] for i in cut.residual_sources]
    invariant, _, fixed = invariant_equations(known, [*known.constvars, *const_vars], may_grow=True)
    shared = [i for i, v in enumerate(residuals) if v in fixed]
    stacked = [i for i, v in enumerate(residuals) if v not in fixed]
    # Residuals that are consts, elements or stacked results are not returned twice.
    for_shared = appended(const_vars, [residuals[i] for i in shared])
    for_stacked = appended([*x_vars, *y_outs], [residuals[i] for i in stacked])
    shared_index, stacked_index = positions(for_shared), positions(for_stacked)
    rest = range(len(residuals), len(cut.unknown.jaxpr.invars))
    own_consts, own_carry, own_xs = split_list(rest, sum(consts), sum(carry))
    inputs = [*shared, *own_consts, *own_carry, *stacked, *own_xs]
    return Split(
        _subprogram(cut.known, const_vars, invariant, for_shared[len(const_vars) :]),
        _subprogram(
            cut.known, known.invars, known.eqns, [*carry_outs, *y_outs, *for_stacked[len(x_vars) + len(y_outs) :]]
        ),
        reordered(cut.unknown, inputs, range(sum(carry) + sum(ys))),
        carry,
        ys,
        [shared_index[residuals[i]] for i in shared],
        [stacked_index[residuals[i]] for i in stacked],
    )


def _subprogram(closed: ClosedJaxpr, inputs: Sequence[Var], eqns: Sequence[Eqn], results: Sequence[Any]) -> ClosedJaxpr:
    """Make a program from some of the equations of ``closed``.

    The program takes the variables ``inputs``, evaluates those of ``eqns`` that are needed, and returns ``results``.
    """
    eqns, live = live_equations(eqns, results)
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    return close(Jaxpr([v for v in values if v in live], inputs, eqns, results), values)
