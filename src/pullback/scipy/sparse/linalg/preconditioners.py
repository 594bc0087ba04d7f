"""Preconditioners of sparse matrices: incomplete factorisations, and the diagonal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike, host_value, is_on_host
from pullback.core.errors import SingularMatrixError
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.numpy import creation
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.sparse.linalg.direct import SuperLU, factorised, right_side, settings_of
from pullback.scipy.sparse.linalg.entries import Entries, entries_of
from pullback.scipy.sparse.linalg.systems import Matrix


# long: half of it is its documentation
def spilu(
    A: Matrix,
    drop_tol: float | None = None,
    fill_factor: float | None = None,
    drop_rule: str | None = None,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> SuperLU:
    """Factorise a sparse square matrix approximately, as a preconditioner: ``M=spilu(A).solve``.

    ``solve`` is linear, with a transpose. It has no derivative with respect to the elements of ``A``: the derivatives
    of a solution do not depend on its preconditioner.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.
      drop_tol: the size, relative to its column, below which an element of the factors may be dropped; 1e-4 by default.
      fill_factor: how many more elements than ``A`` the factors may have, 10 by default.
      drop_rule: SuperLU's names of the rules by which elements are dropped, "basic,area" by default.
      permc_spec, diag_pivot_thresh, relax, panel_size, options: as of :func:`splu`.

    Returns:
      A :class:`SuperLU`.

    Raises:
      SingularMatrixError: the approximation is singular (a RuntimeError and a ValueError).
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).
      ArgumentError: another ``permc_spec`` (a TypeError and a ValueError).

    Source: X. S. Li and M. Shao 2011, "A supernodal approach to incomplete LU factorization with partial pivoting".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import gmres, spilu
    >>> a = BCOO.fromdense(jnp.array([[4.0, 1.0], [0.0, 2.0]]))
    >>> print(gmres(a, jnp.array([5.0, 2.0]), M=spilu(a).solve)[0].round(4))
    [1. 1.]
    """
    settings = settings_of(
        "spilu", "spilu", options, drop_tol=drop_tol, fill_factor=fill_factor, drop_rule=drop_rule,
        permc_spec=permc_spec, diag_pivot_thresh=diag_pivot_thresh, relax=relax, panel_size=panel_size,
    )  # fmt: skip
    return factorised(SuperLU(_fixed(entries_of("spilu", A)), settings))  # type: ignore[no-any-return]


def ichol(A: Matrix, shift: float = 0.0) -> Callable[[ArrayLike], Array]:
    """Factorise a sparse Hermitian matrix by Cholesky's method without fill, as a preconditioner: ``M=ichol(A)``.

    The factor L has the pattern of the lower triangle of ``A``; the upper triangle is not read. The function has no
    derivative with respect to the elements of ``A``.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy, Hermitian and positive definite.
      shift: by what part the diagonal is enlarged first, for matrices whose incomplete pivots are not all positive.

    Returns:
      A function that multiplies a vector (n,), or the columns of a matrix (n, k), by the inverse of L L*.

    Raises:
      SingularMatrixError: a pivot is not positive (a RuntimeError and a ValueError).
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).

    Source: J. A. Meijerink and H. A. van der Vorst 1977, "An iterative solution method for linear systems of which the
    coefficient matrix is a symmetric M-matrix"; the shift after T. A. Manteuffel 1980.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import cg, ichol
    >>> a = BCOO.fromdense(jnp.array([[4.0, 1.0], [1.0, 2.0]]))
    >>> print(cg(a, jnp.array([5.0, 3.0]), M=ichol(a))[0].round(4))
    [1. 1.]
    """
    settings = settings_of("ichol", "ichol", None, shift=float(shift))
    return Inverse(factorised(SuperLU(_fixed(entries_of("ichol", A)), settings)))


def _fixed(a: Entries) -> Entries:
    """Return the entries without their derivatives."""
    return a._replace(data=stop_gradient(a.data), indices=stop_gradient(a.indices))


def jacobi(A: Matrix) -> Callable[[ArrayLike], Array]:
    """Return a function that divides by the diagonal of a sparse matrix, as a preconditioner: ``M=jacobi(A)``.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.

    Returns:
      A function that divides a vector (n,), or the columns of a matrix (n, k); it has no derivative with respect to
      the elements of ``A``.

    Raises:
      SingularMatrixError: an element of the diagonal is zero (a RuntimeError and a ValueError); the quotient is
        infinite where ``A`` is traced.
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> from pullback.scipy.sparse.linalg import jacobi
    >>> print(jacobi(4 * sparse.eye(2))(jnp.array([4.0, 8.0])))
    [1. 2.]
    """
    a = _fixed(entries_of("jacobi", A))
    n = a.shape[0]
    on_diagonal = Entries(ops.where(a.indices[:, 0] == a.indices[:, 1], a.data, 0), a.indices, a.shape)
    diagonal = on_diagonal.times(creation.ones(n, a.data.dtype))
    if is_on_host(diagonal) and not host_value(diagonal).all():
        row = int(np.argmin(host_value(diagonal) != 0))
        raise SingularMatrixError(f"jacobi: the diagonal element of row {row} is zero")

    return Quotient(diagonal)


@register_pytree_node_class
class Inverse:
    """The function that multiplies by the inverse of a factorisation, a tree of the matrix's arrays.

    Attributes:
      lu: the factorisation.
    """

    def __init__(self, lu: SuperLU) -> None:
        self.lu = lu

    def __call__(self, x: ArrayLike) -> Array:
        """Multiply a vector, or the columns of a matrix."""
        return self.lu.solve(x)

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the factorisation, and no static data."""
        return (self.lu,), None

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the function from leaves of any type, without checks."""
        return cls(*leaves)


@register_pytree_node_class
class Quotient:
    """The function that divides by the diagonal of a matrix, a tree of one array.

    Attributes:
      diagonal: its elements, (n,).
    """

    def __init__(self, diagonal: Any) -> None:
        self.diagonal = diagonal

    def __call__(self, x: ArrayLike) -> Array:
        """Divide a vector, or the columns of a matrix."""
        n = self.diagonal.shape[0]
        own, right = right_side("jacobi", Entries(self.diagonal, None, (n, n)), x)
        diagonal = own.data if right.ndim == 1 else shapes.reshape(own.data, (n, 1))
        return ops.div(right, diagonal)  # type: ignore[no-any-return]

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the diagonal, and no static data."""
        return (self.diagonal,), None

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the function from leaves of any type, without checks."""
        return cls(*leaves)
