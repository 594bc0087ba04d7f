"""Spherical Bessel functions of the second kinds in compiled programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.core.config import enable_x64
from pullback.scipy import special


@pytest.mark.parametrize("name", ["spherical_yn", "spherical_kn"])
def test_values_and_derivatives_are_scipys(name: str) -> None:
    n = np.array([0, 1, 2, 3, 10, 50, 200, 2, 1, 300])
    z = np.array([0.3, 0.3, 0.1, 50, 7.0, 20, 30.0, -2.0, -0.7, 400.0])
    with enable_x64():
        function, reference = getattr(special, name), getattr(scipy.special, name)
        compiled = pullback.jit(lambda n, z: (function(n, z), function(n, z, derivative=True)))
        value, slope = compiled(n, z)
        np.testing.assert_allclose(value, reference(n, z), rtol=1e-13)
        np.testing.assert_allclose(slope, reference(n, z, True), rtol=1e-13)


def test_orders_and_numbers_at_the_ends() -> None:
    with enable_x64():
        yn, kn = (pullback.jit(getattr(special, f"spherical_{kind}")) for kind in ("yn", "kn"))
        n, z = np.array([0, 3, -1, 4_000_000_000, 2_000_000]), np.array([0.0, 0.0, 1.0, 3.0, 1e7])
        np.testing.assert_array_equal(yn(n, z), [-np.inf, -np.inf, np.nan, -np.inf, np.nan])
        np.testing.assert_array_equal(kn(n, z), [np.inf, np.inf, np.nan, np.inf, np.nan])
        assert yn(np.zeros((0,), np.int32), np.zeros((0,))).shape == (0,)
