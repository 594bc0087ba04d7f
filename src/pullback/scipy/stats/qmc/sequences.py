"""Sequences of low discrepancy as functions of a key: Sobol's, Halton's, and Latin hypercubes.

Without a key a sequence is a constant, and is computed on the host. With a key it is scrambled by operations on the
random bits of the key, so that compiled functions may take the key, and mapped ones many keys.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, KeyArray, as_array
from pullback.core.config import config
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.numpy.promotion import size_of
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.random.arguments import float_dtype
from pullback.random.continuous import bits as random_bits
from pullback.random.continuous import uniform
from pullback.random.keys import split
from pullback.scipy.arguments import on_host

__all__ = ["halton", "latin_hypercube", "sobol"]

LARGEST = 21_201
"""The largest dimension for which Joe and Kuo have direction numbers."""


# Sobol -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _joe_kuo() -> tuple[Any, Any]:
    """Return the primitive polynomials and the first direction numbers of Joe and Kuo, from SciPy's data.

    S. Joe and F. Y. Kuo, *Constructing Sobol sequences with better two-dimensional projections* (2008).
    """
    with (files("scipy.stats") / "_sobol_direction_numbers.npz").open("rb") as file:
        data = np.load(file)
        return data["poly"].astype(np.uint64), data["vinit"].astype(np.uint64)


@lru_cache(maxsize=32)
def directions(d: int, bits: int) -> Any:
    """Return the direction numbers of ``d`` dimensions: integers of ``bits`` bits, of the shape (d, bits).

    The numbers of a dimension follow from its first ones by the recurrence of its polynomial, which is computed for all
    polynomials of one degree at once (Bratley and Fox, *Algorithm 659*, 1988).
    """
    polynomials, first = (x[:d] for x in _joe_kuo())
    numbers = np.ones((d, bits), np.uint64)
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    for degree in range(1, int(degrees.max(initial=0)) + 1):
        rows = np.flatnonzero(degrees == degree)
        found = np.zeros((rows.size, bits), np.uint64)
        known = min(degree, bits)
        found[:, :known] = first[rows, :known]
        for j in range(degree, bits):
            new = found[:, j - degree].copy()
            for k in range(1, degree + 1):
                taken = (polynomials[rows] >> np.uint64(degree - k)) & np.uint64(1)
                new ^= taken * (found[:, j - k] << np.uint64(k))
            found[:, j] = new
        numbers[rows] = found
    out = numbers << np.arange(bits - 1, -1, -1, dtype=np.uint64)
    out = out.astype(word(bits))
    out.setflags(write=False)
    return out


def word(bits: int) -> np.dtype[Any]:
    return np.dtype(np.uint32 if bits <= 32 else np.uint64)


def scrambled(key: KeyArray, d: int, bits: int) -> tuple[Array, Array]:
    """Return scrambled direction numbers (d, bits), and a random shift of the digits (d,).

    The digits of a point are multiplied by a random lower triangular matrix with a diagonal of ones, and shifted
    (J. Matoušek, *On the L2-discrepancy for anchored boxes*, 1998).
    """
    kind = word(bits)
    if bits > 32 and not config.enable_x64:
        raise UnsupportedArgumentError(
            f"sobol: {bits} bits are scrambled as 64-bit integers, which are disabled; pass bits=32 or fewer, or set "
            "enable_x64"
        )
    for_rows, for_shift = split(key)
    positions = np.arange(bits, dtype=kind)
    one = np.ones(bits, kind) << positions
    everything = np.array(2**bits - 1, kind)
    above = everything & ~(one | (one - kind.type(1)))
    rows = (random_bits(for_rows, (d, bits), kind) & as_array(above)) | as_array(one)
    numbers = as_array(np.array(directions(d, bits)))
    chosen = ops.and_p.bind(shapes.expand_dims(numbers, (2,)), shapes.expand_dims(rows, (1,)))
    parity = ops.population_count_p.bind(chosen) & kind.type(1)
    out = pnp.sum(ops.shift_left_p.bind(parity, as_array(positions)), -1, dtype=kind)
    return out, random_bits(for_shift, (d,), kind) & as_array(everything)


def digits(numbers: Any, shift: Any, start: int, count: int) -> Any:
    """Return the points ``start``, ``start + 1``, ... of a Sobol sequence as integers, of the shape (count, d).

    Point i is the sum, modulo two, of the shift and of the direction numbers at the ones in the Gray code of i. So each
    point differs from the one before it by one direction number (Antonov and Saleev, 1979).
    """
    kind = numbers.dtype
    gray = _gray(start)
    if isinstance(numbers, np.ndarray):
        first = shift.copy()
        for j in range(gray.bit_length()):
            if gray >> j & 1:
                first ^= numbers[:, j]
        following = np.arange(start + 1, start + count, dtype=np.uint64)
        lowest = following & (~following + np.uint64(1))
        changed = np.log2(lowest.astype(np.float64)).astype(np.int64)
        steps = np.concatenate([first[None], numbers.T[changed]])[:count]
        return np.bitwise_xor.accumulate(steps, axis=0)
    codes = np.array([_gray(i) for i in range(start, start + count)], np.uint64)
    out = shapes.broadcast_to(shapes.expand_dims(shift, (0,)), (count, numbers.shape[0]))
    for j in range(max(int(codes.max(initial=0)).bit_length(), 0)):
        mask = ((codes >> np.uint64(j)) & np.uint64(1)).astype(kind) * np.array(~np.array(0, kind))
        out = ops.xor_p.bind(out, ops.and_p.bind(as_array(mask[:, None]), numbers[None, :, j]))
    return out


def _gray(i: int) -> int:
    return i ^ i >> 1


def fractions(integers: Any, bits: int, dtype: Any) -> Array:
    """Return integers of ``bits`` bits as fractions of 2**bits; digits that the dtype lacks are cut off."""
    if isinstance(integers, np.ndarray) and dtype.itemsize == 8:
        return as_array(integers.astype(np.float64) * 2.0**-bits)
    integers = as_array(integers) if isinstance(integers, np.ndarray) and integers.dtype.itemsize <= 4 else integers
    precision = dtypes.finfo(dtype).nmant + 1
    if bits > precision and dtype.itemsize < 8:
        if isinstance(integers, np.ndarray):
            integers = as_array((integers >> np.uint64(bits - precision)).astype(np.uint32))
        else:
            integers = ops.shift_right_logical_p.bind(integers, bits - precision)
        bits = precision
    return ops.mul(ops.convert_element_type(integers, dtype), 2.0**-bits)


def sobol(key: KeyArray | None, n: int, d: int, *, start: int = 0, bits: int = 30, dtype: DTypeLike = None) -> Array:
    """Points of Sobol's sequence in the unit cube.

    Powers of two of points, from a start that is a multiple of their number, fill the cube evenly.

    Args:
      key: a key, by which the points are scrambled; None for the sequence itself, whose first point is zero.
      n: the number of points.
      d: the dimension, from 1 to 21,201.
      start: how many points of the sequence to skip.
      bits: the number of binary digits of a coordinate, from 1 to 64; scrambled points of more than 32 need
        ``enable_x64``. The sequence has ``2**bits`` points.
      dtype: a floating-point dtype; the default one if it is None. Digits that it lacks are cut off.

    Returns:
      An array of shape (n, d) and ``dtype``, of numbers in [0, 1). A function of the key may be compiled and mapped.

    Raises:
      ArgumentError: a dimension, a number of points or of bits outside its range (a ValueError).
      UnsupportedArgumentError: more than 32 bits to scramble without ``enable_x64``.

    Source: Sobol (1967), with the direction numbers of Joe and Kuo (2008), scrambled by a random matrix and a random
    shift of the digits (Matoušek, 1998). Points without a key are those of ``scipy.stats.qmc.Sobol``, bit for bit.

    >>> from pullback import random
    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.sobol(random.key(0), 2, 3).shape, qmc.sobol(None, 3, 1)[:, 0])
    (2, 3) [0.   0.5  0.75]
    """
    count, skipped, found = _counts("sobol", n, d, start, dtype)
    check_sobol("sobol", d, bits)
    if skipped + count > 2**bits:
        raise ArgumentError(
            f"sobol: a sequence of {bits} bits has 2**{bits} points, but points up to {skipped + count} were asked "
            "for; pass more bits"
        )
    if key is None:
        numbers = directions(d, bits)
        return fractions(digits(numbers, np.zeros(d, numbers.dtype), skipped, count), bits, found)
    return drawn(*scrambled(key, d, bits), skipped, count, bits, found)


def drawn(numbers: Array, shift: Array, start: int, count: int, bits: int, dtype: Any) -> Array:
    """Return points of a scrambled sequence, from its direction numbers and its shift."""
    values = on_host(numbers, shift)
    first, second = (numbers, shift) if values is None else values
    return fractions(digits(first, second, start, count), bits, dtype)


def check_sobol(name: str, d: int, bits: int) -> None:
    """Raise unless there are direction numbers of ``d`` dimensions and ``bits`` bits.

    Raises:
      ArgumentError: there are none.
    """
    if d > LARGEST:
        raise ArgumentError(f"{name}: d must be at most {LARGEST}, got {d}")
    if not isinstance(bits, (int, np.integer)) or not 1 <= bits <= 64:
        raise ArgumentError(f"{name}: bits must be an integer from 1 to 64, got {bits!r}")


def _counts(name: str, n: Any, d: Any, start: Any, dtype: Any) -> tuple[int, int, Any]:
    """Return the number of points, those to skip and the dtype of the result, checked."""
    count, skipped = size_of(name, "n", n), size_of(name, "start", start)
    if size_of(name, "d", d) < 1:
        raise ArgumentError(f"{name}: d must be positive, got {d}")
    return count, skipped, float_dtype(name, dtype)


# Halton ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def primes(count: int) -> tuple[int, ...]:
    """Return the first primes."""
    size = max(15, int(count * (math.log(count + 1) + math.log(math.log(count + 3)) + 1)))
    sieve = np.ones(size, bool)
    sieve[:2] = False
    for i in range(2, math.isqrt(size) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return tuple(int(p) for p in np.flatnonzero(sieve)[:count])


def halton(key: KeyArray | None, n: int, d: int, *, start: int = 0, dtype: DTypeLike = None) -> Array:
    """Points of Halton's sequence in the unit cube.

    The coordinates are the digits of the number of the point in the base of a prime, in reverse order.

    Args:
      key: a key, by which each digit is permuted; None for the sequence itself, whose first point is zero.
      n: the number of points; any number of them is even.
      d: the dimension, positive.
      start: how many points of the sequence to skip.
      dtype: a floating-point dtype; the default one if it is None.

    Returns:
      An array of shape (n, d) and ``dtype``, of numbers in [0, 1). A function of the key may be compiled and mapped.

    Raises:
      ArgumentError: a dimension or a number of points outside its range (a ValueError).

    Source: Halton (1960); random permutations as in A. B. Owen, *A randomized Halton algorithm in R* (2017). Points
    without a key are those of ``scipy.stats.qmc.Halton``, bit for bit.

    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.halton(None, 3, 2))
    [[0.         0.        ]
     [0.5        0.33333334]
     [0.25       0.6666667 ]]
    """
    count, skipped, found = _counts("halton", n, d, start, dtype)
    bases = primes(d)
    if key is None:
        columns = [_radical_inverse(base, skipped, count) for base in bases]
        exact = np.stack(columns, 1).reshape(count, d)
        largest = 1 - float(dtypes.finfo(found).epsneg)
        return as_array(np.minimum(exact, largest).astype(found))
    keys = split(key, d)
    return pnp.stack([permuted(keys[i], base, skipped, count, found) for i, base in enumerate(bases)], 1)


def _powers(base: int, dtype: Any) -> list[float]:
    """Return 1/base, 1/base**2, ..., as long as the dtype distinguishes one minus them from one."""
    least = float(dtypes.finfo(dtype).epsneg) / 2
    powers = [1.0 / base]
    while powers[-1] / base > least:
        powers.append(powers[-1] / base)
    return powers


def _radical_inverse(base: int, start: int, count: int) -> Any:
    rest, out = np.arange(start, start + count), np.zeros(count)
    for power in _powers(base, np.float64):
        if not rest.any():
            break
        rest, digit = np.divmod(rest, base)
        out += digit * power
    return out


def permuted(key: KeyArray, base: int, start: int, count: int, dtype: Any) -> Array:
    """Return the radical inverses of a base, each of whose digits is permuted by the key."""
    powers = _powers(base, dtype)
    permutations = pnp.argsort(random_bits(key, (len(powers), base), "uint32"), axis=1)
    rest, chosen = np.arange(start, start + count), []
    for _ in powers:
        rest, digit = np.divmod(rest, base)
        chosen.append(digit)
    found = pnp.take_along_axis(permutations, as_array(np.array(chosen, np.int32).reshape(len(powers), count)), 1)
    weights = as_array(np.array(powers, dtype)[:, None])
    out = pnp.sum(ops.mul(ops.convert_element_type(found, dtype), weights), 0)
    return ops.min_p.bind(out, 1 - float(dtypes.finfo(dtype).epsneg))


# Latin hypercubes --------------------------------------------------------------------------------------------------


def latin_hypercube(
    key: KeyArray, n: int, d: int, *, scramble: bool = True, strength: int = 1, dtype: DTypeLike = None
) -> Array:
    """Points of a random Latin hypercube in the unit cube: each coordinate has one point in each of n equal intervals.

    Args:
      key: a key.
      n: the number of points; for strength 2 the square of a prime.
      d: the dimension, positive; for strength 2 at most the root of ``n`` plus one.
      scramble: whether a point is anywhere in its interval; otherwise it is in the middle.
      strength: 1; or 2, so that each pair of coordinates has one point in each of n equal squares.
      dtype: a floating-point dtype; the default one if it is None.

    Returns:
      An array of shape (n, d) and ``dtype``, of numbers in [0, 1). A function of the key may be compiled and mapped.

    Raises:
      ArgumentError: a dimension, a number of points or a strength outside its range (a ValueError).

    Source: McKay, Beckman and Conover (1979); strength 2 by orthogonal arrays, as in B. Tang, *Orthogonal array-based
    Latin hypercubes* (1993).

    >>> from pullback import random
    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.latin_hypercube(random.key(0), 4, 2, scramble=False).sort(0)[:, 0])
    [0.125 0.375 0.625 0.875]
    """
    count, _, found = _counts("latin_hypercube", n, d, 0, dtype)
    if strength not in (1, 2):
        raise ArgumentError(f"latin_hypercube: strength must be 1 or 2, got {strength!r}")
    for_order, for_offset = split(key)
    if strength == 2:
        order = _by_orthogonal_array(for_order, count, d)
    else:
        order = pnp.argsort(random_bits(for_order, (d, count), "uint32"), axis=1).T
    offset: Any = uniform(for_offset, (count, d), found) if scramble else 0.5
    out = ops.div(ops.add(ops.convert_element_type(order, found), offset), max(count, 1))
    return ops.min_p.bind(out, 1 - float(dtypes.finfo(found).epsneg))


def _by_orthogonal_array(key: KeyArray, n: int, d: int) -> Any:
    """Return the intervals of the points of a Latin hypercube of strength 2, of the shape (n, d).

    The columns of an orthogonal array of Bose (1938) have p levels, each p times. Each level becomes p intervals.
    """
    p = math.isqrt(n)
    if p * p != n or p < 2 or any(p % i == 0 for i in range(2, math.isqrt(p) + 1)):
        raise ArgumentError(f"latin_hypercube: n must be the square of a prime if strength is 2, got {n}")
    if d > p + 1:
        raise ArgumentError(f"latin_hypercube: d must be at most {p + 1} for {n} points of strength 2, got {d}")
    row, column = np.divmod(np.arange(n), p)
    levels = np.stack([row, column, *((row + i * column) % p for i in range(1, p))], 0)[:d]
    for_levels, for_rows = split(key)
    names = pnp.argsort(random_bits(for_levels, (d, p), "uint32"), axis=1)
    named = pnp.take_along_axis(names, as_array(levels.astype(np.int32)), 1)
    shuffled = pnp.argsort(random_bits(for_rows, (d, n), "uint32"), axis=1)
    grouped = pnp.argsort(pnp.take_along_axis(named, shuffled, 1), axis=1, stable=True)
    return pnp.argsort(pnp.take_along_axis(shuffled, grouped, 1), axis=1).T
