"""``jax._src.test_util``: helpers of JAX's own tests that documents and libraries import."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.devices import device_count
from pullback.backends.devices.meshes import Mesh, make_mesh
from pullback.core.faces import face as _face


def create_mesh(
    mesh_shape: Sequence[int], axis_names: Sequence[str], iota_order: bool = False, axis_types: Any = None
) -> Mesh:
    """Make a mesh of the first devices. Skip the test that asks for more devices than there are.

    Args:
      mesh_shape: the size of each axis.
      axis_names: their names.
      iota_order: is ignored: the devices are always in the order of their numbers.
      axis_types: the ``AxisType`` of each axis, ``Auto`` by default.

    >>> from pullback.compat.extras._src.test_util import create_mesh
    >>> create_mesh((1,), ("x",)).shape_tuple
    (('x', 1),)
    """
    needed = 1
    for size in mesh_shape:
        needed *= size
    if device_count() < needed:
        raise unittest.SkipTest(f"the test needs {needed} devices, but there are {device_count()}")
    return make_mesh(tuple(mesh_shape), tuple(axis_names), axis_types=axis_types)


_face(globals(), {"pullback.test_util": "check_grads check_jvp check_vjp"})
