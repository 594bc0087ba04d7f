"""Structured matrices: from entries (Toeplitz, Hankel, companion, ...), or of a given size (Hilbert, Pascal, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import AllocationError, ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy import creation, editing, joining, manipulation
from pullback.numpy.promotion import inexact_operand, known_int, operand, promote_all, strong
from pullback.primitives import elementwise as ops

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip

# From entries ------------------------------------------------------------------------------------------------------


def _vector(name: str, what: str, x: Any, *, inexact: bool = False, least: int = 0) -> Array:
    """Convert ``x`` to an array of vectors along the last axis; a number becomes a vector of one element.

    Args:
      name: the public function, for errors.
      what: the name of the argument, for errors.
      x: the argument.
      inexact: whether to convert integers to floats.
      least: the smallest number of elements of a vector.
    """
    x = inexact_operand(name, x) if inexact else operand(name, x)
    if not x.shape:
        x = x.reshape(1)
    if x.shape[-1] < least:
        raise ShapeError(f"{name}: {what} must have at least {least} elements in its last axis, got shape {x.shape}")
    return x


def _joined(first: Any, second: Any) -> Any:
    """Concatenate vectors along the last axis; broadcast their leading axes."""
    batch = manipulation.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    vectors = [manipulation.broadcast_to(x, (*batch, x.shape[-1])) for x in (first, second)]
    return joining.concatenate(vectors, axis=-1)


def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with the operands along its diagonal, and zeros off it.

    Args:
      *arrs: matrices, vectors, which become rows, or numbers; promoted to one dtype.

    Returns:
      A matrix with as many rows and columns as all operands together.

    Raises:
      ShapeError: an array has more than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.block_diag(jnp.array([[1, 2]]), 3))
    [[1 2 0]
     [0 0 3]]
    """
    if not arrs:
        return creation.zeros((1, 0))
    blocks = [strong(x) for x in promote_all("block_diag", arrs)]
    for i, x in enumerate(blocks):
        if len(x.shape) > 2:
            raise ShapeError(f"block_diag: argument {i} must have at most two axes, got shape {x.shape}")
    blocks = [x.reshape((1,) * (2 - len(x.shape)) + x.shape) for x in blocks]
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        right = width - left - x.shape[1]
        rows.append(editing.pad(x, ((0, 0), (left, right))))
        left += x.shape[1]
    return joining.concatenate(rows, axis=0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Toeplitz matrices, which are constant along their diagonals.

    Args:
      c: the first column, an array (..., m) of any dtype.
      r: the first row, an array (..., n), whose first element is not read; by default the conjugate of ``c``.
        The leading axes of both broadcast.

    Returns:
      An array (..., m, n).

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the leading axes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 4])))
    [[1 4]
     [2 1]
     [3 2]]
    """
    if r is None:
        c = _vector("toeplitz", "c", c)
        first_row: Any = ops.conj(c)
    else:
        c, r = promote_all("toeplitz", (c, r))
        c, first_row = _vector("toeplitz", "c", c), _vector("toeplitz", "r", r)
    m, n = c.shape[-1], first_row.shape[-1]
    values = _joined(c[..., ::-1], first_row[..., 1:])
    return values[..., _distances(m, n) + (m - 1)]


def _distances(m: int, n: int) -> Any:
    """Return an m by n matrix of column index minus row index: how far each element is to the right of the diagonal."""
    return np.arange(n) - np.arange(m)[:, None]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Hankel matrices, which are constant along lines from the lower left to the upper right.

    Args:
      c: the first column, an array (..., m) of any dtype.
      r: the last row, an array (..., n), whose first element is not read; by default zeros, as many as ``c``
        has. The leading axes of both broadcast.

    Returns:
      An array (..., m, n).

    Raises:
      ShapeError: an operand is a number (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.hankel(jnp.array([1, 2, 3])))
    [[1 2 3]
     [2 3 0]
     [3 0 0]]
    """
    c, r = promote_all("hankel", (c, c if r is None else r)) if r is not None else (operand("hankel", c), None)
    r = creation.zeros_like(c) if r is None else r
    for name, x in (("c", c), ("r", r)):
        if not x.shape:
            raise ShapeError(f"hankel: {name} must have at least one axis, got a number")
    m, n = c.shape[-1], r.shape[-1]
    return _joined(c, r[..., 1:])[..., np.arange(m)[:, None] + np.arange(n)]


def circulant(c: ArrayLike) -> Array:
    """Circulant matrices, whose columns are cyclic shifts of the first, each by one more element.

    Args:
      c: the first column, an array (..., n) of any dtype.

    Returns:
      An array (..., n, n).

    Raises:
      OperandError: ``c`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.circulant(jnp.array([1, 2, 3])))
    [[1 3 2]
     [2 1 3]
     [3 2 1]]
    """
    c = _vector("circulant", "c", c)
    n = c.shape[-1]
    return c[..., -_distances(n, n) % max(n, 1)]


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector is the convolution of ``a`` and the vector.

    Args:
      a: an array (..., m) of any dtype.
      n: how many elements the vectors have; at least one.
      mode: "full", "same" or "valid": the range of the convolution, as for :func:`pullback.numpy.convolve`.

    Returns:
      An array (..., k, n), where k is m + n - 1, max(m, n) or max(m, n) - min(m, n) + 1.

    Raises:
      ArgumentError: an unknown ``mode``, or ``n`` below one (a TypeError and a ValueError).
      ShapeError: ``a`` has no elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.convolution_matrix(jnp.array([1, 2]), 2))
    [[1 0]
     [2 1]
     [0 2]]
    """
    if not is_listed(mode, ("full", "same", "valid")):
        raise ArgumentError(f"convolution_matrix: mode must be 'full', 'same' or 'valid', got {mode!r}")
    a = _vector("convolution_matrix", "a", a, least=1)
    n = known_int("convolution_matrix", "n", n)
    if n < 1:
        raise ArgumentError(f"convolution_matrix: n must be at least 1, got {n}")
    m = a.shape[-1]
    zeros = creation.zeros_like(a[..., :1])
    padded = _joined(a, manipulation.repeat(zeros, n - 1, axis=-1, total_repeat_length=n - 1))
    full = toeplitz(padded, manipulation.repeat(zeros, n, axis=-1, total_repeat_length=n))
    if mode == "full":
        return full
    cut = min(m, n) - 1
    first = cut // 2 if mode == "same" else cut
    last = cut - first if mode == "same" else cut
    return full[..., first : full.shape[-2] - last, :]


def _with_ones_below(first: Any) -> Any:
    """Return square matrices with the first row ``first``, and ones on the first subdiagonal."""
    n = first.shape[-1]
    below = creation.eye(n - 1, n, dtype=first.dtype)
    batch = first.shape[:-1]
    return joining.concatenate([first[..., None, :], manipulation.broadcast_to(below, (*batch, n - 1, n))], axis=-2)


def companion(a: ArrayLike) -> Array:
    """The companion matrices of polynomials, whose eigenvalues are the roots.

    Args:
      a: the coefficients, the highest power first, an array (..., n) of numbers; integers become floats. A first one
        that is zero makes infinite or NaN elements.

    Returns:
      An array (..., n - 1, n - 1).

    Raises:
      ShapeError: fewer than two coefficients (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.companion(jnp.array([1.0, -3.0, 2.0])))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    a = _vector("companion", "a", a, inexact=True, least=2)
    return _with_ones_below(-a[..., 1:] / a[..., :1])


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices, which say how a population of some ages grows.

    Args:
      f: how many descendants each age has, an array (..., n).
      s: the fraction of each age, except the last, that survives, an array (..., n - 1). The leading axes of both
        broadcast.

    Returns:
      An array (..., n, n), with ``f`` in the first row and ``s`` below the diagonal.

    Raises:
      ShapeError: the lengths do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.leslie(jnp.array([0.5, 2.0]), jnp.array([0.25])))
    [[0.5  2.  ]
     [0.25 0.  ]]
    """
    f, s = promote_all("leslie", (f, s))
    f, s = _vector("leslie", "f", f, least=2), _vector("leslie", "s", s)
    n = f.shape[-1]
    if s.shape[-1] != n - 1:
        raise ShapeError(
            f"leslie: s must have one element less than f in its last axis, got shapes {s.shape} and {f.shape}"
        )
    batch = manipulation.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    first = manipulation.broadcast_to(f[..., None, :], (*batch, 1, n))
    below = s[..., :, None] * creation.eye(n - 1, n, dtype=f.dtype).reshape((1,) * (s.ndim - 1) + (n - 1, n))
    return joining.concatenate([first, manipulation.broadcast_to(below, (*batch, n - 1, n))], axis=-2)


def fiedler(a: ArrayLike) -> Array:
    """Fiedler's matrices: the distances between numbers.

    Args:
      a: an array (..., n) of numbers.

    Returns:
      An array (..., n, n), with ``abs(a[i] - a[j])`` in row i and column j.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.fiedler(jnp.array([1, 4, 6])))
    [[0 3 5]
     [3 0 2]
     [5 2 0]]
    """
    a = _vector("fiedler", "a", a)
    return abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Companion matrices of polynomials of five diagonals, with the same eigenvalues as :func:`companion`.

    Args:
      a: the coefficients, the highest power first, an array (..., n) of numbers; integers become floats.

    Returns:
      An array (..., n - 1, n - 1).

    Raises:
      ShapeError: no coefficients (a TypeError and a ValueError).

    Source: M. Fiedler 2003, "A note on companion matrices".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0])))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    a = _vector("fiedler_companion", "a", a, inexact=True, least=1)
    n = a.shape[-1] - 1
    if n < 2:
        return (-a[..., 1:] / a[..., :1])[..., None][..., :n]
    # Each element is zero, one, or a quotient of coefficients, at known positions.
    source = np.zeros((n, n), int)
    source[range(0, n - 1, 2), range(1, n, 2)] = np.arange(2, n + 1, 2)
    source[range(2, n, 2), range(1, n - 1, 2)] = np.arange(3, n + 1, 2)
    source[0, 0] = 1
    ones = np.zeros((n, n))
    ones[range(3, n, 2), range(1, n - 2, 2)] = 1
    ones[range(0, n - 2, 2), range(2, n, 2)] = 1
    ones[1, 0] = 1
    quotients = -a[..., 1:] / a[..., :1]
    picked = quotients[..., np.maximum(source - 1, 0)]
    return ops.where(creation.array(source > 0), picked, creation.array(ones, a.dtype))


# Of a given size ---------------------------------------------------------------------------------------------------


def _size(name: str, n: Any, least: int = 0) -> int:
    n = known_int(name, "n", n)
    if n < least:
        raise ArgumentError(f"{name}: n must be at least {least}, got {n}")
    return n


_LARGE = 1 << 31
"""So many rows that no memory holds as many columns."""


def _of_host(name: str, dtype: Any, *args: Any, **options: Any) -> Any:
    """Return ``scipy.linalg.name(*args, **options)``, a matrix computed on the host, as an array of ``dtype``."""
    try:
        out = getattr(imported("scipy.linalg"), name)(*args, **options)
    except (MemoryError, OverflowError, ValueError) as error:
        if args and isinstance(args[0], int) and args[0] >= _LARGE:
            raise AllocationError(f"{name}: no memory for a matrix of {args[0]} rows: {error}") from None
        raise
    with np.errstate(all="ignore"):
        return creation.array(np.asarray(out).astype(dtypes.requested_dtype(dtype, name)))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
      n: the number of rows and columns, an integer.
      scale: None, "sqrtn" to divide by the root of n, so that the matrix is unitary, or "n" to divide by n.
      dtype: a complex dtype; the widest by default.

    Returns:
      An array (n, n), with ``exp(-2 pi i j k / n)`` in row j and column k.

    Raises:
      ArgumentError: an unknown ``scale``, a negative ``n``, or a ``dtype`` that is not complex (a TypeError and a
        ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.dft(2).real)
    [[ 1.  1.]
     [ 1. -1.]]
    """
    n = _size("dft", n)
    if not is_listed(scale, (None, "sqrtn", "n")):
        raise ArgumentError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    dtype = dtypes.requested_dtype(complex if dtype is None else dtype, "dft")
    if not dtypes.is_complex(dtype):
        raise ArgumentError(f"dft: dtype must be complex, got {dtypes.short_name(dtype)}")
    if n == 0:
        return creation.zeros((0, 0), dtype)
    return _of_host("dft", dtype, n, scale)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of ones and minus ones, whose rows are orthogonal, after Sylvester.

    Args:
      n: the number of rows and columns, an integer that is a power of two.
      dtype: the dtype of the result.

    Returns:
      An array (n, n).

    Raises:
      ArgumentError: ``n`` is no power of two (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.hadamard(2))
    [[ 1  1]
     [ 1 -1]]
    """
    n = _size("hadamard", n)
    if n < 1 or n & (n - 1):
        raise ArgumentError(f"hadamard: n must be a power of two, got {n}")
    return _of_host("hadamard", dtype, n)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix, whose rows are orthonormal; all except the first have the sum zero.

    Args:
      n: the number of columns, an integer; at least one.
      full: whether to return the first row, of equal elements, too.

    Returns:
      An array (n - 1, n), or (n, n).

    Raises:
      ArgumentError: ``n`` is below one (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.helmert(2, full=True))
    [[ 0.70710677  0.70710677]
     [ 0.70710677 -0.70710677]]
    """
    full = flag("helmert", "full", full)
    return _of_host("helmert", float, _size("helmert", n, 1), bool(full))


def hilbert(n: int) -> Array:
    """Hilbert's matrix, with ``1 / (i + j + 1)`` in row i and column j, which is ill-conditioned.

    Args:
      n: the number of rows and columns, an integer.

    Returns:
      An array (n, n).

    Raises:
      ArgumentError: ``n`` is negative (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.hilbert(2))
    [[1.         0.5       ]
     [0.5        0.33333334]]
    """
    n = _size("hilbert", n)
    return _of_host("hilbert", float, n) if n else creation.zeros((0, 0))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, whose elements are integers.

    Args:
      n: the number of rows and columns, an integer.

    Returns:
      An array (n, n) of floats; elements that are larger than floats are infinite.

    Raises:
      ArgumentError: ``n`` is negative (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.invhilbert(2))
    [[ 4. -6.]
     [-6. 12.]]
    """
    n = _size("invhilbert", n)
    return _of_host("invhilbert", float, n) if n else creation.zeros((0, 0))


def _kind(name: str, kind: Any) -> str:
    kinds: Sequence[str] = ("symmetric", "lower", "upper")
    if kind is not None and not is_listed(kind, kinds):
        raise ArgumentError(f"{name}: kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}")
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of Pascal's triangle.

    Args:
      n: the number of rows and columns, an integer.
      kind: "symmetric", by default, with the triangle along its antidiagonals; "lower" or "upper", with the triangle
        by rows, or by columns.

    Returns:
      An array (n, n) of floats.

    Raises:
      ArgumentError: an unknown ``kind``, or a negative ``n`` (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.pascal(3))
    [[1. 1. 1.]
     [1. 2. 3.]
     [1. 3. 6.]]
    """
    n, kind = _size("pascal", n), _kind("pascal", kind)
    return _of_host("pascal", float, n, kind, exact=n < 30) if n else creation.zeros((0, 0))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix of Pascal's triangle, whose elements are integers.

    Args:
      n: the number of rows and columns, an integer.
      kind: as for :func:`pascal`.

    Returns:
      An array (n, n) of floats.

    Raises:
      ArgumentError: an unknown ``kind``, or a negative ``n`` (a TypeError and a ValueError).

    >>> from pullback.scipy import linalg
    >>> print(linalg.invpascal(2))
    [[ 2. -1.]
     [-1.  1.]]
    """
    n, kind = _size("invpascal", n), _kind("invpascal", kind)
    return _of_host("invpascal", float, n, kind, exact=n < 30) if n else creation.zeros((0, 0))
