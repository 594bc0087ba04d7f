"""Pullback beside a library in another process: both are held to one thread of one CPU, and take turns.

A process prepares its functions, and then waits. For each line that it reads it calls every function some times, and
prints the least CPU seconds. So a busy machine slows both, and no thread spins while it waits for others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.memory.measuring import cpu_seconds

ROUNDS = 15
CALLS = 3
_MARK = "measured:"
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
"""Environment variables for libraries whose pools of threads do not follow the CPUs of the process."""
Prepared = tuple[dict[str, Any], Any, dict[str, Any], Sequence[Any]]
"""What is known of a program, and the arguments of ``cpu_seconds``: the library, the functions, their arguments."""


def hold_to_one_cpu() -> None:
    """Let this process, and the threads that it will start, run on one CPU, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def serve(prepare: Callable[[], Prepared]) -> None:
    """Measure in this process, once for each line of the standard input."""
    row, lib, steps, args = prepare()
    _say(row)
    for _ in sys.stdin:
        _say(cpu_seconds(lib, steps, args, CALLS))


def _say(value: Any) -> None:
    print(_MARK, json.dumps(value), flush=True)


class _Process:
    """A process that measures one program of a library.

    Attributes:
      row: what is known of the program.
      seconds: for each of its functions, the CPU seconds of a call, one number for each turn.
    """

    def __init__(self, library: str, name: str) -> None:
        self._command = [sys.executable, "-m", "benchmarks.memory", "--serve", library, "--only", name]
        self._running = subprocess.Popen(
            self._command, env={**os.environ, **_ONE_THREAD}, cwd=Path(__file__).parents[2], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.row: dict[str, Any] = self._read()
        self.seconds: dict[str, list[float]] = {}

    def _read(self) -> dict[str, Any]:
        assert self._running.stdout is not None
        for line in self._running.stdout:
            if line.startswith(_MARK):
                return cast(dict[str, Any], json.loads(line.removeprefix(_MARK)))
        raise RuntimeError(f"{' '.join(self._command)} ended with {self._running.wait()}")

    def take_turn(self) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write("\n")
        self._running.stdin.flush()
        for way, seconds in self._read().items():
            self.seconds.setdefault(way, []).append(round(seconds, 6))

    def end(self) -> None:
        assert self._running.stdin is not None
        self._running.stdin.close()
        self._running.wait()


def alternated(name: str, libraries: Sequence[str], rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure a program of each library, in processes that take turns.

    Return, for each library, what is known of the program, and the seconds of each function in each round.
    """
    processes: dict[str, _Process] = {}
    try:
        for library in libraries:  # one after the other, since compilers take all CPUs
            processes[library] = _Process(library, name)
        for turn in range(rounds):
            for library in libraries if turn % 2 else reversed(libraries):
                processes[library].take_turn()
    finally:
        for process in processes.values():
            process.end()
    return {library: {"known": p.row, "seconds": p.seconds} for library, p in processes.items()}
