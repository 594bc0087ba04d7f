"""``jax.experimental.colocated_python.serialization``: Orbax names a class of it, and asks for devices."""

from pullback.backends.devices.devices import Device
from pullback.compat.extras._src import xla_bridge as xb

DeviceList = tuple[Device, ...]
"""Several devices, in order."""

__all__ = ["DeviceList", "xb"]
