"""Grids of devices for meshes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.devices import Device, devices
from pullback.backends.devices.meshes import too_few_devices
from pullback.core.errors import MeshError
from pullback.core.faces import face
from pullback.core.naming import quoted

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
face(globals())


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Arrange devices in a grid for ``Mesh``, in their listed order, with the last axis fastest.

    Args:
      mesh_shape: the shape of the grid, with as many elements as there are devices.
      devices: the devices, by default all.
      contiguous_submeshes, allow_split_physical_axes: accepted for compatibility; they concern TPUs.

    Returns:
      An array of devices of that shape.

    Raises:
      MeshError: the number of devices is not that of the grid's elements (a ValueError).

    >>> from pullback.experimental.mesh_utils import create_device_mesh
    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    members = _members(devices)
    shape = _shape(mesh_shape, "create_device_mesh: mesh_shape")
    _check_count("create_device_mesh", shape, members)
    grid = np.empty(len(members), object)
    grid[:] = members
    return grid.reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Arrange devices in a grid, each axis of which runs over processes slowly and over each one's devices fast.

    Args:
      mesh_shape: for each axis the number of devices along it within a process.
      dcn_mesh_shape: for each axis the number of processes along it.
      devices: the devices, by default all.
      process_is_granule, should_sort_granules_by_key, allow_split_physical_axes: accepted for compatibility.

    Returns:
      An array of devices whose shape is the product of the two.

    Raises:
      MeshError: the numbers of processes or of their devices do not fit the shapes (a ValueError).

    >>> from pullback.experimental.mesh_utils import create_hybrid_device_mesh
    >>> create_hybrid_device_mesh((1, 1), (1, 1)).shape
    (1, 1)
    """
    members = _members(devices)
    inner = _shape(mesh_shape, "create_hybrid_device_mesh: mesh_shape")
    outer = _shape(dcn_mesh_shape, "create_hybrid_device_mesh: dcn_mesh_shape")
    if len(inner) != len(outer):
        raise MeshError(
            f"create_hybrid_device_mesh: mesh_shape {inner} and dcn_mesh_shape {outer} must have the same number of "
            f"axes"
        )
    processes: dict[int, list[Device]] = {}
    for d in members:
        processes.setdefault(d.process_index, []).append(d)
    if len(processes) != math.prod(outer):
        raise MeshError(
            f"create_hybrid_device_mesh: dcn_mesh_shape {outer} is for {math.prod(outer)} processes, but the devices "
            f"are those of {len(processes)}"
        )
    blocks = [create_device_mesh(inner, processes[i]) for i in sorted(processes)]
    rank = len(inner)
    stacked = np.array(blocks, object).reshape((*outer, *inner))
    order = [axis for i in range(rank) for axis in (i, rank + i)]
    return stacked.transpose(order).reshape([a * b for a, b in zip(outer, inner, strict=True)])


def _members(given: Sequence[Device] | None) -> list[Device]:
    return devices() if given is None else list(given)


def _shape(given: Any, what: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(n) for n in given)
        if all(n > 0 for n in shape):
            return shape
    except (TypeError, ValueError):
        pass
    raise MeshError(f"{what} must be a sequence of positive integers, got {quoted(given)}")


def _check_count(who: str, shape: tuple[int, ...], members: Sequence[Device]) -> None:
    wanted = math.prod(shape)
    what = f"{who}: a grid of {' x '.join(map(str, shape))} places"
    if wanted > len(members):
        raise MeshError(too_few_devices(what, wanted, members))
    if wanted < len(members):
        raise MeshError(
            f"{what} needs {wanted} devices, but there are {len(members)}: choose some with "
            f"devices=devices()[:{wanted}]"
        )
