"""Shardings: how arrays are divided into shards, and which device holds which shard."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from pullback.backends.devices.devices import Device, DeviceAssignment, memory_kinds
from pullback.backends.devices.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    current_mesh,
    get_abstract_mesh,
    in_types,
    mesh_of_type,
)
from pullback.backends.devices.specs import UNCONSTRAINED as UNCONSTRAINED
from pullback.backends.devices.specs import P as P
from pullback.backends.devices.specs import PartitionSpec as PartitionSpec
from pullback.backends.devices.specs import UnreducedKind as UnreducedKind
from pullback.backends.devices.specs import names_in as names_in
from pullback.core.errors import IndivisibleError, ShardingError
from pullback.core.locks import cached_property
from pullback.core.naming import quoted
from pullback.core.runtime import provides, runtime

Index = tuple[slice, ...]


class Sharding:
    """The division of an array into shards on devices. This is the base class of all shardings.

    >>> import pullback.numpy as jnp
    >>> from pullback.sharding import Sharding
    >>> sharding = jnp.arange(4.0).sharding
    >>> isinstance(sharding, Sharding), sharding.shard_shape((4,)), sharding.num_devices
    (True, (4,), 1)
    """

    __slots__ = ()
    memory_kind: str = "device"

    def _repr_html_(self) -> str | None:
        return runtime.html_of(self)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold shards."""
        raise NotImplementedError

    def in_types(self, shape: Sequence[int]) -> NamedSharding | None:
        """Return None: types contain only shardings over meshes, of the class :class:`NamedSharding`."""
        return None

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """Return the slices of each device's shard in an array of a shape.

        Args:
          global_shape: the shape of the whole array, a sequence of integers.

        Returns:
          A mapping from devices to tuples of slices.

        Raises:
          ShardingError: the array has too few axes (a ValueError).
          IndivisibleError: an axis is not divided evenly (a ValueError).

        >>> import pullback.numpy as jnp
        >>> list(jnp.arange(4.0).sharding.devices_indices_map((4,)).values())
        [(slice(None, None, None),)]
        """
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of each shard of an array of a shape.

        Args:
          global_shape: the shape of the whole array, a sequence of integers.

        Returns:
          A tuple of integers.

        Raises:
          ShardingError, IndivisibleError: as of :meth:`devices_indices_map`.

        >>> import pullback.numpy as jnp
        >>> jnp.ones(2).sharding.shard_shape((4, 2))
        (4, 2)
        """
        raise NotImplementedError

    @property
    def num_devices(self) -> int:
        """The number of devices that hold shards."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process that hold shards."""
        return {d for d in self.device_set if d.is_local}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices of this process that hold shards, in the order of their numbers. Orbax reads arrays onto them."""
        return tuple(sorted(self.addressable_devices, key=lambda d: d.id))

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process holds shards."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return all(d.is_local for d in self.device_set)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all elements."""
        raise NotImplementedError

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """Return the slices of the shards of this process in an array of a shape.

        Args:
          global_shape: the shape of the whole array, a sequence of integers.

        Returns:
          A mapping from the devices of this process to tuples of slices.

        Raises:
          ShardingError, IndivisibleError: as of :meth:`devices_indices_map`.
        """
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d.is_local}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return whether two shardings put the same shards of arrays on the same devices.

        Args:
          other: a sharding.
          ndim: the number of axes of the arrays, an integer.

        Returns:
          True or False.

        Raises:
          ShardingError: ``other`` is no sharding (a ValueError).

        >>> import pullback.numpy as jnp
        >>> jnp.ones(2).sharding.is_equivalent_to(jnp.zeros(3).sharding, 1)
        True
        """
        if not isinstance(other, Sharding):
            raise ShardingError(f"is_equivalent_to: expected a Sharding, got {quoted(other)}")
        return self == other or self._layout(ndim) == other._layout(ndim)

    def _layout(self, ndim: int) -> Any:
        """A key that shardings share if they divide arrays of rank ``ndim`` alike over the same devices."""
        raise NotImplementedError

    def with_memory_kind(self, kind: str) -> Self:
        """Return a sharding over the same devices, in another of their memories.

        Args:
          kind: the kind of memory: ``"device"``, and on CPUs ``"pinned_host"`` and ``"unpinned_host"`` too.

        Returns:
          A sharding of the same class.

        Raises:
          ShardingError: the devices have no memory of that kind (a ValueError).
        """
        raise NotImplementedError

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise the errors of :meth:`devices_indices_map` if the sharding cannot divide arrays of a shape.

        Args:
          aval_shape: the shape of an array, a sequence of integers.

        Raises:
          ShardingError: the array has too few axes (a ValueError).
          IndivisibleError: an axis is not divided evenly (a ValueError).
        """
        self.shard_shape(aval_shape)


def _checked_memory(kind: Any, platform: str, who: str, device: Device | None = None) -> str:
    """Return the kind of memory, which is ``"device"`` for None; raise if devices of the platform have no such memory.

    ``who`` is the class, for error messages; ``device`` is one of the devices, if they are known.
    """
    known = memory_kinds(platform, device)
    if kind is None:
        return known[0]
    if kind not in known:
        raise ShardingError(
            f"{who}: the memories of devices of the platform {platform!r} are {', '.join(map(repr, known))}, got "
            f"memory_kind={quoted(kind)}"
        )
    return str(kind)


class SingleDeviceSharding(Sharding):
    """A sharding that puts all elements on one device.

    Args:
      device: one of ``devices()``.
      memory_kind: the memory of the device, ``"device"`` by default; CPUs have ``"pinned_host"`` and
        ``"unpinned_host"`` too, which are the same memory.

    Raises:
      ShardingError: ``device`` is no device, or has no such memory (a ValueError and TypeError).

    >>> from pullback import devices
    >>> from pullback.sharding import SingleDeviceSharding
    >>> SingleDeviceSharding(devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("_device", "memory_kind")

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        if not isinstance(device, Device):
            raise ShardingError(f"SingleDeviceSharding: expected one of devices(), got {quoted(device)}")
        self._device = device
        self.memory_kind = _checked_memory(memory_kind, device.platform, "SingleDeviceSharding", device)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def placement(self) -> Device | NamedSharding:
        """The placement of arrays with this sharding: the device, or a sharding over a mesh of it alone."""
        if self.memory_kind == "device":
            return self._device
        return NamedSharding(_alone(self._device), PartitionSpec(), memory_kind=self.memory_kind)

    @property
    def device_set(self) -> set[Device]:
        return {self._device}

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        return {self._device: (slice(None),) * len(global_shape)}

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def _layout(self, ndim: int) -> Any:
        return ((self._device,), (1,) * ndim, (0,))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is SingleDeviceSharding
            and other._device is self._device
            and other.memory_kind == self.memory_kind
        )

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"

    def __reduce__(self) -> Any:
        return make_single_device_sharding, (self._device, self.memory_kind)


def _alone(device: Device) -> Mesh:
    """The mesh of one device, over which are the arrays in another memory than its own."""
    return Mesh([device], (_ALONE,))


_ALONE = "_alone"


def as_sharding(placement: Any) -> Sharding:
    """Convert a placement, a device or a sharding, to the sharding that users see."""
    if isinstance(placement, Device):
        return SingleDeviceSharding(placement)
    if placement.memory_kind != "device" and placement.mesh.axis_names == (_ALONE,):
        return SingleDeviceSharding(placement.mesh.devices.item(), memory_kind=placement.memory_kind)
    sharding: Sharding = placement
    return sharding


def make_single_device_sharding(device: Device, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Make a sharding that puts all elements on one device.

    Args:
      device: one of ``devices()``.
      memory_kind: the memory of the device, as for :class:`SingleDeviceSharding`.

    Returns:
      A :class:`SingleDeviceSharding`.

    Raises:
      ShardingError: ``device`` is no device, or has no such memory (a ValueError and TypeError).

    >>> from pullback import devices
    >>> from pullback.sharding import make_single_device_sharding
    >>> make_single_device_sharding(devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """A sharding that divides the axes of an array among the named axes of a mesh.

    Args:
      mesh: a :class:`Mesh`; an :class:`AbstractMesh` is for types only.
      spec: a :class:`PartitionSpec` of names of the mesh's axes.
      memory_kind: the memory of the devices, as for :class:`SingleDeviceSharding`.

    Raises:
      ShardingError: the specification has a name that the mesh lacks, or repeats one; or the devices have no such
        memory (a ValueError and TypeError).

    >>> from pullback import NamedSharding, make_mesh
    >>> from pullback.sharding import PartitionSpec
    >>> mesh = make_mesh((1, 1), ("x", "y"))
    >>> NamedSharding(mesh, PartitionSpec(None, "x")).shard_shape((4, 6))
    (4, 6)
    """

    __slots__ = ("__dict__", "__weakref__", "bound", "memory_kind", "mesh", "spec")
    is_host = False

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ShardingError(f"NamedSharding: expected a Mesh, got {quoted(mesh)} of type {type(mesh).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise ShardingError(
                f"NamedSharding: expected a PartitionSpec, got {quoted(spec)} of type {type(spec).__name__}. "
                "PartitionSpec() means that every device has the whole array."
            )
        used: set[Any] = set()
        for name in itertools.chain(*map(names_in, spec.partitions), spec.unreduced, spec.reduced):
            if name not in mesh.axis_names:
                known = ", ".join(map(repr, mesh.axis_names)) or "none"
                raise ShardingError(f"NamedSharding: {spec} names the axis {name!r}, but the mesh has the axes {known}")
            if name in used:
                raise ShardingError(
                    f"NamedSharding: {spec} names the axis {name!r} more than once: an axis of a mesh can divide "
                    f"only one axis of an array"
                )
            used.add(name)
        self.mesh = mesh
        self.spec = spec
        if memory_kind is None:
            self.memory_kind = "device"
        else:
            device = mesh.abstract_mesh.abstract_device
            member = mesh.devices.flat[0] if isinstance(mesh, Mesh) and mesh.size else None
            platform = device.platform if device else "cpu"
            self.memory_kind = _checked_memory(memory_kind, platform, "NamedSharding", member)
        self.bound: Any = None  # the backend's object for it, made at first use

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    @property
    def assignment(self) -> DeviceAssignment:
        """The devices of the mesh."""
        if isinstance(self.mesh, AbstractMesh):
            raise ShardingError(f"{self!r} has an AbstractMesh, which has no devices: pass a Mesh")
        return self.mesh.assignment

    @property
    def runs_on(self) -> DeviceAssignment:
        """The devices on which programs run whose arrays have this sharding."""
        return self.assignment

    @property
    def platform(self) -> str:
        """The platform of the mesh's devices."""
        return self.assignment.platform

    @property
    def device_set(self) -> set[Device]:
        return set(self.assignment.devices)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_addressable(self) -> bool:
        return self.assignment.is_local

    @cached_property
    def is_fully_replicated(self) -> bool:  # type: ignore[override]
        names = [*itertools.chain.from_iterable(map(names_in, self.spec.partitions)), *self.spec.unreduced]
        return all(self.mesh.shape[n] == 1 for n in names)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that divide no axis of an array."""
        spec = self.spec
        used = {*itertools.chain.from_iterable(map(names_in, spec.partitions)), *spec.unreduced, *spec.reduced}
        return frozenset(n for n in self.mesh.axis_names if n not in used)

    # Shardings in types

    def in_types(self, shape: Sequence[int]) -> NamedSharding | None:
        """Return the part of the sharding that types of arrays of a shape contain; None if the mesh has no part.

        It is a sharding over an abstract mesh, with an entry for each axis of the array, of explicit axes only. Its
        unreduced and reduced axes may be of the type ``Manual``, within ``shard_map``.

        Raises:
          ShardingError: the specification has more entries than the arrays have axes (a ValueError and TypeError).
          IndivisibleError: an axis is not divided evenly (a ValueError and TypeError).
        """
        spec, mesh = self.spec, self.mesh.abstract_mesh
        sums = self.has_reductions and AxisType.Manual in mesh.axis_types
        if AxisType.Explicit not in mesh.axis_types and not sums:
            return None
        if isinstance(self.mesh, Mesh):
            in_types(self.mesh)
        is_typed = mesh is self.mesh and mesh.are_all_axes_explicit and UNCONSTRAINED not in spec.partitions
        if is_typed and self.memory_kind == "device" and len(spec) == len(shape):
            self._check_divides(shape)
            return self
        if len(spec) > len(shape):
            raise ShardingError(
                f"Length of sharding.spec ({len(spec)}) must be equal to the rank ({len(shape)}) of an array of type "
                f"{tuple(shape)}, or less: got {spec}"
            )
        kept = set(mesh.explicit_axes)
        entries = [tuple(n for n in names_in(entry) if n in kept) for entry in spec.partitions]
        kept.update(mesh.manual_axes)
        typed = spec.update(
            (*entries, *([None] * (len(shape) - len(entries)))), spec.unreduced & kept, spec.reduced & kept
        )
        if not (mesh.explicit_axes or typed.unreduced or typed.reduced):
            return None
        out = NamedSharding(mesh, typed)
        out._check_divides(shape)
        return out

    def _check_divides(self, shape: Sequence[int]) -> None:
        """Raise unless the sharding divides arrays of a shape evenly; symbolic sizes pass."""
        for axis, (n, k) in enumerate(zip(shape, self.factors(len(shape)), strict=True)):
            if k > 1 and isinstance(n, int) and n % k:
                raise IndivisibleError(
                    f"axis {axis} of an array of shape {tuple(shape)} is partitioned {k} times by {self.spec}, which "
                    f"does not evenly divide the dimension size {n}. Pad the array, or choose another specification."
                )

    def with_axis(self, dim: int, entry: str | tuple[str, ...] | None) -> NamedSharding:
        """Return the sharding of arrays with a new axis at ``dim``, which the mesh axes ``entry`` divide."""
        entries = self.spec.partitions
        return NamedSharding(self.mesh, self.spec.update((*entries[:dim], entry, *entries[dim:])))

    def without_axis(self, dim: int) -> NamedSharding:
        """Return the sharding of arrays without the axis ``dim``."""
        entries = self.spec.partitions
        return NamedSharding(self.mesh, self.spec.update(entries[:dim] + entries[dim + 1 :]))

    @cached_property
    def has_reductions(self) -> bool:
        """Whether arrays are unreduced or reduced over axes of the mesh."""
        return bool(self.spec.unreduced or self.spec.reduced)

    def without_reductions(self) -> NamedSharding:
        """Return the sharding without unreduced and reduced axes, over which arrays are not divided then."""
        spec = self.spec
        return self.update(spec=PartitionSpec(*spec.partitions)) if spec.unreduced or spec.reduced else self

    def are_terms(self) -> list[bool]:
        """For each device whether it has the elements of a new array: all, but for an array that is unreduced.

        Of such an array the first devices along the unreduced axes have the elements, and the others have zeros.
        """
        unreduced = [i for i, n in enumerate(self.mesh.axis_names) if n in self.spec.unreduced]
        where = np.indices(self.mesh.axis_sizes)[unreduced]
        return (~where.any(0)).ravel().tolist()  # type: ignore[no-any-return]

    def of_cotangents(self) -> NamedSharding:
        """Return the sharding of the cotangents of arrays: unreduced and reduced axes change roles."""
        spec = self.spec
        if not spec.unreduced and not spec.reduced:
            return self
        return NamedSharding(self.mesh, PartitionSpec(*spec.partitions, unreduced=spec.reduced, reduced=spec.unreduced))

    def shown(self) -> tuple[list[str], list[str]]:
        """Return the texts of the entries in types, such as ``@x``, and of the reductions, such as ``U:y``."""
        spec = self.spec
        entries = [
            "" if entry is None else f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"
            for entry in spec.partitions
        ]
        marks = []
        unreduced = "U" if spec.unreduced_kind in (None, UnreducedKind.sum) else f"U_{spec.unreduced_kind.name}"
        for mark, axes in (unreduced, spec.unreduced), ("R", spec.reduced):
            names = [str(n) for n in self.mesh.axis_names if n in axes]
            if names:
                marks.append(f"{mark}:{names[0] if len(names) == 1 else f'({chr(44).join(names)})'}")
        return entries, marks

    def update(self, mesh: Mesh | AbstractMesh | None = None, spec: PartitionSpec | None = None) -> NamedSharding:
        """A copy of the sharding with another mesh or specification; None keeps that of this sharding."""
        mesh, spec = self.mesh if mesh is None else mesh, self.spec if spec is None else spec
        return NamedSharding(mesh, spec, memory_kind=self.memory_kind)

    def factors(self, ndim: int) -> tuple[int, ...]:
        """The number of shards along each axis of an array of rank ``ndim``.

        Raises:
          ShardingError: the specification has more than ``ndim`` entries (a ValueError and TypeError).
        """
        if len(self.spec) > ndim:
            raise ShardingError(
                f"{self!r} needs an array of at least {len(self.spec)} axes, but got one of {ndim}: the "
                f"specification has an entry for each of the first axes of the array"
            )
        sizes = self.mesh.shape
        found = [math.prod([sizes[n] for n in names_in(entry)]) for entry in self.spec.partitions]
        return (*found, *([1] * (ndim - len(found))))

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape = tuple(global_shape)
        factors = self.factors(len(shape))
        for axis, (n, k) in enumerate(zip(shape, factors, strict=True)):
            if n % k:
                raise IndivisibleError(
                    f"axis {axis} of an array of shape {shape} has the size {n}, which cannot be divided into {k} "
                    f"equal shards as {self!r} requires. Pad the array, or choose another mesh or specification."
                )
        return tuple(n // k for n, k in zip(shape, factors, strict=True))

    def shard_indices(self, ndim: int) -> np.ndarray[Any, Any]:
        """Find which shard each device holds of an array of rank ``ndim``.

        Returns:
          An integer array of shape (devices, ``ndim``): in each row the index of a device's shard along each axis.
        """
        coordinates = np.indices(self.mesh.axis_sizes).reshape(len(self.mesh.axis_sizes), -1)
        where = {name: coordinates[i] for i, name in enumerate(self.mesh.axis_names)}
        sizes = self.mesh.shape
        out = np.zeros((self.mesh.size, ndim), int)
        for axis, entry in enumerate(self.spec.partitions):
            for name in names_in(entry):
                out[:, axis] = out[:, axis] * sizes[name] + where[name]
        return out

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        indices = self.indices(tuple(global_shape))
        return dict(zip(self.assignment.devices, indices, strict=True))

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        """The slices of each device's shard in an array of a given shape; the devices are in the order of the mesh."""
        sizes, factors = self.shard_shape(shape), self.factors(len(shape))
        return [
            tuple(
                slice(None) if k == 1 else slice(int(i) * n, (int(i) + 1) * n)
                for i, n, k in zip(shard, sizes, factors, strict=True)
            )
            for shard in self.shard_indices(len(shape))
        ]

    def _layout(self, ndim: int) -> Any:
        factors = self.factors(ndim)
        numbers = np.zeros(self.mesh.size, int)
        for axis, k in enumerate(factors):
            numbers = numbers * k + self.shard_indices(ndim)[:, axis]
        layout = self.assignment.devices, factors, tuple(numbers.tolist())
        return (*layout, self.spec.unreduced, self.spec.unreduced_kind) if self.spec.unreduced else layout

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is NamedSharding
            and self.spec == other.spec
            and self.mesh == other.mesh
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.mesh, self.spec, self.memory_kind))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}, memory_kind={self.memory_kind})"

    def __reduce__(self) -> Any:
        return partial(NamedSharding, memory_kind=self.memory_kind), (self.mesh, self.spec)


@provides
def undivided(shape: Sequence[int]) -> NamedSharding:
    """Return the sharding of the type of an array that is not sharded: over the current mesh, not divided."""
    return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * len(shape)))


def over_devices(sharding: NamedSharding, others: Sequence[Any] = ()) -> NamedSharding:
    """Return a sharding of a type over the devices of a mesh.

    It is the mesh of one of the placements ``others``, the current mesh, or the one that the type came from. If there
    is no such mesh, the sharding is returned unchanged.
    """
    if isinstance(sharding.mesh, Mesh):
        return sharding
    known = mesh_of_type(sharding.mesh)
    for mesh in (*[p.mesh for p in others if isinstance(p, NamedSharding)], current_mesh(), known):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            typed = mesh if mesh.abstract_mesh == sharding.mesh else mesh.update(axis_types=sharding.mesh.axis_types)
            return NamedSharding(typed, sharding.spec)
    return sharding


def of_types(
    avals: Sequence[Any], placements: Sequence[Any], requested: Sequence[Any] = ()
) -> list[NamedSharding | None]:
    """Return the sharding of each result of a program, as far as its type says it; an empty list if none does.

    Under a mesh of explicit axes, a result of sharded operands whose type has no sharding is not divided.

    Args:
      avals: the types of the results.
      placements: the placements of the program's inputs.
      requested: for each result the sharding that the caller requests, or None; empty if there are no requests.
    """
    found, mesh = list(requested) or [None] * len(avals), current_mesh()
    is_explicit = isinstance(mesh, Mesh) and mesh.are_all_axes_explicit
    for i, a in enumerate(avals):
        if found[i] is None and a.explicit is not None and a.explicit.mesh.are_all_axes_explicit:
            sharding = over_devices(a.explicit, placements)
            found[i] = sharding if isinstance(sharding.mesh, Mesh) else None
        elif found[i] is None and is_explicit and a.explicit is None and any(placements):
            found[i] = NamedSharding(mesh, PartitionSpec(*[None] * len(a.shape)))
    return found if any(placement is not None for placement in found) else []


def between(source: NamedSharding | None, target: NamedSharding) -> NamedSharding | None:
    """Return the sharding by way of which a value goes from one sharding to another that is unreduced; None: directly.

    The compiler makes right terms of whole arrays and of arrays that one unreduced axis divides. It does not where it
    chooses the source itself, None, nor where several unreduced axes divide one axis.
    """
    unreduced = target.spec.unreduced
    if not unreduced or (source is not None and source.spec.unreduced == unreduced):
        return None
    if source is None or source.spec.unreduced or not source.mesh.are_all_axes_explicit:
        return target.without_reductions()
    several = [len(unreduced.intersection(names_in(entry))) > 1 for entry in source.spec.partitions]
    return target.without_reductions() if any(several) else None


OutSharding = Sharding | PartitionSpec | None
"""The sharding of a result; None leaves it open."""
DeviceLike = Device | Sharding | str | None
"""The placement of a new array: a device, the name of a platform, or a sharding; None for the default device."""


def divides(sharding: NamedSharding, shape: Sequence[int]) -> bool:
    """Whether a sharding divides arrays of shape ``shape`` evenly."""
    return all(n % k == 0 for n, k in zip(shape, sharding.factors(len(shape)), strict=True))


def sharding_of_tiles(
    mesh: Mesh | AbstractMesh, factors: Sequence[int], tiles: np.ndarray[Any, Any]
) -> NamedSharding | None:
    """Convert a tiling, the compiler's form of a sharding, to a sharding over ``mesh``.

    Args:
      mesh: the mesh of the sharding.
      factors: the number of shards along each axis of the array.
      tiles: the index of each device's shard along each axis, in the form of :meth:`NamedSharding.shard_indices`.

    Returns:
      The sharding; None if no partition specification expresses the tiling.
    """
    coordinates = np.indices(mesh.axis_sizes).reshape(len(mesh.axis_sizes), -1)
    sizes, unused, entries = mesh.axis_sizes, set(range(len(mesh.axis_sizes))), []
    for axis, k in enumerate(factors):
        found = () if k == 1 else _dividing(coordinates, sizes, unused, k, tiles[:, axis])
        if found is None:
            return None
        unused -= set(found)
        entries.append(tuple(mesh.axis_names[i] for i in found) or None)
    while entries and entries[-1] is None:
        entries.pop()
    return NamedSharding(mesh, PartitionSpec(*entries))


def _dividing(
    coordinates: np.ndarray[Any, Any], sizes: Sequence[int], unused: Iterable[int], k: int, numbers: Any
) -> tuple[int, ...] | None:
    """Find the mesh axes that divide one axis of an array into ``k`` shards.

    Args:
      coordinates: the index of each device along each mesh axis, an array of shape (axes, devices).
      sizes: the sizes of the mesh axes.
      unused: the indices of mesh axes that divide no other axis of the array.
      k: the number of shards.
      numbers: the index of each device's shard along the axis of the array.

    Returns:
      The indices of the mesh axes, the slowest first; None if no axes divide it so.
    """
    usable = [i for i in unused if sizes[i] > 1 and k % sizes[i] == 0]
    for count in range(1, len(usable) + 1):
        for axes in itertools.permutations(usable, count):
            if math.prod([sizes[i] for i in axes]) != k:
                continue
            value = np.zeros(coordinates.shape[1], int)
            for i in axes:
                value = value * sizes[i] + coordinates[i]
            if (value == numbers).all():
                return axes
    return None
