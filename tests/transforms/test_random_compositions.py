"""Random compositions: transformations of functions that are built of loops, branches, rules and solvers.

Each construct has a meaning in ordinary operations, and each transformation one by a Python loop, or none: so a program
has an oracle that is differentiated as plain arithmetic.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    checkpoint,
    closure_convert,
    custom_gradient,
    custom_jvp,
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    pure_callback,
    tree,
    vjp,
    vmap,
)
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import linear_call
from pullback.derivatives import jet
from tests.helpers import plain, with_jvp, with_vjp

Function = Callable[..., Any]
Pair = tuple[Callable[[Function], Function], Callable[[Function], Function]]


pytestmark = pytest.mark.usefixtures("all_in_x64")


# Constructs: each makes a function of two numbers of another one ------------------------------------------------------


def scanned(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        c, outs = lax.scan(lambda c, t: (0.3 * f(c, y) + t, f(c, t)), x, jnp.stack([y, x]))
        return c + outs.sum()

    return run


def looped(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        c, total = x, 0.0
        for t in (y, x):
            c, total = 0.3 * f(c, y) + t, total + f(c, t)
        return c + total

    return run


def switched(f: Function) -> Function:
    branches = [f, lambda x, y: x * y, lambda x, y: f(y, x)]
    return lambda x, y: lax.switch((y > 0.8).astype(int) + (x > 0.3), branches, x, y)


def selected(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        i = (y > 0.8).astype(int) + (x > 0.3)
        return jnp.where(i == 0, f(x, y), jnp.where(i == 1, x * y, f(y, x)))

    return run


def while_of_unknown_length(f: Function) -> Function:
    def step(c: Any) -> Any:
        return c[0] + 1, 0.5 * f(c[1], c[2]), c[2]

    return lambda x, y: lax.while_loop(lambda c: c[0] < 2 * (y > 0.6) + 1, step, (0, x, y))[1]


def steps(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        once = 0.5 * f(x, y)
        return jnp.where(y > 0.6, 0.5 * f(0.5 * f(once, y), y), once)

    return run


def with_vmap(f: Function) -> Function:
    g = custom_vmap(f)
    g.def_vmap(lambda size, mapped, x, y: (vmap(f, [0 if m else None for m in mapped], axis_size=size)(x, y), True))
    return g


def with_a_pullback(f: Function) -> Function:
    return custom_gradient(lambda x, y: vjp(f, x, y))


def converted(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        g, captured = closure_convert(lambda t: f(t, y) + y, x)
        return g(x, *captured)

    return run


def root(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        return lax.custom_root(
            lambda z: z - f(x, y), 0.0 * x, lambda g, z: z - g(z), lambda g, t: t / g(jnp.ones_like(t))
        )

    return run


def root_that_is_known(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        z, scale = f(x, y), 2.0 + 0.0 * x
        return lax.custom_root(lambda t: 2.0 * (t - z), jnp.zeros_like(z), lambda g, _: z, lambda g, t: t / scale)

    return run


def solved(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        a = 2.0 + f(x, y) ** 2
        inverse = 1.0 / a
        return lax.custom_linear_solve(lambda v: a * v, y * jnp.ones_like(a), lambda _, b: b * inverse, symmetric=True)

    return run


def called_back(f: Function) -> Function:
    @custom_jvp
    def sin(x: Any) -> Any:
        return pure_callback(np.sin, ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")

    sin.defjvp(lambda primals, tangents: (sin(*primals), jnp.cos(*primals) * tangents[0]))
    return lambda x, y: sin(f(x, y))


CONSTRUCTS: dict[str, Pair] = {
    "cond": (
        lambda f: lambda x, y: lax.cond(x < y + 0.1, f, lambda x, y: x - y * y, x, y),
        lambda f: lambda x, y: jnp.where(x < y + 0.1, f(x, y), x - y * y),
    ),
    "cond of closures": (
        lambda f: lambda x, y: lax.cond(x < y + 0.1, lambda: f(x, y), lambda: 2.0),
        lambda f: lambda x, y: jnp.where(x < y + 0.1, f(x, y), 2.0),
    ),
    "switch": (switched, selected),
    "scan": (scanned, looped),
    "while_loop": (while_of_unknown_length, steps),
    "fori_loop": (
        lambda f: lambda x, y: lax.fori_loop(0, 2, lambda i, c: 0.5 * f(c, y) + i, x),
        lambda f: lambda x, y: 0.5 * f(0.5 * f(x, y), y) + 1,
    ),
    "map": (
        lambda f: lambda x, y: lax.map(lambda t: f(t, y), jnp.stack([x, 2 * y])).sum(),
        lambda f: lambda x, y: f(x, y) + f(2 * y, y),
    ),
    "associative_scan": (
        lambda f: lambda x, y: lax.associative_scan(jnp.multiply, jnp.stack([x, f(x, y), y]))[-1],
        lambda f: lambda x, y: x * f(x, y) * y,
    ),
    "checkpoint": (checkpoint, plain),
    "custom_jvp": (with_jvp, plain),
    "custom_vjp": (with_vjp, plain),
    "custom_vmap": (with_vmap, plain),
    "custom_gradient": (with_a_pullback, plain),
    "linear_call": (
        lambda f: lambda x, y: linear_call(lambda r, t: f(*r) * t, lambda r, t: f(*r) * t, (x, y), x),
        lambda f: lambda x, y: f(x, y) * x,
    ),
    "closure_convert": (converted, lambda f: lambda x, y: f(x, y) + y),
    "custom_root": (root, plain),
    "a root that is known": (root_that_is_known, plain),
    "custom_linear_solve": (solved, lambda f: lambda x, y: y / (2.0 + f(x, y) ** 2)),
    "pure_callback": (called_back, lambda f: lambda x, y: jnp.sin(f(x, y))),
    "vmap": (
        lambda f: lambda x, y: (vmap(f, (0, None))(jnp.stack([x, x + 1]), y) * jnp.array([1.0, 2.0])).sum(),
        lambda f: lambda x, y: f(x, y) + 2 * f(x + 1, y),
    ),
    "vmap of a closure": (
        lambda f: lambda x, y: vmap(lambda t: f(x, y) * t)(jnp.array([1.0, 2.0])).sum(),
        lambda f: lambda x, y: 3 * f(x, y),
    ),
    "vmap without an axis": (
        lambda f: lambda x, y: vmap(lambda x, y, t: (f(x, y), t), (None, None, 0), (None, 0))(x, y, jnp.ones(2))[0],
        plain,
    ),
    "grad": (lambda f: lambda x, y: grad(f, 1)(x, y) + x,) * 2,
    "jvp": (lambda f: lambda x, y: jvp(f, (x, y), (y, 2 * y))[1],) * 2,
    "make_jaxpr": (lambda f: lambda x, y: jaxpr_as_fun(make_jaxpr(f)(x, y))(x, y)[0], plain),
}
"""A construct, and its meaning."""


# Transformations ----------------------------------------------------------------------------------------------------


def rows(*axes: int | None) -> Pair:
    """``vmap`` over some of the arguments, and a loop."""

    def examples(x: Any, y: Any) -> tuple[list[Any], list[Any]]:
        return [x, 0.5 * x + 0.2], [y, y - 0.4]

    def mapped(f: Function) -> Function:
        def run(x: Any, y: Any) -> Any:
            args = [jnp.stack(v) if d == 0 else v[0] for v, d in zip(examples(x, y), axes, strict=True)]
            return vmap(f, axes)(*args)

        return run

    def one_by_one(f: Function) -> Function:
        def run(x: Any, y: Any) -> Any:
            outs = [f(*[v[0 if d is None else i] for v, d in zip(examples(x, y), axes, strict=True)]) for i in (0, 1)]
            return tree.map(lambda *parts: jnp.stack(parts), *outs)

        return run

    return mapped, one_by_one


def forward(f: Function) -> Function:
    return lambda x, y: jvp(f, (x, y), (0.7 + 0.3 * x, 0.2 * y))


def reverse(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        out, pull = vjp(f, x, y)
        return out, pull(0.6 + 0.4 * out)

    return run


def along_a_curve(f: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        return jet(f, (x, y), ([0.7 + 0.3 * x, y], [0.2 * y, x]))

    return run


def nested(f: Function) -> Function:
    """The same by ``jvp`` of ``jvp``."""

    def run(x: Any, y: Any) -> Any:
        curve = lambda t: f(x + t * (0.7 + 0.3 * x) + t * t * y / 2, y + t * 0.2 * y + t * t * x / 2)
        slope = lambda t: jvp(curve, (t,), (1.0,))[1]
        first, second = jvp(slope, (0.0,), (1.0,))
        return f(x, y), [first, second]

    return run


TRANSFORMATIONS: dict[str, Pair] = {
    "jvp": (forward, forward),
    "vjp": (reverse, reverse),
    "grad": (lambda f: grad(f, (0, 1)),) * 2,
    "linearize": (
        lambda f: lambda x, y: linearize(lambda x: f(x, y), x)[1](y + 1.0),
        lambda f: lambda x, y: jvp(lambda x: f(x, y), (x,), (y + 1.0,))[1],
    ),
    "vmap": rows(0, 0),
    "vmap of x": rows(0, None),
    "vmap of y": rows(None, 0),
    "checkpoint": (checkpoint, plain),
    "make_jaxpr": (lambda f: lambda x, y: jaxpr_as_fun(make_jaxpr(f)(x, y))(x, y)[0], plain),
    "jet": (along_a_curve, nested),
}


def total(f: Function) -> Function:
    """A function with one number for its result, so that it can be transformed again."""
    return lambda x, y: sum((i + 1.0) * jnp.sum(out) for i, out in enumerate(tree.leaves(f(x, y))))


def assert_holds(constructs: list[str], transformations: list[str], x: float, y: float, compiled: Function) -> None:
    f = g = lambda x, y: jnp.sin(x) * y + 0.5 * x * y
    for name in constructs:
        f, g = CONSTRUCTS[name][0](f), CONSTRUCTS[name][1](g)
    for name in transformations:
        f, g = TRANSFORMATIONS[name][0](total(f)), TRANSFORMATIONS[name][1](total(g))
    got = compiled(total(f))(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(got, total(g)(jnp.asarray(x), jnp.asarray(y)), rtol=1e-7, atol=1e-8)


POINTS = [(0.7, 0.9), (0.2, 0.5), (1.1, 0.3)]


def unsupported(constructs: list[str], transformations: list[str]) -> bool:
    """Whether a backward function is used by a linear function from ``linearize``, within a differentiation."""
    return "custom_gradient" in constructs and ("linearize" in transformations or "jvp" in transformations)


@pytest.mark.parametrize("seed", range(24))
def test_compositions(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(4):
        constructs = [chance.choice(list(CONSTRUCTS)) for _ in range(chance.choice([1, 2, 2, 3]))]
        transformations = [chance.choice(list(TRANSFORMATIONS)) for _ in range(chance.choice([1, 2, 2, 3]))]
        if not unsupported(constructs, transformations):
            assert_holds(constructs, transformations, *chance.choice(POINTS), plain)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_each_construct_under_each_transformation(construct: str, transformation: str) -> None:
    assert_holds([construct], [transformation], 0.7, 0.9, plain)
    second = "vmap of y" if transformation in ("grad", "jvp", "vjp", "linearize") else "grad"
    if not unsupported([construct], [transformation, second]):
        assert_holds([construct], [transformation, second], 0.2, 0.5, plain)


@pytest.mark.parametrize("other", TRANSFORMATIONS)
def test_jets_and_each_transformation(other: str) -> None:
    """In either order, of a loop with a rule, and of a branch."""
    for constructs in (["custom_jvp", "scan"], ["cond"]):
        assert_holds(constructs, ["jet", other], 0.7, 0.9, plain)
        assert_holds(constructs, [other, "jet"], 0.7, 0.9, plain)


@pytest.mark.slow
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_each_construct_compiled(construct: str) -> None:
    assert_holds([construct], ["vmap of x", "grad"], 0.7, 0.9, jit)


@pytest.mark.parametrize(
    ("constructs", "transformations"),
    [
        (["cond", "custom_root"], ["jvp", "vmap", "grad"]),  # values that a mapped branch is guarded by
        (["cond of closures", "custom_root", "jvp"], ["vmap", "vjp"]),
        (["while_loop", "custom_jvp"], ["grad"]),  # values that a loop carries beside tangents
        (["while_loop", "custom_root"], ["grad", "jvp", "checkpoint"]),
    ],
    ids=str,
)
def test_values_beside_tangents_are_not_linear(constructs: list[str], transformations: list[str]) -> None:
    assert_holds(constructs, transformations, 0.7, 0.9, plain)


def test_transposing_operations_that_compute_values_too() -> None:
    def loop(t: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 1.5, c[2] * c[1]), (0, 1.2, t))[2]

    def barrier(t: Any) -> Any:
        x, t = lax.optimization_barrier((jnp.asarray(3.0), t))
        return x * t

    for compiled in (plain, jit):
        np.testing.assert_allclose(linear_transpose(compiled(loop), 1.0)(1.0)[0], 1.2 * 1.8)
        assert linear_transpose(compiled(barrier), 1.0)(1.0)[0] == 3.0

    f = custom_jvp(lambda x: x * x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        x, t = lax.optimization_barrier((*primals, *tangents))
        return f(x), 5.0 * x * t

    assert grad(f)(3.0) == jit(grad(f))(3.0) == 15.0
    assert grad(grad(f))(3.0) == 5.0
