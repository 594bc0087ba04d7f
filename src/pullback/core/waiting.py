"""Progress of calls that take long: after two seconds a line on terminals and in notebooks says how far a call is.

A thread reads the state of the work twice a second, so that the work itself has nothing to report, and its results are
the same. The line is a bar of ``tqdm`` where that is installed. It disappears when the call ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pullback.core.config import config
from pullback.core.runtime import runtime

PATIENCE = 2.0
"""Seconds that a call takes before something is shown."""
INTERVAL = 0.5
"""Seconds between two looks at the work."""


class Counter:
    """The number of steps that a loop has made.

    Attributes:
      steps: the number.
    """

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


class _Here(threading.local):
    """What this thread waits for.

    Attributes:
      is_waiting: whether a call is watched: calls within it are parts of its work.
      counter: the counter for the next loop of the call; None if there is none, or a loop has it.
    """

    is_waiting = False
    counter: Counter | None = None


_here = _Here()


def is_interactive() -> bool:
    """Return whether the standard error stream is a terminal or belongs to a notebook."""
    with suppress(ValueError, AttributeError):  # the stream is closed, or none
        if sys.stderr.isatty():
            return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def waiting(
    what: str, unit: str = "steps", total: int | None = None, done: Callable[[], int] | None = None
) -> Iterator[None]:
    """Show the progress of the block if it takes longer than ``PATIENCE`` seconds.

    Nothing is shown while a program is traced, in a block within another one, without a terminal or notebook, or if the
    switch ``progress`` is off.

    Args:
      what: the name of the work.
      unit: what is counted.
      total: how many of them there are, if that is known.
      done: returns how many are done, in another thread; by default the eager loop in the block counts its steps.
    """
    if _here.is_waiting or not config.progress or not is_interactive() or runtime.is_recording():
        yield
        return
    counter = Counter()
    ended = threading.Event()
    start = time.time()
    watch = threading.Thread(
        target=_watch, args=(ended, start, what, unit, total, done or (lambda: counter.steps)), daemon=True
    )
    with suppress(RuntimeError):  # no more threads
        watch.start()
    _here.is_waiting, _here.counter = True, None if done else counter
    try:
        yield
    finally:
        _here.is_waiting, _here.counter = False, None
        ended.set()
        if time.time() - start > PATIENCE / 2 and watch.ident is not None:
            watch.join()  # what was shown is gone before the next line


def take_counter() -> Counter | None:
    """Return the counter of the call that this thread waits for, the first time; loops within that loop get None."""
    counter = _here.counter
    if counter is not None:
        _here.counter = None
    return counter


def _watch(
    ended: threading.Event, start: float, what: str, unit: str, total: int | None, done: Callable[[], int]
) -> None:
    if ended.wait(PATIENCE):
        return
    with suppress(OSError, ValueError, AttributeError):  # the stream is closed
        bar = _bar(start, what, unit, total)
        while not ended.wait(INTERVAL):
            bar.n = done()
            bar.refresh()
        bar.close()


def _bar(start: float, what: str, unit: str, total: int | None) -> Any:
    import shutil  # which imports all formats of archives

    try:
        from tqdm import std
    except ImportError:
        return _Line(start, what, unit, total)

    class Bar(std.tqdm):  # type: ignore[misc,unused-ignore]
        monitor_interval = 0  # tqdm's own thread, which would stay, is not needed

    # On a terminal of 0 columns, as those without a window say, tqdm itself shows nothing.
    columns, lines = shutil.get_terminal_size()
    bar = Bar(desc=what, unit=f" {unit}", total=total, file=sys.stderr, leave=False, ncols=columns - 1, nrows=lines)
    bar.start_t = start
    return bar


class _Line:
    """A line that is written again and again: the progress without ``tqdm``.

    Attributes:
      n: how many are done.
    """

    def __init__(self, start: float, what: str, unit: str, total: int | None) -> None:
        self.start, self.what, self.unit, self.total = start, what, unit, total
        self.n = 0
        self._width = 0
        self.refresh()

    def refresh(self) -> None:
        of = f" of {self.total:,}" if self.total is not None else ""
        counted = f" {self.n:,}{of} {self.unit}," if self.n else ""
        self._write(f"{self.what}:{counted} {time.time() - self.start:.0f} s")

    def close(self) -> None:
        self._write("")
        sys.stderr.write("\r")
        sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(text)
