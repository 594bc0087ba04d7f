"""Detection of affine functions, which ``linear_transpose`` refuses, where values are known."""

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
    """Whether a value has a nonzero element; False if the value is traced, and so unknown."""
    check_result(x)
    value = x.concrete() if isinstance(x, Tracer) else x
    return value is not None and bool(host_value(value).any())


def _is_constant(x: Any) -> bool:
    """Whether ``x``, the result of an operation on zeros, has a nonzero element: a constant that the operation adds.

    NaNs do not count, since an operation fills elements with NaN where an index is out of range. False if ``x`` is
    traced, and its value unknown.
    """
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        return False
    elements = host_value(value)
    return bool(((elements != 0) & (elements == elements)).any())


def is_affine(node: LinearVar, trace: Trace) -> bool:
    """Whether an operation on a tape adds a nonzero constant, and so is affine instead of linear.

    To decide, the operation is evaluated under ``trace`` with zeros for its linear operands.
    """
    primitive, operands, params = node.primitive, node.args, node.params
    if primitive is None or primitive.linear_in == "each" or all(map(is_linear, operands)):
        return False
    if primitive.linear_in is None:
        if not any(_may_be_nonzero(x) for x in operands if not is_linear(x)):
            return False  # without evaluating it: a linear map of zeros is zero
    elif not _may_add(primitive, operands, params):
        return False
    at_zero = tuple([zeros_of(x.aval) if is_linear(x) else x for x in operands])
    results = trace.process(primitive, at_zero, params)
    if not primitive.multiple_results:
        return _is_constant(results)
    dependent = [True] * len(results)
    if primitive.partial_eval_rule is not None:  # a loop also returns values that depend on no linear operand
        dependent = split_known_linear(primitive, params, operands, tuple(map(is_linear, operands))).dependent
    return any(depends and _is_constant(x) for x, depends in zip(results, dependent, strict=True))


def _may_add(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether an operation may add a constant to a map that is linear in its linear operands.

    The constant is an operand, such as a term of a sum, or a parameter, such as a fill value.
    """
    linear = [i for i, x in enumerate(operands) if is_linear(x)]
    part = linear_part(primitive, linear, len(operands), params)
    if part is None:
        return False
    if part.params is not params and part.params != params:
        return True
    return any(_may_be_nonzero(operands[i]) for i in part.joint if i not in linear)


def _may_be_nonzero(x: Any) -> bool:
    """Whether a constant operand is inexact, and has a nonzero element or is traced."""
    if type(x) in SCALARS:
        return bool(x)
    return dtypes.is_inexact(x.dtype) and (type(x) is not ArrayImpl or bool(host_value(x).any()))


def checked_trace(function: Any) -> LinearTrace:
    """Return a trace that records a linear function on a tape, and raises at an operation that adds a nonzero constant.

    The trace stores the user's source line of each operation. ``function`` is the user's function, for error messages.
    """
    return LinearTrace(state.trace, function, _check)


def refused_if_affine(
    trace: LinearTrace, run: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]
) -> tuple[Sequence[Any], LinearProgram]:
    """Record a linear function on a tape; raise if it is not linear.

    Args:
      trace: the trace of the tape, from :func:`checked_trace`: the trace raises at an operation that adds a constant.
      run: takes and returns flat sequences of arrays.
      avals: the types of the inputs.

    Returns:
      The results, as tracers or constants; and the linear program.

    Raises:
      NotLinearError: an operation adds a nonzero constant, or a result is a nonzero constant (a TypeError).
    """
    outs, program = linear_program(trace, run, avals)
    for x, end in zip(outs, program.outputs, strict=True):
        if end is ZERO and x is not ZERO and _is_nonzero(out_leaf(x, trace.function)):
            raise NotLinearError(
                f"{name_of(trace.function)} is not linear: it returned {x}, which is nonzero and does not depend on "
                f"its arguments"
            )
    return outs, program


def _check(trace: LinearTrace, node: LinearVar, tracers: list[LinearTracer]) -> None:
    """Raise if the recorded operation ``node`` adds a constant; otherwise set the user's source line of ``tracers``."""
    if trace.parent.eager and is_affine(node, trace.parent):
        assert node.primitive is not None
        raise trace.not_linear(node.primitive, "with a nonzero constant is affine, not linear")
    made_at = source.here()
    for tracer in tracers:
        tracer.made_at = made_at
