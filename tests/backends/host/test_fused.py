"""Loops that do two operations in one pass: the bits are those of two, whatever the operands are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.lax as lax
import pullback.numpy as jnp
from pullback import nn
from pullback.backends.host import fused, native, pending
from pullback.core.array import ArrayImpl
from pullback.core.config import override
from tests.backends.host.test_native import EDGES
from tests.helpers import small_blocks

pytestmark = pytest.mark.skipif(native.loops is None, reason="the module in C is not installed")

FLOATS = (np.float32, np.float64)
COMPARED = (jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal, jnp.equal, jnp.not_equal)
BOUNDS = (-1.0, -0.0, 0.0, 2.0, np.nan)
PAIRS: dict[str, list[tuple[Callable[..., Any], int]]] = {
    "clamp": [
        *[(lambda x, a=a, b=b: jnp.clip(x, a, b), 1) for a in BOUNDS for b in BOUNDS],
        (lambda x: jnp.clip(x, 3, -3), 1), (lambda x: jnp.minimum(jnp.maximum(x, x[:1, :1] * 0 - 2), 1), 1),
    ],
    "product_of_three": [
        (lambda x: x**3, 1), (lambda x, y: x * y * x, 2), (lambda x, y: x * y * 3, 2), (lambda x, y: x * 0.3 * y, 2),
        (lambda x, y: 0.3 * x * y, 2), (lambda x: 0.3 * x * 0.7, 1), (lambda x, y: x * y[:1, :1] * y, 2),
        (lambda x, y: x * y[:1] * x, 2), (lambda x, y: x * y * y[:, :1], 2),
    ],
    "scaled": [
        *[(lambda x, y, f=f: jnp.where(f(x, 0.5), y, y * 3), 2) for f in COMPARED],
        *[(lambda x, y, f=f: jnp.where(f(x, 0.5), 3 * y, y), 2) for f in COMPARED],
        (nn.leaky_relu, 1), (lambda x, y: jnp.where(x > 1, y * y[:1, :1], y), 2),
    ],
    "sign_or_number": [(jnp.sign, 1), (lambda x: jnp.where(x == 1, 7, lax.sign(x)), 1)],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PAIRS)
def test_both_operations_in_one_pass_give_the_bits_of_two(
    name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    both = fused._both

    def recorded(*args: Any) -> Any:
        found = both(*args)
        used.extend([found[0]] if found else [])
        return found

    monkeypatch.setattr(fused, "_both", recorded)
    x = np.resize(EDGES, (6, 600)).astype(dtype)
    operands = [x, np.resize(np.roll(EDGES, 4), (6, 600)).astype(dtype)]
    for function, count in PAIRS[name]:
        with small_blocks(), override("eager_fusion", False):
            expected = np.asarray(function(*[ArrayImpl(a, False) for a in operands[:count]]))
        used.clear()
        with small_blocks():
            pending._plan.cache_clear()
            got = np.asarray(function(*[pending.hold(ArrayImpl(a, False)) for a in operands[:count]]))
        assert any(name in each for each in used)
        assert got.tobytes() == expected.tobytes()


def test_what_is_read_elsewhere_is_computed_by_itself() -> None:
    with small_blocks():
        x = pending.hold(ArrayImpl(np.arange(1.0, 13, dtype=np.float32).reshape(3, 4), False))
        square = x * x
        assert (square * x + square).tolist() == (x.__array__() ** 3 + x.__array__() ** 2).tolist()
        kept = jnp.maximum(x, 3.0)
        assert jnp.minimum(kept, 5.0).tolist() == np.clip(x, 3, 5).tolist()
        assert kept.tolist() == np.maximum(x, 3).tolist()


def test_bounds_that_are_arrays_are_applied_one_after_the_other() -> None:
    x, low, high = (np.resize(np.roll(EDGES, k), (4, 70)).astype(np.float32) for k in range(3))
    expected = np.minimum(np.maximum(x, low), high)
    loop, out = native.own.loop("clamp f"), np.empty_like(x)
    native.loops.run(x.shape, [x, low, high, out], [(loop, (0, 1, 2, 3))], 512, 0)
    np.testing.assert_array_equal(out, expected)
    native.loops.run(x.shape, [x, low[:, :1], high[:1], out], [(loop, (0, 1, 2, 3))], 512, 0)
    np.testing.assert_array_equal(out, np.minimum(np.maximum(x, low[:, :1]), high[:1]))
