"""Functions of one variable as sums of Chebyshev polynomials, from values that SciPy computes on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.primitives.elementwise import add, mul, sub


@lru_cache
def coefficients(function: Callable[[Any], Any], count: int) -> tuple[float, ...]:
    """The coefficients of the polynomial that equals a smooth function at ``count`` Chebyshev points of -1 to 1."""
    return tuple(map(float, np.polynomial.chebyshev.chebinterpolate(function, count - 1)))


def chebyshev_sum(terms: tuple[float, ...], t: Any) -> Any:
    """The sum of Chebyshev polynomials at ``t`` in -1 to 1, by Clenshaw's recurrence (DLMF 3.11.29)."""
    twice = mul(t, 2)
    before: Any = None
    last: Any = terms[-1]
    for term in terms[-2:0:-1]:
        new = add(mul(twice, last), term)
        if before is not None:
            new = sub(new, before)
        before, last = last, new
    out = add(mul(t, last), terms[0])
    return out if before is None else sub(out, before)
