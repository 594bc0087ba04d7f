"""Signals, transforms, images, interpolation, integrals and rotations agree with SciPy, where the grid of operations
does not look: sizes, modes and options beside each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal
from scipy.spatial.transform import Rotation as TheirRotation

import pullback.numpy as pnp
from pullback import grad, hessian, jacfwd, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy import fft, integrate, interpolate, ndimage, signal
from pullback.scipy.spatial.transform import Rotation
from pullback.test_util import check_grads
from tests.helpers import assert_close

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.usefixtures("x64")


agree = partial(assert_close, tolerance=1e-12, dtypes=False)


def test_convolutions_of_all_modes() -> None:
    for n, m, part in (((5,), (3,), 1j), ((3,), (5,), 0), ((4, 5), (3, 2), 0), ((3, 2), (4, 5), 1j)):
        x, y = (RNG.normal(size=s) + part * RNG.normal(size=s) for s in (n, m))
        names = ["convolve", "correlate", "fftconvolve", *(["convolve2d", "correlate2d"] if len(n) == 2 else [])]
        for name, mode in itertools.product(names, ("full", "same", "valid")):
            agree(getattr(signal, name)(x, y, mode), getattr(scipy.signal, name)(x, y, mode))
        agree(signal.convolve(x, y, method="fft"), scipy.signal.convolve(x, y))
    x, y = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 2))
    for boundary, mode in itertools.product(("fill", "wrap", "symm"), ("full", "same")):
        for name in ("convolve2d", "correlate2d"):
            arguments = (x, y, mode, boundary, 2.0)
            agree(getattr(signal, name)(*arguments), getattr(scipy.signal, name)(*arguments))


def test_filters_of_all_orders_and_states() -> None:
    for nb, na, n in ((1, 1, 5), (3, 1, 5), (1, 3, 5), (2, 4, 7), (4, 2, 7), (5, 5, 2), (2, 2, 1), (1, 19, 4)):
        b, a, x = RNG.normal(size=nb), np.r_[2.0, 0.3 * RNG.normal(size=na - 1)], RNG.normal(size=(2, n, 3))
        agree(signal.lfilter(b, a, x, 1), scipy.signal.lfilter(b, a, x, 1))
        if max(na, nb) > 1:
            state = RNG.normal(size=(1, max(na, nb) - 1, 3))
            agree(signal.lfilter(b, a, x, 1, state), scipy.signal.lfilter(b, a, x, 1, state))
    sections, x, state = scipy.signal.butter(5, 0.3, output="sos"), RNG.normal(size=(2, 30)), RNG.normal(size=(3, 2, 2))
    agree(signal.sosfilt(sections, x, zi=state), scipy.signal.sosfilt(sections, x, zi=state))
    agree(signal.sosfilt(sections, x, 0), scipy.signal.sosfilt(sections, x, 0))
    b, a = np.array([1.0, 2.0]), np.array([2.0, 0.5, 0.1])
    agree(signal.lfilter_zi(b, a), scipy.signal.lfilter_zi(b, a))
    agree(jit(vmap(signal.lfilter, (0, 0, None)))(sections[:, :3], sections[:, 3:], x[0]),
          np.stack([scipy.signal.lfilter(s[:3], s[3:], x[0]) for s in sections]))  # fmt: skip


def test_a_long_filter_is_differentiated_without_a_trace_of_each_step() -> None:
    x, b = pnp.asarray(RNG.normal(size=5000)), pnp.array([1.0, 0.5])
    loss = lambda a: (signal.lfilter(b, a, x) ** 2).mean()
    a = pnp.array([1.0, -1.2, 0.5])
    check_grads(loss, (a,), order=2)
    agree(jit(hessian(loss))(a), hessian(loss)(a), tolerance=1e-9)


def test_smoothing_at_the_ends() -> None:
    for (window, order), deriv, mode in itertools.product(
        ((5, 2), (4, 2), (1, 0), (11, 3)), (0, 1), ("interp", "mirror", "nearest", "wrap", "constant")
    ):
        for n in (11,):
            arguments = (RNG.normal(size=(n, 2)), window, order, deriv, 0.7, 0, mode, 1.5)
            agree(signal.savgol_filter(*arguments), scipy.signal.savgol_filter(*arguments), tolerance=1e-11)


@pytest.mark.filterwarnings("ignore:nperseg")
def test_spectra_of_all_options() -> None:
    options: tuple[dict[str, Any], ...] = (
        {"nperseg": 7, "noverlap": 3}, {"nperseg": 8, "noverlap": 7, "nfft": 11}, {"nperseg": 9, "fs": 3.0},
        {"nperseg": 8, "window": ("tukey", 0.3)}, {"window": np.arange(1, 10.0), "nperseg": 9},
    )  # fmt: skip
    signals = RNG.normal(size=(2, 50)), RNG.normal(size=30) + 1j * RNG.normal(size=30)
    for x, given in itertools.product(signals, options):
        onesided = x.dtype.kind != "c"
        for boundary, padded in itertools.product(("zeros", "even", "odd", "constant", None), (True, False)):
            more = {**given, "boundary": boundary, "padded": padded, "return_onesided": onesided}
            agree(signal.stft(x, **more), scipy.signal.stft(x, **more))
        z = scipy.signal.stft(x, **given, return_onesided=onesided)[2]
        # The times that SciPy and JAX return count another axis, of signals beside each other.
        agree(signal.istft(z, input_onesided=onesided, **given)[1],
              scipy.signal.istft(z, input_onesided=onesided, **given)[1], tolerance=1e-11)  # fmt: skip
        for scaling, average in itertools.product(("density", "spectrum"), ("mean", "median")):
            more = {**given, "scaling": scaling, "average": average, "return_onesided": onesided}
            agree(signal.welch(x, **more), scipy.signal.welch(x, **more))
            agree(signal.csd(x, x[..., 5:], **more), scipy.signal.csd(x, x[..., 5:], **more))


def test_transforms_of_all_types_are_their_matrices() -> None:
    names = ("dct", "idct", "dst", "idst")
    every = list(itertools.product(names, (1, 2, 3, 4), (None, "ortho", "forward")))
    for n in (5,):
        x = RNG.normal(size=(n, 3))
        compiled = jit(lambda x: [getattr(fft, name)(x, k, axis=0, norm=norm) for name, k, norm in every])(x)
        for (name, k, norm), out in zip(every, compiled, strict=True):
            ours, theirs = (partial_of(m, name, k, norm) for m in (fft, scipy.fft))
            agree([ours(x), out], [theirs(x)] * 2)
            agree(jacfwd(ours)(x[:, :1])[:, 0, :, 0], theirs(np.eye(n)))
    one = np.ones((1, 1))
    agree(fft.dct(one, 2, 1), scipy.fft.dct(one, 2, 1))


def partial_of(module: Any, name: str, k: int, norm: str | None) -> Callable[[Any], Any]:
    return lambda x: getattr(module, name)(x, k, axis=0, norm=norm)


@pytest.mark.parametrize("shape", [(7,), (1, 4), (2, 3), (3, 4, 5)])
def test_splines_of_images(shape: tuple[int, ...]) -> None:
    x, points = RNG.normal(size=shape), RNG.uniform(-1, 1, (len(shape), 30)) * 3 * np.array(shape)[:, None] + 2
    theirs = {"constant": "grid-constant", "wrap": "grid-wrap"}
    for mode, order in itertools.product(("constant", "nearest", "mirror", "wrap", "reflect"), range(4)):
        if mode == "reflect" and order > 1:
            continue  # where SciPy's coefficients of short axes are not exact
        expected = scipy.ndimage.map_coordinates(x, points, order=order, mode=theirs.get(mode, mode), cval=0.7)
        agree(ndimage.map_coordinates(x, points, order, mode, 0.7), expected)
    at = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij")).astype(float)
    agree([ndimage.map_coordinates(x, at, order, "reflect") for order in (2, 3)], [x, x])


def test_places_that_are_far_or_no_numbers() -> None:
    far = [np.array([math.nan, 1e300, -1e300])]
    for order in range(4):
        assert np.isnan(ndimage.map_coordinates(np.arange(4.0), far, order)[0])
        agree(ndimage.map_coordinates(np.arange(4.0), far, order, "nearest")[1:], np.array([3.0, 0.0]), tolerance=1e-6)
        agree(
            ndimage.map_coordinates(np.arange(4.0), far, order, "constant", 5.0)[1:],
            np.array([5.0, 5.0]),
            tolerance=1e-6,
        )


def test_splines_of_all_conditions() -> None:
    slopes = RNG.normal(size=(2, 2, 3))
    conditions: tuple[Any, ...] = (
        "not-a-knot", "clamped", "natural", "periodic", ((1, slopes[0]), (2, slopes[1])),
        ("not-a-knot", (2, slopes[1])),
    )  # fmt: skip
    for n, bc in itertools.product((2, 3, 4, 8), conditions):
        x, y, t = np.cumsum(RNG.uniform(0.3, 1, n)), RNG.normal(size=(2, n, 3)), RNG.uniform(-1, 6, (4, 2))
        if bc == "periodic":
            y[:, -1] = y[:, 0]
        ours, theirs = interpolate.CubicSpline(x, y, 1, bc), scipy.interpolate.CubicSpline(x, y, 1, bc)
        agree([ours(t, nu) for nu in range(5)], [theirs(t, nu) for nu in range(5)], tolerance=1e-9)
        for how in (False, "periodic"):
            agree(ours(t, 0, how), theirs(t, 0, how), tolerance=1e-9)
        agree(ours.integrate(-0.3, 0.7), theirs.integrate(-0.3, 0.7), tolerance=1e-9)
        agree(ours.integrate(-3.0, 4.0, "periodic"), theirs.integrate(-3.0, 4.0, "periodic"), tolerance=1e-9)
        agree(ours.antiderivative(2)(t), theirs.antiderivative(2)(t), tolerance=1e-9)
    agree(jit(lambda f, t: f(t))(ours, t), ours(t))


def test_kinds_of_interpolation() -> None:
    kinds = ("linear", "nearest", "nearest-up", "zero", "slinear", "quadratic", "cubic", "previous", "next", 0, 1, 2, 3)
    for n, kind, fill in itertools.product((4, 9), kinds, ("extrapolate", 2.0, (1.0, 2.0))):
        x = RNG.permutation(np.cumsum(RNG.uniform(0.3, 1, n)))
        y, t = RNG.normal(size=(2, n, 3)), RNG.uniform(0, 5, (4, 2))
        t[0, 0] = x[1]
        options = {"bounds_error": False, "fill_value": fill}
        ours, theirs = (m.interp1d(x, y, kind, 1, **options) for m in (interpolate, scipy.interpolate))
        agree(ours(t), theirs(t), tolerance=1e-9)
    assert np.isnan(interpolate.interp1d(x, y, "nearest", 1)(math.nan)).all()


def test_grids_in_either_direction() -> None:
    grid = (np.cumsum(RNG.uniform(0.3, 1, 4)), -np.cumsum(RNG.uniform(0.3, 1, 5)), np.array([0.0, 1.0]))
    values, points = RNG.normal(size=(4, 5, 2, 3)), RNG.normal(size=(6, 7, 3)) * 2
    points[0, 0, 1] = math.nan
    for method, fill in itertools.product(("linear", "nearest"), (math.nan, None, 2.0)):
        kinds = (m.RegularGridInterpolator for m in (interpolate, scipy.interpolate))
        ours, theirs = (kind(grid, values, method, False, fill) for kind in kinds)
        agree(ours(points), theirs(points))
    agree(jit(lambda f, x: f(x))(ours, points), ours(points))


def test_sums_over_samples() -> None:
    for n in (1, 2, 3, 4, 5, 8):
        y, x = RNG.normal(size=(2, n, 3)), np.cumsum(RNG.uniform(0.3, 1, n))
        for places in (None, x, np.broadcast_to(x[:, None], y.shape) + 0):
            agree(integrate.simpson(y, places, axis=1), scipy.integrate.simpson(y, places, axis=1))
            if n > 1:
                ours, theirs = (m.cumulative_trapezoid(y, places, axis=1) for m in (integrate, scipy.integrate))
                agree(ours, theirs)


INTEGRALS: list[tuple[Callable[..., Any], float, float, float]] = [
    (lambda x: pnp.exp(-x * x), -math.inf, math.inf, math.sqrt(math.pi)),
    (lambda x: pnp.exp(-x), 0.0, math.inf, 1.0),
    (pnp.exp, -math.inf, 1.0, math.e),
    (pnp.exp, math.inf, math.inf, 0.0),
    (lambda x: x**-1.5, 1.0, math.inf, 2.0),
    (lambda x: x**-0.5, 0.0, 1.0, 2.0),
    (lambda x: 1 / pnp.sqrt(1 - x * x), -1.0, 1.0, math.pi),
    (pnp.log, 0.0, 1.0, -1.0),
    (lambda x: pnp.cos(50 * x), 0.0, 3.0, math.sin(150) / 50),
    (pnp.exp, 2.0, -1.0, math.exp(-1) - math.exp(2)),
    (lambda x: abs(x - 0.3), 0.0, 1.0, 0.29),
]


@pytest.mark.parametrize("i", range(len(INTEGRALS)))
def test_integrals(i: int) -> None:
    f, a, b, exact = INTEGRALS[i]
    value, error = integrate.quad(f, a, b)
    assert abs(float(value) - exact) <= max(1e-14, float(error)) < 1.5e-7


def test_derivatives_of_integrals() -> None:
    """Of limits, of what is closed over, of arguments; to second order, compiled and mapped."""
    closed = lambda a, b, k: integrate.quad(lambda x: pnp.exp(-k * x) * x, a, b)[0]
    given = lambda a, b, k: integrate.quad(lambda x, k: pnp.exp(-k * x) * x, a, b, (k,))[0]
    exact = lambda a, b, k: ((1 + k * a) * pnp.exp(-k * a) - (1 + k * b) * pnp.exp(-k * b)) / k**2
    at, every = (0.1, 1.5, 2.0), (0, 1, 2)
    agree(grad(closed, every)(*at), grad(exact, every)(*at))
    agree(jacfwd(given, 2)(*at), grad(exact, 2)(*at))
    for row, expected in zip(hessian(closed, (0, 2))(*at), hessian(exact, (0, 2))(*at), strict=True):
        agree(row, expected, tolerance=1e-10)
    ks = np.array([1.0, 2.0])
    agree(
        jit(vmap(grad(closed, 2), (None, None, 0)))(0.1, 1.5, ks), np.array([grad(exact, 2)(0.1, 1.5, k) for k in ks])
    )
    agree(grad(lambda k: closed(0.0, math.inf, k))(3.0), -2 / 27)
    # The derivative has a jump where the integrand has a kink, and the integrand may be infinite at a limit.
    agree(grad(lambda k: integrate.quad(lambda x: abs(x - k), 0.0, 1.0)[0])(0.3), -0.4, tolerance=1e-8)
    agree(grad(lambda k: integrate.quad(lambda x: pnp.log(k * x), 0.0, 1.0)[0])(3.0), 1 / 3)
    value, error = integrate.quad(lambda x: abs(x - 0.3), 0.0, 1.0, points=[0.3])
    agree(value, 0.29)
    assert error < 1e-14
    agree(integrate.quad(lambda x: pnp.exp(1j * x), 0, 1, complex_func=True)[0], (np.exp(1j) - 1) / 1j)


def test_an_integral_in_single_precision_ends() -> None:
    with enable_x64(False):
        value, error, info = integrate.quad(lambda x: pnp.exp(-x * x), -math.inf, math.inf, full_output=1)
    assert abs(float(value) - math.sqrt(math.pi)) < 3e-6
    assert error < 1e-5
    assert info["last"] < 20


def test_rotations_of_all_sequences() -> None:
    q = RNG.normal(size=(6, 4))
    ours, theirs = Rotation.from_quat(q), TheirRotation.from_quat(q)
    for letters in itertools.product("xyz", repeat=3):
        if letters[0] == letters[1] or letters[1] == letters[2]:
            continue
        for seq in ("".join(letters), "".join(letters).upper()):
            agree(ours.as_euler(seq), theirs.as_euler(seq), tolerance=1e-11)
            agree(Rotation.from_euler(seq, q[:, :3]).as_matrix(), TheirRotation.from_euler(seq, q[:, :3]).as_matrix())
    weights = RNG.uniform(size=6)
    agree(ours.mean(weights).as_matrix(), theirs.mean(weights).as_matrix())
    agree((ours**0.3).as_matrix(), (theirs**0.3).as_matrix())
    agree((ours * ours[::-1]).as_quat(True, True), (theirs * theirs[::-1]).as_quat(canonical=True, scalar_first=True))


@pytest.mark.slow
def test_vectors_of_rotations_are_differentiated_at_zero() -> None:
    through = lambda v: Rotation.from_rotvec(v).as_rotvec()
    for v in (np.zeros(3), np.array([0.01, 0.002, 0.003]), np.array([0.03, 0.0, 0.0]), np.array([0.5, -0.4, 0.1])):
        agree(jacfwd(through)(v), np.eye(3))
        check_grads(lambda v: Rotation.from_rotvec(v).apply(pnp.ones(3)), (v,), order=2)


def test_the_integral_of_one_point_is_zero() -> None:
    """Compiled, too: a part of no points began behind the end."""
    for shape in ((1,), (2, 1)):
        y = pnp.ones(shape)
        for f in (integrate.simpson, jit(integrate.simpson), lambda y: integrate.simpson(y, y[..., :1])):
            assert (f(y) == pnp.zeros(shape[:-1])).all()
