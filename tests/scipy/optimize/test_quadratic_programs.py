"""Quadratic programs: closed forms, published derivatives by formula, SciPy's minima, and degenerate solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jacfwd, jacobian, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy.optimize import solve_qp
from tests.helpers import largest_difference

POINT = np.array([0.8, 0.6, -0.5])


def project(x: Any) -> Any:
    """The nearest point among the vectors of probabilities."""
    return solve_qp(jnp.eye(x.shape[0]), -x, A=jnp.ones((1, x.shape[0])), b=jnp.ones(1), lb=0.0)


def test_projections_onto_probabilities_and_their_derivatives() -> None:
    with enable_x64():
        found = project(POINT)
        np.testing.assert_allclose(found.x, [0.6, 0.4, 0], atol=1e-15)
        np.testing.assert_allclose(found.eqlin.marginals, [-0.2], atol=1e-15)
        np.testing.assert_allclose(found.lower.marginals, [0, 0, 0.7], atol=1e-15)
        assert (found.status, found.degeneracy) == (0, 0)
        expected = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])
        for derivative in (jacobian, jacfwd, lambda f: jit(jacobian(f))):
            np.testing.assert_allclose(derivative(lambda x: project(x).x)(POINT), expected, atol=1e-15)


def random_program(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n, inside = 5, rng.normal(size=5)
    root, g, a = rng.normal(size=(n, n)), rng.normal(size=(4, n)), rng.normal(size=(1, n))
    return {
        "P": root @ root.T + 0.1 * np.eye(n), "q": 3 * rng.normal(size=n),
        "G": g, "h": g @ inside + 0.3 * rng.random(4), "A": a, "b": a @ inside,
        "lb": inside - 0.5 * rng.random(n), "ub": inside + 0.5 * rng.random(n),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_random_programs_have_scipys_minima_and_the_derivatives_of_differences(seed: int) -> None:
    with enable_x64():
        program = random_program(seed)
        found = solve_qp(**program)
        p, q, g, a = (program[key] for key in ("P", "q", "G", "A"))
        constraints = [
            {"type": "ineq", "fun": lambda x: program["h"] - g @ x},
            {"type": "eq", "fun": lambda x: a @ x - program["b"]},
        ]  # fmt: skip
        expected = scipy.optimize.minimize(
            lambda x: x @ p @ x / 2 + q @ x, np.zeros(5), method="SLSQP", jac=lambda x: p @ x + q,
            constraints=constraints, bounds=np.stack([program["lb"], program["ub"]], axis=1), options={"ftol": 1e-14},
        )  # fmt: skip
        np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
        assert (found.status, found.degeneracy) == (0, 0)
        # The conditions of optimality, to rounding.
        slope = p @ found.x + q
        rest = slope - g.T @ found.ineqlin.marginals - a.T @ found.eqlin.marginals
        np.testing.assert_allclose(rest, found.lower.marginals + found.upper.marginals, atol=1e-12)
        np.testing.assert_allclose(found.ineqlin.residual * found.ineqlin.marginals, 0, atol=1e-13)
        assert (found.ineqlin.marginals <= 0).all()
        assert (found.ineqlin.residual > -1e-13).all()
        arrays = {key: jnp.asarray(x) for key, x in program.items()}
        everything = lambda p: (solve_qp(**p).x, solve_qp(**p).ineqlin.marginals, solve_qp(**p).lower.marginals)
        directions = {key: jnp.asarray(np.random.default_rng(3).normal(size=x.shape)) for key, x in arrays.items()}
        at = lambda t: {key: x + t * directions[key] for key, x in arrays.items()}
        differences = [(np.asarray(x) - y) / 2e-6 for x, y in zip(*map(everything, (at(1e-6), at(-1e-6))), strict=True)]
        for derivative in (jacfwd, jacobian):
            assert largest_difference(derivative(lambda t: everything(at(t)))(0.0), differences) < 1e-6
        slopes = grad(lambda p: solve_qp(**p).fun)(arrays)
        np.testing.assert_allclose(slopes["h"], found.ineqlin.marginals, atol=1e-11)
        np.testing.assert_allclose(slopes["ub"], found.upper.marginals, atol=1e-11)


def test_derivatives_by_the_published_formula() -> None:
    """B. Amos and J. Z. Kolter 2017, "OptNet", equations 6 to 8: the differentials of the optimality conditions."""
    with enable_x64():
        rng = np.random.default_rng(1)
        p, q, g = np.diag([1.0, 2.0, 3.0]), rng.normal(size=3), rng.normal(size=(2, 3))
        x0 = np.linalg.solve(p, -q)
        h = g @ x0 + np.array([-0.3, 0.5])  # the first inequality is active
        found = solve_qp(p, q, g, h)
        x, z = np.asarray(found.x), -np.asarray(found.ineqlin.marginals)
        weights = rng.normal(size=3)
        system = np.block([[p, g.T @ np.diag(z)], [g, np.diag(g @ x - h)]])
        d = -np.linalg.solve(system, np.concatenate([weights, np.zeros(2)]))
        dx, dz = d[:3], d[3:]
        ours = grad(lambda *args: solve_qp(*args).x @ weights, (0, 1, 2, 3))(p, q, g, h)
        outer = lambda x, y: x[:, None] * y
        expected = (
            (outer(dx, x) + outer(x, dx)) / 2, dx, outer(z * dz, x) + outer(z, dx), -z * dz
        )  # fmt: skip
        assert largest_difference(ours, expected) < 1e-13


def test_second_derivatives_batches_and_compiled_programs() -> None:
    with enable_x64():
        program = {key: jnp.asarray(x) for key, x in random_program(1).items()}
        scalar = lambda q, p: jnp.sin(solve_qp(**{**program, "q": q, "P": p}).x).sum()
        q, p = program["q"], program["P"]
        move = jnp.arange(5.0)
        difference = (grad(scalar)(q + 1e-5 * move, p) - grad(scalar)(q - 1e-5 * move, p)) / 2e-5
        np.testing.assert_allclose(hessian(scalar)(q, p) @ move, difference, atol=1e-6)
        assert largest_difference(jit(hessian(scalar))(q, p), hessian(scalar)(q, p)) < 1e-12
        batch = jnp.stack([q, 1.1 * q])
        each = jnp.stack([grad(scalar)(x, p) for x in batch])
        assert largest_difference(vmap(grad(scalar), (0, None))(batch, p), each) < 1e-13
        of_batch = jit(grad(lambda batch: vmap(scalar, (0, None))(batch, p).sum()))
        assert largest_difference(of_batch(batch), each) < 1e-12


def test_semidefinite_matrices() -> None:
    with enable_x64():
        vertex = solve_qp(
            jnp.zeros((2, 2)), jnp.array([-1.0, -1.0]), jnp.array([[1.0, 2.0], [3.0, 1.0]]), jnp.array([4.0, 6.0])
        )
        np.testing.assert_allclose(vertex.x, [1.6, 1.2], rtol=1e-14)
        half = solve_qp(jnp.diag(jnp.array([1.0, 0.0])), jnp.array([-1.0, 1.0]), lb=-2.0)
        np.testing.assert_allclose(half.x, [1, -2], rtol=1e-14)
        assert (half.status, half.degeneracy) == (0, 0)
    single = solve_qp(jnp.eye(2), jnp.array([-1.0, -2.0]), ub=1.5)
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, [1, 1.5], rtol=1e-6)


EYE = np.eye(2)
DEGENERATE: list[tuple[int, int, Any]] = [
    (1, 0, lambda b: solve_qp(EYE, jnp.zeros(2) + b, lb=0.0)),
    (2, 0, lambda b: solve_qp(EYE, jnp.ones(2), A=np.ones((2, 2)), b=jnp.ones(2) + b)),
    (3, 0, lambda b: solve_qp(np.ones((2, 2)), jnp.ones(2) + b)),
    (4, 2, lambda b: solve_qp(EYE, jnp.ones(2), np.array([[1.0, 0], [-1, 0]]), jnp.array([1.0, -2.0]) + b)),
    (4, 2, lambda b: solve_qp(EYE, jnp.ones(2) + b, A=np.ones((2, 2)), b=jnp.array([1.0, 2.0]))),
    (4, 4, lambda b: solve_qp(-EYE, jnp.ones(2) + b, lb=0.0)),
    (4, 4, lambda b: solve_qp(0 * EYE, jnp.ones(2) + b)),
    (4, 4, lambda b: solve_qp(EYE, jnp.ones(2) * jnp.nan + b)),
]


@pytest.mark.parametrize(("reason", "status", "solve"), DEGENERATE)
def test_degenerate_solutions_have_no_derivative(reason: int, status: int, solve: Any) -> None:
    with enable_x64():
        found = solve(0.0)
        assert (found.degeneracy, found.status) == (reason, status)
        assert jnp.isnan(found.x).all() == (status > 0)
        with pytest.raises(errors.DegenerateSolutionError, match="solve_qp: the solution has no derivative"):
            grad(lambda b: solve(b).x.sum())(0.0)
        assert jnp.isnan(jit(grad(lambda b: solve(b).x.sum()))(0.0))


REFUSED: list[tuple[Any, str]] = [
    (lambda: solve_qp(np.ones((2, 3)), np.ones(2)), r"P must have shape \(n, n\)"),
    (lambda: solve_qp(EYE, np.ones((2, 1))), r"P must have shape \(n, n\)"),
    (lambda: solve_qp(EYE, np.ones(2), EYE), "G and h belong together"),
    (lambda: solve_qp(EYE, np.ones(2), A=np.ones((1, 3)), b=np.ones(1)), r"A must have shape \(m, 2\)"),
    (lambda: solve_qp(EYE, np.ones(2), lb=np.ones(3)), r"lb must be a number or have shape \(2,\)"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(errors.ShapeError, match=message):
        call()
