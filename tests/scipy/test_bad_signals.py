"""What the functions of signals, transforms, images, interpolation, integrals and rotations refuse, and how they say "
"so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import errors, jit
from pullback.scipy import fft, integrate, interpolate, ndimage, signal
from pullback.scipy.cluster.vq import vq
from pullback.scipy.spatial.transform import Rotation, Slerp

V, M, NONE = pnp.arange(1.0, 7.0), pnp.ones((3, 4)), pnp.zeros(0)
TURNS = Rotation.from_euler("z", pnp.arange(3.0))
Interpolator = interpolate.RegularGridInterpolator

REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: signal.convolve(NONE, V), ValueError, "convolve takes non-empty arrays, got shapes (0,)"),
    (lambda: signal.convolve(V, M), ValueError, "same number of axes"),
    (lambda: signal.convolve(V, V, "all"), ValueError, "mode must be 'full', 'same' or 'valid', got 'all'"),
    (lambda: signal.correlate(V, V, method="quick"), ValueError, "method must be"),
    (lambda: signal.correlate(M, M.T, "valid"), ValueError, "as large as the other along each axis"),
    (lambda: signal.convolve2d(V, V), ValueError, "convolve2d takes arrays of 2 axes"),
    (lambda: signal.convolve2d(M, M, boundary="torn"), ValueError, "boundary must be"),
    (lambda: signal.fftconvolve(M, M, axes=2), ValueError, "axis 2 is out of bounds"),
    (lambda: signal.fftconvolve(M, M, axes=(0, 0)), ValueError, "the axes must differ"),
    (lambda: signal.fftconvolve(M, M[:2], axes=1), ValueError, "must be equal or 1"),
    (lambda: signal.lfilter(NONE, V, V), ValueError, "coefficients b must be a non-empty vector"),
    (lambda: signal.lfilter(V, M, V), ValueError, "coefficients a must be a non-empty vector"),
    (lambda: signal.lfilter([1.0], V, V), TypeError, "lfilter"),
    (lambda: signal.lfilter(V, V - 1, V), ValueError, "first coefficient of a must not be zero"),
    (lambda: signal.lfilter(V, V, V, axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: signal.lfilter(V, V, V, zi=V), ValueError, "zi must have shape (5,)"),
    (lambda: signal.sosfilt(M, V), ValueError, "sos must have shape (n, 6)"),
    (lambda: signal.sosfilt(pnp.ones((2, 6)), V, zi=V), ValueError, "zi must have 2 axes"),
    (lambda: signal.savgol_filter(V, 3, 3), ValueError, "polyorder at least 0 and less"),
    (lambda: signal.savgol_filter(V, 9, 2), ValueError, "not be longer than the axis, of 6"),
    (lambda: signal.savgol_filter(V, 3, 1, mode="flat"), ValueError, "mode must be"),
    (lambda: signal.stft(V, nperseg=4, noverlap=4), ValueError, "noverlap must be at least 0 and less than nperseg"),
    (lambda: signal.stft(V, nperseg=4, nfft=2), ValueError, "nfft must be at least nperseg"),
    (lambda: signal.stft(V, nperseg=4, boundary="torn"), ValueError, "boundary must be one of"),
    (lambda: signal.stft(V, nperseg=4, window="broken"), ValueError, "unknown window 'broken'"),
    (lambda: signal.stft(V, nperseg=4, window=pnp.ones(3)), ValueError, "nperseg must be the size of the window, 3"),
    (lambda: signal.stft(V, nperseg=0), ValueError, "nperseg must be positive"),
    (lambda: signal.welch(V, nperseg=4, scaling="dB"), ValueError, "scaling must be"),
    (lambda: signal.welch(V, nperseg=4, average="mode"), ValueError, "average must be"),
    (lambda: signal.welch(V, pnp.ones(2), nperseg=4), ValueError, "fs must be a number"),
    (lambda: signal.istft(V), ValueError, "axes for time and frequency"),
    (lambda: signal.istft(M, time_axis=0, freq_axis=0), ValueError, "must differ"),
    (lambda: signal.detrend(V, type="square"), ValueError, "type of a trend must be"),
    (lambda: signal.detrend(V, bp=9), ValueError, "from 0 to the 6 elements"),
    (lambda: signal.detrend(V, bp=[[1], [2, 3]]), ValueError, "from 0 to the 6 elements"),
    (lambda: signal.detrend(V, overwrite_data=True), NotImplementedError, "arrays are immutable"),
    (lambda: fft.dct(V, 5), NotImplementedError, "must be 1, 2, 3 or 4, got 5"),
    (lambda: fft.dct(V, norm="big"), ValueError, "norm must be"),
    (lambda: fft.dct(V, 1, n=1), ValueError, "at least 2 points"),
    (lambda: fft.dct(V, axis=(0,)), ValueError, "use dctn for several"),
    (lambda: fft.idstn(M, s=(1, 2, 3)), ValueError, "3 sizes"),
    (lambda: fft.dctn(M, axes=(0, 0)), ValueError, "axes must differ"),
    (
        lambda: ndimage.map_coordinates(M, [V], 1),
        ValueError,
        "one array of coordinates for each axis, 2, got 1",
    ),
    (lambda: ndimage.map_coordinates(V, [V], 6), NotImplementedError, "order of a spline must be from 0 to 5, got 6"),
    (lambda: ndimage.map_coordinates(V, [V], 1, "torn"), NotImplementedError, "mode must be one of"),
    (lambda: ndimage.map_coordinates(NONE, [V], 1), ValueError, "a non-empty image"),
    (lambda: ndimage.map_coordinates(V, [V * 1j], 1), TypeError, "real coordinates"),
    (lambda: Interpolator((V,), V, "curved"), ValueError, "method must be"),
    (lambda: Interpolator((V, V), V), ValueError, "first 2 axes of values"),
    (lambda: Interpolator((V[pnp.array([0, 2, 1])],), V[:3]), ValueError, "must increase strictly, got 3.0 and then"),
    (lambda: Interpolator((V,), V, bounds_error=True)(pnp.array([9.0])), ValueError, "9.0 is out of bounds"),
    (lambda: jit(Interpolator((V,), V, bounds_error=True))(V), NotImplementedError, "they are traced"),
    (lambda: Interpolator((V,), V)((V, V)), ValueError, "has 1 coordinates, got 2"),
    (lambda: interpolate.CubicSpline(V, V[:2]), ValueError, "as many elements as there are points, 6"),
    (lambda: interpolate.CubicSpline(-V, V), ValueError, "must increase strictly"),
    (lambda: interpolate.CubicSpline(V, V, bc_type="loose"), ValueError, "bc_type must be"),
    (lambda: interpolate.CubicSpline(V, V, bc_type=("natural", (3, 0.0))), ValueError, "a condition must be"),
    (lambda: interpolate.CubicSpline(V, V, bc_type="periodic"), ValueError, "must be equal"),
    (lambda: interpolate.PPoly(M, V), ValueError, "the coefficients of 5 pieces"),
    (lambda: interpolate.PPoly(M, pnp.arange(5.0), "never"), ValueError, "extrapolate must be"),
    (lambda: interpolate.PPoly(M, pnp.arange(5.0))(1j), TypeError, "PPoly: the points must be real numbers, got c64"),
    (lambda: interpolate.interp1d(V, V, "curved"), ValueError, "kind must be"),
    (lambda: interpolate.interp1d(V, V, 4), NotImplementedError, "from 0 to 3, got 4"),
    (lambda: interpolate.interp1d(V[:3], V[:3], "cubic"), ValueError, "at least 4 elements"),
    (lambda: interpolate.interp1d(V, V)(7.5), ValueError, "the point 7.5 is out of bounds"),
    (lambda: interpolate.interp1d(V * 0, V), ValueError, "must increase strictly"),
    (lambda: interpolate.interp1d(V, V, bounds_error=True, fill_value="extrapolate"), ValueError, "contradicts"),
    (lambda: integrate.simpson(V, V[:3]), ValueError, "x must be a vector of 6 elements"),
    (lambda: integrate.simpson(NONE), ValueError, "at least one point"),
    (lambda: integrate.cumulative_trapezoid(V, initial=2.0), ValueError, "initial must be None or 0"),
    (lambda: integrate.quad(lambda x: V, 0.0, 1.0), ValueError, "must return a number, got shape (6,)"),
    (lambda: integrate.quad(V, 0.0, 1.0), ValueError, "func must be a function"),
    (lambda: integrate.quad(pnp.exp, V, 1.0), ValueError, "must be scalars, got shape (6,)"),
    (lambda: integrate.quad(pnp.exp, 0.0, 1.0, weight="cos"), NotImplementedError, "multiply the integrand"),
    (lambda: integrate.quad(pnp.exp, 0.0, 1.0, epsrel=[[1], [2, 3]]), ValueError, "epsrel must be a concrete number"),
    (lambda: integrate.quad(pnp.exp, 0.0, 1.0, epsabs=-1.0), ValueError, "epsabs must be a concrete number"),
    (lambda: integrate.quad(pnp.exp, 0.0, 1.0, limit=0), ValueError, "limit must be at least 1"),
    (lambda: integrate.quad(lambda x: x * 1j, 0.0, 1.0), TypeError, "complex_func=True"),
    (lambda: vq(M, V), ValueError, "observations (m, n) and a code book (k, n)"),
    (lambda: vq(M, M[:0]), ValueError, "at least one vector"),
    (lambda: Rotation.from_quat(V), ValueError, "takes an array of shape (..., 4), got (6,)"),
    (lambda: Rotation.from_quat(pnp.zeros(4)), ValueError, "a zero quaternion"),
    (lambda: Rotation.from_matrix(M), ValueError, "(..., 3, 3)"),
    (lambda: Rotation.from_euler("xyzx", V), ValueError, "one to 3 letters"),
    (lambda: Rotation.from_euler("xxy", V[:3]), ValueError, "must differ"),
    (lambda: Rotation.from_euler("xY", V[:2]), ValueError, "of 'xyz' only"),
    (lambda: TURNS.as_euler("xy"), ValueError, "three letters"),
    (lambda: len(TURNS[0]), TypeError, "no len()"),
    (lambda: TURNS[0][0], TypeError, "no elements"),
    (lambda: TURNS.mean(-V[:3]), ValueError, "must not be negative"),
    (lambda: Rotation.concatenate([V]), TypeError, "a sequence of rotations"),
    (lambda: Slerp.init(V, TURNS), ValueError, "as many times as rotations, 3"),
    (lambda: Slerp.init(V[:1], TURNS[0]), ValueError, "at least 2 rotations"),
    (lambda: Slerp.init(pnp.array([0.0, 1.0, 1.0]), TURNS), ValueError, "must increase strictly"),
    (lambda: Slerp.init(V[:3], TURNS)(7.0), ValueError, "must be from 1.0 to 3.0"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refused(i: int) -> None:
    call, kind, message = REFUSED[i]
    with pytest.raises(errors.PullbackError) as caught:
        call()
    assert isinstance(caught.value, kind)
    assert message in str(caught.value)


def test_traced_points_out_of_bounds_are_nan_or_filled() -> None:
    f = interpolate.interp1d(V, V)
    path = Slerp.init(V[:3], TURNS)
    out, filled, quat = jit(lambda t: (f(t), Interpolator((V,), V, fill_value=2.0)(t), path(t).quat))(pnp.array([9.0]))
    assert math.isnan(out[0])
    assert filled[0] == 2
    assert np.isnan(quat).all()


def test_an_integral_that_is_not_exact_enough_warns() -> None:
    with pytest.warns(UserWarning, match="more than the tolerance"):
        integrate.quad(lambda x: pnp.sin(1 / x) / x, 0.0, 1.0, limit=3)
    with pytest.warns(UserWarning, match="estimated error of"):
        integrate.quad(lambda x: 1 / x, 0.0, 1.0)


def test_a_window_is_cut_to_the_signal_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="nperseg=9 is more than the 6 elements"):
        assert signal.stft(V, nperseg=9)[2].shape == (4, 3)
    with pytest.warns(UserWarning, match="undetermined"):
        signal.istft(pnp.ones((3, 4)), noverlap=0, boundary=False)
