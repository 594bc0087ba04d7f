"""Padding in programs, on any number of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec
from pullback.backends.hlo.builder import Builder, Value, integers
from pullback.core.dims import any_symbolic
from pullback.core.types import Shape

_NAMES = ("edge_padding_low", "edge_padding_high", "interior_padding")


def pad(hlo: Builder, x: Value, value: Value, config: Sequence[tuple[int, int, int]], shape: Shape) -> Value:
    """An array with a value around and between its elements.

    The compiler divides what is padded between elements wrong where devices get different numbers of them, and ends the
    process where elements are cut off before them. So the axes concerned are whole on each device.

    Args:
      hlo: the function that is being written.
      x: the array.
      value: a scalar.
      config: for each axis, how many there are before, after and between.
      shape: of the result.
    """
    whole = [
        d for d, sizes in enumerate(zip(x.shape, shape, strict=True))
        if config[d][2] and (min(config[d]) < 0 or not _divide_evenly(hlo, sizes))
    ]  # fmt: skip
    attributes = ", ".join(f"{name} = {integers([c[i] for c in config])}" for i, name in enumerate(_NAMES))
    out = hlo.op("stablehlo.pad", [_undivided(hlo, x, whole), value], shape, x.dtype, attributes)
    return _undivided(hlo, out, whole)


def _divide_evenly(hlo: Builder, sizes: Sequence[Any]) -> bool:
    """Whether axes of these sizes have as many elements on each of several devices, however they are divided."""
    several = hlo.module.size
    return several > 1 and not any_symbolic(sizes) and all(n % several == 0 for n in sizes)


def _undivided(hlo: Builder, x: Value, axes: Sequence[int]) -> Value:
    """A value whose axes of these numbers are whole on each device, where the program runs on several."""
    module = hlo.module
    if not axes:
        return x
    if module.manual is not None:
        if module.manual_axes.issuperset(module.manual.axis_names):  # each device has a part of its own
            return x
        mesh: Any = module.manual
    elif module.size == 1:
        module.whole |= not module.portable
        return x
    else:
        known: list[Any] = [*module.meshes, *module.logical_meshes]
        mesh = known[0] if known else Mesh(module.devices.devices, ("devices",))  # type: ignore[union-attr]
    entries = [None if d in axes else UNCONSTRAINED for d in range(x.ndim)]
    return hlo.constrained(x, NamedSharding(mesh, PartitionSpec(*entries)))
