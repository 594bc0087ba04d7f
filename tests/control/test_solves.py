"""Solutions of equations, differentiated implicitly: custom_root and custom_linear_solve."""

from functools import partial

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import (
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    tree,
    vjp,
    vmap,
)  # fmt: skip
from pullback.control.solves import custom_linear_solve, custom_root
from pullback.core.errors import ControlFlowError, NotLinearError
from pullback.scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from tests.helpers import assert_elements_close, chosen

A = pnp.array([[3.0, 1.0], [0.5, 2.0]])
B = pnp.array([1.0, 2.0])
POINTS = pnp.array([1.0, 4.0, 9.0])


def square_root(a):
    def newton(f, x):
        for _ in range(10):
            x = x - f(x) / (2 * x)
        return x

    return custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))


def looped_square_root(a):
    def newton(f, x):
        return lax.while_loop(lambda x: abs(f(x)) > 1e-6, lambda x: x - f(x) / (2 * x), x)

    return custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))


@pytest.mark.parametrize("root", [square_root, looped_square_root])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_derivatives_of_a_square_root(root, wrap):
    np.testing.assert_allclose(wrap(root)(4.0), 2.0, rtol=1e-6)
    for order, expected in enumerate((1 / 4, -1 / 32, 3 / 256), 1):
        f = root
        for _ in range(order):
            f = grad(f)
        np.testing.assert_allclose(wrap(f)(4.0), expected, rtol=1e-5)
    np.testing.assert_allclose(wrap(jacfwd(grad(root)))(4.0), -1 / 32, rtol=1e-5)
    np.testing.assert_allclose(wrap(grad(lambda a: jvp(root, (a,), (1.0,))[1]))(4.0), -1 / 32, rtol=1e-5)
    np.testing.assert_allclose(wrap(vmap(grad(root)))(POINTS), 0.5 / np.sqrt(POINTS), rtol=1e-5)
    np.testing.assert_allclose(grad(lambda a: wrap(vmap(root))(a).sum())(POINTS), 0.5 / np.sqrt(POINTS), rtol=1e-5)


def test_a_root_is_a_tree_and_a_solver_tells_of_its_work():
    def f(p):
        def residual(z):
            return {"x": z["x"] - 2 * p * z["y"], "y": z["y"] - p**2}

        def solve(residual, z):
            r = residual(z)
            y = z["y"] - r["y"]
            return {"x": 2 * p * y, "y": y}, {"steps": 1, "by": pnp.float32(0.5)}

        def tangent_solve(g, y):
            flat = jacobian(lambda v: pnp.stack(list(g({"x": v[0], "y": v[1]}).values())))(pnp.zeros(2))
            x = pnp.linalg.solve(flat, pnp.stack([y["x"], y["y"]]))
            return {"x": x[0], "y": x[1]}

        return custom_root(residual, {"x": 1.0, "y": 1.0}, solve, tangent_solve, has_aux=True)

    root, aux = f(3.0)
    assert (float(root["x"]), float(root["y"]), int(aux["steps"])) == (54.0, 9.0, 1)
    np.testing.assert_allclose(grad(lambda p: f(p)[0]["x"])(3.0), 54.0, rtol=1e-5)
    np.testing.assert_allclose(jacfwd(lambda p: f(p)[0]["x"])(3.0), 54.0, rtol=1e-5)
    np.testing.assert_allclose(jit(grad(lambda p: f(p)[0]["y"]))(3.0), 6.0, rtol=1e-5)


def by_matrix(matvec, b):
    return pnp.linalg.solve(jacobian(matvec)(b), b)


def solution(a, b):
    return custom_linear_solve(lambda x: a @ x, b, by_matrix, by_matrix)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: f(A, B),
        lambda f: jacrev(f, (0, 1))(A, B),
        lambda f: jacfwd(f, (0, 1))(A, B),
        lambda f: hessian(f)(A, B),
        lambda f: jit(jacrev(f))(A, B),
        lambda f: jacrev(jit(f))(A, B),
        lambda f: vmap(f, (None, 0))(A, pnp.eye(2)),
        lambda f: vmap(jacrev(f), (None, 0))(A, pnp.eye(2)),
        lambda f: vmap(jacrev(f), (0, None))(pnp.stack([A, A.T]), B),
        lambda f: jacrev(vmap(f, (0, None)))(pnp.stack([A, A.T]), B),
    ],
)
def test_a_linear_solution_is_that_of_linalg(transformed):
    expected = tree.leaves(transformed(pnp.linalg.solve))
    for ours, theirs in zip(tree.leaves(transformed(solution)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_solver_is_not_differentiated_and_the_given_one_is_used():
    seen = []

    def solve(matvec, b):
        seen.append("forward")
        return b / matvec(1.0)

    def back(vecmat, b):
        seen.append("back")
        return b / vecmat(1.0)

    assert grad(lambda b: custom_linear_solve(lambda x: 4.0 * x, b, solve, back))(3.0) == 0.25
    assert seen == ["forward", "back"]


def test_second_derivatives_do_not_look_into_the_solver_either():
    def solve(matvec, b):
        return lax.stop_gradient(1 / matvec(1.0)) * b  # whose own derivative would be wrong

    def f(a, b):
        return custom_linear_solve(lambda x: a * x, b, solve, solve)

    exact = np.array([[2 * 3 / 8, -1 / 4], [-1 / 4, 0]])
    for wrap in (lambda f: f, jit):
        for second in (hessian, lambda f, n: jacrev(jacrev(f, n), n), lambda f, n: jacfwd(jacfwd(f, n), n)):
            np.testing.assert_allclose(np.array(wrap(second(f, (0, 1)))(2.0, 3.0)), exact, rtol=1e-6)
    assert grad(grad(grad(f)))(2.0, 3.0) == -6 * 3 / 16

    def root(a):
        return custom_root(
            lambda x: x**2 - a, 1.0, lambda f, x: lax.sqrt(lax.stop_gradient(a)), lambda g, y: solve(g, y)
        )

    np.testing.assert_allclose(grad(grad(root))(4.0), -1 / 32, rtol=1e-6)


def test_aux_of_a_linear_solve():
    def solve(matvec, b):
        return b / matvec(1.0), {"residual": pnp.float32(0), "steps": 7}

    def f(a):
        return custom_linear_solve(lambda x: a * x, 3.0, solve, symmetric=True, has_aux=True)

    assert (float(f(2.0)[0]), int(f(2.0)[1]["steps"])) == (1.5, 7)
    assert grad(lambda a: f(a)[0])(2.0) == -0.75
    assert jit(grad(lambda a: f(a)[0]))(2.0) == -0.75
    assert jvp(lambda a: f(a)[0], (2.0,), (1.0,))[1] == -0.75


# A fixed point with a backward rule of its own -----------------------------------------------------------------------


@partial(custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, guess):
    def step(carry):
        return carry[1], f(a, carry[1])

    return lax.while_loop(lambda carry: abs(carry[0] - carry[1]) > 1e-6, step, (guess, f(a, guess)))[1]


def fixed_point_forward(f, a, guess):
    x = fixed_point(f, a, guess)
    return x, (a, x)


def transposed_step(f, packed, u):
    a, x, ct = packed
    return ct + vjp(lambda x: f(a, x), x)[1](u)[0]


def fixed_point_backward(f, residuals, ct):
    a, x = residuals
    solution = fixed_point(partial(transposed_step, f), (a, x, ct), ct)
    return vjp(lambda a: f(a, x), a)[1](solution)[0], pnp.zeros_like(x)


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


def newton(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


@pytest.mark.parametrize(
    ("transformed", "order"),
    [
        (lambda f: f, 0),
        (grad, 1),
        (jacfwd, 1),
        (lambda f: lambda a: jvp(f, (a,), (1.0,))[1], 1),
        (lambda f: lambda a: linearize(f, a)[1](1.0), 1),
        (lambda f: grad(grad(f)), 2),
        (hessian, 2),
        (lambda f: grad(jacfwd(f)), 2),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_a_fixed_point_with_a_backward_rule(transformed, order, wrap):
    exact = [lambda a: a**0.5, lambda a: 0.5 * a**-0.5, lambda a: -0.25 * a**-1.5][order]
    np.testing.assert_allclose(wrap(transformed(newton))(2.0), exact(2.0), rtol=1e-5)
    np.testing.assert_allclose(transformed(wrap(newton))(2.0), exact(2.0), rtol=1e-5)
    points = np.array([1.0, 2.0, 3.0], "float32")
    np.testing.assert_allclose(wrap(vmap(transformed(newton)))(points), exact(points), rtol=1e-5)


def test_errors():
    with pytest.raises(NotLinearError, match="pass transpose_solve or symmetric=True"):
        grad(lambda b: custom_linear_solve(lambda x: 2.0 * x, b, lambda m, b: b / 2))(1.0)
    with pytest.raises(
        ControlFlowError, match=r"leaf 0 of the right-hand side is f32\[2\] and leaf 0 of the solution is f32\[\]"
    ):
        custom_linear_solve(lambda x: A @ x, B, lambda m, b: b.sum(), symmetric=True)
    with pytest.raises(ControlFlowError, match="with the tree of initial_guess"):
        custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y)
    with pytest.raises(ControlFlowError, match="with the types of the root"):
        grad(lambda a: custom_root(lambda x: a * POINTS, 1.0, lambda f, x: x, lambda g, y: y))(1.0)
    with pytest.raises(TypeError, match="solve must be a function, got 3"):
        custom_linear_solve(lambda x: x, 1.0, 3)


# What a solver closes over ------------------------------------------------------------------------------------------


def factorised(a, b):
    """The solution by a factorisation that is made outside of the solver."""
    symmetric = a + a.T
    factors = cho_factor(symmetric)
    return custom_linear_solve(lambda x: symmetric @ x, b, lambda _, b: cho_solve(factors, b), symmetric=True)


def by_lu(a, b):
    factors = lu_factor(a)
    return custom_linear_solve(
        lambda x: a @ x, b, lambda _, b: lu_solve(factors, b), lambda _, b: lu_solve(factors, b, trans=1)
    )


def root_in_closed_form(a):
    root = pnp.sqrt(a)
    return custom_root(lambda x: x * x - a, 1.0, lambda f, x: root, lambda g, y: y / (2.0 * root))


def summed(f):
    return lambda *args: (f(*args) * B).sum()


TRUTHS = {
    factorised: lambda a, b: pnp.linalg.solve(a + a.T, b),
    by_lu: pnp.linalg.solve,
}
TRANSFORMATIONS = {
    "value": lambda f: f,
    "jvp": lambda f: lambda a, b: jvp(f, (a, b), (a * a, b + 1.0)),
    "grad": lambda f: grad(summed(f), (0, 1)),
    "linearize": lambda f: lambda a, b: linearize(f, a, b)[1](a * a, b + 1.0),
    "vjp": lambda f: lambda a, b: vjp(f, a, b)[1](b),
    "hessian": lambda f: hessian(summed(f), (0, 1)),
    "jacrev of grad": lambda f: jacrev(grad(summed(f), (0, 1)), (0, 1)),
    "grad of jvp": lambda f: grad(lambda a, b: jvp(summed(f), (a, b), (a * a, b + 1.0))[1], (0, 1)),
    "vmap of b": lambda f: lambda a, b: vmap(f, (None, 0))(a, pnp.stack([b, b * b])),
    "vmap of a": lambda f: lambda a, b: vmap(f, (0, None))(pnp.stack([a, a @ a]), b),
    "vmap of grad": lambda f: lambda a, b: vmap(grad(summed(f), (0, 1)), (0, None))(pnp.stack([a, a @ a]), b),
    "grad of vmap": lambda f: grad(lambda a, b: vmap(summed(f), (None, 0))(a, pnp.stack([b, b * b])).sum(), (0, 1)),
}


close = partial(assert_elements_close, rtol=2e-4, dtypes=False)


SOME = chosen(["value", "grad", "hessian", "vmap of grad"], list(TRANSFORMATIONS))
PAIRS = [(by_lu, name) for name in TRANSFORMATIONS] + [(factorised, name) for name in SOME]


@pytest.mark.parametrize(("f", "name"), PAIRS)
def test_a_solver_may_close_over_values_that_are_differentiated(f, name):
    transform = TRANSFORMATIONS[name]
    expected = transform(TRUTHS[f])(A, B)
    close(transform(f)(A, B), expected)
    close(jit(transform(f))(A, B), expected)
    close(transform(jit(f))(A, B), expected)


@pytest.mark.parametrize("compiled", [lambda f: f, jit], ids=["eager", "jit"])
def test_solvers_of_a_root_may_close_over_values_that_are_differentiated(compiled):
    f = root_in_closed_form
    for order, expected in enumerate((2.0, 1 / 4, -1 / 32, 3 / 256)):
        g, h = f, compiled(f)
        for _ in range(order):
            g, h = grad(g), grad(h)
        np.testing.assert_allclose([compiled(g)(4.0), h(4.0)], [expected] * 2, rtol=1e-5)
    np.testing.assert_allclose(compiled(jacfwd(grad(f)))(4.0), -1 / 32, rtol=1e-5)
    np.testing.assert_allclose(compiled(vmap(grad(f)))(POINTS), 0.5 / np.sqrt(POINTS), rtol=1e-5)
    np.testing.assert_allclose(compiled(grad(lambda a: vmap(f)(a).sum()))(POINTS), 0.5 / np.sqrt(POINTS), rtol=1e-5)


def test_a_pullback_of_a_factorised_solution_can_be_compiled():
    pull = vjp(factorised, A, B)[1]
    close(jit(pull)(B), vjp(TRUTHS[factorised], A, B)[1](B))


@pytest.mark.parametrize("name", ["value", "jvp", "vmap of a", "vmap of b"])
def test_forward_mode_needs_no_solver_of_the_transposed_equation(name):
    def f(a, b):
        return custom_linear_solve(lambda x: a @ x, b, lambda _, b: pnp.linalg.solve(a, b))

    expected = TRANSFORMATIONS[name](pnp.linalg.solve)(A, B)
    for compiled in (lambda f: f, jit):
        close(compiled(TRANSFORMATIONS[name](f))(A, B), expected)
        with pytest.raises(NotLinearError, match="pass transpose_solve or symmetric=True"):
            compiled(grad(summed(f)))(A, B)
