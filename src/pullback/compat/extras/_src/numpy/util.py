"""``jax._src.numpy.util``: how operands are promoted. S2FFT needs the one of complex numbers."""

from pullback.core import dtypes as _dtypes
from pullback.core.array import Array, ArrayLike
from pullback.numpy.promotion import promote_all as _promote_all
from pullback.primitives.elementwise import convert_element_type as _convert


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """Operands as arrays of the dtype that an operation on all of them has.

    >>> [x.dtype.name for x in promote_dtypes(1, 2.0)]
    ['float32', 'float32']
    """
    return _promote_all("promote_dtypes", args)


def promote_dtypes_inexact(*args: ArrayLike) -> list[Array]:
    """The same, and of a dtype of floats or complex numbers.

    >>> [x.dtype.name for x in promote_dtypes_inexact(1, 2)]
    ['float32', 'float32']
    """
    return [_convert(x, _dtypes.to_inexact(x.dtype)) for x in promote_dtypes(*args)]


def promote_dtypes_complex(*args: ArrayLike) -> list[Array]:
    """The same, and of a dtype of complex numbers.

    >>> [x.dtype.name for x in promote_dtypes_complex(1, 2.0)]
    ['complex64', 'complex64']
    """
    return [_convert(x, _dtypes.to_complex(x.dtype)) for x in promote_dtypes(*args)]
