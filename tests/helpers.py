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
from pullback.backends.host import native, own, pending, reductions, rows, rules, special
from pullback.core import array as arrays
from pullback.core.array import ArrayImpl, as_array
from pullback.core.jaxpr import ClosedJaxpr, subjaxprs
from pullback.nn import normalized
from pullback.primitives.linalg import contraction

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

    >>> from tests.helpers import spread
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
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
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


# Pending elements ----------------------------------------------------------------------------------------------------


@contextmanager
def small_blocks(large: int = 4, block: int = 16, by_numpy: bool = False) -> Iterator[None]:
    """A block in which arrays of a few elements are large, so that results are pending, in blocks of a few bytes.

    Args:
      large: the least elements of a large array.
      block: the bytes of a block.
      by_numpy: whether expressions are evaluated by NumPy's functions, as where there is no module in C.
    """
    with pytest.MonkeyPatch.context() as patch:
        pending._operation.cache_clear()
        for module in (arrays, contraction, normalized, pending, reductions):
            patch.setattr(module, "LARGE", large)
        for module in (native, pending):
            patch.setattr(module, "BLOCK", block)
        for module in (native, pending, rows):
            patch.setattr(module, "cores", lambda: 3)
        patch.setattr(rows, "ALONE", large)
        patch.setattr(pending, "LEAST_WORK", 0)
        patch.setattr(native, "SHARE", 1)
        for module in (own, rules):
            patch.setattr(module, "MANY", large)
        patch.setattr(own, "MANY_PAIRS", large)
        for function in special.BY_SIZE:
            patch.setattr(function, "least", large)
        if by_numpy:
            for module in (native, own):
                patch.setattr(module, "loops", None)
        elif native.loops is not None:
            former = native.loops.limit(large)
        try:
            yield
        finally:
            if native.loops is not None:
                native.loops.limit(former)
            pending._operation.cache_clear()


# Samples and comparisons ---------------------------------------------------------------------------------------------


def plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where others are compiled."""
    return f


def eager_and_compiled(f: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """What a function returns eagerly, and what it returns compiled."""
    return f(*args), pullback.jit(f)(*args)


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


def assert_close(got: Any, expected: Any, tolerance: float = 1e-9, *, least: float = 1, dtypes: bool = True) -> None:
    """Assert that two trees are the same but for rounding, which grows with the largest element of an array.

    Args:
      got: a tree of arrays.
      expected: a tree of the same structure. Without ``dtypes``, numbers and nested lists may stand for its arrays.
      tolerance: by how much an element may differ, as a part of itself plus the largest finite element.
      least: what counts as the largest element if all are smaller.
      dtypes: whether dtypes must be equal, as shapes must.
    """
    for a, b in _pairs(got, expected, dtypes):
        scale = np.abs(b[np.isfinite(b)]).max(initial=least)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def assert_elements_close(
    got: Any, expected: Any, rtol: float = 1e-5, atol: float | None = None, *, dtypes: bool = True
) -> None:
    """Assert that each element of a tree of arrays is within ``atol + rtol * abs(expected)`` of the one expected.

    Trees, shapes and dtypes are compared as ``assert_close`` does. Without ``atol`` it is ``rtol``.
    """
    for a, b in _pairs(got, expected, dtypes):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol if atol is None else atol)


def assert_arrays_close(got: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Assert that the leaves of a tree are arrays, not traced, and close to those of another of the same structure."""
    assert tree.structure(got) == tree.structure(expected)
    assert all(isinstance(x, ArrayImpl) for x in tree.leaves(got))
    assert_elements_close(got, expected, tolerance, dtypes=False)


def assert_same(got: Any, expected: Any, *, dtypes: bool = True) -> None:
    """Assert that all elements of two trees of arrays are equal, where NaN is equal to NaN.

    Trees, shapes and dtypes are compared as ``assert_close`` does.
    """
    for a, b in _pairs(got, expected, dtypes):
        np.testing.assert_array_equal(a, b)


def largest_difference(xs: Any, ys: Any) -> float:
    """The largest difference of an element of two trees of arrays."""
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    return max(float(abs(np.asarray(x) - np.asarray(y)).max()) for x, y in pairs)


def _pairs(got: Any, expected: Any, dtypes: bool) -> Iterator[tuple[Any, Any]]:
    """The arrays of two trees side by side, which have equal shapes, and equal dtypes if these count."""
    structure = tree.structure(got)
    if dtypes:
        assert tree.structure(expected) == structure
    for a, b in zip(tree.leaves(got), structure.flatten_up_to(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype or not dtypes
        yield a, b


def operations_of(closed: ClosedJaxpr) -> list[str]:
    """The names of a program's operations, without those of the programs within."""
    return [eqn.primitive.name for eqn in closed.eqns]


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
