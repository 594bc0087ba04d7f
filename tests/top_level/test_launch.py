"""`python -m pullback launch`: the end of the launcher, and signals where there are no process groups."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pullback import launch
from pullback.core import systems
from tests.helpers import ROOT


def test_nothing_is_left_open(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('out')\nprint('error', file=sys.stderr)\n")
    strict = {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error::ResourceWarning", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "launch", "--processes", "2", str(program)],
        capture_output=True, text=True, timeout=100, env={**os.environ, **strict}, check=True,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["[0] out", "[1] out"]
    assert sorted(done.stderr.splitlines()) == ["[0] error", "[1] error"]


@pytest.mark.parametrize(("failures", "status"), [(0, 0), (2, 0), (3, 7)])
def test_a_program_that_fails_is_started_anew(
    failures: int, status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\n"
        "restart = int(os.environ['PULLBACK_RESTART'])\n"
        "print(restart, len(os.environ['PULLBACK_JOB_TOKEN']))\n"
        f"if os.environ['PULLBACK_PROCESS_ID'] == '1' and restart < {failures}: sys.exit(7)\n"
        f"time.sleep(30 * (restart < {failures}))\n"
    )
    assert launch.launch([str(program)], 2, grace=0.5, restart=2) == status
    out, err = capfd.readouterr()
    rounds = min(failures, 2) + 1
    assert sorted(out.splitlines()) == sorted(f"[{i}] {n} 32" for i in range(2) for n in range(rounds))
    assert [line for line in err.splitlines() if "again" in line] == [
        f"python -m pullback launch: starting the program again: restart {n} of at most 2" for n in range(1, rounds)
    ]


def test_a_signal_to_the_launcher_ends_all(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\nprint('here', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "pullback", "launch", "-n", "1", "--restart", "3", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "[0] here\n"
        launcher.send_signal(signal.SIGTERM)
        output, errors = launcher.communicate(timeout=60)
    assert (launcher.returncode, output) == (128 + signal.SIGTERM, "")
    assert "again" not in errors


def test_signals_without_process_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which has no SIGKILL either, and one signal of groups."""

    class Started:
        pid = 0

        def __init__(self) -> None:
            self.sent: list[int | str] = []

        def send_signal(self, number: int) -> None:
            self.sent.append(number)

        def kill(self) -> None:
            self.sent.append("killed")

        def wait(self, timeout: float | None = None) -> None:
            if timeout is not None:
                raise subprocess.TimeoutExpired("program", timeout)

    monkeypatch.delattr(os, "killpg")
    monkeypatch.delattr(signal, "SIGKILL")
    monkeypatch.setattr(signal, "CTRL_BREAK_EVENT", 1, raising=False)
    process: Any = launch._Process.__new__(launch._Process)
    process.popen, process.readers = Started(), []
    launch._end([process])
    assert process.popen.sent == [signal.CTRL_BREAK_EVENT, "killed"]  # type: ignore[attr-defined]
    monkeypatch.delattr(signal, "CTRL_BREAK_EVENT")
    process.popen = Started()
    launch._end([process])
    assert process.popen.sent == [signal.SIGTERM, "killed"]


def test_signals_are_noticed_where_they_interrupt_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: the launcher waits for a moment, again and again."""
    events: queue.SimpleQueue[int] = queue.SimpleQueue()
    waits: list[float | None] = []

    class Events:
        def get(self, timeout: float | None) -> int:
            waits.append(timeout)
            if len(waits) == 3:
                events.put(signal.SIGINT)
            return events.get(timeout=timeout)

    monkeypatch.setattr(systems, "LONGEST_WAIT", 0.01)
    assert launch._next(Events(), None) == signal.SIGINT
    assert waits == [0.01, 0.01, 0.01]
    with pytest.raises(queue.Empty):
        launch._next(events, 0.03)
    monkeypatch.setattr(systems, "LONGEST_WAIT", None)
    waits.clear()
    events.put(7)
    assert launch._next(Events(), None) == 7
    assert waits == [None]
