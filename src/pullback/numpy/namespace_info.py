"""Inspection of the namespace after the Python array API standard: dtypes, devices and capabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.devices import devices
from pullback.backends.devices.shardings import DeviceLike
from pullback.core import dtypes
from pullback.core.config import config
from pullback.core.errors import ArgumentError
from pullback.core.naming import quoted

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"

_OF_KIND = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float32 float64",
    "complex floating": "complex64 complex128",
    "numeric": (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
    ),
}  # fmt: skip
_WIDE = frozenset(("int64", "uint64", "float64", "complex128"))


class NamespaceInfo:
    """The result of :func:`__array_namespace_info__`, with the methods of the array API standard."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """The capabilities of arrays: ``"boolean indexing"``, ``"data-dependent shapes"`` and ``"max dimensions"``.

        The first two hold for concrete arrays. In compiled programs every shape is known before the elements are:
        functions such as ``nonzero`` take ``size`` there.

        >>> import pullback.numpy as jnp
        >>> jnp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new arrays: ``config.default_device`` if it is set.

        >>> import pullback.numpy as jnp
        >>> jnp.__array_namespace_info__().default_device() in jnp.__array_namespace_info__().devices()
        True
        """
        return devices.default_device()

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of results if no dtype is requested; 64 bits wide if ``enable_x64`` is on.

        Args:
          device: not used, since all devices have the same dtypes.

        >>> import pullback.numpy as jnp
        >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
        """
        real = dtypes.default_float()
        return {
            "real floating": real,
            "complex floating": dtypes.to_complex(real),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def devices(self) -> list[Any]:
        """The devices that arrays can be on.

        >>> import pullback
        >>> import pullback.numpy as jnp
        >>> jnp.__array_namespace_info__().devices() == pullback.devices()
        True
        """
        return devices.devices()

    def dtypes(
        self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes that arrays can have, by name; those of 64 bits if ``enable_x64`` is on.

        Args:
          device: not used, since all devices have the same dtypes.
          kind: the name of a kind, as :func:`isdtype` takes it, or a tuple of them; None for all.

        Raises:
          ArgumentError: an unknown kind (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> list(jnp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32']
        """
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _OF_KIND]
        if unknown:
            raise ArgumentError(
                f"dtypes: kind must be one of {', '.join(map(repr, _OF_KIND))}, got {quoted(unknown[0])}"
            )
        names = dict.fromkeys(name for k in kinds for name in _OF_KIND[k].split())
        return {name: np.dtype(name) for name in names if config.enable_x64 or name not in _WIDE}


def __array_namespace_info__() -> NamespaceInfo:
    """Describe this namespace to libraries written for the Python array API standard.

    Returns:
      An object with the methods ``capabilities``, ``default_device``, ``default_dtypes``, ``devices`` and ``dtypes``.

    Method: the standard's *Inspection* (https://data-apis.org/array-api/2024.12/API_specification/inspection.html).

    >>> import pullback.numpy as jnp
    >>> sorted(jnp.__array_namespace_info__().default_dtypes())
    ['complex floating', 'indexing', 'integral', 'real floating']
    """
    return NamespaceInfo()
