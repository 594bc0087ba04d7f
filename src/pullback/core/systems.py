"""Questions that Linux, macOS and Windows answer differently: cores, forks, files, processes, threads, the C library.

No other module names what one of these systems lacks: ``tests/project/test_systems.py`` looks. A function here uses
what the system offers, and returns an answer with which its caller can go on where the system offers nothing.

| question | Linux | macOS | Windows |
|---|---|---|---|
| :func:`cores` | the process's affinity | all cores | all cores |
| :func:`at_fork` | registers | registers | nothing: there are no forks |
| :func:`replace` | renames | renames | tries again while another process has the file open |
| :func:`user` | the effective user | the effective user | None: files have access lists |
| :func:`group_of_its_own` | a session | a session | a group of the console |
| :func:`signal_group` | the signal | the signal | Ctrl-Break |
| :data:`LONGEST_WAIT` | none | none | 0.2 s |
| :func:`is_stopped` | by ``waitid`` | by ``waitid``, from Python 3.13 | False |
| :func:`descriptors` | ``/proc/self/fd`` | ``/dev/fd`` | none |
| :func:`listen_alone` | ``SO_REUSEADDR`` | ``SO_REUSEADDR`` | ``SO_EXCLUSIVEADDRUSE`` |
| :func:`processor` | ``/proc/cpuinfo`` | the machine's name | the machine's name |
| :func:`memory` | of the machine | of the machine | unknown: 2**47 bytes |
| :func:`glibc` | the C library, if it is glibc | None | None |
| :func:`rests` | the thread's system call | True: unknown | True: unknown |
| :data:`NVIDIA_FILES` | one exists where there is a GPU | none exists | none exists |
| :func:`end_before_destructors` | True | False | False |
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    import subprocess
    import threading

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod of Kubernetes, a container of Linux, finds the account with which it asks the cluster's server."""

NVIDIA_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
"""Files by which Linux shows a GPU of NVIDIA: of the driver, of containers, and of Linux within Windows."""

# Cores and memory ----------------------------------------------------------------------------------------------------


def cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """The bytes of memory of this machine; if the system does not say, what 47 bits of address can reach."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**47


_FEATURES = (
    *(b"vendor_id", b"cpu family", b"model", b"model name", b"flags"),  # x86
    *(b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part", b"Features"),  # Arm
    *(b"cpu", b"isa", b"uarch", b"features"),  # POWER, RISC-V, z/Architecture
)


def processor(source: str = "/proc/cpuinfo") -> tuple[Any, ...]:
    """The model and features of this machine's CPU, from the file ``source``; if not listed, the machine's name."""
    try:
        # Unbuffered and short: the kernel writes this file while it is read, with an interrupt for each CPU core.
        with open(source, "rb", buffering=0) as file:
            first = file.read(8192).split(b"\n\n")[0]
    except OSError:
        first = b""
    known = []
    for line in first.splitlines():
        name, _, value = line.partition(b":")
        if name.strip() in _FEATURES:
            known.append((name.strip(), value.strip()))
    if known:
        return tuple(known)
    import platform

    return platform.machine(), platform.node(), os.environ.get("PROCESSOR_IDENTIFIER")


def glibc() -> Any:
    """The C library, if it is glibc, whose allocator has settings; otherwise None."""
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim and library.gnu_get_libc_version else None
    except (AttributeError, OSError, TypeError):  # Windows has no library of the whole process
        return None


LIBRARY_ENDINGS = (".so", ".dylib", ".dll")
"""What the names of shared libraries end in, on one system or another."""

# Forks ---------------------------------------------------------------------------------------------------------------


def at_fork(
    *,
    before: Callable[[], object] | None = None,
    in_parent: Callable[[], object] | None = None,
    in_child: Callable[[], object] | None = None,
) -> None:
    """Register functions to be called at each fork of this process, for ever; systems without forks need none.

    Args:
      before: called before a fork, the function that was registered last first.
      in_parent: called in the parent, after a fork.
      in_child: called in the child, after a fork.
    """
    if not hasattr(os, "register_at_fork"):
        return
    given = {"before": before, "after_in_parent": in_parent, "after_in_child": in_child}
    os.register_at_fork(**{name: function for name, function in given.items() if function is not None})


# Files ---------------------------------------------------------------------------------------------------------------

READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags that open a file as bytes; where the system can, no link, and without a wait for a pipe's writer."""
WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
"""Flags that make a file which does not exist, and open it as bytes."""

_ATTEMPTS, _PAUSE = 10, 0.01
"""How often, and after how many seconds, :func:`replace` tries again: readers have a file open for milliseconds."""


def replace(source: str, target: str) -> bool:
    """Rename a file, instead of another one if there is one; processes see the old file or the new one.

    Windows refuses while a process has the old file open. Then the file is renamed some milliseconds later.

    Returns:
      Whether it was renamed. False if another process has the old file open all the time.

    Raises:
      OSError: the file cannot be renamed for another reason.
    """
    for attempt in range(_ATTEMPTS):
        try:
            os.replace(source, target)
            return True
        except PermissionError as error:
            # Errors have the number of Windows on Windows alone: 5 says access denied, 32 that the file is in use.
            if getattr(error, "winerror", None) not in (5, 32) or not os.path.exists(target):
                raise
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE)
    return False


def user() -> int | None:
    """The number of the user with whose rights this process runs; None if files belong to nobody, as on Windows.

    There, users' files are in directories that are private by access lists.
    """
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_own(found: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process, as far as the system says."""
    return user() in (None, found.st_uid)


def is_private(found: os.stat_result) -> bool:
    """Whether nobody but its owner may write to a file, as far as the system says."""
    return user() is None or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def write_text(stream: Any, text: str) -> None:
    r"""Write text to a stream such as ``sys.stdout``; a letter that its encoding lacks is written as ``\u...``.

    The encoding of pipes on Windows has 256 letters, and that of the C locale 128.
    """
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def reader_is_gone(error: OSError) -> bool:
    """Whether a write failed because the reader has closed the pipe: Windows says that the argument is invalid."""
    import errno

    return isinstance(error, BrokenPipeError) or error.errno == errno.EINVAL


# Descriptors and sockets ---------------------------------------------------------------------------------------------

_LISTS_OF_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


def descriptors() -> list[int]:
    """The numbers of the files and sockets that this process has open, and perhaps others; empty if it cannot know."""
    for directory in _LISTS_OF_DESCRIPTORS:
        with suppress(OSError):
            return list(map(int, os.listdir(directory)))
    return []


def listen_alone(made: socket.socket) -> None:
    """Let a socket that will listen have an address that was left a moment ago, and nobody else have it meanwhile.

    On Windows the option of the first name would also let two processes listen on one port.
    """
    import socket

    exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if exclusive is None else exclusive, 1)


# Other processes -----------------------------------------------------------------------------------------------------

LONGEST_WAIT = None if hasattr(os, "fork") else 0.2
"""The most seconds for which the main thread may wait for a lock: on Windows no signal handler runs meanwhile."""


def group_of_its_own() -> dict[str, Any]:
    """Keywords of ``subprocess.Popen`` with which a process, and all that it starts, can be signalled as a group."""
    if hasattr(os, "killpg"):
        return {"start_new_session": True}
    import subprocess

    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process that has a group of its own, and to what it has started, unless they have ended.

    Windows knows one signal of groups, Ctrl-Break, which is sent instead.
    """
    import signal

    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", number))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that has a group of its own at once; where the system can, also what it has started."""
    import signal

    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child process is stopped, as by SIGSTOP, and not by a debugger; False if the system does not say."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except (AttributeError, OSError):  # on systems that do not know it; or the process has ended
        return False


def go_on(process: subprocess.Popen[bytes]) -> None:
    """Let a stopped process that has a group of its own go on."""
    import signal

    if hasattr(signal, "SIGCONT"):
        signal_group(process, signal.SIGCONT)


# Threads, and the end of the process ---------------------------------------------------------------------------------

_FUTEX = {"x86_64": b"202", "aarch64": b"98"}
"""The number of the system call by which threads wait for locks, by architecture."""
_SLEEP = {"x86_64": b"34 ", "aarch64": b"73 "}
"""The number of the system call by which a thread sleeps for ever, by architecture."""


def _file_of_call(thread: threading.Thread) -> str:
    return f"/proc/self/task/{thread.native_id}/syscall"


def rests(thread: threading.Thread) -> bool:
    """Whether a thread waits in the system for anything other than the GIL, as the system reports its system call.

    Returns True if the system reports nothing. A wait for the GIL is recognized by its timeout. The report is read by C
    functions that keep the GIL: Python's file functions would release the GIL, and the thread would run on.
    """
    try:
        libc, flags, machine = ctypes.PyDLL(None), os.O_RDONLY | os.O_CLOEXEC, os.uname().machine
    except (AttributeError, OSError, TypeError):  # as on Windows
        return True
    text = ctypes.create_string_buffer(200)
    file = libc.open(_file_of_call(thread).encode(), flags)
    if file < 0:
        return True
    libc.read(file, text, len(text) - 1)
    libc.close(file)
    call, *arguments = text.value.split() or [b""]
    if call == b"running" or call != _FUTEX.get(machine):
        return call != b"running"
    return int(arguments[3], 16) == 0


class _Asleep:
    """An object whose deletion, when Python clears ``sys``, waits until all ``threads`` are asleep, up to one second.

    A thread that waits for the compiler takes the GIL every 0.2 s, to see whether the user interrupts it. If the thread
    takes the GIL during Python's shutdown, the thread is put to sleep; after Python has freed its thread states, the
    thread would crash.

    Raises:
      OSError: the system does not show the system calls of threads.
      KeyError: the number of the system call is not known for this CPU.
    """

    def __init__(self, threads: Sequence[threading.Thread]) -> None:
        self._awake: list[int] = []  # descriptors, for Python would warn of files that are never closed
        self._pause, self._read = _SLEEP[os.uname().machine], os.pread
        for thread in threads:
            self._awake.append(os.open(_file_of_call(thread), os.O_RDONLY | os.O_CLOEXEC))

    def __del__(self, now: Any = time.monotonic, sleep: Any = time.sleep) -> None:
        end = now() + 1  # other names of the module are gone by now
        while self._awake and now() < end:
            try:
                sleeps = self._read(self._awake[-1], 100, 0).startswith(self._pause)
            except OSError:  # the thread has ended
                sleeps = True
            if sleeps:
                self._awake.pop()  # the descriptor ends with the process
            else:
                sleep(0.001)


def end_before_destructors(threads: Sequence[threading.Thread]) -> bool:
    """Let the process end before the C library destroys what ``threads`` use, and put them to sleep when they return.

    * Python would end a thread that returns to it, within C++. The thread is put to sleep instead, as Python 3.14 does.
    * A thread that returns when Python is gone would crash: see :class:`_Asleep`.
    * The C library would destroy objects that C++ still uses. So a handler ends the process before that. To run first,
      the handler must be registered last, but a running compiler registers further destructors. So a thread-local
      destructor of this thread registers the handler: the C library runs thread-local destructors before all others.

    Returns:
      Whether the system offers all that. If not, nothing has changed.
    """
    try:
        libc = ctypes.CDLL(None)
        register, at_exit = libc.__cxa_thread_atexit_impl, libc.on_exit
        asleep = _Asleep(threads)
        if sys.version_info < (3, 14):
            ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)
    except (AttributeError, KeyError, OSError, TypeError):
        return False
    vars(sys)["_pullback_threads"] = asleep
    # The destructor, its argument, and an address in its library; on_exit's second argument is ignored.
    register(at_exit, libc._exit, libc._exit)
    libc.fflush(None)
    return True
