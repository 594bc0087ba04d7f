"""Some eigenvalues and singular values of sparse matrices, by SciPy's ARPACK on the host: ``eigsh`` and ``svds``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy import creation
from pullback.numpy.joining import concatenate, stack
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import matrix_transpose
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_sum
from pullback.scipy.sparse.linalg import factors
from pullback.scipy.sparse.linalg.direct import solved
from pullback.scipy.sparse.linalg.entries import Entries, entries_of
from pullback.scipy.sparse.linalg.factors import Settings
from pullback.scipy.sparse.linalg.systems import Matrix
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.programs.callbacks import pure_callback

_EIGENVALUES = ("LM", "SM", "LA", "SA", "BE")
_SINGULAR_VALUES = ("LM", "SM")


class SvdsResult(NamedTuple):
    """The result of :func:`svds`: ``u * s @ vh`` is the best approximation of its rank for the largest ``s``.

    Attributes:
      u: the left singular vectors, (m, k).
      s: the singular values in ascending order, (k,).
      vh: the conjugate right singular vectors, (k, n).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import svds
    >>> print(svds(BCOO.fromdense(jnp.diag(jnp.array([1.0, 3.0, 2.0]))), k=1).s.round(4))
    [3.]
    """

    u: Array
    s: Array
    vh: Array


# long: half of it is its documentation
def eigsh(
    A: Matrix,
    k: int = 6,
    *,
    sigma: float | None = None,
    which: str = "LM",
    v0: ArrayLike | None = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
) -> Array | tuple[Array, Array]:
    """Compute some eigenvalues of a sparse Hermitian matrix, and their eigenvectors.

    Derivatives exist in both modes and to any order, by the elements of ``A``. Those of eigenvectors, and second ones
    of eigenvalues, solve a sparse equation for each eigenvalue, and are infinite or meaningless where it is repeated.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy, Hermitian.
      k: the number of eigenvalues, less than n; of complex matrices less than n - 1.
      sigma: find the eigenvalues next to this number, by solving equations with A - sigma.
      which: "LM", those of largest absolute value, "SM", of smallest, "LA", the largest, "SA", the smallest, "BE", half
        of them from each end. With ``sigma``, it is said of 1 / (eigenvalue - sigma).
      v0: the starting vector (n,); by default random numbers, the same in each call.
      ncv: the number of Lanczos vectors.
      maxiter: the largest number of iterations.
      tol: the relative accuracy; 0 for the precision of the dtype.
      return_eigenvectors: whether to return the eigenvectors.

    Returns:
      The eigenvalues in ascending order, (k,), and the normalised eigenvectors as the columns of an array (n, k), whose
      products with a certain random vector are positive. A derivative of an eigenvector is orthogonal to it.

    Raises:
      OperandError: ``A`` is no sparse matrix, or not Hermitian (a TypeError).
      ShapeError: it is not square, or ``v0`` does not fit (a TypeError and a ValueError).
      ArgumentError: another ``which``, or ``k`` is out of range (a TypeError and a ValueError).

    Source: R. B. Lehoucq, D. C. Sorensen and C. Yang 1998, *ARPACK users' guide*; the derivative after R. B. Nelson
    1976, "Simplified calculation of eigenvector derivatives".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import eigsh
    >>> values, vectors = eigsh(BCOO.fromdense(jnp.diag(jnp.arange(8.0))), k=2)
    >>> print(values.round(4))
    [6. 7.]
    """
    a = entries_of("eigsh", A)
    n = a.shape[0]
    k = _count("eigsh", k, n - dtypes.is_complex(a.data.dtype))
    if not is_listed(which, _EIGENVALUES):
        raise ArgumentError(f"eigsh: which must be one of {', '.join(_EIGENVALUES)}, got {quote(which)}")
    options = {"sigma": sigma, "which": which, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    find = partial(_eigenpairs, k, _start("eigsh", v0, n), options)
    pairs = Pairs("eigsh", find, lambda a: a, a, n, k)
    return pairs.both() if return_eigenvectors else pairs.values()


# long: half of it is its documentation
def svds(
    A: Matrix,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: ArrayLike | None = None,
    maxiter: int | None = None,
    return_singular_vectors: bool = True,
) -> Array | SvdsResult:
    """Compute some singular values of a sparse matrix, and their singular vectors.

    Derivatives are those of the eigenvalues of [[0, A], [A*, 0]]; see :func:`eigsh`. They do not exist at 0.

    Args:
      A: a sparse matrix (m, n) of ``experimental.sparse`` or SciPy.
      k: the number of singular values, less than m and n.
      ncv: the number of Lanczos vectors.
      tol: the relative accuracy; 0 for the precision of the dtype.
      which: "LM", the largest, or "SM", the smallest.
      v0: the starting vector, of the size of the smaller axis; by default random numbers, the same in each call.
      maxiter: the largest number of iterations.
      return_singular_vectors: whether to return the singular vectors.

    Returns:
      A :class:`SvdsResult`, or the singular values alone, (k,). The products of the right singular vectors with a
      certain random vector are positive.

    Raises:
      OperandError: ``A`` is no sparse matrix (a TypeError).
      ShapeError: ``v0`` does not fit (a TypeError and a ValueError).
      ArgumentError: another ``which``, or ``k`` is out of range (a TypeError and a ValueError).

    Source: R. B. Lehoucq, D. C. Sorensen and C. Yang 1998, *ARPACK users' guide*.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import svds
    >>> a = BCOO.fromdense(jnp.array([[3.0, 0.0, 0.0], [0.0, 0.0, 5.0], [0.0, 1.0, 0.0]]))
    >>> u, s, vh = svds(a, k=2)
    >>> print(s.round(4))
    [3. 5.]
    """
    a = entries_of("svds", A, square=False)
    m, n = a.shape
    k = _count("svds", k, min(m, n))
    if not is_listed(which, _SINGULAR_VALUES):
        raise ArgumentError(f"svds: which must be one of {', '.join(_SINGULAR_VALUES)}, got {quote(which)}")
    options = {"which": which, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    find = partial(_singular_pairs, k, _start("svds", v0, min(m, n)), options, a.shape)
    pairs = Pairs("svds", find, _augmented, a, m + n, k)
    if not return_singular_vectors:
        return pairs.values()
    s, both = pairs.both()
    scale = ops.mul(both, np.sqrt(2).astype(dtypes.to_real(both.dtype)))
    return SvdsResult(scale[:m], s, ops.conj(matrix_transpose(scale[m:])))


def _count(name: str, k: Any, n: int) -> int:
    k = known_int(name, "k", k)
    if not 0 < k < n:
        raise ArgumentError(f"{name}: k must be positive and less than {n}, got {k}; use numpy.linalg for all of them")
    return k


def _start(name: str, v0: Any, n: int) -> Any:
    """Return the starting vector: the user's, or fixed random numbers."""
    if v0 is None:
        return np.random.default_rng(0).standard_normal(n)
    v0 = np.asarray(v0)
    if v0.shape != (n,):
        raise ShapeError(f"{name}: v0 must have shape ({n},), got {v0.shape}")
    return v0


def _augmented(a: Entries) -> Entries:
    """Return the entries of [[0, A], [A*, 0]], whose eigenvalues are the singular values of A."""
    m, n = a.shape
    known = ((a.indices >= 0) & (a.indices < np.array([m, n], a.indices.dtype))).all(1)[:, None]
    right = ops.where(known, a.indices + np.array([0, m], a.indices.dtype), m + n)
    data = concatenate([a.data, ops.conj(a.data)])
    return Entries(data, concatenate([right, right[:, ::-1]]), (m + n, m + n))


class Pairs:
    """Eigenvalues and eigenvectors that a function of the host finds, with their derivatives.

    Attributes:
      name: the name of the public function, for errors.
      find: from elements and positions to eigenvalues and eigenvectors, on the host.
      hermitian: from the entries of the user's matrix to those of the Hermitian matrix with these eigenvalues.
      a: the entries of the user's matrix.
      n, k: the size of the Hermitian matrix, and the number of eigenvalues.
    """

    def __init__(
        self, name: str, find: Callable[[Any, Any], Sequence[Any]], hermitian: Callable[[Entries], Entries], a: Entries,
        n: int, k: int,
    ) -> None:  # fmt: skip
        self.settings = Settings(name)
        self.find = find
        self.hermitian = hermitian
        self.a = a
        self.n = n
        self.k = k
        self._both = custom_jvp(self._on_host)
        self._both.defjvp(self._both_jvp)
        self._values = custom_jvp(lambda data, indices: self._on_host(data, indices)[0])
        self._values.defjvp(self._values_jvp)

    def both(self) -> tuple[Any, Any]:
        """Return the eigenvalues and the eigenvectors."""
        values, vectors = self._both(self.a.data, stop_gradient(self.a.indices))
        return values, vectors

    def values(self) -> Any:
        """Return the eigenvalues."""
        return self._values(self.a.data, stop_gradient(self.a.indices))

    def _on_host(self, data: Any, indices: Any) -> Any:
        results = [
            ShapeDtypeStruct((self.k,), dtypes.to_real(data.dtype)), ShapeDtypeStruct((self.n, self.k), data.dtype)
        ]  # fmt: skip
        call = lambda data, indices: factors.over_batch(self.find, (data, 1), (indices, 2))
        return tuple(pure_callback(call, results, data, indices, vmap_method="expand_dims"))

    def _moved(self, vectors: Any, data: Any, indices: Any) -> tuple[Any, Any]:
        """Return the product of the change of the matrix and the eigenvectors, and the changes of the eigenvalues."""
        moved = self.hermitian(Entries(data, indices, self.a.shape)).times(vectors)
        return moved, reduce_sum(ops.real_part(ops.mul(ops.conj(vectors), moved)), (0,))

    def _values_jvp(self, primals: Any, tangents: Any) -> Any:
        values, vectors = self._both(*primals)
        return values, self._moved(vectors, tangents[0], primals[1])[1]

    def _both_jvp(self, primals: Any, tangents: Any) -> Any:
        values, vectors = self._both(*primals)
        moved, slopes = self._moved(vectors, tangents[0], primals[1])
        matrix = self.hermitian(Entries(primals[0], primals[1], self.a.shape))
        rest = ops.sub(ops.mul(vectors, ops.convert_element_type(slopes, vectors.dtype)), moved)
        columns = [self._direction(matrix, values[i], vectors[:, i], rest[:, i]) for i in range(self.k)]
        return (values, vectors), (slopes, stack(columns, axis=1))

    def _direction(self, a: Entries, value: Any, vector: Any, right: Any) -> Any:
        """Solve (A - value) x = right with x orthogonal to ``vector``, by a matrix with one more row and column."""
        n = self.n
        kind = a.indices.dtype
        numbers = np.arange(n, dtype=kind)
        last = np.full(n, n, kind)
        known = ((a.indices >= 0) & (a.indices < n)).all(1)[:, None]
        borders = [np.stack(pair, axis=1) for pair in ((numbers, numbers), (numbers, last), (last, numbers))]
        indices = concatenate([ops.where(known, a.indices, n + 1), *borders])
        shift = ops.mul(creation.ones(n, vector.dtype), ops.convert_element_type(ops.neg(value), vector.dtype))
        data = concatenate([a.data, shift, vector, ops.conj(vector)])
        bordered = Entries(data, indices, (n + 1, n + 1))
        return solved(self.settings, bordered, concatenate([right, creation.zeros(1, right.dtype)]))[:n]


def _eigenpairs(k: int, v0: Any, options: dict[str, Any], data: Any, indices: Any) -> list[Any]:
    n = len(v0)
    matrix = factors.scipy_matrix(data, indices, (n, n))
    if not np.isfinite(data).all():
        return [np.full(k, np.nan, data.real.dtype), np.full((n, k), np.nan, data.dtype)]
    rest = abs(matrix - matrix.conj().T)
    if rest.nnz and rest.max() > np.sqrt(np.finfo(data.dtype).eps) * abs(matrix).max():
        raise OperandError(
            f"eigsh: A must be Hermitian, but an element and its mirror image differ by {rest.max():.3g}; svds takes "
            "any matrix"
        )
    values, vectors = imported("scipy.sparse.linalg").eigsh(matrix, k, v0=v0.astype(data.dtype), **options)
    order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    return [values.astype(data.real.dtype), (vectors * _phases(vectors)).astype(data.dtype)]


def _singular_pairs(
    k: int, v0: Any, options: dict[str, Any], shape: tuple[int, int], data: Any, indices: Any
) -> list[Any]:
    m, n = shape
    if not np.isfinite(data).all():
        return [np.full(k, np.nan, data.real.dtype), np.full((m + n, k), np.nan, data.dtype)]
    matrix = factors.scipy_matrix(data, indices, shape)
    u, s, vh = imported("scipy.sparse.linalg").svds(matrix, k, v0=v0.astype(data.dtype), **options)
    order = np.argsort(s)
    u, s, v = u[:, order], s[order], vh[order].conj().T
    both = np.concatenate([u, v]) * _phases(v) / np.sqrt(2)
    return [s.astype(data.real.dtype), both.astype(data.dtype)]


def _phases(vectors: Any) -> Any:
    """Return the numbers of absolute value 1 that make the products of the columns with a fixed vector positive.

    The vector is random, so that no symmetry makes a product zero, where the sign would depend on rounding.
    """
    products = np.random.default_rng(1).standard_normal(len(vectors)) @ vectors
    return np.where(products == 0, 1, products.conj() / np.where(products == 0, 1, np.abs(products)))
