"""XLA by way of ``jaxlib``: devices, buffers and executables. No other module touches it.

What ``jaxlib`` offers to Python is private and shifts between releases: the differences between 0.10.2 and 0.12 are
dealt with here. It is imported when the first of these functions is called, which takes a tenth of a second.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.config import config
from pullback.core.errors import BackendError, CompilationError
from pullback.core.types import ShapedArray

Buffer = Any
"""The elements of an array on a device."""

_lock = threading.RLock()
_clients: dict[str, Any] = {}
several_devices = False
"""Whether there may be buffers on more than one device, so that it matters where one is."""


@functools.cache
def library() -> Any:
    """The Python surface of ``jaxlib``: the modules ``xla_client`` and ``_jax``."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # its chatter of devices found, on the standard error stream
    try:
        from jaxlib import _jax, xla_client
    except ImportError as error:
        raise BackendError(f"compilation needs jaxlib, which is not installed or does not load: {error}") from error
    return _Library(xla_client, _jax)


class _Library:
    """The modules of ``jaxlib``, and what differs between its releases."""

    def __init__(self, xla_client: Any, jax: Any) -> None:
        self.xla_client = xla_client
        self.jax = jax
        self.sharding_class = _sharding_class(jax.SingleDeviceSharding)
        self.put = jax.batched_device_put

    @functools.cached_property
    def handler_flags(self) -> tuple[bool, ...]:
        """What a result handler takes after the type and the place: 0.10 has a flag that 0.12 lacks."""
        return (True, True) if "skip_checks" in (self.jax.array_result_handler.__doc__ or "") else (True,)


def _sharding_class(base: Any) -> Any:
    class OnDevice(base):  # type: ignore[misc]
        """Where the arrays of one device are."""

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


# Devices -------------------------------------------------------------------------------------------------------------


class Device:
    """A device that programs run on.

    Attributes:
      id: its number among the devices of its platform.
      platform: ``cpu``, ``gpu``, ...
    """

    __slots__ = ("_device_list", "_raw", "_sharding", "client", "id", "platform")

    def __init__(self, raw: Any, client: Any) -> None:
        lib = library()
        self._raw = raw
        self._sharding = lib.sharding_class(raw)
        self._device_list = lib.jax.DeviceList((raw,))
        self.client = client
        self.id: int = raw.id
        self.platform: str = raw.platform

    @property
    def device_kind(self) -> str:
        """What the maker calls it."""
        return str(self._raw.device_kind)

    process_index = 0

    def memory_stats(self) -> dict[str, int] | None:
        """The use of its memory in bytes, where the platform counts it."""
        try:
            return self._raw.memory_stats()  # type: ignore[no-any-return]
        except RuntimeError:
            return None

    def __repr__(self) -> str:
        name = {"cpu": "Cpu", "gpu": "Gpu", "cuda": "Cuda", "tpu": "Tpu"}.get(self.platform, self.platform.title())
        return f"{name}Device(id={self.id})"

    def __reduce__(self) -> Any:
        return _device, (self.platform, self.id)


_device_by_raw: dict[Any, Device] = {}


def _device(platform: str, number: int) -> Device:
    return devices(platform)[number]


PLUGINS = {"cuda": ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"), "gpu": ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")}
"""Platforms that come as PJRT plug-ins, and the packages that have them, the preferred first."""


def client(platform: str = "cpu") -> Any:
    """The client of a platform, made when it is first asked for."""
    found = _clients.get(platform)
    if found is not None:
        return found
    with _lock:
        if platform not in _clients:
            if platform == "cpu":
                count = config.num_cpu_devices
                _clients["cpu"] = library().xla_client.make_cpu_client(num_devices=count if count > 0 else 1)
            else:
                _clients[platform] = _plugin_client(platform)
        return _clients[platform]


def _plugin_client(platform: str) -> Any:
    """A client from a PJRT plug-in: one that is named here, or a library named by the environment."""
    import importlib.util

    lib = library()
    name = "cuda" if platform == "gpu" else platform
    path = os.environ.get(f"PULLBACK_{name.upper()}_PLUGIN")
    if path is None:
        for module in PLUGINS.get(platform, ()):
            try:
                spec = importlib.util.find_spec(module)
            except ModuleNotFoundError:
                continue
            if spec is not None and spec.submodule_search_locations:
                candidate = os.path.join(spec.submodule_search_locations[0], f"xla_{name}_plugin.so")
                if os.path.exists(candidate):
                    path = candidate
                    break
    if path is None:
        known = ", ".join(["cpu", *PLUGINS])
        raise BackendError(
            f"there is no platform {platform!r} here. Known are {known}; plug-ins for graphics processors are installed "
            f"with `pip install pullback[cuda]`, and the library of any other PJRT plug-in is named by the environment "
            f"variable PULLBACK_{name.upper()}_PLUGIN."
        )
    try:
        if not lib.xla_client.pjrt_plugin_loaded(name):
            lib.xla_client.load_pjrt_plugin_dynamically(name, path)
        if not lib.xla_client.pjrt_plugin_initialized(name):
            lib.xla_client.initialize_pjrt_plugin(name)
        return lib.xla_client.make_c_api_client(name, {}, None)
    except RuntimeError as error:
        raise BackendError(f"the plug-in {path} for {platform!r} does not work here: {error}") from None


@functools.cache
def _devices_of(platform: str) -> tuple[Device, ...]:
    global several_devices
    made = client(platform)
    if len(made.devices()) > 1 or len(_clients) > 1:
        several_devices = True
    found = tuple(Device(raw, made) for raw in made.devices())
    _device_by_raw.update((device._raw, device) for device in found)
    return found


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform.

    Args:
      backend: ``"cpu"`` (the default), ``"cuda"`` or another plug-in's name.

    Returns:
      A list of them. The number of processors' devices is that of the switch ``num_cpu_devices`` when the first
      program is compiled.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> devices()
    [CpuDevice(id=0)]
    """
    return list(_devices_of(config.platform if backend is None else backend))


def default_device() -> Device:
    """The device on which programs run that were told no other."""
    chosen = config.default_device
    if chosen is None:
        return _devices_of(config.platform)[0]
    return devices(chosen)[0] if isinstance(chosen, str) else chosen


# Buffers -------------------------------------------------------------------------------------------------------------


_WORD = np.dtype(np.uint64)
_BOOL = np.dtype(np.bool_)


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a device stores: a random key is one word; what has no values is a boolean."""
    if dtype == dtypes.key_dtype:
        return _WORD
    return _BOOL if dtype == dtypes.float0 else dtype


def put(value: Any, aval: ShapedArray, device: Device, copy: bool = False) -> Buffer:
    """A NumPy value on a device; without a copy where alignment allows, so nobody may write to it."""
    array = np.asarray(value)
    dtype = array.dtype
    if dtype.kind == "V":
        stored = stored_dtype(dtype)
        if stored is not dtype:
            array = np.zeros(array.shape, bool) if stored is _BOOL else np.ascontiguousarray(array).view(_WORD)
            aval = ShapedArray(array.shape, stored)
    return library().put(aval, device._sharding, [array], [device._raw], True, copy, enable_x64=True)


def move(buffer: Buffer, device: Device) -> Buffer:
    """A buffer of one device on another."""
    return put(to_numpy(buffer), buffer.aval, device, copy=True)


def device_of(buffer: Buffer) -> Device:
    """The device that a buffer is on."""
    return _device_by_raw[next(iter(buffer._sharding.device_set))]


def to_numpy(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The elements of a buffer, once they are computed; without a copy on processors."""
    return buffer._single_device_array_to_np_array_did_copy()[0]  # type: ignore[no-any-return]


# Executables ---------------------------------------------------------------------------------------------------------


class Executable:
    """A compiled program.

    Attributes:
      device: where it runs.
      run: ``run(buffers)`` starts it, and gives the buffers of its results.
    """

    __slots__ = ("__weakref__", "device", "loaded", "run")

    def __init__(self, loaded: Any, device: Device, out_avals: Sequence[ShapedArray]) -> None:
        lib = library()
        self.loaded = loaded
        self.device = device
        handlers = [
            lib.jax.array_result_handler(
                ShapedArray(a.shape, stored_dtype(a.dtype)), device._sharding, *lib.handler_flags
            )
            for a in out_avals
        ]
        execute = loaded.execute_sharded
        self.run: Callable[[list[Buffer]], list[Buffer]] = lambda buffers: execute(buffers).consume_with_handlers(
            handlers
        )


def compile_options(overrides: Sequence[tuple[str, Any]]) -> Any:
    """Options for the compiler: overrides of its debug options, by name."""
    options = library().xla_client.CompileOptions()
    if overrides:
        options.env_option_overrides = list(overrides)
    return options


def compile_text(
    text: str, device: Device, overrides: Sequence[tuple[str, Any]] = (), callbacks: Sequence[Callable[..., Any]] = ()
) -> Any:
    """Compile StableHLO text for a device.

    Raises:
      CompilationError: the compiler refuses the program; the message is the compiler's (a RuntimeError).
    """
    lib = library()
    more = {"host_callbacks": list(callbacks)} if callbacks else {}
    try:
        return device.client.compile_and_load(text.encode(), device._device_list, compile_options(overrides), **more)
    except lib.jax.JaxRuntimeError as error:
        raise CompilationError(str(error)) from None


def hlo_text(text: str) -> str:
    """StableHLO text in the compiler's own language, before it optimises."""
    return library().jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text()  # type: ignore[no-any-return]


def cost_analysis(text: str, device: Device) -> dict[str, float]:
    """The compiler's estimate for StableHLO text, before it optimises."""
    module = library().jax.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
    return dict(library().jax.hlo_module_cost_analysis(device.client, module))


def serialize(loaded: Any, device: Device) -> bytes:
    """A compiled program as bytes."""
    return device.client.serialize_executable(loaded)  # type: ignore[no-any-return]


def deserialize(data: bytes, device: Device) -> Any:
    """A compiled program from bytes that :func:`serialize` gave in an equal environment."""
    return device.client.deserialize_executable(data, device._device_list, None)


def version() -> str:
    """The release of the compiler and its platform's version."""
    import jaxlib.version

    return f"{jaxlib.version.__version__} {client('cpu').platform_version}"
