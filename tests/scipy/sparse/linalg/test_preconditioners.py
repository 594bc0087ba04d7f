"""Preconditioners, the solvers that take them, SciPy's matrices as operands, and ``lsmr``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as oracle

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.experimental.sparse import BCOO
from pullback.scipy.sparse import linalg
from pullback.scipy.sparse.linalg import factors
from tests.helpers import largest_difference

RNG = np.random.default_rng(0)
GRID = sp.csr_array(sp.kronsum(*[sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(12, 12))] * 2))
GRID = sp.csr_array(sp.diags_array(np.linspace(1, 8, 144)) @ GRID @ sp.diags_array(np.linspace(1, 8, 144)))
SIDE = RNG.normal(size=144)
PRECONDITIONERS: dict[str, Callable[[Any], Any]] = {
    "jacobi": linalg.jacobi,
    "ichol": linalg.ichol,
    "spilu": lambda a: linalg.spilu(a, 1e-2, 3.0).solve,
}


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_solutions_have_the_derivatives_that_they_have_without_preconditioners(name: str) -> None:
    with enable_x64():
        a = BCOO.from_scipy_sparse(GRID)
        solver = linalg.bicgstab if name == "spilu" else linalg.cg
        M = PRECONDITIONERS[name](a)
        x, info = jit(lambda b: solver(a, b, M=M, tol=1e-13, maxiter=400))(SIDE)
        assert info == 0
        np.testing.assert_allclose(x, oracle.spsolve(GRID.tocsc(), SIDE), rtol=1e-8)

        def solution(data: Any, b: Any) -> Any:
            matrix = BCOO((data, a.indices), shape=a.shape)
            return jnp.sin(solver(matrix, b, M=PRECONDITIONERS[name](matrix), tol=1e-13, maxiter=400)[0]).sum()

        exact = lambda d, b: jnp.sin(linalg.spsolve(BCOO((d, a.indices), shape=a.shape), b)).sum()
        found = grad(solution, (0, 1))(a.data, jnp.array(SIDE))
        assert largest_difference(found, grad(exact, (0, 1))(a.data, jnp.array(SIDE))) < 1e-8


def test_fewer_iterations() -> None:
    with enable_x64():
        a = BCOO.from_scipy_sparse(GRID)
        enough = {None: 120, "jacobi": 42, "ichol": 22}
        for name, count in enough.items():
            M = None if name is None else PRECONDITIONERS[name](a)
            assert linalg.cg(a, SIDE, M=M, tol=1e-8, maxiter=count)[1] == 0
        assert linalg.cg(a, SIDE, tol=1e-8, maxiter=100)[1] > 0
        assert linalg.cg(a, SIDE, M=linalg.jacobi(a), tol=1e-8, maxiter=30)[1] > 0


def test_incomplete_cholesky_agrees_with_the_matrix_on_its_pattern() -> None:
    for matrix in (GRID, GRID * (1 + 0j) + sp.csr_array(1j * sp.triu(GRID, 1) - 1j * sp.tril(GRID, -1)) * 0.3):
        lower = factors.incomplete_cholesky("ichol", matrix.tocsc())
        rest = (lower @ lower.conj().T - matrix).tocsr()
        assert abs(rest.multiply(abs(matrix) > 0)).max() < 1e-12
        with enable_x64():
            M = linalg.ichol(matrix)
            b = SIDE.astype(matrix.dtype)
            expected = np.linalg.solve((lower @ lower.conj().T).toarray(), b)
            np.testing.assert_allclose(M(b), expected, rtol=1e-9)
            np.testing.assert_allclose(vmap(M)(np.stack([b, 2 * b]))[1], 2 * expected, rtol=1e-9)
    full = sp.csr_array(np.tril(np.ones((4, 4))) @ np.tril(np.ones((4, 4))).T)
    np.testing.assert_allclose(factors.incomplete_cholesky("", full.tocsc()).toarray(), np.tril(np.ones((4, 4))))
    shifted = factors.incomplete_cholesky("", full.tocsc(), 0.5)
    np.testing.assert_allclose((shifted @ shifted.T - full).toarray(), np.diag(full.diagonal() / 2), atol=1e-14)


def test_solvers_take_scipys_matrices() -> None:
    with enable_x64():
        expected = oracle.spsolve(GRID.tocsc(), SIDE)
        for f in (linalg.cg, linalg.minres, linalg.gmres, linalg.bicgstab):
            x, info = f(GRID, SIDE, M=linalg.jacobi(GRID), tol=1e-12, maxiter=600)
            np.testing.assert_allclose(x, expected, rtol=1e-6)
            assert info == 0
        with pytest.raises(errors.ShapeError, match="square"):
            linalg.cg(GRID[:3], SIDE)


def test_lsmr_finds_what_scipys_finds() -> None:
    a = sp.csr_array(sp.random_array((60, 20), density=0.2, rng=0) + sp.eye_array(60, 20))
    b = RNG.normal(size=60)
    tight: dict[str, Any] = {"atol": 1e-13, "btol": 1e-13}
    with enable_x64():
        matrix = BCOO.from_scipy_sparse(a)
        for damp in (0.0, 0.5):
            found, theirs = linalg.lsmr(matrix, b, damp, **tight), oracle.lsmr(a, b, damp, maxiter=99, **tight)
            np.testing.assert_allclose(found.x, theirs[0], rtol=1e-7)  # the tolerance, times the condition number
            assert found.istop == theirs[1] == 2
            assert abs(int(found.itn) - theirs[2]) <= 4
            sizes = np.linalg.norm(b - a @ theirs[0]), theirs[7]
            np.testing.assert_allclose([found.normr, found.normx], sizes, rtol=1e-9)
            assert found.norma <= np.linalg.norm(np.vstack([a.toarray(), damp * np.eye(20)]), 2) * (1 + 1e-12)
            assert 1 < found.conda <= np.linalg.cond(np.vstack([a.toarray(), damp * np.eye(20)])) * (1 + 1e-9)
        early = linalg.lsmr(matrix, b, maxiter=5, **tight), linalg.lsqr(matrix, b, iter_lim=5, **tight)
        assert early[0].istop == 7
        np.testing.assert_allclose(early[0].x, oracle.lsmr(a, b, maxiter=5, **tight)[0], rtol=1e-9)
        assert early[0].normar < early[1].arnorm  # each of its steps reduces this
        assert linalg.lsmr(matrix, b, conlim=1.5, **tight).istop == 3
        by = lambda solver: lambda d, t: solver(BCOO((d, matrix.indices), shape=matrix.shape), b, t, **tight).x
        at, t = (matrix.data, jnp.array(0.5)), (jnp.cos(matrix.data), jnp.array(1.0))
        assert largest_difference(jvp(by(linalg.lsmr), at, t)[1], jvp(by(linalg.lsqr), at, t)[1]) < 1e-9


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: linalg.ichol(-a), errors.SingularMatrixError, "the pivot of row 0 is not positive; pass shift"),
        (lambda a: linalg.ichol(BCOO.fromdense(jnp.eye(3)[::-1])), errors.SingularMatrixError, "no diagonal .* row 0"),
        (
            lambda a: linalg.jacobi(BCOO.fromdense(jnp.diag(jnp.array([1.0, 0, 2])))),
            errors.SingularMatrixError,
            "row 1",
        ),
        (lambda a: linalg.spilu(a).slogdet(), errors.ArgumentError, "incomplete factorisation does not have the det"),
        (lambda a: linalg.ichol(a)(jnp.ones(3)), errors.ShapeError, r"b must have shape \(4,\)"),
        (lambda a: linalg.spilu(jnp.eye(3)), errors.OperandError, "must be a sparse matrix"),
    ],
)
def test_bad_input(call: Callable[[Any], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(BCOO.fromdense(4 * jnp.eye(4) + 1))
