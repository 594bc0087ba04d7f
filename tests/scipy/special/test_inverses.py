"""Quantiles, Lambert's W and Voigt's profile: equations, branches, limits and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback import errors
from pullback.core.config import enable_x64
from pullback.scipy import special
from tests.helpers import eager_and_compiled


@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv", "betaincinv", "betainccinv"])
def test_quantiles_invert_probabilities(name: str) -> None:
    rng = np.random.default_rng(0)
    count = 1 if name.startswith("gamma") else 2
    parameters = [rng.uniform(0.3, 20, 50) for _ in range(count)]
    y = rng.uniform(1e-6, 1 - 1e-6, 50)
    direct = {"gamma": special.gammainc, "beta": special.betainc}[name.partition("inc")[0]]
    if name == "gammainccinv":
        direct = special.gammaincc
    with enable_x64():
        for x in eager_and_compiled(getattr(special, name), *parameters, y):
            back = np.asarray(direct(*parameters, x))
            np.testing.assert_allclose(1 - back if name == "betainccinv" else back, y, rtol=1e-11)
        slopes = pullback.vmap(pullback.grad(getattr(special, name), count))(*parameters, y)
        h = 1e-6 * y * (1 - y)
        reference = getattr(scipy.special, name)
        differences = (reference(*parameters, y + h) - reference(*parameters, y - h)) / (2 * h)
        np.testing.assert_allclose(slopes, differences, rtol=1e-6)


def points() -> Any:
    """Numbers of all sizes and directions, many of them near the branch point, on the cut and beside it."""
    rng = np.random.default_rng(0)
    turns = np.exp(1j * rng.uniform(-np.pi, np.pi, 3000))
    far, near = 10 ** rng.uniform(-12, 12, 3000) * turns, -1 / math.e + 10 ** rng.uniform(-10, 0, 3000) * turns
    real = np.concatenate([-(10 ** rng.uniform(-12, 6, 500)), -1 / math.e + 10 ** rng.uniform(-10, -0.5, 500)])
    return np.concatenate([far, near, real + 0j])


@pytest.mark.parametrize("k", [0, -1, 1, 2, -2, 7])
def test_lambertw_solves_its_equation_on_each_branch(k: int) -> None:
    z = points()
    with enable_x64():
        for out in eager_and_compiled(lambda z: special.lambertw(z, k), z):
            w = np.asarray(out)
            # an ulp of w is abs(w) ulps of exp(w)
            assert (abs(w * np.exp(w) - z) <= 1e-15 * abs(z) * (4 + abs(w))).all()
            reference = scipy.special.lambertw(z, k, tol=1e-15)
            ends = np.isfinite(reference)  # near the branch point SciPy's iteration may not end
            assert ends.mean() > 0.9
            np.testing.assert_allclose(w[ends], reference[ends], rtol=1e-7)


def test_lambertw_on_its_cut_has_two_sides() -> None:
    with enable_x64():
        above, below = (special.lambertw(complex(-0.1, zero), np.array([0, -1, 1])) for zero in (0.0, -0.0))
        assert np.asarray(above)[1].imag == 0
        np.testing.assert_allclose(np.asarray(below), np.conj(np.asarray(above))[[0, 2, 1]], rtol=1e-14)


def test_lambertw_at_its_ends() -> None:
    z = np.array([0, -1 / math.e, math.inf, -math.inf, 5e-324])
    with enable_x64():
        np.testing.assert_array_equal(special.lambertw(z), [0, -1, math.inf, complex(math.inf, math.pi), 5e-324])
        assert special.lambertw(-1 / math.e, -1) == -1
        assert np.asarray(special.lambertw(0.0, 2)).real == -math.inf
        assert np.isnan(special.lambertw(math.nan))
        # what scipy.special.lambertw ends with here is -1.00000001
        assert special.lambertw(-1 / math.e + 1e-9, -1).real == pytest.approx(-1.0000737348, rel=1e-9)


def test_lambertw_has_derivatives_of_any_order() -> None:
    def real(x: Any) -> Any:
        return special.lambertw(x).real

    with enable_x64():
        w = float(real(1.0))
        assert pullback.grad(real)(1.0) == pytest.approx(w / (1 + w), rel=1e-15)
        assert pullback.grad(pullback.grad(real))(1.0) == pytest.approx(-(w**2) * (w + 2) / (1 + w) ** 3, rel=1e-14)
        assert pullback.grad(real)(0.0) == 1
        z = jnp.array(0.5 + 2j)
        slope = pullback.grad(lambda z: special.lambertw(z, -1), holomorphic=True)(z)
        w1 = special.lambertw(z, -1)
        np.testing.assert_allclose(slope, w1 / z / (1 + w1), rtol=1e-14)


def test_lambertw_takes_integers_for_branches() -> None:
    with pytest.raises(errors.DtypeError, match="lambertw: the branch k must be integers, got f32"):
        special.lambertw(1.0, jnp.float32(0))
    with pytest.raises(errors.OperandError):
        special.lambertw("1")
    out = special.lambertw(jnp.ones((2, 1)), np.arange(3))
    assert out.shape == (2, 3)
    assert out.dtype == np.complex64


def test_voigt_profile_is_scipys() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    sigma, gamma = (10 ** rng.uniform(-12, 2, 300) for _ in range(2))
    sigma[:20], gamma[20:40] = 0, 0
    sigma[20:40] = 1
    with enable_x64():
        for out in eager_and_compiled(special.voigt_profile, x, sigma, gamma):
            np.testing.assert_allclose(out, scipy.special.voigt_profile(x, sigma, gamma), rtol=1e-13)
        np.testing.assert_array_equal(special.voigt_profile(np.array([0.0, 1.0]), 0.0, 0.0), [math.inf, 0])


def test_derivatives_of_voigt_profile_at_its_limits() -> None:
    """Of Cauchy's density at sigma = 0, where the profile is even in sigma; and of the normal density at gamma = 0."""

    def cauchy(x: Any) -> Any:
        return 0.25 / math.pi / (x**2 + 0.25**2)

    with enable_x64():
        profile = special.voigt_profile
        assert pullback.grad(profile, 1)(1.0, 0.0, 0.25) == 0
        curvature = pullback.grad(pullback.grad(cauchy))(1.0)
        assert pullback.grad(pullback.grad(profile, 1), 1)(1.0, 0.0, 0.25) == pytest.approx(float(curvature), rel=1e-12)
        by_x = pullback.grad(profile)(0.3, 2.0, 0.0)
        assert by_x == pytest.approx(float(-0.3 / 4 * profile(0.3, 2.0, 0.0)), rel=1e-13)
