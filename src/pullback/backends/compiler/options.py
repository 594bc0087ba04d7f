"""Options of the compiler, selected by measurement.

Each line has been measured against the compiler's default, in turns on two quiet cores, jaxlib 0.10.2; medians:

| option | where it helps | default | with it |
|---|---|---|---|
| `ynn_fusion_type` INDIVIDUAL_DOT | ten layers of 512 and a sum, batch 128: no library call of all | 4.2 ms | 3.3 ms |
| for products without loops | its gradient | 9.2 ms | 8.3 ms |
| | a training step of a transformer block (256, 8 heads, 128 tokens, batch 8) | 49 ms | 45 ms |
| INDIVIDUAL_DOT, REDUCE for all others | a recurrent network, 1,000 steps; INDIVIDUAL_DOT: 1.5 ms | 1.4 ms | 1.4 ms |
| and for products in loops | the same with a batch of 32; INDIVIDUAL_DOT: 30 ms | 24 ms | 24 ms |
| | the largest of each of 1000 rows; INDIVIDUAL_DOT: 1.1 ms | 0.2 ms | 0.2 ms |
| | softmax of these rows; INDIVIDUAL_DOT: 1.5 ms | 0.8 ms | 0.7 ms |
| | a step of a convolutional network with pooling; INDIVIDUAL_DOT: 10.9 ms | 8.0 ms | 8.0 ms |
| REDUCE for many small products | the first training step of a transformer of 24 layers of 64 | 340 ms | 24 ms |
| | later ones | 19.9 ms | 18.8 ms |
| `disable_expensive_passes` | lowering and compiling the gradient of a network of 10 layers | 71.1 ms | 67.3 ms |
| | twenty operations on a million elements | | within the noise |
| `small_while_loop_byte_threshold` 400,000 | gradients of 16 of Lorenz's paths, 1,000 steps | 634 us | 87 us |
| instead of 1,024: loops that touch so | of a recurrent network of 8, 300 steps | 236 us | 97 us |
| many bytes in a step are one function | of 64 | 407 us | 250 us |
| | of 128, 1,000 steps | 4.8 ms | 4.1 ms |
| | of 128 with a batch of 32, a hundred steps of 4 x 64 x 64 | | within the noise |
| `disable_loop_unrolling` | lowering and compiling the gradient of a network of 10 layers of 10 | 58 ms | 46 ms |
| for small programs without loops | | | |
| and `disable_slp_vectorizer` for long ones | compiling a residual convolutional network of 50 layers | 2.6 s | 1.9 s |
| | runs of it, of a transformer, and of 100 sines of 10,000 numbers | | within the noise |
| `use_fusion_emitters` off for programs of | compiling 13 programs of Optimistix, CPU seconds | 4.9 | 2.0 |
| small arrays with loops (decision 984) | two of s2fft | 3.7 | 2.4 |
| | four of MJX | 13.5 | 7.6 |

Loops are not left rolled in others: a sine and a sum of 1,024 numbers in a loop take 0.92 instead of 0.53 ms.
`use_multi_output_fusion` compiles a fifth faster, but gradients of scans then copy what they update in place, and take
up to 400 times as long; `optimize_for_size` with `disable_slp_vectorizer` makes `gelu` of a million elements take 1.8
instead of 0.5 ms.

Single products outside loops take without the library 0.9 to 1.2 of the time where no operand or result has 2**15
elements, but 1.7 for 8 by 128 times the transpose of 128 by 128, and 1.7 to 3 for batches of more than 32 of 8 by 8.
Larger ones take up to 6 times as long (8 by 1,024 times the transpose of 1,024 by 1,024).

Tried without gain on these: REDUCE with products (ten layers and a sum: 4.0 ms, the transformer's step 49 ms, the first
gradient of a convolutional network of 50 layers 0.15 s more);
`optimization_level` 1 compiles as fast (67.6 ms), but the Hessian of Rosenbrock's function of 100 variables takes 113
instead of 70 µs; `prefer_vector_width` 512, `parallel_codegen_split_count`, another scheduler and no library fusion at
all (the gradient of ten layers: 11.2 ms) are no better, or worse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pullback.backends.compiler import equal_parts
from pullback.backends.compiler.backend import backend
from pullback.backends.compiler.small_loops import largest
from pullback.backends.hlo import weighted_sums

_FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
_DOT, _REDUCE = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT", "LIBRARY_FUSION_TYPE_REDUCE"

_COPIED_LATE = "xla_cpu_flatten_after_fusion"
"""Outlined functions are copied for each call only after their operations were fused, so that fusion runs once."""
_NO_SLP = "xla_cpu_disable_slp_vectorizer"
EMITTERS = "xla_cpu_use_fusion_emitters"
"""Whether fused operations become machine code by way of MLIR, which takes half of the time for compiling small ones.
It is off for programs of at least ``LINES`` lines with loops over arrays of at most ``SMALL`` elements, and for those
of at least ``VERY_LONG`` lines with loops that compute with elements and hardly move them."""
_SMALL_LOOPS, _ROLLED = "xla_cpu_small_while_loop_byte_threshold", "xla_cpu_disable_loop_unrolling"

OPTIONS: dict[str, Any] = {
    _FUSIONS: f"{_DOT},{_REDUCE}",
    "xla_llvm_disable_expensive_passes": True,
    _SMALL_LOOPS: 400_000,
}
"""Overrides of the compiler's defaults. An option that a release of the compiler does not know is dropped."""

SMALL = 1024
"""In programs without loops, of arrays with at most so many elements, the loops of machine code are not unrolled."""
LINES = 100
"""The least lines of a program for which ``EMITTERS`` is off: shorter ones compile in a tenth of a second."""
VERY_LONG, MOVING = 10_000, 50
"""Programs with loops of at least ``VERY_LONG`` lines are compiled without ``EMITTERS`` at any size, if at most one
line in ``MOVING`` moves elements: it takes half of the time. For programs that move many it takes three times as
long."""
CHAIN = 12
"""The most moves of elements one after the other, such as gathers, in a program for which ``EMITTERS`` is off: each may
double the code without them. Twelve take up to a second."""
_MOVES = {"gather", "reverse", "dynamic_slice"}
_MOVED = re.compile(
    r"stablehlo\.(?:concatenate|dynamic_slice|dynamic_update_slice|gather|pad|reverse|scatter|slice|transpose)\b"
)
_IN_MEMORY = {
    "case", "convolution", "custom_call", "dot_general", "fft", "if", "optimization_barrier", "reduce", "reduce_window",
    "scatter", "sort", "while",
}  # fmt: skip
"""Operations whose results the compiler writes to memory, so that a chain of moves ends there."""
_DEFINITION = re.compile(r'\s*(%\w+)(?::\d+)? = (?:"?(?:stablehlo|chlo)\.(\w+)"?|(?:func\.)?call)(.*)')
_NAME = re.compile(r"%\w+")
LONG, MIDDLING = 500, 2**16
"""Programs without loops of at least so many lines, of arrays with at most so many elements, take longest to compile:
the compiler does not unroll their loops, nor vectorise straight-line code (SLP)."""
REVERSALS = 8
"""Programs with more reversals have no small loops, and keep the emitters: the time for compiling them would be
exponential in reversals."""


LARGE = 2**15
"""The least elements of an operand or result with which a product is worth the library's preparation."""
MANY = 100
"""The most small products that the library computes: each takes 1 to 3 ms when it first runs."""
_PRODUCT = re.compile(r"stablehlo\.dot_general.*")


def _fusions(text: str) -> str:
    """Select what the CPU's library computes in a program without loops: the value of the option ``ynn_fusion_type``.

    The value stands for reductions if the program has only small matrix products, and these are more than ``MANY`` or
    the program has outlined functions. Otherwise it stands for matrix products.
    """
    products = _PRODUCT.findall(text)
    excessive = equal_parts.ATTRIBUTES in text or len(products) > MANY
    return _REDUCE if excessive and largest("\n".join(products)) < LARGE else _DOT


def _is_long_and_elementwise(text: str) -> bool:
    """Whether a program is ``VERY_LONG``, and at most one line in ``MOVING`` moves elements."""
    lines = text.count("\n")
    return lines >= VERY_LONG and len(_MOVED.findall(text)) * MOVING <= lines


def _may_do_without_emitters(text: str) -> bool:
    """Whether the emitters may be off: the compiler has the option, and no chain of moves is longer than ``CHAIN``."""
    if not backend().has_option(EMITTERS):
        return False
    chains: dict[str, int] = {}
    for line in text.split("\n"):
        if "func.func" in line:
            chains = {}
        elif found := _DEFINITION.match(line):
            name, operation, operands = found.groups()
            if operation is None or operation in _IN_MEMORY:
                continue
            longest = max([chains.get(x, 0) for x in _NAME.findall(operands)], default=0) + (operation in _MOVES)
            if longest > CHAIN:
                return False
            chains[name] = longest
    return True


def selected(platform: str, text: str, overrides: Sequence[tuple[str, Any]] = ()) -> list[tuple[str, Any]]:
    """Select the compiler's options for a program.

    Args:
      platform: the platform on which the program runs.
      text: the program as StableHLO.
      overrides: the user's options, which replace the defaults of this module.

    Returns:
      The names and values of the options, sorted.
    """
    options = dict(OPTIONS) if platform == "cpu" else {}
    if options:
        loops = "stablehlo.while" in text
        if _FUSIONS in options and not loops and "stablehlo.dot_general" in text:
            options[_FUSIONS] = _fusions(text)
        if _REDUCE in options.get(_FUSIONS, "") and weighted_sums.are_in(text):  # REDUCE computes these wrongly
            options[_FUSIONS] = _DOT if _DOT in options[_FUSIONS] else ""
        size = largest(text)
        if loops and text.count("stablehlo.reverse") > REVERSALS:
            options[_SMALL_LOOPS] = 0
        elif (
            loops
            and ((size <= SMALL and text.count("\n") >= LINES) or _is_long_and_elementwise(text))
            and _may_do_without_emitters(text)
        ):
            options[EMITTERS] = False
        if not loops and size <= SMALL:
            options[_ROLLED] = True
        elif not loops and size <= MIDDLING and text.count("\n") >= LONG:
            options[_ROLLED] = options[_NO_SLP] = True
        if equal_parts.ATTRIBUTES in text:
            options[_COPIED_LATE] = True
    return sorted({**options, **dict(overrides)}.items())
