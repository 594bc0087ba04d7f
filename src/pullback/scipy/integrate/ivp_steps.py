"""Solutions step by step: the steps that a method's error estimate selects, and the same steps again, differentiable.

The first, :func:`planned`, tries steps until their errors are within the tolerance, and is never differentiated. The
second, :func:`repeated`, makes the steps of a plan with their sizes fixed, so that the derivative is that of the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.conditional import cond
from pullback.control.loops import while_loop
from pullback.control.scan import scan
from pullback.primitives import elementwise as ops
from pullback.scipy.integrate.backward_differences import Bdf
from pullback.scipy.integrate.implicit import Radau, Rodas
from pullback.scipy.integrate.ivp_methods import Method, at, real, rms, selected
from pullback.scipy.integrate.ivp_problems import Problem, System
from pullback.scipy.integrate.runge_kutta import RungeKutta

RUNNING, FAILED, FINISHED, STOPPED, EXHAUSTED = map(np.int32, (2, -1, 0, 1, -2))
"""The status of a solution: still running, steps became too small, at the end, at a terminal event, too many steps."""
BISECTIONS = 64


def method_of(system: System) -> Method:
    """Return the method of a problem."""
    classes: dict[str, Callable[[System], Method]] = {"Radau": Radau, "BDF": Bdf, "Rodas5P": Rodas}
    return classes.get(system.problem.method, RungeKutta)(system)


class Plan(NamedTuple):
    """The steps of a solution; every field is an array.

    Attributes:
      sizes: the signed sizes of the steps, padded with zeros.
      notes: what each step is repeated with (see :class:`pullback.scipy.integrate.ivp_methods.Attempt`).
      count: the number of steps.
      status: how the solution ended.
      calls: how often the right-hand side was evaluated.
      stops: how many steps are needed to reach each output time; -1 for those that are not reached.
      values: the results: states (outputs, n), or the coefficients of polynomials (steps, degree + 1, n).
      event_times, event_steps: the times of each event (events, max_events), NaN where there are fewer, and the number
        of the step that each is in.
    """

    sizes: Any
    notes: Any
    count: Any
    status: Any
    calls: Any
    stops: Any
    values: Any
    event_times: Any
    event_steps: Any


class Progress(NamedTuple):
    """The state of a solution in progress.

    Attributes:
      t, y: the time and the state.
      h: the size of the next step, without a sign.
      rejected: whether the last attempt was.
      memory, trail: those of the method; the trail is that of the last step, which began at ``begin`` and has the
        signed size ``width``.
      sizes, notes, count, status, calls: as those of :class:`Plan`.
      pieces: the polynomials of the steps, or None.
      signs: the values of the events at ``t``.
      event_times, event_steps, event_counts: the zeros of events so far.
    """

    t: Any
    y: Any
    h: Any
    rejected: Any
    memory: Any
    trail: Any
    begin: Any
    width: Any
    sizes: Any
    notes: Any
    count: Any
    status: Any
    calls: Any
    pieces: Any
    signs: Any
    event_times: Any
    event_steps: Any
    event_counts: Any


# The first step ------------------------------------------------------------------------------------------------------


def first_step(problem: Problem, system: System, method: Method, t: Any, y: Any, end: Any) -> Any:
    """Return the size of the first step (Hairer, Nørsett and Wanner, section II.4, starting step size)."""
    length = abs(end - t)
    if problem.first_step is not None:
        return pnp.minimum(np.asarray(problem.first_step, t.dtype), length)
    if problem.has_mass:  # the slope is not known
        return pnp.minimum(1e-6 * length, problem.max_step)
    sign = ops.convert_element_type(pnp.where(end >= t, 1, -1), t.dtype)
    scale = problem.tolerance(abs(y))
    slope = system.slope(t, y)
    size, steepness = rms(y / scale), rms(slope / scale)
    vague = (size < 1e-5) | (steepness < 1e-5)
    guess = ops.where(vague, 1e-6, 0.01 * size / ops.where(vague, 1, steepness))
    guess = pnp.minimum(ops.convert_element_type(guess, t.dtype), length)
    later = system.slope(t + guess * sign, y + real(guess * sign, y) * slope)
    bend = rms((later - slope) / scale) / real(ops.where(guess > 0, guess, 1), y)
    largest = pnp.maximum(steepness, bend)
    flat = largest <= 1e-15
    power = (0.01 / ops.where(flat, 1, largest)) ** (1 / (method.estimate + 1))
    better = ops.where(flat, pnp.maximum(1e-6, real(guess, y) * 1e-3), power)
    found = pnp.minimum(100 * guess, ops.convert_element_type(better, t.dtype))
    found = pnp.minimum(found, pnp.minimum(length, problem.max_step))
    return ops.where(found > 0, found, length * 1e-6)


# The plan ------------------------------------------------------------------------------------------------------------


def planned(problem: Problem, settings: Any, y: Any, begin: Any, end: Any, times: Any, *parameters: Any) -> list[Any]:
    """Select the steps of a solution, and return the fields of its :class:`Plan`.

    Args:
      problem: the problem.
      settings: a pair: what the values are ("states" at ``times``, the state "end", or the "pieces" of all steps);
        and the number of steps that there is room for.
      y: the initial state.
      begin, end: the first and the last time.
      times: the output times, between these.
      parameters: those of the problem.
    """
    kind, room = settings
    system = System(problem, parameters)
    method = method_of(system)
    sign = ops.convert_element_type(pnp.where(end >= begin, 1, -1), begin.dtype)
    walk = _first(problem, system, method, y, begin, end, room, kind == "pieces")

    def step(walk: Progress) -> Progress:
        return _tried(problem, system, method, walk, sign, end)

    def going(walk: Progress) -> Any:
        return walk.status == RUNNING

    if kind == "states":

        def to(walk: Progress, time: Any) -> tuple[Progress, Any]:
            walk = while_loop(lambda w: going(w) & (sign * (time - w.t) > 0), step, walk)
            reached = sign * (time - walk.t) <= 0
            x = _part(walk.begin, walk.width, time, y)
            value = ops.where(reached, at(method.polynomial(walk.trail), x), np.nan)
            return walk, (value, ops.where(reached, walk.count, -1))

        walk, (values, stops) = scan(to, walk, times)
    walk = while_loop(going, step, walk) if kind != "states" else walk
    if kind == "end":
        reached = walk.status != FAILED
        values = ops.where(reached & (walk.status != EXHAUSTED), walk.y, np.nan)[None]
        stops = ops.where(reached, walk.count, -1)[None]
    elif kind == "pieces":
        values, stops = walk.pieces, pnp.minimum(pnp.arange(1, room + 1, dtype=np.int32), walk.count)
    return [*walk[8:13], stops, values, walk.event_times, walk.event_steps]


def _part(begin: Any, width: Any, time: Any, like: Any) -> Any:
    """Return which part of the step from ``begin`` of a signed width a time is at: a number from 0 to 1."""
    still = ops.eq(width, 0)
    return real(ops.where(still, 0, (time - begin) / ops.where(still, 1, width)), like)


def _first(
    problem: Problem, system: System, method: Method, y: Any, begin: Any, end: Any, room: int, record: bool
) -> Progress:
    h = first_step(problem, system, method, begin, y, end)
    memory, trail = method.start(begin, y, ops.where(end >= begin, h, -h))
    count, most = len(problem.events), problem.max_events
    zero = pnp.zeros((), np.int32)
    pieces = pnp.zeros((room, method.degree + 1, *y.shape), y.dtype) if record else None
    signs = [ops.convert_element_type(system.event(k, begin, y), begin.dtype) for k in range(count)]
    return Progress(
        begin, y, h, pnp.zeros((), bool), memory, trail, begin, begin * 0, pnp.zeros(room, begin.dtype),
        pnp.zeros(room, np.int32), zero, pnp.where(ops.eq(begin, end), FINISHED, RUNNING), zero + 2,
        pieces, pnp.stack(signs) if signs else pnp.zeros(0, begin.dtype),
        pnp.full((count, most), np.nan, begin.dtype), pnp.zeros((count, most), np.int32), pnp.zeros(count, np.int32),
    )  # fmt: skip


def _tried(problem: Problem, system: System, method: Method, walk: Progress, sign: Any, end: Any) -> Progress:
    """Try a step, and return the state after it, or with a smaller size for the next attempt."""
    least = 10 * abs(pnp.nextafter(walk.t, sign * np.inf) - walk.t)
    h = ops.where(walk.rejected, walk.h, pnp.clip(walk.h, least, problem.max_step))
    lost = ~(h >= least)
    target = walk.t + sign * h
    ends = sign * (target - end) >= 0
    target = ops.where(ends, end, target)
    size = target - walk.t
    found = method.attempt(walk.t, walk.y, size, walk.memory)
    fine = found.accepted & ~lost
    factor = ops.where(found.accepted & walk.rejected, pnp.minimum(1, found.factor), found.factor)
    i = walk.count
    count = i + fine.astype(np.int32)
    room = walk.sizes.shape[0]
    status = pnp.where(fine & ends, FINISHED, pnp.where(count >= room, EXHAUSTED, RUNNING))
    status = pnp.where(lost, FAILED, status)
    pieces = walk.pieces
    if pieces is not None:
        pieces = pieces.at[i].set(ops.where(fine, method.polynomial(found.step.trail), pieces[i]))
    new = walk._replace(
        t=ops.where(fine, target, walk.t),
        y=ops.where(fine, found.step.y, walk.y),
        h=ops.convert_element_type(abs(size) * factor, walk.h.dtype),
        rejected=~fine,
        memory=selected(fine, found.step.memory, walk.memory),
        trail=selected(fine, found.step.trail, walk.trail),
        begin=ops.where(fine, walk.t, walk.begin),
        width=ops.where(fine, size, walk.width),
        sizes=walk.sizes.at[i].set(ops.where(fine, size, walk.sizes[i])),
        notes=walk.notes.at[i].set(ops.where(fine, found.note, walk.notes[i])),
        count=count,
        status=status,
        calls=walk.calls + found.calls,
        pieces=pieces,
    )
    return _with_events(problem, system, method, new, fine) if problem.events else new


def _with_events(problem: Problem, system: System, method: Method, walk: Progress, fine: Any) -> Progress:
    """Find the zeros of events within the last step, and end the solution at the first that is terminal."""
    piece = method.polynomial(walk.trail)
    values = [system.event(k, walk.t, walk.y) for k in range(len(problem.events))]
    signs = ops.convert_element_type(pnp.stack(values), walk.t.dtype)
    rising, falling = (walk.signs <= 0) & (signs >= 0), (walk.signs >= 0) & (signs <= 0)
    directions = np.array([e.direction for e in problem.events])
    crossed = fine & (
        (rising & (directions > 0)) | (falling & (directions < 0)) | ((rising | falling) & (directions == 0))
    )
    parts = pnp.stack([
        cond(crossed[k], lambda k=k: _root(system, k, walk, piece), lambda: walk.t * 0)
        for k in range(len(problem.events))
    ])  # fmt: skip
    limits = np.array([e.terminal for e in problem.events], np.int32)
    counts = walk.event_counts + crossed.astype(np.int32)
    stopping = crossed & (limits > 0) & (counts >= limits)
    first = pnp.min(ops.where(stopping, parts, np.inf))
    # Those after the one at which the solution ends did not happen.
    crossed = crossed & (parts <= first)
    times = walk.begin + parts * walk.width
    slots = pnp.minimum(walk.event_counts, problem.max_events - 1)
    room = crossed & (walk.event_counts < problem.max_events)
    rows = np.arange(len(problem.events))
    found = walk.event_times.at[rows, slots].set(ops.where(room, times, walk.event_times[rows, slots]))
    steps = walk.event_steps.at[rows, slots].set(ops.where(room, walk.count - 1, walk.event_steps[rows, slots]))
    return walk._replace(
        status=pnp.where(pnp.any(stopping), STOPPED, walk.status),
        signs=ops.where(fine, signs, walk.signs),
        event_times=found,
        event_steps=steps,
        event_counts=walk.event_counts + crossed.astype(np.int32),
    )


def _root(system: System, k: int, walk: Progress, piece: Any) -> Any:
    """Return the part of the last step, from 0 to 1, at which an event has a zero, by bisection."""

    def halved(bounds: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], None]:
        low, high = bounds
        middle = 0.5 * (low + high)
        value = system.event(k, walk.begin + middle * walk.width, at(piece, real(middle, walk.y)))
        # The sign at the beginning of the step; zero there counts as the sign opposite to that at the end.
        before = ops.where(ops.eq(start, 0), -ops.sign(last), ops.sign(start))
        left = ops.sign(value) * before > 0
        return (ops.where(left, middle, low), ops.where(left, high, middle)), None

    start = walk.signs[k]
    last = ops.convert_element_type(system.event(k, walk.t, walk.y), walk.t.dtype)
    zero = walk.t * 0
    (low, high), _ = scan(halved, (zero, zero + 1), None, length=BISECTIONS)
    return ops.where(ops.eq(last, 0), 1, 0.5 * (low + high))


# The same steps again ------------------------------------------------------------------------------------------------


class Repeat(NamedTuple):
    """The state of a repeated solution: the number of steps, and as in :class:`Progress`."""

    count: Any
    t: Any
    y: Any
    memory: Any
    trail: Any
    begin: Any
    width: Any


def repeated(
    problem: Problem, settings: Any, y: Any, begin: Any, end: Any, times: Any, sizes: Any, notes: Any, count: Any,
    closed: Any, stops: Any, *parameters: Any,
) -> list[Any]:  # fmt: skip
    """Make the steps of a plan, and return its values.

    Args:
      problem: the problem.
      settings: a tuple of one: the kind of values, as for :func:`planned`, or "ends", the states after each step.
      y: the initial state.
      begin, end: the first and the last time.
      times: the output times.
      sizes, notes, count, stops: those of the plan.
      closed: whether the last step ends at ``end``.
      parameters: those of the problem.
    """
    (kind,) = settings
    system = System(problem, parameters)
    method = method_of(system)

    def step(now: Repeat) -> Repeat:
        i = now.count
        target = ops.where(closed & ops.eq(i, count - 1), end, now.t + sizes[i])
        made = method.step(now.t, now.y, target - now.t, now.memory, notes[i])
        return Repeat(i + 1, target, made.y, made.memory, made.trail, now.t, target - now.t)

    def to(now: Repeat, target: tuple[Any, Any]) -> tuple[Repeat, Any]:
        stop, time = target
        now = while_loop(lambda now: now.count < stop, step, now)
        if kind in ("end", "ends"):
            value = now.y
        elif kind == "pieces":
            value = method.polynomial(now.trail)
        else:
            value = at(method.polynomial(now.trail), _part(now.begin, now.width, time, y))
        return now, ops.where(stop < 0, np.nan, value)

    memory, trail = method.start(begin, y, sizes[0])
    first = Repeat(pnp.zeros((), np.int32), begin, y, memory, trail, begin, begin * 0)
    if kind != "states":
        times = pnp.zeros(stops.shape, begin.dtype)
    return [scan(to, first, (stops, times))[1]]
