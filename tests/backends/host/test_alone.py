"""Decompositions by NumPy's library are those of NumPy, and leave its number of threads as it was."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback.backends.host import alone, blas, native

pytestmark = pytest.mark.skipif(not blas.is_ready(), reason="NumPy brings another library, or there is no module in C")
DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((48, 48), (50, 64), (64, 50), (192, 100), (100, 192))


def _matrix(shape: tuple[int, int], dtype: str) -> np.ndarray:
    parts = np.random.default_rng(shape[0]).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype.startswith("c") else parts[0]).astype(dtype)


def _assert_close(found: Any, wanted: Any) -> None:
    bound = 1e-4 if wanted.dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * np.abs(wanted).max())


def _assert_unitary(columns: Any) -> None:
    _assert_close(columns.conj().T @ columns, np.eye(columns.shape[1], dtype=columns.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values_and_vectors(shape: tuple[int, int], dtype: str, full: bool) -> None:
    x = _matrix(shape, dtype)
    s, u, vh = alone.svd(x, full, vectors=True) or []
    wanted = np.linalg.svd(x, full)
    assert [(a.shape, a.dtype) for a in (u, s, vh)] == [(a.shape, a.dtype) for a in wanted]
    for values in (s, *(alone.svd(x, full, vectors=False) or [])):
        _assert_close(values, wanted[1])
    _assert_unitary(u)
    _assert_unitary(vh.conj().T)
    _assert_close(u[:, : len(s)] * s @ vh[: len(s)], x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_and_vectors_read_the_lower_triangle(dtype: str) -> None:
    x = _matrix((60, 60), dtype)
    hermitian = np.tril(x, -1) + np.tril(x, -1).conj().T + np.diag(np.diag(x).real).astype(dtype)
    w, v = alone.eigh(np.tril(x) + np.triu(np.full_like(x, 7), 1), vectors=True) or []
    for values in (w, *(alone.eigh(x, vectors=False) or [])):
        _assert_close(values, np.linalg.eigvalsh(hermitian))
    _assert_unitary(v)
    _assert_close(hermitian @ v, v * w)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_q_and_rows_of_r(shape: tuple[int, int], dtype: str) -> None:
    x, k = _matrix(shape, dtype), min(shape)
    q, r = alone.qr(x, k) or []
    assert (q.shape, r.shape, q.dtype, r.dtype) == ((shape[0], k), (k, shape[1]), x.dtype, x.dtype)
    _assert_unitary(q)
    _assert_close(q @ r, x)
    assert not np.tril(r, -1).any()


def test_the_operands_are_not_written_to() -> None:
    x = _matrix((50, 50), "float32")
    for layout in (x.copy(), np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        alone.svd(layout, False, vectors=True), alone.eigh(layout, vectors=True), alone.qr(layout, 50)
        np.testing.assert_array_equal(layout, x)


def test_matrices_that_are_not_finite_have_results_of_nan() -> None:
    x = _matrix((50, 50), "float32")
    x[3, 4] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        alone.qr(x, 50)
    for results in (pnp.linalg.qr(pnp.asarray(x)), pnp.linalg.svd(pnp.asarray(x)), pnp.linalg.eigh(pnp.asarray(x))):
        assert any(np.isnan(np.asarray(result)).any() for result in results)


def test_other_sizes_are_not_for_one_thread() -> None:
    for shape in ((alone.LEAST - 1, 50), (50, alone.MOST + 1), (0, 0)):
        assert alone.svd(np.ones(shape), False, vectors=True) is None
        assert alone.qr(np.ones(shape), min(shape)) is None


def test_without_the_module_in_c_another_library_decomposes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = _matrix((64, 64), "float32")
    results = lambda: [np.asarray(pnp.linalg.svd(x)[1]), np.abs(pnp.linalg.qr(x)[1])]
    own = results()
    monkeypatch.setattr(native, "loops", None)
    assert alone.svd(x, False, vectors=True) is None
    for found, wanted in zip(
        [pnp.linalg.svd(pnp.asarray(x))[1], abs(pnp.linalg.qr(pnp.asarray(x))[1])], own, strict=True
    ):
        _assert_close(np.asarray(found), np.asarray(wanted))


def test_the_number_of_threads_is_as_before_after_calls_in_threads() -> None:
    threads = blas.threads_of(blas._numpy_extension())
    assert threads is not None
    read, write = threads
    before = read()
    write(2)
    try:
        x, y = _matrix((100, 100), "float32"), _matrix((300, 300), "float32")
        alike = alone.svd(x, False, vectors=True)
        assert alike is not None

        def work() -> None:
            for _ in range(20):
                blas.matmul(y, y)
                for found, wanted in zip(alone.svd(x, False, vectors=True) or [], alike, strict=True):
                    np.testing.assert_array_equal(found, wanted)

        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert read() == 2
    finally:
        write(before)


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(48, 48), (100, 64), (192, 192)])
def test_quotients_by_triangles(shape: tuple[int, int], order: Any, transpose: bool, dtype: str) -> None:
    x = np.array(_matrix(shape, dtype), order=order)
    r = np.array(np.triu(_matrix((shape[1], shape[1]), dtype)) + 20 * np.eye(shape[1], dtype=dtype), order=order)
    before = x.copy()
    found = alone.over_triangle(x, r, transpose)
    assert found.dtype == dtype
    _assert_close(found @ (r.T if transpose else r), x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(("rows", "columns"), [(40, 40), (60, 40), (193, 193), (200, 100)])
def test_other_triangles_are_for_others(rows: int, columns: int) -> None:
    assert alone.over_triangle(np.ones((rows, columns)), np.eye(columns), False) is None


def test_memory_with_nan_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library looks at all elements of what it is given, also at those that no routine has written."""
    monkeypatch.setattr(alone.np, "empty", lambda shape, dtype, order="C": np.full(shape, np.nan, dtype, order))
    x = np.random.default_rng(0).standard_normal((100, 80))
    found = alone.qr(x, 80)
    if found is not None:
        np.testing.assert_allclose(found[0] @ found[1], x, atol=1e-12)
