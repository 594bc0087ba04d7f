"""Forward mode: values and tangents together."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import source
from pullback.core.array import host_value, is_on_host, typeof
from pullback.core.config import config
from pullback.core.errors import NotLinearError
from pullback.core.linear import LinearTrace, LinearTracer
from pullback.core.trace import Primitive, Trace, Tracer, check_result, live_trace, missing_rule, state
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.traces.masked import masked_results
from pullback.transforms.traces.provenance import within_scope_of


class Direction(enum.IntEnum):
    """What is known of the tangents of a forward pass: which of the rules serve that are not linear in them."""

    LINEAR = 0  # somebody may transpose what is done to them
    MANY = 1  # they are values, and there may be several for one result
    ONE = 2  # they are values, and the results may depend on them


class PrimalTracer(Tracer):
    """A value with derivatives.

    Attributes:
      primal: the value alone. What is computed from it has no derivative, as after ``lax.stop_gradient``.
    """

    __slots__ = ("primal",)

    primal: Any

    @property
    def aval(self) -> ShapedArray:
        return typeof(self.primal)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.primal.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.primal.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the type gives way to that of other operands."""
        return self.primal.weak_type  # type: ignore[no-any-return]

    def _resolved(self) -> Any:
        """The value, or what stands for this one where a function runs again."""
        trace = live_trace(self._trace)
        seen = self if trace is None else trace.resolve(self)
        return self.primal if seen is self else seen

    def concrete(self) -> Any:
        value = self._resolved()
        return value.concrete() if isinstance(value, Tracer) else value

    def abstract_part(self) -> Tracer:
        value = self._resolved()
        return value.abstract_part() if isinstance(value, Tracer) else self

    def differentiated(self) -> Tracer | None:
        return self

    def shown(self) -> Any:
        value = self.primal
        return value.shown() if isinstance(value, Tracer) else value


class JVPTracer(PrimalTracer):
    """A value with its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: Trace, primal: Any, tangent: Any, made_at: source.Location | None) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.made_at = made_at


class JVPTrace(Trace):
    """Applies each primitive's derivative rule to values and tangents.

    Attributes:
      rules: the trace that is current while a rule runs: the parent, or the tape above it.
      tape: where linearisation records what rules do to tangents; None in forward mode.
      directional: what is known of the tangents.
      masks: whether tangents stay zero that are multiplied by infinite or undefined derivatives (``core.masking``).
      wraps: whether rules may need more than their trace: masks, or marks while the thread is in a scope.
    """

    __slots__ = ("directional", "masks", "rules", "tape", "transformation", "wraps")

    def __init__(self, parent: Trace, function: Any, tape: LinearTrace | None = None) -> None:
        Trace.__init__(self, parent, function)
        self.tape = tape
        if tape is None:
            self.rules, self.transformation = parent, "forward differentiation (jvp)"
            self.masks = config.masked_zeros
        else:
            self.rules, self.transformation = tape, "differentiation (linearize, vjp or grad)"
            self.masks = False  # the tape's own
        self.directional = Direction.LINEAR
        self.wraps = self.masks or not parent.quick

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], rules: Trace | None = None
    ) -> Any:
        # One and two operands, which most operations have, are written out.
        primals: tuple[Any, ...]
        tangents: tuple[Any, ...]
        if len(args) == 1:
            (x,) = args
            if type(x) is not JVPTracer or x._trace is not self:
                return self.parent.process(primitive, args, params)
            primals, tangents = (x.primal,), (x.tangent,)
        elif len(args) == 2:
            x, y = args
            x_is_own = type(x) is JVPTracer and x._trace is self
            y_is_own = type(y) is JVPTracer and y._trace is self
            if not (x_is_own or y_is_own):
                return self.parent.process(primitive, args, params)
            primals = x.primal if x_is_own else x, y.primal if y_is_own else y
            tangents = x.tangent if x_is_own else ZERO, y.tangent if y_is_own else ZERO
        else:
            own = [type(x) is JVPTracer and x._trace is self for x in args]
            if True not in own:
                return self.parent.process(primitive, args, params)
            primals = tuple([x.primal if mine else x for x, mine in zip(args, own, strict=True)])
            tangents = tuple([x.tangent if mine else ZERO for x, mine in zip(args, own, strict=True)])
        if rules is None:
            rules = self.rules
            if self.wraps:
                if self.masks:
                    return masked_results(self, JVPTracer, primitive, args, primals, params)
                if state.scope is not None or state.bottom.watches:
                    rules = within_scope_of(rules, primitive, primals, params)
        previous = state.trace
        try:
            rule = primitive.tangent_rule
            if rule is not None:
                out = self.parent.process(primitive, primals, params)
                state.trace = rules
                tangent = rule(out, primals, tangents)
            else:
                rule = primitive.jvp_rule
                if self.directional and primitive.directional_rule is not None and self._serves(primitive):
                    rule = primitive.directional_rule
                if rule is None:
                    raise missing_rule(primitive, "jvp", "differentiation")
                state.trace = rules
                out, tangent = rule(primals, tangents, **params)
        finally:
            state.trace = previous
        made_at = source.here() if previous is self else None
        if primitive.multiple_results:
            return [self.with_tangent(o, t, primitive, made_at) for o, t in zip(out, tangent, strict=True)]
        return self.with_tangent(out, tangent, primitive, made_at)

    def _serves(self, primitive: Primitive) -> bool:
        """Whether the directional rule of a primitive may be used."""
        return self.directional is Direction.ONE or not primitive.results_by_direction

    def with_tangent(self, out: Any, tangent: Any, primitive: Primitive, made_at: source.Location | None) -> Any:
        """A result as a tracer, or as it is if its tangent is zero."""
        if type(tangent) is LinearTracer:  # of this trace's tape, or of one further out
            tangent.variable._shape = out.shape
        elif self.tape is not None and tangent is not ZERO:
            tangent = _constant(tangent, primitive)
        return located(out, made_at) if tangent is ZERO else JVPTracer(self, out, tangent, made_at)


def _constant(tangent: Any, primitive: Primitive) -> Any:
    """ZERO for a tangent of a tape that does not depend on its inputs, and so must be zero."""
    if is_on_host(tangent) and host_value(tangent).any():
        raise NotLinearError(
            f"the jvp rule of {primitive.name} returned the tangent {tangent!r}, which does not depend on the tangents "
            "that the rule was given, and is not zero: a tangent must be linear in them"
        )
    return ZERO


def located(out: Any, made_at: source.Location | None) -> Any:
    """A result without a tangent; if an outer trace made it within a rule, it learns the user's line."""
    if isinstance(out, Tracer) and out.made_at is None:
        out.made_at = made_at
    return out


def jvp_flat(
    function: Any,
    run: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    directional: Direction = Direction.LINEAR,
) -> tuple[list[Any], list[Any]]:
    """The values of ``run(*primals)`` and their tangents, ``ZERO`` where a value does not depend on the inputs.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      tangents: one for each primal; ``ZERO`` is allowed.
      directional: what is known of the tangents.
    """
    parent = state.trace
    trace = JVPTrace(parent, function)
    if directional and not any(type(t) is LinearTracer for t in tangents):
        trace.directional = directional
    args = [x if t is ZERO else JVPTracer(trace, x, t, None) for x, t in zip(primals, tangents, strict=True)]
    state.trace = trace
    try:
        results = run(*args)
    finally:
        state.trace = trace.parent
        trace.live = False
    outs: list[Any] = []
    out_tangents: list[Any] = []
    for x in results:
        if type(x) is JVPTracer and x._trace is trace:
            outs.append(x.primal)
            out_tangents.append(x.tangent)
        else:
            check_result(x)
            outs.append(x)
            out_tangents.append(ZERO)
    return outs, out_tangents
