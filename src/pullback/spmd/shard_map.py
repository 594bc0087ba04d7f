"""``shard_map``: a function of shards, which each device of a mesh runs on its own shards of the arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from pullback.backends.devices.meshes import AbstractMesh, Mesh, current_mesh, exchange_mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, UnreducedKind, names_in
from pullback.core import source, tree
from pullback.core.annotations import AxisName, Decorator, PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import CommittedArray, as_array, typeof
from pullback.core.config import config
from pullback.core.errors import OperandError, ShardMapError, UnsupportedArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from pullback.core.lists import scatter_where, split_list
from pullback.core.looking import computing
from pullback.core.refs import RefCell
from pullback.core.trace import Trace, Tracer, state
from pullback.core.types import ShapedArray
from pullback.primitives.varying import vary, vary_unreduced_cast_p
from pullback.spmd.devices_in_turn import emulate_spmd
from pullback.spmd.shard_map_primitive import (
    AnyMesh,
    axes_of,
    enclosing_axes,
    names_of,
    shard_aval,
    shard_map_p,
    sums_of,
)
from pullback.spmd.user_values import has_user_specs, shard_mapped
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import argument_name, name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.programs.transfer import device_put
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.refs import WithRefs, check_aliases, content_of, write_all
from pullback.transforms.traces.stage import StageTrace, stage_flat

P = ParamSpec("P")
R = TypeVar("R")


class _Inferred:
    """The type of ``INFERRED``, the specifications of arguments that follow from their types."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "INFERRED"

    def __reduce__(self) -> str:
        return "INFERRED"


INFERRED = _Inferred()


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: PyTree = INFERRED,
    out_specs: PyTree,
    axis_names: Iterable[AxisName] = (),
    check_vma: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: PyTree = INFERRED,
    out_specs: PyTree,
    axis_names: Iterable[AxisName] = (),
    check_vma: bool = True,
) -> Decorator: ...
# long: half of it is its documentation
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: PyTree = INFERRED,
    out_specs: PyTree,
    axis_names: Iterable[AxisName] = (),
    check_vma: bool = True,
) -> Any:
    """Map a function of shards to a function of global arrays: each device of a mesh runs it on its own shards.

    Within ``f``, the axes of the mesh are named axes: collectives such as ``lax.psum`` communicate between the devices.
    An eager call is compiled too. In it, Python may look at values that are the same on all devices, as in ``if``: what
    they depend on runs first. Under ``disable_jit`` the devices run in turn, in Python, for debuggers.

    Args:
      f: takes and returns trees of arrays, which are shards. Without it, a decorator is returned.
      mesh: the devices, and the names of their axes; by default the mesh of ``set_mesh``, or of an enclosing
        ``shard_map``. An ``AbstractMesh`` takes the devices of the arguments.
      in_specs: for each argument a ``PartitionSpec``, which says along which axes of the mesh each axis is divided, or
        a tree of them that is a prefix of the argument. Along an axis of the mesh that a specification does not
        mention, all devices have the same shard. With None instead of a specification, the argument reaches ``f`` as it
        is, and may be any object. Left out, the specifications are those of the arguments' types, where all axes of the
        mesh are of the type ``Explicit``.
      out_specs: the same for the result. Shards are concatenated along the axes that it mentions. Along an axis that it
        does not mention, the result must not vary.
      axis_names: the axes of the mesh over which ``f`` runs on shards; by default all that an enclosing ``shard_map``
        leaves. Along the others the compiler divides the work, as outside of ``shard_map``.
      check_vma: whether to check that results do not vary along axes that ``out_specs`` does not mention. With it,
        gradients within ``f`` of values that do not vary along an axis are summed over it.

    Returns:
      A function of the same arguments, as global arrays, that returns global arrays.

    Raises:
      ShardMapError: specifications do not fit, the mesh does not divide a size, or a result varies where ``out_specs``
        says that it does not (a ValueError and TypeError).

    Source: the types along which a value varies are those of named axes; see ``docs/named_axes.md``.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, make_mesh, shard_map
    >>> from pullback.sharding import PartitionSpec as P
    >>> mesh = make_mesh((1,), ("i",))
    >>> total = shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    >>> print(total(jnp.arange(4.0)))
    6.0
    """
    if f is None:
        return partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axis_names, check_vma=check_vma
        )
    require_function("shard_map", "f", f)
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise ShardMapError(f"shard_map: mesh must be a Mesh, got {mesh!r} of type {type(mesh).__name__}")
    fun, check_vma = f, flag("shard_map", "check_vma", check_vma)
    of_user_values = has_user_specs((in_specs, out_specs))

    @source.named_as(fun)
    @api_boundary
    def mapped(*args: Any) -> Any:
        if of_user_values:
            here = current_mesh() if mesh is None else mesh
            again = partial(shard_map, mesh=mesh, axis_names=axis_names, check_vma=check_vma)
            manual = frozenset(axis_names or getattr(here, "axis_names", ()))
            return shard_mapped(again, fun, here, manual, in_specs, out_specs, check_vma, args)
        return _call(fun, mesh, in_specs, out_specs, axis_names, check_vma, args)

    return mapped


def _call(
    fun: Any, mesh: Any, in_specs: Any, out_specs: Any, axis_names: Iterable[Any], check_vma: bool, args: Any
) -> Any:
    """Call ``fun`` under :func:`shard_map` with these options, for the global arrays ``args``; return global arrays."""
    grid = _grid(fun, mesh)
    manual = _manual_axes(grid, axis_names)
    leaves, in_tree = tree.flatten(args)
    found = _in_specs(fun, in_specs, args, leaves, grid, manual)
    given = [i for i, spec in enumerate(found) if spec is not None]
    specs = [spec for spec in found if spec is not None]
    refs = [i for i in given if isinstance(leaves[i], RefCell)]
    check_aliases([leaves[i] for i in refs], f"shard_map of {name_of(fun)}")
    arrays = _operands(fun, [content_of(x) if i in refs else x for i, x in enumerate(leaves)], args, given)
    avals = [
        _shard_aval(typeof(x), grid, spec, manual, check_vma, partial(argument_name, i, fun, args))
        for i, x, spec in zip(given, arrays, specs, strict=True)
    ]
    flat = FlatFunction(fun, in_tree)
    run: Callable[..., list[Any]] = flat
    if len(given) < len(leaves):
        flat.opaque = {i: x for i, x in enumerate(leaves) if found[i] is None}
        passed = [spec is not None for spec in found]
        run = lambda *shards: flat(*scatter_where(passed, shards, None))

    of_refs = [specs[given.index(i)] for i in refs]
    if refs:
        run = WithRefs(run, [given.index(i) for i in refs])

    def out_specs_of(avals: list[ShapedArray]) -> list[PartitionSpec]:
        avals, contents = split_list(avals, len(avals) - len(refs))
        for aval, spec in zip(contents, of_refs, strict=True):
            _check_varying(aval, spec, f"the content of a reference of {name_of(fun)}", "in_specs", manual, check_vma)
        return [*_out_specs(fun, out_specs, flat, avals, grid, manual, check_vma), *of_refs]

    mapped = emulate_spmd if config.disable_jit else bind_mapped
    outs = mapped(fun, run, arrays, avals, specs, out_specs_of, grid, manual, check_vma)
    outs, last = split_list(outs, len(outs) - len(refs))
    write_all([leaves[i] for i in refs], last)
    return flat.result(outs)


def _operands(fun: Any, leaves: Sequence[Any], args: Any, given: Sequence[int]) -> list[Any]:
    """Convert the leaves of the arguments ``args`` at the indices ``given`` to arrays; raise if one is no array."""
    arrays = []
    for i in given:
        try:
            arrays.append(as_array(leaves[i]))
        except OperandError as error:
            raise type(error)(
                f"shard_map of {name_of(fun)}, {argument_name(i, fun, args)}: {error} With None in in_specs, an object "
                "reaches the function as it is."
            ) from None
    return arrays


def _grid(fun: Any, mesh: AnyMesh | None) -> AnyMesh:
    """Return the mesh of a call of ``shard_map``: ``mesh``, or if it is None the current mesh of the thread.

    Within another ``shard_map`` it is the mesh of that, whose axes have the type ``Manual``.

    Raises:
      ShardMapError: there is no mesh; it has no axes; or it is not the current mesh, if there is one.
    """
    current: AnyMesh | None = current_mesh()
    if mesh is None:
        if current is None or current.empty:
            raise ShardMapError(f"shard_map of {name_of(fun)}: pass a mesh, or set one with set_mesh")
        return current
    if mesh.empty:
        raise ShardMapError(f"shard_map of {name_of(fun)}: the mesh must have axes, got {mesh!r}")
    if current is None or current.empty:
        return mesh
    if current.shape_tuple != mesh.shape_tuple:
        raise ShardMapError(
            f"shard_map of {name_of(fun)}: the mesh is {mesh!r}, but the current mesh, of set_mesh or of an enclosing "
            f"shard_map, is {current!r}: leave mesh out to run over the current mesh"
        )
    return current if current.manual_axes else mesh


def bind_mapped(
    fun: Any, run: Callable[..., Any], arrays: Sequence[Any], avals: Sequence[ShapedArray],
    in_specs: Sequence[PartitionSpec], out_specs_of: Callable[[list[ShapedArray]], Sequence[PartitionSpec]],
    mesh: AnyMesh, manual: frozenset[Any], check_vma: bool, mapped_by: str = "shard_map",
) -> list[Any]:  # fmt: skip
    """Stage ``run`` for the shards of a device, and bind the operation that each device of a mesh runs.

    Args:
      fun: the user's function, for error messages.
      run: takes and returns flat sequences of shards.
      arrays: the global operands.
      avals: the types of their shards.
      in_specs: the specifications of the operands.
      out_specs_of: the specifications of the results, from the types of their shards.
      mesh: the devices.
      manual: the axes of the mesh that are in scope in ``run``.
      check_vma: whether types record the axes along which a value varies.
      mapped_by: the transformation that maps the axes, for error messages.
    """
    out_specs: list[PartitionSpec] = []

    outer, outer_mesh = state.trace, current_mesh()
    params: dict[str, Any] = {"mesh": mesh, "manual": manual, "check_vma": check_vma, "mapped_by": mapped_by}

    def on_device(*shards: Any) -> list[Any]:
        trace = state.trace
        if outer.eager and isinstance(trace, StageTrace):
            computing[trace] = lambda x: _computed(trace, x.variable, (outer, outer_mesh), arrays, in_specs, params)
        try:
            outs = run(*shards)
        finally:
            computing.pop(trace, None)
        out_specs[:] = out_specs_of([typeof(x) for x in outs])
        return [_as_specified(x, spec, check_vma) for x, spec in zip(outs, out_specs, strict=True)]

    with axes_of(mesh, manual, check_vma, mapped_by):
        closed, captured = hoisted(stage_flat(fun, on_device, avals, mapped_by))
    specs = (*in_specs, *[PartitionSpec()] * len(captured))
    outs = shard_map_p.bind(*arrays, *captured, jaxpr=closed, in_specs=specs, out_specs=tuple(out_specs), **params)
    return [_labelled(x, spec) for x, spec in zip(outs, out_specs, strict=True)]


def _labelled(x: Any, spec: PartitionSpec) -> Any:
    """Return a result whose sharding has a specification as the user wrote it: `P(None)`, and not the equal `P()`."""
    if not isinstance(x, CommittedArray) or not isinstance(x.sharding, NamedSharding):
        return x
    found = x.sharding
    if found.spec.partitions == spec.partitions or not found.is_equivalent_to(found.update(spec=spec), x.ndim):
        return x
    return device_put(x, found.update(spec=spec))


def _as_specified(x: Any, spec: PartitionSpec, check_vma: bool) -> Any:
    """Return a shard of a result with the states, along the axes of the mesh, that its specification says.

    A result that is stacked along an axis has a cotangent for each index, even if it does not vary. One that varies
    along unreduced axes has the terms of the sum.
    """
    x = vary(x, names_of(spec))
    terms = tuple([name for name in state.axes if name in spec.unreduced & typeof(x).varying]) if check_vma else ()
    return vary_unreduced_cast_p.bind(x, axes=terms) if terms else x


def _computed(
    trace: StageTrace, var: Any, outer: tuple[Trace, Any], arrays: Sequence[Any], in_specs: Sequence[PartitionSpec],
    params: dict[str, Any],
) -> Any:  # fmt: skip
    """Compute the value of a variable that a function of an eager ``shard_map`` has computed, for Python to look at.

    The program of the operations that it depends on runs on all devices.

    Args:
      trace: the trace that records the function.
      var: the variable.
      outer: the trace outside of ``shard_map``, and the mesh of the thread there.
      arrays, in_specs: the global operands, and their specifications.
      params: the other parameters of the operation.

    Returns:
      A concrete array; None if the devices may have different values, or if there is none.
    """
    if var.aval.varying & params["manual"] or isinstance(var, Literal):
        return None
    needed, eqns = {var}, []
    for eqn in reversed(trace.eqns):
        if not needed.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            needed.update([a for a in eqn.invars if isinstance(a, Var)])
    program = Jaxpr(list(trace.constvars.values()), trace.invars, eqns[::-1], [var])
    closed, captured = hoisted(ClosedJaxpr(program, trace.consts))
    specs = (*in_specs, *[PartitionSpec()] * len(captured))
    within, axes, state.trace = state.trace, state.axes, outer[0]
    state.axes = {name: axis for name, axis in axes.items() if name not in params["manual"]}
    before = exchange_mesh(outer[1])
    try:
        (out,) = shard_map_p.bind(
            *arrays, *captured, jaxpr=closed, in_specs=specs, out_specs=(PartitionSpec(),), **params
        )
    finally:
        exchange_mesh(before)
        state.trace, state.axes = within, axes
    return out.concrete() if isinstance(out, Tracer) else out


def _manual_axes(mesh: AnyMesh, axis_names: Iterable[Any]) -> frozenset[Any]:
    """Return ``axis_names`` as a set, or all axes of the mesh if it is empty; raise for a name that is not in the mesh.

    The function runs on shards along these axes. Along those of an enclosing ``shard_map`` it does so already: they are
    left out.
    """
    wanted = frozenset([axis_names] if isinstance(axis_names, str) else axis_names)
    unknown = [name for name in wanted if name not in mesh.axis_names]
    if unknown:
        raise ShardMapError(f"shard_map: axis_names has {unknown[0]!r}, but the axes of the mesh are {mesh.axis_names}")
    return (wanted or frozenset(mesh.axis_names)) - enclosing_axes(mesh)


def _is_spec(x: Any) -> bool:
    return x is None or x is INFERRED or isinstance(x, PartitionSpec)


def _spec(x: Any, what: str, fun: Any) -> PartitionSpec:
    if x is None:
        return PartitionSpec()
    if not isinstance(x, PartitionSpec):
        raise ShardMapError(f"shard_map of {name_of(fun)}: {what} must contain PartitionSpecs only, got {x!r}")
    if UNCONSTRAINED in x.partitions:
        raise ShardMapError(f"shard_map of {name_of(fun)}: {what} must specify all axes, got {x!r}")
    return x


def _check_sums(spec: PartitionSpec, mesh: AnyMesh, manual: frozenset[Any], what: str, where: str) -> None:
    """Raise unless arrays can be unreduced and reduced over axes of a mesh as a specification says.

    Raises:
      UnsupportedArgumentError: the function does not run on shards along all axes; or arrays would be extremes (a
        NotImplementedError).
      ShardMapError: the axes are not of the type ``Explicit`` (a ValueError and TypeError).
    """
    if not sums_of(spec):
        return
    if manual | enclosing_axes(mesh) != frozenset(mesh.axis_names):
        raise UnsupportedArgumentError(
            f"{what}: {spec} has unreduced or reduced axes, which can only be passed to {where} when shard_map is in "
            f"full manual mode, over all axes of the mesh: {mesh.axis_names}, not only {sorted(manual, key=str)}"
        )
    if not manual.issubset(mesh.explicit_axes):
        raise ShardMapError(
            f"{what}: {spec} has unreduced or reduced axes, which can only be used when the mesh passed to shard_map "
            f"contains axis names all of type `Explicit`, as those of make_mesh(sizes, names) are; got {mesh!r}"
        )
    if spec.unreduced_kind not in (None, UnreducedKind.sum):
        raise UnsupportedArgumentError(f"{what}: arrays are unreduced as sums only, got {spec}")


def _in_specs(
    fun: Any, in_specs: Any, args: Any, leaves: Sequence[Any], mesh: AnyMesh, manual: frozenset[Any]
) -> list[PartitionSpec | None]:
    """Return a partition specification for each leaf of ``args``, by broadcasting the tree prefix ``in_specs``.

    It is None for a leaf that reaches the function as it is.

    Raises:
      ShardMapError: ``in_specs`` is not a prefix of ``args``, or does not follow from their types.
    """
    if in_specs is INFERRED or in_specs is None or isinstance(in_specs, PartitionSpec):
        found = [in_specs] * len(leaves)
    else:
        if isinstance(in_specs, (tuple, list)) and len(in_specs) != len(args):
            raise ShardMapError(
                f"shard_map of {name_of(fun)}: in_specs has {len(in_specs)} entries, but it was called with "
                f"{len(args)} arguments; pass one for each"
            )
        prefix = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        try:
            found = tree.broadcast_prefix(prefix, args, is_leaf=_is_spec)
        except ValueError as error:
            raise ShardMapError(
                f"shard_map of {name_of(fun)}: in_specs={in_specs!r} must be a prefix of the arguments: {error}"
            ) from None
    if INFERRED in found and manual.issubset(mesh.explicit_axes):
        found = [
            _typed_spec(typeof(content_of(x) if isinstance(x, RefCell) else as_array(x)), manual)
            if s is INFERRED
            else s
            for x, s in zip(leaves, found, strict=True)
        ]
    if INFERRED in found:
        types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        raise ShardMapError(
            f"shard_map of {name_of(fun)}: pass in_specs, a PartitionSpec for each argument. They follow from the "
            f"types of the arguments only if all axes of the mesh are Explicit, and the types of the axes are "
            f"{ {name: types[name] for name in mesh.axis_names if name in manual} }"
        )
    return [None if x is None else _spec(x, "in_specs", fun) for x in found]


def _typed_spec(aval: ShapedArray, manual: frozenset[Any]) -> PartitionSpec:
    """Return the specification of an argument by its type: those of the axes ``manual`` that divide each axis of it."""
    if aval.explicit is None:
        return PartitionSpec()
    spec = aval.explicit.spec
    entries = [tuple([n for n in names_in(entry) if n in manual]) for entry in spec.partitions]
    return PartitionSpec(*entries, unreduced=spec.unreduced & manual, reduced=spec.reduced & manual)


def _check_names(spec: PartitionSpec, mesh: AnyMesh, manual: frozenset[Any], what: str) -> None:
    names = [*(name for entry in spec.partitions for name in names_in(entry)), *sums_of(spec)]
    for name in names:
        if name not in mesh.axis_names:
            raise ShardMapError(f"{what}: {spec} names {name!r}, but the axes of the mesh are {mesh.axis_names}")
        if name not in manual:
            raise ShardMapError(
                f"{what}: {spec} names {name!r}, which is not among axis_names, {sorted(manual, key=str)}"
            )
        if names.count(name) > 1:
            raise ShardMapError(f"{what}: {spec} names {name!r} more than once")


def _shard_aval(
    aval: ShapedArray, mesh: AnyMesh, spec: PartitionSpec, manual: frozenset[Any], check_vma: bool,
    name: Callable[[], str],
) -> ShapedArray:  # fmt: skip
    """Return the type of one device's shard of an argument, a global array of type ``aval`` that ``spec`` divides.

    Raise unless ``spec`` fits the shape and mentions only axes in ``manual``. ``name()`` names the argument in errors.
    """
    what = f"shard_map, in_specs of {name()}"
    _check_sums(spec, mesh, manual, what, "in_specs")
    _check_names(spec, mesh, manual, what)
    have = PartitionSpec() if aval.explicit is None else aval.explicit.spec
    if have.unreduced != spec.unreduced or have.reduced != spec.reduced:
        raise ShardMapError(
            f"{what}: in_specs passed to shard_map: {spec} does not match the specs of the input: {have}, of the type "
            f"{aval}. Leave in_specs out, or change the argument with sharding.reshard(x, P(...)): unreduced axes are "
            "summed, and reduced ones have cotangents that are unreduced"
        )
    if len(spec) > len(aval.shape):
        raise ShardMapError(
            f"shard_map: {name()} of shape {aval.shape} has {len(aval.shape)} axes, but its specification {spec} has "
            f"{len(spec)} entries"
        )
    for i, entry in enumerate(spec.partitions):
        count = 1
        for axis in names_in(entry):
            count *= mesh.shape[axis]
        if aval.shape[i] % count:
            raise ShardMapError(
                f"shard_map: axis {i} of {name()}, of size {aval.shape[i]}, is divided by {entry!r} of the mesh into "
                f"{count} shards, but {aval.shape[i]} is not a multiple of {count}"
            )
    return shard_aval(aval, mesh, spec, manual, check_vma)


def _out_specs(
    fun: Any, out_specs: Any, flat: FlatFunction, avals: list[ShapedArray], mesh: AnyMesh, manual: frozenset[Any],
    check_vma: bool,
) -> list[PartitionSpec]:  # fmt: skip
    """Return a partition specification for each leaf of the result, by broadcasting the tree prefix ``out_specs``.

    Args:
      fun: the user's function, for error messages.
      out_specs: the specifications that the user passed, a prefix of the result.
      flat: the flat version of ``fun``, after its call.
      avals: the types of the shards of the leaves.
      mesh: the devices.
      manual: the axes of the mesh that specifications may mention.
      check_vma: whether to check that a leaf varies only along those of the axes ``manual`` that its specification
        mentions.

    Raises:
      ShardMapError: a specification does not fit the result or the mesh, or the check fails.
    """
    if isinstance(out_specs, PartitionSpec) or out_specs is None:
        specs = [_spec(out_specs, "out_specs", fun)] * len(avals)
    else:
        try:
            found = tree.broadcast_prefix(out_specs, flat.result(avals), is_leaf=_is_spec)
        except ValueError as error:
            raise ShardMapError(
                f"shard_map of {name_of(fun)}: out_specs={out_specs!r} must be a prefix of the result: {error}"
            ) from None
        specs = [_spec(x, "out_specs", fun) for x in found]
    for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
        what = f"result {i} of {name_of(fun)}" if len(avals) > 1 else f"the result of {name_of(fun)}"
        _check_sums(spec, mesh, manual, f"shard_map, out_specs of {what}", "out_specs")
        _check_names(spec, mesh, manual, f"shard_map, out_specs of {what}")
        if len(spec) > len(aval.shape):
            raise ShardMapError(
                f"shard_map: {what} has the shape {aval.shape}, of {len(aval.shape)} axes, but its specification "
                f"{spec} has {len(spec)} entries"
            )
        _check_varying(aval, spec, what, "out_specs", manual, check_vma)
    return specs


def _check_varying(
    aval: ShapedArray, spec: PartitionSpec, what: str, where: str, manual: frozenset[Any], check_vma: bool
) -> None:
    """Raise if a shard has other states along the axes of a mesh than its specification, in ``where``, says.

    It may vary along axes that the specification mentions, or over which it is unreduced.
    """
    if not check_vma:
        return
    have = aval.mat
    wrong = [
        (spec.unreduced - have.unreduced - have.varying, "is not unreduced", "lax.pcast(x, axis, to='unreduced') makes "
         "it of a varying value, whose values on the devices are the terms"),
        (have.unreduced - spec.unreduced, "is unreduced", "Sum it with lax.psum, or write P(unreduced=...)"),
        (spec.reduced - have.reduced, "is not reduced", "lax.pcast(x, axis, to='reduced') makes it of a value that is "
         "the same on all devices"),
        (have.reduced - spec.reduced - names_of(spec), "is reduced", "Write P(reduced=...), and outside, where it is "
         "to be whole, sharding.reshard(x, P())"),
    ]  # fmt: skip
    for axes, says, remedy in wrong:
        if axes:
            raise ShardMapError(
                f"shard_map: {where} passed to shard_map, {spec}: along the axes {sorted(map(str, axes))} of the mesh "
                f"{what}, of the type {aval}, {says}. {remedy}."
            )
    promised = sorted((have.varying & manual) - names_of(spec) - spec.unreduced, key=str)
    if promised:
        raise ShardMapError(
            f"shard_map: {where} {spec} says that {what} is the same along the axes {promised} of the mesh, "
            f"but it varies along them. Reduce it with lax.psum or pmean, name the axes in {where}, or, if it "
            f"is really the same, pass check_vma=False."
        )
