"""Elliptic integrals, in Legendre's and in Carlson's forms, and Jacobi's elliptic functions."""

from __future__ import annotations

from pullback.core.array import Array, ArrayLike
from pullback.numpy.promotion import strong
from pullback.primitives import elementwise as ops
from pullback.scipy.special import elliptic_formulas as primitives
from pullback.scipy.special.operands import apply, real_operands


def ellipk(m: ArrayLike) -> Array:
    """The complete elliptic integral of the first kind.

    It is the integral of ``1 / sqrt(1 - m sin(t)**2)`` for t from 0 to pi / 2. Near ``m = 1``, pass ``1 - m`` to
    :func:`ellipkm1`.

    Args:
      m: an array of floats or integers, of any shape: the parameter, the square of the modulus.

    Returns:
      An array of floats, of the shape of ``m``: inf at 1, and NaN above.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      DtypeError: ``m`` is complex (a TypeError).

    By Carlson's integral :func:`elliprf` (DLMF 19.25.1); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.ellipk(0.5):.4f}")
    1.8541
    """
    return strong(apply("ellipk", primitives.ellipk_p, m))


def ellipkm1(p: ArrayLike) -> Array:
    """The complete elliptic integral of the first kind near ``m = 1``: :func:`ellipk` of ``1 - p``.

    Args:
      p: an array of floats or integers, of any shape: one minus the parameter.

    Returns:
      An array of floats, of the shape of ``p``: inf at 0, and NaN for negative numbers.

    Raises:
      OperandError: ``p`` is neither an array nor a number (a TypeError).
      DtypeError: ``p`` is complex (a TypeError).

    By Carlson's integral :func:`elliprf` (DLMF 19.25.1); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.ellipkm1(1e-12):.4f}")
    15.2018
    """
    return strong(apply("ellipkm1", primitives.ellipkm1_p, p))


def ellipe(m: ArrayLike) -> Array:
    """The complete elliptic integral of the second kind.

    It is the integral of ``sqrt(1 - m sin(t)**2)`` for t from 0 to pi / 2: a quarter of an ellipse.

    Args:
      m: an array of floats or integers, of any shape: the parameter, the square of the modulus.

    Returns:
      An array of floats, of the shape of ``m``: NaN above 1.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      DtypeError: ``m`` is complex (a TypeError).

    By Carlson's integrals :func:`elliprf` and :func:`elliprd` (DLMF 19.25.1); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.ellipe(0.5):.4f}")
    1.3506
    """
    return strong(apply("ellipe", primitives.ellipe_p, m))


def ellipkinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """The incomplete elliptic integral of the first kind.

    It is the integral of ``1 / sqrt(1 - m sin(t)**2)`` for t from 0 to ``phi``.

    Args:
      phi: an array of floats or integers: the amplitude, in radians.
      m: an array that broadcasts against ``phi``: the parameter, the square of the modulus.

    Returns:
      An array of floats, of the broadcast shape: NaN where ``m`` is above 1.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's integral :func:`elliprf` (DLMF 19.25.5); eagerly it is SciPy's, which loses up to seven digits where
    ``m`` is within 1e-9 of 1 and ``phi`` is near pi / 2.

    >>> from pullback.scipy import special
    >>> print(f"{special.ellipkinc(1.0, 0.5):.4f}")
    1.0832
    """
    return strong(apply("ellipkinc", primitives.ellipkinc_p, phi, m))


def ellipeinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """The incomplete elliptic integral of the second kind.

    It is the integral of ``sqrt(1 - m sin(t)**2)`` for t from 0 to ``phi``: the length of an arc of an ellipse.

    Args:
      phi: an array of floats or integers: the amplitude, in radians.
      m: an array that broadcasts against ``phi``: the parameter, the square of the modulus.

    Returns:
      An array of floats, of the broadcast shape: NaN where ``m`` is above 1.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's integrals :func:`elliprf` and :func:`elliprd` (DLMF 19.25.9, 19.25.10); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.ellipeinc(1.0, 0.5):.4f}")
    0.9273
    """
    return strong(apply("ellipeinc", primitives.ellipeinc_p, phi, m))


def ellipj(u: ArrayLike, m: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Jacobi's elliptic functions of real argument.

    Args:
      u: an array of floats or integers: the argument.
      m: an array that broadcasts against ``u``: the parameter, between 0 and 1.

    Returns:
      Four arrays of floats, of the broadcast shape: sn, cn, dn, and the amplitude, in radians, of which sn is the sine
      and cn the cosine. NaN where ``m`` is not between 0 and 1.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    The amplitude is by arithmetic-geometric means (DLMF 22.20.2); eagerly it is SciPy's. It is the inverse of
    :func:`ellipkinc`, and so are its derivatives.

    >>> from pullback.scipy import special
    >>> sn, cn, dn, ph = special.ellipj(1.0, 0.5)
    >>> print(f"{sn:.4f} {cn:.4f} {dn:.4f} {ph:.4f}")
    0.8030 0.5960 0.8232 0.9323
    """
    u, m = real_operands("ellipj", u, m)
    amplitude = primitives.jacobi_am_p.bind(u, m)
    sn, cn = ops.sin(amplitude), ops.cos(amplitude)
    rest = ops.mul(ops.sub(1, m), ops.square(sn))  # with the square of cn, nothing cancels
    dn = ops.sqrt(ops.add(ops.square(cn), rest))
    return strong(sn), strong(cn), strong(dn), strong(amplitude)


def elliprc(x: ArrayLike, y: ArrayLike) -> Array:
    """Carlson's degenerate elliptic integral R_C, which is elementary: R_F(x, y, y).

    It is half the integral of ``1 / (sqrt(t + x) (t + y))`` over positive t.

    Args:
      x: an array of floats or integers that are not negative.
      y: an array that broadcasts against ``x``, of numbers other than zero. For negative ones the result is Cauchy's
        principal value.

    Returns:
      An array of floats, of the broadcast shape: NaN where ``y`` is 0, and for negative ``x``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's duplication theorem (Numerical Algorithms 10, 1995); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.elliprc(0.0, 1.0):.4f}")
    1.5708
    """
    return strong(primitives.elliprc_p.bind(*real_operands("elliprc", x, y), orders=(0, 0)))


def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's elliptic integral of the second kind R_D, which is symmetric in ``x`` and ``y``.

    It is three halves of the integral of ``1 / (sqrt((t + x) (t + y)) (t + z)**1.5)`` over positive t.

    Args:
      x: an array of floats or integers that are not negative.
      y: an array of such numbers that broadcasts against ``x``; at most one of the two is zero.
      z: an array of positive numbers that broadcasts against the others.

    Returns:
      An array of floats, of the broadcast shape: inf where ``z``, or ``x`` and ``y``, are 0, and NaN for
      negative numbers.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's duplication theorem (Numerical Algorithms 10, 1995); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.elliprd(0.0, 2.0, 1.0):.4f}")
    1.7972
    """
    return strong(primitives.elliprd_p.bind(*real_operands("elliprd", x, y, z), orders=(0, 0, 0)))


def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the first kind R_F.

    It is half the integral of ``1 / sqrt((t + x) (t + y) (t + z))`` over positive t.

    Args:
      x: an array of floats or integers that are not negative.
      y: an array of such numbers that broadcasts against ``x``.
      z: an array of such numbers that broadcasts against the others; at most one of the three is zero.

    Returns:
      An array of floats, of the broadcast shape: inf where two numbers are zero, and NaN for negative numbers.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's duplication theorem (Numerical Algorithms 10, 1995); eagerly it is SciPy's.

    >>> from pullback.scipy import special
    >>> print(f"{special.elliprf(1.0, 2.0, 0.0):.4f}")
    1.3110
    """
    return strong(apply("elliprf", primitives.elliprf_p, x, y, z))


def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the second kind R_G.

    The surface of an ellipsoid with the half axes a, b and c is ``4 pi R_G((a b)**2, (a c)**2, (b c)**2)``.

    Args:
      x: an array of floats or integers that are not negative.
      y: an array of such numbers that broadcasts against ``x``.
      z: an array of such numbers that broadcasts against the others.

    Returns:
      An array of floats, of the broadcast shape: NaN for negative numbers.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By :func:`elliprf` and :func:`elliprd` (DLMF 19.21.10); eagerly it is SciPy's.

    >>> import math
    >>> from pullback.scipy import special
    >>> print(f"{4 * math.pi * special.elliprg(4.0, 9.0, 36.0):.4f}")
    48.8821
    """
    return strong(apply("elliprg", primitives.elliprg_p, x, y, z))


def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the third kind R_J.

    It is three halves of the integral of ``1 / (sqrt((t + x) (t + y) (t + z)) (t + p))`` over positive t.

    Args:
      x: an array of floats or integers that are not negative.
      y: an array of such numbers that broadcasts against ``x``.
      z: an array of such numbers that broadcasts against the others; at most one of the three is zero.
      p: an array that broadcasts against the others, of numbers other than zero. For negative ones the result is
        Cauchy's principal value.

    Returns:
      An array of floats, of the broadcast shape: inf where two of ``x``, ``y`` and ``z`` are 0; NaN
      where ``p`` is 0, and where one of the others is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Carlson's duplication theorem (Numerical Algorithms 10, 1995); eagerly it is SciPy's, which loses up to four
    digits where ``p`` is far smaller than the others.

    >>> from pullback.scipy import special
    >>> print(f"{special.elliprj(0.0, 1.0, 2.0, 3.0):.4f}")
    0.7769
    """
    return strong(primitives.elliprj_p.bind(*real_operands("elliprj", x, y, z, p), orders=(0, 0, 0, 0)))


__all__ = [
    "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf", "elliprg",
    "elliprj",
]  # fmt: skip
