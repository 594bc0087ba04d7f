"""Element types, under the names of ``jax.dtypes``."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag
from pullback.core.dtypes import (
    extended,
    finfo,
    float0,
    iinfo,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)
from pullback.core.errors import DtypeError, TypePromotionError
from pullback.core.faces import face

if TYPE_CHECKING:
    from ml_dtypes import bfloat16

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
face(globals(), {"ml_dtypes": "bfloat16"})


def issubdtype(a: DTypeLike, b: DTypeLike) -> bool:
    """Whether the dtype ``a`` is of the kind ``b``; see :func:`pullback.numpy.issubdtype`.

    Args:
      a: a dtype or a kind.
      b: a dtype or a kind.

    Returns:
      A bool of Python's.

    Raises:
      DtypeError: there is no such dtype (a TypeError).

    >>> from pullback import dtypes
    >>> dtypes.issubdtype("bfloat16", "bfloat16")
    True
    """
    return dtypes.issubdtype(a, b)


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """Return the dtype of values that are requested as ``dtype``: 64 bits become 32 unless ``config.enable_x64``.

    Args:
      dtype: whatever :class:`numpy.dtype` takes, the name of an extended type, or an object with a ``dtype``.
      allow_extended_dtype: whether it may be the dtype of random keys.

    Returns:
      A dtype of NumPy's.

    Raises:
      DtypeError: there is no such dtype, or it is not one of numbers (a TypeError).

    >>> from pullback import dtypes
    >>> dtypes.canonicalize_dtype(float), dtypes.canonicalize_dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    canonical = dtypes.canonicalize_dtype(dtype)
    allow_extended_dtype = flag("canonicalize_dtype", "allow_extended_dtype", allow_extended_dtype)
    if issubdtype(canonical, extended) and not allow_extended_dtype:
        raise DtypeError(
            f"{canonical} is not a dtype of numbers; pass allow_extended_dtype=True to allow dtypes of keys"
        )
    return canonical
