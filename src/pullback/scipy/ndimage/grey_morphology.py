"""Morphology of images of numbers: erosions and dilations, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import is_sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.primitives.reductions import reduce_max, reduce_min
from pullback.scipy.ndimage.arguments import (
    by_scipy,
    computed_in,
    doubles_for,
    finished,
    image,
    inserted,
    mask_of,
    mode_of,
    modes_of,
    number,
    of_all,
    origins_of,
    real_image,
    result_dtype,
    window_axes,
)
from pullback.scipy.ndimage.docs import of_image
from pullback.scipy.ndimage.ranks import Window, extreme, extremes, has_nan
from pullback.scipy.ndimage.windows import extended_all, piece

__all__ = [
    "black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "morphological_gradient",
    "morphological_laplace", "white_tophat",
]  # fmt: skip


def _raised(
    x: Any, structure: Any, mask: Any, dtype: Any, mode: str, cval: Any, origins: Sequence[int], kind: str
) -> Any:
    """Return extremes of windows from which a structure is subtracted, or to which it is added.

    Args:
      x: the image.
      structure: the numbers of the window, already negative for erosions, with as many axes as the image.
      mask: which of its elements the window has.
      dtype: the dtype of the result.
      mode, cval, origins: as for the filters.
      kind: "minimum" or "maximum".
    """
    reduce = reduce_max if kind == "maximum" else reduce_min
    with doubles_for(x.dtype):
        wide = computed_in(x.dtype, structure.dtype)
        padded = extended_all(ops.convert_element_type(x, wide), mask.shape, origins, [mode] * len(x.shape), cval)
        structure = ops.convert_element_type(structure, wide)
        terms = [ops.add(piece(padded, i, x.shape), structure[i]) for i in np.ndindex(mask.shape) if mask[i]]
        return finished(reduce(pnp.stack(terms), (0,)), dtype)


class _Element:
    """A structuring element of erosions and dilations.

    Attributes:
      window: the elements that count, if they have no numbers.
      structure: the numbers of the elements, or None.
      mask: which of these count.
      axes, origins: the axes and the origins of the structure.
    """

    def __init__(self, name: str, size: Any, footprint: Any, structure: Any, origin: Any, axes: Any, rank: int) -> None:
        self.window: Window | None = None
        self.structure: Any = None
        if structure is None:
            if size is None and footprint is None:
                raise ArgumentError(f"{name} needs a size, a footprint or a structure")
            self.window = Window(name, size if footprint is None else None, footprint, origin, axes, rank)
            return
        self.axes = window_axes(name, axes, rank)
        self.structure = image(name, structure)
        if len(self.structure.shape) != len(self.axes) or not self.structure.size:
            raise ShapeError(
                f"{name}: structure must have {len(self.axes)} axes and elements, got shape {self.structure.shape}"
            )
        whole = np.ones(self.structure.shape, bool)
        self.mask = whole if footprint is None else mask_of(name, "footprint", footprint, len(self.axes))
        if self.mask.shape != self.structure.shape:
            raise ShapeError(
                f"{name}: footprint and structure must have the same shape, got {self.mask.shape} and "
                f"{self.structure.shape}"
            )
        self.origins = origins_of(name, origin, self.mask.shape)

    def by_scipy(self, function: str, x: Any, dtype: Any, mode: str, cval: Any) -> Any:
        """Return SciPy's erosion or dilation with the structure, or None."""
        if has_nan(x) or not is_on_host(self.structure):
            return None
        rank = len(x.shape)
        return by_scipy(
            function, dtype, x, footprint=inserted(self.mask, self.axes, rank),
            structure=inserted(host_value(self.structure), self.axes, rank), mode=mode, cval=cval,
            origin=of_all(self.origins, self.axes, rank, 0),
        )  # fmt: skip


def _turned_origins(origin: Any, sizes: Sequence[int]) -> list[int]:
    given = list(origin) if is_sequence(origin) else [origin] * len(sizes)
    return [-o if n % 2 else -o - 1 for o, n in zip(given, sizes, strict=True)]


def _dilated_or_eroded(name: str, x: Any, element: _Element, dtype: Any, mode: Any, cval: Any, dilate: bool) -> Any:
    """Return the dilation of an image, or its erosion."""
    kind, rank = ("maximum" if dilate else "minimum"), len(x.shape)
    flip = (slice(None, None, -1),)
    if not x.size:
        return finished(x, dtype)
    if element.structure is not None:
        mask, structure, origins = element.mask, element.structure, element.origins
        found = element.by_scipy("grey_dilation" if dilate else "grey_erosion", x, dtype, mode_of(name, mode), cval)
        if found is not None:
            return found
        if dilate:
            mask, structure = mask[flip * mask.ndim], slicing.rev(structure, tuple(range(mask.ndim)))
            origins = _turned_origins(origins, mask.shape)
        structure = structure if dilate else ops.neg(ops.convert_element_type(structure, computed_in(structure.dtype)))
        full = inserted(structure, element.axes, rank)
        offsets = of_all(origins, element.axes, rank, 0)
        return _raised(x, full, inserted(mask, element.axes, rank), dtype, mode_of(name, mode), cval, offsets, kind)
    window = element.window
    assert window is not None
    origins = _turned_origins(window.origins, window.sizes) if dilate else window.origins
    if window.mask is None:
        modes = modes_of(name, mode, len(window.axes))
        for axis, length, offset, one in zip(window.axes, window.sizes, origins, modes, strict=True):
            x = extreme(x, length, axis, dtype, one, cval, offset, kind)
        return finished(x, dtype)
    mask = window.mask[flip * window.mask.ndim] if dilate else window.mask
    full, offsets = inserted(mask, window.axes, rank), of_all(origins, window.axes, rank, 0)
    return extremes(x, np.ascontiguousarray(full), dtype, mode_of(name, mode), cval, offsets, kind)


def _applied(
    name: str, input: Any, size: Any, footprint: Any, structure: Any, output: Any, mode: Any, cval: Any, origin: Any,
    axes: Any, *steps: bool,
) -> tuple[Any, list[Any], Any]:  # fmt: skip
    """Return the image, the results of erosions (False) and dilations (True) of it one after the other, and a dtype."""
    x = real_image(name, input)
    element = _Element(name, size, footprint, structure, origin, axes, len(x.shape))
    dtype, outside = result_dtype(name, output, x.dtype), number(name, "cval", cval)
    results = [x]
    for i, dilate in enumerate(steps):
        last = dtype if i == len(steps) - 1 else x.dtype
        results.append(_dilated_or_eroded(name, results[-1], element, last, mode, outside, dilate))
    return x, results[1:], dtype


def _difference(x: Any, y: Any, dtype: Any) -> Any:
    """Return x - y; where both are Booleans, where they differ."""
    if x.dtype == bool and y.dtype == bool:
        return finished(ops.ne_p.bind(x, y), dtype)
    wide = x.dtype if x.dtype != bool else y.dtype
    return finished(ops.sub(finished(x, wide), finished(y, wide)), dtype)


# long: half of it is its documentation
@of_image("real numbers or Booleans")
def grey_erosion(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The erosion of an image: the smallest elements of windows, from which a structure may be subtracted.

    Args:
      structure: numbers to subtract from the elements of a window before they are compared; they may be differentiated.
      mode: as for :func:`correlate1d`; one, or with ``size`` one for each of the axes.

    Returns:
      An array of the shape of ``input``. Equal elements share the derivative.

    Raises:
      ShapeError: an image without axes, or a window of another number of axes (a TypeError and a ValueError).
      ArgumentError: an unknown mode, an origin outside of the window, or no window (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.grey_erosion(jnp.array([3, 5, 5, 4, 1]), 3))
    [3 3 4 1 1]
    """
    _, results, _ = _applied("grey_erosion", input, size, footprint, structure, output, mode, cval, origin, axes, False)
    return as_array(results[-1])


@of_image("real numbers or Booleans")
def grey_dilation(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The dilation of an image: the largest elements of reversed windows, to which a structure may be added.

    Args:
      size, footprint: as for :func:`grey_erosion`.
      structure: numbers to add to the elements of a window before they are compared; they may be differentiated.
      mode, cval: as for :func:`grey_erosion`.
      origin: how many elements the window moves to the right; one number, or one for each of the axes.

    Returns:
      An array of the shape of ``input``. Equal elements share the derivative.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.grey_dilation(jnp.array([3, 5, 5, 4, 1]), structure=jnp.array([0, 1, 0])))
    [5 6 6 5 4]
    """
    _, results, _ = _applied("grey_dilation", input, size, footprint, structure, output, mode, cval, origin, axes, True)
    return as_array(results[-1])


def grey_opening(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The dilation of the erosion of an image, in which bright spots smaller than the window are gone.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.grey_opening(jnp.array([1, 9, 1, 1, 5, 5, 5, 1]), 3))
    [1 1 1 1 5 5 5 1]
    """
    _, results, _ = _applied(
        "grey_opening", input, size, footprint, structure, output, mode, cval, origin, axes, False, True
    )
    return as_array(results[-1])


def grey_closing(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The erosion of the dilation of an image, in which dark spots smaller than the window are gone.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.grey_closing(jnp.array([9, 1, 9, 9, 5, 5, 5, 9]), 3))
    [9 9 9 9 5 5 5 9]
    """
    _, results, _ = _applied(
        "grey_closing", input, size, footprint, structure, output, mode, cval, origin, axes, True, False
    )
    return as_array(results[-1])


def _both(
    name: str, input: Any, size: Any, footprint: Any, structure: Any, output: Any, mode: Any, cval: Any, origin: Any,
    axes: Any,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the image, its dilation, its erosion, and the dtype of the result."""
    (x, (dilated,), _), (_, (eroded,), _) = (
        _applied(name, input, size, footprint, structure, None, mode, cval, origin, axes, dilate)
        for dilate in (True, False)
    )
    return x, dilated, eroded, result_dtype(name, output, x.dtype)


def morphological_gradient(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The difference of the dilation and the erosion of an image: how much it varies within a window.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.morphological_gradient(jnp.array([1, 1, 1, 4, 9, 9, 9]), 3))
    [0 0 3 8 5 0 0]
    """
    _, dilated, eroded, dtype = _both(
        "morphological_gradient", input, size, footprint, structure, output, mode, cval, origin, axes
    )
    return as_array(_difference(dilated, eroded, dtype))


def morphological_laplace(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The sum of the dilation and the erosion of an image, less twice the image.

    Args:
      input: the image, of any number of axes; real numbers.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.morphological_laplace(jnp.array([1, 1, 1, 4, 9, 9, 9]), 3))
    [ 0  0  3  2 -5  0  0]
    """
    name = "morphological_laplace"
    if real_image(name, input).dtype == bool:
        raise ArgumentError(f"{name} takes numbers, got Booleans; convert them by astype first")
    x, dilated, eroded, dtype = _both(name, input, size, footprint, structure, output, mode, cval, origin, axes)
    return as_array(finished(ops.sub(ops.sub(dilated, x), ops.sub(x, eroded)), dtype))


def white_tophat(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The difference of an image and its opening: the bright spots smaller than the window.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.white_tophat(jnp.array([1, 9, 1, 1, 5, 5, 5, 1]), 3))
    [0 8 0 0 0 0 0 0]
    """
    x, results, dtype = _applied(
        "white_tophat", input, size, footprint, structure, output, mode, cval, origin, axes, False, True
    )
    return as_array(_difference(x, results[-1], dtype))


def black_tophat(
    input: ArrayLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | None = None,
    structure: ArrayLike | None = None, output: DTypeLike | None = None, mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The difference of the closing of an image and the image: the dark spots smaller than the window.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      size, footprint, structure, output, mode, cval, origin, axes: as for :func:`grey_erosion`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`grey_erosion`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.black_tophat(jnp.array([9, 1, 9, 9, 5, 5, 5, 9]), 3))
    [0 8 0 0 0 0 0 0]
    """
    x, results, dtype = _applied(
        "black_tophat", input, size, footprint, structure, output, mode, cval, origin, axes, True, False
    )
    return as_array(_difference(results[-1], x, dtype))
