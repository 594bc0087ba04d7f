"""The memories of a device, for ``device_put``."""

from pullback.backends.devices.devices import Space as Space
from pullback.core.faces import face

__all__ = ["Space"]
face(globals())
