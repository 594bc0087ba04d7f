"""Feedback that moves the poles of a linear system to wanted places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, of_scipy, promoted, vector
from pullback.scipy.signal.representations import polynomial

__all__ = ["place_poles"]


class PolePlacement(NamedTuple):
    """The result of :func:`place_poles`."""

    gain_matrix: Array
    """The matrix K (inputs, n) of the feedback ``u = -K x``."""
    computed_poles: Array
    """The eigenvalues of ``A - B K``, complex numbers."""
    requested_poles: Array
    """The wanted poles: real ones in increasing order, then pairs of complex ones."""
    X: Array
    """Eigenvectors of ``A - B K`` as columns, of norm 1 and any sign."""
    rtol: Array
    """The last relative change of the determinant of ``X``; 0 or NaN if nothing was iterated."""
    nb_iter: Array
    """The number of iterations; 0 or NaN if nothing was iterated."""


def place_poles(
    A: ArrayLike, B: ArrayLike, poles: ArrayLike, method: str = "YT", rtol: float = 0.001, maxiter: int = 30
) -> PolePlacement:
    """Return the feedback ``u = -K x`` for which ``x' = A x + B u`` has wanted poles.

    Known systems are SciPy's. For one input the feedback is unique, and has derivatives by the system and by the poles;
    for several inputs the iterative methods have none.

    Args:
      A, B: the matrices (n, n) and (n, inputs) of the system, real numbers.
      poles: n wanted poles, complex ones in conjugate pairs.
      method: ``"YT"`` for the method of Tits and Yang, or ``"KNV0"`` for that of Kautsky, Nichols and Van Dooren, which
        takes real poles alone.
      rtol: the relative change of the determinant of the eigenvectors at which iterations end, at most 1.
      maxiter: the largest number of iterations.

    Returns:
      A tuple with the fields ``gain_matrix``, ``computed_poles``, ``requested_poles``, ``X``, ``rtol`` and ``nb_iter``.

    Raises:
      ShapeError: matrices or poles that do not fit (a TypeError and a ValueError).
      ArgumentError: poles that cannot be placed, or parameters that make no sense (a TypeError and a ValueError).
      UnsupportedArgumentError: a traced or differentiated system of several inputs (a NotImplementedError).

    Source: Tits and Yang 1996, "Globally convergent algorithms for robust pole assignment by state feedback"; Ackermann
    1972, "Der Entwurf linearer Regelungssysteme im Zustandsraum", for one input.

    >>> from pullback.scipy import signal
    >>> found = signal.place_poles([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [-1.0, -2.0])
    >>> print(found.gain_matrix.round(3))
    [[2. 3.]]
    """
    name = "place_poles"
    a, b, wanted = _checked(name, A, B, poles)
    if not isinstance(method, str) or method not in ("YT", "KNV0"):
        raise ArgumentError(f"{name}: method must be 'YT' or 'KNV0', got {quote(method)}")
    count = known_int(name, "maxiter", maxiter)
    real = a.dtype
    wide = dtypes.to_complex(real)
    found = on_host(a, b, wanted)
    if found is not None:
        double = [x.astype(np.result_type(x, np.float64)) for x in found]
        host = imported("scipy.signal")
        out = of_scipy(name, lambda: host.place_poles(*double, method=method, rtol=rtol, maxiter=count))
        of = lambda field, dtype: constant(getattr(out, field), dtype)
        return PolePlacement(
            of("gain_matrix", real), of("computed_poles", wide), of("requested_poles", wide), of("X", wide),
            of("rtol", real), of("nb_iter", real),
        )  # fmt: skip
    if b.shape[1] != 1:
        raise UnsupportedArgumentError(
            f"{name}: a system of {b.shape[1]} inputs is placed by iterations on the host, which have no derivatives "
            "and take no traced arrays; pass known arrays, or a system of one input"
        )
    wanted = _in_order(wanted.astype(wide))
    gain = _of_one_input(a, b, wanted)
    computed, vectors = pnp.linalg.eig(a - b @ gain)
    nearest = pnp.argmin(pnp.abs(wanted[:, None] - computed[None]), 1)
    none = constant(0, real)
    return PolePlacement(gain, computed[nearest], wanted, vectors[:, nearest], none, none)


def _in_order(poles: Any) -> Any:
    """Return poles with real ones first, in increasing order, then pairs, if they are known."""
    values = known(poles)
    if values is None:
        return poles
    rows = sorted(range(len(values)), key=lambda i: (values[i].imag != 0, values[i].real, abs(values[i].imag)))
    return poles[np.array(rows)]


def _checked(name: str, A: Any, B: Any, poles: Any) -> tuple[Any, Any, Any]:
    poles = vector(name, poles, "the poles")
    A, B = promoted(name, A, B)
    n = A.shape[0] if A.shape else 0
    if len(A.shape) != 2 or A.shape != (n, n) or len(B.shape) != 2 or B.shape[0] != n or poles.shape != (n,) or not n:
        raise ShapeError(
            f"{name}: A, B and poles must have shapes (n, n), (n, inputs) and (n,), got {A.shape}, {B.shape} and "
            f"{poles.shape}"
        )
    if dtypes.is_complex(A.dtype):
        raise ArgumentError(f"{name}: A and B must be real numbers, got {dtypes.short_name(A.dtype)}")
    return A, B, poles


def _of_one_input(A: Any, B: Any, poles: Any) -> Any:
    """Return the last row of the inverse of ``[B, A B, A² B, ...]`` times the wanted polynomial of ``A``."""
    n = A.shape[0]
    columns, value = [B], constant(np.eye(n), A.dtype)
    for _ in range(n - 1):
        columns.append(A @ columns[-1])
    for tap in ops.real(polynomial(poles))[1:]:
        value = A @ value + tap * constant(np.eye(n), A.dtype)
    last = pnp.linalg.solve(pnp.concatenate(columns, 1).T, constant(np.eye(n)[-1], A.dtype))
    return (last @ value)[None]
