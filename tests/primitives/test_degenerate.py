"""Derivatives where eigenvalues or singular values are equal, or zero: right, or NaN where there is none to be had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jacrev, jit, jvp, lax, vmap
from pullback.core.config import enable_x64
from tests.recorded.degenerate import (
    CASES,
    Degenerate,
    expected,
    found,
    recorded,
    with_eigenvalues,
    with_singular_values,
)

OURS = SimpleNamespace(grad=grad, jvp=jvp, jit=lambda f: f)
IDS = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradient_and_hessian(case: Degenerate) -> None:
    with enable_x64():
        first, twice, mixed = expected(OURS, jnp, lax.linalg, case)
        tolerance = {"rtol": 1e-8, "atol": 1e-8} if case.same is not None else {"rtol": 1e-5, "atol": 1e-5}
        values = found(OURS, jnp, lax.linalg, case)
        np.testing.assert_allclose(values["gradient"], [first] * 2, **tolerance)
        np.testing.assert_allclose(values["Hessian"], [twice, mixed], **tolerance)
        forward = values["forward over forward"]
        if np.isfinite(forward).all():
            np.testing.assert_allclose(forward, [twice, mixed], **tolerance)
        else:
            assert "projection" in case.name or "complex" in case.name or "overlap" in case.name or "part" in case.name


def test_there_are_twenty_for_which_jax_has_no_right_hessian() -> None:
    statuses = recorded()
    assert len(statuses) == len(CASES) >= 20
    assert sum(hessian_of_jax != "right" for _, hessian_of_jax in statuses.values()) >= 20


A = with_eigenvalues(1, 2, 2, 2)
T = np.random.default_rng(0).normal(size=(4, 4))
D = T + T.T


def cube(a: Any) -> Any:
    return jnp.sum(jnp.linalg.eigvalsh(a) ** 3)


def square(a: Any) -> Any:
    w, v = jnp.linalg.eigh(a)
    return jnp.sum(T * ((v * w**2) @ v.T))


@pytest.mark.parametrize(
    "second",
    [hessian, lambda f: jit(hessian(f)), lambda f: jacfwd(jit(jacrev(jit(f)))), lambda f: jacfwd(jacfwd(f))],
    ids=["hessian", "compiled", "of compiled functions", "forward over forward"],
)
def test_a_whole_hessian(second: Any) -> None:
    with enable_x64():
        closed = hessian(lambda a: jnp.trace((a + a.T) @ (a + a.T) @ (a + a.T)) / 8)(A)
        np.testing.assert_allclose(second(cube)(A), closed, rtol=1e-9, atol=1e-9)


def test_a_batch_of_hessians() -> None:
    with enable_x64():
        batch = np.stack([A, np.eye(4), np.diag([1.0, 2, 3, 4])])
        mapped = vmap(hessian(cube))(batch)
        for i, a in enumerate(batch):
            np.testing.assert_allclose(mapped[i], hessian(cube)(a), rtol=1e-9, atol=1e-9)


def test_a_function_of_a_matrix_in_forward_mode() -> None:
    with enable_x64():
        want = np.sum(T * (A @ D + D @ A))
        np.testing.assert_allclose(jvp(square, (A,), (D,))[1], want, rtol=1e-9)
        np.testing.assert_allclose(np.sum(np.asarray(jacfwd(square)(A)) * D), want, rtol=1e-9)


def test_what_cannot_be_had_is_nan() -> None:
    """Never a wrong number: of what takes more than the derivatives of eigenvalues and vectors there are."""
    with enable_x64():
        assert np.isnan(grad(square)(A)).all()
        assert np.isnan(jacrev(jacrev(cube))(A)).all()
        assert np.isnan(jacrev(jacfwd(cube))(A)).any()
        assert np.isnan(jacfwd(hessian(cube))(A)).any()
        assert np.isnan(vmap(lambda t: jvp(square, (A,), (t,))[1])(np.stack([D, D]))).all()
        assert np.isnan(hessian(lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 2).real)(np.eye(3))).any()
        u = jvp(lambda a: jnp.linalg.svd(a)[0], (np.eye(3),), (T[:3, :3],))[1]
        assert np.isnan(u).any()


def test_equal_eigenvalues_of_a_general_matrix() -> None:
    with enable_x64():
        gradient = grad(lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 3).real)(np.eye(3))
        np.testing.assert_allclose(gradient, 3 * np.eye(3), atol=1e-12)


def test_values_under_differentiation_are_not_mapped() -> None:
    """A value is one for all directions, so that it can leave a map as one."""
    with enable_x64():
        run = lambda t: jvp(square, (A,), (t,))
        value, _ = vmap(run, out_axes=(None, 0))(np.stack([D, T]))
        np.testing.assert_allclose(value, square(A))


def test_nearly_equal_is_equal_up_to_rounding() -> None:
    with enable_x64():
        a = A + 1e-15 * D
        np.testing.assert_allclose(hessian(cube)(a), hessian(cube)(A), rtol=1e-9, atol=1e-9)
        s = with_singular_values(3, 3, 2, 2, 2)
        four = lambda a: jnp.sum(jnp.linalg.svdvals(a) ** 4)
        closed = hessian(lambda a: jnp.trace(a.T @ a @ a.T @ a))(s)
        np.testing.assert_allclose(hessian(four)(s), closed, rtol=1e-9, atol=1e-9)
