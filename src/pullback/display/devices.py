"""Meshes and shardings: the grid of devices, and which of them have the same shard."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from pullback.backends.devices.meshes import AbstractMesh, Mesh
from pullback.backends.devices.shardings import NamedSharding, Sharding
from pullback.display import pages

MOST_DEVICES = 1024
"""The most devices of a mesh that is drawn."""


def mesh_html(mesh: Mesh | AbstractMesh) -> str:
    """Return a mesh as HTML: its axes, and a table of its devices."""
    return pages.facts(_axes(mesh)) + _grid(mesh, {})


def sharding_html(sharding: Sharding) -> str:
    """Return a sharding as HTML; of one over a mesh with a table, where a colour is a shard."""
    if not isinstance(sharding, NamedSharding):
        return pages.line(pages.escaped(sharding))
    mesh = sharding.mesh
    rows = [("sharding", sharding.spec), *_axes(mesh)]
    for i, entry in enumerate(sharding.spec.partitions):
        names = _names(entry, mesh)
        if names:
            count = math.prod(mesh.shape[name] for name in names)
            rows.append((f"axis {i} of an array", f"in {count} along {', '.join(map(str, names))}"))
    return pages.facts(rows) + _grid(mesh, _shards(sharding))


def _axes(mesh: Any) -> list[tuple[object, object]]:
    return [("mesh", ", ".join(f"{name}: {size}" for name, size in mesh.shape.items()) or "no axes")]


def _names(entry: Any, mesh: Any) -> tuple[Any, ...]:
    """Return the axes of a mesh that an entry of a ``PartitionSpec`` names."""
    return tuple(name for name in (entry if isinstance(entry, tuple) else (entry,)) if name in mesh.axis_names)


def _shards(sharding: NamedSharding) -> dict[tuple[int, ...], int]:
    """Return the number of the shard that each device of the mesh has, by its position; copies have one number."""
    mesh = sharding.mesh
    used = [name for entry in sharding.spec.partitions for name in _names(entry, mesh)]
    axes = [mesh.axis_names.index(name) for name in used]
    numbers: dict[tuple[int, ...], int] = {}
    return {
        position: numbers.setdefault(tuple(position[axis] for axis in axes), len(numbers))
        for position in _positions(mesh)
    }


def _positions(mesh: Any) -> Iterator[tuple[int, ...]]:
    return product(*map(range, mesh.axis_sizes))


def _grid(mesh: Any, shards: dict[tuple[int, ...], int]) -> str:
    """Return a table of a mesh's devices: the last axis across, the others down."""
    sizes = mesh.axis_sizes
    count = math.prod(sizes)
    if not sizes or count > MOST_DEVICES:
        return pages.line(pages.soft(f"{count:,} devices")) if sizes else ""
    *others, across = mesh.axis_names
    heads = [f"<td>{pages.soft(f'{across}={j}')}</td>" for j in range(sizes[-1])]
    rows = [f"<tr><td></td>{''.join(heads)}</tr>"]
    for position in product(*map(range, sizes[:-1])):
        head = " ".join(f"{name}={i}" for name, i in zip(others, position, strict=True))
        cells = "".join(_cell(mesh, (*position, j), shards) for j in range(sizes[-1]))
        rows.append(f"<tr><td>{pages.soft(head)}</td>{cells}</tr>")
    return f'<table class="grid">{"".join(rows)}</table>'


def _cell(mesh: Any, position: tuple[int, ...], shards: dict[tuple[int, ...], int]) -> str:
    device = mesh.devices[position] if isinstance(mesh, Mesh) else None
    name = f"{device.platform.upper()} {device.id}" if device is not None else "a device"
    if position not in shards:
        return f"<td>{pages.escaped(name)}</td>"
    red, green, blue = (round(255 * c) for c in colorsys.hls_to_rgb(shards[position] * 0.618 % 1, 0.5, 0.7))
    return (
        f'<td style="background:rgba({red},{green},{blue},.3)">{pages.escaped(name)}<br>'
        f"{pages.soft(f'shard {shards[position]}')}</td>"
    )
