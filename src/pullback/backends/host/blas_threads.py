"""How many threads NumPy's products of matrices take, while the processors have other work."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pullback.core.locks import lock

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "")
_lock = lock(globals(), "_lock", reentrant=True)  # a signal handler of the user's may run while it is held
_found: list[int] = []
"""How many threads each block has found: what the first one has found is set again by the last one that ends."""


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What asks for and sets the number of threads of NumPy's library; None if that is not OpenBLAS."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            try:
                return (
                    getattr(library, f"{prefix}_get_num_threads{suffix}"),
                    getattr(library, f"{prefix}_set_num_threads{suffix}"),
                )
            except AttributeError:
                continue
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A block in which products of matrices take one thread each, in the whole process.

    The threads of a product wait for each other, and each takes its turn where the compiler has the processors: a step
    of a transformer of 24 small layers takes 0.8 s with two threads beside the compiler, and 0.1 s with one.
    """
    functions = _functions()
    if functions is None:
        yield
        return
    read, write = functions
    with _lock:
        _found.append(read())
        write(1)
    try:
        yield
    finally:
        with _lock:
            count = _found.pop()
            if not _found:
                write(count)
