"""Devices, by platform and number. Importing this module does not load the compiler."""

from __future__ import annotations

import enum
import os
import re
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.backends.compiler.backend import backend as compiler
from pullback.backends.compiler.plugins import automatic_platform
from pullback.backends.processes import forks
from pullback.core.arguments import quote, typed
from pullback.core.array import Signature
from pullback.core.config import check_value, config
from pullback.core.elsewhere import ELSEWHERE
from pullback.core.errors import ArgumentError, BackendError, IncompatibleDevicesError
from pullback.core.locks import lock
from pullback.core.runtime import runtime
from pullback.core.watching import decide_where, stay_on_host

IDS_PER_PROCESS = 2048
"""The numbers of CPU devices begin at this, times the number of their process."""


class Here:
    """The number of this process in its group, and whether it uses several devices.

    Attributes:
      process: the number of this process among the processes that compute together.
      processes: the number of these processes.
      several_in_use: whether there may be buffers on more than one device, so that the devices of operands must be
        compared.
    """

    __slots__ = ("process", "processes", "several_in_use")

    def __init__(self) -> None:
        self.process, self.processes, self.several_in_use = 0, 1, False


here = Here()


_GPUS = ("cuda", "rocm")
"""The platforms that are called ``gpu`` where programs ask for the platform of a device."""


class Device:
    """A device that holds arrays and runs programs. Each device has one object.

    Attributes:
      platform: ``cpu``, ``gpu``, ...
      target: the platform by the name for which programs are lowered: ``cpu``, ``cuda``, ``rocm``, ...
      id: the number of the device among all devices of its platform, in all processes.
      process_index: the number of the process that the device belongs to.
      is_local: whether the device belongs to this process.
      is_host: whether the device is the CPU on which eager operations run, so that its arrays can be NumPy's.

    >>> from pullback import devices
    >>> device = devices("cpu")[0]
    >>> device.platform, device.id, device.is_host
    ('cpu', 0, True)
    """

    __slots__ = ("__weakref__", "bound", "id", "is_host", "is_local", "platform", "process_index", "target")

    def __init__(self, platform: str, number: int) -> None:
        if not isinstance(platform, str):
            raise BackendError(f"Device: expected the name of a platform, got {quote(platform)}")
        self.target = platform
        self.platform = "gpu" if platform in _GPUS else platform
        self.id = number
        self.process_index = 0
        if here.processes > 1:
            on_host = platform == "cpu"
            self.process_index = number // IDS_PER_PROCESS if on_host else compiler().process_of(platform, number)
        self.is_local = self.process_index == here.process
        self.is_host = platform == "cpu" and number == here.process * IDS_PER_PROCESS
        self.bound: Any = None  # the backend's object for it, made at first use

    def in_types(self, shape: tuple[int, ...]) -> None:
        """Return None: types say nothing of a device."""

    @property
    def runs_on(self) -> Device:
        """The device on which programs run whose arrays are on this device: the device itself."""
        return self

    @property
    def local_hardware_id(self) -> int:
        """The device's number among the devices of its process."""
        return self.id % IDS_PER_PROCESS if self.platform == "cpu" else compiler().local_hardware_id(self)

    @property
    def device_kind(self) -> str:
        """The vendor's name of the device's model."""
        if self.platform == "cpu":
            return "cpu"
        return compiler().device_kind(self)

    @property
    def client(self) -> Any:
        """The runtime's client of the device's platform, for libraries such as Orbax."""
        return compiler().client(self.target)

    def addressable_memories(self) -> list[Memory]:
        """The memories that programs on this device can use. Those of a CPU are one memory with several names.

        >>> from pullback import devices
        >>> [memory.kind for memory in devices()[0].addressable_memories()]
        ['device', 'pinned_host', 'unpinned_host']
        """
        return [Memory(kind, self) for kind in memory_kinds(self.platform, self)]

    def default_memory(self) -> Memory:
        """The memory in which arrays on this device are by default."""
        return Memory(memory_kinds(self.platform, self)[0], self)

    def memory(self, kind: str) -> Memory:
        """The memory of the device that is of the given kind.

        Raises:
          BackendError: the device has no memory of that kind (a RuntimeError).
        """
        known = memory_kinds(self.platform, self)
        if kind not in known:
            raise BackendError(f"{self} has the memories {', '.join(map(repr, known))}, got {kind!r}")
        return Memory(kind, self)

    def memory_stats(self) -> dict[str, int] | None:
        """The use of the device's memory in bytes, or None where the platform does not count it."""
        if self.platform == "cpu":
            return None
        return compiler().memory_stats(self)

    def __repr__(self) -> str:
        return f"{self.target.title()}Device(id={self.id})"

    def __reduce__(self) -> Any:
        return device, (self.target, self.id)


def memory_kinds(platform: str, device: Device | None = None) -> tuple[str, ...]:
    """The kinds of memory of devices of a platform; the first is the one where arrays are by default.

    Args:
      platform: the platform.
      device: one of its devices, or None. If the device is in use, its client names the memories.
    """
    if platform == "cpu":
        return ("device", "pinned_host", "unpinned_host")
    return ("device", "pinned_host") if device is None or device.bound is None else compiler().memory_kinds(device)


class Space(enum.Enum):
    """A kind of memory, to which ``device_put`` moves arrays. Programs for CPUs, with one memory, move nothing.

    >>> import pullback.numpy as jnp
    >>> from pullback import device_put, memory
    >>> print(device_put(jnp.ones(2), memory.Space.Host))
    [1. 1.]
    """

    Device = 1
    Host = 2
    Any = 3


_devices: dict[tuple[str, int], Device] = {}


def device(platform: str, number: int) -> Device:
    """Return the one object for the device of a platform with the given number."""
    key = (platform, number)
    return _devices.get(key) or _devices.setdefault(key, Device(platform, number))


HOST = device("cpu", 0)


def join(number: int, count: int) -> None:
    """Record that this process has the number ``number`` among ``count`` processes.

    The CPU devices of this process are renumbered, so that no other process uses the same numbers.
    """
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
      kind: ``"device"`` for the device's own, ``"pinned_host"`` or ``"unpinned_host"``.
    """

    kind: str
    device: Device

    @property
    def process_index(self) -> int:
        """The number of the process that the device belongs to."""
        return self.device.process_index

    @property
    def platform(self) -> str:
        """The platform of the device."""
        return self.device.platform

    def addressable_by_devices(self) -> list[Device]:
        """The devices that can use the memory: its own device."""
        return [self.device]


class DeviceAssignment:
    """The devices of a partitioned program, in order. Equal assignments are one object.

    Attributes:
      devices: the devices; device i runs partition i.
      local: those devices that belong to this process.
      is_local: whether all devices belong to this process.
    """

    __slots__ = ("__weakref__", "bound", "devices", "is_local", "local")
    is_host = False

    def __init__(self, members: tuple[Device, ...]) -> None:
        self.devices = members
        self.local = tuple(d for d in members if d.is_local)
        self.is_local = len(self.local) == len(members)
        self.bound: Any = None  # the backend's object for it, made at first use

    def in_types(self, shape: tuple[int, ...]) -> None:
        """Return None: types say nothing of devices without a mesh."""

    @property
    def id(self) -> tuple[int, ...]:
        """The numbers of the devices, in order."""
        return tuple(d.id for d in self.devices)

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return self.devices[0].platform

    @property
    def target(self) -> str:
        """The platform of the devices, by the name for which programs are lowered."""
        return self.devices[0].target

    @property
    def device_kind(self) -> str:
        """The vendor's name of the devices' model."""
        return self.devices[0].device_kind

    def __repr__(self) -> str:
        return f"{len(self.devices)} devices {self.devices}"

    def __reduce__(self) -> Any:
        return assignment, (self.devices,)


_assignments: weakref.WeakValueDictionary[tuple[Device, ...], DeviceAssignment] = weakref.WeakValueDictionary()
_assigning = lock(globals(), "_assigning")


def assignment(members: Sequence[Device]) -> DeviceAssignment:
    """Return the :class:`DeviceAssignment` of some devices, in order: the same object for the same devices."""
    key = tuple(members)
    with _assigning:
        found = _assignments.get(key)
        if found is None:
            found = _assignments[key] = DeviceAssignment(key)
    return found


def note_several() -> None:
    """Record that this process uses several devices, and notify the listeners of ``runtime.several_devices_used``."""
    here.several_in_use = True
    runtime.several_devices_used()


def cpu_count() -> int:
    """The number of devices into which the CPU is divided.

    It is set by the switch ``num_cpu_devices``; otherwise by ``--xla_force_host_platform_device_count`` in the
    environment variable ``XLA_FLAGS``; otherwise it is 1.
    """
    count = int(config.num_cpu_devices)
    if count < 1:
        found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        count = int(found[-1]) if found else 1
    return max(1, count)


def _check_cpu_count(value: Any) -> None:
    """Raise an error if a value of ``num_cpu_devices`` is invalid, or differs from that of a CPU already in use."""
    if type(value) is not int or value < -1 or value == 0:
        raise ArgumentError(f"num_cpu_devices must be a positive integer, or -1 for the default, got {value!r}")
    if "cpu" in forks.used and value not in (-1, cpu_count()):
        raise BackendError(
            f"num_cpu_devices cannot be set to {value}: the CPU is already in use as {cpu_count()} device(s). Set the "
            "switch before the first program is compiled and before arrays are put on devices, right after `import "
            "pullback` for example, or with XLA_FLAGS=--xla_force_host_platform_device_count=... in the environment."
        )


check_value("num_cpu_devices", _check_cpu_count)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform.

    Args:
      backend: ``"cpu"`` (the default), ``"cuda"`` (also ``"gpu"``), or the name of another plug-in.

    Returns:
      A list of the devices of all processes that compute together. The CPU of a process is one device, or as many as
      the switch ``num_cpu_devices`` says when the first program is compiled.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback import devices
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
    platform = _default_platform(config.platforms) if backend is None else backend
    if not isinstance(platform, str):
        raise BackendError(f"expected the name of a platform, got {typed(backend)}")
    return "cuda" if platform == "gpu" else platform


def _default_platform(platforms: str | None) -> str:
    """The platform on which programs run, according to a value of the switch ``platforms``: its first, or the best."""
    first = (platforms or "").partition(",")[0].strip()
    return ("cuda" if first == "gpu" else first) or automatic_platform()


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of a process.

    Args:
      process_index: the number of the process; this one, if it is None.
      backend: the platform, as in :func:`devices`.
      host_id: an older name of ``process_index``.

    Returns:
      A list of the devices, in the order of :func:`devices`.

    Raises:
      ArgumentError: there is no such process (a ValueError).
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback import local_devices
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

    Args:
      backend: the name of a platform; None for the default one.

    Returns:
      A number of devices, an int.

    Raises:
      BackendError: there is no such platform (a RuntimeError).

    >>> from pullback import device_count
    >>> device_count()
    1
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    Args:
      backend: the name of a platform; None for the default one.

    Returns:
      A number of devices, an int.

    Raises:
      BackendError: there is no such platform (a RuntimeError).

    >>> from pullback import local_device_count
    >>> local_device_count()
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The platform on which programs run by default.

    Returns:
      The name of a platform: ``"cpu"``, ``"gpu"``, or that of another plug-in.

    >>> from pullback import default_backend
    >>> default_backend()
    'cpu'
    """
    return default_device().platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together, from 0; see :mod:`pullback.distributed`.

    Args:
      backend: without effect, since processes are those of all platforms.

    Returns:
      A number from 0, an int.

    >>> from pullback import process_index
    >>> process_index()
    0
    """
    return here.process


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together.

    Args:
      backend: without effect, since processes are those of all platforms.

    Returns:
      A number of processes, an int.

    >>> from pullback import process_count
    >>> process_count()
    1
    """
    return here.processes


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that compute together.

    Args:
      backend: without effect, since processes are those of all platforms.

    Returns:
      A list of ints.

    >>> from pullback import process_indices
    >>> process_indices()
    [0]
    """
    return list(range(here.processes))


def default_device() -> Device:
    """The device on which programs run unless the user chooses another."""
    setting = config.default_device
    if setting is None:
        return HOST if (config.platforms or automatic_platform()) == "cpu" else local_devices()[0]
    return local_devices(backend=setting)[0] if isinstance(setting, str) else setting


def _is_elsewhere(switches: Mapping[str, Any]) -> bool:
    """Whether the default device is another than the host's CPU, according to ``switches``. It makes no client."""
    setting = switches["default_device"]
    if isinstance(setting, Device):
        return not setting.is_host
    return _default_platform(setting if isinstance(setting, str) else switches["platforms"]) != "cpu"


decide_where(lambda switches: ELSEWHERE if _is_elsewhere(switches) else None)
runtime.forked.append(stay_on_host)  # a forked child does not compile

Devices = Device | DeviceAssignment
"""The device, or the devices of a mesh, on which a program runs."""


def device_for(signatures: Iterable[Signature], name: str) -> tuple[Any, bool]:
    """Find the device, or the devices of a mesh, on which a program with arguments of these signatures runs.

    Args:
      signatures: the signatures of the arguments.
      name: the name of the program, for the error message.

    Returns:
      The device or devices to which arguments are committed, and True; if none is committed, the default device and
      False.

    Raises:
      IncompatibleDevicesError: arguments are committed to different devices (a RuntimeError and ValueError).
    """
    found: Any = None
    for sig in signatures:
        placement = sig.placement
        if placement is not None and placement.runs_on is not found:
            found = placement.runs_on if found is None else joined(found, placement.runs_on, f"the arguments of {name}")
    return (default_device(), False) if found is None else (found, True)


def joined(first: Devices, second: Devices, what: str) -> Devices:
    """The devices of a program with operands committed to ``first`` and ``second``, which must be the same devices.

    A device, and a mesh of this device alone, count as the same: the result is the mesh's devices.

    Args:
      first, second: the devices.
      what: names the operands in the error message.

    Raises:
      IncompatibleDevicesError: the devices differ (a RuntimeError and ValueError).
    """
    if first is second:
        return first
    single, other = (first, second) if isinstance(first, Device) else (second, first)
    if isinstance(other, DeviceAssignment) and other.devices == (single,):
        return other
    raise IncompatibleDevicesError(
        f"{what} are on different devices, {first} and {second}: move them to one, or to one mesh, with device_put"
    )


def device_named(device: Any) -> Device:
    """Return the first local device of a platform, if ``device`` is the platform's name; return a device unchanged.

    Raises:
      BackendError: the argument is neither a device nor a name (a RuntimeError).
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, str):
        return local_devices(backend=device)[0]
    raise BackendError(f"a device must be one of devices(), or the name of a platform, got {device!r}")
