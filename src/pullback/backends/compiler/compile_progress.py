"""What people see of a program that takes long to compile: a line when it does, and one when it is done.

The first such line of a process names the switch by which calls need not wait.
"""

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

    That is the standard error stream, if it is a terminal or belongs to a notebook. Elsewhere it is the log, at the
    level ``INFO``, once it is done.

    Args:
      name: what is compiled.
      operations: how many operations it has.
    """
    start = time.perf_counter()
    if not (config.compile_progress and _somebody_looks()):
        yield
        if time.perf_counter() - start > PATIENCE and "logging" in sys.modules:  # or else nobody reads the level INFO
            import logging

            line = f"compiled {name}, in {time.perf_counter() - start:.1f} s{_advice()}"
            logging.getLogger("pullback").info(line)
        return
    told = threading.Event()

    def tell() -> None:
        told.set()
        seconds = time.perf_counter() - start
        _write(f"compiling {name}, about {operations:,} operations: {seconds:.0f} s so far ...{_advice()}")

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


def tell(line: str) -> None:
    """Write a line where a person is likely to look, if there is such a place."""
    if config.compile_progress and _somebody_looks():
        _write(line)


_advised = False


def _advice() -> str:
    """How calls need not wait for the compiler, the first time that it is asked for in a process."""
    global _advised
    if _advised or config.tiered != "off":
        return ""
    _advised = True
    return '; config.update("tiered", "auto") answers calls meanwhile, rounded otherwise (docs/compile_time.md)'


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
