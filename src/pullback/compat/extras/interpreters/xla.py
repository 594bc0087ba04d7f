"""``jax.interpreters.xla``: the names that ``pullback.interpreters.xla`` lacks."""

from pullback.compat.extras.core import Handlers
from pullback.core.array import as_array

canonicalize_dtype_handlers = Handlers(as_array)
"""For each type of operand the function that converts it to an array. TensorFlow Probability adds its variables."""

__all__ = ["canonicalize_dtype_handlers"]
