"""Functions with transformations around them, for libraries that write transformations of their own."""

from pullback.core.errors import StoreException as StoreException
from pullback.core.faces import face
from pullback.transforms.functions.linear_util import (
    Store,
    WrappedFun,
    annotate,
    cache,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)

__all__ = [
    "Store", "StoreException", "WrappedFun", "annotate", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
face(globals())
