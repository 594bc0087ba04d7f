"""Spectra over time, transforms and waveforms: SciPy's values for all options, and derivatives."""

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

RNG = np.random.default_rng(9)
X = RNG.standard_normal((2, 40))
Z = X + 1j * X[::-1]
T = np.linspace(-3, 9, 50)
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    found, expected = ((v if isinstance(v, (tuple, list)) else (v,)) for v in (found, expected))
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def both(call: Any, tolerance: float = 1e-10) -> None:
    close(call(signal), call(scipy.signal), tolerance)


def check(f: Any, *args: Any) -> None:
    arrays = tuple(map(jnp.asarray, args))
    close(jit(f)(*arrays), f(*arrays))
    check_grads(f, arrays, 1, eps=1e-5, rtol=1e-5, atol=1e-5)


def test_spectra_of_whole_signals_and_over_time() -> None:
    for x in (X, Z):
        one = x is X
        both(lambda m: m.periodogram(x, 2.0, return_onesided=one))  # noqa: B023
        both(lambda m: m.periodogram(x, 2.0, "hann", 50, axis=0, return_onesided=one))  # noqa: B023
        both(lambda m: m.periodogram(x, nfft=16, scaling="spectrum", return_onesided=one))  # noqa: B023
        for mode, more in itertools.product(
            ("psd", "complex", "magnitude", "angle", "phase"),
            ({"noverlap": 3, "nfft": 11}, {"axis": 1, "scaling": "spectrum", "detrend": "linear"}),
        ):
            both(lambda m: m.spectrogram(x, 3.0, nperseg=9, mode=mode, return_onesided=one, **more), 1e-8)  # noqa: B023
    both(lambda m: m.coherence(X[0], X[1], nperseg=8))
    check(lambda x: signal.spectrogram(x, nperseg=5)[2], X[0, :12])
    check(lambda x, y: signal.coherence(x, y, nperseg=4)[1], X[0, :12], X[1, :12])


def test_analytic_signals_and_chirps() -> None:
    for axis in (0, 1):
        both(lambda m: m.hilbert(X, axis=axis))  # noqa: B023
        both(lambda m: m.hilbert(X, 7, axis))  # noqa: B023
        for more in ({}, {"m": 13}, {"m": 50, "w": np.exp(-0.03j), "a": 0.9 + 0.1j}, {"m": 3}):
            both(lambda m: m.czt(X, axis=axis, **more), 1e-9)  # noqa: B023
        for limits, more in ((1.0, {}), ([0.2, 0.5], {"m": 60}), ([0.2, 0.5], {"m": 10, "endpoint": True, "fs": 3.0})):
            both(lambda m: m.zoom_fft(Z, limits, axis=axis, **more), 1e-9)  # noqa: B023
    close(jit(lambda x, w: signal.czt(x, 30, w))(X, np.exp(-0.03j)), scipy.signal.czt(X, 30, np.exp(-0.03j)), 1e-9)
    close(
        jit(lambda x, f: signal.zoom_fft(x, f, 30))(X, np.array([0.2, 0.4])), scipy.signal.zoom_fft(X, [0.2, 0.4], 30)
    )
    check(lambda x, f: jnp.abs(signal.zoom_fft(x, f, 5)), X[0, :8], [0.2, 0.4])
    check(lambda x, w: jnp.abs(signal.czt(x, 5, jnp.exp(1j * w[0]), jnp.exp(w[1]))), X[0, :8], [0.2, 0.1])
    for sizes, mode in itertools.product(((5, 3), (3, 5), (4, 4), (1, 1), (6, 3)), ("full", "same", "valid")):
        both(lambda m: m.correlation_lags(*sizes, mode))  # noqa: B023


@pytest.mark.parametrize("method", ["linear", "quadratic", "logarithmic", "hyperbolic"])
def test_cosines_of_changing_frequency(method: str) -> None:
    for vertex, rotating, f1 in itertools.product((True, False), (True, False), (0.7, 2.0)):
        both(lambda m: m.chirp(T, 2.0, 5.0, f1, method, 30.0, vertex, complex=rotating), 1e-9)  # noqa: B023
    check(lambda f0, f1: signal.chirp(T[30:33], f0, 5.0, f1, method), 2.0, 0.7)
    check(lambda f0, f1: signal.chirp(T[30:33], f0, 5.0, f1, method), 2.0, 2.0)


def test_waveforms() -> None:
    both(lambda m: m.gausspulse(T, 0.5, retquad=True, retenv=True))
    both(lambda m: m.gausspulse(T, 0.5, 0.3, -3))
    close(signal.gausspulse("cutoff", 0.5), scipy.signal.gausspulse("cutoff", 0.5))
    for part in (0, 0.3, 1, 1.5):
        both(lambda m: m.sawtooth(T, part))  # noqa: B023
        both(lambda m: m.square(T, part))  # noqa: B023
    both(lambda m: m.sweep_poly(T, np.array([0.1, 0.2, 0.3]), 20))
    check(lambda t, w: signal.sawtooth(t, w), [0.3, 2.0, 5.0], 0.4)
    check(lambda t, p: signal.sweep_poly(t, p), T[20:23], [0.1, 0.2])
    check(lambda t, fc, bw: signal.gausspulse(t, fc, bw), T[20:23], 0.5, 0.4)
    for arguments in ((5,), (5, 2), ((3, 4),), ((3, 4), "mid"), ((3, 4), 2), ((3, 4), (1, -1)), (4, -1)):
        both(lambda m: m.unit_impulse(*arguments))  # noqa: B023


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.spectrogram(X, mode="power"), "spectrogram: mode must be"),
        (lambda: signal.spectrogram(X[:, :0]), "spectrogram takes a signal with elements"),
        (lambda: signal.coherence(X, X, nperseg=4, noverlap=5), "coherence: noverlap must be"),
        (lambda: signal.hilbert(Z), "hilbert: the signal x must be real"),
        (lambda: signal.czt(X, 0), "czt: m must be positive"),
        (lambda: signal.czt(X, 4, X), "czt: the points w and a must be numbers"),
        (lambda: signal.zoom_fft(X, [0.1, 0.2, 0.3]), "zoom_fft: fn must be one or two numbers"),
        (lambda: signal.zoom_fft(X, 0.1, 1, endpoint=True), "m must be at least 2"),
        (lambda: signal.correlation_lags(3, 0), "correlation_lags: in2_len must be positive"),
        (lambda: signal.chirp(T, 1.0, 1.0, -2.0, "log"), "must have one sign and not be zero"),
        (lambda: signal.chirp(T, 0.0, 1.0, 2.0, "hyp"), "f0 and f1 must not be zero"),
        (lambda: signal.chirp(T, 1.0, 1.0, 2.0, "cubic"), "chirp: method must be"),
        (lambda: signal.gausspulse(T, -1.0), "gausspulse: fc must be positive"),
        (lambda: signal.gausspulse("end"), "gausspulse: t must be an array or 'cutoff'"),
        (lambda: signal.sweep_poly(T, X), "sweep_poly: the coefficients poly must be a non-empty vector"),
        (lambda: signal.unit_impulse(3, 3), "unit_impulse: the position 3 is not in an array"),
        (lambda: signal.square(1j), "square takes real numbers"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
