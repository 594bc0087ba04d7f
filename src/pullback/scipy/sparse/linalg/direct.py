"""Sparse equations solved by factorisation: ``spsolve``, ``splu``, ``factorized``, and determinants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ConcretizationTypeError, OperandError, ShapeError
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.numpy.promotion import inexact_operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.lapack import product
from pullback.primitives.linalg.lu import identity
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_sum
from pullback.scipy.sparse.linalg import factors
from pullback.scipy.sparse.linalg.entries import Entries, entries_of, is_scipy_sparse, precise
from pullback.scipy.sparse.linalg.factors import Settings
from pullback.scipy.sparse.linalg.systems import Matrix
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.custom.custom_linear import linear_call
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.programs.callbacks import pure_callback

_ORDERS = ("NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD")
_TRANS = ("N", "T", "H")


class Slogdet(NamedTuple):
    """The result of :func:`slogdet`.

    Attributes:
      sign: 1, -1 or 0, or of complex matrices a number of absolute value 1 or 0.
      logabsdet: the logarithm of the absolute value of the determinant, -inf if that is 0.

    >>> from pullback.experimental import sparse
    >>> from pullback.scipy.sparse.linalg import slogdet
    >>> print(slogdet(2 * sparse.eye(3)).sign)
    1.0
    """

    sign: Array
    logabsdet: Array


def solved(settings: Settings, a: Entries, b: Any, transposed: bool = False) -> Any:
    """Return the solution x of A x = b, or with the transpose of A, and its derivatives.

    Args:
      settings: how to factorise the matrix.
      a: the entries of the matrix A, (n, n).
      b: the right sides, (n,) or (n, k), of the dtype of the elements.
      transposed: whether to solve with the transpose.
    """
    right = b if b.ndim == 2 else shapes.reshape(b, (b.shape[0], 1))
    if all(map(is_on_host, (a.data, a.indices, right))):  # no derivative: nothing needs to be traced
        x = as_array(factors.solve(settings, transposed, *map(host_value, (a.data, a.indices, right))))
        return x if b.ndim == 2 else shapes.reshape(x, b.shape)
    result = ShapeDtypeStruct(right.shape, right.dtype)

    def on_host(turned: bool) -> Callable[[Any, Any], Any]:
        solve = partial(factors.solve, settings, turned)
        return lambda _, b: pure_callback(solve, result, a.data, a.indices, b, vmap_method="expand_dims")

    matvec = lambda x: a.times(x, transposed)
    x = custom_linear_solve(matvec, right, on_host(transposed), transpose_solve=on_host(not transposed))
    return x if b.ndim == 2 else shapes.reshape(x, b.shape)


def approximated(settings: Settings, a: Entries, b: Any, transposed: bool = False) -> Any:
    """Return the product of ``b``, (n,) or (n, k), and the inverse of an incomplete factorisation of A.

    It is linear in ``b``, with a transpose. The elements of A must have no derivative.
    """
    right = b if b.ndim == 2 else shapes.reshape(b, (b.shape[0], 1))
    result = ShapeDtypeStruct(right.shape, right.dtype)

    def on_host(turned: bool) -> Callable[[Any, Any], Any]:
        solve = partial(factors.solve, settings, turned)
        return lambda parts, b: pure_callback(solve, result, *parts, b, vmap_method="expand_dims")

    x = linear_call(on_host(transposed), on_host(not transposed), (a.data, a.indices), right)
    return x if b.ndim == 2 else shapes.reshape(x, b.shape)


def settings_of(name: str, function: str, options: Any, **arguments: Any) -> Settings:
    """Check the arguments of a factorisation, and return them."""
    order = arguments.get("permc_spec")
    if order is not None and not is_listed(order, _ORDERS):
        raise ArgumentError(f"{name}: permc_spec must be one of {', '.join(_ORDERS)}, got {quote(order)}")
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(f"{name}: options must be a mapping of SuperLU's names to values, got {quote(options)}")
    given = tuple((key, value) for key, value in arguments.items() if value is not None)
    return Settings(name, function, given, tuple(sorted((options or {}).items())))


def right_side(name: str, a: Entries, b: Any) -> tuple[Entries, Any]:
    """Return the entries and the right side in their common dtype."""
    if is_scipy_sparse(b) or hasattr(b, "n_dense"):
        raise OperandError(f"{name}: b must be a dense array, got {quote(b)}: convert it with todense")
    b = inexact_operand(name, b)
    n = a.shape[0]
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise ShapeError(f"{name}: b must have shape ({n},) or ({n}, k) for a matrix of shape {a.shape}, got {b.shape}")
    dtype = dtypes.result_type(a.data.dtype, precise(name, "b", b.dtype))
    return a.of(dtype), ops.convert_element_type(b, dtype)


# long: half of it is its documentation
def spsolve(A: Matrix, b: ArrayLike, permc_spec: str | None = None, use_umfpack: bool = True) -> Array:
    """Solve A x = b for a sparse square matrix, by the LU decomposition of SuperLU on the host.

    The derivatives solve with the same factorisation, in both modes and to any order, with respect to ``b`` and to the
    elements of ``A``: the cotangent of a sparse matrix has its pattern. ``vmap`` over ``b`` solves once.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse``, such as a Jacobian of ``sparse_jacobian``; or of SciPy, as
        a constant. Integers become floats.
      b: the right side, (n,), or several as the columns of an array (n, k).
      permc_spec: how to order the columns for few elements in the factors: "COLAMD", the default, "NATURAL", "MMD_ATA"
        or "MMD_AT_PLUS_A".
      use_umfpack: without effect.

    Returns:
      The solution, of the shape of ``b``; NaN if elements are not finite.

    Raises:
      SingularMatrixError: the matrix is singular (a RuntimeError and a ValueError).
      ShapeError: the matrix is not square, or the shapes do not fit (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).
      ArgumentError: another ``permc_spec`` (a TypeError and a ValueError).

    Source: X. S. Li 2005, "An overview of SuperLU: algorithms, implementation, and user interface".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> from pullback.scipy.sparse.linalg import spsolve
    >>> a = sparse.BCOO.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> print(spsolve(a, jnp.array([2.0, 5.0])))
    [1. 1.]
    >>> print(sparse.grad(lambda a: spsolve(a, jnp.array([2.0, 5.0]))[1])(a).data)
    [ 0.125 -0.25  -0.25 ]
    """
    settings = settings_of("spsolve", "splu", None, permc_spec=permc_spec)
    a, right = right_side("spsolve", entries_of("spsolve", A), b)
    return solved(settings, a, right)  # type: ignore[no-any-return]


@register_pytree_node_class
class SuperLU:
    """The factorisation of a sparse matrix, which ``splu`` returns; a tree of the matrix's arrays.

    Attributes:
      shape: the shape of the matrix.
      data, indices: its stored elements, (nse,), and their rows and columns, (nse, 2).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> from pullback.scipy.sparse.linalg import splu
    >>> lu = splu(2 * sparse.eye(3))
    >>> print(lu.shape, lu.nnz, lu.solve(jnp.ones(3)))
    (3, 3) 6 [0.5 0.5 0.5]
    """

    def __init__(self, entries: Entries, settings: Settings) -> None:
        self.data, self.indices, self.shape = entries
        self._settings = settings
        self._known: Any = None  # SciPy's factorisation, if the elements are known and finite

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the stored arrays and the static data."""
        return (self.data, self.indices), (self.shape, self._settings)

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the factorisation from leaves of any type, without checks."""
        out = object.__new__(cls)
        (out.data, out.indices), (out.shape, out._settings), out._known = leaves, static, None
        return out

    def __repr__(self) -> str:
        return f"SuperLU(shape={self.shape}, nse={getattr(self.data, 'shape', ('?',))[0]})"

    def solve(self, rhs: ArrayLike, trans: str = "N") -> Array:
        """Solve the equation with the matrix, its transpose, or its conjugate transpose.

        Args:
          rhs: the right side, (n,), or several as the columns of an array (n, k).
          trans: "N", "T" or "H".

        Returns:
          The solution, of the shape of ``rhs``.

        Raises:
          ShapeError: the shapes do not fit (a TypeError and a ValueError).
          ArgumentError: another ``trans`` (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.experimental.sparse import BCOO
        >>> from pullback.scipy.sparse.linalg import splu
        >>> lu = splu(BCOO.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]])))
        >>> print(lu.solve(jnp.array([3.0, 4.0]), trans="T"))
        [1. 1.]
        """
        if not is_listed(trans, _TRANS):
            raise ArgumentError(f"solve: trans must be one of {', '.join(_TRANS)}, got {quote(trans)}")
        entries, b = right_side("solve", Entries(self.data, self.indices, self.shape), rhs)
        if trans == "H":
            return ops.conj(self._solved(entries, ops.conj(b), True))  # type: ignore[no-any-return]
        return self._solved(entries, b, trans == "T")  # type: ignore[no-any-return]

    def _solved(self, entries: Entries, b: Any, transposed: bool) -> Any:
        if self._known is not None and is_on_host(b) and entries.data.dtype == self.data.dtype and b.size:
            return as_array(self._known.solve(host_value(b), "T" if transposed else "N"))
        solve = solved if self._settings.function == "splu" else approximated
        return solve(self._settings, entries, b, transposed)

    def slogdet(self) -> Slogdet:
        """Return the sign and the logarithm of the absolute value of the determinant; see :func:`slogdet`.

        Raises:
          ArgumentError: the factorisation is incomplete (a TypeError and a ValueError).
        """
        if self._settings.function != "splu":
            raise ArgumentError(f"{self._settings.name}: an incomplete factorisation does not have the determinant")
        return _slogdet(self._settings, Entries(self.data, self.indices, self.shape))

    def _found(self) -> Any:
        if not (is_on_host(self.data) and is_on_host(self.indices)):
            raise ConcretizationTypeError(
                "the factors of a matrix that is traced are not known; read them outside of the transformed function"
            )
        found = factors.factors(self._settings, host_value(self.data), host_value(self.indices), self.shape[0])
        if found is None:
            raise ArgumentError(f"{self._settings.name}: the matrix has elements that are not finite, and no factors")
        return found

    @property
    def nnz(self) -> int:
        """The number of stored elements of the factors."""
        return int(self._found().nnz)

    @property
    def L(self) -> Any:
        """The lower factor, of SciPy's class; ``L @ U`` is the matrix with its rows and columns permuted."""
        return self._found().L

    @property
    def U(self) -> Any:
        """The upper factor, of SciPy's class."""
        return self._found().U

    @property
    def perm_r(self) -> np.ndarray[Any, Any]:
        """The permutation of the rows."""
        return self._found().perm_r  # type: ignore[no-any-return]

    @property
    def perm_c(self) -> np.ndarray[Any, Any]:
        """The permutation of the columns."""
        return self._found().perm_c  # type: ignore[no-any-return]


# long: half of it is its documentation
def splu(
    A: Matrix,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> SuperLU:
    """Factorise a sparse square matrix, to solve many equations with it.

    The solutions have derivatives as those of :func:`spsolve`. In a compiled program, and for a traced matrix, the
    first solution factorises it; the newest factorisations, of 256 megabytes together, are kept for the same elements.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.
      permc_spec: how to order the columns: "COLAMD", the default, "NATURAL", "MMD_ATA" or "MMD_AT_PLUS_A".
      diag_pivot_thresh: the size of a diagonal element, relative to its column, from which it is the pivot: 1 by
        default.
      relax: the number of columns of a relaxed supernode.
      panel_size: the number of columns that are eliminated together.
      options: SuperLU's own options, such as ``{"SymmetricMode": True}``.

    Returns:
      A :class:`SuperLU`, whose method ``solve`` solves equations.

    Raises:
      SingularMatrixError: the matrix is singular (a RuntimeError and a ValueError).
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).
      ArgumentError: another ``permc_spec`` (a TypeError and a ValueError).

    Source: X. S. Li 2005, "An overview of SuperLU: algorithms, implementation, and user interface".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import splu
    >>> lu = splu(BCOO.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]])))
    >>> print(lu.solve(jnp.array([2.0, 5.0])), lu.slogdet().logabsdet.round(4))
    [1. 1.] 2.0794
    """
    settings = settings_of(
        "splu", "splu", options, permc_spec=permc_spec, diag_pivot_thresh=diag_pivot_thresh, relax=relax,
        panel_size=panel_size,
    )  # fmt: skip
    return factorised(SuperLU(entries_of("splu", A), settings))


def factorised(lu: Any) -> Any:
    """Return a factorisation; compute it now if its matrix is known, so that errors are raised here."""
    if is_on_host(lu.data) and is_on_host(lu.indices) and lu.shape[0]:
        lu._known = factors.factors(lu._settings, host_value(lu.data), host_value(lu.indices), lu.shape[0])
    return lu


def factorized(A: Matrix) -> Callable[[ArrayLike], Array]:
    """Return a function that solves equations with a sparse matrix, which is factorised once: ``splu(A).solve``.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.

    Returns:
      A function from right sides, (n,) or (n, k), to solutions.

    Raises:
      SingularMatrixError: the matrix is singular (a RuntimeError and a ValueError).
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> from pullback.scipy.sparse.linalg import factorized
    >>> print(factorized(4 * sparse.eye(2))(jnp.array([4.0, 8.0])))
    [1. 2.]
    """
    return factorised(SuperLU(entries_of("factorized", A), settings_of("factorized", "splu", None))).solve  # type: ignore[no-any-return]


def slogdet(A: Matrix) -> Slogdet:
    """Compute the sign of the determinant of a sparse matrix and the logarithm of its absolute value.

    The first derivative needs the elements of the inverse at the matrix's pattern, which n solutions with the
    factorisation yield, without the dense inverse; the second derivative has the dense inverse in memory.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.

    Returns:
      A :class:`Slogdet`: ``sign`` and ``logabsdet``, which are 0 and -inf for a singular matrix.

    Raises:
      ShapeError: the matrix is not square (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import slogdet
    >>> sign, logarithm = slogdet(BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 1.0]])))
    >>> print(sign, logarithm.round(4))
    -1.0 1.7918
    """
    return _slogdet(settings_of("slogdet", "splu", None), entries_of("slogdet", A))


def _slogdet(settings: Settings, a: Entries) -> Slogdet:
    n = a.shape[0]
    real = dtypes.to_real(a.data.dtype)
    indices = stop_gradient(a.indices)
    on_host = lambda function, result: partial(_called, partial(function, settings, n), result)
    elements = on_host(factors.inverse_elements, [ShapeDtypeStruct(a.data.shape, a.data.dtype)])
    both = on_host(factors.determinant, [ShapeDtypeStruct((), a.data.dtype), ShapeDtypeStruct((), real)])

    @custom_jvp
    def inverse(data: Any, indices: Any) -> Any:
        return elements(data, indices)[0]

    @inverse.defjvp
    def of_inverse(primals: Any, tangents: Any) -> Any:
        data, indices = primals
        x = solved(settings, Entries(data, indices, a.shape), identity(n, data.dtype))
        moved = Entries(tangents[0], indices, a.shape).times(x)
        change = ops.neg(product(x, moved))
        return inverse(data, indices), _at(change, indices)

    @custom_jvp
    def logarithm(data: Any, indices: Any) -> Any:
        return tuple(both(data, indices))

    @logarithm.defjvp
    def of_logarithm(primals: Any, tangents: Any) -> Any:
        sign, size = logarithm(*primals)
        trace = reduce_sum(ops.mul(tangents[0], inverse(*primals)), (0,))
        if not dtypes.is_complex(trace.dtype):
            return (sign, size), (ops.mul(sign, 0), trace)
        turn = ops.mul(sign, ops.convert_element_type(ops.imag(trace), trace.dtype) * 1j)
        return (sign, size), (turn, ops.real(trace))

    return Slogdet(*logarithm(a.data, indices))


def _at(matrix: Any, indices: Any) -> Any:
    """Return for rows i and columns j the elements (j, i) of a dense matrix (n, n); zero for padding."""
    n = matrix.shape[0]
    inside = ((indices >= 0) & (indices < n)).all(1)
    return ops.where(inside, matrix[indices[:, 1], indices[:, 0]], 0)


def _called(function: Any, result: Any, data: Any, indices: Any) -> Any:
    on_batch = lambda data, indices: factors.over_batch(function, (data, 1), (indices, 2))
    return pure_callback(on_batch, result, data, indices, vmap_method="expand_dims")
