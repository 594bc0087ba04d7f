"""Designs of filters: SciPy's for known frequencies, the same for traced ones, and derivatives by frequencies."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.test_util import check_grads

FAMILIES: dict[str, Any] = {
    "butter": {}, "cheby1": {"rp": 1.0}, "cheby2": {"rs": 30.0}, "ellip": {"rp": 1.0, "rs": 30.0}, "bessel": {},
}  # fmt: skip
KINDS: dict[str, Any] = {"lowpass": 0.3, "highpass": 0.3, "bandpass": [0.2, 0.5], "bandstop": [0.2, 0.5]}
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    found, expected = ((v if isinstance(v, tuple) else (v,)) for v in (found, expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def by_formula(f: Any, w: Any) -> Any:
    """The values of a function of which derivatives are taken."""
    return jvp(f, (jnp.asarray(w),), (jnp.ones_like(jnp.asarray(w)),))[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_designs_are_those_of_scipy_for_known_and_traced_frequencies(family: str) -> None:
    forms = itertools.product(KINDS.items(), (1, 4), (False, True), ("ba", "zpk", "sos"))
    for (kind, w), order, analog, form in forms:
        given = {"btype": kind, "analog": analog, "ftype": family, "output": form, **FAMILIES[family]}
        f, g = (partial(m.iirfilter, order, **given) for m in (signal, scipy.signal))
        close(f(w), g(w), 1e-13)
        if form == "zpk":
            found, expected = by_formula(f, w), g(w)
            for a, b in zip(found[:2], expected[:2], strict=True):
                assert len(a) == len(b)
                for root in np.asarray(b):
                    assert np.abs(np.asarray(a) - root).min() < 1e-6
            close(found[2], expected[2])
        elif not (analog and form == "sos"):
            close(by_formula(f, w), g(w))


def test_prototypes_of_traced_decibels_are_those_of_scipy() -> None:
    calls: dict[str, Any] = {"cheby1": (0.5,), "cheby2": (40.0,), "ellip": (0.5, 60.0)}
    for (family, decibels), order in itertools.product(calls.items(), (1, 2, 5, 8)):
        expected = getattr(scipy.signal, family)(order, *decibels, 0.3, "high", True, "zpk")
        found = jvp(lambda *x: getattr(signal, family)(order, *x, 0.3, "high", True, "zpk"), decibels, decibels)[0]  # noqa: B023
        for a, b in zip(found[:2], expected[:2], strict=True):
            close(np.sort_complex(np.round(a, 12)), np.sort_complex(np.round(b, 12)), 1e-9)
        close(found[2], expected[2])


def test_designs_by_their_names() -> None:
    close(signal.butter(3, 30.0, fs=100.0), scipy.signal.butter(3, 30.0, fs=100.0))
    close(by_formula(lambda w: signal.butter(3, w, fs=100.0), 30.0), scipy.signal.butter(3, 30.0, fs=100.0))
    close(signal.cheby1(3, 1, 0.3, "high"), scipy.signal.cheby1(3, 1, 0.3, "high"))
    close(signal.cheby2(3, 30, 0.3), scipy.signal.cheby2(3, 30, 0.3))
    close(signal.ellip(3, 1, 30, 0.3), scipy.signal.ellip(3, 1, 30, 0.3))
    for norm in ("phase", "delay", "mag"):
        close(signal.bessel(3, 0.3, norm=norm), scipy.signal.bessel(3, 0.3, norm=norm))
        found = by_formula(lambda w, norm=norm: signal.bessel(3, w, norm=norm), 0.3)
        close(found, scipy.signal.bessel(3, 0.3, norm=norm))
    with enable_x64(False):
        assert signal.butter(3, 0.3)[0].dtype == np.float32
        assert jit(lambda w: signal.butter(3, w, output="sos"))(0.3).dtype == np.float32


def test_derivatives_by_frequencies() -> None:
    check = lambda f, *args: check_grads(f, tuple(map(jnp.asarray, args)), 1, eps=1e-6, rtol=1e-5, atol=1e-5)
    check(lambda w: signal.butter(4, w, output="sos"), 0.3)
    check(lambda w: signal.ellip(3, 1, 30, w, "band"), [0.2, 0.5])
    check(lambda w: signal.cheby2(3, 30, w, "stop", output="sos"), [0.2, 0.5])
    check(lambda w, q: signal.iirnotch(w, q), 0.3, 7.0)
    check(lambda w, q, fs: signal.iirpeak(w, q, fs), 60.0, 30.0, 400.0)
    check(lambda c: signal.firwin(9, c), 0.3)
    check(lambda c, wide, fs: signal.firwin(9, c, width=wide, fs=fs), 30.0, 40.0, 200.0)
    check(lambda r, fs: signal.cheby1(2, r, 30.0, fs=fs), 1.0, 200.0)
    check(lambda r: signal.cheby2(3, r, 0.3, "high", output="sos"), 30.0)
    check(lambda rp, rs: signal.ellip(3, rp, rs, 0.3), 1.0, 30.0)
    x = jnp.asarray(np.random.default_rng(0).standard_normal(20))
    loss = lambda w: jnp.sum(signal.sosfilt(signal.butter(4, w, output="sos"), x) ** 2)
    close(jit(grad(loss))(0.3), grad(loss)(0.3))


@pytest.mark.parametrize("scale", [True, False])
def test_filters_of_finite_length(scale: bool) -> None:
    for cutoff, zero in (
        (0.3, True), (0.3, False), ([0.2, 0.5], False), ([0.2, 0.5], True), ([0.2, 0.4, 0.7], True),
        ([0.2, 0.4, 0.7], False), (0.4, "highpass"), ([0.3, 0.4], "bandpass"), ([0.3, 0.4], "bandstop"),
    ):  # fmt: skip
        f, g = (lambda c, m=m: m.firwin(21, c, pass_zero=zero, scale=scale) for m in (signal, scipy.signal))  # noqa: B023
        close(f(cutoff), g(cutoff), 1e-12)
        close(by_formula(f, cutoff), g(cutoff), 1e-12)
    f, g = (lambda c, m=m: m.firwin(20, c, width=5.0, fs=100.0) for m in (signal, scipy.signal))
    close(by_formula(f, 20.0), g(20.0), 1e-12)


def test_two_poles() -> None:
    for name, arguments in itertools.product(("iirnotch", "iirpeak"), ((0.3, 7.0), (60.0, 30.0, 400.0))):
        close(getattr(signal, name)(*arguments), getattr(scipy.signal, name)(*arguments), 1e-13)


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.butter(0, 0.3), "butter: N must be positive"),
        (lambda: signal.butter(2, 1.3), "butter: the frequencies Wn must be between 0 and half of the"),
        (lambda: signal.butter(2, [0.1, 0.2]), r"the frequencies Wn of a lowpass filter are 1, got shape \(2,\)"),
        (lambda: signal.butter(2, 0.3, "wide"), "butter: btype must be one of"),
        (lambda: signal.butter(2, 0.3, output="ss"), "butter: output must be one of"),
        (lambda: signal.cheby1(2, -1, 0.3), "cheby1: "),
        (lambda: jit(lambda w: signal.cheby1(2, -1, w))(0.3), "cheby1: rp must be a positive number"),
        (lambda: jit(lambda w: signal.butter(2, w, analog=True, output="sos"))(0.3), "need known numbers"),
        (lambda: jvp(lambda w: signal.butter(2, w), (1.3,), (1.0,)), "butter: the frequencies Wn must be between 0"),
        (lambda: signal.butter(2, [0.3, 0.2], "band"), "butter: the frequencies Wn must increase, got"),
        (lambda: jvp(lambda c: signal.firwin(5, c), (1.3,), (1.0,)), "firwin: the frequencies cutoff must be between"),
        (lambda: signal.butter(2, -1.0, analog=True), "butter: the frequencies Wn must be greater than 0"),
        (lambda: jvp(lambda r: signal.cheby1(2, r, 0.3), (-1.0,), (1.0,)), "cheby1: rp must be a positive number"),
        (lambda: signal.ellip(1, 3.0, 1.0, 0.3), "ellip: rp must be at most rs, got 3.0 and 1.0 decibels"),
        (lambda: jvp(lambda r: signal.ellip(1, r, 1.0, 0.3), (3.0,), (1.0,)), "ellip: rp must be at most rs"),
        (lambda: signal.cheby1(2, 0, 0.3), "cheby1: rp must be a positive number of decibels, got 0"),
        (lambda: signal.butter(2, 0.3, fs=-1.0), "butter: fs must be a positive number, got -1"),
        (lambda: jit(lambda x: signal.butter(2, 1.3)[0] * x)(1.0), "butter: the frequencies Wn must be between 0"),
        (lambda: jit(lambda x: signal.iirnotch(1.3, 3.0)[0] * x)(1.0), "iirnotch: w0 must be between 0"),
        (lambda: jit(lambda x: signal.firwin(5, [0.3, 0.2]) * x)(1.0), "firwin: the frequencies cutoff must increase"),
        (lambda: signal.tf2sos([1.0], [0.0]), "tf2sos: the coefficients a must not all be zero"),
        (lambda: signal.tf2sos([1.0], [1.0, 0.5], "none"), "tf2sos: pairing must be"),
        (lambda: jit(lambda b: signal.tf2sos(b, [1.0, 0.5], "minimal"))([1.0, 2.0]), "tf2sos: traced zeros and poles"),
        (lambda: signal.cheby2(2, None, 0.3), "cheby2: rs must be a positive number of decibels, got None"),
        (lambda: signal.butter(2, 0.3, fs=[1.0, 2.0]), "butter: fs must be a real number"),
        (lambda: signal.bessel(2, 0.3, norm="none"), "bessel: norm must be"),
        (lambda: signal.iirnotch(1.5, 3.0), "iirnotch: w0 must be between 0 and half of fs"),
        (lambda: signal.iirpeak([0.1, 0.2], 3.0), "iirpeak: w0, Q and fs must be numbers"),
        (lambda: signal.firwin(20, 0.3, pass_zero=False), "firwin: A filter with an even number of coefficients"),
        (lambda: jit(lambda c: signal.firwin(20, c, pass_zero=False))(0.3), "firwin: A filter with an even number"),
        (lambda: signal.firwin(5, 0.3, window="none"), "firwin: "),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_elliptic_filters_of_equal_ripple_and_attenuation_are_scipys(order: int) -> None:
    """Their poles are on the edge of stability from the order 2 on; odd orders from 3 on have no gain."""
    expected = scipy.signal.ellip(order, 3.0, 3.0, 0.3)
    close(signal.ellip(order, 3.0, 3.0, 0.3), expected, 1e-12)
    close(jit(lambda r: signal.ellip(order, r, r, 0.3))(3.0), expected, 1e-12)


def test_traced_numbers_that_make_no_sense_give_nan() -> None:
    for design, x in (
        (lambda w: signal.butter(2, w), 1.3), (lambda w: signal.butter(3, w, output="sos")[0], -0.1),
        (lambda w: signal.butter(2, w, analog=True)[0], -0.1), (lambda w: signal.bessel(1, [w, 0.2], "band"), 0.3),
        (lambda r: signal.cheby1(2, r, 0.3), 0.0), (lambda r: signal.cheby2(2, r, 0.3), -1.0),
        (lambda r: signal.ellip(1, r, 1.0, 0.3), 3.0), (lambda fs: signal.butter(2, 30.0, fs=fs), -100.0),
        (lambda w: signal.iirnotch(w, 3.0)[0], 1.0), (lambda c: signal.firwin(3, c), 1.5),
    ):  # fmt: skip
        for result in tree.leaves(vmap(design)(jnp.array([x]))):
            assert np.isnan(result).any(axis=-1).all()
