"""The primitive ``scan``: a program run step by step, that carries values from each step to the next.

Operands are the constants of all steps, the initial carry, and arrays of which each step takes one element of the
leading axis. The program takes the three and gives the new carry, and what is stacked along a new leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    chosen,
    concrete,
    grouped,
    interned,
    reordered,
    run_interpreted,
    transposed,
    typed,
    work,
    zero_tangent,
)
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.config import config
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun
from pullback.core.linear import LinearTracer, is_linear
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.elementwise import add_any
from pullback.primitives.shapes import moveaxis
from pullback.primitives.slicing import front
from pullback.transforms.call import evaluators, jit_p
from pullback.transforms.dce import close, dce_closed_jaxpr, dce_rules, live_equations
from pullback.transforms.jaxprs import batch_jaxpr, cached_by_jaxpr, jvp_jaxpr
from pullback.transforms.nonfinite import checking
from pullback.transforms.partial_eval import partial_eval_jaxpr, partial_eval_rules
from pullback.transforms.stage import stage_flat

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
    """The final carry and the stacked results of a scan."""
    outs = scan_p.bind(
        *consts, *init, *xs, jaxpr=jaxpr, num_consts=len(consts), num_carry=len(init), **loop._asdict()
    )  # fmt: skip
    return outs[: len(init)], outs[len(init) :]


def simplified(
    jaxpr: ClosedJaxpr, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """:func:`bind`, with what no step changes as a constant, and what a step only hands through left out.

    A carry that the steps hand on would otherwise be kept for each step, if its value is needed backwards.
    """
    invars, outvars = jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars
    first, last = len(consts), len(consts) + len(init)
    fixed = [outvars[i] is invars[first + i] for i in range(len(init))]
    handed = {v: i for i, v in enumerate(invars[last:])}
    through = [handed.get(a) if type(a) is Var else None for a in outvars[len(init) :]]
    if any(fixed) or any(i is not None for i in through):
        moving = [not f for f in fixed]
        order = [*range(first), *(first + i for i, f in enumerate(fixed) if f)]
        order += [first + i for i, m in enumerate(moving) if m] + list(range(last, len(invars)))
        results = [i for i, m in enumerate(moving) if m] + [len(init) + i for i, k in enumerate(through) if k is None]
        jaxpr = reordered(jaxpr, order, results)
    else:
        moving = [True] * len(init)
    carry, ys = bind(interned(jaxpr), loop, [*consts, *chosen(init, fixed)], chosen(init, moving), xs)
    rest, stacked = iter(carry), iter(ys)
    return (
        [x if f else next(rest) for x, f in zip(init, fixed, strict=True)],
        [next(stacked) if k is None else xs[k] for k in through],
    )


@scan_p.shape
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


# Evaluation ----------------------------------------------------------------------------------------------------------


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    arrays = [concrete(x) for x in args]
    jaxpr: ClosedJaxpr = params["jaxpr"]
    if config.disable_jit or checking() or params["length"] * work(jaxpr.jaxpr) <= INTERPRETED:
        return _interpret(arrays, **params)
    from pullback.backends.one_operation import evaluate

    return evaluate(scan_p, arrays, params)  # type: ignore[no-any-return]


evaluators[scan_p] = _evaluate


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
    consts, carry, xs = grouped(args, num_consts, num_carry)
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
    consts, carry, xs = grouped(nonzero, num_consts, num_carry)
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
    loop = Loop(**rest)
    nonzero = tuple(t is not ZERO for t in tangents)
    body = _jvp_body(jaxpr, num_consts, num_carry, nonzero)
    flags = [*nonzero[:num_consts], *body.carry, *nonzero[num_consts + num_carry :]]
    given = [
        zero_tangent(typeof(x)) if f and t is ZERO else t for t, x, f in zip(tangents, primals, flags, strict=True)
    ]
    groups = [
        (values, [t for t in ts if t is not ZERO])
        for values, ts in zip(
            grouped(primals, num_consts, num_carry), grouped(given, num_consts, num_carry), strict=True
        )
    ]
    if any(type(t) is LinearTracer for t in tangents):
        carry, ys = _linearized(body, loop, groups)
    else:
        carry, ys = bind(body.jaxpr, loop, *[[*values, *ts] for values, ts in groups])
    outs, ts = [], []
    for values, flags in ((carry, body.carry), (ys, body.ys)):
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
      unknown: that of the second: its constants begin with residuals that all steps share, its elements with the others.
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
def _split(closed: ClosedJaxpr, num_consts: int, num_carry: int, unknown: Flags, forced: Flags) -> Split:
    """Cut a scan by which operands are unknown, and which results the second part has to give whatever they need."""
    consts, carry, xs = grouped(unknown, num_consts, num_carry)
    carry = [u or f for u, f in zip(carry, forced, strict=False)]
    ys = list(forced[num_carry:])
    while True:
        parts = partial_eval_jaxpr(closed, [*consts, *carry, *xs], [*carry, *ys])
        if parts.unknown_outputs[:num_carry] == carry:
            break
        carry = parts.unknown_outputs[:num_carry]
    ys = parts.unknown_outputs[num_carry:]
    known_counts = [len(flags) - sum(flags) for flags in (consts, carry, xs)]
    known = parts.known.jaxpr
    const_vars, _, x_vars = (group for group in grouped(known.invars, *known_counts[:2]))
    carry_outs, y_outs, _ = grouped(known.outvars, known_counts[1], len(ys) - sum(ys))
    values = [*known.invars, *known.outvars]
    residuals = [values[i] for i in parts.residual_sources]
    fixed = _independent(known, const_vars)
    shared_vars, stacked_vars = list(const_vars), [*x_vars, *y_outs]
    for v in residuals:
        group = shared_vars if v in fixed else stacked_vars
        if v not in group:
            group.append(v)
    shared = [i for i, v in enumerate(residuals) if v in fixed]
    stacked = [i for i, v in enumerate(residuals) if v not in fixed]
    count = len(residuals)
    rest = range(count, len(parts.unknown.jaxpr.invars))
    own_consts, own_carry, own_xs = grouped(rest, sum(consts), sum(carry))
    second = reordered(parts.unknown, [*shared, *own_consts, *own_carry, *stacked, *own_xs], range(sum(carry) + sum(ys)))
    return Split(
        _part(parts.known, const_vars, shared_vars[len(const_vars) :], effects=False),
        _part(parts.known, known.invars, [*carry_outs, *y_outs, *stacked_vars[len(x_vars) + len(y_outs) :]]),
        second,
        carry,
        ys,
        [shared_vars.index(residuals[i]) for i in shared],
        [stacked_vars.index(residuals[i]) for i in stacked],
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


def _known_part(
    parts: Split, loop: Loop, consts: Sequence[Any], init: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """The known carry and results, and the residuals that all steps share, and the others."""
    invariant = jaxpr_as_fun(parts.invariant)(*consts)
    carry, stacked = bind(parts.known, loop, consts, init, xs)
    shared_values, stacked_values = [*consts, *invariant], [*xs, *stacked]
    shared = [shared_values[i] for i in parts.shared]
    count = len(parts.ys) - sum(parts.ys)
    return carry, stacked[:count], shared, [stacked_values[i] for i in parts.stacked]


def _linearized(
    body: JVPBody, loop: Loop, groups: Sequence[tuple[list[Any], list[Any]]]
) -> tuple[list[Any], list[Any]]:
    """What a scan of values and tangents gives: by a scan of the values, and one that is linear in the tangents."""
    (consts, const_ts), (init, init_ts), (xs, x_ts) = groups
    unknown = [flag for values, ts in groups for flag in [False] * len(values) + [True] * len(ts)]
    forced = [flag for flags in (body.carry, body.ys) for flag in [False] * len(flags) + [True] * sum(flags)]
    num_consts, num_carry = len(consts) + len(const_ts), len(init) + len(init_ts)
    parts = _split(body.jaxpr, num_consts, num_carry, tuple(unknown), tuple(forced))
    carry, ys, shared, residuals = _known_part(parts, loop, consts, init, xs)
    carry_ts, y_ts = bind(parts.unknown, loop, [*shared, *const_ts], init_ts, [*residuals, *x_ts])
    return [*carry, *carry_ts], [*ys, *y_ts]


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    params = eqn.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    parts = _split(
        params["jaxpr"], num_consts, num_carry, tuple(unknown), (False,) * len(eqn.outvars)
    )
    # A carry that becomes unknown takes its initial value, known as it may be, to the second part.
    flags = [*unknown[:num_consts], *parts.carry, *unknown[num_consts + num_carry :]]
    consts, init, xs = (
        ([a for a, f in pairs if not f], [a for a, f in pairs if f])
        for pairs in grouped(list(zip(eqn.invars, flags, strict=True)), num_consts, num_carry)
    )
    results = [*parts.carry, *parts.ys]
    known_outs = [v for v, u in zip(eqn.outvars, results, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, results, strict=True) if u]

    def equation(jaxpr: ClosedJaxpr, consts: list[Any], init: list[Any], xs: list[Any], outs: list[Any]) -> Eqn:
        counts = {"num_consts": len(consts), "num_carry": len(init)}
        return Eqn(scan_p, [*consts, *init, *xs], {**params, **counts, "jaxpr": jaxpr}, outs, eqn.made_at, eqn.scope)

    invariant = [Var(a) for a in parts.invariant.out_avals]
    before = Eqn(jit_p, consts[0], {"jaxpr": parts.invariant, "name": "invariant"}, invariant, eqn.made_at, eqn.scope)
    computed = [Var(_stacked(a, params["length"])) for a in parts.known.out_avals[len(known_outs) :]]
    first = equation(parts.known, consts[0], init[0], xs[0], [*known_outs, *computed])
    shared_values, stacked_values = [*consts[0], *invariant], [*xs[0], *known_outs[len(init[0]) :], *computed]
    shared = [shared_values[i] for i in parts.shared]
    residuals = [stacked_values[i] for i in parts.stacked]
    second = equation(parts.unknown, [*shared, *consts[1]], init[1], [*residuals, *xs[1]], unknown_outs)
    known = [before] if invariant else []
    if first.outvars or first.effect:
        known.append(first)
    return known, [second] if unknown_outs or second.effect else [], results


partial_eval_rules[scan_p] = _partial_eval


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
    return Eqn(scan_p, chosen(eqn.invars, inputs), params, chosen(eqn.outvars, results), eqn.made_at, eqn.scope)


dce_rules[scan_p] = _dce


# Transposition -------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _depends(closed: ClosedJaxpr, num_consts: int, num_carry: int, linear: Flags) -> list[bool]:
    """Which carries depend on the operands that are linear."""
    consts, carry, xs = grouped(linear, num_consts, num_carry)
    while True:
        parts = partial_eval_jaxpr(closed, [*consts, *carry, *xs], [*carry, *[False] * len(closed.jaxpr.outvars[num_carry:])])
        if parts.unknown_outputs[:num_carry] == carry:
            return carry
        carry = parts.unknown_outputs[:num_carry]


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
    const_avals, _, x_avals = grouped(closed.in_avals, num_consts, num_carry)
    sums = chosen(const_avals, consts)
    fixed_consts = chosen(const_avals, [not n for n in consts])
    fixed_xs = chosen(x_avals, [not n for n in xs])
    cts = back.in_avals[len(fixed_consts) + len(fixed_xs) :]

    def run(*values: Any) -> list[Any]:
        fixed, totals, given, rows = grouped(values, len(fixed_consts), len(sums), len(cts))
        outs = jaxpr_as_fun(back)(*fixed, *rows, *given)
        return [*map(add_any, totals, outs), *outs[len(sums) :]]

    return stage_flat(closed, run, [*fixed_consts, *sums, *cts, *fixed_xs])


class Linear(NamedTuple):
    """A scan that is linear in its carry, and in some of its constants and elements.

    Attributes:
      jaxpr: its program.
      consts, xs: its constants and elements, but for those in which it is linear.
      linear_consts, linear_xs: which it is linear in.
    """

    jaxpr: ClosedJaxpr
    consts: list[Any]
    xs: list[Any]
    linear_consts: list[bool]
    linear_xs: list[bool]

    def transposed(self, loop: Loop, ct_carry: Sequence[Any], ct_ys: Sequence[Any]) -> tuple[list[Any], ...]:
        """The cotangents of the linear constants, of the initial carry, and of the linear elements."""
        num_consts, num_carry = len(self.linear_consts), len(ct_carry)
        step = _step_back(self.jaxpr, num_consts, num_carry, tuple(self.linear_consts), tuple(self.linear_xs))
        sums = [zero_tangent(a) for a in chosen(self.jaxpr.in_avals[:num_consts], self.linear_consts)]
        seeds = [zero_tangent(a) if ct is ZERO else ct for ct, a in zip(ct_carry, self.jaxpr.out_avals, strict=False)]
        back = loop._replace(reverse=not loop.reverse)
        totals, ct_xs = bind(step, back, self.consts, [*sums, *seeds], [*ct_ys, *self.xs])
        return totals[: len(sums)], totals[len(sums) :], ct_xs


@scan_p.transpose
def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> list[Any]:
    loop = Loop(**rest)
    jaxpr, used, results = _smaller(jaxpr, num_consts, num_carry, tuple(ct is not ZERO for ct in cts))
    num_consts, num_carry = sum(used[:num_consts]), sum(results[:num_carry])
    consts, init, xs = grouped(chosen(args, used), num_consts, num_carry)
    ct_carry, ct_ys = grouped(chosen(cts, results), num_carry)
    linear = [tuple(map(is_linear, group)) for group in (consts, init, xs)]
    carry = _dependent_carry(jaxpr, *linear)
    fixed_consts, fixed_xs = ([x for x in group if not is_linear(x)] for group in (consts, xs))
    if all(carry):
        scan = Linear(jaxpr, fixed_consts, fixed_xs, list(linear[0]), list(linear[2]))
    else:  # What is carried, but not linear, is computed first.
        parts = _split(jaxpr, num_consts, num_carry, (*linear[0], *carry, *linear[2]), (False,) * len(cts))
        fixed_init = chosen(init, [not c for c in carry])
        _, _, shared, residuals = _known_part(parts, loop, fixed_consts, fixed_init, fixed_xs)
        linear_consts = [False] * len(shared) + [True] * sum(linear[0])
        scan = Linear(parts.unknown, shared, residuals, linear_consts, [False] * len(residuals) + [True] * sum(linear[2]))
        ct_carry, ct_ys = chosen(ct_carry, parts.carry), chosen(ct_ys, parts.ys)
    ct_consts, ct_init, ct_xs = map(iter, scan.transposed(loop, ct_carry, ct_ys))
    given = [next(ct_consts) if n else None for n in linear[0]]
    for x, c in zip(init, carry, strict=True):
        ct = next(ct_init) if c else None
        given.append(ct if is_linear(x) else None)
    given += [next(ct_xs) if n else None for n in linear[2]]
    left = iter(given)
    return [next(left) if u else None for u in used]


@cached_by_jaxpr
def _dependent_carry(closed: ClosedJaxpr, consts: Flags, init: Flags, xs: Flags) -> list[bool]:
    """Which carries depend on the operands that are linear."""
    carry = list(init)
    while True:
        others = [False] * (len(closed.jaxpr.outvars) - len(carry))
        found = partial_eval_jaxpr(closed, [*consts, *carry, *xs], [*carry, *others]).unknown_outputs[: len(carry)]
        if found == carry:
            return carry
        carry = found


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
    axis: MappedAxis, args: Sequence[Any], dims: Dims, *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> tuple[list[Any], list[int | None]]:
    consts, init, xs = grouped(args, num_consts, num_carry)
    const_dims, init_dims, x_dims = grouped(dims, num_consts, num_carry)
    # The leading axis of an example is that of the steps, so that a mapped axis in front of it is in front of a row too.
    rows = tuple(None if d is None else max(d - 1, 0) for d in x_dims)
    xs = [moveaxis(x, 0, 1) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
    mapped_init = tuple(d is not None for d in init_dims)
    body = _batched_body(jaxpr, axis.size, axis.name, tuple(const_dims), mapped_init, rows)
    init = [
        front(x, d, axis) if c else x for x, d, c in zip(init, init_dims, body.carry, strict=True)
    ]
    carry, ys = bind(body.jaxpr, Loop(**rest), consts, init, xs)
    return [*carry, *ys], [*(0 if c else None for c in body.carry), *(1 if y else None for y in body.ys)]


# Compilation ---------------------------------------------------------------------------------------------------------


@scan_p.xla
def _xla(
    hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **rest: Any
) -> list[Any]:
    consts, init, xs = grouped(operands, num_consts, num_carry)
    return emission.write_scan(hlo, jaxpr, Loop(**rest), consts, init, xs)
