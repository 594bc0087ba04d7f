# long: because there are many functions, each with its docstring
"""Linear algebra: norms, products, decompositions, systems of equations, inverses and determinants.

Functions that need eigenvalues, singular values or a QR decomposition are in ``decompositions``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike, PrecisionLike
from pullback.core.arguments import flag, is_listed, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.numpy import contraction, diagonals, manipulation, reductions
from pullback.numpy.creation import eye
from pullback.numpy.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    hermitian,
    lstsq,
    matrix_rank,
    pinv,
    qr,
    svd,
    svdvals,
)
from pullback.numpy.promotion import (
    axes_tuple,
    axis_index,
    inexact_operand,
    inexact_operands,
    known_int,
    named,
    operand,
    sequence,
    several,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import slice_in_dim
from pullback.primitives.linalg import lu
from pullback.primitives.linalg.determinants import det_p, slogdet_p
from pullback.primitives.linalg.lapack import adjoint, factor
from pullback.primitives.linalg.svd import nuclear_norm_p, svd_p
from pullback.primitives.operands import bind
from pullback.primitives.reductions import norm as root_of_squares
from pullback.transforms.autodiff.vmap import vmap

_INF = float("inf")


def norm(x: ArrayLike, ord: float | str | None = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    Args:
      x: an array; without ``axis`` it must be a vector or a matrix, unless ``ord`` is None.
      ord: the order: any number for vectors; for matrices "fro", "nuc" (the sum of the singular values), 2 (the
        largest), -2 (the smallest), 1, -1, infinity or its negative. By default the root of the sum of the squares,
        computed without overflow; its derivative is zero where all elements are zero.
      axis: the axis of the vectors, or the two axes of the matrices.
      keepdims: whether to keep the reduced axes, with size one.

    Returns:
      Floats of the shape of ``x`` without these axes, or with size one for ``keepdims``.

    Raises:
      ShapeError: the order and the axes do not fit.
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.norm(jnp.array([3.0, 4.0])))
    5.0
    """
    keepdims = flag("linalg.norm", "keepdims", keepdims)
    x = inexact_operand("linalg.norm", x)
    rank = len(x.shape)
    if axis is None and ord is None:
        return _root_of_squares(x, None, keepdims)
    if axis is None:
        axes: tuple[int, ...] = tuple(range(rank))
    else:
        axes = tuple(axis_index(a, rank, "linalg.norm") for a in several(axis))
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ShapeError(
            f"linalg.norm takes one axis or two different ones, got {axis} for an array of shape {x.shape}"
        )
    return _matrix_norm(x, ord, axes, keepdims)


def _root_of_squares(x: Any, axes: Any, keepdims: bool) -> Any:
    axes = reductions.all_axes(axes, len(x.shape), "linalg.norm")
    out = reductions.strong(root_of_squares(x, axes))
    return shapes.expand_dims(out, axes) if keepdims else out


def _vector_norm(x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ShapeError(f"linalg.norm: a vector has no norm of order {ord!r}")
    if not isinstance(ord, (int, float, np.number)):
        raise ShapeError(f"linalg.norm: ord must be a number, got {typed(ord)}")
    if ord == 2:
        return _root_of_squares(x, axes, keepdims)
    size = ops.abs(x)
    if ord == _INF:
        return _largest(size, axes, keepdims)
    if ord == -_INF:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        nonzero = ops.convert_element_type(ops.ne_p.bind(x, 0), dtypes.to_real(x.dtype))
        return reductions.sum(nonzero, axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    power = float(ord)
    total = reductions.sum(ops.pow(size, power), axes, keepdims=keepdims)
    return ops.pow(total, 1 / power)


def _largest(sizes: Any, axes: Any, keepdims: bool) -> Any:
    """Return the maximum over ``axes`` of numbers that are not negative; 0 where there are no numbers."""
    rank = len(sizes.shape)
    empty = any(sizes.shape[i] == 0 for i in axes_tuple(axes, rank, "linalg.norm"))
    return (reductions.sum if empty else reductions.max)(sizes, axes, keepdims=keepdims)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if is_listed(ord, (None, "fro")):
        return _root_of_squares(x, axes, keepdims)
    if is_listed(ord, (2, -2, "nuc")):
        return _by_singular_values(x, ord, axes, keepdims)
    if not is_listed(ord, (1, -1, _INF, -_INF)):
        raise ShapeError(f"linalg.norm: a matrix has no norm of order {ord!r}")
    summed, extreme = axes if ord in (1, -1) else axes[::-1]
    sums = reductions.sum(ops.abs(x), summed, keepdims=True)
    out = _largest(sums, extreme, True) if ord > 0 else reductions.min(sums, extreme, keepdims=True)
    return out if keepdims else shapes.squeeze(out, axes)


def _by_singular_values(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    rank = len(x.shape)
    rest = [i for i in range(rank) if i not in axes]
    x = shapes.transpose(x, (*rest, *axes))
    if ord == "nuc":
        out = bind(nuclear_norm_p, x)
    else:
        s = bind(svd_p, x, full_matrices=False, vectors=False, by_qr=False)[0]
        out = _largest(s, -1, False) if ord == 2 else reductions.min(s, -1)
    return shapes.expand_dims(out, sorted(axes)) if keepdims else out


def vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float | str | None = 2) -> Array:
    """The norm of vectors along one or several axes, by default of all elements.

    Args:
      x: an array.
      axis: an axis or several, over which the norm is taken; None for all.
      keepdims: whether to keep the reduced axes, with size one.
      ord: the order, any number.

    Returns:
      Floats of the shape of ``x`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: there is no such order (a TypeError and a ValueError).
      ArgumentError: ``keepdims`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.vector_norm(jnp.array([[3.0, 4.0]]), ord=1))
    7.0
    """
    keepdims = flag("linalg.vector_norm", "keepdims", keepdims)
    x = inexact_operand("linalg.vector_norm", x)
    rank = len(x.shape)
    requested = range(rank) if axis is None else several(axis)
    return _vector_norm(x, ord, tuple(axis_index(a, rank, "linalg.vector_norm") for a in requested), keepdims)


@named
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    Args:
      x: an array of at least two axes.
      keepdims: whether to keep the reduced axes, with size one.
      ord: the order: "fro", "nuc", 2, -2, 1, -1, infinity or its negative.

    Returns:
      Floats of the shape of ``x`` without the last two axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: ``x`` has fewer than two axes (a ValueError and an IndexError).
      ShapeError: there is no such order (a TypeError and a ValueError).
      ArgumentError: ``keepdims`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 4.0]])))
    5.0
    """
    keepdims = flag("linalg.matrix_norm", "keepdims", keepdims)
    return norm(x, ord, (-2, -1), keepdims)


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive-definite matrices.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      upper: whether to return upper triangular factors U, for which the adjoint of U times U is the matrix.
      symmetrize_input: whether to factorise the means of the matrices and their adjoints; otherwise only the triangles
        of the factors are read.

    Returns:
      Lower triangular L, of the shape of ``a``, for which L times its adjoint is the matrix; or U. The factor is NaN,
      in its triangle, where a matrix is not positive definite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    The derivative is Murray's (2016, arXiv:1602.07527).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.cholesky(jnp.array([[4, 2], [2, 5]])))
    [[2. 0.]
     [1. 2.]]
    """
    symmetrize_input = flag("linalg.cholesky", "symmetrize_input", symmetrize_input)
    upper = flag("linalg.cholesky", "upper", upper)
    a = inexact_operand("linalg.cholesky", a)
    if upper and not symmetrize_input:
        require_square("linalg.cholesky", a)
        a = adjoint(a)
    lower = factor(a, symmetrize_input)
    return adjoint(lower) if upper else lower


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solutions x of A x = b, for square matrices A, by their LU decomposition.

    Args:
      a: the matrices A, an array (..., n, n) of numbers; integers become floats.
      b: a vector (n), or matrices (..., n, k), whose columns are the right sides; any array of two or more axes is read
        as matrices.

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast. It is infinite or NaN where A is singular.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    A derivative costs one more solution, with the same decomposition: dx = inv(A) (db - dA x).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.solve(jnp.array([[2, 1], [1, 3]]), jnp.array([3, 4])))
    [1. 1.]
    """
    return solve_systems("linalg.solve", lu.linear_solve, (a,), b)


def solve_systems(name: str, solver: Callable[..., Any], matrices: Sequence[Any], b: ArrayLike) -> Array:
    """Solve systems of equations for a vector, or for matrices whose leading axes broadcast.

    Args:
      name: the name of the public function, for errors.
      solver: ``solver(*matrices, b)``, for arrays with the same leading axes.
      matrices: the matrices of the systems, an array (..., n, n), and arrays of integers with the same leading axes,
        such as permutations.
      b: the right sides: a vector (n), or matrices (..., n, k).
    """
    a, b = inexact_operands(name, matrices[0], b)
    require_square(name, a)
    vector = len(b.shape) == 1
    x = shapes.expand_dims(b, (-1,)) if vector else b
    if not b.shape or x.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"{name}: b must be a vector or matrices with {a.shape[-1]} rows, for matrices a of shape "
            f"{a.shape}; got shape {b.shape}"
        )
    x = _broadcast(solver, [a, *matrices[1:]], x)
    return shapes.squeeze(x, (-1,)) if vector else x


def _broadcast(solver: Any, matrices: Sequence[Any], b: Any) -> Any:
    """Apply a solver to batches of matrices and of right-hand sides, whose leading axes broadcast.

    A single matrix is not copied for each right-hand side.

    Args:
      solver: takes the matrices and the right-hand sides.
      matrices: one or several arguments of the solver, of the same leading axes.
      b: the right-hand sides, matrices too.
    """
    leading = matrices[0].shape[:-2]
    if not leading:
        for _ in b.shape[:-2]:
            solver = vmap(solver, (*[None] * len(matrices), 0))
        return solver(*matrices, b)
    batch = manipulation.broadcast_shapes(leading, b.shape[:-2])
    return solver(
        *[shapes.broadcast_to(x, (*batch, *x.shape[len(leading) :])) for x in matrices],
        shapes.broadcast_to(b, (*batch, *b.shape[-2:])),
    )


def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices, by their LU decomposition.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.

    Returns:
      An array of the shape of ``a``; infinite or NaN where a matrix is singular.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.inv(jnp.array([[2, 0], [0, 4]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    a = inexact_operand("linalg.inv", a)
    require_square("linalg.inv", a)
    return lu.inverse(a)


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.

    Returns:
      An array of the leading axes of ``a``.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    The derivative is right for singular matrices too. So are derivatives of higher order, unless a matrix of four or
    more rows has a rank of n - 2 or less: there they are not finite.

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.det(jnp.array([[2, 0], [0, 4]])))
    8.0
    """
    return bind(det_p, inexact_operand("linalg.det", a))


class SlogdetResult(NamedTuple):
    """The result of :func:`slogdet`.

    Attributes:
      sign: the determinants divided by their absolute values; zero for singular matrices.
      logabsdet: the logarithms of the absolute values of the determinants.

    >>> import pullback.numpy as jnp
    >>> result = jnp.linalg.slogdet(jnp.array([[-1.0, 0.0], [0.0, 1.0]]))
    >>> print(result.sign, result.logabsdet)
    -1.0 0.0
    """

    sign: Array
    logabsdet: Array


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      method: "lu" or "qr", accepted: the determinants are computed by the LU decomposition, which is as accurate.

    Returns:
      ``sign`` (of modulus one; complex for complex matrices) and ``logabsdet`` (real), arrays of the leading
      axes of
      ``a``. They are 0 and minus infinity for a singular matrix.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: another method (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> sign, logabsdet = jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> print(sign, logabsdet)
    -1.0 0.0
    """
    if not is_listed(method, (None, "lu", "qr")):
        raise ArgumentError(f'linalg.slogdet: method must be "lu", "qr" or None, got {method!r}')
    return SlogdetResult(*bind(slogdet_p, inexact_operand("linalg.slogdet", a)))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes swapped.

    Args:
      x: an array of shape (..., m, n).

    Returns:
      An array of shape (..., n, m), of the dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.ones((2, 3))).shape
    (3, 2)
    """
    return manipulation.matrix_transpose(x)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The product of matrices; see :func:`pullback.numpy.matmul`.

    Args:
      x1, x2: arrays: matrices in the last two axes, or vectors; the other axes broadcast.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.

    Returns:
      An array of the dtype to which both promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.matmul(jnp.ones((1, 2)), jnp.ones((2, 1))))
    [[2.]]
    """
    return contraction.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int | Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The contraction over several axes; see :func:`pullback.numpy.tensordot`.

    Args:
      x1, x2: arrays.
      axes: how many axes to contract, the last ones of ``x1`` with the first ones of ``x2``; or the axes of each.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the dtype to which both promote: the axes of ``x1`` that are left, then those of ``x2``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.tensordot(jnp.ones(3), jnp.ones(3), axes=1))
    3.0
    """
    return contraction.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The inner products of vectors along an axis; the first is conjugated.

    Args:
      x1, x2: arrays, which broadcast.
      axis: the axis of the vectors, of the same size in both.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.

    Returns:
      An array of the dtype to which both promote, without the axis.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.vecdot(jnp.ones(3), jnp.ones(3)))
    3.0
    """
    return contraction.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of each element of one vector with each of the other.

    Args:
      x1, x2: vectors of m and n numbers.

    Returns:
      A matrix of shape (m, n), of the dtype to which both promote.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: an operand is not a vector (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.outer(jnp.ones(1), jnp.arange(2.0)))
    [[0. 1.]]
    """
    x1, x2 = operand("linalg.outer", x1), operand("linalg.outer", x2)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ShapeError(f"linalg.outer takes vectors, got shapes {x1.shape} and {x2.shape}")
    return contraction.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector products of vectors of three components along an axis.

    Args:
      x1, x2: arrays, which broadcast.
      axis: the axis of the vectors, of size three in both.

    Returns:
      An array of the dtype to which both promote, of the shape to which they broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      ShapeError: the vectors do not have three components (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    x1, x2 = operand("linalg.cross", x1), operand("linalg.cross", x2)
    first, second = (axis_index(axis, len(x.shape), "linalg.cross") for x in (x1, x2))
    if x1.shape[first] != 3 or x2.shape[second] != 3:
        raise ShapeError(f"linalg.cross takes vectors of three components, got shapes {x1.shape} and {x2.shape}")
    return contraction.cross(x1, x2, axis=axis)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """The sums of the diagonals of the matrices in the last two axes.

    Args:
      x: an array of at least two axes.
      offset: the diagonal: 0 for the main one, positive above it, negative below it.
      dtype: the dtype to sum in and to return; integers narrower than the default one are widened to it.

    Returns:
      An array of the shape of ``x`` without the last two axes.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.trace(jnp.eye(3)))
    3.0
    """
    return contraction.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two axes.

    Args:
      x: an array of shape (..., m, n).
      offset: the diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      An array of the dtype of ``x``, with the diagonals along its last axis.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.diagonal(jnp.eye(3)))
    [1. 1. 1.]
    """
    return diagonals.diagonal(x, offset, -2, -1)


def matrix_function(f: Callable[[Array], ArrayLike], a: ArrayLike) -> Array:
    """A function of Hermitian matrices, whose derivatives of every order are right at equal and near eigenvalues.

    Args:
      f: a function of one real number, an array without axes, which returns a real or complex one. It has to be smooth
        at the eigenvalues. Derivatives with respect to values that it closes over are supported.
      a: an array (..., n, n) of numbers, whose Hermitian part is used; integers become floats.

    Returns:
      An array of the shape of ``a``, the matrices V f(W) V* with the eigenvectors V and the eigenvalues W. They are
      NaN where a matrix is not finite.

    Raises:
      ShapeError: the matrices are not square, or ``f`` does not return a number (a TypeError and a ValueError).
      DtypeError: floats of 16 bits, or ``f`` returns integers or numbers of higher precision (a TypeError).
      ArgumentError: ``f`` cannot be called (a TypeError and a ValueError).

    ``(v * f(w)) @ v.T``, with ``w`` and ``v`` of :func:`eigh`, has the same value, but its derivatives divide by
    differences of eigenvalues: where these are small digits are lost, and where they are equal there is NaN. The
    derivatives of this function are divided differences of ``f`` (Daleckii and Krein; N. J. Higham 2008, "Functions of
    Matrices", section 3.2), which are Taylor series of ``f`` where eigenvalues are near each other. See
    :func:`pullback.scipy.linalg.funm` for other matrices.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> a = jnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> print(jnp.linalg.matrix_function(lambda x: x**2, a).round(4))
    [[5. 4.]
     [4. 5.]]
    >>> print(grad(lambda a: jnp.linalg.matrix_function(jnp.log, a)[0, 1])(jnp.eye(2)))
    [[0.  0.5]
     [0.5 0. ]]
    """
    if not callable(f):
        raise ArgumentError(f"linalg.matrix_function: f must be a function of a number, got {f!r}")
    from pullback.control.matrix_function import matrix_function as of_hermitian  # which imports 30 modules more

    return of_hermitian(f, hermitian("linalg.matrix_function", a, "L", True))  # type: ignore[no-any-return]


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The product of a square matrix with itself, ``n`` times, by repeated squaring; of its inverse, if ``n`` < 0.

    Args:
      a: an array (..., m, m); where ``n`` is negative, integers become floats.
      n: an integer.

    Returns:
      An array of the shape of ``a``.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5))
    [[1 5]
     [0 1]]
    """
    a, n = operand("linalg.matrix_power", a), known_int("linalg.matrix_power", "n", n)
    require_square("linalg.matrix_power", a)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return shapes.broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    result: Any = None
    while True:
        if n & 1:
            result = a if result is None else contraction.matmul(result, a)
        n >>= 1
        if not n:
            return result
        a = contraction.matmul(a, a)


def require_square(name: str, a: Array) -> None:
    """Raise unless the last two axes of an array have the same size."""
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got shape {a.shape}")


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order that costs least; the first and the last may be vectors.

    Source: T. Cormen et al., Introduction to Algorithms, section 14.2 (matrix-chain multiplication).

    Args:
      arrays: at least two matrices whose sizes fit; the first and the last may be vectors.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.

    Returns:
      An array of the dtype to which all promote.

    Raises:
      ShapeError: there are fewer than two arrays, or they are not matrices, or the sizes do not fit (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.multi_dot([jnp.ones((1, 2)), jnp.ones((2, 3)), jnp.ones(3)]))
    [6.]
    """
    factors = [operand("linalg.multi_dot", a) for a in sequence("linalg.multi_dot", arrays)]
    if len(factors) < 2:
        raise ShapeError(f"linalg.multi_dot takes at least two arrays, got {len(factors)}")
    ends = [len(factors[0].shape) == 1, len(factors[-1].shape) == 1]
    if any(len(a.shape) != 2 for a in factors[1:-1]) or any(len(a.shape) not in (1, 2) for a in factors):
        raise ShapeError(f"linalg.multi_dot takes matrices, got shapes {', '.join(str(a.shape) for a in factors)}")
    sizes = [1 if ends[0] else factors[0].shape[0], *(a.shape[0] for a in factors[1:])]
    sizes.append(1 if ends[1] else factors[-1].shape[1])
    split = _cheapest_order(sizes)

    def product(i: int, j: int) -> Any:
        if i == j:
            return factors[i]
        k = split[i, j]
        return contraction.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(factors) - 1)


def _cheapest_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the order of multiplications that is cheapest for a product of several matrices.

    Factor i has the shape (sizes[i], sizes[i + 1]). The result maps each pair (i, j) to the position at which to split
    the product of factors i to j in two.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """The condition numbers of matrices: bounds of how much relative errors grow in solutions of equations.

    Args:
      x: an array (..., m, n) of numbers; integers become floats. It must be square where ``p`` is not 2 or -2.
      p: the order of the norm, as in :func:`norm`; by default 2, the quotient of the largest and the smallest singular
        value.

    Returns:
      The norms of the matrices times those of their inverses, real, (...). They are infinite where a matrix is
      singular, and NaN where it is zero.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    There is no derivative where the largest or the smallest singular value occurs twice.

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]])))
    2.0
    """
    x = inexact_operand("linalg.cond", x)
    if is_listed(p, (None, 2, -2)):
        if 0 in x.shape:
            raise ShapeError(f"linalg.cond takes matrices with elements, got shape {x.shape}")
        s = svdvals(x)
        largest, smallest = (
            shapes.squeeze(slice_in_dim(s, i, i + 1, len(s.shape) - 1), (-1,)) for i in (0, s.shape[-1] - 1)
        )
        return ops.div(smallest, largest) if p == -2 else ops.div(largest, smallest)
    require_square("linalg.cond", x)
    return ops.mul(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a tensor, for the contraction by ``tensordot`` over its first axes.

    Args:
      a: an array of numbers; the product of the sizes of its first ``ind`` axes equals the product of the others.
      ind: the number of axes of the right side of the equation; positive.

    Returns:
      An array of the shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).
      ArgumentError: ``ind`` is not positive (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 3, 2)).shape
    (3, 2, 2, 3)
    """
    a, ind = inexact_operand("linalg.tensorinv", a), known_int("linalg.tensorinv", "ind", ind)
    if ind <= 0:
        raise ArgumentError(f"linalg.tensorinv: ind must be positive, got {ind}")
    first, rest = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise ShapeError(
            f"linalg.tensorinv takes an array whose first axes have as many elements in all as the others, got "
            f"{first} and {rest} with ind={ind}"
        )
    return shapes.reshape(inv(shapes.reshape(a, (math.prod(first), math.prod(rest)))), (*rest, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The tensor x whose contraction with the last axes of ``a`` is ``b``.

    Args:
      a: an array of numbers, of the shape ``b.shape + x.shape``, both with as many elements.
      b: the right side.
      axes: axes of ``a`` to move to its end first.

    Returns:
      x.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2))))
    [0.5 0.5 0.5 0.5]
    """
    a, b = inexact_operands("linalg.tensorsolve", a, b)
    if axes is not None:
        last = [axis_index(i, len(a.shape), "linalg.tensorsolve") for i in several(axes)]
        a = shapes.transpose(a, (*[i for i in range(len(a.shape)) if i not in last], *last))
    rest, count = a.shape[len(b.shape) :], math.prod(b.shape)
    if a.shape[: len(b.shape)] != b.shape or math.prod(rest) != count:
        raise ShapeError(
            f"linalg.tensorsolve takes an array a of the shape of b, {b.shape}, followed by axes with as many "
            f"elements, got {a.shape}"
        )
    return shapes.reshape(solve(shapes.reshape(a, (count, count)), shapes.reshape(b, (count,))), rest)


__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal",
    "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_function", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
face(globals())
