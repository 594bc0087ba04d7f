"""``pullback.lax``: every function checks its operands, computes what NumPy does, and can be traced."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import pullback.numpy as jnp
from pullback import grad, jit, lax, make_jaxpr, vmap
from pullback.core.errors import DtypeError, OperandError, ShapeError
from pullback.core.trace import Primitive

X = np.array([[0.5, -1.5, 2.5], [0.25, 3.0, -0.75]], np.float32)
Y = np.array([[1.5, 0.5, -2.0], [0.25, 1.0, 3.0]], np.float32)
N = np.array([[5, -3, 2], [0, 7, -8]], np.int32)
M = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
Z = (X + 1j * Y).astype(np.complex64)
UNIT = np.tanh(X)

# The name, operands, and what NumPy or SciPy would do.
ELEMENTWISE: list[tuple[str, tuple[Any, ...], Callable[..., Any]]] = [
    ("neg", (X,), np.negative), ("sign", (X,), np.sign), ("floor", (X,), np.floor), ("ceil", (X,), np.ceil),
    ("exp", (X,), np.exp), ("exp2", (X,), np.exp2), ("expm1", (X,), np.expm1), ("log", (abs(X),), np.log),
    ("log1p", (abs(X),), np.log1p), ("sqrt", (abs(X),), np.sqrt), ("rsqrt", (abs(X),), lambda x: 1 / np.sqrt(x)),
    ("cbrt", (X,), np.cbrt), ("logistic", (X,), scipy.special.expit), ("sin", (X,), np.sin), ("cos", (Z,), np.cos),
    ("tan", (X,), np.tan), ("asin", (UNIT,), np.arcsin), ("acos", (UNIT,), np.arccos), ("atan", (X,), np.arctan),
    ("sinh", (X,), np.sinh), ("cosh", (X,), np.cosh), ("tanh", (Z,), np.tanh), ("asinh", (X,), np.arcsinh),
    ("acosh", (abs(X) + 1,), np.arccosh), ("atanh", (UNIT,), np.arctanh), ("abs", (Z,), np.abs),
    ("real", (Z,), np.real), ("imag", (Z,), np.imag), ("conj", (Z,), np.conj), ("square", (N,), np.square),
    ("one_minus_square", (N,), lambda n: 1 - n * n), ("log2", (abs(X),), np.log2),
    ("conj", (X,), lambda x: x.astype(np.complex64)), ("reciprocal", (X,), np.reciprocal),
    ("is_finite", (X,), np.isfinite), ("erf", (X,), scipy.special.erf), ("erfc", (X,), scipy.special.erfc),
    ("erf_inv", (UNIT,), scipy.special.erfinv), ("lgamma", (abs(X),), scipy.special.gammaln),
    ("digamma", (abs(X),), scipy.special.digamma), ("bitwise_not", (N,), np.invert),
    ("population_count", (M,), lambda n: np.bitwise_count(n).astype(np.int32)),
    ("clz", (M,), lambda n: 31 - np.floor(np.log2(n)).astype(np.int32)),
    ("add", (X, Y), np.add), ("sub", (X, Y), np.subtract), ("mul", (N, M), np.multiply), ("div", (X, Y), np.divide),
    ("rem", (N, M), np.fmod), ("max", (X, Y), np.maximum), ("min", (X, Y), np.minimum),
    ("atan2", (X, Y), np.arctan2), ("complex", (X, Y), lambda x, y: Z), ("pow", (abs(X), Y), np.power),
    ("polygamma", (abs(np.float32(M)), abs(X)), scipy.special.polygamma), ("nextafter", (X, Y), np.nextafter),
    ("bitwise_and", (N, M), np.bitwise_and), ("bitwise_or", (N, M), np.bitwise_or),
    ("bitwise_xor", (N, M), np.bitwise_xor), ("shift_left", (N, M), np.left_shift),
    ("shift_right_arithmetic", (N, M), np.right_shift),
    ("shift_right_logical", (N, M), lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32)),
    ("eq", (X, Y), np.equal), ("ne", (X, Y), np.not_equal), ("lt", (X, Y), np.less), ("le", (X, Y), np.less_equal),
    ("gt", (X, Y), np.greater), ("ge", (X, Y), np.greater_equal),
    ("select", (X > 0, X, Y), np.where), ("select_n", (N % 2, X, Y), lambda i, x, y: np.where(i, y, x)),
    ("clamp", (-Y * 0 - 1, X, Y * 0 + 1), lambda lo, x, hi: np.clip(x, lo, hi)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "reference"), ELEMENTWISE)
def test_elementwise(name: str, operands: Any, reference: Callable[..., Any]) -> None:
    function = getattr(lax, name)
    expected = np.asarray(reference(*operands))
    arrays = [jnp.asarray(x) for x in operands]
    for got in (function(*arrays), function(*operands), vmap(function)(*arrays)):
        assert np.asarray(got).dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)
    (out,) = make_jaxpr(function)(*arrays).out_avals
    assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
    assert function.__doc__


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_a_number_beside_an_array_has_its_own_dtype(wrap: Any) -> None:
    numbers = {"bool": True, "int32": 1, "float32": 1.0, "complex64": 1j}
    for dtype in ("bfloat16", "float16", "float32", "complex64", "int8", "uint8", "int32"):
        x = jnp.ones(3, dtype)
        for own, number in numbers.items():
            for call in (lambda x, n=number: lax.add(x, n), lambda x, n=number: lax.mul(n, x)):
                if own == dtype:
                    assert wrap(call)(x).dtype == dtype
                else:
                    with pytest.raises(TypeError, match="takes operands of one dtype"):
                        wrap(call)(x)
    x = jnp.ones(3)
    for refused in (lambda: lax.lt(x, 0), lambda: lax.clamp(0, x, 1), lambda: lax.pad(x, 0, [(1, 1, 0)])):
        with pytest.raises(TypeError, match="dtype"):
            refused()


def test_a_number_beside_an_array_of_its_dtype() -> None:
    assert make_jaxpr(lambda x: lax.add(x, 2.0))(jnp.ones(3)).out_avals[0].dtype == np.float32
    assert lax.add(1, 2).weak_type
    assert lax.add(jnp.float32(1), jnp.ones(2)).shape == (2,)
    assert lax.clamp(0.0, jnp.asarray(X), 1.0).tolist() == np.clip(X, 0, 1).tolist()
    assert lax.select(True, jnp.ones(2), jnp.zeros(2)).tolist() == [1, 1]
    assert lax.pow(jnp.asarray(X), 2).tolist() == (X**2).tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: lax.add(x, jnp.arange(3)), DtypeError, "add takes operands of one dtype, got f32, i32"),
        (lambda x: lax.add(jnp.arange(3), 2.0), DtypeError, "add takes operands of one dtype, got i32, f32"),
        (lambda x: lax.mul(x, 2j), DtypeError, "mul takes operands of one dtype, got f32, c64"),
        (lambda x: lax.add(x, jnp.ones((2, 3))), ShapeError, "lax.add: arrays must have the same number of dimensions"),
        (lambda x: lax.add(x, jnp.ones(2)), ShapeError, "add got incompatible shapes for broadcasting: (3,), (2,)"),
        (lambda x: lax.sin(1), DtypeError, "sin takes floats or complex numbers, got i32"),
        (lambda x: lax.sin(jnp.arange(3)), DtypeError, "sin takes floats or complex numbers, got i32"),
        (lambda x: lax.real(x), DtypeError, "real takes complex numbers, got f32"),
        (lambda x: lax.neg(jnp.ones(2, bool)), DtypeError, "neg takes numbers, got bool"),
        (lambda x: lax.bitwise_and(x, x), DtypeError, "takes integers or booleans, got f32"),
        (lambda x: lax.erf(1), DtypeError, "erf takes floats, got i32"),
        (lambda x: lax.add("a", x), OperandError, "lax.add: expected an array or a number, got 'a' of type str"),
        (lambda x: lax.sin([1.0]), OperandError, "lax.sin: expected an array or a number, got [1.0] of type list"),
        (lambda x: lax.select(x > 0, x, 0.0), ShapeError, "the cases must have one shape"),
        (lambda x: lax.select(x > 0, x, jnp.arange(3)), DtypeError, "select_n takes operands of one dtype"),
        (lambda x: lax.select_n(x > 0, x, x, x), DtypeError, "booleans select one of two cases, got 3"),
        (lambda x: lax.clamp(jnp.ones(1), x, 2.0), ShapeError, "a bound must be a scalar or of shape (3,), got (1,)"),
        (lambda x: lax.convert_element_type(x, None), DtypeError, "expected a dtype, got None"),
        (lambda x: lax.convert_element_type(x, "float33"), DtypeError, "unknown dtype 'float33'"),
        (lambda x: lax.concatenate([x, jnp.arange(3)], 0), DtypeError, "concatenate takes operands of one dtype"),
        (lambda x: lax.concatenate([], 0), ShapeError, "at least one operand"),
        (lambda x: lax.reshape(x, (2, 2)), ShapeError, "an array of shape (3,) (size 3) into shape (2, 2)"),
        (lambda x: lax.transpose(x, (0, 1)), ShapeError, "(0, 1) is not a permutation"),
        (lambda x: lax.squeeze(x, (0,)), ShapeError, "cannot squeeze the axes (0,) of an array of shape (3,)"),
        (lambda x: lax.expand_dims(x, (0, 0)), ShapeError, "repeated axis in (0, 0)"),
        (lambda x: lax.broadcast_in_dim(x, (3, 2), (1,)), ShapeError, "does not fit (3, 2) along the axes (1,)"),
        (lambda x: lax.slice(x, (0,), (4,)), ShapeError, "limits (4,)"),
        (lambda x: lax.index_in_dim(x, 3), ShapeError, "index 3 is out of bounds for axis 0 of shape (3,)"),
        (lambda x: lax.rev(x, (-1,)), ShapeError, "(-1,) are not distinct axes"),
        (lambda x: lax.pad(x, 1.0, [(1, 1, -1)]), ShapeError, "interior >= 0"),
        (lambda x: lax.pad(x, jnp.ones(1), [(1, 1, 0)]), ShapeError, "the padding value must be a scalar"),
        (lambda x: lax.split(x, (1, 1)), ShapeError, "the sizes (1, 1) do not sum to axis 0 of an array of shape (3,)"),
        (lambda x: lax.full((2,), x), ShapeError, "the fill value must be a scalar, got shape (3,)"),
        (lambda x: lax.dynamic_slice(x, (0, 0), (1,)), ShapeError, "of shape (3,) needs 1 start indices, got 2"),
        (lambda x: lax.dynamic_slice(x, (0,), (4,)), ShapeError, "a block of shape (4,) is too large"),
        (lambda x: lax.dynamic_update_slice(x, jnp.arange(2), (0,)), DtypeError, "operands of one dtype, got f32, i32"),
        (lambda x: lax.reduce_sum(x, (1,)), ShapeError, "(1,) are not distinct axes"),
        (lambda x: lax.reduce_and(x, (0,)), DtypeError, "reduce_and takes integers or booleans, got f32"),
        (lambda x: lax.argmax(x, 1, "int32"), ShapeError, "lax.argmax: axis 1 is out of bounds"),
        (lambda x: lax.argmax(x, 0, "float32"), DtypeError, "index_dtype must be an integer type, got f32"),
        (lambda x: lax.cumsum(x, 1), ShapeError, "lax.cumsum: axis 1 is out of bounds"),
        (lambda x: lax.top_k(x, 4), ShapeError, "k=4 must be from 0 to 3"),
        (lambda x: lax.sort((x, jnp.ones(2))), ShapeError, "sort takes operands of one shape"),
        (lambda x: lax.dot(x, jnp.ones(4)), ShapeError, "vectors of matching sizes, got shapes (3,) and (4,)"),
        (lambda x: lax.batch_matmul(x, x), ShapeError, "operands with the same number of axes, at least 2"),
    ],
)  # fmt: skip
def test_refuses_computed_and_traced(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    for run in (call, lambda x: make_jaxpr(call)(x), lambda x: grad(lambda x: call(x).sum())(x)):
        with pytest.raises(error, match=re.escape(message)):
            run(jnp.ones(3))


def test_rounding() -> None:
    x = np.array([0.5, 1.5, -0.5, -2.5, 0.49999997, -0.0, 2.3, np.inf, 8388609.0], np.float32)
    away = np.asarray(lax.round(jnp.asarray(x)))
    assert away.tolist() == [1, 2, -1, -3, 0, 0, 2, np.inf, 8388609]
    assert np.signbit(away[5])
    even = lax.round(jnp.asarray(x), lax.RoundingMethod.TO_NEAREST_EVEN)
    assert even.tolist() == np.rint(x).tolist()


def test_shapes() -> None:
    x = jnp.asarray(X)
    assert np.array_equal(lax.broadcast(x, (2,)), np.broadcast_to(X, (2, 2, 3)))
    assert np.array_equal(lax.broadcast_in_dim(x, (2, 4, 3), (0, 2)), np.broadcast_to(X[:, None], (2, 4, 3)))
    assert np.array_equal(lax.reshape(x, (3, 2), dimensions=(1, 0)), X.T)
    assert np.array_equal(lax.transpose(x, np.array([1, 0])), X.T)
    assert np.array_equal(lax.squeeze(x[None, :, None], (0, -2)), X)
    assert lax.squeeze(x, ()) is x
    assert lax.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1)
    assert lax.collapse(x[None], 1).shape == (1, 6)
    assert lax.collapse(x[..., None], 0, 2).shape == (6, 1)
    assert np.array_equal(lax.rev(x, (0, 1)), X[::-1, ::-1])
    assert lax.pad(jnp.arange(4), 9, [(1, -1, 1)]).tolist() == [9, 0, 9, 1, 9, 2, 9]
    assert np.array_equal(lax.concatenate([x, x], 1), np.concatenate([X, X], 1))
    assert [p.shape for p in lax.split(x, (1, 2), axis=1)] == [(2, 1), (2, 2)]
    assert np.array_equal(lax.slice(x, (0, 1), (2, 3)), X[:, 1:])
    assert np.array_equal(lax.slice_in_dim(x, None, -1, axis=-1), X[:, :-1])
    assert np.array_equal(lax.slice_in_dim(x, -3, None, 2, axis=1), X[:, ::2])
    assert np.array_equal(lax.index_in_dim(x, -1, axis=1, keepdims=False), X[:, -1])


def test_constants() -> None:
    assert lax.iota("bfloat16", 3).dtype == ml_dtypes.bfloat16
    assert lax.broadcasted_iota("int32", (2, 2), 1).tolist() == [[0, 1], [0, 1]]
    assert lax.full((2,), 1).weak_type
    assert lax.full_like(1.0, 2).weak_type
    assert lax.full((2,), 1.7, "int32").tolist() == [1, 1]
    assert lax.full_like(jnp.ones((2, 2), "int8"), 3).dtype == np.int8
    assert lax.full_like(X, 3, "int8", (4,)).tolist() == [3, 3, 3, 3]
    assert grad(lambda v: lax.full((3,), v).sum())(1.0) == 3


def test_places_that_are_computed() -> None:
    x = jnp.arange(5)
    for make in (lambda i: i, jnp.asarray):
        assert lax.dynamic_slice(x, (make(1),), (2,)).tolist() == [1, 2]
        assert lax.dynamic_slice(x, (make(-1),), (2,)).tolist() == [3, 4]
        assert lax.dynamic_slice_in_dim(x, make(9), 2).tolist() == [3, 4]
        assert lax.dynamic_index_in_dim(x, make(-2), keepdims=False) == 3
        assert lax.dynamic_update_slice(x, jnp.asarray([7, 8]), (make(-2),)).tolist() == [0, 1, 2, 7, 8]
        assert lax.dynamic_update_slice_in_dim(x, jnp.asarray([7]), make(1), 0).tolist() == [0, 7, 2, 3, 4]
        assert lax.dynamic_update_index_in_dim(x, 7, make(1), 0).tolist() == [0, 7, 2, 3, 4]
    assert lax.dynamic_slice(jnp.asarray(X), jnp.asarray([1, 1]), (1, 2)).tolist() == X[1:, 1:].tolist()
    rows = vmap(lambda i: lax.dynamic_slice_in_dim(x, i, 2))(jnp.arange(-2, 2))
    assert rows.tolist() == [[3, 4], [3, 4], [0, 1], [1, 2]]


def test_gather_and_scatter() -> None:
    x, i, u = jnp.asarray(X[0]), jnp.asarray([[2], [0], [2]]), jnp.asarray(Y[0])
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    assert lax.gather(x, i, numbers, (1,)).tolist() == X[0][[2, 0, 2]].tolist()
    filled = lax.gather(x, i + 2, numbers, (1,), mode=lax.GatherScatterMode.FILL_OR_DROP, fill_value=-1)
    assert filled.tolist() == [-1, 2.5, -1]
    where = lax.ScatterDimensionNumbers((), (0,), (0,))
    for function, ufunc in (
        (lax.scatter_add, np.add), (lax.scatter_mul, np.multiply), (lax.scatter_min, np.minimum),
        (lax.scatter_max, np.maximum),
    ):  # fmt: skip
        expected = X[0].copy()
        ufunc.at(expected, [2, 0, 2], Y[0])
        assert function(x, i, u, where).tolist() == expected.tolist()
    assert lax.scatter(x, i[:2], u[:2], where).tolist() == [0.5, -1.5, 1.5]
    with pytest.raises(DtypeError, match="scatter_add takes operands of one dtype"):
        lax.scatter_add(x, i, jnp.arange(3), where)
    with pytest.raises(DtypeError, match="takes integers as indices"):
        lax.gather(x, u[:, None], numbers, (1,))


def test_reductions_and_orders() -> None:
    x, n = jnp.asarray(X), jnp.asarray(M)
    for name, operand, reference in (
        ("reduce_sum", n, np.add), ("reduce_prod", n, np.multiply), ("reduce_max", n, np.maximum),
        ("reduce_min", n, np.minimum), ("reduce_and", n, np.bitwise_and), ("reduce_or", n, np.bitwise_or),
        ("reduce_xor", n, np.bitwise_xor),
    ):  # fmt: skip
        assert getattr(lax, name)(operand, (1,)).tolist() == reference.reduce(M, axis=1).tolist()
        assert getattr(lax, name)(operand, axes=[0, 1]) == reference.reduce(M, axis=(0, 1))
    assert lax.argmax(x, -1, "int32").tolist() == X.argmax(1).tolist()
    assert lax.argmin(x, 0, "uint8").dtype == np.uint8
    for name, ufunc in (("cumsum", np.add), ("cumprod", np.multiply), ("cummax", np.maximum), ("cummin", np.minimum)):
        assert getattr(lax, name)(n, 1).tolist() == ufunc.accumulate(M, axis=1).tolist()
        assert (
            getattr(lax, name)(n, -1, reverse=True).tolist() == ufunc.accumulate(M[:, ::-1], axis=1)[:, ::-1].tolist()
        )
    np.testing.assert_allclose(lax.cumlogsumexp(x, 1), np.logaddexp.accumulate(X, axis=1), rtol=1e-6)
    assert lax.sort(x).tolist() == np.sort(X).tolist()
    keys, values = lax.sort_key_val(x, n)
    assert keys.tolist() == np.sort(X).tolist()
    assert values.tolist() == np.take_along_axis(M, X.argsort(), 1).tolist()
    values, positions = lax.top_k(x, 2, axis=0)
    assert (values.tolist(), positions.tolist()) == (np.sort(X, 0)[::-1].tolist(), X.argsort(0)[::-1].tolist())


def test_contractions() -> None:
    x, y = jnp.asarray(X), jnp.asarray(Y)
    np.testing.assert_allclose(lax.dot(x, y.T, precision=lax.Precision.HIGHEST), X @ Y.T, rtol=1e-6)
    numbers = (([0], [0]), ([], []))
    np.testing.assert_allclose(lax.dot(x, y, dimension_numbers=numbers), X.T @ Y, rtol=1e-6)
    np.testing.assert_allclose(lax.batch_matmul(x[None], y.T[None]), (X @ Y.T)[None], rtol=1e-6)
    wide = lax.dot_general(x.astype("bfloat16"), y, numbers, preferred_element_type="float32")
    assert wide.dtype == np.float32


def test_stop_gradient_of_a_tree() -> None:
    tree = {"a": jnp.asarray(X), "n": (jnp.asarray(N), 2.0)}
    stopped = lax.stop_gradient(tree)
    assert stopped["a"].tolist() == X.tolist()
    assert stopped["n"][0] is tree["n"][0]
    assert grad(lambda t: lax.stop_gradient({"x": t})["x"] * t)(3.0) == 3


def test_primitives_have_their_names() -> None:
    names = [name for name in dir(lax) if name.endswith("_p")]
    assert len(names) > 100
    for name in names:
        primitive = getattr(lax, name)
        assert isinstance(primitive, Primitive)
        assert name.startswith(primitive.name)
    assert make_jaxpr(lambda x: lax.add_p.bind(x, x))(1.0).eqns[0].primitive is lax.add_p


def test_import_does_not_wait_for_scipy_or_opt_einsum() -> None:
    late = "scipy", "opt_einsum", "optree", "jax", "logging", "fractions", "concurrent.futures"
    code = f"import sys, pullback.lax; print([m for m in {late} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_booleans_have_no_say_in_whether_a_result_is_weakly_typed() -> None:
    condition, weak, strong = jnp.asarray(True), lax.add(1.0, 2.0), jnp.float32(3)
    assert (weak.weak_type, strong.weak_type) == (True, False)
    for wrap in (lambda f: f, jit):
        for select in (lax.select, jnp.where):
            f = wrap(select)
            assert f(condition, weak, weak).weak_type
            assert not f(condition, weak, strong).weak_type
            assert (f(condition, weak, weak) * jnp.float16(1)).dtype == np.float16
