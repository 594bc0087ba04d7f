"""Transfers of arrays between host and device, or between devices: the guard that refuses them, and who watches them.

The CPU on which eager operations run is no device in this sense: programs on it read NumPy's memory.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from pullback.core.config import config
from pullback.core.errors import TransferGuardError
from pullback.core.source import describe, here


class Transfer(NamedTuple):
    """A copy of elements from one memory to another.

    Attributes:
      direction: "host_to_device", "device_to_host" or "device_to_device".
      shape: the shape of the array.
      dtype: the type of its elements, as devices store them.
      source: the device that the elements come from, or the devices; None for the host.
      target: the device that they go to, or the devices; None for the host.
    """

    direction: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: Any
    target: Any

    @property
    def nbytes(self) -> int:
        """The number of bytes that are copied."""
        return math.prod(self.shape) * self.dtype.itemsize


watchers: list[Callable[[Transfer], AbstractContextManager[Any]]] = []
"""Functions that are called with each transfer, which happens within the context that they return."""
_UNWATCHED = nullcontext()


def watched(
    direction: str, shape: tuple[int, ...], dtype: np.dtype[Any], source: Any, target: Any
) -> AbstractContextManager[Any]:
    """Return the context of a transfer, in which the watchers see it; the parameters are those of a `Transfer`."""
    if not watchers:
        return _UNWATCHED
    transfer = Transfer(direction, shape, dtype, source, target)
    contexts = ExitStack()
    for watch in watchers:
        contexts.enter_context(watch(transfer))
    return contexts


class _State(threading.local):
    """Whether the user requested this thread's transfers, by ``device_put`` or ``device_get``."""

    explicit = False


_state = _State()


@contextmanager
def explicit() -> Iterator[None]:
    """A context manager that marks this thread's transfers in its block as requested by the user, for :func:`check`."""
    before, _state.explicit = _state.explicit, True
    try:
        yield
    finally:
        _state.explicit = before


def check(direction: str, aval: Any) -> None:
    """Log, refuse or allow the transfer of an array, as the switch for its direction says.

    Args:
      direction: "host_to_device", "device_to_host" or "device_to_device".
      aval: the type of the array.

    Raises:
      TransferGuardError: the switch refuses the transfer.
    """
    level = getattr(config, f"transfer_guard_{direction}")
    if level in (None, "allow") or (_state.explicit and not level.endswith("_explicit")):
        return
    what = f"a {direction.replace('_', '-')} transfer of {aval}"
    if level.startswith("log"):
        import logging

        logging.getLogger("pullback").warning("%s, at %s", what, describe(here()))
        return
    if _state.explicit:
        hint = "device_put or device_get asked for it."
    else:
        hint = "Use device_put or device_get, or allow the transfer with transfer_guard('allow')."
    raise TransferGuardError(f"{what} is refused, because transfer_guard_{direction} is {level!r}. {hint}")
