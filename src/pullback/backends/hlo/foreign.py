"""Calls of foreign functions: attributes, layouts and aliases as StableHLO text, and the registration of targets."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.layouts import Layout
from pullback.backends.hlo.builder import element_type, tensor_type
from pullback.core import dtypes
from pullback.core.errors import ForeignCallError
from pullback.core.types import ShapedArray

CONFIG = "mhlo.backend_config"
"""The name under which a call of the typed interface has its attributes, in JAX's programs too. The compiler reads it
beside ``api_version = 1`` only."""


class Attribute:
    """A hashable attribute of a foreign call; the attributes 1, 1.0 and True are unequal.

    Args:
      name: the name of the attribute, for messages.
      value: a number, a string, a NumPy array, a tuple of these, or a dictionary. A number of NumPy's is a number, and
        an array without axes is an array.

    Raises:
      ForeignCallError: the value is of another kind (a TypeError and ValueError).
    """

    __slots__ = ("text",)

    def __init__(self, name: str, value: Any) -> None:
        self.text = _text(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and self.text == other.text

    def __lt__(self, other: Attribute) -> bool:
        return self.text < other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


def attributes(values: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
    """Convert a dictionary of a call's attributes to pairs of a name and an :class:`Attribute`, sorted by name."""
    return tuple((name, Attribute(name, values[name])) for name in sorted(values))


def written(values: Sequence[tuple[str, Attribute]]) -> str:
    """The StableHLO text of attributes, such as ``eps = 1 : i64, uplo = "L"``."""
    return ", ".join(f"{quoted_name(name)} = {value.text}" for name, value in values)


def quoted_name(name: str) -> str:
    """The name of an attribute in StableHLO text, in quotes where the syntax requires them."""
    return name if name.isidentifier() and name.isascii() else _quoted(name)


def _quoted(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return f'"{"".join(plain)}"'


def _text(name: str, value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return _quoted(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        value = np.int64(value) if isinstance(value, int) else np.float64(value)
    if isinstance(value, Mapping):
        return f"{{{written(attributes(value))}}}"
    if isinstance(value, (tuple, list)):
        if all(type(x) is int for x in value):
            return f"[{', '.join(map(str, value))}]"
        return f"[{', '.join(_text(name, x) for x in value)}]"
    if isinstance(value, (np.generic, np.ndarray)) and _is_attribute(value.dtype):
        if isinstance(value, np.generic):
            return f"{_nested(np.asarray(value))} : {element_type(value.dtype)}"
        return f"dense<{_nested(value) if value.size else ''}> : {tensor_type(value.shape, value.dtype)}"
    raise ForeignCallError(
        f"ffi_call: the attribute {name} must be a number, a string, a NumPy array, or a tuple or dictionary of "
        f"these, got {value!r} of type {type(value).__name__}"
    )


def _number(x: Any) -> str:
    """The text of a floating-point number in an attribute; its bits in hexadecimal if it is not finite."""
    if np.isfinite(x):
        return f"{float(x):.17e}"
    return f"0x{int.from_bytes(np.asarray(x).tobytes(), 'little'):0{2 * x.dtype.itemsize}X}"


def _nested(value: np.ndarray[Any, Any]) -> str:
    if value.ndim:
        return f"[{', '.join(map(_nested, value))}]"
    if dtypes.is_bool(value.dtype) or value.dtype == dtypes.float0:
        return str(bool(value)).lower()
    return str(int(value)) if dtypes.is_integer(value.dtype) else _number(value[()])


def _is_attribute(dtype: np.dtype[Any]) -> bool:
    """Whether attributes may have ``dtype``: real numbers, booleans, and ``float0``, whose elements are false."""
    return dtype == dtypes.float0 or (dtype.name in dtypes.NUMBERS and not dtypes.is_complex(dtype))


# Layouts --------------------------------------------------------------------------------------------------------------


def major_to_minor(layout: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Convert a layout of an operand or result to the order of axes in memory, the slowest first.

    Args:
      layout: a ``Layout``, the order itself, or None for row-major.
      ndim: the number of axes.
      what: names the operand or result in the error message.

    Raises:
      ForeignCallError: the layout is no permutation of the axes (a ValueError).
    """
    if layout is None:
        return tuple(range(ndim))
    order = tuple(layout.major_to_minor if isinstance(layout, Layout) else layout)
    if sorted(order) != list(range(ndim)):
        raise ForeignCallError(f"ffi_call: {what} has {ndim} axes, which its layout must order, but it is {order}")
    return order


def layouts(orders: Sequence[tuple[int, ...]]) -> str:
    """The StableHLO text of the layouts of operands or results; each of ``orders`` has the axes, the slowest first."""
    return ", ".join(f"dense<{list(order[::-1]) if order else ''}> : tensor<{len(order)}xindex>" for order in orders)


def aliasing(aliases: Sequence[tuple[int, int]], results: int) -> str:
    """The StableHLO text of a call's aliases, results that reuse the memory of operands.

    Args:
      aliases: pairs of an operand's index and a result's index.
      results: the number of results of the call.
    """
    if not aliases:
        return ""
    rows = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {[out] if results > 1 else []}, operand_index = "
        f"{operand}, operand_tuple_indices = []>"
        for operand, out in aliases
    ]
    return f"output_operand_aliases = [{', '.join(rows)}]"


# Targets --------------------------------------------------------------------------------------------------------------

registered: set[str] = set()
"""The names of the foreign functions that this process has registered."""


def register(name: str, function: Any, platform: str, api_version: int, more: Mapping[str, Any]) -> None:
    """Register a foreign function as a custom-call target, which programs can call.

    Args:
      name: the name of the target.
      function: a capsule of the function, or a dictionary of capsules by the stage of execution.
      platform: the platform on which the function runs.
      api_version: the version of the interface by which it is called.
      more: further keyword arguments of jaxlib's function ``register_custom_call_target``.
    """
    _registered(
        lambda lib: lib.xla_client.register_custom_call_target(name, function, platform, api_version, **more), name
    )
    registered.add(name)


def prepare(name: str) -> None:
    """Register the routines of LAPACK if ``name`` is one of theirs: they come with the runtime, as in JAX."""
    from pullback.backends.compiler import client

    if name.startswith("lapack_"):
        client.register_lapack()


def register_type(name: str, type_id: Any, platform: str) -> None:
    """Register a type of state that foreign functions keep between calls.

    Args:
      name: the name of the type.
      type_id: the type, in the form that jaxlib's ``register_custom_type`` takes.
      platform: the platform on which the functions run.
    """
    _registered(lambda lib: lib.xla_client.register_custom_type(name, type_id, platform), name)


def register_batch_partitionable(name: str) -> None:
    """Let the compiler divide calls of the registered function ``name`` among devices along their leading axes."""
    _registered(lambda lib: lib.xla_client.register_custom_call_as_batch_partitionable(name), name)


def _registered(register: Callable[[Any], Any], name: str) -> None:
    from pullback.backends.compiler import client

    try:
        register(client.library())
    except (RuntimeError, TypeError, ValueError) as error:
        raise ForeignCallError(f"registering {name!r}: {error}") from None


def capsule(function: Any) -> Any:
    """Make a capsule with the address of a ``ctypes`` function.

    Raises:
      ForeignCallError: the argument is no such function.
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    try:
        if isinstance(function, (str, bytes)):
            raise ValueError("a text has no code")
        return make(ctypes.cast(function, ctypes.c_void_p), None, None)
    except (ctypes.ArgumentError, ValueError) as error:
        raise ForeignCallError(
            f"pycapsule takes a function of a library of ctypes, got {function!r}: {error}"
        ) from None


def include_directory() -> str:
    """The directory of ``jaxlib``'s header files, which foreign functions are compiled with."""
    from pullback.backends.compiler import client

    client.library()
    import importlib.util

    spec = importlib.util.find_spec("jaxlib")
    assert spec is not None
    assert spec.origin is not None
    return os.path.join(os.path.dirname(spec.origin), "include")


def types_agree(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two types have the same shape and dtype, so that a result can reuse the memory of an operand."""
    return a.shape == b.shape and dtypes.dtype_name(a.dtype) == dtypes.dtype_name(b.dtype)
