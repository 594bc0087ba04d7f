"""Jacobians of least squares, dense or sparse: products with them, and the steps that their normal equations give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from pullback.core import tree
from pullback.core.errors import ShapeError, SingularMatrixError
from pullback.core.interrupts import imported
from pullback.numpy import creation
from pullback.numpy.joining import concatenate
from pullback.numpy.promotion import inexact_operand
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import matrix_transpose, product, triangular_solve
from pullback.primitives.linalg.lu import identity
from pullback.primitives.linalg.qr import qr
from pullback.scipy.optimize.problems import dense_solution, times
from pullback.scipy.sparse.linalg.entries import Entries, entries_of
from pullback.scipy.sparse.linalg.factors import Kept, over_batch, scipy_matrix
from pullback.scipy.sparse.linalg.hermitian import minres
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.custom.custom_linear import linear_call
from pullback.transforms.programs.callbacks import pure_callback

_normal_factors = Kept(8, 1 << 28)


class Jacobian(Protocol):
    """How to compute with the Jacobian of residuals; ``state`` is its array in the loop over the iterations."""

    def at(self, x: Any) -> Any:
        """Return the state at a point."""

    def times(self, state: Any, p: Any) -> Any:
        """Multiply by the Jacobian."""

    def transposed(self, state: Any, values: Any) -> Any:
        """Multiply by its transpose."""

    def columns(self, state: Any) -> Any:
        """Return the norm of each column, or 1 where the column is zero."""

    def step(self, state: Any, values: Any, slope: Any, damping: Any, scale: Any) -> Any:
        """Return the p of least ``|J p + values|² + damping |scale p|²``; ``slope`` is the product of Jᵀ and values."""

    def whole(self, state: Any) -> Any:
        """Return the Jacobian for users."""

    def solution(self, state: Any, matvec: Callable[[Any], Any], y: Any) -> Any:
        """Solve an equation with the Hessian, which ``matvec`` multiplies by, near the product of Jᵀ and J."""


class DenseJacobian:
    """A Jacobian whose state is the matrix; see :class:`Jacobian`.

    Attributes:
      at: from a point to the matrix.
    """

    def __init__(self, at: Callable[[Any], Any]) -> None:
        self.at = at

    def times(self, state: Any, p: Any) -> Any:
        return times(state, p)

    def transposed(self, state: Any, values: Any) -> Any:
        return times(matrix_transpose(state), values)

    def columns(self, state: Any) -> Any:
        return _sizes((state * state).sum(0))

    def step(self, state: Any, values: Any, slope: Any, damping: Any, scale: Any) -> Any:
        n = state.shape[1]
        matrix = concatenate([state, ops.sqrt(damping) * scale * identity(n, state.dtype)])
        q, r = qr(matrix)
        right = product(matrix_transpose(q[: state.shape[0]]), -values[:, None])
        return triangular_solve(r, right, left_side=True, lower=False)[:, 0]

    def whole(self, state: Any) -> Any:
        return state

    def solution(self, state: Any, matvec: Callable[[Any], Any], y: Any) -> Any:
        return dense_solution(matvec, y)


class SparseJacobian:
    """A Jacobian whose state are the elements of a sparse matrix; see :class:`Jacobian`.

    Attributes:
      first: the user's sparse matrix at the first point, whose positions those at other points have.
      entries: its entries.
      call: the user's function.
    """

    def __init__(self, call: Callable[[Any], Any], first: Any, rows: int, dtype: Any) -> None:
        self.first = first
        self.call = call
        self.dtype = dtype
        self.entries = entries_of("least_squares", first, "jac", square=False).of(dtype)
        self.rows = rows

    def at(self, x: Any) -> Any:
        found = entries_of("least_squares", self.call(x), "jac", square=False)
        if found.data.shape != self.entries.data.shape:
            raise ShapeError(
                f"least_squares: jac must have the same positions at every point, but has {found.data.shape[0]} "
                f"elements and had {self.entries.data.shape[0]}"
            )
        return ops.convert_element_type(found.data, self.dtype)

    def _with(self, state: Any) -> Entries:
        return self.entries._replace(data=state)

    def times(self, state: Any, p: Any) -> Any:
        return self._with(state).times(p)

    def transposed(self, state: Any, values: Any) -> Any:
        return self._with(state).times(values, transposed=True)

    def columns(self, state: Any) -> Any:
        return _sizes(self._with(state * state).times(creation.ones(self.rows, self.dtype), transposed=True))

    def step(self, state: Any, values: Any, slope: Any, damping: Any, scale: Any) -> Any:
        return self._solve_normal(state, damping * scale * scale, ops.neg(slope))

    def whole(self, state: Any) -> Any:
        leaves, outline = tree.flatten(self.first)
        return tree.unflatten(outline, [state, *leaves[1:]])

    def solution(self, state: Any, matvec: Callable[[Any], Any], y: Any) -> Any:
        # The product of Jᵀ and J is the Hessian, but for the curvature of the residuals: with it as a preconditioner
        # few products are needed.
        eps = float(np.finfo(self.dtype).eps)
        weights = eps**0.5 * self.columns(state) ** 2
        nearly = lambda x: self._solve_normal(state, weights, x)
        return minres(matvec, y, tol=4 * eps, maxiter=200, M=nearly)[0]

    def _solve_normal(self, state: Any, weights: Any, right: Any) -> Any:
        """Solve with the sum of the product of Jᵀ and J and a diagonal matrix; NaN if it is singular."""
        result = ShapeDtypeStruct(right.shape, right.dtype)
        solve = partial(_on_host, self.entries.shape)

        def call(parts: Any, right: Any) -> Any:
            return pure_callback(solve, [result], *parts, right, vmap_method="expand_dims")[0]

        return linear_call(call, call, (state, self.entries.indices, weights), right)


def _sizes(squares: Any) -> Any:
    sizes = ops.sqrt(squares)
    return ops.where(sizes > 0, sizes, 1)


def _on_host(shape: tuple[int, int], data: Any, indices: Any, weights: Any, right: Any) -> list[Any]:
    one = partial(_solve_normal, shape)
    return over_batch(one, (data, 1), (indices, 2), (weights, 1), (right, 1))


def _solve_normal(shape: tuple[int, int], data: Any, indices: Any, weights: Any, right: Any) -> list[Any]:
    if not (np.isfinite(data).all() and np.isfinite(weights).all()):
        return [np.full_like(right, np.nan)]

    def make() -> tuple[Any, int]:
        matrix = scipy_matrix(data, indices, shape)
        normal = (matrix.T @ matrix).tocsc() + imported("scipy.sparse").diags_array(weights, format="csc")
        options = {"SymmetricMode": True}
        try:
            found = imported("scipy.sparse.linalg").splu(
                normal, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
            )
        except RuntimeError as error:
            raise SingularMatrixError(str(error)) from None
        return found, found.nnz * (data.dtype.itemsize + 4)

    try:
        found = _normal_factors.find(shape, [data, indices, weights], make)
    except SingularMatrixError:
        return [np.full_like(right, np.nan)]
    return [found.solve(right)]


def jacobian_of(
    jac: Any, f: Callable[[Any], Any], derivative: Any, x: Any, args: Any, shape: Any, rows: int
) -> Jacobian:
    """Return the Jacobian that ``least_squares`` uses.

    Args:
      jac: the user's function, or None.
      f: the residuals, as a function of vectors.
      derivative: from ``f`` to the function of its dense Jacobian.
      x: the starting point, as a vector.
      args: further arguments of ``jac``, without derivatives.
      shape: the shape of the user's points.
      rows: the number of residuals.

    Raises:
      ShapeError: a Jacobian that does not fit (a TypeError and a ValueError).
    """
    if jac is None:
        return DenseJacobian(derivative(f))
    call = lambda x: jac(x.reshape(shape), *args)
    first = call(x)
    found = tuple(getattr(first, "shape", ()))
    if found != (rows, x.shape[0]):
        raise ShapeError(
            f"least_squares: jac must return a matrix of shape ({rows}, {x.shape[0]}), of residuals by unknowns, got "
            f"shape {found}"
        )
    if hasattr(first, "n_dense") or hasattr(first, "indptr") or hasattr(first, "row"):
        return SparseJacobian(call, first, rows, x.dtype)
    return DenseJacobian(lambda x: ops.convert_element_type(inexact_operand("least_squares", call(x)), x.dtype))
