"""Processes train, and some of them are killed, stopped or continued at random moments.

Every run ends in bounded time: each process that is left has the right parameters, or an error that names one that was
meddled with. ``python -m tests.backends.processes.test_chaos --runs 100 --seed 3`` makes more runs than the test does.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

HEARTBEAT = 3.0
STEPS = 300
PROGRAM = """
import os, sys
import numpy as np
import pullback
import pullback.numpy as pnp
from pullback import NamedSharding, P
from pullback.errors import ProcessLostError
from pullback.experimental import multihost_utils as utils

i, folder = int(os.environ["PULLBACK_PROCESS_ID"]), sys.argv[1]

def say(what, text=""):
    with open(f"{folder}/{i}.{what}.new", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{i}.{what}.new", f"{folder}/{i}.{what}")

say("pid", str(os.getpid()))

def loss(w, x):
    return (pnp.tanh(x @ w) ** 2).mean()

@pullback.jit
def step(w, x):
    return w - 0.1 * pullback.grad(loss)(w, x)

try:
    pullback.distributed.initialize(
        heartbeat_timeout_seconds=HEARTBEAT, initialization_timeout=30, shutdown_timeout_seconds=10
    )
    mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
    rows = np.arange(96, dtype=np.float32).reshape(24, 4) / 100
    mine = np.split(rows, pullback.process_count())[i]
    x = pullback.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    w = pullback.device_put(np.ones(4, np.float32), NamedSharding(mesh, P()))
    for k in range(STEPS):
        w = step(w, x)
        if k % 10 == 0:
            utils.sync_global_devices(f"step {k}")
        if k % 40 == 0:
            pullback.jit(lambda x: (x + k).sum())(x)
        say("step", str(k))
    np.save(f"{folder}/{i}.w.npy", np.asarray(w))
except ProcessLostError as error:
    say("lost", repr(error.processes) + str(error))
    assert float(pullback.jit(lambda v: v + 1)(1.0)) == 2
""".replace("HEARTBEAT", str(HEARTBEAT)).replace("STEPS", str(STEPS))


def expected() -> np.ndarray:
    """The parameters after all steps."""
    rows, w = np.arange(96, dtype=np.float32).reshape(24, 4) / 100, np.ones(4, np.float32)
    for _ in range(STEPS):
        y = np.tanh(rows @ w)
        w = w - 0.1 * (rows.T @ (2 * y * (1 - y * y))) / len(rows)
    return w


class Run:
    """One run: processes, and what is done to them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.count = self.chance.choice([2, 2, 4])
        self.done: list[tuple[float, str, int]] = []
        self.victims: set[int] = set()
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM)

    def do(self) -> str:
        """Make the run; what came of it, in a word."""
        command = [sys.executable, "-m", "pullback", "launch", "--processes", str(self.count), "--grace", "30"]
        with (
            (self.folder / "output").open("wb") as output,
            subprocess.Popen([*command, str(self.program), str(self.folder)], stdout=output, stderr=output) as p,
        ):
            try:
                return self._meddle(p)
            finally:
                self._send(range(self.count), signal.SIGKILL)
                p.terminate()

    def _meddle(self, launcher: subprocess.Popen[bytes]) -> str:
        begin = time.monotonic()
        self._until(lambda: all(self._pid(i) for i in range(self.count)), begin + 60)
        at_step = self.chance.choice([None, 0, 50, 150, 250])  # None: while they start
        if at_step is not None:
            self._until(lambda: self._ended(launcher) or self._step() >= at_step, begin + 90)
        time.sleep(self.chance.random() * (3 if at_step is None else 0.2))
        for victim in self.chance.sample(range(self.count), self.chance.choice([1, 1, 2])):
            what = self.chance.choice(["kill", "stop", "pause", "long pause"])
            self.done.append((time.monotonic() - begin, what, victim))
            self.victims.add(victim)
            self._send([victim], signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            if "pause" in what:
                time.sleep(self.chance.random() * 0.5 if what == "pause" else HEARTBEAT + 6)
                self._send([victim], signal.SIGCONT)
        stopped = {victim for _, what, victim in self.done if what == "stop"}
        self._until(lambda: self._ended(launcher) or all(map(self._has_ended, self._others(stopped))), begin + 150)
        self._send(stopped, signal.SIGKILL)
        self._until(lambda: self._ended(launcher), time.monotonic() + 60)
        return self._judge()

    def _judge(self) -> str:
        killed = {victim for _, what, victim in self.done if what in ("kill", "stop")}
        results = set()
        for i in self._others(killed):
            saved, lost = self.folder / f"{i}.w.npy", self.folder / f"{i}.lost"
            if saved.exists():
                np.testing.assert_allclose(np.load(saved), expected(), rtol=1e-4, err_msg=self.told())
                results.add("trained")
            else:
                assert lost.exists(), f"process {i} has neither parameters nor an error: {self.told()}"
                text = lost.read_text()
                assert any(f"process {v} is gone" in text for v in self.victims), f"{text}: {self.told()}"
                results.add("lost")
        paused_only = all(what == "pause" for _, what, _ in self.done)
        assert not paused_only or results == {"trained"}, self.told()
        return " and ".join(sorted(results)) or "all gone"

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

    def _ended(self, launcher: subprocess.Popen[bytes]) -> bool:
        return launcher.poll() is not None

    def _send(self, to: object, number: int) -> None:
        for i in to:  # type: ignore[attr-defined]
            if self._pid(i) and not self._has_ended(i):
                os.kill(self._pid(i), number)

    def _until(self, condition: object, end: float) -> None:
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < end, f"nothing happens any more: {self.told()}"
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
@pytest.mark.parametrize("seed", [0, 4, 5, 16])
def test_processes_that_are_killed_stopped_and_continued(tmp_path, seed):
    Run(seed, tmp_path).do()


def main() -> None:
    """Make many runs, and say what came of each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            begin, run = time.monotonic(), Run(seed, Path(folder))
            try:
                result = run.do()
            except AssertionError as error:
                result = f"FAILED: {error}"
            did = ", ".join(f"{what} {victim} at {when:.1f} s" for when, what, victim in run.done)
            print(f"{seed}: {run.count} processes, {did}: {result} in {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
