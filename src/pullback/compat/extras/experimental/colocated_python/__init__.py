"""``jax.experimental.colocated_python``: Python functions that run where devices are. Orbax imports it.

Here the devices of a process are its own, so that such a function runs in this process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pullback.backends.devices.devices import Device, local_devices, process_index
from pullback.backends.devices.meshes import Mesh
from pullback.core import tree
from pullback.core.errors import ArgumentError, TracerArrayConversionError
from pullback.core.trace import Tracer
from pullback.transforms.programs.transfer import device_put

C = TypeVar("C", bound=type)


def colocated_cpu_devices(devices: Any) -> Any:
    """Return the CPU devices that are colocated with devices.

    Args:
      devices: a sequence of devices, or a mesh of them.

    Returns:
      A list of as many CPU devices, or a mesh of the same shape; a CPU device is colocated with itself.

    Raises:
      ArgumentError: they are devices of several processes, or more than there are CPU devices (a ValueError).

    >>> from pullback import devices
    >>> from pullback.compat.extras.experimental.colocated_python import colocated_cpu_devices
    >>> colocated_cpu_devices(devices("cpu")[:1])
    [CpuDevice(id=0)]
    """
    if isinstance(devices, Mesh):
        found = colocated_cpu_devices(list(devices.devices.flat))
        grid = devices.devices.copy()
        for i, device in enumerate(found):
            grid.flat[i] = device
        return Mesh(grid, devices.axis_names, devices.axis_types)
    processors = local_devices(backend="cpu")
    found = []
    for i, device in enumerate(devices):
        if device.process_index != process_index():
            raise ArgumentError(f"colocated_cpu_devices: {device} belongs to process {device.process_index}")
        if device.platform != "cpu" and i >= len(processors):
            raise ArgumentError(
                f"colocated_cpu_devices: {len(devices)} devices have {len(processors)} colocated CPU devices; the "
                f"option jax_num_cpu_devices makes more of them"
            )
        found.append(device if device.platform == "cpu" else processors[i])
    return found


class _Colocated:
    """A function that runs in the process that owns given devices."""

    def __init__(self, fun: Callable[..., Any], devices: Sequence[Device] | None = None) -> None:
        self._fun = fun
        self._devices = devices
        functools.update_wrapper(self, fun)

    def specialize(
        self, in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None, devices: Any = None
    ) -> _Colocated:
        """Return the same function with further specifications.

        Args:
          in_specs: the types of the function's arguments; accepted for JAX's sake, and ignored.
          out_specs_fn: maps the types of the arguments to those of the results; accepted for JAX's sake, and ignored.
          devices: the devices of the process that runs the function; results are put on the first.
        """
        return _Colocated(self._fun, self._devices if devices is None else tuple(devices))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for x in tree.leaves((args, kwargs)):
            if isinstance(x, Tracer):
                raise x._unknown(
                    TracerArrayConversionError,
                    "a function of colocated_python takes concrete arrays",
                    "Call it outside of the transformed function, or by pure_callback or io_callback.",
                )
        out = self._fun(*args, **kwargs)
        return out if self._devices is None else device_put(out, self._devices[0])


def colocated_python(fun: Callable[..., Any]) -> Any:
    """Return a function that runs where its arguments are: here, in this process.

    Args:
      fun: takes and returns trees of arrays.

    Returns:
      An equal function with the method ``specialize(in_specs, out_specs_fn, devices)``.

    Raises:
      TracerArrayConversionError: when it is called with traced values (a TypeError).

    >>> from pullback.compat.extras.experimental.colocated_python import colocated_python
    >>> print(colocated_python(lambda x: x + 1)(1.0))
    2.0
    """
    return _Colocated(fun)


def colocated_python_class(cls: C) -> C:
    """Return a class whose objects live with the devices: here the class itself, since that is this process.

    Args:
      cls: the class.

    >>> from pullback.compat.extras.experimental.colocated_python import colocated_python_class
    >>> @colocated_python_class
    ... class Counter:
    ...     pass
    >>> Counter.__name__
    'Counter'
    """
    return cls


__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
