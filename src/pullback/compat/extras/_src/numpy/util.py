"""``jax._src.numpy.util``: promotion of operands. S2FFT needs ``promote_dtypes_complex``."""

from typing import Any

from pullback.core import dtypes as _dtypes
from pullback.core.array import Array, ArrayLike
from pullback.numpy.promotion import operand as _operand
from pullback.numpy.promotion import promote_all as _promote_all
from pullback.primitives.elementwise import convert_element_type as _convert


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """Promote operands to arrays of their common dtype.

    >>> from pullback.compat.extras._src.numpy.util import promote_dtypes
    >>> [x.dtype.name for x in promote_dtypes(1, 2.0)]
    ['float32', 'float32']
    """
    return _promote_all("promote_dtypes", args)


def check_arraylike(fun_name: str, *args: Any, emit_warning: bool = False, stacklevel: int = 3) -> None:
    """Raise an error if an operand of a function is neither an array nor a number. vbjax needs it.

    Raises:
      OperandError: one is a list or another object (a TypeError).

    >>> from pullback.compat.extras._src.numpy.util import check_arraylike
    >>> check_arraylike("f", 1.0)
    """
    for x in args:
        _operand(fun_name, x)


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
