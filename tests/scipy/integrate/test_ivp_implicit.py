"""The implicit methods of ``solve_ivp``: stiff problems, mass matrices, and derivatives of their steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate as oracle

import pullback as pb
import pullback.numpy as jnp
from pullback import grad, jacfwd, jacrev, jit, vmap
from pullback.core.errors import DtypeError, ShapeError, UnsupportedArgumentError
from pullback.scipy.integrate import solve_ivp

IMPLICIT = ("Radau", "BDF", "Rodas5P")
RATES = np.array([0.04, 3e7, 1e4])
START = np.array([1.0, 0.0, 0.0])


def kinetics(t: Any, y: Any, k: Any) -> Any:
    """Robertson's reactions (1966), whose rates differ by nine orders of magnitude."""
    first, second, third = k[0] * y[0], k[1] * y[1] * y[1], k[2] * y[1] * y[2]
    return jnp.array([third - first, first - third - second, second])


def with_conservation(t: Any, y: Any, k: Any) -> Any:
    """The same, with the sum of the concentrations instead of the last equation."""
    slope = kinetics(t, y, k)
    return jnp.array([slope[0], slope[1], y[0] + y[1] + y[2] - 1.0])


def reference(k: Any, end: float = 10.0) -> Any:
    slope = lambda t, y: np.array([
        k[2] * y[1] * y[2] - k[0] * y[0], k[0] * y[0] - k[2] * y[1] * y[2] - k[1] * y[1] ** 2, k[1] * y[1] ** 2,
    ])  # fmt: skip
    return oracle.solve_ivp(slope, (0.0, end), START, "Radau", rtol=1e-11, atol=1e-14).y[:, -1]


def solved(k: Any, method: str, fun: Any = kinetics, **more: Any) -> Any:
    return solve_ivp(fun, (0.0, 10.0), START, method, args=(k,), rtol=1e-7, atol=1e-11, **more)


@pytest.mark.parametrize("method", ["Rodas5P", *(pytest.param(m, marks=pytest.mark.slow) for m in ("Radau", "BDF"))])
def test_stiff_kinetics_and_its_derivatives(method: str) -> None:
    step = np.array([1e-4 * RATES[0], 0.0, 0.0])
    slope = (reference(RATES + step) - reference(RATES - step)) / (2 * step[0])
    with pb.enable_x64():
        compiled = jit(lambda k: solved(k, method).y[:, -1])
        np.testing.assert_allclose(compiled(RATES), reference(RATES), rtol=2e-5)
        np.testing.assert_allclose(jit(jacrev(lambda k: solved(k, method).y[:, -1]))(RATES)[:, 0], slope, rtol=1e-4)


@pytest.mark.slow
def test_the_derivative_is_that_of_the_steps() -> None:
    """Linear equations, so that one step of Radau has the derivative of its rational function."""
    options = {"first_step": 0.5, "max_step": 0.5, "rtol": 1.0, "atol": 1.0, "t_eval": [0.25, 0.5]}

    def end(rate: Any, method: str) -> Any:
        return solve_ivp(lambda t, y: -rate * y, (0.0, 0.5), [1.0], method, **options).y[0]

    z, dz = -0.5 * 3.0, -0.5
    numerator, denominator = 1 + 2 * z / 5 + z**2 / 20, 1 - 3 * z / 5 + 3 * z**2 / 20 - z**3 / 60
    ratio = numerator / denominator
    slope = ((2 / 5 + z / 10) - ratio * (-3 / 5 + 3 * z / 10 - z**2 / 20)) / denominator * dz
    with pb.enable_x64():
        for way in (jacfwd, lambda f: jit(jacrev(f))):
            np.testing.assert_allclose(way(lambda k: end(k, "Radau"))(3.0)[1], slope, rtol=1e-9)
        for method in ("BDF", "Rodas5P"):
            difference = (end(3.0 + 1e-5, method) - end(3.0 - 1e-5, method)) / 2e-5
            if method == "Rodas5P":
                np.testing.assert_allclose(jacfwd(lambda k, m=method: end(k, m))(3.0), difference, rtol=1e-7)
        np.testing.assert_allclose(
            jacfwd(jacrev(lambda k: end(k, "Rodas5P")[1]))(3.0),
            (end(3.001, "Rodas5P") - 2 * end(3.0, "Rodas5P") + end(2.999, "Rodas5P"))[1] * 1e6, rtol=1e-4,
        )  # fmt: skip


@pytest.mark.parametrize(("method", "least"), [("Rodas5P", 4.6), ("Radau", 4.6)])
def test_orders(method: str, least: float) -> None:
    """Halving the step divides the error at the end, and within steps, by a power of two."""
    times = np.array([0.9, 1.0])
    fun = lambda t, y: jnp.array([y[1] * jnp.cos(t), -y[0] * y[1]])
    exact = oracle.solve_ivp(
        lambda t, y: np.array([y[1] * np.cos(t), -y[0] * y[1]]), (0, 1), [1.0, 0.5], "DOP853", times, rtol=1e-13,
        atol=1e-14,
    ).y  # fmt: skip
    errors = []
    with pb.enable_x64():
        for step in (0.125, 0.0625):
            options = {"first_step": step, "max_step": step, "rtol": 1e-1, "atol": 1e-1}
            if method == "Radau":  # whose stages are solved to a tolerance
                options = {"first_step": step, "max_step": step, "rtol": 1e-12, "atol": 1e9}
            found = jit(lambda y, o=options: solve_ivp(fun, (0.0, 1.0), y, method, times, **o).y)(np.array([1.0, 0.5]))
            errors.append(np.abs(found - exact).max(0))
    orders = np.log2(errors[0] / errors[1])
    assert orders[1] > least
    assert orders[0] > 2.6


@pytest.mark.parametrize("method", IMPLICIT)
def test_singular_mass_matrices(method: str) -> None:
    mass = np.diag([1.0, 1.0, 0.0])
    with pb.enable_x64():
        found = solved(RATES, method, with_conservation, mass_matrix=mass)
        np.testing.assert_allclose(found.y[:, -1], reference(RATES), rtol=5e-5)
        np.testing.assert_allclose(found.y.sum(0), 1.0, rtol=1e-6)
        assert found.success


@pytest.mark.slow
def test_derivatives_with_a_mass_matrix() -> None:
    """M y' = A y is y' = M⁻¹ A y; by the matrix M too."""
    mass, rates = np.array([[2.0, 0.3], [0.1, 1.0]]), np.array([[-1.0, 0.5], [0.2, -2.0]])

    def end(mass: Any, method: str | None = None) -> Any:
        if method is None:
            return solve_ivp(lambda t, y: jnp.linalg.solve(mass, rates @ y), (0.0, 1.0), [1.0, 2.0], rtol=1e-9).y[0, -1]
        return solve_ivp(
            lambda t, y: rates @ y, (0.0, 1.0), [1.0, 2.0], method, mass_matrix=mass, rtol=1e-9, atol=1e-9
        ).y[0, -1]

    with pb.enable_x64():
        wanted = grad(end)(mass)
        np.testing.assert_allclose(jit(grad(lambda m: end(m, "Rodas5P")))(mass), wanted, rtol=1e-5)


def test_van_der_pol_of_mu_1000() -> None:
    bend = lambda t, y, mu: jnp.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
    theirs = oracle.solve_ivp(
        lambda t, y: np.array([y[1], 1000.0 * (1 - y[0] ** 2) * y[1] - y[0]]), (0, 1000.0), [2.0, 0.0], "Radau",
        rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    with pb.enable_x64():
        ours = jit(lambda mu: solve_ivp(bend, (0.0, 1000.0), [2.0, 0.0], "Radau", args=(mu,), rtol=1e-6).y)(1000.0)
    np.testing.assert_allclose(ours[:, -1], theirs.y[:, -1], rtol=1e-3)


def brusselator(n: int) -> tuple[Any, Any, Any]:
    """Return the Brusselator of two substances at n points of a line, its pattern, and the first concentrations."""

    def slope(t: Any, y: Any) -> Any:
        u, v = y[::2], y[1::2]
        wide = jnp.pad(jnp.stack([u - 1.0, v - 3.0]), ((0, 0), (1, 1)))
        spread = 0.02 * (n + 1) ** 2 * (wide[:, 2:] - 2 * wide[:, 1:-1] + wide[:, :-2])
        return jnp.stack([1.0 + u * u * v - 4.0 * u + spread[0], 3.0 * u - u * u * v + spread[1]], axis=1).reshape(-1)

    x = np.arange(1, n + 1) / (n + 1)
    start = np.stack([1 + np.sin(2 * np.pi * x), np.full(n, 3.0)], axis=1).reshape(-1)
    rows = np.arange(2 * n)
    pattern = (abs(rows[:, None] - rows) <= 2).astype(np.int8)
    return slope, pattern, start


def test_sparse_jacobians_on_the_host() -> None:
    slope, pattern, start = brusselator(40)
    with pb.enable_x64():
        dense, sparse = (
            solve_ivp(slope, (0.0, 1.0), start, "BDF", rtol=1e-5, jac_sparsity=p).y[:, -1] for p in (None, pattern)
        )
        np.testing.assert_allclose(sparse, dense, rtol=1e-5)
        with pytest.raises(UnsupportedArgumentError, match="concrete arguments"):
            jit(lambda y: solve_ivp(slope, (0.0, 1.0), y, "BDF", jac_sparsity=pattern).y)(start)
        with pytest.raises(ShapeError, match="jac_sparsity must have shape"):
            solve_ivp(slope, (0.0, 1.0), start, "BDF", jac_sparsity=np.eye(3))


@pytest.mark.slow
def test_vmap_and_events_of_stiff_solutions() -> None:
    half = lambda t, y, k: y[0] - 0.9
    half.terminal = True  # type: ignore[attr-defined]

    def time(k: Any) -> Any:
        return solved(RATES * jnp.stack([k, 1.0, 1.0]), "Rodas5P", events=half).t_events[0][0]

    with pb.enable_x64():
        ks = np.array([1.0, 1.5])
        times = vmap(time)(ks)
        np.testing.assert_allclose(times, [float(time(k)) for k in ks], rtol=1e-8)
        np.testing.assert_allclose(jit(grad(time))(1.0), (time(1.001) - time(0.999)) / 0.002, rtol=1e-3)


@pytest.mark.slow
def test_a_jacobian_of_the_user() -> None:
    jac = lambda t, y, k: jacfwd(lambda y: kinetics(t, y, k))(y)
    with pb.enable_x64():
        np.testing.assert_allclose(solved(RATES, "Radau", jac=jac).y[:, -1], reference(RATES), rtol=1e-5)
        ours = jit(lambda k: solved(k, "Radau", jac=jac).y[:, -1])(RATES)
        np.testing.assert_allclose(ours, reference(RATES), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"method": "RK45", "jac": np.eye(2)}, UnsupportedArgumentError, "no option jac"),
        ({"method": "LSODA", "mass_matrix": np.eye(2)}, UnsupportedArgumentError, "no option mass_matrix"),
        ({"mass_matrix": np.eye(3)}, ShapeError, "mass_matrix must be a matrix of shape"),
        ({"jac": np.eye(3)}, ShapeError, "jac must be a matrix of shape"),
        ({"y0": np.array([1j, 0])}, DtypeError, "real y0"),
    ],
)
def test_errors(change: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], "method": "Radau"} | change
    with pytest.raises(error, match=words):
        solve_ivp(**arguments)


def test_lsoda_has_no_derivatives() -> None:
    with pytest.raises(UnsupportedArgumentError, match="LSODA has no derivatives"):
        jit(lambda y: solve_ivp(lambda t, y: -y, (0.0, 1.0), y, "LSODA").y)(START)
