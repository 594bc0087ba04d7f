"""Patterns of operations that hold programs: what runs once, branches, and loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.control.conditional import cond_p
from pullback.control.guard import guard_p
from pullback.control.scan_primitive import scan_p
from pullback.control.while_primitive import while_p
from pullback.core.jaxpr import ClosedJaxpr, Eqn
from pullback.core.lists import split_list
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.dependence import (
    UNKNOWN,
    VARIES,
    PatternRun,
    is_tangent,
    join,
    numbers,
    sparsity,
)


@sparsity(guard_p)
def _guard(walk: PatternRun, eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    return operands[1:]


@sparsity(cond_p)
def _cond(walk: PatternRun, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    which, *args = operands
    branches = eqn.params["branches"]
    if isinstance(which, np.ndarray):
        return walk.run(branches[min(max(int(which), 0), len(branches) - 1)], args)
    return reduce(_joined, [walk.run(branch, args) for branch in branches])


def _joined(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [join(a, b) for a, b in zip(first, second, strict=True)]


# Loops ---------------------------------------------------------------------------------------------------------------


class PatternStep(NamedTuple):
    """What a step of a loop does to tangents, as matrices: the same in each step.

    Attributes:
      tangents: for each constant, carry and element whether it is a tangent.
      carry: the dependence of the next carry on the tangents among the constants, this carry and the elements.
      ys: the same of each stacked result, or what else is known of it.
      same: whether it is the same in each step, for all that is known.
    """

    tangents: list[bool]
    carry: Any
    ys: list[Any]
    same: bool


def _step(walk: PatternRun, jaxpr: ClosedJaxpr, operands: Sequence[Any], consts: int, carry: int) -> PatternStep:
    """What a step does, found by one walk through its program, with the tangents themselves for inputs."""
    sizes = [math.prod(a.shape) for a in jaxpr.in_avals]
    tangents = list(map(is_tangent, operands))
    while True:
        width = sum(n for n, t in zip(sizes, tangents, strict=True) if t)
        inner = PatternRun(width, walk.steps)
        given: list[Any] = []
        first = 0
        for i, (x, size, tangent) in enumerate(zip(operands, sizes, tangents, strict=True)):
            if tangent:
                given.append(boolean.identity(size, width, first))
                first += size
            else:
                given.append(VARIES if i >= consts and isinstance(x, np.ndarray) else x)
        outs = inner.run(jaxpr, given)
        grown = [t or is_tangent(y) for t, y in zip(tangents[consts:], outs[:carry], strict=False)]
        if grown == tangents[consts : consts + carry]:
            break
        tangents[consts : consts + carry] = grown
    walk.steps = inner.steps
    next_carry = [
        y if is_tangent(y) else boolean.empty(size, width)
        for y, size, t in zip(outs, sizes[consts:], grown, strict=False) if t
    ]  # fmt: skip
    stacked = boolean.stacked(next_carry) if next_carry else boolean.empty(0, width)
    return PatternStep(tangents, stacked, outs[carry:], not inner.varies)


def _may_unroll(walk: PatternRun, program: ClosedJaxpr, length: int) -> bool:
    """Whether a loop is gone through step by step."""
    cost = length * max(len(program.eqns), 1)
    if cost > walk.steps:
        return False
    walk.steps -= cost
    return True


@sparsity(scan_p)
def _scan(walk: PatternRun, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    jaxpr, length = eqn.params["jaxpr"], eqn.params["length"]
    counts = eqn.params["num_consts"], eqn.params["num_carry"]
    if length and any(map(is_tangent, operands)):
        step = _step(walk, jaxpr, operands, *counts)
        if step.same:
            return _all_steps(walk, eqn, operands, step)
    consts, carry, xs = split_list(operands, *counts)
    count = len(carry)
    sizes = [math.prod(a.shape) for a in jaxpr.in_avals[len(consts) + count :]]
    if not _may_unroll(walk, jaxpr, length):
        elements = [_any_step(x, length, size) for x, size in zip(xs, sizes, strict=True)]
        carry = _fixed_point(walk, jaxpr, consts, carry, elements)
        ys = walk.run(jaxpr, [*consts, *carry, *elements])[count:]
        return [*carry, *[_each_step(y, length) for y in ys]]
    steps: list[list[Any]] = []
    for i in range(length - 1, -1, -1) if eqn.params["reverse"] else range(length):
        outs = walk.run(jaxpr, [*consts, *carry, *[_element(x, i, s) for x, s in zip(xs, sizes, strict=True)]])
        carry, ys = outs[:count], outs[count:]
        steps.append(ys)
    if eqn.params["reverse"]:
        steps.reverse()
    y_avals = jaxpr.out_avals[count:]
    return [*carry, *[_stacked(walk, [s[k] for s in steps], a) for k, a in enumerate(y_avals)]]


LARGE_STATE, LONG = 64, 10_000
"""A loop with so many tangents in its carry, and of fewer than so many steps, is gone through one step after the other,
so that one state is kept and not all."""


# long: because all that it computes with is named in it
def _all_steps(walk: PatternRun, eqn: Eqn, operands: Sequence[Any], step: PatternStep) -> list[Any]:
    """What is known of a scan whose steps all do the same to tangents, by products of the matrices of a step.

    The carry before step t is ``P[t]``, with ``P[t + 1] = A P[t] + R[t]``, where ``R`` is what comes from constants and
    elements. All of P at once is ``(1 + S) (1 + S^2) (1 + S^4) ...`` times R, where S is A one step later. That is the
    quickest, but holds the states of all steps: large ones are made one after the other.
    """
    jaxpr, length = eqn.params["jaxpr"], eqn.params["length"]
    consts, count = eqn.params["num_consts"], eqn.params["num_carry"]
    sizes = [math.prod(a.shape) for a in jaxpr.in_avals]
    order = np.arange(length)[::-1] if eqn.params["reverse"] else np.arange(length)

    def inputs(start: int, stop: int) -> list[int]:
        return [i for i in range(start, stop) if step.tangents[i]]

    fixed = [_rows(walk, operands[i], sizes[i]) for i in inputs(0, consts)]
    carried = inputs(consts, consts + count)
    init = [_rows(walk, operands[i], sizes[i]) for i in carried]
    moving = inputs(consts + count, len(sizes))
    # The elements of each step, one step after the other, as the loop comes to them.
    places = [order[:, None] * sizes[i] + np.arange(sizes[i]) for i in moving]
    elements = [boolean.select(operands[i], at) for i, at in zip(moving, places, strict=True)]
    widths = sum(sizes[i] for i in inputs(0, consts)), sum(sizes[i] for i in carried)
    by_const, again, by_element = _parts(step.carry, widths)
    size = widths[1]

    def each(which: Any, by_const: Any, start: int = 0, stop: int = length) -> Any:
        """What a result of some steps has from their elements and the constants, (steps * rows of it, width)."""
        parts = []
        count = stop - start
        first = 0
        for rows, i in zip(elements, moving, strict=True):
            mine = boolean.columns(which, first, first + sizes[i])
            first += sizes[i]
            if len(mine.indices):
                theirs = boolean.select(rows, np.arange(start * sizes[i], stop * sizes[i]))
                parts.append(boolean.times(boolean.kron([boolean.identity(count, count), mine]), theirs))
        if len(by_const.indices):
            once = boolean.times(by_const, boolean.stacked(fixed))
            parts.append(boolean.select(once, np.tile(np.arange(which.shape[0]), count)))
        return boolean.union(parts) if parts else boolean.empty(count * which.shape[0], walk.width)

    if not moving and not any(map(is_tangent, step.ys)):
        added = boolean.times(by_const, boolean.stacked(fixed)) if fixed else boolean.empty(size, walk.width)
        end = _last_state(again, added, boolean.stacked(init), length) if size else boolean.empty(0, walk.width)
        return [*_split(end, 0, sizes[consts : consts + count], step.tangents[consts:]), *[UNKNOWN] * len(step.ys)]
    of_ys = [_parts(y, widths) if is_tangent(y) else None for y in step.ys]
    back = np.argsort(order)
    heights = [math.prod(aval.shape) for aval in jaxpr.out_avals[count:]]
    if size >= LARGE_STATE and length < LONG:
        state = boolean.stacked(init)
        found: list[list[Any]] = [[] for _ in of_ys]
        for t in range(length):
            for rows, parts in zip(found, of_ys, strict=True):
                if parts is not None:
                    of_const, mine, of_element = parts
                    rows.append(boolean.union([boolean.times(mine, state), each(of_element, of_const, t, t + 1)]))
            state = boolean.union([boolean.times(again, state), each(by_element, by_const, t, t + 1)])
        ys = [
            boolean.select(boolean.stacked(rows), numbers((length, n))[back]) if rows else UNKNOWN
            for rows, n in zip(found, heights, strict=True)
        ]
        return [*_split(state, 0, sizes[consts : consts + count], step.tangents[consts:]), *ys]
    states = boolean.stacked([*init, each(by_element, by_const)]) if size else boolean.empty(0, walk.width)
    jump = 1
    while len(again.indices) and jump <= length:
        later = boolean.shift(length + 1, jump)
        states = boolean.union([states, boolean.times(boolean.kron([later, again]), states)])
        again, jump = boolean.times(again, again), 2 * jump
    before = boolean.select(states, np.arange(length * size))
    ys = []
    for parts, n in zip(of_ys, heights, strict=True):
        if parts is None:
            ys.append(UNKNOWN)
            continue
        of_const, mine, of_element = parts
        rows = each(of_element, of_const)
        if len(mine.indices):
            of_carry = boolean.times(boolean.kron([boolean.identity(length, length), mine]), before)
            rows = boolean.union([rows, of_carry])
        ys.append(boolean.select(rows, numbers((length, n))[back]))
    return [*_split(states, length * size, sizes[consts : consts + count], step.tangents[consts:]), *ys]


def _last_state(again: Any, added: Any, state: Any, length: int) -> Any:
    """The state after some steps, each of which makes ``A P + R`` of P, by squaring: none in between is kept."""
    while True:
        if length & 1:
            state = boolean.union([boolean.times(again, state), added])
        length >>= 1
        if not length:
            return state
        added = boolean.union([boolean.times(again, added), added])
        again = boolean.times(again, again)


def _rows(walk: PatternRun, x: Any, size: int) -> Any:
    """The dependence of a tangent, which at first may be zero."""
    return x if is_tangent(x) else boolean.empty(size, walk.width)


def _parts(rows: Any, widths: tuple[int, int]) -> tuple[Any, Any, Any]:
    """What a result of a step has from constants, from the carry, and from elements."""
    ends = [0, widths[0], sum(widths), rows.shape[1]]
    first, second, third = (boolean.columns(rows, a, b) for a, b in itertools.pairwise(ends))
    return first, second, third


def _split(rows: Any, start: int, sizes: Sequence[int], tangents: Sequence[bool]) -> list[Any]:
    """What is known of each carry: the rows of a matrix from one on are those of all that are tangents."""
    ends = np.cumsum([start, *(n if t else 0 for n, t in zip(sizes, tangents, strict=False))]).tolist()
    parts = [boolean.select(rows, np.arange(a, b)) for a, b in itertools.pairwise(ends)]
    return [part if t else UNKNOWN for part, t in zip(parts, tangents, strict=False)]


def _element(x: Any, i: int, size: int) -> Any:
    """What is known of an element of the leading axis."""
    if is_tangent(x):
        return boolean.select(x, np.arange(i * size, (i + 1) * size))
    return np.asarray(x[i]) if isinstance(x, np.ndarray) else UNKNOWN


def _stacked(walk: PatternRun, parts: Sequence[Any], aval: Any) -> Any:
    """What is known of the stacked results of all steps."""
    if any(map(is_tangent, parts)):
        size = math.prod(aval.shape)
        return boolean.stacked([x if is_tangent(x) else boolean.empty(size, walk.width) for x in parts])
    known = parts and all(isinstance(x, np.ndarray) for x in parts)
    return np.stack(parts) if known else UNKNOWN


def _any_step(x: Any, length: int, size: int) -> Any:
    """What is known of the elements of all steps."""
    return boolean.merge(x, np.tile(np.arange(size), length), size) if is_tangent(x) else UNKNOWN


def _each_step(y: Any, length: int) -> Any:
    return boolean.select(y, np.tile(np.arange(y.shape[0]), length)) if is_tangent(y) else UNKNOWN


def _fixed_point(
    walk: PatternRun, jaxpr: ClosedJaxpr, consts: Any, carry: Sequence[Any], rest: Sequence[Any]
) -> list[Any]:
    """What is known of the carry at the beginning of any step, and at the end: the union of all."""
    carry = list(carry)
    while True:
        outs = walk.run(jaxpr, [*consts, *carry, *rest])[: len(carry)]
        joined = _joined(carry, outs)
        if all(_same(a, b) for a, b in zip(carry, joined, strict=True)):
            return joined
        carry = joined


def _same(a: Any, b: Any) -> bool:
    if is_tangent(a) and is_tangent(b):
        return bool(a.nnz == b.nnz)  # patterns only grow
    return a is b


@sparsity(while_p)
def _while(walk: PatternRun, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_test, of_body, carry = split_list(operands, eqn.params["cond_nconsts"], eqn.params["body_nconsts"])
    while _may_unroll(walk, body, 1):
        (go_on,) = walk.run(test, [*of_test, *carry])
        if not isinstance(go_on, np.ndarray):
            break
        if not go_on:
            return carry
        carry = walk.run(body, [*of_body, *carry])
    return _fixed_point(walk, body, of_body, carry, [])
