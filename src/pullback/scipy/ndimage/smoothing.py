"""Means and Gaussian filters of images, and the derivatives of smoothed images."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ConcretizationTypeError
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known
from pullback.scipy.ndimage.arguments import (
    axes_of,
    by_scipy,
    computed_in,
    finished,
    fixed,
    mode_of,
    modes_of,
    number,
    numeric_image,
    origins_of,
    per_axis,
    result_dtype,
    size_of,
)
from pullback.scipy.ndimage.correlations import line_filter
from pullback.scipy.ndimage.docs import of_image

__all__ = ["gaussian_filter", "gaussian_filter1d", "uniform_filter", "uniform_filter1d"]


def _mean(x: Any, size: int, axis: int, dtype: Any, mode: str, cval: Any, origin: int) -> Any:
    """Return the means of windows along an axis; the arguments are checked."""
    found = by_scipy(
        "uniform_filter1d", dtype, x, finite=True, size=size, axis=axis, mode=mode, cval=cval, origin=origin
    )
    if found is not None:
        return found
    wide = computed_in(x.dtype)
    total = line_filter(ops.convert_element_type(x, wide), np.ones(size), axis, wide, mode, cval, origin)
    return finished(ops.div(total, float(size)), dtype)


@of_image("numbers")
def uniform_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """The means of windows along an axis of an image.

    Args:
      axis: the axis.

    Returns:
      An array of the shape of ``input``. Means are truncated where the result is of integers.

    Raises:
      ShapeError: an image without axes, or a size that is not positive (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or an origin outside of the window (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.uniform_filter1d(jnp.array([3.0, 0.0, 0.0, 6.0]), 3))
    [2. 1. 2. 4.]
    """
    name = "uniform_filter1d"
    x = numeric_image(name, input)
    where = axis_index(axis, len(x.shape), name)
    length = size_of(name, "size", size)
    (offset,) = origins_of(name, origin, (length,))
    dtype = result_dtype(name, output, x.dtype)
    return as_array(_mean(x, length, where, dtype, mode_of(name, mode), number(name, "cval", cval), offset))


@of_image("numbers")
def uniform_filter(
    input: ArrayLike, size: int | Sequence[int] = 3, output: DTypeLike | None = None,
    mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The means of windows of an image.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`uniform_filter1d`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.uniform_filter(jnp.diag(jnp.array([9.0, 9.0, 9.0])), 3))
    [[5. 3. 1.]
     [3. 3. 3.]
     [1. 3. 5.]]
    """
    name = "uniform_filter"
    x = numeric_image(name, input)
    where = axes_of(name, axes, len(x.shape))
    sizes = per_axis(name, "size", size, len(where), lambda n, what, v: size_of(n, what, v))
    offsets, modes = origins_of(name, origin, sizes), modes_of(name, mode, len(where))
    outside, dtype = number(name, "cval", cval), result_dtype(name, output, x.dtype)
    for axis, length, offset, one in zip(where, sizes, offsets, modes, strict=True):
        if length > 1:
            x = _mean(x, length, axis, dtype, one, outside, offset)
    return as_array(finished(x, dtype))


# Gaussian filters ----------------------------------------------------------------------------------------------------


def _radius(name: str, sigma: Any, truncate: float, radius: Any) -> int:
    """Return the radius of a Gaussian window: ``radius``, or ``truncate`` standard deviations where this is None."""
    if radius is not None:
        found = known_int(name, "radius", radius)
        if found < 0:
            raise ArgumentError(f"{name}: radius must not be negative, got {found}")
        return found
    value = sigma if isinstance(sigma, (int, float)) else known(sigma)
    if value is None:
        raise ConcretizationTypeError(
            f"{name}: sigma is traced, so that the size of the window is not known; pass radius, the number of "
            f"elements on each side"
        )
    if not math.isfinite(value):
        raise ArgumentError(f"{name}: sigma must be finite, got {float(value)}")
    return int(truncate * float(value) + 0.5)


def _gaussian(module: Any, sigma: Any, order: int, radius: int, x: Any) -> Any:
    """Return the weights of the derivative of some order of a Gaussian, as a correlation takes them.

    The derivative is a polynomial times the Gaussian: q of one order is ``q' - q x / sigma**2`` of the order before.

    Args:
      module: ``np`` or ``pullback.numpy``.
      sigma: the standard deviation.
      order: the order of the derivative.
      radius: the number of elements on each side.
      x: the positions, from ``-radius`` to ``radius``.
    """
    precision = 1.0 / (sigma * sigma)
    weights = module.exp(-0.5 * precision * x**2)
    weights = weights / module.sum(weights)
    terms: list[Any] = [1.0]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(terms)][1:]
        moved = [-precision * c for c in terms]
        terms = [0.0, *moved]
        for k, c in enumerate(slope):
            terms[k] = terms[k] + c
    if order:
        polynomial = sum(c * x**k for k, c in enumerate(terms))
        weights = weights * polynomial
    return weights[::-1]


def _along(
    name: str, x: Any, sigma: Any, axis: int, order: Any, dtype: Any, mode: str, cval: Any, truncate: float, radius: Any
) -> Any:
    degree = known_int(name, "order", order)
    if degree < 0:
        raise ArgumentError(f"{name}: order must not be negative, got {degree}")
    if dtypes.is_complex(getattr(sigma, "dtype", np.dtype(float))) or isinstance(sigma, complex):
        raise ArgumentError(f"{name}: sigma must be a real number, got {quote(sigma)}")
    reach = _radius(name, sigma, truncate, radius)
    if isinstance(sigma, (int, float)):
        if sigma < 0 or (not sigma and reach):
            raise ArgumentError(f"{name}: sigma must be positive, got {sigma}")
        weights = _known_weights(float(sigma), degree, reach) if reach else _single(sigma, degree)
    else:
        wide = computed_in(x.dtype, sigma.dtype)
        wide = dtypes.to_real(wide)
        scale = ops.convert_element_type(sigma, wide)
        positions = np.arange(-reach, reach + 1.0)
        weights = _gaussian(pnp, scale, degree, reach, as_array(positions.astype(wide)))
    return line_filter(x, weights, axis, dtype, mode, cval)


@functools.lru_cache(maxsize=64)  # a filter of an image has the same weights along all axes
def _known_weights(sigma: float, order: int, radius: int) -> np.ndarray[Any, Any]:
    """Return the weights for a known standard deviation; nobody may write to them."""
    weights: np.ndarray[Any, Any] = _gaussian(np, sigma, order, radius, np.arange(-radius, radius + 1.0))
    weights.flags.writeable = False
    return weights


def _single(sigma: Any, order: int) -> np.ndarray[Any, Any]:
    """Return the weights of a window of one element, at which the Gaussian is 1."""
    if order and not sigma:
        raise ArgumentError("gaussian_filter: derivatives need a positive sigma, got 0")
    return _gaussian(np, float(sigma), order, 0, np.zeros(1)) if order else np.ones(1)


@of_image("numbers")
def gaussian_filter1d(
    input: ArrayLike, sigma: ArrayLike, axis: int = -1, order: int = 0, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Array:  # fmt: skip
    """An image smoothed by a Gaussian along an axis, or a derivative of it.

    Args:
      sigma: the standard deviation, in elements. It may be differentiated.
      axis: the axis.
      order: the order of the derivative.
      truncate: how many standard deviations the window has on each side.
      radius: how many elements it has instead. A compiled function of ``sigma`` needs it.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or a sigma that is not positive (a TypeError and a ValueError).
      ConcretizationTypeError: ``sigma`` is traced and there is no ``radius`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.gaussian_filter1d(jnp.array([0.0, 0.0, 1.0, 0.0, 0.0]), 1.0).round(3))
    [0.058 0.242 0.399 0.242 0.058]
    """
    name = "gaussian_filter1d"
    x = numeric_image(name, input)
    where = axis_index(axis, len(x.shape), name)
    dtype = result_dtype(name, output, x.dtype)
    out = _along(
        name, x, number(name, "sigma", sigma), where, order, dtype, mode_of(name, mode), number(name, "cval", cval),
        fixed(name, "truncate", truncate), radius,
    )  # fmt: skip
    return as_array(out)


@of_image("numbers")
def gaussian_filter(
    input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike], order: int | Sequence[int] = 0,
    output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0,
    truncate: float = 4.0, *, radius: int | Sequence[int] | None = None, axes: Axes = None,
) -> Array:  # fmt: skip
    """An image smoothed by a Gaussian, or a derivative of it.

    Args:
      sigma: the standard deviation, in elements; one, or one for each of the axes. It may be differentiated. An axis is
        left as it is where it is known to be zero.
      order: the order of the derivative; one, or one for each of the axes.
      truncate: how many standard deviations the window has on each side.
      radius: how many elements it has instead; one, or one for each of the axes. A compiled function of ``sigma`` needs
        it.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes, or options for another number of axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or a negative sigma (a TypeError and a ValueError).
      ConcretizationTypeError: ``sigma`` is traced and there is no ``radius`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import ndimage
    >>> image = jnp.zeros((5, 5)).at[2, 2].set(1.0)
    >>> print(ndimage.gaussian_filter(image, 1.0)[2].round(3))
    [0.023 0.097 0.159 0.097 0.023]
    >>> print(grad(lambda sigma: ndimage.gaussian_filter(image, sigma)[2, 2])(1.0).round(2))
    -0.32
    """
    name = "gaussian_filter"
    x = numeric_image(name, input)
    where = axes_of(name, axes, len(x.shape))
    count = len(where)
    sigmas = per_axis(name, "sigma", sigma, count, number)
    orders = per_axis(name, "order", order, count)
    modes = modes_of(name, mode, count)
    radii = per_axis(name, "radius", radius, count, lambda n, what, v: v)
    outside, dtype = number(name, "cval", cval), result_dtype(name, output, x.dtype)
    width = fixed(name, "truncate", truncate)
    for axis, one, degree, kind, reach in zip(where, sigmas, orders, modes, radii, strict=True):
        if isinstance(one, (int, float)) and 0 <= one <= 1e-15:
            continue
        x = _along(name, x, one, axis, degree, dtype, kind, outside, width, reach)
    return as_array(finished(x, dtype))
