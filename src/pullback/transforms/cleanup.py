"""Clean-up of a program before it is compiled: what no result needs goes, and what is computed twice is once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from pullback.transforms.dce import live_equations


def clean(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without dead code and without repeated equations; its inputs and constants stay.

    >>> import pullback.numpy as pnp
    >>> from pullback import make_jaxpr
    >>> def f(x):
    ...     unused = pnp.cos(x)
    ...     return pnp.sin(x) * pnp.sin(x)
    >>> clean(make_jaxpr(f)(1.0))
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b in (c,) }
    """
    jaxpr = closed.jaxpr
    eqns, _ = live_equations(jaxpr.eqns, jaxpr.outvars)
    same: dict[Atom, Atom] = {}
    eqns = _without_repetitions(eqns, same)
    outvars = [same.get(a, a) for a in jaxpr.outvars] if same else jaxpr.outvars
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), closed.consts)


def _without_repetitions(eqns: list[Eqn], same: dict[Atom, Atom]) -> list[Eqn]:
    """The equations without those that repeat an earlier one, for whose variables ``same`` tells the earlier ones."""
    kept: list[Eqn] = []
    known: dict[Any, list[Var]] = {}
    for eqn in eqns:
        invars = [same.get(a, a) for a in eqn.invars] if same else eqn.invars
        key = (eqn.primitive, *map(_identity, invars), *eqn.params.items())
        earlier = known.setdefault(key, eqn.outvars)
        if earlier is not eqn.outvars and not eqn.effect:
            same.update(zip(eqn.outvars, earlier, strict=True))
            continue
        if same:
            eqn = Eqn(eqn.primitive, invars, eqn.params, eqn.outvars, eqn.made_at, eqn.scope)
        kept.append(eqn)
    return kept


def _identity(atom: Atom) -> Any:
    """What an operand is: a variable, or a number of a type."""
    if type(atom) is Var:
        return atom
    value = atom.val._value if isinstance(atom.val, ArrayImpl) else atom.val  # type: ignore[union-attr]
    return Literal, atom.aval.dtype, np.asarray(value, atom.aval.dtype).tobytes()
