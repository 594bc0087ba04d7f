"""Linear equations with banded matrices, solved by LAPACK on the host, and differentiated as equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.solves import custom_linear_solve
from pullback.core.interrupts import imported
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback


def bands_of(rows: Any, columns: Any, elements: Any, k: int, n: int) -> Any:
    """Return the bands of an (n, n) matrix, from elements and their integer positions; elements of one are summed.

    Row ``k + r - c`` of the bands has the element (r, c) in column c, for the positions within ``k`` of the diagonal.
    """
    out = pnp.zeros((2 * k + 1, n), elements.dtype)
    return out.at[k + rows - columns, columns].add(elements, mode="drop")


def _moved(x: Any, offset: int) -> Any:
    """Shift the rows of ``x`` down by ``offset``, or up if it is negative, and fill with zeros."""
    return slicing.pad(x, 0, [(offset, -offset, 0), *[(0, 0, 0)] * (x.ndim - 1)])


def times(bands: Any, x: Any) -> Any:
    """Multiply a banded matrix by the columns of ``x``, (n, m)."""
    k = bands.shape[0] // 2
    terms = [_moved(bands[k + d][:, None] * x, d) for d in range(-k, k + 1)]
    return pnp.sum(pnp.stack(terms), axis=0)


def transposed(bands: Any) -> Any:
    """Return the bands of the transposed matrix."""
    k = bands.shape[0] // 2
    return pnp.stack([_moved(bands[k - d], -d) for d in range(-k, k + 1)])


def _on_host(bands: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Solve equations of NumPy's arrays, whose leading axes broadcast; NaN where the matrix is singular."""
    solve_banded = imported("scipy.linalg").solve_banded
    error = imported("numpy.linalg").LinAlgError
    lead = np.broadcast_shapes(bands.shape[:-2], b.shape[:-2])
    bands, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (bands, b))
    out = np.full(b.shape, np.nan, b.dtype)
    k = bands.shape[-2] // 2
    for i in np.ndindex(lead):
        try:
            if b[i].size:
                out[i] = solve_banded((k, k), bands[i], b[i], check_finite=False)
        except error:
            pass
    return out


def banded_solve(bands: Any, b: Any) -> Any:
    """Solve the equations with a banded matrix and the columns of ``b``, (n, m); NaN if the matrix is singular."""
    bands = ops.convert_element_type(bands, b.dtype)
    result = ShapeDtypeStruct(b.shape, b.dtype)
    turned = transposed(bands)

    def solver(matrix: Any) -> Callable[[Any, Any], Any]:
        return lambda _, b: pure_callback(_on_host, result, matrix, b, vmap_method="expand_dims")

    return custom_linear_solve(lambda x: times(bands, x), b, solver(bands), transpose_solve=solver(turned))
