"""Masked products, in which a zero tangent stays zero: the implementation of the switch ``masked_zeros``.

A tangent or cotangent of exactly zero means that a value has no influence, as in a branch that is not taken. In
arithmetic its product with an infinite or undefined derivative is NaN; it should be zero. ``Primitive.masked`` of a
primitive that multiplies is another primitive, whose parameter ``zeros`` has a flag for each operand: whether its
zeros make zeros, whatever the other factor. Tapes record it (``core.linear``). Rules that compute with values are run
on the tracers of this module, which mark tangents.
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
    """Return the variant of a product in which zero times infinity or NaN is zero: a primitive and its parameters.

    Only zeros of operands flagged by ``zeros`` have this effect. Return ``primitive`` and ``params`` unchanged if the
    primitive has no such variant, or if an operand is a finite, nonzero Python number.

    Args:
      primitive: the primitive of any operation.
      params: the parameters of the operation.
      operands: the operands of the operation.
      zeros: a flag for each operand.
    """
    product = primitive.masked
    if product is None:
        return primitive, params
    for x in operands:
        if type(x) in SCALARS and x and math.isfinite(x.real) and math.isfinite(x.imag):
            return primitive, params
    return product, {**params, "zeros": zeros}


class MaskTracer(Tracer):
    """A tracer of a tangent or cotangent whose zeros make products zero, even products with infinity or NaN."""

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
    """Return a trace that passes operations to ``parent``; products with a zero of a ``MaskTracer`` are zero there."""
    return RelayTrace(parent, _relay, transformation="differentiation with masked zeros")


def _relay(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    own = tuple([type(x) is MaskTracer and x._trace is trace for x in args])
    if True not in own:
        return trace.parent.process(primitive, args, params)
    values = tuple([x.value if is_own else x for x, is_own in zip(args, own, strict=True)])
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
    """Return a ``MaskTracer`` of ``trace`` for the tangent ``x``; return the symbolic ``ZERO`` unchanged."""
    return x if x is ZERO else MaskTracer(trace, x)


def unmarked(trace: Trace, x: Any) -> Any:
    """Return the value of ``x`` if it is a ``MaskTracer`` of ``trace``; return any other value unchanged."""
    return x.value if type(x) is MaskTracer and x._trace is trace else x


def run_masked(run: Callable[..., Sequence[Any]], operands: Sequence[Any], marked: Sequence[bool]) -> list[Any]:
    """Return the results of ``run(*operands)``, computed so that zero times infinity or NaN is zero.

    Only zeros of the operands flagged by ``marked``, and of values computed from these operands, have this effect.
    """
    trace = mask_trace(state.trace)
    results = trace.run(run, *[mark(trace, x) if flag else x for x, flag in zip(operands, marked, strict=True)])
    return [unmarked(trace, x) for x in results]


def with_masked_zeros(
    rule: Callable[[Sequence[Any], Sequence[Any]], list[Any]], residuals: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """Return ``rule(residuals, values)``, the results of a user's derivative rule.

    ``values`` are tangents or cotangents. If the switch ``masked_zeros`` is on, a zero of ``values`` times infinity or
    NaN is zero. In eager evaluation the rule first runs with ordinary products, and runs again with masked products
    only if a result has a NaN.
    """
    if not config.masked_zeros:
        return rule(residuals, values)
    if state.trace is EVAL:
        results = rule(residuals, values)
        if not any(type(x) is ArrayImpl and dtypes.is_inexact(x.dtype) and has_nan(x._value) for x in results):
            return results
    return run_masked(lambda *values: rule(residuals, values), values, [True] * len(values))


def has_nan(x: Any) -> bool:
    """Whether the NumPy array ``x`` has a NaN among its elements."""
    if x.shape == ():
        return bool(x != x)
    if x.dtype.char in "fdFD":
        # The sum of squares is NaN only if a square is, and takes a fifth of the time of ``np.isnan(x).any()``.
        flat = x if x.ndim == 1 else x.ravel()
        total = flat.dot(flat)
        if total == total:
            return False
    return bool((x != x).any())
