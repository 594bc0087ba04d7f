"""Programs of small arrays that are compiled to one function or two; options of the compiler for loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import Array, disable_jit, grad, jit, lax, nn, vjp, vmap
from pullback.backends.compiler import options, small_loops
from pullback.backends.compiler.client import EXTRA_OPTIONS
from pullback.backends.hlo import emit
from tests.backends.compiler.loop_bodies import BODIES, X


@pytest.mark.parametrize("name", BODIES)
def test_what_loops_may_hold(name: str) -> None:
    """Each operation in a loop over small arrays, in a program of its own: its values, and its gradient."""

    def loop(x: Array) -> Array:
        return lax.fori_loop(0, 5, BODIES[name], x)

    for function in (loop, grad(lambda x: loop(x).sum())):
        with disable_jit():
            expected = function(X)
        np.testing.assert_allclose(jit(function)(X), expected, rtol=5e-4, atol=1e-5)


def parts(function: Any, *args: Any) -> int:
    """How many functions of the compiler's kind for small loops a program is compiled to."""
    return jit(function).lower(*args).as_text().count("xla_cpu_small_call")


def steps(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + x, x)


def test_a_loop_over_small_arrays_is_one_function_or_two() -> None:
    def many(x: Any) -> Any:
        for _ in range(50):
            x = 0.3 * steps(0.2 * jnp.cos(x) + 1)
        return x

    assert parts(steps, X) == 1
    assert parts(many, X) == 2
    np.testing.assert_allclose(jit(many)(X), many(X), rtol=1e-4)
    assert parts(steps, np.zeros(5000)) == 0  # large
    assert parts(jnp.sin, X) == 0  # no loop
    for name in ("scatter", "sort", "dot", "cholesky", "top_k", "reverse"):
        assert parts(lambda x, name=name: lax.fori_loop(0, 5, BODIES[name], x), X) == 0, name


def test_arguments_and_results_of_such_functions() -> None:
    """Unused arguments, arguments that are results, constants, captured arrays: the compiler aborts at unused ones."""
    small, large = jnp.arange(5.0), jnp.arange(100.0)
    loop = jit(lambda x, y: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c), 0.5), keep_unused=True)
    np.testing.assert_allclose(loop(1.0, 2.0), 0.43053493, rtol=1e-6)
    assert jit(lambda x: lax.fori_loop(0, 4, lambda i, c: c + x * 0, 7))(3) == 7
    np.testing.assert_allclose(
        jit(lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * jnp.where(True, 2.0, x), 0.1))(3.0), 1.3961806, 1e-6
    )
    assert jit(lambda: lax.fori_loop(0, 4, lambda i, c: c + i, 0))() == 6
    np.testing.assert_allclose(
        jit(lambda: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * large, 0.1 * large))()[:2], [0.0, 0.09933863], 1e-6
    )
    outs = jit(lambda x: (steps(x), small, large, 2.0, x))(X[:3])
    for out, expected in zip(outs, (steps(X[:3]), small, large, 2.0, X[:3]), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    donated = jnp.asarray(X)
    np.testing.assert_allclose(jit(steps, donate_argnums=0)(donated), steps(X), rtol=1e-6)


def test_elementwise_programs_that_would_be_divided_between_threads_too_early_are_one_function() -> None:
    def slope(x: Any) -> Any:
        return vjp(lambda x: nn.gelu(x, approximate=False), x)[1](x)[0]

    def drawn(size: int) -> Any:
        return np.linspace(-5, 5, size).astype(np.float32)

    assert [parts(slope, drawn(size)) for size in (500, 2000, 100_000)] == [0, 1, 0]
    assert parts(lambda x: slope(x).sum(), drawn(2000)) == 0  # not elementwise
    assert parts(jnp.tanh, drawn(3000)) == 0  # reading and writing takes longest
    assert parts(jnp.add, drawn(3000), drawn(3000)) == 0
    x = drawn(2000)
    np.testing.assert_allclose(jit(slope)(x), slope(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(jit(slope)(drawn(2000)), jit(slope)(drawn(2000)))
    donated = jnp.asarray(x)
    np.testing.assert_allclose(jit(slope, donate_argnums=0)(donated), slope(x), rtol=1e-5, atol=1e-6)
    assert parts(vmap(slope), np.zeros((0, 2000), np.float32)) == 0


def test_what_cannot_be_one_function_after_all_is_compiled_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "is_small_loop", lambda lines: True)
    weights = jnp.ones((64, 64))

    def products(x: Any) -> Any:
        return jnp.tanh(x @ weights) @ weights

    assert parts(products, np.ones((32, 64))) == 1
    np.testing.assert_allclose(jit(products)(np.ones((32, 64))), products(np.ones((32, 64))), rtol=1e-5)


def test_options_for_loops() -> None:
    def chosen(function: Any, *args: Any) -> dict[str, Any]:
        return dict(options.selected("cpu", jit(function).lower(*args).as_text()))

    loops, rolled = "xla_cpu_small_while_loop_byte_threshold", "xla_cpu_disable_loop_unrolling"
    assert {loops, rolled} <= EXTRA_OPTIONS
    assert loops in chosen(steps, X)
    assert rolled in chosen(jnp.sin, X)
    assert rolled not in chosen(steps, X)
    assert rolled not in chosen(jnp.sin, np.zeros(options.SMALL + 1))
    assert not options.selected("cuda", "")
    # A body of 2,000 numbers, which is more than the compiler takes for a small loop by itself.
    assert "xla_cpu_small_call" in jit(steps).lower(np.zeros(2000)).compile().as_text()
    lowered = jit(steps).lower(np.zeros(2001))
    assert "xla_cpu_small_call" not in lowered.compile(compiler_options={loops: 1000}).as_text()


@pytest.mark.usefixtures("optimised")
def test_chains_of_reversals_are_no_small_loops() -> None:
    """The compiler needs twice the time for each further reversal in a small loop: it would take minutes."""

    def loop(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            for _ in range(24):
                y = jnp.sin(y) + y[::-1]
            return y

        return lax.fori_loop(0, 2, body, x)

    lowered = jit(loop).lower(np.zeros(1000, np.float32))
    assert "xla_cpu_small_call" not in lowered.compile().as_text()


def test_sizes_of_arrays() -> None:
    assert small_loops.largest("tensor<f32> tensor<3x4xf32> tensor<5xi1>") == 12
    assert small_loops.largest("tensor<f32>") == 1
    assert small_loops.largest("tensor<0x7xf32>") == 0
