"""A process ends as it should although daemon threads are within the compiler or the runtime."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from pullback.core import systems
from tests.helpers import chosen

BEGINNING = """
import atexit, sys, threading, time
import numpy as np
import pullback, pullback.numpy as jnp
from pullback import jit, lax, pure_callback

started = threading.Event()


def loop(step):
    def run():
        i = 0
        while True:
            step(i)
            i += 1
            started.set()

    threading.Thread(target=run, daemon=True).start()


atexit.register(lambda: print("at exit", flush=True))
x = jnp.ones(64)
called = jit(lambda x: jnp.sin(x) @ x)
compiles = lambda i: jit(lambda x: jnp.sin(x * i) + jnp.exp(x).sum() + i)(x)
"""
KINDS = {
    "compiles": "loop(compiles)",
    "calls": "called(x); loop(lambda i: called(x))",
    "calls, and work between them": "called(x); loop(lambda i: (called(x), [j for j in range(9000)]))",
    "large": "f, y = jit(lambda x: (x @ x) @ x), jnp.ones((800, 800)); f(y); loop(lambda i: f(y).block_until_ready())",
    "a callback": "f = jit(lambda x: pure_callback(np.sin, x, x)); f(x); loop(lambda i: f(x))",
    "a slow callback": (
        "f = jit(lambda x: pure_callback(lambda v: (time.sleep(0.03), np.sin(v))[1], x, x)); f(x); loop(lambda i: f(x))"
    ),
    "puts and fetches": "loop(lambda i: np.asarray(pullback.device_put(np.ones(999), pullback.devices()[0]) + 1))",
    "several": "called(x); [loop(lambda i: called(x)) for _ in range(3)]; loop(compiles)",
    "an error of its own": "called(x); loop(lambda i: called(x)); loop(lambda i: called(x))",
    "collectives": """
pullback.config.update("num_cpu_devices", 2)
f = pullback.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
y = np.ones((2, 8), "float32")
f(y)
loop(lambda i: f(y))
""",
    "a loop that takes long": """
f = jit(lambda x: lax.fori_loop(0, 10**9, lambda i, c: jnp.sin(c), x))
threading.Thread(target=lambda: f(x).block_until_ready(), daemon=True).start()
time.sleep(0.5)
started.set()
""",
    "a thread that is no daemon": "threading.Thread(target=lambda: print(called(x).shape)).start(); started.set()",
}
END = "started.wait(); time.sleep({delay}); print('end'); {last}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_process_ends_with_its_own_status(kind: str) -> None:
    fails = kind == "an error of its own"
    for i in range(chosen(2, 20)):
        last = "raise ValueError('of the program')" if fails else "sys.exit(3)"
        program = BEGINNING + KINDS[kind] + "\n" + END.format(delay=0.02 + 0.013 * i, last=last)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == (1 if fails else 3), (done.stdout, done.stderr)
        assert done.stdout.replace("()\n", "") == "end\nat exit\n"
        assert done.stderr.count("Traceback") == fails, done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not say what threads wait for")
def test_threads_that_wait_rest_and_threads_at_work_do_not() -> None:
    """One that waits for the interpreter's lock is at work: it would get into the runtime next."""
    stop, held = threading.Event(), threading.Lock()
    held.acquire()
    busy = lambda: [None for _ in iter(stop.is_set, True)]
    runs = {"waits": held.acquire, "sleeps": lambda: time.sleep(1), "works": busy}
    threads = {name: threading.Thread(target=run, daemon=True) for name, run in runs.items()}
    try:
        for thread in threads.values():
            thread.start()
        time.sleep(0.1)
        found = [{name: systems.rests(thread) for name, thread in threads.items()} for _ in range(20)]
    finally:
        stop.set()
        held.release()
    assert all(each["waits"] and each["sleeps"] and not each["works"] for each in found)


@pytest.mark.slow
def test_a_function_at_exit_finds_the_threads_at_work() -> None:
    """What users register before the end runs before threads are asked to end: a thread may be told, and joined."""
    program = BEGINNING + (
        "done = []\n"
        "stop = threading.Event()\n"
        "def run():\n"
        "    while not stop.is_set():\n"
        "        called(x); started.set()\n"
        "    done.append(called(x).shape)\n"
        "t = threading.Thread(target=run, daemon=True); t.start()\n"
        "atexit.register(lambda: (stop.set(), t.join(), print(done)))\n"
        "started.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[()]\nat exit\n", "")
