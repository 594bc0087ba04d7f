# long: because the current trace, the traces at the bottom and the switches that choose these are one state
"""Primitives, traces and tracers: who interprets an operation, and the interpreter that computes it."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pullback.core import source, tree
from pullback.core.array import SCALARS, Absent, Array, ArrayImpl, PlacedArray, as_array, number_dtype
from pullback.core.array import recorders as recorders
from pullback.core.config import Config, config, observe
from pullback.core.errors import (
    ConcretizationTypeError,
    LostDerivativeError,
    MissingRuleError,
    PullbackError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from pullback.core.locks import lock
from pullback.core.registry import Registry
from pullback.core.rule_errors import explain as explain
from pullback.core.rule_errors import missing_rule as missing_rule
from pullback.core.rule_kinds import Rule as Rule
from pullback.core.rule_kinds import RuleKind as RuleKind
from pullback.core.runtime import provides, runtime
from pullback.core.traits import checked as checked_traits
from pullback.core.types import MappedAxis, ShapedArray

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """An operation: a name, and one rule for each thing that can be done to it.

    Operands are positional, parameters are keywords (hashable). Each decorator below registers a rule; a
    transformation that lacks the rule it needs says so by name. See ``ARCHITECTURE.md`` for the conventions, and
    :class:`RuleKind` for rules of other kinds.
    """

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        keeps_weak_type: bool | None = True,
        effect: bool = False,
        **traits: Any,
    ) -> None:
        """Declare an operation.

        Args:
          name: its name in jaxprs and errors.
          multiple_results: whether it returns a list of results.
          keeps_weak_type: whether the result is weakly typed where all operands are; None if its parameter
            ``weak_type`` says so.
          effect: whether it does more than to return results, so that programs run it exactly once, needed or not.
          **traits: what it is, by the names of :mod:`pullback.core.traits`.

        Raises:
          ArgumentError: there is no such trait (a ValueError).
        """
        self.name, self.effect = name, effect
        self.multiple_results, self.keeps_weak_type = multiple_results, keeps_weak_type
        self.host_rule: Rule | None = None
        self.impl_rule: Rule | None = None
        self.abstract_eval_rule: Rule | None = None
        self.jvp_rule: Rule | None = None
        self.tangent_rule: Rule | None = None
        self.directional_rule: Rule | None = None
        self.results_by_direction = False
        self.transpose_rule: Rule | None = None
        self.linear_in: str | tuple[int, ...] | None = None
        self.record_rule: Rule | None = None
        self.batch_rule: Rule | None = None
        self.lowering_rule: Rule | None = None
        self.decomposition_rule: Rule | None = None
        self.stage_rule: Rule | None = None
        self.dce_rule: Rule | None = None
        self.partial_eval_rule: Rule | None = None
        self.remat_rule: Rule | None = None
        self.axes_rule: Rule | None = None
        self.masked: Primitive | None = None
        # Not attributes: with more than 30 of all primitives together Python finds each more slowly, 3 % of a gradient.
        self.more_rules: dict[str, Rule] = {}
        self.traits = checked_traits(name, traits) if traits else {}

    def bind(self, *args: Any, **params: Any) -> Any:
        """Hand the operation to the current trace."""
        return state.trace.process(self, args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[Any], *rest: Any) -> Any:
        """Hand the operation to a trace: ``(trace, args, params)``, or ``(trace, args, avals, params)`` as in JAX."""
        outer, state.trace = state.trace, trace
        try:
            return trace.process(self, tuple(args), dict(rest[-1]))
        finally:
            state.trace = outer

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters with which a user's interpreter binds an equation's operation again: the equation's own."""
        return dict(params)

    # Evaluation and types

    def host(self, rule: F) -> F:
        """Register ``rule(*values, **params) -> value``, which computes with NumPy."""
        self.host_rule = rule
        return rule

    def impl(self, rule: F) -> F:
        """Register ``rule(operands, params) -> results``, which evaluates arrays where there is no host rule."""
        self.impl_rule = rule
        return rule

    def abstract_eval(self, rule: F) -> F:
        """Register ``rule(*avals, **params) -> aval``, which raises the errors for operands that do not fit."""
        self.abstract_eval_rule = rule
        return rule

    def lowering(self, rule: F) -> F:
        """Register ``rule(hlo, *operands, **params) -> value``, which writes the operation as StableHLO."""
        self.lowering_rule = rule
        return rule

    def decomposition(self, rule: F) -> F:
        """Register ``rule(*args, **params) -> results``, which does the same by other operations, under any trace.

        It serves where there is no rule for the operation as a whole.
        """
        self.decomposition_rule = rule
        return rule

    # Differentiation and batching

    def jvp(self, rule: F) -> F:
        """Register ``rule(primals, tangents, **params) -> (out, tangent_out)``; a tangent may be ``ZERO``."""
        self.jvp_rule = rule
        self.tangent_rule = None
        return rule

    def tangent(self, rule: F) -> F:
        """Register ``rule(ans, primals, tangents) -> tangent``, for a primitive without parameters.

        The short form of a jvp rule whose first result is just the primitive applied to the primals.
        """

        def jvp(primals: Any, tangents: Any) -> Any:
            ans = self.bind(*primals)
            return ans, rule(ans, primals, tangents)

        self.jvp_rule = jvp
        self.tangent_rule = rule
        return rule

    def directional(self, rule: F, results_by_direction: bool = False) -> F:
        """Register another rule like that of ``jvp``, which need not be linear in the tangents.

        It serves where tangents are values, and nobody transposes what is done to them: in ``jvp`` and ``jacfwd``.

        Args:
          rule: takes and returns what the jvp rule does.
          results_by_direction: whether the results that users see depend on the tangents, by a choice that the
            operation has. Then the rule does not serve where there are many tangents for one result.
        """
        self.directional_rule = rule
        self.results_by_direction = results_by_direction
        return rule

    def transpose(self, rule: F, linear_in: str | tuple[int, ...] | None = None) -> F:
        """Register ``rule(ct, *operands, **params) -> cotangents``; operands that are linear are ``LinearVar``.

        Args:
          rule: returns one cotangent an operand, None for those that are not linear.
          linear_in: the positions of the operands in which the operation is linear, jointly; ``"each"`` if it is
            linear in any one of them while the others are fixed; None if in all of them jointly.
        """
        self.transpose_rule = rule
        self.linear_in = linear_in
        return rule

    def batch(self, rule: F) -> F:
        """Register ``rule(axis, args, dims, **params) -> (out, dim)``; a dim is ``None`` where nothing is mapped."""
        self.batch_rule = rule
        return rule

    def axes(self, rule: F) -> F:
        """Register ``rule(params) -> names``: the named axes that the operation refers to, beside its operands' own.

        Without it, these are the axes that the programs among its parameters refer to.
        """
        self.axes_rule = rule
        return rule

    # Programs within programs

    def stage(self, rule: F) -> F:
        """Register ``rule(trace, args, params) -> results``, which records the operation in a jaxpr in its own way.

        This is for operations whose parameters are Python functions, which may close over traced values: their batch
        rule is given the trace in the place of the axis, and is called even if no operand is mapped.
        """
        self.stage_rule = rule
        return rule

    def record(self, rule: F) -> F:
        """Register ``rule(trace, args, params) -> results``, which records the operation on a tape in its own way.

        This is for operations of which not all results need be linear: some are recorded, others are computed. It
        returns None if the operation is to be recorded as a whole.
        """
        self.record_rule = rule
        return rule

    def dce(self, rule: F) -> F:
        """Register ``rule(used_results, eqn) -> eqn``: a smaller equation for some of the results, or None."""
        self.dce_rule = rule
        return rule

    def partial_eval(self, rule: F) -> F:
        """Register ``rule(unknown_operands, eqn) -> (known_eqns, unknown_eqns, unknown_results)``.

        Without it, an equation with an unknown operand is unknown as a whole.
        """
        self.partial_eval_rule = rule
        return rule

    def remat(self, rule: F) -> F:
        """Register ``rule(eqn, wanted_results, policy, effects) -> RematSplit``, for operations that hold programs.

        A policy of ``checkpoint`` reaches into these; without the rule it decides on the equation as a whole.
        """
        self.remat_rule = rule
        return rule

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        """By reference, as functions are pickled: rules and tables know a primitive by its identity."""
        import pkgutil

        for module, contents in list(sys.modules.items()):
            for name, value in list(getattr(contents, "__dict__", {}).items()):
                if value is self:
                    return pkgutil.resolve_name, (f"{module}:{name}",)
        raise TypeError(f"the primitive {self.name!r} cannot be pickled, for no module has it as an attribute")

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self


class Trace:
    """An interpreter of primitives.

    Attributes:
      parent: the trace that was current when this one was made; it takes what is not this one's own.
      eager: whether operations on concrete arrays are computed at once, here and in all parents, so that Python may
        look at their values. They need not be ``quick``: of a thread that looks for NaNs they are not.
      quick: whether the result of an operation on concrete arrays may be had without asking the trace: nothing records
        it and nothing looks at it, here and in all parents.
      live: whether the transformation that made the trace is still running.
      is_bottom, runs_again: whether it hands nothing on; whether what runs under it runs again in the backward pass.
    """

    __slots__ = ("__weakref__", "eager", "function", "live", "parent", "quick")
    transformation = "a transformation"
    is_bottom = False
    runs_again = False

    parent: Trace
    eager: bool
    quick: bool

    def __init__(self, parent: Trace | None = None, function: Any = None) -> None:
        if self.is_bottom:
            self.parent = self
            self.eager = self.quick = True
        elif parent is None:  # a user's own interpreter: see process_primitive
            self.parent = state.trace
            self.eager = self.quick = False
        else:
            self.parent = parent
            self.eager = parent.eager
            self.quick = parent.quick
        self.function = function
        self.live = True

    def is_same(self, other: object) -> bool:
        """Whether another trace's tracers are this one's too."""
        return self is other

    def seen(self, x: Any) -> Any:
        """What stands for a tracer of this trace: another one where a function runs again that closes over it."""
        return x

    def adopt(self, x: ArrayImpl) -> Array:
        """What the user gets for an array that was made while this trace is current: a traced value in a program."""
        return x if self.is_bottom else self.parent.adopt(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The results of an operation; the parent is current while a user's interpreter works them out."""
        outer, state.trace = state.trace, self.parent
        try:
            return self.process_primitive(primitive, args, params)
        finally:
            state.trace = outer

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any]) -> Any:
        """What an operation does under a user's own interpreter, a subclass, in JAX's spelling.

        ``primitive.bind_with_trace(self.parent, values, params)`` hands it on. Haiku's drawings are made so.
        """
        raise MissingRuleError(f"the interpreter {type(self).__name__} has no method process_primitive")

    @property
    def main(self) -> Trace:
        """The trace itself: by which Equinox tells the tracers of a transformation."""
        return self

    def describe(self) -> str:
        """The transformation and the function that it was given."""
        return f"{self.transformation} of {source.describe_function(self.function)}"


class RelayTrace(Trace):
    """Hands operations on, to its parent as a rule, as a function says.

    Attributes:
      relay: takes this trace, and an operation; returns its results.
    """

    __slots__ = ("relay", "transformation")

    def __init__(self, parent: Trace, relay: Relay, function: Any = None, transformation: str = "") -> None:
        super().__init__(parent, function)
        self.relay = relay
        self.transformation = transformation or parent.transformation

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.relay(self, primitive, args, params)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function returns that runs with this trace current, after which the trace has ended."""
        outer, state.trace = state.trace, self
        try:
            return function(*args)
        finally:
            state.trace = outer
            self.live = False


Relay = Callable[[RelayTrace, Primitive, tuple[Any, ...], dict[str, Any]], Any]


class _State(threading.local):
    """The dynamic state of a thread.

    Attributes:
      trace: the current trace.
      bottom: the trace that evaluates for this thread, by its switches.
      axes: the named axes in scope, by name.
      source_loc: where the operation was written that is being run again, from a program; None for the user's own line.
      scope: the named scopes and the pass of differentiation that operations belong to, if there are any.
      switched: by which other threads reach this state, to set a switch.
      silently: calls a function in a context where NumPy does not warn of overflow, of division by zero and of
        invalid values, which are values like others here. Entering a context made beforehand costs next to nothing
        (``np.errstate`` costs a microsecond), and leaves the user's own settings alone. It cannot be nested.
    """

    trace: Trace
    bottom: EvalTrace
    axes: dict[Any, MappedAxis]
    switched: SwitchedThread
    silently: Callable[..., Any]
    source_loc: source.Location | None = None
    scope: source.Scope | None = None

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.silently = context.run
        self.axes = {}
        self.trace = self.bottom = _evaluator(vars(config))
        self.switched = SwitchedThread(vars(self), vars(config))
        _switched_threads.add(self.switched)


_FORMAT = (
    'pullback.debug.print("{x:.3f}", x=x) prints the value when the function runs; without a format the type is shown.'
)
_BRANCH = "Use jnp.where or lax.select, or compute the condition from values that are not traced."
_CONVERT = (
    "Keep it as an array (x.astype(...) changes its type), or take it out of the transformed function with has_aux."
)
_ARRAY = "Use the function of pullback.numpy, or take the value out of the transformed function with has_aux."
_INDEX = "Shapes, ranges and list indices must be known in Python: use x.shape, or index an array with jnp.take."


class Tracer(Array):
    """A value that belongs to a trace."""

    __slots__ = ("__weakref__", "_aval", "_trace", "made_at")

    _aval: ShapedArray
    _trace: Trace
    made_at: source.Location | None

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        """A value of a user's own interpreter, of a type."""
        self._trace, self._aval, self.made_at = trace, aval, None

    def __init_subclass__(cls) -> None:
        tree.register_leaf_type(cls)

    @property
    def aval(self) -> ShapedArray:
        """The abstract value."""
        return self._aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the type gives way to that of other operands."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    def concrete(self) -> Any:
        """The value that Python may look at, or None where it is not known; without its derivative."""
        return None

    def differentiated(self) -> Tracer | None:
        """The tracer, this one or one that it wraps, of which a derivative is being taken."""
        return None

    def abstract_part(self) -> Tracer:
        """The tracer, this one or one that it wraps, that has no concrete value."""
        return self

    def dependence(self) -> str:
        """Which arguments of the transformed function the value depends on, as a sentence, where that is known."""
        return ""

    def origin(self) -> str:
        """What made this value, for error messages."""
        if self.made_at is None:
            return f"{self._trace.describe()}, of which it is an argument, or a value made within a rule."
        return f"{self._trace.describe()}, where it was made:\n{source.format_location(self.made_at)}"

    def _known(self, error: type[PullbackError], what: str, instead: str) -> Any:
        value = self.concrete() if is_at_work(self._trace) else None
        if value is None:
            raise self._unknown(error, f"{what} needs a concrete value", instead)
        return value

    def taken(self, what: str, instead: str = _CONVERT) -> Any:
        """The value, for Python to compute with.

        Raises:
          ConcretizationTypeError: it is not known.
          LostDerivativeError: its derivative is being taken, and would be lost.
        """
        value = self._known(ConcretizationTypeError, what, instead)
        own = self.differentiated()
        if own is None:
            return value
        lost = LostDerivativeError(
            f"{what} would lose a derivative{source.calling_expression()}: it takes the value of an array of type "
            f"{own.aval}, whose derivative is being taken by {own._trace.describe()}.\nCompute with the functions of "
            "pullback.numpy, as with jnp.sin for math.sin. Where the value alone is wanted, stop the derivative first, "
            "as in float(lax.stop_gradient(x))."
        )
        lost.trace = own._trace
        raise lost

    def _unknown(self, error: type[PullbackError], need: str, instead: str) -> PullbackError:
        """The error for a value that Python may not look at, or for one that leaked."""
        part = self.abstract_part()
        for tracer in (self, part):
            if not is_at_work(tracer._trace):
                return leaked(tracer)
        made = f", made here:\n{source.format_location(self.made_at)}" if self.made_at else "."
        unknown = error(
            f"{need}, but this one of type {part.aval} is traced, by {part._trace.describe()}{made}\n"
            f"{part.dependence()}{instead}"
        )
        unknown.trace = part._trace
        return unknown

    def __bool__(self) -> bool:
        return bool(
            self._known(TracerBoolConversionError, "a condition in Python (if, while, and, or, not, bool)", _BRANCH)
        )

    def __float__(self) -> float:
        # "%.3f" % x shows the value, as f"{x:.3f}" does
        if self.differentiated() is not None and source.is_formatting():
            return float(self._known(ConcretizationTypeError, "a format", _FORMAT))
        return float(self.taken("float()"))

    def __int__(self) -> int:
        return int(self._known(ConcretizationTypeError, "int()", _CONVERT))

    def __complex__(self) -> complex:
        return complex(self.taken("complex()"))

    def __index__(self) -> int:
        known = self._known(TracerIntegerConversionError, "a Python index, range() or shape", _INDEX)
        return int(known.__index__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise self._unknown(
            TracerArrayConversionError,
            "np.asarray() and NumPy functions that Pullback lacks need a concrete value",
            _ARRAY,
        )

    def shown(self) -> Any:
        """The value that is printed, or None where it is not known: that of all examples under ``vmap``."""
        return self.concrete()

    def __repr__(self) -> str:
        value = self.shown()
        elements = "" if value is None else ": " + " ".join(map(str.strip, str(value).splitlines()))
        return f"Traced<{self.aval}{elements}> by {self._trace.transformation}"

    def __str__(self) -> str:
        value = self.shown()
        return repr(self) if value is None else str(value)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        value = self.shown()
        if value is None:
            raise self._unknown(ConcretizationTypeError, f"the format {spec!r} needs a concrete value", _FORMAT)
        return format(value, spec)

    def __reduce__(self) -> Any:
        raise TypeError(f"traced values cannot be pickled: {self!r}")

    def __copy__(self) -> Tracer:
        return self  # it does not change, and has no memory of its own

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self


class EvalTrace(Trace):
    """Computes at once, with NumPy.

    Attributes:
      looks: whether it looks at what comes out.
    """

    __slots__ = ()
    transformation = "evaluation"
    is_bottom = True
    looks = False

    def run_program(self, closed: Any, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
        """What ``run`` returns: the results of a compiled program for some arguments."""
        return run()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        rule = primitive.host_rule
        if rule is None:
            return runtime.evaluate(primitive, args, params)
        # Most operations have one or two operands that are arrays: these come first, written out.
        weak: bool | None
        if len(args) == 2:
            x, y = args
            if type(x) is ArrayImpl:
                if type(y) is ArrayImpl:
                    a, b = x._held, y._held
                    values: Any = (x._value if type(a) is Absent else a, y._value if type(b) is Absent else b)
                    weak = x.weak_type and y.weak_type and primitive.keeps_weak_type
                elif type(y) in SCALARS and x._held.dtype.isbuiltin == 1:
                    values = (x._value, y)
                    weak = x.weak_type and primitive.keeps_weak_type
                else:
                    values, weak = host_operands(primitive, args)
                    if values is None:
                        return runtime.evaluate_elsewhere(primitive, args, params)
            elif type(x) in SCALARS and type(y) is ArrayImpl and y._held.dtype.isbuiltin == 1:
                values = (x, y._value)
                weak = y.weak_type and primitive.keeps_weak_type
            else:
                values, weak = host_operands(primitive, args)
                if values is None:
                    return runtime.evaluate_elsewhere(primitive, args, params)
        elif len(args) == 1 and type(args[0]) is ArrayImpl:
            a = (x := args[0])._held
            values = (x._value if type(a) is Absent else a,)
            weak = primitive.keeps_weak_type and x.weak_type
        else:
            values, weak = host_operands(primitive, args)
            if values is None:
                return runtime.evaluate_elsewhere(primitive, args, params)
        try:
            out = state.silently(rule, *values, **params)
        except Exception as error:
            if "maximum supported dimension" in str(error):  # NumPy's: a result of more than 64 axes
                return runtime.evaluate_elsewhere(primitive, args, params)
            out = _recover(error, primitive, args, values, params)
        if weak is None:
            weak = params["weak_type"]
        if primitive.multiple_results:
            return [ArrayImpl(value, weak and value.dtype.kind != "b") for value in out]
        result = _new(ArrayImpl)
        result._held = out
        result.weak_type = weak and out.dtype.kind != "b"
        return result


class Watcher(NamedTuple):
    """What a thread looks for at the bottom of its traces, while it has a switch on.

    Attributes:
      process: takes the trace that evaluates, and an operation; returns its results.
      run_program: takes that trace, and what :meth:`EvalTrace.run_program` does; None if it looks at no programs.
      quick: whether operations on arrays need not be handed to it.
      looks: whether it looks at what comes out.
    """

    process: Callable[[EvalTrace, Primitive, tuple[Any, ...], dict[str, Any]], Any]
    run_program: Callable[[EvalTrace, Any, Sequence[Any], Callable[[], Any]], Any] | None = None
    quick: bool = False
    looks: bool = False


class WatchedTrace(EvalTrace):
    """Computes by another trace, and looks for something.

    Attributes:
      inner: the trace that evaluates.
      watcher: what looks.
    """

    __slots__ = ("inner", "looks", "watcher")

    def __init__(self, inner: EvalTrace, watcher: Watcher) -> None:
        super().__init__(None)
        self.inner, self.watcher = inner, watcher
        self.quick = inner.quick and watcher.quick
        self.looks = inner.looks or watcher.looks

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.watcher.process(self.inner, primitive, args, params)

    def run_program(self, closed: Any, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
        if self.watcher.run_program is None:
            return self.inner.run_program(closed, leaves, run)
        return self.watcher.run_program(self.inner, closed, leaves, run)


_new = object.__new__


def _recover(error: Exception, primitive: Primitive, args: tuple[Any, ...], values: Any, params: dict[str, Any]) -> Any:
    """The result of a rule that runs within another rule; for any other failure, the error explained."""
    if type(error) is RuntimeError and _is_within_rule() and primitive.host_rule is not None:
        try:
            return primitive.host_rule(*values, **params)
        except Exception as inner:
            error = inner
    better = explain(error, primitive, args, params)
    if better is error:
        raise error
    raise better from None


def _is_within_rule() -> bool:
    """Whether this thread runs a rule: in the context of ``state.silently``, which cannot be entered again."""
    try:
        state.silently(bool)
    except RuntimeError:
        return True
    return False


NUMPY_REFUSES = (TypeError, ValueError, OverflowError, MemoryError, RuntimeError)
"""What NumPy raises where the general way converts, computes otherwise, or explains the error: operands that do not
fit, a number or a result that is too large, and a context that cannot be entered again, within a rule."""


def host_operands(primitive: Primitive, args: tuple[Any, ...]) -> tuple[list[Any] | None, bool | None]:
    """The NumPy values of some operands, and whether the result is weakly typed: booleans have no say in it.

    None for values of which one is on other devices than the host's.
    """
    values: list[Any] = []
    weak = primitive.keeps_weak_type
    scalars = False
    for x in args:
        kind = type(x)
        if kind is ArrayImpl:
            values.append(x._value)
            if weak and not x.weak_type and x._value.dtype.kind != "b":
                weak = False
        elif kind in SCALARS:
            values.append(x)
            scalars = True
        elif kind is PlacedArray:
            return None, None
        else:
            if isinstance(x, Tracer):
                raise leaked(x)
            values.append(as_array(x)._value)  # type: ignore[attr-defined]  # tracers were refused
            if weak:
                weak = False
    if scalars:
        _fit_scalars(values)
    return values, weak


def _fit_scalars(values: list[Any]) -> None:
    """Give Python numbers a dtype where NumPy would not find the right one by itself."""
    dtype = number_dtype(values)
    if dtype.isbuiltin != 1 or all(type(v) in SCALARS for v in values):
        for i, v in enumerate(values):
            if type(v) in SCALARS:
                values[i] = np.asarray(v, dtype)[()]


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """The error for a tracer that is used where its trace is not at work."""
    when = "outside of its transformation" if is_at_work(tracer._trace) else "after its transformation had ended"
    error = UnexpectedTracerError(
        f"a traced value of type {tracer.aval} was used {when}: it leaked, through a "
        f"global, a closure, an attribute or a list. It comes from {tracer.origin()}\n"
        "Return the value from the transformed function (has_aux=True returns extra values) instead of storing it."
    )
    error.trace = tracer._trace
    return error


def check_result(x: Any) -> None:
    """Refuse a leaked tracer as a result of a transformed function."""
    if isinstance(x, Tracer) and not is_at_work(x._trace):
        raise leaked(x)


def at_work(trace: Trace) -> Trace | None:
    """The trace that takes the tracers of a trace: itself, while it runs, or one under which a function runs again."""
    if trace.live:
        return trace
    current = state.trace
    while not current.is_same(trace):
        if current is current.parent:
            return None
        current = current.parent
    return current if current.live else None


def is_at_work(trace: Trace) -> bool:
    """Whether the transformation that made a trace is still running, or a function under it runs again."""
    return at_work(trace) is not None


# The evaluating trace of each thread, by its switches ----------------------------------------------------------------

EVAL, WATCHED = EvalTrace(None), EvalTrace(None)
"""Evaluates, but not by the quick paths: for a thread whose operands are looked at, by the functions of arrays."""
WATCHED.quick = False


def _evaluator(own: Mapping[str, Any]) -> EvalTrace:
    """The trace that evaluates for a thread, by its own switches, which outweigh those of the process."""
    switches = {**vars(Config), **own}
    found = EVAL if switches["numpy_rank_promotion"] == "allow" else WATCHED
    for what, names in _WATCHED_FOR.items():
        if any(switches[name] in (True, "raise") for name in names):
            found = _watched(found, what)
    return found


def _watched(inner: EvalTrace, what: str) -> EvalTrace:
    """The trace that looks for something, on another one; ``WATCHED`` before the floor that has it is there."""
    if (inner, what) not in _watched_traces and what in _watchers:
        _watched_traces[inner, what] = WatchedTrace(inner, _watchers[what]())
    return _watched_traces.get((inner, what), WATCHED)


class SwitchedThread:
    """A thread, as others reach it that set a switch for the whole process.

    Attributes:
      dynamic: what the attributes of ``state`` are there.
      switches: the switches that the thread has set for itself.
    """

    __slots__ = ("__weakref__", "dynamic", "switches")

    def __init__(self, dynamic: dict[str, Any], switches: dict[str, Any]) -> None:
        self.dynamic, self.switches = dynamic, switches

    def obey(self) -> None:
        """Put the trace that the switches ask for at the bottom of those that are at work."""
        found = _evaluator(self.switches)
        self.dynamic["bottom"] = found
        if self.dynamic["trace"].is_bottom:
            self.dynamic["trace"] = found
            return
        above = [self.dynamic["trace"]]
        for trace in above:
            for side in ("parent", "rules"):
                below = getattr(trace, side, found)
                if below.is_bottom and hasattr(trace, side):
                    setattr(trace, side, found)
                elif not below.is_bottom and below not in above:
                    above.append(below)
        for trace in above:
            trace.quick = found.quick and trace.eager


def _obey_all(everywhere: bool) -> None:
    """Have this thread, or all, evaluate as their switches ask for."""
    with _lock:
        own = state.switched  # which is not among those that live before it is asked for
        living = _switched_threads.living()
        for thread in living if everywhere else [own]:
            thread.obey()
        quick = all(_evaluator(own).quick for own in ({}, *[thread.switches for thread in living]))
        if quick is (WATCHED in recorders):
            (recorders.remove if quick else recorders.append)(WATCHED)


def watch_by(what: str, make: Callable[[], Watcher]) -> None:
    """Set what looks for one of the keys of ``_WATCHED_FOR``, made when a switch first asks for it."""
    _watchers[what] = make
    _obey_all(True)


_WATCHED_FOR = {
    "numbers": ("debug_nans", "debug_infs"),
    "indices": ("check_indices", "error_checking_behavior_oob"),
    "keys": ("debug_key_reuse",),
}
"""What is looked for, from the first to the last that sees an operation's results, and the switches that ask for it."""
_watchers: dict[str, Callable[[], Watcher]] = {}
_watched_traces: dict[tuple[EvalTrace, str], EvalTrace] = {}
_lock = lock(globals(), "_lock")
_switched_threads: Registry[SwitchedThread] = Registry()
state = _State()


@provides
def is_recording() -> bool:
    """Whether this thread records a program."""
    return not state.trace.eager


for _name in ("numpy_rank_promotion", *(name for names in _WATCHED_FOR.values() for name in names)):
    observe(_name, _obey_all)
