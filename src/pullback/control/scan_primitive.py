"""The primitive ``scan``: a program run step by step, that carries values from each step to the next.

Operands are the constants of all steps, the initial carry, and arrays of which each step takes one element of the
leading axis. The program takes the three and gives the new carry, and what is stacked along a new leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    concrete,
    dependent,
    divisible,
    inlined,
    op_count,
    partition_list,
    reordered,
    run_interpreted,
    select,
    split_list,
    transposed,
    typed,
    zero_tangent,
)
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.config import config
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, appended, jaxpr_as_fun, positions
from pullback.core.linear import is_linear
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.elementwise import add_any
from pullback.primitives.shapes import moveaxis
from pullback.primitives.slicing import front
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.interpreters.dce import close, dce_closed_jaxpr, live_equations
from pullback.transforms.interpreters.jaxprs import batch_jaxpr, cached_by_jaxpr, jvp_jaxpr
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.stage import stage_flat

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
    """The final carry and the stacked results of a scan, without what the steps need not do.

    What no step changes becomes a constant, and what a step only hands through is left out: a carry that the steps hand
    on would be kept for each of them, if its value is needed backwards. What all steps compute alike is computed once,
    and differentiated once.
    """
    simpler = _hoisted(jaxpr, len(consts), len(init))
    if simpler is None:
        return bind(jaxpr, loop, consts, init, xs)
    moving, fixed = partition_list(init, simpler.fixed)
    consts = [*consts, *fixed]
    once = jaxpr_as_fun(simpler.invariant)(*consts)
    carry, ys = bind(simpler.jaxpr, loop, [*select(consts, simpler.consts), *once], moving, xs)
    rest, stacked = iter(carry), iter(ys)
    return (
        [x if f else next(rest) for x, f in zip(init, simpler.fixed, strict=True)],
        [next(stacked) if k is None else xs[k] for k in simpler.through],
    )


class Hoisted(NamedTuple):
    """A scan without what the steps need not do.

    Attributes:
      jaxpr: its program.
      fixed: which of the carry no step changes; it comes after the constants.
      through: for each stacked result, which of the elements it is, or None for a result of the program.
      consts: which of these constants are left; what is computed once comes after them.
      invariant: from these constants to what is computed once.
    """

    jaxpr: ClosedJaxpr
    fixed: list[bool]
    through: list[int | None]
    consts: list[bool]
    invariant: ClosedJaxpr


@cached_by_jaxpr
def _hoisted(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> Hoisted | None:
    """A scan without what its steps need not do; None if there is no such thing."""
    jaxpr = closed.jaxpr
    consts, carry, xs = split_list(jaxpr.invars, num_consts, num_carry)
    carry_outs, y_outs = split_list(jaxpr.outvars, num_carry)
    fixed = [a is v for a, v in zip(carry_outs, carry, strict=True)]
    elements = positions(xs)
    through = [elements.get(a) for a in y_outs]
    moving, constant = partition_list(carry, fixed)
    consts += constant
    once, left = _invariant_equations(jaxpr, consts)
    if not (once or constant or any(k is not None for k in through)):
        return None
    results = [*partition_list(carry_outs, fixed)[0], *(a for a, k in zip(y_outs, through, strict=True) if k is None)]
    read = {a for atoms in (*(eqn.invars for eqn in left), results) for a in atoms}
    computed = [v for eqn in once for v in eqn.outvars if v in read]
    kept = [v in read for v in consts]
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    return Hoisted(
        close(Jaxpr(jaxpr.constvars, [*select(consts, kept), *computed, *moving, *xs], left, results), values),
        fixed,
        through,
        kept,
        ClosedJaxpr(Jaxpr([], consts, once, computed)),
    )


def _invariant_equations(jaxpr: Jaxpr, consts: Sequence[Var]) -> tuple[list[Eqn], list[Eqn]]:
    """The equations of a program that all steps compute alike, and the others.

    What is larger than what it is made of, such as a broadcast, stays: computed once, it would have to be stored.
    """
    fixed = set(consts)
    once: list[Eqn] = []
    left: list[Eqn] = []
    for eqn in jaxpr.eqns:
        operands = {a for a in eqn.invars if type(a) is Var}
        grows = sum(v.aval.size for v in eqn.outvars) > sum(v.aval.size for v in operands)
        if operands and operands <= fixed and not grows and not eqn.effect:
            once.append(eqn)
            fixed.update(eqn.outvars)
        else:
            left.append(eqn)
    return once, left


@scan_p.abstract_eval
def _shape(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, **loop: Any
) -> list[ShapedArray]:
    expected = jaxpr.in_avals
    fixed = num_consts + num_carry
    expected = expected[:fixed] + [_stacked(a, length) for a in expected[fixed:]]
    if len(avals) != len(expected) or any(
        a.shape != b.shape or a.dtype != b.dtype for a, b in zip(avals, expected, strict=True)
    ):
        given, wanted = (", ".join(map(str, x)) for x in (avals, expected))
        raise JaxprError(f"this scan takes ({wanted}), but was given ({given})")
    outs = jaxpr.out_avals
    for a, b in zip(outs, expected[num_consts:fixed], strict=False):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise JaxprError(f"the program of this scan takes {b} as a carry, but gives {a}")
    return outs[:num_carry] + [_stacked(a, length) for a in outs[num_carry:]]


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))


@divisible(scan_p)
def _dependence(operands: Flags, *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **loop: Any) -> list[bool]:
    consts, carry, xs = split_list(operands, num_consts, num_carry)
    while True:
        found = dependent(jaxpr, (*consts, *carry, *xs))
        both = [c or f for c, f in zip(carry, found, strict=False)]
        if both == carry:
            return [*carry, *found[num_carry:]]
        carry = both


# Evaluation ----------------------------------------------------------------------------------------------------------


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    arrays = [concrete(x) for x in args]
    jaxpr: ClosedJaxpr = params["jaxpr"]
    if config.disable_jit or checking() or params["length"] * op_count(jaxpr) <= INTERPRETED:
        return _interpret(arrays, **params)
    from pullback.backends.one_operation import evaluate

    return evaluate(scan_p, arrays, params)  # type: ignore[no-any-return]


scan_p.impl(_evaluate)


def _interpret(
    args: Sequence[ArrayImpl],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> list[Any]:
    """The results, each step run operation by operation."""
    consts, carry, xs = split_list(args, num_consts, num_carry)
    avals = jaxpr.out_avals
    rows = [x._value for x in xs]
    columns = [np.empty((length, *a.shape), a.dtype) for a in avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = run_interpreted(jaxpr, [*consts, *carry, *[ArrayImpl(x[i], False) for x in rows]])
        carry = outs[:num_carry]
        for column, y in zip(columns, outs[num_carry:], strict=True):
            column[i] = host_value(y)
    ys = [ArrayImpl(column, a.weak_type) for column, a in zip(columns, avals[num_carry:], strict=True)]
    return [*(typed(x, a) for x, a in zip(carry, avals, strict=False)), *ys]


# Forward differentiation ---------------------------------------------------------------------------------------------


class JVPBody(NamedTuple):
    """A step of values and tangents.

    Attributes:
      jaxpr: from constants, their tangents, carry, its tangents, elements, their tangents, to carry, its tangents,
        results, their tangents; only where there are tangents.
      carry: for each carry, whether it has a tangent.
      ys: for each other result, whether it has a tangent.
    """

    jaxpr: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]


@cached_by_jaxpr
def _jvp_body(closed: ClosedJaxpr, num_consts: int, num_carry: int, nonzero: Flags) -> JVPBody:
    consts, carry, xs = split_list(nonzero, num_consts, num_carry)
    ys = [False] * (len(closed.jaxpr.outvars) - num_carry)
    while True:
        both, nonzero_out = jvp_jaxpr(closed, (*consts, *carry, *xs), (*carry, *ys))
        if nonzero_out[:num_carry] == carry:
            break
        carry = nonzero_out[:num_carry]
    ys = nonzero_out[num_carry:]
    inputs = with_tangents([consts, carry, xs])
    results = with_tangents([carry, ys])
    return JVPBody(reordered(both, inputs, results), carry, ys)


def with_tangents(groups: Sequence[Flags]) -> list[int]:
    """Where the values of each group, followed by their tangents, are in the list of all values and all tangents."""
    order: list[int] = []
    start, tangent = 0, sum(map(len, groups))
    for flags in groups:
        order += range(start, start + len(flags))
        start += len(flags)
        order += range(tangent, tangent + sum(flags))
        tangent += sum(flags)
    return order


@scan_p.jvp
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(t is not ZERO for t in tangents)
    body = _jvp_body(jaxpr, num_consts, num_carry, nonzero)
    flags = [*nonzero[:num_consts], *body.carry, *nonzero[num_consts + num_carry :]]
    given = [
        zero_tangent(typeof(x)) if f and t is ZERO else t for t, x, f in zip(tangents, primals, flags, strict=True)
    ]
    groups = zip(split_list(primals, num_consts, num_carry), split_list(given, num_consts, num_carry), strict=True)
    operands = [[*values, *(t for t in ts if t is not ZERO)] for values, ts in groups]
    counts = {"num_consts": len(operands[0]), "num_carry": len(operands[1])}
    results = scan_p.bind(*chain(*operands), jaxpr=body.jaxpr, **counts, **rest)
    outs, ts = [], []
    for values, flags in zip(split_list(results, counts["num_carry"]), (body.carry, body.ys), strict=True):
        moving = iter(values[len(flags) :])
        outs += values[: len(flags)]
        ts += [next(moving) if f else ZERO for f in flags]
    return outs, ts


# Partial evaluation --------------------------------------------------------------------------------------------------


class Split(NamedTuple):
    """A scan in two: what its known operands determine, and the rest, which takes residuals from the first.

    Attributes:
      invariant: from the known constants to those residuals that are the same in all steps, and have to be computed.
      known: the program of the first scan: from known constants, carry and elements to known carry, known results and
        residuals that differ from step to step.
      unknown: that of the second: its constants begin with residuals that all steps share, its elements with the
        others.
      carry: for each carry, whether it is unknown.
      ys: for each other result, whether it is unknown.
      shared: where each residual that all steps share is, in the list of known constants and results of ``invariant``.
      stacked: where each of the others is, in the list of known elements, known results and residuals of ``known``.
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
    consts, carry, xs = split_list(unknown, num_consts, num_carry)
    count = len(closed.jaxpr.outvars) - num_carry
    while True:
        parts = partial_eval_jaxpr(closed, [*consts, *carry, *xs], [*carry, *[False] * count])
        found, ys = parts.unknown_outputs[:num_carry], parts.unknown_outputs[num_carry:]
        if found == carry:
            break
        carry = found
    known = parts.known.jaxpr
    num_known = [len(flags) - sum(flags) for flags in (consts, carry, ys)]
    const_vars, _, x_vars = split_list(known.invars, *num_known[:2])
    carry_outs, y_outs, _ = split_list(known.outvars, *num_known[1:])
    values = [*known.invars, *known.outvars]
    residuals = [values[i] for i in parts.residual_sources]
    fixed = _independent(known, const_vars)
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
        _part(parts.known, const_vars, for_shared[len(const_vars) :], effects=False),
        _part(parts.known, known.invars, [*carry_outs, *y_outs, *for_stacked[len(x_vars) + len(y_outs) :]]),
        reordered(parts.unknown, inputs, range(sum(carry) + sum(ys))),
        carry,
        ys,
        [place_shared[residuals[i]] for i in shared],
        [place_stacked[residuals[i]] for i in stacked],
    )


def _independent(jaxpr: Jaxpr, inputs: Sequence[Var]) -> set[Any]:
    """The variables of a program that depend on nothing but some of its inputs."""
    found: set[Any] = {*jaxpr.constvars, *inputs}
    for eqn in jaxpr.eqns:
        if not eqn.effect and all(type(a) is not Var or a in found for a in eqn.invars):
            found.update(eqn.outvars)
    return found


def _part(closed: ClosedJaxpr, inputs: Sequence[Var], results: Sequence[Any], effects: bool = True) -> ClosedJaxpr:
    """The part of a program that gives some of its variables, from inputs that determine them."""
    eqns, live = live_equations([eqn for eqn in closed.jaxpr.eqns if effects or not eqn.effect], results)
    constvars = [v for v in closed.jaxpr.constvars if v in live]
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    return close(Jaxpr(constvars, inputs, eqns, results), values)


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    params = eqn.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    parts = _split(params["jaxpr"], num_consts, num_carry, tuple(unknown))
    # A carry that becomes unknown takes its initial value, known as it may be, to the second part.
    flags = [*unknown[:num_consts], *parts.carry, *unknown[num_consts + num_carry :]]
    consts, init, xs = (
        partition_list(atoms, group)
        for atoms, group in zip(*(split_list(x, num_consts, num_carry) for x in (eqn.invars, flags)), strict=True)
    )
    results = [*parts.carry, *parts.ys]
    known_outs, unknown_outs = partition_list(eqn.outvars, results)

    def equation(jaxpr: ClosedJaxpr, consts: list[Any], init: list[Any], xs: list[Any], outs: list[Any]) -> Eqn:
        counts = {"num_consts": len(consts), "num_carry": len(init)}
        return Eqn(scan_p, [*consts, *init, *xs], {**params, **counts, "jaxpr": jaxpr}, outs, eqn.made_at, eqn.scope)

    before, invariant = inlined(parts.invariant, consts[0])
    computed = [Var(_stacked(a, params["length"])) for a in parts.known.out_avals[len(known_outs) :]]
    first = equation(parts.known, consts[0], init[0], xs[0], [*known_outs, *computed])
    shared_values, stacked_values = [*consts[0], *invariant], [*xs[0], *known_outs[len(init[0]) :], *computed]
    shared = [shared_values[i] for i in parts.shared]
    residuals = [stacked_values[i] for i in parts.stacked]
    second = equation(parts.unknown, [*shared, *consts[1]], init[1], [*residuals, *xs[1]], unknown_outs)
    known = [*before, first] if first.outvars or first.effect else before
    return known, [second] if unknown_outs or second.effect else [], results


scan_p.partial_eval(_partial_eval)


# Dead code -----------------------------------------------------------------------------------------------------------


class Smaller(NamedTuple):
    """A scan without what is not needed.

    Attributes:
      jaxpr: the program of what is left.
      inputs: for each operand, whether it is left.
      results: for each result, whether it is left.
    """

    jaxpr: ClosedJaxpr
    inputs: list[bool]
    results: list[bool]


@cached_by_jaxpr
def _smaller(closed: ClosedJaxpr, num_consts: int, num_carry: int, used: Flags) -> Smaller:
    carry, ys = list(used[:num_carry]), list(used[num_carry:])
    others = [False] * num_consts, [False] * (len(closed.jaxpr.invars) - num_consts - num_carry)
    while True:
        smaller, inputs = dce_closed_jaxpr(closed, [*carry, *ys], [*others[0], *carry, *others[1]])
        needed = inputs[num_consts : num_consts + num_carry]
        if needed == carry:
            return Smaller(smaller, inputs, [*carry, *ys])
        carry = needed


def _dce(used: list[bool], eqn: Eqn) -> Eqn | None:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    smaller, inputs, results = _smaller(eqn.params["jaxpr"], num_consts, num_carry, tuple(used))
    counts = {"num_consts": sum(inputs[:num_consts]), "num_carry": sum(results[:num_carry])}
    params = {**eqn.params, **counts, "jaxpr": smaller}
    return Eqn(scan_p, select(eqn.invars, inputs), params, select(eqn.outvars, results), eqn.made_at, eqn.scope)


scan_p.dce(_dce)


# Transposition -------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _step_back(closed: ClosedJaxpr, num_consts: int, num_carry: int, consts: Flags, xs: Flags) -> ClosedJaxpr:
    """A step of the transposed scan, which carries cotangents, and sums those of the constants.

    Args:
      closed: a step that is linear in its carry, in some constants and in some elements.
      num_consts, num_carry: how many of its inputs are constants, and carry.
      consts: which constants it is linear in.
      xs: which elements it is linear in.

    Returns:
      A program from the other constants, the sums, the cotangents of the carry and of the other results, and the other
      elements, to the new sums, the cotangents of the carry and of the elements.
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
    jaxpr, used, results = _smaller(jaxpr, num_consts, num_carry, tuple(ct is not ZERO for ct in cts))
    num_consts, num_carry = sum(used[:num_consts]), sum(results[:num_carry])
    consts, init, xs = split_list(select(args, used), num_consts, num_carry)
    ct_carry, ct_ys = split_list(select(cts, results), num_carry)
    const_flags, init_flags, x_flags = (tuple(map(is_linear, group)) for group in (consts, init, xs))
    step = _step_back(jaxpr, num_consts, num_carry, const_flags, x_flags)
    sums = [zero_tangent(x.aval) for x in select(consts, const_flags)]
    seeds = [zero_tangent(a) if ct is ZERO else ct for ct, a in zip(ct_carry, jaxpr.out_avals, strict=False)]
    fixed_consts, fixed_xs = partition_list(consts, const_flags)[0], partition_list(xs, x_flags)[0]
    back = loop._replace(reverse=not loop.reverse)
    totals, ct_xs = hoist_loop_invariants(step, back, fixed_consts, [*sums, *seeds], [*ct_ys, *fixed_xs])
    of_consts, of_init, of_xs = iter(totals[: len(sums)]), totals[len(sums) :], iter(ct_xs)
    given = [next(of_consts) if n else None for n in const_flags]
    given += [ct if n else None for ct, n in zip(of_init, init_flags, strict=True)]
    given += [next(of_xs) if n else None for n in x_flags]
    left = iter(given)
    return [next(left) if u else None for u in used]


# Batching ------------------------------------------------------------------------------------------------------------


class BatchedBody(NamedTuple):
    """A step of a batch: its program; and for each carry and other result, whether it is mapped (then axis 0 is)."""

    jaxpr: ClosedJaxpr
    carry: list[bool]
    ys: list[bool]


@cached_by_jaxpr
def _batched_body(
    closed: ClosedJaxpr, axis_size: int, axis_name: Any, consts: Dims, init: Flags, rows: Dims
) -> BatchedBody:
    carry = list(init)
    others = [False] * (len(closed.jaxpr.outvars) - len(carry))
    while True:
        dims = [*consts, *(0 if c else None for c in carry), *rows]
        mapped, out_dims = batch_jaxpr(closed, axis_size, tuple(dims), axis_name, (*carry, *others))
        found = [d is not None for d in out_dims]
        if found[: len(carry)] == carry:
            return BatchedBody(mapped, carry, found[len(carry) :])
        carry = found[: len(carry)]


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
    body = _batched_body(jaxpr, axis.size, axis.name, tuple(const_dims), mapped_init, rows)
    init = [front(x, d, axis) if c else x for x, d, c in zip(init, init_dims, body.carry, strict=True)]
    carry, ys = bind(body.jaxpr, Loop(**rest), consts, init, xs)
    return [*carry, *ys], [*(0 if c else None for c in body.carry), *(1 if y else None for y in body.ys)]


# Compilation ---------------------------------------------------------------------------------------------------------


@scan_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any) -> list[Any]:
    consts, init, xs = split_list(operands, num_consts, num_carry)
    return emission.write_scan(hlo, jaxpr, Loop(**rest), consts, init, xs)
