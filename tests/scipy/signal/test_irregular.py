"""Periodograms of measurements at any times, delays of groups, overlaps and Kaiser's rules: SciPy's values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import enable_x64, errors, grad, jit
from pullback.scipy import signal
from tests.scipy.laws import check_laws

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(6)
X = np.sort(RNG.uniform(0, 9, 14))
Y = np.sin(2.3 * X) + 0.3 * RNG.standard_normal(14)
W = np.linspace(0.3, 5.0, 7)
SHARES = RNG.uniform(0.5, 2.0, 14)


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    found, expected = ((v if isinstance(v, tuple) else (v,)) for v in (found, expected))
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_periodograms_are_those_of_scipy() -> None:
    for word, weights, floating in itertools.product(
        (False, True, "power", "normalize", "amplitude"), (None, SHARES), (False, True)
    ):
        more = {"normalize": word, "weights": weights, "floating_mean": floating}
        close(signal.lombscargle(X, Y, W, **more), scipy.signal.lombscargle(X, Y, W, **more))
    even = np.arange(8.0)
    close(signal.lombscargle(even, Y[:8], np.array([0.0, np.pi])), scipy.signal.lombscargle(even, Y[:8], [0.0, np.pi]))
    assert np.isfinite(grad(lambda y: jnp.sum(signal.lombscargle(even, y, np.array([0.0, 1.0]))))(Y[:8])).all()


def test_laws_of_periodograms() -> None:
    check_laws(lambda x, y, w: signal.lombscargle(x, y, w, floating_mean=True), [X[:5], Y[:5], W[:3]], tolerance=1e-10)
    check_laws(lambda x, y, s: signal.lombscargle(x, y, W[:2], weights=s, normalize=True), [X[:5], Y[:5], SHARES[:5]],
               tolerance=1e-10)  # fmt: skip
    check_laws(lambda t, p: signal.vectorstrength(t, p)[0], [X[:4], np.array(2.1)])


def test_strengths_of_periods_are_those_of_scipy() -> None:
    for period in (2.1, np.array([0.7, 2.1, 3.0])):
        close(signal.vectorstrength(X, period), scipy.signal.vectorstrength(X, period))


def test_delays_of_groups_are_those_of_scipy() -> None:
    # Zeros on the unit circle, as Butterworth's filters have, leave SciPy's numbers and ours few digits.
    b, a = np.array([1.0, 0.5, 0.25, 0.1]), scipy.signal.butter(4, 0.3)[1]
    for more in ({}, {"w": 7, "whole": True}, {"w": np.array([0.1, 0.7]), "fs": 3.0}):
        close(signal.group_delay((b, a), **more), scipy.signal.group_delay((b, a), **more), 1e-9)
    for coefficients in (([1.0, 0.5, 0.25], [1.0]), ([1.0], [1.0, 0.3]), ([2.0, 1.0], [1.0, 0.2, 0.1])):
        close(signal.group_delay(coefficients, 9), scipy.signal.group_delay(tuple(map(np.array, coefficients)), 9))
    with pytest.warns(UserWarning, match="singular"):
        expected = scipy.signal.group_delay((np.ones(2), np.ones(1)), np.array([0.5, np.pi]))
    close(signal.group_delay((jnp.ones(2), jnp.ones(1)), np.array([0.5, np.pi]))[1][0], expected[1][0])
    assert signal.group_delay((jnp.ones(2), jnp.ones(1)), np.array([np.pi]))[1][0] == 0
    check_laws(lambda b, a, w: signal.group_delay((b, a), w)[1], [b[:3], a[:3], np.array([0.3, 1.0])], tolerance=1e-9)


def test_overlaps_are_those_of_scipy() -> None:
    windows = ["hann", "boxcar", ("tukey", 0.25), scipy.signal.windows.bartlett(12, sym=False)]
    for window, overlap in itertools.product(windows, (0, 3, 5, 6, 8, 9)):
        for name in ("check_COLA", "check_NOLA"):
            assert getattr(signal, name)(window, 12, overlap) == getattr(scipy.signal, name)(window, 12, overlap)
    with enable_x64(False):
        assert signal.check_COLA("hann", 120, 60)
        assert not signal.check_COLA("hann", 120, 61)


def test_rules_of_kaiser_are_those_of_scipy() -> None:
    for a in (10.0, 21.0, 30.0, 50.0, 65.0):
        close(signal.kaiser_beta(a), scipy.signal.kaiser_beta(a))
    close(signal.kaiser_atten(35, 0.1), scipy.signal.kaiser_atten(35, 0.1))
    for ripple, width in ((65.0, 0.0375), (-30.0, 0.1)):
        found, expected = signal.kaiserord(ripple, width), scipy.signal.kaiserord(ripple, width)
        assert found[0] == expected[0]
        close(found[1], expected[1])
    for a in (30.0, 65.0):
        check_laws(signal.kaiser_beta, [np.array(a)])
    assert grad(signal.kaiser_beta)(10.0) == 0
    check_laws(lambda width: signal.kaiser_atten(35, width), [np.array(0.1)])


def test_coefficients_of_savitzky_and_golay_are_those_of_scipy() -> None:
    for size, order, position, use in itertools.product((5, 6), (0, 1, 2), (None, 0, 2.5), ("conv", "dot")):
        expected = scipy.signal.savgol_coeffs(size, 2, order, 0.3, position, use)
        close(signal.savgol_coeffs(size, 2, order, 0.3, position, use), expected)
        close(jit(lambda d: signal.savgol_coeffs(size, 2, order, d, position, use))(0.3), expected)  # noqa: B023
    check_laws(lambda d: signal.savgol_coeffs(5, 3, 2, d), [np.array(0.3)])


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.lombscargle(X, Y[1:], W), "lombscargle: x, y and weights must have one shape"),
        (lambda: signal.lombscargle(X, Y, 1.0), "lombscargle: freqs must be a non-empty vector"),
        (lambda: signal.lombscargle(X, Y, W, normalize="no"), "lombscargle: normalize must be"),
        (lambda: signal.lombscargle(X, Y, W, weights=-SHARES), "lombscargle: weights must not be negative"),
        (lambda: signal.lombscargle(X, 1j * Y, W), "lombscargle takes real numbers"),
        (lambda: signal.vectorstrength(X, -1.0), "vectorstrength: periods must be positive"),
        (lambda: signal.vectorstrength(np.ones((2, 2)), 1.0), "vectorstrength takes vectors or numbers"),
        (lambda: signal.group_delay(1.0), "group_delay: system must be a pair"),
        (lambda: signal.group_delay((np.ones((2, 2)), 1.0)), "group_delay: the coefficients b must be"),
        (lambda: signal.check_COLA("hann", 4, 4), "check_COLA: nperseg must be positive, and noverlap from 0"),
        (lambda: signal.check_NOLA(np.ones(3), 4, 2), "check_NOLA: the window must have nperseg=4 elements"),
        (lambda: jit(lambda w: signal.check_NOLA(w, 4, 2))(np.ones(4)), "check_NOLA: the window must be known"),
        (lambda: signal.kaiser_beta(None), "kaiser_beta: a must be a real number"),
        (lambda: signal.kaiser_atten(0, 0.1), "kaiser_atten: numtaps must be positive"),
        (lambda: signal.savgol_coeffs(5, 5), "savgol_coeffs: window_length must be positive, polyorder at least 0"),
        (lambda: signal.savgol_coeffs(5, 2, use="no"), "savgol_coeffs: "),
        (lambda: signal.savgol_coeffs(5, 2, delta=None), "savgol_coeffs: delta must be a real number"),
        (lambda: signal.kaiserord(5.0, 0.1), "kaiserord: ripple must be at least 8 decibels"),
        (lambda: jit(lambda r: signal.kaiserord(r, 0.1)[1])(50.0), "kaiserord: ripple and width must be known"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
