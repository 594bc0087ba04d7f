"""What several files of tests share: how much is run, how long a test may take, samples and comparisons."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import pullback
from pullback import tree
from pullback.core.array import ArrayImpl, as_array
from pullback.core.jaxpr import subjaxprs

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the project, which has the source, the pages and the examples."""

# How much is run -----------------------------------------------------------------------------------------------------

EXHAUSTIVE = os.environ.get("PULLBACK_EXHAUSTIVE", "0") != "0"
"""Whether every combination is tested, as ``make test-all`` does, and not a selection of them."""


def chosen(usual: T, exhaustive: T) -> T:
    """The first in the usual run, the second in the exhaustive one."""
    return exhaustive if EXHAUSTIVE else usual


def spread(choices: Sequence[T], index: int, count: int) -> list[T]:
    """Some of the choices, other ones for each index, so that consecutive indices have all of them between them.

    >>> [spread("abc", i, 2) for i in range(3)]
    [['a', 'b'], ['c', 'a'], ['b', 'c']]
    """
    if EXHAUSTIVE or count >= len(choices):
        return list(choices)
    return [choices[(index * count + k) % len(choices)] for k in range(count)]


# How long a test may take --------------------------------------------------------------------------------------------

SECONDS = float(os.environ.get("PULLBACK_TEST_SECONDS", "120"))
"""How long a test may take."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Fail what takes longer, with the traceback of where it was.

    The signal is handled between two steps of Python. For a test that hangs within a library pytest's own limit, which
    is longer, ends the process (``faulthandler_timeout`` in ``pyproject.toml``).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def fail(number: int, frame: Any) -> None:
        pytest.fail(f"the test took longer than {seconds:g} seconds")

    handler = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


# Samples and comparisons ---------------------------------------------------------------------------------------------


def plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where others are compiled."""
    return f


def array(x: Any, dtype: Any = "float32") -> Any:
    return as_array(np.asarray(x, dtype))


def value(x: Any) -> Any:
    """The elements of one of our arrays."""
    assert type(x) is ArrayImpl
    return np.asarray(x)


def random(*shape: int, dtype: Any = np.float64) -> Any:
    """Normal numbers, the same for the same shape."""
    rng = np.random.default_rng(shape)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else 0)
    return values.astype(dtype)


def assert_close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal trees; of their leaves, equal shapes and dtypes, and values within the tolerance of the largest one."""
    got_leaves, got_tree = tree.flatten(got)
    expected_leaves, expected_tree = tree.flatten(expected)
    assert got_tree == expected_tree
    for a, b in zip(got_leaves, expected_leaves, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max(initial=0)))


def assert_arrays_close(got: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Equal trees whose leaves are arrays, none of them traced: equal shapes, and values within the tolerance."""
    got_leaves, got_tree = tree.flatten(got)
    expected_leaves, expected_tree = tree.flatten(expected)
    assert got_tree == expected_tree
    for a, b in zip(got_leaves, expected_leaves, strict=True):
        assert isinstance(a, ArrayImpl)
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def largest(jaxpr: Any) -> int:
    """The number of elements of the largest value of a program, and of those within."""
    own = [v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars]
    return max([*own, *(largest(program) for eqn in jaxpr.eqns for program in subjaxprs(eqn))], default=0)


def with_jvp(f: Callable[..., Any]) -> Any:
    """The same function, with a rule for forward mode that is its derivative."""
    g = pullback.custom_jvp(f)
    g.defjvp(lambda primals, tangents: pullback.jvp(f, primals, tangents))
    return g


def with_vjp(f: Callable[..., Any]) -> Any:
    """The same function, with a rule for reverse mode that is its derivative."""
    g = pullback.custom_vjp(f)
    g.defvjp(lambda *xs: pullback.vjp(f, *xs), lambda pull, ct: tuple(pull(ct)))
    return g
