# long: because it is the one module that touches jaxlib
"""The adapter of ``jaxlib``: devices, buffers and executables of XLA. No other module touches it.

The Python interface of ``jaxlib`` is private and changes between releases: this module handles the differences between
0.10.2 and 0.12. The first call of one of these functions imports ``jaxlib``, which takes a tenth of a second. The
functions of this module implement :class:`pullback.backends.compiler.backend.Backend`.
"""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import math
import os
import re
import socket
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.backends.compiler import beside, plugins
from pullback.backends.compiler.backend import GRACE, SLICE, Backend, Buffer, Group, Store
from pullback.backends.compiler.foreign_programs import ForeignCall, Operation
from pullback.backends.devices import devices, transfers
from pullback.backends.devices.devices import Device, DeviceAssignment, Devices, cpu_count
from pullback.backends.devices.devices import default_device as default_device
from pullback.backends.devices.shardings import NamedSharding
from pullback.backends.devices.storage import from_stored, stored_dtype, to_stored
from pullback.backends.hlo.builder import PARTITIONED
from pullback.backends.hlo.module import GOES_ON, TAKEN
from pullback.backends.host import own
from pullback.backends.host.calls import check_failed, check_platform, host_calls, original
from pullback.backends.host.memory import large_heaps_for_new_threads
from pullback.backends.processes import ending, forks
from pullback.backends.processes.calls import Call
from pullback.backends.processes.descriptors import not_inherited
from pullback.core.config import config
from pullback.core.errors import (
    AllocationError,
    ArgumentError,
    BackendError,
    CompilationError,
    DistributedError,
    DistributedTimeoutError,
    ExecutionError,
    PullbackError,
)
from pullback.core.interrupts import imported, uninterrupted
from pullback.core.locks import cached_property, lock
from pullback.core.registry import Registry
from pullback.core.runtime import runtime
from pullback.core.types import Shape, ShapedArray

_lock = lock(globals(), "_lock", reentrant=True)
_clients: dict[str, Any] = {}
_c_apis: dict[str, Any] = {}
"""The loaded PJRT plug-ins, by platform."""

RELEASES = ((0, 10, 2), (0, 13))
"""The oldest release of ``jaxlib`` that is tested, and the first that is not; pyproject.toml has the same bounds."""


@functools.cache
def library() -> Any:
    """Import ``jaxlib``, and return its modules ``xla_client`` and ``_jax`` in a :class:`_Library`.

    Raises:
      BackendError: ``jaxlib`` is not installed, or its release is not one of ``RELEASES``.
    """
    ending.prepare()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # silences its messages about devices on stderr
    try:
        _check_release(imported("jaxlib.version").__version__)
        xla_client, jax = imported("jaxlib.xla_client"), imported("jaxlib._jax")
    except ImportError as error:
        raise BackendError(f"compilation needs jaxlib, which is not installed or does not load: {error}") from error
    runtime.memory_needed.append(jax.collect_garbage)
    return _Library(xla_client, jax)


def _check_release(version: str) -> None:
    """Raise a BackendError unless ``version`` of ``jaxlib`` is one of ``RELEASES``."""
    numbers = _numbers_of(version)
    oldest, limit = RELEASES
    if not oldest <= numbers < limit:
        wanted = f"jaxlib>={'.'.join(map(str, oldest))},<{'.'.join(map(str, limit))}"
        age = "old" if numbers < oldest else "new"
        raise BackendError(f"jaxlib {version} is too {age} for this release of Pullback: pip install '{wanted}'")


def _numbers_of(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, such as 0.12.0.1 or 0.13.0.dev20260101."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


class _Library:
    """The modules of ``jaxlib``, and the functions and classes whose names differ between its releases."""

    def __init__(self, xla_client: Any, jax: Any) -> None:
        self.xla_client = xla_client
        self.jax = jax
        self.sharding_class = _sharding_class(jax.SingleDeviceSharding)
        self.several_class = _several_class(jax.Sharding)
        self.put = jax.batched_device_put
        self.snapshot = jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

        self.collect = jax.ExecuteResults.consume_with_handlers
        # Also of messages with bytes of the program that are no text, and of bounds that the runtime checks itself.
        self.errors = (jax.JaxRuntimeError, UnicodeDecodeError, IndexError)

    @cached_property
    def handler_flags(self) -> tuple[bool, ...]:
        """The flags that jaxlib's ``array_result_handler`` takes last: two in release 0.10, one in later releases."""
        return (True, True) if "skip_checks" in (self.jax.array_result_handler.__doc__ or "") else (True,)


def _sharding_class(base: Any) -> Any:
    class OnDevice(base):  # type: ignore[misc]
        """The runtime's sharding of arrays on one device."""

        memory_kind = None

        def __init__(self, device: Any) -> None:
            base.__init__(self, device)
            self.on = device

        @property
        def device_set(self) -> set[Any]:
            return {self.on}

        @property
        def _device_assignment(self) -> tuple[Any, ...]:
            return (self.on,)

        def _to_xla_hlo_sharding(self, ndim: int) -> Any:
            return library().xla_client.HloSharding.replicate()

        def shard_shape(self, shape: Any) -> Any:
            return shape

    return OnDevice


def _several_class(base: Any) -> Any:
    class OverDevices(base):  # type: ignore[misc]
        """The runtime's sharding of arrays over several devices: an adapter of a ``NamedSharding``."""

        memory_kind = None

        def __init__(self, sharding: NamedSharding, on: BoundAssignment) -> None:
            base.__init__(self)
            self.sharding = sharding
            if sharding.memory_kind != "device" and sharding.platform != "cpu":  # the memories of a CPU are one
                self.memory_kind = sharding.memory_kind
            self.raw = on.raw
            self.device_list = on.device_list

        @property
        def _internal_device_list(self) -> Any:
            return self.device_list

        @property
        def is_fully_addressable(self) -> bool:
            return self.sharding.is_fully_addressable

        @property
        def is_fully_replicated(self) -> bool:
            return self.sharding.is_fully_replicated

        def shard_shape(self, shape: Any) -> Any:
            return self.sharding.shard_shape(shape)

        @property
        def device_set(self) -> set[Any]:
            return set(self.raw)

        @property
        def _device_assignment(self) -> Any:
            return self.raw

        def _to_xla_hlo_sharding(self, ndim: int) -> Any:
            return hlo_sharding(self.sharding, ndim)

        @property
        def _addressable_device_assignment(self) -> Any:
            return tuple(d for d, ours in zip(self.raw, self.sharding.assignment.devices) if ours.is_local)

    return OverDevices


# Platforms -----------------------------------------------------------------------------------------------------------


class Bound:
    """The runtime's own objects for a device: the device, its client, a list of the device, and the sharding on it.

    There is a second sharding of the same meaning, which the runtime reads without calling Python. It suits buffers
    that only programs read, as it lacks what the runtime asks of shardings elsewhere.
    """

    __slots__ = ("client", "device_list", "raw", "sharding", "sharding_for_programs")

    def __init__(self, raw: Any, client: Any) -> None:
        lib = library()
        self.raw = raw
        self.client = client
        self.sharding = lib.sharding_class(raw)
        self.device_list = lib.jax.DeviceList((raw,))
        self.sharding_for_programs = lib.jax.GSPMDSharding(self.device_list, lib.xla_client.HloSharding.replicate())


class BoundAssignment:
    """The runtime's own objects for the devices of a partitioned program: the devices, their client, a list of them."""

    __slots__ = ("client", "device_list", "raw")

    def __init__(self, devices: DeviceAssignment) -> None:
        members = list(map(bound, devices.devices))
        self.client = members[0].client
        self.raw = tuple(on.raw for on in members)
        self.device_list = library().jax.DeviceList(self.raw)


def bound_to(devices: Devices) -> Any:
    """Look up the runtime's objects for a device, or for the devices of a partitioned program.

    Raises:
      BackendError: the runtime does not have this device (a RuntimeError).
    """
    if devices.bound is None:
        if isinstance(devices, Device):
            return bound(devices)
        devices.bound = BoundAssignment(devices)
    return devices.bound


def runtime_sharding(sharding: NamedSharding) -> Any:
    """The runtime's object for a sharding over several devices."""
    if sharding.bound is None:
        sharding.bound = library().several_class(sharding, bound_to(sharding.assignment))
    return sharding.bound


def bound(device: Device) -> Bound:
    """Look up the runtime's objects for a device.

    Raises:
      BackendError: the runtime does not have this device (a RuntimeError).
    """
    found: Bound | None = device.bound
    if found is None:
        made = client(device.target)
        known = {raw.id: raw for raw in made.devices()}
        if device.id not in known:
            hint = " The switch num_cpu_devices must be set before the first program is compiled."
            raise BackendError(
                f"there is no {device}: the platform {device.platform!r} has {len(known)} devices."
                f"{hint if device.platform == 'cpu' else ''}"
            )
        found = Bound(known[device.id], made)
        _by_raw[found.raw] = device
        if len(_by_raw) > 1:
            devices.note_several()
        device.bound = found  # last, for an interrupt may come at any time
    return found


_by_raw: dict[Any, Device] = {}


def device_kind(device: Device) -> str:
    """The vendor's name of a device's model."""
    return str(bound(device).raw.device_kind)


def memory_kinds(device: Device) -> tuple[str, ...]:
    """The kinds of memory that a device can address; the first is its own."""
    raw = bound(device).raw
    return tuple(dict.fromkeys(str(memory.kind) for memory in (raw.default_memory(), *raw.addressable_memories())))


def memory_stats(device: Device) -> dict[str, int] | None:
    """The use of a device's memory in bytes, or None where the platform does not count it."""
    return bound(device).raw.memory_stats()  # type: ignore[no-any-return]


def _leak(thing: Any) -> None:
    """Leak an object, so that not even the end of the process frees it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _forget_clients() -> None:
    """Drop the parent's clients in a forked child without freeing them: that would wait for threads that are gone."""
    for made in _clients.values():
        _leak(made)
    _clients.clear()
    for device in _by_raw.values():
        device.bound = None


runtime.forked.append(_forget_clients)


def client(platform: str = "cpu") -> Any:
    """Return the client of a platform; the first call makes it.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).
    """
    found = _clients.get(platform)
    if found is not None:
        return found
    forks.check("compiling, or using a device,")
    with _lock:
        if platform not in _clients:
            forks.used.append(platform)
            if platform == "cpu":
                with large_heaps_for_new_threads():
                    _clients["cpu"] = _cpu_client()
                if own.loops is not None:
                    register = library().xla_client.register_custom_call_target
                    register(GOES_ON, own.loops.loops_go_on(True), "cpu", api_version=1)
                    register(TAKEN, own.loops.taking(), "cpu", api_version=1)
            else:
                _clients[platform] = _factories[platform]() if platform in _factories else _plugin_client(platform)
        return _clients[platform]


_factories: dict[str, Callable[[], Any]] = {}
"""Functions that make the clients of the platforms that users have registered."""


def register_platform(name: str, factory: Callable[[], Any]) -> None:
    """Register a platform whose client ``factory`` makes, when the platform is first used.

    Raises:
      ArgumentError: there is such a platform already (a TypeError and a ValueError).
    """
    if name in ("cpu", *plugins.PLUGINS, *_clients):
        raise ArgumentError(f"there is a platform {name!r} already: choose another name")
    _factories[name] = factory


def clients() -> dict[str, Any]:
    """Return the clients that were made so far, by platform."""
    return dict(_clients)


def count(platform: str) -> int:
    """The number of devices of a platform."""
    return len(client(platform).devices())


def device_ids(platform: str, process: int | None = None) -> list[int]:
    """The numbers of the devices of ``process``, or of all processes if it is None."""
    return [raw.id for raw in client(platform).devices() if process is None or raw.process_index == process]


def process_of(platform: str, number: int) -> int:
    """The number of the process that a device belongs to."""
    return next((raw.process_index for raw in client(platform).devices() if raw.id == number), devices.here.process)


def _cpu_client() -> Any:
    make = library().xla_client.make_cpu_client
    if _joined is None:
        return make(num_devices=cpu_count())
    group, common = _joined
    try:
        with not_inherited():
            collectives = library().jax.make_gloo_tcp_collectives(distributed_client=common, hostname=group.host)
    except library().jax.JaxRuntimeError as error:  # as on Windows
        raise BackendError(f"this jaxlib cannot connect the CPU devices of several processes: {error}") from None
    together = {"distributed_client": common, "node_id": group.process, "num_nodes": group.processes}
    minutes = max(1, math.ceil(group.seconds / 60))
    limits = {f"get_{scope}_topology_timeout_minutes": minutes for scope in ("local", "global")}
    try:
        return group.link.result(
            lambda: make(**together, collectives=collectives, num_devices=cpu_count(), **limits),
            "making the devices of all processes known to each other",
        )
    except library().jax.JaxRuntimeError as error:
        raise _coordination_failure(error, "making the devices of all processes known to each other") from None


def _plugin_client(name: str) -> Any:
    """Make a client of the platform ``name``, whose plug-in is installed, or named by the environment.

    Raises:
      BackendError: there is no such plug-in, or it does not work here (a RuntimeError).
      ArgumentError: an option has a value that it does not take (a ValueError).
    """
    lib = library()
    path = plugins.library_of(name)
    if path is None:
        raise BackendError(plugins.missing(name))
    if misfit := plugins.misfit(name, imported("jaxlib.version").__version__):
        raise BackendError(misfit)
    options = plugins.options_of(name, lib.xla_client.generate_pjrt_gpu_plugin_options)
    try:
        if name == "cuda":
            plugins.load_nvidia_libraries(path)
        if not lib.xla_client.pjrt_plugin_loaded(name):
            _c_apis[name] = lib.xla_client.load_pjrt_plugin_dynamically(name, path)
        if not lib.xla_client.pjrt_plugin_initialized(name):
            lib.xla_client.initialize_pjrt_plugin(name)
        if name in plugins.PLUGINS:
            _register_calls(name, _c_apis.get(name))
        made = _client_of_plugin(name, options)
    except RuntimeError as error:
        raise BackendError(plugins.failed(name, path, error)) from None
    if not made.devices():
        raise BackendError(plugins.failed(name, path, "it has no devices"))
    return made


def _client_of_plugin(name: str, options: dict[str, Any]) -> Any:
    """Make a client of a plug-in that is loaded. Where processes are joined, its devices are those of all."""
    make = library().xla_client.make_c_api_client
    if _joined is None:
        return make(name, options, None)
    group, common = _joined
    options = {**options, "node_id": group.process, "num_nodes": group.processes}
    if group.visible is not None:
        options["visible_devices"] = list(group.visible)
    return group.link.result(
        lambda: make(name, options, common), "making the devices of all processes known to each other"
    )


_CALLS = ("gpu_solver", "gpu_linalg", "gpu_prng", "gpu_sparse", "gpu_rnn", "gpu_triton")
"""The modules of ``jaxlib`` that list the functions which a plug-in's packages offer; the last two register theirs."""


def _register_calls(name: str, c_api: Any) -> None:
    """Let programs of a plug-in call the functions of its packages: cuSOLVER, cuSPARSE, cuDNN, Python's callbacks.

    Args:
      name: the platform.
      c_api: the loaded plug-in; None if the package ``jax`` loaded it in this process, and registered them.
    """
    if c_api is None:
        return
    xla, platform = library().xla_client, name.upper()
    extension = imported("jaxlib.plugin_support").import_from_plugin(name, f"{name}_plugin_extension")
    if extension is not None:
        xla.register_custom_type_handler(platform, functools.partial(extension.register_custom_type, c_api))
        xla.register_custom_call_handler(platform, functools.partial(extension.register_custom_call_target, c_api))
        for type_name, kind in extension.ffi_types().items():
            xla.register_custom_type(type_name, kind, platform=platform)
        for target, function in extension.ffi_handlers().items():
            xla.register_custom_call_target(target, function, platform=platform, api_version=1)
    for module in map(imported, (f"jaxlib.{module}" for module in _CALLS)):
        if hasattr(module, "initialize_hybrid_kernels"):
            module.initialize_hybrid_kernels()
        listed = module.registrations() if hasattr(module, "registrations") else {}
        for target, function, version in listed.get(platform, ()):
            xla.register_custom_call_target(target, function, platform=platform, api_version=version)
        for target in getattr(module, "batch_partitionable_targets", list)():
            xla.register_custom_call_as_batch_partitionable(target, c_api)


# Buffers -------------------------------------------------------------------------------------------------------------


def put(value: Any, aval: ShapedArray, device: Device, copy: bool = False) -> Buffer:
    """Put a NumPy value on a device, and return the buffer.

    Args:
      value: the elements.
      aval: the type of the elements.
      device: the target.
      copy: whether to copy the value, so that the caller may change it afterwards; otherwise the buffer shares the
        value's memory where the alignment allows it.
    """
    stored = to_stored(value)
    if stored.dtype is not aval.dtype:
        aval = ShapedArray(stored.shape, stored.dtype)
    on = device.bound or bound(device)
    lib = library()
    how = (True, True, lib.snapshot) if copy else (True,)
    if transfers.watchers and not device.is_host:
        with transfers.watched("host_to_device", aval.shape, aval.dtype, None, device):
            return lib.put(aval, on.sharding, [stored], [on.raw], *how, enable_x64=True)
    return lib.put(aval, on.sharding, [stored], [on.raw], *how, enable_x64=True)


_WIDE = {np.dtype(kind) for kind in ("int64", "uint64", "float64", "complex128")}


def to_device(aval: ShapedArray, device: Device, copy: bool) -> Callable[[np.ndarray[Any, Any] | complex], Buffer]:
    """Return a function that puts NumPy arrays of one type, or Python's numbers, on a device, for programs to read.

    Args:
      aval: the type, of a dtype that devices store as it is.
      device: the target.
      copy: whether to copy the elements, as by :func:`put`.
    """
    put = library().put
    how = (True, True, library().snapshot) if copy else (True,)
    wide = aval.dtype in _WIDE  # what the runtime makes of a number of Python's

    def moved(value: np.ndarray[Any, Any] | complex) -> Buffer:
        on = device.bound or bound(device)
        if transfers.watchers and not device.is_host:
            with transfers.watched("host_to_device", aval.shape, aval.dtype, None, device):
                return put(aval, on.sharding_for_programs, [value], [on.raw], *how, enable_x64=wide)
        return put(aval, on.sharding_for_programs, [value], [on.raw], *how, enable_x64=wide)

    return moved


def move(buffer: Buffer, device: Device) -> Buffer:
    """Copy a buffer to another device, of the same platform or of another, asynchronously."""
    lib, on, aval = library().jax, device.bound or bound(device), buffer.aval
    always = lib.ArrayCopySemantics.ALWAYS_COPY
    source = device_of(buffer)
    with transfers.watched(_direction(source, device), aval.shape, aval.dtype, source, device):
        (moved,) = lib.batched_copy_array_to_devices_with_sharding([buffer], [on.device_list], [on.sharding], [always])
    return moved


def _direction(source: Device, target: Device) -> str:
    """Name the direction of a transfer between two devices, of which one may be the host's."""
    if source.is_host:
        return "host_to_device"
    return "device_to_host" if target.is_host else "device_to_device"


def put_shards(shards: Sequence[Any], shape: Shape, dtype: np.dtype[Any], sharding: NamedSharding) -> Buffer:
    """Put a NumPy shard on each device of this process, and return the whole array over several devices.

    Args:
      shards: a shard for each device of this process, in the dtype in which devices store elements of ``dtype``.
      shape, dtype: of the whole array.
      sharding: how the array is divided among the devices.
    """
    lib, on = library(), runtime_sharding(sharding)
    local = list(on._addressable_device_assignment)
    contiguous = [np.ascontiguousarray(shard) if shard.ndim else shard for shard in shards]
    with transfers.watched("host_to_device", shape, dtype, None, sharding.assignment):
        return lib.put(ShapedArray(shape, dtype), on, contiguous, local, True, enable_x64=True)


def shards(buffer: Buffer) -> list[Buffer]:
    """The shards of an array over several devices that this process holds, each as a buffer on one device."""
    aval = ShapedArray(buffer._sharding.shard_shape(buffer.aval.shape), buffer.aval.dtype)
    found = []
    for shard in buffer._arrays:
        (raw,) = shard._sharding._internal_device_list  # of a sharding over one device, or over a mesh of one
        found.append(shard._rewrap_with_aval_and_sharding(aval, bound(_by_raw[raw]).sharding))
    return found


def shard_values(buffer: Buffer) -> list[np.ndarray[Any, Any]]:
    """The elements of each shard of an array that this process holds, in the dtype in which devices store them."""
    wait(buffer)
    with transfers.watched("device_to_host", buffer.aval.shape, buffer.aval.dtype, buffer._sharding, None):
        return list(map(to_numpy, buffer._arrays))


def assembled(buffers: Sequence[Buffer], shape: Shape, dtype: np.dtype[Any], sharding: NamedSharding) -> Buffer:
    """Make an array over several devices from its shards.

    Args:
      buffers: the shard on each device of this process.
      shape, dtype: of the whole array.
      sharding: how the array is divided among the devices.
    """
    return library().jax.ArrayImpl(ShapedArray(shape, dtype), runtime_sharding(sharding), list(buffers), True, True)


def copied(buffer: Buffer) -> Buffer:
    """Copy a buffer on the same devices, asynchronously."""
    lib, sharding = library().jax, buffer._sharding
    several = isinstance(sharding, library().several_class)
    devices = sharding._internal_device_list if several else bound(device_of(buffer)).device_list
    always = lib.ArrayCopySemantics.ALWAYS_COPY
    (copy,) = lib.batched_copy_array_to_devices_with_sharding([buffer], [devices], [sharding], [always])
    return copy


def from_dlpack(capsule: Any, device: Device) -> np.ndarray[Any, Any] | None:
    """Read a DLPack capsule on ``device`` as a NumPy array; None if the runtime does not know its dtype."""
    lib, on = library().jax, device.bound or bound(device)
    try:
        return to_numpy(lib.dlpack_managed_tensor_to_buffer(capsule, on.raw, None))
    except (lib.JaxRuntimeError, ValueError, TypeError):
        return None


def to_dlpack(value: np.ndarray[Any, Any], device: Device) -> Any:
    """Copy a NumPy array to a device, and return a DLPack capsule of the copy."""
    lib, on = library(), device.bound or bound(device)
    aval = ShapedArray(value.shape, value.dtype)
    buffer = lib.put(aval, on.sharding, [value], [on.raw], True, True, lib.snapshot, enable_x64=True)
    wait(buffer)
    return lib.jax.buffer_to_dlpack_managed_tensor(buffer)


def stream_of(device: Device) -> int | None:
    """The stream of a GPU on which the runtime waits for other libraries; None for a device without streams."""
    try:
        return bound(device).raw.get_stream_for_external_ready_events()  # type: ignore[no-any-return]
    except library().jax.JaxRuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            return None
        raise


def shared_from_dlpack(capsule: Any, device: Device, stream: int | None, kind: int) -> Buffer:
    """Make a buffer of a DLPack capsule on ``device``, which shares its memory; see ``backend.py``."""
    raw = bound(device).raw
    try:
        return library().jax.dlpack_managed_tensor_to_buffer(capsule, raw, stream, None, kind)
    except library().jax.JaxRuntimeError as error:
        raise BackendError(f"from_dlpack: the runtime cannot take the array: {error}") from None


def shared_to_dlpack(buffer: Buffer, stream: int | None) -> Any:
    """Return a DLPack capsule that shares the memory of a buffer; ``stream`` waits until it is computed."""
    return library().jax.buffer_to_dlpack_managed_tensor(buffer, stream)


def local_hardware_id(device: Device) -> int:
    """The number of a device among those of its machine."""
    return int(bound(device).raw.local_hardware_id)


def type_of(buffer: Buffer) -> ShapedArray:
    """The shape of a buffer and the dtype of its elements, as devices store them."""
    return ShapedArray(tuple(buffer.aval.shape), buffer.aval.dtype)


def device_of(buffer: Buffer) -> Device:
    """The device that holds a buffer."""
    return _by_raw[buffer._sharding._internal_device_list[0]]


def to_numpy(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Wait until a buffer is computed, and return its elements in the dtype in which devices store them.

    On the CPU the result shares the buffer's memory. The buffer protocol is used where possible, since the array method
    of ``jaxlib`` would import an installed JAX.

    Raises:
      AllocationError, ExecutionError: the program that computes the buffer failed.
    """
    wait(buffer)  # the protocol cannot report an error: it would end the process
    try:
        return np.asarray(memoryview(buffer))
    except (BufferError, TypeError):
        return buffer._single_device_array_to_np_array_did_copy()[0]  # type: ignore[no-any-return]


def wait(buffer: Buffer) -> None:
    """Wait until a buffer is computed.

    Raises:
      AllocationError: the program that computes it ran out of memory (a MemoryError and RuntimeError).
      ExecutionError: the program failed for another reason (a RuntimeError).
    """
    if forks.in_child() and not buffer.is_ready():
        raise forks.refusal(
            "waiting for an array that the parent process was computing (call block_until_ready before the fork)"
        )
    try:
        buffer.block_until_ready()
    except RuntimeError as error:
        raise failure(error) from None


def failure(error: Exception) -> Exception:
    """Translate the runtime's error of a failed program to an AllocationError or ExecutionError."""
    message = str(error)
    if "Out of memory" in message or "RESOURCE_EXHAUSTED" in message:
        return AllocationError(
            f"a compiled program ran out of memory and has no results; the runtime says: {message} Process a batch "
            f"in chunks (lax.map with batch_size), recompute residuals with checkpoint, or donate arguments."
        )
    return ExecutionError(f"a compiled program failed and has no results; the runtime says: {message}")


def fetch(buffer: Buffer, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Wait for the elements of a buffer, and return them as an array of ``dtype``."""
    if config.transfer_guard_device_to_host is not None and device_of(buffer).platform != "cpu":
        transfers.check("device_to_host", ShapedArray(buffer.aval.shape, dtype))
    if transfers.watchers and not (source := device_of(buffer)).is_host:
        with transfers.watched("device_to_host", buffer.aval.shape, buffer.aval.dtype, source, None):
            value = to_numpy(buffer)
    else:
        value = to_numpy(buffer)
    return value if value.dtype is dtype else from_stored(value, dtype)


def fetch_ahead(buffer: Buffer) -> None:
    """Start copying the elements of a buffer to the host."""
    source = device_of(buffer)
    if source.is_host:
        return
    with transfers.watched("device_to_host", buffer.aval.shape, buffer.aval.dtype, source, None):
        buffer._copy_single_device_array_to_host_async()


# Processes -----------------------------------------------------------------------------------------------------------

_FOR_EVER = 10**8
"""Seconds before the runtime's own time runs out, which ends the process; ``processes/links.py`` looks at the time."""
_joined: tuple[Group, Any] | None = None


class _Service:
    def __init__(self, processes: int) -> None:
        lib = library().jax
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        limits = {"heartbeat_timeout": _FOR_EVER, "cluster_register_timeout": _FOR_EVER, "shutdown_timeout": 5}
        self.service = lib.get_distributed_runtime_service(
            f"127.0.0.1:{self.port}",
            processes,
            **_known(lib.get_distributed_runtime_service, {**limits, "recoverable": True}),
        )

    def stop(self, client_ended: bool) -> None:
        if client_ended:
            self.service.shutdown()
        else:  # the service would wait for the calls of the client, which ends the process if they fail
            _leak(self.service)

    def forget(self) -> None:
        _leak(self.service)


def _known(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Select those ``arguments`` that a function of the installed ``jaxlib`` accepts, according to its docstring."""
    return {name: value for name, value in arguments.items() if f" {name}: " in (function.__doc__ or "")}


serve = _Service


class _Store:
    def __init__(self, common: Any, group: Group) -> None:
        self.common = common
        self.group = group

    def put(self, key: str, value: bytes) -> None:
        self._do(lambda: self.common.key_value_set_bytes(key, value), f"setting {key!r}", (0,))

    def get(self, key: str, of: Collection[int]) -> bytes:
        limit = math.ceil(1000 * SLICE)
        wait = self.common.blocking_key_value_get_bytes
        while True:
            try:
                what = f"waiting for {key!r}"
                return self._do(lambda: wait(key, limit), what, of)  # type: ignore[no-any-return]
            except DistributedTimeoutError:
                continue

    def delete(self, key: str) -> None:
        self._do(lambda: self.common.key_value_delete(key), f"deleting {key!r}", (0,))

    def _do(self, work: Callable[[], Any], what: str, of: Collection[int] | None = None) -> Any:
        try:
            return self.group.link.result(work, what, of)
        except library().jax.JaxRuntimeError as error:
            raise _coordination_failure(error, what) from None

    def close(self, reachable: bool) -> bool:
        global _joined
        _joined = None
        if not reachable:
            return False
        try:
            self.common.shutdown()
        except library().jax.JaxRuntimeError:  # the service is gone
            return False
        return True

    def forget(self) -> None:
        global _joined
        _joined = None
        _leak(self.common)


def _coordination_failure(error: Exception, what: str) -> Exception:
    message = str(error).partition("\nRPC:")[0].strip()
    if "DEADLINE_EXCEEDED" in message:
        return DistributedTimeoutError(f"{what} took too long; the runtime says: {message}")
    return DistributedError(f"{what} failed; the runtime says: {message}")


def join(group: Group) -> Store:
    """Connect this process to the others of a group, and return the key-value store that they share.

    Raises:
      ProcessLostError: a process is gone (a RuntimeError).
      DistributedTimeoutError: other processes did not connect in time (a TimeoutError).
    """
    global _joined
    lib = library().jax
    limits = {"heartbeat_timeout": _FOR_EVER, "init_timeout": _FOR_EVER, "shutdown_timeout": 5}
    common = lib.get_distributed_runtime_client(
        f"127.0.0.1:{group.port}",
        group.process,
        **_known(lib.get_distributed_runtime_client, {**limits, "shutdown_on_destruction": False}),
    )
    _leak(common)  # freeing it would wake waiting threads while the interpreter ends
    store = _Store(common, group)
    group.link.result(common.connect, "connecting to the coordination service", seconds=group.seconds)
    _joined = group, common
    return store


# Executables ---------------------------------------------------------------------------------------------------------


executables: Registry[Executable] = Registry()
"""The compiled programs that are alive."""


class Executable:
    """A compiled program.

    Attributes:
      device: the device, or the devices of a mesh, on which the program runs.
      execute, collect, handlers: ``collect(execute(buffers), handlers)`` starts the program, and returns its results;
        ``handlers`` has for each result the runtime's function that wraps it.
      run: ``run(buffers)`` starts the program and returns its results too. First it frees Python tracebacks
        that the runtime left from earlier runs: otherwise every run would leak a hundred bytes or more.

    If the program calls Python functions, these wait for the end of the program, and raise their exceptions.
    Programs with collectives over CPU devices run one at a time: see :class:`_OverCPUs`. Those that may not end
    run to their end on another thread: see ``beside.py``.
    """

    __slots__ = (
        "__weakref__", "collect", "device", "execute", "handlers", "in_shardings", "loaded", "out_shardings", "run",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Any,
        device: Devices,
        out_avals: Sequence[ShapedArray],
        functions: Sequence[Callable[..., Any]] = (),
        shardings: Any = None,
        may_not_end: bool = False,
        asks: bool = False,
    ) -> None:
        lib = library()
        self.loaded = loaded
        self.device = device
        self.in_shardings: list[Any] = []
        self.out_shardings: list[Any] = []
        on = bound_to(device)
        if isinstance(device, Device):
            placements = [on.sharding] * len(out_avals)
        else:
            self.in_shardings, self.out_shardings = shardings.found(_tilings(loaded))
            placements = [None if s is None else runtime_sharding(s) for s in self.out_shardings]
        handlers: list[Any] = []
        self.handlers = handlers
        for a, placement in zip(out_avals, placements, strict=True):
            stored = ShapedArray(a.shape, stored_dtype(a.dtype))
            handlers.append(placement and lib.jax.array_result_handler(stored, placement, *lib.handler_flags))
        self.execute = execute = loaded.execute_sharded
        self.collect = collect = lib.collect
        if not isinstance(device, Device) and not device.is_local:
            self.execute = execute = _MultiProcessRun(loaded, device, functions).execute
        else:
            start, left = _started, None
            if not isinstance(device, Device) and device.platform == "cpu":
                several = _OverCPUs(loaded)
                self.execute = execute = several.execute
                start, left = several.start, several.leave
            whole = functools.partial(_whole, start, functions, loaded)
            if may_not_end and device.platform == "cpu":
                self.execute = execute = beside.Program(whole, asks, functions, left).run
            elif functions:
                self.execute = execute = whole
        collect_garbage = lib.jax.collect_garbage
        collect_garbage()  # what executables left that were never called

        def run(buffers: list[Buffer]) -> list[Buffer]:
            collect_garbage()
            try:
                return collect(execute(buffers), handlers)  # type: ignore[no-any-return]
            except lib.errors as error:  # errors that are raised immediately, as by foreign functions
                if isinstance(error, PullbackError):
                    raise
                raise failure(error) from None

        self.run: Callable[[list[Buffer]], list[Buffer]] = run
        executables.add(self)

    def text(self) -> str:
        """The optimised program, in the compiler's own language."""
        return self.loaded.get_hlo_text()  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of operations and memory traffic, by name."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """The sizes in bytes of arguments, results and temporary values."""
        return self.loaded.get_compiled_memory_stats()


executable = Executable


def _started(loaded: Any, buffers: list[Buffer]) -> tuple[Any, Any]:
    """Start a program. Return the runtime's results, and a token that becomes ready when the program has ended."""
    results = loaded.execute_sharded(buffers, with_tokens=True)
    return results, results.consume_token()


def _whole(
    start: Callable[[Any, list[Buffer]], tuple[Any, Any]],
    functions: Sequence[Callable[..., Any]],
    loaded: Any,
    buffers: list[Buffer],
) -> Any:
    """Run a program to its end. If a Python function that it calls raised an exception, it is raised here."""
    try:
        results, token = start(loaded, buffers)
        token.block_until_ready()
    except library().errors as error:
        found = original(error) or failure(error)
    else:
        check_failed(functions)
        return results
    raise found


_turn = lock(globals(), "_turn")
_FOR_INTERRUPTED = 5.0
"""How many seconds a program over several devices waits for an interrupted one."""
_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-", "reduce-scatter")


def _has_collectives(loaded: Any) -> bool:
    """Whether a program communicates between devices."""
    text = loaded.get_hlo_text()
    return any(name in text for name in _COLLECTIVES)


class _OverCPUs:
    """Runs a program over several CPU devices.

    A lock starts programs with collectives only when the previous such program has ended. CPU devices share one pool of
    threads, on which the partitions of a program wait for each other. If more partitions wait than there are threads,
    the programs deadlock, and the runtime ends the process after 40 seconds. This happened with 2,000 programs on two
    devices. A program that was interrupted and goes on may keep the threads for ever.
    """

    __slots__ = ("has_collectives", "loaded")
    ended: Callable[[], None] | None = None
    """Waits for the end of the previous program with collectives."""
    left: tuple[Any, ...] = ()
    """The runners of the programs that were interrupted and left running."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded
        self.has_collectives = _has_collectives(loaded)

    def execute(self, buffers: list[Buffer]) -> Any:
        if self.has_collectives:
            return self.start(self.loaded, buffers)[0]
        self.check_left()
        return self.loaded.execute_sharded(buffers)

    def start(self, loaded: Any, buffers: list[Buffer]) -> tuple[Any, Any]:
        """Start a program. Return the runtime's results, and a token that becomes ready when the program has ended."""
        if not self.has_collectives:
            self.check_left()
            return _started(loaded, buffers)
        with _turn:
            _OverCPUs.wait_for_last()
            results, token = _started(loaded, buffers)
            _OverCPUs.ended = token.block_until_ready
        return results, token

    @staticmethod
    def wait_for_last() -> None:
        _OverCPUs.check_left()
        if _OverCPUs.ended is not None:
            with suppress(RuntimeError):  # its own results report the error
                _OverCPUs.ended()

    @staticmethod
    def leave(runner: Any) -> None:
        _OverCPUs.left = (*_OverCPUs.left, runner)

    @staticmethod
    def check_left() -> None:
        """Wait for the programs that were left running.

        Raises:
          ExecutionError: they do not end (a RuntimeError).
        """
        if not all(runner.wait(_FOR_INTERRUPTED) for runner in _OverCPUs.left):
            raise ExecutionError(
                "an interrupted program over several devices is still running and keeps the devices busy, so no "
                "other program over several devices can run: start a new process"
            )
        _OverCPUs.left = ()


class _MultiProcessRun:
    """Runs a program over the devices of several processes, and waits for its end, on another thread.

    The runtime runs small programs on the thread that starts them, which then waits for the other processes in C++. If
    a process is lost, the program may never end in the others: their calls raise an error, and leave it running.
    """

    __slots__ = ("functions", "loaded", "processes", "ran")

    def __init__(self, loaded: Any, devices: DeviceAssignment, functions: Sequence[Callable[..., Any]]) -> None:
        self.loaded, self.functions = loaded, functions
        self.ran = False
        self.processes = frozenset(d.process_index for d in devices.devices)

    def execute(self, buffers: list[Buffer]) -> Any:
        if _joined is None:
            raise DistributedError(f"{_TOGETHER} cannot run after distributed.shutdown")
        link = _joined[0].link
        call = Call(lambda: self._run(buffers))
        try:
            with _turn:
                _OverCPUs.wait_for_last()
                if not self.processes.isdisjoint(link.gone):
                    raise link.lost(_TOGETHER)
                _OverCPUs.ended = lambda: link.wait(call.wait_or_prevent, _TOGETHER, self.processes)
                link.begin(call)
            return link.finish(call, _TOGETHER, self.processes, GRACE)
        except library().jax.JaxRuntimeError as error:
            found = original(error) or link.explained(failure(error), _TOGETHER, self.processes)
        except BaseException as error:
            if isinstance(error, DistributedError):
                _OverCPUs.ended = None  # the program may never end, and nobody is to wait for it again
            for made in _clients.values():
                _leak(made)  # freeing it would wait for the end of the program
            raise
        raise found

    def _run(self, buffers: list[Buffer]) -> Any:
        with nullcontext() if self.ran else not_inherited():  # the first run may connect to the other processes
            results = self.loaded.execute_sharded(buffers, with_tokens=True)
            results.consume_token().block_until_ready()
        self.ran = True
        check_failed(self.functions)
        return results


_TOGETHER = "a program over the devices of several processes"


def _tilings(loaded: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """The tilings (divisions among devices) of a program's inputs and of its results; each is None if not recorded."""
    inputs, outs = loaded.get_parameter_shardings(), loaded.get_output_shardings()
    return inputs and list(map(_tiling, inputs)), outs and list(map(_tiling, outs))


@functools.lru_cache(maxsize=256)
def hlo_sharding(sharding: NamedSharding, ndim: int) -> Any:
    """Convert a sharding to the runtime's form, for arrays of rank ``ndim``."""
    kinds = library().xla_client.OpSharding.Type
    proto = library().xla_client.OpSharding()
    factors = sharding.factors(ndim)
    count = math.prod(factors)
    if count == 1:
        proto.type = kinds.REPLICATED
    else:
        proto.type = kinds.OTHER
        copies = sharding.num_devices // count
        proto.tile_assignment_dimensions = [*factors, copies] if copies > 1 else list(factors)
        proto.replicate_on_last_tile_dim = copies > 1
        numbers = np.ravel_multi_index(tuple(sharding.shard_indices(ndim).T), factors)
        order = np.argsort(numbers, kind="stable").tolist()
        if order == sorted(order):
            proto.iota_reshape_dims, proto.iota_transpose_perm = [len(order)], [0]
        else:
            proto.tile_assignment_devices = order
    return library().xla_client.HloSharding.from_proto(proto)


def _tiling(proto: Any) -> Any:
    sharding = library().xla_client.HloSharding.from_proto(proto)
    if not sharding.is_tiled():
        return None
    dims = list(sharding.tile_assignment_dimensions())
    order = np.array(sharding.tile_assignment_devices()).reshape(-1)
    tiles = np.indices(dims).reshape(len(dims), -1)
    more = len(sharding.subgroup_types()) or int(sharding.replicate_on_last_tile_dim())
    count = len(dims) - more
    out = np.zeros((order.size, count), int)
    out[order] = tiles[:count].T
    return dims[:count], out


EXTRA_OPTIONS = frozenset(
    {
        "xla_cpu_disable_loop_unrolling", "xla_cpu_disable_slp_vectorizer", "xla_cpu_flatten_after_fusion",
        "xla_cpu_small_while_loop_byte_threshold",
    }
)  # fmt: skip
"""Options that have no field of their own: the compiler reads them from one option, a table of strings."""


REMOVED = {"xla_cpu_use_fusion_emitters": (0, 11)}
"""Options that later releases lack, by the first release that is not known to have them: 0.12 lacks this one."""


BUILD_OPTIONS = ("optimization_level", "memory_fitting_level")
"""Options that are fields of the build options, as in JAX: how much time the compiler may spend."""


def compile_options(overrides: Sequence[tuple[str, Any]], device: Devices | None = None) -> Any:
    """Make the compiler's options for a program.

    Args:
      overrides: names and values of debug options, instead of their defaults.
      device: the device, or the devices of a mesh, on which the program runs.
    """
    options = library().xla_client.CompileOptions()
    levels = [(name, value) for name, value in overrides if name in BUILD_OPTIONS]
    extra, overrides = _divided(tuple([option for option in overrides if option not in levels]))
    if extra:
        options = options.ParseFromString(options.SerializeAsString() + extra)
    if isinstance(device, DeviceAssignment):
        build = options.executable_build_options
        build.num_replicas, build.num_partitions = 1, len(device.devices)
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.device_assignment = library().jax.DeviceAssignment.create(np.array([device.id]))
        build.allow_spmd_sharding_propagation_to_parameters = [True]
        build.allow_spmd_sharding_propagation_to_output = [True]
    elif device is not None and device.id:
        build = options.executable_build_options
        build.num_replicas = build.num_partitions = 1
        build.device_assignment = library().jax.DeviceAssignment.create(np.array([[device.id]]))
    for name, value in levels:
        setattr(options.executable_build_options, name, value)
    if overrides:
        options.env_option_overrides = overrides
    return options


@functools.lru_cache
def _divided(overrides: tuple[tuple[str, Any], ...]) -> tuple[bytes, list[tuple[str, Any]]]:
    """Split overrides of options into two: those in ``EXTRA_OPTIONS``, serialised, and the list of the others.

    Python can set ``EXTRA_OPTIONS`` only in the serialised form. They are entries of field 500 of the debug options,
    which are field 3 of the build options, which are field 3 of the compile options.
    """
    table, others = b"", []
    for name, value in overrides:
        if name in EXTRA_OPTIONS:
            table += _field(500, _field(1, name.encode()) + _field(2, str(value).encode()))
        else:
            others.append((name, value))
    return table and _field(3, _field(3, table)), others


def _field(number: int, content: bytes) -> bytes:
    """Serialise a field of a protocol buffer.

    Args:
      number: the number of the field.
      content: the bytes in the field, or the serialised message in it.
    """
    out = bytearray()
    for n in (number << 3 | 2, len(content)):
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)
    return bytes(out) + content


def compile_text(
    text: str,
    device: Devices,
    overrides: Sequence[tuple[str, Any]] = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    in_this_thread: bool = False,
) -> Any:
    """Compile StableHLO text, and return the runtime's own object for the program.

    Args:
      text: the program.
      device: the device, or the devices of a mesh, on which the program will run.
      overrides: names and values of the compiler's options.
      callbacks: the Python functions that the program calls; the program refers to each by its index in this sequence.
      in_this_thread: whether to compile in this thread, as programs with callbacks of :func:`partitioning` require.

    Raises:
      CompilationError: the compiler refuses the program; the message is the compiler's (a RuntimeError).
    """
    lib = library()
    program: Any = text.encode()
    more: dict[str, Any] = {}
    if callbacks:
        check_platform(device.target)
        calls = host_calls(callbacks, on_several=not isinstance(device, Device))
        program, more = parsed(text), {"host_callbacks": calls}
    on = device.bound or bound_to(device)
    options = compile_options(overrides, device)

    def compiled() -> Any:
        return on.client.compile_and_load(program, on.device_list, options, **more)

    try:
        return compiled() if in_this_thread else uninterrupted(compiled)
    except lib.errors as error:
        raise CompilationError(str(error)) from None


def mlir(name: str) -> Any:
    """Import a module of the Python bindings of MLIR, such as ``ir`` or ``dialects.stablehlo``.

    Raises:
      BackendError: there is no jaxlib (a RuntimeError).
    """
    library()
    return imported(f"jaxlib.mlir.{name}")


def mlir_registry() -> Any:
    """Return the MLIR dialects that come with ``jaxlib``, an ``ir.DialectRegistry``."""
    registry = mlir("ir").DialectRegistry()
    mlir("_mlir_libs._jax_mlir_ext").register_dialects(registry)
    return registry


@functools.cache
def mlir_context() -> Any:
    """The MLIR context that parses and builds programs."""
    context = mlir("ir").Context()
    context.append_dialect_registry(mlir_registry())
    for dialect in ("_stablehlo", "_chlo", "_sdy"):
        mlir(f"_mlir_libs.{dialect}").register_dialect(context)
    context.load_all_available_dialects()
    return context


def parsed(text: str) -> Any:
    """Parse StableHLO text to an MLIR module: the runtime requires one for programs that call Python functions.

    Raises:
      CompilationError: the text is not a program (a RuntimeError).
    """
    ir = mlir("ir")
    try:
        return ir.Module.parse(text, mlir_context())
    except ir.MLIRError as error:
        raise CompilationError(str(error)) from None


def to_portable(text: str) -> bytes:
    """Serialise StableHLO text to bytes that later releases of the compiler can read, and those of the last 12 weeks.

    Raises:
      CompilationError: the text is not a program, or has operations that cannot be serialised (a RuntimeError).
    """
    dialect = mlir("dialects.stablehlo")
    target = dialect.get_version_from_compatibility_requirement(dialect.StablehloCompatibilityRequirement.WEEK_12)
    module = parsed(text)
    try:
        serialize = library().jax.mlir.serialize_portable_artifact
        mixed = _known(serialize, {"use_mixed_serialization": True}) if "sdy." in text else {}  # keeps shardings
        return serialize(module, target, **mixed)  # type: ignore[no-any-return]
    except library().jax.JaxRuntimeError as error:
        raise CompilationError(str(error).partition("-:1:1: note")[0]) from None


def from_portable(data: bytes) -> Any:
    """Read an MLIR module from bytes of :func:`to_portable`; its ``str`` is StableHLO text.

    Raises:
      CompilationError: the bytes are not a program, or were written by a newer release (a RuntimeError).
    """
    try:
        return library().jax.mlir.deserialize_portable_artifact(data, mlir_context())
    except (library().jax.JaxRuntimeError, mlir("ir").MLIRError, ValueError) as error:
        raise CompilationError(
            f"{error}: this release of jaxlib cannot read the bytes as a program. If they come from a newer "
            f"release, install that release, or export for older ones."
        ) from None


def operations_of(module: Any) -> dict[str, list[Operation]]:
    """Describe the operations of each function of an MLIR module; those outside functions are under the name ``""``.

    This does not recurse, since the regions of a program that was read may be in each other to any depth.
    """
    found: dict[str, list[Operation]] = {}
    for top in module.body.operations:
        is_function = top.operation.name == "func.func"
        here = found.setdefault(mlir("ir").StringAttr(top.attributes["sym_name"]).value if is_function else "", [])
        regions = [iter([top.operation])]
        while regions:
            operation = next(regions[-1], None)
            if operation is None:
                regions.pop()
                continue
            operation = operation.operation
            blocks = [block for region in operation.regions for block in region.blocks]
            types = tuple(str(x.type) for x in (*operation.results, *(a for block in blocks for a in block.arguments)))
            here.append(Operation(operation.name, max(len(regions) - 2, 0), types, *_calls_of(operation)))
            regions += [iter(block.operations) for block in blocks]
    return found


def _calls_of(operation: Any) -> tuple[tuple[str, ...], ForeignCall | None]:
    """Return the functions of the program, and that of the runtime, which an operation calls."""
    ir, attributes = mlir("ir"), operation.attributes
    named = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    if named is not None:
        return (ir.FlatSymbolRefAttr(attributes[named]).value,), None
    if operation.name != "stablehlo.custom_call":
        return (), None
    options: dict[str, str] = {}
    for where in ("backend_config", "mhlo.backend_config"):
        config = attributes.get(where)
        for option in map(config.__getitem__, range(len(config))) if isinstance(config, ir.DictAttr) else ():
            value = str(option.attr).partition(" : ")[0]
            options[option.name] = value if options.get(option.name, value) == value else "two values"
    callees = tuple(ir.FlatSymbolRefAttr(x).value for x in attributes.get("called_computations", ()))
    target = ir.StringAttr(attributes["call_target_name"]).value
    return callees, ForeignCall(target, tuple(str(x.type) for x in operation.operands), options)


_IDENTIFIER = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)


def functions_of(
    data: bytes,
    entry: str,
    operands: Sequence[str],
    results: Sequence[tuple[str, str]],
    unique: Callable[[str], str],
    check: Callable[[dict[str, list[Operation]]], None],
) -> tuple[str, list[list[str]], dict[str, tuple[list[int], list[str]]]]:
    """Extract a function of a portable program, and the functions that it calls, for another program.

    Symbolic sizes become numbers (StableHLO's shape refinement), as far as the sizes of the operands are known.

    Args:
      data: the portable program, bytes of :func:`to_portable`.
      entry: the name of the function.
      operands: the types of the operands.
      results: for each result, the type that the function declares and the type for these operands.
      unique: takes the name of a function, and returns a name that is new in the other program.
      check: raises for operations that the program may not have: it is called with those that were read, and with
        those that remain when sizes are numbers.

    Returns:
      The new name of the function, the lines of each function, and the sizes and names of the axes of each mesh, by
      the mesh's name in these lines.

    Raises:
      CompilationError: the bytes are not a program, or do not accept these operands (a RuntimeError).
    """
    ir = mlir("ir")
    try:
        module = from_portable(data)
        check(found := operations_of(module))
        if entry not in found or not _IDENTIFIER.fullmatch(entry):
            raise CompilationError(f"the program has no function {entry!r}: the bytes are damaged")
        if b"lapack_" in data:  # perhaps this process has not registered LAPACK yet
            register_lapack()
        text, entry = _with_main(module, entry, operands, results)
        file = io.BytesIO()
        ir.Module.parse(text, mlir_context()).operation.write_bytecode(file)
        known = not any("?" in kind for kind in operands)
        refined = library().jax.mlir.refine_polymorphic_shapes(file.getvalue(), True, known)
        module = ir.Module.parse(refined, mlir_context())
        check(operations_of(module))
        return _renamed(module, entry, unique)
    except PullbackError:
        raise
    except (ir.MLIRError, RuntimeError, ValueError) as error:  # also of names that are no text
        raise CompilationError(f"the bytes are not a program that can be called: {error}") from None


def _with_main(module: Any, entry: str, operands: Sequence[str], results: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the text of a program with a new function ``main``, which calls ``entry``; and the new name of ``entry``.

    Args:
      module: the program. Its own function ``main`` goes, or gets another name if it is ``entry``.
      entry: the name of the function to call.
      operands: the types of the arguments of ``main``, which are converted to those that ``entry`` declares.
      results: for each result, the type that ``entry`` declares and the type that ``main`` returns.
    """
    ir = mlir("ir")
    table = ir.SymbolTable(module.operation)
    if entry == "main":
        entry = "exported_main"
        function = table["main"]
        ir.SymbolTable.set_symbol_name(function, entry)
        ir.SymbolTable.set_visibility(function, "private")
        table = ir.SymbolTable(module.operation)
    declared = [str(kind) for kind in ir.FunctionType(table[entry].type).inputs]
    if len(declared) != len(operands):
        raise CompilationError(
            f"the program's function {entry!r} takes {len(declared)} arrays, but is called with {len(operands)}: the "
            "bytes are damaged"
        )
    if "main" in table:
        table["main"].erase()
    args = [f"%a{i}: {kind}" for i, kind in enumerate(operands)]
    lines = [
        f"%c{i} = stablehlo.convert %a{i} : ({operand}) -> {parameter}"
        for i, (operand, parameter) in enumerate(zip(operands, declared, strict=True))
    ]
    names, kinds = ", ".join(f"%c{i}" for i in range(len(operands))), ", ".join(wanted for _, wanted in results)
    call = f"call @{entry}({names}) : ({', '.join(declared)}) -> ({', '.join(kind for kind, _ in results)})"
    several = len(results) > 1
    lines.append(f"%r{f':{len(results)}' if several else ''} = {call}" if results else call)
    outs = [f"%r{f'#{i}' if several else ''}" for i in range(len(results))]
    for i, (kind, wanted) in enumerate(results):
        if kind != wanted:
            lines.append(f"%d{i} = stablehlo.convert {outs[i]} : ({kind}) -> {wanted}")
            outs[i] = f"%d{i}"
    lines.append(f"return {', '.join(outs)} : {kinds}" if results else "return")
    main = f"func.func public @main({', '.join(args)}) -> ({kinds}) {{\n" + "\n".join(lines) + "\n}\n"
    return str(module).rstrip().removesuffix("}") + main + "}\n", entry


def _renamed(
    module: Any, entry: str, unique: Callable[[str], str]
) -> tuple[str, list[list[str]], dict[str, tuple[list[int], list[str]]]]:
    """Rename the functions of a module.

    Args:
      module: the module.
      entry: the name for the function ``main``, before ``unique`` makes it new.
      unique: takes the name of a function, and returns a new name.

    Returns:
      The new name of ``main``, the lines of each function, and the sizes and names of each mesh's axes, by mesh name.
    """
    ir, symbols = mlir("ir"), mlir("ir").SymbolTable
    found = ""
    operations = list(module.body.operations)
    functions = [op for op in operations if op.operation.name == "func.func"]
    meshes = {}
    for op in operations:
        if op.operation.name == "sdy.mesh":
            sdy = mlir("dialects.sdy")
            axes = [sdy.MeshAxisAttr(axis) for axis in sdy.MeshAttr(op.attributes["mesh"]).axes]
            named = f"@{ir.StringAttr(op.attributes['sym_name']).value}"
            meshes[named] = ([axis.size for axis in axes], [axis.name for axis in axes])
    for function in functions:
        old = ir.StringAttr(function.attributes["sym_name"]).value
        new = unique(entry if old == "main" else old)
        if new != old:
            symbols.replace_all_symbol_uses(old, new, module.operation)
            symbols.set_symbol_name(function, new)
        found = new if old == "main" else found
        symbols.set_visibility(function, "private")
    return found, [function.get_asm().splitlines() for function in functions], meshes


@functools.cache
def ifrt_proxy() -> Any:
    """The module of ``jaxlib`` for clients of a remote runtime."""
    library()
    return imported("jaxlib._ifrt_proxy")


def compiler_passes(name: str) -> Any:
    """Look up a function of ``jaxlib`` that registers or removes compiler passes in Python.

    Raises:
      BackendError: this release has none (a RuntimeError).
    """
    library()
    found = getattr(imported("jaxlib._xla"), name, None)
    if found is None:
        release = imported("jaxlib.version").__version__
        raise BackendError(f"jaxlib {release} has no compiler passes in Python: upgrade it")
    return found


def profiler() -> Any:
    """The profiler: its classes ``ProfilerSession``, ``ProfileOptions`` and ``TraceMe``."""
    library()
    return imported("jaxlib._profiler")


def inspection(callback: Callable[[Any], None]) -> tuple[bytes, Any]:
    """Register a callback that receives the tiling of a value (its division among devices) during compilation.

    Returns:
      The bytes by which the program refers to the callback, and an object to keep alive until compilation ends.
    """

    def inspect(sharding: Any) -> None:
        callback(_tiling(sharding.to_proto()))

    return library().jax.encode_inspect_sharding_callback(inspect), inspect


class _Partitioning:
    """A callback that partitions an operation during compilation.

    Args:
      divided: takes the tilings of operands and of results, and returns a ``Divided``: see :func:`partitioning`.

    Attributes:
      error: the exception that ``divided`` raised; None if it raised none. (The runtime keeps only the text.)
    """

    def __init__(self, divided: Callable[[list[Any], list[Any]], Any]) -> None:
        self.divided = divided
        self.error: BaseException | None = None

    def __call__(self, operands: Sequence[Any], result: Any) -> tuple[bytes, list[Any], Any]:
        try:
            results = result.tuple_elements() or [result]
            found = self.divided(*([_tiling(s.to_proto()) for s in each] for each in (operands, results)))
            ours = [[hlo_sharding(*s) for s in each] for each in (found.operands, found.results)]
            return found.text.encode(), ours[0], ours[1]
        except BaseException as error:
            self.error = error
            raise


_partitionings: weakref.WeakValueDictionary[str, _Partitioning] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def partitioning(divided: Callable[[list[Any], list[Any]], Any], platform: str) -> tuple[str, Any]:
    """Register a callback that partitions an operation over devices when the program is compiled.

    Args:
      divided: the callback. It takes the tilings (divisions among devices) of operands and of results, and returns a
        ``Divided``: the program of each device, and the shardings of operands and results.
      platform: the platform of the program.

    Returns:
      The text by which the program refers to the callback, and an object that must live until the program is compiled.
    """
    _register_partitioner(platform)
    key, found = str(next(_numbers)), _Partitioning(divided)
    _partitionings[key] = found
    return key, found


@functools.cache
def _register_partitioner(platform: str) -> None:
    """Let the compiler of a platform call the callbacks of :func:`partitioning`."""

    def partition(_: Any, operands: list[Any], shape: Any, result: Any, key: bytes) -> tuple[bytes, list[Any], Any]:
        text, inputs, results = _partitionings[key.decode()](operands, result)
        if not shape.is_tuple():
            return text, inputs, results[0]
        return text, inputs, library().xla_client.HloSharding.tuple_sharding(shape, results)

    def unused(*_: Any) -> None:  # Shardy propagates by the rule in the program instead
        return None

    of_plugin = {"c_api": _c_apis[platform]} if platform in _c_apis else {}
    library().xla_client.register_custom_call_partitioner(PARTITIONED, unused, partition, unused, **of_plugin)


def tree_registry() -> Any:
    """Make a registry of classes of pytree nodes in C++, with the methods ``register_node`` and ``flatten``."""
    return library().jax.pytree.PyTreeRegistry()


@functools.cache
def register_lapack() -> None:
    """Let CPU programs call the routines of LAPACK, by names such as ``lapack_dpotrf_ffi``, divided along batch axes.

    The routines are those of SciPy, which this function imports. An installed JAX may register them under the same
    names too: the runtime refuses only different functions.
    """
    lapack = imported("jaxlib.cpu._lapack")
    uninterrupted(lapack.initialize)
    with _lock:
        for name, routine in lapack.registrations().items():
            library().xla_client.register_custom_call_target(name, routine, "cpu", api_version=1)
            if name.endswith("_ffi"):  # they work on batches, and say so by attributes
                library().xla_client.register_custom_call_as_batch_partitionable(name)


def hlo_text(text: str) -> str:
    """Translate StableHLO text to the compiler's own language, without optimisation."""
    return library().jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text()  # type: ignore[no-any-return]


def cost_analysis(text: str, device: Devices) -> dict[str, float]:
    """The compiler's estimates of operations and memory traffic for StableHLO text, before optimisation."""
    module = library().jax.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
    return dict(library().jax.hlo_module_cost_analysis(bound_to(device).client, module))


def serialize(loaded: Any, device: Devices) -> bytes:
    """Serialise a program that this process compiled; a program that it deserialised cannot be serialised again."""
    return bound_to(device).client.serialize_executable(loaded)  # type: ignore[no-any-return]


def deserialize(data: bytes, device: Devices, callbacks: Sequence[Callable[..., Any]] = ()) -> Any:
    """Load a compiled program from bytes of :func:`serialize`, which an equal environment must have written.

    Args:
      data: the bytes.
      device: the device, or the devices of a mesh, on which the program runs.
      callbacks: the Python functions that it calls; it refers to each by its index in this sequence.
    """
    on = bound_to(device)
    calls = host_calls(callbacks, on_several=not isinstance(device, Device))
    return uninterrupted(
        lambda: on.client.deserialize_executable(data, on.device_list, None, *([calls] if calls else []))
    )


@functools.cache
def has_option(name: str) -> bool:
    """Whether this release of the compiler may have an option; False for one that it is known to lack."""
    library()
    return _numbers_of(imported("jaxlib.version").__version__) < REMOVED.get(name, RELEASES[1])


def options_as_bytes(overrides: Sequence[tuple[str, Any]]) -> bytes:
    """Serialise all options of a compilation, including the environment variable ``XLA_FLAGS``."""
    return compile_options(overrides).SerializeAsString()  # type: ignore[no-any-return]


def version(device: Devices) -> str:
    """The versions of the compiler and of the runtime of a device."""
    import jaxlib.version

    return f"{jaxlib.version.__version__} {bound_to(device).client.platform_version}"


if TYPE_CHECKING:
    from pullback.backends.compiler import client as this_module

    _implements: Backend = this_module
