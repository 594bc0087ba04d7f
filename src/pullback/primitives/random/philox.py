"""The counter-based generator Philox-4x32, which XLA uses for keys of four words.

The generator is a keyed bijection of blocks of four 32-bit words (Salmon, Moraes, Dror and Shaw, *Parallel random
numbers: as easy as 1, 2, 3*, SC 2011, section 4.3), so that each block is computed independently. In XLA's convention
the first two words of a key are the key of the bijection. The counter of block ``n``, a number of 128 bits, begins with
the other two words and ends with the first two, to which ``n`` is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import Shape, ShapedArray
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.rules import jvp_zero

_word, _wide = np.dtype(np.uint32), np.dtype(np.uint64)
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def philox_blocks(words: Iterable[Any], index: Any) -> list[Any]:
    """Return the four random words of each of some blocks of the Philox generator, as four arrays.

    Args:
      words: the four words of keys, uint32.
      index: the numbers of the blocks, uint32. It broadcasts against the words.
    """
    return philox_blocks_p.bind(*words, index)  # type: ignore[no-any-return]


philox_blocks_p = Primitive("philox_blocks", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
philox_blocks_p.jvp_rule = jvp_zero(philox_blocks_p)
philox_blocks_p.batch_rule = batch_broadcasting(philox_blocks_p)


@philox_blocks_p.host
def _philox_host(*operands: Any) -> list[Any]:
    w0, w1, w2, w3, index = [np.asarray(x, _word) for x in operands]
    low = (w3.astype(_wide) << 32 | w2) + index
    high = (w1.astype(_wide) << 32 | w0) + (low < index)
    counter = [word.astype(_word) for word in (low, low >> 32, high, high >> 32)]
    keys: list[Any] = [w0, w1]
    for _ in range(_ROUNDS):
        first, second = (_wide.type(m) * c for m, c in zip(_MULTIPLIERS, counter[::2], strict=True))
        counter = [
            (second >> 32).astype(_word) ^ counter[1] ^ keys[0], second.astype(_word),
            (first >> 32).astype(_word) ^ counter[3] ^ keys[1], first.astype(_word),
        ]  # fmt: skip
        keys = [key + _word.type(step) for key, step in zip(keys, _WEYL, strict=True)]
    shape = np.broadcast_shapes(*(x.shape for x in (w0, w1, w2, w3, index)))
    return [x if x.shape == shape else np.array(np.broadcast_to(x, shape)) for x in counter]


@philox_blocks_p.abstract_eval
def _philox_abstract_eval(*operands: ShapedArray) -> list[ShapedArray]:
    if any(x.dtype != _word for x in operands):
        raise DtypeError(f"philox_blocks takes operands of uint32, got {', '.join(map(format, operands))}")
    return [ShapedArray(broadcast_shape("philox_blocks", [x.shape for x in operands]), _word)] * 4


@philox_blocks_p.lowering
def _philox_lowering(hlo: Any, *operands: Any) -> list[Any]:
    return written_once(hlo, "philox_blocks", _write_rounds, operands)


def written_once(hlo: Any, name: str, write: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
    """Emit a call of a function that computes random words; all calls in a module with equal shapes share its body.

    Args:
      hlo: the builder.
      name: the name of the function.
      write: ``write(hlo, shape, *operands)`` emits the body.
      operands: the operands of the call.

    Returns:
      The results of the call.
    """
    key = name, tuple(x.shape for x in operands)
    function = hlo.module.shared.get(key)
    if function is None:
        body = type(hlo)(hlo.module)
        words = write(body, hlo.result.shape, *[body.argument(x.shape, _word) for x in operands])
        function = hlo.module.shared[key] = body.finish(hlo.module.unique(name), words)
    out: list[Any] = hlo.call(function, operands)
    return out


def _write_rounds(hlo: Any, shape: Shape, *operands: Any) -> list[Any]:
    def both(name: str, x: Any, y: Any) -> Any:
        return hlo.elementwise(f"stablehlo.{name}", x, y)

    def halves(x: Any) -> tuple[Any, Any]:
        up = both("shift_right_logical", x, hlo.splat(32, shape, _wide))
        return hlo.convert(x, _word), hlo.convert(up, _word)

    def joined(low: Any, high: Any) -> Any:
        return both("or", hlo.convert(low, _wide), both("shift_left", hlo.convert(high, _wide), shift))

    shift = hlo.splat(32, shape, _wide)
    w0, w1, w2, w3, index = (hlo.broadcast(x, shape) for x in operands)
    step = hlo.convert(index, _wide)
    low = both("add", joined(w2, w3), step)
    high = both("add", joined(w0, w1), hlo.convert(hlo.compare(low, step, "LT"), _wide))
    counter, keys = [*halves(low), *halves(high)], [w0, w1]
    for _ in range(_ROUNDS):
        products = (
            both("multiply", hlo.convert(c, _wide), hlo.splat(m, shape, _wide))
            for m, c in zip(_MULTIPLIERS, counter[::2], strict=True)
        )
        (low0, high0), (low1, high1) = map(halves, products)
        counter = [
            both("xor", both("xor", high1, counter[1]), keys[0]), low1,
            both("xor", both("xor", high0, counter[3]), keys[1]), low0,
        ]  # fmt: skip
        keys = [both("add", key, hlo.splat(step, shape, _word)) for key, step in zip(keys, _WEYL, strict=True)]
    return counter
