"""``jax._src.sharding_impls``: what ``jax.sharding`` has too. Orbax asks for it."""

from pullback import make_mesh as make_mesh
from pullback.sharding import NamedSharding as NamedSharding
from pullback.sharding import PartitionSpec as PartitionSpec
from pullback.sharding import SingleDeviceSharding as SingleDeviceSharding
from pullback.sharding import get_mesh as get_mesh
from pullback.sharding import make_single_device_sharding as make_single_device_sharding
from pullback.sharding import set_mesh as set_mesh
