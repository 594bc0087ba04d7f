"""Discrete Fourier transforms, real and complex, over any axes: ``pullback.numpy.fft``.

The forward transform of x is X[k] = Σ x[j] exp(-2πi jk / n). Single precision is computed in single precision. All
transforms are linear operations: their derivatives are transforms too, in both modes and to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.devices.shardings import DeviceLike
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.arguments import is_listed, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.faces import face
from pullback.numpy import creation, manipulation
from pullback.numpy.promotion import (
    another,
    axis_index,
    inexact_operand,
    is_sequence,
    known_int,
    operand,
    several,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.arrays.shapes import transpose
from pullback.primitives.signals import fourier
from pullback.primitives.signals.fourier import FftType
from pullback.transforms.programs.transfer import device_put

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
face(globals())

# Shared by transforms ----------------------------------------------------------------------------------------------

_DTYPES = {FftType.FFT: "fdFD", FftType.IFFT: "fdFD", FftType.RFFT: "fd", FftType.IRFFT: "FD"}
_REALS = (FftType.RFFT, FftType.IRFFT)
_INVERSE = (FftType.IFFT, FftType.IRFFT)
_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _transform(name: str, kind: FftType, x: Any, lengths: Sequence[int] | None, axes: Sequence[int], norm: Any) -> Any:
    """Return the Fourier transform of ``x`` over ``axes``.

    Args:
      name: the name of the function, for errors.
      kind: the kind of transform.
      x: the operand.
      lengths: the number of points along each axis; ``x`` is cut off or padded with zeros to these. None for its sizes.
      axes: the axes.
      norm: "backward", "ortho", "forward" or None, as in NumPy.
    """
    if norm is not None and not is_listed(norm, _OPPOSITE):
        raise ShapeError(f'{name}: norm must be "backward", "ortho", "forward" or None, got {norm!r}')
    if not axes:
        return x
    if lengths is None:
        lengths = [x.shape[a] for a in axes]
        if kind is FftType.IRFFT:
            lengths[-1] = 2 * (lengths[-1] - 1)
        if kind is not FftType.RFFT and 0 in [x.shape[a] for a in axes]:
            return _empty_transform(kind, x, lengths, axes)
    if min(lengths) < 1:
        raise ShapeError(
            f"{name}: a transform needs at least one point along each axis, got {tuple(lengths)} for an array of shape "
            f"{x.shape}"
        )
    needed = list(lengths)
    if kind is FftType.IRFFT:
        needed[-1] = lengths[-1] // 2 + 1
    if [x.shape[a] for a in axes] != needed:
        x = _resized(x, axes, needed)
    rank = len(x.shape)
    if list(axes) == list(range(rank - len(axes), rank)):
        out = fourier.fft(x, kind, lengths)
    else:
        order = [*(i for i in range(rank) if i not in axes), *axes]
        out = fourier.fft(transpose(x, order), kind, lengths)
        out = transpose(out, sorted(range(rank), key=order.__getitem__))
    factor = _factor(norm, math.prod(lengths), kind in _INVERSE)
    return out if factor == 1 else ops.mul(out, factor)


def _empty_transform(kind: FftType, x: Any, lengths: Sequence[int], axes: Sequence[int]) -> Any:
    """Return the transform of an operand without points: zeros, as in JAX. (NumPy raises an error.)"""
    dtype = dtypes.to_real(x.dtype) if kind is FftType.IRFFT else dtypes.to_complex(dtypes.to_real(x.dtype))
    sizes = list(x.shape)
    for a, n in zip(axes, lengths, strict=True):
        sizes[a] = max(n, 0)
    return shapes.full(tuple(sizes), 0, dtype)


def _factor(norm: str | None, count: int, inverse: bool) -> float:
    """Return the factor that normalizes the result of the transform primitive over ``count`` points by ``norm``.

    The primitive already divides inverse transforms by ``count``, and does not scale forward transforms. ``inverse``
    says whether the transform is an inverse one.
    """
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return float(count) if inverse else 1 / count
    return 1.0


def _resized(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """Return ``x`` with the given sizes along ``axes``: cut off, or padded with zeros, at the end of each axis."""
    have = list(x.shape)
    limit, padding = list(have), [(0, 0, 0)] * len(have)
    for a, n in zip(axes, sizes, strict=True):
        limit[a], padding[a] = min(n, have[a]), (0, max(n - have[a], 0), 0)
    if limit != have:
        x = slicing.slice(x, (0,) * len(have), limit)
    return slicing.pad(x, 0, padding) if any(p != (0, 0, 0) for p in padding) else x


def _prepared(name: str, kind: FftType, a: Any) -> Any:
    """Convert the operand of a transform to a dtype of at least single precision, which is complex for ``IRFFT``.

    For ``RFFT``, raise if the operand is complex. ``name`` is the name of the function, for errors.
    """
    x = inexact_operand(name, a)
    dtype = x.dtype
    if dtype.char in _DTYPES[kind]:
        return x
    if kind is FftType.RFFT and dtypes.is_complex(dtype):
        raise DtypeError(
            f"{name} takes real numbers, got {dtypes.short_name(dtype)}; use {name.replace('rfft', 'fft')}"
        )
    target = dtype if dtype.itemsize >= 4 else dtypes.canonicalize_dtype("float32")
    if kind is FftType.IRFFT:
        target = dtypes.to_complex(dtypes.to_real(target))
    return x if dtype == target else ops.convert_element_type(x, target)


def _over_one(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    x = _prepared(name, kind, a)
    if isinstance(axis, (tuple, list)):
        raise ShapeError(f"{name} takes one axis, got {axis!r}; use {name}n for several")
    where = axis_index(axis, len(x.shape), name)
    return _transform(name, kind, x, None if n is None else [known_int(name, "n", n)], [where], norm)


def _over_several(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    x = _prepared(name, kind, a)
    rank = len(x.shape)
    sizes = None if s is None else [known_int(name, "a size in s", n) for n in _sequence(name, "s", s)]
    if axes is None:
        if sizes is not None and len(sizes) > rank:
            raise ShapeError(f"{name}: {len(sizes)} sizes, {sizes}, for an array of {rank} axes")
        where = list(range(0 if sizes is None else rank - len(sizes), rank))
    else:
        where = [axis_index(i, rank, name) for i in _sequence(name, "axes", axes)]
    if len(set(where)) != len(where):
        raise ShapeError(f"{name}: the axes must differ, got {axes!r} for an array of {rank} axes")
    if sizes is not None and len(sizes) != len(where):
        raise ShapeError(f"{name}: s and axes must have the same length, got {s!r} and {axes!r}")
    if not where and kind not in _REALS:
        return ops.convert_element_type(x, dtypes.to_complex(dtypes.to_real(x.dtype)))
    if not where:
        raise ShapeError(f"{name}: a transform between real and complex numbers needs at least one axis; got {axes!r}")
    return _transform(name, kind, x, sizes, where, norm)


def _sequence(name: str, what: str, value: Any) -> list[Any]:
    if not is_sequence(value):
        raise ShapeError(f"{name}: {what} must be a sequence of ints, got {typed(value)}")
    return list(value)


def _over_two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if len(_sequence(name, "axes", axes)) != 2:
        raise ShapeError(f"{name} takes two axes, got {axes!r}; use {name[:-1]}n for any number")
    return _over_several(name, kind, a, s, axes, norm)


# Over one axis -------------------------------------------------------------------------------------------------------


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis.

    Args:
      a: an array.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default): no division; "forward": the result is divided by the length; "ortho": by its
        square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axis, which has the length.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0])))
    [10.+0.j -2.+2.j -2.+0.j -2.-2.j]
    """
    return _over_one("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`fft`.

    Args:
      a: an array.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default): the result is divided by the length; "forward": no division; "ortho": the result
        is divided by the square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axis, which has the length.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _over_one("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real numbers along an axis: the first half of :func:`fft`, which determines the other.

    Args:
      a: an array of real numbers.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default): no division; "forward": the result is divided by the length; "ortho": by its
        square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axis, which has ``n // 2 + 1`` elements.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0])))
    [10.+0.j -2.+2.j -2.+0.j]
    """
    return _over_one("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`rfft`.

    Args:
      a: an array; imaginary parts that the transform of a real signal lacks are ignored.
      n: the length of the result: ``n // 2 + 1`` elements are used. By default ``2 * (m - 1)`` for an axis of size m.
      axis: the axis.
      norm: "backward" (the default): the result is divided by the length; "forward": no division; "ortho": the result
        is divided by the square root.

    Returns:
      Real numbers, of the shape of the operand except for the axis, which has ``n`` elements.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.irfft(jnp.array([10.0, -2.0, -2.0]), 4))
    [1. 3. 3. 3.]
    """
    return _over_one("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform, which is real, of a Hermitian signal, from its first half.

    Args:
      a: an array.
      n: the length of the result: ``n // 2 + 1`` elements are used. By default ``2 * (m - 1)`` for an axis of size m.
      axis: the axis.
      norm: "backward" (the default): no division; "forward": the result is divided by the length; "ortho": by its
        square root.

    Returns:
      Real numbers, of the shape of the operand except for the axis, which has ``n`` elements.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0])))
    [ 8. -2.  0. -2.]
    """
    return _over_one("hfft", FftType.IRFFT, ops.conj(inexact_operand("hfft", a)), n, axis, _opposite("hfft", norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`hfft`: the first half of the inverse transform of real numbers.

    Args:
      a: an array of real numbers.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default): the result is divided by the length; "forward": no division; "ortho": the result
        is divided by the square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axis, which has ``n // 2 + 1`` elements.

    Raises:
      ShapeError: the axis is out of range, the length is zero, or an unknown norm (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.ihfft(jnp.array([8.0, -2.0, 0.0, -2.0])))
    [1.-0.j 2.-0.j 3.-0.j]
    """
    return ops.conj(_over_one("ihfft", FftType.RFFT, a, n, axis, _opposite("ihfft", norm)))


def _opposite(name: str, norm: Any) -> str:
    """Return the norm with which an inverse transform is scaled like a forward transform with ``norm``.

    For example, "backward" becomes "forward": neither transform is scaled. ``name`` is the function, for the error.
    """
    if not is_listed(norm, _OPPOSITE):
        raise ShapeError(f'{name}: norm must be "backward", "ortho", "forward" or None, got {norm!r}')
    return _OPPOSITE[norm]


# Over several axes ---------------------------------------------------------------------------------------------------


def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The discrete Fourier transform over any number of axes.

    Args:
      a: an array.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: "backward" (the default): no division; "forward": the result is divided by the product of the lengths;
        "ortho": by its square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.fftn(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _over_several("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of :func:`fftn`.

    Args:
      a: an array.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: "backward" (the default): the result is divided by the product of the lengths; "forward": no division;
        "ortho": the result is divided by the square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.ifftn(4 * jnp.eye(2)))
    [[2.+0.j 0.+0.j]
     [0.+0.j 2.+0.j]]
    """
    return _over_several("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers over any number of axes: real along the last, complex along others.

    Args:
      a: an array of real numbers.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: "backward" (the default): no division; "forward": the result is divided by the product of the lengths;
        "ortho": by its square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths, the last
      one ``s[-1] // 2 + 1``.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.rfftn(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _over_several("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of :func:`rfftn`.

    Args:
      a: an array.
      s: the lengths of the result: of the last axis ``s[-1] // 2 + 1`` elements are used. By default the sizes of the
        axes, the last one ``2 * (m - 1)`` for a size m.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: "backward" (the default): the result is divided by the product of the lengths; "forward": no division;
        "ortho": the result is divided by the square root.

    Returns:
      Real numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.irfftn(jnp.array([[10.0, -2.0], [-4.0, 0.0]])))
    [[1. 2.]
     [3. 4.]]
    """
    return _over_several("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The discrete Fourier transform over two axes.

    Args:
      a: an array.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; two of them, by default the last.
      norm: "backward" (the default): no division; "forward": the result is divided by the product of the lengths;
        "ortho": by its square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.fft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _over_two("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of :func:`fft2`.

    Args:
      a: an array.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; two of them, by default the last.
      norm: "backward" (the default): the result is divided by the product of the lengths; "forward": no division;
        "ortho": the result is divided by the square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.ifft2(4 * jnp.eye(2)))
    [[2.+0.j 0.+0.j]
     [0.+0.j 2.+0.j]]
    """
    return _over_two("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers over two axes: real along the last, complex along others.

    Args:
      a: an array of real numbers.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; two of them, by default the last.
      norm: "backward" (the default): no division; "forward": the result is divided by the product of the lengths;
        "ortho": by its square root.

    Returns:
      Complex numbers, of the shape of the operand except for the axes, which have the lengths, the last
      one ``s[-1] // 2 + 1``.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [[10.+0.j -2.+0.j]
     [-4.+0.j  0.+0.j]]
    """
    return _over_two("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of :func:`rfft2`.

    Args:
      a: an array.
      s: the lengths of the result: of the last axis ``s[-1] // 2 + 1`` elements are used. By default the sizes of the
        axes, the last one ``2 * (m - 1)`` for a size m.
      axes: the axes; two of them, by default the last.
      norm: "backward" (the default): the result is divided by the product of the lengths; "forward": no division;
        "ortho": the result is divided by the square root.

    Returns:
      Real numbers, of the shape of the operand except for the axes, which have the lengths.

    Raises:
      ShapeError: an axis is out of range, a length is zero, ``s`` does not fit, or an unknown norm (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.irfft2(jnp.array([[10.0, -2.0], [-4.0, 0.0]])))
    [[1. 2.]
     [3. 4.]]
    """
    return _over_two("irfft2", FftType.IRFFT, a, s, axes, norm)


# Frequencies and their positions --------------------------------------------------------------------------------------


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Array:
    """The frequencies of the coefficients of :func:`fft`: from 0 up, then the negative ones.

    Args:
      n: the length of the transform, an int.
      d: the distance of neighbouring samples, a scalar, in seconds for frequencies in hertz.
      dtype: the dtype of the result; by default the promoted dtype of ``d`` and the default float.
      device: the device or sharding of the result; see :func:`pullback.device_put`.

    Returns:
      An array (n,).

    Raises:
      ShapeError: ``n`` is not a positive int, or ``d`` is not a scalar (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.fftfreq(4, 0.5))
    [ 0.   0.5 -1.  -0.5]
    """
    count = _count("fftfreq", n)
    indices = creation.arange(count)
    signed = ops.where(ops.lt(indices, (count + 1) // 2), indices, ops.sub(indices, count))
    return _frequencies("fftfreq", signed, count, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Array:
    """The frequencies of the coefficients of :func:`rfft`, from 0 up.

    Args:
      n: the length of the transform, an int.
      d: the distance of neighbouring samples, a scalar, in seconds for frequencies in hertz.
      dtype: the dtype of the result; by default the promoted dtype of ``d`` and the default float.
      device: the device or sharding of the result; see :func:`pullback.device_put`.

    Returns:
      An array (n // 2 + 1,).

    Raises:
      ShapeError: ``n`` is not a positive int, or ``d`` is not a scalar (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.rfftfreq(4, 0.5))
    [0.  0.5 1. ]
    """
    count = _count("rfftfreq", n)
    return _frequencies("rfftfreq", creation.arange(count // 2 + 1), count, d, dtype, device)


def _count(name: str, n: Any) -> int:
    count = known_int(name, "n", n)
    if count < 1:
        raise ShapeError(f"{name}: n must be positive, got {count}")
    return count


def _frequencies(name: str, indices: Any, count: int, d: Any, dtype: Any, device: Any) -> Any:
    spacing = inexact_operand(name, d)
    if spacing.shape != ():
        raise ShapeError(f"{name}: d must be a scalar, got shape {spacing.shape}")
    wide = dtypes.canonicalize_dtype(float) if spacing.weak_type else spacing.dtype
    step = ops.mul(ops.convert_element_type(spacing, wide), count)
    out = ops.div(ops.convert_element_type(indices, wide), step)
    out = out if dtype is None else ops.convert_element_type(out, dtypes.requested_dtype(dtype, name))
    return out if device is None else device_put(out, device)


def fftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """The array with the coefficient of frequency zero moved to the middle of each axis.

    Args:
      x: an array.
      axes: an axis or several; all by default.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      ShapeError: the axis is out of range (a  TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.fftshift(jnp.fft.fftfreq(4, 0.25)))
    [-2. -1.  0.  1.]
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """The inverse of :func:`fftshift`, which differs from it along axes of odd size.

    Args:
      x: an array.
      axes: an axis or several; all by default.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      ShapeError: the axis is out of range (a  TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fft.ifftshift(jnp.array([-1, 0, 1])))
    [ 0  1 -1]
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x: Any, axes: Any, step: Callable[[int], int]) -> Any:
    x = operand(name, x)
    rank = len(x.shape)
    where = [axis_index(a, rank, name) for a in (range(rank) if axes is None else several(axes))]
    return manipulation.roll(x, tuple(step(x.shape[a]) for a in where), tuple(where)) if where else another(x)
