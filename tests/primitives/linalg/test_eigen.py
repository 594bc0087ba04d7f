"""The derivative of the eigenvalues of eager Hermitian matrices, which is one operation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import enable_x64, grad, hessian, jacfwd, jacrev, jit, jvp, linearize, vjp, vmap
from pullback.core.errors import ShapeError
from pullback.primitives.linalg import eigen


def draw(shape: tuple[int, ...], seed: int, dtype: Any = np.float64) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def total(x: Any) -> Any:
    w = jnp.linalg.eigvalsh(x)
    return (w * jnp.cos(jnp.arange(w.size).reshape(w.shape)) + w**2).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4), (60, 60), (0, 0)], ids=str)
def test_gradients_are_those_of_formulas(shape: tuple[int, ...], dtype: Any) -> None:
    with enable_x64(True):
        x, t = draw(shape, 0, dtype), draw(shape, 1, dtype)
        x = (x + x.mT) / 2
        v = np.linalg.eigh(np.asarray(x))[1]
        pushed = np.einsum("...ki,...kl,...li->...i", v, np.tril(t) + np.tril(t, -1).swapaxes(-1, -2), v)
        ct = draw(shape[:-1], 2, dtype)
        full = np.einsum("...ik,...k,...jk->...ij", v, ct, v)
        pulled = np.tril(full) + np.tril(full, -1)  # each element below the diagonal stands for two
        bound = 1e-4 if dtype == np.float32 else 1e-10
        eigvalsh = partial(jnp.linalg.eigvalsh, symmetrize_input=False)
        linear, pull = linearize(eigvalsh, x)[1], vjp(eigvalsh, x)[1]
        for found, expected in (
            (jvp(eigvalsh, (x,), (t,))[1], pushed), (linear(t), pushed), (pull(ct)[0], pulled),
            (vmap(linear)(jnp.stack([t, 2 * t]))[1], 2 * pushed), (jvp(linear, (t,), (t,))[1], pushed),
            (vmap(pull)(jnp.stack([ct, 2 * ct]))[0][1], 2 * pulled), (vjp(linear, t)[1](ct)[0], pulled),
        ):  # fmt: skip
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, bound, bound * max(shape[-1], 1))


def test_derivatives_of_derivatives_are_those_of_programs() -> None:
    with enable_x64(True):
        x = draw((4, 4), 0)
        steep = lambda x: (grad(total)(x) ** 2).sum()
        linear, pull = linearize(jnp.linalg.eigvalsh, x)[1], vjp(jnp.linalg.eigvalsh, x)[1]
        turn = lambda t: (pull(linear(t))[0] ** 2).sum()
        everything = lambda x: [
            hessian(total)(x), jacfwd(jnp.linalg.eigvalsh)(x), jacrev(jnp.linalg.eigvalsh)(x), grad(steep)(x),
            vmap(grad(total))(jnp.stack([x, 2 * x])), grad(turn)(x), hessian(turn)(x),
            vmap(grad(turn))(jnp.stack([x, x])),
        ]  # fmt: skip
        for found, expected in zip(everything(x), jit(everything)(x), strict=True):
            np.testing.assert_allclose(found, expected, 1e-8, 1e-8)


def test_a_derivative_is_one_operation() -> None:
    x = jnp.diag(jnp.arange(4.0))
    program = pullback.make_jaxpr(linearize(partial(jnp.linalg.eigvalsh, symmetrize_input=False), x)[1])(x)
    assert [str(equation.primitive) for equation in program.eqns] == ["eigenvalues_differential"]
    program = pullback.make_jaxpr(linearize(jnp.linalg.eigvalsh, x + 0j)[1])(x + 0j)
    assert "eigenvalues_differential" not in str(program)


def test_equal_eigenvalues_have_the_derivatives_of_their_sum() -> None:
    np.testing.assert_allclose(grad(lambda x: jnp.linalg.eigvalsh(x).sum())(jnp.eye(3)), np.eye(3), 0, 1e-6)


def test_operands_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="eigenvalues_differential takes eigenvectors, and tangents"):
        eigen.eigenvalues_differential_p.bind(jnp.eye(3), jnp.eye(2))
    with pytest.raises(ShapeError, match="eigenvalues_pull takes eigenvectors, and cotangents"):
        eigen.eigenvalues_pull_p.bind(jnp.eye(3), jnp.ones(2))
