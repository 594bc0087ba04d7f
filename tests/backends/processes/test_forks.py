"""Processes that are forked after programs were compiled: each of them computes or raises, at once, and ends well."""

import os
import subprocess
import sys

import pytest

from pullback.backends.processes import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PREAMBLE = """
import faulthandler, os, sys, threading, time, warnings
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import pullback as pb, pullback.numpy as jnp
from pullback import lax
from pullback.core.errors import BackendError, ForkWarning
warnings.filterwarnings("ignore", category=DeprecationWarning)  # Python's own, of forks with threads

def in_child(work):
    "What a forked child says of some work: its result, or the error; and how the child ended."
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                start = time.perf_counter()
                out = str(work())
        except BaseException as error:
            out = f"{type(error).__name__}: {error}"
        out += f"|{sorted({w.category.__name__ for w in caught})}|{time.perf_counter() - start < 5}"
        os.write(writer, out.encode())
        sys.exit(0)
    os.close(writer)
    status = os.waitpid(pid, 0)[1]
    return os.read(reader, 10000).decode().split("|"), status
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", PREAMBLE + code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_a_child_computes_or_raises_at_once():
    out = run("""
f = pb.jit(lambda x: x * 2 + 1)
x = f(jnp.arange(3.0))
x.block_until_ready()
compiled = f.lower(x).compile()
works = {
    "reads what the parent computed": (lambda: np.asarray(x).tolist(), "[1.0, 3.0, 5.0]", []),
    "eager": (lambda: (jnp.arange(3.0) + 1).tolist(), "[1.0, 2.0, 3.0]", []),
    "a large eager operation": (lambda: float(jnp.sum(jnp.sign(jnp.ones(2_000_000)))), "2000000.0", []),
    "a program of the parent's": (lambda: f(x).tolist(), "[3.0, 7.0, 11.0]", ["ForkWarning"]),
    "a new program": (lambda: pb.jit(lambda x: x - 1)(x).tolist(), "[0.0, 2.0, 4.0]", ["ForkWarning"]),
    "a gradient": (lambda: pb.grad(lambda x: f(x).sum())(x).tolist(), "[2.0, 2.0, 2.0]", ["ForkWarning"]),
    "a loop": (lambda: float(lax.fori_loop(0, 300, lambda i, y: y + 1, 0.0)), "300.0", []),
    "on a thread": (lambda: on_a_thread(), "[3.0, 7.0, 11.0]", ["ForkWarning"]),
}
def on_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(f(x).tolist()))
    thread.start()
    thread.join()
    return found[0]
for name, (work, expected, warned) in works.items():
    (result, caught, quick), status = in_child(work)
    assert (result, caught, quick, status) == (expected, str(warned), "True", 0), (name, result, caught, quick, status)
refused = {
    "running the compiled <lambda> is not possible": lambda: compiled(x),
    "compiling, or using a device, is not possible": lambda: pb.device_put(np.arange(3.0)),
}
for message, work in refused.items():
    (result, caught, quick), status = in_child(work)
    assert result.startswith("BackendError: " + message) and "'spawn' or 'forkserver'" in result, result
    assert (quick, status) == ("True", 0)
assert f(x).tolist() == [3.0, 7.0, 11.0]  # the parent goes on as before
print("done")
""")
    assert out == "done\n"


def test_an_array_that_the_parent_is_still_computing_is_refused():
    run("""
slow = pb.jit(lambda x: lax.fori_loop(0, 1_000_000, lambda i, y: jnp.sin(y) + y[::-1], x))
pending = slow(jnp.zeros(100_000))
for work in (lambda: np.asarray(pending), lambda: pb.block_until_ready(pending), lambda: pending + 1):
    assert not pending._buffer.is_ready()
    (result, _, quick), status = in_child(work)
    assert "waiting for an array that the parent process was computing" in result, result
    assert "block_until_ready" in result and (quick, status) == ("True", 0)
sys.stdout.flush()
os._exit(0)  # without waiting for it
""")


def test_a_child_of_a_process_that_has_not_compiled_compiles():
    run("""
(result, caught, quick), status = in_child(lambda: pb.jit(lambda x: x + 1)(np.arange(3.0)).tolist())
assert (result, caught, status) == ("[1.0, 2.0, 3.0]", "[]", 0), (result, caught, status)
""")


def test_locks_that_other_threads_hold_are_new_in_a_child():
    run("""
from pullback.backends.compiler import background, client, programs
from pullback.core import array, tree_nodes, watching
pb.jit(lambda x: x + 1)(1.0)
held, go = threading.Event(), threading.Event()
def hold():
    with client._lock, programs._guard, background._guard, array._signatures_lock, tree_nodes._registry_lock:
        with watching._lock:
            held.set()
            go.wait()
threading.Thread(target=hold).start()
held.wait()
(result, caught, quick), status = in_child(lambda: pb.jit(lambda x: x + 1)(jnp.ones((7, 5))).shape)
go.set()
assert (result, status) == ("(7, 5)", 0), (result, status)
""")


def test_workers_that_use_eager_code():
    run("""
pb.jit(lambda x: x + 1)(1.0)
def work(i):
    return (jnp.arange(3.0) * i).sum().item()
with ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
    assert list(pool.map(work, range(4))) == [0.0, 3.0, 6.0, 9.0]
""")


def test_a_process_that_was_not_forked_is_told_nothing(recwarn):
    forks.warn_eager()
    assert not recwarn
    assert not forks.in_child()
