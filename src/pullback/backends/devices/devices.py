"""Devices, by platform and number. This module is light: it does not need the compiler."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backends.compiler.backend import backend as compiler
from pullback.backends.processes import forks
from pullback.core.array import Signature
from pullback.core.config import check_value, config
from pullback.core.errors import ArgumentError, BackendError, IncompatibleDevicesError
from pullback.core.locks import lock
from pullback.core.runtime import runtime

IDS_PER_PROCESS = 2048
"""Processors' devices are numbered from this times the number of their process."""


class Here:
    """Where this process stands.

    Attributes:
      process: its number among the processes that compute together.
      processes: how many these are.
      several_in_use: whether there may be buffers on more than one device, so that it matters where one is.
    """

    __slots__ = ("process", "processes", "several_in_use")

    def __init__(self) -> None:
        self.process, self.processes, self.several_in_use = 0, 1, False


here = Here()


class Device:
    """A device that holds arrays and runs programs. There is one object for each.

    Attributes:
      platform: ``cpu``, ``cuda``, ...
      id: its number among the devices of its platform, in all processes.
      process_index: the number of the process that it belongs to.
      is_local: whether that is this process.
      is_host: whether it is the processor on which eager operations run, so that NumPy has its arrays.
    """

    __slots__ = ("__weakref__", "bound", "id", "is_host", "is_local", "platform", "process_index")

    def __init__(self, platform: str, number: int) -> None:
        self.platform = platform
        self.id = number
        self.process_index = 0
        if here.processes > 1:
            on_host = platform == "cpu"
            self.process_index = number // IDS_PER_PROCESS if on_host else compiler().process_of(platform, number)
        self.is_local = self.process_index == here.process
        self.is_host = platform == "cpu" and number == here.process * IDS_PER_PROCESS
        self.bound: Any = None  # what the backend knows it as, once that is asked for

    @property
    def runs_on(self) -> Device:
        """Where programs on arrays of this place run: here."""
        return self

    @property
    def local_hardware_id(self) -> int:
        """Its number in its process."""
        return self.id % IDS_PER_PROCESS if self.platform == "cpu" else self.id

    @property
    def device_kind(self) -> str:
        """What the maker calls it."""
        if self.platform == "cpu":
            return "cpu"
        return compiler().device_kind(self)

    @property
    def client(self) -> Any:
        """The runtime of its platform, an object of the compiler's, which Orbax asks of what kind it is."""
        return compiler().client(self.platform)

    def addressable_memories(self) -> list[Memory]:
        """The memories that programs on it can use: its own.

        >>> devices()[0].addressable_memories()
        [Memory(kind='device', device=CpuDevice(id=0))]
        """
        return [Memory(self)]

    def default_memory(self) -> Memory:
        """The memory in which arrays are put."""
        return Memory(self)

    def memory(self, kind: str) -> Memory:
        """A memory by its kind.

        Raises:
          BackendError: it has none of that kind (a RuntimeError).
        """
        if kind != "device":
            raise BackendError(f"{self} has one kind of memory, 'device', got {kind!r}")
        return Memory(self)

    def memory_stats(self) -> dict[str, int] | None:
        """The use of its memory in bytes, where the platform counts it, else None."""
        if self.platform == "cpu":
            return None
        return compiler().memory_stats(self)

    def __repr__(self) -> str:
        return f"{self.platform.title()}Device(id={self.id})"

    def __reduce__(self) -> Any:
        return device, (self.platform, self.id)


_devices: dict[tuple[str, int], Device] = {}


def device(platform: str, number: int) -> Device:
    """The device of a platform with a number."""
    key = (platform, number)
    return _devices.get(key) or _devices.setdefault(key, Device(platform, number))


HOST = device("cpu", 0)


def join(number: int, count: int) -> None:
    """Note that this process is one of several. Its devices, such as ``HOST``, have other numbers from now on."""
    here.process, here.processes = number, count
    for key, known in list(_devices.items()):
        if known.platform == "cpu":
            del _devices[key]
            known.id += number * IDS_PER_PROCESS
            known.process_index = number
            _devices["cpu", known.id] = known


@dataclass(frozen=True)
class Memory:
    """The memory of a device.

    Attributes:
      device: the device.
      kind: ``device``: there is one kind of memory.
    """

    kind: str = field(default="device", init=False)
    device: Device

    @property
    def process_index(self) -> int:
        """The process that the device belongs to."""
        return self.device.process_index

    @property
    def platform(self) -> str:
        """The platform of the device."""
        return self.device.platform

    def addressable_by_devices(self) -> list[Device]:
        """The devices that can use it."""
        return [self.device]


class DeviceAssignment:
    """The devices of a program in several parts, in their order. There is one object for each.

    Attributes:
      devices: the devices, of which the i-th runs part i.
      local: those of this process.
      is_local: whether that is all of them.
    """

    __slots__ = ("__weakref__", "bound", "devices", "is_local", "local")
    is_host = False

    def __init__(self, members: tuple[Device, ...]) -> None:
        self.devices = members
        self.local = tuple(d for d in members if d.is_local)
        self.is_local = len(self.local) == len(members)
        self.bound: Any = None  # what the backend knows it as, once that is asked for

    @property
    def id(self) -> tuple[int, ...]:
        """The numbers of the devices."""
        return tuple(d.id for d in self.devices)

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return self.devices[0].platform

    @property
    def device_kind(self) -> str:
        """What the maker calls a device."""
        return self.devices[0].device_kind

    def __repr__(self) -> str:
        return f"{len(self.devices)} devices {self.devices}"

    def __reduce__(self) -> Any:
        return assignment, (self.devices,)


_assignments: weakref.WeakValueDictionary[tuple[Device, ...], DeviceAssignment] = weakref.WeakValueDictionary()
_assigning = lock(globals(), "_assigning")


def assignment(members: Sequence[Device]) -> DeviceAssignment:
    """The assignment of some devices: equal ones are the same object."""
    key = tuple(members)
    with _assigning:
        found = _assignments.get(key)
        if found is None:
            found = _assignments[key] = DeviceAssignment(key)
    return found


def note_several() -> None:
    """Report that a second device comes into use; backends call it."""
    here.several_in_use = True
    runtime.several_devices_used()


def cpu_count() -> int:
    """How many devices the processor is divided into: what the switch ``num_cpu_devices`` says; or else
    ``--xla_force_host_platform_device_count`` in the environment variable ``XLA_FLAGS``; or else one."""
    chosen = int(config.num_cpu_devices)
    if chosen < 1:
        found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        chosen = int(found[-1]) if found else 1
    return max(1, chosen)


def _check_cpu_count(value: Any) -> None:
    """Refuse a number of virtual devices that is none, or that comes too late."""
    if type(value) is not int or value < -1 or value == 0:
        raise ArgumentError(f"num_cpu_devices must be a positive integer, or -1 for the default, got {value!r}")
    if "cpu" in forks.used and value not in (-1, cpu_count()):
        raise BackendError(
            f"num_cpu_devices cannot become {value}: the processor is in use as {cpu_count()} device(s). Set the "
            "switch before the first program is compiled and before arrays are put on devices, right after `import "
            "pullback` for example, or with XLA_FLAGS=--xla_force_host_platform_device_count=... in the environment."
        )


check_value("num_cpu_devices", _check_cpu_count)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform.

    Args:
      backend: ``"cpu"`` (the default), ``"cuda"`` (also ``"gpu"``), or the name of another plug-in.

    Returns:
      A list of them, those of all processes that compute together. The processor of a process is one device, or as many
      as the switch ``num_cpu_devices`` says when the first program is compiled.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> devices()
    [CpuDevice(id=0)]
    """
    platform = _platform(backend)
    if here.processes > 1:
        return [device(platform, i) for i in compiler().device_ids(platform)]
    if platform == "cpu":
        return [device("cpu", i) for i in range(cpu_count())]
    return [device(platform, i) for i in range(compiler().count(platform))]


def _platform(backend: str | None) -> str:
    platform = config.platforms.partition(",")[0] if backend is None else backend
    return "cuda" if platform == "gpu" else platform


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of a process.

    Args:
      process_index: the number of the process; this one, if it is None.
      backend: the platform, as in :func:`devices`.
      host_id: an older name of ``process_index``.

    Returns:
      A list of them, in the order in which they are in :func:`devices`.

    Raises:
      ArgumentError: there is no such process (a ValueError).
      BackendError: there is no such platform here (a RuntimeError).

    >>> local_devices()
    [CpuDevice(id=0)]
    """
    number = host_id if process_index is None else process_index
    if number is None:
        number = here.process
    if not isinstance(number, int) or not 0 <= number < here.processes:
        raise ArgumentError(f"process_index must be one of process_indices(), {process_indices()}, got {number!r}")
    if here.processes == 1:
        return devices(backend)
    platform = _platform(backend)
    return [device(platform, i) for i in compiler().device_ids(platform, number)]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform, in all processes.

    >>> device_count()
    1
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    >>> local_device_count()
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The platform on which programs run by default.

    >>> default_backend()
    'cpu'
    """
    return default_device().platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together, from 0; see :mod:`pullback.distributed`.

    >>> process_index()
    0
    """
    return here.process


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together.

    >>> process_count()
    1
    """
    return here.processes


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that compute together.

    >>> process_indices()
    [0]
    """
    return list(range(here.processes))


def default_device() -> Device:
    """The device on which programs run that were told no other."""
    chosen = config.default_device
    if chosen is None:
        return HOST if config.platforms == "cpu" else local_devices()[0]
    return local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen


Devices = Device | DeviceAssignment
"""Where a program runs."""


def device_for(signatures: Iterable[Signature], name: str) -> tuple[Any, bool]:
    """The devices for a program on arrays of some signatures, and whether anybody asked for them.

    Raises:
      IncompatibleDevicesError: the arrays were put on different devices (a RuntimeError and ValueError).
    """
    found: Any = None
    for sig in signatures:
        placement = sig.placement
        if placement is not None and placement.runs_on is not found:
            found = placement.runs_on if found is None else joined(found, placement.runs_on, f"the arguments of {name}")
    return (default_device(), False) if found is None else (found, True)


def joined(first: Devices, second: Devices, what: str) -> Devices:
    """The devices of a program, where two of its parts ask for some.

    Raises:
      IncompatibleDevicesError: they are not the same (a RuntimeError and ValueError).
    """
    if first is second:
        return first
    alone, other = (first, second) if isinstance(first, Device) else (second, first)
    if isinstance(other, DeviceAssignment) and other.devices == (alone,):
        return other
    raise IncompatibleDevicesError(
        f"{what} are on different devices, {first} and {second}: move them to one, or to one mesh, with device_put"
    )


def device_named(device: Any) -> Device:
    """A device, given as one or by the name of its platform.

    Raises:
      BackendError: it is neither (a RuntimeError).
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, str):
        return local_devices(backend=device)[0]
    raise BackendError(f"a device must be one of devices(), or the name of a platform, got {device!r}")
