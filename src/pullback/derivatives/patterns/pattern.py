"""Patterns: which elements of a matrix may not be zero."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.sparse as sp

from pullback.core.errors import PatternError
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.pictures import GREY, picture


class Pattern:
    """The positions of the elements of a Jacobian or Hessian that may not be zero, by row and in order of columns.

    Rows are the elements of the results, leaf by leaf in row-major order; columns are the elements of the arguments.
    Patterns are compared by ``==``, and can be pickled.

    Args:
      matrix: a SciPy or dense matrix, whose nonzero elements form the pattern; or a ``BCOO``, whose stored elements
        form the pattern.

    Attributes:
      shape: the number of rows and of columns.
      bounds: the offset in ``columns`` of each row's first column, and the total number: integers (rows + 1,).
      columns: the columns of all elements: integers (nnz,).

    Raises:
      PatternError: ``matrix`` is not a matrix (a ValueError).

    >>> from pullback.derivatives import Pattern
    >>> p = Pattern([[1, 0, 0], [1, 1, 0]])
    >>> p
    Pattern(2 x 3, 3 elements)
    >>> print(p)
    x..
    xx.
    >>> p.rows.tolist(), p.columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """

    __slots__ = ("bounds", "columns", "shape")

    def __init__(self, matrix: Any) -> None:
        csr = _as_rows(matrix)
        self.shape: tuple[int, int] = (int(csr.shape[0]), int(csr.shape[1]))
        self.bounds, self.columns = csr.indptr, csr.indices

    @property
    def nnz(self) -> int:
        """The number of elements that may not be zero."""
        return len(self.columns)

    @property
    def rows(self) -> Any:
        """The row of each element: integers (nnz,)."""
        count = self.shape[0]
        return np.repeat(np.arange(count, dtype=self.columns.dtype), np.diff(self.bounds))

    def to_scipy(self) -> Any:
        """Return the pattern as a sparse array of SciPy.

        Returns:
          A ``csr_array`` of booleans.

        >>> from pullback.derivatives import Pattern
        >>> print(Pattern([[1, 1], [0, 1]]).to_scipy().toarray())
        [[ True  True]
         [False  True]]
        """
        return boolean.rows_of(self.bounds, self.columns, self.shape)

    def contains(self, other: Pattern) -> bool:
        """Return whether this pattern contains every element of the pattern ``other``, and has the same shape.

        Args:
          other: a pattern.

        Returns:
          True or False.

        >>> from pullback.derivatives import Pattern
        >>> Pattern([[1, 1], [0, 1]]).contains(Pattern([[1, 0], [0, 1]]))
        True
        """
        return self.shape == other.shape and boolean.union([self.to_scipy(), other.to_scipy()]).nnz == self.nnz

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return (
            self.shape == other.shape
            and np.array_equal(self.bounds, other.bounds)
            and np.array_equal(self.columns, other.columns)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.nnz))

    def __reduce__(self) -> Any:
        return _restored, (self.shape, self.bounds, self.columns)

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {self.nnz} elements)"

    def __str__(self) -> str:
        """Draw the pattern with one character for each element; a large pattern is only summarized."""
        if max(self.shape) > 200:
            return repr(self)
        dense = self.to_scipy().toarray()
        return "\n".join("".join("x" if x else "." for x in row) for row in dense)

    def _repr_svg_(self) -> str:
        return picture(self.shape, self.rows, self.columns, [GREY] * self.nnz, 400)


def pattern_of(rows: Any) -> Pattern:
    """Make a pattern from a CSR array of booleans without False elements; the pattern shares its arrays."""
    rows.sum_duplicates()
    return _restored((int(rows.shape[0]), int(rows.shape[1])), rows.indptr, rows.indices)


def _restored(shape: tuple[int, int], bounds: Any, columns: Any) -> Pattern:
    made = object.__new__(Pattern)
    made.shape, made.bounds, made.columns = shape, bounds, columns
    return made


def _as_rows(matrix: Any) -> Any:
    """Convert a matrix to a sorted ``csr_array`` of booleans, without duplicates and without stored False elements."""
    if isinstance(matrix, Pattern):
        return matrix.to_scipy()
    indices = getattr(matrix, "indices", None)
    if indices is not None and hasattr(matrix, "n_sparse"):  # a BCOO
        shape = tuple(map(operator.index, matrix.shape))
        found = np.asarray(indices)
        if found.ndim != 2 or found.shape[1] != 2:
            raise PatternError(f"Pattern takes a BCOO with two sparse axes, got {matrix!r}")
        inside = (found < shape).all(1) & (found >= 0).all(1)
        return boolean.from_pairs(found[inside, 0], found[inside, 1], (shape[0], shape[1]))
    try:
        csr = sp.csr_array(matrix if sp.issparse(matrix) else np.atleast_1d(np.asarray(matrix)))
    except (TypeError, ValueError) as error:
        raise PatternError(f"Pattern takes a matrix, got {type(matrix).__name__}: {error}") from None
    if csr.ndim != 2:
        raise PatternError(f"Pattern takes a matrix, got an array of shape {csr.shape}")
    csr = csr.astype(bool)  # a copy
    csr.sum_duplicates()
    if not csr.data.all():
        csr.eliminate_zeros()
    return csr
