"""The rows for products of sparse and dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.primitives.linalg import sparse_products as sparse
from tests.grid.specs import K, R, Spec, row

PLACES = K([[0, 1], [2, 0], [0, 1], [1, 2], [3, 0], [1, -1]], np.int32)  # one place twice, and two outside


def filled(data: Any, indices: Any) -> Any:
    """The matrix of 3 rows and 3 columns as blocks."""
    out = np.zeros((3, 3, *data.shape[1:]), data.dtype)
    for block, (i, j) in zip(data, indices, strict=True):
        if 0 <= i < 3 and 0 <= j < 3:
            out[i, j] += block
    return out


def times(data: Any, indices: Any, dense: Any) -> Any:
    return np.einsum("rcpk,ckq->rpq", filled(data, indices), dense)


def transposed_times(data: Any, indices: Any, dense: Any) -> Any:
    return np.einsum("rcpk,rpq->ckq", filled(data, indices), dense)


def blocks(x: Any, y: Any, indices: Any) -> Any:
    whole = np.einsum("rpq,ckq->rcpk", x, y)
    inside = [(0 <= i < 3) and (0 <= j < 3) for i, j in indices]
    return np.stack([whole[i, j] if ok else 0 * whole[0, 0] for ok, (i, j) in zip(inside, indices, strict=True)])


SPARSE: list[Spec] = [
    row(
        sparse.blocks_times_dense_p, times, R(6, 1, 1), PLACES, R(3, 1, 1), dtypes="hfFi", tolerance=4,
        params={"size": 3, "transposed": False}, label="numbers",
    ),
    row(
        sparse.blocks_times_dense_p, times, R(6, 2, 3), PLACES, R(3, 3, 2), dtypes="fF", tolerance=4,
        params={"size": 3, "transposed": False}, label="blocks",
    ),
    row(
        sparse.blocks_times_dense_p, transposed_times, R(6, 2, 3), PLACES, R(3, 2, 2), dtypes="fi", tolerance=4,
        params={"size": 3, "transposed": True}, label="transposed",
    ),
    row(sparse.blocks_of_product_p, blocks, R(3, 1, 2), R(3, 1, 2), PLACES, dtypes="hfi", tolerance=4),
    row(sparse.blocks_of_product_p, blocks, R(3, 2, 2), R(3, 3, 2), PLACES, dtypes="fF", tolerance=4, label="blocks"),
]  # fmt: skip
