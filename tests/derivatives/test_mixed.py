"""``derivative_tensor`` is as many nested Jacobians, at a fraction of the cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jacfwd, jit, make_jaxpr, vmap
from pullback.derivatives import derivative_tensor

pytestmark = pytest.mark.usefixtures("all_in_x64")
POINT = np.array([0.3, 1.2, 0.5])


def smooth(x: Any) -> Any:
    return jnp.sin(x[0]) * x[1] ** 3 * jnp.exp(x[2] * x[0])


@pytest.mark.parametrize("order", range(5))
def test_of_a_scalar_function(order: int) -> None:
    expected = smooth
    for _ in range(order):
        expected = jacfwd(expected)
    np.testing.assert_allclose(derivative_tensor(smooth, POINT, order), expected(POINT), rtol=1e-10, atol=1e-11)


def test_of_matrices() -> None:
    f = lambda x: jnp.stack([(x[0] @ x[1]) ** 2, x.sum() ** 3])
    x = np.arange(4.0).reshape(2, 2) / 4
    got = derivative_tensor(f, x, 2)
    assert got.shape == (2, 2, 2, 2, 2)
    np.testing.assert_allclose(got, jacfwd(jacfwd(f))(x), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("chunk_size", [None, 1, 4, 7])
def test_of_sizes_that_differ(chunk_size: int | None) -> None:
    f = lambda x: jnp.sin(x @ x.T) * x[0, 0]
    x = np.arange(6.0).reshape(2, 3) / 4
    for order in (1, 2, 3):
        expected = f
        for _ in range(order):
            expected = jacfwd(expected)
        got = derivative_tensor(f, x, order, chunk_size)
        assert got.shape == (2, 2, *(2, 3) * order)
        np.testing.assert_allclose(got, expected(x), rtol=1e-9, atol=1e-10)


def test_of_a_number() -> None:
    np.testing.assert_allclose(derivative_tensor(jnp.sin, 0.3, 5), np.cos(0.3), rtol=1e-12)
    assert derivative_tensor(lambda x: x.sum(), np.ones((0, 2)), 2).shape == (0, 2, 0, 2)


def test_it_is_symmetric_and_in_chunks_the_same() -> None:
    third = derivative_tensor(smooth, POINT, 3)
    for axes in ((1, 0, 2), (2, 1, 0)):
        np.testing.assert_array_equal(third, np.transpose(third, axes))
    np.testing.assert_allclose(derivative_tensor(smooth, POINT, 3, chunk_size=4), third, rtol=1e-13)


def test_under_other_transformations() -> None:
    second = lambda x: derivative_tensor(smooth, x, 2)
    np.testing.assert_allclose(jit(second)(POINT), second(POINT), rtol=1e-12)
    np.testing.assert_allclose(vmap(second)(np.stack([POINT, 2 * POINT]))[1], second(2 * POINT), rtol=1e-12)
    np.testing.assert_allclose(
        grad(lambda x: second(x)[0, 1])(POINT), derivative_tensor(smooth, POINT, 3)[0, 1], rtol=1e-9
    )


def test_of_single_precision() -> None:
    got = derivative_tensor(smooth, POINT.astype(np.float32), 3)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, derivative_tensor(smooth, POINT, 3), rtol=1e-4, atol=1e-4)


def test_it_takes_as_many_lines_as_different_derivatives() -> None:
    """Of 6 variables and order 3 there are 56, where three Jacobians have 216 columns."""
    closed = make_jaxpr(lambda x: derivative_tensor(lambda x: jnp.prod(jnp.sin(x)), x, 3))(np.ones(6))
    assert max(v.aval.shape[0] for eqn in closed.eqns if eqn.primitive.name == "sin" for v in eqn.outvars) <= 56


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: derivative_tensor(smooth, POINT, -1), "order must be a non-negative integer, got -1"),
        (lambda: derivative_tensor(lambda x: (x, x), POINT, 2), "must return an array, got a tuple"),
        (lambda: derivative_tensor(smooth, np.arange(3), 2), "needs real or complex inputs"),
        (lambda: derivative_tensor(lambda x: x > 0, POINT, 2), "needs real or complex outputs, but .* Convert it"),
        (lambda: derivative_tensor(jnp.argmax, POINT, 1), "needs real or complex outputs"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()
