"""Random numbers without a key: ``rng_uniform``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pullback import numpy as jnp
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
    """Draw numbers that are uniform from ``a`` to ``b``, ``b`` excluded, from a generator that the process shares.

    Use ``random.uniform``, which takes a key: here each call returns other numbers, and which depends on all calls
    before it. A new process begins with the same ones.

    Args:
      a, b: the bounds, floats or integers of one dtype without axes.
      shape: the shape of the result.

    Returns:
      An array of the dtype of the bounds.

    Raises:
      DtypeError: the bounds have different dtypes, or are no real numbers (a TypeError).
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
    drawn = io_callback(lambda: _draw(sizes), ShapeDtypeStruct(sizes, np.dtype(np.float32)))
    spread = a.astype(float) + drawn * (b - a).astype(float)
    return jnp.floor(spread).astype(a.dtype) if is_integer else jnp.minimum(spread.astype(a.dtype), jnp.nextafter(b, a))


def _draw(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    with _drawing:
        return _bits.random(math.prod(shape), dtype=np.float32).reshape(shape)
