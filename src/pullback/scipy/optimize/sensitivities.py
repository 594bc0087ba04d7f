"""Derivatives of solutions by their optimality conditions, and an error where these determine none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback.control.solves import custom_root
from pullback.core.array import host_value, is_on_host
from pullback.core.errors import DegenerateSolutionError
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.linalg.lapack import matrix_transpose
from pullback.primitives.linalg.lu import identity, lu, lu_solve
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.vmap import vmap

REGULAR, KINK, DEPENDENT, NOT_UNIQUE, NOT_SOLVED = range(5)
_REASONS = {
    KINK: "a constraint holds with equality and its multiplier is zero, so that the solution has a kink there; move "
    "the parameters, or leave the constraint out",
    DEPENDENT: "the gradients of the constraints that hold with equality are linearly dependent; leave out those "
    "that follow from the others",
    NOT_UNIQUE: "the solution is not unique: add a term that chooses one, such as a small multiple of the squares",
    NOT_SOLVED: "no point that satisfies the optimality conditions was found; status says how the method ended",
}


def attached(
    name: str,
    equation: Callable[[Any], Any],
    root: Any,
    degeneracy: Any,
    solution: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Return a root with the derivative that the equation gives it, with respect to the arrays that this closes over.

    The derivative is NaN where there is none; where the values are known while it is computed, it raises.

    Args:
      name: the name of the public function, for errors.
      equation: from vectors to vectors; integers that it closes over must not depend on a mapped axis.
      root: the root, a vector; it and ``degeneracy`` lose the derivatives that they have.
      degeneracy: int32: why the root has no derivative, or ``REGULAR``.
      solution: solves ``matvec(x) = y`` for derivatives; by default with the matrix, which must be regular.
    """
    degeneracy = stop_gradient(degeneracy)

    def tangent_solve(matvec: Callable[[Any], Any], y: Any) -> Any:
        _check(name, degeneracy)
        if solution is not None:
            return ops.where(degeneracy == REGULAR, solution(matvec, y), np.nan)
        x, singular = _by_factors(matvec, y)
        found = ops.where(singular & (degeneracy == REGULAR), NOT_UNIQUE, degeneracy)
        _check(name, found)
        return ops.where(found == REGULAR, x, np.nan)

    return custom_root(equation, stop_gradient(root), lambda _, x: x, tangent_solve)


def spoiled(arrays: Iterable[Any], degeneracy: Any) -> list[Any]:
    """Return arrays unchanged where the solution has derivatives; elsewhere they and their derivatives are NaN.

    An equation of such arrays has no derivative there by any of them, also by those that it would not depend on.
    """
    regular = stop_gradient(degeneracy) == REGULAR
    return [ops.mul(x, ops.where(regular, x.dtype.type(1), x.dtype.type(np.nan))) for x in arrays]


def _check(name: str, degeneracy: Any) -> None:
    """Raise if the array is known, and says that there is no derivative."""
    if is_on_host(degeneracy):
        reason = _REASONS.get(int(host_value(degeneracy)))
        if reason is not None:
            raise DegenerateSolutionError(f"{name}: the solution has no derivative: {reason}")


def _by_factors(matvec: Callable[[Any], Any], y: Any) -> tuple[Any, Any]:
    """Solve ``matvec(x) = y``; return the solution, and whether the matrix is singular to working precision.

    Rows and columns are scaled to elements of at most one, so that units have no influence on this.
    """
    n = y.shape[0]
    if n == 0:
        return y, ops.lt_p.bind(n, 0)
    matrix = matrix_transpose(vmap(matvec)(identity(n, y.dtype)))
    rows = _scales(matrix, 1)
    matrix = matrix * rows[:, None]
    columns = _scales(matrix, 0)
    factors, _, permutation = lu(matrix * columns[None])
    pivots = reductions.reduce_max((ops.abs(factors) * identity(n, y.dtype)), (1,))
    eps = float(np.finfo(y.dtype).eps)
    least, most = reductions.reduce_min(pivots, (0,)), reductions.reduce_max(pivots, (0,))
    return columns * lu_solve(factors, permutation, (rows * y)[:, None])[:, 0], ~(least > n * eps * most)


def _scales(matrix: Any, axis: int) -> Any:
    """Return the inverse of the largest absolute value of each row or column, over an axis; 1 where it is zero."""
    sizes = reductions.reduce_max(ops.abs(matrix), (axis,))
    return 1 / ops.where(sizes > 0, sizes, 1)
