"""Which interpreter is at work, in the spelling of ``jax.extend.core``; for interpreters of users' own."""

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
    """A mark by which an interpreter of a user's own knows its tracers."""

    __slots__ = ()


class Effect:
    """What an operation does beside returning results, in JAX's spelling; a base class for users' own."""


class OpaqueTraceState:
    """Which interpreter is at work: compares equal as long as no transformation begins or ends."""

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
    """What tells whether a transformation began or ended since: two of them compare equal if none did.

    Args:
      convention: who asks; is taken for JAX's sake.

    >>> import pullback
    >>> before = get_opaque_trace_state()
    >>> before == get_opaque_trace_state(), pullback.jit(lambda x: x * (before == get_opaque_trace_state()))(1)
    (True, Array(0, dtype=int32, weak_type=True))
    """
    return OpaqueTraceState(_bottom(state.trace))


def _bottom(trace: Trace) -> Trace:
    """The trace, or the one that evaluates for this thread: switches exchange that one."""
    return state.bottom if trace.is_bottom else trace


def trace_state_clean() -> bool:
    """Whether no transformation is at work.

    >>> trace_state_clean()
    True
    """
    return state.trace.is_bottom


def find_top_trace(values: Any = ()) -> Trace:
    """The interpreter that is at work, whatever the values are.

    >>> find_top_trace(()).transformation
    'evaluation'
    """
    return state.trace


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """A context with the interpreter that is at work, for one of a user's own that stands on it.

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
    """A context in which an interpreter is at work: one of a user's own, or one that it stands on.

    Args:
      trace: the interpreter.
      check_leaks: is taken for JAX's sake.

    Raises:
      ArgumentError: it is no interpreter (a TypeError).

    >>> from pullback import core, lax
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
    """The type of one example of a batch.

    Args:
      size: the size of the mapped axis.
      axis: its position; None if there is none.
      aval: the type of the batch.

    Raises:
      ArgumentError: the axis is of another size (a ValueError).

    >>> import numpy as np
    >>> mapped_aval(3, 1, ShapedArray((2, 3), np.dtype("float32")))
    ShapedArray(f32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ArgumentError(f"mapped_aval: axis {axis} of {aval} is not of size {size}")
    axis %= aval.ndim
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type of a batch of examples.

    Args:
      size: the size of the mapped axis.
      axis: its position in the batch; None if there is none.
      aval: the type of an example.
      explicit_mesh_axis: is taken for JAX's sake.

    >>> import numpy as np
    >>> unmapped_aval(3, 1, ShapedArray((2,), np.dtype("float32")))
    ShapedArray(f32[2,3])
    """
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a number, of a dtype that there is.

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
    """A value that Python may look at, converted by a function.

    Args:
      force: ``int``, ``np.asarray``, ...; None leaves the value as it is.
      val: an array or anything else.
      context: what the value is for, for the error message.

    Raises:
      ConcretizationTypeError: the value is traced (a TypeError).
      LostDerivativeError: the value is being differentiated, and what ``force`` makes of it would have no derivative.

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
    """An equation, in JAX's order of arguments.

    Args:
      invars: the operands, variables and literals.
      outvars: the variables that it binds.
      primitive: the operation.
      params: its parameters.
      effects: are taken for JAX's sake, as is ``ctx``: an equation's effects are those of its primitive.
      source_info: where it was written.
      ctx: see above.

    >>> from pullback import make_jaxpr
    >>> (eqn,) = make_jaxpr(lambda x: x + x)(1.0).eqns
    >>> new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params)
    add a a
    """
    location, scope = (source_info.location, source_info.scope) if source_info is not None else (None, None)
    return Eqn(primitive, list(invars), dict(params), list(outvars), location, scope)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type."""
    return Var


def subjaxprs_of(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs in the parameters of a program's equations."""
    for eqn in jaxpr.eqns:
        yield from subjaxprs(eqn)


def named_axes() -> list[Any]:
    """The names of the axes in scope.

    >>> import pullback
    >>> found = []
    >>> x = pullback.vmap(lambda x: found.append(named_axes()) or x, axis_name="i")(pullback.numpy.ones(2))
    >>> found
    [['i']]
    """
    return list(state.axes)


def within(kind: type[Trace]) -> bool:
    """Whether an interpreter of a kind is at work, here or further out."""
    trace = state.trace
    while not trace.is_bottom:
        if isinstance(trace, kind):
            return True
        trace = trace.parent
    return isinstance(trace, kind)


class DropVar(Var):
    """A variable that nothing reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"
