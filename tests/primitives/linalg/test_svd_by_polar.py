"""The singular value decomposition by the polar decomposition, which is for TPUs, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, export, jit
from pullback.primitives.linalg.svd_by_polar import svd_by_polar


def _random(*shape: int, dtype: Any) -> Any:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


MATRICES = {
    "square": lambda dtype: _random(6, 6, dtype=dtype),
    "tall": lambda dtype: _random(7, 4, dtype=dtype),
    "wide, in a batch": lambda dtype: _random(2, 3, 5, dtype=dtype),
    "of rank 2": lambda dtype: _random(5, 2, dtype=dtype) @ _random(2, 5, dtype=dtype),
    "zeros": lambda dtype: np.zeros((4, 4), dtype),
    "identity": lambda dtype: np.eye(4, dtype=dtype),
    "a number": lambda dtype: -_random(1, 1, dtype=dtype),
    "large": lambda dtype: _random(5, 5, dtype=dtype) * dtype(1e30),
    "small": lambda dtype: _random(5, 5, dtype=dtype) * dtype(1e-30),
    "graded": lambda dtype: _random(8, 8, dtype=dtype) * (10.0 ** -np.arange(8)).astype(dtype),
    "of condition 1e16": lambda dtype: (1 / (np.arange(15)[:, None] + np.arange(15) + 1)).astype(dtype),
}


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", MATRICES)
def test_the_decomposition(name: str, dtype: Any, full_matrices: bool) -> None:
    """Factors have orthonormal columns, and the product is the matrix, within few roundings of the largest value."""
    x = MATRICES[name](dtype)
    with enable_x64(True):
        s, u, vh = map(np.asarray, svd_by_polar(jnp.asarray(x), full_matrices=full_matrices))
    expected = np.linalg.svd(x, full_matrices=full_matrices)
    assert [y.shape for y in (u, s, vh)] == [y.shape for y in expected]
    rounding = 40 * np.finfo(dtype).eps
    assert (np.diff(s, axis=-1) <= 0).all()
    assert (s >= 0).all()
    np.testing.assert_allclose(s, expected[1], rtol=0, atol=rounding * expected[1].max())
    k = s.shape[-1]
    product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    np.testing.assert_allclose(product, x, rtol=0, atol=rounding * expected[1].max())
    for q in (u, np.swapaxes(vh.conj(), -1, -2)):
        np.testing.assert_allclose(np.swapaxes(q.conj(), -1, -2) @ q - np.eye(q.shape[-1]), 0, atol=rounding)


def test_not_a_number() -> None:
    for out in svd_by_polar(jnp.asarray(np.array([[1, np.nan], [2, 3]], np.float32)), full_matrices=False):
        assert np.isnan(out).all()


@pytest.mark.parametrize("compute_uv", [False, True])
def test_programs_for_tpus(compute_uv: bool) -> None:
    """They call the compiler's functions only."""
    x = np.ones((5, 3), np.float32)
    text = export.export(jit(lambda x: jnp.linalg.svd(x, compute_uv=compute_uv)), platforms=["tpu"])(x).mlir_module()
    assert "@Eigh(" in text
    assert "@Qr(" in text
    assert "lapack" not in text
