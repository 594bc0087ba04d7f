"""Bessel functions of the orders 0, 1 and 2 in compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.scipy.special import bessel_fixed

POINTS = np.concatenate([10.0 ** np.linspace(-5, 2, 60), np.linspace(0.1, 60, 120), [7.9999999, 8, 8.0000001, 1]])
EDGES = np.array([0.0, np.inf, np.nan, -1.5, -9.0])
NAMES = ["j0", "j1", "j2", "y0", "y1", "y2", "k0", "k1", "k2", "k0e", "k1e"]


def scipys(name: str, x: Any) -> Any:
    named = getattr(scipy.special, name, None)
    return named(x) if named else getattr(scipy.special, f"{name[0]}v")(2, x)


@pytest.mark.parametrize("letter", "jyk")
def test_values_are_scipys_within_the_rounding_of_the_amplitude(letter: str) -> None:
    """SciPy's own error is up to 15 units of it, and more for k2."""
    with enable_x64():
        names = [name for name in NAMES if name[0] == letter]
        compiled = pullback.jit(lambda x: [getattr(bessel_fixed, name)(x) for name in names])
        for name, out in zip(names, compiled(POINTS), strict=True):
            expected = scipys(name, POINTS)
            size = np.maximum(
                np.abs(expected), np.where(POINTS > 0.6, np.sqrt(2 / np.pi / POINTS), 0) * (letter != "k")
            )
            assert np.max(np.abs(out - expected) / size) < 1e-14, name
        for name, out in zip(names, compiled(EDGES), strict=True):
            limit = scipys(name, EDGES)
            limit[1] = 0  # of which SciPy's J and Y are NaN
            np.testing.assert_allclose(out, limit, rtol=2e-14)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "k0", "k1"])
def test_compiled_derivatives_are_those_of_scipy(name: str) -> None:
    """The first and the second are of the orders 0 to 3 at most."""
    x = np.array([0.3, 2.0, 7.5, 12.0])
    with enable_x64():
        first = getattr(scipy.special, f"{name[0]}vp")
        np.testing.assert_allclose(
            pullback.jit(pullback.vmap(pullback.grad(getattr(special, name))))(x), first(int(name[1]), x, 1), rtol=1e-13
        )
        if name == "j1":
            twice = pullback.jit(pullback.vmap(pullback.grad(pullback.grad(special.j1))))(x)
            np.testing.assert_allclose(twice, first(1, x, 2), rtol=1e-12)


def test_negative_numbers() -> None:
    with enable_x64():
        assert pullback.jit(special.j1)(-2.5) == -pullback.jit(special.j1)(2.5)
        assert pullback.jit(special.j0)(-9.5) == pullback.jit(special.j0)(9.5)
        assert pullback.jit(bessel_fixed.j2)(-9.5) == pullback.jit(bessel_fixed.j2)(9.5)
