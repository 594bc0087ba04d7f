"""Versions and devices, for bug reports, and the arrays that are alive."""

from __future__ import annotations

import gc
import platform as machine
import sys
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pullback.backends.devices.devices import devices, process_count, process_index
from pullback.core.arguments import flag, quote
from pullback.core.array import Array, ArrayImpl
from pullback.core.config import override
from pullback.core.errors import ArgumentError, BackendError

_LIBRARIES = ("pullback", "jaxlib", "numpy", "scipy", "ml_dtypes", "optree", "opt_einsum")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of Python and of the libraries, the devices and the machine, for bug reports.

    Args:
      return_string: whether to return the text instead.

    Returns:
      The text, or None if it is printed.

    Raises:
      ArgumentError: ``return_string`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import print_environment_info
    >>> print(print_environment_info(return_string=True).splitlines()[0].split(":")[0])
    pullback
    """
    rows = [*[(name, _version(name)) for name in _LIBRARIES], ("python", sys.version.replace("\n", " "))]
    rows += [("devices", _devices()), ("process_index", str(process_index())), ("platform", machine.platform())]
    text = "\n".join(f"{name}: {value}" for name, value in rows)
    if flag("print_environment_info", "return_string", return_string):
        return text
    print(text)
    return None


def _devices() -> str:
    """Describe the devices, or say why there are none: what is wrong with the compiler belongs into the report."""
    try:
        names = [str(device) for device in devices()]
        return f"{len(names)} in {process_count()} process(es): {', '.join(names[:8])}"
    except BackendError as error:
        return f"none: {error}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def array_garbage_collection_guard(new_val: str | None) -> AbstractContextManager[None]:
    """Return a context for the switch ``array_garbage_collection_guard``, which has no effect.

    In JAX it looks for arrays on devices that wait for Python's garbage collector. Arrays here hold no references to
    other objects of Python's, so none of them is in a cycle of its own.

    Args:
      new_val: ``"allow"``, ``"log"``, ``"fatal"`` or None.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another value (a ValueError).

    >>> from pullback import array_garbage_collection_guard
    >>> with array_garbage_collection_guard("log"):
    ...     pass
    """
    if new_val not in (None, "allow", "log", "fatal"):
        raise ArgumentError(f"array_garbage_collection_guard must be 'allow', 'log' or 'fatal', got {quote(new_val)}")
    return override("array_garbage_collection_guard", new_val)


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return all arrays with elements that are alive in this process, on the host and on devices.

    It searches the objects of the garbage collector, which takes time in a large program.

    Args:
      platform: the platform whose arrays to return, such as ``"cpu"``; by default all.

    Returns:
      A list of arrays.

    Raises:
      BackendError: ``platform`` is not a name (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import live_arrays
    >>> x = jnp.ones(3)
    >>> any(y is x for y in live_arrays())
    True
    """
    found: list[Any] = [x for x in gc.get_objects() if isinstance(x, ArrayImpl)]
    if platform is None:
        return found
    if not isinstance(platform, str):
        raise BackendError(f"live_arrays: expected the name of a platform, got {quote(platform)}")
    return [x for x in found if any(platform in (device.platform, device.target) for device in x.devices())]
