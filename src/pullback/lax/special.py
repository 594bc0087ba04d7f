"""Special functions of several operands, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

from typing import Any

from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.trace import Primitive
from pullback.lax.elementwise import same_rank
from pullback.primitives.operands import bind, operands
from pullback.primitives.special import incomplete
from pullback.primitives.special import others as special


def _checked(name: str, primitive: Primitive, *xs: Any, **params: Any) -> Any:
    arrays = operands(name, xs)
    same_rank(name, [typeof(x).shape for x in arrays])
    return bind(primitive, *arrays, **params)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete gamma function: the integral of t**(a - 1) exp(-t) from 0 to x, divided by Γ(a).

    Args:
      a: positive floats.
      x: floats that are not negative, of the dtype of ``a``, and of its shape or a shape that broadcasts against it.

    Returns:
      Numbers from 0 to 1; NaN outside the domain.

    Raises:
      DtypeError: the operands are not floats, or of two dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by both operands: those by ``a`` are integrals of the density times Bell's
    polynomials of the derivatives of its logarithm.

    >>> from pullback import grad, lax
    >>> print(f"{lax.igamma(1.0, 2.0):.5f} {grad(lax.igamma)(1.0, 2.0):.5f}")
    0.86466 -0.22083
    """
    return _checked("igamma", incomplete.igamma_p, a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute ``1 - igamma(a, x)`` without cancellation.

    Args:
      a, x: as for :func:`igamma`.

    Returns:
      An array of the dtype of ``a`` and ``x``.

    Raises:
      DtypeError: the operands are not floats, or of two dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.igammac(1.0, 2.0))
    0.13533528
    """
    return _checked("igammac", incomplete.igammac_p, a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of :func:`igamma` by ``a``, which has derivatives of any order too.

    Args:
      a, x: as for :func:`igamma`.

    Returns:
      An array of the dtype of ``a`` and ``x``.

    Raises:
      DtypeError: the operands are not floats, or of two dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.igamma_grad_a(1.0, 2.0))
    -0.22082542
    """
    return _checked("igamma_grad_a", incomplete.igamma_derivative_p, a, x, order=1)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a sample of the gamma distribution by its parameter.

    It is minus the derivative of the distribution function by ``a``, divided by the density: implicit
    reparameterisation (Figurnov, Mohamed and Mnih, *Implicit reparameterization gradients*, 2018, arXiv:1805.08498).

    Args:
      a: the parameters, positive floats.
      x: the samples, of the dtype of ``a``.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      DtypeError: the operands are not floats, or of two dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.random_gamma_grad(1.0, 2.0))
    1.6316915
    """
    arrays = operands("random_gamma_grad", (a, x))
    same_rank("random_gamma_grad", [typeof(one).shape for one in arrays])
    incomplete.igamma_p.abstract_eval_rule(*map(typeof, arrays))  # type: ignore[misc]
    return incomplete.random_gamma_grad(*arrays)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function: the integral of t**(a - 1) (1 - t)**(b - 1) to x, divided by B(a, b).

    Args:
      a, b: positive floats.
      x: floats from 0 to 1, of the dtype of the others, and of their shape or shapes that broadcast against each other.

    Returns:
      Numbers from 0 to 1; NaN outside the domain.

    Raises:
      DtypeError: the operands are not floats, or of different dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by all operands: those by ``a`` and ``b`` are integrals of the density times Bell's
    polynomials of the derivatives of its logarithm.

    >>> from pullback import lax
    >>> print(lax.betainc(1.0, 2.0, 0.5))
    0.75
    """
    return _checked("betainc", incomplete.betainc_p, a, b, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz's zeta function: the sum of (q + k)**-x over k = 0, 1, ...

    Args:
      x: floats above 1.
      q: floats of the dtype of ``x``, positive unless ``x`` is an integer.

    Returns:
      Infinity where ``x`` is 1, or ``q`` is 0, -1, ...; NaN outside the domain.

    Raises:
      DtypeError: the operands are not floats, or of two dtypes (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    It has derivatives of any order by both operands, where ``q`` is positive: those by ``x`` by Euler's and Maclaurin's
    formula (DLMF 25.11.5).

    >>> from pullback import lax
    >>> print(lax.zeta(2.0, 1.0))
    1.644934
    """
    return _checked("zeta", special.zeta_p, x, q)
