"""Diagnose a wrong derivative: compare a block of the Jacobian with the expected block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.testing.differences import Vector
from pullback.testing.probes import Probes

CONJUGATE = "It is the complex conjugate of the right value."
TRANSPOSED = "It is transposed, as a matrix."


def diagnose(
    got: Vector, expected: Vector, rows: Probes, columns: Probes, at: tuple[int, int], precision: float
) -> str:
    """Return a sentence on a block's probable mistake, or an empty string if it is none of the usual mistakes.

    Args:
      got, expected: matrices of derivatives, with a block for each pair of an argument's and a result's leaf.
      rows, columns: the directions of their rows and columns.
      at: the block to diagnose: the index of its leaf in ``rows`` and of its leaf in ``columns``.
      precision: the largest relative difference of equal blocks.
    """
    i, k = at
    block, wanted = (matrix[np.ix_(rows.spans[i], columns.spans[k])] for matrix in (got, expected))
    if not np.isfinite(block).all():
        return "It is not a number." if np.isnan(block).any() else "It is not finite."
    if not np.isfinite(wanted).all():
        return ""
    scale = np.max(np.abs(wanted))
    if scale == 0:
        return "It should be zero everywhere: the result does not depend on this argument."
    if np.max(np.abs(block)) <= precision * scale:
        return "It is zero everywhere, as if the result did not depend on this argument."

    def same(candidate: Vector) -> bool:
        return _same(block, candidate, precision)

    for other, name in _others(rows, columns, at):
        exchanged = [matrix[np.ix_(rows.spans[other[0]], columns.spans[other[1]])] for matrix in (got, expected)]
        if same(exchanged[1]) and _same(exchanged[0], wanted, precision):
            return f"It is swapped with the one for {name}: the two are in the wrong order."
    factor = float(np.vdot(wanted, block) / np.vdot(wanted, wanted))
    if same(-wanted):
        return "It has the wrong sign everywhere."
    if same(factor * wanted) and abs(factor - 1) > 10 * precision:
        return f"It differs by a factor of {factor:.6g} everywhere."
    for candidate, sentence in _candidates(wanted, rows, columns, at):
        if same(candidate):
            return sentence
    for other, name in _others(rows, columns, at):
        if same(expected[np.ix_(rows.spans[other[0]], columns.spans[other[1]])]):
            return f"It is the one for {name}."
    return ""


def _same(block: Vector, candidate: Vector, precision: float) -> bool:
    """Whether ``block`` is equal to ``candidate``, up to a relative difference of ``precision``."""
    if block.shape != candidate.shape:
        return False
    return bool(np.all(np.abs(block - candidate) <= precision * np.max(np.abs(candidate))))


def _others(rows: Probes, columns: Probes, at: tuple[int, int]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the other blocks of a matrix in the row or the column of the block ``at``.

    Yields:
      A pair: the indices of the block (row, column), and the name of the leaf that it does not share with ``at``.
    """
    i, k = at
    yield from (((j, k), name) for j, name in enumerate(rows.names) if j != i)
    yield from (((i, j), name) for j, name in enumerate(columns.names) if j != k)


def _candidates(wanted: Vector, rows: Probes, columns: Probes, at: tuple[int, int]) -> Iterator[tuple[Vector, str]]:
    """Yield the wrong blocks that usual mistakes, such as a transposition, would produce instead of ``wanted``.

    Args:
      wanted: the correct block of the matrix of derivatives.
      rows, columns: the directions of the rows and of the columns of the matrix.
      at: the indices of the block: of its leaf in ``rows``, and of its leaf in ``columns``.

    Yields:
      A pair: the wrong block, and a sentence that describes the mistake.
    """
    i, k = at
    by_row, by_column = rows.conjugated(i), columns.conjugated(k)
    if by_column is not None:
        yield wanted * by_column, CONJUGATE
    if by_row is not None:
        yield wanted * by_row[:, None], CONJUGATE
    if by_row is not None and by_column is not None:
        yield wanted * by_row[:, None] * by_column, CONJUGATE
    if (order := columns.transposed(k)) is not None:
        yield wanted[:, order], TRANSPOSED
    if (order := rows.transposed(i)) is not None:
        yield wanted[order], TRANSPOSED
    if rows.coordinates and columns.coordinates:
        yield wanted.T, "The matrix of derivatives is transposed."
