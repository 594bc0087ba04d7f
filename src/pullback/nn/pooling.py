"""Pooling: the mean, the maximum or the minimum of windows in space."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.numpy.promotion import inexact_operand, operand, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.signals.window_reductions import Windows, reduce_window_extreme, reduce_window_sum, windows_on

Padding = str | Sequence[tuple[int, int]]


def _windows(name: str, shape: tuple[int, ...], window_shape: Any, strides: Any, padding: Any) -> Windows:
    """Make the windows of a pooling operation, along the spatial axes of an operand with axes (batch, space, features).

    Args:
      name: the name of the function, for errors.
      shape: the shape of the operand; there may be any number of batch axes.
      window_shape, strides, padding: the sizes, strides and padding of the windows along the spatial axes.
    """
    sizes = shape_tuple(window_shape, f"nn.{name}")
    before = len(shape) - len(sizes) - 1
    if before < 0:
        raise ShapeError(
            f"nn.{name}: windows of {len(sizes)} axes need an operand with any number of batch axes, these axes and "
            f"an axis of features, got shape {shape}"
        )
    strides = (1,) * len(sizes) if strides is None else shape_tuple(strides, f"nn.{name}")
    if len(strides) != len(sizes):
        raise ShapeError(f"nn.{name}: strides must be {len(sizes)} integers, one for each spatial axis, got {strides}")
    ones = (1,) * before
    if not isinstance(padding, str):
        pairs = tuple(padding) if isinstance(padding, Iterable) else ()
        if len(pairs) != len(sizes):
            raise ShapeError(f"nn.{name}: padding must be {len(sizes)} pairs, one for each spatial axis, got {padding}")
        padding = (*[(0, 0)] * before, *pairs, (0, 0))
    return windows_on(shape, f"nn.{name}", (*ones, *sizes, 1), (*ones, *strides, 1), padding)


def avg_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Array:
    """Average the elements of each window.

    Args:
      inputs: an array with axes (batch, space, features), and any number of batch axes.
      window_shape: the size of a window along each axis of space.
      strides: the distances between windows; 1 by default.
      padding: ``VALID``, ``SAME``, ``SAME_LOWER``, or a pair for each axis of space: the numbers of zeros before and
        after.
      count_include_pad: whether the zeros count as elements of a window.

    Returns:
      An array of the same axes.

    Raises:
      ShapeError, ArgumentError: the arguments do not fit the operand.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.avg_pool(jnp.arange(4.0).reshape(1, 4, 1), (2,), (2,))[0, :, 0])
    [0.5 2.5]
    """
    x = inexact_operand("nn.avg_pool", inputs)
    windows = _windows("avg_pool", x.shape, window_shape, strides, padding)
    total = reduce_window_sum(x, windows)
    if flag("nn.avg_pool", "count_include_pad", count_include_pad):
        return ops.div(total, math.prod(windows.sizes))
    space = range(len(x.shape) - 1 - len(tuple(window_shape)), len(x.shape) - 1)
    shape = tuple(n if a in space else 1 for a, n in enumerate(x.shape))
    return ops.div(total, reduce_window_sum(shapes.full(shape, 1, x.dtype), windows))


def max_pool(
    inputs: ArrayLike, window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID"
) -> Array:
    """The largest element of each window; of several the first has the derivative.

    Args:
      inputs: an array with axes (batch, space, features), and any number of batch axes.
      window_shape: the size of a window along each axis of space.
      strides: the distances between windows; 1 by default.
      padding: ``VALID``, ``SAME``, ``SAME_LOWER``, or a pair for each axis of space; padding is never the largest.

    Returns:
      An array of the same axes.

    Raises:
      DtypeError, ShapeError, ArgumentError: the arguments do not fit the operand, which must be real.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.max_pool(jnp.arange(4.0).reshape(1, 4, 1), (2,), (2,))[0, :, 0])
    [1. 3.]
    """
    return _extreme_pool("max_pool", inputs, window_shape, strides, padding, largest=True)


def min_pool(
    inputs: ArrayLike, window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID"
) -> Array:
    """The smallest element of each window; of several the first has the derivative.

    Args:
      inputs: an array with axes (batch, space, features), and any number of batch axes.
      window_shape: the size of a window along each axis of space.
      strides: the distances between windows; 1 by default.
      padding: ``VALID``, ``SAME``, ``SAME_LOWER``, or a pair for each axis of space; padding is never the smallest.

    Returns:
      An array of the same axes.

    Raises:
      DtypeError, ShapeError, ArgumentError: the arguments do not fit the operand, which must be real.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.min_pool(jnp.arange(4.0).reshape(1, 4, 1), (2,), (2,))[0, :, 0])
    [0. 2.]
    """
    return _extreme_pool("min_pool", inputs, window_shape, strides, padding, largest=False)


def _extreme_pool(
    name: str, inputs: Any, window_shape: Sequence[int], strides: Sequence[int] | None, padding: Padding, largest: bool
) -> Any:
    x = operand(f"nn.{name}", inputs)
    return reduce_window_extreme(x, _windows(name, x.shape, window_shape, strides, padding), largest)
