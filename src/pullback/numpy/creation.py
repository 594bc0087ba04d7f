# long: because many functions make arrays, each with its docstring
"""Arrays made from values, shapes, ranges and functions of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.exceptions import ComplexWarning

from pullback.backends.devices import exchange
from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import DeviceLike, OutSharding
from pullback.backends.host import aligned
from pullback.backends.host import rules as host
from pullback.backends.host.pending import hold
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, HasShapeAndDtype, ShapeLike, SupportsDLPack
from pullback.core.arguments import flag, is_listed, require_function, typed
from pullback.core.array import (
    MOST_HOST_AXES,
    SCALARS,
    Array,
    ArrayImpl,
    ArrayLike,
    ArraySource,
    CommittedArray,
    from_numpy,
    from_scalar,
    scalar_array,
    signature_of,
)
from pullback.core.dims import any_symbolic, as_size, is_symbolic, largest
from pullback.core.elsewhere import default_is_elsewhere, is_here
from pullback.core.errors import (
    AllocationError,
    ArgumentError,
    DtypeError,
    DtypeValueError,
    ExchangeError,
    IntegerRangeError,
    OperandError,
    PullbackError,
    ShapeError,
)
from pullback.core.naming import quoted
from pullback.core.runtime import runtime
from pullback.core.source import warn
from pullback.core.trace import Tracer, state
from pullback.numpy.declare import numeric
from pullback.numpy.promotion import (
    another,
    axis_index,
    diagonal_number,
    inexact_operands,
    known_int,
    memory_for,
    named,
    operand,
    sequence_of,
    shape_tuple,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.elementwise import convert_element_type, convert_element_type_p
from pullback.primitives.operands import made
from pullback.transforms.programs.placement import committed_like, constrained
from pullback.transforms.programs.transfer import device_put

# From values -------------------------------------------------------------------------------------------------------


def array(
    object: ArraySource,
    dtype: DTypeLike = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of the values of ``object``.

    Args:
      object: a number, a NumPy array, an array, anything with ``__array__``, a ``range``, or nested lists or tuples of
        these, all of one shape.
      dtype: the dtype of the result; by default the promoted dtype of the values, which is weak for one Python number.
      copy: whether the result is a new array, which stays when ``object`` is donated or deleted. They share memory
        until then, for arrays are immutable.
      order: accepted for compatibility.
      ndmin: the least number of axes; missing axes are added in front.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape of ``object``.

    Raises:
      OperandError: a string or another object that is no array (a TypeError).
      NoneOperandError: None (a TypeError and a ValueError).
      MaskedArrayError: one of NumPy's masked arrays (a TypeError and a ValueError).
      IntegerRangeError: an integer of Python that the dtype does not hold (an OverflowError).
      ShapeError: nested lists whose lengths disagree (a TypeError and a ValueError).
      DtypeError: ``dtype`` is not a dtype (a TypeError).

    Warns:
      DtypeTruncationWarning: ``dtype`` has 64 bits, and the result 32, since ``enable_x64`` is off.

    >>> import pullback.numpy as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if device is not None or out_sharding is not None:
        return _put(array(object, dtype, copy, order, ndmin), device, out_sharding, "array")
    out = _from_object(object, None if dtype is None else dtypes.requested_dtype(dtype, "array"))
    if out is not object:
        out = out if state.trace.eager else made(out)
    elif copy is not None and flag("array", "copy", copy):
        out = _copied(out)
    if not ndmin:
        return out
    missing = known_int("array", "ndmin", ndmin) - len(out.shape)
    return shapes.reshape(out, (1,) * missing + out.shape) if missing > 0 else out


def _from_object(x: Any, wanted: Any) -> Any:
    return _from_nested(x, wanted) if isinstance(x, _NESTED) else _from_value(x, wanted)


def _copied(x: Any) -> Any:
    """Return a new array with the elements of ``x``.

    A traced value is copied too, since it may stand for an array of the user.
    """
    if isinstance(x, ArrayImpl) and state.trace.eager:
        return another(x)
    return convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=x.weak_type)


def _put(x: Any, device: Any, out_sharding: Any, name: str) -> Any:
    """Put ``x`` on ``device``; if that is None, constrain ``x`` to ``out_sharding``.

    Raise if both are not None. ``name`` is the name of the function, for the error.
    """
    if device is not None and out_sharding is not None:
        raise ArgumentError(f"{name}: pass either device or out_sharding, not both")
    return constrained(x, out_sharding, name) if device is None else device_put(x, device)


def listed(name: str, x: Any) -> Array:
    """Convert an operand of the function ``name`` to an array; it may be a nested list."""
    if not isinstance(x, (list, tuple)):
        return operand(name, x)
    try:
        return _from_object(x, None)  # type: ignore[no-any-return]
    except (OperandError, DtypeError, ShapeError) as error:
        raise type(error)(f"{name}: {error}") from None


def asarray(
    a: ArraySource,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Convert ``a`` to an array; an array is returned unchanged. See :func:`array`.

    Args:
      a: an array, a number, or nested lists of them.
      dtype: the dtype of the result; by default the promoted dtype of the values.
      order: accepted for compatibility.
      copy: whether the result is a new array even if ``a`` is an array; not by default.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape of ``a``.

    Raises:
      OperandError: a string, None or another object that is no array (a TypeError).
      ShapeError: nested lists have different lengths (a TypeError and a ValueError).
      DtypeError: ``dtype`` is not a dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.asarray(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    if device is not None or out_sharding is not None:
        return _put(asarray(a, dtype, order, copy=copy), device, out_sharding, "asarray")
    if copy is not None and copy is not False:
        copy = flag("asarray", "copy", copy)
    if dtype is None and isinstance(a, Array) and not copy:
        return a
    try:
        return array(a, dtype, copy=bool(copy))
    except (OperandError, ShapeError, DtypeError) as error:
        raise type(error)(f"as{error}" if str(error).startswith("array: ") else f"asarray: {error}") from None


def _from_value(x: Any, wanted: Any) -> Any:
    if wanted is None:
        out = operand("array", x)
        return convert_element_type(out, out.dtype) if out.weak_type and hasattr(x, "__jax_array__") else out
    if isinstance(x, Array):
        return convert_element_type(x, wanted)
    if type(x) in SCALARS and (
        (wanted.kind == "f" and type(x) is not complex) or (type(x) is int and wanted.kind in "iu")
    ):
        try:
            return scalar_array(state.silently(wanted.type, x))
        except (OverflowError, TypeError):
            raise IntegerRangeError(f"array: the Python integer {x} does not fit in {wanted}") from None
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return scalar_array(_numbers(x, wanted)[()])
    if not isinstance(x, (np.ndarray, np.generic)):
        return convert_element_type(operand("array", x), wanted)
    if x.dtype.kind in "OSUMm":
        operand("array", x)
    value = x if x.dtype == wanted else _silently_converted(x, wanted)
    return from_numpy(value)


def _silently_converted(x: Any, dtype: Any) -> Any:
    return state.silently(partial(host.convert, new_dtype=dtype), x)


def _numbers(x: Any, wanted: Any) -> np.ndarray[Any, Any]:
    """Convert a Python number, or nested lists of Python numbers, to a NumPy array.

    Raise if the dtype ``wanted`` cannot hold the numbers. If it is None, choose a dtype by the numbers.
    """
    try:
        natural = np.array(x)
    except ValueError:
        raise ShapeError(f"array: the nested lists must have one shape: {quoted(x)}") from None
    kind = natural.dtype.kind
    if kind == "O":
        _refuse_object(x)
    if kind not in "biufc":
        raise OperandError(f"array: expected numbers, got {quoted(x)}")
    if natural.size == 0:
        natural = natural.astype(float)
    dtype = dtypes.canonicalize_dtype(natural.dtype) if wanted is None else wanted
    if kind == "c" and dtype.kind not in "cb":
        raise DtypeError(f"array: complex numbers cannot be converted to {dtype}; take their real part first")
    if kind in "iu" and dtype.kind in "iu":
        try:
            return np.array(x, dtype)
        except OverflowError as error:
            wider = "" if wanted is not None or dtype.itemsize == 8 else f". {_WIDER}"
            raise IntegerRangeError(f"array: {error}{wider}") from None
    return np.asarray(_silently_converted(natural, dtype))


_WIDER = "Enable 64-bit types (`with pullback.enable_x64():`), or pass a dtype, as in jnp.array(..., dtype='float32')"


def _refuse_object(x: Any) -> None:
    for leaf in _leaves(x):
        if isinstance(leaf, int):
            if not -(2**63) <= leaf < 2**64:
                raise IntegerRangeError(f"array: the Python integer {leaf} does not fit in 64 bits")
        elif type(leaf) not in SCALARS:
            operand("array", leaf)
    raise ShapeError(f"array: the nested lists must have one shape: {quoted(x)}")


_NESTED = (list, tuple, range)


def _leaves(x: Any) -> Iterable[Any]:
    for item in x if isinstance(x, _NESTED) else (x,):
        if isinstance(item, _NESTED):
            yield from _leaves(item)
        else:
            yield item


def _from_nested(x: Sequence[Any], wanted: Any) -> Any:
    leaves = list(_leaves(x))
    if all(kind in SCALARS for kind in set(map(type, leaves))):
        return ArrayImpl(_numbers(x, wanted))
    leaves = [leaf if type(leaf) in SCALARS else operand("array", leaf) for leaf in leaves]
    dtype = dtypes.result_type(*leaves) if wanted is None else wanted
    return _stacked(x, iter(leaves), dtype)


def _stacked(x: Any, leaves: Any, dtype: Any) -> Any:
    """Make an array from nested lists: stack one operand for each item that is not a list.

    Args:
      x: the nested lists, which determine the shape.
      leaves: an iterator over the operands, in order.
      dtype: the dtype of the array.
    """
    if not isinstance(x, _NESTED):
        leaf = next(leaves)
        return asarray(leaf, dtype)
    arrays = [_stacked(item, leaves, dtype) for item in x]
    if not arrays:
        return ArrayImpl(np.zeros(0, dtype))
    if any(each.shape != arrays[0].shape for each in arrays):
        found = ", ".join(sorted({str(each.shape) for each in arrays}))
        raise ShapeError(f"array: the items of a list must have one shape, got {found}")
    if state.trace.quick and all(map(is_here, arrays)):
        return ArrayImpl(np.stack([each._value for each in arrays]))
    return slicing.concatenate([shapes.expand_dims(each, (0,)) for each in arrays], 0)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: DeviceLike = None) -> Array:
    """Convert ``x`` to another dtype.

    Floats become integers towards zero and within range; complex numbers lose their imaginary part.

    Args:
      x: an array.
      dtype: the dtype of the result.
      copy: whether the result is a new array even if ``x`` has the dtype already.
      device: the device or sharding of the result; see :func:`pullback.device_put`.

    Returns:
      An array of the shape of ``x`` and of dtype ``dtype``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``dtype`` is not a dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.astype(jnp.array([1.7, -1.7]), int))
    [ 1 -1]
    """
    if device is not None:
        return device_put(astype(x, dtype, copy=copy), device)
    x = operand("astype", x)
    target = dtypes.requested_dtype(float if dtype is None else dtype, "astype")
    if target.kind == "b" and x.dtype.kind != "b":
        return ops.ne_p.bind(x, 0)
    if x.dtype.kind == "c" and target.kind != "c":
        text = f"astype: {target} has no imaginary part, so it would be lost; take jnp.real(x) or jnp.imag(x) first"
        warn(text, ComplexWarning)
    out = convert_element_type(x, target)
    return _copied(out) if copy is not None and flag("astype", "copy", copy) and out is x else out


@named
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A new array of the elements of ``a``, which stays when ``a`` is donated to a compiled function or deleted.

    They share memory until then, so that a copy costs very little.

    Args:
      a: an array, or a number.
      order: accepted for compatibility.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor nested lists of numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.copy([1, 2]))
    [1 2]
    """
    return array(a)


def from_dlpack(x: SupportsDLPack, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """An array of the values of an array of another library, by the DLPack protocol.

    The memory is shared where it can be. Later writes to it change the result: pass ``copy=True`` if there are any.

    Args:
      x: an object with the methods ``__dlpack__`` and ``__dlpack_device__``. Elements on a GPU stay there.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      copy: True for memory of its own; False to raise if a copy is needed, to narrow elements of 64 bits or to move
        them to another device.

    Returns:
      An array of the shape of ``x``.

    Raises:
      OperandError: ``x`` has no such methods (a TypeError).
      ExchangeError: the dtype or the device of ``x`` is not supported, or ``copy=False`` is not possible (a TypeError
        and a BufferError).

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> print(jnp.from_dlpack(np.arange(2)))
    [0 1]
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise OperandError(
            f"from_dlpack: expected an array with the methods __dlpack__ and __dlpack_device__, got {typed(x)}"
        )
    try:
        found = exchange.imported(x, copy)
    except (BufferError, RuntimeError) as error:
        if isinstance(error, PullbackError):
            raise
        raise ExchangeError(f"from_dlpack: the array of type {type(x).__name__} cannot be exchanged: {error}") from None
    if device is None:
        return found
    out = device_put(found, device)
    if copy is False and out.sharding != found.sharding:
        raise ExchangeError(f"from_dlpack: the array must be copied to {device}, but copy is False")
    return out


def frombuffer(
    buffer: bytes | bytearray | memoryview | np.ndarray, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """An array of the bytes of a buffer, read as ``dtype``.

    Args:
      buffer: bytes, or another object with the buffer protocol.
      dtype: the dtype of an element of the buffer; without 64-bit types, elements of 64 bits become 32.
      count: how many elements to read; all by default.
      offset: the number of bytes before the first element.

    Returns:
      A vector.

    Raises:
      OperandError: ``buffer`` has no bytes (a TypeError).
      ValueError: the bytes are not a whole number of elements, or are too few.

    >>> import pullback.numpy as jnp
    >>> print(jnp.frombuffer(b"ab", dtype="uint8"))
    [97 98]
    """
    most, first = known_int("frombuffer", "count", count), known_int("frombuffer", "offset", offset)
    try:
        return made(from_numpy(np.array(np.frombuffer(buffer, dtypes.exact_dtype(dtype), most, first))))
    except (TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, PullbackError):
            raise
        raise OperandError(f"frombuffer: expected bytes, got {typed(buffer)} ({error})") from None


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """A vector of the values of an iterable.

    Args:
      iter: numbers, one after the other.
      dtype: the dtype of the result.
      count: how many to take; all by default.

    Returns:
      A vector.

    Raises:
      OperandError: ``iter`` is not an iterable of numbers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fromiter(range(3), float))
    [0. 1. 2.]
    """
    target = dtypes.requested_dtype(dtype, "fromiter")
    try:
        return made(ArrayImpl(np.fromiter(iter, target, known_int("fromiter", "count", count))))
    except (TypeError, ValueError, OverflowError) as error:
        raise OperandError(
            f"fromiter: expected an iterable of numbers for {target}, got {typed(iter)} ({error})"
        ) from None


# From shapes -------------------------------------------------------------------------------------------------------


def _filled(name: str, shape: Any, dtype: Any, value: Any, weak_type: bool = False) -> Any:
    """Return an array filled with ``value``: eagerly by NumPy in new memory, or in a traced program by an operation.

    ``name`` is the name of the function, for errors.
    """
    sizes = shape_tuple(shape, name)
    trace = state.trace
    if (
        not trace.eager
        or not sizes
        or any_symbolic(sizes)
        or len(sizes) > MOST_HOST_AXES
        or (not trace.quick and default_is_elsewhere())
    ):
        return made(shapes.full(sizes, value, dtype, weak_type))
    try:
        if value == 0 if dtype.kind != "V" else dtype == dtypes.float0:
            return hold(ArrayImpl(np.zeros(sizes, dtype), weak_type))
        out = aligned.new(sizes, dtype)
        out[...] = value
        return hold(ArrayImpl(out, weak_type))
    except (MemoryError, ValueError) as error:  # NumPy's ValueError: more bytes than can be counted
        raise AllocationError(
            f"{name}: no memory for an array of shape {sizes} and dtype {dtypes.dtype_name(dtype)}: {error}"
        ) from None


def zeros(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None, out_sharding: OutSharding = None
) -> Array:
    """Make an array of zeros.

    Args:
      shape: the shape of the result: an int, or several.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape``.

    Raises:
      AllocationError: the array does not fit into memory (a MemoryError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    if device is not None or out_sharding is not None:
        return _put(zeros(shape, dtype), device, out_sharding, "zeros")
    return _filled("zeros", shape, dtypes.requested_dtype(float if dtype is None else dtype, "zeros"), 0)


def ones(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None, out_sharding: OutSharding = None
) -> Array:
    """Make an array of ones.

    Args:
      shape: the shape of the result: an int, or several.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape``.

    Raises:
      AllocationError: the array does not fit into memory (a MemoryError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.ones((1, 2))
    Array([[1., 1.]], dtype=float32)
    """
    if device is not None or out_sharding is not None:
        return _put(ones(shape, dtype), device, out_sharding, "ones")
    return _filled("ones", shape, dtypes.requested_dtype(float if dtype is None else dtype, "ones"), 1)


def empty(
    shape: ShapeLike, dtype: DTypeLike = None, *, device: DeviceLike = None, out_sharding: OutSharding = None
) -> Array:
    """An array of zeros: there are no uninitialised arrays.

    Args:
      shape: the shape of the result: an int, or several.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape``.

    Raises:
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.empty(1).shape
    (1,)
    """
    if device is not None or out_sharding is not None:
        return _put(empty(shape, dtype), device, out_sharding, "empty")
    return _filled("empty", shape, dtypes.requested_dtype(float if dtype is None else dtype, "empty"), 0)


@named
def full(
    shape: ShapeLike,
    fill_value: ArrayLike | Sequence[Any],
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array filled with a value, or with an array broadcast to the shape.

    Args:
      shape: the shape of the result: an int, or several.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: the dtype of the result; by default the dtype of ``fill_value``.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape``.

    Raises:
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      ShapeError: ``fill_value`` does not broadcast to the shape (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.full(2, 7.0))
    [7. 7.]
    """
    if device is not None or out_sharding is not None:
        return _put(full(shape, fill_value, dtype), device, out_sharding, "full")
    if isinstance(fill_value, (list, tuple)):
        fill_value = array(fill_value)
    wanted = None if dtype is None else dtypes.requested_dtype(dtype, "full")
    value = array(fill_value, wanted) if type(fill_value) is int and wanted is not None else operand("full", fill_value)
    weak = dtype is None and value.weak_type
    target = value.dtype if wanted is None else wanted
    value = convert_element_type(value, target, weak)
    sizes = shape_tuple(shape, "full")
    if is_here(value) and value._value.shape == ():
        return _filled("full", sizes, target, value._value, weak)
    return made(shapes.broadcast_to(value, sizes))


def _has_type(a: Any) -> bool:
    """Return whether ``a`` has a shape and a dtype that can be used as they are.

    This is False for NumPy arrays, whose dtype may have to be narrowed.
    """
    return hasattr(a, "shape") and hasattr(a, "dtype") and not isinstance(a, (np.ndarray, np.generic, type))


def _type_of(name: str, a: Any) -> Any:
    """Return an object with the shape and dtype of ``a``: ``a`` itself if it has both, otherwise ``a`` as an array.

    ``name`` is the name of the function, for errors.
    """
    return a if _has_type(a) else operand(name, a)


def type_of(name: str, a: Any) -> Any:
    """An object with the shape and dtype of ``a``, which may be a nested list too."""
    return a if _has_type(a) else listed(name, a)


def _dtype_like(name: str, aval: Any, dtype: Any) -> Any:
    return dtypes.kept_dtype(aval) if dtype is None else dtypes.requested_dtype(dtype, name)


def _like(name: str, a: Any, dtype: Any, shape: Any, value: Any) -> Any:
    aval = _type_of(name, a)
    target = _dtype_like(name, aval, dtype)
    sizes = aval.shape if shape is None else shape
    weak = dtype is None and bool(getattr(aval, "weak_type", False))
    if type(a) is CommittedArray and (beside := _value_beside(a, sizes, target, value, weak)) is not None:
        return made(shapes.broadcast_to(beside, a.shape))
    out = _filled(name, sizes, target, value, weak)
    return out if type(a) is ArrayImpl else committed_like(out, a)


def _value_beside(a: CommittedArray, sizes: Any, dtype: Any, value: Any, weak: bool) -> ArrayImpl | None:
    """Return the value of a filled array as an array on the device of ``a``; None if ``a`` does not say the device."""
    if not isinstance(signature_of(a).placement, Device) or shape_tuple(sizes, "full_like") != a.shape:
        return None
    found: ArrayImpl = runtime.following(ArrayImpl(np.asarray(value).astype(dtype)[()], weak), [a])
    return found


def zeros_like(
    a: ArrayLike | HasShapeAndDtype,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros of the shape and dtype of ``a``, unless others are passed.

    Args:
      a: an array, or a number.
      dtype: the dtype of the result; by default the dtype of ``a``.
      shape: the shape of the result; by default the shape of ``a``.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape and dtype of ``a``, unless others are passed.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AllocationError: the result does not fit into memory (a MemoryError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.zeros_like(jnp.ones(2)))
    [0. 0.]
    """
    if device is not None or out_sharding is not None:
        return _put(zeros_like(a, dtype, shape), device, out_sharding, "zeros_like")
    return _like("zeros_like", a, dtype, shape, 0)


def ones_like(
    a: ArrayLike | HasShapeAndDtype,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Ones of the shape and dtype of ``a``, unless others are passed.

    Args:
      a: an array, or a number.
      dtype: the dtype of the result; by default the dtype of ``a``.
      shape: the shape of the result; by default the shape of ``a``.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape and dtype of ``a``, unless others are passed.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AllocationError: the result does not fit into memory (a MemoryError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ones_like(jnp.zeros(2), dtype=int))
    [1 1]
    """
    if device is not None or out_sharding is not None:
        return _put(ones_like(a, dtype, shape), device, out_sharding, "ones_like")
    return _like("ones_like", a, dtype, shape, 1)


def empty_like(
    prototype: ArrayLike | HasShapeAndDtype,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros of the shape and dtype of ``prototype``: there are no uninitialised arrays.

    Args:
      prototype: an array, or a number.
      dtype: the dtype of the result; by default the dtype of ``prototype``.
      shape: the shape of the result; by default the shape of ``prototype``.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape and dtype of ``prototype``, unless others are passed.

    Raises:
      OperandError: ``prototype`` is neither an array nor a number (a TypeError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.empty_like(jnp.ones(2)).shape
    (2,)
    """
    if device is not None or out_sharding is not None:
        return _put(empty_like(prototype, dtype, shape), device, out_sharding, "empty_like")
    return _like("empty_like", prototype, dtype, shape, 0)


@named
def full_like(
    a: ArrayLike | HasShapeAndDtype,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of the shape and dtype of ``a``, unless others are passed, filled with a value.

    Args:
      a: an array, or a number.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: the dtype of the result; by default the dtype of ``a``.
      shape: the shape of the result; by default the shape of ``a``.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape and dtype of ``a``, unless others are passed.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: ``fill_value`` does not broadcast to the shape (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).
      ArgumentError: both ``device`` and ``out_sharding`` are passed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.full_like(jnp.ones(2), 7))
    [7. 7.]
    """
    if device is not None or out_sharding is not None:
        return _put(full_like(a, fill_value, dtype, shape), device, out_sharding, "full_like")
    aval = _type_of("full_like", a)
    target = _dtype_like("full_like", aval, dtype)
    weak = dtype is None and bool(getattr(aval, "weak_type", False))
    if type(fill_value) in SCALARS and type(a) is CommittedArray:
        return _like("full_like", a, dtype, shape, fill_value)
    out = full(aval.shape if shape is None else shape, fill_value, target)
    out = convert_element_type(out, target, weak) if weak else out
    return out if type(a) is ArrayImpl or np.ndim(fill_value) else committed_like(out, a)


def eye(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
      N: the number of rows.
      M: the number of columns; by default the number of rows.
      k: the diagonal, an integer that may be traced: 0 for the main diagonal, positive above it, negative below it.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      device: the device or sharding of the result; see :func:`pullback.device_put`.

    Returns:
      A matrix of shape (N, M).

    Raises:
      ShapeError: a size is negative or not an int, or ``k`` is not an integer (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.eye(2))
    [[1. 0.]
     [0. 1.]]
    """
    if device is not None:
        return device_put(eye(N, M, k, dtype), device)
    return _by_diagonal("eye", N, M, k, dtype)


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """A square matrix with ones on its main diagonal and zeros elsewhere.

    Args:
      n: the number of rows and columns.
      dtype: the dtype of the result; ``float32`` (or 64) by default.

    Returns:
      A matrix of shape (n, n).

    Raises:
      ShapeError: ``n`` is negative or not an int (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.identity(1))
    [[1.]]
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike = None) -> Array:
    """A matrix with ones on and below a diagonal, and zeros above it.

    Args:
      N: the number of rows.
      M: the number of columns; by default the number of rows.
      k: the diagonal, an integer that may be traced: 0 for the main diagonal, positive above it, negative below it.
      dtype: the dtype of the result; ``float32`` (or 64) by default.

    Returns:
      A matrix of shape (N, M).

    Raises:
      ShapeError: a size is negative or not an int, or ``k`` is not an integer (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.tri(2))
    [[1. 0.]
     [1. 1.]]
    """
    return _by_diagonal("tri", N, M, k, dtype)


def _by_diagonal(name: str, N: Any, M: Any, k: Any, dtype: Any) -> Any:
    """Return the matrix of ``eye`` or ``tri``, of N rows and M columns: ones on, or on and below, diagonal ``k``.

    Args:
      name: "eye" or "tri".
      N, M: the numbers of rows and columns; M is N if it is None.
      k: the number of the diagonal, which may be traced.
      dtype: the dtype of the result.
    """
    rows, columns = shape_tuple((N, N if M is None else M), name)
    target = dtypes.requested_dtype(float if dtype is None else dtype, name)
    if target == dtypes.float0:
        return _filled(name, (rows, columns), target, 0)
    if dtypes.is_key(target):
        raise DtypeError(f"{name} returns numbers, but {dtypes.short_name(target)} is not a dtype of numbers")
    k = diagonal_number(name, k)
    if isinstance(k, int):
        k = max(-rows, min(k, columns))
        if state.trace.eager:
            make = np.eye if name == "eye" else np.tri
            return ArrayImpl(memory_for(name, (rows, columns), lambda: make(rows, columns, k, target)))
    elif k.dtype.itemsize < 4:
        k = convert_element_type(k, np.dtype(np.int32))
    counted = np.dtype(np.int32) if isinstance(k, int) else k.dtype
    row, column = (slicing.iota(counted, (rows, columns), axis) for axis in (0, 1))
    if not isinstance(k, int) or k != 0:
        row = ops.add(row, k)
    return ops.indicator((ops.eq_p if name == "eye" else ops.ge_p).bind(row, column), target)


# Ranges ------------------------------------------------------------------------------------------------------------


# long: half of it is its documentation
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The numbers from ``start`` (or 0) to before ``stop``, in steps of ``step``.

    Args:
      start: the first number; the end, which is left out, if no other argument is given.
      stop: the end, which is left out.
      step: the difference of neighbours; 1 by default, and not zero.
      dtype: the dtype of the result; by default the promoted dtype of the other arguments.
      device: the device or sharding of the result; see :func:`pullback.device_put`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      A vector.

    Raises:
      ConcretizationTypeError: a bound is traced, so that the shape of the result would depend on it (a TypeError).
      ShapeError: a bound is not a scalar, or the step is zero (a TypeError and a ValueError).
      DtypeValueError: a bound is complex or boolean (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.arange(3), jnp.arange(0.0, 1.0, 0.5))
    [0 1 2] [0.  0.5]
    """
    if device is not None or out_sharding is not None:
        return _put(arange(start, stop, step, dtype), device, out_sharding, "arange")
    bounds = [_bound(x) for x in (start, stop, step) if x is not None]
    if start is None and stop is None:
        raise OperandError("arange: expected at least one bound, got None")
    if any(x.shape != () for x in bounds):
        raise ShapeError(f"arange takes scalars, got shapes {', '.join(str(x.shape) for x in bounds)}")
    target = dtypes.result_type(*bounds) if dtype is None else dtypes.requested_dtype(dtype, "arange")
    if dtype is not None or target.kind in "bc":
        unordered = [x.dtype for x in bounds if dtypes.is_complex(x.dtype)] or [target] * dtypes.is_bool(target)
        if unordered:
            raise DtypeValueError(f"arange takes real numbers, got {unordered[0]}")
        if dtypes.is_complex(target):
            return convert_element_type(arange(start, stop, step, dtypes.to_real(target)), target)
    if any(map(is_symbolic, (start, stop, step))):
        first, last = (0, start) if stop is None else (start, stop)
        return _symbolic_range(first, last, 1 if step is None else step, target)
    first, last, stride = [_number(x) for x in (start, stop, step)]
    if stop is None:
        first, last = 0, first
    stride = 1 if step is None else stride
    if stride == 0:
        raise ShapeError("arange: the step must not be zero")
    if dtypes.is_integer(target):
        _check_range(first, last, stride, target)
    if not state.trace.eager:
        return _staged_range(first, last, stride, target)
    numpy_range: Any = np.arange
    try:
        if target.kind == "V":
            return from_numpy(numpy_range(first, last, stride, np.float32).astype(target))
        return hold(ArrayImpl(numpy_range(first, last, stride, target)))
    except (MemoryError, ValueError, OverflowError) as error:
        raise AllocationError(f"arange: no memory for the range from {first} to {last} by {stride}: {error}") from None


def _bound(x: Any) -> Any:
    """Return an array with the shape and dtype of ``x``, a bound of a range, so that these can be checked.

    The elements of an int or of NumPy integers are replaced by zeros, since they may not fit the default integer type.
    """
    if type(x) is int:
        return from_scalar(0)
    known = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu"
    return operand("arange", np.zeros(x.shape, x.dtype)[()] if known else x)


_ENOUGH = 2**31


def _check_range(first: Any, last: Any, step: Any, dtype: np.dtype[Any]) -> None:
    """Raise OverflowError if ``dtype`` cannot hold the first or the last element of ``range(first, last, step)``."""
    if type(first) is type(last) is int and 0 <= first < _ENOUGH and 0 <= last < _ENOUGH and dtype.itemsize >= 4:
        return  # the usual case; the rest takes longer than the range
    if not all(isinstance(x, int) for x in (first, last, step)):
        return
    numbers, limits = range(first, last, step), dtypes.iinfo(dtype)
    for end in (numbers[0], numbers[-1]) if numbers else ():
        if not limits.min <= end <= limits.max:
            raise IntegerRangeError(
                f"arange: the range from {first} to {last} by {step} has {end}, which is too large for {dtype}; enable "
                "64-bit types (`with pullback.enable_x64():`), or pass another dtype, as in jnp.arange(..., "
                "dtype='float32')"
            )


def _symbolic_range(first: Any, last: Any, step: Any, dtype: np.dtype[Any]) -> Any:
    """Return the integers of ``range(first, last, step)`` as an array, where at least one of the bounds is symbolic."""
    first, last, step = (as_size(x) for x in (0 if first is None else first, last, step))
    count = largest(-(-(last - first) // step), 0)
    positions = slicing.iota_p.bind(dtype=dtype, shape=(count,), dimension=0)
    out = positions if not is_symbolic(step) and step == 1 else positions * step
    return out if not is_symbolic(first) and first == 0 else (out + first).astype(dtype)


def _staged_range(first: Any, last: Any, step: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``arange(first, last, step)`` by operations of a program.

    As in NumPy, the step is the difference of the first two numbers after these are rounded to the dtype of the result.
    """
    wide = np.dtype(np.float32) if dtype.kind == "V" else dtype
    if all(isinstance(x, int) for x in (first, last, step)):
        count = len(range(first, last, step))
    else:
        steps = (last - first) / step
        if not math.isfinite(steps):
            raise ShapeError(f"arange: the range from {first} to {last} by {step} is not defined")
        count = max(0, math.ceil(steps))
    out = slicing.iota(wide, (count,), 0)
    ends = np.array([first, first + step][:count], wide)
    stride = state.silently(np.subtract, ends[1], ends[0]) if count > 1 else 1
    out = out if stride == 1 else ops.mul(scalar_array(stride), out)
    out = out if count == 0 or ends[0] == 0 else ops.add(scalar_array(ends[0]), out)
    return convert_element_type(out, dtype)


_FIXED = (
    "Declare the argument static (static_argnums), or take a range of fixed length and a mask: jnp.arange(length) < n."
)


def _number(x: Any) -> Any:
    """Convert a concrete scalar array to a Python number; None stays None."""
    if x is None or type(x) in SCALARS:
        return x
    kind = x.dtype.kind if isinstance(x, (np.ndarray, np.generic)) else operand("arange", x).dtype.kind
    if isinstance(x, Tracer) and x.concrete() is None:
        x.concrete_value("the length of arange", _FIXED)  # which raises
    return int(x) if kind in "iub" else float(x)


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False,
    dtype: DTypeLike = None, axis: int = 0, *, device: DeviceLike = None,
) -> Array: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: Literal[True],
    dtype: DTypeLike = None, axis: int = 0, *, device: DeviceLike = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *, retstep: Literal[True],
    dtype: DTypeLike = None, axis: int = 0, device: DeviceLike = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike = None, axis: int = 0, *, device: DeviceLike = None,
) -> Any: ...  # fmt: skip
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike = None, axis: int = 0, *, device: DeviceLike = None,
) -> Any:  # fmt: skip
    """Return ``num`` numbers from ``start`` to ``stop``, evenly spaced along a new axis; differentiable in both ends.

    Args:
      start, stop: arrays that broadcast against each other.
      num: how many numbers.
      endpoint: whether ``stop`` is the last of them.
      retstep: whether to return the distance between two numbers too.
      dtype: the dtype of the result; integers are rounded down.
      axis: the position of the new axis.
      device: the device or sharding of the result; see :func:`pullback.device_put`.

    Returns:
      An array of ``num`` numbers along the new axis; with ``retstep`` a pair of it and of the distance.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: ``num`` is negative or not an int (a TypeError and a ValueError).
      ArgumentError: a flag is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linspace(0, 1, 5))
    [0.   0.25 0.5  0.75 1.  ]
    """
    retstep = flag("linspace", "retstep", retstep)
    endpoint = flag("linspace", "endpoint", endpoint)
    if device is not None:
        return device_put(linspace(start, stop, num, endpoint, retstep, dtype, axis), device)
    (count,) = shape_tuple((num,), "linspace")
    first, last = inexact_operands("linspace", start, stop)
    intervals = count - 1 if endpoint else count
    shape = broadcast_shape("linspace", (first.shape, last.shape))
    position = axis_index(axis, len(shape) + 1, "linspace")
    column = tuple(count if i == position else 1 for i in range(len(shape) + 1))
    s, t = _weights(column, position, intervals, first.dtype)
    a, b = (shapes.expand_dims(shapes.broadcast_to(x, shape), (position,)) for x in (first, last))
    out = ops.add(ops.mul(s, a), ops.mul(t, b))
    if dtype is not None:
        out = _rounded_down(out, dtypes.requested_dtype(dtype, "linspace"))
    out = convert_element_type(out, out.dtype)
    if not retstep:
        return out
    step = ops.div(ops.sub(last, first), intervals) if intervals > 0 else full((), math.nan, first.dtype)
    return out, step


def _weights(column: tuple[int, ...], axis: int, intervals: int, dtype: Any) -> tuple[Any, Any]:
    """Return two arrays for ``linspace``: the weight of ``start`` and the weight of ``stop`` in each number.

    Args:
      column: the shape of the weights, which has size one along all axes except ``axis``.
      axis: the axis of the numbers.
      intervals: the number of intervals between start and stop.
      dtype: the dtype of the weights.
    """
    if intervals <= 0:
        return shapes.full(column, 1, dtype), shapes.full(column, 0, dtype)
    if state.trace.eager:
        steps = memory_for("linspace", column, lambda: np.arange(column[axis]).reshape(column))
        return ArrayImpl(((intervals - steps) / intervals).astype(dtype)), ArrayImpl((steps / intervals).astype(dtype))
    real = dtypes.to_real(dtype)
    wide = real if real.itemsize >= 4 else np.dtype(np.float32)
    steps = slicing.iota(wide, column, axis)
    back = ops.sub(intervals, steps)
    return tuple(convert_element_type(ops.div(x, intervals), dtype) for x in (back, steps))  # type: ignore[return-value]


def _rounded_down(x: Any, dtype: Any) -> Any:
    if dtypes.is_integer(dtype) and dtypes.is_float(x.dtype):
        x = ops.floor_p.bind(x)
    return convert_element_type(x, dtype)


@named
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """Return ``base`` to the power of evenly spaced numbers from ``start`` to ``stop``.

    Args:
      start, stop: the first and the last exponent, or arrays of them.
      num: how many numbers.
      endpoint: whether ``stop`` is the last exponent; otherwise it would be the next.
      base: a number, or an array.
      dtype: the dtype of the result; floats or complex numbers by default.
      axis: the position of the new axis, of size ``num``.

    Returns:
      An array of ``num`` numbers along the new axis.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: ``num`` is negative or not an int (a TypeError and a ValueError).
      ArgumentError: ``endpoint`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    endpoint = flag("logspace", "endpoint", endpoint)
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base, exponents = inexact_operands("logspace", base, exponents)
    out = ops.pow(base, exponents)
    return out if dtype is None else astype(out, dtype)


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Array:
    """Return ``num`` numbers from ``start`` to ``stop`` with a constant ratio.

    Args:
      start, stop: the first and the last number, or arrays of them, not zero.
      num: how many numbers.
      endpoint: whether ``stop`` is the last number; otherwise it would be the next.
      dtype: the dtype of the result; floats or complex numbers by default.
      axis: the position of the new axis, of size ``num``.

    Returns:
      An array of ``num`` numbers along the new axis.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: ``num`` is negative or not an int (a TypeError and a ValueError).
      ArgumentError: ``endpoint`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.geomspace(1, 8, 4))
    [1. 2. 4. 8.]
    """
    endpoint = flag("geomspace", "endpoint", endpoint)
    first, last = inexact_operands("geomspace", start, stop)
    exponents = linspace(shapes.zeros_like(first), ops.log(ops.div(last, first)), num, endpoint, axis=axis)
    position = axis_index(axis, len(exponents.shape), "geomspace")
    t = linspace(0.0, 1.0, num, endpoint)
    t = shapes.expand_dims(t, [i for i in range(len(exponents.shape)) if i != position])
    first, last = (
        shapes.expand_dims(shapes.broadcast_to(x, broadcast_shape("geomspace", (first.shape, last.shape))), (position,))
        for x in (first, last)
    )
    out = ops.where(ops.eq(t, 1), last, ops.mul(first, ops.exp(exponents)))
    out = convert_element_type(out, out.dtype)
    return out if dtype is None else astype(out, dtype)


# Grids -------------------------------------------------------------------------------------------------------------


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """The coordinates of the points of a grid, one array for each axis.

    Args:
      xi: the coordinates along each axis, vectors.
      copy: accepted for compatibility.
      sparse: whether to leave axes of size one where an array does not vary.
      indexing: "xy", with the second axis first, or "ij".

    Returns:
      A list of arrays, one for each argument.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: an argument is not a vector, or ``indexing`` is another text (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
    >>> x.shape, y.shape
    ((2, 3), (2, 3))
    """
    sparse = flag("meshgrid", "sparse", sparse)
    if not is_listed(indexing, ("xy", "ij")):
        raise ShapeError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    vectors = [operand("meshgrid", x) for x in xi]
    if any(len(x.shape) > 1 for x in vectors):
        raise ShapeError(f"meshgrid takes vectors, got shapes {', '.join(str(x.shape) for x in vectors)}")
    vectors = [shapes.reshape(x, (1,)) if x.shape == () else x for x in vectors]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) >= 2:
        axes[:2] = [1, 0]
    shape = [0] * len(vectors)
    for x, axis in zip(vectors, axes):
        shape[axis] = x.shape[0]
    grids = [shapes.expand_dims(x, [i for i in range(len(vectors)) if i != axis]) for x, axis in zip(vectors, axes)]
    return grids if sparse else [shapes.broadcast_to(g, tuple(shape)) for g in grids]


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike = None, *, sparse: Literal[True]) -> tuple[Array, ...]: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike = None, sparse: bool = False) -> Any: ...
def indices(dimensions: Sequence[int], dtype: DTypeLike = None, sparse: bool = False) -> Any:
    """The indices of the elements of an array, one array for each axis, stacked.

    Args:
      dimensions: the shape.
      dtype: the dtype of the result; None for the default integer.
      sparse: whether to return a tuple of arrays that broadcast to the shape, instead of stacking them.

    Returns:
      Integers of shape (number of axes, *dimensions); with ``sparse`` a tuple of arrays.

    Raises:
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      ArgumentError: ``sparse`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.indices((2, 3)).shape
    (2, 2, 3)
    """
    sparse = flag("indices", "sparse", sparse)
    shape = shape_tuple(tuple(sequence_of("indices", "dimensions", dimensions)), "indices")
    target = dtypes.requested_dtype(int if dtype is None else dtype, "indices")
    if state.trace.eager or not shape:
        found: Any = np.indices(shape, target, sparse=True) if sparse else np.indices(shape, target)
        return tuple(map(ArrayImpl, found)) if sparse else made(ArrayImpl(found))
    if sparse:
        each = [tuple(n if i == axis else 1 for i, n in enumerate(shape)) for axis in range(len(shape))]
        return tuple(slicing.iota(target, sizes, axis) for axis, sizes in enumerate(each))
    grids = [shapes.expand_dims(slicing.iota(target, shape, axis), (0,)) for axis in range(len(shape))]
    return slicing.concatenate(grids, 0)


def fromfunction(function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """A function of the indices of an array, called once with an array of indices for each axis.

    Args:
      function: takes one array of indices for each axis, each of the shape ``shape``, and the keyword arguments.
      shape: the shape of the indices.
      dtype: the dtype of the indices.
      **kwargs: passed on to ``function``.

    Returns:
      What ``function`` returns.

    Raises:
      ArgumentError: ``function`` is not a function (a TypeError and a ValueError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fromfunction(lambda i, j: i + j, (2, 2)))
    [[0. 1.]
     [1. 2.]]
    """
    require_function("fromfunction", "function", function)
    sizes = shape_tuple(shape, "fromfunction")
    target = dtypes.requested_dtype(dtype, "fromfunction")
    return function(*(slicing.iota(target, sizes, axis) for axis in range(len(sizes))), **kwargs)


_MOST_POWERS = 1 << 20


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of ``x``, falling unless ``increasing``.

    Args:
      x: a vector.
      N: the number of columns; by default the number of elements.
      increasing: whether the powers rise from 0 instead of falling to it.

    Returns:
      A matrix of shape (size of ``x``, N).

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` is not a vector (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vander(jnp.array([2.0, 3.0]), 3))
    [[4. 2. 1.]
     [9. 3. 1.]]
    """
    increasing = flag("vander", "increasing", increasing)
    x = numeric("vander", x)
    if len(x.shape) != 1:
        raise ShapeError(f"vander takes a vector, got shape {x.shape}")
    (count,) = shape_tuple((x.shape[0] if N is None else N,), "vander")
    if count > _MOST_POWERS:
        raise AllocationError(f"vander: a matrix of {count} columns is too large: each column is computed separately")
    powers = range(count) if increasing else range(count - 1, -1, -1)
    row = shapes.expand_dims(x, (0,))
    rows = [ops.integer_pow(row, k) for k in powers]
    return shapes.transpose(slicing.concatenate(rows, 0), (1, 0)) if rows else zeros((x.shape[0], 0), x.dtype)


__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "from_dlpack", "frombuffer",
    "fromfunction", "fromiter", "full", "full_like", "geomspace", "identity", "indices", "linspace", "logspace",
    "meshgrid", "ones", "ones_like", "tri", "vander", "zeros", "zeros_like",
]  # fmt: skip
