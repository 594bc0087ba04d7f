"""Peaks: SciPy's positions and properties, a fixed number under ``jit``, and derivatives by the signal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, vmap
from pullback.scipy import signal
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(6)
X = np.cumsum(RNG.standard_normal(60))
PEAK = scipy.signal.find_peaks(X)[0][:1]
FLAT = np.array([0.0, 1, 1, 0, 2, 2, 2, 1, 3, 0, 0, 5, 5])
CONDITIONS: tuple[dict[str, Any], ...] = (
    {}, {"height": 0.5}, {"height": (None, 2.0)}, {"threshold": 0.1}, {"distance": 4}, {"prominence": (0.3, 4)},
    {"width": 1, "rel_height": 0.7}, {"width": 1.5, "wlen": 11}, {"plateau_size": 1},
    {"height": np.linspace(-3, 3, 60), "prominence": 0.2, "width": 0, "distance": 3, "plateau_size": (1, 3)},
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", CONDITIONS, ids=str)
def test_peaks_are_those_of_scipy_eager_and_compiled(options: dict[str, Any]) -> None:
    for x in (X, np.where(np.arange(60) % 7 < 3, np.round(X), np.round(X / 3))):
        expected, properties = scipy.signal.find_peaks(x, **options)
        found, ours = signal.find_peaks(x, **options)
        assert list(ours) == list(properties)
        close(found, expected)
        for k in properties:
            close(ours[k], properties[k])
        count = len(expected)
        for size in (count + 2, max(count - 1, 0)):
            padded = signal.find_peaks(x, size=size, **options)
            check_padded(padded, size, count, expected, properties)
    call = jit(lambda x: signal.find_peaks(x, size=count + 2, **options))
    check_padded(call(x), count + 2, count, expected, properties)


def check_padded(found: Any, size: int, count: int, expected: Any, properties: Any) -> None:
    peaks, padded = found
    kept = min(size, count)
    close(peaks, np.r_[expected[:kept], np.full(size - kept, -1)])
    for k, values in properties.items():
        close(padded[k][:kept], values[:kept])
        rest = padded[k][kept:]
        assert (rest == -1).all() if rest.dtype.kind == "i" else jnp.isnan(rest).all()


def test_properties_have_derivatives_eager_and_compiled() -> None:
    options: dict[str, Any] = {"height": -9, "threshold": 0, "prominence": 0.2, "width": 0}

    def properties(x: Any) -> Any:
        found = signal.find_peaks(x, **options, size=3)[1]
        return jnp.stack([v for v in found.values() if v.dtype.kind == "f"])

    check_laws(properties, (X[:20],), order=1, precision=1e-4)
    eager = grad(lambda x: signal.find_peaks(x, height=-9)[1]["peak_heights"].sum())(jnp.asarray(X))
    close(eager, np.isin(np.arange(60), scipy.signal.find_peaks(X)[0]).astype(float))


def test_prominences_and_widths() -> None:
    peaks = scipy.signal.find_peaks(X)[0]
    for wlen, height in ((None, 0.5), (9, 0.9)):
        ours, theirs = (m.peak_prominences(X, peaks, wlen) for m in (signal, scipy.signal))
        for a, b in zip(ours, theirs, strict=True):
            close(a, b)
        expected = scipy.signal.peak_widths(X, peaks, height, wlen=wlen)
        compiled = jit(lambda x, p, h=height, w=wlen: signal.peak_widths(x, p, h, wlen=w))(X, peaks)
        given = signal.peak_widths(X, peaks, height, theirs)
        for a, b, c, d in zip(signal.peak_widths(X, peaks, height, wlen=wlen), expected, compiled, given, strict=True):
            close(a, b)
            close(c, b)
            close(d, b)
    short = peaks[peaks < 19]
    f, g = (lambda x, m=m: m.peak_widths(x, short)[0] for m in (signal, scipy.signal))
    check_laws(f, (X[:20],), g, precision=1e-4, order=1)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_extrema_among_neighbours(mode: str) -> None:
    table = np.round(RNG.standard_normal((7, 5)), 1)
    for x, axis, order in ((X, 0, 1), (X, 0, 3), (FLAT, 0, 2), (table, 0, 1), (table, 1, 2)):
        for name in ("argrelmax", "argrelmin"):
            ours, theirs = (getattr(m, name)(x, axis, order, mode) for m in (signal, scipy.signal))
            for a, b in zip(ours, theirs, strict=True):
                close(a, b)
            size = len(theirs[0]) + 1
            f = getattr(signal, name)
            run = f if x is not table else jit(f, static_argnums=(1, 2, 3), static_argnames=("size",))
            for a, b in zip(run(x, axis, order, mode, size=size), theirs, strict=True):
                close(a, np.r_[b, -1])
        for comparator in (np.greater_equal, np.less, jnp.less):
            known = {jnp.less: np.less}.get(comparator, comparator)
            ours = signal.argrelextrema(x, comparator, axis, order, mode)
            for a, b in zip(ours, scipy.signal.argrelextrema(x, known, axis, order, mode), strict=True):
                close(a, b)


def test_nan_and_empty_signals() -> None:
    x = np.array([0.0, 1, 0, np.nan, 2, 0, np.inf, 0, 3, np.nan])
    close(signal.find_peaks(x)[0], scipy.signal.find_peaks(x)[0])
    assert signal.find_peaks(np.zeros(0), height=0)[0].shape == (0,)
    assert jit(lambda x: signal.find_peaks(x, height=0, size=2))(np.zeros(0))[0].tolist() == [-1, -1]
    assert signal.argrelmax(np.zeros(0))[0].shape == (0,)
    rows = vmap(lambda x: signal.find_peaks(x, size=3)[0])(jnp.stack([X, -X]))
    close(rows, [scipy.signal.find_peaks(x)[0][:3] for x in (X, -X)])


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.find_peaks(np.ones((2, 2))), "find_peaks: the signal x must be a vector"),
        (lambda: signal.find_peaks(X * 1j), "find_peaks: the signal x must be real numbers"),
        (lambda: signal.find_peaks(X, distance=0), "find_peaks: `distance` must be greater or equal to 1"),
        (lambda: signal.find_peaks(X, size=-1), "find_peaks: size must be at least 0"),
        (lambda: jit(signal.find_peaks)(X), "find_peaks: how many peaks there are is not known"),
        (lambda: jit(lambda x: signal.find_peaks(x, x[0], size=2))(X), "the condition height must be known"),
        (lambda: jit(signal.argrelmax)(X), "argrelmax: how many positions are found is not known"),
        (lambda: signal.argrelmin(X, order=0), "argrelmin: order must be positive"),
        (lambda: signal.argrelmin(X, mode="mirror"), "argrelmin: mode must be 'clip' or 'wrap'"),
        (lambda: signal.argrelextrema(X, "greater"), "argrelextrema: comparator must be a function"),
        (lambda: signal.peak_prominences(X, [60]), "the position 60 of a peak is not in the signal, of 60 elements"),
        (lambda: signal.peak_prominences(X, [0.5]), "peak_prominences: the peaks must be a vector of ints"),
        (lambda: signal.peak_widths(X, PEAK, -1.0), "peak_widths: `rel_height` must be greater or equal to 0"),
        (lambda: signal.peak_widths(X, PEAK, 0.5, (1, 2)), "prominence_data must be a tuple of 3 arrays"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()


def test_peaks_by_wavelets_are_those_of_scipy_eager_and_compiled() -> None:
    x = np.sin(np.arange(100) / 8.0) + 0.1 * np.random.default_rng(3).standard_normal(100)
    bell = lambda length, width: np.exp(-(((np.arange(length) - (length - 1) / 2) / width) ** 2))
    ours = lambda length, width: jnp.exp(-(((jnp.arange(length) - (length - 1) / 2) / width) ** 2))
    for widths, wavelets, options in (
        (np.arange(1, 10), (None, None), {}), ([2.0, 4.0, 6.0], (ours, bell), {"min_snr": 1.5, "noise_perc": 20}),
        (3, (None, None), {"window_size": 7}), ([1, 2], (None, None), {"max_distances": [1.0, 2.0], "gap_thresh": 1}),
    ):  # fmt: skip
        expected = scipy.signal.find_peaks_cwt(x, widths, wavelets[1], **options)
        assert len(expected)
        close(signal.find_peaks_cwt(x, widths, wavelets[0], **options), expected)
        call = lambda x: signal.find_peaks_cwt(x, widths, wavelets[0], size=len(expected) + 2, **options)  # noqa: B023
        for found in (call(x), jit(call)(x), vmap(call)(jnp.stack([x, -x]))[0]):
            close(found, [*expected, -1, -1])
    close(signal.find_peaks_cwt(np.zeros(20), [2, 3]), [])
    heights = lambda x: x[signal.find_peaks_cwt(x, np.arange(1, 10))].sum()
    close(jnp.flatnonzero(grad(heights)(jnp.asarray(x))), [10, 13, 64])
    refused: tuple[tuple[Any, str], ...] = (
        (lambda: signal.find_peaks_cwt(x, [0.0]), "find_peaks_cwt: widths must be positive numbers"),
        (lambda: signal.find_peaks_cwt(x, None), "find_peaks_cwt: widths must be real numbers, got None"),
        (lambda: signal.find_peaks_cwt(x, [1], min_snr=None), "find_peaks_cwt: min_snr must be real numbers, got None"),
        (lambda: signal.find_peaks_cwt(x, [1j]), "find_peaks_cwt: widths must be real numbers"),
        (lambda: signal.find_peaks_cwt(x, [1.0], "none"), "find_peaks_cwt: wavelet must be a function"),
        (lambda: signal.find_peaks_cwt(x, [1, 2], max_distances=[1.0]), "find_peaks_cwt: max_distances must have a"),
        (lambda: signal.find_peaks_cwt(x[:0], [1.0]), "find_peaks_cwt: the signal must have elements"),
        (lambda: signal.find_peaks_cwt(x, [1.0], size=-1), "find_peaks_cwt: size must be at least 0, got -1"),
        (lambda: jit(lambda x: signal.find_peaks_cwt(x, [1.0]))(x), "find_peaks_cwt: how many peaks there are is not"),
        (lambda: jit(lambda w: signal.find_peaks_cwt(x, w))([1.0]), "find_peaks_cwt: widths must be known"),
    )
    for bad, text in refused:
        with pytest.raises(errors.PullbackError, match=text):
            bad()
