"""Linear functions with given transposes, and what functions close over."""

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import closure_convert, custom_gradient, grad, hessian, jit, jvp, linear_transpose, vjp, vmap
from pullback.core.errors import ArgumentError, CustomRuleError, MissingCustomRuleError, NotLinearError
from pullback.transforms.custom.custom_linear import custom_transpose, linear_call

XS = pnp.arange(3.0)


def divide(r, x):
    return x / r


def divide_add(x, denominator):
    return x + linear_call(divide, divide, denominator, x)


def transposed(fun):
    return lambda ct: linear_transpose(fun, 1.0)(ct)[0]


def test_figures_of_the_specification():
    assert divide_add(9.0, 3.0) == 12.0
    assert linear_transpose(lambda x: divide_add(x, 3.0), 1.0)(18.0)[0] == 24.0


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_transposing_swaps_the_two_functions(wrap):
    def identity(x):
        return linear_call(lambda _, x: x, lambda _, ct: pnp.full_like(ct, 7.0), (), x)

    f, seen = identity, []
    for _ in range(4):
        seen.append(float(wrap(f)(1.0)))
        f = transposed(wrap(f))
    assert seen == [1.0, 7.0, 1.0, 7.0]


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_linear_call_is_differentiated_in_both_kinds_of_arguments(wrap):
    f = wrap(divide_add)
    np.testing.assert_allclose(wrap(grad(f, (0, 1)))(9.0, 3.0), (4 / 3, -1.0), rtol=1e-6)
    np.testing.assert_allclose(
        np.array(hessian(f, (0, 1))(9.0, 3.0)), [[0, -1 / 9], [-1 / 9, 2 / 3]], rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(vmap(grad(f, 1), (None, 0))(9.0, pnp.array([3.0, 1.0])), [-1, -9], rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (9.0, 3.0), (1.0, 1.0))[1], 4 / 3 - 1, rtol=1e-6)


def test_the_given_transpose_is_the_one_that_is_used():
    def f(x):
        return linear_call(lambda r, x: r * x, lambda r, ct: 100.0 * r * ct, 3.0, x)

    assert f(2.0) == 6.0
    assert jvp(f, (2.0,), (1.0,))[1] == 3.0
    assert grad(f)(2.0) == 300.0
    assert grad(jit(f))(2.0) == 300.0
    np.testing.assert_allclose(vmap(grad(f))(XS), [300.0] * 3)
    np.testing.assert_allclose(grad(lambda x: vmap(f)(x).sum())(XS), [300.0] * 3)
    np.testing.assert_allclose(grad(lambda x: jit(vmap(f))(x).sum())(XS), [300.0] * 3)


def test_linear_call_may_close_over_traced_values():
    def f(a, x):
        return linear_call(lambda _, x: a * x, lambda _, ct: a * ct, (), x)

    np.testing.assert_allclose(vmap(lambda a: grad(f, 1)(a, 2.0))(XS), XS)
    np.testing.assert_allclose(grad(lambda x: vmap(lambda a: f(a, x))(XS).sum())(1.0), 3.0)
    assert jit(lambda a: grad(f, 1)(a, 2.0))(3.0) == 3.0
    assert grad(f)(2.0, 3.0) == 3.0
    assert grad(jit(f))(2.0, 3.0) == 3.0


def test_linear_call_of_trees():
    def f(r, x):
        return {"sum": x["a"] + x["b"], "scaled": r[0] * x["a"]}

    def f_transpose(r, ct):
        return {"a": ct["sum"] + r[0] * ct["scaled"], "b": ct["sum"]}

    out, pull = vjp(lambda x: linear_call(f, f_transpose, (2.0,), x), {"a": XS, "b": XS})
    np.testing.assert_allclose(out["scaled"], 2 * XS)
    (ct,) = pull({"sum": XS, "scaled": pnp.ones(3)})
    np.testing.assert_allclose(ct["a"], XS + 2)
    np.testing.assert_allclose(ct["b"], XS)


def test_a_transpose_of_another_tree_is_refused():
    with pytest.raises(TypeError, match="same tree as the linear arguments") as caught:
        linear_transpose(lambda x: linear_call(lambda _, x: x, lambda _, ct: (ct, ct), (), x), 1.0)(1.0)
    assert isinstance(caught.value, CustomRuleError)
    with pytest.raises(TypeError, match=r"f32\[\], and its cotangent f32\[3\]"):
        linear_transpose(lambda x: linear_call(lambda _, x: x, lambda _, ct: ct * XS, (), x), 1.0)(1.0)


def test_custom_transpose():
    scalar = pullback.ShapeDtypeStruct((), "float32")

    @custom_transpose
    def scale(r, x):
        """Multiply."""
        return r * x

    with pytest.raises(MissingCustomRuleError, match="def_transpose"):
        scale(scalar, 2.0, 3.0)

    @scale.def_transpose
    def scale_transpose(r, ct):
        return 100.0 * r * ct

    def f(x):
        return scale(scalar, 2.0, x)

    assert (scale.__name__, scale.__doc__) == ("scale", "Multiply.")
    assert f(3.0) == 6.0
    assert grad(f)(3.0) == 200.0
    assert grad(jit(f))(3.0) == 200.0
    assert jvp(f, (3.0,), (1.0,))[1] == 2.0
    np.testing.assert_allclose(vmap(grad(f))(XS), [200.0] * 3)
    np.testing.assert_allclose(grad(lambda x: vmap(f)(x).sum())(XS), [200.0] * 3)


# closure_convert ----------------------------------------------------------------------------------------------------


def test_closure_convert_hoists_what_can_be_differentiated():
    known = pnp.array([0.5, 0.25])

    def run(weights, scalar, integers):
        f = lambda x: (weights * x * known).sum() + scalar + integers.sum()
        converted, hoisted = closure_convert(f, 1.0)
        assert sorted(x.shape for x in hoisted) == [(), (2,)]
        return converted(3.0, *hoisted) - f(3.0), converted(3.0, *[10 * x for x in hoisted])

    point = pnp.array([2.0, 4.0]), pnp.float32(2.0), pnp.array([1, 2])
    for of in (jit(run), lambda *args: vjp(lambda *xs: run(*xs, args[2]), *args[:2])[0]):
        np.testing.assert_allclose(of(*point), (0.0, 60.0 + 20.0 + 3.0), atol=1e-5)
    assert closure_convert(lambda x: x * known, 1.0)[1] == []  # which nothing differentiates


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_closure_convert_makes_closed_over_values_differentiable_by_rules(wrap):
    def solve(f, a, x):
        @pullback.custom_vjp
        def apply(x, *hoisted):
            return f(x, *hoisted)

        apply.defvjp(
            lambda x, *hoisted: (f(x, *hoisted), (x, hoisted)),
            lambda r, ct: (0.0 * r[0], *[10 * ct * r[0] for _ in r[1]]),
        )
        return apply(x, *a)

    def use(a):
        converted, hoisted = closure_convert(lambda x: a * x, 1.0)
        return solve(converted, hoisted, 3.0)

    assert wrap(use)(2.0) == 6.0
    assert wrap(grad(use))(2.0) == 30.0
    np.testing.assert_allclose(vmap(wrap(grad(use)))(XS), [30.0] * 3)


def test_closure_convert_checks_calls():
    @jit
    def f(xs):
        converted, hoisted = closure_convert(lambda x: x[0] * xs, (1.0,))
        with pytest.raises(ArgumentError, match="1 arguments and then 1 hoisted"):
            converted((1.0,))
        with pytest.raises(ArgumentError, match="tree"):
            converted(1.0, *hoisted)
        return converted((1.0,), *hoisted)

    np.testing.assert_array_equal(f(XS), XS)


# custom_gradient ----------------------------------------------------------------------------------------------------


@custom_gradient
def square(x):
    """x squared."""
    return x**2, lambda ct: (ct * x,)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_custom_gradient_figures(wrap):
    product = custom_gradient(lambda x, y: (x * y, lambda ct: (y, x)))
    assert wrap(square)(3.0) == 9.0
    assert wrap(grad(square))(3.0) == 3.0
    assert tuple(map(float, wrap(grad(product, (0, 1)))(3.0, 4.0))) == (4.0, 3.0)
    assert grad(wrap(square))(3.0) == 3.0


def test_custom_gradient_under_other_transformations():
    np.testing.assert_allclose(vmap(grad(square))(XS), XS)
    np.testing.assert_allclose(grad(lambda x: vmap(square)(x).sum())(XS), XS)
    np.testing.assert_allclose(grad(lambda x: jit(vmap(square))(x).sum())(XS), XS)
    assert grad(grad(square))(3.0) == 1.0
    assert jit(grad(grad(jit(square))))(3.0) == 1.0
    assert jvp(square, (3.0,), (1.0,)) == (9.0, 3.0)
    pulls = vmap(lambda x: vjp(square, x)[1])(XS)
    np.testing.assert_allclose(vmap(lambda pull: pull(1.0)[0])(pulls), XS)
    assert (square.__name__, square.__doc__) == ("square", "x squared.")


def test_custom_gradient_of_trees_and_of_python_control_flow():
    @custom_gradient
    def f(p):
        if p["x"] > 0:
            return {"out": p["x"] * p["y"], "n": 3}, lambda ct: ({"x": ct["out"], "y": 2 * ct["out"]},)
        return {"out": -p["y"], "n": 4}, lambda ct: {"x": 0.0 * ct["out"], "y": 5 * ct["out"]}

    point = {"x": 2.0, "y": 3.0}
    assert grad(lambda p: f(p)["out"])(point) == {"x": 1.0, "y": 2.0}
    assert grad(lambda p: f(p)["out"])({"x": -2.0, "y": 3.0}) == {"x": 0.0, "y": 5.0}
    assert int(f(point)["n"]) == 3


def test_custom_gradient_without_a_backward_function():
    with pytest.raises(TypeError, match=r"must return a pair \(out, vjp_function\)"):
        custom_gradient(lambda x: x)(1.0)


# Long programs -------------------------------------------------------------------------------------------------------


def test_a_rule_after_thousands_of_operations():
    @pullback.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda primals, tangents: (double(*primals), 2 * tangents[0]))  # the operator asks for a dtype

    def f(x):
        for _ in range(3000):
            x = pnp.sin(x)
        return double(x)

    np.testing.assert_allclose(grad(f)(0.1), jvp(f, (0.1,), (1.0,))[1], rtol=1e-4)


@pytest.mark.parametrize("rule", [lambda t: t + 1.0, lambda t: 3.0 * t - 0.5, lambda t: pnp.where(True, t, 1.0) + 1])
def test_a_jvp_rule_that_adds_a_constant_is_refused(rule):
    f = pullback.custom_jvp(pnp.sin)
    f.defjvp(lambda primals, tangents: (f(*primals), rule(tangents[0])))
    with pytest.raises(NotLinearError, match="adds a constant to a tangent"):
        grad(f)(1.0)
    g = pullback.custom_jvp(pnp.sin)
    g.defjvp(lambda primals, tangents: (g(*primals), pnp.where(primals[0] > 0, tangents[0] + 0.0, 0.0)))
    assert grad(g)(1.0) == 1.0
