"""``jax.interpreters.partial_eval``: the names that ``pullback.interpreters.partial_eval`` lacks."""

from collections.abc import Sequence
from typing import Any

from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from pullback.core.trace import Primitive as _Primitive
from pullback.core.trace import Rule
from pullback.interpreters.table import Table


def _set_dce(primitive: _Primitive, rule: Rule) -> None:
    primitive.dce_rule = lambda used, eqn: rule(used, eqn)[1]


def _spelled_dce(primitive: _Primitive, rule: Rule) -> Rule:
    def dce(used_outputs: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
        smaller = rule(used_outputs, eqn)
        kept = set() if smaller is None else set(map(id, smaller.invars))
        return [id(v) in kept for v in eqn.invars], smaller

    return dce


dce_rules = Table("dead-code elimination", lambda p: p.dce_rule, _set_dce, _spelled_dce)
"""For each primitive, ``rule(used_outputs, eqn) -> (used_inputs, smaller_eqn)``. cuEquivariance adds one."""


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a closed jaxpr of a jaxpr without constants. Oryx needs it.

    Raises:
      ArgumentError: it has constants (a TypeError and a ValueError).

    >>> from pullback import make_jaxpr
    >>> from pullback.compat.extras.interpreters.partial_eval import close_jaxpr
    >>> close_jaxpr(make_jaxpr(lambda x: -x)(1.0).jaxpr)
    { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    """
    if jaxpr.constvars:
        raise ArgumentError(f"close_jaxpr: the program has {len(jaxpr.constvars)} constants, whose values are missing")
    return ClosedJaxpr(jaxpr)


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Return a jaxpr whose first inputs are the constants of another one. Oryx needs it.

    >>> import numpy as np
    >>> from pullback import make_jaxpr
    >>> from pullback.compat.extras.interpreters.partial_eval import convert_constvars_jaxpr
    >>> convert_constvars_jaxpr(make_jaxpr(lambda x: x + np.ones(2, "f"))(1.0).jaxpr).constvars
    []
    """
    inputs: Sequence[Any] = [*jaxpr.constvars, *jaxpr.invars]
    return Jaxpr([], inputs, jaxpr.eqns, jaxpr.outvars)


__all__ = ["close_jaxpr", "convert_constvars_jaxpr", "dce_rules"]
