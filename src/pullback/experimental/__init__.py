"""What JAX keeps under this name."""

from pullback.transforms.callbacks import io_callback

__all__ = ["io_callback"]
