"""Decompositions of batches are those of NumPy, in the precision of the operands, whatever the number of cores is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback.backends.host import alone, batches, blas, native

pytestmark = pytest.mark.skipif(not blas.is_ready(), reason="NumPy brings another library, or there is no module in C")
DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((3, 1, 1), (40, 8, 8), (2, 3, 7, 4), (5, 4, 9), (3, 40, 60), (2, 130, 20), (2, 20, 130), (40, 1, 3))


def _matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    parts = np.random.default_rng(shape[-1]).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype.startswith("c") else parts[0]).astype(dtype)


def _assert_close(found: Any, wanted: Any) -> None:
    bound = 1e-4 if wanted.dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * np.abs(wanted).max())


def _adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def _assert_unitary(columns: Any) -> None:
    wanted = np.eye(columns.shape[-1], dtype=columns.dtype)
    _assert_close(_adjoint(columns) @ columns, np.broadcast_to(wanted, (*columns.shape[:-2], *wanted.shape)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values_and_vectors(shape: tuple[int, ...], dtype: str, full: bool) -> None:
    x, k = _matrices(shape, dtype), min(shape[-2:])
    s, u, vh = batches.svd(x, full, vectors=True) or []
    wanted = np.linalg.svd(x, full)
    assert [(a.shape, a.dtype) for a in (u, s, vh)] == [(a.shape, a.dtype) for a in wanted]
    for values in (s, *(batches.svd(x, full, vectors=False) or [])):
        _assert_close(values, wanted[1])
    _assert_unitary(u)
    _assert_unitary(_adjoint(vh))
    _assert_close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 1, 1), (40, 8, 8), (2, 3, 5, 5), (2, 70, 70)])
def test_eigenvalues_and_vectors_read_the_lower_triangles(shape: tuple[int, ...], dtype: str) -> None:
    x = _matrices(shape, dtype)
    lower = np.tril(x, -1)
    hermitian = lower + _adjoint(lower) + np.eye(shape[-1], dtype=dtype) * x.real
    w, v = batches.eigh(np.tril(x) + np.triu(np.full_like(x, 7), 1), vectors=True) or []
    for values in (w, *(batches.eigh(x, vectors=False) or [])):
        _assert_close(values, np.linalg.eigvalsh(hermitian))
        assert values.dtype == x.real.dtype
    _assert_unitary(v)
    _assert_close(hermitian @ v, v * w[..., None, :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_q_and_rows_of_r(shape: tuple[int, ...], dtype: str) -> None:
    x, k = _matrices(shape, dtype), min(shape[-2:])
    q, r = batches.qr(x, k) or []
    assert (q.shape, r.shape) == ((*shape[:-1], k), (*shape[:-2], k, shape[-1]))
    assert q.dtype == r.dtype == x.dtype
    _assert_unitary(q)
    _assert_close(q @ r, x)
    assert not np.tril(r, -1).any()
    assert not np.diagonal(r, axis1=-2, axis2=-1).imag.any()


def test_the_operands_are_not_written_to() -> None:
    x = _matrices((20, 6, 6), "float32")
    for layout in (x.copy(), np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        batches.svd(layout, False, vectors=True), batches.eigh(layout, vectors=True), batches.qr(layout, 6)
        np.testing.assert_array_equal(layout, x)


def test_bits_depend_neither_on_the_cores_nor_on_the_other_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    x = _matrices((200, 8, 8), "float32")
    decompose = lambda x: (
        *(batches.svd(x, True, vectors=True) or []),
        *(batches.eigh(x, vectors=True) or []),
        *(batches.qr(x, 8) or []),
    )
    on_many = []
    for cores in (1, 4):
        monkeypatch.setattr(batches, "cores", lambda cores=cores: cores)
        on_many.append(decompose(x))
    for one, other, last in zip(*on_many, decompose(x[-1:]), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one[-1:], last)


def test_only_matrices_that_are_not_finite_have_results_of_nan() -> None:
    x = _matrices((4, 8, 8), "float32")
    x[2, 3, 4] = np.nan
    for results in (pnp.linalg.svd(pnp.asarray(x)), pnp.linalg.eigh(pnp.asarray(x)), pnp.linalg.qr(pnp.asarray(x))):
        for result in results:
            unknown = np.isnan(np.asarray(result)).reshape(4, -1).any(1)
            assert unknown.tolist() == [False, False, True, False]


def test_large_matrices_and_others_are_not_for_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((2, alone.MOST + 1, 3), (0, 3, 3), (2, 0, 3)):
        assert not batches.takes(np.ones(shape))
        assert batches.svd(np.ones(shape), False, vectors=True) is None
    assert batches.qr(np.ones((2, 5, 3)), 5) is None
    monkeypatch.setattr(native, "loops", None)
    assert batches.svd(np.ones((2, 3, 3)), False, vectors=True) is None
    assert batches.eigh(np.ones((2, 3, 3)), vectors=True) is None
    assert batches.qr(np.ones((2, 3, 3)), 3) is None


def test_the_module_in_c_refuses_other_arrays() -> None:
    assert native.loops is not None
    x, w = np.ones((2, 3, 3)), np.ones((2, 3))
    for kind, arrays in ((1, (x,)), (1, (x[:, ::2], w)), (1, (x, w[:1])), (0, (x, w)), (3, (x, w)), (1, (x[0], w))):
        with pytest.raises(ValueError, match="expected contiguous arrays"):
            native.loops.decompose(kind, ord("V"), (0, 0), arrays, 3, (1, 1, 1), 0)
    with pytest.raises(TypeError):
        native.loops.decompose(1, ord("V"), (0, 0), [x, w], 3, (1, 1, 1), 0)  # type: ignore[arg-type]
