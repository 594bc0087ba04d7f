"""Laws of functions with derivative rules: every composition of transformations keeps the rule.

The rules here are not the true derivatives, so that a rule that is dropped is seen. The oracle of a function with the
value ``f`` and the derivative of ``g`` is ``g(x) + stop_gradient(f(x) - g(x))``, in ordinary operations: it has that
value and, at every order, these derivatives. It is not compiled, and maps with a Python loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import custom_jvp, custom_vjp, float0, jit, jvp, lax, make_jaxpr, vjp, vmap
from pullback.core import dtypes, tree
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.errors import ClosedOverError
from tests.helpers import assert_close, spread
from tests.random_programs import Program, programs

Function = Callable[..., Any]
Transformation = Callable[[Function], Function]


pytestmark = pytest.mark.usefixtures("all_in_x64")


# The transformations, each of which takes a function of some arguments to another function of the same arguments ------


def tree_map(f: Function, *trees: Any) -> Any:
    return tree.tree_map(f, *trees)


def like(values: Any, offset: float, slope: float) -> Any:
    """Tangents or cotangents, which depend on the values, so that they are differentiated and mapped too."""

    def one(x: Any) -> Any:
        x = jnp.asarray(x)
        return offset + slope * x if dtypes.is_inexact(x.dtype) else np.zeros(x.shape, float0)

    return tree_map(one, values)


def without_float0(values: Any) -> Any:
    return tree_map(lambda x: None if x.dtype == float0 else x, values)


def forward(f: Function) -> Function:
    def run(*args: Any) -> Any:
        return without_float0(jvp(f, args, like(args, 0.7, 0.3)))

    return run


def reverse(f: Function) -> Function:
    def run(*args: Any) -> Any:
        out, pull = vjp(f, *args)
        return out, without_float0(pull(like(out, 0.6, 0.4)))

    return run


def row(args: Any, i: int) -> Any:
    """Example i of a batch that is made from the arguments of one example."""

    def one(x: Any) -> Any:
        x = jnp.asarray(x)
        return (1 - 0.3 * i) * x + 0.2 * i if dtypes.is_inexact(x.dtype) else x + i

    return tree_map(one, args)


def mapped(f: Function) -> Function:
    def run(*args: Any) -> Any:
        return vmap(f)(*tree_map(lambda *xs: jnp.stack(xs), row(args, 0), row(args, 1)))

    return run


def mapped_by_a_loop(f: Function) -> Function:
    def run(*args: Any) -> Any:
        return tree_map(lambda *xs: jnp.stack(xs), f(*row(args, 0)), f(*row(args, 1)))

    return run


def through_a_jaxpr(f: Function) -> Function:
    def run(*args: Any) -> Any:
        closed, shapes = make_jaxpr(f, return_shape=True)(*args)
        return tree.unflatten(tree.structure(shapes), jaxpr_as_fun(closed)(*tree.leaves(args)))

    return run


TRANSFORMATIONS: dict[str, tuple[Transformation, Transformation]] = {
    "jvp": (forward, forward),
    "vjp": (reverse, reverse),
    "vmap": (mapped, mapped_by_a_loop),
    "jit": (jit, lambda f: f),
    "make_jaxpr": (through_a_jaxpr, lambda f: f),
}
"""What is done to the function with a rule, and to its oracle."""

COMPOSITIONS = [names for count in (1, 2, 3) for names in itertools.product(TRANSFORMATIONS, repeat=count)]


def written(names: Sequence[str]) -> str:
    """A composition, the innermost transformation last, as ``jit(vmap(f))`` is written."""
    return " of ".join(names)


def composed(names: Sequence[str], f: Function, which: int) -> Function:
    for name in reversed(names):
        f = TRANSFORMATIONS[name][which](f)
    return f


# Functions with rules, and their oracles ---------------------------------------------------------------------------


def oracle(f: Function, g: Function) -> Function:
    """The value of ``f`` with the derivative of ``g``, by ordinary operations."""

    def run(*args: Any) -> Any:
        def one(value: Any, other: Any) -> Any:
            value, other = jnp.asarray(value), jnp.asarray(other)
            return other + lax.stop_gradient(value - other) if dtypes.is_inexact(value.dtype) else value

        return tree_map(one, f(*args), g(*args))

    return run


def by_jvp(function: Any, g: Function) -> None:
    """Give a function the derivative of ``g`` as jvp rule."""

    @function.defjvp
    def rule(*given: Any) -> Any:
        *fixed, primals, tangents = given
        return function(*fixed, *primals), jvp(lambda *xs: g(*fixed, *xs), primals, tangents)[1]


def by_vjp(function: Any, g: Function) -> None:
    """Give a function the derivative of ``g`` as vjp rule."""
    count = len(function.nondiff_argnums)

    def fwd(*args: Any) -> Any:
        return function(*args), {"args": args[count:], "note": "not an array", "nothing": None}

    def bwd(*given: Any) -> Any:
        *fixed, residuals, ct = given
        assert residuals["note"] == "not an array"
        return vjp(lambda *xs: g(*fixed, *xs), *residuals["args"])[1](ct)

    function.defvjp(fwd, bwd)


def with_rule(kind: str, f: Function, g: Function, nondiff_argnums: Sequence[int] = ()) -> Any:
    """A function of value ``f`` and with the derivative of ``g`` as its rule; arguments not differentiated go first."""
    function: Any
    if kind == "custom_jvp":
        function = custom_jvp(f, nondiff_argnums)
        by_jvp(function, g)
        return function
    function = custom_vjp(f, nondiff_argnums)
    by_vjp(function, g)
    if kind == "both":
        by_jvp(function, g)
    return function


KINDS = ["custom_jvp", "custom_vjp", "both"]
Case = tuple[Function, Function, tuple[Any, ...]]
"""A function that calls one with a rule, its oracle, and arguments for both."""


def sine(kind: str) -> Case:
    """The value sin x and the derivative 3 cos x, by rules written out."""
    function: Any
    if kind == "custom_jvp":
        function = custom_jvp(jnp.sin)
    else:
        function = custom_vjp(jnp.sin)
        function.defvjp(lambda x: (function(x), jnp.cos(x)), lambda c, ct: (3.0 * c * ct,))
    if kind != "custom_vjp":
        function.defjvp(lambda xs, ts: (function(xs[0]), 3.0 * jnp.cos(xs[0]) * ts[0]))
    return function, oracle(jnp.sin, lambda x: 3.0 * jnp.sin(x)), (0.4,)


def products(kind: str) -> Case:
    """Several arguments and results, in tuples and dicts, of several shapes."""

    def f(pair: Any, named: Any) -> Any:
        x, y = pair
        return {"sum": (x * y, jnp.sum(named["z"])), "z": named["z"] * x}

    def g(pair: Any, named: Any) -> Any:
        x, y = pair
        return {"sum": (jnp.sin(x) * y * y, jnp.sum(named["z"] ** 2)), "z": jnp.cos(named["z"] * x)}

    args = (0.5, jnp.asarray([0.3, -0.8])), {"z": jnp.asarray([[0.1, 0.9]])}
    return with_rule(kind, f, g), oracle(f, g), args


def keywords(kind: str) -> Case:
    """Arguments by keyword, out of order, and one that is left at its default."""

    def f(x: Any, y: Any = 2.0, z: Any = 0.7) -> Any:
        return x * y + z

    def g(x: Any, y: Any = 2.0, z: Any = 0.7) -> Any:
        return x**2 * y**2 * z

    function, expected = with_rule(kind, f, g), oracle(f, g)
    return lambda x, z: function(z=z, x=x), lambda x, z: expected(x, 2.0, z), (0.6, 1.2)


def functions(kind: str) -> Case:
    """A function and a string as arguments that are not differentiated."""

    def f(h: Function, how: str, x: Any) -> Any:
        return h(x) if how == "plain" else -h(x)

    def g(h: Function, how: str, x: Any) -> Any:
        return jnp.exp(h(x)) if how == "plain" else x

    function, expected = with_rule(kind, f, g, (0, 1)), oracle(f, g)
    return lambda x: function(jnp.sin, "plain", x), lambda x: expected(jnp.sin, "plain", x), (0.5,)


def integers(kind: str) -> Case:
    """Integer and boolean arguments, and an integer result."""

    def f(n: Any, x: Any, flag: Any) -> Any:
        return jnp.where(flag, x * n, x), n + 1

    def g(n: Any, x: Any, flag: Any) -> Any:
        return jnp.sin(x) * jnp.where(flag, n, 3.0), n + 1

    def run(function: Function) -> Function:
        return lambda n, x: function(n, x, n > 2)

    return run(with_rule(kind, f, g)), run(oracle(f, g)), (2, 0.5)


def closures(kind: str) -> Case:
    """A function and rules that close over a traced value, with respect to which nothing is differentiated."""

    def run(make: Callable[[Function, Function], Function]) -> Function:
        def whole(n: Any, x: Any) -> Any:
            scale = jnp.asarray(n, x.dtype) * lax.stop_gradient(jnp.cos(x))
            return make(lambda x: scale * x, lambda x: jnp.sin(scale * x))(x)

        return lambda n, x: whole(n, jnp.asarray(x))

    return run(lambda f, g: with_rule(kind, f, g)), run(oracle), (2, 0.5)


def one_row_of_two(kind: str) -> Case:
    """A function that is mapped over an argument within the composition, and not over another."""

    def f(x: Any, w: Any) -> Any:
        return jnp.dot(w, x), w

    def g(x: Any, w: Any) -> Any:
        return jnp.sum(jnp.sin(w * x)), w * 2.0

    def run(make: Function) -> Function:
        return lambda x, w: vmap(make, (0, None))(jnp.stack([x, x * x, x + 0.2]), w)

    args = jnp.asarray([0.2, 0.5]), jnp.asarray([0.8, -0.3])
    return run(with_rule(kind, f, g)), run(oracle(f, g)), args


def twice_used(kind: str) -> Case:
    """A call of a result of the same function, added to something ordinary."""

    def run(make: Function) -> Function:
        return lambda x: make(make(x) * x) + x**3

    return run(with_rule(kind, jnp.tanh, jnp.exp)), run(oracle(jnp.tanh, jnp.exp)), (0.3,)


CASES: dict[str, Callable[[str], Case]] = {
    case.__name__: case
    for case in (sine, products, keywords, functions, integers, closures, one_row_of_two, twice_used)
}


def assert_composition(kind: str, case: Case, names: Sequence[str]) -> None:
    function, expected, args = case
    assert_close(composed(names, function, 0)(*args), composed(names, expected, 1)(*args))


def differentiates_a_program(names: Sequence[str]) -> bool:
    """Whether rules run after a function was traced, when what they close over is no longer there."""
    first = min((i for i, name in enumerate(names) if name in ("jvp", "vjp")), default=len(names))
    return any(name in ("jit", "make_jaxpr") for name in names[first:])


SHORT = [names for names in COMPOSITIONS if len(names) < 3]
LONG = [names for names in COMPOSITIONS if len(names) == 3]
BY_KIND = [(kind, names) for kind in KINDS for names in SHORT]
BY_KIND += [(kind, names) for i, names in enumerate(LONG) for kind in spread(KINDS, i, 1)]
"""Every composition of two with every kind of rule; every composition of three with one, or, exhaustively, with all."""


def shown(x: Any) -> str:
    return x if isinstance(x, str) else written(x)


@pytest.mark.parametrize(("kind", "names"), BY_KIND, ids=shown)
def test_every_composition_of_three(kind: str, names: Sequence[str]) -> None:
    assert_composition(kind, sine(kind), names)


OTHERS = [name for name in CASES if name != "sine"]
CHOSEN = [
    (kind, case, names)
    for (i, case), (j, names) in itertools.product(enumerate(OTHERS), enumerate(SHORT))
    for kind in spread(KINDS, i + j, 1)
]
CHOSEN += [(KINDS[i % len(KINDS)], OTHERS[i % len(OTHERS)], names) for i, names in enumerate(LONG)]
"""The other cases, with every composition of two, by kinds in turn; every composition of three with one case."""


@pytest.mark.parametrize(("kind", "case", "names"), CHOSEN, ids=shown)
def test_other_functions(kind: str, case: str, names: Sequence[str]) -> None:
    if case == "closures" and differentiates_a_program(names):
        with pytest.raises(ClosedOverError, match="Pass the value as an argument"):
            assert_composition(kind, CASES[case](kind), names)
    else:
        assert_composition(kind, CASES[case](kind), names)


@pytest.mark.slow
@settings(max_examples=150)
@given(programs(), st.sampled_from(KINDS), st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), min_size=1, max_size=3))
def test_random_programs(p: Program, kind: str, names: Sequence[str]) -> None:
    def f(first: Any, others: dict[str, Any]) -> Any:
        return p(first, *others.values())

    def g(first: Any, others: dict[str, Any]) -> Any:
        return [jnp.sin(2.0 * x) * x for x in f(first, others)]

    first, *rest = p.arguments()
    args = first, {f"argument {i}": x for i, x in enumerate(rest)}
    assert_composition(kind, (with_rule(kind, f, g), oracle(f, g), args), names)
