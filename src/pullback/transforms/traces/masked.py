"""Forward mode with masked zeros: a zero tangent stays zero if multiplied by an infinite or undefined derivative."""

from __future__ import annotations

from typing import Any

from pullback.core.array import ArrayImpl
from pullback.core.masking import has_nan, mark, mask_trace, unmarked
from pullback.core.trace import EVAL, Primitive, state
from pullback.transforms.traces.batch import BatchTrace, BatchTracer
from pullback.transforms.traces.provenance import within_scope_of


def masked_results(
    trace: Any,
    tracer: Any,
    primitive: Primitive,
    args: tuple[Any, ...],
    primals: tuple[Any, ...],
    params: dict[str, Any],
) -> Any:
    """Apply an operation in forward mode; return its results as tracers.

    A tangent that is zero stays zero even if a derivative is infinite or NaN: such products are masked. If all values
    are known, tangents are first computed without masks, which is faster and suffices if none has a NaN.

    Args:
      trace, tracer: the trace of forward mode, and its class of tracers.
      primitive, args, params: the operation.
      primals: the operands without their tangents.
    """
    known = trace.parent
    while isinstance(known, BatchTrace):
        known = known.parent
    rules = trace.rules
    if state.scope is not None or state.bottom.watches:
        rules = within_scope_of(rules, primitive, primals, params)

    def is_own(x: Any) -> bool:
        return type(x) is tracer and x._trace is trace

    if known is EVAL and not primitive.effect:  # values are known: try without masks first, which is faster
        out = trace.process(primitive, args, params, rules)
        if not any(is_own(x) and _is_undefined(x.tangent) for x in (out if primitive.multiple_results else [out])):
            return out
    masks = mask_trace(rules)
    marked = [tracer(trace, x.primal, mark(masks, x.tangent), x.made_at) if is_own(x) else x for x in args]
    try:
        out = trace.process(primitive, tuple(marked), params, masks)
    finally:
        masks.live = False
    results = []
    for x in out if primitive.multiple_results else [out]:
        if is_own(x):
            x.primal, x.tangent = unmarked(masks, x.primal), unmarked(masks, x.tangent)
        results.append(unmarked(masks, x))
    return results if primitive.multiple_results else results[0]


def _is_undefined(tangent: Any) -> bool:
    """Whether a tangent has a NaN, or may have one, since it is traced."""
    while type(tangent) is BatchTracer:
        tangent = tangent.value
    return type(tangent) is not ArrayImpl or has_nan(tangent._value)
