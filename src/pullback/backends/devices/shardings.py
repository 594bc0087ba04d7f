"""Shardings: which part of an array is on which device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback.backends.devices.devices import Device, DeviceAssignment
from pullback.backends.devices.meshes import AbstractMesh, Mesh
from pullback.core.errors import IndivisibleError, ShardingError
from pullback.core.naming import quoted

Index = tuple[slice, ...]


class _Unconstrained:
    """Stands for an axis of an array whose division is left to the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """How the axes of an array are divided among the axes of a mesh.

    Args:
      partitions: for each axis of the array the name of an axis of the mesh, or a tuple of names of which the first is
        the slowest, or None if it is not divided, or ``PartitionSpec.UNCONSTRAINED`` if that is left to the compiler.
        Axes of the array that are not mentioned are not divided.

    Raises:
      ShardingError: an entry that is none of these (a ValueError and TypeError).

    >>> PartitionSpec("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    """

    __slots__ = ("partitions",)
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(self, *partitions: Any) -> None:
        self.partitions = tuple(map(_entry, partitions))

    def update(self, partitions: Sequence[Any]) -> PartitionSpec:
        """A specification with other entries."""
        return PartitionSpec(*partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __iter__(self) -> Any:
        return iter(self.partitions)

    def index(self, entry: Any) -> int:
        """The first position of an entry."""
        return self.partitions.index(_entry(entry))

    def count(self, entry: Any) -> int:
        """How often there is an entry."""
        return self.partitions.count(_entry(entry))

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*self.partitions, *other) if isinstance(other, (tuple, PartitionSpec)) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self.partitions) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return type(other) is PartitionSpec and self.partitions == other.partitions

    def __hash__(self) -> int:
        return hash((PartitionSpec, self.partitions))

    def __repr__(self) -> str:
        return f"P{self.partitions!r}"

    def __reduce__(self) -> Any:
        return PartitionSpec, self.partitions


P = PartitionSpec


def _entry(given: Any) -> Any:
    if given is None or given is UNCONSTRAINED:
        return given
    if isinstance(given, (tuple, list)):
        names = tuple(given)
        if any(n is None or n is UNCONSTRAINED or isinstance(n, (tuple, list)) for n in names):
            raise ShardingError(f"PartitionSpec: an entry that is a tuple must have names of axes, got {given!r}")
        given = names if len(names) > 1 else names[0] if names else None
    try:
        hash(given)
    except TypeError:
        raise ShardingError(
            f"PartitionSpec: an entry must be the name of an axis of a mesh, a tuple of names or None, got "
            f"{quoted(given)} of type {type(given).__name__}"
        ) from None
    return given


def names_in(entry: Any) -> tuple[Any, ...]:
    """The names of axes in an entry of a specification."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class Sharding:
    """Which part of an array is on which device. This is the class of all of them."""

    __slots__ = ()
    memory_kind: str | None = "device"

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold parts."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """For each device the part that it holds of an array of a shape, as a tuple of slices.

        Raises:
          ShardingError: the array has too few axes (a ValueError).
          IndivisibleError: an axis is not divided evenly (a ValueError).
        """
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a part of an array of a shape; errors as of :meth:`devices_indices_map`."""
        raise NotImplementedError

    @property
    def num_devices(self) -> int:
        """The number of devices that hold parts."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process that hold parts."""
        return {d for d in self.device_set if d.is_local}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices of this process that hold parts, in a fixed order; Orbax reads arrays onto them."""
        return tuple(sorted(self.addressable_devices, key=lambda d: d.id))

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process holds parts."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return all(d.is_local for d in self.device_set)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        raise NotImplementedError

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """The part that each device of this process holds of an array of a shape."""
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d.is_local}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether another sharding has the same parts of arrays of ``ndim`` axes on the same devices."""
        if not isinstance(other, Sharding):
            raise ShardingError(f"is_equivalent_to: expected a Sharding, got {quoted(other)}")
        return self == other or self._layout(ndim) == other._layout(ndim)

    def _layout(self, ndim: int) -> Any:
        """What two shardings have in common that place arrays of a rank alike."""
        raise NotImplementedError

    def with_memory_kind(self, kind: str) -> Sharding:
        """The sharding in a kind of memory, of which there is one: ``"device"``.

        Raises:
          ShardingError: another kind (a ValueError).
        """
        _check_memory(kind)
        return self

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Refuse a shape that cannot be divided so; errors as of :meth:`devices_indices_map`."""
        self.shard_shape(aval_shape)


def _check_memory(kind: Any) -> None:
    if kind not in (None, "device", "unpinned_host"):
        raise ShardingError(f"there is one kind of memory, 'device', got memory_kind={kind!r}")


class SingleDeviceSharding(Sharding):
    """All elements on one device.

    Args:
      device: one of ``devices()``.
      memory_kind: None or ``"device"``.

    Raises:
      ShardingError: it is no device (a ValueError and TypeError).

    >>> import pullback
    >>> SingleDeviceSharding(pullback.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("_device",)

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        if not isinstance(device, Device):
            raise ShardingError(f"SingleDeviceSharding: expected one of devices(), got {quoted(device)}")
        _check_memory(memory_kind)
        self._device = device

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
        return type(other) is SingleDeviceSharding and other._device is self._device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind=device)"

    def __reduce__(self) -> Any:
        return SingleDeviceSharding, (self._device,)


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that are whole on one device.

    Args:
      device: one of ``devices()``.
      memory_kind: None or ``"device"``.

    Raises:
      ShardingError: it is no device (a ValueError and TypeError).

    >>> import pullback
    >>> make_single_device_sharding(pullback.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """The axes of an array divided among the named axes of a mesh.

    Args:
      mesh: a :class:`Mesh`; an :class:`AbstractMesh` is for types only.
      spec: a :class:`PartitionSpec` of names of its axes.
      memory_kind: None or ``"device"``.

    Raises:
      ShardingError: the specification has names that the mesh lacks, or one twice (a ValueError and TypeError).

    >>> import pullback
    >>> mesh = pullback.make_mesh((1, 1), ("x", "y"))
    >>> NamedSharding(mesh, PartitionSpec(None, "x")).shard_shape((4, 6))
    (4, 6)
    """

    __slots__ = ("__dict__", "__weakref__", "bound", "mesh", "spec")
    is_host = False

    def __init__(self, mesh: Any, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ShardingError(f"NamedSharding: expected a Mesh, got {quoted(mesh)} of type {type(mesh).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise ShardingError(
                f"NamedSharding: expected a PartitionSpec, got {quoted(spec)} of type {type(spec).__name__}. "
                "PartitionSpec() is that of an array that every device has as a whole."
            )
        _check_memory(memory_kind)
        seen: set[Any] = set()
        for name in itertools.chain.from_iterable(map(names_in, spec.partitions)):
            if name not in mesh.axis_names:
                known = ", ".join(map(repr, mesh.axis_names)) or "none"
                raise ShardingError(
                    f"NamedSharding: {spec} names the axis {name!r}, but those of the mesh are: {known}"
                )
            if name in seen:
                raise ShardingError(
                    f"NamedSharding: {spec} names the axis {name!r} more than once: an axis of a mesh can divide one "
                    "axis of an array"
                )
            seen.add(name)
        self.mesh = mesh
        self.spec = spec
        self.bound: Any = None  # what the backend knows it as, once that is asked for

    @property
    def assignment(self) -> DeviceAssignment:
        """The devices of its programs."""
        if isinstance(self.mesh, AbstractMesh):
            raise ShardingError(f"{self!r} has an AbstractMesh, so that it has no devices: give a Mesh")
        return self.mesh.assignment

    @property
    def runs_on(self) -> DeviceAssignment:
        """Where programs on arrays of this sharding run."""
        return self.assignment

    @property
    def platform(self) -> str:
        """The platform of its devices."""
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
        return all(self.mesh.shape[n] == 1 for entry in self.spec.partitions for n in names_in(entry))

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that divide nothing."""
        used = set(itertools.chain.from_iterable(map(names_in, self.spec.partitions)))
        return frozenset(n for n in self.mesh.axis_names if n not in used)

    def update(self, mesh: Any = None, spec: Any = None) -> NamedSharding:
        """The same sharding with another mesh or specification."""
        return NamedSharding(self.mesh if mesh is None else mesh, self.spec if spec is None else spec)

    def factors(self, ndim: int) -> tuple[int, ...]:
        """In how many parts each axis of an array is divided.

        Raises:
          ShardingError: the specification is longer than the array has axes (a ValueError and TypeError).
        """
        if len(self.spec) > ndim:
            raise ShardingError(
                f"{self!r} is for arrays of {len(self.spec)} or more axes, but was given one of {ndim}: the "
                "specification has an entry for each of the first axes of the array"
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
                    f"axis {axis} of an array of shape {shape} has the size {n}, which cannot be divided in {k} equal "
                    f"parts, as {self!r} says. Pad the array, or choose a mesh or a specification that divides it."
                )
        return tuple(n // k for n, k in zip(shape, factors, strict=True))

    def parts(self, ndim: int) -> np.ndarray[Any, Any]:
        """For each device, in the order of the mesh, and each axis of an array the number of the part it holds."""
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
        """The part of each device, in the order of the mesh."""
        sizes, factors = self.shard_shape(shape), self.factors(len(shape))
        return [
            tuple(
                slice(None) if k == 1 else slice(int(i) * n, (int(i) + 1) * n)
                for i, n, k in zip(part, sizes, factors, strict=True)
            )
            for part in self.parts(len(shape))
        ]

    def _layout(self, ndim: int) -> Any:
        factors = self.factors(ndim)
        numbers = np.zeros(self.mesh.size, int)
        for axis, k in enumerate(factors):
            numbers = numbers * k + self.parts(ndim)[:, axis]
        return self.assignment.devices, factors, tuple(numbers.tolist())

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is NamedSharding and self.spec == other.spec and self.mesh == other.mesh)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}, memory_kind=device)"

    def __reduce__(self) -> Any:
        return NamedSharding, (self.mesh, self.spec)


OutSharding = Sharding | PartitionSpec | None
"""How a result is spread over devices; None leaves it open."""
DeviceLike = Device | Sharding | str | None
"""Where an array is made: a device, the name of a platform, or a sharding; None for the default device."""


def divides(sharding: NamedSharding, shape: Sequence[int]) -> bool:
    """Whether a sharding divides arrays of a shape evenly."""
    return all(n % k == 0 for n, k in zip(shape, sharding.factors(len(shape)), strict=True))


def sharding_of_tiles(mesh: Mesh, factors: Sequence[int], tiles: np.ndarray[Any, Any]) -> NamedSharding | None:
    """The sharding whose parts are where the compiler says that they are; None if no specification says it.

    Args:
      mesh: the mesh whose axes may be named.
      factors: in how many parts each axis of the array is divided.
      tiles: for each device, in the order of the mesh, and each axis of the array the number of its part.
    """
    coordinates = np.indices(mesh.axis_sizes).reshape(len(mesh.axis_sizes), -1)
    sizes, left, entries = mesh.axis_sizes, set(range(len(mesh.axis_sizes))), []
    for axis, k in enumerate(factors):
        found = () if k == 1 else _dividing(coordinates, sizes, left, k, tiles[:, axis])
        if found is None:
            return None
        left -= set(found)
        entries.append(tuple(mesh.axis_names[i] for i in found) or None)
    while entries and entries[-1] is None:
        entries.pop()
    return NamedSharding(mesh, PartitionSpec(*entries))


def _dividing(
    coordinates: np.ndarray[Any, Any], sizes: Sequence[int], left: Iterable[int], k: int, numbers: Any
) -> tuple[int, ...] | None:
    """The axes of a mesh by whose coordinates the parts of one axis of an array are numbered."""
    usable = [i for i in left if sizes[i] > 1 and k % sizes[i] == 0]
    for count in range(1, len(usable) + 1):
        for chosen in itertools.permutations(usable, count):
            if math.prod([sizes[i] for i in chosen]) != k:
                continue
            value = np.zeros(coordinates.shape[1], int)
            for i in chosen:
                value = value * sizes[i] + coordinates[i]
            if (value == numbers).all():
                return chosen
    return None
