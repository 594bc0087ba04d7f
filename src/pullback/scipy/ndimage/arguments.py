"""Check and convert the arguments that functions of images share: images, sizes, modes, origins, dtypes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import Axes
from pullback.core.arguments import is_listed
from pullback.core.array import Array, as_array, host_value, is_on_host
from pullback.core.config import config, override
from pullback.core.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    OperandError,
    PullbackError,
    ShapeError,
)
from pullback.core.interrupts import imported
from pullback.core.trace import Tracer
from pullback.numpy.promotion import axis_index, is_sequence, known_int, number_operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.shapes import reshape
from pullback.scipy.arguments import of_own_memory, on_host

PADDING = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "constant": "constant", "grid-constant": "constant",
    "nearest": "edge", "mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap",
}  # fmt: skip
"""The modes of filters, and the modes of ``pullback.numpy.pad`` that are the same."""

_OF_SCIPY = frozenset("?bBhHiIlLqQfdFD")
"""The characters of the dtypes that SciPy's functions of images take."""


def image(name: str, x: Any, *, least: int = 1) -> Any:
    """Convert an argument, or nested lists of numbers, to an array of at least ``least`` axes."""
    if isinstance(x, (list, tuple)) and x:
        try:
            x = pnp.asarray(x)
        except PullbackError as error:
            raise OperandError(f"{name}: {error}") from None
    x = number_operand(name, x)
    if len(x.shape) < least:
        raise ShapeError(f"{name} takes an image with at least one axis, got a number")
    return x


def real_image(name: str, x: Any) -> Any:
    """Convert an argument as :func:`image` does; raise if it is complex."""
    x = image(name, x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(x.dtype)}")
    return x


def numeric_image(name: str, x: Any) -> Any:
    """Convert an argument as :func:`image` does; raise if it is Boolean, because sums of truth values are none."""
    x = image(name, x)
    if x.dtype == bool:
        raise DtypeError(f"{name} takes numbers, got Booleans; convert them by astype first")
    return x


def result_dtype(name: str, output: Any, dtype: Any) -> Any:
    """Return the dtype of a result: that of the argument ``output``, or ``dtype`` if it is None."""
    if output is None:
        return np.dtype(dtype)
    if isinstance(output, (Array, np.ndarray)) or not (isinstance(output, (str, type)) or dtypes.is_dtype(output)):
        raise ArgumentError(f"{name}: output must be a dtype or None, since arrays do not change; got {quote(output)}")
    return dtypes.requested_dtype(output, name)


def computed_in(*given: Any) -> Any:
    """Return the dtype in which to compute with numbers of some dtypes, the image's first.

    It has at least single precision. Of integers it is double, whether or not 64 bits are on, because SciPy truncates
    or rounds sums of doubles, and because a sum of 32-bit integers is exact in no smaller float.
    """
    wide = dtypes.result_type(*given)
    if not dtypes.is_inexact(given[0]):
        return np.dtype(np.complex128 if dtypes.is_complex(wide) else np.float64)
    return wide if wide.char in "fdFD" else np.dtype(np.float32)


def doubles_for(dtype: Any) -> AbstractContextManager[None]:
    """Return the block in which to compute with an image of ``dtype``: 64 bits are on for integers and for doubles."""
    if config.enable_x64 or (dtypes.is_inexact(dtype) and dtype.char not in "dD"):
        return nullcontext()
    return override("enable_x64", True)


def measured_in(dtype: Any) -> Any:
    """Return the dtype of a measurement, or of coefficients, of an image: floats for integers."""
    return computed_in(dtype) if dtypes.is_inexact(dtype) else dtypes.default_float()


def finished(x: Any, dtype: Any) -> Any:
    """Convert a result to its dtype; floats are truncated to integers as SciPy does it on x86."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = ops.real(x)
    if dtypes.is_bool(dtype) and not dtypes.is_bool(x.dtype):
        return ops.ne_p.bind(x, 0)
    if dtypes.is_integer(dtype) and dtypes.is_inexact(x.dtype):
        return _truncated(x, dtype)
    return ops.convert_element_type(x, dtype)


def _truncated(x: Any, dtype: Any) -> Any:
    """Convert floats to integers as C's casts do on x86, also where C defines no result.

    They are truncated to 32 bits, those for ``uint32`` and for dtypes of 64 bits to 64 bits, and then taken modulo the
    range of ``dtype``. Numbers beyond these bits, and NaN, become the least integer of so many bits.
    """
    with doubles_for(np.dtype(np.float64)):
        bits = 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32
        limit = 2.0 ** (bits - 1)
        fits = ops.and_p.bind(ops.gt(x, -limit - 1.0), ops.lt(x, limit))
        inside = ops.convert_element_type(ops.where(fits, x, -limit), np.dtype(f"int{bits}"))
        out = ops.convert_element_type(inside, dtype)
        if dtype != np.uint64:
            return out
        return ops.where(ops.ge_p.bind(x, limit), ops.convert_element_type(x, dtype), out)


def number(name: str, what: str, value: Any) -> Any:
    """Convert an argument to a number, a Python number where its value is known, else a traced array without axes."""
    if type(value) in (int, float, complex):
        return value
    x = number_operand(name, value)
    if x.shape:
        raise ShapeError(f"{name}: {what} must be a number, got shape {x.shape}")
    return host_value(x).item() if is_on_host(x) else x


def fixed(name: str, what: str, value: Any) -> float:
    """Convert an argument to a real number; raise if it is traced."""
    value = number(name, what, value)
    if isinstance(value, Array):
        raise ConcretizationTypeError(f"{name}: {what} must be a real number that is known, got {quote(value)}")
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"{name}: {what} must be a real number, got {quote(value)}")
    return float(value)


def mode_of(name: str, mode: Any) -> str:
    """Return a mode of a filter, or raise."""
    if not is_listed(mode, PADDING):
        raise ArgumentError(f"{name}: mode must be one of {', '.join(map(repr, PADDING))}; got {quote(mode)}")
    return str(mode)


def axes_of(name: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """Return axes as positions from the start; all if ``axes`` is None."""
    if axes is None:
        return tuple(range(rank))
    found = [axis_index(a, rank, name) for a in (axes if is_sequence(axes) else (axes,))]  # type: ignore[union-attr]
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: the axes must differ, got {quote(axes)}")
    return tuple(found)


def window_axes(name: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """Return the axes of a window that has axes of its own; raise unless they increase.

    SciPy takes other orders, and then orders the origins by them, but not the axes of the window.
    """
    found = axes_of(name, axes, rank)
    if list(found) != sorted(found):
        raise ArgumentError(f"{name}: the axes of a window must increase, got {quote(axes)}; transpose the window")
    return found


def per_axis(
    name: str, what: str, value: Any, count: int, convert: Callable[[str, str, Any], Any] = known_int
) -> list[Any]:
    """Return an argument that is one for all axes, or a sequence of one for each of ``count``, as a list.

    Args:
      name: the name of the function.
      what: the name of the argument.
      value: the argument.
      count: the number of axes.
      convert: converts one item, from ``name``, ``what`` and the item.
    """
    if isinstance(value, Array) and len(value.shape) == 1:
        value = [value[i] for i in range(value.shape[0])]
    if not is_sequence(value):
        return [convert(name, what, value)] * count
    items = list(value)
    if len(items) != count:
        raise ShapeError(f"{name}: {what} must be one for all axes or a sequence of {count}, got {quote(value)}")
    return [convert(name, what, item) for item in items]


def modes_of(name: str, mode: Any, count: int) -> list[str]:
    """Return the mode of each of ``count`` axes."""
    return per_axis(name, "mode", mode, count, lambda name, _, item: mode_of(name, item))


def size_of(name: str, what: str, value: Any) -> int:
    """Convert the size of a window to an int; raise unless it is positive."""
    size = known_int(name, what, value)
    if size < 1:
        raise ShapeError(f"{name}: {what} must be positive, got {size}")
    return size


def origins_of(name: str, origin: Any, sizes: Sequence[int]) -> list[int]:
    """Return the origin of a window along each axis; raise if it is outside of the window."""
    if type(origin) is int and not origin:
        return [0] * len(sizes)
    origins = per_axis(name, "origin", origin, len(sizes))
    for size, offset in zip(sizes, origins, strict=True):
        if size and not 0 <= size // 2 + offset < size:
            low, high = -(size // 2), size - size // 2 - 1
            raise ArgumentError(f"{name}: the origin of {size} elements must be from {low} to {high}, got {offset}")
    return origins


def concrete(name: str, what: str, value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of an argument that must not be traced."""
    try:
        x = value if isinstance(value, Tracer) else as_array(np.asarray(value))
    except (PullbackError, ValueError):
        raise OperandError(f"{name}: {what} must be an array, got {quote(value)}") from None
    if not is_on_host(x):
        if isinstance(x, Tracer):
            raise ArgumentError(f"{name}: {what} must not be traced, since it decides which elements are read")
        return np.asarray(x)
    return host_value(x)


def mask_of(name: str, what: str, value: Any, rank: int) -> np.ndarray[Any, Any]:
    """Return the elements of a window as Booleans; raise unless it has ``rank`` axes and elements."""
    mask = concrete(name, what, value) != 0
    if mask.ndim != rank or not mask.size:
        raise ShapeError(f"{name}: {what} must have {rank} axes and elements, got shape {mask.shape}")
    return mask


def inserted(x: Any, axes: Sequence[int], rank: int) -> Any:
    """Return a window along increasing ``axes`` of ``rank``, with an axis of size 1 for each of the others."""
    shape = [1] * rank
    for size, axis in zip(x.shape, axes, strict=True):
        shape[axis] = size
    return x.reshape(shape) if isinstance(x, np.ndarray) else reshape(x, shape)


def of_all(values: Sequence[Any], axes: Sequence[int], rank: int, other: Any) -> list[Any]:
    """Return values that belong to ``axes`` as a list of one for each of ``rank`` axes; ``other`` for the others."""
    out = [other] * rank
    for value, axis in zip(values, axes, strict=True):
        out[axis] = value
    return out


def by_scipy(function: str, dtype: Any, *arrays: Any, finite: bool = False, **options: Any) -> Array | None:
    """Return the result of SciPy's function of that name, or None unless all arrays are concrete.

    Args:
      function: the name of the function.
      dtype: that of the result; it is passed as ``output``.
      arrays: the first arguments.
      finite: whether to return None if the first array has elements that are not finite.
      options: the other arguments; traced ones also make the result None.
    """
    values = on_host(*arrays)
    if values is None or dtype.char not in _OF_SCIPY:
        return None
    for v in options.values():  # loops, which take half the time of ``any``
        if isinstance(v, Array):
            return None
    for v in values:
        if v.dtype.char not in _OF_SCIPY or not v.size:
            return None
    if finite and values[0].dtype.char in "fdFD" and not np.isfinite(values[0]).all():
        return None
    return of_own_memory(getattr(imported("scipy.ndimage"), function)(*values, output=dtype, **options))
