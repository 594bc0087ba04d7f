"""Resampling of images: one product along each axis with a matrix of weights."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import PrecisionLike, ShapeLike
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.numpy.promotion import axis_index, inexact_operand, operand, quote, sequence, shape_tuple, strong

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
face(globals())


class ResizeMethod(enum.Enum):
    """Methods of interpolation between the elements of an image.

    >>> from pullback import image
    >>> image.ResizeMethod.from_string("bicubic")
    <ResizeMethod.CUBIC: 4>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with a name.

        Raises:
          ArgumentError: an unknown method (a TypeError and a ValueError).
        """
        found = _NAMES.get(s) if isinstance(s, str) else None
        if found is None:
            raise ArgumentError(f"image: unknown method {quote(s)}; the methods are {', '.join(_NAMES)}")
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


def resize(
    image: ArrayLike,
    shape: ShapeLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Resize an image.

    Args:
      image: an array of any number of axes; integers and booleans are converted to floats, except by ``"nearest"``.
      shape: the shape of the result, with as many axes. Axes whose size stays are unchanged.
      method: a :class:`ResizeMethod`, or its name: ``"nearest"``; ``"linear"``; ``"cubic"``, with Keys' kernel;
        ``"cubic-pytorch"``, the same when antialiasing and as PyTorch without; ``"lanczos3"``, ``"lanczos5"``;
        ``"area"``, the mean of the elements that a new element covers.
      antialias: whether a smaller image has weighted means of all elements, which avoids false patterns. ``"nearest"``
        and ``"area"`` ignore it.
      precision: the precision of the products, as for ``lax.dot_general``.

    Returns:
      An array of the shape; of the dtype of ``image`` if it is of floats or complex numbers, or by ``"nearest"``.

    Raises:
      ShapeError: another number of axes, a negative size, or an image without elements (a TypeError and a ValueError).
      ArgumentError: an unknown method (a TypeError and a ValueError).

    Sources: Keys 1981, "Cubic convolution interpolation for digital image processing"; Turkowski 1990, "Filters for
    common resampling tasks".

    >>> import pullback.numpy as jnp
    >>> from pullback import image
    >>> print(image.resize(jnp.array([0.0, 1.0]), (4,), "linear"))
    [0.   0.25 0.75 1.  ]
    """
    antialias = flag("resize", "antialias", antialias)
    method = _method(method)
    convert = operand if method is ResizeMethod.NEAREST else inexact_operand
    x = strong(convert("image.resize", image))
    shape = _shape("image.resize", shape, x)
    if 0 in shape:
        return pnp.zeros(shape, x.dtype)
    axes = [d for d, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
    # Axes that shrink come first, then those that grow, the leading axis last: its product needs no transposition.
    for d in sorted(axes, key=lambda d: (shape[d] / x.shape[d], -d)):
        if method is ResizeMethod.NEAREST:
            n, m = x.shape[d], shape[d]
            x = pnp.take(x, (2 * np.arange(m) + 1) * n // (2 * m), d)
        else:
            bands = _bands(x.shape[d], shape[d], method, bool(antialias), _real(x.dtype))
            x = _apply(x, bands, d, precision)
    return x


def scale_and_translate(
    image: ArrayLike,
    shape: ShapeLike,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Scale and translate an image along some of its axes.

    The element at ``y`` moves to ``y * scale + translation``, where the first element is at 0.5. Elements from outside
    of the image are zero, except with ``"cubic-pytorch"`` without antialiasing, which repeats the edge.

    Args:
      image: an array of any number of axes; integers and booleans are converted to floats.
      shape: the shape of the result, with as many axes; along axes that are not scaled it is the size of the image.
      spatial_dims: the axes to scale, a sequence of ints.
      scale, translation: arrays of shape (len(spatial_dims),). The result is differentiable in both.
      method, antialias, precision: as in :func:`resize`; ``"nearest"`` is not supported.

    Returns:
      An array of the shape, and of the dtype of ``image`` if it is inexact.

    Raises:
      ShapeError: the shapes do not fit, axes do not exist or occur twice, or the image has no elements (a TypeError and
        a ValueError).
      ArgumentError: an unknown method, or ``"nearest"`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import image
    >>> x, scale, translation = jnp.array([1.0, 2.0, 3.0]), jnp.ones(1), jnp.array([1.0])
    >>> print(image.scale_and_translate(x, (3,), (0,), scale, translation, "linear"))
    [0. 1. 2.]
    """
    antialias = flag("scale_and_translate", "antialias", antialias)
    name = "image.scale_and_translate"
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ArgumentError(f"{name}: method 'nearest' is not supported; use 'linear', or image.resize")
    x = strong(inexact_operand(name, image))
    shape = _shape(name, shape, x)
    axes = [axis_index(d, len(shape), name) for d in sequence(name, spatial_dims)]
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name}: an axis occurs twice in spatial_dims, {quote(spatial_dims)}")
    for d, (n, m) in enumerate(zip(x.shape, shape, strict=True)):
        if n != m and d not in axes:
            raise ShapeError(f"{name}: axis {d} is not in spatial_dims, so that its size must stay {n}, got {m}")
    scales, moves = (_vector(name, v, len(axes)) for v in (scale, translation))
    for i, d in enumerate(axes):
        dtype = _real(x.dtype)
        factor, move = (pnp.asarray(v[i], dtype) for v in (scales, moves))
        matrix = _weights(pnp, x.shape[d], shape[d], factor, move, method, bool(antialias), dtype)
        x = _apply(x, ((0, x.shape[d], matrix),), d, precision)
    return x


# Arguments -----------------------------------------------------------------------------------------------------------


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _shape(name: str, shape: Any, x: Any) -> tuple[int, ...]:
    sizes = shape_tuple(shape, name)
    if len(sizes) != len(x.shape):
        raise ShapeError(
            f"{name}: the shape of the result must have a size for each axis of the image, also for unchanged axes; "
            f"got {sizes} for an image of shape {x.shape}"
        )
    if 0 in x.shape and any(n == 0 < m for n, m in zip(x.shape, sizes, strict=True)) and 0 not in sizes:
        raise ShapeError(f"{name}: an image of shape {x.shape} has no elements, so it cannot be resized to {sizes}")
    return sizes


def _vector(name: str, v: Any, count: int) -> Any:
    v = pnp.asarray(v)
    if v.shape != (count,):
        raise ShapeError(f"{name}: scale and translation must have shape ({count},), like spatial_dims, got {v.shape}")
    return v


def _real(dtype: Any) -> Any:
    return np.zeros((), dtype).real.dtype if dtypes.is_complex(dtype) else dtype


# Weights -------------------------------------------------------------------------------------------------------------


Bands = tuple[tuple[int, int, Any], ...]
"""The weights of consecutive bands of new elements: the range of the elements that count, and a matrix.
"""

BAND = 64
"""The least number of new elements in a band."""


def _apply(x: Any, bands: Bands, axis: int, precision: Any) -> Any:
    """Multiply an array along ``axis`` by a matrix of weights, which is divided into bands.

    Args:
      x: the array.
      bands: (first, last, weights) for each band. The band computes consecutive new elements, in order, from the old
        elements ``first`` to ``last - 1``.
      axis: the axis.
      precision: the precision of the matrix products.
    """
    rows = pnp.moveaxis(x, axis, 0) if axis else x
    rest = rows.shape[1:]
    rows = rows.reshape(rows.shape[0], math.prod(rest))
    products = []
    for first, last, weights in bands:
        source = rows if last - first == rows.shape[0] else rows[first:last]
        products.append(pnp.tensordot(pnp.asarray(weights, x.dtype), source, ((0,), (0,)), precision=precision))
    out = products[0] if len(products) == 1 else pnp.concatenate(products)
    out = out.reshape(out.shape[0], *rest)
    return pnp.moveaxis(out, 0, axis) if axis else out


@lru_cache(maxsize=64)
def _bands(n: int, m: int, method: ResizeMethod, antialias: bool, dtype: Any) -> Bands:
    """Compute the weights that resize an axis of ``n`` elements to ``m`` elements, divided into bands.

    Most weights are zero. A band has the weights of consecutive new elements, but only for the old elements that these
    use. At most eight bands are enough to leave out most zeros. Weights are computed in double precision.

    Args:
      n, m: the numbers of old and new elements.
      method: the method of interpolation.
      antialias: whether the kernel is widened when the image shrinks.
      dtype: the dtype of the weights in the result.
    """
    matrix = _weights(np, n, m, m / n, 0.0, method, antialias, np.dtype(np.float64)).astype(dtype)
    bands = []
    size = max(BAND, -(-m // 8))
    for start in range(0, m, size):
        weights = matrix[:, start : start + size]
        used = np.flatnonzero(weights.any(1))
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
        weights = np.ascontiguousarray(weights[first:last])
        weights.setflags(write=False)
        bands.append((first, last, weights))
    return tuple(bands)


def _weights(
    xp: Any, n: int, m: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool, dtype: Any
) -> Any:
    """Return the weight of each of ``n`` old elements in each of ``m`` new elements, an array of shape (n, m).

    The weights of a new element add up to 1 if its middle is inside the old image and its kernel overlaps old elements;
    otherwise they are 0.

    Args:
      xp: the module of array functions: NumPy or Pullback's.
      n, m: the numbers of old and new elements.
      scale, translation: an old position x becomes the new position ``x * scale + translation``.
      method: the method of interpolation.
      antialias: whether the kernel is widened when the image shrinks.
      dtype: the dtype of the weights.
    """
    inverse = 1 / scale
    positions = xp.arange(n, dtype=dtype)[:, None]
    middle = ((xp.arange(m, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5)[None]
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _four_taps(xp, n, middle, dtype)
    if method is ResizeMethod.AREA:
        half = abs(inverse) / 2
        top, bottom = xp.minimum(positions + 0.5, middle + half), xp.maximum(positions - 0.5, middle - half)
        weights = xp.maximum(top - bottom, 0)
    else:
        width = xp.maximum(inverse, 1) if antialias else 1
        weights = _KERNELS[method](xp, abs(middle - positions) / width)
    total = weights.sum(0, keepdims=True)
    enough = abs(total) > 1000 * float(np.finfo(np.float32 if np.dtype(dtype).itemsize < 8 else np.float64).eps)
    weights = xp.where(enough, weights / xp.where(enough, total, 1), 0)
    return xp.where((middle >= -0.5) & (middle <= n - 0.5), weights, 0)


def _four_taps(xp: Any, n: int, middle: Any, dtype: Any) -> Any:
    """Return the weights of ``n`` old elements in each new element, for cubic interpolation as PyTorch defines it.

    A new element is made from its four nearest old elements; at an edge, the outermost element is repeated.

    Args:
      xp: the module of array functions: NumPy or Pullback's.
      n: the number of old elements.
      middle: the middles of the new elements, as positions among the old elements.
      dtype: the dtype of the weights.
    """
    first = xp.floor(middle)
    weights = xp.zeros((n, middle.shape[0]), dtype)
    for tap in (-1, 0, 1, 2):
        neighbour = xp.clip(first + tap, 0, n - 1)
        hit = xp.arange(n, dtype=dtype)[:, None] == neighbour
        weights = weights + xp.where(hit, _cubic(xp, abs(middle - (first + tap)), -0.75), 0)
    return weights


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(1 - x, 0)


def _cubic(xp: Any, x: Any, a: float = -0.5) -> Any:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.where(x >= 2, 0, xp.where(x >= 1, far, near))


def _lanczos(radius: int) -> Callable[[Any, Any], Any]:
    def kernel(xp: Any, x: Any) -> Any:
        far = x > 1e-3
        safe = xp.where(far, x, 1)
        value = radius * xp.sin(math.pi * safe) * xp.sin(math.pi * safe / radius) / (math.pi * safe) ** 2
        return xp.where(x > radius, 0, xp.where(far, value, 1))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any, Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic,
    ResizeMethod.CUBIC_PYTORCH: _cubic,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}
