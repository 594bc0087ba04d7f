"""Partial fractions of quotients of polynomials, their poles in groups, and division of polynomials.

Which poles count as equal is found on the host, and decides the form of the result. Derivatives are those of poles
that differ: where poles are equal, they split in an unpredictable way when a coefficient changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, known_or_traced, of_scipy, promoted, vector
from pullback.scipy.signal.convolutions import convolve
from pullback.scipy.signal.filters import lfilter

__all__ = ["deconvolve", "invres", "invresz", "residue", "residuez", "unique_roots"]

_RULES = {"max": "max", "maximum": "max", "min": "min", "minimum": "min", "avg": "avg", "mean": "avg"}


def deconvolve(signal: ArrayLike, divisor: ArrayLike) -> tuple[Array, Array]:
    """Divide a polynomial by another one: ``signal = convolve(divisor, quotient) + remainder``.

    Args:
      signal: the dividend, a vector.
      divisor: the divisor, a vector whose first element is not zero.

    Returns:
      The quotient, empty if the divisor is longer, and the remainder, of the size of ``signal``.

    Raises:
      ShapeError: operands that are no vectors or are empty (a TypeError and a ValueError).
      ArgumentError: a divisor that begins with zero (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(*signal.deconvolve([1.0, 3.0, 2.0], [1.0, 1.0]))
    [1. 2.] [0. 0. 0.]
    """
    x, y = promoted(
        "deconvolve", vector("deconvolve", signal, "the signal"), vector("deconvolve", divisor, "the divisor")
    )
    count = x.shape[0] - y.shape[0] + 1
    if count < 1:
        return x[:0], x
    values = known(y)
    if values is not None and not values[0]:
        raise ArgumentError(f"deconvolve: the divisor must not begin with zero, got {values}")
    quotient = lfilter(x, y, constant(np.arange(count) == 0, x.dtype))
    return quotient, x - convolve(y, quotient)


def _rule(name: str, rtype: Any) -> str:
    found = _RULES.get(rtype) if isinstance(rtype, str) else None
    if found is None:
        raise ArgumentError(f"{name}: rtype must be one of {', '.join(map(repr, _RULES))}, got {quote(rtype)}")
    return found


def _tolerance(name: str, tol: Any) -> float:
    """Return the distance up to which poles are equal, which must be known."""
    value = known(known_or_traced(name, tol))
    if value is None or value.shape or value.dtype.kind == "c" or not value >= 0:
        raise ArgumentError(f"{name}: tol must be a known number that is not negative, got {quote(tol)}")
    return float(value)


def unique_roots(p: ArrayLike, tol: float = 0.001, rtype: str = "min") -> tuple[Array, Array]:
    """Return roots without those that are near others, and how often each is there.

    Args:
      p: the roots, a vector of known numbers.
      tol: the largest distance of roots that are equal, a number.
      rtype: which root stands for a group: ``"min"``, ``"max"`` or ``"avg"`` for the mean.

    Returns:
      The roots, with derivatives, and ints.

    Raises:
      ArgumentError: an unknown word, or a negative distance (a TypeError and a ValueError).
      ShapeError: roots that are no vector (a TypeError and a ValueError).
      ConcretizationTypeError: traced roots (a TypeError).

    >>> from pullback.scipy import signal
    >>> print(*signal.unique_roots([1.0, 2.0, 1.0001]))
    [1. 2.] [2 1]
    """
    name = "unique_roots"
    roots, rule, distance = vector(name, p, "the roots"), _rule(name, rtype), _tolerance(name, tol)
    values = known(roots)
    if values is None:
        raise ConcretizationTypeError(f"{name}: how many roots differ depends on their values, which are traced")
    groups, free = list[list[int]](), list(range(len(values)))
    while free:
        group = [i for i in free if abs(values[i] - values[free[0]]) <= distance]
        groups.append(group)
        free = [i for i in free if i not in group]
    best = {"min": np.argmin, "max": np.argmax}
    if rule == "avg":
        out = pnp.stack([pnp.mean(roots[np.array(group)]) for group in groups])
    else:
        out = roots[np.array([group[int(best[rule](_ranks(values[group])))] for group in groups])]
    return out, as_array(np.array([len(group) for group in groups], dtypes.default_int()))


def _ranks(values: Any) -> Any:
    """Return the positions of numbers in increasing order, first by real parts."""
    return np.argsort(np.lexsort((values.imag, values.real)))


# Partial fractions ---------------------------------------------------------------------------------------------------


def residue(
    b: ArrayLike, a: ArrayLike, tol: float = 0.001, rtype: str = "avg"
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the partial fractions of a quotient of polynomials of s: ``Σ r / (s - p) + k(s)``.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first.
      tol: the largest distance of poles that are equal, a number.
      rtype: which pole stands for equal ones, as for :func:`unique_roots`.

    Returns:
      The residues and the poles, complex numbers, and the coefficients of the polynomial k, maybe none. A pole that is
      there several times has the residues of ``1 / (s - p)``, ``1 / (s - p)**2`` and so on. Poles of traced
      coefficients must differ.

    Raises:
      ArgumentError: a denominator of zeros, or an unknown word (a TypeError and a ValueError).
      ShapeError: coefficients that are no vectors (a TypeError and a ValueError).
      UnsupportedArgumentError: derivatives by coefficients whose poles are equal (a NotImplementedError).

    Source: Ogata 1997, *Modern Control Engineering*, section 2.5.

    >>> from pullback.scipy import signal
    >>> r, p, k = signal.residue([1.0], [1.0, 3.0, 2.0])
    >>> print(r.real, p.real, k)
    [ 1. -1.] [-1. -2.] []
    """
    return _residue("residue", b, a, tol, rtype, -1)


def residuez(
    b: ArrayLike, a: ArrayLike, tol: float = 0.001, rtype: str = "avg"
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the partial fractions of a quotient of polynomials of 1/z: ``Σ r / (1 - p/z) + k(1/z)``.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the lowest power of 1/z first.
      tol, rtype: as for :func:`residue`.

    Returns:
      The residues, the poles and the coefficients of k, as for :func:`residue`.

    Raises:
      ArgumentError, ShapeError, UnsupportedArgumentError: as for :func:`residue`.

    >>> from pullback.scipy import signal
    >>> r, p, k = signal.residuez([1.0], [1.0, -0.75, 0.125])
    >>> print(r.real.round(3), p.real.round(3), k)
    [-1.  2.] [0.25 0.5 ] []
    """
    return _residue("residuez", b, a, tol, rtype, 1)


def _residue(name: str, b: Any, a: Any, tol: Any, rtype: Any, end: int) -> tuple[Any, Any, Any]:
    """Return partial fractions of polynomials of s, if ``end`` is -1, or of 1/z."""
    _rule(name, rtype)
    distance = _tolerance(name, tol)
    b, a = promoted(name, vector(name, b, "the numerator"), vector(name, a, "the denominator"))
    values = known(a)
    if values is not None and (not values.any() or (end == 1 and not values[0])):
        raise ArgumentError(f"{name}: the denominator must not be zero, nor begin with zero, got {values}")
    real = dtypes.to_real(b.dtype)
    wide = dtypes.to_complex(real)
    found = on_host(b, a)
    if found is not None:
        double = [x.astype(np.result_type(x, np.float64)) for x in found]
        r, p, k = of_scipy(name, lambda: getattr(imported("scipy.signal"), name)(*double, tol=distance, rtype=rtype))
        return constant(r, wide), constant(p, wide), constant(k, b.dtype)
    b, a = (_trimmed(x, end) for x in (b, a))
    poles = pnp.roots(a, strip_zeros=False).astype(wide)
    at = known(poles)
    if at is not None and any(abs(x - y) <= distance for i, x in enumerate(at) for y in at[:i]):
        raise UnsupportedArgumentError(
            f"{name}: poles that are equal up to tol have no derivatives by the coefficients, got {at}"
        )
    poles = poles[pnp.argsort(pnp.abs(poles))]
    return _of_poles(b, a, poles) if end == -1 else _of_inverse_poles(b, a, poles)


def _trimmed(x: Any, end: int) -> Any:
    """Return coefficients without known zeros at the end of the highest powers; at least one is left."""
    values = known(x)
    if values is None:
        return x
    there = np.flatnonzero(values)
    if not there.size:
        return x[:1]
    return x[int(there[0]) :] if end == -1 else x[: int(there[-1]) + 1]


def _of_poles(b: Any, a: Any, at: Any) -> tuple[Any, Any, Any]:
    """Return the residues at points, which differ and are the roots of ``a``; the points; and the quotient."""
    k = b[:0]
    if b.shape[0] >= a.shape[0]:
        k, b = pnp.polydiv(b, a)
    others = at[:, None] - at[None] + constant(np.eye(at.shape[0]), at.dtype)
    return pnp.polyval(b.astype(at.dtype), at) / (pnp.prod(others, 1) * a[0]), at, k


def _of_inverse_poles(b: Any, a: Any, poles: Any) -> tuple[Any, Any, Any]:
    """Return the residues, the poles and the quotient of polynomials of 1/z."""
    r, _, k = _of_poles(pnp.flip(b), pnp.flip(a), 1 / poles)
    return -r * poles, poles, pnp.flip(k)


def invres(
    r: ArrayLike, p: ArrayLike, k: ArrayLike, tol: float = 0.001, rtype: str = "avg"
) -> tuple[Array, Array]:  # fmt: skip
    """Return the quotient of polynomials of s of its partial fractions.

    Args:
      r, p: the residues and the poles, vectors; poles that follow one another and are equal up to ``tol`` count as one.
        The poles must be known.
      k: the coefficients of the polynomial, maybe none.
      tol, rtype: as for :func:`residue`.

    Returns:
      The coefficients of the numerator and of the denominator.

    Raises:
      ArgumentError: an unknown word (a TypeError and a ValueError).
      ShapeError: vectors that do not fit (a TypeError and a ValueError).
      ConcretizationTypeError: traced poles (a TypeError).

    >>> from pullback.scipy import signal
    >>> print(*signal.invres([1.0, -1.0], [-1.0, -2.0], []))
    [0. 1.] [1. 3. 2.]
    """
    return _joined("invres", r, p, k, tol, rtype, -1)


def invresz(
    r: ArrayLike, p: ArrayLike, k: ArrayLike, tol: float = 0.001, rtype: str = "avg"
) -> tuple[Array, Array]:  # fmt: skip
    """Return the quotient of polynomials of 1/z of its partial fractions.

    Args:
      r, p, k, tol, rtype: as for :func:`invres`.

    Returns:
      The coefficients of the numerator and of the denominator.

    Raises:
      ArgumentError, ShapeError, ConcretizationTypeError: as for :func:`invres`.

    >>> from pullback.scipy import signal
    >>> print(*signal.invresz([-1.0, 2.0], [0.25, 0.5], []))
    [1. 0.] [ 1.    -0.75   0.125]
    """
    return _joined("invresz", r, p, k, tol, rtype, 1)


def _joined(name: str, r: Any, p: Any, k: Any, tol: Any, rtype: Any, end: int) -> tuple[Any, Any]:
    _rule(name, rtype)
    distance = _tolerance(name, tol)
    empty = (isinstance(k, (list, tuple)) and not k) or getattr(k, "size", None) == 0
    quotient = [] if empty else [_trimmed(vector(name, k, "k"), end)]
    r, p, *rest = promoted(name, vector(name, r, "the residues"), vector(name, p, "the poles"), *quotient)
    if r.shape != p.shape:
        raise ShapeError(f"{name}: there must be as many residues as poles, got {r.shape[0]} and {p.shape[0]}")
    values = known(p)
    if values is None:
        raise ConcretizationTypeError(f"{name}: which poles are equal depends on their values, which are traced")
    # A group has the value of its first pole, as in SciPy.
    starts = [0]
    for i in range(1, len(values)):
        if abs(values[i] - values[starts[-1]]) > distance:
            starts.append(i)
    sizes = np.diff([*starts, len(values)])
    one = pnp.ones(1, p.dtype)
    factor = lambda i: pnp.stack([one[0], -p[i]])

    def product(counts: Any) -> Any:
        out = one
        for start, count in zip(starts, counts, strict=True):
            for _ in range(int(count)):
                out = pnp.convolve(out, factor(start))
        return out

    den = product(sizes)
    terms, n = [], 0
    for g, size in enumerate(sizes):
        for power in range(1, size + 1):
            terms.append(r[n] * product(np.where(np.arange(len(sizes)) == g, size - power, sizes)))
            n += 1
    flat = lambda x: x if end == -1 else pnp.flip(x)
    terms = [flat(x) for x in terms]
    values = known(rest[0]) if rest else np.zeros(1)
    if values is None or values.any():
        terms.append(pnp.convolve(flat(rest[0]), flat(den)))
    width = max(x.shape[0] for x in terms)
    total = sum(pnp.pad(x, (width - x.shape[0], 0)) for x in terms)
    return flat(total), den
