"""The primitive of ``shard_map``: a program that each device of a mesh runs on its own shards of the operands.

``in_specs`` and ``out_specs`` say, for each operand and result, along which axes of the mesh each of its axes is
divided. The types in the program are those of shards. To transform the operation is to transform the program, with the
axes of the mesh in scope.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from pullback.backends.devices.meshes import AbstractMesh, AxisType, Mesh, current_mesh, exchange_mesh, in_types
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec, names_in
from pullback.core.axes import new_axis
from pullback.core.check_rules import checked_program
from pullback.core.errors import ShardMapError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, eval_jaxpr, jaxpr_as_fun
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.collectives import psum
from pullback.primitives.elementwise import mul
from pullback.primitives.explicit_shardings import entry_of_batch
from pullback.primitives.varying import vary
from pullback.transforms.checks.report import first_along_axes
from pullback.transforms.checks.trace import CheckTrace, width
from pullback.transforms.programs.program_primitive import if_needed, transposed
from pullback.transforms.traces.backward_logs import Logs, logs_within, with_logs_as_results
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import batch_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Fed, Feed, holds_programs
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat

Specs = tuple[PartitionSpec, ...]
AnyMesh: TypeAlias = Mesh | AbstractMesh

shard_map_p = Primitive("shard_map", multiple_results=True, keeps_weak_type=False)


@contextmanager
def axes_of(mesh: AnyMesh, manual: frozenset[Any], check_vma: bool, mapped_by: str) -> Iterator[None]:
    """Put the axes ``manual`` of a mesh in scope as named axes, mapped by ``mapped_by``, within a ``with`` block.

    Within ``shard_map`` the mesh of the thread is this one, in which these axes have the type ``Manual``. The types of
    shards do not say along which outer axes of the same names values vary, see :func:`hidden`.
    """
    outer = state.axes
    own = {
        name: new_axis(name, size, mapped_by, checked=check_vma)._replace(level=0)
        for name, size in mesh.shape.items() if name in manual
    }  # fmt: skip
    within = mapped_by == "shard_map"
    before = exchange_mesh(manual_mesh(mesh, manual)) if within else None
    state.axes = {**outer, **own}
    try:
        yield
    finally:
        state.axes = outer
        if within:
            exchange_mesh(before)


def manual_mesh(mesh: AnyMesh, manual: frozenset[Any]) -> AnyMesh:
    """Return a mesh in which the axes ``manual``, and those of an enclosing ``shard_map``, have the type ``Manual``."""
    names = manual | enclosing_axes(mesh)
    return mesh.update_axis_types({name: AxisType.Manual for name in mesh.axis_names if name in names})


def enclosing_axes(mesh: AnyMesh) -> frozenset[Any]:
    """The axes of a mesh over which an enclosing ``shard_map`` runs; none if it runs over another mesh."""
    found = current_mesh()
    same = found is not None and found.shape_tuple == mesh.shape_tuple
    return frozenset(found.manual_axes) if same else frozenset()


def names_of(spec: PartitionSpec) -> frozenset[Any]:
    """The mesh axes that a specification mentions."""
    return frozenset([name for entry in spec.partitions for name in names_in(entry)])


def sums_of(spec: PartitionSpec) -> frozenset[Any]:
    """The mesh axes over which a specification is unreduced or reduced."""
    return spec.unreduced | spec.reduced


def of_cotangents(spec: PartitionSpec) -> PartitionSpec:
    """Return the specification of the cotangents of an array: unreduced and reduced axes change roles."""
    return spec.update(unreduced=spec.reduced, reduced=spec.unreduced) if sums_of(spec) else spec


def _scaled(shape: Shape, mesh: AnyMesh, spec: PartitionSpec, scale: Callable[[int, int], int]) -> Shape:
    entries = (*spec.partitions, *(None,) * (len(shape) - len(spec)))
    counts = [math.prod(mesh.shape[name] for name in names_in(entry)) for entry in entries]
    return tuple([scale(n, count) for n, count in zip(shape, counts, strict=True)])


def shard_shape(shape: Shape, mesh: AnyMesh, spec: PartitionSpec) -> Shape:
    """The shape of one device's shard of a global array of shape ``shape``."""
    return _scaled(shape, mesh, spec, lambda n, count: n // count)


def shard_aval(
    aval: ShapedArray, mesh: AnyMesh, spec: PartitionSpec, manual: frozenset[Any], check_vma: bool = True
) -> ShapedArray:
    """The type of one device's shard, along the axes ``manual``, of a global array of type ``aval``.

    It is sharded over the other axes of the mesh as the array is. If ``check_vma``, it is unreduced and reduced over
    the axes ``manual`` as the array is.
    """
    sharding = None
    if aval.explicit is not None:
        sharding = aval.explicit if check_vma else aval.explicit.without_reductions()
        sharding = sharding.update(mesh=manual_mesh(mesh, manual).abstract_mesh)
    varying = (aval.varying - manual) | names_of(spec)
    return aval.update(shape=shard_shape(aval.shape, mesh, spec), varying=varying, sharding=sharding)


def _global_aval(
    aval: ShapedArray, mesh: AnyMesh, spec: PartitionSpec, manual: frozenset[Any], outer: frozenset[Any]
) -> ShapedArray:
    """Return the type of the global array that ``spec`` divides over ``mesh`` into shards of the type ``aval``.

    Unlike the shards, the global array does not vary along the axes ``manual``, but along those of the axes ``outer``.
    """
    shape = _scaled(aval.shape, mesh, spec, lambda n, count: n * count)
    sharding = None
    if mesh.explicit_axes:
        own = () if aval.explicit is None else aval.explicit.spec.partitions
        pairs = itertools.zip_longest(spec.partitions, own)
        entries = [(*names_in(manual_entry), *names_in(entry)) for manual_entry, entry in pairs]
        typed = in_types(mesh) if isinstance(mesh, Mesh) else mesh.abstract_mesh
        sharding = NamedSharding(typed, spec.update(entries))
    return aval.update(shape=shape, varying=(aval.varying - manual) | outer, sharding=sharding)


def hidden(avals: Sequence[ShapedArray], manual: frozenset[Any]) -> frozenset[Any]:
    """The outer axes, hidden by ``manual`` of the same names, along which operands of the types ``avals`` vary."""
    return manual.intersection(frozenset().union(*[a.varying for a in avals]))


@shard_map_p.abstract_eval
def _abstract_eval(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: AnyMesh, out_specs: Specs, manual: frozenset[Any], **params: Any
) -> list[ShapedArray]:
    outs, outer = jaxpr.out_avals, hidden(avals, manual)
    return [_global_aval(a, mesh, spec, manual, outer) for a, spec in zip(outs, out_specs, strict=True)]


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
    cts_specs = map(of_cotangents, select(out_specs, nonzero))
    results = shard_map_p.bind(
        *operands, jaxpr=back, in_specs=(*fixed, *cts_specs), out_specs=tuple(map(of_cotangents, moving)), **params
    )
    return scatter_where(linear, results, None)


@logs_within(shard_map_p)
def _logs_within(eqn: Eqn) -> tuple[Eqn, list[Any], Logs]:
    """Let each device return what it logs: logs of the devices are joined along their first axis."""
    jaxpr, mesh, manual = (eqn.params[name] for name in ("jaxpr", "mesh", "manual"))
    inner, logs = with_logs_as_results(jaxpr)
    count = len(eqn.outvars)
    names = tuple([name for name in mesh.axis_names if name in manual])

    def run(*operands: Any) -> list[Any]:
        outs = jaxpr_as_fun(inner)(*operands)
        everywhere = frozenset(state.axes[name].key for name in names) if eqn.params["check_vma"] else frozenset()
        rows = [x if x.shape else shapes.reshape(x, (1,)) for x in outs[count:]]
        return [*outs[:count], *[vary(x, everywhere) for x in rows]]

    with _scope(eqn.params):
        logging = stage_flat(jaxpr, run, jaxpr.in_avals)
    devices = math.prod(mesh.shape[name] for name in names)
    avals = logging.out_avals[count:]
    results = [Var(ShapedArray((devices * a.shape[0], *a.shape[1:]), a.dtype)) for a in avals]
    specs = (*eqn.params["out_specs"], *[PartitionSpec(names)] * len(results))
    return eqn.like(eqn.invars, [*eqn.outvars, *results], jaxpr=logging, out_specs=specs), results, logs


@cached_by_jaxpr
def _summed(
    back: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool], in_specs: Specs, out_specs: Specs,
    mesh: AnyMesh, manual: frozenset[Any],
) -> ClosedJaxpr:  # fmt: skip
    """Complete a transposed program for ``check_vma=False``, where types do not record along which axes values vary.

    If n devices share a result, divide its cotangent by n. If devices share an operand, sum its cotangent over them.
    The cotangent of a reduced result or operand is a sum already, whose terms the devices have; and that of an
    unreduced one is the same on all devices: that of an operand is the mean of theirs.

    Args:
      back: the transposed program. It takes the nonlinear operands and then the cotangents of the results, and returns
        the cotangents of the linear operands.
      linear: for each operand, whether it is linear.
      nonzero: for each result, whether its cotangent is not a symbolic zero.
      in_specs, out_specs: the partition specifications of operands and results.
      mesh: the devices.
      manual: the axes of the mesh over which the program runs on shards.
    """
    count, moving = len(linear) - sum(linear), select(in_specs, linear)
    shares = [_size(mesh, manual - names_of(spec) - sums_of(spec)) for spec in select(out_specs, nonzero)]
    alike = [tuple(sorted(manual - names_of(spec) - spec.reduced, key=mesh.axis_names.index)) for spec in moving]
    means = [_size(mesh, spec.unreduced) for spec in moving]

    def run(*values: Any) -> list[Any]:
        outs = eval_jaxpr(back.jaxpr, back.consts, *values[:count], *map(_divided, values[count:], shares))
        return [_divided(psum(x, names), n) for x, names, n in zip(outs, alike, means, strict=True)]

    return stage_flat(back, run, back.in_avals)


def _size(mesh: AnyMesh, names: frozenset[Any]) -> int:
    return math.prod(mesh.shape[name] for name in names)


def _divided(x: Any, n: int) -> Any:
    return x if n == 1 else mul(x, 1 / n)


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
        PartitionSpec(
            tuple([name for name in order if name in a.varying]) if params["check_vma"] else tuple(order),
            unreduced=a.mat.unreduced, reduced=a.mat.reduced,
        )
        for a in known.out_avals[len(known_outs) :]
    ]  # fmt: skip
    outer = hidden([a.aval for a in eqn.invars], manual)
    residuals = [
        Var(_global_aval(a, mesh, spec, manual, outer))
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

    stacked = [a.with_axis(0, 1) for a in split.residual_avals]
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
    if axis.name in params["manual"]:
        axis = axis._replace(name=None, level=0)  # within, the name means the axis of the mesh
    if axis.spmd_name is None:
        axis = axis._replace(spmd_name=entry_of_batch(args, dims))
    names = _names_of_batch(axis, jaxpr, (*in_specs, *out_specs), **params)
    with _scope(params):
        if names:
            mapped, out_dims = _batched_shards(jaxpr, axis, tuple(dims), params["mesh"], names)
        else:
            mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    outs = shard_map_p.bind(
        *args, jaxpr=mapped, in_specs=tuple([_with_axis(s, d, names) for s, d in zip(in_specs, dims, strict=True)]),
        out_specs=tuple([_with_axis(s, d, names) for s, d in zip(out_specs, out_dims, strict=True)]), **params,
    )  # fmt: skip
    return outs, out_dims


def _names_of_batch(
    axis: MappedAxis, jaxpr: ClosedJaxpr, specs: Specs, mesh: AnyMesh, manual: frozenset[Any], check_vma: bool,
    **params: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the mesh axes that divide the batch of a mapped axis: those of ``spmd_axis_name``, or of operands' types.

    They divide it only if the program runs on shards along them, and has no collective over the mapped axis. With
    ``check_vma=False`` residuals are stacked along all axes, and are not divided further.

    Raises:
      ShardMapError: a specification of the user's names such an axis too.
    """
    names = names_in(axis.spmd_name)
    if not names or not manual.issuperset(names) or axis.name in jaxpr.jaxpr.axes:
        return ()
    twice = [(name, spec) for spec in specs for name in names if name in names_of(spec) | sums_of(spec)]
    if twice and not check_vma:
        return ()
    if twice:
        raise ShardMapError(
            f"vmap of shard_map: spmd_axis_name, or the type of an operand, divides the mapped axis by "
            f"{twice[0][0]!r}, which the specification {twice[0][1]} names too"
        )
    return names if axis.size % math.prod(mesh.shape[name] for name in names) == 0 else ()


@cached_by_jaxpr
def _batched_shards(
    closed: ClosedJaxpr, axis: MappedAxis, in_dims: Sequence[int | None], mesh: AnyMesh, names: tuple[Any, ...]
) -> tuple[ClosedJaxpr, list[int | None]]:
    """Map a program of shards over those indices of an axis that a device has, where mesh axes divide it.

    Args:
      closed: the program.
      axis: the whole axis.
      in_dims: for each input the position of the mapped axis, or None.
      mesh, names: the mesh, and those of its axes that divide the mapped axis.

    Returns:
      The mapped program, and for each result the position of the mapped axis: 0, or None.
    """
    axis = axis._replace(size=axis.size // math.prod(mesh.shape[name] for name in names))
    keys = frozenset([state.axes[name].key for name in names])
    avals = [
        a if d is None else a.batched(axis, d).update(varying=a.varying | keys)
        for a, d in zip(closed.in_avals, in_dims, strict=True)
    ]
    out_dims: list[int | None] = []

    def run(*values: Any) -> list[Any]:
        outs, dims = batch_flat(closed, jaxpr_as_fun(closed), axis, values, in_dims)
        out_dims[:] = [None if d is None else 0 for d in dims]
        return [x if d is None else vary(shapes.moveaxis(x, d, 0), keys) for x, d in zip(outs, dims, strict=True)]

    return stage_flat(closed, run, avals), out_dims


def _with_axis(spec: PartitionSpec, dim: int | None, names: tuple[Any, ...]) -> PartitionSpec:
    """Insert an axis at position ``dim`` into a specification, which the mesh axes ``names`` divide.

    ``P("i", "j"), 1, () -> P("i", None, "j")``. Return the specification unchanged if ``dim`` is None, or if it is
    beyond the entries of the specification and not divided.
    """
    if dim is None or (dim >= len(spec) and not names):
        return spec
    entries = [*spec.partitions, *[None] * (dim - len(spec))]
    return spec.update((*entries[:dim], names or None, *entries[dim:]))


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
    hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, mesh: AnyMesh, in_specs: Specs, out_specs: Specs,
    manual: frozenset[Any], **params: Any,
) -> list[Any]:  # fmt: skip
    from pullback.backends.hlo.emit import own_function
    from pullback.backends.hlo.module import axis_names

    module = hlo.module
    outer = module.manual, module.manual_axes
    module.manual, module.manual_axes = mesh, manual | enclosing_axes(mesh)
    partial_mode = len(module.manual_axes) < len(mesh.axis_names)  # the compiler divides values along the other axes
    try:
        with axes_of(mesh, manual, params["check_vma"], params["mapped_by"]):  # a user's rule may run in it
            function = own_function(module, jaxpr, "shard_map_body")
    finally:
        module.manual, module.manual_axes = outer
    captured = [hlo.captured(x) for x in function.captured]
    if mesh.size == 1:  # the compiler leaves regions of one device in programs that call Python
        hlo.module.mesh(mesh)
        ours: list[Any] = hlo.raw_call(function, [*operands, *captured])
        return ours
    specs = [*in_specs, *[PartitionSpec()] * len(captured)]
    operands = (*operands, *captured)

    def shown(values: Sequence[tuple[Shape, Any]], specs: Sequence[PartitionSpec]) -> str:
        entries = [
            module.sharding(NamedSharding(mesh, s), len(shape), partial_mode)
            for (shape, _), s in zip(values, specs, strict=True)
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
