"""``jax.interpreters.xla``: what ``pullback.interpreters.xla`` does not have."""

from pullback.compat.extras.core import Handlers
from pullback.core.array import as_array

canonicalize_dtype_handlers = Handlers(as_array)
"""For each type of operands what makes arrays of them. TensorFlow Probability enters its variables."""

__all__ = ["canonicalize_dtype_handlers"]
