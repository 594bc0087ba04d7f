"""Where arrays are: meshes of devices, and how arrays are spread over them.

>>> import pullback
>>> mesh = pullback.make_mesh((1, 1), ("data", "model"))
>>> NamedSharding(mesh, PartitionSpec("data", None)).shard_shape((8, 4))
(8, 4)
"""

from pullback.backends.devices.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from pullback.backends.devices.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from pullback.core.faces import face
from pullback.spmd.axis_modes import auto_axes, explicit_axes
from pullback.transforms.programs.placement import with_sharding_constraint as reshard

__all__ = [
    "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard",
    "set_mesh", "use_abstract_mesh", "use_mesh",
]  # fmt: skip
face(globals())
