"""Sockets that C++ opens, kept from child processes.

Python's own descriptors are closed in the programs that a process starts. Those of C++ libraries may not be: a child
that outlives its parent would hold the parent's connections open.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from pullback.core import systems


@contextlib.contextmanager
def not_inherited() -> Iterator[None]:
    """Let no program that this process starts later inherit the sockets that are opened in the ``with`` statement."""
    before = _inheritable_sockets()
    try:
        yield
    finally:
        for descriptor in _inheritable_sockets() - before:
            with contextlib.suppress(OSError):
                os.set_inheritable(descriptor, False)


def _inheritable_sockets() -> set[int]:
    found: set[int] = set()
    for descriptor in systems.descriptors():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            if os.get_inheritable(descriptor) and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                found.add(descriptor)
    return found
