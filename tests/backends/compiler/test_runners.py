"""A runner makes calls on its thread, while the caller waits where signal handlers run: in C, and in Python."""

from __future__ import annotations

import _thread
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from pullback.backends.compiler import beside
from pullback.backends.host import own

KINDS = {"Python": beside.Runner} | ({} if own.loops is None else {"C": own.loops.Runner})


@pytest.fixture(params=[(kind, spin) for kind in KINDS for spin in (0.0, 1e-3)], ids=str)
def runner(request: pytest.FixtureRequest) -> Iterator[Any]:
    kind, spin = request.param
    made = KINDS[kind](spin, spin, 0.2)
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    yield made
    made.leave()
    thread.join(60)
    assert not thread.is_alive()


def test_results_and_errors_are_those_of_the_call(runner: Any) -> None:
    def failing(x: int) -> None:
        raise ValueError(x)

    for i in range(3):
        assert runner.call(lambda x: (x, threading.get_ident()), i)[0] == i
        with pytest.raises(ValueError, match=str(i)) as found:
            runner.call(failing, i)
        assert "failing" in "".join(traceback.format_tb(found.value.__traceback__))
        assert not runner.runs
    assert runner.call(lambda _: threading.get_ident(), None) != threading.get_ident()


def test_a_call_may_take_longer_than_its_caller_spins(runner: Any) -> None:
    for seconds in (0.01, 0.3):
        assert runner.call(lambda s: (time.sleep(s), s)[1], seconds) == seconds
        time.sleep(0.01)  # the thread sleeps


def test_other_threads_run_meanwhile(runner: Any) -> None:
    go_on = threading.Event()
    threading.Timer(0.05, go_on.set).start()
    assert runner.call(lambda _: go_on.wait(60), None)


def test_nothing_of_a_call_is_kept(runner: Any) -> None:
    class Large:
        pass

    def failing(x: object) -> None:
        raise ValueError

    large = Large()
    gone = weakref.ref(large)
    assert runner.call(lambda x: x, large) is large
    with suppress(ValueError):
        runner.call(failing, large)
    del large
    assert gone() is None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_what_a_signal_handler_raises_leaves_the_call(runner: Any) -> None:
    def handler(number: int, frame: object) -> None:
        raise InterruptedError("the handler")

    go_on = threading.Event()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="the handler"):
            runner.call(lambda _: go_on.wait(60), None)
        assert runner.runs
        assert not runner.wait(0.01)
        runner.leave()
        go_on.set()
        assert runner.wait(60)
        assert runner.wait(0)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_signal_handler_that_raises_nothing_only_takes_time(runner: Any) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert runner.call(lambda _: (time.sleep(0.3), len(seen))[1], None) == 1  # it ran before the call's end
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_that_comes_with_the_end_of_the_call(runner: Any) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.call(lambda _: _thread.interrupt_main(), None)  # it wakes nobody
        assert runner.wait(10)  # whether the outcome is forgotten or not
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")
def test_wrong_calls_of_a_runner_are_refused() -> None:
    made = own.loops.Runner(0.0, 0.0, 0.2)
    with pytest.raises(RuntimeError, match="a thread that is free"):
        made.call(len)
    made.leave()
    with pytest.raises(RuntimeError, match="a thread that is free"):
        made.call(len, "")
    with pytest.raises(TypeError):
        made.wait("long")
    with pytest.raises(TypeError):
        own.loops.Runner("0", 0.0, 0.2)
