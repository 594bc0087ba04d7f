"""``python -m pullback launch``: run several processes of a program on one machine."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from pullback.core import systems
from pullback.core.command_name import command_name
from pullback.core.errors import ArgumentError
from pullback.core.locks import lock

ENDING = 5.0
"""The number of seconds that a process may take to end after SIGTERM, before it is killed."""
LOOK = 0.5
"""How often to look whether processes are stopped, when others have ended, in seconds."""


def launch(
    program: Sequence[str],
    processes: int,
    devices: int | None = None,
    port: int | None = None,
    grace: float = 10.0,
    restart: int = 0,
) -> int:
    """Start several processes of a program on this machine, and wait for them.

    Their environment has the settings of :func:`pullback.distributed.initialize`, and a random token, without which
    nobody else can take part. Each line of their output is prefixed
    with the number of the process. If one fails, the others have some seconds to notice it and to save their state;
    then they are ended. So are those that are stopped (by ``SIGSTOP``) when all others have ended. Ctrl-C ends all.
    After a failure the program can be started again, in all processes: one that saves checkpoints finds its newest.

    Args:
      program: the path of a Python program and its arguments, or ``-m``, a module and its arguments.
      processes: the number of processes.
      devices: the number of CPU devices of each; by default as the environment says.
      port: the port on which process 0 listens, on the loopback; by default a free one.
      grace: the number of seconds that the others may continue after one has failed, or stay stopped when the others
        have ended.
      restart: how many times to start the program again after a failure. ``PULLBACK_RESTART`` in the environment of the
        processes is how many times that was.

    Returns:
      0, or the exit status of the first process that failed: 128 plus the number of the signal, if one ended it.

    Raises:
      ArgumentError: an argument is invalid (a ValueError).
    """
    if processes < 1:
        raise ArgumentError(f"the number of processes must be at least 1, got {processes}")
    if restart < 0:
        raise ArgumentError(f"the number of restarts must be at least 0, got {restart}")
    if devices is not None and devices < 1:
        raise ArgumentError(f"the number of devices must be at least 1, got {devices}")
    if not program or (program[0] == "-m" and len(program) < 2):
        raise ArgumentError("there is no program to launch: pass its path, or -m and a module")
    if program[0] != "-m" and not os.path.exists(program[0]):
        raise ArgumentError(f"the program {program[0]!r} does not exist")
    count = 0
    while True:
        settings = {
            "PULLBACK_COORDINATOR_ADDRESS": f"127.0.0.1:{_free_port() if port is None else port}",
            "PULLBACK_NUM_PROCESSES": str(processes),
            "PULLBACK_JOB_TOKEN": secrets.token_hex(16),
            "PULLBACK_RESTART": str(count),
            "PYTHONUNBUFFERED": "1",
            **({} if devices is None else {"PULLBACK_NUM_CPU_DEVICES": str(devices)}),
        }
        status, interrupted = _run(program, processes, settings, grace)
        if not status or interrupted or count == restart:
            return status
        count += 1
        _say(f"starting the program again: restart {count} of at most {restart}")


def _run(program: Sequence[str], processes: int, settings: dict[str, str], grace: float) -> tuple[int, bool]:
    """Run the program once; return the exit status, and whether it was a signal to the launcher that ended it."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    before = {s: signal.signal(s, lambda number, _: events.put(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    started: list[_Process] = []
    try:
        for number in range(processes):
            started.append(_Process(program, number, settings, events))
        return _watch(started, events, grace)
    finally:
        _end(started)
        for number, handler in before.items():
            signal.signal(number, handler)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Process:
    """A started process, with the threads that forward its output."""

    def __init__(self, program: Sequence[str], number: int, settings: dict[str, str], events: Any) -> None:
        self.number = number
        self.popen = subprocess.Popen(
            [sys.executable, *program],
            env={**os.environ, **settings, "PULLBACK_PROCESS_ID": str(number)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **systems.group_of_its_own(),  # so that its own children end with it
        )
        prefix = f"[{number}] ".encode()
        pairs = ((self.popen.stdout, sys.stdout), (self.popen.stderr, sys.stderr))
        self.readers = [
            threading.Thread(target=_pass_on, args=(source, target, prefix), daemon=True) for source, target in pairs
        ]
        for reader in self.readers:
            reader.start()
        threading.Thread(target=self._wait, args=(events,), daemon=True).start()

    def _wait(self, events: Any) -> None:
        self.popen.wait()
        events.put(self)

    @property
    def status(self) -> int:
        """The exit status of the ended process, as in a shell: 128 plus the signal's number after a signal."""
        code = self.popen.returncode
        return code if code >= 0 else 128 - code

    def describe(self) -> str:
        code = self.popen.returncode
        if code >= 0:
            return f"process {self.number} failed with exit status {code}"
        return f"process {self.number} was killed by {signal.Signals(-code).name}"


_writing = lock(globals(), "_writing")


def _pass_on(source: IO[bytes], target: Any, prefix: bytes) -> None:
    with source:
        for line in source:
            with _writing:
                try:
                    text = (prefix + line.rstrip(b"\n")).decode(errors="replace") + "\n"
                    systems.write_text(target, text)
                    target.flush()
                except (OSError, ValueError):  # the reader has closed the pipe; the process may still write
                    pass


def _watch(started: list[_Process], events: Any, grace: float) -> tuple[int, bool]:
    """Wait until all processes have ended, or until ``grace`` seconds after the first failure.

    Return an exit status, and whether a signal came.

    If the others have ended, processes that stay stopped for ``grace`` seconds count as failed.

    The status is 0 if all processes succeed. Otherwise it is the status of the first process that failed, or 128 plus
    the number of the first signal, whichever happened first.

    Args:
      started: the processes.
      events: a queue of processes that have ended, and of signals to forward to the processes.
      grace: how long to wait after a failure, in seconds.
    """
    running = set(started)
    status, interrupted = 0, False
    deadline: float | None = None
    late = _Late(grace)
    while running:
        limit = None if len(running) == len(started) else LOOK
        try:
            event = _next(events, limit if deadline is None else max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            rest = [p for p in started if p in running]
            if deadline is None:
                if not late.stay_stopped(rest):
                    continue
                status = 128 + signal.SIGTERM
            _say(f"ending {', '.join(map(_name, rest))}")
            break
        if isinstance(event, int):
            for process in running:
                systems.signal_group(process.popen, event)
            status, interrupted = status or 128 + event, True
            deadline = time.monotonic() + ENDING
            continue
        running.discard(event)
        if event.popen.returncode and not status:
            status = event.status
            deadline = time.monotonic() + grace
            _say(event.describe())
    return status, interrupted


def _next(events: Any, seconds: float | None) -> Any:
    """Return the next event of a queue; signal handlers, which add events, run meanwhile.

    Raises:
      queue.Empty: there was none for so many seconds; None is for ever.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        limits = [x for x in (left, systems.LONGEST_WAIT) if x is not None]
        try:
            return events.get(timeout=min(limits, default=None))
        except queue.Empty:
            if end is not None and time.monotonic() >= end:
                raise


class _Late:
    """Looks at the processes that run when others have ended, and says once what the launcher waits for."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.begin = 0.0
        self.seen: tuple[list[_Process], list[bool]] | None = None
        self.said = False

    def stay_stopped(self, rest: list[_Process]) -> bool:
        """Whether all processes of ``rest`` have been stopped for the time of grace."""
        now = time.monotonic()
        stopped = [systems.is_stopped(process.popen) for process in rest]
        if self.seen != (rest, stopped):
            self.seen, self.begin, self.said = (rest, stopped), now, False
        over = now > self.begin + self.grace
        if not self.said and (over or all(stopped)):
            self.said = True
            names = [f"{_name(p)} (stopped)" if each else _name(p) for p, each in zip(rest, stopped, strict=True)]
            text = f"waiting for {', '.join(names)}; all others have ended"
            if all(stopped):
                pids = " ".join(str(process.popen.pid) for process in rest)
                text += f". Ends in {self.grace:g} seconds without `kill -CONT {pids}`"
            _say(text)
        return over and all(stopped)


def _name(process: _Process) -> str:
    return f"process {process.number}"


def _end(started: list[_Process]) -> None:
    """End the remaining processes and their children, and forward the rest of their output."""
    for process in started:
        systems.signal_group(process.popen, signal.SIGTERM)
        if systems.is_stopped(process.popen):
            systems.go_on(process.popen)  # it notices the first signal
    end = time.monotonic() + ENDING
    for process in started:
        try:
            process.popen.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            systems.kill_group(process.popen)
            process.popen.wait()
        for reader in process.readers:
            reader.join(1)


def _say(text: str) -> None:
    with _writing, contextlib.suppress(OSError, ValueError):
        systems.write_text(sys.stderr, f"{command_name()} launch: {text}\n")
        sys.stderr.flush()
