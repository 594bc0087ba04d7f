"""Random numbers without a key: ``rng_uniform``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError
from pullback.core.locks import lock
from pullback.numpy.promotion import shape_tuple
from pullback.primitives.operands import array_operand
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import io_callback

_drawing = lock(globals(), "_drawing", reentrant=True)
_bits = np.random.Generator(np.random.Philox(0))


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Draw numbers that are uniform from ``a`` to below ``b``, from a generator that the process shares.

    Use ``random.uniform``, which takes a key: here each call returns other numbers, which depend on all calls before
    it. A new process begins with the same ones.

    Args:
      a, b: the bounds, scalars of one dtype, floats or integers.
      shape: the shape of the result.

    Returns:
      An array of the dtype of the bounds; ``a`` where ``b`` is not greater.

    Raises:
      DtypeError: the bounds have different dtypes, or are not real numbers (a TypeError).
      ShapeError: an impossible shape (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> x = lax.rng_uniform(jnp.float32(2), jnp.float32(3), (4,))
    >>> bool(jnp.all((x >= 2) & (x < 3)))
    True
    """
    a, b = array_operand("rng_uniform", a), array_operand("rng_uniform", b)
    is_integer = dtypes.is_integer(a.dtype)
    if a.dtype != b.dtype or a.ndim or b.ndim or not (is_integer or dtypes.is_float(a.dtype)):
        kinds = f"{dtypes.short_name(a.dtype)} of shape {a.shape} and {dtypes.short_name(b.dtype)} of shape {b.shape}"
        raise DtypeError(f"rng_uniform takes two scalars of one dtype, floats or integers, got {kinds}")
    sizes = shape_tuple(shape, "rng_uniform")
    return io_callback(partial(_draw, sizes), ShapeDtypeStruct(sizes, a.dtype), a, b)  # type: ignore[no-any-return]


def _draw(shape: tuple[int, ...], low: Any, high: Any) -> np.ndarray[Any, Any]:
    """Draw numbers of the dtype of the bounds; ``low`` alone if no number lies between them."""
    low, high = np.asarray(low), np.asarray(high)
    if not low < high:
        return np.full(shape, low)
    with _drawing:
        if dtypes.is_integer(low.dtype):
            wide = np.uint64 if np.iinfo(np.int64).max < int(high) else np.int64
            return _bits.integers(int(low), int(high), shape, wide).astype(low.dtype)
        share = _bits.random(shape)
    drawn = (float(low) * (1 - share) + float(high) * share).astype(low.dtype)  # which may be rounded up to the bound
    return np.minimum(drawn, np.nextafter(high, low))
