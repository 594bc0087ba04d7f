"""``jax._src.earray``: arrays with elements other than numbers, made from arrays of words."""

from typing import Any

from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.types import ShapedArray
from pullback.primitives.random.bits import random_wrap


class EArray(ArrayImpl):
    """An array of random keys, made from its words, for Flax (fp8).

    >>> from pullback import random
    >>> from pullback.compat.extras._src.earray import EArray
    >>> keys = random.split(random.key(0), 3)
    >>> bool((EArray(keys.aval, random.key_data(keys)) == keys).all())
    True
    """

    __slots__ = ()

    def __new__(cls, aval: ShapedArray, data: Any) -> Array:  # type: ignore[misc]
        """Make an array of keys.

        Args:
          aval: its type.
          data: the words, an array of type ``physical_aval(aval)``.

        Raises:
          UnsupportedArgumentError: the type is not one of random keys (a NotImplementedError).
        """
        if not dtypes.is_key(aval.dtype):
            raise UnsupportedArgumentError(
                f"EArray: only random keys can be arrays of arrays, got the type {aval}. Custom dtypes "
                f"(ExtendedDType) are not supported; store the array of numbers separately."
            )
        return random_wrap(data, aval.dtype)  # type: ignore[no-any-return]
