"""Plans: what a program keeps for its backward pass, so that the whole step stays within a budget of memory.

A plan is made from estimates, and its program differentiated and measured by :func:`timeline`. Where the peak misses
the budget, the plan is made again for a budget that is corrected by the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control.liveness import Timeline, inner_timeline, nbytes, timeline
from pullback.control.memory_costs import Residuals, residuals_of, seconds
from pullback.control.memory_rewriting import rewritten
from pullback.control.memory_segments import Candidates, Segment, choose, least_memory, needed
from pullback.core import dtypes
from pullback.core.array import typeof
from pullback.core.errors import MemoryBudgetError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, jaxpr_as_fun, subjaxprs
from pullback.core.provenance import within
from pullback.core.source import Scope, describe, here
from pullback.core.types import ZERO
from pullback.core.zeros import zeros_of
from pullback.primitives.elementwise import sum_of_two
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import stage_flat

_ROUNDS = 7
_ROOM = 0.95
"""The share of a budget that plans use, if possible: compilers may need a few in a hundred more than is predicted."""
_REUSED = 32 << 20
"""The largest block of memory that the C library reuses from call to call (``backends/host/memory.py``)."""
_MAPPED = 0.3e-9
"""The time for each byte of a larger block: the system maps new pages in each call, and fills them with zeros."""


@cached_by_jaxpr
def step_program(closed: ClosedJaxpr, active: Sequence[bool]) -> ClosedJaxpr:
    """Return a program of the whole step: from inputs and cotangents of the results to results and gradients.

    Args:
      closed: the program.
      active: the inputs with respect to which it is differentiated.
    """
    inexact = [dtypes.is_inexact(a.dtype) for a in closed.out_avals]
    cts = [a.to_tangent_aval() for a, f in zip(closed.out_avals, inexact, strict=True) if f]
    count = len(closed.in_avals)

    def run(*values: Any) -> list[Any]:
        with within(None, Scope("")):  # within a scope, tapes note the lines of operations
            return step(*values)

    def step(*values: Any) -> list[Any]:
        outs, program = linearize_flat(closed, jaxpr_as_fun(closed), values[:count], active)
        given = iter(values[count:])
        seeds = [next(given) if f else ZERO for f in inexact]
        back = program.transpose(seeds, sum_of_two, True)
        chosen = [x for x, f in zip(values, active, strict=False) if f]
        return [*outs, *(zeros_of(typeof(x)) if ct is ZERO else ct for ct, x in zip(back, chosen, strict=True))]

    return stage_flat(closed, run, [*closed.in_avals, *cts])


class Plan(NamedTuple):
    """What a program keeps for its backward pass.

    Attributes:
      program: the program, flat.
      active: the inputs with respect to which it is differentiated.
      segments: its segments.
      result: the program that keeps this.
      peak: the predicted peak of the whole step, in bytes, beside arguments and results.
      extra: the predicted time of the recomputation, as a share of the time of the step without it. It is negative
        where more time is gained by keeping less in loops.
    """

    program: ClosedJaxpr
    active: tuple[bool, ...]
    segments: tuple[Segment, ...]
    result: ClosedJaxpr
    peak: int
    extra: float

    def timeline(self) -> Timeline:
        """Return the memory at each operation of the step."""
        return timeline(step_program(self.result, self.active))


class Planner:
    """The plans of one program, for any budget."""

    def __init__(self, closed: ClosedJaxpr, active: Sequence[bool]) -> None:
        self.active = tuple(active)
        self.residuals: Residuals = residuals_of(closed, self.active)
        self.program = self.residuals.program
        self.candidates = Candidates(self.residuals)
        self.cuts = self.candidates.cuts()
        self._options: dict[tuple[int, int], list[Segment]] | None = None
        self._floor: float | None = None
        self._plans: dict[Any, Plan] = {}
        self._peaks: dict[float, int] = {}  # from budgets of searches to the peaks of the plans that were found
        self._tried_least = False
        usual = step_program(self.program, self.active)
        self.usual = timeline(usual)
        self.time = sum(map(seconds, usual.jaxpr.eqns))

    @property
    def options(self) -> dict[tuple[int, int], list[Segment]]:
        """The candidates for each pair of cuts."""
        if self._options is None:
            self._options = {
                (a, b): found
                for i, a in enumerate(self.cuts)
                for b in self.cuts[i + 1 :]
                if (found := self.candidates.segments(a, b))
            }
        return self._options

    @property
    def floor(self) -> float:
        """The least memory for which there is a choice, by the estimates that plans are made from."""
        if self._floor is None:
            self._floor = least_memory(self.cuts, self.options)
        return self._floor

    def of(self, segments: Sequence[Segment]) -> Plan:
        """Return the plan with these segments, with the predicted peak of its program."""
        key = tuple([(s.start, s.end, s.kept, s.loop) for s in segments])
        if key not in self._plans:
            result = rewritten(self.program, segments)
            peak = timeline(step_program(result, self.active)).peak
            extra = sum(s.time for s in segments) / max(self.time, 1e-12)
            self._plans[key] = Plan(self.program, self.active, tuple(segments), result, peak, extra)
        return self._plans[key]

    def unchanged(self) -> Plan:
        """Return the plan that computes nothing again."""
        whole = Segment(0, self.candidates.count, None, 0, 0, 0.0)
        return Plan(self.program, self.active, (whole,), self.program, self.usual.peak, 0.0)

    def within(self, budget: int, what: str) -> Plan:
        """Return the plan of least time whose peak is within a budget of bytes.

        Args:
          budget: the number of bytes.
          what: the function and the transformation, for the error.

        Raises:
          MemoryBudgetError: there is no such plan (a ValueError).
        """
        if self.usual.peak <= budget:
            return self.unchanged()
        room = _ROOM * budget
        if room <= _REUSED or not self._reuses_memory():
            self._search(room)
        found = self._best(room) or self._best(budget)
        if found is None:
            found = self.least()
            if found.peak > budget:
                raise _too_small(what, budget, found)
        return found

    def _reuses_memory(self) -> bool:
        """Whether a plan whose memory is reused takes less time than any with more, which has to be mapped."""
        reused = _ROOM * _REUSED
        if self.floor <= reused:
            self._search(reused)
        found = self._best(reused)
        return found is not None and self._cost(found) <= self._mapping(_REUSED)

    def _search(self, budget: float) -> None:
        """Make plans whose peaks approach a budget."""
        aim, low, high = self._first_aim(budget), 0.0, None
        for _ in range(_ROUNDS):
            if self._is_close(self._best(budget), budget):
                break
            segments = choose(self.cuts, self.options, aim)
            if segments is None:
                low = aim
                aim = aim * 1.3 if high is None else (low + high) / 2
                continue
            plan = self.of(segments)
            self._peaks[aim] = plan.peak
            if plan.peak > budget:
                high = min(aim, needed(segments))  # so that the same plan is not found again
                aim = max(min(aim * budget / plan.peak, 0.99 * high), (low + high) / 2)
            elif plan.extra <= 0:
                break
            else:
                low = aim
                aim = aim * min(budget / max(plan.peak, 1), 1.4) if high is None else (aim + high) / 2
            if high is not None and high - low < 0.02 * high:
                break

    def _best(self, budget: float) -> Plan | None:
        """Return the plan of least time within a budget, of those that were made so far for any budget."""
        return min((p for p in self._plans.values() if p.peak <= budget), key=self._cost, default=None)

    def _cost(self, plan: Plan) -> float:
        """Return the time that a plan adds, as a share of the time of the step, with that of mapping its memory."""
        return plan.extra + (self._mapping(plan.peak) if plan.peak > _REUSED else 0.0)

    def _mapping(self, size: float) -> float:
        return _MAPPED * size / max(self.time, 1e-12)

    @staticmethod
    def _is_close(plan: Plan | None, budget: float) -> bool:
        return plan is not None and plan.peak > 0.93 * budget

    def _first_aim(self, budget: float) -> float:
        """Return the budget of the search to begin with: what other budgets have shown is interpolated."""
        known = sorted((peak, aim) for aim, peak in self._peaks.items())
        if not known:
            return float(budget)
        peaks = [peak for peak, _ in known]
        if peaks[0] < budget < peaks[-1]:
            return float(np.interp(0.98 * budget, peaks, [aim for _, aim in known]))
        peak, aim = known[0] if budget <= peaks[0] else known[-1]
        return float(budget * aim / peak)

    def least(self) -> Plan:
        """Return the plan with the least peak that was found."""
        if not self._tried_least:
            self._tried_least = True
            worse, best = 0, math.inf
            for scale in (1.01, 1.05, 1.1, 1.2, 1.3, 1.5):
                segments = choose(self.cuts, self.options, scale * self.floor)
                if segments is not None:
                    peak = self._peaks[scale * self.floor] = self.of(segments).peak
                    worse = worse + 1 if peak >= best else 0
                    best = min(best, peak)
                if worse == 2:  # more memory for the search is more memory for the program, from here on
                    break
        return min([*self._plans.values(), self.unchanged()], key=lambda p: p.peak)


@cached_by_jaxpr
def planner(closed: ClosedJaxpr, active: Sequence[bool]) -> Planner:
    """Return the planner of a program, which is kept in the program."""
    return Planner(closed, active)


def _too_small(what: str, budget: int, least: Plan) -> MemoryBudgetError:
    lines = bytes_by_line(least.timeline())
    first = sorted(lines.items(), key=lambda item: -item[1])[:3]
    held = "; ".join(f"{size:,} bytes made {where}" for where, size in first)
    error = MemoryBudgetError(
        f"{what}: memory={budget:,} bytes cannot be kept: the least that was found is {least.peak:,} bytes. At that "
        f"peak are alive: {held}. Raise the budget, or make these values smaller, for example by a smaller batch"
    )
    error.least = least.peak
    return error


def bytes_by_line(found: Timeline) -> dict[str, int]:
    """Return the bytes that are alive at the peak, also within programs in the program, by where they are made.

    Transposed programs have the line of the caller, which asks for the gradient.
    """
    caller = here()
    lines: dict[str, int] = {}
    for v in found.alive(found.at):
        made_at = _made_at(found.made_by[v], v)
        line = "in the backward pass" if made_at == caller else f"at {describe(made_at)}"
        lines[line] = lines.get(line, 0) + nbytes(v.aval)
    if found.at >= 0 and (inner := inner_timeline(found.moments[found.at].eqn)) is not None:
        for line, size in bytes_by_line(inner).items():
            lines[line] = lines.get(line, 0) + size
    return lines


def _made_at(eqn: Eqn, v: Var) -> Any:
    """Return the source location of the operation that makes ``v``, a result of ``eqn``, or of a program within it."""
    program = next(iter(subjaxprs(eqn)), None)
    if program is not None and len(program.outvars) == len(eqn.outvars) and v in eqn.outvars:
        inner = program.outvars[eqn.outvars.index(v)]
        for each in program.eqns:
            if inner in each.outvars:
                return _made_at(each, inner)
    return eqn.made_at
