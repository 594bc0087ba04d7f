"""Shardings in types: the sharding of each result over the explicit axes of a mesh, and operations that change it.

The sharding of a result follows from those of the operands and from the map of axes of the operation (``axis_maps``):
the axis of a result is divided as the axes of operands that correspond to it. An operation without such a map, or with
more to say, has a ``sharding_rule``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_at, from_buffer
from pullback.backends.devices.meshes import AbstractMesh, AxisType
from pullback.backends.devices.shardings import (
    NamedSharding,
    PartitionSpec,
    UnreducedKind,
    between,
    names_in,
    over_devices,
)
from pullback.core import traits
from pullback.core.array import SCALARS, Array, ArrayImpl, resolve_weak_scalars, shared, signature, signature_of, typeof
from pullback.core.dims import any_symbolic
from pullback.core.errors import IndivisibleError, ShardingError, ShardingTypeError, UnreducedOperandError
from pullback.core.jaxpr import holds_programs, infer
from pullback.core.linear import LinearVar
from pullback.core.linearity import linear_part
from pullback.core.runtime import provides, runtime
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.rules import (
    GONE,
    as_inferred,
    as_moved,
    axis_divided,
    axis_kept,
    jvp_linear,
    sharding_rule,
    unsummed,
)

Entries = list[Any]
"""For each axis of an array, the axes of a mesh that divide it, as in a ``PartitionSpec``."""

REMEDY = (
    "Say the sharding of the result by out_sharding=, where the function has it; or change that of an operand, with "
    "sharding.reshard(x, P(...)); or let the compiler decide, with sharding.auto_axes(f, out_sharding=P(...))"
)


# Results --------------------------------------------------------------------------------------------------------------


def entries_of(aval: ShapedArray) -> tuple[Any, ...]:
    """Return for each axis of arrays of a type the axes of a mesh that divide it, or None."""
    return (None,) * len(aval.shape) if aval.explicit is None else aval.explicit.spec.partitions


@provides
def explicit_results(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], out: Any) -> Any:
    reduces = any(a.explicit is not None and a.explicit.has_reductions for a in avals)
    if _is_typed(primitive, params):
        if reduces and sharding_rule.of(primitive) is as_inferred:
            reductions(primitive, avals, params)
        return out
    results: list[ShapedArray] = out if primitive.multiple_results else [out]
    rule = sharding_rule.of(primitive)
    terms = summed_axes(primitive, avals, params) if _terms.over else _NO_AXES
    if rule is None or (terms and terms <= _terms.over):
        found = by_axes(primitive, avals, params, results)
    else:
        found, terms = rule(avals, results, **params), _NO_AXES
    if found is None:
        return out
    mesh = mesh_of(primitive.name, avals)
    sums = reductions(primitive, avals, params) if reduces else {}
    if terms and sums.get("unreduced"):
        raise ShardingTypeError(f"{primitive.name} of {_shown(avals)}: the result would be unreduced over further axes")
    if terms:
        sums = {"unreduced": terms, "reduced": sums.get("reduced", _NO_AXES) - terms}
    typed = [_typed(primitive, mesh, avals, a, entries, sums) for a, entries in zip(results, found, strict=True)]
    return typed if primitive.multiple_results else typed[0]


def _is_typed(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether abstract evaluation returns types with shardings, such as those of the results of programs."""
    return holds_programs(params) or sharding_rule.of(primitive) in (as_inferred, as_moved)


def mesh_of(name: str, avals: Sequence[ShapedArray]) -> AbstractMesh:
    """Return the mesh of the types ``avals``, some of which have one; raise if there are several.

    Raises:
      ShardingTypeError: two of them are over different meshes (a TypeError and ValueError).
    """
    meshes = [a.explicit.mesh for a in avals if a.explicit is not None]
    first: AbstractMesh = meshes[0]
    if any(mesh is not first and mesh != first for mesh in meshes):
        raise ShardingTypeError(
            f"For primitive {name}, the operands {_shown(avals)} are over different meshes: the context mesh and each "
            f"aval mesh must be equal, but they are {' and '.join(map(str, dict.fromkeys(meshes)))}"
        )
    return first


def _typed(
    primitive: Primitive, mesh: AbstractMesh, avals: Sequence[ShapedArray], result: ShapedArray, entries: Entries,
    sums: dict[str, Any],
) -> ShapedArray:  # fmt: skip
    """Return the type of a result with its sharding; raise if it divides unevenly, or an axis of the mesh is twice.

    A result of one element, such as ``x[0, 0]`` of an array that is divided, is on all devices.
    """
    try:
        return result.update(sharding=NamedSharding(mesh, PartitionSpec(*entries, **sums)))
    except IndivisibleError as error:
        if result.size == 1:
            return result.update(sharding=NamedSharding(mesh, PartitionSpec(*[None] * len(entries), **sums)))
        raise ShardingTypeError(
            f"{primitive.name} on sharded dims where out dim is not divisible by mesh axes is not possible: the "
            f"operands {_shown(avals)} lead to the result {result} sharded by {PartitionSpec(*entries)}. {error}"
        ) from None
    except ShardingError:
        shown = ",".join(str(n) + ("" if e is None else f"@{e}") for n, e in zip(result.shape, entries, strict=True))
        raise ShardingTypeError(
            f"{primitive.name} operation with inputs: {_shown(avals)} produces an illegally sharded result: [{shown}]: "
            f"an axis of a mesh can divide one axis of an array. {REMEDY}"
        ) from None


class _Terms(threading.local):
    """The axes of a mesh over which sums of this thread, of operands that they divide, stay unreduced."""

    over: frozenset[Any] = frozenset()


_NO_AXES: frozenset[Any] = frozenset()
_terms = _Terms()


@contextmanager
def terms_over(over: frozenset[Any]) -> Iterator[None]:
    """Leave sums within a block unreduced over the axes ``over`` of a mesh, if these divide what is summed."""
    before, _terms.over = _terms.over, over
    try:
        yield
    finally:
        _terms.over = before


def summed_axes(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> frozenset[Any]:
    """Return the axes of a mesh that divide the axes along which an operation sums, in all operands alike."""
    rule, shapes = unsummed.of(primitive), [a.shape for a in avals]
    if rule is None:
        return _NO_AXES
    found = [
        [entry for k, entry in enumerate(entries_of(a)) if rule(k, i, *shapes, **params) is not None]
        for i, a in enumerate(avals)
    ]
    entries = set(map(frozenset, map(explicit_axes_of, found)))
    orders = {tuple(sorted(map(str, each))) for each in found}
    return entries.pop() if len(entries) == 1 and len(orders) == 1 else _NO_AXES


def reductions(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> dict[str, Any]:
    """Return over which axes of a mesh the results of an operation are unreduced, and over which reduced.

    An operation that is linear in the operands that are unreduced works on the terms of their sums.

    Raises:
      UnreducedOperandError: it is not linear in them (a NotImplementedError, TypeError and ValueError).
      ShardingTypeError: the operands differ in these axes (a TypeError and ValueError).
    """
    specs = [PartitionSpec() if a.explicit is None else a.explicit.spec for a in avals]
    varying = _NO_AXES
    if any(map(is_of_shards, avals)):
        varying = _NO_AXES.union(*[a.varying for a in avals])
        _check_states(primitive, avals, specs, params, varying)
    moving = [i for i, spec in enumerate(specs) if spec.unreduced]
    unreduced, kind = (specs[moving[0]].unreduced, specs[moving[0]].unreduced_kind) if moving else (frozenset(), None)
    part = linear_part(primitive, moving, len(avals), params) if moving else None
    if moving and (part is None or _adds_constant(params, part.params) or kind is not UnreducedKind.sum):
        raise UnreducedOperandError(
            f"unreduced rule for {primitive.name} is not implemented: of {_shown(avals)} it would have to sum the "
            "terms on all devices first. Sum them by sharding.reshard(x, P(...))"
        )
    for i in () if part is None else part.joint:
        if avals[i].dtype.kind == "b":
            continue  # the condition of a select
        if specs[i].unreduced != unreduced:
            raise ShardingTypeError(
                f"lhs and rhs to `{primitive.name}` must be unreduced along the same mesh axes: of {_shown(avals)}, "
                f"one is unreduced over {sorted(map(str, unreduced))} and {avals[i]} is not. Reshard one of them"
            )
    return {"unreduced": unreduced, "reduced": _reduced(primitive, avals, specs, varying) - unreduced}


def _check_states(
    primitive: Primitive, avals: Sequence[ShapedArray], specs: Sequence[PartitionSpec], params: dict[str, Any],
    varying: frozenset[Any],
) -> None:  # fmt: skip
    """Raise if an operation within ``shard_map`` cannot work on values that are unreduced or reduced over its axes.

    Raises:
      ShardingTypeError: another operand varies along an axis over which an operand is unreduced; or it is a collective
        over an axis over which its operand is unreduced or reduced (a TypeError and ValueError).
    """
    terms = varying & _NO_AXES.union(*[spec.unreduced for spec in specs])
    if terms:
        raise ShardingTypeError(
            f"{primitive.name} of {_shown(avals)}: over {sorted(map(str, terms))} one operand is unreduced, a sum of "
            "terms on the devices, and another varies. Compute the sum first, with lax.psum or psum_scatter"
        )
    if primitive.axes_rule is not None:
        names = primitive.axes_rule(params) & _NO_AXES.union(*[spec.unreduced | spec.reduced for spec in specs])
        if names:
            raise ShardingTypeError(
                f"{primitive.name} of {_shown(avals)}, over {sorted(map(str, names))}: lax.psum and psum_scatter take "
                "unreduced values, all_gather and other collectives take varying ones: lax.pcast(x, axis, "
                "to='varying') makes them of reduced ones"
            )


def _adds_constant(params: dict[str, Any], without: dict[str, Any]) -> bool:
    """Whether parameters add a constant to results that ``without`` does not; NaN, for None, is the sum of NaNs."""
    return any(without.get(name) != value and value is not None for name, value in params.items())


def _reduced(
    primitive: Primitive, avals: Sequence[ShapedArray], specs: Sequence[PartitionSpec], varying: frozenset[Any]
) -> frozenset[Any]:
    """Return the axes of a mesh over which the results of an operation are reduced, with ``specs`` of its operands.

    Results are varying along the axes ``varying`` of ``shard_map``, not reduced.

    Raises:
      ShardingTypeError: the operands differ in these axes (a TypeError and ValueError).
    """
    found = {spec.reduced - varying for spec in specs if spec.reduced - varying}
    if len(found) > 1:
        raise ShardingTypeError(
            f"All inputs should be reduced across the same mesh axes: {primitive.name} got {_shown(avals)}"
        )
    reduced: frozenset[Any] = found.pop() if found else frozenset()
    divided = reduced.intersection(explicit_axes_of([e for spec in specs for e in spec.partitions]))
    if not traits.elementwise.of(primitive) or any(map(is_of_shards, avals)):
        return reduced - divided
    for aval, spec in zip(avals, specs, strict=True):
        names = reduced - spec.reduced - spec.unreduced
        if names and aval.explicit is not None:
            how = "sharded/varying" if names.intersection(explicit_axes_of(spec.partitions)) else "replicated"
            raise ShardingTypeError(
                f"Inputs cannot be {how} on the same axes that another input is reduced on: {primitive.name} got "
                f"{_shown(avals)}. Change the sharding of one of them, by sharding.reshard(x, P(...))"
            )
    return reduced


def is_of_shards(aval: ShapedArray) -> bool:
    """Whether values are unreduced or reduced over axes of ``shard_map``, within it."""
    return aval.explicit is not None and not aval.explicit.mesh.explicit_axes


def _shown(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(format, avals))


def by_axes(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], results: Sequence[ShapedArray]
) -> list[Entries]:
    """Return the entries of the sharding of each result, by the map of axes of the operation."""
    found: list[Entries] = [[None] * len(a.shape) for a in results]
    shapes = [a.shape for a in avals]
    for i, a in enumerate(avals):
        for axis, entry in enumerate(entries_of(a)):
            if entry is not None:
                to = _result_axis(primitive, axis, i, shapes, params, results)
                if to is None:
                    raise refused(primitive, avals, i, axis)
                for entries in found:
                    if to != GONE and to < len(entries):
                        put_entry(primitive, avals, entries, to, entry)
    return found


def _result_axis(
    primitive: Primitive, axis: int, operand: int, shapes: Sequence[Any], params: dict[str, Any], results: Sequence[Any]
) -> int | None:
    """Return the axis of each result that is divided as an axis of an operand; GONE or None as in ``axis_divided``."""
    if traits.elementwise.of(primitive):
        to: int | None = axis + len(results[0].shape) - len(shapes[operand])
        return to if results[0].shape[to] == shapes[operand][axis] else GONE
    if primitive.axes_rule is not None and all(a.shape == shapes[operand] for a in results):
        return axis  # a collective over named axes, which takes each element for itself
    kept = axis_kept.of(primitive)
    to = None if kept is None else kept(axis, operand, *shapes, **params)
    if to is None:
        divided = axis_divided.of(primitive)
        to = None if divided is None else divided(axis, operand, *shapes, **params)
    return to


def put_entry(primitive: Primitive, avals: Sequence[ShapedArray], entries: Entries, axis: int, entry: Any) -> None:
    """Set an entry of a result's sharding; raise if another operand has set another one.

    Raises:
      ShardingTypeError: two operands divide the axis differently (a TypeError and ValueError).
    """
    if entries[axis] is not None and entries[axis] != entry:
        raise ShardingTypeError(
            f"{primitive.name} got incompatible shardings for broadcasting: the operands {_shown(avals)} divide axis "
            f"{axis} of the result by {entries[axis]!r} and by {entry!r}. {REMEDY}"
        )
    entries[axis] = entry


def refused(primitive: Primitive, avals: Sequence[ShapedArray], operand: int, axis: int) -> ShardingTypeError:
    """Return the error for an operand that is sharded along an axis along which the operation cannot be divided."""
    entry = entries_of(avals[operand])[axis]
    return ShardingTypeError(
        f"{primitive.name} of {_shown(avals)}: axis {axis} of operand {operand} is sharded over {entry!r}, so that the "
        f"sharding of the result is ambiguous: Input should be unsharded over this axis. {REMEDY}"
    )


def reshaped_entries(x: ShapedArray, new_sizes: Sequence[int]) -> Entries | None:
    """Return the entries of the sharding of an array of type ``x`` after a reshape; None if it is not divided so.

    The axes of the operand are products of factors: those of the mesh that divide them, then the rest. Each axis of the
    result takes factors in this order, those of the mesh first: ``[8@x, 2]`` with x of size 2 becomes ``[2@x, 4, 2]``.
    """
    entries, sizes = entries_of(x), {} if x.explicit is None else x.explicit.mesh.shape
    if not any(entries):
        return [None] * len(new_sizes)
    if any_symbolic((*x.shape, *new_sizes)) or 0 in x.shape:
        return None
    factors: list[tuple[Any, int]] = []  # an axis of the mesh or None, and its size; the first factor is the last here
    for n, entry in zip(reversed(x.shape), reversed(entries), strict=True):
        if n != 1:
            names = names_in(entry)
            rest = n // math.prod([sizes[a] for a in names])
            if factors and factors[-1][0] is None:
                rest *= factors.pop()[1]
            factors += [(None, rest), *((a, sizes[a]) for a in reversed(names))]
    found: Entries = []
    for i, n in enumerate(new_sizes):
        own = names_in(entries[i]) if n == 1 and i < len(x.shape) and x.shape[i] == 1 else _taken(factors, n)
        if own is None:
            return None
        found.append(own or None)
    return found if not any(name for name, _ in factors) else None


def _taken(factors: list[tuple[Any, int]], n: int) -> tuple[Any, ...] | None:
    """Take factors of a product ``n`` from the end of a list; return the axes of a mesh among them, or None."""
    names: list[Any] = []
    divided = True  # whether all factors so far are axes of the mesh
    while n > 1:
        name, k = factors.pop()
        shared = math.gcd(n, k)
        if name is not None:
            if shared < k or not divided:
                return None
            names.append(name)
        elif shared < min(n, k):
            return None
        else:
            divided = divided and shared == 1
            if k > shared:
                factors.append((None, k // shared))
        n //= shared
    while factors and factors[-1][0] is not None and factors[-1][1] == 1:
        names.append(factors.pop()[0])
    return tuple(names)


# Changes of shardings -------------------------------------------------------------------------------------------------


reshard_p = Primitive("reshard", moves=True)
reshard_p.jvp_rule = jvp_linear(reshard_p)
sharding_rule(reshard_p)(as_moved)


def resharded(x: Any, sharding: NamedSharding) -> Any:
    """Return ``x`` with another sharding in its type."""
    if not sharding.mesh.explicit_axes:
        aval = typeof(x)
        aval = aval.update(sharding=sharding, varying=aval.varying - sharding.spec.unreduced - sharding.spec.reduced)
        return runtime.in_states(x, aval, sharding.spec.unreduced | sharding.spec.reduced)
    if sharding.spec.unreduced:
        whole = between(typeof(x).explicit, sharding)
        if whole is not None:
            x = reshard_p.bind(x, sharding=whole)
    return reshard_p.bind(x, sharding=sharding)


@reshard_p.abstract_eval
def _reshard_abstract(x: ShapedArray, *, sharding: NamedSharding) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype, sharding=sharding)


@reshard_p.impl
def _reshard(args: Sequence[Any], params: dict[str, Any]) -> Any:
    x, sharding = args[0], params["sharding"]
    known = signature_of(x).placement
    placement = over_devices(sharding, [] if known is None else [known])
    typed = placement.in_types(x.shape)
    return _committed(x, placement if typed is None else placement.update(spec=typed.spec))


def _committed(x: Any, placement: NamedSharding) -> Any:
    with transfers.explicit():
        buffer = buffer_at(x, placement)
    if getattr(x, "_buffer", None) is buffer:  # donation of one of the two must not invalidate the other
        shared(buffer)
    return from_buffer(buffer, signature(x.shape, x.dtype, bool(x.weak_type), placement))


@reshard_p.transpose
def _reshard_transpose(ct: Any, x: LinearVar, *, sharding: NamedSharding) -> Any:
    return (ct,)  # the backward pass gives it the sharding of the operand


@reshard_p.batch
def _reshard_batch(axis: MappedAxis, args: Any, dims: Any, *, sharding: NamedSharding) -> Any:
    (x,), (d,) = args, dims
    entry = entries_of(typeof(x))[d] if axis.spmd_name is None else axis.spmd_name
    partitions = sharding.spec.partitions
    padded = (*partitions, *[None] * (len(x.shape) - 1 - len(partitions)))
    spec = sharding.spec.update((*padded[:d], entry, *padded[d:]))
    return resharded(x, NamedSharding(sharding.mesh, spec)), d


@reshard_p.lowering
def _reshard_lowering(hlo: Any, x: Any, *, sharding: NamedSharding) -> Any:
    hlo.module.mesh(sharding.mesh)
    return x  # the type of the result becomes a constraint: see hlo/emit


mesh_cast_p = Primitive("mesh_cast", moves=True)
mesh_cast_p.jvp_rule = jvp_linear(mesh_cast_p)
sharding_rule(mesh_cast_p)(as_moved)


def to_auto(x: Any, axes: Sequence[Any] | None = None) -> Any:
    """Return ``x`` with a type in which the compiler decides along axes of the mesh; None stands for all axes.

    Operations on the result are not refused, and their results have no sharding in their types. A value whose type has
    no sharding is returned unchanged.
    """
    explicit = typeof(x).explicit
    if explicit is None or not explicit.mesh.explicit_axes:
        return x
    if explicit.has_reductions:  # the compiler must not take the terms for the elements
        x = resharded(x, explicit.without_reductions())
    names = explicit.mesh.explicit_axes if axes is None else [n for n in axes if n in explicit.mesh.explicit_axes]
    if not names:
        return x
    mesh = explicit.mesh.update_axis_types(dict.fromkeys(names, AxisType.Auto))
    return mesh_cast_p.bind(x, mesh=mesh)


@mesh_cast_p.abstract_eval
def _cast_abstract(x: ShapedArray, *, mesh: AbstractMesh) -> ShapedArray:
    spec = PartitionSpec() if x.explicit is None else x.explicit.spec
    return ShapedArray(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))


@mesh_cast_p.impl
def _cast(args: Sequence[Any], params: dict[str, Any]) -> Any:
    (x,), mesh = args, params["mesh"]
    placement = signature_of(x).placement
    if not isinstance(placement, NamedSharding):
        return x
    return _committed(x, placement.update(mesh=placement.mesh.update(axis_types=mesh.axis_types)))


mesh_cast_p.transpose(lambda ct, x, *, mesh: (like(ct, x.aval),))
mesh_cast_p.batch(lambda axis, args, dims, *, mesh: (mesh_cast_p.bind(*args, mesh=mesh), dims[0]))
mesh_cast_p.lowering(lambda hlo, x, *, mesh: x)


def with_out_sharding(sharding: NamedSharding | None, function: Callable[..., Any], *operands: Any) -> Any:
    """Return ``function(*operands)`` with a given sharding, whatever those of the operands are; None leaves it open.

    The compiler decides how the function runs. ``function`` returns one array.
    """
    if sharding is None:
        return function(*operands)
    return resharded(function(*map(to_auto, operands)), sharding)


# Rules that are refused -----------------------------------------------------------------------------------------------


@provides
def explicit_derivative(primitive: Primitive, rule: Any, primals: Any, tangents: Any, params: dict[str, Any]) -> Any:
    avals = [typeof(x) for x in primals]
    if any(map(is_of_shards, avals)):
        raise
    types = _types_of(primitive, avals, primals, params)
    auto = [t if t is ZERO else to_auto(t) for t in tangents]
    out, tangent = rule([_auto(x) for x in primals], auto, **params)
    if not primitive.multiple_results:
        return _with_type(out, types[0]), _with_type(tangent, types[0])
    return list(map(_with_type, out, types)), list(map(_with_type, tangent, types))


@provides
def explicit_batch(
    primitive: Primitive, rule: Any, axis: MappedAxis, args: Any, dims: Any, params: dict[str, Any]
) -> Any:
    avals = [typeof(x) for x in args]
    if any(map(is_of_shards, avals)):
        raise
    entry = entry_of_batch(args, dims)
    examples = [a if d is None else a.without_axis(d) for a, d in zip(avals, dims, strict=True)]
    types = _types_of(primitive, examples, args, params)
    out, dim = rule(axis, list(map(_auto, args)), dims, **params)
    outs, dims = (out, dim) if primitive.multiple_results else ([out], [dim])
    outs = [
        _with_type(x, a if d is None else a.with_axis(d, axis.size, entry))
        for x, a, d in zip(outs, types, dims, strict=True)
    ]
    return (outs if primitive.multiple_results else outs[0]), dim


def entry_of_batch(args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Return the axes of a mesh by which the types of batched operands divide the batch; None if none does."""
    for x, d in zip(args, dims, strict=True):
        if d is not None and type(x) is not ArrayImpl and isinstance(x, Array):
            explicit = x.aval.explicit
            if explicit is not None and explicit.spec.partitions[d] is not None:
                return explicit.spec.partitions[d]
    return None


def _types_of(primitive: Primitive, avals: Sequence[ShapedArray], args: Any, params: dict[str, Any]) -> Any:
    """Return the types of the results of an operation; raise the current error if its rules do not stand for it."""
    if _is_typed(primitive, params):
        raise
    out = infer(primitive, resolve_weak_scalars(avals, args), params)
    return out if primitive.multiple_results else [out]


def _auto(x: Any) -> Any:
    return x if type(x) in SCALARS else to_auto(x)


def _with_type(x: Any, aval: ShapedArray) -> Any:
    return x if x is ZERO or aval.explicit is None else resharded(x, aval.explicit)


# The backward pass ----------------------------------------------------------------------------------------------------


@provides
def explicit_cotangents(node: Any, ct: Any, reduced: Any) -> Any:
    """Return the cotangents of the operands of ``node``, each with the sharding of its operand.

    The transposition rule runs on values without shardings in their types, so that it is never refused.
    """
    args, cts = node.args, None
    given = [*(ct if node.results is not None else [ct]), *args]
    if any(hasattr(x, "aval") and is_of_shards(x.aval) for x in given):
        return _within_shard_map(node, ct, reduced)
    reduces = [a.explicit.spec.reduced for x in args if type(x) is LinearVar and (a := x.aval).explicit is not None]
    over = _NO_AXES.union(*reduces)
    if over or any(c is not ZERO and is_unreduced(c) for c in (ct if node.results is not None else [ct])):
        with suppress(ShardingTypeError):  # by terms, where the rule is linear in what is unreduced
            cts = _by_terms(node, ct, reduced, over) if over else _transposed(node, ct, reduced)
    if cts is None and not _is_typed(node.primitive, node.params):
        auto = [to_auto(c) if c is not ZERO else c for c in ct] if node.results is not None else to_auto(ct)
        values = tuple([x if type(x) is LinearVar or not hasattr(x, "aval") else to_auto(x) for x in args])
        node, ct = _with_args(node, values), auto
    cts = _transposed(node, ct, reduced) if cts is None else cts
    return [like(c, x.aval) if type(x) is LinearVar and c is not None else c for x, c in zip(args, cts)]


def _within_shard_map(node: Any, ct: Any, reduced: Any) -> Any:
    """Return the cotangents of the operands of ``node``, where values are unreduced over axes of ``shard_map``.

    Where the transposition rule is not linear in the terms, it runs on their sums.
    """
    try:
        return _transposed(node, ct, reduced)
    except ShardingTypeError:
        names = frozenset([axis.name for axis in reduced or ()])
        whole = lambda x: _without_terms(x, names)
        cts = list(map(whole, ct)) if node.results is not None else whole(ct)
        return _transposed(_with_args(node, tuple(map(whole, node.args))), cts, reduced)


def _without_terms(x: Any, names: frozenset[Any]) -> Any:
    """Return an array, if it is unreduced over the axes ``names`` of ``shard_map``, as the sum over them."""
    if type(x) is LinearVar or not hasattr(x, "aval") or not x.aval.mat.unreduced:
        return x
    spec = x.aval.explicit.spec
    return runtime.in_states(x, x.aval.update(sharding=x.aval.explicit.update(spec=spec.update(unreduced=()))), names)


def _transposed(node: Any, ct: Any, reduced: Any) -> Any:
    if reduced:
        return runtime.transpose_over(node, ct, reduced)
    return node.primitive.transpose_rule(ct, *node.args, **node.params)


def _by_terms(node: Any, ct: Any, reduced: Any, over: frozenset[Any]) -> list[Any]:
    """Return the cotangents of the operands of ``node``, whose sums stay unreduced over the axes ``over`` of a mesh."""
    known = [type(x) is not LinearVar and hasattr(x, "aval") for x in node.args]
    given = [ct] if node.results is None else [c for c in ct if c is not ZERO]
    wanted: list[bool] = []

    def back(*values: Any) -> list[Any]:
        rest = iter(values)
        args = tuple([next(rest) if is_array else x for x, is_array in zip(node.args, known, strict=True)])
        cts = next(rest) if node.results is None else [c if c is ZERO else next(rest) for c in ct]
        found = _transposed(_with_args(node, args), cts, reduced)
        wanted[:] = [c is not None and c is not ZERO for c in found]
        return [c for c, is_array in zip(found, wanted, strict=True) if is_array]

    operands = [x for x, is_array in zip(node.args, known, strict=True) if is_array]
    found = iter(runtime.by_terms(back, [*operands, *given], over))
    return [next(found) if is_array else None for is_array in wanted]


def is_unreduced(x: Any) -> bool:
    """Whether the elements of an array are sums over a mesh whose terms are on the devices."""
    explicit = typeof(x).explicit
    return explicit is not None and bool(explicit.spec.unreduced)


def _with_args(node: Any, args: tuple[Any, ...]) -> Any:
    out = LinearVar(node.index, node.primitive, args, node.params, node._aval, node.results)
    out.provenance = node.provenance
    return out


def like(ct: Any, aval: ShapedArray) -> Any:
    """Return a cotangent with the sharding that cotangents of the type ``aval`` have; ZERO is returned unchanged.

    A value whose type has no sharding is not divided, and so is its cotangent.
    """
    if ct is ZERO:
        return ct
    have = typeof(ct).explicit
    if is_of_shards(aval) or is_of_shards(typeof(ct)):
        return ct  # the backward pass sums it over the axes
    if aval.explicit is not None:
        wanted = aval.explicit.of_cotangents()
    elif have is None:
        return ct
    else:
        wanted = NamedSharding(have.mesh, PartitionSpec(*[None] * len(aval.shape)))
    return ct if have == wanted else resharded(ct, wanted)


def explicit_axes_of(entries: Sequence[Any]) -> list[Any]:
    """Return the axes of a mesh in the entries of a sharding."""
    return [name for entry in entries for name in names_in(entry)]
