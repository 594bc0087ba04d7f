"""Rows for modes of operations, beside those of the other tables, at sizes that differ in every dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback.core.trace import Primitive
from pullback.primitives.arrays import indexing, scatter, sorting
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers
from tests.grid.specs import ANY, NUMBER, REAL, K, NumpyArray, R, Spec, add_along, row, sort_together

FILL, CLIP, PROMISE = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS

ROWS_OF_ONE = {
    "of_gather": GatherDimensionNumbers((1,), (0,), (0,)),
    "of_scatter": ScatterDimensionNumbers((1,), (0,), (0,)),
}
"""Rows of a matrix."""
ELEMENTS_OF_EACH = {
    "of_gather": GatherDimensionNumbers((), (1,), (1,), (0,), (0,)),
    "of_scatter": ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)),
}
"""Elements of vectors, each of which has its own indices."""

# Indices of 5 rows or elements, and what the parameters say of them.
KINDS: list[tuple[Any, dict[str, Any]]] = [
    ([[2], [7], [0], [2]], {"mode": FILL, "indices_are_sorted": False, "unique_indices": False}),
    ([[-2], [0], [2], [9]], {"mode": CLIP, "indices_are_sorted": True, "unique_indices": False}),
    ([[3], [0], [4], [1]], {"mode": PROMISE, "indices_are_sorted": False, "unique_indices": True}),
    (
        [[[2], [0], [1], [7]], [[0], [4], [0], [3]]],
        {"mode": FILL, "indices_are_sorted": False, "unique_indices": False},
    ),
]


def positions(indices: NumpyArray, mode: GatherScatterMode) -> Iterator[tuple[tuple[int, ...], int]]:
    """The places of index vectors, and the rows of five that they are of; without those that are dropped."""
    for place in np.ndindex(indices.shape[:-1]):
        i = int(indices[place][0])
        if mode is FILL and not 0 <= i < 5:
            continue
        yield place, min(max(i, 0), 4)


def taken(x: NumpyArray, indices: NumpyArray, mode: GatherScatterMode, fill: Any) -> NumpyArray:
    out = np.full((*indices.shape[:-1], *x.shape[indices.ndim - 1 :]), fill).astype(x.dtype)
    for place, i in positions(indices, mode):
        out[place] = x[(*place[:-1], i)]
    return out


def put(
    x: NumpyArray, indices: NumpyArray, updates: NumpyArray, mode: GatherScatterMode, combine: Callable[..., Any]
) -> NumpyArray:
    out = x.copy()
    for place, i in positions(indices, mode):
        at = (*place[:-1], i)
        out[at] = combine(out[at], updates[place])
    return out


def gathers() -> Iterator[Spec]:
    for indices, params in KINDS:
        at = K(indices)
        batch = at.shape[:-2]
        window = () if batch else (3,)
        fill = 0.25 if params["mode"] is FILL else None
        yield row(
            indexing.gather_p,
            partial(taken, mode=params["mode"], fill=0 if fill is None else fill),
            R(*batch, 5, *window),
            at,
            dtypes="fF",
            label=f"{indices},{params['mode']},{fill}",
            params={
                **params,
                "fill_value": fill,
                "dimension_numbers": (ELEMENTS_OF_EACH if batch else ROWS_OF_ONE)["of_gather"],
                "slice_sizes": (*(1 for _ in batch), 1, *window),
            },
        )


def scatters(p: Primitive, combine: Callable[..., Any], dtypes: str) -> Iterator[Spec]:
    for indices, params in KINDS:
        at = K(indices)
        batch = at.shape[:-2]
        window = () if batch else (3,)
        numbers = (ELEMENTS_OF_EACH if batch else ROWS_OF_ONE)["of_scatter"]
        yield row(
            p,
            partial(put, mode=params["mode"], combine=combine),
            R(*batch, 5, *window),
            at,
            R(*batch, 4, *window, lo=0.5),
            dtypes=dtypes,
            label=f"{indices},{params['mode']}",
            params={**params, "dimension_numbers": numbers},
        )


MODES: list[Spec] = [
    *gathers(),
    *scatters(scatter.scatter_p, lambda a, b: b, ANY),
    *scatters(scatter.scatter_add_p, np.add, NUMBER),
    *scatters(scatter.scatter_mul_p, np.multiply, NUMBER),
    *scatters(scatter.scatter_min_p, np.minimum, REAL),
    *scatters(scatter.scatter_max_p, np.maximum, REAL),
    row(
        sorting.add_along_axis_p,
        partial(add_along, axis=1, size=5),
        R(2, 3),
        K([[2, 0, 4], [0, 3, 1]]),
        dtypes=NUMBER,
        params={"axis": 1, "size": 5, "unique": True},
    ),
    row(
        sorting.sort_p,
        partial(sort_together, axis=1, keys=1),
        R(2, 4),
        R(2, 4),
        dtypes="f",
        params={"dimension": 1, "is_stable": False, "num_keys": 1},
    ),
]
