"""``jax._src.core``: the names of ``jax.core`` and ``jax.extend.core``, and others that libraries import."""

from pullback.core import dtypes as _dtypes
from pullback.core.faces import face as _face
from pullback.core.inspection import trace_state_clean as trace_state_clean  # NumPyro: whether to print progress
from pullback.core.types import ShapedArray


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the words of an array of random keys; other types unchanged. Flax (fp8) needs it.

    >>> from pullback import random
    >>> from pullback.compat.extras._src.core import physical_aval
    >>> physical_aval(random.split(random.key(0), 3).aval)
    ShapedArray(u32[3,2])
    """
    if not _dtypes.is_key(aval.dtype):
        return aval
    words = _dtypes.key_words(aval.dtype)
    return ShapedArray((*aval.shape, words), _dtypes.canonicalize_dtype("uint32"))


_face(globals(), others=("pullback.core", "pullback.extend.core"))
