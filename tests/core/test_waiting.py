"""Progress of calls that take long: on a terminal, after a while, and nowhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import config, jit
from pullback.backends.compiler import compile_progress
from pullback.control import while_primitive
from pullback.core import waiting
from pullback.core.config import override
from pullback.derivatives import colour_jacobian
from pullback.derivatives.patterns import greedy
from pullback.scipy.optimize import minimize
from tests.helpers import ROOT

pty = pytest.importorskip("pty")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal on which progress is shown at once, by the library's own line."""
    stream = Terminal()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    monkeypatch.setattr(waiting, "PATIENCE", 0.02)
    monkeypatch.setattr(waiting, "INTERVAL", 0.02)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    return stream


def lines(stream: Terminal) -> list[str]:
    return [line.rstrip() for line in stream.getvalue().split("\r") if line.strip()]


def test_a_long_call_is_shown_and_the_line_goes(terminal: Terminal) -> None:
    done = [0]
    with waiting.waiting("work", "parts", 5000, lambda: done[0]):
        time.sleep(0.15)
        done[0] = 1234
        time.sleep(0.15)
    assert lines(terminal)[0] == "work: 0 s"
    assert lines(terminal)[-1] == "work: 1,234 of 5,000 parts, 0 s"
    assert terminal.getvalue().endswith(" \r")
    assert not waiting._here.is_waiting


def test_a_short_call_is_not(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 5.0)
    before = threading.active_count()
    with waiting.waiting("work"):
        pass
    assert terminal.getvalue() == ""
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


@pytest.mark.parametrize("why", ["the switch", "no terminal", "no stream", "a closed stream", "tracing"])
def test_where_nothing_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    def wait() -> None:
        with waiting.waiting("work"):
            assert not waiting._here.is_waiting
            time.sleep(0.1)

    if why == "tracing":
        jit(lambda x: [wait(), x][1])(1.0)
    else:
        closed = io.StringIO()
        closed.close()
        streams: dict[str, Any] = {"no terminal": io.StringIO(), "no stream": None, "a closed stream": closed}
        monkeypatch.setattr(waiting.sys, "stderr", streams.get(why, terminal))
        with override("progress", why != "the switch"):
            wait()
    assert terminal.getvalue() == ""


def test_a_notebook_counts_as_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting.sys, "stderr", io.StringIO())
    assert not waiting.is_interactive()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert waiting.is_interactive()
    shell.kernel = None  # type: ignore[assignment]  # IPython in a terminal, whose output is redirected
    assert not waiting.is_interactive()


def test_the_switch_is_that_of_compilations_too(terminal: Terminal) -> None:
    assert compile_progress._is_shown()
    with override("progress", False):
        assert not compile_progress._is_shown()
    with override("compile_progress", False):
        assert not compile_progress._is_shown()
        assert config.progress


def test_an_error_ends_the_line(terminal: Terminal) -> None:
    def fail() -> None:
        time.sleep(0.1)
        raise ArithmeticError

    with pytest.raises(ArithmeticError), waiting.waiting("work"):
        fail()
    assert terminal.getvalue().endswith(" \r")
    assert not waiting._here.is_waiting


def test_a_call_within_is_part_of_the_work(terminal: Terminal) -> None:
    with waiting.waiting("outer"), waiting.waiting("inner"):
        time.sleep(0.1)
    assert "inner" not in terminal.getvalue()
    assert "outer" in terminal.getvalue()


def test_without_further_threads_nothing_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with waiting.waiting("work"):
        time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_a_minimisation_counts_its_steps(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its inner loops, the line searches, are not counted; the result is the same."""

    def run() -> Any:
        fun = lambda x: jnp.sum((x[1:] - x[:-1] ** 2) ** 2 * 100 + (1 - x[:-1]) ** 2)
        return minimize(fun, jnp.linspace(-1, 1, 60), method="BFGS", tol=0.0, options={"maxiter": 400})

    counters = []
    original = while_primitive.take_counter

    def taken() -> Any:
        found = original()
        if found is not None:
            counters.append(found)
        return found

    monkeypatch.setattr(while_primitive, "take_counter", taken)
    monkeypatch.setattr(while_primitive, "FIRST_SLICE", 5)
    shown = run()
    (counter,) = counters
    assert 0 < counter.steps <= int(shown.nit)
    assert lines(terminal)[0].startswith("minimize: ")
    with override("progress", False):
        quiet = run()
    assert int(quiet.nit) == int(shown.nit)
    np.testing.assert_array_equal(quiet.x, shown.x)


def test_a_colouring_counts_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    @contextmanager
    def recorded(what: str, unit: str, total: int, done: Any) -> Iterator[None]:
        told.append((what, unit, total, done()))
        yield
        told.append(done())

    monkeypatch.setattr(greedy, "waiting", recorded)
    pattern = np.random.default_rng(0).random((30, 200)) < 0.02
    colour_jacobian(pattern, "forward", ["natural"])
    used = int(pattern.any(0).sum())
    assert told == [("colouring", "columns", used, 0), used]


PROGRAM = """
import sys, time
from pullback.core import waiting
assert waiting.PATIENCE == 2.0
waiting.PATIENCE = waiting.INTERVAL = 0.1
if sys.argv[1] == "plain":
    sys.modules["tqdm"] = None
with waiting.waiting("work", "parts", 10, lambda: 7):
    time.sleep(0.5)
print("result")
"""


def on_a_terminal(program: str, *arguments: str, **environment: str) -> tuple[str, str]:
    """Run a program whose standard error stream is a terminal; return its output, and what the terminal was told."""
    ours, its = pty.openpty()
    told = b""
    try:
        with subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=its, text=True, cwd=ROOT,
            env={**os.environ, **environment},
        ) as process:  # fmt: skip
            os.close(its)
            while True:
                try:
                    part = os.read(ours, 1024)
                except OSError:  # the program has ended
                    break
                if not part:
                    break
                told += part
            output = process.communicate()[0]
            assert process.returncode == 0, told.decode()
    finally:
        os.close(ours)
    return output, told.decode()


def test_a_terminal_shows_progress() -> None:
    output, told = on_a_terminal(PROGRAM, "plain")
    assert output == "result\n"
    assert "work: 7 of 10 parts, 0 s" in told
    assert told.endswith(" \r")


def test_the_environment_turns_progress_off() -> None:
    assert on_a_terminal(PROGRAM, "plain", PULLBACK_PROGRESS="0") == ("result\n", "")


def test_a_terminal_shows_a_bar_of_tqdm() -> None:
    pytest.importorskip("tqdm")
    output, told = on_a_terminal(PROGRAM, "tqdm")
    assert output == "result\n"
    assert "work:  70%|" in told
    assert "7/10" in told


def test_a_bar_of_tqdm_is_told_how_far_the_work_is(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            told.append(options)
            self.n = 0

        def refresh(self) -> None:
            told.append(self.n)

        def close(self) -> None:
            told.append("closed")

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(std=SimpleNamespace(tqdm=Bar)))
    with waiting.waiting("work", "parts", 10, lambda: 7):
        time.sleep(0.2)
    options, *others = told
    assert (options["desc"], options["unit"], options["total"], options["leave"]) == ("work", " parts", 10, False)
    assert set(others[:-1]) == {7}
    assert others[-1] == "closed"
