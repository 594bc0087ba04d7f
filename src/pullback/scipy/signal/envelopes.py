"""Envelopes of signals in a band of frequencies, and sequences of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import constant, of_scipy, positive_int, signal
from pullback.scipy.signal.resampling import resample

__all__ = ["envelope", "max_len_seq"]


def _band(name: str, bp_in: Any, n: int) -> slice:
    """Return the positions of the frequencies of a band, of which some may be negative."""
    if not isinstance(bp_in, (tuple, list)) or len(bp_in) != 2:
        raise ArgumentError(f"{name}: bp_in must be a pair of ints or None, got {quote(bp_in)}")
    start = -(n // 2) if bp_in[0] is None else known_int(name, "bp_in", bp_in[0])
    stop = (n + 1) // 2 if bp_in[1] is None else known_int(name, "bp_in", bp_in[1])
    if not -(n // 2) <= start < stop <= (n + 1) // 2:
        raise ArgumentError(
            f"{name}: bp_in must increase between {-(n // 2)} and {(n + 1) // 2} for {n} elements, got {quote(bp_in)}"
        )
    return slice(start, stop)


# long: half of it is its documentation
def envelope(
    z: ArrayLike, bp_in: tuple[int | None, int | None] = (1, None), *, n_out: int | None = None, squared: bool = False,
    residual: str | None = "lowpass", axis: int = -1,
) -> Array:  # fmt: skip
    """Return the envelope of the part of a signal in a band of frequencies, and the rest of the signal.

    Args:
      z: the signal, an array of floats or complex numbers of any shape; integers are converted.
      bp_in: the first frequency of the band and the one after the last, as multiples of the lowest; negative ones of
        complex signals count too. None for the lowest and the highest.
      n_out: how many elements the results have; as many as the signal by default.
      squared: whether to return the square of the envelope.
      residual: which frequencies are in the rest: ``"lowpass"`` for those below the band, ``"all"`` for all outside of
        it, or None for no rest.
      axis: along which axis.

    Returns:
      The envelope, real numbers, and the rest, stacked along a new first axis; or the envelope alone.

    Raises:
      ArgumentError: a band that is empty or out of range, or an unknown word (a TypeError and a ValueError).
      ShapeError: a signal without elements, or an axis out of range (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 12.1, for analytic signals.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.envelope(jnp.array([3.0, 1.0, -1.0, 1.0])))
    [[2. 2. 2. 2.]
     [1. 1. 1. 1.]]
    """
    name = "envelope"
    z, squared = signal(name, z), flag(name, "squared", squared)
    where, last = axis_index(axis, len(z.shape), name), len(z.shape) - 1
    if not z.size:
        raise ShapeError(f"{name} takes a signal with elements, got shape {z.shape}")
    if residual is not None and not (isinstance(residual, str) and residual in ("lowpass", "all")):
        raise ArgumentError(f"{name}: residual must be 'lowpass', 'all' or None, got {quote(residual)}")
    n = z.shape[where]
    count = n if n_out is None else positive_int(name, "n_out", n_out)
    band, is_complex = _band(name, bp_in, n), dtypes.is_complex(z.dtype)
    z = shapes.moveaxis(z, where, last)
    if is_complex:
        spectrum = pnp.fft.fft(z)
    else:
        half = pnp.fft.rfft(z)
        spectrum = pnp.pad(half, [(0, 0)] * last + [(0, n - half.shape[-1])])
        factors = np.ones(n)
        factors[max(band.start, 1) : max(band.stop, 0)] = 2
        spectrum = spectrum * constant(factors, spectrum.dtype)
    inside = np.arange(band.start, band.stop) % n
    scale = count / n
    moved = pnp.fft.ifft(spectrum[..., inside], count) * scale
    power = ops.square(ops.real(moved)) + ops.square(ops.imag(moved))
    found = shapes.moveaxis(power if squared else pnp.abs(moved), last, where)
    if residual is None:
        return found
    rest = spectrum * constant(_outside(band, n, residual == "lowpass"), spectrum.dtype)
    if is_complex:
        left = resample(rest, count, axis=-1, domain="freq")
        found = found.astype(left.dtype)
    else:
        middle = min(n, count)
        if count != n and middle % 2 == 0:
            # The highest frequency stands for a positive and a negative one.
            rest = rest * constant(np.where(np.arange(n) == middle // 2, 2 if count < n else 0.5, 1), rest.dtype)
        left = pnp.fft.irfft(rest, count) * scale
    return pnp.stack([found, shapes.moveaxis(left, last, where)])


def _outside(band: slice, n: int, low: bool) -> np.ndarray[Any, Any]:
    """Return 1 for the frequencies of the rest, and 0 for others."""
    kept = np.ones(n)
    if not band.start <= 0 < band.stop:
        kept[band] = 0
    else:
        kept[: band.stop], kept[band.start :] = 0, 0
    if low and band.stop > 0:
        kept[band.stop : (n + 1) // 2] = 0
    elif low:
        kept[band.start :], kept[: (n + 1) // 2] = 0, 0
    return kept


def max_len_seq(
    nbits: int, state: ArrayLike | None = None, length: int | None = None, taps: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return a sequence of bits of maximum length, which repeats itself after ``2**nbits - 1`` bits.

    Args:
      nbits: the number of bits of the state, an int; from 2 to 32 without ``taps``.
      state: the initial state, a vector of bits that are not all zero, known; ones by default.
      length: how many bits to return, an int; all by default.
      taps: the positions of the bits that are added, known ints; by default such that the sequence is longest.

    Returns:
      The bits, and the final state, int8.

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).
      ConcretizationTypeError: a traced state (a TypeError).

    Source: Golomb 1967, *Shift Register Sequences*.

    >>> from pullback.scipy import signal
    >>> print(*signal.max_len_seq(3))
    [1 1 1 0 1 0 0] [1 1 1]
    """
    name = "max_len_seq"
    count = known_int(name, "nbits", nbits)
    size = None if length is None else known_int(name, "length", length)
    given = [None if x is None else known(pnp.asarray(x)) for x in (state, taps)]
    if (state is not None and given[0] is None) or (taps is not None and given[1] is None):
        raise ConcretizationTypeError(f"{name}: state and taps must be known, but one is traced")
    host = imported("scipy.signal")
    bits, after = of_scipy(name, lambda: host.max_len_seq(count, given[0], size, given[1]))
    return as_array(bits), as_array(after)
