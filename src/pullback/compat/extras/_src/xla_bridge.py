"""``jax._src.xla_bridge``: whether the runtime has started, for Chex, and the platforms, for Orbax."""

from typing import Any

from pullback.backends.compiler import client as _client
from pullback.backends.devices.devices import default_backend as _default_backend
from pullback.backends.devices.devices import device_count as device_count
from pullback.backends.devices.devices import devices as devices
from pullback.backends.devices.devices import local_device_count as local_device_count
from pullback.backends.devices.devices import local_devices as local_devices
from pullback.backends.devices.devices import process_count as process_count
from pullback.backends.devices.devices import process_index as process_index

_backends = _client._clients
"""The live table of started runtimes, by the names of their platforms."""


def backends_are_initialized() -> bool:
    """Whether the runtime of a platform has started.

    >>> from pullback import jit
    >>> from pullback.compat.extras._src.xla_bridge import backends_are_initialized
    >>> print(jit(lambda x: x + 1)(1.0))
    2.0
    >>> backends_are_initialized()
    True
    """
    return bool(_client._clients)


def backends() -> dict[str, Any]:
    """Return the runtimes of the platforms in use, by name.

    >>> from pullback.compat.extras._src.xla_bridge import backends
    >>> "cpu" in backends()
    True
    """
    get_backend()
    return dict(_client._clients)


def get_backend(platform: str | None = None) -> Any:
    """The runtime of a platform.

    Args:
      platform: ``"cpu"``, ``"cuda"``, ...; None for the default one.

    Raises:
      BackendError: there is no such platform here (a RuntimeError).

    >>> from pullback.compat.extras._src.xla_bridge import get_backend
    >>> get_backend("cpu").platform
    'cpu'
    """
    name = platform or _default_backend()
    return _client.client({"gpu": "cuda"}.get(name, name))
