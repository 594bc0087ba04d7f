"""Sorting, searching and sets of ``pullback.numpy`` against NumPy, with derivatives where there are any."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback
import pullback.numpy as jnp
from pullback import grad, jit
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, ConcretizationTypeError, OperandError, ShapeError
from pullback.numpy import sorting
from tests.helpers import array, assert_same

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(4)
POINT = RNG.permutation(24).reshape(2, 3, 4) / 10 - 1.15

floats = st.lists(st.sampled_from([NAN, -INF, -1.5, -0.0, 0.0, 1.0, 2.5, INF]), max_size=12)
integers = st.lists(st.integers(-3, 3), max_size=12)
DTYPES = ["bool", "int8", "uint32", "float16", "float32", "float64", "complex64"]


same = partial(assert_same, dtypes=False)


def check_derivatives(f: Callable[[Any], Any], x: Any) -> None:
    """Derivatives against differences, in float64."""
    with enable_x64(True):
        pullback.test_util.check_grads(f, (as_array(np.asarray(x, float)),), 2)


# Sorting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sort_agrees_with_numpy(dtype: str, axis: Any) -> None:
    x = RNG.integers(0, 4, (3, 4, 2)).astype(dtype)
    with enable_x64(True):
        same(sorting.sort(as_array(x), axis), np.sort(x, axis))
        same(sorting.argsort(as_array(x), axis), np.argsort(x, axis, kind="stable"))
        down = sorting.argsort(as_array(x), axis, descending=True)
        flat, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        same(sorting.sort(as_array(x), axis, descending=True), np.take_along_axis(flat, np.asarray(down), along))
        same(sorting.sort(as_array(x), axis, stable=False), np.sort(x, axis))


@given(x=floats)
def test_sort_of_ugly_values(x: list[float]) -> None:
    v = np.array(x, "float32")
    for dtype in ("float32", ml_dtypes.bfloat16):
        out = sorting.sort(array(v, dtype))
        order = np.argsort(v, kind="stable")
        assert out.dtype == dtype
        same(np.asarray(out).astype("float32"), v[order])
        assert np.array_equal(np.signbit(np.asarray(out).astype("float32")), np.signbit(v[order]))
    down = np.asarray(sorting.argsort(array(v), descending=True))
    expected = np.argsort(np.where(np.isnan(v), -INF, -v), kind="stable")
    finite = np.isfinite(v[expected])
    assert np.array_equal(down[finite], expected[finite])


def test_argsort_dtypes_and_lexsort() -> None:
    assert sorting.argsort(array([2, 1])).dtype == np.int32
    assert sorting.argsort(array([2, 1]), dtype="int8").dtype == np.int8
    keys = RNG.integers(0, 3, (3, 20))
    same(sorting.lexsort([array(k, "int32") for k in keys]), np.lexsort(keys))
    same(sorting.lexsort(array(keys)), np.lexsort(keys))
    deep = RNG.integers(0, 2, (2, 4, 5))
    same(sorting.lexsort(array(deep), axis=0), np.lexsort(deep, axis=0))
    same(sorting.lexsort((array(1.0), array(2.0))), 0)
    same(sorting.sort_complex(array([[2, 1], [4, 3]])), np.array([[1, 2], [3, 4]], "complex64"))


def test_partitions_put_one_element_in_its_place() -> None:
    x = RNG.normal(size=(4, 7)).astype("float32")
    for kth in (0, 3, -1):
        out = np.asarray(sorting.partition(array(x), kth))
        same(out[:, kth], np.sort(x)[:, kth])
        order = np.asarray(sorting.argpartition(array(x), kth, axis=0 if kth == 0 else 1))
        assert sorted(order.reshape(-1)) == sorted(np.argsort(x, 0 if kth == 0 else 1).reshape(-1))
    with pytest.raises(ShapeError, match="partition: kth: axis 9 is out of bounds"):
        sorting.partition(array(x), 9)


@pytest.mark.slow
def test_derivatives() -> None:
    for axis in (None, 0, 1, -1):
        check_derivatives(lambda x, axis=axis: sorting.sort(sorting.ops.sin(x), axis, descending=axis == 0), POINT)
    check_derivatives(lambda x: sorting.partition(x, 1), POINT)
    check_derivatives(lambda x: sorting.unique(sorting.ops.square(x), size=24), POINT + 2)
    gradient = pullback.vmap(pullback.grad(lambda x: sorting.sort(x)[1]))(array([[3, 1, 2], [5, 4, 6]]))
    same(gradient, [[0, 0, 1], [1, 0, 0]])


def test_errors_of_sorting() -> None:
    x = array([1, 2])
    with pytest.raises(ArgumentError, match="sort: the argument kind is not supported; pass stable=True"):
        sorting.sort(x, kind="quicksort")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="argsort: the argument order is not supported"):
        sorting.argsort(x, order="f")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="sort: axis -1 is out of bounds for an array of 0 axes"):
        sorting.sort(array(1.0))
    with pytest.raises(ArgumentError, match="lexsort needs at least one key"):
        sorting.lexsort(())
    with pytest.raises(OperandError, match="sort: expected an array or a number, got 'a'"):
        sorting.sort("a")


# Searching ---------------------------------------------------------------------------------------------------------


@given(a=floats, v=floats, side=st.sampled_from(["left", "right"]))
def test_searchsorted(a: list[float], v: list[float], side: Any) -> None:
    x, values = np.sort(np.array(a, "float32")), np.array(v, "float32").reshape(1, -1)
    out = sorting.searchsorted(array(x), array(values), side)
    assert out.dtype == np.int32
    same(out, np.searchsorted(x, values, side))


def test_searchsorted_promotes_and_takes_a_sorter() -> None:
    same(sorting.searchsorted(array([1, 2, 3], "int32"), 1.5), 1)
    x = np.array([3, 1, 2], "float32")
    same(sorting.searchsorted(array(x), array([2.5]), sorter=array([1, 2, 0], "int32")), [2])
    batched = pullback.vmap(sorting.searchsorted, in_axes=(0, None))
    same(batched(array([[1, 2], [3, 4]]), array([2, 3])), [[1, 2], [0, 0]])
    for bad, match in (({"side": "up"}, "side must be"), ({"method": "magic"}, "method must be")):
        with pytest.raises(ArgumentError, match=match):
            sorting.searchsorted(array(x), 1.0, **bad)
    with pytest.raises(ShapeError, match=r"of one axis, got shape \(2, 2\)"):
        sorting.searchsorted(array(np.zeros((2, 2))), 1.0)


# Different values --------------------------------------------------------------------------------------------------


@given(x=st.one_of(floats, integers), equal_nan=st.booleans())
def test_unique_agrees_with_numpy(x: list[Any], equal_nan: bool) -> None:
    v = np.array(x, "float32")
    ours = sorting.unique(array(v), True, True, True, equal_nan=equal_nan)
    for actual, expected in zip(ours, np.unique(v, True, True, True, equal_nan=equal_nan), strict=True):
        same(actual, expected)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex64"])
def test_unique_slices(axis: Any, dtype: str) -> None:
    x = RNG.integers(0, 2, (4, 3, 2)).astype(dtype)
    ours = sorting.unique(array(x, dtype), True, True, True, axis)
    expected = np.unique(x, True, True, True, axis)
    for k, (actual, wanted) in enumerate(zip(ours, expected, strict=True)):
        same(actual, wanted.reshape(actual.shape) if k == 2 else wanted)


def test_unique_of_a_given_size() -> None:
    x = array([3, 1, 2, 1])
    values, index, inverse, counts = sorting.unique(x, True, True, True, size=5)
    same(values, [1, 2, 3, 1, 1])
    same(index, [1, 2, 0, 1, 1])
    same(inverse, [2, 0, 1, 0])
    same(counts, [2, 1, 1, 0, 0])
    same(sorting.unique(x, size=2), [1, 2])
    same(sorting.unique(x, size=5, fill_value=9), [1, 2, 3, 9, 9])
    same(sorting.unique(array([]), size=2, fill_value=3), [3, 3])
    same(pullback.vmap(lambda v: sorting.unique(v, size=2))(array([[1, 1], [2, 1]])), [[1, 1], [1, 2]])
    assert pullback.make_jaxpr(lambda v: sorting.unique(v, size=2))(x) is not None
    assert sorting.unique(array(np.zeros((3, 0))), axis=0).shape == (1, 0)
    with pytest.raises(ConcretizationTypeError, match="unique: the number of elements depends on traced values"):
        pullback.make_jaxpr(sorting.unique)(x)
    with pytest.raises(ArgumentError, match="so pass fill_value"):
        sorting.unique(array([]), size=2)
    with pytest.raises(ArgumentError, match="size must be a non-negative int, got -1"):
        sorting.unique(x, size=-1)


def test_unique_of_the_array_api() -> None:
    x = array([[1, NAN], [NAN, 1]])
    assert sorting.unique_values(x).shape == (3,)
    same(sorting.unique_counts(x).counts, [2, 1, 1])
    assert sorting.unique_inverse(x).inverse_indices.shape == (2, 2)
    out = sorting.unique_all(array([3, 1, 3]))
    for actual, expected in zip(out, np.unique_all([3, 1, 3]), strict=True):
        same(actual, expected)
    assert out._fields == ("values", "indices", "inverse_indices", "counts")


# Sets --------------------------------------------------------------------------------------------------------------


@given(x=integers, y=integers, unique=st.booleans())
def test_sets_agree_with_numpy(x: list[int], y: list[int], unique: bool) -> None:
    if unique:
        x, y = list(dict.fromkeys(x)), list(dict.fromkeys(y))
    a, b = np.array(x, "int32"), np.array(y, "int32")
    same(sorting.isin(as_array(a), as_array(b)), np.isin(a, b))
    same(sorting.isin(as_array(a), as_array(b), invert=True), np.isin(a, b, invert=True))
    same(sorting.union1d(as_array(a), as_array(b)), np.union1d(a, b))
    same(sorting.setdiff1d(as_array(a), as_array(b), unique), np.setdiff1d(a, b, unique))
    same(sorting.setxor1d(as_array(a), as_array(b), unique), np.setxor1d(a, b, unique))
    same(sorting.intersect1d(as_array(a), as_array(b), unique), np.intersect1d(a, b, unique))
    ours = sorting.intersect1d(as_array(a), as_array(b), unique, True)
    for actual, expected in zip(ours, np.intersect1d(a, b, unique, True), strict=True):
        same(actual, expected)


def test_sets_of_a_given_size() -> None:
    f, g = array([3, 1, 2, 1]), array([1, 9])
    same(sorting.setdiff1d(f, g, size=4), [2, 3, 0, 0])
    same(sorting.setdiff1d(f, g, size=1, fill_value=7), [2])
    same(sorting.union1d(f, g, size=6), [1, 2, 3, 9, 1, 1])
    same(sorting.setxor1d(f, g, size=5), [2, 3, 9, 2, 2])
    values, first, second = sorting.intersect1d(f, g, return_indices=True, size=3, fill_value=5)
    same(values, [1, 5, 5])
    same(first, [1, 4, 4])
    same(second, [0, 2, 2])
    with pytest.raises(ConcretizationTypeError, match="setdiff1d: the number of elements"):
        pullback.make_jaxpr(sorting.setdiff1d)(f, g)
    with pytest.raises(ArgumentError, match="isin: method must be"):
        sorting.isin(f, g, method="magic")
    same(sorting.isin(array([NAN, 1]), array([NAN, 1])), [False, True])
    same(sorting.isin(array([[1, 2]]), array([])), [[False, False]])


# The largest and the smallest elements -------------------------------------------------------------------------------


def test_top_k_has_the_figures_of_jax() -> None:
    x = jnp.array([jnp.nan, 1.0, 2.0, 0.0, -0.0])
    values, positions = jnp.top_k(x, 3)
    assert positions.tolist() == [0, 2, 1]
    assert np.isnan(values[0])
    assert positions.dtype == np.int32
    values, positions = jnp.top_k(x, 2, mode="smallest")
    assert values.tolist() == [0.0, 0.0]
    assert sorted(positions.tolist()) == [3, 4]
    assert jnp.top_k(jnp.array([3, 250], "uint8"), 1, mode="smallest")[0].tolist() == [3]
    assert jnp.top_k(jnp.array([1, 1, 0, 0]), 2, mode="smallest")[1].tolist() == [2, 3]  # the first of equal ones
    assert jnp.top_k(jnp.array([True, False]), 1, mode="smallest")[0].tolist() == [False]
    grid = jnp.arange(24).reshape(4, 6)
    assert jnp.top_k(grid, 1, axis=0)[1].tolist() == [[3] * 6]
    assert jit(lambda x: jnp.top_k(x, 2, mode="smallest"))(grid)[0].tolist() == grid[:, :2].tolist()
    assert grad(lambda x: jnp.top_k(x, 2, mode="smallest")[0].sum())(jnp.array([3.0, 1.0, 2.0])).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.top_k(jnp.array([1j]), 1), TypeError, "top_k takes real numbers or booleans, got c64"),
        (lambda: jnp.top_k(jnp.array([1j]), 1), ValueError, "top_k"),
        (lambda: jnp.top_k(jnp.arange(3), 4), ValueError, r"k must be from 0 to 3, the size of axis 0 .* got 4"),
        (lambda: jnp.top_k(jnp.arange(3), -1), ValueError, "got -1"),
        (lambda: jnp.top_k(jnp.arange(3), 1, mode="least"), ValueError, "mode must be 'largest' or 'smallest'"),
        (lambda: jnp.top_k(jnp.arange(3), 1, axis=1), ValueError, "axis"),
        (lambda: jit(jnp.top_k)(jnp.arange(3), 1), TypeError, "k"),
    ],
)
def test_top_k_says_what_it_refuses(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
