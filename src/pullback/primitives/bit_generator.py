"""XLA's generator of random bits, as an operation: the bits and the next key, of a key and a shape."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import shapes
from pullback.primitives.rules import jvp_zero


class RandomAlgorithm(enum.IntEnum):
    """The algorithm of a generator of random bits."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


# Of keys along leading axes each gives bits of its own.
rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
rng_bit_generator_p.jvp_rule = jvp_zero(rng_bit_generator_p)

_WIDTHS = {np.dtype(np.uint32): 4, np.dtype(np.uint64): 2}


@rng_bit_generator_p.abstract_eval
def _bits_shape(key: ShapedArray, *, shape: Shape, dtype: np.dtype[Any], algorithm: RandomAlgorithm) -> Any:
    if key.dtype not in _WIDTHS:
        raise DtypeError(f"rng_bit_generator takes a key of u32[4] or u64[2], got {key}")
    if not key.ndim or key.shape[-1] != _WIDTHS[key.dtype]:
        raise ShapeError(f"rng_bit_generator takes a key of u32[4] or u64[2], got {key}")
    if not dtypes.is_unsigned(dtype) or dtype.itemsize not in (1, 2, 4, 8):
        raise DtypeError(f"rng_bit_generator returns uint8, uint16, uint32 or uint64, got {dtypes.short_name(dtype)}")
    return [ShapedArray(key.shape, key.dtype), ShapedArray((*key.shape[:-1], *shape), dtype)]


@rng_bit_generator_p.batch
def _bits_batch(axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
    return rng_bit_generator_p.bind(shapes.moveaxis(args[0], dims[0], 0), **params), [0, 0]


@rng_bit_generator_p.lowering
def _bits_xla(hlo: Any, key: Any, *, shape: Shape, dtype: np.dtype[Any], algorithm: RandomAlgorithm) -> Any:
    word, drawn = np.dtype(np.uint64), dtype if dtype.itemsize >= 4 else np.dtype(np.uint32)
    lead, last = key.shape[:-1], key.shape[-1]
    count = math.prod(lead)
    name = algorithm.name.removeprefix("RNG_")

    def one(state: Any) -> list[Any]:
        attributes = f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
        out: list[Any] = hlo.many("stablehlo.rng_bit_generator", [state], [((2,), word), (shape, drawn)], attributes)
        return out

    keys = key if key.dtype == word else hlo.bitcast(hlo.reshape(key, (count, 2, 2)), (count, 2), word)
    keys = hlo.reshape(keys, (count, 2))
    if not lead:
        new, bits = one(hlo.reshape(keys, (2,)))
    else:
        new, bits = keys, hlo.splat(0, (count, *shape), drawn)
        if count:
            new, bits = _over_keys(hlo, keys, bits, one)
    if key.dtype != word:
        new = hlo.bitcast(hlo.reshape(new, (count, 2)), (count, 2, 2), key.dtype)
    return [hlo.reshape(new, (*lead, last)), hlo.convert(hlo.reshape(bits, (*lead, *shape)), dtype)]


def _over_keys(hlo: Any, keys: Any, bits: Any, one: Any) -> Any:
    """A loop over the keys."""
    index = np.dtype(np.int32)
    zero, step = hlo.number(0, index), hlo.number(1, index)
    shape = bits.shape[1:]
    kinds = [((), index), (keys.shape, keys.dtype), (bits.shape, bits.dtype)]

    def body(i: Any, new: Any, bits: Any) -> list[Any]:
        state = hlo.op("stablehlo.dynamic_slice", [keys, i, zero], (1, 2), keys.dtype, "slice_sizes = array<i64: 1, 2>")
        key, drawn = one(hlo.reshape(state, (2,)))
        update = "stablehlo.dynamic_update_slice"
        new = hlo.op(update, [new, hlo.reshape(key, (1, 2)), i, zero], new.shape, new.dtype)
        place = [i, *(zero for _ in shape)]
        bits = hlo.op(update, [bits, hlo.reshape(drawn, (1, *shape)), *place], bits.shape, bits.dtype)
        return [hlo.same("stablehlo.add", i, step), new, bits]

    going = hlo.region(kinds, lambda i, new, bits: [hlo.compare(i, hlo.number(keys.shape[0], index), "LT")])
    return hlo.many("stablehlo.while", [zero, keys, bits], kinds, regions=[going, hlo.region(kinds, body)])[1:]
