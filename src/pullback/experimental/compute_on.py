"""Functions that run on a part of a device: ``jax.experimental.compute_on``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.source import named_as

__all__ = ["compute_on"]
face(globals())

_KINDS = ("device", "device_host", "tpu_sparsecore")


def compute_on(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: PyTree = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that computes what ``f`` does on a part of the device; on CPUs there is one part.

    Args:
      f: a function; without it, a decorator is returned.
      compute_type: ``"device"``, ``"device_host"`` or ``"tpu_sparsecore"``.
      out_memory_spaces: without effect: a device has one memory.
      compiler_options: without effect.

    Returns:
      A function like ``f``; without ``f``, a decorator.

    Raises:
      ArgumentError: another ``compute_type`` (a TypeError and a ValueError).

    >>> from pullback.experimental.compute_on import compute_on
    >>> compute_on(lambda x: 2 * x, compute_type="device_host")(3)
    6
    """
    if not is_listed(compute_type, _KINDS):
        raise ArgumentError(f"compute_on: compute_type must be one of {_KINDS}, got {compute_type!r}")
    if f is None:
        return lambda f: compute_on(f, compute_type=compute_type)

    @named_as(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return run
