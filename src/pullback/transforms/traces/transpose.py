"""Transposition: a linear function as a linear program, which runs backwards."""

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
    """The results of ``run`` for linear inputs, and ``run`` as a linear program.

    Args:
      trace: records the program, for this once.
      run: takes and returns flat sequences of arrays; it is linear in all of its arguments together.
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
    """The cotangents of the inputs of a linear function, ``ZERO`` where its results do not depend on an input.

    Args:
      trace, run, avals: see :func:`linear_program`.
      cotangents: one for each result; ``ZERO`` is allowed.
      add: how two cotangents of one variable are summed.
    """
    _, program = linear_program(trace, run, avals)
    return program.transpose(cotangents, add)
