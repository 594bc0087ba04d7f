"""Cholesky factors and triangular systems: what the table of operations does not show.

Refused operands, matrices that are not positive definite, the triangles that are read, the functions under SciPy's
names, and LAPACK in compiled programs, whatever else is in the process.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback.numpy as jnp
import pullback.scipy.linalg as jsl
from pullback import eval_shape, grad, hessian, jacfwd, jit, lax, make_jaxpr, vmap
from pullback.backends.compiler.client import default_device
from pullback.backends.compiler.programs import Lowered
from pullback.backends.hlo import emit
from pullback.backends.hlo.module import Module
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.test_util import check_grads
from tests import helpers

Function = Callable[..., Any]
BOOLEANS = (False, True)


def positive_definite(*shape: int, dtype: Any = np.float32) -> Any:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return (x @ x.swapaxes(-1, -2).conj() + np.eye(shape[-1])).astype(dtype)


random = partial(helpers.random, dtype=np.float32)


# Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.linalg.cholesky(jnp.ones((2, 3))), ShapeError, r"cholesky takes square .* got shape \(2, 3\)"),
        (lambda: lax.linalg.cholesky(jnp.ones(3)), ShapeError, r"cholesky takes square .* got shape \(3,\)"),
        (lambda: lax.linalg.cholesky(2.0), ShapeError, r"cholesky takes square .* got shape \(\)"),
        (lambda: lax.linalg.cholesky(jnp.eye(2, dtype="float16")), DtypeError, "got f16; convert .* astype"),
        (lambda: lax.linalg.cholesky(jnp.eye(2, dtype="bfloat16")), DtypeError, "cholesky takes float32.* got bf16"),
        (lambda: lax.linalg.cholesky(jnp.eye(2, dtype="int32")), DtypeError, "cholesky takes float32.* got i32"),
        (lambda: lax.linalg.cholesky([[1.0]]), OperandError, r"lax\.linalg\.cholesky: expected an array"),
        (lambda: jnp.linalg.cholesky(jnp.ones((2, 3))), ShapeError, r"square .* got shape \(2, 3\)"),
        (
            lambda: jnp.linalg.cholesky(jnp.ones((2, 3)), upper=True, symmetrize_input=False),
            ShapeError,
            r"square .* got shape \(2, 3\)",
        ),
        (lambda: jnp.linalg.cholesky(jnp.eye(2, dtype="float16")), DtypeError, "cholesky takes float32.* got f16"),
        (lambda: jsl.cho_factor(jnp.ones((2, 3))), ShapeError, r"square .* got shape \(2, 3\)"),
        (
            lambda: lax.linalg.triangular_solve(jnp.ones((2, 3)), jnp.ones((2, 3))),
            ShapeError,
            r"triangular_solve takes square .* got shape \(2, 3\)",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.eye(3), jnp.ones((4, 2)), left_side=True),
            ShapeError,
            r"A X = B is not defined for matrices A of 3 by 3 and B of 4 by 2; left_side=True",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.eye(3), jnp.ones((3, 2))),
            ShapeError,
            r"X A = B is not defined for matrices A of 3 by 3 and B of 3 by 2; left_side=False",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.eye(3), jnp.ones((5, 3, 3))),
            ShapeError,
            r"the same axes in front of the last two, got shapes \(3, 3\) and \(5, 3, 3\)",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.ones((4, 3, 3)), jnp.ones((5, 3, 3))),
            ShapeError,
            r"got shapes \(4, 3, 3\) and \(5, 3, 3\)",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.eye(3), jnp.ones((3, 3), complex)),
            DtypeError,
            "triangular_solve takes operands of one dtype, got f32, c64",
        ),
        (
            lambda: lax.linalg.triangular_solve(jnp.eye(3, dtype=int), jnp.ones((3, 3), int)),
            DtypeError,
            "triangular_solve takes floats or complex numbers, got i32",
        ),
        (lambda: jsl.solve_triangular(jnp.eye(3), jnp.ones(3), trans="X"), ArgumentError, "or 'C', got 'X'"),
        (lambda: jsl.solve_triangular(jnp.eye(3), jnp.ones(4)), ShapeError, r"3 rows, .* got shape \(4,\)"),
        (lambda: jsl.solve_triangular(jnp.eye(3), jnp.ones((4, 3))), ShapeError, r"3 rows, .* got shape \(4, 3\)"),
        (lambda: jsl.solve_triangular(jnp.eye(3), 1.0), ShapeError, r"3 rows, .* got shape \(\)"),
        (lambda: jsl.solve_triangular(jnp.ones((2, 3)), jnp.ones(3)), ShapeError, r"square .* got shape \(2, 3\)"),
        (lambda: jsl.solve_triangular(jnp.ones((4, 2, 2)), jnp.ones((3, 2, 1))), ShapeError, "broadcast"),
        (lambda: jsl.cho_solve((jnp.ones((2, 3)), True), jnp.ones(3)), ShapeError, r"square .* got shape \(2, 3\)"),
    ],
)
def test_errors(call: Function, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        call()
    with pytest.raises(error, match=f"(?s){message}"):
        eval_shape(call)


# Not positive definite ---------------------------------------------------------------------------------------------

NOT_POSITIVE = [[[1.0, 0.0, 0.0], [0.0, -1.0, 1.0], [0.0, 1.0, 3.0]], np.zeros((3, 3)), -np.eye(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("matrix", NOT_POSITIVE, ids=["indefinite", "zero", "negative"])
@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_failure_is_nan(compile_: Function, matrix: Any, dtype: str) -> None:
    with enable_x64():
        bad = np.array(matrix, dtype)
        wanted = np.where(np.tri(3, dtype=bool), np.nan, 0)
        factor = compile_(lax.linalg.cholesky)
        np.testing.assert_array_equal(np.isnan(factor(jnp.asarray(bad))), np.isnan(wanted))
        good = positive_definite(3, 3, dtype=dtype)
        several = np.asarray(factor(jnp.asarray(np.stack([[good, bad], [good, good]]))))
        assert several.dtype == dtype
        np.testing.assert_array_equal(np.isnan(several[0, 1]), np.isnan(wanted))
        np.testing.assert_allclose(several[0, 0], np.linalg.cholesky(good), rtol=1e-5)
        np.testing.assert_allclose(several[1], np.linalg.cholesky(np.stack([good, good])), rtol=1e-5)
        assert (several.real[..., ~np.tri(3, dtype=bool)] == 0).all()


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (2, 2)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_the_same_compiled(place: tuple[int, int], value: float) -> None:
    x = positive_definite(3, 3)
    x[place] = value
    x = jnp.asarray(x)
    factorise = lambda x: lax.linalg.cholesky(x, symmetrize_input=False)
    host, compiled = factorise(x), jit(factorise)(x)
    assert not np.isfinite(host).all()
    np.testing.assert_allclose(compiled, host, rtol=1e-6)


@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_a_singular_triangle(compile_: Function) -> None:
    a, b = jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.array([1.0, 3.0])
    solve = compile_(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
    np.testing.assert_array_equal(solve(a, b), [1, np.inf])


# What is read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("upper", BOOLEANS)
@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_symmetrize_input(compile_: Function, upper: bool, dtype: str) -> None:
    x = positive_definite(3, 3, dtype=dtype)
    skew = np.array([[0, 1, 2], [-1, 0, 3], [-2, -3, 0]], dtype)  # does not change the Hermitian part
    other = ~np.tri(3, dtype=bool)
    other = other.T if upper else other
    wanted = np.linalg.cholesky(x)
    wanted = wanted.conj().T if upper else wanted
    mean = compile_(lambda x: jnp.linalg.cholesky(x, upper=upper))
    np.testing.assert_allclose(mean(jnp.asarray(x + skew)), wanted, rtol=1e-4, atol=1e-6)
    triangle = compile_(lambda x: jnp.linalg.cholesky(x, upper=upper, symmetrize_input=False))
    garbage = np.where(other, np.nan, x)
    garbage[0, 0] += 1j if dtype == "complex64" else 0  # of the diagonal the real part is read
    np.testing.assert_allclose(triangle(jnp.asarray(garbage)), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("flags", list(itertools.product(BOOLEANS, repeat=2)))
@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_the_other_triangle_is_not_read(compile_: Function, flags: tuple[bool, bool]) -> None:
    lower, unit = flags
    read = np.tri(3, k=-1 if unit else 0, dtype=bool)
    a = random(3, 3) + 3 * np.eye(3, dtype=np.float32)
    triangle = np.where(read if lower else read.T, a, 0)
    garbage = np.where(read if lower else read.T, a, np.nan)
    solve = compile_(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, unit_diagonal=unit))
    b = random(3, 2)
    wanted = np.linalg.solve(triangle + (np.eye(3) if unit else 0), b)
    np.testing.assert_allclose(solve(jnp.asarray(garbage), jnp.asarray(b)), wanted, rtol=1e-5, atol=1e-6)


def test_gradients_are_in_what_is_read() -> None:
    x = jnp.asarray(positive_definite(3, 3))
    mean = grad(lambda x: jnp.linalg.cholesky(x).sum())(x)
    triangle = grad(lambda x: jnp.linalg.cholesky(x, symmetrize_input=False).sum())(x)
    np.testing.assert_allclose(mean, mean.T)
    np.testing.assert_array_equal(triangle, jnp.tril(triangle))
    np.testing.assert_allclose((triangle + triangle.T) / 2, mean, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", BOOLEANS)
def test_derivatives_of_scipys_functions(lower: bool, dtype: str) -> None:
    with enable_x64():
        a, b = jnp.asarray(positive_definite(3, 3, dtype=dtype)), jnp.asarray(random(3, dtype=dtype))
        check_grads(lambda a, b: jsl.cho_solve(jsl.cho_factor(a, lower), b), (a, b), order=2)
        check_grads(lambda a, b: jsl.solve_triangular(a, b, "C", lower), (a, b), order=2)


def test_known_derivatives() -> None:
    """The gradient of log det A is the inverse, and its second derivative along I is minus the square of that."""
    with enable_x64():
        a = jnp.asarray(positive_definite(4, 4, dtype=float))
        log_det = lambda a: 2 * jnp.log(jnp.diagonal(jnp.linalg.cholesky(a))).sum()
        inverse = np.linalg.inv(np.asarray(a))
        np.testing.assert_allclose(grad(log_det)(a), inverse, rtol=1e-10)
        np.testing.assert_allclose(jacfwd(log_det)(a), inverse, rtol=1e-10)
        along = np.tensordot(np.asarray(hessian(log_det)(a)), np.eye(4), 2)
        np.testing.assert_allclose(along, -inverse @ inverse, rtol=1e-10)
        solve = lambda b: jsl.cho_solve(jsl.cho_factor(a), b)
        np.testing.assert_allclose(jacfwd(solve)(jnp.ones(4)), inverse, rtol=1e-10)


# Dtypes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_narrow_triangular_systems_are_solved_in_float32(compile_: Function, dtype: str) -> None:
    a, b = jnp.array([[3.0, 0.0], [1.0, 3.0]], dtype), jnp.array([1.0, 2.0], dtype)
    x = compile_(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True))(a, b)
    assert x.dtype == dtype
    np.testing.assert_array_equal(x, np.array([1 / 3, 5 / 9]).astype(x.dtype))


def test_integers_become_floats() -> None:
    x = np.array([[4, 2], [2, 5]])
    for factor in (jnp.linalg.cholesky(x), jsl.cholesky(x, lower=True)):
        assert factor.dtype == np.float32
        np.testing.assert_array_equal(factor, [[2, 0], [1, 2]])
    assert jsl.solve_triangular(x, np.array([6, 5])).dtype == np.float32
    assert jsl.solve_triangular(x, np.array([6, 5j])).dtype == np.complex64
    assert jsl.solve_triangular(jnp.asarray(x, "bfloat16"), jnp.ones(2, "bfloat16")).dtype == "bfloat16"


# The functions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left_side", "wanted"), [(True, [1.0, 1.0]), (False, [1.0, 1.0])])
def test_vectors(left_side: bool, wanted: list[float]) -> None:
    a = np.array([[2.0, 0.0], [1.0, 3.0]], np.float32)
    b = a @ [1, 1] if left_side else [1, 1] @ a
    solve = lower_solve(left_side)
    np.testing.assert_allclose(solve(a, b.astype(np.float32)), wanted)
    several = solve(np.stack([a, 2 * a]), np.stack([b, b]).astype(np.float32))
    np.testing.assert_allclose(several, [wanted, np.array(wanted) / 2])


def lower_solve(left_side: bool) -> Function:
    return lambda a, b: lax.linalg.triangular_solve(jnp.asarray(a), jnp.asarray(b), left_side=left_side, lower=True)


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize(("lower", "unit"), list(itertools.product(BOOLEANS, repeat=2)))
@pytest.mark.parametrize("columns", [(), (2,)], ids=["vector", "matrix"])
def test_solve_triangular_is_scipys(trans: Any, lower: bool, unit: bool, columns: tuple[int, ...]) -> None:
    with enable_x64():
        a, b = random(3, 3, dtype=complex) + 3 * np.eye(3), random(3, *columns, dtype=complex)
        wanted = scipy.linalg.solve_triangular(a, b, trans, lower, unit)
        np.testing.assert_allclose(jsl.solve_triangular(a, b, trans, lower, unit), wanted, rtol=1e-12)
        compiled = jit(lambda a, b: jsl.solve_triangular(a, b, trans, lower, unit))
        np.testing.assert_allclose(compiled(a, b), wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", BOOLEANS)
def test_cholesky_is_scipys(lower: bool, dtype: str) -> None:
    with enable_x64():
        a, b = positive_definite(4, 4, dtype=dtype), random(4, 2, dtype=dtype)
        np.testing.assert_allclose(jsl.cholesky(a, lower), scipy.linalg.cholesky(a, lower), rtol=1e-12)
        factor, given = jsl.cho_factor(a, lower)
        assert given is lower
        np.testing.assert_allclose(jsl.cho_solve((factor, lower), b), np.linalg.solve(a, b), rtol=1e-10)
        np.testing.assert_allclose(jsl.cho_solve((factor, lower), b[:, 0]), np.linalg.solve(a, b[:, 0]), rtol=1e-10)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (5, 3, 2)), ((3, 3), (4, 5, 3, 2)), ((5, 3, 3), (3, 2)), ((4, 1, 3, 3), (5, 3, 2)), ((5, 3, 3), (3,))],
)
def test_leading_axes_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = random(*a) + 3 * np.eye(3, dtype=np.float32), random(*b)
    got = jsl.solve_triangular(x, y, lower=True)
    wanted = np.linalg.solve(np.tril(x), y)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    factor = jsl.cho_factor(positive_definite(*a))
    np.testing.assert_allclose(
        jsl.cho_solve(factor, y), np.linalg.solve(positive_definite(*a), y), rtol=1e-3, atol=1e-4
    )


def test_one_matrix_for_a_batch_is_not_repeated() -> None:
    solve = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    a, b = jnp.eye(3), jnp.ones((5, 3, 2))
    for program in (vmap(solve, (None, 0)), jsl.solve_triangular):
        closed = make_jaxpr(program)(a, b)
        (equation,) = [e for e in closed.jaxpr.eqns if e.primitive.name == "triangular_solve"]
        assert [x.aval.shape for x in equation.invars] == [(3, 3), (3, 10)]


def test_nothing_is_computed_of_nothing() -> None:
    for compile_ in (lambda f: f, jit):
        for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
            assert compile_(lax.linalg.cholesky)(jnp.ones(shape)).shape == shape
        solve = compile_(lower_solve(True))
        for a, b in (((3, 3), (3, 0)), ((0, 0), (0, 2)), ((0, 3, 3), (0, 3, 2)), ((0, 0), (0, 0))):
            assert solve(jnp.ones(a), jnp.ones(b)).shape == b


# LAPACK in compiled programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 64, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_larger_matrices(n: int, dtype: str) -> None:
    with enable_x64():
        a, b = jnp.asarray(positive_definite(n, n, dtype=dtype)), jnp.asarray(random(n, 3, dtype=dtype))
        residual = jit(lambda a, b: a @ jsl.cho_solve(jsl.cho_factor(a, lower=True), b) - b)
        eps = np.finfo(dtype).eps
        assert np.abs(residual(a, b)).max() <= 10 * n * eps * np.linalg.cond(np.asarray(a)) * np.abs(b).max()


def test_a_transposed_operand_is_read_by_rows() -> None:
    """Whatever order the compiler would like to hold the elements in."""
    a, b = positive_definite(4, 4), random(2, 3, 4)
    f = lambda a, b: lax.linalg.triangular_solve(a.T + 1, b.transpose((0, 2, 1))[0], left_side=True, lower=False).T * 2
    np.testing.assert_allclose(jit(f)(jnp.asarray(a), jnp.asarray(b)), f(jnp.asarray(a), jnp.asarray(b)), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_other_platforms_have_the_compilers_own_operations(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no LAPACK there. The operations can be tried on processors."""

    class ForAnother(Module):
        def __init__(self, name: str, platform: str, inline: Any) -> None:
            super().__init__(name, "another", inline)

    a, b = (jnp.asarray(x, dtype) for x in (random(3, 3) + 3 * np.eye(3), random(2, 3)))
    solves = [
        partial(lax.linalg.triangular_solve, lower=lower, transpose_a=transpose, conjugate_a=conjugate)
        for lower, transpose, conjugate in itertools.product(BOOLEANS, repeat=3)
    ]
    f = lambda a, b: [solve(a, b) for solve in solves]
    if dtype != "bfloat16":
        f = lambda a, b: [*[solve(a, b) for solve in solves], lax.linalg.cholesky(a @ a.conj().T)]
    monkeypatch.setattr(emit, "Module", ForAnother)
    lowered = Lowered(make_jaxpr(f)(a, b), "f", default_device())
    assert "lapack" not in lowered.module.text()
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-5
    for got, wanted in zip(lowered.compile()([a, b]), f(a, b), strict=True):
        got, wanted = np.asarray(got).astype(complex), np.asarray(wanted).astype(complex)
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_host_does_not_compile_and_imports_late() -> None:
    run("""
import sys
import pullback, pullback.numpy, pullback.lax, pullback.scipy.linalg
assert not {"jaxlib", "scipy.linalg"} & set(sys.modules)
print(pullback.grad(lambda x: pullback.numpy.linalg.cholesky(x).sum())(pullback.numpy.eye(2)))
assert "jaxlib" not in sys.modules
""")


@pytest.mark.slow
def test_a_program_from_the_disk_finds_its_routines(tmp_path: Path) -> None:
    program = """
import pullback, pullback.numpy as jnp
print(pullback.jit(jnp.linalg.cholesky)(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist())
"""
    outputs = [run(program, PULLBACK_COMPILATION_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert outputs == ["[[2.0, 0.0], [1.0, 2.0]]\n"] * 2
    assert any(tmp_path.rglob("*"))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("order", [("import", "ours"), ("ours", "theirs"), ("theirs", "ours")], ids=" ".join)
def test_jax_in_the_same_process(order: tuple[str, ...]) -> None:
    """LAPACK's routines are registered once, or twice, with the same functions: before or after JAX does it."""
    program = """
import numpy as np

A = np.array([[4, 2], [2, 5]], np.float32)

def ours():
    import pullback, pullback.numpy as jnp
    import pullback.scipy.linalg as linalg
    f = lambda a: linalg.solve_triangular(jnp.linalg.cholesky(a), a, lower=True)
    np.testing.assert_allclose(pullback.jit(f)(jnp.asarray(A)), [[2, 1], [0, 2]])

def theirs():
    import jax, jax.numpy as jnp
    f = lambda a: jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(a), a, lower=True)
    np.testing.assert_allclose(jax.jit(f)(jnp.asarray(A)), [[2, 1], [0, 2]])
    np.testing.assert_allclose(jnp.linalg.eigh(A)[0].sum(), 9, rtol=1e-6)

actions = {"import": lambda: __import__("jax"), "ours": ours, "theirs": theirs}
"""
    run(program + "\n".join(f"actions[{name!r}]()" for name in (*order, *order)))
