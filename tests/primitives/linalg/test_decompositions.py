"""Decompositions: what is refused, and matrices that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import enable_x64, eval_shape, hessian, jit, jvp, lax
from pullback.core.errors import ArgumentError, DtypeError, MissingRuleError, ShapeError, UnsupportedArgumentError
from pullback.primitives.linalg import determinants, lu

LINALG = lax.linalg


# Refusals ----------------------------------------------------------------------------------------------------------

HALF = np.eye(2, dtype="float16")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LINALG.eigh(jnp.ones((2, 3))), ShapeError, r"eigh takes square .* got shape \(2, 3\)"),
        (lambda: LINALG.eigh(jnp.ones(3)), ShapeError, r"eigh takes square .* got shape \(3,\)"),
        (lambda: LINALG.eigh(HALF), DtypeError, "eigh takes float32.* got f16; convert"),
        (lambda: LINALG.eigh(np.eye(2, dtype="int32")), DtypeError, "eigh takes float32.* got i32"),
        (lambda: LINALG.eigh(jnp.eye(2), subset_by_index=(1, 3)), ArgumentError, r"a range of the 2 values.* \(1, 3\)"),
        (lambda: LINALG.eigh(jnp.eye(2), subset_by_index=2), ArgumentError, "two integers, got 2"),
        (
            lambda: LINALG.eigh(jnp.eye(2), implementation=LINALG.EighImplementation.JACOBI),
            UnsupportedArgumentError,
            "implementation .*JACOBI is not available on CPUs; leave it out, or pass .*QR",
        ),
        (lambda: LINALG.eigh(jnp.eye(2), implementation="fast"), ArgumentError, "must be one of .*QR.*, got 'fast'"),
        (lambda: LINALG.eig(jnp.ones((2, 3))), ShapeError, r"eig takes square .* got shape \(2, 3\)"),
        (
            lambda: LINALG.eig(jnp.eye(2), implementation="magma"),
            UnsupportedArgumentError,
            "MAGMA is not available on CPUs",
        ),
        (lambda: LINALG.svd(jnp.ones(3)), ShapeError, r"svd takes matrices .* got shape \(3,\)"),
        (lambda: LINALG.svd(HALF), DtypeError, "svd takes float32.* got f16"),
        (lambda: LINALG.svd(jnp.eye(2), algorithm="polar"), UnsupportedArgumentError, "POLAR is not available on CPUs"),
        (lambda: LINALG.svd(jnp.eye(2), subset_by_index=(0, 1)), ArgumentError, "pass full_matrices=False"),
        (lambda: LINALG.qr(jnp.ones(3)), ShapeError, r"qr takes matrices .* got shape \(3,\)"),
        (lambda: LINALG.qdwh(jnp.ones((2, 3))), ShapeError, r"no more columns than rows, got shape \(2, 3\)"),
        (lambda: LINALG.qdwh(jnp.ones((2, 2, 2))), ShapeError, r"takes a matrix, got shape \(2, 2, 2\)"),
        (lambda: LINALG.schur(jnp.ones((2, 3))), ShapeError, r"schur takes square .* got shape \(2, 3\)"),
        (lambda: LINALG.schur(jnp.eye(2), sort_eig_vals=True), UnsupportedArgumentError, "leave out sort_eig_vals"),
        (lambda: LINALG.hessenberg(jnp.ones(3)), ShapeError, r"hessenberg takes square .* got shape \(3,\)"),
        (lambda: LINALG.tridiagonal(jnp.ones((2, 3))), ShapeError, "tridiagonal takes square"),
        (
            lambda: LINALG.tridiagonal_solve(jnp.ones(3), jnp.ones(2), jnp.ones(3), jnp.ones((3, 1))),
            ShapeError,
            r"three diagonals .* got shapes \(3,\), \(2,\), \(3,\) and \(3, 1\)",
        ),
        (lambda: LINALG.householder_product(jnp.ones((2, 3)), jnp.ones(2)), ShapeError, "no more columns than rows"),
        (lambda: LINALG.householder_product(jnp.ones((3, 2)), jnp.ones(3)), ShapeError, r"at most 2 factors.* \(3,\)"),
        (lambda: LINALG.ormqr(jnp.ones((3, 2)), jnp.ones(2), jnp.ones((2, 2))), ShapeError, r"3 rows .* \(2, 2\)"),
        (lambda: LINALG.cholesky_update(jnp.eye(2), jnp.ones(3)), ShapeError, r"vectors of shape \(2,\), got \(3,\)"),
        (lambda: LINALG.symmetric_product(jnp.ones((2, 3)), jnp.eye(3)), ShapeError, r"\(2, 3\) and \(3, 3\)"),
        (lambda: jnp.linalg.eigh(jnp.eye(2), "X"), ArgumentError, '"L" or "U", got \'X\''),
        (lambda: jnp.linalg.eigvals(jnp.ones((2, 3))), ShapeError, "eig takes square"),
        (lambda: jnp.linalg.svd(jnp.ones((2, 3)), hermitian=True), ShapeError, "eigh takes square"),
        (lambda: jnp.linalg.qr(jnp.eye(2), "full"), ArgumentError, "mode must be .* got 'full'"),
        (lambda: jnp.linalg.pinv(jnp.ones(3)), ShapeError, r"svd takes matrices .* got shape \(3,\)"),
        (lambda: jnp.linalg.pinv(jnp.eye(2), 0.1, rcond=0.1), ArgumentError, "old name of rtol"),
        (lambda: jnp.linalg.matrix_rank(jnp.eye(2), 0.1, tol=0.1), ArgumentError, "pass either rtol"),
        (lambda: jnp.linalg.lstsq(jnp.ones((2, 3)), jnp.ones(3)), ShapeError, r"shapes \(2, 3\) and \(3,\)"),
        (lambda: jnp.linalg.lstsq(jnp.ones((2, 2, 2)), jnp.ones(2)), ShapeError, r"a matrix \(m, n\)"),
        (lambda: jnp.linalg.cond(jnp.ones((2, 3)), 1), ShapeError, r"square matrices, got shape \(2, 3\)"),
        (lambda: jnp.linalg.tensorinv(jnp.ones((2, 3))), ShapeError, "as many elements in all as the others"),
        (lambda: jnp.linalg.tensorinv(jnp.ones((2, 2)), 0), ArgumentError, "ind must be positive, got 0"),
        (lambda: jnp.linalg.tensorsolve(jnp.ones((2, 3)), jnp.ones(2)), ShapeError, r"got \(2, 3\)"),
        (lambda: jnp.linalg.slogdet(jnp.eye(2), method="svd"), ArgumentError, "method must be .* got 'svd'"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    with pytest.raises(error, match=f"(?s){message}"):
        eval_shape(call)


def test_what_has_no_derivative_says_so() -> None:
    for function in (LINALG.schur, LINALG.hessenberg, LINALG.tridiagonal):
        with pytest.raises(MissingRuleError, match="has no jvp rule"):
            pullback.jvp(function, (jnp.eye(2),), (jnp.eye(2),))


# Matrices that are not finite --------------------------------------------------------------------------------------

DECOMPOSED = {
    "eigh": lambda x: LINALG.eigh(x),
    "eig": lambda x: LINALG.eig(x),
    "svd": lambda x: LINALG.svd(x),
    "svd by QR": lambda x: LINALG.svd(x, algorithm="QR"),
    "svdvals": jnp.linalg.svdvals,
    "schur": lambda x: LINALG.schur(x),
    "hessenberg": lambda x: LINALG.hessenberg(x),
    "tridiagonal": lambda x: LINALG.tridiagonal(x)[1],
    "pinv": jnp.linalg.pinv,
}


@pytest.mark.parametrize("name", DECOMPOSED)
@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_what_is_not_finite_is_nan(name: str, compile_: Any) -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), np.eye(3), np.eye(3)]).astype("float32")
    x[2, 0, 1] = x[2, 1, 0] = np.inf
    for out in pullback.tree.leaves(compile_(DECOMPOSED[name])(x)):
        out = np.asarray(out)
        assert np.isfinite(out[[0, 3]]).all()
        assert np.isnan(out[[1, 2]]).all()
    for out in pullback.tree.leaves(compile_(DECOMPOSED[name])(x[1].astype("complex64"))):
        assert np.isnan(out).all()


@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_qr_of_what_is_not_finite(compile_: Any) -> None:
    q, r = compile_(jnp.linalg.qr)(np.full((2, 2), np.nan, "float32"))
    assert np.isnan(q).any()
    assert np.isnan(r).any()


def test_rank_of_special_matrices() -> None:
    assert jnp.linalg.matrix_rank(jnp.zeros((2, 2))) == 0
    assert jnp.linalg.matrix_rank(jnp.full((2, 2), np.nan)) == 0
    assert jnp.linalg.matrix_rank(jnp.ones(3)) == 1
    assert jnp.linalg.matrix_rank(np.diag([3.0, 0.5]), rtol=0.4) == 1
    assert jnp.linalg.matrix_rank(np.diag([3.0, 0.5]), tol=0.4) == 2


# Parameters --------------------------------------------------------------------------------------------------------


def test_parameters() -> None:
    a = np.random.default_rng(0).normal(size=(4, 4)).astype("float32")
    h = a + a.T
    v, w = LINALG.eigh(h, subset_by_index=(1, 3))
    assert v.shape == (4, 2)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(h)[1:3], rtol=1e-5)
    _, w = LINALG.eigh(a, lower=False, symmetrize_input=False)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a, "U"), rtol=1e-5, atol=1e-5)
    u, s, vh = LINALG.svd(a, full_matrices=False, subset_by_index=(0, 2), algorithm=LINALG.SvdAlgorithm.QR)
    assert (u.shape, s.shape, vh.shape) == ((4, 2), (2,), (2, 4))
    u, s, vh = jnp.linalg.svd(h, hermitian=True)
    np.testing.assert_allclose((u * s) @ vh, h, rtol=1e-4, atol=1e-4)
    left, right = LINALG.eig(a)[1:]
    values = LINALG.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    assert len(values) == 1
    np.testing.assert_allclose(a @ right, right * values[0], atol=1e-4)
    np.testing.assert_allclose(left.conj().T @ a, values[0][:, None] * left.conj().T, atol=1e-4)
    q, r, order = LINALG.qr(a, pivoting=True)
    np.testing.assert_allclose(q @ r, a[:, np.asarray(order)], atol=1e-5)
    u, h, iterations, converged = LINALG.qdwh(np.vstack([a, a]), dynamic_shape=(5, 3))
    assert (u.shape, h.shape, int(iterations), bool(converged)) == ((8, 4), (4, 4), 0, True)
    np.testing.assert_allclose(u @ h, np.pad(np.vstack([a, a])[:5, :3], ((0, 3), (0, 1))), atol=1e-5)
    reflections, taus = jnp.linalg.qr(a, "raw")
    c = a[:, :2]
    q = LINALG.householder_product(reflections.T, taus)
    for left in (True, False):
        for transpose in (True, False):
            operand = c if left else c.T
            whole = q.T if transpose else q
            want = whole @ operand if left else operand @ whole
            got = LINALG.ormqr(reflections.T, taus, operand, left=left, transpose=transpose)
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_names_of_results() -> None:
    a = jnp.eye(2)
    for function, fields in (
        (jnp.linalg.eigh, ("eigenvalues", "eigenvectors")),
        (jnp.linalg.eig, ("eigenvalues", "eigenvectors")),
        (jnp.linalg.svd, ("U", "S", "Vh")),
        (jnp.linalg.qr, ("Q", "R")),
    ):
        assert function(a)._fields == fields
        assert jit(function)(a)._fields == fields
    assert [x.shape for x in jnp.linalg.lstsq(jnp.ones((2, 3)), jnp.ones(2), numpy_resid=True)][1] == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_tall_matrices_are_decomposed_by_way_of_their_triangular_factor(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(dtype)
    if dtype.startswith("complex"):
        x += 1j * rng.normal(size=(200, 3))
    x[:, 2] = x[:, 0]  # so that the least singular value is rounding error, and left out
    precision = 50 * np.finfo(dtype).eps
    with pullback.enable_x64():
        u, s, vh = jnp.linalg.svd(x, full_matrices=False)
        inverse = jnp.linalg.pinv(x)
        unknown = jnp.linalg.pinv(np.where(np.arange(3) == 1, np.nan, x))
    assert u.dtype == inverse.dtype == dtype
    np.testing.assert_allclose((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), x, atol=precision)
    np.testing.assert_allclose(np.asarray(u).conj().T @ np.asarray(u), np.eye(3), atol=precision)
    np.testing.assert_allclose(inverse, np.linalg.pinv(x, rcond=1e-4), atol=precision)
    assert inverse.shape == unknown.shape == (3, 200)
    assert np.isnan(unknown).all()


# The columns that complete Q ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("shape", [(3, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_completing_columns_have_their_derivatives(shape: tuple[int, ...], dtype: str, pivoting: bool) -> None:
    with enable_x64(True):
        rng = np.random.default_rng(3)
        parts = [1, 1j] if dtype == "complex128" else [1, 1]
        a, t = (jnp.asarray(rng.normal(size=(*shape, 2)) @ parts) for _ in range(2))
        q = lambda a: LINALG.qr(a, full_matrices=True, pivoting=pivoting)[0]
        for f in (q, jit(q)):
            moved = [np.asarray(f(a + h * t)) for h in (1e-6, -1e-6)]
            np.testing.assert_allclose(jvp(f, (a,), (t,))[1], (moved[0] - moved[1]) / 2e-6, atol=2e-8)
        weights = jnp.arange(1.0, 1 + shape[0] ** 2).reshape(shape[0], -1)
        slope = hessian(lambda x: jnp.sum(jnp.sin(q(x * a) * weights)).real)(jnp.cos(jnp.ones(shape)))
        slope = np.asarray(slope).reshape(a.size, a.size)
        np.testing.assert_allclose(slope, slope.T, atol=1e-8)  # of a function's second derivatives


def test_completing_columns_of_the_smallest_reflections() -> None:
    """A column at a right angle to its axis is reflected by a factor of 1, the smallest that there is but none."""
    with enable_x64(True):
        q = lambda a: LINALG.qr(a, full_matrices=True)[0]
        a, t = jnp.array([[0.01], [1.0], [0.5]]), jnp.array([[0.3], [-0.2], [0.7]])
        moved = [np.asarray(q(a + h * t)) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(jvp(q, (a,), (t,))[1], (moved[0] - moved[1]) / 2e-6, atol=2e-8)


def test_completing_columns_where_nothing_is_reflected() -> None:
    # A column that is a multiple of an axis is reflected by nothing, and next to it by a whole turn.
    q, t = jvp(lambda a: LINALG.qr(a, full_matrices=True)[0], (jnp.eye(4, 2),), (jnp.ones((4, 2)),))
    np.testing.assert_allclose(q, jnp.eye(4))
    np.testing.assert_allclose(t + t.T, 0, atol=1e-6)
    np.testing.assert_allclose(t[:2, 2:], -1)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_eigenvalues_have_one_order_in_eager_and_compiled_code(dtype: Any) -> None:
    parts = np.random.default_rng(0).normal(size=(2, 8, 10, 10))
    x = jnp.asarray((parts[0] + 1j * parts[1] if dtype is np.complex64 else parts[0]).astype(dtype))
    values, left, right = LINALG.eig(x)
    for got, want in zip((values, left, right), jit(LINALG.eig)(x), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-3)
    np.testing.assert_allclose(jnp.linalg.eigvals(x), jit(jnp.linalg.eigvals)(x), atol=1e-3)
    np.testing.assert_allclose(x @ right, right * values[:, None], atol=1e-3)
    adjoint = left.conj().mT
    np.testing.assert_allclose(adjoint @ x, adjoint * values[..., None], atol=1e-3)


def test_the_gradient_of_a_determinant_decomposes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.asarray(
        np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32) + 10 * np.eye(100, dtype="f")
    )
    calls: list[Any] = []
    factors = lu.host_factors
    for module in (lu, determinants):
        monkeypatch.setattr(module, "host_factors", lambda a: (calls.append(a.shape), factors(a))[1])
    (sign, logarithm), pull = pullback.vjp(lambda x: tuple(jnp.linalg.slogdet(x)), x)
    (found,) = pull((jnp.zeros(()), jnp.ones(())))
    assert calls == [(100, 100)]
    np.testing.assert_allclose(found, np.linalg.inv(x).T, 1e-4, 1e-5)
    for one, alone in zip((sign, logarithm), jnp.linalg.slogdet(x), strict=True):
        assert one == alone
    (grad_of_complex,) = pullback.vjp(lambda x: jnp.linalg.slogdet(x)[1], x + 1j * x.T)[1](jnp.ones(()))
    np.testing.assert_allclose(grad_of_complex, np.linalg.inv(np.asarray(x + 1j * x.T)).T, 1e-4, 1e-5)
