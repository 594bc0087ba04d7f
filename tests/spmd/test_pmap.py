"""``pmap`` over the one device that this process has."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, lax, pmap


@pytest.mark.parametrize("devices", [None, "given"])
def test_results_over_the_default_device_are_arrays_as_all_others(devices: str | None) -> None:
    x = jnp.arange(6.0).reshape(1, 2, 3)
    f = pmap(lambda x: {"y": lax.psum(x, "i") * 2, "n": 3}, "i", devices=devices and pullback.devices()[:1])
    for _ in range(2):
        out = f(x)
        assert type(out["y"]) is type(out["n"]) is type(jit(lambda x: x)(x)) is type(x)
        assert not out["y"].committed
        assert out["y"].devices() == x.devices()
        np.testing.assert_array_equal(out["y"], 2 * np.arange(6.0).reshape(1, 2, 3))
        np.testing.assert_array_equal(out["n"], [3])
    np.testing.assert_array_equal(jit(lambda x: f(x)["y"] + 1)(x), 2 * x + 1)
    np.testing.assert_array_equal(grad(lambda x: f(x)["y"].sum())(x), np.full(x.shape, 2.0))
    weak = pmap(lambda x: x, axis_size=1)(jnp.full((1,), 2.0))
    kept = pmap(lambda x: x, donate_argnums=0)(weak)  # its memory is another's
    np.testing.assert_array_equal(kept, [2.0])
