"""Laws that collectives obey under ``vmap``, on random programs in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback import grad, jit, jvp, vjp, vmap
from tests.helpers import assert_close
from tests.primitives.collective_programs import Program, programs

pytestmark = pytest.mark.usefixtures("all_in_x64")

few = settings(max_examples=25)  # of those that compile


def over_all(p: Program) -> Any:
    """The program as a function of the stacked values."""
    return vmap(p, axis_name="i")


def total(p: Program) -> Any:
    """A number that depends on each element of the result in another way."""
    weights = p.point(seed=9)
    return lambda x: (weights * over_all(p)(x) ** 2).sum()


@given(programs())
def test_values_are_those_of_numpy(p: Program) -> None:
    x = p.point()
    expected = p.by_numpy(x)
    assert_close(over_all(p)(x), expected, 1e-12)
    assert_close(
        vmap(p, in_axes=2, out_axes=1, axis_name="i")(np.moveaxis(x, 0, 2)), np.moveaxis(expected, 0, 1), 1e-12
    )


@few
@given(programs())
def test_compiled_inside_and_outside(p: Program) -> None:
    x = p.point()
    expected = p.by_numpy(x)
    assert_close(jit(over_all(p))(x), expected, 1e-12)
    assert_close(vmap(jit(p), axis_name="i")(x), expected, 1e-12)


@few
@given(programs())
def test_derivatives_are_those_of_differences(p: Program) -> None:
    """Along a random direction; the transposed derivative has the same product with a random cotangent."""
    x, t, ct, h = p.point(), p.point(seed=1), p.point(seed=2), 1e-5
    value, tangent = jvp(over_all(p), (x,), (t,))
    assert_close(tangent, (p.by_numpy(x + h * t) - p.by_numpy(x - h * t)) / (2 * h), 1e-7)
    out, pull = vjp(over_all(p), x)
    assert_close(out, value, 1e-12)
    (back,) = pull(ct)
    assert_close(np.vdot(np.asarray(back), t), np.vdot(ct, np.asarray(tangent)), 1e-10)
    assert_close(jit(lambda x: vjp(over_all(p), x)[1](ct))(x)[0], back, 1e-10)


@given(programs(max_steps=4))
def test_second_derivatives(p: Program) -> None:
    """Forward over reverse and reverse over reverse give the same product with the Hessian, which is symmetric."""
    x, u, v, f = p.point(), p.point(seed=1), p.point(seed=2), total(p)
    forward = jvp(grad(f), (x,), (u,))[1]
    assert_close(grad(lambda x: (grad(f)(x) * u).sum())(x), forward, 1e-9)
    other = jvp(grad(f), (x,), (v,))[1]
    assert_close(np.vdot(np.asarray(forward), v), np.vdot(np.asarray(other), u), 1e-9)


@given(programs(), st.integers(0, 2), st.integers(0, 2))
def test_over_another_axis(p: Program, inside: int, outside: int) -> None:
    """Mapped along a second axis too, with the collective's axis inside or outside."""
    points = [p.point(seed=k) for k in range(3)]
    expected = np.stack([p.by_numpy(x) for x in points])
    assert_close(vmap(over_all(p), in_axes=outside)(np.stack(points, outside)), expected, 1e-12)
    mixed = np.stack(points, 1 + inside)  # (i, ...), with the second axis at ``inside`` of what one index has
    found = vmap(vmap(p, in_axes=inside), axis_name="i", out_axes=1)(mixed)
    assert_close(found, expected, 1e-12)
    gradients = vmap(grad(total(p)))(np.stack(points))
    assert_close(gradients, np.stack([np.asarray(grad(total(p))(x)) for x in points]), 1e-9)
