"""Simulations of linear systems, with derivatives by the system, its inputs, its initial state and the times.

A step is a product of matrices, and the same at all times. Compiled it is the body of a loop. Eager the states at all
times are found by doubling: once those of one step after each input are known, those of two, four and eight steps are
(Hillis and Steele 1986, "Data parallel algorithms"; docs/decisions/994-states-by-doubling.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.linalg.matrix_functions import expm
from pullback.scipy.signal.arguments import constant, positive_int, promoted
from pullback.scipy.signal.linear_systems import StateSpace, system_of
from pullback.scipy.signal.state_space import held, interpolated

__all__ = ["dimpulse", "dlsim", "dstep", "impulse", "lsim", "step"]


def _states(power: Any, first: Any, forces: Any) -> Any:
    """Return the states ``x[0] = first`` and ``x[i+1] = power @ x[i] + forces[i]``, (times, n)."""
    if known(power) is None or known(forces) is None:
        rest = scan(lambda x, force: (power @ x + force,) * 2, first, forces)[1]
        return pnp.concatenate([first[None], rest])
    x = pnp.concatenate([first[None], forces])
    count, shift, turned = x.shape[0], 1, power.T
    while shift < count:
        x = pnp.concatenate([x[:shift], x[shift:] + x[:-shift] @ turned])
        shift *= 2
        if shift < count:
            turned = turned @ turned
    return x


def _initial(name: str, what: str, x: Any, count: int, dtype: Any) -> Any:
    """Return an initial state: a vector, or a number for all elements; zeros for None."""
    if x is None:
        return pnp.zeros(count, dtype)
    x = pnp.ravel(x)
    if x.shape[0] not in (1, count):
        raise ShapeError(f"{name}: the initial state {what} must have {count} elements, got {x.shape[0]}")
    return pnp.broadcast_to(x, (count,))


def _columns(name: str, what: str, u: Any, inputs: int, count: int | None) -> Any:
    """Return inputs as a matrix of a row for each time."""
    u = u[:, None] if len(pnp.atleast_1d(u).shape) == 1 and u.shape else pnp.reshape(u, (1, 1)) if not u.shape else u
    wanted = (u.shape[0] if count is None else count, inputs)
    if u.shape != wanted:
        raise ShapeError(f"{name}: the inputs {what} must have shape {wanted}, (times, inputs), got {u.shape}")
    return u


# Continuous time -----------------------------------------------------------------------------------------------------


def _times(name: str, T: Any) -> Any:
    """Return times as a vector of real numbers, at equal distances if they are known."""
    T = pnp.atleast_1d(promoted(name, T)[0])
    if len(T.shape) != 1 or not T.shape[0]:
        raise ShapeError(f"{name}: the times T must be a non-empty vector, got shape {T.shape}")
    if dtypes.is_complex(T.dtype):
        raise ArgumentError(f"{name}: the times T must be real numbers, got {dtypes.short_name(T.dtype)}")
    values = known(T)
    if values is not None:
        if not values[0] >= 0:
            raise ArgumentError(f"{name}: the first of the times T must not be negative, got {values[0]}")
        steps = np.diff(values.astype(np.float64))
        rounding = 4 * float(np.finfo(values.dtype).eps) * np.abs(values).max()
        if len(steps) and not np.allclose(steps, steps[0], atol=1e-8 + rounding):
            raise ArgumentError(f"{name}: the times T must be at equal distances, got {values}")
    return T


def _real_inputs(U: Any) -> bool:
    """Whether inputs are more than the number zero."""
    return not (U is None or (isinstance(U, (int, float)) and U == 0))


def lsim(
    system: Any, U: ArrayLike | None, T: ArrayLike, X0: ArrayLike | None = None, interp: bool = True
) -> tuple[Array, Array, Array]:
    """Simulate a linear system in continuous time.

    Args:
      system: a system, see :class:`lti`; or its polynomials ``(num, den)``, its ``(zeros, poles, gain)``, or its
        matrices ``(A, B, C, D)``.
      U: the inputs, a vector, or an array (times, inputs); None or 0 for none.
      T: the times, a vector at equal distances, the first of them not negative.
      X0: the state at time 0, a vector; zeros by default.
      interp: whether inputs are linear between times, or constant from each time on.

    Returns:
      The times, the outputs (times, outputs), and the states (times, n); the last two without axes of size 1.

    Raises:
      ArgumentError: a system in discrete time, times that are negative or at unequal distances (a TypeError and a
        ValueError).
      ShapeError: arrays that do not fit (a TypeError and a ValueError).

    Source: Van Loan 1978, "Computing integrals involving the matrix exponential", for inputs within a step.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> T, y, x = signal.lsim(([1.0], [1.0, 1.0]), [0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    >>> print(y.round(3))
    [0.    0.368 1.135]
    """
    return _lsim("lsim", system_of("lsim", system, False).to_ss(), U, T, X0, interp)


def _lsim(name: str, system: StateSpace, U: Any, T: Any, X0: Any, interp: bool) -> tuple[Any, Any, Any]:
    there = _real_inputs(U)
    given = [v for v, used in ((U, there), (X0, X0 is not None)) if used]
    T = _times(name, T)
    A, B, C, D, moments, *given = promoted(name, *system._arrays, T, *given)
    n, count = A.shape[0], T.shape[0]
    U = _columns(name, "U", given.pop(0), B.shape[1], count) if there else None
    start = _initial(name, "X0", given[0] if given else None, n, A.dtype)
    moments = moments.real.astype(A.dtype)
    # Times that begin at zero, as most do, need no exponential, which would make the state at time zero inexact.
    values = on_host(T)
    if values is None or values[0][0] != 0:
        start = expm(A * moments[0]) @ start
    if count == 1:
        x = start[None]
    else:
        # All times together are more exact than the first two.
        step = (moments[-1] - moments[0]) / (count - 1)
        if U is None:
            power, forces = expm(A * step), pnp.zeros((count - 1, n), A.dtype)
        elif interp:
            power, before, after = interpolated(A, B, step)
            forces = U[:-1] @ before.T + U[1:] @ after.T
        else:
            power, before = held(A, B, step)
            forces = U[:-1] @ before.T
        x = _states(power, start, forces)
    y = pnp.squeeze(x @ C.T)
    return T, y if U is None else y + pnp.squeeze(U @ D.T), pnp.squeeze(x)


def _response_times(name: str, system: StateSpace, T: Any, N: Any) -> Any:
    """Return given times, or some from zero to seven times the time of the slowest decay."""
    if T is not None:
        return T
    count = 100 if N is None else positive_int(name, "N", N)
    slowest = pnp.min(pnp.abs(ops.real(pnp.linalg.eigvals(system.A)))) if system.A.shape[0] else pnp.ones(())
    decays = slowest != 0
    last = 7 / pnp.where(decays, pnp.where(decays, slowest, 1), 1)
    return last * constant(np.linspace(0, 1, count), last.dtype)


def impulse(
    system: Any, X0: ArrayLike | None = None, T: ArrayLike | None = None, N: int | None = None
) -> tuple[Array, Array]:
    """Return the response of a linear system in continuous time to an impulse.

    Args:
      system: a system of one input, or a tuple of its arrays, as for :func:`lsim`.
      X0: the state before the impulse, a vector; zeros by default.
      T: the times, as for :func:`lsim`; by default from 0 to seven times the time of the slowest decay.
      N: how many times, without ``T``; 100 by default.

    Returns:
      The times, and the outputs (times, outputs), without axes of size 1.

    Raises:
      ArgumentError, ShapeError: as for :func:`lsim`; a system of several inputs.

    >>> from pullback.scipy import signal
    >>> print(signal.impulse(([1.0], [1.0, 1.0]), T=[0.0, 1.0])[1].round(3))
    [1.    0.368]
    """
    states = system_of("impulse", system, False).to_ss()
    if states.inputs != 1:
        raise ShapeError(f"impulse takes a system of one input, got {states.inputs}")
    T = _response_times("impulse", states, T, N)
    B = states.B[:, 0]
    if X0 is not None:
        B, X0 = promoted("impulse", B, X0)
        B = B + _initial("impulse", "X0", X0, B.shape[0], B.dtype)
    return _lsim("impulse", states, None, T, B, False)[:2]


def step(
    system: Any, X0: ArrayLike | None = None, T: ArrayLike | None = None, N: int | None = None
) -> tuple[Array, Array]:
    """Return the response of a linear system in continuous time to a step: an input of 1 from time 0 on.

    Args:
      system: a system of one input, or a tuple of its arrays, as for :func:`lsim`.
      X0: the state at time 0, a vector; zeros by default.
      T, N: the times, or how many, as for :func:`impulse`.

    Returns:
      The times, and the outputs (times, outputs), without axes of size 1.

    Raises:
      ArgumentError, ShapeError: as for :func:`lsim`.

    >>> from pullback.scipy import signal
    >>> print(signal.step(([1.0], [1.0, 1.0]), T=[0.0, 1.0])[1].round(3))
    [0.    0.632]
    """
    states = system_of("step", system, False).to_ss()
    T = pnp.atleast_1d(promoted("step", _response_times("step", states, T, N))[0])
    return _lsim("step", states, pnp.ones(T.shape, states.A.dtype), T, X0, False)[:2]


# Discrete time -------------------------------------------------------------------------------------------------------


def dlsim(
    system: Any, u: ArrayLike, t: ArrayLike | None = None, x0: ArrayLike | None = None
) -> tuple[Array, ...]:  # fmt: skip
    """Simulate a linear system in discrete time.

    Args:
      system: a system, see :class:`dlti`; or a tuple of its arrays, as for :func:`lsim`, and of its time step.
      u: the inputs, a vector, or an array (times, inputs).
      t: the times of the inputs, an increasing vector, if they are other ones than those of the system; then inputs
        are linear between them. The last of them and the time step must be known.
      x0: the state at time 0, a vector; zeros by default.

    Returns:
      The times and the outputs (times, outputs); of a :class:`StateSpace` also the states (times, n).

    Raises:
      ArgumentError: a system in continuous time (a TypeError and a ValueError).
      ShapeError: arrays that do not fit (a TypeError and a ValueError).
      ConcretizationTypeError: a traced last time, or time step (a TypeError).

    >>> from pullback.scipy import signal
    >>> t, y = signal.dlsim(([1.0], [1.0, -0.5], 0.1), [1.0, 0.0, 0.0])
    >>> print(y.ravel())
    [0.  1.  0.5]
    """
    given = system_of("dlsim", system, True)
    out = _dlsim("dlsim", given.to_ss(), u, t, x0)
    return out if isinstance(given, StateSpace) else out[:2]


def _count(name: str, stop: Any, dt: Any) -> int:
    """Return how many time steps there are until ``stop``, one at time 0; rounding does not count."""
    values = known(stop), known(pnp.asarray(dt))
    if values[0] is None or values[1] is None:
        raise ConcretizationTypeError(
            f"{name}: the number of time steps depends on the last of the times t and on dt, which are traced; pass "
            "inputs at the times of the system, and t=None"
        )
    steps = float(values[0]) / float(values[1])
    if not 0 <= steps < math.inf:
        raise ArgumentError(f"{name}: the last of the times t must not be negative, got {values[0]}")
    return math.floor(steps * (1 + 4 * float(np.finfo(stop.dtype).eps))) + 1


def _dlsim(name: str, system: StateSpace, u: Any, t: Any, x0: Any) -> tuple[Any, Any, Any]:
    step = 1.0 if system.dt is True else system.dt
    A, B, C, D, u, *given = promoted(name, *system._arrays, u, *(() if x0 is None else (x0,)))
    u = _columns(name, "u", u, B.shape[1], None)
    if t is None:
        (step,) = promoted(name, step)
        times = step * constant(np.arange(u.shape[0]), step.dtype)
    else:
        t = pnp.atleast_1d(promoted(name, t)[0])
        if t.shape != u.shape[:1] or t.shape[0] < 2:
            raise ShapeError(
                f"{name}: the times t must be a vector of one element for each input, at least 2, got shape {t.shape} "
                f"for {u.shape[0]}"
            )
        count = _count(name, t[-1], step)
        times = t[-1] * constant(np.linspace(0, 1, count), t.dtype)
        u = imported("pullback.scipy.interpolate").interp1d(t, u, axis=0, fill_value="extrapolate")(times)
        u = u.astype(A.dtype)
    start = _initial(name, "x0", given[0] if given else None, A.shape[0], A.dtype)
    x = _states(A, start, u[:-1] @ B.T)
    return times, x @ C.T + u @ D.T, x


def _to_each_input(name: str, system: Any, x0: Any, t: Any, n: Any, always: bool) -> tuple[Any, tuple[Any, ...]]:
    states = system_of(name, system, True).to_ss()
    count = (100 if n is None else positive_int(name, "n", n)) if t is None else np.size(t)
    outputs = []
    for i in range(states.inputs):
        u = np.zeros((count, states.inputs))
        u[: count if always else 1, i] = 1
        times, y, _ = _dlsim(name, states, constant(u, states.A.dtype), t, x0)
        outputs.append(y)
    return times, tuple(outputs)


def dimpulse(
    system: Any, x0: ArrayLike | None = None, t: ArrayLike | None = None, n: int | None = None
) -> tuple[Array, tuple[Array, ...]]:
    """Return the responses of a linear system in discrete time to impulses: an input of 1 at time 0.

    Args:
      system: a system, or a tuple of its arrays and its time step, as for :func:`dlsim`.
      x0: the state at time 0, a vector; zeros by default.
      t: the times, as for :func:`dlsim`; by default those of the system.
      n: how many times, without ``t``; 100 by default.

    Returns:
      The times, and a tuple of the outputs (times, outputs) for each input.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`dlsim`.

    >>> from pullback.scipy import signal
    >>> print(signal.dimpulse(([1.0], [1.0, -0.5], 0.1), n=3)[1][0].ravel())
    [0.  1.  0.5]
    """
    return _to_each_input("dimpulse", system, x0, t, n, False)


def dstep(
    system: Any, x0: ArrayLike | None = None, t: ArrayLike | None = None, n: int | None = None
) -> tuple[Array, tuple[Array, ...]]:
    """Return the responses of a linear system in discrete time to steps: an input of 1 from time 0 on.

    Args:
      system, x0, t, n: as for :func:`dimpulse`.

    Returns:
      The times, and a tuple of the outputs (times, outputs) for each input.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`dlsim`.

    >>> from pullback.scipy import signal
    >>> print(signal.dstep(([1.0], [1.0, -0.5], 0.1), n=3)[1][0].ravel())
    [0.  1.  1.5]
    """
    return _to_each_input("dstep", system, x0, t, n, True)
