"""The names of ``jax.experimental``."""

from pullback.core.faces import face
from pullback.transforms.programs.callbacks import io_callback

__all__ = ["io_callback"]
face(
    globals(),
    modules="checkify custom_partitioning jet key_reuse layout mesh_utils multihost_utils ode pjit rnn shard_map "
    "sparse",
)
