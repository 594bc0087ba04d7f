"""Zeros that stay zero: what the switch ``masked_zeros`` makes of products of tangents and derivatives.

A tangent or cotangent of exactly zero says that a value has no influence, as that of a branch which is not taken. Its
product with an infinite or undefined derivative is NaN in arithmetic, and should be zero. A primitive that multiplies
has another one that says so, ``Primitive.masked``: its parameter ``zeros`` has a flag for each operand, whether a zero
of it makes a zero, whatever it is multiplied by. Tapes record it (``core.linear``); rules that compute with values are
run on tracers that mark those, here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes
from pullback.core.array import SCALARS, ArrayImpl, typeof
from pullback.core.config import config
from pullback.core.trace import EVAL, Primitive, RelayTrace, Trace, Tracer, state
from pullback.core.types import ZERO, ShapedArray


def masked(
    primitive: Primitive, params: dict[str, Any], operands: Sequence[Any], zeros: tuple[bool, ...]
) -> tuple[Primitive, dict[str, Any]]:
    """The product, and its parameters, in which the operands that ``zeros`` marks make zeros.

    It is the primitive itself if the other operand is a number that is finite, and not zero where it divides.
    """
    product = primitive.masked
    if product is None:
        return primitive, params
    for x in operands:
        if type(x) in SCALARS and x and math.isfinite(x.real) and math.isfinite(x.imag):
            return primitive, params
    return product, {**params, "zeros": zeros}


class MaskTracer(Tracer):
    """A tangent or cotangent that is given to a rule as a value."""

    __slots__ = ("value",)

    def __init__(self, trace: Trace, value: Any) -> None:
        self._trace = trace
        self.value = value
        self.made_at = None

    @property
    def aval(self) -> ShapedArray:
        return typeof(self.value)

    def concrete(self) -> Any:
        return self.value.concrete() if isinstance(self.value, Tracer) else self.value

    def differentiated(self) -> Tracer | None:
        return self.value.differentiated() if isinstance(self.value, Tracer) else None

    def abstract_part(self) -> Tracer:
        return self.value.abstract_part() if isinstance(self.value, Tracer) else self


def mask_trace(parent: Trace) -> RelayTrace:
    """A trace that hands all operations on, those that multiply what :func:`mark` marked as their masked ones."""
    return RelayTrace(parent, _relay, transformation="differentiation with masked zeros")


def _relay(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    own = tuple([type(x) is MaskTracer and x._trace is trace for x in args])
    if True not in own:
        return trace.parent.process(primitive, args, params)
    values = tuple([x.value if mine else x for x, mine in zip(args, own, strict=True)])
    if primitive.masked is not None:
        primitive, params = masked(primitive, params, values, own)
    previous = state.trace
    state.trace = trace.parent
    try:
        out = trace.parent.process(primitive, values, params)
    finally:
        state.trace = previous
    if primitive.multiple_results:
        return [MaskTracer(trace, x) for x in out]
    return MaskTracer(trace, out)


def mark(trace: Trace, x: Any) -> Any:
    """A tangent, as an operand of a rule; ``ZERO`` as it is."""
    return x if x is ZERO else MaskTracer(trace, x)


def unmarked(trace: Trace, x: Any) -> Any:
    """A result of a rule, as it is outside of a trace of masks."""
    return x.value if type(x) is MaskTracer and x._trace is trace else x


def run_masked(run: Callable[..., Sequence[Any]], operands: Sequence[Any], marked: Sequence[bool]) -> list[Any]:
    """The results of ``run(*operands)``, where zeros of what is marked make zeros, whatever they multiply."""
    trace = mask_trace(state.trace)
    results = trace.run(run, *[mark(trace, x) if flag else x for x, flag in zip(operands, marked, strict=True)])
    return [unmarked(trace, x) for x in results]


def with_masked_zeros(
    rule: Callable[[Sequence[Any], Sequence[Any]], list[Any]], residuals: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """What a rule of the user's returns for some tangents or cotangents, whose zeros make zeros if the switch is on.

    Where values are known, they are marked only once the rule has returned a NaN.
    """
    if not config.masked_zeros:
        return rule(residuals, values)
    if state.trace is EVAL:
        results = rule(residuals, values)
        if not any(type(x) is ArrayImpl and dtypes.is_inexact(x.dtype) and has_nan(x._value) for x in results):
            return results
    return run_masked(lambda *values: rule(residuals, values), values, [True] * len(values))


def has_nan(x: Any) -> bool:
    """Whether an element of NumPy's is not a number."""
    if x.shape == ():
        return bool(x != x)
    if x.dtype.char in "fdFD":
        # The sum of squares is NaN only if a square is, and is a fifth of the time of ``np.isnan(x).any()``.
        flat = x if x.ndim == 1 else x.ravel()
        total = flat.dot(flat)
        if total == total:
            return False
    return bool((x != x).any())
