"""What Linux, macOS and Windows answer differently: each function with what a system offers, and without it.

Processes play macOS and Windows: a module that Python runs when it starts takes away what these systems lack, so that
it is missing for Python's own library too, and in the processes that these start.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pullback.backends.compiler import disk_cache
from pullback.core import systems
from tests.helpers import ROOT

POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="about systems with POSIX")


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("processor\t: 0\nmodel name\t: A\ncpu MHz\t\t: 1.0\nflags\t\t: sse avx\n\nprocessor\t: 1\nflags\t: none\n", 2),
        ("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n", 3),
    ],
    ids=["x86", "Arm"],
)
def test_what_a_processor_can_do(lines: str, known: int, tmp_path: Path) -> None:
    source = tmp_path / "cpuinfo"
    source.write_text(lines)
    found = systems.processor(str(source))
    assert len(found) == known
    source.write_text(lines.replace("1.0", "2.0").replace("50", "60").replace("none", "sse"))
    assert systems.processor(str(source)) == found
    source.write_text(lines.replace("avx", "avx2").replace("asimd", "sve"))
    assert systems.processor(str(source)) != found


def test_a_machine_that_says_nothing_of_its_processor(tmp_path: Path) -> None:
    import platform

    assert systems.processor(str(tmp_path / "none"))[:2] == (platform.machine(), platform.node())


def test_cores_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 6}, raising=False)
    assert systems.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert systems.cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert systems.cores() == 1


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 7, "SC_PAGE_SIZE": 100}.__getitem__, raising=False)
    assert systems.memory() == 700
    monkeypatch.delattr(os, "sysconf")
    assert systems.memory() == 2**47


@POSIX
def test_functions_run_at_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[dict[str, Any]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **given: registered.append(given))
    systems.at_fork(before=print, in_parent=repr)
    systems.at_fork(in_child=str)
    assert registered == [{"before": print, "after_in_parent": repr}, {"after_in_child": str}]
    monkeypatch.delattr(os, "register_at_fork")
    systems.at_fork(before=print, in_child=repr)
    assert len(registered) == 2


@pytest.mark.parametrize(
    "library",
    [lambda name: len(name), lambda name: object(), lambda name: os.stat("/no/such/library")],
    ids=["Windows", "another C library", "none"],
)
def test_only_glibc_is_glibc(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library)
    assert systems.glibc() is None
    assert not systems.end_before_destructors([])


# Files ---------------------------------------------------------------------------------------------------------------


def refused(number: int | None) -> PermissionError:
    error = PermissionError(errno.EACCES, "it is used by another process")
    if number is not None:
        error.winerror = number  # type: ignore[attr-defined]
    return error


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_text("new", encoding="utf-8")
    target.write_text("old", encoding="utf-8")
    return str(source), str(target)


@pytest.mark.parametrize("number", [5, 32])
def test_a_file_that_is_read_elsewhere_is_replaced_later(
    number: int, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [refused(number), refused(number), None]
    real = os.replace

    def replace(source: str, target: str) -> None:
        error = outcomes.pop(0)
        if error is not None:
            raise error
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    assert systems.replace(*files)
    assert not outcomes
    assert Path(files[1]).read_text(encoding="utf-8") == "new"


def test_a_file_that_is_read_all_the_time_stays(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def replace(source: str, target: str) -> None:
        calls.append(source)
        raise refused(32)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert not systems.replace(*files)
    assert len(calls) == 10


@pytest.mark.parametrize("number", [None, 19])
def test_other_refusals_are_errors(number: int | None, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(source: str, target: str) -> None:
        raise refused(number)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):
        systems.replace(*files)


def test_a_refusal_without_a_file_to_replace_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(source: str, target: str) -> None:
        raise refused(5)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):
        systems.replace(str(tmp_path / "new"), str(tmp_path / "old"))


def test_the_cache_goes_on_while_another_process_reads_a_program(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "replace", lambda source, target: False)
    disk_cache._write(files[1], b"the same program")
    assert Path(files[1]).read_text(encoding="utf-8") == "old"
    assert sorted(os.listdir(tmp_path)) == ["new", "old"]  # the temporary file is gone


def test_a_drive_that_does_not_exist_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    with pytest.raises(FileNotFoundError):
        disk_cache._make(f"{os.sep}programs")


@POSIX
def test_files_belong_to_users_where_there_are_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch(0o600)
    found = file.stat()
    assert systems.user() == os.geteuid()
    assert systems.is_own(found)
    assert systems.is_private(found)
    file.chmod(0o622)
    assert not systems.is_private(file.stat())
    monkeypatch.setattr(os, "geteuid", lambda: found.st_uid + 1)
    assert not systems.is_own(found)
    monkeypatch.delattr(os, "geteuid")
    assert systems.user() is None
    assert systems.is_own(found)
    assert systems.is_private(file.stat())


def test_letters_that_a_stream_lacks_are_escaped() -> None:
    for encoding, expected in (("utf-8", "größe ∂"), ("cp1252", r"größe \u2202"), ("ascii", r"gr\xf6\xdfe \u2202")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        systems.write_text(stream, "größe ∂")
        stream.flush()
        assert stream.buffer.getvalue().decode(encoding) == expected  # type: ignore[attr-defined]


def test_a_reader_that_is_gone() -> None:
    assert systems.reader_is_gone(BrokenPipeError(errno.EPIPE, "a pipe"))
    assert systems.reader_is_gone(OSError(errno.EINVAL, "as Windows says it"))
    assert not systems.reader_is_gone(OSError(errno.ENOSPC, "no space"))


# Descriptors, sockets, processes and threads -------------------------------------------------------------------------


@POSIX
def test_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "rb") as file:
        assert file.fileno() in systems.descriptors()
        monkeypatch.setattr(systems, "_LISTS_OF_DESCRIPTORS", ("/no/such/folder", "/dev/fd"))
        assert file.fileno() in systems.descriptors()
    monkeypatch.setattr(systems, "_LISTS_OF_DESCRIPTORS", ("/no/such/folder",))
    assert systems.descriptors() == []


def test_nobody_else_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        def __init__(self) -> None:
            self.options: list[tuple[int, int, int]] = []

        def setsockopt(self, *option: int) -> None:
            self.options.append(option)  # type: ignore[arg-type]

    made: Any = Made()
    monkeypatch.delattr(socket, "SO_EXCLUSIVEADDRUSE", raising=False)
    systems.listen_alone(made)
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    systems.listen_alone(made)
    assert made.options == [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.SOL_SOCKET, -5, 1)]


def test_groups_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "killpg", lambda *args: None, raising=False)
    assert systems.group_of_its_own() == {"start_new_session": True}
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    assert systems.group_of_its_own() == {"creationflags": 512}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what threads do")
def test_threads_of_which_nothing_is_known_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    end = time.monotonic() + 20

    def compute() -> None:
        while time.monotonic() < end:
            sum(range(1000))

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    assert not all(systems.rests(thread) for _ in range(20))
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "PyDLL", lambda name: len(name))
        assert all(systems.rests(thread) for _ in range(20))
    with monkeypatch.context() as patch:
        patch.delattr(os, "uname")
        assert all(systems.rests(thread) for _ in range(20))
    end = 0
    thread.join()


# Processes that play other systems -----------------------------------------------------------------------------------

NO_PROC = """
import builtins, ctypes, os, signal, subprocess, sys
import numpy  # which asks for the name of the system, and then what Linux is called
real_open, real_list = builtins.open, os.listdir
def absent(path, *args, **kwargs):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(path)
    return real_open(path, *args, **kwargs)
def absent_list(path="."):
    if str(path).startswith(("/proc", "/dev")):
        raise FileNotFoundError(path)
    return real_list(path)
builtins.open, os.listdir = absent, absent_list
real_library = ctypes.CDLL
def take(module, *names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""
SYSTEMS = {
    "macOS": NO_PROC + """
take(os, "sched_getaffinity", "waitid")
class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if self._name is None:
            raise AttributeError(name)
        return super().__getattr__(name)
ctypes.CDLL = Library
""",
    "Windows": NO_PROC + """
import socket
in_c = ("pullback.backends.host.loops", "pullback.transforms.jit.quick")
for name in ("fcntl", "grp", "pwd", "resource", "termios", *in_c):
    sys.modules[name] = None
take(os, "fork", "forkpty", "register_at_fork", "sched_getaffinity", "sysconf", "uname", "pread", "waitid", "killpg",
     "setsid", "getuid", "geteuid", "getgid", "getegid", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
take(signal, "SIGKILL", "SIGCONT", "SIGSTOP", "SIGALRM", "SIGHUP")
socket.SO_EXCLUSIVEADDRUSE = socket.SO_REUSEADDR
real_popen = subprocess.Popen.__init__
def popen(self, *args, creationflags=0, **kwargs):
    assert "start_new_session" not in kwargs
    real_popen(self, *args, **kwargs)
subprocess.Popen.__init__ = popen
subprocess.CREATE_NEW_PROCESS_GROUP = 512
def library(name, *args, **kwargs):
    return real_library(name, *args, **kwargs) if name is not None else len(name)
ctypes.CDLL = ctypes.PyDLL = library
real_replace = os.replace
def replace(source, target):  # another process always has the programs open
    if os.path.exists(target) and os.path.basename(os.path.dirname(target)) == "programs":
        error = PermissionError(13, "in use", target)
        error.winerror = 32
        raise error
    real_replace(source, target)
os.replace = replace
""",
}  # fmt: skip
"""What a module does to Python when it starts, by the system that it plays."""

PROGRAM = '''
"""A program with letters beyond ASCII: ∂."""
import os
import numpy as np
import pullback
import pullback.numpy as jnp
from pullback.backends.compiler import disk_cache

@pullback.jit
def größe(x):
    return jnp.sum(jnp.sin(x) ** 2)

def loss(x):
    return größe(x) + 1.0

if __name__ == "__main__":
    x = jnp.arange(3.0)
    expected = np.sin(2 * np.arange(3.0))
    np.testing.assert_allclose(pullback.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x), expected, rtol=1e-5)
    np.testing.assert_allclose(pullback.jit(pullback.grad(loss))(x), expected, rtol=1e-5)
    large = jnp.ones(1 << 17) * 2 + 1
    assert large.sum() == 3 << 17
    assert pullback.random.normal(pullback.random.key(0), (4,)).shape == (4,)
    assert pullback.vmap(loss)(jnp.ones((2, 3))).shape == (2,)
    os.write(1, b"programs: %d" % disk_cache.usage()[0])
'''


class Played:
    """A folder that plays a system, with a program whose name has spaces and letters beyond ASCII."""

    def __init__(self, system: str, folder: Path) -> None:
        folder = folder / "a folder größe"
        (folder / "start").mkdir(parents=True)
        (folder / "start" / "sitecustomize.py").write_text(SYSTEMS[system], encoding="utf-8")
        self.program = folder / "my program ∂.py"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder / "start"), str(ROOT / "src")]),
            "PULLBACK_COMPILATION_CACHE_DIR": str(folder / "cache" / "programs"),
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "LC_ALL": "C",
            "PYTHONWARNINGS": "error",
        }

    def run(self, *arguments: str) -> str:
        """Run Python with some arguments; return what it writes."""
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode()


@pytest.fixture(params=SYSTEMS)
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Played:
    return Played(request.param, tmp_path)


@POSIX
def test_programs_run(played: Played) -> None:
    first = played.run(str(played.program))
    assert int(first.removeprefix("programs: ")) >= 2
    assert played.run(str(played.program)) == first


@POSIX
@pytest.mark.slow
def test_commands(played: Played) -> None:
    assert played.run("-m", "pullback", "run", str(played.program)).startswith("programs: ")
    shown = played.run("-m", "pullback", "show", f"{played.program}:loss", "--args", "f32[3]")
    assert r"gr\xf6\xdfe" in shown
    assert "devices: 1" in played.run("-m", "pullback", "info")
    assert "programs: " in played.run("-m", "pullback", "cache")
    assert "removed: " in played.run("-m", "pullback", "cache", "--clear")


@POSIX
@pytest.mark.slow
def test_processes_are_launched(played: Played) -> None:
    played.program.write_text(
        "import pullback\n"
        "pullback.distributed.initialize()\n"
        "print('process', pullback.process_index(), 'of', pullback.process_count(), 'gr\\xf6\\xdfe'.encode())\n",
        encoding="utf-8",
    )
    lines = played.run("-m", "pullback", "launch", "--processes", "2", str(played.program)).splitlines()
    assert sorted(lines) == [f"[{i}] process {i} of 2 b'gr\\xc3\\xb6\\xc3\\x9fe'" for i in range(2)]
