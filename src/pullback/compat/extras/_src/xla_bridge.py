"""``jax._src.xla_bridge``: whether the runtime has started, for Chex, and the platforms, for Orbax."""

from pullback.backends.compiler import client as _client
from pullback.backends.devices.devices import device_count as device_count
from pullback.backends.devices.devices import devices as devices
from pullback.backends.devices.devices import local_device_count as local_device_count
from pullback.backends.devices.devices import local_devices as local_devices
from pullback.backends.devices.devices import process_count as process_count
from pullback.backends.devices.devices import process_index as process_index
from pullback.extend.backend import backends as backends
from pullback.extend.backend import get_backend as get_backend

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
