"""Filters in both directions, and initial states: SciPy's values for all options, and derivatives by everything."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, jit
from pullback.scipy import signal
from pullback.test_util import check_grads
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 30))
B, A = np.array([0.2, 0.3, 0.1]), np.array([1.0, -0.5, 0.2])
SOS = scipy.signal.butter(5, [0.2, 0.5], "band", output="sos")
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_both_directions_with_all_paddings() -> None:
    for padtype, padlen, axis in itertools.product(("odd", "even", "constant", None), (None, 7), (0, 1)):
        x = X.T if axis == 0 else X
        for call in (
            lambda m: m.filtfilt(B, 2 * A, x, axis, padtype, padlen),  # noqa: B023
            lambda m: m.sosfiltfilt(SOS[:3], x, axis, padtype, padlen),  # noqa: B023
        ):
            close(call(signal), call(scipy.signal))
    for padtype in ("odd", None):
        close(jit(lambda x: signal.filtfilt(B, A, x, -1, padtype))(X), scipy.signal.filtfilt(B, A, X, -1, padtype))  # noqa: B023
    close(signal.filtfilt(B, [2.0], X), scipy.signal.filtfilt(B, [2.0], X))
    sections = scipy.signal.butter(3, 0.4, output="sos")  # whose first section is of first order
    close(jit(lambda x: signal.sosfiltfilt(sections, x))(X), scipy.signal.sosfiltfilt(sections, X))


def test_gustafssons_states() -> None:
    for length in (None, 6, 100):
        expected = scipy.signal.filtfilt(B, A, X, method="gust", irlen=length)
        close(signal.filtfilt(B, A, X, method="gust", irlen=length), expected, 1e-9)
        found = jit(lambda x, length=length: signal.filtfilt(B, A, x, method="gust", irlen=length))(X)
        close(found, expected, 1e-9)
    close(jit(lambda x: signal.filtfilt([2.0], [4.0], x, method="gust"))(X), X / 4)
    f = lambda b, a, x: signal.filtfilt(b, a, x, method="gust")
    check_grads(f, tuple(map(jnp.asarray, (B, A, X[0, :9]))), 1, eps=1e-5, rtol=1e-5, atol=1e-5)


def test_derivatives_by_coefficients_and_signals() -> None:
    f, g = (lambda b, a, x, m=m: m.filtfilt(b, a, x, padlen=4) for m in (signal, scipy.signal))
    check_laws(f, (B, A, X[0, :8]), g, tolerance=1e-10, order=1)
    check_grads(lambda a, x: f(B, a, x), (jnp.asarray(A), jnp.asarray(X[0, :5])), 2, eps=1e-5, rtol=1e-4, atol=1e-4)
    f, g = (lambda s, x, m=m: m.sosfiltfilt(s, x, padlen=4) for m in (signal, scipy.signal))
    sections = scipy.signal.butter(3, 0.4, output="sos")
    close(jit(f)(sections, X), g(sections, X))
    check_grads(f, (jnp.asarray(sections), jnp.asarray(X[0, :8])), 1, eps=1e-5, rtol=1e-5, atol=1e-5)


def test_states_of_a_step_and_of_the_past() -> None:
    close(signal.sosfilt_zi(SOS), scipy.signal.sosfilt_zi(SOS), 1e-9)
    low = scipy.signal.butter(4, 0.3, output="sos")
    close(jit(signal.sosfilt_zi)(low), scipy.signal.sosfilt_zi(low), 1e-9)
    for nb, na, ny, nx in itertools.product((1, 3), (1, 4), (0, 2, 5), (None, 0, 1, 6)):
        b, a, y = RNG.standard_normal(nb), np.r_[2.0, RNG.standard_normal(na - 1)], RNG.standard_normal(ny)
        x = None if nx is None else RNG.standard_normal(nx)
        close(signal.lfiltic(b, a, y, x), scipy.signal.lfiltic(b, a, y, x))
    check_laws(signal.lfiltic, (B, 2 * A, X[0, :2], X[1, :3]), scipy.signal.lfiltic, order=1)


def test_a_filter_that_was_interrupted_goes_on() -> None:
    x = jnp.asarray(X[0])
    whole = signal.lfilter(B, A, x)
    state = signal.lfiltic(B, A, whole[:10][::-1], x[:10][::-1])
    close(signal.lfilter(B, A, x[10:], zi=state)[0], whole[10:])


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.filtfilt(B, A, X[0, :9]), "filtfilt: the signal must have more elements than padlen"),
        (lambda: signal.filtfilt(B, A, X, padtype="mirror"), "filtfilt: padtype must be"),
        (lambda: signal.filtfilt(B, A, X, padlen=-1), "padlen must be at least 0"),
        (lambda: signal.filtfilt(B, A, X, method="other"), "filtfilt: method must be 'pad' or 'gust'"),
        (lambda: signal.filtfilt(B, [0.0, 1.0], X), "the first coefficient of a must not be zero"),
        (lambda: signal.filtfilt([B], A, X), "filtfilt: the coefficients b must be a non-empty vector"),
        (lambda: signal.sosfiltfilt(B, X), "sosfiltfilt: the sections sos must have shape"),
        (lambda: signal.sosfilt_zi(B), "sosfilt_zi: the sections sos must have shape"),
        (lambda: signal.lfiltic(B, A, X), "lfiltic: y and x must be vectors"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
