"""NumPy's methods and properties of arrays, each a function of ``pullback.numpy``, and Python's protocols."""

from __future__ import annotations

import importlib
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from pullback.backends.devices import exchange
from pullback.backends.devices.layouts import Format, row_major
from pullback.backends.devices.shardings import Sharding, as_sharding
from pullback.core import dtypes, source
from pullback.core.arguments import is_listed
from pullback.core.array import (
    MOST_HOST_AXES,
    Array,
    ArrayImpl,
    CommittedArray,
    DeletedArray,
    delete,
    host_value,
    is_on_device,
    signature_of,
)
from pullback.core.config import config
from pullback.core.errors import (
    ArgumentError,
    ConcretizationTypeError,
    IndexingError,
    KeyConversionError,
    NotDifferentiableError,
    ScalarError,
    ShapeError,
    TruthValueError,
    UnsupportedAttributeError,
)
from pullback.core.runtime import runtime
from pullback.core.trace import Tracer
from pullback.numpy import operators
from pullback.transforms.programs import sharded_arrays, transfer

__all__: list[str] = []


def _imported(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls the function ``name`` of ``module``, and imports the module at the first call."""
    found: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(getattr(importlib.import_module(module), name))
        return found[0](*args, **kwargs)

    return call


def _numpy(name: str) -> Callable[..., Any]:
    return _imported("pullback.numpy", name)


# Methods that are the functions of the same name, with the array as first operand.
_SAME = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "conj", "conjugate",
    "copy", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "partition", "prod", "ptp",
    "ravel", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
_LIKE = ("compress", "reshape", "transpose")
"""Methods with the docstrings of the functions of the same name, but other signatures."""
_iterate = _imported("pullback.numpy.indexing", "iterate")
_update_helper = _imported("pullback.numpy.index_updates", "IndexUpdateHelper")
_array_ufunc = _imported("pullback.numpy.interop", "array_ufunc")
_array_function = _imported("pullback.numpy.interop", "array_function")
_ravel, _reshape, _transpose, _matrix_transpose = (
    _numpy("ravel"),
    _numpy("reshape"),
    _numpy("transpose"),
    _numpy("matrix_transpose"),
)
_real, _imag, _compress, _any, _equal = map(_numpy, ("real", "imag", "compress", "any", "equal"))
_copy, _flip = _numpy("copy"), _numpy("flip")
_complex = _imported("pullback.lax", "complex")
_view = _imported("pullback.numpy.views", "view")
_arrow = _imported("pullback.numpy.arrow", "c_array")
_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


# Every array -------------------------------------------------------------------------------------------------------


class Methods:
    """The methods and properties that ``Array`` gets; ``self`` is concrete or traced."""

    __slots__ = ()
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    size: int

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return _transpose(self)

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        return _matrix_transpose(self)

    @property
    def real(self) -> Any:
        """The real part."""
        return _real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return _imag(self)

    @property
    def at(self) -> Any:
        """Updates by index: ``x.at[i].set(y)`` is ``x`` with ``y`` at ``i``."""
        return _update_helper(self)

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self.size * self.dtype.itemsize

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None) -> Any:
        sizes = shape[0] if len(shape) == 1 else shape
        return _reshape(self, sizes, order, out_sharding=out_sharding)

    def transpose(self, *axes: Any) -> Any:
        return _transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self, order: str = "C") -> Any:
        """The elements as a vector, as :func:`pullback.numpy.ravel` returns them."""
        return _ravel(self, order)

    def compress(
        self, condition: Any, axis: int | None = None, *, size: Any = None, fill_value: Any = 0, out: None = None
    ) -> Any:
        return _compress(condition, self, axis, size=size, fill_value=fill_value, out=out)

    def view(self, dtype: Any = None) -> Any:
        """The bits of the elements read as another dtype; another width changes the size of the last axis."""
        return _view(self, dtype)

    def item(self, *index: Any) -> Any:
        """The only element, the element at an index (ints, or a tuple), or at a position in row-major order, as a
        Python number.
        """
        value = self._value if isinstance(self, ArrayImpl) else _elements(self, "item()")
        return np.asarray(value).item(*index)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return np.asarray(_elements(self, "tolist()")).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the elements."""
        return np.asarray(_elements(self, "tobytes()")).tobytes(order)

    def __getitem__(self, index: Any) -> Any:
        from pullback.numpy.indexing import getitem

        Array.__getitem__ = getitem  # type: ignore[method-assign]  # from now on without this detour
        return getitem(self, index)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise ScalarError(source.by_name("a scalar array has no len()"))
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise ScalarError(source.by_name("a scalar array cannot be iterated over"))
        return iter(_iterate(self))

    def __floor__(self) -> int:
        return math.floor(_to_python_number(self))

    def __ceil__(self) -> int:
        return math.ceil(_to_python_number(self))

    def __trunc__(self) -> int:
        return math.trunc(_to_python_number(self))

    def __contains__(self, value: Any) -> bool:
        if len(self.shape) != 1 or np.ndim(value):
            raise ShapeError(
                f"x in array looks for a number in an array of one axis, got an array of shape {self.shape} and a "
                f"value of shape {np.shape(value)}; jnp.any(array == x) compares arrays of other shapes"
            )
        return bool(_any(_equal(self, value)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _array_function(function, types, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of the Python array API standard, which is ``pullback.numpy``.

        Args:
          api_version: the version of the standard; by default the newest that is supported.

        Raises:
          ArgumentError: the version is not supported (a TypeError and a ValueError).
        """
        if api_version is not None and not is_listed(api_version, _API_VERSIONS):
            raise ArgumentError(
                f"__array_namespace__: api_version must be one of {', '.join(_API_VERSIONS)}, got {api_version!r}"
            )
        return importlib.import_module("pullback.numpy")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str] | None:
        """The array with a picture, by MIME type, if notebooks show arrays so: see the switch ``rich_arrays``.

        Without the switch it is None, and notebooks show the text. Jupyter passes the arguments, which are not used.
        """
        if not config.rich_arrays:
            return None
        return {"text/html": runtime.html_of(self) or "", "text/plain": f"Array of type {self.aval}"}  # type: ignore[attr-defined]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The array for libraries that read the Arrow C data interface, such as polars; it needs pyarrow.

        Args:
          requested_schema: the type that the reader prefers.

        Raises:
          MissingLibraryError: pyarrow is not installed (an ImportError).
          DtypeError: Arrow has no such dtype (a TypeError).
          ShapeError: the array has no axis (a ValueError).
        """
        return _arrow(self, requested_schema)  # type: ignore[no-any-return]

    def clone(self) -> Any:
        """A copy of the array, as a new array."""
        return _copy(self)

    def byteswap(self) -> Any:
        """The elements with the order of their bytes reversed; for complex numbers, within each component."""
        from pullback.primitives.elementwise import bitcast_convert_type

        if self.dtype.kind == "c":
            return _complex(self.real.byteswap(), self.imag.byteswap())
        if self.dtype.itemsize == 1:
            return _copy(self)
        if isinstance(self, Tracer) and self.differentiated() is not None:
            raise NotDifferentiableError(
                f"byteswap() of an array of type {self.aval} would lose the derivative: stop it first, as in "
                f"lax.stop_gradient(x).byteswap()"
            )
        return bitcast_convert_type(_flip(bitcast_convert_type(self, np.dtype(np.uint8)), -1), self.dtype)

    def on_device_size_in_bytes(self) -> int:
        """The number of bytes that the elements take on their device."""
        return self.nbytes

    def unsafe_buffer_pointer(self) -> int:
        """The address of the elements, on the host or on a GPU, valid as long as the array; do not write there.

        Raises:
          ConcretizationTypeError: the array is traced (a TypeError).
        """
        if exchange.gpu_of(self) is not None:
            return int(self._buffer.unsafe_buffer_pointer())  # type: ignore[attr-defined]
        return int(np.asarray(_elements(self, "unsafe_buffer_pointer()")).ctypes.data)

    @property
    def flat(self) -> Any:
        """Not supported, since NumPy's iterator writes to the array: iterate over ``x.flatten()``.

        Raises:
          UnsupportedAttributeError: always (a NotImplementedError and an AttributeError).
        """
        raise UnsupportedAttributeError("arrays have no attribute flat, because they are immutable; use x.flatten()")

    def block_until_ready(self) -> Any:
        """The array, once it is computed."""
        return transfer.block_until_ready(self)

    def copy_to_host_async(self) -> None:
        """Start to copy the elements to the host, without waiting."""
        transfer.copy_to_host_async(self)

    def is_ready(self) -> bool:
        """Whether the array is computed."""
        return not is_on_device(self) or self._buffer.is_ready()  # type: ignore[attr-defined]

    def is_deleted(self) -> bool:
        """Whether the memory of the array was released, by ``delete`` or by donation."""
        return type(self) is DeletedArray

    def delete(self) -> None:
        """Release the memory of the array: any later use of its elements is an error."""
        if isinstance(self, ArrayImpl):
            delete(self)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array on a device."""
        return transfer.device_put(self, device)

    def addressable_data(self, index: int) -> Any:
        """The data of shard ``index`` among the shards of the array on devices of this process."""
        shards = self.addressable_shards
        try:
            return shards[index].data
        except IndexError:
            raise IndexingError(
                f"addressable_data: this process has {len(shards)} shards of the array, got index {index!r}"
            ) from None

    @property
    def addressable_shards(self) -> list[Any]:
        """The shards of the array on the devices of this process, with ``data``, ``index`` and ``device``."""
        return sharded_arrays.addressable_shards(_concrete_array(self, "addressable_shards"))

    @property
    def global_shards(self) -> list[Any]:
        """The shards of the array on all devices; shards of other processes have no data."""
        return sharded_arrays.global_shards(_concrete_array(self, "global_shards"))

    @property
    def device(self) -> Any:
        """The device of the elements, or the sharding if they are on several devices."""
        return transfer.device_of(self)

    @property
    def platform(self) -> str:
        """The kind of the device that holds the elements, such as "cpu"."""
        return str(next(iter(self.devices())).platform)

    def devices(self) -> set[Any]:
        """The devices that hold the elements."""
        return as_sharding(transfer.device_of(self)).device_set

    @property
    def sharding(self) -> Sharding:
        """The sharding of the elements over devices; of a traced array that of its value, or of its type."""
        return sharded_arrays.sharding_of(self)

    @property
    def format(self) -> Format:
        """The sharding, and the order of the elements in memory: the last axis is the fastest."""
        return row_major(len(self.shape), self.sharding)

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device by request, so that programs on it run there."""
        return isinstance(self, ArrayImpl) and signature_of(self).placement is not None

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold elements belong to this process."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all elements."""
        return self.sharding.is_fully_replicated


def _to_python_number(x: Any) -> Any:
    """Convert an array without axes to a Python number, for a function without a derivative, such as ``math.floor``."""
    while not isinstance(x, ArrayImpl):
        x = x._known(ConcretizationTypeError, "math.floor, ceil or trunc", "Use jnp.floor, jnp.ceil or jnp.trunc.")
    return np.asarray(_scalar(x._value, "math.floor, ceil or trunc")).item()


def _concrete_array(x: Any, what: str) -> ArrayImpl:
    """Return the concrete array that ``x`` stands for; raise if ``x`` is traced and has no concrete value.

    ``what`` says in the error what was asked for, such as shards.
    """
    while not isinstance(x, ArrayImpl):
        x = x.concrete_value(what, "Read them outside of the transformed function.")
    return x


def _elements(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Return the elements of ``x`` as a NumPy array; raise if ``x`` is traced and has no concrete value.

    ``what`` says in the error what was asked for.
    """
    while not isinstance(x, ArrayImpl):
        x = x.concrete_value(what, "Return the array from the transformed function instead.")
    return host_value(x)


# Concrete arrays; tracers define their own methods -------------------------------------------------------------------


def _is_readable(x: Any) -> bool:
    """Return whether this process can read all elements of a committed array as a NumPy array."""
    is_sum = getattr(getattr(x.sharding, "spec", None), "unreduced", False)
    return len(x.shape) <= MOST_HOST_AXES and not is_sum and (x.is_fully_addressable or x.is_fully_replicated)


class ConcreteMethods:
    """The methods that ``ArrayImpl`` gets."""

    __slots__ = ()
    _value: Any
    weak_type: bool

    def __bool__(self) -> bool:
        value = self._value
        if value.size != 1:
            if value.size:
                message = f"the truth value of an array of shape {value.shape} is ambiguous: use x.any() or x.all()"
                raise TruthValueError(source.by_name(message))
            raise TruthValueError(source.by_name("the truth value of an empty array is ambiguous: use x.size > 0"))
        if dtypes.is_key(value.dtype):
            raise KeyConversionError("random keys have no truth value")
        return bool(value)

    def __float__(self) -> float:
        return float(_scalar(self._value, "float()"))

    def __int__(self) -> int:
        return int(_scalar(self._value, "int()"))

    def __complex__(self) -> complex:
        return complex(_scalar(self._value, "complex()"))

    def __index__(self) -> int:
        value = self._value
        if value.shape != () or value.dtype.kind not in "iu":
            message = f"only a scalar integer array can be a Python index, got {self.aval}"  # type: ignore[attr-defined]
            raise ScalarError(source.by_name(message))
        return int(value)

    def __format__(self, spec: str) -> str:
        value = self._value
        if value.shape == () and value.dtype.kind != "V":
            return format(value[()], spec)
        if not spec:
            return str(self)
        if value.shape == ():
            return format(value, spec)
        raise ScalarError(
            f"the format {spec!r} takes one number, got an array of shape {value.shape}: format an element, or print "
            "jnp.round(x, 3) or np.array2string(x, precision=3)"
        )

    def __str__(self) -> str:
        if isinstance(self, CommittedArray) and not _is_readable(self):
            return repr(self)
        return repr(self) if dtypes.is_key(self._value.dtype) else str(self._value)

    def __repr__(self) -> str:
        if isinstance(self, CommittedArray) and not _is_readable(self):
            return f"Array(shape={self.shape}, dtype={dtypes.dtype_name(self.dtype)}, sharding={self.sharding})"  # type: ignore
        value = np.asarray(self._value)
        if dtypes.is_key(value.dtype):
            words = value[dtypes.key_field(value.dtype)]
            return f"Array({value.shape}, dtype={dtypes.dtype_name(value.dtype)}) overlaying:\n{words}"
        weak = ", weak_type=True" if self.weak_type else ""
        shape = f", shape={value.shape}" if value.size == 0 else ""
        kind = f"dtype={dtypes.dtype_name(value.dtype)}{weak})"
        elements = "[]" if value.size == 0 else np.array2string(value, separator=", ", prefix="Array(", suffix=",")
        text = f"Array({elements}{shape},"
        last = len(text) - (text.rfind("\n") + 1)
        fits = last + 1 + len(kind) <= np.get_printoptions()["linewidth"]
        return f"{text} {kind}" if fits else f"{text}\n      {kind}"

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only NumPy array; plotting libraries call this method."""
        return np.asarray(self)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        return exchange.exported(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        device = exchange.gpu_of(self)
        if device is None or device.target != "cuda":
            raise AttributeError("__cuda_array_interface__ is only defined for NVIDIA GPU buffers")
        return self._buffer.__cuda_array_interface__  # type: ignore[attr-defined, no-any-return]

    def __dlpack_device__(self) -> Any:
        return exchange.device_of(self)


def _scalar(value: Any, what: str) -> Any:
    if value.shape != ():
        raise ScalarError(source.by_name(f"{what} takes a scalar array, got shape {value.shape}"))
    if dtypes.is_key(value.dtype):
        raise KeyConversionError(f"{what} takes a number, got a random key")
    return value


# Methods that are functions ---------------------------------------------------------------------------------------


class _Late:
    """A descriptor for a method of arrays that is a function of ``pullback.numpy``.

    The first access imports the function, and replaces the descriptor by the method.
    """

    def __init__(self, name: str, call: Any = None) -> None:
        self.name = name
        self.call = call

    def __get__(self, array: Any, kind: Any = None) -> Any:
        function = getattr(importlib.import_module("pullback.numpy"), self.name)
        method = _with_self(function) if self.call is None else _copied(self.call)
        method.__name__, method.__qualname__ = self.name, f"Array.{self.name}"
        method.__doc__ = function.__doc__
        setattr(Array, self.name, method)
        return method if array is None else method.__get__(array, kind)


def _copied(function: Any) -> Any:
    """Return a copy of a function, which can get its own name and docstring."""
    copy: Any = FunctionType(function.__code__, function.__globals__, None, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    return copy


def _with_self(function: Any) -> Any:
    """Return a copy of a function whose signature names the first parameter ``self``."""
    method = _copied(function)
    found = inspect.signature(function)
    first, *others = found.parameters.values()
    method.__signature__ = found.replace(parameters=[first.replace(name="self", annotation=first.empty), *others])
    return method


_OF_THE_TYPE = {
    "shape": "The size of each axis: a tuple of ints.", "dtype": "The type of an element.",
    "ndim": "The number of axes.", "size": "The number of elements.",
}  # fmt: skip
"""Attributes that each kind of array has in its own way; ``Array`` documents them."""


def attach() -> None:
    """Add the methods, properties and operators to ``Array`` and ``ArrayImpl``."""
    operators.attach()
    for name, doc in _OF_THE_TYPE.items():
        setattr(Array, name, property(operator.attrgetter(f"aval.{name}"), doc=doc))
    for group, target in ((Methods, Array), (ConcreteMethods, ArrayImpl)):
        for name, attribute in vars(group).items():
            if callable(attribute) or isinstance(attribute, property):
                setattr(target, name, attribute)
    for name in (*_SAME, *_LIKE):
        setattr(Array, name, _Late(name, vars(Methods).get(name)))


attach()
