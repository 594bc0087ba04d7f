"""Functions of matrices and decompositions under SciPy's names: properties, derivatives, and bad input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback.numpy as jnp
from pullback import jit, jvp
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.scipy import linalg

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(4, 4))
SHIFTED = SQUARE + 4 * np.eye(4)


@pytest.mark.slow
def test_functions_of_matrices_compiled() -> None:
    def all_of(a: Any) -> Any:
        root, log, sign = linalg.sqrtm(a), linalg.logm(a), linalg.signm(a - 4 * jnp.eye(4))
        stein = linalg.solve_discrete_lyapunov(a / 8, a)
        sylvester = linalg.solve_sylvester(a, a.T, a)
        return {
            "root": root @ root - a, "log": linalg.expm(log) - a, "sign": sign @ sign - jnp.eye(4),
            "stein": a @ stein @ a.T / 64 - stein + a, "sylvester": a @ sylvester + sylvester @ a.T - a,
            "funm": linalg.funm(a, jnp.exp) - linalg.expm(a),
            "polar": jnp.matmul(*linalg.polar(a)) - a, "left": jnp.matmul(*linalg.polar(a, "left")[::-1]) - a,
            "rsf2csf": (lambda t, z: z @ t @ z.conj().T - a)(*linalg.rsf2csf(*linalg.schur(a))),
            "hessenberg": (lambda h, q: q @ h @ q.T - a)(*linalg.hessenberg(a, calc_q=True)),
        }  # fmt: skip

    with enable_x64():
        for found in (all_of(jnp.array(SHIFTED)), jit(all_of)(jnp.array(SHIFTED))):
            for name, x in found.items():
                assert abs(x).max() < 1e-10, name


@pytest.mark.slow
def test_scaling_is_not_overdone() -> None:
    """Of a nilpotent part of great norm the exponential is exact, since powers are measured and not the norm."""
    a = np.array([[1.0, 1e6], [0.0, -1.0]])
    with enable_x64():
        expm = partial(linalg.expm, max_squarings=40)
        for f in (expm, jit(expm)):
            np.testing.assert_allclose(f(a), [[np.e, 1e6 * np.sinh(1)], [0, 1 / np.e]], rtol=1e-14)


@pytest.mark.slow
def test_what_has_no_root_or_logarithm_or_solution() -> None:
    nilpotent, singular = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.diag(jnp.array([1.0, 0.0]))

    def all_of(x: Any, y: Any) -> Any:
        return [
            linalg.sqrtm(x), linalg.logm(y), linalg.solve_sylvester(y, -y, y), linalg.solve_continuous_lyapunov(x, x),
            linalg.solve_discrete_lyapunov(jnp.eye(2), x), linalg.signm(x), linalg.expm(1e7 * y),
        ]  # fmt: skip

    for found in (all_of(nilpotent, singular), jit(all_of)(nilpotent, singular)):
        assert [bool(jnp.isnan(x).all()) for x in found] == [True] * 7
    np.testing.assert_array_equal(linalg.sqrtm(singular), singular)
    np.testing.assert_allclose(linalg.logm(-jnp.eye(2)), np.pi * 1j * np.eye(2), rtol=1e-6)


@pytest.mark.slow
def test_derivative_of_the_exponential_is_the_frechet_derivative() -> None:
    with enable_x64():
        a, e = jnp.array(SQUARE), jnp.array(SHIFTED)
        pushed = jit(lambda a, e: jvp(linalg.expm, (a,), (e,))[1])(a, e)
        np.testing.assert_allclose(pushed, scipy.linalg.expm_frechet(SQUARE, SHIFTED)[1], rtol=1e-12)
        np.testing.assert_allclose(linalg.expm_frechet(a, e, compute_expm=False), pushed, rtol=1e-12)


# Bad input ---------------------------------------------------------------------------------------------------------

A = jnp.array([[4.0, 1.0], [1.0, 3.0]])
B = jnp.ones(2)
REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: linalg.expm(B), ShapeError, "square"),
    (lambda: linalg.expm(A.astype("float16")), DtypeError, "float16|f16"),
    (lambda: linalg.expm(A, max_squarings=-1), ArgumentError, "max_squarings must not be negative, got -1"),
    (lambda: linalg.expm_frechet(A, A[None]), ShapeError, "A and E must have the same shape"),
    (lambda: linalg.funm(A[None], jnp.exp), ShapeError, "one square matrix, got shape"),
    (lambda: linalg.funm(A, 3), ArgumentError, "func must be a function"),
    (lambda: linalg.funm(A, jnp.sum), DtypeError, "must return an array of the shape of its argument"),
    (lambda: linalg.polar(A, "up"), ArgumentError, "side must be 'right' or 'left', got 'up'"),
    (lambda: linalg.schur(A, "x"), ArgumentError, "output must be 'real' or 'complex', got 'x'"),
    (lambda: linalg.rsf2csf(A, B), ShapeError, "square matrices of one shape"),
    (lambda: linalg.qr(A, mode="x"), ArgumentError, "mode must be"),
    (lambda: linalg.qr(A, mode="raw", pivoting=True), UnsupportedArgumentError, "does not support pivoting"),
    (lambda: linalg.qr_multiply(A, jnp.ones(3)), ShapeError, "c must have 2 columns"),
    (lambda: linalg.eigh(A, A[:1]), ShapeError, "the same shape"),
    (lambda: linalg.eigh(A, type=4), ArgumentError, "type must be 1, 2 or 3, got 4"),
    (lambda: linalg.eigh(A, eigvals=(0, 2)), ArgumentError, "0 <= first <= last < 2"),
    (lambda: linalg.eigh_tridiagonal(B, B), ShapeError, "one element less than d"),
    (lambda: linalg.eigh_tridiagonal(B, B[:1], select="v"), UnsupportedArgumentError, "select='v'"),
    (lambda: linalg.solve_sylvester(A, A, A[:1]), ShapeError, "must have 2 rows and 2 columns"),
    (lambda: linalg.solve_sylvester(A, A, A, method="x"), ArgumentError, "'schur' or 'eigen', got 'x'"),
    (lambda: linalg.hadamard(3), ArgumentError, "n must be a power of two, got 3"),
    (lambda: linalg.helmert(0), ArgumentError, "n must be at least 1, got 0"),
    (lambda: linalg.dft(3, "x"), ArgumentError, "scale must be None, 'sqrtn' or 'n', got 'x'"),
    (lambda: linalg.dft(3, dtype=float), ArgumentError, "dtype must be complex"),
    (lambda: linalg.pascal(3, "x"), ArgumentError, "kind must be one of"),
    (lambda: linalg.leslie(B, B), ShapeError, "one element less than f"),
    (lambda: linalg.leslie(B[:1], B[:0]), ShapeError, "f must have at least 2 elements"),
    (lambda: linalg.companion(jnp.ones(1)), ShapeError, "at least 2 elements"),
    (lambda: linalg.hankel(1.0), ShapeError, "at least one axis, got a number"),
    (lambda: linalg.convolution_matrix(B, 0), ArgumentError, "n must be at least 1, got 0"),
    (lambda: linalg.block_diag(A[None]), ShapeError, "argument 0 must have at most two axes"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# From real to complex Schur forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 10])
def test_complex_schur_forms_of_real_ones(n: int) -> None:
    rng = np.random.default_rng(n)
    with enable_x64():
        for _ in range(10):
            a = rng.normal(size=(n, n))
            t, z = map(np.asarray, linalg.rsf2csf(*scipy.linalg.schur(a)))
            np.testing.assert_allclose(z @ z.conj().T, np.eye(n), atol=1e-13)
            np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
            np.testing.assert_array_equal(np.tril(t, -1), 0)


def test_complex_schur_forms_of_neighbouring_blocks() -> None:
    t = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, -5, -2], [0, 0, 2, -5]])
    with enable_x64():
        triangular, z = map(np.asarray, jit(linalg.rsf2csf)(t, np.eye(4)))
        np.testing.assert_allclose(z @ triangular @ z.conj().T, t, atol=1e-14)


def test_complex_schur_forms_of_batches() -> None:
    with enable_x64():
        batch = np.stack([scipy.linalg.schur(RNG.normal(size=(4, 4)))[0] for _ in range(3)])
        t, z = map(np.asarray, linalg.rsf2csf(batch, np.eye(4)))
        assert t.shape == z.shape == (3, 4, 4)
        np.testing.assert_allclose(z @ t @ z.conj().swapaxes(-1, -2), batch, atol=1e-13)
    with pytest.raises(ShapeError, match="square matrices of one shape"):
        linalg.rsf2csf(np.eye(3), np.eye(4))


def test_hermitian_tridiagonal_matrices() -> None:
    rng = np.random.default_rng(0)
    d, e = rng.normal(size=5).astype(np.complex64), (rng.normal(size=4) + 1j * rng.normal(size=4)).astype(np.complex64)
    a = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    w, v = linalg.eigh_tridiagonal(d, e)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-5)
    np.testing.assert_allclose(a @ np.asarray(v), np.asarray(v * w), atol=1e-5)
