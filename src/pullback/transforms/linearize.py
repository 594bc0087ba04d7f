"""Linearisation: a function's value at a point, and its derivative there as a linear program.

Each primitive's derivative rule runs with the values of the function as primals and with linear tracers as
tangents; what it does to the tangents is the program. Nothing is evaluated twice, and there is no second set
of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import source
from pullback.core.array import Array, ArrayImpl, host_value, typeof
from pullback.core.dtypes import tangent_dtype
from pullback.core.errors import NotLinearError
from pullback.core.linear import LinearProgram, LinearTrace, LinearTracer
from pullback.core.trace import Primitive, Trace, Tracer, missing_rule, state
from pullback.core.types import ZERO, ShapedArray


class LinearizeTracer(Tracer):
    """A value with a tangent that is a variable of a linear program."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any, made_at: source.Location | None) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.made_at = made_at

    @property
    def aval(self) -> ShapedArray:
        return typeof(self.primal)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The size of each axis."""
        return self.primal.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        """The type of an element."""
        return self.primal.dtype

    @property
    def weak_type(self) -> bool:  # type: ignore[override]
        """Whether the type gives way to that of other operands."""
        return self.primal.weak_type  # type: ignore[no-any-return]

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class LinearizeTrace(Trace):
    """Computes values with its parent, and records what happens to their tangents on a tape."""

    __slots__ = ("tape",)
    transformation = "differentiation (linearize, vjp or grad)"

    def __init__(self, parent: Trace, function: Any) -> None:
        super().__init__(parent, function)
        self.tape = LinearTrace(parent, function)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        tangents: list[Any] | None = None
        for i, x in enumerate(args):
            if type(x) is LinearizeTracer and x._trace is self:
                if tangents is None:
                    primals = list(args)
                    tangents = [ZERO] * len(args)
                primals[i] = x.primal
                tangents[i] = x.tangent
        if tangents is None:
            return self.parent.process(primitive, args, params)
        rule = primitive.jvp_rule
        if rule is None:
            raise missing_rule(primitive, "jvp", "differentiation")
        previous = state.trace
        state.trace = self.tape
        try:
            out, tangent = rule(primals, tangents, **params)
        finally:
            state.trace = previous
        made_at = source.here() if previous is self else None
        if primitive.multiple_results:
            return [
                LinearizeTracer(self, o, t, made_at) if type(t) is LinearTracer else without_tangent(o, t, primitive)
                for o, t in zip(out, tangent, strict=True)
            ]
        if type(tangent) is LinearTracer:
            tangent.var._shape = out.shape
            return LinearizeTracer(self, out, tangent, made_at)
        return without_tangent(out, tangent, primitive)


def without_tangent(out: Any, tangent: Any, primitive: Primitive) -> Any:
    """A result whose tangent does not depend on the tangents of the operands, so that it must be zero."""
    if tangent is not ZERO and type(tangent) is ArrayImpl and host_value(tangent).any():
        raise NotLinearError(
            f"the jvp rule of {primitive.name} gave the tangent {tangent!r}, which does not depend on the tangents "
            "that the rule was given, and is not zero: a tangent must be linear in them"
        )
    return out


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
    trace = LinearizeTrace(state.trace, function)
    tape = trace.tape
    location = source.here()
    inputs = []
    args: list[Any] = []
    for i, x in enumerate(primals):
        if active is not None and not active[i]:
            args.append(x)
            continue
        aval = typeof(x)
        dtype = tangent_dtype(aval.dtype)
        if dtype is not aval.dtype and dtype != aval.dtype:
            args.append(x)
            inputs.append(tape.input(aval.update(dtype=dtype)).var)
            continue
        t = tape.input(aval)
        inputs.append(t.var)
        args.append(LinearizeTracer(trace, x, t, location))
    state.trace = trace
    try:
        results = run(*args)
    finally:
        state.trace = trace.parent
        trace.live = tape.live = False
    outs: list[Any] = []
    ends: list[Any] = []
    for x in results:
        if type(x) is LinearizeTracer and x._trace is trace:
            outs.append(x.primal)
            ends.append(x.tangent.var)
        else:
            outs.append(x)
            ends.append(ZERO)
    return outs, LinearProgram(tape.nodes, inputs, ends, tape.count)
