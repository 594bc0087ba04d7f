"""Reductions over windows and by functions: which elements are chosen, what is refused, how much memory it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, hessian, jit, jvp, lax, make_jaxpr, nn, vjp, vmap
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.primitives.signals.window_reductions import extremes_and_positions_p, windows_on

V = jnp.arange(6.0)


def largest(x: Any, size: int = 2, **options: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (size,), **options)


# Which element is chosen ---------------------------------------------------------------------------------------------


def test_the_first_of_equal_elements_is_chosen() -> None:
    """As JAX chooses, in both modes; a minimum too."""
    ones, t = jnp.ones(4), jnp.arange(4.0)
    smallest = lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2,))
    for f in (largest, smallest):
        np.testing.assert_array_equal(grad(lambda x, f=f: f(x).sum())(ones), [1, 1, 1, 0])
        np.testing.assert_array_equal(jvp(f, (ones,), (t,))[1], [0, 1, 2])


def test_numbers_of_python_take_the_dtype_of_the_operand() -> None:
    x = V.astype("bfloat16")
    assert largest(x).dtype == x.dtype
    assert lax.reduce(x, 0, lax.add, (0,)).dtype == x.dtype


def test_nan_is_largest_and_smallest() -> None:
    x = jnp.array([1.0, jnp.nan, 2.0, 3.0])
    np.testing.assert_array_equal(largest(x), [np.nan, np.nan, 3])
    np.testing.assert_array_equal(grad(lambda x: largest(x).sum())(x), [0, 2, 0, 1])


@pytest.mark.parametrize("size", [2, 40])
def test_padding_is_never_chosen(size: int) -> None:
    """Not even beside -inf, in windows that are gone through element by element, and in long ones."""
    x = jnp.full(3, -jnp.inf)
    f = lambda x: largest(x, size, window_strides=(size,), padding=[(size - 1, size)])
    t = jnp.arange(1.0, 4.0)
    values, tangents = jvp(f, (x,), (t,))
    np.testing.assert_array_equal(values, np.full(values.shape, -np.inf))
    np.testing.assert_array_equal(tangents[:2], [1, 2])
    np.testing.assert_array_equal(tangents[2:], np.zeros(tangents.shape[0] - 2))


def test_long_windows_choose_as_short_ones() -> None:
    x = np.random.default_rng(0).integers(0, 9, (5, 90)).astype(np.float32)  # with many that are equal
    f = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 37), (1, 3), "SAME", window_dilation=(1, 2))
    out, back = vjp(f, x)
    weights = np.cos(np.arange(out.size, dtype=np.float32)).reshape(out.shape)
    low, width = 36, 73
    padded = np.pad(x, ((0, 1), (low, width)), constant_values=-np.inf)
    expected = np.zeros_like(padded)
    total = max((out.shape[1] - 1) * 3 + width - 90, 0)
    for i, j in np.ndindex(*out.shape):
        start = low - total // 2 + 3 * j
        window = padded[i : i + 2, start : start + width : 2]
        a, b = np.unravel_index(window.argmax(), window.shape)
        assert window.max() == out[i, j]
        expected[i + a, start + 2 * b] += weights[i, j]
    np.testing.assert_allclose(back(weights)[0], expected[:-1, low:-width], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 6, 5, 3), (0, 6, 5, 3)])
def test_eager_derivatives_find_extremes_and_positions_at_once(shape: tuple[int, ...], dtype: str) -> None:
    """With the results of the operations of programs, which are those of ``jit`` and of further derivatives."""
    x = jnp.asarray(np.random.default_rng(0).integers(-2, 3, shape), dtype)
    for f in (lambda x: nn.max_pool(x, (2, 3), (1, 2), "SAME"), lambda x: nn.min_pool(x, (2, 2), (2, 2))):
        out, tangent = jvp(f, (x,), (x + 1,))
        assert out.dtype == tangent.dtype == x.dtype
        np.testing.assert_array_equal(out, f(x))
        for a, b in zip((out, tangent), jit(lambda x, f=f: jvp(f, (x,), (x + 1,)))(x), strict=True):
            np.testing.assert_array_equal(a, b)
        pull = lambda x, f=f: vjp(f, x)[1](f(x))[0]
        np.testing.assert_array_equal(pull(x), jit(pull)(x))
        np.testing.assert_array_equal(jvp(pull, (x,), (x,))[1], jit(lambda x, pull=pull: jvp(pull, (x,), (x,))[1])(x))
        np.testing.assert_array_equal(vmap(pull)(x[None])[0], pull(x))
        assert "window_extremes_and_positions" not in str(make_jaxpr(pull)(x))


def test_operations_on_extremes_and_positions_are_those_of_programs() -> None:
    x = jnp.array([[1.0, 3.0, 3.0, 2.0]])
    params = {"windows": windows_on(x.shape, "test", (1, 2), (1, 2), "VALID"), "largest": True}
    out, at = jit(lambda x: extremes_and_positions_p.bind(x, **params))(x)
    np.testing.assert_array_equal(out, [[3, 3]])
    np.testing.assert_array_equal(at, [[1, 0]])


def test_overlapping_and_tiled_windows_pull_back_alike() -> None:
    """The quick way for tiles is the general one."""
    x = jnp.cos(jnp.arange(35.0)).reshape(5, 7)
    tiled = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 3), [(1, 0), (0, 2)])
    apart = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 1), [(1, 0), (0, 2)])[::2, ::3]
    np.testing.assert_array_equal(grad(lambda x: (tiled(x) ** 2).sum())(x), grad(lambda x: (apart(x) ** 2).sum())(x))


# Functions -----------------------------------------------------------------------------------------------------------


def test_a_product_has_derivatives_where_factors_are_zero() -> None:
    x = jnp.array([0.0, 2.0, 0.0, 3.0])
    f = lambda x: lax.reduce_window(x, 1.0, lax.mul, (3,)).sum()
    np.testing.assert_array_equal(grad(f)(x), [0, 0, 6 + 0, 0])
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0
    expected[0, 2] = expected[2, 0] = 2
    expected[1, 2] = expected[2, 1] = 0 + 3
    expected[2, 3] = expected[3, 2] = 2
    np.testing.assert_array_equal(hessian(f)(x), expected)


def test_recognised_functions_are_operations() -> None:
    names = lambda f: {e.primitive.name for e in make_jaxpr(f)(V).eqns}
    assert names(lambda x: lax.reduce_window(x, 0.0, lambda a, b: b + a, (2,))) == {"reduce_window_sum"}
    assert names(lambda x: lax.reduce_window(x, -jnp.inf, jnp.maximum, (2,))) == {"reduce_window_max"}
    assert names(lambda x: lax.reduce(x, 1.0, jnp.multiply, (0,))) == {"reduce_prod"}
    assert "reduce_sum" not in names(lambda x: lax.reduce(x, 0.0, lambda a, b: a + 2 * b, (0,)))


def test_functions_close_over_what_is_transformed() -> None:
    f = lambda c: lax.reduce(V, 0.0, lambda a, b: a + b + c * a * b, (0,))
    expected = lambda c: (jnp.prod(1 + c * V) - 1) / c
    np.testing.assert_allclose(grad(f)(0.5), grad(expected)(0.5), rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(f))(jnp.array([0.5, 1.0])), [expected(0.5), expected(1.0)], rtol=1e-5)


def test_functions_of_scalars_may_branch() -> None:
    """They are mapped, so that they see scalars."""
    f = lambda a, b: lax.cond(a > b, lambda: a, lambda: b)
    assert lax.reduce(V, -jnp.inf, f, (0,)) == 5
    np.testing.assert_array_equal(lax.reduce_window(V, -jnp.inf, f, (7,), padding="SAME"), [3, 4, 5, 5, 5, 5])


def test_trees() -> None:
    add = lambda a, b: {"x": a["x"] + b["x"], "y": a["y"] * b["y"]}
    out = lax.reduce_window({"x": V, "y": V}, {"x": 0.0, "y": 1.0}, add, (2,))
    np.testing.assert_array_equal(out["x"], [1, 3, 5, 7, 9])
    np.testing.assert_array_equal(out["y"], [0, 2, 6, 12, 20])
    assert lax.reduce(V, 5.0, lax.add, ()) is V


def test_nothing_to_reduce() -> None:
    assert lax.reduce(V[:0], 3.0, lambda a, b: a + b + a * b, (0,)) == 3
    assert largest(V, 7).shape == (0,)
    np.testing.assert_array_equal(grad(lambda x: largest(x, 7).sum())(V), np.zeros(6))
    np.testing.assert_array_equal(largest(V[:0], 2, padding=[(1, 2)]), [-np.inf, -np.inf])


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "no elements": (lambda: largest(V, 0), ShapeError, "positive integers"),
    "negative": (lambda: largest(V, -1), ShapeError, "window_dimensions must be 1 positive"),
    "rank": (lambda: lax.reduce_window(V, 0.0, lax.add, (2, 2)), ShapeError, r"shape \(6,\), got \(2, 2\)"),
    "strides": (lambda: largest(V, window_strides=(1, 1)), ShapeError, "strides"),
    "padding": (lambda: largest(V, padding="FULL"), ArgumentError, "'FULL'"),
    "pairs": (lambda: largest(V, padding=[(1, 1)] * 2), ShapeError, "must be 1 pairs"),
    "cut": (lambda: largest(V, padding=[(-4, -4)]), ShapeError, "must not remove more"),
    "dtype of the start": (lambda: lax.reduce(V.astype(int), 0.5, lax.add, (0,)), DtypeError, "must have the dtype"),
    "shape of the start": (lambda: lax.reduce(V, V, lax.add, (0,)), ShapeError, "must be scalars"),
    "trees": (lambda: lax.reduce([V], 0.0, lax.add, (0,)), ArgumentError, "the tree of the operands"),
    "shapes": (lambda: lax.reduce([V, V[:2]], [0.0, 0.0], lambda a, b: a, (0,)), ShapeError, "one shape"),
    "no operands": (lambda: lax.reduce([], [], lambda a, b: a, (0,)), ArgumentError, "at least one"),
    "axes": (lambda: lax.reduce(V, 0.0, lax.add, (1,)), ShapeError, r"distinct axes.*got \(1,\)"),
    "an axis twice": (lambda: lax.reduce(V, 0.0, lax.add, (0, 0)), ShapeError, "distinct"),
    "another tree": (lambda: lax.reduce(V, 0.0, lambda a, b: (a, b), (0,)), ArgumentError, "must return a tree"),
    "another dtype": (lambda: lax.reduce(V, 0.0, lambda a, b: a > b, (0,)), ArgumentError, r"bool\[\]"),
    "out_sharding": (lambda: lax.reduce(V, 0.0, lax.add, (0,), "x"), NotImplementedError, "out_sharding"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_bad_input(what: str) -> None:
    call, error, message = ERRORS[what]
    with pytest.raises(error, match=message):
        call()


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strides", [(1, 1), (3, 3)])
def test_gradients_of_pooling_take_a_few_arrays(strides: tuple[int, int]) -> None:
    """Whatever the size of the window: no array of windows."""
    x = jnp.ones((1, 64, 64, 4))
    for size in (3, 12):
        f = lambda x, size=size: nn.max_pool(x, (size, size), strides, "SAME").sum()
        compiled = jit(grad(f)).lower(x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes <= 16 * x.size * 4
