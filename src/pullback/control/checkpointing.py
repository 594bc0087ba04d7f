"""Checkpointing of loops: states are saved at a few steps, and the others recomputed in reverse order.

To reverse ``l`` steps from a saved state with ``f`` free slots: save the state ``k`` steps ahead, reverse the steps
after it, and then the ``k`` steps before it. The best ``k`` is known: with ``s = f + 1``, and ``r`` the least number
for which ``C(s + r, s) >= l``, this computes ``r l - C(s + r, r - 1)`` steps, and no schedule computes fewer.

If the number of steps is known in advance, the first pass saves the states of this schedule. Otherwise it saves every
state until the slots are full. Then it drops every second state, and saves only every second state from there on.

Source: A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), for the optimal schedule; P. Stumm and
A. Walther, New algorithms for optimal online checkpointing, SIAM J. Sci. Comput. 32 (2010), for loops of unknown
length. Dropping every second state, instead of their schedules, computes 5 % more steps than the optimum on average,
and 50 % more in the worst case (32 to 128 slots, up to 300,000 steps).
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
"""The carry of a loop, a list of arrays."""

_INT = np.dtype(np.int32)
_INT_MAX = np.iinfo(_INT).max


def integer(n: int) -> ArrayImpl:
    """The number ``n`` as an int32 scalar, the type of loop counters."""
    return scalar_array(_INT.type(n))


# The schedule --------------------------------------------------------------------------------------------------------


def repetitions(length: int, free: int) -> int:
    """The least r so that reverse mode of ``length`` steps need not compute any step more than r times.

    The first state is saved already; memory for ``free`` further states is left.
    """
    s, r = free + 1, 0
    while comb(s + r, s) < length:
        r += 1
    return r


def steps_to_next_snapshot(length: int, free: int) -> int:
    """The best number of steps to run before the next state is saved, for reverse mode of ``length >= 2`` steps.

    The current state is saved already; memory for ``free`` further states is left.
    """
    s, r = free + 1, repetitions(length, free)
    return min(comb(s + r - 1, s), length - comb(s + r - 2, s - 1))


def best_steps(length: int, slots: int) -> list[int]:
    """The steps before which the first pass over ``length`` steps saves the state, if ``slots`` states can be saved.

    >>> from pullback.control.checkpointing import best_steps
    >>> best_steps(10, 3)
    [0, 4, 7]
    """
    steps = [0]
    while len(steps) < slots and length - steps[-1] > 1:
        steps.append(steps[-1] + steps_to_next_snapshot(length - steps[-1], slots - len(steps)))
    return steps


def _is_large(x: Any, y: Any) -> Any:
    """Whether the product of the counters ``x`` and ``y`` may overflow their integer dtype."""
    x, y = (ops.convert_element_type(n, np.dtype(np.float32)) for n in (x, y))
    return ops.gt_p.bind(mul(x, y), 2.0**30)


def _traced_steps_to_next(length: Any, free: Any) -> Any:
    """The number of steps to run before saving the next state, where ``length`` and ``free`` are traced.

    The number is from 1 to ``length - 1``, and minimises recomputation in reverse mode, unless binomial coefficients
    overflow.

    Args:
      length: the number of steps that remain.
      free: the number of states that can still be saved.
    """
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


# Saved states --------------------------------------------------------------------------------------------------------


class Snapshots(NamedTuple):
    """The saved states of a loop, a stack.

    Attributes:
      depth: the number of saved states.
      steps: for each saved state, in order, the number of the step that begins with it.
      order: the indices of the slots of the saved states, followed by those of free slots. There is an extra slot, the
        last, for a state that is needed next, but not saved.
      slots: for each array of the state, the slots, along a new leading axis.
    """

    depth: Any
    steps: Any
    order: Any
    slots: list[Any]


def no_snapshots(state: State, slots: int) -> Snapshots:
    """Allocate ``slots`` free slots for states like ``state``."""
    arrays = [zeros((slots + 1, *x.shape), x.dtype) for x in state]
    unused = broadcast_in_dim(integer(-1), (slots + 1,), ())
    return Snapshots(integer(0), unused, iota(_INT, (slots + 1,), 0), arrays)


def element(x: Any, i: Any) -> Any:
    """The element at a traced index along the first axis."""
    start = [i, *[integer(0)] * (len(x.shape) - 1)]
    return squeeze(dynamic_slice(x, start, (1, *x.shape[1:])), (0,))


def with_element(x: Any, value: Any, i: Any) -> Any:
    """Copy an array, with the element at a traced index along the first axis replaced."""
    return dynamic_update_slice(x, expand_dims(value, (0,)), [i, *[integer(0)] * (len(x.shape) - 1)])


def push(saved: Snapshots, state: State, step: Any) -> Snapshots:
    """Save a further state, the state before the step ``step``.

    If no slot is free, the state goes to the extra slot; the next state that finds no free slot overwrites it.
    """
    slot = element(saved.order, saved.depth)
    slots = [with_element(x, value, slot) for x, value in zip(saved.slots, state, strict=True)]
    count = saved.order.shape[0] - 1
    steps = with_element(saved.steps, step, saved.depth)
    return Snapshots(ops.min_p.bind(add(saved.depth, 1), count), steps, saved.order, slots)


def _thinned(saved: Snapshots, when: Any) -> Snapshots:
    """If ``when`` is True, drop every second saved state, to free the slots.

    No state is copied: only the order of the slots changes.
    """
    count = saved.order.shape[0] - 1

    def evens_first(x: Any) -> Any:
        return concatenate(
            [cut(x, (0,), (count,), (2,)), cut(x, (1,), (count,), (2,)), cut(x, (count,), (count + 1,))], 0
        )

    half = div(add(saved.depth, 1), 2)
    return Snapshots(
        where(when, half, saved.depth),
        where(when, evens_first(saved.steps), saved.steps),
        where(when, evens_first(saved.order), saved.order),
        saved.slots,
    )


# Forwards ------------------------------------------------------------------------------------------------------------


def run_saving(
    test: Callable[[State], Any], step: Callable[[State], State], state: State, slots: int
) -> tuple[list[Any], Any, Snapshots]:
    """Run a loop of unknown length; return the last state, the number of steps, and the saved states.

    Args:
      test: whether there is another step.
      step: from a state to the next.
      state: the first state.
      slots: the largest number of saved states.
    """

    def segment(carry: Any) -> Any:
        i, stride, saved, state = carry
        full = ops.eq_p.bind(saved.depth, slots)
        saved = push(_thinned(saved, full), state, i)
        stride = where(full, mul(stride, 2), stride)
        end = add(i, stride)
        i, state = while_loop(
            lambda c: ops.and_p.bind(ops.lt_p.bind(c[0], end), test(c[1])),
            lambda c: (add(c[0], 1), step(c[1])),
            (i, state),
        )
        return i, stride, saved, state

    start = (integer(0), integer(1), no_snapshots(state, slots), list(state))
    count, stride, saved, last = while_loop(lambda carry: test(carry[3]), segment, start)
    many = ops.gt_p.bind(saved.depth, 3 * slots // 4)  # the backward pass needs free slots for the last segment
    return last, count, _thinned(saved, ops.and_p.bind(many, ops.gt_p.bind(stride, 1)))


def run_saving_best(
    step: Callable[[Any, State, State], tuple[State, State]], state: State, others: State, length: int, slots: int
) -> tuple[list[Any], list[Any], Snapshots]:
    """Run a loop of known length; return the last state, the last further carried values, and the saved states.

    The states are saved so that reverse mode recomputes as few steps as possible.

    Args:
      step: ``step(i, state, others)`` runs step ``i``, and returns the new ``state`` and ``others``.
      state: the first state.
      others: further carried values, which are not saved.
      length: the number of steps.
      slots: the largest number of saved states.
    """
    # The state before the last step is the first that is needed again.
    ends = ArrayImpl(np.array(sorted({*best_steps(length, slots)[1:], max(length - 1, 1), length}), _INT))

    def segment(carry: Any) -> Any:
        i, k, saved, state, others = carry
        end, saved = element(ends, k), push(saved, state, i)

        def one(carry: Any) -> Any:
            j, state, others = carry
            state, others = step(j, state, others)
            return add(j, 1), list(state), list(others)

        i, state, others = while_loop(lambda carry: ops.lt_p.bind(carry[0], end), one, (i, state, others))
        return i, add(k, 1), saved, state, others

    start = (integer(0), integer(0), no_snapshots(state, slots), list(state), list(others))
    _, _, saved, last, others = while_loop(lambda carry: ops.lt_p.bind(carry[0], length), segment, start)
    return list(last), list(others), saved


# Backwards -----------------------------------------------------------------------------------------------------------


def reverse(
    step: Callable[[Any, State], State],
    adjoint: Callable[[Any, State, State], State],
    count: Any,
    saved: Snapshots,
    cotangents: State,
) -> list[Any]:
    """Run the adjoint of each step of a loop, in reverse; return the cotangents before the first step.

    Args:
      step: from the number of a step and the state before it to the next state.
      adjoint: from the number of a step, the state before it and the cotangents after it, to the cotangents before it.
      count: the number of steps.
      saved: the saved states, including the first state of the loop.
      cotangents: the cotangents after the last step.
    """
    slots = saved.order.shape[0] - 1

    def back(carry: Any) -> Any:
        t, saved, cts = carry
        # The extra slot may have the state before step t, which was not saved for lack of free slots.
        top = where(ops.eq_p.bind(element(saved.steps, integer(slots)), t), slots, sub(saved.depth, 1))
        slot = element(saved.order, top)
        nearest = (element(saved.steps, top), saved, [element(x, slot) for x in saved.slots])

        def ahead(carry: Any) -> Any:
            i, saved, state = carry
            length, free = sub(add(t, 1), i), sub(slots, saved.depth)
            some = _traced_steps_to_next(length, free)
            to = add(i, where(ops.eq_p.bind(free, 0), sub(length, 1), some))
            _, state = while_loop(lambda c: ops.lt_p.bind(c[0], to), lambda c: (add(c[0], 1), step(*c)), (i, state))
            return to, push(saved, state, to), state

        _, saved, state = while_loop(lambda carry: ops.lt_p.bind(carry[0], t), ahead, nearest)
        cts = list(adjoint(t, state, cts))
        used = ops.eq_p.bind(element(saved.steps, sub(saved.depth, 1)), t)
        return sub(t, 1), saved._replace(depth=where(used, sub(saved.depth, 1), saved.depth)), cts

    start = (sub(count, 1), saved, list(cotangents))
    return while_loop(lambda carry: ops.ge_p.bind(carry[0], 0), back, start)[2]  # type: ignore[no-any-return]
