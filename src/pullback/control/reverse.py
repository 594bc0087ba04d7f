"""Reverse mode through loops of unknown length, in bounded memory.

Linearised, a loop carries values and tangents, and is linear in the tangents. Its transpose runs twice: forwards for
the values, and saves some of them (``checkpointing``), and backwards for the cotangents.

The transposed loop is an operation that is linear in the cotangents, and its transpose is the original loop. Its
derivative with respect to the values is an operation, too; to transpose that, we differentiate the loop of values and
tangents in reverse. So states of the backward pass are never saved: a gradient of a gradient needs no more memory than
the gradient of a loop with a larger carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.control.checkpointing import reverse, run_saving
from pullback.control.common import without_effects
from pullback.control.scan_primitive import Flags
from pullback.control.while_primitive import While, unknown_carry, while_p
from pullback.core.array import typeof
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linear import LinearTrace, LinearTracer, is_linear
from pullback.core.lists import merge_lists, partition_list, scatter_where, select, split_list
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import densify, instantiate, zeros_of
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import add, add_any
from pullback.transforms.custom.linear_map import Dims, LinearMap, linear_operation
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.batch import BatchTrace
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.jaxprs import transpose_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat
from pullback.transforms.traces.transpose import transpose_flat

SLOTS = 128
"""The default number of saved states: no step is computed more than three times in loops of up to 366,000 steps."""
MEMORY = 64 << 20
"""The memory for saved states, in bytes; for large states there are fewer."""
FEWEST = 8
"""The least number of saved states."""


def default_slots(avals: Sequence[ShapedArray]) -> int:
    """The number of states of a loop that reverse mode saves by default.

    It is ``SLOTS``, or as many states of the types ``avals`` as fit into ``MEMORY`` bytes, but at least ``FEWEST``.
    """
    size = sum(a.size * a.dtype.itemsize for a in avals)
    return max(FEWEST, min(SLOTS, MEMORY // max(size, 1) // 2 * 2))


class TransposedLoop(LinearMap):
    """The transpose of a loop that is linear in some operands. Its residuals are the other operands.

    Attributes:
      params: the parameters of the loop.
      linear: for each operand of the loop, whether the loop is linear in it.
      carry: for each carried value, whether it depends on linear operands.
    """

    def __init__(self, params: dict[str, Any], linear: Flags, operands: Sequence[ShapedArray]) -> None:
        self.params = params
        self.function = params["body_jaxpr"]
        self.linear = tuple(linear)
        _, consts, init = While(**params).split(self.linear)
        self.carry = unknown_carry(params["body_jaxpr"], tuple(consts), tuple(init))
        self.count = self.linear.count(False)
        self.out_avals = [a.to_tangent_aval() for a in select(operands, linear)]

    @property
    def __name__(self) -> str:
        return "while"

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        program = _program(self.params["body_jaxpr"], While(**self.params), self.linear, tuple(self.carry))
        return jit_p.bind(*residuals, *tangents, jaxpr=program, name="while_transpose")  # type: ignore[no-any-return]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        operands = merge_lists(self.linear, residuals, densify(cts, self.out_avals))
        return select(while_p.bind(*operands, **self.params), self.carry)

    def jvp_by_residuals(self, p: Primitive, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        which = tuple([t is not ZERO for t in tangents])
        rule = ByResiduals(self, which, len(primals))
        outs = p.bind(*primals, linear_map=self)
        return outs, by_residuals_p.bind(*primals, *select(tangents, which), linear_map=rule)

    def batch(self, p: Primitive, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """The batching rule: transpose the batched loop, in one backward pass for all examples.

        The saved states are chosen for the example with the most steps.
        """
        count, axis = self.count, trace.axis
        avals = [a.batched(axis) for a in self.out_avals]
        linear_dims: list[int | None] = [0] * len(avals)

        def run(*inputs: Any) -> list[Any]:
            operands = merge_lists(self.linear, args[:count], inputs)
            in_dims = merge_lists(self.linear, dims[:count], linear_dims)
            assert while_p.batch_rule is not None
            return select(while_p.batch_rule(axis, operands, in_dims, **self.params)[0], self.carry)

        cts = [front(x, d, axis) for x, d in zip(args[count:], dims[count:], strict=True)]
        tape = LinearTrace(state.trace, self.function)
        return densify(transpose_flat(tape, run, avals, cts), avals), linear_dims


@cached_by_jaxpr
def _program(body: ClosedJaxpr, loop: While, linear: Flags, carry: Flags) -> ClosedJaxpr:
    """Make the program of the transpose of a loop.

    The program takes the operands in which the loop is not linear, and the cotangents of the results that ``carry``
    flags. It runs the loop, saving states, and then the adjoint of each step, from the last to the first. It returns
    the cotangents of the linear operands.

    Args:
      body: the step.
      loop: the parameters of the loop.
      linear: for each operand, whether the loop is linear in it.
      carry: for each carried value, whether it depends on linear operands.
    """
    condition, cond_nconsts, _, body_nconsts, slots = loop
    _, linear_consts, linear_init = loop.split(linear)
    in_flags, moving = [*linear_consts, *carry], [not c for c in carry]
    step, step_inputs = dce_closed_jaxpr(without_effects(body), moving)
    test, test_inputs = dce_closed_jaxpr(without_effects(condition), [True])
    tangents, _ = dce_closed_jaxpr(without_effects(body), carry, instantiate=True)
    split = partial_eval_jaxpr(tangents, in_flags, True)
    residuals = len(split.residual_avals)
    back = transpose_jaxpr(split.unknown, [False] * residuals + [True] * in_flags.count(True))
    avals = [*condition.in_avals[:cond_nconsts], *body.in_avals]
    fixed_avals, _ = partition_list(avals, linear)
    ct_avals = [a.to_tangent_aval() for a in select(body.out_avals, carry)]
    const_avals = select(body.in_avals[:body_nconsts], linear_consts)

    def run(*values: Any) -> list[Any]:
        rest = iter(values)
        cond_consts, consts, init = loop.split([None if n else next(rest) for n in linear])
        first = select(init, moving)

        def full_carry(state: Sequence[Any]) -> list[Any]:
            return scatter_where(moving, state, None)

        def holds(state: Sequence[Any]) -> Any:
            return jaxpr_as_fun(test)(*select([*cond_consts, *full_carry(state)], test_inputs))[0]

        def advance(state: Sequence[Any]) -> list[Any]:
            return jaxpr_as_fun(step)(*select([*consts, *full_carry(state)], step_inputs))

        def adjoint(i: Any, state: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            sums, after = split_list(cts, len(const_avals))
            fixed, _ = partition_list([*consts, *full_carry(state)], in_flags)
            found = split.residuals(fixed, jaxpr_as_fun(split.known)(*fixed))
            by_consts, before = split_list(jaxpr_as_fun(back)(*found, *after), len(const_avals))
            return [*map(add, sums, by_consts), *before]

        cts = [*[zeros_of(a) for a in const_avals], *rest]
        count = default_slots([typeof(x) for x in first]) if slots is None else slots
        _, steps, saved = run_saving(holds, advance, first, count)
        sums, before = split_list(reverse(lambda i, s: advance(s), adjoint, steps, saved, cts), len(const_avals))
        return [*sums, *select(before, select(linear_init, carry))]

    return stage_flat(body, run, [*fixed_avals, *ct_avals])


while_transpose_p = linear_operation("while_transpose")
by_residuals_p = linear_operation("while_transpose_derivative")


@while_p.record
def _record(trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """The record rule of ``while``: record the linear part of the loop on a tape, and evaluate the rest.

    Returns the results; or None if all results are linear, and the caller then records the entire loop. Raises if the
    condition depends on values in which the loop must be linear.
    """
    linear = [type(x) is LinearTracer and x._trace is trace for x in args]
    own, consts, init = While(**params).split(linear)
    carry = unknown_carry(params["body_jaxpr"], tuple(consts), tuple(init))
    if any(partial_eval_jaxpr(params["cond_jaxpr"], (*own, *carry)).unknown_outputs):
        raise trace.not_linear(while_p, "is not linear in the values that its condition depends on")
    return record_split(while_p, trace, args, params)


@while_p.transpose
def _transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    linear = tuple(map(is_linear, args))
    rule = TransposedLoop(params, linear, [x.aval if n else typeof(x) for x, n in zip(args, linear, strict=True)])
    avals = params["body_jaxpr"].out_avals
    dense = densify(select(cts, rule.carry), select(avals, rule.carry))
    fixed, _ = partition_list(args, linear)
    return scatter_where(linear, while_transpose_p.bind(*fixed, *dense, linear_map=rule), None)


# The derivative of the transposed loop with respect to its residuals ------------------------------------------------


class ByResiduals(LinearMap):
    """The derivative of a transposed loop with respect to some of its residuals.

    Attributes:
      rule: the transposed loop.
      which: for each residual of ``rule``, whether it has a tangent.
    """

    def __init__(self, rule: TransposedLoop, which: Flags, count: int) -> None:
        self.rule = rule
        self.function = rule.function
        self.which = which
        self.count = count
        self.out_avals = rule.out_avals

    @property
    def __name__(self) -> str:
        return "while"

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        split, ts = self.rule.count, scatter_where(self.which, tangents, ZERO)
        outs, found = jvp_flat(
            self.function,
            lambda *xs: self.rule.apply(xs[:split], xs[split:]),
            residuals,
            [*ts, *[ZERO] * (len(residuals) - split)],
        )
        return [instantiate(t, x) for x, t in zip(outs, found, strict=True)]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        # <w, transposed(r) ct> = <loop(r) w, ct>: differentiate the loop with respect to r instead.
        rule = self.rule
        fixed, loop_cts = split_list(residuals, rule.count)
        dense = densify(cts, self.out_avals)
        others, moving = partition_list(fixed, self.which)

        def run(*active: Any) -> list[Any]:
            return rule.transpose(merge_lists(self.which, others, active), dense)

        _, program = linearize_flat(self.function, run, moving)
        return program.transpose(loop_cts, add_any)
