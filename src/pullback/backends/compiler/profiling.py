"""Profiles of a process, by the profiler of ``jaxlib``.

It records events on the host and on devices, and writes them as an XSpace, which TensorBoard reads, and as a list of
events in Chrome's format. Pullback makes a file for Perfetto of the list, in which each operation of a compiled program
has its names in the user's program, with named scopes: the profiler knows only the compiler's names.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

from pullback.backends.compiler import client
from pullback.backends.devices import transfers
from pullback.backends.devices.devices import Device, default_device
from pullback.core.annotations import Decorator
from pullback.core.errors import ProfilerError
from pullback.core.locks import lock
from pullback.core.source import named_as

P = ParamSpec("P")
R = TypeVar("R")

PERFETTO = "perfetto_trace.json.gz"

_lock = lock(globals(), "_lock")
_session: Any = None
_log_dir = Path()
_perfetto = True
_link = False


# Sessions ------------------------------------------------------------------------------------------------------------


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = True,
    profiler_options: object = None,
) -> None:
    """Begin to record a profile of the process, until ``stop_trace``.

    Args:
      log_dir: the directory for the profile, which is made if it does not exist.
      create_perfetto_link: whether ``stop_trace`` prints a link that opens the profile in a browser on this machine,
        and waits until the browser has loaded it.
      create_perfetto_trace: whether to write ``perfetto_trace.json.gz`` too, which https://ui.perfetto.dev opens.
      profiler_options: a ``ProfileOptions``; by default Python's calls are recorded as well as compiled operations.

    Raises:
      ProfilerError: a profile is being recorded (a RuntimeError and ValueError).

    >>> import tempfile
    >>> from pullback import jit, profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     print(jit(lambda x: x + 1)(1.0))
    ...     profiler.stop_trace()
    2.0
    """
    global _session, _log_dir, _perfetto, _link
    with _lock:
        if _session is not None:
            raise ProfilerError(f"a profile is already being recorded, to {_log_dir}; call stop_trace first")
        client.client(default_device().target)  # so that there is a device to record
        options = client.profiler().ProfileOptions() if profiler_options is None else profiler_options
        try:
            _session = client.profiler().ProfilerSession(options)
        except RuntimeError as error:
            raise ProfilerError(f"the profiler cannot start: {error}") from None
        transfers.watchers.append(_transfer)
        _log_dir, _link = Path(log_dir), bool(create_perfetto_link)
        _perfetto = _link or create_perfetto_trace


def _transfer(transfer: transfers.Transfer) -> Any:
    """Return the event of a transfer, as a context: its name, its bytes, and what goes from where to where."""
    shape = "x".join(map(str, transfer.shape))  # the profiler separates arguments by commas
    return client.profiler().TraceMe(
        f"{transfer.direction.replace('_', '-')} transfer",
        bytes=transfer.nbytes, type=f"{transfer.dtype}[{shape}]",
        source=_end(transfer.source), target=_end(transfer.target),
    )  # fmt: skip


def _end(of_transfer: Any) -> str:
    """Name the source or the target of a transfer, such as ``cuda:0``."""
    if of_transfer is None:
        return "host"
    return f"{of_transfer.target}:{of_transfer.id}" if isinstance(of_transfer, Device) else "several devices"


def stop_trace() -> None:
    """End the profile that ``start_trace`` began, and write it.

    The files are in a directory named by the time, under ``plugins/profile/`` in ``log_dir``: ``*.xplane.pb`` for
    TensorBoard, and ``perfetto_trace.json.gz`` for https://ui.perfetto.dev, where operations of compiled programs have
    their names and scopes (``op_name``) as arguments.

    Raises:
      ProfilerError: no profile is being recorded, or the port for a link is not free (a RuntimeError and ValueError).

    >>> import os, tempfile
    >>> from pullback import profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     profiler.stop_trace()
    ...     os.listdir(folder)
    ['plugins']
    """
    global _session
    with _lock:
        if _session is None:
            raise ProfilerError("no profile is being recorded; call start_trace first")
        session, _session = _session, None
        transfers.watchers.remove(_transfer)
        before = set(_traces(_log_dir))
        session.stop_and_export(str(_log_dir))
        written = set(_traces(_log_dir)) - before if _perfetto else set()
        for path in written:
            _write_perfetto(path)
        link = _link
    if link:
        from pullback.backends.compiler import perfetto_link

        for path in written:
            perfetto_link.serve(path.with_name(PERFETTO))


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = True,
    profiler_options: object = None,
) -> Iterator[None]:
    """A context manager that records a profile of its block, and writes it.

    Args:
      log_dir, create_perfetto_link, create_perfetto_trace, profiler_options: as of ``start_trace``.

    Returns:
      A context manager.

    Raises:
      ProfilerError: a profile is being recorded (a RuntimeError and ValueError).

    >>> import pathlib
    >>> import tempfile
    >>> from pullback import jit, profiler
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with profiler.trace(directory):
    ...         out = jit(lambda x: x + 1)(1.0)
    ...     [path.name for path in pathlib.Path(directory).rglob("perfetto*")]
    ['perfetto_trace.json.gz']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


# Perfetto ------------------------------------------------------------------------------------------------------------


def _traces(log_dir: Path) -> list[Path]:
    return [p for p in log_dir.glob("plugins/profile/*/*.trace.json.gz") if p.name != PERFETTO]


def _write_perfetto(path: Path) -> None:
    """Copy the trace file ``path`` to ``PERFETTO`` in the same directory, and add the user's names of operations."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    operations = [e for e in events if "hlo_op" in e.get("args", ())]
    names = _operation_names({e["args"].get("hlo_module") for e in operations})
    for event in operations:
        args = event["args"]
        args.update(names.get((args.get("hlo_module"), args["hlo_op"]), {}))
    content = json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":"))
    with gzip.open(path.with_name(PERFETTO), "wt", encoding="utf-8", compresslevel=3) as file:
        file.write(content)


def _operation_names(modules: set[Any]) -> dict[tuple[str, str], dict[str, str]]:
    """Find the user's names for the instructions of compiled programs.

    Args:
      modules: the names of programs; other programs in memory are left out.

    Returns:
      For each pair (program name, instruction name) the names of the user's operations, in the form of
      :func:`_instructions`; an empty dictionary if two programs of the same name disagree.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    for executable in client.executables.living():
        text = executable.text()
        head = _MODULE.match(text)
        if head is None or head[1] not in modules:
            continue
        for instruction, names in _instructions(text).items():
            if found.setdefault((head[1], instruction), names) != names:
                found[head[1], instruction] = {}
    return found


def _instructions(text: str) -> dict[str, dict[str, str]]:
    """Find the user's operations that each instruction in a compiled program's text implements.

    Returns:
      For each instruction name a dictionary: ``op_name`` is the operation that the instruction comes from, and
      ``op_names`` lists the operations that are fused in it, separated by commas.
    """
    own: dict[str, str] = {}
    calls: dict[str, str] = {}
    inside: dict[str, list[str]] = {}
    here: list[str] = []
    for line in text.splitlines():
        computation = _COMPUTATION.match(line)
        if computation is not None:
            here = inside[computation[1]] = []
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            operation = _OP_NAME.search(line)
            if operation is not None:
                own[instruction[1]] = operation[1]
                if operation[1] not in here:
                    here.append(operation[1])
            called = _CALLS.search(line)
            if called is not None:
                calls[instruction[1]] = called[1]
    result = {name: {"op_name": operation_name} for name, operation_name in own.items()}
    for name, called_name in calls.items():
        fused = inside.get(called_name)
        if fused:
            result.setdefault(name, {})["op_names"] = ", ".join(fused)
    return result


_MODULE = re.compile(r"HloModule ([\w.\-]+)")
_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = ")
_OP_NAME = re.compile(r'metadata=\{[^}]*?op_name="([^"]*)"')
_CALLS = re.compile(r"calls=%?([\w.\-]+)")


# Annotations ---------------------------------------------------------------------------------------------------------


class TraceAnnotation:
    """A block that appears in the profile as an event.

    Args:
      name: the name of the event.
      metadata: numbers and text to show with it.

    >>> from pullback import profiler
    >>> with profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **metadata: Any) -> None:
        self._event = client.profiler().TraceMe(name, **metadata)

    def __enter__(self) -> TraceAnnotation:
        self._event.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._event.__exit__(*error)

    def set_metadata(self, **metadata: Any) -> None:
        """Show more numbers and text with the event."""
        self._event.set_metadata(**metadata)

    @staticmethod
    def is_enabled() -> bool:
        """Whether a profile is being recorded."""
        return bool(client.profiler().TraceMe.is_enabled())


class StepTraceAnnotation(TraceAnnotation):
    """A block that appears in the profile as a step, of training for example.

    Args:
      name: the name of the event.
      metadata: numbers and text to show with it; ``step_num`` is the number of the step.

    >>> from pullback import profiler
    >>> for step in range(2):
    ...     with profiler.StepTraceAnnotation("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **metadata: Any) -> None:
        super().__init__(name, _r=1, **metadata)


@overload
def annotate_function(func: Callable[P, R], name: str | None = None, **metadata: Any) -> Callable[P, R]: ...
@overload
def annotate_function(func: None = None, name: str | None = None, **metadata: Any) -> Decorator: ...
def annotate_function(func: Callable[..., Any] | None = None, name: str | None = None, **metadata: Any) -> Any:
    """A function whose calls appear in the profile as events.

    Args:
      func: any function; without it, a decorator is returned.
      name: the name of the event; by default the name of the function.
      metadata: numbers and text to show with it.

    Returns:
      The function, or a decorator.

    >>> from pullback import profiler
    >>> @profiler.annotate_function(name="double")
    ... def f(x):
    ...     return 2 * x
    >>> f(3)
    6
    """
    if func is None:
        return functools.partial(annotate_function, name=name, **metadata)
    event_name = name or getattr(func, "__qualname__", None) or type(func).__name__

    @named_as(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(event_name, **metadata):
            return func(*args, **kwargs)

    return call


# Servers and memory --------------------------------------------------------------------------------------------------

_server: Any = None


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server from which TensorBoard can request profiles of this process.

    The server listens on all addresses of the machine, and has no password: use it behind a firewall.

    Args:
      port: the number of a free port.
      requires_backend: whether to make the client of the default platform first.

    Returns:
      The server, an object of ``jaxlib``. It stops with :func:`stop_server`, or with the process.

    Raises:
      ProfilerError: a server is running (a RuntimeError and ValueError).

    >>> import socket
    >>> from pullback import profiler
    >>> with socket.socket() as listener:
    ...     listener.bind(("localhost", 0))
    ...     port = listener.getsockname()[1]
    >>> server = profiler.start_server(port)
    >>> profiler.stop_server()
    """
    global _server
    with _lock:
        if _server is not None:
            raise ProfilerError("a profiler server is running: call profiler.stop_server() first")
        if requires_backend:
            client.client(default_device().target)
        _server = client.profiler().start_server(port)
        return _server


def stop_server() -> None:
    """Stop the server that :func:`start_server` has started.

    Raises:
      ProfilerError: no server is running (a RuntimeError and ValueError).

    >>> from pullback import profiler
    >>> profiler.stop_server()
    Traceback (most recent call last):
        ...
    pullback.core.errors.ProfilerError: no profiler server is running
    """
    global _server
    with _lock:
        if _server is None:
            raise ProfilerError("no profiler server is running")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include a subprocess in the profiles of this process.

    Args:
      pid: the number of the subprocess, in which :func:`start_server` was called.
      port: the port of its server.

    Returns:
      A function that excludes the subprocess again.

    Raises:
      ProfilerError: it is this process, or it is registered already (a RuntimeError and ValueError).

    >>> import os
    >>> from pullback import profiler
    >>> profiler.register_subprocess(os.getpid(), 12345)
    Traceback (most recent call last):
        ...
    pullback.core.errors.ProfilerError: register_subprocess: ...
    """
    try:
        return client.profiler().register_subprocess(pid, port)  # type: ignore[no-any-return]
    except RuntimeError as error:
        raise ProfilerError(f"register_subprocess: {error}") from None


def device_memory_profile(backend: str | None = None) -> bytes:
    """Take a profile of the memory of a platform's devices: the arrays there and the compiled programs.

    Eager arrays on the CPU are NumPy's, and not in it.

    Args:
      backend: the name of the platform; by default that of the default device.

    Returns:
      A profile in the format of pprof, a protocol buffer.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback import profiler
    >>> len(profiler.device_memory_profile()) > 0
    True
    """
    return client.client(backend or default_device().target).heap_profile()  # type: ignore[no-any-return]


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Write the profile of :func:`device_memory_profile` to a file.

    Args:
      filename: the file, which is replaced if it exists.
      backend: the name of the platform; by default that of the default device.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).
      OSError: the file cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from pullback import profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.save_device_memory_profile(Path(folder, "memory.prof"))
    ...     Path(folder, "memory.prof").stat().st_size > 0
    True
    """
    Path(filename).write_bytes(device_memory_profile(backend))
