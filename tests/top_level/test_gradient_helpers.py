"""Helpers with derivatives of their own: eager and compiled, in both modes, at higher orders, mapped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, hessian, jacfwd, jacrev, jit, jvp, linearize, value_and_grad, vjp, vmap
from pullback.core import tree
from pullback.custom_derivatives import (
    clip_gradient,
    clip_gradient_norm,
    custom_vjp_primal_tree_values,
    implicit_function,
    reverse_gradient,
    safe_where,
    scale_gradient,
    straight_through,
)
from pullback.errors import ArgumentError, ClosedOverError, ShapeError
from pullback.test_util import check_grads
from tests.helpers import assert_elements_close

Function = Callable[..., Any]
WAYS: dict[str, Callable[[Function], Function]] = {"eager": lambda f: f, "compiled": jit}
XS = pnp.array([-2.0, 0.0, 0.5, 3.0])


@pytest.fixture(params=WAYS)
def way(request: Any) -> Callable[[Function], Function]:
    return WAYS[request.param]


close = partial(assert_elements_close, rtol=1e-6, dtypes=False)


# safe_where ----------------------------------------------------------------------------------------------------------


def root(x: Any) -> Any:
    return safe_where(x > 0, pnp.sqrt, x)


def test_safe_where_has_finite_derivatives(way: Any) -> None:
    close(way(root)(XS), [0, 0, np.sqrt(0.5), np.sqrt(3)])
    slopes = [0, 0, 0.5 / np.sqrt(0.5), 0.5 / np.sqrt(3)]
    close(way(vmap(grad(root)))(XS), slopes)
    close(way(vmap(jacfwd(root)))(XS), slopes)
    close(way(jacrev(root))(XS), np.diag(slopes))
    close(way(vmap(hessian(root)))(XS), [0, 0, -0.25 * 0.5**-1.5, -0.25 * 3**-1.5])
    assert np.isnan(grad(lambda x: pnp.where(x > 0, pnp.sqrt(x), 0.0))(0.0))


def test_safe_where_of_trees(way: Any) -> None:
    def ratio(p: Any) -> Any:
        out = safe_where(
            p["x"] != 0, lambda q: (q["y"] / q["x"], pnp.log(q["x"])), p, (7.0, p["y"]), {"x": 1.0, "y": 0.0}
        )
        return pnp.stack(out)

    p = {"x": pnp.array([0.0, 2.0]), "y": pnp.array([3.0, 5.0])}
    close(way(ratio)(p), [[7.0, 2.5], [3.0, np.log(2)]])
    jacobian = way(jacrev(ratio))(p)
    close(jacobian["x"], [[[0, 0], [0, -1.25]], [[0, 0], [0, 0.5]]])
    close(jacobian["y"], [[[0, 0], [0, 0.5]], [[1, 0], [0, 0]]])


def test_safe_where_keeps_the_dtype() -> None:
    assert safe_where(True, pnp.sqrt, pnp.ones(2, pnp.bfloat16)).dtype == pnp.bfloat16


# Scaling and reversing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("helper", "sign"), [(scale_gradient, 1), (reverse_gradient, -1)])
def test_scaling_in_every_mode(way: Any, helper: Any, sign: int) -> None:
    factor = 2.5

    def f(x: Any) -> Any:
        return pnp.sin(helper(x, factor))

    k = sign * factor
    close(way(f)(0.7), np.sin(0.7))
    close(way(grad(f))(0.7), k * np.cos(0.7))
    close(way(jacfwd(f))(0.7), k * np.cos(0.7))
    close(way(lambda x: linearize(f, x)[1](1.0))(0.7), k * np.cos(0.7))
    close(way(grad(grad(f)))(0.7), -(k**2) * np.sin(0.7))
    close(way(hessian(f))(0.7), -(k**2) * np.sin(0.7))
    close(way(vmap(grad(f)))(XS), k * np.cos(XS))


def test_the_gradient_is_reversed_by_default() -> None:
    close(grad(reverse_gradient)(2.0), -1.0)


def test_scaling_trees_with_integers_and_by_arrays(way: Any) -> None:
    def f(p: Any, factor: Any) -> Any:
        q = scale_gradient(p, factor)
        return pnp.sum(q["w"] ** 2) * q["n"]

    p = {"w": pnp.array([1.0, 2.0]), "n": pnp.array(3)}
    factor = pnp.array([10.0, 100.0])
    by_p, by_factor = way(grad(f, argnums=(0, 1), allow_int=True))(p, factor)
    close(by_p["w"], [60, 1200])
    assert by_p["n"].dtype == pullback.float0
    close(by_factor, [0, 0])
    tangents = {"w": pnp.ones(2), "n": np.zeros((), pullback.float0)}
    close(jvp(lambda p: f(p, factor), (p,), (tangents,))[1], 60 + 1200)


def test_scaling_keeps_narrow_dtypes() -> None:
    x = pnp.ones(3, pnp.bfloat16)
    gradient = grad(lambda x: pnp.sum(scale_gradient(x, pnp.array(0.5, pnp.float32))))(x)
    assert gradient.dtype == pnp.bfloat16
    close(gradient.astype(pnp.float32), [0.5] * 3)


def test_a_learned_factor_is_a_constant() -> None:
    close(grad(grad(lambda x, c: scale_gradient(x, c) ** 2), argnums=1)(3.0, 2.0), 0.0)


# Clipping ------------------------------------------------------------------------------------------------------------


def test_clipping_by_element(way: Any) -> None:
    def f(x: Any) -> Any:
        return pnp.sum(pnp.array([5.0, -5.0, 0.25]) * clip_gradient(x, -1.0, 2.0))

    x = pnp.ones(3)
    close(way(f)(x), 0.25)
    close(way(grad(f))(x), [2, -1, 0.25])
    close(way(vmap(grad(f)))(pnp.ones((2, 3))), [[2, -1, 0.25]] * 2)
    close(way(jacfwd(f))(x), [5, -5, 0.25])


def test_clipping_with_one_limit_or_an_array_of_them() -> None:
    slope = pnp.array([5.0, -5.0])
    x = pnp.ones(2)
    close(grad(lambda x: pnp.dot(slope, clip_gradient(x, None, 1.0)))(x), [1, -5])
    close(grad(lambda x: pnp.dot(slope, clip_gradient(x, -1.0, None)))(x), [5, -1])
    close(grad(lambda x: pnp.dot(slope, clip_gradient(x, pnp.array([-1.0, -2.0]), 3.0)))(x), [3, -2])
    by_x, by_low = grad(lambda x, low: pnp.dot(slope, clip_gradient(x, low, 3.0)), (0, 1))(x, -1.0)
    close((by_x, by_low), ([3, -1], 0.0))


def test_second_derivatives_are_those_of_the_clipped_gradient(way: Any) -> None:
    def f(x: Any) -> Any:
        return clip_gradient(x, -2.0, 2.0) ** 2

    def clipped(x: Any) -> Any:
        return pnp.clip(2 * x, -2.0, 2.0)

    for x in (0.5, 3.0):
        close(way(grad(f))(x), clipped(x))
        for second in (hessian(f), grad(grad(f)), jacfwd(grad(f))):
            close(way(second)(x), grad(clipped)(x))


def test_clipping_by_norm(way: Any) -> None:
    def f(p: Any, scale: Any) -> Any:
        p = clip_gradient_norm(p, 1.0)
        return scale * (3 * p["a"] + pnp.sum(p["b"]) * 2)

    p = {"a": pnp.array(1.0), "b": pnp.zeros(4)}  # the norm of the gradient is 5 * scale
    for scale in (10.0, 0.1):
        kept = min(1.0, 1 / (5 * scale)) * scale
        close(way(grad(f))(p, scale), {"a": 3 * kept, "b": np.full(4, 2 * kept)})
    scales = pnp.array([10.0, 0.1])
    close(way(vmap(grad(f), (None, 0)))(p, scales)["a"], [0.6, 0.3])
    close(way(jacfwd(f))(p, 10.0)["a"], 30.0)


def test_clipping_the_norm_of_nothing_or_to_nothing() -> None:
    close(grad(lambda x: 0 * clip_gradient_norm(x, 1.0))(2.0), 0.0)
    close(grad(grad(lambda x: 0 * clip_gradient_norm(x, 1.0) ** 2))(2.0), 0.0)
    close(grad(lambda x: 3 * clip_gradient_norm(x, 0.0))(2.0), 0.0)
    close(grad(lambda x: 0 * clip_gradient_norm(x, 0.0))(2.0), 0.0)


def test_clipping_the_norm_of_complex_and_narrow_gradients() -> None:
    gradient = grad(lambda z: pnp.real((3 + 4j) * clip_gradient_norm(z, 1.0)))(1j)
    close(gradient, 0.6 + 0.8j)
    x = pnp.ones(4, pnp.float16)
    gradient = grad(lambda x: pnp.sum(1000 * clip_gradient_norm(x, 1.0)))(x)  # whose squares overflow
    assert gradient.dtype == pnp.float16
    close(gradient.astype(pnp.float32), [0.5] * 4, rtol=1e-3)


def test_integers_pass_through_clipping() -> None:
    def f(p: Any) -> Any:
        for q in (clip_gradient(p, -1.0, 1.0), clip_gradient_norm(p, 1.0)):
            p = q
        return 5 * p[0] * p[1]

    close(grad(f, allow_int=True)((2.0, 3))[0], 1.0)


# Straight through ----------------------------------------------------------------------------------------------------


@straight_through
def to_levels(x: Any, levels: Any = 1.0) -> Any:
    """Rounding to multiples of a level."""
    return pnp.round(x / levels) * levels


def test_straight_through_in_every_mode(way: Any) -> None:
    def f(x: Any) -> Any:
        return to_levels(x) ** 3

    close(way(f)(2.7), 27.0)
    close(way(grad(f))(2.7), 27.0)
    close(way(jacfwd(f))(2.7), 27.0)
    close(way(grad(grad(f)))(2.7), 18.0)
    close(way(hessian(f))(2.7), 18.0)
    close(way(vmap(value_and_grad(f)))(pnp.array([1.2, 2.7])), ([1, 27], [3, 27]))


def test_straight_through_keeps_name_and_other_arguments(way: Any) -> None:
    assert to_levels.__name__ == "to_levels"
    assert to_levels.__doc__ == "Rounding to multiples of a level."
    close(way(grad(to_levels, argnums=(0, 1)))(2.7, 0.5), (1.0, 0.0))
    close(way(grad(lambda x, c: to_levels(x, levels=c), argnums=(0, 1)))(2.7, 0.5), (1.0, 0.0))


def test_straight_through_what_cannot_be_differentiated(way: Any) -> None:
    scalar = pullback.ShapeDtypeStruct((), pnp.float32)
    foreign = straight_through(lambda x: pullback.pure_callback(lambda x: np.float32(np.floor(x)), scalar, x))
    close(way(value_and_grad(lambda x: foreign(x) ** 2))(2.7), (4.0, 4.0))


def test_straight_through_trees(way: Any) -> None:
    signs = straight_through(lambda p: tree.tree_map(pnp.sign, p))
    gradient = way(grad(lambda p: signs(p)["a"] * signs(p)["b"]))({"a": -2.0, "b": 3.0})
    close(gradient, {"a": 1.0, "b": -1.0})


def test_straight_through_needs_results_like_its_argument() -> None:
    with pytest.raises(
        ShapeError, match=r"so its result must have .* of its first argument, which is float32\[3\], but it"
    ):
        straight_through(pnp.sum)(pnp.ones(3))
    with pytest.raises(ShapeError, match=r"which is float32\[3\], but it is int32\[3\]"):
        straight_through(lambda x: x.astype(pnp.int32))(pnp.ones(3))
    with pytest.raises(ArgumentError, match="straight_through: fun must be a function, got 3"):
        straight_through(3)  # type: ignore[arg-type]


# Implicit functions --------------------------------------------------------------------------------------------------


def newton(a: Any) -> Any:
    """The square root, by a loop that a compiler can unroll and a batch can take."""
    z = 0 * a + 1.0
    for _ in range(25):
        z = 0.5 * (z + a / z)
    return z


square_root = implicit_function(lambda z, a: z**2 - a, newton)


@pytest.mark.usefixtures("x64")
class TestImplicitFunctions:
    def test_every_order_of_a_square_root(self, way: Any) -> None:
        f, exact = square_root, pnp.sqrt
        for derivative in (grad, jacfwd, jacrev, grad):
            f, exact = derivative(f), derivative(exact)
            close(way(f)(3.0), exact(3.0), rtol=1e-12)
            close(way(vmap(f))(pnp.array([3.0, 5.0])), [exact(3.0), exact(5.0)], rtol=1e-12)
        close(way(hessian(square_root))(3.0), hessian(pnp.sqrt)(3.0), rtol=1e-12)

    def test_both_modes_are_transposes(self) -> None:
        check_grads(square_root, (3.0,), order=3)

    def test_a_loop_that_stops_by_its_values(self) -> None:
        calls = []

        def iterate(a: Any) -> Any:
            z = a
            while abs(z * z - a) > 1e-14 * a:
                calls.append(z)
                z = 0.5 * (z + a / z)
            return z

        f = implicit_function(lambda z, a: z**2 - a, iterate)
        close(grad(grad(f))(3.0), -0.25 * 3**-1.5, rtol=1e-12)
        assert all(type(z) is type(calls[0]) for z in calls)  # none of them is traced

    def test_a_loop_within_the_compiled_program(self, way: Any) -> None:
        def iterate(a: Any) -> Any:
            def step(state: Any) -> Any:
                return 0.5 * (state[0] + a / state[0]), state[0]

            return pullback.lax.while_loop(lambda s: abs(s[0] - s[1]) > 1e-14 * abs(s[0]), step, (a, 0 * a))[0]

        f = implicit_function(lambda z, a: z**2 - a, iterate)
        xs = pnp.array([2.0, 3.0, 5.0])
        close(way(vmap(f))(xs), np.sqrt(xs), rtol=1e-12)
        close(way(vmap(grad(f)))(xs), 0.5 * xs**-0.5, rtol=1e-12)
        for second in (hessian(f), grad(grad(f))):
            close(way(vmap(second))(xs), -0.25 * xs**-1.5, rtol=1e-12)

    def test_a_solver_that_nothing_is_known_of(self, way: Any) -> None:
        scalar = pullback.ShapeDtypeStruct((), pnp.float64)
        f = implicit_function(
            lambda z, a: z**2 - a, lambda a: pullback.pure_callback(np.sqrt, scalar, a, vmap_method="sequential")
        )
        close(way(jacfwd(grad(f)))(3.0), -0.25 * 3**-1.5, rtol=1e-12)
        close(way(vmap(grad(f)))(pnp.array([1.0, 4.0])), [0.5, 0.25], rtol=1e-12)

    @pytest.mark.slow
    def test_trees_of_states_and_parameters(self, way: Any) -> None:
        def residual(z: Any, p: Any, q: Any) -> Any:
            return {"u": z["u"] * p["a"] + pnp.sum(z["v"]) - q, "v": z["v"] ** 3 + z["u"] + p["b"]}

        def solver(p: Any, q: Any) -> Any:
            z = {"u": 0 * q + 2, "v": 0 * q - 2 * pnp.ones(2)}
            flat, unravel = pullback.flatten_util.ravel_pytree(z)
            for _ in range(8):
                g = lambda z: pullback.flatten_util.ravel_pytree(residual(unravel(z), p, q))[0]
                flat = flat - pnp.linalg.solve(jacfwd(g)(flat), g(flat))
            return unravel(flat)

        f = implicit_function(residual, solver)
        p, q = {"a": pnp.array(2.0), "b": pnp.array(2.0)}, pnp.array(1.0)
        close(residual(f(p, q), p, q), {"u": 0.0, "v": np.zeros(2)}, rtol=1e-12)
        check_grads(f, (p, q), order=2)
        close(way(jacrev(f, (0, 1)))(p, q), jacfwd(f, (0, 1))(p, q), rtol=1e-12)

    def test_complex_states_whose_equation_is_not_holomorphic(self) -> None:
        f = implicit_function(
            lambda z, a: z + 0.3 * pnp.conj(z) - a, lambda a: pnp.real(a) / 1.3 + pnp.imag(a) / 0.7 * 1j
        )
        check_grads(f, (1 + 2j,), order=2)

    def test_parameters_that_are_integers(self, way: Any) -> None:
        f = implicit_function(lambda z, a, n: z**n - a, lambda a, n: a ** (1 / n))
        close(way(grad(f))(8.0, 3), 1 / 12, rtol=1e-12)
        close(way(grad(grad(f)))(8.0, 3), -1 / 144, rtol=1e-12)

    @pytest.mark.parametrize("transformation", [jacfwd, jacrev, hessian])
    def test_a_linear_solve_of_ones_own(self, transformation: Any, way: Any) -> None:
        matrix = pnp.array(np.eye(3) + 0.1 * np.random.default_rng(0).normal(size=(3, 3)))
        solved = []

        def residual(z: Any, t: Any, b: Any) -> Any:
            return matrix @ z + t * z**3 - b

        def solver(t: Any, b: Any) -> Any:
            z = 0 * b
            for _ in range(12):
                z = z - residual(z, t, b)
            return z

        def iterative(matvec: Any, b: Any) -> Any:
            """Richardson's iteration, in a way that cannot be differentiated."""
            solved.append(b)
            x = 0 * b
            for _ in range(12):
                x = x + pullback.lax.stop_gradient(b - matvec(x))
            return x

        b = pnp.array([0.1, 0.2, 0.3])
        dense, own = implicit_function(residual, solver), implicit_function(residual, solver, iterative)
        close(way(transformation(own, (0, 1)))(0.5, b), transformation(dense, (0, 1))(0.5, b), rtol=1e-7)
        assert solved

    def test_a_fixed_point(self, way: Any) -> None:
        def iterate(a: Any) -> Any:
            z = 0 * a
            for _ in range(100):
                z = pnp.cos(a * z)
            return z

        f = implicit_function(lambda z, a: pnp.cos(a * z) - z, iterate)
        plain = grad(iterate)
        close(way(grad(f))(0.8), plain(0.8), rtol=1e-12)
        close(way(grad(grad(f)))(0.8), grad(plain)(0.8), rtol=1e-12)

    def test_tangents_and_cotangents_agree(self) -> None:
        out, pull = vjp(square_root, 3.0)
        _, tangent = jvp(square_root, (3.0,), (2.0,))
        close(pull(5.0)[0] * 2.0, 5.0 * tangent, rtol=1e-12)
        close(out, np.sqrt(3), rtol=1e-12)


def test_an_implicit_function_keeps_name_and_doc() -> None:
    assert square_root.__name__ == "newton"
    assert "square root" in square_root.__doc__


def test_a_residual_of_another_shape() -> None:
    f = implicit_function(lambda z, a: pnp.sum(z) - a, lambda a: a * pnp.ones(2) / 2)
    close(f(3.0), [1.5, 1.5])
    with pytest.raises(
        ShapeError, match=r"the residual .* must have .* the solution, which is float32\[2\], but it is float32\[\]"
    ):
        jacfwd(f)(3.0)


def test_a_solution_with_integers() -> None:
    f = implicit_function(lambda z, a: (z[0] ** 2 - a, z[1]), lambda a: (newton(a), 25))
    with pytest.raises(ArgumentError, match=r"must be real or complex to be differentiated, but it has a leaf i32\[\]"):
        grad(lambda a: f(a)[0])(3.0)


def test_a_solver_that_closes_over_what_is_differentiated() -> None:
    with pytest.raises(ClosedOverError, match="closes over"):
        grad(lambda a: implicit_function(lambda z: z**2 - a, lambda: newton(a))())(3.0)


def test_what_is_not_a_function() -> None:
    for name, arguments in {
        "residual": (3, newton), "solver": (newton, 3), "linear_solve": (newton, newton, 3)
    }.items():  # fmt: skip
        with pytest.raises(ArgumentError, match=f"implicit_function: {name} must be a function, got 3"):
            implicit_function(*arguments)  # type: ignore[arg-type]


# The module ----------------------------------------------------------------------------------------------------------


def test_names_of_the_module() -> None:
    for name in pullback.custom_derivatives.__all__:
        assert callable(getattr(pullback.custom_derivatives, name)) or name.endswith("_p")


def test_the_values_of_a_forward_rules_arguments() -> None:
    seen = []
    f = pullback.custom_vjp(lambda p: p["x"] * p["y"])

    def fwd(p: Any) -> Any:
        values = custom_vjp_primal_tree_values(p)
        seen.append({name: x.perturbed for name, x in p.items()})
        return values["x"] * values["y"], values

    f.defvjp(fwd, lambda r, ct: ({"x": ct * r["y"], "y": ct * r["x"]},), symbolic_zeros=True)
    close(grad(lambda x: f({"x": x, "y": 3.0}))(2.0), 3.0)
    assert seen == [{"x": True, "y": False}]
