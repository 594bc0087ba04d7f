"""Decompositions of small matrices by the LAPACK that NumPy brings, on one thread.

A decomposition consists of many short products. OpenBLAS divides each among its threads, which wait for each other
after each: on an AMD EPYC with two cores, float32, the singular values of 128 by 128 take SciPy's library 1,760
microseconds, and 575 on one thread; singular values and vectors of 64 by 64 take 460 and 320. Compiled programs use
SciPy's library too, whose number of threads therefore stays as it is. NumPy's is used by eager code alone.

Without the module in C, or where NumPy brings another library, functions return None, and SciPy decomposes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from pullback.backends.host import blas, native

LEAST, MOST = 48, 192
"""The fewest and the most rows and columns: fewer are decomposed by one thread of SciPy's library anyway, and of more
several threads are as quick."""

_BLOCK = 32
"""The reflections of a QR decomposition that are applied by one product. LAPACK's ``geqrf`` and ``orgqr`` apply each by
itself up to 128 columns: 128 by 128 takes them 390 us, and 287 by blocks of 16 to 64, which differ by 7 %."""

_BY_BLOCKS = 96
"""The least columns of Q from which reflections are applied by blocks: on an AMD EPYC, float32, 64 by 64 take 126 us
without blocks and 154 with them, 96 by 96 both 250, and 128 by 128 508 and 428."""

_BY_ROWS, _BY_COLUMNS = 101, 102  # the numbers of CBLAS and LAPACKE
_AS_IT_IS, _TRANSPOSED, _UPPER, _ANY_DIAGONAL, _RIGHT = 111, 112, 121, 131, 142  # those of CBLAS
PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


def svd(x: Any, full_matrices: bool, vectors: bool) -> list[Any] | None:
    """Decompose a finite matrix; return its singular values, and with ``vectors`` the left and the right vectors.

    Raises:
      LinAlgError: the iteration does not converge.
    """
    routine = _routine("gesdd", "gesdd", x)
    if routine is None:
        return None
    m, n = x.shape
    k = min(m, n)
    rows, columns = ((m, n) if full_matrices else (k, k)) if vectors else (1, 1)
    s = np.empty(k, x.real.dtype)
    left, right = _by_columns(m if vectors else 1, rows, x), _by_columns(columns, n if vectors else 1, x)
    job = (b"A" if full_matrices else b"S") if vectors else b"N"
    copied = np.array(x, order="F")
    _call(routine, ctypes.c_char(job), m, n, copied, m, s, left, len(left), right, len(right))
    return [s, left, right] if vectors else [s]


def eigh(x: Any, vectors: bool) -> list[Any] | None:
    """Decompose a finite Hermitian matrix; return its eigenvalues, and with ``vectors`` the eigenvectors.

    Only the lower triangle is read.

    Raises:
      LinAlgError: the iteration does not converge.
    """
    routine = _routine("syevd", "heevd", x)
    if routine is None:
        return None
    w, v = np.empty(len(x), x.real.dtype), np.array(x, order="F")
    _call(routine, ctypes.c_char(b"V" if vectors else b"N"), ctypes.c_char(b"L"), len(x), v, len(x), w)
    return [w, v] if vectors else [w]


def qr(x: Any, k: int) -> list[Any] | None:
    """Return the first ``k`` columns of Q, at most as many as ``x`` has, and the first ``k`` rows of R.

    Raises:
      LinAlgError: an element is NaN.
    """
    by_blocks = k >= _BY_BLOCKS
    names = ("geqrt", "orgtsqr_row", "ungtsqr_row") if by_blocks else ("geqrf", "orgqr", "ungqr")
    reflect, build = _routine(names[0], names[0], x), _routine(names[1], names[2], x)
    if reflect is None or build is None:
        return None
    (m, n), factors = x.shape, np.array(x, order="F")
    if not by_blocks:
        weights = np.zeros(min(m, n), x.dtype)
        _call(reflect, m, n, factors, m, weights)
        r, q = np.triu(factors[:k]), factors[:, :k]
        _call(build, m, k, k, q, m, weights)
        return [q, r]
    # The triangles of the products of reflections; the library refuses NaNs beside them, too.
    products = np.zeros((_BLOCK, min(m, n)), x.dtype, order="F")
    _call(reflect, m, n, _BLOCK, factors, m, products, _BLOCK)
    r = np.triu(factors[:k])
    q = factors[:, :k]
    _call(build, m, k, m + 1, _BLOCK, q, m, products, _BLOCK)  # more rows than Q has in a block: it is in one
    return [q, r]


def over_triangle(x: Any, r: Any, transpose: bool) -> Any | None:
    """Return ``x`` inv(R), or ``x`` inv(R.T) with ``transpose``, for a real upper triangle R; None for other sizes."""
    name = f"scipy_cblas_{PREFIXES[x.dtype.char]}trsm64_"
    solve = of_library(name) if native.loops is not None and LEAST <= len(r) <= len(x) <= MOST else None
    if solve is None:
        return None
    out, r = np.array(x, order="C"), np.ascontiguousarray(r)
    one = ctypes.c_float(1) if x.dtype.char == "f" else ctypes.c_double(1)
    operation = (ctypes.c_int(_TRANSPOSED if transpose else _AS_IT_IS), ctypes.c_int(_ANY_DIAGONAL))
    _on_one_thread(
        solve, *map(ctypes.c_int, (_BY_ROWS, _RIGHT, _UPPER)), *operation, len(out), len(r), one, r, len(r), out, len(r)
    )
    return out


def _by_columns(rows: int, columns: int, like: Any) -> Any:
    return np.empty((rows, columns), like.dtype, order="F")


def _routine(real: str, complex_: str, x: Any) -> Any:
    """Return the routine for a matrix; None if the library has none, or the matrix is too small or too large for it."""
    if native.loops is None or min(x.shape) < LEAST or max(x.shape) > MOST:
        return None
    return _found(PREFIXES[x.dtype.char] + (complex_ if x.dtype.kind == "c" else real))


@cache
def _found(name: str) -> Any:
    routine = of_library(f"scipy_LAPACKE_{name}64_")
    if routine is not None:
        routine.restype = ctypes.c_int64
    return routine


@cache
def of_library(name: str) -> Any:
    """The function of NumPy's library with this name, or None."""
    return getattr(blas.library(), name, None) if blas.is_ready() else None


def _call(routine: Any, *args: Any) -> None:
    """Call a routine of LAPACKE for matrices that lie by columns, on one thread.

    Raises:
      LinAlgError: the routine reports failure, or refuses NaNs.
    """
    if _on_one_thread(routine, ctypes.c_int(_BY_COLUMNS), *args):
        raise np.linalg.LinAlgError


def _on_one_thread(routine: Any, *args: Any) -> Any:
    """Call a function of the library on one thread; arrays are passed by address, and Python's integers in 64 bits."""
    assert native.loops is not None
    given = [ctypes.c_void_p(x.ctypes.data) if type(x) is np.ndarray else x for x in args]
    given = [ctypes.c_int64(x) if type(x) is int else x for x in given]
    native.loops.alone(True)
    try:
        return routine(*given)
    finally:
        native.loops.alone(False)
