"""Arrays for libraries that read the Arrow C data interface, such as polars.

The structures are pyarrow's. (Made with ``ctypes``, they would be released by Python code, which a reader may call
while an exception is set: the exception would be lost.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import DtypeError, MissingLibraryError, ShapeError

_KINDS = "biuf"


def c_array(x: Array, requested_schema: Any = None) -> tuple[Any, Any]:
    """Return the type and the elements of an array as capsules ``"arrow_schema"`` and ``"arrow_array"``.

    Elements are not copied, except booleans, which Arrow packs into bits. A matrix is a column of lists of one size.

    Args:
      x: an array of one axis or more.
      requested_schema: the type that the reader prefers, a capsule; pyarrow converts to it if it can.

    Raises:
      MissingLibraryError: pyarrow is not installed (an ImportError).
      DtypeError: Arrow has no such dtype (a TypeError).
      ShapeError: the array has no axis (a ValueError).
      ConcretizationTypeError: the array is traced (a TypeError).
    """
    if x.dtype.kind not in _KINDS or x.dtype.isbuiltin != 1:
        raise DtypeError(
            f"Arrow has no elements of dtype {dtypes.dtype_name(x.dtype)}, which polars would need: convert the array "
            "first, as in x.astype('float32')"
        )
    if x.ndim == 0:
        raise ShapeError("a scalar cannot be a column: x[None] has one element")
    values = np.asarray(x)
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingLibraryError(
            "polars reads arrays by pyarrow, which is not installed (pip install pyarrow); or give it NumPy's array: "
            "pl.Series(np.asarray(x))"
        ) from None
    column = pa.array(np.ascontiguousarray(values).ravel())
    for size in values.shape[:0:-1]:
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]
