"""``jax._src.sharding_impls``: what ``jax.sharding`` has too.

Without ``make_single_device_sharding``: jaxlib looks for it here when an array is copied to the host ahead of time, to
call it with a device of the runtime's, and takes a class of its own where it is missing.
"""

from pullback import make_mesh as make_mesh
from pullback.sharding import NamedSharding as NamedSharding
from pullback.sharding import PartitionSpec as PartitionSpec
from pullback.sharding import SingleDeviceSharding as SingleDeviceSharding
from pullback.sharding import get_mesh as get_mesh
from pullback.sharding import set_mesh as set_mesh
