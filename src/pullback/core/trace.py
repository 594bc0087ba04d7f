"""Primitives, traces and tracers: the dispatch of operations to interpreters, and the evaluating interpreter."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pullback.core import source, tree
from pullback.core.array import SCALARS, Absent, Array, ArrayImpl
from pullback.core.array import recorders as recorders
from pullback.core.errors import MissingRuleError, UnexpectedTracerError
from pullback.core.host_operands import host_operands
from pullback.core.looking import LookedAt
from pullback.core.rule_errors import explain as explain
from pullback.core.rule_errors import missing_rule as missing_rule
from pullback.core.rule_kinds import Rule as Rule
from pullback.core.rule_kinds import RuleKind as RuleKind
from pullback.core.runtime import provides, runtime
from pullback.core.trace_names import TraceNames
from pullback.core.traits import checked as checked_traits
from pullback.core.types import MappedAxis, ShapedArray

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """An operation: a name, and a rule for each transformation.

    Operands are positional, parameters are keywords (hashable). The decorators below register rules. A transformation
    that needs a missing rule raises an error with the name of the rule. See ``ARCHITECTURE.md`` for the conventions,
    and :class:`RuleKind` for further kinds of rules.
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
          name: the name of the operation in jaxprs and errors.
          multiple_results: whether the operation returns a list of results.
          keeps_weak_type: whether the result is weakly typed if all operands are; None if the parameter ``weak_type``
            says.
          effect: whether it has a side effect, so that programs run it exactly once, even if its results are unused.
          **traits: values of traits, by their names; see :mod:`pullback.core.traits`.

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
        # In a dictionary: with more than 30 attributes look-ups of each become slower, by 3 % of a gradient's time.
        self.more_rules: dict[str, Rule] = {}
        self.traits = checked_traits(name, traits) if traits else {}

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation under the current trace, and return its results."""
        return state.trace.process(self, args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[Any], *rest: Any) -> Any:
        """Apply the operation under ``trace``; ``rest`` is ``params``, or ``avals, params`` as in JAX."""
        outer, state.trace = state.trace, trace
        try:
            return trace.process(self, tuple(args), dict(rest[-1]))
        finally:
            state.trace = outer

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of ``params``, an equation's parameters; users' interpreters call this before :meth:`bind`."""
        return dict(params)

    # Evaluation and types

    def host(self, rule: F) -> F:
        """Register ``rule(*values, **params) -> value``, which evaluates the operation with NumPy."""
        self.host_rule = rule
        return rule

    def impl(self, rule: F) -> F:
        """Register ``rule(operands, params) -> results``, which evaluates an operation that has no host rule."""
        self.impl_rule = rule
        return rule

    def abstract_eval(self, rule: F) -> F:
        """Register ``rule(*avals, **params) -> aval``, which returns the type of the result, or raises an error."""
        self.abstract_eval_rule = rule
        return rule

    def lowering(self, rule: F) -> F:
        """Register ``rule(hlo, *operands, **params) -> value``, which emits the operation as StableHLO."""
        self.lowering_rule = rule
        return rule

    def decomposition(self, rule: F) -> F:
        """Register ``rule(*args, **params) -> results``, which computes the results by other operations.

        Transformations use it for an operation that lacks the rule that they need, such as a lowering rule.
        """
        self.decomposition_rule = rule
        if self.lowering_rule is None:
            self.lowering_rule = lambda hlo, *xs, **params: hlo.inline(partial(rule, **params), *xs)
        return rule

    # Differentiation and batching

    def jvp(self, rule: F) -> F:
        """Register ``rule(primals, tangents, **params) -> (out, tangent_out)``; a tangent may be ``ZERO``."""
        self.jvp_rule = rule
        self.tangent_rule = None
        return rule

    def tangent(self, rule: F) -> F:
        """Register ``rule(ans, primals, tangents) -> tangent``, a jvp rule that is passed the primal result ``ans``."""

        def jvp(primals: Any, tangents: Any) -> Any:
            ans = self.bind(*primals)
            return ans, rule(ans, primals, tangents)

        self.jvp_rule = jvp
        self.tangent_rule = rule
        return rule

    def directional(self, rule: F, results_by_direction: bool = False) -> F:
        """Register a second jvp rule, which need not be linear in the tangents.

        It is used by ``jvp`` and ``jacfwd``, which know the tangents' values and do not transpose the rule.

        Args:
          rule: takes and returns the same as the jvp rule.
          results_by_direction: whether the primal results depend on the tangents, as eigenvectors of equal eigenvalues
            may. The rule is then used only where each value has a single tangent.
        """
        self.directional_rule = rule
        self.results_by_direction = results_by_direction
        return rule

    def transpose(self, rule: F, linear_in: str | tuple[int, ...] | None = None) -> F:
        """Register ``rule(ct, *operands, **params) -> cotangents``; linear operands are passed as ``LinearVar``.

        Args:
          rule: returns a cotangent for each operand, None for operands that are not linear.
          linear_in: the positions of the operands in which the operation is jointly linear; ``"each"`` if it is linear
            in each operand while the others are fixed; None if it is jointly linear in all.
        """
        self.transpose_rule = rule
        self.linear_in = linear_in
        return rule

    def batch(self, rule: F) -> F:
        """Register ``rule(axis, args, dims, **params) -> (out, dim)``; a dim is a mapped axis's position, or None."""
        self.batch_rule = rule
        return rule

    def axes(self, rule: F) -> F:
        """Register ``rule(params) -> names`` of the mapped axes in use; by default, those that its programs use."""
        self.axes_rule = rule
        return rule

    # Programs within programs

    def stage(self, rule: F) -> F:
        """Register ``rule(trace, args, params) -> results``, a custom way to record the operation in a jaxpr.

        It is for operations with functions as parameters, which may close over traced values. Their batching rule
        receives the trace instead of the axis, and is called even if no operand is batched.
        """
        self.stage_rule = rule
        return rule

    def record(self, rule: F) -> F:
        """Register ``rule(trace, args, params) -> results``, a custom way to record the operation on a tape.

        The rule records linear results and computes the others. If it returns None, the tape records all as usual.
        """
        self.record_rule = rule
        return rule

    def dce(self, rule: F) -> F:
        """Register ``rule(used_results, eqn) -> eqn``, which drops unused results; returning None drops ``eqn``."""
        self.dce_rule = rule
        return rule

    def partial_eval(self, rule: F) -> F:
        """Register ``rule(unknown_operands, eqn) -> (known_eqns, unknown_eqns, unknown_results)``.

        The rule splits an equation into equations that need only known operands, and the others. Flags mark unknown
        operands and results. Without a rule, all results of an equation with an unknown operand are unknown.
        """
        self.partial_eval_rule = rule
        return rule

    def remat(self, rule: F) -> F:
        """Register ``rule(eqn, wanted_results, policy, effects) -> RematSplit``, for operations that hold programs.

        It applies a ``checkpoint`` policy to the programs' equations; by default, the policy decides on the operation.
        """
        self.remat_rule = rule
        return rule

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        """Pickle a reference to the module attribute that holds the primitive, since its identity matters."""
        import pkgutil

        for module, contents in list(sys.modules.items()):
            for name, value in list(getattr(contents, "__dict__", {}).items()):
                if value is self:
                    return pkgutil.resolve_name, (f"{module}:{name}",)
        raise TypeError(f"the primitive {self.name!r} cannot be pickled, because it is not an attribute of a module")

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self


class Trace(TraceNames):
    """An interpreter of primitives.

    Attributes:
      parent: the trace around this one, to which it passes operations that have none of its tracers as operands.
      eager: whether operations on concrete arrays are computed immediately, so that Python may use their values.
      quick: whether operations on concrete arrays may bypass the trace, as no trace here or among the parents records
        or watches them. An eager trace is not quick while the thread debugs NaNs, for example.
      live: whether the transformation that made the trace is still running.
      is_bottom, differentiates: whether the trace has no parent, and whether it applies derivative rules to primals.
      runs_again: whether the backward pass runs the traced function a second time.
    """

    __slots__ = ("__weakref__", "eager", "function", "live", "parent", "quick")
    transformation = "a transformation"
    is_bottom = runs_again = differentiates = False

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
        """Whether this trace accepts the tracers of the trace ``other`` as its own."""
        return self is other

    def resolve(self, x: Any) -> Any:
        """Return ``x``; if the function is run again, return the new tracer for ``x``, a tracer of the first run."""
        return x

    def adopt(self, x: ArrayImpl) -> Array:
        """Return a new array ``x`` as users get it: as a tracer if this trace or a parent records programs."""
        return x if self.is_bottom else self.parent.adopt(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Return the results of an operation from ``process_primitive``, called with the parent as current trace."""
        outer, state.trace = state.trace, self.parent
        try:
            return self.process_primitive(primitive, args, params)
        finally:
            state.trace = outer

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the results of an operation: users' interpreters override this method, which is named as in JAX."""
        raise MissingRuleError(f"the interpreter {type(self).__name__} has no method process_primitive")

    def describe(self) -> str:
        """Return a description of the trace for error messages: its transformation and function."""
        return f"{self.transformation} of {source.describe_function(self.function)}"


class RelayTrace(Trace):
    """A trace that passes each operation to the function ``relay``, which usually applies it under the parent.

    Attributes:
      relay: ``relay(trace, primitive, args, params)`` returns the results of the operation.
    """

    __slots__ = ("relay", "transformation")

    def __init__(self, parent: Trace, relay: Relay, function: Any = None, transformation: str = "") -> None:
        super().__init__(parent, function)
        self.relay = relay
        self.transformation = transformation or parent.transformation

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.relay(self, primitive, args, params)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function with this trace current, end the trace, and return the result."""
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
      bottom: the evaluating trace of this thread, which depends on its debugging switches.
      axes: the mapped axes in scope, by name.
      source_loc: the source location of the equation that is being evaluated; None outside of programs.
      scope: the named scopes, and the pass of differentiation; None outside of scopes.
      switched: the handle by which other threads replace ``bottom`` when they set a switch for all threads.
      silently: calls a function without NumPy's warnings of overflow, division by zero and invalid values. This is
        faster than ``np.errstate``, which takes a microsecond, and leaves the user's settings unchanged. A call within
        such a call raises RuntimeError.
    """

    trace: Trace
    bottom: EvalTrace
    axes: dict[Any, MappedAxis]
    switched: Any
    silently: Callable[..., Any]
    source_loc: source.Location | None = None
    scope: source.Scope | None = None

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.silently = context.run
        self.axes = {}
        self.trace = self.bottom = EVAL
        runtime.begin_thread(self)
        runtime.thread_begun(self)


class Tracer(LookedAt):
    """A value that belongs to a trace: operations on the tracer are interpreted by the trace."""

    __slots__ = ("__weakref__", "_aval", "_trace", "made_at")

    _aval: ShapedArray
    _trace: Trace
    made_at: source.Location | None

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        """Make a tracer of ``trace``, a user's interpreter, with the abstract value ``aval``."""
        self._trace, self._aval, self.made_at = trace, aval, None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
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
        """Whether the type is weak: in promotion, types of other operands prevail."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    def origin(self) -> str:
        """Return a description of where this value comes from, for error messages."""
        if self.made_at is None:
            return f"{self._trace.describe()}, as an argument, or as a value made in a rule."
        return f"{self._trace.describe()}, where it was made:\n{source.format_location(self.made_at)}"

    def _leak(self) -> UnexpectedTracerError | None:
        """Return the error for a leaked tracer, whose trace is not active; None while its trace is active."""
        return None if is_at_work(self._trace) else leaked(self)

    def _leaked(self) -> UnexpectedTracerError:
        """Return the error for a value that is used while its trace is not active."""
        return leaked(self)


class EvalTrace(Trace):
    """The trace that evaluates operations immediately, with NumPy.

    Attributes:
      watches: whether the trace inspects results, as for ``debug_nans``.
    """

    __slots__ = ()
    transformation = "evaluation"
    is_bottom = True
    watches = False

    def run_program(self, closed: Any, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Return ``run()``, the results of the compiled program ``closed``; a subclass may inspect them."""
        return run()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        rule = primitive.host_rule
        if rule is None:
            return runtime.evaluate(primitive, args, params)
        # The fast paths for one and two arrays, as most operations have.
        weak: bool | None
        if len(args) == 2:
            x, y = args
            if type(x) is ArrayImpl:
                a = x._host_value
                if type(y) is ArrayImpl:
                    b = y._host_value
                    values: Any = runtime.in_memory(a, b)
                    weak = x.weak_type and y.weak_type and primitive.keeps_weak_type
                elif type(y) in SCALARS and a.dtype.isbuiltin == 1:
                    values = (a, y) if type(a) is not Absent else None
                    weak = x.weak_type and primitive.keeps_weak_type
                else:
                    values, weak = host_operands(primitive, args)
            elif type(x) in SCALARS and type(y) is ArrayImpl and y._host_value.dtype.isbuiltin == 1:
                values = (x, b) if type(b := y._host_value) is not Absent else None
                weak = y.weak_type and primitive.keeps_weak_type
            else:
                values, weak = host_operands(primitive, args)
        elif len(args) == 1 and type(args[0]) is ArrayImpl:
            a = (x := args[0])._host_value
            values = (a,) if type(a) is not Absent else None
            weak = primitive.keeps_weak_type and x.weak_type
        else:
            values, weak = host_operands(primitive, args)
        if values is None:
            return runtime.evaluate_absent(primitive, args, params)
        try:
            out = state.silently(rule, *values, **params)
        except Exception as error:
            if "maximum supported dimension" in str(error) or "within [0, 64]" in str(error):
                return runtime.evaluate_absent(primitive, args, params)  # more axes than NumPy's arrays have
            out = recover(error, primitive, args, values, params)
        if weak is None:
            weak = params["weak_type"]
        if primitive.multiple_results:
            return [ArrayImpl(value, weak and value.dtype.kind != "b") for value in out]
        result = _new(ArrayImpl)
        result._host_value = out
        result.weak_type = weak and out.dtype.kind != "b"
        return result


_new = object.__new__


def recover(error: Exception, primitive: Primitive, args: tuple[Any, ...], values: Any, params: dict[str, Any]) -> Any:
    """Return the result of an operation whose host rule raised ``error``, or raise an error that explains it.

    The result is computed again if the error was only that ``state.silently``, which cannot be nested, was active.
    ``values`` are the NumPy values of the operands ``args``.
    """
    if type(error) is RuntimeError and is_within_rule() and primitive.host_rule is not None:
        try:
            return primitive.host_rule(*values, **params)
        except Exception as inner:
            error = inner
    better = explain(error, primitive, args, params)
    if better is error:
        raise error
    raise better from None


def is_within_rule() -> bool:
    """Whether this thread runs a host rule. This is so if ``state.silently``, which cannot be nested, is active."""
    try:
        state.silently(bool)
    except RuntimeError:
        return True
    return False


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """Return the error for a tracer that is used while its trace is not active."""
    when = "outside of its transformation" if is_at_work(tracer._trace) else "after its transformation had ended"
    error = UnexpectedTracerError(
        f"a traced value of type {tracer.aval} was used {when}: it leaked through a global, a closure, an attribute "
        f"or a list. It comes from {tracer.origin()}\n"
        "Return the value from the transformed function (has_aux=True returns extra values) instead of storing it."
    )
    error.trace = tracer._trace
    return error


def check_result(x: Any) -> None:
    """Raise an error if ``x``, a result of a transformed function, is a leaked tracer."""
    if isinstance(x, Tracer) and not is_at_work(x._trace):
        raise leaked(x)


def live_trace(trace: Trace) -> Trace | None:
    """Return ``trace`` if it is active; else an active trace that accepts its tracers, as in a rerun; or None."""
    if trace.live:
        return trace
    current = state.trace
    while not current.is_same(trace):
        if current is current.parent:
            return None
        current = current.parent
    return current if current.live else None


def is_at_work(trace: Trace) -> bool:
    """Whether tracers of ``trace`` may be used: its transformation is running, or its function is being rerun."""
    return live_trace(trace) is not None


EVAL = EvalTrace(None)
"""The evaluating trace of threads without debugging switches; see :mod:`pullback.core.watching` for the others."""
state = _State()


@provides
def is_recording() -> bool:
    """Whether this thread is recording a program: operations then have no concrete results."""
    return not state.trace.eager
