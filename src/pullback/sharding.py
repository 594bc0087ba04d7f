"""Meshes of devices, and shardings of arrays over them.

>>> from pullback import make_mesh
>>> from pullback.sharding import NamedSharding, PartitionSpec
>>> mesh = make_mesh((1, 1), ("data", "model"))
>>> NamedSharding(mesh, PartitionSpec("data", None)).shard_shape((8, 4))
(8, 4)
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.backends.devices.meshes": (
            "AbstractDevice AbstractMesh AxisType Mesh get_abstract_mesh get_mesh set_mesh use_abstract_mesh use_mesh"
        ),
        "pullback.backends.devices.shardings": (
            "NamedSharding PartitionSpec Sharding SingleDeviceSharding UnreducedKind make_single_device_sharding"
        ),
        "pullback.spmd.axis_modes": "auto_axes explicit_axes",
        "pullback.transforms.programs.resharding": "reshard",
    },
)
