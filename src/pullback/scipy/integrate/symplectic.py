"""Hamiltonian equations by symmetric compositions of leapfrog steps, whose backward pass needs no saved states.

Sources: Hairer, Lubich and Wanner 2006, *Geometric Numerical Integration*, sections I.1.4 (leapfrog) and V.3.2
(symmetric compositions); Yoshida 1990, *Construction of higher order symplectic integrators*, Physics Letters A 150,
for the orders 4 and 6; Suzuki and Umeno 1993 for order 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.fori_loop import fori_loop
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed, quote, require_function
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.numpy.promotion import known_int
from pullback.primitives import elementwise as ops
from pullback.scipy.integrate.grids import fitting, number_of_steps, span_of, state_of, with_arguments
from pullback.transforms.autodiff.grad import grad, vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.custom.closure import without_tracers
from pullback.transforms.custom.custom_rules import custom_vjp

__all__ = ["PhaseTrajectory", "solve_hamiltonian", "solve_symplectic"]


class PhaseTrajectory(NamedTuple):
    """The solution of a Hamiltonian equation at several times.

    Attributes:
      t: the times, a vector.
      q: the positions, of the shape of the first one with a last axis for times.
      p: the momenta, or velocities, likewise.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.integrate import solve_symplectic
    >>> path = solve_symplectic(lambda t, q: -q, (0.0, 1.0), jnp.ones(1), jnp.zeros(1), steps=4)
    >>> print(path.t, path.q.shape)
    [0.   0.25 0.5  0.75 1.  ] (1, 5)
    """

    t: Array
    q: Array
    p: Array


# The methods: sizes of leapfrog steps, as fractions of a step. They are symmetric, and their sum is 1. ---------------

_CUBE_ROOT = 2.0 ** (1 / 3)
_FIRST_HALVES = {
    "leapfrog": (),
    "yoshida4": (1 / (2 - _CUBE_ROOT),),
    "yoshida6": (0.78451361047755726381949763, 0.23557321335935813368479318, -1.17767998417887100694641568),
    "yoshida8": (
        0.74167036435061295344822780, -0.40910082580003159399730010, 0.19075471029623837995387626,
        -0.57386247111608226665638773, 0.29906418130365592384446354, 0.33462491824529818378495798,
        0.31529309239676659663205666,
    ),
}  # fmt: skip


def _fractions(method: str) -> tuple[float, ...]:
    """Return the sizes of the leapfrog steps of a method."""
    half = _FIRST_HALVES[method]
    return (*half, 1.0 - 2.0 * sum(half), *reversed(half))


class _Shears(NamedTuple):
    """A step as shears: kicks of the momentum by the force, and drifts of the position by the velocity.

    Attributes:
      kick, drift: from time, position (momentum) and parameters to the derivative of the other.
      fractions: the sizes of the leapfrog steps.
      every: the number of steps from one result to the next.
      results: the number of results after the first.
    """

    kick: Callable[..., Any]
    drift: Callable[..., Any]
    fractions: tuple[float, ...]
    every: int
    results: int


def _parts(shears: _Shears) -> list[tuple[bool, float, float]]:
    """Return the shears of a step: whether it is a kick, its size, and its time after the start, as fractions."""
    parts: list[tuple[bool, float, float]] = []
    at = 0.0
    for fraction in shears.fractions:
        if parts:  # the kick that ends a leapfrog step and the one that begins the next are one
            parts[-1] = (True, parts[-1][1] + 0.5 * fraction, at)
        else:
            parts.append((True, 0.5 * fraction, at))
        parts.append((False, fraction, at + 0.5 * fraction))
        at += fraction
        parts.append((True, 0.5 * fraction, at))
    return parts


def _sheared(shears: _Shears, part: tuple[bool, float, float], h: Any, t: Any, state: Any, params: Any) -> Any:
    """Apply a shear; with ``h`` negative, and ``t`` the same start of the step, undo it."""
    (kicks, size, after), (q, p), (start, step) = part, state, t
    time = start + after * step
    amount = ops.convert_element_type(size * h, dtypes.to_real(q.dtype))
    if kicks:
        return q, p + amount * shears.kick(time, q, params)
    return q + amount * shears.drift(time, p, params), p


def _forward(shears: _Shears, index: Any, start: Any, h: Any, state: Any, params: Any) -> Any:
    """Return the state after the step of a number."""
    t = start + h * ops.convert_element_type(index, h.dtype), h
    for part in _parts(shears):
        state = _sheared(shears, part, h, t, state, params)
    return state


def _solved(shears: _Shears, start: Any, h: Any, state: Any, params: Any) -> Any:
    """Return the states after each ``every`` steps, with a leading axis."""

    def results(state: Any, row: Any) -> Any:
        first = row * shears.every
        step = lambda j, state: _forward(shears, first + j, start, h, state, params)
        state = step(0, state) if shears.every == 1 else fori_loop(0, shears.every, step, state)
        return state, state

    return scan(results, state, ArrayImpl(np.arange(shears.results, dtype=np.int32)))[1]


_solution = custom_vjp(_solved, nondiff_argnums=(0,))


def _solution_jvp(shears: _Shears, primals: Any, tangents: Any) -> Any:
    return jvp(lambda *operands: _solved(shears, *operands), primals, tangents)


def _solution_fwd(shears: _Shears, start: Any, h: Any, state: Any, params: Any) -> Any:
    results = _solution(shears, start, h, state, params)
    last = tuple(x[-1] for x in results)
    return results, (start, h, last, params)


def _solution_bwd(shears: _Shears, residuals: Any, cts: Any) -> Any:
    """Go back through the steps: undo each shear, and transpose its derivative at the state before it."""
    start, h, last, params = residuals

    def back(index: Any, carry: Any) -> Any:
        state, ct, (of_start, of_h, of_params) = carry
        for part in reversed(_parts(shears)):
            t = start + h * ops.convert_element_type(index, h.dtype), h
            state = _sheared(shears, part, -h, t, state, params)

            def again(start: Any, h: Any, state: Any, params: Any, part: Any = part) -> Any:
                t = start + h * ops.convert_element_type(index, h.dtype), h
                return _sheared(shears, part, h, t, state, params)

            s, size, ct, more = vjp(again, start, h, state, params)[1](ct)
            of_start, of_h = of_start + s, of_h + size
            of_params = [x if x is None else x + y for x, y in zip(of_params, more, strict=True)]
        return state, ct, (of_start, of_h, of_params)

    def results(carry: Any, now: Any) -> Any:
        row, new = now
        state, ct, sums = carry
        ct = tuple(x + y for x, y in zip(ct, new, strict=True))
        last = (row + 1) * shears.every - 1
        carry = state, ct, sums
        if shears.every == 1:
            return back(last, carry), None
        return fori_loop(0, shears.every, lambda j, carry: back(last - j, carry), carry), None

    of_params = [pnp.zeros_like(x) if dtypes.is_inexact(x.dtype) else None for x in params]
    zeros = pnp.zeros_like(start), pnp.zeros_like(h), of_params
    carry = last, tuple(pnp.zeros_like(x) for x in last), zeros
    rows = ArrayImpl(np.arange(shears.results, dtype=np.int32))
    (_, ct, (of_start, of_h, of_params)), _ = scan(results, carry, (rows, cts), reverse=True)
    return of_start, of_h, ct, of_params


_solution.defjvp(_solution_jvp)
_solution.defvjp(_solution_fwd, _solution_bwd)


# The functions -------------------------------------------------------------------------------------------------------


def _solve(
    name: str, make: Callable[..., tuple[Any, Any]], t_span: Any, q: Any, p: Any, method: Any, steps: Any, dt: Any,
    every: Any,
) -> PhaseTrajectory:  # fmt: skip
    """Check the arguments, and solve.

    Args:
      name: the public function, for errors.
      make: from example time, position and momentum to the functions of kicks and of drifts.
      t_span, q, p, method, steps, dt, every: the arguments of the public functions.
    """
    if not is_listed(method, _FIRST_HALVES):
        raise ArgumentError(f"{name}: method must be one of {', '.join(map(repr, _FIRST_HALVES))}, got {quote(method)}")
    q, p = state_of(name, "the position", q), state_of(name, "the momentum", p)
    if q.shape != p.shape:
        raise ShapeError(f"{name}: position and momentum must have one shape, got {q.shape} and {p.shape}")
    dtype = dtypes.common_dtype(q.dtype, p.dtype)
    if dtypes.is_complex(dtype):
        raise DtypeError(f"{name}: position and momentum must be real, got complex ones")
    q, p = ops.convert_element_type(q, dtype), ops.convert_element_type(p, dtype)
    start, stop = span_of(name, t_span, dtype)
    total = number_of_steps(name, start, stop, steps, dt)
    between = known_int(name, "every", every)
    if between < 1 or total % between:
        raise ArgumentError(f"{name}: every must divide the number of steps, {total}, got {between}")
    h = (stop - start) / total
    kick, drift = make(start, q, p)
    kick, kick_params = without_tracers(kick, start, q)
    drift, drift_params = without_tracers(drift, start, p)
    count = len(kick_params)
    shears = _Shears(
        lambda t, q, params: kick(t, q, *params[:count]), lambda t, p, params: drift(t, p, *params[count:]),
        _fractions(method), between, total // between,
    )  # fmt: skip
    states = _solution(shears, start, h, (q, p), [*kick_params, *drift_params])
    whole = [pnp.moveaxis(pnp.concatenate([x[None], xs]), 0, -1) for x, xs in zip((q, p), states, strict=True)]
    fractions = np.arange(total // between + 1) * (between / total)
    times = start + (stop - start) * ArrayImpl(fractions.astype(start.dtype))
    return PhaseTrajectory(times, whole[0], whole[1])


# long: most of it is documentation
def solve_symplectic(
    acceleration: Callable[..., Any],
    t_span: tuple[ArrayLike, ArrayLike],
    y0: ArrayLike,
    v0: ArrayLike,
    *,
    method: str = "leapfrog",
    steps: int | None = None,
    dt: float | None = None,
    every: int = 1,
    args: tuple[PyTree, ...] = (),
) -> PhaseTrajectory:
    """Solve an equation of second order ``y'' = acceleration(t, y)`` by a symplectic method.

    The energy of a conservative system stays near its value for very many steps. The backward pass goes back through
    the steps and undoes them, so that its memory does not depend on their number; states of chaotic systems are then
    recovered only as far as rounding allows. There are derivatives with respect to ``y0``, ``v0``, ``t_span``, ``args``
    and values that the function closes over, in both modes and to any order.

    Args:
      acceleration: ``acceleration(t, y, *args)``, an array of the shape of ``y``.
      t_span: the first and the last time, which may be the earlier one.
      y0, v0: the position and the velocity at the first time, real arrays of one shape.
      method: ``"leapfrog"`` (velocity Verlet, of order 2), or a composition of leapfrog steps: ``"yoshida4"`` of 3,
        ``"yoshida6"`` of 7, ``"yoshida8"`` of 15.
      steps: the number of equal steps.
      dt: their size, instead of ``steps``.
      every: the number of steps from one time of the result to the next, which divides ``steps``.
      args: further arguments of the function, in a tuple.

    Returns:
      A :class:`PhaseTrajectory`: times ``t``, positions ``q`` and velocities ``p``, whose last axis is that of times.

    Raises:
      ArgumentError: an unknown method, or ``every`` does not divide the steps (a TypeError and a ValueError).
      ShapeError: position, velocity and acceleration have different shapes (a TypeError and a ValueError).
      DtypeError: complex numbers (a TypeError).

    Source: Hairer, Lubich and Wanner 2006, *Geometric Numerical Integration*, sections I.1.4 and V.3.2.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.integrate import solve_symplectic
    >>> def final(stiffness):
    ...     spring = lambda t, y: -stiffness * y
    ...     return solve_symplectic(spring, (0.0, jnp.pi), 1.0, 0.0, method="yoshida4", steps=40).q[-1]
    >>> print(final(1.0).round(3), abs(grad(final)(1.0)) < 1e-3)
    -1.0 True
    """
    require_function("solve_symplectic", "acceleration", acceleration)
    rate = with_arguments(acceleration, args)

    def make(start: Any, q: Any, p: Any) -> tuple[Any, Any]:
        kick = lambda t, q: fitting("solve_symplectic", "acceleration", rate(t, q), q.shape, q.dtype)
        return kick, lambda t, p: p

    return _solve("solve_symplectic", make, t_span, y0, v0, method, steps, dt, every)


def solve_hamiltonian(
    kinetic: Callable[..., Any],
    potential: Callable[..., Any],
    t_span: tuple[ArrayLike, ArrayLike],
    q0: ArrayLike,
    p0: ArrayLike,
    *,
    method: str = "leapfrog",
    steps: int | None = None,
    dt: float | None = None,
    every: int = 1,
    args: tuple[PyTree, ...] = (),
) -> PhaseTrajectory:
    """Solve Hamilton's equations for the energy ``kinetic(p) + potential(q)`` by a symplectic method.

    It does what :func:`solve_symplectic` does, for the forces and velocities that are the gradients of the energies.

    Args:
      kinetic: ``kinetic(p, *args)``, a number.
      potential: ``potential(q, *args)``, a number.
      t_span: the first and the last time.
      q0, p0: the position and the momentum at the first time, real arrays of one shape.
      method, steps, dt, every: as for :func:`solve_symplectic`.
      args: further arguments of both functions, in a tuple.

    Returns:
      A :class:`PhaseTrajectory`: times ``t``, positions ``q`` and momenta ``p``, whose last axis is that of times.

    Raises:
      ArgumentError: an unknown method, or ``every`` does not divide the steps (a TypeError and a ValueError).
      ShapeError: position and momentum have different shapes (a TypeError and a ValueError).
      DtypeError: complex numbers (a TypeError).

    Source: Hairer, Lubich and Wanner 2006, *Geometric Numerical Integration*, sections I.1.4 and V.3.2.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.integrate import solve_hamiltonian
    >>> path = solve_hamiltonian(lambda p: p**2 / 2, lambda q: -jnp.cos(q), (0.0, 50.0), 1.0, 0.0, steps=1000)
    >>> energy = path.p**2 / 2 - jnp.cos(path.q)
    >>> bool(abs(energy - energy[0]).max() < 1e-3)
    True
    """
    for what, function in (("kinetic", kinetic), ("potential", potential)):
        require_function("solve_hamiltonian", what, function)
    speed, force = grad(with_arguments(kinetic, args)), grad(with_arguments(potential, args))

    def make(start: Any, q: Any, p: Any) -> tuple[Any, Any]:
        return (lambda t, q: -force(q)), (lambda t, p: speed(p))

    return _solve("solve_hamiltonian", make, t_span, q0, p0, method, steps, dt, every)
