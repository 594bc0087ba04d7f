"""Dtypes under NumPy's names, functions that inspect dtypes and shapes, and constants."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from pullback.core import dtypes, source
from pullback.core.annotations import Axes, DTypeLike, HasShapeAndDtype
from pullback.core.arguments import typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, OperandError

pi = np.pi
e = np.e
euler_gamma = np.euler_gamma
inf = np.inf
nan = np.nan
newaxis = None
dtype: Callable[..., Any] = np.dtype
ndarray = Array


class _ScalarType(type):
    """The type of scalar types such as ``float32``. They make arrays when called, and are accepted as dtypes."""

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The dtype of this scalar type."""
        return np.dtype(getattr(dtypes, cls.__name__, None) or cls.__name__.rstrip("_"))

    def __call__(cls, x: Any = 0) -> Array:
        from pullback.numpy.creation import asarray

        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, value: object) -> builtins.bool:
        return isinstance(value, np.generic) and value.dtype == cls.dtype

    def __eq__(cls, other: object) -> builtins.bool:
        if cls is other or other is None or isinstance(other, _ScalarType):  # NumPy takes None for float64
            return cls is other
        return False if isinstance(other, str) else builtins.bool(cls.dtype == other)

    def __hash__(cls) -> builtins.int:
        # NumPy's scalar type is equal, and so is its dtype, whose hash differs, as in NumPy.
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"pullback.numpy.{cls.__name__}"


def _scalar_type(name: str) -> _ScalarType:
    wide = name in ("int64", "uint64", "float64", "complex128")
    start = ">>> import pullback.numpy as jnp\n    "
    if wide:
        start += ">>> from pullback import enable_x64\n    >>> with enable_x64():\n    ...     "
    docstring = (
        f"The dtype ``{name.rstrip('_')}``; called, it converts a value to an array of that dtype.\n\n"
        f"    {start}{'' if wide else '>>> '}jnp.{name}(1).dtype == jnp.zeros(0, jnp.{name}).dtype\n    True\n    "
    )
    return _ScalarType(name, (), {"__doc__": docstring, "__module__": __name__})


bool_ = _scalar_type("bool_")
int2, int4, int8, int16, int32, int64 = map(_scalar_type, ("int2", "int4", "int8", "int16", "int32", "int64"))
uint2, uint4, uint8, uint16, uint32, uint64 = map(
    _scalar_type, ("uint2", "uint4", "uint8", "uint16", "uint32", "uint64")
)
bfloat16, float16, float32, float64 = map(_scalar_type, ("bfloat16", "float16", "float32", "float64"))
complex64, complex128 = map(_scalar_type, ("complex64", "complex128"))
float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz = map(
    _scalar_type, ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz")
)
float6_e2m3fn, float6_e3m2fn = map(_scalar_type, ("float6_e2m3fn", "float6_e3m2fn"))
float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn = map(
    _scalar_type, ("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")
)
# The widest type of each kind, which is narrowed without 64-bit types.
bool = bool_
int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool:
    """Whether NumPy's rules allow a cast from one dtype to another.

    Args:
      from_: a dtype, or an object with a dtype.
      to: a dtype.
      casting: NumPy's name of the rules: ``"no"``, ``"equiv"``, ``"safe"``, ``"same_kind"`` or ``"unsafe"``.

    Returns:
      A bool of Python's.

    Raises:
      DtypeError: an argument is not a dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.can_cast("int32", "int8")
    False
    """
    owns = (getattr(each, "dtype", None) for each in (from_, to))
    source, target = (own if dtypes.is_dtype(own) else each for own, each in zip(owns, (from_, to), strict=True))
    try:
        return np.can_cast(np.dtype(cast(Any, source)), np.dtype(cast(Any, target)), cast(Any, casting))
    except (TypeError, ValueError) as error:
        raise DtypeError(f"can_cast: expected two dtypes, got {from_!r} and {to!r} ({error})") from None


def ndim(a: ArrayLike | Sequence[Any] | HasShapeAndDtype) -> int:
    """The number of axes of an array.

    Args:
      a: an array, nested lists of numbers, or an object with a shape.

    Returns:
      An int of Python's.

    Raises:
      OperandError: ``a`` is neither an array nor nested lists of numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.ndim([[1, 2]])
    2
    """
    return len(_sizes("ndim", a))


def shape(a: ArrayLike | Sequence[Any] | HasShapeAndDtype) -> tuple[int, ...]:
    """The size of each axis of an array.

    Args:
      a: an array, nested lists of numbers, or an object with a shape.

    Returns:
      A tuple of ints of Python's.

    Raises:
      OperandError: ``a`` is neither an array nor nested lists of numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.shape([[1, 2]])
    (1, 2)
    """
    return _sizes("shape", a)


def size(a: ArrayLike | Sequence[Any] | HasShapeAndDtype, axis: Axes = None) -> int:
    """The number of elements, or the size of an axis.

    Args:
      a: an array, nested lists of numbers, or an object with a shape.
      axis: an axis, or a tuple of axes; None for all elements.

    Returns:
      An int of Python's.

    Raises:
      OperandError: ``a`` is neither an array nor nested lists of numbers (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> jnp.size([[1, 2]]), jnp.size([[1, 2]], 0)
    (2, 1)
    """
    from math import prod

    from pullback.numpy.promotion import axes_tuple

    sizes = _sizes("size", a)
    return prod(sizes[i] for i in axes_tuple(axis, len(sizes), "size"))


def _sizes(name: str, a: Any) -> tuple[int, ...]:
    """Return the shape of an array, of nested lists, or of an object with a shape, such as ``ShapeDtypeStruct``.

    ``name`` is the name of the function, for errors.
    """
    if isinstance(a, Array):
        return a.shape
    if a is None:  # as in JAX; TensorFlow Probability relies on it
        source.warn(
            f"{name} takes an array or a number, got None; this will be an error in a future release",
            DeprecationWarning,
        )
        return ()
    from pullback.numpy.creation import type_of

    shape = type_of(name, a).shape
    if not isinstance(shape, (tuple, list)):
        raise OperandError(f"{name}: expected an array, or nested lists, got {typed(a)}")
    return tuple(shape)


def isscalar(element: object) -> builtins.bool:
    """Whether a value is a number, or an array of no axes.

    Args:
      element: any value.

    Returns:
      A bool of Python's.

    >>> import pullback.numpy as jnp
    >>> jnp.isscalar(1.0), jnp.isscalar([1.0])
    (True, False)
    """
    return len(element.shape) == 0 if isinstance(element, (Array, np.ndarray)) else builtins.bool(np.isscalar(element))


def iterable(y: object) -> builtins.bool:
    """Whether a value can be iterated over.

    Args:
      y: any value.

    Returns:
      A bool of Python's.

    >>> import pullback.numpy as jnp
    >>> jnp.iterable([1.0]), jnp.iterable(1.0)
    (True, False)
    """
    return shape(y) != () if isinstance(y, Array) else builtins.bool(np.iterable(y))
