# long: because an array has many operators and attributes, and type checkers read each here
"""``Array``, the type of every value, and ``ArrayImpl``, the one that holds its elements.

An ``ArrayImpl`` holds them on the host, on a device, or on both. If they are only on a device, or are not computed yet,
an ``Absent`` stands for them. It has their shape and dtype, and NumPy refuses to compute with it. So the eager fast
paths need no check for such arrays: they fall back to general dispatch when NumPy refuses, and dispatch reads
``_value``, which fetches the elements once. An array that was put on a device other than the host's, or is sharded over
several, is a ``CommittedArray``, and stays one: operations on it run there.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from pullback.core import dtypes, source, tree
from pullback.core.annotations import Axes, DTypeLike, Placement, PrecisionLike, ShapeLike, SupportsArray
from pullback.core.errors import (
    AllocationError,
    DeletedArrayError,
    DtypeError,
    ImmutableArrayError,
    IntegerRangeError,
    KeyConversionError,
    MaskedArrayError,
    NoneOperandError,
    OperandError,
)
from pullback.core.locks import lock
from pullback.core.naming import quoted
from pullback.core.refs import RefCell
from pullback.core.runtime import runtime
from pullback.core.types import ShapedArray
from pullback.core.user_types import is_user_value, types_of_values

_VOID = dtypes.VOID
SCALARS: frozenset[type] = frozenset((float, int, complex, bool))


class Array:
    """An immutable array: concrete, or traced by a transformation.

    Arrays are made by the functions of ``pullback.numpy``. Operators, NumPy's methods and indexing are
    attached by ``pullback.numpy``, which defines what they mean.

    Raises:
      ImmutableArrayError: by ``x[i] = y``; ``x.at[i].set(y)`` returns a new array (a TypeError).
      IndexingError: by ``x[i]``, for too many indices, or one into an axis of size 0 (an IndexError).
      IndexKindError: by ``x[i]``, for an index such as a float (an IndexError and a TypeError).
      TracerSliceError: by ``x[i:j]``, for traced bounds (an IndexError and a TypeError).
      NonConcreteBooleanIndexError: by ``x[mask]``, for a traced mask (an IndexError and a TypeError).
      ScalarError: by ``float(x)`` of several elements, and ``len(x)`` without axes (a TypeError).
      TruthValueError: by ``if x`` of several elements (a ValueError).
      TracerBoolConversionError: by ``if x`` of a traced array (a TypeError).
      TracerIntegerConversionError: by ``range(x)`` of a traced array (a TypeError).
      TracerArrayConversionError: by ``np.asarray(x)`` of a traced array (a TypeError).
      LostDerivativeError: by ``float(x)`` of a number that is being differentiated (a TypeError).
      KeyConversionError: by ``float(x)`` and ``np.asarray(x)`` of random keys (a TypeError).
      UnsupportedFunctionError: by a function of NumPy that Pullback does not have (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import Array
    >>> isinstance(jnp.ones(3), Array)
    True
    """

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # attached by pullback.numpy; declared here for type checkers

        @property
        def weak_type(self) -> bool: ...
        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> np.dtype[Any]: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def itemsize(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def aval(self) -> ShapedArray: ...
        @property
        def T(self) -> Array: ...
        @property
        def mT(self) -> Array: ...
        @property
        def real(self) -> Array: ...
        @property
        def imag(self) -> Array: ...
        @property
        def at(self) -> IndexUpdateHelper: ...

        # Python's protocols, and NumPy's
        def __getitem__(self, index: Index) -> Array: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __len__(self) -> int: ...
        def __contains__(self, value: ArrayLike) -> bool: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __neg__(self) -> Array: ...
        def __eq__(self, other: object) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Array: ...  # type: ignore[override]
        def __add__(self, other: ArrayLike) -> Array: ...
        def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
        def __round__(self, ndigits: int | None = None) -> Array: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def __dlpack__(
            self,
            *,
            stream: Any = None,
            max_version: tuple[int, int] | None = None,
            dl_device: tuple[Any, int] | None = None,
            copy: bool | None = None,
        ) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...

        __pos__ = __abs__ = __invert__ = __neg__
        __lt__ = __le__ = __gt__ = __ge__ = __add__
        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __add__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__

        # Methods that are functions of pullback.numpy
        def all(
            self, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
        ) -> Array: ...

        any = all

        def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array: ...

        argmin = argmax

        def argpartition(self, kth: int, axis: int = -1) -> Array: ...
        def argsort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
            dtype: DTypeLike = None,
        ) -> Array: ...
        def astype(self, dtype: DTypeLike, /, *, copy: bool = False, device: Placement = None) -> Array: ...
        def byteswap(self) -> Array: ...
        def choose(self, choices: Sequence[ArrayLike] | Array, out: None = None, mode: str = "raise") -> Array: ...
        def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
        def clone(self) -> Array: ...
        def compress(
            self, condition: ArrayLike | Sequence[bool], axis: int | None = None, *, size: int | None = None,
            fill_value: ArrayLike = 0, out: None = None,
        ) -> Array: ...  # fmt: skip
        def conj(self) -> Array: ...
        def conjugate(self) -> Array: ...
        def copy(self, order: str | None = None) -> Array: ...
        def cumsum(self, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array: ...

        cumprod = cumsum

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
        def dot(
            self, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
            out_sharding: Placement = None,
        ) -> Array: ...  # fmt: skip
        def flatten(self, order: str = "C") -> Array: ...
        def max(
            self, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...  # fmt: skip

        min = max

        def mean(
            self, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False, *,
            where: ArrayLike | None = None,
        ) -> Array: ...  # fmt: skip
        def nonzero(self, *, size: int | None = None, fill_value: ArrayLike | None = None) -> tuple[Array, ...]: ...
        def partition(self, kth: int, axis: int = -1) -> Array: ...
        def ptp(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array: ...
        def ravel(self, order: str = "C", *, out_sharding: Placement = None) -> Array: ...
        def repeat(
            self, repeats: ArrayLike | Sequence[int], axis: int | None = None, *,
            total_repeat_length: int | None = None, out_sharding: Placement = None,
        ) -> Array: ...  # fmt: skip
        def reshape(
            self, *shape: ShapeLike, order: str = "C", copy: bool | None = None, out_sharding: Placement = None
        ) -> Array: ...
        def round(self, decimals: int = 0, out: None = None) -> Array: ...
        def searchsorted(
            self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
        ) -> Array: ...
        def sort(
            self, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
            descending: bool = False,
        ) -> Array: ...  # fmt: skip
        def squeeze(self, axis: Axes = None) -> Array: ...
        def std(
            self, axis: Axes = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0, keepdims: bool = False,
            *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: float | None = None,
        ) -> Array: ...  # fmt: skip

        var = std

        def sum(
            self, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
        ) -> Array: ...  # fmt: skip

        prod = sum

        def swapaxes(self, axis1: int, axis2: int) -> Array: ...
        def take(
            self, indices: ArrayLike | Sequence[int], axis: int | None = None, out: None = None,
            mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
            fill_value: ArrayLike | None = None,
        ) -> Array: ...  # fmt: skip
        def trace(
            self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None, out: None = None
        ) -> Array: ...
        def transpose(self, *axes: int | Sequence[int] | None) -> Array: ...
        def view(self, dtype: DTypeLike = None) -> Array: ...

        # Methods that need the values of the elements
        def item(self, *index: Any) -> Any: ...
        def tolist(self) -> Any: ...
        def tobytes(self, order: str | None = "C") -> bytes: ...
        def to_numpy(self) -> np.ndarray[Any, Any]: ...

        # Devices
        @property
        def device(self) -> Any: ...
        @property
        def sharding(self) -> Any: ...
        @property
        def format(self) -> Any: ...
        @property
        def platform(self) -> str: ...
        @property
        def committed(self) -> bool: ...
        @property
        def is_fully_addressable(self) -> bool: ...
        @property
        def is_fully_replicated(self) -> bool: ...
        @property
        def addressable_shards(self) -> list[Any]: ...
        @property
        def global_shards(self) -> list[Any]: ...
        def devices(self) -> set[Any]: ...
        def addressable_data(self, index: int) -> Array: ...
        def to_device(self, device: Placement, /, *, stream: Any = None) -> Array: ...
        def block_until_ready(self) -> Array: ...
        def copy_to_host_async(self) -> None: ...
        def is_ready(self) -> bool: ...
        def is_deleted(self) -> bool: ...
        def delete(self) -> None: ...
        def on_device_size_in_bytes(self) -> int: ...
        def unsafe_buffer_pointer(self) -> int: ...

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ImmutableArrayError(
            f"arrays are immutable: x[{index!r}] = ... is not possible. Write x = x.at[{_index_text(index)}].set(...), "
            "which returns a new array."
        )

    def __delitem__(self, index: Any) -> None:
        raise ImmutableArrayError("arrays are immutable: their elements cannot be deleted")


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""A value that functions accept as an array: an array, a NumPy array, or a number."""
ArraySource = ArrayLike | Sequence[Any] | SupportsArray
"""A value that can be converted to an array: also nested sequences, and objects that NumPy converts."""
Index = SupportsIndex | slice | EllipsisType | None | ArrayLike | Sequence[Any]
"""An index of an array: one entry, or a tuple with an entry for each axis."""
KeyArray = Array | np.ndarray
"""Random keys: an array of keys, or an array of their words."""

if TYPE_CHECKING:  # the type of Array.at, defined in pullback.numpy.index_updates

    class IndexUpdateHelper:
        def __getitem__(self, index: Any) -> IndexUpdateRef: ...

    class IndexUpdateRef:
        def get(
            self,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: Any = None,
            fill_value: ArrayLike | None = None,
            out_sharding: Placement = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...
        def set(
            self,
            values: ArrayLike,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: Any = None,
            out_sharding: Placement = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...
        def apply(
            self,
            func: Callable[[Array], Array],
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: Any = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...

        add = subtract = multiply = mul = divide = power = min = max = set


def _index_text(index: Any) -> str:
    if isinstance(index, slice):
        parts = ["" if p is None else repr(p) for p in (index.start, index.stop)]
        return ":".join(parts + ([repr(index.step)] if index.step is not None else []))
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    return "..." if index is Ellipsis else repr(index)


LARGE = 1 << 18
"""The fewest elements of an array whose elements may be pending: see ``backends/host/pending``."""
MOST_HOST_AXES = 64
"""NumPy's arrays have no more; arrays that have are on a device, and so are the operations on them."""


class Signature:
    """The type and the placement of an argument of a compiled program; equal signatures are one object.

    Attributes:
      aval: the type.
      placement: the device or the sharding that the user requested for the array; None if there was no request.
      array_class: the class of arrays on a device that have this signature.
      absent: an ``Absent``, which an array holds instead of elements on the host while they are only on a device.
    """

    __slots__ = ("__weakref__", "absent", "array_class", "aval", "placement")

    def __init__(self, aval: ShapedArray, placement: Any) -> None:
        self.aval = aval
        self.placement = placement
        at_home = (placement is None or placement.is_host) and len(aval.shape) <= MOST_HOST_AXES
        self.array_class = ArrayImpl if at_home else CommittedArray
        self.absent = Absent(aval)

    def __repr__(self) -> str:
        return f"{self.aval!r}{f' on {self.placement}' if self.placement else ''}"


class Absent:
    """A placeholder for an array's elements in NumPy's memory while they are only on a device, or are pending.

    Computing with the placeholder raises a TypeError.

    Attributes:
      pending: the pending elements (``backends/host/pending``); None if the elements are on a device.
    """

    __slots__ = ("__weakref__", "aval", "dtype", "pending", "shape")
    __array_ufunc__ = None  # NumPy's arrays refuse it

    def __init__(self, aval: ShapedArray, pending: Any = None) -> None:
        self.pending = pending
        self.aval = aval
        self.shape = aval.shape
        self.dtype = aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def flags(self) -> Any:
        """How the elements lie in memory, for which they would have to be there."""
        raise TypeError("the elements are not in NumPy's memory")

    def __eq__(self, other: object) -> bool:
        raise TypeError("the elements are not in NumPy's memory")

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("the elements are not in NumPy's memory")


_signatures: weakref.WeakValueDictionary[Any, Signature] = weakref.WeakValueDictionary()
_known_signatures = _signatures.data  # type: ignore[attr-defined]
_signatures_lock = lock(globals(), "_signatures_lock")


def signature(shape: tuple[int, ...], dtype: np.dtype[Any], weak_type: bool, placement: Any = None) -> Signature:
    """Return the signature of a type and placement (a device, a sharding or None); equal signatures are one object."""
    key = (shape, dtype, weak_type, placement)
    reference = _known_signatures.get(key)
    found = None if reference is None else reference()
    if found is None:
        with _signatures_lock:
            found = _signatures.get(key)
            if found is None:
                sharding = None if placement is None else placement.in_types(shape)
                aval = ShapedArray(shape, dtype, weak_type, sharding=sharding)
                found = _signatures[key] = Signature(aval, placement)
    return found


class ArrayImpl(Array):
    """A concrete array; its elements are an ``np.ndarray`` that is never written to, or a NumPy scalar.

    Attributes:
      _host_value: the elements on the host, or an ``Absent``; always the latter if results of it may be pending.
      _value: the elements on the host, fetched from the device or computed if necessary.
      _buffer: the elements on a device, once a compiled program has received or returned the array.
      _signature: its signature, once a compiled program has needed it.
      _literal: set if programs write its number as a literal; see :func:`scalar_array`.
    """

    __slots__ = ("__weakref__", "_buffer", "_host_value", "_literal", "_signature", "weak_type")

    _host_value: Any
    _buffer: Any
    _literal: bool
    _signature: Signature
    weak_type: bool

    def __init__(self, value: Any, weak_type: bool = False) -> None:
        self._host_value = value
        self.weak_type = weak_type

    @property
    def _value(self) -> Any:
        held = self._host_value
        if type(held) is not Absent:
            return held
        if held.pending is not None:
            return held.pending.read()
        value = runtime.fetch(self._buffer, held.dtype)
        if value.ndim == 0:
            value = value[()]  # on which NumPy is quicker
        self._host_value = value
        if value.size >= LARGE:
            runtime.hold(self)
        return value

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._host_value.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        dtype: np.dtype[Any] = self._host_value.dtype
        return dtypes.shown(dtype) if dtype.num == _VOID else dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._host_value.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._host_value.size  # type: ignore[no-any-return]

    @property
    def aval(self) -> ShapedArray:
        """The abstract value."""
        held = self._host_value
        if type(held) is Absent and held.aval.weak_type == self.weak_type:
            return held.aval
        return ShapedArray(held.shape, held.dtype, self.weak_type)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value = self._value
        if dtypes.is_key(value.dtype):
            raise KeyConversionError(
                f"random keys of shape {value.shape} have no NumPy equivalent: pullback.random.key_data(keys) "
                f"returns them as integers"
            )
        if dtype is not None and value.dtype != dtype:
            if copy is False:
                raise ValueError(f"an array of dtype {value.dtype} cannot be converted to dtype {dtype} without a copy")
            return np.asarray(value.astype(dtype))
        return np.array(value) if copy else read_only(self._value)

    def __bytes__(self) -> bytes:
        """The bytes of the elements. Without this method, ``bytes`` would ask for an int before Python 3.12."""
        return self.__array__().tobytes()

    def __buffer__(self, flags: int) -> memoryview:
        """A read-only view of the elements, for ``memoryview`` and the buffer protocol.

        Before Python 3.12 the protocol needs the module in C, ``quick.c``.
        """
        if flags & _WRITABLE:
            raise BufferError("arrays are immutable: their memory is read-only")
        dtype = self._value.dtype
        if dtype.isbuiltin != 1 or dtype.kind == "V":  # NumPy then asks for __array__
            raise BufferError(f"elements of dtype {dtypes.dtype_name(dtype)} have no format in the buffer protocol")
        value = self._value
        if not flags & _STRIDES or flags & _CONTIGUOUS:  # such as hashlib asks for
            value = np.asarray(value, order="C")
        return memoryview(read_only(value))  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (read_only(self._value), self.weak_type)

    def __copy__(self) -> ArrayImpl:
        return fresh(self)

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return fresh(self)


class CommittedArray(ArrayImpl):
    """An array that was put on another device than the host's, is spread over several, or has more axes than NumPy
    allows.

    Operations on it run on its devices. When Python reads its elements, they are copied to the host, and the copy is
    kept; the array stays committed.
    """

    __slots__ = ()

    @property
    def _value(self) -> Any:
        held = self._host_value
        if type(held) is not Absent:
            return held
        value = runtime.gather(self._buffer, self._signature)
        if value.ndim == 0:
            value = value[()]
        self._host_value = value
        return value

    @property
    def aval(self) -> ShapedArray:
        """The abstract value, whose sharding is that of the array over explicit axes of a mesh."""
        aval = self._signature.aval
        return aval if aval.weak_type == self.weak_type else aval.update(weak_type=self.weak_type)

    def forget_value(self) -> None:
        """Drop the copy of the elements on the host; those on the device stay."""
        self._host_value = self._signature.absent


def is_on_device(x: Any) -> bool:
    """Whether an array is committed to a device, or has its elements only on a device."""
    if type(x) is not ArrayImpl:
        return isinstance(x, ArrayImpl)
    held = x._host_value  # read once: another thread may copy the elements to the host
    return type(held) is Absent and held.pending is None


def is_on_host(x: Any) -> bool:
    """Whether an object is a concrete array whose elements are on the host, or pending there."""
    return type(x) is ArrayImpl and not is_on_device(x)


class DeletedArray(ArrayImpl):
    """An array without memory: it was donated to a program, or deleted by ``delete``."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._signature.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._signature.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self._signature.aval.shape)

    @property
    def size(self) -> int:
        return self._signature.aval.size

    @property
    def aval(self) -> ShapedArray:
        return self._signature.aval

    @property
    def weak_type(self) -> bool:  # type: ignore[override]
        return self._signature.aval.weak_type

    def __getattr__(self, name: str) -> Any:
        if name not in ("_buffer", "_host_value"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise DeletedArrayError(
            f"this array of type {self.aval} was deleted: it was donated to a compiled function (donate_argnums, "
            "donate_argnames), or its method delete() was called. Use the result of that function instead, or do "
            "not donate an array that you need afterwards."
        )


def signature_of(x: ArrayImpl) -> Signature:
    """The signature of an array: its type and placement, as an argument of a compiled program."""
    try:
        return x._signature
    except AttributeError:
        value = x._host_value
        found = x._signature = signature(value.shape, value.dtype, bool(x.weak_type))
        return found


def delete(*arrays: ArrayImpl) -> None:
    """Free the memory of arrays; any later use of their elements is an error."""
    for x in arrays:
        signature_of(x)
        try:
            del x._host_value
            del x._buffer
        except AttributeError:  # it was deleted before, or was never on a device
            pass
        x.__class__ = DeletedArray


tree.register_leaf_type(ArrayImpl, CommittedArray, DeletedArray)


def _restore(value: np.ndarray[Any, Any], weak_type: bool) -> ArrayImpl:
    # A copy, for out-of-band buffers of pickles are the user's memory; in the dtype that NumPy has one object for.
    copied = np.array(value).view(dtypes.interned(value.dtype))
    return ArrayImpl(copied if copied.ndim else copied[()], weak_type)


_new = object.__new__


def fresh(x: ArrayImpl) -> ArrayImpl:
    """Return another array that shares the elements: donating or deleting one array does not affect the other.

    Elements on the host stay as long as an array refers to them. A buffer on a device that two arrays share is
    marked as such: a donated array takes a copy of it first (see ``transforms/jit/stages``).
    """
    if type(x) is ArrayImpl:
        out = _new(ArrayImpl)
        out._host_value = x._host_value
        out.weak_type = x.weak_type
        known = getattr(x, "_signature", None)
        if known is not None:
            out._signature = known
        buffer = getattr(x, "_buffer", None)
        if buffer is not None:
            out._buffer = shared(buffer)
        return out
    out = _new(type(x))
    out._buffer = shared(x._buffer)
    out._signature = x._signature
    out._host_value = x._signature.absent
    out.weak_type = x.weak_type
    return out


def shared(buffer: Any) -> Any:
    """Mark a buffer as shared by several arrays, and return it; donation then copies it first."""
    buffer.shared = True
    return buffer


def host_value(x: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a concrete array as an ``np.ndarray`` that must not be written to, without a copy.

    It is for Pullback's own use; users get arrays from :func:`read_only`.
    """
    return np.asarray(x._value) if isinstance(x, ArrayImpl) else np.asarray(x)


def read_only(value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of an array as a read-only ``np.ndarray`` for users, without a copy.

    The result cannot be made writable: its ``base`` is a read-only ``memoryview``. If the base were an array that owns
    its memory, anybody could make the result writable again.
    """
    value = np.asarray(value)
    dtype = value.dtype
    if dtype.isbuiltin == 1 and dtype.kind != "V":
        return np.asarray(memoryview(value).toreadonly())
    if dtype.itemsize == 0 or value.ndim == 0:
        view = np.array(value)  # few bytes, or none
        view.flags.writeable = False
        return view
    # The buffer protocol does not know the dtypes of ml_dtypes, and is given their bytes instead.
    return np.asarray(memoryview(value.view(f"V{dtype.itemsize}")).toreadonly()).view(dtype)


_WRITABLE, _STRIDES, _CONTIGUOUS = 0x1, 0x10, 0xE0
"""Of inspect.BufferFlags, which Python has from 3.12 on: the last says any of three orders without gaps."""
recorders: list[Any] = []
"""The active traces of all threads that are not ``quick``; if there are none, the fast paths need not ask."""


def scalar_array(value: Any, weak_type: bool = False) -> ArrayImpl:
    """Make an array without axes from a number.

    If it is made while a program is traced, the program contains the number as a literal. An array made before the
    tracing is a constant of the program, whatever its shape: it may be a parameter, which ``closure_convert`` turns
    into an argument.
    """
    out = ArrayImpl(value, weak_type)
    if recorders and runtime.is_recording():
        out._literal = True
    return out


def is_literal(x: Any) -> bool:
    """Whether a traced program holds the number of ``x`` as a literal: ``scalar_array`` made ``x`` during tracing."""
    return hasattr(x, "_literal")


def from_scalar(x: Any) -> ArrayImpl:
    """A Python number as a weakly typed array of no axes."""
    dtype = dtypes.scalar_dtype(type(x))
    try:
        return (scalar_array if recorders else ArrayImpl)(dtype.type(x), type(x) is not bool)
    except OverflowError:
        raise IntegerRangeError(
            source.by_name(
                f"Python int {x} is too large for {dtype}, the default integer; enable 64-bit types (`with "
                "pullback.enable_x64():`), or pass a dtype, as in jnp.float32(...). To use it as a position in a "
                "long axis in a compiled function, declare the argument static (static_argnums)"
            )
        ) from None


def from_numpy(x: Any) -> ArrayImpl:
    """Copy a NumPy array or scalar to an array, in 32 bits unless 64 are enabled.

    A read-only array is copied too, since its memory may still change, for example by an array that it is a view of.

    Raises:
      MaskedArrayError: the array has a mask (a ValueError and a TypeError).
    """
    refuse_masked(x)
    dtype = dtypes.canonicalize_dtype(x.dtype)
    try:
        if isinstance(x, np.generic):
            return scalar_array(x if x.dtype is dtype else x.astype(dtype))
        copied = runtime.copied(x, dtype) if x.size >= LARGE else np.array(x, dtype=dtype, order="C", subok=False)
        out = ArrayImpl(copied) if copied.ndim else scalar_array(copied)
        return out if copied.size < LARGE else runtime.hold(out)
    except MemoryError as error:
        raise AllocationError(f"no memory for an array of shape {x.shape} and dtype {dtype}: {error}") from None


operand_types: dict[type, Callable[[Any], Any]] = {}
"""How values of users' own types become arrays, where they do not say so themselves (``jax.core`` registers some)."""


def as_array(x: Any) -> Array:
    """Convert an operand to an array: arrays stay unchanged, Python numbers become weak, NumPy's values are copied.

    Raises:
      OperandError: for anything else.
    """
    if isinstance(x, Array):
        return x
    if type(x) in SCALARS:
        return from_scalar(x)
    if isinstance(x, (np.ndarray, np.generic)):
        try:
            return from_numpy(x)
        except DtypeError as error:
            raise OperandError(
                f"expected an array of numbers, got {quoted(x)} of type {type(x).__name__}: {error}"
            ) from None
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return from_scalar(kind(x))  # type: ignore[arg-type]
    if getattr(x, "__jax_array__", None) is not None:  # None on the tracers of the package jax
        return as_array(x.__jax_array__())
    if is_of_jax(x) and type(x).__name__.endswith("Tracer"):
        raise OperandError(
            f"expected an array or a number, got a value traced by the package jax, of type {type(x).__name__}. Do "
            f"not mix transformations of jax with functions of pullback. Concrete arrays of jax are accepted, like "
            f"NumPy's."
        )
    if not isinstance(x, type) and _has_memory(x):
        return from_numpy(np.asarray(x))
    if type(x) in operand_types:
        return as_array(operand_types[type(x)](x))
    hint = " Convert it with pullback.numpy.asarray first." if isinstance(x, (list, tuple)) else ""
    hint = " ref[...] reads the content of a reference." if isinstance(x, RefCell) else hint
    if hasattr(type(x), "__dataclass_fields__"):
        hint = f" pullback.tree_util.register_dataclass({type(x).__name__}) makes these objects trees of arrays."
    refusal = NoneOperandError if x is None else OperandError
    raise refusal(f"expected an array or a number, got {quoted(x)} of type {type(x).__name__}.{hint}")


def as_value(x: Any) -> Any:
    """Convert a leaf of arguments or results to an array; a value of a user's type stays as it is."""
    return x if is_user_value(x) else as_array(x)


def is_masked(x: Any) -> bool:
    """Whether an object is a masked array of NumPy's; ``numpy.ma`` is not imported to find out."""
    module = sys.modules.get("numpy.ma.core")
    return module is not None and isinstance(x, module.MaskedArray)


def refuse_masked(x: Any) -> None:
    """Raise MaskedArrayError (a ValueError and a TypeError) if ``x`` is a masked array of NumPy's."""
    if type(x) is not np.ndarray and is_masked(x):
        raise MaskedArrayError(
            f"masked arrays are not supported, because the mask would be lost; got one of shape {x.shape} and dtype "
            f"{x.dtype}. x.filled(value) replaces the masked elements, and x.data ignores the mask."
        )


def is_of_jax(x: Any) -> bool:
    """Whether an object is an array, or a traced value, of the ``jax`` package, if that is imported too."""
    return not isinstance(x, Array) and type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


def _has_memory(x: Any) -> bool:
    """Whether NumPy can read an object as an array, by an attribute such as ``__array__`` or the buffer protocol."""
    if isinstance(x, (str, bytes)):
        return False
    if any(hasattr(x, name) for name in ("__array__", "__array_interface__", "__array_struct__")):
        return True
    try:
        memoryview(x).release()
    except (TypeError, BufferError):
        return False
    return True


def typeof(x: ArrayLike) -> ShapedArray:
    """The abstract value of an array, a tracer or a Python number."""
    if isinstance(x, Array):
        return x.aval
    if type(x) in SCALARS:
        return ShapedArray((), dtypes.scalar_dtype(type(x)), type(x) is not bool)
    if type(x) in types_of_values:
        return types_of_values[type(x)](x)  # type: ignore[no-any-return]
    return as_array(x).aval


def dtype_of(x: Any) -> Any:
    """Return the dtype of an array; for a value of a user's type, the dtype that stands for it."""
    try:
        return x.dtype
    except AttributeError:
        return typeof(x).dtype


def number_dtype(args: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype to convert the Python numbers among the operands ``args`` to.

    It is the dtype of the last array among the operands, since the first may be the condition of ``select``. Without
    arrays, it is the common dtype of the numbers.
    """
    for x in reversed(args):
        if type(x) not in SCALARS:
            return x.dtype  # type: ignore[no-any-return]
    return dtypes.result_type(*args)


def resolve_weak_scalars(avals: Sequence[ShapedArray], args: Sequence[Any]) -> list[ShapedArray]:
    """Return the types ``avals`` of the operands ``args``, where each Python number has the dtype of the arrays."""
    for x in args:
        if type(x) in SCALARS:
            break
    else:
        return list(avals)
    dtype = number_dtype([x if type(x) in SCALARS else a for a, x in zip(avals, args, strict=True)])
    return [a.update(dtype=dtype) if type(x) in SCALARS else a for a, x in zip(avals, args, strict=True)]


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an operand; () for a Python number."""
    return () if type(x) in SCALARS else x.shape
