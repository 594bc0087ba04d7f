"""Running the workers: every library does one block in turn, so that the machine's noise hits all alike."""

import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.libraries import OURS
from benchmarks.workloads import Workload

# A library that has not answered for so long is stopped and reported as failed.
PATIENCE_SECONDS = 180.0
# A library whose blocks have taken so long together gets no more of them: it is the one that compiles with a C++
# compiler, of which fewer blocks say enough.
ENOUGH_SECONDS = 20.0
# Between blocks, so that the threads of the last library have gone to sleep.
PAUSE_SECONDS = 0.03
# Every library uses all cores, as it does by default.
_LIMITS_OF_THREADS = ("MKL_NUM_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XLA_FLAGS")
# Results are float32, and the sums of them are compared.
RELATIVE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Settings:
    """How long to measure: rounds of one block a library, and the length of a block in seconds."""

    rounds: int
    block_seconds: float


FULL = Settings(rounds=12, block_seconds=0.08)
QUICK = Settings(rounds=5, block_seconds=0.03)


@dataclass
class Measurement:
    """What one library did on one workload: seconds a call of each block, or why there are none."""

    version: str = ""
    threads: int = 0
    calls: int = 0
    fingerprint: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def minimum(self) -> float:
        return min(self.seconds)


class Worker:
    """A worker process, and what it has measured so far; packages are looked for in ``source`` first."""

    def __init__(self, library: str, workload: Workload, settings: Settings, scratch: str, source: str = "") -> None:
        self.measurement = Measurement()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", library, workload.name, str(settings.block_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(scratch, workload.devices, source),
        )
        answer = self._answer()
        self.measurement.version = answer.get("version", "")
        self.measurement.threads = answer.get("threads", 0)
        self.measurement.calls = answer.get("calls", 0)
        self.measurement.fingerprint = answer.get("fingerprint", [])

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def block(self) -> None:
        """Have one block timed; nothing, if the library has failed before, or has had time enough."""
        measurement = self.measurement
        if not measurement.failed and measurement.calls * sum(measurement.seconds) < ENOUGH_SECONDS:
            time.sleep(PAUSE_SECONDS)
            assert self._process.stdin is not None
            self._process.stdin.write("block\n")
            self._process.stdin.flush()
            answer = self._answer()
            if not measurement.failed:
                measurement.seconds.append(answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        """The process's next line, empty if it failed, died, or took too long."""
        assert self._process.stdout is not None
        timer = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            status = self._process.wait()
            line = json.dumps({"error": f"the process ended with status {status}"})
        answer: dict[str, Any] = json.loads(line)
        self.measurement.failed = answer.get("error", "")
        return answer


def _environment(scratch: str, devices: int, source: str) -> dict[str, str]:
    """The workers' environment: all cores, as so many devices, caches on disk of their own, and where packages are."""
    environment = {name: value for name, value in os.environ.items() if name not in _LIMITS_OF_THREADS}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment["PULLBACK_TIERED"] = "off"  # what is timed is compiled
    environment["PULLBACK_COMPILATION_CACHE_DIR"] = environment["TORCHINDUCTOR_CACHE_DIR"] = environment["TMPDIR"] = (
        scratch
    )
    if source:
        environment["PYTHONPATH"] = source
    if devices > 1:
        environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    return environment


def measure(workload: Workload, libraries: Sequence[str], settings: Settings, scratch: str) -> dict[str, Measurement]:
    """Time ``workload`` in those of ``libraries`` that can do it, interleaved; their files go to ``scratch``."""
    able = [name for name in libraries if name == OURS or name in workload.peers]
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name, workload, settings, scratch)) for name in able}
        for _ in range(settings.rounds):
            for worker in workers.values():
                worker.block()
    measurements = {name: worker.measurement for name, worker in workers.items()}
    _require_agreement(measurements)
    return measurements


def _require_agreement(measurements: dict[str, Measurement]) -> None:
    """Fail every library whose result is not that of the first peer: it was measured doing something else."""
    working = {name: m for name, m in measurements.items() if not m.failed and m.fingerprint}
    if not working:
        return
    reference = next((name for name in working if name != OURS), OURS)
    expected = working[reference].fingerprint
    for measurement in working.values():
        size, total, magnitude = measurement.fingerprint
        tolerance = RELATIVE_TOLERANCE * expected[2]
        if (
            size != expected[0]
            or not math.isclose(total, expected[1], abs_tol=tolerance)
            or not math.isclose(magnitude, expected[2], abs_tol=tolerance)
        ):
            measurement.failed = f"result {measurement.fingerprint} is not {reference}'s, {expected}"
