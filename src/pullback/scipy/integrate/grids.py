"""Grids of times and results that the solvers of stochastic, delay and Hamiltonian equations share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import quote, typed
from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.trace import Tracer
from pullback.numpy.promotion import inexact_operands, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import inexact, known, real_floats


class Trajectory(NamedTuple):
    """The solution of an equation at several times.

    Attributes:
      t: the times, a vector.
      y: the states, of the shape of the initial state with a last axis for the times.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.integrate import solve_dde
    >>> path = solve_dde(lambda t, y, past: -past[0], (0.0, 1.0), lambda t: jnp.ones(1), 1.0, steps=4)
    >>> print(path.t, path.y.shape)
    [0.   0.25 0.5  0.75 1.  ] (1, 5)
    """

    t: Array
    y: Array


class Grid(NamedTuple):
    """The times of the steps of a solution.

    Attributes:
      unit: the times as fractions of the span, increasing from 0 to 1; a NumPy array of doubles where they are known.
      times: the times, an array.
      wanted: the positions of the times of the result, or None for all.
      asked: the times of the result as they were asked for, or None.
    """

    unit: Any
    times: Any
    wanted: Any
    asked: Any


def state_of(name: str, what: str, value: Any) -> Any:
    """Convert an initial state to an array of floats or complex numbers of single or double precision."""
    y = inexact(name, value)
    dtype = y.dtype if y.dtype.itemsize >= 4 else np.dtype(np.float32)
    return ops.convert_element_type(y, dtype)


def span_of(name: str, t_span: Any, dtype: np.dtype[Any], *, forward: bool = False) -> tuple[Any, Any]:
    """Return the two ends of a span of time as scalars of at least the precision of ``dtype``.

    With ``forward``, the second must not be before the first, where both are known.
    """
    try:
        start, stop = t_span
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: t_span must be two numbers, the first and the last time, got {quote(t_span)}"
        ) from None
    ends = inexact_operands(f"{name}: t_span", start, stop)
    for x in ends:
        if x.shape or dtypes.is_complex(x.dtype):
            raise ArgumentError(f"{name}: the times of t_span must be two real numbers, got {typed(x)}")
    real = dtypes.to_real(dtype)
    wide = ends[0].dtype if ends[0].dtype.itemsize > real.itemsize and not ends[0].weak_type else real
    low, high = known(ends[0]), known(ends[1])
    for value in (low, high):
        if value is not None and not np.isfinite(value):
            raise ArgumentError(f"{name}: the times of t_span must be finite, got {quote(t_span)}")
    if forward and low is not None and high is not None and high < low:
        raise ArgumentError(f"{name}: t_span must not go back in time, got from {low} to {high}")
    return ops.convert_element_type(ends[0], wide), ops.convert_element_type(ends[1], wide)


def number_of_steps(name: str, start: Any, stop: Any, steps: Any, dt: Any) -> int:
    """Return the number of equal steps of a span: ``steps``, or as many as have at most the size ``dt``."""
    if (steps is None) == (dt is None):
        raise ArgumentError(f"{name}: pass either steps=, the number of steps, or dt=, their size")
    if steps is not None:
        count = known_int(name, "steps", steps)
        if count < 1:
            raise ArgumentError(f"{name}: steps must be at least 1, got {count}")
        return count
    low, high, size = known(start), known(stop), known(dt)
    if low is None or high is None or size is None:
        raise ArgumentError(f"{name}: dt needs concrete times, whose number of steps is known; pass steps= instead")
    if size.shape or not 0 < float(size) < math.inf:
        raise ArgumentError(f"{name}: dt must be a positive number, got {quote(dt)}")
    # Rounding must not add a step to a span that is a multiple of dt.
    return max(1, math.ceil(abs(float(high) - float(low)) / float(size) * (1 - 1e-6)))


def grid_of(name: str, start: Any, stop: Any, count: int, t_eval: Any, *breaks: Any) -> Grid:
    """Return the grid of ``count`` equal steps, with the times ``t_eval`` and ``breaks`` between them.

    Where they are traced, the number of steps is ``count`` and one for each of these times, some of which may have
    size zero.

    Args:
      name: the function, for errors.
      start, stop: the ends of the span, scalars.
      count: the number of equal steps.
      t_eval: the times of the result, a vector of increasing times within the span; None for those of all steps.
      breaks: further scalars, which are moved into the span.
    """
    equal = np.linspace(0.0, 1.0, count + 1)
    width = ops.sub(stop, start)
    if t_eval is None and not breaks:
        return Grid(equal, start + width * ArrayImpl(equal.astype(start.dtype)), None, None)
    more, asked = [ops.convert_element_type(x, start.dtype) for x in breaks], None
    if t_eval is not None:
        asked = ops.convert_element_type(real_floats(name, t_eval, "t_eval"), start.dtype)
        _check_times(name, asked, known(start), known(stop))
    # A time with a tangent keeps it: its value is known, and it is a tracer.
    values = [start, stop, *more, *([] if asked is None else [asked])]
    if not any(isinstance(x, Tracer) for x in values):
        every = [np.asarray(x) for x in values]
        return _known_grid(start, width, equal, every[2 : 2 + len(more)], None if asked is None else every[-1], asked)
    low, high = ops.min_p.bind(start, stop), ops.max_p.bind(start, stop)
    inner = [ops.clamp_p.bind(low, x, high) for x in [*map(_as_vector, more), *([] if asked is None else [asked])]]
    safe = ops.where(ops.eq(width, 0.0), 1.0, width)
    fractions = [ops.div(ops.sub(x, start), safe) for x in inner]
    unit = pnp.sort(pnp.concatenate([ArrayImpl(equal.astype(start.dtype)), *fractions]))
    times = start + width * unit
    if asked is None:
        return Grid(unit, times, None, None)
    return Grid(unit, times, pnp.searchsorted(unit, fractions[-1]), asked)


def _as_vector(x: Any) -> Any:
    return shapes.reshape(x, (1,))


def _known_grid(start: Any, width: Any, equal: Any, breaks: Any, wanted: Any, asked: Any) -> Grid:
    """Return the grid of known times: equal steps, and other times where they are not at the same fraction."""
    low, size = float(np.asarray(known(start))), float(np.asarray(known(width)))
    others = np.concatenate([np.empty(0), *(np.atleast_1d(np.asarray(x, np.float64)) for x in breaks)])
    others = (others - low) / (size or 1.0)
    others = others[(others > 0) & (others < 1)]
    fractions = np.empty(0) if wanted is None else np.clip((np.asarray(wanted, np.float64) - low) / (size or 1.0), 0, 1)
    # Times of equal steps that differ by rounding only are one.
    close = 16 * float(np.finfo(start.dtype).eps)
    nearest = np.rint(fractions * (len(equal) - 1)).astype(int)
    on = np.abs(equal[nearest] - fractions) <= close
    fractions = np.where(on, equal[nearest], fractions)
    extra = others[np.abs(equal[np.rint(others * (len(equal) - 1)).astype(int)] - others) > close]
    unit = np.unique(np.concatenate([equal, fractions, extra]))
    times = start + width * ArrayImpl(unit.astype(start.dtype))
    return Grid(unit, times, None if wanted is None else np.searchsorted(unit, fractions), asked)


def _check_times(name: str, times: Any, start: Any, stop: Any) -> None:
    """Raise unless known times are a vector that goes from ``start`` towards ``stop`` and not beyond."""
    if len(times.shape) != 1:
        raise ShapeError(f"{name}: t_eval must be a vector of times, got shape {times.shape}")
    values = known(times)
    if values is None or start is None or stop is None:
        return
    forward = 1 if stop >= start else -1
    room = 4 * float(np.finfo(values.dtype).eps) * max(abs(float(start)), abs(float(stop)))
    outside = (values * forward < start * forward - room) | (values * forward > stop * forward + room)
    if outside.any() or not (np.diff(values) * forward >= 0).all():
        raise ArgumentError(
            f"{name}: the times of t_eval must be ordered, and within t_span, from {start} to {stop}, "
            f"got {quote(values)}"
        )


def chosen(grid: Grid, states: Any) -> Any:
    """Return the states at the wanted times, of states with a leading axis of all times, with the times' axis last."""
    states = states if grid.wanted is None else states[grid.wanted]
    return pnp.moveaxis(states, 0, -1)


def times_of(grid: Grid) -> Any:
    """Return the times of the result."""
    return grid.times if grid.asked is None else grid.asked


def with_arguments(function: Callable[..., Any], args: Any) -> Callable[..., Any]:
    """Return the function that takes what ``function`` takes before ``args``, a tuple of further arguments."""
    more = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    return (lambda *leading: function(*leading, *more)) if more else function


def fitting(name: str, what: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Convert a result of a user's function to an array of a shape and dtype; a scalar stands for equal elements."""
    x = inexact(f"{name}: {what}", value)
    if x.shape != shape and x.shape != ():
        raise ShapeError(f"{name}: {what} must return an array of shape {shape}, got shape {x.shape}")
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        raise DtypeError(f"{name}: {what} returned complex numbers, but the initial state is real; make it complex")
    x = ops.convert_element_type(x, dtype)
    return x if x.shape == shape else pnp.broadcast_to(x, shape)
