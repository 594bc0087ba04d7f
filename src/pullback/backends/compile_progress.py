"""What people see of a program that takes long to compile: a line when it does, and one when it is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pullback.core.config import config

PATIENCE = 2.0
"""A compilation is not spoken of before it has taken so many seconds."""


@contextmanager
def shown(name: str, operations: int) -> Iterator[None]:
    """A block in which a program is compiled: one that takes long is told of, where a person is likely to look.

    That is the standard error stream, if it is a terminal or belongs to a notebook.

    Args:
      name: what is compiled.
      operations: how many operations it has.
    """
    if not (config.compile_progress and _somebody_looks()):
        yield
        return
    start = time.perf_counter()
    told = threading.Event()

    def tell() -> None:
        told.set()
        _write(f"compiling {name}, about {operations:,} operations: {time.perf_counter() - start:.0f} s so far ...")

    timer = threading.Timer(PATIENCE, tell)
    timer.daemon = True
    with suppress(RuntimeError):  # no more threads
        timer.start()
    outcome = "did not compile"
    try:
        yield
        outcome = "compiled"
    finally:
        timer.cancel()
        if told.is_set():
            _write(f"{outcome} {name}, in {time.perf_counter() - start:.1f} s")


def _somebody_looks() -> bool:
    with suppress(ValueError, AttributeError):  # the stream is closed, or none
        if sys.stderr.isatty():
            return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _write(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # the stream is closed
        sys.stderr.write(f"pullback: {line}\n")
        sys.stderr.flush()
