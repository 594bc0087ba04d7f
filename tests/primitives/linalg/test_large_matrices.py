"""Decompositions of large matrices: SciPy's routines in the precision of the operands, with the workspace they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, vjp

DTYPES = ("float32", "float64", "complex64", "complex128")
SIZE = 100


def _matrices(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, *shape))
    return (x[0] + 1j * x[1] if dtype.startswith("c") else x[0]).astype(dtype)


def _close(dtype: str) -> float:
    return 1e-4 if dtype in ("float32", "complex64") else 1e-10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_determinants(monkeypatch: pytest.MonkeyPatch, dtype: str, batch: tuple[int, ...]) -> None:
    x = _matrices(dtype, *batch, SIZE, SIZE) / SIZE**0.5
    wide = x.astype("complex128" if dtype.startswith("c") else "float64")
    wanted, (sign, logarithm) = np.linalg.det(wide), np.linalg.slogdet(wide)
    for name in ("det", "slogdet"):  # NumPy computes in double precision, on threads of its own
        monkeypatch.setattr(np.linalg, name, None)
    with enable_x64():
        det, found = jnp.linalg.det(x), jnp.linalg.slogdet(x)
    assert (det.dtype, found.sign.dtype, found.logabsdet.dtype) == (x.dtype, x.dtype, x.real.dtype)
    assert det.shape == found.sign.shape == found.logabsdet.shape == batch
    np.testing.assert_allclose(det, wanted, rtol=100 * _close(dtype))
    np.testing.assert_allclose(found.sign, sign, rtol=_close(dtype))
    np.testing.assert_allclose(found.logabsdet, logarithm, rtol=_close(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_of_singular_and_of_unknown_matrices(dtype: str) -> None:
    x = _matrices(dtype, 3, SIZE, SIZE)
    x[0, 7] = 0
    x[1, 3, 5] = np.nan
    x[2] *= 1e30 if dtype in ("float32", "complex64") else 1e300
    with enable_x64():
        det, (sign, logarithm) = jnp.linalg.det(x), jnp.linalg.slogdet(x)
    assert det[0] == 0
    assert (sign[0], logarithm[0]) == (0, -np.inf)
    assert np.isnan([det[1], sign[1], logarithm[1]]).all()
    assert not np.isfinite(det[2])
    assert np.isfinite(logarithm[2])
    np.testing.assert_allclose(abs(sign[2]), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    x = _matrices(dtype, SIZE, SIZE + 20)
    wanted = np.linalg.svd(x.astype("complex128"), compute_uv=False)
    monkeypatch.setattr(np.linalg, "svd", None)
    with enable_x64():
        s = jnp.linalg.svd(x, compute_uv=False)
    assert s.dtype == x.real.dtype
    np.testing.assert_allclose(s, wanted, rtol=_close(dtype), atol=_close(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(SIZE, SIZE), (SIZE, 70), (70, SIZE), (900, 9)], ids=str)
def test_qr(dtype: str, shape: tuple[int, int]) -> None:
    """Q R is the matrix, and the cotangents of both factors agree with a difference quotient."""
    x = _matrices("complex128" if dtype.startswith("c") else "float64", *shape)
    t = _matrices(x.dtype.name, shape[1], *shape)[0]
    with enable_x64():
        q, r = jnp.linalg.qr(x.astype(dtype))
        np.testing.assert_allclose(q @ r, x.astype(dtype), atol=_close(dtype))
        np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=_close(dtype))
        (q, r), pull = vjp(jnp.linalg.qr, jnp.asarray(x))
        u, v = _matrices(x.dtype.name, *q.shape), _matrices(x.dtype.name, *r.shape)
        (ct,) = pull(type(jnp.linalg.qr(x))(jnp.asarray(u), jnp.asarray(v)))
        step = 1e-6
        after, before = (jnp.linalg.qr(x + s * step * t) for s in (1, -1))
        change = (np.sum(u * (after.Q - before.Q)) + np.sum(v * (after.R - before.R))).real / (2 * step)
        size = np.abs(u).sum() + np.abs(v).sum()
        np.testing.assert_allclose(np.sum(np.asarray(ct) * t).real, change, rtol=1e-4, atol=1e-7 * size)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cotangents_of_eigenvalues_and_singular_values(dtype: str) -> None:
    """They are those of the definition, V diag(ct) V* in the lower triangle, and U diag(ct) V*."""
    x = _matrices(dtype, SIZE, SIZE)
    a = x + x.conj().T
    ct = np.sin(np.arange(SIZE))
    with enable_x64():
        (found,) = vjp(jnp.linalg.eigvalsh, jnp.asarray(a))[1](jnp.asarray(ct))
        _, v = np.linalg.eigh(a)
        np.testing.assert_allclose(found, np.conj((v * ct) @ v.conj().T), atol=1e-10)
        (found,) = vjp(lambda x: jnp.linalg.svd(x, compute_uv=False), jnp.asarray(x))[1](jnp.asarray(ct))
        u, _, vh = np.linalg.svd(x)
        np.testing.assert_allclose(found, np.conj((u * ct) @ vh), atol=1e-10)
