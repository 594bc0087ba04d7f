"""The runtime's clients, its compile options, and registration of further platforms: ``jax.extend.backend``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.backends.compiler import client as _client
from pullback.backends.devices.devices import Device
from pullback.backends.devices.devices import default_device as _default_device
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.transforms.jit import jit as _jit

if TYPE_CHECKING:
    ifrt_proxy: Any

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_compile_options", "get_default_device", "ifrt_proxy", "register_backend_cache", "register_backend_factory",
]  # fmt: skip


def backends() -> dict[str, Any]:
    """Return the runtime's clients that are in use, by platform; the client of the default platform is among them.

    Returns:
      A dictionary from names of platforms to objects of ``jaxlib``.

    >>> from pullback.extend.backend import backends
    >>> "cpu" in backends()
    True
    """
    get_backend()
    return _client.clients()


def get_backend(platform: Any = None) -> Any:
    """Return the runtime's client of a platform, an object of ``jaxlib``.

    Args:
      platform: its name, such as ``"cpu"``; by default the platform of the default device. A client is returned as it
        is.

    Returns:
      The client.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback.extend.backend import get_backend
    >>> get_backend("cpu").platform
    'cpu'
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    name = _default_device().target if platform is None else platform
    return _client.client("cuda" if name == "gpu" else name)


def get_default_device() -> Device:
    """Return the device that holds new arrays.

    Returns:
      One of ``devices()``.

    >>> from pullback.extend.backend import get_default_device
    >>> get_default_device()
    CpuDevice(id=0)
    """
    return _default_device()


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA that a plug-in says it has; None, as for a CPU, if it says none.

    Args:
      platform: the name of the platform; by default that of the default device.

    Returns:
      The version, or None.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback.extend.backend import backend_xla_version
    >>> print(backend_xla_version("cpu"))
    None
    """
    return getattr(get_backend(platform), "xla_version", None)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: Mapping[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Return options with which a client of the runtime compiles: those that ``jit`` uses.

    Args:
      num_replicas: the number of copies of the program, each with inputs of its own.
      num_partitions: the number of devices among which a copy is divided.
      device_assignment: the numbers of the devices, an array of shape ``(num_replicas, num_partitions)``; by default
        the first ones.
      env_options_overrides: options of XLA by name, instead of their defaults.
      fdo_profile: a profile for XLA to optimise by.
      detailed_logging: without effect.
      backend: without effect.

    Returns:
      A ``CompileOptions`` of ``jaxlib``.

    Raises:
      ArgumentError: ``device_assignment`` has another shape (a TypeError and a ValueError).

    >>> from pullback.extend.backend import get_compile_options
    >>> get_compile_options(1, 2).num_partitions
    2
    """
    options = _client.compile_options(list((env_options_overrides or {}).items()))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = num_replicas, num_partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if device_assignment is not None:
        chosen = np.asarray(device_assignment)
        if chosen.shape != (num_replicas, num_partitions):
            expected = (num_replicas, num_partitions)
            raise ArgumentError(
                f"get_compile_options: device_assignment must have shape {expected}, got {chosen.shape}"
            )
        numbers = np.vectorize(lambda x: getattr(x, "id", x), otypes=[int])(chosen)
        build.device_assignment = _client.library().jax.DeviceAssignment.create(numbers)
    return options


def clear_backends() -> None:
    """Forget all compiled programs. The clients stay, since arrays on them remain valid.

    >>> from pullback.extend.backend import clear_backends
    >>> clear_backends()
    """
    _jit.clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forget all compiled programs of this process, as ``clear_caches`` does.

    >>> from pullback.extend.backend import clear_in_memory_compilation_cache
    >>> clear_in_memory_compilation_cache()
    """
    _jit.clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Have ``clear_caches`` clear a further cache.

    Args:
      cache: an object with a method ``cache_clear``, such as a function under ``functools.lru_cache``.
      for_what: a text that says what it holds.

    Raises:
      ArgumentError: ``cache`` has no such method (a TypeError and a ValueError).

    >>> from functools import lru_cache
    >>> from pullback import clear_caches
    >>> from pullback.extend.backend import register_backend_cache
    >>> double = lru_cache(lambda x: 2 * x)
    >>> register_backend_cache(double, "doubles"); double(2); clear_caches(); double.cache_info().currsize
    4
    0
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise ArgumentError(f"register_backend_cache takes an object with a method cache_clear, got {cache!r}")
    _jit.cleared_too.append(cache.cache_clear)


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable[..., Any] | None = None,
    c_api: Any = None,
) -> None:
    """Register a platform whose client a function makes; ``devices(name)`` then lists its devices.

    Args:
      name: the name of the platform.
      factory: returns a client of ``jaxlib``; called when the platform is first used.
      priority, fail_quietly, experimental, make_topology, c_api: without effect: a platform is used where its name is
        asked for, and an error of ``factory`` is raised there.

    Raises:
      ArgumentError: there is such a platform already (a TypeError and a ValueError).

    >>> from pullback.extend.backend import register_backend_factory
    >>> register_backend_factory("simulator", lambda: None)
    """
    _client.register_platform(name, factory)


face(globals(), made={"ifrt_proxy": _client.ifrt_proxy})
