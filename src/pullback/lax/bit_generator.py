"""XLA's generator of random bits, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, KeyArray
from pullback.core.errors import ArgumentError
from pullback.lax.arguments import ints
from pullback.primitives.operands import array_operand, bind
from pullback.primitives.random.generator import RandomAlgorithm, rng_bit_generator_p
from pullback.transforms.programs.placement import constrained


def rng_bit_generator(
    key: KeyArray,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm | int = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """Random bits of a key, by XLA's generator; :mod:`pullback.random` has functions that are easier to use.

    Under ``vmap`` over keys all bits are drawn from the first key, and only its successor is a new key, as in JAX.

    Args:
      key: uint32 of shape (4,), or uint64 of shape (2,).
      shape: the shape of the bits.
      dtype: their dtype, uint8, uint16, uint32 or uint64.
      algorithm: by default Philox. A named algorithm has the same bits on all platforms, the default may not.
      out_sharding: how the bits are spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      The next key, and the bits.

    Raises:
      DtypeError, ShapeError: the key or the dtype is not one of these.
      ArgumentError: an unknown algorithm (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> key, bits = lax.rng_bit_generator(jnp.array([1, 2, 3, 4], "uint32"), (2,))
    >>> print(key, bits)
    [1 2 4 4] [ 512747620 1298009047]
    """
    try:
        selected = RandomAlgorithm(operator.index(algorithm))
    except (TypeError, ValueError):
        shown = ", ".join(a.name for a in RandomAlgorithm)
        raise ArgumentError(f"lax.rng_bit_generator: algorithm must be one of {shown}, got {algorithm!r}") from None
    new, bits = bind(
        rng_bit_generator_p,
        array_operand("rng_bit_generator", key),
        shape=ints(shape),
        dtype=dtypes.requested_dtype(dtype, "rng_bit_generator"),
        algorithm=selected,
    )
    return new, constrained(bits, out_sharding, "lax.rng_bit_generator")
