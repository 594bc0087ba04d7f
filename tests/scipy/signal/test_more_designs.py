"""Prototypes, transformations, orders and designs of filters beside SciPy's, with derivatives by all numbers."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, jit, jvp
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.test_util import check_grads
from tests.scipy.signal.comparisons import by_formula, close, derivatives

pytestmark = pytest.mark.usefixtures("x64")
Z, P, K = [-3.0 + 1j, -3.0 - 1j], [-1.0 + 2j, -1.0 - 2j, -0.5], 2.0
B, A = [1.0, 3.0], [2.0, 2.4, 4.0]
SYMMETRIC = scipy.signal.firwin(9, 0.4)


def parts(f: Any) -> Any:
    """A function of real numbers for one of complex ones."""
    return lambda *x: [jnp.sort(jnp.abs(v).ravel()) for v in f(*x)]


@pytest.mark.parametrize(
    ("name", "of_zeros"),
    [
        ("lp2lp", "lp2lp_zpk"), ("lp2hp", "lp2hp_zpk"), ("lp2bp", "lp2bp_zpk"), ("lp2bs", "lp2bs_zpk"),
        ("bilinear", "bilinear_zpk"),
    ],
)  # fmt: skip
def test_transformations(name: str, of_zeros: str) -> None:
    numbers = (3.0, 0.7) if name in ("lp2bp", "lp2bs") else (3.0,)
    for b, a in ((B, A), ([2.0], A), (A, B), ([1.0], [1.0, 1.4, 1.0])):
        close(getattr(signal, name)(b, a, *numbers), getattr(scipy.signal, name)(b, a, *numbers))
    for z, p in ((Z, P), ([], P), ([-1.0], [-2.0, -3.0])):
        found, expected = (getattr(m, of_zeros)(z, p, K, *numbers) for m in (signal, scipy.signal))
        close(
            [np.sort_complex(v) for v in found[:2]] + [found[2]],
            [np.sort_complex(v) for v in expected[:2]] + [expected[2]],
        )
    derivatives(getattr(signal, name), B, A, *numbers, compiled=name == "lp2bs")
    derivatives(lambda p, *x: parts(getattr(signal, of_zeros))([-3.0], p, *x), [-1.0, -2.5], K, *numbers)


def test_prototypes() -> None:
    calls: dict[str, tuple[Any, ...]] = {
        "buttap": (), "cheb1ap": (1.0,), "cheb2ap": (30.0,), "ellipap": (1.0, 30.0), "besselap": (),
    }  # fmt: skip
    for (name, decibels), order in itertools.product(calls.items(), (0, 1, 4, 5)):
        found, expected = (getattr(m, name)(order, *decibels) for m in (signal, scipy.signal))
        close([jnp.ravel(v) for v in found], [np.ravel(v) for v in expected])
        if decibels:
            derivatives(lambda *x: parts(getattr(signal, name))(order, *x), *decibels)  # noqa: B023
    for norm in ("delay", "mag"):
        close(signal.besselap(3, norm), scipy.signal.besselap(3, norm))
    with enable_x64(False):
        assert signal.buttap(3)[1].dtype == np.complex64


BANDS: tuple[tuple[Any, Any], ...] = (
    (0.2, 0.3), (0.3, 0.2), ([0.2, 0.5], [0.1, 0.6]), ([0.1, 0.6], [0.2, 0.5]), ([0.1, 0.6], [0.25, 0.5]),
)  # fmt: skip


@pytest.mark.parametrize("name", ["buttord", "cheb1ord", "cheb2ord", "ellipord"])
def test_orders_and_critical_frequencies(name: str) -> None:
    ours, theirs = (getattr(m, name) for m in (signal, scipy.signal))
    for (wp, ws), (scale, options) in itertools.product(
        BANDS, ((1.0, {}), (50.0, {"fs": 100.0}), (3.0, {"analog": True}))
    ):
        wp, ws = np.multiply(wp, scale), np.multiply(ws, scale)
        expected = theirs(wp, ws, 1.0, 30.0, **options)
        found = ours(wp, ws, 1.0, 30.0, **options)
        assert found[0] == expected[0]
        assert isinstance(found[0], int)
        close(found[1], expected[1])
        exact = by_formula(lambda *x: ours(*x, **options)[1], wp, ws, 1.0, 30.0)  # noqa: B023
        close(exact, expected[1])
    for wp, ws in BANDS[:3]:
        derivatives(lambda wp, ws, g, s, fs: ours(wp, ws, g, s, fs=fs)[1], wp, ws, 1.0, 30.0, 2.1)
    # The values of a stopped band are those of a search that ends near the best edges; its derivatives are exact.
    wp, ws = BANDS[3]
    moved = lambda h: ours(jnp.asarray(wp) + jnp.stack([0 * h, h]), ws, 1.0, 30.0)
    assert moved(0.004)[0] == moved(0.0)[0]
    close(jvp(lambda h: moved(h)[1], (0.002,), (1.0,))[1], (moved(0.004)[1] - moved(0.0)[1]) / 0.004, 2e-3)


def test_designs_by_attenuations() -> None:
    for (wp, ws), family in itertools.product(BANDS, ("butter", "cheby1", "cheby2", "ellip")):
        for form in ("sos", "zpk"):
            close(*(m.iirdesign(wp, ws, 1.0, 30.0, ftype=family, output=form) for m in (signal, scipy.signal)))
    close(*(m.iirdesign(20.0, 30.0, 1.0, 30.0, fs=100.0) for m in (signal, scipy.signal)))
    derivatives(lambda wp, ws, g, s: signal.iirdesign(wp, ws, g, s, ftype="cheby2"), 0.2, 0.3, 1.0, 30.0)
    derivatives(lambda wp, g, s, fs: signal.iirdesign(wp, 30.0, g, s, fs=fs, output="sos"), 20.0, 1.0, 30.0, 100.0)


def test_combs_and_gammatone_filters() -> None:
    for kind, zero in itertools.product(("notch", "peak"), (False, True)):
        close(*(m.iircomb(20.0, 30.0, kind, 200.0, pass_zero=zero) for m in (signal, scipy.signal)))
        f = lambda q: signal.iircomb(20.0, q, kind, 200.0, pass_zero=zero)  # noqa: B023
        close(by_formula(f, 3.0), scipy.signal.iircomb(20.0, 3.0, kind, 200.0, pass_zero=zero))
    derivatives(lambda q: signal.iircomb(0.5, q), 3.0)
    for options in ({"ftype": "iir"}, {"ftype": "fir"}, {"ftype": "fir", "order": 2, "numtaps": 20}):
        f = lambda *x: signal.gammatone(x[0], **options, fs=x[1])  # noqa: B023
        expected = scipy.signal.gammatone(440.0, **options, fs=16000.0)
        close(f(440.0, 16000.0), expected)
        close(by_formula(f, 440.0, 16000.0), expected)
        f = lambda *x: signal.gammatone(x[0], **{"numtaps": 240, **options}, fs=x[1])  # noqa: B023
        check_grads(f, (440.0, 16000.0), 1, eps=1e-2, rtol=1e-5)


def test_filters_of_finite_length() -> None:
    bands, desired = [0.0, 0.2, 0.3, 0.7, 0.8, 1.0], [1.0, 1.0, 0.0, 0.5, 2.0, 1.0]
    for options in ({}, {"weight": [1.0, 2.0, 0.5]}):
        close(*(m.firls(11, bands, desired, **options) for m in (signal, scipy.signal)))
    f = lambda b, d, w, fs: signal.firls(7, b, d, weight=w, fs=fs)
    arguments = (np.multiply(bands, 50.0), desired, [1.0, 2.0, 0.5], 100.0)
    close(by_formula(f, *arguments), scipy.signal.firls(7, arguments[0], desired, weight=arguments[2], fs=100.0))
    derivatives(f, np.multiply(bands, 48.0) + 1, np.add(desired, 0.1), *arguments[2:], compiled=True)
    at, gain = [0.0, 0.3, 0.3, 0.7, 1.0], [0.0, 1.0, 0.4, 0.5, 0.0]
    for count, odd in itertools.product((8, 9), (False, True)):
        f = lambda g: signal.firwin2(count, at, g, antisymmetric=odd)  # noqa: B023
        expected = scipy.signal.firwin2(count, at, gain, antisymmetric=odd)
        close(f(gain), expected)
        close(jvp(f, (jnp.asarray(gain),), (jnp.zeros(5),))[0], expected)
    derivatives(lambda f, g, b: signal.firwin2(9, [0.0, *f, 1.0], g, window=("kaiser", b)), [0.33, 0.71], gain[1:], 4.0)
    close(signal.firwin2(9, at, gain, window=None), scipy.signal.firwin2(9, at, gain, window=None))
    two = lambda m, **options: m.firwin_2d((3, 5), fs=2.0, **options)
    for options in ({"window": ("hann", "hamming"), "fc": 0.4}, {"window": "hamming", "fc": 0.4, "circular": True}):
        close(two(signal, **options), two(scipy.signal, **options))
    derivatives(lambda c: signal.firwin_2d((3, 3), ("hamming", "hann"), fc=c), 0.4)
    for options in ({}, {"type": "hilbert"}, {"weight": [1.0, 3.0]}):
        close(*(m.remez(11, [0.05, 0.2, 0.3, 0.45], [1.0, 0.2], **options) for m in (signal, scipy.signal)))
    for options in ({}, {"half": False}, {"method": "hilbert"}, {"n_fft": 501}):
        close(*(m.minimum_phase(SYMMETRIC, **options) for m in (signal, scipy.signal)), 1e-8)
    derivatives(lambda h: signal.minimum_phase(h, n_fft=64), [0.1, 0.4, 1.3, 0.4, 0.1])


@pytest.mark.parametrize("type", ["butter", "cheby", "ellip"])
def test_orders_of_filters_that_stop_a_band(type: str) -> None:
    for ind, wp in ((0, 1.1), (1, 4.9)):
        bands = np.array([1.0, 5.0]), np.array([2.0, 3.0])
        close(*(m.band_stop_obj(wp, ind, *bands, 3.0, 30.0, type) for m in (signal, scipy.signal)))
        derivatives(lambda *x: signal.band_stop_obj(x[0], ind, *x[1:], type), wp, *bands, 3.0, 30.0, compiled=True)  # noqa: B023


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.lp2lp_zpk([1.0, 2.0], [1.0], 1.0), "lp2lp_zpk: a filter has at most as many zeros as poles"),
        (lambda: signal.lp2hp(B, A, [1.0, 2.0]), "lp2hp: frequencies must be numbers"),
        (lambda: signal.lp2bp_zpk(Z, P, [1.0, 2.0]), "lp2bp_zpk: the zeros and poles must be vectors"),
        (lambda: signal.bilinear(B, A, -1.0), "bilinear: fs must be a positive number, got -1"),
        (lambda: signal.bilinear_zpk(Z, P, K, 0.0), "bilinear_zpk: fs must be a positive number, got 0"),
        (lambda: signal.buttap(-1), "buttap: N must not be negative, got -1"),
        (lambda: signal.cheb1ap(2, -1.0), "cheb1ap: rp must be a positive number of decibels"),
        (lambda: signal.besselap(2, "none"), "besselap: norm must be 'phase', 'delay' or 'mag', got 'none'"),
        (lambda: signal.buttord(0.2, [0.3, 0.4], 1.0, 30.0), "buttord: wp and ws must both be one or two frequencies"),
        (lambda: signal.buttord(2.3, 0.3, 1.0, 30.0), "buttord: the frequencies wp must be between 0 and half of the"),
        (lambda: signal.buttord(0.2, 0.3, 30.0, 1.0), "buttord: gpass should be smaller than gstop"),
        (lambda: jit(lambda w: signal.buttord(w, 0.3, 1.0, 30.0))(0.2), "buttord: the order is an int and depends on"),
        (lambda: signal.iirdesign(0.2, 0.3, 1.0, 30.0, ftype="bessel"), "iirdesign: ftype must be one of 'butter'"),
        (lambda: signal.iirdesign([0.1, 0.3], [0.2, 0.4], 1.0, 30.0), "iirdesign: the band that passes must be inside"),
        (lambda: jit(lambda w: signal.iirdesign(w, 0.3, 1.0, 30.0))(0.2), "iirdesign: ellipord: the order is an int"),
        (lambda: signal.iircomb(0.3, 3.0), "iircomb: fs must be divisible by w0"),
        (lambda: jit(lambda w: signal.iircomb(w, 3.0))(0.5), "iircomb: w0 must divide fs, and both decide the number"),
        (lambda: signal.gammatone(2.0, "iir"), "gammatone: freq must be between 0 and half of fs, 1.0, got 2.0"),
        (lambda: signal.gammatone(0.2, "none"), "gammatone: ftype must be 'fir' or 'iir', got 'none'"),
        (lambda: signal.gammatone(0.2, "fir", 25), "gammatone: order must be from 1 to 24, got 25"),
        (lambda: jit(lambda fs: signal.gammatone(0.2, "fir", fs=fs))(2.0), "the number of coefficients depends on fs"),
        (lambda: signal.firls(4, [0, 1], [1, 1]), "firls: numtaps must be odd, got 4"),
        (lambda: signal.firls(3, [0, 0.4, 0.6], [1, 1, 0]), "firls: bands must be pairs of frequencies"),
        (lambda: signal.firls(3, [0, 0.4, 0.3, 1], [1, 1, 0, 0]), "firls: bands must increase between 0 and half"),
        (lambda: signal.firls(3, [0, 1], [1, -1]), "firls: desired must not be negative"),
        (lambda: signal.firwin2(4, [0, 1], [1, 1]), "firwin2: A Type II filter must have zero gain at the Nyquist"),
        (lambda: signal.firwin2(5, [0, 1], [1, 1, 1]), "firwin2: freq and gain must have the same size, got 2 and 3"),
        (lambda: signal.firwin2(5, [0, 1], [1, 1], nfreqs=4), "firwin2: nfreqs must be greater than numtaps, got 4"),
        (lambda: signal.firwin_2d((3, 3), "hann", fc=0.3), "firwin_2d: window must be two windows, got 'hann'"),
        (lambda: signal.firwin_2d((3, 3), ("hann", "hann")), "firwin_2d: fc must be frequencies, got None"),
        (lambda: signal.remez(3, [0, 0.1], [1.0], type="none"), "remez: type must be 'bandpass', 'differentiator' or"),
        (lambda: signal.remez(3, [0, 0.1], [1.0, 2.0]), "remez: bands must be pairs of frequencies"),
        (lambda: signal.remez(3, [0.2, 0.1], [1.0]), "remez: Bands must be monotonic"),
        (lambda: signal.band_stop_obj(2.0, 1, [1, 3], [0.5, 4], 3, 30, "none"), "band_stop_obj: type must be"),
        (lambda: signal.band_stop_obj(2.0, 2, [1, 3], [0.5, 4], 3, 30, "ellip"), "band_stop_obj: ind must be 0 or"),
        (lambda: signal.band_stop_obj(2.0, 1, [1, 3], [0.5], 3, 30, "ellip"), "band_stop_obj: wp, gpass and"),
        (lambda: signal.band_stop_obj(2.0, 1, [1, 3], [0.5, 4], 3, 1, "ellip"), "band_stop_obj: gpass must be"),
        (lambda: signal.band_stop_obj(2j, 1, [1, 3], [0.5, 4], 3, 9, "ellip"), "band_stop_obj takes real numbers"),
        (lambda: signal.minimum_phase([1.0, 2.0]), "minimum_phase takes a vector of at least 3 real numbers"),
        (lambda: signal.minimum_phase(SYMMETRIC, "none"), "minimum_phase: method must be 'homomorphic' or 'hilbert'"),
        (lambda: signal.minimum_phase(SYMMETRIC, n_fft=5), "minimum_phase: n_fft must be at least the size of h, 9"),
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(errors.PullbackError, match=text):
                call()


@pytest.mark.parametrize("kind", [float, complex])
def test_bands_of_real_roots_are_in_scipys_order(kind: Any) -> None:
    z, p = np.array([-0.5, 0.3], kind), np.array([-1.0, -2.0, -3.5], kind)
    with enable_x64(True):
        for name in ("lp2bp_zpk", "lp2bs_zpk"):
            close(getattr(signal, name)(z, p, 1.5, 3.0, 0.7), getattr(scipy.signal, name)(z, p, 1.5, 3.0, 0.7))
