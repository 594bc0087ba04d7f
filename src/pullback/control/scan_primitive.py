"""The primitive ``scan``: a program that runs step by step, with a carry.

The operands are consts, the initial carry, and xs, arrays that are sliced along the leading axis, for each step. The
program takes consts, carry and elements, and returns the new carry and ys, which are stacked along a new leading axis.
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
    run_interpreted,
    typed,
    zero_tangent,
)
from pullback.control.invariants import hoisted
from pullback.control.scan_split import split
from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.elsewhere import is_here
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, jaxpr_as_fun
from pullback.core.linear import is_linear
from pullback.core.lists import fixpoint, merge_lists, partition_list, scatter_where, select, split_list
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, ShapedArray
from pullback.core.user_types import HiType
from pullback.primitives.elementwise import add_any
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.programs.jit_primitive import at_bottom, concrete
from pullback.transforms.programs.program_primitive import check_types, if_needed, transposed
from pullback.transforms.traces.backward_logs import logs_within, of_one_program
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Fed, Feed, holds_programs
from pullback.transforms.traces.remat import Policy, RematSplit, remat_steps
from pullback.transforms.traces.stage import stage_flat

scan_p = Primitive("scan", multiple_results=True, keeps_weak_type=False)

Flags = Sequence[bool]
Dims = Sequence[int | None]


class Loop(NamedTuple):
    """The parameters of a scan that transformations of its program do not change.

    Attributes:
      length: the number of steps.
      reverse: whether the steps go from the last element to the first.
      unroll: the number of steps in an iteration of the compiled loop.
    """

    length: int
    reverse: bool
    unroll: int


def bind(
    jaxpr: ClosedJaxpr, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Apply ``scan``; return the final carry and the stacked results."""
    counts = {"num_consts": len(consts), "num_carry": len(init)}
    outs = scan_p.bind(*consts, *init, *xs, jaxpr=jaxpr, **counts, **loop._asdict())
    return outs[: len(init)], outs[len(init) :]


def hoist_loop_invariants(
    jaxpr: ClosedJaxpr, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Apply ``scan`` after loop-invariant code motion; return the final carry and the stacked results.

    A carried value that no step changes becomes a const: in the carry it would be saved for each step if the backward
    pass needs it. A stacked result that equals an element is removed. Equations that are equal in all steps run, and
    are differentiated, outside of the loop.
    """
    simpler = hoisted(jaxpr, len(consts), len(init))
    if simpler is None:
        return bind(jaxpr, loop, consts, init, xs)
    moving, fixed = partition_list(init, simpler.fixed)
    consts = [*consts, *fixed]
    invariant = jaxpr_as_fun(simpler.invariant)(*consts)
    carry, ys = bind(simpler.jaxpr, loop, [*select(consts, simpler.consts), *invariant], moving, xs)
    stacked = iter(ys)
    return merge_lists(simpler.fixed, carry, fixed), [next(stacked) if k is None else xs[k] for k in simpler.through]


@scan_p.abstract_eval
def _abstract_eval(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, **loop: Any
) -> list[ShapedArray]:
    fixed = num_consts + num_carry
    expected = jaxpr.in_avals[:fixed] + [_stacked(a, length) for a in jaxpr.in_avals[fixed:]]
    check_types("this scan", avals, expected)
    outs = jaxpr.out_avals
    check_types("the next step of this scan", outs[:num_carry], expected[num_consts:fixed])
    return outs[:num_carry] + [_stacked(a, length) for a in outs[num_carry:]]


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of ``length`` stacked values of type ``aval``."""
    return aval.stacked(length) if isinstance(aval, HiType) else aval.with_axis(0, length)


scan_p.record(partial(record_split, scan_p))


# Evaluation ----------------------------------------------------------------------------------------------------------


@scan_p.impl
@at_bottom
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The impl rule: run a scan step by step if all its steps have few operations in total, otherwise compile it."""
    arrays = [concrete(x) for x in args]
    jaxpr, length, num_carry = params["jaxpr"], params["length"], params["num_carry"]
    on_other_device = not all(map(is_here, arrays))
    if not (config.disable_jit or checking()) and (on_other_device or length * op_count(jaxpr) > INTERPRETED):
        from pullback.backends.compiler.one_operation import evaluate

        return evaluate(scan_p, arrays, params)  # type: ignore[no-any-return]
    consts, carry, xs = split_list(arrays, params["num_consts"], num_carry)
    rows = [x._value for x in xs]
    y_avals = jaxpr.out_avals[num_carry:]
    columns = [np.empty((length, *a.shape), a.dtype) for a in y_avals]
    for i in reversed(range(length)) if params["reverse"] else range(length):
        outs = run_interpreted(jaxpr, [*consts, *carry, *[ArrayImpl(x[i], False) for x in rows]])
        carry = outs[:num_carry]
        for column, y in zip(columns, outs[num_carry:], strict=True):
            column[i] = y._value
    ys = [ArrayImpl(column, a.weak_type) for column, a in zip(columns, y_avals, strict=True)]
    return [*(carry if length else typed(carry, jaxpr)), *ys]


# Forward transformations, and vmap -----------------------------------------------------------------------------------


def _feed(*, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **loop: Any) -> Feed:
    def again(fed: Fed) -> Any:
        consts, init, xs = fed.groups
        counts = {"num_consts": len(consts), "num_carry": len(init)}
        return scan_p.bind(*consts, *init, *xs, jaxpr=fed.programs[0], **counts, **loop)

    return Feed(
        (jaxpr,), again, (num_consts, num_carry), (0, 1, 2), carried=1, rows=2,
        length=loop["length"], reverse=loop["reverse"],
    )  # fmt: skip


holds_programs(scan_p, _feed)


# Partial evaluation --------------------------------------------------------------------------------------------------


@scan_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    cut = split(eqn.params["jaxpr"], num_consts, num_carry, tuple(unknown))
    # A carried value that becomes unknown is carried by the second scan only, even if its initial value is known.
    flags = [*unknown[:num_consts], *cut.carry, *unknown[num_consts + num_carry :]]
    consts, init, xs = (
        partition_list(atoms, group)
        for atoms, group in zip(*(split_list(x, num_consts, num_carry) for x in (eqn.invars, flags)), strict=True)
    )
    results = [*cut.carry, *cut.ys]
    known_outs, unknown_outs = partition_list(eqn.outvars, results)

    def scan_eqn(jaxpr: ClosedJaxpr, consts: list[Any], init: list[Any], xs: list[Any], outs: list[Any]) -> list[Eqn]:
        operands = [*consts, *init, *xs]
        return if_needed(eqn.like(operands, outs, jaxpr=jaxpr, num_consts=len(consts), num_carry=len(init)))

    before, invariant = inlined(cut.invariant, consts[0])
    computed = [Var(_stacked(a, eqn.params["length"])) for a in cut.known.out_avals[len(known_outs) :]]
    first = scan_eqn(cut.known, consts[0], init[0], xs[0], [*known_outs, *computed])
    shared_values, stacked_values = [*consts[0], *invariant], [*xs[0], *known_outs[len(init[0]) :], *computed]
    shared = [shared_values[i] for i in cut.shared]
    residuals = [stacked_values[i] for i in cut.stacked]
    second = scan_eqn(cut.unknown, [*shared, *consts[1]], init[1], [*residuals, *xs[1]], unknown_outs)
    return [*before, *first], second, results


# Dead code -----------------------------------------------------------------------------------------------------------


class ScanStep(NamedTuple):
    """A step of a loop after dead-code elimination.

    Attributes:
      jaxpr: the step.
      carry: for each carried value, whether it remains.
      ys: for each stacked result of a scan, whether it remains.
    """

    jaxpr: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]


@cached_by_jaxpr
def smaller_body(closed: ClosedJaxpr, num_consts: int, num_carry: int, used: Flags) -> tuple[ScanStep, list[bool]]:
    """Remove dead code from the step of a loop.

    Args:
      closed: the step.
      num_consts, num_carry: the number of consts and of carried values.
      used: for each result, whether it is needed. A carried value that a later step reads is needed, too.

    Returns:
      The smaller step; and for each input of ``closed``, whether the smaller step takes it.
    """
    ys = used[num_carry:]
    others = [False] * num_consts, [False] * (len(closed.jaxpr.invars) - num_consts - num_carry)

    def step(carry: list[bool]) -> Any:  # a carried value that a step reads is a result, too
        smaller, inputs = dce_closed_jaxpr(closed, (*carry, *ys), (*others[0], *carry, *others[1]))
        return inputs[num_consts : num_consts + num_carry], (smaller, inputs)

    carry, (smaller, inputs) = fixpoint(step, used[:num_carry])
    return ScanStep(smaller, carry, list(ys)), inputs


@scan_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    smaller, inputs = smaller_body(eqn.params["jaxpr"], num_consts, num_carry, tuple(used))
    counts = {"num_consts": sum(inputs[:num_consts]), "num_carry": sum(smaller.carry)}
    outvars = select(eqn.outvars, [*smaller.carry, *smaller.ys])
    return eqn.like(select(eqn.invars, inputs), outvars, jaxpr=smaller.jaxpr, **counts)


# Rematerialisation --------------------------------------------------------------------------------------------------


@scan_p.remat
def _remat(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    num_consts, num_carry, length = (eqn.params[name] for name in ("num_consts", "num_carry", "length"))
    steps = remat_steps(eqn.params["jaxpr"], tuple(wanted), policy, effects, num_consts, num_carry)
    bound = [*eqn.outvars, *(Var(_stacked(a, length)) for a in steps.first.out_avals[len(eqn.outvars) :])]
    first = eqn.like(eqn.invars, bound, jaxpr=steps.first)
    # A carried value that is saved, or not wanted, may be carried again: bind it to a new variable.
    outs = [
        v if (w and i not in steps.saved) or i >= num_carry else Var(v.aval)
        for i, (v, w) in enumerate(zip(eqn.outvars, wanted))
    ]
    operands = [*select(eqn.invars, steps.inputs), *[bound[i] for i in steps.residuals]]
    counts = {"num_consts": sum(steps.inputs[:num_consts]), "num_carry": sum(steps.results[:num_carry])}
    again = eqn.like(operands, select(outs, steps.results), jaxpr=steps.again, **counts)
    return RematSplit([first], if_needed(again), [bound[i] for i in steps.saved], steps.offloads_of(bound))


# Transposition -------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _step_back(closed: ClosedJaxpr, num_consts: int, num_carry: int, consts: Flags, xs: Flags) -> ClosedJaxpr:
    """Transpose a step of a scan. The new step carries the cotangents of the carry, and sums the consts' cotangents.

    The step ``consts (a, b), carry (c), xs (x, y) -> carry, ys``, linear in ``b``, ``c`` and ``x``, becomes the step
    ``consts (a), carry (sum of cotangents of b, cotangent of carry), xs (cotangent of ys, y) -> carry (the same), ys
    (cotangent of x)``.

    Args:
      closed: the step, which is linear in its entire carry.
      num_consts: the number of consts.
      num_carry: the number of carried values.
      consts: for each const, whether the step is linear in it.
      xs: for each element of the xs, whether the step is linear in it.
    """
    back = transposed(closed, (*consts, *[True] * num_carry, *xs), (True,) * len(closed.jaxpr.outvars))
    const_avals, _, x_avals = split_list(closed.in_avals, num_consts, num_carry)
    sums = select(const_avals, consts)
    fixed_consts = select(const_avals, [not n for n in consts])
    fixed_xs = select(x_avals, [not n for n in xs])
    cts = back.in_avals[len(fixed_consts) + len(fixed_xs) :]

    def run(*values: Any) -> list[Any]:
        fixed, totals, step_cts, rows = split_list(values, len(fixed_consts), len(sums), len(cts))
        outs = jaxpr_as_fun(back)(*fixed, *rows, *step_cts)
        return [*map(add_any, totals, outs), *outs[len(sums) :]]

    return stage_flat(closed, run, [*fixed_consts, *sums, *cts, *fixed_xs])


@scan_p.transpose
def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> list[Any]:
    """The transposition rule: a scan in the other direction, which carries cotangents.

    The step is linear in its entire carry, since linearisation has moved other carried values to a separate scan.
    """
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
    of_consts = scatter_where(const_flags, totals[: len(sums)], None)
    return scatter_where(used, [*of_consts, *of_init, *scatter_where(x_flags, ct_xs, None)], None)


logs_within(scan_p)(lambda eqn: of_one_program(eqn, lambda a: _stacked(a, eqn.params["length"])))

# Compilation ---------------------------------------------------------------------------------------------------------


scan_p.lowering(emission.write_scan)
