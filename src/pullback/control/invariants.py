"""Loop-invariant code motion: what all steps of a scan compute alike is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import partition_list, positions, select, split_list
from pullback.primitives.random.bits import random_use_p
from pullback.transforms.traces.derived import cached_by_jaxpr


class Hoisted(NamedTuple):
    """A scan after loop-invariant code motion.

    The step ``consts (a), carry (b, c), xs (x) -> carry (b, c + sin a + b), ys (x)`` becomes the step ``consts (b, s),
    carry (c), xs (x) -> carry (c + s + b)`` and the program ``a, b -> s``.

    Attributes:
      jaxpr: the smaller step.
      fixed: for each carry, whether no step changes it: ``[True, False]``. Such a carry is appended to the constants.
      through: for each stacked result, the index of the element that it is, or None: ``[0]``.
      consts: for each constant, whether the step still reads it: ``[False, True]``. Results of ``invariant`` come after
        those that it reads.
      invariant: the program of the constants that runs once.
    """

    jaxpr: ClosedJaxpr
    fixed: list[bool]
    through: list[int | None]
    consts: list[bool]
    invariant: ClosedJaxpr


@cached_by_jaxpr
def hoisted(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> Hoisted | None:
    """A scan after loop-invariant code motion; None if nothing moves."""
    jaxpr = closed.jaxpr
    consts, carry, xs = split_list(jaxpr.invars, num_consts, num_carry)
    carry_outs, y_outs = split_list(jaxpr.outvars, num_carry)
    fixed = [a is v for a, v in zip(carry_outs, carry, strict=True)]
    elements = positions(xs)
    through = [elements.get(a) for a in y_outs]
    moving, constant = partition_list(carry, fixed)
    consts += constant
    once, left, _ = invariant_equations(jaxpr, consts)
    if not (once or constant or any(k is not None for k in through)):
        return None
    results = [*partition_list(carry_outs, fixed)[0], *(a for a, k in zip(y_outs, through, strict=True) if k is None)]
    read = {a for atoms in (*(eqn.invars for eqn in left), results) for a in atoms}
    computed = [v for eqn in once for v in eqn.outvars if v in read]
    kept = [v in read for v in consts]
    inputs = [*select(consts, kept), *computed, *moving, *xs]
    return Hoisted(
        ClosedJaxpr(Jaxpr(jaxpr.constvars, inputs, left, results), closed.consts),
        fixed,
        through,
        kept,
        ClosedJaxpr(Jaxpr([], consts, once, computed)),
    )


def invariant_equations(
    jaxpr: Jaxpr, consts: Sequence[Var], may_grow: bool = False
) -> tuple[list[Eqn], list[Eqn], set[Var]]:
    """The equations of a program that all steps compute alike, the others, and the variables that are the same.

    Unless it ``may_grow``, what is larger than what it is made of, such as a broadcast, stays: computed once, it would
    have to be stored. So does the use of a random key, which each step repeats.
    """
    fixed = set(consts)
    once: list[Eqn] = []
    left: list[Eqn] = []
    for eqn in jaxpr.eqns:
        operands = {a for a in eqn.invars if type(a) is Var}
        grows = sum(v.aval.size for v in eqn.outvars) > sum(v.aval.size for v in operands)
        # No effect, as a use that nobody reads is left out, but counted: the one operation of this kind.
        stays = eqn.effect or eqn.primitive is random_use_p
        if operands <= fixed and (may_grow or (operands and not grows)) and not stays:
            once.append(eqn)
            fixed.update(eqn.outvars)
        else:
            left.append(eqn)
    return once, left, fixed
