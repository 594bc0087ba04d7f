"""Laws that every program obeys under every transformation, on random programs in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core import tree
from pullback.core.array import as_array
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.jaxpr_check import check_jaxpr
from pullback.derivatives import jet
from tests.helpers import assert_close
from tests.random_programs import Program, programs, random_like

pytestmark = pytest.mark.usefixtures("all_in_x64")


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return sum(float(np.vdot(np.asarray(x), np.asarray(y))) for x, y in zip(xs, ys, strict=True))


def combine(a: float, xs: Sequence[Any], b: float, ys: Sequence[Any]) -> list[Any]:
    return [as_array(a * np.asarray(x) + b * np.asarray(y)) for x, y in zip(xs, ys, strict=True)]


def stacked(values: Sequence[Any], seed: int, size: int = 3) -> list[Any]:
    """Batches, along axis 0, of values like some others."""
    return random_like([np.zeros((size, *x.shape)) for x in values], seed)


def example(batch: Sequence[Any], i: int) -> list[Any]:
    return [as_array(np.asarray(x)[i]) for x in batch]


def stack(rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [as_array(np.stack([np.asarray(x) for x in column])) for column in zip(*rows, strict=True)]


@given(programs())
def test_jvp_is_linear_in_the_tangents(p: Program) -> None:
    args, u, v = p.arguments(), p.directions(1), p.directions(2)
    both = jvp(p, args, combine(2.0, u, -3.0, v))[1]
    assert_close(both, combine(2.0, jvp(p, args, u)[1], -3.0, jvp(p, args, v)[1]))


@given(programs())
def test_vjp_is_the_transpose_of_jvp(p: Program) -> None:
    args, v = p.arguments(), p.directions(1)
    out, jv = jvp(p, args, v)
    u = random_like(out, 2)
    out_again, pull = vjp(p, *args)
    assert_close(out_again, out)
    left, right = inner(u, jv), inner(pull(u), v)
    assert abs(left - right) <= 1e-9 * (1 + abs(left))


@given(programs())
def test_linearize_is_jvp(p: Program) -> None:
    args, v = p.arguments(), p.directions(1)
    out, f_jvp = linearize(p, *args)
    assert_close((out, f_jvp(*v)), jvp(p, args, v))


@given(programs())
def test_the_transpose_of_linearize_is_vjp(p: Program) -> None:
    args = p.arguments()
    out, f_jvp = linearize(p, *args)
    u = random_like(out, 2)
    assert_close(linear_transpose(f_jvp, *args)(u), vjp(p, *args)[1](u))


@given(programs())
def test_vmap_is_the_stack_of_examples(p: Program) -> None:
    batch = stacked(p.inputs, 3)
    assert_close(vmap(p)(*batch), stack([p(*example(batch, i)) for i in range(3)]))


@given(programs(), st.data())
def test_vmap_over_any_axes(p: Program, data: Any) -> None:
    axes = [data.draw(st.sampled_from([None, *range(-1, x.ndim + 1)])) for x in p.inputs]
    batch = stacked(p.inputs, 3)
    given = [
        as_array(x if a is None else np.moveaxis(np.asarray(b), 0, a))
        for x, b, a in zip(p.inputs, batch, axes, strict=True)
    ]
    got = vmap(p, in_axes=tuple(axes), axis_size=3)(*given)
    examples = [
        [as_array(x) if a is None else b for x, b, a in zip(p.inputs, example(batch, i), axes, strict=True)]
        for i in range(3)
    ]
    assert_close(got, stack([p(*xs) for xs in examples]))


@given(programs())
def test_vmap_in_chunks_is_vmap(p: Program) -> None:
    batch = stacked(p.inputs, 3)
    assert_close(vmap(p, chunk_size=2)(*batch), vmap(p)(*batch))


@given(programs())
def test_vmap_commutes_with_jvp(p: Program) -> None:
    batch, ts = stacked(p.inputs, 3), stacked(p.inputs, 4)
    outside = jvp(vmap(p), batch, ts)
    within = vmap(lambda xs, vs: jvp(p, xs, vs))(batch, ts)
    assert_close(outside, within)


@given(programs())
def test_vmap_commutes_with_grad(p: Program) -> None:
    batch = stacked(p.inputs, 3)
    argnums = tuple(range(len(p.inputs)))
    within = vmap(grad(p.scalar, argnums))(*batch)
    loop = [grad(p.scalar, argnums)(*example(batch, i)) for i in range(3)]
    assert_close(within, tuple(stack(loop)))


@given(programs())
def test_vmap_of_vmap_is_vmap_of_pairs(p: Program) -> None:
    batch = random_like([np.zeros((2, 3, *x.shape)) for x in p.inputs], 5)
    nested = vmap(vmap(p))(*batch)
    flat = vmap(p)(*[as_array(np.asarray(x).reshape(6, *x.shape[2:])) for x in batch])
    joined = [as_array(np.asarray(x).reshape(6, *x.shape[2:])) for x in nested]
    assert_close(joined, flat)


@given(programs())
def test_staging_changes_nothing(p: Program) -> None:
    args = p.arguments()
    closed = make_jaxpr(p)(*args)
    check_jaxpr(closed)
    assert_close(jaxpr_as_fun(closed)(*args), p(*args), 0)
    assert closed.out_avals == [x.aval for x in p(*args)]


@given(programs())
def test_grad_through_a_jaxpr_is_grad(p: Program) -> None:
    args = p.arguments()
    staged = jaxpr_as_fun(make_jaxpr(p.scalar)(*args))
    argnums = tuple(range(len(args)))
    expected = value_and_grad(p.scalar, argnums)(*args)
    assert_close(value_and_grad(lambda *xs: staged(*xs)[0], argnums)(*args), expected)
    closed = make_jaxpr(value_and_grad(p.scalar, argnums))(*args)
    check_jaxpr(closed)
    value, *gradient = jaxpr_as_fun(closed)(*args)
    assert_close((value, tuple(gradient)), expected)


@given(programs())
def test_the_staged_types_are_the_eager_ones(p: Program) -> None:
    args, ts = p.arguments(), p.directions(1)
    cases: list[tuple[Any, list[Any]]] = [
        (p, args),
        (vmap(p), stacked(args, 3)),
        (lambda *xs: jvp(p, xs, ts), args),
        (lambda *xs: vjp(p, *xs)[1](p(*xs)), args),
    ]
    for f, xs in cases:
        assert make_jaxpr(f)(*xs).out_avals == [x.aval for x in tree.leaves(f(*xs))]


@given(programs(max_instructions=6))
def test_jacfwd_is_jacrev(p: Program) -> None:
    args = p.arguments()
    argnums = tuple(range(len(args)))
    forward = jacfwd(p, argnums)(*args)
    assert_close(jacrev(p, argnums)(*args), forward)
    assert_close(jacrev(p, argnums, chunk_size=2)(*args), forward)
    assert_close(jacfwd(p, argnums, chunk_size=2)(*args), forward)


@given(programs(max_instructions=5))
def test_the_hessian_is_symmetric(p: Program) -> None:
    args = p.arguments()
    argnums = tuple(range(len(args)))
    h = hessian(p.scalar, argnums)(*args)
    for i, x in enumerate(args):
        for j, y in enumerate(args):
            block = np.asarray(h[i][j]).reshape(x.size, y.size)
            mirror = np.asarray(h[j][i]).reshape(y.size, x.size)
            np.testing.assert_allclose(block, mirror.T, rtol=1e-8, atol=1e-8)


@given(programs(max_instructions=5))
def test_all_orders_of_second_derivatives_agree(p: Program) -> None:
    args, v = p.arguments(), p.directions(1)
    argnums = tuple(range(len(args)))
    gradient = grad(p.scalar, argnums)
    forward_over_reverse = jvp(gradient, args, v)[1]
    reverse_over_reverse = vjp(gradient, *args)[1](tuple(v))
    reverse_over_forward = grad(lambda *xs: jvp(p.scalar, xs, v)[1], argnums)(*args)
    forward_over_forward = jvp(lambda *xs: jvp(p.scalar, xs, v)[1], args, v)[1]
    assert_close(reverse_over_reverse, forward_over_reverse, 1e-8)
    assert_close(reverse_over_forward, forward_over_reverse, 1e-8)
    assert abs(float(np.asarray(forward_over_forward)) - inner(forward_over_reverse, v)) < 1e-7


@given(programs())
def test_derivatives_agree_with_the_differences(p: Program) -> None:
    assume(not any(step.name == "stopped" for step in p.instructions))
    args, v = p.arguments(), p.directions(1)
    step = 1e-5
    ahead = p.scalar(*combine(1, args, step, v))
    behind = p.scalar(*combine(1, args, -step, v))
    slope = (float(np.asarray(ahead)) - float(np.asarray(behind))) / (2 * step)
    got = float(np.asarray(jvp(p.scalar, args, v)[1]))
    if abs(slope - got) > 1e-6 * (1 + abs(got)):  # There must be a kink within the step.
        here = float(np.asarray(p.scalar(*args)))
        sides = (float(np.asarray(ahead)) - here) / step, (here - float(np.asarray(behind))) / step
        assert abs(sides[0] - sides[1]) > 1e-4, (p, slope, got)


def test_the_sum_of_a_mapped_and_an_unmapped_term_of_a_derivative() -> None:
    v = jnp.array([1.0, 2.0, 3.0])

    def inner(x: Any, c: Any) -> Any:
        return jnp.sum(x * c) + jnp.sum(jnp.cumsum(x) ** 2)

    def mapped(x: Any) -> Any:
        return jnp.sum(vmap(lambda c: grad(inner)(x, c))(v)[:, 0])

    def looped(x: Any) -> Any:
        return sum(grad(inner)(x, c)[0] for c in v)

    x = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(grad(mapped)(x), grad(looped)(x))
    np.testing.assert_allclose(jvp(mapped, (x,), (x,))[1], jvp(looped, (x,), (x,))[1])


def coefficients(p: Program, order: int) -> tuple[list[Any], list[Any]]:
    """A point, and for each input its Taylor coefficients."""
    args = p.arguments()
    terms = zip(*[random_like(p.inputs, 10 + k) for k in range(order)], strict=True)
    return args, [list(cs) for cs in terms]


@given(programs())
def test_jet_is_jvp_of_jvp(p: Program) -> None:
    """Along x + t u + t² v."""
    args, series = coefficients(p, 2)
    along = lambda t: p(*[x + t * u + t * t * v for x, (u, v) in zip(args, series, strict=True)])
    slope = lambda t: jvp(along, (t,), (1.0,))[1]
    got = jet(p, args, series, factorial_scaled=False)
    halves = [c / 2 for c in jvp(slope, (0.0,), (1.0,))[1]]
    expected = p(*args), [list(cs) for cs in zip(slope(0.0), halves, strict=True)]
    assert_close(got, expected)


@given(programs())
def test_jet_of_order_one_is_jvp(p: Program) -> None:
    args, u = p.arguments(), p.directions(1)
    out, series = jet(p, args, [[t] for t in u])
    assert_close((out, [cs[0] for cs in series]), jvp(p, args, u))


@given(programs())
def test_jet_commutes_with_vmap_and_staging(p: Program) -> None:
    batch = stacked(p.inputs, 3)
    series = [list(cs) for cs in zip(*[stacked(p.inputs, 4 + k) for k in range(3)], strict=True)]
    within = vmap(lambda xs, cs: jet(p, xs, cs))(batch, series)
    assert_close(jet(vmap(p), batch, series), within)
    args, terms = coefficients(p, 3)
    f = lambda xs, cs: jet(p, xs, cs)
    closed = make_jaxpr(f)(args, terms)
    check_jaxpr(closed)
    assert_close(jaxpr_as_fun(closed)(*tree.leaves((args, terms))), tree.leaves(f(args, terms)))
    assert_close(jet(jaxpr_as_fun(make_jaxpr(p)(*args)), args, terms), f(args, terms))


@given(programs(max_instructions=6))
def test_the_derivative_of_a_jet_is_the_jet_of_a_derivative(p: Program) -> None:
    """By the point, along a fixed direction, in both modes."""
    args, series = coefficients(p, 2)
    u = p.directions(1)
    outside = jvp(lambda *xs: jet(p, xs, series), args, u)[1]
    within = jet(lambda *xs: jvp(p, xs, u)[1], args, series)
    assert_close(outside, within)
    total = lambda *xs: sum(c.sum() for c in tree.leaves(jet(p, xs, series)[1]))
    forward = jvp(total, args, u)[1]
    backward = inner(vjp(total, *args)[1](jnp.ones_like(forward)), u)
    assert abs(float(forward) - backward) <= 1e-8 * (1 + abs(backward))
