"""Progress messages of slow compilations: a line after two seconds, and another when the program is compiled.

The first line of a process names the switch by which calls need not wait.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pullback.core.config import config
from pullback.core.waiting import is_interactive

PATIENCE = 2.0
"""Seconds that a compilation takes before a message is written."""


@contextmanager
def shown(name: str, operations: int) -> Iterator[None]:
    """A context manager that reports the compilation in its block if this takes more than ``PATIENCE`` seconds.

    The report goes to the standard error stream if that is a terminal or belongs to a notebook. Otherwise it goes to
    the log, at the level ``INFO``, when the program is compiled.

    Args:
      name: the name of the program.
      operations: the number of its operations.
    """
    start = time.perf_counter()
    if not _is_shown():
        yield
        if time.perf_counter() - start > PATIENCE and "logging" in sys.modules:  # otherwise nobody reads the level INFO
            import logging

            line = f"compiled {name}, in {time.perf_counter() - start:.1f} s{_advice()}"
            logging.getLogger("pullback").info(line)
        return
    reported = threading.Event()

    def tell() -> None:
        reported.set()
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
        if reported.is_set():
            _write(f"{outcome} {name}, in {time.perf_counter() - start:.1f} s")


def tell(line: str) -> None:
    """Write a line to the terminal or notebook, if there is one."""
    if _is_shown():
        _write(line)


_advised = False


def _advice() -> str:
    """A sentence that suggests the switch ``tiered``, which avoids waiting for the compiler.

    The sentence is empty if the switch is on, or if this process has suggested it already.
    """
    global _advised
    if _advised or config.tiered != "off":
        return ""
    _advised = True
    return '; config.update("tiered", "auto") runs calls uncompiled meanwhile, rounded otherwise (docs/compile_time.md)'


def _is_shown() -> bool:
    return config.compile_progress and config.progress and is_interactive()


def _write(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # the stream is closed
        sys.stderr.write(f"pullback: {line}\n")
        sys.stderr.flush()
