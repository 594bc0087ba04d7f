"""Filters as polynomials, as zeros and poles, and in sections of second order; from each to the others."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, found_on_host, of_scipy, promoted, vector

__all__ = ["sos2tf", "sos2zpk", "tf2sos", "tf2zpk", "zpk2sos", "zpk2tf"]


def polynomial(roots: Any) -> Any:
    """Return the coefficients of the polynomial with leading coefficient 1 and some roots, the highest power first."""
    taps = pnp.ones(1, roots.dtype)
    for k in range(roots.shape[0]):
        taps = pnp.pad(taps, (0, 1)) - pnp.pad(taps, (1, 0)) * roots[k]
    return taps


def _roots(name: str, x: Any, what: str) -> Any:
    (x,) = promoted(name, x if not isinstance(x, (list, tuple)) or len(x) else np.zeros(0))
    if len(x.shape) != 1:
        raise ShapeError(f"{name}: the {what} must be a vector, got shape {x.shape}")
    return x


def _number(name: str, k: Any) -> Any:
    (k,) = promoted(name, k)
    if k.shape:
        raise ShapeError(f"{name}: the gain k must be a number, got shape {k.shape}")
    return k


def zpk2tf(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    """Return the polynomials of a filter of its zeros, poles and gain.

    Args:
      z, p: the zeros and the poles, vectors.
      k: the gain, a number.

    Returns:
      The coefficients of the numerator and of the denominator, the highest power first. They are real if the roots are,
      or if complex roots are known to be in conjugate pairs; those of traced complex roots are complex.

    Raises:
      ShapeError: roots that are no vectors, or a gain that is no number (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.zpk2tf(jnp.array([-1.0]), jnp.array([0.5, 0.25]), 2.0))
    [2. 2.] [ 1.    -0.75   0.125]
    """
    return polynomials_of("zpk2tf", z, p, k)


def polynomials_of(name: str, z: Any, p: Any, k: Any) -> tuple[Any, Any]:
    """Return the polynomials of zeros, poles and a gain, as :func:`zpk2tf` does; errors name the function."""
    z, p = _roots(name, z, "zeros"), _roots(name, p, "poles")
    k = _number(name, k)
    dtype = dtypes.to_real(dtypes.common_dtype(z, p, k))
    found = on_host(z, p, k)
    if found is not None:
        b, a = imported("scipy.signal").zpk2tf(found[0], found[1], found[2].item())
        return _coefficients(b, dtype), _coefficients(a, dtype)
    return polynomial(z) * k, polynomial(p)


def _coefficients(values: Any, dtype: Any) -> Any:
    values = np.atleast_1d(values)
    return constant(values, dtypes.to_complex(dtype) if values.dtype.kind == "c" else dtype)


def tf2zpk(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the zeros, the poles and the gain of a filter of its polynomials.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first. Coefficients of
        zero at the beginning of known ones do not count; traced ones must not begin with zero.

    Returns:
      The zeros, the poles, and the gain, in the order of NumPy's ``roots``; complex numbers, and a number.

    Raises:
      ShapeError: coefficients that are no vectors or are empty (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.tf2zpk(jnp.array([2.0, 2.0]), jnp.array([1.0, -0.75, 0.125])))
    [-1.+0.j] [0.5 +0.j 0.25+0.j] 2.0
    """
    return _tf2zpk("tf2zpk", b, a)


def _tf2zpk(name: str, b: Any, a: Any) -> tuple[Any, Any, Any]:
    b, a = vector(name, b, "the coefficients b"), vector(name, a, "the coefficients a")
    b, a = promoted(name, b, a)
    values = known(b)
    if values is not None and np.any(values):
        b = b[int(np.flatnonzero(values)[0]) :]
    values = known(a)
    if values is not None:
        if not np.any(values):
            raise ArgumentError(f"{name}: the coefficients a must not all be zero")
        a = a[int(np.flatnonzero(values)[0]) :]
    k = b[0] / a[0]
    zeros = pnp.roots(b, strip_zeros=known(b) is not None)
    poles = pnp.roots(a, strip_zeros=known(a) is not None)
    return _complex(zeros), _complex(poles), k


def _complex(x: Any) -> Any:
    return x.astype(dtypes.to_complex(dtypes.to_real(x.dtype)))


# Sections ------------------------------------------------------------------------------------------------------------


def _sections(name: str, sos: Any) -> Any:
    (sos,) = promoted(name, sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"{name}: the sections sos must have shape (n, 6), n at least 1, got {sos.shape}")
    return sos


def sos2tf(sos: ArrayLike) -> tuple[Array, Array]:
    """Return the polynomials of a filter in sections.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator.

    Returns:
      The coefficients of the numerator and of the denominator, two vectors of 2 sections + 1 elements.

    Raises:
      ShapeError: sections of another shape (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.sos2tf(jnp.array([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])))
    [1. 1. 0.] [ 1.  -0.5  0. ]
    """
    sections: Any = _sections("sos2tf", sos)
    b, a = pnp.ones(1, sections.dtype), pnp.ones(1, sections.dtype)
    for k in range(sections.shape[0]):
        b, a = pnp.convolve(b, sections[k, :3]), pnp.convolve(a, sections[k, 3:])
    return b, a


def sos2zpk(sos: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the zeros, the poles and the gain of a filter in sections.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator, of which the
        first of each is not zero.

    Returns:
      The zeros and the poles, 2 for each section, complex numbers; and the gain, a number.

    Raises:
      ShapeError: sections of another shape (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.sos2zpk(jnp.array([[2.0, 2.0, 0.0, 1.0, -0.5, 0.0]])))
    [-1.+0.j  0.+0.j] [0.5+0.j 0. +0.j] 2.0
    """
    sections: Any = _sections("sos2zpk", sos)
    found = on_host(sections)
    if found is not None:
        z, p, k = of_scipy("sos2zpk", lambda: imported("scipy.signal").sos2zpk(found[0]))
        wide = dtypes.to_complex(dtypes.to_real(sections.dtype))
        return constant(z, wide), constant(p, wide), constant(k, sections.dtype)
    k = pnp.prod(sections[:, 0] / sections[:, 3])
    count = sections.shape[0]
    zeros, poles = (
        slicing.concatenate([_complex(pnp.roots(sections[i, j : j + 3], strip_zeros=False)) for i in range(count)], 0)
        for j in (0, 3)
    )
    return zeros, poles, k


def tf2sos(b: ArrayLike, a: ArrayLike, pairing: str | None = None, *, analog: bool = False) -> Array:
    """Return the sections of second order of a filter of its polynomials.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors, the highest power first.
      pairing, analog: as for :func:`zpk2sos`.

    Returns:
      The sections, (sections, 6).

    Raises:
      ShapeError, ArgumentError, UnsupportedArgumentError: as for :func:`zpk2sos`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.tf2sos(jnp.array([2.0, 2.0]), jnp.array([1.0, -0.75, 0.125])))
    [[ 2.     2.     0.     1.    -0.75   0.125]]
    """
    return _zpk2sos("tf2sos", *_tf2zpk("tf2sos", b, a), pairing, analog)  # type: ignore[no-any-return]


def zpk2sos(z: ArrayLike, p: ArrayLike, k: ArrayLike, pairing: str | None = None, *, analog: bool = False) -> Array:
    """Return the sections of second order of a filter of its zeros, poles and gain.

    Which zero belongs to which pole is found on the host, and is constant; the coefficients have derivatives.

    Args:
      z, p: the zeros and the poles, vectors; complex ones in conjugate pairs.
      k: the gain, a number.
      pairing: ``"nearest"`` for the zeros nearest to the poles, ``"keep_odd"``, or ``"minimal"``; ``"nearest"`` by
        default, and ``"minimal"`` for analog filters.
      analog: whether the filter is analog; its zeros and poles must be known.

    Returns:
      The sections, (sections, 6).

    Raises:
      ShapeError: roots that are no vectors, or a gain that is no number (a TypeError and a ValueError).
      ArgumentError: roots that are not in pairs, or an unknown pairing (a TypeError and a ValueError).
      UnsupportedArgumentError: a traced analog filter, or one with a pairing other than ``"nearest"`` (a
        NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.zpk2sos(jnp.array([-1.0]), jnp.array([0.5, 0.25]), 2.0))
    [[ 2.     2.     0.     1.    -0.75   0.125]]
    """
    return _zpk2sos("zpk2sos", z, p, k, pairing, analog)  # type: ignore[no-any-return]


def _zpk2sos(name: str, z: Any, p: Any, k: Any, pairing: Any, analog: Any) -> Any:
    analog = flag(name, "analog", analog)
    z, p, k = _roots(name, z, "zeros"), _roots(name, p, "poles"), _number(name, k)
    if pairing is not None and not (isinstance(pairing, str) and pairing in ("nearest", "keep_odd", "minimal")):
        raise ArgumentError(f"{name}: pairing must be 'nearest', 'keep_odd' or 'minimal', got {quote(pairing)}")
    dtype = dtypes.to_real(dtypes.common_dtype(z, p, k))
    found = on_host(z, p, k)
    if found is not None:
        gain = found[2].real.item()
        call = lambda: imported("scipy.signal").zpk2sos(found[0], found[1], gain, pairing, analog=analog)
        return constant(of_scipy(name, call), dtype)
    if analog or pairing not in (None, "nearest"):
        raise UnsupportedArgumentError(
            f"{name}: traced zeros and poles are paired by 'nearest', of digital filters only; got pairing {pairing!r} "
            f"and analog={analog!r}"
        )
    return paired(z, p, k).astype(dtype)


def paired(z: Any, p: Any, k: Any) -> Any:
    """Return the sections of a digital filter of traced zeros, poles and gain, paired as SciPy does."""
    if not z.shape[0] and not p.shape[0]:
        return pnp.stack([k, *[pnp.zeros_like(k)] * 2, pnp.ones_like(k), *[pnp.zeros_like(k)] * 2])[None]
    count = (max(z.shape[0], p.shape[0]) + 1) // 2
    z, p = (pnp.pad(x, (0, 2 * count - x.shape[0])) for x in (z, p))
    order = found_on_host(_pairs, (2, 2 * count), z, p)
    rows = []
    for roots, which in ((z, order[0]), (p, order[1])):
        pair = shapes.reshape(roots[which], (count, 2))
        one = pnp.ones_like(pair[:, 0].real)
        rows += [one, -(pair[:, 0] + pair[:, 1]).real, (pair[:, 0] * pair[:, 1]).real]
    sections = pnp.stack(rows, -1)
    gain = pnp.stack([pnp.stack([k.real] * 3 + [pnp.ones_like(k.real)] * 3)])
    return pnp.concatenate([sections[:1] * gain.astype(sections.dtype), sections[1:]])


def _pairs(z: Any, p: Any) -> Any:
    """Return the positions of the zeros and of the poles in the order of SciPy's sections, two for each.

    The roots of each of SciPy's sections are those of the operands that are nearest.
    """
    z, p = (np.asarray(x, np.complex128) for x in (z, p))
    if not (np.isfinite(z).all() and np.isfinite(p).all()):
        return np.broadcast_to(np.arange(len(z), dtype=np.int32), (2, len(z)))
    sections = imported("scipy.signal").zpk2sos(z, p, 1.0, "nearest")
    out = np.zeros((2, len(z)), np.int32)
    for row, (roots, start) in enumerate(((z, 0), (p, 3))):
        free = list(range(len(roots)))
        for i, section in enumerate(sections):
            for j, root in enumerate(_pair_of(section[start : start + 3])):
                nearest = min(free, key=lambda n: abs(roots[n] - root))
                out[row, 2 * i + j] = nearest
                free.remove(nearest)
    return out


def _pair_of(taps: Any) -> Any:
    """Return the two roots of a polynomial of second order, whose leading coefficient is not zero."""
    half = -taps[1] / (2 * taps[0])
    turn = np.sqrt(complex(half**2 - taps[2] / taps[0]))
    return half + turn, half - turn
