"""Functions that should be linear, and add a constant: what ``linear_transpose`` refuses, where values are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import SCALARS, ArrayImpl, host_value
from pullback.core.errors import NotLinearError
from pullback.core.linear import LinearProgram, LinearTrace, LinearTracer, LinearVar, is_linear
from pullback.core.linearity import linear_part
from pullback.core.trace import Primitive, Trace, Tracer, check_result, state
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.transforms.functions.arguments import name_of, out_leaf
from pullback.transforms.traces.known_linear import split_known_linear
from pullback.transforms.traces.transpose import linear_program


def _is_nonzero(x: Any) -> bool:
    """Whether a value is not zero, as far as it is known."""
    check_result(x)
    value = x.concrete() if isinstance(x, Tracer) else x
    return value is not None and bool(host_value(value).any())


def _is_constant(x: Any) -> bool:
    """Whether what an operation makes of zeros is a constant that it adds; the NaN of an index outside is none."""
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        return False
    elements = host_value(value)
    return bool(((elements != 0) & (elements == elements)).any())


def is_affine(node: LinearVar, trace: Trace) -> bool:
    """Whether an operation on a tape adds a constant, as far as its values are known; ``trace`` computes."""
    primitive, operands, params = node.primitive, node.args, node.params
    if primitive is None or primitive.linear_in == "each" or all(map(is_linear, operands)):
        return False
    if primitive.linear_in is None:
        if not any(_may_be_nonzero(x) for x in operands if not is_linear(x)):
            return False
    elif not _may_add(primitive, operands, params):
        return False
    at_zero = tuple([zeros_of(x.aval) if is_linear(x) else x for x in operands])
    results = trace.process(primitive, at_zero, params)
    if not primitive.multiple_results:
        return _is_constant(results)
    dependent = [True] * len(results)
    if primitive.partial_eval_rule is not None:  # a loop computes values beside what is linear
        dependent = split_known_linear(primitive, params, operands, tuple(map(is_linear, operands))).dependent
    return any(depends and _is_constant(x) for x, depends in zip(results, dependent, strict=True))


def _may_add(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether an operation that is linear in some operands may add a constant: one of these, or of its parameters."""
    linear = [i for i, x in enumerate(operands) if is_linear(x)]
    part = linear_part(primitive, linear, len(operands), params)
    if part is None:
        return False
    if part.params is not params and part.params != params:
        return True
    return any(_may_be_nonzero(operands[i]) for i in part.joint if i not in linear)


def _may_be_nonzero(x: Any) -> bool:
    """Whether a constant operand can make the result of a linear operation other than zero."""
    if type(x) in SCALARS:
        return bool(x)
    return dtypes.is_inexact(x.dtype) and (type(x) is not ArrayImpl or bool(host_value(x).any()))


def checked_trace(function: Any) -> LinearTrace:
    """A trace that records a linear function, refuses what is affine, and remembers the user's lines."""
    return LinearTrace(state.trace, function, _check)


def refused_if_affine(
    trace: LinearTrace, run: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]
) -> tuple[Sequence[Any], LinearProgram]:
    """As :func:`linear_program`, of a :func:`checked_trace`: what does not depend on the inputs has to be zero.

    Raises:
      NotLinearError: the function is not linear (a TypeError).
    """
    outs, program = linear_program(trace, run, avals)
    for x, end in zip(outs, program.outputs, strict=True):
        if end is ZERO and x is not ZERO and _is_nonzero(out_leaf(x, trace.function)):
            raise NotLinearError(
                f"{name_of(trace.function)} is not linear: it returned {x}, which does not depend on its arguments, "
                "and is not zero"
            )
    return outs, program


def _check(trace: LinearTrace, node: LinearVar, tracers: list[LinearTracer]) -> None:
    """Refuse an operation that was recorded and adds a constant, and remember the user's line."""
    if trace.parent.eager and is_affine(node, trace.parent):
        assert node.primitive is not None
        raise trace.not_linear(node.primitive, "with a constant that is not zero is affine, not linear")
    made_at = source.here()
    for tracer in tracers:
        tracer.made_at = made_at
