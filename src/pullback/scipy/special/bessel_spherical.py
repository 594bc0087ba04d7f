"""Spherical Bessel functions of the second kinds for compiled programs, by their recurrence in the order.

These functions grow with the order, so that the recurrence (DLMF 10.51.1 and 10.51.4) loses no digits. It is a loop up
to the largest order of an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.control import loops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes

from pullback.primitives.formulas import (  # isort: skip
    cos, exp, formula, is_finite, lifted, minimum, sin, where,
)  # fmt: skip

while_loop, reduce_max = lifted(loops.while_loop), lifted(reductions.reduce_max)
_LOOPS = 100_000
"""The largest order. Functions of larger ones are infinite for numbers up to half of them, and NaN is returned else."""


def _by_recurrence(n: Any, z: Any, zero: Any, one: Any, sign: int) -> Any:
    """Return the function of order n, where ``next = (2 k + 1) / z value + sign before``."""
    most = reduce_max(minimum(n, _LOOPS), tuple(range(len(n.shape))))

    @formula
    def body(carry: Any) -> Any:
        k, before, value = carry
        following = (2 * k + 1) / z * value + sign * before
        going = (k < n) & is_finite(value)
        return k + 1, where(going, value, before), where(going, following, value)

    start = shapes.full((), 1.0, z.dtype), zero, one
    _, _, value = while_loop(formula(lambda carry: carry[0] < most), body, start)
    value = where(n == 0, zero, value)
    return where((n > _LOOPS) & is_finite(value), math.nan, value)


@formula
def yn(n: Any, z: Any) -> Any:
    """Evaluate y_n(z) for z other than zero."""
    zero = -(cos(z) / z)
    return _by_recurrence(n, z, zero, (zero - sin(z)) / z, -1)


@formula
def kn(n: Any, z: Any) -> Any:
    """Evaluate k_n(z) for z other than zero."""
    zero = exp(-z) * (math.pi / 2) / z
    return _by_recurrence(n, z, zero, zero + zero / z, 1)


KINDS: dict[str, Callable[..., Any]] = {"spherical_yn": yn, "spherical_kn": kn}
