"""The checker of jaxprs: each variable is bound once, before it is used, with the type that its equation returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pullback.core import source
from pullback.core.errors import JaxprError, PullbackError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, infer, subjaxprs
from pullback.core.trace import missing_rule


def _typing_errors(eqn: Eqn) -> Iterator[str]:
    """The typing rules of an equation, each with what it found."""
    primitive = eqn.primitive
    if primitive.abstract_eval_rule is None:
        raise missing_rule(primitive, "abstract_eval", "the jaxpr checker")
    try:
        found = infer(primitive, [a.aval for a in eqn.invars], eqn.params)
    except (PullbackError, TypeError, ValueError) as error:
        yield f"does not fit its operands: {error}"
        return
    expected = found if isinstance(found, list) else [found]
    if len(expected) != len(eqn.outvars):
        yield f"binds {len(eqn.outvars)} variables, but has {len(expected)} results"
    for var, aval in zip(eqn.outvars, expected, strict=False):
        if var.aval.shape != aval.shape or var.aval.dtype != aval.dtype:
            yield f"binds a variable of type {var.aval} to a result of type {aval}"


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, *, anew: bool = True) -> None:
    """Check that every variable is bound once, before it is used, and has the type that its equation gives it.

    Args:
      jaxpr: the program.
      anew: whether programs within it that were checked before are checked again.

    Raises:
      JaxprError: naming the equation and the rule that it breaks.
    """
    _check(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr, set(), anew)


def _check(jaxpr: Jaxpr, seen: set[Jaxpr], anew: bool) -> None:
    """Check a program, and each of those within it once, however many equations it is in."""
    if jaxpr in seen or (not anew and hasattr(jaxpr, "_checked")):
        return
    seen.add(jaxpr)
    bound: set[Var] = set()

    def bind(variables: Sequence[Var], what: Callable[[], str]) -> None:
        for v in variables:
            if v in bound:
                raise JaxprError(f"{what()} binds a variable that is bound already: {v}")
            bound.add(v)

    def use(atoms: Sequence[Atom], what: Callable[[], str]) -> None:
        for a in atoms:
            if isinstance(a, Var) and a not in bound:
                raise JaxprError(f"{what()} uses a variable that is not bound: {a}")

    bind(jaxpr.constvars, lambda: "the list of constants")
    bind(jaxpr.invars, lambda: "the list of inputs")
    for eqn in jaxpr.eqns:
        what = partial(_called, eqn)
        use(eqn.invars, what)
        for message in _typing_errors(eqn):
            raise JaxprError(f"{what()} {message}")
        bind(eqn.outvars, what)
        for inner in subjaxprs(eqn):
            _check(inner, seen, anew)
    use(jaxpr.outvars, lambda: "the list of results")
    jaxpr._checked = True


def _called(eqn: Eqn) -> str:
    """An equation, for error messages: its text is as long as all programs within it."""
    return f"the equation `{eqn}` from {source.describe(eqn.made_at)}"
