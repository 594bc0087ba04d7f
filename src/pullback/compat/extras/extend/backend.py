"""``jax.extend.backend``: the runtimes that compile and run programs. JAX MD and MuJoCo's MJX query platforms."""

from typing import Any

from pullback.backends.devices import devices as _devices
from pullback.compat.extras._src.xla_bridge import backends as backends
from pullback.compat.extras._src.xla_bridge import get_backend as get_backend


def get_default_device() -> _devices.Device:
    """Return the device on which programs run if no operand is on a device.

    >>> from pullback.compat.extras.extend.backend import get_default_device
    >>> get_default_device().platform
    'cpu'
    """
    found: Any = _devices.default_device()
    return found


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA in the runtime of a platform, None if the runtime does not report it.

    >>> from pullback.compat.extras.extend.backend import backend_xla_version
    >>> isinstance(backend_xla_version(), (int, type(None)))
    True
    """
    return getattr(get_backend(platform), "xla_version", None)


__all__ = ["backend_xla_version", "backends", "get_backend", "get_default_device"]
