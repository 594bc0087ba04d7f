"""The current trace and its types, in the spelling of ``jax.extend.core``; for users' interpreters."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, ConcretizationTypeError, OperandError
from pullback.core.jaxpr import Eqn, Jaxpr, Var, subjaxprs
from pullback.core.jaxpr import _programs as jaxprs_in_params
from pullback.core.jaxpr_info import EqnContext, SourceInfo
from pullback.core.trace import Primitive, Trace, Tracer, recorders, state
from pullback.core.types import ShapedArray

__all__ = [
    "Effect", "OpaqueTraceState", "TraceTag", "concrete_or_error", "find_top_trace", "gensym",
    "get_opaque_trace_state", "jaxprs_in_params", "mapped_aval", "named_axes", "new_jaxpr_eqn", "set_current_trace",
    "subjaxprs_of", "take_current_trace", "trace_state_clean", "unmapped_aval", "valid_jaxtype", "within",
]  # fmt: skip


class TraceTag:
    """A mark, compared by identity, by which a user's interpreter recognizes its own tracers.

    >>> from pullback.extend.core import TraceTag
    >>> TraceTag() == TraceTag()
    False
    """

    __slots__ = ()


class Effect:
    """The base class of users' side effects of operations; JAX has a class of this name.

    >>> from pullback.extend.core import Effect
    >>> class Log(Effect):
    ...     "An operation with this effect writes to a log."
    >>> isinstance(Log(), Effect)
    True
    """


class OpaqueTraceState:
    """A snapshot of the current trace. Two snapshots are equal if the same trace was current in both."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = weakref.ref(trace)  # Flax keeps it in variables, which outlive the trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    def __hash__(self) -> int:
        return hash(OpaqueTraceState)  # a trace that is gone has no hash

    def __repr__(self) -> str:
        trace = self._trace()
        return f"<the state of tracing: {trace.transformation if trace else 'one that ended'}>"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return a snapshot of the current trace. Two snapshots are equal if the same trace was current in both.

    Args:
      convention: is ignored; JAX has it.

    Returns:
      A snapshot.

    >>> from pullback import jit
    >>> from pullback.extend.core import get_opaque_trace_state
    >>> before = get_opaque_trace_state()
    >>> before == get_opaque_trace_state(), jit(lambda x: x * (before == get_opaque_trace_state()))(1)
    (True, Array(0, dtype=int32, weak_type=True))
    """
    return OpaqueTraceState(_bottom(state.trace))


def _bottom(trace: Trace) -> Trace:
    """Return ``trace``, or this thread's evaluating trace if ``trace`` is an evaluating trace, perhaps an older one.

    The evaluating trace of a thread is replaced when a debugging switch is set.
    """
    return state.bottom if trace.is_bottom else trace


def trace_state_clean() -> bool:
    """Whether no transformation is active.

    >>> from pullback.core.inspection import trace_state_clean
    >>> trace_state_clean()
    True
    """
    return state.trace.is_bottom


def find_top_trace(values: Any = ()) -> Trace:
    """Return the current trace; ``values`` is ignored.

    Args:
      values: is ignored; JAX has it.

    Returns:
      A trace.

    >>> from pullback.extend.core import find_top_trace
    >>> find_top_trace(()).transformation
    'evaluation'
    """
    return state.trace


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """A context manager that yields the current trace, and restores it at the end of the block.

    A user's interpreter uses the yielded trace as its parent.

    Returns:
      A context manager.

    >>> from pullback.extend.core import take_current_trace
    >>> with take_current_trace() as trace:
    ...     print(trace.transformation)
    evaluation
    """
    outer = state.trace
    try:
        yield outer
    finally:
        state.trace = outer


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """A context manager in which ``trace`` is the current trace.

    Args:
      trace: a user's interpreter, or the parent of one.
      check_leaks: is ignored; JAX has it.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``trace`` is no interpreter (a TypeError).

    >>> from pullback import core, lax
    >>> from pullback.extend.core import set_current_trace
    >>> class Counting(core.Trace):
    ...     def process_primitive(self, primitive, tracers, params):
    ...         print(primitive)
    ...         return primitive.bind_with_trace(self.parent, tracers, params)
    >>> with set_current_trace(Counting()):
    ...     y = lax.sin(lax.add(1.0, 2.0))
    add
    sin
    """
    if not isinstance(trace, Trace):
        raise ArgumentError(f"set_current_trace takes an interpreter, a core.Trace, got {trace!r}")
    records = not trace.quick
    outer, state.trace = state.trace, trace
    try:
        if records:
            recorders.append(trace)
        yield
    finally:
        state.trace = outer
        if records and trace in recorders:
            recorders.remove(trace)


# Types ----------------------------------------------------------------------------------------------------------------


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example of a batch: the batch's type without the mapped axis.

    Args:
      size: the size of the mapped axis.
      axis: the position of the mapped axis; None if the value is not batched: its type is then returned unchanged.
      aval: the type of the batch.

    Returns:
      A type.

    Raises:
      ArgumentError: the axis of ``aval`` is not of this size (a ValueError).

    >>> import numpy as np
    >>> from pullback.extend import ShapedArray
    >>> from pullback.extend.core import mapped_aval
    >>> mapped_aval(3, 1, ShapedArray((2, 3), np.dtype("float32")))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ArgumentError(f"mapped_aval: axis {axis} of {aval} is not of size {size}")
    axis %= aval.ndim
    return aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """Return the type of a batch of examples: the example's type with a mapped axis inserted.

    Args:
      size: the size of the mapped axis.
      axis: the position of the mapped axis in the batch; None if the value is not batched: its type is then returned
        unchanged.
      aval: the type of one example.
      explicit_mesh_axis: is ignored; JAX has it.

    Returns:
      A type.

    >>> import numpy as np
    >>> from pullback.extend import ShapedArray
    >>> from pullback.extend.core import unmapped_aval
    >>> unmapped_aval(3, 1, ShapedArray((2,), np.dtype("float32")))
    ShapedArray(float32[2,3])
    """
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.with_axis(axis, size)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a number of a supported dtype.

    Args:
      x: any value.

    Returns:
      A bool of Python's.

    >>> from pullback.extend.core import valid_jaxtype
    >>> valid_jaxtype(1.0), valid_jaxtype("text")
    (True, False)
    """
    try:
        typeof(x)
    except (OperandError, TypeError):
        return False
    return True


_WITHOUT_DERIVATIVE = (bool, int, operator.index)


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """Return ``force(val)``, or raise an error if ``val`` has no concrete value.

    Args:
      force: ``int``, ``np.asarray``, ...; None returns the value unchanged.
      val: an array or anything else.
      context: what needs the value, for the error message.

    Returns:
      The value, or the result of ``force``.

    Raises:
      ConcretizationTypeError: the value is traced (a TypeError).
      LostDerivativeError: the value is being differentiated, and the result of ``force`` would have no derivative.

    >>> from pullback.extend.core import concrete_or_error
    >>> concrete_or_error(int, 3.0, "a size")
    3
    """
    if isinstance(val, Tracer):
        what, instead = context or "concrete_or_error", "Compute it outside of the function."
        if force in _WITHOUT_DERIVATIVE:
            val = val._known(ConcretizationTypeError, what, instead)
        else:
            val = val.concrete_value(what, instead)
    return val if force is None else force(val)


# Programs -------------------------------------------------------------------------------------------------------------


def new_jaxpr_eqn(
    invars: Iterable[Any],
    outvars: Iterable[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: Any = frozenset(),
    source_info: SourceInfo | None = None,
    ctx: EqnContext | None = None,
) -> Eqn:
    """Make an equation, with the arguments in JAX's order.

    Args:
      invars: the operands: variables and literals.
      outvars: the variables to which the equation binds its results.
      primitive: the operation.
      params: the parameters of the operation.
      effects: is ignored; JAX has it. An equation has the effects of its primitive.
      source_info: the source location of the equation.
      ctx: is ignored; JAX has it.

    Returns:
      An equation.

    >>> from pullback import make_jaxpr
    >>> from pullback.extend.core import new_jaxpr_eqn
    >>> (eqn,) = make_jaxpr(lambda x: x + x)(1.0).eqns
    >>> new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params)
    add a a
    """
    location, scope = (source_info.location, source_info.scope) if source_info is not None else (None, None)
    return Eqn(primitive, list(invars), dict(params), list(outvars), location, scope)


def gensym() -> Callable[[ShapedArray], Var]:
    """Return a function that takes a type and makes a new variable of this type.

    Returns:
      The function.

    >>> import numpy as np
    >>> from pullback.extend import ShapedArray
    >>> from pullback.extend.core import gensym
    >>> new = gensym()
    >>> print(new(ShapedArray((2,), np.dtype("float32"))).aval)
    float32[2]
    """
    return Var


def subjaxprs_of(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs that are parameters of a program's equations."""
    for eqn in jaxpr.eqns:
        yield from subjaxprs(eqn)


def named_axes() -> list[Any]:
    """Return the names of the mapped axes in scope, as a list.

    >>> import pullback
    >>> from pullback.core.inspection import named_axes
    >>> found = []
    >>> x = pullback.vmap(lambda x: found.append(named_axes()) or x, axis_name="i")(pullback.numpy.ones(2))
    >>> found
    [['i']]
    """
    return list(state.axes)


def within(kind: type[Trace]) -> bool:
    """Whether the current trace, or any of the traces enclosing it, is an instance of the class ``kind``."""
    trace = state.trace
    while not trace.is_bottom:
        if isinstance(trace, kind):
            return True
        trace = trace.parent
    return isinstance(trace, kind)


class DropVar(Var):
    """A variable bound to a result that nothing uses; printed as ``_``.

    Args:
      aval: the type of the result.

    >>> from pullback import make_jaxpr
    >>> make_jaxpr(lambda x: (x + 1, 2 * x)[1])(1.0)
    { lambda ; a:f32[]. let
        _:f32[] = add a 1.0:f32[]
        b:f32[] = mul 2.0:f32[] a
      in (b,) }
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"
