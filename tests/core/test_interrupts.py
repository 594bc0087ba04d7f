"""Interrupts, at any moment: the process goes on, and so does what is called next."""

import _thread
import signal
import subprocess
import sys
import threading
import time

import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.core import interrupts
from pullback.core.config import config
from pullback.core.interrupts import uninterrupted
from pullback.core.trace import EVAL, recorders, state


@pytest.fixture(autouse=True)
def interrupts_are_not_ignored():
    """A shell starts what it runs in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(seconds, count=1):
    """Interrupt the main thread some times."""

    def run():
        for _ in range(count):
            time.sleep(seconds)
            _thread.interrupt_main()

    threading.Thread(target=run, daemon=True).start()


def test_an_interrupt_is_raised_after_the_work():
    done = []

    def work():
        time.sleep(0.3)
        done.append(threading.get_ident())

    interrupting(0.05, count=3)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert len(done) == 1
    assert done[0] != threading.get_ident()
    assert uninterrupted(lambda: 3) == 3


def test_an_error_of_the_work_is_raised_as_it_is():
    error = ValueError("no")

    def work():
        raise error

    with pytest.raises(ValueError, match="no") as caught:
        uninterrupted(work)
    assert caught.value is error
    interrupting(0.05)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(lambda: time.sleep(0.2) or work())


def test_on_other_threads_and_without_more_threads_the_work_is_done_directly(monkeypatch):
    where = []
    thread = threading.Thread(target=lambda: where.append(uninterrupted(threading.get_ident)))
    thread.start()
    ident = thread.ident
    thread.join()
    assert where == [ident]

    def none_left(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(interrupts._thread, "start_new_thread", none_left)
    assert uninterrupted(threading.get_ident) == threading.get_ident()


def test_an_interrupt_before_the_thread_starts_does_not_lose_the_work(monkeypatch):
    start, calls = _thread.start_new_thread, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return start(*args)

    monkeypatch.setattr(interrupts._thread, "start_new_thread", interrupted)
    done = []
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(lambda: done.append(1))
    assert done == [1]


def test_a_signal_handler_may_compile_while_the_compiler_works():
    run_alone("""
compiled = []
def handler(*args):
    compiled.append(float(pb.jit(lambda x: jnp.cos(x) - 3)(0.0)))
signal.signal(signal.SIGALRM, handler)
for delay in (0.005, 0.02, 0.04):
    signal.setitimer(signal.ITIMER_REAL, delay)
    new_program(1 + delay)(x)
    while not compiled:
        time.sleep(0.01)
    assert compiled.pop() == -2.0
""")


@pytest.mark.slow
def test_interrupts_at_random_moments_of_compiling():
    run_alone("""
expects = False
def handler(*args):  # the system may deliver a signal after its timer was stopped
    if expects:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
chance, hits, tries, times = random.Random(0), 0, 0, []
for i in range(3):
    start = time.perf_counter()
    new_program(-1 - i)(x).block_until_ready()
    times.append(time.perf_counter() - start)
while hits < 30:
    f = new_program(tries)
    tries += 1
    try:
        expects = True
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.001, max(min(times), 0.002)))
        f(x).block_until_ready()
        expects = False
    except KeyboardInterrupt:
        expects = False
        hits += 1
        if hits % 5 == 0:
            assert np.isfinite(np.asarray(f(x))).all()  # the next call works
    assert state.trace is EVAL and not recorders
    assert tries < 300, times
""")


def run_alone(code):
    preamble = """
import random, signal, time
import numpy as np
import pullback as pb, pullback.numpy as jnp
from pullback.core.trace import EVAL, recorders, state
pb.config.update("enable_compilation_cache", False)
x = jnp.ones((4, 4))
def new_program(i):
    def f(x):
        for _ in range(2):
            x = jnp.sin(x) @ jnp.cos(x) + i
        return x.sum()
    return pb.jit(pb.grad(f))
"""
    done = subprocess.run([sys.executable, "-c", preamble + code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])


# At every call within Python ----------------------------------------------------------------------------------------


class Interrupt(BaseException):
    """Raised where Python looks for signals: when a function begins, and after a function in C."""


def interrupted_at(work, moment):
    """Run something that is interrupted at a moment; how many there are, if it comes to its end."""
    count = 0

    def look(frame, event, arg):
        nonlocal count
        inside = "/pullback/" in frame.f_code.co_filename
        if (event == "call" and inside and not frame.f_code.co_flags & 0x20) or event == "c_return":
            count += 1
            if count == moment:
                sys.setprofile(None)
                raise Interrupt

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    except Interrupt:
        return None
    finally:
        sys.setprofile(before)
    return count


X = jnp.arange(3.0)


@pb.custom_vjp
def twice(x):
    return 2 * x


twice.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))

WORKS = {
    "grad": lambda: pb.grad(lambda x: (jnp.sin(x) * x).sum())(X),
    "vmap of custom_vjp": lambda: pb.vmap(pb.grad(twice))(X),
    "make_jaxpr": lambda: pb.make_jaxpr(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x))(X),
    "linearize": lambda: pb.linearize(lambda x: pb.jit(jnp.sin)(x) * x, X)[1](X),
    "checkpoint": lambda: pb.grad(pb.checkpoint(lambda x: jnp.sin(x).sum()))(X),
    "scan": lambda: pb.jvp(lambda a: lax.scan(lambda c, x: (jnp.sin(c) * x, c), a, X)[0], (1.0,), (1.0,)),
    "lowering": lambda: pb.jit(lambda x: jnp.sin(x).sum()).lower(X),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_while_tracing_leaves_the_state_as_it_was(name):
    work = WORKS[name]
    work()
    before = dict(vars(config))
    moments = interrupted_at(work, None)
    assert moments > 50
    for moment in range(1, moments, 1 + moments // 60):
        interrupted_at(work, moment)
        assert (state.trace, state.axes, state.source_loc, state.scope, recorders) == (EVAL, {}, None, None, []), moment
        assert vars(config) == before, moment
    work()
