"""The primitive ``while``: a program that runs step by step, while a condition, another program, holds.

The operands are the consts of the condition, the consts of the body, and the initial carry. The condition and the body
take their consts and the carry.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.hlo.module import GOES_ON
from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    op_count,
    run_interpreted,
    typed,
    without_effects,
)
from pullback.control.guard import guard
from pullback.control.scan_primitive import Dims, Flags, smaller_body
from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.elsewhere import is_here
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, jaxpr_as_fun
from pullback.core.lists import fixpoint, select, split_list
from pullback.core.trace import Primitive
from pullback.core.traits import Cost, cost
from pullback.core.types import MappedAxis, ShapedArray
from pullback.core.waiting import Counter, take_counter
from pullback.primitives.arrays.indexing import dynamic_slice_p, dynamic_update_slice_p
from pullback.primitives.arrays.shapes import front_aligned
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import where
from pullback.primitives.reductions import reduce_or
from pullback.transforms.checks.trace import batch_checked, has_checks
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.programs.jit_primitive import at_bottom, concrete
from pullback.transforms.programs.program_primitive import check_types
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.jaxprs import batch_jaxpr
from pullback.transforms.traces.lift import Fed, Feed, holds_programs
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat

_BOOL, _COUNT = np.dtype(bool), np.dtype(np.int64)

while_p = Primitive("while", multiple_results=True, keeps_weak_type=False)


class While(NamedTuple):
    """The parameters of a loop.

    Attributes:
      cond_jaxpr: the condition, from its ``cond_nconsts`` consts and the carry to whether there is another step.
      body_jaxpr: the step, from its ``body_nconsts`` consts and the carry to the carry.
      checkpoints: the number of states to save for reverse mode; None for the default.
    """

    cond_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_jaxpr: ClosedJaxpr
    body_nconsts: int
    checkpoints: int | None

    def split(self, operands: Sequence[Any]) -> list[list[Any]]:
        """Split operands into the consts of the condition, the consts of the body, and the carry."""
        return split_list(operands, self.cond_nconsts, self.body_nconsts)


def bind(
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_consts: Sequence[Any], body_consts: Sequence[Any],
    init: Sequence[Any], checkpoints: int | None,
) -> list[Any]:  # fmt: skip
    """Apply ``while``; return the final carry."""
    loop = While(cond_jaxpr, len(cond_consts), body_jaxpr, len(body_consts), checkpoints)
    return while_p.bind(*cond_consts, *body_consts, *init, **loop._asdict())  # type: ignore[no-any-return]


@while_p.abstract_eval
def _abstract_eval(
    *avals: ShapedArray, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **params: Any
) -> list[ShapedArray]:
    cond_consts, body_consts, init = split_list(avals, params["cond_nconsts"], params["body_nconsts"])
    check_types("the condition of this while", [*cond_consts, *init], cond_jaxpr.in_avals)
    check_types("the body of this while", [*body_consts, *init], body_jaxpr.in_avals)
    outs = body_jaxpr.out_avals
    check_types("the next step of this while", outs, init)
    check_types("the test of this while", cond_jaxpr.out_avals, [ShapedArray((), _BOOL)])
    return outs


# Evaluation


@while_p.impl
@at_bottom
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The impl rule: run the loop operation by operation; after ``INTERPRETED`` operations, compile the other steps."""
    loop = While(**params)
    counter = take_counter()
    cond_jaxpr, body_jaxpr = loop.cond_jaxpr, loop.body_jaxpr
    cond_consts, body_consts, carry = loop.split([concrete(x) for x in args])
    to_the_end = config.disable_jit or checking()
    step = op_count(cond_jaxpr) + op_count(body_jaxpr)
    on_default = all(map(is_here, [*cond_consts, *body_consts, *carry]))
    done = 0 if on_default else INTERPRETED + 1
    while to_the_end or done <= INTERPRETED:
        if not run_interpreted(cond_jaxpr, [*cond_consts, *carry])[0]._value:
            return typed(carry, body_jaxpr)
        carry = run_interpreted(body_jaxpr, [*body_consts, *carry])
        done += step
    if on_default and not (cond_jaxpr.jaxpr.effect or body_jaxpr.jaxpr.effect):
        return _evaluate_in_slices([*cond_consts, *body_consts], carry, params, counter)
    from pullback.backends.compiler.one_operation import evaluate

    return evaluate(while_p, [*cond_consts, *body_consts, *carry], params)  # type: ignore[no-any-return]


SLICE = 0.1
"""About how many seconds a slice of an eager loop takes: between slices, Ctrl-C ends the loop."""
FIRST_SLICE = 64
"""How many steps the first slice of an eager loop has."""
_GROWTH = 64
"""How many times as many steps as before the next slice has at most."""

while_slice_p = Primitive("while_slice", multiple_results=True, keeps_weak_type=False)
"""At most so many steps of a loop: takes their number before the operands; returns how many are left, and the carry."""


def _evaluate_in_slices(
    consts: list[Any], carry: list[Any], params: dict[str, Any], counter: Counter | None
) -> list[Any]:
    """Run a loop by a compiled program of some steps, again and again. The number of steps does not affect results.

    ``counter`` counts the steps for a line of progress, if somebody waits for the loop.
    """
    from pullback.backends.compiler.one_operation import evaluate

    steps = FIRST_SLICE
    while True:
        start = time.perf_counter()
        left, *carry = evaluate(while_slice_p, [ArrayImpl(np.int32(steps)), *consts, *carry], params)
        if left._value:
            return carry
        if counter is not None:
            counter.steps += steps
        factor = min(SLICE / (time.perf_counter() - start), _GROWTH)
        steps = min(max(int(steps * factor), 1), 2**30)


@while_slice_p.abstract_eval
def _abstract_eval_slice(steps: ShapedArray, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
    return [steps, *_abstract_eval(*avals, **params)]


@while_slice_p.lowering
def _lowering_slice(hlo: Any, steps: Any, *operands: Any, **params: Any) -> list[Any]:
    loop = While(**params)
    cond_consts, body_consts, init = loop.split(operands)
    zero, one = hlo.number(0, steps.dtype), hlo.number(1, steps.dtype)

    def test(carry: list[Any]) -> list[Any]:
        holds = write_program(hlo, loop.cond_jaxpr, [*cond_consts, *carry[1:]])
        return [hlo.elementwise("stablehlo.and", hlo.compare(carry[0], zero, "GT"), *holds)]

    def step(carry: list[Any]) -> list[Any]:
        left = hlo.elementwise("stablehlo.subtract", carry[0], one)
        return [left, *write_program(hlo, loop.body_jaxpr, [*body_consts, *carry[1:]])]

    return emission.write_while(hlo, [steps, *init], test, step, False)


# Forward transformations


def _feed(**params: Any) -> Feed:
    loop = While(**params)

    def again(fed: Fed) -> list[Any]:
        assert fed.test is not None
        cond_consts, body_consts, init = fed.groups
        return bind(fed.test, fed.programs[0], cond_consts, body_consts, init, loop.checkpoints)

    test = loop.cond_jaxpr, (0, 2)
    return Feed((loop.body_jaxpr,), again, (loop.cond_nconsts, loop.body_nconsts), (1, 2), carried=2, test=test)


holds_programs(while_p, _feed)


# Partial evaluation, dead code


@cached_by_jaxpr
def unknown_carry(closed: ClosedJaxpr, consts: Flags, init: Flags) -> list[bool]:
    """For each carried value, whether it depends on unknown operands, directly or through earlier steps.

    ``closed`` is the body; ``consts`` and ``init`` flag the unknown consts and initial values.
    """
    return fixpoint(lambda c: (partial_eval_jaxpr(closed, (*consts, *c), tuple(c)).unknown_outputs, None), init)[0]


@while_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """The rule for partial evaluation: make a loop of the known carried values, and a loop of the unknown ones.

    The second loop computes the known values again: saved residuals would need a memory that depends on the number of
    steps. If the condition is unknown, the entire loop is unknown.
    """
    loop = While(**eqn.params)
    cond_flags, const_flags, init = loop.split(unknown)
    carry = unknown_carry(loop.body_jaxpr, tuple(const_flags), tuple(init))
    if partial_eval_jaxpr(loop.cond_jaxpr, [*cond_flags, *carry]).unknown_outputs[0]:
        return [], [eqn], [True] * len(eqn.outvars)
    first = [_dce([not u for u in carry], eqn)] if eqn.effect or not all(carry) else []
    if not any(carry):
        return first, [], carry
    again = {"cond_jaxpr": without_effects(loop.cond_jaxpr), "body_jaxpr": without_effects(loop.body_jaxpr)}
    rest = [v if u else Var(v.aval) for v, u in zip(eqn.outvars, carry, strict=True)]
    return first, [eqn.like(eqn.invars, rest, **again)], carry


@while_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    loop = While(**eqn.params)
    cond_consts, body_consts, init = loop.split(eqn.invars)
    tested = dce_closed_jaxpr(loop.cond_jaxpr, [True])[1][loop.cond_nconsts :]
    wanted = tuple([u or t for u, t in zip(used, tested, strict=True)])
    (body, carry, _), body_inputs = smaller_body(loop.body_jaxpr, loop.body_nconsts, len(init), wanted)
    condition, cond_inputs = dce_closed_jaxpr(loop.cond_jaxpr, [True], [*[False] * loop.cond_nconsts, *carry])
    cond_consts = select(cond_consts, cond_inputs[: len(cond_consts)])
    body_consts = select(body_consts, body_inputs[: len(body_consts)])
    loop = While(condition, len(cond_consts), body, len(body_consts), loop.checkpoints)
    operands = [*cond_consts, *body_consts, *select(init, carry)]
    return eqn.like(operands, select(eqn.outvars, carry), **loop._asdict())


# Batching


@while_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, **params: Any) -> tuple[list[Any], list[int | None]]:
    loop = While(**params)
    if has_checks(loop.cond_jaxpr) or has_checks(loop.body_jaxpr):
        return batch_checked(while_p, axis, args, dims, params)
    fronted = [x if d is None else front(x, d, axis) for x, d in zip(args, dims, strict=True)]
    cond_consts, body_consts, init = loop.split(fronted)
    cond_flags, body_flags, flags = map(tuple, loop.split([d is not None for d in dims]))
    test, condition, body, mapped = _batched(loop.body_jaxpr, loop.cond_jaxpr, axis, cond_flags, body_flags, flags)
    carry = [front(x, None, axis) if m and not f else x for x, f, m in zip(init, flags, mapped, strict=True)]
    out_dims = [0 if m else None for m in mapped]
    if condition is None:
        return bind(test, body, cond_consts, body_consts, carry, loop.checkpoints), out_dims
    holds = jaxpr_as_fun(test)(*cond_consts, *carry)
    consts = [*cond_consts, *body_consts]
    return bind(condition, body, [], consts, [*holds, *carry], loop.checkpoints)[1:], out_dims


@cached_by_jaxpr
def _batched(
    body: ClosedJaxpr, condition: ClosedJaxpr, axis: MappedAxis, cond_consts: Flags, body_consts: Flags, init: Flags
) -> tuple[ClosedJaxpr, ClosedJaxpr | None, ClosedJaxpr, list[bool]]:
    """Map a loop over a batch.

    If the condition is mapped, the loop carries a boolean for each example before the other values: whether the
    example's condition holds. The loop continues while any of these is true; the carry of the other
    examples does not change.

    Args:
      body: the program of a step.
      condition: the program of the condition.
      axis: the mapped axis.
      cond_consts: for each const of the condition, whether it is mapped.
      body_consts: for each const of the body, whether it is mapped.
      init: for each initial value, whether it is mapped.

    Returns:
      The condition for each example; the condition of the loop, None if the condition is not mapped; the body; and for
      each carried value whether it is mapped, over axis 0.
    """

    def step(carry: list[bool]) -> Any:
        cond_dims, body_dims = (
            tuple(0 if f else None for f in (*consts, *carry)) for consts in (cond_consts, body_consts)
        )
        test, (test_dim,) = batch_jaxpr(condition, axis, cond_dims)
        if test_dim is not None and not all(carry):  # examples end at different steps
            return [True] * len(carry), None
        mapped, out_dims = batch_jaxpr(body, axis, body_dims, tuple(carry))
        return [d is not None for d in out_dims], (test, test_dim is not None, mapped)

    carry, (test, each, mapped) = fixpoint(step, init)
    if not each:
        return test, None, mapped, carry
    flags, own = ShapedArray((axis.size,), _BOOL), test.in_avals[len(cond_consts) :]
    const_avals = [*test.in_avals[: len(cond_consts)], *mapped.in_avals[: len(body_consts)]]

    def goes_on(holds: Any, *values: Any) -> list[Any]:
        return [reduce_or(holds, (0,))]

    def run(*values: Any) -> list[Any]:
        for_test, for_step, (holds,), old = split_list(values, len(cond_consts), len(body_consts), 1)
        new = jaxpr_as_fun(mapped)(*guard(holds, [*for_step, *old], [*body_consts, *carry]))
        state = [where(front_aligned(holds, 0, len(x.shape) - 1), x, y) for x, y in zip(new, old, strict=True)]
        return [*jaxpr_as_fun(test)(*for_test, *state), *state]

    conditions = stage_flat(condition, goes_on, [flags, *own])
    return test, conditions, stage_flat(body, run, [*const_avals, flags, *own]), carry


# Compilation

LARGE = 1 << 14
"""The work of a step that makes a loop large: it asks from time to time whether it is to go on.

The compiler divides operations on more among threads, which an endless loop would keep. It makes one function of a loop
over little data, and of all around it, unless there is a question."""
FIRST = (1 << 22, 1), (1 << 18, 8), (0, 64)
"""How many steps a large loop may take before it asks again at first, if the work is so much or more."""


@cached_by_jaxpr
def _work(closed: ClosedJaxpr) -> int:
    """The elements of the largest array that an operation of a program computes, or what takes as long.

    That is 16 elements that are only read, or 16 products in a contraction. What a slice is written to is neither read
    nor computed. The result is kept, for loops in loops.
    """
    most = 0
    for eqn in closed.jaxpr.eqns:
        values = [x for p in eqn.params.values() for x in (p if isinstance(p, (tuple, list)) else (p,))]
        parts = [_work(x) for x in values if isinstance(x, ClosedJaxpr)]
        if not parts:
            read = [math.prod(x.aval.shape) for x in eqn.invars]
            computed = [math.prod(x.aval.shape) for x in eqn.outvars]
            if eqn.primitive is dynamic_slice_p:
                read = computed
            elif eqn.primitive is dynamic_update_slice_p:
                read = computed = read[1:2]
            elif cost.of(eqn.primitive) is Cost.PRODUCT:  # of m by k, k by n and m by n elements
                read = [*read, math.isqrt(math.prod(read) * computed[0])]
            parts = [*computed, *(size // 16 for size in read)]
        most = max([most, *parts])
    return most


@while_p.lowering
def _lowering(hlo: Any, *operands: Any, **params: Any) -> list[Any]:
    loop = While(**params)
    cond_jaxpr, body_jaxpr = loop.cond_jaxpr, loop.body_jaxpr
    cond_consts, body_consts, init = loop.split(operands)
    hlo.module.may_not_end = True
    work = 0 if hlo.module.portable else max(map(_work, (cond_jaxpr, body_jaxpr)))

    def test(carry: list[Any]) -> list[Any]:
        return write_program(hlo, cond_jaxpr, [*cond_consts, *carry])

    def step(carry: list[Any]) -> list[Any]:
        return write_program(hlo, body_jaxpr, [*body_consts, *carry])

    effect = cond_jaxpr.jaxpr.effect or body_jaxpr.jaxpr.effect
    write = emission.write_while
    if work >= LARGE and hlo.module.ask():
        write = functools.partial(_write_asking, first=next(steps for least, steps in FIRST if work >= least))
    if not cond_jaxpr.jaxpr.effect:
        return write(hlo, init, test, step, effect)

    # A condition with effects runs within the body, after each step, and its result is carried.
    def step_and_test(carry: list[Any]) -> list[Any]:
        after = step(carry[1:])
        return [*test(after), *after]

    begin = [*test(list(init)), *init]
    return write(hlo, begin, lambda carry: carry[:1], step_and_test, effect)[1:]


def _write_asking(
    hlo: Any, init: Sequence[Any], test: emission.Body, step: emission.Body, effect: bool, first: int
) -> list[Any]:
    """Emit a while loop in slices, before each of which it asks how many steps it may take.

    A slice is a loop within another one that asks, since a question takes as long as some small operations. The
    outer loop ends after a slice of fewer steps than it may take. The answer is -1 if it is to stop.

    Args:
      hlo, init, test, step, effect: those of ``emission.write_while``.
      first: how many steps the first slice may take.
    """

    def one_slice(carry: list[Any]) -> list[Any]:
        steps, begin = hlo.custom_call(GOES_ON, carry[1:3], [((), _COUNT)] * 2)

        def goes_on(inner: list[Any]) -> list[Any]:
            return [hlo.elementwise("stablehlo.and", hlo.compare(inner[0], steps, "LT"), *test(inner[1:]))]

        taken, *values = emission.write_while(hlo, [hlo.number(0, _COUNT), *carry[3:]], goes_on, count, effect)
        return [taken, steps, begin, *values]

    def count(inner: list[Any]) -> list[Any]:
        return [hlo.elementwise("stablehlo.add", inner[0], hlo.number(1, _COUNT)), *step(inner[1:])]

    def took_all(carry: list[Any]) -> list[Any]:
        return [hlo.compare(carry[0], carry[1], "EQ")]

    begin = [hlo.number(first, _COUNT), hlo.number(first, _COUNT), hlo.number(0, _COUNT), *init]
    return emission.write_while(hlo, begin, took_all, one_slice, effect)[3:]
