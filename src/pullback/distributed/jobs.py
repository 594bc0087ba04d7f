"""Jobs of several processes on clusters that run functions: what those of Ray and of Dask share.

A worker of the cluster starts a process of its own for the job, since a worker that has used Pullback alone cannot join
others. The process gets its function as a file, and its place in the job by environment variables.
"""

from __future__ import annotations

import importlib
import io
import math
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pullback.core import systems
from pullback.core.arguments import require_function
from pullback.core.errors import ArgumentError, DistributedError, MissingLibraryError, ProcessLostError


class Outcome(NamedTuple):
    """How a process of a job ended: with the pickle of its result, with that of its error, or by ``lost``, as text."""

    result: bytes | None = None
    error: bytes | None = None
    lost: str = ""


class Workers(Protocol):
    """The workers of a cluster that run one attempt of a job."""

    def address(self) -> str | Outcome:
        """Return the address and a free port of the machine of worker 0, ``"10.0.0.1:1234"``; or how it was lost."""

    def start(self, number: int, task: bytes, settings: Mapping[str, str]) -> None:
        """Let worker ``number`` call :func:`run_child`."""

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        """Return the workers that have ended since the last call, after waiting for one for so many seconds."""

    def end(self) -> None:
        """End all that still run, and free the workers."""


LOOK = 0.5
"""How long to wait for the end of a process before looking after the others, in seconds."""
_children: dict[str, subprocess.Popen[bytes]] = {}
"""The children of this worker, by the name of the job and of the process."""
_ended: set[str] = set()
"""The names of children that were ended, perhaps before they had begun."""


def free_address(host: str) -> str:
    """Return ``host`` with a port that is free on this machine."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return f"{host}:{probe.getsockname()[1]}"


def run_child(key: str, task: bytes, settings: Mapping[str, str], say: Callable[[str], None]) -> Outcome:
    """Run a pickled function in a new process of this machine, and wait for it.

    What the process has started ends with it.

    Args:
      key: a name of its own, by which :func:`end_child` finds the process.
      task: the pickle of ``(function, args, kwargs)``.
      settings: environment variables.
      say: takes each line of the output of the process.
    """
    with tempfile.TemporaryDirectory(prefix="pullback-job-") as folder:
        where = Path(folder)
        (where / "task").write_bytes(task)
        paths = os.pathsep.join(filter(None, sys.path))
        with subprocess.Popen(
            [sys.executable, "-m", "pullback.distributed.child", folder],
            env={**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", **settings},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **systems.group_of_its_own(),
        ) as process:  # fmt: skip
            _children[key] = process
            if key in _ended:
                systems.kill_group(process)
            threading.Thread(target=_end_what_it_started, args=(process,), daemon=True).start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    say(line.decode(errors="replace").rstrip("\r\n"))
                code = process.wait()
            finally:
                systems.kill_group(process)
                del _children[key]
        if (where / "result").exists():
            return Outcome(result=(where / "result").read_bytes())
        if (where / "error").exists():
            return Outcome(error=(where / "error").read_bytes())
    return Outcome(lost=f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}")


def _end_what_it_started(process: subprocess.Popen[bytes]) -> None:
    """Wait for a child, and end what it has started, which would keep its output open."""
    process.wait()
    systems.kill_group(process)


def end_child(key: str) -> None:
    """End a process that :func:`run_child` started in this worker, or will start."""
    _ended.add(key)
    process = _children.get(key)
    if process is not None:
        systems.kill_group(process)


def pickled(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], pickler: Any = None
) -> bytes:
    """Return the pickle of a call, of functions in the user's program too.

    Args:
      name: the function that the user called, for error messages.
      function, args, kwargs: the call.
      pickler: a subclass of cloudpickle's class ``Pickler``; by default this class.

    Raises:
      ArgumentError: ``function`` cannot be called (a TypeError), or something cannot be pickled.
    """
    import cloudpickle

    require_function(name, "function", function)
    content = io.BytesIO()
    try:
        (pickler or cloudpickle.Pickler)(content).dump((function, tuple(args), dict(kwargs)))
        return content.getvalue()
    except Exception as error:
        raise ArgumentError(f"{name}: the function and its arguments must be picklable: {error}") from error


def run(
    name: str, call: bytes, processes: int, restarts: int, grace: float, settings: Mapping[str, str],
    workers: Callable[[], Workers],
) -> list[Any]:  # fmt: skip
    """Run a job on workers, and again if it fails, and return the results of all processes.

    Args:
      name: the function that the user called, for error messages.
      call: the pickle of the call, see :func:`pickled`.
      processes: the number of processes.
      restarts: how many times to start all processes again after a failure.
      grace: how long the others may go on after a failure, in seconds.
      settings: environment variables of all processes.
      workers: finds workers, for each attempt anew.

    Raises:
      ProcessLostError: a process was killed, or the machine of one is gone, in the last attempt (a RuntimeError).
      Exception: what the function raised in the last attempt, in the process that failed first.
    """
    for what, value, least in (("processes", processes, 1), ("restarts", restarts, 0)):
        _check_count(name, what, value, least)
    check_seconds(name, "grace", grace)
    for attempt in range(restarts + 1):
        failures, results = _attempt(workers(), processes, call, grace, {**settings, "PULLBACK_RESTART": str(attempt)})
        if not failures:
            return [_result(name, number, results[number]) for number in range(processes)]
        if attempt < restarts:
            print(
                f"pullback: {_text(failures)}; restart {attempt + 1} of at most {restarts}", file=sys.stderr, flush=True
            )
    raise _error(name, failures)


def _attempt(
    group: Workers, processes: int, call: bytes, grace: float, settings: Mapping[str, str]
) -> tuple[list[tuple[int, Outcome]], dict[int, bytes]]:
    """Run all processes once; return those that failed, in the order of failing, and the results of the others."""
    known = {
        **settings, "PULLBACK_NUM_PROCESSES": str(processes), "PULLBACK_JOB_TOKEN": secrets.token_hex(16),
    }  # fmt: skip
    failures: list[tuple[int, Outcome]] = []
    results: dict[int, bytes] = {}
    try:
        address = group.address()
        if isinstance(address, Outcome):
            return [(0, address)], {}
        known["PULLBACK_COORDINATOR_ADDRESS"] = address
        for number in range(processes):
            group.start(number, call, {**known, "PULLBACK_PROCESS_ID": str(number)})
        deadline: float | None = None
        while len(failures) + len(results) < processes:
            left = LOOK if deadline is None else min(LOOK, deadline - time.monotonic())
            if left <= 0:
                break
            for number, outcome in group.ended(left):
                if outcome.result is not None:
                    results[number] = outcome.result
                else:
                    failures.append((number, outcome))
                    deadline = deadline or time.monotonic() + grace
    finally:
        group.end()
    return failures, results


def _result(name: str, number: int, result: bytes) -> Any:
    """Return the result of a process.

    Raises:
      DistributedError: it cannot be unpickled in this process (a RuntimeError).
    """
    try:
        return pickle.loads(result)
    except Exception as error:
        raise DistributedError(
            f"{name}: the result of process {number} cannot be unpickled here: {type(error).__name__}: {error}"
        ) from error


def _raised(error: bytes) -> tuple[BaseException, str]:
    """Return the exception of a process with its traceback; a RuntimeError if it cannot be unpickled here."""
    pickled, text = pickle.loads(error)
    try:
        found = pickle.loads(pickled)
    except Exception:  # this process lacks its class
        found = RuntimeError(text.strip().splitlines()[-1])
    return found, text


def _first(failures: Sequence[tuple[int, Outcome]]) -> tuple[int, Outcome]:
    """Return the failure that the others followed from: not that of a process which missed another."""
    for number, outcome in failures:
        if outcome.error is None or not isinstance(_raised(outcome.error)[0], ProcessLostError):
            return number, outcome
    return failures[0]


def _text(failures: Sequence[tuple[int, Outcome]]) -> str:
    number, outcome = _first(failures)
    if outcome.error is None:
        return f"process {number}: {outcome.lost}"
    error, _ = _raised(outcome.error)
    return f"process {number} raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _error(name: str, failures: Sequence[tuple[int, Outcome]]) -> BaseException:
    """Return the exception to raise: that of the process which failed first, with its traceback as a note."""
    number, outcome = _first(failures)
    if outcome.error is None:
        return ProcessLostError(name, {number: outcome.lost})
    error, text = _raised(outcome.error)
    error.add_note(f"raised in process {number} of the job:\n{text}")
    return error


def _check_count(name: str, what: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name}: {what} must be an integer of at least {least}, got {value!r}")


def check_seconds(name: str, what: str, value: Any) -> None:
    """Raise an ArgumentError unless an argument is a number of seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ArgumentError(f"{name}: {what} must be a number of seconds, 0 or more, got {value!r}")


def settings_of(name: str, devices: int | None) -> dict[str, str]:
    """Return the environment variables of the number of CPU devices.

    Raises:
      ArgumentError: it is not a positive integer (a ValueError).
    """
    if devices is None:
        return {}
    _check_count(name, "devices_per_process", devices, 1)
    return {"PULLBACK_NUM_CPU_DEVICES": str(devices)}


def library(name: str, module: str, extra: str) -> Any:
    """Return the module of a library.

    Raises:
      MissingLibraryError: it is not installed (an ImportError).
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingLibraryError(
            f"{name} needs the Python library {module}, which is not installed: pip install 'pullback[{extra}]'"
        ) from None
