"""The processes of ``pullback bench``, one for each library. Each does one block by turns: noise hits all alike."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback.bench import workloads
from pullback.core.errors import ArgumentError

OURS = "pullback"
MODES = {"pullback": ("eager", "compiled"), "jax": ("eager", "compiled"), "torch": ("eager",), "autograd": ("eager",)}
"""The ways in which a library is measured."""
TITLES = {name: title for name, (title, _) in workloads.WORKLOADS.items()} | dict([workloads.START])
"""What is measured, by name."""
ROUNDS = 5
BLOCK_SECONDS = 0.03
ENOUGH_SECONDS = 1.0
"""A library whose blocks have taken so long together gets no more of them: calls that take seconds need no median."""
PATIENCE_SECONDS = 60.0
"""A library that has not answered for so long is stopped, and reported as failed."""
DIFFERS = "the result differs"
TOLERANCE = 1e-3
"""How far sums of float32 results may differ, relative to the sum of their magnitudes."""


@dataclass
class Measurement:
    """What a library did on a workload in one mode: the seconds of a call in each block, or why there are none."""

    fingerprint: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def median(self) -> float | None:
        """The median of the blocks; ``None`` if the library failed."""
        return None if self.failed or not self.seconds else statistics.median(self.seconds)


Row = dict[tuple[str, str], Measurement]
"""The measurements of a workload, by library and mode."""


class Worker:
    """The process of a library.

    Args:
      library: its name in ``workloads.LIBRARIES``.
    """

    def __init__(self, library: str) -> None:
        self.library = library
        self._process = subprocess.Popen(
            [sys.executable, "-P", workloads.__file__, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=_environment(library),
        )
        answer = self._answer()
        self.failed: str = answer.get("error", "")
        self.version: str = answer.get("version", "")

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def prepare(self, workload: str) -> dict[str, Measurement]:
        """Make a workload ready in each mode, and return its results in new measurements."""
        measured: dict[str, Measurement] = {}
        if (self.library, workload) in workloads.CANNOT:
            return measured
        for mode in MODES[self.library] if workload != workloads.START[0] else ("eager",):
            answer = self._ask("prepare", workload, mode, BLOCK_SECONDS)
            measured[mode] = Measurement(answer.get("fingerprint", []), failed=answer.get("error", ""))
        return measured

    def block(self, mode: str, measurement: Measurement) -> None:
        """Have a block timed, unless the library failed, or has had time enough."""
        if not measurement.failed and sum(measurement.seconds) < ENOUGH_SECONDS:
            answer = self._ask("block", mode)
            measurement.failed = answer.get("error", "")
            measurement.seconds += [answer["seconds"]] if "seconds" in answer else []

    def _ask(self, *question: Any) -> dict[str, Any]:
        if self.failed:
            return {"error": self.failed}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the process has ended, which its answer says
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        """Return the next answer of the process; the error, if it ended or took too long."""
        assert self._process.stdout is not None
        timer = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self.failed = f"the process ended with status {self._process.wait()}"
            return {"error": self.failed}
        answer: dict[str, Any] = json.loads(line)
        return answer


def _environment(library: str) -> dict[str, str]:
    """Return the environment of a process: compiled programs are optimised at once, and all run on the CPU."""
    environment = {**os.environ, "PULLBACK_TIERED": "off", "PULLBACK_PLATFORMS": "cpu", "JAX_PLATFORMS": "cpu"}
    if library == OURS:
        source = str(Path(workloads.__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [source, environment.get("PYTHONPATH")]))
    return environment


def installed() -> list[str]:
    """Return the libraries that are here, Pullback first. None is imported."""
    return [name for name in workloads.LIBRARIES if name == OURS or importlib.util.find_spec(name) is not None]


def chosen(prefixes: Sequence[str]) -> list[str]:
    """Return the workloads whose names begin with one of ``prefixes``; all without prefixes.

    Raises:
      ArgumentError: a prefix fits none.
    """
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in TITLES):
            raise ArgumentError(f"there is no workload {prefix!r}; there are {', '.join(TITLES)}")
    return [name for name in TITLES if name.startswith(tuple(prefixes or [""]))]


def measured(names: Iterable[str], libraries: Sequence[str], versions: dict[str, str]) -> Iterator[tuple[str, Row]]:
    """Measure workloads in libraries, and yield each one's name and measurements.

    Args:
      names: those of the workloads.
      libraries: the packages, as :func:`installed` returns them.
      versions: receives the version of each library.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(library)) for library in libraries]
        versions.update({worker.library: worker.version for worker in workers})
        for name in names:
            row: Row = {}
            for worker in workers:
                row.update({(worker.library, mode): made for mode, made in worker.prepare(name).items()})
            require_agreement(row)
            for _ in range(ROUNDS):
                for worker in workers:
                    for mode in MODES[worker.library]:
                        if (worker.library, mode) in row:
                            worker.block(mode, row[worker.library, mode])
            yield name, row


def require_agreement(row: Mapping[tuple[str, str], Measurement]) -> None:
    """Fail each measurement whose result is not that of Pullback's eager one, before anything is timed."""
    ours = row[OURS, "eager"]
    for made in row.values():
        if made.failed or ours.failed or made is ours:
            continue
        (size, *sums), (our_size, *our_sums) = made.fingerprint, ours.fingerprint
        close = TOLERANCE * max(sums[1], our_sums[1])
        if size != our_size or not all(math.isclose(a, b, abs_tol=close) for a, b in zip(sums, our_sums)):
            made.failed = DIFFERS
