"""Where programs run: on the device that their operands were put on, or else on the default one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends import forks
from pullback.backends.devices import Device, default_device, devices
from pullback.backends.programs import Program, buffer_of, buffers_of, from_buffer
from pullback.core.array import ArrayImpl, signature, signature_of
from pullback.core.errors import BackendError


def device_for(arrays: Sequence[ArrayImpl], name: str) -> tuple[Device, bool]:
    """The device for a program on some arrays, and whether anybody asked for it.

    Raises:
      BackendError: the arrays were put on different devices (a RuntimeError and ValueError).
    """
    found: Any = None
    for x in arrays:
        device = signature_of(x).device
        if device is not None and device is not found:
            if found is not None:
                raise BackendError(
                    f"the arguments of {name} are on different devices, {found} and {device}: move them to one with "
                    "device_put"
                )
            found = device
    return (default_device(), False) if found is None else (found, True)


def device_named(device: Any) -> Device:
    """A device, given as one or by the name of its platform.

    Raises:
      BackendError: it is neither (a RuntimeError).
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, str):
        return devices(device)[0]
    raise BackendError(f"a device must be one of devices(), or the name of a platform, got {device!r}")


def call(program: Program, arrays: Sequence[ArrayImpl], asked_for: bool) -> list[Any]:
    """The results of a program, which stay on its device if it was asked for."""
    forks.check(f"running the compiled program {program.lowered.module.name}")
    device = program.device
    buffers = [buffer_of(x, device) for x in arrays]
    if program.captured:
        buffers += map(buffers_of, program.captured)
    outs = program.run(buffers)
    kinds = program.out_signatures
    if asked_for:
        kinds = [signature(k.aval.shape, k.aval.dtype, k.aval.weak_type, device) for k in kinds]
    return list(map(from_buffer, outs, kinds))
