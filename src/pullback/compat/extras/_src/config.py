"""``jax._src.config``: each switch as an object with its value; calling it returns a context with another value."""

from __future__ import annotations

from typing import Any

from pullback.core import config as _config
from pullback.core.config import config as config
from pullback.core.faces import face as _face

update = config.update


class State:
    """A switch.

    >>> import pullback.numpy as jnp
    >>> from pullback.compat.extras._src.config import State
    >>> enable_x64 = State("enable_x64")
    >>> with enable_x64(True):
    ...     print(enable_x64.value, jnp.ones(2).dtype)
    True float64
    >>> enable_x64.value
    False
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name
        config.read(name)

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return config.read(self._name)

    def __call__(self, new_val: Any = True) -> Any:
        """Return a context manager in which the switch has another value, for the current thread only."""
        return _config.override(self._name, new_val)

    def __bool__(self) -> bool:
        raise TypeError(f"the switch {self._name} has no truth value; use .value")

    def __repr__(self) -> str:
        return f"State({self._name!r})"


_face(globals(), otherwise=State)
