"""Linear systems and eigenvalues of sparse matrices: ``jax.experimental.sparse.linalg``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback import numpy as jnp
from pullback.control.loops import while_loop
from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.faces import face
from pullback.core.interrupts import imported
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = ["lobpcg_standard", "spsolve"]
face(globals())


def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """Solve ``A x = b`` for a sparse square matrix in CSR format, by the LU decomposition of SuperLU on the host.

    It has derivatives by ``data`` and ``b``, in both modes and of any order; ``vmap`` solves one system after the
    other.

    Args:
      data: the stored elements, floats or complex numbers of shape ``(nse,)``.
      indices: the column of each, integers of shape ``(nse,)``.
      indptr: the position of the first element of each row, and ``nse``: integers of shape ``(n + 1,)``.
      b: the right side, of shape ``(n,)``, or several as the columns of an array of shape ``(n, k)``.
      tol: without effect.
      reorder: 0 to keep the order of the columns; another number to permute them, for fewer elements in the factors.

    Returns:
      The solution, of the shape of ``b``; NaN if the matrix is singular.

    Raises:
      ShapeError: shapes that do not fit (a ValueError).
      DtypeError: ``data`` and ``b`` have different dtypes (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse.linalg import spsolve
    >>> data, indices, indptr = jnp.array([2.0, 1.0, 4.0]), jnp.array([0, 0, 1]), jnp.array([0, 1, 3])
    >>> print(spsolve(data, indices, indptr, jnp.array([2.0, 5.0])))  # of the matrix [[2, 0], [1, 4]]
    [1. 1.]
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    if data.ndim != 1 or indices.shape != data.shape or indptr.ndim != 1 or b.shape[:1] != (indptr.size - 1,):
        raise ShapeError(
            "spsolve takes data and indices of one shape (nse,), indptr of shape (n + 1,) and b of shape (n,) or "
            f"(n, k), got shapes {data.shape}, {indices.shape}, {indptr.shape} and {b.shape}"
        )
    if data.dtype != b.dtype:
        kinds = f"{dtypes.short_name(data.dtype)} and {dtypes.short_name(b.dtype)}"
        raise DtypeError(f"spsolve takes data and b of one dtype, got {kinds}: convert one of them with astype")
    order = "COLAMD" if reorder else "NATURAL"
    rows = jnp.searchsorted(indptr, jnp.arange(data.size), side="right") - 1

    def product(x: Any) -> Any:
        terms = jnp.reshape(data, (-1,) + (1,) * (x.ndim - 1)) * x[indices]
        return jnp.zeros_like(x).at[rows].add(terms)

    def solution(transposed: bool, b: Any) -> Any:
        result = ShapeDtypeStruct(b.shape, b.dtype)
        solve = partial(_solve, transposed, order)
        return pure_callback(solve, result, data, indices, indptr, b, vmap_method="sequential")

    return custom_linear_solve(
        product, b, lambda _, b: solution(False, b), transpose_solve=lambda _, b: solution(True, b)
    )


def _solve(transposed: bool, order: str, data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """Solve a system on the host; return NaN if the matrix is singular."""
    sparse, linalg = imported("scipy.sparse"), imported("scipy.sparse.linalg")
    data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(b), len(b))).tocsc()
    try:
        return linalg.splu(matrix, permc_spec=order).solve(b, "T" if transposed else "N").astype(b.dtype, copy=False)
    except RuntimeError:  # which SuperLU raises for singular matrices
        return np.full_like(b, np.nan)


def lobpcg_standard(
    A: ArrayLike | Callable[[Any], Any], X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Compute the largest eigenvalues of a Hermitian matrix and their eigenvectors, from products with it alone.

    Each step takes the best approximations in the space of the current ones, their residuals and their last changes
    (LOBPCG: Knyazev, *Toward the optimal preconditioned eigensolver*, SIAM J. Sci. Comput. 23, 2001).

    Args:
      A: a matrix of shape ``(n, n)``, or a function that takes an array of shape ``(n, j)`` and returns its product
        with the matrix.
      X: the initial approximations, floats of shape ``(n, k)`` with linearly independent columns, where ``5 * k < n``.
      m: the largest number of steps.
      tol: an eigenvalue ``l`` with the vector ``v`` has converged when the norm of ``A v - l v`` is below
        ``10 * n * tol * (l + norm(A v))``; by default the distance from 1 to the next float.

    Returns:
      The eigenvalues in descending order, of shape ``(k,)``; the eigenvectors, of shape ``(n, k)``; and the number of
      steps, an int32.

    Raises:
      ShapeError: shapes that do not fit, or a ``k`` that is too large (a ValueError).
      DtypeError: ``A`` and ``X`` have different dtypes (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.experimental.sparse.linalg import lobpcg_standard
    >>> X = random.normal(random.key(0), (50, 2))
    >>> values, vectors, steps = lobpcg_standard(lambda x: jnp.arange(50.0)[:, None] * x, X)
    >>> print(jnp.round(values, 3))
    [49. 48.]
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or not 0 < 5 * X.shape[1] < X.shape[0]:
        raise ShapeError(f"lobpcg_standard: X must have shape (n, k) with 0 < 5 * k < n, got {X.shape}")
    n, k = X.shape
    product = A if callable(A) else _product(jnp.asarray(A), X)
    tolerance = jnp.asarray(jnp.finfo(X.dtype).eps if tol is None else tol, X.dtype)

    ritz = partial(_ritz, product, k)

    def unconverged(state: Any) -> Any:
        step, values, vectors, _ = state
        images = product(vectors)
        residual = jnp.linalg.norm(images - vectors * values[None], axis=0)
        bound = 10 * n * tolerance * (values + jnp.linalg.norm(images, axis=0))
        return (step < m) & jnp.any(residual > bound)

    def improved(state: Any) -> Any:
        step, values, vectors, change = state
        residual = _normalized(product(vectors) - vectors * values[None])
        basis = jnp.linalg.qr(jnp.concatenate([vectors, residual, change], axis=1))[0]
        values, coefficients = ritz(basis)
        return step + 1, values, basis @ coefficients, _normalized(basis[:, k:] @ coefficients[k:])

    vectors = jnp.linalg.qr(X)[0]
    values, coefficients = ritz(vectors)
    start = (jnp.int32(0), values, vectors @ coefficients, jnp.zeros_like(vectors))
    steps, values, vectors, _ = while_loop(unconverged, improved, start)
    return values, vectors, steps


def _ritz(product: Callable[[Any], Any], k: int, basis: Any) -> tuple[Any, Any]:
    """Return the ``k`` largest eigenvalues of a matrix within a space, and their vectors' coefficients in its basis."""
    inner = basis.T.conj() @ product(basis)
    values, coefficients = jnp.linalg.eigh((inner + inner.T.conj()) / 2)
    return values[::-1][:k], coefficients[:, ::-1][:, :k]


def _normalized(vectors: Any) -> Any:
    """Scale the columns of a matrix to the length 1; zeros stay."""
    length = jnp.linalg.norm(vectors, axis=0, keepdims=True)
    return vectors / jnp.where(length == 0, 1, length)


def _product(matrix: Any, X: Any) -> Callable[[Any], Any]:
    if matrix.shape != (X.shape[0],) * 2:
        raise ShapeError(f"lobpcg_standard: A must have shape {(X.shape[0],) * 2}, got {matrix.shape}")
    if matrix.dtype != X.dtype:
        kinds = f"{dtypes.short_name(matrix.dtype)} and {dtypes.short_name(X.dtype)}"
        raise DtypeError(f"lobpcg_standard takes A and X of one dtype, got {kinds}")
    return lambda x: matrix @ x
