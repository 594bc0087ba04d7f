"""XLA's generator of random bits, as an operation from a key and a shape to bits and the next key."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, typeof
from pullback.core.elsewhere import is_here
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.jaxpr import infer
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.random.philox import philox_blocks
from pullback.primitives.rules import jvp_zero


class RandomAlgorithm(enum.IntEnum):
    """The algorithms with which XLA's generator can draw random bits.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> key = jnp.zeros(4, "uint32")
    >>> _, bits = lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    >>> bits.shape
    (3,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
rng_bit_generator_p.jvp_rule = jvp_zero(rng_bit_generator_p)

_WIDTHS = {np.dtype(np.uint32): 4, np.dtype(np.uint64): 2}


@rng_bit_generator_p.abstract_eval
def _bits_abstract_eval(key: ShapedArray, *, shape: Shape, dtype: np.dtype[Any], algorithm: RandomAlgorithm) -> Any:
    if key.dtype not in _WIDTHS:
        raise DtypeError(f"rng_bit_generator takes a key of u32[4] or u64[2], got {key}")
    if key.shape != (_WIDTHS[key.dtype],):
        raise ShapeError(f"rng_bit_generator takes a key of u32[4] or u64[2], got {key}")
    if not dtypes.is_unsigned(dtype) or dtype.itemsize not in (1, 2, 4, 8):
        raise DtypeError(f"rng_bit_generator returns uint8, uint16, uint32 or uint64, got {dtypes.short_name(dtype)}")
    return [ShapedArray(key.shape, key.dtype), ShapedArray(shape, dtype)]


@rng_bit_generator_p.impl
def _bits_eager(operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Draw random bits: by NumPy if they are few, since compiling would take longer; else by a compiled operation.

    Returns:
      The new key and the bits.
    """
    (key,) = operands
    shape, size = params["shape"], math.prod(params["shape"])
    if params["algorithm"] == RandomAlgorithm.RNG_THREE_FRY or size > _LARGEST_BY_NUMPY or not is_here(key):
        from pullback.backends.compiler.one_operation import evaluate

        return evaluate(rng_bit_generator_p, operands, params)
    new, drawn = infer(rng_bit_generator_p, [typeof(key)], params)
    words = np.array(key._value).view(_word)
    width = max(drawn.dtype.itemsize // 4, 1)
    blocks = -(-size * width // 4)
    index = ArrayImpl(np.arange(blocks, dtype=_word))
    found = philox_blocks(map(ArrayImpl, words), index)
    bits = np.stack([x._value for x in found], 1).reshape(-1)
    bits = bits.view(f"u{4 * width}")[:size].astype(drawn.dtype).reshape(shape)[()]
    words.view(np.uint64)[1:] += np.uint64(blocks)
    return [ArrayImpl(words.view(new.dtype)), ArrayImpl(bits)]


_word = np.dtype(np.uint32)
_LARGEST_BY_NUMPY = 20_000


@rng_bit_generator_p.batch
def _bits_batch(axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
    """Draw the bits of all examples from the key of the first example, as JAX does.

    Returns:
      The keys (only the first is new) and the bits, then the positions of their mapped axes.
    """
    keys = shapes.moveaxis(args[0], dims[0], 0)
    shape = (axis.size, *params["shape"])
    if not axis.size:
        return [keys, shapes.full(shape, 0, params["dtype"])], [0, 0]
    first = shapes.squeeze(slicing.slice_in_dim(keys, 0, 1, 0), (0,))
    new, bits = rng_bit_generator_p.bind(first, **{**params, "shape": shape})
    others = slicing.slice_in_dim(keys, 1, axis.size, 0)
    return [slicing.concatenate([shapes.expand_dims(new, (0,)), others], 0), bits], [0, 0]


@rng_bit_generator_p.lowering
def _bits_lowering(hlo: Any, key: Any, *, shape: Shape, dtype: np.dtype[Any], algorithm: RandomAlgorithm) -> Any:
    word, drawn = np.dtype(np.uint64), dtype if dtype.itemsize >= 4 else _word
    state = key if key.dtype == word else hlo.bitcast(hlo.reshape(key, (2, 2)), (2,), word)
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm.name.removeprefix('RNG_')}>"
    new, bits = hlo.multi_result("stablehlo.rng_bit_generator", [state], [((2,), word), (shape, drawn)], attributes)
    if key.dtype != word:
        new = hlo.reshape(hlo.bitcast(new, (2, 2), key.dtype), (4,))
    return [new, hlo.convert(bits, dtype)]
