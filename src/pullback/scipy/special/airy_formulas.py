"""Airy functions of real numbers: Taylor polynomials about points of a grid, and asymptotic expansions beyond.

The coefficients follow from the equation ``w'' = x w`` (DLMF 9.2.1) and the values at zero, in decimals of 60 digits,
so that all of them are right to the last bit. The expansions are DLMF 9.7.5 to 9.7.12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import ArrayImpl
from pullback.primitives import elementwise as ops
from pullback.primitives.formulas import cos, exp, formula, lifted, polynomial, round, sin, sqrt, where

_AT_ZERO = (
    Decimal("0.3550280538878172392600631860041831763979791741991772405833"),
    Decimal("-0.25881940379280679840518356018920396347909113835493458221"),
)
"""Ai(0) = 1 / (3**(2/3) Γ(2/3)) and Ai'(0) = -1 / (3**(1/3) Γ(1/3)) (DLMF 9.2.3)."""

_END = 12
"""Where the expansions begin."""
_PER_UNIT = 4
"""The number of points of the grid on each interval of length 1."""
_TERMS = 15
_EXPANSION = 24
_ROOT_OF_PI = math.sqrt(math.pi)


def _taylor(c: Decimal, value: Decimal, slope: Decimal, count: int) -> list[Decimal]:
    """Return the Taylor coefficients at ``c`` of the solution of ``w'' = x w`` with a given value and slope there."""
    terms = [value, slope, c * value / 2]
    for k in range(1, count - 2):
        terms.append((c * terms[k] + terms[k - 1]) / ((k + 2) * (k + 1)))
    return terms


@lru_cache
def _table(second: bool) -> np.ndarray[Any, Any]:
    """Return the Taylor coefficients of Ai, or of Bi if ``second``: a row for each power, a column for each point."""
    with localcontext() as context:
        context.prec = 60
        value, slope = _AT_ZERO
        if second:
            value, slope = value * Decimal(3).sqrt(), -slope * Decimal(3).sqrt()
        step = Decimal(1) / _PER_UNIT
        columns: dict[int, list[Decimal]] = {}
        for sign in (1, -1):
            terms = _taylor(Decimal(0), value, slope, 44)
            columns[0] = terms
            for i in range(1, _END * _PER_UNIT + 1):
                h = sign * step
                here = sum(a * h**k for k, a in enumerate(terms))
                slope_here = sum(k * a * h ** (k - 1) for k, a in enumerate(terms) if k)
                terms = _taylor(h * i, Decimal(here), Decimal(slope_here), 44)
                columns[sign * i] = terms
        ordered = [columns[i] for i in sorted(columns)]
        return np.array([[float(a) for a in terms[:_TERMS]] for terms in ordered]).T.copy()


@lru_cache
def _expansion(slope: bool) -> tuple[float, ...]:
    """Return the coefficients u_k of the expansions of the functions, or v_k of their derivatives (DLMF 9.7.2)."""
    terms, u = [1.0], 1.0
    for k in range(1, _EXPANSION):
        u *= (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))
        terms.append(-(6 * k + 1) / (6 * k - 1) * u if slope else u)
    return tuple(terms)


def _halves(x: Any) -> tuple[Any, Any]:
    """Split a number into two of 26 bits, whose products are exact (Dekker 1971)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the product of two numbers, and its rounding error."""
    product = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, ((a * c - product) + a * d + b * c) + b * d


def _zeta(x: Any) -> tuple[Any, Any]:
    """Return ``2/3 x**(3/2)`` for positive x, and its rounding error: large exponents and phases need both."""
    root = sqrt(x)
    square, rest = _product(root, root)
    low = ((x - square) - rest) / (root * 2)
    product, error = _product(x, root)
    rest = (error + x * low) / 1.5
    zeta = product / 1.5
    back, lost = _product(zeta, zeta * 0 + 1.5)
    return zeta, ((product - back) - lost) / 1.5 + rest


def _near(x: Any, second: bool, slope: bool) -> Any:
    """Evaluate a Taylor polynomial, or its derivative, about the nearest point of the grid."""
    table = _table(second)
    nearest = round(x * _PER_UNIT)
    h = x - nearest / _PER_UNIT
    index = lifted(ops.convert_element_type)(nearest + _END * _PER_UNIT, np.dtype(np.int32))
    rows = [k * table[k] for k in range(1, _TERMS)] if slope else list(table)

    def at(row: Any) -> Any:
        return lifted(lambda i: pnp.take(ArrayImpl(row), i, mode="clip"))(index)

    total = at(rows[-1])
    for row in rows[-2::-1]:
        total = total * h + at(row)
    return total


def _sums(z: Any, slope: bool) -> tuple[Any, Any]:
    """Return the sums of even and of odd powers of ``z`` in an expansion, with alternating signs."""
    terms = _expansion(slope)
    signed = [[a * (-1) ** k for k, a in enumerate(terms[i::2])] for i in (0, 1)]
    squared = z * z
    even, odd = (polynomial(squared, part[::-1]) for part in signed)
    return even, odd * z


def _falling(x: Any, second: bool, slope: bool, scaled: bool) -> Any:
    """Evaluate the expansion for large positive ``x`` (DLMF 9.7.5 to 9.7.8)."""
    zeta, low = _zeta(x)
    terms = [a * (1 if second else (-1) ** k) for k, a in enumerate(_expansion(slope))]
    total = polynomial(1 / zeta, terms[::-1]) / (_ROOT_OF_PI if second else 2 * _ROOT_OF_PI)
    root = sqrt(sqrt(x))
    value = total * root if slope else total / root
    if not scaled:
        half = exp(zeta * (0.5 if second else -0.5))
        value = value * half * half * (1 + low if second else 1 - low)
    return -value if slope and not second else value


def _swinging(x: Any, second: bool, slope: bool) -> Any:
    """Evaluate the expansion at ``-x`` for large positive ``x`` (DLMF 9.7.9 to 9.7.12)."""
    zeta, low = _zeta(x)
    even, odd = _sums(1 / zeta, slope)
    cosine, sine = cos(zeta), sin(zeta)
    turned = cosine - low * sine, sine + low * cosine
    cosine, sine = (turned[0] + turned[1]) * math.sqrt(0.5), (turned[1] - turned[0]) * math.sqrt(0.5)
    if slope:
        value = cosine * even + sine * odd if second else sine * even - cosine * odd
        return value * sqrt(sqrt(x)) / _ROOT_OF_PI
    value = cosine * odd - sine * even if second else cosine * even + sine * odd
    return value / (sqrt(sqrt(x)) * _ROOT_OF_PI)


def _airy(x: Any, second: bool, slope: bool, scaled: bool) -> Any:
    size = abs(x)
    near = size <= _END
    beyond = where(near | (size == math.inf), 100, size)
    value = _near(where(near, x, 0), second, slope)
    if scaled:
        zeta, low = _zeta(where(near & (x > 0), x, 1))
        factor = exp(-zeta) * (1 - low) if second else exp(zeta) * (1 + low)
        value = where(x > 0, value * factor, value)
    value = where(near, value, where(x > 0, _falling(beyond, second, slope, scaled), _swinging(beyond, second, slope)))
    defined = size < math.inf  # as SciPy's, NaN at infinity
    if scaled and not second:
        defined = defined & (x >= 0)  # left of zero it is complex
    return where(defined, value, math.nan)


def airy(second: bool, slope: bool, scaled: bool = False) -> Callable[..., Any]:
    """Return the formula of Ai, or of Bi if ``second``, or of its derivative if ``slope``, for arrays of doubles.

    If ``scaled``, Ai is multiplied by ``exp(2/3 x**(3/2))``, and Bi by its reciprocal, for positive x.
    """
    return partial(_formula, second=second, slope=slope, scaled=scaled)


_formula = formula(_airy)
