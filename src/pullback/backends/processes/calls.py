"""Calls in C++ that may never end, on threads of their own: of programs that wait for other processes.

Python cannot interrupt such a call. So the caller waits for another thread, and can leave it behind: when a process is
gone, or when the user presses Ctrl-C.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """A call of ``work``, for a thread of :class:`Callers`.

    Attributes:
      caller: the thread that makes it; None before.
      queued: whether that thread has it. An interrupt may come before.
    """

    __slots__ = ("_begun", "_ended", "_outcome", "_work", "caller", "queued")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._outcome: tuple[T | None, BaseException | None] | None = None
        self._begun = threading.Lock()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()  # an Event would take longer, and so would a lock
        self.caller: _Caller | None = None
        self.queued = False

    def run(self) -> None:
        """Make the call, unless it was left before it began."""
        work = self._work
        if work is None or not self._begun.acquire(blocking=False):
            return
        try:
            self._outcome = work(), None
        except BaseException as error:
            self._outcome = None, error
        self._work = None
        self._ended.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the end of the call, and return whether it has ended."""
        if self._work is None:
            return True
        try:
            self._ended.get(timeout=seconds)
        except queue.Empty:
            return False
        self._ended.put(None)  # for others that wait
        return True

    def wait_or_prevent(self, seconds: float) -> bool:
        """The same for a call of another thread: if an interrupt came before it was queued, it never begins."""
        if not self.queued and self._begun.acquire(blocking=False):
            self._work = None
        return self.wait(seconds)

    def result(self) -> T:
        """The result of the call, which has ended; what it raised is raised. The call forgets it."""
        assert self._outcome is not None
        (value, error), self._outcome = self._outcome, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # whose traceback refers to this frame
        return value  # type: ignore[return-value]


class Callers:
    """Threads that make calls, each one call at a time. A thread that is left behind in a call serves no other."""

    def __init__(self) -> None:
        self._idle: list[_Caller] = []
        self._all: set[_Caller] = set()

    def begin(self, call: Call[Any]) -> None:
        """Let a thread make the call."""
        try:
            caller = self._idle.pop()
        except IndexError:
            caller = _Caller()
            self._all = {x for x in self._all if x.thread.is_alive()} | {caller}
        call.caller = caller
        caller.calls.put(call)
        call.queued = True

    def give_back(self, call: Call[Any]) -> None:
        """Let the thread of a call that has ended make others."""
        if call.caller is not None:
            self._idle.append(call.caller)

    def stop(self, seconds: float) -> None:
        """Let the threads end, and wait for those that are within calls, together up to ``seconds``."""
        end = time.monotonic() + seconds
        for caller in self._all:
            caller.calls.put(None)
        for caller in self._all:
            caller.thread.join(max(0.0, end - time.monotonic()))
        self._idle.clear()
        self._all.clear()


class _Caller:
    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._make_calls, name="pullback-call", daemon=True)
        self.thread.start()

    def _make_calls(self) -> None:
        while (call := self.calls.get()) is not None:
            call.run()
            del call  # its arguments and results are the caller's
