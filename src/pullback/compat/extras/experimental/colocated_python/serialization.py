"""``jax.experimental.colocated_python.serialization``: the type of device lists, which Orbax uses."""

from pullback.backends.devices.devices import Device
from pullback.compat.extras._src import xla_bridge as xb

DeviceList = tuple[Device, ...]
"""A list of devices, in order."""

__all__ = ["DeviceList", "xb"]
