# long: because there are many small questions about dtypes, each with its docstring
"""Element types: their names, their kinds, and the promotion of several to the type of an operation.

A Python number is *weakly typed*: it does not widen the arrays that it is combined with. Types of
64 bits are narrowed to 32 unless ``config.enable_x64``. Two types that are not in NumPy's own vocabulary mark
values that are not numbers: :data:`float0`, the tangents of integers and booleans, and :data:`key_dtype`,
random keys. The types of ``ml_dtypes`` (``bfloat16``, ``float8_e4m3fn``, ``int4``, ...) are imported eagerly, which
takes 4 ms: NumPy knows their names from then on, and programs written for JAX read such names from files.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache, wraps
from typing import Any, Generic, Literal, TypeGuard, TypeVar, cast, overload

import ml_dtypes
import numpy as np

from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag
from pullback.core.config import config, observe
from pullback.core.errors import (
    ArgumentError,
    DtypeError,
    DtypeTruncationWarning,
    KeyPromotionError,
    OperandError,
    TypePromotionError,
)
from pullback.core.faces import face
from pullback.core.naming import quoted
from pullback.core.runtime import runtime

DType = np.dtype[Any]
_T = TypeVar("_T")


class extended(np.generic):
    """The kind of the dtypes whose elements are not numbers, for :func:`issubdtype`."""


class prng_key(extended):
    """The kind of the dtypes of random keys, for :func:`issubdtype`."""


class _KeyElement(np.void, prng_key):  # type: ignore[misc]  # which of the two __new__ does not matter
    """The scalar type of random keys on the host; libraries recognize keys by its ``__name__``, ``prng_key``."""


_KeyElement.__name__ = "prng_key"  # pickle goes by the qualified name


class KeyDtype:
    """The dtype of arrays of random keys; its repr is ``key<fry>``.

    The attribute ``dtype`` is the structured NumPy dtype of keys on the host. It compares equal to the ``KeyDtype``,
    and ``np.dtype`` converts the ``KeyDtype`` to it.
    """

    __slots__ = ("__numpy_dtype__", "dtype", "name")  # newer releases of NumPy look for the first

    def __init__(self, field: str, words: int) -> None:
        self.dtype = self.__numpy_dtype__ = np.dtype((_KeyElement, [(field, np.uint32, (words,))]))
        self.name = f"key<{field}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim"):  # which with ``dtype`` would make it look like an array
            raise AttributeError(f"a dtype of keys has no attribute {name!r}")
        return getattr(object.__getattribute__(self, "dtype"), name)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, np.dtype) and other == self.dtype)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return interned, (self.dtype,)


float0: DType = np.dtype([("float0", np.void, 0)])
key_dtype: DType = cast(DType, KeyDtype("fry", 2))
rbg_key_dtype: DType = cast(DType, KeyDtype("rbg", 4))
unsafe_rbg_key_dtype: DType = cast(DType, KeyDtype("urbg", 4))
KEY_DTYPES = {
    "threefry2x32": key_dtype, "threefry4x32": cast(DType, KeyDtype("fry4", 4)),
    "rbg": rbg_key_dtype, "unsafe_rbg": unsafe_rbg_key_dtype,
    "philox2x32": cast(DType, KeyDtype("phx2", 1)), "philox4x32": cast(DType, KeyDtype("phx4", 2)),
}  # fmt: skip
"""The dtypes of random keys, by the names of their generators; the field's name is what printed programs show."""
VOID = np.dtype(np.void).num  # of NumPy's structured dtypes, of which some are of keys
SHOWN = {np.dtype(dtype): dtype for dtype in KEY_DTYPES.values()}


def is_dtype(x: Any) -> TypeGuard[DType]:
    """Whether an object is a dtype, of NumPy's or of keys."""
    return isinstance(x, (np.dtype, KeyDtype))


USER_VALUE = np.dtype([("value", "V1")])
"""What types of users' values have instead of a dtype: they may have derivatives, and are no operand of arrays."""


def shown(dtype: DType) -> DType:
    """Return the dtype to show to users: the ``KeyDtype`` for the structured dtype of random keys; others unchanged."""
    return SHOWN.get(dtype, dtype)


_SMALL_INTEGERS = ("int2", "uint2", "int4", "uint4")
_SMALL_FLOATS = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
_EXTENDED = frozenset(("bfloat16", *_SMALL_INTEGERS, *_SMALL_FLOATS))
_BUILTIN_CODES = "?bhilqBHILQefdFD"
NUMBERS = _EXTENDED | {np.dtype(code).name for code in _BUILTIN_CODES}
"""The names of the dtypes of numbers."""


# Kinds


class _ByDtype(dict[DType, _T], Generic[_T]):
    def __init__(self, compute: Callable[[DType], _T]) -> None:
        self.compute = compute

    def __missing__(self, dtype: Any) -> _T:
        value = self.compute(_parse(dtype))
        if is_dtype(dtype):
            self[dtype] = value
        return value


def _by_dtype(compute: Callable[[DType], _T]) -> Callable[[Any], _T]:
    """Decorate a function of a dtype: cache its results in a dictionary, which is quicker than ``functools.cache``."""
    table = _ByDtype(compute)

    @wraps(compute)
    def look_up(dtype: Any) -> _T:
        try:
            return table[dtype]
        except TypeError:
            return compute(_parse(dtype))  # which says what is wrong with what has no hash

    return look_up


@_by_dtype
def _kind(dtype: DType) -> str:
    """A letter for the kind of a dtype; "" if it is unsupported.

    The letters: b(ool), i(nt), u(nsigned), f(loat), c(omplex), k(ey), 0 (float0), v(alue of a user's type).
    """
    if dtype.isbuiltin == 1:
        return dtype.kind if dtype.char in _BUILTIN_CODES else ""
    if dtype == float0:
        return "0"
    if dtype == USER_VALUE:
        return "v"
    if dtype in KEY_DTYPES.values():
        return "k"
    if dtype.isbuiltin == 0 and dtype.names is None:  # in another byte order, or read from a pickle
        return _kind(np.dtype(dtype.type))
    # ml_dtypes reports kinds of its own accord (V for most, f for float8_e5m2): its names are reliable.
    name = dtype.name
    return name.removeprefix("b")[0] if name in _EXTENDED else ""


def interned(dtype: DType) -> DType:
    """Return the object that stands for a dtype everywhere, in native byte order.

    NumPy makes other, equal objects when it reads pickles.
    """
    for known in (float0, *KEY_DTYPES.values()):
        if dtype == known:
            return known
    return np.dtype(dtype.type)


def is_key(dtype: DType) -> bool:
    """Whether a dtype is one of random keys.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_key, key_dtype
    >>> is_key(key_dtype), is_key(np.dtype("uint32"))
    (True, False)
    """
    return isinstance(dtype, KeyDtype) or _kind(dtype) == "k"


def key_field(dtype: DType) -> str:
    """The short name of a key dtype's generator, such as ``fry``, which is also the name of the dtype's only field."""
    assert dtype.names is not None
    return dtype.names[0]


def key_words(dtype: DType) -> int:
    """The number of words, of 32 bits each, in a random key of this dtype."""
    return dtype.itemsize // 4


@_by_dtype
def is_inexact(dtype: DType) -> bool:
    """Whether a dtype is floating-point or complex.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_inexact
    >>> is_inexact(np.dtype("float32")), is_inexact(np.dtype("int32"))
    (True, False)
    """
    return _kind(dtype) in ("f", "c", "v")


@_by_dtype
def is_float(dtype: DType) -> bool:
    """Whether a dtype is real floating-point.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_float
    >>> is_float(np.dtype("float32")), is_float(np.dtype("complex64"))
    (True, False)
    """
    return _kind(dtype) == "f"


@_by_dtype
def is_complex(dtype: DType) -> bool:
    """Whether a dtype is complex.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_complex
    >>> is_complex(np.dtype("float32")), is_complex(np.dtype("complex64"))
    (False, True)
    """
    return _kind(dtype) == "c"


@_by_dtype
def is_integer(dtype: DType) -> bool:
    """Whether a dtype is an integer, signed or unsigned; booleans are not.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_integer
    >>> is_integer(np.dtype("uint8")), is_integer(np.dtype("bool"))
    (True, False)
    """
    return _kind(dtype) in ("i", "u")


@_by_dtype
def is_unsigned(dtype: DType) -> bool:
    """Whether a dtype is an integer without a sign.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_unsigned
    >>> is_unsigned(np.dtype("uint8")), is_unsigned(np.dtype("int8"))
    (True, False)
    """
    return _kind(dtype) == "u"


@_by_dtype
def is_bool(dtype: DType) -> bool:
    """Whether a dtype is boolean.

    >>> import numpy as np
    >>> from pullback.core.dtypes import is_bool
    >>> is_bool(np.dtype("bool")), is_bool(np.dtype("uint8"))
    (True, False)
    """
    return _kind(dtype) == "b"


@_by_dtype
def tangent_dtype(dtype: DType) -> DType:
    """The dtype of the tangents of values of ``dtype``: itself if it is inexact, else ``float0``.

    >>> import numpy as np
    >>> from pullback import float0
    >>> from pullback.core.dtypes import tangent_dtype
    >>> tangent_dtype(np.dtype("float32")), tangent_dtype(np.dtype("int32")) == float0
    (dtype('float32'), True)
    """
    return dtype if is_inexact(dtype) else float0


@_by_dtype
def short_name(dtype: DType) -> str:
    """The name of a dtype in printed programs.

    >>> import numpy as np
    >>> from pullback.core.dtypes import key_dtype, short_name
    >>> short_name(np.dtype("float32")), short_name(np.dtype("bool")), short_name(key_dtype)
    ('f32', 'bool', 'key<fry>')
    """
    kind, name = _kind(dtype), dtype.name
    if kind in ("i", "u", "f", "c") and not name.startswith("bfloat"):
        return kind + name.lstrip("abcdefghijklmnopqrstuvwxyz")
    if kind == "k":
        return f"key<{key_field(dtype)}>"
    return {"0": "float0", "f": "bf16"}.get(kind, name)


@_by_dtype
def dtype_name(dtype: DType) -> str:
    """The name of a dtype for users to read.

    >>> import numpy as np
    >>> from pullback.core.dtypes import dtype_name, key_dtype
    >>> dtype_name(np.dtype("float32")), dtype_name(key_dtype)
    ('float32', 'key<fry>')
    """
    return short_name(dtype) if _kind(dtype) in ("0", "k") else dtype.name


# Canonical dtypes

_NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
_narrow: dict[Any, DType] = {}
_wide: dict[Any, DType] = {}
_granted: dict[Any, DType] = {}
_ABSTRACT = frozenset((
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
    np.complexfloating, np.flexible, np.character, extended, prng_key,
))  # fmt: skip
_VOCABULARY = (
    "the dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128 and the narrow types of ml_dtypes (float8_e4m3fn, int4, ...)"
)

_ADVICE = {
    "M": ". Turn times into numbers first, such as seconds from a start: (t - t[0]) / np.timedelta64(1, 's')",
    "m": ". Turn durations into numbers first, such as seconds: dt / np.timedelta64(1, 's')",
    "O": ". Elements of dtype object are text, missing values or objects of Python: give missing values a number "
    "(pandas: series.to_numpy(float, na_value=np.nan)), and categories theirs (series.cat.codes)",
}
"""What to do about a dtype that is not supported, by its kind."""


def _parse(dtype: Any) -> DType:
    """The NumPy dtype that ``dtype`` means, whether or not Pullback supports it."""
    if isinstance(dtype, np.dtype):
        return shown(dtype) if dtype.num == VOID else dtype
    if is_dtype(dtype):
        return dtype
    if isinstance(dtype, str) and dtype in _EXTENDED:
        dtype = getattr(ml_dtypes, dtype)
    if isinstance(dtype, type) and dtype in _ABSTRACT:
        if dtype is prng_key:
            return key_dtype
        raise DtypeError(f"{dtype.__name__} is a kind of dtypes; pass a dtype such as float32")
    own = getattr(dtype, "dtype", None)
    if is_dtype(own) and not hasattr(dtype, "shape"):
        return _parse(own)
    try:
        parsed: DType = np.dtype(dtype)
    except (TypeError, ValueError):
        tuple_ = " (a shape is one argument, such as (2, 3))" if isinstance(dtype, int) else ""
        raise DtypeError(f"unknown dtype {dtype!r}{tuple_}; {_VOCABULARY}") from None
    return parsed


def _canonicalize(dtype: Any, x64: bool) -> DType:
    parsed = _parse(dtype)
    kind = _kind(parsed)
    if not kind:
        name = parsed.name if dtype is parsed else repr(dtype)
        raise DtypeError(f"dtype {name} is not supported; {_VOCABULARY}{_ADVICE.get(parsed.kind, '')}")
    if kind == "v":
        raise DtypeError("an operation on arrays was applied to a value of a type that a user has registered")
    if parsed.name in _SMALL_INTEGERS:
        while runtime.small_integers_requested:  # each listener prepares once, and may request such a dtype itself
            runtime.small_integers_requested.pop()()
    if kind in "0k" or parsed.name in _EXTENDED:
        return parsed
    # By name, since int64 has two codes, "l" and "q", and the other byte order is the same type to us.
    canonical: DType = np.dtype(parsed.name if x64 else _NARROWED.get(parsed.name, parsed.name))
    return canonical


def canonicalize_dtype(dtype: Any) -> DType:
    """Return the dtype of values that are requested as ``dtype``: 64 bits become 32 unless ``config.enable_x64``.

    Args:
      dtype: whatever :class:`numpy.dtype` takes, the name of an extended type, or an object with a ``dtype``.

    Returns:
      A NumPy dtype in native byte order.

    Raises:
      DtypeError: there is no such dtype, or it is not one of numbers.

    >>> from pullback.core.dtypes import canonicalize_dtype
    >>> canonicalize_dtype(float), canonicalize_dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    table = _wide if config.enable_x64 else _narrow
    try:
        return table[dtype]
    except KeyError:
        canonical = table[dtype] = _canonicalize(dtype, table is _wide)
        return canonical
    except TypeError:
        return _canonicalize(dtype, table is _wide)


def exact_dtype(dtype: Any) -> DType:
    """Return a dtype in native byte order without narrowing it, for elements in a file or a buffer.

    Raises:
      DtypeError: there is no such dtype, or it is not one of numbers.
    """
    return _canonicalize(dtype, True)


def requested_dtype(dtype: Any, function: str) -> DType:
    """Return the dtype of values for which a user requested ``dtype``, as :func:`canonicalize_dtype` does, and warn.

    If 64 bits become 32, it warns at the user's line or raises, as the switch ``explicit_x64_dtypes`` says. Python's
    types ask for no width: ``float`` is the default float.

    Args:
      dtype: as of :func:`canonicalize_dtype`.
      function: the public function that was called, for the message.

    Raises:
      DtypeError: there is no such dtype, or one of 64 bits is an error.
    """
    try:
        return (_wide if config.enable_x64 else _granted)[dtype]
    except (KeyError, TypeError):
        return _grant(dtype, function)


def _grant(dtype: Any, function: str) -> DType:
    canonical = canonicalize_dtype(dtype)
    if config.enable_x64:
        return canonical
    asked = canonical if isinstance(dtype, type) and dtype in python_scalar_kind else _canonicalize(dtype, True)
    if asked == canonical:
        with suppress(TypeError):  # it cannot be hashed
            _granted[dtype] = canonical
        return canonical
    if config.explicit_x64_dtypes == "allow":
        return asked
    text = _TRUNCATED.format(asked=asked.name, function=function, canonical=canonical.name)
    if config.explicit_x64_dtypes == "error":
        raise DtypeError(text)
    from pullback.core.source import warn

    warn(text, DtypeTruncationWarning)
    return canonical


_TRUNCATED = (
    "Explicitly requested dtype {asked} requested in {function} is not available, and will be truncated to dtype "
    "{canonical}: 32 bits are the default. `pullback.config.update('enable_x64', True)` or PULLBACK_ENABLE_X64=1 in "
    "the environment makes 64 bits the default; `pullback.config.update('explicit_x64_dtypes', 'allow')` keeps 64 "
    "bits where you ask for them."
)
"""Begins with JAX's words, by which programs filter the warning."""


def kept_dtype(value: Any) -> DType:
    """Return the dtype for a new value like ``value``: 64 bits become 32, unless ``enable_x64`` is on.

    If ``explicit_x64_dtypes`` is ``"allow"``, the dtype of an array of Pullback's is kept in any case.
    """
    if config.explicit_x64_dtypes == "allow" and getattr(value, "weak_type", None) is not None:
        dtype: DType = value.dtype
        return dtype
    return canonicalize_dtype(value.dtype)


def default_float() -> DType:
    """The dtype of a Python float.

    >>> from pullback.core.dtypes import default_float
    >>> default_float()
    dtype('float32')
    """
    return scalar_dtype(float)


def default_int() -> DType:
    """The dtype of a Python integer.

    >>> from pullback.core.dtypes import default_int
    >>> default_int()
    dtype('int32')
    """
    return scalar_dtype(int)


# Dtypes of values

python_scalar_kind: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}
_wide_scalars: dict[type, DType] = {kind: np.dtype(kind) for kind in python_scalar_kind}
_narrow_scalars: dict[type, DType] = {kind: _canonicalize(kind, False) for kind in python_scalar_kind}


def scalar_dtype(kind: type) -> DType:
    """The dtype of the Python numbers of a type.

    Args:
      kind: ``bool``, ``int``, ``float`` or ``complex``.

    >>> from pullback.core.dtypes import scalar_dtype
    >>> scalar_dtype(complex)
    dtype('complex64')
    """
    return (_wide_scalars if config.enable_x64 else _narrow_scalars)[kind]


def dtype_and_weak(value: Any) -> tuple[DType, bool]:
    """The dtype of a value, and whether it is weak.

    Args:
      value: a Python number, a NumPy array or scalar, or anything with a ``dtype`` (and ``weak_type``).

    Returns:
      The dtype, canonical for NumPy's values, and whether it gives way to others in promotion: Python's
      numbers do, except booleans, which give way to everything anyhow.

    Raises:
      OperandError: the value is no array of numbers.

    >>> import numpy as np
    >>> from pullback.core.dtypes import dtype_and_weak
    >>> dtype_and_weak(2.0), dtype_and_weak(np.ones(3))
    ((dtype('float32'), True), (dtype('float32'), False))
    """
    kind = type(value)
    if kind in python_scalar_kind:
        return (_wide_scalars if config.enable_x64 else _narrow_scalars)[kind], kind is not bool
    weak = getattr(value, "weak_type", None)
    if weak is not None:
        return value.dtype, weak
    dtype = getattr(value, "dtype", None)
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            return canonicalize_dtype(dtype), False
        except DtypeError as error:
            raise OperandError(f"{quoted(value)} is not an array of numbers: its dtype is {dtype}") from error
    if is_dtype(dtype):
        return dtype, False
    for base in (bool, int, float, complex):
        if isinstance(value, base):  # an IntEnum, say
            return scalar_dtype(base), base is not bool
    raise OperandError(f"expected an array or a number, got {quoted(value)} of type {kind.__name__}")


def dtype_of(value: Any) -> DType:
    """The dtype of a value; see :func:`dtype_and_weak`.

    Raises:
      OperandError: the value is no array of numbers.

    >>> import numpy as np
    >>> from pullback.core.dtypes import dtype_of
    >>> dtype_of(np.ones(3, "int8"))
    dtype('int8')
    """
    return dtype_and_weak(value)[0]


# Promotion. An arrow goes from a type to those next above it; "i*", "f*" and "c*" are Python's numbers. The
# type of an operation is the lowest that is above all its operands' types, if there is one.

_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("int8", "uint8", *_SMALL_INTEGERS),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("c*", "bfloat16", "float16", *_SMALL_FLOATS),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
}
_ABOVE_STRICT: dict[str, tuple[str, ...]] = {
    "i*": ("f*", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", *_SMALL_INTEGERS),
    "f*": ("c*", "bfloat16", "float16", "float32", "float64", *_SMALL_FLOATS),
    "c*": ("complex64", "complex128"),
}
_WEAK_TYPES: dict[str, type] = {"i*": int, "f*": float, "c*": complex}


@cache
def _upper_bounds(name: str, strict: bool) -> frozenset[str]:
    above = (_ABOVE_STRICT if strict else _ABOVE).get(name, ())
    return frozenset((name,)).union(*(_upper_bounds(other, strict) for other in above))


def _join(names: frozenset[str], strict: bool) -> str:
    common = frozenset.intersection(*(_upper_bounds(name, strict) for name in names))
    for name in common:
        if _upper_bounds(name, strict) == common:
            return name
    listed = ", ".join(_WEAK_TYPES[name].__name__ if name in _WEAK_TYPES else name for name in sorted(names))
    reason = "floating-point types of 8 bits and less, and integers of 4 and less, are not promoted implicitly"
    if strict:
        reason = "under config.numpy_dtype_promotion = 'strict' only Python numbers are promoted implicitly"
    raise TypePromotionError(f"{listed} have no common dtype: {reason}; convert the operands with astype")


_ever_allowed: set[bool] = set()
"""Has an element once a thread allowed it."""


def _note_allowed(everywhere: bool) -> None:
    if config.explicit_x64_dtypes == "allow":
        _ever_allowed.add(True)


observe("explicit_x64_dtypes", _note_allowed)


def _has_wide() -> bool | None:
    """Whether promotion may return dtypes of 64 bits; None if it may only when an operand has 64 bits.

    It is True if ``enable_x64`` is on. Otherwise it is None if ``explicit_x64_dtypes`` is ``"allow"``, else False.
    """
    return config.enable_x64 or (None if config.explicit_x64_dtypes == "allow" else False)


@lru_cache(maxsize=4096)
def _promote(operands: tuple[tuple[DType, bool], ...], x64: bool | None, mode: str) -> tuple[DType, bool]:
    default = bool(x64)
    if x64 is None:
        x64 = any(dtype.name in _NARROWED for dtype, _ in operands)
    operands = tuple((_canonicalize(dtype, x64), weak and dtype.kind != "b") for dtype, weak in operands)
    if len(set(operands)) == 1:
        return operands[0]
    for dtype, _ in operands:
        if _kind(dtype) in "0k":
            listed = ", ".join(short_name(dtype) for dtype, _ in operands)
            kind = KeyPromotionError if is_key(dtype) else TypePromotionError
            raise kind(f"{listed} have no common dtype: {short_name(dtype)} is not a dtype of numbers")
    all_weak = all(weak for _, weak in operands)
    names = frozenset(_kind(dtype) + "*" if weak and not all_weak else dtype.name for dtype, weak in operands)
    joined = _join(names, mode == "strict" and not all_weak)
    if joined in _WEAK_TYPES:
        return _canonicalize(_WEAK_TYPES[joined], default), True
    return _canonicalize(joined, x64), all_weak


def _as_operand(argument: Any) -> tuple[DType, bool]:
    """The dtype, and whether it is weak, of an argument of :func:`result_type`: a value, or the name of a dtype."""
    weak = getattr(argument, "weak_type", None)
    if weak is not None:
        return argument.dtype, weak
    if argument is None or is_dtype(argument) or isinstance(argument, (str, type)):
        return canonicalize_dtype(argument), argument in python_scalar_kind and argument is not bool
    if hasattr(argument, "dtype") and not hasattr(argument, "shape"):
        return canonicalize_dtype(argument), False
    return dtype_and_weak(argument)


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype of an operation on values of two dtypes.

    Args:
      a, b: dtypes, or Python's number types, which are weak.

    Returns:
      A dtype.

    Raises:
      TypePromotionError: the two have no common dtype.
      KeyPromotionError: one of them is a dtype of random keys (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.promote_types("int8", "uint8"), jnp.promote_types("bfloat16", "float16")
    (dtype('int16'), dtype('float32'))
    >>> jnp.promote_types("float16", float)
    dtype('float16')
    """
    return _promote(
        (_as_operand(a), _as_operand(b)),
        _has_wide() if _ever_allowed else config.enable_x64,
        config.numpy_dtype_promotion,
    )[0]


@overload
def result_type(*args: DTypeLike, return_weak_type_flag: Literal[True]) -> tuple[DType, bool]: ...
@overload
def result_type(*args: DTypeLike, return_weak_type_flag: Literal[False] = False) -> DType: ...
def result_type(*args: DTypeLike, return_weak_type_flag: bool = False) -> DType | tuple[DType, bool]:
    """The dtype of an operation on all of ``args``.

    Args:
      args: values, dtypes, or Python's number types; at least one.
      return_weak_type_flag: whether to return ``(dtype, weak)`` instead of the dtype.

    Returns:
      A dtype, or the pair.

    Raises:
      TypePromotionError: they have no common dtype.
      ValueError: no arguments.

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> jnp.result_type(np.ones(3, "int8"), 2), jnp.result_type("int8", 2.0, return_weak_type_flag=True)
    (dtype('int8'), (dtype('float32'), True))
    """
    return_weak_type_flag = flag("result_type", "return_weak_type_flag", return_weak_type_flag)
    if not args:
        raise ArgumentError("result_type needs at least one value or dtype")
    operands = tuple([_as_operand(argument) for argument in args])
    dtype, weak = _promote(operands, _has_wide() if _ever_allowed else config.enable_x64, config.numpy_dtype_promotion)
    return (dtype, weak) if return_weak_type_flag else dtype


def common_dtype(*args: Any) -> DType:
    """Return the promoted dtype of values, also where strict promotion would refuse to combine them.

    It is the dtype in which a function computes, where its operands and the requested dtype differ.

    Args:
      args: values and dtypes, as of :func:`result_type`.

    >>> from pullback.core.dtypes import common_dtype
    >>> common_dtype("float16", "float32")
    dtype('float32')
    """
    return _promote(
        tuple([_as_operand(argument) for argument in args]),
        _has_wide() if _ever_allowed else config.enable_x64,
        "standard",
    )[0]


@_by_dtype
def _of_a_byte_or_more(dtype: DType) -> DType:
    if dtype.name in _SMALL_FLOATS:
        return np.dtype("bfloat16")
    return np.dtype(f"{'u' * is_unsigned(dtype)}int8") if dtype.name in _SMALL_INTEGERS else dtype


def accumulator(preferred: DType, *operands: DType) -> DType:
    """Return a dtype for sums of products that holds all operands and the preferred dtype of the result.

    Floats of 8 bits count as bfloat16, and integers of 4 bits as int8: they have no common dtype with others.

    >>> import numpy as np
    >>> from pullback.core.dtypes import accumulator
    >>> accumulator(np.dtype("float32"), np.dtype("float16")), accumulator(np.dtype("int32"), np.dtype("int8"))
    (dtype('float32'), dtype('int32'))
    """
    if all(dtype == preferred for dtype in operands):
        return preferred
    return common_dtype(*map(_of_a_byte_or_more, (preferred, *operands)))


# Related dtypes


def to_inexact(dtype: DType) -> DType:
    """Return the dtype of a function such as the sine on values of ``dtype``: itself, or a float for integers.

    Raises:
      DtypeError: the dtype is not one of numbers.

    >>> import numpy as np
    >>> from pullback.core.dtypes import to_inexact
    >>> to_inexact(np.dtype("int32")), to_inexact(np.dtype("float16"))
    (dtype('float32'), dtype('float16'))
    """
    kind = _kind(dtype)
    if kind in ("f", "c"):
        return dtype
    if kind not in ("b", "i", "u"):
        raise DtypeError(f"expected a dtype of numbers, got {short_name(dtype)}")
    return np.dtype(np.float64 if dtype.itemsize == 8 and _has_wide() is not False else np.float32)


def to_complex(dtype: DType) -> DType:
    """The complex dtype that holds values of ``dtype``.

    >>> import numpy as np
    >>> from pullback.core.dtypes import to_complex
    >>> to_complex(np.dtype("float32")), to_complex(np.dtype("float16"))
    (dtype('complex64'), dtype('complex64'))
    """
    if is_complex(dtype):
        return dtype
    return np.dtype(np.complex128 if to_inexact(dtype).itemsize == 8 else np.complex64)


@_by_dtype
def to_real(dtype: DType) -> DType:
    """The dtype of the real part of values of ``dtype``.

    >>> import numpy as np
    >>> from pullback.core.dtypes import to_real
    >>> to_real(np.dtype("complex64")), to_real(np.dtype("float16"))
    (dtype('float32'), dtype('float16'))
    """
    return np.dtype(f"float{dtype.itemsize * 4}") if is_complex(dtype) else dtype


@lru_cache(maxsize=1024)
def _integer_for(a: DType, b: DType, x64: bool) -> DType | None:
    if a == b:
        return a
    low = min(int(iinfo(a).min), int(iinfo(b).min))
    high = max(int(iinfo(a).max), int(iinfo(b).max))
    kind = "int" if low else "uint"
    for bits in (8, 16, 32, 64)[: 3 + x64]:
        dtype = np.dtype(f"{kind}{bits}")
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return None


def integer_for(a: DType, b: DType) -> DType | None:
    """The narrowest integer dtype that holds all values of two integer dtypes, or None: int32 and uint32 have none.

    >>> import numpy as np
    >>> from pullback.core.dtypes import integer_for
    >>> integer_for(np.dtype("int8"), np.dtype("uint8")), integer_for(np.dtype("int32"), np.dtype("uint32"))
    (dtype('int16'), None)
    """
    return _integer_for(a, b, config.enable_x64)


@_by_dtype
def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype.

    >>> import numpy as np
    >>> from pullback.core.dtypes import limits
    >>> limits(np.dtype("int8"))
    (-128, 127)
    """
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def holds(dtype: DType, number: int) -> bool:
    """Whether an integer dtype has a number among its values.

    >>> import numpy as np
    >>> from pullback.core.dtypes import holds
    >>> holds(np.dtype("uint8"), 255), holds(np.dtype("uint8"), -1)
    (True, False)
    """
    low, high = limits(dtype)
    return low <= number <= high


# Kinds and limits, as NumPy names them

_ABSTRACT_OF_KIND: dict[str, Any] = {
    "i": np.signedinteger,
    "u": np.unsignedinteger,
    "f": np.floating,
    "k": prng_key,
}


def _scalar_type(dtype: Any) -> type:
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    parsed = _parse(dtype)
    return prng_key if is_key(parsed) else parsed.type


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether dtype ``arg1`` is ``arg2`` or of kind ``arg2``.

    Args:
      arg1: a dtype or a kind.
      arg2: a dtype or a kind: one of NumPy's abstract types, ``extended`` or ``prng_key``.

    Returns:
      A bool of Python's.

    Raises:
      DtypeError: there is no such dtype.

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import dtypes, random
    >>> jnp.issubdtype("bfloat16", np.floating), jnp.issubdtype(random.key(0).dtype, dtypes.prng_key)
    (True, True)
    """
    sub, sup = _scalar_type(arg1), _scalar_type(arg2)
    if issubclass(sub, sup):
        return True
    abstract = _ABSTRACT_OF_KIND.get(_kind(np.dtype(sub))) if sub.__name__ in _EXTENDED else None
    return abstract is not None and issubclass(abstract, sup)


_KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind, in the words of the array API standard.

    Args:
      dtype: a dtype.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
        "numeric", a dtype, or a tuple of these.

    Returns:
      A bool of Python's.

    Raises:
      ValueError: there is no such kind.

    >>> import pullback.numpy as jnp
    >>> jnp.isdtype("float32", ("integral", "real floating")), jnp.isdtype("float32", "float64")
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    parsed = _parse(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return _kind(parsed) in tuple(_KINDS[kind])
    try:
        return parsed == _parse(kind)
    except DtypeError as error:
        raise ArgumentError(
            f"isdtype: there is no kind or dtype {kind!r}; the kinds are {', '.join(_KINDS)}"
        ) from error


def _library(dtype: DType) -> Any:
    """The module that defines a dtype: ``ml_dtypes`` or NumPy."""
    return ml_dtypes if dtype.name in _EXTENDED else np


def finfo(dtype: DTypeLike) -> np.finfo[Any]:
    """The limits of a floating-point or complex dtype.

    Args:
      dtype: a dtype of floats or complex numbers, or a value that has one.

    Returns:
      An object with ``bits``, ``eps``, ``max``, ``min``, ``tiny``, ..., as :class:`numpy.finfo`.

    Raises:
      DtypeError: there is no such dtype, or it is not inexact.

    >>> import pullback.numpy as jnp
    >>> jnp.finfo("float32").eps, jnp.finfo("bfloat16").bits
    (np.float32(1.1920929e-07), 16)
    """
    parsed = _parse(dtype)
    if not is_inexact(parsed):
        raise DtypeError(f"finfo takes a floating-point or complex dtype, got {dtype!r}")
    found: np.finfo[Any] = _library(parsed).finfo(parsed)
    return found


def iinfo(int_type: DTypeLike) -> np.iinfo[Any]:
    """The limits of an integer dtype.

    Args:
      int_type: a dtype of integers, or a value that has one.

    Returns:
      An object with ``bits``, ``max`` and ``min``, as :class:`numpy.iinfo`.

    Raises:
      DtypeError: there is no such dtype, or it is not an integer.

    >>> import pullback.numpy as jnp
    >>> jnp.iinfo("int8").max, jnp.iinfo("int4").max
    (127, 7)
    """
    parsed = _parse(int_type)
    if not is_integer(parsed):
        raise DtypeError(f"iinfo takes an integer dtype, got {int_type!r}")
    found: np.iinfo[Any] = _library(parsed).iinfo(parsed)
    return found


@_by_dtype
def itemsize_bits(dtype: np.dtype[Any]) -> int:
    """The number of bits of an element.

    Args:
      dtype: a dtype.

    Returns:
      A number of bits, an int.

    Raises:
      DtypeError: there is no such dtype (a TypeError).

    >>> from pullback import dtypes
    >>> dtypes.itemsize_bits("float32"), dtypes.itemsize_bits("int4"), dtypes.itemsize_bits(bool)
    (32, 4, 8)
    """
    if dtype.name in _EXTENDED:
        return int((iinfo if is_integer(dtype) else finfo)(dtype).bits)
    return int(dtype.itemsize * 8)


def scalar_type_of(x: DTypeLike) -> type:
    """The Python number type that a value's elements are like: ``bool``, ``int``, ``float`` or ``complex``.

    Args:
      x: an array, a number, or a dtype.

    Returns:
      A type of Python's.

    Raises:
      OperandError: the value is no array of numbers.

    >>> import numpy as np
    >>> from pullback import dtypes
    >>> dtypes.scalar_type_of(np.ones(3, "uint8"))
    <class 'int'>
    """
    kind = _kind(dtype_of(x)).replace("u", "i")
    for scalar, letter in python_scalar_kind.items():
        if letter == kind:
            return scalar
    raise OperandError(f"{quoted(x)} is not an array of numbers")


face(globals(), {"ml_dtypes": _EXTENDED})
