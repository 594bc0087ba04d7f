"""The singular value decomposition of other operations, for platforms without a routine for it: TPUs.

A = W H, with orthonormal columns in W and Hermitian positive semidefinite H, whose eigenvalues are the singular values
of A. After Nakatsukasa and Higham 2013, "Stable and efficient spectral divide and conquer algorithms for the symmetric
eigenvalue decomposition and the SVD". W is the limit of an iteration with weights that change (QDWH; Nakatsukasa, Bai
and Gygi 2010, "Optimizing Halley's iteration for computing the matrix polar decomposition"), which needs products and
decompositions into triangular factors only, and at most six steps.

In units of rounding of the largest singular value, A differs from the product of its factors by less than ten for most
matrices, and by 600 for Vandermonde matrices of 20 rows, whose condition is 1e16: QR has no pivots on TPUs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, pad, rev, slice_in_dim
from pullback.primitives.linalg.decompositions import (
    column_scaled,
    columns_from,
    diagonal,
    hermitian_part_twice,
    join_columns,
    upper_left,
)
from pullback.primitives.linalg.eigen import eigh
from pullback.primitives.linalg.householder import geqrf_p, householder_product
from pullback.primitives.linalg.lapack import adjoint, cholesky, product, rows_minus_columns, triangular_solve
from pullback.primitives.linalg.lu import identity

MOST_BY_CHOLESKY = 100.0
"""The largest weight of a step that takes a Cholesky decomposition, whose error grows with it, instead of QR."""


def svd_by_polar(x: Any, *, full_matrices: bool) -> list[Any]:
    """Return the singular values of matrices, descending; the left vectors as columns; the right as conjugate rows.

    Args:
      x: the matrices (..., m, n), which are not empty.
      full_matrices: whether to return all m left and n right vectors, instead of min(m, n).
    """
    m, n = x.shape[-2:]
    if m < n:
        s, u, vh = svd_by_polar(adjoint(x), full_matrices=full_matrices)
        return [s, adjoint(vh), adjoint(u)]
    if m > n:
        basis, triangle = _qr(x, m if full_matrices else n)
        s, u, vh = svd_by_polar(triangle, full_matrices=False)
        u = product(upper_left(basis, m, n), u)
        return [s, join_columns([u, columns_from(basis, n)]) if full_matrices else u, vh]
    x, size = _shrunk(x)
    w = _unitary_factor(x)
    h = ops.mul(hermitian_part_twice(product(adjoint(w), x)), 0.5)
    s, v = (rev(y, (len(y.shape) - 1,)) for y in eigh(h))
    return [ops.mul(ops.max_p.bind(s, 0), size), _orthonormal(product(w, v)), adjoint(v)]


def _qr(x: Any, columns: int) -> tuple[Any, Any]:
    """Return the first columns of Q, and the square R, of matrices with at least as many rows as columns."""
    n, rank = x.shape[-1], len(x.shape)
    reflections, taus = geqrf_p.bind(x)
    on_or_above = ops.le_p.bind(rows_minus_columns(n, n), 0)
    wide = [(0, columns - n if i == rank - 1 else 0, 0) for i in range(rank)]
    q = householder_product(pad(reflections, 0, wide) if columns > n else reflections, taus)
    return q, ops.where(on_or_above, upper_left(reflections, n, n), 0)


def _shrunk(x: Any) -> tuple[Any, Any]:
    """Divide matrices by numbers, so that no singular value is larger than one; return them (..., 1) as well.

    The largest singular value of a quotient is at least the square root of 1 / n; a matrix of zeros stays.
    """
    axes = (len(x.shape) - 2, len(x.shape) - 1)
    divided = lambda x, size: ops.div(x, ops.convert_element_type(shapes.expand_dims(size, axes), x.dtype))
    or_one = lambda size: ops.where(ops.eq_p.bind(size, 0), 1, size)
    largest = or_one(reductions.reduce_max(ops.abs(x), axes))
    x = divided(x, largest)  # first: the squares could overflow, or vanish
    norm = or_one(ops.sqrt(reductions.reduce_sum(ops.real_part(ops.mul(ops.conj(x), x)), axes)))
    return divided(x, norm), shapes.expand_dims(ops.mul(largest, norm), (-1,))


def _unitary_factor(x: Any) -> Any:
    """Return W of the polar decompositions W H of square matrices whose singular values are at most one.

    W maps singular vectors of values below the rounding error to shorter ones, or to zero.
    """
    n = x.shape[-1]
    one = shapes.broadcast_to(identity(n, x.dtype), x.shape)
    for a, b, c in _weights(float(np.finfo(dtypes.to_real(x.dtype)).eps)):
        share = b / c
        if c > MOST_BY_CHOLESKY:
            rows = concatenate([ops.mul(x, math.sqrt(c)), one], len(x.shape) - 2)
            q, _ = _qr(rows, n)
            upper, lower = (slice_in_dim(q, i * n, (i + 1) * n, len(x.shape) - 2) for i in (0, 1))
            moved = ops.mul(product(upper, adjoint(lower)), (a - share) / math.sqrt(c))
        else:
            factor = cholesky(ops.add(ops.mul(product(adjoint(x), x), c), one))
            moved = x
            for transposed in (True, False):  # x divided by the product of the factor and its adjoint
                moved = triangular_solve(
                    factor, moved, left_side=False, lower=True, transpose_a=transposed,
                    conjugate_a=transposed and dtypes.is_complex(x.dtype),
                )  # fmt: skip
            moved = ops.mul(moved, a - share)
        x = ops.add(ops.mul(x, share), moved)
    return x


@lru_cache
def _weights(least: float) -> list[tuple[float, float, float]]:
    """Return the weights (a, b, c) of each step x (a + b x²) / (1 + c x²) of the iteration, for numbers in [0, 1].

    The weights are the best for numbers that are at least ``least``, which they bring to one.
    """
    return list(_steps(least))


def _steps(least: float) -> Iterator[tuple[float, float, float]]:
    rounding = least
    while 1 - least > rounding:
        square = least**2
        root = math.sqrt(1 + (4 * (1 - square) / square**2) ** (1 / 3))
        a = root + math.sqrt(8 - 4 * (root**2 - 1) + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        yield a, b, a + b - 1
        least = min(1.0, least * (a + b * square) / (1 + (a + b - 1) * square))


def _orthonormal(u: Any) -> Any:
    """Replace the columns of ``u`` that are not of length one by others; all but those are orthonormal already.

    The columns to be replaced are the last ones.
    """
    q, r = _qr(u, u.shape[-1])
    on_diagonal = ops.real_part(diagonal(r))
    is_opposite = ops.convert_element_type(ops.lt_p.bind(on_diagonal, 0), on_diagonal.dtype)
    return column_scaled(q, ops.sub(1, ops.mul(is_opposite, 2)))
