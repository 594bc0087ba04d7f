"""Decompositions of batches of matrices by the LAPACK that NumPy brings, a matrix at a time on each core.

NumPy's functions for batches compute in double precision whatever the dtype is, on one core. Here each matrix is
decomposed in its own precision, by the routines that compiled programs use too, on one thread of the library. The
results of a matrix do not depend on how many cores there are, nor on the other matrices of the batch.

Without the module in C, or where NumPy brings another library, functions return None, and NumPy decomposes.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np

from pullback.backends.host import alone, blas, native
from pullback.backends.host.parallel import cores

_BLOCK = 64
"""The columns for which a routine that works by blocks gets workspace."""

_SHARE = 16
"""The least matrices for each thread: one of 8 by 8 takes 2 to 10 us, and a thread some 30 us to wake."""

_SVD, _EIGH, _QR = 0, 1, 2  # the kinds of ``decompose`` of the module in C


def takes(x: Any) -> bool:
    """Whether the functions below decompose matrices like ``x``: at most 192 by 192, and not empty."""
    return native.loops is not None and x.size > 0 and max(x.shape[-2:]) <= alone.MOST and blas.is_ready()


def svd(x: Any, full_matrices: bool, vectors: bool) -> list[Any] | None:
    """Decompose finite matrices (..., m, n); return the singular values, and with ``vectors`` the left and right ones.

    Raises:
      LinAlgError: the iteration does not converge for one of the matrices.
    """
    routine = _routine("gesdd", "gesdd", x)
    if not routine:
        return None
    *batch, m, n = x.shape
    k, largest = min(m, n), max(m, n)
    columns, rows = (m, n) if full_matrices else (k, k)
    s = np.empty((*batch, k), x.real.dtype)
    u = np.empty((*batch, columns, m) if vectors else (*batch, 1, 1), x.dtype)
    vh = np.empty((*batch, n, rows) if vectors else (*batch, 1, 1), x.dtype)
    job = ("A" if full_matrices else "S") if vectors else "N"
    work = 4 * k * k + 7 * k + largest + _BLOCK * (m + n)
    real_work = 2 * k * largest + 5 * k * k + 7 * k
    _decompose(_SVD, job, (routine, 0), [_by_columns(x), s, u, vh], rows, (work, real_work, 8 * k))
    return [s, u.swapaxes(-1, -2), vh.swapaxes(-1, -2)] if vectors else [s]


def eigh(x: Any, vectors: bool) -> list[Any] | None:
    """Decompose finite Hermitian matrices; return their eigenvalues, and with ``vectors`` the eigenvectors.

    Only the lower triangles are read.

    Raises:
      LinAlgError: the iteration does not converge for one of the matrices.
    """
    routine = _routine("syevd", "heevd", x)
    if not routine:
        return None
    n, a = x.shape[-1], _by_columns(x)
    w = np.empty(x.shape[:-1], x.real.dtype)
    work = 2 * n * n + (6 + _BLOCK) * n + 1
    _decompose(_EIGH, "V" if vectors else "N", (routine, 0), [a, w], n, (work, 2 * n * n + 5 * n + 1, 5 * n + 3))
    return [w, a.swapaxes(-1, -2)] if vectors else [w]


def qr(x: Any, k: int) -> list[Any] | None:
    """Return the first ``k`` columns of Q, at most as many as ``x`` has, and the first ``k`` rows of R."""
    factor, build = _routine("geqrf", "geqrf", x), _routine("orgqr", "ungqr", x)
    if not factor or not build or k > x.shape[-1]:
        return None
    n, a = x.shape[-1], _by_columns(x)
    r = np.empty((*x.shape[:-2], k, n), x.dtype)
    _decompose(_QR, "\0", (factor, build), [a, r], k, (_BLOCK * n, 0, k))
    return [a[..., :k, :].swapaxes(-1, -2), r]


def _by_columns(x: Any) -> Any:
    """Return a copy in which matrices lie by columns, one after another; its last two axes are exchanged."""
    return np.array(x.swapaxes(-1, -2), order="C")


def _decompose(
    kind: int, job: str, routines: tuple[int, int], arrays: list[Any], k: int, workspace: tuple[int, int, int]
) -> None:
    """Call ``decompose`` of the module in C, for arrays with any number of batch axes."""
    assert native.loops is not None
    *batch, n, m = arrays[0].shape
    count = math.prod(batch)
    flat = tuple(x.reshape(count, *x.shape[len(batch) :]) for x in arrays)  # views, since they are contiguous
    each = _SHARE if n * m <= 256 else 1
    helpers = min(cores(), count // each, blas.MOST_HELPERS + 1) - 1
    if not native.loops.decompose(kind, ord(job), routines, flat, k, workspace, max(helpers, 0)):
        raise np.linalg.LinAlgError


def _routine(real: str, complex_: str, x: Any) -> int:
    """The address of a routine that takes its workspace, for the matrices ``x``; 0 if there is none for them."""
    if not takes(x):
        return 0
    return _address(alone.PREFIXES[x.dtype.char] + (complex_ if x.dtype.kind == "c" else real))


@cache
def _address(name: str) -> int:
    routine = alone.of_library(f"scipy_LAPACKE_{name}_work64_")
    return 0 if routine is None else ctypes.cast(routine, ctypes.c_void_p).value or 0
