"""``while_loop``, and the primitive ``while``.

Operands of the primitive are what its condition captured, what its body captured, and the initial carry. Two programs,
of the condition and of the body, take what is theirs and the carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    Body,
    Carry,
    check_checkpoints,
    check_parts,
    diverging,
    in_chosen_parts,
    interned,
    known,
    leaves_of,
    op_count,
    reordered,
    run_interpreted,
    stage,
    stage_step,
    typed,
    varied_contents,
    without_effects,
    zero_tangent,
)
from pullback.control.guard import guard
from pullback.control.scan_primitive import Dims, Flags, carried_series, jvp_body, smaller_body, taylor_body
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_at_home, typeof
from pullback.core.check_rules import checked_program
from pullback.core.config import config
from pullback.core.errors import ControlFlowError, OperandError, RefError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, jaxpr_as_fun
from pullback.core.lists import fixpoint, merge_lists, partition_list, select, split_list, spread
from pullback.core.taylor_rules import taylor_program
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.axis_maps import front
from pullback.primitives.collectives import vary
from pullback.primitives.elementwise import where
from pullback.primitives.reductions import reduce_or
from pullback.primitives.shapes import front_aligned
from pullback.transforms.checks.report import Layout, joined
from pullback.transforms.checks.trace import (
    CheckTrace,
    Errors,
    batch_checked,
    checked_jaxpr,
    embedded,
    has_checks,
    merged,
    no_failure,
    width,
)
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_callable, name_of
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.interpreters.derived import cached_by_jaxpr
from pullback.transforms.interpreters.inlining import Stepped, programs_in_step
from pullback.transforms.interpreters.jaxprs import batch_jaxpr, flat_series, grouped, kept_of
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.refs import write_all
from pullback.transforms.interpreters.stage import stage_flat
from pullback.transforms.programs.jit_primitive import at_bottom, concrete
from pullback.transforms.programs.program_primitive import check_types

R = TypeVar("R")

_BOOL = np.dtype(bool)


# The public functions ------------------------------------------------------------------------------------------------


@overload
def while_loop(
    cond_fun: Callable[..., ArrayLike],
    body_fun: Callable[..., ArrayLike],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[..., ArrayLike],
    body_fun: Callable[..., R],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> R: ...
@api_boundary
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> Any:
    """Apply a function again and again, as long as a condition holds.

    Eager, too, a loop of more than a few operations runs as one compiled program, which is kept; under
    ``disable_jit`` it is a loop in Python.

    Args:
      cond_fun: from the carry to a boolean of no axes: whether there is another step.
      body_fun: from the carry to the carry after a step, of the same tree, shapes and dtypes.
      init_val: the carry of the first step, a tree of arrays. Weakly typed numbers take the dtype that ``body_fun``
        returns for them.
      checkpoints: how many states are kept for reverse mode, whatever the number of steps; those between are computed
        again. By default 128, or fewer if these took more than 64 MB.
      preaccumulate: ``"auto"`` has parts of a step keep their local Jacobian for reverse mode, as for ``scan``.

    Returns:
      The carry for which the condition does not hold. Under ``vmap`` each example ends with its own.

    Raises:
      ControlFlowError: ``body_fun`` returns another carry than it takes, or ``cond_fun`` no boolean (a TypeError and
        ValueError).

    >>> print(while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    check_callable(cond_fun, "while_loop")
    check_callable(body_fun, "while_loop")
    check_checkpoints("while_loop", checkpoints)
    check_parts("while_loop", preaccumulate)
    leaves, treedef = leaves_of(init_val, "while_loop", "init_val")
    if config.disable_jit:
        value = tree.unflatten(treedef, leaves)
        while True:
            holds = known(_condition(cond_fun(value), cond_fun))
            if holds is None:  # it differs from example to example
                leaves, treedef = leaves_of(value, "while_loop", "carry")
                break
            if not holds:
                return value
            value = body_fun(value)
    carry = Carry("while_loop", body_fun, leaves, treedef)

    def step(*tracers: Any) -> Any:
        return body_fun(tree.unflatten(treedef, tracers)), None

    def test(*tracers: Any) -> Any:
        return _condition(cond_fun(tree.unflatten(treedef, tracers)), cond_fun)

    return tree.unflatten(treedef, run_while(carry, cond_fun, test, step, checkpoints, preaccumulate))


def _condition(holds: Any, function: Any) -> Any:
    """What a condition returned, checked."""
    try:
        x = as_array(holds)
    except OperandError:
        x = None
    if x is None or x.shape != () or not dtypes.is_bool(x.dtype):
        got = f"a {type(holds).__name__}" if x is None else f"{typeof(x)}"
        raise ControlFlowError(
            f"while_loop: the condition {name_of(function)} must return a boolean of no axes, but it returned {got}. "
            "jnp.all and jnp.any make one of many; a number is compared, as in x != 0."
        )
    return x


def run_while(
    carry: Carry, test_function: Any, test: Callable[..., Any], step: Callable[..., Any], checkpoints: int | None,
    preaccumulate: str | None = None,
) -> list[Any]:  # fmt: skip
    """The leaves of the final carry.

    Args:
      carry: the initial carry.
      test_function: the user's condition, for error messages.
      test: from the leaves of the carry to whether there is another step.
      step: from the leaves of the carry to a pair of the tree of the carry after a step, and None.
      checkpoints: how many states are kept for reverse mode.
      preaccumulate: whether parts of a step keep their local Jacobian.
    """
    body = stage_step(carry, step, [], carry.names)
    refs = body.refs
    known_axes = {r: a.varying for r, a in zip(refs, body.jaxpr.in_avals[-len(refs) :], strict=True)} if refs else None
    condition = stage(carry.what, test_function, test, carry.avals, carry.names, refs, known_axes)
    if condition.writes():
        raise RefError(
            f"while_loop: the condition {name_of(test_function)} writes to a reference, but it may only read: whether "
            "there is another step is asked once more than steps are taken. Write in the body."
        )
    init = [*carry.leaves, *varied_contents(body)]
    axes = condition.jaxpr.out_avals[0].varying
    if axes:
        init = [vary(x, axes) for x in init]
        body, condition = diverging(body, axes), diverging(condition, axes)
    # What no step changes is no part of the carry, but a constant.
    inputs = body.jaxpr.jaxpr.invars[len(body.captured) :]
    fixed = [a is v for a, v in zip(body.jaxpr.jaxpr.outvars, inputs, strict=False)]
    results, _ = partition_list(range(len(fixed)), fixed)
    moving, constants = partition_list(init, fixed)

    def with_constants(part: Body, results: Sequence[int]) -> ClosedJaxpr:
        count = len(part.captured)
        changing, constant = partition_list(range(count, count + len(fixed)), fixed)
        return interned(reordered(part.jaxpr, [*range(count), *constant, *changing], results))

    program, predicate = with_constants(body, results), with_constants(condition, [0])
    operands = [*condition.captured, *constants], [*body.captured, *constants], moving
    if preaccumulate is not None:
        program = in_chosen_parts(program, carry, range(len(operands[1]), len(program.in_avals)))
    outs = merge_lists(fixed, bind(predicate, program, *operands, checkpoints), constants)
    write_all(refs, outs[len(carry.leaves) :])
    return outs[: len(carry.leaves)]


# The primitive -------------------------------------------------------------------------------------------------------

while_p = Primitive("while", multiple_results=True, keeps_weak_type=False)


@programs_in_step(while_p)
def _programs(*, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int, **rest: Any) -> list[Stepped]:
    return [Stepped(body_jaxpr, cond_nconsts, range(body_nconsts, len(body_jaxpr.in_avals)))]


class While(NamedTuple):
    """The parameters of a loop.

    Attributes:
      cond_jaxpr: the condition, from its ``cond_nconsts`` constants and the carry to whether there is another step.
      body_jaxpr: the step, from its ``body_nconsts`` constants and the carry to the carry.
      checkpoints: how many states are kept for reverse mode.
    """

    cond_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_jaxpr: ClosedJaxpr
    body_nconsts: int
    checkpoints: int | None

    def split(self, operands: Sequence[Any]) -> list[list[Any]]:
        """The constants of the condition, those of the body, and the carry."""
        return split_list(operands, self.cond_nconsts, self.body_nconsts)


def bind(
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_consts: Sequence[Any], body_consts: Sequence[Any],
    init: Sequence[Any], checkpoints: int | None,
) -> list[Any]:  # fmt: skip
    """The final carry of a loop."""
    loop = While(cond_jaxpr, len(cond_consts), body_jaxpr, len(body_consts), checkpoints)
    return while_p.bind(*cond_consts, *body_consts, *init, **loop._asdict())  # type: ignore[no-any-return]


@while_p.abstract_eval
def _shape(*avals: ShapedArray, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **params: Any) -> list[ShapedArray]:
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
    """The first steps operation by operation, the others, if there are many, as a compiled program."""
    loop = While(**params)
    cond_jaxpr, body_jaxpr = loop.cond_jaxpr, loop.body_jaxpr
    cond_consts, body_consts, carry = loop.split([concrete(x) for x in args])
    to_the_end = config.disable_jit or checking()
    step = op_count(cond_jaxpr) + op_count(body_jaxpr)
    done = 0 if all(map(is_at_home, [*cond_consts, *body_consts, *carry])) else INTERPRETED + 1
    while to_the_end or done <= INTERPRETED:
        if not host_value(run_interpreted(cond_jaxpr, [*cond_consts, *carry])[0]):
            return typed(carry, body_jaxpr)
        carry = run_interpreted(body_jaxpr, [*body_consts, *carry])
        done += step
    from pullback.backends.one_operation import evaluate

    return evaluate(while_p, [*cond_consts, *body_consts, *carry], params)  # type: ignore[no-any-return]


# Forward differentiation


@cached_by_jaxpr
def _ignoring(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A program that takes more inputs than it reads."""
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=[*closed.jaxpr.invars, *map(Var, avals)]))


@while_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    loop = While(**params)
    cond_consts, body_consts, init = loop.split(primals)
    _, const_ts, init_ts = loop.split(tangents)
    nonzero = tuple([t is not ZERO for t in (*const_ts, *init_ts)])
    program, carry, _ = jvp_body(loop.body_jaxpr, loop.body_nconsts, len(init), nonzero)
    moving = [(zero_tangent(typeof(x)) if t is ZERO else t) for x, t, c in zip(init, init_ts, carry, strict=True) if c]
    condition = _ignoring(loop.cond_jaxpr, tuple([typeof(t) for t in moving]))
    consts = [*body_consts, *(t for t in const_ts if t is not ZERO)]
    outs = bind(condition, program, cond_consts, consts, [*init, *moving], loop.checkpoints)
    return outs[: len(init)], spread(carry, outs[len(init) :], ZERO)


@taylor_program(while_p)
def _taylor(order: int, primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    loop = While(**params)
    cond_consts, body_consts, init = loop.split(primals)
    _, const_series, init_series = loop.split(series)
    step = taylor_body(loop.body_jaxpr, order, loop.body_nconsts, len(init), kept_of([*const_series, *init_series]))
    moving = flat_series(carried_series(init, init_series, step.carry))
    condition = _ignoring(loop.cond_jaxpr, tuple([typeof(c) for c in moving]))
    consts = [*body_consts, *flat_series(const_series)]
    outs = bind(condition, step.jaxpr, cond_consts, consts, [*init, *moving], loop.checkpoints)
    return outs[: len(init)], grouped(outs[len(init) :], step.carry)


# Partial evaluation, dead code


@cached_by_jaxpr
def unknown_carry(closed: ClosedJaxpr, consts: Flags, init: Flags) -> list[bool]:
    """Which carries depend on unknown operands."""
    return fixpoint(lambda c: (partial_eval_jaxpr(closed, (*consts, *c), tuple(c)).unknown_outputs, None), init)[0]


@while_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """What goes its own way is known; the rest needs it in each step, and so is a loop that does it once more."""
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
    """A loop over a batch.

    Returns:
      The condition of the examples; the condition of the loop, None if all examples share theirs; the body; and for
      each carry whether it is mapped (then axis 0 is). Where each example has a condition of its own, what these hold
      is carried before the rest; the loop goes on as long as one holds, and the other examples stay as they are.
    """

    def step(carry: list[bool]) -> Any:
        cond_dims, body_dims = (
            tuple(0 if f else None for f in (*consts, *carry)) for consts in (cond_consts, body_consts)
        )
        test, (test_dim,) = batch_jaxpr(condition, axis, cond_dims)
        if test_dim is not None and not all(carry):
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
        kept = [where(front_aligned(holds, 0, len(x.shape) - 1), x, y) for x, y in zip(new, old, strict=True)]
        return [*jaxpr_as_fun(test)(*for_test, *kept), *kept]

    conditions = stage_flat(condition, goes_on, [flags, *own])
    return test, conditions, stage_flat(body, run, [*const_avals, flags, *own]), carry


# Compilation


@while_p.lowering
def _lowering(hlo: Any, *operands: Any, **params: Any) -> list[Any]:
    loop = While(**params)
    cond_jaxpr, body_jaxpr = loop.cond_jaxpr, loop.body_jaxpr
    cond_consts, body_consts, init = loop.split(operands)

    def test(carry: list[Any]) -> list[Any]:
        return emission.inlined(hlo, cond_jaxpr, [*cond_consts, *carry])

    def step(carry: list[Any]) -> list[Any]:
        return emission.inlined(hlo, body_jaxpr, [*body_consts, *carry])

    effect = cond_jaxpr.jaxpr.effect or body_jaxpr.jaxpr.effect
    if not cond_jaxpr.jaxpr.effect:
        return emission.write_while(hlo, init, test, step, effect)

    # A condition with effects is tested after each step, within the body, and what it returned is carried.
    def step_and_test(carry: list[Any]) -> list[Any]:
        after = step(carry[1:])
        return [*test(after), *after]

    begin = [*test(list(init)), *init]
    return emission.write_while(hlo, begin, lambda carry: carry[:1], step_and_test, effect)[1:]


# Checks


@cached_by_jaxpr
def _checked_loop(
    body: ClosedJaxpr, condition: ClosedJaxpr, errors: Errors, enclosed: bool, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, ClosedJaxpr, Layout]:
    """A loop that carries its first failure before the rest; if its condition can fail, also what it returned.

    Returns:
      The condition of the first step, which also returns its failure, the condition of the loop, and the step, which
      takes the constants of the condition too; and the layout of the failures.
    """
    parts = checked_jaxpr(condition, errors, enclosed), checked_jaxpr(body, errors, enclosed)
    layouts = tuple([part.layout for part in parts])
    layout = joined(layouts).layout
    count, tested = width(layout), bool(layouts[0].checks)
    test, step = (embedded(part.jaxpr, part.layout, layouts, i) for i, part in enumerate(parts))
    cond_consts, carry = split_list(condition.in_avals, cond_nconsts)
    body_consts = body.in_avals[:body_nconsts]
    carried = [*test.out_avals[count:], *step.out_avals[:count]] if tested else step.out_avals[:count]

    def goes_on(*values: Any) -> list[Any]:
        consts, before, rest = split_list(values, cond_nconsts, len(carried))
        return [before[0]] if tested else jaxpr_as_fun(test)(*consts, *rest)[count:]

    def run(*values: Any) -> list[Any]:
        for_test, for_step, before, old = split_list(values, cond_nconsts, body_nconsts, len(carried))
        outs = jaxpr_as_fun(step)(*for_step, *old)
        failure, new = merged(layout, before[tested:], outs[:count]), outs[count:]
        if not tested:
            return [*failure, *new]
        after = jaxpr_as_fun(test)(*for_test, *new)
        return [*after[count:], *merged(layout, failure, after[:count]), *new]

    conditions = stage_flat(condition, goes_on, [*cond_consts, *carried, *carry])
    return test, conditions, stage_flat(body, run, [*cond_consts, *body_consts, *carried, *carry]), layout


@checked_program(while_p)
def _checked(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    loop = While(**params)
    cond_consts, body_consts, init = loop.split(args)
    programs = trace.checked(loop.cond_jaxpr), trace.checked(loop.body_jaxpr)
    if not any(program.layout.checks for program in programs):
        test, step = programs[0].jaxpr, programs[1].jaxpr
        return bind(test, step, cond_consts, body_consts, init, loop.checkpoints)
    test, condition, step, layout = _checked_loop(
        loop.body_jaxpr, loop.cond_jaxpr, trace.errors, trace.enclosed, loop.cond_nconsts, loop.body_nconsts
    )
    tested, count = bool(programs[0].layout.checks), width(layout)
    carried = step.in_avals[len(cond_consts) + len(body_consts) :]
    if tested:
        first = jaxpr_as_fun(test)(*cond_consts, *init)
        before = [vary(x, a.varying) for x, a in zip([*first[count:], *first[:count]], carried, strict=False)]
    else:
        before = no_failure(layout, carried)
    outs = bind(condition, step, cond_consts, [*cond_consts, *body_consts], [*before, *init], loop.checkpoints)
    return trace.taken(layout, outs[tested:])
