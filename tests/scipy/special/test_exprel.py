"""Special functions against sums in many digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest

import pullback
import pullback.numpy as pnp
from pullback.scipy import special

POINTS = [0.0, 1e-300, 1e-16, 1e-8, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.9, 4.1, 6.0, 8.0, 12.0, 13.9, 20.0]


def moment(order: int, x: float) -> float:
    """The derivative of (exp(x) - 1) / x: the sum of x**k / k! / (order + k + 1), in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        total, term, k = Decimal(0), Decimal(1), 0
        while k <= abs(x) or abs(term) > Decimal(10) ** -58:
            total += term / (order + k + 1)
            k += 1
            term = term * Decimal(x) / k
        return float(total)


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("compiled", [False, True])
def test_exprel_and_its_derivatives_at_and_near_zero(order: int, compiled: bool) -> None:
    f = special.exprel
    for _ in range(order):
        f = pullback.grad(f)
    f = pullback.vmap(f)
    points = [*POINTS, *(-x for x in POINTS)]
    with pullback.enable_x64(True):
        got = (pullback.jit(f) if compiled else f)(pnp.array(points))
    for x, value in zip(points, got, strict=True):
        assert float(value) == pytest.approx(moment(order, x), rel=2e-15, abs=0)


def test_exprel_at_the_ends() -> None:
    ends = pnp.array([float("inf"), -float("inf"), float("nan")])
    for f in (special.exprel, pullback.vmap(pullback.grad(special.exprel))):
        assert str(f(ends)) == str(pullback.jit(f)(ends)) == "[inf  0. nan]"
