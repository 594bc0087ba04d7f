"""Products of vectors and matrices by the BLAS that NumPy brings, on the threads of the module in C.

Large products, and the products of a batch, are divided among these threads, and BLAS computes each part on one. Its
own threads would wait for each other after every product of a batch: on an Intel Xeon with two cores 32 products of 256
by 32 and 32 by 256 take them 1,410 us, and the module's 760. They would also spin for some 26 ms before they sleep, and
keep from the cores the threads of SciPy's library, by which the host and compiled programs decompose: a product and a
Cholesky decomposition of 256 by 256 by turns took 8 ms instead of 0.4.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.backends.host import native
from pullback.backends.host.parallel import cores

# Products ----------------------------------------------------------------------------------------------------------

LEAST = 8192
"""The least number of products of numbers for the module in C: OpenBLAS uses one thread for fewer."""

SHARE = 1 << 18
"""The products of numbers that are worth a thread."""

MOST_HELPERS = 31
"""OpenBLAS has memory for a number of threads that is fixed when it is built: 64 in NumPy's wheels."""

LONG = 1 << 18
"""The least elements of vectors whose dot product is a sum of products by the module in C.

It adds by pieces of pieces, and so loses fewer digits than BLAS."""


def dot(x: Any, y: Any) -> Any:
    """Return ``np.dot(x, y)`` of two vectors or matrices, of one dtype for which BLAS has routines."""
    if x.size * (y.shape[1] if y.ndim == 2 else 1) < LEAST or x.shape[-1] != y.shape[0]:
        return np.dot(x, y)
    if x.ndim == y.ndim == 1 and x.size >= LONG and x.dtype.char in "fd":
        out = _dot_of_long(x, y)
        if out is not None:
            return out
    out = matmul(x if x.ndim == 2 else x[None], y if y.ndim == 2 else y[:, None])
    if x.ndim == y.ndim:
        return out if x.ndim == 2 else out[0, 0]
    return out[0] if x.ndim == 1 else out[:, 0]


def product(x: Any, y: Any) -> Any:
    """Return ``np.matmul(x, y)`` of arrays of one dtype for which BLAS has routines."""
    if not x.size or not y.size or not x.ndim or not y.ndim:
        return np.matmul(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return dot(x, y)
    if y.ndim == 2 and x.flags.c_contiguous:  # one product instead of a batch
        return matmul(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
    return matmul(x, y) if x.shape[:-2] == y.shape[:-2] else np.matmul(x, y)


def matmul(x: Any, y: Any) -> Any:
    """Return ``np.matmul(x, y)`` of arrays with the same axes of a batch, of one dtype for which BLAS has routines."""
    products = x.size * y.shape[-1]
    if products < LEAST or x.shape[-1] != y.shape[-2] or native.loops is None or not is_ready():
        return np.matmul(x, y)
    out = np.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    helpers = min(cores() - 1, products // SHARE, MOST_HELPERS)
    if not native.loops.multiply(x, y, out, helpers):  # BLAS wants rows, or columns, of contiguous elements
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        if not native.loops.multiply(x, y, out, helpers):
            return np.matmul(x, y)
    return out


def _dot_of_long(x: Any, y: Any) -> Any:
    """Return the dot product of two long vectors; None without the module in C."""
    if native.loops is None or not x.flags.c_contiguous or not y.flags.c_contiguous:
        return None
    return native.reduce_rows("sum", x[None], y[None])[0]


@cache
def library() -> Any:
    """The library that multiplies NumPy's matrices, in the namespace of the extension module that uses it."""
    return ctypes.CDLL(_numpy_extension())


@cache
def is_ready() -> bool:
    """Whether the module in C is there, and multiplies: for that NumPy has to bring an OpenBLAS of 64-bit integers."""
    if native.loops is None:
        return False
    try:
        names = [f"scipy_cblas_{letter}{name}64_" for name in ("gemm", "gemv") for letter in "sdcz"]
        names += [f"scipy_openblas_{verb}_num_threads64_" for verb in ("get", "set")]
        functions = [ctypes.cast(getattr(library(), name), ctypes.c_void_p).value for name in names]
    except (OSError, AttributeError):
        return False
    native.loops.use_blas(tuple(functions))
    return True


# Libraries ---------------------------------------------------------------------------------------------------------

Threads = tuple[Callable[[], int], Callable[[int], None]]
"""The functions of a library that get and set its number of threads."""


def libraries() -> list[Threads]:
    """The library of OpenBLAS whose threads multiply: NumPy's, unless the module in C does."""
    found = None if is_ready() else threads_of(_numpy_extension())
    return [] if found is None else [found]


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
