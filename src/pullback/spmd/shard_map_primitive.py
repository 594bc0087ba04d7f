"""The primitive of ``shard_map``: a program that each device of a mesh runs on its own part of the operands.

``in_specs`` and ``out_specs`` say, for each operand and result, along which axes of the mesh each of its axes is
divided. The program within sees parts. Its transformations are those of the program, while the axes of the mesh are
in scope.
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
    """The manual axes of a mesh in scope, as a program has them that runs on each device."""
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
    """The axes of the mesh that a specification mentions."""
    return frozenset([name for entry in spec.partitions for name in names_in(entry)])


def _scaled(shape: Shape, mesh: Mesh, spec: PartitionSpec, scale: Callable[[int, int], int]) -> Shape:
    entries = (*spec.partitions, *(None,) * (len(shape) - len(spec)))
    counts = [math.prod(mesh.shape[name] for name in names_in(entry)) for entry in entries]
    return tuple([scale(n, count) for n, count in zip(shape, counts, strict=True)])


def part_shape(shape: Shape, mesh: Mesh, spec: PartitionSpec) -> Shape:
    """The shape of one device's part of an array."""
    return _scaled(shape, mesh, spec, lambda n, count: n // count)


def part_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec) -> ShapedArray:
    """The type of one device's part of an array."""
    return aval.update(shape=part_shape(aval.shape, mesh, spec), varying=aval.varying | names_of(spec))


def _whole_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: frozenset[Any]) -> ShapedArray:
    """The type of an array of which a device has a part of this type."""
    shape = _scaled(aval.shape, mesh, spec, lambda n, count: n * count)
    return aval.update(shape=shape, varying=aval.varying - manual)


@shard_map_p.abstract_eval
def _abstract_eval(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: Mesh, out_specs: Specs, manual: frozenset[Any], **params: Any
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [_whole_aval(a, mesh, spec, manual) for a, spec in zip(outs, out_specs, strict=True)]


def _scope(params: dict[str, Any]) -> Any:
    """The axes in scope while the program is looked at."""
    return axes_of(params["mesh"], params["manual"], params["check_vma"], params["mapped_by"])


@shard_map_p.axes
def _axes(params: dict[str, Any]) -> frozenset[Any]:
    axes: frozenset[Any] = params["jaxpr"].jaxpr.axes - params["manual"]
    return axes


# Differentiation -----------------------------------------------------------------------------------------------------


def _feed(*, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any) -> Feed:
    def bind(fed: Fed) -> Any:
        specs = {
            "in_specs": (*in_specs, *[in_specs[i] for i in fed.beside(fed.marks)]),
            "out_specs": (*out_specs, *[out_specs[i] for i in fed.beside(fed.results)]),
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
    """The transpose of a program of whose values nobody knows along which axes they vary.

    A result that is the same on several devices is one of theirs: each has its share of the cotangent. An operand that
    several devices were given has the sum of their cotangents.
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
        parts = partial_eval_jaxpr(jaxpr, tuple(unknown))
        known, rest = _with_stacked_residuals(parts.known, parts.unknown, len(parts.residual_avals), unknown, parts)
    known_inputs, unknown_inputs = partition_list(eqn.invars, unknown)
    known_specs, unknown_specs = partition_list(in_specs, unknown)
    known_outs, unknown_outs = partition_list(eqn.outvars, parts.unknown_outputs)
    known_out_specs, unknown_out_specs = partition_list(out_specs, parts.unknown_outputs)
    # Each device has residuals of its own, stacked along a new first axis.
    order = [name for name in mesh.axis_names if name in manual]
    residual_specs = [
        PartitionSpec(tuple([name for name in order if name in a.varying]) if params["check_vma"] else tuple(order))
        for a in known.out_avals[len(known_outs) :]
    ]
    residuals = [
        Var(_whole_aval(a, mesh, spec, manual))
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
    return if_needed(first), if_needed(second), parts.unknown_outputs


def _with_stacked_residuals(
    known: ClosedJaxpr, rest: ClosedJaxpr, count: int, unknown: Sequence[bool], parts: Any
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Both parts of a program, of which the first returns all residuals, with a new first axis."""
    results = len(parts.unknown_outputs) - sum(parts.unknown_outputs)

    def first(*values: Any) -> list[Any]:
        outs = eval_jaxpr(known.jaxpr, known.consts, *values)
        residuals = parts.residuals(values, outs)
        return [*outs[:results], *[shapes.expand_dims(x, (0,)) for x in residuals]]

    def second(*values: Any) -> list[Any]:
        residuals = [shapes.squeeze(x, (0,)) for x in values[:count]]
        return eval_jaxpr(rest.jaxpr, rest.consts, *residuals, *values[count:])

    stacked = [a.update(shape=(1, *a.shape)) for a in parts.residual_avals]
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
    """A specification of arrays with one more axis, which is not divided."""
    if dim is None or dim >= len(spec):
        return spec
    return PartitionSpec(*spec.partitions[:dim], None, *spec.partitions[dim:])


# Checks --------------------------------------------------------------------------------------------------------------


@checked_program(shard_map_p)
def _checked(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Each device has failures of its own, so it returns them with a new first axis, along which the first is found."""
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
    return trace.taken(program.layout, outs)


@cached_by_jaxpr
def _with_stacked(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """A program whose first results have a new first axis, and vary along all axes of the mesh."""
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
        with axes_of(mesh, manual, params["check_vma"], params["mapped_by"]):  # a rule of the user's may still run
            function = own_function(module, jaxpr, "shard_map_body")
    finally:
        module.manual, module.manual_axes = outer
    captured = [hlo.captured(x) for x in function.captured]
    specs = [*in_specs, *[PartitionSpec()] * len(captured)]
    operands = (*operands, *captured)

    def shown(values: Sequence[tuple[Shape, Any]], given: Sequence[PartitionSpec]) -> str:
        entries = [
            module.sharding(NamedSharding(mesh, s), len(shape)) for (shape, _), s in zip(values, given, strict=True)
        ]
        return f"[{', '.join(entries)}]"

    results = [(a.shape, a.dtype) for a in hlo.results]
    parts = [(part_shape(v.shape, mesh, s), v.dtype) for v, s in zip(operands, specs, strict=True)]
    body = hlo.region(parts, lambda *xs: hlo.raw_call(function, xs), "sdy.return")
    names = [shown for name, shown in zip(mesh.axis_names, axis_names(mesh), strict=True) if name in manual]
    attributes = (
        f"in_shardings = #sdy.sharding_per_value<{shown([(v.shape, v.dtype) for v in operands], specs)}>, "
        f"out_shardings = #sdy.sharding_per_value<{shown(results, out_specs)}>, "
        f"manual_axes = #sdy<manual_axes{{{', '.join(names)}}}>"
    )
    outs: list[Any] = hlo.multi_result("sdy.manual_computation", operands, results, attributes, [body])
    return outs
