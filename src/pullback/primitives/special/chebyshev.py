"""Polynomial approximations of functions of one variable, from values that SciPy computes on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.primitives.declare import host_fused
from pullback.primitives.formulas import formula


@lru_cache
def power_coefficients(function: Callable[[Any], Any], low: float, high: float, count: int) -> tuple[float, ...]:
    """Return the coefficients of a polynomial that approximates a smooth ``function`` between ``low`` and ``high``.

    The polynomial interpolates the function at ``count`` Chebyshev points. Its coefficients are ordered from the
    highest power of x to the constant. Evaluating it may lose some digits; enough remain for results of single
    precision.
    """
    found = np.polynomial.Chebyshev.interpolate(function, count - 1, [low, high]).convert(kind=np.polynomial.Polynomial)
    return tuple(map(float, found.coef[::-1]))


def chebyshev_sum(terms: Sequence[float], t: Any) -> Any:
    """Evaluate a Chebyshev series at ``t``, from -1 to 1, by Clenshaw's recurrence (DLMF 3.11.29)."""
    return _sum(t, terms=terms)


def clenshaw(t: Any, terms: Sequence[float]) -> Any:
    """Evaluate a Chebyshev series at ``t``, an array or what formulas compute with, by Clenshaw's recurrence."""
    twice = t * 2
    last, before = twice * terms[-1] + terms[-2], terms[-1]
    for term in terms[-3:0:-1]:
        last, before = twice * last - before + term, last
    return t * last - before + terms[0]


_sum = host_fused("chebyshev_sum", host=clenshaw, otherwise=formula(clenshaw))
