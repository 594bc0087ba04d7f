"""The exponential and the logarithm in double precision that are accurate to single precision."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import jit
from pullback.primitives.special.precision import exp_to_single, log_to_single


@pytest.mark.parametrize("function", [exp_to_single, jit(exp_to_single)])
def test_the_exponential(function: object) -> None:
    x = np.concatenate([np.linspace(-700, 700, 100_001), np.linspace(-1, 1, 10_001)])
    with pullback.enable_x64(True):
        np.testing.assert_allclose(function(jnp.asarray(x)), np.exp(x), rtol=3e-12)  # type: ignore[operator]
        far = function(jnp.asarray([-1e308, -np.inf, -701.0]))  # type: ignore[operator]
        np.testing.assert_array_equal(far, function(jnp.asarray([-700.0] * 3)))  # type: ignore[operator]


@pytest.mark.parametrize("function", [log_to_single, jit(log_to_single)])
def test_the_logarithm(function: object) -> None:
    x = np.concatenate(
        [np.geomspace(1e-300, 1e300, 100_001), 1 + np.linspace(-0.5, 1, 10_001), 1 + 1e-12 * np.arange(9)]
    )
    with pullback.enable_x64(True):
        np.testing.assert_allclose(function(jnp.asarray(x)), np.log(x), rtol=3e-11, atol=0)  # type: ignore[operator]
