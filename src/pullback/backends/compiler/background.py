"""Compilation in background threads.

As many threads as there are CPU cores take jobs from a queue in order, and end when it is empty. They are daemons: a
running compiler cannot be stopped, and the process must be able to end (see ``backends/processes/ending.py``). Under
``compile_at_exit="wait"`` the end of the process waits for all jobs, so that the next process finds the programs on
disk.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from pullback.backends.compiler import compile_progress
from pullback.backends.host.parallel import cores
from pullback.backends.processes import ending, forks
from pullback.core.config import config
from pullback.core.locks import lock, renewed

T = TypeVar("T")


class Job(Generic[T]):
    """A job for a background thread, which runs it with the configuration of the thread that made it.

    Attributes:
      done: whether the job has ended.
      result: the result; None before the job has ended, or if it raised an exception. That exception is dropped: a
        caller repeats the work in its own thread, which raises it again.
    """

    __slots__ = ("__weakref__", "_switches", "_work", "done", "result")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._switches = dict(vars(config))
        self.done = False
        self.result: T | None = None

    def run(self) -> None:
        """Set this thread's configuration to the configuration of the thread that made the job, and run the job."""
        work = self._work
        assert work is not None
        switches = vars(config)
        switches.clear()
        switches.update(self._switches)
        with suppress(BaseException):
            self.result = work()
        self._work = None
        self.done = True


# A signal handler of the user's, which may compile, runs while it is held.
_guard = lock(globals(), "_guard", reentrant=True)
_waiting: deque[Callable[[], Job[Any] | None]] = deque()
_threads: set[threading.Thread] = set()
_closing = False
for _name, _make in (("_waiting", deque), ("_threads", set)):
    renewed(globals(), _name, _make)


def submit(job: Job[Any]) -> bool:
    """Queue a job for a background thread.

    The queue refers to the job weakly: the thread skips the job if the caller has dropped it by then. Under
    ``compile_at_exit="wait"`` the job runs in any case, so that the next process finds its program in the cache.

    Returns:
      Whether the job was queued: False while the process ends, or where no thread can be started.
    """
    _prepare()
    with _guard:
        if _closing or forks.in_child():
            return False
        _waiting.append((lambda: job) if config.compile_at_exit == "wait" else weakref.ref(job))
        if len(_threads) >= cores():
            return True
        thread = threading.Thread(target=_take_turns, name="pullback-compiler", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many, or the interpreter is about to end
            return bool(_threads)
        finally:
            if thread.ident is not None:
                _threads.add(thread)
    return True


@functools.cache
def _prepare() -> None:
    forks.used.append("background")  # a child that is forked from now on lacks these threads
    ending.before_leaving(_close)


def _take_turns() -> None:
    """Run jobs until the queue is empty or the process ends: the work of a background thread."""
    while True:
        with _guard:
            job = None
            while _waiting and job is None:
                job = _waiting.popleft()()
            if job is None or _closing:
                _threads.discard(threading.current_thread())
                return
        job.run()


def _close() -> list[threading.Thread]:
    """Refuse further jobs, and return the threads that are still running.

    Under ``compile_at_exit="wait"`` wait for all jobs first.
    """
    global _closing
    if config.compile_at_exit == "wait":
        with suppress(KeyboardInterrupt):  # the user does not want to wait any longer
            _finish()
    with _guard:
        _closing = True
        _waiting.clear()
        return list(_threads)


def _finish() -> None:
    """Wait until all jobs are done. If any is not, first write on the terminal that the process waits."""
    announced = False
    while True:
        with _guard:
            working = list(_threads)
        if not working:
            return
        if not announced:
            announced = True
            compile_progress.tell(
                "the process waits for the compiler before it ends (compile_at_exit); Ctrl-C ends the wait"
            )
        working[0].join()
