"""Integrals of smooth functions of elements, by Gauss and Legendre's rule, for formulas that the compiler is given."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl
from pullback.primitives import shapes
from pullback.primitives.elementwise import mul
from pullback.primitives.reductions import reduce_sum

NODES = 48


def integral(integrand: Callable[..., Any], end: Any, *operands: Any) -> Any:
    """The integral over y from 0 to ``end`` of ``integrand(y, *operands)``, a sum along an axis that is fused."""
    nodes, weights = rule()
    last = len(end.shape)
    wide = [shapes.expand_dims(x, (last,)) for x in (end, *operands)]
    values = integrand(mul(wide[0], nodes), *wide[1:])
    return mul(end, reduce_sum(mul(values, weights), (last,)))


@lru_cache(maxsize=1)
def rule() -> tuple[ArrayImpl, ArrayImpl]:
    """The nodes and weights from 0 to 1, right to the last place.

    NumPy's are eigenvalues, right to 1e-16; an integrand that falls to exp(-38) is at the first node wrong by a hundred
    times that. They are refined by Newton's method, in decimals.
    """
    nodes, weights = [], []
    with localcontext() as context:
        context.prec = 32
        for start in np.polynomial.legendre.leggauss(NODES)[0]:
            t = Decimal(float(start))
            for _ in range(2):
                value, slope = _legendre(t)
                t -= value / slope
            _, slope = _legendre(t)
            nodes.append(float((1 + t) / 2))
            weights.append(float(1 / ((1 - t * t) * slope * slope)))
    return ArrayImpl(np.array(nodes)), ArrayImpl(np.array(weights))


def _legendre(t: Decimal) -> tuple[Decimal, Decimal]:
    """Legendre's polynomial of degree ``NODES`` and its derivative."""
    before, value = Decimal(1), t
    for n in range(2, NODES + 1):
        before, value = value, ((2 * n - 1) * t * value - (n - 1) * before) / n
    return value, NODES * (t * value - before) / (t * t - 1)
