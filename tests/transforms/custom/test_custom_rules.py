"""``custom_jvp`` and ``custom_vjp``: the figures of the specification; what rules are given, and what they may give.

How they go with transformations is in ``test_custom_composition.py``, the laws on all compositions are in
``test_custom_laws.py``, errors in ``test_custom_errors.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    custom_jvp,
    custom_vjp,
    float0,
    grad,
    jacfwd,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    tree,
    tree_util,
    vjp,
    vmap,
)
from pullback.core.errors import ClosedOverError, CustomRuleError, TangentMismatchError
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.derivatives import taylor
from pullback.errors import UnexpectedTracerError
from pullback.transforms.custom.rule_adapter import CustomVJPPrimal, SymbolicZero
from tests.transforms.custom.custom_functions import (
    COMPILED,
    along,
    clipped,
    close,
    doubled,
    log1pexp,
    ones4,
    sine_times_jvp,
    sine_times_jvps,
    sine_times_vjp,
    x3,
)

Function = Callable[..., Any]


# The figures of the specification ----------------------------------------------------------------------------------


SINES = pytest.mark.parametrize("f", [sine_times_jvp, sine_times_jvps, sine_times_vjp])


@COMPILED
@SINES
def test_sine_times_y(f: Any, compiled: Function) -> None:
    close(compiled(f)(2.0, 3.0), 2.7278922)
    out, tangent = compiled(lambda *xs: jvp(f, xs, (1.0, 0.0)))(2.0, 3.0)
    close((out, tangent), (2.7278922, -1.2484405))
    close(compiled(grad(f))(2.0, 3.0), -1.2484405)
    close(grad(compiled(f))(2.0, 3.0), -1.2484405)
    close(compiled(grad(f, 1))(2.0, 3.0), np.sin(2.0))
    close(jvp(compiled(f), (2.0, 3.0), (1.0, 0.0))[1], -1.2484405)


@COMPILED
def test_log1pexp(compiled: Function) -> None:
    stable = custom_jvp(log1pexp)
    stable.defjvps(lambda t, ans, x: (1 - 1 / (1 + jnp.exp(x))) * t)
    assert np.isnan(compiled(grad(log1pexp))(100.0))
    for x, expected in ((100.0, 1.0), (500.0, 1.0), (3.0, 0.95257413), (5.0, 0.9933072)):
        close(compiled(grad(stable))(x), expected)
        close(grad(compiled(stable))(x), expected)
    close(compiled(stable)(3.0), 3.0485873)
    close(compiled(vmap(grad(stable)))(x3), [0.5, 0.7310586, 0.8807971])
    close(vmap(grad(compiled(stable)))(x3), [0.5, 0.7310586, 0.8807971])


@COMPILED
def test_a_derivative_by_convention(compiled: Function) -> None:
    def f(x: Any) -> Any:
        return x / (1 + jnp.sqrt(x))

    by_convention = custom_jvp(f)

    @by_convention.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        root = jnp.sqrt(x)
        return f(x), (root + 2) / (2 * (root + 1) ** 2) * t

    assert np.isnan(compiled(grad(f))(0.0))
    close(compiled(grad(by_convention))(0.0), 1.0)
    close(compiled(grad(by_convention))(2.0), grad(f)(2.0))


@COMPILED
def test_gradient_clipping(compiled: Function) -> None:
    clip = clipped(-0.75, 0.75)
    x = jnp.linspace(0.0, 10.0, 6)
    close(compiled(vmap(grad(lambda x: jnp.sin(clip(x)))))(x), np.clip(np.cos(np.asarray(x)), -0.75, 0.75))


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_three_instead_of_two(kind: str) -> None:
    f = doubled(kind)
    again = jaxpr_as_fun(make_jaxpr(f)(1.0))
    for run in (
        grad(f), jit(grad(f)), grad(jit(f)), along(f), along(jit(f)), jit(along(f)), lambda x: linearize(f, x)[1](1.0),
        lambda x: vjp(f, x)[1](1.0)[0], grad(lambda x: again(x)[0]), grad(jit(lambda x: again(x)[0])),
    ):  # fmt: skip
        assert float(run(1.0)) == 3.0
    for run in (
        vmap(grad(f)), grad(lambda x: vmap(f)(x).sum()), vmap(grad(jit(f))), grad(lambda x: jit(vmap(f))(x).sum()),
        grad(lambda x: vmap(jit(f))(x).sum()), along(vmap(f)), jit(along(vmap(f))), vmap(grad(lambda x: again(x)[0])),
    ):  # fmt: skip
        np.testing.assert_array_equal(run(ones4), [3.0] * 4)


def fixed_point(f: Function, a: Any, guess: Any) -> Any:
    before, x = guess, f(a, guess)
    while jnp.abs(before - x) > 1e-6:
        before, x = x, f(a, x)
    return x


implicit_fixed_point = custom_vjp(fixed_point, nondiff_argnums=(0,))


def _fixed_point_fwd(f: Function, a: Any, guess: Any) -> Any:
    x = implicit_fixed_point(f, a, guess)
    return x, (a, x)


def _fixed_point_bwd(f: Function, residuals: Any, ct: Any) -> Any:
    a, x = residuals
    _, pull_a = vjp(lambda a: f(a, x), a)

    def step(packed: Any, u: Any) -> Any:
        a, x, ct = packed
        return ct + vjp(lambda x: f(a, x), x)[1](u)[0]

    (a_bar,) = pull_a(implicit_fixed_point(step, (a, x, ct), ct))
    return a_bar, jnp.zeros_like(x)


implicit_fixed_point.defvjp(_fixed_point_fwd, _fixed_point_bwd)


def test_the_square_root_by_newtons_iteration_to_second_order() -> None:
    def root(a: Any) -> Any:
        return implicit_fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    close(root(2.0), np.sqrt(2.0))
    close(grad(root)(2.0), 0.5 / np.sqrt(2.0))
    close(grad(grad(root))(2.0), -0.25 * 2.0**-1.5)
    # Forward mode transposes the backward rule, which solves a problem in a Python loop, linear in the cotangent.
    close(along(root)(2.0), 0.5 / np.sqrt(2.0))
    for second in (along(grad(root)), grad(along(root)), along(along(root))):
        close(second(2.0), -0.25 * 2.0**-1.5)


# What functions and rules take and return ----------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


@tree_util.register_pytree_node_class
class Line:
    """A user's type, with something static."""

    def __init__(self, slope: Any, offset: Any, name: str) -> None:
        self.slope, self.offset, self.name = slope, offset, name

    def tree_flatten(self) -> Any:
        return (self.slope, self.offset), self.name

    @classmethod
    def tree_unflatten(cls, name: str, children: Any) -> Line:
        return cls(*children, name)


@COMPILED
def test_trees_in_and_out_of_a_jvp_rule(compiled: Function) -> None:
    @custom_jvp
    def f(line: Line, points: dict[str, Any]) -> Pair:
        return Pair(line.slope * points["x"] + line.offset, [points["x"], None])

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (line, points), (line_dot, points_dot) = primals, tangents
        assert isinstance(line_dot, Line)
        assert line_dot.name == line.name == "ours"
        assert list(points_dot) == ["x"]
        t = 10.0 * points_dot["x"] + line_dot.slope + line_dot.offset
        return f(line, points), Pair(t, [7.0 * points_dot["x"], None])

    def run(slope: Any, x: Any) -> Any:
        return f(Line(slope, jnp.zeros(()), "ours"), {"x": x})

    out, tangent = jvp(compiled(run), (2.0, x3), (1.0, ones4[:3]))
    assert isinstance(out, Pair)
    assert isinstance(tangent, Pair)
    close(out.first, 2.0 * x3)
    close(tangent.first, [11.0] * 3)
    close(tangent.second[0], [7.0] * 3)
    assert out.second[1] is tangent.second[1] is None
    gradients = grad(lambda *xs: jnp.sum(compiled(run)(*xs).first), (0, 1))(2.0, x3)
    close(gradients[0], 3.0)
    close(gradients[1], [10.0] * 3)


@COMPILED
def test_trees_in_out_and_residuals_of_a_vjp_rule(compiled: Function) -> None:
    @custom_vjp
    def f(line: Line, points: dict[str, Any]) -> Pair:
        return Pair(line.slope * points["x"] + line.offset, [points["x"], None])

    def fwd(line: Line, points: dict[str, Any]) -> Any:
        return f(line, points), {"line": line, "x": [points["x"], None]}

    def bwd(residuals: Any, ct: Any) -> Any:
        line, (_, nothing) = residuals["line"], residuals["x"]
        assert isinstance(line, Line)
        assert line.name == "ours"
        assert nothing is None
        assert isinstance(ct, Pair)
        assert ct.second[1] is None
        return Line(jnp.sum(ct.first), jnp.zeros(()), line.name), {"x": 10.0 * ct.first + 7.0 * ct.second[0]}

    f.defvjp(fwd, bwd)

    def run(slope: Any, x: Any) -> Any:
        return f(Line(slope, jnp.zeros(()), "ours"), {"x": x})

    out, pull = vjp(compiled(run), 2.0, x3)
    assert isinstance(out, Pair)
    slope_bar, x_bar = pull(Pair(ones4[:3], [ones4[:3], None]))
    close(slope_bar, 3.0)
    close(x_bar, [17.0] * 3)
    tangent = jvp(compiled(run), (2.0, x3), (1.0, ones4[:3]))[1]
    close(tangent.first, [11.0] * 3)
    close(tangent.second[0], [7.0] * 3)


@COMPILED
def test_residuals_that_are_not_arrays(compiled: Function) -> None:
    @custom_vjp
    def f(x: Any) -> Any:
        return x * x

    seen = []

    def fwd(x: Any) -> Any:
        return f(x), {
            "x": x,
            "scale": 3,
            "what": "cubed",
            "how": jnp.square,
            "nothing": None,
            "flag": True,
            "0": np.ones(3),
        }

    def bwd(residuals: Any, ct: Any) -> Any:
        seen.append({k: type(v) for k, v in residuals.items() if k not in "x0"})
        assert isinstance(residuals["0"], jnp.ndarray)
        return (residuals["scale"] * residuals["how"](residuals["x"]) * ct,)

    f.defvjp(fwd, bwd)
    close(compiled(grad(f))(2.0), 12.0)
    close(grad(compiled(f))(2.0), 12.0)
    close(compiled(vmap(grad(f)))(x3), [0.0, 3.0, 12.0])
    close(along(compiled(f))(2.0), 12.0)
    for kinds in seen:
        assert kinds["scale"] is int
        assert kinds["what"] is str
        assert kinds["flag"] is bool
        assert kinds["nothing"] is type(None)


@COMPILED
def test_no_residuals_and_no_arguments(compiled: Function) -> None:
    f = custom_vjp(lambda: jnp.ones(3))
    f.defvjp(lambda: (f(), None), lambda _, ct: ())
    close(compiled(f)(), [1.0] * 3)
    close(compiled(grad(lambda x: x * f().sum()))(2.0), 3.0)
    g = custom_jvp(lambda: 2.0)
    g.defjvp(lambda primals, tangents: (g(), 0.0))
    close(compiled(grad(lambda x: x * g()))(2.0), 2.0)


@COMPILED
def test_rules_give_numbers_and_numpys_arrays(compiled: Function) -> None:
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], np.float32(0.0)))
    close(compiled(grad(f))(2.0), 0.0)
    g = custom_vjp(lambda x: np.full(3, 2.0))
    g.defvjp(lambda x: (np.full(3, 2.0), np.arange(3)), lambda r, ct: (np.full(3, 5.0),))
    close(compiled(grad(lambda x: g(x).sum()))(x3), [5.0] * 3)
    h = custom_vjp(lambda x: 2.0)
    h.defvjp(lambda x: (2.0, 4), lambda four, ct: (four,) if four != 4 else (4.0,))
    close(compiled(grad(h))(1.0), 4.0)


@COMPILED
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_keyword_arguments_and_defaults(kind: str, compiled: Function) -> None:
    counts = []
    f: Any
    if kind == "custom_jvp":
        f = custom_jvp(lambda x, y=2.0, z=3.0: x * y * z)

        @f.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            counts.append(len(primals))
            x, y, z = primals
            return f(x, y, z), 10.0 * tangents[0] + 100.0 * tangents[1] + 1000.0 * tangents[2]
    else:
        f = custom_vjp(lambda x, y=2.0, z=3.0: x * y * z)

        def fwd(*args: Any) -> Any:
            counts.append(len(args))
            return f(*args), None

        f.defvjp(fwd, lambda _, ct: (10.0 * ct, 100.0 * ct, 1000.0 * ct))
    close(compiled(lambda x: f(x))(1.0), 6.0)
    close(compiled(lambda x: f(z=x, x=5.0))(1.0), 10.0)
    close(compiled(grad(lambda x: f(x)))(1.0), 10.0)
    close(compiled(grad(lambda x: f(1.0, x)))(1.0), 100.0)
    close(compiled(grad(lambda x: f(1.0, y=x)))(1.0), 100.0)
    close(compiled(grad(lambda x: f(z=x, x=x)))(1.0), 1010.0)
    close(compiled(grad(f))(1.0), 10.0)
    assert set(counts) == {3}


@COMPILED
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_any_number_of_arguments(kind: str, compiled: Function) -> None:
    f: Any
    if kind == "custom_jvp":
        f = custom_jvp(lambda first, *others: first + sum(others))
        f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * sum(tangents)))
    else:
        f = custom_vjp(lambda first, *others: first + sum(others))
        f.defvjp(lambda *xs: (f(*xs), len(xs)), lambda n, ct: (3.0 * ct,) * n)
    close(compiled(f)(1.0, 2.0, 3.0), 6.0)
    close(compiled(grad(f, (0, 2)))(1.0, 2.0, 3.0), (3.0, 3.0))


@COMPILED
def test_zero_as_none_and_for_a_whole_subtree(compiled: Function) -> None:
    f: Any
    for cts, expected in (
        ((5.0, None, None), (5.0, 0.0, 0.0, 0.0)),
        ((None, {"w": 6.0, "deep": None}, 7.0), (0.0, 6.0, 0.0, 7.0)),
        ((None, {"w": None, "deep": [8.0]}, None), (0.0, 0.0, 8.0, 0.0)),
        ((None, None, None), (0.0, 0.0, 0.0, 0.0)),
    ):
        f = custom_vjp(lambda x, params, z: x * params["w"] * params["deep"][0] * z)
        f.defvjp(lambda *args, f=f: (f(*args), None), lambda _, ct, cts=cts: cts)
        x, params, z = compiled(grad(f, (0, 1, 2)))(2.0, {"w": 3.0, "deep": [4.0]}, 5.0)
        close((x, params["w"], params["deep"][0], z), expected)
        x, params, z = grad(compiled(f), (0, 1, 2))(2.0, {"w": 3.0, "deep": [4.0]}, 5.0)
        close((x, params["w"], params["deep"][0], z), expected)


def test_an_argument_without_arrays() -> None:
    f = custom_vjp(lambda nothing, x, empty: x)
    f.defvjp(lambda nothing, x, empty: (x, None), lambda _, ct: (None, 3.0 * ct, {}))
    close(grad(f, 1)(None, 1.0, {}), 3.0)
    f.defvjp(lambda nothing, x, empty: (x, None), lambda _, ct: (None, 4.0 * ct, None))
    close(grad(f, 1)(None, 1.0, {}), 4.0)


@COMPILED
def test_several_results_of_which_one_is_used(compiled: Function) -> None:
    f = custom_vjp(lambda x: (x, {"y": 2.0 * x}))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (10.0 * ct[0] + 100.0 * ct[1]["y"],))
    close(compiled(grad(lambda x: f(x)[0]))(1.0), 10.0)
    close(compiled(grad(lambda x: f(x)[1]["y"]))(1.0), 100.0)
    close(compiled(grad(lambda x: f(x)[1]["y"] + f(x)[0]))(1.0), 110.0)
    close(along(compiled(f))(1.0)[1]["y"], 100.0)


# Arguments that are not differentiated -----------------------------------------------------------------------------


@COMPILED
@pytest.mark.parametrize("position", [0, -3])
def test_a_function_as_argument_of_a_custom_jvp(position: int, compiled: Function) -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(position,))
    def apply(f: Function, x: Any, y: Any) -> Any:
        return f(x) * y

    @apply.defjvp
    def rule(f: Function, primals: Any, tangents: Any) -> Any:
        (x, y), (x_dot, y_dot) = primals, tangents
        assert f is jnp.sin
        return f(x) * y, 10.0 * x_dot + 100.0 * y_dot

    close(compiled(lambda x: apply(jnp.sin, x, 2.0))(1.0), 2.0 * np.sin(1.0))
    close(compiled(grad(lambda x: apply(jnp.sin, x, 2.0)))(1.0), 10.0)
    close(compiled(grad(lambda x: apply(jnp.sin, 2.0, x)))(1.0), 100.0)
    close(compiled(vmap(grad(lambda x: apply(f=jnp.sin, y=2.0, x=x))))(x3), [10.0] * 3)


@COMPILED
@pytest.mark.parametrize("nums", [(0, 2), (2, 0), (-4, -2), [0, -2]])
def test_several_arguments_that_are_not_differentiated(nums: Any, compiled: Function) -> None:
    @functools.partial(custom_vjp, nondiff_argnums=nums)
    def f(g: Function, x: Any, how: str, y: Any) -> Any:
        return g(x) * y if how == "product" else g(x) + y

    def fwd(g: Function, x: Any, how: str, y: Any) -> Any:
        return f(g, x, how, y), x

    def bwd(g: Function, how: str, x: Any, ct: Any) -> Any:
        assert (g, how) == (jnp.sin, "product")
        return 10.0 * ct * g(x), 100.0 * ct

    f.defvjp(fwd, bwd)
    close(compiled(lambda x: f(jnp.sin, x, "product", 2.0))(1.0), 2.0 * np.sin(1.0))
    close(compiled(grad(lambda x: f(jnp.sin, x, "product", 2.0)))(1.0), 10.0 * np.sin(1.0))
    close(compiled(grad(lambda y: f(jnp.sin, 1.0, "product", y)))(2.0), 100.0)
    close(along(compiled(lambda y: f(jnp.sin, 1.0, "product", y)))(2.0), 100.0)


def test_one_number_and_names() -> None:
    f = custom_vjp(lambda x, how: x, nondiff_argnums=1)
    f.defvjp(lambda x, how: (x, None), lambda how, _, ct: (ct * len(how),))
    close(grad(f)(1.0, "four"), 4.0)
    for names in ("how", ["how"]):
        g = custom_jvp(lambda x, how: x, nondiff_argnames=names)
        g.defjvp(lambda how, primals, tangents: (primals[0], tangents[0] * len(how)))
        close(grad(g)(1.0, how="four"), 4.0)
        close(grad(g)(1.0, "four"), 4.0)
    both = custom_vjp(lambda g, x, how="three": x, nondiff_argnums=0, nondiff_argnames=("how",))
    both.defvjp(lambda g, x, how: (x, None), lambda g, how, _, ct: (ct * len(how) * g(1.0),))
    close(grad(both, 1)(lambda x: 10.0 * x, 1.0), 50.0)


@COMPILED
def test_a_traced_array_as_argument_that_is_not_differentiated_of_a_custom_jvp(compiled: Function) -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(0,))
    def f(scale: Any, x: Any) -> Any:
        return scale["by"] * x

    @f.defjvp
    def rule(scale: Any, primals: Any, tangents: Any) -> Any:
        return f(scale, *primals), 3.0 * scale["by"] * tangents[0]

    def run(scale: Any, x: Any) -> Any:
        return f({"by": scale, "how": "times"}, x)

    close(compiled(grad(run, 1))(5.0, 2.0), 15.0)
    close(compiled(grad(lambda x: run(lax.stop_gradient(x), x)))(5.0), 15.0)
    close(compiled(vmap(grad(run, 1), (0, None)))(x3, 2.0), 3.0 * x3)
    same = lambda x: run(x, x)
    for lost in (
        grad(run, (0, 1)),
        lambda x, _: jvp(same, (x,), (1.0,))[1],
        lambda x, _: jacfwd(jacfwd(same))(x),
        lambda x, _: taylor(same, x, 1)[1],
        lambda x, _: grad(lambda x: vmap(lambda _: same(x))(x3).sum())(x),
        lambda x, _: grad(lambda x: vmap(same)(x * x3).sum())(x),
        lambda x, _: grad(jit(same))(x),
        lambda x, _: grad(lambda x: lax.scan(lambda c, _: (run(x, c), None), x, None, length=2)[0])(x),
    ):
        with pytest.raises(ClosedOverError):
            compiled(lost)(5.0, 2.0)
    with pytest.raises(
        ClosedOverError,
        match=r"argument 0 of .* is one of nondiff_argnums, but its value is being differentiated.* lost",
    ):
        grad(same)(5.0)


def test_a_traced_array_as_argument_that_is_not_differentiated_of_a_custom_vjp() -> None:
    f = custom_vjp(lambda scale, x: scale * x, nondiff_argnums=(0,))
    f.defvjp(lambda scale, x: (f(scale, x), None), lambda scale, _, ct: (3.0 * scale * ct,))
    close(grad(f, 1)(5.0, 2.0), 15.0)
    close(grad(f, 1)(jnp.asarray(5.0), 2.0), 15.0)
    for run in (grad(lambda *xs: jnp.sum(f(*xs))), jit(f), vmap(f), make_jaxpr(f), along(f)):
        with pytest.raises(UnexpectedTracerError, match=r"(?s)argument 0 of .* nondiff_argnums.* as ordinary argument"):
            run(x3, x3)


# Symbolic zeros ----------------------------------------------------------------------------------------------------


@COMPILED
def test_symbolic_zeros_of_a_jvp_rule(compiled: Function) -> None:
    seen = []

    @custom_jvp
    def f(x: Any, params: Any) -> Any:
        return x * params["w"], params["n"]

    def rule(primals: Any, tangents: Any) -> Any:
        (x, params), (x_dot, params_dot) = primals, tangents
        seen.append([type(t) is SymbolicZero for t in (x_dot, params_dot["w"], params_dot["n"])])
        zero = params_dot["n"]
        assert (zero.shape, zero.ndim, zero.size, zero.dtype) == ((), 0, 1, float0)
        assert zero.aval.shape == ()
        if type(x_dot) is SymbolicZero:
            assert (x_dot.shape, x_dot.dtype, x_dot.size) == ((3,), jnp.float32, 3)
            return f(x, params), (x_dot, zero)
        return f(x, params), (3.0 * x_dot, zero)

    f.defjvp(rule, symbolic_zeros=True)
    params = {"w": 2.0, "n": 1}
    close(compiled(grad(lambda x: f(x, params)[0].sum()))(x3), [3.0] * 3)
    close(compiled(grad(lambda w: f(x3, {"w": w, "n": 1})[0].sum()))(2.0), 0.0)
    close(compiled(along(lambda w: f(x3, {"w": w, "n": 1})[0]))(2.0), [0.0] * 3)
    close(compiled(vmap(grad(lambda x: f(x * jnp.ones(3), params)[0].sum())))(x3), [9.0] * 3)
    assert seen[:3] == [[False, True, True], [True, False, True], [True, False, True]]


@COMPILED
def test_symbolic_zeros_of_a_vjp_rule(compiled: Function) -> None:
    perturbed, zeros = [], []

    @custom_vjp
    def f(x: Any, params: Any) -> Any:
        return x * params["w"], 2.0 * x

    def fwd(x: Any, params: Any) -> Any:
        assert type(x) is type(params["w"]) is CustomVJPPrimal
        perturbed.append((x.perturbed, params["w"].perturbed, params["n"].perturbed))
        plain = tree_util.tree_map(lambda p: p.value, params)
        return f(x.value, plain), (x.value, plain["w"])

    def bwd(residuals: Any, cts: Any) -> Any:
        zeros.append(tuple(type(ct) is SymbolicZero for ct in cts))
        first, second = cts
        if type(second) is SymbolicZero:
            assert (second.shape, second.dtype) == ((), jnp.float32)
            return 10.0 * first, {"w": second if isinstance(first, SymbolicZero) else 30.0 * first, "n": None}
        return second, {"w": None, "n": None}

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    params = {"w": 2.0, "n": 1}
    close(compiled(lambda x: f(x, params)[0])(5.0), 10.0)
    assert perturbed == []  # the function itself is run
    close(compiled(grad(lambda x: f(x, params)[0]))(5.0), 10.0)
    close(compiled(grad(lambda x: f(x, params)[1]))(5.0), 1.0)
    close(compiled(grad(lambda x, w: f(x, {"w": w, "n": 1})[0], (0, 1)))(5.0, 2.0), (10.0, 30.0))
    assert perturbed == [(True, False, False), (True, False, False), (True, True, False)]
    assert zeros == [(False, True), (True, False), (False, True)]


@COMPILED
def test_a_symbolic_zero_as_cotangent(compiled: Function) -> None:
    f = custom_vjp(lambda x, y: (x * y, y))

    def bwd(_: None, cts: Any) -> Any:
        return 3.0 * cts[0], cts[1]

    f.defvjp(lambda x, y: (f(x.value, y.value), None), bwd, symbolic_zeros=True)
    close(compiled(grad(lambda x, y: f(x, y)[0], (0, 1)))(5.0, 2.0), (3.0, 0.0))
    close(compiled(vmap(grad(lambda x, y: f(x, y)[0], (0, 1))))(x3, x3), ([3.0] * 3, [0.0] * 3))


def test_without_symbolic_zeros_rules_are_given_arrays() -> None:
    seen = []
    f = custom_jvp(lambda x, y, n: x * y)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(tangents)
        return f(*primals), 3.0 * tangents[0]

    close(grad(f)(2.0, x3[1], 4), 3.0)
    ((_, y_dot, n_dot),) = seen
    assert (float(y_dot), y_dot.dtype, y_dot.shape) == (0.0, jnp.float32, ())
    assert (n_dot.dtype, n_dot.shape) == (float0, ())


# Integers, booleans and complex numbers ----------------------------------------------------------------------------


@COMPILED
def test_integers_and_booleans_in_a_jvp_rule(compiled: Function) -> None:
    f = custom_jvp(lambda n, flags, x: jnp.where(flags, x * n, x))
    seen = []

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.extend((t.dtype, t.shape) for t in tangents[:2])
        return f(*primals), 3.0 * tangents[2]

    flags = jnp.asarray([True, False, True])
    tangents = np.zeros((), float0), np.zeros(3, float0), ones4[:3]
    out, tangent = jvp(compiled(f), (2, flags, x3), tangents)
    close(out, [0.0, 1.0, 4.0])
    close(tangent, [3.0] * 3)
    close(compiled(grad(lambda x: f(2, flags, x).sum()))(x3), [3.0] * 3)
    gradients = grad(lambda *xs: compiled(f)(*xs).sum(), (0, 1, 2), allow_int=True)(2, flags, x3)
    assert [(g.dtype, g.shape) for g in gradients[:2]] == [(float0, ()), (float0, (3,))]
    close(gradients[2], [3.0] * 3)
    assert set(seen) == {(float0, ()), (float0, (3,))}


@COMPILED
@pytest.mark.parametrize("zero", [None, np.zeros((), float0), 0, 1.0])
def test_integers_in_a_vjp_rule(zero: Any, compiled: Function) -> None:
    f = custom_vjp(lambda n, x: x * n)
    f.defvjp(lambda n, x: (f(n, x), None), lambda _, ct: (zero, 3.0 * ct))
    close(compiled(grad(f, 1))(2, 5.0), 3.0)
    n_bar, x_bar = grad(compiled(f), (0, 1), allow_int=True)(2, 5.0)
    assert (n_bar.dtype, n_bar.shape) == (float0, ())
    close(x_bar, 3.0)
    close(jvp(compiled(f), (2, 5.0), (np.zeros((), float0), 1.0))[1], 3.0)


@COMPILED
def test_integer_results(compiled: Function) -> None:
    f = custom_jvp(lambda x: (x, jnp.floor(x).astype(int)))
    f.defjvp(lambda primals, tangents: (f(*primals), (3.0 * tangents[0], np.zeros((), float0))))
    g = custom_vjp(lambda x: (x, jnp.floor(x).astype(int)))
    cts = []

    def bwd(_: None, ct: Any) -> Any:
        cts.append(ct[1])
        return (3.0 * ct[0],)

    g.defvjp(lambda x: (g(x), None), bwd)
    for h in (f, g):
        out, tangent = jvp(compiled(h), (2.5,), (1.0,))
        assert out[1] == 2
        close(tangent[0], 3.0)
        assert tangent[1].dtype == float0
        close(compiled(grad(lambda x, h=h: h(x)[0] * h(x)[1]))(2.5), 6.0)
        close(grad(lambda x, h=h: compiled(h)(x)[0])(2.5), 3.0)
    assert all(ct.dtype == float0 and ct.shape == () for ct in cts)
    only = custom_vjp(lambda x: x > 0)
    only.defvjp(lambda x: (x > 0, None), lambda _, ct: (None,))
    close(compiled(grad(lambda x: jnp.where(only(x), x, 0.0)))(2.0), 1.0)


@COMPILED
def test_complex_numbers(compiled: Function) -> None:
    f = custom_jvp(lambda z: z * z)
    f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * primals[0] * tangents[0]))
    g = custom_vjp(lambda z: z * z)
    g.defvjp(lambda z: (g(z), z), lambda z, ct: (2.0 * z * ct,))
    z = 3.0 + 4.0j
    for h in (f, g):
        close(compiled(grad(h, holomorphic=True))(z), 6.0 + 8.0j)
        close(grad(compiled(h), holomorphic=True)(z), 6.0 + 8.0j)
        close(jvp(compiled(h), (z,), (1.0j,))[1], -8.0 + 6.0j)
        close(compiled(grad(lambda z, h=h: jnp.imag(h(z))))(z), grad(lambda z: jnp.imag(z * z))(z))
    norm = custom_vjp(lambda z: jnp.real(z * jnp.conj(z)))
    norm.defvjp(lambda z: (norm(z), z), lambda z, ct: (2.0 * jnp.conj(z) * ct,))
    close(compiled(grad(norm))(z), 6.0 - 8.0j)
    close(along(compiled(norm), 1.0 + 0.5j)(z), 2.0 * (3.0 + 4.0 * 0.5))


def test_cotangents_that_are_prefixes_of_the_arguments():
    k = custom_vjp(lambda m: m["x"][0] * 2)
    k.defvjp(lambda m: (m["x"][0] * 2, None), lambda _, ct: ({"x": ct * 2},))
    for differentiated in (grad(k), jit(grad(k))):
        assert tree.map(float, differentiated({"x": (1.0,)})) == {"x": (2.0,)}
    whole = custom_vjp(lambda m, n: m["x"][0] * m["y"] * n)
    whole.defvjp(lambda m, n: (m["x"][0] * m["y"] * n, None), lambda _, ct: (ct * 3, None))
    found = grad(whole, (0, 1))({"x": (1.0, 2.0), "y": 3.0}, 4.0)
    assert tree.map(float, found) == ({"x": (3.0, 3.0), "y": 3.0}, 0.0)
    whole.defvjp(lambda m, n: (m["x"][0] * m["y"] * n, None), lambda _, ct: ({"x": ct, "z": ct}, None))
    with pytest.raises(CustomRuleError, match=r"is at \[0\]\['z'\], where the arguments have no array"):
        grad(whole)({"x": (1.0, 2.0), "y": 3.0}, 4.0)
    shaped = custom_vjp(lambda m: m[0] + m[1].sum())
    shaped.defvjp(lambda m: (m[0] + m[1].sum(), None), lambda _, ct: (ct,))
    with pytest.raises(TangentMismatchError, match=r"argument 0\[1\] is f32\[2\]"):
        grad(shaped)((1.0, jnp.ones(2)))
