"""Long Fourier transforms in two steps of many short ones, on all cores.

With n = p q elements, the transform of element ``q a + b`` at ``c + p d`` is a transform over a for each b, a product
by a root of unity, a transform over b for each c, and a transposition (Bailey, *FFTs in external or hierarchical
memory*, 1990). The short transforms fit into a core's cache, and are pocketfft's, through ``scipy.fft``, as the long
one was.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.host import moves, own
from pullback.backends.host.parallel import cores
from pullback.core.interrupts import imported

LONG = 1 << 16
"""The least elements of a transform that is divided."""
_GREATEST_FACTOR = 13  # Pocketfft is slower for larger primes.
_SHARE = 1 << 15  # The elements that are worth a thread.


@lru_cache(maxsize=1024)
def sides(n: int) -> tuple[int, int] | None:
    """Return two factors of ``n`` near its root, if it is at least ``LONG`` and has small prime factors; else None."""
    rest = n
    for factor in range(2, _GREATEST_FACTOR + 1):
        while rest % factor == 0:
            rest //= factor
    if n < LONG or rest > 1:
        return None
    least = next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)
    return (least, n // least) if n <= 4 * least**2 else None


def is_divided(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether :func:`transformed` computes the transform of an array over its last axis."""
    is_one = math.prod(shape[:-1]) == 1 and dtype.char in "FD"
    return is_one and own.loops is not None and sides(shape[-1]) is not None


def transformed(x: Any, is_inverse: bool) -> Any:
    """Return the Fourier transform of one complex vector, for which :func:`is_divided`; or the inverse transform."""
    assert own.loops is not None
    scipy_fft, workers, shape = imported("scipy.fft"), cores(), sides(x.shape[-1])
    transform = scipy_fft.ifft if is_inverse else scipy_fft.fft
    columns = np.ascontiguousarray(transform(x.reshape(shape), axis=0, workers=workers))
    own.loops.turn(columns, is_inverse, min(workers - 1, x.size // _SHARE))
    rows = transform(columns, axis=1, overwrite_x=True, workers=workers)
    out = np.empty(rows.shape[::-1], rows.dtype)
    moves.copy(out, rows.T)
    return out.reshape(x.shape)
