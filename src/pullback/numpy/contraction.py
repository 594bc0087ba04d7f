"""Products of vectors, matrices and tensors, and functions defined by them: traces, polynomials, convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.backends.host import blas, pending
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PrecisionLike
from pullback.core.arguments import is_listed
from pullback.core.array import Absent, Array, ArrayImpl, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.trace import is_recording, state
from pullback.core.types import Shape
from pullback.numpy.creation import eye
from pullback.numpy.einstein import contract, diagonal
from pullback.numpy.promotion import (
    axis_index,
    diagonal_number,
    inexact_operands,
    is_sequence,
    known_int,
    operand,
    promote_all,
    several,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.linalg.contraction import Dims, dot_general_p, precisely
from pullback.primitives.reductions import reduce_or, reduce_sum
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.transforms.programs.placement import spread

__all__ = [
    "convolve", "correlate", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer",
    "polyval", "tensordot", "trace", "vdot", "vecdot", "vecmat",
]  # fmt: skip

# Dimension numbers of the products of vectors and matrices, by the ranks of the operands.
_PRODUCTS: dict[tuple[int, int], Dims] = {
    (p, q): (((p - 1,), (0,)), ((), ())) for p in (1, 2) for q in (1, 2)
}  # fmt: skip


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The inner product of vectors, or the product of matrices.

    Args:
      a, b: arrays. Where one is a scalar they are multiplied; otherwise the last axis of ``a`` is contracted with the
        last axis but one of ``b`` (with the only axis of a vector).
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the dtype to which both promote.

    Raises:
      ShapeError: the contracted axes differ in size (a TypeError and a ValueError).
      OperandError: an operand is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    11.0
    """
    if precision is not None:
        function = partial(dot, preferred_element_type=preferred_element_type, out_sharding=out_sharding)
        return precisely(precision, function, a, b)
    if out_sharding is not None:
        function = partial(dot, preferred_element_type=preferred_element_type)
        return spread(function, [a, b], out_sharding, "dot")
    if preferred_element_type is None:
        if type(a) is ArrayImpl and type(b) is ArrayImpl and state.trace.quick:
            done = _by_blas(a, b)
            if done is not None:
                return done
        elif isinstance(a, Array) and isinstance(b, Array) and a.dtype is b.dtype:
            numbers = _PRODUCTS.get((len(a.shape), len(b.shape)))
            if numbers is not None:
                try:
                    return state.trace.process(dot_general_p, (a, b), {"dimension_numbers": numbers})
                except ShapeError as error:
                    raise _renamed_error("dot", error) from None
    a, b, dtype = _operands("dot", a, b, preferred_element_type)
    return _as(_dot(a, b, max(len(b.shape) - 2, 0)), dtype)


def _by_blas(a: ArrayImpl, b: ArrayImpl) -> ArrayImpl | None:
    """Multiply vectors or matrices by BLAS.

    Return None if the operands have other ranks, or different or unusual dtypes, or if NumPy raises.
    """
    x, y = a._host_value, b._host_value
    if x.dtype is not y.dtype or x.dtype.char not in "fdFD" or not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2):
        return None
    try:
        by = np.dot if y.ndim == 1 and x.size < blas.LEAST else blas.dot
        return ArrayImpl(state.silently(by, x, y), a.weak_type and b.weak_type)
    except NUMPY_REFUSES:
        if type(x) is Absent or type(y) is Absent:
            out = _by_blas(ArrayImpl(a._value, a.weak_type), ArrayImpl(b._value, b.weak_type))
            return pending.hold(out)  # type: ignore[no-any-return]
        return None


def _renamed_error(name: str, error: ShapeError) -> ShapeError:
    """Return an error with the message of ``error`` in which ``name`` replaces ``dot_general``.

    ``name`` is the name of the function that the user called.
    """
    return ShapeError(str(error).replace("dot_general", name, 1))


def _dot(a: Any, b: Any, axis: int) -> Any:
    """Contract the last axis of ``a`` with the axis ``axis`` of ``b``; if one is a scalar, multiply elementwise."""
    if not a.shape or not b.shape:
        return ops.mul(a, b)
    try:
        return dot_general_p.bind(a, b, dimension_numbers=(((len(a.shape) - 1,), (axis,)), ((), ())))
    except ShapeError as error:
        raise _renamed_error("dot", error) from None


def _operands(name: str, a: Any, b: Any, preferred: Any) -> tuple[Array, Array, Any]:
    """Convert two operands to one dtype, in which to compute.

    Args:
      name: the name of the function, for errors.
      a, b: the operands.
      preferred: the dtype that the user requests for the result, or None.

    Returns:
      The converted operands, and the requested dtype of the result, or None.
    """
    if preferred is None:
        if not (isinstance(a, Array) and isinstance(b, Array) and a.dtype is b.dtype):
            a, b = promote_all(name, (a, b))
        return a, b, None
    a, b, result = operand(name, a), operand(name, b), dtypes.requested_dtype(preferred, name)
    wide = dtypes.accumulator(result, a.dtype, b.dtype)
    return convert_element_type(a, wide), convert_element_type(b, wide), result


def _as(x: Any, dtype: Any) -> Any:
    return x if dtype is None else convert_element_type(x, dtype)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of matrices, in the last two axes; the axes before them broadcast.

    Args:
      a, b: arrays of shapes (..., m, k) and (..., k, n); a vector is one row (``a``) or one column (``b``), and the
        result lacks that axis.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape (..., m, n), of the dtype to which both promote.

    Raises:
      ShapeError: the shapes do not fit, or an operand is a scalar (a TypeError and a ValueError).
      OperandError: an operand is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.matmul(jnp.eye(2), jnp.array([3.0, 4.0])))
    [3. 4.]
    """
    if precision is not None:
        function = partial(matmul, preferred_element_type=preferred_element_type, out_sharding=out_sharding)
        return precisely(precision, function, a, b)
    if out_sharding is not None:
        function = partial(matmul, preferred_element_type=preferred_element_type)
        return spread(function, [a, b], out_sharding, "matmul")
    if preferred_element_type is None:
        if type(a) is ArrayImpl and type(b) is ArrayImpl and state.trace.quick:
            done = _by_blas(a, b)
            if done is not None:
                return done
        elif isinstance(a, Array) and isinstance(b, Array) and a.dtype is b.dtype:
            numbers = _PRODUCTS.get((len(a.shape), len(b.shape)))
            if numbers is not None:
                try:
                    return state.trace.process(dot_general_p, (a, b), {"dimension_numbers": numbers})
                except ShapeError as error:
                    raise _renamed_error("matmul", error) from None
    a, b, dtype = _operands("matmul", a, b, preferred_element_type)
    formula = _matmul_formula(a.shape, b.shape)
    return _as(contract(formula, (a, b)), dtype)


@lru_cache(maxsize=4096)
def _matmul_formula(a: Shape, b: Shape) -> str:
    if not a or not b:
        raise ShapeError(f"matmul needs operands of at least one axis, got shapes {a} and {b}")
    left, right = ("k" if len(a) == 1 else "...mk"), ("k" if len(b) == 1 else "...kn")
    _check_core("matmul", (a, b), a[-1], b[0] if len(b) == 1 else b[-2], (a[:-2], b[:-2]))
    out = ("..." if max(len(a), len(b)) > 2 else "") + ("m" if len(a) > 1 else "") + ("n" if len(b) > 1 else "")
    return f"{left},{right}->{out}"


def _check_core(name: str, operands: tuple[Shape, Shape], k: int, l: int, batch: tuple[Shape, Shape]) -> None:
    """Raise unless the contracted axes have the same size and the batch axes broadcast.

    Args:
      name: the name of the function, for errors.
      operands: the shapes of the operands, for errors.
      k, l: the sizes of the contracted axes.
      batch: the sizes of the batch axes of each operand.
    """
    if k != l:
        raise ShapeError(
            f"{name} requires contracting dimensions to have the same shape, got ({k},) and ({l},), in operands of "
            f"shapes {operands[0]} and {operands[1]}"
        )
    try:
        broadcast_shape(name, batch)
    except ShapeError:
        raise ShapeError(f"{name}: incompatible shapes for broadcasting: {operands[0]} and {operands[1]}") from None


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The inner product of all elements, with ``a`` conjugated.

    Args:
      a, b: arrays with equally many elements.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.

    Returns:
      A scalar of the dtype to which both promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the arrays have different numbers of elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 1.0])))
    (3+0j)
    """
    if precision is not None:
        function = partial(vdot, preferred_element_type=preferred_element_type)
        return precisely(precision, function, a, b)
    a, b, dtype = _operands("vdot", a, b, preferred_element_type)
    return _as(_dot(_ravel(ops.conj(a)), _ravel(b), 0), dtype)


def _ravel(x: Any) -> Any:
    return shapes.reshape(x, (math.prod(x.shape),))


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The inner products of vectors along an axis, with ``x1`` conjugated; the other axes broadcast.

    Args:
      x1, x2: arrays, which broadcast.
      axis: the axis of the vectors, of the same size in both.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.

    Returns:
      An array of the dtype to which both promote, without the axis.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an operand is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vecdot(jnp.ones((2, 3)), jnp.array([1.0, 2.0, 3.0])))
    [6. 6.]
    """
    if precision is not None:
        function = partial(vecdot, axis=axis, preferred_element_type=preferred_element_type)
        return precisely(precision, function, x1, x2)
    a, b, dtype = _operands("vecdot", x1, x2, preferred_element_type)
    if not a.shape or not b.shape:
        raise ShapeError(f"vecdot needs operands of at least one axis, got shapes {a.shape} and {b.shape}")
    a, b = (shapes.moveaxis(x, axis_index(axis, len(x.shape), "vecdot"), len(x.shape) - 1) for x in (a, b))
    _check_core("vecdot", (a.shape, b.shape), a.shape[-1], b.shape[-1], (a.shape[:-1], b.shape[:-1]))
    return _as(contract("...k,...k->...", (ops.conj(a), b)), dtype)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices with vectors; the axes before them broadcast.

    Args:
      x1: of shape (..., m, k).
      x2: of shape (..., k).

    Returns:
      An array of shape (..., m), of the dtype to which both promote.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an operand is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.matvec(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0])))
    [21. 43.]
    """
    a, b = promote_all("matvec", (x1, x2))
    if len(a.shape) < 2 or not b.shape:
        raise ShapeError(f"matvec needs shapes (..., m, k) and (..., k), got {a.shape} and {b.shape}")
    _check_core("matvec", (a.shape, b.shape), a.shape[-1], b.shape[-1], (a.shape[:-2], b.shape[:-1]))
    return contract("...mk,...k->...m", (a, b))


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, conjugated, with matrices; the axes before them broadcast.

    Args:
      x1: of shape (..., k).
      x2: of shape (..., k, n).

    Returns:
      An array of shape (..., n), of the dtype to which both promote.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an operand is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vecmat(jnp.array([1.0, 10.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [31. 42.]
    """
    a, b = promote_all("vecmat", (x1, x2))
    if len(b.shape) < 2 or not a.shape:
        raise ShapeError(f"vecmat needs shapes (..., k) and (..., k, n), got {a.shape} and {b.shape}")
    _check_core("vecmat", (a.shape, b.shape), a.shape[-1], b.shape[-2], (a.shape[:-1], b.shape[:-2]))
    return contract("...k,...kn->...n", (ops.conj(a), b))


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The contraction of the last axes; the product where one operand is a scalar.

    Args:
      a, b: arrays, whose last axes have one size; the result has the other axes of both.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.

    Returns:
      An array of the dtype to which both promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the last axes differ in size (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.inner(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0])))
    [21. 43.]
    """
    if precision is not None:
        function = partial(inner, preferred_element_type=preferred_element_type)
        return precisely(precision, function, a, b)
    a, b, dtype = _operands("inner", a, b, preferred_element_type)
    return _as(_dot(a, b, len(b.shape) - 1), dtype)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all pairs of elements, of shape (size of ``a``, size of ``b``).

    Args:
      a, b: arrays, taken as vectors in row-major order.
      out: must be None.

    Returns:
      A matrix of shape (size of ``a``, size of ``b``), of the dtype to which both promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: ``out`` is not None (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.outer(jnp.array([1.0, 2.0]), jnp.array([1.0, 10.0])))
    [[ 1. 10.]
     [ 2. 20.]]
    """
    if out is not None:
        raise ShapeError("outer: out must be None, because arrays are immutable")
    a, b = promote_all("outer", (a, b))
    return ops.mul(shapes.reshape(a, (math.prod(a.shape), 1)), _ravel(b))


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The contraction of several axes of two arrays.

    Args:
      a, b: arrays.
      axes: how many of the last axes of ``a`` to contract with as many of the first of ``b``; or a pair of axes, or of
        sequences of axes, of ``a`` and of ``b``.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array with the axes of ``a`` that remain, then the remaining axes of ``b``.

    Raises:
      ShapeError: the axes do not fit the operands or each other (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), ([1, 2], [1, 0])).shape
    (2, 5)
    """
    if precision is not None:
        function = partial(tensordot, preferred_element_type=preferred_element_type, out_sharding=out_sharding)
        return precisely(precision, function, a, b, axes)
    if out_sharding is not None:
        function = partial(tensordot, axes=axes, preferred_element_type=preferred_element_type)
        return spread(function, [a, b], out_sharding, "tensordot")
    a, b, dtype = _operands("tensordot", a, b, preferred_element_type)
    xs, ys = _tensordot_axes(axes, len(a.shape), len(b.shape))
    sizes = tuple(a.shape[i] for i in xs), tuple(b.shape[i] for i in ys)
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"tensordot requires contracting dimensions to have the same shape, got {sizes[0]} and {sizes[1]}, in "
            f"operands of shapes {a.shape} and {b.shape} with axes {axes!r}"
        )
    return _as(dot_general_p.bind(a, b, dimension_numbers=((xs, ys), ((), ()))), dtype)


def _tensordot_axes(axes: Any, p: int, q: int) -> tuple[Shape, Shape]:
    if not is_sequence(axes):
        n = known_int("tensordot", "axes", axes)
        if not 0 <= n <= min(p, q):
            raise ShapeError(f"tensordot: axes={n} does not fit operands of {p} and {q} axes")
        return tuple(range(p - n, p)), tuple(range(n))
    axes = list(axes)
    if len(axes) != 2:
        raise ShapeError(f"tensordot: axes must be an int or a pair of axes or of sequences of axes, got {axes!r}")
    xs, ys = (
        tuple(axis_index(i, rank, "tensordot") for i in several(each)) for each, rank in zip(axes, (p, q), strict=True)
    )
    if len(xs) != len(ys) or len(set(xs)) != len(xs) or len(set(ys)) != len(ys):
        raise ShapeError(f"tensordot: axes must name equally many distinct axes of each operand, got {axes!r}")
    return xs, ys


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: each element of ``a`` times ``b``.

    Args:
      a, b: arrays of numbers.

    Returns:
      An array of the dtype to which both promote, whose sizes are the products of the sizes of both.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.kron(jnp.array([1.0, 10.0]), jnp.array([1.0, 2.0])))
    [ 1.  2. 10. 20.]
    """
    a, b = promote_all("kron", (a, b))
    rank = max(len(a.shape), len(b.shape))
    p, q = ((1,) * (rank - len(x.shape)) + x.shape for x in (a, b))
    left, right = [m for n in p for m in (n, 1)], [m for n in q for m in (1, n)]
    sizes = [m * n for m, n in zip(p, q, strict=True)]
    factors = shapes.reshape(a, left), shapes.reshape(b, right)
    if math.prod(sizes) >= _MANY and q[-1] < _SHORT and not is_recording():  # NumPy's loops become longer
        repeated = [shapes.broadcast_to(x, (*x.shape[:-2], p[-1], q[-1])) for x in factors]
        factors = tuple(shapes.reshape(x, (*x.shape[:-2], sizes[-1])) for x in repeated)
    return shapes.reshape(ops.mul(*factors), sizes)


_MANY, _SHORT = 1 << 14, 256
"""From how many elements of a Kronecker product on the last axes of its operands are repeated first, if that of the
second is shorter than ``_SHORT``: two matrices of 30 by 30 take 100 instead of 390 us, their gradients 1.0 for 2.5 ms,
on two cores of a Zen 4. Compiled programs have loops of their own, and would take three times as long."""


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of two or three elements.

    Args:
      a, b: arrays whose vectors lie along ``axisa`` and ``axisb``; the other axes broadcast.
      axisa, axisb: the axes of the vectors.
      axisc: the axis of the vectors in the result, which is the third component alone if all vectors have two elements.
      axis: a value for all three of them.

    Returns:
      An array of the dtype to which both promote: vectors along ``axisc``, or scalars.

    Raises:
      ShapeError: vectors of another length (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0])))
    [0. 0. 1.]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_all("cross", (a, b))
    vectors = []
    for x, at in ((a, axisa), (b, axisb)):
        i = axis_index(at, len(x.shape), "cross")
        if x.shape[i] not in (2, 3):
            raise ShapeError(f"cross: vectors must have 2 or 3 elements, got shapes {a.shape} and {b.shape}")
        vectors.append([shapes.squeeze(slicing.slice_in_dim(x, j, j + 1, i), (i,)) for j in range(x.shape[i])])
    us, vs = vectors

    def component(i: int, j: int) -> Any:
        """Return ``u_i v_j - u_j v_i``, where a missing third element counts as zero."""
        if max(i, j) >= len(vs) or max(i, j) >= len(us):
            k = min(i, j)
            term = ops.mul(us[k], vs[2]) if len(vs) == 3 else ops.mul(us[2], vs[k])
            return term if (i == k) == (len(vs) == 3) else ops.neg(term)
        return ops.sub(ops.mul(us[i], vs[j]), ops.mul(us[j], vs[i]))

    third = component(0, 1)
    if len(us) == len(vs) == 2:
        return third
    components = [component(1, 2), component(2, 0), third]
    last = len(third.shape)
    stacked = slicing.concatenate([shapes.reshape(c, (*third.shape, 1)) for c in components], last)
    return shapes.moveaxis(stacked, last, axis_index(axisc, last + 1, "cross"))


def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None, out: None = None
) -> Array:
    """The sum of the elements on a diagonal.

    Args:
      a: an array of at least two axes.
      offset: how far above the main diagonal (below it, if negative); it may be traced.
      axis1, axis2: the axes of the matrices; the others remain.
      dtype: the dtype to sum in and to return; integers narrower than the default one are widened to it.
      out: must be None.

    Returns:
      An array of the shape of ``a`` without the two axes.

    Raises:
      ShapeError: an axis is out of range, or both are the same (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.trace(jnp.array([[1.0, 2.0], [3.0, 4.0]])), jnp.trace(jnp.eye(3), offset=1))
    5.0 0.0
    """
    if out is not None:
        raise ShapeError("trace: out must be None, because arrays are immutable")
    x = operand("trace", a)
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(f"trace needs an array of at least two axes, got shape {x.shape}")
    i, j = axis_index(axis1, rank, "trace"), axis_index(axis2, rank, "trace")
    if i == j:
        raise ShapeError(f"trace: axis1 and axis2 must be different axes, got {axis1} and {axis2}")
    total = reduce_sum
    if dtype is not None:
        x = convert_element_type(x, dtypes.requested_dtype(dtype, "trace"))
        total = reduce_or if dtypes.is_bool(x.dtype) else reduce_sum
    elif x.dtype.itemsize < dtypes.default_int().itemsize and (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        x = convert_element_type(x, np.dtype(f"{'u' if x.dtype.kind == 'u' else 'i'}{dtypes.default_int().itemsize}"))
    k = diagonal_number("trace", offset)
    if not isinstance(k, int):
        x = shapes.transpose(x, [*(axis for axis in range(rank) if axis not in (i, j)), i, j])
        mask = eye(x.shape[-2], x.shape[-1], k, bool)
        return total(ops.where(mask, x, shapes.full((), 0, x.dtype)), (rank - 2, rank - 1))
    offset = k
    rows, columns = max(-offset, 0), max(offset, 0)
    n = max(min(x.shape[i] - rows, x.shape[j] - columns), 0)
    if n == 0:
        rows = columns = 0
    x = slicing.slice_in_dim(slicing.slice_in_dim(x, rows, rows + n, i), columns, columns + n, j)
    return total(diagonal(x, i, j), (rank - 2,))


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's scheme.

    Args:
      p: its coefficients along the first axis, from the highest power to the constant; other axes broadcast with ``x``.
      x: where to evaluate it.
      unroll: accepted for compatibility.

    Returns:
      An array of the shape to which the coefficients' other axes and ``x`` broadcast.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: ``p`` has no axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polyval(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 2.0])))
    [ 3.  6. 11.]
    """
    p, x = promote_all("polyval", (p, x))
    if not p.shape:
        raise ShapeError("polyval: the coefficients must be an array of at least one axis, got a scalar")
    shape = broadcast_shape("polyval", (p.shape[1:], x.shape))
    value: Any = shapes.full(shape, 0, x.dtype)
    for i in range(p.shape[0]):
        coefficient = shapes.squeeze(slicing.slice_in_dim(p, i, i + 1, 0), (0,))
        value = ops.add(ops.mul(value, x), coefficient)
    return value


# Convolution -------------------------------------------------------------------------------------------------------


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The discrete convolution of two vectors.

    Args:
      a, v: vectors, of n and m elements.
      mode: ``"full"`` for all n + m - 1 sums, ``"same"`` for max(n, m) of them from the middle, ``"valid"`` for those
        in which the vectors overlap completely.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands, as floats.

    Returns:
      A vector of the dtype to which both promote.

    Raises:
      ShapeError: an operand is not a vector or is empty, or the mode is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])))
    [ 1. 12. 23. 30.]
    """
    if precision is not None:
        function = partial(convolve, preferred_element_type=preferred_element_type)
        return precisely(precision, function, a, v, mode)
    a, v, dtype = _vectors("convolve", a, v, mode, preferred_element_type)
    if len(a.shape) and a.shape[0] < v.shape[0]:
        a, v = v, a
    m = v.shape[0]
    return _as(_correlate(a, slicing.rev(v, (0,)), mode, (m - 1) // 2), dtype)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The cross-correlation of two vectors: the convolution of ``a`` with the reversed conjugate of ``v``.

    Args:
      a, v: vectors.
      mode: as in :func:`convolve`.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands, as floats.

    Returns:
      A vector of the dtype to which both promote.

    Raises:
      ShapeError: an operand is not a vector or is empty, or the mode is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])))
    [21. 32.]
    """
    if precision is not None:
        function = partial(correlate, preferred_element_type=preferred_element_type)
        return precisely(precision, function, a, v, mode)
    a, v, dtype = _vectors("correlate", a, v, mode, preferred_element_type)
    m, conjugate = v.shape[0], ops.conj(v)
    if a.shape[0] < m:
        return _as(_correlate(slicing.rev(conjugate, (0,)), slicing.rev(a, (0,)), mode, a.shape[0] // 2), dtype)
    return _as(_correlate(a, conjugate, mode, (m - 1) - m // 2), dtype)


def _vectors(name: str, a: Any, v: Any, mode: str, preferred: Any) -> tuple[Array, Array, Any]:
    a, v, dtype = (*inexact_operands(name, a, v), None) if preferred is None else _operands(name, a, v, preferred)
    if len(a.shape) != 1 or len(v.shape) != 1 or not a.shape[0] or not v.shape[0]:
        raise ShapeError(f"{name} takes two non-empty vectors, got shapes {a.shape} and {v.shape}")
    if not is_listed(mode, ("full", "same", "valid")):
        raise ShapeError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    return a, v, dtype


def _correlate(a: Any, v: Any, mode: str, before: int) -> Any:
    """Return the correlation of two vectors: element i is the sum over j of ``a[i + j] * v[j]``.

    Args:
      a, v: the vectors; ``a`` is at least as long as ``v``.
      mode: "full", "same" or "valid", as in ``np.correlate``.
      before: the index in the result for "full" at which the result for "same" starts.
    """
    n, m = a.shape[0], v.shape[0]
    if mode == "valid":
        padding = (0, 0)
    else:
        start, count = (0, n + m - 1) if mode == "full" else (before, n)
        padding = (m - 1 - start, count - n + start)
    x, kernel = shapes.reshape(a, (1, 1, n)), shapes.reshape(v, (1, 1, m))
    out = conv_general_dilated_p.bind(
        x, kernel, geometry=Geometry((1,), (padding,), (1,), (1,)), dimension_numbers=_ALONG_LAST, precision=None,
        feature_group_count=1, batch_group_count=1,
    )  # fmt: skip
    return shapes.reshape(out, out.shape[2:])


_ALONG_LAST = ConvDimensionNumbers(*[(0, 1, 2)] * 3)
