"""Filters of arrays by the elements in a window around each one: ranks, medians, and the noise of a neighbourhood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.source import warn
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known
from pullback.scipy.ndimage.arguments import image
from pullback.scipy.ndimage.ranks import rank_filter
from pullback.scipy.signal.arguments import promoted, signal
from pullback.scipy.signal.convolutions import correlate

__all__ = ["medfilt", "medfilt2d", "order_filter", "wiener"]


def _array(name: str, x: Any) -> Any:
    """Convert an operand, which may be a list, to an array of real numbers with at least one axis."""
    x = image(name, x, least=0)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(x.dtype)}")
    return x if x.shape else pnp.reshape(x, (1,))


def _sizes(name: str, what: str, value: Any, rank: int) -> list[int]:
    """Return the sizes of a window along all axes, odd ints; ``value`` is None for 3, an int, or a sequence."""
    value = 3 if value is None else value
    given = list(value) if isinstance(value, (list, tuple)) or np.ndim(value) else [value] * rank
    sizes = [known_int(name, what, v) for v in given]
    if len(sizes) != rank:
        raise ArgumentError(f"{name}: {what} must be an int, or {rank} ints for the axes, got {quote(value)}")
    if any(size < 1 or size % 2 == 0 for size in sizes):
        raise ArgumentError(f"{name}: {what} must be odd and positive, so that a window has a middle, got {sizes}")
    return sizes


def order_filter(a: ArrayLike, domain: ArrayLike, rank: int) -> Array:
    """Return for each element that of a given rank in a window around it; elements beyond the borders are zeros.

    Args:
      a: an array of real numbers of any shape.
      domain: which elements the window has: a mask with as many axes as ``a``, of odd sizes.
      rank: the rank, an int from 0 for the least element.

    Returns:
      An array of the shape and dtype of ``a``. The derivative is that of the element.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ArgumentError: a ``domain`` of even size, or a rank out of range (a TypeError and a ValueError).
      ShapeError: a ``domain`` of another number of axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.order_filter(jnp.array([3.0, 1.0, 5.0, 4.0]), jnp.ones(3), 2))
    [3. 5. 5. 5.]
    """
    x, mask = _array("order_filter", a), known(domain)
    if mask is None:
        raise ArgumentError("order_filter: the domain must be known, but it is traced")
    if mask.ndim != len(x.shape):
        raise ShapeError(f"order_filter: the domain must have {len(x.shape)} axes, got shape {mask.shape}")
    if any(size % 2 == 0 for size in mask.shape):
        raise ArgumentError(f"order_filter: the domain must have odd sizes, got shape {mask.shape}")
    position, count = known_int("order_filter", "rank", rank), int(np.count_nonzero(mask))
    if not 0 <= position < count:
        raise ArgumentError(
            f"order_filter: the rank must be from 0 to {count - 1} in a domain of {count}, got {position}"
        )
    return rank_filter(x, position, footprint=mask != 0, mode="constant")


def _median(name: str, x: Any, kernel_size: Any) -> Array:
    sizes = _sizes(name, "kernel_size", kernel_size, len(x.shape))
    if any(size > n for size, n in zip(sizes, x.shape, strict=True)):
        warn(f"{name}: the window {sizes} is larger than the array, of shape {x.shape}; zeros are added", UserWarning)
    return rank_filter(x, math.prod(sizes) // 2, size=sizes, mode="constant")


def medfilt(volume: ArrayLike, kernel_size: int | Sequence[int] | None = None) -> Array:
    """Return for each element the median of a box around it; elements beyond the borders are zeros.

    Args:
      volume: an array of real numbers of any shape.
      kernel_size: the sizes of the box, an odd int, or one for each axis; 3 by default.

    Returns:
      An array of the shape and dtype of ``volume``. The derivative is that of the element.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ArgumentError: sizes that are not odd, or too many of them (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.medfilt(jnp.array([1.0, 2.0, 90.0, 3.0, 4.0])))
    [1. 2. 3. 4. 3.]
    """
    return _median("medfilt", _array("medfilt", volume), kernel_size)


def medfilt2d(input: ArrayLike, kernel_size: int | Sequence[int] = 3) -> Array:
    """Return for each element of a matrix the median of a box around it; elements beyond the borders are zeros.

    Args:
      input: an array of real numbers with 2 axes.
      kernel_size: the sizes of the box, an odd int, or two.

    Returns:
      An array of the shape and dtype of ``input``. The derivative is that of the element.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ShapeError: another number of axes (a TypeError and a ValueError).
      ArgumentError: sizes that are not odd, or too many of them (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.medfilt2d(jnp.array([[1.0, 2.0, 3.0], [4.0, 50.0, 6.0], [7.0, 8.0, 9.0]])))
    [[0. 2. 0.]
     [2. 6. 3.]
     [0. 6. 0.]]
    """
    x = _array("medfilt2d", input)
    if len(x.shape) != 2:
        raise ShapeError(f"medfilt2d takes an array of 2 axes, got shape {x.shape}")
    return _median("medfilt2d", x, kernel_size)


def wiener(im: ArrayLike, mysize: int | Sequence[int] | None = None, noise: ArrayLike | None = None) -> Array:
    """Return an array without noise, by Wiener's filter: the mean of a window, plus a part of the difference from it.

    Args:
      im: an array of real numbers of any shape; integers are converted.
      mysize: the sizes of the window, an int, or one for each axis; 3 by default. Elements beyond the borders are
        zeros.
      noise: the variance of the noise, a number; by default the mean of the variances of all windows.

    Returns:
      Floats of the shape of ``im``: ``mean + (1 - noise / variance) (im - mean)`` where the variance of a window is
      more than that of the noise, elsewhere ``mean``.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ShapeError: a number, or a ``noise`` that is none (a TypeError and a ValueError).
      ArgumentError: sizes that are not positive, or too many of them (a TypeError and a ValueError).

    Source: Lim 1990, *Two-Dimensional Signal and Image Processing*, section 9.2.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.wiener(jnp.array([0.0, 1.0, 0.0, 9.0, 9.0, 8.0])).round(2))
    [0.33 0.33 1.75 7.58 8.67 6.77]
    """
    x = signal("wiener", im)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"wiener takes real numbers, got {dtypes.short_name(x.dtype)}")
    value: Any = 3 if mysize is None else mysize
    given = list(value) if isinstance(value, (list, tuple)) or np.ndim(value) else [value] * len(x.shape)
    sizes = [known_int("wiener", "mysize", v) for v in given]
    if len(sizes) != len(x.shape) or min(sizes) < 1:
        raise ArgumentError(f"wiener: mysize must be a positive int, or {len(x.shape)} of them, got {quote(mysize)}")
    ones, count = pnp.ones(sizes, x.dtype), math.prod(sizes)
    mean = correlate(x, ones, "same") / count
    variance = correlate(ops.square(x), ones, "same") / count - ops.square(mean)
    power: Any = pnp.mean(variance) if noise is None else promoted("wiener", noise)[0]
    if power.shape:
        raise ShapeError(f"wiener: the noise must be a number, got shape {power.shape}")
    above = variance > power
    kept = 1 - power / pnp.where(above, variance, 1)
    return pnp.where(above, mean + kept * (x - mean), mean)
