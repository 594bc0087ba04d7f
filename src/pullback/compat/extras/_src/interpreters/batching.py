"""``jax._src.interpreters.batching``: the names of ``jax.interpreters.batching``, each looked up when asked for."""

from typing import Any

from pullback.interpreters import batching as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
