"""Transposition: recording a linear function as a linear program, and running it backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.linear import LinearProgram, LinearTrace
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.primitives.elementwise import add_any


def linear_program(
    trace: LinearTrace, run: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]
) -> tuple[Sequence[Any], LinearProgram]:
    """Record a linear function; return its results, as tracers or constants, and the linear program.

    Args:
      trace: a new trace; it records the program and then ends.
      run: takes and returns flat sequences of arrays; it is linear in all of its arguments jointly.
      avals: the types of the inputs.
    """
    inputs = [trace.input(a) for a in avals]
    state.trace = trace
    try:
        outs = run(*inputs)
    finally:
        state.trace = trace.parent
        trace.live = False
    return outs, LinearProgram(trace.nodes, [x.variable for x in inputs], list(map(trace.end, outs)), trace.count)


def transpose_flat(
    trace: LinearTrace,
    run: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    cotangents: Sequence[Any],
    add: Callable[[Any, Any], Any] = add_any,
) -> list[Any]:
    """Transpose a linear function: return a cotangent for each input, or ``ZERO`` if no result depends on the input.

    Args:
      trace, run, avals: a new trace to record the function with; the function, of flat arrays; the types of its inputs.
      cotangents: a cotangent, or ``ZERO``, for each result.
      add: adds two cotangents of a variable.
    """
    _, program = linear_program(trace, run, avals)
    return program.transpose(cotangents, add)
