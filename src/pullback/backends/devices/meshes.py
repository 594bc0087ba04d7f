"""Meshes: grids of devices with named axes."""

from __future__ import annotations

import enum
import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np

from pullback.backends.devices.devices import Device, DeviceAssignment, assignment, devices, process_index
from pullback.core import config as switches
from pullback.core.annotations import AxisName
from pullback.core.errors import MeshContextError, MeshError
from pullback.core.naming import quoted
from pullback.core.runtime import runtime

P = ParamSpec("P")
R = TypeVar("R")


class AxisType(enum.Enum):
    """How arrays are sharded along an axis of a mesh.

    ``Auto``: the compiler decides, unless the user does. ``Explicit``: the types of arrays say how they are sharded.
    ``Manual``: within ``shard_map``, each device sees its own shard.

    >>> from pullback import make_mesh
    >>> from pullback.sharding import AxisType
    >>> print(make_mesh((1,), ("x",), axis_types=(AxisType.Auto,)).axis_types)
    (Auto,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


Devices: TypeAlias = Device | Sequence[Any] | np.ndarray[Any, Any] | None
"""Devices of a mesh: an array of them, or nested sequences."""
AxisNames: TypeAlias = str | Sequence[Any]
AxisTypes: TypeAlias = AxisType | Sequence[AxisType] | None


class _AnyMesh:
    """The base class of ``Mesh`` and ``AbstractMesh``: the names, sizes and types of axes."""

    __slots__ = ()
    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    update: Any

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis, by its name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of the name and the size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes, like the result of ``get_mesh`` where no mesh is set."""
        return not self.axis_names

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> Self:
        """Return a copy of the mesh with other types of some axes.

        Args:
          name_to_type: the new types, by the names of the axes.

        Raises:
          MeshError: the mesh has no such axis (a TypeError and ValueError).
        """
        unknown = [name for name in name_to_type if name not in self.axis_names]
        if unknown:
            raise MeshError(f"update_axis_types: there is no axis {unknown[0]!r} among {self.axis_names}")
        types = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, kind) for name, kind in types))

    @property
    def names_by_type(self) -> dict[AxisType, tuple[Any, ...]]:
        """The names of the axes of each type that some axis has."""
        return {kind: self._of_type(kind) for kind in dict.fromkeys(self.axis_types)}

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type ``Auto``."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type ``Explicit``."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type ``Manual``."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether every axis is of the type ``AxisType.Auto``."""
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether every axis is of the type ``AxisType.Explicit``."""
        return all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether every axis is of the type ``AxisType.Manual``."""
        return all(t is AxisType.Manual for t in self.axis_types)

    def _repr_html_(self) -> str | None:
        return runtime.html_of(self)

    def _shown(self) -> str:
        axes = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        types = f"axis_types=({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"
        return f"{axes}, {types}"


@dataclass(frozen=True)
class AbstractDevice:
    """A kind of device, without a device: for programs that are written for devices of another machine.

    Attributes:
      device_kind: the model, as ``device_kind`` of a device says it.
      num_cores: the number of cores of each device, or None.
      platform: ``"cpu"``, ``"cuda"``, ...

    >>> from pullback.sharding import AbstractDevice, AbstractMesh
    >>> mesh = AbstractMesh((4,), ("x",), abstract_device=AbstractDevice("gpu", 1, "cuda"))
    >>> mesh.abstract_device.platform
    'cuda'
    """

    device_kind: str
    num_cores: int | None
    platform: str
    _member: Device | None = field(default=None, compare=False)  # a device of the mesh that was asked for its kind

    def __reduce__(self) -> Any:
        return AbstractDevice, (self.device_kind, self.num_cores, self.platform)

    def __repr__(self) -> str:
        return f"AbstractDevice({self._shown()})"

    def _shown(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


class AbstractMesh(_AnyMesh):
    """Names and sizes of the axes of a mesh, without the devices.

    Args:
      axis_sizes: the size of each axis.
      axis_names: their names.
      axis_types: an :class:`AxisType` for all axes, or for each axis; ``Auto`` by default.
      abstract_device: the :class:`AbstractDevice` that stands for each device, or None.

    Raises:
      MeshError: the numbers of sizes, names and types differ, or a name is repeated (a ValueError and TypeError).

    >>> from pullback.sharding import AbstractMesh
    >>> AbstractMesh((4, 2), ("data", "model"))
    AbstractMesh('data': 4, 'model': 2, axis_types=(Auto, Auto))
    """

    __slots__ = ("_device", "_hash", "_member", "axis_names", "axis_sizes", "axis_types")

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self.axis_sizes = _sizes(axis_sizes, "AbstractMesh: axis_sizes")
        self.axis_names = _names(axis_names, "AbstractMesh")
        if len(self.axis_sizes) != len(self.axis_names):
            raise MeshError(
                f"AbstractMesh: axis_sizes {self.axis_sizes} are {len(self.axis_sizes)}, but axis_names "
                f"{self.axis_names} are {len(self.axis_names)}: each axis needs a size and a name"
            )
        self.axis_types = _types(axis_types, self.axis_names, "AbstractMesh")
        if not (abstract_device is None or isinstance(abstract_device, AbstractDevice)):
            raise MeshError(
                f"AbstractMesh: abstract_device must be an AbstractDevice or None, got {quoted(abstract_device)}"
            )
        # A device of the mesh that this one is of, or whose kind of devices it was given: they are equal.
        self._member: Device | None = None if abstract_device is None else abstract_device._member
        self._device = abstract_device if self._member is None else None
        self._hash = hash((self.axis_sizes, self.axis_names, self.axis_types))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    @property
    def abstract_device(self) -> AbstractDevice | None:
        """The kind of the devices; None for a mesh without devices that was made without it."""
        if self._device is None and self._member is not None:
            return AbstractDevice(self._member.device_kind, None, self._member.target, self._member)
        return self._device

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, abstract_device: Any = None
    ) -> AbstractMesh:
        """Return a copy of the mesh with other sizes, names, types or devices; None keeps what the mesh has.

        Args:
          axis_sizes: the sizes of the axes, a tuple of integers.
          axis_names: the names of the axes, a tuple.
          axis_types: the :class:`AxisType` of each axis, a tuple.
          abstract_device: the :class:`AbstractDevice` that stands for each device.

        Returns:
          An :class:`AbstractMesh`.

        >>> from pullback.sharding import AbstractMesh
        >>> print(AbstractMesh((2,), ("x",)).update(axis_sizes=(4,)).shape_tuple)
        (('x', 4),)
        """
        copy = AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=self._device if abstract_device is None else abstract_device,
        )
        copy._member = copy._member or self._member
        return copy

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is AbstractMesh
            and (self.axis_sizes, self.axis_names, self.axis_types, self._device)
            == (other.axis_sizes, other.axis_names, other.axis_types, other._device)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        device = "" if self._device is None else f", {self._device._shown()}"
        return f"AbstractMesh({self._shown() if self.axis_names else '(), axis_types=()'}{device})"

    def __reduce__(self) -> Any:
        arguments = self.axis_sizes, self.axis_names, self.axis_types
        if self._device is None:
            return AbstractMesh, arguments
        return partial(AbstractMesh, abstract_device=self._device), arguments


class Mesh(_AnyMesh):
    """A grid of devices with named axes; as a context manager, the mesh of each ``PartitionSpec`` given without a mesh.

    Args:
      devices: an array of devices, or nested sequences of them.
      axis_names: a name for each axis of the grid; one string for a grid of one axis.
      axis_types: an :class:`AxisType` for each axis; ``Auto`` by default.

    Attributes:
      devices: the array of devices.
      axis_names: the names of its axes.
      axis_types: the types of its axes.

    Raises:
      MeshError: the grid has not one name for each axis; a name or a device is repeated; an element is no device (a
        ValueError and TypeError).

    >>> from pullback import devices
    >>> from pullback.sharding import Mesh
    >>> dict(Mesh(devices(), ("i",)).shape)
    {'i': 1}
    """

    __slots__ = ("__weakref__", "_hash", "abstract_mesh", "assignment", "axis_names", "axis_types", "devices")

    devices: np.ndarray[Any, Any]

    def __init__(self, devices: Devices, axis_names: AxisNames, axis_types: AxisTypes = None) -> None:
        grid = _grid(devices)
        self.axis_names = _names(axis_names, "Mesh")
        if grid.ndim != len(self.axis_names):
            raise MeshError(
                f"Mesh: the devices are an array of shape {grid.shape}, with {grid.ndim} axes, but axis_names "
                f"{self.axis_names} are {len(self.axis_names)}: pass one name for each axis of the array"
            )
        members: tuple[Device, ...] = tuple(grid.flat) if grid.ndim else ()
        if grid.ndim and not members:
            raise MeshError(f"Mesh: the array of devices has the shape {grid.shape}, so it contains no devices")
        if len(set(members)) < len(members):
            twice = next(d for i, d in enumerate(members) if d in members[:i])
            raise MeshError(f"Mesh: the device {twice} occurs more than once: a mesh contains each device once")
        if len({d.platform for d in members}) > 1:
            raise MeshError(f"Mesh: devices must be of one platform, got {sorted({d.platform for d in members})}")
        grid.flags.writeable = False
        self.devices = grid
        self.axis_types = _types(axis_types, self.axis_names, "Mesh")
        self.assignment: DeviceAssignment = assignment(members)
        self.abstract_mesh = AbstractMesh(grid.shape, self.axis_names, self.axis_types)
        self.abstract_mesh._member = members[0] if members else None
        self._hash = hash((self.assignment, self.abstract_mesh))

    @property
    def axis_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        """The size of each axis."""
        return self.devices.shape

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, in an array of the shape of ``devices``."""
        return np.array([d.id for d in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return list(self.assignment.local)

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return len(self.assignment.local) < len(self.assignment.devices)

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of those devices that belong to this process.

        Raises:
          MeshError: these devices do not form a grid within the mesh (a ValueError).
        """
        if not self.is_multi_process:
            return self
        here = process_index()
        own = np.array([d.process_index == here for d in self.devices.flat], bool).reshape(self.devices.shape)
        lines = [np.any(own, tuple(j for j in range(own.ndim) if j != i)).nonzero()[0] for i in range(own.ndim)]
        if not own[np.ix_(*lines)].all():
            raise MeshError(f"the devices of process {here} do not form a grid in {self!r}")
        return Mesh(self.devices[np.ix_(*lines)], self.axis_names, self.axis_types)

    def update(
        self, devices: Devices = None, axis_names: AxisNames | None = None, axis_types: AxisTypes = None
    ) -> Mesh:
        """Return a copy of the mesh with other devices, names or types; None keeps what the mesh has.

        Args:
          devices: an array of devices.
          axis_names: the names of the axes, a tuple.
          axis_types: the :class:`AxisType` of each axis, a tuple.

        Returns:
          A :class:`Mesh`.

        >>> from pullback import make_mesh
        >>> print(make_mesh((1,), ("x",)).update(axis_names=("rows",)).axis_names)
        ('rows',)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __call__(self, fun: Callable[P, R]) -> Callable[P, R]:
        """Return a function that calls ``fun`` within a block of the mesh: a mesh is a decorator too."""

        @wraps(fun)
        def within(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return fun(*args, **kwargs)

        return within

    def __enter__(self) -> Mesh:
        _entered.stack.append(exchange_mesh(self))
        return self

    def __exit__(self, *error: Any) -> None:
        exchange_mesh(_entered.stack.pop())

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Mesh and self.assignment is other.assignment and self.abstract_mesh == other.abstract_mesh
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Mesh({self._shown()})" if self.axis_names else "Mesh(axis_sizes=(), axis_names=())"

    def __reduce__(self) -> Any:
        return Mesh, (self.devices.tolist(), self.axis_names, self.axis_types)


# Users' arguments -----------------------------------------------------------------------------------------------------


def _grid(members: Any) -> np.ndarray[Any, Any]:
    grid = np.array(members, dtype=object)
    for d in grid.flat:
        if not isinstance(d, Device) and not (grid.ndim == 0 and d is None):
            raise MeshError(f"Mesh: devices must be some of devices(), got {quoted(d)} of type {type(d).__name__}")
    return grid


def _names(axis_names: Any, who: str) -> tuple[Any, ...]:
    if isinstance(axis_names, str):
        axis_names = (axis_names,)
    if not isinstance(axis_names, Iterable):
        raise MeshError(f"{who}: axis_names must be a str or a sequence of names, got {quoted(axis_names)}")
    names = tuple(axis_names)
    for name in names:
        try:
            hash(name)
        except TypeError:
            raise MeshError(f"{who}: the name of an axis must be hashable, got {quoted(name)}") from None
        if name is None or isinstance(name, (tuple, list)):
            raise MeshError(f"{who}: {quoted(name)} cannot be the name of an axis: pass a string")
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise MeshError(
            f"{who}: axis_names {names} contain the name {twice!r} more than once: each axis needs a different name"
        )
    return names


def _sizes(axis_sizes: Any, what: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(n) for n in axis_sizes if int(n) == n)
        if len(sizes) == len(axis_sizes) and all(n > 0 for n in sizes):
            return sizes
    except (TypeError, ValueError):
        pass
    raise MeshError(f"{what} must be a sequence of positive integers, got {quoted(axis_sizes)}")


def _types(axis_types: Any, names: tuple[Any, ...], who: str) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    if isinstance(axis_types, AxisType):
        axis_types = (axis_types,) * len(names)
    types = tuple(axis_types) if isinstance(axis_types, Iterable) else (None,)
    if not all(isinstance(t, AxisType) for t in types):
        raise MeshError(
            f"{who}: axis_types must be an AxisType for each axis, such as AxisType.Auto, got {axis_types!r}"
        )
    if len(types) != len(names):
        raise MeshError(f"{who}: axis_types {types} are {len(types)}, but the axes {names} are {len(names)}")
    return types


def make_mesh(
    axis_sizes: Sequence[int] | None = None,
    axis_names: Sequence[AxisName] = (),
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
    axis_shapes: Sequence[int] | None = None,
) -> Mesh:
    """Make a mesh of the first devices, in the order of the list.

    Args:
      axis_sizes: the size of each axis.
      axis_names: their names.
      axis_types: an :class:`AxisType` for each axis; ``Explicit`` by default, so that types say how arrays are sharded.
      devices: the devices to select from, by default ``devices()``.
      axis_shapes: an older name of ``axis_sizes``.

    Returns:
      A :class:`Mesh` of as many devices as the product of the sizes.

    Raises:
      MeshError: there are fewer devices; the numbers of sizes and names differ (a ValueError and TypeError).

    >>> from pullback import make_mesh
    >>> make_mesh((1,), ("batch",))
    Mesh('batch': 1, axis_types=(Explicit,))
    """
    if (axis_sizes is None) == (axis_shapes is None):
        raise MeshError("make_mesh takes axis_sizes, or axis_shapes, its older name")
    sizes = _sizes(axis_shapes if axis_sizes is None else axis_sizes, "make_mesh: axis_sizes")
    names = _names(axis_names, "make_mesh")
    if len(sizes) != len(names):
        raise MeshError(
            f"make_mesh: axis_sizes {sizes} are {len(sizes)}, but axis_names {names} are {len(names)}: each axis "
            "needs a size and a name"
        )
    available = _all_devices() if devices is None else list(devices)
    wanted = math.prod(sizes)
    if wanted > len(available):
        raise MeshError(too_few_devices(f"make_mesh: a mesh of the shape {sizes}", wanted, available))
    grid = np.empty(wanted, object)
    grid[:] = available[:wanted]
    return Mesh(grid.reshape(sizes), names, AxisType.Explicit if axis_types is None else axis_types)


def _all_devices() -> list[Device]:
    return devices()


def too_few_devices(what: str, wanted: int, available: Sequence[Device]) -> str:
    """The error message that there are too few devices.

    Args:
      what: what needs the devices, such as a mesh: the beginning of the message.
      wanted: the number of devices needed.
      available: the devices that there are.
    """
    hint = ""
    if all(d.platform == "cpu" for d in available):
        hint = (
            f" The CPU can be divided: config.update('num_cpu_devices', {wanted}) before the first program is "
            "compiled or the first device is used."
        )
    return f"{what} needs {wanted} devices, but there are {len(available)}.{hint}"


# The mesh of a block --------------------------------------------------------------------------------------------------


class _Entered(threading.local):
    """The stack of this thread's ``with mesh`` blocks: for each, the mesh that was current before it."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_entered = _Entered()
EMPTY = Mesh(None, ())


_of_types: weakref.WeakValueDictionary[AbstractMesh, Mesh] = weakref.WeakValueDictionary()


def in_types(mesh: Mesh) -> AbstractMesh:
    """Return the abstract mesh of a mesh for a type, and keep in mind which devices it stands for."""
    known = _of_types.get(mesh.abstract_mesh)
    if known is not mesh and (known is None or known.assignment is not mesh.assignment):
        _of_types[mesh.abstract_mesh] = mesh
    return mesh.abstract_mesh


def mesh_of_type(mesh: AbstractMesh) -> Mesh | None:
    """Return the mesh with devices that types over an abstract mesh last came from; None if there is no such mesh."""
    return _of_types.get(mesh)


def exchange_mesh(mesh: Any) -> Any:
    """Set the current mesh of this thread, or None for no mesh, and return the previous one."""
    return switches.exchange("context_mesh", mesh)


class set_mesh:
    """Set this thread's mesh for a ``PartitionSpec`` given without a mesh; as a context manager, only within the block.

    Args:
      mesh: a :class:`Mesh`, or None for no mesh.

    Raises:
      MeshError: the argument is no mesh (a ValueError and TypeError).

    >>> import pullback
    >>> from pullback import make_mesh, set_mesh
    >>> with set_mesh(make_mesh((1,), ("i",))):
    ...     pullback.jit(lambda x: x + 1, out_shardings=pullback.P("i"))(pullback.numpy.ones(2)).sharding.spec
    P('i',)
    """

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise MeshError(f"set_mesh: expected a Mesh or None, got {quoted(mesh)} of type {type(mesh).__name__}")
        self.mesh = mesh
        self._before = exchange_mesh(None if mesh is None or mesh.empty else mesh)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *error: Any) -> None:
        exchange_mesh(self._before)


class use_mesh:
    """A context manager that sets this thread's mesh for a ``PartitionSpec`` given without a mesh.

    Args:
      mesh: a :class:`Mesh`, or an :class:`AbstractMesh` where only names and sizes of axes matter.

    Raises:
      MeshError: the argument is no mesh (a ValueError and TypeError).

    >>> from pullback import make_mesh
    >>> from pullback.sharding import get_mesh, use_mesh
    >>> with use_mesh(make_mesh((1,), ("i",))) as mesh:
    ...     get_mesh() == mesh
    True
    """

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: Mesh | AbstractMesh) -> None:
        if not isinstance(mesh, _AnyMesh):
            raise MeshError(f"use_mesh: expected a Mesh, got {quoted(mesh)} of type {type(mesh).__name__}")
        self.mesh = mesh
        self._before: list[Any] = []

    def __enter__(self) -> Mesh | AbstractMesh:
        self._before.append(exchange_mesh(None if self.mesh.empty else self.mesh))
        return self.mesh

    def __exit__(self, *error: Any) -> None:
        exchange_mesh(self._before.pop())


use_abstract_mesh = use_mesh


def current_mesh() -> Any:
    """The current mesh of this thread, a :class:`Mesh` or :class:`AbstractMesh`; None if no mesh is set."""
    return switches.config.context_mesh


def get_mesh() -> Mesh:
    """The current mesh of this thread; a mesh without axes if none is set.

    Returns:
      A :class:`Mesh`.

    >>> from pullback.sharding import get_mesh
    >>> get_mesh().empty
    True
    """
    found = current_mesh()
    return found if isinstance(found, Mesh) else EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh of this thread, without its devices; a mesh without axes if none is set.

    Returns:
      The mesh as an :class:`AbstractMesh`: names and sizes of axes, without devices.

    >>> from pullback.sharding import get_abstract_mesh
    >>> get_abstract_mesh().shape_tuple
    ()
    """
    found = current_mesh()
    return EMPTY.abstract_mesh if found is None else found.abstract_mesh  # type: ignore[no-any-return]


def needed_mesh(who: str, what: str, abstract: bool = False) -> Any:
    """Return the current mesh, which an argument of the user's refers to.

    Args:
      who: the name of the function, for the error message.
      what: a description of the argument, for the error message.
      abstract: whether a mesh without devices serves.

    Raises:
      MeshContextError: no mesh is set (a RuntimeError and ValueError).
    """
    found = current_mesh()
    if isinstance(found, Mesh) or (abstract and found is not None):
        return found
    raise MeshContextError(
        f"{who}: {what} names axes of a mesh, but no mesh is set. Pass a NamedSharding(mesh, spec), or set the mesh: "
        "with set_mesh(mesh): ..."
    )
