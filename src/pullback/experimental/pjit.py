"""What JAX keeps under this name: ``jit``, which has been all that ``pjit`` was."""

from pullback.transforms.jit.jit import jit as pjit

__all__ = ["pjit"]
