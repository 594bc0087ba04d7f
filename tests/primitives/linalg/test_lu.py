"""The LU decomposition, systems of equations, inverses and determinants: what the table of operations does not show.

Refused operands, singular matrices, what derivatives cost, the functions under SciPy's names, and programs for
platforms without LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback.numpy as jnp
import pullback.scipy.linalg as jsl
from pullback import eval_shape, grad, hessian, jacfwd, jacrev, jit, jvp, lax, make_jaxpr, vmap
from pullback.backends.compiler.client import default_device
from pullback.backends.compiler.programs import Lowered
from pullback.backends.hlo import emit
from pullback.backends.hlo.module import Module
from pullback.core import tree
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.primitives.linalg.lapack import are_many_small
from pullback.test_util import check_grads
from tests.helpers import chosen, operations_of, plain, random, spread

Function = Callable[..., Any]
BOOLEANS = (False, True)
BOTH = pytest.mark.parametrize("compile_", [plain, jit], ids=["host", "compiled"])
DTYPES = pytest.mark.parametrize("dtype", ["float64", "complex128"])


# Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.linalg.lu(jnp.ones(3)), ShapeError, r"lu takes matrices .* got shape \(3,\)"),
        (lambda: lax.linalg.lu(2.0), ShapeError, r"lu takes matrices .* got shape \(\)"),
        (
            lambda: lax.linalg.lu(jnp.eye(2, dtype="float16")),
            DtypeError,
            "lu takes float32.* got f16; convert .* astype",
        ),
        (lambda: lax.linalg.lu(jnp.eye(2, dtype="int32")), DtypeError, "lu takes float32.* got i32"),
        (lambda: lax.linalg.lu([[1.0]]), OperandError, r"lax\.linalg\.lu: expected an array"),
        (
            lambda: lax.linalg.lu_pivots_to_permutation(jnp.array([1, 2, 2]), 2),
            ShapeError,
            r"at most permutation_size=2 pivots .* got shape \(3,\)",
        ),
        (lambda: lax.linalg.lu_pivots_to_permutation(jnp.ones(2), 2), DtypeError, "takes integers, got f32"),
        (lambda: lax.linalg.lu_pivots_to_permutation(1, 2), ShapeError, r"got shape \(\)"),
        (lambda: jnp.linalg.solve(jnp.ones((2, 3)), jnp.ones(2)), ShapeError, r"square .* got shape \(2, 3\)"),
        (lambda: jnp.linalg.solve(jnp.ones(3), jnp.ones(3)), ShapeError, r"square .* got shape \(3,\)"),
        (lambda: jnp.linalg.solve(jnp.eye(3), jnp.ones(4)), ShapeError, r"solve: b must .* 3 rows.* got shape \(4,\)"),
        (lambda: jnp.linalg.solve(jnp.eye(3), 1.0), ShapeError, r"3 rows, .* got shape \(\)"),
        (lambda: jnp.linalg.solve(jnp.ones((2, 3, 3)), jnp.ones((2, 3))), ShapeError, r"3 rows.* got shape \(2, 3\)"),
        (lambda: jnp.linalg.solve(jnp.ones((4, 2, 2)), jnp.ones((3, 2, 1))), ShapeError, "broadcast"),
        (lambda: jnp.linalg.solve([[1.0]], jnp.ones(1)), OperandError, r"linalg\.solve: expected an array"),
        (lambda: jnp.linalg.solve(jnp.eye(2, dtype="float16"), jnp.ones(2, "float16")), DtypeError, "got f16; convert"),
        (lambda: jnp.linalg.inv(jnp.ones((2, 3))), ShapeError, r"linalg\.inv takes square .* got shape \(2, 3\)"),
        (lambda: jnp.linalg.inv(jnp.eye(2, dtype="bfloat16")), DtypeError, "lu takes float32.* got bf16; convert"),
        (lambda: jnp.linalg.det(jnp.ones((2, 3))), ShapeError, r"det takes square .* got shape \(2, 3\)"),
        (lambda: jnp.linalg.det(jnp.ones(3)), ShapeError, r"det takes square .* got shape \(3,\)"),
        (lambda: jnp.linalg.det(jnp.eye(2, dtype="float16")), DtypeError, "det takes float32.* got f16"),
        (lambda: jnp.linalg.slogdet(jnp.ones((2, 3))), ShapeError, r"slogdet takes square .* got shape \(2, 3\)"),
        (lambda: jnp.linalg.slogdet(jnp.eye(2, dtype="bfloat16")), DtypeError, "slogdet takes float32.* got bf16"),
        (lambda: jnp.linalg.matrix_power(jnp.ones((2, 3)), -1), ShapeError, r"square .* got shape \(2, 3\)"),
        (lambda: jsl.lu(jnp.ones(3)), ShapeError, r"lu takes matrices .* got shape \(3,\)"),
        (lambda: jsl.lu_factor(jnp.ones(3)), ShapeError, r"lu takes matrices .* got shape \(3,\)"),
        (
            lambda: jsl.lu_solve((jnp.eye(3), jnp.array([0, 1])), jnp.ones(3)),
            ShapeError,
            r"factors of shape \(3, 3\) have pivots of shape \(3,\), got \(2,\)",
        ),
        (
            lambda: jsl.lu_solve((jnp.ones((3, 2)), jnp.array([0, 1])), jnp.ones(3)),
            ShapeError,
            r"lu_solve takes square matrices, got shape \(3, 2\)",
        ),
        (lambda: jsl.lu_solve(jsl.lu_factor(jnp.eye(3)), jnp.ones(4)), ShapeError, r"lu_solve: b must .* \(4,\)"),
        (lambda: jsl.lu_solve(jsl.lu_factor(jnp.eye(3)), jnp.ones(3), 3), ArgumentError, "lu_solve: trans .* got 3"),
        (
            lambda: jsl.solve(jnp.eye(3), jnp.ones(3), assume_a="banded"),
            ArgumentError,
            "assume_a must be one of 'gen', .* got 'banded'",
        ),
        (lambda: jsl.solve(jnp.ones((2, 3)), jnp.ones(2), assume_a="pos"), ShapeError, r"square .* got shape \(2, 3\)"),
        (lambda: jsl.inv(jnp.ones((2, 3))), ShapeError, r"square .* got shape \(2, 3\)"),
        (lambda: jsl.det(jnp.ones((2, 3))), ShapeError, r"square .* got shape \(2, 3\)"),
    ],
)
def test_errors(call: Function, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    with pytest.raises(error, match=f"(?s){message}"):
        eval_shape(call)


# Singular matrices -------------------------------------------------------------------------------------------------

SINGULAR = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("matrix", SINGULAR)
def test_singular_matrices_are_no_error(matrix: Any, dtype: str) -> None:
    with enable_x64():
        a, b = jnp.asarray(np.array(matrix, dtype)), jnp.asarray(np.array([1, 3], dtype))
        for function in (lambda a: jnp.linalg.solve(a, b), jnp.linalg.inv):
            host, compiled = np.asarray(function(a)), np.asarray(jit(function)(a))
            assert not np.isfinite(host).all()
            if host.dtype.kind == "f":
                np.testing.assert_array_equal(compiled, host)
            else:
                np.testing.assert_array_equal(np.isfinite(compiled), np.isfinite(host))
        for compile_ in (lambda f: f, jit):
            assert compile_(jnp.linalg.det)(a) == 0
            sign, logarithm = compile_(jnp.linalg.slogdet)(a)
            assert (sign, logarithm) == (0, -np.inf)
            factors, _, permutation = (np.asarray(x) for x in compile_(lax.linalg.lu)(a))
            lower, upper = np.tril(factors, -1) + np.eye(2), np.triu(factors)
            np.testing.assert_array_equal(lower @ upper, np.asarray(a)[permutation])
            assert upper[1, 1] == 0 or upper[0, 0] == 0


@BOTH
def test_one_singular_matrix_of_several(compile_: Function) -> None:
    a = jnp.asarray(np.array([np.eye(2), np.ones((2, 2)), 2 * np.eye(2)], np.float32))
    x = np.asarray(compile_(jnp.linalg.solve)(a, jnp.ones(2)))
    np.testing.assert_array_equal(x[[0, 2]], [[1, 1], [0.5, 0.5]])
    assert not np.isfinite(x[1]).all()


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_what_is_not_a_number(compile_: Function, dtype: str) -> None:
    a = np.array([[np.nan, 1], [2, 3]], dtype)
    for x in (*compile_(jnp.linalg.slogdet)(a), compile_(jnp.linalg.det)(a)):
        assert np.isnan(x)
    several = np.asarray(compile_(jnp.linalg.slogdet)(np.stack([a, np.eye(2, dtype=dtype)])).sign)
    assert several[1] == 1
    assert np.isnan(several[0])
    assert np.isnan(np.asarray(compile_(jnp.linalg.solve)(a, np.ones(2, dtype)))).any()


# Derivatives of systems --------------------------------------------------------------------------------------------


def test_a_derivative_costs_one_more_solution() -> None:
    a, b = jnp.asarray(random(3, 3)), jnp.asarray(random(3))
    f = lambda a, b: jnp.linalg.solve(a, b).sum()
    derivatives: list[tuple[Function, int]] = [
        (f, 1),
        (grad(f, (0, 1)), 2),
        (lambda a, b: jvp(f, (a, b), (a, b)), 2),
        (lambda a, b: jvp(grad(f, (0, 1)), (a, b), (a, b)), 4),
    ]
    for function, solutions in derivatives:
        found = operations_of(make_jaxpr(function)(a, b))
        assert (found.count("lu"), found.count("linear_solve")) == (1, solutions)


@DTYPES
@BOTH
@pytest.mark.parametrize("b", [(3,), (3, 2), (2, 3, 1)], ids=str)
def test_derivatives_to_the_third_order(compile_: Function, b: tuple[int, ...], dtype: str) -> None:
    with enable_x64():
        x, y = jnp.asarray(random(3, 3, dtype=dtype)), jnp.asarray(random(*b, dtype=dtype))
        order = 1 if compile_ is jit else 3 if b == (3,) and dtype == "float64" else chosen(2, 3)
        check_grads(compile_(jnp.linalg.solve), (x, y), order=order)


def test_known_derivatives() -> None:
    with enable_x64():
        a, b = jnp.asarray(random(4, 4)), jnp.asarray(random(4))
        inverse = np.linalg.inv(np.asarray(a))
        for jacobian in (jacfwd, jacrev):
            np.testing.assert_allclose(jacobian(lambda b: jnp.linalg.solve(a, b))(b), inverse, rtol=1e-10)
            of_inverse = -np.einsum("ij,kl->iljk", inverse, inverse)
            np.testing.assert_allclose(jacobian(jnp.linalg.inv)(a), of_inverse, rtol=1e-9)
            of_logarithm = jacobian(lambda a: jnp.linalg.slogdet(a).logabsdet)
            np.testing.assert_allclose(of_logarithm(a), inverse.T, rtol=1e-10)
            np.testing.assert_allclose(
                jacobian(of_logarithm)(a), -np.einsum("ij,kl->jkli", inverse, inverse), rtol=1e-9
            )
            np.testing.assert_allclose(jacobian(jnp.linalg.det)(a), np.linalg.det(a) * inverse.T, rtol=1e-9)


def test_what_a_solution_is_of_is_not_differentiated_twice() -> None:
    """The factors change with the matrix too: that is in the derivative with respect to the matrix."""
    with enable_x64():
        a = jnp.asarray(random(3, 3))
        f = lambda t: jnp.linalg.solve(a + t * a, jnp.ones(3)).sum()
        np.testing.assert_allclose(grad(f)(0.0), -f(0.0), rtol=1e-10)
        np.testing.assert_allclose(grad(grad(grad(f)))(0.0), -6 * f(0.0), rtol=1e-9)


@pytest.mark.slow
@DTYPES
def test_derivatives_through_the_functions(dtype: str) -> None:
    with enable_x64():
        a, b = jnp.asarray(random(3, 3, dtype=dtype)), jnp.asarray(random(3, dtype=dtype))
        order = chosen(1 if dtype == "complex128" else 2, 2)
        for trans in (0, 1, 2):
            check_grads(lambda a, b, trans=trans: jsl.lu_solve(jsl.lu_factor(a), b, trans), (a, b), order=order)
        for kind in ("gen", "sym", "her", "upper triangular"):
            check_grads(lambda a, b, kind=kind: jsl.solve(a, b, assume_a=kind), (a, b), order=order)
        check_grads(lambda a: jsl.lu(a)[1:], (a,), order=order)
        check_grads(lambda a: jsl.lu(a, permute_l=True), (a,), order=order)
        check_grads(lambda a: jnp.linalg.matrix_power(a, -2), (a,), order=order)


# Derivatives of determinants ---------------------------------------------------------------------------------------


def cofactors(a: Any) -> Any:
    n = len(a)
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return np.array([[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)])


def second_derivatives(a: Any) -> Any:
    """Cofactors are linear in each element, so that differences are exact."""
    columns = []
    for index in np.ndindex(a.shape):
        half = np.zeros_like(a)
        half[index] = 0.5
        columns.append(cofactors(a + half) - cofactors(a - half))
    return np.stack(columns, -1).reshape(*a.shape, *a.shape)


RANK_ONE_LESS = [
    np.diag([1.0, 2.0, 0.0, 3.0, 4.0]),
    np.eye(5, k=1),
    np.array([[0, 1, 0, 2], [0, 3, 1, 1], [0, 1, 2, 5], [0, 7, 1, 1.0]]),
    np.array([[0.1, 0.3, 0, 2], [0.2, 0.6, 1, 1], [0.3, 0.9, 2, 5], [0.4, 1.2, 1, 2]]),
    np.ones((2, 2)),
    np.arange(9.0).reshape(3, 3),
]


@BOTH
@pytest.mark.parametrize("index", range(len(RANK_ONE_LESS)))
def test_determinants_of_singular_matrices_have_derivatives(compile_: Function, index: int) -> None:
    a = RANK_ONE_LESS[index]
    with enable_x64():
        for derivative in (grad(jnp.linalg.det), jacfwd(jnp.linalg.det)):
            np.testing.assert_allclose(compile_(derivative)(jnp.asarray(a)), cofactors(a), rtol=1e-9, atol=1e-12)
        for derivative in (hessian(jnp.linalg.det), jacrev(jacrev(jnp.linalg.det))):
            got = compile_(derivative)(jnp.asarray(a))
            np.testing.assert_allclose(got, second_derivatives(a), rtol=1e-9, atol=1e-11)


LOW_RANK = {
    "2": np.diag([1.0, 2.0, 0.0, 0.0]),
    "0": np.zeros((4, 4)),
    "1": np.ones((5, 5)),
    "2, of no diagonal": np.arange(16.0).reshape(4, 4),
}


@BOTH
@pytest.mark.parametrize("rank", LOW_RANK)
def test_determinants_of_matrices_of_low_rank(compile_: Function, rank: str) -> None:
    """A determinant is a polynomial: it has derivatives at every matrix."""
    a = LOW_RANK[rank]
    with enable_x64():
        x, scale = jnp.asarray(a), 1 + np.abs(a).max() ** 2
        np.testing.assert_allclose(compile_(grad(jnp.linalg.det))(x), cofactors(a), atol=1e-11)
        for outer in (jacfwd, jacrev):
            for inner in (jacfwd, jacrev):
                got = compile_(outer(inner(jnp.linalg.det)))(x)
                np.testing.assert_allclose(got, second_derivatives(a), rtol=1e-9, atol=1e-14 * scale)


def by_permutations(a: Any) -> Any:
    """The determinant of a matrix of four rows as a polynomial of its elements."""
    total = 0
    for columns in permutations(range(4)):
        sign = np.linalg.det(np.eye(4)[list(columns)]).round()
        total += sign * a[0, columns[0]] * a[1, columns[1]] * a[2, columns[2]] * a[3, columns[3]]
    return total


@BOTH
@DTYPES
@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_determinants_have_derivatives_of_every_order(compile_: Function, dtype: str, rank: int) -> None:
    rng = np.random.default_rng(rank)
    imaginary = 1j if dtype == "complex128" else 0
    draw = lambda *shape: (rng.normal(size=shape) + imaginary * rng.normal(size=shape)).astype(dtype)
    a, directions = draw(4, rank) @ draw(rank, 4), [draw(4, 4) for _ in range(5)]

    def along(f: Function, count: int) -> Function:
        for d in directions[:count]:
            f = lambda a, f=f, d=d: jvp(f, (a,), (d,))[1]  # type: ignore[misc]
        return f

    with enable_x64():
        for count in range(5) if compile_ is plain else spread(range(5), rank, 2):
            for g in (
                lambda det, count=count: along(grad(lambda a: det(a).real), count),
                lambda det, count=count: grad(along(lambda a: det(a).real, count)),
            ):
                got, wanted = compile_(g(jnp.linalg.det))(a), g(by_permutations)(a)
                np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_a_hessian_of_a_determinant_decomposes_its_matrix_once() -> None:
    primitives = [
        e for e in make_jaxpr(hessian(jnp.linalg.det))(np.eye(6)).jaxpr.eqns if "cofactors_along" in e.primitive.name
    ]
    assert [e.invars[1].aval.shape for e in primitives] == [(1, 6, 6)]


@BOTH
@pytest.mark.parametrize("a", [np.zeros((2, 2)), np.zeros((3, 3)), np.ones((3, 3)), np.zeros((1, 1))], ids=str)
def test_determinants_of_small_matrices_have_all_derivatives(compile_: Function, a: Any) -> None:
    with enable_x64():
        np.testing.assert_array_equal(compile_(grad(jnp.linalg.det))(jnp.asarray(a)), cofactors(a))
        got = compile_(hessian(jnp.linalg.det))(jnp.asarray(a))
        np.testing.assert_array_equal(got, second_derivatives(a))


def test_a_determinant_that_overflows_has_a_logarithm() -> None:
    a = jnp.asarray(1e4 * np.eye(20, dtype=np.float32))
    assert np.isinf(jnp.linalg.det(a))
    for compile_ in (lambda f: f, jit):
        np.testing.assert_allclose(compile_(jnp.linalg.slogdet)(a).logabsdet, 20 * np.log(1e4), rtol=1e-6)
        np.testing.assert_allclose(
            compile_(grad(lambda a: jnp.linalg.slogdet(a).logabsdet))(a), 1e-4 * np.eye(20), rtol=1e-6
        )


# The functions -----------------------------------------------------------------------------------------------------


@DTYPES
@BOTH
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3), (1, 1), (0, 2)], ids=str)
def test_lu_is_scipys(compile_: Function, shape: tuple[int, ...], dtype: str) -> None:
    with enable_x64():
        a = random(*shape, dtype=dtype)
        for permute in BOOLEANS:
            wanted = scipy.linalg.lu(a, permute_l=permute)
            got = compile_(partial(jsl.lu, permute_l=permute))(a)
            assert len(got) == len(wanted)
            for x, y in zip(got, wanted, strict=True):
                assert x.dtype == (np.float64 if x is got[0] and not permute else a.dtype)
                np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@DTYPES
@BOTH
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("columns", [(), (2,)], ids=["vector", "matrix"])
def test_lu_solve_is_scipys(compile_: Function, columns: tuple[int, ...], trans: Any, dtype: str) -> None:
    with enable_x64():
        a, b = random(4, 4, dtype=dtype), random(4, *columns, dtype=dtype)
        known = scipy.linalg.lu_factor(a)
        factors, pivots = compile_(jsl.lu_factor)(a)
        np.testing.assert_allclose(factors, known[0], rtol=1e-12)
        np.testing.assert_array_equal(pivots, known[1])
        assert pivots.dtype == np.int32
        wanted = scipy.linalg.lu_solve(known, b, {"N": 0, "T": 1, "C": 2}.get(trans, trans))
        got = compile_(lambda known, b: jsl.lu_solve(known, b, trans))(known, b)
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


@DTYPES
@pytest.mark.parametrize("lower", BOOLEANS)
@pytest.mark.parametrize("kind", ["gen", "sym", "her", "pos", "upper triangular", "lower triangular"])
def test_solve_is_scipys(kind: str, lower: bool, dtype: str) -> None:
    """Of matrices of a kind, the other triangle is not read."""
    with enable_x64():
        a, b = random(4, 4, dtype=dtype), random(4, 2, dtype=dtype)
        if kind == "pos":
            a = a @ a.conj().T + np.eye(4)
        if kind == "her":
            a = a + a.conj().T
        if kind == "sym":
            a = a + a.T
        upper = kind == "upper triangular" or not (lower or kind == "lower triangular")
        read = (np.triu if upper else np.tril)(np.ones((4, 4), bool))
        wanted = np.linalg.solve(np.where(read, a, 0) if "triangular" in kind else a, b)
        given = a if kind == "gen" else np.where(read, a, np.nan)
        if kind != "her":  # whose diagonal is the mean of the matrix and its adjoint
            np.testing.assert_allclose(jsl.solve(given, b, lower, assume_a=kind), wanted, rtol=1e-9)
        given = a if kind == "gen" else np.where(read, a, 100)
        np.testing.assert_allclose(jsl.solve(given, b[:, 0], lower, assume_a=kind), wanted[:, 0], rtol=1e-9)
        several = jsl.solve(np.stack([given, 2 * given]), b, lower, assume_a=kind)
        np.testing.assert_allclose(several, [wanted, wanted / 2], rtol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (5, 3, 2)), ((3, 3), (4, 5, 3, 2)), ((5, 3, 3), (3, 2)), ((4, 1, 3, 3), (5, 3, 2)), ((5, 3, 3), (3,)),
     ((0, 3, 3), (3,)), ((2, 0, 0), (0,)), ((2, 0, 0), (0, 3)), ((3, 3), (3, 0))],
)  # fmt: skip
def test_leading_axes_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with enable_x64():
        x, y = random(*a), random(*b)
        wanted = np.linalg.solve(x, y)
        known = jsl.lu_factor(x)
        for got in (jnp.linalg.solve(x, y), jit(jnp.linalg.solve)(x, y), jsl.lu_solve(known, y)):
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_one_matrix_for_a_batch_is_decomposed_once() -> None:
    solve = jnp.linalg.solve
    for program, b in ((vmap(solve, (None, 0)), (5, 3, 2)), (solve, (5, 3, 2)), (vmap(solve, (None, 1)), (3, 5, 2))):
        closed = make_jaxpr(program)(jnp.eye(3), jnp.ones(b))
        shapes = {e.primitive.name: e.invars[0].aval.shape for e in closed.jaxpr.eqns}
        assert shapes["lu"] == (3, 3)
        (equation,) = [e for e in closed.jaxpr.eqns if e.primitive.name == "linear_solve"]
        assert equation.invars[-1].aval.shape == (3, 10)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_many_small_matrices_are_worked_on_at_once(size: int, dtype: str) -> None:
    with enable_x64():
        count, eps = 8 * size + 3, float(np.finfo(dtype).eps)
        a, b = random(count, size, size, dtype=dtype), random(count, size, 1, dtype=dtype)
        assert are_many_small(count, size, size * size)
        for function, operands in (
            (lambda a: jsl.lu(a, permute_l=True), (a,)),
            (lax.linalg.lu, (a[:, 1:],)),
            (lax.linalg.lu, (a[:, :, 1:],)),
            *(
                (partial(jsl.solve_triangular, trans=trans, lower=lower, unit_diagonal=unit), (a, b))
                for trans in (0, 1, 2)
                for lower in BOOLEANS
                for unit in BOOLEANS
            ),
            *(
                (partial(lax.linalg.triangular_solve, transpose_a=t, conjugate_a=c), (a, b.swapaxes(1, 2)))
                for t in BOOLEANS
                for c in BOOLEANS
            ),
        ):
            together = tree.leaves(function(*operands))
            one_by_one = [tree.leaves(function(*xs)) for xs in zip(*operands, strict=True)]
            bound = 100 * eps * max(np.linalg.cond(x) for x in a)
            for got, *wanted in zip(together, *one_by_one, strict=True):
                stacked = np.stack(wanted)
                assert got.dtype == stacked.dtype
                scale = np.abs(stacked).max(initial=0, axis=tuple(range(1, stacked.ndim)), keepdims=True)
                assert (np.abs(got - stacked) <= bound * scale).all()


def test_integers_become_floats() -> None:
    x = np.array([[4, 2], [2, 5]])
    for got in (
        jnp.linalg.solve(x, np.array([6, 7])), jnp.linalg.inv(x), jnp.linalg.det(x), jnp.linalg.slogdet(x).sign,
        jnp.linalg.matrix_power(x, -1), jsl.lu_factor(x)[0], jsl.solve(x, x), jsl.lu(x)[0],
    ):  # fmt: skip
        assert got.dtype == np.float32
    assert jnp.linalg.solve(x, np.array([6, 7j])).dtype == np.complex64
    assert jnp.linalg.slogdet(x * 1j).sign.dtype == np.complex64
    assert jnp.linalg.slogdet(x * 1j).logabsdet.dtype == np.float32
    assert jnp.linalg.matrix_power(x, 2).dtype == np.int32


def test_numpys_own_functions() -> None:
    with enable_x64():
        a = jnp.asarray(random(3, 3))
        np.testing.assert_allclose(np.linalg.solve(a, jnp.ones(3)), np.linalg.solve(np.asarray(a), np.ones(3)))
        for name in ("inv", "det"):
            function = getattr(np.linalg, name)
            np.testing.assert_allclose(function(a), function(np.asarray(a)), rtol=1e-10)
        log_det = lambda a: np.linalg.slogdet(a).logabsdet
        np.testing.assert_allclose(grad(log_det)(a), np.linalg.inv(np.asarray(a)).T, rtol=1e-10)


def test_lax_gives_what_it_documents() -> None:
    a = jnp.asarray(random(2, 4, 3, dtype="float32"))
    factors, pivots, permutation = lax.linalg.lu(a)
    lower, upper = np.tril(factors, -1) + np.eye(4, 3), np.triu(factors)[:, :3]
    rows = np.take_along_axis(np.asarray(a), np.asarray(permutation)[..., None], 1)
    np.testing.assert_allclose(lower @ upper, rows, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(lax.linalg.lu_pivots_to_permutation(pivots, 4), permutation)
    mapped = vmap(lambda p: lax.linalg.lu_pivots_to_permutation(p, 4))
    np.testing.assert_array_equal(jit(mapped)(pivots), permutation)
    assert np.abs(lower).max() <= 1


@pytest.mark.parametrize("count", [5, 31, 32, 100])
def test_many_pivots_are_a_permutation(count: int) -> None:
    pivots = np.random.default_rng(0).integers(np.arange(count), 110)
    rows = list(range(110))
    for i, j in enumerate(pivots):
        rows[i], rows[j] = rows[j], rows[i]
    found = lax.linalg.lu_pivots_to_permutation(jnp.asarray(pivots, np.int32), 110)
    np.testing.assert_array_equal(found, rows)


def test_pivots_outside_of_the_matrix_are_refused() -> None:
    with pytest.raises(IndexError):
        lax.linalg.lu_pivots_to_permutation(jnp.full(40, 40), 40)


# Compiled programs -------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("n", chosen([1, 7, 130], [1, 7, 64, 200]))
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_larger_matrices(compile_: Function, n: int, dtype: str) -> None:
    with enable_x64():
        a, b = random(n, n, dtype=dtype), random(n, 3, dtype=dtype)
        eps = float(np.finfo(dtype).eps)
        bound = float(10 * n * eps * np.linalg.cond(a))
        x = np.asarray(compile_(jnp.linalg.solve)(a, b))
        assert np.abs(a @ x - b).max() <= bound * np.abs(x).max()
        assert np.abs(a @ np.asarray(compile_(jnp.linalg.inv)(a)) - np.eye(n)).max() <= bound
        logarithm = compile_(jnp.linalg.slogdet)(a).logabsdet
        np.testing.assert_allclose(logarithm, np.linalg.slogdet(a)[1], rtol=100 * eps, atol=bound)
        transposed = compile_(grad(lambda b: jnp.real(jnp.linalg.solve(a, b).sum()), holomorphic=False))(b)
        np.testing.assert_allclose(a.T @ np.asarray(transposed), np.ones((n, 3)), atol=bound * np.abs(transposed).max())


class ForAnother(Module):
    def __init__(self, name: str, platform: str, inline: Any) -> None:
        super().__init__(name, "another", inline)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (2, 4, 4), (1, 1), (20, 20), (0, 3)], ids=str)
def test_platforms_without_lapack(shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written for them can be tried on processors."""
    with enable_x64():
        a = jnp.asarray(random(*shape, dtype=dtype))
        monkeypatch.setattr(emit, "Module", ForAnother)
        lowered = Lowered(make_jaxpr(lax.linalg.lu)(a), "f", default_device())
        assert "lapack" not in lowered.module.text()
        tolerance = 100 * float(np.finfo(dtype).eps)
        for got, wanted in zip(lowered.compile()([a]), lax.linalg.lu(a), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("matrix", [*SINGULAR, [[0.0, 2.0], [0.0, 0.0]]])
def test_singular_matrices_without_lapack(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a = jnp.asarray(np.array(matrix, np.float32))
    monkeypatch.setattr(emit, "Module", ForAnother)
    got = Lowered(make_jaxpr(lax.linalg.lu)(a), "f", default_device()).compile()([a])
    for x, y in zip(got, lax.linalg.lu(a), strict=True):
        np.testing.assert_array_equal(x, y)
