"""Large operands of some operations are compiled, with the result that NumPy returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import config, grad, lax
from pullback.backends.compiler import one_operation
from pullback.backends.host import batches, native
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.primitives.linalg.contraction import INTEGER_PRODUCTS


def programs() -> set[str]:
    return {key[0].name for key in one_operation._programs}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_operation, "_programs", {})


@pytest.mark.parametrize("operation", [lax.erf_inv, lambda x: lax.zeta(x + 2.5, 1.5), lambda x: lax.zeta(2.5, x + 2.0)])
def test_large_operands_are_compiled_and_small_ones_are_not(fresh: None, operation: Any, x64: None) -> None:
    small, large = (jnp.linspace(-0.9, 0.9, n) for n in (1000, 60_000))
    operation(small)
    assert programs() == set()
    compiled = operation(large)
    assert len(programs()) == 1
    config.update("compile_large_operations", False)
    try:
        host = operation(large)
    finally:
        config.update("compile_large_operations", True)
    assert (compiled.dtype, compiled.shape, compiled.weak_type) == (host.dtype, host.shape, host.weak_type)
    np.testing.assert_allclose(compiled, host, rtol=2e-6)


def test_random_numbers_are_the_same_bits(fresh: None) -> None:
    key = pullback.random.key(0)
    large = pullback.random.bits(key, (200_000,))
    assert "threefry2x32" in programs()
    config.update("compile_large_operations", False)
    try:
        np.testing.assert_array_equal(large, pullback.random.bits(key, (200_000,)))
    finally:
        config.update("compile_large_operations", True)


def test_products_of_integers(fresh: None) -> None:
    n = round(INTEGER_PRODUCTS ** (1 / 3)) + 1
    x = jnp.arange(n * n).reshape(n, n)
    np.testing.assert_array_equal(x @ x, np.asarray(x) @ np.asarray(x))
    assert programs() == {"dot_general"}


def test_many_small_matrices_and_large_transforms_are_compiled(fresh: None) -> None:
    a = np.random.default_rng(0).normal(size=(200, 8, 8)).astype(np.float32)
    symmetric = jnp.array(a + a.swapaxes(1, 2))
    x = jnp.array(np.random.default_rng(1).normal(size=(400, 300)).astype(np.float32))

    def computed() -> list[Any]:
        s = jnp.linalg.svd(jnp.array(a))
        w, v = jnp.linalg.eigh(symmetric)
        return [jnp.matmul(s.U * s.S[:, None], s.Vh), s.S, w, jnp.matmul(v * w[:, None], v.mT), jnp.fft.rfft2(x)]

    compiled = computed()
    assert programs() == ({"fft"} if batches.takes(a) else {"svd", "eigh", "fft"})
    count = len(one_operation._programs)
    jnp.linalg.svd(jnp.array(a[0]))
    jnp.fft.rfft2(x[:100])
    assert len(one_operation._programs) == count
    config.update("compile_large_operations", False)
    try:
        for got, expected in zip(compiled, computed(), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    finally:
        config.update("compile_large_operations", True)
    assert len(one_operation._programs) == count


def test_derivatives_pass_through(fresh: None) -> None:
    x = jnp.linspace(-0.9, 0.9, 250_000)
    np.testing.assert_allclose(
        grad(lambda x: lax.erf(x).sum())(x), 2 / np.sqrt(np.pi) * np.exp(-(np.asarray(x) ** 2)), rtol=1e-5
    )


def test_an_operation_without_a_host_rule_is_compiled() -> None:
    twice_p = Primitive("twice")
    twice_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    twice_p.lowering(lambda hlo, x: hlo.elementwise("stablehlo.add", x, x))
    np.testing.assert_array_equal(twice_p.bind(jnp.arange(3)), [0, 2, 4])
    assert twice_p.bind(2.0).weak_type


def test_an_operation_without_any_rule() -> None:
    none_p = Primitive("none")
    with pytest.raises(pullback.errors.MissingRuleError, match="no host rule"):
        none_p.bind(jnp.ones(2))


@pytest.mark.skipif(native.loops is None, reason="the module in C is not installed")
def test_cumulative_sums_along_the_last_axis_are_not_compiled(fresh: None) -> None:
    x = jnp.ones((1000, 500))
    np.testing.assert_array_equal(jnp.cumsum(x, 1)[7], np.arange(1, 501))
    assert programs() == set()
    np.testing.assert_array_equal(jnp.cumsum(x, 0)[:, 7], np.arange(1, 1001))
    assert programs() == {"cumsum"}
