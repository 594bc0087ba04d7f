"""Solvers of linear equations that take products with a matrix: solutions, derivatives, and bad input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, jvp, tree_util, vjp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, IntegerRangeError, OperandError, ShapeError
from pullback.experimental.sparse import BCOO
from pullback.scipy.sparse import linalg as sparse
from pullback.scipy.sparse.linalg import systems
from tests.helpers import largest_difference

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(4, 4))
SHIFTED = SQUARE + 4 * np.eye(4)
SIDE = RNG.normal(size=4)


SOLVERS: dict[str, Any] = {
    "cg": lambda a, b: sparse.cg(a, b, tol=1e-13)[0],
    "minres": lambda a, b: sparse.minres(a, b, tol=1e-13)[0],
    "bicgstab": lambda a, b: sparse.bicgstab(a, b, tol=1e-13)[0],
    "gmres": lambda a, b: sparse.gmres(a, b, tol=1e-13, restart=4)[0],
    "lsqr": lambda a, b: sparse.lsqr(a, b, atol=1e-14, btol=1e-14).x,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_have_the_derivatives_of_the_solution(name: str) -> None:
    def program(solve: Any, a: Any, b: Any) -> Any:
        a = a @ a.T if name == "cg" else a + a.T if name == "minres" else a
        x, back = vjp(solve, a, b)
        if name != "cg":  # what follows is alike for all
            return x, back(b)
        second = jvp(lambda b: vjp(solve, a, b)[1](b)[0], (b,), (b,))[1]
        return x, jvp(solve, (a, b), (a.T, b))[1], back(b), second, vmap(solve, (None, 1))(a, a)

    with enable_x64():
        a, b = jnp.array(SHIFTED), jnp.array(SIDE)
        found = jit(lambda a, b: program(SOLVERS[name], a, b))(a, b)
        assert largest_difference(found, program(jnp.linalg.solve, a, b)) < 1e-9
        if name in ("cg", "lsqr"):
            matrix = BCOO.fromdense(a @ a.T)
            assert largest_difference(SOLVERS[name](matrix, b), jnp.linalg.solve(a @ a.T, b)) < 1e-9


@pytest.mark.slow
def test_trees_preconditioners_and_starts() -> None:
    a = jnp.array(SHIFTED @ SHIFTED.T, "float32")
    inverse = jnp.linalg.inv(a) + 0.001 * jnp.eye(4)
    tree = {"x": jnp.ones((2, 2)), "y": jnp.ones(3)}
    for f in (sparse.cg, sparse.gmres):
        x, info = f(a, a @ jnp.arange(4.0), M=inverse, x0=jnp.ones(4), tol=1e-6)
        np.testing.assert_allclose(x, np.arange(4), atol=1e-3)
        assert info == 0
        x, info = f(lambda t: tree_util.tree_map(lambda leaf: 2 * leaf, t), tree)
        assert info == 0
        assert x["x"].shape == (2, 2)
        np.testing.assert_allclose(x["y"], 0.5, rtol=1e-5)


@pytest.mark.slow
def test_solvers_say_when_they_fail() -> None:
    a, b = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([1.0, 2.0])
    assert sparse.gmres(a, b)[1] > 0
    assert sparse.bicgstab(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), b)[1] == -10
    with enable_x64():
        double = jnp.array([1.0, 2.0])
        np.testing.assert_allclose(sparse.minres(jnp.diag(jnp.array([1.0, 0.0])), double)[0], double, rtol=1e-14)
    assert sparse.cg(jnp.array(SHIFTED @ SHIFTED.T, "float32"), jnp.arange(4.0), maxiter=1)[1] == 1
    assert sparse.lsqr(a, b, iter_lim=0).istop == 7


# Bad input ---------------------------------------------------------------------------------------------------------

A = jnp.array([[4.0, 1.0], [1.0, 3.0]])
B = jnp.ones(2)
REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: sparse.cg(A[:1], B), ShapeError, "square matrix, got shape"),
    (lambda: sparse.cg(A, jnp.ones(3)), ShapeError, "the first axis of b must have 2 elements"),
    (lambda: sparse.cg("A", B), OperandError, "a matrix, or a function"),
    (lambda: sparse.cg(A, {"b": B}), OperandError, "b must be an array if A is a matrix"),
    (lambda: sparse.cg(A, B, x0=jnp.ones(3)), ShapeError, "x0 must have the tree and shapes of b"),
    (lambda: sparse.cg(lambda x: x[:1], B), ShapeError, "A must map a tree like b"),
    (lambda: sparse.cg(A, B, M=lambda x: x[:1]), ShapeError, "M must map a tree like b"),
    (lambda: sparse.cg(A, B, maxiter=1.5), ArgumentError, "maxiter must be an integer"),
    (lambda: sparse.gmres(A, B, restart=0), ArgumentError, "restart must be at least 1, got 0"),
    (lambda: sparse.gmres(A, B, solve_method="x"), ArgumentError, "'batched' or 'incremental', got 'x'"),
    (lambda: sparse.lsqr(lambda x: x, B), ArgumentError, "pass x0, which shows"),
    (lambda: sparse.lsqr(A, jnp.ones(3)), ShapeError, "b must have shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


class Scaling:
    """An operator that has ``@`` and a shape, but no dtype."""

    shape = (4, 4)

    def __matmul__(self, x: Any) -> Any:
        return 2 * x


@pytest.mark.parametrize("solve", [sparse.cg, sparse.bicgstab, sparse.gmres])
def test_operators_and_several_right_sides(solve: Any) -> None:
    b = np.arange(8.0).reshape(4, 2)
    for a in (Scaling(), 2 * np.eye(4)):
        x, _ = solve(a, b)
        np.testing.assert_allclose(x, b / 2, atol=1e-5)
    np.testing.assert_allclose(solve(2 * np.eye(4), b, M=Scaling())[0], b / 2, atol=1e-5)


@pytest.mark.parametrize("solve", [sparse.cg, sparse.bicgstab, sparse.gmres])
def test_a_solution_for_a_number_has_a_weak_type(solve: Any) -> None:
    """As in JAX, if the product and the first guess have one as well."""
    narrow = jnp.ones((), "float16")
    for run in (solve, jit(solve, static_argnums=0)):
        x = run(lambda x: 2 * x, 1.0)[0]
        assert x.weak_type
        assert (x * narrow).dtype == narrow.dtype
        assert not run(lambda x: 2 * x, jnp.ones(()))[0].weak_type
        assert not run(lambda x: jnp.float32(2) * x, 1.0)[0].weak_type
    assert not solve(lambda x: 2 * x, 1.0, x0=jnp.zeros(()))[0].weak_type


def test_known_matrices_share_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call with a matrix of the same structure traces nothing, whatever its class, and finds its own x."""
    import scipy.sparse

    traced: list[str] = []
    original = systems.System.__init__

    def counted(self: Any, name: str, *rest: Any) -> None:
        traced.append(name)
        original(self, name, *rest)

    monkeypatch.setattr(systems.System, "__init__", counted)
    dense = np.asarray(SHIFTED @ SHIFTED.T, np.float32)
    classes = {
        "array": jnp.asarray, "NumPy": np.asarray, "BCOO": lambda a: BCOO.fromdense(jnp.asarray(a)),
        "SciPy": scipy.sparse.csr_array,
    }  # fmt: skip
    inverses = {
        "none": lambda a: None, "spilu": lambda a: sparse.spilu(scipy.sparse.csc_array(a)).solve,
        "ichol": lambda a: sparse.ichol(scipy.sparse.csc_array(a)),
        "jacobi": lambda a: sparse.jacobi(scipy.sparse.csc_array(a)),
    }  # fmt: skip
    for convert, inverse in [(c, inverses["none"]) for c in classes.values()] + [
        (classes["SciPy"], i) for i in inverses.values()
    ]:
        for scale in (1, 2):
            traced.clear()
            matrix = np.float32(scale) * dense
            x, _ = sparse.cg(convert(matrix), jnp.ones(4), M=inverse(matrix), tol=1e-6, maxiter=50)
            assert largest_difference(x, np.linalg.solve(matrix, np.ones(4))) < 1e-3
        assert not traced
    a = jnp.asarray(dense)
    for _ in range(2):  # what a function closes over is not known
        traced.clear()
        sparse.cg(lambda x: a @ x, jnp.ones(4))
    assert traced == ["cg"]


def test_methods_of_shared_programs_end_alike() -> None:
    """The number of steps, and info, are those of the method with a function that multiplies."""
    rng = np.random.default_rng(3)
    a = jnp.asarray(rng.normal(size=(30, 30)) + 6 * np.eye(30), "float32")
    b = jnp.asarray(rng.normal(size=30), "float32")
    for solver in (sparse.bicgstab, partial(sparse.gmres, restart=7)):
        for limit in (1, 2, None):
            x, info = solver(a, b, tol=1e-5, maxiter=limit)
            y, same = solver(lambda v: a @ v, b, tol=1e-5, maxiter=limit)
            assert info == same
            assert largest_difference(x, y) < 1e-4
    for least in (sparse.lsqr, sparse.lsmr):
        found, expected = least(a, b), least(lambda v: a @ v, b, x0=jnp.zeros(30))
        assert abs(int(found.itn) - int(expected.itn)) <= 1
        assert largest_difference(found.x, expected.x) < 1e-3


def test_gmres_keeps_its_vectors_orthogonal_where_they_are_nearly_dependent() -> None:
    """With one pass of orthogonalisation the residual of one cycle is 5e-12."""
    with enable_x64():
        i = np.arange(12)
        a = jnp.asarray(1 / (i[:, None] + i + 1.0))  # Hilbert's matrix, of condition 1e16
        b = a @ np.random.default_rng(0).normal(size=12)
        x, _ = sparse.gmres(a, b, tol=1e-15, restart=12, maxiter=1)
        assert np.linalg.norm(np.asarray(b) - np.asarray(a @ x)) < 1e-14 * np.linalg.norm(b)


def test_a_number_that_is_too_large_is_refused_by_name() -> None:
    with pytest.raises(IntegerRangeError, match=r"^cg: Python int 1099511627776 is too large"):
        sparse.cg(jnp.eye(3), jnp.ones(3), maxiter=2**40)
