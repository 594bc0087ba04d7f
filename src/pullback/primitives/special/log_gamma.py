"""The lowering rule of ``lgamma``, the logarithm of the absolute value of the gamma function.

In double precision it is the compiler's function, corrected near the zeros 1 and 2. In single precision it is a
formula of its own, which has one quotient instead of nine and is right to more digits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.primitives import elementwise as ops
from pullback.primitives.declare import real_lowering

from pullback.primitives.formulas import (  # isort: skip
    floor, formula, lifted, log, log1p, minimum, polynomial, round, square, where,
)  # fmt: skip

if TYPE_CHECKING:
    from pullback.backends.hlo.builder import Builder, Value

_single = np.dtype(np.float32)
_EULER = 0.57721566490153286
clamp = lifted(ops.clamp_p.bind)


def _zeta_minus_one(k: int) -> float:
    """Return zeta(k) - 1, the sum of n^-k over n >= 2, by the Euler-Maclaurin formula."""
    n = 30
    tail = n ** (1 - k) / (k - 1) + n**-k / 2
    rising, factor = float(k), n ** (-k - 1)
    for j, bernoulli in ((1, 1 / 12), (3, -1 / 720), (5, 1 / 30240)):
        tail += bernoulli * rising * factor
        rising, factor = rising * (k + j) * (k + j + 1), factor / n**2
    return math.fsum([*(m**-k for m in range(2, n)), tail])


def lgamma_after_two(w: Any, terms: int) -> Any:
    """Return ``log Γ(2 + w)`` for abs(w) up to 1/2, by a series with this number of ``terms``.

    The series is Abramowitz and Stegun's formula 6.1.33: (1 - gamma) w plus the sum of (-1)^k (zeta(k) - 1) w^k / k
    over k >= 2.
    """
    orders = range(terms, 1, -1)
    return w * polynomial(w, [*((-1) ** k * _zeta_minus_one(k) / k for k in orders), 1 - _EULER])


def _near_zeros_in_double(out: Any, x: Any) -> Any:
    """Correct ``out``, the compiler's lgamma(x), for x from 1/2 to 9/2: it is inaccurate near the zeros 1 and 2.

    There x is 1 + w, 2 + w, 3 + w or 4 + w, with abs(w) up to 1/2. The result is the series for 2 + w, plus or minus
    the logarithm of the factors between Γ(2 + w) and Γ(x).
    """
    nearest = clamp(1, round(x), 4)
    w = x - nearest
    further = where(nearest == 3, w + 1, (w + 2) * (w + 3) - 1)
    logarithm = log1p(where(nearest == 1, w, where(nearest == 2, 0, further)))
    near = lgamma_after_two(w, 27) + where(nearest == 1, -logarithm, logarithm)
    return where((x >= 0.5) & (x <= 4.5), near, out)


_SINC = (
    -0.00223717854047815, 0.026117437584010375, -0.19074789527567523, 0.8117421954812729, -1.6449340619280366, 1.0,
)  # fmt: skip
"""The coefficients of a polynomial in u**2, the highest power first: sin(pi u) / (pi u) at 6 of Chebyshev's points for
u**2 between 0 and 1/4; the error is 3e-11."""


def _above_a_half(x: Any) -> Any:
    """Return log Γ(x) for x from 1/2: by the series of :func:`lgamma_after_two` up to 9/2, and beyond by Stirling's.

    The logarithm is that of x beyond and near 1, and elsewhere of the factors between Γ(2 + w) and Γ(x).
    """
    is_large, nearest, below = x > 4.5, clamp(1, round(x), 4), x - 1
    factors = where(nearest == 2, 1, where(nearest == 3, below, below * (x - 2)))
    logarithm = log(where(is_large | (nearest == 1), x, factors))
    near = lgamma_after_two(x - nearest, 14) + where(nearest == 1, -logarithm, logarithm)
    inverse = 1 / x
    rest = inverse * polynomial(square(inverse), [1 / 1260, -1 / 360, 1 / 12])
    far = (x - 0.5) * (logarithm - 1) + (rest + (math.log(2 * math.pi) - 1) / 2)
    return where(is_large, far, near)


def _in_single(x: Any) -> Any:
    """Below 1/2 this is the reflection formula, Γ(x) Γ(1 - x) = pi / sin(pi x).

    Poles and minus infinity have no part after the point that is above zero.
    """
    is_below = x < 0.5
    value = _above_a_half(where(is_below, 1 - x, x))
    size = abs(x)
    part = size - floor(size)
    part = minimum(part, 1 - part)
    sine = part * polynomial(square(part), _SINC)
    return where(is_below, where(part > 0, -log(sine) - value, math.inf), value)


_of_singles, _of_doubles = formula(_in_single), formula(_near_zeros_in_double)


@real_lowering(ops.lgamma_p)
def _lgamma_lowering(hlo: Builder, x: Value) -> Value:
    if x.dtype == np.float64:
        return hlo.inline(_of_doubles, hlo.op("chlo.lgamma", [x], x.shape, x.dtype), x)
    return hlo.convert(hlo.inline(_of_singles, hlo.convert(x, _single)), hlo.result.dtype)
