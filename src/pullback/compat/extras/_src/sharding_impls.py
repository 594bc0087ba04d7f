"""``jax._src.sharding_impls``: names of ``jax.sharding``.

``make_single_device_sharding`` is left out on purpose: when jaxlib copies an array to the host ahead of time, it would
call the function with one of the runtime's devices; without it, it uses a class of its own.
"""

from pullback import make_mesh as make_mesh
from pullback.sharding import NamedSharding as NamedSharding
from pullback.sharding import PartitionSpec as PartitionSpec
from pullback.sharding import SingleDeviceSharding as SingleDeviceSharding
from pullback.sharding import get_mesh as get_mesh
from pullback.sharding import set_mesh as set_mesh
