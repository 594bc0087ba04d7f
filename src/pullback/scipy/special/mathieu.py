"""Characteristic values of Mathieu functions, and derivatives of both by the parameter, of NumPy arrays.

The Fourier coefficients of a Mathieu function are an eigenvector of a symmetric tridiagonal matrix, whose eigenvalue is
the characteristic value (DLMF 28.4.5 to 28.4.8). SciPy computes those of orders up to 500 and parameters up to 100.
At some points, such as order 5 and 20.80281963237354, it returns the value of another order: the signs of pivots tell,
and the eigenvalue is computed. For large orders SciPy takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends.host.rules import special
from pullback.core.interrupts import imported

_OF_SCIPY = {False: special("mathieu_a"), True: special("mathieu_b")}
_LARGE, _MOST = 500.0, 1e5
"""Orders up to the first may be SciPy's, and those up to the second are eigenvalues."""


def characteristic(m: Any, q: Any, *, odd: bool) -> Any:
    """Return the characteristic values of odd or even functions; NaN for orders that are not among theirs.

    They are NaN too for orders above 100,000 whose parameter is above a thousandth of their square.
    """
    m, q = np.broadcast_arrays(m, q)
    near = (m <= _LARGE) & (np.abs(q) <= 100)
    if near.all():
        found = _OF_SCIPY[odd](m, q)
        wrong = ~_agree(found, m, q, odd)  # NaN of other numbers than orders stays
        return _each(lambda m, q: _eigenpair(m, q, odd)[0], wrong & _has_value(m, q, odd), found, m, q)
    far, few, small = _is_far(m, q), np.where(near, m, 2.0), np.where(near, q, 0.0)
    found = _OF_SCIPY[odd](few, small)
    order = np.where(far, m, _LARGE)
    ratio = np.where(far, q, 0) / (order * order)
    power = ratio * ratio
    # The terms of lower order in m are below the rounding error.
    change = order * order * power * (0.5 + power * (5 / 32)) + power * 0.5
    expansion = np.where(far, order * order + change, np.nan)
    wrong = near & ~_agree(found, few, small, odd)
    between = (wrong | ~near) & ~far & _has_value(m, q, odd)
    return _each(lambda m, q: _eigenpair(m, q, odd)[0], between, np.where(near, found, expansion), m, q)


def slope(m: Any, q: Any, *, odd: bool) -> Any:
    """Return the derivatives of characteristic values by q, of odd or even functions.

    The derivative of an eigenvalue is that of the matrix between the normalised eigenvectors (Hellmann 1937, Feynman
    1939).
    """
    m, q = np.broadcast_arrays(m, q)
    far = _is_far(m, q)
    square = np.square(np.where(far, m, _LARGE))
    ratio = np.where(far, q / square, 0)
    expansion = np.where(far, ratio * (1 + 1 / square + ratio * ratio * (5 / 8)), np.nan)
    return _each(lambda m, q: _eigenpair(m, q, odd)[1], ~far & _has_value(m, q, odd), expansion, m, q)


def higher_slope(m: Any, q: Any, *, odd: bool, order: int) -> Any:
    """Return the derivatives of characteristic values by q of an order from 2.

    Where the expansion (DLMF 28.6.14) is used, its terms up to q**6 are right to 10 digits; derivatives of orders above
    4 are NaN there.
    """
    m, q = np.broadcast_arrays(m, q)
    far = _is_far(m, q)
    s = np.square(np.where(far, m, _LARGE))
    terms = {
        2: 0.5 / (s - 1), 4: (5 * s + 7) / (32 * (s - 1) ** 3 * (s - 4)),
        6: (9 * s * s + 58 * s + 29) / (64 * (s - 1) ** 5 * (s - 4) * (s - 9)),
    }  # fmt: skip
    near = np.where(far, q, 0)
    parts = [math.perm(k, order) * c * near ** (k - order) for k, c in terms.items() if k >= order]
    expansion = np.where(far & (order <= 4), sum(parts, 0 * near), np.nan)

    def one(m: float, q: float) -> float:
        return float(_eigenseries(m, q, odd, order)[0][order] * math.factorial(order))

    return _each(one, ~far & _has_value(m, q, odd), expansion, m, q)


def function(m: Any, q: Any, x: Any, *, odd: bool, order: int, order_of_x: int) -> Any:
    """Return derivatives of Mathieu functions by q, of an order from 1, and by x in radians; ``x`` is in degrees."""
    m, q, x = np.broadcast_arrays(m, q, x)
    out, known = np.full(m.shape, np.nan), {}
    for index in map(tuple, np.argwhere(_has_value(m, q, odd) & (m <= _LARGE))):
        key = float(m[index]), float(q[index])
        if key not in known:
            known[key] = _coefficients(*key, odd, order)
        harmonics, coefficients = known[key]
        turn = harmonics * np.deg2rad(x[index]) + 0.5 * np.pi * (order_of_x % 4 - odd)
        out[index] = np.sum(coefficients * harmonics**order_of_x * np.cos(turn))
    return out


def _has_value(m: Any, q: Any, odd: bool) -> Any:
    return (m >= (1 if odd else 0)) & (m <= _MOST) & (np.floor(m) == m) & np.isfinite(q)


def _is_far(m: Any, q: Any) -> Any:
    """Return a mask of where the expansion in q / m**2 (DLMF 28.6.14) has its fourth term below the rounding error."""
    return (m > _LARGE) & (np.abs(q) < 1e-3 * np.square(m)) & (np.floor(m) == m)


def _each(function: Callable[..., float], mask: Any, others: Any, m: Any, q: Any) -> Any:
    """Return ``function`` of the elements in the mask, once for equal ones, and ``others`` elsewhere."""
    if not mask.any():
        return others
    out, known = np.array(others), {}
    for index in map(tuple, np.argwhere(mask)):
        key = float(m[index]), float(q[index])
        if key not in known:
            known[key] = function(*key)
        out[index] = known[key]
    return out


def _matrix(m: Any, q: Any, odd: bool, count: int) -> tuple[Any, Any, Any, Any]:
    """Return the diagonal of a matrix without q, the factors of q in its first element and beside it, and a position.

    The position is that of the eigenvalue of the order m among the others. The first two and the last have a new axis.
    """
    shift, first, position = _start(m, odd)
    harmonics = 2.0 * np.arange(count) + shift[..., None]
    is_first = np.arange(count - 1) == 0
    beside = np.where((shift[..., None] == 0) & (not odd) & is_first, 2**0.5, 1.0)
    return np.square(harmonics), first, beside, position


def _start(m: Any, odd: bool) -> tuple[Any, Any, Any]:
    """Return the first harmonic, the factor of q in the first element of the matrix, and a position, as in _matrix."""
    is_odd = m % 2
    shift = np.where(is_odd == 0, 2.0 if odd else 0.0, is_odd)
    return shift, -is_odd if odd else is_odd, (m - shift) // 2


def _size(m: Any, q: Any) -> int:
    """Return a sufficient size of a matrix: behind a turning point the coefficients fall as Airy's function."""
    turn = 0.5 * np.sqrt(np.max(m * m + 4 * np.abs(q) + 1, initial=1))
    return int(turn + 12 * np.cbrt(turn)) + 20


def _agree(values: Any, m: Any, q: Any, odd: bool) -> Any:
    """Return a mask of values that are those of their orders.

    The number of negative pivots of the matrix less a number is that of its eigenvalues below the number.
    """
    shift, first, position = _start(m, odd)
    width, size = 1e-6 * (np.square(m) + np.abs(q) + 1), np.abs(q)
    squares = np.square(q)
    doubled = squares * (1.0 + ((shift == 0) & (not odd)))  # of the first element beside the diagonal
    counts = []
    for limit in (values - width, values + width):
        pivot = np.square(shift) + first * q - limit
        below = np.asarray(pivot < 0, np.int64)
        for k in range(1, _size(m, q)):
            free = np.square(shift + 2.0 * k) - limit
            # Where the rest of the diagonal is twice as large as q, a pivot as large as q is followed by such ones.
            if k % 4 == 0 and not ((free < 2 * size) | (pivot < size)).any():
                break
            pivot = free - (doubled if k == 1 else squares) / np.where(pivot == 0, 1e-300, pivot)
            below += pivot < 0
        counts.append(below)
    return (counts[0] == position) & (counts[1] == position + 1)


def _eigenpair(m: float, q: float, odd: bool) -> tuple[float, float]:
    """Return a characteristic value, and its derivative by q."""
    diagonal, first, beside, position = _matrix(np.array(m), np.array(q), odd, _size(np.array(m), q))
    diagonal[0] += first * q
    solve = imported("scipy.linalg").eigh_tridiagonal
    values, vectors = solve(diagonal, q * beside, select="i", select_range=(int(position), int(position)))
    v = vectors[:, 0]
    return float(values[0]), float(first * v[0] ** 2 + 2 * np.sum(beside * v[1:] * v[:-1]))


def _eigenseries(m: float, q: float, odd: bool, order: int) -> tuple[list[Any], list[Any]]:
    """Return the Taylor coefficients in q of a characteristic value, and those below the order of an eigenvector.

    Those of the eigenvector but the first are orthogonal to it (T. Kato 1966, *Perturbation theory for linear
    operators*, II.1). Their equations are singular: the largest element of the first vector is left out, and two
    regular tridiagonal ones remain.
    """
    diagonal, first, beside, position = _matrix(np.array(m), np.array(q), odd, _size(np.array(m), q))
    diagonal[0] += first * q
    linalg = imported("scipy.linalg")
    values, vectors = linalg.eigh_tridiagonal(
        diagonal, q * beside, select="i", select_range=(int(position), int(position))
    )
    v = vectors[:, 0]
    largest = int(np.argmax(np.abs(v)))
    bands = np.zeros((3, len(v)))
    bands[0, 1:], bands[1], bands[2, :-1] = q * beside, diagonal - values[0], q * beside
    bands[0, largest : largest + 2] = bands[2, max(largest - 1, 0) : largest + 1] = 0
    bands[1, largest] = 1
    if largest == 0:
        bands[2, 0] = 0

    def moved(x: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = first * x[0]
        y[:-1] += beside * x[1:]
        y[1:] += beside * x[:-1]
        return y

    eigenvalues, series = [values[0]], [v]
    for n in range(1, order + 1):
        change = moved(series[n - 1])
        eigenvalues.append(v @ change)
        right = sum((eigenvalues[i] * series[n - i] for i in range(1, n + 1)), -change)
        right[largest] = 0
        x = linalg.solve_banded((1, 1), bands, right)
        series.append(x - v * (v @ x))
    return eigenvalues, series


def _coefficients(m: float, q: float, odd: bool, order: int) -> tuple[Any, Any]:
    """Return the harmonics of a Mathieu function, and the derivatives of its Fourier coefficients by q."""
    series = _eigenseries(m, q, odd, order)[1]
    squares = [sum(series[i] @ series[n - i] for i in range(n + 1)) for n in range(order + 1)]
    roots = [1.0]  # of 1 / sqrt(squares), by the differential equation 2 s r' = -s' r
    for n in range(1, order + 1):
        terms = [(2 * (n - i) + i) * squares[i] * roots[n - i] for i in range(1, n + 1)]
        roots.append(-sum(terms) / (2 * n))
    found = math.factorial(order) * sum(roots[i] * series[order - i] for i in range(order + 1))
    whole = m % 2 == 0
    harmonics = 2.0 * np.arange(len(found)) + (2 if whole and odd else m % 2)
    if whole and not odd:
        found[0] /= 2**0.5
    at_zero = series[0] * (harmonics if odd else np.where(harmonics == 0, 0.5**0.5, 1))
    return harmonics, found if at_zero.sum() > 0 else -found
