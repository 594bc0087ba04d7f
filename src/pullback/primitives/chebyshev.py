"""Polynomials that approximate functions of one variable, from values that SciPy computes on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache
def power_coefficients(function: Callable[[Any], Any], low: float, high: float, count: int) -> tuple[float, ...]:
    """The polynomial that equals a smooth function at ``count`` Chebyshev points from ``low`` to ``high``.

    Returns:
      The coefficients of the powers of the variable, that of the highest power first. Where they have both signs and
      ``low`` and ``high`` are far from 0, some digits are lost: enough are left for results of single precision.
    """
    found = np.polynomial.Chebyshev.interpolate(function, count - 1, [low, high]).convert(kind=np.polynomial.Polynomial)
    return tuple(map(float, found.coef[::-1]))
