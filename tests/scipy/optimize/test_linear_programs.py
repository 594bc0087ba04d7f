"""Linear programs: SciPy's solutions and marginals, derivatives of vertices, and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jacfwd, jacobian, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy import optimize
from pullback.test_util import check_grads
from tests.helpers import largest_difference

COST = np.array([-1.0, -1.0])
ROWS = np.array([[1.0, 2.0], [3.0, 1.0]])
RIGHT = np.array([4.0, 6.0])


def random_program(seed: int) -> dict[str, Any]:
    """A program with all kinds of constraints; its solution is not degenerate, since its numbers are random."""
    rng = np.random.default_rng(seed)
    inside = rng.uniform(0.5, 1.5, 6)
    a_ub, a_eq = rng.normal(size=(4, 6)), rng.normal(size=(2, 6))
    return {
        "c": rng.normal(size=6), "A_ub": a_ub, "b_ub": a_ub @ inside + rng.random(4), "A_eq": a_eq,
        "b_eq": a_eq @ inside, "bounds": np.stack([inside - rng.random(6), inside + rng.random(6)], axis=1),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_solutions_and_marginals_are_those_of_scipy_and_differentiated(seed: int) -> None:
    with enable_x64():
        program = random_program(seed)
        found, expected = optimize.linprog(**program), scipy.optimize.linprog(**program)
        assert found.success
        assert found.degeneracy == 0
        for name in ("x", "fun", "slack", "con"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-14, err_msg=name)
        for name in ("ineqlin", "eqlin", "lower", "upper"):
            ours, theirs = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(ours.residual, theirs.residual, atol=1e-14, err_msg=name)
            np.testing.assert_allclose(ours.marginals, theirs.marginals, atol=1e-14, err_msg=name)

        def everything(program: Any) -> Any:
            result = optimize.linprog(**program)
            kinds = (result.ineqlin, result.eqlin, result.lower, result.upper)
            return jnp.concatenate([result.x, result.fun[None], *(part.marginals for part in kinds)])

        arrays = {key: jnp.asarray(x) for key, x in program.items()}
        check_grads(everything, (arrays,), 1, eps=1e-5, rtol=1e-6, atol=1e-6)
        # The derivatives of the least value are the marginals: b_eq's and the bounds' by duality.
        slopes = grad(lambda p: optimize.linprog(**p).fun)(arrays)
        np.testing.assert_allclose(slopes["b_eq"], found.eqlin.marginals, atol=1e-12)
        np.testing.assert_allclose(slopes["b_ub"], found.ineqlin.marginals, atol=1e-12)
        np.testing.assert_allclose(slopes["bounds"][:, 1], found.upper.marginals, atol=1e-12)
        np.testing.assert_allclose(slopes["c"], found.x, atol=1e-12)


def test_a_vertex_moves_with_its_constraints() -> None:
    with enable_x64():
        solution = lambda b, a: optimize.linprog(COST, a, b).x
        np.testing.assert_allclose(jacobian(solution)(RIGHT, ROWS), np.linalg.inv(ROWS), atol=1e-15)
        np.testing.assert_allclose(jacfwd(solution)(RIGHT, ROWS), np.linalg.inv(ROWS), atol=1e-15)
        scalar = lambda b, a: jnp.sin(solution(b, a)).sum()
        closed = lambda b, a: jnp.sin(jnp.linalg.solve(a, b)).sum()
        for derivative in (grad, hessian):
            ours, other = (tree.leaves(derivative(f, (0, 1))(RIGHT, ROWS)) for f in (scalar, closed))
            assert largest_difference(ours, other) < 1e-13
            assert largest_difference(tree.leaves(jit(derivative(scalar, (0, 1)))(RIGHT, ROWS)), other) < 1e-13


def test_batches_are_loops_and_are_differentiated_inside_and_outside() -> None:
    with enable_x64():
        scalar = lambda b: jnp.sin(optimize.linprog(COST, ROWS, b).x).sum()
        batch = jnp.stack([RIGHT, 2 * RIGHT, RIGHT + 1])
        each = jnp.stack([grad(scalar)(b) for b in batch])
        np.testing.assert_array_equal(vmap(grad(scalar))(batch), each)
        of_batch = grad(lambda batch: vmap(scalar)(batch).sum())
        np.testing.assert_array_equal(of_batch(batch), each)
        assert largest_difference(jit(of_batch)(batch), each) < 1e-15
        second = vmap(hessian(scalar))(batch)
        np.testing.assert_allclose(second[1], hessian(scalar)(batch[1]), atol=1e-15)


def test_single_precision_and_lists_of_bounds() -> None:
    found = optimize.linprog(jnp.array([-1.0, -2.0]), jnp.ones((1, 2)), jnp.ones(1), bounds=[(0, None), (None, 0.25)])
    assert found.x.dtype == np.float32
    np.testing.assert_allclose(found.x, [0.75, 0.25])
    cost = jnp.array([-1.0, -2.0])
    of_bound = lambda u: optimize.linprog(cost, jnp.ones((1, 2)), jnp.ones(1), bounds=[(0, None), (0, u)]).x
    np.testing.assert_allclose(jacfwd(of_bound)(0.25), [-1, 1])
    np.testing.assert_allclose(optimize.linprog(jnp.array([1.0, -1]), bounds=(-2, 3)).x, [-2, 3])


ONES = np.ones((1, 2))
DEGENERATE: list[tuple[int, str, Any]] = [
    (1, "a constraint holds with equality and its multiplier is zero",
     lambda b: optimize.linprog(COST, np.concatenate([ROWS, [[4.0, 3.0]]]), jnp.array([4.0, 6.0, 10.0]) + b)),
    (2, "gradients of the constraints that hold with equality are linearly dependent",
     lambda b: optimize.linprog(COST, A_eq=np.ones((2, 2)), b_eq=jnp.ones(2) + b)),
    (3, "the solution is not unique", lambda b: optimize.linprog(COST, ONES, jnp.ones(1) + b)),
    (4, "no point that satisfies the optimality conditions", lambda b: optimize.linprog(COST, ONES, -jnp.ones(1) + b)),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "text", "solve"), DEGENERATE)
def test_degenerate_solutions_raise_or_have_the_derivative_nan_and_a_reason(reason: int, text: str, solve: Any) -> None:
    with enable_x64():
        assert solve(0.0).degeneracy == reason
        for derivative in (jacfwd, grad):
            first = derivative(lambda b: solve(b).x[0])
            with pytest.raises(errors.DegenerateSolutionError, match=text):
                first(0.0)
            assert jnp.isnan(jit(first)(0.0))
        assert jnp.isnan(vmap(grad(lambda b: solve(b).x[0]))(jnp.zeros(2))).all()
        assert jit(solve)(0.0).degeneracy == reason


def test_status_says_why_there_is_no_solution() -> None:
    nothing = optimize.linprog(COST, ONES, -jnp.ones(1))
    assert (int(nothing.status), bool(nothing.success)) == (2, False)
    assert jnp.isnan(nothing.x).all()
    assert optimize.linprog(COST).status == 3
    assert optimize.linprog(jnp.array([jnp.nan, 1.0])).status == 4
    assert optimize.linprog(COST, ROWS, RIGHT, options={"maxiter": 0, "presolve": False}).status == 1


def test_integers_are_those_of_scipy_and_have_no_derivative() -> None:
    rng = np.random.default_rng(3)
    with enable_x64():
        c, a, b = -1 - rng.random(6), 0.1 + rng.random((3, 6)), 4 + rng.random(3)
        kinds = np.arange(6) % 2
        solve = lambda c, a, b: optimize.milp(
            c, integrality=kinds, bounds=(0.0, 2.5), constraints=optimize.LinearConstraint(a, ub=b)
        )
        found = solve(c, a, b)
        rows = scipy.optimize.LinearConstraint(a, ub=b)
        expected = scipy.optimize.milp(c, integrality=kinds, bounds=scipy.optimize.Bounds(0, 2.5), constraints=rows)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-12)
        assert found.success
        assert found.degeneracy == 0
        jacobians = jacfwd(lambda *args: solve(*args).x, (0, 1, 2))(c, a, b)
        assert not jacobians[2][kinds == 1].any()
        assert jacobians[2][kinds == 0].any()
        check_grads(lambda *args: solve(*args).x, (c, a, b), 1, eps=1e-5, rtol=1e-6, atol=1e-6)
        assert largest_difference(jit(jacobian(lambda b: solve(c, a, b).x))(b), jacobians[2]) < 1e-14
        both = vmap(lambda b: solve(c, a, b).x)(jnp.stack([b, b + 1]))
        np.testing.assert_array_equal(both[1], solve(c, a, b + 1).x)
        impossible = optimize.LinearConstraint(np.ones((1, 6)), lb=40.0)
        assert optimize.milp(c, integrality=1, bounds=optimize.Bounds(0, 2), constraints=[impossible]).status == 2


def test_an_equation_and_a_range_among_the_constraints_of_integers() -> None:
    rows = [optimize.LinearConstraint(jnp.array([1.0, 1.0]), 2.5, 2.5), optimize.LinearConstraint(jnp.eye(2), 0.25, 2)]
    found = optimize.milp(jnp.array([1.0, 2.0]), integrality=[0, 1], constraints=rows)
    np.testing.assert_allclose(found.x, [1.5, 1])
    assert found.success


@pytest.mark.parametrize("shape", [(5, 5), (3, 5), (5, 3)])
@pytest.mark.parametrize("maximize", [False, True])
def test_assignments(shape: tuple[int, int], maximize: bool) -> None:
    with enable_x64():
        cost = np.random.default_rng(0).random((2, *shape))
        expected = scipy.optimize.linear_sum_assignment(cost[0], maximize)
        for call in (optimize.linear_sum_assignment, jit(optimize.linear_sum_assignment, static_argnums=1)):
            found = call(jnp.array(cost[0]), maximize)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
        total = lambda cost: cost[optimize.linear_sum_assignment(cost, maximize)].sum()
        slopes = np.zeros(shape)
        slopes[expected] = 1
        np.testing.assert_array_equal(jit(vmap(grad(total)))(jnp.array(cost))[0], slopes)


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: optimize.linprog(np.ones((2, 2))), errors.ShapeError, "c must be a vector"),
    (lambda: optimize.linprog(COST, ROWS), errors.ArgumentError, "A_ub needs b_ub"),
    (lambda: optimize.linprog(COST, b_eq=RIGHT), errors.ArgumentError, "b_eq needs A_eq"),
    (lambda: optimize.linprog(COST, ROWS[:, :1], RIGHT), errors.ShapeError, r"A_ub must have shape \(m, 2\)"),
    (lambda: optimize.linprog(COST, bounds=[(0, 1)] * 3), errors.ShapeError, "must be one pair or 2"),
    (lambda: optimize.linprog(COST, bounds=np.ones((2, 3))), errors.ShapeError, r"must have shape \(2, 2\) or"),
    (lambda: optimize.linprog(COST, bounds=(1, 2, 3)), errors.ArgumentError, "must be pairs"),
    (lambda: optimize.linprog(COST, method="simplex"), errors.ArgumentError, "method must be one of highs"),
    (lambda: optimize.linprog(COST, options={"time_limit": 1}), errors.ArgumentError, "no option 'time_limit'"),
    (lambda: optimize.milp(COST, integrality=2), errors.ArgumentError, "integrality must be 0 or 1"),
    (lambda: optimize.milp(COST, constraints=[ROWS]), errors.ArgumentError, "must be of the class LinearConstraint"),
    (lambda: optimize.milp(COST, constraints=optimize.LinearConstraint(np.ones(3))), errors.ShapeError, "2 columns"),
    (lambda: optimize.linear_sum_assignment(COST), errors.ShapeError, "must be a matrix"),
    (lambda: optimize.linear_sum_assignment(ROWS * np.nan), errors.ArgumentError, "invalid numeric entries"),
    (lambda: optimize.linear_sum_assignment(ROWS + np.inf), errors.ArgumentError, "infeasible"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
