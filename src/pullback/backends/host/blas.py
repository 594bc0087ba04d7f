"""Products of vectors and matrices by the BLAS that SciPy brings, so that one pool of threads computes them all.

NumPy and SciPy each bring a library of OpenBLAS with a pool of threads. A thread that has done its work spins for some
26 ms before it sleeps, and keeps the threads of the other library from the cores. Where products by NumPy alternate
with decompositions by SciPy, a product and a Cholesky decomposition of 256 by 256 take 8 ms on two cores instead of
0.4, and the gradient of a QR decomposition of 128 by 128 takes 46 ms instead of 1. Compiled programs decompose by
SciPy's library too, so that it is the library to share.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.backends.host import native
from pullback.core.interrupts import imported

# Products ----------------------------------------------------------------------------------------------------------

LEAST = 8192
"""The least number of products for SciPy's library: OpenBLAS uses one thread for fewer, and its pool sleeps."""

MOST = 1 << 27
"""The most products for SciPy's library, whose functions hold Python's lock: as many take some 5 ms, after which Python
would switch to another thread, too. NumPy's release it."""


def dot(x: Any, y: Any) -> Any:
    """Return ``np.dot(x, y)`` of two vectors or matrices, of one dtype for which BLAS has routines."""
    if not LEAST <= x.size * (y.shape[1] if y.ndim == 2 else 1) <= MOST:
        return np.dot(x, y)
    if x.ndim == y.ndim == 1 and x.size >= LONG and x.shape == y.shape and x.dtype.char in "fd":
        out = _dot_of_long(x, y)
        if out is not None:
            return out
    x, y, routines = np.asarray(x), np.asarray(y), _routines()
    fit = x.shape[-1] == y.shape[0] and x.flags.forc and y.flags.forc
    if routines is None or not fit or not y.size:
        return np.dot(x, y)
    of_vectors, of_matrix, of_matrices = routines[x.dtype.char]
    if x.ndim == y.ndim == 1:
        return x.dtype.type(of_vectors(x, y))
    if x.ndim == y.ndim:  # the transposes of the operands in reversed order make the transpose of the product
        (a, turn_a), (b, turn_b) = _by_columns(y), _by_columns(x)
        return of_matrices(1.0, a, b, trans_a=turn_a, trans_b=turn_b).T
    matrix, vector = (x, y) if x.ndim == 2 else (y.T, x)
    a, turned = _by_columns(matrix)
    return of_matrix(1.0, a, vector, trans=1 - turned)


LONG = 1 << 18
"""The least elements of vectors whose dot product is a sum of products by the module in C, if there is one.

It adds by pieces of pieces, and so loses fewer digits than BLAS."""


def _dot_of_long(x: Any, y: Any) -> Any:
    """Return the dot product of two long vectors; None without the module in C."""
    if native.loops is None or not x.flags.c_contiguous or not y.flags.c_contiguous:
        return None
    return native.reduce_rows("sum", x[None], y[None])[0]


def _by_columns(x: Any) -> tuple[Any, int]:
    """Return the transpose of ``x`` as BLAS reads it: a matrix with contiguous columns, and whether to transpose it."""
    return (x.T, 0) if x.flags.c_contiguous else (x, 1)


@cache
def _routines() -> dict[str, tuple[Any, Any, Any]] | None:
    """The routines for two vectors, for a matrix and a vector, and for two matrices, by the letter of the dtype."""
    module = _module()
    names = {"f": "sdot sgemv sgemm", "d": "ddot dgemv dgemm", "F": "cdotu cgemv cgemm", "D": "zdotu zgemv zgemm"}
    found: Any = {char: tuple(getattr(module, name, None) for name in three.split()) for char, three in names.items()}
    return None if any(None in three for three in found.values()) else found


# Libraries ---------------------------------------------------------------------------------------------------------

Threads = tuple[Callable[[], int], Callable[[int], None]]
"""The functions of a library that get and set its number of threads."""


def libraries() -> list[Threads]:
    """The libraries of OpenBLAS by which the host multiplies: NumPy's, and SciPy's if it is another one."""
    module = _module()
    found = [threads_of(_numpy_extension()), None if module is None else threads_of(module.__file__)]
    return [threads for threads in found if threads is not None]


def _numpy_extension() -> str:
    """The path of the extension module of NumPy that multiplies matrices."""
    return np._core._multiarray_umath.__file__  # type: ignore[attr-defined,no-any-return]


@cache
def threads_of(extension: str) -> Threads | None:
    """The functions of the OpenBLAS that an extension module uses, by the module's path; None for other libraries."""
    try:
        library = ctypes.CDLL(extension)
    except OSError:
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            try:
                return (
                    getattr(library, f"{prefix}_get_num_threads{suffix}"),
                    getattr(library, f"{prefix}_set_num_threads{suffix}"),
                )
            except AttributeError:
                continue
    return None


@cache
def _module() -> Any:
    """SciPy's routines of BLAS; None if they do not have an OpenBLAS of their own, so that nothing would be gained.

    The extension module is loaded alone, in 15 ms: importing ``scipy.linalg`` takes 150.
    """
    folder = os.path.join(os.path.dirname(imported("scipy").__file__), "linalg")
    spec = importlib.machinery.PathFinder.find_spec("_fblas", [folder])
    if spec is None or spec.loader is None:
        return None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    both = threads_of(_numpy_extension()), threads_of(module.__file__ or "")
    if None in both:
        return None
    one, other = (ctypes.cast(threads[0], ctypes.c_void_p).value for threads in both)  # type: ignore[index,arg-type]
    return None if one == other else module
