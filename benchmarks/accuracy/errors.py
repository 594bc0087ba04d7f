"""Errors in units in the last place (ulps)."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.reference import Exact


def ulps(found: np.ndarray, exact: Exact, dtype: np.dtype, scale: np.ndarray | float) -> np.ndarray:
    """The error of each result in ulps of the exact one: NaN where there is no exact one, infinite for a NaN.

    Args:
      found: results.
      exact: the exact values.
      dtype: that of the results.
      scale: an exact value smaller than this is measured in ulps of this.

    An exact value below the smallest normal number is measured in units of that, so that 0 is off by less than one: not
    every backend has subnormal numbers. An infinite result stands for the power of two after the largest float.
    """
    info = np.finfo(dtype)
    digits, smallest = info.nmant + 1, int(info.minexp)
    unit = np.maximum(exact.exponent, smallest + 1)
    unit = np.where(np.asarray(scale) > 0, np.maximum(unit, np.frexp(scale)[1]), unit) - digits
    unit = np.where(exact.exponent <= smallest, smallest, unit)
    found = found.astype(np.float64)
    over = exact.exponent > info.maxexp  # as large as infinity stands for
    high = np.where(over, np.copysign(0.5, exact.high), exact.high)
    low = np.where(over, 0.0, exact.low)
    exponent = np.where(over, int(info.maxexp) + 1, exact.exponent)
    unit = np.where(over, int(info.maxexp) - digits, unit)
    infinite = np.isinf(found)
    mantissa, power = np.frexp(np.where(infinite, np.copysign(0.5, found), found))
    power = np.where(infinite, int(info.maxexp) + 1, power)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shift = exponent - unit
        error = np.ldexp(mantissa, np.clip(power - unit, -2000, 2000).astype(np.int32))
        error = error - np.ldexp(high, np.clip(shift, -2000, 2000).astype(np.int32))
        error = np.abs(error - np.ldexp(low, np.clip(shift, -2000, 2000).astype(np.int32)))
    error = np.where(np.isnan(found), np.inf, error)
    return np.where(np.isnan(exact.high), np.nan, error)


def subnormal(operands: list[np.ndarray]) -> np.ndarray:
    """Where an operand is a subnormal number."""
    tiny = np.finfo(operands[0].dtype).tiny
    return np.any([(x != 0) & (np.abs(x) < tiny) for x in operands], axis=0)


__all__ = ["subnormal", "ulps"]
