"""Filters of orthogonal wavelets, computed by the factorisation of their spectra in fifty digits.

A filter of N vanishing moments has the spectrum ``cos(w/2)^2N P(sin^2(w/2))``, with P the first N terms of the series
of ``(1 - y)^-N`` (Daubechies 1988, "Orthonormal bases of compactly supported wavelets"). Each root of P stands for a
pair z, 1/z of roots of the filter's polynomial times its reverse: one of both belongs to the filter. With the roots
inside of the unit circle it is one of Daubechies' filters, and with a choice of least asymmetry a symlet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

_DIGITS = 50


class _Complex(NamedTuple):
    """A complex number of decimal digits."""

    re: Decimal
    im: Decimal

    def plus(self, other: _Complex) -> _Complex:
        return _Complex(self.re + other.re, self.im + other.im)

    def minus(self, other: _Complex) -> _Complex:
        return _Complex(self.re - other.re, self.im - other.im)

    def times(self, other: _Complex) -> _Complex:
        return _Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def over(self, other: _Complex) -> _Complex:
        size = other.size()
        return _Complex(
            (self.re * other.re + self.im * other.im) / size, (self.im * other.re - self.re * other.im) / size
        )

    def size(self) -> Decimal:
        """Return the square of the absolute value."""
        return self.re * self.re + self.im * self.im

    def root(self) -> _Complex:
        """Return a square root, whose sign may be any."""
        length = self.size().sqrt()
        re, im = ((length + abs(self.re)) / 2).sqrt(), Decimal(0)
        if re:
            im = self.im / (2 * re)
        return _Complex(re, im) if self.re >= 0 else _Complex(abs(im), re if self.im >= 0 else -re)


_ONE = _Complex(Decimal(1), Decimal(0))


def _roots(coefficients: Sequence[int]) -> list[_Complex]:
    """Return the roots of a polynomial whose coefficients are integers, the constant first, and whose roots are simple.

    They are NumPy's, improved all together by the iteration of Aberth and Ehrlich, which converges to other roots for
    each.
    """
    start = np.roots([float(c) for c in reversed(coefficients)])
    roots = [_Complex(Decimal(float(z.real)), Decimal(float(z.imag))) for z in start]
    for _ in range(60):
        steps = [_step(coefficients, roots, i) for i in range(len(roots))]
        roots = [root.minus(step) for root, step in zip(roots, steps, strict=True)]
        if all(
            step.size() <= Decimal(10) ** (8 - 2 * _DIGITS) * root.size()
            for step, root in zip(steps, roots, strict=True)
        ):
            return roots
    raise AssertionError("the roots of a spectrum do not converge")


def _step(coefficients: Sequence[int], roots: Sequence[_Complex], i: int) -> _Complex:
    """Return what an iteration subtracts from a root."""
    at = roots[i]
    value, slope = _Complex(Decimal(0), Decimal(0)), _Complex(Decimal(0), Decimal(0))
    for c in reversed(coefficients):
        slope = slope.times(at).plus(value)
        value = value.times(at).plus(_Complex(Decimal(c), Decimal(0)))
    if not value.size():
        return value
    newton = value.over(slope)
    others = _Complex(Decimal(0), Decimal(0))
    for j, other in enumerate(roots):
        if j != i:
            others = others.plus(_ONE.over(at.minus(other)))
    return newton.over(_ONE.minus(newton.times(others)))


Factor = tuple[Decimal, ...]
"""The coefficients of a polynomial, the highest power first."""


def _factors(moments: int) -> list[tuple[Factor, Factor]]:
    """Return the real factors of a filter with some vanishing moments: each with its roots inside, or outside.

    The roots are those of the unit circle's inside, or their inverses; pairs of conjugate roots make one factor.
    """
    found = []
    for y in _roots([math.comb(moments - 1 + k, k) for k in range(moments)]) if moments > 1 else []:
        if y.im < -(abs(y.re) * Decimal(10) ** (4 - _DIGITS)):
            continue
        half = _ONE.minus(_Complex(2 * y.re, 2 * y.im))
        turn = half.times(half).minus(_ONE).root()
        z = min(half.plus(turn), half.minus(turn), key=_Complex.size)
        is_real = abs(y.im) <= abs(y.re) * Decimal(10) ** (4 - _DIGITS)
        inside: Factor = (Decimal(1), -z.re) if is_real else (Decimal(1), -2 * z.re, z.size())
        found.append((inside, tuple(reversed(inside))))
    return sorted(found, key=lambda pair: abs(pair[0][-1]))


def _product(factors: Sequence[Factor]) -> list[Decimal]:
    out = [Decimal(1)]
    for factor in factors:
        longer = [Decimal(0)] * (len(out) + len(factor) - 1)
        for i, a in enumerate(out):
            for j, b in enumerate(factor):
                longer[i + j] += a * b
        out = longer
    return out


def _filter(moments: int, outside: int) -> tuple[float, ...]:
    """Return the filter for which the factors in the bits of ``outside`` have their roots outside of the circle."""
    with localcontext() as context:
        context.prec = _DIGITS + 20
        chosen = [pair[outside >> i & 1] for i, pair in enumerate(_factors(moments))]
        taps = _product([*chosen, *[(Decimal(1), Decimal(1))] * moments])
        scale = Decimal(2).sqrt() / sum(taps)
        return tuple(float(tap * scale) for tap in taps)


_OUTSIDE = (
    0, 0, 0b1, 0b1, 0b110, 0b1, 0b101, 0b110, 0b11010, 0b110, 0b101010, 0b11100, 0b10110, 0b11100, 0b10101100,
    0b10001110, 0b110100110, 0b1110100, 0b110110010,
)  # fmt: skip
"""Which factors of the symlets of 2 to 20 moments have their roots outside of the circle: bit i is the i-th factor.

Up to 9 moments these are the choices whose phase is nearest to a line in the mean square, up to the direction of the
filter. From 10 on several choices are nearly as good, and these are those of the filters that are in use.
"""


@lru_cache(maxsize=64)
def daubechies(moments: int) -> np.ndarray[Any, Any]:
    """Return Daubechies' filter with some vanishing moments, 1 to 38, whose delay is the least; the sum is sqrt(2)."""
    return np.array(_filter(moments, 0))


@lru_cache(maxsize=64)
def symlet(moments: int) -> np.ndarray[Any, Any]:
    """Return the most symmetric filter of the same spectrum, with 2 to 20 vanishing moments."""
    return np.array(_filter(moments, _OUTSIDE[moments - 2]))
