"""Images at other points: geometric transforms by splines through the elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ConcretizationTypeError, OperandError, ShapeError
from pullback.numpy.promotion import axis_index, promote_all, quote, sequence, sequence_of, size_of
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import inexact, known, real_floats
from pullback.scipy.ndimage.arguments import (
    by_scipy,
    computed_in,
    doubles_for,
    fixed,
    image,
    number,
    per_axis,
    result_dtype,
)
from pullback.scipy.ndimage.splines import (
    CONDITIONS,
    SHORT,
    filtered,
    interpolated,
    interpolated_by_axes,
    order_of,
    spline_mode,
)
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["affine_transform", "geometric_transform", "map_coordinates", "rotate", "shift", "zoom"]

_OF_JAX = {"constant": "grid-constant", "wrap": "grid-wrap"}
_FAR = 2.0**31


def _converted(out: Any, dtype: Any) -> Any:
    """Convert interpolated values to the dtype of the result; integers are rounded to nearest."""
    if dtypes.is_complex(out.dtype) and not dtypes.is_complex(dtype):
        out = ops.real(out)
    if dtypes.is_integer(dtype):
        out = ops.mul(ops.sign(out), pnp.floor(ops.add(ops.abs(out), 0.5)))
    return ops.convert_element_type(out, dtype)


class _Spline:
    """An image that is to be evaluated between its elements, with the options of all transforms.

    Attributes:
      x: the image.
      order, mode, cval, prefilter: the options.
      dtype: the dtype of the result.
    """

    def __init__(self, name: str, input: Any, output: Any, order: Any, mode: Any, cval: Any, prefilter: Any) -> None:
        self.name, self.x = name, image(name, input)
        if not self.x.size:
            raise ShapeError(f"{name} takes a non-empty image, got shape {self.x.shape}")
        self.order, self.mode = order_of(name, order), spline_mode(name, mode)
        self.cval = number(name, "cval", cval)
        if type(prefilter) is not bool:
            raise ArgumentError(f"{name}: prefilter must be True or False, got {quote(prefilter)}")
        self.prefilter = prefilter
        self.dtype = result_dtype(name, output, self.x.dtype)

    def by_scipy(self, *arrays: Any, function: str | None = None, **options: Any) -> Any:
        """Return SciPy's result, or None; ``arrays`` are on the host, or the result is None."""
        solves = self.prefilter and self.order > 1
        if not self.x.shape or np.ndim(options.get("coordinates", 0)) == 1:
            return None  # SciPy refuses images and results without axes
        if solves and CONDITIONS[self.mode] == "reflect" and self.mode != "nearest" and min(self.x.shape) < SHORT:
            return None
        return by_scipy(
            function or self.name, self.dtype, self.x, *arrays, order=self.order, mode=self.mode, cval=self.cval,
            prefilter=self.prefilter, **options,
        )  # fmt: skip

    def wide(self, *given: Any) -> Any:
        """Return the dtype in which to compute with coordinates of some dtypes."""
        dtype = computed_in(self.x.dtype, *given)
        return dtypes.promote_types(dtype, np.complex64) if isinstance(self.cval, complex) else dtype

    def coordinates(self, *given: Any) -> list[Any]:
        """Convert what coordinates are computed from to the dtype in which to compute; see :func:`doubles_for`."""
        real = dtypes.to_real(self.wide(*[x.dtype for x in given]))
        return [ops.convert_element_type(x, real) for x in given]

    def coefficients(self, dtype: Any, count: int | None = None) -> tuple[Any, Any, int]:
        """Return the coefficients along the first ``count`` axes, ``cval``, and how many stand before the image."""
        x = ops.convert_element_type(self.x, dtype)
        cval = ops.convert_element_type(as_array(self.cval), dtype)
        c, before = filtered(x, self.order if self.prefilter else 0, self.mode, cval, count)
        return c, cval, before

    def at(self, points: Sequence[Any], away: bool = False) -> Any:
        """Return the values at points, of one shape; coordinates are along the first axes of the image."""
        with doubles_for(self.x.dtype):
            dtype = self.wide(*[p.dtype for p in points])
            c, cval, before = self.coefficients(dtype, len(points))
            points = self.coordinates(*points)
            return _converted(interpolated(c, points, self.order, self.mode, cval, before, away), self.dtype)

    def on_grid(self, points: Sequence[Any]) -> Any:
        """Return the values on a grid, whose coordinates along each axis are vectors."""
        with doubles_for(self.x.dtype):
            dtype = self.wide(*[p.dtype for p in points if isinstance(p, Array)])
            real = dtypes.to_real(dtype)
            c, cval, before = self.coefficients(dtype)
            points = [ops.convert_element_type(as_array(p), real) for p in points]
            return _converted(interpolated_by_axes(c, points, self.order, self.mode, cval, before), self.dtype)


def _coordinate(p: Any) -> Any:
    x = inexact("map_coordinates", p)
    return x if x.dtype.itemsize >= 4 else ops.convert_element_type(x, np.dtype(np.float32))


def _are_near(points: Sequence[Any]) -> bool:
    """Whether all coordinates are on the host, and none is NaN or too large for an index."""
    if not all(map(is_on_host, points)):
        return False
    return all(bool((abs(host_value(p)) < _FAR).all()) for p in points)


# long: half of it is its documentation
def map_coordinates(
    input: ArrayLike, coordinates: ArrayLike | Sequence[ArrayLike], order: int, mode: str = "constant",
    cval: ArrayLike = 0.0, *, output: DTypeLike | None = None, prefilter: bool = True, scipy_modes: bool = False,
) -> Array:  # fmt: skip
    """The values of an image between its elements, by the spline through them.

    Args:
      input: the image, of n axes.
      coordinates: a sequence of n arrays that broadcast against each other, or an array whose first axis has n
        elements: the points, in elements along each axis.
      order: the degree of the spline: 0 for the nearest element, 1 for linear interpolation, up to 5.
      mode: how the image extends beyond its elements: ``"constant"`` with ``cval``; ``"nearest"`` with the last
        element; ``"mirror"`` as its mirror image about the last element, ``"reflect"`` about its edge; ``"wrap"`` as
        itself. As for JAX, ``"constant"`` and ``"wrap"`` are SciPy's ``"grid-constant"`` and ``"grid-wrap"``, which are
        also accepted.
      cval: the number beyond the image.
      output: the dtype of the result, by default that of ``input``.
      prefilter: whether ``input`` is the image; otherwise it has the coefficients from :func:`spline_filter`.
      scipy_modes: whether ``"constant"`` and ``"wrap"`` mean what they mean for SciPy and the other transforms here:
        ``cval`` at once outside of the outermost elements, and a period that is one element shorter. Then the order 0
        rounds halves up, otherwise away from zero.

    Returns:
      An array of the shape of the coordinates, and of the dtype of ``input``; integers are rounded to nearest.

    Raises:
      ShapeError: not n coordinates, or an image without elements (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    Source: Unser, Aldroubi and Eden 1993, *B-spline signal processing*.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.array([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])
    >>> print(ndimage.map_coordinates(image, [jnp.array([0.5, 1.0]), jnp.array([0.0, 1.5])], 1))
    [ 5.  11.5]
    """
    name = "map_coordinates"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    if type(scipy_modes) is not bool:
        raise ArgumentError(f"{name}: scipy_modes must be True or False, got {quote(scipy_modes)}")
    if not scipy_modes:
        spline.mode = _OF_JAX.get(spline.mode, spline.mode)
    arrays = coordinates if isinstance(coordinates, Array) else sequence(name, coordinates)
    rank = len(spline.x.shape)
    if len(arrays) != rank:
        raise ShapeError(f"{name} takes one array of coordinates for each axis, {rank}, got {len(arrays)}")
    points = [_coordinate(p) for p in arrays]
    if any(dtypes.is_complex(p.dtype) for p in points):
        raise OperandError(f"{name} takes real coordinates, got complex ones")
    points = promote_all(name, points)
    points = list(pnp.broadcast_arrays(*points))
    if points[0].size and _are_near(points):
        at = np.stack([host_value(p) for p in points])
        if spline.order == 0 and not scipy_modes:
            at = np.copysign(np.floor(abs(at) + 0.5), at)
        found = spline.by_scipy(coordinates=at)
        if found is not None:
            return as_array(found)
    return as_array(spline.at(points, away=not scipy_modes))


# Affine transforms ---------------------------------------------------------------------------------------------------


def _matrix(name: str, matrix: Any, offset: Any, rank: int) -> tuple[Any, Any]:
    """Return the matrix of an affine transform, or its diagonal, and the offsets; both may be traced.

    The offsets are the last column of a homogeneous matrix, or the argument ``offset``.
    """
    a = real_floats(name, matrix, "matrix")
    if len(a.shape) not in (1, 2) or not a.size:
        raise ShapeError(f"{name}: matrix must be a vector or a matrix with elements, got shape {a.shape}")
    if a.shape in ((rank, rank + 1), (rank + 1, rank + 1)) and len(a.shape) == 2:
        values = known(a)
        if a.shape[0] > rank and values is not None and list(values[rank]) != [0.0] * rank + [1.0]:
            raise ArgumentError(
                f"{name}: the last row of a homogeneous matrix must be 0, ..., 0, 1; got {values[rank]}"
            )
        return a[:rank, :rank], a[:rank, rank]
    if a.shape[0] != rank:
        raise ShapeError(f"{name}: matrix must have {rank} rows, one for each axis of the image, got shape {a.shape}")
    b = real_floats(name, offset, "offset")
    if b.shape not in ((), (rank,)):
        raise ShapeError(f"{name}: offset must be a number or {rank} numbers, got shape {b.shape}")
    return a, shapes.broadcast_to(b, (rank,))


def _shape(name: str, output_shape: Any, default: tuple[int, ...]) -> tuple[int, ...]:
    if output_shape is None:
        return default
    return tuple(size_of(name, "output_shape", n) for n in sequence_of(name, "output_shape", output_shape))


def _counted(n: int, like: Any) -> Any:
    return as_array(np.arange(n).astype(like.dtype))


def _affine(spline: _Spline, a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    """Return the values of a spline at the points ``a @ o + b`` for all indices o of a shape, by own operations."""
    with doubles_for(spline.x.dtype):
        a, b = spline.coordinates(*promote_all(spline.name, (a, b)))
        if len(a.shape) == 1:
            lines = [ops.add(ops.mul(_counted(n, a), a[i]), b[i]) for i, n in enumerate(shape)]
            return spline.on_grid(lines)
        points = []
        for i in range(a.shape[0]):
            total = b[i]
            for j, n in enumerate(shape):
                line = ops.mul(_counted(n, a), a[i, j])
                total = ops.add(total, shapes.reshape(line, [n if k == j else 1 for k in range(len(shape))]))
            points.append(shapes.broadcast_to(total, shape))
        return spline.at(points)


# long: half of it is its documentation
def affine_transform(
    input: ArrayLike, matrix: ArrayLike | Sequence[Any], offset: ArrayLike | Sequence[ArrayLike] = 0.0,
    output_shape: Sequence[int] | None = None, output: DTypeLike | None = None, order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """An image whose element o is the value of another one at the point ``matrix @ o + offset``.

    It has derivatives by the image, the matrix and the offset.

    Args:
      input: the image, of n axes; numbers.
      matrix: the matrix, (n, m), of real numbers; a vector (n,) for a diagonal matrix; or a homogeneous matrix,
        (n, n + 1) or (n + 1, n + 1), whose last column is the offset.
      offset: a number, or one for each axis of the image.
      output_shape: the shape of the result, of m axes; by default that of the image.
      output: the dtype of the result, by default that of ``input``.
      order: the degree of the spline, from 0 to 5.
      mode: how the image extends beyond its elements: ``"reflect"`` (``d c b a | a b c d | d c b a``), ``"mirror"``
        (``d c b | a b c d | c b a``), ``"nearest"`` with the outermost elements, ``"constant"`` with ``cval`` at once
        outside of the outermost elements, ``"grid-constant"`` with ``cval`` for all other elements, ``"grid-wrap"`` as
        itself, ``"wrap"`` with a period that is one element shorter.
      cval: the number beyond the image.
      prefilter: whether ``input`` is the image; otherwise it has the coefficients from :func:`spline_filter`.

    Returns:
      An array of the shape ``output_shape``; integers are rounded to nearest.

    Raises:
      ShapeError: a matrix, an offset or a shape that does not fit the image (a TypeError and a ValueError).
      ArgumentError: a homogeneous matrix with another last row than 0, ..., 0, 1 (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.arange(9.0).reshape(3, 3)
    >>> print(ndimage.affine_transform(image, jnp.array([[0.0, 1.0], [1.0, 0.0]]), order=1))
    [[0. 3. 6.]
     [1. 4. 7.]
     [2. 5. 8.]]
    """
    name = "affine_transform"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    rank = len(spline.x.shape)
    a, b = _matrix(name, matrix, offset, rank)
    shape = _shape(name, output_shape, spline.x.shape)
    columns = a.shape[-1]
    if len(shape) != columns or not shape:
        raise ShapeError(f"{name}: the result must have {columns} axes, the columns of the matrix, got shape {shape}")
    if is_on_host(a) and is_on_host(b) and 0 not in shape:
        values, moved = host_value(a), host_value(b)
        if np.isfinite(values).all() and np.isfinite(moved).all():
            found = spline.by_scipy(matrix=values, offset=moved, output_shape=shape)
            if found is not None:
                return as_array(found)
    return as_array(_affine(spline, a, b, shape))


def shift(
    input: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], output: DTypeLike | None = None, order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """An image moved by a number of elements that need not be an integer.

    It has derivatives by the image and the shift.

    Args:
      input: the image, of n axes; numbers.
      shift: by how many elements to move it, a number or one for each axis.
      output: the dtype of the result, by default that of ``input``.
      order, mode, cval, prefilter: as for :func:`affine_transform`.

    Returns:
      An array of the shape of ``input``; integers are rounded to nearest.

    Raises:
      ShapeError: an image without elements, or another number of shifts (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.shift(jnp.array([0.0, 4.0, 8.0, 0.0]), 0.5, order=1))
    [0. 2. 6. 4.]
    """
    name = "shift"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    rank = len(spline.x.shape)
    moved = real_floats(name, shift, "shift")
    if moved.shape not in ((), (rank,)):
        raise ShapeError(f"{name}: shift must be a number or {rank} numbers, got shape {moved.shape}")
    if is_on_host(moved) and np.isfinite(host_value(moved)).all():
        values = np.broadcast_to(host_value(moved), (rank,)).astype(np.float64)
        found = spline.by_scipy(shift=values)
        if found is not None:
            return as_array(found)
    with doubles_for(spline.x.dtype):
        (moved,) = spline.coordinates(shapes.broadcast_to(moved, (rank,)))
        return as_array(spline.on_grid([ops.sub(_counted(n, moved), moved[i]) for i, n in enumerate(spline.x.shape)]))


def zoom(
    input: ArrayLike, zoom: float | Sequence[float], output: DTypeLike | None = None, order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True, *, grid_mode: bool = False,
) -> Array:  # fmt: skip
    """An image with more or fewer elements.

    Args:
      input: the image, of n axes; numbers.
      zoom: the ratio of the sizes of the result and of the image, a number or one for each axis. It decides the shape
        of the result, so it must not be traced.
      output: the dtype of the result, by default that of ``input``.
      order, mode, cval, prefilter: as for :func:`affine_transform`.
      grid_mode: whether elements are areas, whose outer borders stay; otherwise they are points, and the outermost ones
        stay.

    Returns:
      An array whose sizes are those of the image times ``zoom``, rounded; integers are rounded to nearest.

    Raises:
      ShapeError: an image without elements, or another number of ratios (a TypeError and a ValueError).
      ArgumentError: a ratio that is not positive, or traced (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.zoom(jnp.array([0.0, 2.0, 4.0]), 5 / 3, order=1))
    [0. 1. 2. 3. 4.]
    """
    name = "zoom"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    sizes = spline.x.shape
    ratios = per_axis(name, "zoom", zoom, len(sizes), fixed)
    if not all(0 < r < math.inf for r in ratios):
        raise ArgumentError(f"{name}: zoom must be positive, got {quote(zoom)}")
    if type(grid_mode) is not bool:
        raise ArgumentError(f"{name}: grid_mode must be True or False, got {quote(grid_mode)}")
    if all(r == 1 for r in ratios) and prefilter:
        return as_array(_converted(spline.x, spline.dtype))
    lines = []
    for n, r in zip(sizes, ratios, strict=True):
        m = round(n * r)
        if grid_mode:
            lines.append((np.arange(m) + 0.5) * (n / max(m, 1)) - 0.5)
        else:
            lines.append(np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0))
    if not grid_mode and spline.mode in ("constant", "wrap"):  # SciPy rounds some last coordinates past the image
        is_exact = all(not len(line) or line[-1] <= n - 1 for line, n in zip(lines, sizes, strict=True))
        lines = [np.minimum(line, n - 1.0) for line, n in zip(lines, sizes, strict=True)]
    else:
        is_exact = not grid_mode or spline.mode not in ("constant", "wrap")
    if is_exact and all(map(len, lines)):
        found = spline.by_scipy(zoom=ratios, grid_mode=grid_mode)
        if found is not None:
            return as_array(found)
    return as_array(spline.on_grid(lines))


# long: half of it is its documentation
def geometric_transform(
    input: ArrayLike, mapping: Callable[..., Any], output_shape: Sequence[int] | None = None,
    output: DTypeLike | None = None, order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0,
    prefilter: bool = True, extra_arguments: Sequence[Any] = (), extra_keywords: Mapping[str, Any] | None = None,
) -> Array:  # fmt: skip
    """An image whose element o is the value of another one at the point ``mapping(o)``.

    It has derivatives by the image, and by what the function closes over.

    Args:
      input: the image, of n axes; numbers.
      mapping: ``mapping(o, *extra_arguments, **extra_keywords)``, from a tuple of integers, the indices of an element
        of the result, to n coordinates. It is called once, for all elements, by :func:`pullback.vmap`.
      output_shape: the shape of the result; by default that of the image.
      output: the dtype of the result, by default that of ``input``.
      order, mode, cval, prefilter: as for :func:`affine_transform`.
      extra_arguments, extra_keywords: more arguments of the function.

    Returns:
      An array of the shape ``output_shape``; integers are rounded to nearest.

    Raises:
      ShapeError: an image without elements, or a function that returns another number of coordinates (a TypeError and
        a ValueError).
      ArgumentError: ``mapping`` is no function (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.arange(12.0).reshape(4, 3)
    >>> print(ndimage.geometric_transform(image, lambda o: (o[0] - 0.5, o[1] - 0.5), order=1))
    [[0. 0. 0.]
     [0. 2. 3.]
     [0. 5. 6.]
     [0. 8. 9.]]
    """
    name = "geometric_transform"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    if not callable(mapping):
        raise ArgumentError(f"{name}: mapping must be a function, got {quote(mapping)}")
    rank = len(spline.x.shape)
    shape = _shape(name, output_shape, spline.x.shape)
    if not shape:
        raise ShapeError(f"{name}: the result must have at least one axis")
    grid = [i.ravel().astype(np.int32) for i in np.indices(shape)]

    def point(*indices: Any) -> list[Any]:
        found = mapping(indices, *extra_arguments, **(extra_keywords or {}))
        coordinates = list(found) if isinstance(found, (tuple, list)) else [found[i] for i in range(len(found))]
        if len(coordinates) != rank:
            raise ShapeError(f"{name}: mapping must return {rank} coordinates, got {len(coordinates)}")
        return [real_floats(name, c, "the coordinates") for c in coordinates]

    points = promote_all(name, vmap(point)(*grid))
    points = [shapes.reshape(p, shape) for p in points]
    if points[0].size and _are_near(points):
        at = np.stack([host_value(p) for p in points])
        found = spline.by_scipy(function="map_coordinates", coordinates=at)
        if found is not None:
            return as_array(found)
    return as_array(spline.at(points))


# Rotations -----------------------------------------------------------------------------------------------------------


def _turn(angle: Any) -> tuple[Any, Any]:
    """Return the cosine and the sine of an angle in degrees, exact at multiples of 90, with their derivatives."""
    quarters = pnp.round(ops.mul(angle, 1.0 / 90.0))
    turned = ops.mul(quarters, 90.0)
    rest = ops.mul(ops.sub(angle, turned), math.pi / 180.0)
    c, s = pnp.cos(rest), pnp.sin(rest)
    quadrant = pnp.mod(quarters, 4.0)
    odd = ops.eq(pnp.mod(quadrant, 2.0), 1.0)
    is_right = ops.or_p.bind(ops.eq(quadrant, 0.0), ops.eq(quadrant, 3.0))
    cosine, sine = ops.where(odd, s, c), ops.where(odd, c, s)
    cosine = ops.where(is_right, cosine, ops.neg(cosine))
    return cosine, ops.where(ops.lt(quadrant, 2.0), sine, ops.neg(sine))


# long: half of it is its documentation
def rotate(
    input: ArrayLike, angle: ArrayLike, axes: tuple[int, int] = (1, 0), reshape: bool = True,
    output: DTypeLike | None = None, order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:  # fmt: skip
    """An image rotated about its middle, in the plane of two axes.

    It has derivatives by the image and the angle.

    Args:
      input: the image, of at least 2 axes; numbers.
      angle: the angle, a number in degrees.
      axes: the two axes of the plane.
      reshape: whether the result is large enough for the whole rotated image. Then a compiled function cannot have the
        angle as an argument, which decides the shape.
      output: the dtype of the result, by default that of ``input``.
      order, mode, cval, prefilter: as for :func:`affine_transform`.

    Returns:
      An array of the shape of ``input``, or with other sizes of the two axes; integers are rounded to nearest.

    Raises:
      ShapeError: an image of fewer than 2 axes, or no two axes (a TypeError and a ValueError).
      ConcretizationTypeError: ``reshape`` with an angle whose value is not known (a TypeError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.rotate(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 90))
    [[3. 6.]
     [2. 5.]
     [1. 4.]]
    """
    name = "rotate"
    spline = _Spline(name, input, output, order, mode, cval, prefilter)
    rank = len(spline.x.shape)
    if rank < 2:
        raise ShapeError(f"{name} takes an image of at least 2 axes, got shape {spline.x.shape}")
    pair = sorted(axis_index(a, rank, name) for a in sequence_of(name, "axes", axes, 2))
    if pair[0] == pair[1]:
        raise ShapeError(f"{name}: the two axes must differ, got {quote(axes)}")
    if type(reshape) is not bool:
        raise ArgumentError(f"{name}: reshape must be True or False, got {quote(reshape)}")
    turn = real_floats(name, angle, "angle")
    if turn.shape:
        raise ShapeError(f"{name}: angle must be a number, got shape {turn.shape}")
    value = known(turn)
    if reshape and value is None:
        raise ConcretizationTypeError(
            f"{name}: the angle is traced, so that the shape of the result is not known; pass reshape=False"
        )
    if value is not None and not np.isfinite(value):
        raise ArgumentError(f"{name}: the angle must be finite, got {value}")
    if is_on_host(turn):
        found = spline.by_scipy(angle=float(value), axes=tuple(pair), reshape=reshape)
        if found is not None:
            return as_array(found)
    with doubles_for(spline.x.dtype):
        return as_array(_rotated(spline, turn, pair, float(value) if reshape else None))


def _rotated(spline: _Spline, angle: Any, pair: Sequence[int], value: float | None) -> Any:
    """Return a rotated image by own operations.

    Args:
      spline: the image.
      angle: the angle, an array without axes.
      pair: the axes of the plane, in order.
      value: the angle if the result is as large as the rotated image, else None.
    """
    (angle,) = spline.coordinates(angle)
    rank = len(spline.x.shape)
    sizes = [spline.x.shape[a] for a in pair]
    shape = sizes
    if value is not None:
        of = [math.cos(math.radians(value)), math.sin(math.radians(value))]
        c, s = (abs(v) for v in of)
        shape = [int(c * sizes[0] + s * sizes[1] + 0.5 + 1e-9), int(s * sizes[0] + c * sizes[1] + 0.5 + 1e-9)]
    rest = [i for i in range(rank) if i not in pair]
    order = [*pair, *rest]
    spline.x = shapes.transpose(spline.x, order)
    cosine, sine = _turn(angle)
    rows = as_array((np.arange(shape[0]) - (shape[0] - 1) / 2).astype(angle.dtype)[:, None])
    columns = as_array((np.arange(shape[1]) - (shape[1] - 1) / 2).astype(angle.dtype)[None])
    first = ops.add(ops.mul(cosine, rows), ops.mul(sine, columns))
    second = ops.sub(ops.mul(cosine, columns), ops.mul(sine, rows))
    middle = [(n - 1) / 2 for n in sizes]
    out = spline.at([ops.add(first, middle[0]), ops.add(second, middle[1])])
    return shapes.transpose(out, sorted(range(rank), key=order.__getitem__))
