"""Responses of filters and their representations: SciPy's values, and derivatives by coefficients and roots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit
from pullback.scipy import signal
from pullback.test_util import check_grads

B, A = scipy.signal.butter(4, 0.3)
Z, P, K = scipy.signal.butter(5, [0.2, 0.4], "band", output="zpk")
SOS = scipy.signal.butter(5, 0.3, output="sos")
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    found, expected = ((v if isinstance(v, (tuple, list)) else (v,)) for v in (found, expected))
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_responses_of_all_options() -> None:
    at = np.array([0.1, 0.5])
    for arguments in (
        (B, A),
        (B,),
        (B, A, at),
        (B, A, 64, True),
        (B, A, 64, False, None, 100.0, True),
        (B, A, at, False, None, 2.0),
    ):
        close(signal.freqz(*arguments), scipy.signal.freqz(*arguments))
    close(signal.freqz_sos(SOS, 50, fs=10.0), scipy.signal.freqz_sos(SOS, 50, fs=10.0))
    close(signal.sosfreqz(SOS), scipy.signal.freqz_sos(SOS))
    close(signal.freqz_zpk(Z, P, K, 50), scipy.signal.freqz_zpk(Z, P, K, 50))
    for count in (50, [1.0, 2.0]):
        close(signal.freqs(B, A, count), scipy.signal.freqs(B, A, count))
        close(signal.freqs_zpk(Z, P, K, count), scipy.signal.freqs_zpk(Z, P, K, count))


def test_responses_have_derivatives() -> None:
    at = jnp.array([0.1, 0.7])
    size = lambda h: jnp.abs(h[1])
    check = lambda f, *args: check_grads(f, tuple(map(jnp.asarray, args)), 1, eps=1e-6, rtol=1e-5, atol=1e-5)
    check(lambda b, a, w: size(signal.freqz(b, a, w)), B, A, at)
    check(lambda s: size(signal.freqz_sos(s, at)), SOS)
    check(lambda b, a, w: size(signal.freqs(b, a, w)), B, A, at)
    poles = lambda r: size(signal.freqz_zpk([], r * jnp.exp(1j * jnp.array([0.3, -0.3])), 1.0, at))
    close(jit(poles)(0.9), poles(0.9))
    check(poles, 0.9)


def test_representations() -> None:
    close(signal.zpk2tf(Z, P, K), scipy.signal.zpk2tf(Z, P, K))
    close(signal.zpk2tf([], [-1.0], 2), scipy.signal.zpk2tf([], [-1.0], 2))
    close(signal.tf2zpk(B[:2], A), scipy.signal.tf2zpk(B[:2], A))
    close(signal.sos2tf(SOS), scipy.signal.sos2tf(SOS))
    close(signal.sos2zpk(SOS), scipy.signal.sos2zpk(SOS))
    close(signal.zpk2sos(Z, P, K), scipy.signal.zpk2sos(Z, P, K))
    close(jit(signal.zpk2sos)(Z, P, K), scipy.signal.zpk2sos(Z, P, K))
    close(signal.zpk2sos(Z, P, K, "keep_odd"), scipy.signal.zpk2sos(Z, P, K, "keep_odd"))
    close(signal.tf2sos([2.0, 2.0], [1.0, -0.75, 0.125]), scipy.signal.tf2sos([2.0, 2.0], [1.0, -0.75, 0.125]))
    close(jit(signal.sos2zpk)(SOS)[2], scipy.signal.sos2zpk(SOS)[2])
    found = jit(lambda z, p, k: signal.zpk2tf(z, p, k))(Z, P, K)
    close([v.real for v in found], scipy.signal.zpk2tf(Z, P, K))
    slope = grad(lambda r: signal.zpk2sos(jnp.array([-1.0]), jnp.stack([r, r / 2]), 1.0)[0, 4])(0.5)
    close(slope, -1.5)


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.freqz(B, A, 0), "freqz: worN must be positive"),
        (lambda: signal.freqz(B, A, plot=print), "freqz: plot must be None"),
        (lambda: signal.freqz(SOS), "freqz: the coefficients b must be a non-empty vector"),
        (lambda: signal.freqz_sos(B), "freqz_sos: the sections sos must have shape"),
        (lambda: jit(signal.freqs)(B, A), "freqs: the frequencies are chosen by the poles, which are traced"),
        (lambda: signal.zpk2tf(SOS, P, K), "zpk2tf: the zeros must be a vector"),
        (lambda: signal.zpk2sos([1j], [0.5], 1.0), "zpk2sos: "),
        (lambda: signal.zpk2sos(Z, P, K, "other"), "zpk2sos: pairing must be"),
        (lambda: jit(lambda z: signal.zpk2sos(z, P, K, "keep_odd"))(Z), "are paired by 'nearest'"),
        (lambda: signal.tf2zpk(B, [0.0, 0.0]), "tf2zpk: the coefficients a must not all be zero"),
        (lambda: signal.sos2tf(B), "sos2tf: the sections sos must have shape"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
