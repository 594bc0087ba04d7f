"""``jax._src.sharding_impls``: names of ``jax.sharding``.

``make_single_device_sharding`` is left out on purpose: when jaxlib copies an array to the host ahead of time, it would
call the function with one of the runtime's devices; without it, it uses a class of its own.
"""

from typing import Any

from pullback import make_mesh as make_mesh
from pullback.core.errors import ArgumentError
from pullback.sharding import NamedSharding as NamedSharding
from pullback.sharding import PartitionSpec as PartitionSpec
from pullback.sharding import SingleDeviceSharding as SingleDeviceSharding
from pullback.sharding import get_abstract_mesh as _abstract_mesh
from pullback.sharding import get_mesh as get_mesh
from pullback.sharding import set_mesh as set_mesh

UNSPECIFIED = None
"""What ``jit`` takes for an argument whose sharding is not stated. BrainState and Oryx have it in signatures."""

UnspecifiedValue = type(UNSPECIFIED)


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Return a sharding over the current mesh, for JAXNS; None if there is none.

    Args:
      sharding: a sharding, or a spec of the current mesh.
      api_name: the function whose argument it is, for errors.
      check_mesh_consistency: whether the mesh of a sharding must be the current one, if that has explicit axes.

    Raises:
      ArgumentError: something else, or a spec without a current mesh (a TypeError and a ValueError).

    >>> from pullback.compat.extras._src.sharding_impls import canonicalize_sharding
    >>> canonicalize_sharding(None, "some_function")
    """
    current = _abstract_mesh()
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if isinstance(sharding, PartitionSpec):
        if current.empty:
            raise ArgumentError(
                f"{api_name}: {sharding} names axes of a mesh, but no mesh is set. Pass a NamedSharding(mesh, spec), "
                "or set the mesh: with jax.set_mesh(mesh): ..."
            )
        return NamedSharding(current, sharding)
    if not isinstance(sharding, NamedSharding):
        raise ArgumentError(f"{api_name} takes a NamedSharding or a PartitionSpec, got {sharding!r}")
    mesh: Any = sharding.mesh.abstract_mesh
    if check_mesh_consistency and not current.empty and mesh != current and current.explicit_axes + mesh.explicit_axes:
        raise ArgumentError(f"{api_name}: the sharding {sharding} is over another mesh than the current one, {current}")
    return NamedSharding(mesh, sharding.spec)
