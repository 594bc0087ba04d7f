"""The gamma function and its kin: factorials, beta and zeta functions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import AllocationError, ArgumentError, DtypeError, UnsupportedArgumentError
from pullback.numpy import declare
from pullback.numpy.declare import inexact_pair
from pullback.numpy.promotion import inexact_operand, known_int, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.special import gamma_functions as primitives
from pullback.primitives.special import incomplete
from pullback.primitives.special.others import zeta_derivative_p, zeta_p
from pullback.scipy.special import complex_gamma
from pullback.scipy.special.operands import apply, real_operand, real_operands


def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function.

    Compiled, errors are up to 19 units in the last place (``docs/accuracy.md``).

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape: inf at 0 and at negative integers.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.gammaln(5.0):.4f}")
    3.1781
    """
    return ops.lgamma_p.bind(real_operand("gammaln", x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of :func:`gammaln`.

    Compiled, errors are up to 10 units in the last place, of the derivative 18 (``docs/accuracy.md``).

    Args:
      x: an array of floats or integers, of any shape; integers are converted to floats.

    Returns:
      An array of the float dtype of ``x``, and of its shape: NaN at negative integers.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.digamma(1.0):.4f}")
    -0.5772
    """
    return ops.digamma(real_operand("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of :func:`digamma` of order ``n``.

    Compiled, errors are up to 21 units in the last place, of the derivative 800 in float32 (``docs/accuracy.md``).

    Args:
      n: an array of integers that are not negative: the orders.
      x: an array of floats or integers, which broadcasts against ``n``.

    Returns:
      An array of the float dtype of ``x``, and of the shape to which ``n`` and ``x`` broadcast.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: ``n`` are no integers, or ``x`` is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> from pullback.scipy import special
    >>> print(f"{special.polygamma(1, 1.0):.4f}")
    1.6449
    """
    if dtypes.is_inexact(dtypes.dtype_of(n)):
        raise DtypeError(f"polygamma: the order n must be integers, got {dtypes.short_name(dtypes.dtype_of(n))}")
    order, x = inexact_pair("polygamma", n, x)
    return ops.polygamma(order, real_operand("polygamma", x))


def gamma(x: ArrayLike) -> Array:
    """The gamma function, which is the factorial of ``x - 1``.

    Errors are up to 6 units in the last place (``docs/accuracy.md``), of complex numbers of size 10 up to 500.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of the dtype of ``x``; infinite at zero with its sign, and NaN at the other poles.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    Compiled it is Stirling's formula, with the recurrence and the reflection formula (DLMF 5.11.3, 5.5.1, 5.5.3).

    >>> from pullback.scipy import special
    >>> print(special.gamma(5.0), special.gamma(-1.0))
    24.0 nan
    """
    x = inexact_operand("gamma", x)
    return strong(complex_gamma.gamma(x) if dtypes.is_complex(x.dtype) else primitives.gamma_p.bind(x))


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function, on its principal branch.

    Of real numbers, compiled, errors are up to 16 units in the last place (``docs/accuracy.md``); of complex ones up to
    47.

    Args:
      x: an array of floats or complex numbers; integers are converted.

    Returns:
      An array of the dtype of ``x``; real negative numbers, where the logarithm is not real, are NaN. :func:`gammaln`
      is its real part there.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    Of complex numbers, compiled, it is Stirling's series, with the recurrence and the reflection formula (D. E. G.
    Hare, *Computing the principal branch of log-Gamma*, 1997).

    >>> from pullback.scipy import special
    >>> print(f"{special.loggamma(5.0):.4f} {special.loggamma(1j).imag:.4f}")
    3.1781 -1.8724
    """
    x = inexact_operand("loggamma", x)
    if dtypes.is_complex(x.dtype):
        return complex_gamma.loggamma_p.bind(x, orders=(0,))
    negative = ops.or_p.bind(ops.lt(x, 0), ops.ne_p.bind(x, x))
    return ops.where(negative, math.nan, ops.lgamma_p.bind(ops.where(negative, 1, x)))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function.

    Args:
      x: an array of real numbers; integers are converted.

    Returns:
      An array of floats: 1 or -1; the sign of ``x`` at zero, and NaN at the other poles.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    Its derivative is zero.

    >>> from pullback.scipy import special
    >>> print(special.gammasgn(2.0), special.gammasgn(-0.5))
    1.0 -1.0
    """
    return strong(apply("gammasgn", primitives.gamma_sign_p, x))


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Euler's beta function, ``gamma(a) * gamma(b) / gamma(a + b)``.

    Errors are up to 450 units in the last place compiled and 1e4 eager, where the result is tiny
    (``docs/accuracy.md``).

    Args:
      a: an array of real numbers; integers are converted.
      b: an array of real numbers, which broadcasts against ``a``.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    As :data:`scipy.special.beta`.

    >>> from pullback.scipy import special
    >>> print(f"{special.beta(2.0, 3.0):.4f}")
    0.0833
    """
    return strong(apply("beta", primitives.beta_p, a, b))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the size of :func:`beta`, without overflow or cancellation.

    Errors are up to 29 units in the last place compiled and 4,000 eager (``docs/accuracy.md``).

    Args:
      a: an array of real numbers; integers are converted.
      b: an array of real numbers, which broadcasts against ``a``.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    Compiled it is the algorithm of Didonato and Morris, *Significant digit computation of the incomplete beta function
    ratios*, ACM Transactions on Mathematical Software 18 (1992).

    >>> from pullback.scipy import special
    >>> print(f"{special.betaln(2.0, 3.0):.4f}")
    -2.4849
    """
    return apply("betaln", primitives.betaln_p, a, b)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function: the integral of ``t**(a - 1) exp(-t) / gamma(a)`` to ``x``.

    Args:
      a: an array of positive numbers; integers are converted.
      x: an array of numbers that are not negative, which broadcasts against ``a``.

    Returns:
      Numbers from 0 to 1; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by both operands, as :func:`pullback.lax.igamma`.

    >>> from pullback.scipy import special
    >>> print(f"{special.gammainc(1.0, 2.0):.4f}")
    0.8647
    """
    return apply("gammainc", incomplete.igamma_p, a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """``1 - gammainc(a, x)``, without cancellation.

    Args:
      a: an array of positive numbers; integers are converted.
      x: an array of numbers that are not negative, which broadcasts against ``a``.

    Returns:
      Numbers from 0 to 1; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by both operands, as :func:`pullback.lax.igammac`.

    >>> from pullback.scipy import special
    >>> print(f"{special.gammaincc(1.0, 2.0):.4f}")
    0.1353
    """
    return apply("gammaincc", incomplete.igammac_p, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function: the integral of ``t**(a - 1) (1 - t)**(b - 1) / beta(a, b)`` to ``x``.

    Args:
      a, b: arrays of positive numbers; integers are converted.
      x: an array of numbers from 0 to 1; all shapes broadcast against each other.

    Returns:
      Numbers from 0 to 1; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands, as :func:`pullback.lax.betainc`.

    >>> from pullback.scipy import special
    >>> print(f"{special.betainc(1.0, 2.0, 0.5):.4f}")
    0.7500
    """
    return apply("betainc", incomplete.betainc_p, a, b, x)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol, the rising factorial ``gamma(z + m) / gamma(z)``.

    Errors are up to 260 units in the last place (``docs/accuracy.md``); for large numbers about
    ``abs(m)``.

    Args:
      z: an array of real numbers; integers are converted.
      m: an array of real numbers, which broadcasts against ``z``.

    Returns:
      An array of floats, of the common dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    As :data:`scipy.special.poch`.

    >>> from pullback.scipy import special
    >>> print(f"{special.poch(2.0, 3.0):.1f}")
    24.0
    """
    return strong(apply("poch", primitives.poch_p, z, m))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial, ``gamma(n + 1)``; 0 for negative numbers.

    Errors are up to 45 units in the last place in float32, where ``x + 1`` is rounded, and 37 in float64
    (``docs/accuracy.md``).

    Args:
      n: an array of real numbers; integers are converted.
      exact: must be False: results are floats.

    Returns:
      An array of floats.

    Raises:
      UnsupportedArgumentError: ``exact`` is true (a NotImplementedError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(special.factorial(5))
    120.0
    """
    if flag("factorial", "exact", exact):
        raise UnsupportedArgumentError(
            "factorial: exact=True is not supported, because arrays cannot store integers of arbitrary size; use "
            "exact=False"
        )
    n = real_operand("factorial", n)
    negative = ops.lt(n, 0)
    return ops.where(negative, 0, primitives.gamma_p.bind(ops.add(ops.where(negative, 1, n), 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose ``k`` of ``N`` things.

    Errors are up to 140 units in the last place (``docs/accuracy.md``).

    Args:
      N: an array of real numbers; integers are converted.
      k: an array of real numbers, which broadcasts against ``N``.
      repetition: whether a thing may be chosen more than once.

    Returns:
      An array of floats; 0 where ``k`` is negative or above ``N``, or ``N`` is negative.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> from pullback.scipy import special
    >>> print(special.comb(5, 2), special.comb(5, 2, repetition=True))
    10.0 15.0
    """
    repetition = flag("comb", "repetition", repetition)
    n, k = real_operands("comb", N, k)
    if repetition:
        n = ops.where(ops.eq(k, 0), 0, ops.sub(ops.add(n, k), 1))
    valid = ops.and_p.bind(ops.and_p.bind(ops.ge_p.bind(k, 0), ops.ge_p.bind(n, 0)), ops.ge_p.bind(n, k))
    value = primitives.binomial_p.bind(ops.where(valid, n, 1), ops.where(valid, k, 0))
    return ops.where(valid, value, 0)


_MOST_NUMBERS = 1 << 24


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function of dimension ``d``, as in Wishart's distribution.

    Errors are up to 7 units in the last place (``docs/accuracy.md``).

    Args:
      a: an array of numbers above ``(d - 1) / 2``; integers are converted.
      d: the dimension, an integer that is known.

    Returns:
      An array of floats: ``gammaln(a - (k - 1) / 2)`` summed over k from 1 to ``d``, plus
      ``d (d - 1) / 4 * log(pi)``.

    Raises:
      ArgumentError: ``d`` is below 1 (a TypeError and a ValueError).
      ShapeError: ``d`` is no integer (a TypeError and a ValueError).
      OperandError: ``a`` is no array of numbers (a TypeError).
      DtypeError: ``a`` is complex (a TypeError).

    >>> from pullback.scipy import special
    >>> print(f"{special.multigammaln(5.0, 2):.4f}")
    6.2042
    """
    d = known_int("multigammaln", "the dimension d", d)
    if d < 1:
        raise ArgumentError(f"multigammaln: the dimension d must be a positive integer, got {d}")
    if d > _MOST_NUMBERS:
        raise AllocationError(f"multigammaln: no memory for {d} terms")
    a = real_operand("multigammaln", a)
    shifts = as_array((np.arange(d) * 0.5).reshape(d, *(1 for _ in a.shape)))
    terms = ops.lgamma_p.bind(ops.sub(shapes.expand_dims(a, (0,)), ops.convert_element_type(shifts, a.dtype)))
    return ops.add(reduce_sum(terms, (0,)), 0.25 * d * (d - 1) * math.log(math.pi))


def bernoulli(n: ArrayLike) -> Array:
    """The Bernoulli numbers from B0 to Bn, with B1 = -1/2.

    Args:
      n: the last index, an integer that is known and not negative.

    Returns:
      An array of ``n + 1`` floats, of the default dtype.

    Raises:
      ArgumentError: ``n`` is negative (a TypeError and a ValueError).
      ShapeError: ``n`` is no integer (a TypeError and a ValueError).

    They are exact rationals, rounded once; beyond B258 even numbers are infinite in double precision.

    >>> from pullback.scipy import special
    >>> print(special.bernoulli(2))
    [ 1.         -0.5         0.16666667]
    """
    n = known_int("bernoulli", "the last index n", n)
    if n < 0:
        raise ArgumentError(f"bernoulli: the last index n must not be negative, got {n}")
    if n > _MOST_NUMBERS:
        raise AllocationError(f"bernoulli: no time and memory for the numbers up to index {n}")
    with np.errstate(over="ignore"):
        return as_array(np.array(_bernoulli_numbers(n), dtypes.default_float()))


@lru_cache(maxsize=8)
def _bernoulli_numbers(n: int) -> list[float]:
    """Return the Bernoulli numbers B_0 to B_n, by the integer recurrence of the tangent numbers.

    Source: Brent and Harvey, *Fast computation of Bernoulli, tangent and secant numbers*, 2011.
    """
    count = min(n, 258) // 2
    tangents = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    numbers = [1.0, -0.5, *([0.0] * max(n - 1, 0))][: n + 1]
    for k in range(1, n // 2 + 1):
        if k > count:
            numbers[2 * k] = (-1) ** (k - 1) * math.inf
        else:
            numbers[2 * k] = float(Fraction((-1) ** (k - 1) * 2 * k * tangents[k - 1], 4**k * (4**k - 1)))
    return numbers


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function, the sum of ``(q + k)**-x`` over k = 0, 1, ...; Riemann's where ``q`` is None.

    Args:
      x: an array of real numbers; integers are converted.
      q: an array of real numbers, which broadcasts against ``x``; or None for Riemann's zeta function, which is
        defined for ``x`` below 1 too.

    Returns:
      An array of floats, of the common dtype. With two operands it is NaN where ``x`` is below 1.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives by both operands, where ``q`` is positive, by Euler's and Maclaurin's formula (DLMF 25.11.5);
    left of zero Riemann's is by the reflection formula (25.4.1).

    >>> from pullback.scipy import special
    >>> print(f"{special.zeta(2.0, 1.0):.4f} {special.zeta(-1.0):.4f}")
    1.6449 -0.0833
    """
    if q is None:
        return _riemann(real_operand("zeta", x))
    return apply("zeta", zeta_p, x, q)


def _riemann(x: Any) -> Any:
    right, left = ops.ge_p.bind(x, 1), ops.lt(x, 0)
    one = shapes.full((), 1, x.dtype)
    above = zeta_p.bind(ops.where(right, x, 2), one)
    strip = zeta_derivative_p.bind(ops.where(ops.or_p.bind(right, left), 0.5, x), one, order=0)
    s = ops.where(left, x, -1)
    mirrored = ops.sub(1, s)
    turns = ops.round_p.bind(ops.mul(stop_gradient(s), 0.5))
    sine = ops.sin((s - 2 * turns) * (math.pi / 2))
    odd = ops.ne_p.bind(ops.rem_p.bind(turns, 2.0), 0)
    powers = ops.mul(ops.exp(ops.mul(s, math.log(2 * math.pi))), 1 / math.pi)
    below = powers * ops.where(odd, -sine, sine) * primitives.gamma_p.bind(mirrored)
    below = below * zeta_p.bind(mirrored, one)
    return ops.where(right, above, ops.where(left, below, strip))


__all__ = declare.public_names(__name__, globals())
