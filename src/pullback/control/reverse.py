"""Reverse mode through loops of unknown length, in bounded memory.

Linearised, a loop carries values and tangents, and is linear in the tangents. Its transpose runs twice: forwards for
the values, of which it keeps some (``checkpointing``), and backwards for the cotangents.

The transposed loop is an operation that is linear in the cotangents. Its own transpose is the loop that it came from.
Its derivative with respect to the values is an operation too. To transpose that, we differentiate the loop of values
and tangents in reverse. So the states of the backward pass are never kept: a gradient of a gradient needs no more
memory than the gradient of a loop that carries more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.control.checkpointing import reverse, run_keeping
from pullback.control.common import without_effects
from pullback.control.loops import While, unknown_carry, while_p
from pullback.core.array import typeof
from pullback.core.dtypes import tangent_dtype
from pullback.core.errors import NotLinearError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linear import LinearProgram, LinearTrace, LinearTracer, is_linear
from pullback.core.lists import merge_lists, select, split_list, spread
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import instantiate, zeros_of
from pullback.primitives.elementwise import add, add_any
from pullback.primitives.slicing import front
from pullback.transforms.custom.custom_calls import Backward, Dims
from pullback.transforms.interpreters.batch import batch_flat
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.interpreters.derived import cached_by_jaxpr
from pullback.transforms.interpreters.division import record_in_parts
from pullback.transforms.interpreters.forward import jvp_flat
from pullback.transforms.interpreters.jaxprs import transpose_jaxpr
from pullback.transforms.interpreters.linearize import linearize_flat
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.stage import stage_flat
from pullback.transforms.programs.jit_primitive import jit_p

Flags = Sequence[bool]

SLOTS = 128
"""So many states are kept by default: with these, no step is computed more than three times up to 366,000 steps."""
MEMORY = 64 << 20
"""States that together would take more bytes than this are kept in fewer slots."""
FEWEST = 8


def default_slots(avals: Sequence[ShapedArray]) -> int:
    """How many states of some types are kept."""
    size = sum(a.size * a.dtype.itemsize for a in avals)
    return max(FEWEST, min(SLOTS, MEMORY // max(size, 1) // 2 * 2))


class TransposedLoop(Backward):
    """A loop that is linear in a part of its carry, transposed: from residuals, its other operands, and cotangents.

    Attributes:
      params: those of the loop.
      linear: for each operand of the loop, whether the loop is linear in it.
      carry: for each carry, whether it depends on those.
    """

    def __init__(self, params: dict[str, Any], linear: Flags, operands: Sequence[ShapedArray]) -> None:
        self.params = params
        self.function = params["body_jaxpr"]
        self.linear = tuple(linear)
        _, consts, init = While(**params).split(self.linear)
        self.carry = unknown_carry(params["body_jaxpr"], tuple(consts), tuple(init))
        self.count = self.linear.count(False)
        self.out_avals = [a.update(dtype=tangent_dtype(a.dtype)) for a in select(operands, linear)]

    @property
    def __name__(self) -> str:
        return "while"

    def merged(self, residuals: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """The operands of the loop."""
        return merge_lists(self.linear, residuals, values)

    def derivative(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        program = _program(self.params["body_jaxpr"], While(**self.params), self.linear, tuple(self.carry))
        return jit_p.bind(*residuals, *tangents, jaxpr=program, name="while_transpose")  # type: ignore[no-any-return]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        dense = [zeros_of(a) if ct is ZERO else ct for ct, a in zip(cts, self.out_avals, strict=True)]
        return select(while_p.bind(*self.merged(residuals, dense), **self.params), self.carry)


@cached_by_jaxpr
def _program(body: ClosedJaxpr, loop: While, linear: Flags, carry: Flags) -> ClosedJaxpr:
    """The program of a transposed loop: from its other operands, and the cotangents of the carries that are linear."""
    condition, cond_nconsts, _, body_nconsts, slots = loop
    _, linear_consts, linear_init = loop.split(linear)
    count = len(body.in_avals)
    in_flags = [*linear_consts, *carry]
    step, step_inputs = dce_closed_jaxpr(without_effects(body), [not c for c in carry])
    test, test_inputs = dce_closed_jaxpr(without_effects(condition), [True])
    tangents, _ = dce_closed_jaxpr(without_effects(body), carry, [True] * count)
    parts = partial_eval_jaxpr(tangents, in_flags, True)
    residuals = len(parts.residual_avals)
    back = transpose_jaxpr(parts.unknown, [False] * residuals + [True] * in_flags.count(True))
    avals = [*condition.in_avals[:cond_nconsts], *body.in_avals]
    fixed_avals = [a for a, n in zip(avals, linear, strict=True) if not n]
    ct_avals = [a.update(dtype=tangent_dtype(a.dtype)) for a in select(body.out_avals, carry)]
    const_avals = select(body.in_avals[:body_nconsts], linear_consts)

    def run(*values: Any) -> list[Any]:
        rest = iter(values)
        cond_consts, consts, init = loop.split([None if n else next(rest) for n in linear])
        moving = [not c for c in carry]
        first = select(init, moving)

        def whole(state: Sequence[Any]) -> list[Any]:
            return spread(moving, state, None)

        def holds(state: Sequence[Any]) -> Any:
            return jaxpr_as_fun(test)(*select([*cond_consts, *whole(state)], test_inputs))[0]

        def advance(state: Sequence[Any]) -> list[Any]:
            return jaxpr_as_fun(step)(*select([*consts, *whole(state)], step_inputs))

        def adjoint(i: Any, state: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            sums, after = split_list(cts, len(const_avals))
            fixed = [x for x, n in zip([*consts, *whole(state)], in_flags, strict=True) if not n]
            found = parts.residuals(fixed, jaxpr_as_fun(parts.known)(*fixed))
            by_consts, before = split_list(jaxpr_as_fun(back)(*found, *after), len(const_avals))
            return [*map(add, sums, by_consts), *before]

        cts = [*[zeros_of(a) for a in const_avals], *rest]
        places = default_slots([typeof(x) for x in first]) if slots is None else slots
        _, steps, kept = run_keeping(holds, advance, first, places)
        sums, before = split_list(reverse(lambda i, s: advance(s), adjoint, steps, kept, cts), len(const_avals))
        return [*sums, *select(before, select(linear_init, carry))]

    return stage_flat(body, run, [*fixed_avals, *ct_avals])


def _operation(name: str) -> Primitive:
    """A linear operation that a :class:`Backward` describes, without its rules for differentiation and batching."""
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)

    @p.decomposition
    def inline(*args: Any, backward: Backward) -> list[Any]:
        return backward.derivative(args[: backward.count], args[backward.count :])

    @p.abstract_eval
    def shape(*avals: ShapedArray, backward: Backward) -> list[ShapedArray]:
        return list(backward.out_avals)

    @p.transpose
    def transpose(cts: Sequence[Any], *args: Any, backward: Backward) -> list[Any]:
        fixed, values = split_list(args, backward.count)
        if any(map(is_linear, fixed)):
            raise NotLinearError(f"{name} is not linear in its residuals: it cannot be transposed with respect to them")
        found = backward.pull(fixed, cts)
        return [*[None] * len(fixed), *[ct if is_linear(x) else None for x, ct in zip(values, found, strict=True)]]

    @p.lowering
    def xla(hlo: Any, *operands: Any, backward: Backward) -> list[Any]:
        from pullback.backends.emit import emit_jaxpr

        closed = stage_flat(backward.function, partial(inline, backward=backward), [typeof_value(x) for x in operands])
        return emit_jaxpr(hlo, closed.jaxpr, closed.consts, operands)

    return p


def typeof_value(x: Any) -> ShapedArray:
    """The type of a value of a program that is being written."""
    return ShapedArray(x.shape, x.dtype)


while_transpose_p = _operation("while_transpose")


def _tests_linear_values(linear: Flags, params: dict[str, Any]) -> bool:
    """Whether the condition of a loop depends on operands in which the loop is to be linear."""
    own, consts, init = While(**params).split(linear)
    carry = unknown_carry(params["body_jaxpr"], tuple(consts), tuple(init))
    return any(partial_eval_jaxpr(params["cond_jaxpr"], (*own, *carry)).unknown_outputs)


@while_p.record
def _record(trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    if _tests_linear_values([type(x) is LinearTracer and x._trace is trace for x in args], params):
        raise trace.not_linear(while_p, "is not linear in values that its condition depends on")
    return record_in_parts(while_p, trace, args, params)


@while_p.transpose
def _transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    linear = tuple(map(is_linear, args))
    rule = TransposedLoop(params, linear, [x.aval if n else typeof(x) for x, n in zip(args, linear, strict=True)])
    avals = params["body_jaxpr"].out_avals
    dense = [zeros_of(a) if ct is ZERO else ct for ct, a, c in zip(cts, avals, rule.carry, strict=True) if c]
    fixed = [x for x, n in zip(args, linear, strict=True) if not n]
    return spread(linear, while_transpose_p.bind(*fixed, *dense, backward=rule), None)


# The derivative of the transposed loop with respect to its residuals ------------------------------------------------


class ByResiduals(Backward):
    """The derivative of a transposed loop with respect to some of its residuals.

    Attributes:
      rule: the transposed loop.
      which: for each residual, whether it has a tangent.
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

    def derivative(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        split, ts = self.rule.count, spread(self.which, tangents, ZERO)
        outs, found = jvp_flat(
            self.function,
            lambda *xs: self.rule.derivative(xs[:split], xs[split:]),
            residuals,
            [*ts, *[ZERO] * (len(residuals) - split)],
        )
        return [instantiate(t, x) for x, t in zip(outs, found, strict=True)]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        # <w, transposed(r) ct> is <loop(r) w, ct>, whose derivative with respect to r the loop itself has.
        rule = self.rule
        fixed, loop_cts = split_list(residuals, rule.count)
        dense = [zeros_of(a) if ct is ZERO else ct for ct, a in zip(cts, self.out_avals, strict=True)]

        def run(*active: Any) -> list[Any]:
            given = iter(active)
            return rule.pull([next(given) if w else x for x, w in zip(fixed, self.which, strict=True)], dense)

        _, program = linearize_flat(self.function, run, select(fixed, self.which))
        return program.transpose(loop_cts, add_any)


by_residuals_p = _operation("while_transpose_derivative")


@by_residuals_p.jvp
def _by_residuals_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, backward: ByResiduals) -> Any:
    return jvp_flat(backward.function, partial(_by_residuals, backward), primals, tangents)


@by_residuals_p.batch
def _by_residuals_batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, backward: ByResiduals) -> Any:
    return batch_flat(backward.function, partial(_by_residuals, backward), axis, args, dims)


def _by_residuals(backward: ByResiduals, *operands: Any) -> list[Any]:
    return backward.derivative(*split_list(operands, backward.count))


@while_transpose_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, backward: TransposedLoop) -> Any:
    count = backward.count
    outs = while_transpose_p.bind(*primals, backward=backward)
    parts = []
    which = tuple(t is not ZERO for t in tangents[:count])
    if any(which):
        rule = ByResiduals(backward, which, len(primals))
        parts.append(by_residuals_p.bind(*primals, *select(tangents[:count], which), backward=rule))
    if any(t is not ZERO for t in tangents[count:]):
        given = [instantiate(t, x) for x, t in zip(primals[count:], tangents[count:], strict=True)]
        parts.append(while_transpose_p.bind(*primals[:count], *given, backward=backward))
    return outs, parts[0] if len(parts) == 1 else list(map(add_any, *parts))


@while_transpose_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, backward: TransposedLoop) -> Any:
    """The transpose of the mapped loop: one pass for all examples, whose schedule is that of the longest."""
    count = backward.count
    trace = LinearTrace(state.trace, backward.function)
    inputs = [trace.input(a.update(shape=(axis.size, *a.shape))) for a in backward.out_avals]
    linear_dims: list[int | None] = [0] * len(inputs)
    outer, state.trace = state.trace, trace
    try:
        assert while_p.batch_rule is not None
        outs, _ = while_p.batch_rule(
            axis,
            backward.merged(args[:count], inputs),
            backward.merged(dims[:count], linear_dims),
            **backward.params,
        )
    finally:
        state.trace = outer
        trace.live = False
    cts = [front(x, d, axis) for x, d in zip(args[count:], dims[count:], strict=True)]
    ends = [x.var if type(x) is LinearTracer and x._trace is trace else ZERO for x in select(outs, backward.carry)]
    program = LinearProgram(trace.nodes, [x.var for x in inputs], ends, trace.count)
    found = program.transpose(cts, add_any)
    return [zeros_of(x.var.aval) if ct is ZERO else ct for x, ct in zip(inputs, found, strict=True)], linear_dims
