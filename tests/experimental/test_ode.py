"""odeint: solutions against SciPy's and closed forms, derivatives of all modes against those of the exact solution."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pullback.numpy as pnp
from pullback import (
    disable_jit,
    enable_x64,
    float0,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    random,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.backends.compiler import programs
from pullback.core.errors import (
    ArgumentError,
    ControlFlowError,
    DtypeError,
    OperandError,
    TracerBoolConversionError,
    UnexpectedTracerError,
)
from pullback.core.jaxpr import subjaxprs
from pullback.experimental import dormand_prince, dormand_prince_adjoint
from pullback.experimental.ode import odeint
from tests.helpers import EXHAUSTIVE, assert_elements_close, chosen

EAGER_AND_JIT = pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


# Problems ------------------------------------------------------------------------------------------------------------


def pendulum(y, t, p):
    angle, speed = y
    return pnp.stack([speed, -p[0] * speed - p[1] * pnp.sin(angle)])


def lotka_volterra(y, t, p):
    prey, predators = y
    return pnp.stack([p[0] * prey - p[1] * prey * predators, p[2] * prey * predators - p[3] * predators])


def van_der_pol(y, t, p):
    x, v = y
    return pnp.stack([v, p[0] * (1 - x**2) * v - x])


def driven(y, t, p):
    return pnp.stack([y[1], p[0] * pnp.sin(p[1] * t) - y[0]])


PROBLEMS = {
    "pendulum": (pendulum, [1.0, 0.0], [0.2, 4.0], 10.0),
    "lotka_volterra": (lotka_volterra, [10.0, 5.0], [1.5, 1.0, 1.0, 3.0], 8.0),
    "van_der_pol_5": (van_der_pol, [2.0, 0.0], [5.0], 20.0),
    "van_der_pol_10": (van_der_pol, [2.0, 0.0], [10.0], 25.0),
    "driven": (driven, [0.5, 0.0], [0.8, 2.0], 6.0),
}


def by_scipy(function, y0, p, times, tolerance=1e-12):
    """The solution by SciPy, with the derivatives by NumPy."""

    def derivative(t, y):
        return np.asarray(function(np.asarray(y), t, np.asarray(p)))

    with enable_x64():
        solution = solve_ivp(
            derivative, (times[0], times[-1]), y0, method="DOP853", t_eval=times, rtol=tolerance, atol=tolerance
        )
    return solution.y.T


# Solutions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_against_scipy(name, x64):
    function, y0, p, end = PROBLEMS[name]
    times = np.linspace(0.0, end, 37)
    expected = by_scipy(function, y0, p, times)
    found = odeint(function, pnp.array(y0), times, pnp.array(p), **TIGHT)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=3e-7)
    found = odeint(function, pnp.array(y0), times, pnp.array(p), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=5e-4, atol=5e-4)


@EAGER_AND_JIT
def test_float32(wrap):
    function, y0, p, end = PROBLEMS["pendulum"]
    times = np.linspace(0.0, end, 11, dtype=np.float32)
    found = wrap(lambda y, t, p: odeint(function, y, t, p))(pnp.array(y0), times, pnp.array(p))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_scipy(function, y0, p, np.linspace(0.0, end, 11)), rtol=2e-5, atol=2e-5)


def test_the_errors_follow_the_tolerances(x64):
    times = np.array([0.0, 0.37, 2.0, 5.0])
    exact = np.exp(-times)
    errors = [
        np.abs(odeint(lambda y, t: -y, 1.0, times, rtol=tol, atol=tol) - exact).max() for tol in (1e-4, 1e-7, 1e-10)
    ]
    assert 1e-13 < errors[2] < 2e-9 < errors[1] < 2e-6 < errors[0] < 2e-3


@pytest.mark.parametrize("unrolled", [0, 10**6])
def test_both_ways_to_write_the_stages(unrolled, monkeypatch, x64):
    monkeypatch.setattr(dormand_prince, "UNROLLED", unrolled)
    monkeypatch.setattr(dormand_prince_adjoint, "UNROLLED_BACKWARDS", unrolled)
    times = pnp.array([0.0, 1.0, 2.5])

    def f(y, p):  # a program of its own, since it is kept what the stages were like
        return odeint(lambda y, t, p: (1.0 + 0.0 * unrolled) * driven(y, t, p), y, times, p, **TIGHT)

    y0, p = pnp.array([0.5, 0.0]), pnp.array([0.8, 2.0])
    np.testing.assert_allclose(f(y0, p), by_scipy(driven, y0, p, np.array(times)), rtol=1e-8)
    np.testing.assert_allclose(jacrev(f, 1)(y0, p), jacfwd(f, 1)(y0, p), rtol=1e-7, atol=1e-8)


def test_the_method_has_the_order_that_its_name_says():
    """The conditions of Hairer, Nørsett and Wanner, theorem II.2.13, for the interpolant too."""
    nodes = np.array([0.0, *dormand_prince.NODES])
    stages = np.zeros((7, 7))
    for i, weights in enumerate(dormand_prince.STAGES, 1):
        stages[i, : len(weights)] = weights
    np.testing.assert_allclose(stages.sum(1), nodes, atol=1e-14)
    results = stages[6]
    embedded = results - np.array(dormand_prince.ERROR)
    for order in range(1, 6):
        np.testing.assert_allclose(results @ nodes ** (order - 1), 1 / order, atol=1e-14)
    for order in range(1, 5):
        np.testing.assert_allclose(embedded @ nodes ** (order - 1), 1 / order, atol=1e-14)
    assert abs(embedded @ nodes**4 - 1 / 5) > 1e-4
    trees = [
        (np.ones(7), 1, 1), (nodes, 2, 1 / 2), (nodes**2, 3, 1 / 3), (stages @ nodes, 3, 1 / 6), (nodes**3, 4, 1 / 4),
        (nodes * (stages @ nodes), 4, 1 / 8), (stages @ nodes**2, 4, 1 / 12), (stages @ stages @ nodes, 4, 1 / 24),
    ]  # fmt: skip
    for x in (0.2, 0.5, 0.9):
        weights = results * (x + x * (x - 1) * (1 - 2 * x)) + (x * (1 - x)) ** 2 * np.array(dormand_prince.BEND)
        weights[0] += x * (x - 1) ** 2
        weights[6] += x**2 * (x - 1)
        for values, order, expected in trees:
            np.testing.assert_allclose(weights @ values, expected * x**order, atol=1e-14)


@pytest.mark.parametrize("name", ["pendulum", "van_der_pol_5"])
def test_as_many_steps_as_scipy_takes(name, x64):
    function, y0, p, end = PROBLEMS[name]
    tolerances = {"rtol": 1e-6, "atol": 1e-6}

    def derivative(t, y):
        return np.asarray(function(y, t, np.asarray(p)))

    steps = solve_ivp(derivative, (0.0, end), y0, method="RK45", **tolerances).nfev / 6
    for mxstep, enough in ((1.05 * steps, True), (0.95 * steps, False)):
        found = odeint(function, pnp.array(y0), np.array([0.0, end]), pnp.array(p), mxstep=mxstep, **tolerances)
        assert bool(np.isfinite(found[1]).all()) == enough


# Derivatives ---------------------------------------------------------------------------------------------------------


def growth(y, t, rate, others):
    """Two equations with solutions in closed form: logistic growth, and a Gaussian in time."""
    return {"z": -2 * others["width"] * t * y["z"], "x": rate * y["x"] * (1 - y["x"] / others["limit"])}


def exactly(y, t, rate, others):
    t = t[:, None]
    x = others["limit"] / (1 + (others["limit"] / y["x"] - 1) * pnp.exp(-rate * (t - t[0])))
    return {"x": x, "z": y["z"] * pnp.exp(-others["width"] * (t[:, 0] ** 2 - t[0, 0] ** 2))}


def solved(y, t, rate, others):
    return odeint(growth, y, t, rate, others, **TIGHT)


def loss_of(solution):
    def loss(y, t, rate, others):
        out = solution(y, t, rate, others)
        return pnp.sum(pnp.sin(out["x"]) * t[:, None]) + pnp.sum(out["z"] ** 2 * pnp.arange(1.0, 1 + t.shape[0]))

    return loss


def point():
    y = {"x": pnp.array([0.3, 1.2]), "z": pnp.array(0.7)}
    return y, pnp.array([0.2, 0.5, 0.5, 1.4]), pnp.array([0.9, 0.4]), {"limit": pnp.array(2.0), "width": pnp.array(0.6)}


assert_like = partial(assert_elements_close, rtol=1e-6, atol=2e-8)


ALL = (0, 1, 2, 3)


def directional(loss):
    """The gradient of a derivative along a direction."""
    return grad(lambda *args: jvp(lambda *xs: loss(*xs), args, args)[1], ALL)


MODES = {
    "value_and_grad": lambda loss: value_and_grad(loss, ALL),
    "jvp": lambda loss: lambda *args: jvp(loss, args, args),
    "linearize": lambda loss: lambda *args: linearize(loss, *args)[1](*args),
    "jacfwd": lambda loss: jacfwd(loss, ALL),
    "grad of jvp": directional,
}


def some_compiled(modes, *compiled):
    """Each mode in one way, those that are named compiled and the others eager; in both in the exhaustive run."""
    cases = [(mode, wrap) for mode in modes for wrap in ("eager", "jit")]
    if not EXHAUSTIVE:
        cases = [(mode, "jit" if mode in compiled else "eager") for mode in modes]
    ways = {"eager": lambda f: f, "jit": jit}
    return pytest.mark.parametrize(
        ("mode", "wrap"), [pytest.param(mode, ways[wrap], id=f"{mode}-{wrap}") for mode, wrap in cases]
    )


SECOND = {
    "forward over reverse": lambda loss: hessian(loss, ALL),
    "reverse over reverse": lambda loss: jacrev(jacrev(loss, ALL), ALL),
    "reverse over forward": lambda loss: jacrev(jacfwd(loss, ALL), ALL),
    "forward over forward": lambda loss: jacfwd(jacfwd(loss, ALL), ALL),
}


@some_compiled(MODES, "value_and_grad", "grad of jvp")
def test_first_derivatives(mode, wrap, x64):
    expected = MODES[mode](loss_of(exactly))(*point())
    assert_like(wrap(MODES[mode](loss_of(solved)))(*point()), expected)


@pytest.mark.slow
@some_compiled(chosen(["reverse over forward"], list(SECOND)))
def test_second_derivatives(mode, wrap, x64):
    expected = hessian(loss_of(exactly), ALL)(*point())
    assert_like(wrap(SECOND[mode](loss_of(solved)))(*point()), expected, rtol=1e-5, atol=3e-7)


@pytest.mark.slow
def test_hessian_of_the_pendulum(x64):
    """By its own gradients, and differences of these."""
    times = np.linspace(0.0, 1.5, 4)

    def loss(p):
        return pnp.sum(odeint(pendulum, pnp.array([1.0, 0.0]), times, p, **TIGHT) ** 2)

    p = pnp.array([0.2, 4.0])
    found = hessian(loss)(p)
    differences = [(grad(loss)(p + e) - grad(loss)(p - e)) / 2e-4 for e in 1e-4 * pnp.eye(2)]
    np.testing.assert_allclose(found, pnp.stack(differences), rtol=1e-5)
    np.testing.assert_allclose(jacrev(grad(loss))(p), found, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lotka_volterra", "van_der_pol_5"])
def test_sensitivities_against_scipy(name, x64):
    """The equation of the tangents, solved by SciPy."""
    function, y0, p, end = PROBLEMS[name]
    y0, p, times = np.array(y0), np.array(p), np.linspace(0.0, end / 2, 5)
    by_state, by_parameters = (jit(jacfwd(function, i)) for i in (0, 2))

    def derivative(t, flat):
        y, tangents = flat[:2], flat[2:].reshape(2, -1)
        moved = np.asarray(by_state(y, t, p)) @ tangents
        moved[:, 2:] += by_parameters(y, t, p)
        return np.concatenate([function(y, t, p), moved.ravel()])

    begin = np.concatenate([y0, np.eye(2, 2 + p.size).ravel()])
    solution = solve_ivp(derivative, (0, times[-1]), begin, method="DOP853", rtol=1e-11, atol=1e-11)
    expected = solution.y[2:, -1].reshape(2, -1)

    def final(y, p):
        return odeint(function, y, times, p, **TIGHT)[-1]

    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(pnp.hstack(jacobian(final, (0, 1))(y0, p)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@EAGER_AND_JIT
def test_values_that_the_function_closes_over(wrap, x64):
    def by_closure(p, k):
        return odeint(lambda y, t: -p * y**k, 2.0, pnp.array([0.0, 0.5, 1.0]), **TIGHT)[-1]

    def closed_form(p, k):  # for k = 2
        return 1 / (1 / 2.0 + p)

    p, two = pnp.array(0.7), pnp.array(2)
    for derivative in (
        grad,
        lambda f: grad(grad(f)),
        lambda f: grad(lambda *xs: jvp(lambda p: f(p, two), (xs[0],), (1.0,))[1]),
    ):
        expected = derivative(closed_form)(p, two)
        np.testing.assert_allclose(wrap(derivative(by_closure))(p, two), expected, rtol=1e-6)
    ps = pnp.array([0.2, 0.7, 5.0])
    np.testing.assert_allclose(
        wrap(vmap(grad(by_closure), (0, None)))(ps, two), vmap(grad(closed_form), (0, None))(ps, two), rtol=1e-6
    )
    ks = pnp.array([0, 1, 2])  # integers of the mapped axis
    np.testing.assert_allclose(
        wrap(vmap(by_closure, (None, 0)))(p, ks), [2 - 0.7, 2 * np.exp(-0.7), 1 / (0.5 + 0.7)], rtol=1e-8
    )


def test_arguments_without_derivatives(x64):
    times = pnp.array([0.0, 0.5, 1.0])

    def loss(y, options):
        return odeint(lambda y, t, options: -y * options["power"], y, times, options, **TIGHT).sum()

    expected = sum(np.exp(-3 * np.array(times)))
    np.testing.assert_allclose(grad(loss)(1.0, {"power": 3, "unused": None}), expected, rtol=1e-8)
    assert grad(loss, 1, allow_int=True)(1.0, {"power": 3})["power"].dtype == float0


def test_cotangents_are_computed_only_of_what_is_differentiated(x64):
    weights = pnp.zeros((30, 30))
    times = pnp.array([0.0, 1.0])

    def loss(y, weights):
        return odeint(lambda y, t, w: -y * pnp.sum(w[:3, :3] + y), y, times, weights, **TIGHT)[-1]

    def results(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.params.get("name") == "odeint_adjoint":
                yield [v.aval.shape for v in eqn.outvars]
            for inner in subjaxprs(eqn):
                yield from results(inner)

    assert list(results(make_jaxpr(grad(loss))(1.0, weights).jaxpr)) == [[(1,)]]
    # The part of the weights that is used is taken once, before the steps.
    assert list(results(make_jaxpr(grad(loss, 1))(1.0, weights).jaxpr)) == [[(1,), (3, 3)]]


@pytest.mark.slow
def test_both_modes_differentiate_the_same_steps(x64):
    """<w, J v> = <Jᵀ w, v> to rounding, however large the tolerances are, and Hessians are symmetric."""
    times = pnp.linspace(0.0, 8.0, 5)

    def solution(y, t, p):
        return odeint(lotka_volterra, y, t, p, rtol=1e-3, atol=1e-3)

    args = pnp.array([10.0, 5.0]), times, pnp.array([1.5, 1.0, 1.0, 3.0])
    along = tree.map(lambda x: pnp.cos(pnp.arange(x.size, dtype=float)), args)
    out, tangent = jvp(solution, args, along)
    w = pnp.sin(pnp.arange(out.size, dtype=float)).reshape(out.shape)
    cts = vjp(solution, *args)[1](w)
    product = sum(pnp.vdot(a, b) for a, b in zip(cts, along, strict=True))
    terms = sum(pnp.vdot(abs(a), abs(b)) for a, b in zip(cts, along, strict=True))  # they cancel in part
    np.testing.assert_allclose(product, pnp.vdot(w, tangent), atol=1e-11 * float(terms))
    matrix = hessian(lambda p: pnp.sum(solution(args[0], times, p) * w))(args[2])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9)


@pytest.mark.parametrize("block", [8, 16])
def test_more_steps_than_are_gone_through_at_a_time(block, monkeypatch, x64):
    """Some 700 steps, in blocks of which the states are kept in few places."""
    monkeypatch.setattr(dormand_prince_adjoint, "BLOCK", block)
    times = np.array([0.0, 3.0, 3.0, 20.0])

    def loss(y, p):
        ys = odeint(lambda y, t, p: van_der_pol(y, t, p) + 0 * block, y, times, p, rtol=1e-8, atol=1e-8)
        return pnp.sum(pnp.sin(ys))

    args = pnp.array([2.0, 0.1]), pnp.array([5.0])
    for found, expected in zip(grad(loss, (0, 1))(*args), jacfwd(loss, (0, 1))(*args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_an_equation_that_forgets_its_past(x64):
    """Its solution cannot be computed backwards in time: errors would grow by exp(60)."""

    def final(k):
        return odeint(lambda y, t, k: -k * (y - pnp.cos(t)), 0.0, pnp.array([0.0, 3.0]), k, **TIGHT)[-1]

    def exactly(k):
        return (k**2 * pnp.cos(3.0) + k * pnp.sin(3.0) - k**2 * pnp.exp(-3 * k)) / (k**2 + 1)

    np.testing.assert_allclose(grad(final)(20.0), grad(exactly)(20.0), rtol=1e-6)
    decayed = grad(lambda k: odeint(lambda y, t: -k * y, 1.0, pnp.array([0.0, 1.0]), rtol=1e-10, atol=1e-14)[1])(20.0)
    np.testing.assert_allclose(decayed, -np.exp(-20.0), rtol=1e-4)


# Mapped --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@EAGER_AND_JIT
def test_examples_with_different_numbers_of_steps(wrap, x64):
    times = pnp.linspace(0.0, 3.0, 6)

    def solution(y, p):
        return odeint(pendulum, y, times, p, **TIGHT)

    ys, ps = pnp.array([[1.0, 0.0], [0.1, 0.3], [0.0, 9.0]]), pnp.array([[0.2, 4.0], [0.0, 0.1], [0.5, 300.0]])
    mapped = wrap(vmap(solution))(ys, ps)
    gradients = wrap(vmap(grad(lambda y, p: solution(y, p)[-1].sum(), (0, 1))))(ys, ps)
    for i in range(3):
        np.testing.assert_allclose(mapped[i], solution(ys[i], ps[i]), rtol=1e-9, atol=1e-9)
        alone = grad(lambda y, p: solution(y, p)[-1].sum(), (0, 1))(ys[i], ps[i])
        for found, expected in zip(gradients, alone, strict=True):
            np.testing.assert_allclose(found[i], expected, rtol=1e-7, atol=1e-8)


@pytest.mark.slow
def test_mapped_over_each_argument(x64):
    def solution(y, t, p):
        return odeint(driven, y, t, p, **TIGHT)[1:]

    args = pnp.array([0.5, 0.1]), pnp.array([0.0, 1.0, 1.5]), pnp.array([0.8, 2.0])
    for which in ((0,), (1,), (2,), (0, 1, 2)):
        in_axes = tuple(-1 if i in which else None for i in range(3))
        given = [pnp.stack([x, 1.5 * x], -1) if i in which else x for i, x in enumerate(args)]
        each = [[(1 + 0.5 * k) * x if i in which else x for i, x in enumerate(args)] for k in range(2)]
        np.testing.assert_allclose(
            vmap(solution, in_axes)(*given), pnp.stack([solution(*xs) for xs in each]), rtol=1e-9, atol=1e-12
        )
        if len(which) == 3:
            found = vmap(jacrev(solution, (0, 1, 2)), in_axes)(*given)
            expected = [jacfwd(solution, (0, 1, 2))(*xs) for xs in each]
            assert_like(found, tree.map(lambda *xs: pnp.stack(xs), *expected), rtol=1e-6, atol=1e-7)


def test_tangents_do_not_change_the_steps(x64):
    """The values beside tangents are those without: other steps would change them by about 1e-5.

    They need not be equal bit for bit, since these are two programs, which the compiler rounds each in its way.
    """
    function, y0, p, end = PROBLEMS["lotka_volterra"]
    y0, p, times = pnp.array(y0), pnp.array(p), np.linspace(0.0, end, 7)

    def solution(p):
        return odeint(function, y0, times, p, rtol=1e-6, atol=1e-6)

    value, _ = jit(lambda p: jvp(solution, (p,), (1e6 * p,)))(p)
    np.testing.assert_allclose(value, jit(solution)(p), rtol=1e-11)


# Within other programs -----------------------------------------------------------------------------------------------


def test_within_scan_cond_and_checkpoint(x64):
    times = pnp.array([0.0, 0.5])

    def flow(y, p):
        return odeint(lambda y, t, p: -p * y**2, y, times, p, **TIGHT)[-1]

    def scanned(p):
        return lax.scan(lambda y, _: (flow(y, p), y), 1.0, None, length=4)[0]

    def select(p):
        return lax.cond(p > 0, lambda: flow(1.0, p), lambda: 0.0)

    np.testing.assert_allclose(scanned(0.3), 1 / (1 + 2 * 0.3), rtol=1e-8)
    np.testing.assert_allclose(grad(scanned)(0.3), -2 / (1 + 2 * 0.3) ** 2, rtol=1e-7)
    np.testing.assert_allclose(grad(select)(0.3), -0.5 / (1 + 0.5 * 0.3) ** 2, rtol=1e-7)


def test_the_function_uses_other_transformations(x64):
    """A Hamiltonian system, whose right-hand side is a gradient."""

    def energy(q, p):
        return pnp.sum(p**2) / 2 + pnp.sum(pnp.cos(q)) + 0.1 * pnp.sum(q**4)

    def motion(y, t):
        q, p = y
        return grad(energy, 1)(q, p), -grad(energy, 0)(q, p)

    y0 = (pnp.array([0.3, -0.8]), pnp.array([0.0, 0.5]))
    q, p = odeint(motion, y0, pnp.linspace(0.0, 5.0, 6), **TIGHT)
    np.testing.assert_allclose(vmap(energy)(q, p), [energy(*y0)] * 6, rtol=1e-8)
    jacobian = jacrev(lambda q0: odeint(motion, (q0, y0[1]), pnp.array([0.0, 2.0]), **TIGHT)[0][-1])(y0[0])
    forward = jacfwd(lambda q0: odeint(motion, (q0, y0[1]), pnp.array([0.0, 2.0]), **TIGHT)[0][-1])(y0[0])
    np.testing.assert_allclose(jacobian, forward, rtol=1e-6, atol=1e-8)


def test_new_closures_are_not_compiled_again(x64, monkeypatch):
    compiled = []
    compile_ = programs.Lowered.compile
    monkeypatch.setattr(programs.Lowered, "compile", lambda self, *args: compiled.append(self) or compile_(self, *args))
    times = pnp.array([0.0, 1.0])

    def gradient(rate):
        def decay(y, t, k):
            return -k * pnp.sin(y) * rate

        return grad(lambda k: odeint(decay, 1.0, times, k)[-1])(0.5)

    first = gradient(pnp.array(1.0))
    count = len(compiled)
    assert count > 0
    assert gradient(pnp.array(2.0)) != first
    assert len(compiled) == count


def test_without_compilation(x64):
    with disable_jit():
        found = odeint(lambda y, t: -y, 1.0, pnp.array([0.0, 1.0]), rtol=1e-4, atol=1e-4)
        slope = grad(lambda y: odeint(lambda y, t: -y, y, pnp.array([0.0, 1.0]), rtol=1e-4, atol=1e-4)[1])(1.0)
    np.testing.assert_allclose([found[1], slope], np.exp(-1), rtol=1e-3)


# Kinds of states and times -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trees_of_several_shapes_and_dtypes(x64):
    times = pnp.array([0.0, 0.5])
    y0 = {"a": pnp.ones((2, 3), np.float32), "b": (pnp.array(2.0), pnp.array([1 + 1j]))}

    def turn(y, t, k):
        return {"a": -y["a"], "b": (k * y["b"][0], 1j * k * y["b"][1])}

    found = odeint(turn, y0, times, 0.5, **TIGHT)
    assert [(x.shape, x.dtype) for x in tree.leaves(found)] == [
        ((2, 2, 3), np.float32), ((2,), np.float64), ((2, 1), np.complex128)
    ]  # fmt: skip
    np.testing.assert_allclose(found["a"][1], np.full((2, 3), np.exp(-0.5)), rtol=1e-6)
    np.testing.assert_allclose(found["b"][0][1], 2 * np.exp(0.25), rtol=1e-8)
    np.testing.assert_allclose(found["b"][1][1], (1 + 1j) * np.exp([0.25j]), rtol=1e-8)

    def loss(y0, k):
        out = odeint(turn, y0, times, k, **TIGHT)
        return pnp.sum(out["a"][1]).astype(float) + out["b"][0][1] ** 2 + pnp.sum(out["b"][1][1].real)

    slopes, by_k = grad(loss, (0, 1))(y0, 0.5)
    np.testing.assert_allclose(slopes["a"], np.full((2, 3), np.exp(-0.5)), rtol=1e-6)
    np.testing.assert_allclose(slopes["b"][0], 4 * np.exp(0.5), rtol=1e-7)
    np.testing.assert_allclose(slopes["b"][1], np.exp([0.25j]), rtol=1e-7)
    expected = 4 * np.exp(0.5) + ((1 + 1j) * 0.5j * np.exp(0.25j)).real
    np.testing.assert_allclose(by_k, expected, rtol=1e-7)
    np.testing.assert_allclose(jvp(lambda k: loss(y0, k), (0.5,), (1.0,))[1], expected, rtol=1e-7)


def test_times():
    def f(t):
        return odeint(lambda y, t: -y, 1.0, t)

    np.testing.assert_allclose(f([0.0, 0.0, 1.0, 1.0]), [1, 1, np.exp(-1), np.exp(-1)], rtol=1e-6)
    np.testing.assert_array_equal(f(pnp.array([3.0])), [1.0])
    np.testing.assert_allclose(f(np.arange(3)), np.exp(-np.arange(3)), rtol=1e-6)
    np.testing.assert_allclose(f(pnp.array([-2.0, -1.0])), [1, np.exp(-1)], rtol=1e-6)
    np.testing.assert_array_equal(grad(lambda t: f(t).sum())(pnp.array([3.0])), [0.0])
    np.testing.assert_allclose(
        grad(lambda y: odeint(lambda y, t: -y, y, pnp.array([0.0, 0.0, 1.0, 1.0])).sum())(1.0),
        2 + 2 * np.exp(-1),
        rtol=1e-6,
    )


def test_states_without_leaves_and_whole_numbers():
    assert odeint(lambda y, t: y, (), pnp.array([0.0, 1.0])) == ()
    found = odeint(lambda y, t: -y, np.array([1, 2]), pnp.array([0.0, 1.0]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[1], np.exp(-1) * np.array([1, 2]), rtol=1e-6)
    np.testing.assert_array_equal(odeint(lambda y, t: 0, 1, pnp.array([0.0, 1.0])), [1.0, 1.0])


def test_largest_step(x64):
    """A pulse that large steps would miss."""

    def pulse(y, t):
        return pnp.exp(-(((t - 5.0) / 0.05) ** 2))

    found = odeint(pulse, 0.0, pnp.array([0.0, 10.0]), hmax=0.05)
    np.testing.assert_allclose(found[1], 0.05 * np.sqrt(np.pi), rtol=1e-6)


# What is not reached -------------------------------------------------------------------------------------------------


@EAGER_AND_JIT
def test_what_is_not_reached_is_nan(wrap):
    times = pnp.array([0.0, 0.5, 2.0, 2.5])
    blown = wrap(lambda y: odeint(lambda y, t: y**2, y, times))(1.0)
    np.testing.assert_allclose(blown, [1.0, 2.0, np.nan, np.nan], rtol=1e-6)
    assert np.isnan(grad(lambda y: odeint(lambda y, t: y**2, y, times).sum())(1.0))
    assert np.isnan(wrap(lambda y: odeint(lambda y, t: pnp.sqrt(y), y, times))(-1.0)[1:]).all()
    few = wrap(lambda y: odeint(lambda y, t: -y, y, pnp.array([0.0, 1.0, 1.1, 9.0]), mxstep=30))(1.0)
    np.testing.assert_allclose(few, [1.0, np.exp(-1.0), np.exp(-1.1), np.nan], rtol=1e-6)
    back = jit(lambda t: odeint(lambda y, t: -y, 1.0, t))(pnp.array([0.0, 1.0, 0.5, 2.0]))
    np.testing.assert_allclose(back, [1.0, np.exp(-1.0), np.nan, np.exp(-2.0)], rtol=1e-6)


def test_one_example_that_fails_does_not_spoil_the_others():
    times = pnp.array([0.0, 0.5, 2.0])

    def loss(y):
        return odeint(lambda y, t: y**2, y, times)[-1]

    ys = pnp.array([0.1, 1.0, -1.0])
    expected = np.array([1 / (1 - 2 * 0.1) ** 2, np.nan, 1 / (1 + 2.0) ** 2])
    np.testing.assert_allclose(vmap(grad(loss))(ys), expected, rtol=1e-5)


# Errors --------------------------------------------------------------------------------------------------------------

TIMES = np.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("function", "y0", "error", "message"),
    [
        (lambda y, t: y["a"], {"a": 1.0}, ControlFlowError, r"y is a dict in y0 and an array in what it returned"),
        (lambda y, t: {"a": y["a"], "b": 1.0}, {"a": 1.0}, ControlFlowError, r"y is a dict of \['a'\] in y0 and"),
        (lambda y, t: None, 1.0, ControlFlowError, r"y is an array in y0 and None"),
        (lambda y, t: (y[0], y[1][:1]), (1.0, np.ones(2)), ControlFlowError, r"y\[1\] is f32\[2\] .*f32\[1\] .*shapes"),
        (lambda y, t: {"k": 1j * y["k"]}, {"k": 1.0}, ControlFlowError, r"y\['k'\] is f32\[\] .*c64\[\] .*dtypes"),
        (lambda y, t: "a", 1.0, OperandError, "returned something that is not an array"),
        (lambda y, t: y, {"a": "s"}, OperandError, r"y0\['a'\]: expected an array or a number, got 's'"),
        (lambda y, t: y if y > 0 else -y, 1.0, TracerBoolConversionError, "depends on y"),
        (lambda y, t: y if t > 0 else -y, 1.0, TracerBoolConversionError, "depends on t"),
        (3, 1.0, ArgumentError, "odeint: func must be a function, got 3"),
    ],
)  # fmt: skip
def test_functions_and_states_that_do_not_fit(function, y0, error, message):
    with pytest.raises(error, match=message):
        odeint(function, y0, TIMES)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (np.array([0.0, 1.0, 0.5]), r"t\[1\] is 1.0 and t\[2\] is 0.5. To go back"),
        (np.array([0.0, np.nan]), r"t\[0\] is 0.0 and t\[1\] is nan"),
        (np.array(0.0), r"vector of at least one real number.*f32\[\]"),
        (np.zeros((2, 2)), r"f32\[2,2\]"),
        (np.zeros(0), r"f32\[0\]"),
        (np.zeros(2, np.complex64), r"c64\[2\]"),
    ],
)
def test_times_that_do_not_fit(times, message):
    with pytest.raises(ArgumentError, match=message):
        odeint(lambda y, t: y, 1.0, times)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": -1.0}, "rtol must be a finite non-negative number.*got -1.0"),
        ({"atol": np.inf}, "atol must be a finite non-negative number"),
        ({"rtol": 0, "atol": 0}, "must not both be zero"),
        ({"hmax": 0.0}, "hmax must be a positive number"),
        ({"mxstep": "many"}, "mxstep must be a positive number.*got 'many'"),
    ],
)
def test_limits_that_do_not_fit(options, message):
    with pytest.raises(ArgumentError, match=message):
        odeint(lambda y, t: y, 1.0, TIMES, **options)


def test_other_errors():
    with pytest.raises(
        ArgumentError, match=r"rtol must be a finite non-negative number.*a Python number and not traced"
    ):
        jit(lambda rtol: odeint(lambda y, t: y, 1.0, TIMES, rtol=rtol))(1e-3)
    with pytest.raises(OperandError, match=r"args\[1\]\['k'\]: expected an array or a number, got 'x'"):
        odeint(lambda y, t, *_: y, 1.0, TIMES, 1.0, {"k": "x"})
    with pytest.raises(DtypeError, match="y0 must be an array of numbers, got key"):
        odeint(lambda y, t: y, random.key(0), TIMES)
    leaked = []
    odeint(lambda y, t: leaked.append(y) or y, 1.0, TIMES)
    with pytest.raises(UnexpectedTracerError, match="odeint of"):
        leaked[0] + 1


@pytest.mark.parametrize("tolerances", [{"rtol": 0.0, "atol": 1e-5}, {"rtol": 1e-5, "atol": 0.0}])
def test_one_of_the_tolerances_may_be_zero(tolerances):
    found = odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0]), **tolerances)
    np.testing.assert_allclose(found[1], np.exp(-1), rtol=1e-4)
