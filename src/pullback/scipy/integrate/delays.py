"""Delay differential equations by the method of steps, with steps that end where derivatives jump.

Sources: Bellen and Zennaro 2003, *Numerical Methods for Delay Differential Equations*, for the method, its continuous
extension and the propagation of discontinuities; Hairer, Nørsett and Wanner 1993, *Solving Ordinary Differential
Equations I*, sections II.1 and II.17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.conditional import cond
from pullback.control.fori_loop import fori_loop
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import quote, require_function, typed
from pullback.core.array import ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.trace import Tracer
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import known
from pullback.scipy.integrate.grids import (
    Grid,
    Trajectory,
    chosen,
    fitting,
    grid_of,
    number_of_steps,
    span_of,
    state_of,
    times_of,
    with_arguments,
)
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["solve_dde"]

_STAGES = (0.0, 0.5, 0.5, 1.0, 1.0)
"""The times of the evaluations of a step, as fractions of it: the four of the method, and the one of its end."""
_TOWARDS_MIDDLE = 2.0**-10
"""How far a delayed time is moved towards the middle of the step to find the piece that the step looks back at."""
_PASSES = 4
"""How often a step that looks back at itself is computed: each pass has one more order, as far as the fourth."""
_JUMPS = 4
"""The order of the derivatives whose jumps count: those of higher ones do not lower the order of the method."""
_MOST_BREAKS = 128


class _Equation(NamedTuple):
    """A delay equation.

    Attributes:
      fun: from time, state and the tuple of delayed states to the derivative.
      history: from a time to the state before the first time.
      lags: for each delay a scalar, or a function of time and state.
      start: the first time.
      y: the initial state.
    """

    fun: Callable[[Any, Any, tuple[Any, ...]], Any]
    history: Callable[[Any], Any]
    lags: Sequence[Any]
    start: Any
    y: Any


# Pieces: a cubic of each step, y + θ (d + (1 - θ) (r + θ s)) at the fraction θ of the step ---------------------------


def _cubic(y: Any, end: Any, first: Any, last: Any) -> Any:
    """Return the coefficients of Hermite's cubic, by the values and by the slopes times the size of the step."""
    rise = end - y
    bend = first - rise
    return pnp.stack([y, rise, bend, rise - last - bend])


def _on_cubic(piece: Any, theta: Any) -> Any:
    rest = 1.0 - theta
    return piece[0] + theta * (piece[1] + rest * (piece[2] + theta * piece[3]))


def _piece_value(times: Any, i: Any, piece: Any, at: Any) -> Any:
    """Evaluate the piece of step i at a time, also beyond the step."""
    size = times[i + 1] - times[i]
    theta = (at - times[i]) / ops.where(ops.eq(size, 0.0), 1.0, size)
    return _on_cubic(piece, ops.convert_element_type(theta, dtypes.to_real(piece.dtype)))


# A step --------------------------------------------------------------------------------------------------------------


def _lag(equation: _Equation, k: int, t: Any, y: Any) -> Any:
    lag = equation.lags[k]
    return lag(t, y) if callable(lag) else lag


def _found(times: Any, at: Any) -> Any:
    """Return the positions of the steps that contain times, from -1, for times before the first one."""
    if at.shape:
        return pnp.searchsorted(times, at, side="right").astype(np.int32) - 1
    # A sum compiles in a fraction of the time that a search takes, of which a step would contain five for each delay.
    return pnp.sum(times <= at, dtype=np.int32) - 1


def _looked_up(times: Any, equation: _Equation) -> Any:
    """Return the positions of the steps at which each stage of each step looks back, or None for delays that vary.

    The result has the shape (steps, stages, delays).
    """
    if any(map(callable, equation.lags)):
        return None
    start, size = times[:-1, None], (times[1:] - times[:-1])[:, None]
    fraction = np.array([c + _TOWARDS_MIDDLE * (0.5 - c) for c in _STAGES])
    at = start + size * ArrayImpl(fraction.astype(times.dtype))
    return pnp.stack([_found(times, stop_gradient(at - lag)) for lag in equation.lags], axis=-1)


def _advanced(equation: _Equation, times: Any, pieces: Any, y: Any, i: Any, rows: Any, overlaps: bool | None) -> Any:
    """Return the state at the end of step i, and the step's piece.

    Args:
      equation: the equation.
      times: the times of the grid.
      pieces: the pieces of all steps, of which the first i are known.
      y: the state at the start of the step.
      i: the step.
      rows: the positions that :func:`_looked_up` found for this step, or None.
      overlaps: whether a delayed time may be within the step itself; None if that is not known.
    """
    t, size = times[i], times[i + 1] - times[i]
    h = ops.convert_element_type(size, dtypes.to_real(y.dtype))

    def delayed(stage: int, at: Any, y: Any, own: Any) -> tuple[tuple[Any, ...], Any]:
        values, within = [], False
        for k in range(len(equation.lags)):
            lag = _lag(equation, k, at, y)
            time = at - lag
            near = time + _TOWARDS_MIDDLE * ((0.5 - _STAGES[stage]) * size)
            row = _found(times, stop_gradient(near)) if rows is None else rows[stage, k]
            inside = row >= i
            piece = pieces[pnp.clip(row, 0, pnp.maximum(i - 1, 0))]
            if overlaps is not False:
                piece = ops.where(inside, own, piece)
                within = within | inside
            value = _piece_value(times, pnp.clip(row, 0, i), piece, time)
            # The history is called with its own times only; a delay of zero is the state itself.
            past = equation.history(ops.where(row < 0, time, equation.start))
            values.append(ops.where(row < 0, past, value))
        return tuple(values), within

    def taken(own: Any) -> tuple[Any, Any, Any]:
        slopes: list[Any] = []
        within: Any = False
        for stage, weight in enumerate((0.0, 0.5, 0.5, 1.0)):
            at = t + _STAGES[stage] * size
            guess = y + (weight * h) * slopes[-1] if slopes else y
            lagged, inside = delayed(stage, at, guess, own)
            slopes.append(equation.fun(at, guess, lagged))
            within = within | inside
        a, b, c, d = slopes
        end = y + h * (a + 2.0 * (b + c) + d) / 6.0
        lagged, inside = delayed(4, t + size, end, own)
        last = equation.fun(t + size, end, lagged)
        return end, _cubic(y, end, h * a, h * last), within | inside

    still = pnp.zeros_like(y)
    end, piece, within = taken(pnp.stack([y, still, still, still]))
    if overlaps is False:
        return end, piece

    def again(pair: Any) -> Any:
        return fori_loop(0, _PASSES - 1, lambda _, pair: taken(pair[1])[:2], pair)

    return cond(pnp.asarray(within), again, tuple, (end, piece))


def _solved(equation: _Equation, grid: Grid, overlaps: bool | None) -> tuple[Any, Any]:
    """Return the states at all times of a grid, with a leading axis, and the pieces of all steps."""
    times, y = grid.times, equation.y
    count = times.shape[0] - 1
    pieces = pnp.zeros((count, 4, *y.shape), y.dtype)
    rows = _looked_up(times, equation)

    def step(carry: Any, now: Any) -> Any:
        y, pieces = carry
        i, row = now
        y, piece = _advanced(equation, times, pieces, y, i, row, overlaps)
        return (y, pieces.at[i].set(piece)), y

    (_, pieces), states = scan(step, (y, pieces), (ArrayImpl(np.arange(count, dtype=np.int32)), rows))
    return pnp.concatenate([y[None], states]), pieces


# Where derivatives jump ----------------------------------------------------------------------------------------------


def _constant_breaks(start: Any, lags: Sequence[Any]) -> list[Any]:
    """Return the times at which derivatives of the solution jump: sums of constant delays after the start."""
    found: list[Any] = []
    for order in range(1, _JUMPS + 1):
        sums = [start + sum(which) for which in combinations_with_replacement(lags, order)]
        if len(found) + len(sums) > _MOST_BREAKS:
            break
        found += sums
    return found


def _varying_breaks(equation: _Equation, grid: Grid) -> list[Any]:
    """Return such times for delays that depend on time or state, from a first solution.

    They are the first times at which ``t - delay`` reaches the start, and then those at which it reaches these.
    """
    states, pieces = _solved(equation, grid, None)
    times = stop_gradient(grid.times)
    states, pieces = stop_gradient(states), stop_gradient(pieces)
    targets, found = [equation.start], []
    orders = _JUMPS - 1 if len(equation.lags) == 1 else 2
    for _ in range(orders):
        targets = [_crossing(equation, k, times, states, pieces, x) for x in targets for k in range(len(equation.lags))]
        found += targets
    return found


def _crossing(equation: _Equation, k: int, times: Any, states: Any, pieces: Any, target: Any) -> Any:
    """Return the first time at which delayed time is ``target``, or the last time if there is none."""
    reached = vmap(lambda t, y: t - _lag(equation, k, t, y))(times, states) - target
    crossed = (reached[:-1] < 0) & (reached[1:] >= 0)
    i = pnp.argmax(crossed)

    def halved(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        y = _piece_value(times, i, pieces[i], middle)
        before = middle - _lag(equation, k, middle, y) < target
        return ops.where(before, middle, low), ops.where(before, high, middle)

    low, high = fori_loop(0, 30 if times.dtype.itemsize < 8 else 60, halved, (times[i], times[i + 1]))
    return stop_gradient(ops.where(pnp.any(crossed), 0.5 * (low + high), times[-1]))


# The function --------------------------------------------------------------------------------------------------------


# long: most of it is documentation
def solve_dde(
    fun: Callable[..., Any],
    t_span: tuple[ArrayLike, ArrayLike],
    history: ArrayLike | Callable[[Any], Any],
    delays: Any,
    *,
    y0: ArrayLike | None = None,
    steps: int | None = None,
    dt: float | None = None,
    t_eval: ArrayLike | None = None,
    args: tuple[PyTree, ...] = (),
) -> Trajectory:
    """Solve a delay differential equation ``y'(t) = fun(t, y(t), y(t - delay))`` by a method of order 4.

    The steps are equal, and end also where derivatives of the solution jump. The solution can be differentiated with
    respect to ``args``, constant delays, and values that ``fun``, ``history`` and delays close over, in both modes and
    to any order.

    Args:
      fun: ``fun(t, y, z, *args)``, an array of the shape of ``y``; ``z`` is the state at ``t - delay``, or a tuple of
        such states, if ``delays`` is a sequence.
      t_span: the first and the last time.
      history: the state before the first time, a function ``history(t)`` or a constant array.
      delays: a delay, or a sequence of them: positive numbers, or functions ``delay(t, y, *args)`` of time and state.
        Delays may be shorter than a step, which takes four times as long.
      y0: the state at the first time; ``history(t_span[0])`` if None.
      steps: the number of equal steps.
      dt: their size, instead of ``steps``.
      t_eval: the times of the result, in order and within the span, which are further ends of steps; those of all steps
        if None.
      args: further arguments of ``fun`` and of delays that are functions, in a tuple.

    Returns:
      A :class:`Trajectory`: the times ``t``, and the states ``y`` of the shape of the state with a last axis for times.

    Raises:
      ArgumentError: a delay that is not positive, a span that goes back, or times outside it (a TypeError and a
        ValueError).
      ShapeError: a function returned another shape (a TypeError and a ValueError).
      DtypeError: a function returned complex numbers for a real state (a TypeError).

    Source: Bellen and Zennaro 2003, *Numerical Methods for Delay Differential Equations*; the classical method of Runge
    and Kutta with Hermite's cubics.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.integrate import solve_dde
    >>> def final(delay):
    ...     return solve_dde(lambda t, y, z: -z, (0.0, 2.0), 1.0, delay, steps=20).y[-1]
    >>> print(final(1.0).round(4), grad(final)(1.0).round(4))  # 1 - t + (t - delay)**2 / 2 up to t = 2 * delay
    -0.5 -1.0
    """
    name = "solve_dde"
    require_function(name, "fun", fun)
    several = isinstance(delays, (list, tuple))
    ends = span_of(name, t_span, np.dtype(np.float32))
    past = history if callable(history) else lambda t: history
    y = state_of(name, "y0", past(ends[0]) if y0 is None else y0)
    start, stop = span_of(name, t_span, y.dtype, forward=True)
    count = number_of_steps(name, start, stop, steps, dt)
    lags = [_delay(x, start, args) for x in (delays if several else [delays])]
    rate = with_arguments(fun, args)
    equation = _Equation(
        lambda t, y, z: fitting(name, "fun", rate(t, y, z if several else z[0]), y.shape, y.dtype),
        lambda t: fitting(name, "history", past(t), y.shape, y.dtype),
        lags, start, y,
    )  # fmt: skip
    make = partial(grid_of, name, start, stop, count, t_eval)
    constant = [lag for lag in lags if not callable(lag)]
    breaks = _constant_breaks(start, constant)
    if len(constant) < len(lags):
        breaks += _varying_breaks(equation, grid_of(name, start, stop, count, None, *breaks))
    grid = make(*breaks)
    states, _ = _solved(equation, grid, _overlaps(grid, lags))
    return Trajectory(times_of(grid), chosen(grid, states))


def _delay(value: Any, start: Any, args: Any) -> Any:
    """Check a delay, and return a scalar of the dtype of times, or a function of time and state to such scalars."""
    if callable(value):
        lag = with_arguments(value, args)

        def varying(t: Any, y: Any) -> Any:
            return fitting("solve_dde", "a delay", lag(t, y), (), start.dtype)

        return varying
    if isinstance(value, (str, bytes, dict)) or value is None:
        raise ArgumentError(f"solve_dde: a delay must be a positive number or a function, got {typed(value)}")
    lag = fitting("solve_dde", "a delay", _scalar(value), (), start.dtype)
    number = known(lag)
    if number is not None and not (number > 0 and np.isfinite(number)):
        raise ArgumentError(f"solve_dde: a delay must be a positive number, got {quote(value)}")
    return lag


def _scalar(value: Any) -> Any:
    if np.shape(value) != ():
        raise ShapeError(f"solve_dde: a delay must be a number, got shape {np.shape(value)}; pass a list of several")
    return value


def _overlaps(grid: Grid, lags: Sequence[Any]) -> bool | None:
    """Return whether some step looks back at itself; None if that is not known."""
    if any(callable(lag) or isinstance(lag, Tracer) for lag in lags) or isinstance(grid.times, Tracer):
        return None
    longest = float(np.diff(np.asarray(grid.times, np.float64)).max(initial=0.0))
    return any(float(np.asarray(lag)) < longest * (1 - 1e-6) for lag in lags)
