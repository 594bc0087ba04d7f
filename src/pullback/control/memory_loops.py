"""Loops under a budget of memory: what their steps keep, and which states the forward pass keeps.

A scan is divided into pieces. The steps of a piece keep all that the backward pass needs, or are checkpointed, as the
segments of a program are. A piece may also be cut into chunks: only the state before each chunk is kept, and a chunk
runs again in the backward pass. For the smallest budgets the states are those of the binomial schedule.

Source: A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), for the binomial schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pullback.control.checkpointed_scan import checkpointed
from pullback.control.checkpointing import repetitions
from pullback.control.joined_products import joined_products
from pullback.control.liveness import nbytes, program_peak
from pullback.control.memory_costs import Residuals, flattened, residuals_of, seconds
from pullback.control.scan_primitive import Loop, bind, scan_p
from pullback.core import dtypes
from pullback.core.jaxpr import ClosedJaxpr, Eqn
from pullback.core.lists import split_list
from pullback.core.types import ShapedArray
from pullback.primitives.arrays.shapes import reshape
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.jaxprs import linearize_jaxpr
from pullback.transforms.traces.stage import stage_flat

_TRAFFIC = 4e-10
"""The time to write a byte to memory in the forward pass and to read it in the backward pass. A chunk that runs again
writes to the cache: on the PDE of the benchmarks, chunks of five steps take the time of no recomputation."""
_CACHE = 1_000_000
"""The bytes that stay in the cache from the forward to the backward pass."""
_ROW = 2e-7
"""The time to write an array to a row of a stack in one step, and to read it in another, beside that for its bytes."""
_WITHIN = 0.4
"""The time of an operation of a step, whose arrays are in the cache, in multiples of that on large arrays. A step of
the ODE of the benchmarks takes 84 microseconds, and 235 are predicted for large arrays."""


class Piece(NamedTuple):
    """Consecutive steps of a loop.

    Attributes:
      steps: their number.
      chunk: the number of steps of a chunk; 0 if the piece is not cut into chunks.
      kept: the indices of the equations of a step whose results it keeps; None if it keeps everything.
      slots: the number of states that the binomial schedule keeps; 0 for no such schedule.
    """

    steps: int
    chunk: int = 0
    kept: frozenset[int] | None = None
    slots: int = 0


class Choice(NamedTuple):
    """A division of a loop, with the bytes that it keeps, those of its backward pass, and the time of recomputation."""

    pieces: tuple[Piece, ...]
    stored: int
    transient: int
    time: float


class LoopCosts:
    """What the steps of a scan keep and cost.

    Attributes:
      body: what the backward pass of a step needs.
      length: the number of steps.
      carry: the bytes of the state before a step.
      plain: the bytes that a step keeps, with everything that its backward pass needs.
      arrays: how many arrays these are.
      forward: the time of a step.
    """

    def __init__(self, eqn: Eqn) -> None:
        closed: ClosedJaxpr = eqn.params["jaxpr"]
        self.num_consts, self.num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
        self.length: int = eqn.params["length"]
        active = tuple([dtypes.is_inexact(a.dtype) for a in closed.in_avals])
        self.body: Residuals = residuals_of(closed, active)
        fixed = self.num_consts + self.num_carry
        self.carry = sum(map(nbytes, closed.in_avals[self.num_consts : fixed]))
        self.rows = sum(map(nbytes, closed.in_avals[fixed:]))
        split = linearize_jaxpr(closed, active)
        inputs = len(closed.in_avals)
        avals = split.linear.in_avals
        kept = [
            nbytes(a)
            for a, i in zip(avals, split.residual_sources, strict=False)
            if i >= inputs or self.num_consts <= i < fixed
        ]
        self.plain, self.arrays = sum(kept), len(kept)
        self.forward = _WITHIN * sum(map(seconds, closed.jaxpr.eqns))
        self.work = program_peak(closed) + 2 * self.carry
        self.states = set(closed.jaxpr.invars[self.num_consts : fixed])


def is_loop(eqn: Eqn) -> bool:
    """Whether an equation is a scan of several steps that can be divided."""
    if eqn.primitive is not scan_p or eqn.params["length"] < 4 or eqn.effect:
        return False
    return all(isinstance(a.aval, ShapedArray) for a in (*eqn.invars, *eqn.outvars))


Body = Callable[[float], tuple[frozenset[int], int, float]]
"""From a threshold to what a checkpointed step keeps: the equations, the bytes, and the time of its recomputation."""


def choices(costs: LoopCosts, levels: Sequence[float], body: Body) -> list[Choice]:
    """Return the candidates for a scan, without those that another beats in all respects."""
    n = costs.length
    modes: list[tuple[frozenset[int] | None, int, float]] = [(None, costs.plain, 0.0)]
    modes += [(kept, stored, _WITHIN * time) for kept, stored, time in map(body, levels)]
    found: list[Choice] = []
    for kept, stored, time in modes:
        work = costs.plain + costs.work if kept is not None else costs.work
        fewer = costs.arrays - (len(kept) + costs.num_carry) if kept is not None else 0
        again = n * (time - _ROW * fewer)
        found.append(Choice((Piece(n, 0, kept),), n * stored, n * stored + work, again))
        for chunk in _chunks(n, costs.carry, stored):
            whole = n // chunk * chunk
            rest = n - whole
            pieces = (Piece(whole, chunk, kept), *([Piece(rest, 0, kept)] if rest else []))
            kept_bytes = whole // chunk * costs.carry + rest * stored
            extra = (n * costs.rows if rest else 0) + work
            found.append(Choice(pieces, kept_bytes, kept_bytes + chunk * stored + extra, again + whole * costs.forward))
    first = found[0]
    for other in found[1:]:
        found += _mixed(costs, first, other)
    for slots in (3, 6, 12, 24):
        if 2 * slots < n:
            time = n * costs.forward * max(repetitions(n, slots - 1), 1) * 1.2
            kept_bytes = (slots + 1) * costs.carry
            found.append(Choice((Piece(n, 0, None, slots),), kept_bytes, kept_bytes + costs.plain + costs.work, time))
    usual = max(found[0].stored, _CACHE)
    found = [c._replace(time=c.time + _TRAFFIC * (max(c.stored, _CACHE) - usual)) for c in found]
    best: list[Choice] = []
    for c in sorted(found, key=lambda c: (c.time, c.transient)):
        if all(c.stored < b.stored or c.transient < b.transient for b in best):
            best.append(c)
    return best


def _mixed(costs: LoopCosts, first: Choice, other: Choice) -> list[Choice]:
    """Return divisions where only some of the steps are as in ``other``, and the last ones keep everything."""
    found = []
    n = costs.length
    if len(other.pieces) > 1:
        return []
    [piece] = other.pieces
    for share in (0.25, 0.5, 0.75):
        unit = piece.chunk or 1
        steps = int(n * share) // unit * unit
        if 0 < steps < n:
            part, rest = steps / n, (n - steps) / n
            stored = int(part * other.stored + rest * first.stored)
            # The steps that keep everything run backwards first, and their memory is free for the chunks of the others.
            transient = (
                max(stored + costs.work, int(part * other.stored) + other.transient - other.stored) + n * costs.rows
            )
            found.append(Choice((piece._replace(steps=steps), Piece(n - steps)), stored, transient, part * other.time))
    return found


def _chunks(length: int, carry: int, stored: int) -> list[int]:
    """Return lengths of chunks: about that of the least memory, and multiples; divisors of the length if possible."""
    best = math.sqrt(length * max(carry, 1) / max(stored, 1))
    wanted = [best, 2 * best, 4 * best, best / 2]
    divisors = [d for d in range(2, length // 2 + 1) if length % d == 0]
    found = set()
    for w in wanted:
        k = min(max(round(w), 2), length // 2)
        near = [d for d in divisors if 0.6 * k <= d <= 1.7 * k]
        found.add(min(near, key=lambda d, k=k: abs(d - k)) if near else k)  # type: ignore[misc]
    return sorted(found)


# Programs ------------------------------------------------------------------------------------------------------------


Smaller = Callable[[ClosedJaxpr, frozenset[int], bool], ClosedJaxpr]
"""From the program of a step, the equations whose results it keeps, and whether compilers could merge its recomputation
with other operations of the loop, to the checkpointed program."""


def divided(eqn: Eqn, pieces: Sequence[Piece], smaller: Smaller) -> Eqn:
    """Return an equation with the results of a scan, divided into pieces.

    Args:
      eqn: the scan.
      pieces: the pieces.
      smaller: makes the checkpointed program of a step.
    """
    run = partial(_run, eqn, pieces, smaller)
    closed = stage_flat(eqn.primitive, run, [a.aval for a in eqn.invars])
    return Eqn(jit_p, eqn.invars, {"jaxpr": closed, "name": "scan"}, eqn.outvars, eqn.made_at, eqn.scope)


def _run(eqn: Eqn, pieces: Sequence[Piece], smaller: Smaller, *operands: Any) -> Any:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    loop = Loop(eqn.params["length"], eqn.params["reverse"], eqn.params["unroll"])
    captured, carry, xs = split_list(operands, num_consts, num_carry)
    columns: list[list[Any]] = [[] for _ in eqn.outvars[num_carry:]]
    done = 0
    for piece in pieces:
        body, consts = eqn.params["jaxpr"], captured
        if piece.kept is not None:
            step, consts = (body, consts) if piece.kept else _with_joined_products(body, consts)
            body = smaller(step, piece.kept, step is not body)
        start = loop.length - done - piece.steps if loop.reverse else done
        whole = piece.steps == loop.length
        rows = xs if whole else [slice_in_dim(x, start, start + piece.steps, 0) for x in xs]
        own = loop._replace(length=piece.steps)
        if piece.slots:
            carry, ys = checkpointed(body, own, consts, carry, rows, piece.slots, eqn.primitive)
        elif piece.chunk:
            carry, ys = _in_chunks(body, own, piece.chunk, consts, carry, rows)
        else:
            carry, ys = bind(body, own, consts, carry, rows)
        for column, y in zip(columns, ys, strict=True):
            column.append(y)
        done += piece.steps
    ordered = [column[::-1] if loop.reverse else column for column in columns]
    return [*carry, *[c[0] if len(c) == 1 else concatenate(c, 0) for c in ordered]]


def _with_joined_products(body: ClosedJaxpr, consts: list[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """Join the products of a step that read one operand; return the step and its constants.

    Such a step computes again in a branch: so the RNN of the benchmarks takes 0.88 of its time without joined products,
    and 0.94 if the recomputation is fused with the rest of the loop. Without joined products, a branch takes longer.
    """
    joined = joined_products(flattened(body), len(consts))
    if joined is None:
        return body, consts
    matrices = [concatenate([consts[i] for i in group], 1) for group in joined.groups]
    return joined.program, [*[consts[i] for i in joined.kept], *matrices]


def _in_chunks(
    body: ClosedJaxpr, loop: Loop, chunk: int, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Run a scan as a scan over chunks, each a checkpointed scan."""
    count = loop.length // chunk
    inner = loop._replace(length=chunk)
    num_consts, num_carry = len(consts), len(carry)
    row_avals = body.in_avals[num_consts + num_carry :]
    avals = [*body.in_avals[: num_consts + num_carry], *[a.with_axis(0, chunk) for a in row_avals]]

    def steps(*operands: Any) -> list[Any]:
        carry, ys = bind(body, inner, *split_list(operands, num_consts, num_carry))
        return [*carry, *ys]

    program = stage_flat(scan_p, steps, avals)
    options = {"policy": None, "prevent_cse": False, "differentiated": False}

    def outer(*operands: Any) -> list[Any]:
        return checkpoint_p.bind(*operands, jaxpr=program, **options)  # type: ignore[no-any-return]

    rows = [reshape(x, (count, chunk, *x.shape[1:])) for x in xs]
    carry, ys = bind(stage_flat(scan_p, outer, avals), loop._replace(length=count, unroll=1), consts, carry, rows)
    return carry, [reshape(y, (loop.length, *y.shape[2:])) for y in ys]
