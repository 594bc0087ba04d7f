"""Incomplete gamma and beta functions, compiled, of operands of all sizes that their dtype has."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.scipy import special

DOUBLES = (1e-300, 1e-30, 1e-5, 0.5, 1, 3, 50, 1e4, 1e9, 1e30, 3e307)
SINGLES = (1e-37, 1e-30, 1e-5, 0.5, 3, 1e9, 1e30, 3e38)


@pytest.mark.parametrize(("dtype", "sizes"), [(np.float64, DOUBLES), (np.float32, SINGLES)], ids=["float64", "float32"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc"])
def test_they_are_scipys(name: str, dtype: Any, sizes: tuple[float, ...]) -> None:
    operands = np.array(list(itertools.product(sizes, repeat=3 if name == "betainc" else 2)), dtype).T
    if name == "betainc":
        operands = operands[:, operands[2] < 1]
    with pullback.enable_x64(True):
        found = pullback.jit(getattr(special, name))(*operands)
    expected = getattr(scipy.special, name)(*operands.astype(np.float64))
    expected = np.where(np.isnan(expected), found, expected)  # SciPy's, of the largest numbers
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-30)


def test_next_to_one() -> None:
    """What is exact there is the rest, of which a large parameter makes a number of any size."""
    with pullback.enable_x64(True):
        found = pullback.jit(special.betainc)(1e14, 0.5, 1 - 2.0**-46)
    assert abs(float(found) - 0.09182008223613785) < 1e-14


def test_where_one_parameter_is_far_larger() -> None:
    """The integral ends where its integrand has fallen, and not where a coarser bound says that it has."""
    found = pullback.jit(special.betainc)(*np.array([4960.0, 1.1, 0.999728], np.float32))
    assert abs(float(found) - 0.29513315416079786) < 1e-7
