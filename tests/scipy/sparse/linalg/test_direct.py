"""Sparse equations by factorisation: solutions, derivatives by elements and right sides, batches, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as oracle

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.derivatives import sparse_jacobian
from pullback.experimental.sparse import BCOO, BCSR
from pullback.experimental.sparse import grad as sparse_grad
from pullback.scipy.sparse import linalg
from pullback.scipy.sparse.linalg import factors
from pullback.test_util import check_grads
from tests.helpers import largest_difference

RNG = np.random.default_rng(0)
MATRIX = ((RNG.random((6, 6)) < 0.4) * RNG.normal(size=(6, 6)) + 3 * np.eye(6))[RNG.permutation(6)]
I, J = (np.concatenate([x, [2, 6]]) for x in np.nonzero(MATRIX))  # an element in two parts, and padding
INDICES = np.stack([I, np.concatenate([J[:-2], [J[I == 2][0], 6]])], axis=1)
DATA = np.concatenate([MATRIX[np.nonzero(MATRIX)], [0.25, 7.0]])
SIDE = RNG.normal(size=(6, 2))


def matrix(data: Any) -> BCOO:
    return BCOO((data, INDICES), shape=(6, 6))


def dense(data: Any) -> Any:
    return matrix(data).todense()


def dense_slogdet(data: Any) -> Any:
    return jnp.stack(jnp.linalg.slogdet(dense(data)))


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "spsolve": (lambda d, b: linalg.spsolve(matrix(d), b), lambda d, b: jnp.linalg.solve(dense(d), b)),
    "natural": (lambda d, b: linalg.splu(matrix(d), "NATURAL").solve(b), lambda d, b: jnp.linalg.solve(dense(d), b)),
    "transposed": (lambda d, b: linalg.splu(matrix(d)).solve(b, "T"), lambda d, b: jnp.linalg.solve(dense(d).T, b)),
    "adjoint": (
        lambda d, b: linalg.splu(matrix(d)).solve(b, "H"), lambda d, b: jnp.linalg.solve(dense(d).T.conj(), b)
    ),
    "factorized": (
        lambda d, b: linalg.factorized(BCSR.from_bcoo(matrix(d)))(b), lambda d, b: jnp.linalg.solve(dense(d), b)
    ),
    "slogdet": (lambda d, b: jnp.stack(linalg.slogdet(matrix(d))) * b[0, 0], lambda d, b: dense_slogdet(d) * b[0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_dense_matrices(name: str, transform: Any) -> None:
    def program(f: Any, d: Any, b: Any) -> Any:
        scalar = lambda d, b: jnp.sin(f(d, b)).sum()
        out, moved = jvp(f, (d, b), (jnp.cos(d), b + 1))
        batches = vmap(f, (None, 0))(d, jnp.stack([b, 2 * b, b])), vmap(f, (0, None))(jnp.stack([d, 2 * d]), b)
        return out, moved, grad(scalar, (0, 1))(d, b), hessian(scalar, (0, 1))(d, b), batches

    ours, theirs = CASES[name]
    with enable_x64():
        d, b = jnp.array(DATA), jnp.array(SIDE)
        found = transform(lambda d, b: program(ours, d, b))(d, b)
        assert largest_difference(found, program(theirs, d, b)) < 1e-12


def test_finite_differences_agree_to_the_second_order_also_of_complex_matrices() -> None:
    with enable_x64():
        check_grads(lambda d: linalg.spsolve(matrix(d), SIDE[:, 0]), (jnp.array(DATA),), 2)
        data, b = jnp.array(DATA * (1 + 0.5j)), jnp.array(SIDE[:, 0] * 1j)
        for name in CASES:
            ours, theirs = CASES[name]
            if name == "slogdet":
                ours, theirs = (lambda d, b: linalg.slogdet(matrix(d)).logabsdet), (lambda d, b: dense_slogdet(d)[1])
            scalar = lambda f: lambda d, b: jnp.abs(f(d, b)).sum()
            for argnum in (0, 1):
                found = grad(scalar(ours), argnum)(data, b[:, None])
                assert largest_difference(found, grad(scalar(theirs), argnum)(data, b[:, None])) < 1e-12
        sign = lambda f: lambda t: f(data * jnp.exp(1j * t))[0]
        slopes = [jvp(sign(f), (0.3,), (1.0,)) for f in (lambda d: linalg.slogdet(matrix(d)), dense_slogdet)]
        assert largest_difference(*slopes) < 1e-12


def test_the_gradient_by_a_sparse_matrix_has_its_pattern() -> None:
    b = jnp.array(SIDE[:, 0], "float32")
    found = sparse_grad(lambda a: linalg.spsolve(a, b).sum())(matrix(jnp.array(DATA, "float32")))
    assert isinstance(found, BCOO)
    np.testing.assert_array_equal(found.indices, INDICES)
    assert found.data[-1] == 0  # padding
    first = np.flatnonzero((INDICES[:-2] == INDICES[-2]).all(axis=1))[0]
    np.testing.assert_allclose(found.data[-2], found.data[first])


def test_equations_with_scipys_matrices_are_solved_as_by_scipy() -> None:
    grid = sp.csr_array(sp.kronsum(*[sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(8, 8))] * 2))
    b = RNG.normal(size=64)
    with enable_x64():
        expected = oracle.spsolve(grid.tocsc(), b)
        np.testing.assert_allclose(linalg.spsolve(grid, b), expected, rtol=1e-12)
        lu, theirs = linalg.splu(grid), oracle.splu(grid.tocsc())
        np.testing.assert_allclose(lu.solve(b), expected, rtol=1e-12)
        np.testing.assert_allclose(lu.slogdet()[1], np.linalg.slogdet(grid.toarray())[1], rtol=1e-12)
        np.testing.assert_array_equal(lu.perm_c, theirs.perm_c)
        assert lu.nnz == theirs.nnz
        rows = sp.csc_array((np.ones(64), (lu.perm_r, np.arange(64))))
        columns = sp.csc_array((np.ones(64), (np.arange(64), lu.perm_c)))
        assert abs(rows.T @ (lu.L @ lu.U) @ columns.T - grid).max() < 1e-12
        twice = jit(lambda lu, b: lu.solve(lu.solve(b)))(lu, b)  # a factorisation is an argument of programs
        np.testing.assert_allclose(twice, oracle.spsolve(grid.tocsc(), expected), rtol=1e-12)


def test_a_sparse_jacobian_is_solved_with_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    f = lambda x: x**3 + 0.1 * jnp.concatenate([x[1:], x[:1]])
    made = []
    original = factors.Columns.__init__
    monkeypatch.setattr(factors.Columns, "__init__", lambda *args: made.append(1) or original(*args))
    with enable_x64():
        x, jacobian = jnp.linspace(1.0, 2.0, 30), sparse_jacobian(f)
        for _ in range(20):
            x = x - linalg.spsolve(jacobian(x), f(x) - 2.0)
        np.testing.assert_allclose(f(x), 2.0, rtol=1e-14)
    assert len(made) <= 1  # every Jacobian has the positions of the first


def test_the_factorisation_is_computed_once_for_all_derivatives_of_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    count = []
    original = oracle.splu
    monkeypatch.setattr(oracle, "splu", lambda *args, **kwargs: count.append(1) or original(*args, **kwargs))
    data = jnp.array(DATA * 1.5, "float32")  # elements that no other test has
    b = jnp.array(SIDE[:, 0], "float32")
    f = lambda d, b: jnp.sin(linalg.spsolve(matrix(d), b)).sum()
    grad(f, (0, 1))(data, b)
    jit(grad(f, (0, 1)))(data, b)
    vmap(f, (None, 0))(data, jnp.stack([b, b]))
    assert len(count) == 1


def test_results_that_are_kept_are_not_those_of_memory_that_was_written_anew() -> None:
    kept = factors.Kept(2, 1000)
    x = np.array([1, 2], np.int32)
    found = lambda: kept.find("key", [x], lambda: (x.tolist(), 0))
    assert found() == [1, 2]
    x[:] = [2, 1]  # in the same memory, with the same sum
    assert found() == [2, 1]
    assert found() is found()


def test_results_that_are_kept_are_limited_in_number_and_size() -> None:
    kept = factors.Kept(2, 1000)
    calls: list[int] = []

    def find(value: int, size: int = 0) -> Any:
        return kept.find("key", [np.full(4, value, np.int32)], lambda: (calls.append(value) or value, size))

    assert [find(1), find(2), find(1), find(3), find(1)] == [1, 2, 1, 3, 1]
    assert calls == [1, 2, 3]
    assert find(2) == 2  # was dropped: the others were needed later
    assert find(4, 2000) == 4
    assert [r[1] for r in kept.results.values()] == [4]
    same_sum = [np.array([0, 3], np.int32), np.array([1, 2], np.int32)]
    assert [kept.find("sum", [x], lambda x=x: (x[0], 0)) for x in same_sum] == [0, 1]


SINGULAR = BCOO.fromdense(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
EMPTY_ROW = BCOO.fromdense(jnp.array([[1.0, 2.0], [0.0, 0.0]]))
ONES = jnp.ones(2)


def test_singular_matrices() -> None:
    for a, text in ((SINGULAR, "is singular: factor is exactly singular"), (EMPTY_ROW, "singular: row 1 has no elem")):
        for f in (linalg.splu, linalg.factorized, lambda a: linalg.spsolve(a, ONES)):
            with pytest.raises(errors.SingularMatrixError, match=text):
                f(a)
        with pytest.raises(errors.SingularMatrixError, match=text):
            jit(linalg.spsolve)(a, ONES)
    assert linalg.slogdet(SINGULAR) == (0, -np.inf)
    assert np.isnan(linalg.spsolve(BCOO.fromdense(jnp.array([[np.nan, 1.0], [1.0, 1.0]])), ONES)).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.spsolve(jnp.eye(2), ONES), errors.OperandError, "must be a sparse matrix .*BCOO.fromdense"),
        (
            lambda: linalg.splu(BCOO.fromdense(jnp.ones((2, 3)))),
            errors.ShapeError,
            r"square matrix, got shape \(2, 3\)",
        ),
        (lambda: linalg.spsolve(EMPTY_ROW, jnp.ones(3)), errors.ShapeError, r"b must have shape \(2,\) or \(2, k\)"),
        (lambda: linalg.spsolve(EMPTY_ROW, EMPTY_ROW), errors.OperandError, "b must be a dense array"),
        (lambda: linalg.slogdet(BCOO.fromdense(jnp.ones((2, 2, 2)), n_batch=1)), errors.ShapeError, "use vmap"),
        (lambda: linalg.splu(EMPTY_ROW, "best"), errors.ArgumentError, "permc_spec must be one of NATURAL"),
        (lambda: linalg.splu(EMPTY_ROW, options=3), errors.ArgumentError, "options must be a mapping"),
        (lambda: linalg.splu(2 * BCOO.fromdense(jnp.eye(2))).solve(ONES, "X"), errors.ArgumentError, "one of N, T, H"),
        (lambda: linalg.splu(EMPTY_ROW.astype("float16")), errors.DtypeError, "32 bits or more, got f16"),
        (lambda: jit(lambda a: linalg.splu(a).nnz)(SINGULAR), errors.ConcretizationTypeError, "outside of the transf"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
