"""The elements of L and D of a sparse symmetric matrix A = L D Lᵀ on the host, and their derivatives.

The equation of the elements, A = L D Lᵀ on the pattern of L, determines the derivatives by the implicit function
theorem. The derivative of this equation is triangular: a tangent is found column by column as the factors themselves
are, a cotangent in the opposite order. Columns that do not depend on each other are computed together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.errors import SingularMatrixError
from pullback.core.interrupts import imported
from pullback.scipy.sparse.linalg import factors


class Pattern:
    """Where the factor of a symmetric matrix has elements, with rows and columns in an order of little fill.

    Attributes:
      n: the number of rows.
      order: the row of the matrix that stands at each row of the factor.
      rows, columns: of each element of L, column by column, that of the diagonal first.
      bounds: the position of the first element of each column, then the number of elements.
      positions: for each stored element of the matrix the position of its element of L; the number of elements if it
        stands above the diagonal or outside of the matrix, and does not count.
    """

    def __init__(self, indices: Any, n: int) -> None:
        sparse = imported("scipy.sparse")
        i, j = indices[:, 0].astype(np.int64), indices[:, 1].astype(np.int64)
        counts = (j >= 0) & (i < n) & (i >= j)
        ones = sparse.coo_array((np.ones(counts.sum()), (i[counts], j[counts])), shape=(n, n))
        self.n = n
        self.order, lower = _symbolic(ones.tocsc(), n)
        self.rows, self.bounds = lower.indices.astype(np.int64), lower.indptr
        self.columns = np.repeat(np.arange(n), np.diff(self.bounds))
        at = np.empty(n, np.int64)
        at[self.order] = np.arange(n)
        first, second = at[i[counts]], at[j[counts]]
        wanted = np.minimum(first, second) * n + np.maximum(first, second)
        self.positions = np.full(len(i), len(self.rows))
        self.positions[counts] = np.searchsorted(self.columns * n + self.rows, wanted)

    @property
    def diagonal(self) -> Any:
        """The positions of the elements of the diagonal."""
        return self.bounds[:-1]


class Schedule:
    """In which order the elements of a factor are computed.

    Attributes:
      updates: the positions of the elements (i, k), (j, k) and (i, j) of L, for all i >= j > k.
      steps: the elements, and the updates, of the columns that are computed in each step.
    """

    def __init__(self, pattern: Pattern) -> None:
        where = pattern.n, pattern.rows, pattern.columns, pattern.bounds
        self.updates = tuple(x.astype(np.int32) for x in factors.updates(*where))
        level = factors.levels(*where)
        elements = factors.groups(level[pattern.columns])
        updates = factors.groups(level[pattern.columns[self.updates[2]]])
        updates += [np.zeros(0, np.int64)] * (len(elements) - len(updates))
        self.steps = list(zip(elements, updates, strict=True))


def _symbolic(lower: Any, n: int) -> tuple[Any, Any]:
    """Return an order of the rows, and the pattern of the factor with ones.

    The matrix factorised has the pattern of the given one, negative elements beside a dominant diagonal: no element of
    its factor is zero by chance.
    """
    sparse = imported("scipy.sparse")
    both = lower + lower.T
    both.setdiag(0)
    both.eliminate_zeros()
    both.data[:] = 1.0
    degrees = both.sum(axis=0)
    matrix = sparse.csc_array(sparse.diags_array(degrees + 1e-3) - both)
    found = factorised(matrix, "MMD_AT_PLUS_A")
    order = np.argsort(found.perm_c)
    pattern = found.L
    pattern.eliminate_zeros()
    pattern.sort_indices()
    return order, pattern


def factorised(matrix: Any, order: str) -> Any:
    """Return SuperLU's factorisation with pivots on the diagonal."""
    options = {"SymmetricMode": True}
    return imported("scipy.sparse.linalg").splu(
        matrix, permc_spec=order, diag_pivot_thresh=0.0, relax=1, options=options
    )


def elements(name: str, pattern: Pattern, values: Any) -> Any:
    """Return the elements of L, with those of D on the diagonal.

    Args:
      name: the name of the public function, for errors.
      pattern: where they stand.
      values: the elements of the matrix at these positions.

    Raises:
      SingularMatrixError: a pivot is zero (a RuntimeError and a ValueError).
    """
    if not np.isfinite(values).all():
        return np.full_like(values, np.nan)

    def make() -> tuple[Any, int]:
        found = _elements(name, pattern, values)
        return found, found.nbytes

    return _factors.find(pattern.n, [pattern.columns, pattern.rows, values], make).copy()


def _elements(name: str, pattern: Pattern, values: Any) -> Any:
    sparse = imported("scipy.sparse")
    n = pattern.n
    lower = sparse.csc_array((values, pattern.rows, pattern.bounds), shape=(n, n))
    strict = np.where(pattern.rows == pattern.columns, 0, values)
    upper = sparse.csr_array((strict, pattern.rows, pattern.bounds), shape=(n, n))
    try:
        found = factorised(lower + upper.tocsc(), "NATURAL")
        exchanged = np.flatnonzero(found.perm_r != np.arange(n))
    except RuntimeError:
        exchanged = np.arange(1)
    if len(exchanged):
        raise SingularMatrixError(no_factors(name, n))
    out = np.zeros_like(values)
    factor = found.L.tocoo()
    keys = pattern.columns * n + pattern.rows
    wanted = factor.col.astype(np.int64) * n + factor.row
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    stored = keys[at] == wanted
    out[at[stored]] = factor.data[stored]
    out[pattern.diagonal] = found.U.diagonal()
    return out


def no_factors(name: str, n: int) -> str:
    """Return the message about a matrix that has no such factors."""
    return (
        f"{name}: a pivot of the matrix, of shape ({n}, {n}), is zero: it has no factors L D Lᵀ in this order of its "
        "rows; splu exchanges rows"
    )


def tangent(pattern: Pattern, factor: Any, change: Any) -> Any:
    """Return the change of L and D for a change of the matrix, all at the positions of L."""
    schedule, out = schedule_of(pattern), change.copy()
    first, second, target = schedule.updates
    own, pivot = factor[pattern.diagonal], pattern.diagonal
    for at, some in schedule.steps:
        i, j, to = first[some], second[some], target[some]
        k = pattern.columns[i]
        left = out[i] * factor[j] + factor[i] * out[j]
        middle = factor[i] * factor[j]
        np.subtract.at(out, to, left * own[k])
        np.subtract.at(out, to, middle * out[pivot[k]])
        below = at[pattern.rows[at] != pattern.columns[at]]
        column = pattern.columns[below]
        moved = factor[below] * out[pivot[column]]
        out[below] = (out[below] - moved) / own[column]
    return out


def cotangent(pattern: Pattern, factor: Any, change: Any) -> Any:
    """Return the cotangent of the matrix for one of L and D: the transpose of :func:`tangent`."""
    schedule, out = schedule_of(pattern), change.copy()
    first, second, target = schedule.updates
    own, pivot = factor[pattern.diagonal], pattern.diagonal
    for at, some in reversed(schedule.steps):
        below = at[pattern.rows[at] != pattern.columns[at]]
        column = pattern.columns[below]
        out[below] /= own[column]
        np.subtract.at(out, pivot[column], out[below] * factor[below])
        i, j, to = first[some], second[some], target[some]
        k = pattern.columns[i]
        passed = out[to] * own[k]
        np.subtract.at(out, i, passed * factor[j])
        np.subtract.at(out, j, passed * factor[i])
        middle = factor[i] * factor[j]
        np.subtract.at(out, pivot[k], out[to] * middle)
    return out


_patterns = factors.Kept(64, 1 << 28)
_schedules = factors.Kept(8, 1 << 28)
_factors = factors.Kept(16, 1 << 28)


def pattern_of(indices: Any, n: int) -> Pattern:
    """Return the pattern of the factor of a matrix (n, n) with elements at ``indices``, (nse, 2)."""

    def make() -> tuple[Pattern, int]:
        found = Pattern(indices, n)
        return found, 4 * found.rows.nbytes

    return _patterns.find(n, [indices], make)  # type: ignore[no-any-return]


def schedule_of(pattern: Pattern) -> Schedule:
    """Return the order in which derivatives of the factor's elements are computed."""

    def make() -> tuple[Schedule, int]:
        found = Schedule(pattern)
        return found, 5 * found.updates[0].nbytes

    return _schedules.find(pattern.n, [pattern.columns, pattern.rows], make)  # type: ignore[no-any-return]


def over_batch(function: Any, *operands: Any) -> Any:
    """Call a host function of vectors for each example of operands with axes of a batch in front."""
    return factors.over_batch(lambda *x: [function(*x)], *((x, 1) for x in operands))[0]
