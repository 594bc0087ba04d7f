"""NumPy's own functions on our values: on concrete ones they give what NumPy returns, on traced ones what is ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import grad, hessian, jit, make_jaxpr, vmap
from pullback.core.array import Array
from pullback.core.errors import ShapeError, TracerArrayConversionError, UnsupportedFunctionError

X = np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 0.25]], np.float32)
CALLS = [
    lambda x: np.sin(x),
    lambda x: np.add(X, x),
    lambda x: X * x,
    lambda x: np.float32(2) * x,
    lambda x: np.power(x, 2),
    lambda x: np.matmul(x, X.T),
    lambda x: X.T @ x,
    lambda x: np.concatenate([x, X]),
    lambda x: np.stack([x, X], axis=1),
    lambda x: np.where(x > 1.2, x, 0.0),
    lambda x: np.sum(x, axis=0),
    lambda x: np.mean(x),
    lambda x: np.amax(x, axis=1, keepdims=True),
    lambda x: np.max(x),
    lambda x: np.linalg.norm(x),
    lambda x: np.linalg.norm(x, axis=1),
    lambda x: np.reshape(x, (3, 2)),
    lambda x: np.transpose(x),
    lambda x: np.einsum("ij,ij->i", x, X),
    lambda x: np.dot(x, X.T),
    lambda x: np.tensordot(x, X, axes=2),
    lambda x: np.add.reduce(x),
    lambda x: np.multiply.reduce(x, axis=1),
    lambda x: np.maximum.reduce(x, axis=None),
    lambda x: np.add.accumulate(x, axis=1),
    lambda x: np.multiply.outer(x[0], X[1]),
    lambda x: np.square(x, dtype=np.float32),
    lambda x: np.clip(x, 0.7, 2.5),
    lambda x: np.zeros_like(x),
    lambda x: np.split(x, 3, axis=1)[1],
    lambda x: np.round(0.3 * x),
    lambda x: np.log1p(np.exp(-np.abs(x))),
]


@pytest.mark.parametrize("index", range(len(CALLS)))
def test_numpy_functions_are_differentiated(index: int) -> None:
    call = CALLS[index]
    got = call(pnp.asarray(X))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, call(X), rtol=2e-6)
    traced: list[Any] = []
    grad(lambda x: (traced.append(call(x)), x.sum())[1])(X)
    assert isinstance(traced[0], Array)
    np.testing.assert_allclose(vmap(call)(X[None])[0], call(X), rtol=2e-6)
    np.testing.assert_allclose(vmap(call)(np.stack([X, 2 * X]))[1], call(2 * X), rtol=2e-6)
    assert make_jaxpr(call)(X).out_avals[0].shape == np.shape(call(X))
    total = lambda x: np.sum(np.sin(call(x)))
    direction = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    slope = float(np.vdot(np.asarray(grad(total)(X)), direction))
    h = 1e-3
    wide = lambda x: np.sum(np.sin(call(x.astype(np.float64))))
    difference = (wide(X + h * direction.astype(float)) - wide(X - h * direction.astype(float))) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=5e-3, atol=5e-3)


def test_derivatives_through_numpys_names() -> None:
    np.testing.assert_allclose(grad(np.sin)(1.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(grad(grad(np.tanh))(0.5), -0.726862, rtol=1e-5)
    np.testing.assert_allclose(grad(np.linalg.norm)(np.array([3.0, 4.0])), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(hessian(lambda x: np.sum(np.power(x, 3)))(np.array([1.0, 2.0])), [[6, 0], [0, 12]])


def test_an_operand_of_numpys_comes_first() -> None:
    x = pnp.ones(2)
    for got in (np.ones(2, np.float32) + x, np.float32(1) + x, np.ones(2, np.float32) == x, np.ones(2) @ x):
        assert isinstance(got, Array)
    assert (np.float16(1) * x).dtype == np.float32
    assert grad(lambda v: (np.arange(3.0) * v).sum())(2.0) == 3.0


UNSUPPORTED = [
    (lambda x: np.isnat(x), r"np.isnat was called with traced arrays, but pullback.numpy has no such function"),
    (lambda x: np.real_if_close(x), "np.real_if_close was called"),
    (lambda x: np.add.at(x, [0], 1.0), r"np.add.at changes its operand; use x.at"),
    (lambda x: np.add.reduceat(x, [0]), "np.add.reduceat does not work"),
    (lambda x: np.hypot.reduce(x), "np.hypot.reduce does not work"),
    (lambda x: np.add(x, 1, where=x > 0), "np.add does not take where="),
]


@pytest.mark.parametrize("index", range(len(UNSUPPORTED)))
def test_what_is_not_there_says_so_by_name(index: int) -> None:
    call, message = UNSUPPORTED[index]
    with pytest.raises(UnsupportedFunctionError, match=message):
        grad(lambda x: np.sum(call(x)))(X)
    with pytest.raises(TypeError, match=message):
        make_jaxpr(call)(X)


def test_concrete_values_are_written_into_numpy_arrays() -> None:
    x = pnp.asarray(X)
    buffer = np.ones((2, 3))
    assert np.add(buffer, x, out=buffer) is buffer
    np.testing.assert_allclose(buffer, 1 + X)
    assert np.multiply(x, 2.0, out=buffer) is buffer
    np.testing.assert_allclose(buffer, 2 * X)
    sums = np.zeros(3, X.dtype)
    assert np.sum(x, axis=0, out=sums) is sums
    np.testing.assert_allclose(sums, X.sum(0))
    np.add.at(buffer, (0,), x[1])
    np.testing.assert_allclose(buffer[0], 2 * X[0] + X[1])


WRITES = [
    (
        lambda x: np.add(X, x, out=X.copy()),
        "np.add cannot write a result .* traced arrays into a .* such as",
    ),
    (lambda x: np.sum(x, out=np.zeros(())), "np.sum cannot write traced arrays into out="),
    (lambda x: np.add.at(X.copy(), [0], x[0]), r"np.add.at changes its operand"),
]


@pytest.mark.parametrize("index", range(len(WRITES)))
def test_traced_values_are_not(index: int) -> None:
    call, message = WRITES[index]
    with pytest.raises(UnsupportedFunctionError, match=message):
        make_jaxpr(call)(X)


def test_what_prints_and_writes_gets_numpy_arrays(tmp_path: Any) -> None:
    x = pnp.asarray(X)
    assert np.array2string(x) == np.array2string(X)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)
    target = np.zeros_like(X)
    np.copyto(target, x)
    np.testing.assert_array_equal(target, X)
    with pytest.raises(TracerArrayConversionError):
        make_jaxpr(np.array2string)(1.0)


def test_norms() -> None:
    matrix, vector = X, X[0]
    for order in (None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
        np.testing.assert_allclose(pnp.linalg.norm(vector, order), np.linalg.norm(vector, order), rtol=1e-5)
        np.testing.assert_allclose(pnp.linalg.norm(X, order, axis=1), np.linalg.norm(X, order, axis=1), rtol=1e-5)
    for order in (None, "fro", 1, -1, np.inf, -np.inf):
        np.testing.assert_allclose(pnp.linalg.norm(matrix, order), np.linalg.norm(matrix, order), rtol=1e-6)
        stack = np.stack([X, 2 * X], axis=1)
        for axes in ((0, 2), (2, 0), (-1, 1)):
            for keep in (False, True):
                got = pnp.linalg.norm(stack, order, axes, keep)
                np.testing.assert_allclose(got, np.linalg.norm(stack, order, axes, keep), rtol=1e-6)
    np.testing.assert_allclose(pnp.linalg.norm(np.array([3 + 4j])), 5.0)
    np.testing.assert_allclose(pnp.linalg.vector_norm(X, ord=1), np.abs(X).sum())
    np.testing.assert_allclose(pnp.linalg.matrix_norm(X, ord=1), np.linalg.norm(X, 1))
    for order in ("nuc", 2, -2):
        np.testing.assert_allclose(pnp.linalg.norm(X, order), np.linalg.norm(X, order), rtol=1e-5)
    with pytest.raises(ShapeError, match="no norm of order 'fro'"):
        pnp.linalg.norm(vector, "fro")
    with pytest.raises(ShapeError, match="one axis or two different"):
        pnp.linalg.norm(X, 1, axis=(0, 0))


def test_products() -> None:
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.normal(size=s).astype("f") for s in ((2, 5), (5, 3), (3, 7), (7, 2)))
    for chain in ([a, b], [a, b, c], [a, b, c, d], [a[0], b, c, d[:, 0]], [a[0], b], [b, c, d[:, 0]]):
        np.testing.assert_allclose(pnp.linalg.multi_dot(chain), np.linalg.multi_dot(chain), rtol=2e-5, atol=1e-5)
    square = rng.normal(size=(2, 3, 3)).astype("f")
    for n in (0, 1, 2, 5):
        expected = np.linalg.matrix_power(square, n)
        np.testing.assert_allclose(pnp.linalg.matrix_power(square, n), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(pnp.linalg.cross(a[:, :3], b[:2]), np.linalg.cross(a[:, :3], b[:2]), rtol=1e-5)
    np.testing.assert_allclose(pnp.linalg.diagonal(square), np.linalg.diagonal(square))
    np.testing.assert_allclose(pnp.linalg.trace(square), np.linalg.trace(square), rtol=1e-6)
    np.testing.assert_allclose(pnp.linalg.outer(a[0], b[0]), np.outer(a[0], b[0]))
    np.testing.assert_allclose(pnp.linalg.vecdot(a, a), np.linalg.vecdot(a, a), rtol=1e-6)
    with pytest.raises(ShapeError, match="square matrices"):
        pnp.linalg.matrix_power(a, 2)
    with pytest.raises(ShapeError, match="at least two"):
        pnp.linalg.multi_dot([a])
    for n in (-1, -3):
        expected = np.linalg.matrix_power(square, n)
        np.testing.assert_allclose(pnp.linalg.matrix_power(square, n), expected, rtol=1e-3, atol=1e-4)


def test_a_read_only_view_of_memory_that_may_change_is_copied() -> None:
    memory = np.ones(1000, np.float32)
    view = memory.view()
    view.flags.writeable = False
    for take in (pnp.asarray, pnp.array, lambda x: pnp.zeros(1000) + x, lambda x: jit(lambda x: x)(x)):
        memory[:] = 1
        x = take(view)
        memory[:] = 2
        np.testing.assert_array_equal(x, np.ones(1000))


def test_lists_are_operands_beside_ours_as_for_numpy() -> None:
    x = pnp.asarray([1.0, 2.0])
    assert np.allclose(x, [1.0, 2.0])
    assert not np.array_equal([1.0, 3.0], x)
    np.testing.assert_array_equal(np.add(x, [1, 2]), [2, 4])
    np.testing.assert_array_equal(np.dot([[1, 0], [0, 3]], x), [1, 6])
    np.testing.assert_allclose(grad(lambda x: np.dot([x, 2 * x], x)[1])(pnp.ones(1)), [4])
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.multiply(x, (3, 4))))(x), [3, 4])
    with pytest.raises(TypeError, match="isclose: expected an array or a number, got 'a'"):
        make_jaxpr(lambda x: np.allclose(x, "a", (1, 2)))(x)
