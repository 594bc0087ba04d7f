"""Products by the module in C are NumPy's, for all layouts and on all threads."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback.backends.host import blas, native
from pullback.core.array import LARGE, Absent

DTYPES = ("float32", "float64", "complex64", "complex128")


def _matrix(rows: int, columns: int, dtype: str, layout: str) -> np.ndarray:
    rng = np.random.default_rng(rows + 2 * columns)
    x = rng.standard_normal((2, rows, columns)).astype(np.float64)
    out = (x[0] + 1j * x[1] if dtype.startswith("c") else x[0]).astype(dtype)
    if layout == "columns":
        return np.asfortranarray(out)
    if layout == "strided":
        wide = np.zeros((rows, 2 * columns), dtype)
        wide[:, ::2] = out
        return wide[:, ::2]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_products_are_numpys(dtype: str) -> None:
    close = 1e-3 if dtype in ("float32", "complex64") else 1e-11
    for layouts in itertools.product(("rows", "columns", "strided"), repeat=2):
        for m, k, n in ((30, 40, 50), (1, 200, 100), (100, 200, 1), (100, 1, 100)):
            x, y = _matrix(m, k, dtype, layouts[0]), _matrix(k, n, dtype, layouts[1])
            assert x.size * n >= blas.LEAST
            for a, b in ((x, y), (x, y[:, 0]), (x[0], y)):
                out, wanted = blas.dot(a, b), np.dot(a, b)
                assert out.dtype == wanted.dtype
                assert out.shape == wanted.shape
                np.testing.assert_allclose(out, wanted, rtol=close, atol=close)
    x, y = _matrix(1, 20_000, dtype, "rows")[0], _matrix(2, 20_000, dtype, "rows")[1]
    for a, b in ((x, y), (x[::-1], y[::-1])):
        out = blas.dot(a, b)
        assert type(out) is type(np.dot(a, b))
        np.testing.assert_allclose(out, np.dot(a, b), rtol=close)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dot_products_of_long_vectors_lose_few_digits(dtype: str) -> None:
    x, y = np.random.default_rng(0).uniform(0, 1, (2, blas.LONG + 3)).astype(dtype)
    exact = math.fsum((x.astype(np.longdouble) * y).tolist())
    for a, b in ((x, y), (x[::-1], y[::-1])):
        out = blas.dot(a, b)
        assert type(out) is type(np.dot(a, b))
        assert abs(out - exact) < (1e-6 if dtype == "float32" else 1e-14) * exact
    y[7] = np.nan
    assert np.isnan(blas.dot(x, y))


@pytest.mark.parametrize("of", [lambda x, y: x @ y, pnp.dot, pnp.inner, pnp.vdot])
@pytest.mark.parametrize("shapes", [((LARGE + 3,),) * 2, ((2, LARGE // 2), (LARGE // 2,))])
def test_large_vectors_whose_elements_are_pending(of: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (np.arange(math.prod(shape)).reshape(shape) % 8.0 for shape in shapes)
    if of is pnp.vdot and x.ndim != y.ndim:
        y = np.broadcast_to(y, x.shape)
    a, b = pnp.asarray(x), pnp.asarray(y)
    assert type(a._host_value) is Absent
    wanted = np.vdot(x, y) if of is pnp.vdot else x @ y
    np.testing.assert_array_equal(of(a, b), wanted)
    np.testing.assert_array_equal(of(a + 1, b), wanted + y.sum())


def test_a_large_batch_whose_elements_are_pending_by_one_matrix() -> None:
    x, y = np.ones((2, 4, LARGE // 8), np.float32), np.ones((LARGE // 8, 3), np.float32)
    np.testing.assert_array_equal(pnp.asarray(x) @ pnp.asarray(y), x @ y)


def test_what_does_not_fit_is_numpys_error() -> None:
    x = np.ones((100, 200), np.float32)
    for a, b in ((x, x), (x[0], x), (x, x[:, 0]), (x.ravel(), x.ravel()[1:])):
        with pytest.raises(ValueError, match="not aligned"):
            blas.dot(a, b)
    with pytest.raises(TypeError, match="same shape"):
        pnp.dot(pnp.ones((100, 200)), pnp.ones((100, 200)))
    assert blas.dot(np.ones((10_000, 2)), np.ones((2, 0))).shape == (10_000, 0)


def test_infinities_and_nans_are_where_numpy_has_them() -> None:
    x = np.ones((100, 100), np.float32)
    x[3, 4], x[5, 6] = np.inf, np.nan
    np.testing.assert_array_equal(blas.dot(x, x), np.dot(x, x))
    np.testing.assert_array_equal(blas.dot(x, x[:, 0]), np.dot(x, x[:, 0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(130, 70, 90), (200, 50, 1), (1, 300, 60), (3, 500, 7), (260, 33, 5), (5, 33, 260)])
def test_products_of_a_batch_are_numpys(dtype: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    close = 2e-3 if dtype in ("float32", "complex64") else 1e-11
    for batch in ((), (2,), (3, 1), (2, 3), (1, 2, 1, 2)):
        x = np.stack([_matrix(m, k, dtype, "rows") * (i + 1) for i in range(math.prod(batch))])
        y = np.stack([_matrix(k, n, dtype, "rows") - i for i in range(math.prod(batch))])
        x, y = x.reshape(*batch, m, k), y.reshape(*batch, k, n)
        assert x.size * n >= blas.LEAST
        wanted = np.matmul(x, y)
        for a, b in itertools.product(_layouts(x), _layouts(y)):
            np.testing.assert_allclose(blas.matmul(a, b), wanted, rtol=close, atol=close)


def _layouts(x: np.ndarray) -> list[np.ndarray]:
    """The array, and equal ones whose columns, whose batch, and none of whose axes are contiguous."""
    turned, spread = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2), np.repeat(x, 2, -1)[..., ::2]
    outermost = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -2, 0)), 0, -2)
    return [x, turned, outermost, spread, np.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :]]


@pytest.mark.parametrize(
    "shapes",
    [
        ((40, 50), (50, 60)), ((9000,), (9000,)), ((30, 400), (400,)), ((400,), (400, 30)), ((3, 40, 50), (50, 60)),
        ((3, 40, 50), (3, 50, 60)), ((40, 50), (3, 50, 60)), ((2, 1, 40, 50), (3, 50, 60)), ((3, 40, 50), (50,)),
        ((50,), (3, 50, 60)), ((3, 5, 0), (0, 700)), ((0, 700), (700, 5)), ((2, 3), (3, 2)),
    ],
)  # fmt: skip
def test_the_operator_is_numpys(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    wanted = x @ y
    assert blas.product(x, y).shape == wanted.shape
    np.testing.assert_array_equal(blas.product(x, y), wanted)
    np.testing.assert_array_equal(pnp.asarray(x) @ pnp.asarray(y), wanted)
    if x.ndim > 1:
        np.testing.assert_array_equal(blas.product(x[..., ::-1, :], y), x[..., ::-1, :] @ y)


def test_operators_on_what_does_not_fit_explain_it() -> None:
    large = pnp.ones((100, 200))
    for other in (pnp.ones((100, 200)), pnp.ones(()), pnp.ones((3, 4, 5)), pnp.ones(7)):
        with pytest.raises(TypeError, match="matmul"):
            large @ other
        with pytest.raises(TypeError, match="matmul"):
            pnp.ones((3, 20, 30)) @ other if other.ndim != 1 else other @ large


def test_a_batch_may_be_one_matrix_repeated() -> None:
    x, y = _matrix(50, 60, "float32", "rows"), _matrix(60, 70, "float32", "rows")
    many = np.broadcast_to(x, (9, 50, 60))
    np.testing.assert_array_equal(blas.matmul(many, np.stack([y] * 9)), np.stack([blas.matmul(x, y)] * 9))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("helpers", [0, 1, 2, 3, 7])
def test_parts_of_a_product_are_the_product(helpers: int, dtype: str) -> None:
    if not blas.is_ready():
        pytest.skip("NumPy multiplies")
    for (m, n), batch in itertools.product(((400, 300), (300, 401), (1, 5000), (5000, 1)), (1, 2, 5)):
        x, y = np.ones((batch, m, 60), dtype), np.ones((batch, 60, n), dtype)
        x *= np.arange(m)[:, None] % 8
        y *= np.arange(n) % 16
        out = np.full((batch, m, n), np.nan, dtype)  # which BLAS must not read
        assert native.loops is not None
        assert native.loops.multiply(x, y, out, helpers)
        np.testing.assert_array_equal(out, x @ y)


def test_the_module_refuses_what_is_not_a_product() -> None:
    if not blas.is_ready():
        pytest.skip("NumPy multiplies")
    x, out = np.ones((3, 4, 4)), np.ones((3, 4, 4))
    cases: list[tuple[Any, Any, Any]] = [
        (x[0, 0], x[0, 0], out[0, 0]),
        (x, x[0], out),
        (x, x[:2], out),
        (x, x[:, :3], out),
        (x, x, out[:, :, :3]),
        (x, x, out.swapaxes(1, 2)),
        (x, x.astype(np.float32), out),
        (x.astype(int), x.astype(int), out.astype(int)),
        (x, x.astype(">f8"), out),
        (x[:, :0], x, out[:, :0]),
        (x[:, :, ::2], x[:, ::2], out),
        (x[(None,) * 6], x[(None,) * 6], out[(None,) * 6]),
    ]
    assert native.loops is not None
    assert native.loops.multiply(x, x, out, 0)
    for case in cases:
        assert not native.loops.multiply(*case, 0)
    with pytest.raises(TypeError):
        native.loops.use_blas((1, 2))


PROGRAM = """
import threading, numpy as np, pullback.numpy as pnp
from pullback.backends.host import blas
x = pnp.asarray(np.linspace(0, 1, 40_000, dtype=np.float32).reshape(200, 200))
first = np.asarray(x @ x)
import sys
assert "scipy.linalg" not in sys.modules
pnp.linalg.cholesky(x @ x.T + 200 * pnp.eye(200))
assert np.array_equal(first, np.asarray(x @ x))
threads = blas.threads_of(blas._numpy_extension())
before = threads and threads[0]()
y = np.linspace(0, 1, 400_000, dtype=np.float32).reshape(400, 1000)
wanted = blas.dot(y, y.T)
found = []
def multiply():
    for _ in range(20):
        found.append(np.array_equal(blas.dot(y, y.T), wanted))
together = [threading.Thread(target=multiply) for _ in range(4)]
for t in together: t.start()
for t in together: t.join()
assert found == 80 * [True]
assert before == (threads and threads[0]())
"""


def test_products_need_no_scipy_and_are_the_same_on_threads() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_without_the_module_numpy_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "is_ready", lambda: False)
    x = np.ones((60, 60), np.float32)
    assert (blas.dot(x, x) == 60).all()
    assert (blas.matmul(np.stack([x, x]), np.stack([x, x])) == 60).all()


FORKED = """
import os, threading, numpy as np
from pullback.backends.host import blas
x = np.ones((1500, 1500), np.float32)
wanted = blas.dot(x, x)
threads = blas.threads_of(blas._numpy_extension())
before = threads and threads[0]()
for _ in range(20):
    other = threading.Thread(target=blas.dot, args=(x, x))
    other.start()
    child = os.fork()
    if not child:
        right = all(np.array_equal(blas.dot(x, x), wanted) for _ in range(2))
        os._exit(0 if right and before == (threads and threads[0]()) else 1)
    assert os.waitpid(child, 0)[1] == 0
    other.join()
assert before == (threads and threads[0]())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_within_a_product_has_the_threads_that_were_there() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True)
