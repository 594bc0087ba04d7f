"""Ranks and medians of windows, and Wiener's filter: SciPy's values, and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, jit
from pullback.scipy import signal
from tests.scipy.laws import check_laws

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(4)
X, M, C = RNG.standard_normal(9), RNG.standard_normal((5, 6)), RNG.standard_normal((3, 4, 5))
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])


def both(call: Any, tolerance: float = 1e-13) -> None:
    found, expected = call(signal), call(scipy.signal)
    assert np.shape(found) == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_ranks_and_medians_are_those_of_scipy() -> None:
    for x in (X, M, C, (10 * M).astype(np.int32), M.astype(np.float32)):
        for size in (None, 1, 3, [3] * x.ndim, [1, 3, 1][: x.ndim]):
            both(lambda m: m.medfilt(x, size))  # noqa: B023
    both(lambda m: m.medfilt(2.0, 1))
    for size in (1, 3, (1, 5)):
        both(lambda m: m.medfilt2d(M, size))  # noqa: B023
    for rank in (0, 2, 4):
        both(lambda m: m.order_filter(M, CROSS, rank))  # noqa: B023
        both(lambda m: m.order_filter(X, np.ones(5), rank))  # noqa: B023


def test_the_filter_of_wiener_is_that_of_scipy() -> None:
    for x in (X, M, C):
        for size in (None, 3, 2, [3] * x.ndim):
            for noise in (None, 0.3, 2.0):
                both(lambda m: m.wiener(x, size, noise), 1e-12)  # noqa: B023
    assert not np.isnan(signal.wiener(np.zeros(5))).any()  # where SciPy divides zero by zero


def test_laws() -> None:
    check_laws(signal.medfilt, [M], scipy.signal.medfilt)
    check_laws(lambda x: signal.order_filter(x, CROSS, 3), [M], lambda x: scipy.signal.order_filter(x, CROSS, 3))
    check_laws(signal.wiener, [M], scipy.signal.wiener)
    check_laws(lambda x, noise: signal.wiener(x, 3, noise), [X, np.array(0.3)])
    check_laws(lambda x: jnp.abs(signal.hilbert2(x)), [M], lambda x: np.abs(scipy.signal.hilbert2(x)))


def test_analytic_signals_of_two_axes() -> None:
    for x in (X, M, C):
        for size in (None, 4, (3, 7)):
            both(lambda m: m.hilbert2(x, size), 1e-12)  # noqa: B023
    both(lambda m: m.hilbert2(C, axes=(0, 2)), 1e-12)
    both(lambda m: m.hilbert2(C, (2, 6), axes=(-1, 0)), 1e-12)


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.medfilt(M, 4), "medfilt: kernel_size must be odd and positive"),
        (lambda: signal.medfilt(M, [3]), "medfilt: kernel_size must be an int, or 2 ints"),
        (lambda: signal.medfilt(M + 1j), "medfilt takes real numbers"),
        (lambda: signal.medfilt2d(X), "medfilt2d takes an array of 2 axes"),
        (lambda: signal.order_filter(M, np.ones(3), 1), "order_filter: the domain must have 2 axes"),
        (lambda: signal.order_filter(X, np.ones(2), 1), "order_filter: the domain must have odd sizes"),
        (lambda: signal.order_filter(X, np.ones(3), 3), "order_filter: the rank must be from 0 to 2"),
        (lambda: jit(lambda d: signal.order_filter(X, d, 0))(np.ones(3)), "order_filter: the domain must be known"),
        (lambda: signal.wiener(M, [3]), "wiener: mysize must be a positive int, or 2 of them"),
        (lambda: signal.wiener(M, 0), "wiener: mysize must be a positive int"),
        (lambda: signal.wiener(M, 3, X), "wiener: the noise must be a number"),
        (lambda: signal.wiener(M * 1j), "wiener takes real numbers"),
        (lambda: signal.hilbert2(M * 1j), "hilbert2: the signal x must be real"),
        (lambda: signal.hilbert2(M, axes=(0,)), "hilbert2: axes must be two ints"),
        (lambda: signal.hilbert2(M, axes=(0, -2)), "hilbert2: the axes must differ"),
        (lambda: signal.hilbert2(M, (1, 2, 3)), "hilbert2: N must be an int or two ints"),
        (lambda: signal.hilbert2(M, 0), "hilbert2: N must be positive"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
    with pytest.warns(UserWarning, match="medfilt: the window"):
        signal.medfilt(X[:2], 3)
