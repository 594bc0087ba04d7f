"""The multinomial distribution, of counts of several outcomes."""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.faces import face
from pullback.numpy.promotion import operand
from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import xlogy_p
from pullback.scipy.special.operands import real_operand, real_operands


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithms of the probabilities of the multinomial distribution.

    Args:
      x: an array (..., k) of counts.
      n: an array of the numbers of trials, of a shape that broadcasts against ``x.shape[:-1]``.
      p: an array (..., k) of the probabilities of the outcomes.

    Returns:
      An array of floats: -inf where ``x`` are not counts whose sum is ``n``, and NaN where a probability is not from 0
      to 1.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    The probabilities are taken as they are, as in JAX; SciPy computes the last from the others. As
    ``scipy.stats.multinomial.logpmf``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multinomial
    >>> print(f"{multinomial.logpmf(jnp.array([1, 2, 1]), 4, jnp.array([0.2, 0.5, 0.3])):.4f}")
    -1.7148
    """
    p = real_operand("multinomial.logpmf", p)
    x, n = (_counts(v, p.dtype) for v in (x, n))
    x, n, p = real_operands("multinomial.logpmf", x, n, p)
    counts = (x >= 0) & (pnp.floor(x) == x) & (x < math.inf)
    safe = pnp.where(counts, x, 0)
    inside = pnp.all(counts, -1) & (pnp.sum(safe, -1) == n)
    terms = xlogy_p.bind(*pnp.broadcast_arrays(safe, p)) - ops.lgamma_p.bind(safe + 1)
    value = ops.lgamma_p.bind(pnp.where(inside, n, 1) + 1) + pnp.sum(terms, -1)
    valid = pnp.all((p >= 0) & (p <= 1), -1)
    return pnp.where(valid, pnp.where(inside, value, -math.inf), math.nan)


def _counts(x: ArrayLike, dtype: Any) -> Array:
    """Convert the counts ``x`` to ``dtype``, the dtype of the probabilities, if they are integers.

    So counts and probabilities have one dtype also under strict promotion.
    """
    x = operand("multinomial.logpmf", x)
    return x if dtypes.is_inexact(x.dtype) else ops.convert_element_type(x, dtype)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probabilities of the multinomial distribution: the exponential of :func:`logpmf`.

    Args:
      x: an array (..., k) of counts.
      n: an array of the numbers of trials.
      p: an array (..., k) of the probabilities of the outcomes.

    Returns:
      An array of floats.

    Raises:
      ShapeError, OperandError, DtypeError: see :func:`logpmf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multinomial
    >>> print(f"{multinomial.pmf(jnp.array([1, 2, 1]), 4, jnp.array([0.2, 0.5, 0.3])):.4f}")
    0.1800
    """
    return pnp.exp(logpmf(x, n, p))


__all__ = ["logpmf", "pmf"]
face(globals())
