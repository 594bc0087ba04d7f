"""Options of the compiler: which products are calls of its library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import disable_jit, grad, jit, lax, vjp, vmap
from pullback.backends.compiler import client, equal_parts, options
from pullback.backends.compiler.client import EXTRA_OPTIONS
from pullback.backends.hlo import weighted_sums


@pytest.mark.parametrize(
    ("width", "count", "library"),
    [(8, 10, True), (8, options.MANY, True), (8, options.MANY + 1, False), (256, options.MANY + 1, True)],
)
def test_the_library_does_few_or_large_products(width: int, count: int, library: bool) -> None:
    def products(x: Any) -> Any:
        for k in range(count):
            x = jnp.tanh(x @ x.T) + k
        return x

    chosen = dict(options.selected("cpu", jit(products).lower(np.zeros((width, width))).as_text()))
    assert ("INDIVIDUAL_DOT" in chosen["xla_cpu_experimental_ynn_fusion_type"]) == library


def test_programs_with_loops_leave_reductions_to_the_library_too() -> None:
    text = (
        jit(lambda x: lax.scan(lambda h, _: (jnp.tanh(h @ h), None), x, length=3)[0])
        .lower(np.zeros((256, 256)))
        .as_text()
    )
    assert dict(options.selected("cpu", text))["xla_cpu_experimental_ynn_fusion_type"].count("FUSION_TYPE") == 2


WEIGHTED = {
    "a vector times rows": lambda x, v, u: x - jnp.sum(v * x, 1, keepdims=True),
    "in the other order": lambda x, v, u: x - jnp.sum(x * v, 1, keepdims=True),
    "a function of vectors": lambda x, v, u: x * jnp.max(jnp.sin(v + u) * jnp.exp(x), 1, keepdims=True),
    "ones and a vector": lambda x, v, u: v + jnp.sum((jnp.ones_like(x) + v) * jnp.sin(x), 1, keepdims=True),
    "a quotient": lambda x, v, u: x[::-1] / jnp.sum(1 - x / u, 0, keepdims=True),
    "rows mapped": lambda x, v, u: vmap(lambda row: row - jnp.sum(v * row))(x),
    "numbers made in the program": lambda x, v, u: x - jnp.sum(jnp.arange(300.0) * x, 1, keepdims=True),
    "numbers of two axes": lambda x, v, u: x - jnp.sum(lax.broadcasted_iota(x.dtype, (300, 300), 1) * x, 1)[:, None],
    "a constant": lambda x, v, u: x - jnp.sum(np.arange(300.0, dtype=np.float32) * x, 1, keepdims=True),
    "a function of the sum": lambda x, v, u: x - jnp.tanh(jnp.sum(v * x, 1, keepdims=True) + u),
    "all": lambda x, v, u: x - jnp.sum(v * x),
    "a sum of sums": lambda x, v, u: x - jnp.sum(jnp.sum(v * x, 1)),
    "a product that is called": lambda x, v, u: x - jnp.sum(_product(v, x), 1, keepdims=True),
    "a sum that is called": lambda x, v, u: x - _total(v * x)[:, None],
    "a difference that is called": lambda x, v, u: _difference(x, jnp.sum(v * x, 1)),
    "a column and a vector": lambda x, v, u: x - jnp.sum(v * (u * x), 1, keepdims=True),
    "a sum of the rows' sums": lambda x, v, u: x - jnp.sum(jnp.sum(u * x, 1)),
    "a column that is transposed": lambda x, v, u: x - jnp.sum((jnp.sin(u) * x).T * x, 1, keepdims=True),
    "all called": lambda x, v, u: _difference(x, _total(_product(jnp.broadcast_to(v, x.shape), x))),
}
PLAIN = {
    "softmax": lambda x, v, u: jnp.exp(x - jnp.max(x, 1, keepdims=True)) / jnp.sum(jnp.exp(x), 1, keepdims=True),
    "variances": lambda x, v, u: jnp.var(x, 1),
    "a multiple": lambda x, v, u: x - jnp.sum(3.0 * x, 1, keepdims=True),
    "a traced multiple": lambda x, v, u: x - jnp.sum(v[0] * x, 1, keepdims=True),
    "weights after the sum": lambda x, v, u: v * jnp.sum(x, 1),
    "sums that are not repeated": lambda x, v, u: jnp.sum(v * x, 1) - v,
    "a column times rows": lambda x, v, u: x - jnp.sum(u * x, 1, keepdims=True),
    "a row times columns": lambda x, v, u: x - jnp.sum(x * v, 0),
    "a column in a sum": lambda x, v, u: jnp.exp(x) * jnp.sum(x * (u + 1) - x**2 / jnp.sin(u), 1, keepdims=True),
    "gradients of variances": lambda x, v, u: vjp(lambda x: jnp.var(x, 1), x)[1](v)[0],
    "gradients of layer norms": lambda x, v, u: vjp(_layer_norm, x)[1](x.T)[0],
    "a column of sums": lambda x, v, u: u - jnp.sum(v * x, 1, keepdims=True),
    "a row of numbers": lambda x, v, u: x - jnp.sum(jnp.arange(300.0) * v),
    "sums in a product of matrices": lambda x, v, u: v @ jnp.sum(v * x, 1),
}


def _layer_norm(x: Any) -> Any:
    centred = x - jnp.mean(x, 1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, 1, keepdims=True) + 1e-5)


_product = jit(lambda v, x: v * x)
_total = jit(lambda x: jnp.sum(x, 1))
_difference = jit(lambda x, total: x - total[:, None])


@pytest.mark.parametrize("name", [*WEIGHTED, *PLAIN])
def test_sums_of_weighted_rows_that_are_repeated_are_not_left_to_the_library(name: str) -> None:
    """It gets them wrong: ``tests/primitives/test_reductions.py``."""
    f = {**WEIGHTED, **PLAIN}[name]
    text = jit(f).lower(np.zeros((300, 300), np.float32), np.zeros(300, np.float32), np.zeros((300, 1), np.float32))
    assert weighted_sums.are_in(text.as_text()) == (name in WEIGHTED)
    chosen = dict(options.selected("cpu", text.as_text()))["xla_cpu_experimental_ynn_fusion_type"]
    assert ("REDUCE" in chosen) == (name in PLAIN and "dot_general" not in text.as_text())


def test_many_small_products_in_equal_parts_are_done_without_the_library() -> None:
    weights = [np.full((8, 8), 0.1) for _ in range(60)]

    def layers(x: Any, weights: Any) -> Any:
        for w in weights:
            y = x - jnp.mean(x, -1, keepdims=True)
            x = x + jnp.tanh(y / jnp.sqrt(jnp.mean(y**2, -1, keepdims=True) + 1) @ w)
        return jnp.sum(x)

    text = jit(grad(layers)).lower(np.ones((8, 8)), weights).as_text()
    assert equal_parts.ATTRIBUTES in text
    assert "INDIVIDUAL_DOT" not in dict(options.selected("cpu", text))["xla_cpu_experimental_ynn_fusion_type"]


@pytest.mark.parametrize(
    ("count", "size", "fast"), [(10, 100, False), (600, 100, True), (600, options.MIDDLING + 1, False)]
)
def test_the_compiler_takes_less_trouble_with_long_programs(count: int, size: int, fast: bool) -> None:
    def chain(x: Any) -> Any:
        y = jnp.concatenate([x, jnp.ones(options.SMALL)])
        for k in range(count):
            y = jnp.sin(y) + k
        return y

    chosen = dict(options.selected("cpu", jit(chain).lower(np.zeros(size)).as_text()))
    for name in ("xla_cpu_disable_loop_unrolling", "xla_cpu_disable_slp_vectorizer"):
        assert (name in chosen) == fast
        assert name in EXTRA_OPTIONS


@pytest.mark.parametrize(
    ("size", "length", "looped", "off"),
    [(8, 20, True, True), (8, 20, False, False), (8, 1, True, False), (options.SMALL + 1, 20, True, False)],
)
def test_long_programs_with_loops_over_small_arrays_do_without_the_emitters(
    size: int, length: int, looped: bool, off: bool
) -> None:
    def step(i: Any, x: Any) -> Any:
        for k in range(length):
            x = jnp.tanh(jnp.cumsum(x) + k) * jnp.max(x)
        return x

    def function(x: Any) -> Any:
        return lax.fori_loop(0, 3, step, x) if looped else step(0, x)

    x = np.linspace(-1, 1, size, dtype=np.float32)
    lowered = jit(function).lower(x)
    assert (dict(options.selected("cpu", lowered.as_text())).get(options.EMITTERS) is False) == (
        off and client.has_option(options.EMITTERS)
    )
    with disable_jit():
        expected = function(x)
    np.testing.assert_allclose(lowered.compile()(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("lines", "moves", "looped", "off"),
    [(12_000, 100, True, True), (12_000, 1000, True, False), (9_000, 0, True, False), (12_000, 0, False, False)],
)
def test_very_long_programs_of_large_arrays_do_without_the_emitters_unless_they_move_elements(
    lines: int, moves: int, looped: bool, off: bool
) -> None:
    """A text of its own: to trace 10,000 operations takes seconds."""
    kind = f"tensor<{100 * options.SMALL}xf32>"
    body = [f"    %{k + 1} = stablehlo.multiply %{k}, %{k} : {kind}" for k in range(lines)]
    body[:moves] = [f"    %{k + 1} = stablehlo.slice %0 [0:{k}] : {kind}" for k in range(moves)]
    text = "\n".join([*body, "    stablehlo.while" if looped else "", "  }", ""])
    chosen = dict(options.selected("cpu", text))
    assert (options.EMITTERS in chosen) == (off and client.has_option(options.EMITTERS))


@pytest.mark.parametrize(("version", "known"), [("0.10.2", True), ("0.11.0", False), ("0.12.0.1", False)])
def test_the_emitters_are_not_turned_off_where_the_option_is_gone(
    version: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jaxlib.version.__version__", version)
    assert client.has_option.__wrapped__(options.EMITTERS) == known
    assert client.has_option.__wrapped__("xla_cpu_disable_loop_unrolling")


@pytest.mark.parametrize(("moves", "off"), [(8, True), (options.CHAIN, True), (options.CHAIN + 1, False), (16, False)])
def test_long_chains_of_gathers_keep_the_emitters(moves: int, off: bool) -> None:
    """Without the emitters each gather doubles the code: 11 compile in half a second, 16 did not end in a minute.

    These two numbers were measured, so that they do not follow ``CHAIN``.
    """

    def step(i: Any, x: Any) -> Any:
        for k in range(moves):
            x = x[jnp.arange(15, -1, -1) % 7] * x + k
        for k in range(40):
            x = jnp.sin(x) + k
        return x

    text = jit(lambda x: lax.fori_loop(0, 3, step, x)).lower(np.ones(16, np.float32)).as_text()
    chosen = dict(options.selected("cpu", text))
    assert (options.EMITTERS in chosen) == (off and client.has_option(options.EMITTERS))
