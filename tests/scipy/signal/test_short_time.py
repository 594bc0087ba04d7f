"""Short-time Fourier transforms as an object: SciPy's values and positions, inverses, derivatives by windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.test_util import check_grads

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 31))
Z = X + 1j * X[::-1]
WINDOW = scipy.signal.windows.gaussian(9, 2.0)
GAPPED = np.array([0.0, 0.0, 1.0, 2.0, 1.0, 0.5, 0.0, 0.0])


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def both(window: Any, hop: int, fs: float = 2.0, **more: Any) -> tuple[signal.ShortTimeFFT, Any]:
    return signal.ShortTimeFFT(window, hop, fs, **more), scipy.signal.ShortTimeFFT(np.array(window), hop, fs, **more)


@pytest.mark.parametrize(("window", "hop"), [(WINDOW, 2), (WINDOW[:8], 3), (GAPPED, 1), (GAPPED, 4), (WINDOW, 9)])
def test_positions_are_those_of_scipy(window: Any, hop: int) -> None:
    ours, theirs = both(window, hop, mfft=12)
    for name in (
        "T", "delta_f", "delta_t", "f", "f_pts", "fac_magnitude", "fac_psd", "fft_mode", "fs", "hop", "invertible",
        "k_min", "lower_border_end", "m_num", "m_num_mid", "mfft", "onesided_fft", "p_min", "phase_shift", "scaling",
    ):  # fmt: skip
        found, expected = getattr(ours, name), getattr(theirs, name)
        if isinstance(expected, (float, np.ndarray)):
            close(found, expected)
        else:
            assert found == expected
    for n in (10, 11, 31):
        for name in ("k_max", "p_max", "p_num", "upper_border_begin", "p_range"):
            assert getattr(ours, name)(n) == getattr(theirs, name)(n)
        close(ours.t(n), theirs.t(n))
        close(ours.t(n, 0, 2, 3), theirs.t(n, 0, 2, 3))
        for order, middle in itertools.product(("tf", "ft"), (True, False)):
            assert ours.extent(n, order, middle) == theirs.extent(n, order, middle)
    assert [ours.nearest_k_p(k, left) for k in (3, 4, 7) for left in (True, False)] == [
        theirs.nearest_k_p(k, left) for k in (3, 4, 7) for left in (True, False)
    ]


@pytest.mark.parametrize("mode", ["onesided", "onesided2X", "twosided", "centered"])
def test_transforms_and_inverses_are_those_of_scipy(mode: str) -> None:
    shifts = [(0, 9), (None, 12), (3, 12), (-5, 11)]
    for (shift, mfft), scale, hop in itertools.product(shifts, (None, "psd", "magnitude"), (2, 5)):
        if scale is None and mode == "onesided2X":
            continue
        ours, theirs = both(WINDOW, hop, fft_mode=mode, mfft=mfft, phase_shift=shift, scale_to=scale)
        close(ours.win, theirs.win)
        close(ours.dual_win, theirs.dual_win)
        for x in (X, Z) if mode in ("twosided", "centered") else (X,):
            z = theirs.stft(x)
            close(ours.stft(x), z)
            close(ours.istft(z), theirs.istft(z))
            close(ours.istft(z, 3, 31), theirs.istft(z, 3, 31))
            close(ours.istft(ours.stft(x), k1=31), x)


def test_options_of_transforms() -> None:
    ours, theirs = both(WINDOW, 3)
    for padding, trend in itertools.product(("zeros", "edge", "even", "odd"), (None, "constant", "linear")):
        for more in ({}, {"p0": 0, "p1": 4, "k_offset": 2}, {"p0": 1, "k_offset": -1}):
            more = {"padding": padding, **more}
            close(ours.stft_detrend(X, trend, **more), theirs.stft_detrend(X, trend, **more))
    middle = lambda x: x - x[..., 4:5]
    close(ours.stft_detrend(X, middle), theirs.stft_detrend(X, middle))
    for axis in (0, 1, -1, -3):
        x = RNG.standard_normal((11, 12, 13))
        found, expected = ours.stft(x, axis=axis), theirs.stft(x, axis=axis)
        close(found, expected)
        if axis >= 0:
            arguments = {"f_axis": axis, "t_axis": -1}
            close(ours.istft(found, **arguments), theirs.istft(expected, **arguments))
    close(ours.istft(jnp.swapaxes(ours.stft(X), 0, 2), f_axis=1, t_axis=0),
          theirs.istft(np.swapaxes(theirs.stft(X), 0, 2), f_axis=1, t_axis=0))  # fmt: skip
    close(ours.spectrogram(X, detr="constant"), theirs.spectrogram(X, detr="constant"))
    close(ours.spectrogram(X, X[::-1]), theirs.spectrogram(X, X[::-1]))
    complex_window = WINDOW * np.exp(0.3j * np.arange(9))
    ours, theirs = both(complex_window, 3, fft_mode="twosided")
    close(ours.stft(Z), theirs.stft(Z))
    close(ours.istft(ours.stft(Z), k1=31), Z)


def test_elements_before_the_signal_are_those_of_the_first_slices() -> None:
    ours, theirs = both(WINDOW[:8], 2)
    z = theirs.stft(X)
    whole = theirs.istft(z, k0=0)
    found = ours.istft(z, k0=ours.k_min)
    close(found[:, -ours.k_min :], whole)
    close(found[:, : -ours.k_min], np.zeros((2, -ours.k_min)))


def test_other_ways_to_make_one() -> None:
    for name, arguments in (
        ("from_dual", (WINDOW, 3, 2.0)), ("from_window", (("gaussian", 2.0), 2.0, 9, 6)),
        ("from_win_equals_dual", (WINDOW, 3, 2.0)),
    ):  # fmt: skip
        scales: Any = (None, "psd", "unitary") if name == "from_win_equals_dual" else (None, "psd")
        for scale in scales:
            ours, theirs = (
                getattr(m.ShortTimeFFT, name)(*arguments, scale_to=scale, mfft=10) for m in (signal, scipy.signal)
            )
            close(ours.win, theirs.win)
            close(ours.dual_win, theirs.dual_win)
            assert ours.scaling == theirs.scaling
            close(ours.stft(X), theirs.stft(X))
    ours, theirs = (m.ShortTimeFFT.from_window("hann", 2.0, 8, 4, symmetric_win=True) for m in (signal, scipy.signal))
    close(ours.win, theirs.win)
    ours.fs, ours.mfft, ours.phase_shift, ours.fft_mode = 3.0, 16, 2, "centered"
    theirs.fs, theirs.mfft, theirs.phase_shift, theirs.fft_mode = 3.0, 16, 2, "centered"
    close(ours.stft(X), theirs.stft(X))
    ours.T = theirs.T = 0.2
    close(ours.f, theirs.f)
    for m in (ours, theirs):
        m.scale_to("psd")
        m.scale_to("psd")
    close(ours.win, theirs.win)


def test_the_closest_dual_windows() -> None:
    wanted = scipy.signal.windows.hann(9)
    for hop, dual, scaled in itertools.product((1, 3, 9), (None, wanted), (True, False)):
        found, expected = (m.closest_STFT_dual_window(WINDOW, hop, dual, scaled=scaled) for m in (signal, scipy.signal))
        close(found[0], expected[0])
        close(found[1], expected[1])
    check_grads(lambda w: signal.closest_STFT_dual_window(w, 3, wanted)[0], (jnp.asarray(WINDOW),), 1, eps=1e-6)


def test_derivatives_by_signals_and_windows() -> None:
    def energy(window: Any, x: Any) -> Any:
        transform = signal.ShortTimeFFT(window, 3, 2.0, scale_to="psd", fft_mode="onesided2X")
        return transform.spectrogram(x, detr="constant")

    def again(window: Any, z: Any) -> Any:
        return signal.ShortTimeFFT(window, 3, 2.0).istft(z, k1=20)

    z = signal.ShortTimeFFT(WINDOW, 3, 2.0).stft(X[0, :20])
    window = jnp.asarray(WINDOW)
    for f, arguments in ((energy, (window, jnp.asarray(X[0, :20]))), (again, (window, z))):
        check_grads(f, arguments, 1, eps=1e-5, rtol=1e-5, atol=1e-5)
        close(jit(f)(*arguments), f(*arguments))
        close(vmap(f, in_axes=(None, 0))(window, jnp.stack([arguments[1], 2 * arguments[1]]))[0], f(*arguments))
    of = lambda std: jnp.sum(jnp.abs(signal.ShortTimeFFT.from_window(("gaussian", std), 2.0, 9, 6).stft(X[0])))
    step = 1e-5
    close(grad(of)(2.0), (of(2.0 + step) - of(2.0 - step)) / (2 * step), 1e-6)
    close(jit(grad(of))(2.0), grad(of)(2.0))


def test_it_is_a_tree_of_its_windows() -> None:
    transform = signal.ShortTimeFFT(GAPPED, 2, 2.0, dual_win=GAPPED, phase_shift=1, fft_mode="centered", mfft=9)
    assert len(tree.leaves(transform)) == 2
    close(jit(lambda m, x: m.stft(x))(transform, X), transform.stft(X))
    gradient = grad(lambda m: jnp.sum(jnp.abs(m.stft(X)) ** 2))(transform)
    assert gradient.win.shape == (8,)
    assert float(jnp.abs(gradient.win).max()) > 0
    assert jit(lambda m: m.p_min)(transform) == transform.p_min
    with enable_x64(False):
        assert signal.ShortTimeFFT(jnp.ones(4), 2, 1.0).stft(jnp.ones(9)).dtype == np.complex64


def test_what_makes_no_sense_is_refused() -> None:
    transform = signal.ShortTimeFFT(WINDOW, 3, 2.0)
    make = signal.ShortTimeFFT
    for call, text in (
        (lambda: make(X, 3, 2.0), "ShortTimeFFT: win must be a non-empty vector, got shape"),
        (lambda: make([1.0, np.nan], 1, 2.0), "ShortTimeFFT: win must have finite elements"),
        (lambda: make(WINDOW, 0, 2.0), "ShortTimeFFT: hop must be positive, got 0"),
        (lambda: make(WINDOW, 1, 0.0), "ShortTimeFFT: Sampling frequency"),
        (lambda: jit(lambda fs: make(WINDOW, 1, fs).stft(X))(2.0), "ShortTimeFFT: the sampling frequency must be a"),
        (lambda: make(WINDOW, 1, 2.0, mfft=3), "ShortTimeFFT: .*mfft"),
        (lambda: make(WINDOW, 1, 2.0, dual_win=[1.0]), "dual_win must have the shape of the window"),
        (lambda: make(WINDOW, 1, 2.0, scale_to="unit"), "scaling must be 'magnitude' or 'psd', got 'unit'"),
        (lambda: make(WINDOW, 1, 2.0, fft_mode="both"), "fft_mode must be one of"),
        (lambda: make(WINDOW, 1, 2.0, fft_mode="onesided2X"), "needs a scaled window"),
        (lambda: make(WINDOW + 0j, 1, 2.0), "the window must be real; use 'twosided'"),
        (lambda: make(WINDOW, 1, 2.0, phase_shift=20), "phase_shift"),
        (lambda: make([0.0, 1.0, 0.0, 0.0], 2, 2.0).dual_win, "the transform is not invertible"),
        (lambda: jit(lambda w: make(w, 1, 2.0).invertible)(WINDOW), "ShortTimeFFT.invertible: the window is traced"),
        (lambda: make.from_dual([1.0, 1.0], 3, 2.0), "ShortTimeFFT.from_dual: the transform is not invertible"),
        (lambda: make.from_win_equals_dual([0.0, 1.0], 2, 2.0), "leave elements out"),
        (lambda: make.from_win_equals_dual(WINDOW, 10, 2.0), "hop must be from 1 to the 9 elements"),
        (lambda: make.from_win_equals_dual(WINDOW, 2, 2.0, scale_to="no"), "scale_to must be"),
        (lambda: signal.closest_STFT_dual_window(WINDOW, 0), "hop must be from 1 to the 9 elements"),
        (lambda: signal.closest_STFT_dual_window(WINDOW, 1, -np.ones(9) * 0), "use scaled=False"),
        (lambda: transform.stft(Z), "the signal must be real; use 'twosided'"),
        (lambda: transform.stft(X[:, :3]), "at least half of the window's elements, 5, got 3"),
        (lambda: transform.stft(X, padding="torn"), "padding must be one of"),
        (lambda: transform.stft_detrend(X, "cubic"), "the type of a trend must be"),
        (lambda: transform.stft(X, 5, 4), "ShortTimeFFT.p_range: "),
        (lambda: transform.t(2), "ShortTimeFFT.t: "),
        (lambda: transform.istft(X), "takes an array of 5 frequencies"),
        (lambda: transform.istft(transform.stft(X), 0, 99), "k0 and k1 must be from"),
        (lambda: transform.istft(transform.stft(X), f_axis=0, t_axis=0), "f_axis and t_axis must differ"),
        (lambda: transform.istft(X[0]), "takes an array with axes of frequencies and slices"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
    assert not make([0.0, 1.0, 0.0, 0.0], 2, 2.0).invertible
    assert not make(WINDOW, 10, 2.0).invertible
