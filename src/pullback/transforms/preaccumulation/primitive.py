"""The primitive ``preaccumulate``: a program that is differentiated by its local Jacobian.

Its jvp rule computes the results and the Jacobian, which depend on primals only, by a further ``preaccumulate``, and
multiplies tangents by the Jacobian. So reverse mode stores the Jacobian, and no intermediate values of the program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback.core.array import SCALARS, Array, as_array, typeof
from pullback.core.config import config
from pullback.core.elsewhere import is_here
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
    """A region of a program that is differentiated by its local Jacobian.

    Under ``vmap`` the Jacobian is computed for one example, and the program that computes it is then mapped.

    Attributes:
      program: the program of one example.
      name: the name of the function, for error messages.
      order: the order of elimination.
      is_jacobian: whether the program computes the results and the Jacobian of another region. Such a program is
        differentiated as an ordinary program if its own Jacobian would be large.
      axes: the axis of each ``vmap``, from the innermost, with its position in each operand.
    """

    program: ClosedJaxpr
    name: str
    order: str
    is_jacobian: bool = False
    axes: tuple[tuple[MappedAxis, tuple[int | None, ...]], ...] = ()

    def __repr__(self) -> str:  # short: a printed equation shows the mapped program as well
        return ", ".join([self.order, *(f"mapped over {axis.size}" for axis, _ in self.axes)])

    @property
    def mapped(self) -> ClosedJaxpr:
        """The program of one example, mapped over the axes of all enclosing ``vmap``."""
        program = self.program
        for axis, dims in self.axes:
            program, _ = batch_jaxpr(program, axis, dims)
        return program

    def derivative(self, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
        """Differentiate the region in forward mode; ``nonzero`` says which operands have tangents.

        Returns:
          A program that takes the operands and their tangents, and returns the results and their tangents. And for each
          result, whether it has a tangent.
        """
        program = self.program
        if any(axis.size == 0 for axis, _ in self.axes):  # an unmapped result would be read from the first example
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
    """Remove the mapped axis from the results of a mapped program that ``which`` flags.

    The values of these results are equal for all examples. They have the axis because elimination computes the
    derivatives of all results together.
    """
    if True not in which:
        return closed

    def run(*operands: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        return [squeeze(slice_in_dim(x, 0, 1, 0), (0,)) if w else x for x, w in zip(outs, which, strict=True)]

    return stage_flat(closed, run, closed.in_avals)


preaccumulate_p = Primitive("preaccumulate", multiple_results=True, keeps_weak_type=False)

preaccumulate_p.abstract_eval(lambda *avals, jaxpr, region: jaxpr.out_avals)
preaccumulate_p.decomposition(lambda *args, jaxpr, region: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args))
runs_once(preaccumulate_p)(lambda jaxpr, region: jaxpr)


def bind(region: Region, operands: Sequence[Any]) -> list[Any]:
    """Apply the primitive ``preaccumulate`` to a region and operands; return its results."""
    return preaccumulate_p.bind(*operands, jaxpr=region.mapped, region=region)  # type: ignore[no-any-return]


# Evaluation ----------------------------------------------------------------------------------------------------------


@preaccumulate_p.impl
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate ``params["jaxpr"]``; return its results.

    A short program runs op by op, a program with large arrays by NumPy, and any other is compiled.
    """
    closed = params["jaxpr"]
    plain = config.disable_jit or config.debug_nans or config.debug_infs
    at_home = all(map(is_here, args))
    if not plain and (op_count(closed) > INTERPRETED or not at_home):
        if at_home and (program := host_program(closed)) is not None:
            # MemoryError: the compiled path explains it. RuntimeError: within a host rule NumPy's warnings stay on.
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
    """Evaluate a program under the current trace, freeing each value after its last use; return its results."""
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
    """Return the variables that are dead after each equation; the list is cached in the program."""
    return last_uses(closed.jaxpr.eqns, closed.jaxpr.outvars)


inlined(preaccumulate_p)(lambda *, jaxpr, region: jaxpr)
preaccumulate_p.lowering(lambda hlo, *operands, jaxpr, region: write_program(hlo, jaxpr, operands))


# Transformations -----------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _derivative(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], name: str, order: str, most: int
) -> tuple[ClosedJaxpr, list[bool]]:
    """Differentiate a program in forward mode, by multiplying its local Jacobian by the tangents.

    Args:
      closed: the program.
      nonzero: which inputs have tangents.
      name: the name of the function, for error messages.
      order: the order of elimination.
      most: the largest number of elements of a Jacobian that is not computed by elimination.

    Returns:
      A program that takes inputs and tangents, and returns results and tangents. And which results have tangents.
    """
    local = local_jacobian(closed, nonzero, order, name, most)
    region = Region(local.program, name, order, is_jacobian=True)
    count, out_avals = len(closed.in_avals), closed.out_avals
    dependent = {entry.result for entry in local.entries}

    def run(*values: Any) -> list[Any]:
        outs = bind(region, values[:count])
        tangents = scatter_where(nonzero, values[count:], ZERO)
        ts = local.apply(outs[len(out_avals) :], tangents, out_avals)
        return [*outs[: len(out_avals)], *[t for t in ts if t is not ZERO]]

    avals = [*closed.in_avals, *select(closed.in_avals, nonzero)]
    return stage_flat(closed, run, avals), [i in dependent for i in range(len(out_avals))]


@preaccumulate_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, region: Region) -> Any:
    nonzero = tuple([t is not ZERO for t in tangents])
    both, has_tangent = region.derivative(nonzero)
    outs = eval_jaxpr(both.jaxpr, both.consts, *primals, *select(tangents, nonzero))
    count = len(has_tangent)
    return outs[:count], scatter_where(has_tangent, outs[count:], ZERO)


@preaccumulate_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, jaxpr: ClosedJaxpr, region: Region) -> Any:
    _, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return bind(replace(region, axes=(*region.axes, (axis, tuple(dims)))), args), out_dims


@preaccumulate_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    region: Region = eqn.params["region"]
    smaller, used_inputs = dce_closed_jaxpr(region.program, tuple(used))
    axes = tuple([(axis, tuple(select(dims, used_inputs))) for axis, dims in region.axes])
    region = replace(region, program=smaller, axes=axes)
    outvars = select(eqn.outvars, used)
    if [a.shape for a in region.mapped.out_avals] != [v.aval.shape for v in outvars]:
        return eqn  # the smaller program does not map a result that the original maps
    return eqn.like(select(eqn.invars, used_inputs), outvars, jaxpr=region.mapped, region=region)


def stage_arrays(
    function: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], transformation: str
) -> tuple[ClosedJaxpr, Callable[[Sequence[Any]], list[Any]]]:
    """Trace ``run``, whose results may be any objects, to a jaxpr of those that are arrays.

    Args:
      function: the user's function, for error messages.
      run: takes a flat sequence of arrays and returns a flat sequence.
      primals: the point, as arrays.
      transformation: the transformation that traces, for error messages.

    Returns:
      The program, and a function that puts the other results between the arrays that the program returns.
    """
    others: dict[int, Any] = {}  # the results that are no arrays, by index

    def arrays_of(*args: Any) -> list[Any]:
        outs = run(*args)
        others.update((i, x) for i, x in enumerate(outs) if not isinstance(x, Array))
        return [x for x in outs if isinstance(x, Array)]

    def as_returned(arrays: Sequence[Any]) -> list[Any]:
        rest = iter(arrays)
        return [others[i] if i in others else next(rest) for i in range(len(arrays) + len(others))]

    return stage_flat(function, arrays_of, [typeof(x) for x in primals], transformation), as_returned
