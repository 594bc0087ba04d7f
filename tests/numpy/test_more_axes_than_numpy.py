"""Arrays of more than 32 axes, at which some functions of NumPy's fail, or crash, and results of more than 64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, lax

SHAPE = (*(1,) * 20, 3, *(1,) * 18, 4)
_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((3, 4)).astype(np.float32)
POSITIONS = _RNG.integers(0, 3, (3, 4))


def _sums(x: Any, axis: int) -> Any:
    positions = jnp.asarray(POSITIONS).reshape(x.shape)
    return jnp.sum(jnp.take_along_axis(x, positions, axis) * x) + jnp.sum(jnp.sort(x, axis) * x)


@pytest.mark.parametrize(
    "function",
    [
        jnp.sort,
        jnp.argsort,
        lambda x, axis: jnp.argsort(x, axis, descending=True),
        lambda x, axis: lax.sort([jnp.round(x), x], dimension=axis, num_keys=2)[1],
        lambda x, axis: grad(lambda x: _sums(x, axis))(x),
    ],
)
@pytest.mark.parametrize(("axis", "flat_axis"), [(20, 0), (39, 1)])
def test_orders_along_an_axis(function: Any, axis: int, flat_axis: int) -> None:
    out = function(jnp.asarray(X).reshape(SHAPE), axis)
    assert out.shape == SHAPE
    np.testing.assert_array_equal(out.reshape(X.shape), function(jnp.asarray(X), flat_axis))


def test_index_arrays() -> None:
    positions = jnp.asarray(POSITIONS).reshape(SHAPE)
    counts = np.bincount(POSITIONS.ravel(), minlength=3)
    np.testing.assert_array_equal(jnp.zeros(3).at[positions].add(1.0), counts)
    np.testing.assert_array_equal(jnp.zeros(3).at[jnp.zeros((1,) * 63, int)].add(1.0), [1, 0, 0])
    sums = np.bincount(POSITIONS.ravel(), X.ravel(), minlength=3)
    np.testing.assert_allclose(jnp.zeros(3).at[positions].add(X.reshape(SHAPE)), sums, rtol=1e-6)
    x = jnp.ones((1,) * 40)
    assert float(x.at[jnp.zeros((1,) * 40, int)].set(2.0).sum()) == 2.0
    assert float(jnp.asarray(X).reshape(SHAPE).at[(0,) * 20 + (jnp.array([0, 1]),)].set(0.0).sum()) == pytest.approx(
        float(X[2].sum())
    )


def test_results_of_more_axes_than_numpy_has() -> None:
    x, positions = jnp.ones((1,) * 40), jnp.zeros((1,) * 40, int)
    for out in (x[positions], jnp.take(x, positions, axis=0), jnp.take(x, positions, axis=0, mode="clip")):
        assert out.shape == (1,) * 79
        assert float(out.sum()) == 1.0
