"""Direct solution of sparse systems and LOBPCG, against dense solvers and JAX's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pullback.numpy as jnp
from pullback import grad, hessian, jit, jvp, vmap
from pullback.experimental.sparse.linalg import lobpcg_standard, spsolve
from tests.helpers import assert_elements_close

MATRIX = (sp.random(6, 6, 0.5, random_state=0, format="csr", dtype=np.float32) + sp.eye(6, dtype=np.float32)).tocsr()
DATA, INDICES, INDPTR = (jnp.array(part) for part in (MATRIX.data, MATRIX.indices, MATRIX.indptr))
ROWS = np.repeat(np.arange(6), np.diff(MATRIX.indptr))
ONES = jnp.ones(6)
SOLUTION = [2.9965856, 5.6647725, -4.7614775, 2.1176994, -0.42385283, -3.715454]  # of JAX


def sparse(data: Any, b: Any) -> Any:
    return jnp.sum(jnp.sin(spsolve(data, INDICES, INDPTR, b)))


def dense(data: Any, b: Any) -> Any:
    return jnp.sum(jnp.sin(jnp.linalg.solve(jnp.zeros((6, 6)).at[ROWS, INDICES].set(data), b)))


@pytest.mark.parametrize("reorder", [0, 1])
@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_the_solution_is_that_of_jax(reorder: int, transform: Any) -> None:
    solve = transform(lambda b: spsolve(DATA, INDICES, INDPTR, b, reorder=reorder))
    np.testing.assert_allclose(solve(ONES), SOLUTION, rtol=1e-5)


@pytest.mark.parametrize("argnum", [0, 1])
@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_derivatives_by_the_elements_and_the_right_side(argnum: int, transform: Any) -> None:
    assert_elements_close(transform(grad(sparse, argnum))(DATA, ONES), grad(dense, argnum)(DATA, ONES), 1e-4)
    one = (DATA, ONES)
    t = tuple(jnp.cos(jnp.arange(x.size)) * (i == argnum) for i, x in enumerate(one))
    assert_elements_close(transform(lambda: jvp(sparse, one, t)[1])(), jvp(dense, one, t)[1], 1e-3)


def test_second_derivatives() -> None:
    expected = np.asarray(hessian(dense)(DATA, ONES))
    np.testing.assert_allclose(hessian(sparse)(DATA, ONES), expected, atol=1e-4 * np.abs(expected).max())


def test_several_right_sides_and_batches() -> None:
    both = jnp.stack([ONES, jnp.arange(6.0)])
    expected = [spsolve(DATA, INDICES, INDPTR, b) for b in both]
    np.testing.assert_allclose(vmap(lambda b: spsolve(DATA, INDICES, INDPTR, b))(both), expected, rtol=1e-5)
    np.testing.assert_allclose(spsolve(DATA, INDICES, INDPTR, both.T).T, expected, rtol=1e-5)
    halves = vmap(lambda d: spsolve(d, INDICES, INDPTR, ONES))(jnp.stack([DATA, 2 * DATA]))
    np.testing.assert_allclose(halves[0], 2 * halves[1], rtol=1e-5)


def test_a_singular_matrix_has_no_solution() -> None:
    assert np.isnan(spsolve(0 * DATA, INDICES, INDPTR, ONES)).all()


def test_complex_systems() -> None:
    data = DATA * (1 + 0.5j)
    x = np.asarray(spsolve(data, INDICES, INDPTR, ONES.astype("complex64")))
    np.testing.assert_allclose((MATRIX * (1 + 0.5j)) @ x, np.ones(6), atol=1e-5)


START = np.random.RandomState(0).randn(50, 2).astype("float32")


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_lobpcg_finds_the_largest_eigenvalues_in_as_many_steps_as_jax(transform: Any) -> None:
    values, vectors, steps = transform(lobpcg_standard)(jnp.diag(jnp.arange(50.0)), START)
    np.testing.assert_allclose(values, [49, 48], rtol=1e-5)
    np.testing.assert_allclose(np.abs(vectors[-1]), [1, 0], atol=1e-3)
    assert 20 <= int(steps) <= 26  # 23 in JAX; rounding decides about the last ones


def test_lobpcg_of_a_function_stops_as_it_is_told() -> None:
    product: Callable[[Any], Any] = lambda x: jnp.arange(50.0)[:, None] * x
    assert lobpcg_standard(product, START, m=3)[2] == 3
    assert int(lobpcg_standard(product, START, tol=1e-2)[2]) < 20


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: spsolve(DATA, INDICES, INDPTR, jnp.ones(5)), ValueError, r"indptr of shape \(n \+ 1,\) .*and \(5,\)"),
        (lambda: spsolve(DATA, INDICES, INDPTR, ONES + 0j), TypeError, "data and b of one dtype, got f32 and c64"),
        (lambda: lobpcg_standard(jnp.eye(5), jnp.ones((5, 2))), ValueError, r"0 < 5 \* k < n, got \(5, 2\)"),
        (lambda: lobpcg_standard(jnp.eye(60), START), ValueError, r"A must have shape \(50, 50\), got \(60, 60\)"),
        (lambda: lobpcg_standard(jnp.eye(50, dtype=complex), START), TypeError, "one dtype, got c64 and f32"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
