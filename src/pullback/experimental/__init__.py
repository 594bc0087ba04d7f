"""What JAX keeps under this name."""

from pullback.transforms.programs.callbacks import io_callback

__all__ = ["io_callback"]
