"""The primitive ``scan``: a program run step by step, that carries values from each step to the next.

Operands are the constants of all steps, the initial carry, and arrays of which each step takes one element of the
leading axis. The program takes the three and returns the new carry, and what is stacked along a new leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    inlined,
    op_count,
    reordered,
    run_interpreted,
    typed,
    zero_tangent,
)
from pullback.core.array import ArrayImpl, host_value, is_at_home, typeof
from pullback.core.check_rules import checked_program
from pullback.core.config import config
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, appended, jaxpr_as_fun, positions
from pullback.core.linear import is_linear
from pullback.core.lists import fixpoint, merge_lists, partition_list, select, split_list, spread
from pullback.core.taylor_rules import taylor_program
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import add_any, convert_element_type
from pullback.primitives.random_bits import random_use_p
from pullback.primitives.shapes import moveaxis
from pullback.transforms.checks.report import Layout
from pullback.transforms.checks.trace import CheckTrace, Errors, checked_jaxpr, merged, no_failure, width
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.interpreters.dce import close, dce_closed_jaxpr, live_equations
from pullback.transforms.interpreters.derived import cached_by_jaxpr
from pullback.transforms.interpreters.division import record_in_parts
from pullback.transforms.interpreters.inlining import Stepped, programs_in_step
from pullback.transforms.interpreters.jaxprs import (
    Kept,
    batch_jaxpr,
    flat_series,
    grouped,
    jvp_jaxpr,
    kept_of,
    taylor_jaxpr,
)
from pullback.transforms.interpreters.laplacian import Carried, Directions, filled, laplacian_rule, laplacian_step
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.remat import Policy, RematSplit, remat_steps
from pullback.transforms.interpreters.stage import stage_flat
from pullback.transforms.programs.jit_primitive import at_bottom, concrete
from pullback.transforms.programs.program_primitive import check_types, if_needed, transposed

scan_p = Primitive("scan", multiple_results=True, keeps_weak_type=False)

Flags = Sequence[bool]
Dims = Sequence[int | None]


class Loop(NamedTuple):
    """The parameters of a scan that are not changed by what is made of its program.

    Attributes:
      length: the number of steps.
      reverse: whether the steps go from the last element to the first.
      unroll: how many steps one round of the compiled loop takes.
    """

    length: int
    reverse: bool
    unroll: int


def bind(
    jaxpr: ClosedJaxpr, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The final carry and the stacked results of a scan that was made by a rule."""
    counts = {"num_consts": len(consts), "num_carry": len(init)}
    outs = scan_p.bind(*consts, *init, *xs, jaxpr=jaxpr, **counts, **loop._asdict())
    return outs[: len(init)], outs[len(init) :]


def hoist_loop_invariants(
    jaxpr: ClosedJaxpr, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The final carry and the stacked results of a scan, after loop-invariant code motion.

    A carry that no step changes becomes a constant: as a carry it would be kept for each step, if the backward pass
    needs its value. A stacked result that is just an element is left out. What is the same in all steps is computed
    once, and differentiated once.
    """
    simpler = _hoisted(jaxpr, len(consts), len(init))
    if simpler is None:
        return bind(jaxpr, loop, consts, init, xs)
    moving, fixed = partition_list(init, simpler.fixed)
    consts = [*consts, *fixed]
    once = jaxpr_as_fun(simpler.invariant)(*consts)
    carry, ys = bind(simpler.jaxpr, loop, [*select(consts, simpler.consts), *once], moving, xs)
    stacked = iter(ys)
    return merge_lists(simpler.fixed, carry, fixed), [next(stacked) if k is None else xs[k] for k in simpler.through]


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
def _hoisted(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> Hoisted | None:
    """A scan after loop-invariant code motion; None if nothing moves."""
    jaxpr = closed.jaxpr
    consts, carry, xs = split_list(jaxpr.invars, num_consts, num_carry)
    carry_outs, y_outs = split_list(jaxpr.outvars, num_carry)
    fixed = [a is v for a, v in zip(carry_outs, carry, strict=True)]
    elements = positions(xs)
    through = [elements.get(a) for a in y_outs]
    moving, constant = partition_list(carry, fixed)
    consts += constant
    once, left, _ = _invariant_equations(jaxpr, consts)
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


def _invariant_equations(
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


@scan_p.abstract_eval
def _shape(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, **loop: Any
) -> list[ShapedArray]:
    fixed = num_consts + num_carry
    expected = jaxpr.in_avals[:fixed] + [_stacked(a, length) for a in jaxpr.in_avals[fixed:]]
    check_types("this scan", avals, expected)
    outs = jaxpr.out_avals
    check_types("the next step of this scan", outs[:num_carry], expected[num_consts:fixed])
    return outs[:num_carry] + [_stacked(a, length) for a in outs[num_carry:]]


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))


scan_p.record(partial(record_in_parts, scan_p))


@programs_in_step(scan_p)
def _programs(*, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **loop: Any) -> list[Stepped]:
    return [Stepped(jaxpr, 0, range(num_consts, num_consts + num_carry))]


# Evaluation ----------------------------------------------------------------------------------------------------------


@scan_p.impl
@at_bottom
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results: of a few operations one by one, of more as a compiled program."""
    arrays = [concrete(x) for x in args]
    jaxpr, length, num_carry = params["jaxpr"], params["length"], params["num_carry"]
    elsewhere = not all(map(is_at_home, arrays))
    if not (config.disable_jit or checking()) and (elsewhere or length * op_count(jaxpr) > INTERPRETED):
        from pullback.backends.one_operation import evaluate

        return evaluate(scan_p, arrays, params)  # type: ignore[no-any-return]
    consts, carry, xs = split_list(arrays, params["num_consts"], num_carry)
    rows = [x._value for x in xs]
    y_avals = jaxpr.out_avals[num_carry:]
    columns = [np.empty((length, *a.shape), a.dtype) for a in y_avals]
    for i in reversed(range(length)) if params["reverse"] else range(length):
        outs = run_interpreted(jaxpr, [*consts, *carry, *[ArrayImpl(x[i], False) for x in rows]])
        carry = outs[:num_carry]
        for column, y in zip(columns, outs[num_carry:], strict=True):
            column[i] = host_value(y)
    ys = [ArrayImpl(column, a.weak_type) for column, a in zip(columns, y_avals, strict=True)]
    return [*typed(carry, jaxpr), *ys]


# Forward differentiation ---------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A transformed step of a loop, and what it concerns.

    Attributes:
      jaxpr: the transformed step.
      carry: for each carry, whether it has a tangent, is mapped, or is left.
      ys: the same for each stacked result of a scan.
    """

    jaxpr: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]


@cached_by_jaxpr
def jvp_body(closed: ClosedJaxpr, num_consts: int, num_carry: int, nonzero: Flags) -> Step:
    """A step of values and tangents: constants ``a``, carry ``b`` -> ``b`` becomes ``a, da, b, db -> b, db``."""
    consts, init, xs = split_list(nonzero, num_consts, num_carry)
    nothing = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def step(carry: list[bool]) -> Any:
        both, nonzero_out = jvp_jaxpr(closed, (*consts, *carry, *xs), (*carry, *nothing))
        return nonzero_out[:num_carry], (both, nonzero_out[num_carry:])

    carry, (both, ys) = fixpoint(step, init)
    return Step(reordered(both, _with_tangents([consts, carry, xs]), _with_tangents([carry, ys])), carry, ys)


def _with_tangents(groups: Sequence[Sequence[int]], kinds: int = 1) -> list[int]:
    """Values and tangents of each group, as indices into the list of all values and then all tangents.

    Args:
      groups: for each value, how many tangents it has: for ``[a], [b]`` with both, ``a, b, da, db -> a, da, b, db``,
        which is ``[0, 2, 1, 3]``.
      kinds: how many kinds of tangents there are, of which one comes after the other.
    """
    order: list[int] = []
    start, tangent, each = 0, sum(map(len, groups)), sum(map(sum, groups))
    for flags in groups:
        order += range(start, start + len(flags))
        start += len(flags)
        for kind in range(kinds):
            order += range(tangent + kind * each, tangent + kind * each + sum(flags))
        tangent += sum(flags)
    return order


@scan_p.jvp
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(t is not ZERO for t in tangents)
    body = jvp_body(jaxpr, num_consts, num_carry, nonzero)
    flags = [*nonzero[:num_consts], *body.carry, *nonzero[num_consts + num_carry :]]
    given = [
        zero_tangent(typeof(x)) if f and t is ZERO else t for t, x, f in zip(tangents, primals, flags, strict=True)
    ]
    groups = zip(split_list(primals, num_consts, num_carry), split_list(given, num_consts, num_carry), strict=True)
    operands = [[*values, *(t for t in ts if t is not ZERO)] for values, ts in groups]
    outs, ts = [], []
    for values, flags in zip(bind(body.jaxpr, Loop(**rest), *operands), (body.carry, body.ys), strict=True):
        outs += values[: len(flags)]
        ts += spread(flags, values[len(flags) :], ZERO)
    return outs, ts


# The forward Laplacian -----------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _laplacian_body(
    closed: ClosedJaxpr, num_consts: int, num_carry: int, moving: Flags, count: int, weighted: bool
) -> Step:
    """A step of values, Jacobians and Laplacians: carry ``b`` -> ``b, J, L``. The weights are the first constant."""
    consts, init, xs = split_list(moving, num_consts, num_carry)
    nothing = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def step(carry: list[bool]) -> Any:
        whole, out = laplacian_step(closed, (*consts, *carry, *xs), (*carry, *nothing), count, weighted)
        return out[:num_carry], (whole, out[num_carry:])

    carry, (whole, ys) = fixpoint(step, init)
    groups = [[False] * weighted + consts, carry, xs]
    return Step(reordered(whole, _with_tangents(groups, 2), _with_tangents([carry, ys], 2)), carry, ys)


@laplacian_rule(scan_p)
def _laplacian(
    directions: Directions, operands: Sequence[Carried], *, jaxpr: Any, num_consts: int, num_carry: int, **rest: Any
) -> list[Carried]:
    size, weights = directions.size, directions.weights
    moving = tuple(x.jacobian is not ZERO for x in operands)
    body = _laplacian_body(jaxpr, num_consts, num_carry, moving, size, weights is not None)
    flags = [*moving[:num_consts], *body.carry, *moving[num_consts + num_carry :]]
    groups = split_list(
        [filled(x, size) if f else x for x, f in zip(operands, flags, strict=True)], num_consts, num_carry
    )
    # The directions of what each step takes, or stacks, come after the axis of the steps.
    groups[2] = [x if x.jacobian is ZERO else x._replace(jacobian=moveaxis(x.jacobian, 0, 1)) for x in groups[2]]
    inputs = [[*[x.value for x in xs], *[x[k] for k in (1, 2) for x in xs if x.jacobian is not ZERO]] for xs in groups]
    if weights is not None:
        dtype = next(x.jacobian.dtype for xs in groups for x in xs if x.jacobian is not ZERO)
        inputs[0].insert(0, convert_element_type(weights, dtype))
    outs: list[Carried] = []
    for values, has in zip(bind(body.jaxpr, Loop(**rest), *inputs), (body.carry, body.ys), strict=True):
        own, jacobians, laplacians = split_list(values, len(has), sum(has))
        if has is body.ys:
            jacobians = [moveaxis(j, 1, 0) for j in jacobians]
        outs += map(Carried, own, spread(has, jacobians, ZERO), spread(has, laplacians, ZERO))
    return outs


class TaylorStep(NamedTuple):
    """A step of a loop that carries Taylor coefficients too.

    Attributes:
      jaxpr: the step: constants ``a``, carry ``b`` -> ``b`` becomes ``a, a1, a2, b, b1, b2 -> b, b1, b2``.
      carry: for each carry, which coefficients it has: all or none.
      ys: the same for each stacked result of a scan, of which some may be missing.
    """

    jaxpr: ClosedJaxpr
    carry: Kept
    ys: Kept


@cached_by_jaxpr
def taylor_body(closed: ClosedJaxpr, order: int, num_consts: int, num_carry: int, nonzero: Kept) -> TaylorStep:
    """A step of values and their Taylor coefficients."""
    consts, init, xs = split_list(nonzero, num_consts, num_carry)
    nothing = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def whole(carry: Flags) -> list[tuple[bool, ...]]:
        return [(c,) * order for c in carry]

    def step(carry: list[bool]) -> Any:
        along, kept = taylor_jaxpr(closed, order, (*consts, *whole(carry), *xs), (*carry, *nothing))
        return list(map(any, kept[:num_carry])), (along, kept[num_carry:])

    carry, (along, ys) = fixpoint(step, map(any, init))
    inputs, results = (
        [[*map(sum, part)] for part in (consts, whole(carry), xs)],
        [[*map(sum, part)] for part in (whole(carry), ys)],
    )
    return TaylorStep(reordered(along, _with_tangents(inputs), _with_tangents(results)), tuple(whole(carry)), ys)


@taylor_program(scan_p)
def _taylor(
    order: int,
    primals: Sequence[Any],
    series: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **rest: Any,
) -> tuple[list[Any], list[Any]]:
    body = taylor_body(jaxpr, order, num_consts, num_carry, kept_of(series))
    consts, init, xs = split_list(series, num_consts, num_carry)
    values = split_list(primals, num_consts, num_carry)
    parts = consts, carried_series(values[1], init, body.carry), xs
    operands = [[*part, *flat_series(cs)] for part, cs in zip(values, parts, strict=True)]
    outs, out_series = [], []
    for found, kept in zip(bind(body.jaxpr, Loop(**rest), *operands), (body.carry, body.ys), strict=True):
        outs += found[: len(kept)]
        out_series += grouped(found[len(kept) :], kept)
    return outs, out_series


def carried_series(init: Sequence[Any], series: Sequence[Sequence[Any]], kept: Kept) -> list[list[Any]]:
    """The Taylor coefficients of an initial carry: all where a step makes some, zeros among them."""
    return [
        [zero_tangent(typeof(x)) if c is ZERO and k else c for c, k in zip(cs, flags, strict=True)]
        for x, cs, flags in zip(init, series, kept, strict=True)
    ]


# Partial evaluation --------------------------------------------------------------------------------------------------


class Split(NamedTuple):
    """A scan in two: what its known operands determine, and the rest, which takes residuals from the first.

    With a known constant ``c``, a known carry ``k`` and an unknown carry ``u``, the step ``c, k, u -> k + 1, u * sin(c)
    * cos(k)`` becomes ``invariant``: ``c -> sin(c)``; ``known``: ``c, k -> k + 1, cos(k)``; and ``unknown``: ``s, u, t
    -> u * s * t``, where ``s`` is a constant, and ``t`` an element of a stacked residual.

    Attributes:
      invariant: computes the residuals that are the same in all steps, from the known constants.
      known: the first scan's step. Stacked residuals are its last results.
      unknown: the second scan's step. Shared residuals are its first constants, stacked ones its first elements.
      carry: for each carry, whether it is unknown.
      ys: for each stacked result, whether it is unknown.
      shared: the shared residuals, as indices into the known constants and then the results of ``invariant``: ``[1]``.
      stacked: the stacked residuals, as indices into the known elements, then the known stacked results, and then the
        residuals that ``known`` computes: ``[0]``.
    """

    invariant: ClosedJaxpr
    known: ClosedJaxpr
    unknown: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]
    shared: list[int]
    stacked: list[int]


@cached_by_jaxpr
def _split(closed: ClosedJaxpr, num_consts: int, num_carry: int, unknown: Flags) -> Split:
    """Cut a scan by which of its operands are unknown."""
    consts, init, xs = split_list(unknown, num_consts, num_carry)
    nothing = [False] * (len(closed.jaxpr.outvars) - num_carry)

    def step(carry: list[bool]) -> Any:
        parts = partial_eval_jaxpr(closed, (*consts, *carry, *xs), (*carry, *nothing))
        return parts.unknown_outputs[:num_carry], parts

    carry, parts = fixpoint(step, init)
    ys = parts.unknown_outputs[num_carry:]
    known = parts.known.jaxpr
    num_known = [len(flags) - sum(flags) for flags in (consts, carry, ys)]
    const_vars, _, x_vars = split_list(known.invars, *num_known[:2])
    carry_outs, y_outs, _ = split_list(known.outvars, *num_known[1:])
    values = [*known.invars, *known.outvars]
    residuals = [values[i] for i in parts.residual_sources]
    once, _, fixed = _invariant_equations(known, [*known.constvars, *const_vars], may_grow=True)
    shared = [i for i, v in enumerate(residuals) if v in fixed]
    stacked = [i for i, v in enumerate(residuals) if v not in fixed]
    # Residuals that are constants, elements or stacked results anyway are not computed once more.
    for_shared = appended(const_vars, [residuals[i] for i in shared])
    for_stacked = appended([*x_vars, *y_outs], [residuals[i] for i in stacked])
    place_shared, place_stacked = positions(for_shared), positions(for_stacked)
    rest = range(len(residuals), len(parts.unknown.jaxpr.invars))
    own_consts, own_carry, own_xs = split_list(rest, sum(consts), sum(carry))
    inputs = [*shared, *own_consts, *own_carry, *stacked, *own_xs]
    return Split(
        _part(parts.known, const_vars, once, for_shared[len(const_vars) :]),
        _part(parts.known, known.invars, known.eqns, [*carry_outs, *y_outs, *for_stacked[len(x_vars) + len(y_outs) :]]),
        reordered(parts.unknown, inputs, range(sum(carry) + sum(ys))),
        carry,
        ys,
        [place_shared[residuals[i]] for i in shared],
        [place_stacked[residuals[i]] for i in stacked],
    )


def _part(closed: ClosedJaxpr, inputs: Sequence[Var], eqns: Sequence[Eqn], results: Sequence[Any]) -> ClosedJaxpr:
    """The part of a program that computes some of its variables from inputs that determine them."""
    eqns, live = live_equations(eqns, results)
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    return close(Jaxpr([v for v in values if v in live], inputs, eqns, results), values)


@scan_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    parts = _split(eqn.params["jaxpr"], num_consts, num_carry, tuple(unknown))
    # A carry that becomes unknown takes its initial value, known as it may be, to the second part.
    flags = [*unknown[:num_consts], *parts.carry, *unknown[num_consts + num_carry :]]
    consts, init, xs = (
        partition_list(atoms, group)
        for atoms, group in zip(*(split_list(x, num_consts, num_carry) for x in (eqn.invars, flags)), strict=True)
    )
    results = [*parts.carry, *parts.ys]
    known_outs, unknown_outs = partition_list(eqn.outvars, results)

    def part(jaxpr: ClosedJaxpr, consts: list[Any], init: list[Any], xs: list[Any], outs: list[Any]) -> list[Eqn]:
        operands = [*consts, *init, *xs]
        return if_needed(eqn.like(operands, outs, jaxpr=jaxpr, num_consts=len(consts), num_carry=len(init)))

    before, invariant = inlined(parts.invariant, consts[0])
    computed = [Var(_stacked(a, eqn.params["length"])) for a in parts.known.out_avals[len(known_outs) :]]
    first = part(parts.known, consts[0], init[0], xs[0], [*known_outs, *computed])
    shared_values, stacked_values = [*consts[0], *invariant], [*xs[0], *known_outs[len(init[0]) :], *computed]
    shared = [shared_values[i] for i in parts.shared]
    residuals = [stacked_values[i] for i in parts.stacked]
    second = part(parts.unknown, [*shared, *consts[1]], init[1], [*residuals, *xs[1]], unknown_outs)
    return [*before, *first], second, results


# Dead code -----------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def smaller_body(closed: ClosedJaxpr, num_consts: int, num_carry: int, used: Flags) -> tuple[Step, list[bool]]:
    """A step of a loop without what some of its results do not need, and which inputs it takes."""
    ys = used[num_carry:]
    others = [False] * num_consts, [False] * (len(closed.jaxpr.invars) - num_consts - num_carry)

    def step(carry: list[bool]) -> Any:
        smaller, inputs = dce_closed_jaxpr(closed, (*carry, *ys), (*others[0], *carry, *others[1]))
        return inputs[num_consts : num_consts + num_carry], (smaller, inputs)

    carry, (smaller, inputs) = fixpoint(step, used[:num_carry])
    return Step(smaller, carry, list(ys)), inputs


@scan_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    smaller, inputs = smaller_body(eqn.params["jaxpr"], num_consts, num_carry, tuple(used))
    counts = {"num_consts": sum(inputs[:num_consts]), "num_carry": sum(smaller.carry)}
    outvars = select(eqn.outvars, [*smaller.carry, *smaller.ys])
    return eqn.like(select(eqn.invars, inputs), outvars, jaxpr=smaller.jaxpr, **counts)


# What a policy of ``checkpoint`` keeps of each step ------------------------------------------------------------------


@scan_p.remat
def _remat(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    num_consts, num_carry, length = (eqn.params[name] for name in ("num_consts", "num_carry", "length"))
    steps = remat_steps(eqn.params["jaxpr"], tuple(wanted), policy, effects, num_consts, num_carry)
    bound = [*eqn.outvars, *(Var(_stacked(a, length)) for a in steps.first.out_avals[len(eqn.outvars) :])]
    first = eqn.like(eqn.invars, bound, jaxpr=steps.first)
    # A carry that is kept, or not wanted, may be carried again all the same; nobody reads it.
    outs = [
        v if (w and i not in steps.kept) or i >= num_carry else Var(v.aval)
        for i, (v, w) in enumerate(zip(eqn.outvars, wanted))
    ]
    operands = [*select(eqn.invars, steps.inputs), *[bound[i] for i in steps.taken]]
    counts = {"num_consts": sum(steps.inputs[:num_consts]), "num_carry": sum(steps.results[:num_carry])}
    again = eqn.like(operands, select(outs, steps.results), jaxpr=steps.again, **counts)
    return RematSplit([first], if_needed(again), [bound[i] for i in steps.kept])


# Transposition -------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _step_back(closed: ClosedJaxpr, num_consts: int, num_carry: int, consts: Flags, xs: Flags) -> ClosedJaxpr:
    """A step of the transposed scan, which carries cotangents, and sums those of the constants.

    The step ``consts (a, b), carry (c), xs (x, y) -> carry, ys``, linear in ``b``, ``c`` and ``x``, becomes the step
    ``consts (a), carry (sum of cotangents of b, cotangent of carry), xs (cotangent of ys, y) -> carry (the same), ys
    (cotangent of x)``.

    Args:
      closed: the step, which is linear in all of its carry.
      num_consts, num_carry: how many of its inputs are constants, and carry.
      consts: which constants it is linear in.
      xs: which elements it is linear in.
    """
    back = transposed(closed, (*consts, *[True] * num_carry, *xs), (True,) * len(closed.jaxpr.outvars))
    const_avals, _, x_avals = split_list(closed.in_avals, num_consts, num_carry)
    sums = select(const_avals, consts)
    fixed_consts = select(const_avals, [not n for n in consts])
    fixed_xs = select(x_avals, [not n for n in xs])
    cts = back.in_avals[len(fixed_consts) + len(fixed_xs) :]

    def run(*values: Any) -> list[Any]:
        fixed, totals, given, rows = split_list(values, len(fixed_consts), len(sums), len(cts))
        outs = jaxpr_as_fun(back)(*fixed, *rows, *given)
        return [*map(add_any, totals, outs), *outs[len(sums) :]]

    return stage_flat(closed, run, [*fixed_consts, *sums, *cts, *fixed_xs])


@scan_p.transpose
def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> list[Any]:
    """All of the carry is linear: what is not has been computed apart."""
    loop = Loop(**rest)
    (jaxpr, carry, ys), used = smaller_body(jaxpr, num_consts, num_carry, tuple(ct is not ZERO for ct in cts))
    num_consts, num_carry = sum(used[:num_consts]), sum(carry)
    consts, init, xs = split_list(select(args, used), num_consts, num_carry)
    ct_carry, ct_ys = split_list(select(cts, [*carry, *ys]), num_carry)
    const_flags, init_flags, x_flags = (tuple(map(is_linear, group)) for group in (consts, init, xs))
    step = _step_back(jaxpr, num_consts, num_carry, const_flags, x_flags)
    sums = [zero_tangent(x.aval) for x in select(consts, const_flags)]
    seeds = [zero_tangent(a) if ct is ZERO else ct for ct, a in zip(ct_carry, jaxpr.out_avals, strict=False)]
    fixed_consts, fixed_xs = partition_list(consts, const_flags)[0], partition_list(xs, x_flags)[0]
    back = loop._replace(reverse=not loop.reverse)
    totals, ct_xs = hoist_loop_invariants(step, back, fixed_consts, [*sums, *seeds], [*ct_ys, *fixed_xs])
    of_init = [ct if n else None for ct, n in zip(totals[len(sums) :], init_flags, strict=True)]
    given = [*spread(const_flags, totals[: len(sums)], None), *of_init, *spread(x_flags, ct_xs, None)]
    return spread(used, given, None)


# Batching ------------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _batched_body(closed: ClosedJaxpr, axis: MappedAxis, consts: Dims, init: Flags, rows: Dims) -> Step:
    """A step of a batch; what is mapped is so along axis 0."""
    nothing = [False] * (len(closed.jaxpr.outvars) - len(init))

    def step(carry: list[bool]) -> Any:
        dims = (*consts, *(0 if c else None for c in carry), *rows)
        mapped, out_dims = batch_jaxpr(closed, axis, dims, (*carry, *nothing))
        found = [d is not None for d in out_dims]
        return found[: len(init)], (mapped, found[len(init) :])

    carry, (mapped, ys) = fixpoint(step, init)
    return Step(mapped, carry, ys)


@scan_p.batch
def _batch(
    axis: MappedAxis,
    args: Sequence[Any],
    dims: Dims,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **rest: Any,
) -> tuple[list[Any], list[int | None]]:
    consts, init, xs = split_list(args, num_consts, num_carry)
    const_dims, init_dims, x_dims = split_list(dims, num_consts, num_carry)
    # The leading axis of an example is that of the steps: a mapped axis in front of it is in front of a row too.
    rows = tuple(None if d is None else max(d - 1, 0) for d in x_dims)
    xs = [moveaxis(x, 0, 1) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
    mapped_init = tuple(d is not None for d in init_dims)
    body = _batched_body(jaxpr, axis, tuple(const_dims), mapped_init, rows)
    init = [front(x, d, axis) if c else x for x, d, c in zip(init, init_dims, body.carry, strict=True)]
    carry, ys = bind(body.jaxpr, Loop(**rest), consts, init, xs)
    return [*carry, *ys], [*(0 if c else None for c in body.carry), *(1 if y else None for y in body.ys)]


# Compilation ---------------------------------------------------------------------------------------------------------


scan_p.lowering(emission.write_scan)


# Checks --------------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _checked_step(
    closed: ClosedJaxpr, errors: Errors, enclosed: bool, num_consts: int, num_carry: int
) -> tuple[ClosedJaxpr, Layout]:
    """A step that carries the first failure before the rest."""
    program = checked_jaxpr(closed, errors, enclosed)
    layout, count = program.layout, width(program.layout)
    const_avals, others = split_list(closed.in_avals, num_consts)

    def run(*values: Any) -> list[Any]:
        consts, carried, rest = split_list(values, num_consts, count)
        outs = jaxpr_as_fun(program.jaxpr)(*consts, *rest)
        return [*merged(layout, carried, outs[:count]), *outs[count:]]

    if not count:
        return program.jaxpr, layout
    return stage_flat(closed, run, [*const_avals, *program.jaxpr.out_avals[:count], *others]), layout


@checked_program(scan_p)
def _checked(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    counts = params["num_consts"], params["num_carry"]
    step, layout = _checked_step(params["jaxpr"], trace.errors, trace.enclosed, *counts)
    consts, rest = split_list(args, counts[0])
    failure = no_failure(layout, step.in_avals[counts[0] :])
    changed = {**params, "jaxpr": step, "num_carry": counts[1] + len(failure)}
    return trace.taken(layout, scan_p.bind(*consts, *failure, *rest, **changed))
