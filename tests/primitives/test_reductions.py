"""Reductions, cumulative operations and sorting as primitives: ugly values, derivatives where they are delicate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback
from pullback.backends.host import reductions as host_reductions
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import DtypeError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions as red
from pullback.primitives.arrays import sorting
from tests.helpers import assert_elements_close

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(7)


def array(x: Any, dtype: Any = "float64") -> Any:
    return as_array(np.asarray(x, dtype))


close = partial(assert_elements_close, rtol=1e-12, atol=1e-12, dtypes=False)


def check_derivatives(f: Callable[[Any], Any], x: Any, order: int = 2) -> None:
    """Both modes against differences and each other, and vmap over each axis against a loop, in float64."""
    with enable_x64(True):
        x = array(x, complex if np.iscomplexobj(x) else float)
        pullback.test_util.check_grads(f, (x,), order)
        v = array(RNG.normal(size=x.shape), x.dtype)
        y, tangent = pullback.jvp(f, (x,), (v,))
        u = array(RNG.normal(size=y.shape), y.dtype)
        (back,) = pullback.vjp(f, x)[1](u)
        close(np.sum(np.asarray(u) * np.asarray(tangent)), np.sum(np.asarray(back) * np.asarray(v)), rtol=1e-9)
        for axis in range(x.ndim + 1):
            batch = np.stack([np.asarray(x), np.asarray(x)[..., ::-1] * 0.5, np.asarray(x) + 1], axis)
            rows = [f(array(r, x.dtype)) for r in np.moveaxis(batch, axis, 0)]
            close(pullback.vmap(f, in_axes=axis)(array(batch, x.dtype)), np.stack([np.asarray(r) for r in rows]))


# Reductions --------------------------------------------------------------------------------------------------------

REDUCTIONS = {
    red.reduce_sum_p: np.add, red.reduce_prod_p: np.multiply, red.reduce_max_p: np.maximum,
    red.reduce_min_p: np.minimum,
}  # fmt: skip
DTYPES = ["int8", "uint8", "int32", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("p", REDUCTIONS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_all_sets_of_axes(p: Any, dtype: str) -> None:
    x = RNG.integers(-3, 4, (2, 3, 4)).astype(np.int8).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    wide = x.astype("complex128") if dtype == "complex64" else x.astype("int64")
    with enable_x64(True):
        for count in range(1, 4):
            for axes in combinations(range(3), count):
                out = p.bind(as_array(x), axes=axes)
                assert out.dtype == x.dtype
                # Products of integers wrap; those of bfloat16 are rounded once.
                expected = REDUCTIONS[p].reduce(wide, axes).astype(x.dtype)
                close(np.asarray(out).astype(complex), expected.astype(complex), rtol=1e-6)


@pytest.mark.parametrize(
    ("p", "empty"),
    [(red.reduce_sum_p, 0), (red.reduce_prod_p, 1), (red.reduce_max_p, -INF), (red.reduce_min_p, INF)],
    ids=str,
)
def test_reductions_of_nothing_give_their_identity(p: Any, empty: float) -> None:
    close(p.bind(array(np.zeros((0, 3)), "float32"), axes=(0,)), [empty] * 3)
    assert p.bind(array(np.zeros((0, 3)), "float32"), axes=(1,)).shape == (0,)
    gradient = pullback.grad(lambda x: red.reduce_sum(p.bind(x, axes=(0,)), (0,)))(array(np.zeros((0, 3)), "float32"))
    assert gradient.shape == (0, 3)


def test_extremes_of_each_dtype() -> None:
    assert red.extreme(np.dtype("int8"), largest=True) == 127
    assert red.extreme(np.dtype("uint8"), largest=False) == 0
    assert red.extreme(np.dtype("bool"), largest=True) == np.True_
    assert red.extreme(np.dtype("float16"), largest=False) == -INF
    assert red.extreme(np.dtype("complex64"), largest=True) == complex(INF, INF)
    largest = red.extreme(np.dtype(ml_dtypes.float8_e4m3fn), largest=True)
    assert float(largest) == 448
    assert largest.dtype == ml_dtypes.float8_e4m3fn


def test_nan_and_signed_values() -> None:
    x = array([[1, NAN, -INF], [-0.0, 2, INF]], "float32")
    close(red.reduce_max(x, (1,)), [NAN, INF])
    close(red.reduce_min(x, (0,)), [-0.0, NAN, -INF])
    close(red.argmax(x, 1, "int32"), [1, 2])
    close(red.argmin(array([3, 1, 1, 5], "float32"), 0, "int8"), 1)
    assert red.argmax(array([NAN, 1], ml_dtypes.bfloat16), 0, "int32").dtype == np.int32
    close(red.cummax(array([1, NAN, 0], "float32")), [1, NAN, NAN])
    close(red.cummin(array([1, NAN, 0], "float32"), reverse=True), [NAN, NAN, 0])
    close(red.cumlogsumexp(array([-INF, -INF, 0, INF, 1], "float32")), [-INF, -INF, 0, INF, INF])


def test_narrow_floats_are_accumulated_in_float32() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        ones = as_array(np.ones(3000, dtype))
        for out, expected in (
            (red.reduce_sum(ones, (0,)), 3000), (red.cumsum(ones), np.arange(1, 3001)),
            (red.reduce_prod(as_array(np.asarray([1e4, 1e4, 1e-4, 1e-4], dtype)), (0,)), None),
        ):  # fmt: skip
            assert out.dtype == dtype
            if expected is not None:
                close(np.asarray(out).astype(float), np.asarray(expected, np.float32).astype(dtype).astype(float))
            else:
                assert np.isfinite(np.asarray(out).astype(float))


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.transpose(2, 0, 1), lambda x: x[::2, :, ::-1]])
def test_sums_of_many_float32_are_accurate_along_every_axis(axes: tuple[int, ...], view: Any) -> None:
    x = view((np.random.default_rng(7).random((1301, 3, 30)) + 1).astype(np.float32))
    exact = x.astype(np.float64).sum(axes)
    error = np.abs(host_reductions.reduce_sum(x, axes=axes) - exact) / np.abs(exact)
    # In units of 2**-24, the rounding of one sum: at most 5.6 with 60 other seeds. One after another, as NumPy sums
    # along axes that are not contiguous, it is 16 to 60 where an axis is long.
    assert np.max(error) < 8 * 2.0**-24


def test_compiled_norms_of_many_float32() -> None:
    """They are squared in single precision, and again in double where a square that matters overflows or underflows."""
    x = np.random.default_rng(7).normal(size=(8, 5000)).astype(np.float32)
    sizes = np.array([1, 1e30, 1e-30, 0, 1e-18, 1e18, 1, 1], np.float32)[:, None]
    x *= sizes
    x[6, 70], x[7, 70] = INF, NAN
    of_rows = pullback.jit(lambda x: red.norm(x, (1,)))
    of_columns = pullback.jit(lambda x: red.norm(x, (0,)))
    of_all = pullback.jit(lambda x: red.norm(x, (0, 1)))
    wide = x.astype(np.float64)
    close(of_rows(as_array(x)), np.sqrt((wide**2).sum(1)), rtol=2e-7)
    for rows in (x[:6], x[:1], x[1:2], x[2:3], x[3:4], np.repeat(x[2:5], 4, 0), x[6:7], x[7:8]):
        exact = np.sqrt((rows.astype(np.float64) ** 2).sum())
        close(of_all(as_array(rows)), exact, rtol=2e-7, atol=0)
    close(of_columns(as_array(x[:5])), np.sqrt((wide[:5] ** 2).sum(0)), rtol=2e-7)
    text = of_rows.lower(as_array(x[:1])).as_text()
    assert "while" not in text, "a branch takes longer than the squares of few numbers"
    assert "while" in of_rows.lower(as_array(x)).as_text()


def test_long_cumulative_sums_are_accurate() -> None:
    x = RNG.random((100_000, 2)).astype(np.float32)
    exact = np.cumsum(x.astype(np.float64), 0)
    close(red.cumsum(as_array(x)), exact, rtol=1e-7)
    close(red.cumsum(as_array(x), reverse=True), np.cumsum(x[::-1].astype(np.float64), 0)[::-1], rtol=1e-7)


def test_errors_of_reductions() -> None:
    with pytest.raises(ShapeError, match=r"reduce_sum: \(2,\) are not distinct axes of an array of shape \(3,\)"):
        red.reduce_sum(array([1, 2, 3], "float32"), (2,))
    with pytest.raises(DtypeError, match="reduce_and takes integers or booleans, got f32"):
        red.reduce_and(array([1.0], "float32"), (0,))
    with pytest.raises(ShapeError, match=r"argmax: axis 0 of an array of shape \(0, 2\) is empty"):
        red.argmax(array(np.zeros((0, 2)), "float32"), 0, "int32")
    with pytest.raises(DtypeError, match="index_dtype must be an integer type, got f32"):
        pullback.make_jaxpr(lambda x: red.argmax(x, 0, "float32"))(array([1.0], "float32"))
    with pytest.raises(ShapeError, match=r"cumsum: axis 1 is out of bounds for an array of shape \(1,\)"):
        red.cumsum(array([1.0], "float32"), 1)


# Derivatives of reductions -----------------------------------------------------------------------------------------

POINT = RNG.permutation(24).reshape(2, 3, 4) / 10 - 1.15


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("p", REDUCTIONS, ids=str)
def test_derivatives_of_reductions(p: Any, axes: tuple[int, ...]) -> None:
    check_derivatives(lambda x: p.bind(ops.sin(x), axes=axes), POINT)


@pytest.mark.parametrize("zeros", [[], [1], [0, 3], [0, 1, 3]])
def test_products_with_zeros_to_the_third_order(zeros: list[int]) -> None:
    x = np.array([2.0, -3.0, 0.5, 1.5])
    x[zeros] = 0

    def explicit(x: Any) -> Any:
        parts = [red.reduce_sum(ops.mul(x, array(np.eye(4)[i])), (0,)) for i in range(4)]
        return ops.mul(ops.mul(parts[0], parts[1]), ops.mul(parts[2], parts[3]))

    def product(x: Any) -> Any:
        return red.reduce_prod(x, (0,))

    def last(x: Any) -> Any:
        return red.reduce_sum(ops.mul(red.cumprod(x), array([0.0, 0, 0, 1])), (0,))

    with enable_x64(True):
        for f in (product, last):
            close(f(array(x)), explicit(array(x)))
            close(pullback.grad(f)(array(x)), pullback.grad(explicit)(array(x)))
            close(pullback.hessian(f)(array(x)), pullback.hessian(explicit)(array(x)))
            third, expected = (pullback.jacfwd(pullback.hessian(g))(array(x)) for g in (f, explicit))
            close(third, expected)


def test_extremes_share_their_derivative_among_ties() -> None:
    x = array([[1, 3, 3, 3], [5, 5, 2, 1]], "float32")
    gradient = pullback.grad(lambda x: red.reduce_sum(red.reduce_max(x, (1,)), (0,)))
    close(gradient(x), [[0, 1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0, 0]], rtol=1e-6)
    close(pullback.grad(lambda x: red.reduce_min(x, (0, 1)))(x), [[0.5, 0, 0, 0], [0, 0, 0, 0.5]])
    close(gradient(array([[1, NAN], [1, 2]], "float32")), [[0, 1], [0, 1]])  # NaN wins
    close(pullback.jacrev(red.cummax)(array([1, 1, 0, 1], "float32")),
          [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3]], rtol=1e-6)  # fmt: skip


# Cumulative operations ---------------------------------------------------------------------------------------------

CUMULATIVE = [red.cumsum, red.cumprod, red.cummax, red.cummin, red.cumlogsumexp]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", CUMULATIVE, ids=lambda f: f.__name__)
def test_no_loop_of_a_compiled_program_holds_narrow_floats(f: Any, dtype: str) -> None:
    text = pullback.jit(partial(f, axis=1)).lower(pullback.ShapeDtypeStruct((200, 200), dtype)).as_text()
    states = [line for line in text.splitlines() if line.startswith("^bb") and "x" in line]  # of loops over arrays
    assert states
    assert not any("f16>" in line for line in states)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("f", CUMULATIVE, ids=lambda f: f.__name__)
def test_derivatives_of_cumulative_operations(f: Any, axis: int, reverse: bool) -> None:
    check_derivatives(lambda x: f(x, axis, reverse), POINT)


def test_cumulative_operations_of_one_and_of_no_elements() -> None:
    for f in CUMULATIVE:
        close(pullback.jacrev(f)(array([2.0], "float32")), [[1.0]])
        assert pullback.jacfwd(f)(array([], "float32")).shape == (0, 0)


def test_derivatives_of_products_with_zeros_and_of_infinite_logarithms() -> None:
    close(pullback.jacfwd(red.cumprod)(array([1, 0, 2, 0, 3], "float32")),
          [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])  # fmt: skip
    rows = np.asarray(pullback.jacrev(red.cumlogsumexp)(array([-INF, 0, 1000, -1000], "float32")))
    close(rows[1:], [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])


def test_complex_sums_and_products() -> None:
    z = POINT[0] + 1j * POINT[1]
    for f in (red.cumsum, red.cumprod):
        check_derivatives(lambda x, f=f: f(x, 1), z, order=1)
    for p in (red.reduce_sum_p, red.reduce_prod_p):
        check_derivatives(lambda x, p=p: p.bind(x, axes=(0,)), z, order=1)


@given(n=st.integers(1, 40), rest=st.sampled_from([(), (3,), (2, 0)]), reverse=st.booleans(), seed=st.integers(0, 99))
def test_linear_recurrences(n: int, rest: tuple[int, ...], reverse: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n, *rest))
    order = range(n - 1, -1, -1) if reverse else range(n)
    expected = np.zeros_like(b)
    previous: Any = 0
    for k in order:
        previous = expected[k] = a[k] * previous + b[k]
    close(host_reductions.linear_recurrence(a, b, axis=0, reverse=reverse), expected)


def test_long_linear_recurrences_run_in_blocks() -> None:
    a, b = RNG.normal(size=(2, 5003))
    expected = [b[0]]
    for k in range(1, len(b)):
        expected.append(a[k] * expected[-1] + b[k])
    close(host_reductions.linear_recurrence(a, b, axis=0, reverse=False), expected, rtol=1e-9, atol=1e-9)
    huge = np.full(5003, 1e15)
    huge[0] = 0
    assert not np.isnan(np.asarray(red.linear_recurrence(array(huge), array(np.zeros(5003)), 0))).any()


def test_derivatives_of_linear_recurrences() -> None:
    with enable_x64(True):
        one, all_ = array(POINT[:1]), array(POINT)
    for axis in (0, 1):
        check_derivatives(lambda x, axis=axis: red.linear_recurrence(ops.sin(x), ops.cos(x), axis), POINT[0])
        check_derivatives(lambda x, axis=axis: red.linear_recurrence(x, one, axis + 1, True), POINT)
        check_derivatives(lambda x, axis=axis: red.linear_recurrence(all_, x, axis + 1), POINT[:1])


# Sorting -----------------------------------------------------------------------------------------------------------


def test_sort_orders_zeros_nan_and_complex_numbers_as_the_compiled_backend() -> None:
    (out,) = sorting.sort([array([1, NAN, -0.0, 0.0, -0.0, INF], "float32")], 0)
    close(out, [-0.0, 0.0, -0.0, 1, INF, NAN])
    assert list(np.signbit(np.asarray(out))[:3]) == [True, False, True]
    z = array([1 + 1j, complex(NAN, 0), complex(1, NAN), 1 - 1j, 2], "complex64")
    close(sorting.sort([z], 0)[0], [1 - 1j, 1 + 1j, complex(1, NAN), 2, complex(NAN, 0)])


def test_sort_by_several_keys() -> None:
    a, b, c = array([2, 1, 2, 1], "float32"), array([1, 4, 0, 3], "int32"), array([9, 8, 7, 6], "float32")
    outs = sorting.sort([a, b, c], 0, num_keys=2)
    assert [list(np.asarray(o)) for o in outs] == [[1, 1, 2, 2], [3, 4, 0, 1], [6, 8, 7, 9]]
    stable = sorting.sort([a, b], 0)[1]
    assert list(np.asarray(stable)) == [4, 3, 1, 0]
    with pytest.raises(ShapeError, match="num_keys=3 must be from 1 to the number of operands, 2"):
        pullback.make_jaxpr(lambda x, y: sorting.sort([x, y], 0, num_keys=3))(a, b)
    with pytest.raises(ShapeError, match=r"operands of one shape, got \(4,\), \(1,\)"):
        pullback.make_jaxpr(lambda x, y: sorting.sort([x, y], 0))(a, array([1.0], "float32"))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "uint64", "int64", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_top_k(dtype: str, axis: int) -> None:
    with enable_x64(True):
        info = [np.iinfo(dtype).min, np.iinfo(dtype).max] if np.dtype(dtype).kind in "iu" else [0, 1]
        x = RNG.choice(np.array([*info, 3, 5], dtype), (6, 5))
        for k in range(x.shape[axis] + 1):
            values, indices = sorting.top_k(as_array(x), k, axis)
            order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
            expected = np.take(x.shape[axis] - 1 - order, range(k), axis)
            assert np.array_equal(np.asarray(indices), expected)
            assert np.array_equal(np.asarray(values), np.take_along_axis(x, expected, axis))


def test_top_k_of_ugly_values() -> None:
    values, indices = sorting.top_k(array([1, NAN, -0.0, 0.0, INF, -NAN], ml_dtypes.bfloat16), 5, 0)
    assert list(np.asarray(indices)) == [1, 4, 0, 3, 2]
    assert values.dtype == ml_dtypes.bfloat16
    with pytest.raises(ShapeError, match="k=5 must be from 0 to 4"):
        pullback.make_jaxpr(lambda x: sorting.top_k(x, 5, 0))(array([1, 2, 3, 4], "float32"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_derivatives_of_sorting(axis: int) -> None:
    check_derivatives(lambda x: sorting.sort([x], axis)[0], POINT)
    check_derivatives(lambda x: sorting.sort([ops.sin(x), ops.cos(x)], axis)[1], POINT)
    check_derivatives(lambda x: sorting.top_k(ops.sin(x), 2, axis)[0], POINT)


def test_taking_and_adding_along_an_axis_broadcast() -> None:
    x, i = POINT, np.array([[[2], [0], [2]]])
    close(sorting.take_along_axis(array(x), as_array(i), 2), np.take_along_axis(x, np.broadcast_to(i, (2, 3, 1)), 2),
          rtol=1e-6)  # fmt: skip
    check_derivatives(lambda x: sorting.take_along_axis(ops.sin(x), as_array(i), 2), POINT)
    check_derivatives(lambda x: sorting.take_along_axis(x, as_array(np.tile(i, (2, 1, 1))), 2), POINT[:1])
    check_derivatives(lambda x: sorting.add_along_axis(ops.sin(x), as_array(i), 2, 5), POINT[:, :, :1])
    check_derivatives(lambda x: sorting.add_along_axis(x, as_array(np.tile(i, (2, 1, 2))), 2, 5), POINT[:1, :, :2])
    out = sorting.add_along_axis(array([1, 2, 3], "float32"), array([1, 1, 0], "int32"), 0, 4)
    close(out, [3, 3, 0, 0])
    with pytest.raises(ShapeError, match="take_along_axis"):
        pullback.make_jaxpr(partial(sorting.take_along_axis, axis=0))(array(x), array([1], "int32"))


def test_searching_is_batched_over_either_operand() -> None:
    rows = np.sort(POINT[0], -1).astype("float32")
    values = POINT[1].astype("float32")
    for a, v, axes in ((rows, values, (0, 0)), (rows[0], values, (None, 0)), (rows, values[0], (0, None)),
                       (rows[0], values.T, (None, 1))):  # fmt: skip
        for side in ("left", "right"):
            f = partial(sorting.searchsorted, side=side, index_dtype="int32")
            out = pullback.vmap(f, in_axes=axes)(as_array(a), as_array(v))
            at = [
                (a if axes[0] is None else a[k], v[k] if axes[1] == 0 else v[:, k] if axes[1] else v) for k in range(3)
            ]
            close(out, [np.searchsorted(p, q, side) for p, q in at])


@pytest.mark.parametrize("shape", [(100, 399), (200, 300), (300, 129), (300, 300)], ids=str)
def test_compiled_sums_of_products_beside_their_factors(shape: tuple[int, int]) -> None:
    """Which the compiler's library gets wrong where a factor is one that is repeated."""
    x, v = (RNG.normal(size=s).astype(np.float32) for s in (shape, shape[1:]))
    pnp = pullback.numpy
    for f in (
        lambda x, v: x - pnp.sum(v * x, axis=1, keepdims=True),
        lambda x, v: x - pnp.sum(pnp.broadcast_to(v, x.shape) * pnp.exp(x), axis=1, keepdims=True),
        lambda x, v: v + pnp.mean(pnp.sin(v) * x, axis=1, keepdims=True),
        lambda x, v: x - pnp.sum(pnp.exp(pnp.broadcast_to(v, x.shape)) * x, axis=1, keepdims=True),
        lambda x, v: x - pullback.vmap(lambda row: pnp.sum(v * row))(x)[:, None],
        lambda x, v: x - pnp.sum((pnp.ones_like(x) + v) * (x * pnp.sum(x, 1, keepdims=True)), axis=1, keepdims=True),
        lambda x, v: x - pnp.sum(pnp.where(v > 0, v, 0) * (v * x[:, :1] * pnp.exp(v)), axis=1, keepdims=True),
        # of these the library computes some
        lambda x, v: x - pnp.sum(x[:, :1] * x, axis=1, keepdims=True),
        lambda x, v: pullback.vjp(lambda x: pnp.var(x, axis=1), x)[1](x[:, 0])[0],
        lambda x, v: pullback.vjp(lambda x: x / pnp.sqrt(pnp.mean(x**2, 1, keepdims=True)), x)[1](x + v)[0],
    ):
        close(pullback.jit(f)(x, v), f(as_array(x), as_array(v)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("size", [10, 10_000])
def test_extremes_of_narrow_integers_have_their_dtype(size: int) -> None:
    pnp = pullback.numpy
    for dtype in (pnp.int4, pnp.uint4, pnp.int8):
        x = (pnp.arange(size) % 5).astype(dtype)
        for out, value in ((x.max(), 4), (x.min(), 0)):
            assert (out.dtype, int(out)) == (x.dtype, value)
