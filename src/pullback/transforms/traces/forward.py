"""Forward mode: computing values together with their tangents."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import source
from pullback.core.array import host_value, is_on_host, typeof
from pullback.core.config import config
from pullback.core.errors import NotLinearError, ShardingTypeError
from pullback.core.linear import LinearTrace, LinearTracer
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, Trace, Tracer, check_result, live_trace, missing_rule, state
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.traces.masked import masked_results
from pullback.transforms.traces.provenance import within_scope_of


class Direction(enum.IntEnum):
    """How many tangents each primal has in a forward pass, and whether rules must compute them by linear operations."""

    LINEAR = 0  # the tangent computation may be transposed, so that it has to be linear
    MANY = 1  # tangents are values; a primal result may have several, so that it must not depend on them
    ONE = 2  # tangents are values; a primal result has one and may depend on it, as eigenvectors do


class PrimalTracer(Tracer):
    """A value with derivatives.

    Attributes:
      primal: the value without derivatives, as ``lax.stop_gradient`` returns it.
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
        """Whether the dtype is weak, and gives way to the dtypes of other operands."""
        return self.primal.weak_type  # type: ignore[no-any-return]

    def _resolved(self) -> Any:
        """The primal, or the value that replaces this tracer while the backward pass runs a checkpointed function."""
        trace = live_trace(self._trace)
        replacement = self if trace is None else trace.resolve(self)
        return self.primal if replacement is self else replacement

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
    """The trace of differentiation: applies derivative rules to primals and tangents.

    Attributes:
      rules: the trace that is current while a rule runs: the parent, or the tape on top of it.
      tape: records the operations on tangents, in linearisation; None in forward mode.
      directional: whether there are several tangents for a primal; see :class:`Direction`.
      masks: whether zero tangents stay zero if multiplied by infinite or undefined derivatives (``core.masking``).
      wraps: whether rules may need a further trace: for ``masks``, or to mark operations within a named scope.
    """

    __slots__ = ("directional", "masks", "rules", "tape", "transformation", "wraps")
    differentiates = True

    def __init__(self, parent: Trace, function: Any, tape: LinearTrace | None = None) -> None:
        Trace.__init__(self, parent, function)
        self.tape = tape
        if tape is None:
            self.rules, self.transformation = parent, "forward differentiation (jvp)"
            self.masks = config.masked_zeros
        else:
            self.rules, self.transformation = tape, "differentiation (linearize, vjp or grad)"
            self.masks = False  # the tape masks products itself
        self.directional = Direction.LINEAR
        self.wraps = self.masks or not parent.quick

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], rules: Trace | None = None
    ) -> Any:
        # Written out for one and two operands, which most operations have: this runs for each operation.
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
            primals = tuple([x.primal if is_own else x for x, is_own in zip(args, own, strict=True)])
            tangents = tuple([x.tangent if is_own else ZERO for x, is_own in zip(args, own, strict=True)])
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
                try:
                    out, tangent = rule(primals, tangents, **params)
                except ShardingTypeError:
                    out, tangent = runtime.explicit_derivative(primitive, rule, primals, tangents, params)
        finally:
            state.trace = previous
        made_at = source.here() if previous is self else None
        if primitive.multiple_results:
            return [self.with_tangent(o, t, primitive, made_at) for o, t in zip(out, tangent, strict=True)]
        return self.with_tangent(out, tangent, primitive, made_at)

    def _serves(self, primitive: Primitive) -> bool:
        """Whether this pass may use a primitive's ``directional`` rule: a jvp rule that may be nonlinear in tangents.

        False if primals may have several tangents in this pass, and the rule's primal results depend on the tangent.
        """
        return self.directional is Direction.ONE or not primitive.results_by_direction

    def with_tangent(self, out: Any, tangent: Any, primitive: Primitive, made_at: source.Location | None) -> Any:
        """Return ``out``, a result of ``primitive``, as a tracer with a tangent; ``out`` itself if this is zero."""
        if type(tangent) is LinearTracer:  # of this trace's tape, or of an outer tape
            if not primitive.multiple_results:
                tangent.variable._shape = out.shape  # known here, which saves an abstract evaluation later
        elif self.tape is not None and tangent is not ZERO:
            tangent = _constant(tangent, primitive)
        return located(out, made_at) if tangent is ZERO else JVPTracer(self, out, tangent, made_at)


def _constant(tangent: Any, primitive: Primitive) -> Any:
    """Return ``ZERO`` for a tangent that is constant; raise if it is nonzero. Error messages name ``primitive``."""
    if is_on_host(tangent) and host_value(tangent).any():
        raise NotLinearError(
            f"the jvp rule of {primitive.name} returned the tangent {tangent!r}, which is nonzero and does not "
            f"depend on the input tangents: a tangent must be linear in them"
        )
    return ZERO


def located(out: Any, made_at: source.Location | None) -> Any:
    """Return ``out``, a result without a tangent; a tracer that has no source line gets the line ``made_at``."""
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
    """Return the results of ``run(*primals)`` and their tangents, ``ZERO`` where a result depends on no input.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      tangents: a tangent, or ``ZERO``, for each primal.
      directional: whether there are several tangents for a primal; see :class:`Direction`.
    """
    parent = state.trace
    trace = JVPTrace(parent, function)
    if directional and not any(type(t) is LinearTracer for t in tangents):  # which are transposed later
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
