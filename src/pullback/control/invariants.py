"""Loop-invariant code motion: moving equations that are equal in all steps out of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import partition_list, positions, select, split_list
from pullback.primitives.random.bits import random_use_p
from pullback.transforms.traces.derived import cached_by_jaxpr


class Hoisted(NamedTuple):
    """The result of loop-invariant code motion for a scan.

    The step ``consts (a), carry (b, c), xs (x) -> carry (b, c + sin a + b), ys (x)`` becomes the step ``consts (b, s),
    carry (c), xs (x) -> carry (c + s + b)`` and the program ``a, b -> s``.

    Attributes:
      jaxpr: the smaller step.
      fixed: for each carried value, whether no step changes it: ``[True, False]``. Such values are appended to consts.
      through: for each stacked result, the index of the element that it equals, or None: ``[0]``.
      consts: for each const, whether the step still reads it: ``[False, True]``. Results of ``invariant`` follow those
        that it reads.
      invariant: the program of the consts that runs before the loop.
    """

    jaxpr: ClosedJaxpr
    fixed: list[bool]
    through: list[int | None]
    consts: list[bool]
    invariant: ClosedJaxpr


@cached_by_jaxpr
def hoisted(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> Hoisted | None:
    """Apply loop-invariant code motion to the step ``closed`` of a scan; return None if it changes nothing."""
    jaxpr = closed.jaxpr
    consts, carry, xs = split_list(jaxpr.invars, num_consts, num_carry)
    carry_outs, y_outs = split_list(jaxpr.outvars, num_carry)
    fixed = [a is v for a, v in zip(carry_outs, carry, strict=True)]
    elements = positions(xs)
    through = [elements.get(a) for a in y_outs]
    moving, constant = partition_list(carry, fixed)
    consts += constant
    invariant, left, _ = invariant_equations(jaxpr, consts)
    if not (invariant or constant or any(k is not None for k in through)):
        return None
    results = [*partition_list(carry_outs, fixed)[0], *(a for a, k in zip(y_outs, through, strict=True) if k is None)]
    read = {a for atoms in (*(eqn.invars for eqn in left), results) for a in atoms}
    computed = [v for eqn in invariant for v in eqn.outvars if v in read]
    still_read = [v in read for v in consts]
    inputs = [*select(consts, still_read), *computed, *moving, *xs]
    return Hoisted(
        ClosedJaxpr(Jaxpr(jaxpr.constvars, inputs, left, results), closed.consts),
        fixed,
        through,
        still_read,
        ClosedJaxpr(Jaxpr([], consts, invariant, computed)),
    )


def invariant_equations(
    jaxpr: Jaxpr, consts: Sequence[Var], may_grow: bool = False
) -> tuple[list[Eqn], list[Eqn], set[Var]]:
    """Split a step into loop-invariant equations and the others; return both, and the invariant variables.

    ``consts`` are the inputs that are equal in all steps. Equations whose results are larger than their operands, such
    as broadcasts, stay in the step unless ``may_grow``, as their results would have to be stored. Equations that mark a
    random key as used stay, too, since the uses in each step count.
    """
    fixed = set(consts)
    invariant: list[Eqn] = []
    left: list[Eqn] = []
    for eqn in jaxpr.eqns:
        operands = {a for a in eqn.invars if type(a) is Var}
        grows = sum(v.aval.size for v in eqn.outvars) > sum(v.aval.size for v in operands)
        # The use of a key is no effect, since dead uses are eliminated, but uses are counted in each step.
        stays = eqn.effect or eqn.primitive is random_use_p
        if operands <= fixed and (may_grow or (operands and not grows)) and not stays:
            invariant.append(eqn)
            fixed.update(eqn.outvars)
        else:
            left.append(eqn)
    return invariant, left, fixed
