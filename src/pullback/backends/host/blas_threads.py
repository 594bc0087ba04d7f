"""Restriction of the host's matrix products to one thread, while the compiler uses the other CPU cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.backends.host.blas import libraries
from pullback.core.locks import lock

_lock = lock(globals(), "_lock", reentrant=True)  # reentrant: a user's signal handler may run while it is held
_found: list[list[int]] = []
"""The numbers of threads at the entry of each active block; the last block to end restores the first numbers."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context manager that restricts matrix products of the process to one thread each.

    The threads of a product wait for each other, and compete with the compiler for the cores: a training step of a
    transformer of 24 small layers takes 0.8 s with two threads while the compiler runs, and 0.1 s with one.
    """
    restricted = libraries()
    with _lock:
        _found.append([read() for read, _ in restricted])
        for _, write in restricted:
            write(1)
    try:
        yield
    finally:
        with _lock:
            counts = _found.pop()
            if not _found:
                for (_, write), count in zip(restricted, counts, strict=True):
                    write(count)
