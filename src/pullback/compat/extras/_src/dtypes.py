"""``jax._src.dtypes``: the names of ``jax.dtypes``, and others that Equinox and Flax import."""

from abc import ABC
from typing import Any

import numpy as np

from pullback.core import dtypes as _own
from pullback.core.dtypes import extended as extended
from pullback.core.errors import TypePromotionError as TypePromotionError  # Equinox: embeddings
from pullback.core.faces import face as _face

DType = np.dtype
"""Flax (fp8)."""


class ExtendedDType(ABC):
    """A base class for users' dtypes, in JAX's spelling; Flax (fp8) has one. The dtypes of random keys are instances.

    They can be used in annotations and compared. There are no arrays of them: functions that take a dtype refuse them.
    """

    type: Any
    _rules: Any


ExtendedDType.register(_own.KeyDtype)


def supports_inf(dtype: Any) -> bool:
    """Whether a floating dtype has infinities. Flax (fp8) asks.

    Args:
      dtype: a dtype.

    >>> from pullback.compat.extras._src.dtypes import supports_inf
    >>> supports_inf("float32"), supports_inf("float8_e4m3fn"), supports_inf("int32")
    (True, False, False)
    """
    found = _own.canonicalize_dtype(dtype)
    if not _own.is_inexact(found):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(np.inf, np.float32).astype(found).astype(np.complex64).real))


def to_complex_dtype(dtype: Any) -> Any:
    """Return the complex dtype with the precision of a dtype; tinygp needs it.

    >>> from pullback.compat.extras._src.dtypes import to_complex_dtype
    >>> to_complex_dtype("float32")
    dtype('complex64')
    """
    return _own.to_complex(_own.canonicalize_dtype(dtype))


def short_dtype_name(dtype: Any) -> str:
    """Return the name of a dtype in printed programs.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.dtypes import short_dtype_name
    >>> short_dtype_name(np.float32)
    'f32'
    """
    return _own.short_name(np.dtype(dtype))


def dtype(x: Any) -> Any:
    """Return the dtype of an array, of a number, or of an object with a dtype.

    >>> from pullback.compat.extras._src.dtypes import dtype
    >>> dtype(1.0)
    dtype('float32')
    """
    return _own.dtype_of(x)


_face(globals(), others=("pullback.dtypes", "pullback.core.dtypes"))
