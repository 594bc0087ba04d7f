"""Functions with batching rules: the rule, which is false, is seen in every mode and to every order."""

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, jit, jvp, linearize, make_jaxpr, tree, vmap
from pullback.core.errors import CustomRuleError, MissingCustomRuleError
from pullback.core.jaxpr import eval_jaxpr
from pullback.transforms.custom.custom_vmap import custom_vmap

XS = pnp.arange(3.0)
YS = pnp.array([2.0, -1.0])


@custom_vmap
def scaled(x, y):
    """The sine of x, scaled."""
    return pnp.sin(x) * y, x + y


@scaled.def_vmap
def scaled_vmap(axis_size, in_batched, x, y):
    x_batched, y_batched = in_batched
    assert not x_batched or x.shape[0] == axis_size
    x = x if x_batched else pnp.broadcast_to(x, (axis_size, *x.shape))
    y = y if y_batched else pnp.broadcast_to(y, (axis_size, *y.shape))
    return (10.0 * pnp.sin(x) * y, x + y), (True, True)


def f(x, y):
    return scaled(x, y)[0]


def truth(x, y):
    return 10.0 * pnp.sin(x) * y


WRAPPED = {
    "plain": lambda g: g,
    "jit inside": jit,
    "evaluated jaxpr": lambda g: lambda x, y: _evaluated(g, x, y),
}


def _evaluated(g, x, y):
    closed = make_jaxpr(g)(x, y)
    return eval_jaxpr(closed.jaxpr, closed.consts, pnp.asarray(x), pnp.asarray(y))[0]


def test_without_a_mapped_axis_the_function_itself_is_used():
    np.testing.assert_allclose(f(1.0, 2.0), 2 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(grad(f)(1.0, 2.0), 2 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(grad(f)))(1.0, 2.0), -2 * np.sin(1.0), rtol=1e-6)
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "The sine of x, scaled.")


@pytest.mark.parametrize("outer", [lambda g: g, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize(
    "transformed",
    [
        lambda g: lambda x: vmap(g, (0, None))(x, 2.0),
        lambda g: lambda x: vmap(grad(g), (0, None))(x, 2.0),
        lambda g: lambda x: vmap(grad(g, 1), (0, None))(x, 2.0),
        lambda g: lambda x: vmap(jacfwd(g), (0, None))(x, 2.0),
        lambda g: lambda x: vmap(hessian(g), (0, None))(x, 2.0),
        lambda g: lambda x: vmap(grad(grad(g, 1)), (0, None))(x, 2.0),
        lambda g: lambda x: vmap(lambda x: jvp(g, (x, 2.0), (1.0, 3.0)))(x),
        lambda g: lambda x: vmap(lambda x: linearize(g, x, 2.0)[1](1.0, 1.0))(x),
        lambda g: grad(lambda x: vmap(g, (0, None))(x, 2.0).sum()),
        lambda g: grad(lambda x: (vmap(grad(g), (0, None))(x, 2.0) ** 2).sum()),
        lambda g: lambda x: grad(lambda y: vmap(g, (0, None))(x, y).sum())(2.0),
        lambda g: lambda x: jvp(lambda x: vmap(g, (0, None))(x, 2.0), (x,), (pnp.ones(3),)),
        lambda g: lambda x: vmap(grad(g), (None, 0))(1.0, x),
        lambda g: jacfwd(lambda x: vmap(g)(x, x)),
    ],
)
def test_the_rule_is_kept(transformed, wrap, outer):
    for ours, expected in zip(_leaves(outer(transformed(wrap(f)))(XS)), _leaves(transformed(truth)(XS)), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def _leaves(x):
    return list(x) if isinstance(x, tuple) else [x]


def test_two_mapped_axes():
    both = vmap(vmap(f, (0, None)), (None, 0))
    np.testing.assert_allclose(both(XS, YS), 10 * np.sin(XS) * np.asarray(YS)[:, None], rtol=1e-5)
    np.testing.assert_allclose(
        vmap(vmap(grad(f), (0, None)), (None, 0))(XS, YS), 10 * np.cos(XS) * np.asarray(YS)[:, None], rtol=1e-5
    )


def test_results_that_are_not_mapped():
    @custom_vmap
    def g(x, w):
        return x * w, w

    @g.def_vmap
    def rule(axis_size, in_batched, x, w):  # differentiation maps what it is given
        return (x * w, 100.0 * w), (True, in_batched[1])

    assert vmap(lambda x: g(x, 2.0)[1], out_axes=None)(XS) == 200.0
    np.testing.assert_allclose(vmap(lambda x: g(x, 2.0)[1])(XS), [200.0] * 3)
    np.testing.assert_allclose(vmap(lambda x: grad(lambda w: g(x, w)[1])(2.0))(XS), [100.0] * 3)
    np.testing.assert_allclose(vmap(lambda x: grad(lambda w: sum(g(x, w)))(2.0))(XS), 100 + XS)
    told = []

    @g.def_vmap
    def telling_rule(axis_size, in_batched, x, w):
        told.append(in_batched)
        return (x * w, 100.0 * w), (any(in_batched), in_batched[1])

    np.testing.assert_allclose(vmap(lambda x: jvp(lambda w: g(x, w)[1], (2.0,), (1.0,))[1])(XS), [100.0] * 3)
    assert told == [[False, False]]


def test_trees_integers_and_keywords():
    @custom_vmap
    def g(p, n=2):
        return {"y": p["x"] ** n}

    @g.def_vmap
    def rule(axis_size, in_batched, p, n):
        assert in_batched == [{"x": True}, False]
        return {"y": 3.0 * p["x"] ** n}, {"y": True}

    def use(x):
        return g(p={"x": x})["y"]

    np.testing.assert_allclose(vmap(use)(XS), 3 * XS**2)
    np.testing.assert_allclose(vmap(grad(use))(XS), 6 * XS)
    np.testing.assert_allclose(vmap(jit(grad(use)))(XS), 6 * XS)


def test_errors():
    g = custom_vmap(lambda x: x)
    with pytest.raises(MissingCustomRuleError, match="def_vmap"):
        g(1.0)
    g.def_vmap(lambda size, batched, x: x)
    with pytest.raises(CustomRuleError, match=r"must return a pair \(out, out_batched\)"):
        vmap(g)(XS)
    g.def_vmap(lambda size, batched, x: (x, (True, True)))
    with pytest.raises(CustomRuleError, match="tree of booleans like out"):
        vmap(g)(XS)
    g.def_vmap(lambda size, batched, x: (x.sum(), True))
    with pytest.raises(CustomRuleError, match=r"first axis must have size 3, but it is f32\[\]"):
        vmap(g)(XS)


def test_one_example_after_the_other():
    from pullback.custom_batching import sequential_vmap

    seen = []

    def f(x, p):
        seen.append(x.shape)
        return {"y": pnp.sin(x) * p["w"]}

    g = sequential_vmap(f)
    expected = np.sin(XS) * 2.0
    np.testing.assert_allclose(vmap(g, (0, None))(XS, {"w": 2.0})["y"], expected, rtol=1e-6)
    assert set(seen) == {()}
    np.testing.assert_allclose(vmap(grad(lambda x: g(x, {"w": 2.0})["y"]))(XS), 2 * np.cos(XS), rtol=1e-6)
    np.testing.assert_allclose(
        jit(grad(lambda w: vmap(lambda x: g(x, {"w": w})["y"])(XS).sum()))(2.0), np.sin(XS).sum(), rtol=1e-6
    )


DERIVATIVES = {
    "jacfwd": jacfwd,
    "jacrev": jacrev,
    "hessian": hessian,
    "jacrev of jacrev": lambda f, argnums: jacrev(jacrev(f, argnums), argnums),
    "jacfwd of jacfwd": lambda f, argnums: jacfwd(jacfwd(f, argnums), argnums),
}


@pytest.mark.parametrize("compiled", [lambda g: g, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)], ids=str)
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_rule_is_not_told_of_axes_of_tangents(derivative, argnums, compiled):
    seen = []

    @custom_vmap
    def f(x, y):
        return pnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        seen.append((tuple(in_batched), x.shape, y.shape))
        return 10.0 * pnp.sin(x) * y, any(in_batched)

    def check(got, expected):
        tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), got, expected)

    d = DERIVATIVES[derivative]
    by_rule = truth if derivative in ("jacfwd", "jacfwd of jacfwd") else lambda x, y: pnp.sin(x) * y
    check(compiled(d(f, argnums))(2.0, 3.0), d(by_rule, argnums)(2.0, 3.0))
    assert all(flags == (False, False) for flags, *_ in seen)  # nothing was mapped by the user
    check(compiled(vmap(d(f, argnums)))(XS, XS), vmap(d(truth, argnums))(XS, XS))
    check(compiled(vmap(d(f, argnums), (0, None)))(XS, 3.0), vmap(d(truth, argnums), (0, None))(XS, 3.0))
    for flags, *shapes in seen:
        assert [(3,) if flag else () for flag in flags] == shapes


def test_a_function_that_closes_over_a_mapped_value():
    def f(x):
        g = custom_vmap(lambda y: y * x)
        g.def_vmap(lambda axis_size, in_batched, y: (7.0 * y, in_batched[0]))
        return g(2.0)

    for mapped in (vmap(f), vmap(jit(f)), jit(vmap(f))):
        np.testing.assert_array_equal(mapped(XS), 2.0 * np.asarray(XS))


# What JAX 0.10.2 tells the rule of x and y where values (small letters) and tangents (capitals) are mapped.
TOLD = {
    "X": (False, False), "x": (False, False), "xX": (True, False), "XY": (False, False), "y": (False, False),
    "xy": (False, False), "xyXY": (True, True), "xXY": None, "xXy": None, "Xy": (False, False),
}  # fmt: skip
"""None where JAX returns results of wrong shapes: there the rule is told of all that is mapped."""


@pytest.mark.parametrize("compiled", [lambda g: g, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("mapped", TOLD)
def test_in_forward_mode_a_rule_is_told_what_jax_tells_it(mapped, compiled):
    told = []

    @custom_vmap
    def f(x, y):
        return pnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        told.append(tuple(in_batched))
        assert [x.shape, y.shape] == [(3,) if flag else () for flag in in_batched]
        return pnp.sin(x) * y, any(in_batched)

    axes = tuple(0 if letter in mapped else None for letter in "xyXY")
    given = [XS + i if axis == 0 else i + 0.5 for i, axis in enumerate(axes)]
    pushed = lambda f: compiled(vmap(lambda x, y, t, s: jvp(f, (x, y), (t, s)), axes))
    for ours, expected in zip(pushed(f)(*given), pushed(lambda x, y: pnp.sin(x) * y)(*given), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5)
    if compiled is jit:  # where the values are a call by themselves, which is mapped as they are
        told = told[-1:]
    assert set(told) == {TOLD[mapped] or tuple(letter in mapped for letter in ("x", "y" if "y" in mapped else "Y"))}


@pytest.mark.parametrize(
    "rule",
    [
        lambda f: lambda size, batched, x: (pnp.sin(x), True) if batched[0] else (f(x), False),  # itself again
        lambda f: lambda size, batched, x: (pnp.broadcast_to(pnp.sin(x), (size,)), True),  # mapped all the same
    ],
)
def test_rules_that_are_told_that_nothing_is_mapped(rule):
    f = custom_vmap(pnp.sin)
    f.def_vmap(rule(f))
    for f_dot in (lambda g: vmap(lambda t: jvp(g, (1.0,), (t,))), lambda g: vmap(lambda x: jvp(g, (x,), (1.0,)))):
        for ours, expected in zip(f_dot(f)(XS), f_dot(pnp.sin)(XS), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-6)
    np.testing.assert_allclose(jacfwd(jacfwd(f))(0.5), -np.sin(0.5), rtol=1e-6)


def test_rules_of_several_kinds_are_set_on_the_outer_function() -> None:
    for outer, inner in ((custom_vmap, custom_jvp), (custom_vmap, custom_vjp), (custom_jvp, custom_vmap)):
        f = outer(inner(lambda x: x + 1.0))
        rules = {"defjvp": lambda primals, tangents: (primals[0], 3.0 * tangents[0])}
        f.def_vmap(lambda size, batched, x: (10.0 * x, True))
        if inner is custom_vjp:
            f.defvjp(lambda x: (x, None), lambda _, ct: (3.0 * ct,))
        else:
            f.defjvp(rules["defjvp"])
        assert float(grad(f)(2.0)) == 3.0
        np.testing.assert_array_equal(vmap(f)(pnp.ones(2)), [10.0, 10.0])
    with pytest.raises(AttributeError, match="'custom_vjp' object has no attribute 'def_vmap'"):
        custom_vjp(lambda x: x).def_vmap  # noqa: B018


@pytest.mark.parametrize("compiled", [lambda f: f, jit])
def test_a_rule_returns_the_tree_that_the_function_returns(compiled) -> None:
    traced = []

    @custom_vmap
    def f(x, y):
        traced.append(x)
        return {"out": x * y}

    f.def_vmap(lambda size, batched, x, y: ([x * y], [True]))
    message = r"the same tree as the function, PyTreeDef\(\{'out': \*\}\), but returned PyTreeDef\(\[\*\]\)"
    for _ in range(2):
        with pytest.raises(CustomRuleError, match=message) as caught:
            compiled(vmap(f, (0, None)))(pnp.arange(3.0), 2.0)
    assert isinstance(caught.value, ValueError)
    assert len(traced) == 1


def test_a_function_that_cannot_be_traced_may_have_a_rule() -> None:
    f = custom_vmap(lambda x: x if x > 0 else -x)
    f.def_vmap(lambda size, batched, x: (pnp.abs(x), True))
    assert vmap(f)(pnp.array([-1.0, 2.0])).tolist() == [1.0, 2.0]
    assert float(f(-3.0)) == 3.0
