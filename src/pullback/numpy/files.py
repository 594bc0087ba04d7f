"""Arrays in files and in text, in NumPy's formats."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import quote, typed
from pullback.core.array import Array, ArraySource
from pullback.core.errors import ArgumentError, DtypeError, FileFormatError
from pullback.numpy.creation import asarray, listed
from pullback.numpy.promotion import known_int

__all__ = ["fromfile", "fromstring", "load", "save", "savez"]

_BFLOAT16 = dtypes.canonicalize_dtype("bfloat16")

FileLike = str | os.PathLike[str] | IO[Any]
"""A path, or an open file."""


def _of_bits(x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """View elements of two raw bytes as bfloat16, since NumPy reads saved bfloat16 numbers as raw bytes.

    Raise for other raw bytes; return arrays of other dtypes unchanged. ``name`` is the name of the function.
    """
    if x.dtype == np.dtype("V2"):
        return x.view(_BFLOAT16)
    if x.dtype.kind == "V":
        raise DtypeError(
            f"{name}: the file has elements of the opaque dtype {x.dtype}; read it with numpy.load, view the result "
            f"as another dtype, and pass it to asarray"
        )
    return x


def _for_file(name: str, x: Any) -> np.ndarray[Any, Any]:
    """Convert ``x`` to a NumPy array that can be written to a file; raise if NumPy's format does not keep its dtype.

    Python numbers, also in lists, and arrays of NumPy keep all their digits, as in NumPy. ``name`` names the function.
    """
    as_it_is = isinstance(x, (np.ndarray, np.generic)) or _is_of_python(x)
    value = np.asarray(x if as_it_is else listed(name, x))
    if value.dtype.isbuiltin != 1 and value.dtype != _BFLOAT16:
        raise DtypeError(
            f"{name}: NumPy's format does not keep the dtype {dtypes.dtype_name(value.dtype)}; save x.view('uint8'), "
            "or convert the array with astype('float32')"
        )
    return value


def _is_of_python(x: Any) -> bool:
    """Return whether ``x`` is a Python number, or nested lists of Python numbers."""
    return all(map(_is_of_python, x)) if isinstance(x, (list, tuple)) else type(x) in dtypes.python_scalar_kind


def save(file: FileLike, arr: ArraySource, allow_pickle: bool = True) -> None:
    """Write an array to a file, in NumPy's format ``.npy``.

    Args:
      file: a path, to which ``.npy`` is added if it is missing; or a file that is open for writing bytes.
      arr: an array whose elements are known, or nested lists.
      allow_pickle: not used, since arrays of objects are not supported.

    Raises:
      DtypeError: the format does not keep the dtype (a TypeError).
      TracerArrayConversionError: the array is traced (a TypeError).

    >>> import io
    >>> import pullback.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> print(jnp.load(file))
    [0 1 2]
    """
    np.save(file, _for_file("save", arr), allow_pickle=False)


def savez(file: FileLike, *args: ArraySource, allow_pickle: bool = True, **kwds: ArraySource) -> None:
    """Write several arrays to a file, in NumPy's format ``.npz``.

    Args:
      file: as in :func:`save`, with ``.npz``.
      *args: arrays, which are named ``arr_0``, ``arr_1``, ...
      allow_pickle: not used, since arrays of objects are not supported.
      **kwds: arrays by name.

    Raises:
      DtypeError: the format does not keep a dtype (a TypeError).

    >>> import io
    >>> import pullback.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.savez(file, jnp.arange(3), weights=jnp.ones(2))
    >>> _ = file.seek(0)
    >>> sorted(jnp.load(file))
    ['arr_0', 'weights']
    """
    arrays = {f"arr_{i}": _for_file("savez", x) for i, x in enumerate(args)}
    both = arrays.keys() & kwds.keys()
    if both:
        raise ArgumentError(
            f"savez: the name {min(both)!r} is also the name of a positional array; choose another name"
        )
    arrays |= {name: _for_file("savez", x) for name, x in kwds.items()}
    np.savez(file, allow_pickle=False, **arrays)


def load(file: FileLike, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a file that :func:`save` wrote, or several from one that :func:`savez` wrote.

    Args:
      file: a path, or a file that is open for reading bytes.
      *args, **kwargs: as in ``numpy.load``.

    Returns:
      An array; for a file of several, the mapping of ``numpy.load`` from names to NumPy arrays, which reads each on
      access.

    Raises:
      DtypeError: the dtype of the elements is not supported (a TypeError).
      FileFormatError: the file is damaged, cut off or of another format, or holds objects of Python, which are read
        with ``allow_pickle=True`` only: that runs whatever the file says (a ValueError and EOFError).

    >>> import io
    >>> import pullback.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2, "bfloat16"))
    >>> _ = file.seek(0)
    >>> jnp.load(file).dtype == jnp.bfloat16
    True
    """
    try:
        found = np.load(file, *args, **kwargs)
    except (OSError, TypeError, MemoryError):
        raise
    except Exception as error:  # of whatever kind: from the readers of headers, of zip files and of pickles
        raise FileFormatError(f"load: {error}") from error
    return asarray(_of_bits(found, "load")) if isinstance(found, np.ndarray) else found


def fromfile(file: FileLike, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The numbers in a file of bytes, or of text, as a vector.

    Args:
      file: a path, or an open file.
      dtype: the dtype of the elements in the file; 64 bits are narrowed to 32 unless ``enable_x64`` is on.
      count: how many elements to read; all by default.
      sep: the separator of the numbers in a text; empty for a file of bytes.
      offset: how many bytes to skip first, in a file of bytes.

    Returns:
      A vector.

    Raises:
      ArgumentError: ``file`` is not a path or an open file, or ``sep`` is not a string (a TypeError and a ValueError).
      FileNotFoundError: there is no such file.

    >>> import tempfile
    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3.0).tofile(file.name)
    ...     print(jnp.fromfile(file.name))
    [0. 1. 2.]
    """
    if not isinstance(file, (str, os.PathLike)) and not hasattr(file, "fileno"):
        raise ArgumentError(f"fromfile: file must be a path or an open file, got {typed(file)}")
    if not isinstance(sep, str):
        raise ArgumentError(f"fromfile: sep must be a string, got {quote(sep)}")
    most, first = known_int("fromfile", "count", count), known_int("fromfile", "offset", offset)
    options: Any = {} if sep else {"offset": first}
    return asarray(np.fromfile(file, _in_file("fromfile", dtype), most, sep, **options))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, as a vector.

    Args:
      string: the text.
      dtype: the dtype of the result.
      count: how many numbers to read; all by default.
      sep: the separator of the numbers; blanks around it do not count.

    Returns:
      A vector.

    Raises:
      ArgumentError: ``sep`` is empty, which stands for bytes: use :func:`frombuffer` (a ValueError).
      ValueError: the text contains something other than numbers.

    >>> import pullback.numpy as jnp
    >>> print(jnp.fromstring("1, 2, 3", dtype=int, sep=","))
    [1 2 3]
    """
    if not isinstance(string, str) or not isinstance(sep, str) or not sep:
        raise ArgumentError(
            f"fromstring takes a text and a separator, got {type(string).__name__} and sep="
            f"{sep!r}; use frombuffer for bytes"
        )
    most = known_int("fromstring", "count", count)
    return asarray(np.fromstring(string, _in_file("fromstring", dtype), most, sep=sep))


def _in_file(name: str, dtype: Any) -> np.dtype[Any]:
    """Convert ``dtype`` to a NumPy dtype for elements in a file, which keeps 64 bits even if ``enable_x64`` is off."""
    if isinstance(getattr(dtype, "dtype", None), np.dtype):
        return dtype.dtype  # type: ignore[no-any-return]
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{name}: unknown dtype {quote(dtype)}: {error}") from None
