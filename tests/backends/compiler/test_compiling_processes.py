"""Processes that end, are interrupted, or fork while a thread compiles: each goes on, or ends at once, as it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import chosen

PREAMBLE = """
import os, signal, sys, threading, time, warnings
import numpy as np
import pullback as pb, pullback.numpy as jnp
from pullback.backends.compiler import background, client
warnings.filterwarnings("ignore", category=DeprecationWarning)  # Python's own, of forks with threads
signal.signal(signal.SIGINT, signal.default_int_handler)
pb.config.update("enable_compilation_cache", False)
pb.config.update("tiered", "on")
started, ended = threading.Event(), threading.Event()
real = client.compile_text
def compile_text(*args, **kwargs):
    started.set()
    out = real(*args, **kwargs)
    ended.set()
    return out
client.compile_text = compile_text

def f(x):
    for i in range(SIZE):
        x = jnp.sin(x) @ jnp.cos(x) + i
    return x.sum()

g = pb.jit(pb.grad(f))
x = jnp.ones((4, 4)) / 8
expected = np.asarray(pb.grad(f)(x))
def is_right(out):
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
def entry():
    return next(iter(g._compiled.values()))
assert is_right(g(x)) is None and not hasattr(entry(), "program")
assert started.wait(60)
time.sleep(DELAY)
"""
SMALL, LARGE = 2, 60
"""Programs that the compiler is through with soon, and not before the test is."""


def times(usual: int) -> list[object]:
    """How often a test runs: in the usual run so many times, with the slow tests three times, exhaustively twenty."""
    return [i if i < usual else pytest.param(i, marks=pytest.mark.slow) for i in range(chosen(3, 20))]


def run(code: str, size: int, i: int) -> tuple[int, str]:
    """The status and output of a process that does something while a thread compiles, at another moment for each i."""
    source = PREAMBLE.replace("SIZE", str(size)).replace("DELAY", str(0.01 * i)) + code
    command = [sys.executable, "-X", "faulthandler", "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    print(done.stderr[-3000:])  # which is shown if the test fails
    return done.returncode, done.stdout


@pytest.mark.parametrize("i", times(1))
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_it_ends_with_its_own_status(size: int, i: int) -> None:
    code = """
import atexit
atexit.register(lambda: print("at the end"))
print("without a line end", end="; ")
sys.exit(7)
"""
    assert run(code, size, i) == (7, "without a line end; at the end\n")


@pytest.mark.parametrize("i", times(0))
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_it_ends_by_an_error(size: int, i: int) -> None:
    assert run("raise ValueError", size, i) == (1, "")
    assert run("signal.raise_signal(signal.SIGINT)", size, i) == (-signal.SIGINT, "")


def test_no_destructor_of_what_the_compiler_uses_runs() -> None:
    """One that is registered while Python is torn down stands for those that the compiler registers meanwhile."""
    code = """
import builtins, ctypes
libc = ctypes.CDLL(None)
class Late:
    register, abort = libc.on_exit, libc.abort
    def __del__(self):
        assert background._closing
        self.register(self.abort, None)
        print("registered")
builtins.late, builtins.background = Late(), background
sys.exit(3)
"""
    assert run(code, LARGE, 0) == (3, "registered\n")


def test_no_thread_comes_back_when_python_is_gone() -> None:
    """The process ends half a second later than Python here, in which jaxlib asks for Python's lock twice."""
    code = """
import ctypes
libc = ctypes.CDLL(None)
libc.__cxa_thread_atexit_impl(libc.usleep, 500_000, libc._exit)
sys.exit(3)
"""
    assert run(code, 200, 0) == (3, "")


@pytest.mark.parametrize("i", times(0))
def test_the_compiler_comes_back_while_python_is_torn_down(i: int) -> None:
    code = """
import builtins
class Late:
    write, sleep, time, ended = os.write, time.sleep, time.monotonic, ended
    def __del__(self):
        begin = self.time()
        while not self.ended.is_set() and self.time() < begin + 0.5:
            self.sleep(0.01)
        self.sleep(0.1)
builtins.late = Late()
"""
    assert run(code, 4 + i % 4, 0) == (0, "")


STATE_AT_THE_END = """
import builtins
class Late:
    write, ended = os.write, ended
    def __del__(self):
        self.write(1, b"ended" if self.ended.is_set() else b"at work")
builtins.late = Late()
"""


def test_it_does_not_wait_for_the_compiler() -> None:
    assert run(STATE_AT_THE_END, 200, 0) == (0, "at work")


@pytest.mark.parametrize(
    "other",
    [
        "systems._SLEEP.clear()",  # another processor
        "systems._file_of_call = lambda thread: '/nowhere'",  # no /proc
        "systems.ctypes.CDLL = lambda name: None",  # another C library
        "systems.ctypes.CDLL = systems.ctypes.PyDLL = len\ndel os.uname, os.O_CLOEXEC, os.pread",  # Windows
    ],
)
def test_on_other_systems_it_waits_and_says_nothing(other: str) -> None:
    code = f"from pullback.core import systems\n{other}\nos.dup2(1, 2)\n{STATE_AT_THE_END}"
    assert run(code, LARGE, 0) == (0, "ended")


@pytest.mark.parametrize("i", times(1))
def test_an_interrupt_does_not_touch_the_compiler(i: int) -> None:
    code = """
import random
hits, expects = 0, False
def handler(*args):  # the system may deliver a signal after its timer was stopped
    if expects:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
while not ended.is_set():
    try:
        expects = True
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.02 * random.random())
        while not ended.is_set():
            g(x)
        expects = False
    except KeyboardInterrupt:
        expects = False
        hits += 1
        is_right(g(x))
assert hits
for _ in range(1000):
    is_right(g(x))
    if hasattr(entry(), "program"):
        break
    time.sleep(0.01)
assert hasattr(entry(), "program")
from pullback.core.trace import EVAL, state
assert state.trace is EVAL and not vars(pb.config)
"""
    assert run(code, LARGE, i % 10) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("i", times(1))
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_child_goes_on_eagerly(size: int, i: int) -> None:
    code = """
pid = os.fork()
if pid == 0:
    import faulthandler
    faulthandler.dump_traceback_later(20, exit=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        is_right(g(x))
        is_right(pb.jit(lambda x: pb.grad(f)(x))(x))
    assert [w.category.__name__ for w in caught] == ["ForkWarning"], caught
    assert not background._threads and not background._waiting
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
is_right(g(x))
assert ended.wait(60)
while not hasattr(entry(), "program"):
    is_right(g(x))
"""
    assert run(code, size, i) == (0, "")


def test_no_file_is_left_open() -> None:
    """Warnings are on: Python would warn of a file that is deleted and was not closed."""
    code = "warnings.simplefilter('always')\nos.dup2(1, 2)\n"
    assert run(code, 200, 0) == (0, "")


# What is compiled by default, and at the end --------------------------------------------------------------------------

PROGRAM = """
import logging, os, signal, threading
import pullback as pb, pullback.numpy as jnp
from pullback.backends.compiler import compile_progress, compile_times

def main():
    def f(x):
        for i in range(SIZE):
            x = jnp.sin(x) @ jnp.cos(x) + i
        return x.sum()
    g = pb.jit(pb.grad(f))
    g(jnp.ones((4, 4)) / 8)
    print(*[type(entry).__name__ for entry in g._compiled.values()])
"""


def run_program(code: str, size: int, cache: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process whose switches are those of a user's, with a cache of its own."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PULLBACK_")}
    environment = {**others, "PULLBACK_COMPILATION_CACHE_DIR": str(cache), **environment}
    source = PROGRAM.replace("SIZE", str(size)) + code
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100, env=environment)


def test_by_default_the_clock_decides_nothing(tmp_path: Path) -> None:
    """However long the compiler is expected to take, the first call is already that of the program."""
    done = run_program("compile_times.expected = lambda table: 60.0\nmain()", SMALL, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Compiled\n", "")


@pytest.mark.slow
def test_the_end_may_wait_for_the_compiler(tmp_path: Path) -> None:
    """Also for what nobody refers to any more; the next process finds it on disk."""
    code = "compile_progress.is_interactive = lambda: True\nmain()"
    waits = {"PULLBACK_TIERED": "on", "PULLBACK_COMPILE_AT_EXIT": "wait"}
    left = run_program(code, LARGE, tmp_path, PULLBACK_TIERED="on")
    assert (left.returncode, left.stdout, left.stderr) == (0, "Tiered\n", "")
    assert not list(tmp_path.iterdir())
    waited = run_program(code, LARGE, tmp_path, **waits)
    assert (waited.returncode, waited.stdout) == (0, "Tiered\n")
    assert "pullback: the process waits for the compiler before it ends (compile_at_exit)" in waited.stderr
    assert len(list(tmp_path.iterdir())) == 1
    code = "pb.config.update('log_compiles', True)\nlogging.basicConfig()\nmain()"
    again = run_program(code, LARGE, tmp_path, PULLBACK_TIERED="auto")
    assert (again.returncode, again.stdout) == (0, "Compiled\n")
    assert "loaded jit_f in" in again.stderr


def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    code = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is not Python's where the tests run in the background
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
timer.daemon = True
main()
timer.start()
"""
    waits = {"PULLBACK_TIERED": "on", "PULLBACK_COMPILE_AT_EXIT": "wait"}
    done = run_program(code, 300, tmp_path, **waits)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Tiered\n", "")
    assert not list(tmp_path.iterdir())


def test_a_choice_that_there_is_not_is_refused_in_the_environment_too(tmp_path: Path) -> None:
    done = run_program("", SMALL, tmp_path, PULLBACK_COMPILE_AT_EXIT="yes")
    assert done.returncode == 1
    assert "PULLBACK_COMPILE_AT_EXIT must be one of ('leave', 'wait'), got 'yes'" in done.stderr
