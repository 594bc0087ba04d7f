"""Errors in units in the last place (ulps)."""

from __future__ import annotations

from collections.abc import Callable

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
    every backend has subnormal numbers. An infinite result stands for the power of two after the largest float. Of
    complex numbers it is the distance, in ulps of the exact modulus; a part below the smallest normal number counts in
    units of that; where a part is too large for a float, any result that is not finite is right.
    """
    info = np.finfo(dtype)
    digits, smallest, largest = info.nmant + 1, int(info.minexp), int(info.maxexp)
    unit = np.maximum(exact.exponent, smallest + 1)
    unit = np.where(np.asarray(scale) > 0, np.maximum(unit, np.frexp(scale)[1]), unit) - digits
    unit = np.where(exact.exponent <= smallest, smallest, unit)
    unit = np.minimum(unit, largest - digits)
    if np.isrealobj(exact.high):
        error = _distance(found.astype(np.float64), exact, unit, largest)
    else:
        real, imaginary = _part(exact, np.real), _part(exact, np.imag)
        pairs = ((found.real, real), (found.imag, imaginary))
        error = np.hypot(
            *(
                _distance(f, e, np.where(e.exponent <= smallest, np.maximum(unit, smallest), unit), largest)
                for f, e in pairs
            )
        )
        over = np.maximum(real.exponent, imaginary.exponent) > largest
        error = np.where(over & ~np.isfinite(found), 0.0, error)
    error = np.where(np.isnan(error), np.inf, error)
    return np.where(np.isnan(exact.high), np.nan, error)


def _part(exact: Exact, part: Callable[[np.ndarray], np.ndarray]) -> Exact:
    high, exponent = np.frexp(part(exact.high))
    low = np.ldexp(part(exact.low), -exponent)
    return Exact(high, low, np.where(high == 0, -(10**6), exact.exponent + exponent))


def _distance(found: np.ndarray, exact: Exact, unit: np.ndarray, largest: int) -> np.ndarray:
    """The distance of each float from the exact value in units of powers of two; NaN for a NaN."""
    over = exact.exponent > largest  # as large as infinity stands for
    high = np.where(over, np.copysign(0.5, exact.high), exact.high)
    low = np.where(over, 0.0, exact.low)
    exponent = np.where(over, largest + 1, exact.exponent)
    infinite = np.isinf(found)
    mantissa, power = np.frexp(np.where(infinite, np.copysign(0.5, found), found).astype(np.float64))
    power = np.where(infinite, largest + 1, power)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shift = exponent - unit
        error = np.ldexp(mantissa, np.clip(power - unit, -2000, 2000).astype(np.int32))
        error = error - np.ldexp(high, np.clip(shift, -2000, 2000).astype(np.int32))
        return np.abs(error - np.ldexp(low, np.clip(shift, -2000, 2000).astype(np.int32)))


def subnormal(operands: list[np.ndarray]) -> np.ndarray:
    """Where an operand is a subnormal number."""
    tiny = np.finfo(operands[0].dtype).tiny
    parts = [part for x in operands for part in ((x.real, x.imag) if np.iscomplexobj(x) else (x,))]
    return np.any([(x != 0) & (np.abs(x) < tiny) for x in parts], axis=0)


__all__ = ["subnormal", "ulps"]
