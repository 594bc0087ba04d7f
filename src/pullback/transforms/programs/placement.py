"""Placement as operations: ``device_put`` and ``with_sharding_constraint``, also of traced values.

Both put an array in a place, a device or a sharding over several. They are linear: tangents go where their values go,
and cotangents go back. In a compiled program a sharding is a constraint for the compiler, and a device says nothing: a
program runs on one, or on those of a mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_at, from_buffer
from pullback.backends.devices.devices import Device
from pullback.backends.devices.layouts import Format, without_layout
from pullback.backends.devices.meshes import Mesh, current_mesh, needed_mesh
from pullback.backends.devices.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayImpl, CommittedArray, as_array, shared, signature, signature_of
from pullback.core.errors import BackendError, OperandError, ShardingError
from pullback.core.naming import quoted
from pullback.core.trace import Primitive, Tracer, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.jit_primitive import concrete

T = TypeVar("T")

sharding_constraint_p = Primitive("sharding_constraint", passes_nan=True)
device_put_p = Primitive("device_put", passes_nan=True)


def committed(x: ArrayImpl, placement: Any) -> ArrayImpl:
    """An array in a place, where programs that are given it will run. Memory is shared where it is there already."""
    with transfers.explicit():
        buffer = buffer_at(x, placement)
    aval = x.aval
    out = from_buffer(buffer, signature(aval.shape, aval.dtype, bool(aval.weak_type), placement))
    if getattr(x, "_buffer", None) is buffer:
        shared(buffer)
    return out


def committed_like(x: Any, model: Any) -> Any:
    """A new array where another of its shape is, or is to be if it is a type with a sharding; as it is elsewhere."""
    if type(model) is CommittedArray:
        placement = signature_of(model).placement
    else:
        placement = None if isinstance(model, Array) else getattr(model, "sharding", None)
    if placement is None or not isinstance(x, ArrayImpl) or x.shape != tuple(model.shape):
        return x
    return constrained(x, placement, "the sharding of the model")


def put(primitive: Primitive, x: Any, placement: Any) -> Any:
    """An array, concrete or traced, in a place."""
    known = x.concrete() if isinstance(x, Tracer) else x
    source = signature_of(known).placement if isinstance(known, ArrayImpl) else None
    return primitive.bind(x, placement=placement, source=source)


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    placement = params["placement"]
    if isinstance(placement, NamedSharding) and UNCONSTRAINED in placement.spec.partitions:
        from pullback.backends.compiler.one_operation import evaluate

        return evaluate(sharding_constraint_p, [concrete(args[0])], params)
    return committed(concrete(args[0]), placement)


def _abstract(x: ShapedArray, *, placement: Any, source: Any) -> ShapedArray:
    if isinstance(placement, NamedSharding):
        placement.shard_shape(x.shape)
    return x


def _jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    (x,), (t,) = primals, tangents
    return primitive.bind(x, **params), ZERO if t is ZERO else primitive.bind(t, **params)


def _transpose(ct: Any, x: Any, *, placement: Any, source: Any) -> Any:
    if isinstance(placement, NamedSharding) and (source is None or isinstance(source, NamedSharding)):
        back = placement if source is None else source
        return (sharding_constraint_p.bind(ct, placement=back, source=None),)
    return (ct if source is None else device_put_p.bind(ct, placement=source, source=None),)


def _batch(primitive: Primitive, axis: MappedAxis, args: Any, dims: Any, *, placement: Any, source: Any) -> Any:
    (x,), (d,) = args, dims
    return primitive.bind(x, placement=_with_axis(placement, d, axis), source=_with_axis(source, d, axis)), d


def _with_axis(placement: Any, position: int, axis: MappedAxis) -> Any:
    """A place for arrays with one more axis, which is divided as it was, or as ``spmd_axis_name`` says."""
    if not isinstance(placement, NamedSharding):
        return placement
    entries: list[Any] = list(placement.spec.partitions)
    entries += [None] * (position - len(entries))
    entry = UNCONSTRAINED if axis.spmd_name is None else axis.spmd_name
    return NamedSharding(placement.mesh, PartitionSpec(*entries[:position], entry, *entries[position:]))


def _lowering(hlo: Any, x: Any, *, placement: Any, source: Any) -> Any:
    if not isinstance(placement, NamedSharding):
        return x
    return hlo.constrained(x, placement)


for _primitive in (sharding_constraint_p, device_put_p):
    _primitive.abstract_eval(_abstract)
    _primitive.impl(_evaluate)
    _primitive.jvp(lambda primals, tangents, _p=_primitive, **params: _jvp(_p, primals, tangents, **params))
    _primitive.transpose(_transpose)
    _primitive.batch(lambda axis, args, dims, _p=_primitive, **params: _batch(_p, axis, args, dims, **params))
    _primitive.lowering(_lowering)


# What users give ------------------------------------------------------------------------------------------------------


def destination(given: Any, who: str) -> Any:
    """A place as arrays have it, a device or a sharding over several, of what users give for one; None stays None.

    Raises:
      BackendError: it is none, or there is no such device (a RuntimeError).
      MeshContextError: a specification has no mesh, and none is set (a RuntimeError).
    """
    given = without_layout(given, who)
    if isinstance(given, SingleDeviceSharding):
        return next(iter(given.device_set))
    if isinstance(given, PartitionSpec):
        return NamedSharding(needed_mesh(who, repr(given)), given)
    if isinstance(given, NamedSharding):
        if not isinstance(given.mesh, Mesh):
            return NamedSharding(needed_mesh(who, repr(given)), given.spec)
        return given
    if given is None or isinstance(given, Device):
        return given
    raise BackendError(f"{who}: expected a device, one of devices(), or a sharding, got {quoted(given)}")


def is_placement(x: Any) -> bool:
    """Whether users mean one place by it, not a tree of places."""
    return x is None or isinstance(x, (Device, Sharding, PartitionSpec, Format, str))


@api_boundary
def with_sharding_constraint(x: T, shardings: PyTree) -> T:
    """A tree of arrays that are spread over devices as asked, within compiled functions too.

    Args:
      x: a tree of arrays.
      shardings: a sharding, a ``PartitionSpec`` for the mesh that ``set_mesh`` has set, or a tree of such that is a
        prefix of ``x``. ``PartitionSpec.UNCONSTRAINED`` leaves an axis to the compiler.

    Returns:
      A tree like ``x``, of the same values. Cotangents of them are spread in the same way.

    Raises:
      ShardingError: a sharding does not fit its array, or is none (a ValueError).
      MeshContextError: a specification has no mesh, and none is set (a RuntimeError).

    >>> import pullback
    >>> import pullback.numpy as pnp
    >>> mesh = pullback.make_mesh((1,), ("i",))
    >>> rows = pullback.sharding.NamedSharding(mesh, pullback.P("i"))
    >>> print(pullback.jit(lambda x: with_sharding_constraint(2 * x, rows))(pnp.ones(2)))
    [2. 2.]
    """
    leaves, treedef = tree.flatten(x)
    who = "with_sharding_constraint"
    if is_placement(shardings):
        placements = [shardings] * len(leaves)
    else:
        try:
            placements = tree.broadcast_prefix(shardings, x, is_leaf=is_placement)
        except (TypeError, ValueError) as error:
            raise ShardingError(f"{who}: the tree of shardings is no prefix of the tree of arrays: {error}") from None
    spread: T = tree.unflatten(treedef, [constrained(a, p, who) for a, p in zip(leaves, placements, strict=True)])
    return spread


def constrained(x: Any, given: Any, who: str) -> Any:
    """An array, concrete or traced, that is spread as asked; as it is if nobody asked."""
    if given is None:
        return x
    if isinstance(given, str):
        raise ShardingError(f"{who}: expected a sharding or a PartitionSpec, got {given!r}: write P({given!r})")
    try:
        array = as_array(x)
    except OperandError as error:
        raise type(error)(f"{who}: {error}") from None
    if _is_logical(given) and not (state.trace.eager or isinstance(current_mesh(), Mesh)):
        if not isinstance(array, Tracer):
            return array  # a constant of the program, which the compiler puts where it likes
        placement = given  # over the devices of the program, whichever they will be
    else:
        placement = destination(given, who)
    if isinstance(placement, NamedSharding):
        try:
            check_divides(placement, array.shape)
        except ShardingError as error:
            raise type(error)(f"{who}: {error}") from None
    return put(sharding_constraint_p, array, placement)


def _is_logical(given: Any) -> bool:
    """Whether a sharding is over a mesh without devices."""
    return isinstance(given, NamedSharding) and not isinstance(given.mesh, Mesh)


def check_divides(sharding: NamedSharding, shape: tuple[int, ...]) -> None:
    """Refuse a sharding that does not fit arrays of a shape; axes that are left to the compiler may have any size.

    Raises:
      ShardingError: its specification is too long (a ValueError).
      IndivisibleError: it does not divide an axis evenly (a ValueError).
    """
    sharding.shard_shape(shape)
