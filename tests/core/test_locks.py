"""A forked child holds no lock, whoever held them in the parent."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.core.registry import Registry

SOURCE = Path(pullback.__file__).parent
KINDS = (type(threading.Lock()), type(threading.RLock()))


def _every_lock() -> dict[str, Any]:
    """The locks that modules of the library have, and their registries', by their names."""
    for module in pkgutil.walk_packages(pullback.__path__, "pullback."):
        if not module.name.rpartition(".")[2].startswith("__"):
            importlib.import_module(module.name)
    found = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("pullback."):
            for name, x in list(vars(module).items()):
                x = x._lock if isinstance(x, Registry) else x
                if isinstance(x, KINDS):
                    found[f"{module_name}.{name}"] = x
    return found


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
    assert len(every) > 12
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
    """But for those that live as long as one program's compilation, or as a connection, which no child has."""
    made = {
        str(path.relative_to(SOURCE)): len(re.findall(r"threading\.R?Lock\(", path.read_text()))
        for path in SOURCE.rglob("*.py")
    }
    assert {path: n for path, n in made.items() if n} == {
        "backends/compiler/programs.py": 1,
        "backends/processes/distributed.py": 1,
    }
