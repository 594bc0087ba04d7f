"""Discrete cosine and sine transforms, of types 1 to 4, over any axes: ``pullback.scipy.fft``.

All are linear operations; their derivatives, in both modes and of any order, are transforms of these types too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.faces import face
from pullback.numpy.promotion import axis_index, inexact_operand, known_int, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.signals.cosine_transforms import cosine_transform

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]
face(globals())

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
_REVERSED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _over(name: str, x: Any, type: Any, lengths: Any, axes: Any, norm: Any) -> Any:
    """Return the cosine or sine transform ``name``, such as "idstn", of ``x`` over ``axes``.

    Args:
      name: the name of the public function.
      x: the operand.
      type: the type of the transform, 1 to 4.
      lengths: the sizes to which the axes are cut, or padded with zeros; None to keep their sizes.
      axes: the axes; None for the last ``len(lengths)`` axes, or for all axes if ``lengths`` is None too.
      norm: the normalization.
    """
    sine, inverse = "dst" in name, name.startswith("i")
    x = strong(inexact_operand(name, x))
    if not is_listed(type, _INVERSE):
        raise UnsupportedArgumentError(f"{name}: the type of a transform must be 1, 2, 3 or 4, got {type!r}")
    if not is_listed(norm, _NORMS):
        raise ArgumentError(f'{name}: norm must be "backward", "ortho", "forward" or None, got {norm!r}')
    scale = _NORMS[norm]
    if inverse:
        type, scale = _INVERSE[type], _REVERSED[scale]
    if dtypes.is_complex(x.dtype):
        return ops.complex(*[_real_over(name, v, type, lengths, axes, scale, sine) for v in (x.real, x.imag)])
    return _real_over(name, x, type, lengths, axes, scale, sine)


def _real_over(name: str, x: Any, type: int, lengths: Any, axes: Any, scale: str, sine: bool) -> Any:
    if x.dtype.char not in "fd":
        x = ops.convert_element_type(x, np.dtype(np.float32))
    rank = len(x.shape)
    sizes = None if lengths is None else [known_int(name, "a size", n) for n in lengths]
    if axes is None:
        axes = range(0 if sizes is None else rank - len(sizes), rank)
    if sizes is not None and len(sizes) != len(axes):
        raise ShapeError(f"{name}: s and axes must have the same length, got {tuple(sizes)} and {tuple(axes)}")
    where = [axis_index(a, rank, name) for a in axes]
    if len(set(where)) != len(where):
        raise ShapeError(f"{name}: the axes must differ, got {tuple(axes)} for an array of {rank} axes")
    for i, a in enumerate(where):
        n = x.shape[a] if sizes is None else sizes[i]
        least = 2 if type == 1 and not sine else 1
        if n < least:
            raise ShapeError(
                f"{name} of type {type} needs at least {least} points along an axis, got {n} along axis {a} of an "
                f"array of shape {x.shape}"
            )
        x = _along(_resized(x, a, n), a, type, scale, sine)
    return x


def _resized(x: Any, axis: int, n: int) -> Any:
    """Cut ``x`` off along ``axis``, or pad it with zeros at the end, to the size ``n``."""
    have = x.shape[axis]
    if n < have:
        return slicing.slice_in_dim(x, 0, n, axis)
    return x if n == have else slicing.pad(x, 0, [(0, n - have if i == axis else 0, 0) for i in range(len(x.shape))])


def _along(x: Any, axis: int, type: int, scale: str, sine: bool) -> Any:
    """Return the cosine transform along one axis, or the sine transform if ``sine``.

    ``type`` is 1 to 4. ``scale`` is the norm: "backward", "forward" or "ortho". For "ortho" the elements are weighted
    so that the transform's matrix is orthogonal.
    """
    n, last = x.shape[axis], len(x.shape) - 1
    x = shapes.moveaxis(x, axis, last)
    period = 2 * (n + (1 if sine else -1)) if type == 1 else 2 * n
    before, after = _weights(n, type, sine) if scale == "ortho" else (None, None)
    if before is not None:
        x = ops.mul(x, ArrayImpl(before.astype(x.dtype)))
    out = cosine_transform(x, type, sine)
    factor = {"backward": 1.0, "ortho": 1 / math.sqrt(period), "forward": 1 / period}[scale]
    if after is not None:
        out = ops.mul(out, ArrayImpl((after * factor).astype(x.dtype)))
    elif factor != 1:
        out = ops.mul(out, factor)
    return shapes.moveaxis(out, last, axis)


def _weights(n: int, type: int, sine: bool) -> tuple[Any, Any]:
    """Return weights for the elements before a transform of size ``n``, and for the elements after it.

    With these weights the transform's matrix is orthogonal, up to a factor. None stands for weights of 1.
    """
    if type == 4 or (type == 1 and sine):
        return None, None
    ones = np.ones(n)
    if type == 1:
        ones[[0, -1]] = math.sqrt(2)
        return ones, 1 / ones
    ones[-1 if sine else 0] = math.sqrt(2)
    return (None, 1 / ones) if type == 2 else (ones, None)


def _one(name: str, x: Any, type: Any, n: Any, axis: Any, norm: Any) -> Any:
    if isinstance(axis, (tuple, list)):
        raise ShapeError(f"{name} takes one axis, got {axis!r}; use {name}n for several")
    return _over(name, x, type, None if n is None else (n,), (axis,), norm)


def _several(name: str, x: Any, type: Any, s: Any, axes: Any, norm: Any) -> Any:
    s, axes = ((v,) if isinstance(v, int) else v for v in (s, axes))
    for what, value in (("s", s), ("axes", axes)):
        if value is not None and not isinstance(value, (tuple, list, range)):
            raise ShapeError(f"{name}: {what} must be a sequence of ints, got {value!r}")
    if s is not None and axes is None and len(s) > pnp.ndim(x):
        raise ShapeError(f"{name}: {len(s)} sizes, {tuple(s)}, for an array of {pnp.ndim(x)} axes")
    return _over(name, x, type, s, axes, norm)


# Over one axis -------------------------------------------------------------------------------------------------------


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform along an axis.

    With n points, type 1 is ``x[0] + (-1)**k x[n-1] + 2 Σ x[j] cos(π j k / (n-1))`` (the sum without both ends), type 2
    ``2 Σ x[j] cos(π k (2j+1) / 2n)``, type 3 ``x[0] + 2 Σ x[j] cos(π j (2k+1) / 2n)`` (the sum from 1), and type 4
    ``2 Σ x[j] cos(π (2k+1) (2j+1) / 4n)``.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default) for no scaling, "forward" to divide the result by 2n (2n - 2 for type 1), or
        "ortho" for an orthogonal transform.

    Returns:
      Floats of the shape of the operand, with ``n`` elements along the axis.

    Raises:
      ShapeError: the axis is out of range, or too few points along it (a TypeError and a ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    Method: on the host SciPy's; compiled, a Fourier transform (Makhoul 1980).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.dct(jnp.array([1.0, 2.0, 3.0])))
    [12.        -3.4641018  0.       ]
    """
    return _one("dct", x, type, n, axis, norm)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`dct` of the same type and norm.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: the type of the transform to be inverted, 1, 2, 3 or 4.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: the norm of the transform to be inverted: "backward" (the default), "forward" or "ortho".

    Returns:
      Floats of the shape of the operand, with ``n`` elements along the axis.

    Raises:
      ShapeError: the axis is out of range, or too few points along it (a TypeError and a ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.idct(jnp.array([12.0, -3.4641016, 0.0])).round(4))
    [1. 2. 3.]
    """
    return _one("idct", x, type, n, axis, norm)


def dst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete sine transform along an axis.

    With n points, type 1 is ``2 Σ x[j] sin(π (k+1) (j+1) / (n+1))``, type 2 ``2 Σ x[j] sin(π (k+1) (2j+1) / 2n)``,
    type 3 ``(-1)**k x[n-1] + 2 Σ x[j] sin(π (2k+1) (j+1) / 2n)`` (the sum without the last), and type 4
    ``2 Σ x[j] sin(π (2k+1) (2j+1) / 4n)``.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: "backward" (the default) for no scaling, "forward" to divide the result by 2n (2n + 2 for type 1), or
        "ortho" for an orthogonal transform.

    Returns:
      Floats of the shape of the operand, with ``n`` elements along the axis.

    Raises:
      ShapeError: the axis is out of range, or too few points along it (a TypeError and a ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    Method: on the host SciPy's; compiled, a Fourier transform (Makhoul 1980).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.dst(jnp.array([1.0, 2.0, 3.0])).round(4))
    [ 8.     -3.4641  4.    ]
    """
    return _one("dst", x, type, n, axis, norm)


def idst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`dst` of the same type and norm.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: the type of the transform to be inverted, 1, 2, 3 or 4.
      n: the length; the operand is cut off or padded with zeros to it. By default the size of the axis.
      axis: the axis.
      norm: the norm of the transform to be inverted: "backward" (the default), "forward" or "ortho".

    Returns:
      Floats of the shape of the operand, with ``n`` elements along the axis.

    Raises:
      ShapeError: the axis is out of range, or too few points along it (a TypeError and a ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.idst(jnp.array([8.0, -2.0, 4.0])).round(4))
    [1.4226 2.     2.5774]
    """
    return _one("idst", x, type, n, axis, norm)


# Over several axes ---------------------------------------------------------------------------------------------------


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform over any number of axes, one after the other; see :func:`dct`.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: as for :func:`dct`.

    Returns:
      Floats of the shape of the operand, with the sizes ``s`` along the axes.

    Raises:
      ShapeError: the axes are out of range, too few points along an axis, or ``s`` does not fit (a TypeError and a
        ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.dctn(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(4))
    [[ 40.      -5.6569]
     [-11.3137   0.    ]]
    """
    return _several("dctn", x, type, s, axes, norm)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of :func:`dctn` of the same type and norm.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: as for :func:`idct`.

    Returns:
      Floats of the shape of the operand, with the sizes ``s`` along the axes.

    Raises:
      ShapeError: the axes are out of range, too few points along an axis, or ``s`` does not fit (a TypeError and a
        ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.idctn(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(4))
    [[ 1.0044 -0.3491]
     [-0.5259  0.1206]]
    """
    return _several("idctn", x, type, s, axes, norm)


def dstn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete sine transform over any number of axes, one after the other; see :func:`dst`.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: as for :func:`dst`.

    Returns:
      Floats of the shape of the operand, with the sizes ``s`` along the axes.

    Raises:
      ShapeError: the axes are out of range, too few points along an axis, or ``s`` does not fit (a TypeError and a
        ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.dstn(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(4))
    [[ 20.      -5.6569]
     [-11.3137   0.    ]]
    """
    return _several("dstn", x, type, s, axes, norm)


def idstn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of :func:`dstn` of the same type and norm.

    Args:
      x: an array; the real and imaginary parts of complex numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths; the operand is cut off or padded with zeros to them. By default the sizes of the axes.
      axes: the axes; by default the last ``len(s)``, or all.
      norm: as for :func:`idst`.

    Returns:
      Floats of the shape of the operand, with the sizes ``s`` along the axes.

    Raises:
      ShapeError: the axes are out of range, too few points along an axis, or ``s`` does not fit (a TypeError and a
        ValueError).
      ArgumentError: an unknown norm (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown type (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import fft
    >>> print(fft.idstn(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(4))
    [[ 0.8169 -0.0366]
     [-0.2134 -0.0669]]
    """
    return _several("idstn", x, type, s, axes, norm)
