"""Stochastic differential equations with a Brownian path that is a function of the key and of time.

Sources: Kloeden and Platen 1992, *Numerical Solution of Stochastic Differential Equations*, for the methods of Euler
and Maruyama, Milstein and Heun; Rößler 2010, *Runge-Kutta methods for the strong approximation of solutions of
stochastic differential equations*, SIAM Journal on Numerical Analysis 48, for the methods of strong order 1.5.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed, quote, require_function
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.integrate.brownian import unit_path
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
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import eval_shape

__all__ = ["solve_sde"]


class _Equation(NamedTuple):
    """An equation ``dy = drift(t, y) dt + diffusion(t, y) dW``.

    Attributes:
      drift, diffusion: functions of time and state, whose results have the state's dtype.
      noise: the shape of a value of the Brownian path.
      apply: from a value of the diffusion and one of the path to their product, of the state's shape.
    """

    drift: Callable[[Any, Any], Any]
    diffusion: Callable[[Any, Any], Any]
    noise: tuple[int, ...]
    apply: Callable[[Any, Any], Any]


class _Interval(NamedTuple):
    """A step in time: its start, its size, the increment of the path, and the integral of the path from its start."""

    t: Any
    size: Any
    rise: Any
    area: Any


# Methods -------------------------------------------------------------------------------------------------------------


def _euler(eq: _Equation, y: Any, step: _Interval) -> Any:
    t, h, rise, _ = step
    return y + h * eq.drift(t, y) + eq.apply(eq.diffusion(t, y), rise)


def _milstein(eq: _Equation, y: Any, step: _Interval) -> Any:
    t, h, rise, _ = step
    # With diagonal or scalar noise the derivative of the diffusion is wanted along the diffusion only.
    b = eq.diffusion(t, y)
    _, slope = jvp(lambda y: eq.diffusion(t, y), (y,), (b,))
    return y + h * eq.drift(t, y) + b * rise + 0.5 * slope * (rise * rise - h)


def _heun(eq: _Equation, y: Any, step: _Interval) -> Any:
    t, h, rise, _ = step
    a, b = eq.drift(t, y), eq.diffusion(t, y)
    guess = y + h * a + eq.apply(b, rise)
    drift = 0.5 * h * (a + eq.drift(t + h, guess))
    return y + drift + eq.apply(0.5 * (b + eq.diffusion(t + h, guess)), rise)


def _sri(eq: _Equation, y: Any, step: _Interval) -> Any:
    """Rößler's method SRI1W1 for diagonal and scalar noise, of strong order 1.5."""
    t, h, rise, area = step
    positive = ops.gt(h, 0.0)
    safe = ops.where(positive, h, 1.0)
    root = ops.sqrt(safe)
    mean = area / safe
    pair = 0.5 * (rise * rise - h) / root
    triple = rise * (rise * rise - 3.0 * h) / (6.0 * safe)
    quarter, far = t + 0.25 * h, t + 0.75 * h
    f1, g1 = eq.drift(t, y), eq.diffusion(t, y)
    f2 = eq.drift(far, y + 0.75 * h * f1 + 1.5 * mean * g1)
    g2 = eq.diffusion(quarter, y + 0.25 * h * f1 + 0.5 * root * g1)
    g3 = eq.diffusion(t + h, y + h * f1 - root * g1)
    # The third stage of the drift is that at the start of the step.
    g4 = eq.diffusion(quarter, y + 0.25 * h * f1 + root * (-5.0 * g1 + 3.0 * g2 + 0.5 * g3))
    weights = (
        -rise - pair + 2.0 * mean - 2.0 * triple,
        (4.0 * rise + 4.0 * pair - 4.0 * mean + 5.0 * triple) / 3.0,
        (2.0 * rise - pair - 2.0 * mean - 2.0 * triple) / 3.0,
        triple,
    )
    noise = sum((w * g for w, g in zip(weights[1:], (g2, g3, g4), strict=True)), weights[0] * g1)
    return ops.where(positive, y + h * (f1 + 2.0 * f2) / 3.0 + noise, y)


def _sra(eq: _Equation, y: Any, step: _Interval) -> Any:
    """Rößler's method SRA1 for additive noise, of strong order 1.5."""
    t, h, rise, area = step
    positive = ops.gt(h, 0.0)
    mean = area / ops.where(positive, h, 1.0)
    start, end = eq.diffusion(t, y), eq.diffusion(t + h, y)
    f1 = eq.drift(t, y)
    f2 = eq.drift(t + 0.75 * h, y + 0.75 * h * f1 + 1.5 * eq.apply(end, mean))
    noise = eq.apply(end, rise) - eq.apply(end - start, mean)
    return y + h * (f1 + 2.0 * f2) / 3.0 + noise


_METHODS: dict[str, dict[str, Callable[[_Equation, Any, _Interval], Any]]] = {
    "euler_maruyama": dict.fromkeys(("diagonal", "scalar", "general", "additive"), _euler),
    "milstein": {"diagonal": _milstein, "scalar": _milstein, "additive": _euler},
    "srk": {"diagonal": _sri, "scalar": _sri, "additive": _sra},
    "heun": dict.fromkeys(("diagonal", "scalar", "general", "additive"), _heun),
}
"""The step of each method for each kind of noise."""


# The function --------------------------------------------------------------------------------------------------------


# long: most of it is documentation
def solve_sde(
    drift: Callable[..., Any],
    diffusion: Callable[..., Any],
    t_span: tuple[ArrayLike, ArrayLike],
    y0: ArrayLike,
    key: Array,
    *,
    method: str = "euler_maruyama",
    noise: str = "diagonal",
    steps: int | None = None,
    dt: float | None = None,
    t_eval: ArrayLike | None = None,
    args: tuple[PyTree, ...] = (),
) -> Trajectory:
    """Solve a stochastic differential equation ``dy = drift(t, y) dt + diffusion(t, y) dW``.

    The Brownian path ``W`` is a function of the key and of time: the same key has the same path at every call, with
    every method, and with steps of every size. The solution can be differentiated with respect to ``y0``, ``args``,
    values that the functions close over, in both modes and to any order; and, without ``t_eval``, with respect to
    ``t_span``, with which the path is scaled. ``vmap`` over keys makes independent solutions.

    Args:
      drift: ``drift(t, y, *args)``, an array of the shape of ``y``.
      diffusion: ``diffusion(t, y, *args)``, an array whose shape ``noise`` says.
      t_span: the first and the last time.
      y0: the state at the first time, an array of any shape.
      key: a random key.
      method: ``"euler_maruyama"`` (Itô, strong order 1/2; 1 for additive noise), ``"milstein"`` (Itô, 1), ``"srk"``
        (Itô, 3/2), or ``"heun"`` (Stratonovich; 1, for general noise 1/2).
      noise: ``"diagonal"``: the diffusion has the shape of ``y``, and each element a path of its own, on which no other
        element's diffusion depends; ``"scalar"``: the same shape, and one path for all; ``"general"``: the shape of
        ``y`` and an axis of paths; ``"additive"``: either the first or the last of these, independent of ``y``.
      steps: the number of equal steps.
      dt: their size, instead of ``steps``; the last one reaches the last time.
      t_eval: the times of the result, in order and within the span, which are further ends of steps; those of all steps
        if None.
      args: further arguments of both functions, in a tuple.

    Returns:
      A :class:`Trajectory`: the times ``t``, and the states ``y`` of the shape of ``y0`` with a last axis for times.

    Raises:
      ArgumentError: an unknown method or noise, a span that goes back, or times outside it (a TypeError and a
        ValueError).
      ShapeError: a function returned another shape (a TypeError and a ValueError).
      DtypeError: a function returned complex numbers for a real state (a TypeError).
      UnsupportedArgumentError: ``"milstein"`` or ``"srk"`` with general noise (a NotImplementedError).

    Source: Kloeden and Platen 1992, *Numerical Solution of Stochastic Differential Equations*; Rößler 2010, his methods
    SRI1W1 and SRA1.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, random
    >>> from pullback.scipy.integrate import solve_sde
    >>> def final(rate, key):  # geometric Brownian motion
    ...     path = solve_sde(lambda t, y: rate * y, lambda t, y: 0.5 * y, (0.0, 1.0), 1.0, key, method="srk", steps=64)
    ...     return path.y[-1]
    >>> key = random.key(0)
    >>> bool(jnp.allclose(grad(final)(0.1, key), final(0.1, key), rtol=1e-2))  # final is proportional to exp(rate)
    True
    """
    name = "solve_sde"
    for what, function in (("drift", drift), ("diffusion", diffusion)):
        require_function(name, what, function)
    take = _step_of(method, noise)
    y = state_of(name, "y0", y0)
    start, stop = span_of(name, t_span, y.dtype, forward=True)
    count = number_of_steps(name, start, stop, steps, dt)
    grid = grid_of(name, start, stop, count, t_eval)
    equation = _equation(with_arguments(drift, args), with_arguments(diffusion, args), noise, start, y)
    path = _increments(key, grid, stop - start, equation.noise, dtypes.to_real(y.dtype))
    starts, sizes = grid.times[:-1], grid.times[1:] - grid.times[:-1]

    def advance(y: Any, now: Any) -> tuple[Any, Any]:
        step = _Interval(*(ops.convert_element_type(x, dtypes.to_real(y.dtype)) if i else x for i, x in enumerate(now)))
        y = ops.convert_element_type(take(equation, y, step), y.dtype)
        return y, y

    _, states = scan(advance, y, (starts, sizes, *path))
    return Trajectory(times_of(grid), chosen(grid, pnp.concatenate([y[None], states])))


def _step_of(method: Any, noise: Any) -> Callable[[_Equation, Any, _Interval], Any]:
    """Return the step of a method for a kind of noise."""
    if not is_listed(method, _METHODS):
        raise ArgumentError(f"solve_sde: method must be one of {', '.join(map(repr, _METHODS))}, got {quote(method)}")
    kinds = _METHODS["heun"]
    if not is_listed(noise, kinds):
        raise ArgumentError(f"solve_sde: noise must be one of {', '.join(map(repr, kinds))}, got {quote(noise)}")
    steps = _METHODS[method]
    if noise not in steps:
        raise UnsupportedArgumentError(
            f"solve_sde: the method {method!r} needs the Lévy areas of general noise, which no formula gives; use "
            f"'euler_maruyama', or 'heun' for the equation in Stratonovich's sense"
        )
    return steps[noise]


def _equation(drift: Any, diffusion: Any, noise: str, t: Any, y: Any) -> _Equation:
    """Check what the user's functions return, and return the equation."""
    name, shape, dtype = "solve_sde", y.shape, y.dtype

    def fixed_drift(t: Any, y: Any) -> Any:
        return fitting(name, "drift", drift(t, y), shape, dtype)

    found = eval_shape(lambda t, y: pnp.asarray(diffusion(t, y)), t, y).shape
    matrix = noise == "general" or (noise == "additive" and len(found) == len(shape) + 1)
    if matrix and found[:-1] != shape:
        raise ShapeError(
            f"{name}: with noise={noise!r} diffusion must return an array of the shape of y, {shape}, and an axis for "
            f"the paths, got shape {found}"
        )
    full = found if matrix else shape

    def fixed_diffusion(t: Any, y: Any) -> Any:
        return fitting(name, "diffusion", diffusion(t, y), full, dtype)

    paths = found[-1:] if matrix else () if noise == "scalar" else shape
    apply = _matrix_times if matrix else operator.mul
    return _Equation(fixed_drift, fixed_diffusion, paths, apply)


def _matrix_times(matrix: Any, path: Any) -> Any:
    return pnp.matmul(matrix, ops.convert_element_type(path, matrix.dtype))


def _increments(key: Any, grid: Grid, width: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the increments of the path in the steps of a grid, and its integrals from each step's start."""
    value, total = unit_path(key, grid.unit, shape, dtype)
    unit = grid.unit[1:] - grid.unit[:-1]
    sizes = ArrayImpl(unit.astype(dtype)) if isinstance(unit, np.ndarray) else ops.convert_element_type(unit, dtype)
    sizes = shapes.reshape(sizes, (unit.shape[0], *[1] * len(shape)))
    areas = total[1:] - total[:-1] - sizes * value[:-1]
    scale = ops.sqrt(ops.convert_element_type(width, dtype))
    return scale * (value[1:] - value[:-1]), scale**3 * areas
