"""Sparse symmetric matrices as products of triangular ones: ``cholesky`` and ``ldl``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ConcretizationTypeError, DtypeError, SingularMatrixError
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.numpy import creation
from pullback.numpy.promotion import inexact_operand
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.slicing import concatenate
from pullback.scipy.sparse.linalg import symmetric_factors
from pullback.scipy.sparse.linalg.direct import Slogdet, SuperLU, factorised, right_side, settings_of, solved
from pullback.scipy.sparse.linalg.entries import Entries, entries_of
from pullback.scipy.sparse.linalg.symmetric_factors import Pattern
from pullback.scipy.sparse.linalg.systems import Matrix
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.programs.callbacks import pure_callback

_NATURAL = settings_of("solve_L", "splu", {"SymmetricMode": True}, permc_spec="NATURAL", diag_pivot_thresh=0.0)


@register_pytree_node_class
class LDL:
    """The factors of a sparse symmetric matrix, which :func:`ldl` returns; a tree of the matrix's arrays.

    With the rows and columns of A in the order ``P()``, A = L D Lᵀ.

    Attributes:
      shape: the shape of the matrix.
      data, indices: its stored elements, (nse,), and their rows and columns, (nse, 2); those above the diagonal do not
        count.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import ldl
    >>> f = ldl(BCOO.fromdense(jnp.array([[2.0, 1.0], [1.0, -1.0]])))
    >>> print(f.solve_A(jnp.array([3.0, 0.0])), f.D().prod().round(4))
    [1. 1.] -3.0
    """

    _name = "ldl"

    def __init__(self, entries: Entries) -> None:
        self.data, self.indices, self.shape = entries
        self._lu = factorised(SuperLU(self._whole(), self._settings()))
        if self._lu._known is not None:
            self._check(self._lu._known)

    def _check(self, found: Any) -> None:
        if not np.array_equal(found.perm_r, found.perm_c):
            raise SingularMatrixError(symmetric_factors.no_factors(self._name, self.shape[0]))

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the stored arrays and the static data."""
        return (self.data, self.indices), self.shape

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the factors from leaves of any type, without checks."""
        out = object.__new__(cls)
        (out.data, out.indices), out.shape, out._lu = leaves, static, None
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, nse={getattr(self.data, 'shape', ('?',))[0]})"

    def _settings(self) -> Any:
        options = {"SymmetricMode": True}
        return settings_of(self._name, "splu", options, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)

    def _whole(self) -> Entries:
        """Return the entries of both triangles, from those of the lower one."""
        i, j = self.indices[:, 0], self.indices[:, 1]
        lower, strict = ops.where(i >= j, self.data, 0), ops.where(i > j, self.data, 0)
        turned = concatenate([self.indices, self.indices[:, ::-1]], 0)
        return Entries(concatenate([lower, strict], 0), turned, self.shape)

    def _both(self) -> SuperLU:
        return SuperLU(self._whole(), self._settings()) if self._lu is None else self._lu

    def _pattern(self) -> Pattern:
        if not is_on_host(self.indices):
            raise ConcretizationTypeError(
                f"{self._name}: the rows and columns of the matrix are traced, and the pattern of its factor follows "
                "from them; make the matrix within the function, of indices that are constants"
            )
        return symmetric_factors.pattern_of(host_value(self.indices), self.shape[0])

    def _elements(self) -> tuple[Pattern, Any]:
        """Return the pattern of L and its elements, with those of D on the diagonal."""
        pattern = self._pattern()
        room = creation.zeros(len(pattern.rows), self.data.dtype)
        return pattern, _factor(self._name, pattern, room.at[pattern.positions].add(self.data, mode="drop"))

    def __call__(self, b: ArrayLike) -> Array:
        """Solve A x = b: :meth:`solve_A`."""
        return self.solve_A(b)

    def solve_A(self, b: ArrayLike) -> Array:
        """Solve A x = b for a right side (n,), or several as the columns of an array (n, k).

        Raises:
          ShapeError: the shapes do not fit (a TypeError and a ValueError).
        """
        return self._both().solve(b)

    def slogdet(self) -> Slogdet:
        """Return the sign and the logarithm of the absolute value of the determinant."""
        return self._both().slogdet()

    def P(self) -> np.ndarray[Any, Any]:
        """Return the order of the rows and columns, (n,) integers: it makes the factors sparse."""
        return self._pattern().order.copy()  # type: ignore[no-any-return]

    def apply_P(self, b: ArrayLike) -> Array:
        """Return the rows of ``b``, (n,) or (n, k), in the order of the factors."""
        return inexact_operand("apply_P", b)[self._pattern().order]  # type: ignore[no-any-return]

    def apply_Pt(self, b: ArrayLike) -> Array:
        """Return the rows of ``b``, (n,) or (n, k), which have the order of the factors, in that of the matrix."""
        return inexact_operand("apply_Pt", b)[np.argsort(self._pattern().order)]  # type: ignore[no-any-return]

    def D(self) -> Array:
        """Return the diagonal of D, (n,): as many elements are negative as eigenvalues of A (Sylvester's law)."""
        pattern, elements = self._elements()
        return elements[pattern.diagonal]  # type: ignore[no-any-return]

    def L(self) -> Entries:
        """Return the lower triangular factor: its elements, with ones on the diagonal, their positions and its shape.

        ``BCOO((l.data, l.indices), shape=l.shape)`` makes a matrix of ``experimental.sparse`` of it.
        """
        pattern, elements = self._elements()
        return self._matrix(pattern, self._of_factor(pattern, elements))

    def _of_factor(self, pattern: Pattern, elements: Any) -> Any:
        return elements.at[pattern.diagonal].set(1)

    def _matrix(self, pattern: Pattern, elements: Any) -> Entries:
        where = np.stack([pattern.rows, pattern.columns], axis=1).astype(np.int32)
        return Entries(elements, as_array(where), self.shape)

    def solve_L(self, b: ArrayLike) -> Array:
        """Solve L x = b for a right side (n,) or (n, k), in the order of the factors.

        Raises:
          ShapeError: the shapes do not fit (a TypeError and a ValueError).
        """
        return solved(_NATURAL, *right_side("solve_L", self.L(), b))  # type: ignore[no-any-return]

    def solve_Lt(self, b: ArrayLike) -> Array:
        """Solve Lᵀ x = b for a right side (n,) or (n, k), in the order of the factors.

        Raises:
          ShapeError: the shapes do not fit (a TypeError and a ValueError).
        """
        own = right_side("solve_Lt", self.L(), b)
        return solved(_NATURAL, *own, transposed=True)  # type: ignore[no-any-return]


@register_pytree_node_class
class Cholesky(LDL):
    """The Cholesky factor of a sparse matrix, which :func:`cholesky` returns; a tree of the matrix's arrays.

    With the rows and columns of A in the order ``P()``, A = L Lᵀ.

    Attributes:
      shape, data, indices: as of :class:`LDL`.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import cholesky
    >>> f = cholesky(BCOO.fromdense(jnp.array([[4.0, 2.0], [2.0, 10.0]])))
    >>> l = f.L()
    >>> lower = BCOO((l.data, l.indices), shape=l.shape)
    >>> print((lower @ lower.T).todense().sum().round(4), f.logdet().round(4))
    18.0 3.5835
    """

    _name = "cholesky"

    def _check(self, found: Any) -> None:
        diagonal = found.U.diagonal()
        if np.array_equal(found.perm_r, found.perm_c) and (diagonal > 0).all():
            return
        raise SingularMatrixError(
            "cholesky: the matrix is not positive definite: a pivot is not positive; pass beta, a number that is added "
            "to its diagonal, or factorise an indefinite matrix by ldl or splu"
        )

    def logdet(self) -> Array:
        """Return the logarithm of the determinant; NaN if a traced matrix is not positive definite."""
        sign, size = self.slogdet()
        return ops.where(sign > 0, size, np.nan)  # type: ignore[no-any-return]

    def _of_factor(self, pattern: Pattern, elements: Any) -> Any:
        roots = ops.sqrt(elements[pattern.diagonal])
        return _scaled(pattern, elements, roots)


def _scaled(pattern: Pattern, elements: Any, roots: Any) -> Any:
    """Return the elements of L D^(1/2), from those of L and from the diagonal of D^(1/2)."""
    return ops.mul(elements, roots[pattern.columns]).at[pattern.diagonal].set(roots)


def _factor(name: str, pattern: Pattern, values: Any) -> Any:
    """Return the elements of L, with those of D on the diagonal, for those of the matrix at the same positions."""
    result = ShapeDtypeStruct(values.shape, values.dtype)

    def on_host(function: Callable[..., Any], *operands: Any) -> Any:
        def on_batch(*operands: Any) -> Any:
            return symmetric_factors.over_batch(function, *operands)

        return pure_callback(on_batch, result, *operands, vmap_method="expand_dims")

    @custom_jvp
    def elements(values: Any) -> Any:
        return on_host(partial(symmetric_factors.elements, name, pattern), values)

    @elements.defjvp
    def of_elements(primals: Any, tangents: Any) -> Any:
        factor = elements(*primals)
        solve = lambda _, change: on_host(partial(symmetric_factors.tangent, pattern), factor, change)
        transposed = lambda _, change: on_host(partial(symmetric_factors.cotangent, pattern), factor, change)
        matvec = lambda change: jvp(partial(_product, pattern), (factor,), (change,))[1]
        return factor, custom_linear_solve(matvec, tangents[0], solve, transpose_solve=transposed)

    return elements(values)


def _product(pattern: Pattern, factor: Any) -> Any:
    """Return the elements of L D Lᵀ at the positions of L."""
    first, second, target = symmetric_factors.schedule_of(pattern).updates
    own = factor[pattern.diagonal][pattern.columns]
    lower = ops.mul(factor.at[pattern.diagonal].set(1), own)
    pairs = ops.mul(factor[first], factor[second])
    return lower.at[target].add(ops.mul(pairs, own[first]))


def _entries(name: str, A: Any, beta: Any) -> Entries:
    a = entries_of(name, A)
    if dtypes.is_complex(a.data.dtype):
        raise DtypeError(
            f"{name}: A must have real elements, got {dtypes.short_name(a.data.dtype)}; splu takes complex ones"
        )
    if isinstance(beta, (int, float)) and beta == 0:
        return a
    beta = inexact_operand(name, beta)
    dtype = dtypes.result_type(a.data.dtype, beta)
    shift = ops.mul(ops.convert_element_type(beta, dtype), creation.ones(a.shape[0], dtype))
    rows = np.repeat(np.arange(a.shape[0], dtype=a.indices.dtype)[:, None], 2, axis=1)
    if is_on_host(a.indices):  # they stay known where other values are traced
        where = as_array(np.concatenate([host_value(a.indices), rows]))
    else:
        where = concatenate([a.indices, as_array(rows)], 0)
    return Entries(concatenate([a.of(dtype).data, shift], 0), where, a.shape)


# long: half of it is its documentation
def cholesky(A: Matrix, beta: ArrayLike = 0) -> Cholesky:
    """Factorise a sparse symmetric positive definite matrix, A + beta I = L Lᵀ, in an order with little fill.

    Solutions, determinants and the elements of L have derivatives in both modes and to any order with respect to the
    elements of ``A`` and to ``beta``. Those of L solve the derivative of the equation A = L Lᵀ, which is triangular.
    The positions of the elements must be known for L, not for solutions.

    With L, samples of a normal distribution whose inverse covariance is A are ``f.apply_Pt(f.solve_Lt(z))``.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy, real and symmetric. The elements above the diagonal
        are not read.
      beta: a number that is added to the diagonal.

    Returns:
      A :class:`Cholesky`, with the names of scikit-sparse.

    Raises:
      SingularMatrixError: the matrix is not positive definite (a RuntimeError and a ValueError). The factors of a
        traced one are NaN.
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).
      DtypeError: its elements are complex, or have 16 bits (a TypeError).

    Source: T. A. Davis 2006, "Direct methods for sparse linear systems", chapter 4, of the factors; the derivatives are
    by the implicit function theorem. SuperLU orders the rows and computes the factors.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import cholesky
    >>> a = BCOO.fromdense(jnp.array([[4.0, 2.0], [2.0, 10.0]]))
    >>> print(cholesky(a).solve_A(jnp.array([6.0, 12.0])))
    [1. 1.]
    >>> print(grad(lambda beta: cholesky(a, beta).logdet())(0.0).round(4))
    0.3889
    """
    return Cholesky(_entries("cholesky", A, beta))


def ldl(A: Matrix, beta: ArrayLike = 0) -> LDL:
    """Factorise a sparse symmetric matrix, A + beta I = L D Lᵀ with D diagonal, in an order with little fill.

    Pivots are not exchanged: the factors exist for definite and quasi-definite matrices, and lose digits where a pivot
    is small. Derivatives are those of :func:`cholesky`.

    Args:
      A, beta: as of :func:`cholesky`.

    Returns:
      An :class:`LDL`, with the names of scikit-sparse.

    Raises:
      SingularMatrixError: a pivot is zero (a RuntimeError and a ValueError).
      ShapeError, OperandError, DtypeError: as of :func:`cholesky`.

    Source: as of :func:`cholesky`; R. J. Vanderbei 1995, "Symmetric quasidefinite matrices".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import ldl
    >>> f = ldl(BCOO.fromdense(jnp.array([[2.0, 1.0], [1.0, -1.0]])))
    >>> print((f.D() < 0).sum(), f.slogdet().sign)
    1 -1.0
    """
    return LDL(_entries("ldl", A, beta))
