"""Factorisations of sparse matrices on the host, by SciPy's SuperLU, which are kept for later equations.

A compiled program and a derivative call the host with the elements again, not with the factorisation: the newest ones
are found again by their elements. Comparing elements takes far less time than factorising them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core.errors import SingularMatrixError
from pullback.core.interrupts import imported
from pullback.core.locks import lock

_MOST_BYTES = 1 << 28
_MOST = 64


class Settings(NamedTuple):
    """How to factorise a matrix: the arguments of SciPy's ``splu`` or ``spilu``, or of :func:`incomplete_cholesky`.

    Attributes:
      name: the name of the public function, for errors.
      function: "splu", "spilu" or "ichol".
      arguments: the names and values of further arguments.
      options: SuperLU's own options.
    """

    name: str
    function: str = "splu"
    arguments: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


class Kept:
    """The newest results that were computed from some arrays, of limited number and size.

    The arrays are copied: a program's operands may be memory that its next call writes anew.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.results: OrderedDict[Any, tuple[Sequence[Any], Any, int]] = OrderedDict()
        self.bytes = 0
        self.lock = lock(vars(self), "lock")

    def find(self, key: Any, arrays: Sequence[Any], make: Callable[[], tuple[Any, int]]) -> Any:
        """Return the result for ``key`` and ``arrays``, or make it: ``make`` returns the result and its bytes."""
        key = key, *map(_fingerprint, arrays)
        with self.lock:
            found = self.results.get(key)
            if found is not None:
                self.results.move_to_end(key)
        if found is not None and all(map(_same, found[0], arrays)):
            return found[1]
        copies = [np.array(x) for x in arrays]
        result, size = make()
        size += sum(x.nbytes for x in arrays)
        with self.lock:
            self._drop(key)
            self.results[key] = copies, result, size
            self.bytes += size
            while len(self.results) > 1 and (len(self.results) > self.most or self.bytes > self.most_bytes):
                self._drop(next(iter(self.results)))
        return result

    def _drop(self, key: Any) -> None:
        found = self.results.pop(key, None)
        if found is not None:
            self.bytes -= found[2]


def _fingerprint(x: Any) -> Any:
    """Return a value that equal arrays share, and that others rarely do."""
    bits = np.ascontiguousarray(x).reshape(-1).view(np.uint32)
    return x.shape, x.dtype.str, int(bits.sum(dtype=np.uint64))


def _same(x: Any, y: Any) -> bool:
    """Whether two arrays of one shape and dtype have the same bits."""
    if x is y:
        return True
    first, second = (np.ascontiguousarray(a).reshape(-1).view(np.uint32) for a in (x, y))
    return bool(np.array_equal(first, second))


_layouts = Kept(_MOST, _MOST_BYTES)
_factors = Kept(_MOST, _MOST_BYTES)


class Columns:
    """Where the elements of a matrix stand in SciPy's format of compressed columns.

    Attributes:
      shape: the numbers of rows and columns.
      order: the numbers of the elements inside the matrix, column by column and sorted by row within a column.
      starts: the positions in ``order`` at which another row or column begins; None if no position occurs twice.
      rows, bounds: the rows of the elements, and for each column the position of its first element, then their number.
    """

    def __init__(self, indices: Any, shape: tuple[int, int]) -> None:
        coo_array = imported("scipy.sparse").coo_array
        i, j = indices[:, 0], indices[:, 1]
        inside = np.flatnonzero((i >= 0) & (i < shape[0]) & (j >= 0) & (j < shape[1]))
        triples = coo_array((inside, (i[inside].astype(np.int32), j[inside].astype(np.int32))), shape=shape)
        triples.has_canonical_format = True  # else SciPy would sum elements of one position
        matrix = triples.tocsc()
        matrix.sort_indices()
        self.shape = shape
        self.order, self.rows, self.bounds = matrix.data, matrix.indices, matrix.indptr
        columns = np.repeat(np.arange(shape[1]), np.diff(self.bounds))
        new = np.ones(len(inside), bool)
        new[1:] = (self.rows[1:] != self.rows[:-1]) | (columns[1:] != columns[:-1])
        self.starts = None
        if not new.all():
            self.starts = np.flatnonzero(new)
            self.bounds = np.searchsorted(self.starts, self.bounds).astype(self.bounds.dtype)
            self.rows = self.rows[self.starts]

    def matrix(self, data: Any) -> Any:
        """Return SciPy's matrix with these elements."""
        values = data[self.order]
        if self.starts is not None:
            values = np.add.reduceat(values, self.starts)
        matrix = imported("scipy.sparse").csc_array((values, self.rows, self.bounds), shape=self.shape)
        matrix.has_canonical_format = True
        return matrix


def _layout(indices: Any, shape: tuple[int, int]) -> Columns:
    def make() -> tuple[Columns, int]:
        layout = Columns(indices, shape)
        return layout, 2 * layout.order.nbytes

    return _layouts.find(shape, [indices], make)  # type: ignore[no-any-return]


def scipy_matrix(data: Any, indices: Any, shape: tuple[int, int]) -> Any:
    """Return the matrix of elements and their positions as SciPy's ``csc_array``."""
    return _layout(indices, shape).matrix(data)


def factors(settings: Settings, data: Any, indices: Any, n: int) -> Any:
    """Return SciPy's factorisation of a matrix (n, n), a new one or one that is kept; None if elements are not finite.

    Raises:
      SingularMatrixError: the matrix is singular (a RuntimeError and a ValueError).
    """
    if not np.isfinite(data).all():
        return None

    def make() -> tuple[Any, int]:
        matrix = scipy_matrix(data, indices, (n, n))
        if settings.function == "ichol":
            found = CholeskyFactor(incomplete_cholesky(settings.name, matrix, **dict(settings.arguments)))
            return found, found.nnz * (data.dtype.itemsize + 4)
        function = getattr(imported("scipy.sparse.linalg"), settings.function)
        try:
            found = function(matrix, options=dict(settings.options), **dict(settings.arguments))
        except RuntimeError as error:
            raise SingularMatrixError(_why(settings.name, matrix, error)) from None
        return found, found.nnz * (data.dtype.itemsize + 4)

    return _factors.find((settings[1:], n), [data, indices], make)


def _why(name: str, matrix: Any, error: Exception) -> str:
    """Return the message about a singular matrix, which names an empty row or column."""
    n = matrix.shape[0]
    what = f"{name}: the matrix, of shape {matrix.shape}, is singular"
    stored = matrix.data != 0
    for word, where in (("row", matrix.indices[stored]), ("column", _columns(matrix)[stored])):
        empty = np.flatnonzero(np.bincount(where, minlength=n) == 0)
        if len(empty):
            return f"{what}: {word} {empty[0]} has no element that is not zero"
    return f"{what}: {str(error).rstrip('.').lower()}; lsqr finds a solution of least squares"


def _columns(matrix: Any) -> Any:
    return np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))


def solve(settings: Settings, transposed: bool, data: Any, indices: Any, b: Any) -> Any:
    """Solve equations on the host, of which each may have axes of a batch in front.

    Args:
      settings: how to factorise the matrix.
      transposed: whether to solve the equation with the transposed matrix.
      data: the elements, (..., nse).
      indices: their rows and columns, (..., nse, 2).
      b: the right sides, (..., n, k).

    Returns:
      The solutions, of the shape of ``b`` with the batch that all operands have together; NaN where the matrix has
      elements that are not finite.
    """
    n, k = b.shape[-2:]
    batch = np.broadcast_shapes(data.shape[:-1], indices.shape[:-2], b.shape[:-2])
    if n == 0:
        return np.zeros((*batch, n, k), b.dtype)
    one = partial(_solve_one, settings, transposed)
    if data.size == data.shape[-1] and indices.size == 2 * indices.shape[-2]:  # one matrix for all right sides
        wide = np.broadcast_to(b, (*batch, n, k)).reshape(-1, n, k)
        columns = np.moveaxis(wide, 1, 0).reshape(n, -1)
        found = one(data.reshape(-1), indices.reshape(-1, 2), columns)
        return np.moveaxis(found.reshape(n, -1, k), 0, 1).reshape(*batch, n, k)
    out = np.empty((*batch, n, k), b.dtype)
    data, indices, b = (
        np.broadcast_to(x, (*batch, *x.shape[-m:])) for x, m in zip((data, indices, b), (1, 2, 2), strict=True)
    )
    for at in np.ndindex(*batch):
        out[at] = one(data[at], indices[at], b[at])
    return out


def _solve_one(settings: Settings, transposed: bool, data: Any, indices: Any, b: Any) -> Any:
    found = factors(settings, data, indices, len(b))
    if found is None:
        return np.full(b.shape, np.nan, b.dtype)
    return np.ascontiguousarray(found.solve(np.asfortranarray(b), "T" if transposed else "N"))


class CholeskyFactor:
    """A lower triangular matrix L, with which ``solve`` solves the equation L L* x = b, as SciPy's factorisations do.

    Attributes:
      nnz: the number of stored elements.
    """

    def __init__(self, lower: Any) -> None:
        options = {"SymmetricMode": True}  # and the order of L itself: so SuperLU's factors are those of L
        self._lower = imported("scipy.sparse.linalg").splu(
            lower, permc_spec="NATURAL", diag_pivot_thresh=0.0, relax=1, options=options
        )
        self.nnz = lower.nnz

    def solve(self, b: Any, trans: str) -> Any:
        """Solve with L L*, or with its transpose if ``trans`` is "T"."""
        if trans == "T":
            return self.solve(b.conj(), "N").conj()
        return self._lower.solve(np.asfortranarray(self._lower.solve(b)), "H")


def incomplete_cholesky(name: str, matrix: Any, shift: float = 0.0) -> Any:
    """Return the lower triangular factor L of a Hermitian matrix, with the pattern of the matrix's lower triangle.

    The products L L* and the matrix agree on that pattern. Columns that depend on no column that is still unknown are
    computed together.

    Args:
      name: the name of the public function, for errors.
      matrix: the matrix, in SciPy's format of compressed columns.
      shift: by what part the diagonal is enlarged first.

    Raises:
      SingularMatrixError: a pivot is not positive (a RuntimeError and a ValueError).
    """
    sparse = imported("scipy.sparse")
    n = matrix.shape[0]
    lower = sparse.csc_array(sparse.tril(matrix) + sparse.diags_array(matrix.diagonal() * shift))
    lower.sort_indices()
    columns, rows, data = _columns(lower), lower.indices, lower.data.copy()
    first, second, target = updates(n, lower.indices, columns, lower.indptr)
    diagonal = np.full(n, -1)
    diagonal[columns[rows == columns]] = np.flatnonzero(rows == columns)
    if (diagonal < 0).any():
        raise SingularMatrixError(f"{name}: the matrix has no diagonal element in row {np.argmin(diagonal)}")
    level = levels(n, lower.indices, columns, lower.indptr)
    by_level = groups(level[columns])
    changes = groups(level[columns[target]])
    for group, some in zip(by_level, changes, strict=False):
        np.subtract.at(data, target[some], data[first[some]] * data[second[some]].conj())
        own = group[rows[group] == columns[group]]
        pivots = data[own].real
        if not (pivots > 0).all():
            row = rows[own[np.argmax(~(pivots > 0))]]
            raise SingularMatrixError(
                f"{name}: the pivot of row {row} is not positive; pass shift, by which part the diagonal is enlarged, "
                "such as 0.01"
            )
        data[own] = np.sqrt(pivots)
        others = group[rows[group] != columns[group]]
        data[others] /= data[diagonal[columns[others]]]
    return sparse.csc_array((data, rows, lower.indptr), shape=lower.shape)


def updates(n: int, rows: Any, columns: Any, bounds: Any) -> tuple[Any, Any, Any]:
    """Return the numbers of the elements (i, k), (j, k) and (i, j) of a triangular matrix, for all i >= j > k.

    Args:
      n: the number of its rows.
      rows, columns: of each element, sorted by column, then by row.
      bounds: the number of the first element of each column, then the number of elements.
    """
    rows = rows.astype(np.int64)
    below = bounds[columns + 1] - np.arange(len(rows))  # of each element (j, k), those (i, k) with i >= j
    below[rows == columns] = 0
    second = np.repeat(np.arange(len(rows)), below)
    first = second + np.arange(len(second)) - np.repeat(np.cumsum(below) - below, below)
    keys = columns.astype(np.int64) * n + rows
    wanted = rows[second] * n + rows[first]
    target = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    stored = keys[target] == wanted
    return first[stored], second[stored], target[stored]


def levels(n: int, rows: Any, columns: Any, bounds: Any) -> Any:
    """Return for each column of a triangular matrix the length of the longest path of columns on which it depends.

    The arguments are those of :func:`updates`.
    """
    off = rows != columns
    waiting = np.bincount(rows[off], minlength=n)
    level = np.zeros(n, np.int64)
    ready, number = np.flatnonzero(waiting == 0), 0
    while len(ready):
        level[ready] = number
        counts = bounds[ready + 1] - bounds[ready]
        at = np.repeat(bounds[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        after = rows[at[off[at]]]
        np.subtract.at(waiting, after, 1)
        ready, number = np.unique(after[waiting[after] == 0]), number + 1
    return level


def groups(numbers: Any) -> list[Any]:
    """Return for each of the numbers 0, 1, ... the positions at which it stands."""
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=1))
    return np.split(order, ends[:-1])


def over_batch(function: Callable[[Any, Any], Sequence[Any]], *operands: tuple[Any, int]) -> list[Any]:
    """Call a host function for each example of a batch, and stack the results.

    Args:
      function: takes the operands without axes of a batch, and returns arrays.
      operands: pairs of an array and the number of its axes that belong to an example.
    """
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - m] for x, m in operands))
    wide = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - m :])) for x, m in operands]
    results = [function(*(x[at] for x in wide)) for at in np.ndindex(*batch)]
    return [np.stack(parts).reshape((*batch, *np.shape(parts[0]))) for parts in zip(*results, strict=True)]


def determinant(settings: Settings, n: int, data: Any, indices: Any) -> list[Any]:
    """Return the sign of a determinant and the logarithm of its absolute value: 0 and -inf of a singular matrix."""
    real = data.real.dtype
    try:
        found = factors(settings, data, indices, n)
    except SingularMatrixError:
        return [data.dtype.type(0), real.type(-np.inf)]
    if found is None:
        return [data.dtype.type(np.nan), real.type(np.nan)]
    diagonal = found.U.diagonal()
    size = np.abs(diagonal)
    sign = np.prod(diagonal / size) * _parity(found.perm_r) * _parity(found.perm_c)
    return [data.dtype.type(sign), real.type(np.log(size).sum(dtype=np.float64))]


def _parity(permutation: Any) -> int:
    """Return 1 or -1: the sign of a permutation, by its number of cycles."""
    components = imported("scipy.sparse.csgraph").connected_components
    n = len(permutation)
    graph = imported("scipy.sparse").csr_array((np.ones(n, np.int8), permutation, np.arange(n + 1)), shape=(n, n))
    return -1 if (n - components(graph, directed=False)[0]) % 2 else 1


def inverse_elements(settings: Settings, n: int, data: Any, indices: Any) -> list[Any]:
    """Return for each element, at row i and column j, the element (j, i) of the inverse matrix; zero for padding."""
    out = np.zeros_like(data)
    found = factors(settings, data, indices, n)
    if found is None:
        return [out * np.nan]
    i, j = indices[:, 0], indices[:, 1]
    inside = np.flatnonzero((i >= 0) & (i < n) & (j >= 0) & (j < n))
    inside = inside[np.argsort(i[inside], kind="stable")]
    columns = np.unique(i[inside])
    step = max(1, (1 << 20) // n)
    for start in range(0, len(columns), step):
        chunk = columns[start : start + step]
        right = np.zeros((n, len(chunk)), data.dtype, order="F")
        right[chunk, np.arange(len(chunk))] = 1
        x = found.solve(right)
        own = inside[np.searchsorted(i[inside], chunk[0]) : np.searchsorted(i[inside], chunk[-1], "right")]
        out[own] = x[j[own], np.searchsorted(chunk, i[own])]
    return [out]
