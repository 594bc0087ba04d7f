"""Programs within a program that are only run once, such as functions under ``jit``: their equations instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.rule_kinds import RuleKind
from pullback.transforms.interpreters.derived import cached_by_jaxpr

runs_once = RuleKind("runs_once")
"""``rule(**params) -> closed_jaxpr``, for an operation that is a program, run once on its operands."""

programs_in_step = RuleKind("programs_in_step")
"""``rule(**params) -> programs``, for an operation that runs programs on its operands, such as a loop: each as a
``Stepped``."""


class Stepped(NamedTuple):
    """A program that an operation runs on its operands, perhaps several times.

    Attributes:
      program: the program.
      first: the number of the operand that is its first input.
      changing: the numbers of the inputs that are others in each step, and no operands of the whole.
    """

    program: ClosedJaxpr
    first: int
    changing: range = range(0)


@cached_by_jaxpr
def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program of the same results, in which the programs that are run once are replaced by their equations.

    >>> from pullback.primitives.elementwise import sin
    >>> from pullback.transforms.derivatives.tracing import make_jaxpr
    >>> from pullback.transforms.jit.jit import jit
    >>> flattened(make_jaxpr(jit(sin))(1.0))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    jaxpr = closed.jaxpr
    if not any(runs_once.of(eqn.primitive) for eqn in jaxpr.eqns):
        return closed
    constvars, consts = [*jaxpr.constvars], [*closed.consts]
    eqns: list[Eqn] = []

    def enter(inner: Jaxpr, values: Sequence[Any], operands: Sequence[Atom]) -> list[Atom]:
        """Append the equations of a program; its results."""
        places: dict[Any, Any] = dict(zip(inner.invars, operands, strict=True))
        if inner is not jaxpr:
            fresh = [Var(v.aval) for v in inner.constvars]
            constvars.extend(fresh)
            consts.extend(values)
            places.update(zip(inner.constvars, fresh, strict=True))
        for eqn in inner.eqns:
            atoms = [places.get(a, a) for a in eqn.invars]
            rule = runs_once.of(eqn.primitive)
            if rule is not None:
                program: ClosedJaxpr = rule(**eqn.params)
                places.update(zip(eqn.outvars, enter(program.jaxpr, program.consts, atoms), strict=True))
            elif inner is jaxpr and atoms == eqn.invars:
                eqns.append(eqn)
            else:
                outvars = [Var(v.aval) for v in eqn.outvars]
                eqns.append(eqn.like(atoms, outvars))
                places.update(zip(eqn.outvars, outvars, strict=True))
        return [places.get(a, a) for a in inner.outvars]

    results = enter(jaxpr, (), jaxpr.invars)
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, eqns, results), consts)
