"""Where arrays are."""

from pullback.backends.devices import SingleDeviceSharding as SingleDeviceSharding

__all__ = ["SingleDeviceSharding"]
