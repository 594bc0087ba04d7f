"""Choosing what to keep and what to compute again: segments of a program, each with a price of what it keeps.

A program is cut into segments, at equations that few values cross. A segment keeps all that its backward pass needs,
or it is checkpointed: its backward pass computes values again, except those whose computation takes longer, for each
byte, than a threshold. The segments and thresholds with the least time are a shortest path, under a limit on the
memory at each of its steps. An integer program finds it if there are few segments, and dynamic programming over
rounded memory otherwise.

Source: A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000); T. Chen et al., Training deep nets with
sublinear memory cost, 2016, for segments; P. Jain et al., Checkmate, MLSys 2020, for integer programs over whole
programs; R. Kumar et al., Efficient rematerialization for deep networks, NeurIPS 2019, for cuts of general graphs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control.liveness import nbytes
from pullback.control.memory_costs import Residuals, seconds
from pullback.control.memory_loops import LoopCosts, choices, is_loop
from pullback.core.jaxpr import Var, free_axes

_MOST_CUTS = 36
_MOST_WORK = 150_000
"""About the largest number of equations in all candidate segments together."""
_BINS = 300
_AGAIN = 3.0
"""How often a fused step computes a value again. On the PDE of the benchmarks a step that keeps nothing but its state
takes about three times what its operations predict."""
_MOST_CHOICES = 120
"""The largest number of binary variables of an integer program."""


class Segment(NamedTuple):
    """A segment of a program, and what it keeps.

    Attributes:
      start, end: the range of its equations.
      kept: the indices of the equations whose results it keeps; None if it keeps everything, and is not checkpointed.
      stored: the bytes that it keeps for the backward pass.
      transient: the bytes that its own backward pass needs, with those that it keeps.
      time: the time of its recomputation, in seconds.
      loop: how a loop, the only equation of the segment, is divided; None for other segments.
      reads_inputs: whether its recomputation reads inputs of the program.
    """

    start: int
    end: int
    kept: frozenset[int] | None
    stored: int
    transient: int
    time: float
    loop: Any = None
    reads_inputs: bool = False


def is_fixed(eqn: Any) -> bool:
    """Whether an equation must not run again: it has effects, or exchanges elements between devices."""
    return bool(eqn.effect or free_axes(eqn.primitive, eqn.params))


class Candidates:
    """The segments of a program among which the planner chooses.

    The variables of the forward pass are numbered, for speed.
    """

    def __init__(self, residuals: Residuals, in_loop: bool = False) -> None:
        """Prepare the candidates.

        Args:
          residuals: what the backward pass needs.
          in_loop: whether the program is the step of a loop. A compiler may fuse a step without values in memory, such
            as operands of products, with its backward pass: then each operation that reads a value computes it again.
        """
        self.residuals = r = residuals
        self.count = len(r.needs)
        eqns = r.program.jaxpr.eqns
        self.fixed = [is_fixed(eqn) for eqn in eqns]
        self.largest = [max((nbytes(v.aval) for v in eqn.outvars), default=0) for eqn in eqns]
        self.number = {v: k for k, v in enumerate(r.made)}
        self.sizes = [nbytes(v.aval) for v in r.made]
        self.made = list(r.made.values())
        prices = [seconds(eqn) for eqn in r.eqns]
        self.prices = [prices[i] for i in self.made]
        self.tags = [r.tags[i] for i in self.made]
        self.reads_input = [any(type(a) is Var and a not in r.made for a in eqn.invars) for eqn in r.eqns]
        self.operands = [[self.number[a] for a in eqn.invars if type(a) is Var and a in r.made] for eqn in r.eqns]
        self.keeps = [-1] * len(self.sizes)
        for i, v in enumerate(r.kept):
            if v is not None:
                self.keeps[self.number[v]] = i
        self.density = [
            (price / size if size else math.inf) if k >= 0 else -1.0
            for price, size, k in zip(self.prices, self.sizes, self.keeps, strict=True)
        ]
        if in_loop and not any(v in r.in_memory for v in r.made):
            self.prices = [_AGAIN * price for price in self.prices]
        self.needs = [[self.number[v] for v in needs if v in self.number] for needs in r.needs]
        self.needs_input = [any(v not in self.number for v in needs) for needs in r.needs]
        self.levels = self._levels()

    def _levels(self) -> list[float]:
        """Return the thresholds: seconds for each byte from which on a value is kept."""
        found = sorted({round(math.log2(d), 0) for d in self.density if 0 < d < math.inf})
        chosen = found if len(found) <= 4 else [found[int(k)] for k in np.linspace(0, len(found) - 1, 5)[1:]]
        return [2.0 ** (x - 0.5) for x in chosen] + [math.inf]

    def cuts(self) -> list[int]:
        """Return the positions at which a program may be cut: those that few bytes cross, with its ends."""
        r = self.residuals
        crossing = np.zeros(self.count + 1)
        last: dict[Any, int] = {}
        first: dict[Any, int] = {}
        for i, eqn in enumerate(r.program.jaxpr.eqns):
            first.update((v, i) for v in eqn.outvars)
            last.update((a, i) for a in r.reads[i])
        for v, end in last.items():
            crossing[first[v] + 1 : end + 1] += nbytes(v.aval)
        must = {0, self.count}
        for i, eqn in enumerate(r.program.jaxpr.eqns):
            if self.fixed[i] or is_loop(eqn):
                must.update((i, i + 1))
        if self.count <= _MOST_CUTS:
            return list(range(self.count + 1))
        weight = np.array([sum(self.largest[t] for t in [i]) for i in range(self.count)], float)
        progress = np.concatenate([[0.0], np.cumsum(weight)])
        progress = progress / max(progress[-1], 1.0)
        most = max(min(_MOST_CUTS, int((6 * _MOST_WORK / max(self.count, 1)) ** 0.5)), 8)
        chosen = set(must)
        for k in range(1, most):  # the position of the least crossing in each stretch of equal work
            low, high = np.searchsorted(progress, [(k - 0.5) / most, (k + 0.5) / most])
            if high > low:
                chosen.add(int(low + np.argmin(crossing[low:high])))
        return sorted(chosen)

    def segments(self, start: int, end: int) -> list[Segment]:
        """Return the candidates for the equations from ``start`` to ``end - 1``: what the segment may keep."""
        if end == start + 1 and is_loop(self.residuals.program.jaxpr.eqns[start]):
            return self._of_loop(start)
        found = [self._plain(start, end)]
        if any(self.fixed[start:end]) or not found[0].stored:
            return found
        for level in self.levels:
            segment = self.checkpointed(start, end, level)
            if all(segment.stored < other.stored or segment.transient < other.transient for other in found):
                found.append(segment)
        return found

    def _of_loop(self, at: int) -> list[Segment]:
        """Return the candidates for a loop, the only equation of its segment."""
        costs = LoopCosts(self.residuals.program.jaxpr.eqns[at])
        body = Candidates(costs.body, in_loop=True)
        count = body.count

        def kept(level: float) -> tuple[frozenset[int], int, float]:
            found = body.checkpointed(0, count, level)
            states = costs.carry if found.reads_inputs else 0
            return found.kept or frozenset(), found.stored + states, found.time

        if any(body.fixed):
            return [self._plain(at, at + 1)]
        return [
            Segment(at, at + 1, None, c.stored, c.transient, c.time, c.pieces)
            for c in choices(costs, body.levels, kept)
        ]

    def _needs(self, start: int, end: int) -> set[int]:
        return set().union(*self.needs[start:end])

    def _plain(self, start: int, end: int) -> Segment:
        stored = sum(self.sizes[v] for v in self._needs(start, end))
        return Segment(start, end, None, stored, stored + 2 * max(self.largest[start:end], default=0), 0.0)

    def checkpointed(self, start: int, end: int, level: float) -> Segment:
        """Return the segment that keeps the values whose computation takes ``level`` seconds for each byte, or more."""
        sizes, tags, density, made = self.sizes, self.tags, self.density, self.made
        wanted = self._needs(start, end)
        inputs = any(self.needs_input[start:end])
        kept: list[int] = []
        stored = transient = 0
        time = 0.0
        pending = list(wanted)
        seen = set(wanted)
        done: set[int] = set()
        while pending:
            v = pending.pop()
            if tags[v] < start:
                stored += sizes[v]
                continue
            if density[v] >= level:
                kept.append(self.keeps[v])
                stored += sizes[v]
                continue
            if v in wanted:
                transient += sizes[v]
            i = made[v]
            if i in done:
                continue
            done.add(i)
            time += self.prices[v]
            inputs = inputs or self.reads_input[i]
            new = [u for u in self.operands[i] if u not in seen]
            seen.update(new)
            pending += new
        work = 2 * max(self.largest[start:end], default=0)
        return Segment(start, end, frozenset(kept), stored, stored + transient + work, time, None, inputs)


# Shortest paths ------------------------------------------------------------------------------------------------------


def choose(cuts: Sequence[int], options: dict[tuple[int, int], list[Segment]], budget: float) -> list[Segment] | None:
    """Return the segments of least time within a budget of bytes; None if there is no such choice.

    Args:
      cuts: the positions at which segments may begin and end.
      options: from the start and the end of a segment to what it may keep.
      budget: the largest number of bytes.
    """
    if sum(map(len, options.values())) <= _MOST_CHOICES:
        return _by_integer_program(cuts, options, budget)
    return _by_dynamic_programming(cuts, options, budget)


def needed(segments: Sequence[Segment]) -> int:
    """Return the least budget with which :func:`choose` could choose these segments."""
    kept = most = 0
    for s in segments:
        most = max(most, kept + s.transient)
        kept += s.stored
    return most


def least_memory(cuts: Sequence[int], options: dict[tuple[int, int], list[Segment]]) -> float:
    """Return the least budget for which there is a choice, within one in a hundred."""
    high = float(max(s.transient for found in options.values() for s in found) + 1)
    high += sum(max(s.stored for s in options[pair]) for pair in itertools.pairwise(cuts))
    low = 0.0
    while high - low > max(0.01 * high, 64):
        middle = (low + high) / 2
        if _by_dynamic_programming(cuts, options, middle) is None:
            low = middle
        else:
            high = middle
    return high


def _by_dynamic_programming(
    cuts: Sequence[int], options: dict[tuple[int, int], list[Segment]], budget: float
) -> list[Segment] | None:
    """Choose by dynamic programming over the memory kept before each cut, in steps of the budget divided by 300."""
    if budget <= 0:
        return None
    step = budget / _BINS
    best = {p: np.full(_BINS + 1, np.inf) for p in cuts}
    back: dict[int, list[Any]] = {p: [None] * (_BINS + 1) for p in cuts}
    best[cuts[0]][0] = 0.0
    into: dict[int, list[Segment]] = {p: [] for p in cuts}
    for found in options.values():
        for s in found:
            into[s.end].append(s)
    for p in cuts[1:]:
        for s in into[p]:
            used, room = math.ceil(s.stored / step), _BINS - math.ceil(s.transient / step)
            before = best[s.start]
            reach = min(room, _BINS - used)
            if reach < 0:
                continue
            times = before[: reach + 1] + s.time
            target = best[p][used : used + reach + 1]
            for j in np.nonzero(times < target)[0].tolist():
                target[j] = times[j]
                back[p][used + j] = s
    end = best[cuts[-1]]
    if not np.isfinite(end).any():
        return None
    k = int(np.argmin(end))
    chosen: list[Segment] = []
    p = cuts[-1]
    while p != cuts[0]:
        s = back[p][k]
        chosen.append(s)
        k -= math.ceil(s.stored / step)
        p = s.start
    return chosen[::-1]


def _by_integer_program(
    cuts: Sequence[int], options: dict[tuple[int, int], list[Segment]], budget: float
) -> list[Segment] | None:
    """Choose by an integer program: a path from the first to the last cut, with a limit on the memory at each step."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    choices = [s for found in options.values() for s in found if s.transient <= budget]
    if not choices:
        return None
    row = {p: k for k, p in enumerate(cuts)}
    flow = np.zeros((len(cuts), len(choices)))
    memory = np.zeros((len(cuts), len(choices)))
    for j, s in enumerate(choices):
        flow[row[s.start], j] += 1
        flow[row[s.end], j] -= 1
        for p in cuts:  # what is alive in the backward pass of the segment that contains the step before this cut
            if s.end < p:
                memory[row[p], j] = s.stored
            elif s.start < p <= s.end:
                memory[row[p], j] = s.transient
    demand = np.zeros(len(cuts))
    demand[0], demand[-1] = 1, -1
    scale = max(budget, 1.0)
    times = np.array([s.time for s in choices])
    unit = max(times.max(), 1e-12)
    found = milp(
        times / unit + 1e-6 * np.array([s.transient for s in choices]) / scale,
        integrality=np.ones(len(choices)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(flow, demand, demand), LinearConstraint(memory / scale, -np.inf, 1.0)],
        options={"node_limit": 10_000, "mip_rel_gap": 1e-3},  # no limit of time: plans do not depend on the clock
    )
    if found.x is None:
        return None
    return sorted((s for s, x in zip(choices, found.x, strict=True) if x > 0.5), key=lambda s: s.start)
