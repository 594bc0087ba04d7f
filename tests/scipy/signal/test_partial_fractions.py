"""Partial fractions, division, envelopes, sequences, blocks and transforms as objects, beside SciPy's."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy import signal
from tests.scipy.signal.comparisons import by_formula, close, derivatives

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 12))


CASES = [
    ([1.0], [1.0, 3.0, 2.0]), ([1.0, 2, 3, 4], [2.0, 3.0, 1.0]), ([1.0, 2.0], [1.0, 0.3, 0.8, 0.1]),
    ([3.0], [2.0, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inverse"), [("residue", "invres"), ("residuez", "invresz")])
def test_partial_fractions(name: str, inverse: str) -> None:
    ours, theirs = (getattr(m, name) for m in (signal, scipy.signal))
    back, other = (getattr(m, inverse) for m in (signal, scipy.signal))
    more = [([1.0, 2.0], [1.0, 2.0, 1.0]), ([0.0, 1.0, 2.0, 0.0], [1.0, 3.0, 2.0]), ([0.0], [1.0, 2.0])]
    for b, a in [*CASES, *more]:
        close(ours(b, a), theirs(b, a))
        close(back(*ours(b, a)), other(*theirs(b, a)))
    for b, a in CASES:
        close(by_formula(ours, b, a), theirs(b, a))
        close(jit(ours)(jnp.asarray(b), jnp.asarray(a)), theirs(b, a))
        derivatives(lambda *x: [jnp.abs(v) for v in ours(*x)], b, a)
    with pytest.raises(errors.UnsupportedArgumentError, match=f"{name}: poles that are equal up to tol have no"):
        grad(lambda a: abs(ours([1.0], a)[0][0]))(jnp.array([1.0, 2.0, 1.0]))
    r, p, k = [1.0, 2.0, 3.0], [-1.0, -1.0, -2.0], [0.5, 0.25]
    close(back(r, p, k), other(r, p, k))
    close(back(r, p, [0.0]), other(r, p, [0.0]))
    derivatives(back, r, [-1.0, -3.0, -2.0], k)
    close(by_formula(lambda r, k: back(r, p, k), r, k), other(r, p, k))


def test_roots_in_groups_and_division() -> None:
    p = [1.0, 2.0, 1.0005, 1j, 0.0005 + 1j, 2.0009]
    for rule in ("min", "max", "avg", "mean"):
        close(signal.unique_roots(p, rtype=rule), scipy.signal.unique_roots(p, rtype=rule))
    derivatives(lambda p: signal.unique_roots(p, rtype="avg")[0], [1.0, 2.0, 1.0005])
    for x, y in (([1.0, 3.0, 2.0, 5.0], [2.0, 1.0]), ([1.0], [1.0, 2.0]), ([1.0, 2.0], [4.0])):
        close(signal.deconvolve(x, y), scipy.signal.deconvolve(x, y))
    derivatives(signal.deconvolve, [1.0, 3.0, 2.0, 5.0], [2.0, 1.0])


def test_envelopes() -> None:
    bands = ((1, None), (None, None), (2, 4), (-3, 2), (0, 3), (-4, -1))
    for n, band, count, rest in itertools.product((12, 11), bands, (None, 8, 17), ("lowpass", "all", None)):
        for x in (X[:, :n], X[:, :n] + 1j * X[::-1, :n]):
            options = {"n_out": count, "residual": rest}
            close(*(m.envelope(x, band, **options) for m in (signal, scipy.signal)))
    close(*(m.envelope(X.T, squared=True, axis=0) for m in (signal, scipy.signal)))
    derivatives(lambda x: signal.envelope(x, (2, 5)), X)
    close(jit(vmap(signal.envelope))(X)[:, 0], signal.envelope(X)[0])


def test_sequences_of_bits() -> None:
    for given in ({}, {"length": 4}, {"state": [0, 1, 1, 0]}, {"taps": [1, 3]}):
        close(*(m.max_len_seq(4, **given) for m in (signal, scipy.signal)))
    assert signal.max_len_seq(3)[0].dtype == np.int8


def test_convolutions_in_blocks_and_the_choice_of_a_method() -> None:
    y = RNG.standard_normal((2, 3))
    long = RNG.standard_normal((2, 300))
    for mode, axes in itertools.product(("full", "same", "valid"), (None, 1)):
        close(*(m.oaconvolve(long, y, mode, axes) for m in (signal, scipy.signal)))
        compiled = jit(lambda a, b, mode=mode, axes=axes: signal.oaconvolve(a, b, mode, axes))
        close(compiled(long, y), scipy.signal.oaconvolve(long, y, mode, axes))
    derivatives(signal.oaconvolve, X, y)
    for sizes in ((10, 5), (3000, 2000)):
        assert signal.choose_conv_method(*map(np.ones, sizes)) == scipy.signal.choose_conv_method(*map(np.ones, sizes))
    word, times = signal.choose_conv_method(np.ones(9), np.ones(3), measure=True)
    assert word in times
    assert set(times) == {"fft", "direct"}


def test_transforms_as_objects() -> None:
    for given in ({}, {"m": 5}, {"m": 4, "w": 0.9 * np.exp(0.3j), "a": 1.1}):
        ours, theirs = (m.CZT(12, **given) for m in (signal, scipy.signal))
        close(ours(X), theirs(X))
        close(ours(X.T, axis=0), theirs(X.T, axis=0))
        close([ours.points(), ours.w, ours.a], [theirs.points(), theirs.w, theirs.a])
    for fn, given in (([0.2, 0.8], {}), (0.7, {"m": 5, "endpoint": True}), ([1.0, 3.0], {"fs": 9.0})):
        ours, theirs = (m.ZoomFFT(12, fn, **given) for m in (signal, scipy.signal))
        close(ours(X), theirs(X))
        close([ours.f1, ours.f2, ours.fs], [theirs.f1, theirs.f2, theirs.fs])
        close(ours.points()[:2], np.exp(2j * np.pi * np.array([theirs.f1, _second(theirs, given)]) / theirs.fs))
    power = lambda transform: jnp.sum(jnp.abs(transform(X)) ** 2)
    transform = signal.ZoomFFT(12, jnp.array([0.2, 0.8]), 3)
    slope = grad(power)(transform)
    assert type(slope) is signal.ZoomFFT
    assert len(tree.leaves(slope)) == 2
    derivatives(lambda fn, fs: jnp.abs(signal.ZoomFFT(12, fn, 3, fs=fs)(X)), [0.2, 0.8], 2.0)
    derivatives(lambda w, a: signal.czt_points(4, w, a), 0.9, 1.2)
    close(signal.czt_points(4), scipy.signal.czt_points(4))


def _second(transform: Any, given: Any) -> float:
    """The second frequency of a transform between two limits."""
    return transform.f1 + (transform.f2 - transform.f1) / (transform.m - bool(given.get("endpoint")))


def test_frequencies_of_interest() -> None:
    close(signal.findfreqs([1.0], [1.0, 8.0, 25.0], 5), scipy.signal.findfreqs([1.0], [1.0, 8.0, 25.0], 5))
    close(*(m.findfreqs([], [-1.0, -2.0 + 1j], 5, kind="zp") for m in (signal, scipy.signal)))
    with enable_x64(False):
        assert signal.findfreqs([1.0], [1.0, 8.0], 5).dtype == np.float32


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.residue([1.0], [0.0]), "residue: the denominator must not be zero"),
        (lambda: signal.residuez([1.0], [0.0, 1.0]), "residuez: the denominator must not be zero, nor begin with zero"),
        (lambda: signal.residue([1.0], [1.0, 2.0], rtype="none"), "residue: rtype must be one of 'max', 'maximum'"),
        (lambda: signal.residue([1.0], [1.0, 2.0], -1.0), "residue: tol must be a known number that is not negative"),
        (lambda: signal.invres([1.0], [1.0, 2.0], []), "invres: there must be as many residues as poles, got 1 and 2"),
        (lambda: jit(lambda p: signal.invres([1.0], p, []))([1.0]), "invres: which poles are equal depends on their"),
        (lambda: jit(signal.unique_roots)([1.0]), "unique_roots: how many roots differ depends on their values"),
        (lambda: signal.deconvolve([1.0, 2.0], [0.0, 1.0]), "deconvolve: the divisor must not begin with zero"),
        (lambda: signal.envelope(X, (3, 2)), "envelope: bp_in must increase between -6 and 6 for 12 elements"),
        (lambda: signal.envelope(X, 3), "envelope: bp_in must be a pair of ints or None, got 3"),
        (lambda: signal.envelope(X, residual="none"), "envelope: residual must be 'lowpass', 'all' or None"),
        (lambda: signal.max_len_seq(4, [0, 0, 0, 0]), "max_len_seq: state must not be all zeros"),
        (lambda: jit(lambda s: signal.max_len_seq(2, s))([1, 0]), "max_len_seq: state and taps must be known"),
        (lambda: signal.oaconvolve(X, X, "all"), "oaconvolve: mode must be 'full', 'same' or 'valid', got 'all'"),
        (lambda: signal.choose_conv_method(X, X[0]), "choose_conv_method takes arrays of the same number of axes"),
        (lambda: signal.CZT(3)(X), "CZT: the signal must have 3 elements along the axis, got 12"),
        (lambda: signal.CZT(3, 2, [1.0, 2.0]), "czt_points: the points w and a must be numbers"),
        (lambda: signal.ZoomFFT(3, [1.0, 2.0, 3.0]), "ZoomFFT: fn must be one or two numbers and fs a number"),
        (lambda: signal.ZoomFFT(3, 1.0, 1, endpoint=True), "ZoomFFT: with endpoint=True m must be at least 2, got 1"),
        (lambda: signal.findfreqs([1.0], [1.0], 3, "none"), "findfreqs: kind must be 'ba' or 'zp', got 'none'"),
        (lambda: jit(lambda a: signal.findfreqs([1.0], a, 3))([1.0, 2.0]), "findfreqs: the frequencies are constant"),
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(errors.PullbackError, match=text):
                call()
