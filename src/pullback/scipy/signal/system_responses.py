"""Responses of linear systems at frequencies, with derivatives by the systems and the frequencies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import on_host
from pullback.scipy.signal.arguments import constant, of_scipy, positive_int, promoted, vector
from pullback.scipy.signal.linear_systems import StateSpace, TransferFunction, system_of
from pullback.scipy.signal.responses import freqs, freqs_zpk, freqz, freqz_zpk

__all__ = ["bode", "dbode", "dfreqresp", "freqresp"]


def _one_signal(name: str, system: Any) -> Any:
    if system.inputs != 1 or system.outputs != 1:
        raise ShapeError(f"{name} takes a system of one input and one output, got {system.inputs} and {system.outputs}")
    return system


def _by_states(system: StateSpace, at: Any) -> Any:
    """Return ``C (s - A)^-1 B + D`` at points, without eigenvalues, whose derivatives are infinite where some agree."""
    A, B, C, D = (x.astype(dtypes.to_complex(dtypes.to_real(x.dtype))) for x in system._arrays)
    at = at.astype(A.dtype)
    n = A.shape[0]
    if not n:
        return pnp.broadcast_to(D[0, 0], at.shape)
    solved = pnp.linalg.solve(at[:, None, None] * constant(np.eye(n), A.dtype) - A, B)
    return (C @ solved)[:, 0, 0] + D[0, 0]


def freqresp(system: Any, w: ArrayLike | None = None, n: int = 10000) -> tuple[Array, Array]:
    """Return the response of a linear system in continuous time at angular frequencies.

    Args:
      system: a system of one input and one output, see :class:`lti`; or its polynomials ``(num, den)``, its
        ``(zeros, poles, gain)``, or its matrices ``(A, B, C, D)``.
      w: the angular frequencies, a vector; by default some around the poles, of known systems.
      n: how many, without ``w``.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ArgumentError: a system in discrete time (a TypeError and a ValueError).
      ShapeError: several inputs or outputs (a TypeError and a ValueError).
      ConcretizationTypeError: a traced system without frequencies (a TypeError).

    >>> from pullback.scipy import signal
    >>> print(signal.freqresp(([1.0], [1.0, 1.0]), [0.0, 1.0])[1])
    [1. +0.j  0.5-0.5j]
    """
    return _freqresp("freqresp", system, w, n)


def _freqresp(name: str, system: Any, w: Any, n: Any) -> tuple[Any, Any]:
    found = _one_signal(name, system_of(name, system, False))
    chosen = positive_int(name, "n", n) if w is None else w
    if isinstance(found, TransferFunction):
        return freqs(pnp.ravel(found.num), found.den, chosen)
    if not isinstance(found, StateSpace):
        return freqs_zpk(found.zeros, found.poles, found.gain, chosen)
    real = dtypes.to_real(found.A.dtype)
    if w is None:
        values = on_host(*found._arrays)
        if values is None:
            raise ConcretizationTypeError(
                f"{name}: the frequencies are chosen by the poles, which are traced; pass the frequencies as w"
            )
        host = imported("scipy.signal")
        w = constant(of_scipy(name, lambda: host.freqresp(host.lti(*values), n=chosen)[0]), real)
    else:
        w = ops.convert_element_type(vector(name, w, "the frequencies w"), real)
    return w, _by_states(found, ops.complex(pnp.zeros_like(w), w))


def bode(system: Any, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
    """Return the magnitude and the phase of the response of a linear system in continuous time.

    Args:
      system, w, n: as for :func:`freqresp`.

    Returns:
      The angular frequencies, the magnitudes in decibels and the phases in degrees, without jumps.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`freqresp`.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(2) for v in signal.bode(([1.0], [1.0, 1.0]), [1.0])))
    [1.] [-3.01] [-45.]
    """
    at, y = _freqresp("bode", system, w, n)
    return at, *_in_decibels(y)


def _in_decibels(y: Any) -> tuple[Any, Any]:
    """Return the magnitudes in decibels and the phases in degrees of responses."""
    phase = pnp.unwrap(pnp.arctan2(ops.imag(y), ops.real(y)))
    return 20 * pnp.log10(pnp.abs(y)), phase * constant(180 / math.pi, phase.dtype)


def dfreqresp(
    system: Any, w: ArrayLike | None = None, n: int = 10000, whole: bool = False
) -> tuple[Array, Array]:  # fmt: skip
    """Return the response of a linear system in discrete time at frequencies.

    Args:
      system: a system of one input and one output, see :class:`dlti`; or a tuple of its arrays, as for
        :func:`freqresp`, and of its time step.
      w: the frequencies, a vector, in radians for each element; by default ``n`` of them at equal distances.
      n: how many, without ``w``.
      whole: whether they go to 2 pi, instead of pi.

    Returns:
      The frequencies, and the response at each, complex numbers.

    Raises:
      ArgumentError: a system in continuous time (a TypeError and a ValueError).
      ShapeError: several inputs or outputs (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.dfreqresp(([1.0], [1.0, -0.5], 0.1), [0.0])[1])
    [2.+0.j]
    """
    return _dfreqresp("dfreqresp", system_of("dfreqresp", system, True), w, n, whole)


def _dfreqresp(name: str, system: Any, w: Any, n: Any, whole: Any) -> tuple[Any, Any]:
    _one_signal(name, system)
    whole = flag(name, "whole", whole)
    chosen = positive_int(name, "n", n) if w is None else w
    if isinstance(system, TransferFunction):
        num, den = pnp.ravel(system.num), system.den
        size = max(num.shape[0], den.shape[0])
        num, den = (pnp.pad(v, (size - v.shape[0], 0)) for v in (num, den))
        return freqz(num, den, chosen, whole)
    if not isinstance(system, StateSpace):
        return freqz_zpk(system.zeros, system.poles, system.gain, chosen, whole)
    real = dtypes.to_real(system.A.dtype)
    if w is None:
        w = constant(np.linspace(0, 2 * math.pi if whole else math.pi, chosen, endpoint=False), real)
    else:
        w = ops.convert_element_type(vector(name, w, "the frequencies w"), real)
    return w, _by_states(system, pnp.exp(ops.complex(pnp.zeros_like(w), w)))


def dbode(system: Any, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
    """Return the magnitude and the phase of the response of a linear system in discrete time.

    Args:
      system, w, n: as for :func:`dfreqresp`.

    Returns:
      The frequencies in radians for each unit of time, ``w / dt``; the magnitudes in decibels and the phases in
      degrees, without jumps.

    Raises:
      ArgumentError, ShapeError: as for :func:`dfreqresp`.

    >>> from pullback.scipy import signal
    >>> print(*(v.round(2) for v in signal.dbode(([1.0], [1.0, -0.5], 0.1), [0.0])))
    [0.] [6.02] [0.]
    """
    found = system_of("dbode", system, True)
    at, y = _dfreqresp("dbode", found, w, n, False)
    if found.dt is not True:
        at, step = promoted("dbode", at, found.dt)
        at = at / step
    return at, *_in_decibels(y)
