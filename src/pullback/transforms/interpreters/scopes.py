"""Named scopes, and marks that tell where operations of derivatives come from.

While a function is traced within a ``named_scope``, equations carry its name. Those of derivatives are made elsewhere,
by rules and by transposition: to give them the scope and the line of the operation that they belong to, the two
interpreters of differentiation are replaced by slower ones, which keep marks for those threads that are in a scope, or
look for NaNs. That is only while there are any; otherwise nothing is paid for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any
from weakref import WeakValueDictionary

from pullback.core import source
from pullback.core.config import config
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.jaxpr_text import holds_programs
from pullback.core.linear import LinearTrace
from pullback.core.locks import renewed
from pullback.core.source import BACKWARD, TANGENT, Location, Scope
from pullback.core.trace import Primitive, Trace, missing_rule, state
from pullback.core.types import ZERO
from pullback.transforms.functions.arguments import check_callable
from pullback.transforms.interpreters.forward import JVPTrace, JVPTracer


@contextmanager
def _at(place: Location | None, scope: Scope | None) -> Iterator[None]:
    before = state.source_loc, state.scope
    state.source_loc, state.scope = place, scope
    try:
        yield
    finally:
        state.source_loc, state.scope = before


def _in_pass(phase: str) -> Scope:
    """The current scope, in a pass of differentiation."""
    return Scope("", phase).within(state.scope)


# Marks on the tape ---------------------------------------------------------------------------------------------------


class Placed(Primitive):
    """A primitive on a tape, which remembers where it was recorded; equal ones are the same object."""

    def __init__(self, primitive: Primitive, place: Location | None, path: str) -> None:
        vars(self).update(vars(primitive))
        self.primitive = primitive
        self.place = place
        self.path = path
        if primitive.transpose_rule is not None:
            self.transpose_rule = self._transpose

    def bind(self, *args: Any, **params: Any) -> Any:
        with _at(self.place, Scope(self.path, TANGENT)):
            return self.primitive.bind(*args, **params)

    def _transpose(self, ct: Any, *args: Any, **params: Any) -> Any:
        assert self.primitive.transpose_rule is not None
        with _at(self.place, Scope(self.path, BACKWARD)):
            return self.primitive.transpose_rule(ct, *args, **params)


_placed: WeakValueDictionary[Any, Placed] = WeakValueDictionary()


def _place(primitive: Primitive) -> Placed:
    place, path = state.source_loc or source.here(), state.scope.path if state.scope else ""
    key = (primitive, place, path)
    found = _placed.get(key)
    if found is None:
        found = _placed[key] = Placed(primitive, place, path)
    return found


_record = LinearTrace.process


def _record_placed(self: LinearTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    before = len(self.nodes)
    out = _record(self, primitive, args, params)
    if len(self.nodes) > before and not self.quick and _keeps_marks():
        self.nodes[-1].primitive = _place(primitive)
    return out


# Marks in derivative rules -------------------------------------------------------------------------------------------


class _Rule(Trace):
    """Stands before the trace of a derivative rule: what the rule does belongs to the tangents, but for the values."""

    __slots__ = ("primals", "primitive", "transformation")

    def __init__(self, rules: Trace, primitive: Primitive, primals: Sequence[Any]) -> None:
        super().__init__(rules)
        self.transformation = rules.transformation
        self.primitive = primitive
        self.primals = primals

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        same = primitive is self.primitive and len(args) == len(self.primals)
        if same and all(x is y for x, y in zip(args, self.primals, strict=True)):
            return self.parent.process(primitive, args, params)
        before = state.scope
        state.scope = _in_pass(TANGENT)
        try:
            return self.parent.process(primitive, args, params)
        finally:
            state.scope = before


_differentiate = JVPTrace.process


def _differentiate_marked(self: JVPTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    own = [type(x) is JVPTracer and x._trace is self for x in args]
    if self.quick or not _keeps_marks() or True not in own or any(map(holds_programs, params.values())):
        return _differentiate(self, primitive, args, params)  # programs have marks of their own
    rule = primitive.jvp_rule
    if rule is None:
        raise missing_rule(primitive, "jvp", "differentiation")
    primals = tuple([x.primal if mine else x for x, mine in zip(args, own, strict=True)])
    tangents = tuple([x.tangent if mine else ZERO for x, mine in zip(args, own, strict=True)])
    previous = state.trace
    state.trace = _Rule(self.rules, primitive, primals)
    try:
        out, tangent = rule(primals, tangents, **params)
    finally:
        state.trace = previous
    made_at = source.here() if previous is self else None
    if primitive.multiple_results:
        return [self.with_tangent(o, t, primitive, made_at) for o, t in zip(out, tangent, strict=True)]
    return self.with_tangent(out, tangent, primitive, made_at)


# Turning marks on ----------------------------------------------------------------------------------------------------

_lock = threading.Lock()
renewed(globals(), "_lock", threading.Lock)
_wanted = 0


class _Blocks(threading.local):
    """How many blocks this thread is in that keep marks."""

    count = 0


_blocks = _Blocks()


def _keeps_marks() -> bool:
    return bool(_blocks.count or config.debug_nans or config.debug_infs)


def look_for_marks(begin: bool) -> None:
    """Have the interpreters ask whether marks are kept, as long as more calls with True than with False were made."""
    global _wanted
    with _lock:
        _wanted += 1 if begin else -1
        if _wanted == (1 if begin else 0):
            JVPTrace.process = _differentiate_marked if begin else _differentiate  # type: ignore[method-assign]
            LinearTrace.process = _record_placed if begin else _record  # type: ignore[method-assign]


def _mark(begin: bool) -> None:
    """Keep marks in this thread from now on, or no longer: as ``look_for_marks`` counts."""
    look_for_marks(begin)
    _blocks.count += 1 if begin else -1


@contextmanager
def _marking() -> Iterator[None]:
    _mark(True)
    try:
        yield
    finally:
        _mark(False)


def marking_for(closed: ClosedJaxpr) -> Any:
    """A block in which marks are kept if a program, which is transformed in it, has scopes."""
    return _marking() if any(eqn.scope is not None for eqn in closed.eqns) else nullcontext()


# The public functions ------------------------------------------------------------------------------------------------


def named_scope(name: str) -> Any:
    """A block, or a decorator, that names a part of a program: for the compiler's names of operations, and in profiles.

    Args:
      name: the name; within another scope it is appended, as in ``encoder/attention``.

    Raises:
      ArgumentError: the name is no text (a TypeError and ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import jit
    >>> @jit
    ... def f(x):
    ...     with named_scope("encoder"):
    ...         return pnp.sin(x)
    >>> "encoder/sin" in f.lower(1.0).as_text(debug_info=True)
    True
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"named_scope takes a name, a text that is not empty, got {name!r}")
    return _scope(name)


@contextmanager
def _scope(name: str) -> Iterator[None]:
    outer = state.scope
    state.scope = Scope(name).within(outer)
    traced = not state.trace.quick  # otherwise there is nothing to keep marks in
    if traced:
        _mark(True)
    try:
        yield
    finally:
        if traced:
            _mark(False)
        state.scope = outer


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """A function whose operations are in a named scope.

    Args:
      fun: any function.
      name: the name of the scope; by default that of the function.

    >>> import pullback.numpy as pnp
    >>> from pullback import jit
    >>> "decode/tanh" in jit(named_call(pnp.tanh, name="decode")).lower(1.0).as_text(debug_info=True)
    True
    """
    check_callable(fun, "named_call")
    chosen = name or getattr(fun, "__name__", None) or type(fun).__name__
    named_scope(chosen)

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _scope(chosen):
            return fun(*args, **kwargs)

    return call
