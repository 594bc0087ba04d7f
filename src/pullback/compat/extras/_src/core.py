"""``jax._src.core``: what ``jax.core`` and ``jax.extend.core`` have, and what libraries take from here."""

from pullback.core import dtypes as _dtypes
from pullback.core.faces import face as _face
from pullback.core.inspection import trace_state_clean as trace_state_clean  # NumPyro: whether to print progress
from pullback.core.types import ShapedArray


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the words that an array of random keys is made of; other types as they are. Flax (fp8) needs it.

    >>> from pullback import random
    >>> physical_aval(random.split(random.key(0), 3).aval)
    ShapedArray(u32[3,2])
    """
    if not _dtypes.is_key(aval.dtype):
        return aval
    words = _dtypes.key_words(aval.dtype)
    return ShapedArray((*aval.shape, words), _dtypes.canonicalize_dtype("uint32"))


_face(globals(), others=("pullback.core", "pullback.extend.core"))
