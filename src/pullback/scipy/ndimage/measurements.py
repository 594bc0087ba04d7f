"""Regions of images: how they are found, and sums, means and extremes over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ConcretizationTypeError, DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.trace import state
from pullback.numpy.promotion import known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.ndimage.arguments import concrete, mask_of, measured_in, numeric_image, real_image, result_dtype
from pullback.scipy.ndimage.ranks import has_nan
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = [
    "center_of_mass", "extrema", "find_objects", "label", "maximum", "maximum_position", "mean", "minimum",
    "minimum_position", "standard_deviation", "sum_labels", "variance",
]  # fmt: skip


# Regions -------------------------------------------------------------------------------------------------------------


def label(input: ArrayLike, structure: ArrayLike | None = None, output: DTypeLike | None = None) -> tuple[Any, Any]:
    """Number the regions of connected elements of an image that are not zero, on the host.

    Args:
      input: the image, of any number of axes; real numbers or Booleans.
      structure: which neighbours are connected: an array of Booleans, 3 along each axis, and symmetric; by default the
        nearest neighbours along the axes.
      output: the dtype of the numbers, int32 by default.

    Returns:
      An array of the shape of ``input`` with the number of the region of each element, 0 where it has none; and how
      many regions there are: an int, or an int32 array of no axes where the image is traced.

    Raises:
      ShapeError: a structure of another shape (a TypeError and a ValueError).
      ArgumentError: a structure that is not symmetric (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> labels, count = ndimage.label(jnp.array([0, 1, 1, 0, 1, 0]))
    >>> print(labels, count)
    [0 1 1 0 2 0] 2
    """
    name = "label"
    x = real_image(name, input)
    rank = len(x.shape)
    window = None
    if structure is not None:
        window = mask_of(name, "structure", structure, rank)
        if window.shape != (3,) * rank:
            raise ShapeError(f"{name}: structure must have shape {(3,) * rank}, got {window.shape}")
        if not np.array_equal(window, window[(slice(None, None, -1),) * rank]):
            raise ArgumentError(f"{name}: structure must be symmetric about its middle")
    dtype = result_dtype(name, output, np.int32)
    if not dtypes.is_integer(dtype):
        raise DtypeError(f"{name}: output must be an integer dtype, got {dtypes.short_name(dtype)}")
    if not x.size:
        return pnp.zeros(x.shape, dtype), 0

    def on_host(v: Any) -> list[Any]:
        found, count = imported("scipy.ndimage").label(v != 0, window)
        return [found.astype(dtype), np.int32(count)]

    if is_on_host(x):
        found, count = on_host(host_value(x))
        return as_array(found), int(count)
    types = [ShapeDtypeStruct(x.shape, dtype), ShapeDtypeStruct((), np.int32)]
    return tuple(pure_callback(on_host, types, stop_gradient(x), vmap_method="sequential"))


def find_objects(input: ArrayLike, max_label: int = 0) -> list[tuple[slice, ...] | None]:
    """Return the smallest boxes that contain the regions of an image of labels.

    Args:
      input: the labels, an array of integers, which must not be traced.
      max_label: the largest label; 0 for the largest in the image.

    Returns:
      A list of a tuple of slices, one for each axis, for the labels 1, 2, ...; None for a label without elements.

    Raises:
      ConcretizationTypeError: traced labels, since slices are not arrays (a TypeError).
      DtypeError: labels that are no integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.find_objects(jnp.array([0, 1, 1, 0, 3])))
    [(slice(1, 3, None),), None, (slice(4, 5, None),)]
    """
    name = "find_objects"
    x = real_image(name, input)
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"{name} takes an array of integers, got {dtypes.short_name(x.dtype)}")
    last = known_int(name, "max_label", max_label)
    if not is_on_host(x):
        raise ConcretizationTypeError(
            f"{name}: the labels are traced, so that the slices are not known; call it outside of the transformed "
            f"function, or use minimum and maximum of pullback.numpy.indices with labels"
        )
    if not x.size:
        return []
    return list(imported("scipy.ndimage").find_objects(host_value(x), last))


# Measurements --------------------------------------------------------------------------------------------------------


class _Groups:
    """The elements of an image, in groups by their labels.

    Attributes:
      x: the image.
      labels: the labels, of its shape, or None for one group of all elements.
      index: the labels to measure, an array of NumPy, or None for one group of all positive labels.
      count: the number of groups.
      shape: the shape of a result.
      members: the group of each element, int32, ``count`` for those in none.
      order: which group each element of the result is.
    """

    def __init__(self, name: str, input: Any, labels: Any, index: Any, *, real: bool = False) -> None:
        self.name = name
        self.x = real_image(name, input) if real else numeric_image(name, input)
        if labels is None:
            if index is not None:
                raise ArgumentError(f"{name}: index needs labels")
            self.labels, self.index = None, None
        else:
            self.labels = real_image(name, labels)
            given, wanted = self.labels.shape, self.x.shape
            aligned = zip(given[::-1], wanted[::-1], strict=False)
            if len(given) > len(wanted) or any(n not in (1, m) for n, m in aligned):
                raise ShapeError(
                    f"{name}: labels must broadcast to the shape of the image, {self.x.shape}, got {self.labels.shape}"
                )
            self.labels = shapes.broadcast_to(self.labels, self.x.shape)
            self.index = None if index is None else concrete(name, "index", index)
        self.shape = () if self.index is None else self.index.shape
        self.count = 1

    def by_scipy(self, function: str, *, compares: bool = True) -> Any:
        """Return SciPy's result if the image and the labels are concrete, else None.

        Functions that compare elements pass over some that are NaN: then the result is None.
        """
        x, labels = self.x, self.labels
        if not is_on_host(x) or not (labels is None or is_on_host(labels)) or not x.size or x.dtype.char in "eV":
            return None
        if compares and has_nan(x):
            return None
        call = getattr(imported("scipy.ndimage"), function)
        if labels is None:
            return state.silently(call, host_value(x))
        index = self.index.item() if self.index is not None and not self.shape else self.index
        return state.silently(call, host_value(x), host_value(labels), index)

    def find(self) -> None:
        """Find the group of each element."""
        self.order = np.zeros(self.shape, np.int32)
        if self.labels is None:
            self.members = pnp.zeros(self.x.shape, np.int32)
        elif self.index is None:
            self.members = ops.where(ops.gt(self.labels, 0), np.int32(0), np.int32(1))
        else:
            values, inverse = np.unique(self.index, return_inverse=True)
            self.order = inverse.reshape(self.shape).astype(np.int32)
            self.count = len(values)
            if not self.count:
                self.members = pnp.zeros(self.x.shape, np.int32)
                return
            table = as_array(values)
            at = pnp.searchsorted(table, self.labels).astype(np.int32)
            at = ops.clamp_p.bind(0, at, self.count - 1)
            same = pnp.equal(table[at], self.labels)
            self.members = ops.where(same, at, np.int32(self.count))

    def total(self, x: Any) -> Any:
        """Return the sums of elements over the groups."""
        if self.labels is None:
            return pnp.sum(x, keepdims=True).reshape(1)
        out = pnp.zeros(self.count + 1, x.dtype)
        return out.at[self.members].add(x)[: self.count]

    def sizes(self, dtype: Any) -> Any:
        """Return the numbers of elements of the groups."""
        return self.total(pnp.ones(self.x.shape, dtype))

    def spread(self, values: Any) -> Any:
        """Return the value of the group of each element; zero for those in none."""
        return pnp.concatenate([values, pnp.zeros(1, values.dtype)])[self.members]

    def result(self, values: Any) -> Any:
        """Return the values of groups in the order of ``index``."""
        return values[self.order]

    def extremes(self, kind: str) -> tuple[Any, Any]:
        """Return the extremes of the groups, and the position of each in the flat image; both 0 for empty groups."""
        fixed = stop_gradient(self.x)
        is_max = kind == "maximum"
        at = pnp.full(self.count + 1, _least(fixed.dtype) if is_max else _largest(fixed.dtype), fixed.dtype)
        at = at.at[self.members].max(fixed) if is_max else at.at[self.members].min(fixed)
        hit = ops.or_p.bind(pnp.equal(fixed, at[self.members]), ops.ne_p.bind(fixed, fixed))
        wide = self.x if dtypes.is_inexact(self.x.dtype) else self.x.astype(dtypes.default_int())
        ties = ops.convert_element_type(hit, wide.dtype)
        sums, numbers = self.total(ops.where(hit, wide, 0)), ops.max_p.bind(self.total(ties), 1)
        values = ops.div(sums, numbers) if dtypes.is_inexact(wide.dtype) else pnp.floor_divide(sums, numbers)
        n = math.prod(self.x.shape)
        order = as_array(np.arange(n, dtype=np.int32).reshape(self.x.shape))
        last = is_max and bool(self.shape)  # as SciPy takes equal elements of several regions
        where = pnp.full(self.count + 1, -1 if last else n, np.int32)
        marked = ops.where(hit, order, np.int32(-1 if last else n))
        where = (where.at[self.members].max(marked) if last else where.at[self.members].min(marked))[: self.count]
        where = ops.where(ops.or_p.bind(ops.lt(where, 0), ops.ge_p.bind(where, np.int32(n))), np.int32(0), where)
        return ops.convert_element_type(values, self.x.dtype), where

    def positions(self, flat: Any) -> Any:
        """Return positions in the flat image as a tuple of indices, or a list of such tuples."""
        columns = pnp.unravel_index(self.result(flat), self.x.shape)
        if not self.shape:
            return tuple(columns)
        rows = [pnp.ravel(c) for c in columns]
        return [tuple(c[i] for c in rows) for i in range(math.prod(self.shape))]


def _least(dtype: Any) -> Any:
    return -np.inf if dtypes.is_inexact(dtype) else False if dtypes.is_bool(dtype) else dtypes.iinfo(dtype).min


def _largest(dtype: Any) -> Any:
    return np.inf if dtypes.is_inexact(dtype) else True if dtypes.is_bool(dtype) else dtypes.iinfo(dtype).max


def _measured(groups: _Groups, function: str, own: Callable[[_Groups, Any], Any]) -> Array:
    """Return a measurement that is a float, or complex for complex images."""
    dtype = measured_in(groups.x.dtype)
    if not dtypes.is_complex(dtype):
        found = groups.by_scipy(function, compares=False)
        if found is not None:
            return as_array(np.asarray(found).astype(dtype))
    groups.find()
    groups.x = ops.convert_element_type(groups.x, dtype)
    return as_array(groups.result(own(groups, dtype)))


def sum_labels(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The sums of the elements of an image over regions.

    Args:
      input: the image, of any number of axes; numbers.
      labels: the region of each element, an array that broadcasts to the shape of the image; None for one region.
      index: the labels of the regions to measure, which must not be traced: one, or an array of them. By default all
        positive labels are one region.

    Returns:
      A float, or an array of the shape of ``index``; zero for a label that no element has.

    Raises:
      ShapeError: labels that do not fit the image (a TypeError and a ValueError).
      ArgumentError: ``index`` is traced, or has no labels (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> labels = jnp.array([1, 1, 2, 0])
    >>> print(ndimage.sum_labels(jnp.array([1.0, 2.0, 4.0, 8.0]), labels, jnp.array([1, 2])))
    [3. 4.]
    """
    return _measured(_Groups("sum_labels", input, labels, index), "sum_labels", lambda g, _: g.total(g.x))


def mean(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The means of the elements of an image over regions.

    Args:
      input, labels, index: as for :func:`sum_labels`.

    Returns:
      A float, or an array of the shape of ``index``; NaN for a label that no element has.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.mean(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([1, 1, 2, 0]), jnp.array([1, 2])))
    [1.5 4. ]
    """
    return _measured(_Groups("mean", input, labels, index), "mean", _mean)


def _mean(groups: _Groups, dtype: Any) -> Any:
    return ops.div(groups.total(groups.x), groups.sizes(dtype))


def _variance(groups: _Groups, dtype: Any) -> Any:
    centred = ops.sub(groups.x, groups.spread(_mean(groups, dtype)))
    squares = ops.square(pnp.abs(centred)) if dtypes.is_complex(dtype) else ops.square(centred)
    return ops.div(groups.total(squares), groups.sizes(squares.dtype))


def variance(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The variances of the elements of an image over regions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A float, or an array of the shape of ``index``; NaN for a label that no element has.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.variance(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([1, 1, 2, 0]), jnp.array([1, 2])))
    [0.25 0.  ]
    """
    return _measured(_Groups("variance", input, labels, index, real=True), "variance", _variance)


def standard_deviation(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The standard deviations of the elements of an image over regions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A float, or an array of the shape of ``index``; NaN for a label that no element has.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.standard_deviation(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([1, 1, 2, 0]), 1))
    0.5
    """
    groups = _Groups("standard_deviation", input, labels, index, real=True)
    return _measured(groups, "standard_deviation", lambda g, dtype: pnp.sqrt(_variance(g, dtype)))


def _extreme(name: str, input: Any, labels: Any, index: Any) -> Array:
    groups = _Groups(name, input, labels, index, real=True)
    if not groups.x.size:
        raise ShapeError(f"{name} takes a non-empty image, got shape {groups.x.shape}")
    found = groups.by_scipy(name)
    if found is not None:
        return as_array(np.asarray(found).astype(groups.x.dtype))
    groups.find()
    return as_array(groups.result(groups.extremes(name)[0]))


def minimum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The smallest elements of an image in regions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A number of the dtype of ``input``, or an array of the shape of ``index``; zero for a label that no element has.
      Equal elements share the derivative.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.minimum(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([1, 1, 2, 0]), jnp.array([1, 2])))
    [1. 4.]
    """
    return _extreme("minimum", input, labels, index)


def maximum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array:
    """The largest elements of an image in regions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A number of the dtype of ``input``, or an array of the shape of ``index``; zero for a label that no element has.
      Equal elements share the derivative.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.maximum(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([1, 1, 2, 0]), jnp.array([1, 2])))
    [2. 4.]
    """
    return _extreme("maximum", input, labels, index)


def _position(name: str, input: Any, labels: Any, index: Any) -> Any:
    groups = _Groups(name, input, labels, index, real=True)
    if not groups.x.size:
        raise ShapeError(f"{name} takes a non-empty image, got shape {groups.x.shape}")
    groups.find()
    return groups.positions(groups.extremes(name.removesuffix("_position"))[1])


def minimum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Any:
    """The positions of the smallest elements of an image in regions; the first of equal ones.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A tuple of int32 indices, or a list of such tuples for an ``index`` of several labels.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(*ndimage.minimum_position(jnp.array([[3.0, 1.0], [4.0, 8.0]])))
    0 1
    """
    return _position("minimum_position", input, labels, index)


def maximum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Any:
    """The positions of the largest elements of an image in regions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A tuple of int32 indices, or a list of such tuples for an ``index`` of several labels.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(*ndimage.maximum_position(jnp.array([[3.0, 1.0], [4.0, 8.0]])))
    1 1
    """
    return _position("maximum_position", input, labels, index)


def extrema(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> tuple[Any, ...]:
    """The smallest and the largest elements of an image in regions, and their positions.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      The results of :func:`minimum`, :func:`maximum`, :func:`minimum_position` and :func:`maximum_position`.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> low, high, _, _ = ndimage.extrema(jnp.array([3.0, 1.0, 4.0]))
    >>> print(low, high)
    1.0 4.0
    """
    groups = _Groups("extrema", input, labels, index, real=True)
    if not groups.x.size:
        raise ShapeError(f"extrema takes a non-empty image, got shape {groups.x.shape}")
    groups.find()
    (low, first), (high, last) = groups.extremes("minimum"), groups.extremes("maximum")
    return groups.result(low), groups.result(high), groups.positions(first), groups.positions(last)


def center_of_mass(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Any:
    """The centres of mass of regions of an image, whose elements are the masses.

    Args:
      input: the image, of any number of axes; real numbers.
      labels, index: as for :func:`sum_labels`.

    Returns:
      A tuple of coordinates, or a list of such tuples for an ``index`` of several labels; NaN without mass.

    Raises:
      ShapeError, ArgumentError: as for :func:`sum_labels`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(*ndimage.center_of_mass(jnp.array([[0.0, 1.0], [0.0, 3.0]])))
    0.75 1.0
    """
    name = "center_of_mass"
    groups = _Groups(name, input, labels, index, real=True)
    groups.find()
    dtype = measured_in(groups.x.dtype)
    x = ops.convert_element_type(groups.x, dtype)
    mass = groups.total(x)
    columns = []
    for axis, n in enumerate(x.shape):
        line = as_array(np.arange(n).astype(dtype).reshape([n if i == axis else 1 for i in range(len(x.shape))]))
        columns.append(groups.result(ops.div(groups.total(ops.mul(x, line)), mass)))
    if not groups.shape:
        return tuple(columns)
    rows = [pnp.ravel(c) for c in columns]
    return [tuple(c[i] for c in rows) for i in range(math.prod(groups.shape))]
