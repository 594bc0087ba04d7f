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


RNG = np.random.default_rng(3)
ZERO_SINGULAR_VALUES = {
    "4 by 4, rank 2": np.arange(16.0).reshape(4, 4),
    "4 by 4, rank 1": np.ones((4, 4)),
    "diagonal": np.diag([0.0, 0, 2, 5]),
    "diagonal, rank 3": np.diag([0.0, 1, 2, 5]),
    "of no diagonal": with_singular_values(4, 4, 5, 2),
    "equal ones too": with_singular_values(5, 5, 2, 2),
    "zero": np.zeros((3, 3)),
    "5 by 3, rank 1": with_singular_values(5, 3, 2),
    "3 by 5, rank 1": with_singular_values(3, 5, 2),
}
EVEN = {
    "sum of s²": (lambda s: jnp.sum(s**2), lambda a: jnp.trace(a.T @ a)),
    "sum of s⁴": (lambda s: jnp.sum(s**4), lambda a: jnp.trace(a.T @ a @ a.T @ a)),
    "sum of log(1 + s²)": (
        lambda s: jnp.sum(jnp.log1p(s**2)),
        lambda a: jnp.linalg.slogdet(jnp.eye(a.shape[1]) + a.T @ a)[1],
    ),
}


@pytest.mark.parametrize("point", ZERO_SINGULAR_VALUES)
@pytest.mark.parametrize("function", EVEN)
def test_a_whole_hessian_where_singular_values_are_zero(function: str, point: str) -> None:
    """Also by directions that leave some of the zeros where they are, and with vectors that nobody uses."""
    f, same = EVEN[function]
    a = ZERO_SINGULAR_VALUES[point]
    with enable_x64():
        closed = hessian(same)(a)
        for values in (
            jnp.linalg.svdvals,
            lambda a: jnp.linalg.svd(a)[1],
            lambda a: jnp.linalg.svd(a, full_matrices=False)[1],
        ):
            np.testing.assert_allclose(hessian(lambda a: f(values(a)))(a), closed, rtol=1e-11, atol=1e-11)  # noqa: B023


def test_a_compiled_hessian_where_singular_values_are_zero() -> None:
    f, same = EVEN["sum of s⁴"]
    a = ZERO_SINGULAR_VALUES["4 by 4, rank 2"]
    with enable_x64():
        for values in (jnp.linalg.svdvals, lambda a: jnp.linalg.svd(a)[1]):
            found = jit(hessian(jit(lambda a: f(values(a)))))(a)  # noqa: B023
            np.testing.assert_allclose(found, hessian(same)(a), rtol=1e-11, atol=1e-9)
        mapped = vmap(hessian(lambda a: f(jnp.linalg.svdvals(a))))(np.stack([a, np.diag([0.0, 0, 2, 5]), np.eye(4)]))
        np.testing.assert_allclose(mapped[0], hessian(same)(a), rtol=1e-11, atol=1e-9)


def test_a_complex_direction_where_singular_values_are_zero() -> None:
    with enable_x64():
        a = with_singular_values(4, 4, 2, 1, dtype="complex128")
        d = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
        f = lambda a: jnp.sum(jnp.linalg.svd(a)[1] ** 4)
        same = lambda a: jnp.trace(a.conj().T @ a @ a.conj().T @ a).real
        found, wanted = (jvp(grad(g), (a,), (d,))[1] for g in (f, same))
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_third_derivatives_where_singular_values_are_apart() -> None:
    with enable_x64():
        f = lambda a: jnp.sum(jnp.linalg.svdvals(a) ** 6)
        same = lambda a: jnp.trace(a.T @ a @ a.T @ a @ a.T @ a)
        a = with_singular_values(4, 4, 4, 3, 2, 1)
        found, wanted = (jvp(hessian(g), (a,), (D,))[1] for g in (f, same))
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-8)


def test_eigenvalues_with_vectors_that_nobody_uses() -> None:
    """Compiled functions too, whose vectors no direction may choose."""
    with enable_x64():
        f = lambda a: jnp.sum(jnp.linalg.eigh(a)[0] ** 3)
        for second in (hessian(f), hessian(jit(f)), jit(hessian(jit(f)))):
            np.testing.assert_allclose(second(A), hessian(cube)(A), rtol=1e-9, atol=1e-9)


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
