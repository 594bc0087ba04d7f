"""A forked child holds no lock, whoever held them in the parent, and has every module whole."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

import pullback

SOURCE = Path(pullback.__file__).parent
KINDS = (type(threading.Lock()), type(threading.RLock()))


def _every_lock() -> dict[str, Any]:
    """The locks that can be reached from the modules of the library: their own, and those of classes and objects."""
    for module in pkgutil.walk_packages(pullback.__path__, "pullback."):
        if not module.name.rpartition(".")[2].startswith("__"):
            importlib.import_module(module.name)
    modules = {name: module for name, module in sys.modules.items() if name.startswith("pullback.")}
    found: dict[str, Any] = {}
    seen: set[int] = set()
    waiting = [(name, x) for module_name, m in modules.items() for name, x in _parts(module_name, vars(m))]
    while waiting:
        name, x = waiting.pop()
        if id(x) in seen or isinstance(x, ModuleType):
            continue
        seen.add(id(x))
        if isinstance(x, KINDS):
            found[name] = x
        elif isinstance(x, (dict, list, tuple, set, frozenset)):
            waiting += _parts(name, x)
        elif isinstance(x, functools.cached_property) or str(_module_of(x)).startswith("pullback."):
            waiting += _parts(name, getattr(x, "__dict__", {}))
            for slot in {s for cls in type(x).__mro__ for s in vars(cls).get("__slots__", ())} - {"__weakref__"}:
                waiting += [(f"{name}.{slot}", getattr(x, slot))] if hasattr(x, slot) else []
    return found


def _module_of(x: Any) -> Any:
    return x.__module__ if isinstance(x, type) else type(x).__module__


def _parts(name: str, x: Any) -> list[tuple[str, Any]]:
    items = x.items() if isinstance(x, (dict, MappingProxyType)) else enumerate(x)
    return [(f"{name}.{key}", part) for key, part in list(items)]


def _in_child(check: Callable[[], None]) -> int:
    """The exit status of a child that runs a function: 0 if that returned, else it failed or took 10 seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            check()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _take_all() -> None:
    for lock in _every_lock().values():
        with lock:
            pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_holds_no_lock_that_another_thread_held() -> None:
    every = list({id(lock): lock for lock in _every_lock().values()}.values())
    assert len(every) > 15
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in every:
            lock.acquire()
        held.set()
        done.wait()
        for lock in every:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        status = _in_child(_take_all)
    finally:
        done.set()
        thread.join()
    assert status == 0
    _take_all()


def test_all_locks_are_made_in_one_place() -> None:
    """But for those of objects that a child makes anew, or that live as long as one compilation, connection or run."""
    kinds = r"threading\.(?:R?Lock|Condition|Event|Barrier|\w*Semaphore)\(|allocate_lock\(|functools.*cached_property"
    made = {
        str(path.relative_to(SOURCE)): len(re.findall(kinds, path.read_text()))
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "core" / "locks.py"
    }
    assert {path: n for path, n in made.items() if n} == {
        "backends/compiler/beside.py": 1,
        "backends/compiler/compile_progress.py": 1,
        "backends/compiler/programs.py": 1,
        "backends/processes/calls.py": 1,
        "backends/processes/distributed.py": 1,
        "backends/processes/links.py": 1,
        "core/interrupts.py": 2,
        "core/waiting.py": 1,
        "spmd/devices_in_turn.py": 1,
    }


BESIDE_IMPORTS = """
import os, signal, sys, threading, time, warnings
from pullback.core import locks
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks beside threads

def forked(work):
    "The exit status of a child that runs a function, within a minute."
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def _in_process(code: str, *args: str) -> str:
    command = [sys.executable, "-c", BESIDE_IMPORTS + code, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("logged", ["before", "after", "never"])
def test_a_fork_waits_for_an_import_by_another_thread(tmp_path: Path, logged: str) -> None:
    """Also for one that needs a lock that every fork holds, which ``logging`` does once it is imported."""
    needs = "" if logged == "never" else "logging.getLogger('slow')"
    slow = "import logging\n" * (logged == "before") + "import sys, time\nsys.begun.set()\ntime.sleep(0.3)\n"
    (tmp_path / "slow.py").write_text(slow + "import logging\n" * (logged == "after") + needs + "\nwhole = True\n")
    _in_process(
        """
sys.path.insert(0, sys.argv[1])
sys.begun = threading.Event()
locks._AWAITED.add("slow")
thread = threading.Thread(target=lambda: __import__("slow"))
thread.start()
assert sys.begun.wait(60)
start = time.monotonic()
assert forked(lambda: sys.exit(0 if __import__("slow").whole else 1)) == 0
assert time.monotonic() - start < locks.SECONDS
thread.join()
import slow, json  # the parent and its threads import afterwards
thread = threading.Thread(target=lambda: __import__("wave"))
thread.start()
thread.join()
assert slow.whole and "wave" in sys.modules
import logging
assert logging.getLogger("a") is not None
""",
        str(tmp_path),
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_does_not_wait_for_an_import_that_does_not_end(tmp_path: Path) -> None:
    """A whole program may run within the import of a module, and fork from another thread."""
    (tmp_path / "program.py").write_text("import sys\nsys.begun.set()\nsys.end.wait()\n")
    _in_process(
        """
sys.path.insert(0, sys.argv[1])
sys.begun, sys.end = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: __import__("program"))
thread.start()
assert sys.begun.wait(60)
start = time.monotonic()
assert forked(lambda: None) == 0
assert time.monotonic() - start < locks.SECONDS
sys.end.set()
thread.join()
""",
        str(tmp_path),
    )


FIRST_USES = """
import pullback, pullback.numpy as jnp
from pullback import grad, jit, random
from pullback.core.errors import ForkWarning
def uses():
    yield lambda: float(grad(lambda x: jnp.sin(x) * x)(2.0))
    yield lambda: jit(lambda x: jnp.cos(x) + 1)(jnp.ones(3)).tolist()
    yield lambda: random.normal(random.key(0), (3,)).tolist()
threads = [threading.Thread(target=use) for use in uses()]
for thread in threads:
    thread.start()
time.sleep(float(sys.argv[1]))
def in_child():
    warnings.simplefilter("ignore", ForkWarning)
    for use in uses():
        use()
assert forked(in_child) == 0
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize(
    "seconds", [0.1, *(pytest.param(s, marks=pytest.mark.slow) for s in (0, 0.05, 0.15, 0.2, 0.3, 0.45, 0.6, 0.9))]
)
def test_a_fork_beside_threads_that_use_functions_for_the_first_time(seconds: float) -> None:
    _in_process(FIRST_USES, str(seconds))
