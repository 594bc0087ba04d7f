"""Calls that are made on threads of their own, and left behind."""

from __future__ import annotations

import threading
import weakref

import pytest

from pullback.backends.processes.calls import Call, Callers


@pytest.fixture
def callers():
    made = Callers()
    yield made
    made.stop(20)


def test_results_and_errors(callers):
    for _ in range(3):
        call = Call(lambda: threading.current_thread())
        callers.begin(call)
        assert call.wait(20)
        assert call.wait(0)
        callers.give_back(call)
        assert call.result().name == "pullback-call"
    assert len(callers._all) == 1  # one thread made all of them
    failing = Call(lambda: 1 / 0)
    callers.begin(failing)
    assert failing.wait(20)
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_a_call_that_is_left_behind(callers):
    """The next call has another thread; the first can still be waited for, and its thread ends afterwards."""
    go_on = threading.Event()
    slow, quick = Call(go_on.wait), Call(lambda: 3)
    callers.begin(slow)
    assert not slow.wait(0.01)
    callers.begin(quick)
    assert quick.wait(20)
    assert quick.result() == 3
    assert not slow.wait_or_prevent(0.01)
    go_on.set()
    assert slow.wait_or_prevent(20)
    threads = [caller.thread for caller in callers._all]
    callers.stop(20)
    assert not any(thread.is_alive() for thread in threads)


def test_a_call_that_is_left_before_it_begins(callers):
    """An interrupt may come before the thread has the call: then nobody makes it."""
    made = []
    call = Call(lambda: made.append(1))
    assert call.wait_or_prevent(0)
    callers.begin(call)
    after = Call(lambda: 4)
    callers.begin(after)
    assert after.wait(20)
    assert call.wait_or_prevent(0)
    call.run()
    assert made == []


def test_a_call_that_has_ended_keeps_nothing(callers):
    class Large:
        pass

    large = Large()
    gone = weakref.ref(large)
    call = Call(lambda large=large: large)
    callers.begin(call)
    assert call.wait(20)
    callers.give_back(call)
    assert call.result() is large
    callers.stop(20)
    del large
    assert gone() is None
