# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.backends.devices.meshes import AbstractDevice as AbstractDevice
from pullback.backends.devices.meshes import AbstractMesh as AbstractMesh
from pullback.backends.devices.meshes import AxisType as AxisType
from pullback.backends.devices.meshes import Mesh as Mesh
from pullback.backends.devices.meshes import get_abstract_mesh as get_abstract_mesh
from pullback.backends.devices.meshes import get_mesh as get_mesh
from pullback.backends.devices.meshes import set_mesh as set_mesh
from pullback.backends.devices.meshes import use_abstract_mesh as use_abstract_mesh
from pullback.backends.devices.meshes import use_mesh as use_mesh
from pullback.backends.devices.shardings import NamedSharding as NamedSharding
from pullback.backends.devices.shardings import PartitionSpec as PartitionSpec
from pullback.backends.devices.shardings import Sharding as Sharding
from pullback.backends.devices.shardings import SingleDeviceSharding as SingleDeviceSharding
from pullback.backends.devices.shardings import UnreducedKind as UnreducedKind
from pullback.backends.devices.shardings import make_single_device_sharding as make_single_device_sharding
from pullback.spmd.axis_modes import auto_axes as auto_axes
from pullback.spmd.axis_modes import explicit_axes as explicit_axes
from pullback.transforms.programs.resharding import reshard as reshard

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "UnreducedKind", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh", "use_mesh",
]
