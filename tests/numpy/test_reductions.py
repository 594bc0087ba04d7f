"""Reductions and statistics of ``pullback.numpy`` against NumPy, with their derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
import pullback.numpy as jnp
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, ConcretizationTypeError, DtypeError, OperandError, ShapeError
from pullback.numpy import histograms as bins
from pullback.numpy import reductions as red
from pullback.numpy import statistics as stats
from tests.helpers import array, assert_elements_close, chosen

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(3)


@contextmanager
def quiet() -> Iterator[None]:
    """NumPy warns of NaN and of empty slices; the functions under test do not."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def assert_numbers(actual: Any, expected: Any, rtol: float = 1e-6) -> None:
    """Assert that numbers are close, whatever their dtypes."""
    assert_elements_close(np.asarray(actual).astype(complex), np.asarray(expected).astype(complex), rtol)


def check_derivatives(f: Callable[[Any], Any], x: Any, order: int = 2) -> None:
    """Derivatives against differences, and vmap over each axis against a loop, in float64."""
    with enable_x64(True):
        x = np.asarray(x, float)
        pullback.test_util.check_grads(f, (as_array(x),), order)
        for axis in range(x.ndim + 1):
            batch = np.stack([x, x[..., ::-1] * 0.5], axis)
            rows = [np.asarray(f(as_array(r))) for r in np.moveaxis(batch, axis, 0)]
            assert_numbers(pullback.vmap(f, in_axes=axis)(as_array(batch)), np.stack(rows), rtol=1e-12)


# Against NumPy -----------------------------------------------------------------------------------------------------

ARITHMETIC = ["sum", "prod", "mean", "var", "std", "nansum", "nanprod", "nanmean", "nanvar", "nanstd"]
ORDER = ["max", "min", "nanmax", "nanmin", "ptp"]
TRUTH = ["all", "any", "count_nonzero"]
AXES = [None, 0, -1, (0, 2), (-1, 1), ()]


def sample(dtype: Any, seed: int, ugly: bool) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, (2, 3, 4)).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -3, 4, (2, 3, 4)).astype(dtype)
    x = rng.normal(size=(2, 3, 4))
    if ugly:
        x.flat[rng.integers(0, 24, 5)] = [NAN, INF, -0.0, 0.0, NAN]
    return (x + 1j * rng.normal(size=x.shape) if dtype.kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("name", ARITHMETIC + ORDER + TRUTH)
@given(
    dtype=st.sampled_from(["bool", "int8", "uint16", "int32", "float32", "float64", "complex64"]),
    axis=st.sampled_from(AXES), keepdims=st.booleans(), seed=st.integers(0, 99), ugly=st.booleans(),
)  # fmt: skip
def test_reductions_agree_with_numpy(name: str, dtype: str, axis: Any, keepdims: bool, seed: int, ugly: bool) -> None:
    x = sample(dtype, seed, ugly and dtype != "complex64")
    if name == "ptp" and dtype in ("bool", "complex64"):
        return
    with enable_x64(True), quiet():
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        actual = getattr(red, name)(as_array(x), axis=axis, keepdims=keepdims)
    assert_numbers(actual, expected, rtol=1e-5)
    if name not in ("mean", "var", "std", "nanmean", "nanvar", "nanstd") or np.dtype(dtype).kind in "fc":
        assert actual.dtype == np.asarray(expected).dtype


@pytest.mark.parametrize(
    ("name", "dtype", "narrow", "wide"),
    [
        ("sum", "bool", "int32", "int64"), ("sum", "int8", "int32", "int64"), ("sum", "uint8", "uint32", "uint64"),
        ("sum", "uint32", "uint32", "uint64"), ("prod", "int16", "int32", "int64"),
        ("sum", "float16", "float16", "float16"),
        ("cumsum", "int8", "int8", "int8"), ("cumsum", "bool", "int32", "int64"), ("max", "int8", "int8", "int8"),
        ("mean", "int32", "float32", "float32"), ("mean", "bool", "float32", "float32"),
        ("mean", "float16", "float16", "float16"), ("var", "complex64", "float32", "float32"),
        ("var", "int8", "float32", "float32"), ("argmax", "float32", "int32", "int64"),
        ("count_nonzero", "float32", "int32", "int64"), ("any", "float32", "bool", "bool"),
        ("nansum", "int8", "int32", "int64"),
    ],
)  # fmt: skip
def test_dtypes_of_results(name: str, dtype: str, narrow: str, wide: str) -> None:
    for x64, expected in ((False, narrow), (True, wide)):
        with enable_x64(x64):
            assert getattr(red, name)(array([1, 0, 1], dtype)).dtype == expected


def test_results_are_strongly_typed() -> None:
    for name in [*ARITHMETIC, *ORDER, "cumsum", "cumprod", "nancumsum"]:
        assert not getattr(red, name)(2.0).weak_type, name
    assert red.sum(array([1], "int8"), promote_integers=False).dtype == np.int8
    assert red.sum(array([1.7]), dtype=int).dtype == np.int32
    assert red.mean(array([1, 2], ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_means_of_narrow_floats_do_not_overflow() -> None:
    x = array(np.full(100, 60000), "float16")
    assert_numbers(red.mean(x), 60000, rtol=1e-3)
    assert_numbers(red.std(x), 0)
    assert np.isinf(np.asarray(red.sum(x)))


@given(axis=st.sampled_from(AXES), seed=st.integers(0, 99), initial=st.sampled_from([None, 2.5, -1]))
def test_where_and_initial(axis: Any, seed: int, initial: Any) -> None:
    x = sample("float64", seed, False)
    mask = np.random.default_rng(seed).integers(0, 2, (3, 1)).astype(bool)
    with enable_x64(True), quiet():
        for name in ("sum", "prod", "max", "min"):
            first = 0 if initial is None and name in ("max", "min") else initial
            options = {} if first is None else {"initial": first}
            expected = getattr(np, name)(x, axis=axis, where=mask, **options)
            assert_numbers(getattr(red, name)(as_array(x), axis=axis, where=as_array(mask), **options), expected)
        for name in ("mean", "var", "std", "all", "any", "nanmean", "nanvar"):
            expected = getattr(np, name)(x, axis=axis, where=mask)
            assert_numbers(getattr(red, name)(as_array(x), axis=axis, where=as_array(mask)), expected)


def test_degrees_of_freedom_and_a_known_mean() -> None:
    x = RNG.normal(size=(3, 5)).astype("float32")
    assert_numbers(red.var(array(x), 1, ddof=2), x.var(1, ddof=2))
    assert_numbers(red.std(array(x), 1, correction=1), x.std(1, ddof=1))
    assert_numbers(red.var(array(x), 1, mean=array(x.mean(1, keepdims=True))), x.var(1))
    assert np.isnan(np.asarray(red.var(array([1, 2, 3]), ddof=3)))
    assert np.isnan(np.asarray(red.mean(array([]))))
    with pytest.raises(ArgumentError, match="pass either ddof or correction"):
        red.var(array(x), ddof=1, correction=1)
    with pytest.raises(ArgumentError, match="complex numbers in a real dtype"):
        red.var(array([1j], "complex64"), dtype="float32")


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex64"])
def test_partial_results_agree_with_numpy(name: str, axis: Any, dtype: str) -> None:
    x = sample(dtype, 5, dtype == "float32")
    with quiet():
        expected = getattr(np, name)(x, axis=axis)
    assert_numbers(getattr(red, name)(array(x, dtype), axis=axis), expected, rtol=1e-5)


def test_cumulative_sum_and_prod() -> None:
    x = RNG.integers(1, 4, (2, 3)).astype("int8")
    assert_numbers(red.cumulative_sum(array(x, "int8"), axis=1, include_initial=True), [[0, *np.cumsum(r)] for r in x])
    assert_numbers(
        red.cumulative_prod(array(x, "int8"), axis=-1, include_initial=True), [[1, *np.cumprod(r)] for r in x]
    )
    assert red.cumulative_sum(array(x, "int8"), axis=0).dtype == np.int32
    for bad in (array(x), array(1.0)):
        with pytest.raises(ShapeError, match="takes an array of one axis"):
            red.cumulative_sum(bad)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions_of_extremes(name: str, axis: Any, keepdims: bool) -> None:
    x = RNG.integers(0, 3, (4, 5)).astype("float32")
    if not name.startswith("nan"):
        x[1, 2:4] = NAN
    assert_numbers(
        getattr(red, name)(array(x), axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims)
    )


def test_all_nan() -> None:
    x = array([[NAN, NAN], [1, NAN]])
    assert_numbers(red.nanargmax(x, axis=1), [-1, 0])
    assert_numbers(red.nanmax(x, axis=1), [NAN, 1])
    assert_numbers(red.nanmin(x, axis=1, initial=5), [5, 1])
    assert_numbers(red.nansum(x, axis=1), [0, 1])
    assert_numbers(red.nanmean(x, axis=1), [NAN, 1])
    assert_numbers(red.nanvar(x, axis=1, ddof=1), [NAN, NAN])


# Errors ------------------------------------------------------------------------------------------------------------


def test_errors() -> None:
    x = array([[1, 2], [3, 4]])
    with pytest.raises(NotImplementedError, match="sum: the argument out is not supported"):
        red.sum(x, out=np.zeros(()))
    with pytest.raises(ShapeError, match="sum: axis 2 is out of bounds for an array of 2 axes"):
        red.sum(x, axis=2)
    with pytest.raises(ShapeError, match=r"max: duplicate axes in \(0, -2\)"):
        red.max(x, axis=(0, -2))
    with pytest.raises(ShapeError, match=r"an axis must be an int, got 1\.0 of type float"):
        red.sum(x, axis=1.0)
    with pytest.raises(OperandError, match="sum: expected an array or a number, got None of type NoneType"):
        red.sum(None)
    with pytest.raises(OperandError, match=r"mean: expected an array or a number, got \[1, 2\] of type list"):
        red.mean([1, 2])
    with pytest.raises(ShapeError, match=r"max: an array of shape \(0, 3\) has no elements to compare along \(0,\)"):
        red.max(array(np.zeros((0, 3))), axis=0)
    with pytest.raises(ShapeError, match=r"argmax: an array of shape .* has no elements"):
        red.argmax(array([]))
    with pytest.raises(DtypeError, match="argmax takes real numbers or booleans, got c64"):
        red.argmax(array([1j], "complex64"))
    with pytest.raises(ArgumentError, match="min: where needs initial"):
        red.min(x, where=x)
    with pytest.raises(ShapeError, match=r"where, of shape \(2, 2, 2\), does not broadcast"):
        red.sum(x, where=array(np.ones((2, 2, 2)), bool))
    with pytest.raises(ShapeError, match=r"initial must be a scalar, got shape \(2,\)"):
        red.sum(x, initial=array([1, 2]))
    with pytest.raises(TypeError, match="no-such-type"):
        red.sum(x, dtype="no-such-type")
    assert red.max(array(np.zeros((0, 3))), axis=1).shape == (0,)


# Derivatives -------------------------------------------------------------------------------------------------------

POINT = RNG.permutation(12).reshape(3, 4) / 6 - 0.9


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
@pytest.mark.parametrize("name", [*ARITHMETIC, *ORDER])
def test_derivatives(name: str, axis: Any) -> None:
    check_derivatives(lambda x: getattr(red, name)(x, axis=axis), POINT)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
def test_derivatives_beside_nan(name: str) -> None:
    x = np.where(np.eye(3, 4) == 1, NAN, POINT)
    jacobian = np.asarray(pullback.jacrev(getattr(red, name))(array(x)))
    assert np.isfinite(jacobian).all()
    assert (jacobian[np.isnan(x)] == 0).all()
    check_derivatives(lambda v: getattr(red, name)(red.ops.where(as_array(np.isnan(x)), NAN, v)), POINT, order=1)


def test_derivatives_of_masked_moments_and_partial_results() -> None:
    mask = as_array(POINT > -0.3)
    check_derivatives(lambda x: red.var(x, 1, where=mask, ddof=1), POINT)
    check_derivatives(lambda x: red.max(x, 1, where=mask, initial=-5), POINT)
    check_derivatives(lambda x: red.cumprod(red.cumsum(x, 1), 0), POINT)
    check_derivatives(lambda x: red.cumulative_prod(x, axis=0, include_initial=True), POINT)


# Statistics --------------------------------------------------------------------------------------------------------

METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
]  # fmt: skip
INTERPOLATING = set(METHODS) - {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"}


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=chosen(15, 50))
@given(
    axis=st.sampled_from([None, 0, (0, 2), -1]), q=st.sampled_from([0.0, 0.3, 0.5, 1.0, [0.1, 0.9]]),
    keepdims=st.booleans(), seed=st.integers(0, 99), ugly=st.booleans(),
)  # fmt: skip
def test_quantiles(method: str, axis: Any, q: Any, keepdims: bool, seed: int, ugly: bool) -> None:
    x = sample("float64", seed, ugly and method != "inverted_cdf")
    with enable_x64(True), quiet():
        for name in ("quantile", "nanquantile"):
            expected = getattr(np, name)(x, q, axis=axis, method=method, keepdims=keepdims)
            if not np.isinf(x).any() or method not in INTERPOLATING:
                actual = getattr(stats, name)(as_array(x), np.asarray(q), axis=axis, method=method, keepdims=keepdims)
                assert_numbers(actual, expected)
        assert_numbers(stats.percentile(as_array(x), 100 * np.asarray(q), axis=axis),
                       stats.quantile(as_array(x), np.asarray(q), axis=axis))  # fmt: skip
        for name in ("median", "nanmedian"):
            expected = getattr(np, name)(x, axis, keepdims=keepdims)
            assert_numbers(getattr(stats, name)(as_array(x), axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_at_their_jumps(method: str) -> None:
    """Sizes, ties, and parts at, just before and just after the places where a method goes to another element."""
    with enable_x64(True):
        for n in range(1, 13):
            x = np.round(np.random.default_rng(n).normal(size=n), 1)
            parts = np.unique(
                np.clip([(k + d) / n + e for k in range(n + 1) for d in (0, 0.5) for e in (0, 1e-6, -1e-6)], 0, 1)
            )
            expected = np.quantile(x, parts, method=method)
            found = stats.quantile(as_array(x), parts, method=method)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=f"{n}")
            with_nan = np.insert(x, n // 2, np.nan)
            np.testing.assert_allclose(
                stats.nanpercentile(as_array(with_nan), 100 * parts, method=method),
                np.nanpercentile(with_nan, 100 * parts, method=method), rtol=1e-12, atol=1e-12,
            )  # fmt: skip
        batch = np.random.default_rng(0).normal(size=(3, 7))
        one = lambda x: stats.quantile(x, 0.3, method=method)
        expected = np.quantile(batch, 0.3, axis=1, method=method)
        np.testing.assert_allclose(pullback.jit(pullback.vmap(one))(batch), expected, rtol=1e-12)


def test_quantiles_beside_infinity_and_of_narrow_dtypes() -> None:
    assert_numbers(stats.quantile(array([INF, INF, 1]), 1.0), INF)
    assert_numbers(stats.quantile(array([1, 2, INF]), 0.5), 2)
    assert stats.median(array([1, 2, 4], "float16")).dtype == np.float16
    assert stats.median(array([1, 2, 4], "int32")).dtype == np.float32
    weights = RNG.integers(1, 4, 4)
    assert_numbers(stats.quantile(array(POINT), 0.4, axis=1, method="inverted_cdf", weights=array(weights)),
                   np.quantile(POINT, 0.4, axis=1, method="inverted_cdf", weights=weights))  # fmt: skip
    assert_numbers(stats.nanpercentile(array([NAN, 1, 2]), 50), 1.5)


@pytest.mark.slow
def test_derivatives_of_quantiles() -> None:
    for method in METHODS:
        check_derivatives(lambda x, method=method: stats.quantile(x, 0.3, axis=1, method=method), POINT)
    check_derivatives(lambda x: stats.median(x, axis=(0, 1)), POINT)
    with enable_x64(True):
        slope = pullback.grad(lambda q: stats.quantile(array([1, 2, 5], float), q))(0.8)
        assert_numbers(slope, 6.0)


def test_errors_of_quantiles() -> None:
    x = array([1, 2, 3])
    with pytest.raises(ArgumentError, match=r"method must be one of linear, lower.*, got 'cubic'"):
        stats.quantile(x, 0.5, method="cubic")
    with pytest.raises(ShapeError, match="q must be a number or an array of one axis"):
        stats.quantile(x, array([[0.5]]))
    with pytest.raises(ArgumentError, match="median takes real numbers"):
        stats.median(array([1j], "complex64"))
    with pytest.raises(ShapeError, match=r"median: an array of shape \(0,\) has no elements"):
        stats.median(array([]))
    with pytest.raises(NotImplementedError, match="only the method inverted_cdf takes weights"):
        stats.quantile(x, 0.5, weights=x)


def test_average() -> None:
    w = RNG.random(4)
    assert_numbers(stats.average(array(POINT), 1, array(w)), np.average(POINT, 1, w))
    assert_numbers(
        stats.average(array(POINT), weights=array(POINT**2), keepdims=True), [[np.average(POINT, weights=POINT**2)]]
    )
    mean, total = stats.average(array([1, 2], "int8"), returned=True)
    assert_numbers(mean, 1.5)
    assert_numbers(total, 2)
    check_derivatives(lambda x: stats.average(x, weights=red.ops.square(x)), POINT)
    for axis, match in ((None, "need axis"), (1, "do not fit axis 1")):
        with pytest.raises(ShapeError, match=match):
            stats.average(array(POINT), axis, array([1, 2]))


def test_covariance() -> None:
    y, f, a = RNG.normal(size=(2, 4)), np.array([1, 2, 1, 3]), RNG.random(4)
    with enable_x64(True):
        x = as_array(POINT)
        both = {"fweights": f, "aweights": a}
        for options in ({}, {"bias": True}, {"ddof": 0}, {"fweights": f}, {"aweights": a}, both):
            assert_numbers(stats.cov(x, **options), np.cov(POINT, **options))
        assert_numbers(stats.cov(x, as_array(y)), np.cov(POINT, y))
        assert_numbers(stats.cov(x, rowvar=False), np.cov(POINT, rowvar=False))
        assert_numbers(stats.cov(x[0]), np.cov(POINT[0]))
        z = POINT + 1j * POINT[::-1]
        assert_numbers(stats.cov(as_array(z)), np.cov(z))
        assert_numbers(stats.corrcoef(as_array(z)), np.corrcoef(z))
        assert_numbers(stats.corrcoef(x, as_array(y)), np.corrcoef(POINT, y))
    check_derivatives(stats.cov, POINT)
    with pytest.raises(DtypeError, match="fweights must be integers"):
        stats.cov(array(POINT), fweights=array(a))
    with pytest.raises(ShapeError, match=r"aweights must have shape \(4,\)"):
        stats.cov(array(POINT), aweights=array([1, 2]))
    with pytest.raises(ShapeError, match="m must have at most two axes"):
        stats.cov(array(np.zeros((1, 1, 1))))


def test_differences_and_integrals() -> None:
    x = np.cumsum(RNG.random(4)) + 0.5
    for n, axis in ((0, 0), (1, 0), (2, 1), (5, 1)):
        assert_numbers(stats.diff(array(POINT), n, axis), np.diff(POINT, n, axis))
    assert_numbers(stats.diff(array([True, False, False], bool)), [True, False])
    expected = np.diff(POINT, axis=0, prepend=0, append=POINT)
    assert_numbers(stats.diff(array(POINT), axis=0, prepend=0, append=array(POINT)), expected)
    assert_numbers(stats.ediff1d(array(POINT), to_end=array([1, 2]), to_begin=0), np.ediff1d(POINT, [1, 2], 0))
    assert_numbers(stats.trapezoid(array(POINT), array(x)), np.trapezoid(POINT, x))
    assert_numbers(stats.trapezoid(array(POINT), dx=0.5, axis=0), np.trapezoid(POINT, dx=0.5, axis=0))
    assert_numbers(stats.trapezoid(array(POINT), array(POINT**3), axis=0), np.trapezoid(POINT, POINT**3, axis=0))
    check_derivatives(lambda v: stats.trapezoid(v, red.ops.sin(v), axis=0), POINT)
    check_derivatives(lambda v: stats.diff(v, 2, append=1.0), POINT)
    with pytest.raises(ShapeError, match="diff takes an array of at least one axis"):
        stats.diff(array(1.0))
    with pytest.raises(ArgumentError, match="n must not be negative, got -1"):
        stats.diff(array([1.0]), -1)


def test_histograms() -> None:
    x, w = RNG.normal(size=50), RNG.random(50)
    for options in ({}, {"bins": 7}, {"range": (-0.5, 1.0)}, {"bins": np.array([-1.0, 0, 0.2, 3])}, {"density": True},
                    {"weights": w}, {"weights": w, "density": True, "bins": 3}):  # fmt: skip
        with enable_x64(True):
            ours = {k: as_array(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
            for actual, expected in zip(bins.histogram(as_array(x), **ours), np.histogram(x, **options), strict=True):
                assert_numbers(actual, expected, rtol=1e-10)
    assert_numbers(bins.histogram(array([2, 2, 2]), bins=4)[1], np.histogram([2, 2, 2], bins=4)[1])
    check_derivatives(lambda v: bins.histogram(as_array(POINT.reshape(-1)), bins=3, weights=v)[0], w[:12])
    with pytest.raises(ShapeError, match="weights of shape"):
        bins.histogram(array(x), weights=array([1.0]))


def test_bincount_and_digitize() -> None:
    i = RNG.integers(0, 5, 20)
    assert_numbers(bins.bincount(array(i, "int32")), np.bincount(i))
    assert_numbers(bins.bincount(array(i, "int32"), array(i / 2), minlength=9), np.bincount(i, i / 2, 9))
    assert_numbers(bins.bincount(array([-3, 0, 7, 1], "int32"), length=3), [2, 1, 0])
    assert_numbers(bins.bincount(array([], "int32"), minlength=2), [0, 0])
    assert_numbers(
        pullback.vmap(lambda v: bins.bincount(v, length=3))(array([[0, 0], [2, 5]], "int32")),
        [[2, 0, 0], [0, 0, 1]],
    )
    with pytest.raises(ConcretizationTypeError):
        pullback.make_jaxpr(bins.bincount)(array(i, "int32"))
    with pytest.raises(DtypeError, match="bincount takes integers, got f32"):
        bins.bincount(array([1.0]))
    with pytest.raises(ShapeError, match="one axis"):
        bins.bincount(array([[1]], "int32"))
    edges = np.array([-0.5, 0.0, 0.5], "float32")
    for right in (False, True):
        for own in (edges, edges[::-1], edges[:0]):
            assert_numbers(
                bins.digitize(array(POINT), array(own), right), np.digitize(POINT.astype("float32"), own, right)
            )
    assert_numbers(bins.digitize(array(edges), array(edges), right=True), [0, 1, 2])


def test_minmax_is_both_with_bounds_for_each() -> None:
    x = jnp.array([[2, 5, 1, 6], [3, -7, -2, 4]])
    assert [y.tolist() for y in jnp.minmax(x)] == [-7, 6]
    assert [y.tolist() for y in jnp.minmax(x, axis=0, keepdims=True)] == [[[2, -7, -2, 4]], [[3, 5, 1, 6]]]
    assert [y.tolist() for y in jnp.minmax(x, initial=(-9, 9))] == [-9, 9]
    assert [y.tolist() for y in jnp.minmax(jnp.zeros(0), initial=3)] == [3.0, 3.0]
    assert [y.tolist() for y in jnp.minmax(x, where=x > 0, initial=(9, -9))] == [1, 6]
    with pytest.raises(ValueError, match="minmax: initial must be a number or a pair of numbers, got 3"):
        jnp.minmax(x, initial=(1, 2, 3))
    with pytest.raises(ValueError, match="where needs initial"):
        jnp.minmax(x, where=True)
