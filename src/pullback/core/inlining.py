"""Inlining: replace operations that hold a program by the equations of that program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.rule_kinds import RuleKind

runs_once = RuleKind("runs_once", "it is a separate operation")
"""``rule(**params) -> closed_jaxpr``, for an operation that runs one program once on its operands. All transformations
may inline that program, so a function with custom rules has no such rule."""

inlined = RuleKind("inlined", "it is a function of the compiled program")
"""``rule(**params) -> closed_jaxpr``, for an operation that compiled programs replace by the equations of its program.
A checkpoint has no such rule: it has to be computed again."""


def flattened(closed: ClosedJaxpr, kind: RuleKind) -> ClosedJaxpr:
    """Replace each operation that has a rule of ``kind`` by the equations of the program that the rule returns.

    Return the new program. Operations within the inserted equations are replaced too. In the example, ``jit`` is
    replaced.

    >>> from pullback import jit, lax, make_jaxpr
    >>> from pullback.core.inlining import flattened, runs_once
    >>> flattened(make_jaxpr(jit(lax.sin))(1.0), runs_once)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    jaxpr = closed.jaxpr
    if not any(kind.of(eqn.primitive) for eqn in jaxpr.eqns):
        return closed
    captured: dict[int, tuple[Var, Any]] = {id(x): (v, x) for v, x in zip(jaxpr.constvars, closed.consts, strict=True)}
    eqns: list[Eqn] = []

    def enter(inner: Jaxpr, values: Sequence[Any], operands: Sequence[Atom]) -> list[Atom]:
        """Append to ``eqns`` the equations of ``inner``, applied to ``operands``; return its results.

        ``values`` are the values of the constants of ``inner``. Operations with a rule are inlined recursively.
        """
        positions: dict[Any, Any] = dict(zip(inner.invars, operands, strict=True))
        for v, x in zip(inner.constvars, values, strict=True):
            positions[v] = captured.setdefault(id(x), (Var(v.aval), x))[0]
        for eqn in inner.eqns:
            atoms = [positions.get(a, a) for a in eqn.invars]
            rule = kind.of(eqn.primitive)
            if rule is not None:
                program: ClosedJaxpr = rule(**eqn.params)
                positions.update(zip(eqn.outvars, enter(program.jaxpr, program.consts, atoms), strict=True))
            elif inner is jaxpr and atoms == eqn.invars:
                eqns.append(eqn)
            else:
                outvars = [Var(v.aval) for v in eqn.outvars]
                eqns.append(eqn.like(atoms, outvars))
                positions.update(zip(eqn.outvars, outvars, strict=True))
        return [positions.get(a, a) for a in inner.outvars]

    results = enter(jaxpr, closed.consts, jaxpr.invars)
    return ClosedJaxpr(
        Jaxpr([v for v, _ in captured.values()], jaxpr.invars, eqns, results), [x for _, x in captured.values()]
    )


program_scope = RuleKind("program_scope", "the current context")
"""``rule(**params) -> context manager``: the context in which the types of the operation's programs are inferred."""
