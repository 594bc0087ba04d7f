"""Staging: tracing a function with abstract values to a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import dtypes, source
from pullback.core.array import SCALARS, Array, ArrayImpl, as_value, is_literal, typeof
from pullback.core.config import config
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, infer
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.refs import NOTHING, Outside
from pullback.core.trace import Primitive, Trace, Tracer, leaked, missing_rule, recorders, state
from pullback.core.types import ShapedArray
from pullback.primitives.elementwise import convert_element_type_p
from pullback.transforms.traces.literals import converted, typed_literals


class StageTracer(Tracer):
    """A variable of a jaxpr under construction, or a literal."""

    __slots__ = ("variable",)

    def __init__(self, trace: Trace, var: Atom, made_at: source.Location | None) -> None:
        self._trace, self.variable, self.made_at = trace, var, made_at

    @property
    def aval(self) -> ShapedArray:
        return self.variable.aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.variable.aval.shape

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.variable.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype is weak, and gives way to the dtypes of other operands."""
        return self.variable.aval.weak_type

    def dependence(self) -> str:
        trace = self._trace
        if not isinstance(trace, StageTrace) or trace.name_input is None:
            return ""
        needed: set[Atom] = {self.variable}
        for eqn in reversed(trace.eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(a for a in eqn.invars if isinstance(a, Var))
        names = [trace.name_input(i) for i, v in enumerate(trace.invars) if v in needed]
        return f"It depends on {' and '.join(names)}.\n" if names else ""


class StageTrace(Trace):
    """The trace of staging: records every operation as an equation.

    Attributes:
      invars: the variables of the inputs.
      name_input: names an input by its index, for error messages; None if inputs have no names.
      literals: whether scalar arrays become literals; otherwise they become constants.
      outside: the references that the program uses, and that were made outside of the program.
    """

    __slots__ = ("consts", "constvars", "eqns", "invars", "literals", "name_input", "outside", "transformation")

    def __init__(self, parent: Trace, function: Any, transformation: str) -> None:
        super().__init__(parent, function)
        self.transformation = transformation
        self.invars: list[Var] = []
        self.name_input: Callable[[int], str] | None = None
        self.literals = True
        self.outside = NOTHING
        self.eager = self.quick = False
        self.eqns: list[Eqn] = []
        self.consts: list[Any] = []
        self.constvars: dict[int, Var] = {}

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.stage_rule is not None:
            return primitive.stage_rule(self, args, params)
        if primitive.abstract_eval_rule is None:
            raise missing_rule(primitive, "abstract_eval", "tracing")
        invars: list[Any] = []
        avals: list[ShapedArray] = []
        scalars = False
        for x in args:
            if type(x) is StageTracer and x._trace is self:
                atom: Any = x.variable
            elif type(x) in SCALARS:
                atom = Literal(x, typeof(x))
                scalars = True
            else:
                atom = self.atom(x)
            invars.append(atom)
            avals.append(atom.aval)
        if scalars:
            typed_literals(invars, args)
            avals = [a.aval for a in invars]
        # Conversion is often applied to Python numbers: a literal of the new dtype saves the equation.
        if primitive is convert_element_type_p and type(invars[0]) is Literal:
            return self.adopt(converted(invars[0], **params))
        aval = infer(primitive, avals, params)
        made_at = state.source_loc or source.here()
        if primitive.multiple_results:
            outvars = [Var(a) for a in aval]
            self.eqns.append(Eqn(primitive, invars, params, outvars, made_at, state.scope))
            return [StageTracer(self, v, made_at) for v in outvars]
        var = Var(aval)
        self.eqns.append(Eqn(primitive, invars, params, [var], made_at, state.scope))
        return StageTracer(self, var, made_at)

    def adopt(self, x: ArrayImpl) -> StageTracer:
        """Return a tracer for an array created during staging: a literal for a plain scalar, otherwise a constant."""
        literal = not x.shape and type(x) is ArrayImpl and not dtypes.is_key(x.dtype)
        atom = Literal(x, typeof(x)) if literal else self.atom(x)
        return StageTracer(self, atom, state.source_loc or source.here())

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal of a value in the jaxpr; a value from outside is a literal or a constant."""
        if type(x) is StageTracer and x._trace is self:
            return x.variable
        if not isinstance(x, Array):
            x = as_value(x)
            if type(x) is StageTracer and x._trace is self:  # the value of a symbolic size
                return x.variable
        if isinstance(x, Tracer):
            trace = self.parent
            while not trace.is_same(x._trace):
                if trace is trace.parent:
                    raise leaked(x)
                trace = trace.parent
        elif is_literal(x) and self.literals:
            return Literal(x, typeof(x))
        var = self.constvars.get(id(x))
        if var is None:
            var = self.constvars[id(x)] = Var(typeof(x))
            self.consts.append(x)  # which also keeps the id from being reused
        return var


def stage_flat(
    function: Any,
    run: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    transformation: str = "staging (make_jaxpr, eval_shape)",
    name_input: Callable[[int], str] | None = None,
    literals: bool = True,
    outside: Outside = NOTHING,
) -> ClosedJaxpr:
    """Trace ``run`` at abstract inputs to a jaxpr.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      avals: the abstract inputs.
      transformation: the transformation that traces, for error messages.
      name_input: names an input by its index, for error messages.
      literals: whether scalar arrays become literals; otherwise they become constants, as other arrays do.
      outside: notes the references that the function uses; they add inputs and results after the others. By default
        the function may use no references from outside.
    """
    trace = StageTrace(state.trace, function, transformation)
    invars, tracers = trace.invars, []
    for aval in avals:
        var = Var(aval)
        invars.append(var)
        tracers.append(StageTracer(trace, var, None))
    trace.name_input = name_input
    trace.literals = literals
    trace.outside = outside
    source_loc, scope = state.source_loc, state.scope
    try:  # all changes of state within: KeyboardInterrupt may come after any call
        state.source_loc, state.scope = None, source.marked(config.xla_metadata)
        state.trace = trace
        recorders.append(trace)
        outside.begin(trace)
        results = run(*tracers)
        outvars = [trace.atom(x) for x in results]
        if outside is not NOTHING:
            outvars += [trace.atom(x) for x in outside.results()]
    finally:
        state.source_loc, state.scope = source_loc, scope
        state.trace = trace.parent
        trace.live = False
        if trace in recorders:
            recorders.remove(trace)
    jaxpr = Jaxpr(list(trace.constvars.values()), [*invars, *outside.inputs()], trace.eqns, outvars)
    if config.enable_checks:
        check_jaxpr(jaxpr, anew=False)
    return ClosedJaxpr(jaxpr, trace.consts)
