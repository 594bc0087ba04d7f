"""Restriction of NumPy's matrix products to one thread, while the compiler uses the other CPU cores."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pullback.core.locks import lock

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "")
_lock = lock(globals(), "_lock", reentrant=True)  # reentrant: a user's signal handler may run while it is held
_found: list[int] = []
"""The number of threads at the entry of each active block; the last block to end restores the first number."""


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Two functions of OpenBLAS, to get and to set its number of threads; None if NumPy uses another library."""
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
    """A context manager that restricts matrix products of the process to one thread each.

    The threads of a product wait for each other, and compete with the compiler for the cores: a training step of a
    transformer of 24 small layers takes 0.8 s with two threads while the compiler runs, and 0.1 s with one.
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
