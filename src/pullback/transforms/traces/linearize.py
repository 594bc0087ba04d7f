"""Linearisation: a function's value at a point, and its derivative there as a linear program.

Each primitive's derivative rule runs with the values of the function as primals and with linear tracers as
tangents; what it does to the tangents is the program. Nothing is evaluated twice, and there is no second set
of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import Array, typeof
from pullback.core.errors import NotLinearError, PullbackError
from pullback.core.linear import LinearProgram, LinearTrace, LinearVar
from pullback.core.trace import Primitive, check_result, missing_rule, state
from pullback.core.types import ZERO
from pullback.transforms.traces.forward import JVPTrace, JVPTracer


def refused(tape: LinearTrace, primitive: Primitive, how: str) -> PullbackError:
    """The error for an operation that a derivative rule does to tangents, and that is not linear in them."""
    error: PullbackError
    if primitive.transpose_rule is None:
        error = missing_rule(
            primitive,
            "transpose",
            "reverse-mode differentiation (linearize, vjp or grad)",
            '; derivatives.vjp_from_jvp(f, "basis") differentiates a function in reverse without it',
        )
    else:
        error = NotLinearError(
            f"a jvp rule applied {primitive.name} to tangents in which it is not linear, in the derivative of "
            f"{source.describe_function(tape.function)}, at {source.describe(source.here())}; a tangent must be linear "
            "in the tangents that the rule is given"
        )
    error.trace = tape
    return error


def is_tape(trace: Any) -> bool:
    """Whether a trace records what derivative rules do to tangents."""
    return isinstance(trace, LinearTrace) and trace.error is refused


def linearize_flat(
    function: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Array], active: Sequence[bool] | None = None
) -> tuple[list[Any], LinearProgram]:
    """The values of ``run(*primals)`` and its derivative as a linear program.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      active: which primals to differentiate with respect to; all inexact ones by default. The program has one
        input for each active primal.

    Returns:
      The list of results, and the program; its outputs are ``ZERO`` where a result does not depend on the inputs.
    """
    parent = state.trace
    tape = LinearTrace(parent, function, error=refused)
    trace = JVPTrace(parent, function, tape)
    inputs: list[LinearVar] = []
    args: list[Any] = []
    for i, x in enumerate(primals):
        if active is not None and not active[i]:
            args.append(x)
            continue
        aval = typeof(x)
        if dtypes.is_inexact(aval.dtype):
            t = tape.input(aval)
            args.append(JVPTracer(trace, x, t, None))
        else:
            t = tape.input(aval.update(dtype=dtypes.float0))
            args.append(x)
        inputs.append(t.variable)
    state.trace = trace
    try:
        results = run(*args)
    finally:
        state.trace = trace.parent
        trace.live = tape.live = False
    outs: list[Any] = []
    ends: list[Any] = []
    for x in results:
        if type(x) is JVPTracer and x._trace is trace:
            outs.append(x.primal)
            ends.append(x.tangent.variable)
        else:
            check_result(x)
            outs.append(x)
            ends.append(ZERO)
    nodes, tape.nodes = tape.nodes, []  # a rule among them may hold a value of this trace, and that the tape
    return outs, LinearProgram(nodes, inputs, ends, tape.count)
