"""Results of sparse derivatives: a sparse array for each pair of a result and an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import ArrayImpl
from pullback.core.errors import ConcretizationTypeError
from pullback.core.trace import Tracer
from pullback.core.types import ShapedArray
from pullback.derivatives.patterns.pattern import Pattern
from pullback.experimental.sparse import BCOO

FORMATS = ("bcoo", "scipy")


class Block(NamedTuple):
    """The derivatives of one result by one argument: a block of a sparse Jacobian or Hessian.

    Attributes:
      which: the positions of the block's elements in the vector of all elements of the whole matrix; None for all.
      empty: a ``BCOO`` of shape ``result shape + argument shape`` with the indices of the block's elements, without
        values.
      rows, columns: the row and the column of each of these elements within the block.
      shape: the shapes of the result and of the argument.
      dtype: the dtype of the result.
    """

    which: Any
    empty: BCOO
    rows: Any
    columns: Any
    shape: tuple[tuple[int, ...], tuple[int, ...]]
    dtype: Any

    def of(self, data: Any, form: str) -> Any:
        """Return the block as a sparse array, with values.

        Args:
          data: the vector of all elements of the whole matrix.
          form: "bcoo" for a ``BCOO``, or "scipy" for a SciPy matrix.
        """
        own_data = data if self.which is None else data[self.which]
        if own_data.dtype != self.dtype:  # the elements of the whole matrix share one dtype
            own_data = own_data.astype(self.dtype)
        out, into = self.shape
        if form == "bcoo":
            return self.empty._with_data(own_data)
        if isinstance(own_data, Tracer):
            raise ConcretizationTypeError(
                "format='scipy' returns a SciPy matrix, which cannot contain traced values; use format='bcoo' under "
                "transformations"
            )
        import scipy.sparse as sp

        size = int(np.prod(out, dtype=np.int64)), int(np.prod(into, dtype=np.int64))
        return sp.csr_array((np.asarray(own_data), (self.rows, self.columns)), shape=size)


def blocks_of(pattern: Pattern, results: Sequence[ShapedArray], arguments: Sequence[ShapedArray]) -> list[list[Block]]:
    """Divide a pattern into blocks, by results and arguments of the given types.

    Return for each result a list of blocks, one for each argument.
    """
    rows, columns = pattern.rows, pattern.columns
    table = []
    row_start = 0
    for out in results:
        row_stop = row_start + out.size
        line = []
        column_start = 0
        first, last = np.searchsorted(rows, (row_start, row_stop)) if len(results) > 1 else (0, len(rows))
        for into in arguments:
            column_stop = column_start + into.size
            if len(results) == len(arguments) == 1:
                which, i, j = None, rows, columns
            else:
                inside = (columns[first:last] >= column_start) & (columns[first:last] < column_stop)
                which = np.flatnonzero(inside) + first
                i, j = rows[which] - row_start, columns[which] - column_start
            empty = BCOO.tree_unflatten(
                ((*out.shape, *into.shape), True, True, 0), (None, _indices(i, j, out.shape, into.shape))
            )
            line.append(Block(which, empty, i, j, (out.shape, into.shape), out.dtype))
            column_start = column_stop
        table.append(line)
        row_start = row_stop
    return table


def _indices(rows: Any, columns: Any, out: Sequence[int], into: Sequence[int]) -> Any:
    parts = [*(np.unravel_index(rows, out) if out else ()), *(np.unravel_index(columns, into) if into else ())]
    if not parts:
        return pnp.zeros((len(rows), 0), np.int32)
    return ArrayImpl(np.stack(parts, axis=1).astype(np.int32))
