"""Products by SciPy's BLAS are NumPy's, for all layouts; and one library computes products and decompositions."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback.backends.host import blas

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


PROGRAM = """
import numpy as np, pullback.numpy as pnp
from pullback.backends.host import blas
x = pnp.asarray(np.linspace(0, 1, 40_000, dtype=np.float32).reshape(200, 200))
first = np.asarray(x @ x)
import sys
assert "scipy.linalg" not in sys.modules
pnp.linalg.cholesky(x @ x.T + 200 * pnp.eye(200))
assert "scipy.linalg" in sys.modules
assert np.array_equal(first, np.asarray(x @ x))
if len(blas.libraries()) == 2:  # NumPy's, whose pool of threads sleeps, and SciPy's
    import scipy.linalg.blas
    value = np.asarray(x)
    assert np.array_equal(first, scipy.linalg.blas.sgemm(1.0, value.T, value.T).T)
    assert blas._routines() is not None
"""


def test_large_products_need_a_small_part_of_scipy() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_the_largest_products_leave_the_lock_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("by SciPy")

    monkeypatch.setattr(blas, "_routines", refuse)
    x = np.ones((600, 600), np.float32)
    assert (blas.dot(x, x) == 600).all()
    with pytest.raises(AssertionError, match="by SciPy"):
        blas.dot(x[:, :100], x[:100])
