"""Eigenvalues, singular values and exponentials of sparse matrices, against those of dense ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as oracle

import pullback.numpy as jnp
import pullback.scipy.linalg as dense
from pullback import errors, grad, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.experimental.sparse import BCOO
from pullback.scipy.sparse import linalg
from pullback.test_util import check_grads
from tests.helpers import largest_difference

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(7, 7)) * (RNG.random((7, 7)) < 0.5) + np.diag(np.arange(7))
I, J = np.nonzero(np.tril(SQUARE))
LOWER = SQUARE[I, J]
WIDE = RNG.normal(size=(5, 7)) * (RNG.random((5, 7)) < 0.7)
AT = np.concatenate([np.stack(np.nonzero(WIDE), axis=1), [[5, 7]]])  # and padding
PARTS = np.concatenate([WIDE[np.nonzero(WIDE)], [9.0]])
VECTOR = RNG.normal(size=7)


def hermitian(lower: Any) -> BCOO:
    """The matrix with this lower triangle; the upper one is padding where it would repeat the diagonal."""
    above = np.where((I == J)[:, None], 7, np.stack([J, I], axis=1))
    data = jnp.concatenate([lower, jnp.conj(lower)])
    return BCOO((data, np.concatenate([np.stack([I, J], axis=1), above])), shape=(7, 7))


def rectangular(data: Any) -> BCOO:
    return BCOO((data, AT), shape=(5, 7))


def pictures(values: Any, vectors: Any, others: Any) -> Any:
    """What does not depend on the signs of the vectors."""
    return jnp.cos(values).sum() + ((vectors * values**2) @ others)[0].sum()


def by_eigsh(lower: Any, **options: Any) -> Any:
    values, vectors = linalg.eigsh(hermitian(lower), 3, which="LA", **options)
    return pictures(values, vectors, vectors.T.conj())


def by_eigh(lower: Any) -> Any:
    values, vectors = jnp.linalg.eigh(hermitian(lower).todense())
    return pictures(values[-3:], vectors[:, -3:], vectors[:, -3:].T.conj())


def by_svds(data: Any) -> Any:
    u, s, vh = linalg.svds(rectangular(data), 2)
    return pictures(s, u, vh)


def by_svd(data: Any) -> Any:
    u, s, vh = jnp.linalg.svd(rectangular(data).todense(), full_matrices=False)
    return pictures(s[:2], u[:, :2], vh[:2])


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]] = {
    "eigsh": (by_eigsh, by_eigh, LOWER),
    "svds": (by_svds, by_svd, PARTS),
    "singular values": (
        lambda d: jnp.sin(linalg.svds(rectangular(d), 3, return_singular_vectors=False)).sum(),
        lambda d: jnp.sin(jnp.linalg.svd(rectangular(d).todense(), compute_uv=False)[:3]).sum(),
        PARTS,
    ),
    "expm_multiply": (
        lambda d: jnp.sin(linalg.expm_multiply(hermitian(d) * 0.2, VECTOR)).sum(),
        lambda d: jnp.sin(dense.expm(hermitian(d).todense() * 0.2) @ VECTOR).sum(),
        LOWER,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_dense_matrices(name: str) -> None:
    def program(f: Any, d: Any) -> Any:
        t = jnp.cos(d)
        second = jvp(grad(f), (d,), (t,))[1] if name != "expm_multiply" else t  # minutes of loops within loops
        return jvp(f, (d,), (t,)), grad(f)(d), second, vmap(f)(jnp.stack([d, 1.1 * d]))

    ours, theirs, data = CASES[name]
    with enable_x64():
        found = jit(lambda d: program(ours, d))(jnp.array(data))
        expected = program(theirs, jnp.array(data))
        assert largest_difference(found, expected) < 1e-9 * max(1, float(jnp.abs(expected[2]).max()))
        eager = ours(jnp.array(data)), grad(ours)(jnp.array(data))
        assert largest_difference(eager, (found[0][0], found[1])) < 1e-10


def test_finite_differences_of_vectors_agree() -> None:
    with enable_x64():
        check_grads(jit(lambda d: linalg.eigsh(hermitian(d), 2)), (jnp.array(LOWER),), 1)
        turned = jnp.array(LOWER) * jnp.where(I == J, 1, jnp.exp(0.7j))
        values, vectors = linalg.eigsh(hermitian(turned), 3)
        np.testing.assert_allclose(hermitian(turned) @ vectors, vectors * values, atol=1e-12)
        slope = lambda f: jvp(f, (turned,), (jnp.where(I == J, 1, 1j) * jnp.cos(turned.real),))[1]
        assert largest_difference(slope(by_eigsh), slope(by_eigh)) < 1e-10


def test_repeated_eigenvalues_have_first_derivatives() -> None:
    values = lambda d: linalg.eigsh(
        BCOO((d, np.stack([np.arange(5)] * 2, 1)), shape=(5, 5)), 2, return_eigenvectors=False
    )
    d = jnp.array([1.0, 3.0, 3.0, 0.5, 0.2])
    np.testing.assert_allclose(values(d), [3, 3], rtol=1e-6)
    np.testing.assert_allclose(jvp(lambda d: values(d).sum(), (d,), (jnp.arange(5.0),))[1], 3, rtol=1e-5)


def test_the_same_numbers_as_scipys() -> None:
    lines = [sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in (6, 9)]
    grid = sp.csr_array(sp.kronsum(*lines))
    with enable_x64():
        for options in ({"which": "SA"}, {"which": "BE"}, {"sigma": 0.3}, {"which": "SM", "tol": 1e-8}):
            found = linalg.eigsh(grid, 4, **options, return_eigenvectors=False)
            np.testing.assert_allclose(found, np.sort(oracle.eigsh(grid, 4, **options)[0]), rtol=1e-7)
        b = RNG.normal(size=(54, 2))
        matrix = 3 * grid
        np.testing.assert_allclose(linalg.expm_multiply(matrix, b), oracle.expm_multiply(matrix, b), rtol=1e-11)
        for end in (True, False):
            series = partial(linalg.expm_multiply, start=0.1, stop=0.5, num=4, endpoint=end)
            found = jit(series)(BCOO.from_scipy_sparse(matrix), b)
            np.testing.assert_allclose(found, oracle.expm_multiply(matrix, b, 0.1, 0.5, 4, endpoint=end), rtol=1e-11)
        slope = jvp(lambda t: linalg.expm_multiply(matrix, b[:, 0], 0.0, t, 2)[1], (0.4,), (1.0,))[1]
        np.testing.assert_allclose(slope, matrix @ oracle.expm_multiply(0.4 * matrix, b[:, 0]), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: linalg.eigsh(a, 7), errors.ArgumentError, "k must be positive and less than 7, got 7"),
        (lambda a: linalg.eigsh(a, 2, which="XX"), errors.ArgumentError, "which must be one of LM, SM, LA"),
        (lambda a: linalg.eigsh(a, 2, v0=np.ones(3)), errors.ShapeError, r"v0 must have shape \(7,\)"),
        (lambda a: linalg.eigsh(rectangular(PARTS), 2), errors.ShapeError, "square matrix"),
        (
            lambda a: linalg.eigsh(BCOO.fromdense(jnp.arange(9.0).reshape(3, 3)), 1), errors.OperandError,
            "must be Hermitian, but an element and its mirror image differ by 4",
        ),
        (lambda a: linalg.svds(a, 0), errors.ArgumentError, "k must be positive"),
        (lambda a: linalg.svds(a, 2, which="LA"), errors.ArgumentError, "one of LM, SM"),
        (lambda a: linalg.expm_multiply(a, VECTOR, 0.0), errors.ArgumentError, "both start and stop"),
        (lambda a: linalg.expm_multiply(a, VECTOR[:3]), errors.ShapeError, r"b must have shape \(7,\)"),
        (lambda a: linalg.expm_multiply(a, VECTOR, 0.0, 1.0, 0), errors.ArgumentError, "num must be at least 1"),
    ],
)  # fmt: skip
def test_bad_input(call: Callable[[Any], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(hermitian(jnp.array(LOWER, "float32")))
