"""The points: random bits, an interval where most happens, ends, and both sides of what is marked."""

from __future__ import annotations

import zlib

import numpy as np

from benchmarks.accuracy.table import Function, Operand, Plane


def points(function: Function, dtype: np.dtype, count: int) -> list[np.ndarray]:
    """An array for each operand, of one length: the points of one paired with those of the others at random."""
    generator = np.random.default_rng(zlib.crc32(f"{function.label} {dtype}".encode()))
    count = min(count, function.points)
    several = len(function.operands) > 1
    return [
        generator.permutation(x) if several else x
        for x in (_any(o, dtype, count, generator) for o in function.operands)
    ]


def _any(operand: Operand | Plane, dtype: np.dtype, count: int, generator: np.random.Generator) -> np.ndarray:
    if isinstance(operand, Operand):
        return _one(operand, dtype, count, generator)
    info = np.finfo(dtype)
    out = np.empty(count, dtype)
    out.real, out.imag = (
        generator.permutation(_one(o, info.dtype, count, generator)) for o in (operand.real, operand.imaginary)
    )
    sides = [sign * x for sign in (1, -1) for x in (info.dtype.type(0), info.smallest_subnormal, info.tiny)]
    out.imag[: count // 6] = generator.choice(sides, count // 6)
    out.real[count // 6 : count // 3] = generator.choice(sides, count // 3 - count // 6)
    return out


def _one(operand: Operand, dtype: np.dtype, count: int, generator: np.random.Generator) -> np.ndarray:
    info = np.finfo(dtype)
    low, high = max(operand.low, float(info.min)), min(operand.high, float(info.max))
    if operand.whole:
        return generator.integers(int(low), int(high), count, endpoint=True).astype(dtype)
    marked = _marked(operand, dtype, low, high)
    if len(marked) > count // 3:
        marked = generator.choice(marked, count // 3, replace=False)
    rest = count - len(marked)
    start, end = operand.single if operand.single and dtype == np.float32 else operand.usual
    bits = _random_bits(operand, dtype, rest // 2, low, high, generator)
    uniform = generator.uniform(start, end, rest - len(bits)).astype(dtype)
    return np.concatenate([marked, bits, np.clip(uniform, dtype.type(low), dtype.type(high))])


def _marked(operand: Operand, dtype: np.dtype, low: float, high: float) -> np.ndarray:
    """At the marks and the ends, at their neighbours among floats, and farther off on both sides."""
    with np.errstate(over="ignore"):
        found = [x for mark in (*operand.marks, low, high) for x in _around(dtype.type(mark))]
    x = np.unique(np.array(found, dtype))
    x = x[np.isfinite(x) & (x >= dtype.type(low)) & (x <= dtype.type(high))]
    return x[(np.abs(x) >= operand.tiny) | (x == 0)]


def _around(centre: np.floating) -> list[np.floating]:
    kind, info = type(centre), np.finfo(centre.dtype)
    found = [centre]
    for side in (-np.inf, np.inf):
        x = centre
        for _ in range(2):
            x = np.nextafter(x, kind(side))
            found.append(x)
    size = abs(float(centre)) if centre else 1.0
    for power in range(1, info.nmant + 2, 4):
        found += [kind(float(centre) + sign * size * 2.0**-power) for sign in (-1, 1)]
    if not centre:
        found += [kind(sign * x) for sign in (-1, 1) for x in (info.tiny, float(info.tiny) * 0.37, 1e-30, 1e-20)]
    return found


def _random_bits(
    operand: Operand, dtype: np.dtype, count: int, low: float, high: float, generator: np.random.Generator
) -> np.ndarray:
    bits = np.dtype(f"u{dtype.itemsize}")
    found = np.empty(0, dtype)
    for _ in range(2000):
        x = generator.integers(0, np.iinfo(bits).max, 4 * count + 8, bits, endpoint=True).view(dtype)
        with np.errstate(invalid="ignore"):
            x = x[np.isfinite(x) & (x >= low) & (x <= high) & (np.abs(x) >= operand.tiny)]
        found = np.concatenate([found, x])
        if len(found) >= count:
            break
    return found[:count]


__all__ = ["points"]
