"""``jax._src.core``: the names of ``jax.core`` and ``jax.extend.core``, and others that libraries import."""

from typing import Any

from pullback.compat.extras.core import eval_context as eval_context
from pullback.core import dtypes as _dtypes
from pullback.core.faces import face as _face
from pullback.core.inspection import trace_state_clean as trace_state_clean  # NumPyro: whether to print progress
from pullback.core.trace import state as trace_ctx  # noqa: F401  (BrainState: the trace of this thread)
from pullback.core.types import Shape as Shape
from pullback.core.types import ShapedArray
from pullback.numpy.promotion import shape_tuple as _shape_tuple

DimSize = Any
"""The size of an axis: an int, or a symbolic size."""


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the words of an array of random keys; other types unchanged. Flax (fp8) needs it.

    >>> from pullback import random
    >>> from pullback.compat.extras._src.core import physical_aval
    >>> physical_aval(random.split(random.key(0), 3).aval)
    ShapedArray(uint32[3,2])
    """
    if not _dtypes.is_key(aval.dtype):
        return aval
    words = _dtypes.key_words(aval.dtype)
    return ShapedArray((*aval.shape, words), _dtypes.canonicalize_dtype("uint32"))


def canonicalize_shape(shape: Any, context: str = "") -> Shape:
    """Return a shape as a tuple of ints. torchax needs it.

    Args:
      shape: an int or a sequence of them.
      context: what the shape belongs to, for errors.

    Raises:
      ShapeError: it is no shape (a TypeError and a ValueError).

    >>> import numpy as np
    >>> from pullback.compat.extras._src.core import canonicalize_shape
    >>> canonicalize_shape(np.array([2, 3]))
    (2, 3)
    """
    return _shape_tuple(shape, context or "shape")


def full_lower(val: Any) -> Any:
    """Return a value as the outermost trace sees it: here the value itself, for no tracer hides another. For Quax."""
    return val


def get_referent(self: Any) -> Any:
    """Return what a tracer stands for: the tracer itself."""
    return self


_face(
    globals(),
    {
        "pullback.transforms.programs.closed_calls": "call_p closed_call_p",
        "pullback.core.jaxpr_info": "JaxprEqnContext=EqnContext",
        "pullback.compat.extras._src.util": "safe_map safe_zip",
    },
    others=("pullback.core", "pullback.extend.core"),
)
