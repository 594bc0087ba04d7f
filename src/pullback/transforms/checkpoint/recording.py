"""Recording the operations of a checkpointed function, as a program that the backward pass evaluates again.

The function is ordinary Python and is called once, eagerly. While it runs, a trace evaluates and records each operation
as an equation. The backward pass evaluates these equations instead of calling the function: values that the function
read from its surroundings may have changed or be gone by then, and its branches were those for the same values.

Values that are differentiated are tracers of that trace, which have their values. All others (keys, masks, sizes) are
arrays, as in any eager code; large arrays among them that the function computed are recomputed, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, source
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, dtype_of, typeof
from pullback.core.errors import ConcretizationTypeError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from pullback.core.trace import Primitive, Trace, Tracer, recorders, state
from pullback.core.types import ShapedArray
from pullback.transforms.checkpoint.checkpoint_policies import nothing_saveable
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.checkpoint.eager_remat import StandInTrace, eager_remat, in_reverse_mode
from pullback.transforms.custom.custom_linear import is_traced_ahead
from pullback.transforms.traces.dce import close, live_equations
from pullback.transforms.traces.jaxprs import jvp_jaxpr
from pullback.transforms.traces.literals import typed_literals

Run = Callable[..., Sequence[Any]]

_LARGE = 1024
"""The least number of elements of an array without derivative that is recomputed instead of being saved."""


class Recorded:
    """A function whose first call runs it and records its operations; later calls evaluate the recorded program.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      operands: the operands of the first call. In this call, differentiated operands are replaced by tracers.
    """

    __slots__ = ("_active", "_again", "_function", "_run")

    def __init__(self, function: Any, run: Run, operands: Sequence[Any]) -> None:
        self._function = function
        self._run = run
        self._active = list(map(_is_differentiated, operands))
        self._again: _Replay | None = None

    def __call__(self, *operands: Any) -> list[Any]:
        if self._again is not None:
            return self._again(*operands)
        trace = RecordTrace(state.trace, self._function)
        args = list(map(trace.input, operands, self._active))
        try:  # an interrupt may come after any call
            state.trace = trace
            recorders.append(trace)
            results = [as_array(x) for x in self._run(*args)]
        finally:
            state.trace = trace.parent
            trace.live = False
            if trace in recorders:
                recorders.remove(trace)
        self._again = _Replay(self._function, trace.program(results))
        return [trace.value(x) for x in results]


class _Replay:
    """A callable that evaluates a recorded program on operands, and frees each value after its last use."""

    __slots__ = ("_closed", "_function", "_last")

    def __init__(self, function: Any, closed: ClosedJaxpr) -> None:
        self._function = function
        self._closed = closed
        used: set[Any] = {a for a in closed.jaxpr.outvars if type(a) is Var}
        self._last: list[list[Var]] = []
        """For each equation, in reverse order, the variables that are dead after it."""
        for eqn in reversed(closed.jaxpr.eqns):
            last = [v for v in dict.fromkeys([*eqn.invars, *eqn.outvars]) if type(v) is Var and v not in used]
            used.update(last)
            self._last.append(last)

    def __call__(self, *operands: Any) -> list[Any]:
        jaxpr = self._closed.jaxpr
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, self._closed.consts, strict=True))
        env.update(zip(jaxpr.invars, operands, strict=True))
        source_loc, scope = state.source_loc, state.scope
        try:
            for eqn, last in zip(jaxpr.eqns, reversed(self._last), strict=True):
                state.source_loc = eqn.made_at or source_loc
                state.scope = scope if eqn.scope is None else eqn.scope.within(scope)
                atoms: list[Any] = eqn.invars
                out = self._evaluated(eqn, [env[a] if type(a) is Var else a.val for a in atoms])
                if eqn.primitive.multiple_results:
                    env.update(zip(eqn.outvars, out, strict=True))
                else:
                    env[eqn.outvars[0]] = out
                del out
                for v in last:
                    del env[v]
        finally:
            state.source_loc, state.scope = source_loc, scope
        return [env[a] if type(a) is Var else a.val for a in jaxpr.outvars]  # type: ignore[union-attr]

    def _evaluated(self, eqn: Eqn, operands: list[Any]) -> Any:
        """Evaluate an equation on ``operands``; return its result, or the list of its results.

        In reverse mode, an equation of an inner checkpointed function saves only its operands, and is recomputed later.
        """
        params = eqn.params
        if (
            eqn.primitive is checkpoint_p  # the transformation's own operation
            and params["policy"] in (None, nothing_saveable)
            and not params["differentiated"]
            and in_reverse_mode(state.trace)
            and not is_traced_ahead(state.trace, recorded=False)
        ):  # otherwise all residuals of its recomputation would be live until its backward pass
            return eager_remat(self._function, _Replay(self._function, params["jaxpr"]), operands)
        return eqn.primitive.bind(*operands, **params)


def recording(trace: Trace, options: dict[str, Any], call: Callable[[], Any]) -> Any:
    """Return ``call()``, the result of a checkpointed function with the options ``options``, outside of reverse mode.

    If ``trace`` or one of its parents records an outer checkpointed function, the operations of the call are recorded
    as a region of the outer function's program.
    """
    while not trace.is_bottom:
        if type(trace) is RecordTrace:
            return trace.region(options, call)
        trace = trace.parent
    return call()


def _is_differentiated(x: Any) -> bool:
    """Whether ``x`` is a tracer whose value depends on differentiated inputs."""
    return isinstance(x, Tracer) and x.differentiated() is not None


class RecordTracer(Tracer):
    """A tracer of a ``RecordTrace``: a variable of the recorded program, with its value.

    Attributes:
      value: a concrete array, or a tracer of a parent of the trace.
      variable: the variable.
    """

    __slots__ = ("value", "variable")

    def __init__(self, trace: RecordTrace, variable: Var, value: Any, made_at: source.Location | None) -> None:
        self._trace = trace
        self.variable = variable
        self.value = value
        self.made_at = made_at

    @property
    def aval(self) -> ShapedArray:
        return self.variable.aval

    def concrete(self) -> Any:
        value = self.value
        return value.concrete() if isinstance(value, Tracer) else value

    def abstract_part(self) -> Tracer:
        value = self.value
        return value.abstract_part() if isinstance(value, Tracer) else self

    def differentiated(self) -> Tracer | None:
        trace: Any = self._trace
        return self if trace.has_derivative(self.variable) else None

    def shown(self) -> Any:
        value = self.value
        return value.shown() if isinstance(value, Tracer) else value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value = self.concrete() if self.differentiated() is None else None
        return super().__array__(dtype, copy) if value is None else value.__array__(dtype, copy)


class _Region:
    """The recorded operations of an inner checkpointed function, which become one ``checkpoint`` equation.

    Attributes:
      items: the equations and inner regions, in order.
      options: the parameters of the ``checkpoint`` equation.
    """

    __slots__ = ("items", "options")

    def __init__(self, items: list[Any], options: dict[str, Any]) -> None:
        self.items = items
        self.options = options


class RecordTrace(Trace):
    """A trace that evaluates operations under its parent, and records some of them to be evaluated again.

    It records the operations on differentiated values, and those with large results.

    Attributes:
      items: the recorded equations and regions of equations, in order.
    """

    __slots__ = ("_consts", "_constvars", "_invars", "_known", "_quickest", "items")
    transformation = "differentiation of a checkpointed function"
    runs_again = True

    def __init__(self, parent: Trace, function: Any) -> None:
        super().__init__(parent, function)
        self.quick = False
        below = parent
        while isinstance(below, StandInTrace):  # which only substitute operands: concrete arrays may skip them
            below = below.parent
        self._quickest = below if below.is_bottom else parent
        self.items: list[Any] = []
        self._invars: list[Var] = []
        self._constvars: list[Var] = []
        self._consts: list[Any] = []
        # The variables of arrays that are no tracers of this trace, by id; constants are kept alive, others are not.
        self._known: dict[int, tuple[Callable[[], Any], Var]] = {}

    # Running the function

    def input(self, x: Any, active: bool) -> Any:
        """Add an input with the value ``x`` to the program; return the value to call the function with.

        If the input is differentiated (``active``), this value is a tracer, otherwise ``x`` itself.
        """
        var = Var(typeof(x))
        self._invars.append(var)
        if active:
            return RecordTracer(self, var, x, None)
        self._known[id(x)] = weakref.ref(x), var
        return x

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        active = scalars = False
        below = self._quickest
        values: list[Any] = []
        for x in args:
            kind = type(x)
            if kind is RecordTracer and x._trace is self:
                active = True
                x = x.value
                if type(x) is not ArrayImpl:
                    below = self.parent
            elif kind in SCALARS:
                scalars = True
            elif kind is not ArrayImpl:
                active = active or _is_differentiated(x)
                below = self.parent
            values.append(x)
        if active and primitive.stage_rule is not None:
            # Its functions may read their surroundings, too: stage them now, or keep them if they branch on values.
            length = len(self.items)
            try:
                return primitive.stage_rule(self, args, params)
            except ConcretizationTypeError:
                del self.items[length:]
        previous, state.trace = state.trace, below
        try:
            out = below.process(primitive, tuple(values), params)
        finally:
            state.trace = previous
        if primitive.multiple_results:
            results = out
        else:
            if active and dtypes.is_inexact(out.dtype):  # most operations
                var = Var(out.aval)
                made_at = state.source_loc or source.here()
                self.items.append(Eqn(primitive, self._atoms(args, scalars), params, [var], made_at, state.scope))
                return RecordTracer(self, var, out, made_at)
            results = [out]
        if active:
            derived = [dtypes.is_inexact(dtype_of(x)) for x in results]
            is_recorded = primitive.effect or True in derived or any(x.size >= _LARGE for x in results)
        else:
            derived, is_recorded = [False] * len(results), any(x.size >= _LARGE for x in results)
        if not is_recorded:
            return out
        made_at = state.source_loc or source.here()
        outvars = [Var(typeof(x)) for x in results]
        self.items.append(Eqn(primitive, self._atoms(args, scalars), params, outvars, made_at, state.scope))
        returned: list[Any] = []
        for x, var, has_tangent in zip(results, outvars, derived, strict=True):
            if has_tangent:
                x = RecordTracer(self, var, x, made_at)
            else:
                self._known[id(x)] = weakref.ref(x), var
            returned.append(x)
        return returned if primitive.multiple_results else returned[0]

    def _atoms(self, args: Sequence[Any], scalars: bool) -> list[Any]:
        """Return the variables of the operands ``args``; if ``scalars``, literals for the Python numbers among them."""
        if not scalars:
            return list(map(self.atom, args))
        atoms: list[Any] = [Literal(x, typeof(x)) if type(x) in SCALARS else self.atom(x) for x in args]
        typed_literals(atoms, args)
        return atoms

    def value(self, x: Any) -> Any:
        """Return the value of ``x`` if it is a tracer of this trace, and otherwise ``x``."""
        return x.value if type(x) is RecordTracer and x._trace is self else x

    def atom(self, x: Any) -> Var:
        """Return the variable of the value ``x`` in the program; add ``x`` as a constant if it has none."""
        if type(x) is RecordTracer and x._trace is self:
            return x.variable
        if not isinstance(x, Array):
            x = as_array(x)
        reference, var = self._known.get(id(x), _NONE)
        if reference() is x:
            return var  # type: ignore[no-any-return]
        var = Var(typeof(x))
        self._known[id(x)] = lambda: x, var
        self._constvars.append(var)
        self._consts.append(x)
        return var

    def region(self, options: dict[str, Any], call: Callable[[], Any]) -> Any:
        """Return ``call()``, the result of an inner checkpointed function, and record its operations as a region.

        ``options`` are the parameters of the equation that the region becomes.
        """
        outer, self.items = self.items, []
        try:
            out = call()
            outer.append(_Region(self.items, options))
        finally:
            self.items = outer
        return out

    # The program

    def has_derivative(self, var: Var) -> bool:
        """Whether a variable has a derivative, with respect to the differentiated values, that is not always zero.

        Return True if the trace has ended.
        """
        if not self.live:
            return True
        eqns, live = live_equations(list(_flat(self.items)), [var])
        active = [v for v, x in zip(self._constvars, self._consts, strict=True) if _is_differentiated(x)]
        inputs = [v for v in [*self._invars, *active] if v in live]
        values = dict(zip(self._constvars, self._consts, strict=True))
        constvars = [v for v in self._constvars if v in live and v not in inputs]
        closed = close(Jaxpr(constvars, inputs, eqns, [var]), values)
        state.trace, outer = self.parent, state.trace
        try:
            return jvp_jaxpr(closed, [dtypes.is_inexact(v.aval.dtype) for v in inputs])[1][0]
        finally:
            state.trace = outer

    def program(self, results: Sequence[Any]) -> ClosedJaxpr:
        """Return the recorded program, from the inputs to the values ``results``, without dead code."""
        outvars: list[Atom] = list(map(self.atom, results))
        live: set[Any] = set(outvars)
        eqns = _needed(self.items, live)
        constvars = list(filter(live.__contains__, self._constvars))
        values = dict(zip(self._constvars, self._consts, strict=True))
        return close(Jaxpr(constvars, self._invars, eqns, outvars), values)


_NONE: tuple[Callable[[], Any], Any] = (lambda: _NONE), None


def _flat(items: Sequence[Any]) -> Iterator[Eqn]:
    """Yield the equations among ``items``, and those within the regions among ``items``, in order."""
    for item in items:
        if type(item) is _Region:
            yield from _flat(item.items)
        else:
            yield item


def _needed(items: Sequence[Any], live: set[Any]) -> list[Eqn]:
    """Return, in order, the equations that the variables ``live`` depend on, and those with effects.

    Each region becomes one equation. The variables that these equations read are added to the set ``live``.
    """
    needed: list[Eqn] = []
    for item in reversed(items):
        eqn = _of_region(item, live) if type(item) is _Region else item
        if eqn is not None and (eqn.effect or not live.isdisjoint(eqn.outvars)):
            needed.append(eqn)
            live.update(a for a in eqn.invars if type(a) is Var)
    return needed[::-1]


def _of_region(region: _Region, live: set[Any]) -> Eqn | None:
    """Return one ``checkpoint`` equation for a region, the recorded operations of an inner checkpointed function.

    The results of the equation are the variables of the region that are in ``live``. Return None if no equation of the
    region is needed.
    """
    bound = [v for eqn in _flat(region.items) for v in eqn.outvars]
    results = list(filter(live.__contains__, bound))
    inside: set[Any] = set(results)
    eqns = _needed(region.items, inside)
    if not eqns:
        return None
    within = set(bound)
    inputs = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in within))
    closed = ClosedJaxpr(Jaxpr([], inputs, eqns, results), [])
    return Eqn(checkpoint_p, [*inputs], {"jaxpr": closed, **region.options}, results, eqns[0].made_at, eqns[0].scope)
