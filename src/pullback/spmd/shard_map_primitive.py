"""The primitive of ``shard_map``: a program that each device of a mesh runs on its own shards of the operands.

``in_specs`` and ``out_specs`` say, for each operand and result, along which axes of the mesh each of its axes is
divided. The types in the program are those of shards. To transform the operation is to transform the program, with the
axes of the mesh in scope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec, names_in
from pullback.core.axes import new_axis
from pullback.core.check_rules import checked_program
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, eval_jaxpr
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.collectives import psum, vary
from pullback.primitives.elementwise import mul
from pullback.transforms.checks.report import first_along_axes
from pullback.transforms.checks.trace import CheckTrace, width
from pullback.transforms.programs.program_primitive import if_needed, transposed
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import batch_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Fed, Feed, holds_programs
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat

Specs = tuple[PartitionSpec, ...]

shard_map_p = Primitive("shard_map", multiple_results=True, keeps_weak_type=False)


@contextmanager
def axes_of(mesh: Mesh, manual: frozenset[Any], check_vma: bool, mapped_by: str) -> Iterator[None]:
    """Put the axes ``manual`` of a mesh in scope as named axes, mapped by ``mapped_by``, within a ``with`` block."""
    outer = state.axes
    own = {
        name: new_axis(name, size, mapped_by, checked=check_vma)
        for name, size in mesh.shape.items() if name in manual
    }  # fmt: skip
    state.axes = {**outer, **own}
    try:
        yield
    finally:
        state.axes = outer


def names_of(spec: PartitionSpec) -> frozenset[Any]:
    """The mesh axes that a specification mentions."""
    return frozenset([name for entry in spec.partitions for name in names_in(entry)])


def _scaled(shape: Shape, mesh: Mesh, spec: PartitionSpec, scale: Callable[[int, int], int]) -> Shape:
    entries = (*spec.partitions, *(None,) * (len(shape) - len(spec)))
    counts = [math.prod(mesh.shape[name] for name in names_in(entry)) for entry in entries]
    return tuple([scale(n, count) for n, count in zip(shape, counts, strict=True)])


def shard_shape(shape: Shape, mesh: Mesh, spec: PartitionSpec) -> Shape:
    """The shape of one device's shard of a global array of shape ``shape``."""
    return _scaled(shape, mesh, spec, lambda n, count: n // count)


def shard_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec) -> ShapedArray:
    """The type of one device's shard of a global array of type ``aval``."""
    return aval.update(shape=shard_shape(aval.shape, mesh, spec), varying=aval.varying | names_of(spec))


def _global_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: frozenset[Any]) -> ShapedArray:
    """Return the type of the global array that ``spec`` divides over ``mesh`` into shards of the type ``aval``.

    Unlike the shards, the global array does not vary along the axes ``manual``.
    """
    shape = _scaled(aval.shape, mesh, spec, lambda n, count: n * count)
    return aval.update(shape=shape, varying=aval.varying - manual)


@shard_map_p.abstract_eval
def _abstract_eval(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: Mesh, out_specs: Specs, manual: frozenset[Any], **params: Any
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [_global_aval(a, mesh, spec, manual) for a, spec in zip(outs, out_specs, strict=True)]


def _scope(params: dict[str, Any]) -> Any:
    """Return a context manager for the transformation of a ``shard_map`` equation's program.

    Within its block, the mesh axes named in ``params``, the equation's parameters, are in scope.
    """
    return axes_of(params["mesh"], params["manual"], params["check_vma"], params["mapped_by"])


@shard_map_p.axes
def _axes(params: dict[str, Any]) -> frozenset[Any]:
    axes: frozenset[Any] = params["jaxpr"].jaxpr.axes - params["manual"]
    return axes


# Differentiation -----------------------------------------------------------------------------------------------------


def _feed(*, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any) -> Feed:
    def bind(fed: Fed) -> Any:
        specs = {
            "in_specs": (*in_specs, *[in_specs[i] for i in fed.owners(fed.marks)]),
            "out_specs": (*out_specs, *[out_specs[i] for i in fed.owners(fed.results)]),
        }
        return shard_map_p.bind(*fed.groups[0], jaxpr=fed.programs[0], **specs, **params)

    return Feed((jaxpr,), bind, scope=lambda: _scope(params), keeps_shapes=True)


holds_programs(shard_map_p, _feed)


@shard_map_p.transpose
def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> list[Any]:
    linear, nonzero = tuple(map(is_linear, args)), tuple([ct is not ZERO for ct in cts])
    with _scope(params):
        back = transposed(jaxpr, linear, nonzero)
        if not params["check_vma"]:
            back = _summed(back, linear, nonzero, in_specs, out_specs, params["mesh"], params["manual"])
    fixed, moving = partition_list(in_specs, linear)
    operands = [x for x, n in zip(args, linear, strict=True) if not n] + select(cts, nonzero)
    results = shard_map_p.bind(
        *operands, jaxpr=back, in_specs=(*fixed, *select(out_specs, nonzero)), out_specs=tuple(moving), **params
    )
    return scatter_where(linear, results, None)


@cached_by_jaxpr
def _summed(
    back: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool], in_specs: Specs, out_specs: Specs, mesh: Mesh,
    manual: frozenset[Any],
) -> ClosedJaxpr:  # fmt: skip
    """Complete a transposed program for ``check_vma=False``, where types do not record along which axes values vary.

    If n devices share a result, divide its cotangent by n. If devices share an operand, sum its cotangent over them.

    Args:
      back: the transposed program. It takes the nonlinear operands and then the cotangents of the results, and returns
        the cotangents of the linear operands.
      linear: for each operand, whether it is linear.
      nonzero: for each result, whether its cotangent is not a symbolic zero.
      in_specs, out_specs: the partition specifications of operands and results.
      mesh: the devices.
      manual: the axes of the mesh over which the program runs on shards.
    """
    count = len(linear) - sum(linear)
    shares = [
        math.prod(size for name, size in mesh.shape.items() if name in manual - names_of(spec))
        for spec in select(out_specs, nonzero)
    ]
    alike = [tuple(sorted(manual - names_of(spec), key=mesh.axis_names.index)) for spec in select(in_specs, linear)]

    def run(*values: Any) -> list[Any]:
        cts = [ct if n == 1 else mul(ct, 1 / n) for ct, n in zip(values[count:], shares, strict=True)]
        outs = eval_jaxpr(back.jaxpr, back.consts, *values[:count], *cts)
        return [psum(x, names) for x, names in zip(outs, alike, strict=True)]

    return stage_flat(back, run, back.in_avals)


@shard_map_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    params = dict(eqn.params)
    jaxpr, in_specs, out_specs = (params.pop(name) for name in ("jaxpr", "in_specs", "out_specs"))
    mesh, manual = params["mesh"], params["manual"]
    with _scope(params):
        split = partial_eval_jaxpr(jaxpr, tuple(unknown))
        known, rest = _with_stacked_residuals(split.known, split.unknown, len(split.residual_avals), unknown, split)
    known_inputs, unknown_inputs = partition_list(eqn.invars, unknown)
    known_specs, unknown_specs = partition_list(in_specs, unknown)
    known_outs, unknown_outs = partition_list(eqn.outvars, split.unknown_outputs)
    known_out_specs, unknown_out_specs = partition_list(out_specs, split.unknown_outputs)
    # The residuals of the devices are stacked along a new first axis.
    order = [name for name in mesh.axis_names if name in manual]
    residual_specs = [
        PartitionSpec(tuple([name for name in order if name in a.varying]) if params["check_vma"] else tuple(order))
        for a in known.out_avals[len(known_outs) :]
    ]
    residuals = [
        Var(_global_aval(a, mesh, spec, manual))
        for a, spec in zip(known.out_avals[len(known_outs) :], residual_specs, strict=True)
    ]
    first = Eqn(
        eqn.primitive, known_inputs,
        {
            **eqn.params, "jaxpr": known, "in_specs": tuple(known_specs),
            "out_specs": (*known_out_specs, *residual_specs),
        },
        [*known_outs, *residuals], eqn.made_at, eqn.scope,
    )  # fmt: skip
    second = Eqn(
        eqn.primitive, [*residuals, *unknown_inputs],
        {
            **eqn.params, "jaxpr": rest, "in_specs": (*residual_specs, *unknown_specs),
            "out_specs": tuple(unknown_out_specs),
        },
        unknown_outs, eqn.made_at, eqn.scope,
    )  # fmt: skip
    return if_needed(first), if_needed(second), split.unknown_outputs


def _with_stacked_residuals(
    known: ClosedJaxpr, rest: ClosedJaxpr, count: int, unknown: Sequence[bool], split: Any
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Add a first axis of size 1 to the residuals that two programs exchange.

    ``shard_map`` concatenates the residuals of the devices along this axis.

    Args:
      known: the program that computes the known results and the residuals.
      rest: the program that takes the residuals, followed by the unknown operands.
      count: the number of residuals.
      unknown: for each operand whether it is unknown.
      split: the partial evaluation that returned both programs.

    Returns:
      Both programs, with the new axis.
    """
    results = len(split.unknown_outputs) - sum(split.unknown_outputs)

    def first(*values: Any) -> list[Any]:
        outs = eval_jaxpr(known.jaxpr, known.consts, *values)
        residuals = split.residuals(values, outs)
        return [*outs[:results], *[shapes.expand_dims(x, (0,)) for x in residuals]]

    def second(*values: Any) -> list[Any]:
        residuals = [shapes.squeeze(x, (0,)) for x in values[:count]]
        return eval_jaxpr(rest.jaxpr, rest.consts, *residuals, *values[count:])

    stacked = [a.update(shape=(1, *a.shape)) for a in split.residual_avals]
    return stage_flat(known, first, known.in_avals), stage_flat(rest, second, [*stacked, *rest.in_avals[count:]])


shard_map_p.record(partial(record_split, shard_map_p))


@shard_map_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    params = eqn.params
    smaller, used_inputs = dce_closed_jaxpr(params["jaxpr"], tuple(used))
    changes = {
        "jaxpr": smaller, "in_specs": tuple(select(params["in_specs"], used_inputs)),
        "out_specs": tuple(select(params["out_specs"], used)),
    }  # fmt: skip
    return eqn.like(select(eqn.invars, used_inputs), select(eqn.outvars, used), **changes)


# Batching ------------------------------------------------------------------------------------------------------------


@shard_map_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, in_specs: Specs,
    out_specs: Specs, **params: Any,
) -> Any:  # fmt: skip
    with _scope(params):
        mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    outs = shard_map_p.bind(
        *args, jaxpr=mapped, in_specs=tuple(map(_with_axis, in_specs, dims)),
        out_specs=tuple(map(_with_axis, out_specs, out_dims)), **params,
    )  # fmt: skip
    return outs, out_dims


def _with_axis(spec: PartitionSpec, dim: int | None) -> PartitionSpec:
    """Insert an undivided axis at position ``dim`` into a specification: ``P("i", "j"), 1 -> P("i", None, "j")``.

    Return the specification unchanged if ``dim`` is None, or is beyond the entries of the specification.
    """
    if dim is None or dim >= len(spec):
        return spec
    return PartitionSpec(*spec.partitions[:dim], None, *spec.partitions[dim:])


# Checks --------------------------------------------------------------------------------------------------------------


@checked_program(shard_map_p)
def _checked(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate a ``shard_map`` equation under ``checkify``, and return its results.

    Each device runs its checks. Their failures are stacked along a new axis, and the first failure is reported.
    """
    mesh, manual = params["mesh"], params["manual"]
    with _scope(params):
        program = trace.checked(params["jaxpr"])
        count = width(program.layout)
        jaxpr = _with_stacked(program.jaxpr, count)
    spec = PartitionSpec(tuple([name for name in mesh.axis_names if name in manual]))
    out_specs = (*[spec] * count, *params["out_specs"])
    outs = shard_map_p.bind(*args, **{**params, "jaxpr": jaxpr, "out_specs": out_specs})
    if count:
        found = first_along_axes(outs[0], outs[1:count])
        assert found is not None
        outs[:count] = [found[0], *found[1]]
    return trace.without_failures(program.layout, outs)


@cached_by_jaxpr
def _with_stacked(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """Return a program whose first ``count`` results have a new first axis of size 1, and vary along all mesh axes."""
    if not count:
        return closed
    keys = frozenset([a.key for a in state.axes.values()])

    def run(*values: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *values)
        return [*[shapes.expand_dims(vary(x, keys), (0,)) for x in outs[:count]], *outs[count:]]

    return stage_flat(closed, run, closed.in_avals)


# Compilation ---------------------------------------------------------------------------------------------------------


@shard_map_p.lowering
def _lowering(
    hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, mesh: Mesh, in_specs: Specs, out_specs: Specs, manual: frozenset[Any],
    **params: Any,
) -> list[Any]:  # fmt: skip
    from pullback.backends.hlo.emit import own_function
    from pullback.backends.hlo.module import axis_names

    module = hlo.module
    outer = module.manual, module.manual_axes
    module.manual, module.manual_axes = mesh, manual
    try:
        with axes_of(mesh, manual, params["check_vma"], params["mapped_by"]):  # a user's rule may run in it
            function = own_function(module, jaxpr, "shard_map_body")
    finally:
        module.manual, module.manual_axes = outer
    captured = [hlo.captured(x) for x in function.captured]
    specs = [*in_specs, *[PartitionSpec()] * len(captured)]
    operands = (*operands, *captured)

    def shown(values: Sequence[tuple[Shape, Any]], specs: Sequence[PartitionSpec]) -> str:
        entries = [
            module.sharding(NamedSharding(mesh, s), len(shape)) for (shape, _), s in zip(values, specs, strict=True)
        ]
        return f"[{', '.join(entries)}]"

    results = [(a.shape, a.dtype) for a in hlo.results]
    shards = [(shard_shape(v.shape, mesh, s), v.dtype) for v, s in zip(operands, specs, strict=True)]
    body = hlo.region(shards, lambda *xs: hlo.raw_call(function, xs), "sdy.return")
    names = [shown for name, shown in zip(mesh.axis_names, axis_names(mesh), strict=True) if name in manual]
    attributes = (
        f"in_shardings = #sdy.sharding_per_value<{shown([(v.shape, v.dtype) for v in operands], specs)}>, "
        f"out_shardings = #sdy.sharding_per_value<{shown(results, out_specs)}>, "
        f"manual_axes = #sdy<manual_axes{{{', '.join(names)}}}>"
    )
    outs: list[Any] = hlo.multi_result("sdy.manual_computation", operands, results, attributes, [body])
    return outs
