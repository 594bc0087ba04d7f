"""The discrete adjoint of the Dormand-Prince method: reverse mode, step by step, in little memory.

The steps of the solution are computed again, one block of them at a time, and transposed in reverse order, with the
sizes of the steps fixed. So the result is the derivative of the solution as it was computed. (Solving the continuous
adjoint equation instead needs the solution backwards in time, which is unstable for dissipative equations.)

The state before a block is stored in a slot whose index is the number of trailing zeros of the block's number. So an
earlier state is always stored from which the previous block can be recomputed, and recomputation stores further states
on the way. For ``n`` blocks there are ``log2(n)`` states, and a block is computed ``2 + log2(n) / 2`` times on average.

Source: W. W. Hager, Runge-Kutta methods in optimal control and the transformed adjoint system, Numer. Math. 87 (2000);
A. Sandu, On the properties of Runge-Kutta discrete adjoints, ICCS 2006; A. Griewank, Achieving logarithmic growth of
temporal and spatial complexity in reverse automatic differentiation, Optim. Methods Softw. 1 (1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.checkpointing import element, integer, with_element
from pullback.control.common import op_count
from pullback.control.loops import while_loop
from pullback.core import tree
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.lists import select, split_list
from pullback.experimental.dormand_prince import (
    UNROLLED_BACKWARDS,
    Derivatives,
    Problem,
    attempt,
    of_type,
    run,
    stages,
)
from pullback.primitives.arrays.indexing import zeros
from pullback.primitives.arrays.slicing import stack
from pullback.primitives.elementwise import population_count_p
from pullback.primitives.reductions import argmax
from pullback.transforms.autodiff.grad import vjp

BLOCK = 64
"""The number of steps of a block."""
SLOTS = 16
"""The number of slots for states: one for each number of trailing zeros up to 14, enough for a million steps, and one
for the first state."""
MEMORY = 64 << 20
"""The limit in bytes for the states of a block: blocks become smaller, down to 8 steps, to keep it."""


def adjoint(
    problem: Problem,
    moving: Sequence[bool],
    state: Sequence[Any],
    times: Any,
    step: Any,
    parameters: Sequence[Any],
    cts: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Return the cotangents of the initial vectors and of the ``moving`` parameters, with the times fixed.

    Args:
      problem: the equation.
      moving: for each parameter, whether its cotangent is wanted.
      state, times, step, parameters: as for ``solve``.
      cts: the cotangents of the results of ``solve``.
    """
    operands = [*state, times, step, *parameters, *cts]
    found = run("odeint_adjoint", _reverse, problem, operands, [tuple(moving)])
    of_state, of_parameters = split_list(found, problem.vectors)
    return of_state, of_parameters


class Records(NamedTuple):
    """States of a solution, at one time or several.

    Attributes:
      times: the time, and the size of the step from there.
      rows: for each vector, its value and its derivative.
    """

    times: Any
    rows: list[Any]

    def element(self, i: Any) -> Records:
        return Records(element(self.times, i), [element(rows, i) for rows in self.rows])

    def with_element(self, record: Records, i: Any) -> Records:
        rows = [with_element(x, y, i) for x, y in zip(self.rows, record.rows, strict=True)]
        return Records(with_element(self.times, record.times, i), rows)

    def empty(self, count: int) -> Records:
        """Return records of zeros for ``count`` states like this one."""
        times, *rows = (zeros((count, *x.shape), x.dtype) for x in (self.times, *self.rows))
        return Records(times, rows)


class Cotangents(NamedTuple):
    """Cotangents at one time.

    Attributes:
      output: the number of the next output time to process, backwards.
      state, slopes: the cotangents of the vectors, and of their derivatives.
      parameters: the cotangents of the wanted parameters.
    """

    output: Any
    state: list[Any]
    slopes: list[Any]
    parameters: list[Any]


class BackwardSolve(NamedTuple):
    """The state of a backward pass in progress.

    Attributes:
      now: the state from which steps are recomputed.
      block: the number of the block that begins there.
      kept: the stored states.
      numbers: the number of the block that begins with each of these; -1 for an empty slot.
      right: the time up to which steps remain to be transposed.
      limit: the time that no step may pass.
      cts: the cotangents at the time ``right``.
    """

    now: Records
    block: Any
    kept: Records
    numbers: Any
    right: Any
    limit: Any
    cts: Cotangents


def _reverse(problem: Problem, moving: Sequence[bool], *operands: Any) -> list[Any]:
    state, (times, step), parameters, seeds = split_list(operands, problem.vectors, 2, len(moving))
    start = times[0]
    active = select(parameters, moving)

    def derivatives(vectors: Sequence[Any], time: Any, active: Sequence[Any] = active) -> list[Any]:
        given = iter(active)
        merged = [next(given) if m else x for x, m in zip(parameters, moving, strict=True)]
        return list(jaxpr_as_fun(problem.derivatives)(*vectors, time, *merged))

    slopes = derivatives(state, start)
    first = Records(stack([start, step], 0), [stack([y, k], 0) for y, k in zip(state, slopes, strict=True)])
    size = max(8, min(BLOCK, MEMORY // sum(rows.size * rows.dtype.itemsize for rows in first.rows)))
    # Times after the last one with a cotangent are ignored.
    used = reduce(pnp.logical_or, [pnp.any(ct != 0, 1) for ct in seeds])
    right = pnp.max(pnp.where(used, times, start))
    nothing = [zeros(y.shape, y.dtype) for y in state]
    cts = Cotangents(integer(times.size - 1), nothing, nothing, [zeros(x.shape, x.dtype) for x in active])

    def next_block(walk: BackwardSolve) -> BackwardSolve:
        trailing_zeros = population_count_p.bind(~walk.block & (walk.block - 1))
        slot = pnp.where(walk.block == 0, SLOTS - 1, pnp.minimum(trailing_zeros, SLOTS - 2))
        kept, numbers = walk.kept.with_element(walk.now, slot), with_element(walk.numbers, walk.block, slot)
        now, count, ring = _taken(problem, derivatives, walk, size)
        stuck = (now.times[0] < walk.right) & (count < size)
        done = (now.times[0] >= walk.right) | stuck
        cts = _gone_back(problem, derivatives, ring, pnp.where(done, count, 0), times, seeds, active, walk.cts)
        cts = cts._replace(state=[pnp.where(stuck, pnp.nan, ct) for ct in cts.state])
        right = pnp.where(done, pnp.where(stuck, start, walk.now.times[0]), walk.right)
        latest = argmax(pnp.where(numbers < walk.block, numbers, -1), 0, numbers.dtype)
        return BackwardSolve(
            _selected(done, kept.element(latest), now),
            pnp.where(done, element(numbers, latest), walk.block + 1),
            kept,
            numbers,
            right,
            pnp.where(done, right, walk.limit),
            cts,
        )

    numbers = pnp.full(SLOTS, -1, np.int32)
    walk = BackwardSolve(first, integer(0), first.empty(SLOTS), numbers, right, times[-1], cts)
    cts = while_loop(lambda walk: walk.right > start, next_block, walk).cts
    _, pull = vjp(lambda vectors, active: derivatives(vectors, start, active), state, active)
    of_state, of_parameters = pull(cts.slopes)
    at_start = [pnp.sum(pnp.where(times[:, None] <= start, ct, 0), 0) for ct in seeds]
    found = [a + b + c for a, b, c in zip(cts.state, of_state, at_start, strict=True)]
    return [*found, *(a + b for a, b in zip(cts.parameters, of_parameters, strict=True))]


def _selected(which: Any, x: Any, y: Any) -> Any:
    """Return the tree ``x`` if the traced boolean ``which`` is True, otherwise the tree ``y``."""
    return tree.tree_map(lambda a, b: pnp.where(which, a, b), x, y)


# Forwards ------------------------------------------------------------------------------------------------------------


def _taken(problem: Problem, derivatives: Derivatives, walk: BackwardSolve, size: int) -> tuple[Records, Any, Records]:
    """Repeat the steps of the solver from the state ``walk.now`` to the time ``walk.right``, at most ``size`` steps.

    Args:
      problem: the differential equation and its options.
      derivatives: returns the derivatives of the state vectors.
      walk: the state to start at, and the time to reach.
      size: the largest number of steps.

    Returns:
      The state after these steps, the number of steps, and the states before each step, padded to ``size``.
    """

    def goes_on(carry: tuple[Records, Any, Records]) -> Any:
        (time, step), count = carry[0].times, carry[1]
        return (time < walk.right) & (count < size) & (time + step > time)

    def try_step(carry: tuple[Records, Any, Records]) -> tuple[Records, Any, Records]:
        now, count, ring = carry
        time, step = now.times
        state, slopes = [rows[0] for rows in now.rows], [rows[1] for rows in now.rows]
        found = attempt(problem, derivatives, state, slopes, time, step, walk.limit)
        # The record of a rejected step is overwritten by the next.
        ring = ring.with_element(Records(stack([time, found.step], 0), now.rows), count)
        after = [stack([y, k], 0) for y, k in zip(found.state, found.slopes, strict=True)]
        return (
            Records(
                stack([pnp.where(found.accepted, found.time, time), found.next_step], 0),
                [pnp.where(found.accepted, new, rows) for new, rows in zip(after, now.rows, strict=True)],
            ),
            count + found.accepted.astype(count.dtype),
            ring,
        )

    return while_loop(goes_on, try_step, (walk.now, integer(0), walk.now.empty(size)))


# Backwards -----------------------------------------------------------------------------------------------------------


def _gone_back(
    problem: Problem,
    derivatives: Any,
    ring: Records,
    count: Any,
    times: Any,
    seeds: Sequence[Any],
    active: Sequence[Any],
    cts: Cotangents,
) -> Cotangents:
    """Propagate cotangents backwards through ``count`` steps of the solver, from the last step to the first.

    Args:
      problem: the differential equation and its options.
      derivatives: returns the derivatives of the state vectors, from the vectors, the time and ``active``.
      ring: the state before each step.
      count: the number of steps.
      times: the times of all results.
      seeds: the cotangents of the results at these times.
      active: the parameters to differentiate by.
      cts: the cotangents after the last step.

    Returns:
      The cotangents before the first step.
    """

    unrolled = op_count(problem.derivatives) <= UNROLLED_BACKWARDS

    def step_back(carry: tuple[Any, Cotangents]) -> tuple[Any, Cotangents]:
        i, after = carry
        record = ring.element(i)
        output, sums = _of_outputs(record, times, seeds, after.output)

        def function(state: Sequence[Any], slopes: Sequence[Any], active: Sequence[Any]) -> Any:
            def of_active(vectors: Sequence[Any], time: Any) -> list[Any]:
                return derivatives(vectors, time, active)  # type: ignore[no-any-return]

            time, step = record.times
            end, last, _, bends = stages(of_active, state, slopes, time, step, unrolled)
            return end, last, bends

        _, pull = vjp(function, [rows[0] for rows in record.rows], [rows[1] for rows in record.rows], active)
        sizes = [of_type(record.times[1], ct) for ct in after.state]
        of_end = [ct + s[1] for ct, s in zip(after.state, sums, strict=True)]
        of_last = [ct + h * s[3] for ct, s, h in zip(after.slopes, sums, sizes, strict=True)]
        of_state, of_slopes, of_active = pull((of_end, of_last, [s[4] for s in sums]))
        return i - 1, Cotangents(
            output,
            [ct + s[0] - s[1] for ct, s in zip(of_state, sums, strict=True)],
            [ct + h * s[2] for ct, s, h in zip(of_slopes, sums, sizes, strict=True)],
            [a + b for a, b in zip(after.parameters, of_active, strict=True)],
        )

    return while_loop(lambda carry: carry[0] >= 0, step_back, (count - 1, cts))[1]


def _of_outputs(record: Records, times: Any, seeds: Sequence[Any], output: Any) -> tuple[Any, list[Any]]:
    """Transpose the interpolation of all results whose times are within one step.

    Args:
      record: the time and the state at the beginning of the step.
      times: the times of all results.
      seeds: the cotangents of the results at these times.
      output: the index of the last result that is not transposed yet.

    Returns:
      The index of the last result before the step; and for each state vector an array of five cotangents: of the value
      at the beginning of the step, of the change over the step, of the step size times the derivative at the beginning,
      of the step size times the derivative at the end, and of the coefficient of the term of order 4.
    """

    def add_one(carry: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
        i, sums = carry
        x = pnp.minimum((element(times, i) - time) / step, 1.0)
        weights = [x - x + 1, x + x * (x - 1) * (1 - 2 * x), x * (x - 1) ** 2, x**2 * (x - 1), (x * (1 - x)) ** 2]
        column = stack(weights, 0)[:, None]
        return i - 1, [s + of_type(column, s) * element(ct, i)[None] for s, ct in zip(sums, seeds, strict=True)]

    time, step = record.times
    nothing = [zeros((5, *rows.shape[1:]), rows.dtype) for rows in record.rows]
    return while_loop(  # type: ignore[no-any-return]
        lambda carry: (carry[0] >= 1) & (element(times, carry[0]) > time), add_one, (output, nothing)
    )
