"""``jax.extend.ifrt_programs``: Orbax imports it, to run programs of a runtime of Google's (Pathways)."""

from types import ModuleType
from typing import Any

from pullback.backends import client as _client


def __getattr__(name: str) -> Any:
    if name == "ifrt_programs":
        found: ModuleType = _client.library().jax.ifrt_programs
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
