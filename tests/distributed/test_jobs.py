"""Jobs on clusters, with threads of this process as workers: results, failures, restarts, and what is ended."""

import os
import pickle
import queue
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pullback.core.errors import ArgumentError, DistributedError, MissingLibraryError, ProcessLostError
from pullback.distributed import jobs, ray
from pullback.distributed.jobs import Outcome

pytest.importorskip("cloudpickle")


class Threads:
    """Workers that are threads."""

    def __init__(self, processes: int) -> None:
        self.lines: list[str] = []
        self.key = secrets.token_hex(4)
        self.processes, self.events = processes, queue.SimpleQueue[tuple[int, Outcome]]()
        self.threads: list[threading.Thread] = []

    def address(self) -> str:
        return jobs.free_address("127.0.0.1")

    def start(self, number: int, task: bytes, settings: Mapping[str, str]) -> None:
        def run() -> None:
            self.events.put((number, jobs.run_child(f"{self.key}-{number}", task, settings, self.lines.append)))

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        try:
            return [self.events.get(timeout=seconds)]
        except queue.Empty:
            return []

    def end(self) -> None:
        for number in range(self.processes):
            jobs.end_child(f"{self.key}-{number}")
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()


def run(
    function: Callable[..., Any], *args: Any, processes: int = 1, restarts: int = 0, grace: float = 20
) -> list[Any]:
    """Run a job on threads."""
    call = jobs.pickled("job", function, args, {})
    return jobs.run("job", call, processes, restarts, grace, jobs.settings_of("job", 2), lambda: Threads(processes))


@pytest.mark.slow
def test_processes_join() -> None:
    def train(x: int) -> tuple[int, int, int]:
        import pullback

        return pullback.process_index(), pullback.device_count(), x

    assert run(train, 7, processes=2) == [(0, 4, 7), (1, 4, 7)]


def test_output_and_results() -> None:
    def speak() -> str:
        print("hello", flush=True)
        return os.environ["PULLBACK_RESTART"]

    workers = Threads(1)
    call = jobs.pickled("job", speak, (), {})
    assert jobs.run("job", call, 1, 0, 5, {}, lambda: workers) == ["0"]
    assert workers.lines == ["hello"]
    assert not jobs._children


def test_what_the_function_raises_is_raised_with_its_traceback() -> None:
    def fail() -> None:
        raise KeyError("no such key")

    with pytest.raises(KeyError, match="no such key") as found:
        run(fail)
    assert "raised in process 0 of the job:" in found.value.__notes__[0]
    assert re.search(r"line \d+, in fail\n(.*\n)*KeyError: 'no such key'", found.value.__notes__[0])


def test_errors_that_cannot_be_pickled() -> None:
    def fail() -> None:
        class Strange(Exception):
            def __init__(self, a: int, b: int) -> None:
                super().__init__(f"{a} and {b}")

        raise Strange(1, 2)

    with pytest.raises(RuntimeError, match="Strange: 1 and 2"):
        run(fail)


def test_a_function_that_exits_does_not_end_the_program_that_started_the_job() -> None:
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        run(lambda: sys.exit(3))


def test_errors_and_results_whose_classes_are_not_known_here() -> None:
    """As where the program that starts the job has other libraries than the workers."""
    unknown = b"\x80\x04cno_such_module\nError\n."
    error = pickle.dumps((unknown, "Traceback:\nno_such_module.Error: too large\n"))
    found = jobs._error("job", [(1, Outcome(error=error))])
    assert (type(found), str(found)) == (RuntimeError, "no_such_module.Error: too large")
    with pytest.raises(DistributedError, match="job: the result of process 1 cannot be unpickled here: ModuleNotFound"):
        jobs._result("job", 1, unknown)


def test_what_a_process_has_started_ends_with_it() -> None:
    """It would keep the output open."""

    def leave_one_behind() -> int:
        import subprocess

        return subprocess.Popen(["sleep", "90"]).pid

    start = time.monotonic()
    (pid,) = run(leave_one_behind)
    assert time.monotonic() - start < 60
    while time.monotonic() - start < 60 and _runs(pid):
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # empty as soon as it has ended
    except OSError:
        return False


def test_a_process_that_is_ended_before_it_begins() -> None:
    jobs.end_child("early")
    start = time.monotonic()
    call = jobs.pickled("job", time.sleep, (90,), {})
    assert jobs.run_child("early", call, {}, print).lost == "killed by SIGKILL"
    assert time.monotonic() - start < 60


def test_a_worker_that_is_gone_when_the_job_begins(capsys: pytest.CaptureFixture[str]) -> None:
    ended = []

    class Gone(Threads):
        def address(self) -> Any:
            return Outcome(lost="no answer")

        def end(self) -> None:
            ended.append(self)

    with pytest.raises(ProcessLostError, match="process 0 is gone: no answer"):
        jobs.run("job", b"", 2, 1, 5, {}, lambda: Gone(2))
    assert len(ended) == 2
    assert capsys.readouterr().err == "pullback: process 0: no answer; restart 1 of at most 1\n"


def test_restarts(capsys: pytest.CaptureFixture[str]) -> None:
    def fail_once() -> str:
        if os.environ["PULLBACK_RESTART"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return os.environ["PULLBACK_RESTART"]

    assert run(fail_once, restarts=2) == ["1"]
    assert capsys.readouterr().err == "pullback: process 0: killed by SIGKILL; restart 1 of at most 2\n"


def test_a_process_that_is_killed_or_leaves() -> None:
    with pytest.raises(ProcessLostError, match="process 0 is gone: killed by SIGKILL"):
        run(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(ProcessLostError, match="process 0 is gone: ended with exit status 3"):
        run(lambda: os._exit(3))


def test_others_are_ended_after_a_failure() -> None:
    start = time.monotonic()
    group = Threads(2)

    def wait(number: int) -> None:
        if number:
            time.sleep(100)
        raise ValueError("first")

    def start_alone(number: int, task: bytes, settings: Mapping[str, str]) -> None:
        alone = {"NUM_PROCESSES": "1", "PROCESS_ID": "0", "COORDINATOR_ADDRESS": group.address()}
        known = {**settings, **{f"PULLBACK_{name}": value for name, value in alone.items()}}
        Threads.start(group, number, jobs.pickled("job", wait, (number,), {}), known)

    group.start = start_alone  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="first"):
        jobs.run("job", b"", 2, 0, 0.2, {}, lambda: group)
    assert time.monotonic() - start < 60


def test_the_failure_that_others_followed_from_is_raised() -> None:
    lost = Outcome(error=jobs_error(ProcessLostError("psum", {1: "killed"})))
    killed = Outcome(lost="killed by SIGKILL")
    assert jobs._first([(0, lost), (1, killed)]) == (1, killed)
    assert jobs._first([(0, lost)]) == (0, lost)


def jobs_error(error: Exception) -> bytes:
    """The file of an error."""
    return pickle.dumps((pickle.dumps(error), "traceback"))


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match="job: processes must be an integer of at least 1, got 0"):
        run(print, processes=0)
    with pytest.raises(ArgumentError, match="job: restarts must be an integer of at least 0, got -1"):
        run(print, restarts=-1)
    with pytest.raises(ArgumentError, match="processes must be an integer of at least 1, got True"):
        run(print, processes=True)
    with pytest.raises(ArgumentError, match="job: grace must be a number of seconds, 0 or more, got 'long'"):
        run(print, grace="long")  # type: ignore[arg-type]
    for wrong in ({}, {"CPU": 0}, {"CPU": "1"}, {1: 1.0}, [("CPU", 1)]):
        with pytest.raises(ArgumentError, match="ray: resources must be a dictionary of positive numbers"):
            ray._bundle("ray", wrong)
    with pytest.raises(ArgumentError, match=r"devices_per_process must be an integer of at least 1, got 1\.5"):
        jobs.settings_of("job", 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="job: function must be a function, got 3"):
        jobs.pickled("job", 3, (), {})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="must be picklable"):
        jobs.pickled("job", print, (sys._getframe(),), {})
    with pytest.raises(MissingLibraryError, match=r"needs the Python library no_such.*pip install 'pullback\[ray\]'"):
        jobs.library("job", "no_such", "ray")
