"""Linear systems as matrices: from polynomials and roots to states and back, and from continuous to discrete time."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.scipy.arguments import known, on_host
from pullback.scipy.linalg.matrix_functions import expm
from pullback.scipy.linalg.special_matrices import block_diag
from pullback.scipy.signal.arguments import constant, of_scipy, promoted, vector
from pullback.scipy.signal.representations import polynomials_of, tf2zpk

__all__ = ["abcd_normalize", "cont2discrete", "normalize", "ss2tf", "ss2zpk", "tf2ss", "zpk2ss"]

_NEGLIGIBLE = 1e-14
"""Coefficients of a numerator up to this size, beside a leading coefficient of 1, count as zero, as in SciPy."""

# Fractions of polynomials --------------------------------------------------------------------------------------------


def _rows(name: str, b: Any) -> Any:
    """Return the numerators of a system as a matrix, a row for each output."""
    (b,) = promoted(name, b)
    if len(b.shape) > 2 or 0 in b.shape:
        raise ShapeError(f"{name}: the numerator must be a non-empty vector or matrix, got shape {b.shape}")
    return pnp.atleast_2d(b)


def _fraction(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    """Return numerators, a matrix, and a denominator with leading coefficient 1; zeros before it are left out."""
    b, a = promoted(name, _rows(name, b), vector(name, a, "the denominator"))
    values = known(a)
    if values is not None:
        if not values.any():
            raise ArgumentError(f"{name}: the denominator must have a coefficient that is not zero, got {values}")
        a = a[int(np.flatnonzero(values)[0]) :]
    return b / a[0], pnp.concatenate([pnp.ones(1, a.dtype), a[1:] / a[0]])


def _leading_zeros(b: Any) -> int:
    """Return how many columns of numerators begin with zero, where they are known; at least one column is left."""
    values = known(b)
    if values is None:
        return 0
    there = (np.abs(values) > _NEGLIGIBLE).any(0)
    return int(np.argmax(there)) if there.any() else len(there) - 1


def normalize(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Return the polynomials of a filter, divided so that the denominator begins with 1.

    Args:
      b: the coefficients of the numerator, a vector, or a matrix of a row for each output, the highest power first.
      a: the coefficients of the denominator, a vector.

    Returns:
      The numerator and the denominator. Zeros at the beginning of known coefficients are left out, also numbers up to
      1e-14 in the numerator; traced coefficients must not begin with zero.

    Raises:
      ShapeError: coefficients that are no vectors or are empty (a TypeError and a ValueError).
      ArgumentError: a denominator of zeros (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.normalize([2.0, 4.0], [0.0, 2.0, 1.0]))
    [1. 2.] [1.  0.5]
    """
    rows, taps = _fraction("normalize", b, a)
    rows = rows[:, _leading_zeros(rows) :]
    return rows[0] if rows.shape[0] == 1 else rows, taps


def tf2ss(num: ArrayLike, den: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Return the matrices of a linear system of its polynomials, in controller canonical form.

    Args:
      num: the coefficients of the numerator, a vector, or a matrix of a row for each output, the highest power first.
      den: the coefficients of the denominator, a vector, at least as long. Traced ones must not begin with zero.

    Returns:
      The matrices A (n, n), B (n, 1), C (outputs, n) and D (outputs, 1): ``x' = A x + B u``, ``y = C x + D u``.

    Raises:
      ShapeError: coefficients that are no vectors or are empty (a TypeError and a ValueError).
      ArgumentError: a denominator of zeros, or a numerator that is longer (a TypeError and a ValueError).

    Source: Kailath 1980, *Linear Systems*, section 2.1.

    >>> from pullback.scipy import signal
    >>> print(*signal.tf2ss([1.0, 3.0], [1.0, 2.0]))
    [[-2.]] [[1.]] [[1.]] [[1.]]
    """
    return _tf2ss("tf2ss", num, den)


def _tf2ss(name: str, num: Any, den: Any) -> tuple[Any, Any, Any, Any]:
    b, a = _fraction(name, num, den)
    count = a.shape[0]
    if b.shape[1] > count:
        b = b[:, min(_leading_zeros(b), b.shape[1] - count) :]
    if b.shape[1] > count:
        raise ArgumentError(
            f"{name}: the numerator must not be longer than the denominator, got {b.shape[1]} and {count} coefficients"
        )
    b = pnp.pad(b, ((0, 0), (count - b.shape[1], 0)))
    gain = b[:, :1]
    if count == 1:
        none = lambda rows: pnp.zeros((rows, 1), b.dtype)
        return none(1), none(1), none(b.shape[0]), gain
    below = constant(np.eye(count - 2, count - 1), a.dtype)
    taps = a[None, 1:]
    first = constant(np.eye(count - 1, 1), a.dtype)
    return pnp.concatenate([-taps, below]), first, b[:, 1:] - gain * taps, gain


def zpk2ss(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Return the matrices of a linear system of its zeros, poles and gain, in controller canonical form.

    Args:
      z, p, k: the zeros and the poles, vectors, and the gain, a number.

    Returns:
      The matrices A, B, C and D, as of :func:`tf2ss`; complex for traced complex roots, see :func:`zpk2tf`.

    Raises:
      ShapeError, ArgumentError: roots that are no vectors, or more zeros than poles (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.zpk2ss([-3.0], [-2.0], 1.0))
    [[-2.]] [[1.]] [[1.]] [[1.]]
    """
    return _tf2ss("zpk2ss", *polynomials_of("zpk2ss", z, p, k))


# Matrices ------------------------------------------------------------------------------------------------------------


def abcd_normalize(
    A: ArrayLike | None = None, B: ArrayLike | None = None, C: ArrayLike | None = None, D: ArrayLike | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return the matrices of a linear system, with zeros for those that are missing.

    Args:
      A, B, C, D: the matrices (n, n), (n, inputs), (outputs, n) and (outputs, inputs); numbers and vectors are matrices
        of one row. None, and a matrix without elements, is one of zeros, of the size that the others have.

    Returns:
      The four matrices, of one dtype.

    Raises:
      ArgumentError: too many are None, so that sizes are unknown (a TypeError and a ValueError).
      ShapeError: matrices that do not fit (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.abcd_normalize(A=-2.0, B=1.0, C=3.0))
    [[-2.]] [[1.]] [[3.]] [[0.]]
    """
    return matrices("abcd_normalize", A, B, C, D, missing=True)


def matrices(name: str, *ABCD: Any, missing: bool = False) -> tuple[Any, Any, Any, Any]:
    """Return the four matrices of a system, checked and of one dtype; None is allowed if some may be missing."""
    A, B, C, D = ABCD
    for what, needed, given in (
        ("states", "A, B or C", (A, B, C)), ("inputs", "B or D", (B, D)), ("outputs", "C or D", (C, D)),
    ):  # fmt: skip
        if all(x is None for x in given):
            raise ArgumentError(f"{name}: the number of {what} is unknown; pass {needed}")
    empty = lambda x: isinstance(x, (list, tuple)) and (not x or list(x) == [[]])
    none = lambda x: (missing and x is None) or empty(x)
    here = [i for i, x in enumerate(ABCD) if not none(x)]
    found = dict(zip(here, map(pnp.atleast_2d, promoted(name, *(ABCD[i] for i in here))), strict=True))
    dtype = next((x.dtype for x in found.values()), np.dtype(np.float32))
    shapes = [found[i].shape if i in found else (0, 0) for i in range(4)]
    if any(len(shape) > 2 for shape in shapes):
        raise ShapeError(f"{name}: A, B, C and D must be matrices, got shapes {shapes}")
    n = shapes[0][0] or shapes[1][0] or shapes[2][1]
    inputs, outputs = shapes[1][1] or shapes[3][1], shapes[2][0] or shapes[3][0]
    wanted = [(n, n), (n, inputs), (outputs, n), (outputs, inputs)]
    out = [found[i] if i in found and found[i].size else pnp.zeros(wanted[i], dtype) for i in range(4)]
    if [x.shape for x in out] != wanted:
        raise ShapeError(
            f"{name}: A, B, C and D must have shapes {', '.join(map(str, wanted))}, got "
            f"{', '.join(str(x.shape) for x in out)}"
        )
    return out[0], out[1], out[2], out[3]


def ss2tf(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, input: int = 0) -> tuple[Array, Array]:
    """Return the polynomials of a linear system of its matrices.

    Args:
      A, B, C, D: the matrices (n, n), (n, inputs), (outputs, n) and (outputs, inputs).
      input: the number of the input.

    Returns:
      The coefficients of the numerators, (outputs, n + 1), and of the denominator, n + 1, the highest power first. For
      traced matrices they are computed by sums and products of matrices, without eigenvalues, so that they have
      derivatives also where eigenvalues are equal.

    Raises:
      ShapeError: matrices that do not fit (a TypeError and a ValueError).
      ArgumentError: an input that is not there (a TypeError and a ValueError).

    Source: Faddeev and Faddeeva 1963, *Computational Methods of Linear Algebra*, section 47.

    >>> from pullback.scipy import signal
    >>> print(*signal.ss2tf(-2.0, 1.0, 1.0, 1.0))
    [[1. 3.]] [1. 2.]
    """
    return _ss2tf("ss2tf", A, B, C, D, input)


def _ss2tf(name: str, A: Any, B: Any, C: Any, D: Any, input: Any) -> tuple[Any, Any]:
    A, B, C, D = matrices(name, A, B, C, D)
    which = known_int(name, "input", input)
    if not 0 <= which < D.shape[1]:
        raise ArgumentError(f"{name}: input must be from 0 to {D.shape[1] - 1}, got {which}")
    B, D, n = B[:, which : which + 1], D[:, which : which + 1], A.shape[0]
    if not n:
        return pnp.ravel(D), pnp.ones(1, D.dtype)
    found = on_host(A, B, C, D)
    if found is not None:
        # In double precision coefficients that are zero stay below 1e-14.
        wide = [x.astype(np.result_type(x, np.float64)) for x in found]
        b, a = of_scipy(name, lambda: imported("scipy.signal").ss2tf(*wide))
        return constant(b, A.dtype), constant(a, A.dtype)
    eye = constant(np.eye(n), A.dtype)
    adjugate, taps, tops = eye, [pnp.ones((), A.dtype)], []
    for k in range(1, n + 1):
        tops.append(C @ adjugate @ B)
        moved = A @ adjugate
        taps.append(-pnp.trace(moved) / k)
        adjugate = moved + taps[-1] * eye
    den = pnp.stack(taps)
    return D * den + pnp.pad(pnp.concatenate(tops, 1), ((0, 0), (1, 0))), den


def ss2zpk(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, input: int = 0) -> tuple[Array, Array, Array]:
    """Return the zeros, the poles and the gain of a linear system of its matrices.

    Args:
      A, B, C, D: the matrices (n, n), (n, inputs), (1, n) and (1, inputs), of a system of one output. A system of
        traced matrices must have a ``D`` that is not zero, because the number of zeros depends on it.
      input: the number of the input.

    Returns:
      The zeros and the poles, complex numbers, and the gain, a number.

    Raises:
      ShapeError: matrices that do not fit, or several outputs (a TypeError and a ValueError).
      ArgumentError: an input that is not there (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.ss2zpk(-2.0, 1.0, 1.0, 1.0))
    [-3.+0.j] [-2.+0.j] 1.0
    """
    num, den = _ss2tf("ss2zpk", A, B, C, D, input)
    if len(num.shape) == 2:
        if num.shape[0] != 1:
            raise ShapeError(f"ss2zpk takes a system of one output, got {num.shape[0]}")
        num = num[0]
    return tf2zpk(num[_leading_zeros(num[None]) :], den)


# From continuous to discrete time ------------------------------------------------------------------------------------

_BILINEAR = {"bilinear": 0.5, "tustin": 0.5, "euler": 0.0, "forward_diff": 0.0, "backward_diff": 1.0}
"""The parameter ``alpha`` of the generalised bilinear transform that has a name."""


def cont2discrete(
    system: Any, dt: ArrayLike, method: str = "zoh", alpha: ArrayLike | None = None
) -> Any:  # fmt: skip
    """Return a system in discrete time that stands for one in continuous time, with derivatives by both and the step.

    Args:
      system: a system such as :class:`lti`; or its polynomials ``(num, den)``, its ``(zeros, poles, gain)``, or its
        matrices ``(A, B, C, D)``.
      dt: the time step, a number.
      method: ``"zoh"`` for inputs that are constant within a step, ``"foh"`` for linear ones, ``"impulse"`` for the
        same impulse response; ``"gbt"`` for the generalised bilinear transform; ``"bilinear"``, ``"euler"`` and
        ``"backward_diff"`` for that of alpha 1/2, 0 and 1.
      alpha: the parameter of ``"gbt"``, between 0 and 1.

    Returns:
      A system of the same kind; or a tuple as given, with ``dt`` as one more element.

    Raises:
      ArgumentError: an unknown method, or parameters that make no sense (a TypeError and a ValueError).
      ShapeError: arrays that do not fit (a TypeError and a ValueError).

    Source: Zhang, Chen and Wen 2009, "The use of GBT in discretizing continuous-time controllers"; Franklin, Powell and
    Workman, *Digital Control of Dynamic Systems*, section 4.3.

    >>> from pullback.scipy import signal
    >>> A, B, C, D, dt = signal.cont2discrete((-2.0, 1.0, 1.0, 0.0), 0.5)
    >>> print(A.round(3), B.round(3))
    [[0.368]] [[0.316]]
    """
    name = "cont2discrete"
    if hasattr(system, "to_discrete"):
        return system.to_discrete(dt=dt, method=method, alpha=alpha)
    if not isinstance(system, (tuple, list)) or len(system) not in (2, 3, 4):
        raise ArgumentError(
            f"{name}: system must be a system, or a tuple of 2 polynomials, of zeros, poles and gain, or of matrices; "
            f"got {quote(system)}"
        )
    if len(system) == 2:
        return (*ss2tf(*_discrete(name, tf2ss(*system), dt, method, alpha)), dt)
    if len(system) == 3:
        return (*ss2zpk(*_discrete(name, zpk2ss(*system), dt, method, alpha)), dt)
    return (*_discrete(name, system, dt, method, alpha), dt)


def _discrete(name: str, system: Any, dt: Any, method: Any, alpha: Any) -> tuple[Any, Any, Any, Any]:
    A, B, C, D = matrices(name, *system)
    numbers = [dt] if method != "gbt" else [dt, alpha]
    if alpha is None and method == "gbt":
        raise ArgumentError(f"{name}: the method 'gbt' needs alpha, a number between 0 and 1, got None")
    A, B, C, D, *numbers = promoted(name, A, B, C, D, *numbers)
    if any(x.shape for x in numbers):
        raise ShapeError(f"{name}: dt and alpha must be numbers, got shapes {[x.shape for x in numbers]}")
    step, value = numbers[0], None if method != "gbt" else known(numbers[1])
    if value is not None and not 0 <= value <= 1:
        raise ArgumentError(f"{name}: alpha must be between 0 and 1, got {value}")
    if method == "gbt" or method in _BILINEAR:
        weight = numbers[1] if method == "gbt" else constant(_BILINEAR[method], A.dtype)
        return _bilinear(A, B, C, D, step, weight)
    if method not in _HOLDS:
        raise ArgumentError(
            f"{name}: method must be one of {', '.join(map(repr, ('gbt', *_BILINEAR, *_HOLDS)))}, got {quote(method)}"
        )
    return _HOLDS[method](A, B, C, D, step)


def _bilinear(A: Any, B: Any, C: Any, D: Any, step: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    eye = constant(np.eye(A.shape[0]), A.dtype)
    implicit = eye - (weight * step) * A
    solved = pnp.linalg.solve(implicit, pnp.concatenate([eye + ((1 - weight) * step) * A, step * B], 1))
    Ad, Bd = solved[:, : A.shape[0]], solved[:, A.shape[0] :]
    return Ad, Bd, pnp.linalg.solve(implicit.T, C.T).T, D + weight * (C @ Bd)


def held(A: Any, B: Any, step: Any) -> tuple[Any, Any]:
    """Return the matrices of a step with constant inputs (Van Loan 1978)."""
    n, inputs = B.shape
    power = expm(step * pnp.pad(pnp.concatenate([A, B], 1), ((0, inputs), (0, 0))))
    return power[:n, :n], power[:n, n:]


def interpolated(A: Any, B: Any, step: Any) -> tuple[Any, Any, Any]:
    """Return the matrices of a step with linear inputs: of the state, of the inputs before it and of those after it."""
    n, inputs = B.shape
    top = step * pnp.pad(pnp.concatenate([A, B], 1), ((0, inputs), (0, 0)))
    shift = pnp.concatenate([constant(np.zeros((n, inputs)), A.dtype), constant(np.eye(inputs), A.dtype)])
    power = expm(pnp.pad(pnp.concatenate([top, shift], 1), ((0, inputs), (0, 0))))
    after = power[:n, n + inputs :]
    return power[:n, :n], power[:n, n : n + inputs] - after, after


def _zero_order(A: Any, B: Any, C: Any, D: Any, step: Any) -> tuple[Any, Any, Any, Any]:
    return (*held(A, B, step), C, D)


def _first_order(A: Any, B: Any, C: Any, D: Any, step: Any) -> tuple[Any, Any, Any, Any]:
    power, before, after = interpolated(A, B, step)
    return power, before + power @ after, C, D + C @ after


def _same_impulse(A: Any, B: Any, C: Any, D: Any, step: Any) -> tuple[Any, Any, Any, Any]:
    values = known(D)
    if values is not None and not np.allclose(values, 0):
        raise ArgumentError(f"cont2discrete: for the method 'impulse' D must be zero, got {values}")
    power, scaled = expm(A * step), B * step
    return power, power @ scaled, C, C @ scaled


_HOLDS: dict[Any, Any] = {"zoh": _zero_order, "foh": _first_order, "impulse": _same_impulse}


def joined(first: Any, second: Any) -> tuple[Any, Any, Any, Any]:
    """Return the matrices of the product of two systems: the outputs of the second are the inputs of the first."""
    (A, B, C, D), (A2, B2, C2, D2) = first, second
    low = pnp.zeros((A2.shape[0], A.shape[0]), A.dtype)
    top = pnp.concatenate([A, B @ C2], 1)
    return (
        pnp.concatenate([top, pnp.concatenate([low, A2], 1)]), pnp.concatenate([B @ D2, B2]),
        pnp.concatenate([C, D @ C2], 1), D @ D2,
    )  # fmt: skip


def added(first: Any, second: Any) -> tuple[Any, Any, Any, Any]:
    """Return the matrices of the sum of two systems of the same inputs."""
    (A, B, C, D), (A2, B2, C2, D2) = first, second
    return block_diag(A, A2), pnp.concatenate([B, B2]), pnp.concatenate([C, C2], 1), D + D2
