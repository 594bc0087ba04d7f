"""Inverse functions: quantiles of the gamma and beta distributions, and Lambert's W."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.compiler import one_operation
from pullback.control import loops
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike, as_array
from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.numpy.promotion import inexact_operand, strong
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import COMPLEX
from pullback.primitives.declare import elementwise, in_double
from pullback.primitives.special import inverse_incomplete as quantiles
from pullback.scipy.special.operands import apply

from pullback.primitives.formulas import (  # isort: skip
    complex, exp, formula, full, imag, lifted, log, real, sqrt, where,
)  # fmt: skip


def gammaincinv(a: ArrayLike, y: ArrayLike) -> Array:
    """The inverse of :func:`gammainc` by its second operand: the quantile of the gamma distribution.

    Args:
      a: an array of positive numbers; integers are converted.
      y: an array of numbers from 0 to 1, which broadcasts against ``a``.

    Returns:
      The numbers x for which ``gammainc(a, x)`` is ``y``; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    Compiled it is Newton's iteration for the logarithm of the smaller tail; derivatives, by both operands, are of an
    implicit function.

    >>> from pullback.scipy import special
    >>> print(f"{special.gammaincinv(1.0, 0.5):.4f}")
    0.6931
    """
    return strong(apply("gammaincinv", quantiles.gammaincinv_p, a, y))


def gammainccinv(a: ArrayLike, y: ArrayLike) -> Array:
    """The inverse of :func:`gammaincc` by its second operand: a quantile by the upper tail.

    Args:
      a: an array of positive numbers; integers are converted.
      y: an array of numbers from 0 to 1, which broadcasts against ``a``.

    Returns:
      The numbers x for which ``gammaincc(a, x)`` is ``y``; NaN outside the domain.

    Raises:
      OperandError, DtypeError, ShapeError: see :func:`gammaincinv`, whose methods it has.

    >>> from pullback.scipy import special
    >>> print(f"{special.gammainccinv(1.0, 1e-9):.4f}")
    20.7233
    """
    return strong(apply("gammainccinv", quantiles.gammainccinv_p, a, y))


def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """The inverse of :func:`betainc` by its last operand: the quantile of the beta distribution.

    Args:
      a: an array of positive numbers; integers are converted.
      b: an array of positive numbers, which broadcasts against ``a``.
      y: an array of numbers from 0 to 1, which broadcasts against the others.

    Returns:
      The numbers x for which ``betainc(a, b, x)`` is ``y``; NaN outside the domain.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    Compiled it is Newton's iteration for the logarithm of the smaller tail; derivatives, by all operands, are of an
    implicit function.

    >>> from pullback.scipy import special
    >>> print(f"{special.betaincinv(2.0, 1.0, 0.25):.4f}")
    0.5000
    """
    return strong(apply("betaincinv", quantiles.betaincinv_p, a, b, y))


def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """The inverse of ``1 - betainc(a, b, x)`` by x, without cancellation: a quantile by the upper tail.

    Args:
      a: an array of positive numbers; integers are converted.
      b: an array of positive numbers, which broadcasts against ``a``.
      y: an array of numbers from 0 to 1, which broadcasts against the others.

    Returns:
      The numbers x for which ``1 - betainc(a, b, x)`` is ``y``; NaN outside the domain.

    Raises:
      OperandError, DtypeError, ShapeError: see :func:`betaincinv`, whose methods it has.

    >>> from pullback.scipy import special
    >>> print(f"{special.betainccinv(1.0, 2.0, 0.25):.4f}")
    0.5000
    """
    return strong(apply("betainccinv", quantiles.betainccinv_p, a, b, y))


# Lambert's W ---------------------------------------------------------------------------------------------------------

while_loop, reduce_or = map(lifted, (loops.while_loop, reductions.reduce_or))

_MOST = 30.0
_CLOSE = 1e-6
"""The relative size of a step of Halley's iteration after which its result is exact: errors are cubed."""


def _start(z: Any, k: Any) -> Any:
    """Return a first value: by the series at the branch point -1 / e, by logarithms near 0, or by those for large z.

    As R. M. Corless et al., *On the Lambert W function*, Advances in Computational Mathematics 5, 1996, 4.22 and 4.20;
    and R. Iacono and J. P. Boyd, *New approximations to the principal real-valued branch of the Lambert W-function*,
    Advances in Computational Mathematics 43, 2017.
    """
    principal, above = real(k) == 0, imag(log(z)) >= 0  # zeros have signs
    beside = ((real(k) == -1) & above) | ((real(k) == 1) & ~above)
    root = sqrt(2 * (math.e * z + 1))
    signed = where(principal, root, -root)
    close = (abs(z + 1 / math.e) < 0.3) & (principal | beside)
    series = -1 + signed * (1 + signed * (-1 / 3 + signed * (11 / 72 - signed * (43 / 540))))
    small = principal & (abs(z) < 2) & ((real(z) > -0.3) | (abs(imag(z)) > 0.25))
    first = log(1 + where(small, z, 1))
    near = first * (1 - log(1 + first) / (2 + first))
    far = log(where(small | (z == 0), 3, z)) + complex(full(z.shape, 0.0, real(z).dtype), real(k) * (2 * math.pi))
    loop = log(where(far == 0, 1, far))
    distant = far - loop + loop / where(far == 0, 1, far)
    return where(close, series, where(small, near, distant))


@formula
def _lambertw(z: Any, k: Any) -> Any:
    """Solve ``w exp(w) = z`` by Halley's iteration, multiplied by ``exp(-w)`` where the real part is positive."""
    usual = (abs(z) < math.inf) & (z != 0) & (z != -1 / math.e)
    safe = where(usual, z, 1)

    @formula
    def going(carry: Any) -> Any:
        n, w, step = carry
        far = abs(step) > abs(w) * _CLOSE
        return reduce_or(far, tuple(range(len(far.shape)))) & (n < _MOST)

    @formula
    def body(carry: Any) -> Any:
        n, w, _ = carry
        right = real(w) >= 0
        small = exp(where(right, -w, w))
        f = where(right, w - safe * small, w * small - safe)
        more = w + 1
        slope = where(right, more, small * more)
        step = f / (slope - (w + 2) * f / (2 * where(more == 0, 1, more)))
        step = where((f == 0) | (more == 0) | ~(abs(step) < math.inf), 0, step)
        return n + 1, w - step, step

    start = _start(safe, k)
    _, w, _ = while_loop(going, body, (shapes.full((), 0.0, real(z).dtype), start, start))
    principal = real(k) == 0
    at_zero = where(principal, z, full(z.shape, -math.inf, z.dtype))
    at_branch = where(principal | (real(k) == -1), full(z.shape, -1.0, z.dtype), w)
    turn = real(k) * (2 * math.pi)
    turned = complex(full(z.shape, math.inf, turn.dtype), where(real(z) < 0, turn + math.pi, turn))
    ends = where(z == 0, at_zero, where(z == -1 / math.e, at_branch, turned))
    return where(usual, w, where(z == z, ends, z))


def _slope(t: Any, z: Any, k: Any, ans: Any) -> Any:
    """The derivative ``exp(-w) / (1 + w)``."""
    return ops.mul(t, formula(lambda w: exp(-w) / (1 + w))(ans))


def _on_host(z: Any, k: Any) -> Any:
    """Evaluate the compiled formula: SciPy's function ends too early near the branch point."""
    dtype = next(x.dtype for x in (z, k) if hasattr(x, "dtype"))
    return one_operation.evaluate(lambertw_p, [ArrayImpl(np.asarray(x, dtype)) for x in (z, k)], {})._value


lambertw_p: Primitive = elementwise(
    "lambertw", of=COMPLEX, arity=2, host=_on_host, hlo=in_double(_lambertw), cost=Cost.SPECIAL, jvp=(_slope, None)
)
"""Lambert's function of a complex number; the branch is the real part of the other operand."""


def lambertw(z: ArrayLike, k: ArrayLike = 0) -> Array:
    """Lambert's function, a solution w of ``w exp(w) = z``.

    Args:
      z: an array of floats or complex numbers; integers are converted.
      k: an array of integers that broadcasts against ``z``: the branch. For real z from -1 / e to 0 the results for 0
        and -1 are real; for positive z, that for 0.

    Returns:
      An array of complex numbers, of the broadcast shape. At z = 0 it is 0 on the principal branch, and -inf on others.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: ``k`` are no integers (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    By Halley's iteration (R. M. Corless et al., *On the Lambert W function*, Advances in Computational Mathematics 5,
    1996). On the cut the sign of a zero imaginary part tells the side. The derivative is infinite at the branch point
    z = -1 / e of the branches 0 and -1.

    >>> from pullback.scipy import special
    >>> print(f"{special.lambertw(1.0).real:.4f} {special.lambertw(-0.1, -1).real:.4f}")
    0.5671 -3.5772
    """
    z = inexact_operand("lambertw", z)
    order = as_array(k)
    if not dtypes.is_integer(order.dtype):
        raise DtypeError(f"lambertw: the branch k must be integers, got {dtypes.short_name(order.dtype)}")
    wide = np.result_type(z.dtype if z.dtype.kind in "fc" else np.float32, np.complex64)
    return strong(lambertw_p.bind(*(ops.convert_element_type(x, wide) for x in (z, order))))


__all__ = ["betainccinv", "betaincinv", "gammainccinv", "gammaincinv", "lambertw"]
