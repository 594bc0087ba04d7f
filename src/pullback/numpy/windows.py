"""Window functions, and the Bessel function in the Kaiser window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import AllocationError, DtypeError, ShapeError
from pullback.numpy.promotion import inexact_operand, known_int, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import made
from pullback.primitives.special import bessel

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


_MOST = 1 << 40
"""More points than any memory holds."""


def _length(name: str, M: Any) -> int:
    n = known_int(name, "M", M)
    if n < 0:
        raise ShapeError(f"{name}: the number of points M must not be negative, got {n}")
    if n > _MOST:
        raise AllocationError(f"{name}: no memory for {n} points")
    return n


def _window(name: str, function: Callable[[int], Any], M: Any) -> Any:
    return made(ArrayImpl(np.asarray(function(_length(name, M)), dtypes.default_float())))


def bartlett(M: int) -> Array:
    """The Bartlett window: a triangle that is zero at both ends.

    Args:
      M: the number of points.

    Returns:
      A vector of ``M`` floats.

    Raises:
      ShapeError: ``M`` is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window("bartlett", np.bartlett, M)


def blackman(M: int) -> Array:
    """The Blackman window: ``0.42 - 0.5 cos(2 pi n / (M-1)) + 0.08 cos(4 pi n / (M-1))``.

    Args:
      M: the number of points, an int that is not negative.

    Returns:
      A vector of ``M`` floats.

    Raises:
      ShapeError: ``M`` is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.blackman(5).round(2) + 0)
    [0.   0.34 1.   0.34 0.  ]
    """
    return _window("blackman", np.blackman, M)


def hamming(M: int) -> Array:
    """The Hamming window: ``0.54 - 0.46 cos(2 pi n / (M-1))``.

    Args:
      M: the number of points, an int that is not negative.

    Returns:
      A vector of ``M`` floats.

    Raises:
      ShapeError: ``M`` is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.hamming(3))
    [0.08 1.   0.08]
    """
    return _window("hamming", np.hamming, M)


def hanning(M: int) -> Array:
    """The Hann window: ``0.5 - 0.5 cos(2 pi n / (M-1))``.

    Args:
      M: the number of points, an int that is not negative.

    Returns:
      A vector of ``M`` floats.

    Raises:
      ShapeError: ``M`` is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.hanning(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window("hanning", np.hanning, M)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Args:
      x: real numbers, of any shape; integers become floats.

    Returns:
      Floats of the shape of ``x``.

    Raises:
      DtypeError: ``x`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.i0(jnp.array([0.0, 1.0])))
    [1.        1.2660658]
    """
    x = inexact_operand("i0", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"i0 takes real numbers, got {dtypes.short_name(x.dtype)}")
    return bessel.i0_p.bind(x)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window, which is narrower for larger ``beta``.

    Args:
      M: the number of points.
      beta: a real number, which may be traced; or an array that broadcasts with a vector of ``M``.

    Returns:
      ``i0(beta sqrt(1 - (2n / (M-1) - 1)**2)) / i0(beta)`` for each n from 0 to M - 1: a vector of ``M`` floats.

    Raises:
      ShapeError: ``M`` is negative or not an int (a TypeError and a ValueError).

    Method: Kaiser and Schafer 1980. Both values of the Bessel function are scaled by an exponential, so that neither
    overflows.

    >>> import pullback.numpy as jnp
    >>> print(jnp.kaiser(3, 5.0))
    [0.03671089 1.         0.03671089]
    """
    n = _length("kaiser", M)
    size = strong(inexact_operand("kaiser", beta))
    if n < 2:
        return shapes.full((n,), 1, size.dtype)
    points = np.linspace(-1.0, 1.0, n)
    half = np.sqrt(np.maximum(1.0 - points * points, 0.0)).astype(size.dtype)
    inner = ops.mul(half, size)
    # exp(|inner| - |beta|) times the quotient of the scaled functions.
    scale = ops.exp(ops.mul(ops.abs(size), np.asarray(half - 1, size.dtype)))
    return ops.mul(scale, ops.div(bessel.bessel_i0e_p.bind(inner), bessel.bessel_i0e_p.bind(size)))
