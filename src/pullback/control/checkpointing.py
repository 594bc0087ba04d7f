"""Checkpoints: the states of a loop are kept at a few steps, and those between are computed again, in reverse order.

To reverse ``l`` steps from a kept state with ``f`` free slots: push the state ``k`` steps ahead, reverse the steps
after it, and then the ``k`` steps before it. The best ``k`` is known: with ``s = f + 1``, and ``r`` the least number
for which ``C(s + r, s) >= l``, this computes ``r l - C(s + r, r - 1)`` steps, and no schedule computes fewer.

If the number of steps is known beforehand, the first pass keeps the states of this schedule. If it is not, the pass
keeps every state until the slots are full. Then it drops every second one, and keeps every second state from there on.

Source: A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), for the optimal schedule; P. Stumm and
A. Walther, New algorithms for optimal online checkpointing, SIAM J. Sci. Comput. 32 (2010), for loops of unknown
length, instead of whose schedules every second state is let go of: that computes 5 % more steps than the optimum on
average, and at worst half as many again (32 to 128 slots, up to 300,000 steps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np

from pullback.control.loops import while_loop
from pullback.core.array import ArrayImpl, scalar_array
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.indexing import dynamic_slice, dynamic_update_slice, zeros
from pullback.primitives.arrays.shapes import broadcast_in_dim, expand_dims, squeeze
from pullback.primitives.arrays.slicing import concatenate, iota
from pullback.primitives.arrays.slicing import slice as cut
from pullback.primitives.elementwise import add, div, mul, sub, where

State = Sequence[Any]
"""What a loop carries from step to step: a list of arrays."""

_INT = np.dtype(np.int32)
_INT_MAX = np.iinfo(_INT).max


def integer(n: int) -> ArrayImpl:
    """A counter."""
    return scalar_array(_INT.type(n))


# The schedule --------------------------------------------------------------------------------------------------------


def repetitions(length: int, free: int) -> int:
    """How often a step is computed at most, to reverse ``length`` steps with ``free`` slots beside the first."""
    s, r = free + 1, 0
    while comb(s + r, s) < length:
        r += 1
    return r


def steps_to_next_snapshot(length: int, free: int) -> int:
    """How many steps ahead the next state is kept, to reverse ``length`` steps (at least 2) with free slots."""
    s, r = free + 1, repetitions(length, free)
    return min(comb(s + r - 1, s), length - comb(s + r - 2, s - 1))


def best_steps(length: int, slots: int) -> list[int]:
    """The steps whose states the first pass over ``length`` steps keeps.

    >>> best_steps(10, 3)
    [0, 4, 7]
    """
    steps = [0]
    while len(steps) < slots and length - steps[-1] > 1:
        steps.append(steps[-1] + steps_to_next_snapshot(length - steps[-1], slots - len(steps)))
    return steps


def _is_large(x: Any, y: Any) -> Any:
    """Whether the product of two counters is too large for a counter."""
    x, y = (ops.convert_element_type(n, np.dtype(np.float32)) for n in (x, y))
    return ops.gt_p.bind(mul(x, y), 2.0**30)


def _way_ahead(length: Any, free: Any) -> Any:
    """:func:`steps_to_next_snapshot` of counters; where numbers get too large for these, any way that is possible."""
    s = add(free, 1)

    def more(carry: Any) -> Any:
        r, _, reached = carry
        r = add(r, 1)
        up = add(s, r)
        return r, reached, where(_is_large(reached, up), _INT_MAX, div(mul(reached, up), r))

    start = (integer(0), integer(1), integer(1))
    r, below, _ = while_loop(lambda carry: ops.lt_p.bind(carry[2], length), more, start)
    up = ops.max_p.bind(sub(add(s, r), 1), 1)
    least = where(_is_large(below, s), mul(div(below, up), s), div(mul(below, s), up))
    return ops.max_p.bind(ops.min_p.bind(below, sub(length, least)), 1)


# What is kept --------------------------------------------------------------------------------------------------------


class Snapshots(NamedTuple):
    """The states of a loop that are kept.

    Attributes:
      depth: how many there are.
      steps: for each of them, in order, the number of the step before which it was.
      order: the slots in which they are; and then the free ones. One more than there may be is at the end, for a state
        that is needed next, and not kept.
      slots: for each array of the state, the slots, along a new leading axis.
    """

    depth: Any
    steps: Any
    order: Any
    slots: list[Any]


def nothing_kept(state: State, slots: int) -> Snapshots:
    """Free slots for states like this one."""
    places = [zeros((slots + 1, *x.shape), x.dtype) for x in state]
    unused = broadcast_in_dim(integer(-1), (slots + 1,), ())
    return Snapshots(integer(0), unused, iota(_INT, (slots + 1,), 0), places)


def element(x: Any, i: Any) -> Any:
    start = [i, *[integer(0)] * (len(x.shape) - 1)]
    return squeeze(dynamic_slice(x, start, (1, *x.shape[1:])), (0,))


def with_element(x: Any, value: Any, i: Any) -> Any:
    return dynamic_update_slice(x, expand_dims(value, (0,)), [i, *[integer(0)] * (len(x.shape) - 1)])


def push(kept: Snapshots, state: State, step: Any) -> Snapshots:
    """Keep one more state; without a free slot it goes to the last, where the next such will overwrite it."""
    slot = element(kept.order, kept.depth)
    slots = [with_element(x, value, slot) for x, value in zip(kept.slots, state, strict=True)]
    count = kept.order.shape[0] - 1
    steps = with_element(kept.steps, step, kept.depth)
    return Snapshots(ops.min_p.bind(add(kept.depth, 1), count), steps, kept.order, slots)


def _thinned(kept: Snapshots, when: Any) -> Snapshots:
    """Let go of every second state."""
    count = kept.order.shape[0] - 1

    def evens_first(x: Any) -> Any:
        return concatenate(
            [cut(x, (0,), (count,), (2,)), cut(x, (1,), (count,), (2,)), cut(x, (count,), (count + 1,))], 0
        )

    half = div(add(kept.depth, 1), 2)
    return Snapshots(
        where(when, half, kept.depth),
        where(when, evens_first(kept.steps), kept.steps),
        where(when, evens_first(kept.order), kept.order),
        kept.slots,
    )


# Forwards ------------------------------------------------------------------------------------------------------------


def run_keeping(
    test: Callable[[State], Any], step: Callable[[State], State], state: State, slots: int
) -> tuple[list[Any], Any, Snapshots]:
    """Run a loop of unknown length: the last state, how many steps there were, and the states that are kept.

    Args:
      test: whether there is another step.
      step: from a state to the next.
      state: the first.
      slots: how many states may be kept.
    """

    def segment(carry: Any) -> Any:
        i, stride, kept, state = carry
        full = ops.eq_p.bind(kept.depth, slots)
        kept = push(_thinned(kept, full), state, i)
        stride = where(full, mul(stride, 2), stride)
        end = add(i, stride)
        i, state = while_loop(
            lambda c: ops.and_p.bind(ops.lt_p.bind(c[0], end), test(c[1])),
            lambda c: (add(c[0], 1), step(c[1])),
            (i, state),
        )
        return i, stride, kept, state

    start = (integer(0), integer(1), nothing_kept(state, slots), list(state))
    count, stride, kept, last = while_loop(lambda carry: test(carry[3]), segment, start)
    many = ops.gt_p.bind(kept.depth, 3 * slots // 4)  # so that there are free slots for the last segment
    return last, count, _thinned(kept, ops.and_p.bind(many, ops.gt_p.bind(stride, 1)))


def run_keeping_best(
    step: Callable[[Any, State, State], tuple[State, State]], state: State, others: State, length: int, slots: int
) -> tuple[list[Any], list[Any], Snapshots]:
    """Run a loop of known length: the last state, what else it carries, and the states that are best kept.

    Args:
      step: from the number of a step, the state before it and what else is carried, to the next.
      state: the first.
      others: what else is carried, which is not kept.
      length: the number of steps.
      slots: how many states may be kept.
    """
    # The state before the last step is the first that is needed again.
    ends = ArrayImpl(np.array(sorted({*best_steps(length, slots)[1:], max(length - 1, 1), length}), _INT))

    def segment(carry: Any) -> Any:
        i, k, kept, state, others = carry
        end, kept = element(ends, k), push(kept, state, i)

        def one(carry: Any) -> Any:
            j, state, others = carry
            state, others = step(j, state, others)
            return add(j, 1), list(state), list(others)

        i, state, others = while_loop(lambda carry: ops.lt_p.bind(carry[0], end), one, (i, state, others))
        return i, add(k, 1), kept, state, others

    start = (integer(0), integer(0), nothing_kept(state, slots), list(state), list(others))
    _, _, kept, last, others = while_loop(lambda carry: ops.lt_p.bind(carry[0], length), segment, start)
    return list(last), list(others), kept


# Backwards -----------------------------------------------------------------------------------------------------------


def reverse(
    step: Callable[[Any, State], State],
    adjoint: Callable[[Any, State, State], State],
    count: Any,
    kept: Snapshots,
    cotangents: State,
) -> list[Any]:
    """Go through the steps of a loop in reverse.

    Args:
      step: from the number of a step and the state before it to the next.
      adjoint: from the number of a step, the state before it and the cotangents after it, to those before it.
      count: the number of steps.
      kept: the states that were kept, the first one among them.
      cotangents: after the last step.
    """
    slots = kept.order.shape[0] - 1

    def back(carry: Any) -> Any:
        t, kept, cts = carry
        top = where(ops.eq_p.bind(element(kept.steps, integer(slots)), t), slots, sub(kept.depth, 1))
        slot = element(kept.order, top)
        found = (element(kept.steps, top), kept, [element(x, slot) for x in kept.slots])

        def ahead(carry: Any) -> Any:
            i, kept, state = carry
            length, free = sub(add(t, 1), i), sub(slots, kept.depth)
            some = _way_ahead(length, free)
            to = add(i, where(ops.eq_p.bind(free, 0), sub(length, 1), some))
            _, state = while_loop(lambda c: ops.lt_p.bind(c[0], to), lambda c: (add(c[0], 1), step(*c)), (i, state))
            return to, push(kept, state, to), state

        _, kept, state = while_loop(lambda carry: ops.lt_p.bind(carry[0], t), ahead, found)
        cts = list(adjoint(t, state, cts))
        used = ops.eq_p.bind(element(kept.steps, sub(kept.depth, 1)), t)
        return sub(t, 1), kept._replace(depth=where(used, sub(kept.depth, 1), kept.depth)), cts

    start = (sub(count, 1), kept, list(cotangents))
    return while_loop(lambda carry: ops.ge_p.bind(carry[0], 0), back, start)[2]  # type: ignore[no-any-return]
