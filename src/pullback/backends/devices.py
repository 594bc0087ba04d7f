"""Devices, by platform and number. This module is light: it does not need the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.backends.backend import backend as compiler
from pullback.core.array import Signature
from pullback.core.config import config
from pullback.core.errors import ArgumentError, BackendError


class Device:
    """A device that holds arrays and runs programs. There is one object for each.

    Attributes:
      platform: ``cpu``, ``cuda``, ...
      id: its number among the devices of its platform.
    """

    __slots__ = ("__weakref__", "bound", "id", "platform")

    def __init__(self, platform: str, number: int) -> None:
        self.platform = platform
        self.id = number
        self.bound: Any = None  # what the backend knows it as, once that is asked for

    @property
    def process_index(self) -> int:
        """The number of the process that it belongs to."""
        if processes == 1:
            return 0
        return self.id // IDS_PER_PROCESS if self.platform == "cpu" else compiler().process_of(self)

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

IDS_PER_PROCESS = 2048
"""Processors' devices are numbered from this times the number of their process."""
process = 0
"""The number of this process among those that compute together."""
processes = 1
"""How many processes compute together."""


def join(number: int, count: int) -> None:
    """Note that this process is one of several. Its first device, ``HOST``, has another number from now on."""
    global process, processes
    process, processes = number, count
    del _devices["cpu", HOST.id]
    HOST.id = number * IDS_PER_PROCESS
    _devices["cpu", HOST.id] = HOST


several_in_use = False
"""Whether there may be buffers on more than one device, so that it matters where one is."""
when_several: list[Callable[[], None]] = []
"""Functions that are called when a second device comes into use."""


def note_several() -> None:
    """What a backend calls when a second device comes into use."""
    global several_in_use
    several_in_use = True
    for notify in when_several:
        notify()


def cpu_count() -> int:
    """How many devices the processor is divided into: the switch ``num_cpu_devices``, or one."""
    return max(1, int(config.num_cpu_devices))


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
    if processes > 1:
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
        number = process
    if not isinstance(number, int) or not 0 <= number < processes:
        raise ArgumentError(f"process_index must be one of process_indices(), {process_indices()}, got {number!r}")
    if processes == 1:
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
    return process


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together.

    >>> process_count()
    1
    """
    return processes


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that compute together.

    >>> process_indices()
    [0]
    """
    return list(range(processes))


def default_device() -> Device:
    """The device on which programs run that were told no other."""
    chosen = config.default_device
    if chosen is None:
        return HOST if config.platforms == "cpu" else local_devices()[0]
    return local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen


def device_for(kinds: Iterable[Signature], name: str) -> tuple[Device, bool]:
    """The device for a program on arrays of some signatures, and whether anybody asked for it.

    Raises:
      BackendError: the arrays were put on different devices (a RuntimeError and ValueError).
    """
    found: Any = None
    for kind in kinds:
        chosen = kind.device
        if chosen is not None and chosen is not found:
            if found is not None:
                raise BackendError(
                    f"the arguments of {name} are on different devices, {found} and {chosen}: move them to one with "
                    "device_put"
                )
            found = chosen
    return (default_device(), False) if found is None else (found, True)


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


class SingleDeviceSharding:
    """All elements on one device."""

    __slots__ = ("_device",)
    memory_kind = "device"

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold the elements."""
        return {self._device}

    def __eq__(self, other: object) -> bool:
        return type(other) is SingleDeviceSharding and other._device is self._device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r})"
