"""Boundary value problems: values beside SciPy's, derivatives, transformations, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jacrev, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DegenerateSolutionError, DtypeError, OperandError, ShapeError
from pullback.scipy.integrate import solve_bvp

MESH = np.linspace(0.0, 1.0, 5)


def bratu(k: Any, b: Any = 0.0, end: Any = 1.0, np: Any = jnp, solve: Any = solve_bvp, **options: Any) -> Any:
    """Solve y'' + k exp(y) = 0 from y(0) = 0 to y(end) = b."""
    fun = lambda x, y: np.vstack([y[1], -k * np.exp(y[0])])
    ends = lambda first, last: np.array([first[0], last[0] - b])
    return solve(fun, ends, end * MESH, np.zeros((2, 5)), **{"tol": 1e-6, **options})


def wave(scale: Any, np: Any = jnp, solve: Any = solve_bvp, **options: Any) -> Any:
    """Find the frequency of y'' + scale k² y = 0 with y(0) = y(1) = 0 near 6."""
    fun = lambda x, y, p: np.vstack([y[1], -scale * p[0] ** 2 * y[0]])
    ends = lambda first, last, p: np.array([first[0], last[0], first[1] - p[0]])
    guess = np.array([[0.0, 1.0, 0.0, -1.0, 0.0], [0.0] * 5])
    return solve(fun, ends, MESH, guess, [6.0], **options)


def emden(power: Any, s: Any, np: Any = jnp, solve: Any = solve_bvp, **options: Any) -> Any:
    """Solve y'' + s / x y' + y**power = 0, whose second term is singular."""
    fun = lambda x, y: np.vstack([y[1], -(y[0] ** power)])
    ends = lambda first, last: np.array([first[1], last[0] - (3 / 4) ** 0.5])
    singular = np.array([[0.0, 0.0], [0.0, 1.0]]) * -s
    return solve(fun, ends, MESH, np.ones((2, 5)), S=singular, **options)


@pytest.mark.parametrize("case", ["plain", "parameter", "singular"])
def test_results_are_those_of_scipy(case: str) -> None:
    def run(np: Any, solve: Any) -> Any:
        if case == "plain":
            return bratu(1.5, np=np, solve=solve)
        return wave(1.0, np, solve) if case == "parameter" else emden(5, 2.0, np, solve)

    with enable_x64():
        ours, theirs = run(jnp, solve_bvp), run(np, scipy.integrate.solve_bvp)
        tol = 1e-6 if case == "plain" else 1e-3
        np.testing.assert_allclose(np.asarray(ours.x), theirs.x, rtol=1e-14)
        for name in ("y", "yp"):
            found, expected = np.asarray(getattr(ours, name)), getattr(theirs, name)
            assert found.shape == expected.shape
            assert abs(found - expected).max() < 0.1 * tol * (1 + abs(expected).max())
        assert np.all(np.asarray(ours.rms_residuals) < tol)
        assert (int(ours.niter), int(ours.status), bool(ours.success)) == (theirs.niter, 0, True)
        assert ours.message == theirs.message
        points = np.linspace(-0.1, 1.1, 7)
        for order in (0, 1):
            assert abs(np.asarray(ours.sol(points, order)) - theirs.sol(points, order)).max() < 10 * tol
        if case == "parameter":
            assert abs(float(ours.p[0]) - theirs.p[0]) < 1e-3
        else:
            assert ours.p is None
            assert theirs.p is None


def test_known_solutions() -> None:
    with enable_x64():
        ours = emden(5, 2.0, tol=1e-6)
        points = jnp.linspace(0.0, 1.0, 11)
        assert abs(ours.sol(points)[0] - (1 + points**2 / 3) ** -0.5).max() < 1e-7
        assert abs(wave(1.0, tol=1e-8).p[0] - 2 * np.pi) < 1e-8


def test_user_jacobians_lead_to_the_same_solution() -> None:
    with enable_x64():
        k = jnp.asarray(1.0)

        def fun_jac(x: Any, y: Any, p: Any) -> Any:
            one, zero = jnp.ones_like(y[0]), jnp.zeros_like(y[0])
            by_state = jnp.array([[zero, one], [-k * p[0] ** 2 * one, zero]])
            return by_state, jnp.array([[zero], [-2 * p[0] * k * y[0]]])

        def bc_jac(first: Any, last: Any, p: Any) -> Any:
            return (
                jnp.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]),
                jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]),
                jnp.array([[0.0], [0.0], [-1.0]]),
            )

        plain, ours = wave(1.0), wave(1.0, fun_jac=fun_jac, bc_jac=bc_jac)
        np.testing.assert_allclose(np.asarray(ours.y), np.asarray(plain.y), atol=1e-9)
        one_state = solve_bvp(
            lambda x, y: -y, lambda a, b: jnp.array([a[0] - 1.0]), MESH, jnp.ones((1, 5)), tol=1e-8,
            fun_jac=lambda x, y: -jnp.ones((1, 1, x.shape[0])), bc_jac=lambda a, b: (jnp.eye(1), jnp.zeros((1, 1))),
        )  # fmt: skip
        assert abs(one_state.y[0, -1] - np.exp(-1)) < 1e-8


def test_a_complex_state() -> None:
    with enable_x64():

        def end(rate: Any) -> Any:
            fun = lambda x, y: rate * y
            return solve_bvp(fun, lambda a, b: a - 1.0, MESH, jnp.ones((1, 5)) + 0j, tol=1e-9).y[0, -1]

        rate = 0.3 + 1.1j
        assert abs(end(rate) - np.exp(rate)) < 1e-8
        slope = grad(end, holomorphic=True)(jnp.asarray(rate))
        assert abs(slope - np.exp(rate)) < 1e-7


def difference(f: Any, at: float, step: float = 1e-3) -> float:
    """Return the derivative by a difference of fourth order."""
    up, down, far, below = (float(f(at + s * step)) for s in (1, -1, 2, -2))
    return (8 * (up - down) - (far - below)) / (12 * step)


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda k: bratu(k).sol(0.4)[0], 1.0),
        (lambda b: bratu(1.0, b).yp[1, 0], 0.2),
        (lambda end: bratu(1.0, 0.1, end, tol=1e-9).y[1, -1], 1.2),
        (lambda scale: wave(scale).p[0], 1.1),
        (lambda power: emden(power, 2.0).sol(0.3)[0], 4.5),
        (lambda s: emden(5.0, s).y[0, 0], 2.2),
        (lambda k: bratu(k).sol.integrate(0.0, 1.0)[0], 1.0),
    ],
    ids=["coefficient", "boundary", "end", "parameter", "power", "singular", "integral"],
)
def test_derivatives_are_those_of_differences(f: Any, at: float) -> None:
    with enable_x64():
        expected = difference(f, at)
        bound = 1e-7 * (1 + abs(expected))
        assert abs(float(grad(f)(at)) - expected) < bound
        assert abs(float(jvp(f, (at,), (1.0,))[1]) - expected) < bound


def test_second_derivatives_and_several_parameters() -> None:
    with enable_x64():
        f = lambda v: bratu(v[0], v[1]).sol(0.4)[0]
        at = jnp.array([1.0, 0.2])
        whole = hessian(f)(at)
        np.testing.assert_allclose(np.asarray(jacrev(jacrev(f))(at)), np.asarray(whole), rtol=1e-9)
        for i in range(2):
            unit = jnp.eye(2)[i]
            expected = difference(lambda s, unit=unit: jvp(f, (at + s * unit,), (unit,))[1], 0.0)
            assert abs(float(whole[i, i]) - expected) < 1e-7


def test_compiled_and_mapped() -> None:
    with enable_x64():
        f = lambda k: bratu(k, max_nodes=64).sol(jnp.array([0.3, 1.05]))[0]
        at = jnp.array([1.0, 0.5])
        values, slopes = f(1.0), jacfwd(f)(1.0)
        np.testing.assert_allclose(np.asarray(jit(f)(1.0)), np.asarray(values), atol=1e-12)
        np.testing.assert_allclose(np.asarray(jit(jacfwd(f))(1.0)), np.asarray(slopes), atol=1e-11)
        np.testing.assert_allclose(np.asarray(jacfwd(jit(f))(1.0)), np.asarray(slopes), atol=1e-11)
        batch = vmap(jacrev(f))(at)
        np.testing.assert_allclose(np.asarray(batch[0]), np.asarray(slopes), atol=1e-11)
        np.testing.assert_allclose(np.asarray(batch[1]), np.asarray(jacrev(f)(0.5)), atol=1e-11)
        found = jit(lambda k: bratu(k, max_nodes=64))(1.0)
        plain, m = bratu(1.0), bratu(1.0).x.shape[0]
        assert found.x.shape == (64,)
        assert found.y.shape == (2, 64)
        assert found.rms_residuals.shape == (63,)
        np.testing.assert_allclose(np.asarray(found.y[:, :m]), np.asarray(plain.y), atol=1e-12)
        assert jnp.all(found.x[m - 1 :] == 1.0)
        assert jnp.all(found.y[:, m:] == found.y[:, m - 1 : m])
        assert abs(found.sol(1.05, 2)[0] - plain.sol(1.05, 2)[0]) < 1e-9


def test_single_precision() -> None:
    middle = lambda k: bratu(k, tol=1e-3).sol(0.5)[0]
    found = bratu(jnp.float32(1.0), tol=1e-3)
    assert found.y.dtype == np.float32
    assert bool(found.success)
    slope = grad(middle)(1.0)
    assert slope.dtype == np.float32
    with enable_x64():
        assert abs(float(slope) - float(grad(middle)(1.0))) < 1e-5


def test_a_mesh_that_would_be_too_large() -> None:
    """The values are those of the last mesh; the derivative is an error, or NaN where it is compiled."""
    with enable_x64():
        f = lambda k: bratu(k, tol=1e-10, max_nodes=8)
        assert int(f(1.0).status) == 1
        assert "maximum number" in f(1.0).message
        with pytest.raises(DegenerateSolutionError, match="the maximum number of mesh nodes is exceeded"):
            grad(lambda k: f(k).y[0, 1])(1.0)
        g = lambda k: f(k).y[0, 1]
        assert np.isnan(jit(grad(g))(1.0))
        assert np.isnan(jit(lambda k: jvp(g, (k,), (1.0,))[1])(1.0))
        messages = []
        jit(lambda k: messages.append(f(k).message))(1.0)
        assert messages == ["The status is traced, or differs between solutions."]


def test_problems_without_a_solution_have_another_status() -> None:
    with enable_x64():
        found = bratu(5.0)  # beyond the turning point at 3.51
        assert int(found.status) in (1, 2)
        assert not bool(found.success)
        batch = vmap(lambda k: bratu(k, max_nodes=40).status)(jnp.array([1.0, 5.0]))
        assert int(batch[0]) == 0
        assert int(batch[1]) != 0


def test_the_report_is_printed(capfd: Any) -> None:
    with enable_x64():
        bratu(1.0, verbose=1)
    assert "Solved in" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"fun": 3}, ArgumentError, "fun must be a function"),
        ({"bc_jac": 3}, ArgumentError, "bc_jac must be a function"),
        ({"x": np.array([0.0, 1.0, 1.0])}, ArgumentError, "x must increase strictly"),
        ({"x": np.zeros((2, 2))}, ShapeError, "x must be a vector"),
        ({"x": 1j * np.arange(5)}, DtypeError, "x must be real"),
        ({"y": np.zeros(5)}, ShapeError, r"y must have shape \(n, 5\)"),
        ({"y": np.zeros((2, 4))}, ShapeError, r"y must have shape \(n, 5\)"),
        ({"p": np.zeros((1, 1))}, ShapeError, "p must be a vector"),
        ({"p": np.array([1j])}, DtypeError, "p is complex"),
        ({"S": np.zeros((3, 3))}, ShapeError, r"S must have shape \(2, 2\)"),
        ({"tol": 0.0}, ArgumentError, "tol must be a positive number"),
        ({"bc_tol": "a"}, ArgumentError, "bc_tol must be a positive number"),
        ({"max_nodes": 0}, ArgumentError, "max_nodes must be at least 1"),
        ({"verbose": 3}, ArgumentError, "verbose must be 0, 1 or 2"),
        ({"fun": lambda x, y: y[0]}, ShapeError, r"fun must return an array of shape \(2, 1\) at one point"),
        ({"fun": lambda x, y: y * 1j}, OperandError, "fun returned complex numbers"),
        ({"fun": lambda x, y: "a"}, OperandError, "fun must return arrays of numbers"),
        ({"bc": lambda a, b: a[:1]}, ShapeError, r"bc must return an array of shape \(2,\)"),
        ({"bc_jac": lambda a, b: jnp.eye(2)}, ShapeError, "bc_jac must return 2 arrays"),
    ],
)  # fmt: skip
def test_bad_input(change: Any, error: Any, text: str) -> None:
    arguments = {
        "fun": lambda x, y: jnp.vstack([y[1], -y[0]]), "bc": lambda a, b: jnp.array([a[0], b[0]]), "x": MESH,
        "y": np.zeros((2, 5)),
    }  # fmt: skip
    with pytest.raises(error, match=text):
        solve_bvp(**{**arguments, **change})


def test_a_traced_mesh_that_does_not_increase() -> None:
    f = jit(lambda x: bratu(1.0, max_nodes=16, end=x).y[0, 1])
    with pytest.raises(ArgumentError, match="x must increase strictly"):
        f(-1.0).block_until_ready()
