"""Functions of elements over all cores: the same numbers as in one thread, whatever the shapes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

from pullback.backends.host import parallel
from pullback.backends.host.parallel import MANY
from pullback.scipy import special


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    parallel._threads.cache_clear()
    yield
    parallel._threads().shutdown()
    parallel._threads.cache_clear()


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).uniform(0.5, 9, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(MANY,), (MANY + 1,), (3, MANY // 2, 1), (MANY * 5,)])
def test_of_one_operand(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    np.testing.assert_array_equal(special.digamma(x), scipy.special.digamma(x))


def test_of_arrays_that_are_not_contiguous() -> None:
    x = numbers(200, 100).T
    np.testing.assert_array_equal(special.gammaincc(x, x + 1), scipy.special.gammaincc(x, x + 1))


@pytest.mark.parametrize("shape", [(), (100,), (200, 1)])
def test_of_operands_that_broadcast(shape: tuple[int, ...]) -> None:
    a, x = numbers(*shape), numbers(200, 100)
    np.testing.assert_array_equal(special.gammaincc(a, x), scipy.special.gammaincc(a, x))
    np.testing.assert_array_equal(special.gammaincc(x, a), scipy.special.gammaincc(x, a))


def test_of_two_results() -> None:
    x = numbers(100, 100)
    for found, expected in zip(special.sici(x), scipy.special.sici(x.astype(np.float64)), strict=True):
        np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_parts_are_computed_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    threads = parallel._threads()
    submit = threads.submit
    monkeypatch.setattr(threads, "submit", lambda *args: used.append(1) or submit(*args))
    special.sici(numbers(MANY * 2))
    assert len(used) == 2
    special.sici(numbers(MANY - 1))
    assert len(used) == 2


@pytest.mark.filterwarnings("error")
def test_overflow_is_as_silent_as_in_one_thread() -> None:
    x = np.full(MANY * 2, 1000.0)
    with np.errstate(over="ignore"):
        found = parallel.in_parallel(np.exp, [x], [x.dtype])
    assert found is not None
    assert np.isinf(found[0]).all()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    x = numbers(MANY * 2)
    expected = np.asarray(special.digamma(x))
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(parallel.in_parallel(scipy.special.digamma, [x], [x.dtype])[0], expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_at_the_end_of_the_interpreter() -> None:
    program = """
import atexit
import pullback.numpy as pnp
from pullback.backends.host import parallel
from pullback.backends.host.parallel import MANY
from pullback.scipy import special
parallel.cores = lambda: 3
atexit.register(lambda: print(special.gammaln(pnp.full(20000, 3.0)).shape))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(20000,)", done.stderr


@pytest.mark.parametrize("shape", [(8, 1 << 13), (700, 1000), (2, 3, 1 << 14), (1, 1 << 17), (1 << 17,)])
def test_rows(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers(*shape)
    calls = []

    def function(rows: Any) -> Any:
        calls.append(len(rows))
        return np.sort(rows, -1)

    monkeypatch.setattr(parallel, "cores", lambda: 2)
    np.testing.assert_array_equal(parallel.by_rows(function, x, (x.ndim - 1,)), np.sort(x, -1))
    halves = 2 if shape[0] > 1 and x.ndim > 1 else 1
    assert sum(calls) == shape[0]
    assert len(calls) == halves
