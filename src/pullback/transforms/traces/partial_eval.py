"""Partial evaluation: splitting a jaxpr into the equations that depend on known inputs only, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import positions
from pullback.core.types import ShapedArray
from pullback.transforms.traces.dce import close, flags, live_equations
from pullback.transforms.traces.derived import cached_by_jaxpr

PartialEvalRule = Callable[[list[bool], Eqn], tuple[list[Eqn], list[Eqn], list[bool]]]


class PartialEvaluation(NamedTuple):
    """A jaxpr that was split in two.

    Attributes:
      known: takes the known inputs; returns the known results, followed by the other residuals.
      unknown: takes the residuals, followed by the unknown inputs; returns the unknown results.
      unknown_outputs: for each result of the original jaxpr, whether ``unknown`` returns it.
      residual_avals: the types of the residuals.
      residual_sources: the index of each residual in the list of the known inputs followed by the results of ``known``:
        a residual that is an input or a known result is not returned twice.
      recomputes: whether ``unknown`` recomputes values that ``known`` computes.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_outputs: list[bool]
    residual_avals: list[ShapedArray]
    residual_sources: list[int]
    recomputes: bool = False

    def residuals(self, known_inputs: Sequence[Any], known_results: Sequence[Any]) -> list[Any]:
        """Select the residuals, which ``unknown`` takes first, from the inputs and the results of ``known``."""
        values = [*known_inputs, *known_results]
        return [values[i] for i in self.residual_sources]

    def merge(self, known_results: Sequence[Any], unknown_results: Sequence[Any]) -> list[Any]:
        """Merge known and unknown results into one list, in the order of the original jaxpr."""
        known, unknown = iter(known_results), iter(unknown_results)
        return [next(unknown if u else known) for u in self.unknown_outputs]


@cached_by_jaxpr
def partial_eval_jaxpr(
    closed: ClosedJaxpr, unknown_inputs: Sequence[bool], instantiate: Sequence[bool] | bool = False
) -> PartialEvaluation:
    """Split a jaxpr into a program that does not depend on the unknown inputs, and a program for the rest.

    Running the known program, and then the unknown one on the residuals and unknown inputs, returns all results. Both
    are free of dead code; constants go to the program that reads them.

    Args:
      closed: the program.
      unknown_inputs: for each input, whether it is unknown.
      instantiate: which results the unknown program returns even if they are known: a flag for all, or for each.

    Returns:
      Both programs, and where the residuals are.

    Raises:
      JaxprError: the number of flags differs from that of the inputs or results (an AssertionError).

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
    >>> split = partial_eval_jaxpr(make_jaxpr(lambda x, y: lax.mul(lax.sin(x), y))(1.0, 2.0), [False, True])
    >>> split.known
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    >>> split.unknown
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
    """
    jaxpr = closed.jaxpr
    unknown_flags = flags(unknown_inputs, len(jaxpr.invars), "inputs")
    unknown_vars = {v for v, u in zip(jaxpr.invars, unknown_flags, strict=True) if u}
    known_eqns, unknown_eqns = _split_equations(jaxpr.eqns, unknown_vars)
    forced = flags(instantiate, len(jaxpr.outvars), "results")
    unknown_outputs = [f or a in unknown_vars for f, a in zip(forced, jaxpr.outvars, strict=True)]
    unknown_results = [a for a, u in zip(jaxpr.outvars, unknown_outputs, strict=True) if u]
    known_results = [a for a, u in zip(jaxpr.outvars, unknown_outputs, strict=True) if not u]
    # The unknown program first: only variables that it still reads are residuals.
    unknown_eqns, read = live_equations(unknown_eqns, unknown_results)

    known_inputs = [v for v in jaxpr.invars if v not in unknown_vars]
    residuals = [v for v in known_inputs if v in read]
    residuals += [v for eqn in known_eqns for v in eqn.outvars if v in read]
    available = {*known_inputs, *known_results}
    computed = [v for v in residuals if v not in available]  # returned in addition, as ``unknown`` reads them
    known_eqns, needed = live_equations(known_eqns, [*known_results, *computed])
    index = positions([*known_inputs, *known_results, *computed])

    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    remaining_inputs = [v for v, u in zip(jaxpr.invars, unknown_flags, strict=True) if u]
    known_consts = [v for v in jaxpr.constvars if v in needed]
    unknown_consts = [v for v in jaxpr.constvars if v in read]
    known = Jaxpr(known_consts, known_inputs, known_eqns, [*known_results, *computed])
    unknown = Jaxpr(unknown_consts, [*residuals, *remaining_inputs], unknown_eqns, unknown_results)
    return PartialEvaluation(
        close(known, constants), close(unknown, constants), unknown_outputs,
        [v.aval for v in residuals], [index[v] for v in residuals],
    )  # fmt: skip


def _split_equations(eqns: Sequence[Eqn], unknown_vars: set[Var]) -> tuple[list[Eqn], list[Eqn]]:
    """Return the equations independent of ``unknown_vars``, and the others; add the others' results to the set."""
    known: list[Eqn] = []
    unknown: list[Eqn] = []
    for eqn in eqns:
        operands = [a in unknown_vars for a in eqn.invars]
        if True not in operands:
            known.append(eqn)
            continue
        rule = eqn.primitive.partial_eval_rule
        if rule is None:
            unknown.append(eqn)
            unknown_vars.update(eqn.outvars)
            continue
        more_known, more_unknown, results = rule(operands, eqn)
        known += more_known
        unknown += more_unknown
        unknown_vars.update(v for v, u in zip(eqn.outvars, results, strict=True) if u)
    return known, unknown
