"""Linearisation: the value of a function at a point, and its derivative there as a linear program.

Each jvp rule runs with the values of the function as primals and with linear tracers as tangents; the operations on
the tracers are the linear program. So no value is computed twice, and reverse mode needs no rules of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import Array, typeof
from pullback.core.errors import NotLinearError, PullbackError
from pullback.core.linear import LinearProgram, LinearTrace, LinearVar
from pullback.core.trace import Primitive, check_result, missing_rule, state
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.traces.forward import JVPTrace, JVPTracer


def refused(tape: LinearTrace, primitive: Primitive, how: str) -> PullbackError:
    """Return the error for an operation on tangents, in a jvp rule, that cannot be transposed; ``how`` is unused."""
    error: PullbackError
    if primitive.transpose_rule is None:
        error = missing_rule(
            primitive,
            "transpose",
            "reverse-mode differentiation (linearize, vjp or grad)",
            '; derivatives.vjp_from_jvp(f, "basis") differentiates a function in reverse mode without it',
        )
    else:
        error = NotLinearError(
            f"a jvp rule applied {primitive.name} to tangents in which it is not linear, in the derivative of "
            f"{source.describe_function(tape.function)}, at {source.describe(source.here())}; a tangent must be "
            f"linear in the input tangents"
        )
    error.trace = tape
    return error


def is_tape(trace: Any) -> bool:
    """Whether a trace is the tape of a linearisation."""
    return isinstance(trace, LinearTrace) and trace.error is refused


def linearize_flat(
    function: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Array], active: Sequence[bool] | None = None
) -> tuple[list[Any], LinearProgram]:
    """Evaluate ``run(*primals)``, and return the results and the derivative as a linear program.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      active: which primals to differentiate with respect to, by default all. The program has an input for each; the
        input is of dtype float0 if the primal is not inexact.

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
        if dtypes.is_inexact(aval.dtype) or type(aval) is not ShapedArray:
            t = tape.input(aval if type(aval) is ShapedArray else aval.to_tangent_aval())
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
    nodes, tape.nodes = tape.nodes, []  # breaks a cycle: a node may hold a value of this trace
    return outs, LinearProgram(nodes, inputs, ends, tape.count)
