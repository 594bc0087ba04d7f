"""Programs of small arrays that run fastest if they are compiled to one function: with loops, or on one thread.

The runtime starts the kernels of a program one by one, some of them on other threads, which takes about ten
microseconds each time. It runs a loop over small arrays as one function, with the loops within; but each constant and
each sum of a few numbers around the loop is a kernel. So a program of small arrays with a loop in it becomes a
function, which is called like a small loop.

Measured on two cores, jaxlib 0.10.2, medians of runs, and of compiling:

| program | kernels | one function, or two |
|---|---|---|
| the gradient of a pendulum by ``odeint`` (two) | 127 us, 465 ms | 64 us, 376 ms |
| the gradient of Newton's iteration | 24 us, 131 ms | 23 us, 100 ms |
| the gradient of 300 steps of Lorenz's equations | 46 us, 38 ms | 40 us, 34 ms |
| 50 steps of a Markov chain, whose random bits are many operations | 54 us, 163 ms | 63 us, 206 ms |

The compiler divides an elementwise kernel between threads as soon as it reads, writes and computes for some
microseconds on one, and to wake another thread takes longer than that. One function runs on one thread. Microseconds of
calls, two cores that did other things too, the least of 15 blocks:

| program | elements | kernels | one function |
|---|---|---|---|
| the gradient of `gelu` by `erf` | 1,000 | 28 | 7 |
| | 2,000 | 20 | 12 |
| | 4,000 | 42 | 21 |
| | 8,000 | 66 | 29 |
| | 16,000 | 62 | 49 |
| | 32,000 | 61 | 72 |
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from pullback.core.jaxpr import Eqn, Jaxpr, Var, subjaxprs
from pullback.core.types import ShapedArray

ATTRIBUTES = 'mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}'
"""The attributes that keep the compiler from inlining a function, and let it run the call as a small loop."""
MOST_ELEMENTS = 1024
"""The most elements of an array in a program that is compiled to one function."""
HALVED = 200
"""Programs of at least so many equations are compiled as two halves at the same time."""

DIVIDED = 200_000
"""The cost from which the compiler divides a kernel between threads: its operations for all elements, and ten for each
byte that it reads or writes."""
FOR_ONE_THREAD = 1_000_000
"""The most operations for all elements that one thread computes before another one would have woken."""
HEAVY, OF_CHLO = 20, 100
"""How many operations of the processor a sine is, and an operation of chlo. The compiler counts one for a sine."""

_OPERATION = r"(?:stablehlo|chlo)\.\w+"
_SHAPE = r"tensor<((?:\d+x)+)"
_LOOP = "stablehlo.while"
_WORK = {
    **dict.fromkeys(("broadcast_in_dim", "constant", "reshape"), 0),
    **dict.fromkeys((
        "abs", "add", "and", "bitcast_convert", "clamp", "compare", "convert", "maximum", "minimum", "multiply",
        "negate", "not", "or", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
        "subtract", "xor",
    ), 1),
    **dict.fromkeys((
        "atan2", "cbrt", "ceil", "cosine", "divide", "exponential", "exponential_minus_one", "floor", "is_finite",
        "log", "log_plus_one", "logistic", "power", "round_nearest_afz", "round_nearest_even", "rsqrt", "sine", "sqrt",
        "tan", "tanh",
    ), HEAVY),
}  # fmt: skip
"""How many operations of the processor an elementwise operation of StableHLO is, about."""
_ALLOWED = {
    "abs", "add", "and", "atan2", "bitcast_convert", "broadcast_in_dim", "case", "cbrt", "ceil", "clamp", "compare",
    "complex", "concatenate", "constant", "convert", "cosine", "count_leading_zeros", "divide", "dynamic_slice",
    "dynamic_update_slice", "exponential", "exponential_minus_one", "floor", "gather", "if", "imag", "iota",
    "is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not",
    "optimization_barrier", "or", "pad", "popcnt", "power", "real", "reduce", "reduce_precision", "remainder",
    "reshape", "return", "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "slice", "sqrt", "subtract", "tan", "tanh",
    "transpose", "while", "xor",
}  # fmt: skip
"""StableHLO operations that compile well in a function that runs as a small loop. Missing are products, which the
runtime's library computes faster, custom calls, and reversals, a chain of which takes exponential time to compile."""


def is_small_loop(lines: Iterable[str]) -> bool:
    """Whether a StableHLO program has a loop, no large array, and only operations that run well in small loops."""
    text = "\n".join(lines)
    return _LOOP in text and largest(text) <= MOST_ELEMENTS and all(map(_is_allowed, set(re.findall(_OPERATION, text))))


def is_for_one_thread(lines: Sequence[str], avals: Iterable[ShapedArray]) -> bool:
    """Whether a StableHLO program is elementwise, and takes less time than another thread takes to wake.

    The result is False as well if the compiler divides no kernel of the program in any case.

    Args:
      lines: the operations.
      avals: the types of the arguments and results.
    """
    text = "\n".join(lines)
    works = []
    for found in re.finditer(_OPERATION, text):
        dialect, _, name = found[0].partition(".")
        work = _WORK.get(name) if dialect == "stablehlo" else None if name == "top_k" else OF_CHLO
        if work is None:
            return False
        works.append(work)
    size = largest(text)
    moved = sum([a.size * a.dtype.itemsize for a in avals])
    counted = size * sum([1 if work == HEAVY else work for work in works])  # by the compiler
    return counted > moved and counted + 10 * moved >= DIVIDED and size * sum(works) <= FOR_ONE_THREAD


def _is_allowed(operation: str) -> bool:
    dialect, _, name = operation.partition(".")
    # All operations of chlo except top_k are elementwise.
    return name in _ALLOWED if dialect == "stablehlo" else name != "top_k"


def largest(text: str) -> int:
    """The number of elements of the largest array in the text of a program."""
    return max([math.prod(map(int, shape[:-1].split("x"))) for shape in set(re.findall(_SHAPE, text))], default=1)


def halves(jaxpr: Jaxpr) -> list[Jaxpr]:
    """Cut a program into two programs of about the same size. Programs of fewer than ``HALVED`` equations are not cut.

    Returns:
      One or two programs, in order. Each returns those variables that the other one, or the caller, needs.
    """
    counted: dict[Jaxpr, int] = {}
    sizes = list(itertools.accumulate(_size(eqn, counted) for eqn in jaxpr.eqns))
    cut = min(range(1, len(sizes) + 1), key=lambda i: abs(2 * sizes[i - 1] - sizes[-1]))
    if sizes[-1] < HALVED:
        cut = len(sizes)
    programs, needed = [], {a for a in jaxpr.outvars if type(a) is Var}
    for eqns in (jaxpr.eqns[cut:], jaxpr.eqns[:cut]):
        defined = [v for eqn in eqns for v in eqn.outvars]
        used = {a: None for eqn in eqns for a in eqn.invars if type(a) is Var}
        outs = [v for v in defined if v in needed]
        own = set(defined)
        invars = [v for v in used if v not in own]
        needed.update(invars)
        if outs:
            programs.append(Jaxpr([], invars, eqns, outs))
    return programs[::-1]


def _size(eqn: Eqn, counted: dict[Jaxpr, int]) -> int:
    """Count an equation and all equations of its inner programs, at any depth; ``counted`` caches counts by program."""
    size = 1
    for jaxpr in subjaxprs(eqn):
        if jaxpr not in counted:
            counted[jaxpr] = sum(_size(inner, counted) for inner in jaxpr.eqns)
        size += counted[jaxpr]
    return size
