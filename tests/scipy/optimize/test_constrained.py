"""Minima with bounds and constraints: known solutions, derivatives in closed form, and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jacfwd, jacobian, jacrev, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize
from tests.helpers import largest_difference

METHODS = ("SLSQP", "trust-constr")
A = np.array([3.0, -1.0, 2.0])


def on_sphere(a: Any, square: Any, method: str = "SLSQP") -> Any:
    """The greatest inner product with ``a`` in a ball: its point is in the direction of ``a``, at the radius."""
    ball = NonlinearConstraint(lambda x: (x**2).sum(), -jnp.inf, square)
    return minimize(lambda x: -(a * x).sum(), jnp.array([0.5, 0.1, 0.1]), method=method, constraints=ball)


def closed(a: Any, square: Any) -> Any:
    return jnp.sqrt(square) * a / jnp.sqrt((a**2).sum())


@pytest.mark.parametrize("method", METHODS)
def test_solutions_and_derivatives_are_those_of_the_closed_form(method: str) -> None:
    with enable_x64():
        found = on_sphere(A, 4.0, method)
        assert found.success
        assert found.degeneracy == 0
        np.testing.assert_allclose(found.x, closed(A, 4.0), rtol=1e-14)
        np.testing.assert_allclose(found.constr, [4.0], rtol=1e-14)
        np.testing.assert_allclose(found.multipliers, [-np.linalg.norm(A) / 4], rtol=1e-13)
        np.testing.assert_array_equal(found.bound_multipliers, np.zeros(3))
        ours = lambda a, square: on_sphere(a, square, method).x
        for derivative in (jacfwd, jacrev):
            slopes = [derivative(f, (0, 1))(jnp.array(A), 4.0) for f in (ours, closed)]
            assert largest_difference(*slopes) < 1e-13
        scalar = lambda f: lambda square: jnp.sin(f(A, square)).sum()
        second = [grad(grad(scalar(f)))(4.0) for f in (ours, closed)]
        assert largest_difference(*second) < 1e-13
        assert largest_difference(jit(grad(grad(scalar(ours))))(4.0), second[1]) < 1e-13
        multiplier = lambda square: on_sphere(A, square, method).multipliers[0]
        assert abs(grad(multiplier)(4.0) - np.linalg.norm(A) / 32) < 1e-13


def hock_schittkowski_71(**options: Any) -> Any:
    constraints = [
        {"type": "ineq", "fun": lambda x, least: x.prod() - least, "args": (25.0,)},
        {"type": "eq", "fun": lambda x: (x**2).sum() - 40},
    ]
    start = jnp.array([1.0, 5.0, 5.0, 1.0])
    return minimize(
        lambda x: x[0] * x[3] * x[:3].sum() + x[2], start, bounds=[(1, 5)] * 4, constraints=constraints, **options
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_problem_of_hock_and_schittkowski(method: str) -> None:
    with enable_x64():
        found = hock_schittkowski_71(method=method)
        np.testing.assert_allclose(found.x, [1, 4.74299963, 3.82114998, 1.37940829], atol=1e-8)
        np.testing.assert_allclose(found.fun, 17.0140173, atol=1e-7)
        assert (found.status, found.degeneracy) == (0, 0)
        np.testing.assert_allclose(found.constr, [0, 0], atol=1e-12)
        assert abs(found.bound_multipliers[0] - 1.0878712) < 1e-6
        assert not found.bound_multipliers[1:].any()


def curved(x: Any, p: Any) -> Any:
    return jnp.sum((x - p) ** 4 + jnp.cosh(x - 0.5 * p)) + x[0] * x[1]


def limited(p: Any, lower: Any, limits: Any, method: str = "SLSQP") -> Any:
    """A solution at one bound, one inequality and one equation, which depend on all arguments."""
    rows = LinearConstraint(jnp.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.5]]), limits[:2], jnp.stack([limits[0], jnp.inf]))
    product = NonlinearConstraint(lambda x: p[0] * x[1:] ** 2, -jnp.inf, limits[2])
    options = {"ftol": 1e-12} if method == "SLSQP" else None
    return minimize(
        curved, jnp.ones(3), (p,), method=method, bounds=Bounds(lower, 3.0), constraints=(rows, product),
        options=options,
    )  # fmt: skip


POINT = (np.array([1.0, 2.0, 0.5]), np.array([-2.0, -2.0, 0.7]), np.array([2.0, -0.5, 5.0]))


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_by_everything_that_the_problem_depends_on(method: str) -> None:
    with enable_x64():
        at = tuple(map(jnp.asarray, POINT))
        found = limited(*at, method)
        assert (found.status, found.degeneracy) == (0, 0)
        assert found.bound_multipliers[2] > 0.1
        assert (jnp.abs(found.multipliers) > 0.1).tolist()[:2] == [True, True]

        def everything(*args: Any) -> Any:
            found = limited(*args, method)
            return jnp.concatenate([found.x, found.multipliers, found.bound_multipliers, found.constr, found.fun[None]])

        directions = tuple(jnp.asarray(np.random.default_rng(i).normal(size=3)) for i in range(3))
        move = lambda t: tuple(x + t * d for x, d in zip(at, directions, strict=True))
        step = 1e-5
        slopes = (everything(*move(step)) - everything(*move(-step))) / (2 * step)
        np.testing.assert_allclose(jacfwd(lambda t: everything(*move(t)))(0.0), slopes, atol=1e-7)
        np.testing.assert_allclose(jacrev(lambda t: everything(*move(t)))(0.0), slopes, atol=1e-7)
        # The derivatives of the least value by the limits are the multipliers.
        by_lower, by_limits = grad(lambda *args: limited(*args, method).fun, (1, 2))(*at)
        np.testing.assert_allclose(by_lower, found.bound_multipliers, atol=1e-12)
        multipliers = found.multipliers
        expected = [multipliers[0], multipliers[1], multipliers[2] + multipliers[3]]
        np.testing.assert_allclose(by_limits, expected, atol=1e-12)


def test_second_derivatives_batches_and_compiled_programs() -> None:
    with enable_x64():
        p, lower, limits = map(jnp.asarray, POINT)
        scalar = lambda p: jnp.sin(limited(p, lower, limits).x).sum()
        gradient, curvature = grad(scalar)(p), hessian(scalar)(p)
        step = 1e-5
        for i, unit in enumerate(np.eye(3)):
            difference = (grad(scalar)(p + step * unit) - grad(scalar)(p - step * unit)) / (2 * step)
            np.testing.assert_allclose(curvature[i], difference, atol=1e-6)
        assert largest_difference(jit(grad(scalar))(p), gradient) < 1e-13
        assert largest_difference(jit(hessian(scalar))(p), curvature) < 1e-12
        batch = jnp.stack([p, p + 0.01])
        each = jnp.stack([grad(scalar)(x) for x in batch])
        assert largest_difference(vmap(grad(scalar))(batch), each) < 1e-13
        assert largest_difference(jit(grad(lambda batch: vmap(scalar)(batch).sum()))(batch), each) < 1e-13


def test_bounds_alone() -> None:
    with enable_x64():
        a = np.array([[0.5, 3.0], [-2.0, 1.5]])
        solution = lambda a, upper: minimize(
            lambda x: ((x - a) ** 2).sum() + 0.1 * (x[0] * x[1]).sum(), jnp.zeros((2, 2)), tol=1e-14,
            bounds=Bounds(-1.0, upper),
        )  # fmt: skip
        found = solution(a, 2.0)
        assert found.success
        assert found.x.shape == found.jac.shape == found.bound_multipliers.shape == (2, 2)
        np.testing.assert_allclose(found.x, [[0.55, 2.0], [-1.0, 1.4]], atol=1e-8)
        np.testing.assert_array_equal(np.sign(found.bound_multipliers), [[0, -1], [1, 0]])
        by_a, by_upper = jacobian(lambda *args: solution(*args).x, (0, 1))(a, 2.0)
        np.testing.assert_allclose(by_upper, [[0, 1], [0, -0.05]], atol=1e-8)
        expected = np.zeros((2, 2, 2, 2))
        expected[0, 0, 0, 0] = expected[1, 1, 1, 1] = 1
        np.testing.assert_allclose(by_a, expected, atol=1e-8)
        forward = jacfwd(lambda *args: solution(*args).x, (0, 1))(a, 2.0)
        assert largest_difference(forward, (by_a, by_upper)) < 1e-14
        assert largest_difference(jit(jacrev(lambda a: solution(a, 2.0).x))(a), by_a) < 1e-14
        pairs = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(2), bounds=[(None, 1), (0, None)])
        np.testing.assert_allclose(pairs.x, [1, 3], atol=1e-6)


def test_single_precision() -> None:
    found = minimize(lambda x: ((x - 2) ** 2).sum(), jnp.zeros(2), constraints=LinearConstraint(jnp.ones(2), ub=1.0))
    assert found.x.dtype == np.float32
    np.testing.assert_allclose(found.x, [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(found.multipliers, [-3], rtol=1e-5)


def square(x: Any) -> Any:
    return (x**2).sum()


def one(fun: Any, b: Any, constraints: Any = (), **more: Any) -> Any:
    return minimize(fun, jnp.zeros(2), method="SLSQP", constraints=constraints, **more)


DEGENERATE: list[tuple[int, str, Any]] = [
    (1, "its multiplier is zero", lambda b: one(lambda x: ((x - b) ** 2).sum(), b, bounds=Bounds(0, jnp.inf))),
    (1, "its multiplier is zero",
     lambda b: minimize(lambda x: ((x - b) ** 2).sum(), jnp.ones(2), bounds=Bounds(0, jnp.inf))),
    (2, "linearly dependent",
     lambda b: one(square, b, LinearConstraint(jnp.array([[1.0, 2.0], [2.0, 4.0]]), b + np.array([1, 2])))),
    (3, "not unique", lambda b: one(lambda x: (x.sum() - 1 - b) ** 2, b, bounds=Bounds(-1, 3))),
    (4, "no point that satisfies the optimality conditions",
     lambda b: one(square, b, LinearConstraint(jnp.ones((2, 2)), jnp.array([1, 2]) + b, jnp.array([1, 2]) + b))),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "text", "solve"), DEGENERATE)
def test_degenerate_solutions_raise_or_have_the_derivative_nan_and_a_reason(reason: int, text: str, solve: Any) -> None:
    with enable_x64():
        assert solve(0.0).degeneracy == reason
        for derivative in (jacfwd, grad):
            first = derivative(lambda b: solve(b).x.sum())
            with pytest.raises(errors.DegenerateSolutionError, match=text):
                first(0.0)
            assert jnp.isnan(jit(first)(0.0))
        assert jnp.isnan(vmap(grad(lambda b: solve(b).x.sum()))(jnp.zeros(2))).all()


def test_status_says_why_there_is_no_solution() -> None:
    with enable_x64():
        rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        box = Bounds(-3, 3)
        for method, kind in (("SLSQP", 1), ("trust-constr", 1), ("L-BFGS-B", 1)):
            found = minimize(rosenbrock, jnp.array([-1.2, 1.0]), method=method, bounds=box, options={"maxiter": 2})
            assert (found.status, found.degeneracy, bool(found.success)) == (kind, 4, False)
        assert one(lambda x: (x * jnp.nan).sum(), 0, bounds=box).status == 6
        assert one(lambda x: x.sum(), 0, bounds=Bounds(1, 0)).status == 4
        kinked = one(lambda x: (jnp.abs(x - 0.5) + 0.3 * x).sum(), 0, bounds=box)
        assert kinked.degeneracy == 4


def test_gradients_and_hessians_of_the_user_are_called() -> None:
    with enable_x64():
        calls: list[str] = []
        fun = lambda x, a: ((x - a) ** 2).sum()
        jac = lambda x, a: calls.append("jac") or 2 * (x - a)  # type: ignore[func-returns-value]
        hess = lambda x, a: calls.append("hess") or 2 * jnp.eye(2)  # type: ignore[func-returns-value]
        for method in ("L-BFGS-B", *METHODS):
            found = minimize(
                fun, jnp.zeros(2), (jnp.array([0.5, 2.0]),), method=method, jac=jac, hess=hess, bounds=Bounds(0, 1)
            )
            np.testing.assert_allclose(found.x, [0.5, 1], atol=1e-6)
            assert set(calls) == {"jac", "hess"}
            calls.clear()


def test_without_arguments_of_its_own_it_is_scipy_that_gives_the_default_method() -> None:
    fun = lambda x: (x**2).sum()
    assert minimize(fun, jnp.ones(2)).hess_inv is not None  # BFGS
    assert minimize(fun, jnp.ones(2), bounds=Bounds(0.5, 1)).multipliers.shape == (0,)
    found = scipy.optimize.minimize(lambda x: (x**2).sum(), np.ones(2), bounds=[(0.5, 1)] * 2)
    np.testing.assert_allclose(minimize(fun, jnp.ones(2), bounds=Bounds(0.5, 1)).x, found.x)


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: minimize(square, jnp.ones(2), method="BFGS", bounds=Bounds(0, 1)), errors.ArgumentError, "has no bounds"),
    (lambda: minimize(square, jnp.ones(2), method="L-BFGS-B", constraints={"type": "eq", "fun": square}),
     errors.ArgumentError, "L-BFGS-B has no constraints"),
    (lambda: minimize(square, jnp.ones(2), method="BFGS", jac=square), errors.ArgumentError, "jac and hess need"),
    (lambda: one(square, 0, [{"type": "le", "fun": square}]), errors.ArgumentError, "needs a 'type', 'eq' or 'ineq'"),
    (lambda: one(square, 0, [square]), errors.ArgumentError, "constraints must be of the classes LinearConstraint"),
    (lambda: one(square, 0, LinearConstraint(jnp.ones(3))), errors.ShapeError, "A of a constraint must have 2 columns"),
    (lambda: one(square, 0, LinearConstraint(jnp.ones(2), jnp.ones(2))), errors.ShapeError, "must broadcast to it"),
    (lambda: one(square, 0, NonlinearConstraint(lambda x: 1j * x, 0, 1)), errors.ShapeError, "must return an array of"),
    (lambda: one(square, 0, bounds=[(0, 1)] * 3), errors.ShapeError, "must be one pair or 2"),
    (lambda: one(square, 0, bounds=Bounds(jnp.ones(3))), errors.ShapeError, "must broadcast to it"),
    (lambda: one(square, 0, options={"disp": True}), errors.ArgumentError, "no option 'disp'"),
    (lambda: one(lambda x: x, 0), errors.ShapeError, "fun must return one scalar float"),
    (lambda: minimize(square, jnp.ones(2) * 1j, bounds=Bounds(0, 1)), errors.DtypeError, "x0 must be real"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
