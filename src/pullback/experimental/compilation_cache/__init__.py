"""The cache of compiled programs on disk, under the names of ``jax.experimental.compilation_cache``."""

from pullback.core.faces import face

__all__ = ["compilation_cache"]
face(globals(), modules="compilation_cache")
