"""Empty arrays, traced numbers of diagonals, unusual operands: ordinary programs that hold something small or odd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, float0, grad, jit, lax, vmap
from pullback.experimental.ode import odeint

EMPTY = jnp.zeros(0)
X3 = jnp.arange(3.0)
HOW = pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "compiled"])


class Convertible:
    """An object that says by ``__jax_array__`` which array it stands for."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return jnp.asarray(self.value)


# float0 ------------------------------------------------------------------------------------------------------------

FLOAT0 = {
    "zeros": lambda: jnp.zeros((2, 3), float0),
    "ones": lambda: jnp.ones((2, 3), float0),
    "empty": lambda: jnp.empty((2, 3), float0),
    "full": lambda: jnp.full((2, 3), 1, float0),
    "eye": lambda: jnp.eye(2, 3, dtype=float0),
    "tri": lambda: jnp.tri(2, 3, dtype=float0),
    "zeros_like": lambda: jnp.zeros_like(np.zeros((2, 3), float0)),
    "ones_like": lambda: jnp.ones_like(jnp.ones((2, 3)), dtype=float0),
    "empty_like": lambda: jnp.empty_like(jnp.ones((2, 3)), dtype=float0),
    "full_like": lambda: jnp.full_like(jnp.ones((2, 3)), 0, float0),
}


@HOW
@pytest.mark.parametrize("name", FLOAT0)
def test_arrays_of_float0(name: str, how: Any) -> None:
    out = how(FLOAT0[name])()
    assert out.shape == (2, 3)
    assert out.dtype == float0


# Diagonals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eye", "tri"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_a_traced_diagonal(name: str, dtype: str) -> None:
    ks = np.arange(-5, 6)
    ours, theirs = getattr(jnp, name), getattr(np, name)
    expected = np.stack([theirs(3, 4, k, dtype) for k in ks])
    assert [jit(lambda k: ours(3, 4, k, dtype))(int(k)).tolist() for k in ks] == expected.tolist()
    assert vmap(lambda k: ours(3, 4, k, dtype))(jnp.asarray(ks, "int8")).tolist() == expected.tolist()
    assert [ours(3, 4, int(k), dtype).tolist() for k in ks] == expected.tolist()
    assert ours(2, k=2**40).tolist() == theirs(2, k=2).tolist()


def test_a_traced_diagonal_of_trace() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for k in range(-4, 6):
        for axes in ((1, 2), (2, 1), (0, 2), (-1, 0)):
            got = jit(lambda x, k: jnp.trace(x, k, *axes))(x, k)  # noqa: B023
            assert np.array_equal(got, np.trace(x, k, *axes))


@pytest.mark.parametrize(
    "call",
    [
        lambda k: jnp.eye(3, k=k), lambda k: jnp.tri(3, k=k), lambda k: jnp.tril(jnp.ones((2, 2)), k),
        lambda k: jnp.triu(jnp.ones((2, 2)), k), lambda k: jnp.diag(X3, k), lambda k: jnp.diagflat(X3, k),
        lambda k: jnp.diagonal(jnp.ones((2, 2)), k), lambda k: jnp.trace(jnp.ones((2, 2)), k),
        lambda k: jnp.tril_indices(3, k), lambda k: jnp.triu_indices(3, k),
    ],
)  # fmt: skip
@pytest.mark.parametrize("k", [1.0, "a", None, jnp.arange(2), jnp.float32(1)])
def test_the_number_of_a_diagonal_is_an_integer(call: Any, k: Any) -> None:
    with pytest.raises(errors.ShapeError, match=r"must be an int, got .* of type"):
        call(k)


# Nothing to select -------------------------------------------------------------------------------------------------

OPERATIONS = ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max")


@HOW
@pytest.mark.parametrize("mode", [None, "drop", "fill", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_updates_of_an_empty_array(name: str, mode: Any, how: Any) -> None:
    i = jnp.array([0, 1])
    assert how(lambda x: getattr(x.at[i], name)(2.0, mode=mode))(EMPTY).shape == (0,)
    assert how(lambda x: getattr(x.at[i, 1], name)(2.0, mode=mode))(jnp.zeros((0, 3))).shape == (0, 3)
    assert how(lambda x: x.at[i].apply(jnp.sin, mode=mode))(EMPTY).shape == (0,)
    assert how(grad(lambda u: jnp.sum(getattr(EMPTY.at[i], name)(u, mode=mode))))(2.0) == 0


@HOW
def test_an_int_index_into_an_empty_axis(how: Any) -> None:
    for f in (lambda x: x[0], lambda x: x.at[0].set(1.0), lambda x: x.at[0].get(), lambda x: x.at[-1].add(1.0)):
        with pytest.raises(errors.IndexingError, match="out of bounds for axis 0 with size 0"):
            how(f)(EMPTY)


@HOW
@pytest.mark.parametrize("name", ["set", "add", "multiply", "min"])
@pytest.mark.parametrize(
    "index", [np.s_[0:1:-1], np.s_[2:0:-1], np.s_[1:0], np.s_[::-2], np.s_[5:10], np.s_[-9:9:3], np.s_[3:3]], ids=str
)
def test_updates_at_empty_and_reversed_slices(index: Any, name: str, how: Any) -> None:
    ufunc = {"set": lambda a, b: b, "add": np.add, "multiply": np.multiply, "min": np.minimum}[name]
    for where, x in ((index, np.arange(4.0)), ((index, [0, 2]), np.arange(12.0).reshape(4, 3))):
        x = x.astype(np.float32)
        value = (np.arange(x[where].size) - 1.0).reshape(x[where].shape).astype(np.float32)
        expected = x.copy()
        expected[where] = ufunc(expected[where], value)
        assert np.array_equal(how(lambda x, v: getattr(x.at[where], name)(v))(jnp.asarray(x), value), expected)  # noqa: B023


@HOW
def test_repeat_of_nothing(how: Any) -> None:
    none = jnp.zeros(0, int)
    for repeats, total in ((3, None), (none, None), (none, 0), ([], None)):
        assert how(lambda x: jnp.repeat(x, repeats, total_repeat_length=total))(EMPTY).shape == (0,)  # noqa: B023
    assert jit(lambda x, r: jnp.repeat(x, r, total_repeat_length=0))(EMPTY, none).shape == (0,)
    assert how(lambda x: jnp.repeat(x, 2, axis=1))(jnp.zeros((0, 3))).shape == (0, 6)
    with pytest.raises(errors.ShapeError, match="total_repeat_length=2"):
        jnp.repeat(EMPTY, none, total_repeat_length=2)
    with pytest.raises(errors.DtypeError, match="repeat: repeats must be"):
        jnp.repeat(X3, 1.5)


@HOW
def test_norms_of_nothing(how: Any) -> None:
    x = jnp.zeros((0, 3))
    for ord in (None, 1, 2, 0, np.inf, 3):
        assert how(lambda x: jnp.linalg.norm(x, ord=ord))(EMPTY) == 0  # noqa: B023
        assert how(lambda x: jnp.linalg.norm(x, ord=ord, axis=0))(x).tolist() == [0, 0, 0]  # noqa: B023
    for ord in (None, 1, np.inf, "fro"):
        for matrix in (x, x.T):
            assert how(lambda x: jnp.linalg.norm(x, ord=ord))(matrix) == 0  # noqa: B023
    with pytest.raises(errors.ShapeError, match="no elements to compare"):
        jnp.linalg.norm(EMPTY, ord=-np.inf)


# Operands ----------------------------------------------------------------------------------------------------------


@HOW
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "@", "==", "!=", "<", ">="])
def test_operators_take_what_converts_itself(symbol: str, how: Any) -> None:
    x, y = jnp.array([1.0, 2.0, 3.0]), Convertible([3.0, 2.0, 0.5])
    for text in (f"x {symbol} y", f"y {symbol} x"):
        got = how(lambda x: eval(text, {"x": x, "y": y}))(x)  # noqa: B023
        expected = eval(text, {"x": x, "y": y.__jax_array__()})
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_functions_and_indices_take_what_converts_itself() -> None:
    y = Convertible(X3)
    assert jnp.sin(y).tolist() == jnp.sin(X3).tolist()
    assert jit(lambda x: 2 * x)(y).tolist() == [0, 2, 4]
    assert grad(lambda x: jnp.sum(x * x))(y).tolist() == [0, 2, 4]
    assert X3[Convertible(1)] == 1
    assert X3.at[Convertible([0, 1])].set(Convertible(5.0)).tolist() == [5, 5, 2]


def test_arrays_of_ranges() -> None:
    assert jnp.array(range(3)).tolist() == [0, 1, 2]
    assert jnp.asarray(range(10, 0, -3), "float32").tolist() == [10, 7, 4, 1]
    assert jnp.array([range(2), [5, 6]]).tolist() == [[0, 1], [5, 6]]
    assert jnp.array(range(0)).shape == (0,)
    assert X3.at[:2].set(range(5, 7)).tolist() == [5, 6, 2]
    assert jnp.array(range(3)).dtype == jnp.array([0, 1, 2]).dtype


@HOW
@pytest.mark.parametrize("axes", [(1, 2), (2, 1), (0, 2), (2, 0), (-1, -2), (0, 1, 2), (2, 0, 1), (1,)])
def test_average_with_weights_over_several_axes(axes: tuple[int, ...], how: Any) -> None:
    t = np.random.default_rng(0).random((2, 3, 4))
    weights = np.random.default_rng(1).random([t.shape[i] for i in axes])
    for keepdims in (False, True):
        got, total = how(
            lambda t, w: jnp.average(t, axis=axes, weights=w, returned=True, keepdims=keepdims)  # noqa: B023
        )(t, weights)
        expected = np.average(t, axis=axes, weights=weights, keepdims=keepdims)
        np.testing.assert_allclose(got, expected, rtol=1e-5)
        np.testing.assert_allclose(total, np.full_like(expected, weights.sum()), rtol=1e-5)
    with pytest.raises(errors.ShapeError, match=r"average: weights of shape \(7,\) do not fit axis"):
        jnp.average(t, axis=axes, weights=np.ones(7))


def test_average_refuses_an_axis_twice() -> None:
    with pytest.raises(errors.ShapeError, match="duplicate"):
        jnp.average(jnp.ones((2, 2)), axis=(0, 0), weights=jnp.ones((2, 2)))


@HOW
@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [("int32", "float32", "float32"), ("float32", "float16", "float32"), ("bool", "float32", "float32"),
     ("int32", "float16", "float16"), ("bfloat16", "float32", "float32"), ("float32", "complex64", "complex64")],
)  # fmt: skip
def test_products_of_mixed_dtypes(left: str, right: str, dtype: str, how: Any) -> None:
    x, y = jnp.ones((2, 2), left), jnp.ones((2, 2), right)
    for f in (lax.dot, lax.batch_matmul, lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())))):
        for out in (how(f)(x, y), how(f)(y, x)):
            assert out.dtype == dtype
            assert out.tolist() == [[2, 2], [2, 2]]


def test_vectorize_passes_none_on() -> None:
    def f(x: Any, y: Any, z: Any = None) -> Any:
        return x if y is None and z is None else x + y

    assert jnp.vectorize(f)(X3, None).tolist() == [0, 1, 2]
    assert jnp.vectorize(f)(X3, None, z=None).tolist() == [0, 1, 2]
    assert jnp.vectorize(f)(X3, 1.0).tolist() == [1, 2, 3]
    assert jnp.vectorize(lambda x, y: x.sum(), signature="(n),()->()")(jnp.ones((2, 3)), None).tolist() == [3, 3]
    with pytest.raises(errors.ArgumentError, match=r"operand 1 has the axes \(n\) .* got None"):
        jnp.vectorize(f, signature="(n),(n)->(n)")(X3, None)


# Loops and equations -----------------------------------------------------------------------------------------------


@HOW
def test_float_bounds_of_a_loop(how: Any) -> None:
    for lower, upper in ((0.0, 3.0), (0.5, 3.2), (1.0, 0.0), (jnp.float16(1), jnp.float16(4))):

        def run(lower: Any, upper: Any, x: Any) -> Any:
            return lax.fori_loop(lower, upper, lambda i, v: v + i * x, 0.0)

        expected = sum(float(lower) + k for k in range(10) if float(lower) + k < float(upper))
        assert how(run)(lower, upper, 1.0) == expected
        assert how(grad(run, 2))(lower, upper, 1.0) == expected


def test_bounds_that_do_not_fit_each_other() -> None:
    for lower, upper in ((0, 3.0), (0.0, 3), (jnp.int8(0), jnp.int32(3)), (jnp.uint8(0), 300), (-1, jnp.uint8(3))):
        for how in (lambda f: f, jit):
            with pytest.raises(errors.ControlFlowError, match="fori_loop: the bound"):
                how(lambda a, b: lax.fori_loop(a, b, lambda i, v: v + 1, 0))(lower, upper)
    with pytest.raises(errors.ControlFlowError, match="scalar integer or float"):
        lax.fori_loop(0, 1j, lambda i, v: v, 0)
    with pytest.raises(errors.ControlFlowError, match="unroll needs static integer bounds"):
        lax.fori_loop(0.0, 2.0, lambda i, v: v, 0, unroll=2)


@HOW
def test_a_derivative_as_a_list(how: Any) -> None:
    t = jnp.linspace(0.0, 1.0, 3)
    y0 = jnp.array([1.0, 0.0])
    expected = odeint(lambda y, t: jnp.array([y[1], -y[0]]), y0, t)
    for f in (lambda y, t: [y[1], -y[0]], lambda y, t: (y[1], -y[0])):
        assert np.array_equal(how(lambda y0: odeint(f, y0, t))(y0), expected)  # noqa: B023
        assert how(grad(lambda y0: jnp.sum(odeint(f, y0, t))))(y0).shape == (2,)  # noqa: B023
    tree = odeint(lambda y, t: {"a": [y["a"][1], -y["a"][0]]}, {"a": y0}, t)
    assert np.array_equal(tree["a"], expected)
    with pytest.raises(errors.ControlFlowError, match="must return the derivative"):
        odeint(lambda y, t: [y[1], -y[0], 0.0], y0, t)
    with pytest.raises(errors.ControlFlowError, match="must return the derivative"):
        odeint(lambda y, t: [y[1], [y[0]]], y0, t)


@pytest.mark.parametrize("size", [-1, 1.5, "a", True])
def test_a_batch_size_that_is_none(size: Any) -> None:
    with pytest.raises(errors.ControlFlowError, match="map: batch_size must be a positive int"):
        lax.map(lambda x: x, X3, batch_size=size)
