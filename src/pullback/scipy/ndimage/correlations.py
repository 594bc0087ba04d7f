"""Correlations and convolutions of images with windows of weights, of one axis or of all.

The work of concrete images is SciPy's. Their derivatives are SciPy's work too where the weights are concrete: the
transpose of a correlation is a correlation of the cotangent with the reversed weights, whose margins are added to the
elements that the mode repeats there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ShapeError
from pullback.core.trace import state
from pullback.numpy.promotion import axis_index, is_sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.scipy.ndimage.arguments import (
    PADDING,
    by_scipy,
    computed_in,
    doubles_for,
    finished,
    image,
    inserted,
    mode_of,
    number,
    numeric_image,
    of_all,
    origins_of,
    result_dtype,
    window_axes,
)
from pullback.scipy.ndimage.docs import of_image
from pullback.scipy.ndimage.windows import extended_all, margins, sum_of_products
from pullback.transforms.custom.custom_linear import is_traced_ahead, linear_call

__all__ = ["convolve", "convolve1d", "correlate", "correlate1d"]


def _filtered(x: Any, weights: Any, dtype: Any, modes: Sequence[str], cval: Any, origins: Sequence[int]) -> Any:
    """Return the sums of products of all windows of an image with weights, by own operations."""
    with doubles_for(x.dtype):
        wide = computed_in(x.dtype, weights.dtype) if dtypes.is_complex(weights.dtype) else computed_in(x.dtype)
        wide = wide if isinstance(cval, (int, float)) else dtypes.result_type(wide, cval)
        padded = extended_all(ops.convert_element_type(x, wide), weights.shape, origins, modes, cval)
        return finished(sum_of_products(padded, weights, x.shape), dtype)


def _folded(x: Any, axis: int, n: int, widths: tuple[int, int], mode: str) -> Any:
    """Transpose the extension of an axis of ``n`` elements: add the margins to the elements that they repeat."""
    before, _ = widths
    core = slicing.slice_in_dim(x, before, before + n, axis)
    kind = PADDING[mode]
    if kind == "constant" or not any(widths):
        return core
    positions = np.pad(np.arange(n), widths, kind)  # type: ignore[call-overload]
    lead = (slice(None),) * axis
    for start, stop in ((0, before), (before + n, n + sum(widths))):
        if start < stop:
            index = (*lead, positions[start:stop].astype(np.int32))
            core = core.at[index].add(slicing.slice_in_dim(x, start, stop, axis))
    return core


def _linear(
    x: Any, run: Callable[..., Any], weights: np.ndarray[Any, Any], modes: Sequence[str], origins: Sequence[int]
) -> Any:
    """Apply a correlation to a traced image as one linear operation with its transpose.

    Args:
      x: the image.
      run: the correlation, from an image, weights, modes and origins.
      weights: the weights, with as many axes as the image.
      modes, origins: those of all axes.
    """
    shape, dtype = x.shape, x.dtype
    widths = [margins(k, o) for k, o in zip(weights.shape, origins, strict=True)]
    late = [k - 1 - k // 2 for k in weights.shape]
    zero = ["constant"] * len(shape)

    def transposed(_: Any, ct: Any) -> Any:
        wide = slicing.pad(ct, 0, [(0, k - 1, 0) for k in weights.shape])
        out = run(wide, np.ascontiguousarray(weights[(slice(None, None, -1),) * weights.ndim]), zero, late)
        for axis in reversed(range(len(shape))):
            out = _folded(out, axis, shape[axis], widths[axis], modes[axis])
        return ops.convert_element_type(out, dtype)

    return linear_call(lambda _, v: run(v, weights, modes, origins), transposed, (), x)


def _is_linear(x: Any, dtype: Any, modes: Sequence[str], cval: Any) -> bool:
    """Whether a filter of ``x`` with concrete weights may be one linear operation of a tape."""
    if is_on_host(x) or not dtypes.is_inexact(x.dtype) or x.dtype != dtype or is_traced_ahead(state.trace):
        return False
    return isinstance(cval, (int, float)) and (cval == 0 or not any(PADDING[m] == "constant" for m in modes))


def line_filter(x: Any, weights: Any, axis: int, dtype: Any, mode: str, cval: Any, origin: int = 0) -> Any:
    """Return the correlation of an image with a vector of weights along an axis; the arguments are checked.

    Args:
      x: the image.
      weights: an ``np.ndarray``, or a traced array.
      axis: the axis, from the start.
      dtype: the dtype of the result.
      mode, cval, origin: as for :func:`correlate1d`.
    """
    if not x.size:
        return finished(x, dtype)
    rank = len(x.shape)
    if not isinstance(weights, np.ndarray):
        window = inserted(weights, (axis,), rank)
        modes, origins = of_all([mode], (axis,), rank, mode), of_all([origin], (axis,), rank, 0)
        return _filtered(x, window, dtype, modes, cval, origins)
    found = _line_by_scipy(x, weights, axis, dtype, mode, cval, origin)
    if found is not None:
        return found

    def run(v: Any, w: np.ndarray[Any, Any], modes: Sequence[str], origins: Sequence[int]) -> Any:
        found = _line_by_scipy(v, w.reshape(-1), axis, dtype, modes[axis], cval, origins[axis])
        return _filtered(v, w, dtype, modes, cval, origins) if found is None else found

    window = weights.reshape([-1 if i == axis else 1 for i in range(rank)])
    modes, origins = of_all([mode], (axis,), rank, mode), of_all([origin], (axis,), rank, 0)
    if _is_linear(x, dtype, (mode,), cval):
        return _linear(x, run, window, modes, origins)
    return _filtered(x, window, dtype, modes, cval, origins)


def _line_by_scipy(
    x: Any, weights: np.ndarray[Any, Any], axis: int, dtype: Any, mode: str, cval: Any, origin: int
) -> Any:  # fmt: skip
    """Return SciPy's correlation of a concrete image with a vector, or None."""
    theirs = weights.conj() if weights.dtype.kind == "c" else weights
    return by_scipy("correlate1d", dtype, x, weights=theirs, axis=axis, mode=mode, cval=cval, origin=origin)


def window_filter(x: Any, weights: Any, dtype: Any, mode: str, cval: Any, origins: Sequence[int]) -> Any:
    """Return the correlation of an image with weights of as many axes; the arguments are checked."""
    if not x.size:
        return finished(x, dtype)
    modes = [mode] * len(x.shape)
    if not isinstance(weights, np.ndarray):
        return _filtered(x, weights, dtype, modes, cval, origins)

    def run(v: Any, w: np.ndarray[Any, Any], modes: Sequence[str], origins: Sequence[int]) -> Any:
        theirs = w.conj() if w.dtype.kind == "c" else w
        found = by_scipy("correlate", dtype, v, weights=theirs, mode=modes[0], cval=cval, origin=list(origins))
        return _filtered(v, w, dtype, modes, cval, origins) if found is None else found

    if _is_linear(x, dtype, modes, cval):
        return _linear(x, run, weights, modes, origins)
    return run(x, weights, modes, origins)


# Public functions ----------------------------------------------------------------------------------------------------


def _prepared(
    name: str, input: Any, weights: Any, output: Any, rank: int, reverse: bool
) -> tuple[Any, Any, np.dtype[Any]]:
    """Return the image, the weights of ``rank`` axes as a correlation takes them, and the dtype of the result."""
    x, w = numeric_image(name, input), image(name, weights)
    if len(w.shape) != rank or not w.size:
        what = "a non-empty vector" if rank == 1 else f"an array of {rank} axes with elements"
        raise ShapeError(f"{name}: weights must be {what}, got shape {w.shape}")
    dtype = result_dtype(name, output, x.dtype)
    if output is None and dtypes.is_complex(w.dtype):
        dtype = dtypes.result_type(dtype, w.dtype)
    if is_on_host(w):
        host = host_value(w)
        host = np.asarray(host, np.complex128 if dtypes.is_complex(w.dtype) else np.float64)
        flipped = host[(slice(None, None, -1),) * rank] if reverse else host.conj()
        return x, flipped, dtype
    flipped = slicing.rev(w, tuple(range(rank))) if reverse else ops.conj(w) if dtypes.is_complex(w.dtype) else w
    return x, flipped, dtype


def _turned(origin: int, size: int) -> int:
    """Return the origin of a reversed window."""
    return -origin if size % 2 else -origin - 1


def _one_axis(name: str, input: Any, weights: Any, axis: Any, output: Any, mode: Any, cval: Any, origin: Any) -> Array:
    reverse = name == "convolve1d"
    x, w, dtype = _prepared(name, input, weights, output, 1, reverse)
    where = axis_index(axis, len(x.shape), name)
    size = w.shape[0]
    (offset,) = origins_of(name, origin, (size,)) if not reverse else _reversed_origins(name, origin, (size,))
    return as_array(line_filter(x, w, where, dtype, mode_of(name, mode), number(name, "cval", cval), offset))


def _reversed_origins(name: str, origin: Any, sizes: Sequence[int]) -> list[int]:
    """Return the origins of the reversed window; raise if they are outside of it."""
    given = list(origin) if is_sequence(origin) else [origin] * len(sizes)
    return origins_of(name, [_turned(o, n) for o, n in zip(given, sizes, strict=True)], sizes)


@of_image("numbers")
def correlate1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """The correlation of an image with weights along an axis.

    Args:
      weights: a vector of m numbers. Element i of the result is the sum of ``weights[k] * input[i + k - m // 2]``, with
        the conjugate of complex weights.
      axis: the axis.
      mode: how the image extends beyond its borders: ``"reflect"`` (``d c b a | a b c d | d c b a``), ``"mirror"``
        (``d c b | a b c d | c b a``), ``"nearest"`` (``a a a | a b c d | d d d``), ``"wrap"``
        (``b c d | a b c d | a b c``) or ``"constant"``; also ``"grid-mirror"``, ``"grid-wrap"`` and
        ``"grid-constant"``.

    Returns:
      An array of the shape of ``input``. Sums are truncated where the result is of integers.

    Raises:
      ShapeError: an image without axes, or weights that are no vector (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or an origin outside of the window (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.correlate1d(jnp.array([2.0, 8.0, 0.0, 4.0]), jnp.array([1.0, 3.0])))
    [ 8. 26.  8. 12.]
    """
    return _one_axis("correlate1d", input, weights, axis, output, mode, cval, origin)


@of_image("numbers")
def convolve1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """The convolution of an image with weights along an axis.

    Args:
      weights: a vector of numbers, which is reversed.
      axis: the axis.
      origin: how many elements the window moves to the right.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`correlate1d`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.convolve1d(jnp.array([2.0, 8.0, 0.0, 4.0]), jnp.array([1.0, 3.0])))
    [14. 24.  4. 16.]
    """
    return _one_axis("convolve1d", input, weights, axis, output, mode, cval, origin)


def _all_axes(name: str, input: Any, weights: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> Array:
    reverse = name == "convolve"
    rank = len(numeric_image(name, input).shape)
    where = window_axes(name, axes, rank)
    x, w, dtype = _prepared(name, input, weights, output, len(where), reverse)
    offsets = (_reversed_origins if reverse else origins_of)(name, origin, w.shape)
    window = inserted(w, where, rank)
    origins = of_all(offsets, where, rank, 0)
    return as_array(window_filter(x, window, dtype, mode_of(name, mode), number(name, "cval", cval), origins))


def correlate(
    input: ArrayLike, weights: ArrayLike, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The correlation of an image with an array of weights.

    Args:
      input: the image, of n axes; numbers.
      weights: an array of as many axes as ``axes``, of which the result has the conjugate.
      output: the dtype of the result, by default that of ``input``.
      mode, cval: as for :func:`correlate1d`.
      origin: how many elements the window moves to the left; one number, or one for each of the axes.
      axes: the axes of the window, all by default.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: weights of another number of axes, or without elements (a TypeError and a ValueError).
      ArgumentError: an unknown mode, or an origin outside of the window (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.array([[1.0, 2.0, 4.0], [0.0, 3.0, 9.0]])
    >>> print(ndimage.correlate(image, jnp.array([[-1.0, 0.0, 1.0]]), mode="nearest"))
    [[1. 3. 2.]
     [3. 9. 6.]]
    """
    return _all_axes("correlate", input, weights, output, mode, cval, origin, axes)


def convolve(
    input: ArrayLike, weights: ArrayLike, output: DTypeLike | None = None, mode: str = "reflect",
    cval: ArrayLike = 0.0, origin: int | Sequence[int] = 0, *, axes: Axes = None,
) -> Array:  # fmt: skip
    """The convolution of an image with an array of weights.

    Args:
      input: the image, of n axes; numbers.
      weights: an array of as many axes as ``axes``, which is reversed along all of them.
      output: the dtype of the result, by default that of ``input``.
      mode, cval: as for :func:`correlate1d`.
      origin: how many elements the window moves to the right; one number, or one for each of the axes.
      axes: the axes of the window, all by default.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError, ArgumentError: as for :func:`correlate`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.array([[1.0, 2.0, 4.0], [0.0, 3.0, 9.0]])
    >>> print(ndimage.convolve(image, jnp.array([[-1.0, 0.0, 1.0]]), mode="nearest"))
    [[-1. -3. -2.]
     [-3. -9. -6.]]
    """
    return _all_axes("convolve", input, weights, output, mode, cval, origin, axes)
