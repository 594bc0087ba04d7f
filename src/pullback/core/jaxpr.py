"""Jaxprs: programs as data, and their evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from pullback.core import source
from pullback.core.errors import JaxprError
from pullback.core.jaxpr_info import CONTEXT, UNKNOWN, DebugInfo, EqnContext, SourceInfo, changed
from pullback.core.jaxpr_text import VariableNames, show_eqn, show_jaxpr, show_literal
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, missing_rule, state
from pullback.core.types import ShapedArray

aval_of = attrgetter("aval")


class Var:
    """A variable of a jaxpr, bound exactly once: a constant, an input, or the result of an equation."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval}"


class Literal:
    """A number ``val`` of type ``aval``, used as an operand or result of a jaxpr instead of a variable."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return show_literal(self)


Atom = Var | Literal


class Eqn:
    """One equation: ``outvars = primitive[params] invars``, with its source location."""

    __slots__ = ("invars", "made_at", "outvars", "params", "primitive", "scope")

    def __init__(
        self,
        primitive: Primitive,
        invars: list[Atom],
        params: dict[str, Any],
        outvars: list[Var],
        made_at: source.Location | None = None,
        scope: source.Scope | None = None,
    ) -> None:
        self.primitive = primitive
        self.invars = invars
        self.params = params
        self.outvars = outvars
        self.made_at = made_at
        self.scope = scope

    def __reduce__(self) -> Any:
        # Without the source location, which is a code object: Python does not pickle these.
        return Eqn, (self.primitive, self.invars, self.params, self.outvars, None, self.scope)

    def __repr__(self) -> str:
        return "\n".join(show_eqn(self, VariableNames(), "", ""))

    def replace(self, **changes: Any) -> Eqn:
        """Return a copy of the equation with attributes replaced, as in ``eqn.replace(primitive=p)``.

        The keyword ``source_info`` takes another equation's location. ``effects`` and ``ctx``, as in JAX, are ignored.
        """
        info = changes.pop("source_info", None)
        if info is not None:
            changes = {"made_at": info.location, "scope": info.scope, **changes}
        changes.pop("effects", None)
        changes.pop("ctx", None)
        return Eqn(**changed(self, changes, ("primitive", "invars", "params", "outvars", "made_at", "scope")))

    @property
    def ctx(self) -> EqnContext:
        """The context in which a user's interpreter evaluates the equation: ``with eqn.ctx.manager: ...``."""
        return CONTEXT if self.scope is None or not self.scope.metadata else EqnContext(self.scope.metadata)

    def like(self, invars: Sequence[Atom], outvars: Sequence[Var], **params: Any) -> Eqn:
        """Return a copy of the equation with these operands and results, updating its parameters by ``params``."""
        return Eqn(self.primitive, list(invars), {**self.params, **params}, list(outvars), self.made_at, self.scope)

    @property
    def source_info(self) -> SourceInfo:
        """The equation's location in the user's program."""
        return SourceInfo(self.made_at, self.scope)

    @property
    def effects(self) -> frozenset[str]:
        """The names of the primitives with side effects in the equation, including the programs in its parameters."""
        own = {self.primitive.name} if self.primitive.effect else set()
        return frozenset(own.union(*(jaxpr.effects for jaxpr in subjaxprs(self))))

    @property
    def effect(self) -> bool:
        """Whether the equation has a side effect, and so must run exactly once even if its results are unused."""
        return self.primitive.effect or any(jaxpr.effect for jaxpr in subjaxprs(self))


class Jaxpr:
    """A program: constants, inputs, equations in order, and results.

    Treat it as immutable, because results of transformations are cached for each jaxpr.
    """

    __slots__ = (
        "__weakref__",
        "_axes",
        "_checked",
        "_debug_info",
        "_effects",
        "constvars",
        "eqns",
        "invars",
        "outvars",
    )

    _axes: frozenset[Any]
    _checked: bool
    _effects: frozenset[str]

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        eqns: Sequence[Eqn],
        outvars: Sequence[Atom],
        effects: Any = None,
        debug_info: DebugInfo | None = None,
    ) -> None:
        """Make a program.

        Args:
          constvars: the variables of the constants.
          invars: the variables of the inputs.
          eqns: the equations, in order. The order ``outvars, eqns`` of arguments, as in JAX, is accepted too.
          outvars: the results: variables or literals.
          effects: is ignored; JAX has it. A program has the effects of its equations.
          debug_info: describes the function that was traced.
        """
        third: Any = eqns
        fourth: Any = outvars
        if (third and type(third[0]) is not Eqn) or (fourth and type(fourth[0]) is Eqn):
            eqns, outvars = fourth, third
        if debug_info is not None:
            self._debug_info = debug_info
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.eqns = list(eqns)
        self.outvars = list(outvars)

    @property
    def effect(self) -> bool:
        """Whether the program has side effects."""
        return bool(self.effects)

    @property
    def axes(self) -> frozenset[Any]:
        """The named axes that the program's operations refer to, without those that the program itself maps over."""
        try:
            return self._axes
        except AttributeError:
            self._axes = _NO_AXES.union(*[free_axes(e.primitive, e.params) for e in self.eqns if e.params])
            return self._axes

    @property
    def effects(self) -> frozenset[str]:
        """The names of the primitives with side effects in the program, including inner programs."""
        if not hasattr(self, "_effects"):
            eqns = [eqn for eqn in self.eqns if eqn.primitive.effect or (eqn.params and eqn.effect)]
            self._effects = frozenset[str]().union(*(eqn.effects for eqn in eqns))
        return self._effects

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the program's inputs."""
        return list(map(aval_of, self.invars))

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the program's results."""
        return list(map(aval_of, self.outvars))

    def replace(self, **changes: Any) -> Jaxpr:
        """Return a copy of the program with attributes replaced; ``changes`` are keywords of the constructor."""
        changes.pop("effects", None)
        return Jaxpr(**changed(self, changes, ("constvars", "invars", "eqns", "outvars", "debug_info")))

    @property
    def debug_info(self) -> DebugInfo:
        """The description of the traced function that was passed to the constructor."""
        return getattr(self, "_debug_info", UNKNOWN)

    def pretty_print(
        self, *, source_info: bool = False, name_stack: bool = False, use_color: bool | None = None
    ) -> str:
        """Return the program as text.

        Args:
          source_info: whether to print the source location of each equation.
          name_stack: whether to print the named scopes of each equation.
          use_color: accepted for compatibility; there are no colors.
        """
        return "\n".join(show_jaxpr(self, VariableNames(source_info, name_stack), ""))

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr with the values of its constants.

    Results of transformations of the program are stored in this object (see ``cached_by_jaxpr``), not in a global
    table. A result may refer to the program, as the derivative of a loop does; the garbage collector then frees both.
    """

    __slots__ = ("__weakref__", "_derived", "consts", "jaxpr")

    _derived: dict[Any, Any]

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr = jaxpr
        self.consts = list(consts)

    def __reduce__(self) -> Any:  # a copy begins anew
        return ClosedJaxpr, (self.jaxpr, self.consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return list(map(aval_of, self.jaxpr.invars))

    @property
    def out_avals(self) -> list[ShapedArray]:
        return list(map(aval_of, self.jaxpr.outvars))

    eqns = property(lambda self: self.jaxpr.eqns)
    literals = property(lambda self: self.consts)
    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    effects = property(lambda self: self.jaxpr.effects)
    debug_info = property(lambda self: self.jaxpr.debug_info)

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """Return a copy of the closed jaxpr with ``jaxpr`` or ``consts`` replaced."""
        return ClosedJaxpr(**changed(self, changes, ("jaxpr", "consts")))

    def map_jaxpr(self, function: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Return a closed jaxpr of ``function(self.jaxpr)`` with the same values of the constants."""
        return ClosedJaxpr(function(self.jaxpr), self.consts)

    def pretty_print(
        self, *, source_info: bool = False, name_stack: bool = False, use_color: bool | None = None
    ) -> str:
        """Return the program as text; see :meth:`Jaxpr.pretty_print`."""
        return self.jaxpr.pretty_print(source_info=source_info, name_stack=name_stack, use_color=use_color)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


_NO_AXES: frozenset[Any] = frozenset()


def free_axes(primitive: Primitive, params: dict[str, Any]) -> frozenset[Any]:
    """Return the named axes that an operation refers to, itself or in the programs among its parameters."""
    rule = primitive.axes_rule
    if rule is not None:
        return rule(params)  # type: ignore[no-any-return]
    return _NO_AXES.union(*[jaxpr.axes for jaxpr in _programs(params)])


def subjaxprs(eqn: Eqn) -> Iterator[Jaxpr]:
    """Yield the jaxprs among an equation's parameters."""
    return _programs(eqn.params)


def holds_programs(params: dict[str, Any]) -> bool:
    """Whether there are programs among the parameters of an operation."""
    return any(True for _ in _programs(params))


def _programs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


# Types of results, and evaluation ---------------------------------------------------------------------------------


def infer(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    """Return the type of an operation's result, including weak types; a list of types if it has multiple results."""
    rule = primitive.abstract_eval_rule
    if rule is None:
        raise missing_rule(primitive, "abstract_eval", "tracing")
    out = rule(*avals, **params)
    for a in avals:
        if a.varying or a.explicit is not None:
            out = _over_axes(primitive, avals, params, out)
            break
    weak = False
    for a in avals:
        if a.weak_type:
            weak = bool(primitive.keeps_weak_type)
        elif a.dtype.kind != "b":  # booleans, such as the condition of a select, do not count
            weak = False
            break
    if primitive.multiple_results:
        return [a.update(weak_type=a.dtype.kind != "b") for a in out] if weak else out
    weak = out.weak_type or (weak and out.dtype.kind != "b")
    for a in avals:  # a program has few types and many variables: equal types share one object
        same = a.dtype is out.dtype and a.shape == out.shape and a.weak_type == weak and a.varying == out.varying
        if same and (a.explicit is out.explicit or a.explicit == out.explicit):
            return a
    return out if out.weak_type == weak else ShapedArray(out.shape, out.dtype, weak, out.varying, sharding=out.explicit)


def _over_axes(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], out: Any) -> Any:
    if any(a.varying for a in avals):
        out = _varying(primitive, avals, params, out)
    return out if all(a.explicit is None for a in avals) else runtime.explicit_results(primitive, avals, params, out)


def _varying(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], out: Any) -> Any:
    """Return ``out``, one or several result types, marked as varying along the named axes of the operands.

    Return it unchanged if the operation has an ``axes`` rule or programs, whose own rules mark the types.
    """
    if primitive.axes_rule is not None or holds_programs(params):
        return out
    axes = _NO_AXES.union(*[a.varying for a in avals])
    if primitive.multiple_results:
        return [a.update(varying=a.varying | axes) for a in out]
    return out.update(varying=out.varying | axes)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a jaxpr under the current trace, and return the list of its results.

    Args:
      jaxpr: the program.
      consts: a value for each constant of the program.
      args: a value for each input of the program.
    """
    if len(args) != len(jaxpr.invars):
        raise JaxprError(f"a jaxpr of {len(jaxpr.invars)} inputs was given {len(args)}: {jaxpr}")
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    source_loc, scope = state.source_loc, state.scope
    try:
        for eqn in jaxpr.eqns:
            state.source_loc = eqn.made_at or source_loc
            if eqn.scope is not None:
                state.scope = eqn.scope.within(scope)
            elif state.scope is not scope:
                state.scope = scope
            operands = [env[a] if type(a) is Var else a.val for a in eqn.invars]  # type: ignore[union-attr]
            out = eqn.primitive.bind(*operands, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    finally:
        state.source_loc, state.scope = source_loc, scope
    return [env[a] if type(a) is Var else a.val for a in jaxpr.outvars]  # type: ignore[union-attr]


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a function that takes the inputs of a closed jaxpr and returns the list of its results."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)
