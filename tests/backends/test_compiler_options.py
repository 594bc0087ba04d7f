"""Options of the compiler: which products are calls of its library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, lax, vmap
from pullback.backends import equal_parts, options, weighted_sums
from pullback.backends.client import EXTRA_OPTIONS


@pytest.mark.parametrize(
    ("width", "count", "library"),
    [(8, 10, True), (8, options.MANY, True), (8, options.MANY + 1, False), (256, options.MANY + 1, True)],
)
def test_the_library_does_few_or_large_products(width: int, count: int, library: bool) -> None:
    def products(x: Any) -> Any:
        for k in range(count):
            x = jnp.tanh(x @ x.T) + k
        return x

    chosen = dict(options.chosen("cpu", jit(products).lower(np.zeros((width, width))).as_text()))
    assert ("INDIVIDUAL_DOT" in chosen["xla_cpu_experimental_ynn_fusion_type"]) == library


def test_programs_with_loops_leave_reductions_to_the_library_too() -> None:
    text = (
        jit(lambda x: lax.scan(lambda h, _: (jnp.tanh(h @ h), None), x, length=3)[0])
        .lower(np.zeros((256, 256)))
        .as_text()
    )
    assert dict(options.chosen("cpu", text))["xla_cpu_experimental_ynn_fusion_type"].count("FUSION_TYPE") == 2


WEIGHTED = {
    "a vector times rows": lambda x, v, u: jnp.sum(v * x, 1),
    "in the other order": lambda x, v, u: jnp.sum(x * v, 1),
    "a function of vectors": lambda x, v, u: jnp.max(jnp.sin(v + u) * jnp.exp(x), 1),
    "ones and a vector": lambda x, v, u: jnp.sum((jnp.ones_like(x) + v) * jnp.sin(x), 1),
    "a quotient": lambda x, v, u: jnp.sum(1 - x / u, 1),
    "rows mapped": lambda x, v, u: vmap(lambda row: jnp.sum(v * row))(x),
}
PLAIN = {
    "softmax": lambda x, v, u: jnp.exp(x - jnp.max(x, 1, keepdims=True)) / jnp.sum(jnp.exp(x), 1, keepdims=True),
    "variances": lambda x, v, u: jnp.var(x, 1),
    "a multiple": lambda x, v, u: jnp.sum(3.0 * x, 1),
    "a traced multiple": lambda x, v, u: jnp.sum(v[0] * x, 1),
    "weights after the sum": lambda x, v, u: v * jnp.sum(x, 1),
}


@pytest.mark.parametrize("name", [*WEIGHTED, *PLAIN])
def test_sums_of_weighted_rows_are_not_left_to_the_library(name: str) -> None:
    """It gets them wrong: ``tests/primitives/test_reductions.py``."""
    f = {**WEIGHTED, **PLAIN}[name]
    text = jit(f).lower(np.zeros((300, 300)), np.zeros(300), np.zeros((300, 1))).as_text()
    assert ("REDUCE" in dict(options.chosen("cpu", text))["xla_cpu_experimental_ynn_fusion_type"]) == (name in PLAIN)


SPREAD = '%1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> t'
PRODUCT, TOTAL = "%2 = stablehlo.multiply %1, %arg1 : t", '%4 = "stablehlo.reduce"(%2, %3) ({'


@pytest.mark.parametrize(
    "lines",
    [
        (SPREAD, PRODUCT, "%4 = func.call @f(%2) : (t) -> t", 'x "stablehlo.reduce"'),
        (SPREAD, "%4 = func.call @f(%1) : (t) -> t", 'x "stablehlo.reduce"'),
        (SPREAD, "%2 = func.call @f(%arg1) : (t) -> t", TOTAL),
    ],
)
def test_a_product_and_its_sum_may_be_in_two_functions(lines: tuple[str, ...]) -> None:
    assert weighted_sums.are_in("\n".join(lines))
    assert not weighted_sums.are_in("\n".join((lines[0], TOTAL)))


def test_many_small_products_in_equal_parts_are_done_without_the_library() -> None:
    weights = [np.full((8, 8), 0.1) for _ in range(60)]

    def layers(x: Any, weights: Any) -> Any:
        for w in weights:
            y = x - jnp.mean(x, -1, keepdims=True)
            x = x + jnp.tanh(y / jnp.sqrt(jnp.mean(y**2, -1, keepdims=True) + 1) @ w)
        return jnp.sum(x)

    text = jit(grad(layers)).lower(np.ones((8, 8)), weights).as_text()
    assert equal_parts.ATTRIBUTES in text
    assert "INDIVIDUAL_DOT" not in dict(options.chosen("cpu", text))["xla_cpu_experimental_ynn_fusion_type"]


@pytest.mark.parametrize(
    ("count", "size", "fast"), [(10, 100, False), (600, 100, True), (600, options.MIDDLING + 1, False)]
)
def test_the_compiler_takes_less_trouble_with_long_programs(count: int, size: int, fast: bool) -> None:
    def chain(x: Any) -> Any:
        y = jnp.concatenate([x, jnp.ones(options.SMALL)])
        for k in range(count):
            y = jnp.sin(y) + k
        return y

    chosen = dict(options.chosen("cpu", jit(chain).lower(np.zeros(size)).as_text()))
    for name in ("xla_cpu_disable_loop_unrolling", "xla_cpu_disable_slp_vectorizer"):
        assert (name in chosen) == fast
        assert name in EXTRA_OPTIONS
