"""The lowering of ``pad``, on one device or several."""

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
    """Pad an array with a value around and between its elements.

    Axes with interior padding (between elements) are not divided among devices, because of two errors of the compiler:
    it partitions them wrongly where devices get different numbers of elements, and crashes where the padding is also
    negative.

    Args:
      hlo: the builder.
      x: the array.
      value: a scalar.
      config: for each axis, the padding before, after and between elements.
      shape: the shape of the result.
    """
    undivided = [
        d for d, sizes in enumerate(zip(x.shape, shape, strict=True))
        if config[d][2] and (min(config[d]) < 0 or not _divide_evenly(hlo, sizes))
    ]  # fmt: skip
    attributes = ", ".join(f"{name} = {integers([c[i] for c in config])}" for i, name in enumerate(_NAMES))
    out = hlo.op("stablehlo.pad", [_undivided(hlo, x, undivided), value], shape, x.dtype, attributes)
    return _undivided(hlo, out, undivided)


def _divide_evenly(hlo: Builder, sizes: Sequence[Any]) -> bool:
    """Whether all ``sizes`` are multiples of the program's number of devices; False for one device, and if symbolic."""
    several = hlo.module.size
    return several > 1 and not any_symbolic(sizes) and all(n % several == 0 for n in sizes)


def _undivided(hlo: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Constrain a value, so that the given axes are not divided among devices."""
    module = hlo.module
    if not axes:
        return x
    if module.manual is not None:
        if module.manual_axes.issuperset(module.manual.axis_names):  # each device has its own shard
            return x
        mesh: Any = module.manual
    elif module.size == 1:
        module.assumed_one_device |= not module.portable
        return x
    else:
        known: list[Any] = [*module.meshes, *module.logical_meshes]
        mesh = known[0] if known else Mesh(module.devices.devices, ("devices",))  # type: ignore[union-attr]
    entries = [None if d in axes else UNCONSTRAINED for d in range(x.ndim)]
    return hlo.constrained(x, NamedSharding(mesh, PartitionSpec(*entries)))
