"""The primitive ``preaccumulate``: a program whose derivative is a linear map, given by its local Jacobian.

Its jvp rule computes the results and the Jacobian, which needs the primal values alone, by one more operation of the
same kind, and multiplies the tangents by the Jacobian. So reverse mode keeps that, and no value within the program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback.core.array import SCALARS, as_array, is_on_default_device
from pullback.core.config import config
from pullback.core.errors import PreaccumulationError
from pullback.core.inlining import inlined, runs_once
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, eval_jaxpr
from pullback.core.lists import scatter_where, select
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis
from pullback.primitives.arrays.shapes import squeeze
from pullback.primitives.arrays.slicing import slice_in_dim
from pullback.transforms.functions.arguments import as_weak
from pullback.transforms.preaccumulation.local_jacobians import MOST_ENTRIES, MOST_ENTRIES_AGAIN, local_jacobian
from pullback.transforms.preaccumulation.on_host import host_program
from pullback.transforms.preaccumulation.ordering import last_uses
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import INTERPRETED, op_count
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.jaxprs import batch_jaxpr, jvp_jaxpr
from pullback.transforms.traces.stage import stage_flat

Dims = Sequence[int | None]


@dataclass(frozen=True, repr=False)
class Region:
    """A part of a program, and how it is mapped: its Jacobian is that of one example, mapped in the same way.

    Attributes:
      program: of one example.
      name: of the function that it was.
      order: of elimination.
      is_jacobian: whether it is a program of results and a Jacobian, whose derivative may be large; then it is
        differentiated as any program.
      axes: that of each ``vmap``, from the innermost, and where it is in each operand.
    """

    program: ClosedJaxpr
    name: str
    order: str
    is_jacobian: bool = False
    axes: tuple[tuple[MappedAxis, tuple[int | None, ...]], ...] = ()

    def __repr__(self) -> str:  # in a printed program, which shows the mapped program beside it
        return ", ".join([self.order, *(f"mapped over {axis.size}" for axis, _ in self.axes)])

    @property
    def mapped(self) -> ClosedJaxpr:
        """The program for the whole batch."""
        program = self.program
        for axis, dims in self.axes:
            program, _ = batch_jaxpr(program, axis, dims)
        return program

    def derivative(self, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
        """From operands, and tangents of some, to results, and tangents of some; and for which results."""
        program = self.program
        if any(axis.size == 0 for axis, _ in self.axes):  # there is no example whose results would be those of all
            return jvp_jaxpr(self.mapped, nonzero)
        try:
            most = MOST_ENTRIES_AGAIN if self.is_jacobian else MOST_ENTRIES
            derivative, has_tangent = _derivative(program, nonzero, self.name, self.order, most)
        except PreaccumulationError:
            if not self.is_jacobian:
                raise
            derivative, has_tangent = jvp_jaxpr(program, nonzero)
        for axis, dims in self.axes:
            program, out_dims = batch_jaxpr(program, axis, dims)
            flags = [d is not None for d in out_dims]
            flags += select(flags, has_tangent)
            derivative, found = batch_jaxpr(derivative, axis, (*dims, *select(dims, nonzero)), flags)
            derivative = _without_axis(derivative, [d is not None and not f for d, f in zip(found, flags)])
        return derivative, has_tangent


def _without_axis(closed: ClosedJaxpr, which: Sequence[bool]) -> ClosedJaxpr:
    """A mapped program without the mapped axis of results that are the same for all examples.

    They have it since what the Jacobian has for several results is eliminated together.
    """
    if True not in which:
        return closed

    def run(*operands: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        return [squeeze(slice_in_dim(x, 0, 1, 0), (0,)) if w else x for x, w in zip(outs, which, strict=True)]

    return stage_flat(closed, run, closed.in_avals)


preaccumulate_p = Primitive("preaccumulate", multiple_results=True, keeps_weak_type=False)

preaccumulate_p.abstract_eval(lambda *avals, jaxpr, part: jaxpr.out_avals)
preaccumulate_p.decomposition(lambda *args, jaxpr, part: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args))
runs_once(preaccumulate_p)(lambda jaxpr, part: jaxpr)


def bind(part: Region, operands: Sequence[Any]) -> list[Any]:
    """The results of a part."""
    return preaccumulate_p.bind(*operands, jaxpr=part.mapped, part=part)  # type: ignore[no-any-return]


# Evaluation ----------------------------------------------------------------------------------------------------------


@preaccumulate_p.impl
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results: of a few operations, and of operations on large arrays, one by one; else as a compiled program."""
    closed = params["jaxpr"]
    plain = config.disable_jit or config.debug_nans or config.debug_infs
    at_home = all(map(is_on_default_device, args))
    if not plain and (op_count(closed) > INTERPRETED or not at_home):
        if at_home and (program := host_program(closed)) is not None:
            # Too little memory, which the general way explains; or a call within a host rule, which enters no context.
            with contextlib.suppress(MemoryError, RuntimeError):
                return state.silently(program.run, args)  # type: ignore[no-any-return]
        from pullback.backends.compiler.one_operation import evaluate

        return evaluate(preaccumulate_p, args, params)  # type: ignore[no-any-return]
    outer, state.trace = state.trace, state.bottom
    try:
        outs = [as_array(x) if type(x) in SCALARS else x for x in run_freeing(closed, args)]
    finally:
        state.trace = outer
    return [x if x.weak_type == a.weak_type else as_weak(x, a.weak_type) for x, a in zip(outs, closed.out_avals)]


def run_freeing(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program under the current trace; it lets go of each value when no later equation reads it."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    outer = state.source_loc
    try:
        for eqn, dead in zip(jaxpr.eqns, _last_uses(closed), strict=True):
            state.source_loc = eqn.made_at or outer
            operands = [env[a] if type(a) is Var else a.val for a in eqn.invars]  # type: ignore[union-attr]
            out = eqn.primitive.bind(*operands, **eqn.params)
            env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
            for v in dead:
                del env[v]
    finally:
        state.source_loc = outer
    return [env[a] if type(a) is Var else a.val for a in jaxpr.outvars]  # type: ignore[union-attr]


@cached_by_jaxpr
def _last_uses(closed: ClosedJaxpr) -> list[list[Any]]:
    return last_uses(closed.jaxpr.eqns, closed.jaxpr.outvars)


inlined(preaccumulate_p)(lambda *, jaxpr, part: jaxpr)
preaccumulate_p.lowering(lambda hlo, *operands, jaxpr, part: write_program(hlo, jaxpr, operands))


# Transformations -----------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _derivative(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], name: str, order: str, most: int
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of a program's values and tangents, by way of its local Jacobian."""
    local = local_jacobian(closed, nonzero, order, name, most)
    part = Region(local.program, name, order, is_jacobian=True)
    count, out_avals = len(closed.in_avals), closed.out_avals
    dependent = {entry.result for entry in local.entries}

    def run(*values: Any) -> list[Any]:
        outs = bind(part, values[:count])
        tangents = scatter_where(nonzero, values[count:], ZERO)
        ts = local.apply(outs[len(out_avals) :], tangents, out_avals)
        return [*outs[: len(out_avals)], *[t for t in ts if t is not ZERO]]

    avals = [*closed.in_avals, *select(closed.in_avals, nonzero)]
    return stage_flat(closed, run, avals), [i in dependent for i in range(len(out_avals))]


@preaccumulate_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, part: Region) -> Any:
    nonzero = tuple([t is not ZERO for t in tangents])
    both, has_tangent = part.derivative(nonzero)
    outs = eval_jaxpr(both.jaxpr, both.consts, *primals, *select(tangents, nonzero))
    count = len(has_tangent)
    return outs[:count], scatter_where(has_tangent, outs[count:], ZERO)


@preaccumulate_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, jaxpr: ClosedJaxpr, part: Region) -> Any:
    _, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return bind(replace(part, axes=(*part.axes, (axis, tuple(dims)))), args), out_dims


@preaccumulate_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    part: Region = eqn.params["part"]
    smaller, used_inputs = dce_closed_jaxpr(part.program, tuple(used))
    axes = tuple([(axis, tuple(select(dims, used_inputs))) for axis, dims in part.axes])
    part = replace(part, program=smaller, axes=axes)
    outvars = select(eqn.outvars, used)
    if [a.shape for a in part.mapped.out_avals] != [v.aval.shape for v in outvars]:
        return eqn  # a result was mapped for the sake of another
    return eqn.like(select(eqn.invars, used_inputs), outvars, jaxpr=part.mapped, part=part)
