"""Costs are linear in the program: what is counted is calls, and how often variables are hashed and compared.

A set that is made again for each element, or a search in a list, counts as many comparisons as it does. Times are not
measured.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, grad, jit, lax, make_jaxpr, vmap
from pullback.backends.compiler.programs import Lowered
from pullback.backends.compiler.small_loops import halves
from pullback.backends.devices.devices import default_device
from pullback.control.common import deduplicated, op_count
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.types import MappedAxis
from pullback.transforms.checkpoint.checkpoint_policies import dots_saveable, everything_saveable
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.remat import remat_partial_eval

SMALL, TIMES = 25, 4
MOST = 4.4


@contextmanager
def counting() -> Iterator[list[int]]:
    """A block in which calls of functions, and of the methods of variables, are counted."""
    count = [0]

    def see(frame: Any, event: str, arg: Any) -> None:
        count[0] += event in ("call", "c_call")

    def counted_hash(self: Var) -> int:
        count[0] += 1
        return object.__hash__(self)

    def counted_eq(self: Var, other: object) -> Any:
        count[0] += 1
        return self is other

    Var.__hash__, Var.__eq__ = counted_hash, counted_eq  # type: ignore[method-assign]
    sys.setprofile(see)
    try:
        yield count
    finally:
        sys.setprofile(None)
        del Var.__hash__, Var.__eq__


def ratio(prepare: Callable[[int], Callable[[], Any]], small: int = SMALL) -> float:
    """How many times as much is done for a program ``TIMES`` as large."""
    counts = []
    gc.disable()  # what becomes of objects that went before is not counted
    try:
        for size in (small, small, TIMES * small):  # the first time fills caches of shapes and names
            pullback.clear_caches()
            run = prepare(size)
            with counting() as count:
                run()
            counts.append(count[0])
    finally:
        gc.enable()
    return counts[2] / counts[1]


def chain(n: int) -> tuple[Callable[..., Any], list[Any]]:
    def f(x: Any) -> Any:
        for _ in range(n):
            x = jnp.sin(x) * 2.5
        return x

    return f, [1.0]


def wide(n: int) -> tuple[Callable[..., Any], list[Any]]:
    return lambda *xs: sum(jnp.sin(x) * 2.5 for x in xs), [1.0] * n


def many_results(n: int) -> tuple[Callable[..., Any], list[Any]]:
    return lambda *xs: [jnp.sin(x) * 2.5 for x in xs], [1.0] * n


def many_uses(n: int) -> tuple[Callable[..., Any], list[Any]]:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return sum(y * float(i) for i in range(n))

    return f, [1.0]


def many_constants(n: int) -> tuple[Callable[..., Any], list[Any]]:
    consts = [jnp.arange(100.0) + i for i in range(n)]
    return lambda x: sum(x * jnp.sin(c * x) for c in consts).sum(), [1.0]


SHAPES = [chain, wide, many_results, many_uses, many_constants]


def staged(shape: Any, n: int) -> ClosedJaxpr:
    f, args = shape(n)
    return make_jaxpr(f)(*args)


def both(shape: Any, n: int) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """Values and tangents, and which inputs and results are tangents."""
    closed = staged(shape, n)
    program, _ = jvp_jaxpr(closed, [True] * len(closed.in_avals))
    unknown = [i >= len(closed.in_avals) for i in range(len(program.in_avals))]
    return program, unknown, [i >= len(closed.out_avals) for i in range(len(program.out_avals))]


def of_program(transform: Callable[[ClosedJaxpr], Any]) -> Any:
    def prepare(shape: Any, n: int) -> Callable[[], Any]:
        closed = staged(shape, n)
        return lambda: transform(closed)

    return prepare


def hoisted(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose constants are inputs."""
    return Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)


def of_cut(policy: Any) -> Any:
    def prepare(shape: Any, n: int) -> Callable[[], Any]:
        program, unknown, forced = both(shape, n)
        return lambda: remat_partial_eval(program, unknown, forced, policy)

    return prepare


def partially(shape: Any, n: int) -> Callable[[], Any]:
    program, unknown, forced = both(shape, n)
    return lambda: partial_eval_jaxpr(program, unknown, forced)


def transposed(shape: Any, n: int) -> Callable[[], Any]:
    closed = staged(shape, n)
    inputs = len(closed.in_avals)
    linear = linearize_jaxpr(closed, [True] * inputs).linear
    count = len(linear.in_avals)
    return lambda: transpose_jaxpr(linear, [i >= count - inputs for i in range(count)])


def gradient(wrap: Callable[[Any], Any]) -> Any:
    def prepare(shape: Any, n: int) -> Callable[[], Any]:
        f, args = shape(n)
        g = wrap(f)

        def total(*xs: Any) -> Any:
            out = g(*xs)
            return sum(out) if isinstance(out, list) else out

        return lambda: make_jaxpr(grad(total, tuple(range(len(args)))))(*args)

    return prepare


PASSES: dict[str, Any] = {
    "trace": lambda shape, n: lambda: staged(shape, n),
    "check": of_program(check_jaxpr),
    "print": of_program(str),
    "dce": of_program(lambda closed: dce_closed_jaxpr(closed, [True] * len(closed.out_avals))),
    "jvp": of_program(lambda closed: jvp_jaxpr(closed, [True] * len(closed.in_avals))),
    "batch": of_program(lambda closed: batch_jaxpr(closed, MappedAxis(None, 3), [0] * len(closed.in_avals))),
    "lower": of_program(lambda closed: Lowered(closed, "f", default_device()).module.text()),
    "halves": of_program(lambda closed: halves(closed.jaxpr)),
    "intern": of_program(lambda closed: deduplicated(ClosedJaxpr(hoisted(closed.jaxpr)))),
    "partial evaluation": partially,
    "transpose": transposed,
    "cut": of_cut(None),
    "cut, dots": of_cut(dots_saveable),
    "cut, everything": of_cut(everything_saveable),
    "grad(jit)": gradient(jit),
    "grad(checkpoint)": gradient(checkpoint),
    "grad(checkpoint, dots)": gradient(lambda f: checkpoint(jit(f), policy=dots_saveable)),
    "saved residuals": lambda shape, n: (
        lambda: pullback.ad_checkpoint.saved_residuals(
            lambda *xs: jnp.sum(jnp.stack(pullback.tree.leaves(shape(n)[0](*xs)))), *shape(n)[1]
        )
    ),
    "eager grad": lambda shape, n: (
        lambda: grad(lambda *xs: sum(pullback.tree.leaves(shape(n)[0](*xs))), tuple(range(len(shape(n)[1]))))(
            *shape(n)[1]
        )
    ),
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", PASSES)
def test_costs_are_linear_in_the_program(name: str, shape: Any) -> None:
    assert ratio(lambda n: PASSES[name](shape, n)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trace", "partial evaluation", "cut", "lower", "halves"])
def test_costs_of_a_long_chain_are_linear(name: str) -> None:
    assert ratio(lambda n: PASSES[name](chain, n), 1750) <= MOST


# Programs within programs --------------------------------------------------------------------------------------------


def test_costs_of_a_loop_with_many_carries_and_residuals_are_linear() -> None:
    def prepare(n: int) -> Callable[[], Any]:
        def step(carry: Any, x: Any) -> Any:
            return [jnp.sin(c) * x for c in carry], [jnp.cos(c) for c in carry]

        def loss(carry: Any) -> Any:
            last, stacked = lax.scan(checkpoint(step, policy=dots_saveable), carry, jnp.arange(3.0))
            return sum(last) + sum(jnp.sum(y) for y in stacked)

        return lambda: make_jaxpr(grad(loss))([1.0] * n)

    assert ratio(prepare, 20) <= MOST


def test_costs_of_a_branch_with_many_residuals_are_linear() -> None:
    def prepare(n: int) -> Callable[[], Any]:
        branches = [lambda xs: sum(map(jnp.sin, xs)), lambda xs: sum(jnp.sin(jnp.cos(x)) for x in xs)]
        return lambda: make_jaxpr(grad(lambda xs: lax.switch(0, branches, xs) + lax.cond(xs[0] > 0, *branches, xs)))(
            [1.0] * n
        )

    assert ratio(prepare, 20) <= MOST


def nested(wrap: Callable[[Any], Any]) -> Callable[[int], Callable[..., Any]]:
    def make(depth: int) -> Callable[..., Any]:
        f: Any = jnp.sin
        for _ in range(depth):
            f = wrap(lambda x, g=f: jnp.sin(g(x)) * 2.0)
        return f  # type: ignore[no-any-return]

    return make


NESTS = {
    "jit": jit,
    "checkpoint": checkpoint,
    "cond": lambda g: lambda x: lax.cond(x > 0, g, jnp.cos, x),
    "scan": lambda g: lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0],
    "while": lambda g: lambda x: lax.while_loop(lambda c: c < 1, g, x),
}
DEEP: dict[str, Any] = {
    "trace": lambda f, closed: lambda: make_jaxpr(f)(1.0),
    "check": lambda f, closed: lambda: check_jaxpr(closed),
    "lower": lambda f, closed: lambda: Lowered(closed, "f", default_device()).module.text(),
    "work": lambda f, closed: lambda: op_count(closed),
    "dce": lambda f, closed: lambda: dce_closed_jaxpr(closed, [True]),
}


@pytest.mark.parametrize("kind", NESTS)
@pytest.mark.parametrize("name", DEEP)
def test_costs_are_linear_in_the_depth(name: str, kind: str) -> None:
    def prepare(depth: int) -> Callable[[], Any]:
        f = nested(NESTS[kind])(depth)
        return DEEP[name](f, make_jaxpr(f)(1.0))  # type: ignore[no-any-return]

    assert ratio(prepare, 5) <= MOST


@pytest.mark.parametrize("name", ["trace", "check", "lower", "work", "dce", "intern", "halves", "vmap", "jvp"])
def test_a_program_that_is_used_twice_at_each_depth_is_worked_on_once(name: str) -> None:
    """As a tree the larger one has 2 ** 20 leaves."""
    passes: dict[str, Any] = {
        **DEEP,
        "intern": lambda f, closed: lambda: deduplicated(closed),
        "halves": lambda f, closed: lambda: halves(closed.jaxpr),
        "vmap": lambda f, closed: lambda: make_jaxpr(vmap(f))(jnp.ones(2)),
        "jvp": lambda f, closed: lambda: jvp_jaxpr(closed, [True]),
    }

    def prepare(depth: int) -> Callable[[], Any]:
        f: Any = jnp.sin
        for _ in range(depth):
            f = jit(lambda x, g=f: g(g(x)))
        return passes[name](f, make_jaxpr(f)(1.0))  # type: ignore[no-any-return]

    assert ratio(prepare, 5) <= 2 * MOST  # a tree would take 2 ** 15 times as long
