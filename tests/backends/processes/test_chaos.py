"""Processes train, and at random moments some are killed, stopped, slowed down, cut off, or have no room to write.

Every run ends in bounded time: each process that is left has the right parameters, or an error that names one that was
meddled with. ``python -m tests.backends.processes.test_chaos --runs 100 --seed 3`` makes more runs than the test does,
and counts what came of them by kind of trouble.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.backends.processes.meddling import Disk, Proxy, between, limit_files, pulses

STEPS = {2: 300, 4: 300, 8: 120}
HEARTBEAT = {2: 3.0, 4: 3.0, 8: 8.0}
"""Eight processes of a machine of two cores may have to wait for seconds until they run."""
DUE = 60.0
"""Seconds from the last trouble after which no more errors may come: what joining takes at most, and a busy machine."""
GONE = ("kill", "stop")
HARMLESS = ("pause", "slow down", "full disk")
KINDS = (*GONE, *HARMLESS, "long pause", "cut link", "silent link", "cut collective")
COLUMNS = ("trained", "lost", "warnings", "FAILED")
"""What may come of a run, as columns of the table. In one run some processes may be trained, and others lost."""
PROGRAM = """
import os, socket, sys, threading, time
import numpy as np
import pullback
import pullback.numpy as pnp
from pullback import NamedSharding, P
from pullback.errors import DistributedError
from pullback.experimental import multihost_utils as utils

i, folder, steps, heartbeat = int(os.environ["PULLBACK_PROCESS_ID"]), sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

def say(what, text=""):
    with open(f"{folder}/{i}.{what}.new", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{i}.{what}.new", f"{folder}/{i}.{what}")

def cut():
    while not os.path.exists(f"{folder}/{i}.cut"):
        time.sleep(0.02)
    with open(f"{folder}/{i}.cut") as file, socket.socket(fileno=os.dup(int(file.read()))) as end:
        end.shutdown(socket.SHUT_RDWR)

threading.Thread(target=cut, daemon=True).start()
where = {}
if os.path.exists(f"{folder}/{i}.proxy"):
    with open(f"{folder}/{i}.proxy") as file:
        where = {"coordinator_address": file.read()}
say("pid", str(os.getpid()))

def loss(w, x):
    return (pnp.tanh(x @ w) ** 2).mean()

@pullback.jit
def step(w, x):
    return w - 0.1 * pullback.grad(loss)(w, x)

try:
    pullback.distributed.initialize(
        heartbeat_timeout_seconds=heartbeat, initialization_timeout=30, shutdown_timeout_seconds=10, **where
    )
    mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
    rows = np.arange(96, dtype=np.float32).reshape(24, 4) / 100
    mine = np.split(rows, pullback.process_count())[i]
    x = pullback.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    w = pullback.device_put(np.ones(4, np.float32), NamedSharding(mesh, P()))
    for k in range(steps):
        w = step(w, x)
        if k % 10 == 0:
            utils.sync_global_devices(f"step {k}")
        if k % 40 == 0:
            pullback.jit(lambda x: (x + k).sum())(x)
            pullback.jit(lambda v: pnp.sin(v) * k)(mine)
        say("step", str(k))
    np.save(f"{folder}/{i}.w.npy", np.asarray(w))
except DistributedError as error:
    say("lost", f"{type(error).__name__}: {error}")
    assert float(pullback.jit(lambda v: v + 1)(1.0)) == 2
"""


def expected(steps: int) -> np.ndarray:
    """The parameters after all steps."""
    rows, w = np.arange(96, dtype=np.float32).reshape(24, 4) / 100, np.ones(4, np.float32)
    for _ in range(steps):
        y = np.tanh(rows @ w)
        w = w - 0.1 * (rows.T @ (2 * y * (1 - y * y))) / len(rows)
    return w


class Run:
    """One run: processes, and what is done to them.

    Attributes:
      plan: the kinds of trouble, each with the process that it is for.
      done: when each came, in seconds, and what it did.
      suspects: the processes that errors may name.
      latest: when the last error came, in seconds after the last trouble.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = chance = random.Random(seed)
        self.folder = folder
        self.count = chance.choice([2, 2, 2, 4, 4, 8])
        self.steps, self.heartbeat = STEPS[self.count], HEARTBEAT[self.count]
        victims = chance.sample(range(self.count), chance.choice([1, 1, 2]))
        self.plan = [(chance.choice(KINDS), victim) for victim in victims]
        # Process 0 has no connection to itself that a network could cut.
        self.plan = [(kind, victim or int("link" in kind)) for kind, victim in self.plan]
        self.at_step = chance.choice([None, 0, 0.2, 0.5, 0.8])  # None: while they start
        self.done: list[tuple[float, str, int]] = []
        self.suspects: set[int] = set()
        self.latest = 0.0
        self.proxies: dict[int, Proxy] = {}
        self.port = 0

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.plan}

    def victims(self, *kinds: str) -> set[int]:
        return {victim for kind, victim in self.plan if kind in kinds}

    def do(self) -> str:
        """Make the run; what came of it, in words."""
        self.disk = Disk(self.folder / "cache")
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            for i in self.victims("cut link", "silent link"):
                self.proxies[i] = Proxy(self.port)
                (self.folder / f"{i}.proxy").write_text(f"127.0.0.1:{self.proxies[i].port}")
            return self._launch()
        finally:
            for proxy in self.proxies.values():
                proxy.close()
            self.disk.close()

    def _launch(self) -> str:
        program = self.folder / "program.py"
        program.write_text(PROGRAM)
        grace = 5 if self._ends_stopped() else 30
        launch = ["-m", "pullback", "launch", "--processes", self.count, "--port", self.port, "--grace", grace]
        command = [sys.executable, *launch, program, self.folder, self.steps, self.heartbeat]
        environment = {**os.environ, "PULLBACK_COMPILATION_CACHE_DIR": str(self.disk.folder)}
        with (
            (self.folder / "output").open("wb") as output,
            subprocess.Popen(map(str, command), stdout=output, stderr=output, env=environment) as launcher,
        ):
            try:
                return self._meddle(launcher)
            finally:
                self._send(range(self.count), signal.SIGKILL)
                launcher.terminate()

    def _meddle(self, launcher: subprocess.Popen[bytes]) -> str:
        begin = time.monotonic()
        self._until(lambda: launcher.poll() is not None or all(map(self._pid, range(self.count))), begin + 100)
        if self.at_step is not None:
            at_step = self.at_step * self.steps
            self._until(lambda: launcher.poll() is not None or self._step() >= at_step, begin + 150)
        time.sleep(self.chance.random() * (3 if self.at_step is None else 0.2))
        for kind, victim in self.plan:
            self.suspects.add(victim)
            when, more = time.monotonic() - begin, self._trouble(kind, victim, launcher)
            self.done.append((when, f"{kind}{more and f' ({more})'}", victim))
        last, stopped = time.time(), set() if self._ends_stopped() else self.victims("stop")
        self._until(
            lambda: launcher.poll() is not None or all(map(self._has_ended, self._others(stopped))),
            time.monotonic() + 150,
        )
        self._send(stopped, signal.SIGKILL)
        self._until(lambda: launcher.poll() is not None, time.monotonic() + 60)
        return self._judge(launcher.returncode, last)

    def _ends_stopped(self) -> bool:
        """Whether the launcher ends the processes that stay stopped: not if one was killed, or if all are stopped."""
        return not self.victims("kill") and 0 < len(self.victims("stop")) < self.count

    def _trouble(self, kind: str, victim: int, launcher: subprocess.Popen[bytes]) -> str:
        """Let a trouble come, and return more about it than its kind."""
        if kind in ("kill", "stop"):
            self._send([victim], signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
        elif "pause" in kind:
            self._send([victim], signal.SIGSTOP)
            time.sleep(self.chance.random() * 0.5 if kind == "pause" else self.heartbeat + 6)
            self._send([victim], signal.SIGCONT)
        elif kind == "slow down":
            pulses(self._pid(victim), self.chance.uniform(1, 5), random.Random(self.chance.random()))
        elif kind == "full disk":
            if self.chance.random() < 0.5 and self.disk.fill():
                return "of all"
            limit_files(self._pid(victim))
        elif "link" in kind:
            self.suspects.add(0)
            if kind == "cut link":
                return self.proxies[victim].cut(self.chance)
            self.proxies[victim].silent = True
        else:
            return self._cut_collective(victim, launcher)
        return ""

    def _cut_collective(self, victim: int, launcher: subprocess.Popen[bytes]) -> str:
        others = {self.port, *(proxy.port for proxy in self.proxies.values())}
        pids = {i: self._pid(i) for i in range(self.count)}
        found: list[tuple[int, int, int]] = []

        def seen() -> bool:
            found[:] = [end for end in between(pids, others) if end[0] == victim]
            return bool(found) or launcher.poll() is not None or self._has_ended(victim)

        self._until(seen, time.monotonic() + 60)
        if not found:
            return "none was there"
        _, descriptor, other = self.chance.choice(found)
        self.suspects.add(other)
        new = self.folder / "cut.new"
        new.write_text(str(descriptor))
        new.rename(self.folder / f"{victim}.cut")
        return f"to {other}"

    def _judge(self, status: int, last: float) -> str:
        output = (self.folder / "output").read_text()
        results = set()
        for i in self._others(self.victims(*GONE)):
            saved, lost = self.folder / f"{i}.w.npy", self.folder / f"{i}.lost"
            if saved.exists():
                np.testing.assert_allclose(np.load(saved), expected(self.steps), rtol=1e-4, err_msg=self.told())
                results.add("trained")
            else:
                assert lost.exists(), f"process {i} has neither parameters nor an error: {self.told()}"
                text = lost.read_text()
                assert any(self._names(text, v) for v in self.suspects), f"{text}: {self.told()}"
                self.latest = max(self.latest, lost.stat().st_mtime - last)
                assert self.latest < DUE, f"the error of process {i} came after {self.latest} seconds: {self.told()}"
                results.add("lost")
        assert not self.kinds.issubset(HARMLESS) or results == {"trained"}, self.told()
        assert self.victims(*GONE) or status == 0, f"exit status {status}: {self.told()}"
        assert "Traceback" not in output, self.told()
        ended = {int(i) for line in re.findall("launch: ending (.*)", output) for i in re.findall(r"\d+", line)}
        assert ended <= self.victims(*GONE), f"{ended} were ended by the launcher: {self.told()}"
        warned = " with warnings" if "CompilationCacheWarning" in output else ""
        assert not warned or "full disk" in self.kinds, self.told()
        return (" and ".join(sorted(results)) or "all gone") + warned

    def _names(self, error: str, process: int) -> bool:
        """Whether an error names a process, as one that is gone or did not come."""
        missing = re.search(r"Timeout.*waited [\d.]+ seconds for ([^:]*), of num_processes", error)
        joining = "process 0 failed meanwhile" in error and process == 0
        return f"process {process} is gone" in error or joining or bool(missing and str(process) in missing[1])

    def told(self) -> str:
        return f"{self.count} processes, {self.done}\n{(self.folder / 'output').read_text()}"

    def _others(self, than: set[int]) -> list[int]:
        return [i for i in range(self.count) if i not in than]

    def _pid(self, i: int) -> int:
        path = self.folder / f"{i}.pid"
        return int(path.read_text()) if path.exists() else 0

    def _has_ended(self, i: int) -> bool:
        path = Path(f"/proc/{self._pid(i)}")
        return not path.exists() or ") Z" in (path / "stat").read_text()

    def _step(self) -> int:
        said = [self.folder / f"{i}.step" for i in range(self.count)]
        return max([int(path.read_text()) for path in said if path.exists()], default=-1)

    def _send(self, to: Iterable[int], number: int) -> None:
        for i in to:
            if self._pid(i) and not self._has_ended(i):
                os.kill(self._pid(i), number)

    def _until(self, condition: Callable[[], bool], end: float) -> None:
        while not condition():
            assert time.monotonic() < end, f"nothing happens any more: {self.told()}"
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes and connections in /proc")
@pytest.mark.parametrize("seed", [16, 26, 114, 115, 123, 146])
def test_processes_in_trouble(tmp_path, seed):
    Run(seed, tmp_path).do()


def one(seed: int) -> tuple[Run, str]:
    """Make a run, print a line about it, and return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        begin, run = time.monotonic(), Run(seed, Path(folder))
        try:
            result = run.do()
        except AssertionError as error:
            result = f"FAILED: {error}"
        did = ", ".join(f"{what} {victim} at {when:.1f} s" for when, what, victim in run.done)
        print(f"{seed}: {run.count} processes, {did}: {result} in {time.monotonic() - begin:.0f} s", flush=True)
        return run, result


def main() -> None:
    """Make many runs, say what came of each, and print a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="that of the first run")
    parser.add_argument("--at-a-time", type=int, default=1)
    options = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    latest: dict[str, float] = defaultdict(float)
    with ThreadPoolExecutor(options.at_a_time) as pool:
        for run, result in pool.map(one, range(options.seed, options.seed + options.runs)):
            came = ["runs", *(column for column in COLUMNS if column in result.replace("all gone", "lost"))]
            for row in ("all runs", f"{run.count} processes", *run.kinds):
                table[row].update(came)
                latest[row] = max(latest[row], run.latest)
    columns = ("runs", *COLUMNS)
    print(f"\n| trouble | {' | '.join(columns)} | latest error |\n|---|{'---|' * (len(columns) + 1)}")
    for row in (*KINDS, *(f"{count} processes" for count in STEPS), "all runs"):
        counts = " | ".join(str(table[row][column]) for column in columns)
        print(f"| {row} | {counts} | {latest[row]:.0f} s |")


if __name__ == "__main__":
    main()
