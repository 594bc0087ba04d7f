"""The transfer guard, which logs or refuses transfers of arrays between host and device, or between devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.core.config import config
from pullback.core.errors import TransferGuardError
from pullback.core.source import describe, here


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
