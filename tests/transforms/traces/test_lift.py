"""A transformation that is new to every operation that holds programs: pairs of values, through the same program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import checkpoint, grad, hessian, jit, lax, make_jaxpr, vmap
from pullback.core.array import Array, typeof
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun, subjaxprs
from pullback.core.trace import RelayTrace, Tracer, state
from pullback.core.types import ShapedArray
from pullback.derivatives import laplacian
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.inlining import programs_in_step
from pullback.transforms.traces.lift import Forward, feed, lifted
from pullback.transforms.traces.stage import stage_flat
from tests.helpers import largest

# The transformation, all of it ---------------------------------------------------------------------------------------


class Pair(Tracer):
    """A value, and another one that goes the same way."""

    def __init__(self, trace: Any, first: Any, second: Any) -> None:
        super().__init__(trace, typeof(first))
        self.first, self.second = first, second


class Pairs(Forward):
    """Pairs of values; a mark says whether there is a second one."""

    nothing = False

    def marks(self, xs: Sequence[Any]) -> tuple[bool, ...]:
        return tuple([y is not None for _, y in xs])

    def extras(self, xs: Sequence[Any]) -> list[Any]:
        return [y for _, y in xs if y is not None]

    def made(self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[bool]) -> list[Any]:
        return [(x, next(extras) if m else None) for x, m in zip(values, marks, strict=True)]

    def joined(self, marks: Sequence[bool]) -> bool:
        return any(marks)

    def filled(self, x: Any, mark: bool) -> Any:
        return (x[0], x[0]) if mark and x[1] is None else x

    def program(self, closed: ClosedJaxpr, marks: Sequence[bool], forced: Sequence[bool]) -> tuple[ClosedJaxpr, Any]:
        return paired(closed, tuple(marks), tuple(forced))


@cached_by_jaxpr
def paired(closed: ClosedJaxpr, marks: Sequence[bool], forced: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    found: list[Any] = []

    def run(*values: Any) -> list[Any]:
        second = iter(values[len(marks) :])
        operands = [(x, next(second) if m else None) for x, m in zip(values, marks, strict=False)]
        outs = pairs_flat(jaxpr_as_fun(closed), operands)
        found[:] = [Pairs().filled(x, f) for x, f in zip(outs, forced, strict=True)]
        return [*[x for x, _ in found], *[y for _, y in found if y is not None]]

    avals: list[ShapedArray] = [a for a, m in zip(closed.in_avals, marks, strict=True) if m]
    jaxpr = stage_flat(closed, run, [*closed.in_avals, *avals])
    return jaxpr, [y is not None for _, y in found]


def pairs_flat(run: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> list[Any]:
    """The results of a function for two points at once; what does not depend on the point is computed once."""

    def relay(trace: RelayTrace, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        def both(x: Any) -> Any:
            return (x.first, x.second) if isinstance(x, Pair) and x._trace is trace else (x, None)

        given = list(map(both, args))
        if all(y is None for _, y in given):
            return trace.parent.process(primitive, args, params)
        outer, state.trace = state.trace, trace.parent
        try:
            if feed.of(primitive) is not None:
                outs = lifted(primitive, Pairs(), given, params)
            else:
                first = primitive.bind(*[x for x, _ in given], **params)
                second = primitive.bind(*[x if y is None else y for x, y in given], **params)
                outs = list(zip(first, second, strict=True)) if primitive.multiple_results else [(first, second)]
        finally:
            state.trace = outer
        tracers = [x if y is None else Pair(trace, x, y) for x, y in outs]
        return tracers if primitive.multiple_results else tracers[0]

    trace = RelayTrace(state.trace, relay, run, "pairs")
    trace.eager = trace.quick = False
    results = trace.run(run, *[x if y is None else Pair(trace, x, y) for x, y in operands])
    return [(x.first, x.second) if isinstance(x, Pair) else (x, None) for x in results]


# Operations that hold programs ---------------------------------------------------------------------------------------


def scanned(x: Any, y: Any) -> Any:
    """Of the carry the last value comes to depend on the first after two steps."""

    def step(carry: Any, row: Any) -> Any:
        a, b, c = carry
        return (jnp.sin(a * y), b + a, c + b), (a * row, row)

    carry, (products, rows) = lax.scan(step, (x, 0.5, 2.0), jnp.arange(4.0))
    return carry, products, rows


def looped(x: Any, y: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1]) * y, c[1]), (0, x, 1.0))


def nested(x: Any, y: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return lax.scan(lambda d, r: (d * jnp.cos(r * y), d), c, c + jnp.arange(2.0))[0]

    return lax.fori_loop(0, 3, step, x)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "scan": scanned,
    "scan of rows": lambda x, y: lax.scan(lambda c, r: (c + r * y, r * c), 1.0, jnp.stack([x, y, x])),
    "while": looped,
    "cond": lambda x, y: jit(lambda p: lax.cond(p, lambda: (x, 2.0), lambda: (3.0, y)))(True),
    "switch": lambda x, y: jit(lambda i: lax.switch(i, [lambda v: v * y, jnp.cos, lambda v: 1.0], x))(1),
    "jit": lambda x, y: jit(lambda x, y: (x * y, 2.0))(x, y),
    "checkpoint": lambda x, y: jit(checkpoint(lambda x: jnp.sin(jnp.sin(x) * y)))(x),
    "nested": nested,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_new_transformation_needs_no_rule_of_any_operation(name: str, compiled: bool) -> None:
    f = PROGRAMS[name]
    flat = lambda *xs: _leaves(f(*xs))
    first, second, y = jnp.float32(0.3), jnp.float32(-0.8), jnp.float32(1.5)
    closed = make_jaxpr(f)(first, y)
    run = jaxpr_as_fun(closed) if compiled else flat
    found = pairs_flat(run, [(first, second), (y, None)])
    for (a, b), wanted_a, wanted_b in zip(found, flat(first, y), flat(second, y), strict=True):
        assert np.allclose(a, wanted_a)
        assert np.allclose(a if b is None else b, wanted_b)


def _leaves(x: Any) -> list[Any]:
    return [y for z in x for y in _leaves(z)] if isinstance(x, (tuple, list)) else [x]


def test_what_does_not_depend_on_a_point_is_carried_once() -> None:
    """A carry is doubled only if it comes to depend on the point."""

    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: ((c[0] * x, c[1] + 1), None), (1.0, 0.0), None, length=3)[0]

    closed = make_jaxpr(lambda x, y: [z for pair in pairs_flat(f, [(x, y)]) for z in pair if z is not None])(1.0, 2.0)
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "scan"]
    (step,) = subjaxprs(eqn)
    assert len(step.outvars) == 3


def test_the_programs_of_loops_and_choices_are_told_with_what_changes_in_them() -> None:
    y = jnp.ones(2)
    programs = {
        "scan": lambda x: lax.scan(lambda c, r: (c * y.sum() + x, c), x, jnp.arange(3.0)),
        "while": lambda x: lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1, c[1] * x, c[2]), (0.0, x, x)),
        "cond": lambda x: lax.cond(x > 0, lambda: x, lambda: 2 * x),
        "jit": lambda x: jit(jnp.sin)(x),
    }
    found = {}
    for name, f in programs.items():
        (eqn,) = [e for e in make_jaxpr(f)(1.0).eqns if e.primitive.name == name]
        found[name] = [(first, changing) for _, first, changing in programs_in_step(eqn.primitive, eqn.params)]
        for closed, first, _ in programs_in_step(eqn.primitive, eqn.params):
            assert closed.in_avals[0].shape == eqn.invars[first].aval.shape
    assert found == {
        "scan": [(0, range(2, 3))],
        "while": [(2, range(2, 4))],
        "cond": [(1, range(0)), (1, range(0))],
        "jit": [],
    }


# Laplacians ----------------------------------------------------------------------------------------------------------


def rows_of(x: Any) -> Any:
    """Elements of all rows go their own way, step by step."""
    columns = lax.scan(lambda c, row: (c, jnp.sin(row) * row), 0.0, jnp.moveaxis(jnp.sin(x), 1, 0))[1]
    return (columns**2).sum()


def carried(x: Any) -> Any:
    return (lax.scan(lambda c, s: (jnp.sin(c) * s, None), jnp.cos(x), jnp.arange(1.0, 4.0))[0] ** 2).sum()


def counted(x: Any) -> Any:
    _, y = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) + c[1]), (0, jnp.cos(x)))
    return (y**2).sum()


LOOPS = {"rows": rows_of, "carry": carried, "while": counted}


@pytest.mark.parametrize("name", LOOPS)
def test_laplacians_of_loops_keep_blocks(name: str) -> None:
    f = LOOPS[name]
    x = jnp.arange(6.0).reshape(3, 2) / 7
    wanted = jnp.trace(hessian(lambda v: f(v.reshape(3, 2)))(x.ravel()))
    assert np.allclose(laplacian(f)(x), wanted, rtol=1e-4)
    assert np.allclose(jit(laplacian(f))(x), wanted, rtol=1e-4)
    weights = jnp.arange(1.0, 7.0).reshape(3, 2)
    weighted = jnp.diag(hessian(lambda v: f(v.reshape(3, 2)))(x.ravel())) @ weights.ravel()
    for run in (laplacian(f, weights=weights), jit(laplacian(f, weights=weights))):
        assert np.allclose(run(x), weighted, rtol=1e-4)
    wide = make_jaxpr(laplacian(f))(jnp.ones((64, 3)))
    assert largest(wide.jaxpr) <= 3 * 576


def test_a_loop_of_which_the_condition_alone_depends_on_the_point_has_no_derivatives() -> None:
    f = lambda x: lax.while_loop(lambda c: c < x.sum(), lambda c: c + 1, 0.0)
    x = jnp.array([1.5, 2.0])
    for g in (f, jit(f)):
        assert float(laplacian(g, weights=x)(x)) == 0
        assert (grad(g)(x) == 0).all()


def test_gradients_and_maps_of_loops_agree_with_loops_in_python() -> None:
    def in_python(x: Any) -> Any:
        for i in range(3):
            x = jnp.sin(x) * (i + 1)
        return x

    def f(x: Any) -> Any:
        return lax.scan(lambda c, s: (jnp.sin(c) * s, None), x, jnp.arange(1.0, 4.0))[0]

    points = jnp.linspace(-1, 1, 5)
    assert isinstance(points, Array)
    assert np.allclose(vmap(grad(f))(points), vmap(grad(in_python))(points), rtol=1e-5)
