"""Signals at other rates: SciPy's values for all options, and derivatives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, jit
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.scipy.signal.arguments import MODES
from pullback.scipy.signal.resampling import rate_filter
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(4)
X = RNG.standard_normal((2, 11))
Z = X + 1j * RNG.standard_normal((2, 11))
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_filters_between_rates_continue_as_in_scipy(mode: str) -> None:
    for n, taps, (up, down) in itertools.product((2, 5), (1, 2, 7, 30), ((1, 1), (3, 2), (2, 5))):
        x, h = X[:, :n], RNG.standard_normal(taps)
        expected = scipy.signal.upfirdn(h, x, up, down, 1, mode, 0.7)
        close(signal.upfirdn(h, x, up, down, 1, mode, 0.7), expected)
        close(rate_filter(jnp.asarray(h), jnp.asarray(x), up, down, mode, 0.7), expected)


def test_filters_between_rates_obey_the_laws() -> None:
    h = RNG.standard_normal(8)
    for mode in ("constant", "antireflect"):
        f, g = (lambda h, x, m=m, mode=mode: m.upfirdn(h, x, 3, 2, -1, mode, 0.7) for m in (signal, scipy.signal))
        check_laws(f, (h, X[0, :5]), g, order=1)
    for mode in ("reflect", "smooth", "antireflect", "line"):  # for which SciPy reads other memory
        close(signal.upfirdn(h, X[:, :1], 2, 3, 1, mode), scipy.signal.upfirdn(h, X[:, :1], 2, 3, 1, "edge"))


def test_filters_between_rates_of_complex_signals_and_other_axes() -> None:
    h = RNG.standard_normal(5) + 1j
    close(signal.upfirdn(h, Z, 2, 3, 0), scipy.signal.upfirdn(h, Z, 2, 3, 0))
    close(jit(lambda h, x: signal.upfirdn(h, x, 2, 3, 0))(h, Z), scipy.signal.upfirdn(h, Z, 2, 3, 0))


@pytest.mark.parametrize("num", [1, 5, 10, 11, 22])
@pytest.mark.parametrize("n", [1, 10, 11])
def test_resampling_by_fourier_transforms(n: int, num: int) -> None:
    for x, window in itertools.product((X[:, :n], Z[:, :n]), (None, "hann", np.arange(1.0, n + 1), lambda f: f**2 + f)):
        expected = scipy.signal.resample(x, num, axis=1, window=window)
        close(signal.resample(x, num, axis=1, window=window), expected)
    times = np.arange(n) * 0.5 + 2
    if n > 1:
        ours, theirs = (m.resample(X[0, :n], num, times) for m in (signal, scipy.signal))
        close(ours[0], theirs[0])
        close(ours[1], theirs[1])
        spectrum = np.fft.fft(Z[0, :n])
        close(signal.resample(spectrum, num, domain="freq"), scipy.signal.resample(spectrum, num, domain="freq"))


def test_resampling_obeys_the_laws() -> None:
    window = RNG.uniform(0.5, 1, 5)
    f, g = (lambda x, w, m=m: m.resample(x, 8, window=w) for m in (signal, scipy.signal))
    check_laws(f, (X[0, :5], window), g, order=1)
    f, g = (lambda x, m=m: m.resample_poly(x, 3, 2, padtype="line") for m in (signal, scipy.signal))
    check_laws(f, (X[0],), g, order=1)


@pytest.mark.parametrize("padtype", [*MODES, "mean", "median", "maximum", "minimum"])
def test_resampling_by_filters(padtype: str) -> None:
    for (up, down), axis in itertools.product(((1, 1), (2, 1), (1, 3), (4, 6), (5, 4)), (0, 1)):
        arguments = (X.T if axis == 0 else X, up, down, axis, ("kaiser", 5.0), padtype)
        close(signal.resample_poly(*arguments), scipy.signal.resample_poly(*arguments))
    close(
        signal.resample_poly(Z, 2, 3, 1, np.arange(1.0, 8)), scipy.signal.resample_poly(Z, 2, 3, 1, np.arange(1.0, 8))
    )
    close(signal.resample_poly(X, 2, 3, 1, cval=2.0), scipy.signal.resample_poly(X, 2, 3, 1, cval=2.0))


def test_decimation() -> None:
    x = RNG.standard_normal((130, 2))
    for ftype, zero_phase, n in itertools.product(("iir", "fir"), (True, False), (None, 5)):
        arguments = (x, 3, n, ftype, 0, zero_phase)
        close(signal.decimate(*arguments), scipy.signal.decimate(*arguments), 1e-11)
    compiled = jit(lambda x: signal.decimate(x, 4, 3, "iir", 0))(x)
    close(compiled, scipy.signal.decimate(x, 4, 3, "iir", 0), 1e-10)


def test_what_makes_no_sense_is_refused() -> None:
    x = np.ones(4)
    for call, text in (
        (lambda: signal.upfirdn(x, x, 0), "upfirdn: up must be positive"),
        (lambda: signal.upfirdn(x[:0], x), "upfirdn: the filter h must be a non-empty vector"),
        (lambda: signal.upfirdn(x, x[:0]), "upfirdn takes a signal with elements"),
        (lambda: signal.upfirdn(x, x, mode="periodic"), "upfirdn: mode must be one of 'constant'"),
        (lambda: signal.resample(x, 0), "resample: num must be positive"),
        (lambda: signal.resample(x, 2, window=np.ones(3)), r"resample: the window must have shape \(4,\), got \(3,\)"),
        (lambda: signal.resample(x, 2, window="none"), "resample: unknown window 'none'"),
        (lambda: signal.resample(x, 2, domain="space"), "resample: domain must be 'time' or 'freq'"),
        (lambda: signal.resample_poly(x, 2, 1, padtype="mean", cval=1.0), "cval belongs to padtype='constant'"),
        (lambda: signal.resample_poly(x, 2, -1), "resample_poly: down must be positive"),
        (lambda: signal.decimate(x, 2, ftype="other"), "decimate: ftype must be 'iir' or 'fir'"),
        (lambda: signal.decimate(x, 2), "sosfiltfilt: the signal must have more elements than padlen"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()


def test_single_precision_is_kept() -> None:
    with enable_x64(False):
        for out in (signal.resample(X[0], 5), signal.resample_poly(X[0], 2, 1), signal.upfirdn([1.0, 2.0], X[0], 2)):
            assert out.dtype == np.float32
        found = jit(lambda x: signal.resample_poly(x, 2, 1))(X[0].astype(np.float32))
        assert found.dtype == np.float32
        close(found, scipy.signal.resample_poly(X[0], 2, 1), 1e-5)
