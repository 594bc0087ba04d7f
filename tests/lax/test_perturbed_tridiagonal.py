"""``tridiagonal_solve(perturb_singular=True)``: JAX's results for singular matrices, the plain ones for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import lax

solve = lax.linalg.tridiagonal_solve

RECORDED: list[tuple[list[float], list[float], list[float], list[float], list[float]]] = [
    ([0, 1, 2], [0, 0, 0], [1, 1, 0], [1, 1, 1], [8388609, 1, -8388608]),
    ([0, 0, 0], [1, 0, 2], [0, 0, 0], [1, 1, 1], [1, 4194304, 0.5]),
    ([0, 0], [0, 0], [0, 0], [1, 1], [8.507059e37, 8.507059e37]),
    ([0, 1], [1, 1], [1, 0], [1, 2], [-8388607, 8388608]),
    ([0, 1], [1, 1], [1, 0], [1, 1], [1, 0]),
    ([0, -1, -1, -1], [1, 2, 2, 1], [-1, -1, -1, 0], [1, 2, 3, 4], [83886080] * 4),
    ([0], [0], [0], [1], [8.507059e37]),
    ([0], [-0.0], [0], [1], [-8.507059e37]),
    ([0, 0, 0], [1e30, 1e-30, -1e-10], [0, 0, 0], [1, 1, 1], [1e-30, 1e30, -1e10]),
]


@pytest.mark.parametrize("wrap", [lambda f: f, pullback.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("case", RECORDED)
def test_singular_matrices(case: Any, wrap: Any) -> None:
    *given, want = (np.array(x, np.float32) for x in case)
    got = wrap(lambda dl, d, du, b: solve(dl, d, du, b[:, None], perturb_singular=True))(*given)
    np.testing.assert_allclose(got[:, 0], want, rtol=2e-7)


def systems(dtype: str, batch: tuple[int, ...] = (), n: int = 7, k: int = 2) -> list[Any]:
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        x = rng.standard_normal((*batch, *shape))
        return pnp.asarray(x + 1j * rng.standard_normal(x.shape) if dtype.startswith("complex") else x, dtype)

    return [numbers(n), numbers(n), numbers(n), numbers(n, k)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_other_matrices_and_derivatives(dtype: str, batch: tuple[int, ...]) -> None:
    with pullback.enable_x64(dtype.endswith(("64", "128")) and dtype != "complex64"):
        tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-9
        given = systems(dtype, batch)
        f = lambda *xs: solve(*xs, perturb_singular=True)
        for got in (f(*given), pullback.jit(f)(*given)):
            assert got.dtype == dtype
            np.testing.assert_allclose(got, solve(*given), rtol=tolerance, atol=tolerance)
        if not batch:
            loss = lambda g: lambda *xs: (abs(g(*xs)) ** 2).sum()
            got = pullback.grad(loss(f), (0, 1, 2, 3))(*given)
            want = pullback.grad(loss(solve), (0, 1, 2, 3))(*given)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
        else:
            mapped = f
            for _ in batch:
                mapped = pullback.vmap(mapped)
            np.testing.assert_allclose(mapped(*given), f(*given), rtol=tolerance, atol=tolerance)


def test_an_eigenvector_by_inverse_iteration() -> None:
    n = 30
    d, e = np.linspace(1, 3, n), np.full(n, 0.4)
    matrix = np.diag(d) + np.diag(e[1:], 1) + np.diag(e[1:], -1)
    values, vectors = np.linalg.eigh(matrix)
    with pullback.enable_x64(True):
        x = pnp.ones((n, 1))
        for _ in range(3):
            x = solve(e, d - values[7], e, x, perturb_singular=True)
            x = x / pnp.linalg.norm(x)
    np.testing.assert_allclose(abs(vectors[:, 7] @ np.asarray(x)[:, 0]), 1, rtol=1e-12)


def test_operands_are_checked() -> None:
    one = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="tridiagonal_solve takes three diagonals of one shape"):
        solve(one, one, one[:2], one[:, None], perturb_singular=True)
    with pytest.raises(TypeError):
        solve(one, one, one, np.ones((3, 1), np.int32), perturb_singular=True)
    assert solve(one[:0], one[:0], one[:0], np.ones((0, 2), np.float32), perturb_singular=True).shape == (0, 2)
