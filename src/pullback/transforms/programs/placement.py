"""Operations that move arrays: ``device_put`` and ``with_sharding_constraint``, also of traced values.

Both move an array to a placement: a device, or a sharding over several devices. They are linear: tangents move with
their values, and cotangents move back. In a compiled program a sharding is a constraint for the compiler, and a device
has no effect: the program runs on one device, or on the devices of a mesh. A memory, as a ``Space`` or in a sharding,
moves the value there in programs for GPUs and TPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_at, from_buffer
from pullback.backends.devices.devices import Device, Space, default_device
from pullback.backends.devices.layouts import Format, without_layout
from pullback.backends.devices.memories import KINDS, annotated, kind_of
from pullback.backends.devices.meshes import AxisType, Mesh, current_mesh, needed_mesh
from pullback.backends.devices.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    UnreducedKind,
    as_sharding,
    between,
    names_in,
    over_devices,
)
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayImpl, CommittedArray, as_array, shared, signature, signature_of, typeof
from pullback.core.errors import (
    BackendError,
    IndivisibleError,
    OperandError,
    ShardingError,
    ShardingTypeError,
    UnsupportedArgumentError,
)
from pullback.core.naming import quoted
from pullback.core.trace import Primitive, Tracer, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.explicit_shardings import entries_of, resharded, to_auto
from pullback.primitives.rules import as_moved, sharding_rule
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.jit_primitive import concrete
from pullback.transforms.programs.terms import by_terms

T = TypeVar("T")

sharding_constraint_p = Primitive("sharding_constraint", passes_nan=True)
device_put_p = Primitive("device_put", passes_nan=True, keeps_elements=True)


def committed(x: ArrayImpl, placement: Any) -> ArrayImpl:
    """Commit an array to a placement, a device or a sharding, so that programs that take the array run there.

    If the array is already there, the result shares its memory.
    """
    with transfers.explicit():
        buffer = buffer_at(x, placement)
    aval = x.aval
    out = from_buffer(buffer, signature(aval.shape, aval.dtype, bool(aval.weak_type), placement))
    if getattr(x, "_buffer", None) is buffer:  # donation of one of the two must not invalidate the other
        shared(buffer)
    return out


def committed_like(x: Any, model: Any) -> Any:
    """Commit a new array to the placement of another array, the model; return it.

    Args:
      x: the new array.
      model: an array, or a type with a sharding. If the model is not committed, or has another shape and is on several
        devices, ``x`` is returned unchanged; in eager code also if its sharding is over a mesh without devices.
    """
    if isinstance(model, Tracer):
        explicit = model.aval.explicit
        return x if explicit is None or x.shape != model.shape else resharded(x, explicit)
    if type(model) is CommittedArray:
        placement = signature_of(model).placement
    else:
        placement = None if isinstance(model, Array) else getattr(model, "sharding", None)
    if placement is None or not isinstance(x, ArrayImpl):
        return x
    if _is_logical(placement) and state.trace.eager and not isinstance(current_mesh(), Mesh):
        return x
    if x.shape != tuple(model.shape) and not isinstance(placement, (Device, SingleDeviceSharding)):
        return x
    return constrained(x, placement, "the sharding of the model")


def put(primitive: Primitive, x: Any, placement: Any) -> Any:
    """Apply ``device_put`` or ``sharding_constraint`` to a concrete or traced array.

    The array's current placement, if known, is stored in the parameter ``source``: cotangents are moved back to it.
    """
    known = x.concrete() if isinstance(x, Tracer) else x
    source = signature_of(known).placement if isinstance(known, ArrayImpl) else None
    if isinstance(placement, Space):
        here = None if source is None else kind_of(source)
        source = next((space for space, kind in KINDS.items() if kind == here), None)
    way = between(typeof(x).explicit, placement) if isinstance(placement, NamedSharding) else None
    if way is not None:
        x = primitive.bind(x, placement=way, source=source)
    return primitive.bind(x, placement=placement, source=source)


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The impl rule: commit an array to the parameter ``placement``. The compiler chooses unconstrained axes.

    Arrays on CPUs stay where they are instead of moving to a memory: a CPU has one.
    """
    placement = params["placement"]
    if isinstance(placement, Space):
        x = concrete(args[0])
        at = signature_of(x).placement or default_device()
        return x if at.platform == "cpu" else committed(x, in_space(at, placement))
    if isinstance(placement, NamedSharding) and UNCONSTRAINED in placement.spec.partitions:
        from pullback.backends.compiler.one_operation import evaluate

        return evaluate(sharding_constraint_p, [concrete(args[0])], params)
    return committed(concrete(args[0]), placement)


def _abstract(x: ShapedArray, *, placement: Any, source: Any) -> ShapedArray:
    if isinstance(placement, NamedSharding):
        with suppress(IndivisibleError):  # the compiler pads what it cannot divide evenly
            placement.shard_shape(x.shape)
    return x


def _abstract_put(x: ShapedArray, *, placement: Any, source: Any) -> ShapedArray:
    if isinstance(placement, Space):
        return x
    return _abstract(x, placement=placement, source=source).update(
        sharding=placement if isinstance(placement, NamedSharding) else None
    )


def _jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    (x,), (t,) = primals, tangents
    return primitive.bind(x, **params), ZERO if t is ZERO else primitive.bind(t, **params)


def _transpose(ct: Any, x: Any, *, placement: Any, source: Any) -> Any:
    """The transposition rule: move the cotangent to ``source``, the placement of the operand, if it is known.

    Without it, the cotangent of a value that moved to a ``Space`` moves to the other one.
    """
    if isinstance(placement, Space):
        other = Space.Device if placement is Space.Host else Space.Host
        return (device_put_p.bind(ct, placement=other if source is None else source, source=None),)
    if isinstance(placement, NamedSharding) and (source is None or isinstance(source, NamedSharding)):
        back = placement if source is None else source
        return (sharding_constraint_p.bind(ct, placement=back, source=None),)
    return (ct if source is None else device_put_p.bind(ct, placement=source, source=None),)


def _batch(primitive: Primitive, axis: MappedAxis, args: Any, dims: Any, *, placement: Any, source: Any) -> Any:
    (x,), (d,) = args, dims
    new = [_with_axis(each, d, axis.spmd_name, entries_of(typeof(x))[d]) for each in (placement, source)]
    return primitive.bind(x, placement=new[0], source=new[1]), d


def _with_axis(placement: Any, position: int, wanted: Any, typed: Any) -> Any:
    """Return the placement of a batch: ``placement`` with a mapped axis added at ``position``.

    The new axis is sharded over the mesh axes ``wanted``, which ``spmd_axis_name`` of ``vmap`` names. If that is None,
    the compiler decides. But over a mesh of explicit axes, the axis is sharded as the type of the batch says,
    ``typed``, or not at all.
    """
    if not isinstance(placement, NamedSharding):
        return placement
    entries: list[Any] = list(placement.spec.partitions)
    entries += [None] * (position - len(entries))
    entry = UNCONSTRAINED if wanted is None else wanted
    if wanted is None and placement.mesh.are_all_axes_explicit:
        free = frozenset(placement.mesh.axis_names).difference(*map(names_in, entries))
        entry = typed if free.issuperset(names_in(typed)) else None
    return placement.update(spec=PartitionSpec(*entries[:position], entry, *entries[position:]))


def _lowering(hlo: Any, x: Any, *, placement: Any, source: Any) -> Any:
    if isinstance(placement, NamedSharding):
        x = hlo.constrained(x, placement)
    elif not isinstance(placement, Space):
        return x
    return annotated(hlo, x, kind_of(placement))


for _primitive in (sharding_constraint_p, device_put_p):
    sharding_rule(_primitive)(as_moved)
    _primitive.impl(_evaluate)
    _primitive.jvp(lambda primals, tangents, _p=_primitive, **params: _jvp(_p, primals, tangents, **params))
    _primitive.transpose(_transpose)
    _primitive.batch(lambda axis, args, dims, _p=_primitive, **params: _batch(_p, axis, args, dims, **params))
    _primitive.lowering(_lowering)
sharding_constraint_p.abstract_eval(_abstract)
device_put_p.abstract_eval(_abstract_put)


def in_space(placement: Any, space: Space) -> Any:
    """Return a placement, a device or a sharding, in the memory ``space`` of its devices."""
    return destination(as_sharding(placement).with_memory_kind(KINDS[space]), "device_put")


# Public functions -----------------------------------------------------------------------------------------------------


def destination(x: Any, who: str) -> Any:
    """Convert a user's placement to a device, or to a sharding over several devices; None stays None.

    ``who`` is the function, for error messages.

    Raises:
      BackendError: ``x`` is no placement, or the device does not exist (a RuntimeError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).
    """
    x = without_layout(x, who)
    if isinstance(x, SingleDeviceSharding):
        return x.placement
    if isinstance(x, PartitionSpec):
        return NamedSharding(needed_mesh(who, repr(x)), x)
    if isinstance(x, NamedSharding):
        if not isinstance(x.mesh, Mesh):
            return x.update(mesh=needed_mesh(who, repr(x)))
        return x
    if x is None or isinstance(x, Device):
        return x
    raise BackendError(f"{who}: expected a device, one of devices(), or a sharding, got {quoted(x)}")


def is_placement(x: Any) -> bool:
    """Whether ``x`` is a single placement, not a tree of placements."""
    return x is None or isinstance(x, (Device, Sharding, PartitionSpec, Format, Space, str))


@api_boundary
def with_sharding_constraint(x: T, shardings: PyTree) -> T:
    """Shard a tree of arrays over devices, also within compiled functions.

    It is for axes of a mesh of the type ``AxisType.Auto``. Along ``Explicit`` axes it checks that the arrays have the
    shardings; :func:`pullback.sharding.reshard` changes them.

    Args:
      x: a tree of arrays.
      shardings: a sharding, a ``PartitionSpec`` for the mesh that ``set_mesh`` has set, or a prefix tree of ``x`` with
        these as leaves. ``PartitionSpec.UNCONSTRAINED`` leaves an axis to the compiler.

    Returns:
      A tree like ``x``, of the same values. Their cotangents are sharded in the same way.

    Raises:
      ShardingError: a sharding does not fit its array, or is no sharding (a ValueError). Within compiled functions it
        need not divide the array evenly.
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, jit, lax, make_mesh, sharding
    >>> mesh = make_mesh((1,), ("i",), (sharding.AxisType.Auto,))
    >>> rows = sharding.NamedSharding(mesh, P("i"))
    >>> print(jit(lambda x: lax.with_sharding_constraint(2 * x, rows))(jnp.ones(2)))
    [2. 2.]
    """
    who = "with_sharding_constraint"
    leaves, treedef, placements = placements_of(x, shardings, who)
    if any(p is None for p in placements):
        raise ShardingError(
            f"{who}: got None instead of a sharding: pass P() for an array that each device has, or P(P.UNCONSTRAINED) "
            f"to leave its axes to the compiler"
        )
    sharded: T = tree.unflatten(treedef, [constrained(a, p, who) for a, p in zip(leaves, placements, strict=True)])
    return sharded


def placements_of(x: Any, shardings: Any, who: str) -> tuple[list[Any], Any, list[Any]]:
    """Return the leaves of a tree of arrays, the tree, and the sharding of each leaf.

    Args:
      x: a tree of arrays.
      shardings: a sharding, or a prefix tree of shardings.
      who: the function, for error messages.

    Raises:
      ShardingError: the tree of shardings is not a prefix of that of arrays (a TypeError and ValueError).
    """
    leaves, treedef = tree.flatten(x)
    if is_placement(shardings):
        return leaves, treedef, [shardings] * len(leaves)
    try:
        return leaves, treedef, tree.broadcast_prefix(shardings, x, is_leaf=is_placement)
    except (TypeError, ValueError) as error:
        raise ShardingError(f"{who}: the tree of shardings is not a prefix of the tree of arrays: {error}") from None


def explicit_sharding(sharding: Any, who: str) -> NamedSharding | None:
    """Convert a user's sharding to one over explicit axes of a mesh; None if its mesh has no such axes.

    ``who`` is the function, for error messages.

    Raises:
      ShardingError: it names an axis of another type, or is no sharding over a mesh (a TypeError and ValueError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError and ValueError).
    """
    if isinstance(sharding, PartitionSpec):
        sharding = NamedSharding(needed_mesh(who, repr(sharding), abstract=True), sharding)
    if not isinstance(sharding, NamedSharding):
        if isinstance(sharding, str) or not hasattr(sharding, "device_set"):
            raise ShardingError(f"{who}: expected a NamedSharding or a PartitionSpec, got {quoted(sharding)}")
        return None
    types, spec = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True)), sharding.spec
    if AxisType.Explicit not in types.values():
        return None
    for name in (*(n for entry in spec.partitions for n in names_in(entry)), *spec.unreduced, *spec.reduced):
        if types[name] is not AxisType.Explicit:
            raise ShardingError(
                f"PartitionSpec passed to {who} cannot contain axis names that are of type Auto or Manual: got {spec} "
                f"with the axis {name!r} of type {types[name]}"
            )
    if spec.unreduced_kind not in (None, UnreducedKind.sum):
        raise UnsupportedArgumentError(f"{who}: arrays are unreduced as sums only, got {spec}")
    if UNCONSTRAINED in spec.partitions:
        raise ShardingError(f"{who}: a sharding in a type leaves no axis to the compiler, got {spec}")
    return sharding


def spread(function: Any, operands: Sequence[Any], out_sharding: Any, who: str) -> Any:
    """Return ``function(*operands)``, an array, with a sharding that the user requests; None leaves it open.

    Over explicit axes of a mesh the compiler decides how the function runs, whatever the shardings of the operands are.
    ``who`` is the function, for error messages.
    """
    is_over_mesh = isinstance(out_sharding, (NamedSharding, PartitionSpec))
    typed = explicit_sharding(out_sharding, who) if is_over_mesh else None
    if typed is None:
        return constrained(function(*operands), out_sharding, who)
    if typed.spec.unreduced:
        arrays = [i for i, x in enumerate(operands) if isinstance(x, Array)]

        def with_arrays(*values: Any) -> list[Any]:
            known = dict(zip(arrays, values, strict=True))
            return [as_array(function(*[known.get(i, x) for i, x in enumerate(operands)]))]

        with suppress(ShardingTypeError):
            (out,) = by_terms(with_arrays, [operands[i] for i in arrays], typed.spec.unreduced)
            have = typeof(out).explicit
            if have is not None and have.spec.unreduced == typed.spec.unreduced:
                return out if have == typed.in_types(out.shape) else resharded(out, typed)
    return resharded(as_array(function(*[to_auto(x) if isinstance(x, Array) else x for x in operands])), typed)


def constrained(x: Any, sharding: Any, who: str) -> Any:
    """Check a user's sharding, and shard a concrete or traced array by it.

    If it is None, or over a mesh without axes, as the sharding of the type of an array outside of meshes is, return the
    array unchanged. ``who`` is the function, for error messages.
    """
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return x
    if isinstance(sharding, str):
        raise ShardingError(f"{who}: expected a sharding or a PartitionSpec, got {sharding!r}: write P({sharding!r})")
    try:
        array = as_array(x)
    except OperandError as error:
        raise type(error)(f"{who}: {error}") from None
    if isinstance(sharding, NamedSharding) and not sharding.mesh.axis_names and not any(sharding.spec):
        return array  # the sharding of a type that says nothing of a mesh
    typed = explicit_sharding(sharding, who) if isinstance(sharding, (NamedSharding, PartitionSpec)) else None
    if typed is not None:
        return _explicit(array, typed, who)
    if _is_logical(sharding) and state.trace.eager:
        known = array.concrete() if isinstance(array, Tracer) else array
        sharding = over_devices(sharding, [signature_of(known).placement] if isinstance(known, ArrayImpl) else [])
    if _is_logical(sharding) and not (state.trace.eager or isinstance(current_mesh(), Mesh)):
        if not isinstance(array, Tracer):
            return array  # a constant of the program, which the compiler shards
        placement = sharding  # over the devices of the program, which are chosen later
    else:
        placement = destination(sharding, who)
    if isinstance(placement, NamedSharding):
        _check_not_manual(placement, who)
        try:
            check_divides(placement, array.shape)
        except IndivisibleError as error:
            if state.trace.eager or placement.mesh.explicit_axes:  # the compiler pads what it cannot divide evenly
                raise type(error)(f"{who}: {error}") from None
        except ShardingError as error:
            raise type(error)(f"{who}: {error}") from None
    return put(sharding_constraint_p, array, placement)


def _explicit(x: Any, sharding: NamedSharding, who: str) -> Any:
    """Return an array with a sharding over explicit axes. ``with_sharding_constraint`` only checks that it has it."""
    typed, have = sharding.in_types(x.shape), typeof(x).explicit
    if have is not None and have == typed:
        return x
    # An array whose type says nothing of a mesh is not divided.
    undivided = have is None and typed is not None and typed.is_fully_replicated and not typed.has_reductions
    if who != "with_sharding_constraint" or undivided:
        return resharded(x, sharding)
    raise ShardingTypeError(
        f"`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`: the array of type "
        f"{typeof(x)} does not have the sharding {sharding.spec}. sharding.reshard changes the sharding of an array"
    )


def _check_not_manual(sharding: NamedSharding, who: str) -> None:
    """Raise if a sharding divides an array along axes over which an enclosing ``shard_map`` has divided it already.

    Raises:
      ShardingError: it does (a ValueError). ``who`` is the function, for its message.
    """
    current = current_mesh()
    if current is None or not current.manual_axes or current.shape_tuple != sharding.mesh.shape_tuple:
        return
    names = [name for entry in sharding.spec.partitions for name in names_in(entry) if name in current.manual_axes]
    if names:
        raise ShardingError(
            f"{who}: {sharding.spec} names {names[0]!r}, a manual axis of the mesh: the function runs on shards along "
            "it, within shard_map. Name only axes that shard_map leaves to the compiler."
        )


def _is_logical(sharding: Any) -> bool:
    """Whether a sharding is over an abstract mesh, without devices."""
    return isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)


def check_divides(sharding: NamedSharding, shape: tuple[int, ...]) -> None:
    """Raise unless a sharding fits arrays of a shape; unconstrained axes may have any size.

    Raises:
      ShardingError: the specification of the sharding has more entries than there are axes (a ValueError).
      IndivisibleError: the sharding does not divide an axis evenly (a ValueError).
    """
    sharding.shard_shape(shape)
