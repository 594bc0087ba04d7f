"""Polynomials, windows, gradients, histograms, ufunc methods, grids and files: what recorded cases leave out."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback.core.config import enable_x64
from pullback.core.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    IndexingError,
    ShapeError,
    UnsupportedArgumentError,
    UnsupportedAttributeError,
)

X = pnp.array([1.0, 4.0, 9.0, 16.0])
BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: pnp.polyadd(pnp.ones((2, 2)), 1.0), ShapeError, r"polyadd: .* must be a vector, got shape \(2, 2\)"),
    (lambda: pnp.polydiv(pnp.zeros(0), X), ShapeError, "polydiv: a polynomial must have at least one coefficient"),
    (lambda: pnp.polyder(X, -1), ArgumentError, "polyder: the order m must not be negative, got -1"),
    (lambda: pnp.polyint(X, 2, k=[1, 2, 3]), ShapeError, "polyint: k must be a number or a vector of 2"),
    (lambda: pnp.polyint(X, 1.5), ShapeError, "polyint: m must be an int, got 1.5"),
    (lambda: pnp.poly(pnp.ones((2, 3))), ShapeError, "poly takes a vector of roots or a non-empty square matrix"),
    (lambda: pnp.roots(pnp.ones((2, 2))), ShapeError, "roots: the coefficients of a polynomial must be a vector"),
    (lambda: pullback.jit(pnp.roots)(X), ConcretizationTypeError, "roots: .* pass strip_zeros=False"),
    (lambda: pnp.polyfit(X, pnp.ones(5), 1), ShapeError, "polyfit: y must be a vector of 4"),
    (lambda: pnp.polyfit(X, X, -1), ArgumentError, "the degree must not be negative"),
    (lambda: pnp.polyfit(X, X, 1, w=pnp.ones(3)), ShapeError, "w must be a vector of 4"),
    (lambda: pnp.polyfit(X[:2], X[:2], 1, cov=True), ArgumentError, "need more points than coefficients, got 2 and 2"),
    (lambda: pnp.gradient(X[:1]), ShapeError, "axis 0 .* is too short: with edge_order=1 .* at least 2 points"),
    (lambda: pnp.gradient(X, edge_order=3), ArgumentError, "edge_order must be 1 or 2, got 3"),
    (lambda: pnp.gradient(X, 1.0, 2.0), ArgumentError, "one for each of 1 axes; got 2"),
    (lambda: pnp.gradient(X, pnp.ones(3)), ShapeError, "a vector of the 4 coordinates along axis 0"),
    (lambda: pnp.gradient(X, axis=1), ShapeError, "axis 1 is out of bounds"),
    (lambda: pnp.histogram2d(X, X[:2]), ShapeError, "x and y must be vectors of one size"),
    (lambda: pnp.histogramdd(X), ShapeError, r"takes points of shape \(n, d\), got shape \(4,\)"),
    (lambda: pnp.histogramdd(pnp.ones((3, 2)), bins=(1, 2, 3)), ShapeError, "one for each of 2 axes"),
    (lambda: pnp.histogramdd(pnp.ones((3, 2)), bins=100_000), ShapeError, "do not fit into memory"),
    (lambda: pnp.bartlett(-1), ShapeError, "bartlett: the number of points M must not be negative, got -1"),
    (lambda: pnp.kaiser("x", 1.0), ShapeError, "kaiser: M must be an int, got 'x'"),
    (lambda: pnp.i0(1j), DtypeError, "i0 takes real numbers, got c64"),
    (lambda: pnp.spacing(1j), DtypeError, "spacing takes real numbers, got c64"),
    (lambda: pnp.mgrid[3], IndexingError, "mgrid takes slices"),
    (lambda: pnp.mgrid[0:"x"], IndexingError, "is not a range of numbers"),
    (lambda: pnp.r_["0,x", 1], ArgumentError, "a directive is 'r', 'c', or up to three integers"),
    (lambda: pnp.r_["r"], IndexingError, "needs at least one"),
    (lambda: pnp.fromstring("1 2", sep=""), ArgumentError, "use frombuffer for bytes"),
    (lambda: pnp.save(io.BytesIO(), pnp.ones(2, "float8_e5m2")), DtypeError, "does not keep the dtype float8_e5m2"),
    (lambda: pnp.where(X > 2, 1, 2, size=3), ArgumentError, "where takes size and fill_value only without x and y"),
    (lambda: pnp.add(X, X, out=X), UnsupportedArgumentError, "add: the argument out is not supported"),
    (lambda: pnp.modf(X, out=X), UnsupportedArgumentError, "modf: the argument out is not supported"),
    (lambda: pnp.add.reduce(X, out=X), UnsupportedArgumentError, "add.reduce: the argument out"),
    (lambda: pnp.add.at(X, 0, 1.0), UnsupportedArgumentError, "add.at cannot change its operand"),
    (lambda: pnp.negative.reduce(X), ArgumentError, "is for functions of two operands"),
    (lambda: pnp.subtract.reduce(X[:0]), ShapeError, "no elements needs initial, because subtract has no identity"),
    (lambda: pnp.add.reduceat(X, [0, 4]), IndexingError, r"the indices must be in range\(4\)"),
    (lambda: pnp.add.reduceat(X, [0.5]), ShapeError, "must be a vector of integers"),
    (lambda: pnp.frompyfunc(3, 1, 1), ArgumentError, "func must be a function, got 3"),
    (lambda: pnp.frompyfunc(abs, 0, 1), ArgumentError, "nin and nout must be positive"),
    (lambda: pnp.frompyfunc(max, 2, 1)(X), ArgumentError, "max takes 2 operands, got 1"),
    (lambda: X.flat, UnsupportedAttributeError, r"use x.flatten\(\)"),
    (lambda: X.__array_namespace__(api_version="1900.01"), ArgumentError, "api_version must be one of 2021.12"),
    (lambda: pnp.__array_namespace_info__().dtypes(kind="text"), ArgumentError, "kind must be one of"),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_input(index: int) -> None:
    call, kind, message = BAD[index]
    with pytest.raises(kind, match=message):
        call()


def test_gradient_is_numpys() -> None:
    rng = np.random.default_rng(0)
    f, x = rng.normal(size=(5, 6)), np.cumsum(rng.uniform(0.1, 1, 6))
    with enable_x64():
        for order in (1, 2):
            for spacing in ((), (0.5,), (0.5, 2.0), (np.arange(5.0) ** 2, x)):
                expected = np.gradient(f, *spacing, edge_order=order)
                for ours, theirs in zip(pnp.gradient(f, *spacing, edge_order=order), expected, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    assert pnp.gradient(1.0) == []


def test_polynomials_are_numpys() -> None:
    p, q = np.array([2.0, -1.0, 3.0, 0.5]), np.array([0.5, 2.0])
    with enable_x64():
        for ours, theirs in zip(pnp.polydiv(p, q, trim_leading_zeros=True), np.polydiv(p, q), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        np.testing.assert_allclose(pnp.polyint(p, 3, k=[1, 2, 3]), np.polyint(p, 3, k=[1, 2, 3]))
        np.testing.assert_allclose(np.sort(pnp.roots(pnp.poly(p)).real), np.sort(p), rtol=1e-9)
        found = pullback.jit(lambda p: pnp.roots(p, strip_zeros=False))(np.array([0, 1.0, -3.0, 2.0, 0]))
        np.testing.assert_allclose(np.sort(np.abs(found)), [0, 1, 2, np.nan], atol=1e-12)
        np.testing.assert_allclose(pnp.poly(np.diag([1.0, 2.0])).real, [1, -3, 2], atol=1e-12)


def test_i0_has_all_its_derivatives() -> None:
    """Of the series 1 + x**2/4 + x**4/64: at zero, where JAX has 0 for the second."""
    with enable_x64():
        f: Any = pnp.i0
        for expected in (1.0, 0.0, 0.5, 0.0):
            np.testing.assert_allclose(f(0.0), expected, atol=1e-12)
            f = pullback.grad(f)
        from scipy import special

        x = np.array([-700.0, -2.0, 1e-3, 30.0, 700.0, np.inf])
        for compiled in (lambda f: f, pullback.jit):
            np.testing.assert_allclose(compiled(pnp.i0)(x[:-1]), special.i0(x[:-1]), rtol=1e-12)
            slope = compiled(pullback.vmap(pullback.grad(pnp.i0)))(x)
            np.testing.assert_allclose(slope[:-1], special.i1(x[:-1]), rtol=1e-12)
            assert compiled(pnp.i0)(x)[-1] == slope[-1] == np.inf  # of which SciPy makes NaN


def test_spacing_is_exact_in_compiled_programs() -> None:
    x = np.array([0, 1, -1, 1e-45, -1e-40, 3e-38, 1e-31, 3.4e38, np.inf, np.nan], np.float32)
    expected = np.copysign(np.spacing(np.abs(x[:-2])), x[:-2])
    np.testing.assert_array_equal(pnp.spacing(x)[:-2], expected)
    np.testing.assert_array_equal(pullback.jit(pnp.spacing)(x), pnp.spacing(x))
    assert pullback.grad(pnp.spacing)(1.5) == 0


def test_membership_is_that_of_numbers_in_vectors() -> None:
    assert 1 in pnp.arange(3)
    assert 3.5 not in pnp.arange(3)
    for value, array in ((1, pnp.ones((2, 2))), (1, pnp.ones(())), (pnp.ones(2), pnp.ones(2))):
        with pytest.raises(ValueError, match="looks for a number in an array of one axis, got an array of shape"):
            value in array  # noqa: B015


def test_functions_with_methods_are_ufuncs() -> None:
    names = (
        "add subtract multiply maximum minimum logaddexp logaddexp2 negative logical_and logical_or logical_xor "
        "bitwise_and bitwise_or bitwise_xor"
    )
    assert all(isinstance(getattr(pnp, name), pnp.ufunc) for name in names.split())
    assert not isinstance(pnp.sin, pnp.ufunc)
    assert (pnp.add.nin, pnp.add.nout, pnp.add.nargs, pnp.add.identity) == (2, 1, 2, 0)
    m = np.arange(6, dtype=np.int32).reshape(2, 3)
    for name in ("add", "multiply", "maximum", "bitwise_or", "bitwise_xor", "logical_and"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        for axis in (0, 1, (0, 1)):
            np.testing.assert_array_equal(ours.reduce(m, axis=axis), theirs.reduce(m, axis=axis))
        np.testing.assert_array_equal(ours.outer(m, m[0]), theirs.outer(m, m[0]))
        np.testing.assert_array_equal(ours.accumulate(m, axis=1), theirs.accumulate(m, axis=1))
        for starts in ([0, 2], [2, 0, 1], [0, 0, 0, 0, 0]):
            np.testing.assert_array_equal(ours.reduceat(m, starts, axis=1), theirs.reduceat(m, starts, axis=1))
    traced = pullback.jit(lambda i: pnp.multiply.reduceat(m, i, axis=1))(pnp.array([2, 0, 1]))
    np.testing.assert_array_equal(traced, np.multiply.reduceat(m, [2, 0, 1], axis=1))
    assert pullback.grad(lambda x: pnp.subtract.reduce(x))(X).tolist() == [1, -1, -1, -1]


def test_functions_of_scalars() -> None:
    halves = pnp.frompyfunc(lambda x, y: (x + y, x - y), 2, 2)
    total, difference = halves(1.0, pnp.arange(3.0))
    assert (total.tolist(), difference.tolist()) == ([1, 2, 3], [1, 0, -1])
    custom = pnp.ufunc(lambda x, y: x + y, 2, 1, name="plus", call=lambda self, x, y: x + y, reduce=lambda self, a: "r")
    assert repr(custom) == "<pullback.numpy.ufunc 'plus'>"
    assert (custom(1, 2), custom.reduce(X), custom.nargs) == (3, "r", 2)
    f = pnp.frompyfunc(lambda x, y: x * y, 2, 1)
    assert pullback.grad(f)(2.0, 3.0) == 3.0
    assert f.at(X, pnp.array([0, 0]), 2.0, inplace=False).tolist() == [4, 4, 9, 16]


def test_files_and_text(tmp_path: Any) -> None:
    for dtype in ("float32", "int8", "bool", "complex64", "bfloat16", "float16"):
        x = pnp.array([[0, 1], [1, 1]]).astype(dtype)
        pnp.save(tmp_path / "x.npy", x)
        back = pnp.load(tmp_path / "x.npy")
        assert (back.dtype, back.tolist()) == (x.dtype, x.tolist())
    pnp.savez(tmp_path / "all.npz", X, second=[1, 2])
    assert sorted(pnp.load(tmp_path / "all.npz")) == ["arr_0", "second"]
    (tmp_path / "text").write_text("1 2 3")
    assert pnp.fromfile(tmp_path / "text", sep=" ", dtype=int).tolist() == [1, 2, 3]
    with pnp.printoptions(precision=1):
        assert repr(pnp.array([1 / 3])) == "Array([0.3], dtype=float32)"
        assert pnp.get_printoptions()["precision"] == 1
    assert pnp.array_str(pnp.array([1e-9, 1.0]), suppress_small=True) == "[0. 1.]"
    with pytest.raises(TypeError):
        pullback.jit(lambda x: pnp.save(tmp_path / "x.npy", x))(X)


def test_grids_and_concatenations_are_traced() -> None:
    assert pullback.grad(lambda x: (pnp.r_[0:2, x, 5.0] ** 2).sum())(3.0) == 6.0
    assert pnp.c_[X, X].shape == (4, 2)
    assert pnp.s_[1:, None] == np.s_[1:, None]
    assert pnp.index_exp[1] == (1,)
    assert pnp.mgrid[0:2, 0:1:3j].dtype == np.float32
    for run in (lambda f: f, pullback.jit):
        grid = run(lambda: pnp.mgrid[()])()
        assert (grid.shape, grid.dtype) == ((0,), np.int32)


def test_the_namespace_of_the_array_api_standard() -> None:
    info = X.__array_namespace__(api_version="2024.12").__array_namespace_info__()
    assert info.default_dtypes()["integral"] == np.int32
    assert "float64" not in info.dtypes()
    with enable_x64():
        assert info.dtypes(kind=("real floating", "bool")).keys() == {"bool", "float32", "float64"}
        assert info.default_dtypes()["complex floating"] == np.complex128
    assert info.default_device() in info.devices()
    assert (pnp.float64 == None) is False  # noqa: E711  # which NumPy's dtype says it is
    for array in (X, X.astype("complex64")):
        swapped = np.asarray(array.byteswap())
        assert swapped.tobytes() == np.asarray(array).byteswap().tobytes()
    assert (X.clone().tolist(), X.platform, X.on_device_size_in_bytes()) == (X.tolist(), "cpu", 16)


def test_ranks_and_dtypes_are_strict_where_asked() -> None:
    with pullback.numpy_rank_promotion("raise"):
        with pytest.raises(ShapeError, match="different numbers of axes"):
            pnp.add(X, pnp.ones((2, 4)))
        with pytest.raises(ShapeError, match="different numbers of axes"):
            pnp.select([pnp.array([True])], [pnp.ones((2, 1))])
        assert (X + 1.0).shape == (4,)
    with pullback.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different numbers of axes"):
        X + pnp.ones((2, 4))
    with pullback.numpy_dtype_promotion("strict"):
        with pytest.raises(ValueError, match="strict"):
            pnp.add(X, pnp.ones(4, "int32"))
        assert (X + 1).dtype == np.float32


def test_roots_are_differentiated_where_zeros_are_stripped() -> None:
    p = pnp.array([0.0, 1.0, -3.0, 2.0])
    got = pullback.jacrev(lambda p: pnp.sort(pnp.roots(p).real))(p)
    x, slopes = np.array([1.0, 2.0]), np.array([-1.0, 1.0])
    expected = -np.stack([x**2, x, np.ones(2)], 1) / slopes[:, None]
    np.testing.assert_allclose(got[:, 1:], expected, rtol=1e-4)


def test_tools_see_no_iterator_that_writes() -> None:
    """As pytest 9 does, which looks for ``flat`` in what it compares with."""
    assert not hasattr(X, "flat")
    assert float(X.sum()) == pytest.approx(X.sum())
