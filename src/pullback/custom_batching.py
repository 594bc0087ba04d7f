"""Custom batching rules, in JAX's spelling."""

from pullback.control.scan import sequential_vmap as sequential_vmap
from pullback.core.faces import face
from pullback.transforms.custom.custom_vmap import custom_vmap as custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
face(globals())
