"""The compiled ``erfc``, ``ndtr`` and ``exp(-x**2)``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.primitives import elementwise as ew

POINTS = np.concatenate([np.linspace(-9.3, 9.3, 5001), np.linspace(-1, 1, 501), [1e-30, -1e-30]])
ENDS = np.array([0.0, -0.0, 9.37, 9.5, 13.3, 1e18, 1e30, np.inf, -9.5, -15.0, -1e30, -np.inf, np.nan])


@pytest.mark.parametrize("primitive", [ew.erfc_p, ew.ndtr_p], ids=["erfc", "ndtr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_functions(primitive: Any, dtype: Any, x64: None) -> None:
    x = np.concatenate([POINTS, ENDS]).astype(dtype)
    found = pullback.jit(primitive.bind)(x)
    error, least = (7e-7, 2e-38) if dtype is np.float32 else (5e-15, 1e-300)
    np.testing.assert_allclose(found, primitive.host_rule(x.astype(np.float64)), error, least)


def test_error_functions_of_low_precision_are_rounded_once() -> None:
    x = pullback.numpy.asarray(np.linspace(-3, 3, 101), "bfloat16")
    found = pullback.jit(ew.erfc_p.bind)(x)
    assert np.array_equal(found, pullback.jit(ew.erfc_p.bind)(x.astype("float32")).astype("bfloat16"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gaussian_has_no_error_of_the_square(dtype: Any, x64: None) -> None:
    """With the rounded square the errors are up to 80 units in the last place."""
    x = np.concatenate([POINTS, ENDS[:-1]]).astype(dtype)
    error, least = (2.5e-7, 2e-38) if dtype is np.float32 else (1e-15, 1e-300)
    for factor in (1.0, 0.5):
        found = np.asarray(pullback.jit(lambda x, factor=factor: ew.gaussian(x, factor))(x))
        exact = np.exp(-factor * np.square(x.astype(np.longdouble)))
        np.testing.assert_allclose(found, exact.astype(np.float64), error, least)
    assert np.isnan(pullback.jit(ew.gaussian)(dtype(np.nan)))


def test_the_gaussian_of_what_is_not_a_number_is_not_a_number_whatever_its_bits() -> None:
    """The high part of the first is infinite."""
    x = np.array([0x7F800001, 0x7FC00000, 0xFFC00000], np.uint32).view(np.float32)
    assert np.isnan(pullback.jit(ew.gaussian)(x)).all()
    np.testing.assert_array_equal(pullback.jit(ew.gaussian)(np.array([np.inf, -np.inf, 3e38], np.float32)), 0)


@pytest.mark.parametrize(("primitive", "exponentials"), [(ew.erfc_p, 1), (ew.ndtr_p, 1)], ids=["erfc", "ndtr"])
def test_values_and_derivatives_share_an_exponential(primitive: Any, exponentials: int) -> None:
    x = np.linspace(-3, 3, 1000).astype(np.float32)
    both = pullback.jit(lambda x: pullback.vjp(primitive.bind, x)[1](x)[0] * primitive.bind(x))
    text = both.lower(x).compile().as_text()
    assert text.count(" shift-left(") == exponentials
    assert " exponential(" not in text
