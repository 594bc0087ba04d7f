"""Differences of neighbouring elements of images: gradients and Laplacians."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError
from pullback.numpy.promotion import axis_index
from pullback.primitives import elementwise as ops
from pullback.scipy.ndimage.arguments import (
    axes_of,
    computed_in,
    finished,
    modes_of,
    number,
    numeric_image,
    per_axis,
    result_dtype,
)
from pullback.scipy.ndimage.correlations import line_filter
from pullback.scipy.ndimage.docs import of_image
from pullback.scipy.ndimage.smoothing import gaussian_filter
from pullback.scipy.spatial.powers import root

__all__ = [
    "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace", "laplace",
    "prewitt", "sobel",
]  # fmt: skip


def _edges(name: str, input: Any, axis: Any, output: Any, mode: Any, cval: Any, smooth: Sequence[float]) -> Array:
    """Return central differences along an axis, after sums with weights ``smooth`` along the other axes."""
    x = numeric_image(name, input)
    where, rank = axis_index(axis, len(x.shape), name), len(x.shape)
    modes, outside = modes_of(name, mode, rank), number(name, "cval", cval)
    dtype = result_dtype(name, output, x.dtype)
    x = line_filter(x, np.array([-1.0, 0.0, 1.0]), where, dtype, modes[where], outside)
    for other in range(rank):
        if other != where:
            x = line_filter(x, np.array(smooth), other, dtype, modes[other], outside)
    return as_array(x)


@of_image("numbers")
def sobel(
    input: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Sobel's filter of an image: differences along an axis, smoothed along the others by weights 1, 2, 1.

    Args:
      axis: the axis of the differences.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes, or an axis that it does not have (a TypeError and a ValueError).
      ArgumentError: an unknown mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.sobel(jnp.array([[0.0, 1.0, 4.0], [0.0, 1.0, 4.0]])))
    [[ 4. 16. 12.]
     [ 4. 16. 12.]]
    """
    return _edges("sobel", input, axis, output, mode, cval, (1.0, 2.0, 1.0))


@of_image("numbers")
def prewitt(
    input: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Prewitt's filter of an image: differences along an axis, summed over three elements along the others.

    Args:
      axis: the axis of the differences.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`sobel`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.prewitt(jnp.array([[0.0, 1.0, 4.0], [0.0, 1.0, 4.0]])))
    [[ 3. 12.  9.]
     [ 3. 12.  9.]]
    """
    return _edges("prewitt", input, axis, output, mode, cval, (1.0, 1.0, 1.0))


Derivative = Callable[..., ArrayLike]
"""A function of an image, an axis, the dtype of the result, a mode, a number, and more arguments."""


def _over_axes(
    name: str, input: Any, function: Any, output: Any, mode: Any, cval: Any, extra: Any, axes: Any,
    power: Callable[[Any], Any],
) -> tuple[Any, Any]:  # fmt: skip
    """Return the sum over axes of a power of derivatives, None if there are no axes; and the image."""
    x = numeric_image(name, input)
    if not callable(function):
        raise ArgumentError(f"{name}: the derivative must be a function, got {function!r}")
    where = axes_of(name, axes, len(x.shape))
    modes = modes_of(name, mode, len(where))
    arguments, options = extra
    dtype = result_dtype(name, output, x.dtype)
    total = None
    for axis, one in zip(where, modes, strict=True):
        term = finished(as_array(function(x, axis, dtype, one, cval, *arguments, **(options or {}))), dtype)
        term = power(term)
        total = term if total is None else ops.add(total, term)
    return total, finished(x, dtype)


@of_image("numbers")
def generic_laplace(
    input: ArrayLike, derivative2: Derivative, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, extra_arguments: Sequence[Any] = (), extra_keywords: Mapping[str, Any] | None = None, *,
    axes: Axes = None,
) -> Array:  # fmt: skip
    """The sum of second derivatives of an image along its axes, by a function for them.

    Args:
      derivative2: ``derivative2(input, axis, output, mode, cval, *extra_arguments, **extra_keywords)``, the second
        derivative along an axis.
      extra_arguments, extra_keywords: more arguments of the function.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or no function (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> def second(x, axis, output, mode, cval):
    ...     return ndimage.correlate1d(x, jnp.array([1.0, -2.0, 1.0]), axis, output, mode, cval)
    >>> print(ndimage.generic_laplace(jnp.array([0.0, 0.0, 1.0, 0.0]), second))
    [ 0.  1. -2.  1.]
    """
    extra = extra_arguments, extra_keywords
    total, x = _over_axes(
        "generic_laplace", input, derivative2, output, mode, cval, extra, axes, lambda term: term
    )  # fmt: skip
    return as_array(x if total is None else total)


def _second(x: Any, axis: int, output: Any, mode: str, cval: Any) -> Any:
    return line_filter(x, np.array([1.0, -2.0, 1.0]), axis, output, mode, number("laplace", "cval", cval))


@of_image("numbers")
def laplace(
    input: ArrayLike, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The Laplacian of an image: the sum of its second differences along its axes.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.laplace(jnp.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])))
    [[ 0.  1.  0.]
     [ 1. -4.  1.]
     [ 0.  1.  0.]]
    """
    extra: Any = (), None
    total, x = _over_axes("laplace", input, _second, output, mode, cval, extra, axes, lambda term: term)
    return as_array(x if total is None else total)


def _root(squares: Any) -> Any:
    """Return square roots; those of integers as floats."""
    dtype = squares.dtype
    return root(squares if dtypes.is_inexact(dtype) else ops.convert_element_type(squares, computed_in(dtype)))


@of_image("numbers")
def generic_gradient_magnitude(
    input: ArrayLike, derivative: Derivative, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, extra_arguments: Sequence[Any] = (), extra_keywords: Mapping[str, Any] | None = None, *,
    axes: Axes = None,
) -> Array:  # fmt: skip
    """The length of the gradient of an image, by a function for the derivatives.

    Where the gradient is zero, the derivative of its length is taken to be zero.

    Args:
      derivative: ``derivative(input, axis, output, mode, cval, *extra_arguments, **extra_keywords)``, the derivative
        along an axis.
      extra_arguments, extra_keywords: more arguments of the function.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or no function (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.array([[0.0, 4.0, 8.0], [3.0, 7.0, 11.0], [6.0, 10.0, 14.0]])
    >>> print(ndimage.generic_gradient_magnitude(image, ndimage.sobel)[1])
    [28.84441 40.      28.84441]
    """
    extra = extra_arguments, extra_keywords
    total, x = _over_axes("generic_gradient_magnitude", input, derivative, output, mode, cval, extra, axes, ops.square)
    if total is None:
        return as_array(x)
    return as_array(finished(_root(total), x.dtype))


@of_image("numbers")
def gaussian_laplace(
    input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike], output: DTypeLike | None = None,
    mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0, *, axes: Axes = None, **kwargs: Any,
) -> Array:  # fmt: skip
    """The Laplacian of an image smoothed by a Gaussian.

    Args:
      sigma: the standard deviation, in elements; one, or one for each of the axes. It may be differentiated.
      kwargs: more arguments of :func:`gaussian_filter`: ``truncate`` and ``radius``.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError, ConcretizationTypeError: as for :func:`gaussian_filter`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.zeros((5, 5)).at[2, 2].set(1.0)
    >>> print(ndimage.gaussian_laplace(image, 1.0)[2].round(3))
    [ 0.055 -0.096 -0.318 -0.096  0.055]
    """
    return _gaussian_terms("gaussian_laplace", input, sigma, output, mode, cval, axes, kwargs, 2, lambda term: term)


@of_image("numbers")
def gaussian_gradient_magnitude(
    input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike], output: DTypeLike | None = None,
    mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0, *, axes: Axes = None, **kwargs: Any,
) -> Array:  # fmt: skip
    """The length of the gradient of an image smoothed by a Gaussian.

    Where the gradient is zero, the derivative of its length is taken to be zero.

    Args:
      sigma: the standard deviation, in elements; one, or one for each of the axes. It may be differentiated.
      kwargs: more arguments of :func:`gaussian_filter`: ``truncate`` and ``radius``.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError, ConcretizationTypeError: as for :func:`gaussian_filter`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.zeros((5, 5)).at[2, 2].set(1.0)
    >>> print(ndimage.gaussian_gradient_magnitude(image, 1.0)[2].round(3))
    [0.038 0.096 0.    0.096 0.038]
    """
    name = "gaussian_gradient_magnitude"
    return _gaussian_terms(name, input, sigma, output, mode, cval, axes, kwargs, 1, ops.square)


def _gaussian_terms(
    name: str, input: Any, sigma: Any, output: Any, mode: Any, cval: Any, axes: Any, options: Mapping[str, Any],
    order: int, power: Callable[[Any], Any],
) -> Array:  # fmt: skip
    """Return the sum of second derivatives of a smoothed image, or the root of the sum of squares of first ones."""
    unknown = [key for key in options if key not in ("truncate", "radius")]
    if unknown:
        raise ArgumentError(f"{name} takes the options truncate and radius, got {unknown[0]!r}")
    x = numeric_image(name, input)
    where = axes_of(name, axes, len(x.shape))
    sigmas = per_axis(name, "sigma", sigma, len(where), number)
    modes = modes_of(name, mode, len(where))
    dtype = result_dtype(name, output, x.dtype)
    total = None
    for k in range(len(where)):
        orders = [order if i == k else 0 for i in range(len(where))]
        term = power(gaussian_filter(x, sigmas, orders, dtype, modes, cval, axes=where, **options))
        total = term if total is None else ops.add(total, term)
    if total is None:
        return as_array(finished(x, dtype))
    if order == 2:
        return as_array(total)
    return as_array(finished(_root(total), dtype))
