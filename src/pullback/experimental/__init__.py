"""The names of ``jax.experimental``."""

from pullback.core.faces import face
from pullback.transforms.programs.callbacks import io_callback

__all__ = ["io_callback"]
face(
    globals(),
    modules="buffer_callback checkify compilation_cache compute_on custom_partitioning hijax jet key_reuse layout "
    "mesh_utils multihost_utils ode pjit random rnn scheduling_groups serialize_executable shard_map sparse "
    "xla_metadata",
)
