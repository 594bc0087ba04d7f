"""Sparse Cholesky and LDLᵀ: factors, solutions and determinants, their derivatives, batches, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jit, jvp, tree, vmap
from pullback.core.config import enable_x64
from pullback.experimental.sparse import BCOO
from pullback.scipy.sparse import linalg
from pullback.scipy.sparse.linalg import symmetric_factors
from pullback.test_util import check_grads
from tests.helpers import largest_difference

RNG = np.random.default_rng(0)
N = 7
LOWER = np.tril((RNG.random((N, N)) < 0.3) * RNG.normal(size=(N, N)), -1)
DEFINITE = LOWER + LOWER.T + 4 * np.eye(N)
INDEFINITE = LOWER + LOWER.T + np.diag([4.0, -4, 5, -6, 3, 4, -5])
SIDE = RNG.normal(size=(N, 2))
I, J = np.nonzero(DEFINITE)
INDICES = np.stack([np.append(I, [2, N, 0]), np.append(J, [2, 0, -1])], axis=1)
"""Of all elements, a second one of one position, and padding after the end and before the beginning."""


def data_of(a: Any) -> Any:
    return np.append(a[I, J], [0.25, 7.0, 9.0])


def matrix(data: Any) -> BCOO:
    return BCOO((data, INDICES), shape=(N, N))


def whole(lower: Any) -> Any:
    return BCOO((lower.data, lower.indices), shape=lower.shape).todense()


def dense(data: Any) -> Any:
    """The symmetric matrix whose lower triangle these elements are."""
    padded = data.at[-1].set(0)
    lower = jnp.tril(matrix(padded).todense())
    return lower + jnp.tril(lower, -1).T


ORDER = linalg.ldl(matrix(data_of(DEFINITE))).P()


def ordered(data: Any) -> Any:
    return dense(data)[ORDER][:, ORDER]


def dense_ldl(a: Any) -> tuple[Any, Any]:
    """The factors of a dense matrix, row by row."""
    n = len(a)
    lower, diagonal = jnp.eye(n), jnp.zeros(n)
    for j in range(n):
        rest = a[j:, j] - (lower[j:, :j] * diagonal[:j]) @ lower[j, :j]
        diagonal = diagonal.at[j].set(rest[0])
        lower = lower.at[j + 1 :, j].set(rest[1:] / rest[0])
    return lower, diagonal


CASES: dict[str, tuple[Any, Callable[..., Any], Callable[..., Any]]] = {
    "solve_A": (DEFINITE, lambda d, b: linalg.cholesky(matrix(d))(b), lambda d, b: jnp.linalg.solve(dense(d), b)),
    "logdet": (
        DEFINITE, lambda d, b: linalg.cholesky(matrix(d)).logdet() * b, lambda d, b: jnp.linalg.slogdet(dense(d))[1] * b
    ),
    "L": (
        DEFINITE, lambda d, b: whole(linalg.cholesky(matrix(d)).L()) @ b,
        lambda d, b: jnp.linalg.cholesky(ordered(d)) @ b,
    ),
    "solve_L": (
        DEFINITE, lambda d, b: linalg.cholesky(matrix(d)).solve_L(b),
        lambda d, b: jnp.linalg.solve(jnp.linalg.cholesky(ordered(d)), b),
    ),
    "sample": (
        DEFINITE, lambda d, b: (f := linalg.cholesky(matrix(d))).apply_Pt(f.solve_Lt(f.apply_P(b))),
        lambda d, b: jnp.linalg.solve(jnp.linalg.cholesky(ordered(d)).T, b[ORDER])[np.argsort(ORDER)],
    ),
    "ldl": (
        INDEFINITE, lambda d, b: whole((f := linalg.ldl(matrix(d))).L()) @ (f.D()[:, None] * b),
        lambda d, b: dense_ldl(ordered(d))[0] @ (dense_ldl(ordered(d))[1][:, None] * b),
    ),
    "ldl slogdet": (
        INDEFINITE, lambda d, b: jnp.stack(linalg.ldl(matrix(d)).slogdet()) * b[0, 0],
        lambda d, b: jnp.stack(jnp.linalg.slogdet(dense(d))) * b[0, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_dense_matrices(name: str, transform: Any) -> None:
    def program(f: Any, d: Any, b: Any) -> Any:
        scalar = lambda d, b: jnp.sin(f(d, b)).sum()
        out, moved = jvp(f, (d, b), (jnp.cos(d), b + 1))
        batches = vmap(f, (None, 0))(d, jnp.stack([b, 2 * b, b])), vmap(f, (0, None))(jnp.stack([d, 2 * d]), b)
        return out, moved, grad(scalar, (0, 1))(d, b), hessian(scalar, (0, 1))(d, b), batches

    of, ours, theirs = CASES[name]
    with enable_x64():
        d, b = jnp.array(data_of(of)), jnp.array(SIDE)
        found = transform(lambda d, b: program(ours, d, b))(d, b)
        assert largest_difference(found, program(theirs, d, b)) < 1e-11


def grid(side: int) -> Any:
    """A Laplace operator, whose factor has much fill."""
    line = sp.diags_array([-1.0, 2.05, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sp.csr_array(sp.kronsum(line, line))


def test_the_factor_of_a_grid_is_sparse() -> None:
    a = grid(12)
    with enable_x64():
        f = linalg.cholesky(a)
        lower, order = whole(f.L()), f.P()
        assert largest_difference(lower @ lower.T, a.toarray()[order][:, order]) < 1e-13
        assert len(f.L().data) < 144 * 145 / 8  # a tenth of a triangle, where the natural order has a sixth


def test_differences_agree_with_slopes_to_the_second_order() -> None:
    with enable_x64():
        check_grads(lambda beta: linalg.cholesky(grid(4), beta).solve_Lt(jnp.arange(16.0)), (0.5,), 2)


def test_tangents_and_cotangents_are_transposes() -> None:
    with enable_x64():
        a = grid(9)
        indices = np.stack(a.tocoo().coords, axis=1)
        pattern = symmetric_factors.Pattern(indices, 81)
        values = np.bincount(pattern.positions, a.data, len(pattern.rows) + 1)[:-1]
        factor = symmetric_factors.elements("ldl", pattern, values)
        r, c = RNG.normal(size=(2, len(values)))
        forward, reverse = (getattr(symmetric_factors, name) for name in ("tangent", "cotangent"))
        assert abs(forward(pattern, factor, r) @ c - r @ reverse(pattern, factor, c)) < 1e-11


def test_the_upper_triangle_is_not_read() -> None:
    a = np.where(np.triu(np.ones((N, N)), 1), 99.0, DEFINITE)
    f = linalg.cholesky(sp.csc_array(a))
    np.testing.assert_allclose(f(DEFINITE.sum(1)), np.ones(N), rtol=1e-5)
    assert largest_difference(whole(f.L()), whole(linalg.cholesky(sp.csc_array(DEFINITE)).L())) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_dtypes(dtype: Any) -> None:
    a = np.array([[4, 2, 0], [2, 10, 3], [0, 3, 9]], dtype)
    f = linalg.cholesky(sp.csr_array(a))
    order, lower = f.P(), whole(f.L())
    assert lower.dtype == np.float32
    np.testing.assert_allclose(lower @ lower.T, a[order][:, order], rtol=1e-6, atol=1e-6)


def test_inertia_is_the_number_of_negative_eigenvalues() -> None:
    a = INDEFINITE
    assert int((linalg.ldl(sp.csc_array(a)).D() < 0).sum()) == (np.linalg.eigvalsh(a) < 0).sum()


def test_beta_moves_the_diagonal() -> None:
    with enable_x64():
        a = sp.csc_array(LOWER + LOWER.T)  # without a diagonal
        moved = linalg.cholesky(a, 4.0)
        np.testing.assert_allclose(moved(DEFINITE.sum(1)), np.ones(N), rtol=1e-13)
        slope = grad(lambda beta: linalg.cholesky(a, beta).logdet())(4.0)
        np.testing.assert_allclose(slope, np.trace(np.linalg.inv(DEFINITE)), rtol=1e-12)
        factor = lambda beta: linalg.cholesky(a, beta).solve_Lt(SIDE[:, 0])
        assert largest_difference(jit(lambda beta: jvp(factor, (beta,), (1.0,)))(4.0), jvp(factor, (4.0,), (1.0,))) == 0


def test_factors_pass_compiled_functions_and_maps() -> None:
    f = linalg.cholesky(matrix(jnp.array(data_of(DEFINITE), "float32")))
    x = jit(lambda f, b: f.solve_A(b) * f.logdet())(f, SIDE)
    np.testing.assert_allclose(x, f(SIDE) * f.logdet(), rtol=1e-5)
    twice = tree.map(lambda x: x * 2 if x.dtype == np.float32 else x, f)
    np.testing.assert_allclose(twice(SIDE), f(SIDE) / 2, rtol=1e-5)
    assert repr(f) == f"Cholesky(shape=(7, 7), nse={len(INDICES)})"


def test_what_is_not_finite_is_nan() -> None:
    f = linalg.cholesky(matrix(jnp.array(data_of(DEFINITE), "float32").at[0].set(np.nan)))
    assert np.isnan(f(SIDE)).all()
    assert np.isnan(f.L().data).all()
    assert np.isnan(f.logdet())


def test_a_traced_matrix_that_is_not_definite_has_nan() -> None:
    d = jnp.array(data_of(INDEFINITE), "float32")
    assert np.isnan(jit(lambda d: linalg.cholesky(matrix(d)).logdet())(d))
    assert np.isnan(jit(lambda d: linalg.cholesky(matrix(d)).L().data)(d)).any()


def test_bad_matrices() -> None:
    with pytest.raises(errors.SingularMatrixError, match=r"cholesky: the matrix is not positive definite.*pass beta"):
        linalg.cholesky(sp.csc_array(INDEFINITE))
    swap = sp.csc_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    for found in (lambda: linalg.ldl(swap), lambda: linalg.cholesky(swap)):
        with pytest.raises(errors.SingularMatrixError, match=r"(ldl: a pivot of|cholesky:) the matrix"):
            found()
    with pytest.raises(errors.ShapeError, match="cholesky: A must be a square matrix"):
        linalg.cholesky(sp.csc_array(np.ones((2, 3))))
    with pytest.raises(errors.OperandError, match="ldl: A must be a sparse matrix"):
        linalg.ldl(np.eye(3))  # type: ignore[arg-type]
    with pytest.raises(errors.DtypeError, match="cholesky: A must have real elements, got c64"):
        linalg.cholesky(sp.csc_array(np.eye(2, dtype=np.complex64)))
    with pytest.raises(errors.ShapeError, match="solve_L: b must have shape"):
        linalg.cholesky(sp.csc_array(np.eye(2))).solve_L(jnp.ones(3))


def test_positions_must_be_known_for_the_factor() -> None:
    f = lambda indices: linalg.cholesky(BCOO((jnp.ones(2), indices), shape=(2, 2)))
    diagonal = jnp.array([[0, 0], [1, 1]])
    np.testing.assert_allclose(jit(lambda i: f(i).solve_A(jnp.ones(2)))(diagonal), np.ones(2))
    with pytest.raises(errors.ConcretizationTypeError, match="rows and columns of the matrix are traced"):
        jit(lambda i: f(i).L().data)(diagonal)
