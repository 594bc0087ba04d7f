"""Windows: SciPy's values for known and for traced parameters, and derivatives by these."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal
from scipy.signal import windows as theirs

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.scipy.signal import windows
from pullback.test_util import check_grads

pytestmark = pytest.mark.usefixtures("x64")
SIZES = (0, 1, 2, 3, 8, 13)
PARAMETERS: dict[str, list[tuple[float, ...]]] = {
    "chebwin": [(50.0,), (100.0,), (-60.0,)], "exponential": [(3.0,)], "gaussian": [(1.7,)],
    "general_gaussian": [(1.5, 2.5), (0.5, 2.0)], "general_hamming": [(0.6,)], "kaiser": [(0.0,), (5.0,), (40.0,)],
    "taylor": [(30.0,), (60.0,)], "tukey": [(0.0,), (0.3,), (1.0,), (1.5,)],
}  # fmt: skip
"""Parameters that are real numbers."""
LAST = {"exponential": (None,), "taylor": (4,)}
"""Arguments before the parameters."""
WITHOUT = [
    name for name in theirs.__all__
    if name not in (*PARAMETERS, "dpss", "general_cosine", "get_window", "kaiser_bessel_derived")
]  # fmt: skip


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def by_formula(f: Any, *values: Any) -> Any:
    """The values of a function of which derivatives are taken."""
    return jvp(f, tuple(map(jnp.asarray, values)), tuple(map(jnp.ones_like, values)))[0]


def test_all_windows_of_scipy_are_there() -> None:
    assert set(windows.__all__) == set(theirs.__all__)


@pytest.mark.parametrize("name", WITHOUT)
def test_windows_without_parameters(name: str) -> None:
    for size, sym in itertools.product(SIZES, (True, False)):
        close(getattr(windows, name)(size, sym=sym), getattr(theirs, name)(size, sym=sym), 0)
    with enable_x64(False):
        assert getattr(windows, name)(5).dtype == np.float32


@pytest.mark.parametrize("name", PARAMETERS)
def test_windows_with_parameters(name: str) -> None:
    before = LAST.get(name, ())
    for size, sym, given in itertools.product(SIZES, (True, False), PARAMETERS[name]):
        f, g = (lambda *x, m=m: getattr(m, name)(size, *before, *x, sym=sym) for m in (windows, theirs))  # noqa: B023
        close(f(*given), g(*given), 0)
        close(by_formula(f, *given), g(*given), 1e-11)
    given = PARAMETERS[name][-1]
    f = lambda *x: getattr(windows, name)(9, *before, *x)
    close(jit(f)(*given), f(*given), 1e-11)
    close(vmap(f)(*(jnp.array([x, x + 0.1]) for x in given))[1], f(*(x + 0.1 for x in given)), 1e-11)
    check_grads(f, tuple(x + 0.05 for x in PARAMETERS[name][0]), 2, eps=1e-5, rtol=1e-5, atol=1e-5)
    with enable_x64(False):
        assert jit(f)(*given).dtype == np.float32


def test_centres_and_norms() -> None:
    f, g = (lambda c, m=m: m.exponential(7, c, 2.0, False) for m in (windows, theirs))
    close(by_formula(f, 2.3), g(2.3))
    check_grads(f, (2.3,), 1, eps=1e-6)
    f, g = (lambda s, m=m: m.taylor(8, 5, s, False) for m in (windows, theirs))
    close(by_formula(f, 40.0), g(40.0))
    for size in (0, 2, 8):
        f, g = (lambda b, m=m: m.kaiser_bessel_derived(size, b) for m in (windows, theirs))  # noqa: B023
        close(f(3.0), g(3.0), 0)
        close(by_formula(f, 3.0), g(3.0))
    check_grads(f, (3.0,), 2, eps=1e-5)
    a = np.array([0.4, 0.5, 0.1])
    for size, sym in itertools.product(SIZES, (True, False)):
        f, g = (lambda a, m=m: m.general_cosine(size, a, sym) for m in (windows, theirs))  # noqa: B023
        close(f(a), g(a), 0)
        close(by_formula(f, a), g(a))
    check_grads(f, (jnp.asarray(a),), 2, eps=1e-5)


def test_windows_of_slepian() -> None:
    choices = itertools.product((2, 7, 10), (None, 1, 2), (True, False), (None, 2, "approximate", "subsample"))
    for size, count, sym, norm in choices:
        width = 0.9 if size < 3 else 2.3
        f, g = (
            lambda w, m=m: m.dpss(size, w, count, sym, norm, True)  # noqa: B023
            for m in (windows, theirs)
        )
        for found in (f(width), by_formula(f, width)):
            for a, b in zip(found, g(width), strict=True):
                close(a, b, 1e-10)
    for count in (None, 2):
        f, g = (lambda w, m=m: m.dpss(1, w, count, return_ratios=True) for m in (windows, theirs))  # noqa: B023
        for a, b in zip(by_formula(f, 0.3), g(0.3), strict=True):
            close(a, b)
    f = lambda w: windows.dpss(8, w, 3, return_ratios=True)
    check_grads(f, (2.3,), 1, eps=1e-6)
    close(jit(f)(2.3)[0], f(2.3)[0], 1e-10)
    close(vmap(f)(jnp.array([2.0, 2.3]))[0][1], f(2.3)[0], 1e-10)
    check_grads(lambda w: windows.dpss(8, w, norm="subsample"), (2.3,), 1, eps=1e-6)


def test_windows_by_their_names() -> None:
    names = ["hann", "flt", "hamming_symmetric", "ones_periodic", "taylor", "tukey", "poisson", 5.0, ("ksr", 5.0)]
    names += [("general gaussian", 1.5, 2.0), ("exponential", None, 3.0), ("dpss", 2.0), ("gss_symmetric", 2.0)]
    names += [("general_cosine", [0.5, 0.5]), ("taylor", 4, 40.0), ("chebwin", 60.0), ("kbd_symmetric", 3.0)]
    for window, bins in itertools.product(names, (True, False)):
        close(signal.get_window(window, 8, bins), scipy.signal.get_window(window, 8, bins), 0)
    f, g = (lambda b, m=m: m.get_window(b, 7) for m in (signal, scipy.signal))
    close(by_formula(f, 5.0), g(5.0))
    f = lambda std: signal.get_window(("gaussian", std), 7)
    close(jit(f)(2.0), scipy.signal.get_window(("gaussian", 2.0), 7))


def test_spectra_have_derivatives_by_parameters_of_windows() -> None:
    x = np.random.default_rng(0).standard_normal(40)
    f, g = (lambda b, m=m: m.welch(x, window=("kaiser", b), nperseg=9)[1] for m in (signal, scipy.signal))
    close(by_formula(f, 5.0), g(5.0))
    close(f(5.0), g(5.0))
    check_grads(f, (5.0,), 1, eps=1e-6)
    f, g = (lambda s, m=m: m.stft(x, window=("gaussian", s), nperseg=9)[2] for m in (signal, scipy.signal))
    close(jit(f)(2.0), g(2.0))
    assert grad(lambda s: jnp.sum(jnp.abs(f(s))))(2.0) != 0


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: windows.hann(-1), "hann: M must not be negative, got -1"),
        (lambda: windows.hann(3.5), "hann: "),
        (lambda: windows.hann(3, sym="yes"), "hann: "),
        (lambda: windows.gaussian(3, [1.0, 2.0]), "gaussian: std must be a real number"),
        (lambda: windows.gaussian(3, 1j), "gaussian: std must be a real number"),
        (lambda: windows.exponential(3, 1.0), "exponential: with sym=True the center must be None"),
        (lambda: windows.kaiser_bessel_derived(3, 1.0), "kaiser_bessel_derived: M must be even, got 3"),
        (lambda: windows.kaiser_bessel_derived(4, 1.0, sym=False), "kaiser_bessel_derived: sym must be true"),
        (lambda: windows.general_cosine(3, 1.0), "general_cosine: a must be a non-empty vector"),
        (lambda: windows.taylor(3, 0), "taylor: nbar must be positive"),
        (lambda: windows.dpss(6, 3.0), "dpss: NW must be positive and less than half of M, 3.0, got 3.0"),
        (lambda: jvp(lambda w: windows.dpss(6, w), (-1.0,), (1.0,)), "dpss: NW must be positive"),
        (lambda: windows.dpss(6, 2.0, 7), "dpss: Kmax must be at most M, 6, got 7"),
        (lambda: windows.dpss(6, 2.0, norm=1), "dpss: norm must be 2, 'approximate' or 'subsample', got 1"),
        (lambda: signal.get_window("none", 3), "get_window: unknown window 'none'; the names are barthann, "),
        (lambda: signal.get_window("hann", 0), "get_window: Nx must be positive"),
        (lambda: signal.get_window(("hann", 1.0), 3), "get_window: the window 'hann' has no parameters"),
        (lambda: signal.get_window("kaiser", 3), "get_window: the window 'kaiser' must be a tuple"),
        (lambda: signal.get_window((1.0,), 3), "get_window: the first element of a window must be its name"),
        (lambda: signal.get_window(("kaiser", 1.0, 2.0), 3), r"get_window: the parameters of \('kaiser', 1.0, 2.0\)"),
        (lambda: signal.get_window(("dpss", 1.0, 2), 8), "get_window: the window 'dpss' has one parameter"),
        (lambda: signal.get_window(None, 3), "get_window"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
    with pytest.warns(UserWarning, match="chebwin: side lobes at=30.0 decibels"):
        windows.chebwin(5, 30.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        windows.chebwin(5, 60.0)
