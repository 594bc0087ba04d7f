"""How many digits of a value are true, and which lines have cost the others.

A value carries its relative error, measured against its shadow, and its losses: how many digits each line has cost
so far. An operation whose result is less true than its operands adds the difference to its own line; one whose result
is truer, as the sum of a wrong small number and a large one, scales the losses down. So a loss that does not matter to
the result costs it nothing.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes

SAMPLE = 4096
"""How many elements of an array are compared with their shadows while the program runs."""
_LEAST_ERROR = 1e-20
LEAST = 0.3
"""From how many digits on a change of the error is put down to a line."""


@functools.cache
def unit(dtype: np.dtype[Any]) -> float:
    """Return the unit roundoff of an inexact dtype, such as 6e-8 for float32."""
    return float(dtypes.finfo(dtype).eps) / 2


@functools.cache
def tiny(dtype: np.dtype[Any]) -> float:
    """Return the smallest normal number of an inexact dtype."""
    return float(dtypes.finfo(dtype).tiny)


@functools.cache
def most(dtype: np.dtype[Any]) -> float:
    """Return the number of decimal digits that an inexact dtype can hold, such as 7.2 for float32."""
    return -math.log10(unit(dtype))


def sampled(x: Any) -> Any:
    """Return some elements of an array, equally spaced, as a vector; all of them if they are few."""
    if x.size <= SAMPLE:
        return x
    flat = x.reshape(-1)
    return flat[:: -(-flat.size // SAMPLE)]


def relative_errors(value: Any, difference: Any, exact: Any, unknown: float = 1.0, least: float = 0.0) -> Any:
    """Return the relative error of each element, at most 1; NaN and infinities that the shadow does not share count 1.

    Args:
      value: the elements as the program has them.
      difference: the elements minus their shadows.
      exact: their shadows, rounded.
      unknown: the error of NaN whose shadow is NaN too.
      least: the smallest number that counts as exact, as the smallest that the dtype can hold.
    """
    sizes = np.abs(exact)
    errors = np.abs(difference) / (np.maximum(sizes, least) if least else sizes)
    if not np.isfinite(errors).all():
        errors = np.where((value == exact) | (difference == 0), 0.0, errors)
        errors = np.where(np.isnan(value) & np.isnan(exact), unknown, errors)
    return np.where(errors < 1, errors, 1.0)  # NaN is not below 1


def typical_worst(errors: Any) -> float:
    """Return the error that few elements exceed: the largest of up to 50; of many, the one that a fifth exceed.

    Some elements of sums of products are close to zero by accident, and lose digits that no rewriting saves.
    """
    n = errors.size
    if n <= 50:
        return float(errors.max()) if n else 0.0
    few = (n - 50) // 5
    if n <= SAMPLE:
        return float(np.partition(errors.reshape(-1), n - 1 - few)[n - 1 - few])
    low, high = _LEAST_ERROR, float(errors.max())  # by bisection, to one in a hundred: quicker than a partition
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        if np.count_nonzero(errors > middle) <= few:
            high = middle
        else:
            low = middle
    return high


def few_exceed(errors: Any, dtype: np.dtype[Any]) -> float:
    """Return :func:`typical_worst` of relative errors, or the largest if it is that of rounding; NaN if one is NaN."""
    worst = float(np.maximum.reduce(errors, None))
    if errors.size <= 50 or worst <= 2 * unit(dtype):
        return worst
    return typical_worst(errors) if worst < math.inf else math.nan


class Accuracy(NamedTuple):
    """What is known of the error of a value.

    Attributes:
      error: the relative error that few elements exceed, at most 1.
      unit: the unit roundoff of the narrowest numbers that the value is compared with.
      losses: how many digits each line has cost, by the line; their sum is the number of digits that are lost.
    """

    error: float
    unit: float
    losses: dict[Any, float]

    @property
    def lost(self) -> float:
        """The number of lost digits."""
        return math.log10(max(self.error, self.unit) / self.unit)


def changed(losses: dict[Any, float], lost: float, line: Any) -> dict[Any, float]:
    """Return the losses of a result that has lost ``lost`` digits in all, as an operation of ``line`` returns it.

    ``losses`` are those of the operand whose error dominates.
    """
    before = sum(losses.values())
    more = lost - before
    if more >= LEAST:
        return {**losses, line: losses.get(line, 0.0) + more}
    if more <= -LEAST:
        return {} if lost < LEAST else {k: x * lost / before for k, x in losses.items()}
    return losses
