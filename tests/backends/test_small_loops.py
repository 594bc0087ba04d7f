"""Programs with loops: those of small arrays are compiled to one function or two; options of the compiler for loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import Array, disable_jit, grad, jit, lax, nn, random
from pullback.backends import emit, options, small_loops
from pullback.backends.client import EXTRA_OPTIONS

X = np.random.default_rng(0).normal(size=12).astype(np.float32)

BODIES: dict[str, Any] = {
    "scatter": lambda i, y: y.at[i].set(0.5 * i),
    "scatter, repeated": lambda i, y: y.at[jnp.array([0, 1, 1])].add(1.0),
    "scatter, multiplied": lambda i, y: y.at[jnp.array([0, 1, 1])].multiply(1.1),
    "gather": lambda i, y: y[(y * 3).astype(int) % y.size],
    "sort": lambda i, y: jnp.sort(y),
    "median": lambda i, y: y - jnp.median(y),
    "cumsum": lambda i, y: jnp.cumsum(y) * 0.01,
    "cumprod": lambda i, y: jnp.cumprod(y) * 0.01,
    "cummax": lambda i, y: lax.cummax(y),
    "associative_scan": lambda i, y: lax.associative_scan(jnp.add, y) * 0.01,
    "convolve": lambda i, y: jnp.convolve(y, y[:5], mode="same") * 0.1,
    "dot": lambda i, y: y * (y @ y) * 0.01,
    "outer": lambda i, y: jnp.outer(y, y).sum(0) * 0.01,
    "cholesky": lambda i, y: jnp.linalg.cholesky(jnp.eye(4) + jnp.outer(y[:4], y[:4])).sum() * y,
    "solve": lambda i, y: y.at[:4].set(jnp.linalg.solve(jnp.eye(4) * 3 + jnp.outer(y[:4], y[:4]), y[:4])),
    "random": lambda i, y: y + random.normal(random.fold_in(random.key(0), i), y.shape),
    "argmax": lambda i, y: y + jnp.argmax(y),
    "top_k": lambda i, y: y + lax.top_k(y, 2)[0][0],
    "cond": lambda i, y: lax.cond(i > 3, jnp.sin, jnp.cos, y),
    "switch": lambda i, y: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], y),
    "while_loop": lambda i, y: lax.while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] * 0.9), (0, y))[1],
    "scan": lambda i, y: lax.scan(lambda c, x: (c + x, c * x), 0.0, y)[1],
    "complex": lambda i, y: jnp.abs(jnp.exp(1j * y)).astype(y.dtype),
    "bfloat16": lambda i, y: (y.astype(jnp.bfloat16) * 2).astype(y.dtype),
    "int": lambda i, y: ((y * 10).astype(int) // 3 % 7).astype(y.dtype),
    "population_count": lambda i, y: lax.population_count((y * 9).astype(jnp.uint32)).astype(y.dtype),
    "special": lambda i, y: lax.erf(y) + lax.lgamma(jnp.abs(y) + 1) + lax.digamma(jnp.abs(y) + 1) + lax.erf_inv(y / 99),
    "dynamic_slice": lambda i, y: lax.dynamic_update_slice(y, lax.dynamic_slice(y, (i,), (2,)) * 2, (i + 1,)),
    "pad": lambda i, y: jnp.pad(y, 2)[2:-2] * 0.9,
    "reverse": lambda i, y: jnp.sin(y) + y[::-1],
    "transpose": lambda i, y: y + jnp.sin(y.reshape(4, 3).T.reshape(-1)),
    "softmax": lambda i, y: nn.softmax(y) * y,
    "nextafter": lambda i, y: jnp.nextafter(y, y + 1),
}


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


def test_what_cannot_be_one_function_after_all_is_compiled_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "is_small_loop", lambda lines: True)
    weights = jnp.ones((64, 64))

    def products(x: Any) -> Any:
        return jnp.tanh(x @ weights) @ weights

    assert parts(products, np.ones((32, 64))) == 1
    np.testing.assert_allclose(jit(products)(np.ones((32, 64))), products(np.ones((32, 64))), rtol=1e-5)


def test_options_for_loops() -> None:
    def chosen(function: Any, *args: Any) -> dict[str, Any]:
        return dict(options.chosen("cpu", jit(function).lower(*args).as_text()))

    loops, rolled = "xla_cpu_small_while_loop_byte_threshold", "xla_cpu_disable_loop_unrolling"
    assert {loops, rolled} == EXTRA_OPTIONS
    assert loops in chosen(steps, X)
    assert rolled in chosen(jnp.sin, X)
    assert rolled not in chosen(steps, X)
    assert rolled not in chosen(jnp.sin, np.zeros(options.SMALL + 1))
    assert not options.chosen("cuda", "")
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
