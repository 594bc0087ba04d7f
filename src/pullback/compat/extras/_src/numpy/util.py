"""``jax._src.numpy.util``: promotion of operands. S2FFT needs ``promote_dtypes_complex``."""

from pullback.core import dtypes as _dtypes
from pullback.core.array import Array, ArrayLike
from pullback.numpy.promotion import promote_all as _promote_all
from pullback.primitives.elementwise import convert_element_type as _convert


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """Promote operands to arrays of their common dtype.

    >>> from pullback.compat.extras._src.numpy.util import promote_dtypes
    >>> [x.dtype.name for x in promote_dtypes(1, 2.0)]
    ['float32', 'float32']
    """
    return _promote_all("promote_dtypes", args)


def promote_dtypes_inexact(*args: ArrayLike) -> list[Array]:
    """Promote operands to arrays of a common real or complex floating dtype.

    >>> from pullback.compat.extras._src.numpy.util import promote_dtypes_inexact
    >>> [x.dtype.name for x in promote_dtypes_inexact(1, 2)]
    ['float32', 'float32']
    """
    return [_convert(x, _dtypes.to_inexact(x.dtype)) for x in promote_dtypes(*args)]


def promote_dtypes_complex(*args: ArrayLike) -> list[Array]:
    """Promote operands to arrays of a common complex dtype.

    >>> from pullback.compat.extras._src.numpy.util import promote_dtypes_complex
    >>> [x.dtype.name for x in promote_dtypes_complex(1, 2.0)]
    ['complex64', 'complex64']
    """
    return [_convert(x, _dtypes.to_complex(x.dtype)) for x in promote_dtypes(*args)]
