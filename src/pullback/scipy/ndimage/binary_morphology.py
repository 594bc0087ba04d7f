"""Morphology of Boolean images: erosions and dilations, regions that grow, and distances to the background."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.ndimage.arguments import (
    concrete,
    fixed,
    inserted,
    mask_of,
    of_all,
    origins_of,
    per_axis,
    real_image,
    result_dtype,
    window_axes,
)
from pullback.scipy.ndimage.windows import margins, piece
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = [
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_hit_or_miss", "binary_opening",
    "binary_propagation", "distance_transform_edt", "generate_binary_structure", "iterate_structure",
]  # fmt: skip


def generate_binary_structure(rank: int, connectivity: int) -> Array:
    """Generate a structure of 3 elements along each axis: which neighbours of an element are connected to it.

    Args:
      rank: the number of axes.
      connectivity: along how many axes at most a neighbour differs from the element.

    Returns:
      An array of Booleans, (3, ..., 3).

    Raises:
      ShapeError: no integers (a TypeError and a ValueError).

    >>> from pullback.scipy import ndimage
    >>> print(ndimage.generate_binary_structure(2, 1).astype(int))
    [[0 1 0]
     [1 1 1]
     [0 1 0]]
    """
    return as_array(_structure(known_int("generate_binary_structure", "rank", rank), connectivity))


def _structure(rank: int, connectivity: Any) -> np.ndarray[Any, Any]:
    reach = max(known_int("generate_binary_structure", "connectivity", connectivity), 1)
    if rank < 1:
        return np.ones((), bool)
    steps = abs(np.indices((3,) * rank) - 1).sum(axis=0)
    return np.asarray(steps <= reach)


def iterate_structure(structure: ArrayLike, iterations: int, origin: int | Sequence[int] | None = None) -> Any:
    """Dilate a structure by itself some times.

    Args:
      structure: an array of Booleans.
      iterations: how often the structure is in the result.
      origin: the origin of the structure; one number, or one for each axis.

    Returns:
      A larger array of Booleans; with ``origin`` a pair of it and a list of its origins.

    Raises:
      ShapeError: an iteration count that is no integer (a TypeError and a ValueError).

    >>> from pullback.scipy import ndimage
    >>> cross = ndimage.generate_binary_structure(2, 1)
    >>> print(ndimage.iterate_structure(cross, 2).astype(int)[1])
    [0 1 1 1 0]
    """
    name = "iterate_structure"
    count = known_int(name, "iterations", iterations)
    mask = concrete(name, "structure", structure)
    if not mask.ndim or not mask.size:
        raise ShapeError(f"{name}: structure must have axes and elements, got shape {mask.shape}")
    out = np.asarray(imported("scipy.ndimage").iterate_structure(mask, count)) != 0
    if origin is None:
        return as_array(out)
    return as_array(out), [max(count, 1) * o for o in per_axis(name, "origin", origin, mask.ndim)]


# Erosions and dilations ----------------------------------------------------------------------------------------------


class _Structure:
    """A structuring element with its origins, along all axes of an image."""

    def __init__(self, name: str, structure: Any, origin: Any, axes: Any, rank: int, what: str = "structure") -> None:
        where = window_axes(name, axes, rank)
        small = _structure(len(where), 1) if structure is None else mask_of(name, what, structure, len(where))
        self.mask = inserted(small, where, rank)
        self.origins = of_all(origins_of(name, origin, small.shape), where, rank, 0)

    def turned(self) -> tuple[np.ndarray[Any, Any], list[int]]:
        """Return the reversed mask and its origins."""
        mask = np.ascontiguousarray(self.mask[(slice(None, None, -1),) * self.mask.ndim])
        return mask, [-o if n % 2 else -o - 1 for o, n in zip(self.origins, mask.shape, strict=True)]


def _step(x: Any, mask: Any, origins: Sequence[int], outside: bool, dilate: bool) -> Any:
    """Return an erosion or a dilation; ``mask`` is reversed already for dilations."""
    widths = [margins(n, o) for n, o in zip(mask.shape, origins, strict=True)]
    wide = pnp.pad(x, widths, constant_values=outside)
    pieces = [piece(wide, i, x.shape) for i in np.ndindex(mask.shape) if mask[i]]
    if not pieces:
        return pnp.full(x.shape, not dilate)
    return reduce((ops.or_p if dilate else ops.and_p).bind, pieces)


def _repeated(name: str, x: Any, structure: _Structure, iterations: int, mask: Any, outside: bool, dilate: bool) -> Any:
    """Return an image after some erosions or dilations, or if ``iterations`` is below 1 when nothing changes any more.

    Args:
      name: the name of the function.
      x: the image, Booleans.
      structure: the structuring element.
      iterations: how many.
      mask: which elements may change, or None.
      outside: what is beyond the image.
      dilate: whether to dilate.
    """
    if not x.size:
        return x
    arrays = [x] if mask is None else [x, mask]
    if all(map(is_on_host, arrays)):
        call = getattr(imported("scipy.ndimage"), "binary_dilation" if dilate else "binary_erosion")
        found = call(
            host_value(x), structure.mask, iterations, mask=None if mask is None else host_value(mask),
            border_value=int(outside), origin=list(structure.origins),
        )  # fmt: skip
        return as_array(found)
    window, origins = structure.turned() if dilate else (structure.mask, structure.origins)

    def once(v: Any) -> Any:
        out = _step(v, window, origins, outside, dilate)
        return out if mask is None else ops.where(mask, out, v)

    if iterations >= 1:
        for _ in range(iterations):
            x = once(x)
        return x

    def changes(pair: Any) -> Any:
        return pnp.any(ops.ne_p.bind(pair[0], pair[1]))

    return while_loop(changes, lambda pair: (pair[1], once(pair[1])), (x, once(x)))[1]


def _boolean(name: str, input: Any) -> Any:
    return ops.ne_p.bind(x, 0) if (x := real_image(name, input)).dtype != np.dtype(bool) else x


def _masked(name: str, mask: Any, shape: tuple[int, ...]) -> Any:
    if mask is None:
        return None
    found = _boolean(name, mask)
    if found.shape != shape:
        raise ShapeError(f"{name}: mask must have the shape of the image, {shape}, got {found.shape}")
    return found


def _morphology(
    name: str, input: Any, structure: Any, iterations: Any, mask: Any, output: Any, border_value: Any, origin: Any,
    axes: Any, *steps: bool,
) -> Array:  # fmt: skip
    """Return an image after erosions (False) and dilations (True)."""
    x = _boolean(name, input)
    element = _Structure(name, structure, origin, axes, len(x.shape))
    count, outside = known_int(name, "iterations", iterations), fixed(name, "border_value", border_value) != 0
    where = _masked(name, mask, x.shape)
    dtype = result_dtype(name, output, bool)
    for dilate in steps:
        x = _repeated(name, x, element, count, where, outside, dilate)
    return as_array(ops.convert_element_type(x, dtype))


# long: half of it is its documentation
def binary_erosion(
    input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None,
    output: DTypeLike | None = None, border_value: int = 0, origin: int | Sequence[int] = 0, brute_force: bool = False,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The erosion of a Boolean image: true where all elements below the structure are.

    Args:
      input: the image, of any number of axes; numbers count as true where they are not zero.
      structure: which elements count, an array of Booleans with as many axes; by default the element and its nearest
        neighbours.
      iterations: how often to erode; below 1 until nothing changes.
      mask: where the image may change.
      output: the dtype of the result, by default Boolean.
      border_value: what is beyond the image, 0 or 1.
      origin: how many elements the structure moves to the left; one number, or one for each of the axes.
      brute_force: accepted for compatibility.
      axes: the axes of the structure, all by default.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError: a structure of another number of axes, or a mask of another shape (a TypeError and a ValueError).
      ArgumentError: an origin outside of the structure (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_erosion(jnp.array([0, 1, 1, 1, 0, 1])).astype(int))
    [0 0 1 0 0 0]
    """
    return _morphology("binary_erosion", input, structure, iterations, mask, output, border_value, origin, axes, False)


def binary_dilation(
    input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None,
    output: DTypeLike | None = None, border_value: int = 0, origin: int | Sequence[int] = 0, brute_force: bool = False,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The dilation of a Boolean image: true where any element below the reversed structure is.

    Args:
      input, structure, mask, output, border_value, brute_force, axes: as for :func:`binary_erosion`.
      iterations: how often to dilate; below 1 until nothing changes.
      origin: how many elements the structure moves to the right; one number, or one for each of the axes.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_dilation(jnp.array([0, 0, 1, 0, 0, 0])).astype(int))
    [0 1 1 1 0 0]
    """
    return _morphology("binary_dilation", input, structure, iterations, mask, output, border_value, origin, axes, True)


def binary_opening(
    input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1, output: DTypeLike | None = None,
    origin: int | Sequence[int] = 0, mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The dilation of the erosion of a Boolean image, in which what is smaller than the structure is gone.

    Args:
      input, structure, mask, output, border_value, origin, brute_force, axes: as for :func:`binary_erosion`.
      iterations: how often to erode, and then to dilate.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_opening(jnp.array([0, 1, 0, 1, 1, 1, 0])).astype(int))
    [0 0 0 1 1 1 0]
    """
    return _morphology(
        "binary_opening", input, structure, iterations, mask, output, border_value, origin, axes, False, True
    )


def binary_closing(
    input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1, output: DTypeLike | None = None,
    origin: int | Sequence[int] = 0, mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The erosion of the dilation of a Boolean image, in which gaps smaller than the structure are closed.

    Args:
      input, structure, mask, output, border_value, origin, brute_force, axes: as for :func:`binary_erosion`.
      iterations: how often to dilate, and then to erode.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_closing(jnp.array([0, 1, 1, 0, 1, 1, 0])).astype(int))
    [0 1 1 1 1 1 0]
    """
    return _morphology(
        "binary_closing", input, structure, iterations, mask, output, border_value, origin, axes, True, False
    )


def binary_propagation(
    input: ArrayLike, structure: ArrayLike | None = None, mask: ArrayLike | None = None,
    output: DTypeLike | None = None, border_value: int = 0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """What a Boolean image grows to within a mask.

    Args:
      input, structure, mask, output, border_value, origin, axes: as for :func:`binary_dilation`.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_propagation(jnp.array([0, 1, 0, 0, 0]), mask=jnp.array([1, 1, 1, 0, 1])).astype(int))
    [1 1 1 0 0]
    """
    return _morphology("binary_propagation", input, structure, -1, mask, output, border_value, origin, axes, True)


def binary_fill_holes(
    input: ArrayLike, structure: ArrayLike | None = None, output: DTypeLike | None = None,
    origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """A Boolean image without holes: what is not connected to the outside becomes true.

    Args:
      input: the image, of any number of axes; numbers count as true where they are not zero.
      structure: which neighbours are connected, an array of Booleans; by default the nearest ones.
      output: the dtype of the result, by default Boolean.
      origin: how many elements the structure moves; one number, or one for each of the axes.
      axes: the axes of the structure, all by default.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.binary_fill_holes(jnp.array([0, 1, 0, 1, 0, 1])).astype(int))
    [0 1 1 1 1 1]
    """
    name = "binary_fill_holes"
    x = _boolean(name, input)
    element = _Structure(name, structure, origin, axes, len(x.shape))
    dtype = result_dtype(name, output, bool)
    empty = pnp.zeros(x.shape, bool)
    outside = _repeated(name, empty, element, -1, ops.not_p.bind(x), True, True)
    return as_array(ops.convert_element_type(ops.not_p.bind(outside), dtype))


def binary_hit_or_miss(
    input: ArrayLike, structure1: ArrayLike | None = None, structure2: ArrayLike | None = None,
    output: DTypeLike | None = None, origin1: int | Sequence[int] = 0, origin2: int | Sequence[int] | None = None,
    *, axes: Axes = None,
) -> Array:  # fmt: skip
    """Where a Boolean image has a pattern: true below one structure, and false below another.

    Args:
      input: the image, of any number of axes; numbers count as true where they are not zero.
      structure1: which elements must be true; by default the element and its nearest neighbours.
      structure2: which elements must be false; by default those that need not be true.
      output: the dtype of the result, by default Boolean.
      origin1, origin2: how many elements the structures move to the left; by default the second moves as the first.
      axes: the axes of the structures, all by default.

    Returns:
      An array of the shape of ``input``. Its derivative is zero.

    Raises:
      ShapeError, ArgumentError: as for :func:`binary_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> start = jnp.array([0, 1, 1])
    >>> print(ndimage.binary_hit_or_miss(jnp.array([0, 1, 1, 0, 1]), start).astype(int))
    [0 1 0 0 0]
    """
    name = "binary_hit_or_miss"
    x = _boolean(name, input)
    rank = len(x.shape)
    first = _Structure(name, structure1, origin1, axes, rank, "structure1")
    if structure2 is None:
        second = _Structure(name, None, 0, axes, rank)
        second.mask, second.origins = ~first.mask, list(first.origins)
        if origin2 is not None:
            where = window_axes(name, axes, rank)
            sizes = [second.mask.shape[a] for a in where]
            second.origins = of_all(origins_of(name, origin2, sizes), where, rank, 0)
    else:
        second = _Structure(name, structure2, origin1 if origin2 is None else origin2, axes, rank, "structure2")
    dtype = result_dtype(name, output, bool)
    hit = _repeated(name, x, first, 1, None, False, False)
    miss = _missed(x, second)
    return as_array(ops.convert_element_type(ops.and_p.bind(hit, miss), dtype))


def _missed(x: Any, structure: _Structure) -> Any:
    """Return where no element below a structure is true; there are none beyond the image."""
    if not x.size:
        return x
    return ops.not_p.bind(_step(x, structure.mask, structure.origins, False, True))


# Distances -----------------------------------------------------------------------------------------------------------


def _distances(sampling: Any, x: Any) -> list[Any]:
    """Return the distances and the indices, of NumPy's arrays."""
    found = imported("scipy.ndimage").distance_transform_edt(x, sampling, True, True)
    return [found[0], found[1].astype(np.int32)]


# long: half of it is its documentation
def distance_transform_edt(
    input: ArrayLike, sampling: float | Sequence[float] | None = None, return_distances: bool = True,
    return_indices: bool = False, distances: None = None, indices: None = None,
) -> Any:  # fmt: skip
    """The distances of the true elements of an image to the nearest one that is false.

    They are found on the host, and have no derivative.

    Args:
      input: the image, of any number of axes; numbers count as true where they are not zero.
      sampling: the distance of neighbours, a number or one for each axis; 1 by default.
      return_distances: whether to return the distances.
      return_indices: whether to return which element is the nearest.
      distances, indices: None, since arrays do not change.

    Returns:
      The distances, of the default float; or the int32 indices along each axis, with a new first axis; or both.

    Raises:
      ShapeError: an image without elements, or another number of distances (a TypeError and a ValueError).
      ArgumentError: nothing to return, or arrays for results (a TypeError and a ValueError).

    Source: Maurer, Qi and Raghavan 2003, "A linear time algorithm for computing exact Euclidean distance transforms".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.distance_transform_edt(jnp.array([[0, 1, 1], [1, 1, 1]])).round(3))
    [[0.    1.    2.   ]
     [1.    1.414 2.236]]
    """
    name = "distance_transform_edt"
    x = _boolean(name, input)
    if not x.size:
        raise ShapeError(f"{name} takes a non-empty image, got shape {x.shape}")
    if distances is not None or indices is not None:
        raise ArgumentError(f"{name}: distances and indices must be None, because arrays do not change")
    for flag in (return_distances, return_indices):
        if type(flag) is not bool:
            raise ArgumentError(f"{name}: return_distances and return_indices must be Booleans, got {quote(flag)}")
    if not (return_distances or return_indices):
        raise ArgumentError(f"{name}: one of return_distances and return_indices must be True")
    steps = None if sampling is None else per_axis(name, "sampling", sampling, len(x.shape), fixed)
    if is_on_host(x):
        lengths, nearest = (as_array(v) for v in _distances(steps, host_value(x)))
    else:
        types = [
            ShapeDtypeStruct(x.shape, dtypes.default_float()),
            ShapeDtypeStruct((len(x.shape), *x.shape), np.int32),
        ]

        def on_host(v: Any) -> list[Any]:
            far, near = _distances(steps, v)
            return [far.astype(types[0].dtype), near]

        lengths, nearest = pure_callback(on_host, types, stop_gradient(x), vmap_method="sequential")
    results = [v for v, wanted in ((lengths, return_distances), (nearest, return_indices)) if wanted]
    return results[0] if len(results) == 1 else tuple(results)
