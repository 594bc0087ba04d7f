"""The checker of jaxprs: each variable is bound once, before its first use, with the type that its equation returns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from pullback.core import source
from pullback.core.errors import JaxprError, PullbackError
from pullback.core.inlining import program_scope
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, infer, subjaxprs
from pullback.core.trace import missing_rule


def _broken(where: Eqn | str, rule: str) -> JaxprError:
    """Return the error that says that ``where`` breaks a rule of jaxprs.

    Args:
      where: an equation, or the name of a list of variables, such as "the list of inputs".
      rule: the rest of the message: a verb phrase that says what is wrong.
    """
    if isinstance(where, Eqn):
        where = f"the equation `{where}` from {source.describe(where.made_at)}"
    return JaxprError(f"{where} {rule}")


def _check_types(eqn: Eqn) -> None:
    """Raise a JaxprError unless an equation's variables have the types that abstract evaluation returns."""
    primitive = eqn.primitive
    if primitive.abstract_eval_rule is None:
        raise missing_rule(primitive, "abstract_eval", "the jaxpr checker")
    try:
        found = infer(primitive, [a.aval for a in eqn.invars], eqn.params)
    except (PullbackError, TypeError, ValueError) as error:
        raise _broken(eqn, f"does not fit its operands: {error}") from None
    expected = found if isinstance(found, list) else [found]
    if len(expected) != len(eqn.outvars):
        raise _broken(eqn, f"binds {len(eqn.outvars)} variables, but has {len(expected)} results")
    for var, aval in zip(eqn.outvars, expected, strict=True):
        if var.aval.shape != aval.shape or var.aval.dtype != aval.dtype:
            raise _broken(eqn, f"binds a variable of type {var.aval} to a result of type {aval}")


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, *, anew: bool = True) -> None:
    """Check that each variable is bound once, before its first use, with the type that its equation returns.

    Args:
      jaxpr: the program; the programs within it are checked too.
      anew: whether to check also those inner programs that an earlier call has checked.

    Raises:
      JaxprError: the message names the equation and the rule that the equation breaks.

    >>> from pullback import make_jaxpr
    >>> from pullback.extend.core import check_jaxpr
    >>> check_jaxpr(make_jaxpr(lambda x: 2 * x)(1.0))
    """
    _check(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr, set(), anew)


def _check(jaxpr: Jaxpr, seen: set[Jaxpr], anew: bool) -> None:
    """Check a program and the programs within it, and add the checked programs to ``seen``.

    Skip programs in ``seen``. If ``anew`` is False, skip also programs that an earlier call has checked.
    """
    if jaxpr in seen or (not anew and hasattr(jaxpr, "_checked")):
        return
    seen.add(jaxpr)
    bound: set[Var] = set()

    def bind(variables: Sequence[Var], where: Eqn | str) -> None:
        for v in variables:
            if v in bound:
                raise _broken(where, f"binds a variable twice: {v}")
            bound.add(v)

    def use(atoms: Sequence[Atom], where: Eqn | str) -> None:
        for a in atoms:
            if isinstance(a, Var) and a not in bound:
                raise _broken(where, f"uses a variable that is not bound: {a}")

    bind(jaxpr.constvars, "the list of constants")
    bind(jaxpr.invars, "the list of inputs")
    for eqn in jaxpr.eqns:
        use(eqn.invars, eqn)
        _check_types(eqn)
        bind(eqn.outvars, eqn)
        scope = program_scope.of(eqn.primitive)
        with nullcontext() if scope is None else scope(**eqn.params):
            for inner in subjaxprs(eqn):
                _check(inner, seen, anew)
    use(jaxpr.outvars, "the list of results")
    jaxpr._checked = True
