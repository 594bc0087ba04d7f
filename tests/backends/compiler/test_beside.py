"""Ctrl-C ends the wait for a loop that does not end, compiled or eager, and the process goes on."""

import _thread
import signal
import subprocess
import sys
import threading

import pytest

import pullback.numpy as jnp
from pullback import jit, lax
from pullback.backends.compiler import beside
from pullback.core.errors import LeftRunningWarning

ENDLESS = """
import signal, sys, time, warnings
import pullback.numpy as jnp
from pullback import jit, lax
from pullback.core.errors import LeftRunningWarning

kind, size = sys.argv[1], int(sys.argv[2])
x = jit(lambda: jnp.ones(size))().block_until_ready()

def endless(x):
    return lax.while_loop(lambda c: c[1] >= 0, lambda c: (jnp.sin(c[0]), (c[1] + 1) % 1000), (x, 0))

@jit
def finite(x):
    return lax.while_loop(lambda c: c[1] < 5, lambda c: (jnp.sin(c[0]), c[1] + 1), (x, 0))[0]

f = jit(endless) if kind == "jit" else endless
expected = finite(x).block_until_ready()
if kind == "jit":
    f.lower(x).compile()
signal.signal(signal.SIGALRM, signal.default_int_handler)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        f(x)[0].block_until_ready()
    except KeyboardInterrupt:
        print("interrupted", [w.category is LeftRunningWarning for w in caught])
assert (finite(x) == expected).all() and float(jit(lambda x: x + 1)(1.0)) == 2.0
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_an_interrupt_ends_the_wait_for_an_endless_loop(kind: str, size: int) -> None:
    command = [sys.executable, "-c", ENDLESS, kind, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    assert done.stdout == ("interrupted [True]\n" if kind == "jit" else "interrupted []\n")


def test_programs_that_may_not_end_are_started_by_one_other_thread() -> None:
    threads = [beside.started(lambda _: threading.get_ident(), []) for _ in range(3)]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()

    found = []
    thread = threading.Thread(target=lambda: found.append(beside.started(lambda _: threading.get_ident(), [])))
    thread.start()
    thread.join()
    assert found == [thread.ident]  # it has no signal handlers that would have to run


def test_the_error_of_a_program_is_raised() -> None:
    def failing(buffers: int) -> None:
        raise MemoryError(buffers)

    for i in range(3):
        with pytest.raises(MemoryError, match=str(i)):
            beside.started(failing, i)
    assert beside.started(lambda buffers: buffers + 1, 1) == 2


def test_an_interrupted_program_is_left_behind_with_its_thread() -> None:
    end, ended = threading.Event(), threading.Event()
    used = beside.started(lambda _: threading.get_ident(), [])

    def endless(_: object) -> None:
        _thread.interrupt_main()
        end.wait()
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    try:
        with pytest.warns(LeftRunningWarning, match="goes on in the background"), pytest.raises(KeyboardInterrupt):
            beside.started(endless, [])
        assert beside.started(lambda _: threading.get_ident(), []) != used
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
        end.set()
    assert ended.wait(60)
    idle = [caller.thread for caller in beside._callers._idle]
    for thread in beside._callers.threads():
        if thread not in idle:
            thread.join(60)
            assert not thread.is_alive()


def test_a_handler_that_runs_a_program_meanwhile() -> None:
    """Here within the program that it would interrupt: the first thread is at work, so that another one starts it."""
    inner = []

    def handler(number: int, frame: object) -> None:
        inner.append(float(double(1.0)))
        go_on.set()

    go_on = threading.Event()
    double = jit(lambda x: lax.while_loop(lambda c: c < 2, lambda c: 2 * c, x))
    assert float(double(1.0)) == 2.0
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert beside.started(lambda _: (_thread.interrupt_main(), go_on.wait(60))[1], [])
    finally:
        signal.signal(signal.SIGINT, before)
    assert inner == [2.0]


def test_only_programs_with_loops_of_unknown_length_are_started_by_another_thread() -> None:
    def beside_main(f: object) -> bool:
        return getattr(jit(f).lower(1.0).compile().execute, "func", None) is beside.started

    assert beside_main(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + 1, x))
    assert beside_main(lambda x: jit(lambda x: lax.fori_loop(0, x.astype(int), lambda i, c: c + i, 0))(x))
    assert not beside_main(lambda x: lax.fori_loop(0, 10, lambda i, c: c + 1, x))
    assert not beside_main(lambda x: lax.scan(lambda c, _: (c + 1, c), x, None, 100))
    assert not beside_main(jnp.sin)
