"""Arithmetic of Taylor coefficients, of which rules for Taylor mode are made.

Coefficients may be ``ZERO``: what is not there costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.core.taylor_rules import Series
from pullback.core.types import ZERO
from pullback.primitives.sums import add_any

Product = Callable[[Any, Any], Any]


def total(terms: Iterable[Any]) -> Any:
    """The sum of coefficients of one shape; ``ZERO`` if all are."""
    out: Any = ZERO
    for term in terms:
        if term is not ZERO:
            out = term if out is ZERO else add_any(out, term)
    return out


def convolution(product: Product, x: Series, y: Series, k: int, first: int = 0, last: int = 0) -> Any:
    """The coefficient of order k of a product, from the term with ``x[first]`` to that with ``y[last]``."""
    pairs = ((x[j], y[k - j]) for j in range(first, k + 1 - last))
    return total(product(a, b) for a, b in pairs if a is not ZERO and b is not ZERO)


def convolved_square(product: Product, x: Series, k: int, first: int = 0) -> Any:
    """The coefficient of order k of a square, without the terms of orders below ``first``: each product once."""
    half = convolution(product, x, x, k, first, k // 2 + 1)
    twice = ZERO if half is ZERO else product(2, half)
    middle = ZERO if k % 2 or k // 2 < first or x[k // 2] is ZERO else product(x[k // 2], x[k // 2])
    return total([twice, middle])


def integral(product: Product, slope: Series, x: Series, k: int) -> Any:
    """The coefficient of order k, at least 1, of y with y' = slope x': the sum of ``j x[j] slope[k - j]``, over k."""
    terms = []
    for j in range(1, k + 1):
        if x[j] is not ZERO and slope[k - j] is not ZERO:
            term = product(x[j], slope[k - j])
            terms.append(term if j == k else product(j / k, term))
    return total(terms)
