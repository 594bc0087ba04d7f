"""Element types, under the names of ``jax.dtypes``."""

from typing import TYPE_CHECKING, Any

from pullback.core import dtypes
from pullback.core.dtypes import (
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)
from pullback.core.errors import TypePromotionError

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


def __getattr__(name: str) -> Any:
    if name == "bfloat16":
        return dtypes.bfloat16
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
